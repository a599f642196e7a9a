/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that runtimes write, and code that nobody names: we are the process that is followed. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "jit_internal.h"
#include "tracker.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

static char dump_path[128], map_path[64];
static int dump_fd; /* to write */

/* What a perf map names, and what nobody does, is read from here. */
static _Alignas(WIRE_PAGE) uint8_t block[4 * WIRE_PAGE];
enum { LEN = 64 };

static int setup(void **state)
{
	int r = tracker_setup(state);
	const struct tracker *t = *state;

	if (!t)
		return r;
	snprintf(dump_path, sizeof(dump_path), "%s/any-name", t->dir);
	snprintf(map_path, sizeof(map_path), "/tmp/perf-%d.map", getpid());
	dump_fd = open(dump_path, O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND, 0600);
	assert_true(dump_fd >= 0);
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = (uint8_t)(i / LEN);
	return 0;
}

static int teardown(void **state)
{
	if (*state) {
		close(dump_fd);
		unlink(map_path);
	}
	return tracker_teardown(state);
}

/* ---- what runtimes write --------------------------------------------------------------------- */

static void put(const void *bytes, size_t len)
{
	assert_int_equal(write(dump_fd, bytes, len), len);
}

static void put_header(void)
{
	const struct {
		uint32_t magic, version, size, machine, pad, pid;
		uint64_t time, flags;
	} h = { 0x4a695444, 1, sizeof(h), MACHINE, 0, (uint32_t)getpid(), 1, 0 };

	put(&h, sizeof(h));
}

struct load {
	uint32_t id, size;
	uint64_t time;
	uint32_t pid, tid;
	uint64_t vma, addr, len, index;
	char rest[2 + LEN]; /* a name of one letter, the code */
} __attribute__((packed));

static struct load load(uint64_t time, uint64_t addr, char name)
{
	struct load l = { .size = sizeof(l),
			  .time = time,
			  .pid = (uint32_t)getpid(),
			  .vma = addr,
			  .addr = addr,
			  .len = LEN,
			  .rest = { name } };

	memset(l.rest + 2, name, LEN);
	return l;
}

static void put_load(uint64_t time, uint64_t addr, char name)
{
	struct load l = load(time, addr, name);

	put(&l, sizeof(l));
}

static void put_line(const void *addr, const char *name)
{
	FILE *f = fopen(map_path, "a");

	assert_non_null(f);
	fprintf(f, "%llx %x %s\n", (unsigned long long)(uintptr_t)addr, LEN, name);
	assert_int_equal(fclose(f), 0);
}

static int follow_of(struct tracker *t, struct process *p, uint32_t owner)
{
	struct reader_dump dump = { .fd = open(dump_path, O_PATH | O_CLOEXEC), .owner = owner };
	struct stat st;

	assert_true(dump.fd >= 0 && fstat(dump.fd, &st) == 0);
	dump.dev = st.st_dev;
	dump.ino = st.st_ino;
	return dyn_dump(t->dyn, p, &dump);
}

static int follow(struct tracker *t, uint32_t owner)
{
	return follow_of(t, &t->p, owner);
}

/* ---- what is made of it ---------------------------------------------------------------------- */

static const struct wire_routine *record_at(struct image *img, const struct dyn_client *c,
					    uint64_t off)
{
	for (size_t i = 0; i < c->nr_sources; i++) {
		struct dyn_facility *f = c->sources[i]->facilities[0];
		const struct dyn_routines *rs = &c->sources[i]->lifetimes.routines;

		for (uint32_t k = 1; f && f->image == img && k <= rs->last; k++) {
			const struct dyn_routine *r = dyn_routine_get(rs, k);
			uint64_t begin;

			if (dyn_facility_offset(f, dyn_facility_elf(r), &begin) == 0 &&
			    off >= begin && off - begin < r->len)
				return dyn_facility_record(f, r);
		}
	}
	return NULL;
}

