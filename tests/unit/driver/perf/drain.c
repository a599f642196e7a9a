/* SPDX-License-Identifier: BSD-2-Clause */
/* The source "perf" over a ring of hand-made records: what losses do, and what is told of them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "perf_bytes.h"
#include "perf_internal.h"

enum { RING = 4096, PROCESS = 10, THREAD = 11 };

static uint8_t ring_data[RING];
static struct perf_event_mmap_page page;
static struct perf *p;
static int exits; /* handed on, of PROCESS */
static int losses_told, exits_before_loss;
static int nr_counts;	    /* samples handed on */
static struct isample told; /* what the last one has of its instruction */

static int on_load(void *ctx, const struct driver_load *load)
{
	(void)ctx;
	exits += load->kind == DRIVER_LOAD_EXIT && load->pid == PROCESS;
	if (load->kind == DRIVER_LOAD_LOST) {
		losses_told++;
		exits_before_loss = exits;
	}
	return 0;
}

static int on_count(void *ctx, const struct driver_count *count)
{
	(void)ctx;
	nr_counts++;
	told = count->insn ? *count->insn : (struct isample){ 0 };
	return 0;
}

static void drain(void)
{
	const struct driver_sink sink = { .load = on_load, .count = on_count };

	assert_int_equal(perf_ops.drain(&p->base, true, &sink, NULL), 0);
}

static void append(const struct bytes *b)
{
	uint64_t head = page.data_head;

	for (size_t i = 0; i < b->len; i++)
		ring_data[head++ % RING] = b->data[i];
	__atomic_store_n(&page.data_head, head, __ATOMIC_RELEASE);
}

static uint64_t tail(void)
{
	return __atomic_load_n(&page.data_tail, __ATOMIC_ACQUIRE);
}

static void task(uint32_t type, uint32_t ppid, uint32_t tid)
{
	static uint64_t time_ns;
	struct bytes b;

	make_task(&b, type, PROCESS, ppid, tid, ++time_ns);
	append(&b);
}

/* A ring without events behind it, as a process's that sleeps: the tests set the counters. */
static int open_source(void **state)
{
	struct perf_sampler *s;
	struct perf_cpu *c;

	(void)state;
	exits = losses_told = exits_before_loss = 0;
	page = (struct perf_event_mmap_page){ 0 };
	p = calloc(1, sizeof(*p));
	assert_non_null(p);
	s = &p->sampler;
	s->d = &p->base;
	s->pid = 1;
	s->why = "";
	s->programs[0] = -1;
	s->epoll_fd = epoll_create1(0);
	s->timer_fd = -1;
	s->cpus = c = calloc(1, sizeof(*s->cpus));
	s->events = calloc(1, sizeof(*s->events));
	assert_true(c && s->events);
	s->nr_cpus = p->base.nr_events = 1;
	perf_cpu_init(c, 0, s->events, 1);
	s->events[0].id = EVENT_ID;
	c->map = &page;
	c->ring = (struct perf_ring){ .data = ring_data, .len = RING };
	return perf_order_init(&s->order, 2);
}

static int close_source(void **state)
{
	(void)state;
	p->sampler.cpus[0].map = NULL;
	perf_ops.close(&p->base);
	return 0;
}

static void start_two_threads(void)
{
	task(PERF_RECORD_FORK, 1, PROCESS);
	task(PERF_RECORD_FORK, PROCESS, THREAD);
}

static void the_last_of_two_threads_ends_the_process(void **state)
{
	(void)state;
	start_two_threads();
	drain();
	task(PERF_RECORD_EXIT, 1, PROCESS);
	drain();
	assert_int_equal(exits, 0);
	task(PERF_RECORD_EXIT, 1, THREAD);
	drain();
	assert_int_equal(exits, 1);
}

/* The thread's exit is lost; the main thread's comes in the drain that hears of the loss. */
static void a_loss_is_heeded_in_its_drain(void **state)
{
	(void)state;
	start_two_threads();
	drain();
	p->sampler.cpus[0].track.now.lost++;
	task(PERF_RECORD_EXIT, 1, PROCESS);
	drain();
	assert_int_equal(exits, 1);
}

