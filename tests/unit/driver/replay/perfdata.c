/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "perfdata_file.h"

#define USER   PERF_RECORD_MISC_USER
#define KERNEL PERF_RECORD_MISC_KERNEL

static struct base_buf f;
static struct replayed out;

static int setup(void **state)
{
	(void)state;
	out = (struct replayed){ 0 };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	base_buf_release(&f);
	free(out.text);
	return 0;
}

static void replay(void)
{
	replay_bytes(&f, &out);
	assert_string_equal(out.err.text, "");
	assert_int_equal(out.r, 0);
}

/* ---- what comes out -------------------------------------------------------------------------- */

static void samples_come_by_event_and_mode(void **state)
{
	(void)state;
	put_two_events(&f);
	put_sample(&f, USER, 0x401000, 7, 10, 12, 300);
	put_sample(&f, KERNEL, 0xffffffff81000010, 7, 11, 11, 5);
	put_sample(&f, PERF_RECORD_MISC_GUEST_USER, 0x401000, 7, 12, 12, 100);
	put_sample(&f, KERNEL, 0xffffffff81000010, 0, 13, 12, 200);
	put_sample(&f, USER, 0x401000, 0, 14, 12, 200);
	put_sample(&f, USER, 0x401000, 7, 15, 99, 1);
	replay();
	assert_string_equal(out.text,
			    "count t=10 pid=7 event=1 addr=0x401000\n"
			    "count t=11 pid=7 mode=kernel addr=0xffffffff81000010\n"
			    "count t=12 pid=7 event=1 mode=other addr=0x401000\n"
			    "count t=13 pid=0 event=1 mode=kernel addr=0xffffffff81000010\n"
			    "count t=14 pid=-1 event=1 addr=0x401000\n");
	assert_int_equal(out.nr_events, 2);
	assert_string_equal(out.events[0].name, "page-faults");
	assert_int_equal(out.events[0].period, 5);
	assert_string_equal(out.events[1].name, "cpu-clock");
	assert_int_equal(out.events[1].period, 200);
	/* The one of no known event. */
	assert_int_equal(out.stats.lost_bad, 1);
	assert_int_equal(out.stats.received[0], 2);
	assert_int_equal(out.stats.received[1], 4);
	assert_int_equal(out.stats.held, 0);
}

/* perf opens an event on each CPU, with an id of its own. */
static void an_event_has_an_id_for_each_cpu(void **state)
{
	static const uint64_t ids[] = { 31, 12, 23 };
	struct perf_event_attr a = file_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 5);

	(void)state;
	put_pipe_head(&f);
	rec_begin(&f, PERFDATA_ATTR, 0);
	base_buf_append(&f, &a, sizeof(a));
	base_buf_append(&f, ids, sizeof(ids));
	rec_end(&f);
	a.config = PERF_COUNT_SW_CPU_CLOCK;
	put_attr(&f, &a, 22);
	put_sample(&f, USER, 1, 7, 10, 23, 1);
	put_sample(&f, USER, 2, 7, 11, 22, 1);
	put_sample(&f, USER, 3, 7, 12, 12, 1);
	put_sample(&f, USER, 4, 7, 13, 31, 1);
	replay();
	assert_string_equal(out.text, "count t=10 pid=7 addr=0x1\n"
				      "count t=11 pid=7 event=1 addr=0x2\n"
				      "count t=12 pid=7 addr=0x3\n"
				      "count t=13 pid=7 addr=0x4\n");
	assert_int_equal(out.stats.lost_bad, 0);
}

