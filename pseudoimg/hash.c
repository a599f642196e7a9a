/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hash of a routine, independent of its place: name, lines, inlined parts, bytes. Names as they
 * are written, lines from the first one on that has a source, so that an image that is read back
 * has the hashes that it was written with. Operands that tell where code stands are masked.
 */
#include <elf.h>
#include <string.h>

#include "bound.h"
#include "insn_x86.h"
#include "pseudoimg_internal.h"

/* ---- x86-64 ---------------------------------------------------------------------------------- */

/* Zero @len bytes in @at, the distance from @next on that they hold, if it leaves the code. */
static bool mask_distance(uint8_t *at, size_t len, int64_t next, size_t code_len)
{
	int32_t by = 0;
	int64_t to;

	memcpy(&by, at, len);
	if (len == 1)
		by = (int8_t)by;
	to = next + by;
	if (to >= 0 && to < (int64_t)code_len)
		return false;
	memset(at, 0, len);
	return by != 0;
}

/* Zero a number of 64 bits: an address, or a constant that may be one. */
static bool mask_number(uint8_t *at, size_t len)
{
	bool any = false;

	for (size_t i = 0; i < len; i++) {
		any |= at[i] != 0;
		at[i] = 0;
	}
	return any;
}

/* Behind bytes that are no instruction all stays as it is: they are data, or the rest is. */
static bool mask_x86(uint8_t *code, size_t len)
{
	struct insn_x86_numbers n;
	bool any = false;

	for (size_t pos = 0; pos < len && insn_x86_find_numbers(true, code + pos, len - pos, &n);) {
		uint8_t *disp = code + pos + n.disp_at, *imm = code + pos + n.imm_at;

		pos += n.len;
		if (n.pc_relative)
			any |= mask_distance(disp, n.disp_len, (int64_t)pos, len);
		if (n.branch)
			any |= mask_distance(imm, n.imm_len, (int64_t)pos, len);
		if (n.disp_len == 8)
			any |= mask_number(disp, n.disp_len);
		if (n.imm_len == 8)
			any |= mask_number(imm, n.imm_len);
	}
	return any;
}

/* ---- aarch64 --------------------------------------------------------------------------------- */

static uint32_t word_at(const uint8_t *code, size_t i)
{
	uint32_t w;

	memcpy(&w, code + 4 * i, sizeof(w));
	return w;
}

static bool clear(uint8_t *code, size_t i, uint32_t bits)
{
	uint32_t w = word_at(code, i), to = w & ~bits;

	memcpy(code + 4 * i, &to, sizeof(to));
	return w != to;
}

/* Bits [@low, @low + @nr) as a signed number. */
static int64_t field(uint32_t w, unsigned int low, unsigned int nr)
{
	return (int64_t)((uint64_t)w << (64 - low - nr)) >> (64 - nr);
}

/* The bits of @w, instruction @i, that hold a distance out of the code. */
static uint32_t distance_bits(uint32_t w, size_t i, size_t len)
{
	uint32_t bits;
	int64_t by;

	if ((w & 0x7c000000) == 0x14000000) { /* b, bl */
		bits = 0x03ffffff;
		by = field(w, 0, 26) * 4;
	} else if ((w & 0xff000000) == 0x54000000 || /* b.cond */
		   (w & 0x7e000000) == 0x34000000 || /* cbz, cbnz */
		   (w & 0x3b000000) == 0x18000000) { /* ldr of a literal */
		bits = 0x00ffffe0;
		by = field(w, 5, 19) * 4;
	} else if ((w & 0x7e000000) == 0x36000000) { /* tbz, tbnz */
		bits = 0x0007ffe0;
		by = field(w, 5, 14) * 4;
	} else if ((w & 0x9f000000) == 0x10000000) { /* adr */
		bits = 0x60ffffe0;
		by = field(w, 5, 19) * 4 + (w >> 29 & 3);
	} else {
		return 0;
	}
	by += (int64_t)i * 4;
	return by < 0 || by >= (int64_t)len ? bits : 0;
}

/* Behind adrp: where in the page, as the immediate of an addition, or of a load or store. */
static uint32_t low_bits(uint32_t w, uint32_t page)
{
	if ((w >> 5 & 31) != page)
		return 0;
	if ((w & 0xffc00000) == 0x91000000 || (w & 0x3b000000) == 0x39000000)
		return 0x003ffc00;
	return 0;
}

