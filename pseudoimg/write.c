/* SPDX-License-Identifier: BSD-2-Clause */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pseudoimg_internal.h"

/* Everything that is written, kept together until it is. */
struct writer {
	struct pseudoimg_model m;
	struct pseudoimg_layout layout;
	struct pseudoimg_dwarf dwarf;
	struct base_buf strings, symbols, id_note, note, dst;
	uint32_t *names;	/* of routines, in strings */
	char (*text_names)[32]; /* of .text sections */
	struct pseudoimg_elf elf;
};

static void writer_release(struct writer *w)
{
	pseudoimg_elf_release(&w->elf);
	pseudoimg_dwarf_release(&w->dwarf);
	pseudoimg_layout_release(&w->layout);
	pseudoimg_model_release(&w->m);
	base_buf_release(&w->strings);
	base_buf_release(&w->symbols);
	base_buf_release(&w->id_note);
	base_buf_release(&w->note);
	base_buf_release(&w->dst);
	free(w->names);
	free(w->text_names);
	free(w);
}

/* ---- symbols --------------------------------------------------------------------------------- */

static int make_names(struct writer *w)
{
	static const char unnamed[] = "(unnamed)";
	int r = base_buf_append(&w->strings, "", 1);

	w->names = calloc(w->m.routines.nr + 1, sizeof(*w->names));
	if (!w->names)
		return -ENOMEM;
	for (size_t i = 0; r >= 0 && i < w->m.routines.nr; i++) {
		const struct pseudoimg_str *name = &w->m.routines.v[i].name;

		if (w->strings.len > UINT32_MAX)
			return -DCPI_ELIMIT;
		w->names[i] = (uint32_t)w->strings.len;
		r = name->len ? pseudoimg_name_put(&w->strings, name->p, name->len)
			      : base_buf_append(&w->strings, unnamed, sizeof(unnamed));
	}
	return r;
}

/* Local ones: nothing links against them, and names may repeat. Text sections come from 1 on. */
static int make_symbols(struct writer *w)
{
	size_t text = 0;
	void *room;
	int r = base_buf_extend(&w->symbols, (w->m.routines.nr + 1) * sizeof(Elf64_Sym), &room);
	Elf64_Sym *sym = room;

	if (r < 0)
		return r;
	for (size_t i = 0; i < w->m.routines.nr; i++) {
		const struct pseudoimg_span *at = &w->m.routines.v[i].at;

		while (at->start - w->layout.text.v[text].addr >= w->layout.text.v[text].len)
			text++;
		sym[i + 1] = (Elf64_Sym){
			.st_name = w->names[i],
			.st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
			.st_shndx = (uint16_t)(1 + text),
			.st_value = at->start,
			.st_size = at->len,
		};
	}
	return 0;
}

/* ---- notes and DST --------------------------------------------------------------------------- */

static int put_runs(struct base_buf *b, const struct pseudoimg_model *m)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < m->runs.nr; i++) {
		const struct wire_run run = { .head = { .len = sizeof(run), .type = WIRE_RUN },
					      .vaddr = m->runs.v[i].start,
					      .img_off = m->runs.v[i].img_off,
					      .len = m->runs.v[i].len };

		r = base_buf_append(b, &run, sizeof(run));
	}
	return r;
}

static int make_note(struct writer *w)
{
	struct base_buf desc = { 0 };
	Elf64_Nhdr head = { .n_namesz = sizeof(PSEUDOIMG_NOTE_OWNER),
			    .n_type = PSEUDOIMG_NOTE_TYPE };
	static const char owner[8] = PSEUDOIMG_NOTE_OWNER;
	int r = base_buf_append(&desc, w->m.image, w->m.image->head.len);

	if (r >= 0)
		r = put_runs(&desc, &w->m);
	for (size_t i = 0; r >= 0 && i < w->m.replaces.nr; i++)
		r = base_buf_append(&desc, w->m.replaces.v[i], w->m.replaces.v[i]->head.len);
	if (r >= 0 && desc.len > UINT32_MAX)
		r = -DCPI_ELIMIT;
	head.n_descsz = (uint32_t)desc.len;
	if (r >= 0)
		r = base_buf_append(&w->note, &head, sizeof(head));
	if (r >= 0)
		r = base_buf_append(&w->note, owner, sizeof(owner));
	if (r >= 0)
		r = base_buf_append(&w->note, desc.data, desc.len);
	base_buf_release(&desc);
	return r;
}

/* As the application wrote it: the copies have lost their bases. */
static int make_dst(struct writer *w)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < w->m.dst.nr; i++) {
		const struct pseudoimg_dst_range *d = &w->m.dst.v[i];
		size_t sent = d->sent.len < d->len ? d->sent.len : d->len;
		void *rest;

		r = base_buf_append(&w->dst, d->sent.data, sent);
		if (r >= 0)
			r = base_buf_extend(&w->dst, d->len - sent, &rest);
	}
	return r;
}

/* ---- sections -------------------------------------------------------------------------------- */

