/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "replay_source.h"

#define HEAD "dcpi-replay 1\nutc 1700000000\nevent cpu-clock 1000000\n"

static struct base_err err;

static struct driver *open_text(const char *text)
{
	FILE *in = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	struct driver *d = NULL;

	err = (struct base_err){ 0 };
	assert_non_null(in);
	if (replay_open_stream(in, "x", &d, &err) < 0)
		assert_null(d);
	return d;
}

/* ---- round trip ------------------------------------------------------------------------------ */

static int write_load(void *ctx, const struct driver_load *load)
{
	return driver_record_load(ctx, load);
}

static int write_count(void *ctx, const struct driver_count *count)
{
	return driver_record_count(ctx, count);
}

/* Replay @text and record it again; the caller frees. */
static char *record_again(const char *text, struct driver_stats *stats)
{
	struct driver *d = open_text(text);
	struct driver_sink sink = { .load = write_load, .count = write_count };
	char *out = NULL;
	size_t len;
	int r;

	assert_non_null(d);
	sink.ctx = open_memstream(&out, &len);
	assert_non_null(sink.ctx);
	assert_int_equal(driver_start(d, &err), 0);
	assert_int_equal(driver_record_head(sink.ctx, d, driver_recorded_utc(d)), 0);
	while ((r = driver_drain(d, false, &sink, &err)) > 0)
		;
	assert_string_equal(err.text, "");
	assert_int_equal(r, 0);
	driver_stop(d);
	if (stats)
		driver_stats_get(d, stats);
	fclose(sink.ctx);
	driver_close(d);
	return out;
}

static const char every_kind[] =
	"dcpi-replay 1\n"
	"utc 1700000000\n"
	"event cycles 2000000\n"
	"event cpu-clock 1000000\n"
	"kernel addr=0xffffffff81000000 len=0x1000000 id=00ff\n"
	"kernel t=1 addr=0xffffffff81000000 len=0x1000000 path=6.1.0\n"
	"mmap pid=7 addr=0x400000 len=0x1000 path=/bin/x\n"
	"fork t=5 pid=8 ppid=7\n"
	"fork t=5 pid=8 ppid=7 tid=9\n"
	"fork t=5 pid=8 ppid=7 cursor=18446744073709551615\n"
	"fork t=5 pid=8 ppid=7 cursor=0\n"
	"exec t=6 pid=8 path=x\n"
	"exec t=6 pid=8\n"
	"comm t=6 pid=8 path=two words = three\n"
	"mmap t=7 pid=8 tid=9 addr=0x7f0000000000 len=0x2000 off=0x1000 prot=7 major=8 minor=1"
	" inode=77 path=/a b\\\\c\\nd\n"
	"mmap t=7 pid=8 addr=0x1 len=0x1 prot=0 id=abcdef0123456789abcdef0123456789abcdef01"
	" path=[vdso]\n"
	"ksymbol t=8 addr=0xffffffffc0000000 len=0x80 path=bpf_prog_1\n"
	"ksymbol t=9 gone=1 addr=0xffffffffc0000000 len=0x80 path=bpf_prog_1\n"
	"dyn t=9 pid=8 data=0800000001000000\n"
	"dyn t=9 pid=8 data=\n"
	"label t=9 pid=8 path=run1\n"
	"count t=10 pid=8 addr=0x7f0000000010\n"
	"count t=10 pid=8 tid=9 event=1 mode=kernel gen=3 addr=0xffffffff81000010 n=18\n"
	"count t=10 pid=8 gen=0 addr=0x7f0000000010\n"
	"count t=10 pid=8 unread=1 addr=0x7f0000000010\n"
	"count t=10 pid=0 mode=kernel addr=0xffffffff81000020\n"
	"count pid=-1 mode=other addr=0x0 n=0\n"
	"count t=18446744073709551615 pid=8 addr=0xffffffffffffffff n=5000000000\n"
	"exit t=11 pid=8\n"
	"exit t=11 pid=8 ppid=7 tid=9\n";

static void what_is_replayed_is_recorded_alike(void **state)
{
	struct driver_stats stats;
	char *out = record_again(every_kind, &stats);

	(void)state;
	assert_string_equal(out, every_kind);
	assert_int_equal(stats.received[0], 5000000004);
	assert_int_equal(stats.received[1], 18);
	assert_int_equal(stats.missed[0] + stats.missed[1], 0);
	assert_int_equal(stats.held + stats.lost_ring + stats.lost_load + stats.lost_bad, 0);
	free(out);
}

