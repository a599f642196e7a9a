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

#include "bound.h"
#include "pseudoimg_internal.h"

static bool pseudoimg_cursor_skip(struct pseudoimg_cursor *c, size_t len)
{
	if (c->left < len)
		return false;
	c->p += len;
	c->left -= len;
	return true;
}

static bool pseudoimg_cursor_uint(struct pseudoimg_cursor *c, size_t len, uint64_t *out)
{
	const uint8_t *p = c->p;

	if (!pseudoimg_cursor_skip(c, len))
		return false;
	*out = 0;
	for (size_t i = 0; i < len; i++)
		*out |= (uint64_t)p[i] << 8 * i;
	return true;
}

static bool pseudoimg_cursor_counted(struct pseudoimg_cursor *c, struct pseudoimg_str *out)
{
	uint64_t len;

	if (!pseudoimg_cursor_uint(c, 1, &len))
		return false;
	out->p = (const char *)c->p;
	out->len = len;
	return pseudoimg_cursor_skip(c, len);
}

/* The @len bytes before @c hold an address of the process. 0 or -ENOMEM. */
static inline int pseudoimg_dst_absolute(struct pseudoimg_dst *out,
					 const struct pseudoimg_cursor *c, size_t len)
{
	struct pseudoimg_str *where = PSEUDOIMG_PUSH(&out->absolute);

	if (!where)
		return -ENOMEM;
	*where = (struct pseudoimg_str){ .p = (const char *)c->p - len, .len = len };
	return 0;
}

/* State of a module's LINE_NUM commands. */
struct pseudoimg_lines {
	uint64_t start, pc;
	uint32_t line, stmt, incr;
	bool stmt_mode, open;
	uint32_t module_file; /* stands in where no SOURCE command names a file */
};

/* ---- SOURCE commands ------------------------------------------------------------------------- */

enum source_command {
	SOURCE_DECLFILE = 1,
	SOURCE_SETFILE = 2,
	SOURCE_SETREC_L = 3,
	SOURCE_SETREC_W = 4,
	SOURCE_SETLNUM_L = 5,
	SOURCE_SETLNUM_W = 6,
	SOURCE_INCRLNUM_B = 7,
	SOURCE_DEFLINES_W = 10,
	SOURCE_DEFLINES_B = 11,
	SOURCE_FORMFEED = 16,
};

enum { NR_IDS = 65536 };

int pseudoimg_source_begin(struct pseudoimg_source *s)
{
	if (!s->by_id) {
		s->by_id = calloc(NR_IDS, sizeof(*s->by_id));
		if (!s->by_id)
			return -ENOMEM;
	}
	s->lines.nr = s->files.nr = 0;
	s->line = 1;
	s->record = 0;
	s->current = SIZE_MAX;
	return 0;
}

void pseudoimg_source_release(struct pseudoimg_source *s)
{
	free(s->lines.v);
	free(s->files.v);
	free(s->by_id);
	memset(s, 0, sizeof(*s));
}

/* The table is never cleared between modules: an entry counts only where the file confirms it. */
static size_t file_by_id(const struct pseudoimg_source *s, uint16_t id)
{
	size_t i = s->by_id[id];

	return i < s->files.nr && s->files.v[i].id == id ? i : SIZE_MAX;
}

static int declare_file(struct pseudoimg_source *s, struct pseudoimg_cursor *c,
			struct pseudoimg_dst *out)
{
	struct pseudoimg_cursor body;
	struct pseudoimg_str name, library, *text;
	struct pseudoimg_source_file *file;
	uint64_t len, id;

	if (!pseudoimg_cursor_uint(c, 1, &len))
		return -DCPI_EFORMAT;
	body = (struct pseudoimg_cursor){ c->p, len };
	if (!pseudoimg_cursor_skip(c, len) || !pseudoimg_cursor_skip(&body, 1) ||
	    !pseudoimg_cursor_uint(&body, 2, &id) || !pseudoimg_cursor_skip(&body, 15) ||
	    !pseudoimg_cursor_counted(&body, &name) || !pseudoimg_cursor_counted(&body, &library))
		return -DCPI_EFORMAT;
	text = PSEUDOIMG_PUSH(&out->files);
	file = PSEUDOIMG_PUSH(&s->files);
	if (!text || !file)
		return -ENOMEM;
	*text = name;
	*file = (struct pseudoimg_source_file){ .id = (uint16_t)id,
						.record = 1,
						.file = (uint32_t)(out->files.nr - 1) };
	s->by_id[id] = (uint32_t)(s->files.nr - 1);
	return 0;
}

