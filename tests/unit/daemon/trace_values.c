/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of traces: whose they are, and where they belong when they come. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_traces.h"
#include "follow_internal.h"

static char a_client;

static int setup_values(void **state)
{
	struct trace_config config = fake_traces_config();
	struct base_err err = { 0 };

	(void)state;
	config.values = (struct values *)&a_client;
	config.nr_profilers = 1;
	fake_traces_open(NULL);
	trace_close(traces);
	assert_int_equal(trace_open(&config, &traces, &err), 0);
	core.counts.traces = traces;
	fake_traces_map();
	return 0;
}

static void take_values(struct insn_trace *trace)
{
	trace->has = INSN_TRACE_VALUES;
	fake_take(trace);
}

static struct trace_values_stats values_stats(size_t waiting)
{
	struct trace_values_stats stats;
	size_t nr;

	assert_true(trace_values_stats_get(traces, &stats, &nr));
	assert_int_equal(nr, waiting);
	return stats;
}

static void answer(const struct values_tuple *tuples, size_t nr)
{
	stand_ins.tuples = tuples;
	stand_ins.nr_tuples = nr;
	trace_values_turn(traces);
	trace_values_turn(traces);
}

/* What comes back is put where the trace's blocks were, with where it was called from. */
static void values_come_back(void **state)
{
	const struct values_tuple tuples[] = { { .pc = MAIN, .value = 42 },
					       { .pc = LIB, .c0 = AFTER, .value = 7 },
					       { .pc = LIB, .c0 = 0x999, .value = 8 },
					       { .pc = 0x999, .value = 1 } };
	struct insn_trace trace = fake_run(MAIN, 64);
	const struct profdb_values *v;
	struct base_id id;

	(void)state;
	take_values(&trace);
	values_stats(1);
	answer(tuples, 4);
	assert_int_equal(values_stats(0).stored, 3);
	assert_int_equal(values_stats(0).unplaced, 1);
	v = fake_image("/bin/a")->values->values;
	assert_string_equal(profdb_values_profiler(v), "values");
	assert_int_equal(profdb_values_nr(v), 1);
	assert_int_equal(profdb_values_at(v, 0)->off, A(MAIN));
	assert_int_equal(profdb_values_at(v, 0)->v[0].value, 42);
	v = fake_image("/lib/b")->values->values;
	assert_int_equal(profdb_values_nr(v), 2);
	assert_int_equal(profdb_values_at(v, 0)->context[0].image, 0);
	assert_int_equal(profdb_values_at(v, 1)->context[0].image, 1);
	assert_int_equal(profdb_values_at(v, 1)->context[0].off, A(AFTER));
	assert_string_equal(profdb_values_image(v, 1, &id), "/bin/a");
}

/* Nor are its values. */
static void values_of_a_refused_image(void **state)
{
	const struct values_tuple tuples[] = { { .pc = MAIN, .value = 42 },
					       { .pc = MAIN, .value = 43 },
					       { .pc = LIB, .value = 7 } };
	struct insn_trace trace = fake_run(MAIN, 64);

	(void)state;
	take_values(&trace);
	values_stats(1);
	answer(tuples, 3);
	assert_int_equal(values_stats(0).stored, 3);
	trace_given_up(traces, fake_image("/bin/a"));
	assert_int_equal(values_stats(0).stored, 1);
	assert_int_equal(values_stats(0).unplaced, 2);
}

static size_t take_many(size_t nr)
{
	struct insn_trace trace = fake_run(MAIN, 64);
	struct trace_values_stats stats;
	size_t waiting;

	for (size_t i = 0; i < nr; i++)
		take_values(&trace);
	trace_values_stats_get(traces, &stats, &waiting);
	return waiting;
}

/*
 * Traces wait for who is busy, and are known as not sent where there is no room: drawn, so that
 * the second half of them is half of those that stay (5 standard deviations of a coin).
 */
static void values_wait(void **state)
{
	size_t nr;

	(void)state;
	stand_ins.send_result = -EAGAIN;
	assert_int_equal(take_many(4096), 4096);
	take_many(8000);
	stand_ins.later_than = core.time_ns;
	nr = take_many(12096);
	assert_in_range(nr, 1500, 4096);
	answer(NULL, 0);
	assert_int_equal(values_stats(nr).not_sent, 2 * 12096 - nr);
	stand_ins.send_result = -DCPI_EFORMAT;
	answer(NULL, 0);
	assert_int_equal(values_stats(0).not_sent, 2 * 12096);
	assert_in_range(2 * stand_ins.nr_later, nr - 5 * 64, nr + 5 * 64);
}

