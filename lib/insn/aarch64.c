/* SPDX-License-Identifier: BSD-2-Clause */
/* aarch64, from the encodings of the Arm Architecture Reference Manual, C4. */
#include "insn.h"
#include "machine.h"

enum { AT_RD = 0, AT_RN = 5, AT_RA = 10, AT_RM = 16 };

static inline uint32_t bits(uint32_t w, unsigned int at, unsigned int nr)
{
	return w >> at & ((1u << nr) - 1);
}

/* Register 31 is zero, or the stack pointer: neither is waited for. */
static inline uint64_t gpr(uint32_t n)
{
	return n < 31 ? 1ull << n : 0;
}

static inline uint64_t gpr_at(uint32_t w, unsigned int at)
{
	return gpr(bits(w, at, 5));
}

static inline uint64_t vector_at(uint32_t w, unsigned int at)
{
	return 1ull << bits(w, at, 5);
}

/* ---- the vector unit ------------------------------------------------------------------------- */

/* ---- scalar floating point ------------------------------------------------------------------- */

/* Between a general register and one of floating point: conversions, and fmov. */
static void decode_fp_general(uint32_t w, struct insn *out)
{
	uint32_t op = bits(w, 16, 3);
	bool from_gpr = op == 2 || op == 3 || op == 7;
	bool moved = op >= 6 && bits(w, 19, 2) != 3; /* else fjcvtzs */

	out->kinds |= moved ? 0 : INSN_FP;
	if (from_gpr) {
		out->reads.gpr |= gpr_at(w, AT_RN);
		out->writes.vector |= vector_at(w, AT_RD);
	} else {
		out->reads.vector |= vector_at(w, AT_RN);
		out->writes.gpr |= gpr_at(w, AT_RD);
	}
}

/* fcmp, or fccmp, which compares if the flags say so. */
static void decode_fp_compare(uint32_t w, bool conditional, struct insn *out)
{
	bool with_zero = !conditional && bits(w, 3, 1);

	out->kinds |= INSN_FP;
	out->reads.vector |= vector_at(w, AT_RN) | (with_zero ? 0 : vector_at(w, AT_RM));
	out->reads.gpr |= conditional ? INSN_FLAGS : 0;
	out->writes.gpr |= INSN_FLAGS;
}

static void decode_fp_one_source(uint32_t w, struct insn *out)
{
	uint32_t op = bits(w, 15, 6);

	out->reads.vector |= vector_at(w, AT_RN);
	if (op == 3) /* fsqrt */
		out->kinds |= INSN_FP | INSN_FP_DIVIDE;
	else if (op) /* all but fmov */
		out->kinds |= INSN_FP;
}

static void decode_scalar_fp(uint32_t w, struct insn *out)
{
	uint32_t group = bits(w, 10, 2);

	if (!bits(w, 24, 1) && (!bits(w, 21, 1) || bits(w, 10, 6) == 0)) {
		decode_fp_general(w, out);
		return;
	}
	if (!bits(w, 24, 1) && (group == 1 || bits(w, 10, 4) == 8)) {
		decode_fp_compare(w, group == 1, out);
		return;
	}
	out->writes.vector |= vector_at(w, AT_RD);
	if (bits(w, 24, 1)) { /* fmadd, … */
		out->kinds |= INSN_FP;
		out->reads.vector |= vector_at(w, AT_RN) | vector_at(w, AT_RM);
		out->reads.vector |= vector_at(w, AT_RA);
	} else if (group == 2) { /* two operands */
		out->kinds |= bits(w, 12, 4) == 1 ? INSN_FP | INSN_FP_DIVIDE : INSN_FP;
		out->reads.vector |= vector_at(w, AT_RN) | vector_at(w, AT_RM);
	} else if (group == 3) { /* fcsel */
		out->reads.vector |= vector_at(w, AT_RN) | vector_at(w, AT_RM);
		out->reads.gpr |= INSN_FLAGS;
	} else if (bits(w, 10, 5) == 16) {
		decode_fp_one_source(w, out);
	} /* else fmov of a number */
}

/* ---- Advanced SIMD: elements of vectors, or one element -------------------------------------- */

