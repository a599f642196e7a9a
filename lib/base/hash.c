/* SPDX-License-Identifier: BSD-2-Clause */
/* Checksums, and hashes for tables in memory, are computed here. */
#include <string.h>
#include <unistd.h>

#include "base.h"

/* The remainders of four bits, polynomial 0x1edc6f41 reflected. */
static const uint32_t crc_table[16] = {
	0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
	0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
	0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

/* The same by the instructions that most machines have for it. */
#if defined(__x86_64__) && !defined(BASE_HASH_PLAIN)
#define CRC_TARGET     "sse4.2"
#define CRC_WORD(c, v) ((uint32_t)__builtin_ia32_crc32di(c, v))
#define CRC_BYTE(c, v) __builtin_ia32_crc32qi(c, v)
#define CRC_IS_THERE   __builtin_cpu_supports("sse4.2")
#elif defined(__aarch64__) && !defined(BASE_HASH_PLAIN)
#include <sys/auxv.h>
#define CRC_TARGET     "+crc"
#define CRC_WORD(c, v) __builtin_aarch64_crc32cx(c, v)
#define CRC_BYTE(c, v) __builtin_aarch64_crc32cb(c, v)
#define CRC_IS_THERE   (getauxval(AT_HWCAP) & 1 << 7) /* HWCAP_CRC32 */
#endif

#ifdef CRC_TARGET
__attribute__((target(CRC_TARGET))) static uint32_t crc32c_fast(uint32_t crc, const uint8_t *p,
								size_t len)
{
	uint64_t word;

	for (; len >= sizeof(word); p += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		crc = CRC_WORD(crc, word);
	}
	for (; len; len--)
		crc = CRC_BYTE(crc, *p++);
	return crc;
}
#endif

uint32_t base_crc32c(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;

	crc = ~crc;
#ifdef CRC_TARGET
	if (CRC_IS_THERE)
		return ~crc32c_fast(crc, p, len);
#endif
	for (; len; len--) {
		crc ^= *p++;
		crc = crc >> 4 ^ crc_table[crc & 15];
		crc = crc >> 4 ^ crc_table[crc & 15];
	}
	return ~crc;
}

uint64_t base_hash64(const void *data, size_t len)
{
	return base_hash64_seeded(0x9e3779b97f4a7c15ull, data, len);
}

uint64_t base_hash64_seeded(uint64_t seed, const void *data, size_t len)
{
	/* The length tells short tails, padded with zeroes, from longer keys. */
	uint64_t h = base_hash_u64(len + seed), word;
	const uint8_t *p = data;

	for (; len >= sizeof(word); p += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		h = base_hash_u64(h ^ word);
	}
	if (len) {
		word = 0;
		memcpy(&word, p, len);
		h = base_hash_u64(h ^ word);
	}
	return h;
}

uint64_t base_hash_seed(void)
{
	uint64_t seed;

	if (getentropy(&seed, sizeof(seed)) < 0)
		seed = base_hash_u64((uintptr_t)&seed) ^ base_now_ns();
	return seed | 1;
}

uint64_t base_random64(uint64_t *state)
{
	uint64_t v = *state += UINT64_C(0x9e3779b97f4a7c15);

	v = (v ^ v >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	v = (v ^ v >> 27) * UINT64_C(0x94d049bb133111eb);
	return v ^ v >> 31;
}
