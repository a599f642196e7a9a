/* SPDX-License-Identifier: BSD-2-Clause */
/* The quota of pseudo-images: what nothing refers to goes, else no more is taken in. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "budget.h"
#include "stand_ins.h"

static char folder[64];
static struct trial t;
static struct daemon d;
static FILE *said;

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/dcpi-quota-XXXXXX");
	assert_non_null(mkdtemp(folder));
	trial_daemon(&t, &d, folder);
	d.opt.database = folder;
	d.follow.live = d.attribute.live = true;
	d.quota.max = 1000;
	said = tmpfile();
	assert_non_null(said);
	base_log_init(said, BASE_LOG_INFO, BASE_LOG_BARE);
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	daemon_maintain_close(&d);
	trial_daemon_close(&t, &d);
	base_log_init(stderr, BASE_LOG_ERROR, BASE_LOG_BARE);
	fclose(said);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
	return 0;
}

/* A file of long ago. What a killed daemon began, .tmp-, may go; what cannot be read stays. */
static void put(const char *name, off_t len)
{
	const struct timespec times[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	int fd = openat(profdb_dyn_fd(d.db), name, O_CREAT | O_WRONLY, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, len), 0);
	assert_int_equal(futimens(fd, times), 0);
	assert_int_equal(close(fd), 0);
}

/* The file is an image of a user's code. */
static void put_of(const char *name, off_t len, uint32_t uid)
{
	int fd;

	put(name, len);
	fd = openat(profdb_dyn_fd(d.db), name, O_RDONLY);
	assert_int_equal(base_reader_set(fd, uid, true), 0);
	assert_int_equal(close(fd), 0);
}

static bool is_there(const char *name)
{
	return faccessat(profdb_dyn_fd(d.db), name, F_OK, 0) == 0;
}

/* A new image was written: it is measured. */
static void check(void)
{
	stand_ins.images_written++;
	daemon_keep_quota(&d);
}

static void turn_until_done(void)
{
	for (int i = 0; i < 10000 && d.quota.child; i++) {
		usleep(1000);
		daemon_maintain(&d);
	}
	assert_int_equal(d.quota.child, 0);
}

static void measures_when_something_was_written(void **state)
{
	(void)state;
	d.quota.max = 0;
	put("a.dyn", 400);
	daemon_keep_quota(&d);
	assert_int_equal(d.quota.len, 0);
	d.quota.max = 1000;
	daemon_keep_quota(&d);
	assert_int_equal(d.quota.len, 400);
	put("b.dyn", 600);
	daemon_keep_quota(&d);
	assert_int_equal(d.quota.len, 400);
	check();
	assert_int_equal(d.quota.len, 1000);
	assert_false(d.quota.over || stand_ins.full);
	assert_int_equal(d.quota.child, 0);
	assert_int_equal(trial_said(said, ""), 0);
}

static void removes_what_it_may(void **state)
{
	(void)state;
	put("a.dyn", 400);
	put(".tmp-1-0-b.dyn", 601);
	daemon_keep_quota(&d);
	assert_true(d.quota.child > 0);
	assert_int_equal(stand_ins.nr_spared, 1);
	/* Until it is known what goes. */
	assert_true(stand_ins.full);
	turn_until_done();
	assert_true(is_there("a.dyn"));
	assert_false(is_there(".tmp-1-0-b.dyn"));
	assert_int_equal(d.quota.len, 400);
	assert_false(d.quota.over || stand_ins.full);
	assert_int_equal(trial_said(said, ""), 0);
}

static void tells_once_that_it_is_over(void **state)
{
	(void)state;
	put("a.dyn", 1001);
	for (int i = 0; i < 3; i++) {
		d.quota.next_ns = 0;
		daemon_keep_quota(&d);
		assert_true(d.quota.child > 0);
		turn_until_done();
		assert_true(is_there("a.dyn"));
		assert_true(d.quota.over && stand_ins.full);
		assert_int_equal(trial_said(said,
					    "take 1001 bytes, more than -quota allows, and epochs "
					    "refer to them"),
				 i == 0);
	}
	/* Somebody made room: seen at the next flush, whatever was written. */
	assert_int_equal(unlinkat(profdb_dyn_fd(d.db), "a.dyn", 0), 0);
	daemon_keep_quota(&d);
	assert_false(d.quota.over || stand_ins.full);
	assert_int_equal(d.quota.child, 0);
	assert_int_equal(trial_said(said, "there is room for pseudo-images again"), 1);
	put("a.dyn", 1001);
	d.quota.next_ns = 0;
	check();
	turn_until_done();
	assert_int_equal(trial_said(said, "more than -quota allows"), 1);
}

/* One user fills it: others have their share all the same, up to a quarter more than is allowed. */
static void is_over_for_its_users(void **state)
{
	const uint32_t greedy = 4321, modest = 4322;

	(void)state;
	d.budgets = budgets_new();
	assert_non_null(d.budgets);
	put_of("a.dyn", 850, greedy);
	put_of("b.dyn", 151, modest);
	daemon_keep_quota(&d);
	turn_until_done();
	assert_true(d.quota.over && stand_ins.full);
	assert_int_equal(stand_ins.share, 1000 / 3);
	assert_int_equal(budget_has(d.budgets, greedy, BUDGET_IMAGES), 850);
	assert_int_equal(budget_has(d.budgets, modest, BUDGET_IMAGES), 151);
	put_of("c.dyn", 249, modest);
	check();
	assert_int_equal(budget_has(d.budgets, modest, BUDGET_IMAGES), 400);
	put("d.dyn", 1);
	check();
	assert_int_equal(stand_ins.share, 0);
	turn_until_done();
	assert_int_equal(trial_said(said, "refused to users who have 333 bytes or more"), 1);
	budgets_free(d.budgets);
	d.budgets = NULL;
}

