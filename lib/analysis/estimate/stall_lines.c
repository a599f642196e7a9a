/* SPDX-License-Identifier: BSD-2-Clause */
/* How often a load can have come to another line of memory than before. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "stall_internal.h"

enum {
	LINE = 64,
	REGISTERS = 32,
	SCALE_MAX = 8,	      /* what an index is multiplied by, at most */
	BLOCKS_MAX = 1 << 16, /* in larger procedures nothing is told of this */
};

/* How many lines further a register is for such an instruction, at most one: it is another then. */
static double lines_moved(const struct insn *insn)
{
	return insn->step ? fmin(abs(insn->step), LINE) / LINE : 1;
}

static void count_moves(struct stall_work *w, uint32_t b)
{
	const struct flow_block *block = &w->f->blocks[b];
	double *moved = &w->moved[(size_t)w->component[b] * REGISTERS];

	for (uint32_t i = block->insn; i < block->insn + block->nr_insns; i++) {
		const struct insn *insn = &w->f->insns[i];

		for (uint32_t regs = (uint32_t)insn->writes.gpr; regs; regs &= regs - 1)
			moved[__builtin_ctz(regs)] += lines_moved(insn) * stall_runs(w, b);
	}
}

int stall_find_moves(struct stall_work *w)
{
	if (!w->in->edge || w->f->nr_blocks > BLOCKS_MAX)
		return 0;
	w->moved = calloc((size_t)w->f->nr_blocks + 1, REGISTERS * sizeof(*w->moved));
	if (!w->moved)
		return -ENOMEM;
	for (uint32_t b = 0; b < w->f->nr_blocks; b++)
		count_moves(w, b);
	return 0;
}

static double moves_of(const struct stall_work *w, uint32_t b, uint8_t reg)
{
	return reg < REGISTERS ? w->moved[(size_t)w->component[b] * REGISTERS + reg] : 0;
}

double stall_new_lines(const struct stall_work *w, uint32_t b, uint32_t insn)
{
	const struct insn *i = &w->f->insns[insn];
	double lines;

	if (!w->moved || stall_runs(w, b) <= 0)
		return 1;
	lines = w->fetched[b] + moves_of(w, b, i->base) + SCALE_MAX * moves_of(w, b, i->index);
	return fmax(fmin(lines / stall_runs(w, b), 1), STALL_CHANCE_LEAST);
}