/* Two vectors of one kind. */
static uint16_t three_same_kinds(uint32_t w)
{
	uint32_t op = bits(w, 11, 5);

	if ((w & 0x20a0f800) == 0x2020f800) /* fdiv */
		return INSN_FP | INSN_FP_DIVIDE;
	if (op >= 24)
		return INSN_FP;
	return op == 18 || op == 19 || op == 22 ? INSN_MULTIPLY : 0; /* mla, mul, sqdmulh */
}

/* One vector; its elements one by one, in pairs, or all together. */
static uint16_t one_source_kinds(uint32_t w)
{
	uint32_t group = bits(w, 17, 4), op = bits(w, 12, 5);
	bool across = group == 8, half = group == 12;

	if (group && !across && !half)
		return 0; /* aes, sha */
	if ((w & 0x2081fc00) == 0x2081f800 && !across)
		return INSN_FP | INSN_FP_DIVIDE; /* fsqrt */
	return op >> 2 == 3 || (op >= 22 && !across) ? INSN_FP : 0;
}

/* A vector and one element of another: all multiply. */
static uint16_t by_element_kinds(uint32_t w)
{
	uint32_t op = bits(w, 12, 4);
	uint32_t fp = bits(w, 29, 1) ? 0x13aa : 0x0233;

	if (!bits(w, 29, 1) && op == 15) /* bfdot, bfmlal; else sudot, usdot */
		return bits(w, 22, 1) ? INSN_FP : INSN_MULTIPLY;
	return fp >> op & 1 ? INSN_FP : INSN_MULTIPLY;
}

/* Elements of 16 bits are of the first 16 registers. */
static uint64_t element_at(uint32_t w)
{
	uint32_t op = bits(w, 29, 1) << 4 | bits(w, 12, 4);
	bool half;

	switch (bits(w, 22, 2)) {
	case 0:
		half = op != 0x0f; /* sudot */
		break;
	case 1:
		half = op != 0x0f && (op & 0x19) != 0x11; /* bfdot, fcmla */
		break;
	case 2:
		half = (op & 0x1b) == 0 || (op & 0x1b) == 0x18; /* fmlal, fmlal2 */
		break;
	default:
		half = op == 0x0f; /* bfmlal */
	}
	return 1ull << bits(w, AT_RM, half ? 4 : 5);
}

/* dup, ins, umov, smov */
static void decode_copy(uint32_t w, struct insn *out)
{
	uint32_t op = bits(w, 11, 4);
	bool elements = bits(w, 29, 1) || bits(w, 28, 1);

	if (!elements && (op == 1 || op == 3))
		out->reads.gpr |= gpr_at(w, AT_RN);
	else
		out->reads.vector |= vector_at(w, AT_RN);
	if (!elements && (op == 5 || op == 7))
		out->writes.gpr |= gpr_at(w, AT_RD);
	else
		out->writes.vector |= vector_at(w, AT_RD);
}

/* With bit 24: by element, shifts by a number, numbers. */
static void decode_element_or_number(uint32_t w, struct insn *out)
{
	uint32_t op = bits(w, 11, 5);

	out->writes.vector |= vector_at(w, AT_RD);
	if (!bits(w, 10, 1)) {
		out->kinds |= by_element_kinds(w);
		out->reads.vector |= vector_at(w, AT_RN) | element_at(w);
	} else if (bits(w, 19, 4)) {
		out->kinds |= op == 28 || op == 31 ? INSN_FP : 0; /* scvtf, fcvtzs */
		out->reads.vector |= vector_at(w, AT_RN);
	} else if (!bits(w, 15, 1) || !bits(w, 14, 1)) { /* orr and bic keep the rest, movi not */
		out->reads.vector |= bits(w, 12, 1) ? vector_at(w, AT_RD) : 0;
	}
}