static void other_spellings_mean_the_same(void **state)
{
	char *out = record_again("dcpi-replay 1\n# by hand\n\nutc 0x10\nevent e 0\n"
				 "# records\n  count  addr=16   pid=0x8 tid=8 mode=user n=1\n\n"
				 "count pid=8 t=0 addr=0xFF event=0\n",
				 NULL);

	(void)state;
	assert_string_equal(out, "dcpi-replay 1\nutc 16\nevent e 0\n"
				 "count pid=8 addr=0x10\ncount pid=8 addr=0xff\n");
	free(out);
}

/* ---- what comes out -------------------------------------------------------------------------- */

struct last {
	struct driver_load load;
	char path[64];
	uint8_t data[64];
	struct driver_count count;
	uint64_t nr;
	int answer; /* to the driver */
};

static int last_load(void *ctx, const struct driver_load *load)
{
	struct last *l = ctx;

	l->load = *load;
	snprintf(l->path, sizeof(l->path), "%s", load->path ? load->path : "(none)");
	if (load->data_len) {
		assert_int_equal((uintptr_t)load->data % 8, 0);
		assert_true(load->data_len <= sizeof(l->data));
		memcpy(l->data, load->data, load->data_len);
	}
	l->nr++;
	return l->answer;
}

static int last_count(void *ctx, const struct driver_count *count)
{
	struct last *l = ctx;

	l->count = *count;
	l->nr++;
	return l->answer;
}

static void fields_reach_the_sink(void **state)
{
	struct last l = { 0 };
	const struct driver_sink sink = { .load = last_load, .count = last_count, .ctx = &l };
	struct driver *d = open_text(HEAD "mmap t=7 pid=8 addr=0x10 len=0x20 off=0x30 major=8 "
					  "minor=1 inode=77 id=0aFF path=/a\\nb\\\\ c\n");

	(void)state;
	assert_non_null(d);
	assert_true(driver_is_recorded(d));
	assert_int_equal(driver_recorded_utc(d), 1700000000);
	assert_int_equal(driver_poll_fd(d), -1);
	assert_int_equal(driver_nr_events(d), 1);
	assert_string_equal(driver_event_get(d, 0)->name, "cpu-clock");
	assert_int_equal(driver_event_get(d, 0)->period, 1000000);
	assert_null(driver_event_get(d, 1));
	assert_string_equal(driver_describe(d), "replay: 'x'");
	assert_int_equal(driver_drain(d, false, &sink, &err), 0);
	assert_int_equal(l.load.kind, DRIVER_LOAD_MMAP);
	assert_int_equal(l.load.time_ns, 7);
	assert_int_equal(l.load.pid, 8);
	assert_int_equal(l.load.tid, 8);
	assert_int_equal(l.load.addr, 0x10);
	assert_int_equal(l.load.len, 0x20);
	assert_int_equal(l.load.file_off, 0x30);
	assert_int_equal(l.load.prot, 5);
	assert_int_equal(l.load.dev_major, 8);
	assert_int_equal(l.load.dev_minor, 1);
	assert_int_equal(l.load.inode, 77);
	assert_int_equal(l.load.id.len, 2);
	assert_int_equal(l.load.id.bytes[1], 0xff);
	assert_string_equal(l.path, "/a\nb\\ c");
	assert_int_equal(l.nr, 1);
	driver_close(d);
}

static void dynamic_records_are_aligned_bytes(void **state)
{
	static const uint8_t want[] = { 0x18, 0, 0, 0, 2, 0, 0xff, 0xee };
	struct last l = { 0 };
	const struct driver_sink sink = { .load = last_load, .count = last_count, .ctx = &l };
	struct driver *d = open_text(HEAD "dyn pid=8 data=180000000200ffEE\n");

	(void)state;
	assert_int_equal(driver_drain(d, true, &sink, &err), 0);
	assert_int_equal(l.load.kind, DRIVER_LOAD_DYN);
	assert_int_equal(l.load.pid, 8);
	assert_int_equal(l.load.data_len, sizeof(want));
	assert_memory_equal(l.data, want, sizeof(want));
	driver_close(d);
}

