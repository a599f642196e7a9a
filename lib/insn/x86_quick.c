/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long the most frequent instructions of x86-64 are, and where they lead, for who goes through
 * all of an image: capstone takes more than ten times as long, because it prints each. Here is only
 * what capstone knows too; all else is left to it.
 */
#include "x86.h"

enum {
	/* The prefixes that it may have before REX, one at a time. */
	BARE = 1 << 0,	  /* none */
	OPERAND = 1 << 1, /* 66 */
	REP = 1 << 2,	  /* f3 */
	REPNE = 1 << 3,	  /* f2 */
	USUAL = BARE | OPERAND,
	SCALAR = USUAL | REP | REPNE,
	/* What stands behind the opcode. */
	MODRM = 1 << 4,
	IMM8 = 1 << 5,
	IMM = 1 << 6, /* of the operands' size, 4 bytes at most */
	/* Part of the opcode is in ModRM. */
	GROUP = 1 << 7,
	/* Where it leads is of interest. */
	FLOW = 1 << 8,
};

static unsigned int shape_of(uint8_t op)
{
	if (op < 0x40) {
		static const uint8_t alu[8] = { USUAL | MODRM, USUAL | MODRM, USUAL | MODRM,
						USUAL | MODRM, USUAL | IMM8,  USUAL | IMM };

		return alu[op & 7];
	}
	if (op >= 0x70 && op <= 0x7f) /* jcc */
		return BARE | IMM8 | FLOW;
	if ((op >= 0x50 && op <= 0x5f) || (op >= 0x91 && op <= 0x97)) /* push, pop, xchg */
		return BARE;
	if (op >= 0xb0 && op <= 0xb7) /* mov */
		return BARE | IMM8;
	if (op >= 0x84 && op <= 0x8b) /* test, xchg, mov */
		return USUAL | MODRM;
	switch (op) {
	case 0x63: /* movslq */
		return BARE | MODRM;
	case 0x68: /* push */
		return BARE | IMM;
	case 0x6a:
		return BARE | IMM8;
	case 0x69: /* imul */
	case 0x81:
		return USUAL | MODRM | IMM;
	case 0x6b:
	case 0x80:
	case 0x83:
		return USUAL | MODRM | IMM8;
	case 0x8d: /* lea */
	case 0xd0: /* shifts */
	case 0xd1:
	case 0xd2:
	case 0xd3:
	case 0xf6: /* test, not, neg, mul, div */
	case 0xf7:
	case 0xfe: /* inc, dec */
		return USUAL | MODRM | GROUP;
	case 0xc0:
	case 0xc1:
	case 0xc6: /* mov */
		return USUAL | MODRM | GROUP | IMM8;
	case 0xc7:
		return USUAL | MODRM | GROUP | IMM;
	case 0xff: /* inc, dec, call, jmp, push */
		return BARE | MODRM | GROUP | FLOW;
	case 0x90: /* nop */
		return USUAL | FLOW;
	case 0xc3: /* ret */
	case 0xcc: /* int3 */
		return BARE | FLOW;
	case 0x98: /* cltq */
	case 0x99:
	case 0xc9: /* leave */
		return BARE;
	case 0xa8: /* test */
		return BARE | IMM8;
	case 0xa9:
	case 0xb8: /* mov */
	case 0xb9:
	case 0xba:
	case 0xbb:
	case 0xbc:
	case 0xbd:
	case 0xbe:
	case 0xbf:
		return USUAL | IMM;
	case 0xe8: /* call */
	case 0xe9: /* jmp */
		return BARE | IMM | FLOW;
	case 0xeb:
		return BARE | IMM8 | FLOW;
	default:
		return 0;
	}
}

/* Of the opcodes behind 0f. */
static unsigned int shape_of_0f(uint8_t op)
{
	if (op >= 0x80 && op <= 0x8f) /* jcc */
		return BARE | IMM | FLOW;
	if (op >= 0x40 && op <= 0x4f) /* cmovcc */
		return USUAL | MODRM;
	if (op >= 0x90 && op <= 0x9f) /* setcc */
		return BARE | MODRM;
	if (op >= 0xc8 && op <= 0xcf) /* bswap */
		return BARE;
	switch (op) {
	case 0x0b: /* ud2 */
		return BARE | FLOW;
	case 0x1f: /* nop */
		return USUAL | MODRM | GROUP | FLOW;
	case 0x10: /* movups, movss, … */
	case 0x11:
	case 0x51: /* sqrtps, … */
	case 0x58:
	case 0x59:
	case 0x5a:
	case 0x5c:
	case 0x5d:
	case 0x5e:
	case 0x5f:
		return SCALAR | MODRM;
	case 0x28: /* movaps */
	case 0x29:
	case 0x2e: /* ucomiss */
	case 0x2f:
	case 0x54: /* andps, … */
	case 0x55:
	case 0x56:
	case 0x57:
	case 0x6e: /* movd */
	case 0xa3: /* bt, … */
	case 0xab:
	case 0xb3:
	case 0xbb:
	case 0xaf: /* imul */
	case 0xb0: /* cmpxchg */
	case 0xb1:
	case 0xb6: /* movzx */
	case 0xb7:
	case 0xbe: /* movsx */
	case 0xbf:
	case 0xc0: /* xadd */
	case 0xc1:
	case 0xef: /* pxor */
		return USUAL | MODRM;
	case 0x2a: /* cvtsi2sd, … */
	case 0x2c:
	case 0x2d:
		return REP | REPNE | MODRM;
	case 0x6f: /* movdqa, movdqu */
	case 0x7e: /* movd, movq */
	case 0x7f:
	case 0xbc: /* bsf, tzcnt */
	case 0xbd:
		return USUAL | REP | MODRM;
	case 0xba: /* bt, … */
		return USUAL | MODRM | GROUP | IMM8;
	case 0xd6: /* movq */
		return OPERAND | MODRM;
	default:
		return 0;
	}
}

