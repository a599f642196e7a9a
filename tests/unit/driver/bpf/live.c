/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts made by the real program, where this machine and user may load it. */
#include <fcntl.h>
#include <linux/bpf.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "live.h"

/* ---- tests ----------------------------------------------------------------------------------- */

static void child_is_seen_in_order(void **state)
{
	struct seen s = { 0 };
	struct driver_stats st;
	struct pollfd p = { .events = POLLIN };
	uint64_t ms;
	bool due;

	(void)state;
	start(&(struct driver_config){ .slots = clock_event, .nr_slots = 1, .drain_ms = 60000 });
	assert_string_equal(driver_event_get(d, 0)->name, "cpu-clock");
	assert_memory_equal(driver_describe(d), "bpf: ", 5);
	assert_false(driver_is_recorded(d));
	s.pid = start_spinner();
	ms = wait_for(s.pid);
	/*
	 * Not due, unless some other program made code just now, or it took seconds, in which
	 * others filled a log: nothing but the rings is read.
	 */
	p.fd = driver_poll_fd(d);
	due = poll(&p, 1, 0) != 0 || driver_look(d) == DRIVER_URGENT;
	drain(&s, false);
	assert_true(due || s.step + s.counts == 0);
	drain(&s, true);
	assert_int_equal(s.step, 4);
	stop(&s);
	st = check_law(&s);
	assert_int_equal(st.held, 0);
	/* 0.3 s at 1000 Hz, and while the machine stood still none. Of so young a process each may
	 * come by itself. */
	assert_in_range(s.user, 100, ms + ms / 5 + 20);
	assert_int_equal(lost(&st), 0);
	assert_true(s.kernel > 0);
}

/* ---- names of threads ------------------------------------------------------------------------ */

struct named {
	const char *texts[3];
	uint64_t user[3], kernel[3], other, no_life;
};

static int count_named(void *ctx, const struct driver_count *c)
{
	struct named *n = ctx;
	const char *name = driver_thread_name(d, c->thread);

	if (c->pid != getpid())
		return 0;
	n->no_life += c->instance ? 0 : c->count;
	for (size_t i = 0; i < 3; i++) {
		if (strcmp(name, n->texts[i]) != 0)
			continue;
		*(c->mode == DRIVER_USER ? &n->user[i] : &n->kernel[i]) += c->count;
		return 0;
	}
	n->other += c->count;
	return 0;
}

static int ignore_load(void *ctx, const struct driver_load *l)
{
	(void)ctx;
	(void)l;
	return 0;
}

static void drain_named(struct named *n)
{
	const struct driver_sink sink = { .load = ignore_load, .count = count_named, .ctx = n };
	struct base_err err = { 0 };

	assert_true(driver_drain(d, true, &sink, &err) >= 0);
}

/* A thread has its name from the next sample on, in the kernel too; forgotten names come again. */
static void threads_are_told_by_name(void **state)
{
	struct named n = { .texts = { "first", "15 bytes, ABCDE", "12345678" } };
	char before[16];

	(void)state;
	prctl(PR_GET_NAME, before);
	prctl(PR_SET_NAME, n.texts[0]);
	start(&fast);
	for (size_t i = 0; i < 3; i++) {
		prctl(PR_SET_NAME, n.texts[i]);
		for (int turn = 0; turn < 100 && (n.user[i] < 50 || n.kernel[i] < 20); turn++) {
			spin_calling(20);
			drain_named(&n);
		}
		driver_threads_forget(d);
		assert_true(n.user[i] >= 50 && n.kernel[i] >= 20);
	}
	driver_stop(d);
	drain_named(&n);
	prctl(PR_SET_NAME, before);
	assert_int_equal(n.other, 0);
	assert_int_equal(n.no_life, 0);
	assert_string_equal(driver_thread_name(d, 0), "");
}

