/* SPDX-License-Identifier: BSD-2-Clause */
/* LINE_NUM commands: which listing line the code at each address is of. */
#include <errno.h>

#include "pseudoimg_internal.h"

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

void pseudoimg_lines_begin(struct pseudoimg_lines *l, uint64_t start, uint32_t module_file)
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

int pseudoimg_lines_run(struct pseudoimg_lines *l, struct pseudoimg_cursor commands, uint64_t base,
			const struct pseudoimg_source *source, struct pseudoimg_dst *out)
{
	uint64_t command;
	int r = 0;

	while (r >= 0 && pseudoimg_cursor_uint(&commands, 1, &command))
		r = run_command(l, (unsigned int)command, &commands, base, source, out);
	return r;
}
