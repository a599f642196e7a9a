/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * x86-64, through capstone. What an instruction writes comes last, so that one whose window ends
 * before it has changed nothing. Source: the processors' manuals.
 */
#include <string.h>

#include "x86_internal.h"

/* ---- strings --------------------------------------------------------------------------------- */

static bool is_repeated(const struct x86 *k)
{
	uint8_t p = k->insn->detail->x86.prefix[0];

	return p == X86_PREFIX_REP || p == X86_PREFIX_REPNE;
}

/* Once, upwards: whoever begins a window has seen that the direction is that. */
static void string_once(struct x86 *k, bool loads, bool stores, uint8_t w)
{
	uint8_t value = loads ? vtrace_temp(k->m) : RAX;

	if (loads)
		vtrace_make(k->m, VTRACE_LOAD, w, value, RSI, VTRACE_ZERO);
	if (stores)
		vtrace_make(k->m, VTRACE_STORE, w, value, RDI, VTRACE_ZERO);
	else
		vtrace_make_imm(k->m, w < 4 ? VTRACE_INS : VTRACE_MOV, w, RAX, value, 0);
	if (loads)
		vtrace_make(k->m, VTRACE_LEA, 8, RSI, RSI, VTRACE_ZERO)->imm = w;
	if (stores)
		vtrace_make(k->m, VTRACE_LEA, 8, RDI, RDI, VTRACE_ZERO)->imm = w;
}

/* All of it: what is written is not known any more. */
static void string_repeated(struct x86 *k, bool loads, uint8_t w)
{
	uint8_t len = vtrace_temp(k->m);

	vtrace_make_imm(k->m, VTRACE_MUL, 8, len, RCX, w);
	vtrace_make(k->m, VTRACE_TAINT_MEMORY, 8, VTRACE_ZERO, RDI, len);
	if (loads)
		vtrace_make(k->m, VTRACE_ADD, 8, RSI, RSI, len);
	vtrace_make(k->m, VTRACE_ADD, 8, RDI, RDI, len);
	vtrace_make_imm(k->m, VTRACE_CONST, 8, RCX, VTRACE_ZERO, 0);
}

static void string(struct x86 *k, bool loads, bool stores, uint8_t w)
{
	k->m->class = VTRACE_CLASS_STRING;
	/* Counted or addressed in 32 bits, which nobody does. */
	if (k->insn->detail->x86.addr_size != 8)
		x86_unknown(k);
	else if (!is_repeated(k))
		string_once(k, loads, stores, w);
	else if (stores)
		string_repeated(k, loads, w);
	else
		x86_unknown(k);
}

/* Compares or scans: where it stops is not known. */
static void string_compare(struct x86 *k)
{
	k->m->class = VTRACE_CLASS_STRING;
	vtrace_taint(k->m, RSI);
	vtrace_taint(k->m, RDI);
	if (is_repeated(k))
		vtrace_taint(k->m, RCX);
	vtrace_make_imm(k->m, VTRACE_TAINT_FLAGS, 8, VTRACE_ZERO, VTRACE_ZERO, VTRACE_FLAGS);
}

/* ---- which is which -------------------------------------------------------------------------- */

static bool strings(struct x86 *k)
{
	/* movsd is a move of vectors, too. */
	bool general = !k->nr_ops || k->op[0].type != X86_OP_REG ||
		       x86_register(k->op[0].reg).kind != X86_VECTOR;
	uint8_t w = k->nr_ops ? k->op[0].size : 0;

	switch (k->insn->id) {
	case X86_INS_MOVSB:
	case X86_INS_MOVSW:
	case X86_INS_MOVSD:
	case X86_INS_MOVSQ:
		if (!general || (k->op[1].type == X86_OP_REG))
			return false;
		string(k, true, true, w);
		return true;
	case X86_INS_STOSB:
	case X86_INS_STOSW:
	case X86_INS_STOSD:
	case X86_INS_STOSQ:
		string(k, false, true, w);
		return true;
	case X86_INS_LODSB:
	case X86_INS_LODSW:
	case X86_INS_LODSD:
	case X86_INS_LODSQ:
		string(k, true, false, w);
		return true;
	case X86_INS_SCASB:
	case X86_INS_SCASW:
	case X86_INS_SCASD:
	case X86_INS_SCASQ:
	case X86_INS_CMPSB:
	case X86_INS_CMPSW:
	case X86_INS_CMPSQ:
		string_compare(k);
		return true;
	case X86_INS_CMPSD:
		if (!general)
			return false;
		string_compare(k);
		return true;
	default:
		return false;
	}
}

