/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the instructions, or source lines, with the most samples in all procedures and images. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "code.h"
#include "listing.h"
#include "progress.h"
#include "top.h"

enum { INSN_MAX = 16, CODE_MAX = 16 << 20 };

struct sort {
	size_t event, nr_events;
};

/* ---- the addresses -------------------------------------------------------------------------- */

static int compare(const void *pa, const void *pb, void *ctx)
{
	const struct top_row *a = pa, *b = pb;
	const struct sort *s = ctx;
	int r;

	if (a->count[s->event] != b->count[s->event])
		return a->count[s->event] > b->count[s->event] ? -1 : 1;
	for (size_t i = 0; i < s->nr_events; i++)
		if (a->count[i] != b->count[i])
			return a->count[i] > b->count[i] ? -1 : 1;
	r = strcmp(a->image->name, b->image->name);
	return r ? r : (a->off > b->off) - (a->off < b->off);
}

static void row_release(struct top_row *row)
{
	free(row->procedure);
	free(row->text);
	free(row->file);
	free(row->program);
	free(row->count);
}

/* Keeps up to twice the wanted number, and drops the lesser half when that is full: a browser
 * has millions of addresses. */
static void drop(struct top *t, size_t max, struct sort *s)
{
	qsort_r(t->v, t->nr, sizeof(*t->v), compare, s);
	for (; t->nr > max; t->nr--) {
		row_release(&t->v[t->nr - 1]);
		t->nr_others++;
	}
}

static int add_entry(struct top *t, struct analysis_image *ai, const struct profdb_entry *e,
		     size_t event)
{
	uint64_t *count = calloc(t->nr_events + 1, sizeof(*count));

	if (!count)
		return -ENOMEM;
	analysis_entry_add(ai, e, count, t->total);
	if (!count[event]) {
		for (size_t i = 0; i < t->nr_events; i++)
			if (count[i]) {
				t->nr_others++;
				break;
			}
		free(count);
		return 0;
	}
	t->v[t->nr++] = (struct top_row){ .image = ai, .off = e->off, .count = count };
	return 0;
}

static int collect(struct top *t, struct analysis_image *const *images, size_t nr_images,
		   size_t max, struct sort *s)
{
	int r = 0;

	for (size_t i = 0; i < nr_images; i++) {
		const struct profdb_profile *p = images[i]->profile;

		for (size_t k = 0; k < profdb_profile_nr_entries(p) && r >= 0; k++) {
			r = add_entry(t, images[i], profdb_profile_entry(p, k), s->event);
			if (t->nr == 2 * max)
				drop(t, max, s);
		}
	}
	drop(t, max, s);
	return r;
}

/* ---- their instructions ---------------------------------------------------------------------- */

static const char *label(struct analysis_image *ai)
{
	const struct analysis_row row = { .image = ai };

	return analysis_row_label(&row);
}

/* Decodes from the procedure's start, the only known start of an instruction. */
static void find_instruction(struct image *img, struct insn_disasm *d, const uint8_t *code,
			     size_t len, uint64_t start, uint64_t vaddr, char *text,
			     size_t text_len)
{
	struct insn_line insn;
	uint64_t at = start;

	for (; at - start < len && at <= vaddr; at += insn.len) {
		insn_disasm_one(d, code + (at - start), len - (at - start), at, &insn);
		if (at == vaddr) {
			analysis_insn_text(img, &insn, text, text_len);
			return;
		}
	}
	snprintf(text, text_len, "%s",
		 at > vaddr ? "(inside an instruction)" : "(no bytes of this code)");
}

static char *instruction(struct image *img, struct insn_disasm *d, const struct image_symbol *s,
			 uint64_t vaddr)
{
	uint64_t start = s ? s->vaddr : vaddr, len = vaddr - start + INSN_MAX;
	char text[512] = "(this code cannot be disassembled here)";
	uint8_t *code;

	if (s && len > s->len)
		len = s->len;
	if (!d || len > CODE_MAX)
		return strdup(text);
	code = malloc(len);
	if (!code)
		return NULL;
	find_instruction(img, d, code, analysis_code_bytes(img, start, code, len), start, vaddr,
			 text, sizeof(text));
	free(code);
	return strdup(text);
}

static int resolve(struct top_row *row, struct image *img, struct insn_disasm *d)
{
	const struct image_symbol *s;
	struct image_line line;

	row->placed = img && image_vaddr(img, row->off, &row->vaddr) >= 0;
	s = row->placed ? image_symbol_at(img, row->vaddr) : NULL;
	row->procedure = strdup(s ? s->name : label(row->image));
	if (!row->procedure)
		return -ENOMEM;
	if (!row->placed)
		return 0;
	row->into = s ? row->vaddr - s->vaddr : 0;
	row->text = instruction(img, d, s, row->vaddr);
	if (!row->text)
		return -ENOMEM;
	if (image_line_at(img, row->vaddr, &line) >= 0) {
		row->file = strdup(line.file);
		row->line = line.line;
	}
	return 0;
}