static void decode_simd(uint32_t w, struct insn *out)
{
	bool full = bits(w, 21, 1), extra = !full && bits(w, 15, 1) && bits(w, 10, 1);
	uint32_t group = bits(w, 10, 2), op = bits(w, 12, 4);

	if (bits(w, 24, 1)) {
		decode_element_or_number(w, out);
		return;
	}
	if ((w & 0x00e08400) == 0x00000400) {
		decode_copy(w, out);
		return;
	}
	out->reads.vector |= vector_at(w, AT_RN);
	out->writes.vector |= vector_at(w, AT_RD);
	if (full && group == 2) {
		out->kinds |= one_source_kinds(w);
		return;
	}
	out->reads.vector |= vector_at(w, AT_RM);
	if (extra) /* dot products, complex numbers, matrices */
		out->kinds |= bits(w, 14, 1) ? INSN_FP : INSN_MULTIPLY;
	else if (full && group == 0) /* long ones: smlal, smull, … */
		out->kinds |= op >= 8 && op < 15 ? INSN_MULTIPLY : 0;
	else if (full)
		out->kinds |= three_same_kinds(w);
	else if ((w & 0x0060c400) == 0x00400400) /* elements of 16 bits */
		out->kinds |= (w & 0x20803800) == 0x20003800 ? INSN_FP | INSN_FP_DIVIDE : INSN_FP;
}

/* Floating point with Advanced SIMD, and SVE, for aarch64.c (aarch64_vector.c). */
static void insn_aarch64_vector(uint32_t w, struct insn *out)
{
	out->kinds |= INSN_VECTOR;
	if ((w & 0x5e000000) == 0x1e000000) {
		decode_scalar_fp(w, out);
	} else if (!bits(w, 31, 1)) {
		decode_simd(w, out);
	} else { /* eor3, sha512h, … */
		out->reads.vector |= vector_at(w, AT_RN) | vector_at(w, AT_RM);
		if ((w & 0x00808000) == 0) /* eor3, bcax, sm3ss1 */
			out->reads.vector |= vector_at(w, AT_RA);
		out->writes.vector |= vector_at(w, AT_RD);
	}
}

/* ---- SVE ------------------------------------------------------------------------------------- */

static bool is_sve_prefetch(uint32_t w)
{
	return (w & 0xffc08010) == 0x85c00000 || (w & 0xfe60c010) == 0x8400c000 ||
	       (w & 0xffa08010) == 0x84200000 || (w & 0xfe60e010) == 0xc400e000 ||
	       (w & 0xffe08010) == 0xc4608000 || (w & 0xffa08010) == 0xc4200000;
}

/* The form of address; addresses held in a vector have no base. */
static void decode_sve_address(uint32_t w, struct insn *out)
{
	uint32_t kind = bits(w, 29, 3), form = bits(w, 13, 3);
	bool one = (w & 0x7fc00000) == 0x65800000; /* str of a whole register */
	bool vectors = kind == 7   ? form == 1 || (form == 5 && bits(w, 22, 1))
		       : kind == 5 ? false
				   : !bits(w, 22, 1) && bits(w, 15, 1);
	bool index = kind == 5	 ? form == 0 || form == 2 || form == 3 || form == 6
		     : kind == 7 ? (form == 2 && !one) || form == 3
				 : false;

	if (!vectors) {
		out->base = (uint8_t)bits(w, AT_RN, 5);
		out->reads.gpr |= gpr_at(w, AT_RN);
	}
	if (index) {
		out->index = (uint8_t)bits(w, AT_RM, 5);
		out->reads.gpr |= gpr_at(w, AT_RM);
	}
}

static void decode_sve_memory(uint32_t w, struct insn *out)
{
	bool load = bits(w, 29, 3) != 7;
	bool predicate = (w & 0x7fc0e000) == (load ? 0x05800000 : 0x65800000);

	if (is_sve_prefetch(w))
		return;
	out->kinds |= load ? INSN_LOAD : INSN_STORE;
	decode_sve_address(w, out);
	if (predicate)
		return;
	if (load)
		out->writes.vector |= vector_at(w, AT_RD);
	else
		out->reads.vector |= vector_at(w, AT_RD);
}

/* Multiplications and divisions of integers. */
static uint16_t sve_integer_kinds(uint32_t w)
{
	if ((w & 0xff38e000) == 0x04100000) /* mul, smulh; sdiv, udiv */
		return bits(w, 18, 1) ? INSN_DIVIDE : INSN_MULTIPLY;
	if ((w & 0xff204000) == 0x04004000 || (w & 0xff20e000) == 0x04206000 ||
	    (w & 0xff3fe000) == 0x2530c000) /* mla, mul, mul by a number */
		return INSN_MULTIPLY;
	if ((w & 0xff208000) == 0x44000000 || (w & 0xff200000) == 0x44200000) /* sdot, mul */
		return INSN_MULTIPLY;
	if ((w & 0xff20e000) == 0x45006000 || (w & 0xff20fc00) == 0x45009800) /* smull, smmla */
		return INSN_MULTIPLY;
	return 0;
}

