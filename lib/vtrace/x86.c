/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * x86-64, through Zydis. What an instruction writes comes last, so that one whose trace ends
 * before it has changed nothing. Source: the processors' manuals.
 */
#include "x86_internal.h"

/* ---- strings --------------------------------------------------------------------------------- */

static bool is_repeated(const struct x86 *k)
{
	return k->head->attributes &
	       (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
}

/* Once, upwards: whoever begins a trace has seen that the direction is that. */
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
	/* Counted or addressed in 32 bits, which compilers do not: it may end anywhere. */
	if (k->head->address_width != 64)
		vtrace_stop(k->m, VTRACE_UNDECODED);
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
	uint8_t w = k->nr_ops ? x86_size(k, 0) : 0;

	/* movsd and cmpsd are of vectors, too. */
	if (k->head->meta.category != ZYDIS_CATEGORY_STRINGOP)
		return false;
	switch (k->head->mnemonic) {
	case ZYDIS_MNEMONIC_MOVSB:
	case ZYDIS_MNEMONIC_MOVSW:
	case ZYDIS_MNEMONIC_MOVSD:
	case ZYDIS_MNEMONIC_MOVSQ:
		string(k, true, true, w);
		return true;
	case ZYDIS_MNEMONIC_STOSB:
	case ZYDIS_MNEMONIC_STOSW:
	case ZYDIS_MNEMONIC_STOSD:
	case ZYDIS_MNEMONIC_STOSQ:
		string(k, false, true, w);
		return true;
	case ZYDIS_MNEMONIC_LODSB:
	case ZYDIS_MNEMONIC_LODSW:
	case ZYDIS_MNEMONIC_LODSD:
	case ZYDIS_MNEMONIC_LODSQ:
		string(k, true, false, w);
		return true;
	default:
		string_compare(k);
		return true;
	}
}

/* Nothing that can be seen. */
static bool nothing(const struct x86 *k)
{
	switch (k->head->meta.category) {
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_WIDENOP:
	case ZYDIS_CATEGORY_PREFETCH:
		return true;
	default:
		break;
	}
	switch (k->head->mnemonic) {
	case ZYDIS_MNEMONIC_ENDBR32:
	case ZYDIS_MNEMONIC_ENDBR64:
	case ZYDIS_MNEMONIC_PAUSE:
	case ZYDIS_MNEMONIC_LFENCE:
	case ZYDIS_MNEMONIC_MFENCE:
	case ZYDIS_MNEMONIC_SFENCE:
	case ZYDIS_MNEMONIC_CLFLUSH:
	case ZYDIS_MNEMONIC_CLFLUSHOPT:
	case ZYDIS_MNEMONIC_CLD:
		return true;
	default:
		return false;
	}
}

/* It leaves the program, or changes what the interpreter relies on. */
static bool leaves(const struct x86 *k)
{
	if (k->head->meta.branch_type != ZYDIS_BRANCH_TYPE_NONE ||
	    k->head->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED)
		return true;
	switch (k->head->meta.category) {
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET:
		return true;
	default:
		break;
	}
	switch (k->head->mnemonic) {
	case ZYDIS_MNEMONIC_XBEGIN:
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_STD:
	case ZYDIS_MNEMONIC_POPF:
	case ZYDIS_MNEMONIC_POPFQ:
	case ZYDIS_MNEMONIC_ENTER:
	case ZYDIS_MNEMONIC_FXRSTOR:
	case ZYDIS_MNEMONIC_FXRSTOR64:
	case ZYDIS_MNEMONIC_XRSTOR:
	case ZYDIS_MNEMONIC_XRSTOR64:
	case ZYDIS_MNEMONIC_WRFSBASE:
	case ZYDIS_MNEMONIC_WRGSBASE:
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

	switch (k->head->mnemonic) {
	case ZYDIS_MNEMONIC_CLC:
		carry(k, 0);
		break;
	case ZYDIS_MNEMONIC_STC:
		carry(k, VTRACE_C);
		break;
	case ZYDIS_MNEMONIC_PUSHF:
	case ZYDIS_MNEMONIC_PUSHFQ:
		t = vtrace_temp(k->m);
		vtrace_taint(k->m, t);
		x86_push_value(k, 8, t);
		break;
	/* Zydis does not name all that these two write: the line at rax, and a second mask. */
	case ZYDIS_MNEMONIC_CLZERO:
	case ZYDIS_MNEMONIC_VP2INTERSECTD:
	case ZYDIS_MNEMONIC_VP2INTERSECTQ:
		vtrace_stop(k->m, VTRACE_UNDECODED);
		break;
	default:
		x86_unknown(k);
		break;
	}
}

size_t vtrace_x86_insn(struct vtrace_maker *m, const uint8_t *code, size_t len)
{
	struct x86_operands ops;
	struct insn_x86 insn;
	struct x86 k;

	if (!insn_x86_decode(true, code, len, &insn))
		return 0;
	ops = x86_operands(&insn);
	k = (struct x86){
		.m = m, .insn = &insn, .head = &insn.head, .op = ops.v, .nr_ops = ops.nr
	};
	m->next_pc = m->pc + insn.head.length;
	if (nothing(&k) || x86_evex(&k) || x86_flow(&k) || x86_conditional(&k) || x86_moves(&k) ||
	    x86_arithmetic(&k) || x86_bits(&k) || strings(&k) || x86_string_compare(&k) ||
	    x86_vector(&k))
		return insn.head.length;
	if (leaves(&k)) {
		m->class = VTRACE_CLASS_SYSTEM;
		vtrace_stop(m, VTRACE_SYSTEM);
	} else {
		others(&k);
	}
	return insn.head.length;
}
