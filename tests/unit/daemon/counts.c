/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "follow_internal.h"
#include "stand_ins.h"

static struct trial t;

static int setup(void **state)
{
	(void)state;
	trial_open(&t);
	return 0;
}

/* Invariant 1, whatever a test did: what was given is stored, or pending, or lost; and profiles
 * agree. */
static int teardown(void **state)
{
	const struct account *a = &t.store.account;

	(void)state;
	assert_int_equal(a->stored, trial_sum(&t));
	trial_same_sums(t.store.images);
	trial_close(&t);
	return 0;
}

static uint64_t given(void)
{
	return t.store.account.stored + t.store.account.pending + account_lost(&t.store.account);
}

static void offset_in_file(void **state)
{
	(void)state;
	trial_event(&t, DRIVER_LOAD_EXEC, 10, 0);
	trial_mmap(&t, 10, 0x1000, 0x2000, 0x500, "/bin/a", 1);
	trial_sample(&t, 10, 0x1000);
	trial_sample(&t, 10, 0x2fff);
	trial_sample(&t, 10, 0x3000);
	assert_int_equal(trial_count(&t, "/bin/a", 0x500), 1);
	assert_int_equal(trial_count(&t, "/bin/a", 0x24ff), 1);
	assert_int_equal(trial_count(&t, "unknown", 0), 1);
	assert_int_equal(t.store.account.bucket[ACCOUNT_BUCKET_UNKNOWN], 1);
	assert_int_equal(given(), 3);
}

/* It may be removed from then on; one without samples is nobody's concern, nor is a recorded one.
 */
static void first_sample_in_a_file(void **state)
{
	(void)state;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "/bin/a", 1);
	trial_mmap(&t, 10, 0x2000, 0x1000, 0, "/bin/b", 2);
	trial_sample(&t, 10, 0x1000);
	assert_int_equal(stand_ins.nr_sampled, 0);
	t.attribute.live = true;
	trial_sample(&t, 10, 0x1000);
	trial_sample(&t, 10, 0x1010);
	assert_int_equal(stand_ins.nr_sampled, 1);
	trial_sample(&t, 10, 0x2000);
	assert_int_equal(stand_ins.nr_sampled, 2);
}

static void two_events(void **state)
{
	const struct driver_count c = { .time_ns = 5000,
					.pid = 10,
					.event = 1,
					.mode = DRIVER_USER,
					.addr = 0x1010,
					.count = 7 };
	struct image *img;
	const struct base_id id = trial_id(1);

	(void)state;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "/bin/a", 1);
	trial_sample(&t, 10, 0x1010);
	assert_int_equal(counts_count(&t.counts, &c), 0);
	assert_int_equal(t.store.account.stored, 0);
	assert_int_equal(given(), 8);
	store_all(&t.store);
	img = images_get(t.store.images, PROFDB_FILE, &id, "/bin/a", "a");
	assert_int_equal(profdb_profile_nr_events(img->counts), 2);
	assert_string_equal(profdb_profile_event(img->counts, 1)->name, "misses");
	assert_int_equal(profdb_profile_entry(img->counts, 0)->count[0], 1);
	assert_int_equal(profdb_profile_entry(img->counts, 0)->count[1], 7);
	assert_true(img->dirty);
	assert_int_equal(given(), 8);
}

/* More than may be on their way into profiles at a time, of places that come again. */
static void many_places(void **state)
{
	enum { NR = 3 * STORE_AHEAD + 1 };

	(void)state;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "/bin/a", 1);
	trial_mmap(&t, 10, 0x2000, 0x1000, 0, "/bin/b", 2);
	for (uint64_t i = 0; i < 2 * NR; i++) {
		trial_sample(&t, 10, 0x1000 + i % NR);
		trial_sample(&t, 10, 0x2000 + 8 * (i % NR));
		assert_int_equal(given(), 2 * i + 2);
	}
	assert_in_range(t.store.account.pending, 1, STORE_AHEAD);
	counts_resolve(&t.counts, 0);
	assert_int_equal(t.store.account.pending, 0);
	for (uint64_t i = 0; i < NR; i++) {
		assert_int_equal(trial_count(&t, "/bin/a", i), 2);
		assert_int_equal(trial_count(&t, "/bin/b", 8 * i), 2);
	}
}

static void exec_forgets(void **state)
{
	(void)state;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "/bin/old", 1);
	trial_sample(&t, 10, 0x1000);
	trial_event(&t, DRIVER_LOAD_EXEC, 10, 0);
	trial_sample(&t, 10, 0x1000);
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "/bin/new", 2);
	trial_sample(&t, 10, 0x1000);
	assert_int_equal(trial_count(&t, "/bin/old", 0), 1);
	assert_int_equal(trial_count(&t, "/bin/new", 0), 1);
	assert_int_equal(trial_count(&t, "unknown", 0), 1);
}