/* Name of the routine that samples from @first to @last are charged to; "-", "?" or "later". */
static const char *who(struct tracker *t, uint64_t addr, uint64_t first, uint64_t last, bool wait)
{
	static char name[128];
	struct dyn_query q = {
		.addr = addr, .first_ns = first, .time_ns = last, .count = 1, .last = !wait
	};
	const struct wire_routine *r;
	struct image *img = NULL;
	uint64_t off;

	switch (dyn_lookup(t->dyn, &t->p, &q, &img, &off)) {
	case DYN_NONE:
		return "-";
	case DYN_LATER:
		return "later";
	case DYN_FOUND:
		break;
	default:
		return "?";
	}
	r = record_at(img, t->p.dyn, off);
	assert_non_null(r);
	snprintf(name, sizeof(name), "%.*s", (int)r->name_len, (const char *)(r + 1));
	return name;
}

static const char *at(struct tracker *t, uint64_t addr, uint64_t time)
{
	return who(t, addr, time, time, false);
}

static void jitdump(void **state)
{
	TRACKER(state);
	struct load half;

	put_header();
	assert_int_equal(follow(t, getuid()), 0);
	assert_int_equal(follow(t, getuid()), -EEXIST);
	put_load(1000, 0x10000, 'A');
	put_load(2000, 0x10000, 'B');
	put_load(3000, 0x10000, 'A');
	half = load(4000, 0x10020, 'C');
	put(&half, 20);
	dyn_refresh(t->dyn, false);
	assert_string_equal(at(t, 0x10000, 999), "-");
	assert_string_equal(at(t, 0x10000, 1500), "A");
	assert_string_equal(at(t, 0x1003f, 2500), "B");
	assert_string_equal(at(t, 0x10000, 3500), "A");
	/* Several within the interval; and none but one. */
	assert_string_equal(who(t, 0x10000, 1500, 2500, false), "?");
	assert_string_equal(who(t, 0x10000, 2100, 2900, false), "B");
	/* Somebody may have come since the last record. */
	assert_string_equal(who(t, 0x10000, 2500, 2500, true), "B");
	assert_string_equal(who(t, 0x10000, 3500, 3500, true), "later");
	put((const char *)&half + 20, sizeof(half) - 20);
	dyn_refresh(t->dyn, false);
	assert_string_equal(who(t, 0x10000, 3500, 3500, true), "A");
	assert_string_equal(at(t, 0x10020, 4001), "C");
	/* The rest of A nobody has told. */
	assert_string_equal(at(t, 0x10000, 4001), "-");
	assert_true(dyn_reuses(&t->p));
}

/* As V8 leaves its dump until its buffer is full: nothing is read, or told, before it goes on. */
static void cut_in_a_record(void **state)
{
	TRACKER(state);
	const struct load second = load(2000, 0x10000, 'B');
	uint64_t news;

	put_header();
	assert_int_equal(follow(t, getuid()), 0);
	put_load(1000, 0x10000, 'A');
	put(&second, 20);
	assert_true(dyn_refresh(t->dyn, false));
	news = dyn_news(&t->p);
	assert_false(dyn_refresh(t->dyn, false));
	assert_int_equal(dyn_news(&t->p), news);
	put((const char *)&second + 20, sizeof(second) - 20);
	assert_true(dyn_refresh(t->dyn, false));
	assert_int_not_equal(dyn_news(&t->p), news);
	assert_string_equal(who(t, 0x10000, 1500, 1500, true), "A");
}

/* Whoever has made room fills it without the file's telling. */
static void room_made_ahead(void **state)
{
	TRACKER(state);
	const struct load first = load(1000, 0x10000, 'A'), second = load(2000, 0x20000, 'B');
	off_t at;
	char *map;

	put_header();
	at = lseek(dump_fd, 0, SEEK_END);
	assert_int_equal(ftruncate(dump_fd, 65536), 0);
	map = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, dump_fd, 0);
	assert_true(map != MAP_FAILED);
	memset(map + 65535, 0, 1); /* the page is known as written to from now on */
	assert_int_equal(follow(t, getuid()), 0);
	dyn_refresh(t->dyn, false);
	assert_string_equal(who(t, 0x10000, 500, 500, true), "later");
	memcpy(map + at, &first, sizeof(first));
	memcpy(map + at + sizeof(first), &second, sizeof(second));
	dyn_refresh(t->dyn, false);
	assert_string_equal(who(t, 0x10000, 1500, 1500, true), "A");
	munmap(map, 65536);
}