static void long_streams_come_in_several_drains(void **state)
{
	enum { NR = 10000 };
	struct last l = { 0 };
	const struct driver_sink sink = { .load = last_load, .count = last_count, .ctx = &l };
	struct base_buf text = { 0 };
	struct driver_stats stats;
	struct driver *d;
	int drains = 0;

	(void)state;
	base_buf_printf(&text, "%s", HEAD);
	for (int i = 0; i < NR; i++)
		base_buf_printf(&text, "count t=%d pid=1 addr=%d\n", NR - i, i);
	base_buf_append(&text, "", 1);
	d = open_text((char *)text.data);
	assert_non_null(d);
	while (driver_drain(d, true, &sink, &err) == 1) {
		drains++;
		driver_stats_get(d, &stats);
		assert_int_equal(stats.received[0], l.nr);
	}
	assert_int_equal(drains, NR / 4096);
	assert_int_equal(l.nr, NR);
	/* Times fall, the order of the file stays. */
	assert_int_equal(l.count.addr, NR - 1);
	assert_int_equal(driver_drain(d, true, &sink, &err), 0);
	assert_int_equal(l.nr, NR);
	driver_close(d);
	base_buf_release(&text);
}

static void a_sink_may_stop_a_drain(void **state)
{
	struct last l = { .answer = -42 };
	const struct driver_sink sink = { .load = last_load, .count = last_count, .ctx = &l };
	struct driver *d = open_text(HEAD "exit pid=1\ncount pid=1 addr=1\nexit pid=2\n");

	(void)state;
	assert_int_equal(driver_drain(d, false, &sink, &err), -42);
	assert_int_equal(driver_drain(d, false, &sink, &err), -42);
	assert_int_equal(l.nr, 2);
	assert_string_equal(err.text, "");
	l.answer = 0;
	assert_int_equal(driver_drain(d, false, &sink, &err), 0);
	assert_int_equal(l.nr, 3);
	driver_close(d);
}

/* A pipe that somebody holds open. */
static void a_silent_pipe_can_be_ended(void **state)
{
	static const char text[] = HEAD "count pid=1 addr=1\ncount pid=1 ad";
	struct driver_config config = { .source = "replay", .replay_path = "-" };
	struct last l = { 0 };
	const struct driver_sink sink = { .load = last_load, .count = last_count, .ctx = &l };
	struct driver *d = NULL;
	int ends[2];

	(void)state;
	err = (struct base_err){ 0 };
	config.stop_fd = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
	assert_int_equal(base_write_all(ends[1], text, strlen(text)), 0);
	assert_int_equal(driver_open(&config, &d, &err), 0);
	assert_int_equal(eventfd_write(config.stop_fd, 1), 0);
	for (int again = 0; again < 2; again++)
		assert_int_equal(driver_drain(d, false, &sink, &err), 0);
	assert_string_equal(err.text, "");
	assert_int_equal(l.nr, 1);
	driver_close(d);
	close(config.stop_fd);
	close(ends[0]);
	close(ends[1]);
}