static int by_image(const void *pa, const void *pb)
{
	const struct top_row *a = *(struct top_row *const *)pa, *b = *(struct top_row *const *)pb;

	if (a->image != b->image)
		return a->image < b->image ? -1 : 1;
	return (a->off > b->off) - (a->off < b->off);
}

/* Resolves the rows of one image, which is opened once. */
static int resolve_image(struct analysis *a, struct top_row **rows, size_t nr)
{
	struct insn_disasm *d = NULL;
	struct image *img = NULL;
	int r = 0;

	if (analysis_image_open(a, rows[0]->image, &img, NULL) >= 0)
		insn_disasm_open(image_machine(img), &d, NULL);
	for (size_t i = 0; i < nr && r >= 0; i++)
		r = resolve(rows[i], img, d);
	insn_disasm_close(d);
	image_close(img);
	return r;
}

static int resolve_all(struct analysis *a, struct top *t)
{
	struct top_row **rows = calloc(t->nr + 1, sizeof(*rows));
	int r = rows ? 0 : -ENOMEM;

	for (size_t i = 0; r >= 0 && i < t->nr; i++)
		rows[i] = &t->v[i];
	if (rows)
		qsort(rows, t->nr, sizeof(*rows), by_image);
	for (size_t i = 0, next; r >= 0 && i < t->nr; i = next) {
		progress_show("reading instructions", i, t->nr);
		for (next = i + 1; next < t->nr && rows[next]->image == rows[i]->image;)
			next++;
		r = resolve_image(a, rows + i, next - i);
	}
	progress_show("reading instructions", 1, 1);
	free(rows);
	return r;
}

/* ---- source lines ---------------------------------------------------------------------------- */

struct lines {
	struct analysis *a;
	struct top *t;
	size_t event, cap;
	struct base_map rows;	    /* by what a row stands for: its index + 1 */
	struct base_map procedures; /* by index and procedure: that it is counted in that row */
};

/* An entry of a profile, and where it is. */
struct placed {
	struct analysis_image *image;
	const struct profdb_entry *entry;
	const char *procedure; /* or the text in its place */
	struct image_line line;
	const char *program;
	bool trusted;
};

/* A line, or a procedure without lines, of an image or facility. */
static int key_of(const struct placed *p, struct base_buf *key)
{
	const char *facility = p->image->facility;
	int r = facility ? base_buf_append(key, facility, strlen(facility) + 1)
			 : base_buf_append(key, &p->image, sizeof(struct analysis_image *));

	if (r < 0)
		return r;
	return p->line.file ? base_buf_printf(key, "l%u %s", p->line.line, p->line.file)
			    : base_buf_printf(key, "p%s", p->procedure);
}

static int add_line(struct lines *x, const struct placed *p, size_t *at)
{
	struct top *t = x->t;
	struct top_row row = {
		.image = p->image, .off = p->entry->off, .line = p->line.line, .trusted = p->trusted
	};
	int r = base_grow(&t->v, &x->cap, t->nr + 1, sizeof(*t->v));

	row.count = calloc(t->nr_events + 1, sizeof(*row.count));
	row.procedure = strdup(p->procedure);
	row.file = p->line.file ? strdup(p->line.file) : NULL;
	row.program = p->program ? strdup(p->program) : NULL;
	if (r < 0 || !row.count || !row.procedure || (p->line.file && !row.file)) {
		row_release(&row);
		return -ENOMEM;
	}
	t->v[t->nr] = row;
	*at = ++t->nr;
	return 0;
}

static int find_line(struct lines *x, const struct placed *p, size_t *at)
{
	struct base_buf key = { 0 };
	int r = key_of(p, &key);

	if (r >= 0)
		*at = (size_t)(uintptr_t)base_map_get(&x->rows, key.data, key.len);
	if (r >= 0 && !*at)
		r = add_line(x, p, at);
	if (r >= 0)
		r = base_map_set(&x->rows, key.data, key.len, (void *)(uintptr_t)*at);
	base_buf_release(&key);
	return r;
}

