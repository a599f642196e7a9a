/* SPDX-License-Identifier: BSD-2-Clause */
/* A job written as a pseudo-image: which sections it has, where its code stands, and what stands in
 * the others. */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pseudoimg_internal.h"

/* Names among the strings by their hashes; where there are too many a later one takes the place of
 * another. Released by free(slots). */
struct pseudoimg_named {
	uint8_t sum[16];
	uint32_t at; /* 0: free */
};
struct pseudoimg_strings {
	struct pseudoimg_named *slots;
	size_t nr; /* a power of two */
};

/* ---- names of symbols ------------------------------------------------------------------------ */

enum { MOST = 1 << 16, NEAR = 8 };

static int pseudoimg_strings_init(struct pseudoimg_strings *n, size_t nr_symbols)
{
	for (n->nr = 64; n->nr < 2 * nr_symbols && n->nr < MOST;)
		n->nr *= 2;
	n->slots = calloc(n->nr, sizeof(*n->slots));
	return n->slots ? 0 : -ENOMEM;
}

/* The slot that has it, or is to have it. */
static struct pseudoimg_named *find_name(const struct pseudoimg_strings *n, const uint8_t sum[32])
{
	size_t first = (size_t)sum[16] | (size_t)sum[17] << 8;
	struct pseudoimg_named *slot;

	for (size_t i = 0; i < NEAR; i++) {
		slot = &n->slots[(first + i) & (n->nr - 1)];
		if (!slot->at || !memcmp(slot->sum, sum, sizeof(slot->sum)))
			return slot;
	}
	return slot;
}

/* @out: where the name stands behind @start, mostly once. 0, -ENOMEM, -DCPI_ELIMIT, -errno. */
static int pseudoimg_strings_put(struct pseudoimg_strings *n, const struct pseudoimg_str *name,
				 struct pseudoimg_sink *s, uint64_t start, uint32_t *out)
{
	size_t len = s->b.len;
	uint64_t at = s->off + len - start;
	struct base_sha256 sha;
	struct pseudoimg_named *slot;
	uint8_t sum[32];
	int r = pseudoimg_symbol_name_put(&s->b, name);

	if (r < 0 || at > UINT32_MAX)
		return r < 0 ? r : -DCPI_ELIMIT;
	base_sha256_init(&sha);
	base_sha256_add(&sha, s->b.data + len, s->b.len - len);
	base_sha256_end(&sha, sum);
	slot = find_name(n, sum);
	if (slot->at && !memcmp(slot->sum, sum, sizeof(slot->sum))) {
		s->b.len = len;
	} else {
		memcpy(slot->sum, sum, sizeof(slot->sum));
		slot->at = (uint32_t)at;
	}
	*out = slot->at;
	return pseudoimg_sink_drain(s);
}

/* ---- the layout ------------------------------------------------------------------------------ */

enum {
	GAP_LEAST = 4 << 10, /* up to here code is one section, and the gap zero (a hole on disk) */
	GAP_MOST = 1 << 20,
	NR_TEXT_GOOD = 1024,  /* above: larger gaps are closed too */
	NR_TEXT_MOST = 16000, /* fits e_shnum, e_phnum and st_shndx with room for the others */
};
#define TEXT_BYTES_MOST (UINT64_C(4) << 30)

static int add_span(struct pseudoimg_layout *l, const struct pseudoimg_span *s)
{
	struct pseudoimg_text *last = l->text.nr ? &l->text.v[l->text.nr - 1] : NULL;

	if (last && s->start <= last->addr + last->len + GAP_LEAST &&
	    last->addr + last->len <= UINT64_MAX - GAP_LEAST) {
		if (pseudoimg_span_end(s) > last->addr + last->len)
			last->len = pseudoimg_span_end(s) - last->addr;
		return 0;
	}
	last = PSEUDOIMG_PUSH(&l->text);
	if (!last)
		return -ENOMEM;
	*last = (struct pseudoimg_text){ .addr = s->start, .len = s->len };
	return 0;
}

static int collect(struct pseudoimg_layout *l, const struct pseudoimg_model *m)
{
	size_t range = 0, routine = 0;
	int r = 0;

	while (r >= 0 && (range < m->ranges.nr || routine < m->nodes.nr)) {
		struct pseudoimg_span s;

		if (routine == m->nodes.nr ||
		    (range < m->ranges.nr &&
		     m->ranges.v[range].at.start < m->nodes.v[routine].start))
			s = m->ranges.v[range++].at;
		else
			s = pseudoimg_node_span(&m->nodes.v[routine++]);
		if (s.len)
			r = add_span(l, &s);
	}
	return r;
}