static int set_file(struct pseudoimg_source *s, uint16_t id)
{
	size_t i = file_by_id(s, id);

	if (i == SIZE_MAX)
		return -DCPI_EFORMAT;
	if (s->current != SIZE_MAX)
		s->files.v[s->current].record = s->record;
	s->current = i;
	s->record = s->files.v[i].record;
	return 0;
}

static int define_lines(struct pseudoimg_source *s, uint32_t nr)
{
	struct pseudoimg_source_lines *last = NULL, *add;
	uint32_t end, record_end;

	if (s->current == SIZE_MAX || base_add_overflow(s->line, nr, &end) ||
	    base_add_overflow(s->record, nr, &record_end))
		return -DCPI_EFORMAT;
	if (s->lines.nr)
		last = &s->lines.v[s->lines.nr - 1];
	if (last && s->line < last->first + last->nr)
		return -DCPI_EFORMAT; /* lines are defined in ascending order */
	if (nr) {
		add = PSEUDOIMG_PUSH(&s->lines);
		if (!add)
			return -ENOMEM;
		*add = (struct pseudoimg_source_lines){ .first = s->line,
							.nr = nr,
							.record = s->record,
							.file = s->files.v[s->current].file };
	}
	s->line = end;
	s->record = record_end;
	return 0;
}

static int set_record(struct pseudoimg_source *s, uint32_t record)
{
	if (s->current == SIZE_MAX)
		return -DCPI_EFORMAT;
	s->record = record;
	return 0;
}

static int run_source_command(struct pseudoimg_source *s, uint64_t command,
			      struct pseudoimg_cursor *c, struct pseudoimg_dst *out)
{
	/* Bytes of the operand; DECLFILE takes its own apart. */
	static const uint8_t operand_len[] = {
		[SOURCE_SETFILE] = 2,	 [SOURCE_SETREC_L] = 4,	  [SOURCE_SETREC_W] = 2,
		[SOURCE_SETLNUM_L] = 4,	 [SOURCE_SETLNUM_W] = 2,  [SOURCE_INCRLNUM_B] = 1,
		[SOURCE_DEFLINES_W] = 2, [SOURCE_DEFLINES_B] = 1, [SOURCE_FORMFEED] = 0,
	};
	uint64_t v = 0;

	if (command == SOURCE_DECLFILE)
		return declare_file(s, c, out);
	if (command >= sizeof(operand_len) || !pseudoimg_cursor_uint(c, operand_len[command], &v))
		return -DCPI_EFORMAT;
	switch (command) {
	case SOURCE_SETFILE:
		return set_file(s, (uint16_t)v);
	case SOURCE_SETREC_L:
	case SOURCE_SETREC_W:
		return set_record(s, (uint32_t)v);
	case SOURCE_SETLNUM_L:
	case SOURCE_SETLNUM_W:
		s->line = (uint32_t)v;
		return 0;
	case SOURCE_INCRLNUM_B:
		return base_add_overflow(s->line, (uint32_t)v, &s->line) ? -DCPI_EFORMAT : 0;
	case SOURCE_DEFLINES_W:
	case SOURCE_DEFLINES_B:
		return define_lines(s, (uint32_t)v);
	case SOURCE_FORMFEED: /* matters to who counts lines in the file; records are numbered */
		return 0;
	default:
		return -DCPI_EFORMAT;
	}
}

int pseudoimg_source_run(struct pseudoimg_source *s, struct pseudoimg_cursor commands,
			 struct pseudoimg_dst *out)
{
	uint64_t command;
	int r = 0;