static void fork_inherits_a_copy(void **state)
{
	(void)state;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "/bin/a", 1);
	trial_event(&t, DRIVER_LOAD_FORK, 11, 10);
	trial_sample(&t, 11, 0x1000);
	trial_mmap(&t, 11, 0x1000, 0x1000, 0, "/bin/b", 2);
	trial_sample(&t, 11, 0x1000);
	trial_sample(&t, 10, 0x1000);
	assert_int_equal(trial_count(&t, "/bin/a", 0), 2);
	assert_int_equal(trial_count(&t, "/bin/b", 0), 1);
}

static void replaced_library(void **state)
{
	(void)state;
	trial_mmap(&t, 10, 0x1000, 0x3000, 0, "/lib/a", 1);
	trial_sample(&t, 10, 0x2000);
	trial_mmap(&t, 10, 0x2000, 0x1000, 0x9000, "/lib/b", 2);
	trial_sample(&t, 10, 0x1fff);
	trial_sample(&t, 10, 0x2000);
	trial_sample(&t, 10, 0x3000);
	assert_int_equal(trial_count(&t, "/lib/a", 0x1000), 1);
	assert_int_equal(trial_count(&t, "/lib/a", 0xfff), 1);
	assert_int_equal(trial_count(&t, "/lib/b", 0x9000), 1);
	assert_int_equal(trial_count(&t, "/lib/a", 0x2000), 1);
}

/* Invariant 2 of counts over an interval: right, or named as not known. */
static void remapped_in_the_interval(void **state)
{
	uint64_t before;

	(void)state;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "/lib/a", 1);
	before = t.time_ns;
	trial_mmap(&t, 10, 0x1000, 0x2000, 0, "/lib/b", 2);
	trial_span(&t, 10, 0x1000, t.time_ns);
	trial_span(&t, 10, 0x1000, t.time_ns - 1);
	trial_span(&t, 10, 0x1000, before);
	/* Where nothing stood before, it was this one. */
	trial_span(&t, 10, 0x2000, before);
	assert_int_equal(trial_count(&t, "/lib/b", 0), 2);
	assert_int_equal(trial_count(&t, "/lib/b", 0x1000), 1);
	assert_int_equal(trial_count(&t, "/lib/a", 0), 0);
	assert_int_equal(t.store.account.bucket[ACCOUNT_BUCKET_AMBIGUOUS], 1);
	/* The protection changed: the file did not. */
	trial_mmap(&t, 10, 0x1000, 0x2000, 0, "/lib/b", 2);
	trial_span(&t, 10, 0x1000, before + 2);
	assert_int_equal(trial_count(&t, "/lib/b", 0), 3);
	/* There and back again: what came between may have been any of them. */
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "/lib/a", 1);
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "/lib/b", 2);
	trial_span(&t, 10, 0x1000, before + 2);
	assert_int_equal(trial_count(&t, "ambiguous mapping", 0), 2);
	assert_int_equal(given(), 6);
}

static void remapped_dynamic(void **state)
{
	uint64_t before;

	(void)state;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "//anon", 0);
	before = t.time_ns;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "/lib/b", 2);
	trial_span(&t, 10, 0x1000, before);
	store_all(&t.store);
	assert_int_equal(t.store.account.bucket[ACCOUNT_BUCKET_AMBIGUOUS], 1);
	before = t.time_ns;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "//anon", 0);
	trial_span(&t, 10, 0x1000, before);
	store_all(&t.store);
	assert_int_equal(t.store.account.bucket[ACCOUNT_BUCKET_AMBIGUOUS], 2);
	/* Whose it is in dynamic memory, and since when, is asked of its registry. */
	before = t.time_ns;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0x500, "//anon", 0);
	trial_span(&t, 10, 0x1000, before);
	assert_int_equal(t.store.account.pending, 1);
	counts_resolve(&t.counts, 0);
	assert_int_equal(stand_ins.query.first_ns, before);
}

static void child_keeps_times(void **state)
{
	uint64_t before;

	(void)state;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "/lib/a", 1);
	before = t.time_ns;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "/lib/b", 2);
	trial_event(&t, DRIVER_LOAD_FORK, 11, 10);
	trial_span(&t, 11, 0x1000, t.time_ns);
	assert_int_equal(trial_count(&t, "/lib/b", 0), 1);
	/* A life after exec has no past. */
	trial_event(&t, DRIVER_LOAD_EXEC, 11, 0);
	trial_mmap(&t, 11, 0x1000, 0x1000, 0, "/lib/a", 1);
	trial_span(&t, 11, 0x1000, before);
	assert_int_equal(trial_count(&t, "/lib/a", 0), 1);
	assert_int_equal(t.store.account.bucket[ACCOUNT_BUCKET_AMBIGUOUS], 0);
}

