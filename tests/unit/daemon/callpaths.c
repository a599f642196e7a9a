/* SPDX-License-Identifier: BSD-2-Clause */
/* Call paths beside a driver that the tests play: where frames belong, what waits, what is lost,
 * and what a flush puts into the database. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stand_ins.h"

#define MAIN	    0x401000ull
#define LIB	    0x502000ull
#define ANON	    0x700000ull
#define EXACT(addr) ((addr) | DRIVER_FRAME_EXACT)

enum { PID = 10, NR_NODES = 64 };

static struct trial core;
static struct fake_driver {
	struct driver base;
	struct driver_callpath_stats stats;
} driver;
static struct callpaths *paths;
static struct workloads *owners;

/* ---- the driver ------------------------------------------------------------------------------ */

static int answer_missing(struct driver *d,
			  int (*fn)(void *ctx, const struct driver_rows_missing *m), void *ctx)
{
	(void)d;
	(void)fn;
	(void)ctx;
	return 0;
}

static int answer_put(struct driver *d, const struct driver_file *file,
		      const struct unwind_table *table)
{
	(void)d;
	(void)file;
	(void)table;
	return 0;
}

static void answer_stats(const struct driver *d, struct driver_callpath_stats *out)
{
	*out = ((const struct fake_driver *)d)->stats;
}

static const struct callpath_driver calls = { .missing = answer_missing,
					      .put = answer_put,
					      .stats = answer_stats };

/* ---- help ------------------------------------------------------------------------------------ */

static void open_paths(size_t nr_timed)
{
	const struct callpath_config config = { .driver = &driver.base,
						.calls = &calls,
						.attribute = &core.attribute,
						.follow = &core.follow,
						.nr_events = 2,
						.nr_timed = nr_timed,
						.workloads = owners,
						.nr_nodes = NR_NODES };
	struct base_err err = { 0 };

	driver = (struct fake_driver){ 0 };
	assert_int_equal(callpath_open(&config, &paths, &err), 0);
}

static int setup(void **state)
{
	(void)state;
	trial_open(&core);
	owners = NULL;
	open_paths(0);
	core.counts.callpaths = paths;
	return 0;
}

static struct callpath_stats stats(void)
{
	struct callpath_stats s;

	callpath_stats_get(paths, false, &s);
	assert_int_equal(s.received, s.stored + s.pending + callpath_lost(&s));
	return s;
}

static int teardown(void **state)
{
	(void)state;
	stats();
	callpath_close(paths);
	trial_close(&core);
	return 0;
}

static void map_both(void)
{
	trial_mmap(&core, PID, MAIN, 0x1000, 0x1000, "/bin/a", 1);
	trial_mmap(&core, PID, LIB, 0x1000, 0x5000, "/lib/b", 2);
}

static void take_of(const struct driver_callpath *like, const uint64_t *frames)
{
	struct driver_callpath c = *like;

	c.first_ns = c.time_ns = ++core.time_ns;
	c.tid = c.pid;
	c.count = 1;
	driver.stats.received++;
	assert_int_equal(counts_callpath(&core.counts, &c, frames), 0);
}

static void take(const uint64_t *frames, uint16_t nr)
{
	const struct driver_callpath c = { .pid = PID, .mode = DRIVER_USER, .nr = nr };

	take_of(&c, frames);
}

/* This is what a flush would write, as "END IMAGE+OFF … COUNT" lines, outermost frame last. */
static const struct profdb_callpaths *put;
static unsigned int nr_put;
static int put_result;

int __wrap_profdb_flush_put_callpaths(struct profdb *db, const struct profdb_callpaths *c,
				      struct base_err *err);
int __wrap_profdb_flush_put_callpaths(struct profdb *db, const struct profdb_callpaths *c,
				      struct base_err *err)
{
	struct profdb_callpaths *copy;

	(void)db;
	if (put_result < 0)
		return base_fail(err, put_result, "told to fail");
	copy = profdb_callpaths_new();
	assert_non_null(copy);
	assert_int_equal(profdb_callpaths_merge(copy, c), 0);
	profdb_callpaths_free((struct profdb_callpaths *)(uintptr_t)put);
	put = copy;
	nr_put++;
	return 0;
}

