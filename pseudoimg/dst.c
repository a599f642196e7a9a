/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The debug symbol table in the layout of OpenVMS Alpha, and the one record of our own
 * (include/dbgdyn_vms.h). A record is u16 length (of the whole, minus 1), u16 type, body.
 *
 * LINE_NUM and SOURCE records apply to the whole module and count from its lowest routine, so they
 * are kept until the module ends.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pseudoimg_internal.h"

enum dst_type {
	DST_SOURCE = 155,
	DST_PROLOG = 162,
	DST_BLKBEG = 176,
	DST_BLKEND = 177,
	DST_LINE_NUM = 185,
	DST_MODBEG = 188,
	DST_MODEND = 189,
	DST_RTNBEG = 190,
	DST_RTNEND = 191,
	DST_BASE = 0x4401,
};

enum {
	HEAD_LEN = 4,
	/* RTNBEG flags: such a routine has no code of its own. */
	RTN_UNALLOCATED = 1 << 4,
	RTN_PROTOTYPE = 1 << 5,
	RTN_INLINED = 1 << 6,
};

struct scope {
	unsigned int type; /* DST_RTNBEG or DST_BLKBEG */
	uint64_t addr;
	struct pseudoimg_str name;
	bool symbol;
};

struct command_record {
	struct pseudoimg_cursor commands;
	uint64_t base;
};

struct decoder {
	const uint8_t *data;
	size_t len;
	uint64_t first_base, base;
	struct pseudoimg_dst *out;

	bool in_module;
	struct pseudoimg_str module;
	uint64_t lowest;      /* start of the module's lowest routine */
	size_t first_routine; /* index of the first routine of the module */
	struct scope stack[PSEUDOIMG_DST_DEPTH_MAX];
	size_t depth;
	PSEUDOIMG_ARRAY(struct command_record) sources;
	PSEUDOIMG_ARRAY(struct command_record) lines;
	struct pseudoimg_source source;
};

bool pseudoimg_cursor_skip(struct pseudoimg_cursor *c, size_t len)
{
	if (c->left < len)
		return false;
	c->p += len;
	c->left -= len;
	return true;
}

bool pseudoimg_cursor_uint(struct pseudoimg_cursor *c, size_t len, uint64_t *out)
{
	const uint8_t *p = c->p;

	if (!pseudoimg_cursor_skip(c, len))
		return false;
	*out = 0;
	for (size_t i = 0; i < len; i++)
		*out |= (uint64_t)p[i] << 8 * i;
	return true;
}

bool pseudoimg_cursor_counted(struct pseudoimg_cursor *c, struct pseudoimg_str *out)
{
	uint64_t len;

	if (!pseudoimg_cursor_uint(c, 1, &len))
		return false;
	out->p = (const char *)c->p;
	out->len = len;
	return pseudoimg_cursor_skip(c, len);
}

/* ---- a module's end -------------------------------------------------------------------------- */

/* End of the innermost of the module's routines that holds @addr: routines are listed inner first.
 */
static bool routine_end(const struct decoder *d, uint64_t addr, uint64_t *end)
{
	for (size_t i = d->first_routine; i < d->out->routines.nr; i++) {
		const struct pseudoimg_dst_routine *r = &d->out->routines.v[i];

		if (addr >= r->addr && addr - r->addr < r->len) {
			*end = r->addr + r->len;
			return true;
		}
	}
	return false;
}

/* Lines left open reach to the end of the routine they are in; in none, nobody knows how far. */
static int close_rows(struct decoder *d, size_t first_row)
{
	struct pseudoimg_dst *out = d->out;
	struct pseudoimg_dst_row *row;
	uint64_t end;

	if (out->rows.nr == first_row || out->rows.v[out->rows.nr - 1].end)
		return 0;
	if (!routine_end(d, out->rows.v[out->rows.nr - 1].addr, &end)) {
		while (out->rows.nr > first_row && !out->rows.v[out->rows.nr - 1].end)
			out->rows.nr--;
		return 0;
	}
	row = PSEUDOIMG_PUSH(&out->rows);
	if (!row)
		return -ENOMEM;
	*row = (struct pseudoimg_dst_row){ .addr = end, .file = PSEUDOIMG_NO_FILE, .end = true };
	return 0;
}