/*
 * Decode only the register forms that loops count addresses by: cntw, incw, addvl, rdvl, cntp,
 * incp.
 */
static void insn_aarch64_sve(uint32_t w, struct insn *out)
{
	uint32_t top = w >> 24;

	out->kinds |= INSN_VECTOR;
	if (w >> 31) {
		decode_sve_memory(w, out);
	} else if (top == 0x64 || top == 0x65 || (w & 0xff3ee000) == 0x041ca000) { /* fabs, fneg */
		out->kinds |= INSN_FP;
		if ((w & 0xff3ee000) == 0x650c8000 || (w & 0xff3fe000) == 0x650da000)
			out->kinds |= INSN_FP_DIVIDE; /* fdiv, fsqrt */
	} else {
		out->kinds |= sve_integer_kinds(w);
	}
	if ((w & 0xff20e000) == 0x0420e000 || (w & 0xff20f000) == 0x04205000 ||
	    (w & 0xff38c000) == 0x25208000 || (w & 0xff38f800) == 0x25288800)
		out->writes.gpr |= gpr_at(w, AT_RD);
}

/* ---- the other instructions ------------------------------------------------------------------ */

static int64_t field(uint32_t w, unsigned int at, unsigned int bits)
{
	return (int32_t)(w << (32 - at - bits)) >> (32 - bits);
}

static uint64_t to(uint64_t vaddr, int64_t distance)
{
	return vaddr + (uint64_t)(distance * 4);
}

/* ---- branches -------------------------------------------------------------------------------- */

static void decode_register_branch(uint32_t w, struct insn *out)
{
	uint32_t op = bits(w, 21, 4);

	out->reads.gpr |= gpr_at(w, AT_RN);
	if (op == 0 || op == 8)
		out->flow = INSN_INDIRECT_JUMP;
	else if (op == 1 || op == 9)
		out->flow = INSN_INDIRECT_CALL;
	else
		out->flow = INSN_RETURN;
	if (out->flow == INSN_INDIRECT_CALL)
		out->writes.gpr |= gpr(30);
}

static void decode_system(uint32_t w, struct insn *out)
{
	if ((w & 0xff000000) == 0xd4000000) { /* svc, hvc, brk, hlt, … */
		out->kinds = INSN_SERIALIZE;
		if ((w & 0xffe0001f) == 0xd4200000 || (w & 0xffe0001f) == 0xd4400000)
			out->flow = INSN_TRAP;
	} else if (w == 0xd503201f) {
		out->kinds = INSN_PADDING;
	} else if ((w & 0xfffff01f) == 0xd503301f) { /* dmb, dsb, isb, … */
		out->kinds = bits(w, 5, 3) == 6 ? INSN_SERIALIZE : INSN_BARRIER;
	} else if ((w & 0xfff00000) == 0xd5300000) { /* mrs */
		out->writes.gpr = gpr_at(w, AT_RD);
	} else if ((w & 0xfff00000) == 0xd5100000) { /* msr */
		out->reads.gpr = gpr_at(w, AT_RD);
	}
}

static void decode_branch(uint32_t w, struct insn *out)
{
	if ((w & 0x7c000000) == 0x14000000) { /* b, bl */
		out->flow = w >> 31 ? INSN_CALL : INSN_JUMP;
		out->target = to(out->vaddr, field(w, 0, 26));
		out->writes.gpr = w >> 31 ? gpr(30) : 0;
	} else if ((w & 0xfe000000) == 0x54000000) { /* b.cond; condition 14, 15: always */
		out->flow = (w & 15) >= 14 ? INSN_JUMP : INSN_BRANCH;
		out->target = to(out->vaddr, field(w, 5, 19));
		out->reads.gpr = INSN_FLAGS;
	} else if ((w & 0x7e000000) == 0x34000000) { /* cbz, cbnz */
		out->flow = INSN_BRANCH;
		out->target = to(out->vaddr, field(w, 5, 19));
		out->reads.gpr = gpr_at(w, AT_RD);
	} else if ((w & 0x7e000000) == 0x36000000) { /* tbz, tbnz */
		out->flow = INSN_BRANCH;
		out->target = to(out->vaddr, field(w, 5, 14));
		out->reads.gpr = gpr_at(w, AT_RD);
	} else if ((w & 0xfe000000) == 0xd6000000) {
		decode_register_branch(w, out);
	} else {
		decode_system(w, out);
	}
}

