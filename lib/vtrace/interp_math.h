/* SPDX-License-Identifier: BSD-2-Clause */
/* Part of interp.h: arithmetic, lanes of vectors, floating point. */
#ifndef DCPI_VTRACE_INTERP_MATH_H
#define DCPI_VTRACE_INTERP_MATH_H

#include "interp_state.h"

/* ---- arithmetic ------------------------------------------------------------------------------ */

VTRACE_INLINE uint64_t vtrace_high(uint64_t a, uint64_t b)
{
	uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
	uint64_t mid = ah * bl + (al * bl >> 32), low = al * bh + (uint32_t)mid;

	return ah * bh + (mid >> 32) + (low >> 32);
}

VTRACE_INLINE uint64_t vtrace_high_signed(uint64_t a, uint64_t b)
{
	return vtrace_high(a, b) - ((int64_t)a < 0 ? b : 0) - ((int64_t)b < 0 ? a : 0);
}

/* The upper half of a product of @w bytes. */
VTRACE_INLINE uint64_t vtrace_upper(uint64_t a, uint64_t b, uint8_t w, bool is_signed)
{
	if (is_signed) {
		a = vtrace_sign(a, w);
		b = vtrace_sign(b, w);
	} else {
		a &= vtrace_mask(w);
		b &= vtrace_mask(w);
	}
	if (w < 8)
		return a * b >> 8 * w;
	return is_signed ? vtrace_high_signed(a, b) : vtrace_high(a, b);
}

/* Does the signed product fit into @w bytes? */
VTRACE_INLINE bool vtrace_fits(uint64_t a, uint64_t b, uint8_t w)
{
	uint64_t low = vtrace_sign(a * b, w), high = vtrace_upper(a, b, w, true);

	return vtrace_sign(high, w) == (uint64_t)((int64_t)low >> 63);
}

VTRACE_INLINE uint64_t vtrace_reverse_bytes(uint64_t v, uint8_t w)
{
	v = (v & 0x00ff00ff00ff00ffull) << 8 | (v >> 8 & 0x00ff00ff00ff00ffull);
	v = (v & 0x0000ffff0000ffffull) << 16 | (v >> 16 & 0x0000ffff0000ffffull);
	v = v << 32 | v >> 32;
	return v >> ((64 - 8 * w) & 63);
}

VTRACE_INLINE uint64_t vtrace_reverse_bits(uint64_t v, uint8_t w)
{
	v = (v & 0x5555555555555555ull) << 1 | (v >> 1 & 0x5555555555555555ull);
	v = (v & 0x3333333333333333ull) << 2 | (v >> 2 & 0x3333333333333333ull);
	v = (v & 0x0f0f0f0f0f0f0f0full) << 4 | (v >> 4 & 0x0f0f0f0f0f0f0f0full);
	return vtrace_reverse_bytes(v, w);
}

VTRACE_INLINE uint64_t vtrace_ones(uint64_t v)
{
	v -= v >> 1 & 0x5555555555555555ull;
	v = (v & 0x3333333333333333ull) + (v >> 2 & 0x3333333333333333ull);
	v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0full;
	return v * 0x0101010101010101ull >> 56;
}

VTRACE_INLINE uint64_t vtrace_leading(uint64_t v, uint8_t w)
{
	v |= v >> 1;
	v |= v >> 2;
	v |= v >> 4;
	v |= v >> 8;
	v |= v >> 16;
	v |= v >> 32;
	return 8 * w - vtrace_ones(v);
}

VTRACE_INLINE uint64_t vtrace_trailing(uint64_t v, uint8_t w)
{
	return v ? vtrace_ones(~v & (v - 1)) : 8 * w;
}

