/* SPDX-License-Identifier: BSD-2-Clause */
/* Traces over code known by hand: where they belong, what moves they become, what became of each.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake_traces.h"
#include "follow_internal.h"

/* ---- moves ----------------------------------------------------------------------------------- */

/* Calls into the library and back are one move in the program, and two in the library. */
static void two_images(void **state)
{
	struct insn_trace trace = fake_run(MAIN, 64);

	(void)state;
	fake_traces_map();
	assert_int_equal(trace.end, VTRACE_SYSTEM);
	fake_take(&trace);
	assert_int_equal(fake_stored(), 1);
	assert_int_equal(fake_moved("/bin/a", A(MAIN), OUTSIDE, A(MAIN)), 1);
	assert_int_equal(fake_moved("/bin/a", A(MAIN), A(CALL), A(AFTER)), 3);
	assert_int_equal(fake_moved("/bin/a", A(MAIN), A(JNZ), A(CALL)), 2);
	/* Not taken, and nothing ran behind it. */
	assert_int_equal(fake_moved("/bin/a", A(MAIN), A(JNZ), A(END)), 1);
	assert_int_equal(fake_nr_moves("/bin/a"), 7);
	assert_int_equal(fake_moved("/lib/b", OUTSIDE, OUTSIDE, B(LIB)), 1);
	assert_int_equal(fake_moved("/lib/b", OUTSIDE, B(RET), B(LIB)), 2);
	assert_int_equal(fake_moved("/lib/b", OUTSIDE, B(RET), OUTSIDE), 1);
	assert_int_equal(fake_nr_moves("/lib/b"), 4);
}

/* The last instruction is no transfer: where it stood is told. */
static void ends_within_a_block(void **state)
{
	struct insn_trace trace = fake_run(MAIN, 2);

	(void)state;
	fake_traces_map();
	fake_take(&trace);
	assert_int_equal(fake_moved("/bin/a", A(MAIN), OUTSIDE, A(MAIN)), 1);
	assert_int_equal(fake_moved("/bin/a", A(MAIN), A(MAIN + 2), OUTSIDE), 1);
	assert_int_equal(fake_nr_moves("/bin/a"), 2);
}

/* It is one, and led elsewhere: to the same image that is told, to another it is not. */
static void ends_with_a_transfer(void **state)
{
	struct insn_trace trace;

	(void)state;
	fake_traces_map();
	trace = fake_run(MAIN, 3);
	assert_int_equal(trace.end, VTRACE_FULL);
	assert_int_equal(trace.end_pc, LIB);
	fake_take(&trace);
	assert_int_equal(fake_moved("/bin/a", A(MAIN), A(CALL), OUTSIDE), 1);
	assert_int_equal(fake_nr_moves("/bin/a"), 2);
	trace = fake_run(AFTER, 2);
	fake_take(&trace);
	assert_int_equal(fake_moved("/bin/a", A(AFTER), OUTSIDE, A(AFTER)), 1);
	assert_int_equal(fake_moved("/bin/a", A(AFTER), A(JNZ), A(CALL)), 1);
	assert_int_equal(fake_nr_moves("/bin/a"), 4);
}

/* Nothing could be run: it began there all the same. */
static void without_an_instruction(void **state)
{
	struct insn_trace trace = fake_run(END, 64);

	(void)state;
	fake_traces_map();
	assert_int_equal(trace.nr_insns, 0);
	fake_take(&trace);
	assert_int_equal(fake_stored(), 1);
	assert_int_equal(fake_moved("/bin/a", A(END), OUTSIDE, A(END)), 1);
	assert_int_equal(fake_nr_moves("/bin/a"), 1);
	/* Nor was there a block. */
	trace.nr_words = 0;
	fake_take(&trace);
	assert_int_equal(fake_moved("/bin/a", A(END), OUTSIDE, A(END)), 2);
}

