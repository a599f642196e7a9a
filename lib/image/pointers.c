/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses that stand in data, as the loader leaves them. */
#include <errno.h>
#include <stdlib.h>

#include "image_internal.h"

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

static int add(struct image_pointers *p, uint64_t vaddr, uint64_t value)
{
	int r = base_grow(&p->v, &p->cap, p->nr + 1, sizeof(*p->v));

	if (r >= 0)
		p->v[p->nr++] = (struct image_pointer){ vaddr, value };
	return r;
}

static int add_relocations(struct image_pointers *p, Elf_Scn *scn, const GElf_Shdr *sh,
			   uint32_t type)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	size_t nr = data && sh->sh_entsize ? data->d_size / sh->sh_entsize : 0;
	GElf_Rela rela;
	int r = 0;

	for (size_t i = 0; i < nr && i < INT32_MAX && r >= 0; i++)
		if (gelf_getrela(data, (int)i, &rela) && GELF_R_TYPE(rela.r_info) == type)
			r = add(p, rela.r_offset, (uint64_t)rela.r_addend);
	return r;
}

static uint64_t get64(const uint8_t *at)
{
	uint64_t value = 0;

	for (int i = 7; i >= 0; i--)
		value = value << 8 | at[i];
	return value;
}

/* Compact relocations give only places; the values stand there. */
static int add_place(struct image_pointers *p, const struct image_elf *f, uint64_t vaddr)
{
	uint8_t bytes[8];
	GElf_Phdr ph;
	size_t nr = 0;

	/* Each has a place of its own in the file, unless that lies. */
	if (p->nr > f->len / sizeof(bytes) || elf_getphdrnum(f->elf, &nr) < 0)
		return 0;
	for (size_t i = 0; i < nr; i++)
		if (gelf_getphdr(f->elf, (int)i, &ph) && ph.p_type == PT_LOAD &&
		    vaddr >= ph.p_vaddr && vaddr - ph.p_vaddr < ph.p_filesz &&
		    image_elf_read(f, ph.p_offset + (vaddr - ph.p_vaddr), bytes, sizeof(bytes)) ==
			    sizeof(bytes))
			return add(p, vaddr, get64(bytes));
	return 0;
}

/* Words that are an address, or, odd, of the 63 words behind that or the last bits those that are
 * relocated, too. */
static int add_compact(struct image_pointers *p, const struct image_elf *f, Elf_Scn *scn)
{
	Elf_Data *data = elf_rawdata(scn, NULL);
	uint64_t vaddr = 0;
	int r = 0;

	for (size_t at = 0; data && at + 8 <= data->d_size && r >= 0; at += 8) {
		uint64_t word = get64((const uint8_t *)data->d_buf + at);

		if (!(word & 1)) {
			r = add_place(p, f, word);
			vaddr = word + 8;
			continue;
		}
		for (unsigned int bit = 1; bit < 64 && r >= 0; bit++)
			if (word >> bit & 1)
				r = add_place(p, f, vaddr + (bit - 1) * 8);
		vaddr += 63 * 8;
	}
	return r;
}

static int by_vaddr(const void *a, const void *b)
{
	const struct image_pointer *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return (x->value > y->value) - (x->value < y->value);
}

static bool is_compact(const struct image_elf *f, const GElf_Shdr *sh)
{
	return sh->sh_type == SHT_RELR && f->header.e_ident[EI_CLASS] == ELFCLASS64 &&
	       f->header.e_ident[EI_DATA] == ELFDATA2LSB;
}

int image_pointers_read(struct image_pointers **out, const struct image_elf *f)
{
	uint32_t type = relative_type(f->header.e_machine);
	struct image_pointers *p = calloc(1, sizeof(*p));
	GElf_Shdr sh;
	int r = p ? 0 : -ENOMEM;

	for (Elf_Scn *scn = NULL; type && r >= 0 && (scn = elf_nextscn(f->elf, scn));) {
		if (!gelf_getshdr(scn, &sh) || !(sh.sh_flags & SHF_ALLOC))
			continue;
		if (sh.sh_type == SHT_RELA)
			r = add_relocations(p, scn, &sh, type);
		else if (is_compact(f, &sh))
			r = add_compact(p, f, scn);
	}
	if (r < 0) {
		image_pointers_free(p);
		return r;
	}
	if (p->nr)
		qsort(p->v, p->nr, sizeof(*p->v), by_vaddr);
	*out = p;
	return 0;
}

void image_pointers_free(struct image_pointers *p)
{
	if (!p)
		return;
	free(p->v);
	free(p);
}