VTRACE_INLINE uint64_t vtrace_shift(uint8_t op, uint64_t a, uint64_t b, uint8_t w)
{
	uint64_t n = b & (w == 8 ? 63 : 31), bits = 8 * w, m = n & (bits - 1);

	switch (op) {
	case VTRACE_SHL:
		return a << n;
	case VTRACE_SHR:
		return (a & vtrace_mask(w)) >> n;
	case VTRACE_SAR:
		return (uint64_t)((int64_t)vtrace_sign(a, w) >> n);
	case VTRACE_ROR:
		m = (bits - m) & (bits - 1);
		break;
	default:
		break;
	}
	a &= vtrace_mask(w);
	return m ? a << m | a >> (bits - m) : a;
}

/* ---- division -------------------------------------------------------------------------------- */

/* The dividend in one word, as @w bytes and @high tell it; false: it has more than that. */
VTRACE_INLINE bool vtrace_dividend(uint64_t low, uint64_t high, uint8_t w, bool is_signed,
				   uint64_t *out)
{
	if (w < 8) {
		*out = (low & vtrace_mask(w)) | (high & vtrace_mask(w)) << 8 * w;
		if (is_signed && w < 4)
			*out = vtrace_sign(*out, 2 * w);
		return true;
	}
	*out = low;
	return high == (is_signed ? (uint64_t)((int64_t)low >> 63) : 0);
}

/* Quotient and remainder of what a processor divides; false: it traps. */
VTRACE_INLINE bool vtrace_divide(uint64_t n, uint64_t d, uint8_t w, bool is_signed, uint64_t *quot,
				 uint64_t *rem)
{
	bool minus_n = is_signed && (int64_t)n < 0, minus_d;
	uint64_t limit = is_signed ? 1ull << (8 * w - 1) : vtrace_mask(w);

	d = is_signed ? vtrace_sign(d, w) : d & vtrace_mask(w);
	minus_d = is_signed && (int64_t)d < 0;
	if (!d)
		return false;
	n = minus_n ? 0 - n : n;
	d = minus_d ? 0 - d : d;
	*quot = n / d;
	*rem = n % d;
	if (*quot > limit || (is_signed && *quot == limit && minus_n == minus_d))
		return false;
	*quot = minus_n != minus_d ? 0 - *quot : *quot;
	*rem = minus_n ? 0 - *rem : *rem;
	return true;
}