/* ModRM's part of the opcode: false where it is not known what that makes. */
static bool in_group(uint8_t op, uint8_t modrm)
{
	uint8_t reg = modrm >> 3 & 7;

	switch (op) {
	case 0x1f: /* 0f 1f */
		return reg == 0 && modrm < 0xc0;
	case 0xc6:
	case 0xc7:
		return reg == 0;
	case 0x8d:
		return modrm < 0xc0;
	case 0xba: /* 0f ba */
		return reg >= 4;
	case 0xf6:
	case 0xf7:
		return reg != 1;
	case 0xfe:
		return reg <= 1;
	case 0xff:
		return reg <= 2 || reg == 4 || reg == 6;
	default: /* shifts */
		return reg != 6;
	}
}

/* ModRM and what it brings along; 0: cut. */
static size_t operand_len(const uint8_t *code, size_t len)
{
	uint8_t mod = code[0] >> 6, rm = code[0] & 7;
	size_t n = 1;

	if (mod == 3)
		return n;
	if (rm == 4) {
		if (len < 2)
			return 0;
		rm = code[n++] & 7;
	}
	if (mod == 0)
		return rm == 5 ? n + 4 : n;
	return n + (mod == 1 ? 1 : 4);
}

struct quick {
	unsigned int shape;
	size_t at;     /* behind what is read */
	uint8_t op;    /* the last byte of the opcode */
	uint8_t modrm; /* where there is one */
	bool second;   /* the opcode is behind 0f */
	bool half;     /* operands of 16 bits */
	bool whole;    /* of 64 */
};

static bool read_opcode(struct quick *q, const uint8_t *code, size_t len)
{
	unsigned int prefix = BARE;
	uint8_t rex = 0;

	if (code[0] == 0x66 || code[0] == 0xf2 || code[0] == 0xf3) {
		prefix = code[0] == 0x66 ? OPERAND : code[0] == 0xf3 ? REP : REPNE;
		q->at++;
	}
	if (q->at < len && (code[q->at] & 0xf0) == 0x40)
		rex = code[q->at++];
	q->second = q->at < len && code[q->at] == 0x0f;
	q->at += q->second;
	if (q->at >= len)
		return false;
	q->op = code[q->at++];
	q->shape = q->second ? shape_of_0f(q->op) : shape_of(q->op);
	q->whole = (rex & 8) != 0;
	q->half = prefix == OPERAND && !q->whole;
	return (q->shape & prefix) && !(rex && (q->shape & (FLOW | MODRM)) == FLOW);
}

static size_t number_len(const struct quick *q)
{
	/* Of the group of test, not, neg, … test alone has one. */
	bool test = !q->second && (q->op == 0xf6 || q->op == 0xf7) && !(q->modrm >> 3 & 7);

	if ((q->shape & IMM8) || (test && q->op == 0xf6))
		return 1;
	if (!(q->shape & IMM) && !test)
		return 0;
	if (q->whole && (q->shape & (IMM | MODRM)) == IMM && q->op >= 0xb8 && q->op <= 0xbf)
		return 8; /* movabs */
	return q->half ? 2 : 4;
}

static bool read_operands(struct quick *q, const uint8_t *code, size_t len)
{
	if (q->shape & MODRM) {
		size_t n;

		if (q->at >= len)
			return false;
		q->modrm = code[q->at];
		n = operand_len(code + q->at, len - q->at);
		if (!n || ((q->shape & GROUP) && !in_group(q->op, q->modrm)))
			return false;
		q->at += n;
	}
	q->at += number_len(q);
	return q->at <= len;
}

static void lead(enum insn_flow flow, const struct quick *q, const uint8_t *code, struct insn *out)
{
	const uint8_t *end = code + q->at;
	int32_t by = (int8_t)end[-1];

	if (q->shape & IMM)
		by = (int32_t)((uint32_t)end[-4] | (uint32_t)end[-3] << 8 |
			       (uint32_t)end[-2] << 16 | (uint32_t)end[-1] << 24);
	out->flow = (uint8_t)flow;
	out->target = out->vaddr + q->at + (uint64_t)(int64_t)by;
}

static void set_flow(const struct quick *q, const uint8_t *code, struct insn *out)
{
	uint8_t reg = q->modrm >> 3 & 7;

	if (q->second) {
		if (q->op == 0x0b)
			out->flow = INSN_TRAP;
		else if (q->op == 0x1f)
			out->kinds = INSN_PADDING;
		else
			lead(INSN_BRANCH, q, code, out);
		return;
	}
	switch (q->op) {
	case 0x90:
	case 0xcc:
		out->flow = q->op == 0x90 ? INSN_PLAIN : INSN_TRAP;
		out->kinds = INSN_PADDING;
		break;
	case 0xc3:
		out->flow = INSN_RETURN;
		break;
	case 0xe8:
		lead(INSN_CALL, q, code, out);
		break;
	case 0xe9:
	case 0xeb:
		lead(INSN_JUMP, q, code, out);
		break;
	case 0xff:
		out->flow = reg == 2   ? INSN_INDIRECT_CALL
			    : reg == 4 ? INSN_INDIRECT_JUMP
				       : INSN_PLAIN;
		break;
	default:
		lead(INSN_BRANCH, q, code, out);
	}
}

bool insn_x86_quick(const uint8_t *code, size_t len, struct insn *out)
{
	struct quick q = { 0 };

	if (!read_opcode(&q, code, len) || !read_operands(&q, code, len))
		return false;
	out->len = (uint8_t)q.at;
	if (q.shape & FLOW)
		set_flow(&q, code, out);
	return true;
}
