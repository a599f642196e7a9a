/* SPDX-License-Identifier: BSD-2-Clause */
/* Any job: written or refused with a reason, and what is written is all within its own file. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pseudoimg.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct pseudoimg_result result;
	struct base_err err = { 0 };
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	int r = pseudoimg_write(data, len, fd, &result, &err);

	if (r > 0 || (r < 0) != (err.code < 0))
		abort();
	if (!r)
		check_file(fd);
	close(fd);
	return 0;
}
