/* SPDX-License-Identifier: BSD-2-Clause */
/* Traces sent to value profilers in their process, and profilers that do not behave. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_registry.h"
#include "record.h"
#include "values_args.h"
#include "values_internal.h"
#include "values_replay.h"

enum { INSNS = 64, ROUNDS = INSNS / 4, SKIPPED = 4, FIRST = 100 };
enum { LIMIT_S = 30 };

#if defined(__aarch64__)
/* 1: ldr x2,[x0]; add x2,x2,#1; str x2,[x0]; b 1b */
static const uint8_t loop[] = { 0x02, 0x00, 0x40, 0xf9, 0x42, 0x04, 0x00, 0x91,
				0x02, 0x00, 0x00, 0xf9, 0xfd, 0xff, 0xff, 0x17 };
enum { POINTER = 0, LOAD = 0, ADD = 4, STORE = 8 };
#else
/* 1: mov rax,[rdi]; add rax,1; mov [rdi],rax; jmp 1b */
static const uint8_t loop[] = { 0x48, 0x8b, 0x07, 0x48, 0x83, 0xc0,
				0x01, 0x48, 0x89, 0x07, 0xeb, 0xf4 };
enum { POINTER = 5, LOAD = 0, ADD = 3, STORE = 7 };
#endif

static struct record record;

/* What came back. */
static struct {
	unsigned int calls, empty;
	size_t profiler; /* whose tuples are kept */
	struct values_tuple tuples[VSAMPLE_BUFFER_SIZE];
	size_t nr;
	uint64_t tickets[256];
} got;

static int take(void *ctx, uint64_t ticket, size_t profiler, const struct values_tuple *t,
		size_t nr)
{
	(void)ctx;
	assert_true(nr <= VSAMPLE_BUFFER_SIZE && (t || !nr));
	got.tickets[got.calls++ % 256] = ticket;
	got.empty += !nr;
	if (profiler == got.profiler && nr) {
		memcpy(got.tuples, t, nr * sizeof(*t));
		got.nr = nr;
	}
	return 0;
}

static int setup(void **state)
{
	struct vtrace_state s;
	uint64_t first = FIRST;

	memset(&got, 0, sizeof(got));
	memset(&record, 0, sizeof(record));
	*state = NULL;
	if (!fake_can_exec("dcpid-values"))
		return 0;
	if (vtrace_blocks_new(VALUES_ARCH, &record.blocks) < 0)
		return -1;
	memcpy(record.code, loop, sizeof(loop));
	memcpy(record.data, &first, sizeof(first));
	record.w.r[POINTER] = RECORD_DATA;
	record.w.tgid = 1;
	record_run(&record, &s, VTRACE_LOG_TIMES, INSNS);
	*state = &record;
	return s.nr_insns == INSNS ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	vtrace_blocks_free(record.blocks);
	record.blocks = NULL;
	return 0;
}

static const char *bad(const char *name)
{
	static char path[4][4096];
	static unsigned int next;
	char *p = path[next++ % 4];

	snprintf(p, 4096, "%s/vp_bad_%s.so", VALUES_BAD_DIR, name);
	return p;
}

/* A profiler that comes with us. */
static const char *ours(const char *name)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s.so", VALUES_LIB_DIR, name);
	return path;
}

static struct values *open_values(const char *const *profilers, size_t nr)
{
	struct base_err err = { 0 };
	struct values *v;

	/* Patient: a machine may be busy. */
	if (values_open_timeout(fake_helper_dir(), profilers, nr, false, 10000000000, &v, &err) < 0)
		fail_msg("%s", err.text);
	v->pause_ns = 0;
	return v;
}

static void assert_sums(const struct values *v)
{
	struct values_stats s;

	values_stats_get(v, &s);
	assert_int_equal(s.sent, s.answered + s.lost + v->nr_pending);
}

static int send(struct values *v, uint64_t ticket)
{
	return values_send(v, ticket, &record.w, record.words, record_block, &record);
}

static void receive(struct values *v)
{
	struct pollfd p = { .fd = values_poll_fd(v), .events = POLLIN };

	poll(&p, 1, 10);
	assert_true(values_receive(v, take, NULL) >= 0);
	assert_sums(v);
}