static void coarsen(struct pseudoimg_layout *l, uint64_t gap)
{
	struct pseudoimg_text *v = l->text.v;
	size_t kept = 0;

	for (size_t i = 0; i < l->text.nr; i++) {
		if (kept && v[i].addr - (v[kept - 1].addr + v[kept - 1].len) <= gap)
			v[kept - 1].len = v[i].addr + v[i].len - v[kept - 1].addr;
		else
			v[kept++] = v[i];
	}
	l->text.nr = kept;
}

static uint64_t sum(const struct pseudoimg_layout *l)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < l->text.nr; i++)
		if (base_add_overflow(bytes, l->text.v[i].len, &bytes))
			return UINT64_MAX;
	return bytes;
}

/* 0, -ENOMEM, or -DCPI_ELIMIT where the code is scattered too widely for one file. */
static int layout_make(struct pseudoimg_layout *l, const struct pseudoimg_model *m,
		       struct base_err *err)
{
	int r = collect(l, m);

	if (r < 0)
		return base_fail_errno(err, r, "cannot lay out pseudo-image");
	for (uint64_t gap = GAP_LEAST * 4; gap <= GAP_MOST && l->text.nr > NR_TEXT_GOOD; gap *= 4)
		coarsen(l, gap);
	l->text_bytes = sum(l);
	if (l->text.nr > NR_TEXT_MOST)
		return base_fail(err, -DCPI_ELIMIT,
				 "cannot lay out pseudo-image: code in %zu places more than 1 MiB "
				 "apart, %d at most",
				 l->text.nr, NR_TEXT_MOST);
	if (l->text_bytes > TEXT_BYTES_MOST)
		return base_fail(err, -DCPI_ELIMIT,
				 "cannot lay out pseudo-image: code spans more than 4 GiB");
	return 0;
}

/* ---- the image ------------------------------------------------------------------------------- */

/* Everything that is known while the file is written. */
struct writer {
	struct pseudoimg_model m;
	struct pseudoimg_layout layout;
	struct pseudoimg_dwarf dwarf; /* of these two */
	struct base_buf id_note, note, dst;
	char (*text_names)[32]; /* names of .text sections */
	struct pseudoimg_elf elf;
	int strings; /* section of symbols' names */
};

static void writer_release(struct writer *w)
{
	pseudoimg_elf_release(&w->elf);
	free(w->layout.text.v);
	pseudoimg_model_release(&w->m);
	base_buf_release(&w->id_note);
	base_buf_release(&w->note);
	base_buf_release(&w->dst);
	free(w->text_names);
	free(w);
}

/* ---- symbols --------------------------------------------------------------------------------- */

/* Local ones: nothing links against them, and names may repeat. */
static int put_symbol(struct pseudoimg_sink *s, const struct pseudoimg_node *n, size_t text,
		      uint32_t name)
{
	const Elf64_Sym sym = {
		.st_name = name,
		.st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
		.st_shndx = (uint16_t)(1 + text), /* text sections come from 1 on */
		.st_value = n->start,
		.st_size = n->len,
	};
	int r = base_buf_append(&s->b, &sym, sizeof(sym));

	return r < 0 ? r : pseudoimg_sink_drain(s);
}

static int put_both(struct writer *w, struct pseudoimg_sink *symbols,
		    struct pseudoimg_sink *strings, uint64_t start)
{
	const Elf64_Sym none = { 0 };
	struct pseudoimg_loaded l;
	struct pseudoimg_strings names = { 0 };
	size_t text = 0;
	uint32_t name;
	int r = base_buf_append(&symbols->b, &none, sizeof(none));

	if (r >= 0)
		r = base_buf_append(&strings->b, "", 1);
	if (r >= 0)
		r = pseudoimg_strings_init(&names, w->m.nodes.nr);
	for (size_t i = 0; r >= 0 && i < w->m.nodes.nr; i++) {
		const struct pseudoimg_node *n = &w->m.nodes.v[i];

		while (n->start - w->layout.text.v[text].addr >= w->layout.text.v[text].len)
			text++;
		r = pseudoimg_model_load(&w->m, n, &l);
		if (r >= 0)
			r = pseudoimg_strings_put(&names, &l.name, strings, start, &name);
		if (r >= 0)
			r = put_symbol(symbols, n, text, name);
	}
	free(names.slots);
	return r;
}