static double cpu_ms(pid_t pid)
{
	struct timespec ts = { 0 };
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	assert_int_equal(clock_gettime(clock, &ts), 0);
	return (double)ts.tv_sec * 1000 + (double)ts.tv_nsec / 1e6;
}

/*
 * One that is counted at the same address all the time, while tables are exchanged too: what it had
 * by a drain is not handed on by the last one only, but for what it got between the two.
 */
static void busy_address_is_not_held(void **state)
{
	struct seen s = { 0 };
	double ms = 0, before = 0;
	int status;

	(void)state;
	start(&(struct driver_config){ .slots = clock_event, .nr_slots = 1 });
	s.pid = fork_child();
	if (!s.pid)
		for (;;)
			__asm__ volatile("");
	assert_true(s.pid > 0);
	for (int i = 0; i < 2000 && (i < 10 || s.user < 300); i++) {
		usleep(50000);
		ms = cpu_ms(s.pid);
		drain(&s, true);
		before = (double)s.user;
	}
	kill(s.pid, SIGSTOP);
	assert_int_equal(waitpid(s.pid, &status, WUNTRACED), s.pid);
	ms = cpu_ms(s.pid) - ms;
	kill(s.pid, SIGKILL);
	waitpid(s.pid, &status, 0);
	stop(&s);
	assert_true(before >= 300);
	assert_true((double)s.user - before < before * 0.3 + ms * 1.1 + 10);
}

/* Nobody may wait for the clock to hear of a registry. */
static void registry_is_told_at_once(void **state)
{
	struct seen s = { .pid = getpid() };
	int fd = memfd_create("dbgdyn", MFD_CLOEXEC);
	void *page;

	(void)state;
	start(&(struct driver_config){ .slots = clock_event, .nr_slots = 1, .drain_ms = 60000 });
	assert_int_equal(ftruncate(fd, BLOCK), 0);
	page = mmap(NULL, BLOCK, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	assert_true(page != MAP_FAILED);
	drain(&s, false);
	assert_true(s.registry);
	munmap(page, BLOCK);
	close(fd);
	stop(&s);
}

static bool is_readable(int timeout_ms)
{
	struct pollfd p = { .fd = driver_poll_fd(d), .events = POLLIN };

	return poll(&p, 1, timeout_ms) > 0;
}

static void run_true(void)
{
	pid_t pid = fork_child();

	if (!pid) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	wait_for(pid);
}

/* A drain is not due for ten minutes. But other programs on this machine may make code, begin, or
 * fill a ring: one undisturbed try of many is enough. */
enum { UNDISTURBED_TRIES = 300 };

static void who_rests_is_woken_by_a_program(void **state)
{
	struct seen s = { 0 };
	bool quiet = false, woken = true;

	(void)state;
	start(&(struct driver_config){ .slots = clock_event, .nr_slots = 1, .drain_ms = 600000 });
	for (int i = 0; i < UNDISTURBED_TRIES && woken; i++) {
		drain(&s, false);
		run_true();
		woken = is_readable(0);
	}
	assert_false(woken);
	assert_int_not_equal(driver_look(d), DRIVER_QUIET);
	for (int i = 0; i < 1000 && !quiet; i++)
		quiet = driver_look(d) == DRIVER_QUIET;
	assert_true(quiet);
	assert_int_equal(driver_wake_at_exec(d), 0);
	run_true();
	assert_true(is_readable(60000));
	assert_int_not_equal(driver_look(d), DRIVER_QUIET);
	/* Once; and that is no reason to exchange tables. */
	s.counts = 0;
	for (int i = 0; i < UNDISTURBED_TRIES && (i == 0 || woken || s.counts); i++) {
		s.counts = 0;
		assert_int_equal(driver_wake_at_exec(d), 0);
		run_true();
		drain(&s, false);
		run_true();
		woken = is_readable(0);
	}
	assert_false(woken);
	assert_int_equal(s.counts, 0);
	stop(&s);
}

/* A table for sixteen keys: what finds no room is lost by name, to the sample. */
static void tiny_tables_are_accounted_for(void **state)
{
	const struct driver_config config = {
		.slots = clock_event,
		.nr_slots = 1,
		.frequency = 20000,
		.table_len = 16,
		.drain_ms = 60000,
	};
	struct seen s = { .pid = getpid() };
	struct driver_stats st;
	struct pollfd p = { .events = POLLIN };

	(void)state;
	start(&config);
	p.fd = driver_poll_fd(d);
	/* On a busy machine it is others' samples that find room. */
	for (int i = 0; i < 8 || (i < 500 && !s.user); i++) {
		/* A log is full long before the interval is over: it asks for a drain. */
		spin_calling(20);
		assert_int_equal(poll(&p, 1, 60000), 1);
		drain(&s, i % 3 == 0);
	}
	spin_calling(20);
	stop(&s);
	st = check_law(&s);
	assert_int_equal(st.held, 0);
	assert_true(st.lost_table + st.lost_late > 0);
	assert_true(s.user > 0);
	assert_true(st.received[0] + st.missed[0] >= 2000);
}

static void full_tables_without_drains_are_late(void **state)
{
	const struct driver_config config = {
		.slots = clock_event,
		.nr_slots = 1,
		.frequency = 5000,
		.table_len = 4,
		.drain_ms = 60000,
	};
	struct seen s = { 0 };
	struct driver_stats st;

	(void)state;
	start(&config);
	for (int i = 0; i < 25; i++) {
		spin(10);
		assert_true(getppid() > 0);
	}
	stop(&s);
	st = check_law(&s);
	assert_true(st.lost_late > 0);
}

/* ---- overload -------------------------------------------------------------------------------- */

/* Calls bpf() until it is killed; the kernel takes no samples of its CPU meanwhile. */
static pid_t start_bpf_loop(void)
{
	union bpf_attr map = {
		.map_type = BPF_MAP_TYPE_HASH, .key_size = 4, .value_size = 8, .max_entries = 16
	};
	uint32_t key = 1;
	uint64_t value = 1;
	pid_t pid = fork_child();

	if (pid)
		return pid;
	long fd = syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof(map));
	union bpf_attr update = { .map_fd = (uint32_t)fd,
				  .key = (uintptr_t)&key,
				  .value = (uintptr_t)&value };

	while (syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &update, sizeof(update)) == 0)
		;
	_exit(1);
}

