/* SPDX-License-Identifier: BSD-2-Clause */
/* Fedora's MiniDebugInfo: .gnu_debugdata holds an ELF file, packed by xz, with the symbols that
 * .dynsym lacks. */
#include <errno.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "image_internal.h"

enum { UNPACKED_MAX = 128 << 20, MEMORY_MAX = 256 << 20, CHUNK = 64 << 10 };

static int unpack(const void *data, size_t len, int fd)
{
	lzma_stream s = LZMA_STREAM_INIT;
	uint8_t *chunk = malloc(CHUNK);
	size_t total = 0;
	lzma_ret got = LZMA_MEM_ERROR;
	int r = 0;

	if (chunk)
		got = lzma_stream_decoder(&s, MEMORY_MAX, 0);
	s.next_in = data;
	s.avail_in = len;
	while (got == LZMA_OK && r >= 0) {
		s.next_out = chunk;
		s.avail_out = CHUNK;
		got = lzma_code(&s, LZMA_FINISH);
		total += CHUNK - s.avail_out;
		r = total > UNPACKED_MAX ? -DCPI_ELIMIT
					 : base_write_all(fd, chunk, CHUNK - s.avail_out);
	}
	lzma_end(&s);
	free(chunk);
	return r < 0 ? r : got == LZMA_STREAM_END ? 0 : -DCPI_EFORMAT;
}

int image_mini_open(struct image_elf *out, const struct image_elf *f)
{
	GElf_Shdr sh;
	Elf_Scn *scn = image_elf_section(f, ".gnu_debugdata", &sh);
	Elf_Data *data = scn ? elf_rawdata(scn, NULL) : NULL;
	FILE *file = data && data->d_buf ? tmpfile() : NULL;
	int r = file ? dup(fileno(file)) : -ENOENT, fd = r;
	off_t len;

	if (file && r < 0)
		r = -errno;
	if (r >= 0)
		r = unpack(data->d_buf, data->d_size, fd);
	len = r >= 0 ? lseek(fd, 0, SEEK_END) : 0;
	if (file)
		fclose(file);
	if (r < 0) {
		if (fd >= 0)
			close(fd);
		return r;
	}
	return image_elf_take(out, fd, (uint64_t)len, f->path, NULL);
}