static void load_events_come_as_from_the_kernel(void **state)
{
	(void)state;
	put_two_events(&f);
	put_comm(&f, 0, 7, "sh", 0);
	put_comm(&f, PERF_RECORD_MISC_COMM_EXEC, 7, "prog", 1);
	put_mmap2(&f, USER, 7, 5, "/bin/prog", 2);
	put_mmap2(&f, USER | PERF_RECORD_MISC_MMAP_BUILD_ID, 7, 5, "/lib/x", 3);
	put_mmap2(&f, USER, 7, 3, "/data", 4);
	put_mmap(&f, USER, 7, 0x7000, 0x1000, 0, "/old", 5);
	put_mmap(&f, USER | PERF_RECORD_MISC_MMAP_DATA, 7, 0x7000, 0x1000, 0, "/old.data", 5);
	put_mmap(&f, PERF_RECORD_MISC_GUEST_KERNEL, 99, 0x7000, 0x1000, 0, "[guest.kernel]", 5);
	put_task(&f, PERF_RECORD_FORK, 8, 7, 8, 6);
	put_task(&f, PERF_RECORD_FORK, 8, 8, 9, 7); /* a thread */
	put_task(&f, PERF_RECORD_EXIT, 8, 8, 8, 8);
	put_task(&f, PERF_RECORD_EXIT, 8, 8, 9, 9); /* the last of 8 */
	put_numbers(&f, PERF_RECORD_THROTTLE, 0, 9, 11, 2, 10, 11);
	put_numbers(&f, PERF_RECORD_NAMESPACES, 0, 9, 11, 2, 11, 11);
	put_numbers(&f, 63, 0, 9, 11, 2, 11, 11);
	put_numbers(&f, 200, 0, 9, 11, 2, 11, 11);
	replay();
	assert_string_equal(
		out.text,
		"comm pid=7 path=sh\n"
		"exec t=1 pid=7 path=prog\n"
		"mmap t=2 pid=7 addr=0x400000 len=0x2000 off=0x1000 major=8 minor=1 inode=77"
		" path=/bin/prog\n"
		"mmap t=3 pid=7 addr=0x400000 len=0x2000 off=0x1000 id=aabbccdd path=/lib/x\n"
		"mmap t=5 pid=7 addr=0x7000 len=0x1000 path=/old\n"
		"fork t=6 pid=8 ppid=7\n"
		"exit t=9 pid=8 ppid=8 tid=9\n");
	assert_int_equal(out.stats.throttled, 1);
	assert_int_equal(out.stats.lost_load, 0);
}

/* perf tells of what ran already by forks, whose children must not get their parents' mappings. */
static void told_processes_share_no_mappings(void **state)
{
	(void)state;
	put_two_events(&f);
	put_task(&f, PERF_RECORD_FORK, 8, 7, 8, 0);
	put_task(&f, PERF_RECORD_FORK, 8, 8, 9, 0);
	put_comm(&f, 0, 8, "sh", 0);
	put_task(&f, PERF_RECORD_EXIT, 8, 8, 8, 5);
	put_task(&f, PERF_RECORD_EXIT, 8, 8, 9, 6);
	replay();
	assert_string_equal(out.text,
			    "exec pid=8\ncomm pid=8 path=sh\nexit t=6 pid=8 ppid=8 tid=9\n");
}