/* Notes whose code it is; the procedure with the hottest address stands for all. */
static int note_procedure(struct lines *x, size_t at, const char *name, uint64_t count)
{
	struct top_row *row = &x->t->v[at - 1];
	struct base_buf key = { 0 };
	int r = base_buf_printf(&key, "%zu %s", at, name);

	if (r >= 0 && !base_map_get(&x->procedures, key.data, key.len)) {
		row->nr_procedures++;
		r = base_map_set(&x->procedures, key.data, key.len, x);
	}
	base_buf_release(&key);
	if (r < 0 || count <= row->hottest)
		return r;
	row->hottest = count;
	if (strcmp(row->procedure, name) != 0) {
		free(row->procedure);
		row->procedure = strdup(name);
	}
	return row->procedure ? 0 : -ENOMEM;
}

static void note_image(struct top_row *row, const struct placed *p)
{
	row->trusted &= p->trusted;
	if (row->program && (!p->program || strcmp(row->program, p->program) != 0)) {
		free(row->program);
		row->program = NULL;
	}
}

static int count_line(struct lines *x, const struct placed *p)
{
	uint64_t before, *count;
	size_t at = 0;
	int r = find_line(x, p, &at);

	if (r < 0)
		return r;
	note_image(&x->t->v[at - 1], p);
	count = x->t->v[at - 1].count;
	before = count[x->event];
	analysis_entry_add(p->image, p->entry, count, x->t->total);
	return note_procedure(x, at, p->procedure, count[x->event] - before);
}

static int count_lines(struct lines *x, struct analysis_image *ai)
{
	struct image *img = NULL;
	bool trusted = analysis_image_open(x->a, ai, &img, NULL) >= 0 && image_source_trusted(img);
	const char *program = img ? image_program(img) : NULL;
	int r = 0;

	for (size_t i = 0; i < profdb_profile_nr_entries(ai->profile) && r >= 0; i++) {
		struct placed p = { ai,	       profdb_profile_entry(ai->profile, i),
				    label(ai), { 0 },
				    program,   trusted };
		const struct image_symbol *s = NULL;
		uint64_t vaddr;

		if (!analysis_entry_wanted(ai, p.entry))
			continue;
		if (img && image_vaddr(img, p.entry->off, &vaddr) >= 0) {
			s = image_symbol_at(img, vaddr);
			p.procedure = s ? s->name : p.procedure;
			if (image_line_at(img, vaddr, &p.line) < 0)
				p.line = (struct image_line){ 0 };
		}
		r = count_line(x, &p);
	}
	image_close(img);
	return r;
}

/* Rows without samples of the event are last. */
static void drop_unsampled(struct top *t, size_t event)
{
	for (; t->nr && !t->v[t->nr - 1].count[event]; t->nr--) {
		row_release(&t->v[t->nr - 1]);
		t->nr_others++;
	}
}

/* ---- all --------------------------------------------------------------------------------------
 */

static int begin(const struct analysis *a, size_t room, struct top *out)
{
	out->nr_events = a->nr_events;
	out->total = calloc(a->nr_events + 1, sizeof(*out->total));
	out->others = calloc(a->nr_events + 1, sizeof(*out->others));
	out->v = calloc(room + 1, sizeof(*out->v));
	return out->total && out->others && out->v ? 0 : -ENOMEM;
}

static void sum_others(struct top *t)
{
	for (size_t e = 0; e < t->nr_events; e++) {
		t->others[e] = t->total[e];
		for (size_t i = 0; i < t->nr; i++)
			t->others[e] -= t->v[i].count[e];
	}
}

int top_make(struct analysis *a, struct analysis_image *const *images, size_t nr_images,
	     size_t event, size_t max, struct top *out)
{
	struct sort s = { event, a->nr_events };
	int r = begin(a, 2 * max, out);

	if (r >= 0)
		r = collect(out, images, nr_images, max, &s);
	if (r >= 0)
		r = resolve_all(a, out);
	if (r >= 0)
		sum_others(out);
	return r;
}

int top_make_lines(struct analysis *a, struct analysis_image *const *images, size_t nr_images,
		   size_t event, size_t max, struct top *out)
{
	struct lines x = { .a = a, .t = out, .event = event, .cap = 1 };
	struct sort s = { event, a->nr_events };
	int r = begin(a, 0, out);

	for (size_t i = 0; i < nr_images && r >= 0; i++) {
		progress_show("finding lines", i, nr_images);
		r = count_lines(&x, images[i]);
	}
	progress_show("finding lines", 1, 1);
	base_map_release(&x.rows);
	base_map_release(&x.procedures);
	if (r < 0)
		return r;
	drop(out, max, &s);
	drop_unsampled(out, event);
	sum_others(out);
	return 0;
}

void top_release(struct top *t)
{
	for (size_t i = 0; i < t->nr; i++)
		row_release(&t->v[i]);
	free(t->v);
	free(t->total);
	free(t->others);
	memset(t, 0, sizeof(*t));
}
