/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "stand_ins.h"

enum { HOUR = 3600, DAY = 24 * HOUR };
#define SECOND_NS UINT64_C(1000000000)

/* 2026-11-20 00:00 UTC */
#define MIDNIGHT INT64_C(1795132800)

static void zone(const char *tz)
{
	setenv("TZ", tz, 1);
	tzset();
}

static void slots_are_local(void **state)
{
	(void)state;
	zone("UTC0");
	assert_int_equal(daily_slot(MIDNIGHT + 3 * HOUR, 0), MIDNIGHT + 3 * HOUR);
	assert_int_equal(daily_slot(MIDNIGHT + 3 * HOUR - 1, 0), MIDNIGHT - 21 * HOUR);
	assert_int_equal(daily_slot(MIDNIGHT + 23 * HOUR, 7199), MIDNIGHT + 5 * HOUR - 1);
	zone("XXX-5"); /* five hours east: 03:00 there is 22:00 UTC */
	assert_int_equal(daily_slot(MIDNIGHT, 0), MIDNIGHT - 2 * HOUR);
	zone("XXX8");
	assert_int_equal(daily_slot(MIDNIGHT + 11 * HOUR, 0), MIDNIGHT + 11 * HOUR);
}

/* In the night in which 02:00 becomes 03:00, and in that in which 03:00 becomes 02:00. */
static void slots_are_once_a_day_when_summer_comes_and_goes(void **state)
{
	const char *tz = "CET-1CEST,M3.5.0,M10.5.0/3";
	int64_t at = 1774656000; /* 2026-03-28 00:00 UTC */
	int64_t last = 0;
	int nr = 0;

	(void)state;
	zone(tz);
	for (int i = 0; i < 4 * 24 * 4; i++) {
		int64_t slot = daily_slot(at + i * HOUR / 4, 600);

		assert_true(slot >= last && slot <= at + i * HOUR / 4);
		nr += i && slot != last;
		last = slot;
	}
	assert_int_equal(nr, 4);
	at = 1792800000; /* 2026-10-24 00:00 UTC */
	last = nr = 0;
	for (int i = 0; i < 4 * 24 * 4; i++) {
		int64_t slot = daily_slot(at + i * HOUR / 4, 600);

		assert_true(slot >= last);
		nr += i && slot != last;
		last = slot;
	}
	assert_int_equal(nr, 4);
}

static void is_due_once_a_day(void **state)
{
	struct daily_clock s = { 0 };
	int nr = 0;

	(void)state;
	zone("UTC0");
	/* Nobody knows when it was done before. */
	assert_false(daily_is_due(&s, MIDNIGHT + 4 * HOUR, 1000, 0));
	assert_int_equal(s.last, MIDNIGHT + 4 * HOUR);
	for (int i = 0; i < 3 * DAY; i += 60) {
		int64_t now = MIDNIGHT + 4 * HOUR + i;

		if (!daily_is_due(&s, now, 1000 + i, 600))
			continue;
		assert_int_equal((now - MIDNIGHT) % DAY, 3 * HOUR + 600);
		s.last = now;
		nr++;
	}
	assert_int_equal(nr, 3);
	/* A daemon that is started again does not repeat it, and does what was left out. */
	s.looked = false;
	assert_false(daily_is_due(&s, s.last + HOUR, 5, 600));
	s.looked = false;
	assert_false(daily_is_due(&s, s.last + 30 * HOUR, 5, 600));
	assert_false(daily_is_due(&s, s.last + 30 * HOUR + 599, 604, 600));
	assert_true(daily_is_due(&s, s.last + 30 * HOUR + 600, 605, 600));
}

static void jumps_put_it_off(void **state)
{
	struct daily_clock s = { .last = MIDNIGHT };
	const int64_t year = 365 * DAY;

	(void)state;
	zone("UTC0");
	assert_false(daily_is_due(&s, MIDNIGHT + HOUR, 1000, 0));
	/* The clock goes a year ahead: not at once is everything old. */
	assert_false(daily_is_due(&s, MIDNIGHT + year + 4 * HOUR, 1060, 0));
	assert_false(daily_is_due(&s, MIDNIGHT + year + 5 * HOUR, 1060 + HOUR, 0));
	/* It is put right: what was done is in the future. */
	assert_false(daily_is_due(&s, MIDNIGHT + 4 * HOUR, 1120 + HOUR, 0));
	assert_int_equal(s.last, MIDNIGHT + 4 * HOUR);
	assert_true(daily_is_due(&s, MIDNIGHT + DAY + 4 * HOUR, 1120 + HOUR + DAY, 0));
	/* A suspended machine's time since boot goes on. */
	assert_true(daily_is_due(&s, MIDNIGHT + 3 * DAY, 1120 - 3 * HOUR + 3 * DAY, 0));
	/* By the file somebody did it next year. */
	s = (struct daily_clock){ .last = MIDNIGHT + year };
	assert_false(daily_is_due(&s, MIDNIGHT + 4 * HOUR, 1, 0));
	assert_int_equal(s.last, MIDNIGHT + 4 * HOUR);
}

