/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers of POSIX tar (ustar), with a pax record before them where a path is longer than its
 * field. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "archive_internal.h"

enum { NAME_LEN = 100 };

struct ustar {
	char name[NAME_LEN], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type,
		link[NAME_LEN], magic[6], version[2], uname[32], gname[32], major[8], minor[8],
		prefix[155], rest[12];
};
_Static_assert(sizeof(struct ustar) == ARCHIVE_BLOCK, "a tar header is one block");

/* Octal digits and a NUL fill the field. */
static void put_octal(char *to, size_t len, uint64_t value)
{
	to[--len] = '\0';
	while (len) {
		to[--len] = (char)('0' + (value & 7));
		value >>= 3;
	}
}

static void put_sum(struct ustar *u)
{
	const uint8_t *p = (const void *)u;
	unsigned int sum = 0;

	memset(u->sum, ' ', sizeof(u->sum));
	for (size_t i = 0; i < sizeof(*u); i++)
		sum += p[i];
	put_octal(u->sum, 7, sum);
}

static int put_block(struct base_buf *to, const char *path, char type, uint64_t len, uint32_t mode,
		     int64_t mtime)
{
	struct ustar u = { .type = type, .magic = "ustar", .version = { '0', '0' } };

	memcpy(u.name, path, strnlen(path, NAME_LEN));
	put_octal(u.mode, sizeof(u.mode), mode);
	put_octal(u.uid, sizeof(u.uid), 0);
	put_octal(u.gid, sizeof(u.gid), 0);
	put_octal(u.size, sizeof(u.size), len);
	put_octal(u.mtime, sizeof(u.mtime), (uint64_t)mtime);
	put_octal(u.major, sizeof(u.major), 0);
	put_octal(u.minor, sizeof(u.minor), 0);
	put_sum(&u);
	return base_buf_append(to, &u, sizeof(u));
}

/* "LENGTH path=PATH\n", LENGTH counting itself. */
static int pax_record(const char *path, char *to, size_t max)
{
	int body = (int)strlen(path) + (int)strlen(" path=\n"), len = body + 2;

	while (snprintf(to, max, "%d path=%s\n", len, path) != len)
		len++;
	return len;
}

static int put_pax(const struct archive_member *m, struct base_buf *to)
{
	char record[ARCHIVE_PATH_MAX + 16] = "", name[NAME_LEN];
	int len = pax_record(m->path, record, sizeof(record)), r;
	void *p;

	snprintf(name, sizeof(name), "PaxHeaders/%.80s", base_path_name(m->path));
	r = put_block(to, name, 'x', (uint64_t)len, 0644, m->mtime);
	if (r >= 0)
		r = base_buf_extend(to, base_align_up((uint64_t)len, ARCHIVE_BLOCK), &p);
	if (r >= 0)
		memcpy(p, record, (size_t)len);
	return r;
}

int archive_header(const struct archive_member *m, struct base_buf *to)
{
	int r = strlen(m->path) > NAME_LEN ? put_pax(m, to) : 0;

	return r < 0 ? r : put_block(to, m->path, '0', m->len, m->mode, m->mtime);
}

int archive_header_len(const uint8_t block[ARCHIVE_BLOCK], uint64_t *len)
{
	struct ustar u;

	memcpy(&u, block, sizeof(u));
	*len = 0;
	for (size_t i = 0; i + 1 < sizeof(u.size); i++) {
		if (u.size[i] < '0' || u.size[i] > '7')
			return -DCPI_EFORMAT;
		*len = *len << 3 | (uint64_t)(u.size[i] - '0');
	}
	return 0;
}
