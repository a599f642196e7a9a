/* SPDX-License-Identifier: BSD-2-Clause */
/* aarch64's vector unit: scalar floating point, Advanced SIMD and SVE, by the manual's C4. */
#include "aarch64.h"

/* ---- scalar floating point ----------------------------------------------------------------- */

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

/* ---- Advanced SIMD: elements of vectors, or one element ------------------------------------ */

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

void insn_aarch64_vector(uint32_t w, struct insn *out)
{
	out->kinds |= INSN_VECTOR;
	if ((w & 0x5e000000) == 0x1e000000) {
		decode_scalar_fp(w, out);
	} else if (!bits(w, 31, 1)) {
		decode_simd(w, out);
	} else { /* eor3, sha512h, … */
		out->reads.vector |= vector_at(w, AT_RN) | vector_at(w, AT_RM);
		out->writes.vector |= vector_at(w, AT_RD);
	}
}

/* ---- SVE ----------------------------------------------------------------------------------- */

static bool is_sve_prefetch(uint32_t w)
{
	return (w & 0xffc08010) == 0x85c00000 || (w & 0xfe60c010) == 0x8400c000 ||
	       (w & 0xffa08010) == 0x84200000 || (w & 0xfe60e010) == 0xc400e000 ||
	       (w & 0xffe08010) == 0xc4608000 || (w & 0xffa08010) == 0xc4200000;
}

/* What form of address it is; addresses that a vector holds have no base. */
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

/* Of registers only those that loops count addresses by: cntw, incw, addvl, rdvl, cntp, incp. */
void insn_aarch64_sve(uint32_t w, struct insn *out)
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