static void append_path(struct base_buf *out, size_t node)
{
	struct profdb_callpath_node n = profdb_callpaths_node(put, node);
	const uint64_t *count = n.count;

	for (size_t at = node; at >= PROFDB_NR_CALLPATH_ENDS; at = n.parent) {
		n = profdb_callpaths_node(put, at);
		if (n.frame.image == PROFDB_CALLPATH_WORKLOAD) {
			base_buf_printf(out, "%s ",
					profdb_callpaths_workload(put, n.frame.off)->comm);
			continue;
		}
		base_buf_printf(out, "%s+%llx ", profdb_callpaths_image(put, n.frame.image)->path,
				(unsigned long long)n.frame.off);
	}
	base_buf_printf(out, "end%u %llu %llu\n", n.parent, (unsigned long long)count[0],
			(unsigned long long)count[1]);
}

/* Flush: the paths that were put, a line each. */
static char *flush(void)
{
	struct base_buf out = { 0 };
	struct base_err err = { 0 };

	nr_put = 0;
	assert_true(callpath_give_up(paths, false) >= 0);
	assert_int_equal(callpath_put(paths, NULL, core.store.events, &err), 0);
	callpath_written(paths);
	base_buf_printf(&out, "%s", "");
	for (size_t i = PROFDB_NR_CALLPATH_ENDS; nr_put && i < profdb_callpaths_nr_nodes(put);
	     i++) {
		const uint64_t *count = profdb_callpaths_node(put, i).count;

		if (count[0] || count[1])
			append_path(&out, i);
	}
	profdb_callpaths_free((struct profdb_callpaths *)(uintptr_t)put);
	put = NULL;
	return (char *)out.data;
}

#define assert_flushed(text)                                                                       \
	do {                                                                                       \
		char *flushed = flush();                                                           \
		assert_string_equal(flushed, text);                                                \
		free(flushed);                                                                     \
	} while (0)

/* ---- where frames belong --------------------------------------------------------------------- */

/* A caller is looked up before its return address, an interrupted instruction where it is. */
static void two_images(void **state)
{
	const uint64_t frames[] = { EXACT(LIB + 0x10), MAIN + 0x20, MAIN + 0x1000 };

	(void)state;
	map_both();
	take(frames, 3);
	take(frames, 3);
	assert_int_equal(stats().stored, 2);
	assert_flushed("/lib/b+5010 /bin/a+101f /bin/a+1fff end0 2 0\n");
	assert_int_equal(stats().stored, 2);
	assert_flushed("");
}

/* Equal processes share their paths, others do not; a thread of the kernel has its own. */
static void of_whom(void **state)
{
	const uint64_t frame = EXACT(MAIN), kernel = 0xffff0010;
	const struct driver_callpath thread = {
		.pid = 5, .mode = DRIVER_KERNEL, .nr_kernel = 1, .nr = 1
	};

	(void)state;
	callpath_close(paths);
	owners = core.store.workloads;
	open_paths(0);
	core.counts.callpaths = paths;
	for (int32_t pid = PID; pid < PID + 4; pid++) {
		const struct driver_callpath c = { .pid = pid, .mode = DRIVER_USER, .nr = 1 };

		trial_mmap(&core, pid, MAIN, 0x1000, 0x1000, "/bin/a", 1);
		process_set_comm(processes_find(core.follow.processes, pid),
				 pid == PID ? "one" : "two");
		take_of(&c, &frame);
	}
	take_of(&thread, &kernel);
	assert_flushed("/bin/a+1000 one end0 1 0\n/bin/a+1000 two end0 3 0\n"
		       "unknown kernel+0  end0 1 0\n");
}

/* Callers that were placed before are taken to be there until a mapping, or a flush, comes. */
static void callers_again(void **state)
{
	const uint64_t frames[] = { EXACT(LIB + 0x10), MAIN + 0x20, MAIN + 0x30, MAIN + 0x40 };
	const uint64_t other[] = { EXACT(LIB + 0x18), MAIN + 0x20, MAIN + 0x30, MAIN + 0x40 };
	const uint64_t ended[] = { EXACT(LIB + 0x18), MAIN + 0x20, MAIN + 0x30, MAIN + 0x44 };
	const uint64_t turned[] = { EXACT(LIB + 0x18), MAIN + 0x30, MAIN + 0x20, MAIN + 0x40 };

	(void)state;
	map_both();
	take(frames, 4);
	take(frames, 4);
	take(other, 4);
	take(ended, 4);
	take(turned, 4);
	assert_flushed("/lib/b+5010 /bin/a+101f /bin/a+102f /bin/a+103f end0 2 0\n"
		       "/lib/b+5018 /bin/a+101f /bin/a+102f /bin/a+103f end0 1 0\n"
		       "/lib/b+5018 /bin/a+101f /bin/a+102f /bin/a+1043 end0 1 0\n"
		       "/lib/b+5018 /bin/a+102f /bin/a+101f /bin/a+103f end0 1 0\n");
	take(frames, 4);
	trial_mmap(&core, PID, MAIN, 0x1000, 0x1000, "/bin/c", 3);
	take(frames, 4);
	assert_flushed("/lib/b+5010 /bin/a+101f /bin/a+102f /bin/a+103f end0 1 0\n"
		       "/lib/b+5010 /bin/c+101f /bin/c+102f /bin/c+103f end0 1 0\n");
}

