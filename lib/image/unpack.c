/* SPDX-License-Identifier: BSD-2-Clause */
/* Debug sections that zstd packed (-gz=zstd), which libelf unpacks from 0.189 on. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "image_internal.h"

enum {
	PACKED_BY_ZSTD = 2,  /* ELFCOMPRESS_ZSTD, which older elf.h lack */
	RATIO_MAX = 1 << 10, /* limit of the compression ratio: a higher claim only makes us take
				memory */
};

static int keep(struct image *img, void *bytes)
{
	int r = base_grow(&img->unpacked.v, &img->unpacked.cap, img->unpacked.nr + 1,
			  sizeof(*img->unpacked.v));

	if (r >= 0)
		img->unpacked.v[img->unpacked.nr++] = bytes;
	return r;
}

static void replace(Elf_Data *data, void *bytes, size_t len)
{
	data->d_buf = bytes;
	data->d_size = len;
	data->d_type = ELF_T_BYTE;
}

/* In libelf's memory alone. It hands out a section as it is and as the machine reads it. */
static int unpack(struct image *img, const struct image_elf *f, Elf_Scn *scn, GElf_Shdr *sh,
		  uint64_t len)
{
	size_t head = gelf_getclass(f->elf) == ELFCLASS32 ? sizeof(Elf32_Chdr) : sizeof(Elf64_Chdr);
	Elf_Data *raw = elf_rawdata(scn, NULL), *data = elf_getdata(scn, NULL);
	void *bytes;
	int r;

	if (!raw || !data || !raw->d_buf || raw->d_size <= head || !len ||
	    len / RATIO_MAX > raw->d_size)
		return -DCPI_EFORMAT;
	bytes = malloc(len);
	if (!bytes)
		return -ENOMEM;
	r = ZSTD_decompress(bytes, len, (const char *)raw->d_buf + head, raw->d_size - head) == len
		    ? keep(img, bytes)
		    : -DCPI_EFORMAT;
	if (r < 0) {
		free(bytes);
		return r;
	}
	replace(raw, bytes, len);
	replace(data, bytes, len);
	sh->sh_flags &= ~(GElf_Xword)SHF_COMPRESSED;
	sh->sh_size = len;
	return gelf_update_shdr(scn, sh) ? 0 : -DCPI_EFORMAT;
}

int image_unpack(struct image *img, const struct image_elf *f)
{
	GElf_Shdr sh;
	GElf_Chdr packed;
	int r = 0;

	for (Elf_Scn *scn = NULL; r >= 0 && (scn = elf_nextscn(f->elf, scn));) {
		if (gelf_getshdr(scn, &sh) && (sh.sh_flags & SHF_COMPRESSED) &&
		    !(sh.sh_flags & SHF_ALLOC) && gelf_getchdr(scn, &packed) &&
		    packed.ch_type == PACKED_BY_ZSTD)
			r = unpack(img, f, scn, &sh, packed.ch_size);
	}
	return r;
}

void image_unpacked_free(struct image *img)
{
	for (size_t i = 0; i < img->unpacked.nr; i++)
		free(img->unpacked.v[i]);
	free(img->unpacked.v);
}