/* A count from before the reading of /proc waits for the events up to then. */
static void older_than_listing(void **state)
{
	struct process *p = processes_add(t.follow.processes, 10);
	struct driver_load l = { .kind = DRIVER_LOAD_MMAP,
				 .pid = 10,
				 .addr = 0x1000,
				 .len = 0x3000,
				 .id = trial_id(1),
				 .path = "/bin/a" };

	(void)state;
	p->known_ns = t.time_ns + 100;
	follow_mmap(&t.follow, p, &l, FOLLOW_LISTED);
	trial_sample(&t, 10, 0x1000);
	trial_sample(&t, 10, 0x2000);
	assert_int_equal(t.store.account.pending, 2);
	counts_resolve(&t.counts, 0);
	assert_int_equal(t.store.account.pending, 2);
	/* Part of it came only now; what stood there before is not known. */
	trial_mmap(&t, 10, 0x2000, 0x1000, 0x1000, "/bin/a", 1);
	trial_sample(&t, 10, 0x2000);
	assert_int_equal(trial_count(&t, "/bin/a", 0x1000), 1);
	/* Part of it is something else for now, and something that the listing did not have. */
	trial_mmap(&t, 10, 0x3000, 0x2000, 0, "/bin/b", 2);
	trial_sample(&t, 10, 0x3000);
	trial_sample(&t, 10, 0x4000);
	assert_int_equal(trial_count(&t, "ambiguous mapping", 0), 1);
	assert_int_equal(trial_count(&t, "/bin/b", 0x1000), 1);
	/* They are settled before the next life begins. */
	t.time_ns += 100;
	trial_event(&t, DRIVER_LOAD_EXEC, 10, 0);
	store_all(&t.store);
	assert_int_equal(t.store.account.pending, 0);
	assert_int_equal(trial_count(&t, "/bin/a", 0), 1);
	assert_int_equal(trial_count(&t, "ambiguous mapping", 0), 2);
	assert_int_equal(given(), 5);
}

static void older_than_listing_at_the_end(void **state)
{
	struct process *p = processes_add(t.follow.processes, 10);
	struct driver_load l = { .pid = 10, .addr = 0x1000, .len = 0x1000, .path = "//anon" };

	(void)state;
	p->known_ns = t.time_ns + 100;
	follow_mmap(&t.follow, p, &l, FOLLOW_LISTED);
	trial_sample(&t, 10, 0x1000);
	/* Its end was lost. */
	processes_end(t.follow.processes, p);
	counts_resolve(&t.counts, 0);
	assert_int_equal(t.store.account.pending, 1);
	counts_resolve(&t.counts, p->known_ns);
	assert_int_equal(t.store.account.pending, 0);
	assert_int_equal(trial_count(&t, "dynamic, unknown", 0), 1);
}

/* One that must wait holds up no other: neither their counts nor their ends. */
static void others_do_not_wait(void **state)
{
	struct process *early = processes_add(t.follow.processes, 10), *p;
	const struct driver_load l = {
		.addr = 0x1000, .len = 0x1000, .path = "/bin/a", .id = trial_id(1)
	};

	(void)state;
	early->known_ns = t.time_ns + 10;
	follow_mmap(&t.follow, early, &l, FOLLOW_LISTED);
	trial_sample(&t, 10, 0x1000);
	p = processes_add(t.follow.processes, 11);
	p->known_ns = t.time_ns + 1000;
	follow_mmap(&t.follow, p, &l, FOLLOW_LISTED);
	trial_sample(&t, 11, 0x1000);
	processes_end(t.follow.processes, p);
	trial_mmap(&t, 12, 0x8000, 0x1000, 0, "/memfd:dbgdyn", 0);
	trial_event(&t, DRIVER_LOAD_EXIT, 12, 0);
	assert_int_equal(t.store.account.pending, 2);
	t.time_ns += 20;
	trial_event(&t, DRIVER_LOAD_EXIT, 12, 0);
	store_all(&t.store);
	assert_int_equal(t.store.account.pending, 1);
	assert_int_equal(trial_count(&t, "/bin/a", 0), 1);
	counts_resolve(&t.counts, 0);
	assert_int_equal(stand_ins.nr_end, 1);
	assert_int_equal(t.store.account.pending, 1);
	counts_resolve(&t.counts, UINT64_MAX);
	assert_int_equal(t.store.account.pending, 0);
	assert_int_equal(trial_count(&t, "/bin/a", 0), 2);
}

/* The pid of kernel samples may stand for any process, or none. */
static void nobody_is_adopted(void **state)
{
	static const int32_t pids[] = { -1, 0 };

	(void)state;
	t.follow.live = t.attribute.live = true;
	for (size_t i = 0; i < 2; i++) {
		struct driver_count c = { .time_ns = t.time_ns, .pid = pids[i], .count = 1 };

		c.mode = DRIVER_KERNEL;
		assert_int_equal(counts_count(&t.counts, &c), 0);
		c.mode = DRIVER_USER;
		assert_int_equal(counts_count(&t.counts, &c), 0);
		c.mode = DRIVER_OTHER;
		assert_int_equal(counts_count(&t.counts, &c), 0);
	}
	assert_int_equal(processes_nr(t.follow.processes), 0);
	assert_int_equal(trial_count(&t, "unknown kernel", 0), 2);
	assert_int_equal(trial_count(&t, "unknown process", 0), 2);
	assert_int_equal(given(), 6);
}

