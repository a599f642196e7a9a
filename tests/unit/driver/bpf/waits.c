/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums of waiting threads and their paths, on their way from the kernel, without one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "bpf_waits.h"
#include "kernel/callpaths.h"

struct record {
	struct wait_path w;
	uint64_t frames[CALLPATH_NR_FRAMES + 1];
};

static size_t record_of(struct record *r, uint64_t path, uint16_t nr_kernel, uint16_t nr)
{
	memset(r, 0, sizeof(*r));
	r->w.time_ns = path;
	r->w.instance = 5;
	r->w.path[0] = path;
	r->w.path[1] = 1;
	r->w.tgid = 6;
	r->w.nr_kernel = nr_kernel;
	r->w.nr = nr;
	r->w.end = CALLPATH_NO_ROWS;
	for (size_t i = 0; i < nr; i++)
		r->frames[i] = 1000 * path + i;
	return sizeof(r->w) + nr * sizeof(uint64_t);
}

static struct wait_key key_of(uint64_t path, enum wait_state state)
{
	return (struct wait_key){ .instance = 5,
				  .path = { path, path ? 1 : 0 },
				  .tgid = 6,
				  .thread = 7,
				  .state = state };
}

struct taken {
	size_t nr;
	struct driver_callpath c[8];
	uint64_t frames[8][CALLPATH_NR_FRAMES];
	size_t refuse_at;
};

static struct taken taken;

static int take(void *ctx, const struct driver_callpath *c, const uint64_t *frames)
{
	(void)ctx;
	assert_true(taken.nr < 8 && c->nr <= CALLPATH_NR_FRAMES);
	memcpy(taken.frames[taken.nr], frames, c->nr * sizeof(*frames));
	taken.c[taken.nr++] = *c;
	return taken.nr == taken.refuse_at ? -EPIPE : 0;
}

static const struct driver_sink sink = { .callpath = take };

static void put(struct bpf_waits *w, uint64_t path, enum wait_state state, uint64_t ns,
		uint64_t last_ns)
{
	const struct wait_key key = key_of(path, state);
	const struct wait_sum sum = { .ns = ns, .nr = 1, .last_ns = last_ns };

	bpf_waits_sum(w, &key, &sum);
}

static int setup(void **state)
{
	(void)state;
	memset(&taken, 0, sizeof(taken));
	return 0;
}

static void sums_get_their_paths(void **state)
{
	struct bpf_waits w = { .event_wait = 1, .event_run = 2 };
	static struct record r;
	size_t len = record_of(&r, 3, 2, 4);

	(void)state;
	bpf_waits_path(&w, &r, len);
	put(&w, 3, WAIT_RUNNABLE, 100, 50);
	put(&w, 0, WAIT_RUNS, 30, 40);
	put(&w, 9, WAIT_BLOCKED, 20, 60);
	put(&w, 3, WAIT_IO, 0, 60);
	assert_int_equal(bpf_waits_hand(&w, UINT64_MAX, &sink), 0);
	assert_int_equal(taken.nr, 3);
	assert_int_equal(w.handed_ns, 150);

	assert_int_equal(taken.c[0].wait, DRIVER_WAIT_RUNS);
	assert_int_equal(taken.c[0].event, 2);
	assert_int_equal(taken.c[0].nr, 1);
	assert_int_equal(taken.c[0].end, DRIVER_CALLPATH_COMPLETE);

	assert_int_equal(taken.c[1].wait, DRIVER_WAIT_RUNNABLE);
	assert_int_equal(taken.c[1].event, 1);
	assert_int_equal(taken.c[1].count, 100);
	assert_int_equal(taken.c[1].first_ns, 3);
	assert_int_equal(taken.c[1].time_ns, 50);
	assert_int_equal(taken.c[1].pid, 6);
	assert_int_equal(taken.c[1].thread, 7);
	assert_int_equal(taken.c[1].instance, 5);
	assert_int_equal(taken.c[1].nr_kernel, 3);
	assert_int_equal(taken.c[1].nr, 5);
	assert_int_equal(taken.c[1].end, DRIVER_CALLPATH_NO_ROWS);
	assert_int_equal(taken.frames[1][0], 0);
	assert_int_equal(taken.frames[1][1], 3000);
	assert_int_equal(taken.frames[1][4], 3003);

	/* Its path is not known. */
	assert_int_equal(taken.c[2].wait, DRIVER_WAIT_UNKNOWN);
	assert_int_equal(taken.c[2].nr, 1);
	assert_int_equal(taken.c[2].end, DRIVER_CALLPATH_UNREADABLE);
	bpf_waits_release(&w);
}