/* Until nothing is pending, and a process is there for the next. */
static void wait_for_all(struct values *v)
{
	uint64_t end = base_now_ns() + LIMIT_S * 1000000000ull;

	do
		receive(v);
	while ((v->nr_pending || (v->state != VALUES_RUNNING && values_any_left(v))) &&
	       base_now_ns() < end);
	assert_int_equal(v->nr_pending, 0);
}

/* ---- what comes out -------------------------------------------------------------------------- */

static void assert_tuple(size_t at, uint64_t pc, uint64_t value)
{
	assert_true(at < got.nr);
	assert_int_equal(got.tuples[at].pc, RECORD_CODE + pc);
	assert_int_equal(got.tuples[at].value, value);
	assert_int_equal(got.tuples[at].c0, 0);
}

#define NEEDS_PROCESS(state)                                                                       \
	if (!*(state))                                                                             \
	skip()

static void classic(void **state)
{
	const char *const profilers[] = { "values" };
	struct values *v;

	NEEDS_PROCESS(state);
	v = open_values(profilers, 1);
	assert_string_equal(values_name(v, 0), "values");
	assert_int_equal(values_log(v), VTRACE_LOG_READS);
	assert_int_equal(send(v, 7), 0);
	wait_for_all(v);
	assert_int_equal(got.calls, 1);
	assert_int_equal(got.tickets[0], 7);
	/* The first eight are dropped; jumps have no value. */
	assert_int_equal(got.nr, 3 * (ROUNDS - SKIPPED));
	for (unsigned int i = 0; i < ROUNDS - SKIPPED; i++) {
		assert_tuple(3 * i, LOAD, FIRST + SKIPPED + i);
		assert_tuple(3 * i + 1, ADD, FIRST + SKIPPED + i + 1);
		assert_tuple(3 * i + 2, STORE, FIRST + SKIPPED + i + 1);
	}
	values_close(v);
}

static void replay(void **state)
{
	const char *const profilers[] = { "values.replay" };
	struct values *v;

	NEEDS_PROCESS(state);
	v = open_values(profilers, 1);
	assert_int_equal(send(v, 1), 0);
	wait_for_all(v);
	assert_int_equal(got.nr, ROUNDS - SKIPPED);
	for (unsigned int i = 0; i < got.nr; i++)
		assert_tuple(i, LOAD, VALUES_FORWARDED + 2);
	values_close(v);
}

static void addresses(void **state)
{
	const char *const profilers[] = { "values.replay", ours("vp-addr"), "values" };
	struct values_profiler_stats s;
	struct values *v;

	NEEDS_PROCESS(state);
	got.profiler = 1;
	v = open_values(profilers, 3);
	assert_string_equal(values_name(v, 1), "vp-addr");
	for (uint64_t ticket = 0; ticket < 20; ticket++)
		assert_int_equal(send(v, ticket), 0);
	wait_for_all(v);
	/* Each profiler's, ticket after ticket. */
	assert_int_equal(got.calls, 60);
	for (unsigned int i = 0; i < 60; i++)
		assert_int_equal(got.tickets[i], i / 3);
	assert_int_equal(got.nr, 2 * (ROUNDS - SKIPPED));
	for (unsigned int i = 0; i < got.nr; i++)
		assert_tuple(i, i & 1 ? STORE : LOAD, RECORD_DATA);
	values_profiler_stats_get(v, 1, &s);
	assert_int_equal(s.tuples, 20 * 2 * (ROUNDS - SKIPPED));
	values_close(v);
}

/* The example: addresses of 64-bit loads. */
static void example(void **state)
{
	const char *const profilers[] = { VALUES_EXAMPLE };
	struct values *v;

	NEEDS_PROCESS(state);
	v = open_values(profilers, 1);
	assert_string_equal(values_name(v, 0), "vp-ldq-addr");
	assert_int_equal(send(v, 1), 0);
	wait_for_all(v);
	assert_int_equal(got.nr, ROUNDS - SKIPPED);
	for (unsigned int i = 0; i < got.nr; i++)
		assert_tuple(i, LOAD, RECORD_DATA);
	values_close(v);
}