static void reused_pid(void **state)
{
	(void)state;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "/bin/a", 1);
	trial_event(&t, DRIVER_LOAD_EXIT, 10, 0);
	trial_event(&t, DRIVER_LOAD_FORK, 10, 99);
	trial_sample(&t, 10, 0x1000);
	assert_int_equal(trial_count(&t, "/bin/a", 0), 0);
	assert_int_equal(trial_count(&t, "unknown process", 0), 1);
}

static void unknown_process(void **state)
{
	(void)state;
	trial_sample(&t, 10, 0x1000);
	trial_sample(&t, -1, 0x1000);
	assert_int_equal(trial_count(&t, "unknown process", 0), 2);
	/* Who is not known at the end of a drain is looked for again in the next. */
	counts_resolve(&t.counts, 0);
	assert_int_equal(processes_nr(t.follow.processes), 0);
	trial_event(&t, DRIVER_LOAD_EXIT, 10, 0);
	counts_resolve(&t.counts, 0);
	assert_int_equal(processes_nr(t.follow.processes), 0);
}

static void kernel_count(int32_t pid, uint64_t addr, enum driver_mode mode)
{
	const struct driver_count c = { .pid = pid, .mode = mode, .addr = addr, .count = 1 };

	assert_int_equal(counts_count(&t.counts, &c), 0);
}

static void kernel_and_idle(void **state)
{
	const struct base_id id = trial_id(9);

	(void)state;
	stand_ins.kernel_image = images_get(t.store.images, PROFDB_KERNEL, &id, "kernel", "kernel");
	stand_ins.kernel_start = 0xf000;
	stand_ins.kernel_end = 0xff00;
	stand_ins.idle_addr = 0xf100;
	kernel_count(10, 0xf010, DRIVER_KERNEL);
	kernel_count(0, 0xf100, DRIVER_KERNEL);
	kernel_count(10, 0xf100, DRIVER_KERNEL);
	kernel_count(0, 0xf020, DRIVER_KERNEL);
	kernel_count(10, 0xff00, DRIVER_KERNEL);
	kernel_count(10, 0xf010, DRIVER_OTHER);
	assert_int_equal(trial_count(&t, "kernel", 0x10), 1);
	assert_int_equal(trial_count(&t, "idle", 0), 1);
	assert_int_equal(trial_count(&t, "kernel", 0x100), 1);
	assert_int_equal(trial_count(&t, "kernel", 0x20), 1);
	assert_int_equal(trial_count(&t, "unknown kernel", 0), 1);
	assert_int_equal(trial_count(&t, "hypervisor or guest", 0), 1);
	assert_int_equal(given(), 6);
}

static void dynamic_found(void **state)
{
	uint64_t time_ns;

	(void)state;
	stand_ins.dyn_image = images_get(t.store.images, PROFDB_DYNAMIC, NULL, "x.dyn", "x.dyn");
	stand_ins.dyn_off = 0x40;
	stand_ins.where = DYN_FOUND;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "//anon", 0);
	trial_sample(&t, 10, 0x1234);
	time_ns = t.time_ns;
	assert_int_equal(t.store.account.pending, 1);
	assert_int_equal(t.store.account.stored, 0);
	assert_int_equal(given(), 1);
	counts_resolve(&t.counts, 0);
	assert_int_equal(t.store.account.pending, 0);
	assert_int_equal(trial_count(&t, "x.dyn", 0x40), 1);
	assert_int_equal(stand_ins.query.first_ns, time_ns);
	assert_int_equal(stand_ins.query.time_ns, time_ns);
	assert_int_equal(stand_ins.settled_ns, time_ns);
	assert_int_equal(given(), 1);
}

/* Its first and its last sample have times; nothing tells of those between. */
static void dynamic_of_two_routines(void **state)
{
	struct driver_count c = { .pid = 10, .tid = 10, .mode = DRIVER_USER, .addr = 0x1234 };

	(void)state;
	stand_ins.dyn_image = images_get(t.store.images, PROFDB_DYNAMIC, NULL, "x.dyn", "x.dyn");
	stand_ins.dyn_off = 0x40;
	stand_ins.where = DYN_FOUND;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "//anon", 0);
	stand_ins.changes_ns = t.time_ns + 5;
	c.first_ns = t.time_ns + 1;
	c.time_ns = t.time_ns += 10;
	for (c.count = 5; c.count; c.count = c.count == 5 ? 2 : 0)
		assert_int_equal(counts_count(&t.counts, &c), 0);
	counts_resolve(&t.counts, 0);
	assert_int_equal(trial_count(&t, "x.dyn", 0x40), 2);
	assert_int_equal(trial_count(&t, "x.dyn", 0x50), 2);
	assert_int_equal(trial_count(&t, "reused, time unknown", 0), 3);
	assert_int_equal(t.store.account.pending, 0);
	assert_int_equal(t.store.account.stored, 7);
}