static void overload_is_named(void **state)
{
	const struct driver_config config = {
		.slots = clock_event,
		.nr_slots = 1,
		.frequency = 50000,
		.table_len = 16,
		.ring_pages = 1,
		.drain_ms = 50,
	};
	struct seen s = { .pid = getpid() };
	struct driver_stats st;
	pid_t loop;
	int status;

	(void)state;
	start(&config);
	loop = start_bpf_loop();
	assert_true(loop > 0);
	for (int i = 0; i < 10; i++) {
		pid_t child = fork_child();

		if (!child)
			_exit(0);
		assert_int_equal(waitpid(child, &status, 0), child);
		spin(20);
		drain(&s, false);
	}
	/* It has not failed by itself. */
	assert_int_equal(waitpid(loop, &status, WNOHANG), 0);
	kill(loop, SIGKILL);
	assert_int_equal(waitpid(loop, &status, 0), loop);
	stop(&s);
	st = check_law(&s);
	assert_int_equal(st.held, 0);
	assert_true(st.lost_table + st.lost_late > 0);
	assert_true(st.missed[0] > 0);
	assert_true(s.counts > 0);
}

/* ---- what the kernel may refuse -------------------------------------------------------------- */

/* The rights to wait for programs are lost, and come back: counts are handed on all the time. */
static void kernel_that_does_not_wait_is_told(void **state)
{
	struct seen s = { .pid = getpid() };
	int gate, none = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct bpf *b;

	(void)state;
	assert_true(none >= 0);
	start(&fast);
	b = (struct bpf *)d;
	gate = b->tables.gate_fd;
	for (int i = 0; i < 3; i++) {
		b->tables.gate_fd = i == 1 ? none : gate;
		spin_until(&s, &s.user, s.user + 1);
		assert_int_equal(strstr(driver_describe(d), "does not wait") != NULL, i == 1);
	}
	b->tables.gate_fd = none;
	stop(&s);
	assert_int_equal(check_law(&s).held, 0);
	b->tables.gate_fd = gate;
	close(none);
}