/* ---- loads and stores ------------------------------------------------------------------------ */

static void add_value(uint32_t w, unsigned int at, bool load, bool vector, struct insn *out)
{
	struct insn_registers *set = load ? &out->writes : &out->reads;

	if (vector)
		set->vector |= vector_at(w, at);
	else
		set->gpr |= gpr_at(w, at);
}

static void decode_pair(uint32_t w, bool vector, struct insn *out)
{
	bool load = bits(w, 22, 1);

	out->kinds |= load ? INSN_LOAD : INSN_STORE;
	add_value(w, AT_RD, load, vector, out);
	add_value(w, AT_RA, load, vector, out);
	if (bits(w, 23, 1)) /* the address is written back */
		out->writes.gpr |= gpr_at(w, AT_RN);
}

/* casp compares and swaps pairs of registers, of which the number is the first's. */
static void decode_swap(uint32_t w, struct insn *out)
{
	bool pair = !bits(w, 23, 1);
	uint64_t compared = gpr_at(w, AT_RM), stored = gpr_at(w, AT_RD);

	if (pair) {
		compared |= gpr(bits(w, AT_RM, 5) + 1);
		stored |= gpr(bits(w, AT_RD, 5) + 1);
	}
	out->kinds |= INSN_ATOMIC | INSN_LOAD | INSN_STORE;
	out->reads.gpr |= compared | stored;
	out->writes.gpr |= compared;
}

static void decode_exclusive(uint32_t w, struct insn *out)
{
	bool load = bits(w, 22, 1), ordered_only = bits(w, 23, 1), two = bits(w, 21, 1);

	if (two && (bits(w, 23, 1) || !bits(w, 31, 1))) { /* cas, casp */
		decode_swap(w, out);
		return;
	}
	out->kinds |= load ? INSN_LOAD : INSN_STORE;
	if (!ordered_only)
		out->kinds |= INSN_ATOMIC;
	add_value(w, AT_RD, load, false, out);
	if (two)
		add_value(w, AT_RA, load, false, out);
	if (!ordered_only && !load)
		out->writes.gpr |= gpr_at(w, AT_RM); /* the status */
}

/* ldadd, swp, …, and ldapr, which stands among these. */
static void decode_atomic(uint32_t w, struct insn *out)
{
	out->writes.gpr |= gpr_at(w, AT_RD);
	if ((w & 0x3ffffc00) == 0x38bfc000) {
		out->kinds |= INSN_LOAD;
		return;
	}
	out->kinds |= INSN_ATOMIC | INSN_LOAD | INSN_STORE;
	out->reads.gpr |= gpr_at(w, AT_RM);
}

static void decode_one_register(uint32_t w, bool vector, struct insn *out)
{
	uint32_t opc = bits(w, 22, 2), unsigned_offset = bits(w, 24, 1);
	uint32_t group = unsigned_offset ? 0 : bits(w, 21, 1) << 2 | bits(w, 10, 2);
	bool load = vector ? opc & 1 : opc != 0;

	if (group == 4) {
		decode_atomic(w, out);
		return;
	}
	if (group == 5 || group == 7) /* ldraa, ldrab */
		load = true;
	else if (!vector && bits(w, 30, 2) == 3 && opc == 2)
		return; /* prfm */
	out->kinds |= load ? INSN_LOAD : INSN_STORE;
	add_value(w, AT_RD, load, vector, out);
	if (group == 6) {
		out->index = (uint8_t)bits(w, AT_RM, 5);
		out->reads.gpr |= gpr_at(w, AT_RM);
	} else if (group == 1 || group == 3 || group == 7) {
		out->writes.gpr |= gpr_at(w, AT_RN);
	}
}

