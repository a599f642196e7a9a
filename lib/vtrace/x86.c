/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * x86-64, through Zydis. What an instruction writes comes last, so that one whose trace ends
 * before it has changed nothing. Moves, the stack and jumps are here, computing and vectors have
 * files of their own. Source: the processors' manuals.
 */
#include "x86_internal.h"

/* ---- moves ----------------------------------------------------------------------------------- */

static void class_of_move(struct x86 *k, enum vtrace_class load)
{
	k->m->class = k->op[1]->type == ZYDIS_OPERAND_TYPE_MEMORY      ? load
		      : k->op[0]->type == ZYDIS_OPERAND_TYPE_MEMORY    ? VTRACE_CLASS_STORE
		      : k->op[1]->type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? VTRACE_CLASS_LEA
								       : VTRACE_CLASS_MOVE;
}

/* A register that is modelled, memory or an immediate value. */
static bool x86_is_modelled(const ZydisDecodedOperand *op)
{
	return op->type != ZYDIS_OPERAND_TYPE_REGISTER ||
	       x86_register(op->reg.value).kind == X86_GENERAL ||
	       x86_register(op->reg.value).kind == X86_HIGH;
}

static void move(struct x86 *k)
{
	struct x86_register to = k->op[0]->type == ZYDIS_OPERAND_TYPE_REGISTER
					 ? x86_register(k->op[0]->reg.value)
					 : (struct x86_register){ 0 };
	struct x86_place p;

	if (!x86_is_modelled(k->op[0]) || !x86_is_modelled(k->op[1])) {
		x86_unknown(k);
		return;
	}
	class_of_move(k, VTRACE_CLASS_LOAD);
	if (to.kind == X86_GENERAL && to.w >= 4 && k->op[1]->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		vtrace_make_imm(k->m, VTRACE_CONST, 8, to.number, VTRACE_ZERO,
				to.w == 4 ? (uint32_t)k->op[1]->imm.value.u
					  : k->op[1]->imm.value.u);
	else if (to.kind == X86_GENERAL && to.w >= 4 &&
		 k->op[1]->type == ZYDIS_OPERAND_TYPE_MEMORY && x86_place(k, 1, &p))
		x86_load(k, to.w, to.number, &p);
	else if (to.kind == X86_GENERAL && to.w == 4)
		/* Also of a register to itself, whose upper half is then zero. */
		vtrace_make_imm(k->m, VTRACE_MOV, 4, to.number, x86_read(k, 1), 0);
	else
		x86_write(k, 0, x86_read(k, 1));
}

/* From a narrower operand. */
static void extend(struct x86 *k, bool is_signed)
{
	uint8_t w = x86_size(k, 0), from = x86_size(k, 1), a = x86_read(k, 1);
	uint8_t dst = x86_target(k, 0);

	class_of_move(k, is_signed ? VTRACE_CLASS_LOAD_SIGNED : VTRACE_CLASS_LOAD);
	if (is_signed)
		vtrace_make_imm(k->m, VTRACE_SEXT, w, dst, a, 0)->x = from;
	else
		vtrace_make_imm(k->m, VTRACE_EXT, from, dst, a, 0);
	x86_write(k, 0, dst);
}

static void address(struct x86 *k)
{
	uint8_t dst = x86_target(k, 0);
	struct x86_place p;

	k->m->class = VTRACE_CLASS_LEA;
	if (!x86_place(k, 1, &p)) {
		/* eip-relative, which nobody writes. */
		x86_unknown(k);
		return;
	}
	x86_set_place(vtrace_make(k->m, VTRACE_LEA, x86_size(k, 0), dst, p.a, p.b), &p);
	x86_write(k, 0, dst);
}

static void exchange(struct x86 *k)
{
	uint8_t t = vtrace_temp(k->m), b;

	k->m->class = k->op[0]->type == ZYDIS_OPERAND_TYPE_MEMORY ||
				      k->op[1]->type == ZYDIS_OPERAND_TYPE_MEMORY
			      ? VTRACE_CLASS_ATOMIC
			      : VTRACE_CLASS_MOVE;
	vtrace_make_imm(k->m, VTRACE_MOV, 8, t, x86_read(k, 0), 0);
	b = x86_read(k, 1);
	/* The one in memory first: its address may be of the other. */
	if (k->op[1]->type == ZYDIS_OPERAND_TYPE_MEMORY) {
		x86_write(k, 1, t);
		x86_write(k, 0, b);
	} else {
		uint8_t other = vtrace_temp(k->m);

		vtrace_make_imm(k->m, VTRACE_MOV, 8, other, b, 0);
		x86_write(k, 0, other);
		x86_write(k, 1, t);
	}
}

static void exchange_add(struct x86 *k)
{
	uint8_t w = x86_size(k, 0), t = vtrace_temp(k->m), sum = vtrace_temp(k->m);

	x86_class_of_change(k, VTRACE_CLASS_ADD);
	vtrace_make_imm(k->m, VTRACE_MOV, 8, t, x86_read(k, 0), 0);
	vtrace_make(k->m, VTRACE_ADD, w, sum, t, x86_read(k, 1))->set = VTRACE_SET_ADD;
	if (k->op[0]->type == ZYDIS_OPERAND_TYPE_MEMORY) {
		x86_write(k, 0, sum);
		x86_write(k, 1, t);
	} else {
		x86_write(k, 1, t);
		x86_write(k, 0, sum);
	}
}

static void compare_exchange(struct x86 *k)
{
	uint8_t w = x86_size(k, 0), old = vtrace_temp(k->m), fresh = vtrace_temp(k->m);
	uint8_t rax = vtrace_temp(k->m);

	if (k->op[0]->type != ZYDIS_OPERAND_TYPE_MEMORY) {
		x86_unknown(k);
		return;
	}
	k->m->class = VTRACE_CLASS_ATOMIC;
	vtrace_make_imm(k->m, VTRACE_MOV, w, old, x86_read(k, 0), 0);
	vtrace_make(k->m, VTRACE_SUB, w, VTRACE_ZERO, RAX, old)->set = VTRACE_SET_SUB;
	vtrace_make(k->m, VTRACE_SELECT, w, fresh, x86_read(k, 1), old)->set = 4;
	x86_write(k, 0, fresh);
	vtrace_make_imm(k->m, VTRACE_MOV, 8, rax, RAX, 0);
	vtrace_make_imm(k->m, w < 4 ? VTRACE_INS : VTRACE_MOV, w, rax, old, 0);
	vtrace_make(k->m, VTRACE_SELECT, 8, RAX, RAX, rax)->set = 4;
}

static void x86_select_move(struct x86 *k, uint8_t cc)
{
	uint8_t b = x86_read(k, 1), a = x86_read(k, 0), dst = x86_target(k, 0);

	k->m->class = VTRACE_CLASS_SELECT;
	vtrace_make(k->m, VTRACE_SELECT, x86_size(k, 0), dst, b, a)->set = cc;
	x86_write(k, 0, dst);
}

static void x86_set_condition(struct x86 *k, uint8_t cc)
{
	uint8_t t = vtrace_temp(k->m);

	k->m->class = VTRACE_CLASS_SELECT;
	vtrace_make(k->m, VTRACE_SETCC, 1, t, VTRACE_ZERO, VTRACE_ZERO)->set = cc;
	x86_write(k, 0, t);
}

/* ---- which of the moves ---------------------------------------------------------------------- */

static bool x86_moves(struct x86 *k)
{
	switch (k->head->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		move(k);
		return true;
	case ZYDIS_MNEMONIC_MOVZX:
		extend(k, false);
		return true;
	case ZYDIS_MNEMONIC_MOVSXD:
	case ZYDIS_MNEMONIC_MOVSX:
		extend(k, true);
		return true;
	case ZYDIS_MNEMONIC_LEA:
		address(k);
		return true;
	case ZYDIS_MNEMONIC_XCHG:
		exchange(k);
		return true;
	case ZYDIS_MNEMONIC_XADD:
		exchange_add(k);
		return true;
	case ZYDIS_MNEMONIC_CMPXCHG:
		compare_exchange(k);
		return true;
	default:
		return false;
	}
}

/* ---- stack and flow -------------------------------------------------------------------------- */

static void move_rsp(struct x86 *k, uint64_t by)
{
	vtrace_make(k->m, VTRACE_LEA, 8, RSP, RSP, VTRACE_ZERO)->imm = by;
}

static void x86_push_value(struct x86 *k, uint8_t w, uint8_t value)
{
	vtrace_make(k->m, VTRACE_STORE, w, value, RSP, VTRACE_ZERO)->imm = 0ull - w;
	move_rsp(k, 0ull - w);
}

static void push(struct x86 *k)
{
	uint8_t w = k->head->operand_width / 8;

	k->m->class = VTRACE_CLASS_PUSH;
	if (!x86_is_modelled(k->op[0])) {
		uint8_t t = vtrace_temp(k->m);

		vtrace_taint(k->m, t);
		x86_push_value(k, w, t);
		return;
	}
	x86_push_value(k, w, x86_read(k, 0));
}

static void pop(struct x86 *k)
{
	uint8_t w = k->head->operand_width / 8, t = vtrace_temp(k->m);

	k->m->class = VTRACE_CLASS_POP;
	vtrace_make(k->m, VTRACE_LOAD, w, t, RSP, VTRACE_ZERO);
	move_rsp(k, w);
	x86_write(k, 0, t);
}

/* With operands of 16 bits: processors of two makers go to different places. */
static bool is_narrow(const struct x86 *k)
{
	return k->head->raw.imm[0].is_relative &&
	       k->head->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE && !k->head->raw.rex.W;
}

/* Where a direct one goes. */
static uint64_t target(const struct x86 *k)
{
	return insn_x86_target(k->head, k->m->pc);
}

static void jump_direct(struct x86 *k)
{
	uint64_t to = target(k);

	vtrace_relative(k->m, vtrace_make_imm(k->m, VTRACE_JUMP, 8, VTRACE_ZERO, VTRACE_ZERO, 0),
			to);
	vtrace_successor(k->m, to);
}

static void jump(struct x86 *k)
{
	uint8_t t;

	k->m->ends = true;
	if (k->op[0]->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		k->m->class = VTRACE_CLASS_JUMP;
		jump_direct(k);
		return;
	}
	k->m->class = VTRACE_CLASS_JUMP_INDIRECT;
	t = x86_read(k, 0);
	vtrace_make_imm(k->m, VTRACE_JUMP_TO, 8, VTRACE_ZERO, t, 0);
}

static void call(struct x86 *k)
{
	bool direct = k->op[0]->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
	uint8_t t = vtrace_temp(k->m), back = vtrace_temp(k->m);

	vtrace_relative(k->m, vtrace_make_imm(k->m, VTRACE_CONST, 8, back, VTRACE_ZERO, 0),
			k->m->next_pc);
	k->m->ends = true;
	k->m->class = direct ? VTRACE_CLASS_CALL : VTRACE_CLASS_CALL_INDIRECT;
	if (!direct) {
		/* It may be rsp, or lie where that points. */
		vtrace_make_imm(k->m, VTRACE_MOV, 8, t, x86_read(k, 0), 0);
		vtrace_make_imm(k->m, VTRACE_NEED, 8, VTRACE_ZERO, t, 0);
	}
	x86_push_value(k, 8, back);
	if (direct)
		jump_direct(k);
	else
		vtrace_make_imm(k->m, VTRACE_JUMP_TO, 8, VTRACE_ZERO, t, 0);
}

static void return_to(struct x86 *k)
{
	uint8_t t = vtrace_temp(k->m);

	k->m->ends = true;
	k->m->class = VTRACE_CLASS_RETURN;
	vtrace_make(k->m, VTRACE_LOAD, 8, t, RSP, VTRACE_ZERO);
	vtrace_make_imm(k->m, VTRACE_NEED, 8, VTRACE_ZERO, t, 0);
	move_rsp(k, 8 + (k->nr_ops ? k->op[0]->imm.value.u : 0));
	vtrace_make_imm(k->m, VTRACE_JUMP_TO, 8, VTRACE_ZERO, t, 0);
}

static void branch(struct x86 *k, enum vtrace_op op, uint8_t w, uint8_t reg, uint8_t cc)
{
	struct vtrace_uop *u;

	k->m->ends = true;
	k->m->class = VTRACE_CLASS_BRANCH;
	u = vtrace_make(k->m, op, w, VTRACE_ZERO, reg, VTRACE_ZERO);
	u->set = cc;
	vtrace_relative(k->m, u, target(k));
	vtrace_successor(k->m, k->m->next_pc);
	vtrace_successor(k->m, target(k));
}

static void loop(struct x86 *k)
{
	vtrace_make_imm(k->m, VTRACE_NEED, 8, VTRACE_ZERO, RCX, 0);
	vtrace_make_imm(k->m, VTRACE_SUB, 8, RCX, RCX, 1);
	branch(k, VTRACE_JUMP_NZ, 8, RCX, 0);
}

static void leave(struct x86 *k)
{
	uint8_t t = vtrace_temp(k->m);

	k->m->class = VTRACE_CLASS_POP;
	vtrace_make(k->m, VTRACE_LOAD, 8, t, RBP, VTRACE_ZERO);
	vtrace_make(k->m, VTRACE_LEA, 8, RSP, RBP, VTRACE_ZERO)->imm = 8;
	vtrace_make_imm(k->m, VTRACE_MOV, 8, RBP, t, 0);
}

/* ---- which of the stack and flow ------------------------------------------------------------- */

/* The condition of a family of 16, as its opcode has it; -1: @id is none of it. */
static int condition(ZydisMnemonic id, const ZydisMnemonic all[16])
{
	for (int i = 0; i < 16; i++)
		if (all[i] == id)
			return i;
	return -1;
}

#define CONDITION(id, F)                                                                           \
	condition(id,                                                                              \
		  (const ZydisMnemonic[16]){                                                       \
			  ZYDIS_MNEMONIC_##F##O, ZYDIS_MNEMONIC_##F##NO, ZYDIS_MNEMONIC_##F##B,    \
			  ZYDIS_MNEMONIC_##F##NB, ZYDIS_MNEMONIC_##F##Z, ZYDIS_MNEMONIC_##F##NZ,   \
			  ZYDIS_MNEMONIC_##F##BE, ZYDIS_MNEMONIC_##F##NBE, ZYDIS_MNEMONIC_##F##S,  \
			  ZYDIS_MNEMONIC_##F##NS, ZYDIS_MNEMONIC_##F##P, ZYDIS_MNEMONIC_##F##NP,   \
			  ZYDIS_MNEMONIC_##F##L, ZYDIS_MNEMONIC_##F##NL, ZYDIS_MNEMONIC_##F##LE,   \
			  ZYDIS_MNEMONIC_##F##NLE })

static bool x86_conditional(struct x86 *k)
{
	ZydisMnemonic id = k->head->mnemonic;
	int cc = CONDITION(id, J);

	if (cc >= 0 && is_narrow(k)) {
		vtrace_stop(k->m, VTRACE_UNDECODED);
		return true;
	}
	if (cc >= 0) {
		branch(k, VTRACE_JUMP_IF, 8, VTRACE_ZERO, (uint8_t)cc);
		return true;
	}
	cc = CONDITION(id, SET);
	if (cc >= 0) {
		x86_set_condition(k, (uint8_t)cc);
		return true;
	}
	cc = CONDITION(id, CMOV);
	if (cc >= 0)
		x86_select_move(k, (uint8_t)cc);
	return cc >= 0;
}

static bool x86_flow(struct x86 *k)
{
	if (k->head->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
		return false;
	switch (k->head->mnemonic) {
	case ZYDIS_MNEMONIC_JMP:
	case ZYDIS_MNEMONIC_CALL:
		if (is_narrow(k))
			vtrace_stop(k->m, VTRACE_UNDECODED);
		else
			k->head->mnemonic == ZYDIS_MNEMONIC_JMP ? jump(k) : call(k);
		return true;
	case ZYDIS_MNEMONIC_RET:
		return_to(k);
		return true;
	case ZYDIS_MNEMONIC_JRCXZ:
		branch(k, VTRACE_JUMP_Z, 8, RCX, 0);
		return true;
	case ZYDIS_MNEMONIC_JECXZ:
		branch(k, VTRACE_JUMP_Z, 4, RCX, 0);
		return true;
	case ZYDIS_MNEMONIC_LOOP:
		loop(k);
		return true;
	case ZYDIS_MNEMONIC_PUSH:
		push(k);
		return true;
	case ZYDIS_MNEMONIC_POP:
		pop(k);
		return true;
	case ZYDIS_MNEMONIC_LEAVE:
		leave(k);
		return true;
	default:
		return false;
	}
}

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
	    x86_alu(&k) || strings(&k) || x86_vector(&k))
		return insn.head.length;
	if (leaves(&k)) {
		m->class = VTRACE_CLASS_SYSTEM;
		vtrace_stop(m, VTRACE_SYSTEM);
	} else {
		others(&k);
	}
	return insn.head.length;
}
