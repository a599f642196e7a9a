/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients of the real program: what it reads of their ranges and words, and tells of their forks.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>

#include "live.h"

#include "bpf_program.h"

/* ---- ranges ---------------------------------------------------------------------------------- */

static void begin_trace(struct trace *w)
{
	w->begin_ns = base_now_ns();
}

/* The word moves between end and begin: nothing runs in the range then. */
static void end_trace(struct trace *w)
{
	w->end_ns = base_now_ns();
}

static uint32_t words[4];

static struct driver_range own;

/* spin_some alone; word 0 is that of every block. */
static struct driver_client own_code(enum driver_range_kind kind)
{
	own = (struct driver_range){ (uintptr_t)spin_some, (uintptr_t)spin_end, kind };
	return (struct driver_client){
		.ranges = &own,
		.nr_ranges = 1,
		.words = (uintptr_t)words,
		.nr_words = 1,
		.stands = live_stands,
	};
}

static struct seen see_range(const struct driver_range *r)
{
	return (struct seen){ .pid = getpid(), .lo = r->start, .hi = r->end };
}

static void counts_come_apart_by_generation(void **state)
{
	struct driver_client c = own_code(DRIVER_RANGE_WORDS);
	struct seen s = see_range(&own);

	(void)state;
	start(&fast);
	assert_int_equal(driver_client_set(d, getpid(), &c), 0);
	for (uint32_t g = 1; g < 8; g++) {
		words[0] = g;
		begin_trace(&s.traces[g]);
		for (int i = 0; i < 200; i++)
			spin_some(50000);
		end_trace(&s.traces[g]);
	}
	assert_int_equal(driver_client_set(d, getpid(), NULL), 0);
	stop(&s);
	for (uint32_t g = 1; g < 8; g++) {
		assert_true(s.traces[g].counts > 10);
		assert_int_equal(s.traces[g].bad, 0);
	}
	assert_int_equal(s.traces[0].counts, 0);
	assert_int_equal(s.unread, 0);
	assert_true(s.largest > 1);
}

static void timed_ranges_give_single_samples(void **state)
{
	struct driver_client c = own_code(DRIVER_RANGE_SINGLE);
	struct seen s = see_range(&own);

	(void)state;
	start(&fast);
	assert_int_equal(driver_client_set(d, getpid(), &c), 0);
	begin_trace(&s.traces[0]);
	for (int i = 0; i < 500; i++)
		spin_some(50000);
	end_trace(&s.traces[0]);
	stop(&s);
	assert_true(s.traces[0].counts > 50);
	assert_int_equal(s.traces[0].bad, 0);
	assert_int_equal(s.singles, s.traces[0].counts);
}

static void unreadable_words_are_told(void **state)
{
	struct driver_client c = own_code(DRIVER_RANGE_WORDS);
	struct seen s = see_range(&own);

	(void)state;
	c.words = 64; /* nobody has a page there */
	start(&fast);
	assert_int_equal(driver_client_set(d, getpid(), &c), 0);
	spin_until(&s, &s.unread, 11);
	stop(&s);
	for (int g = 0; g < 8; g++)
		assert_int_equal(s.traces[g].counts, 0);
}

/* As a sample finds it in the midst of fill(): nobody says then that its range was not asked for.
 */
static void half_written_clients_are_unread(void **state)
{
	struct driver_client c = own_code(DRIVER_RANGE_WORDS);
	struct seen s = see_range(&own);
	struct sample_client *slots, *k;
	uint64_t before;

	(void)state;
	start(&fast);
	words[0] = 2;
	assert_int_equal(driver_client_set(d, getpid(), &c), 0);
	slots = ((struct bpf *)d)->programs.objects[0]->bss->clients;
	for (k = slots; k < slots + SAMPLE_NR_SLOTS && k->tgid != (uint32_t)getpid(); k++)
		;
	assert_true(k < slots + SAMPLE_NR_SLOTS);
	__atomic_add_fetch(&k->seq, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < 2; i++) {
		spin_until(&s, &s.unread, s.unread + 11);
		/* The ranges do not hold it now, and may in a moment. */
		k->start = UINT64_MAX;
	}
	assert_int_equal(s.read + s.traces[0].counts, 0);
	assert_int_equal(driver_client_set(d, getpid(), &c), 0);
	k->seq = 2;
	drain(&s, true);
	before = s.unread;
	spin_until(&s, &s.traces[2].counts, 11);
	stop(&s);
	assert_int_equal(s.unread, before);
}

