/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwind tables for files that lack them: by the mapping, by the path that an event told, or none.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "fast_clock.h"
#include "stand_ins.h"
#include "unwind.h"

#define MAIN	  0x401000ull
#define CODE	  0x7f0000010000ull
#define SECOND_NS 1000000000ull

enum { PID = 10, MISSING_MAX = 5000 };

static struct trial core;
static struct fake_driver {
	struct driver base;
	struct driver_rows_missing missing[MISSING_MAX];
	size_t nr_missing;
	size_t nr_put, nr_none, nr_again, nr_forgotten;
	struct driver_file put, forgotten; /* the last ones */
	int put_result;
	bool knows_code; /* it has the table of CODE */
} driver;
static struct callpaths *paths;

static int answer_missing(struct driver *base,
			  int (*fn)(void *ctx, const struct driver_rows_missing *m), void *ctx)
{
	struct fake_driver *d = (struct fake_driver *)base;

	for (size_t i = 0; i < d->nr_missing; i++)
		fn(ctx, &d->missing[i]);
	d->nr_missing = 0;
	return 0;
}

static int answer_put(struct driver *base, const struct driver_file *file,
		      const struct unwind_table *table)
{
	struct fake_driver *d = (struct fake_driver *)base;

	d->put = *file;
	if (!table)
		d->nr_none++;
	else if (d->put_result < 0)
		return d->put_result;
	else
		d->nr_put++;
	d->knows_code |= table && file->size == CODE >> 16;
	return 0;
}

static void answer_again(struct driver *base, const struct driver_file *file)
{
	struct fake_driver *d = (struct fake_driver *)base;

	d->put = *file;
	d->nr_again++;
}

static void answer_forget(struct driver *base, const struct driver_file *files, size_t nr)
{
	struct fake_driver *d = (struct fake_driver *)base;

	assert_true(nr > 0);
	d->forgotten = files[nr - 1];
	d->nr_forgotten += nr;
}

static void answer_stats(const struct driver *d, struct driver_callpath_stats *out)
{
	(void)d;
	*out = (struct driver_callpath_stats){ 0 };
}

/* The table of file 7: its first 16 bytes push a word, what is behind is the outermost frame. That
 * of CODE: all of it pushes a word. */
static bool answer_rule(struct driver *d, const struct driver_file *file, uint64_t off,
			struct unwind_rule *rule)
{
	bool code = file->size == CODE >> 16;

	if (code ? !((struct fake_driver *)d)->knows_code : file->ino != 7 || off < 0x1000)
		return false;
	*rule = code || off < 0x1010
			? (struct unwind_rule){ .how = UNWIND_CFA, .base = UNWIND_SP, .off = 16 }
			: (struct unwind_rule){ .how = UNWIND_END };
	return true;
}

static const struct callpath_driver calls = { .missing = answer_missing,
					      .put = answer_put,
					      .again = answer_again,
					      .forget = answer_forget,
					      .rule = answer_rule,
					      .stats = answer_stats };

static int setup(void **state)
{
	const struct callpath_config config = { .driver = &driver.base,
						.calls = &calls,
						.reader = (struct reader *)&driver,
						.attribute = &core.attribute,
						.follow = &core.follow,
						.nr_events = 1 };
	struct base_err err = { 0 };

	(void)state;
	/* A turn that would not end takes its time all the same. */
	stands = true;
	stride_ns = 100;
	trial_open(&core);
	memset(&driver, 0, sizeof(driver));
	assert_int_equal(callpath_open(&config, &paths, &err), 0);
	core.counts.callpaths = paths;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	callpath_close(paths);
	trial_close(&core);
	return 0;
}

static struct driver_rows_missing *lacks(uint64_t ino)
{
	struct driver_rows_missing *m = &driver.missing[driver.nr_missing++];

	*m = (struct driver_rows_missing){ .file = { .dev = 8 << 20 | 1, .ino = ino, .size = 4096 },
					   .addr = MAIN + 8,
					   .start = MAIN,
					   .end = MAIN + 0x1000,
					   .file_off = 0x1000,
					   .pid = PID };
	return m;
}

static size_t waiting(void)
{
	struct callpath_stats s;

	callpath_stats_get(paths, false, &s);
	assert_int_equal(s.tables_put, driver.nr_put);
	assert_int_equal(s.tables_none, driver.nr_none);
	return s.tables_waiting;
}

/* ---- the reader ------------------------------------------------------------------------------ */

static struct reader_mapped asked;
static char asked_path[64];

static int make_table(struct unwind_table **out)
{
	const struct unwind_rule none = { .how = UNWIND_NONE };
	struct unwind_builder *b = unwind_builder_new();

	assert_int_equal(unwind_builder_add(b, 0x1000, &none), 0);
	assert_int_equal(unwind_builder_done(b, out), 0);
	unwind_builder_free(b);
	return 0;
}