/* What the clock itself takes is taken off: of loads that all take as long nothing is left. */
static void latency(void **state)
{
	const char *const profilers[] = { ours("vp-ldlatency") };
	struct values *v;

	NEEDS_PROCESS(state);
	v = open_values(profilers, 1);
	assert_int_equal(values_log(v), VTRACE_LOG_TIMES);
	for (uint32_t at = 0; at < record.w.nr_words; at += 4)
		record.words[at + 2] = 90;
	/* The last load of all, which needs memory that is far away. */
	record.words[record.w.nr_words - 2] = 290;
	for (uint64_t ticket = 0; ticket < 10; ticket++)
		assert_int_equal(send(v, ticket), 0);
	wait_for_all(v);
	assert_int_equal(got.nr, ROUNDS - SKIPPED);
	for (unsigned int i = 0; i + 1 < got.nr; i++)
		assert_tuple(i, LOAD, 0);
	assert_tuple(got.nr - 1, LOAD, 200);
	values_close(v);
}

/* The times of loads in @record: 90 ns, but @quick of each round that the profiler is shown is @ns.
 */
static void set_times(unsigned int quick, uint64_t ns)
{
	for (uint32_t at = 0; at < record.w.nr_words; at += 4) {
		uint32_t round = at / 4;

		record.words[at + 2] = round >= SKIPPED && round < SKIPPED + quick ? ns : 90;
	}
}

static struct values *open_latency(void)
{
	const char *const profilers[] = { ours("vp-ldlatency") };

	return open_values(profilers, 1);
}

/* The clock takes what the quickest twentieth of all loads takes: one in twelve is enough. */
static void latency_of_the_quickest(void **state)
{
	struct values *v;

	NEEDS_PROCESS(state);
	v = open_latency();
	set_times(1, 30);
	for (uint64_t ticket = 0; ticket < 10; ticket++)
		assert_int_equal(send(v, ticket), 0);
	wait_for_all(v);
	assert_int_equal(got.nr, ROUNDS - SKIPPED);
	assert_tuple(0, LOAD, 0);
	for (unsigned int i = 1; i < got.nr; i++)
		assert_tuple(i, LOAD, 60);
	values_close(v);
}

/* One that is rarer is chance, and took nothing besides the clock. */
static void latency_of_a_rare_one(void **state)
{
	struct values *v;

	NEEDS_PROCESS(state);
	v = open_latency();
	set_times(0, 0);
	for (uint64_t ticket = 0; ticket < 29; ticket++)
		assert_int_equal(send(v, ticket), 0);
	wait_for_all(v);
	set_times(1, 30);
	assert_int_equal(send(v, 29), 0);
	wait_for_all(v);
	assert_int_equal(got.nr, ROUNDS - SKIPPED);
	for (unsigned int i = 0; i < got.nr; i++)
		assert_tuple(i, LOAD, 0);
	values_close(v);
}

/* A block whose id is another one's now is sent anew. */
static void blocks_change(void **state)
{
	const char *const profilers[] = { "values" };
	struct vtrace_code *code;
	struct values *v;

	NEEDS_PROCESS(state);
	v = open_values(profilers, 1);
	assert_int_equal(send(v, 1), 0);
	code = (struct vtrace_code *)vtrace_blocks_get(record.blocks, 0);
	code->block.pc += 0x100;
	record.w.pc += 0x100;
	for (size_t at = 0; at < record.w.nr_words; at += 2 + VTRACE_WORD_READS(record.words[at]))
		record.words[at + 1] += 0x100;
	assert_int_equal(send(v, 2), 0);
	wait_for_all(v);
	assert_tuple(0, LOAD + 0x100, FIRST + SKIPPED);
	assert_int_equal(v->stats.bad, 0);
	/* Words that do not fit are said. */
	record.w.pc--;
	assert_int_equal(send(v, 3), 0);
	wait_for_all(v);
	assert_int_equal(v->stats.bad, 1);
	record.words[0] += VTRACE_WORD(77);
	assert_int_equal(send(v, 3), -DCPI_EFORMAT);
	record.w.has = 0;
	assert_int_equal(send(v, 3), -DCPI_EFORMAT);
	values_close(v);
}