static void ends(void **state)
{
	static const enum profdb_callpath_end expected[] = {
		PROFDB_CALLPATH_COMPLETE, PROFDB_CALLPATH_CUT, PROFDB_CALLPATH_UNREADABLE,
		PROFDB_CALLPATH_NO_ROWS, PROFDB_CALLPATH_CONTRADICTED
	};
	const uint64_t frame = EXACT(MAIN);
	char text[64];

	(void)state;
	map_both();
	for (int i = 0; i < DRIVER_NR_CALLPATH_ENDS; i++) {
		const struct driver_callpath c = { .pid = PID,
						   .mode = DRIVER_USER,
						   .event = 1,
						   .end = (enum driver_callpath_end)i,
						   .nr = 1 };

		take_of(&c, &frame);
		snprintf(text, sizeof(text), "/bin/a+1000 end%u 0 1\n", expected[i]);
		assert_flushed(text);
	}
}

static void kernel_then_process(void **state)
{
	const uint64_t frames[] = { 0xffff0010, 0xffff0020, MAIN + 0x20 };
	const struct driver_callpath c = {
		.pid = PID, .mode = DRIVER_KERNEL, .nr_kernel = 2, .nr = 3
	};

	(void)state;
	map_both();
	stand_ins.kernel_image =
		images_get(core.store.images, PROFDB_KERNEL, NULL, "vmlinux", "vmlinux");
	stand_ins.kernel_start = 0xffff0000;
	stand_ins.kernel_end = 0xffff1000;
	take_of(&c, frames);
	assert_flushed("vmlinux+10 vmlinux+1f /bin/a+101f end0 1 0\n");
}

/* Frames in no image have the names that samples there have. */
static void in_no_image(void **state)
{
	const uint64_t frames[] = { EXACT(MAIN), 0x1234, 0x5678 };

	(void)state;
	map_both();
	take(frames, 3);
	assert_flushed("/bin/a+1000 unknown+0 unknown+0 end0 1 0\n");
}

static void of_nobody(void **state)
{
	const uint64_t frames[] = { EXACT(MAIN) };
	const struct driver_callpath c = { .pid = 4711, .mode = DRIVER_USER, .nr = 1 };

	(void)state;
	take_of(&c, frames);
	assert_flushed("unknown process+0 end0 1 0\n");
}

/* The mappings at its time say where it was. */
static void in_the_order_of_time(void **state)
{
	const uint64_t frame = EXACT(MAIN);

	(void)state;
	trial_mmap(&core, PID, MAIN, 0x1000, 0x1000, "/bin/old", 3);
	take(&frame, 1);
	map_both();
	take(&frame, 1);
	assert_flushed("/bin/old+1000 end0 1 0\n/bin/a+1000 end0 1 0\n");
}

/* A wait stands before its callers, and its nanoseconds have an account of their own. */
static void waits_of_threads(void **state)
{
	const uint64_t frames[] = { 0, 0xffff0020, MAIN + 0x20 };
	struct driver_callpath c = { .pid = PID,
				     .mode = DRIVER_KERNEL,
				     .event = 1,
				     .wait = DRIVER_WAIT_LOCK,
				     .count = 5000,
				     .nr_kernel = 2,
				     .nr = 3 };
	struct callpath_stats times;

	(void)state;
	callpath_close(paths);
	open_paths(1);
	core.counts.callpaths = paths;
	core.store.nr_timed = 1;
	map_both();
	stand_ins.kernel_image =
		images_get(core.store.images, PROFDB_KERNEL, NULL, "vmlinux", "vmlinux");
	stand_ins.kernel_start = 0xffff0000;
	stand_ins.kernel_end = 0xffff1000;
	c.first_ns = c.time_ns = ++core.time_ns;
	assert_int_equal(counts_callpath(&core.counts, &c, frames), 0);
	/* No wait is a sample, and no sample is a wait. */
	c.event = 0;
	assert_int_equal(counts_callpath(&core.counts, &c, frames), 0);
	callpath_stats_get(paths, true, &times);
	assert_int_equal(times.received, 10000);
	assert_int_equal(times.stored, 5000);
	assert_int_equal(times.lost[CALLPATH_LOST_READ], 5000);
	assert_int_equal(stats().stored, 0);
	store_all(&core.store);
	assert_int_equal(core.store.times.stored, 5000);
	assert_int_equal(core.store.times.bucket[ACCOUNT_BUCKET_LOCK], 5000);
	core.store.account.stored = 0;
	assert_flushed("waiting, lock+0 vmlinux+1f /bin/a+101f end0 0 5000\n");
}

