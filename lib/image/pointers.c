/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses that stand in data, as the loader leaves them. */
#include <errno.h>
#include <stdlib.h>

#include "image_internal.h"

struct pointer {
	uint64_t vaddr, value;
};

struct image_pointers {
	struct pointer *v; /* ascending by vaddr */
	size_t nr, cap;
};

/* The relocation that adds what the image was moved by. */
static uint32_t relative_type(uint32_t machine)
{
	switch (machine) {
	case EM_X86_64:
		return R_X86_64_RELATIVE;
	case EM_AARCH64:
		return R_AARCH64_RELATIVE;
	case EM_RISCV:
		return R_RISCV_RELATIVE;
	default:
		return 0;
	}
}

static int add_relocations(struct image_pointers *p, Elf_Scn *scn, const GElf_Shdr *sh,
			   uint32_t type)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	size_t nr = data && sh->sh_entsize ? data->d_size / sh->sh_entsize : 0;
	GElf_Rela rela;
	int r = 0;

	for (size_t i = 0; i < nr && i < INT32_MAX && r >= 0; i++) {
		if (!gelf_getrela(data, (int)i, &rela) || GELF_R_TYPE(rela.r_info) != type)
			continue;
		r = base_grow(&p->v, &p->cap, p->nr + 1, sizeof(*p->v));
		if (r >= 0)
			p->v[p->nr++] = (struct pointer){ rela.r_offset, (uint64_t)rela.r_addend };
	}
	return r;
}

static int by_vaddr(const void *a, const void *b)
{
	const struct pointer *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return (x->value > y->value) - (x->value < y->value);
}

static int read_pointers(struct image *img)
{
	uint32_t type = relative_type(img->main.header.e_machine);
	struct image_pointers *p = calloc(1, sizeof(*p));
	GElf_Shdr sh;
	int r = p ? 0 : -ENOMEM;

	for (Elf_Scn *scn = NULL; type && r >= 0 && (scn = elf_nextscn(img->main.elf, scn));)
		if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_RELA && sh.sh_flags & SHF_ALLOC)
			r = add_relocations(p, scn, &sh, type);
	if (r < 0) {
		image_pointers_free(p);
		return r;
	}
	if (p->nr)
		qsort(p->v, p->nr, sizeof(*p->v), by_vaddr);
	img->pointers = p;
	return 0;
}

void image_pointers_free(struct image_pointers *p)
{
	if (!p)
		return;
	free(p->v);
	free(p);
}

int image_pointer(struct image *img, uint64_t vaddr, uint64_t *value)
{
	size_t lo = 0, hi;
	uint8_t bytes[8];

	if (!img->pointers && read_pointers(img) < 0)
		return -ENOMEM;
	hi = img->pointers->nr;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (img->pointers->v[mid].vaddr < vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < img->pointers->nr && img->pointers->v[lo].vaddr == vaddr) {
		*value = img->pointers->v[lo].value;
		return 0;
	}
	if (image_bytes(img, vaddr, bytes, sizeof(bytes)) < sizeof(bytes))
		return -ENOENT;
	*value = 0;
	for (int i = 7; i >= 0; i--)
		*value = *value << 8 | bytes[i];
	return 0;
}