/* Nothing in a jitdump tells that code is gone: a file that is mapped in its place does. */
static void mapped_over(void **state)
{
	TRACKER(state);
	struct dyn_query q = { .addr = 0x10000, .count = 1, .last = true };
	struct image *img = NULL;
	uint64_t off;

	put_header();
	assert_int_equal(follow(t, getuid()), 0);
	put_load(1000, 0x10000, 'A');
	dyn_refresh(t->dyn, false);
	q.first_ns = q.time_ns = 2000;
	assert_int_equal(dyn_lookup(t->dyn, &t->p, &q, &img, &off), DYN_FOUND);
	q.mapped_ns = 1500;
	assert_int_equal(dyn_lookup(t->dyn, &t->p, &q, &img, &off), DYN_NONE);
	/* Into the file's memory it was written later. */
	q.mapped_ns = 900;
	assert_int_equal(dyn_lookup(t->dyn, &t->p, &q, &img, &off), DYN_FOUND);
}

/* While it waits, who lived then is not forgotten, however much time goes by. */
static void told_late(void **state)
{
	TRACKER(state);
	const uint64_t minute = 60 * 1000000000ull;

	assert_int_equal(follow(t, getuid()), 0);
	dyn_refresh(t->dyn, false);
	for (uint64_t now = minute; now < 5 * minute; now += minute) {
		assert_string_equal(who(t, 0x10000, 1500, 1500, true), "later");
		dyn_settled(t->dyn, now);
		dyn_refresh(t->dyn, false);
	}
	assert_string_equal(who(t, 0x10000, 1500, 1500, true), "later");
	put_header();
	put_load(1000, 0x10000, 'A');
	put_load(2000, 0x10000, 'B');
	put_load(5 * minute, 0x20000, 'C');
	dyn_refresh(t->dyn, false);
	assert_string_equal(who(t, 0x10000, 1500, 1500, true), "A");
	assert_string_equal(who(t, 0x10000, 2500, 2500, true), "B");
}

/* A stamp that is yet to come is of when it was read: it does not keep those behind it. */
static void told_ahead(void **state)
{
	TRACKER(state);
	const struct dyn_lifetimes *lifetimes;

	put_header();
	assert_int_equal(follow(t, getuid()), 0);
	put_load(UINT64_MAX, 0x10000, 'A');
	for (uint64_t i = 0; i < 2000; i++)
		put_load(1000 + i, 0x20000, i % 2 ? 'B' : 'C');
	dyn_refresh(t->dyn, false);
	lifetimes = &t->p.dyn->sources[0]->lifetimes;
	assert_true(t->p.dyn->sources[0]->announced_ns <= base_now_ns());
	assert_true(lifetimes->nr_polls > 2000);
	assert_string_equal(at(t, 0x10000, base_now_ns()), "A");
	assert_string_equal(at(t, 0x20000, base_now_ns()), "B");
	dyn_settled(t->dyn, base_now_ns() + 2 * DYN_PAST_NS);
	dyn_refresh(t->dyn, false);
	assert_int_equal(lifetimes->nr_polls, 0);
	assert_string_equal(at(t, 0x10000, base_now_ns()), "A");
}

static void not_his(void **state)
{
	TRACKER(state);

	put_header();
	assert_int_equal(follow(t, getuid() + 1), -EPERM);
	assert_null(t->p.dyn ? dyn_source_find(t->p.dyn, DYN_JITDUMP) : NULL);
}