/* Nothing that can be seen. */
static bool nothing(const struct x86 *k)
{
	switch (k->insn->id) {
	case X86_INS_NOP:
	case X86_INS_PAUSE:
	case X86_INS_LFENCE:
	case X86_INS_MFENCE:
	case X86_INS_SFENCE:
	case X86_INS_CLFLUSH:
	case X86_INS_CLFLUSHOPT:
	case X86_INS_PREFETCH:
	case X86_INS_PREFETCHW:
	case X86_INS_PREFETCHNTA:
	case X86_INS_PREFETCHT0:
	case X86_INS_PREFETCHT1:
	case X86_INS_PREFETCHT2:
	case X86_INS_CLD:
		return true;
	default:
		return false;
	}
}

/* It leaves the program, or changes what the interpreter relies on. */
static bool leaves(const struct x86 *k)
{
	const cs_detail *d = k->insn->detail;

	for (int i = 0; i < d->groups_count; i++)
		if (d->groups[i] == X86_GRP_INT || d->groups[i] == X86_GRP_IRET ||
		    d->groups[i] == X86_GRP_PRIVILEGE || d->groups[i] == X86_GRP_CALL ||
		    d->groups[i] == X86_GRP_JUMP || d->groups[i] == X86_GRP_RET)
			return true;
	switch (k->insn->id) {
	case X86_INS_SYSCALL:
	case X86_INS_SYSENTER:
	case X86_INS_UD2:
	case X86_INS_HLT:
	case X86_INS_STD:
	case X86_INS_POPF:
	case X86_INS_POPFQ:
	case X86_INS_ENTER:
	case X86_INS_LOOPE:
	case X86_INS_LOOPNE:
	case X86_INS_FXRSTOR:
	case X86_INS_FXRSTOR64:
	case X86_INS_XRSTOR:
	case X86_INS_XRSTOR64:
	case X86_INS_WRFSBASE:
	case X86_INS_WRGSBASE:
	case X86_INS_XBEGIN:
		return true;
	default:
		return false;
	}
}

static void carry(struct x86 *k, uint64_t value)
{
	vtrace_make_imm(k->m, VTRACE_SET_FLAGS, 8, VTRACE_ZERO, VTRACE_ZERO, value)->x = VTRACE_C;
}

static void others(struct x86 *k)
{
	uint8_t t;

	switch (k->insn->id) {
	case X86_INS_CLC:
		carry(k, 0);
		break;
	case X86_INS_STC:
		carry(k, VTRACE_C);
		break;
	case X86_INS_PUSHF:
	case X86_INS_PUSHFQ:
		t = vtrace_temp(k->m);
		vtrace_taint(k->m, t);
		x86_push_value(k, 8, t);
		break;
	case X86_INS_CMPXCHG8B:
	case X86_INS_CMPXCHG16B:
		x86_unknown(k);
		vtrace_taint(k->m, RAX);
		vtrace_taint(k->m, RDX);
		vtrace_make_imm(k->m, VTRACE_TAINT_FLAGS, 8, VTRACE_ZERO, VTRACE_ZERO,
				VTRACE_FLAGS);
		break;
	default:
		x86_unknown(k);
		break;
	}
}

/* endbr64, rdsspq and what else is a hint to those that do not know it. */
static bool is_hint(const uint8_t *code, size_t len)
{
	return len >= 4 && code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e &&
	       (code[3] == 0xfa || code[3] == 0xfb);
}

size_t vtrace_x86_insn(struct vtrace_decoder *d, struct vtrace_maker *m, const uint8_t *code,
		       size_t len)
{
	struct x86 k = { .d = d, .m = m };
	size_t n = x86_evex(m, code, len);

	if (n)
		return n;
	if (is_hint(code, len)) {
		m->next_pc = m->pc + 4;
		return 4;
	}
	if (!vtrace_decode(d, code, len, m->pc))
		return 0;
	k.insn = d->insn;
	k.op = d->insn->detail->x86.operands;
	k.nr_ops = d->insn->detail->x86.op_count;
	m->next_pc = m->pc + d->insn->size;
	if (nothing(&k))
		return d->insn->size;
	if (x86_flow(&k) || x86_conditional(&k) || x86_moves(&k) || x86_arithmetic(&k) ||
	    x86_bits(&k) || strings(&k) || x86_string_compare(&k) || x86_vector(&k))
		return d->insn->size;
	if (leaves(&k)) {
		m->class = VTRACE_CLASS_SYSTEM;
		vtrace_stop(m, VTRACE_SYSTEM);
	} else {
		others(&k);
	}
	return d->insn->size;
}