static void nothing_is_read_behind_a_stop(void **state)
{
	struct last l = { 0 };
	const struct driver_sink sink = { .load = last_load, .count = last_count, .ctx = &l };
	struct driver *d = open_text(HEAD "count pid=1 addr=1\n");

	(void)state;
	driver_stop(d);
	assert_int_equal(driver_drain(d, true, &sink, &err), 0);
	assert_int_equal(l.nr, 0);
	driver_close(d);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void bad_heads_are_refused(void **state)
{
	static const struct {
		const char *text, *want;
		int code;
	} bad[] = {
		{ "\n", "cannot replay 'x': not a recorded stream", DCPI_EFORMAT },
		{ "#!/bin/sh\n", "not a recorded stream", DCPI_EFORMAT },
		{ "dcpi-replay\n", "line 1: bad version", DCPI_EFORMAT },
		{ "dcpi-replay 1 2\n", "line 1: bad version", DCPI_EFORMAT },
		{ "dcpi-replay 2\nutc 1\n", "line 1: version 2 is not known", DCPI_EVERSION },
		{ "dcpi-replay 1\n", "no 'utc' before the first record", DCPI_EFORMAT },
		{ "dcpi-replay 1\nexit pid=1\n", "line 2: no 'utc'", DCPI_EFORMAT },
		{ "dcpi-replay 1\nutc\n", "line 2: bad utc", DCPI_EFORMAT },
		{ "dcpi-replay 1\nutc -1\n", "line 2: bad utc", DCPI_EFORMAT },
		{ "dcpi-replay 1\nutc 1\nutc 1\n", "line 3: bad utc", DCPI_EFORMAT },
		{ "dcpi-replay 1\nutc 1\nevent\n", "line 3: bad event", DCPI_EFORMAT },
		{ "dcpi-replay 1\nutc 1\nevent cycles\n", "line 3: bad event", DCPI_EFORMAT },
		{ "dcpi-replay 1\nutc 1\nevent a 1 b\n", "line 3: bad event", DCPI_EFORMAT },
		{ "dcpi-replay 1\nutc 1\nevent aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbb 1\n",
		  "line 3: bad event", DCPI_EFORMAT },
		{ "dcpi-replay 1\nutc 1\nevent a\tb 1\n", "line 3: bad event", DCPI_EFORMAT },
		{ "dcpi-replay 1\nutc 1\nevent a\x7f 1\n", "line 3: bad event", DCPI_EFORMAT },
		{ "dcpi-replay 1\nutc 1\nevent a 1\nevent b 1\nevent a 2\n",
		  "line 5: event 'a' twice", DCPI_EFORMAT },
		{ "dcpi-replay 1\nutc 1", "line 2: cut in the middle of a line", DCPI_ETRUNCATED },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_null(open_text(bad[i].text));
		assert_int_equal(err.code, -bad[i].code);
		if (!strstr(err.text, bad[i].want))
			fail_msg("'%s' is not in '%s'", bad[i].want, err.text);
	}
}

static void too_many_events_are_refused(void **state)
{
	struct base_buf text = { 0 };
	struct driver *d;

	(void)state;
	base_buf_printf(&text, "dcpi-replay 1\nutc 1\n");
	for (int i = 0; i < DRIVER_NR_EVENTS; i++)
		base_buf_printf(&text, "event e%d 1\n", i);
	d = open_text((char *)text.data);
	assert_non_null(d);
	assert_int_equal(driver_nr_events(d), DRIVER_NR_EVENTS);
	driver_close(d);
	base_buf_printf(&text, "event more 1\n");
	assert_null(open_text((char *)text.data));
	assert_non_null(strstr(err.text, "line 19: more than 16 events"));
	base_buf_release(&text);
}

static void bad_records_are_named_by_line(void **state)
{
	static const struct {
		const char *line, *want;
	} bad[] = {
		{ "born pid=1", "unknown kind of record 'born'" },
		{ "utc 5", "unknown kind of record 'utc'" },
		{ "exits pid=1", "unknown kind of record 'exits'" },
		{ "   ", "blanks alone" },
		{ "\tcount pid=1 addr=1", "unknown kind of record '?count'" },
		{ "count pid=1", "'count' needs 'addr='" },
		{ "count addr=1", "'count' needs 'pid='" },
		{ "fork pid=1", "'fork' needs 'ppid='" },
		{ "exit pid=1 cursor=1", "unknown key 'cursor'" },
		{ "fork pid=1 ppid=2 cursor=-1", "bad value of 'cursor='" },
		{ "mmap pid=1 addr=1 len=1", "'mmap' needs 'path='" },
		{ "dyn pid=1", "'dyn' needs 'data='" },
		{ "count pid=1 addr=1 len=1", "unknown key 'len'" },
		{ "count pid=1 addr=1 x", "unknown key 'x'" },
		{ "count pid=1 addr=1 =3", "unknown key ''" },
		{ "count pid=1 pid=1 addr=1", "'pid=' twice" },
		{ "count pid=-2 addr=1", "bad value of 'pid='" },
		{ "count pid=2147483648 addr=1", "bad value of 'pid='" },
		{ "count pid=1x addr=1", "bad value of 'pid='" },
		{ "count pid= addr=1", "bad value of 'pid='" },
		{ "count pid=1 addr=0x", "bad value of 'addr='" },
		{ "count pid=1 addr=0x1g", "bad value of 'addr='" },
		{ "count pid=1 addr=ff", "bad value of 'addr='" },
		{ "count pid=1 addr=-1", "bad value of 'addr='" },
		{ "count pid=1 addr=0x10000000000000000", "bad value of 'addr='" },
		{ "count pid=1 addr=18446744073709551616", "bad value of 'addr='" },
		{ "count pid=1 addr=1 mode=guest", "bad value of 'mode='" },
		{ "count pid=1 addr=1 gen=4294967296", "bad value of 'gen='" },
		{ "count pid=1 addr=1 event=1", "event 1 was not announced" },
		{ "ksymbol addr=1 len=1 gone=2 path=x", "bad value of 'gone='" },
		{ "mmap pid=1 addr=1 len=1 id=abc path=x", "bad value of 'id='" },
		{ "mmap pid=1 addr=1 len=1 id= path=x", "bad value of 'id='" },
		{ "mmap pid=1 addr=1 len=1 path=x\\ty", "bad value of 'path='" },
		{ "mmap pid=1 addr=1 len=1 path=x\\", "bad value of 'path='" },
		{ "dyn pid=1 data=123", "bad value of 'data='" },
		{ "dyn pid=1 data=zz", "bad value of 'data='" },
		{ "dyn pid=1 data=00 t=1", "'data=' is not last" },
		{ "count pid=1 addr=1 n=18446744073709551615", "sum of counts does not fit" },
	};
	struct last l = { 0 };
	const struct driver_sink sink = { .load = last_load, .count = last_count, .ctx = &l };
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), HEAD "count pid=1 addr=1\n%s\nexit pid=9\n",
			 bad[i].line);
		struct driver *d = open_text(text);

		assert_non_null(d);
		l = (struct last){ 0 };
		/* It stays failed, and what stands behind is not delivered. */
		for (int again = 0; again < 2; again++) {
			err = (struct base_err){ 0 };
			assert_int_equal(driver_drain(d, false, &sink, &err), -DCPI_EFORMAT);
			if (!strstr(err.text, "cannot replay 'x': line 5: ") ||
			    !strstr(err.text, bad[i].want))
				fail_msg("'%s' is not in '%s'", bad[i].want, err.text);
		}
		assert_int_equal(l.nr, 1);
		driver_close(d);
	}
}

