/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The linker's stubs: each jumps to where a word of the GOT points, and a relocation says which
 * procedure's address the loader puts there. The stub has its name.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "image_internal.h"

/* The symbol that the loader stores in the word at @vaddr. */
struct slot {
	uint64_t vaddr;
	const char *name; /* NULL: the answer of the procedure at @addend */
	uint64_t addend;
};

struct slots {
	struct slot *v;
	size_t nr, cap;
};

/* A stub, and the word that it jumps by. */
struct stub {
	uint64_t vaddr, len, slot;
};

static int by_vaddr(const void *pa, const void *pb)
{
	const struct slot *a = pa, *b = pb;

	return (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
}

/* Its word is found by calling the procedure at its addend. */
static bool is_indirect(uint32_t machine, uint64_t type)
{
	switch (machine) {
	case EM_X86_64:
		return type == R_X86_64_IRELATIVE;
	case EM_AARCH64:
		return type == R_AARCH64_IRELATIVE;
	default:
		return machine == EM_RISCV && type == R_RISCV_IRELATIVE;
	}
}

static int add_relocations(struct slots *s, const struct image_elf *f, Elf_Scn *scn,
			   const GElf_Shdr *sh)
{
	Elf_Data *data = elf_getdata(scn, NULL), *symbols = NULL;
	size_t nr = data && sh->sh_entsize ? data->d_size / sh->sh_entsize : 0;
	Elf_Scn *table = elf_getscn(f->elf, sh->sh_link);
	GElf_Shdr table_sh = { 0 };
	GElf_Rela rela;
	int r = 0;

	if (table && gelf_getshdr(table, &table_sh) && table_sh.sh_type == SHT_DYNSYM)
		symbols = elf_getdata(table, NULL);
	for (size_t i = 0; i < nr && i < INT32_MAX && r >= 0; i++) {
		struct slot one = { 0 };
		GElf_Sym sym;

		if (!gelf_getrela(data, (int)i, &rela))
			break;
		if (!GELF_R_SYM(rela.r_info) &&
		    !is_indirect(f->header.e_machine, GELF_R_TYPE(rela.r_info)))
			continue;
		if (GELF_R_SYM(rela.r_info) && symbols && GELF_R_SYM(rela.r_info) <= INT32_MAX &&
		    gelf_getsym(symbols, (int)GELF_R_SYM(rela.r_info), &sym))
			one.name = elf_strptr(f->elf, table_sh.sh_link, sym.st_name);
		one.vaddr = rela.r_offset;
		one.addend = (uint64_t)rela.r_addend;
		r = base_grow(&s->v, &s->cap, s->nr + 1, sizeof(*s->v));
		if (r >= 0)
			s->v[s->nr++] = one;
	}
	return r;
}

static int read_slots(struct slots *s, const struct image_elf *f)
{
	GElf_Shdr sh;
	int r = 0;

	for (Elf_Scn *scn = NULL; r >= 0 && (scn = elf_nextscn(f->elf, scn));)
		if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_RELA && (sh.sh_flags & SHF_ALLOC))
			r = add_relocations(s, f, scn, &sh);
	if (s->nr)
		qsort(s->v, s->nr, sizeof(*s->v), by_vaddr);
	return r;
}

static uint32_t word_at(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* [endbr64] [bnd] jmp *distance(%rip), in a place of 8 or 16 bytes. */
static bool x86_stub(const uint8_t *p, size_t len, uint64_t vaddr, struct stub *out)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	size_t at = 0;

	if (len >= sizeof(endbr) && memcmp(p, endbr, sizeof(endbr)) == 0)
		at = sizeof(endbr);
	if (at < len && p[at] == 0xf2)
		at++;
	if (len < at + 6 || p[at] != 0xff || p[at + 1] != 0x25)
		return false;
	out->vaddr = vaddr;
	out->len = len;
	out->slot = vaddr + at + 6 + (uint64_t)(int64_t)(int32_t)word_at(p + at + 2);
	return true;
}

