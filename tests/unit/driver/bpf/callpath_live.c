/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Call paths made by the real program, of a child that works behind known callers
 * (callpath_chain.c) without frame pointers: frame by frame they are what the callers themselves
 * have noted.
 */
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "callpath_chain.h"
#include "kernel/callpaths.h"
#include "live.h"
#include "unwind_rows.h"
#include "unwind.h"

struct watched {
	struct seen s;	   /* first: on_load and on_count take it */
	uint64_t since_ns; /* all tables are there, and their paths are judged; 0: not yet */
	bool missed, seen; /* since the last look: a table; a good path */
	uint64_t handed, nr, complete, good, kernel, most;
	uint64_t by_end[DRIVER_NR_CALLPATH_ENDS], by_event[2];
	enum chain_how how;
	bool traces;
	bool new_code;	 /* chain_code gets no table */
	uint64_t stacks; /* paths that ended in it */
};

/* ---- tables ---------------------------------------------------------------------------------- */

/* The file of this inode among those that we have mapped, as the child has; or -1. */
static int open_mapped(uint64_t ino)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long of;
	char line[1024], path[512];
	int fd = -1;

	while (maps && fd < 0 && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%*s %*s %*s %*s %lu %511s", &of, path) == 2 && of == ino)
			fd = open(path, O_RDONLY | O_CLOEXEC);
	if (maps)
		fclose(maps);
	return fd;
}

/* The key says what stat says, whatever else the kernel notes in the words that it is read from. */
static void check_key(const struct driver_rows_missing *m, int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(m->file.size, st.st_size);
	assert_int_equal(m->file.changed,
			 (uint64_t)st.st_ctim.tv_sec * 1000000000u + (uint64_t)st.st_ctim.tv_nsec);
}

/* The table of chain_code, as it is to be: by address. */
static struct unwind_table *table_of_code(void)
{
	static const struct {
		uint32_t at;
		int32_t off;
	} rows[] = { { 0, 8 },
		     { CHAIN_CODE_PUSHED, 16 },
		     { CHAIN_CODE_MOVED, 48 },
		     { CHAIN_CODE_LEN - 3, 16 },
		     { CHAIN_CODE_LEN - 2, 8 },
		     { CHAIN_CODE_LEN - 1, 0 } };
	struct unwind_builder *b = unwind_builder_new();
	struct unwind_table *table = NULL;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct unwind_rule rule = { .how = rows[i].off ? UNWIND_CFA : UNWIND_NONE,
						  .base = rows[i].off ? UNWIND_SP : 0,
						  .off = rows[i].off };

		assert_int_equal(unwind_builder_add(b, (uint64_t)chain_code + rows[i].at, &rule),
				 0);
	}
	assert_int_equal(unwind_builder_done(b, &table), 0);
	unwind_builder_free(b);
	return table;
}

static struct unwind_table *table_of(const struct driver_rows_missing *m)
{
	const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
	struct unwind_table *table = NULL;
	int fd;

	if (m->kind == DRIVER_ROWS_VDSO) {
		image_rows_of_bytes(vdso, m->end - m->start, "vdso", &table, NULL);
		return table;
	}
	if (m->kind == DRIVER_ROWS_CODE)
		return m->addr - (uint64_t)chain_code < CHAIN_CODE_LEN ? table_of_code() : NULL;
	fd = open_mapped(m->file.ino);
	if (fd >= 0) {
		check_key(m, fd);
		image_rows_read(fd, "file", &table, NULL);
		close(fd);
	}
	return table;
}

static int on_missing(void *ctx, const struct driver_rows_missing *m)
{
	struct watched *v = ctx;
	struct unwind_table *table =
		v->new_code && m->kind == DRIVER_ROWS_CODE ? NULL : table_of(m);

	assert_true(m->addr >= m->start && m->addr < m->end);
	assert_int_equal(driver_rows_put(d, &m->file, table), 0);
	v->missed |= table != NULL;
	unwind_free(table);
	return 0;
}

/* ---- paths ----------------------------------------------------------------------------------- */

static bool is_burn(uint64_t frame)
{
	uint64_t addr = frame & ~DRIVER_FRAME_EXACT;

	return addr >= (uint64_t)chain_burn && addr < (uint64_t)chain_burn_end;
}

/* The callers from burn on, of which frame @at is. */
static bool has_chain(const uint64_t *frames, size_t nr, size_t at, size_t from, size_t to)
{
	if (at + to - from >= nr)
		return false;
	for (size_t i = from; i < to; i++)
		if (frames[at + 1 + i - from] != chain_truth->called_from[i])
			return false;
	return true;
}