static void decode_memory(uint32_t w, struct insn *out)
{
	bool vector = bits(w, 26, 1);

	if (vector)
		out->kinds |= INSN_VECTOR;
	if ((w & 0x3b000000) == 0x18000000) { /* from beside the code */
		out->kinds |= INSN_LOAD;
		add_value(w, AT_RD, true, vector, out);
		return;
	}
	out->base = (uint8_t)bits(w, AT_RN, 5);
	out->reads.gpr |= gpr_at(w, AT_RN);
	if ((w & 0x3a000000) == 0x28000000)
		decode_pair(w, vector, out);
	else if ((w & 0x3f000000) == 0x08000000)
		decode_exclusive(w, out);
	else if ((w & 0xbf000000) == 0x0c000000 || (w & 0xbf000000) == 0x0d000000) {
		out->kinds |= bits(w, 22, 1) ? INSN_LOAD : INSN_STORE; /* ld1 to st4 */
		add_value(w, AT_RD, bits(w, 22, 1), true, out);
		if (bits(w, 23, 1)) { /* the address is written back */
			out->reads.gpr |= gpr_at(w, AT_RM);
			out->writes.gpr |= gpr_at(w, AT_RN);
		}
	} else if ((w & 0x3a000000) == 0x38000000)
		decode_one_register(w, vector, out);
	else if ((w & 0x3f200c00) == 0x19000000) { /* ldapur, stlur */
		bool load = bits(w, 22, 2);

		out->kinds |= load ? INSN_LOAD : INSN_STORE;
		add_value(w, AT_RD, load, false, out);
	}
}

/* ---- computation ----------------------------------------------------------------------------- */

static void decode_immediate(uint32_t w, struct insn *out)
{
	uint32_t op = bits(w, 23, 3);

	out->writes.gpr |= gpr_at(w, AT_RD);
	if (op >= 2 && op != 5)
		out->reads.gpr |= gpr_at(w, AT_RN);
	if (op == 7) /* extr */
		out->reads.gpr |= gpr_at(w, AT_RM);
	if (op == 5 && bits(w, 29, 2) == 3) /* movk keeps the rest */
		out->reads.gpr |= gpr_at(w, AT_RD);
	if (op == 6 && bits(w, 29, 2) == 1) /* bfm too */
		out->reads.gpr |= gpr_at(w, AT_RD);
	if (((op == 2 || op == 3) && bits(w, 29, 1)) || (op == 4 && bits(w, 29, 2) == 3))
		out->writes.gpr |= INSN_FLAGS;
}

static void decode_register(uint32_t w, struct insn *out)
{
	uint32_t op = bits(w, 21, 8);			   /* with bit 28 */
	bool conditional = (w & 0x1fe00000) == 0x1a400000; /* ccmp, with a register or a number */
	bool one_source = (w & 0x5fe00000) == 0x5ac00000;  /* clz, rbit, … */

	out->reads.gpr |= gpr_at(w, AT_RN);
	if (!one_source && !(conditional && bits(w, 11, 1)))
		out->reads.gpr |= gpr_at(w, AT_RM);
	out->writes.gpr |= gpr_at(w, AT_RD);
	if ((w & 0x1f000000) == 0x1b000000) { /* madd, … */
		out->kinds |= INSN_MULTIPLY;
		out->reads.gpr |= gpr_at(w, AT_RA);
	} else if ((w & 0x5fe00000) == 0x1ac00000 && bits(w, 11, 5) == 1) {
		out->kinds |= INSN_DIVIDE;
	} else if (conditional) {
		out->writes.gpr = INSN_FLAGS;
		out->reads.gpr |= INSN_FLAGS;
	} else if ((w & 0x1fe00000) == 0x1a800000 || (w & 0x1fe00000) == 0x1a000000) {
		out->reads.gpr |= INSN_FLAGS; /* csel, adc */
	}
	if (((op & 0xf8) == 0x58 || (op & 0xf0) == 0xd0) && bits(w, 29, 1))
		out->writes.gpr |= INSN_FLAGS;
	if ((w & 0x1f000000) == 0x0b000000 && bits(w, 29, 1))
		out->writes.gpr |= INSN_FLAGS;
	if ((w & 0x7f000000) == 0x6a000000)
		out->writes.gpr |= INSN_FLAGS;
}