	while (r >= 0 && pseudoimg_cursor_uint(&commands, 1, &command))
		r = run_source_command(s, command, &commands, out);
	return r;
}

bool pseudoimg_source_find(const struct pseudoimg_source *s, uint32_t listing, uint32_t *file,
			   uint32_t *line)
{
	size_t lo = BASE_UPPER_BOUND(s->lines.v, s->lines.nr, first, listing);
	const struct pseudoimg_source_lines *l;

	if (!lo)
		return false;
	l = &s->lines.v[lo - 1];
	if (listing - l->first >= l->nr)
		return false;
	*file = l->file;
	*line = l->record + (listing - l->first);
	return true;
}

/* ---- LINE_NUM commands ----------------------------------------------------------------------- */

enum line_command {
	LINE_DELTA_PC_W = 1,
	LINE_INCR_LINUM = 2,
	LINE_INCR_LINUM_W = 3,
	LINE_SET_LINUM_INCR = 4,
	LINE_SET_LINUM_INCR_W = 5,
	LINE_RESET_LINUM_INCR = 6,
	LINE_BEG_STMT_MODE = 7,
	LINE_END_STMT_MODE = 8,
	LINE_SET_LINUM = 9,
	LINE_SET_PC = 10,
	LINE_SET_PC_W = 11,
	LINE_SET_PC_L = 12,
	LINE_SET_STMTNUM = 13,
	LINE_TERM = 14,
	LINE_TERM_W = 15,
	LINE_SET_ABS_PC = 16,
	LINE_DELTA_PC_L = 17,
	LINE_INCR_LINUM_L = 18,
	LINE_SET_LINUM_B = 19,
	LINE_SET_LINUM_L = 20,
	LINE_TERM_L = 21,
};

/* Bytes of each command's operand. SET_STMTNUM: the prose says a word, the list a byte. */
static const uint8_t operand_len[] = {
	[LINE_DELTA_PC_W] = 2,	     [LINE_INCR_LINUM] = 1,
	[LINE_INCR_LINUM_W] = 2,     [LINE_SET_LINUM_INCR] = 1,
	[LINE_SET_LINUM_INCR_W] = 2, [LINE_RESET_LINUM_INCR] = 0,
	[LINE_BEG_STMT_MODE] = 0,    [LINE_END_STMT_MODE] = 0,
	[LINE_SET_LINUM] = 2,	     [LINE_SET_PC] = 1,
	[LINE_SET_PC_W] = 2,	     [LINE_SET_PC_L] = 4,
	[LINE_SET_STMTNUM] = 1,	     [LINE_TERM] = 1,
	[LINE_TERM_W] = 2,	     [LINE_SET_ABS_PC] = 4,
	[LINE_DELTA_PC_L] = 4,	     [LINE_INCR_LINUM_L] = 4,
	[LINE_SET_LINUM_B] = 1,	     [LINE_SET_LINUM_L] = 4,
	[LINE_TERM_L] = 4,
};

static void pseudoimg_lines_begin(struct pseudoimg_lines *l, uint64_t start, uint32_t module_file)
{
	*l = (struct pseudoimg_lines){
		.start = start, .pc = start, .stmt = 1, .incr = 1, .module_file = module_file
	};
}

static int put_row(struct pseudoimg_dst *out, struct pseudoimg_dst_row row)
{
	struct pseudoimg_dst_row *to = PSEUDOIMG_PUSH(&out->rows);

	if (!to)
		return -ENOMEM;
	*to = row;
	return 0;
}

/* A line (or a statement of it) begins @delta bytes further on. */
static int delta_pc(struct pseudoimg_lines *l, uint32_t delta,
		    const struct pseudoimg_source *source, struct pseudoimg_dst *out)
{
	struct pseudoimg_dst_row row = { .file = l->module_file };

	if (base_add_overflow(l->pc, (uint64_t)delta, &l->pc))
		return -DCPI_EFORMAT;
	if (l->stmt_mode)
		l->stmt++;
	else if (base_add_overflow(l->line, l->incr, &l->line))
		return -DCPI_EFORMAT;
	l->open = true;
	row.addr = l->pc;
	row.line = l->line;
	pseudoimg_source_find(source, l->line, &row.file, &row.line);
	return put_row(out, row);
}

