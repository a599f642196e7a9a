/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests that sample this machine with the source "bpf": work to be sampled, what is seen of it,
 * and a source that is opened, drained and accounted for.
 */
#ifndef DCPI_TEST_LIVE_H
#define DCPI_TEST_LIVE_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf_internal.h"
#include "work.h"

/* ---- work ------------------------------------------------------------------------------------ */

enum { BLOCK = 4096 };

/* Code in blocks of its own, so that a range can hold it and nothing else. */
__attribute__((noinline, unused, aligned(BLOCK), section(".text.spin"))) static unsigned int
spin_some(unsigned int n)
{
	volatile unsigned int work = n;

	for (unsigned int i = 0; i < n; i++)
		work = work * 3 + i;
	return work;
}

__attribute__((noinline, used, aligned(BLOCK), section(".text.spin"))) static void spin_end(void)
{
	__asm__ volatile("");
}

/* CPU time, not wall time, for the machine may be busy. */
static inline void spin(int ms)
{
	struct work w = { 0 };

	while (work_ms(&w) < ms)
		spin_some(100000);
}

/* The same, and as many different places in the kernel as can be had. */
static inline void spin_calling(int ms)
{
	struct work w = { 0 };

	while (work_ms(&w) < ms) {
		spin_some(10000);
		close(dup(0));
	}
}

