/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of files that an archive begins with is parsed and formatted here. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "archive.h"

static const char first_line[] = ARCHIVE_LIST_NAME " 1\n";

static bool part_ok(const char *part, size_t len)
{
	return len && len <= 255 && !(len == 1 && part[0] == '.') &&
	       !(len == 2 && part[0] == '.' && part[1] == '.');
}

static bool path_ok(const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < len; i++)
		if ((unsigned char)path[i] <= ' ' || path[i] == 0x7f)
			return false;
	while (*path) {
		size_t part = strcspn(path, "/");

		if (!part_ok(path, part) || (path[part] && !path[part + 1]))
			return false;
		path += part + (path[part] == '/');
	}
	return len && len <= ARCHIVE_PATH_MAX;
}

static bool member_ok(const struct archive_member *m)
{
	return path_ok(m->path) && strcmp(m->path, ARCHIVE_LIST_NAME) != 0 && m->mode <= 0777 &&
	       !(m->mode & 022) && m->mtime >= 0 && m->mtime <= UINT32_MAX;
}

int archive_list_add(struct archive_list *l, const struct archive_member *m)
{
	struct archive_member *copy;
	uint64_t bytes;
	int r;

	if (!member_ok(m))
		return -EINVAL;
	if (m->len > ARCHIVE_MEMBER_MAX || base_add_overflow(l->bytes, m->len, &bytes))
		return -DCPI_ELIMIT;
	r = base_grow(&l->v, &l->cap, l->nr + 1, sizeof(*l->v));
	if (r < 0)
		return r;
	copy = &l->v[l->nr];
	*copy = *m;
	copy->path = strdup(m->path);
	if (!copy->path)
		return -ENOMEM;
	l->nr++;
	l->bytes = bytes;
	return 0;
}

void archive_list_release(struct archive_list *l)
{
	for (size_t i = 0; i < l->nr; i++)
		free(l->v[i].path);
	free(l->v);
	*l = (struct archive_list){ 0 };
}

/* ---- the text -------------------------------------------------------------------------------- */

/* Digits alone, and no zero before others but for 0 itself, so that each list has one form. */
static int take_number(const char **at, unsigned int base, uint64_t max, uint64_t *out)
{
	const char *p = *at;
	uint64_t v = 0;

	if (*p == '0' && p[1] != ' ')
		return -DCPI_EFORMAT;
	for (; *p >= '0' && *p < (char)('0' + base); p++) {
		v = v * base + (uint64_t)(*p - '0');
		if (v > max)
			return -DCPI_EFORMAT;
	}
	if (p == *at || *p != ' ')
		return -DCPI_EFORMAT;
	*at = p + 1;
	*out = v;
	return 0;
}

static int take_sum(const char **at, uint8_t sum[32])
{
	struct base_id id;

	if (strspn(*at, "0123456789abcdef") != 64 || (*at)[64] != ' ' ||
	    base_id_parse(&id, *at, 64) < 0)
		return -DCPI_EFORMAT;
	memcpy(sum, id.bytes, 32);
	*at += 65;
	return 0;
}

/* "file MODE MTIME LENGTH SHA256 PATH" */
static int parse_line(struct archive_list *l, char *line)
{
	struct archive_member m = { 0 };
	const char *at = line + strlen("file ");
	uint64_t mode = 0, mtime = 0;

	if (strncmp(line, "file ", strlen("file ")) != 0 || take_number(&at, 8, 0777, &mode) < 0 ||
	    take_number(&at, 10, UINT32_MAX, &mtime) < 0 ||
	    take_number(&at, 10, ARCHIVE_MEMBER_MAX, &m.len) < 0 || take_sum(&at, m.sum) < 0)
		return -DCPI_EFORMAT;
	m.path = line + (at - line);
	m.mode = (uint32_t)mode;
	m.mtime = (int64_t)mtime;
	if (l->nr && strcmp(l->v[l->nr - 1].path, m.path) >= 0)
		return -EEXIST;
	return archive_list_add(l, &m);
}

static int bad_line(int r, size_t number, const char *line, struct base_err *err)
{
	char shown[80];

	if (r == -ENOMEM)
		return base_fail_errno(err, r, "cannot read the archive's list");
	snprintf(shown, sizeof(shown), "%s", line);
	base_text_clean(shown);
	if (r == -EEXIST)
		return base_fail(err, -DCPI_EFORMAT,
				 "line %zu of the archive's list is out of order, or there "
				 "already: '%s'",
				 number, shown);
	return base_fail(err, -DCPI_EFORMAT, "line %zu of the archive's list cannot be: '%s'",
			 number, shown);
}

/* The last line, "crc X\n", is over all before it. */
static int check_crc(const char *text, size_t len, size_t *body, struct base_err *err)
{
	static const size_t last = sizeof("crc 12345678\n") - 1;
	char want[sizeof("crc 12345678\n")];

	*body = len > last ? len - last : 0;
	snprintf(want, sizeof(want), "crc %08x\n", base_crc32c(0, text, *body));
	if (len <= last || memcmp(text + *body, want, last) != 0)
		return base_fail_errno(err, -DCPI_ECHECKSUM, "cannot read the archive's list");
	return 0;
}

static int parse_lines(struct archive_list *l, char *text, size_t len, struct base_err *err)
{
	size_t number = 1;

	for (char *line = text, *end; line < text + len; line = end + 1) {
		int r;

		end = memchr(line, '\n', (size_t)(text + len - line));
		number++;
		if (!end)
			return bad_line(-DCPI_EFORMAT, number, line, err);
		*end = '\0';
		r = strlen(line) == (size_t)(end - line) ? parse_line(l, line) : -DCPI_EFORMAT;
		if (r < 0)
			return bad_line(r, number, line, err);
	}
	return 0;
}

int archive_list_parse(struct archive_list *l, const char *text, size_t len, struct base_err *err)
{
	size_t head = strlen(first_line), body;
	char *copy;
	int r;

	if (len < head || memcmp(text, first_line, head) != 0) {
		base_fail_errno(err, -DCPI_EVERSION, "cannot read the archive's list");
		if (len >= head && memcmp(text, first_line, strlen(ARCHIVE_LIST_NAME " ")) == 0)
			base_hint(err, "a newer DCPI wrote this archive");
		return -DCPI_EVERSION;
	}
	r = check_crc(text, len, &body, err);
	if (r < 0)
		return r;
	if (body < head)
		return base_fail_errno(err, -DCPI_EFORMAT, "cannot read the archive's list");
	copy = malloc(body - head + 1);
	if (!copy)
		return base_fail_errno(err, -ENOMEM, "cannot read the archive's list");
	memcpy(copy, text + head, body - head);
	copy[body - head] = '\0';
	r = parse_lines(l, copy, body - head, err);
	free(copy);
	return r;
}

int archive_list_format(const struct archive_list *l, struct base_buf *to)
{
	int r = base_buf_append(to, first_line, strlen(first_line));

	for (size_t i = 0; r >= 0 && i < l->nr; i++) {
		const struct archive_member *m = &l->v[i];
		struct base_id sum = { .len = sizeof(m->sum) };
		char text[BASE_ID_TEXT_LEN];

		memcpy(sum.bytes, m->sum, sizeof(m->sum));
		r = base_buf_printf(to, "file %" PRIo32 " %" PRId64 " %" PRIu64 " %s %s\n", m->mode,
				    m->mtime, m->len, base_id_text(&sum, text), m->path);
	}
	if (r >= 0)
		r = base_buf_printf(to, "crc %08x\n", base_crc32c(0, to->data, to->len));
	return r;
}