static bool decode_word(uint32_t w, struct insn *out)
{
	switch (bits(w, 25, 4)) {
	case 8:
	case 9:
		decode_immediate(w, out);
		return true;
	case 10:
	case 11:
		decode_branch(w, out);
		return true;
	case 4:
	case 6:
	case 12:
	case 14:
		decode_memory(w, out);
		return true;
	case 5:
	case 13:
		decode_register(w, out);
		return true;
	case 7:
	case 15:
		insn_aarch64_vector(w, out);
		return true;
	case 2:
		insn_aarch64_sve(w, out);
		return true;
	case 0: /* SME, of which no more is known; below it udf, and above what is not given out */
		out->kinds |= INSN_VECTOR;
		return w >> 31;
	default:
		return false;
	}
}

/* ---- what it computes ------------------------------------------------------------------------ */

static void op_add_extended(uint32_t w, struct insn_op *out)
{
	uint32_t option = bits(w, 13, 3);

	out->known = bits(w, 29, 2) == 0 && bits(w, 10, 3) <= 4;
	out->a = (uint8_t)bits(w, AT_RN, 5);
	out->b = (uint8_t)bits(w, AT_RM, 5);
	out->b_size = (uint8_t)(1u << (option & 3));
	out->b_sign = option & 4;
	out->scale = (uint8_t)(1u << bits(w, 10, 3));
	out->size = w >> 31 ? 8 : 4;
}

static void op_immediate(uint32_t w, uint64_t vaddr, struct insn_op *out)
{
	uint32_t sf = bits(w, 31, 1), size = sf ? 8 : 4;
	int64_t distance = field(w, 5, 19) * 4 + bits(w, 29, 2);

	out->dst = (uint8_t)bits(w, AT_RD, 5);
	if ((w & 0x9f000000) == 0x10000000) { /* adr */
		out->known = true;
		out->disp = (int64_t)vaddr + distance;
	} else if ((w & 0x9f000000) == 0x90000000) { /* adrp */
		out->known = true;
		out->disp = (int64_t)(vaddr & ~0xfffull) + distance * 4096;
	} else if ((w & 0x1f800000) == 0x11000000) { /* add, sub */
		int64_t n = (int64_t)bits(w, 10, 12) << (bits(w, 22, 1) ? 12 : 0);

		out->size = (uint8_t)size;
		out->a = (uint8_t)bits(w, AT_RN, 5);
		out->known = !bits(w, 29, 1);
		out->compare = bits(w, 29, 2) == 3 && out->dst == 31;
		out->value = n;
		out->disp = out->compare ? 0 : bits(w, 30, 1) ? -n : n;
	} else if ((w & 0x7f800000) == 0x52800000) { /* movz */
		out->known = true;
		out->disp = (int64_t)((uint64_t)bits(w, 5, 16) << (16 * bits(w, 21, 2)));
	} else if ((w & 0x7f80fc00) == 0x53001c00 || (w & 0x7f80fc00) == 0x53003c00) {
		out->known = bits(w, 16, 6) == 0; /* uxtb, uxth */
		out->a = (uint8_t)bits(w, AT_RN, 5);
		out->size = bits(w, 10, 6) == 7 ? 1 : 2;
		out->max = (1ull << (8 * out->size)) - 1;
	} else if ((w & 0xfffffc00) == 0x93407c00) { /* sxtw */
		out->known = out->sign = true;
		out->a = (uint8_t)bits(w, AT_RN, 5);
		out->size = 4;
	} else if ((w & 0x7f800000) == 0x12000000 && !bits(w, 16, 6) && !bits(w, 22, 1)) {
		out->max = (2ull << bits(w, 10, 6)) - 1; /* and with a mask of low bits */
	}
}

static void op_register(uint32_t w, struct insn_op *out)
{
	if ((w & 0x1fe00000) == 0x1a400000) /* ccmp: its lowest bits are flags */
		return;
	out->dst = (uint8_t)bits(w, AT_RD, 5);
	if ((w & 0x7fe00000) == 0x0b200000) {
		op_add_extended(w, out);
	} else if ((w & 0x7fe00000) == 0x0b000000 && bits(w, 10, 6) <= 6) { /* add, lsl */
		out->known = true;
		out->a = (uint8_t)bits(w, AT_RN, 5);
		out->b = (uint8_t)bits(w, AT_RM, 5);
		out->scale = (uint8_t)(1u << bits(w, 10, 6));
		out->size = w >> 31 ? 8 : 4;
	} else if ((w & 0x7fe0ffe0) == 0x2a0003e0) { /* mov */
		out->known = true;
		out->a = (uint8_t)bits(w, AT_RM, 5);
		out->size = w >> 31 ? 8 : 4;
	}
}