static void the_kernels_code_is_named(void **state)
{
	(void)state;
	put_two_events(&f);
	put_build_id(&f, KERNEL, "[kernel.kallsyms]", 0);
	put_build_id(&f, KERNEL, "[ext4]", 20);
	put_mmap(&f, KERNEL, (uint32_t)-1, 0xffffffff81000000, 0x1000000, 0xffffffff81000000,
		 "[kernel.kallsyms]_text", 0);
	put_mmap(&f, KERNEL, (uint32_t)-1, 0, 0xffffffff9fffffff, 0xffffffff81000000,
		 "[kernel.kallsyms]_stext", 0);
	put_mmap(&f, KERNEL, (uint32_t)-1, 0xffffffffc0000000, 0x1000, 0, "[ext4]", 0);
	put_mmap(&f, KERNEL, (uint32_t)-1, 0xffffffffc0002000, 0x1000, 0,
		 "/lib/modules/6.1.0/kernel/net/a.ko.xz", 0);
	/* As --buildid-mmap writes it: without a protection. */
	put_mmap2(&f, KERNEL | PERF_RECORD_MISC_MMAP_BUILD_ID, (uint32_t)-1, 0, "[zram]", 0);
	put_numbers(&f, PERF_RECORD_KSYMBOL, 0, 0xffffffffc0009000, 0x0000000100000040, 2, 3, 11);
	put_numbers(&f, PERF_RECORD_TEXT_POKE, 0, 0xffffffff81000100, 0xbbaa909000020002, 2, 4, 11);
	put_comm(&f, 0, 7, "what follows", 5); /* stands where the new bytes were read */
	replay();
	assert_string_equal(
		out.text, "kernel addr=0xffffffff81000000 len=0x1000000 id=01020304 path=vmlinux\n"
			  "kernel addr=0xffffffff81000000 len=0x1effffff id=01020304 path=vmlinux\n"
			  "kernel addr=0xffffffffc0000000 len=0x1000"
			  " id=0102030400000000550000000000000000000000 path=ext4.ko\n"
			  "kernel addr=0xffffffffc0002000 len=0x1000 path=a.ko\n"
			  "kernel addr=0x400000 len=0x2000 id=aabbccdd path=zram.ko\n"
			  "poke t=4 addr=0xffffffff81000100 data=aabb\n"
			  "comm t=5 pid=7 path=what follows\n");
	/* A symbol whose name has no end. */
	assert_int_equal(out.stats.lost_load, 1);
}

/* Some perfs do not say that such a mapping is the kernel's; of a file nobody's is none. */
static void the_kernel_without_a_mark(void **state)
{
	(void)state;
	put_two_events(&f);
	put_mmap(&f, USER, (uint32_t)-1, 0xffffffffc0000000, 0x1000, 0, "[ext4]", 0);
	put_mmap(&f, USER, (uint32_t)-1, 0x1000, 0x1000, 0, "/bin/a", 0);
	put_mmap(&f, USER, 7, 0x1000, 0x1000, 0, "[vdso]", 5);
	replay();
	assert_string_equal(out.text, "kernel addr=0xffffffffc0000000 len=0x1000 path=ext4.ko\n"
				      "mmap t=5 pid=7 addr=0x1000 len=0x1000 path=[vdso]\n");
}

/* Where the first symbol is not in the mapping, the mapping begins where it says. */
static void the_kernel_begins_at_its_symbol(void **state)
{
	static const uint64_t symbols[] = { 0xffffffff80000000, 0x1000,
					    0xffffffff80100000, 0xffffffff8fffffff,
					    0xffffffff90000000, 0xffffffffa0000000 };

	(void)state;
	put_two_events(&f);
	for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++)
		put_mmap(&f, KERNEL, (uint32_t)-1, 0xffffffff80000000, 0x10000000, symbols[i],
			 "[kernel.kallsyms]_text", 0);
	replay();
	assert_string_equal(out.text,
			    "kernel addr=0xffffffff80000000 len=0x10000000 path=vmlinux\n"
			    "kernel addr=0xffffffff80000000 len=0x10000000 path=vmlinux\n"
			    "kernel addr=0xffffffff80100000 len=0xff00000 path=vmlinux\n"
			    "kernel addr=0xffffffff8fffffff len=0x1 path=vmlinux\n"
			    "kernel addr=0xffffffff80000000 len=0x10000000 path=vmlinux\n"
			    "kernel addr=0xffffffff80000000 len=0x10000000 path=vmlinux\n");
}

/* The kernel's mark of a build-id where nobody asked for one: device and inode stand there. */
static void marks_of_others_are_not_believed(void **state)
{
	struct perf_event_attr a = file_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 100);

	(void)state;
	put_pipe_head(&f);
	put_attr(&f, &a, 12);
	put_mmap2(&f, USER | PERF_RECORD_MISC_MMAP_BUILD_ID, 7, 5, "/bin/a", 1);
	f.data[f.len - 24 - 8 - 8 - 24] = 20; /* put there by perf inject */
	put_mmap2(&f, USER | PERF_RECORD_MISC_MMAP_BUILD_ID, 7, 5, "/bin/b", 2);
	replay();
	assert_string_equal(out.text, "mmap t=1 pid=7 addr=0x400000 len=0x2000 off=0x1000"
				      " id=aabbccdd00000000000000000000000000000000 path=/bin/a\n"
				      "mmap t=2 pid=7 addr=0x400000 len=0x2000 off=0x1000 major=4"
				      " minor=3721182122 path=/bin/b\n");
}