/* Traces of even and of odd number are kept apart. */
static void halves(void **state)
{
	struct insn_trace trace = fake_run(MAIN, 2);
	const struct profdb_edge *m;

	(void)state;
	fake_traces_map();
	for (int i = 0; i < 5; i++)
		fake_take(&trace);
	m = profdb_profile_edge(fake_image("/bin/a")->counts, 0);
	assert_int_equal(m->count[0], 3);
	assert_int_equal(m->count[1], 2);
	assert_true(fake_image("/bin/a")->dirty);
}

/* A block that was cut for its length goes on as if it had not been. */
static void long_blocks(void **state)
{
	struct insn_trace trace;

	(void)state;
	fake_traces_map();
	memset(driver.code, 0x90, 256);
	trace = fake_run(MAIN, 60);
	assert_true(trace.nr_words > 1);
	fake_take(&trace);
	assert_int_equal(fake_moved("/bin/a", A(MAIN), OUTSIDE, A(MAIN)), 1);
	assert_int_equal(fake_moved("/bin/a", A(MAIN), A(MAIN + 59), OUTSIDE), 1);
	assert_int_equal(fake_nr_moves("/bin/a"), 2);
}

/* ---- where they belong ----------------------------------------------------------------------- */

/* Only what lies in a mapping is somewhere; where that is nothing, the trace is lost. */
static void partly_unknown(void **state)
{
	struct insn_trace trace = fake_run(MAIN, 64);

	(void)state;
	trial_mmap(&core, PID, MAIN, 0x1000, 0x1000, "/bin/a", 1);
	fake_take(&trace);
	assert_int_equal(fake_stored(), 1);
	assert_int_equal(fake_moved("/bin/a", A(MAIN), A(CALL), A(AFTER)), 3);
	trace = fake_run(LIB, 1);
	fake_take(&trace);
	assert_int_equal(fake_lost(TRACE_LOST_UNKNOWN), 1);
}

static void of_nobody(void **state)
{
	struct insn_trace trace = fake_run(MAIN, 64);

	(void)state;
	trace.tgid = 4711;
	fake_take(&trace);
	assert_int_equal(fake_lost(TRACE_LOST_PROCESS), 1);
}

/* By the mappings at its time: what came later is not it. */
static void in_the_order_of_time(void **state)
{
	struct insn_trace trace = fake_run(MAIN, 2);

	(void)state;
	trial_mmap(&core, PID, MAIN, 0x1000, 0x1000, "/bin/old", 3);
	fake_take(&trace);
	trial_mmap(&core, PID, MAIN, 0x1000, 0x1000, "/bin/a", 1);
	fake_take(&trace);
	assert_int_equal(fake_nr_moves("/bin/old"), 2);
	assert_int_equal(fake_nr_moves("/bin/a"), 2);
}

/* Of a file that a runtime writes. */
static void waits_for_news(void **state)
{
	struct insn_trace trace = fake_run(MAIN, 1);
	unsigned int nr_lookups;

	(void)state;
	core.follow.live = core.attribute.live = true;
	trial_mmap(&core, PID, MAIN, 0x1000, 0, "//anon", 0);
	processes_find(core.follow.processes, PID)->dyn = (struct dyn_client *)&driver;
	stand_ins.where = DYN_LATER;
	stand_ins.news = 5;
	fake_take(&trace);
	counts_resolve(&core.counts, 0);
	nr_lookups = stand_ins.nr_lookups;
	assert_int_not_equal(nr_lookups, 0);
	stand_ins.waited_ns = 0;
	counts_resolve(&core.counts, 0);
	assert_int_equal(stand_ins.nr_lookups, nr_lookups);
	assert_int_equal(stand_ins.waited_ns, core.time_ns);
	stand_ins.news++;
	counts_resolve(&core.counts, 0);
	assert_in_range(stand_ins.nr_lookups, nr_lookups + 1, 2 * nr_lookups);
	stand_ins.dyn_image = images_get(core.store.images, PROFDB_DYNAMIC, NULL, "jit", "jit.dyn");
	stand_ins.where = DYN_FOUND;
	counts_resolve(&core.counts, 0);
	assert_int_equal(fake_stored(), 0);
	core.attribute.flushing = true;
	counts_resolve(&core.counts, 0);
	core.attribute.flushing = core.follow.live = core.attribute.live = false;
	processes_find(core.follow.processes, PID)->dyn = NULL;
	assert_int_equal(fake_stored(), 1);
}

