/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Archives and what is made of them: any bytes as a list (what could be read is written as itself
 * again, and each of its paths that is a part of a database leads nowhere out of it), and as a
 * whole archive.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "archive.h"
#include "profdb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_place(const char *path)
{
	struct profdb_place p;

	if (profdb_place_parse(path, &p) < 0)
		return;
	if (*path == '/' || strstr(path, "..") == path || strstr(path, "/../") ||
	    strchr(p.name, '/') || !strcmp(p.name, "..") || !*p.name || *p.name == '.')
		abort();
}

static void as_list(const uint8_t *data, size_t len)
{
	struct archive_list l = { 0 };
	struct base_buf same = { 0 };

	if (archive_list_parse(&l, (const char *)data, len, NULL) >= 0) {
		if (archive_list_format(&l, &same) < 0 || same.len != len ||
		    memcmp(same.data, data, len) != 0)
			abort();
	}
	for (size_t i = 0; i < l.nr; i++)
		check_place(l.v[i].path);
	base_buf_release(&same);
	archive_list_release(&l);
}

/* With the line that a right checksum takes, so that mutations reach what is behind it. */
static void as_lines(const uint8_t *data, size_t len)
{
	struct base_buf text = { 0 };

	if (base_buf_append(&text, data, len) < 0 ||
	    base_buf_printf(&text, "crc %08x\n", base_crc32c(0, data, len)) < 0)
		abort();
	as_list(text.data, text.len);
	base_buf_release(&text);
}

static void as_archive(const uint8_t *data, size_t len)
{
	int r, fd = memfd_create("archive", MFD_CLOEXEC);
	struct archive_reader *a;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd < 0 || base_write_all(fd, data, len) < 0)
		abort();
	if (archive_open(path, &a, NULL) >= 0) {
		r = 0;
		for (size_t i = 0; r >= 0 && i < archive_members(a)->nr; i++) {
			check_place(archive_members(a)->v[i].path);
			r = archive_read(a, NULL, NULL, NULL);
		}
		if (r >= 0)
			archive_end(a, NULL);
		archive_close(a);
	}
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	as_list(data, len);
	as_lines(data, len);
	as_archive(data, len);
	return 0;
}