static void dynamic_not_found(void **state)
{
	(void)state;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "//anon", 0);
	trial_mmap(&t, 10, 0x8000, 0x1000, 0, "/memfd:dbgdyn (deleted)", 0);
	trial_sample(&t, 10, 0x1234);
	/* No mapping, but the process has a registry: it may know. */
	trial_sample(&t, 10, 0x9999);
	assert_int_equal(t.store.account.pending, 2);
	counts_resolve(&t.counts, 0);
	assert_int_equal(trial_count(&t, "dynamic, unknown", 0), 1);
	assert_int_equal(trial_count(&t, "unknown", 0), 1);
	stand_ins.where = DYN_REUSED;
	trial_sample(&t, 10, 0x1234);
	counts_resolve(&t.counts, 0);
	assert_int_equal(trial_count(&t, "reused, time unknown", 0), 1);
	assert_int_equal(given(), 3);
}

/* Counts of a life that is over are resolved with that life's registry, which is let go after. */
static void dynamic_of_the_dead(void **state)
{
	struct dyn_client *client;

	(void)state;
	stand_ins.dyn_image = images_get(t.store.images, PROFDB_DYNAMIC, NULL, "x.dyn", "x.dyn");
	stand_ins.where = DYN_FOUND;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "//anon", 0);
	trial_mmap(&t, 10, 0x8000, 0x1000, 0, "/memfd:dbgdyn", 0);
	client = processes_find(t.follow.processes, 10)->dyn;
	assert_non_null(client);
	trial_sample(&t, 10, 0x1234);
	trial_event(&t, DRIVER_LOAD_EXEC, 10, 0);
	trial_sample(&t, 10, 0x1234);
	trial_event(&t, DRIVER_LOAD_EXIT, 10, 0);
	assert_int_equal(stand_ins.nr_end, 0);
	counts_resolve(&t.counts, 0);
	assert_ptr_equal(stand_ins.looked_up_by, client);
	assert_int_equal(stand_ins.nr_end, 1);
	assert_int_equal(trial_count(&t, "x.dyn", 0), 1);
	assert_int_equal(trial_count(&t, "unknown", 0), 1);
	assert_int_equal(processes_nr(t.follow.processes), 0);
}

static void fork_shares_registry(void **state)
{
	struct driver_load l = { .kind = DRIVER_LOAD_FORK,
				 .pid = 12,
				 .ppid = 10,
				 .flags = DRIVER_LOAD_CURSOR,
				 .cursor = 77 };

	(void)state;
	trial_mmap(&t, 10, 0x8000, 0x1000, 0, "/memfd:dbgdyn", 0);
	trial_event(&t, DRIVER_LOAD_FORK, 11, 10);
	assert_int_equal(stand_ins.nr_fork, 1);
	assert_int_equal(stand_ins.fork_ns, t.time_ns);
	assert_int_equal(stand_ins.fork_cursor, 0);
	assert_non_null(processes_find(t.follow.processes, 11)->dyn);
	l.time_ns = ++t.time_ns;
	assert_int_equal(counts_load(&t.counts, &l), 0);
	assert_int_equal(stand_ins.fork_cursor, 77);
}

static void generations(void **state)
{
	struct driver_count c = { .time_ns = 5000,
				  .pid = 10,
				  .mode = DRIVER_USER,
				  .addr = 0x1010,
				  .count = 7,
				  .generation = 9,
				  .generation_read = true };

	(void)state;
	stand_ins.dyn_image = images_get(t.store.images, PROFDB_DYNAMIC, NULL, "x.dyn", "x.dyn");
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "//anon", 0);
	trial_mmap(&t, 10, 0x8000, 0x1000, 0, "/memfd:dbgdyn", 0);
	stand_ins.registered = true;
	/* The registry does not tell yet: it waits, and counts as pending. */
	stand_ins.where = DYN_LATER;
	assert_int_equal(counts_count(&t.counts, &c), 0);
	counts_resolve(&t.counts, 0);
	counts_resolve(&t.counts, 0);
	assert_int_equal(t.store.account.pending, 7);
	assert_int_equal(stand_ins.query.generation, 9);
	assert_true(stand_ins.query.generation_read);
	assert_false(stand_ins.query.last);
	stand_ins.where = DYN_FOUND;
	counts_resolve(&t.counts, 0);
	assert_int_equal(trial_count(&t, "x.dyn", 0), 7);
	/* Nothing more comes. */
	stand_ins.where = DYN_LATER;
	assert_int_equal(counts_count(&t.counts, &c), 0);
	counts_resolve(&t.counts, UINT64_MAX);
	assert_int_equal(t.store.account.pending, 0);
	assert_int_equal(trial_count(&t, "dynamic, generation unknown", 0), 7);
	/* Nor from a life that is over. */
	assert_int_equal(counts_count(&t.counts, &c), 0);
	trial_event(&t, DRIVER_LOAD_EXIT, 10, 0);
	counts_resolve(&t.counts, 0);
	assert_int_equal(trial_count(&t, "dynamic, generation unknown", 0), 14);
	assert_int_equal(given(), 21);
}