/* ---- functions of interpreters --------------------------------------------------------------- */

#define FUNCTION(key, instr)                                                                       \
	(DRIVER_FRAME_FUNCTION | (uint64_t)(key) << DRIVER_FRAME_KEY_SHIFT | (instr))

static struct image *dynamic_image(void);

/* In the pseudo-image of their process; one that nothing told of is in none. */
static void functions_stand_among_the_frames(void **state)
{
	const uint64_t frames[] = { EXACT(LIB + 0x10), FUNCTION(77, 5), FUNCTION(78, 0),
				    MAIN + 0x20 };
	const struct driver_function f = { .key = 77, .pid = PID, .time_ns = 1, .nr = 9 };

	(void)state;
	map_both();
	stand_ins.dyn_image = dynamic_image();
	stand_ins.dyn_image->id.len = 20;
	stand_ins.dyn_off = 0x40;
	assert_int_equal(counts_function(&core.counts, &f), 0);
	take(frames, 4);
	assert_int_equal(stats().stored, 1);
	assert_flushed("/lib/b+5010 jit+4a dynamic, unknown+0 /bin/a+101f end0 1 0\n");
}

/* ---- what waits ------------------------------------------------------------------------------ */

static struct image *dynamic_image(void)
{
	return images_get(core.store.images, PROFDB_DYNAMIC, NULL, "jit", "jit.dyn");
}

static void map_dynamic(void)
{
	map_both();
	trial_mmap(&core, PID, ANON, 0x1000, 0, "//anon", 0);
	processes_find(core.follow.processes, PID)->dyn = (struct dyn_client *)&driver;
	stand_ins.dyn_image = dynamic_image();
	stand_ins.dyn_off = 0x40;
	stand_ins.registered = true;
}

/* The frame in dynamic code waits for the registry, and then for its pseudo-image. */
static void dynamic_frames(void **state)
{
	const uint64_t frames[] = { EXACT(LIB + 1), ANON + 8, MAIN + 0x20 };
	struct image *img;

	(void)state;
	map_dynamic();
	img = stand_ins.dyn_image;
	stand_ins.where = DYN_LATER;
	take(frames, 3);
	assert_int_equal(stats().pending, 1);
	counts_resolve(&core.counts, 0);
	assert_int_equal(stats().pending, 1);
	stand_ins.where = DYN_FOUND;
	counts_resolve(&core.counts, 0);
	assert_int_equal(stand_ins.query.addr, ANON + 7);
	assert_int_equal(stats().stored, 1);
	/* It has no identity yet. */
	assert_flushed("");
	img->id = trial_id(7);
	img->behind = true;
	assert_flushed("");
	img->behind = false;
	assert_flushed("/lib/b+5001 jit+40 /bin/a+101f end0 1 0\n");
	assert_flushed("");
	processes_find(core.follow.processes, PID)->dyn = NULL;
}

/* A path that waits for its image keeps no other one back, and becomes part of the next flush. */
static void waits_alone(void **state)
{
	const uint64_t jitted[] = { EXACT(ANON), MAIN + 0x20 },
		       plain[] = { EXACT(LIB), MAIN + 0x20 };

	(void)state;
	map_dynamic();
	stand_ins.where = DYN_FOUND;
	take(jitted, 2);
	take(plain, 2);
	counts_resolve(&core.counts, 0);
	assert_flushed("/lib/b+5000 /bin/a+101f end0 1 0\n");
	take(jitted, 2);
	counts_resolve(&core.counts, 0);
	stand_ins.dyn_image->id = trial_id(7);
	assert_flushed("jit+40 /bin/a+101f end0 2 0\n");
	processes_find(core.follow.processes, PID)->dyn = NULL;
}