/* Once, before all else of the drain that hears of it; of samples nothing is said. */
static void a_loss_is_told_first(void **state)
{
	(void)state;
	p->sampler.features = PERF_USE_ALL;
	task(PERF_RECORD_FORK, 1, PROCESS);
	drain();
	p->sampler.cpus[0].events[0].count.now.lost++;
	drain();
	assert_int_equal(losses_told, 0);
	p->sampler.cpus[0].track.now.lost++;
	task(PERF_RECORD_EXIT, 1, PROCESS);
	drain();
	drain();
	assert_int_equal(losses_told, 1);
	assert_int_equal(exits_before_loss, 0);
	assert_int_equal(exits, 1);
}

/* The same, said by the ring itself; here the thread's fork is lost. */
static void a_thread_does_not_end_the_process(void **state)
{
	struct bytes lost;

	(void)state;
	task(PERF_RECORD_FORK, 1, PROCESS);
	drain();
	make_numbers(&lost, PERF_RECORD_LOST, 1, 1, 2, 1);
	append(&lost);
	task(PERF_RECORD_EXIT, 1, THREAD);
	drain();
	assert_int_equal(exits, 0);
	task(PERF_RECORD_EXIT, 1, PROCESS);
	drain();
	assert_int_equal(exits, 1);
}

static void counts_of_that_drain_are_not_kept(void **state)
{
	(void)state;
	start_two_threads();
	p->sampler.cpus[0].track.now.lost++;
	drain();
	task(PERF_RECORD_EXIT, 1, PROCESS);
	drain();
	assert_int_equal(exits, 1);
}

/* What the kernel refuses while we run stops nothing; it is told of until some time after. */
static void a_refusal_is_told_for_a_while(void **state)
{
	struct perf_sampler *s = &p->sampler;

	(void)state;
	s->pid = -1;
	s->features = PERF_USE_ALL;
	snprintf(s->specs[0].name, sizeof(s->specs[0].name), "cpu-clock");
	s->frequency = 1000;
	s->specs[0].slots = s->turn.nr_slots = 1;
	s->cpus[0].cpu = 3;
	perf_sampler_trouble(s, &s->cpus[0], -ENODEV);
	perf_sampler_trouble(s, &s->cpus[0], 0);
	perf_sampler_describe(s);
	assert_string_equal(p->base.describe, "perf: cpu-clock at 1000 Hz on 0 CPUs");
	perf_sampler_trouble(s, &s->cpus[0], -EACCES);
	assert_string_equal(
		p->base.describe,
		"perf: cpu-clock at 1000 Hz on 0 CPUs; CPU 3 refused: Permission denied");
	perf_sampler_look_for_cpus(s, base_now_ns());
	assert_non_null(strstr(p->base.describe, "refused"));
	perf_sampler_look_for_cpus(s, base_now_ns() + 4000000000u);
	assert_null(strstr(p->base.describe, "refused"));
}

/* ---- instruction samples --------------------------------------------------------------------- */

enum { CAPS = 0x1bf, EXACT = PERF_RECORD_MISC_USER | PERF_RECORD_MISC_EXACT_IP };

/* A record of IBS: a taken branch, 300 cycles from its tag to its retirement; @nr registers of it.
 */
static void ibs_sample(uint16_t misc, size_t nr, uint32_t len)
{
	const uint64_t regs[] = {
		3 << 17, 0x401000, UINT64_C(1) << 37 | UINT64_C(1) << 35 | 300 << 16, 0, 0, 0, 0
	};
	static uint64_t time_ns;
	struct bytes b;

	make_sample(&b, misc, PROCESS, 0x401000, ++time_ns);
	put(&b, len, 4);
	put(&b, CAPS, 4);
	for (size_t i = 0; i < nr; i++)
		put(&b, regs[i], 8);
	put_size(&b);
	append(&b);
	drain();
}

static void open_ibs(void)
{
	nr_counts = 0;
	p->sampler.specs[0].hardware = EVENT_HW_IBS_OP;
	p->sampler.specs[0].config = 1 << 19; /* operations are counted */
}