/* Its code stands somewhere else in another process: it is the same one. */
static void a_block_elsewhere(void **state)
{
	const char *const profilers[] = { "values" };
	struct values *v;

	NEEDS_PROCESS(state);
	v = open_values(profilers, 1);
	assert_int_equal(send(v, 1), 0);
	assert_int_equal(v->nr_known, 1);
	record.w.pc += 0x10000;
	for (size_t at = 0; at < record.w.nr_words; at += 2 + VTRACE_WORD_READS(record.words[at]))
		record.words[at + 1] += 0x10000;
	assert_int_equal(send(v, 2), 0);
	wait_for_all(v);
	assert_int_equal(v->nr_known, 1);
	assert_tuple(0, LOAD + 0x10000, FIRST + SKIPPED);
	assert_int_equal(v->stats.bad, 0);
	values_close(v);
}

/* ---- refused at once ------------------------------------------------------------------------- */

static void assert_refused(const char *const *profilers, size_t nr, int code, const char *text)
{
	struct base_err err = { 0 };
	struct values *v;

	assert_int_equal(
		values_open_timeout(fake_helper_dir(), profilers, nr, false, 10000000000, &v, &err),
		code);
	assert_null(v);
	if (!strstr(err.text, text))
		fail_msg("'%s' is not '%s'", err.text, text);
}

static void refused(void **state)
{
	const struct {
		const char *name;
		int code;
		const char *text;
	} all[] = {
		{ "nothing", -DCPI_EFORMAT, "it has no _dispatch" },
		{ "lacking", -DCPI_EFORMAT, "its _dispatch lacks a function" },
		{ "reserved", -DCPI_EFORMAT, "the name 'values.trace' is reserved" },
		{ "odd_name", -DCPI_EFORMAT, "a value profiler's name is" },
		{ "eighth", -DCPI_ELIMIT, "more than 7 values of an instruction (class 'load')" },
		{ "no_table", -DCPI_EFORMAT, "returned no table" },
	};

	NEEDS_PROCESS(state);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		const char *const profilers[] = { "values", bad(all[i].name) };

		assert_refused(profilers, 2, all[i].code, all[i].text);
		assert_refused(profilers + 1, 1, all[i].code, profilers[1]);
	}
	const char *const twice[] = { ours("vp-addr"), ours("vp-addr") };

	assert_refused(twice, 2, -EEXIST, "two value profilers have the name 'vp-addr'");
	const char *const classics[] = { "values", "values" };

	assert_refused(classics, 2, -EEXIST, "two value profilers have the name 'values'");
}

static void refused_files(void **state)
{
	char name[] = "/tmp/dcpi-values-XXXXXX";
	const char *const relative[] = { "vp-addr.so" }, *const none[] = { "/nowhere/vp.so" };
	const char *const folder[] = { "/tmp" }, *const writable[] = { name };
	int fd;

	NEEDS_PROCESS(state);
	fd = mkstemp(name);
	assert_true(fd >= 0);
	assert_refused(relative, 1, -EINVAL, "no absolute path");
	assert_refused(none, 1, -ENOENT, "'/nowhere/vp.so'");
	assert_refused(folder, 1, -EINVAL, "no regular file");
	assert_int_equal(fchmod(fd, 0646), 0);
	assert_refused(writable, 1, -EACCES, "others may write");
	assert_int_equal(fchmod(fd, 0644), 0);
	assert_refused(writable, 1, -DCPI_EFORMAT, "cannot load value profiler");
	/* Root may give it away. */
	if (geteuid() == 0) {
		assert_int_equal(fchown(fd, (uid_t)-1, 12345), 0);
		assert_int_equal(fchmod(fd, 0664), 0);
		assert_refused(writable, 1, -EACCES, "group 12345 may write");
		assert_int_equal(fchown(fd, (uid_t)-1, 0), 0);
		assert_refused(writable, 1, -DCPI_EFORMAT, "cannot load value profiler");
		assert_int_equal(fchown(fd, 12345, (gid_t)-1), 0);
		assert_refused(writable, 1, -EACCES, "belongs to user 12345");
	}
	close(fd);
	unlink(name);
}

