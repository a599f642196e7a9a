/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Procedures of an image that tells of none: its entry, what its code leads to, and what stands in
 * tables of pointers. Which instructions lead where, others know (image_guess_by).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "image_internal.h"

static image_guess_fn *guess;

void image_guess_by(image_guess_fn *fn)
{
	guess = fn;
}

/* A stretch of code; the linker's stubs are none, for they have names. */
struct stretch {
	uint64_t vaddr, len;
	const uint8_t *code;
	uint8_t *own; /* the same, where it is to be freed */
};

struct search {
	struct stretch *v;
	size_t nr, cap;
	struct image_pointers *pointers;
	struct image_pointed *pointed; /* their values that are code */
	size_t nr_pointed;
	uint64_t left; /* bytes that may still be read */
	struct image_ranges *out;
};

/* Sections that lie may hold the same bytes again and again: no more are read than the file has. */
static int add_stretch(struct search *s, uint64_t vaddr, uint64_t len, const uint8_t *code,
		       uint8_t *own)
{
	bool good = len && len <= s->left && len <= UINT64_MAX - vaddr;
	int r = good ? base_grow(&s->v, &s->cap, s->nr + 1, sizeof(*s->v)) : 0;

	if (!good || r < 0) {
		free(own);
		return r;
	}
	s->left -= len;
	s->v[s->nr++] = (struct stretch){ vaddr, len, code, own };
	return 0;
}

static int add_sections(struct search *s, const struct image_elf *f)
{
	GElf_Shdr sh;
	int r = 0;

	for (Elf_Scn *scn = NULL; r >= 0 && (scn = elf_nextscn(f->elf, scn));) {
		const char *name;
		Elf_Data *data;

		if (!gelf_getshdr(scn, &sh) || !(sh.sh_flags & SHF_EXECINSTR) ||
		    sh.sh_type != SHT_PROGBITS)
			continue;
		name = image_elf_section_name(f, &sh);
		data = elf_rawdata(scn, NULL);
		if (strncmp(name, ".plt", 4) != 0 && strncmp(name, ".iplt", 5) != 0 && data &&
		    data->d_buf)
			r = add_stretch(s, sh.sh_addr, data->d_size, data->d_buf, NULL);
	}
	return r;
}

static int add_segment(struct search *s, const struct image_elf *f, const GElf_Phdr *ph)
{
	uint64_t len = ph->p_offset < f->len ? f->len - ph->p_offset : 0;
	uint8_t *code;

	if (len > ph->p_filesz)
		len = ph->p_filesz;
	code = malloc(len + 1);
	if (!code)
		return -ENOMEM;
	len = image_elf_read(f, ph->p_offset, code, len);
	return add_stretch(s, ph->p_vaddr, len, code, code);
}

/* Where not even sections are told. */
static int add_segments(struct search *s, const struct image_elf *f)
{
	size_t nr = 0;
	GElf_Phdr ph;
	int r = 0;

	if (s->nr || elf_getphdrnum(f->elf, &nr) < 0)
		return 0;
	for (size_t i = 0; i < nr && r >= 0; i++)
		if (gelf_getphdr(f->elf, (int)i, &ph) && ph.p_type == PT_LOAD &&
		    (ph.p_flags & PF_X))
			r = add_segment(s, f, &ph);
	return r;
}

static const struct stretch *stretch_at(const struct search *s, uint64_t vaddr)
{
	for (size_t i = 0; i < s->nr; i++)
		if (vaddr >= s->v[i].vaddr && vaddr - s->v[i].vaddr < s->v[i].len)
			return &s->v[i];
	return NULL;
}

/* One that begins at @vaddr, and ends with its stretch at the latest. */
static int add_start(void *ctx, uint64_t vaddr)
{
	struct search *s = ctx;
	const struct stretch *t = stretch_at(s, vaddr);
	int r = t ? base_grow(&s->out->v, &s->out->cap, s->out->nr + 1, sizeof(*s->out->v)) : 0;

	if (t && r >= 0)
		s->out->v[s->out->nr++] = (struct image_range){ vaddr, t->vaddr + t->len - vaddr };
	return r;
}

/* ---- tables of pointers ---------------------------------------------------------------------- */