static void a_sample_has_what_the_hardware_told(void **state)
{
	const uint64_t set = ISAMPLE_BIT(ISAMPLE_RETIRED) | ISAMPLE_BIT(ISAMPLE_TAKEN) |
			     ISAMPLE_BIT(ISAMPLE_BRANCH) | ISAMPLE_BIT(ISAMPLE_BYCOUNT);

	(void)state;
	open_ibs();
	ibs_sample(EXACT, 7, 60);
	assert_int_equal(nr_counts, 1);
	assert_int_equal(told.bits & set, set);
	assert_false(told.bits & ISAMPLE_BIT(ISAMPLE_MISPREDICT));
	assert_true(told.known & ISAMPLE_BIT(ISAMPLE_MISPREDICT));
	assert_int_equal(told.counter[ISAMPLE_INFLIGHT], 300);
	ibs_sample(PERF_RECORD_MISC_USER, 7, 60);
	assert_int_equal(told.bits, ISAMPLE_BIT(ISAMPLE_INEXACT));
}

/* Each is a sample all the same: cut, or with a length that lies. */
static void a_bad_raw_record_is_told_of_as_such(void **state)
{
	(void)state;
	open_ibs();
	ibs_sample(EXACT, 3, 28);
	assert_int_equal(told.bits, ISAMPLE_BIT(ISAMPLE_UNREADABLE));
	ibs_sample(EXACT, 7, UINT32_MAX);
	assert_int_equal(told.bits, ISAMPLE_BIT(ISAMPLE_UNREADABLE));
	ibs_sample(EXACT, 7, 0);
	assert_int_equal(told.bits, ISAMPLE_BIT(ISAMPLE_UNREADABLE));
	assert_int_equal(nr_counts, 3);
	assert_int_equal(p->base.stats.received[0], 3);
}

/* Of an event that does not tell, nothing is looked at behind the sample. */
static void other_events_tell_nothing(void **state)
{
	(void)state;
	open_ibs();
	p->sampler.specs[0].hardware = EVENT_HW_OTHER;
	ibs_sample(EXACT, 7, 60);
	assert_int_equal(nr_counts, 1);
	assert_int_equal(told.known, 0);
}

/* The source ends while one waits: its copy goes with it. */
static void a_sample_that_waits_is_released(void **state)
{
	const struct isample insn = { .known = 1, .bits = 1 };
	const struct driver_count count = { .time_ns = UINT64_MAX, .count = 1, .insn = &insn };

	(void)state;
	assert_int_equal(perf_sampler_add(&p->sampler, &count), 0);
}

/* ---- what is told of losses ------------------------------------------------------------------ */

static void expect_stats(uint64_t received, uint64_t lost_ring, uint64_t lost_load,
			 uint64_t lost_bad)
{
	const struct driver_stats *st = &p->base.stats;

	assert_int_equal(st->received[0], received);
	assert_int_equal(st->lost_ring, lost_ring);
	assert_int_equal(st->lost_load, lost_load);
	assert_int_equal(st->lost_bad, lost_bad);
}

static void say_lost(uint64_t nr)
{
	struct bytes lost;

	make_numbers(&lost, PERF_RECORD_LOST, EVENT_ID, nr, 2, 1);
	append(&lost);
}

/* Before Linux 6.0: what a ring of both loses may be the one or the other. */
static void a_loss_said_by_the_ring_may_be_a_load_event(void **state)
{
	(void)state;
	say_lost(3);
	drain();
	expect_stats(3, 3, 3, 0);
	p->sampler.in_kernel = true;
	p->sampler.programs[0] = 0;
	p->base.stats = (struct driver_stats){ 0 };
	say_lost(2);
	drain();
	expect_stats(0, 0, 5, 0);
}

/* From then on the kernel counts by event, and what the ring says is the same once more. */
static void a_loss_counted_by_the_kernel_is_told_once(void **state)
{
	(void)state;
	p->sampler.features = PERF_USE_LOST;
	p->sampler.events[0].count.now.lost = 2;
	p->sampler.cpus[0].track.now.lost = 1;
	say_lost(3);
	drain();
	expect_stats(2, 2, 1, 0);
}

static void append_nonsense(void)
{
	struct bytes b;

	put_head(&b, PERF_RECORD_SAMPLE, 0);
	append(&b); /* a size of 0 */
}

/* Nobody knows what stood there: one of each, but where rings hold no samples. */
static void a_rest_that_makes_no_sense_is_lost(void **state)
{
	(void)state;
	append_nonsense();
	drain();
	expect_stats(1, 0, 1, 1);
}