/* A process that lives is not waited for without end. */
static void waits_a_second(void **state)
{
	struct process *p;
	uint64_t now;

	(void)state;
	t.follow.live = t.attribute.live = true;
	stand_ins.where = DYN_LATER;
	stand_ins.registered = true;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "//anon", 0);
	p = processes_find(t.follow.processes, 10);
	p->dyn = (struct dyn_client *)&t;
	trial_sample(&t, 10, 0x1234);
	now = base_now_ns();
	counts_resolve(&t.counts, 0);
	p->dyn = NULL;
	assert_int_equal(t.counts.dynamic.nr, 1);
	assert_in_range(t.counts.dynamic.items[0].until_ns, now + 1, base_now_ns() + 1000000000);
	t.counts.dynamic.items[0].until_ns = 1;
	p->dyn = (struct dyn_client *)&t;
	counts_resolve(&t.counts, 0);
	p->dyn = NULL;
	assert_int_equal(t.counts.dynamic.nr, 0);
	assert_int_equal(trial_count(&t, "dynamic, generation unknown", 0), 1);
	t.follow.live = t.attribute.live = false;
}

/* What a runtime writes into a file it may write late: a minute is nothing. */
static void waits_for_the_flush(void **state)
{
	(void)state;
	t.follow.live = t.attribute.live = true;
	stand_ins.where = DYN_LATER;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "//anon", 0);
	trial_sample(&t, 10, 0x1234);
	assert_true(processes_find(t.follow.processes, 10)->watched);
	for (int i = 0; i < 3; i++)
		counts_resolve(&t.counts, 0);
	assert_int_equal(t.store.account.pending, 1);
	assert_false(stand_ins.query.last);
	assert_true(stand_ins.query.dynamic);
	assert_int_equal(stand_ins.query.map_start, 0x1000);
	t.attribute.flushing = true;
	counts_resolve(&t.counts, 0);
	t.attribute.flushing = false;
	assert_true(stand_ins.query.last);
	assert_int_equal(t.store.account.pending, 0);
	t.follow.live = t.attribute.live = false;
}

/* Its samples are looked up a last time then. */
static void reads_what_ended(void **state)
{
	(void)state;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "//anon", 0);
	trial_sample(&t, 10, 0x1234);
	trial_event(&t, DRIVER_LOAD_EXIT, 10, 0);
	counts_resolve(&t.counts, 0);
	assert_int_equal(stand_ins.read_ended, 10);
	assert_int_equal(stand_ins.nr_lookups_read, 0);
	assert_int_equal(stand_ins.nr_lookups, 1);
}

/* Nobody asks again before something new was told; until then who lived is not forgotten. */
static void waits_for_news(void **state)
{
	uint64_t first_ns;

	(void)state;
	t.follow.live = t.attribute.live = true;
	stand_ins.where = DYN_LATER;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "//anon", 0);
	trial_sample(&t, 10, 0x1234);
	first_ns = t.time_ns;
	trial_sample(&t, 10, 0x1238);
	counts_resolve(&t.counts, 0);
	assert_int_equal(stand_ins.nr_lookups, 2);
	trial_sample(&t, 10, 0x1234);
	for (int i = 0; i < 3; i++) {
		stand_ins.waited_ns = 0;
		counts_resolve(&t.counts, 0);
		assert_int_equal(stand_ins.waited_ns, first_ns);
	}
	assert_int_equal(stand_ins.nr_lookups, 3);
	/* What came since is asked for, too; and again only by the next news. */
	stand_ins.news++;
	counts_resolve(&t.counts, 0);
	counts_resolve(&t.counts, 0);
	assert_int_equal(stand_ins.nr_lookups, 6);
	assert_int_equal(t.store.account.pending, 3);
	stand_ins.dyn_image = images_get(t.store.images, PROFDB_DYNAMIC, NULL, "x.dyn", "x.dyn");
	stand_ins.where = DYN_FOUND;
	stand_ins.news++;
	counts_resolve(&t.counts, 0);
	t.follow.live = t.attribute.live = false;
	assert_int_equal(trial_count(&t, "x.dyn", 0), 3);
	assert_int_equal(given(), 3);
}