/* aarch64: nothing traps. */
VTRACE_INLINE uint64_t vtrace_quotient(uint64_t n, uint64_t d, uint8_t w, bool is_signed)
{
	bool minus;

	if (!is_signed) {
		n &= vtrace_mask(w);
		d &= vtrace_mask(w);
		return d ? n / d : 0;
	}
	n = vtrace_sign(n, w);
	d = vtrace_sign(d, w);
	minus = ((int64_t)n < 0) != ((int64_t)d < 0);
	n = (int64_t)n < 0 ? 0 - n : n;
	d = (int64_t)d < 0 ? 0 - d : d;
	n = d ? n / d : 0;
	return minus ? 0 - n : n;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

/* The highest bit of each lane of @w bytes. */
VTRACE_INLINE uint64_t vtrace_tops(uint8_t w)
{
	return w == 1	? 0x8080808080808080ull
	       : w == 2 ? 0x8000800080008000ull
	       : w == 4 ? 0x8000000080000000ull
			: 0x8000000000000000ull;
}

/* All bits of those lanes whose highest bit is set in @tops. */
VTRACE_INLINE uint64_t vtrace_fill(uint64_t tops, uint8_t w)
{
	uint64_t low = tops >> (8 * w - 1);

	return w == 8 ? 0 - low : (low << (8 * w & 63)) - low;
}

VTRACE_INLINE uint64_t vtrace_lane_sub(uint64_t a, uint64_t b, uint8_t w)
{
	uint64_t tops = vtrace_tops(w);

	return ((a | tops) - (b & ~tops)) ^ ((a ^ ~b) & tops);
}

VTRACE_INLINE uint64_t vtrace_lane_add(uint64_t a, uint64_t b, uint8_t w)
{
	uint64_t tops = vtrace_tops(w);

	return ((a & ~tops) + (b & ~tops)) ^ ((a ^ b) & tops);
}

/* The lanes in which a < b, unsigned: all ones. */
VTRACE_INLINE uint64_t vtrace_lane_below(uint64_t a, uint64_t b, uint8_t w)
{
	uint64_t d = vtrace_lane_sub(a, b, w);

	return vtrace_fill(((~a & b) | ((~a | b) & d)) & vtrace_tops(w), w);
}

VTRACE_INLINE uint64_t vtrace_lane(uint8_t op, uint64_t a, uint64_t b, uint8_t w)
{
	uint64_t tops = vtrace_tops(w), less;

	switch (op) {
	case VTRACE_LANE_EQ:
		a ^= b;
		/* The highest bit of a lane that is not zero. */
		a = ((a & ~tops) + ~tops) | a;
		return vtrace_fill(~a & tops, w);
	case VTRACE_LANE_GT:
		return vtrace_lane_below(b ^ tops, a ^ tops, w);
	case VTRACE_LANE_ADD:
		return vtrace_lane_add(a, b, w);
	case VTRACE_LANE_SUB:
		return vtrace_lane_sub(a, b, w);
	case VTRACE_LANE_MINU:
		less = vtrace_lane_below(a, b, w);
		return (a & less) | (b & ~less);
	default:
		less = vtrace_lane_below(a, b, w);
		return (b & less) | (a & ~less);
	}
}

/* The highest bits of the lanes, side by side. */
VTRACE_INLINE uint64_t vtrace_signs(uint64_t a, uint8_t w)
{
	a &= vtrace_tops(w);
	switch (w) {
	case 1:
		return (a >> 7) * 0x0102040810204080ull >> 56;
	case 2:
		return (a >> 15) * 0x0001000200040008ull >> 48 & 15;
	case 4:
		return (a >> 63) << 1 | (a >> 31 & 1);
	default:
		return a >> 63;
	}
}

VTRACE_INLINE uint64_t vtrace_dup(uint64_t a, uint8_t w)
{
	a &= vtrace_mask(w);
	return w == 8 ? a : a * (vtrace_tops(w) >> (8 * w - 1));
}

VTRACE_INLINE uint64_t vtrace_lane_any(uint64_t a, uint64_t b)
{
	uint64_t v = 0;

#ifdef __bpf__
#pragma clang loop unroll(full)
#endif
	for (uint32_t i = 0; i < 8; i++)
		v |= vtrace_lane(VTRACE_LANE_EQ, a, vtrace_dup(b >> 8 * i, 1), 1);
	return v;
}

VTRACE_INLINE uint64_t vtrace_lane_pick(uint64_t a, uint64_t b, uint8_t x)
{
	uint64_t is = vtrace_lane(VTRACE_LANE_EQ, b & 0x8888888888888888ull, vtrace_dup(x, 1), 1);
	uint64_t v = 0;

#ifdef __bpf__
#pragma clang loop unroll(full)
#endif
	for (uint32_t i = 0; i < 8; i++)
		v |= (a >> 8 * (b >> 8 * i & 7) & 0xff) << 8 * i;
	return v & is;
}

/* Lanes of the low halves of @a and @b in turn. */
VTRACE_INLINE uint64_t vtrace_zip(uint64_t a, uint64_t b, uint8_t w)
{
	uint64_t v[2] = { (uint32_t)a, (uint32_t)b };

#ifdef __bpf__
#pragma clang loop unroll(full)
#endif
	for (int i = 0; i < 2; i++) {
		if (w <= 2)
			v[i] = (v[i] | v[i] << 16) & 0x0000ffff0000ffffull;
		if (w == 1)
			v[i] = (v[i] | v[i] << 8) & 0x00ff00ff00ff00ffull;
	}
	return v[0] | v[1] << (8 * w & 63);
}

/* A bit for each lane of @w bytes, from bit @x on, as all ones. */
VTRACE_INLINE uint64_t vtrace_lane_mask(uint64_t bits, uint8_t w, uint8_t x)
{
	uint64_t lanes = 8 / w, v = 0;

	bits >>= x & 63;
#ifdef __bpf__
#pragma clang loop unroll(full)
#endif
	for (uint32_t i = 0; i < 8; i++)
		if (i < lanes && bits >> i & 1)
			v |= vtrace_mask(w) << (8 * w * i & 63);
	return v;
}

/* ---- floating point -------------------------------------------------------------------------- */

struct vtrace_fp {
	bool minus, tiny, special; /* a denormal; an infinity or no number */
	int32_t exponent;
	uint64_t fraction; /* fraction, of 52 bits */
};

VTRACE_INLINE struct vtrace_fp vtrace_fp(uint64_t v, uint8_t w)
{
	struct vtrace_fp f = { .minus = v >> (8 * w - 1) & 1 };
	uint32_t e = w == 8 ? v >> 52 & 0x7ff : v >> 23 & 0xff, top = w == 8 ? 0x7ff : 0xff;

	f.fraction = w == 8 ? v & 0xfffffffffffffull : (v & 0x7fffff) << 29;
	f.exponent = (int32_t)e - (w == 8 ? 1023 : 127);
	f.special = e == top;
	f.tiny = !e && f.fraction;
	return f;
}

/* false: of a denormal nobody knows whether it counts as 0. */
VTRACE_INLINE bool vtrace_fp_compare(uint64_t a, uint64_t b, uint8_t w, uint8_t *flags)
{
	struct vtrace_fp fa = vtrace_fp(a, w), fb = vtrace_fp(b, w);
	uint64_t sign = 1ull << (8 * w - 1), mask = vtrace_mask(w);

	a &= mask;
	b &= mask;
	if (fa.tiny || fb.tiny)
		return false;
	if ((fa.special && fa.fraction) || (fb.special && fb.fraction)) {
		*flags = VTRACE_Z | VTRACE_P | VTRACE_C;
	} else if (a == b || !((a | b) & ~sign)) {
		*flags = VTRACE_Z;
	} else {
		a = a & sign ? ~a & mask : a | sign;
		b = b & sign ? ~b & mask : b | sign;
		*flags = a < b ? VTRACE_C : 0;
	}
	return true;
}

VTRACE_INLINE uint64_t vtrace_fp_to_int(uint64_t v, uint8_t from, uint8_t w)
{
	struct vtrace_fp f = vtrace_fp(v, from);
	uint64_t m = f.fraction | 1ull << 52;

	if (f.special || f.exponent >= 8 * w - 1)
		return 1ull << (8 * w - 1);
	if (f.exponent < 0)
		return 0;
	m = f.exponent <= 52 ? m >> ((52 - f.exponent) & 63) : m << ((f.exponent - 52) & 63);
	return f.minus ? 0 - m : m;
}

VTRACE_INLINE uint64_t vtrace_int_to_fp(uint64_t v, uint8_t w, uint8_t to, uint8_t *unknown)
{
	bool minus;
	uint64_t bits, lead;

	v = vtrace_sign(v, w);
	minus = (int64_t)v < 0;
	v = minus ? 0 - v : v;
	if (!v)
		return 0;
	lead = 63 - vtrace_leading(v, 8);
	if (vtrace_trailing(v, 8) + (to == 8 ? 52 : 23) < lead)
		*unknown = 0xff;
	bits = v << ((63 - lead) & 63) << 1; /* without the leading one, which is implied */
	if (to == 8)
		return bits >> 12 | (lead + 1023) << 52 | (uint64_t)minus << 63;
	return bits >> 41 | (lead + 127) << 23 | (uint64_t)minus << 31;
}

VTRACE_INLINE uint64_t vtrace_fp_widen(uint64_t v, uint8_t *unknown)
{
	struct vtrace_fp f = vtrace_fp(v, 4);
	uint64_t sign = (uint64_t)f.minus << 63;

	if (!(v & 0x7fffffff))
		return sign;
	if (f.tiny || f.special)
		*unknown = 0xff;
	return sign | (uint64_t)(f.exponent + 1023) << 52 | f.fraction;
}

#endif