/* The last record's event. */
static void set_id(uint64_t id)
{
	memcpy(f.data + f.len - 8, &id, 8);
}

/* Any event asked for build-ids: perf's own records (id 0) have them, of any length. */
static void perfs_own_build_ids_are_believed(void **state)
{
	(void)state;
	put_two_events(&f);
	put_mmap2(&f, USER | PERF_RECORD_MISC_MMAP_BUILD_ID, 7, 5, "/bin/a", 1);
	set_id(0);
	put_mmap2(&f, USER | PERF_RECORD_MISC_MMAP_BUILD_ID, 7, 5, "/bin/b", 2);
	set_id(11); /* the kernel's, for the one that did not ask */
	replay();
	assert_string_equal(out.text, "mmap t=1 pid=7 addr=0x400000 len=0x2000 off=0x1000"
				      " id=aabbccdd path=/bin/a\n"
				      "mmap t=2 pid=7 addr=0x400000 len=0x2000 off=0x1000 major=4"
				      " minor=3721182122 path=/bin/b\n");
}

/* What is recorded of them must be readable. */
static void numbers_below_0_are_nobody(void **state)
{
	static const int32_t tid = -5;

	(void)state;
	put_two_events(&f);
	put_sample(&f, USER, 0x1, 7, 10, 11, 1);
	memcpy(f.data + f.len - 28, &tid, 4);
	put_task(&f, PERF_RECORD_FORK, 8, (uint32_t)-7, (uint32_t)-9, 11);
	replay();
	assert_string_equal(out.text, "count t=10 pid=7 tid=-1 addr=0x1\n"
				      "fork t=11 pid=8 ppid=-1 tid=-1\n");
}

static void build_ids_come_from_the_table(void **state)
{
	(void)state;
	put_two_events(&f);
	put_build_id(&f, USER, "/bin/a", 8);
	put_build_id(&f, PERF_RECORD_MISC_GUEST_USER, "/bin/b", 8);
	put_mmap(&f, USER, 7, 0x7000, 0x1000, 0, "/bin/a", 1);
	put_mmap(&f, USER, 7, 0x9000, 0x1000, 0, "/bin/b", 2);
	replay();
	assert_string_equal(
		out.text, "mmap t=1 pid=7 addr=0x7000 len=0x1000 id=0102030400000000 path=/bin/a\n"
			  "mmap t=2 pid=7 addr=0x9000 len=0x1000 path=/bin/b\n");
}

/* ---- order ----------------------------------------------------------------------------------- */

static void rounds_order_by_time(void **state)
{
	(void)state;
	put_two_events(&f);
	put_sample(&f, USER, 3, 7, 30, 11, 1);
	put_sample(&f, USER, 1, 7, 10, 11, 1);
	put_mark(&f, PERFDATA_FINISHED_ROUND); /* nothing is known yet */
	put_sample(&f, USER, 5, 7, 50, 11, 1);
	put_sample(&f, USER, 2, 7, 20, 11, 1);
	put_mark(&f, PERFDATA_FINISHED_ROUND); /* up to 30 */
	put_sample(&f, USER, 4, 7, 40, 11, 1);
	put_comm(&f, 0, 7, "x", 45);
	put_mark(&f, PERFDATA_FINISHED_ROUND); /* up to 50 */
	put_sample(&f, USER, 6, 7, 35, 11, 1); /* too late: its place is gone */
	put_comm(&f, 0, 7, "y", 36);
	replay();
	assert_string_equal(out.text, "count t=10 pid=7 addr=0x1\n"
				      "count t=20 pid=7 addr=0x2\n"
				      "count t=30 pid=7 addr=0x3\n"
				      "count t=40 pid=7 addr=0x4\n"
				      "comm t=45 pid=7 path=x\n"
				      "count t=50 pid=7 addr=0x5\n"
				      "count first=35 t=50 pid=7 addr=0x6\n"
				      "comm t=50 pid=7 path=y\n");
	assert_int_equal(out.stats.lost_load, 1);
}