static void order_is_that_of_time(void **state)
{
	struct bpf_waits w = { 0 };

	(void)state;
	put(&w, 0, WAIT_RUNS, 1, 30);
	put(&w, 0, WAIT_RUNS, 2, 10);
	put(&w, 0, WAIT_RUNS, 3, 20);
	assert_int_equal(bpf_queue_next(&w.queue), 10);
	assert_int_equal(bpf_waits_hand(&w, 21, &sink), 0);
	assert_int_equal(taken.nr, 2);
	assert_int_equal(taken.c[0].count, 2);
	assert_int_equal(taken.c[1].count, 3);
	taken.refuse_at = 3;
	assert_int_equal(bpf_waits_hand(&w, 31, &sink), -EPIPE);
	bpf_waits_release(&w);
}

/* A thread that waits names its path in each gathering; what none names is forgotten. */
static void paths_stay_as_long_as_they_are_named(void **state)
{
	struct bpf_waits w = { 0 };
	static struct record r;

	(void)state;
	bpf_waits_path(&w, &r, record_of(&r, 3, 1, 2));
	bpf_waits_path(&w, &r, record_of(&r, 4, 1, 2));
	for (int i = 0; i < 10; i++) {
		put(&w, 3, WAIT_BLOCKED, 5, 10);
		bpf_waits_gathered(&w);
	}
	assert_int_equal(w.paths.nr, 1);
	for (int i = 0; i < 3; i++)
		bpf_waits_gathered(&w);
	assert_int_equal(w.paths.nr, 0);
	bpf_waits_release(&w);
}

/* Whoever makes paths without end gets no more memory than there is for them. */
static void paths_without_end(void **state)
{
	enum { MANY = 20000 };
	struct bpf_waits w = { 0 };
	static struct record r;

	(void)state;
	for (uint64_t i = 1; i <= MANY; i++)
		bpf_waits_path(&w, &r, record_of(&r, i, 1, CALLPATH_NR_FRAMES));
	assert_true(w.path_bytes <= BPF_WAITS_BYTES_MAX && w.new_bytes == w.path_bytes);
	assert_true(w.lost_paths > 0);
	assert_int_equal(w.paths.nr + w.lost_paths, MANY);
	bpf_waits_gathered(&w);
	assert_int_equal(w.new_bytes, 0);
	for (int i = 0; i < 3; i++)
		bpf_waits_gathered(&w);
	assert_int_equal(w.path_bytes, 0);
	bpf_waits_path(&w, &r, record_of(&r, 1, 1, 2));
	assert_int_equal(w.paths.nr, 1);
	bpf_waits_release(&w);
}

/* The deepest path loses its outermost frame, as the wait itself stands before it. */
static void deepest_path(void **state)
{
	struct bpf_waits w = { 0 };
	static struct record r;
	size_t len = record_of(&r, 3, 2, CALLPATH_NR_FRAMES);

	(void)state;
	bpf_waits_path(&w, &r, len);
	put(&w, 3, WAIT_BLOCKED, 5, 10);
	assert_int_equal(bpf_waits_hand(&w, UINT64_MAX, &sink), 0);
	assert_int_equal(taken.c[0].nr, CALLPATH_NR_FRAMES);
	assert_int_equal(taken.c[0].end, DRIVER_CALLPATH_CUT);
	assert_int_equal(taken.frames[0][CALLPATH_NR_FRAMES - 1], 3000 + CALLPATH_NR_FRAMES - 2);
	bpf_waits_release(&w);
}

static void records_that_make_no_sense(void **state)
{
	struct bpf_waits w = { 0 };
	static struct record r;
	size_t len = record_of(&r, 1, 1, 3);

	(void)state;
	for (size_t cut = 0; cut < len; cut++)
		bpf_waits_path(&w, &r, cut);
	bpf_waits_path(&w, &r, record_of(&r, 1, 0, CALLPATH_NR_FRAMES + 1));
	bpf_waits_path(&w, &r, record_of(&r, 1, 0, 0));
	bpf_waits_path(&w, &r, record_of(&r, 1, 4, 3));
	len = record_of(&r, 1, 1, 3);
	r.w.end = DRIVER_NR_CALLPATH_ENDS;
	bpf_waits_path(&w, &r, len);
	assert_int_equal(w.paths.nr, 0);
	bpf_waits_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(sums_get_their_paths, setup),
		cmocka_unit_test_setup(order_is_that_of_time, setup),
		cmocka_unit_test_setup(paths_stay_as_long_as_they_are_named, setup),
		cmocka_unit_test_setup(paths_without_end, setup),
		cmocka_unit_test_setup(deepest_path, setup),
		cmocka_unit_test_setup(records_that_make_no_sense, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