/* The machine's clock is put right by another one seconds after the daemon began. */
static void a_clock_wrong_at_boot(void **state)
{
	struct daily_clock s = { .last = MIDNIGHT };
	const int64_t year = 365 * DAY;

	(void)state;
	zone("UTC0");
	assert_false(daily_is_due(&s, MIDNIGHT + year + 4 * HOUR, 10, 0));
	assert_false(daily_is_due(&s, MIDNIGHT + year + 4 * HOUR + 10, 20, 0));
	assert_false(daily_is_due(&s, MIDNIGHT + 4 * HOUR, 30, 0));
	assert_int_equal(s.last, MIDNIGHT + 4 * HOUR);
	assert_false(daily_is_due(&s, MIDNIGHT + 5 * HOUR, 30 + HOUR, 0));
	assert_true(daily_is_due(&s, MIDNIGHT + DAY + 4 * HOUR, 30 + DAY, 0));
	/* Behind it: what was done is in the future at first. */
	s = (struct daily_clock){ .last = MIDNIGHT };
	assert_false(daily_is_due(&s, 4 * HOUR, 10, 0));
	assert_false(daily_is_due(&s, MIDNIGHT + 4 * HOUR, 20, 0));
	assert_int_equal(s.last, MIDNIGHT + 4 * HOUR);
	assert_false(daily_is_due(&s, MIDNIGHT + 5 * HOUR, 20 + HOUR, 0));
}

/* ---- in a daemon ----------------------------------------------------------------------------- */

static char folder[64];
static struct trial t;
static struct daemon d;
static FILE *quiet;

static int setup(void **state)
{
	(void)state;
	zone("UTC");
	strcpy(folder, "/tmp/dcpi-daily-XXXXXX");
	assert_non_null(mkdtemp(folder));
	trial_daemon(&t, &d, folder);
	d.opt.database = folder;
	d.opt.gc_daily = true;
	daemon_connect(&d);
	base_log_init(quiet, BASE_LOG_ERROR, BASE_LOG_BARE);
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	daemon_maintain_close(&d);
	trial_daemon_close(&t, &d);
	base_log_init(stderr, BASE_LOG_ERROR, BASE_LOG_BARE);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
	return 0;
}

static int64_t remembered(void)
{
	struct base_buf text = { 0 };
	int64_t at = -1;

	if (base_file_read(profdb_dir_fd(d.db), ".gc-here", 64, &text, NULL) >= 0 &&
	    base_buf_append(&text, "", 1) >= 0)
		at = strtoll((const char *)text.data, NULL, 10);
	base_buf_release(&text);
	return at;
}

static void remember(const char *text)
{
	int fd = openat(profdb_dir_fd(d.db), ".gc-here", O_CREAT | O_TRUNC | O_WRONLY, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(close(fd), 0);
}

static void remember_days_ago(int days)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld\n", (long long)time(NULL) - days * DAY);
	remember(text);
}

/* An epoch of another platform with a file of @len bytes, written when its name says. */
static void make_epoch(const char *name, off_t len)
{
	struct timespec times[2] = { { .tv_sec = 1577880000 }, { .tv_sec = 1577880000 } };
	char path[160];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(mkdir(path, 0700), 0);
	strcat(path, "/box");
	assert_int_equal(mkdir(path, 0700), 0);
	strcat(path, "/other.named.p01");
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, len), 0);
	assert_int_equal(close(fd), 0);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	*strrchr(path, '/') = '\0';
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static bool has_epoch(const char *name)
{
	return faccessat(profdb_dir_fd(d.db), name, F_OK, 0) == 0;
}

/* At the first look nothing is due yet. */
static void turn_ten_minutes_later(void)
{
	daemon_maintain(&d);
	assert_int_equal(d.daily.child, 0);
	d.daily.when.first -= 600;
	d.daily.next_ns = 0;
	daemon_maintain(&d);
}

static void turn_until_done(void)
{
	for (int i = 0; i < 10000 && d.daily.child; i++) {
		usleep(1000);
		daemon_maintain(&d);
	}
	assert_int_equal(d.daily.child, 0);
}

/* Of a first daemon nobody knows what was before it: it waits, and the next one knows. */
static void begins_to_count(const char *text)
{
	int64_t before = time(NULL);

	if (text)
		remember(text);
	d.daily = (struct daily){ 0 };
	daemon_connect(&d);
	daemon_maintain(&d);
	assert_int_equal(d.daily.child, 0);
	assert_in_range(remembered(), before, time(NULL));
}

static void a_first_daemon_waits(void **state)
{
	(void)state;
	d.opt.gc_daily = false;
	daemon_connect(&d);
	daemon_maintain(&d);
	assert_int_equal(remembered(), -1);
	d.opt.gc_daily = true;
	daemon_connect(&d);
	begins_to_count(NULL);
	begins_to_count("");
	begins_to_count("yesterday\n");
	begins_to_count("99999999999999\n"); /* to come */
	assert_int_equal(stand_ins.nr_spared, 0);
}

