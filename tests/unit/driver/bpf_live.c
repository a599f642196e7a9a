/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts made by the real program, where this machine and user may load it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf_internal.h"

/* ---- work ------------------------------------------------------------------------------------ */

enum { BLOCK = 4096 };

/* Code in blocks of its own, so that a range can hold it and nothing else. */
__attribute__((noinline, aligned(BLOCK), section(".text.spin"))) static unsigned int
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
static void spin(int ms)
{
	clock_t end = clock() + CLOCKS_PER_SEC / 1000 * ms;

	while (clock() < end)
		spin_some(100000);
}

/* The same, and as many different places in the kernel as can be had. */
static void spin_calling(int ms)
{
	clock_t end = clock() + CLOCKS_PER_SEC / 1000 * ms;

	while (clock() < end) {
		spin_some(10000);
		close(dup(0));
	}
}

/* A test that is killed leaves nobody behind who works without end. */
static pid_t fork_child(void)
{
	pid_t pid = fork();

	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static pid_t start_spinner(void)
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

/* ---- what is seen ---------------------------------------------------------------------------- */

struct window {
	uint64_t begin_ns, end_ns;
	uint64_t counts, bad; /* samples; those that were not in it */
};

struct seen {
	int32_t pid; /* whose life and user samples are looked at */
	int step;    /* 1 fork, 2 exec, 3 mapping, 4 exit: each only behind the one before */
	uint64_t counts, user, largest, unread, last_ns, disorder;
	uint64_t kernel, idle, bad; /* of everybody; keys that cannot be */
	uint64_t singles;	    /* of pid, in the range */
	uint64_t lo, hi;	    /* the range */
	struct window windows[8];   /* by generation, of pid in the range */
	uint64_t event[DRIVER_NR_EVENTS];
	bool registry; /* pid mapped one */
};

static struct driver *d;

static void see_time(struct seen *s, uint64_t time_ns)
{
	s->disorder += time_ns < s->last_ns;
	s->last_ns = time_ns;
}

static int on_load(void *ctx, const struct driver_load *l)
{
	struct seen *s = ctx;

	see_time(s, l->time_ns);
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

static void see_own(struct seen *s, const struct driver_count *c)
{
	struct window *w;

	s->user += c->count;
	if (c->count > s->largest)
		s->largest = c->count;
	if (c->addr < s->lo || c->addr >= s->hi)
		return;
	s->singles += c->count == 1 && c->first_ns == c->time_ns;
	s->unread += c->generation_unread ? c->count : 0;
	if (c->generation_unread || c->generation >= 8)
		return;
	w = &s->windows[c->generation];
	w->counts += c->count;
	if (c->first_ns < w->begin_ns || c->time_ns > w->end_ns)
		w->bad += c->count;
}

static int on_count(void *ctx, const struct driver_count *c)
{
	struct seen *s = ctx;

	see_time(s, c->time_ns);
	s->counts += c->count;
	s->event[c->event] += c->count;
	s->kernel += c->mode == DRIVER_KERNEL ? c->count : 0;
	s->idle += c->mode == DRIVER_KERNEL && c->pid == 0 ? c->count : 0;
	s->bad += !c->count || c->first_ns > c->time_ns || c->mode == DRIVER_OTHER ||
		  (c->mode == DRIVER_USER ? c->pid <= 0 : c->pid > 0);
	if (c->mode == DRIVER_USER && c->pid == s->pid)
		see_own(s, c);
	return 0;
}

static uint64_t lost(const struct driver_stats *st)
{
	return st->lost_ring + st->lost_table + st->lost_late + st->lost_nested + st->lost_read +
	       st->lost_bad;
}

static struct driver_stats check_law(const struct seen *s)
{
	struct driver_stats st;
	uint64_t received = 0;

	driver_stats_get(d, &st);
	for (size_t i = 0; i < DRIVER_NR_EVENTS; i++)
		received += st.received[i];
	assert_int_equal(received, s->counts + st.held + lost(&st));
	assert_int_equal(st.lost_read + st.lost_bad + st.lost_ring, 0);
	assert_int_equal(s->disorder, 0);
	assert_int_equal(s->bad, 0);
	return st;
}

static void drain(struct seen *s, bool all)
{
	const struct driver_sink sink = { on_load, on_count, s };
	struct base_err err = { 0 };

	if (driver_drain(d, all, &sink, &err) < 0)
		fail_msg("%s", err.text);
	check_law(s);
}

static void start(const struct driver_config *config)
{
	struct driver_config c = *config;
	struct base_err err = { 0 };

	c.source = "bpf";
	if (driver_open(&c, &d, &err) < 0 || driver_start(d, &err) < 0)
		fail_msg("%s (%s)", err.text, err.hint);
}

static void stop(struct seen *s)
{
	driver_stop(d);
	drain(s, true);
}

static int close_driver(void **state)
{
	(void)state;
	driver_close(d);
	d = NULL;
	return 0;
}

static const char *const clock_event[] = { "cpu-clock" };

/* ---- tests ----------------------------------------------------------------------------------- */

static void child_is_seen_in_order(void **state)
{
	struct seen s = { 0 };
	struct driver_stats st;
	int status;

	(void)state;
	start(&(struct driver_config){ .slots = clock_event, .nr_slots = 1 });
	assert_string_equal(driver_event_get(d, 0)->name, "cpu-clock");
	assert_memory_equal(driver_describe(d), "bpf: ", 5);
	assert_false(driver_is_recorded(d));
	s.pid = start_spinner();
	assert_true(s.pid > 0);
	assert_int_equal(waitpid(s.pid, &status, 0), s.pid);
	assert_int_equal(status, 0);
	/* Not due: nothing but the rings is read. */
	drain(&s, false);
	assert_int_equal(s.step + s.counts, 0);
	drain(&s, true);
	assert_int_equal(s.step, 4);
	stop(&s);
	st = check_law(&s);
	assert_int_equal(st.held, 0);
	/* 0.3 s at 1000 Hz, with much room for a slow host; they share keys. */
	assert_in_range(s.user, 100, 400);
	assert_true(s.largest > 1);
	assert_int_equal(lost(&st), 0);
	assert_true(s.kernel > 0);
}

static double cpu_ms(pid_t pid)
{
	struct timespec ts = { 0 };
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	assert_int_equal(clock_gettime(clock, &ts), 0);
	return (double)ts.tv_sec * 1000 + (double)ts.tv_nsec / 1e6;
}

/* One that is counted at the same address all the time, while tables are exchanged too. */
static void busy_address_is_not_held(void **state)
{
	struct seen s = { 0 };
	double ms = 0;
	bool held = false;
	int status;

	(void)state;
	start(&(struct driver_config){ .slots = clock_event, .nr_slots = 1 });
	s.pid = fork_child();
	if (!s.pid)
		for (;;)
			__asm__ volatile("");
	assert_true(s.pid > 0);
	for (int i = 0; i < 10 && !held; i++) {
		usleep(50000);
		ms = cpu_ms(s.pid);
		drain(&s, true);
		held = (double)s.user < ms * 0.7 - 10;
	}
	kill(s.pid, SIGKILL);
	waitpid(s.pid, &status, 0);
	stop(&s);
	assert_true(ms > 50);
	assert_false(held);
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
	for (int i = 0; i < 8; i++) {
		/* A log is full long before the interval is over: it asks for a drain. */
		spin_calling(20);
		assert_int_equal(poll(&p, 1, 1000), 1);
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

/* ---- ranges ---------------------------------------------------------------------------------- */

static void begin_window(struct window *w)
{
	w->begin_ns = base_now_ns();
}

/* The word moves between end and begin: nothing runs in the range then. */
static void end_window(struct window *w)
{
	w->end_ns = base_now_ns();
}

static uint32_t words[2];

static struct driver_range own_range(bool with_words)
{
	return (struct driver_range){
		.start = (uintptr_t)spin_some,
		.end = (uintptr_t)spin_end,
		.words = with_words ? (uintptr_t)words : 0,
	};
}

static struct seen see_range(const struct driver_range *r)
{
	return (struct seen){ .pid = getpid(), .lo = r->start, .hi = r->end };
}

static const struct driver_config fast = {
	.slots = clock_event,
	.nr_slots = 1,
	.frequency = 10000,
};

static void counts_come_apart_by_generation(void **state)
{
	struct driver_range r = own_range(true);
	struct seen s = see_range(&r);

	(void)state;
	start(&fast);
	assert_int_equal(driver_ranges_set(d, getpid(), &r, 1), 0);
	for (uint32_t g = 1; g < 8; g++) {
		words[0] = g;
		begin_window(&s.windows[g]);
		for (int i = 0; i < 200; i++)
			spin_some(50000);
		end_window(&s.windows[g]);
	}
	assert_int_equal(driver_ranges_set(d, getpid(), NULL, 0), 0);
	stop(&s);
	for (uint32_t g = 1; g < 8; g++) {
		assert_true(s.windows[g].counts > 10);
		assert_int_equal(s.windows[g].bad, 0);
	}
	assert_int_equal(s.windows[0].counts, 0);
	assert_int_equal(s.unread, 0);
	assert_true(s.largest > 1);
}

static void timed_ranges_give_single_samples(void **state)
{
	struct driver_range r = own_range(false);
	struct seen s = see_range(&r);

	(void)state;
	start(&fast);
	assert_int_equal(driver_ranges_set(d, getpid(), &r, 1), 0);
	begin_window(&s.windows[0]);
	for (int i = 0; i < 500; i++)
		spin_some(50000);
	end_window(&s.windows[0]);
	stop(&s);
	assert_true(s.windows[0].counts > 50);
	assert_int_equal(s.windows[0].bad, 0);
	assert_int_equal(s.singles, s.windows[0].counts);
}

static void unreadable_words_are_told(void **state)
{
	struct driver_range r = own_range(true);
	struct seen s = see_range(&r);

	(void)state;
	r.words = 64; /* nobody has a page there */
	start(&fast);
	assert_int_equal(driver_ranges_set(d, getpid(), &r, 1), 0);
	spin(50);
	stop(&s);
	assert_true(s.unread > 10);
	for (int g = 0; g < 8; g++)
		assert_int_equal(s.windows[g].counts, 0);
}

/* A word that never stands still makes a new key of every sample: a quarter of the table, no more.
 */
static void floods_of_generations_end(void **state)
{
	struct driver_config config = fast;
	struct driver_range r = own_range(true);
	struct seen s = see_range(&r);
	struct driver_stats st;

	(void)state;
	config.table_len = 64;
	start(&config);
	assert_int_equal(driver_ranges_set(d, getpid(), &r, 1), 0);
	words[0] = 0;
	for (int i = 0; i < 20000; i++) {
		words[0]++;
		spin_some(1000);
	}
	stop(&s);
	st = check_law(&s);
	assert_int_equal(st.held, 0);
	assert_true(s.unread > 10);
	assert_true(s.user > s.unread);
}

static void ranges_end_with_exec(void **state)
{
	const struct driver_range everything = { .start = 0, .end = UINT64_MAX };
	struct seen s = { 0 };
	int go[2], status;
	char byte = 0;

	(void)state;
	start(&fast);
	assert_int_equal(pipe(go), 0);
	s.pid = fork_child();
	if (!s.pid) {
		if (read(go[0], &byte, 1) != 1)
			_exit(1);
		execl("/proc/self/exe", "unit_driver_bpf_live", "spin", (char *)NULL);
		_exit(1);
	}
	assert_int_equal(driver_ranges_set(d, s.pid, &everything, 1), 0);
	assert_int_equal(write(go[1], &byte, 1), 1);
	assert_int_equal(waitpid(s.pid, &status, 0), s.pid);
	assert_int_equal(status, 0);
	close(go[0]);
	close(go[1]);
	stop(&s);
	assert_true(s.user > 100);
	/* Counted again, not one by one. */
	assert_true(s.largest > 1);
}

static void too_much_is_refused(void **state)
{
	struct driver_range r[DRIVER_NR_RANGES + 1] = { own_range(true) };
	struct seen s = { 0 };

	(void)state;
	start(&fast);
	assert_int_equal(driver_ranges_set(d, getpid(), r, DRIVER_NR_RANGES + 1), -DCPI_ELIMIT);
	assert_int_equal(driver_ranges_set(d, 0, r, 1), -EINVAL);
	/* Somebody who is not there, or not any more. */
	assert_int_equal(driver_ranges_set(d, getpid(), NULL, 0), 0);
	stop(&s);
}

/* ---- what the kernel may refuse -------------------------------------------------------------- */

static long bpf_map_call(int cmd, int fd, uint32_t *key)
{
	union bpf_attr attr = { .map_fd = (uint32_t)fd, .key = (uintptr_t)key };

	return syscall(SYS_bpf, cmd, &attr, sizeof(attr));
}

/* The rights to wait for programs are lost, and come back: counts are handed on all the time. */
static void kernel_that_does_not_wait_is_told(void **state)
{
	struct seen s = { .pid = getpid() };
	int tables, none = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct bpf *b;
	uint64_t before;

	(void)state;
	assert_true(none >= 0);
	start(&fast);
	b = (struct bpf *)d;
	tables = b->tables.fd;
	for (int i = 0; i < 3; i++) {
		b->tables.fd = i == 1 ? none : tables;
		before = s.user;
		spin(20);
		drain(&s, true);
		assert_true(s.user > before);
		assert_int_equal(strstr(driver_describe(d), "does not wait") != NULL, i == 1);
	}
	b->tables.fd = none;
	stop(&s);
	assert_int_equal(check_law(&s).held, 0);
	b->tables.fd = tables;
	close(none);
}

/*
 * As those of a CPU that has just come, or for which no memory was left. What was due is either
 * received or missed.
 */
static void samples_without_a_table_are_lost_by_name(void **state)
{
	struct seen s = { .pid = getpid() };
	struct driver_stats st;
	struct bpf *b;
	uint64_t began_ns, due;

	(void)state;
	start(&fast);
	began_ns = base_now_ns();
	b = (struct bpf *)d;
	for (uint32_t at = 0; at < 2 * b->tables.nr_cpus; at++)
		assert_int_equal(bpf_map_call(BPF_MAP_DELETE_ELEM, b->tables.fd, &at), 0);
	spin(100);
	driver_stop(d);
	due = (base_now_ns() - began_ns) / (1000000000 / fast.frequency) * b->sampler.nr_cpus;
	stop(&s);
	st = check_law(&s);
	assert_int_equal(st.held, 0);
	assert_true(st.lost_table >= 100);
	/* A period may be 4 % shorter, a CPU may begin earlier. */
	assert_true(st.received[0] + st.missed[0] <= due + due / 6);
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

static void tick_gives_samples_of_both_modes(void **state)
{
	struct seen s = { .pid = getpid() };
	struct driver_stats st;
	uint64_t period;

	(void)state;
	need_tick();
	start(&(struct driver_config){ .slots = tick_event, .nr_slots = 1 });
	period = driver_event_get(d, 0)->period;
	assert_in_range(period, 1000000, 10000000);
	spin(300);
	for (clock_t end = clock() + CLOCKS_PER_SEC / 5; clock() < end;)
		close(dup(0));
	stop(&s);
	st = check_law(&s);
	assert_in_range(s.user, 300000000 / period / 3, 600000000 / period);
	assert_true(s.kernel > s.idle);
	assert_int_equal(st.missed[0], 0);
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

/* The log takes one tick here, as with two it would be half full: the others are hashed. */
static void ticks_of_a_small_log_are_hashed(void **state)
{
	struct seen s = { .pid = getpid() };
	struct driver_stats st;

	(void)state;
	need_tick();
	start(&(struct driver_config){ .slots = tick_event, .nr_slots = 1, .table_len = 16 });
	spin(300);
	stop(&s);
	st = check_law(&s);
	/* One loop, so few addresses: all of them fit. */
	assert_in_range(s.user, 300000000 / driver_event_get(d, 0)->period / 3, st.received[0]);
}

/* The set that is counted in first. */
static uint64_t most_received(const struct bpf_tables *t)
{
	uint64_t most = 0;

	for (size_t i = 0; i < t->nr_cpus; i++) {
		const volatile union count_bucket *table = t->cpus[i].sets[0];

		if (table && table->head.received[0] > most)
			most = table->head.received[0];
	}
	return most;
}

/* They fill the log until half of it is nearly full; others are hashed, too few to push any out. */
static void ticks_alone_ask_for_no_drain(void **state)
{
	struct seen s = { .pid = getpid() };
	const struct bpf_tables *t;
	uint32_t half;

	(void)state;
	need_tick();
	start(&(struct driver_config){
		.slots = tick_event, .nr_slots = 1, .table_len = 256, .drain_ms = 60000 });
	t = &((struct bpf *)d)->tables;
	half = t->shape.nr_log / 2;
	for (int i = 0; i < 1000 && most_received(t) < half + 4; i++)
		spin(10);
	assert_true(most_received(t) >= half + 4);
	for (size_t i = 0; i < t->nr_cpus; i++) {
		if (!t->cpus[i].sets[0])
			continue;
		assert_int_equal(t->cpus[i].sets[0]->head.told_ns, 0);
		assert_true(t->cpus[i].sets[0]->head.nr_log < half);
	}
	stop(&s);
}

/* ---------------------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(child_is_seen_in_order, close_driver),
		cmocka_unit_test_teardown(busy_address_is_not_held, close_driver),
		cmocka_unit_test_teardown(registry_is_told_at_once, close_driver),
		cmocka_unit_test_teardown(tiny_tables_are_accounted_for, close_driver),
		cmocka_unit_test_teardown(full_tables_without_drains_are_late, close_driver),
		cmocka_unit_test_teardown(overload_is_named, close_driver),
		cmocka_unit_test_teardown(counts_come_apart_by_generation, close_driver),
		cmocka_unit_test_teardown(timed_ranges_give_single_samples, close_driver),
		cmocka_unit_test_teardown(unreadable_words_are_told, close_driver),
		cmocka_unit_test_teardown(floods_of_generations_end, close_driver),
		cmocka_unit_test_teardown(ranges_end_with_exec, close_driver),
		cmocka_unit_test_teardown(too_much_is_refused, close_driver),
		cmocka_unit_test_teardown(kernel_that_does_not_wait_is_told, close_driver),
		cmocka_unit_test_teardown(samples_without_a_table_are_lost_by_name, close_driver),
		cmocka_unit_test_teardown(tick_gives_samples_of_both_modes, close_driver),
		cmocka_unit_test_teardown(tick_and_clock_stand_together, close_driver),
		cmocka_unit_test_teardown(ticks_of_a_small_log_are_hashed, close_driver),
		cmocka_unit_test_teardown(ticks_alone_ask_for_no_drain, close_driver),
	};
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
	driver_close(d);
	d = NULL;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