/* A word that never stands still makes a new key of every sample: so many, no more. */
static void floods_of_generations_end(void **state)
{
	struct driver_client c = own_code(DRIVER_RANGE_WORDS);
	struct seen s = see_range(&own);
	struct driver_stats st;

	(void)state;
	start(&fast);
	((struct bpf *)d)->tables.shared->shape.nr_flood = 16;
	assert_int_equal(driver_client_set(d, getpid(), &c), 0);
	words[0] = 0;
	for (struct work w = { 0 }; work_ms(&w) < 200;) {
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
	const struct driver_range all = { .start = 0, .end = UINT64_MAX };
	const struct driver_client everything = { .ranges = &all, .nr_ranges = 1 };
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
	assert_int_equal(driver_client_set(d, s.pid, &everything), 0);
	/* Samples of a process that is younger may come one by one for that reason. */
	sleep(1);
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

static bool stands_nowhere(void *ctx)
{
	(void)ctx;
	return false;
}

static void words_that_do_not_stand_are_not_read(void **state)
{
	struct driver_client c = own_code(DRIVER_RANGE_WORDS);
	struct seen s = see_range(&own);

	(void)state;
	start(&fast);
	c.stands = stands_nowhere;
	assert_int_equal(driver_client_set(d, getpid(), &c), -ESTALE);
	/* Nor are others, where some were read before. */
	c.stands = live_stands;
	assert_int_equal(driver_client_set(d, getpid(), &c), 0);
	c.words += sizeof(words[0]);
	c.stands = stands_nowhere;
	assert_int_equal(driver_client_set(d, getpid(), &c), -ESTALE);
	for (int i = 0; i < 200; i++)
		spin_some(50000);
	stop(&s);
	assert_true(s.user > 10);
	assert_int_equal(s.read + s.unread, 0);
}

static int to_child[2], from_child[2];

/* The program that had them ends while it is asked; what it executes has something else there. */
static bool stood_before(void *ctx)
{
	char byte = 0;

	(void)ctx;
	assert_int_equal(write(to_child[1], &byte, 1), 1);
	/* Closed by the exec. */
	assert_int_equal(read(from_child[0], &byte, 1), 0);
	return true;
}

static void words_end_with_an_exec_while_asked(void **state)
{
	const struct driver_range all = { 0, INT64_MAX, DRIVER_RANGE_WORDS };
	const struct driver_client c = { .ranges = &all,
					 .nr_ranges = 1,
					 .words = (uintptr_t)words,
					 .nr_words = 1,
					 .cursor = (uintptr_t)words & ~(uintptr_t)7,
					 .stands = stood_before };
	struct seen s = { 0 };
	int status;
	char byte;

	(void)state;
	start(&fast);
	assert_int_equal(pipe2(to_child, O_CLOEXEC) + pipe2(from_child, O_CLOEXEC), 0);
	s.pid = fork_child();
	if (!s.pid) {
		close(from_child[0]);
		if (read(to_child[0], &byte, 1) != 1)
			_exit(1);
		execl("/proc/self/exe", "unit_driver_bpf_live", "spin", (char *)NULL);
		_exit(1);
	}
	close(from_child[1]);
	assert_int_equal(driver_client_set(d, s.pid, &c), 0);
	assert_int_equal(waitpid(s.pid, &status, 0), s.pid);
	assert_int_equal(status, 0);
	close(to_child[0]);
	close(to_child[1]);
	close(from_child[0]);
	stop(&s);
	assert_true(s.user > 100);
	assert_int_equal(s.read + s.unread, 0);
}

/* The word of a block is told by its address, and blocks may share one. */
static void blocks_share_words(void **state)
{
	struct driver_client c = own_code(DRIVER_RANGE_WORDS);
	struct seen s = see_range(&own);
	uint32_t at = own.start / BLOCK % 4;

	(void)state;
	c.words = (uintptr_t)words;
	c.nr_words = 4;
	words[0] = words[1] = words[2] = words[3] = 7;
	start(&fast);
	assert_int_equal(driver_client_set(d, getpid(), &c), 0);
	for (uint32_t g = 1; g < 4; g++) {
		words[at] = g;
		begin_trace(&s.traces[g]);
		for (int i = 0; i < 200; i++)
			spin_some(50000);
		end_trace(&s.traces[g]);
	}
	stop(&s);
	for (uint32_t g = 1; g < 4; g++) {
		assert_true(s.traces[g].counts > 10);
		assert_int_equal(s.traces[g].bad, 0);
	}
	assert_int_equal(s.traces[7].counts + s.unread, 0);
}

/* Of all ranges the first that holds the address; outside of them nothing is asked for. */
static void many_ranges_are_told_apart(void **state)
{
	struct driver_range r[DRIVER_NR_RANGES];
	struct driver_client c = own_code(DRIVER_RANGE_WORDS);
	struct seen s = see_range(&own);
	uint64_t before;

	(void)state;
	for (size_t i = 0; i < DRIVER_NR_RANGES; i++)
		r[i] = (struct driver_range){ i * BLOCK, (i + 1) * BLOCK, DRIVER_RANGE_SINGLE };
	r[0].end = UINT64_MAX;
	r[0].start = UINT64_MAX - BLOCK;
	c.ranges = r;
	c.nr_ranges = DRIVER_NR_RANGES;
	words[0] = 2;
	start(&fast);
	assert_int_equal(driver_client_set(d, getpid(), &c), 0);
	spin_until(&s, &s.traces[0].counts, 11);
	assert_int_equal(s.read + s.unread, 0);
	assert_true(s.largest > 1);
	r[DRIVER_NR_RANGES - 2] = own;
	r[DRIVER_NR_RANGES - 1] = (struct driver_range){ own.start, own.end, DRIVER_RANGE_SINGLE };
	assert_int_equal(driver_client_set(d, getpid(), &c), 0);
	drain(&s, true);
	before = s.traces[0].counts;
	spin_until(&s, &s.traces[2].counts, 11);
	stop(&s);
	assert_int_equal(s.traces[2].counts, s.read);
	assert_int_equal(s.traces[0].counts, before);
}

/* A page of words that nobody touched: nothing is waited for in the sampler. */
static void words_not_in_memory_are_unread(void **state)
{
	struct driver_client c = own_code(DRIVER_RANGE_WORDS);
	struct seen s = see_range(&own);
	volatile uint32_t *far =
		mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(far != MAP_FAILED);
	c.words = (uintptr_t)far;
	start(&fast);
	assert_int_equal(driver_client_set(d, getpid(), &c), 0);
	spin_until(&s, &s.unread, 11);
	assert_int_equal(s.read, 0);
	far[0] = 5;
	spin_until(&s, &s.traces[5].counts, 11);
	stop(&s);
	assert_int_equal(s.traces[5].counts, s.read);
	munmap((void *)(uintptr_t)far, BLOCK);
}

/* ---- processes by the hundred ---------------------------------------------------------------- */

enum { STACK = 4096 };

static int sleeps(void *arg)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
	return arg != NULL;
}

static int ends(void *arg)
{
	return arg != NULL;
}

/* A process that shares our memory: that of a sanitizer takes 40 ms to copy. */
static pid_t sharing_child(int (*run)(void *), char *stack)
{
	return clone(run, stack + STACK, CLONE_VM | SIGCHLD, NULL);
}

/* ---- forks ----------------------------------------------------------------------------------- */

static volatile uint64_t cursor;

/* What the cursor was at each fork is what comes with its event. */
static void forks_carry_the_cursor(void **state)
{
	static _Alignas(16) char stack[STACK];
	struct driver_client c = { .cursor = (uintptr_t)&cursor, .stands = live_stands };
	struct seen s = { .pid = getpid() };
	int status;

	(void)state;
	nr_forked = 0;
	start(&(struct driver_config){ .slots = clock_event, .nr_slots = 1 });
	assert_int_equal(driver_client_set(d, getpid(), &c), 0);
	for (uint64_t i = 0; i < NR_FORKS; i++) {
		cursor = UINT64_C(0x100000000) * i + i;
		forked[i].cursor = cursor;
		forked[i].pid = sharing_child(ends, stack);
		assert_true(forked[i].pid > 0);
		nr_forked = i + 1;
		cursor = UINT64_MAX;
		assert_int_equal(waitpid(forked[i].pid, &status, 0), forked[i].pid);
		/* Else others who map and fork fill the rings, on a busy machine. */
		if (i % 8 == 7)
			drain(&s, i % 152 == 151);
	}
	stop(&s);
	assert_int_equal(((struct bpf *)d)->forks.nr, 0);
	assert_int_equal(s.cursors_bad, 0);
	/* The machine may stop one between event and program. */
	assert_in_range(s.cursors, NR_FORKS - 2, NR_FORKS);
}

/* Of a process that is none of ours, and of one whose cursor cannot be read. */
static void forks_without_cursor_say_so(void **state)
{
	struct driver_client c = { .cursor = 64, .stands = live_stands };
	struct seen s = { .pid = getpid() };
	int status;

	(void)state;
	start(&(struct driver_config){ .slots = clock_event, .nr_slots = 1 });
	for (nr_forked = 0; nr_forked < 2; nr_forked++) {
		pid_t child = fork_child();

		if (!child)
			_exit(0);
		assert_int_equal(waitpid(child, &status, 0), child);
		forked[nr_forked].pid = child;
		assert_int_equal(driver_client_set(d, getpid(), &c), 0);
	}
	stop(&s);
	assert_int_equal(s.cursors + s.cursors_bad, 0);
	assert_int_equal(s.forks, 2);
}

/* ---- many clients ---------------------------------------------------------------------------- */

enum { NR_SLEEPERS = SAMPLE_NR_CLIENTS + 2 };

static void many_clients_and_one_more(void **state)
{
	static _Alignas(16) char stacks[NR_SLEEPERS][STACK];
	static pid_t pids[NR_SLEEPERS];
	struct driver_client c = own_code(DRIVER_RANGE_WORDS);
	struct seen s = see_range(&own);
	size_t nr = 0;

	(void)state;
	start(&fast);
	words[0] = 3;
	for (size_t i = 0; i < NR_SLEEPERS; i++) {
		pids[i] = sharing_child(sleeps, stacks[i]);
		assert_true(pids[i] > 0);
		if (i % 8 == 7)
			drain(&s, false);
	}
	for (size_t i = 0; i < SAMPLE_NR_CLIENTS - 1; i++)
		nr += driver_client_set(d, pids[i], &c) == 0;
	assert_int_equal(nr, SAMPLE_NR_CLIENTS - 1);
	assert_int_equal(driver_client_set(d, getpid(), &c), 0);
	assert_int_equal(driver_client_set(d, pids[NR_SLEEPERS - 1], &c), -DCPI_ELIMIT);
	/* Again is no other. */
	assert_int_equal(driver_client_set(d, pids[0], &c), 0);
	spin_until(&s, &s.traces[3].counts, 30);
	/* The end of some, seen by the kernel or told. */
	for (size_t i = 0; i < NR_SLEEPERS; i += 2) {
		if (i % 4)
			assert_int_equal(driver_client_set(d, pids[i], NULL), 0);
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	assert_int_equal(driver_client_set(d, pids[NR_SLEEPERS - 1], &c), 0);
	spin_until(&s, &s.traces[3].counts, s.traces[3].counts + 30);
	for (size_t i = 1; i < NR_SLEEPERS; i += 2) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	stop(&s);
	assert_int_equal(s.traces[3].counts, s.read);
	assert_int_equal(((struct bpf *)d)->tables.shared->nr_clients, 1);
}

static void too_much_is_refused(void **state)
{
	struct driver_range r[DRIVER_NR_RANGES + 1] = { 0 };
	struct driver_client c = { .ranges = r,
				   .nr_ranges = DRIVER_NR_RANGES + 1,
				   .stands = live_stands };
	struct seen s = { 0 };

	(void)state;
	start(&fast);
	assert_int_equal(driver_client_set(d, getpid(), &c), -DCPI_ELIMIT);
	c.nr_ranges = 1;
	assert_int_equal(driver_client_set(d, 0, &c), -EINVAL);
	c.cursor = 4;
	assert_int_equal(driver_client_set(d, getpid(), &c), -EINVAL);
	c.cursor = 0;
	r[0].kind = DRIVER_RANGE_WORDS;
	assert_int_equal(driver_client_set(d, getpid(), &c), -EINVAL);
	c.words = 8;
	c.nr_words = 3;
	assert_int_equal(driver_client_set(d, getpid(), &c), -EINVAL);
	c.words = 10;
	c.nr_words = 4;
	assert_int_equal(driver_client_set(d, getpid(), &c), -EINVAL);
	c.words = 8;
	c.stands = NULL;
	assert_int_equal(driver_client_set(d, getpid(), &c), -EINVAL);
	/* Somebody who is not there, or not any more. */
	assert_int_equal(driver_client_set(d, getpid(), NULL), 0);
	stop(&s);
}

/* ---------------------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(counts_come_apart_by_generation),
		LIVE_TEST(timed_ranges_give_single_samples),
		LIVE_TEST(unreadable_words_are_told),
		LIVE_TEST(half_written_clients_are_unread),
		LIVE_TEST(floods_of_generations_end),
		LIVE_TEST(ranges_end_with_exec),
		LIVE_TEST(words_that_do_not_stand_are_not_read),
		LIVE_TEST(words_end_with_an_exec_while_asked),
		LIVE_TEST(blocks_share_words),
		LIVE_TEST(many_ranges_are_told_apart),
		LIVE_TEST(words_not_in_memory_are_unread),
		LIVE_TEST(forks_carry_the_cursor),
		LIVE_TEST(forks_without_cursor_say_so),
		LIVE_TEST(many_clients_and_one_more),
		LIVE_TEST(too_much_is_refused),
	};
	int r = live_begin(argc, argv);

	return r >= 0 ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