static void dynamic_code(void **state)
{
	struct insn_trace trace = fake_run(MAIN, 64);
	struct trace_stats stats;
	struct image *img;

	(void)state;
	trial_mmap(&core, PID, MAIN, 0x2000, 0, "//anon", 0);
	img = images_get(core.store.images, PROFDB_DYNAMIC, NULL, "jit", "jit.dyn");
	processes_find(core.follow.processes, PID)->dyn = (struct dyn_client *)&driver;
	stand_ins.registered = true;
	stand_ins.where = DYN_LATER;
	stand_ins.dyn_image = img;
	fake_take(&trace);
	trace_stats_get(traces, false, &stats);
	assert_int_equal(stats.pending, 1);
	counts_resolve(&core.counts, 0);
	assert_int_equal(fake_stored(), 0);
	/* Now the registry tells. */
	stand_ins.where = DYN_FOUND;
	stand_ins.dyn_off = 0x40;
	stand_ins.registered = false;
	trace = fake_run(MAIN, 1);
	vtrace_tag(&machine, 7);
	trace.nr_words = (uint16_t)machine.nr_words;
	fake_take(&trace);
	counts_resolve(&core.counts, 0);
	assert_int_equal(stand_ins.query.generation, 7);
	assert_true(stand_ins.query.generation_read);
	assert_int_equal(fake_stored() + fake_lost(TRACE_LOST_REUSED), 2);
	assert_int_equal(fake_moved("jit", 0x40, OUTSIDE, 0x40), 1);
	assert_int_equal(fake_moved("jit", 0x40, 0x40, OUTSIDE), 1);
}

/* Five seconds at 6,000 samples a second, between two readings of the registry. */
static void many_wait(void **state)
{
	enum { MANY = 30000 };
	struct insn_trace trace = fake_run(MAIN, 1);
	struct trace_stats stats;

	(void)state;
	trial_mmap(&core, PID, MAIN, 0x2000, 0, "//anon", 0);
	processes_find(core.follow.processes, PID)->dyn = (struct dyn_client *)&driver;
	stand_ins.registered = true;
	stand_ins.where = DYN_LATER;
	for (size_t i = 0; i < MANY; i++)
		fake_take(&trace);
	trace_stats_get(traces, false, &stats);
	assert_int_equal(stats.pending, MANY);
	assert_int_equal(fake_lost(TRACE_LOST_MEMORY), 0);
	stand_ins.where = DYN_FOUND;
	stand_ins.dyn_image = images_get(core.store.images, PROFDB_DYNAMIC, NULL, "jit", "jit.dyn");
	stand_ins.registered = false;
	counts_resolve(&core.counts, 0);
	assert_int_equal(fake_stored(), MANY);
}

/* Its mappings are gone when the registries are read; what they were is not. */
static void dynamic_code_of_the_dead(void **state)
{
	struct insn_trace trace = fake_run(MAIN, 1);

	(void)state;
	trial_mmap(&core, PID, MAIN, 0x2000, 0, "//anon", 0);
	core.follow.live = core.attribute.live = true;
	stand_ins.where = DYN_FOUND;
	stand_ins.dyn_image = images_get(core.store.images, PROFDB_DYNAMIC, NULL, "jit", "jit.dyn");
	fake_take(&trace);
	assert_int_equal(fake_stored(), 0);
	trial_event(&core, DRIVER_LOAD_EXIT, PID, 0);
	counts_resolve(&core.counts, 0);
	assert_int_equal(fake_stored(), 1);
	assert_true(stand_ins.query.last);
	assert_true(stand_ins.query.dynamic);
	assert_int_equal(stand_ins.query.map_start, MAIN);
}

