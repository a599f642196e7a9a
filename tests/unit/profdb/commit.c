/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A flush that ends, or fails, at each of its system calls in turn: linked with --wrap, so that the
 * library itself knows nothing of it. Whatever happens, readers see the flush before or this one,
 * and the next daemon goes on from exactly what they saw.
 */
#include <dirent.h>
#include <errno.h>
#include <sys/wait.h>

#include "scratch.h"

/* ---- the wrapped calls ----------------------------------------------------------------------- */

enum mode { PASS, EXIT, FAIL };

static enum mode mode;
static int countdown; /* to the call at which it happens */

/* True: the call must fail. */
static bool step(void)
{
	if (mode == PASS || countdown-- > 0)
		return false;
	if (mode == EXIT)
		_exit(9);
	mode = PASS;
	errno = EIO;
	return true;
}

/* What a loss of power would undo now: writes to @files, names of new files in the epoch's folder,
 * the name of the record. */
static struct {
	bool on, names, record;
	size_t nr;
	ino_t files[64];
} unsynced;

static ino_t inode(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

static size_t find_unsynced(ino_t ino)
{
	size_t i = 0;

	while (i < unsynced.nr && unsynced.files[i] != ino)
		i++;
	return i;
}

static void note_write(int fd)
{
	size_t i = find_unsynced(inode(fd));

	assert_true(i < sizeof(unsynced.files) / sizeof(*unsynced.files));
	unsynced.files[i] = inode(fd);
	unsynced.nr += i == unsynced.nr;
}

static void note_sync(int fd)
{
	size_t i = find_unsynced(inode(fd));
	struct stat st;

	if (i < unsynced.nr)
		unsynced.files[i] = unsynced.files[--unsynced.nr];
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
		unsynced.names = unsynced.record = false;
}

/* The record counts what lasts, and nothing is renamed for a record that may not. */
static void note_rename(const char *from, const char *to)
{
	if (!strcmp(to, ".commit")) {
		assert_int_equal(unsynced.nr, 0);
		assert_false(unsynced.names);
		unsynced.record = true;
	} else if (!strncmp(from, ".new-", 5)) {
		assert_false(unsynced.record);
	}
}

int __real_openat(int dir, const char *path, int flags, mode_t m);
int __real_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __real_unlinkat(int dir, const char *path, int flags);
ssize_t __real_write(int fd, const void *data, size_t len);
int __wrap_openat(int dir, const char *path, int flags, mode_t m);
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __wrap_unlinkat(int dir, const char *path, int flags);
ssize_t __wrap_write(int fd, const void *data, size_t len);
int __wrap_fsync(int fd);

int __wrap_openat(int dir, const char *path, int flags, mode_t m)
{
	if (unsynced.on && (flags & O_CREAT) && !strncmp(path, ".new-", 5))
		unsynced.names = true;
	return step() ? -1 : __real_openat(dir, path, flags, m);
}

int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	if (unsynced.on)
		note_rename(from, to);
	return step() ? -1 : __real_renameat(from_dir, from, to_dir, to);
}

int __wrap_unlinkat(int dir, const char *path, int flags)
{
	return step() ? -1 : __real_unlinkat(dir, path, flags);
}

/* The half of it is written before the power goes. */
ssize_t __wrap_write(int fd, const void *data, size_t len)
{
	if (unsynced.on)
		note_write(fd);
	if (mode == EXIT && !countdown)
		__real_write(fd, data, len / 2);
	return step() ? -1 : __real_write(fd, data, len);
}

/* Only the machine's death tells a synced file from another one, not the process's. */
int __wrap_fsync(int fd)
{
	if (unsynced.on)
		note_sync(fd);
	return step() ? -1 : 0;
}

/* ---- readers --------------------------------------------------------------------------------- */

struct sums {
	uint64_t of[4];	    /* by last byte of the identity */
	uint64_t values[2]; /* of images 0 and 1 as many values as samples */
	uint64_t callpaths; /* as many as samples of image 1 */
	int bad;
};

static int add_sum(void *ctx, const char *file, struct profdb_profile *p)
{
	struct sums *s = ctx;

	(void)file;
	s->of[profdb_profile_image(p)->bytes[1] % 4] += profdb_profile_event(p, 0)->sum;
	profdb_profile_free(p);
	return 0;
}

static int add_values(void *ctx, const char *file, struct profdb_values *v)
{
	const struct profdb_profile *header = profdb_values_header(v);
	struct sums *s = ctx;

	(void)file;
	for (size_t i = 0; i < profdb_values_nr(v); i++)
		s->values[profdb_profile_image(header)->bytes[1] % 2] +=
			profdb_values_at(v, i)->vtot;
	profdb_values_free(v);
	return 0;
}

