/* SPDX-License-Identifier: BSD-2-Clause */
/* The hashes of a pseudo-image's routines: one entry for each symbol, which ascend by address. */
#include <errno.h>
#include <string.h>

#include "bound.h"
#include "image_internal.h"

static uint64_t symbol_vaddr(Elf_Data *symbols, size_t index)
{
	GElf_Sym sym;

	return gelf_getsym(symbols, (int)index, &sym) ? sym.st_value : UINT64_MAX;
}

/* Several symbols may be at one address (nested procedures): the one with that length, or nr. */
static size_t find(Elf_Data *symbols, size_t nr, const struct image_symbol *wanted)
{
	/* The symbol 0 names nothing. */
	size_t lo = BASE_BOUND(i, nr, !i || symbol_vaddr(symbols, i) < wanted->vaddr);
	GElf_Sym sym;

	for (; lo < nr && gelf_getsym(symbols, (int)lo, &sym); lo++) {
		if (sym.st_value != wanted->vaddr)
			break;
		if (sym.st_size == wanted->len)
			return lo;
	}
	return nr;
}

int image_symbol_hashes(struct image *img, const struct image_symbol *sym, struct image_hashes *out)
{
	GElf_Shdr hashes_head, symbols_head;
	Elf_Scn *hashes = image_elf_section(&img->main, IMAGE_HASH_SECTION, &hashes_head);
	Elf_Scn *symbols = image_elf_section(&img->main, ".symtab", &symbols_head);
	size_t nr, at;

	if (img->kind != IMAGE_DYNAMIC || !hashes || !symbols || !symbols_head.sh_entsize)
		return -ENOENT;
	Elf_Data *data = elf_getdata(symbols, NULL), *table = elf_getdata(hashes, NULL);

	nr = data && table ? data->d_size / symbols_head.sh_entsize : 0;
	if (!nr || nr > INT32_MAX || table->d_size != (nr - 1) * sizeof(*out))
		return -ENOENT;
	at = find(data, nr, sym);
	if (at == nr)
		return -ENOENT;
	memcpy(out, (const uint8_t *)table->d_buf + (at - 1) * sizeof(*out), sizeof(*out));
	return 0;
}
