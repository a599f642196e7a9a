/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "base.h"

static void crc_vectors(void **state)
{
	uint8_t block[32];

	(void)state;
	assert_int_equal(base_crc32c(0, "", 0), 0);
	assert_int_equal(base_crc32c(0, "123456789", 9), 0xe3069283);
	/* RFC 3720, B.4 */
	memset(block, 0, sizeof(block));
	assert_int_equal(base_crc32c(0, block, sizeof(block)), 0x8a9136aa);
	memset(block, 0xff, sizeof(block));
	assert_int_equal(base_crc32c(0, block, sizeof(block)), 0x62a8ab43);
	for (unsigned int i = 0; i < 32; i++)
		block[i] = (uint8_t)i;
	assert_int_equal(base_crc32c(0, block, sizeof(block)), 0x46dd794e);
	for (unsigned int i = 0; i < 32; i++)
		block[i] = (uint8_t)(31 - i);
	assert_int_equal(base_crc32c(0, block, sizeof(block)), 0x113fdb5c);
}

static void crc_goes_on(void **state)
{
	(void)state;
	for (size_t at = 0; at <= 9; at++) {
		uint32_t crc = base_crc32c(0, "123456789", at);

		assert_int_equal(base_crc32c(crc, "123456789" + at, 9 - at), 0xe3069283);
	}
}

/* Bit by bit, as the polynomial says: a wrong entry of the table would show. */
static void crc_table(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 256; i++) {
		uint8_t byte = (uint8_t)i;
		uint32_t crc = ~0u ^ i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
		assert_int_equal(base_crc32c(0, &byte, 1), ~crc);
	}
}

static void hash_ignores_place(void **state)
{
	uint8_t space[64];
	uint64_t expected = base_hash64("some key of 21 bytes.", 21);

	(void)state;
	for (size_t at = 0; at < 16; at++) {
		memset(space, (int)at, sizeof(space));
		memcpy(space + at, "some key of 21 bytes.", 21);
		assert_true(base_hash64(space + at, 21) == expected);
	}
	base_hash64(NULL, 0);
}

static void hash_tells_lengths(void **state)
{
	uint8_t zeroes[64] = { 0 };
	uint64_t seen[65];

	(void)state;
	for (size_t len = 0; len <= 64; len++) {
		seen[len] = base_hash64(zeroes, len);
		for (size_t i = 0; i < len; i++)
			assert_true(seen[i] != seen[len]);
	}
}

static void hash_spreads(void **state)
{
	unsigned int buckets[256] = { 0 };

	(void)state;
	for (uint64_t key = 0; key < 65536; key++) {
		uint64_t aligned = key << 12;

		buckets[base_hash64(&aligned, sizeof(aligned)) & 255]++;
	}
	for (int i = 0; i < 256; i++)
		assert_in_range(buckets[i], 256 - 100, 256 + 100);
}

/* Each bit of the key should turn about half of the hash. */
static void hash_mixes(void **state)
{
	uint8_t key[20] = "avalanche of 20 byte";
	uint64_t h = base_hash64(key, sizeof(key));

	(void)state;
	for (size_t bit = 0; bit < 8 * sizeof(key); bit++) {
		key[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_in_range(__builtin_popcountll(h ^ base_hash64(key, sizeof(key))), 12, 52);
		key[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void seeds_differ(void **state)
{
	uint64_t a = base_hash_seed(), b = base_hash_seed();

	(void)state;
	assert_true(a && b && a != b);
}

/* The first numbers of 1234567, as implementations elsewhere publish them. */
static void random_vectors(void **state)
{
	uint64_t s = 1234567;

	(void)state;
	assert_true(base_random64(&s) == 6457827717110365317u);
	assert_true(base_random64(&s) == 3203168211198807973u);
	assert_true(base_random64(&s) == 9817491932198370423u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc_vectors),	      cmocka_unit_test(crc_goes_on),
		cmocka_unit_test(crc_table),	      cmocka_unit_test(hash_ignores_place),
		cmocka_unit_test(hash_tells_lengths), cmocka_unit_test(hash_spreads),
		cmocka_unit_test(hash_mixes),	      cmocka_unit_test(random_vectors),
		cmocka_unit_test(seeds_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