/* One that is followed already: its user's other processes may have it too, nobody else's. */
static void of_several(void **state)
{
	TRACKER(state);
	struct process same = { .pid = getpid(), .uid = getuid(), .comm = "same" };
	struct process other = { .pid = getpid(), .uid = getuid() + 1, .comm = "other" };

	put_header();
	assert_int_equal(follow(t, getuid()), 0);
	assert_int_equal(follow_of(t, &other, getuid()), -EPERM);
	assert_null(other.dyn);
	assert_int_equal(follow_of(t, &same, getuid()), 0);
	assert_ptr_equal(dyn_source_find(same.dyn, DYN_JITDUMP),
			 dyn_source_find(t->p.dyn, DYN_JITDUMP));
	dyn_end(t->dyn, &same);
	assert_false(dyn_source_find(t->p.dyn, DYN_JITDUMP)->over);
}

static void no_dump_after_all(void **state)
{
	TRACKER(state);
	struct dyn_stats stats;

	assert_int_equal(follow(t, getuid()), 0);
	put("#!/bin/sh\n# it is not, it is something else\n", 45);
	dyn_refresh(t->dyn, false);
	assert_true(dyn_source_find(t->p.dyn, DYN_JITDUMP)->refused);
	dyn_stats_get(t->dyn, &stats);
	assert_int_equal(stats.records_bad, 1);
	/* Nobody waits for it. */
	assert_string_equal(who(t, 0x10000, 1500, 1500, true), "-");
}

/* Its pid is another process's by now: what that writes tells nothing of this one's code. */
static void perf_map_of_the_next(void **state)
{
	TRACKER(state);

	t->p.start_time_ns = 0;
	t->p.began_ns = 1;
	dyn_watch(t->dyn, &t->p);
	assert_false(t->p.watched);
}

/* A file that was left in one turn, as its user had had a turn, is read in the next one: no flush
 * waits for it any more. */
static void left_for_a_turn(void **state)
{
	TRACKER(state);
	struct budgets *b = budgets_new();
	struct dyn_registry *reg;

	assert_non_null(b);
	put_line(block, "name");
	dyn_watch(t->dyn, &t->p);
	dyn_refresh(t->dyn, false);
	reg = dyn_source_find(t->p.dyn, DYN_PERFMAP);
	t->dyn->config.budgets = b;
	dyn_set_hasty(t->dyn, true);
	budget_turn(b);
	budget_end(b, reg->uid, budget_begin(b) - 1000000000);
	dyn_refresh(t->dyn, false);
	assert_true(reg->skipped);
	budget_turn(b);
	dyn_refresh(t->dyn, false);
	assert_false(reg->skipped);
	dyn_set_hasty(t->dyn, false);
	t->dyn->config.budgets = NULL;
	budgets_free(b);
}

static void perf_map(void **state)
{
	TRACKER(state);
	const uint64_t one = (uintptr_t)block, two = (uintptr_t)block + LEN;
	const struct wire_routine *r;
	struct dyn_registry *reg;
	uint64_t before, seen;

	put_line(block, "old name");
	dyn_watch(t->dyn, &t->p);
	dyn_refresh(t->dyn, false);
	seen = base_now_ns();
	/* Told late, but nobody else had the address. */
	assert_string_equal(at(t, one, 5), "old name");
	assert_string_equal(at(t, two, seen), "-");
	reg = dyn_source_find(t->p.dyn, DYN_PERFMAP);
	r = dyn_facility_record(reg->facilities[0], dyn_routine_get(&reg->lifetimes.routines, 1));
	assert_int_equal(r->head.flags, WIRE_ROUTINE_CODE | WIRE_ROUTINE_FETCHED);
	assert_memory_equal((const char *)(r + 1) + r->name_len, block, LEN);
	before = base_now_ns();
	put_line(block, "new name");
	put_line(block + LEN, "other: with (spaces)");
	dyn_refresh(t->dyn, false);
	assert_string_equal(at(t, one, 5), "old name");
	assert_string_equal(at(t, one, before), "?");
	assert_string_equal(at(t, one, base_now_ns()), "new name");
	assert_string_equal(at(t, two, before), "other: with (spaces)");
}