/* What perf writes without a time belongs where it stands. */
static void records_without_a_time(void **state)
{
	(void)state;
	put_two_events(&f);
	put_comm(&f, 0, 6, "first", UINT64_MAX);
	put_sample(&f, USER, 2, 7, 20, 11, 1);
	put_sample(&f, USER, 1, 7, 10, 11, 1);
	put_comm(&f, 0, 7, "x", UINT64_MAX);
	put_sample(&f, USER, 3, 7, 30, 11, 1);
	replay();
	assert_string_equal(out.text, "comm pid=6 path=first\n"
				      "count t=10 pid=7 addr=0x1\n"
				      "count t=20 pid=7 addr=0x2\n"
				      "comm t=20 pid=7 path=x\n"
				      "count t=30 pid=7 addr=0x3\n");
}

static void long_files_come_in_several_drains(void **state)
{
	enum { NR = 100000 };
	const char *at;
	uint64_t last = 0;

	(void)state;
	put_two_events(&f);
	for (uint64_t i = 0; i < NR; i++) {
		put_sample(&f, USER, i, 7, 1 + (i ^ 0xff), 11, 1);
		if (i % 4096 == 4095)
			put_mark(&f, PERFDATA_FINISHED_ROUND);
	}
	replay();
	assert_in_range(out.drains, 5, 10);
	assert_int_equal(out.stats.received[0], NR);
	at = out.text;
	for (int i = 0; i < NR; i++) {
		/* A sanitizer's strstr would measure all the rest each time. */
		const char *end = strchr(at, '\n');
		const char *time = memmem(at, (size_t)(end - at), "t=", 2);
		uint64_t t;

		assert_non_null(time);
		t = strtoull(time + 2, NULL, 10);
		assert_true(t > last);
		last = t;
		at = end + 1;
	}
}

/* A record each 50 ms, until nobody reads any more. */
static void write_slowly(int fd)
{
	struct base_buf one = { 0 };

	base_buf_append(&one, f.data, f.len);
	for (uint64_t i = 0; i < 400 && base_write_all(fd, one.data, one.len) == 0; i++) {
		usleep(50000);
		base_buf_clear(&one);
		put_sample(&one, USER, i, 7, 1 + i, 11, 1);
	}
	base_buf_release(&one);
}

static int take_count(void *ctx, const struct driver_count *count)
{
	(void)ctx;
	(void)count;
	return 0;
}

/* So that what has come is flushed in time. */
static void a_slow_pipe_comes_in_several_drains(void **state)
{
	const struct driver_sink sink = { .count = take_count };
	struct driver *d = NULL;
	int ends[2];
	pid_t child;

	(void)state;
	put_two_events(&f);
	put_sample(&f, USER, 1, 7, 1, 11, 1);
	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		signal(SIGPIPE, SIG_IGN);
		close(ends[0]);
		write_slowly(ends[1]);
		_exit(0);
	}
	close(ends[1]);
	assert_int_equal(perfdata_open_stream(fdopen(ends[0], "r"), "x", &d, &out.err), 0);
	assert_int_equal(driver_drain(d, false, &sink, &out.err), 1);
	driver_stats_get(d, &out.stats);
	assert_in_range(out.stats.received[0], 1, 398);
	driver_close(d);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void a_sink_may_stop_a_drain(void **state)
{
	(void)state;
	put_two_events(&f);
	put_sample(&f, USER, 1, 7, 10, 11, 1);
	put_sample(&f, USER, 2, 7, 20, 11, 1);
	out.answer = -42;
	replay_bytes(&f, &out);
	assert_int_equal(out.r, -42);
	assert_string_equal(out.err.text, "");
	assert_string_equal(out.text, "");
	assert_int_equal(out.stats.received[0], 2);
	assert_int_equal(out.stats.held, 1);
}

