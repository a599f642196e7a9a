/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Procedures of an image that tells of none: its entry, and what its code leads to. Which
 * instructions do so others know (image_guess_by).
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

/* One that begins at @vaddr, and ends with its stretch at the latest. */
static int add_start(void *ctx, uint64_t vaddr)
{
	struct search *s = ctx;
	int r;

	for (size_t i = 0; i < s->nr; i++) {
		const struct stretch *t = &s->v[i];

		if (vaddr < t->vaddr || vaddr - t->vaddr >= t->len)
			continue;
		r = base_grow(&s->out->v, &s->out->cap, s->out->nr + 1, sizeof(*s->out->v));
		if (r >= 0)
			s->out->v[s->out->nr++] =
				(struct image_range){ vaddr, t->vaddr + t->len - vaddr };
		return r;
	}
	return 0;
}

/* What stands before the first one that is known is code too. */
static int add_starts(struct search *s, const struct image_elf *f)
{
	int r = add_start(s, f->header.e_entry);

	for (size_t i = 0; i < s->nr && r >= 0; i++) {
		r = add_start(s, s->v[i].vaddr);
		if (r >= 0)
			r = guess(f->header.e_machine, s->v[i].code, s->v[i].len, s->v[i].vaddr,
				  add_start, s);
	}
	return r;
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
		r = add_starts(&s, f);
	for (size_t i = 0; i < s.nr; i++)
		free(s.v[i].own);
	free(s.v);
	return r == -DCPI_EUNSUPPORTED ? 0 : r;
}