/* As those of a CPU that came later. What was due is either received or missed. */
static void samples_without_a_table_are_lost_by_name(void **state)
{
	struct seen s = { .pid = getpid() };
	struct driver_stats st;
	struct bpf *b;
	uint64_t began_ns = base_now_ns(), due;

	(void)state;
	start(&fast);
	b = (struct bpf *)d;
	__atomic_store_n(&b->tables.shared->set, 2 * (uint32_t)b->tables.nr_cpus, __ATOMIC_SEQ_CST);
	spin(100);
	__atomic_store_n(&b->tables.shared->set, 0, __ATOMIC_SEQ_CST);
	driver_stop(d);
	due = (base_now_ns() - began_ns) / (1000000000 / fast.frequency) * b->sampler.nr_cpus;
	stop(&s);
	st = check_law(&s);
	assert_int_equal(st.held, 0);
	assert_true(st.lost_table >= 100);
	/*
	 * Whoever counts a sample twice has nearly twice what was due. The clock of no CPU ran for
	 * longer than from before the start to after the stop; a period may be 4 % shorter.
	 */
	assert_in_range(st.received[0] + st.missed[0], st.lost_table, due + due / 3);
}

/* ---- the tick -------------------------------------------------------------------------------- */

static const char *const tick_event[] = { "tick" };

/* Else the test is skipped. */
static void need_tick(void)
{
	const struct driver_config config = { .source = "bpf", .slots = tick_event, .nr_slots = 1 };
	struct base_err err = { 0 };
	int r = driver_open(&config, &d, &err);

	driver_close(d);
	d = NULL;
	if (r != -DCPI_EUNSUPPORTED)
		return;
	print_message("%s\n", err.text);
	skip();
}

static void spin_in_kernel(int ms)
{
	struct work w = { 0 };

	while (work_ms(&w) < ms)
		close(dup(0));
}

/* False: it was found less often than in a third of its time. */
static bool ticks_find_us(void)
{
	struct seen s = { .pid = getpid() };
	struct driver_stats st;
	uint64_t period, ms;

	start(&(struct driver_config){ .slots = tick_event, .nr_slots = 1 });
	period = driver_event_get(d, 0)->period;
	assert_in_range(period, 1000000, 10000000);
	ms = (uint64_t)cpu_ms(s.pid);
	spin(300);
	spin_in_kernel(200);
	ms = (uint64_t)cpu_ms(s.pid) - ms;
	stop(&s);
	st = check_law(&s);
	assert_in_range(s.user, 1, (ms + ms / 5) * 1000000 / period + 10);
	assert_int_equal(st.missed[0], 0);
	close_driver(NULL);
	return s.user >= 300000000 / period / 3 && s.kernel > s.idle;
}

/* Where other programs take turns with this one, ticks may find them more often for a while. */
static void tick_gives_samples_of_both_modes(void **state)
{
	bool found = false;

	(void)state;
	need_tick();
	for (int i = 0; i < 10 && !found; i++)
		found = ticks_find_us();
	assert_true(found);
}

/* Whichever comes first brings what they share. */
static void tick_and_clock_stand_together(void **state)
{
	static const char *const both[][1] = { { "tick+cpu-clock" }, { "cpu-clock+tick" } };

	(void)state;
	need_tick();
	for (size_t i = 0; i < 2; i++) {
		struct seen s = { .pid = getpid() };

		start(&(struct driver_config){
			.slots = both[i], .nr_slots = 1, .frequency = 2000 });
		assert_int_equal(driver_nr_events(d), 2);
		spin(200);
		stop(&s);
		assert_true(s.event[i] > 10);
		assert_true(s.event[1 - i] > 100);
		driver_close(d);
		d = NULL;
	}
}