/* What was stored in it alone is not any more; what another image has a part of is. */
static void refused_image(void **state)
{
	struct insn_trace trace = fake_run(MAIN, 1);
	struct image *img = images_get(core.store.images, PROFDB_DYNAMIC, NULL, "jit", "jit.dyn");

	(void)state;
	trial_mmap(&core, PID, MAIN, 0x2000, 0, "//anon", 0);
	trial_mmap(&core, PID, LIB, 0x1000, 0x5000, "/lib/b", 2);
	processes_find(core.follow.processes, PID)->dyn = (struct dyn_client *)&driver;
	stand_ins.where = DYN_FOUND;
	stand_ins.dyn_image = img;
	stand_ins.dyn_off = 0x40;
	for (int i = 0; i < 3; i++)
		fake_take(&trace);
	trace = fake_run(MAIN, 64);
	fake_take(&trace);
	counts_resolve(&core.counts, 0);
	assert_int_equal(fake_stored(), 4);
	assert_int_equal(img->traces, 3);
	trace_given_up(traces, img);
	assert_int_equal(fake_stored(), 1);
	assert_int_equal(fake_lost(TRACE_LOST_REFUSED), 3);
	/* Once. */
	trace_given_up(traces, img);
	assert_int_equal(fake_stored(), 1);
}

static void dynamic_losses(void **state)
{
	static const struct {
		enum dyn_where where;
		enum trace_loss loss;
	} cases[] = { { DYN_NONE, TRACE_LOST_UNKNOWN },
		      { DYN_REUSED, TRACE_LOST_REUSED },
		      { DYN_GENERATION, TRACE_LOST_GENERATION },
		      { DYN_NO_CAPACITY, TRACE_LOST_QUOTA } };
	struct insn_trace trace = fake_run(MAIN, 2);

	(void)state;
	trial_mmap(&core, PID, MAIN, 0x2000, 0, "//anon", 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		stand_ins.where = cases[i].where;
		fake_take(&trace);
		counts_resolve(&core.counts, 0);
		assert_int_equal(fake_lost(cases[i].loss), 1);
	}
	assert_int_equal(fake_stored(), 0);
}

/* What a program claims of a file's mapping may still be the file's. */
static void claimed_code(void **state)
{
	struct insn_trace trace = fake_run(MAIN, 2);

	(void)state;
	fake_traces_map();
	stand_ins.claimed = true;
	stand_ins.where = DYN_NONE;
	fake_take(&trace);
	assert_int_equal(fake_stored(), 0);
	counts_resolve(&core.counts, 0);
	assert_int_equal(fake_stored(), 1);
	assert_int_equal(stand_ins.query.mapped_ns, 0);
	assert_int_equal(fake_moved("/bin/a", A(MAIN), A(MAIN + 2), OUTSIDE), 1);
}

/* Who was told of before a file came into its place is asked for by that time. */
static void mapped_over(void **state)
{
	struct insn_trace trace = fake_run(MAIN, 2);

	(void)state;
	trial_mmap(&core, PID, MAIN, 0x1000, 0, "//anon", 0);
	fake_traces_map();
	stand_ins.claimed = true;
	stand_ins.where = DYN_NONE;
	fake_take(&trace);
	counts_resolve(&core.counts, 0);
	assert_int_equal(stand_ins.query.mapped_ns,
			 map_find(processes_find(core.follow.processes, PID), MAIN)->since_ns);
	assert_true(stand_ins.query.mapped_ns > 0);
}

