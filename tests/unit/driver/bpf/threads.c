/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of threads: each has its number, whoever gives numbers beside it, and none has another's.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bpf_internal.h"

static struct thread_name *names;
static struct bpf_threads threads;

static int make(void **state)
{
	(void)state;
	names = calloc(THREAD_NR_NAMES, sizeof(*names));
	return names ? bpf_threads_init(&threads, names) : -1;
}

static int clean(void **state)
{
	(void)state;
	bpf_threads_release(&threads);
	free(names);
	return 0;
}

/* As the kernel has it, with @behind in what the name leaves free. */
static struct thread_name named(const char *text, int behind)
{
	struct thread_name n;
	char bytes[THREAD_NAME_LEN];

	memset(bytes, behind, sizeof(bytes));
	strncpy(bytes, text, strlen(text) + 1);
	bytes[sizeof(bytes) - 1] = '\0';
	memcpy(&n, bytes, sizeof(n));
	thread_name_trim(&n);
	return n;
}

static uint32_t number(const char *text, uint32_t bank)
{
	const struct thread_name n = named(text, 0);

	return thread_find(names, bank, &n);
}

static const char *name(uint32_t of)
{
	return bpf_threads_name(&threads, of);
}

/* ---- names ----------------------------------------------------------------------------------- */

static const char *const texts[] = { "a",
				     "1234567",
				     "12345678",
				     "123456789",
				     "12345678abcdefg",
				     "12345678abcdef",
				     "12345678abcdefh",
				     "\xff\xff\x80\x01",
				     "\x01",
				     "12345678\x80",
				     "kworker/0:1" };

enum { NR_TEXTS = sizeof(texts) / sizeof(*texts) };

static void each_name_has_its_number(void **state)
{
	uint32_t numbers[NR_TEXTS];

	(void)state;
	for (size_t i = 0; i < NR_TEXTS; i++) {
		numbers[i] = number(texts[i], 0);
		assert_in_range(numbers[i], 1, THREAD_BANK - 1);
	}
	for (size_t i = 0; i < NR_TEXTS; i++) {
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(numbers[i], numbers[k]);
		assert_string_equal(name(numbers[i]), texts[i]);
		assert_int_equal(number(texts[i], 0), numbers[i]);
	}
	assert_string_equal(name(0), "");
	assert_string_equal(name(THREAD_NR_NAMES), "");
	assert_string_equal(name(UINT32_MAX), "");
}

static void no_name_is_number_0(void **state)
{
	(void)state;
	assert_int_equal(number("", 0), 0);
	assert_string_equal(name(0), "");
}

/* Kernels that do not clear it leave the end of an earlier name there. */
static void bytes_behind_a_name_are_not_its_own(void **state)
{
	(void)state;
	for (size_t i = 0; i < NR_TEXTS; i++) {
		for (int byte = 0; byte < 256; byte += 5) {
			const struct thread_name n = named(texts[i], byte);

			assert_int_equal(thread_find(names, 0, &n), number(texts[i], 0));
		}
	}
}

/* An interrupt that began to write a name is held up between its words. */
static void half_written_name_is_finished_by_the_next(void **state)
{
	const struct thread_name other = named("12345678xyz", 0);
	uint32_t at = number("12345678abc", 0), next;

	(void)state;
	names[at].word[1] = 0;
	assert_string_equal(name(at), "");
	assert_int_equal(number("12345678abc", 0), at);
	assert_string_equal(name(at), "12345678abc");
	/* Another name that begins alike may be the first to finish it: then it is that one's. */
	names[at] = other;
	next = number("12345678abc", 0);
	assert_int_not_equal(next, at);
	assert_int_equal(number("12345678abc", 0), next);
	assert_string_equal(name(next), "12345678abc");
}