static void of_a_process_that_ended(void **state)
{
	const uint64_t frames[] = { EXACT(LIB + 1), ANON + 8 };

	(void)state;
	map_dynamic();
	stand_ins.where = DYN_FOUND;
	stand_ins.dyn_image->id = trial_id(7);
	take(frames, 2);
	processes_find(core.follow.processes, PID)->dyn = NULL;
	trial_event(&core, DRIVER_LOAD_EXIT, PID, 0);
	counts_resolve(&core.counts, 0);
	assert_true(stand_ins.query.last);
	assert_flushed("/lib/b+5001 jit+40 end0 1 0\n");
}

/* Events may tell that what /proc listed is younger than the path. */
static void unsettled(void **state)
{
	const uint64_t frames[] = { EXACT(MAIN), MAIN + 0x20 };
	struct process *p;

	(void)state;
	map_both();
	p = processes_find(core.follow.processes, PID);
	p->maps[0].listed = true;
	p->maps[0].since_ns = 0;
	p->known_ns = core.time_ns + 10;
	take(frames, 2);
	assert_int_equal(stats().pending, 1);
	counts_resolve(&core.counts, 0);
	assert_int_equal(stats().pending, 1);
	assert_true(p->unsettled);
	/* Its end changes nothing: the mappings are kept for it. */
	trial_event(&core, DRIVER_LOAD_EXIT, PID, 0);
	counts_resolve(&core.counts, 0);
	assert_int_equal(stats().pending, 1);
	core.time_ns += 10;
	trial_event(&core, DRIVER_LOAD_FORK, PID + 1, PID + 2);
	assert_int_equal(stats().pending, 0);
	assert_flushed("/bin/a+1000 /bin/a+101f end0 1 0\n");
}

static void events_lost(void **state)
{
	const uint64_t frame = EXACT(MAIN);

	(void)state;
	map_both();
	core.follow.events_lost = true;
	take(&frame, 1);
	assert_int_equal(stats().pending, 1);
	counts_resolve(&core.counts, UINT64_MAX);
	assert_int_equal(stats().stored, 1);
}

/* ---- losses ---------------------------------------------------------------------------------- */

static void driver_losses(void **state)
{
	(void)state;
	driver.stats = (struct driver_callpath_stats){
		.received = 10, .held = 1, .lost_ring = 2, .lost_busy = 3, .lost_read = 4
	};
	assert_int_equal(stats().pending, 1);
	assert_int_equal(stats().lost[CALLPATH_LOST_RING], 2);
	assert_int_equal(stats().lost[CALLPATH_LOST_BUSY], 3);
	assert_int_equal(stats().lost[CALLPATH_LOST_READ], 4);
}

static void senseless(void **state)
{
	const struct driver_callpath cases[] = {
		{ .pid = PID, .nr = 0 },
		{ .pid = PID, .nr = 1, .nr_kernel = 2 },
		{ .pid = PID, .nr = 1, .event = 2 },
		{ .pid = PID, .nr = DRIVER_NR_FRAMES + 1 },
		{ .pid = PID, .nr = 1, .end = DRIVER_NR_CALLPATH_ENDS },
	};
	const uint64_t frame = EXACT(MAIN);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		take_of(&cases[i], &frame);
	assert_int_equal(stats().lost[CALLPATH_LOST_READ], 5);
}

static void excluded_image(void **state)
{
	const uint64_t frames[] = { EXACT(LIB), MAIN + 0x20 };
	struct image *img;

	(void)state;
	map_both();
	take(frames, 2);
	for (size_t pos = 0; images_next(core.store.images, &pos, &img);)
		img->excluded = strcmp(img->path, "/bin/a") == 0;
	take(frames, 2);
	assert_int_equal(stats().stored, 1);
	assert_int_equal(stats().lost[CALLPATH_LOST_EXCLUDED], 1);
}

/* A path that is in the tree already is counted all the same, and a flush makes space. */
static void full(void **state)
{
	uint64_t frame = EXACT(MAIN);

	(void)state;
	map_both();
	for (; !stats().lost[CALLPATH_LOST_FULL] && frame < EXACT(MAIN + 2 * NR_NODES); frame++)
		take(&frame, 1);
	assert_int_equal(stats().lost[CALLPATH_LOST_FULL], 1);
	assert_in_range(stats().stored, NR_NODES / 2, NR_NODES);
	frame = EXACT(MAIN);
	take(&frame, 1);
	assert_int_equal(stats().lost[CALLPATH_LOST_FULL], 1);
	free(flush());
	frame = EXACT(MAIN + 0x800);
	take(&frame, 1);
	assert_int_equal(stats().lost[CALLPATH_LOST_FULL], 1);
	assert_flushed("/bin/a+1800 end0 1 0\n");
}