/* How far the line before what is malformed reaches nobody knows: it ends where it begins. */
static void cut_rows(struct decoder *d, size_t first_row)
{
	struct pseudoimg_dst_row *last;

	d->out->nr_bad++;
	if (d->out->rows.nr == first_row)
		return;
	last = &d->out->rows.v[d->out->rows.nr - 1];
	*last = (struct pseudoimg_dst_row){ .addr = last->addr,
					    .file = PSEUDOIMG_NO_FILE,
					    .end = true };
}

static int run_sources(struct decoder *d)
{
	int r = pseudoimg_source_begin(&d->source);

	for (size_t i = 0; r >= 0 && i < d->sources.nr; i++)
		r = pseudoimg_source_run(&d->source, d->sources.v[i].commands, d->out);
	return r;
}

static int run_lines(struct decoder *d)
{
	struct pseudoimg_lines state;
	struct pseudoimg_str *file = PSEUDOIMG_PUSH(&d->out->files);
	int r = 0;

	if (!file)
		return -ENOMEM;
	*file = d->module;
	pseudoimg_lines_begin(&state, d->lowest == UINT64_MAX ? d->base : d->lowest,
			      (uint32_t)(d->out->files.nr - 1));
	for (size_t i = 0; r >= 0 && i < d->lines.nr; i++)
		r = pseudoimg_lines_run(&state, d->lines.v[i].commands, d->lines.v[i].base,
					&d->source, d->out);
	return r;
}

/* A command stream that goes wrong ends there: what came before it stands, and so does the DST. */
static int module_end(struct decoder *d)
{
	size_t first_row = d->out->rows.nr;
	int r;

	d->in_module = false;
	d->depth = 0;
	if (!d->lines.nr && !d->sources.nr)
		return 0;
	r = run_sources(d);
	if (r == -DCPI_EFORMAT)
		d->out->nr_bad++;
	else if (r < 0)
		return r;
	r = run_lines(d);
	if (r == -DCPI_EFORMAT)
		cut_rows(d, first_row);
	else if (r < 0)
		return r;
	d->sources.nr = d->lines.nr = 0;
	return close_rows(d, first_row);
}

/* ---- records --------------------------------------------------------------------------------- */

static int get_addr(struct decoder *d, struct pseudoimg_cursor *c, uint64_t *addr)
{
	uint64_t off;

	if (!pseudoimg_cursor_uint(c, 4, &off) || base_add_overflow(d->base, off, addr))
		return -DCPI_EFORMAT;
	return d->base ? 0 : pseudoimg_dst_absolute(d->out, c, 4);
}

static int on_modbeg(struct decoder *d, struct pseudoimg_cursor c)
{
	struct pseudoimg_str compiler;

	if (d->in_module || !pseudoimg_cursor_skip(&c, 10) ||
	    !pseudoimg_cursor_counted(&c, &d->module) || !pseudoimg_cursor_counted(&c, &compiler))
		return -DCPI_EFORMAT;
	d->in_module = true;
	d->lowest = UINT64_MAX;
	d->first_routine = d->out->routines.nr;
	return 0;
}

static int on_scope(struct decoder *d, unsigned int type, struct pseudoimg_cursor c)
{
	struct scope s = { .type = type };
	uint64_t flags, descriptor;
	int r;

	if (!d->in_module || d->depth == PSEUDOIMG_DST_DEPTH_MAX ||
	    !pseudoimg_cursor_uint(&c, 1, &flags))
		return -DCPI_EFORMAT;
	r = get_addr(d, &c, &s.addr);
	if (r >= 0 && type == DST_RTNBEG)
		r = get_addr(d, &c, &descriptor);
	if (r < 0)
		return r;
	if (!pseudoimg_cursor_counted(&c, &s.name))
		return -DCPI_EFORMAT;
	s.symbol = type == DST_RTNBEG && !(flags & (RTN_UNALLOCATED | RTN_PROTOTYPE | RTN_INLINED));
	if (s.symbol && s.addr < d->lowest)
		d->lowest = s.addr;
	d->stack[d->depth++] = s;
	return 0;
}

static int on_scope_end(struct decoder *d, unsigned int begin, struct pseudoimg_cursor c)
{
	struct pseudoimg_dst_routine *routine;
	const struct scope *s;
	uint64_t len, end;

	if (!d->in_module || !d->depth || d->stack[d->depth - 1].type != begin ||
	    !pseudoimg_cursor_skip(&c, 1) || !pseudoimg_cursor_uint(&c, 4, &len))
		return -DCPI_EFORMAT;
	s = &d->stack[--d->depth];
	if (base_add_overflow(s->addr, len, &end))
		return -DCPI_EFORMAT;
	if (!s->symbol || !len)
		return 0;
	routine = PSEUDOIMG_PUSH(&d->out->routines);
	if (!routine)
		return -ENOMEM;
	*routine = (struct pseudoimg_dst_routine){ .addr = s->addr,
						   .len = (uint32_t)len,
						   .name = s->name };
	return 0;
}

