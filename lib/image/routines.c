/* SPDX-License-Identifier: BSD-2-Clause */
/* The routines that a file's symbols tell of, without their names. */
#include <errno.h>
#include <stdlib.h>

#include "routines.h"

enum { MAX_ROUTINES = 1 << 22 };

static int add(struct image_routines *r, const GElf_Sym *sym)
{
	int e;

	if (GELF_ST_TYPE(sym->st_info) != STT_FUNC || sym->st_shndx == SHN_UNDEF || !sym->st_size ||
	    sym->st_size > UINT64_MAX - sym->st_value)
		return 0;
	if (r->nr == MAX_ROUTINES)
		return -DCPI_ELIMIT;
	e = base_grow(&r->v, &r->cap, r->nr + 1, sizeof(*r->v));
	if (e >= 0)
		r->v[r->nr++] = (struct image_routine){ sym->st_value, sym->st_size };
	return e;
}

static int add_table(struct image_routines *r, Elf_Scn *scn, const GElf_Shdr *sh)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	size_t nr = data && sh->sh_entsize ? data->d_size / sh->sh_entsize : 0;
	GElf_Sym sym;
	int e = 0;

	for (size_t i = 1; i < nr && i < INT32_MAX && e >= 0; i++)
		if (gelf_getsym(data, (int)i, &sym))
			e = add(r, &sym);
	return e;
}

static int by_vaddr(const void *a, const void *b)
{
	const struct image_routine *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return (x->len > y->len) - (x->len < y->len);
}

/* One name of several stays for a routine. */
static void sort(struct image_routines *r)
{
	size_t kept = 0;
	uint64_t end = 0;

	if (r->nr)
		qsort(r->v, r->nr, sizeof(*r->v), by_vaddr);
	for (size_t i = 0; i < r->nr; i++) {
		if (r->v[i].vaddr < end)
			continue;
		end = r->v[i].vaddr + r->v[i].len;
		r->v[kept++] = r->v[i];
	}
	r->nr = kept;
}

int image_routines_read(struct image_routines *r, const struct image_elf *f)
{
	GElf_Shdr sh;
	int e = 0;

	*r = (struct image_routines){ 0 };
	for (Elf_Scn *scn = NULL; e >= 0 && (scn = elf_nextscn(f->elf, scn));)
		if (gelf_getshdr(scn, &sh) &&
		    (sh.sh_type == SHT_SYMTAB || sh.sh_type == SHT_DYNSYM))
			e = add_table(r, scn, &sh);
	sort(r);
	return e;
}

size_t image_routines_find(const struct image_routines *r, uint64_t vaddr)
{
	size_t from = 0, to = r->nr;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (r->v[mid].vaddr < vaddr)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

void image_routines_release(struct image_routines *r)
{
	free(r->v);
	*r = (struct image_routines){ 0 };
}
