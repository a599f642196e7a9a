/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of workloads: their sums, moves, limits and what flushes make of them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "workload_internal.h"

static struct workloads *w;
static struct workload_table *a, *b;

/* ---- a file in memory ------------------------------------------------------------------------ */

static struct profdb_workloads *file;
static int put_result;	   /* what putting returns, where it is negative */
static size_t max_in_file; /* more workloads do not fit; 0: as many as there may be */

int __wrap_profdb_flush_put_workloads(struct profdb *db, const struct profdb_workloads *p,
				      struct base_err *err);
int __wrap_profdb_flush_put_workloads(struct profdb *db, const struct profdb_workloads *p,
				      struct base_err *err)
{
	(void)db;
	if (put_result < 0)
		return base_fail(err, put_result, "so it is wanted");
	/* As the true one, which adds up what does not fit: one workload always does. */
	if (max_in_file > 1 && profdb_workloads_nr(p) == 1)
		return profdb_workloads_merge(file, p);
	if (max_in_file && profdb_workloads_nr(p) + profdb_workloads_nr(file) > max_in_file)
		return base_fail(err, -DCPI_ELIMIT, "too many");
	assert_int_equal(profdb_workloads_merge(file, p), 0);
	return 0;
}

static const struct profdb_event events[] = { { .name = "cycles", .period = 1000 },
					      { .name = "misses", .period = 10 } };

/* As the flush does it; false: it fails. */
static bool flush(bool with_b)
{
	struct base_id id = { .len = 1, .bytes = { 1 } };
	const struct workload_image images[] = {
		{ .ref = { .kind = PROFDB_FILE, .id = id, .path = "/bin/a" }, .table = a },
		{ .ref = { .kind = PROFDB_NAMED, .path = "unknown" }, .table = b },
	};
	struct base_err err = { 0 };
	int r = workload_put(w, NULL, events, 2, images, with_b ? 2 : 1, &err);

	assert_int_equal(r, err.code);
	if (r < 0)
		return false;
	workload_written(w);
	workload_table_clear(a);
	if (with_b)
		workload_table_clear(b);
	workload_sweep(w);
	return true;
}

/* Samples and processes of the workloads in the file that are as @k says; NULL, and pid and uid -1:
 * any. */
struct found {
	uint64_t samples, processes;
	size_t nr;
};

static bool fits(const char *want, const char *is)
{
	return !want || strcmp(want, is) == 0;
}

static bool is_wanted(const struct profdb_workload *k, const struct profdb_workload *want)
{
	return fits(want->comm, k->comm) && fits(want->exe, k->exe) &&
	       fits(want->cgroup, k->cgroup) && fits(want->thread, k->thread) &&
	       (want->pid < 0 || want->pid == k->pid);
}

static struct found find(const struct profdb_workload *want)
{
	struct found f = { 0 };

	for (size_t i = 0; i < profdb_workloads_nr(file); i++) {
		if (!is_wanted(profdb_workloads_workload(file, i), want))
			continue;
		f.nr++;
		f.processes += profdb_workloads_workload(file, i)->processes;
		for (size_t j = 0; j < profdb_workloads_nr_counts(file); j++) {
			struct profdb_workload_count c = profdb_workloads_count(file, j);

			f.samples += c.workload == i ? c.count[0] : 0;
		}
	}
	return f;
}

static struct found find_comm(const char *comm)
{
	return find(&(struct profdb_workload){ .comm = comm, .pid = -1 });
}

static struct found find_pid(int32_t pid)
{
	return find(&(struct profdb_workload){ .pid = pid });
}

/* ---- what comes in --------------------------------------------------------------------------- */

static uint32_t life(const char *comm, int32_t pid)
{
	return workload_life(
		w,
		&(struct workload_who){
			.comm = comm, .exe = "/bin/x", .cgroup = "/c", .uid = 1000, .pid = pid });
}