static void a_ring_without_samples_loses_none(void **state)
{
	struct bytes b;

	(void)state;
	p->sampler.in_kernel = true;
	p->sampler.programs[0] = 0;
	append_nonsense();
	drain();
	expect_stats(0, 0, 1, 0);
	make_sample(&b, 0, 1, 2, 3);
	b.len = 16; /* too short for its type */
	put_size(&b);
	append(&b);
	drain();
	expect_stats(0, 0, 2, 0);
}

/* ---- what is told of events ------------------------------------------------------------------ */

/* Records that a flush leaves in the rings have come: their periods are not missed. */
static void a_flush_while_it_runs_invents_no_misses(void **state)
{
	struct perf_sampler *s = &p->sampler;
	struct perf_count *c = &s->events[0].count;
	struct bytes b;

	(void)state;
	s->pid = -1;
	s->looked_ns = base_now_ns();
	s->specs[0].clock = c->is_time = true;
	s->running = true;
	c->period = s->periods[0] = 1000;
	c->now.running_ns = c->now.value = 3000;
	for (int i = 0; i < 3; i++) {
		make_sample(&b, PERF_RECORD_MISC_USER, 1, 2, base_now_ns() + 60000000000u);
		append(&b);
	}
	drain();
	assert_int_equal(p->base.stats.received[0] + p->base.stats.missed[0], 0);
	s->running = false;
	c->now.running_ns = c->now.value = 4000;
	drain();
	assert_int_equal(p->base.stats.received[0], 3);
	assert_int_equal(p->base.stats.missed[0], 1);
}

/* Samples that nobody knows the CPU of came all the same: the CPUs miss so many less, never again.
 */
static void what_came_somewhere_is_not_missed(void **state)
{
	struct perf_sampler *s = &p->sampler;
	struct perf_count *c = &s->events[0].count;

	(void)state;
	s->pid = -1;
	s->in_kernel = true;
	s->programs[0] = 0;
	s->specs[0].clock = c->is_time = true;
	c->period = s->periods[0] = 1000;
	c->now.running_ns = c->now.value = 10000;
	perf_sampler_received(s, 0, 0, 4);
	perf_sampler_received(s, PERF_CPU_UNKNOWN, 0, 5);
	perf_sampler_account(s, true);
	assert_int_equal(p->base.stats.missed[0], 1);
	perf_sampler_received(s, PERF_CPU_UNKNOWN, 0, 1);
	perf_sampler_account(s, true);
	assert_int_equal(p->base.stats.missed[0], 1);
}

/* A clock that stops in some mode, or with its process, does not tell what it missed; nor does a
 * counter that may not count exactly. */
static void a_clock_that_stops_misses_nothing(void **state)
{
	static const struct event_spec specs[] = {
		{ .clock = true },
		{ .clock = true, .exclude_user = true },
		{ .clock = true, .exclude_kernel = true },
		{ .type = PERF_TYPE_HARDWARE, .precise = 1 },
		{ .type = PERF_TYPE_SOFTWARE },
		{ .type = PERF_TYPE_MAX },
	};
	struct perf_sampler *s = &p->sampler;
	struct perf_count *c = &s->events[0].count;

	(void)state;
	s->in_kernel = true;
	s->programs[0] = 0;
	c->period = s->periods[0] = 1000;
	c->now.running_ns = c->now.value = 10000;
	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
		s->pid = i == 0 ? 1 : -1;
		s->specs[0] = specs[i];
		perf_sampler_account(s, true);
		assert_int_equal(p->base.stats.missed[0], 0);
	}
}

/* A PMU that loses interrupts counts all the same, in one mode too. */
static void a_counter_tells_what_its_interrupts_missed(void **state)
{
	struct perf_sampler *s = &p->sampler;
	struct perf_count *c = &s->events[0].count;

	(void)state;
	s->pid = -1;
	s->in_kernel = true;
	s->specs[0] = (struct event_spec){ .type = PERF_TYPE_HARDWARE, .exclude_kernel = true };
	c->period = s->periods[0] = 1000;
	c->now.value = 10000;
	c->now.running_ns = 77;
	perf_sampler_received(s, 0, 0, 4);
	perf_sampler_account(s, true);
	assert_int_equal(p->base.stats.missed[0], 6);
}

