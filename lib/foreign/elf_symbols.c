/* SPDX-License-Identifier: BSD-2-Clause */
/* The routines of an ELF object in memory are read from its symbols and found by address here. */
#include <errno.h>
#include <stdlib.h>

#include "foreign_internal.h"
#include "bound.h"

/* Longer beginnings of two names for one address are not compared. */
enum { NAME_COMPARED = 256 };

struct section {
	uint64_t vaddr, len; /* len 0: no code */
	const uint8_t *bytes;
};

struct sections {
	struct section *v;
	size_t nr;
};

/* In a relocatable file a symbol's value counts from its section. */
static uint64_t symbol_vaddr(const struct elf_object *o, const struct section *s, uint64_t value)
{
	return o->header.e_type == ET_REL ? s->vaddr + value : value + o->from->rec->bias;
}

static int read_sections(const struct elf_object *o, struct sections *all)
{
	GElf_Shdr sh;

	all->v = calloc(o->header.e_shnum, sizeof(*all->v));
	if (!all->v)
		return -ENOMEM;
	all->nr = o->header.e_shnum;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(o->elf, scn));) {
		struct section *s = &all->v[elf_ndxscn(scn)];

		if (!gelf_getshdr(scn, &sh) || !(sh.sh_flags & SHF_EXECINSTR))
			continue;
		s->vaddr = sh.sh_addr + o->from->rec->bias;
		s->len = sh.sh_size;
		if (sh.sh_type != SHT_PROGBITS)
			continue;
		s->bytes = o->bytes + sh.sh_offset;
	}
	return 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* From @vaddr on: within its section, and where the object's code was said to be. */
static uint64_t space_at(const struct elf_object *o, const struct section *s, uint64_t vaddr)
{
	const struct wire_object *rec = o->from->rec;

	if (vaddr - s->vaddr >= s->len || vaddr - rec->addr >= rec->code_len)
		return 0;
	return least(s->len - (vaddr - s->vaddr), rec->code_len - (vaddr - rec->addr));
}

/* Longer is no routine but room for code to come: QEMU lists its buffer of 128 MiB as one. */
static bool is_routine(uint64_t len)
{
	return len <= WIRE_CODE_MAX;
}

static int add(struct elf_object *o, const struct section *s, const GElf_Sym *sym, const char *name,
	       uint32_t order)
{
	uint64_t addr = symbol_vaddr(o, s, sym->st_value), space = space_at(o, s, addr);
	uint64_t len = least(sym->st_size, space);
	int r;

	if (!space || !is_routine(len))
		return 0;
	if (o->nr_routines == FOREIGN_ROUTINES_MAX)
		return -DCPI_ELIMIT;
	r = base_grow(&o->routines, &o->cap_routines, o->nr_routines + 1, sizeof(*o->routines));
	if (r < 0)
		return r;
	o->routines[o->nr_routines++] = (struct elf_routine){
		.addr = addr,
		.len = len,
		.space = space,
		.name = name,
		.bytes = s->bytes ? s->bytes + (addr - s->vaddr) : NULL,
		.order = order,
		.local = GELF_ST_BIND(sym->st_info) == STB_LOCAL,
	};
	return 0;
}

static int add_table(struct elf_object *o, const struct sections *all, Elf_Scn *scn,
		     const GElf_Shdr *sh)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	size_t nr = data ? data->d_size / sizeof(Elf64_Sym) : 0;
	int r = 0;

	if (sh->sh_entsize != sizeof(Elf64_Sym))
		return 0;
	for (size_t i = 1; i < nr && i < INT32_MAX && r == 0; i++) {
		const char *name;
		GElf_Sym sym;

		if (!gelf_getsym(data, (int)i, &sym) || GELF_ST_TYPE(sym.st_info) != STT_FUNC ||
		    sym.st_shndx == SHN_UNDEF || sym.st_shndx >= all->nr ||
		    !all->v[sym.st_shndx].len)
			continue;
		name = elf_strptr(o->elf, sh->sh_link, sym.st_name);
		if (name && *name)
			r = add(o, &all->v[sym.st_shndx], &sym, name, (uint32_t)i);
	}
	return r;
}

/* There is one at most in a good file; without end in another, all of the same bytes. */
static int add_first(struct elf_object *o, const struct sections *all, uint32_t type)
{
	GElf_Shdr sh;

	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(o->elf, scn));)
		if (gelf_getshdr(scn, &sh) && sh.sh_type == type)
			return add_table(o, all, scn, &sh);
	return 0;
}

/* The best name of an address comes first, the same in every run. */
static int by_addr(const void *pa, const void *pb)
{
	const struct elf_routine *a = pa, *b = pb;
	int r;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	if (!a->len != !b->len)
		return a->len ? -1 : 1;
	if (a->local != b->local)
		return a->local ? 1 : -1;
	r = strncmp(a->name, b->name, NAME_COMPARED);
	return r ? r : (a->order > b->order) - (a->order < b->order);
}

/*
 * One routine an address, none within another; one without a length reaches to the next, and one
 * that reaches into the next ends there.
 */
static void choose(struct elf_object *o)
{
	struct elf_routine *v = o->routines;
	size_t nr = 0;

	for (size_t i = 0; i < o->nr_routines; i++) {
		struct elf_routine *last = nr ? &v[nr - 1] : NULL;
		uint64_t gap = last ? v[i].addr - last->addr : 0;

		if (last && (!gap || (gap < last->len && v[i].len <= last->len - gap)))
			continue;
		if (last && (!last->len || last->len > gap))
			last->len = least(gap, last->space);
		v[nr++] = v[i];
	}
	if (nr && !v[nr - 1].len)
		v[nr - 1].len = v[nr - 1].space;
	o->nr_routines = 0;
	for (size_t i = 0; i < nr; i++)
		if (is_routine(v[i].len))
			v[o->nr_routines++] = v[i];
}

int elf_symbols_read(struct elf_object *o)
{
	struct sections all = { 0 };
	int r = read_sections(o, &all);

	if (r == 0)
		r = add_first(o, &all, SHT_SYMTAB);
	if (r == 0 && !o->nr_routines)
		r = add_first(o, &all, SHT_DYNSYM);
	if (o->nr_routines)
		qsort(o->routines, o->nr_routines, sizeof(*o->routines), by_addr);
	choose(o);
	free(all.v);
	return r;
}

ssize_t elf_symbols_find(const struct elf_object *o, uint64_t vaddr)
{
	size_t lo = BASE_UPPER_BOUND(o->routines, o->nr_routines, addr, vaddr);

	if (!lo || vaddr - o->routines[lo - 1].addr >= o->routines[lo - 1].len)
		return -1;
	return (ssize_t)lo - 1;
}