static void full_table_gives_no_numbers(void **state)
{
	uint32_t refused = 0, given = 0;
	char text[THREAD_NAME_LEN];

	(void)state;
	for (uint32_t i = 0; i < 4 * THREAD_BANK; i++) {
		uint32_t n;

		snprintf(text, sizeof(text), "worker-%u", i);
		n = number(text, 1);
		if (!n) {
			refused++;
			continue;
		}
		given++;
		assert_in_range(n, THREAD_BANK, THREAD_NR_NAMES - 1);
		assert_string_equal(name(n), text);
	}
	assert_true(refused >= 3 * THREAD_BANK);
	assert_true(given > THREAD_BANK - 64);
	/* The other bank has room. */
	assert_in_range(number("worker-1", 0), 1, THREAD_BANK - 1);
}

/* ---- races ----------------------------------------------------------------------------------- */

enum { NR_CPUS = 3, NR_RACED = 3000 };

static uint32_t raced[NR_CPUS][NR_RACED];

static void raced_text(char text[THREAD_NAME_LEN], uint32_t i)
{
	/* Names of three that have the first word in common. */
	snprintf(text, THREAD_NAME_LEN, "%08u%u", i / 3, i);
}

static void *race(void *arg)
{
	uint32_t *numbers = arg;
	char text[THREAD_NAME_LEN];

	for (uint32_t i = 0; i < NR_RACED; i++) {
		raced_text(text, i);
		numbers[i] = number(text, 0);
	}
	return NULL;
}

static void cpus_that_race_agree(void **state)
{
	pthread_t t[NR_CPUS];
	char text[THREAD_NAME_LEN];

	(void)state;
	for (size_t i = 0; i < NR_CPUS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, race, raced[i]), 0);
	for (size_t i = 0; i < NR_CPUS; i++)
		pthread_join(t[i], NULL);
	for (uint32_t i = 0; i < NR_RACED; i++) {
		raced_text(text, i);
		assert_string_equal(name(raced[0][i]), text);
		for (size_t k = 1; k < NR_CPUS; k++)
			assert_int_equal(raced[k][i], raced[0][i]);
	}
}

/* ---- forgetting ------------------------------------------------------------------------------ */

static uint32_t exchange(bool held, bool waited)
{
	uint32_t bank = bpf_threads_bank(&threads, held);

	bpf_threads_exchanged(&threads, waited);
	return bank;
}

static void names_are_forgotten_with_an_exchange(void **state)
{
	uint32_t a = number("a", 0), b;

	(void)state;
	assert_int_equal(exchange(false, true), 0);
	threads.forget = true;
	/* A count that waits has a number. */
	assert_int_equal(exchange(true, true), 0);
	assert_int_equal(exchange(false, true), 1);
	assert_int_equal(exchange(false, true), 1);
	b = number("b", 1);
	assert_true(b >= THREAD_BANK);
	assert_int_not_equal(number("a", 1), b);
	/* The samples of an old table are handed on after the exchange. */
	assert_string_equal(name(a), "a");
	assert_string_equal(name(b), "b");
	threads.forget = true;
	assert_int_equal(exchange(false, true), 0);
	assert_string_equal(name(a), "");
	assert_string_equal(name(b), "b");
	assert_int_equal(names[a].word[0], 0);
}

/* A program may still be in the old tables: what it put there comes with the next but one. */
static void nothing_is_forgotten_while_programs_may_be_late(void **state)
{
	(void)state;
	threads.forget = true;
	assert_int_equal(exchange(false, false), 1);
	threads.forget = true;
	assert_int_equal(exchange(false, true), 1);
	assert_int_equal(exchange(false, true), 1);
	assert_int_equal(exchange(false, true), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_name_has_its_number, make, clean),
		cmocka_unit_test_setup_teardown(no_name_is_number_0, make, clean),
		cmocka_unit_test_setup_teardown(bytes_behind_a_name_are_not_its_own, make, clean),
		cmocka_unit_test_setup_teardown(half_written_name_is_finished_by_the_next, make,
						clean),
		cmocka_unit_test_setup_teardown(full_table_gives_no_numbers, make, clean),
		cmocka_unit_test_setup_teardown(cpus_that_race_agree, make, clean),
		cmocka_unit_test_setup_teardown(names_are_forgotten_with_an_exchange, make, clean),
		cmocka_unit_test_setup_teardown(nothing_is_forgotten_while_programs_may_be_late,
						make, clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