static int on_commands(struct decoder *d, unsigned int type, struct pseudoimg_cursor c)
{
	struct command_record *rec;

	if (!d->in_module)
		return -DCPI_EFORMAT;
	rec = type == DST_SOURCE ? PSEUDOIMG_PUSH(&d->sources) : PSEUDOIMG_PUSH(&d->lines);
	if (!rec)
		return -ENOMEM;
	*rec = (struct command_record){ .commands = c, .base = d->base };
	return 0;
}

/* A module's addresses have one base: the record stands between modules only. */
static int on_base(struct decoder *d, struct pseudoimg_cursor c)
{
	uint64_t base;

	if (d->in_module || !pseudoimg_cursor_uint(&c, 8, &base))
		return -DCPI_EFORMAT;
	d->base = base ? base : d->first_base;
	return base ? pseudoimg_dst_absolute(d->out, &c, 8) : 0;
}

/* Told to debuggers; nothing here depends on it. */
static int on_prolog(struct decoder *d, struct pseudoimg_cursor c)
{
	uint64_t addr;

	return d->in_module ? get_addr(d, &c, &addr) : -DCPI_EFORMAT;
}

static int on_record(struct decoder *d, unsigned int type, struct pseudoimg_cursor c)
{
	switch (type) {
	case DST_MODBEG:
		return on_modbeg(d, c);
	case DST_MODEND:
		return d->in_module && !d->depth ? module_end(d) : -DCPI_EFORMAT;
	case DST_RTNBEG:
	case DST_BLKBEG:
		return on_scope(d, type, c);
	case DST_RTNEND:
		return on_scope_end(d, DST_RTNBEG, c);
	case DST_BLKEND:
		return on_scope_end(d, DST_BLKBEG, c);
	case DST_LINE_NUM:
	case DST_SOURCE:
		return on_commands(d, type, c);
	case DST_PROLOG:
		return on_prolog(d, c);
	case DST_BASE:
		return on_base(d, c);
	default:
		return 0;
	}
}

static bool all_zero(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (p[i])
			return false;
	return true;
}

/* The next record's type and body; false at the end, counted unless only zeros follow. */
static bool next_record(struct decoder *d, unsigned int *type, struct pseudoimg_cursor *body)
{
	const uint8_t *p = d->data + d->out->used;
	size_t left = d->len - d->out->used, len;

	len = left < HEAD_LEN ? 0 : (p[0] | (size_t)p[1] << 8) + 1;
	if (len < HEAD_LEN || len > left) {
		d->out->nr_bad += !all_zero(p, left);
		return false;
	}
	*type = p[2] | (unsigned int)p[3] << 8;
	*body = (struct pseudoimg_cursor){ p + HEAD_LEN, len - HEAD_LEN };
	return true;
}

static int decode(struct decoder *d)
{
	struct pseudoimg_cursor body;
	unsigned int type;
	int r = 0;

	while (next_record(d, &type, &body)) {
		r = on_record(d, type, body);
		if (r < 0)
			break;
		d->out->used += HEAD_LEN + body.left;
	}
	if (r == -DCPI_EFORMAT) {
		d->out->nr_bad++;
		r = 0;
	}
	/* Read in the midst of being written: what there is of the last module counts already. */
	return r < 0 || !d->in_module ? r : module_end(d);
}

int pseudoimg_dst_decode(const uint8_t *data, size_t len, uint64_t base, struct pseudoimg_dst *out)
{
	struct decoder *d = calloc(1, sizeof(*d));
	int r;

	memset(out, 0, sizeof(*out));
	if (!d)
		return -ENOMEM;
	d->data = data;
	d->len = len;
	d->base = d->first_base = base;
	d->out = out;
	r = decode(d);
	free(d->sources.v);
	free(d->lines.v);
	pseudoimg_source_release(&d->source);
	free(d);
	if (r < 0)
		pseudoimg_dst_release(out);
	return r;
}

void pseudoimg_dst_release(struct pseudoimg_dst *dst)
{
	free(dst->routines.v);
	free(dst->rows.v);
	free(dst->files.v);
	free(dst->absolute.v);
	memset(dst, 0, sizeof(*dst));
}