static int by_vaddr(const void *a, const void *b)
{
	const struct image_pointed *x = a, *y = b;

	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

static int gather_pointed(struct search *s, const struct image_elf *f)
{
	size_t nr = 0;
	int r = image_pointers_read(&s->pointers, f);

	if (r < 0)
		return r;
	s->pointed = calloc(s->pointers->nr + 1, sizeof(*s->pointed));
	if (!s->pointed)
		return -ENOMEM;
	for (size_t i = 0; i < s->pointers->nr; i++)
		if (stretch_at(s, s->pointers->v[i].value))
			s->pointed[nr++].vaddr = s->pointers->v[i].value;
	qsort(s->pointed, nr, sizeof(*s->pointed), by_vaddr);
	for (size_t i = 0; i < nr; i++)
		if (!i || s->pointed[i].vaddr != s->pointed[i - 1].vaddr)
			s->pointed[s->nr_pointed++].vaddr = s->pointed[i].vaddr;
	return 0;
}

static const struct image_pointed *pointed_by(const struct search *s, size_t pointer)
{
	const struct image_pointed key = { .vaddr = s->pointers->v[pointer].value };

	return bsearch(&key, s->pointed, s->nr_pointed, sizeof(key), by_vaddr);
}

/* The first pointer behind those from @begin on that stand side by side and name code. */
static size_t table_end(const struct search *s, size_t begin)
{
	const struct image_pointer *v = s->pointers->v;
	size_t end = begin;

	while (end < s->pointers->nr && pointed_by(s, end) &&
	       (end == begin || v[end].vaddr - v[end - 1].vaddr == 8))
		end++;
	return end;
}

/*
 * Labels of one procedure stand in tables, too ("goto *label[i]"): what comes before many of these
 * is the jump of the label before, which few procedures end with.
 */
static bool is_labels(const struct search *s, size_t begin, size_t end)
{
	size_t nr = 0;

	for (size_t i = begin; i < end; i++)
		nr += pointed_by(s, i)->before == IMAGE_BEFORE_INDIRECT;
	return nr * 4 > end - begin;
}

static int add_tables(struct search *s)
{
	int r = 0;

	for (size_t begin = 0, end; begin < s->pointers->nr && r >= 0; begin = end) {
		end = table_end(s, begin);
		if (!is_labels(s, begin, end))
			for (size_t i = begin; i < end && r >= 0; i++)
				if (pointed_by(s, i)->before == IMAGE_BEFORE_END)
					r = add_start(s, s->pointers->v[i].value);
		end += end == begin;
	}
	return r;
}

/* ---- all together ---------------------------------------------------------------------------- */

/* Bytes before the first known start are code too. */
static int add_starts(struct search *s, const struct image_elf *f)
{
	int r = add_start(s, f->header.e_entry);

	for (size_t i = 0; i < s->nr && r >= 0; i++) {
		r = add_start(s, s->v[i].vaddr);
		if (r >= 0)
			r = guess(f->header.e_machine, s->v[i].code, s->v[i].len, s->v[i].vaddr,
				  s->pointed, s->nr_pointed, add_start, s);
	}
	return r < 0 ? r : add_tables(s);
}

static int by_start(const void *a, const void *b)
{
	const struct image_range *x = a, *y = b;

	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

/* Most are called from many places. */
static void keep_one_each(struct image_ranges *starts)
{
	size_t kept = 0;

	if (starts->nr)
		qsort(starts->v, starts->nr, sizeof(*starts->v), by_start);
	for (size_t i = 0; i < starts->nr; i++)
		if (!i || starts->v[i].vaddr != starts->v[kept - 1].vaddr)
			starts->v[kept++] = starts->v[i];
	starts->nr = kept;
}

int image_starts_read(struct image_ranges *out, const struct image_elf *f)
{
	struct search s = { .left = f->len, .out = out };
	int r;

	if (!guess || (f->header.e_type != ET_EXEC && f->header.e_type != ET_DYN) ||
	    f->header.e_ident[EI_DATA] != ELFDATA2LSB)
		return 0;
	r = add_sections(&s, f);
	if (r >= 0)
		r = add_segments(&s, f);
	if (r >= 0)
		r = gather_pointed(&s, f);
	if (r >= 0)
		r = add_starts(&s, f);
	keep_one_each(out);
	for (size_t i = 0; i < s.nr; i++)
		free(s.v[i].own);
	free(s.v);
	free(s.pointed);
	image_pointers_free(s.pointers);
	return r == -DCPI_EUNSUPPORTED ? 0 : r;
}