/* Of bpf, whose samples are told only when its tables are read, the counters at every drain. */
static void a_period_is_of_readings_of_one_moment(void **state)
{
	struct perf_sampler *s = &p->sampler;

	(void)state;
	s->in_kernel = true;
	s->programs[0] = 0;
	s->events[0].count.now.value = 1000;
	perf_sampler_received(s, 0, 0, 10);
	perf_sampler_account(s, true);
	assert_int_equal(p->base.events[0].period, 100);
	s->events[0].count.now.value = 5000;
	perf_sampler_account(s, false);
	assert_int_equal(p->base.events[0].period, 100);
	perf_sampler_received(s, 0, 0, 40);
	perf_sampler_account(s, true);
	assert_int_equal(p->base.events[0].period, 100);
}

/* A reading of the tracking event, a second after the one before. */
static bool is_gone_after(int to, uint64_t enabled_ns)
{
	const uint64_t reading[] = { 0, enabled_ns, enabled_ns };
	struct perf_cpu *c = &p->sampler.cpus[0];

	assert_int_equal(write(to, reading, sizeof(reading)), sizeof(reading));
	c->alive_ns = base_now_ns() - 1000000000;
	perf_sampler_read_counters(&p->sampler);
	return c->gone;
}

/* The kernel's clock of an idle CPU lags behind at times, that of a dead event stands. */
static void a_clock_that_lags_is_not_dead(void **state)
{
	struct perf_sampler *s = &p->sampler;
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	s->cpus[0].track_fd = ends[0];
	s->running = true;
	s->pid = -1;
	assert_false(is_gone_after(ends[1], 1000000000));
	assert_false(is_gone_after(ends[1], 1900000000));
	assert_false(is_gone_after(ends[1], 3000000000));
	assert_true(is_gone_after(ends[1], 3000000000));
	close(ends[1]);
}

#define IN_SOURCE(test) cmocka_unit_test_setup_teardown(test, open_source, close_source)

/* More than the ring holds, while nobody drains it: a thread does. */
static void a_busy_reader_loses_nothing(void **state)
{
	enum { NR = 4 * RING / 40 };
	struct perf_sampler *s = &p->sampler;

	(void)state;
	perf_sampler_busy(s, true);
	for (int i = 0; i < NR; i++) {
		for (int ms = 0; page.data_head - tail() > RING - 128; ms++) {
			assert_in_range(ms, 0, 10000);
			usleep(1000);
		}
		task(PERF_RECORD_FORK, 1, PROCESS);
	}
	perf_sampler_busy(s, false);
	drain();
	assert_int_equal(s->nr_loads, NR);
	assert_int_equal(s->load_bad, 0);
	assert_int_equal(tail(), page.data_head);
	/* It is woken no more. */
	task(PERF_RECORD_EXIT, 1, PROCESS);
	drain();
	assert_int_equal(s->nr_loads, NR + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_SOURCE(the_last_of_two_threads_ends_the_process),
		IN_SOURCE(a_loss_is_heeded_in_its_drain),
		IN_SOURCE(a_loss_is_told_first),
		IN_SOURCE(a_thread_does_not_end_the_process),
		IN_SOURCE(counts_of_that_drain_are_not_kept),
		IN_SOURCE(a_refusal_is_told_for_a_while),
		IN_SOURCE(a_sample_has_what_the_hardware_told),
		IN_SOURCE(a_bad_raw_record_is_told_of_as_such),
		IN_SOURCE(other_events_tell_nothing),
		IN_SOURCE(a_sample_that_waits_is_released),
		IN_SOURCE(a_loss_said_by_the_ring_may_be_a_load_event),
		IN_SOURCE(a_loss_counted_by_the_kernel_is_told_once),
		IN_SOURCE(a_rest_that_makes_no_sense_is_lost),
		IN_SOURCE(a_ring_without_samples_loses_none),
		IN_SOURCE(a_flush_while_it_runs_invents_no_misses),
		IN_SOURCE(what_came_somewhere_is_not_missed),
		IN_SOURCE(a_clock_that_stops_misses_nothing),
		IN_SOURCE(a_counter_tells_what_its_interrupts_missed),
		IN_SOURCE(a_period_is_of_readings_of_one_moment),
		IN_SOURCE(a_busy_reader_loses_nothing),
		IN_SOURCE(a_clock_that_lags_is_not_dead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