/* ---- losses ---------------------------------------------------------------------------------- */

static void losses_are_received(void **state)
{
	(void)state;
	put_two_events(&f);
	put_sample(&f, USER, 1, 7, 10, 11, 1);
	put_numbers(&f, PERF_RECORD_LOST, 0, 12, 5, 2, 11, 12);
	put_numbers(&f, PERF_RECORD_LOST_SAMPLES, 0, 3, 0, 1, 12, 11);
	put_numbers(&f, PERF_RECORD_LOST_SAMPLES, 1u << 15, 4, 0, 1, 12, 11); /* by a filter */
	replay();
	assert_int_equal(out.stats.lost_ring, 8);
	assert_int_equal(out.stats.received[0], 4);
	assert_int_equal(out.stats.received[1], 5);
}

/* Where the kernel counts by event, perf adds those counts at the end: no sample is lost twice. */
static void losses_are_not_counted_twice(void **state)
{
	struct perf_event_attr a = file_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 100);

	(void)state;
	a.read_format = PERF_FORMAT_LOST;
	put_pipe_head(&f);
	put_attr(&f, &a, 11);
	put_numbers(&f, PERF_RECORD_LOST, 0, 11, 5, 2, 11, 11);
	put_numbers(&f, PERF_RECORD_LOST_SAMPLES, 0, 4, 0, 1, 0, 11);
	put_numbers(&f, PERF_RECORD_LOST_SAMPLES, 0, 3, 0, 1, 0, 11);
	replay();
	assert_int_equal(out.stats.lost_ring, 7);
	assert_int_equal(out.stats.received[0], 7);
}

static void threads_are_not_judged_over_a_loss(void **state)
{
	(void)state;
	put_two_events(&f);
	put_task(&f, PERF_RECORD_FORK, 8, 7, 8, 1);
	put_task(&f, PERF_RECORD_FORK, 8, 8, 9, 2);
	put_numbers(&f, PERF_RECORD_LOST, 0, 12, 5, 2, 3, 12);
	put_task(&f, PERF_RECORD_EXIT, 8, 8, 9, 4); /* it may have more threads than were told */
	put_task(&f, PERF_RECORD_EXIT, 8, 8, 8, 5);
	replay();
	assert_string_equal(out.text, "fork t=1 pid=8 ppid=7\nexit t=5 pid=8 ppid=8\n");
}

/* ---- events ---------------------------------------------------------------------------------- */

static void put_feature(uint64_t feature)
{
	rec_begin(&f, PERFDATA_FEATURE, 0);
	put(&f, feature, 8);
}

static void put_string(const char *text)
{
	put(&f, strlen(text) + 1, 4);
	base_buf_append(&f, text, strlen(text) + 1);
}

static void names_are_made_to_fit(void **state)
{
	static const char *const names[] = { "a b", "a_b",
					     "cpu/event=0x3c,umask=0x00,name=very_long/" };
	struct perf_event_attr a = file_attr(PERF_TYPE_RAW, 0x1a8, 100);

	(void)state;
	put_pipe_head(&f);
	for (uint64_t id = 1; id <= 4; id++)
		put_attr(&f, &a, id);
	a.type = 77;
	put_attr(&f, &a, 5);
	put_feature(PERFDATA_FEAT_EVENT_DESC);
	put(&f, 3, 4);
	put(&f, 4, 4);
	for (uint64_t i = 0; i < 3; i++) {
		put(&f, 0, 4);
		put(&f, 1, 4);
		put_string(names[i]);
		put(&f, i + 1, 8);
	}
	rec_end(&f);
	replay();
	assert_int_equal(out.nr_events, 5);
	assert_string_equal(out.events[0].name, "a_b");
	assert_string_equal(out.events[1].name, "a_b#2");
	assert_string_equal(out.events[2].name, "cpu/event=0x3c,umask=0x00,name=");
	assert_string_equal(out.events[3].name, "r1a8");
	assert_string_equal(out.events[4].name, "type77/1a8");
}

