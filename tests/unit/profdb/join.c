/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sys/wait.h>

#include "scratch.h"

enum { DAY = 86400 };

/* ---- killed before one of its changes to the disk -------------------------------------------- */

static int countdown = -1; /* below 0: it is not */

int __real_mkdirat(int dir, const char *path, mode_t mode);
int __real_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __real_unlinkat(int dir, const char *path, int flags);
int __wrap_mkdirat(int dir, const char *path, mode_t mode);
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __wrap_unlinkat(int dir, const char *path, int flags);
int __wrap_fsync(int fd);

static void step(void)
{
	if (countdown >= 0 && countdown-- == 0)
		_exit(9);
}

int __wrap_mkdirat(int dir, const char *path, mode_t mode)
{
	step();
	return __real_mkdirat(dir, path, mode);
}

int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	step();
	return __real_renameat(from_dir, from, to_dir, to);
}

int __wrap_unlinkat(int dir, const char *path, int flags)
{
	step();
	return __real_unlinkat(dir, path, flags);
}

int __wrap_fsync(int fd)
{
	(void)fd;
	step(); /* What is killed here is no machine. */
	return 0;
}

/* ---- a database ------------------------------------------------------------------------------ */

/* As many as samples; of user 1000 in the first epochs, of another one later. */
static void make_others(struct profdb *db, uint64_t n)
{
	const struct base_id image = { .len = 2, .bytes = { 0xab, 1 } };
	struct profdb_values *v =
		profdb_values_new(PROFDB_FILE, &image, "/bin/prog", PROFDB_VALUES);
	struct base_err err = { 0 };

	for (uint64_t i = 0; i < 3 * n; i++)
		assert_int_equal(profdb_values_add(v, 8 * i, NULL, i), 0);
	if (profdb_flush_put_values(db, "prog", v, n < 4 ? 1000 : 1001, &err) != 0)
		fail_msg("%s", err.text);
	profdb_values_free(v);
	assert_int_equal(scratch_put_callpaths(db, n), 0);
	assert_int_equal(scratch_put_workloads(db, n), 0);
}

/* At @at, of @platform: @n samples at three offsets of "prog", and 5 n of an epoch's own image. */
static void make(const char *dir, int64_t at, const char *platform, uint64_t n)
{
	struct profdb *db = scratch_open(dir, true);
	char epoch[PROFDB_EPOCH_LEN + 1], path[64];
	struct profdb_profile *p;
	struct base_err err = { 0 };

	assert_int_equal(profdb_lock(db, platform, &err), 0);
	assert_int_equal(profdb_epoch_start(db, at, epoch, &err), 0);
	assert_int_equal(profdb_flush_begin(db, &err), 0);
	p = scratch_profile("/bin/prog", 1, 3, n);
	assert_int_equal(profdb_profile_event_set_period(p, 0, 1000 * n), 0);
	assert_int_equal(profdb_profile_set_word(p, "colour", "red"), 0);
	assert_int_equal(profdb_flush_put(db, "prog", p, &err), 0);
	profdb_profile_free(p);
	make_others(db, n);
	scratch_put(db, epoch, (uint8_t)(n + 16), 5 * n);
	assert_int_equal(profdb_flush_commit(db, &err), 0);
	assert_int_equal(profdb_epoch_finish(db, &err), 0);
	profdb_close(db);
	for (int i = 0; i < 2; i++) {
		const struct timespec times[2] = { { .tv_sec = at }, { .tv_sec = at } };

		snprintf(path, sizeof(path), "%s/%s%s", epoch, platform, i ? "" : "/.commit");
		assert_int_equal(utimensat(AT_FDCWD, scratch_path(dir, path), times, 0), 0);
	}
}

struct sums {
	size_t epochs, profiles, red, blue;
	uint64_t prog, others, at16;
	uint64_t values; /* of prog */
	uint64_t callpaths, workloads;
	double cycles; /* samples x period of prog */
	char first[PROFDB_EPOCH_LEN + 1], began[PROFDB_TIME_LEN + 1];
};