/* [bti c] adrp x16, page; ldr x17, [x16, #offset]; add x16, x16, #offset; br x17 */
static bool aarch64_stub(const uint8_t *p, size_t len, uint64_t vaddr, struct stub *out)
{
	size_t at = len >= 4 && word_at(p) == 0xd503245f ? 4 : 0;
	uint32_t adrp, ldr;
	int64_t pages;

	if (len < at + 16)
		return false;
	adrp = word_at(p + at);
	ldr = word_at(p + at + 4);
	if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
		return false;
	/* bits 23 to 5 are the high part, 30 and 29 the low one, of a signed 21-bit number */
	pages = (int64_t)((int32_t)((adrp & 0x00ffffe0) << 8) >> 13 << 2) | ((adrp >> 29) & 3);
	out->vaddr = vaddr;
	out->len = at + 16;
	out->slot = ((vaddr + at) & ~(uint64_t)0xfff) + (uint64_t)(pages * 4096) +
		    8 * (uint64_t)((ldr >> 10) & 0xfff);
	return true;
}

/* auipc t3, high; ld t3, low(t3); jalr t1, t3; nop */
static bool riscv_stub(const uint8_t *p, size_t len, uint64_t vaddr, struct stub *out)
{
	uint32_t auipc, ld;

	if (len < 16)
		return false;
	auipc = word_at(p);
	ld = word_at(p + 4);
	if ((auipc & 0xfff) != 0xe17 || (ld & 0xfffff) != 0xe3e03)
		return false;
	out->vaddr = vaddr;
	out->len = 16;
	out->slot = vaddr + (uint64_t)(int64_t)(int32_t)(auipc & ~0xfffu) +
		    (uint64_t)(int64_t)((int32_t)ld >> 20);
	return true;
}

typedef bool (*stub_fn)(const uint8_t *p, size_t len, uint64_t vaddr, struct stub *out);

static int name_stub(const struct stub *stub, const struct slots *slots, image_stub_fn *fn,
		     void *ctx)
{
	struct slot key = { .vaddr = stub->slot }, *slot = NULL;
	char *name;
	int n;

	if (slots->nr)
		slot = bsearch(&key, slots->v, slots->nr, sizeof(key), by_vaddr);
	if (!slot)
		return 0;
	n = slot->name && *slot->name
		    ? asprintf(&name, "%s@plt", slot->name)
		    : asprintf(&name, "*ABS*+0x%llx@plt", (unsigned long long)slot->addend);
	if (n < 0)
		return -ENOMEM;
	return fn(ctx, name, stub->vaddr, stub->len);
}

static int read_stubs(Elf_Scn *scn, const GElf_Shdr *sh, uint32_t machine,
		      const struct slots *slots, image_stub_fn *fn, void *ctx)
{
	stub_fn is_stub = machine == EM_X86_64	  ? x86_stub
			  : machine == EM_AARCH64 ? aarch64_stub
			  : machine == EM_RISCV	  ? riscv_stub
						  : NULL;
	Elf_Data *data = is_stub ? elf_rawdata(scn, NULL) : NULL;
	/* x86's stubs fill places of one size; the others are known by their instructions. */
	size_t step = machine != EM_X86_64 ? 4 : sh->sh_entsize == 8 ? 8 : 16;
	int r = 0;

	if (!data || !data->d_buf)
		return 0;
	for (size_t at = 0; at < data->d_size && r >= 0;) {
		const uint8_t *p = (const uint8_t *)data->d_buf + at;
		size_t left = data->d_size - at;
		struct stub stub = { 0 };

		if (machine == EM_X86_64 && left > step)
			left = step;
		if (is_stub(p, left, sh->sh_addr + at, &stub))
			r = name_stub(&stub, slots, fn, ctx);
		at += machine == EM_X86_64 || !stub.len ? step : stub.len;
	}
	return r;
}

int image_stubs_read(const struct image_elf *f, image_stub_fn *fn, void *ctx)
{
	struct slots slots = { 0 };
	GElf_Shdr sh;
	int r = read_slots(&slots, f);

	for (Elf_Scn *scn = NULL; r >= 0 && (scn = elf_nextscn(f->elf, scn));)
		if (gelf_getshdr(scn, &sh) && (sh.sh_flags & SHF_EXECINSTR) &&
		    sh.sh_type == SHT_PROGBITS &&
		    strncmp(image_elf_section_name(f, &sh), ".plt", 4) == 0)
			r = read_stubs(scn, &sh, f->header.e_machine, &slots, fn, ctx);
	free(slots.v);
	return r;
}