/* A folder in which others may put another file. */
static void refused_folder(void **state)
{
	char folder[] = "/tmp/dcpi-values-XXXXXX", name[64];
	const char *const profilers[] = { name };
	int fd;

	NEEDS_PROCESS(state);
	assert_non_null(mkdtemp(folder));
	snprintf(name, sizeof(name), "%s/vp.so", folder);
	fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(chmod(folder, 0777), 0);
	assert_refused(profilers, 1, -EACCES, folder);
	/* Not what is another's. */
	assert_int_equal(chmod(folder, 01777), 0);
	assert_refused(profilers, 1, -DCPI_EFORMAT, "cannot load value profiler");
	unlink(name);
	rmdir(folder);
}

static void loads_forever(void **state)
{
	const char *const profilers[] = { bad("loads_forever") };
	struct base_err err = { 0 };
	struct values *v;

	NEEDS_PROCESS(state);
	assert_int_equal(
		values_open_timeout(fake_helper_dir(), profilers, 1, false, 10000000, &v, &err),
		-ETIMEDOUT);
	assert_null(v);
}

/* The first child of @pid, once it has one; 0: it got none. */
static pid_t child_of(pid_t pid)
{
	char path[64], text[32] = "";

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	for (int i = 0; i < 100 * LIMIT_S && !*text; i++) {
		FILE *f = fopen(path, "re");

		if (f && !fgets(text, sizeof(text), f))
			usleep(10000);
		if (f)
			fclose(f);
	}
	return (pid_t)strtol(text, NULL, 10);
}

/* Who starts it is killed while a profiler does not end: nobody else would end it. */
static void ends_with_its_parent(void **state)
{
	const char *const profilers[] = { bad("loads_forever") };
	struct base_err err = { 0 };
	struct values *v;
	pid_t pid, process;
	bool ended = false;

	NEEDS_PROCESS(state);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	pid = fork();
	if (pid == 0) {
		values_open_timeout(fake_helper_dir(), profilers, 1, false, 10000000000, &v, &err);
		_exit(1);
	}
	process = child_of(pid);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(process > 0);
	for (int i = 0; i < 100 * LIMIT_S && !ended; i++) {
		ended = waitpid(process, NULL, WNOHANG) == process;
		if (!ended)
			usleep(10000);
	}
	if (!ended)
		kill(process, SIGKILL);
	assert_true(ended);
	prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}

/* ---- at work --------------------------------------------------------------------------------- */

/* @profiler[1] is at fault with each trace until it is given up; then the other goes on. */
static void fails(const char *profiler, bool hangs)
{
	const char *const profilers[] = { "values", profiler };
	struct values *v = open_values(profilers, 2);
	struct values_profiler_stats s = { 0 };
	unsigned int nr = 0;

	for (; nr < 20 && !s.given_up; nr++) {
		/* Of the beginning it is to be patient. */
		v->patience_ns = hangs ? 50000000 : v->patience_ns;
		assert_int_equal(send(v, nr), 0);
		while (v->nr_pending)
			receive(v);
		v->patience_ns = 10000000000;
		wait_for_all(v);
		values_profiler_stats_get(v, 1, &s);
	}
	assert_true(s.given_up);
	assert_int_equal(hangs ? s.hangs : s.crashes, VALUES_FAULTS_MAX);
	assert_int_equal(got.calls, 2 * nr);
	assert_int_equal(v->stats.lost, nr);
	got.nr = 0;
	assert_int_equal(send(v, nr), 0);
	wait_for_all(v);
	assert_int_equal(got.nr, 3 * (ROUNDS - SKIPPED));
	assert_int_equal(got.calls, 2 * (nr + 1));
	assert_int_equal(v->stats.answered, 1);
	values_close(v);
}

static void crashes(void **state)
{
	NEEDS_PROCESS(state);
	fails(bad("crashes"), false);
}

/* Then nobody is waited for. */
static void all_given_up(void **state)
{
	const char *const profilers[] = { bad("crashes") };
	struct values *v;

	NEEDS_PROCESS(state);
	v = open_values(profilers, 1);
	for (unsigned int nr = 0; nr < VALUES_FAULTS_MAX; nr++) {
		assert_int_equal(send(v, nr), 0);
		wait_for_all(v);
	}
	assert_false(values_any_left(v));
	assert_int_equal(send(v, 100), -DCPI_EHELPER);
	values_close(v);
}