/* Who has caught up gets all again. */
static void values_wait_again(void **state)
{
	(void)state;
	stand_ins.send_result = -EAGAIN;
	take_many(4097);
	stand_ins.send_result = -DCPI_EFORMAT;
	answer(NULL, 0);
	stand_ins.send_result = -EAGAIN;
	assert_int_equal(take_many(100), 100);
}

/* Without registers and reads there is nothing to send. */
static void values_of_none(void **state)
{
	struct insn_trace trace = fake_run(MAIN, 64);

	(void)state;
	fake_take(&trace);
	assert_int_equal(values_stats(0).not_sent, 0);
}

/* What @path has is @vtot values at @off, all of them called from CALL in "/bin/a". */
static void assert_called(const char *path, uint64_t off, uint64_t vtot)
{
	const struct profdb_values *v = fake_image(path)->values->values;
	struct base_id id;

	assert_int_equal(profdb_values_nr(v), 1);
	assert_int_equal(profdb_values_at(v, 0)->off, off);
	assert_int_equal(profdb_values_at(v, 0)->vtot, vtot);
	assert_int_equal(profdb_values_at(v, 0)->context[0].off, A(CALL));
	assert_string_equal(profdb_values_image(v, profdb_values_at(v, 0)->context[0].image, &id),
			    "/bin/a");
}

static void run_another(void)
{
	trial_event(&core, DRIVER_LOAD_EXEC, PID, 0);
	trial_mmap(&core, PID, MAIN, 0x1000, 0x9000, "/bin/next", 7);
}

/* Where the context is: also a mapping that stood there then, and to the end of that life. */
static void values_of_a_caller(void **state)
{
	const struct values_tuple tuple = { .pc = LIB, .c0 = CALL, .value = 7 };
	struct insn_trace trace = fake_run(LIB, 1);

	(void)state;
	take_values(&trace);
	answer(&tuple, 1);
	take_values(&trace);
	run_another();
	answer(&tuple, 1);
	assert_called("/lib/b", B(LIB), 2);
}

/* A mapping that came later is not the caller's. */
static void values_of_nobody_knows_whom(void **state)
{
	const struct values_tuple tuple = { .pc = LIB, .c0 = CALL, .value = 7 };
	struct insn_trace trace = fake_run(LIB, 1);
	const struct profdb_values *v;

	(void)state;
	take_values(&trace);
	trial_mmap(&core, PID, MAIN, 0x1000, 0x9000, "/bin/next", 7);
	trial_event(&core, DRIVER_LOAD_EXIT, PID, 0);
	answer(&tuple, 1);
	v = fake_image("/lib/b")->values->values;
	assert_int_equal(profdb_values_at(v, 0)->context[0].image, 0);
}

static struct image *made_code(const char *name, const char *stem)
{
	trial_mmap(&core, PID, LIB, 0x1000, 0, "//anon", 0);
	stand_ins.where = DYN_FOUND;
	stand_ins.dyn_off = 0x40;
	stand_ins.dyn_image = images_get(core.store.images, PROFDB_DYNAMIC, NULL, name, stem);
	return stand_ins.dyn_image;
}

/* They waited for its registry to be read when its life was over. */
static void values_of_the_dead(void **state)
{
	const struct values_tuple tuple = { .pc = LIB, .c0 = CALL, .value = 7 };
	struct insn_trace trace = fake_run(LIB, 1);

	(void)state;
	made_code("jit", "jit.dyn");
	take_values(&trace);
	run_another();
	counts_resolve(&core.counts, 0);
	answer(&tuple, 1);
	assert_called("jit", 0x40, 1);
}

