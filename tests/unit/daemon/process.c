/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "stand_ins.h"

static struct process *seen[16];
static unsigned int nr_seen;

static void end(void *ctx, struct process *p)
{
	assert_ptr_equal(ctx, &nr_seen);
	seen[nr_seen++] = p;
}

static void lives_of_a_pid(void **state)
{
	struct processes *t = processes_new();
	struct process *first, *second;

	(void)state;
	nr_seen = 0;
	assert_null(processes_find(t, 7));
	first = processes_add(t, 7);
	assert_non_null(first);
	assert_ptr_equal(processes_find(t, 7), first);
	assert_null(processes_find_over(t, 7));
	second = processes_add(t, 7);
	assert_ptr_not_equal(first, second);
	assert_ptr_equal(processes_find(t, 7), second);
	assert_true(first->exited);
	assert_ptr_equal(processes_find_over(t, 7), first);
	assert_int_equal(processes_nr(t), 1);
	processes_end(t, second);
	processes_end(t, second);
	assert_null(processes_find(t, 7));
	assert_ptr_equal(processes_find_over(t, 7), second);
	processes_reap(t, end, &nr_seen);
	assert_int_equal(nr_seen, 2);
	assert_ptr_equal(seen[0], first);
	assert_ptr_equal(seen[1], second);
	assert_null(processes_find_over(t, 7));
	assert_null(processes_find(t, 7));
	first = processes_add(t, 7);
	assert_ptr_equal(processes_find(t, 7), first);
	processes_free(t, NULL, NULL);
}

static void many(void **state)
{
	struct processes *t = processes_new();
	struct process *p;
	int nr = 0;

	(void)state;
	for (int32_t pid = 1; pid <= 5000; pid++) {
		assert_non_null(processes_add(t, pid));
		if (pid % 3 == 0)
			processes_end(t, processes_find(t, pid));
		if (pid % 1000 == 0)
			processes_reap(t, NULL, NULL);
	}
	for (size_t pos = 0; processes_next(t, &pos, &p);) {
		assert_int_not_equal(p->pid % 3, 0);
		nr++;
	}
	assert_int_equal(nr, 5000 - 5000 / 3);
	assert_int_equal(processes_nr(t), nr);
	processes_free(t, NULL, NULL);
}

/* Each is found, however others' searches fall between, until its end. */
static void searches_by_turns(void **state)
{
	struct processes *t = processes_new();
	struct process *of[40];

	(void)state;
	for (int32_t pid = 0; pid < 40; pid++)
		of[pid] = processes_add(t, pid);
	for (int32_t ended = 0; ended < 40; ended++) {
		processes_end(t, of[ended]);
		for (int32_t pid = 0; pid < 40; pid++) {
			struct process *want = pid > ended ? of[pid] : NULL;

			assert_ptr_equal(processes_find(t, pid), want);
			assert_ptr_equal(processes_find(t, pid), want);
		}
	}
	processes_free(t, NULL, NULL);
}

/* The room of one that is over, also that for its mappings, may be another's; nothing else of it
 * is. */
static void lives_begin_empty(void **state)
{
	static const struct map m = { .start = 0x1000, .end = 0x2000, .kind = MAP_DYNAMIC };
	struct processes *t = processes_new();

	(void)state;
	for (int32_t round = 0; round < 3; round++) {
		for (int32_t pid = 1; pid <= 1500; pid++) {
			struct process *p = processes_add(t, pid), empty = { .pid = pid };

			assert_non_null(p);
			empty.maps = p->maps;
			empty.cap_maps = p->cap_maps;
			assert_memory_equal(p, &empty, sizeof(empty));
			assert_int_equal(map_insert(p, &m), 0);
			p->placeholder = p->asked = true;
			p->seen_ns = p->instance = 7;
			p->exe = strdup("/bin/x");
			p->later = calloc(1, sizeof(*p->later));
			assert_non_null(p->later);
		}
		for (int32_t pid = 1; pid <= 1500; pid++)
			processes_end(t, processes_find(t, pid));
		processes_reap(t, NULL, NULL);
	}
	processes_free(t, NULL, NULL);
}

static void free_ends_all(void **state)
{
	struct processes *t = processes_new();

	(void)state;
	nr_seen = 0;
	for (int32_t pid = 1; pid <= 3; pid++)
		assert_non_null(processes_add(t, pid));
	processes_end(t, processes_find(t, 2));
	processes_free(t, end, &nr_seen);
	assert_int_equal(nr_seen, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lives_of_a_pid),    cmocka_unit_test(many),
		cmocka_unit_test(searches_by_turns), cmocka_unit_test(lives_begin_empty),
		cmocka_unit_test(free_ends_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