/* A look is not had at each turn, nor is what is known written again. */
static void looks_now_and_then(void **state)
{
	uint64_t before_ns = base_now_ns();

	(void)state;
	begins_to_count(NULL);
	assert_in_range(d.daily.next_ns, before_ns + 10 * SECOND_NS,
			base_now_ns() + 10 * SECOND_NS);
	remember("1\n");
	d.daily.next_ns = UINT64_MAX;
	daemon_maintain(&d);
	assert_int_equal(d.daily.next_ns, UINT64_MAX);
	d.daily.next_ns = 0;
	daemon_maintain(&d);
	assert_int_equal(remembered(), 1);
	assert_int_equal(d.daily.child, 0);
}

static void makes_good_for_a_night(void **state)
{
	int64_t before = time(NULL);

	(void)state;
	make_epoch("202001010000", 1);
	make_epoch("202001020000", 1);
	make_epoch("202001030000", 3 << 20);
	make_epoch("202001040000", 1);
	remember_days_ago(2);
	/* Not while the database is away. */
	d.gone_ns = 1;
	daemon_maintain(&d);
	assert_int_equal(d.daily.child, 0);
	d.gone_ns = 0;
	d.opt.gc_size_mib = 1;
	daemon_connect(&d);
	turn_ten_minutes_later();
	assert_true(d.daily.child > 0);
	assert_int_equal(stand_ins.nr_spared, 1);
	turn_until_done();
	/* Two are old, the third is too much; one is small, one open. */
	assert_false(has_epoch("202001010000"));
	assert_false(has_epoch("202001020000"));
	assert_false(has_epoch("202001030000"));
	assert_true(has_epoch("202001040000"));
	assert_true(has_epoch(d.epoch));
	assert_in_range(remembered(), before, time(NULL));
	/* Neither this daemon does it again, nor the next one. */
	for (int i = 0; i < 2; i++) {
		d.daily.next_ns = 0;
		turn_ten_minutes_later();
		assert_int_equal(d.daily.child, 0);
		d.daily = (struct daily){ 0 };
		daemon_connect(&d);
	}
	assert_int_equal(stand_ins.nr_spared, 1);
}

/* Somebody else keeps house: later, not at once. */
static void tries_again_later(void **state)
{
	struct profdb *other = NULL;
	uint64_t before_ns;

	(void)state;
	assert_int_equal(profdb_open(folder, false, &other, NULL), 0);
	assert_int_equal(profdb_keep(other, NULL), 0);
	remember_days_ago(3);
	before_ns = base_now_ns();
	turn_ten_minutes_later();
	assert_true(d.daily.child > 0);
	turn_until_done();
	profdb_close(other);
	assert_true(remembered() < time(NULL) - 2 * DAY);
	assert_in_range(d.daily.next_ns, before_ns + 600 * SECOND_NS,
			base_now_ns() + 600 * SECOND_NS);
	d.daily.next_ns = 0;
	daemon_maintain(&d);
	turn_until_done();
	assert_true(remembered() > time(NULL) - DAY);
}

/* What it may not remove stays, and is a warning; all else is done. */
static int of_another_user(void)
{
	FILE *said = tmpfile();

	if (!said || setgroups(0, NULL) < 0 || setgid(65534) < 0 || setuid(65534) < 0)
		return 1;
	base_log_init(said, BASE_LOG_WARN, BASE_LOG_BARE);
	turn_ten_minutes_later();
	turn_until_done();
	return remembered() < time(NULL) - DAY || !has_epoch(".gone-202601010000") ||
	       trial_said(said, "housekeeping: cannot remove") != 1;
}

static void tells_what_it_may_not_remove(void **state)
{
	int status = -1;
	pid_t pid;

	(void)state;
	if (geteuid() != 0 || chown(folder, 65534, 65534) < 0)
		skip();
	remember_days_ago(2);
	assert_int_equal(fchownat(profdb_dir_fd(d.db), ".gc-here", 65534, 65534, 0), 0);
	make_epoch(".gone-202601010000", 1);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(of_another_user());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void ends_with_the_daemon(void **state)
{
	char path[64];
	int fd;

	(void)state;
	daemon_maintain_close(&d);
	remember_days_ago(2);
	turn_ten_minutes_later();
	assert_true(d.daily.child > 0);
	fd = d.daily.report;
	daemon_maintain_close(&d);
	assert_int_equal(d.daily.child, 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_not_equal(access(path, F_OK), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_are_local),
		cmocka_unit_test(slots_are_once_a_day_when_summer_comes_and_goes),
		cmocka_unit_test(is_due_once_a_day),
		cmocka_unit_test(jumps_put_it_off),
		cmocka_unit_test(a_clock_wrong_at_boot),
		TEST(a_first_daemon_waits),
		TEST(looks_now_and_then),
		TEST(makes_good_for_a_night),
		TEST(tries_again_later),
		TEST(tells_what_it_may_not_remove),
		TEST(ends_with_the_daemon),
	};

	quiet = fopen("/dev/null", "w");
	return quiet ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