/* Their image became part of another one before they came. */
static void values_of_a_merged_image(void **state)
{
	const struct values_tuple tuple = { .pc = LIB, .c0 = CALL, .value = 7 };
	const struct {
		struct wire_replaces head;
		struct wire_moved moved;
	} map = { .head.nr_moved = 1, .moved = { 0, 0x2000, 0x1000 } };
	struct insn_trace trace = fake_run(LIB, 1);
	struct image *from = made_code("jit", "jit.dyn");
	struct image *to = images_get(core.store.images, PROFDB_DYNAMIC, NULL, "all", "all.dyn");

	(void)state;
	take_values(&trace);
	counts_resolve(&core.counts, 0);
	trace_moved(traces, from, &map.head, to);
	answer(&tuple, 1);
	assert_null(from->values);
	assert_called("all", 0x2040, 1);
}

/* Asked in a life, it is good for all of it; asked after it, the values are nobody's. */
static void whose_values(void **state)
{
	const struct values_tuple tuple = { .pc = LIB, .value = 7 };
	const struct wire_replaces map = { .head.len = sizeof(map) };
	struct insn_trace trace = fake_run(LIB, 1);
	const struct image_values *i;

	(void)state;
	trace.tgid = (uint32_t)getpid();
	trial_mmap(&core, getpid(), LIB, 0x1000, 0, "/lib/mine", 5);
	take_values(&trace);
	answer(&tuple, 1);
	i = fake_image("/lib/mine")->values;
	assert_int_equal(i->nr_owners, 1);
	assert_int_equal(i->owners[0]->uid, getuid());
	assert_false(i->owners[0]->certain);
	fake_end(getpid(), base_now_ns());
	assert_true(i->owners[0]->certain);
	take_values(&trace);
	answer(&tuple, 1);
	assert_int_equal(i->uid, getuid());
	assert_int_equal(i->nr_owners, 1);
	fake_end(getpid(), 1);
	assert_int_equal(i->owners[0]->uid, IMAGE_VALUES_NOBODY);
	/* One that runs another program by the time its registry is read. */
	trial_mmap(&core, getpid(), LIB, 0x1000, 0, "//anon", 0);
	stand_ins.where = DYN_FOUND;
	stand_ins.dyn_image = images_get(core.store.images, PROFDB_DYNAMIC, NULL, "jit", "jit.dyn");
	take_values(&trace);
	core.time_ns = base_now_ns();
	trial_event(&core, DRIVER_LOAD_EXEC, getpid(), 0);
	counts_resolve(&core.counts, 0);
	answer(&tuple, 1);
	i = fake_image("jit")->values;
	assert_true(i->owned);
	assert_int_equal(i->uid, getuid());
	stand_ins.where = DYN_NONE;
	core.time_ns = 2000;
	/* A process that is gone. */
	trace.tgid = 4000000;
	trial_mmap(&core, 4000000, LIB, 0x1000, 0, "/lib/gone", 6);
	take_values(&trace);
	answer(&tuple, 1);
	i = fake_image("/lib/gone")->values;
	assert_true(i->owned);
	assert_int_equal(i->uid, IMAGE_VALUES_NOBODY);
	/* They stay whose they are where their image is folded into another. */
	assert_int_equal(image_values_move(fake_image("/lib/gone"), &map, fake_image("/lib/b")), 0);
	i = fake_image("/lib/b")->values;
	assert_true(i->owned);
	assert_int_equal(i->uid, IMAGE_VALUES_NOBODY);
}

/* Whose value of @pid is, of a life that goes on. */
static const struct values_owner *owner_of(int32_t pid)
{
	const struct values_tuple tuple = { .pc = LIB, .value = 7 };
	struct insn_trace trace = fake_run(LIB, 1);
	const struct image_values *i;

	trace.tgid = (uint32_t)pid;
	trial_mmap(&core, pid, LIB, 0x1000, 0, "/lib/mine", 5);
	take_values(&trace);
	answer(&tuple, 1);
	i = fake_image("/lib/mine")->values;
	assert_int_equal(i->nr_owners, 1);
	assert_int_equal(i->owners[0]->uid, getuid());
	assert_false(i->owners[0]->certain);
	return i->owners[0];
}

static void assert_nobodys(const struct values_owner *o)
{
	assert_true(o->certain);
	assert_int_equal(o->uid, IMAGE_VALUES_NOBODY);
}