/* A number of more than 32 bits, in pieces of 16: how many instructions make it. */
static size_t nr_pieces(const uint8_t *code, size_t i, size_t nr)
{
	uint32_t first = word_at(code, i);
	size_t n = 1;

	if ((first & 0xff800000) != 0xd2800000 && (first & 0xff800000) != 0x92800000)
		return 0;
	while (i + n < nr && (word_at(code, i + n) & 0xff80001f) == (0xf2800000 | (first & 31)))
		n++;
	return n >= 3 ? n : 0;
}

static bool mask_aarch64(uint8_t *code, size_t len)
{
	size_t nr = len / 4, pieces = 0;
	bool any = false;

	for (size_t i = 0; i < nr; i++) {
		uint32_t w = word_at(code, i);

		if (!pieces)
			pieces = nr_pieces(code, i, nr);
		if (pieces) {
			any |= clear(code, i, 0x001fffe0);
			pieces--;
		} else if ((w & 0x9f000000) == 0x90000000) { /* adrp */
			any |= clear(code, i, 0x60ffffe0);
			if (i + 1 < nr)
				any |= clear(code, i + 1, low_bits(word_at(code, i + 1), w & 31));
		} else {
			any |= clear(code, i, distance_bits(w, i, len));
		}
	}
	return any;
}

bool pseudoimg_mask(uint32_t machine, uint8_t *code, size_t len)
{
	switch (machine) {
	case EM_X86_64:
		return mask_x86(code, len);
	case EM_AARCH64:
		return mask_aarch64(code, len);
	default:
		return false;
	}
}

/* ---- the hash -------------------------------------------------------------------------------- */

enum { DST_ROWS_MOST = 1 << 16 };

struct hashing {
	struct pseudoimg_model *m;
	struct base_buf b; /* bytes to hash before the code */
	uint32_t nr_names; /* that the routine has used so far */
};

static int put_text(struct hashing *h, const char *text, size_t len)
{
	int r = base_buf_append_leb128(&h->b, len);

	return r < 0 ? r : base_buf_append(&h->b, text, len);
}

/* A name stands where it is used first, later a number for it; 0: none. */
static int put_name(struct hashing *h, uint32_t index)
{
	struct pseudoimg_name *name;
	const char *text;
	int r;

	if (index == PSEUDOIMG_NO_FILE)
		return base_buf_append_leb128(&h->b, 0);
	name = &h->m->names.v.v[index];
	if (name->stamp == h->m->stamp)
		return base_buf_append_leb128(&h->b, name->local);
	name->stamp = h->m->stamp;
	name->local = ++h->nr_names;
	text = pseudoimg_names_text(&h->m->names, index);
	r = base_buf_append_leb128(&h->b, name->local);
	return r < 0 ? r : put_text(h, text, strlen(text));
}

static int put_row(struct hashing *h, uint64_t off, const struct pseudoimg_row *row)
{
	int r = base_buf_append_leb128(&h->b, off + 1);

	if (r >= 0)
		r = base_buf_append_leb128(&h->b, row->line | (uint64_t)row->column << 32 |
							  (uint64_t)row->discriminator << 48);
	return r < 0 || !row->line ? r : put_name(h, row->file);
}

/* Rows in force within the routine, as offsets from its start. */
static int put_seq(struct hashing *h, const struct pseudoimg_node *node,
		   const struct pseudoimg_seq *seq, uint32_t *nr, bool *begun)
{
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < seq->nr_rows && *nr < DST_ROWS_MOST; i++) {
		const struct pseudoimg_row *row = &seq->rows[i];
		uint64_t from = seq->at.start + row->off;
		uint64_t to = i + 1 < seq->nr_rows ? seq->at.start + row[1].off
						   : pseudoimg_span_end(&seq->at);

		if (from >= node->start + node->len)
			break;
		/* A row within the routine counts, even where the next one replaces it at once. */
		if ((from < node->start && to <= node->start) || (!*begun && !row->line))
			continue;
		*begun = true;
		r = put_row(h, from > node->start ? from - node->start : 0, row);
		*nr += node->ref >= PSEUDOIMG_DST_REF;
	}
	return r;
}

/* The first sequence of DST that may reach into the routine. They may overlap: a search for the
 * start is not enough, but only what begins far before is missed, and in every run the same. */
static size_t first_seq(const struct pseudoimg_model *m, const struct pseudoimg_node *node)
{
	size_t lo = BASE_UPPER_BOUND(m->seqs.v, m->seqs.nr, at.start, node->start);

	return lo ? lo - 1 : 0;
}