/* ---- flushes --------------------------------------------------------------------------------- */

/* A failure costs nothing, and only a commit clears. */
static void failed_flush(void **state)
{
	const uint64_t frame = EXACT(MAIN);
	struct base_err err = { 0 };

	(void)state;
	map_both();
	take(&frame, 1);
	put_result = -ENOSPC;
	assert_int_equal(callpath_put(paths, NULL, core.store.events, &err), -ENOSPC);
	assert_string_equal(err.text, "told to fail");
	put_result = 0;
	assert_int_equal(callpath_put(paths, NULL, core.store.events, &err), 0);
	assert_flushed("/bin/a+1000 end0 1 0\n");
}

static void does_not_fit(void **state)
{
	const uint64_t frame = EXACT(MAIN);
	struct base_err err = { 0 };

	(void)state;
	map_both();
	take(&frame, 1);
	base_log_init(tmpfile(), BASE_LOG_ERROR, BASE_LOG_BARE);
	put_result = -DCPI_EOVERFLOW;
	assert_int_equal(callpath_put(paths, NULL, core.store.events, &err), 0);
	put_result = 0;
	callpath_written(paths);
	assert_int_equal(stats().stored, 0);
	assert_int_equal(stats().lost[CALLPATH_LOST_UNFIT], 1);
	base_log_init(stderr, BASE_LOG_ERROR, BASE_LOG_BARE);
	assert_flushed("");
}

static void refused_image(void **state)
{
	const uint64_t frames[] = { EXACT(ANON), MAIN + 0x20 };

	(void)state;
	map_dynamic();
	stand_ins.where = DYN_FOUND;
	take(frames, 2);
	counts_resolve(&core.counts, 0);
	stand_ins.dyn_image->refused = true;
	assert_flushed("dynamic, image refused+0 /bin/a+101f end0 1 0\n");
	processes_find(core.follow.processes, PID)->dyn = NULL;
}

/* At the end an image that is not there will never be. */
static void never_written(void **state)
{
	const uint64_t frames[] = { EXACT(ANON), MAIN + 0x20 };

	(void)state;
	map_dynamic();
	stand_ins.where = DYN_FOUND;
	take(frames, 2);
	counts_resolve(&core.counts, 0);
	assert_flushed("");
	assert_int_equal(callpath_give_up(paths, true), 1);
	assert_flushed("dynamic, image refused+0 /bin/a+101f end0 1 0\n");
	processes_find(core.follow.processes, PID)->dyn = NULL;
}

/* An image that became part of another one takes its frames along, those that wait too. */
static void moved_image(void **state)
{
	const uint64_t frames[] = { EXACT(ANON), MAIN + 0x20 },
		       both[] = { EXACT(ANON), ANON + 1, MAIN + 0x20 };
	struct {
		struct wire_replaces head;
		struct wire_moved moved[1];
	} map = { .head = { .nr_moved = 1 }, .moved = { { 0, 0x1000, 0x100 } } };
	struct image *to;

	(void)state;
	map_dynamic();
	to = images_get(core.store.images, PROFDB_DYNAMIC, NULL, "all", "all.dyn");
	to->id = trial_id(8);
	stand_ins.where = DYN_FOUND;
	take(frames, 2);
	take(both, 3);
	counts_resolve(&core.counts, 0);
	callpath_moved(paths, stand_ins.dyn_image, &map.head, to);
	assert_flushed("all+1040 /bin/a+101f end0 1 0\nall+1040 all+1040 /bin/a+101f end0 1 0\n");
	processes_find(core.follow.processes, PID)->dyn = NULL;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(two_images),
		TEST(functions_stand_among_the_frames),
		TEST(of_whom),
		TEST(callers_again),
		TEST(ends),
		TEST(kernel_then_process),
		TEST(in_no_image),
		TEST(waits_of_threads),
		TEST(of_nobody),
		TEST(in_the_order_of_time),
		TEST(dynamic_frames),
		TEST(waits_alone),
		TEST(of_a_process_that_ended),
		TEST(unsettled),
		TEST(events_lost),
		TEST(driver_losses),
		TEST(senseless),
		TEST(excluded_image),
		TEST(full),
		TEST(failed_flush),
		TEST(does_not_fit),
		TEST(refused_image),
		TEST(never_written),
		TEST(moved_image),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