/* /proc was read since: of the program before that nobody is asked again. */
static void whose_before_a_late_exec(void **state)
{
	const struct values_owner *o;

	(void)state;
	core.time_ns = 2 * base_now_ns();
	o = owner_of(getpid());
	processes_find(core.follow.processes, getpid())->known_ns = core.time_ns + 10;
	trial_event(&core, DRIVER_LOAD_EXEC, getpid(), 0);
	assert_true(o->certain);
	assert_int_equal(o->uid, getuid());
	/* That one had begun when it was asked. */
	core.time_ns = 1000;
	o = owner_of(getpid());
	trial_event(&core, DRIVER_LOAD_EXEC, getpid(), 0);
	assert_nobodys(o);
}

/* Its pid is another process's, and when that came to be so nobody told. */
static void whose_before_a_lost_exit(void **state)
{
	const struct values_owner *o = owner_of(getpid());

	(void)state;
	trial_event(&core, DRIVER_LOAD_FORK, getpid(), 0);
	assert_nobodys(o);
	o = owner_of(getpid());
	processes_find(core.follow.processes, getpid())->known_ns = core.time_ns + 10;
	trial_event(&core, DRIVER_LOAD_FORK, getpid(), 0);
	assert_nobodys(o);
	core.time_ns += 10;
	/* As /proc tells. */
	o = owner_of(getpid());
	processes_find(core.follow.processes, getpid())->start_time_ns = 1;
	follow_scan_known(&core.follow);
	counts_scanned(&core.counts);
	assert_nobodys(o);
	o = owner_of(getpid());
	processes_find(core.follow.processes, getpid())->start_time_ns = 1;
	assert_true(follow_scan_all(&core.follow) > 0);
	counts_scanned(&core.counts);
	assert_nobodys(o);
}

static void whose_of_the_swept(void **state)
{
	const struct values_owner *o;
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		alarm(20);
		pause();
		_exit(0);
	}
	o = owner_of(child);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	follow_sweep(&core.follow);
	counts_scanned(&core.counts);
	follow_sweep(&core.follow);
	counts_scanned(&core.counts);
	assert_nobodys(o);
}

/* Who was asked for a process of which nothing was known is not asked for in its next life. */
static void whose_of_the_unknown(void **state)
{
	struct insn_trace trace = fake_run(LIB, 1);
	uint64_t ended_ns;

	(void)state;
	trace.tgid = (uint32_t)getpid();
	core.follow.events_lost = true;
	take_values(&trace);
	counts_resolve(&core.counts, 0);
	assert_null(processes_find(core.follow.processes, getpid()));
	core.follow.events_lost = false;
	ended_ns = base_now_ns();
	assert_true(owner_of(getpid())->asked_ns >= ended_ns);
}

/* The events that were lost may have told of its end; what is asked until /proc was read again
 * tells of nobody before that. */
static void whose_after_lost_events(void **state)
{
	const struct driver_load lost = { .kind = DRIVER_LOAD_LOST, .len = 7 };
	struct insn_trace trace = fake_run(LIB, 1);
	const struct values_owner *o = owner_of(getpid());
	uint64_t resynced_ns;

	(void)state;
	core.follow.live = core.attribute.live = true;
	assert_int_equal(counts_load(&core.counts, &lost), 0);
	assert_nobodys(o);
	trace.tgid = (uint32_t)getpid();
	take_values(&trace);
	counts_resynchronised(&core.counts, 0);
	resynced_ns = base_now_ns();
	counts_resolve(&core.counts, 0);
	core.time_ns = 2 * base_now_ns();
	o = owner_of(getpid());
	assert_true(o->asked_ns >= resynced_ns);
	assert_int_equal(counts_load(&core.counts, &lost), 0);
	assert_true(o->certain);
	assert_int_equal(o->uid, getuid());
}

#define VALUES(test) cmocka_unit_test_setup_teardown(test, setup_values, fake_traces_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		VALUES(values_come_back),
		VALUES(values_of_a_refused_image),
		VALUES(values_wait),
		VALUES(values_wait_again),
		VALUES(values_of_none),
		VALUES(values_of_a_caller),
		VALUES(values_of_nobody_knows_whom),
		VALUES(values_of_the_dead),
		VALUES(values_of_a_merged_image),
		VALUES(whose_values),
		VALUES(whose_before_a_late_exec),
		VALUES(whose_of_the_swept),
		VALUES(whose_before_a_lost_exit),
		VALUES(whose_of_the_unknown),
		VALUES(whose_after_lost_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
