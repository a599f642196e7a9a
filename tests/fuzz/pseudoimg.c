/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any job: written or refused with a reason, and what is written is all within its own file; the
 * same from a file; and what was written can be read back, and is the same image again.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pseudoimg_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_section(int fd, uint64_t off, uint64_t file_len)
{
	Elf64_Shdr s;

	if (pread(fd, &s, sizeof(s), (off_t)off) != sizeof(s))
		abort();
	if (s.sh_offset > file_len || s.sh_size > file_len - s.sh_offset)
		abort();
}

static void check_file(int fd)
{
	struct stat st;
	Elf64_Ehdr h;

	if (fstat(fd, &st) < 0 || pread(fd, &h, sizeof(h), 0) != sizeof(h) ||
	    memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_shstrndx >= h.e_shnum)
		abort();
	for (uint64_t i = 1; i < h.e_shnum; i++)
		check_section(fd, h.e_shoff + i * sizeof(Elf64_Shdr), (uint64_t)st.st_size);
}

static int new_file(void)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0)
		abort();
	return fd;
}

static bool has_owned(const uint8_t *data, size_t len)
{
	const struct wire_head *rec;

	WIRE_FOR_EACH (rec, data, len, pos)
		if (rec->type == WIRE_BYTES)
			return true;
	return false;
}

/* A record routine in an owned range that has DST as well is all that may get lost. */
static void read_back(int image, const struct pseudoimg_result *result, bool owned)
{
	struct pseudoimg_sink sink = { .fd = new_file() };
	struct pseudoimg_result again;
	int out = new_file();

	if (pseudoimg_read(image, &sink, NULL) < 0 || pseudoimg_sink_flush(&sink) < 0 ||
	    pseudoimg_write_file(sink.fd, out, &again, NULL) < 0)
		abort();
	if (!owned && (again.nr_bad || memcmp(again.build_id, result->build_id, 20) != 0 ||
		       again.nr_routines != result->nr_routines))
		abort();
	base_buf_release(&sink.b);
	close(sink.fd);
	close(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct pseudoimg_result result, of_file;
	struct base_err err = { 0 };
	int fd = new_file(), in = new_file(), out = new_file();
	int r = pseudoimg_write(data, len, fd, &result, &err);

	if (r > 0 || (r < 0) != (err.code < 0))
		abort();
	if (base_write_all(in, data, len) < 0 ||
	    pseudoimg_write_file(in, out, &of_file, NULL) != r ||
	    memcmp(&result, &of_file, sizeof(result)) != 0)
		abort();
	if (!r) {
		check_file(fd);
		read_back(fd, &result, has_owned(data, len));
	}
	close(fd);
	close(in);
	close(out);
	return 0;
}
