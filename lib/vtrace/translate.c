/* SPDX-License-Identifier: BSD-2-Clause */
/* A block of code, translated into micro-ops for the interpreter, an instruction at a time. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "translate_internal.h"

/* ---- flags that nobody reads ----------------------------------------------------------------- */

static bool reads_flags(const struct vtrace_uop *u)
{
	switch (u->op) {
	case VTRACE_ADC:
	case VTRACE_SBB:
	case VTRACE_SBC:
	case VTRACE_SELECT:
	case VTRACE_SETCC:
	case VTRACE_JUMP_IF:
	case VTRACE_CCMP:
		return true;
	default:
		return false;
	}
}

/* In SELECT and similar operations the field is a condition. */
static bool has_condition(const struct vtrace_uop *u)
{
	return u->op == VTRACE_SELECT || u->op == VTRACE_SETCC || u->op == VTRACE_JUMP_IF ||
	       u->op == VTRACE_CCMP;
}

/* All flags become what this one says, whatever they were. */
static bool sets_all_flags(const struct vtrace_uop *u)
{
	return u->set == VTRACE_SET_ADD || u->set == VTRACE_SET_SUB ||
	       u->set == VTRACE_SET_SUB_NOT || u->set == VTRACE_SET_LOGIC ||
	       u->set == VTRACE_SET_POPCNT || u->set == VTRACE_SET_MULU ||
	       u->set == VTRACE_SET_MUL || u->set == VTRACE_SET_COUNT ||
	       u->set == VTRACE_SET_ZERO || u->set == VTRACE_SET_BLSR;
}

/* Behind the block somebody may read them. */
static void drop_flags(struct vtrace_code *c)
{
	bool live = true;

	for (size_t i = c->block.nr_uops; i--;) {
		struct vtrace_uop *u = &c->uops[i];
		bool sets = u->set && !has_condition(u);

		if (sets && !live) {
			u->set = VTRACE_SET_NONE;
			if (u->dst == VTRACE_ZERO)
				u->op = VTRACE_NOP;
		}
		if (sets && live && sets_all_flags(u))
			live = false;
		live |= reads_flags(u) || u->op == VTRACE_STOP;
	}
}