/* Of 300 ms, those that are handed on; *@most: as many as there can be. */
static uint64_t ticks_of_a_small_log(uint64_t *period, uint64_t *most)
{
	struct seen s = { .pid = getpid() };

	start(&(struct driver_config){ .slots = tick_event, .nr_slots = 1, .table_len = 64 });
	*period = driver_event_get(d, 0)->period;
	spin(300);
	stop(&s);
	*most = check_law(&s).received[0];
	close_driver(NULL);
	return s.user;
}

/*
 * The log takes a few ticks here, with one more it would be half full: the others are hashed. One
 * loop, so few addresses: all of them fit, unless other programs have filled the table.
 */
static void ticks_of_a_small_log_are_hashed(void **state)
{
	uint64_t nr = 0, period = 1, most = 0;

	(void)state;
	need_tick();
	for (int i = 0; i < 20 && nr < 300000000 / period / 3; i++)
		nr = ticks_of_a_small_log(&period, &most);
	assert_in_range(nr, 300000000 / period / 3, most);
}

/* The set that is counted in first. */
static uint64_t most_received(const struct bpf_tables *t)
{
	uint64_t most = 0;

	for (size_t i = 0; i < t->nr_cpus; i++) {
		const volatile union count_bucket *table = bpf_tables_at(t, i, 0);

		if (table->head.received[0] > most)
			most = table->head.received[0];
	}
	return most;
}

/*
 * They fill the log until half of it is nearly full; others are hashed, too few to push any out,
 * unless the machine stands still while they come: then false.
 */
static bool ticks_alone(void)
{
	struct seen s = { .pid = getpid() };
	const struct bpf_tables *t;
	uint64_t most = 0;
	uint32_t half;
	bool announced = false;

	start(&(struct driver_config){
		.slots = tick_event, .nr_slots = 1, .table_len = 256, .drain_ms = 600000 });
	t = &((struct bpf *)d)->tables;
	half = t->shape.nr_log / 2;
	for (int i = 0; i < 1000 && most < half + 4; i++) {
		spin(10);
		most = most_received(t);
	}
	assert_true(most >= half + 4);
	for (size_t i = 0; i < t->nr_cpus; i++) {
		announced |= bpf_tables_at(t, i, 0)->head.announced_ns != 0;
		assert_true(bpf_tables_at(t, i, 0)->head.nr_log < half);
	}
	most = most_received(t);
	stop(&s);
	close_driver(NULL);
	assert_true(!announced || most > half + 16);
	return most <= half + 16;
}

static void ticks_alone_ask_for_no_drain(void **state)
{
	bool seen = false;

	(void)state;
	need_tick();
	for (int i = 0; i < 50 && !seen; i++)
		seen = ticks_alone();
	assert_true(seen);
}

/* ---------------------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(child_is_seen_in_order),
		LIVE_TEST(threads_are_told_by_name),
		LIVE_TEST(busy_address_is_not_held),
		LIVE_TEST(registry_is_told_at_once),
		LIVE_TEST(who_rests_is_woken_by_a_program),
		LIVE_TEST(tiny_tables_are_accounted_for),
		LIVE_TEST(full_tables_without_drains_are_late),
		LIVE_TEST(overload_is_named),
		LIVE_TEST(kernel_that_does_not_wait_is_told),
		LIVE_TEST(samples_without_a_table_are_lost_by_name),
		LIVE_TEST(tick_gives_samples_of_both_modes),
		LIVE_TEST(tick_and_clock_stand_together),
		LIVE_TEST(ticks_of_a_small_log_are_hashed),
		LIVE_TEST(ticks_alone_ask_for_no_drain),
	};
	int r = live_begin(argc, argv);

	return r >= 0 ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