static void op_load(uint32_t w, struct insn_op *out)
{
	uint32_t log = bits(w, 30, 2), opc = bits(w, 22, 2);

	if (bits(w, 26, 1) || !opc || (w & 0x3a000000) != 0x38000000)
		return; /* instructions that write two registers leave dst alone: see insn.writes */
	if (!bits(w, 24, 1) && !(bits(w, 21, 1) && bits(w, 10, 2) == 2))
		return;
	out->dst = (uint8_t)bits(w, AT_RD, 5);
	out->known = out->load = true;
	out->size = (uint8_t)(1u << log);
	out->sign = opc >= 2;
	out->a = (uint8_t)bits(w, AT_RN, 5);
	if (!out->sign && log < 2)
		out->max = (1ull << (8u << log)) - 1;
	if (bits(w, 24, 1)) {
		out->disp = (int64_t)bits(w, 10, 12) << log;
		return;
	}
	out->b = (uint8_t)bits(w, AT_RM, 5);
	out->b_size = bits(w, 13, 1) ? 8 : 4;
	out->b_sign = bits(w, 15, 1);
	out->scale = (uint8_t)(1u << (bits(w, 12, 1) ? log : 0));
}

static void op_word(uint32_t w, uint64_t vaddr, struct insn_op *out)
{
	switch (bits(w, 25, 4)) {
	case 8:
	case 9:
		op_immediate(w, vaddr, out);
		break;
	case 4:
	case 6:
	case 12:
	case 14:
		op_load(w, out);
		break;
	case 5:
	case 13:
		op_register(w, out);
		break;
	case 10:
	case 11:
		if ((w & 0xfffffc1f) == 0xd61f0000) { /* br */
			out->dst = INSN_TARGET;
			out->known = true;
			out->a = (uint8_t)bits(w, AT_RN, 5);
		}
		break;
	default:
		break;
	}
}

static enum insn_condition condition_word(uint32_t w)
{
	if ((w & 0xff000010) != 0x54000000)
		return INSN_OTHER;
	switch (w & 15) {
	case 2:
		return INSN_ABOVE_EQUAL;
	case 3:
		return INSN_BELOW;
	case 8:
		return INSN_ABOVE;
	case 9:
		return INSN_BELOW_EQUAL;
	default:
		return INSN_OTHER;
	}
}

static int stack_move_word(uint32_t w)
{
	bool pair = (w & 0x3a0003e0) == 0x280003e0 && bits(w, 23, 1);
	bool one = (w & 0x3b2003e0) == 0x380003e0 && bits(w, 10, 1);

	if ((w & 0xff8003ff) == 0x910003ff)
		return 1; /* add sp, sp, … */
	if ((w & 0xff8003ff) == 0xd10003ff)
		return -1;
	if (pair || one) /* the address, sp, is written back */
		return bits(w, 22, 1) ? 1 : -1;
	return 0;
}

/* ---- the machine ----------------------------------------------------------------------------- */

static uint32_t word(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static bool aarch64_decode(void *state, const uint8_t *code, size_t len, struct insn *out)
{
	(void)state;
	out->len = 4;
	return len >= 4 && decode_word(word(code), out);
}

static void aarch64_op(void *state, const uint8_t *code, size_t len, uint64_t vaddr,
		       struct insn_op *out)
{
	(void)state;
	if (len >= 4)
		op_word(word(code), vaddr, out);
}

static enum insn_condition aarch64_condition(const uint8_t *code, size_t len, struct insn_op *op)
{
	(void)op;
	return len >= 4 ? condition_word(word(code)) : INSN_OTHER;
}

static int aarch64_stack_move(void *state, const uint8_t *code, size_t len)
{
	(void)state;
	return len >= 4 ? stack_move_word(word(code)) : 0;
}

static uint8_t aarch64_step(const uint8_t *code)
{
	(void)code;
	return 4;
}

const struct insn_machine insn_aarch64 = {
	.decode = aarch64_decode,
	.op = aarch64_op,
	.condition = aarch64_condition,
	.stack_move = aarch64_stack_move,
	.step = aarch64_step,
	.call_writes = INSN_FLAGS | 0x4007ffff,
};