static void add_bad(void *ctx, const char *file, const struct base_err *err)
{
	struct sums *s = ctx;

	(void)file, (void)err;
	s->bad++;
}

static struct sums look(const char *dir)
{
	struct profdb *db = scratch_open(dir, false);
	struct sums s = { 0 };

	assert_int_equal(profdb_walk(db, SCRATCH_EPOCH, "box", add_sum, add_bad, &s, NULL), 0);
	assert_int_equal(
		profdb_walk_values(db, SCRATCH_EPOCH, "box", NULL, add_values, NULL, &s, NULL), 0);
	s.callpaths = scratch_sum_callpaths(db, SCRATCH_EPOCH, "box");
	profdb_close(db);
	return s;
}

/* Flush 1 gave images 1 and 2 the sum 3; flush 2 gives 1, 2 and 3 further 30. What 0 has moves from
 * one profile to another. So it is with values, of 0 and 1. */
static bool is_after(const struct sums *s)
{
	bool after = s->of[1] == 33;

	assert_int_equal(s->bad, 0);
	assert_int_equal(s->of[1], after ? 33 : 3);
	assert_int_equal(s->of[2], after ? 33 : 3);
	assert_int_equal(s->of[3], after ? 30 : 0);
	assert_int_equal(s->of[0], 7);
	assert_memory_equal(s->values, s->of, sizeof(s->values));
	assert_int_equal(s->callpaths, s->of[1]);
	return after;
}

/* ---- writers --------------------------------------------------------------------------------- */

/* @n of them; what of a flush is put last has to come with what was put first. */
static int put_values(struct profdb *db, enum profdb_kind kind, const char *stem, uint8_t id,
		      uint64_t n)
{
	const struct base_id image = { .len = 2, .bytes = { 0xab, id } };
	struct profdb_values *v = profdb_values_new(kind, &image, "/x", PROFDB_VALUES);
	int r;

	for (uint64_t i = 0; i < n; i++)
		assert_int_equal(profdb_values_add(v, 16, NULL, i), 0);
	r = profdb_flush_put_values(db, stem, v, 1000, NULL);
	profdb_values_free(v);
	return r;
}

static void first_flush(const char *dir)
{
	struct profdb *db = scratch_writer(dir);
	const struct base_id id = { .len = 2 };
	struct profdb_profile *p = profdb_profile_new(PROFDB_DYNAMIC, &id, "old.dyn");

	profdb_profile_event_add(p, "cycles", 62000);
	profdb_profile_add(p, 0, 0, 7);
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	scratch_put(db, "a", 1, 1);
	scratch_put(db, "b", 2, 1);
	assert_int_equal(profdb_flush_put(db, "old.dyn", p, NULL), 0);
	profdb_profile_free(p);
	assert_int_equal(put_values(db, PROFDB_FILE, "a", 1, 3), 0);
	assert_int_equal(scratch_put_callpaths(db, 3), 0);
	assert_int_equal(put_values(db, PROFDB_DYNAMIC, "old.dyn", 0, 7), 0);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	profdb_close(db);
}

static int put_profile(struct profdb *db, uint8_t id)
{
	struct profdb_profile *p = scratch_profile("/x", id, 3, 5);
	int r = profdb_flush_put(db, "x", p, NULL);

	profdb_profile_free(p);
	return r;
}

static int put_one_values(struct profdb *db, uint8_t id)
{
	return put_values(db, PROFDB_FILE, "x", id, 15);
}

static int put(struct profdb *db, uint8_t id)
{
	int r = put_profile(db, id);

	r = r < 0 || id != 1 ? r : put_one_values(db, id);
	return r < 0 || id != 1 ? r : scratch_put_callpaths(db, 15);
}

static uint64_t moved(void *ctx, uint64_t off)
{
	(void)ctx;
	return off + 8;
}

static int move_values(struct profdb *db)
{
	const struct base_id image = { .len = 2 };
	const struct profdb_moved to = {
		.stem = "new.dyn", .image = &image, .path = "new.dyn", .off = moved
	};

	return profdb_flush_move_values(db, "old.dyn", &to, NULL);
}

static int move(struct profdb *db)
{
	struct profdb_profile *p = NULL;
	int r = profdb_flush_read(db, "old.dyn", &p, NULL);

	if (r == -ENOENT)
		return 0;
	if (r >= 0)
		r = profdb_flush_put(db, "new.dyn", p, NULL);
	if (r >= 0)
		r = profdb_flush_remove(db, "old.dyn", NULL);
	profdb_profile_free(p);
	return r;
}