/* Their names are the next section, whose place is known, and are written on the same way. */
static int put_symbols(void *ctx, struct pseudoimg_sink *s)
{
	struct writer *w = ctx;
	uint64_t start = pseudoimg_sink_at(s) + (w->m.nodes.nr + 1) * sizeof(Elf64_Sym);
	struct pseudoimg_sink strings = { .fd = s->fd, .off = start };
	int r = put_both(w, s, &strings, start);

	if (r >= 0)
		r = pseudoimg_sink_flush(&strings);
	w->elf.sections.v[w->strings].len = strings.off - start;
	base_buf_release(&strings.b);
	return r;
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

static int put_range(struct base_buf *b, enum wire_range_kind kind, uint64_t base, uint64_t len,
		     uint32_t facility, size_t dst_len)
{
	const struct wire_range_rec rec = {
		.head = { .len = sizeof(rec), .type = WIRE_RANGE },
		.dst_len = (uint32_t)dst_len,
		.range = { .facility = facility,
			   .kind = kind,
			   .base = base,
			   .len = len,
			   .flags = WIRE_RANGE_OWNED },
	};

	return base_buf_append(b, &rec, sizeof(rec));
}

static bool same_range(const struct pseudoimg_range *a, const struct pseudoimg_range *b)
{
	return a->range_base == b->range_base && a->range_len == b->range_len &&
	       a->facility == b->facility;
}

/* Write the ranges that the application owned, each once, so that the image can be read back. */
static int put_ranges(struct base_buf *b, const struct pseudoimg_model *m)
{
	const struct pseudoimg_range *v = m->ranges.v;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < m->ranges.nr; i++)
		if (!i || !same_range(&v[i], &v[i - 1]))
			r = put_range(b, WIRE_RANGE_CODE, v[i].range_base, v[i].range_len,
				      v[i].facility, 0);
	for (size_t i = 0; r >= 0 && i < m->dst.nr; i++)
		r = put_range(b, WIRE_RANGE_DST, m->dst.v[i].range_base, m->dst.v[i].range_len,
			      m->dst.v[i].facility, m->dst.v[i].len);
	return r;
}

/*
 * Write each earlier build-id once: a merge brings that of the image that it extended, and those of
 * equal processes. The image's own id needs no map.
 */
static int put_notes(struct base_buf *b, const struct base_buf *notes, const uint8_t id[20])
{
	struct base_map seen = { 0 };
	const struct wire_head *rec;
	size_t pos = 0;
	int r = base_map_set(&seen, id, 20, &seen);

	while (r >= 0 && (rec = wire_next(notes->data, notes->len, &pos))) {
		const struct wire_replaces *old = (const void *)rec;

		if (rec->type == WIRE_REPLACES) {
			if (base_map_get(&seen, old->id, sizeof(old->id)))
				continue;
			r = base_map_set(&seen, old->id, sizeof(old->id), &seen);
		}
		if (r >= 0)
			r = base_buf_append(b, rec, rec->len);
	}
	base_map_release(&seen);
	return r;
}