static int add(void *ctx, const char *file, struct profdb_profile *p)
{
	const struct profdb_event *e = profdb_profile_event(p, 0);
	const char *colour = profdb_profile_word(p, "colour");
	bool prog = !strcmp(profdb_profile_path(p, 0), "/bin/prog");
	struct sums *s = ctx;

	(void)file;
	s->profiles++;
	*(prog ? &s->prog : &s->others) += e->sum;
	s->cycles += prog ? (double)e->sum * (double)e->period : 0;
	s->red += colour && !strcmp(colour, "red");
	s->blue += colour && !strcmp(colour, "blue");
	s->at16 += profdb_profile_entry(p, 1)->count[0];
	if (!*s->began)
		strcpy(s->began, profdb_profile_word(p, "epoch"));
	profdb_profile_free(p);
	return 0;
}

static int add_values(void *ctx, const char *file, struct profdb_values *v)
{
	struct sums *s = ctx;

	(void)file;
	for (size_t i = 0; i < profdb_values_nr(v); i++)
		s->values += profdb_values_at(v, i)->vtot;
	profdb_values_free(v);
	return 0;
}

static struct sums look(const char *dir)
{
	struct profdb *db = scratch_open(dir, false);
	char **epochs = profdb_epochs(db, NULL);
	struct sums s = { 0 };

	for (size_t i = 0; epochs[i]; i++) {
		char **platforms = profdb_platforms(db, epochs[i], NULL);

		if (!i)
			strcpy(s.first, epochs[i]);
		for (size_t k = 0; platforms[k]; k++) {
			assert_int_equal(
				profdb_walk(db, epochs[i], platforms[k], add, NULL, &s, NULL), 0);
			assert_int_equal(profdb_walk_values(db, epochs[i], platforms[k],
							    PROFDB_VALUES, add_values, NULL, &s,
							    NULL),
					 0);
			s.callpaths += scratch_sum_callpaths(db, epochs[i], platforms[k]);
			s.workloads += scratch_sum_workloads(db, epochs[i], platforms[k]);
		}
		free(platforms);
		s.epochs++;
	}
	free(epochs);
	profdb_close(db);
	assert_int_equal(s.values, s.prog);
	assert_int_equal(3 * s.callpaths, s.prog);
	assert_int_equal(3 * s.workloads, s.prog);
	return s;
}

/* ---- joining --------------------------------------------------------------------------------- */

static void note(void *ctx, const char *first, const char *last, size_t nr)
{
	char text[64];

	snprintf(text, sizeof(text), "%s-%s:%zu ", first, last, nr);
	strcat(ctx, text);
}

static void note_kept(void *ctx, const struct base_err *why)
{
	(void)why;
	strcat(ctx, "kept ");
}

static int join(const char *dir, enum profdb_span span, bool dry_run, char text[512],
		struct base_err *err)
{
	struct profdb *db = scratch_open(dir, false);
	const struct profdb_join how = { .span = span,
					 .before = SCRATCH_NOW - 7 * DAY,
					 .dry_run = dry_run,
					 .joined = note,
					 .kept = note_kept,
					 .ctx = text };
	int r;

	*text = '\0';
	r = profdb_epochs_join(db, &how, err);
	profdb_close(db);
	return r;
}