static bool has_depth(const uint64_t *frames, size_t nr, size_t at)
{
	size_t same = 0;

	for (size_t i = at + 3; i + 1 < nr && frames[i] == frames[i + 1]; i++)
		same++;
	return same + 1 == CHAIN_DEPTH - 1 && has_chain(frames, nr, at, 0, 2);
}

/* The handler returns to where it interrupted, which has the callers of raises(). */
static bool has_signal(const uint64_t *frames, size_t nr, size_t at)
{
	size_t i = at + 1;

	while (i < nr && !(frames[i] & DRIVER_FRAME_EXACT))
		i++;
	if (i >= nr || !has_chain(frames, nr, at, 0, 2))
		return false;
	while (i < nr && frames[i] != chain_truth->called_from[2])
		i++;
	return i < nr;
}

static bool is_good(const struct watched *v, const struct driver_callpath *c,
		    const uint64_t *frames)
{
	size_t at = c->nr_kernel;

	while (at < c->nr && !is_burn(frames[at]))
		at++;
	if (c->end != DRIVER_CALLPATH_COMPLETE)
		return false;
	if (v->how == CHAIN_DEEP)
		return has_depth(frames, c->nr, at);
	if (v->how == CHAIN_SIGNAL)
		return has_signal(frames, c->nr, at);
	return has_chain(frames, c->nr, at, 0, CHAIN_LEN);
}

/* A user's frame of burn from @first on: what a sanitizer puts before libc lies between. */
static bool has_burn(const struct driver_callpath *c, const uint64_t *frames, size_t first)
{
	for (size_t i = c->nr_kernel + first; i < c->nr; i++)
		if (is_burn(frames[i]))
			return true;
	return false;
}

/* One that the work is in; the others began or ended a turn of it. */
static bool is_of_work(const struct watched *v, const struct driver_callpath *c,
		       const uint64_t *frames)
{
	if (v->how == CHAIN_KERNEL)
		return c->mode == DRIVER_KERNEL && has_burn(c, frames, 1);
	if (v->how == CHAIN_LIBC)
		return c->mode == DRIVER_USER && has_burn(c, frames, 1);
	return c->mode == DRIVER_USER && is_burn(frames[0]);
}

static void show(const struct driver_callpath *c, const uint64_t *frames)
{
	printf("end %d, %u in the kernel, of %u:\n", (int)c->end, c->nr_kernel, c->nr);
	for (size_t i = 0; i < c->nr && i < 60; i++)
		printf("  %#llx\n", (unsigned long long)frames[i]);
	for (size_t i = 0; i < CHAIN_LEN; i++)
		printf("  is %#llx\n", (unsigned long long)chain_truth->called_from[i]);
}

/* The outermost caller noted is code without a table, 40 bytes below its return to chain_run. */
static int see_stack(struct watched *v, const struct driver_callpath *c, const uint64_t *frames)
{
	if (c->mode != DRIVER_USER || c->nr != CHAIN_LEN + 1 ||
	    !has_chain(frames, c->nr + 1u, 0, 0, CHAIN_LEN))
		return 0;
	assert_int_equal(c->end, DRIVER_CALLPATH_NO_ROWS);
	/* Where the ring was half full there is none. */
	if (!c->state)
		return 0;
	assert_int_equal(c->state->pc, frames[CHAIN_LEN]);
	assert_in_range(c->state->pc, (uint64_t)chain_code, (uint64_t)chain_code + CHAIN_CODE_LEN);
	assert_true(c->stack_len >= 48);
	assert_in_range(c->stack[5], (uint64_t)chain_run, (uint64_t)chain_run + 256);
	v->stacks++;
	return 0;
}

static int on_callpath(void *ctx, const struct driver_callpath *c, const uint64_t *frames)
{
	struct watched *v = ctx;

	see_time(&v->s, c->time_ns);
	v->handed++;
	assert_true(c->nr > 0 && c->nr <= DRIVER_NR_FRAMES && c->nr_kernel <= c->nr);
	assert_int_equal(c->count, 1);
	assert_int_equal(c->mode == DRIVER_KERNEL, c->nr_kernel > 0);
	if (c->mode == DRIVER_USER)
		assert_true(frames[0] & DRIVER_FRAME_EXACT);
	if (c->pid != v->s.pid)
		return 0;
	if (v->new_code)
		return see_stack(v, c, frames);
	v->seen |= is_of_work(v, c, frames) && is_good(v, c, frames);
	if (!v->since_ns || c->time_ns < v->since_ns)
		return 0;
	v->by_end[c->end]++;
	v->by_event[c->event % 2]++;
	v->complete += c->end == DRIVER_CALLPATH_COMPLETE;
	v->nr++;
	if (c->nr > v->most)
		v->most = c->nr;
	if (!is_of_work(v, c, frames))
		return 0;
	v->kernel += c->mode == DRIVER_KERNEL;
	v->good += is_good(v, c, frames);
	if (!is_good(v, c, frames)) {
		show(c, frames);
		fail_msg("this is not who called it");
	}
	return 0;
}