static void add(struct workload_table **t, uint32_t of, uint32_t thread, uint64_t off, uint64_t n)
{
	const struct workload_where where = { .life = of, .thread = thread, .minute = 100 };

	assert_int_equal(workload_table_reserve(w, t, 1), 0);
	workload_tables_add(&(struct workload_add){ *t, where, off, n, 0 }, 1);
}

static void add_ns(struct workload_table **t, uint32_t of, uint64_t ns)
{
	const struct workload_where where = { .life = of, .minute = 100 };

	assert_int_equal(workload_table_reserve(w, t, 1), 0);
	workload_tables_add(&(struct workload_add){ *t, where, 0, ns, 1 }, 1);
}

static const char *name_of(const void *ctx, uint32_t thread)
{
	(void)thread;
	return ctx;
}

static int setup(void **state)
{
	(void)state;
	w = workloads_new();
	file = profdb_workloads_new();
	put_result = 0;
	max_in_file = 0;
	return w && file ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	workload_table_free(a);
	workload_table_free(b);
	a = b = NULL;
	workloads_free(w);
	profdb_workloads_free(file);
	return 0;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void counts_of_one_place_add_up(void **state)
{
	uint32_t x = life("x", 10), y = life("y", 11);

	(void)state;
	for (uint64_t i = 0; i < 3000; i++) {
		add(&a, x, 0, i % 1000, 1);
		add(&a, y, 0, i % 500, 2);
	}
	assert_int_equal(workload_table_nr(a), 1500);
	assert_int_equal(workload_table_sum(a, 0), 9000);
	assert_int_equal(workload_table_sum(a, 1), 0);
	assert_true(flush(true));
	assert_int_equal(find_comm("x").samples, 3000);
	assert_int_equal(find_comm("y").samples, 6000);
	assert_int_equal(profdb_workloads_nr_counts(file), 1500);
	assert_int_equal(profdb_workloads_event(file, 0)->sum, 9000);
	assert_int_equal(workload_table_nr(a), 0);
}

static void a_failure_changes_nothing(void **state)
{
	uint32_t x = life("x", 10);

	(void)state;
	add(&a, x, 0, 1, 60);
	put_result = -ENOSPC;
	assert_false(flush(true));
	put_result = 0;
	add(&a, x, 0, 1, 1);
	assert_true(flush(true));
	assert_int_equal(find_pid(10).samples, 61);
	assert_int_equal(find_pid(10).processes, 1);
}

/* The profile of @b waits: so do its counts, and who they are of is still known. */
static void those_that_wait(void **state)
{
	uint32_t x = life("x", 10);

	(void)state;
	add(&a, x, 0, 1, 1);
	add(&b, x, 0, 2, 1);
	assert_true(flush(false));
	assert_int_equal(find_comm("x").samples, 1);
	assert_int_equal(workload_table_sum(b, 0), 1);
	life("other", 11);
	assert_true(flush(true));
	assert_int_equal(find_comm("x").samples, 2);
	assert_int_equal(find_comm("x").processes, 1);
	assert_int_equal(find_comm("x").nr, 1);
}

static uint64_t twice(void *ctx, uint64_t off)
{
	(void)ctx;
	return 2 * off;
}

static void moved(void **state)
{
	uint32_t x = life("x", 10);

	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		add(&a, x, 0, i, 1);
	add(&b, x, 0, 6, 5);
	assert_int_equal(workload_table_reserve_from(a, &b, workload_table_nr(a)), 0);
	workload_table_move(a, b, twice, NULL);
	assert_int_equal(workload_table_nr(a), 0);
	assert_int_equal(workload_table_nr(b), 100);
	assert_int_equal(workload_table_sum(b, 0), 105);
	assert_int_equal(workload_table_reserve_from(NULL, &a, 0), 0);
}

/* Ten thousand runs of one program are one workload. */
static void short_processes(void **state)
{
	uint32_t x = life("x", 5);

	(void)state;
	for (int32_t i = 0; i < 10000; i++) {
		add(&a, life("cc1", 100 + i), 0, (uint64_t)i % 50, 1);
		workload_mark(w, x);
		if (i % 1000 == 999)
			assert_true(flush(true));
	}
	add(&a, x, 0, 1, 5000);
	assert_true(flush(true));
	assert_int_equal(find_comm("cc1").nr, 1);
	assert_int_equal(find_comm("cc1").samples, 10000);
	assert_int_equal(find_comm("cc1").processes, 10000);
	assert_int_equal(find_pid(5).samples, 5000);
	assert_true(w->nr_lives - w->nr_free_lives < 10);
}

/* It stays apart in its epoch, however little it does there later. */
static void worth_a_pid(void **state)
{
	uint32_t x = life("x", 10), y = life("y", 11), z = life("z", 12);
	struct workload_stats s;

	(void)state;
	add(&a, x, 0, 1, 49);
	add(&a, y, 0, 1, 50);
	add(&a, WORKLOAD_IDLE, 0, 1, 1000000);
	workload_mark(w, x);
	workload_mark(w, y);
	workload_mark(w, z);
	assert_true(flush(true));
	assert_int_equal(find_pid(10).nr, 0);
	assert_int_equal(find_pid(11).samples, 50);
	assert_int_equal(find_comm("(idle)").samples, 1000000);
	add(&a, z, 0, 1, 1000000);
	add(&a, y, 0, 1, 1);
	add(&a, x, 0, 1, 200);
	workload_mark(w, x);
	workload_mark(w, y);
	assert_true(flush(true));
	assert_int_equal(find_pid(11).samples, 51);
	assert_int_equal(find_pid(10).nr, 0);
	assert_int_equal(find_comm("x").samples, 249);
	assert_int_equal(find_comm("x").processes, 1);
	workload_stats_get(w, &s);
	assert_int_equal(s.apart, 2);
	assert_int_equal(s.joined, 1);
	assert_false(workload_new_epoch(w));
	profdb_workloads_free(file);
	file = profdb_workloads_new();
	add(&a, y, 0, 1, 1);
	assert_true(flush(true));
	assert_int_equal(find_pid(11).nr, 0);
	assert_int_equal(find_comm("y").processes, 1);
}

static void threads(void **state)
{
	uint32_t x = life("x", 10), y = life("y", 11);
	uint32_t one = workload_thread(w, 7, name_of, "one"), two, own;

	(void)state;
	assert_int_equal(workload_thread(w, 0, name_of, "none"), 0);
	two = workload_thread(w, 900, name_of, "two");
	own = workload_thread(w, 3, name_of, "y");
	assert_int_equal(workload_thread(w, 7, name_of, "asked once"), one);
	assert_string_equal(workload_thread_name(w, two), "two");
	add(&a, x, one, 1, 100);
	add(&a, x, two, 1, 200);
	add(&a, y, one, 1, 3);
	add(&a, y, own, 1, 4);
	/* The driver's numbers are others now. */
	assert_false(workload_new_epoch(w));
	assert_int_equal(workload_thread(w, 7, name_of, "two"), two);
	add(&a, x, two, 1, 100);
	assert_true(flush(true));
	assert_int_equal(find(&(struct profdb_workload){ .thread = "one", .pid = 10 }).samples,
			 100);
	assert_int_equal(find(&(struct profdb_workload){ .thread = "two", .pid = 10 }).samples,
			 300);
	assert_int_equal(find_comm("x").processes, 1);
	/* Not of a process without a pid of its own, unless they are called like it. */
	assert_int_equal(find(&(struct profdb_workload){ .comm = "y", .thread = "" }).samples, 3);
	assert_int_equal(find(&(struct profdb_workload){ .comm = "y", .thread = "y" }).samples, 4);
	assert_int_equal(find_comm("y").processes, 1);
}

static void too_many_threads(void **state)
{
	uint32_t x = life("x", 10), last = 0;
	char name[16];

	(void)state;
	for (uint32_t i = 1; i < 2 * WORKLOAD_NR_THREADS; i++) {
		snprintf(name, sizeof(name), "t%u", i);
		last = workload_thread(w, i, name_of, name);
	}
	assert_int_equal(last, 0);
	add(&a, x, 5, 1, 100);
	assert_true(workload_new_epoch(w));
	assert_int_not_equal(workload_thread(w, 1, name_of, "new"), 0);
	assert_true(flush(true));
	assert_int_equal(find(&(struct profdb_workload){ .thread = "", .pid = -1 }).samples, 100);
}

/* Samples that are not on disk are not of what it was taken for at first. */
static void known_better(void **state)
{
	struct workload_who who = {
		.comm = "x", .exe = "/bin/x", .cgroup = "/d", .uid = 1, .pid = 9
	};
	uint32_t x = life("x", 9);

	(void)state;
	add(&a, x, 0, 1, 3);
	assert_int_equal(workload_life_change(w, x, &who), x);
	assert_int_equal(workload_life_change(w, x, &who), x);
	assert_true(flush(true));
	assert_int_equal(find(&(struct profdb_workload){ .cgroup = "/d", .pid = -1 }).samples, 3);
	assert_int_equal(find(&(struct profdb_workload){ .cgroup = "/c", .pid = -1 }).nr, 0);
	/* WORKLOAD_NOBODY stays what it is. */
	assert_true(workload_life_change(w, WORKLOAD_NOBODY, &who) > WORKLOAD_IDLE);
}

static struct workload_who brief_who(const char *exe)
{
	return (struct workload_who){
		.comm = "x", .exe = exe, .cgroup = "/c", .uid = 1000, .pid = 9, .brief = true
	};
}

/* They share a number, and each of them counts once, whatever is known of it later. */
static void brief_ones(void **state)
{
	const struct workload_who first = brief_who("/bin/x"), second = brief_who("/bin/y");
	uint32_t x = workload_life(w, &first), y;

	(void)state;
	assert_int_equal(workload_life(w, &first), x);
	add(&a, x, 0, 1, 100);
	y = workload_life_change(w, x, &second);
	assert_int_not_equal(y, x);
	add(&a, y, 0, 1, 100);
	assert_true(flush(true));
	assert_int_equal(find_comm("x").nr, 2);
	assert_int_equal(find_pid(9).nr, 0);
	assert_int_equal(find(&(struct profdb_workload){ .exe = "/bin/x", .pid = -1 }).processes,
			 1);
	assert_int_equal(find(&(struct profdb_workload){ .exe = "/bin/y", .pid = -1 }).processes,
			 1);
}

/* Samples before it was known whose they are count as the later ones do. */
static void brief_but_known_late(void **state)
{
	const struct workload_who who = brief_who("/bin/y");
	uint32_t x = life("x", 9), y;

	(void)state;
	add(&a, x, 0, 1, 1);
	y = workload_life_change(w, x, &who);
	assert_true(workload_is_group(w, y));
	add(&a, y, 0, 1, 100);
	assert_true(flush(true));
	assert_int_equal(find_comm("x").nr, 1);
	assert_int_equal(find_comm("x").samples, 101);
	assert_int_equal(find_comm("x").processes, 1);
}

static void more_lives_than_are_kept(void **state)
{
	uint32_t x;

	(void)state;
	for (int32_t i = 1; i <= WORKLOAD_NR_LIVES + 100; i++)
		add(&a, life("cc1", i), 0, 1, 1);
	x = life("cc1", 200000);
	assert_int_equal(w->lives[x].pid, 0);
	add(&a, x, 0, 1, 100000);
	assert_true(w->nr_lives <= WORKLOAD_NR_LIVES + 10);
	assert_true(flush(true));
	assert_int_equal(find_comm("cc1").nr, 1);
	assert_int_equal(find_comm("cc1").samples, WORKLOAD_NR_LIVES + 100100);
	assert_int_equal(find_comm("cc1").processes, WORKLOAD_NR_LIVES + 101);
}

static const char *comm_of(uint32_t number)
{
	return workload_text(&w->names[w->lives[number].names], 0);
}

/* A user has half of the bytes that others leave; of the rest of its processes only the user is
 * known. */
static void names_without_end(void **state)
{
	static char comm[3 * PROFDB_WORKLOAD_NAME];
	uint32_t last = 0, other;

	(void)state;
	for (int32_t i = 1; i < 10000; i++) {
		memset(comm, 'x', sizeof(comm) - 1);
		comm[i % 4000] = (char)('a' + i / 4000);
		last = life(comm, i);
		add(&a, last, 0, 1, 1);
	}
	assert_string_equal(comm_of(last), "");
	assert_int_equal(w->names[w->lives[last].names].uid, 1000);
	assert_true(w->text_len <= WORKLOAD_TEXT_MAX / 2 + 100);
	assert_int_equal(workload_table_sum(a, 0), 9999);
	comm[0] = 'y';
	other = workload_life(w, &(struct workload_who){ .comm = comm, .uid = 1001 });
	assert_int_equal(strlen(comm_of(other)), PROFDB_WORKLOAD_NAME);
	workload_table_clear(a);
	workload_sweep(w);
	assert_true(w->text_len < 100);
	assert_string_equal(comm_of(life(comm, 1)), "");
	workload_new_epoch(w);
	assert_int_equal(strlen(comm_of(life(comm, 1))), PROFDB_WORKLOAD_NAME);
}

/* Nor can it take more than a part of the workloads that a file may have. */
static void a_process_that_renames_itself(void **state)
{
	uint32_t last = 0;
	char comm[16];

	(void)state;
	for (int32_t i = 0; i < WORKLOAD_NR_NAMES; i++) {
		snprintf(comm, sizeof(comm), "p%d", i);
		last = life(comm, 1);
		add(&a, last, 0, 1, 1);
		if (i % 4000 == 0)
			assert_true(flush(true));
	}
	assert_string_equal(comm_of(last), "");
	assert_true(flush(true));
	assert_int_equal(find_comm("").samples, WORKLOAD_NR_NAMES / 2 + 1);
	assert_int_equal(profdb_workloads_nr(file), WORKLOAD_NR_NAMES / 2);
	/* Names that it had already are no further ones. */
	assert_string_equal(comm_of(life("p5", 1)), "p5");
	last = workload_life(w, &(struct workload_who){ .comm = "of another", .uid = 1001 });
	assert_string_equal(comm_of(last), "of another");
}

/* They lose the pid and the thread, and nothing else. */
static void more_counts_than_are_kept(void **state)
{
	uint32_t x = life("x", 10), y = life("x", 11);

	(void)state;
	add(&a, x, 0, 1, 1000);
	w->nr_counts = WORKLOAD_NR_COUNTS;
	add(&a, x, 1, 1, 1);
	add(&a, y, 2, 1, 1);
	assert_int_equal(workload_table_nr(a), 2);
	w->nr_counts = 2;
	assert_true(flush(true));
	assert_int_equal(find_pid(10).samples, 1000);
	assert_int_equal(find(&(struct profdb_workload){ .comm = "x", .exe = "/bin/x" }).samples,
			 2);
}

static void add_in_minute(uint32_t of, uint32_t minute)
{
	const struct workload_where where = { .life = of, .minute = minute };

	assert_int_equal(workload_table_reserve(w, &a, 1), 0);
	workload_tables_add(&(struct workload_add){ a, where, 1, 1, 0 }, 1);
}

/* However long flushes fail, there are no more of them than there is code. */
static void far_more_counts_than_are_kept(void **state)
{
	uint32_t x = life("x", 10), y = life("y", 11);

	(void)state;
	w->nr_counts = 2 * WORKLOAD_NR_COUNTS;
	add_in_minute(x, 100);
	add_in_minute(x, 101);
	add_in_minute(y, 102);
	assert_int_equal(workload_table_nr(a), 1);
	assert_int_equal(workload_table_sum(a, 0), 3);
	w->nr_counts = 1;
	assert_true(flush(true));
	assert_int_equal(find_comm("").samples, 3);
	assert_int_equal(profdb_workloads_minute(file, 0).minute, 100);
	/* The next ones have a minute of their own. */
	w->nr_counts = 2 * WORKLOAD_NR_COUNTS;
	add_in_minute(x, 103);
	w->nr_counts = 1;
	assert_true(flush(true));
	assert_int_equal(profdb_workloads_minute(file, 1).minute, 103);
}

/* A file that is full gets the rest of its epoch with less in it, and the sums are right. */
static void a_file_that_is_full(void **state)
{
	struct workload_stats s;
	uint64_t sum = 0;

	(void)state;
	max_in_file = 20;
	for (int32_t i = 1; i <= 100; i++) {
		char comm[16];

		snprintf(comm, sizeof(comm), "p%d", i);
		add(&a, life(comm, i), workload_thread(w, (uint32_t)i, name_of, comm), 1, 100);
		if (i % 15 == 0)
			assert_true(flush(true));
	}
	assert_true(flush(true));
	for (size_t i = 0; i < profdb_workloads_nr_counts(file); i++)
		sum += profdb_workloads_count(file, i).count[0];
	assert_int_equal(sum, 10000);
	workload_stats_get(w, &s);
	assert_int_equal(s.level, WORKLOAD_NO_NAMES);
	assert_int_equal(s.lost, 0);
	assert_int_equal(find_comm("p1").samples, 100);
	/* Nor is there a place for the rest. */
	max_in_file = 1;
	add(&a, life("p", 200), 0, 1, 7);
	assert_true(flush(true));
	workload_stats_get(w, &s);
	assert_int_equal(s.lost, 7);
	workload_new_epoch(w);
	workload_stats_get(w, &s);
	assert_int_equal(s.level, WORKLOAD_ALL);
}

#define SECOND	UINT64_C(1000000000)
#define UTC(s)	((int64_t)(s) * (int64_t)SECOND)
#define MINUTES 60

static void minutes(void **state)
{
	struct workload_clock c = { 0 };

	(void)state;
	assert_int_equal(workload_clock_minute(&c, 120 * SECOND), 2);
	workload_clock_look(&c, 1000 * SECOND, UTC(600));
	assert_int_equal(workload_clock_minute(&c, 1000 * SECOND), 10);
	assert_int_equal(workload_clock_minute(&c, 1059 * SECOND), 10);
	assert_int_equal(workload_clock_minute(&c, 1060 * SECOND), 11);
	/* Before the first look, and before 1970. */
	assert_int_equal(workload_clock_minute(&c, 999 * SECOND), 9);
	assert_int_equal(workload_clock_minute(&c, 1 * SECOND), 0);
	/* Hurried by a little: no step. */
	workload_clock_look(&c, 1100 * SECOND, UTC(700) + 1000000);
	assert_int_equal(c.nr, 1);
}

static void minutes_across_steps(void **state)
{
	struct workload_clock c = { 0 };

	(void)state;
	workload_clock_look(&c, 1000 * SECOND, UTC(600));
	/* Set ahead by an hour, then back by two. */
	workload_clock_look(&c, 1010 * SECOND, UTC(600 + 10 + 3600));
	workload_clock_look(&c, 1020 * SECOND, UTC(600 + 20 + 3600));
	workload_clock_look(&c, 1030 * SECOND, UTC(6000 + 30));
	assert_int_equal(c.nr, 3);
	assert_int_equal(workload_clock_minute(&c, 1009 * SECOND), 10);
	assert_int_equal(workload_clock_minute(&c, 1010 * SECOND), 70);
	assert_int_equal(workload_clock_minute(&c, 1029 * SECOND), 70);
	assert_int_equal(workload_clock_minute(&c, 1031 * SECOND), 100);
	/* The oldest steps are forgotten. */
	for (uint64_t i = 0; i < 20; i++)
		workload_clock_look(&c, (2000 + i) * SECOND, UTC(100000 * i));
	assert_int_equal(c.nr, WORKLOAD_NR_STEPS);
	assert_int_equal(workload_clock_minute(&c, 2019 * SECOND), 100000 * 19 / MINUTES);
	assert_int_equal(workload_clock_minute(&c, 2018 * SECOND), 100000 * 18 / MINUTES);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* A process that waits has a pid too; and time is no sample, beside which others are few. */
static void worth_a_pid_by_time(void **state)
{
	(void)state;
	workloads_set_timed(w, 1);
	add(&a, life("x", 10), 0, 1, 60);
	add_ns(&a, life("y", 11), 1000000000);
	add_ns(&a, life("z", 12), 400000);
	add_ns(&a, life("short", 13), 49999999);
	assert_true(flush(true));
	assert_int_equal(find_pid(10).nr, 1);
	assert_int_equal(find_pid(11).nr, 1);
	assert_int_equal(find_pid(12).nr, 0);
	assert_int_equal(find_pid(13).nr, 0);
}

/* A machine full of processes that sleep leaves their pids to those that work. */
static void many_that_sleep(void **state)
{
	uint32_t old = life("old", 9), works;
	struct workload_stats s;

	(void)state;
	workloads_set_timed(w, 1);
	add(&a, old, 0, 1, 60);
	for (int32_t i = 0; i < 2 * WORKLOAD_NR_APART; i++)
		add_ns(&a, life("sleeps", 1000 + i), 1000000000);
	works = life("works", 10);
	add(&a, works, 0, 1, 60);
	assert_true(flush(true));
	assert_int_equal(find_pid(9).nr, 1);
	assert_int_equal(find_pid(10).nr, 1);
	/* One that only begins to work. */
	add(&a, life("later", 11), 0, 1, 60);
	assert_true(flush(true));
	assert_int_equal(find_pid(11).nr, 1);
	workload_stats_get(w, &s);
	assert_int_equal(s.apart, 3 + WORKLOAD_NR_APART_NS);
}

/* A note goes out with the samples of the next flush that succeeds, and once. */
static void notes(void **state)
{
	struct profdb_note n = { .utc = 5, .kind = PROFDB_NOTE_START };

	(void)state;
	workload_note(w, &n);
	assert_true(flush(true));
	assert_int_equal(profdb_workloads_nr_notes(file), 0);
	add(&a, life("x", 5), 0, 1, 1);
	put_result = -EIO;
	assert_false(flush(true));
	put_result = 0;
	assert_true(flush(true));
	assert_int_equal(profdb_workloads_nr_notes(file), 1);
	add(&a, life("x", 5), 0, 1, 1);
	n.utc = 6;
	for (int i = 0; i < 2 * WORKLOAD_NR_NOTES; i++)
		workload_note(w, &n);
	assert_true(flush(true));
	assert_int_equal(profdb_workloads_nr_notes(file), 1 + WORKLOAD_NR_NOTES);
	assert_int_equal(profdb_workloads_note_at(file, 1)->utc, 6);
	add(&a, life("x", 5), 0, 1, 1);
	assert_true(flush(true));
	assert_int_equal(profdb_workloads_nr_notes(file), 1 + WORKLOAD_NR_NOTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(counts_of_one_place_add_up),
		T(a_failure_changes_nothing),
		T(those_that_wait),
		T(moved),
		T(short_processes),
		T(worth_a_pid),
		T(worth_a_pid_by_time),
		T(many_that_sleep),
		T(threads),
		T(too_many_threads),
		T(known_better),
		T(brief_ones),
		T(brief_but_known_late),
		T(more_lives_than_are_kept),
		T(names_without_end),
		T(a_process_that_renames_itself),
		T(more_counts_than_are_kept),
		T(far_more_counts_than_are_kept),
		T(a_file_that_is_full),
		T(notes),
		cmocka_unit_test(minutes),
		cmocka_unit_test(minutes_across_steps),
	};

	base_log_init(fopen("/dev/null", "w"), BASE_LOG_ERROR, BASE_LOG_BARE);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
