/* SPDX-License-Identifier: BSD-2-Clause */
/* Part of interp.h: flags and conditions. */
#ifndef DCPI_VTRACE_INTERP_FLAGS_H
#define DCPI_VTRACE_INTERP_FLAGS_H

#include "interp_state.h"

/* Without branches: nothing foresees which flags a result sets. */
VTRACE_INLINE uint8_t vtrace_parity(uint64_t v)
{
	v ^= v >> 4;
	return (0x9669 >> (v & 15) & 1) * VTRACE_P;
}

VTRACE_INLINE uint8_t vtrace_szp(uint64_t v, uint8_t w)
{
	uint64_t own = v & vtrace_mask(w);

	return (uint8_t)((~(own | -own) >> 63) * VTRACE_Z + (v >> (8 * w - 1) & 1) * VTRACE_S +
			 vtrace_parity(v));
}

VTRACE_INLINE uint8_t vtrace_cc_needs(uint8_t cc)
{
	switch (cc >> 1) {
	case 0:
		return VTRACE_O;
	case 1:
		return VTRACE_C;
	case 2:
		return VTRACE_Z;
	case 4:
		return VTRACE_S;
	case 5:
		return VTRACE_P;
	case 6:
		return VTRACE_S | VTRACE_O;
	case 7:
		return VTRACE_Z | VTRACE_S | VTRACE_O;
	default:
		return VTRACE_C | VTRACE_Z;
	}
}

VTRACE_INLINE bool vtrace_cc_holds(uint8_t flags, uint8_t cc)
{
	bool less = !(flags & VTRACE_S) != !(flags & VTRACE_O), holds;

	switch (cc >> 1) {
	case 3:
		holds = flags & (VTRACE_C | VTRACE_Z);
		break;
	case 6:
		holds = less;
		break;
	case 7:
		holds = less || flags & VTRACE_Z;
		break;
	case 8:
		holds = (flags & (VTRACE_C | VTRACE_Z)) == VTRACE_C;
		break;
	default:
		holds = flags & vtrace_cc_needs(cc);
		break;
	}
	return holds != (cc & 1);
}

VTRACE_INLINE bool vtrace_cc_unknown(const struct vtrace_state *s, uint8_t cc)
{
	return s->flags_unknown & vtrace_cc_needs(cc);
}

/* @known are set to @flags, @unknown are not known any more; the rest stays. */
VTRACE_INLINE void vtrace_flags(struct vtrace_state *s, uint8_t flags, uint8_t known,
				uint8_t unknown)
{
	s->flags = (s->flags & ~known) | (flags & known);
	s->flags_unknown = (s->flags_unknown & ~known) | unknown;
}

/* Carry and overflow of a sum, of which @v is the result. */
VTRACE_INLINE uint8_t vtrace_sum_flags(uint64_t a, uint64_t b, uint64_t v, uint8_t w)
{
	unsigned int top = 8 * w - 1;
	uint8_t f = vtrace_szp(v, w);

	f |= (((a & b) | ((a | b) & ~v)) >> top & 1) * VTRACE_C;
	return f | (uint8_t)((((a ^ v) & (b ^ v)) >> top & 1) * VTRACE_O);
}

VTRACE_INLINE uint8_t vtrace_difference_flags(uint64_t a, uint64_t b, uint64_t v, uint8_t w)
{
	unsigned int top = 8 * w - 1;
	uint8_t f = vtrace_szp(v, w);

	f |= (((~a & b) | ((~a | b) & v)) >> top & 1) * VTRACE_C;
	return f | (uint8_t)((((a ^ b) & (a ^ v)) >> top & 1) * VTRACE_O);
}

/* Flags of a shift of @a (cut to @w) by @n, which is not 0. */
VTRACE_INLINE void vtrace_shift_flags(struct vtrace_state *s, uint8_t set, uint8_t w, uint64_t a,
				      uint64_t n, uint64_t v)
{
	unsigned int bits = 8 * w;
	bool top = v >> (bits - 1) & 1, carry;
	uint8_t f = vtrace_szp(v, w);

	switch (set) {
	case VTRACE_SET_SHL:
		carry = n <= bits && a >> ((bits - n) & 63) & 1;
		f |= top != carry ? VTRACE_O : 0;
		break;
	case VTRACE_SET_SHR:
		carry = a >> ((n - 1) & 63) & 1;
		f |= a >> (bits - 1) & 1 ? VTRACE_O : 0;
		break;
	default:
		carry = vtrace_sign(a, w) >> ((n - 1) & 63) & 1;
		break;
	}
	f |= carry ? VTRACE_C : 0;
	/* A count beyond the width leaves carry undefined except for sar. */
	vtrace_flags(s, f, VTRACE_FLAGS,
		     (n == 1 ? 0 : VTRACE_O) | (set != VTRACE_SET_SAR && n > bits ? VTRACE_C : 0));
}