static int on_trace(void *ctx, const struct insn_trace *w, const uint64_t *words)
{
	struct watched *v = ctx;

	(void)words;
	see_time(&v->s, w->time_ns);
	v->traces = true;
	return 0;
}

static void look(struct watched *v, bool all)
{
	const struct driver_sink sink = { .load = on_load,
					  .count = on_count,
					  .trace = on_trace,
					  .callpath = on_callpath,
					  .ctx = v };
	struct driver_callpath_stats st;
	struct base_err err = { 0 };

	assert_int_equal(driver_rows_missing(d, on_missing, v), 0);
	if (driver_drain(d, all, &sink, &err) < 0)
		fail_msg("%s", err.text);
	driver_callpath_stats_get(d, &st);
	assert_int_equal(st.received,
			 v->handed + st.held + st.lost_ring + st.lost_busy + st.lost_read);
	assert_int_equal(st.lost_read, 0);
	assert_int_equal(v->s.disorder, 0);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static pid_t start_chain(enum chain_how how)
{
	pid_t pid = fork_child();

	if (!pid)
		for (;;)
			chain_run(how);
	return pid;
}

static const char *const tick_event[] = { "tick" };

static struct driver_config config_of(bool tick)
{
	struct driver_config config = fast;

	config.callpath_every = 1;
	config.frequency = 1000;
	if (!tick)
		return config;
	config.slots = tick_event;
	config.frequency = 0;
	return config;
}

static pid_t child;

static int end_all(void **state)
{
	(void)state;
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	child = 0;
	return d ? close_driver(NULL) : 0;
}

/* Until all that the paths lead through has a table. */
static void settle(struct watched *v)
{
	for (int i = 0; i < 600 && (v->missed || !v->seen); i++) {
		v->missed = v->seen = false;
		usleep(50000);
		look(v, true);
	}
	assert_true(v->seen);
	v->since_ns = base_now_ns();
}

static void watch(struct watched *v, uint64_t enough)
{
	struct driver_callpath_stats st;

	settle(v);
	for (int i = 0; i < 600 && v->good < enough; i++) {
		usleep(50000);
		look(v, true);
	}
	driver_stop(d);
	look(v, true);
	driver_callpath_stats_get(d, &st);
	printf("%llu of %llu complete, %llu of the work, %llu frames at most; %llu tables, %llu "
	       "KiB\n",
	       (unsigned long long)v->complete, (unsigned long long)v->nr,
	       (unsigned long long)v->good, (unsigned long long)v->most,
	       (unsigned long long)st.nr_tables, (unsigned long long)st.table_bytes / 1024);
	for (size_t i = 0; i < DRIVER_NR_CALLPATH_ENDS; i++)
		printf("  end %zu: %llu\n", i, (unsigned long long)v->by_end[i]);
	assert_true(v->good >= enough);
	assert_int_equal(st.held, 0);
	assert_int_equal(st.lost_ring, 0);
}

static void map_truth(void)
{
	chain_truth = mmap(NULL, sizeof(*chain_truth), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(chain_truth != MAP_FAILED);
}

static struct watched run(enum chain_how how, const struct driver_config *config, uint64_t enough)
{
	struct watched v = { .how = how };

	map_truth();
	start(config);
	v.s.pid = child = start_chain(how);
	watch(&v, enough);
	assert_int_equal(v.traces, config->trace_every != 0);
	munmap(chain_truth, sizeof(*chain_truth));
	return v;
}

static void run_at_clock(enum chain_how how)
{
	const struct driver_config config = config_of(false);

	run(how, &config, 200);
}

static void callers_of_own_code(void **state)
{
	(void)state;
	run_at_clock(CHAIN_SELF);
}

static void callers_of_libc(void **state)
{
	(void)state;
	run_at_clock(CHAIN_LIBC);
}

static void callers_of_the_kernel(void **state)
{
	(void)state;
	run_at_clock(CHAIN_KERNEL);
}

static void deep_recursion_is_complete(void **state)
{
	(void)state;
	run_at_clock(CHAIN_DEEP);
}

static void handler_returns_to_what_it_interrupted(void **state)
{
	(void)state;
	run_at_clock(CHAIN_SIGNAL);
}

/* The stack is read in parts, of which the last one is short. */
static void stack_ends_where_nothing_is_mapped(void **state)
{
	(void)state;
	run_at_clock(CHAIN_STACK);
}

/* Its table is by address, and of its process alone. */
static void code_in_memory_is_gone_through(void **state)
{
	(void)state;
	if (chain_code_write() < 0)
		skip();
	run_at_clock(CHAIN_CODE);
	munmap(chain_code, 4096);
}

static void stack_of_new_code_is_kept(void **state)
{
	const struct driver_config config = config_of(false);
	struct watched v = { .how = CHAIN_CODE, .new_code = true };

	(void)state;
	if (chain_code_write() < 0)
		skip();
	map_truth();
	start(&config);
	v.s.pid = child = start_chain(CHAIN_CODE);
	for (int i = 0; i < 600 && v.stacks < 20; i++) {
		usleep(50000);
		look(&v, true);
	}
	driver_stop(d);
	look(&v, true);
	assert_true(v.stacks >= 20);
	munmap(chain_truth, sizeof(*chain_truth));
	munmap(chain_code, 4096);
}

static bool has_no_tick(void)
{
	const struct driver_config config = { .source = "bpf", .slots = tick_event, .nr_slots = 1 };

	if (driver_open(&config, &d, NULL) < 0)
		return true;
	close_driver(NULL);
	return false;
}

static void tick_has_callers(void **state)
{
	const struct driver_config config = config_of(true);

	(void)state;
	if (has_no_tick())
		skip();
	run(CHAIN_SELF, &config, 20);
}

static void tick_has_callers_of_the_kernel(void **state)
{
	const struct driver_config config = config_of(true);

	(void)state;
	if (has_no_tick())
		skip();
	run(CHAIN_KERNEL, &config, 20);
}

static void traces_and_callers(void **state)
{
	struct driver_config config = config_of(false);

	(void)state;
	config.trace_every = 2;
	run(CHAIN_SELF, &config, 100);
}

static void each_event_has_callers(void **state)
{
	static const char *const two[] = { "cpu-clock+task-clock" };
	struct driver_config config = config_of(false);
	struct watched v;

	(void)state;
	config.slots = two;
	v = run(CHAIN_SELF, &config, 200);
	assert_true(v.by_event[0] > 20);
	assert_true(v.by_event[1] > 20);
}

/* More than the ring holds comes while its reader is busy: a thread empties it. */
static void busy_reader_loses_no_path(void **state)
{
	struct driver_config config = config_of(false);
	struct watched v = { .how = CHAIN_DEEP };
	struct driver_callpath_stats st, before;

	(void)state;
	config.frequency = 500;
	map_truth();
	start(&config);
	v.s.pid = child = start_chain(CHAIN_DEEP);
	settle(&v);
	driver_callpath_stats_get(d, &before);
	driver_busy(d, true);
	do {
		usleep(10000);
		driver_callpath_stats_get(d, &st);
	} while ((st.received - before.received) * sizeof(uint64_t) * CALLPATH_NR_FRAMES <
		 2 * CALLPATH_RING_LEN);
	driver_busy(d, false);
	assert_int_equal(st.lost_ring, 0);
	watch(&v, 20);
	assert_true(v.most > CALLPATH_NR_FRAMES / 2);
	munmap(chain_truth, sizeof(*chain_truth));
}

#define CALLPATH_TEST(name) cmocka_unit_test_teardown(name, end_all)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CALLPATH_TEST(callers_of_own_code),
		CALLPATH_TEST(callers_of_libc),
		CALLPATH_TEST(callers_of_the_kernel),
		CALLPATH_TEST(deep_recursion_is_complete),
		CALLPATH_TEST(handler_returns_to_what_it_interrupted),
		CALLPATH_TEST(stack_ends_where_nothing_is_mapped),
		CALLPATH_TEST(code_in_memory_is_gone_through),
		CALLPATH_TEST(stack_of_new_code_is_kept),
		CALLPATH_TEST(tick_has_callers),
		CALLPATH_TEST(tick_has_callers_of_the_kernel),
		CALLPATH_TEST(traces_and_callers),
		CALLPATH_TEST(each_event_has_callers),
		CALLPATH_TEST(busy_reader_loses_no_path),
	};
	int r = live_begin(argc, argv);

	if (r >= 0)
		return r;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	if (driver_callpaths_possible(NULL, NULL) < 0)
		return BASE_EXIT_SKIP;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
