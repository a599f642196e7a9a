/* SPDX-License-Identifier: BSD-2-Clause */
/* Which symbol is meant: by address, by name, one after the other. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bound.h"
#include "image_internal.h"

/* Reading and sorting fewer takes no longer than the index would. */
enum { INDEX_MIN = 2000 };

static bool load_index(struct image *img, const struct image_elf *debug)
{
	struct image_symbols *s = &img->lookup.symbols;

	/* One of ours that was damaged is not tried again. */
	if (img->lookup.given_up.index)
		return false;
	s->index = image_index_open(img->lookup.index_fds, &img->main, debug, img->kind);
	if (!s->index)
		return false;
	s->nr = image_index_nr_symbols(s->index);
	s->nr_names = image_index_nr_names(s->index);
	s->guessed = image_index_guessed(s->index);
	s->v = calloc(s->nr + 1, sizeof(*s->v));
	if (s->v)
		return true;
	image_symbols_release(s);
	return false;
}

int image_symbols_load(struct image *img, struct base_err *err)
{
	GElf_Shdr sh;
	const struct image_elf *debug;
	bool own, versioned = img->kind == IMAGE_FILE || img->kind == IMAGE_VDSO;
	int r;

	if (img->lookup.state)
		return img->lookup.state < 0 ? img->lookup.state : 0;
	own = image_elf_section(&img->main, ".symtab", &sh) != NULL;
	debug = own ? NULL : image_debug(img);
	if (load_index(img, debug)) {
		img->lookup.state = 1;
		return 0;
	}
	if (!own && !debug && !img->mini.elf)
		image_mini_open(&img->mini, &img->main);
	r = image_symbols_read(&img->lookup.symbols, &img->main, debug,
			       img->mini.elf ? &img->mini : NULL, versioned, err);
	img->lookup.state = r < 0 ? r : 1;
	if (r >= 0 && (img->lookup.symbols.nr >= INDEX_MIN || img->lookup.symbols.guessed))
		image_index_write(img->lookup.index_fds, &img->lookup.symbols, &img->main, debug,
				  img->kind);
	return r;
}

/* True: the question is to be asked again, of the image itself. */
static bool gave_up_index(struct image *img)
{
	if (!img->lookup.symbols.index || !image_index_damaged(img->lookup.symbols.index))
		return false;
	img->lookup.given_up = img->lookup.symbols;
	memset(&img->lookup.symbols, 0, sizeof(img->lookup.symbols));
	img->lookup.state = 0;
	image_symbols_load(img, NULL);
	return true;
}

/* NULL: the index is damaged. */
static const struct image_symbol_entry *entry_at(struct image_symbols *s, size_t i)
{
	if (s->index && !s->v[i].sym.name && !image_index_symbol(s->index, i, &s->v[i]))
		return NULL;
	return &s->v[i];
}

static uint64_t vaddr_at(struct image_symbols *s, size_t i)
{
	uint64_t vaddr = 0;

	if (!s->index || s->v[i].sym.name)
		return s->v[i].sym.vaddr;
	image_index_vaddr(s->index, i, &vaddr);
	return vaddr;
}

static const struct image_symbol *symbol_at(struct image_symbols *s, uint64_t vaddr)
{
	size_t lo = BASE_BOUND(i, s->nr, vaddr_at(s, i) <= vaddr);

	while (lo) {
		const struct image_symbol_entry *e = entry_at(s, lo - 1);

		if (!e)
			return NULL;
		if (vaddr - e->sym.vaddr < e->sym.len)
			return &e->sym;
		lo = e->outer;
	}
	return NULL;
}

const struct image_symbol *image_symbol_at(struct image *img, uint64_t vaddr)
{
	const struct image_symbol *found;

	image_symbols_load(img, NULL);
	do
		found = symbol_at(&img->lookup.symbols, vaddr);
	while (gave_up_index(img));
	return found;
}

bool image_guessed(struct image *img)
{
	image_symbols_load(img, NULL);
	return img->lookup.symbols.guessed;
}

bool image_stripped(struct image *img)
{
	GElf_Shdr sh;

	return !image_elf_section(&img->main, ".symtab", &sh) &&
	       !image_elf_section(&img->main, ".gnu_debugdata", &sh) && !image_debug(img);
}

size_t image_nr_symbols(struct image *img)
{
	image_symbols_load(img, NULL);
	return img->lookup.symbols.nr;
}

const struct image_symbol *image_symbol(struct image *img, size_t index)
{
	const struct image_symbol_entry *e;

	image_symbols_load(img, NULL);
	do
		e = index < img->lookup.symbols.nr ? entry_at(&img->lookup.symbols, index) : NULL;
	while (gave_up_index(img));
	return e ? &e->sym : NULL;
}

static bool name_at(struct image_symbols *s, size_t i, struct image_name *out)
{
	if (s->index)
		return image_index_name(s->index, i, out);
	*out = s->names[i];
	return true;
}

static const struct image_symbol *find_name(struct image_symbols *s, const char *name, size_t pos)
{
	const struct image_symbol_entry *e;
	struct image_name at;
	size_t lo = BASE_BOUND(i, s->nr_names, name_at(s, i, &at) && strcmp(at.name, name) < 0);

	if (pos >= s->nr_names - lo || !name_at(s, lo + pos, &at) || strcmp(at.name, name) != 0)
		return NULL;
	e = entry_at(s, at.symbol);
	return e ? &e->sym : NULL;
}

const struct image_symbol *image_symbol_find(struct image *img, const char *name, size_t *pos)
{
	const struct image_symbol *found;

	image_symbols_load(img, NULL);
	do
		found = find_name(&img->lookup.symbols, name, *pos);
	while (gave_up_index(img));
	if (found)
		++*pos;
	return found;
}
