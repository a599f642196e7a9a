/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base.h"

static void check(struct base_sha256 *s, const char *hex)
{
	struct base_id id = { .len = 32 };
	char text[BASE_ID_TEXT_LEN];

	base_sha256_end(s, id.bytes);
	assert_string_equal(base_id_text(&id, text), hex);
}

/* The examples NIST publishes for FIPS 180-4. */
static void vectors(void **state)
{
	static const struct {
		const char *text, *hex;
	} v[] = {
		{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
		{ "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
		  "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
		  "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		struct base_sha256 s;

		base_sha256_init(&s);
		base_sha256_add(&s, v[i].text, strlen(v[i].text));
		check(&s, v[i].hex);
	}
}

static void a_million(void **state)
{
	struct base_sha256 s;
	char block[1000];

	(void)state;
	memset(block, 'a', sizeof(block));
	base_sha256_init(&s);
	for (int i = 0; i < 1000; i++)
		base_sha256_add(&s, block, sizeof(block));
	check(&s, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Every length around the block's, however it is cut: lengths 0..200 of one text, hashed together.
 */
static void any_cut(void **state)
{
	struct base_sha256 s, all;
	uint8_t data[200], whole[32], cut[32];

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7);
	base_sha256_init(&all);
	for (size_t len = 0; len <= sizeof(data); len++) {
		base_sha256_init(&s);
		base_sha256_add(&s, data, len);
		base_sha256_end(&s, whole);
		base_sha256_add(&all, whole, sizeof(whole));
		for (size_t at = 0; at <= len; at++) {
			base_sha256_init(&s);
			base_sha256_add(&s, data, at);
			base_sha256_add(&s, data + at, len - at);
			base_sha256_end(&s, cut);
			assert_memory_equal(cut, whole, sizeof(whole));
		}
	}
	/* Made by an implementation not ours (Python's hashlib). */
	check(&all, "c43614ca86d050b81500ab839e2b7e83381ef396e722c27d3e537ab57268e893");
}

/* Of a file of several parts, from where it stands. */
static void of_file(void **state)
{
	struct base_sha256 s;
	uint8_t block[1000], sum[32];
	FILE *f = tmpfile();

	(void)state;
	assert_non_null(f);
	memset(block, 'a', sizeof(block));
	base_sha256_init(&s);
	for (int i = 0; i < 50; i++) {
		base_sha256_add(&s, block, sizeof(block));
		assert_int_equal(write(fileno(f), block, sizeof(block)), sizeof(block));
	}
	base_sha256_end(&s, sum);
	assert_int_equal(lseek(fileno(f), 0, SEEK_SET), 0);
	assert_int_equal(base_sha256_is(fileno(f), sum), 1);
	assert_int_equal(base_sha256_is(fileno(f), sum), 0);
	assert_int_equal(lseek(fileno(f), 0, SEEK_SET), 0);
	sum[31]++;
	assert_int_equal(base_sha256_is(fileno(f), sum), 0);
	fclose(f);
	assert_int_equal(base_sha256_is(-1, sum), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors),
		cmocka_unit_test(a_million),
		cmocka_unit_test(any_cut),
		cmocka_unit_test(of_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