static void joins(const char *dir, enum profdb_span span, bool dry_run, const char *want)
{
	struct base_err err = { 0 };
	char text[512];

	if (join(dir, span, dry_run, text, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(text, want);
}

static bool is_there(const char *dir, const char *name)
{
	return access(scratch_path(dir, name), F_OK) == 0;
}

/* 2026-11-02 is a Monday. Friday 20, now, 13th 07:54 is a week before. */
static int64_t at(int day, int hour)
{
	return SCRATCH_NOW - (SCRATCH_NOW % DAY) + (int64_t)(day - 20) * DAY + hour * 3600;
}

/* Of the values of prog on "box"; anybody may read profiles. */
static void assert_reader(const char *dir, const char *epoch, uint32_t uid)
{
	struct stat st;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/box/prog.file.ab01.values.values", epoch);
	fd = open(scratch_path(dir, path), O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07, 0);
	/* Some file systems know no lists: nobody else reads there. */
	if (scratch_has_readers(dir))
		assert_int_equal(base_reader_get(fd), uid);
	close(fd);
}

static void test_days_weeks_months(void **state)
{
	struct sums before, after;

	make(*state, at(1, 12), "box", 1);
	make(*state, at(2, 0), "box", 2);
	make(*state, at(2, 23), "box", 3);
	make(*state, at(2, 23), "other", 4);
	make(*state, at(8, 0), "box", 5);
	make(*state, at(9, 0), "box", 6);
	make(*state, at(19, 0), "box", 7);
	make(*state, at(19, 1), "box", 8);
	before = look(*state);
	assert_int_equal(before.epochs, 7);
	joins(*state, PROFDB_DAY, true, "202611020000-202611022300:2 ");
	assert_int_equal(look(*state).epochs, 7);
	joins(*state, PROFDB_DAY, false, "202611020000-202611022300:2 ");
	joins(*state, PROFDB_DAY, false, "");
	assert_false(is_there(*state, "202611022300"));
	assert_true(is_there(*state, "202611020000/other"));
	assert_reader(*state, "202611020000", 1000);
	after = look(*state);
	assert_int_equal(after.epochs, 6);
	assert_int_equal(after.profiles, before.profiles - 1);
	assert_int_equal(after.prog, before.prog);
	joins(*state, PROFDB_WEEK, false, "202611020000-202611080000:2 ");
	assert_reader(*state, "202611020000", UINT32_MAX);
	joins(*state, PROFDB_MONTH, false, "202611011200-202611090000:3 ");
	after = look(*state);
	assert_int_equal(after.epochs, 3);
	assert_int_equal(after.prog, before.prog);
	assert_int_equal(after.others, before.others);
	assert_int_equal(after.at16, before.at16);
	/* Periods of 1000 n, so that each mean is rounded to a whole: at most half of one a time.
	 */
	assert_true(after.cycles > before.cycles - 4 * (double)before.prog / 2 &&
		    after.cycles < before.cycles + 4 * (double)before.prog / 2);
	assert_string_equal(after.first, "202611011200");
	assert_string_equal(after.began, "20261101120000");
	assert_false(is_there(*state, ".lock-.gc"));
}

/* What profdb_import_begin says to a profile of that epoch and platform. */
static int import(const char *dir, const char *folder, struct base_err *err)
{
	struct profdb *db = scratch_open(dir, false);
	struct profdb_import *i = NULL;
	char path[128];
	const char *paths[] = { path };
	int r;

	snprintf(path, sizeof(path), "%s/prog.file.ab01", folder);
	*err = (struct base_err){ 0 };
	r = profdb_import_begin(db, paths, 1, &i, err);
	if (r >= 0)
		profdb_import_end(i);
	profdb_close(db);
	return r;
}

/* An archive of an epoch that was joined away meanwhile would count twice. */
#define VALUES "/box/prog.file.ab01.values.values"

/* Root's daemon kept values of all users: they do not become one's for the folder is his. Those
 * that his own daemon kept stay his. */
static void test_whose_it_is(void **state)
{
	struct stat st;

	scratch_give(*state);
	make(*state, at(1, 12), "box", 1);
	make(*state, at(1, 13), "box", 2);
	make(*state, at(3, 12), "box", 1);
	make(*state, at(3, 13), "box", 2);
	assert_int_equal(chown(scratch_path(*state, "202611031200" VALUES), SCRATCH_OWNER, 0), 0);
	assert_int_equal(chown(scratch_path(*state, "202611031300" VALUES), SCRATCH_OWNER, 0), 0);
	joins(*state, PROFDB_DAY, false,
	      "202611011200-202611011300:2 202611031200-202611031300:2 ");
	scratch_is_given(*state, "202611011200");
	scratch_is_given(*state, "202611011200/box");
	scratch_is_given(*state, "202611011200/box/prog.file.ab01");
	assert_int_equal(stat(scratch_path(*state, "202611011200" VALUES), &st), 0);
	assert_int_equal(st.st_uid, 0);
	assert_reader(*state, "202611011200", 1000);
	scratch_is_given(*state, "202611031200" VALUES);
}

static void test_what_was_joined_is_not_imported(void **state)
{
	static const char nonsense[] = "x\n202611022300/../x\n202611022300\n";
	struct base_err err;

	make(*state, at(2, 0), "box", 1);
	make(*state, at(2, 23), "box", 2);
	make(*state, at(2, 23), "other", 3);
	make(*state, at(4, 1), "box", 4);
	make(*state, at(4, 2), "box", 5);
	joins(*state, PROFDB_DAY, false,
	      "202611020000-202611022300:2 202611040100-202611040200:2 ");
	assert_int_equal(import(*state, "202611022300/box", &err), -EEXIST);
	assert_non_null(
		strstr(err.text, "'202611022300/box' already, as a part of '202611020000'"));
	assert_int_equal(import(*state, "202611022300/other", &err), -EEXIST);
	assert_int_equal(import(*state, "202611022300/third", &err), 0);
	assert_int_equal(import(*state, "202611022301/box", &err), 0);
	/* Joined once more. */
	joins(*state, PROFDB_WEEK, false, "202611020000-202611040100:2 ");
	assert_int_equal(import(*state, "202611022300/other", &err), -EEXIST);
	assert_int_equal(import(*state, "202611040200/box", &err), -EEXIST);
	assert_non_null(
		strstr(err.text, "'202611040200/box' already, as a part of '202611020000'"));
	assert_int_equal(import(*state, "202611040200/other", &err), 0);
	/* Lines of nonsense say nothing; a list that cannot be read is no permission. */
	scratch_write(*state, "202611020000/.joined", nonsense, strlen(nonsense));
	assert_int_equal(import(*state, "202611022300/other", &err), 0);
	assert_int_equal(unlink(scratch_path(*state, "202611020000/.joined")), 0);
	assert_int_equal(mkdir(scratch_path(*state, "202611020000/.joined"), 0755), 0);
	assert_true(import(*state, "202611022300/other", &err) < 0);
}

static void add_blue(const char *dir, int64_t when)
{
	struct profdb *db = scratch_open(dir, true);
	struct profdb_profile *p = scratch_profile("/bin/prog", 1, 3, 100);
	char epoch[PROFDB_EPOCH_LEN + 1], path[64];

	assert_int_equal(profdb_lock(db, "box", NULL), 0);
	assert_int_equal(profdb_epoch_start(db, when, epoch, NULL), 0);
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	assert_int_equal(profdb_profile_set_word(p, "colour", "blue"), 0);
	assert_int_equal(profdb_flush_put(db, "prog", p, NULL), 0);
	make_others(db, 100);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	assert_int_equal(profdb_epoch_finish(db, NULL), 0);
	profdb_profile_free(p);
	profdb_close(db);
	snprintf(path, sizeof(path), "%s/box/.commit", epoch);
	assert_int_equal(utimensat(AT_FDCWD, scratch_path(dir, path),
				   (struct timespec[2]){ { .tv_sec = when }, { .tv_sec = when } },
				   0),
			 0);
}

static void test_lines_stay(void **state)
{
	struct sums s;

	make(*state, at(2, 1), "box", 1);
	add_blue(*state, at(2, 2));
	make(*state, at(2, 3), "box", 2);
	add_blue(*state, at(2, 4));
	joins(*state, PROFDB_DAY, false, "202611020100-202611020400:4 ");
	s = look(*state);
	assert_int_equal(s.red, 1);
	assert_int_equal(s.blue, 1);
	assert_int_equal(s.prog, 3 * (1 + 2 + 200));
}

/* A finished epoch of the day that lost @nr samples when its daemon ended. */
static void lose(const char *dir, int64_t at, const char *epoch, const char *nr)
{
	const struct timespec times[2] = { { .tv_sec = at }, { .tv_sec = at } };
	char path[64], text[64];

	snprintf(path, sizeof(path), "%s/box/.lost", epoch);
	snprintf(text, sizeof(text), "open %s00\nlost %s\n", epoch, nr);
	scratch_write(dir, path, text, strlen(text));
	snprintf(path, sizeof(path), "%s/box", epoch);
	assert_int_equal(utimensat(AT_FDCWD, scratch_path(dir, path), times, 0), 0);
}

static void test_lost_samples_stay_known(void **state)
{
	struct profdb *db;

	make(*state, at(2, 1), "box", 1);
	make(*state, at(2, 2), "box", 2);
	make(*state, at(2, 3), "box", 3);
	make(*state, at(2, 4), "other", 3);
	lose(*state, at(2, 1), "202611020100", "00000000000000000003");
	lose(*state, at(2, 3), "202611020300", "00000000000000000040");
	joins(*state, PROFDB_DAY, false, "202611020100-202611020400:4 ");
	db = scratch_open(*state, false);
	assert_int_equal(profdb_epoch_lost(db, "202611020100", "box"), 43);
	assert_int_equal(profdb_epoch_lost(db, "202611020100", "other"), 0);
	profdb_close(db);
}

static void test_what_is_not_finished_or_damaged_stays(void **state)
{
	struct base_err err = { 0 };
	struct profdb *keeper;
	char text[512];

	make(*state, at(2, 1), "box", 1);
	make(*state, at(2, 2), "box", 2);
	make(*state, at(2, 3), "box", 3);
	scratch_write(*state, "202611020200/box/.open", "", 0);
	joins(*state, PROFDB_DAY, true, "202611020100-202611020300:2 ");
	unlink(scratch_path(*state, "202611020200/box/.open"));
	scratch_write(*state, "202611020300/box/bad.file.ab77", "x", 1);
	joins(*state, PROFDB_DAY, false, "kept ");
	assert_int_equal(look(*state).epochs, 3);
	unlink(scratch_path(*state, "202611020300/box/bad.file.ab77"));
	keeper = scratch_open(*state, false);
	assert_int_equal(profdb_keep(keeper, &err), 0);
	assert_int_equal(join(*state, PROFDB_DAY, false, text, &err), -DCPI_EBUSY);
	assert_non_null(strstr(err.text, "removes or joins"));
	profdb_close(keeper);
	joins(*state, PROFDB_DAY, false, "202611020100-202611020300:3 ");
}

/* Readers that have a list of epochs are told. */
static void test_readers_are_told(void **state)
{
	struct profdb *db;

	make(*state, at(2, 1), "box", 1);
	make(*state, at(2, 2), "box", 2);
	db = scratch_open(*state, false);
	free(profdb_epochs(db, NULL));
	assert_false(profdb_epochs_changed(db));
	joins(*state, PROFDB_DAY, false, "202611020100-202611020200:2 ");
	assert_true(profdb_epochs_changed(db));
	free(profdb_epochs(db, NULL));
	assert_false(profdb_epochs_changed(db));
	profdb_close(db);
}

/* Exit status of who is killed at step @n; 0: he came to the end before. */
static int join_until(const char *dir, int n)
{
	pid_t child = fork();
	char text[512];
	int status;

	assert_true(child >= 0);
	if (!child) {
		countdown = n;
		_exit(join(dir, PROFDB_DAY, false, text, NULL) < 0 ? 1 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int killed_at(const char *dir, int n)
{
	struct sums want, got;
	char text[512];
	int r;

	make(dir, at(2, 1), "box", 1);
	make(dir, at(2, 2), "other", 2);
	make(dir, at(2, 3), "box", 3);
	want = look(dir);
	r = join_until(dir, n);
	for (int i = 0; i < 2; i++) {
		got = look(dir);
		assert_int_equal(got.prog, want.prog);
		assert_int_equal(got.others, want.others);
		assert_int_equal(got.at16, want.at16);
		assert_true(got.epochs == 1 || (got.epochs == 3 && r && !i));
		assert_int_equal(join(dir, PROFDB_DAY, false, text, NULL) < 0, 0);
	}
	return r;
}

static void test_killed(void **state)
{
	int r = 9;

	for (int n = 0; r; n++) {
		assert_in_range(n, 0, 200);
		r = killed_at(*state, n);
		assert_true(r == 0 || r == 9);
		assert_true(r || n > 20);
		scratch_teardown(state);
		scratch_setup(state);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_days_weeks_months),
		scratch_test(test_whose_it_is),
		scratch_test(test_what_was_joined_is_not_imported),
		scratch_test(test_lines_stay),
		scratch_test(test_lost_samples_stay_known),
		scratch_test(test_what_is_not_finished_or_damaged_stays),
		scratch_test(test_readers_are_told),
		scratch_test(test_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