static int put_lines(struct hashing *h, const struct pseudoimg_node *node,
		     const struct pseudoimg_loaded *l)
{
	bool begun = false;
	uint32_t nr = 0;
	int r = 0;

	if (l->view.rec) {
		r = put_seq(h, node, &l->seq, &nr, &begun);
	} else {
		for (size_t i = first_seq(h->m, node); r >= 0 && i < h->m->seqs.nr; i++) {
			struct pseudoimg_seq seq = pseudoimg_model_seq(h->m, i);

			if (seq.at.start >= node->start + node->len || nr >= DST_ROWS_MOST)
				break;
			r = put_seq(h, node, &seq, &nr, &begun);
		}
	}
	return r < 0 ? r : base_buf_append_leb128(&h->b, 0);
}

/* An empty one reads as the stand-in that is written for it. */
static int put_inlined_name(struct hashing *h, uint32_t index)
{
	int64_t name = index;

	if (index == PSEUDOIMG_NO_FILE)
		name = pseudoimg_names_put(&h->m->names, PSEUDOIMG_UNNAMED,
					   sizeof(PSEUDOIMG_UNNAMED) - 1);
	return name < 0 ? (int)name : put_name(h, (uint32_t)name);
}

static int put_inlines(struct hashing *h, const struct pseudoimg_loaded *l)
{
	uint32_t nr = l->view.rec ? l->view.rec->nr_inlines : 0;
	int r = base_buf_append_leb128(&h->b, nr);

	for (uint32_t i = 0; r >= 0 && i < nr; i++) {
		const struct wire_inline *in = &l->view.inlines[i];
		uint32_t file = in->call_line ? l->names[in->call_file] : PSEUDOIMG_NO_FILE;
		const uint64_t numbers[] = { in->code_off, in->code_len, in->depth,
					     file == PSEUDOIMG_NO_FILE ? 0 : in->call_line };

		for (size_t k = 0; r >= 0 && k < sizeof(numbers) / sizeof(numbers[0]); k++)
			r = base_buf_append_leb128(&h->b, numbers[k]);
		if (r >= 0)
			r = put_inlined_name(h, l->names[in->name]);
		if (r >= 0)
			r = put_name(h, file);
	}
	return r;
}

/* A copy: operands are taken out of it. */
static int get_bytes(struct pseudoimg_model *m, const struct pseudoimg_node *node,
		     const struct pseudoimg_loaded *l, uint8_t **out)
{
	struct pseudoimg_filler filler;
	void *space;
	int r;

	base_buf_clear(&m->loaded_code);
	r = base_buf_extend(&m->loaded_code, node->len, &space);
	if (r < 0)
		return r;
	*out = space;
	if (l->view.code) {
		memcpy(space, l->view.code, node->len);
		return 0;
	}
	filler = pseudoimg_fill_from(m, node->start);
	r = pseudoimg_fill(&filler, node->start, space, node->len);
	if (r == 0)
		memset(space, 0, node->len);
	return r;
}

static void end(struct base_sha256 *s, const uint8_t *code, size_t len, uint8_t out[20])
{
	uint8_t sum[32];

	base_sha256_add(s, code, len);
	base_sha256_end(s, sum);
	memcpy(out, sum, 20);
}

int pseudoimg_hash(struct pseudoimg_model *m, const struct pseudoimg_node *node,
		   const struct pseudoimg_loaded *loaded, struct pseudoimg_hashes *out)
{
	struct hashing h = { .m = m, .b = m->hashed };
	struct base_sha256 s, masked;
	uint8_t *code;
	int r;

	base_buf_clear(&h.b);
	m->stamp++;
	base_buf_clear(&m->loaded_text);
	r = pseudoimg_symbol_name_put(&m->loaded_text, &loaded->name);
	if (r >= 0)
		r = put_text(&h, (const char *)m->loaded_text.data, m->loaded_text.len - 1);
	if (r >= 0)
		r = put_lines(&h, node, loaded);
	if (r >= 0)
		r = put_inlines(&h, loaded);
	if (r >= 0)
		r = base_buf_append_leb128(&h.b, node->len);
	/* Last: it may load other routines over this one. */
	if (r >= 0)
		r = get_bytes(m, node, loaded, &code);
	m->hashed = h.b;
	if (r < 0)
		return r;
	base_sha256_init(&s);
	base_sha256_add(&s, h.b.data, h.b.len);
	masked = s;
	end(&s, code, node->len, out->exact);
	if (pseudoimg_mask(m->image->machine, code, node->len))
		end(&masked, code, node->len, out->masked);
	else
		memcpy(out->masked, out->exact, sizeof(out->masked));
	return 0;
}