static int finds(const struct reader_mapped *f, int fd, struct unwind_table **out)
{
	assert_int_equal(fd, -1);
	asked = *f;
	return make_table(out);
}

static int knows_vdso(const struct reader_mapped *f, int fd, struct unwind_table **out)
{
	assert_true(fd >= 0);
	assert_int_equal(f->pid, 0);
	return make_table(out);
}

/* The process is gone: only a path with an identity leads there. */
static int by_path(const struct reader_mapped *f, int fd, struct unwind_table **out)
{
	(void)fd;
	if (!f->path || !f->id.len)
		return -ESTALE;
	snprintf(asked_path, sizeof(asked_path), "%s", f->path);
	asked = *f;
	return make_table(out);
}

static int is_no_elf(const struct reader_mapped *f, int fd, struct unwind_table **out)
{
	(void)f;
	(void)fd;
	(void)out;
	return -DCPI_EFORMAT;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void by_its_mapping(void **state)
{
	(void)state;
	stand_ins.rows = finds;
	lacks(7);
	assert_true(callpath_serve(paths));
	assert_int_equal(driver.nr_put, 1);
	assert_int_equal(driver.put.ino, 7);
	assert_int_equal(asked.pid, PID);
	assert_int_equal(asked.start, MAIN);
	assert_int_equal(asked.inode, 7);
	assert_int_equal(asked.size, 4096);
	assert_int_equal(waiting(), 0);
	assert_false(callpath_serve(paths));
	assert_int_equal(stand_ins.nr_rows, 1);
}

static void nothing_is_missing(void **state)
{
	(void)state;
	assert_false(callpath_serve(paths));
	assert_int_equal(waiting(), 0);
}

static void vdso(void **state)
{
	(void)state;
	stand_ins.rows = knows_vdso;
	lacks(0)->kind = DRIVER_ROWS_VDSO;
	assert_true(callpath_serve(paths));
	assert_int_equal(driver.nr_put, 1);
}

/* Its event comes later than the path that met its code. */
static void by_the_path_of_an_event(void **state)
{
	(void)state;
	stand_ins.rows = by_path;
	lacks(7);
	assert_false(callpath_serve(paths));
	assert_int_equal(waiting(), 1);
	/* Another mapping, and another offset of it, are not it. */
	trial_mmap(&core, PID, MAIN + 0x1000, 0x1000, 0x2000, "/bin/other", 2);
	trial_mmap(&core, PID, MAIN, 0x1000, 0x5000, "/bin/other", 3);
	trial_mmap(&core, PID + 1, MAIN, 0x1000, 0x1000, "/bin/other", 3);
	trial_mmap(&core, PID, MAIN, 0x1000, 0x1000, "/bin/a", 1);
	trial_event(&core, DRIVER_LOAD_EXIT, PID, 0);
	assert_true(callpath_serve(paths));
	assert_string_equal(asked_path, "/bin/a");
	assert_int_equal(asked.id.bytes[0], 1);
	assert_int_equal(waiting(), 0);
}

static void by_what_is_known(void **state)
{
	(void)state;
	stand_ins.rows = by_path;
	trial_mmap(&core, PID, MAIN, 0x1000, 0x1000, "/bin/a", 1);
	lacks(7);
	assert_true(callpath_serve(paths));
	assert_string_equal(asked_path, "/bin/a");
}

/* Its process ends before the file was read. */
static void ends_soon(void **state)
{
	(void)state;
	stand_ins.rows = by_path;
	stand_ins.rows_wait = 1;
	trial_mmap(&core, PID, MAIN, 0x1000, 0x1000, "/bin/a", 1);
	lacks(7);
	callpath_serve(paths);
	trial_event(&core, DRIVER_LOAD_EXIT, PID, 0);
	assert_true(callpath_serve(paths));
	assert_string_equal(asked_path, "/bin/a");
}

/* A process that left nothing behind is not waited for without end: another one may show the file.
 */
static void gone(void **state)
{
	(void)state;
	stand_ins.rows = by_path;
	lacks(7);
	for (int i = 0; i < 10; i++)
		callpath_serve(paths);
	/* Not more often than it is worth. */
	assert_int_equal(stand_ins.nr_rows, 1);
	assert_int_equal(waiting(), 1);
	ahead_ns += 3 * SECOND_NS;
	callpath_serve(paths);
	assert_int_equal(waiting(), 0);
	assert_int_equal(driver.nr_none, 0);
	assert_int_equal(driver.nr_again, 1);
	assert_int_equal(driver.put.ino, 7);
}

/* Others that have the file do not wait for that. */
static void shown_by_another_one(void **state)
{
	(void)state;
	stand_ins.rows = by_path;
	lacks(7);
	callpath_serve(paths);
	assert_int_equal(driver.nr_again, 1);
	stand_ins.rows = finds;
	lacks(7)->pid = PID + 1;
	callpath_serve(paths);
	assert_int_equal(asked.pid, PID + 1);
	assert_int_equal(driver.nr_put, 1);
	assert_int_equal(waiting(), 0);
}

static void without_a_table(void **state)
{
	(void)state;
	stand_ins.rows = is_no_elf;
	lacks(7);
	lacks(8);
	assert_false(callpath_serve(paths));
	assert_int_equal(driver.nr_none, 2);
	assert_int_equal(waiting(), 0);
}

/* ---- paths that continue --------------------------------------------------------------------- */

/* A path that ended at @pc, with @len bytes of the stack, which leads to @caller. */
static void take_path_at(uint64_t pc, uint64_t caller, uint32_t len)
{
	const uint64_t frame = pc | DRIVER_FRAME_EXACT, stack[4] = { 0, caller };
	const struct unwind_state state = {
		.pc = pc, .reg[UNWIND_SP] = 0x7000, .known = 1 << UNWIND_SP, .exact = 1
	};
	struct driver_callpath c = { .pid = PID,
				     .count = 1,
				     .nr = 1,
				     .end = DRIVER_CALLPATH_NO_ROWS,
				     .state = &state,
				     .stack = stack,
				     .stack_len = len };

	c.first_ns = c.time_ns = ++core.time_ns;
	callpath_take(paths, &c, &frame, processes_find(core.follow.processes, PID), 0);
}

static void take_path(uint64_t caller, uint32_t len)
{
	take_path_at(MAIN + 8, caller, len);
}

static struct driver_callpath_stats ends(void)
{
	struct driver_callpath_stats s;

	callpath_driver_stats_get(paths, &s);
	return s;
}

/* At once, or when its table comes. */
static void a_path_continues_by_a_table_that_came_later(void **state)
{
	(void)state;
	stand_ins.rows = finds;
	trial_mmap(&core, PID, MAIN, 0x1000, 0x1000, "/bin/a", 1);
	take_path(MAIN + 0x20, 32);
	counts_resolve(&core.counts, 0);
	assert_int_equal(ends().frames, 0);
	lacks(7);
	callpath_serve(paths);
	counts_resolve(&core.counts, 0);
	assert_int_equal(ends().frames, 1);
	take_path(MAIN + 0x20, 32);
	assert_int_equal(ends().frames, 2);
	assert_int_equal(ends().by_end[DRIVER_CALLPATH_COMPLETE], 2);
	/* The caller stands behind what was copied. */
	take_path(MAIN + 0x20, 8);
	/* It is in no code, or in code of which nothing is known. */
	take_path(0, 32);
	take_path(0x700000, 32);
	assert_int_equal(ends().frames, 2);
	ahead_ns += SECOND_NS;
	counts_resolve(&core.counts, 0);
	assert_int_equal(ends().frames, 3);
	assert_int_equal(ends().by_end[DRIVER_CALLPATH_COMPLETE], 2);
	assert_int_equal(ends().by_end[DRIVER_CALLPATH_CUT], 0);
}

/* The table was made before an event told of the mapping. */
static void an_image_becomes_known_later(void **state)
{
	(void)state;
	stand_ins.rows = finds;
	lacks(7);
	callpath_serve(paths);
	trial_mmap(&core, PID, MAIN, 0x1000, 0x1000, "/bin/a", 1);
	take_path(MAIN + 0x20, 32);
	assert_int_equal(ends().frames, 0);
	callpath_serve(paths);
	counts_resolve(&core.counts, 0);
	assert_int_equal(ends().frames, 1);
	/* Another image at these addresses has another table. */
	trial_mmap(&core, PID, MAIN, 0x1000, 0x1000, "/bin/b", 2);
	take_path(MAIN + 0x20, 32);
	assert_int_equal(ends().frames, 1);
}

/* Its first process is known by its events alone, which come together; others have the file, too.
 */
static void an_image_is_known_by_a_short_process(void **state)
{
	(void)state;
	stand_ins.rows = finds;
	lacks(7);
	callpath_serve(paths);
	trial_mmap(&core, PID, MAIN, 0x1000, 0x1000, "/bin/a", 1);
	trial_event(&core, DRIVER_LOAD_EXIT, PID, 0);
	trial_mmap(&core, PID, MAIN, 0x1000, 0x1000, "/bin/a", 1);
	take_path(MAIN + 0x20, 32);
	assert_int_equal(ends().frames, 1);
}

/* The daemon goes on while a table is made. */
static void made_meanwhile(void **state)
{
	(void)state;
	stand_ins.rows = finds;
	stand_ins.rows_wait = 3;
	lacks(7);
	lacks(8);
	for (int i = 0; i < 3; i++) {
		assert_true(callpath_serve(paths)); /* it is to be looked at soon */
		assert_int_equal(waiting(), 2);
		assert_int_equal(stand_ins.nr_rows, 1);
	}
	assert_true(callpath_serve(paths));
	assert_int_equal(driver.nr_put, 2);
	assert_int_equal(waiting(), 0);
}

/* A second and a half of CPU time, and then a fortieth. */
static void later_for_want_of_budget(void **state)
{
	(void)state;
	stand_ins.rows = finds;
	stand_ins.rows_ran_ns = 2 * SECOND_NS;
	lacks(7);
	lacks(8);
	callpath_serve(paths);
	assert_int_equal(driver.nr_put, 1);
	assert_int_equal(waiting(), 1);
	/* A large one has a budget of its own. */
	lacks(9)->file.size = 8 << 20;
	callpath_serve(paths);
	assert_int_equal(driver.put.ino, 9);
	assert_int_equal(waiting(), 1);
	ahead_ns += 19 * SECOND_NS;
	callpath_serve(paths);
	assert_int_equal(waiting(), 1);
	ahead_ns += 2 * SECOND_NS;
	callpath_serve(paths);
	assert_int_equal(waiting(), 0);
}

static uint64_t order[8];
static size_t nr_order;

static int notes_order(const struct reader_mapped *f, int fd, struct unwind_table **out)
{
	(void)fd;
	order[nr_order++ % 8] = f->inode;
	return make_table(out);
}

static void small_files_first(void **state)
{
	(void)state;
	nr_order = 0;
	stand_ins.rows = notes_order;
	stand_ins.rows_wait = 1;
	lacks(1)->file.size = 1 << 20;
	callpath_serve(paths);
	lacks(2)->file.size = 1 << 20;
	lacks(3)->file.size = 1 << 12;
	callpath_serve(paths);
	assert_int_equal(nr_order, 3);
	assert_int_equal(order[1], 3);
	assert_int_equal(order[2], 2);
}

/* A user of many files waits for one of few. */
static void in_turn_by_user(void **state)
{
	(void)state;
	nr_order = 0;
	stand_ins.rows = notes_order;
	trial_mmap(&core, PID, MAIN, 0x1000, 0x1000, "/bin/a", 1);
	trial_mmap(&core, PID + 1, MAIN, 0x1000, 0x1000, "/bin/a", 1);
	processes_find(core.follow.processes, PID + 1)->uid = 1000;
	processes_find(core.follow.processes, PID + 1)->uid_known = true;
	for (uint64_t i = 1; i <= 4; i++)
		lacks(i);
	lacks(5)->pid = PID + 1;
	callpath_serve(paths);
	assert_int_equal(nr_order, 5);
	assert_int_equal(order[0], 1);
	assert_int_equal(order[1], 5);
	assert_int_equal(order[2], 2);
}

static int takes_too_long(const struct reader_mapped *f, int fd, struct unwind_table **out)
{
	(void)f;
	(void)fd;
	(void)out;
	return -ETIMEDOUT;
}

/* It may have been the machine; but not each time. */
static void too_long(void **state)
{
	(void)state;
	stand_ins.rows = takes_too_long;
	lacks(7);
	for (unsigned int i = 1; i <= 3; i++) {
		assert_int_equal(driver.nr_none, 0);
		callpath_serve(paths);
		ahead_ns += SECOND_NS;
		assert_int_equal(stand_ins.nr_rows, i);
	}
	assert_int_equal(driver.nr_none, 1);
	assert_int_equal(waiting(), 0);
}

/* The driver has no space for it. */
static void too_large(void **state)
{
	(void)state;
	stand_ins.rows = finds;
	driver.put_result = -DCPI_ELIMIT;
	lacks(7);
	callpath_serve(paths);
	assert_int_equal(driver.nr_none, 1);
	assert_int_equal(waiting(), 0);
}

static void very_many(void **state)
{
	(void)state;
	stand_ins.rows = finds;
	stand_ins.rows_wait = 1;
	for (uint64_t i = 0; i < MISSING_MAX; i++)
		lacks(i);
	callpath_serve(paths);
	/* There is as much left for other users. */
	assert_int_equal(waiting(), 2048);
	assert_int_equal(driver.nr_none, MISSING_MAX - 2048);
	callpath_serve(paths);
	assert_true(waiting() < 2048);
}

/* ---- code that processes write --------------------------------------------------------------- */

static struct reader_code asked_code;
static struct reader_routine asked_routines[4];
static struct wire_frame asked_frames[READER_FRAMES_MAX];

static int knows_code(const struct reader_code *c, struct unwind_table **out)
{
	asked_code = *c;
	memcpy(asked_routines, c->routines, c->nr * sizeof(*c->routines));
	if (c->nr_frames)
		memcpy(asked_frames, c->frames, c->nr_frames * sizeof(*c->frames));
	return make_table(out);
}

static void lacks_code(uint64_t instance)
{
	*lacks(0) = (struct driver_rows_missing){ .file = { .ino = instance, .size = CODE >> 16 },
						  .instance = instance,
						  .addr = CODE + 8,
						  .start = CODE,
						  .end = CODE + 0x10000,
						  .pid = PID,
						  .kind = DRIVER_ROWS_CODE };
}

static void begin_code(void)
{
	trial_mmap(&core, PID, MAIN, 0x1000, 0x1000, "/bin/a", 1);
	stand_ins.code_rows = knows_code;
	stand_ins.nr_routines = 2;
	stand_ins.routines[0].addr = CODE + 0x100;
	stand_ins.routines[0].len = 0x80;
	stand_ins.routines[0].seq = 7;
	stand_ins.routines[1].addr = CODE - 0x100;
	stand_ins.routines[1].len = 0x180;
	stand_ins.routines[1].seq = 8;
}

static void by_its_routines(void **state)
{
	(void)state;
	begin_code();
	lacks_code(1);
	assert_true(callpath_serve(paths));
	assert_int_equal(driver.nr_put, 1);
	assert_int_equal(asked_code.pid, PID);
	assert_int_equal(asked_code.start, CODE);
	assert_int_equal(asked_code.end, CODE + 0x10000);
	assert_int_equal(asked_code.nr, 2);
	assert_int_equal(asked_routines[0].addr, CODE - 0x100);
	assert_int_equal(asked_routines[1].addr, CODE + 0x100);
	assert_int_equal(asked_routines[1].len, 0x80);
	assert_false(callpath_serve(paths));
	assert_int_equal(stand_ins.nr_rows, 1);
	assert_int_equal(driver.nr_forgotten, 0);
}

/* Each routine comes with what its runtime told of its frames. */
static void with_frames(void **state)
{
	(void)state;
	begin_code();
	stand_ins.routines[0].nr_frames = 1;
	stand_ins.routines[1].nr_frames = 2;
	lacks_code(1);
	assert_true(callpath_serve(paths));
	assert_int_equal(asked_code.nr, 2);
	assert_int_equal(asked_code.nr_frames, 3);
	assert_int_equal(asked_routines[0].nr_frames, 2);
	assert_int_equal(asked_frames[asked_routines[0].first_frame].cfa_off, 64);
	assert_int_equal(asked_frames[asked_routines[0].first_frame + 1].code_off, 1);
	assert_int_equal(asked_routines[1].nr_frames, 1);
	assert_int_equal(asked_frames[asked_routines[1].first_frame].cfa_off, 56);
}

static void with_too_many_frames(void **state)
{
	(void)state;
	begin_code();
	stand_ins.routines[0].nr_frames = READER_FRAMES_MAX;
	stand_ins.routines[1].nr_frames = 1;
	lacks_code(1);
	assert_true(callpath_serve(paths));
	assert_int_equal(asked_routines[1].nr_frames, READER_ROUTINE_FRAMES_MAX);
	assert_int_equal(asked_code.nr_frames, READER_ROUTINE_FRAMES_MAX + 1);
}

/* A path met its code before an event told of it: the events are asked for, now and then. */
static void process_is_not_known_yet(void **state)
{
	(void)state;
	begin_code();
	assert_false(callpath_wants_events(paths));
	lacks_code(1);
	driver.missing[0].pid = PID + 1;
	callpath_serve(paths);
	assert_int_equal(stand_ins.nr_rows, 0);
	assert_int_equal(waiting(), 1);
	assert_true(callpath_wants_events(paths));
	assert_false(callpath_wants_events(paths));
	trial_mmap(&core, PID + 1, MAIN, 0x1000, 0x1000, "/bin/a", 1);
	ahead_ns += SECOND_NS / 40;
	assert_true(callpath_serve(paths));
	assert_int_equal(driver.nr_put, 1);
	assert_false(callpath_wants_events(paths));
}

static uint64_t pending(void)
{
	struct callpath_stats s;

	callpath_stats_get(paths, false, &s);
	return s.pending;
}

static uint64_t stored(void)
{
	struct callpath_stats s;

	callpath_stats_get(paths, false, &s);
	return s.stored;
}

/* A program runs code that it has just written; its caller is in the program's file. */
static void run_new_code(void)
{
	begin_code();
	processes_find(core.follow.processes, PID)->dyn = (struct dyn_client *)&driver;
	stand_ins.rows = finds;
	stand_ins.code_virgin = stand_ins.registered = true;
	stand_ins.where = DYN_FOUND;
	stand_ins.dyn_image = images_get(core.store.images, PROFDB_DYNAMIC, NULL, "jit", "jit.dyn");
	lacks(7);
	callpath_serve(paths);
	take_path_at(CODE + 8, MAIN + 0x20, 32);
	counts_resolve(&core.counts, 0);
	assert_int_equal(pending(), 1);
}

static void end_new_code(void)
{
	processes_find(core.follow.processes, PID)->dyn = NULL;
	assert_int_equal(pending(), 0);
	assert_int_equal(stored(), 1);
}

/* Its table is there some drains behind the path, which waits for it. */
static void a_path_waits_for_the_table_of_new_code(void **state)
{
	(void)state;
	run_new_code();
	lacks_code(0);
	callpath_serve(paths);
	counts_resolve(&core.counts, 0);
	assert_int_equal(ends().frames, 1);
	assert_int_equal(ends().by_end[DRIVER_CALLPATH_COMPLETE], 1);
	end_new_code();
}

/* No longer than half a second; nor does a flush wait. */
static void a_path_does_not_wait_for_long(void **state)
{
	(void)state;
	run_new_code();
	ahead_ns += SECOND_NS / 4;
	counts_resolve(&core.counts, 0);
	assert_int_equal(pending(), 1);
	ahead_ns += SECOND_NS / 2;
	counts_resolve(&core.counts, 0);
	assert_int_equal(ends().frames, 0);
	end_new_code();
}

static void a_flush_does_not_wait_for_tables(void **state)
{
	(void)state;
	run_new_code();
	core.attribute.flushing = true;
	counts_resolve(&core.counts, 0);
	end_new_code();
}

/* Another part of the file that stands where the caller's stood has other code. */
static void what_is_mapped_later_is_no_caller(void **state)
{
	(void)state;
	run_new_code();
	trial_mmap(&core, PID, MAIN, 0x1000, 0x2000, "/bin/a", 1);
	lacks_code(0);
	callpath_serve(paths);
	counts_resolve(&core.counts, 0);
	assert_int_equal(pending(), 1);
	ahead_ns += SECOND_NS;
	counts_resolve(&core.counts, 0);
	assert_int_equal(ends().by_end[DRIVER_CALLPATH_COMPLETE], 0);
	end_new_code();
}

/* Its process ends in the same drain: the path goes on as far as it can, by the mappings of then.
 */
static void a_path_does_not_outlive_its_process(void **state)
{
	(void)state;
	run_new_code();
	lacks_code(0);
	callpath_serve(paths);
	processes_find(core.follow.processes, PID)->dyn = NULL;
	trial_event(&core, DRIVER_LOAD_EXIT, PID, 0);
	counts_resolve(&core.counts, 0);
	assert_int_equal(pending(), 0);
	assert_int_equal(stored(), 1);
	assert_int_equal(ends().by_end[DRIVER_CALLPATH_COMPLETE], 1);
}

/* Two sources tell of one routine, and a third lies about its length. */
static void told_twice(void **state)
{
	(void)state;
	begin_code();
	stand_ins.nr_routines = 4;
	stand_ins.routines[2] = stand_ins.routines[0];
	stand_ins.routines[3] = stand_ins.routines[0];
	stand_ins.routines[3].addr += 0x10;
	stand_ins.routines[3].len = UINT64_MAX;
	lacks_code(1);
	assert_true(callpath_serve(paths));
	assert_int_equal(asked_code.nr, 2);
	assert_int_equal(asked_routines[1].len, 0x80);
}

/* Parts are looked after now and then. */
static void serve_later(void)
{
	ahead_ns += SECOND_NS;
	callpath_serve(paths);
}

static void nothing_told_yet(void **state)
{
	(void)state;
	begin_code();
	stand_ins.nr_routines = 0;
	lacks_code(1);
	callpath_serve(paths);
	assert_int_equal(driver.nr_none, 1);
	assert_int_equal(stand_ins.nr_rows, 0);
	/* News of other code of the process. */
	stand_ins.news++;
	serve_later();
	assert_int_equal(driver.nr_forgotten, 0);
	/* And of this. */
	stand_ins.nr_routines = 1;
	stand_ins.news++;
	serve_later();
	assert_int_equal(driver.nr_put, 1);
	assert_int_equal(driver.put.size, CODE >> 16);
	assert_int_equal(driver.nr_forgotten, 0);
}

/* Code that runs before it is told of has its table soon after. */
static void told_soon(void **state)
{
	(void)state;
	begin_code();
	stand_ins.nr_routines = 0;
	lacks_code(1);
	serve_later();
	stand_ins.nr_routines = 1;
	stand_ins.news++;
	ahead_ns += SECOND_NS / 50;
	callpath_serve(paths);
	assert_int_equal(driver.nr_put, 1);
	assert_true(stand_ins.nr_read_early > 0);
}

/* A table of more routines takes the place of the one that there is, which says nothing wrong. */
static void grown(void **state)
{
	(void)state;
	begin_code();
	lacks_code(1);
	callpath_serve(paths);
	stand_ins.nr_routines = 3;
	stand_ins.routines[2] = stand_ins.routines[0];
	stand_ins.routines[2].addr += 0x100;
	stand_ins.routines[2].seq = 9;
	stand_ins.news++;
	serve_later();
	assert_int_equal(driver.nr_put, 2);
	assert_int_equal(asked_code.nr, 3);
	serve_later();
	assert_int_equal(driver.nr_put, 2);
	assert_int_equal(driver.nr_forgotten, 0);
	/* One is gone, and another one came. */
	stand_ins.routines[0] = stand_ins.routines[2];
	stand_ins.routines[2].addr += 0x100;
	stand_ins.routines[2].seq = 10;
	stand_ins.news++;
	serve_later();
	assert_int_equal(driver.nr_put, 2);
	assert_int_equal(driver.nr_forgotten, 1);
	assert_int_equal(driver.forgotten.size, CODE >> 16);
	assert_int_equal(driver.nr_put, 2);
}

/* One whose process has nothing to be read early does not keep another's from that. */
static void each_process_is_read_early(void **state)
{
	(void)state;
	begin_code();
	trial_mmap(&core, PID + 1, MAIN, 0x1000, 0x1000, "/bin/a", 1);
	lacks_code(1);
	callpath_serve(paths);
	lacks_code(2);
	driver.missing[0].pid = PID + 1;
	callpath_serve(paths);
	core.follow.ranges_changed = false;
	stand_ins.early_pid = PID + 1;
	serve_later();
	assert_true(core.follow.ranges_changed);
}

/* A routine is gone when its part is asked for anew: the table that has it goes at once, and not
 * when the new one is there. */
static void gone_while_it_waits(void **state)
{
	(void)state;
	begin_code();
	lacks_code(1);
	callpath_serve(paths);
	stand_ins.rows_wait = UINT_MAX;
	stand_ins.nr_routines = 1;
	lacks_code(1);
	callpath_serve(paths);
	assert_int_equal(driver.nr_put, 1);
	assert_int_equal(driver.nr_forgotten, 1);
	stand_ins.rows_wait = 0;
	while (waiting())
		callpath_serve(paths);
	assert_int_equal(driver.nr_put, 2);
}

/* The parts behind one that a path met, if routines are there. */
static void looks_ahead(void **state)
{
	(void)state;
	begin_code();
	lacks_code(1);
	callpath_serve(paths);
	stand_ins.nr_routines = 4;
	stand_ins.routines[2] = stand_ins.routines[3] = stand_ins.routines[0];
	stand_ins.routines[2].addr += 0x20000;
	stand_ins.routines[2].seq = 9;
	stand_ins.routines[3].addr += 0xa0000;
	stand_ins.routines[3].seq = 10;
	stand_ins.news++;
	serve_later();
	assert_int_equal(driver.nr_put, 2);
	assert_int_equal(driver.put.size, (CODE >> 16) + 2);
	assert_int_equal(driver.put.ino, 1);
	assert_int_equal(asked_code.start, CODE + 0x20000);
	assert_int_equal(asked_code.end, CODE + 0x30000);
	assert_int_equal(asked_code.nr, 1);
	/* None behind one that no path met. */
	stand_ins.news++;
	serve_later();
	assert_int_equal(driver.nr_put, 2);
	trial_event(&core, DRIVER_LOAD_EXIT, PID, 0);
	serve_later();
	assert_int_equal(driver.nr_forgotten, 2);
}

/* Another routine of the same length took its place. */
static void replaced(void **state)
{
	(void)state;
	begin_code();
	lacks_code(1);
	callpath_serve(paths);
	stand_ins.routines[0].seq = 9;
	stand_ins.news++;
	serve_later();
	serve_later();
	assert_int_equal(driver.nr_forgotten, 1);
}

static void its_process_ends(void **state)
{
	(void)state;
	begin_code();
	lacks_code(1);
	callpath_serve(paths);
	trial_event(&core, DRIVER_LOAD_EXIT, PID, 0);
	serve_later();
	assert_int_equal(driver.nr_forgotten, 1);
}

static void more_parts_than_are_known(void **state)
{
	(void)state;
	begin_code();
	for (uint64_t i = 1; i <= 4096; i++) {
		lacks_code(i);
		do
			callpath_serve(paths);
		while (waiting());
	}
	assert_int_equal(driver.nr_forgotten, 0);
	lacks_code(4097);
	do
		serve_later();
	while (waiting());
	assert_int_equal(driver.nr_forgotten, 1);
	assert_int_equal(driver.forgotten.ino, 1);
}

/* Its routines change while its table is made: that is put, and forgotten soon. */
static void changed_while_it_is_made(void **state)
{
	(void)state;
	begin_code();
	stand_ins.rows_wait = 3;
	for (uint64_t i = 0; i < 3; i++) {
		lacks_code(1);
		serve_later();
		stand_ins.routines[0].seq++;
		stand_ins.news++;
		assert_int_equal(waiting(), 1);
	}
	assert_int_equal(driver.nr_forgotten, 0);
	serve_later();
	assert_int_equal(driver.nr_put, 1);
	serve_later();
	assert_int_equal(driver.nr_forgotten, 1);
}

/* As far as there is a budget: one turn may be too short for that. */
static void serve_all(void)
{
	for (int i = 0; i < 20; i++)
		callpath_serve(paths);
}

/* Processes that change their code all the time do not hold up a file. */
static void files_and_code_in_turn(void **state)
{
	(void)state;
	begin_code();
	stand_ins.rows = finds;
	for (uint64_t i = 1; i <= 100; i++)
		lacks_code(i);
	lacks(7);
	stand_ins.rows_ran_ns = SECOND_NS / 100 * 55; /* enough for six of code */
	serve_all();
	assert_int_equal(waiting(), 94);
	assert_int_equal(asked.inode, 7);
	/* Files have a budget of their own. */
	lacks(8);
	serve_all();
	assert_int_equal(waiting(), 94);
	assert_int_equal(asked.inode, 8);
}

static int code_of_another_machine(const struct reader_code *c, struct unwind_table **out)
{
	(void)c;
	(void)out;
	return -DCPI_EUNSUPPORTED;
}

/* The helper does not follow code of this machine: it is asked once. */
static void code_is_not_followed(void **state)
{
	(void)state;
	begin_code();
	stand_ins.code_rows = code_of_another_machine;
	for (uint64_t i = 1; i <= 10; i++)
		lacks_code(i);
	do
		serve_later();
	while (waiting());
	assert_int_equal(stand_ins.nr_rows, 1);
	assert_int_equal(driver.nr_none, 10);
}

/* What finds no place is met again, when some may have become free. */
static void code_leaves_places_for_files(void **state)
{
	(void)state;
	begin_code();
	stand_ins.rows_wait = UINT_MAX;
	for (uint64_t i = 1; i <= 1030; i++)
		lacks_code(i);
	lacks(7);
	callpath_serve(paths);
	assert_int_equal(waiting(), 513);
	assert_int_equal(driver.nr_none, 518);
	for (int i = 0; i < 10; i++)
		serve_later();
	assert_int_equal(driver.nr_forgotten, 518);
	stand_ins.rows_wait = 0;
	callpath_serve(paths);
	assert_true(waiting() < 513);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(by_its_mapping),
		TEST(a_path_continues_by_a_table_that_came_later),
		TEST(an_image_becomes_known_later),
		TEST(nothing_is_missing),
		TEST(vdso),
		TEST(by_the_path_of_an_event),
		TEST(by_what_is_known),
		TEST(ends_soon),
		TEST(gone),
		TEST(shown_by_another_one),
		TEST(without_a_table),
		TEST(an_image_is_known_by_a_short_process),
		TEST(made_meanwhile),
		TEST(later_for_want_of_budget),
		TEST(small_files_first),
		TEST(in_turn_by_user),
		TEST(too_long),
		TEST(too_large),
		TEST(very_many),
		TEST(by_its_routines),
		TEST(with_frames),
		TEST(with_too_many_frames),
		TEST(process_is_not_known_yet),
		TEST(a_path_waits_for_the_table_of_new_code),
		TEST(a_path_does_not_wait_for_long),
		TEST(a_flush_does_not_wait_for_tables),
		TEST(what_is_mapped_later_is_no_caller),
		TEST(a_path_does_not_outlive_its_process),
		TEST(told_twice),
		TEST(nothing_told_yet),
		TEST(told_soon),
		TEST(grown),
		TEST(each_process_is_read_early),
		TEST(gone_while_it_waits),
		TEST(looks_ahead),
		TEST(replaced),
		TEST(its_process_ends),
		TEST(more_parts_than_are_known),
		TEST(changed_while_it_is_made),
		TEST(files_and_code_in_turn),
		TEST(code_leaves_places_for_files),
		TEST(code_is_not_followed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