VTRACE_INLINE void vtrace_rotate_flags(struct vtrace_state *s, uint8_t set, uint8_t w, uint64_t n,
				       uint64_t v)
{
	bool top = v >> (8 * w - 1) & 1, carry = set == VTRACE_SET_ROL ? v & 1 : top;
	bool other = set == VTRACE_SET_ROL ? carry : v >> (8 * w - 2) & 1;

	vtrace_flags(s, (carry ? VTRACE_C : 0) | (top != other ? VTRACE_O : 0), VTRACE_C | VTRACE_O,
		     n == 1 ? 0 : VTRACE_O);
}

VTRACE_INLINE void vtrace_set_flags(struct vtrace_state *s, const struct vtrace_uop *u, uint64_t a,
				    uint64_t b, uint64_t v, bool unknown)
{
	const uint8_t all = VTRACE_FLAGS, undefined = VTRACE_P;
	uint8_t w = u->w, f;
	uint64_t n;

	if (unknown) {
		/* Kept flags are unknown if they were, or if the count is. */
		f = u->set == VTRACE_SET_INC || u->set == VTRACE_SET_DEC   ? all & ~VTRACE_C
		    : u->set == VTRACE_SET_ROL || u->set == VTRACE_SET_ROR ? VTRACE_C | VTRACE_O
									   : all;
		vtrace_flags(s, 0, 0, s->flags_unknown | f);
		return;
	}
	switch (u->set) {
	case VTRACE_SET_ADD:
		vtrace_flags(s, vtrace_sum_flags(a, b, v, w), all, 0);
		break;
	case VTRACE_SET_SUB:
		vtrace_flags(s, vtrace_difference_flags(a, b, v, w), all, 0);
		break;
	case VTRACE_SET_SUB_NOT:
		vtrace_flags(s, vtrace_difference_flags(a, b, v, w) ^ VTRACE_C, all, 0);
		break;
	case VTRACE_SET_LOGIC:
		vtrace_flags(s, vtrace_szp(v, w), all, 0);
		break;
	case VTRACE_SET_INC:
		vtrace_flags(s, vtrace_sum_flags(a, b, v, w), all & ~VTRACE_C, 0);
		break;
	case VTRACE_SET_DEC:
		vtrace_flags(s, vtrace_difference_flags(a, b, v, w), all & ~VTRACE_C, 0);
		break;
	case VTRACE_SET_SHL:
	case VTRACE_SET_SHR:
	case VTRACE_SET_SAR:
		n = b & (w == 8 ? 63 : 31);
		if (n)
			vtrace_shift_flags(s, u->set, w, a & vtrace_mask(w), n, v);
		break;
	case VTRACE_SET_ROL:
	case VTRACE_SET_ROR:
		n = b & (w == 8 ? 63 : 31);
		if (n)
			vtrace_rotate_flags(s, u->set, w, n, v);
		break;
	case VTRACE_SET_MUL:
		/* Filled by whoever multiplies: @b is whether it fits. */
		vtrace_flags(s, b ? 0 : VTRACE_C | VTRACE_O, VTRACE_C | VTRACE_O,
			     VTRACE_Z | VTRACE_S | VTRACE_P);
		break;
	case VTRACE_SET_MULU:
		vtrace_flags(s, v ? VTRACE_C | VTRACE_O : 0, VTRACE_C | VTRACE_O,
			     VTRACE_Z | VTRACE_S | VTRACE_P);
		break;
	case VTRACE_SET_ZERO:
		vtrace_flags(s, a & vtrace_mask(w) ? 0 : VTRACE_Z, VTRACE_Z, all & ~VTRACE_Z);
		break;
	case VTRACE_SET_COUNT:
		vtrace_flags(s, (a & vtrace_mask(w) ? 0 : VTRACE_C) | (v ? 0 : VTRACE_Z),
			     VTRACE_C | VTRACE_Z, VTRACE_S | VTRACE_O | VTRACE_P);
		break;
	case VTRACE_SET_EMPTY:
		vtrace_flags(s, v ? 0 : VTRACE_Z, VTRACE_Z, 0);
		break;
	case VTRACE_SET_POPCNT:
		vtrace_flags(s, a & vtrace_mask(w) ? 0 : VTRACE_Z, all, 0);
		break;
	case VTRACE_SET_BLSR:
		f = vtrace_szp(v, w) & ~VTRACE_P;
		f |= ((a & vtrace_mask(w)) == 0) != (u->x & 1) ? VTRACE_C : 0;
		vtrace_flags(s, f, all & ~VTRACE_P, undefined);
		break;
	default:
		break;
	}
}

#endif
