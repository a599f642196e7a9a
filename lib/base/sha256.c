/* SPDX-License-Identifier: BSD-2-Clause */
/* SHA-256 is computed here, by instructions of the processor where it has them. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__) && !defined(BASE_SHA256_PLAIN)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include "base.h"

static const uint32_t round_keys[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

void base_sha256_init(struct base_sha256 *s)
{
	static const uint32_t start[8] = {
		0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
		0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
	};

	memcpy(s->state, start, sizeof(start));
	s->len = 0;
}

static inline uint32_t rotr(uint32_t v, unsigned int by)
{
	return v >> by | v << (32 - by);
}

static void schedule(uint32_t w[64], const uint8_t *block)
{
	for (int i = 0; i < 16; i++, block += 4)
		w[i] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 |
		       (uint32_t)block[2] << 8 | block[3];
	for (int i = 16; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];
		uint32_t s0 = rotr(a, 7) ^ rotr(a, 18) ^ a >> 3;
		uint32_t s1 = rotr(b, 17) ^ rotr(b, 19) ^ b >> 10;

		w[i] = w[i - 16] + s0 + w[i - 7] + s1;
	}
}

static void compress_one(uint32_t state[8], const uint8_t *block)
{
	uint32_t w[64], v[8];

	schedule(w, block);
	memcpy(v, state, sizeof(v));
	for (int i = 0; i < 64; i++) {
		uint32_t a = v[0], e = v[4];
		uint32_t s1 = rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25);
		uint32_t s0 = rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22);
		uint32_t t1 = v[7] + s1 + ((e & v[5]) ^ (~e & v[6])) + round_keys[i] + w[i];
		uint32_t t2 = s0 + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));

		memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] += t1;
		v[0] = t1 + t2;
	}
	for (int i = 0; i < 8; i++)
		state[i] += v[i];
}

static void compress_plain(uint32_t state[8], const uint8_t *blocks, size_t nr)
{
	for (; nr; nr--, blocks += 64)
		compress_one(state, blocks);
}

typedef void (*compress_fn)(uint32_t state[8], const uint8_t *blocks, size_t nr);

#if defined(__x86_64__) && !defined(BASE_SHA256_PLAIN)

/* The words that come 16 behind those of @a, from all that lie between: @a, @b, @c, @d. */
__attribute__((target("sha,sse4.1"))) static inline __m128i words_on(__m128i a, __m128i b,
								     __m128i c, __m128i d)
{
	__m128i w = _mm_add_epi32(_mm_sha256msg1_epu32(a, b), _mm_alignr_epi8(d, c, 4));

	return _mm_sha256msg2_epu32(w, d);
}

/* Four rounds to a step; the instructions want the state as ABEF and CDGH. */
__attribute__((target("sha,sse4.1"))) static void compress_sha(uint32_t state[8],
							       const uint8_t *blocks, size_t nr)
{
	const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
	__m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128((const void *)state), 0xb1);
	__m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128((const void *)(state + 4)), 0x1b);
	__m128i abef = _mm_alignr_epi8(cdab, hgfe, 8);
	__m128i cdgh = _mm_blend_epi16(hgfe, cdab, 0xf0);

	for (; nr; nr--, blocks += 64) {
		const __m128i first = abef, second = cdgh;
		__m128i w[4], sum;

		for (int i = 0; i < 4; i++)
			w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const void *)(blocks + 16 * i)),
						swap);
#pragma GCC unroll 16
		for (int i = 0; i < 16; i++) {
			sum = _mm_add_epi32(w[i & 3],
					    _mm_loadu_si128((const void *)(round_keys + 4 * i)));
			cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
			abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
			w[i & 3] =
				words_on(w[i & 3], w[(i + 1) & 3], w[(i + 2) & 3], w[(i + 3) & 3]);
		}
		abef = _mm_add_epi32(abef, first);
		cdgh = _mm_add_epi32(cdgh, second);
	}
	cdab = _mm_shuffle_epi32(abef, 0x1b); /* FEBA */
	hgfe = _mm_shuffle_epi32(cdgh, 0xb1); /* DCHG */
	_mm_storeu_si128((void *)state, _mm_blend_epi16(cdab, hgfe, 0xf0));
	_mm_storeu_si128((void *)(state + 4), _mm_alignr_epi8(hgfe, cdab, 8));
}

static compress_fn best(void)
{
	unsigned int a, b, c, d;

	/* SHA extensions, and SSE4.1 and SSSE3 beside them. */
	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_SHA))
		return compress_plain;
	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSE4_1) || !(c & bit_SSSE3))
		return compress_plain;
	return compress_sha;
}

#else

static compress_fn best(void)
{
	return compress_plain;
}

#endif

static void compress(uint32_t state[8], const uint8_t *blocks, size_t nr)
{
	static _Atomic(compress_fn) chosen;
	compress_fn fn = atomic_load_explicit(&chosen, memory_order_relaxed);

	if (!fn) {
		fn = best();
		atomic_store_explicit(&chosen, fn, memory_order_relaxed);
	}
	fn(state, blocks, nr);
}

void base_sha256_add(struct base_sha256 *s, const void *data, size_t len)
{
	const uint8_t *p = data;
	size_t fill = s->len % 64;

	s->len += len;
	if (fill && len >= 64 - fill) {
		memcpy(s->block + fill, p, 64 - fill);
		compress(s->state, s->block, 1);
		p += 64 - fill;
		len -= 64 - fill;
		fill = 0;
	}
	if (!fill && len >= 64) {
		compress(s->state, p, len / 64);
		p += len / 64 * 64;
		len %= 64;
	}
	if (len)
		memcpy(s->block + fill, p, len);
}

void base_sha256_add_number(struct base_sha256 *s, uint64_t v)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(v >> 8 * i);
	base_sha256_add(s, bytes, sizeof(bytes));
}

void base_sha256_end(struct base_sha256 *s, uint8_t out[32])
{
	static const uint8_t pad[64] = { 0x80 };
	uint64_t bits = s->len * 8;
	uint8_t tail[8];

	for (int i = 0; i < 8; i++)
		tail[i] = (uint8_t)(bits >> (56 - 8 * i));
	base_sha256_add(s, pad, 1 + (119 - s->len % 64) % 64);
	base_sha256_add(s, tail, sizeof(tail));
	for (int i = 0; i < 32; i++)
		out[i] = (uint8_t)(s->state[i / 4] >> (24 - 8 * (i % 4)));
}

int base_sha256_is(int fd, const uint8_t sum[32])
{
	uint8_t got[32], part[16384];
	struct base_sha256 s;
	ssize_t n;

	base_sha256_init(&s);
	while ((n = read(fd, part, sizeof(part))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		base_sha256_add(&s, part, (size_t)n);
	}
	base_sha256_end(&s, got);
	return !memcmp(got, sum, sizeof(got));
}