/* The last line is @len bytes long. */
static int terminate(struct pseudoimg_lines *l, uint32_t len, struct pseudoimg_dst *out)
{
	bool open = l->open;

	if (base_add_overflow(l->pc, (uint64_t)len, &l->pc))
		return -DCPI_EFORMAT;
	l->open = l->stmt_mode = false;
	if (!open)
		return 0;
	return put_row(out, (struct pseudoimg_dst_row){
				    .addr = l->pc, .file = PSEUDOIMG_NO_FILE, .end = true });
}

/* Rows ascend because addresses are set only while no line is open. */
static int set_pc(struct pseudoimg_lines *l, uint64_t from, uint32_t off)
{
	return l->open || base_add_overflow(from, (uint64_t)off, &l->pc) ? -DCPI_EFORMAT : 0;
}

static int begin_statements(struct pseudoimg_lines *l)
{
	if (!l->open)
		return -DCPI_EFORMAT;
	l->stmt_mode = true;
	return 0;
}

static int set_state(struct pseudoimg_lines *l, unsigned int command, uint32_t v, uint64_t base)
{
	switch (command) {
	case LINE_INCR_LINUM:
	case LINE_INCR_LINUM_W:
	case LINE_INCR_LINUM_L:
		return base_add_overflow(l->line, v, &l->line) ? -DCPI_EFORMAT : 0;
	case LINE_SET_LINUM_INCR:
	case LINE_SET_LINUM_INCR_W:
		l->incr = v;
		return 0;
	case LINE_RESET_LINUM_INCR:
		l->incr = 1;
		return 0;
	case LINE_BEG_STMT_MODE:
		return begin_statements(l);
	case LINE_END_STMT_MODE:
		l->stmt_mode = false;
		return 0;
	case LINE_SET_LINUM:
	case LINE_SET_LINUM_B:
	case LINE_SET_LINUM_L:
		l->line = v;
		return 0;
	case LINE_SET_PC:
	case LINE_SET_PC_W:
	case LINE_SET_PC_L:
		return set_pc(l, l->start, v);
	case LINE_SET_ABS_PC:
		return set_pc(l, base, v);
	case LINE_SET_STMTNUM:
		l->stmt = v;
		return 0;
	default:
		return -DCPI_EFORMAT;
	}
}

static int run_command(struct pseudoimg_lines *l, unsigned int command, struct pseudoimg_cursor *c,
		       uint64_t base, const struct pseudoimg_source *source,
		       struct pseudoimg_dst *out)
{
	uint64_t v;

	if (command >= 128 || !command) /* one signed byte: minus the delta */
		return delta_pc(l, command ? 256 - command : 0, source, out);
	if (command >= sizeof(operand_len) || !pseudoimg_cursor_uint(c, operand_len[command], &v))
		return -DCPI_EFORMAT;
	if (command == LINE_SET_ABS_PC && !base && pseudoimg_dst_absolute(out, c, 4) < 0)
		return -ENOMEM;
	switch (command) {
	case LINE_DELTA_PC_W:
	case LINE_DELTA_PC_L:
		return delta_pc(l, (uint32_t)v, source, out);
	case LINE_TERM:
	case LINE_TERM_W:
	case LINE_TERM_L:
		return terminate(l, (uint32_t)v, out);
	default:
		return set_state(l, command, (uint32_t)v, base);
	}
}

/* Commands of one record, whose absolute addresses count from @base, as above. Errors as above. */
static int pseudoimg_lines_run(struct pseudoimg_lines *l, struct pseudoimg_cursor commands,
			       uint64_t base, const struct pseudoimg_source *source,
			       struct pseudoimg_dst *out)
{
	uint64_t command;
	int r = 0;

	while (r >= 0 && pseudoimg_cursor_uint(&commands, 1, &command))
		r = run_command(l, (unsigned int)command, &commands, base, source, out);
	return r;
}

/* ---- kinds of records ------------------------------------------------------------------------ */

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