static void cut_and_binary_streams_are_refused(void **state)
{
	static const char nul[] = HEAD "exit pid=1\0\n";
	struct last l = { 0 };
	const struct driver_sink sink = { .load = last_load, .count = last_count, .ctx = &l };
	struct driver *d = open_text(HEAD "exit pid=1\nexit pid=1");

	(void)state;
	assert_int_equal(driver_drain(d, false, &sink, &err), -DCPI_ETRUNCATED);
	assert_non_null(strstr(err.text, "line 5: cut in the middle of a line"));
	assert_int_equal(l.nr, 1);
	driver_close(d);
	assert_int_equal(replay_open_stream(fmemopen((void *)(uintptr_t)nul, sizeof(nul) - 1, "r"),
					    "x", &d, &err),
			 -DCPI_EFORMAT);
}

static void missing_files_are_named(void **state)
{
	const struct driver_config config = { .source = "replay", .replay_path = "/nonexistent" };
	struct driver *d;

	(void)state;
	err = (struct base_err){ 0 };
	assert_true(driver_open(&config, &d, &err) < 0);
	assert_string_equal(err.text, "cannot open '/nonexistent': No such file or directory");
}

static void full_disks_are_noticed(void **state)
{
	const struct driver_count count = { .pid = 1 };
	FILE *full = fopen("/dev/full", "w");

	(void)state;
	if (!full)
		skip();
	setvbuf(full, NULL, _IONBF, 0);
	assert_true(driver_record_count(full, &count) < 0);
	fclose(full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_replayed_is_recorded_alike),
		cmocka_unit_test(other_spellings_mean_the_same),
		cmocka_unit_test(fields_reach_the_sink),
		cmocka_unit_test(dynamic_records_are_aligned_bytes),
		cmocka_unit_test(long_streams_come_in_several_drains),
		cmocka_unit_test(a_sink_may_stop_a_drain),
		cmocka_unit_test(a_silent_pipe_can_be_ended),
		cmocka_unit_test(nothing_is_read_behind_a_stop),
		cmocka_unit_test(bad_heads_are_refused),
		cmocka_unit_test(too_many_events_are_refused),
		cmocka_unit_test(bad_records_are_named_by_line),
		cmocka_unit_test(cut_and_binary_streams_are_refused),
		cmocka_unit_test(missing_files_are_named),
		cmocka_unit_test(full_disks_are_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