/* It is not there any more, though it would not end by itself. */
static void leaves(void **state)
{
	const char *const profilers[] = { bad("leaves") };
	struct values *v;
	pid_t left, ended = 0;

	NEEDS_PROCESS(state);
	v = open_values(profilers, 1);
	left = v->helper.pid;
	assert_int_equal(send(v, 0), 0);
	while (v->nr_pending)
		receive(v);
	for (int i = 0; i < 100 * LIMIT_S && !ended; i++) {
		ended = waitpid(left, NULL, WNOHANG);
		usleep(10000);
	}
	if (!ended)
		kill(left, SIGKILL);
	assert_int_equal(ended, left);
	values_close(v);
}

static void exits(void **state)
{
	NEEDS_PROCESS(state);
	fails(bad("exits"), false);
}

static void loops(void **state)
{
	NEEDS_PROCESS(state);
	fails(bad("loops"), true);
}

static void wild(const char *profiler, uint64_t tuples, uint64_t lost)
{
	const char *const profilers[] = { profiler };
	struct values *v = open_values(profilers, 1);
	struct values_profiler_stats s;

	assert_string_equal(values_name(v, 0), "bad");
	assert_int_equal(send(v, 1), 0);
	wait_for_all(v);
	values_profiler_stats_get(v, 0, &s);
	assert_int_equal(s.tuples, tuples);
	assert_int_equal(s.wild, lost);
	assert_int_equal(s.crashes + s.hangs, 0);
	assert_int_equal(v->stats.answered, 1);
	values_close(v);
}

static void wild_tuples(void **state)
{
	NEEDS_PROCESS(state);
	wild(bad("too_many"), 0, 1 << 30);
	wild(bad("no_buffer"), 0, 2);
	wild(bad("elsewhere"), 1, 1);
}

/* One that stands still takes so many traces, and no more; its end gives all of them back. */
static void busy(void **state)
{
	const char *const profilers[] = { "values" };
	uint64_t nr = 0;
	struct values *v;

	NEEDS_PROCESS(state);
	v = open_values(profilers, 1);
	kill(v->helper.pid, SIGSTOP);
	while (nr <= VALUES_PENDING_MAX && send(v, nr) == 0)
		nr++;
	assert_in_range(nr, 1, VALUES_PENDING_MAX);
	assert_int_equal(v->stats.busy, 1);
	kill(v->helper.pid, SIGKILL);
	wait_for_all(v);
	assert_int_equal(v->stats.lost, nr);
	assert_int_equal(got.calls, nr);
	assert_int_equal(got.empty, nr);
	assert_int_equal(v->stats.starts, 2);
	values_close(v);
}

static void rights(void **state)
{
	const char *const profilers[] = { "values" };
	char path[64], line[256];
	uint64_t caps = UINT64_MAX;
	bool locked = false;
	struct values *v;
	FILE *f;

	NEEDS_PROCESS(state);
	v = open_values(profilers, 1);
	snprintf(path, sizeof(path), "/proc/%d/status", v->helper.pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "CapEff:", 7))
			caps = strtoull(line + 7, NULL, 16);
		if (!strncmp(line, "Uid:", 4) && geteuid() == 0)
			assert_int_equal(strtoul(line + 5, NULL, 10), BASE_HELPER_ID);
		locked |= !strcmp(line, "NoNewPrivs:\t1\n");
	}
	fclose(f);
	assert_int_equal(caps, 0);
	assert_true(locked);
	values_close(v);
}

/* What its two ends wrote into @said, of three bytes with the 0. */
static void end_of(const char *profiler, char said[3])
{
	const char *const profilers[] = { profiler };
	struct values *v;
	char path[64];
	int fd;

	memset(said, 0, 3);
	snprintf(path, sizeof(path), "/tmp/dcpi-unit-ends-%d", (int)getpid());
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0666);
	assert_true(fd >= 0);
	/* The process that loads it may be another user's. */
	assert_int_equal(fchmod(fd, 0666), 0);
	assert_int_equal(ftruncate(fd, 2), 0);
	v = open_values(profilers, 1);
	assert_int_equal(send(v, 1), 0);
	wait_for_all(v);
	values_close(v);
	assert_int_equal(pread(fd, said, 2, 0), 2);
	close(fd);
	unlink(path);
}