static void dummies_are_no_events(void **state)
{
	struct perf_event_attr a = file_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, 1);

	(void)state;
	put_pipe_head(&f);
	put_attr(&f, &a, 1);
	a.config = PERF_COUNT_SW_CPU_CLOCK;
	put_attr(&f, &a, 2);
	put_sample(&f, USER, 5, 7, 10, 2, 1);
	put_sample(&f, USER, 5, 7, 10, 1, 1);
	replay();
	assert_int_equal(out.nr_events, 1);
	assert_string_equal(out.text, "count t=10 pid=7 addr=0x5\n");
	assert_int_equal(out.stats.lost_bad, 1);
}

static void the_clock_tells_when(void **state)
{
	(void)state;
	put_two_events(&f);
	put_feature(PERFDATA_FEAT_CLOCK_DATA);
	put(&f, 1, 4);
	put(&f, 1, 4);
	put(&f, 1700000000123456789, 8);
	put(&f, 5, 8);
	rec_end(&f);
	put_feature(PERFDATA_FEAT_VERSION);
	put_string("6.1 x");
	rec_end(&f);
	replay();
	assert_int_equal(out.utc, 1700000000);
	assert_string_equal(out.describe, "replay: 'x', by perf 6.1_x on unknown");
}

/* The identifier's place is known whatever else a sample has; without it, ids must agree. */
static void samples_of_several_layouts(void **state)
{
	struct perf_event_attr a = file_attr(PERF_TYPE_RAW, 1, 100);

	(void)state;
	put_pipe_head(&f);
	a.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TIME;
	put_attr(&f, &a, 1);
	a.sample_type |= PERF_SAMPLE_TID | PERF_SAMPLE_ADDR | PERF_SAMPLE_RAW;
	put_attr(&f, &a, 2);
	rec_begin(&f, PERF_RECORD_SAMPLE, USER);
	put(&f, 1, 8);
	put(&f, 0x1111, 8);
	put(&f, 10, 8);
	rec_end(&f);
	rec_begin(&f, PERF_RECORD_SAMPLE, USER);
	put(&f, 2, 8);
	put(&f, 0x2222, 8);
	put(&f, 7, 4);
	put(&f, 8, 4);
	put(&f, 11, 8);
	put(&f, 0xadd, 8);
	rec_end(&f);
	rec_begin(&f, PERF_RECORD_SAMPLE, USER); /* too short for its event */
	put(&f, 2, 8);
	put(&f, 0x2222, 8);
	rec_end(&f);
	replay();
	assert_string_equal(out.text, "count t=10 pid=-1 addr=0x1111\n"
				      "count t=11 pid=7 tid=8 event=1 addr=0x2222\n");
	assert_int_equal(out.stats.lost_bad, 1);
	assert_int_equal(out.stats.received[1], 2);
}

/* ---- opened by name -------------------------------------------------------------------------- */

static void open_path(const char *path)
{
	const struct driver_config config = { .source = "replay", .replay_path = path };
	struct driver *d = NULL;

	out.r = driver_open(&config, &d, &out.err);
	if (out.r < 0)
		return;
	out.to = open_memstream(&out.text, &out.len);
	replay_drains(&out, d);
	driver_close(d);
	fclose(out.to);
}

static void files_are_told_by_their_magic(void **state)
{
	char path[] = "/tmp/perfdata-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	put_two_events(&f);
	put_sample(&f, USER, 1, 7, 10, 11, 1);
	assert_int_equal(base_write_all(fd, f.data, f.len), 0);
	close(fd);
	open_path(path);
	unlink(path);
	assert_string_equal(out.err.text, "");
	assert_string_equal(out.text, "count t=10 pid=7 addr=0x1\n");
}