static int add_text(struct writer *w)
{
	size_t nr = w->layout.text.nr;
	int r = 0;

	w->text_names = calloc(nr + 1, sizeof(*w->text_names));
	if (!w->text_names)
		return -ENOMEM;
	for (size_t i = 0; r >= 0 && i < nr; i++) {
		char *name = w->text_names[i];

		if (i)
			snprintf(name, sizeof(*w->text_names), ".text.%zu", i);
		else
			memcpy(name, ".text", 6);
		r = pseudoimg_elf_add(
			&w->elf, &(struct pseudoimg_section){ .name = name,
							      .type = SHT_PROGBITS,
							      .flags = SHF_ALLOC | SHF_EXECINSTR,
							      .addr = w->layout.text.v[i].addr,
							      .len = w->layout.text.v[i].len,
							      .align = 1 });
	}
	return r;
}

static int add_bytes(struct writer *w, const char *name, uint32_t type, uint64_t align,
		     const struct base_buf *b)
{
	if (!b->len)
		return 0;
	return pseudoimg_elf_add(&w->elf, &(struct pseudoimg_section){ .name = name,
								       .type = type,
								       .align = align,
								       .data = b->data,
								       .len = b->len });
}

static int add_symbols(struct writer *w)
{
	struct pseudoimg_section s = { .name = ".symtab", .type = SHT_SYMTAB, .align = 8 };
	int r;

	s.data = w->symbols.data;
	s.len = w->symbols.len;
	s.entsize = sizeof(Elf64_Sym);
	s.info = (uint32_t)(s.len / s.entsize); /* behind the last local one */
	s.link = (uint32_t)w->elf.sections.nr + 1;
	r = pseudoimg_elf_add(&w->elf, &s);
	return r < 0 ? r : add_bytes(w, ".strtab", SHT_STRTAB, 1, &w->strings);
}

static int add_sections(struct writer *w)
{
	const struct pseudoimg_dwarf *d = &w->dwarf;
	const struct {
		const char *name;
		uint32_t type, align;
		const struct base_buf *bytes;
	} plain[] = {
		{ ".note.gnu.build-id", SHT_NOTE, 4, &w->id_note },
		{ PSEUDOIMG_NOTE_SECTION, SHT_PROGBITS, 4, &w->note },
		{ PSEUDOIMG_DST_SECTION, SHT_PROGBITS, 1, &w->dst },
		{ ".debug_abbrev", SHT_PROGBITS, 1, &d->abbrev },
		{ ".debug_info", SHT_PROGBITS, 1, &d->info },
		{ ".debug_aranges", SHT_PROGBITS, 1, &d->aranges },
		{ ".debug_ranges", SHT_PROGBITS, 1, &d->ranges },
		{ ".debug_line", SHT_PROGBITS, 1, &d->line },
	};
	int r = add_text(w);

	for (size_t i = 0; r >= 0 && i < sizeof(plain) / sizeof(plain[0]); i++)
		r = add_bytes(w, plain[i].name, plain[i].type, plain[i].align, plain[i].bytes);
	return r < 0 ? r : add_symbols(w);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int make(struct writer *w, const uint8_t build_id[20])
{
	int r = pseudoimg_build_id_note(&w->id_note, build_id, 20);

	if (r >= 0)
		r = make_names(w);
	if (r >= 0)
		r = make_symbols(w);
	if (r >= 0)
		r = make_note(w);
	if (r >= 0)
		r = make_dst(w);
	if (r >= 0 && w->layout.text.nr)
		r = pseudoimg_dwarf_make(&w->dwarf, &w->m, &w->layout, &w->strings, w->names);
	return r < 0 ? r : add_sections(w);
}

int pseudoimg_write(const void *job, size_t job_len, int fd, struct pseudoimg_result *result,
		    struct base_err *err)
{
	struct writer *w = calloc(1, sizeof(*w));
	struct pseudoimg_filler filler = { 0 };
	int r;

	memset(result, 0, sizeof(*result));
	if (!w)
		return base_fail_errno(err, -ENOMEM, "cannot write pseudo-image");
	r = pseudoimg_model_read(&w->m, job, job_len, err);
	if (r < 0)
		goto out;
	pseudoimg_ident(&w->m, result->build_id);
	pseudoimg_model_sort(&w->m);
	r = pseudoimg_layout_make(&w->layout, &w->m, err);
	if (r < 0)
		goto out;
	w->elf.machine = (uint16_t)w->m.image->machine;
	r = make(w, result->build_id);
	if (r < 0) {
		base_fail_errno(err, r, "cannot write pseudo-image");
		goto out;
	}
	filler.m = &w->m;
	r = pseudoimg_elf_write(&w->elf, fd, &filler, err);
	result->nr_routines = (uint32_t)w->m.routines.nr;
	result->nr_bad = w->m.nr_bad;
	result->text_bytes = w->layout.text_bytes;
out:
	writer_release(w);
	return r < 0 ? r : 0;
}