/* Nor does anybody wait who is gone, or of whom a registry tells since. */
static void waits_no_more(void **state)
{
	(void)state;
	t.follow.live = t.attribute.live = true;
	stand_ins.where = DYN_LATER;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "//anon", 0);
	trial_mmap(&t, 11, 0x1000, 0x1000, 0, "//anon", 0);
	trial_sample(&t, 10, 0x1234);
	trial_sample(&t, 11, 0x1234);
	counts_resolve(&t.counts, 0);
	trial_event(&t, DRIVER_LOAD_EXIT, 10, 0);
	counts_resolve(&t.counts, 0);
	assert_int_equal(t.store.account.pending, 1);
	assert_int_equal(processes_nr(t.follow.processes), 1);
	trial_mmap(&t, 11, 0x8000, 0x1000, 0, "/memfd:dbgdyn", 0);
	stand_ins.registered = true;
	stand_ins.where = DYN_NONE;
	counts_resolve(&t.counts, 0);
	t.follow.live = t.attribute.live = false;
	assert_int_equal(given(), 2);
	assert_int_equal(t.store.account.pending, 0);
}

/* Who leaves with counts that wait takes them along. */
static void released_while_waiting(void **state)
{
	(void)state;
	t.follow.live = t.attribute.live = true;
	stand_ins.where = DYN_LATER;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "//anon", 0);
	trial_sample(&t, 10, 0x1234);
	counts_resolve(&t.counts, 0);
	t.follow.live = t.attribute.live = false;
	assert_int_equal(t.store.account.pending, 1);
}

/* Those that wait long are joined by their places: no more memory than there is code. */
static void waiting_is_joined(void **state)
{
	enum { NR = 50000, PLACES = 3000, IN_FILE = 2 };
	uint64_t first_ns;

	(void)state;
	t.follow.live = t.attribute.live = true;
	stand_ins.where = DYN_LATER;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "//anon", 0);
	/* In a file's memory each has its own time of mapping. */
	trial_mmap(&t, 10, 0x10000, 0x1000, 0, "/bin/a", 1);
	stand_ins.claimed = true;
	first_ns = t.time_ns + 1;
	for (int i = 0; i < IN_FILE; i++)
		trial_sample(&t, 10, 0x10234);
	for (uint64_t i = 0; i < NR; i++)
		trial_sample(&t, 10, 0x1000 + i % PLACES);
	counts_resolve(&t.counts, 0);
	assert_int_equal(t.store.account.pending, NR + IN_FILE);
	/* Not only those of a neighbour: each has its whole time, and keeps its count. */
	stand_ins.nr_lookups = 0;
	stand_ins.news++;
	counts_resolve(&t.counts, 0);
	assert_int_equal(stand_ins.nr_lookups, PLACES + IN_FILE);
	counts_resolve(&t.counts, 0);
	assert_int_equal(stand_ins.waited_ns, first_ns);
	assert_int_equal(stand_ins.query.time_ns - stand_ins.query.first_ns,
			 (NR / PLACES - 1) * PLACES);
	t.attribute.flushing = true;
	stand_ins.where = DYN_NONE;
	counts_resolve(&t.counts, 0);
	t.attribute.flushing = t.follow.live = t.attribute.live = false;
	assert_int_equal(t.store.account.pending, 0);
	assert_int_equal(trial_count(&t, "dynamic, unknown", 0), NR);
	assert_int_equal(trial_count(&t, "/bin/a", 0x234), IN_FILE);
}

/* Code that was written over a file's is its runtime's; where that tells nothing, the file's. */
static void written_over(void **state)
{
	const struct base_id id = trial_id(1);

	(void)state;
	stand_ins.dyn_image = images_get(t.store.images, PROFDB_DYNAMIC, NULL, "x.dyn", "x.dyn");
	stand_ins.dyn_off = 0x40;
	stand_ins.where = DYN_FOUND;
	stand_ins.claimed = true;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "/bin/a", 1);
	trial_sample(&t, 10, 0x1234);
	assert_int_equal(t.store.account.pending, 1);
	counts_resolve(&t.counts, 0);
	assert_int_equal(trial_count(&t, "x.dyn", 0x40), 1);
	stand_ins.where = DYN_NONE;
	trial_sample(&t, 10, 0x1234);
	assert_false(stand_ins.query.dynamic);
	assert_int_equal(stand_ins.query.mapped_ns, 0);
	counts_resolve(&t.counts, 0);
	assert_int_equal(images_get(t.store.images, PROFDB_FILE, &id, "/bin/a", "a")->refs, 1);
	assert_int_equal(trial_count(&t, "/bin/a", 0x234), 1);
	assert_int_equal(t.store.account.pending, 0);
}

/* Who was told of before a file came into its place is asked for by that time. */
static void mapped_over(void **state)
{
	uint64_t mapped_ns;

	(void)state;
	stand_ins.where = DYN_NONE;
	stand_ins.claimed = true;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "//anon", 0);
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "/bin/a", 1);
	mapped_ns = processes_find(t.follow.processes, 10)->maps[0].since_ns;
	assert_true(mapped_ns > 0);
	trial_sample(&t, 10, 0x1234);
	counts_resolve(&t.counts, 0);
	assert_int_equal(stand_ins.query.mapped_ns, mapped_ns);
	assert_int_equal(trial_count(&t, "/bin/a", 0x234), 1);
}