/* What fails, the caller must abort. */
static int second_flush(struct profdb *db)
{
	int r = profdb_flush_begin(db, NULL);

	/* Each twice: the second time what this flush wrote already is at stake. */
	for (uint8_t i = 0; r >= 0 && i < 6; i++)
		r = put(db, i / 2 + 1);
	if (r >= 0)
		r = move(db);
	if (r >= 0)
		r = move_values(db);
	if (r >= 0)
		r = profdb_flush_commit(db, NULL);
	return r;
}

static struct profdb *resume(const char *dir)
{
	struct profdb *db = scratch_open(dir, false);
	char epoch[PROFDB_EPOCH_LEN + 1];
	struct base_err err = { 0 };

	assert_int_equal(profdb_lock(db, "box", NULL), 0);
	if (profdb_epoch_resume(db, epoch, &err) < 0)
		fail_msg("%s", err.text);
	return db;
}

static void assert_nothing_left_over(const char *dir)
{
	DIR *d = opendir(scratch_path(dir, SCRATCH_EPOCH "/box"));
	struct dirent *e;

	assert_non_null(d);
	while ((e = readdir(d)))
		assert_true(strncmp(e->d_name, ".new-", 5) && strncmp(e->d_name, ".tmp-", 5));
	closedir(d);
}