static void waits(uint64_t seconds)
{
	uint64_t before_ns = base_now_ns();

	check();
	assert_true(d.quota.child > 0);
	turn_until_done();
	assert_in_range(d.quota.next_ns, before_ns + seconds * 1000000000,
			base_now_ns() + seconds * 1000000000);
	check();
	assert_int_equal(d.quota.child, 0);
	assert_true(d.quota.over && stand_ins.full);
}

/* Each run reads the whole database. */
static void waits_when_nothing_can_be_removed(void **state)
{
	static const uint64_t seconds[] = { 300, 600, 1200, 2400, 3600, 3600 };

	(void)state;
	/* It is in the database's folder too. */
	close(profdb_dyn_lock(d.db, false, 0, NULL));
	put("a.dyn", 1001);
	for (size_t i = 0; i < sizeof(seconds) / sizeof(*seconds); i++) {
		waits(seconds[i]);
		d.quota.next_ns = base_now_ns();
	}
	waits(3600);
	/* An epoch came, or went. */
	assert_int_equal(mkdirat(profdb_dir_fd(d.db), "202001010000", 0755), 0);
	waits(3600);
	/* Something goes, if not enough. */
	put(".tmp-1-0-b.dyn", 1);
	d.quota.next_ns = 0;
	check();
	assert_true(d.quota.child > 0);
	turn_until_done();
	assert_true(d.quota.over);
	waits(300);
}

/* What it says behind @word; -1: it does not. */
static long long status_of(int32_t pid, const char *word, int base)
{
	char path[64], line[256];
	long long n = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, word, strlen(word)))
			n = strtoll(line + strlen(word), NULL, base);
	fclose(f);
	return n;
}

static bool has_open(int32_t pid, const char *what)
{
	char path[64], to[64];
	bool has = false;

	for (int fd = 0; fd < 100 && !has; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
		n = readlink(path, to, sizeof(to) - 1);
		has = n > 0 && (size_t)n == strlen(what) && !memcmp(to, what, (size_t)n);
	}
	return has;
}

/* Of the rights that to remove others' files at most; no descriptor of the daemon's. */
static bool gave_up(int32_t pid, const char *ours)
{
	static const char *const words[] = { "CapEff:", "CapPrm:", "CapInh:" };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (status_of(pid, words[i], 16) & ~2)
			return false;
	return status_of(pid, "NoNewPrivs:", 10) == 1 && !has_open(pid, ours);
}

/* While one is at work no other begins. */
static void one_child_at_a_time(void **state)
{
	int lock = profdb_dyn_lock(d.db, false, 0, NULL), ours[2];
	char path[64], pipe_name[64] = "";
	int32_t child;

	(void)state;
	assert_int_equal(pipe(ours), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ours[0]);
	assert_true(readlink(path, pipe_name, sizeof(pipe_name) - 1) > 0);
	assert_true(lock >= 0);
	put(".tmp-1-0-a.dyn", 1001);
	check();
	child = d.quota.child;
	assert_true(child > 0);
	check();
	assert_int_equal(d.quota.child, child);
	daemon_maintain(&d);
	assert_int_equal(d.quota.child, child);
	for (int i = 0; i < 10000 && !gave_up(child, pipe_name); i++)
		usleep(1000);
	assert_true(gave_up(child, pipe_name));
	close(ours[0]);
	close(ours[1]);
	close(lock);
	turn_until_done();
	assert_false(is_there(".tmp-1-0-a.dyn"));
	daemon_maintain_close(&d);
	/* And none outlives the daemon. */
	lock = profdb_dyn_lock(d.db, false, 0, NULL);
	put(".tmp-1-0-a.dyn", 1001);
	check();
	assert_true(d.quota.child > 0);
	daemon_maintain_close(&d);
	assert_int_equal(d.quota.child, 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	close(lock);
}

static void says_that_removing_failed(void **state)
{
	struct profdb *db = d.db;
	char path[96];

	(void)state;
	put("a.dyn", 1001);
	snprintf(path, sizeof(path), "%s/none", folder);
	d.quota.path = path;
	check();
	turn_until_done();
	assert_ptr_equal(d.db, db);
	assert_int_equal(trial_said(said, "and none could be removed ('dcpid -gc' says why)"), 1);
}

/* Of a recorded stream all comes at once: it is waited for. */
static void waits_where_nothing_is_live(void **state)
{
	(void)state;
	d.follow.live = d.attribute.live = false;
	put("a.dyn", 1000);
	put(".tmp-1-0-b.dyn", 1);
	check();
	assert_int_equal(d.quota.child, 0);
	assert_false(is_there(".tmp-1-0-b.dyn"));
	assert_false(d.quota.over);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(measures_when_something_was_written), TEST(removes_what_it_may),
		TEST(tells_once_that_it_is_over),	   TEST(is_over_for_its_users),
		TEST(waits_when_nothing_can_be_removed),   TEST(one_child_at_a_time),
		TEST(says_that_removing_failed),	   TEST(waits_where_nothing_is_live),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
