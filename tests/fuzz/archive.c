/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Archives and what is made of them: any bytes as a list (what could be read is written as itself
 * again, and each of its paths that is a part of a database leads nowhere out of it), as a whole
 * archive, and as what a child sends that an archive has taken over.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tarball_internal.h"
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
	struct tarball_list l = { 0 };
	struct base_buf same = { 0 };

	if (tarball_list_parse(&l, (const char *)data, len, NULL) >= 0) {
		if (tarball_list_format(&l, &same) < 0 || same.len != len ||
		    memcmp(same.data, data, len) != 0)
			abort();
	}
	for (size_t i = 0; i < l.nr; i++)
		check_place(l.v[i].path);
	base_buf_release(&same);
	tarball_list_release(&l);
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

static void read_members(struct tarball_reader *a)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < tarball_members(a)->nr; i++) {
		check_place(tarball_members(a)->v[i].path);
		r = tarball_read(a, NULL, NULL, NULL);
	}
	if (r >= 0)
		tarball_end(a, NULL);
	tarball_close(a);
}

static int file_of(const void *data, size_t len)
{
	int fd = memfd_create("archive", MFD_CLOEXEC);

	if (fd < 0 || base_write_all(fd, data, len) < 0 || lseek(fd, 0, SEEK_SET) != 0)
		abort();
	return fd;
}

static void as_archive(const uint8_t *data, size_t len)
{
	int fd = file_of(data, len);
	struct tarball_reader *a;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (tarball_open(path, &a, NULL) >= 0)
		read_members(a);
	close(fd);
}

static void as_frames(const uint8_t *data, size_t len)
{
	struct tarball_reader *a;

	if (tarball_open_frames("frames", file_of(data, len), 0, &a, NULL) >= 0)
		read_members(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	as_list(data, len);
	as_lines(data, len);
	as_frames(data, len);
	as_archive(data, len);
	return 0;
}