/* The next daemon: same state, and its own flush comes on top. */
static void check_next_daemon(const char *dir, bool after)
{
	struct profdb *db = resume(dir);
	struct sums s = look(dir);

	assert_int_equal(is_after(&s), after);
	assert_nothing_left_over(dir);
	assert_int_equal(second_flush(db), 0);
	assert_int_equal(profdb_epoch_finish(db, NULL), 0);
	profdb_close(db);
	s = look(dir);
	assert_int_equal(s.of[1], after ? 63 : 33);
	assert_int_equal(s.of[3], after ? 60 : 30);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void sub_dir(char *path, size_t len, const char *dir, int n)
{
	snprintf(path, len, "%s/%d", dir, n);
}

/* Exit status of a daemon that ends at call @n: 9, or 0 when it came to the end before. */
static int die_at(const char *dir, int n)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		struct profdb *db = resume(dir);

		mode = EXIT;
		countdown = n;
		if (second_flush(db) < 0)
			_exit(1);
		mode = PASS;
		profdb_close(db);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_death_at_every_step(void **state)
{
	int n = 0, status, nr_before = 0, nr_after = 0;
	char dir[512];

	do {
		struct sums s;
		bool after;

		sub_dir(dir, sizeof(dir), *state, n);
		first_flush(dir);
		status = die_at(dir, n++);
		assert_true(status == 9 || status == 0);
		s = look(dir);
		after = is_after(&s);
		nr_before += !after;
		nr_after += after;
		check_next_daemon(dir, after);
	} while (status == 9);
	/* Else the hooks did not hook. */
	assert_true(nr_before > 10 && nr_after > 5);
}

/* Every call fails once: what the caller was told is what readers see. */
static void test_failure_at_every_step(void **state)
{
	int n = 0, nr_failed = 0, nr_done = 0;
	char dir[512];
	bool used;

	do {
		struct profdb *db;
		struct sums s;
		int r;

		sub_dir(dir, sizeof(dir), *state, n);
		first_flush(dir);
		db = resume(dir);
		mode = FAIL;
		countdown = n++;
		r = second_flush(db);
		used = mode == PASS;
		mode = PASS;
		s = look(dir);
		assert_int_equal(is_after(&s), r >= 0);
		if (r < 0)
			profdb_flush_abort(db);
		s = look(dir);
		assert_int_equal(is_after(&s), r >= 0);
		nr_failed += r < 0;
		nr_done += r >= 0;
		/* The same daemon goes on: nothing twice, nothing forgotten. */
		assert_int_equal(second_flush(db), 0);
		s = look(dir);
		assert_int_equal(s.of[1], r >= 0 ? 63 : 33);
		assert_int_equal(s.of[3], r >= 0 ? 60 : 30);
		assert_int_equal(profdb_epoch_finish(db, NULL), 0);
		profdb_close(db);
		s = look(dir);
		assert_int_equal(s.of[1], r >= 0 ? 63 : 33);
	} while (used);
	assert_true(nr_failed > 10 && nr_done > 3);
}

/* Two daemons in a row die during what they have to redo. */
static void test_death_during_recovery(void **state)
{
	char dir[512];

	for (int n = 0; n < 90; n += 11) {
		struct sums s;
		bool after;
		pid_t child;

		sub_dir(dir, sizeof(dir), *state, n);
		first_flush(dir);
		die_at(dir, n);
		s = look(dir);
		after = is_after(&s);
		for (int m = 0; m < 9; m += 4) {
			child = fork();
			if (!child) {
				mode = EXIT;
				countdown = m;
				profdb_close(resume(dir));
				_exit(0);
			}
			waitpid(child, NULL, 0);
			s = look(dir);
			assert_int_equal(is_after(&s), after);
		}
		check_next_daemon(dir, after);
	}
}

/* A second put that fails takes the first one with it: who commits all the same is refused. */
static void check_no_commit(const char *all, bool values)
{
	int (*put_it)(struct profdb * db, uint8_t id) = values ? put_one_values : put_profile;
	int refused = 0;
	char dir[512];

	for (int n = 0; n < 8; n++) {
		struct profdb *db;
		struct sums s;
		uint64_t sum;
		int again;

		sub_dir(dir, sizeof(dir), all, n + 8 * values);
		first_flush(dir);
		db = resume(dir);
		assert_int_equal(profdb_flush_begin(db, NULL), 0);
		assert_int_equal(put_it(db, 1), 0);
		mode = FAIL;
		countdown = n;
		again = put_it(db, 1);
		mode = PASS;
		refused += profdb_flush_commit(db, NULL) == -EIO;
		profdb_flush_abort(db);
		s = look(dir);
		sum = values ? s.values[1] : s.of[1];
		assert_true(sum == 3 || sum == 3 + 15 + (again < 0 ? 0 : 15));
		profdb_close(db);
	}
	assert_true(refused > 0);
}

static void test_no_commit_without_what_was_put(void **state)
{
	check_no_commit(*state, false);
	check_no_commit(*state, true);
}

#define FOLDER SCRATCH_EPOCH "/box"

/* A damaged record cannot say what was committed: nothing is thrown away, and work goes on. */
static void test_damaged_record(void **state)
{
	const char *dir = *state;
	struct profdb *db;
	struct sums s;
	struct stat st;

	first_flush(dir);
	scratch_write(dir, FOLDER "/.new-7-a.file.ab01", "saved", 5);
	scratch_write(dir, FOLDER "/.commit", "dcpi-commit 1\nseq 7\ncrc 00000000\n", 34);
	s = look(dir);
	assert_int_equal(s.bad, 1);
	assert_int_equal(s.of[1], 3);
	/* Not the next daemon, nor the one after it. */
	profdb_close(resume(dir));
	db = resume(dir);
	assert_int_equal(stat(scratch_path(dir, FOLDER "/.commit-bad"), &st), 0);
	assert_int_equal(stat(scratch_path(dir, FOLDER "/.bad-7-a.file.ab01"), &st), 0);
	assert_int_equal(st.st_size, 5);
	assert_int_equal(second_flush(db), 0);
	s = look(dir);
	assert_true(is_after(&s));
	profdb_close(db);
}

/* What is on disk in this order survives the machine, too. */
static void test_synced_before_it_counts(void **state)
{
	unsynced.on = true;
	first_flush(*state);
	unsynced.on = false;
	assert_int_equal(unsynced.nr, 0);
	assert_int_equal(look(*state).of[1], 3);
}

/* A record that names files elsewhere is damaged, whatever its checksum says. */
static void test_hostile_record(void **state)
{
	char text[128];
	struct sums s;
	int len;

	first_flush(*state);
	len = sprintf(text, "dcpi-commit 1\nseq 2\nfile ../../dcpi-database\n");
	len += sprintf(text + len, "crc %08x\n", base_crc32c(0, text, (size_t)len));
	scratch_write(*state, FOLDER "/.commit", text, (size_t)len);
	s = look(*state);
	assert_int_equal(s.bad, 1);
	assert_int_equal(s.of[1], 3);
}

/* Something else in its place: neither readers nor the next daemon wait for it. */
static void test_no_record(void **state)
{
	char epoch[PROFDB_EPOCH_LEN + 1];
	struct base_err err = { 0 };
	struct profdb *db;

	first_flush(*state);
	assert_int_equal(unlink(scratch_path(*state, FOLDER "/.commit")), 0);
	assert_int_equal(mkfifo(scratch_path(*state, FOLDER "/.commit"), 0600), 0);
	assert_int_equal(look(*state).bad, 1);
	db = scratch_open(*state, false);
	assert_int_equal(profdb_lock(db, "box", NULL), 0);
	assert_int_equal(profdb_epoch_resume(db, epoch, &err), -EINVAL);
	assert_non_null(strstr(err.text, "/" FOLDER "': cannot use the flush record: cannot read "
					 "'.commit': not a regular file"));
	assert_string_equal(
		err.hint, "move '.commit', and '.new-' files beside it, out of the database first");
	profdb_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_death_at_every_step),
		scratch_test(test_failure_at_every_step),
		scratch_test(test_death_during_recovery),
		scratch_test(test_damaged_record),
		scratch_test(test_no_commit_without_what_was_put),
		scratch_test(test_synced_before_it_counts),
		scratch_test(test_hostile_record),
		scratch_test(test_no_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