static void dump_is_no_image(void **state)
{
	(void)state;
	t.follow.live = t.attribute.live = true;
	stand_ins.is_dump = true;
	stand_ins.reader_result = 0;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "/tmp/jit-10.dump", 0);
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "/tmp/jit-10.dump", 0);
	assert_int_equal(stand_ins.nr_dumps, 2);
	assert_int_equal(processes_find(t.follow.processes, 10)->nr_maps, 0);
	t.follow.live = t.attribute.live = false;
}

static void lost_by_name(void **state)
{
	struct driver_count c = { .pid = 10, .event = 2, .mode = DRIVER_USER, .count = 3 };
	const struct base_id id = trial_id(1);
	struct image *img;

	(void)state;
	trial_mmap(&t, 10, 0, 0x1000, 0, "/bin/a", 1);
	assert_int_equal(counts_count(&t.counts, &c), 0);
	store_all(&t.store);
	assert_int_equal(t.store.account.lost[ACCOUNT_LOST_BAD], 3);
	c.event = 0;
	c.count = UINT64_MAX - 1;
	assert_int_equal(counts_count(&t.counts, &c), 0);
	store_all(&t.store);
	assert_int_equal(t.store.account.stored, UINT64_MAX - 1);
	c.count = 5;
	assert_int_equal(counts_count(&t.counts, &c), 0);
	store_all(&t.store);
	assert_int_equal(t.store.account.lost[ACCOUNT_LOST_OVERFLOW], 5);
	assert_int_equal(t.store.account.stored, UINT64_MAX - 1);
	/* The sum of all profiles must be what was stored: keep it so. */
	img = images_get(t.store.images, PROFDB_FILE, &id, "/bin/a", "a");
	profdb_profile_clear(img->counts);
	workload_table_clear(img->workloads);
	t.store.account.stored = 0;
}

/* What one of a batch loses takes nothing from the others. */
static void lost_beside_others(void **state)
{
	struct driver_count c = { .pid = 10, .mode = DRIVER_USER, .count = UINT64_MAX - 9 };
	const struct base_id id = trial_id(1);
	struct image *img;

	(void)state;
	trial_mmap(&t, 10, 0, 0x1000, 0, "/bin/a", 1);
	assert_int_equal(counts_count(&t.counts, &c), 0);
	c.count = 20;
	assert_int_equal(counts_count(&t.counts, &c), 0);
	c.count = 3;
	assert_int_equal(counts_count(&t.counts, &c), 0);
	c.addr = 0x1000;
	assert_int_equal(counts_count(&t.counts, &c), 0);
	assert_int_equal(t.store.nr, 4);
	store_all(&t.store);
	assert_int_equal(t.store.account.pending, 0);
	assert_int_equal(t.store.account.lost[ACCOUNT_LOST_OVERFLOW], 20);
	assert_int_equal(t.store.account.stored, UINT64_MAX - 3);
	assert_int_equal(t.store.account.bucket[ACCOUNT_BUCKET_UNKNOWN], 3);
	assert_int_equal(trial_count(&t, "/bin/a", 0), UINT64_MAX - 6);
	assert_int_equal(trial_count(&t, "unknown", 0), 3);
	img = images_get(t.store.images, PROFDB_FILE, &id, "/bin/a", "a");
	profdb_profile_clear(img->counts);
	workload_table_clear(img->workloads);
	t.store.account.stored = 3;
}

static void resolve_empty(void **state)
{
	(void)state;
	counts_resolve(&t.counts, 0);
	assert_int_equal(given(), 0);
	assert_int_equal(t.attribute.dynamic_ns, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(offset_in_file),	    TEST(first_sample_in_a_file),
		TEST(two_events),	    TEST(exec_forgets),
		TEST(many_places),	    TEST(fork_inherits_a_copy),
		TEST(replaced_library),	    TEST(reused_pid),
		TEST(unknown_process),	    TEST(kernel_and_idle),
		TEST(dynamic_found),	    TEST(dynamic_of_two_routines),
		TEST(dynamic_not_found),    TEST(dynamic_of_the_dead),
		TEST(fork_shares_registry), TEST(generations),
		TEST(waits_a_second),	    TEST(waits_for_the_flush),
		TEST(reads_what_ended),	    TEST(waits_for_news),
		TEST(waits_no_more),	    TEST(released_while_waiting),
		TEST(waiting_is_joined),    TEST(dump_is_no_image),
		TEST(written_over),	    TEST(lost_by_name),
		TEST(lost_beside_others),   TEST(mapped_over),
		TEST(resolve_empty),	    TEST(remapped_in_the_interval),
		TEST(remapped_dynamic),	    TEST(child_keeps_times),
		TEST(older_than_listing),   TEST(older_than_listing_at_the_end),
		TEST(others_do_not_wait),   TEST(nobody_is_adopted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