static void kernel_code(void **state)
{
	struct insn_trace trace = fake_run(MAIN, 2);
	const struct base_id id = trial_id(9);

	(void)state;
	stand_ins.kernel_image =
		images_get(core.store.images, PROFDB_KERNEL, &id, "vmlinux", "vmlinux");
	stand_ins.kernel_start = MAIN;
	stand_ins.kernel_end = LIB;
	trace.has = INSN_TRACE_KERNEL;
	trace.tgid = 0;
	fake_take(&trace);
	assert_int_equal(fake_moved("vmlinux", 0, 2, OUTSIDE), 1);
	trace = fake_run(LIB, 1);
	trace.has = INSN_TRACE_KERNEL;
	fake_take(&trace);
	assert_int_equal(fake_lost(TRACE_LOST_UNKNOWN), 1);
}

static void excluded(void **state)
{
	struct insn_trace trace = fake_run(MAIN, 2);

	(void)state;
	fake_traces_map();
	fake_image("/bin/a")->excluded = true;
	fake_take(&trace);
	assert_int_equal(fake_lost(TRACE_LOST_EXCLUDED), 1);
}

static void malformed(void **state)
{
	struct insn_trace good = fake_run(MAIN, 64), bad = good;
	uint64_t word = machine.words[0];

	(void)state;
	fake_traces_map();
	machine.words[0] = VTRACE_WORD(4711) | 3;
	fake_take(&bad);
	machine.words[0] = word + 1;
	fake_take(&bad);
	machine.words[0] = word + 200;
	fake_take(&bad);
	machine.words[0] = word;
	/* Where its block cannot stand. */
	machine.words[1]++;
	bad.pc++;
	fake_take(&bad);
	machine.words[1]--;
	bad = good;
	bad.nr_insns++;
	fake_take(&bad);
	bad = good;
	bad.pc++;
	fake_take(&bad);
	bad = good;
	bad.nr_words = VTRACE_NR_WORDS + 1;
	fake_take(&bad);
	bad.nr_words = 0;
	fake_take(&bad);
	assert_int_equal(fake_lost(TRACE_LOST_BAD), 8);
	fake_take(&good);
	assert_int_equal(fake_stored(), 1);
}

/* /proc told of its mappings after it; events up to then come first, and then its end. */
static void of_a_listed_process(void **state)
{
	struct insn_trace trace = fake_run(MAIN, 64);
	struct process *p;

	(void)state;
	fake_traces_map();
	p = processes_find(core.follow.processes, PID);
	for (size_t i = 0; i < p->nr_maps; i++)
		p->maps[i].listed = true;
	p->known_ns = core.time_ns + 10;
	fake_take(&trace);
	assert_int_equal(fake_stored(), 0);
	core.time_ns = p->known_ns;
	trial_event(&core, DRIVER_LOAD_EXIT, PID, 0);
	counts_resolve(&core.counts, 0);
	assert_int_equal(fake_stored(), 1);
	assert_int_equal(fake_moved("/bin/a", A(MAIN), A(CALL), A(AFTER)), 3);
}

static void lose_events(uint64_t nr)
{
	const struct driver_load l = { .kind = DRIVER_LOAD_LOST, .len = nr };

	core.follow.live = core.attribute.live = true;
	assert_int_equal(counts_load(&core.counts, &l), 0);
}

/* As /proc has it. */
static void list(struct process *p, uint64_t addr, uint64_t file_off, const char *path, uint8_t id)
{
	const struct driver_load l = { .kind = DRIVER_LOAD_MMAP,
				       .pid = PID,
				       .addr = addr,
				       .len = 0x1000,
				       .file_off = file_off,
				       .id = trial_id(id),
				       .path = path };

	follow_mmap(&core.follow, p, &l, FOLLOW_LISTED);
}

/*
 * One of the events that were lost may have told of another file there: traces since wait until
 * /proc was read, as counts do, and are where that finds the same one.
 */