/* A test that is killed leaves nobody behind who works without end. */
static inline pid_t fork_child(void)
{
	pid_t pid = fork();

	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static inline pid_t start_spinner(void)
{
	char self[4096] = { 0 };
	pid_t pid;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return -1;
	pid = fork_child();
	if (!pid) {
		execl(self, "unit_driver_bpf_live", "spin", (char *)NULL);
		_exit(1);
	}
	return pid;
}

/* Wait for a child that ends well: the milliseconds of CPU time that it had. */
static inline uint64_t wait_for(pid_t pid)
{
	struct rusage used;
	int status = -1;

	assert_true(pid > 0);
	assert_int_equal(wait4(pid, &status, 0, &used), pid);
	assert_int_equal(status, 0);
	return (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 +
	       (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
}

/* ---- what is seen ---------------------------------------------------------------------------- */

struct trace {
	uint64_t begin_ns, end_ns;
	uint64_t counts, bad; /* samples; those that were not in it */
};

struct seen {
	int32_t pid; /* whose life and user samples are looked at */
	int step;    /* 1 fork, 2 exec, 3 mapping, 4 exit: each only behind the one before */
	uint64_t counts, user, largest, unread, last_ns, disorder;
	uint64_t kernel, idle, bad; /* of everybody; keys that cannot be */
	uint64_t read;		    /* of pid in the range: with its generation */
	uint64_t singles;	    /* of pid, in the range */
	uint64_t lo, hi;	    /* the range */
	struct trace traces[8];	    /* by generation, of pid in the range */
	uint64_t event[DRIVER_NR_EVENTS];
	bool registry; /* pid mapped one */
	uint64_t forks, cursors, cursors_bad;
};

static struct driver *d;

enum { NR_FORKS = 400 /* of a storm */ };

__attribute__((unused)) static struct {
	int32_t pid;
	uint64_t cursor;
} forked[NR_FORKS];

static size_t nr_forked;

static inline void see_time(struct seen *s, uint64_t time_ns)
{
	s->disorder += time_ns < s->last_ns;
	s->last_ns = time_ns;
}

static inline void see_fork(struct seen *s, const struct driver_load *l)
{
	if (l->kind != DRIVER_LOAD_FORK || l->ppid != s->pid)
		return;
	s->forks++;
	for (size_t i = 0; i < nr_forked && l->flags & DRIVER_LOAD_CURSOR; i++) {
		if (forked[i].pid != l->pid)
			continue;
		s->cursors++;
		s->cursors_bad += l->cursor != forked[i].cursor;
	}
}

static inline int on_load(void *ctx, const struct driver_load *l)
{
	struct seen *s = ctx;

	if (l->kind == DRIVER_LOAD_LOST)
		return 0;
	/* Of code of others, which comes and goes beside us, a kernel was seen to tell no time. */
	if (l->kind != DRIVER_LOAD_KSYMBOL || l->time_ns)
		see_time(s, l->time_ns);
	see_fork(s, l);
	if (l->pid != s->pid)
		return 0;
	s->registry |= l->kind == DRIVER_LOAD_MMAP && !strncmp(l->path, "/memfd:dbgdyn", 13);
	if (l->kind == DRIVER_LOAD_FORK && s->step == 0 && l->ppid == getpid())
		s->step = 1;
	if (l->kind == DRIVER_LOAD_EXEC && s->step == 1 && !strncmp(l->path, "unit_driver", 11))
		s->step = 2;
	if (l->kind == DRIVER_LOAD_MMAP && s->step == 2 && strstr(l->path, "unit_driver"))
		s->step = 3;
	if (l->kind == DRIVER_LOAD_EXIT && s->step == 3)
		s->step = 4;
	return 0;
}

static inline void see_own(struct seen *s, const struct driver_count *c)
{
	struct trace *w;

	s->user += c->count;
	if (c->count > s->largest)
		s->largest = c->count;
	if (c->addr < s->lo || c->addr >= s->hi)
		return;
	s->singles += c->count == 1 && c->first_ns == c->time_ns;
	s->read += c->generation_read ? c->count : 0;
	s->unread += c->generation_unread ? c->count : 0;
	if (c->generation_unread || c->generation >= 8)
		return;
	w = &s->traces[c->generation];
	w->counts += c->count;
	if (c->first_ns < w->begin_ns || c->time_ns > w->end_ns)
		w->bad += c->count;
}

static inline int on_count(void *ctx, const struct driver_count *c)
{
	struct seen *s = ctx;

	see_time(s, c->time_ns);
	s->counts += c->count;
	s->event[c->event] += c->count;
	s->kernel += c->mode == DRIVER_KERNEL ? c->count : 0;
	s->idle += c->mode == DRIVER_KERNEL && c->pid == 0 ? c->count : 0;
	s->bad += !c->count || c->first_ns > c->time_ns || c->mode == DRIVER_OTHER ||
		  (c->mode == DRIVER_USER ? c->pid <= 0 : c->pid < 0);
	if (c->mode == DRIVER_USER && c->pid == s->pid)
		see_own(s, c);
	return 0;
}

static inline uint64_t lost(const struct driver_stats *st)
{
	return st->lost_ring + st->lost_table + st->lost_late + st->lost_nested + st->lost_read +
	       st->lost_bad;
}

/* One that comes late may know nothing of what it interrupted: few do. */
static inline bool has_tick(void)
{
	for (size_t i = 0; i < driver_nr_events(d); i++)
		if (!strcmp(driver_event_get(d, i)->name, "tick"))
			return true;
	return false;
}

static inline struct driver_stats check_law(const struct seen *s)
{
	struct driver_stats st;
	uint64_t received = 0;

	driver_stats_get(d, &st);
	for (size_t i = 0; i < DRIVER_NR_EVENTS; i++)
		received += st.received[i];
	assert_int_equal(received, s->counts + st.held + lost(&st));
	if (st.lost_read + st.lost_ring || st.lost_bad > (has_tick() ? 5 + received / 20 : 0))
		fail_msg("lost: %llu as unreadable, %llu as bad, %llu in a ring",
			 (unsigned long long)st.lost_read, (unsigned long long)st.lost_bad,
			 (unsigned long long)st.lost_ring);
	assert_int_equal(s->disorder, 0);
	assert_int_equal(s->bad, 0);
	return st;
}

static inline void drain(struct seen *s, bool all)
{
	const struct driver_sink sink = { .load = on_load, .count = on_count, .ctx = s };
	struct base_err err = { 0 };

	if (driver_drain(d, all, &sink, &err) < 0)
		fail_msg("%s", err.text);
	check_law(s);
}

static inline void start(const struct driver_config *config)
{
	struct driver_config c = *config;
	struct base_err err = { 0 };

	c.source = "bpf";
	if (driver_open(&c, &d, &err) < 0 || driver_start(d, &err) < 0)
		fail_msg("%s (%s)", err.text, err.hint);
	/* Another one that comes later would not be told. */
	assert_int_equal(err.code, 0);
}

static inline void stop(struct seen *s)
{
	driver_stop(d);
	drain(s, true);
}

static inline int close_driver(void **state)
{
	(void)state;
	driver_close(d);
	d = NULL;
	return 0;
}

/* Work until there is enough of what *@nr counts: on a busy machine others fill the tables. */
static inline void spin_until(struct seen *s, const uint64_t *nr, uint64_t enough)
{
	for (int i = 0; i < 500 && *nr < enough; i++) {
		spin(20);
		drain(s, true);
	}
	assert_true(*nr >= enough);
}

static const char *const clock_event[] = { "cpu-clock" };

__attribute__((unused)) static const struct driver_config fast = {
	.slots = clock_event,
	.nr_slots = 1,
	.frequency = 10000,
	.table_len = 1 << 16,
};

/* Of a client whose words are where it says (driver_client). */
static inline bool live_stands(void *ctx)
{
	(void)ctx;
	return true;
}

/* What main returns at once, -1 where the tests are to run: it is the spinner, or there is no
 * source. */
static inline int live_begin(int argc, char **argv)
{
	const struct driver_config config = { .source = "bpf",
					      .slots = clock_event,
					      .nr_slots = 1 };
	struct base_err err = { 0 };
	int r;

	if (argc > 1 && !strcmp(argv[1], "spin")) {
		spin(300);
		return 0;
	}
	r = driver_open(&config, &d, &err);
	if (r == -DCPI_ENOEVENTS || r == -DCPI_EUNSUPPORTED) {
		base_err_print(&err, "skipped", stdout);
		return BASE_EXIT_SKIP;
	}
	if (r < 0) {
		base_err_print(&err, "failed", stdout);
		return 1;
	}
	printf("%s\n", driver_describe(d));
	close_driver(NULL);
	return -1;
}

#define LIVE_TEST(name) cmocka_unit_test_teardown(name, close_driver)

#endif