static void nothing_waits_for_a_fifo(void **state)
{
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "/tmp/perfdata-fifo-%d", (int)getpid());
	assert_int_equal(mkfifo(path, 0600), 0);
	open_path(path);
	unlink(path);
	assert_true(out.r < 0);
	assert_non_null(strstr(out.err.text, "not a regular file"));
	out.err = (struct base_err){ 0 };
	open_path("/tmp");
	assert_non_null(strstr(out.err.text, "cannot replay '/tmp': not a regular file"));
	assert_non_null(strstr(out.err.hint, "the file 'data' in it"));
}

/* What was held for its order has come, and is handed on. */
static void a_silent_pipe_can_be_ended(void **state)
{
	struct driver_config config = { .source = "replay", .replay_path = "-" };
	struct driver *d = NULL;
	int ends[2];

	(void)state;
	put_two_events(&f);
	put_sample(&f, USER, 1, 7, 10, 11, 1);
	put_sample(&f, USER, 2, 7, 20, 11, 1);
	config.stop_fd = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
	/* In the midst of a record. */
	assert_int_equal(base_write_all(ends[1], f.data, f.len - 4), 0);
	assert_int_equal(driver_open(&config, &d, &out.err), 0);
	assert_int_equal(eventfd_write(config.stop_fd, 1), 0);
	out.to = open_memstream(&out.text, &out.len);
	replay_drains(&out, d);
	driver_close(d);
	fclose(out.to);
	assert_int_equal(out.r, 0);
	assert_string_equal(out.err.text, "");
	assert_string_equal(out.text, "count t=10 pid=7 addr=0x1\n");
	close(config.stop_fd);
	close(ends[0]);
	close(ends[1]);
}

/* What is held comes all the same. */
static void nothing_is_read_behind_a_stop(void **state)
{
	const struct driver_sink sink = { .count = take_count };
	struct driver *d = NULL;

	(void)state;
	put_two_events(&f);
	for (uint64_t i = 0; i < 20000; i++)
		put_sample(&f, USER, i, 7, 1 + i, 11, 1);
	assert_int_equal(perfdata_open_stream(fmemopen(f.data, f.len, "r"), "x", &d, &out.err), 0);
	assert_int_equal(driver_drain(d, false, &sink, &out.err), 1);
	driver_stats_get(d, &out.stats);
	assert_int_equal(out.stats.held, out.stats.received[0]);
	driver_stop(d);
	assert_int_equal(driver_drain(d, true, &sink, &out.err), 0);
	driver_stats_get(d, &out.stats);
	assert_int_equal(out.stats.held, 0);
	assert_in_range(out.stats.received[0], 1, 19999);
	driver_close(d);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(samples_come_by_event_and_mode),
		TEST(an_event_has_an_id_for_each_cpu),
		TEST(load_events_come_as_from_the_kernel),
		TEST(told_processes_share_no_mappings),
		TEST(the_kernels_code_is_named),
		TEST(the_kernel_without_a_mark),
		TEST(the_kernel_begins_at_its_symbol),
		TEST(marks_of_others_are_not_believed),
		TEST(perfs_own_build_ids_are_believed),
		TEST(numbers_below_0_are_nobody),
		TEST(build_ids_come_from_the_table),
		TEST(rounds_order_by_time),
		TEST(records_without_a_time),
		TEST(long_files_come_in_several_drains),
		TEST(a_slow_pipe_comes_in_several_drains),
		TEST(a_sink_may_stop_a_drain),
		TEST(losses_are_received),
		TEST(losses_are_not_counted_twice),
		TEST(threads_are_not_judged_over_a_loss),
		TEST(names_are_made_to_fit),
		TEST(dummies_are_no_events),
		TEST(the_clock_tells_when),
		TEST(samples_of_several_layouts),
		TEST(files_are_told_by_their_magic),
		TEST(nothing_waits_for_a_fifo),
		TEST(a_silent_pipe_can_be_ended),
		TEST(nothing_is_read_behind_a_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