/* The JVM writes its map anew each time it is asked for it. */
static void perf_map_anew(void **state)
{
	TRACKER(state);

	put_line(block, "first");
	put_line(block + LEN, "second");
	dyn_watch(t->dyn, &t->p);
	dyn_refresh(t->dyn, false);
	assert_int_equal(truncate(map_path, 0), 0);
	put_line(block + LEN, "third");
	dyn_refresh(t->dyn, false);
	dyn_refresh(t->dyn, false);
	assert_string_equal(at(t, (uintptr_t)block, base_now_ns()), "first");
	assert_string_equal(at(t, (uintptr_t)block + LEN, base_now_ns()), "third");
	assert_false(dyn_source_find(t->p.dyn, DYN_PERFMAP)->refused);
}

/* At its end at the latest: by then it may be there. */
static void perf_map_at_exit(void **state)
{
	TRACKER(state);
	uint64_t before = base_now_ns();
	struct dyn_registry *reg;

	dyn_watch(t->dyn, &t->p);
	dyn_refresh(t->dyn, false);
	reg = dyn_source_find(t->p.dyn, DYN_PERFMAP);
	assert_true(reg->look_ns > before);
	/* However late the next turn is. */
	reg->look_ns = UINT64_MAX;
	put_line(block, "late");
	dyn_refresh(t->dyn, false);
	assert_string_equal(at(t, (uintptr_t)block, 5), "-");
	dyn_leaving(&t->p);
	dyn_refresh(t->dyn, false);
	assert_string_equal(at(t, (uintptr_t)block, 5), "late");
}

/* However late it is made, not much of the process's life goes by until it is found; it is not
 * looked for all the time either. */
static void perf_map_made_late(void **state)
{
	const uint64_t ms = 1000000, most = 16000 * ms;
	struct dyn_registry reg = { 0 };
	uint64_t age_ns = 0;
	int looks = 0;

	(void)state;
	for (; age_ns < 60000 * ms; looks++) {
		dyn_source_look_later(&reg);
		assert_true(reg.look_pause_ns <= 500 * ms || reg.look_pause_ns <= age_ns / 4);
		assert_true(reg.look_pause_ns <= most);
		age_ns += reg.look_pause_ns;
	}
	assert_in_range(looks, 10, 40);
	for (; reg.look_pause_ns < most; looks++)
		dyn_source_look_later(&reg);
	assert_in_range(looks, 10, 60);
}

/* Who was there before us is not taken for young. */
static void perf_map_of_an_old_process(void **state)
{
	const uint64_t s = 1000000000, now = base_clock_ns(CLOCK_REALTIME);
	struct dyn_registry reg = { .since_ns = now - 40 * s };

	(void)state;
	dyn_source_look_later(&reg);
	assert_in_range(reg.look_pause_ns, 5 * s, 10 * s);
	reg = (struct dyn_registry){ .since_ns = now - 3600 * s };
	dyn_source_look_later(&reg);
	assert_int_equal(reg.look_pause_ns, 16 * s);
	/* The clock was set. */
	reg = (struct dyn_registry){ .since_ns = now + 3600 * s };
	dyn_source_look_later(&reg);
	assert_in_range(reg.look_pause_ns, 1, s);
}

/* Left by another program of that pid: an earlier process, or this one before it executed what it
 * runs. */
static void perf_map_of_another(void **state)
{
	TRACKER(state);
	uint64_t now_ns = base_now_ns() + base_boot_ahead_ns();
	const struct timespec ago[2] = { { .tv_sec = time(NULL) - 2 },
					 { .tv_sec = time(NULL) - 2 } };

	put_line(block, "another's");
	assert_int_equal(utimensat(AT_FDCWD, map_path, ago, 0), 0);
	t->p.began_ns = now_ns - 4000000000u;
	t->p.execed_ns = now_ns - 500000000u;
	dyn_watch(t->dyn, &t->p);
	dyn_refresh(t->dyn, false);
	assert_string_equal(at(t, (uintptr_t)block, base_now_ns()), "-");
}

static void perf_map_that_is_none(void **state)
{
	TRACKER(state);
	struct dyn_registry *reg;

	assert_int_equal(mkfifo(map_path, 0600), 0);
	dyn_watch(t->dyn, &t->p);
	dyn_refresh(t->dyn, false);
	reg = dyn_source_find(t->p.dyn, DYN_PERFMAP);
	assert_true(reg->refused && reg->fd < 0 && reg->root < 0);
}