/* Both are called, after the last trace; one that has no end is ended. */
static void ends(void **state)
{
	char said[3];

	NEEDS_PROCESS(state);
	end_of(bad("ends"), said);
	assert_string_equal(said, "pf");
	end_of(bad("ends_never"), said);
	assert_string_equal(said, "p");
}

/* ---- parts ----------------------------------------------------------------------------------- */

static struct vtrace_entry entry_at(uint64_t load, uint8_t load_width, uint64_t store,
				    uint8_t store_width)
{
	return (struct vtrace_entry){ .load = { load, 0, load_width, 0, load_width > 0 },
				      .store = { store, 0, store_width, 0, store_width > 0 } };
}

static void stores(void **state)
{
	struct values_stores s = { 0 };
	struct vtrace_entry e = entry_at(0, 0, 100, 4);
	bool covered;

	(void)state;
	assert_int_equal(values_stores_add(&s, &e, 10, &covered), 0);
	e = entry_at(100, 4, 0, 0);
	assert_int_equal(values_stores_add(&s, &e, 12, &covered), 2);
	assert_true(covered);
	/* More than was stored, and partly beside it: a conflict. */
	e = entry_at(100, 8, 0, 0);
	assert_int_equal(values_stores_add(&s, &e, 13, &covered), 3);
	assert_false(covered);
	e = entry_at(97, 4, 0, 0);
	assert_int_equal(values_stores_add(&s, &e, 14, &covered), 4);
	assert_false(covered);
	e = entry_at(104, 4, 0, 0);
	assert_int_equal(values_stores_add(&s, &e, 15, &covered), 0);
	/* The youngest counts; one that changes memory sees the store before, not its own. */
	e = entry_at(100, 8, 100, 8);
	assert_int_equal(values_stores_add(&s, &e, 20, &covered), 10);
	e = entry_at(100, 8, 0, 0);
	assert_int_equal(values_stores_add(&s, &e, 21, &covered), 1);
	assert_true(covered);
	/* Stores long ago are forgotten. */
	for (uint32_t i = 0; i < VALUES_NR_STORES; i++) {
		e = entry_at(0, 0, 1000 + 8 * i, 8);
		values_stores_add(&s, &e, 30 + i, &covered);
	}
	e = entry_at(100, 8, 0, 0);
	assert_int_equal(values_stores_add(&s, &e, 200, &covered), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(classic, setup, teardown),
		cmocka_unit_test_setup_teardown(replay, setup, teardown),
		cmocka_unit_test_setup_teardown(ends, setup, teardown),
		cmocka_unit_test_setup_teardown(addresses, setup, teardown),
		cmocka_unit_test_setup_teardown(example, setup, teardown),
		cmocka_unit_test_setup_teardown(latency, setup, teardown),
		cmocka_unit_test_setup_teardown(latency_of_the_quickest, setup, teardown),
		cmocka_unit_test_setup_teardown(latency_of_a_rare_one, setup, teardown),
		cmocka_unit_test_setup_teardown(blocks_change, setup, teardown),
		cmocka_unit_test_setup_teardown(a_block_elsewhere, setup, teardown),
		cmocka_unit_test_setup_teardown(refused, setup, teardown),
		cmocka_unit_test_setup_teardown(refused_files, setup, teardown),
		cmocka_unit_test_setup_teardown(refused_folder, setup, teardown),
		cmocka_unit_test_setup_teardown(loads_forever, setup, teardown),
		cmocka_unit_test_setup_teardown(ends_with_its_parent, setup, teardown),
		cmocka_unit_test_setup_teardown(crashes, setup, teardown),
		cmocka_unit_test_setup_teardown(all_given_up, setup, teardown),
		cmocka_unit_test_setup_teardown(leaves, setup, teardown),
		cmocka_unit_test_setup_teardown(exits, setup, teardown),
		cmocka_unit_test_setup_teardown(loops, setup, teardown),
		cmocka_unit_test_setup_teardown(wild_tuples, setup, teardown),
		cmocka_unit_test_setup_teardown(busy, setup, teardown),
		cmocka_unit_test_setup_teardown(rights, setup, teardown),
		cmocka_unit_test(stores),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