static void after_lost_events(void **state)
{
	struct insn_trace trace;
	struct trace_stats stats;
	struct process *p;

	(void)state;
	fake_traces_map();
	lose_events(7);
	trace = fake_run(LIB, 1);
	fake_take(&trace);
	trace = fake_run(MAIN, 2);
	fake_take(&trace);
	counts_resolve(&core.counts, 0);
	trace_stats_get(traces, false, &stats);
	assert_int_equal(stats.pending, 2);
	assert_int_equal(fake_stored(), 0);
	/* The library was replaced. */
	p = processes_find(core.follow.processes, PID);
	p->known_ns = core.time_ns + 10;
	list(p, MAIN, 0x1000, "/bin/a", 1);
	list(p, LIB, 0x5000, "/lib/c", 4);
	core.follow.events_lost = false;
	counts_resolve(&core.counts, p->known_ns);
	assert_int_equal(fake_stored(), 1);
	assert_int_equal(fake_lost(TRACE_LOST_AMBIGUOUS), 1);
	assert_int_equal(fake_nr_moves("/bin/a"), 2);
}

/* What was lost of it, nobody can tell any more: it has what events told. */
static void lost_before_the_end(void **state)
{
	struct insn_trace trace = fake_run(MAIN, 64);

	(void)state;
	fake_traces_map();
	lose_events(7);
	fake_take(&trace);
	assert_int_equal(fake_stored(), 0);
	trial_event(&core, DRIVER_LOAD_EXIT, PID, 0);
	counts_resolve(&core.counts, 0);
	assert_int_equal(fake_stored(), 1);
	assert_int_equal(fake_moved("/bin/a", A(MAIN), A(CALL), A(AFTER)), 3);
}

/* It waits for whom nobody knows no longer than that one is kept: what is remembered of it is of
 * another process after that. */
static void of_nobody_after_lost_events(void **state)
{
	struct insn_trace trace = fake_run(MAIN, 64);

	(void)state;
	fake_traces_map();
	lose_events(7);
	trace.tgid = 4000000;
	fake_take(&trace);
	counts_resolve(&core.counts, 0);
	trial_event(&core, DRIVER_LOAD_FORK, PID + 1, PID);
	core.follow.events_lost = false;
	counts_resolve(&core.counts, core.time_ns + 10);
	counts_resolve(&core.counts, 0);
	assert_int_equal(fake_stored(), 0);
	assert_int_equal(fake_lost(TRACE_LOST_PROCESS), 1);
}

/* What the driver lost, or holds, is in the account. */
static void the_drivers_part(void **state)
{
	struct trace_stats stats;

	(void)state;
	driver.stats = (struct driver_trace_stats){
		.received = 10, .held = 1, .lost_ring = 2, .lost_busy = 3, .lost_read = 4
	};
	trace_stats_get(traces, false, &stats);
	assert_int_equal(stats.received, 10);
	assert_int_equal(stats.pending, 1);
	assert_int_equal(trace_lost(&stats), 9);
}

#define PLAIN(test) cmocka_unit_test_setup_teardown(test, fake_traces_setup, fake_traces_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLAIN(two_images),
		PLAIN(ends_within_a_block),
		PLAIN(ends_with_a_transfer),
		PLAIN(without_an_instruction),
		PLAIN(halves),
		PLAIN(long_blocks),
		PLAIN(partly_unknown),
		PLAIN(of_nobody),
		PLAIN(in_the_order_of_time),
		PLAIN(waits_for_news),
		PLAIN(dynamic_code),
		PLAIN(many_wait),
		PLAIN(dynamic_code_of_the_dead),
		PLAIN(refused_image),
		PLAIN(dynamic_losses),
		PLAIN(claimed_code),
		PLAIN(mapped_over),
		PLAIN(kernel_code),
		PLAIN(excluded),
		PLAIN(malformed),
		PLAIN(of_a_listed_process),
		PLAIN(after_lost_events),
		PLAIN(lost_before_the_end),
		PLAIN(of_nobody_after_lost_events),
		PLAIN(the_drivers_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
