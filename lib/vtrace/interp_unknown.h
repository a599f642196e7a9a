/* SPDX-License-Identifier: BSD-2-Clause */
/* Part of interp.h: which bytes of a result are unknown, where those of the operands are. */
#ifndef DCPI_VTRACE_INTERP_UNKNOWN_H
#define DCPI_VTRACE_INTERP_UNKNOWN_H

#include "interp_flags.h"
#include "interp_math.h"

VTRACE_INLINE bool vtrace_reads_carry(uint8_t op)
{
	return op == VTRACE_ADC || op == VTRACE_SBB || op == VTRACE_SBC;
}

/* Flags that the bytes of the result decide alone. */
VTRACE_INLINE bool vtrace_is_by_result(uint8_t set)
{
	return set == VTRACE_SET_LOGIC || set == VTRACE_SET_EMPTY;
}

/* Is one of the bytes unknown that @u looks at? @unknown: those of both operands. */
VTRACE_INLINE bool vtrace_needs(const struct vtrace_uop *u, uint8_t unknown)
{
	switch (u->op) {
	case VTRACE_TAINT_MEMORY:
		return unknown;
	case VTRACE_SEXT:
	case VTRACE_FP_TO_INT:
		return unknown & vtrace_bytes(u->x & 15, 0);
	case VTRACE_FP_WIDEN:
		return unknown & 15;
	case VTRACE_LANE_MASK:
		return unknown >> (u->x >> 3 & 7) & 1;
	default:
		return unknown & vtrace_bytes(u->w, 0);
	}
}

/* Sign-extended from @w bytes. */
VTRACE_INLINE uint8_t vtrace_sign_unknown(uint8_t unknown, uint8_t w)
{
	uint32_t own = vtrace_bytes(w, 0);

	return (uint8_t)((unknown & own) | (unknown >> (w - 1) & 1 ? ~own : 0));
}

/* The bytes of @v that are 0. */
VTRACE_INLINE uint8_t vtrace_zeros(uint64_t v)
{
	return (uint8_t)vtrace_signs(vtrace_lane(VTRACE_LANE_EQ, v, 0, 1), 1);
}

/* A byte of 0 makes one of 0 by and, and all ones by or make all ones, whatever the other is. */
VTRACE_INLINE uint8_t vtrace_unknown_logic(uint8_t op, uint64_t a, uint64_t b, uint8_t ua,
					   uint8_t ub)
{
	uint8_t decided;

	if (op == VTRACE_XOR)
		return ua | ub;
	a = op == VTRACE_OR ? ~a : a;
	b = op == VTRACE_AND ? b : ~b;
	decided = (vtrace_zeros(a) & ~ua) | (vtrace_zeros(b) & ~ub);
	return (ua | ub) & ~decided;
}

/* Unknown bits after a shift by a known number. */
VTRACE_INLINE uint8_t vtrace_unknown_shift(uint8_t op, uint8_t ua, uint64_t n, uint8_t w)
{
	uint64_t bits = vtrace_shift(op, vtrace_spread(ua & vtrace_bytes(w, 0)), n, w);

	return (uint8_t)~vtrace_zeros(bits);
}

VTRACE_INLINE uint8_t vtrace_unknown_lanes(uint8_t unknown, uint8_t w)
{
	if (w >= 2)
		unknown |= (unknown >> 1 & 0x55) | (unknown << 1 & 0xaa);
	if (w >= 4)
		unknown |= (unknown >> 2 & 0x33) | (unknown << 2 & 0xcc);
	return w == 8 && unknown ? 0xff : unknown;
}

/* Unknown bits of the result of @u, whose operands have the values @a and @b. */
VTRACE_INLINE uint8_t vtrace_unknown(const struct vtrace_state *s, const struct vtrace_uop *u,
				     uint64_t a, uint64_t b, uint8_t ua, uint8_t ub)
{
	uint8_t all = ua | ub, x = u->x & 7;
	uint32_t own = vtrace_bytes(u->w, 0);

	switch (u->op) {
	case VTRACE_INS:
		return (uint8_t)((s->unknown[u->dst] & ~(own << x)) | (ua & own) << x);
	case VTRACE_LANE_SIGNS:
		return s->unknown[u->dst] | (ua ? (uint8_t)(1 << (u->x >> 3 & 7)) : 0);
	case VTRACE_LANE_PICK:
		return s->unknown[u->dst] | (all ? 0xff : 0);
	case VTRACE_SELECT:
		return vtrace_cc_unknown(s, u->set)	   ? 0xff
		       : vtrace_cc_holds(s->flags, u->set) ? ua
							   : ub;
	case VTRACE_SETCC:
		return vtrace_cc_unknown(s, u->set) ? 0xff : 0;
	default:
		break;
	}
	if (vtrace_reads_carry(u->op) && s->flags_unknown & VTRACE_C)
		return 0xff;
	if (!all)
		return 0;
	switch (u->op) {
	case VTRACE_MOV:
		return ua;
	case VTRACE_EXT:
		return ua >> x;
	case VTRACE_SEXT:
		return vtrace_sign_unknown(ua, u->x & 15);
	case VTRACE_AND:
	case VTRACE_ANDN:
	case VTRACE_OR:
	case VTRACE_XOR:
		return vtrace_unknown_logic(u->op, a, b, ua, ub);
	case VTRACE_SHL:
	case VTRACE_SHR:
		return ub ? 0xff : vtrace_unknown_shift(u->op, ua, b, u->w);
	case VTRACE_LANE_ANY:
		return ub ? 0xff : ua;
	case VTRACE_LANE_EQ:
	case VTRACE_LANE_GT:
	case VTRACE_LANE_ADD:
	case VTRACE_LANE_SUB:
	case VTRACE_LANE_MINU:
	case VTRACE_LANE_MAXU:
		return vtrace_unknown_lanes(all, u->w);
	case VTRACE_ZIP_LOW:
	case VTRACE_ZIP_HIGH:
		return 0xff;
	default:
		return vtrace_needs(u, all) ? 0xff : 0;
	}
}

#endif
