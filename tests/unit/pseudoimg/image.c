/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "image.h"

int image_fd(void)
{
	int fd = memfd_create("image", MFD_CLOEXEC);

	if (fd < 0)
		abort();
	return fd;
}

void image_read(struct image *img, int fd)
{
	off_t len = lseek(fd, 0, SEEK_END);
	void *space;

	if (len < 0 || base_buf_extend(&img->file, (size_t)len, &space) < 0 ||
	    pread(fd, space, (size_t)len, 0) != len)
		abort();
}

void image_write(struct image *img, const struct base_buf *job)
{
	int fd = image_fd();

	memset(img, 0, sizeof(*img));
	img->status = pseudoimg_write(job->data, job->len, fd, &img->result, &img->err);
	if (!img->status)
		image_read(img, fd);
	close(fd);
}

void image_release(struct image *img)
{
	base_buf_release(&img->file);
}

static const Elf64_Shdr *headers(const struct image *img, size_t *nr)
{
	const Elf64_Ehdr *h = (const void *)img->file.data;

	*nr = h->e_shnum;
	return (const void *)(img->file.data + h->e_shoff);
}

const void *image_bytes(const struct image *img, const Elf64_Shdr *section)
{
	return img->file.data + section->sh_offset;
}

const Elf64_Shdr *image_section(const struct image *img, const char *name)
{
	size_t nr;
	const Elf64_Shdr *h = headers(img, &nr);
	const char *names = image_bytes(img, &h[nr - 1]);

	for (size_t i = 1; i < nr; i++)
		if (!strcmp(names + h[i].sh_name, name))
			return &h[i];
	return NULL;
}

size_t image_nr_symbols(const struct image *img)
{
	return image_section(img, ".symtab")->sh_size / sizeof(Elf64_Sym) - 1;
}

const Elf64_Sym *image_symbol(const struct image *img, const char *name)
{
	const Elf64_Sym *v = image_bytes(img, image_section(img, ".symtab"));
	const char *names = image_bytes(img, image_section(img, ".strtab"));

	for (size_t i = 1; i <= image_nr_symbols(img); i++)
		if (!strcmp(names + v[i].st_name, name))
			return &v[i];
	return NULL;
}

int image_byte(const struct image *img, uint64_t vaddr)
{
	size_t nr;
	const Elf64_Shdr *h = headers(img, &nr);

	for (size_t i = 1; i < nr; i++)
		if (h[i].sh_flags & SHF_EXECINSTR && vaddr >= h[i].sh_addr &&
		    vaddr - h[i].sh_addr < h[i].sh_size)
			return img->file.data[h[i].sh_offset + (vaddr - h[i].sh_addr)];
	return -1;
}
