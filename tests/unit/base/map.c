/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base.h"

static int values[4096];

static void empty(void **state)
{
	struct base_map m = { 0 };
	size_t pos = 0;
	void *value;

	(void)state;
	assert_null(base_map_get(&m, "k", 1));
	assert_null(base_map_del(&m, "k", 1));
	assert_false(base_map_next(&m, &pos, &value));
	base_map_release(&m);
}

static void keys_are_bytes(void **state)
{
	struct base_map m = { 0 };
	char key[] = "a\0b";

	(void)state;
	assert_int_equal(base_map_set(&m, key, 3, &values[0]), 0);
	assert_int_equal(base_map_set(&m, key, 2, &values[1]), 0);
	assert_int_equal(base_map_set(&m, NULL, 0, &values[2]), 0);
	key[2] = 'x';
	assert_null(base_map_get(&m, key, 3));
	assert_ptr_equal(base_map_get(&m, "a\0b", 3), &values[0]);
	assert_ptr_equal(base_map_get(&m, "a\0", 2), &values[1]);
	assert_ptr_equal(base_map_get(&m, "", 0), &values[2]);
	assert_null(base_map_get(&m, "a", 1));
	assert_int_equal(m.nr, 3);
	base_map_release(&m);
	assert_int_equal(m.nr, 0);
}

/* Short keys lie in the table itself, longer ones elsewhere. */
static void keys_of_each_length(void **state)
{
	static const char key[] = "abcdefghijklmnopqrstuvwxyz";
	struct base_map m = { 0 };

	(void)state;
	for (size_t len = 0; len < sizeof(key); len++)
		assert_int_equal(base_map_set(&m, key, len, &values[len]), 0);
	assert_int_equal(m.nr, sizeof(key));
	for (size_t len = 0; len < sizeof(key); len++) {
		assert_ptr_equal(base_map_get(&m, key, len), &values[len]);
		if (len % 2)
			assert_ptr_equal(base_map_del(&m, key, len), &values[len]);
	}
	for (size_t len = 0; len < sizeof(key); len++)
		assert_ptr_equal(base_map_get(&m, key, len), len % 2 ? NULL : &values[len]);
	base_map_release(&m); /* asan tells of what is left */
}

static void replace_and_delete(void **state)
{
	struct base_map m = { 0 };

	(void)state;
	assert_int_equal(base_map_set(&m, "k", 1, &values[0]), 0);
	assert_int_equal(base_map_set(&m, "k", 1, &values[1]), 0);
	assert_int_equal(m.nr, 1);
	assert_int_equal(base_map_set(&m, "k", 1, NULL), -EINVAL);
	assert_ptr_equal(base_map_get(&m, "k", 1), &values[1]);
	assert_ptr_equal(base_map_del(&m, "k", 1), &values[1]);
	assert_null(base_map_del(&m, "k", 1));
	assert_int_equal(m.nr, 0);
	base_map_release(&m);
}

enum { WALK = 64 };

/* The order of a walk, in a process of its own. */
static void walk_elsewhere(uint8_t order[WALK])
{
	struct base_map m = { 0 };
	size_t nr = 0, pos = 0;
	int fds[2], status;
	void *value;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		for (uint32_t k = 0; k < WALK; k++)
			base_map_set(&m, &k, sizeof(k), &values[k]);
		while (base_map_next(&m, &pos, &value))
			order[nr++] = (uint8_t)((int *)value - values);
		_exit(write(fds[1], order, WALK) != WALK);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], order, WALK), WALK);
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/*
 * Keys that collide in one process do not in the next: nobody can choose them. Comes first, for a
 * process that has used a map hands its seed on to its children.
 */
static void processes_differ(void **state)
{
	uint8_t first[WALK], second[WALK];

	(void)state;
	walk_elsewhere(first);
	walk_elsewhere(second);
	assert_memory_not_equal(first, second, WALK);
}

static uint32_t next_random(uint32_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 17;
	*x ^= *x << 5;
	return *x;
}

static void check_all(const struct base_map *m, void *const *ref, size_t nr_keys)
{
	size_t nr = 0, walked = 0, pos = 0;
	void *value;

	for (uint32_t k = 0; k < nr_keys; k++) {
		assert_ptr_equal(base_map_get(m, &k, sizeof(k)), ref[k]);
		nr += ref[k] != NULL;
	}
	while (base_map_next(m, &pos, &value)) {
		assert_ptr_equal(ref[(int *)value - values], value);
		walked++;
	}
	assert_int_equal(m->nr, nr);
	assert_int_equal(walked, nr);
}

/* Against a plain array; @nr_keys sets how full and how crowded the table gets. */
static void churn(size_t nr_keys, uint32_t seed)
{
	static void *ref[4096];
	struct base_map m = { 0 };

	memset(ref, 0, sizeof(ref));
	for (int i = 0; i < 20000; i++) {
		uint32_t k = next_random(&seed) % nr_keys;

		if (next_random(&seed) & 1) {
			assert_int_equal(base_map_set(&m, &k, sizeof(k), &values[k]), 0);
			ref[k] = &values[k];
		} else {
			assert_ptr_equal(base_map_del(&m, &k, sizeof(k)), ref[k]);
			ref[k] = NULL;
		}
		if (i % 1000 == 0)
			check_all(&m, ref, nr_keys);
	}
	check_all(&m, ref, nr_keys);
	base_map_release(&m);
}

static void random_work(void **state)
{
	(void)state;
	churn(16, 1);
	for (uint32_t seed = 2; seed < 8; seed++)
		churn(23, seed);
	churn(700, 9);
	churn(4096, 10);
}

static void fill_and_drain(void **state)
{
	static void *ref[4096];
	struct base_map m = { 0 };

	(void)state;
	memset(ref, 0, sizeof(ref));
	for (uint32_t k = 0; k < 4096; k++) {
		assert_int_equal(base_map_set(&m, &k, sizeof(k), &values[k]), 0);
		ref[k] = &values[k];
	}
	check_all(&m, ref, 4096);
	for (uint32_t k = 0; k < 4096; k++) {
		assert_ptr_equal(base_map_del(&m, &k, sizeof(k)), &values[k]);
		ref[k] = NULL;
		if (k % 512 == 0)
			check_all(&m, ref, 4096);
	}
	check_all(&m, ref, 4096);
	base_map_release(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(processes_differ),    cmocka_unit_test(empty),
		cmocka_unit_test(keys_are_bytes),      cmocka_unit_test(replace_and_delete),
		cmocka_unit_test(keys_of_each_length), cmocka_unit_test(random_work),
		cmocka_unit_test(fill_and_drain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