/* Whoever tells times is believed first; where he says nothing the other is asked. */
static void both(void **state)
{
	TRACKER(state);

	put_line(block, "by map");
	put_line(block + LEN, "map alone");
	dyn_watch(t->dyn, &t->p);
	put_header();
	put_load(1000, (uintptr_t)block, 'J');
	put_load(9000, 0x10000, 'K');
	assert_int_equal(follow(t, getuid()), 0);
	dyn_refresh(t->dyn, false);
	assert_string_equal(at(t, (uintptr_t)block, 2000), "J");
	assert_string_equal(at(t, (uintptr_t)block + LEN, 2000), "map alone");
}

static void forked(void **state)
{
	TRACKER(state);
	struct process child = { .pid = getpid(), .uid = getuid(), .comm = "child" };

	put_header();
	assert_int_equal(follow(t, getuid()), 0);
	put_load(1000, 0x10000, 'A');
	dyn_fork(t->dyn, &t->p, &child, 1500, NULL);
	put_load(2000, 0x10000, 'B');
	put_load(9000, 0x20000, 'C');
	dyn_refresh(t->dyn, false);
	assert_string_equal(at(t, 0x10000, 3000), "B");
	/* As it was when the child came. */
	const struct dyn_query q = {
		.addr = 0x10000, .first_ns = 3000, .time_ns = 3000, .count = 1, .last = true
	};
	struct image *img;
	uint64_t off;

	assert_int_equal(dyn_lookup(t->dyn, &child, &q, &img, &off), DYN_FOUND);
	assert_memory_equal(record_at(img, t->p.dyn, off) + 1, "A", 1);
	dyn_end(t->dyn, &child);
}

static void unnamed(void **state)
{
	TRACKER(state);
	const uint64_t addr = (uintptr_t)block + WIRE_PAGE + 5;
	struct dyn_query q = { .addr = addr,
			       .first_ns = 5,
			       .time_ns = 9,
			       .count = 1,
			       .dynamic = true,
			       .map_start = (uintptr_t)block };
	const struct wire_routine *r;
	struct image *img = NULL;
	uint64_t off;

	assert_int_equal(dyn_news(&t->p), 0);
	dyn_watch(t->dyn, &t->p);
	/* A map may still come. */
	assert_int_not_equal(dyn_news(&t->p), 0);
	assert_int_equal(dyn_lookup(t->dyn, &t->p, &q, &img, &off), DYN_LATER);
	q.last = true;
	assert_int_equal(dyn_lookup(t->dyn, &t->p, &q, &img, &off), DYN_FOUND);
	r = record_at(img, t->p.dyn, off);
	assert_non_null(r);
	assert_int_equal(r->addr, addr - 5);
	assert_int_equal(r->name_len, strlen("[anonymous]+0x1000"));
	assert_memory_equal(r + 1, "[anonymous]+0x1000", r->name_len);
	assert_memory_equal((const char *)(r + 1) + r->name_len, block + WIRE_PAGE, WIRE_PAGE);
	assert_non_null(strstr(img->stem, "dynamic"));
	/* The same page again is the same place. */
	q.addr += 10;
	assert_int_equal(dyn_lookup(t->dyn, &t->p, &q, &img, &off), DYN_FOUND);
	assert_int_equal(dyn_source_find(t->p.dyn, DYN_UNNAMED)->lifetimes.routines.nr_used, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(jitdump),
		TEST(cut_in_a_record),
		TEST(room_made_ahead),
		TEST(mapped_over),
		TEST(told_late),
		TEST(told_ahead),
		TEST(not_his),
		TEST(of_several),
		TEST(no_dump_after_all),
		TEST(left_for_a_turn),
		TEST(perf_map),
		TEST(perf_map_of_the_next),
		TEST(perf_map_anew),
		TEST(perf_map_at_exit),
		TEST(perf_map_made_late),
		TEST(perf_map_of_an_old_process),
		TEST(perf_map_of_another),
		TEST(perf_map_that_is_none),
		TEST(both),
		TEST(forked),
		TEST(unnamed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