static int make_note(struct writer *w, const uint8_t build_id[20])
{
	struct base_buf desc = { 0 };
	Elf64_Nhdr head = { .n_namesz = sizeof(PSEUDOIMG_NOTE_OWNER),
			    .n_type = PSEUDOIMG_NOTE_TYPE };
	static const char owner[8] = PSEUDOIMG_NOTE_OWNER;
	int r = base_buf_append(&desc, w->m.image, w->m.image->head.len);

	if (r >= 0)
		r = put_runs(&desc, &w->m);
	if (r >= 0)
		r = put_ranges(&desc, &w->m);
	if (r >= 0)
		r = put_notes(&desc, &w->m.notes, build_id);
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

static int add_note(struct writer *w)
{
	return pseudoimg_elf_add(&w->elf,
				 &(struct pseudoimg_section){ .name = PSEUDOIMG_NOTE_SECTION,
							      .type = SHT_PROGBITS,
							      .align = 4,
							      .data = w->note.data,
							      .len = w->note.len,
							      .compress = true });
}

static int add_symbols(struct writer *w)
{
	size_t nr = w->m.nodes.nr + 1;
	const struct pseudoimg_section symbols = {
		.name = ".symtab",
		.type = SHT_SYMTAB,
		.align = 8,
		.entsize = sizeof(Elf64_Sym),
		.info = (uint32_t)nr, /* behind the last local one */
		.link = (uint32_t)w->elf.sections.nr + 1,
		.put = put_symbols,
		.ctx = w,
	};
	const struct pseudoimg_section strings = {
		.name = ".strtab", .type = SHT_STRTAB, .align = 1, .there = true
	};
	int r = pseudoimg_elf_add(&w->elf, &symbols);

	if (r >= 0)
		r = w->strings = pseudoimg_elf_add(&w->elf, &strings);
	return r;
}

/* The identity is found on the way through all routines on which their hashes are written. */
static int add_hashes(struct writer *w, int fd, uint8_t build_id[20])
{
	uint64_t off = pseudoimg_elf_next_off(&w->elf, 8);
	int r = pseudoimg_ident(&w->m, fd, off, build_id);

	if (r < 0 || !w->m.nodes.nr)
		return r;
	return pseudoimg_elf_add(&w->elf,
				 &(struct pseudoimg_section){
					 .name = PSEUDOIMG_HASH_SECTION,
					 .type = SHT_PROGBITS,
					 .align = 8,
					 .there = true,
					 .len = w->m.nodes.nr * sizeof(struct pseudoimg_hashes) });
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int make(struct writer *w, int fd, uint8_t build_id[20])
{
	int r = add_text(w);

	if (r >= 0)
		r = add_hashes(w, fd, build_id);
	if (r >= 0)
		r = pseudoimg_build_id_note(&w->id_note, build_id, 20);
	if (r >= 0)
		r = make_note(w, build_id);
	if (r >= 0)
		r = make_dst(w);
	if (r >= 0)
		r = add_bytes(w, ".note.gnu.build-id", SHT_NOTE, 4, &w->id_note);
	if (r >= 0)
		r = add_note(w);
	if (r >= 0)
		r = add_bytes(w, PSEUDOIMG_DST_SECTION, SHT_PROGBITS, 1, &w->dst);
	if (r >= 0)
		r = pseudoimg_dwarf_add(&w->dwarf, &w->elf);
	return r < 0 ? r : add_symbols(w);
}

int pseudoimg_write_job(struct pseudoimg_job *job, int fd, struct pseudoimg_result *result,
			struct base_err *err)
{
	struct writer *w = calloc(1, sizeof(*w));
	struct pseudoimg_filler filler;
	int r;

	memset(result, 0, sizeof(*result));
	if (!w)
		return base_fail_errno(err, -ENOMEM, "cannot write pseudo-image");
	r = pseudoimg_model_read(&w->m, job, err);
	if (r < 0)
		goto out;
	r = layout_make(&w->layout, &w->m, err);
	if (r < 0)
		goto out;
	w->elf.machine = (uint16_t)w->m.image->machine;
	w->dwarf = (struct pseudoimg_dwarf){ &w->m, &w->layout };
	r = make(w, fd, result->build_id);
	if (r < 0) {
		base_fail_errno(err, r, "cannot write image");
		goto out;
	}
	filler = pseudoimg_fill_from(&w->m, 0);
	r = pseudoimg_elf_write(&w->elf, fd, &filler, err);
	result->nr_routines = (uint32_t)w->m.nodes.nr;
	result->nr_bad = w->m.nr_bad;
	result->nr_overlaps = w->m.nr_overlaps;
	result->text_bytes = w->layout.text_bytes;
out:
	writer_release(w);
	return r < 0 ? r : 0;
}

int pseudoimg_write(const void *job, size_t job_len, int fd, struct pseudoimg_result *result,
		    struct base_err *err)
{
	struct pseudoimg_job j;

	pseudoimg_job_of_memory(&j, job, job_len);
	return pseudoimg_write_job(&j, fd, result, err);
}

int pseudoimg_write_file(int job_fd, int fd, struct pseudoimg_result *result, struct base_err *err)
{
	struct pseudoimg_job j;
	int r = pseudoimg_job_of_file(&j, job_fd);

	if (r < 0)
		return base_fail_errno(err, r, "cannot read pseudo-image job");
	r = pseudoimg_write_job(&j, fd, result, err);
	pseudoimg_job_release(&j);
	return r;
}
