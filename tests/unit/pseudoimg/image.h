/* SPDX-License-Identifier: BSD-2-Clause */
/* Images of test jobs: written through the library, read back, and looked into. */
#ifndef DCPI_TEST_IMAGE_H
#define DCPI_TEST_IMAGE_H

#include <elf.h>

#include "base.h"
#include "job.h"
#include "pseudoimg.h"

struct image {
	int status; /* of pseudoimg_write */
	struct pseudoimg_result result;
	struct base_err err;
	struct base_buf file; /* empty where the status is bad */
};

/* Write @job; release with image_release. */
void image_write(struct image *img, const struct base_buf *job);
/* The whole of @fd becomes the image. */
void image_read(struct image *img, int fd);
void image_release(struct image *img);
/* An unnamed, empty file. */
int image_fd(void);

/* NULL where there is none. */
const Elf64_Shdr *image_section(const struct image *img, const char *name);
const void *image_bytes(const struct image *img, const Elf64_Shdr *section);
const Elf64_Sym *image_symbol(const struct image *img, const char *name);
size_t image_nr_symbols(const struct image *img);
/* Byte at a virtual address, or -1 outside of every .text section. */
int image_byte(const struct image *img, uint64_t vaddr);

#endif