/* Micro-ops that do nothing, but for the last of an instruction. */
static void drop_nops(struct vtrace_code *c)
{
	size_t nr = 0, insn = 0;

	for (size_t i = 0; i < c->block.nr_uops; i++) {
		if (insn < c->block.nr_insns && c->insns[insn].first == i)
			c->insns[insn++].first = (uint8_t)nr;
		if (c->uops[i].op == VTRACE_NOP && !(c->uops[i].marks & VTRACE_LAST))
			continue;
		c->uops[nr++] = c->uops[i];
	}
	c->block.nr_uops = (uint16_t)nr;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

int vtrace_translator_open(enum vtrace_arch arch, struct vtrace_translator **out)
{
	struct vtrace_translator *t = calloc(1, sizeof(*t));

	int r = 0;

	if (!t)
		return -ENOMEM;
	t->arch = arch;
	if (arch == VTRACE_AARCH64)
		r = insn_disasm_open(EM_AARCH64, &t->disasm, NULL);
	if (r < 0)
		free(t);
	else
		*out = t;
	return r;
}

void vtrace_translator_close(struct vtrace_translator *t)
{
	if (!t)
		return;
	insn_disasm_close(t->disasm);
	free(t);
}

/* One more instruction; false: the block ends before it. */
static bool add_insn(struct vtrace_translator *t, struct vtrace_maker *m, const uint8_t *code,
		     size_t len)
{
	struct vtrace_code *c = m->code;
	struct vtrace_block *b = &c->block;
	uint16_t before = b->nr_uops;
	size_t n;

	m->pc = b->pc + b->len;
	m->class = VTRACE_CLASS_OTHER;
	m->nr_temps = 0;
	m->ends = m->full = false;
	n = t->arch == VTRACE_X86_64 ? vtrace_x86_insn(m, code, len)
				     : vtrace_aarch64_insn(t->disasm, m, code, len);
	if (n > len || !n) {
		n = len < 16 ? len : 16;
		b->nr_uops = before;
		vtrace_stop(m, VTRACE_UNDECODED);
	}
	if ((m->full || m->nr_temps > VTRACE_NR_TEMPS) && b->nr_insns) {
		b->nr_uops = before;
		return false;
	}
	if (m->full || m->nr_temps > VTRACE_NR_TEMPS) {
		b->nr_uops = before;
		vtrace_stop(m, VTRACE_UNDECODED);
	}
	if (b->nr_uops == before)
		vtrace_make_imm(m, VTRACE_NOP, 8, VTRACE_ZERO, VTRACE_ZERO, 0);
	c->uops[b->nr_uops - 1].marks |= VTRACE_LAST;
	c->insns[b->nr_insns++] = (struct vtrace_insn){
		.offset = b->len, .len = (uint8_t)n, .class = m->class, .first = (uint8_t)before
	};
	b->len += (uint8_t)n;
	return !m->ends;
}

bool vtrace_place_of(uint64_t pc, const uint8_t *code, size_t len, struct vtrace_place *out)
{
	size_t want = vtrace_place_len(pc);

	*out = (struct vtrace_place){ .where = vtrace_where(pc) };
	memcpy(out->code, code, len < want ? len : want);
	return len >= want;
}

int vtrace_translate(struct vtrace_translator *t, const uint8_t *code, size_t len, uint64_t pc,
		     struct vtrace_code *out)
{
	struct vtrace_maker m = { .code = out };
	struct vtrace_block *b = &out->block;

	if (!len)
		return -DCPI_EFORMAT;
	memset(out, 0, sizeof(*out));
	b->pc = pc;
	vtrace_place_of(pc, code, len, &out->place);
	len = len < VTRACE_BLOCK_BYTES ? len : VTRACE_BLOCK_BYTES;
	/* An instruction cut off by the end of what is there begins the next block. */
	while (b->nr_insns < VTRACE_BLOCK_INSNS && b->len < len &&
	       (!b->nr_insns || b->len + 16u <= len) &&
	       add_insn(t, &m, code + b->len, len - b->len))
		;
	if (!m.ends)
		vtrace_successor(&m, pc + b->len);
	memcpy(b->code, code, b->len);
	drop_flags(out);
	drop_nops(out);
	return 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

const char *vtrace_class_name(enum vtrace_class class)
{
	static const char *const names[] = {
		[VTRACE_CLASS_OTHER] = "other",
		[VTRACE_CLASS_LOAD] = "load",
		[VTRACE_CLASS_LOAD_SIGNED] = "sign-extending load",
		[VTRACE_CLASS_LOAD_FP] = "floating-point load",
		[VTRACE_CLASS_STORE] = "store",
		[VTRACE_CLASS_STORE_FP] = "floating-point store",
		[VTRACE_CLASS_MODIFY] = "read-modify-write",
		[VTRACE_CLASS_ATOMIC] = "atomic",
		[VTRACE_CLASS_PUSH] = "push",
		[VTRACE_CLASS_POP] = "pop",
		[VTRACE_CLASS_MOVE] = "move",
		[VTRACE_CLASS_LEA] = "address",
		[VTRACE_CLASS_ADD] = "add",
		[VTRACE_CLASS_LOGIC] = "logic",
		[VTRACE_CLASS_SHIFT] = "shift",
		[VTRACE_CLASS_MULTIPLY] = "multiply",
		[VTRACE_CLASS_DIVIDE] = "divide",
		[VTRACE_CLASS_COMPARE] = "compare",
		[VTRACE_CLASS_SELECT] = "select",
		[VTRACE_CLASS_BRANCH] = "branch",
		[VTRACE_CLASS_JUMP] = "jump",
		[VTRACE_CLASS_JUMP_INDIRECT] = "indirect jump",
		[VTRACE_CLASS_CALL] = "call",
		[VTRACE_CLASS_CALL_INDIRECT] = "indirect call",
		[VTRACE_CLASS_RETURN] = "return",
		[VTRACE_CLASS_FP] = "floating point",
		[VTRACE_CLASS_VECTOR] = "vector",
		[VTRACE_CLASS_STRING] = "string",
		[VTRACE_CLASS_SYSTEM] = "system",
	};

	return class < VTRACE_NR_CLASSES ? names[class] : "?";
}

const char *vtrace_end_name(enum vtrace_end end)
{
	static const char *const names[] = {
		[VTRACE_CONTINUES] = "goes on",
		[VTRACE_FULL] = "full",
		[VTRACE_UNTRANSLATED] = "not translated",
		[VTRACE_CODE] = "code unreadable",
		[VTRACE_UNKNOWN_IF] = "branch depends on an unknown",
		[VTRACE_UNKNOWN_JUMP] = "jump to an unknown",
		[VTRACE_SYSTEM] = "leaves the program",
		[VTRACE_FAULTS] = "faults",
		[VTRACE_UNDECODED] = "no instruction",
		[VTRACE_TRACE] = "trace full",
	};

	return end < VTRACE_NR_ENDS ? names[end] : "?";
}
