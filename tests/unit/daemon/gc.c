/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gc_epoch.h"

#define YOUNG 100

/* What cannot be removed or renamed; how often epochs are joined meanwhile, which mends @damaged.
 */
static const char *stuck = "", *damaged;
static int nr_joined;

int __real_unlinkat(int dir, const char *path, int flags);
int __wrap_unlinkat(int dir, const char *path, int flags);
int __wrap_unlinkat(int dir, const char *path, int flags)
{
	if (strcmp(path, stuck) != 0)
		return __real_unlinkat(dir, path, flags);
	errno = EACCES;
	return -1;
}

int __real_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	if (strcmp(from, stuck) != 0)
		return __real_renameat(from_dir, from, to_dir, to);
	errno = EACCES;
	return -1;
}

bool __wrap_profdb_epochs_changed(struct profdb *db);
bool __wrap_profdb_epochs_changed(struct profdb *db)
{
	(void)db;
	if (nr_joined <= 0)
		return false;
	if (--nr_joined == 0 && damaged)
		unlink(damaged);
	return true;
}

static int nr_open(void)
{
	int nr = 0;

	for (int fd = 0; fd < 256; fd++)
		nr += fcntl(fd, F_GETFD) >= 0;
	return nr;
}

static bool removes(const struct gc_file *files, size_t nr, const char *names)
{
	char text[64] = "";

	for (size_t i = 0; i < nr; i++)
		if (files[i].remove)
			strcat(text, files[i].name);
	if (strcmp(text, names) != 0)
		print_message("removes '%s', not '%s'\n", text, names);
	return strcmp(text, names) == 0;
}

static void chooses_all_that_may_go(void **state)
{
	struct gc_file files[] = {
		{ .name = (char[]){ "c" }, .len = 1, .time_ns = 30 },
		{ .name = (char[]){ "u" }, .len = 1, .time_ns = 1, .used = true },
		{ .name = (char[]){ "y" }, .len = 1, .time_ns = YOUNG },
		{ .name = (char[]){ "b" }, .len = 1, .time_ns = 10 },
		{ .name = (char[]){ "a" }, .len = 1, .time_ns = 10 },
	};

	(void)state;
	gc_choose(files, 5, YOUNG, 0);
	assert_true(removes(files, 5, "abc"));
	gc_choose(files, 5, 0, 0);
	assert_true(removes(files, 5, ""));
	gc_choose(files, 0, YOUNG, 0);
}

static void chooses_the_oldest_until_there_is_room(void **state)
{
	struct gc_file files[] = {
		{ .name = (char[]){ "new" }, .len = 100, .time_ns = 50 },
		{ .name = (char[]){ "old" }, .len = 10, .time_ns = 10 },
		{ .name = (char[]){ "used" }, .len = 1000, .time_ns = 20, .used = true },
		{ .name = (char[]){ "mid" }, .len = 5, .time_ns = 30 },
	};

	(void)state;
	gc_choose(files, 4, YOUNG, 1115);
	assert_true(removes(files, 4, ""));
	gc_choose(files, 4, YOUNG, 1114);
	assert_true(removes(files, 4, "old"));
	gc_choose(files, 4, YOUNG, 1104);
	assert_true(removes(files, 4, "oldmid"));
	/* It does not suffice: what is referred to stays all the same. */
	gc_choose(files, 4, YOUNG, 1);
	assert_true(removes(files, 4, "oldmidnew"));
}

/* ---- epochs ---------------------------------------------------------------------------------- */

static struct gc_file file_of(size_t last, uint64_t time_ns)
{
	return (struct gc_file){ .len = 1000, .last = last, .time_ns = time_ns };
}

static void chooses_epochs_until_the_database_fits(void **state)
{
	/* By rank: an old one, then two finished ones; the last is open. */
	struct gc_epoch v[] = {
		{ .len = 10 << 12, .rank = 2 },
		{ .len = 20 << 12, .rank = 1, .old = true },
		{ .len = 40 << 12, .rank = 3 },
		{ .len = 80 << 12, .rank = GC_STAYS },
	};
	struct gc_epochs e = { .v = v, .nr = 4 };
	const struct gc_file files[] = { file_of(2, 10), file_of(2, YOUNG), file_of(3, 10),
					 file_of(0, 10), file_of(GC_STAYS, 10) };
	const uint64_t total = 155 << 12;

	(void)state;
	assert_int_equal(gc_epochs_choose(&e, files, 5, YOUNG, total, total), 154 << 12);
	assert_int_equal(e.removed, 0);
	/* What is old goes in any case. */
	e.removed = 1;
	assert_int_equal(gc_epochs_choose(&e, files, 5, YOUNG, total, 134 << 12), 134 << 12);
	assert_int_equal(e.removed, 1);
	/* With an epoch what only it refers to, but for what is young. */
	e.removed = 0;
	assert_int_equal(gc_epochs_choose(&e, files, 5, YOUNG, total, 133 << 12), 123 << 12);
	assert_int_equal(e.removed, 2);
	e.removed = 0;
	assert_int_equal(gc_epochs_choose(&e, files, 5, YOUNG, total, 1), 82 << 12);
	assert_int_equal(e.removed, 3);
}

/* The quota's child, or folding, removes files after they were listed, before all is measured. */
static void files_gone_meanwhile_cost_no_epoch(void **state)
{
	struct gc_epoch v[] = { { .len = 1 << 12, .rank = 1 }, { .len = 1 << 12, .rank = 2 } };
	struct gc_epochs e = { .v = v, .nr = 2 };
	struct gc_file gone = file_of(0, 10);

	(void)state;
	gone.len = 100 << 12;
	gc_epochs_choose(&e, &gone, 1, YOUNG, 3 << 12, 10 << 12);
	assert_int_equal(e.removed, 0);
}

/* ---- the child ------------------------------------------------------------------------------- */

static void make_epoch(const char *path, int64_t at, bool finish)
{
	const struct timespec times[2] = { { .tv_sec = at }, { .tv_sec = at } };
	char epoch[PROFDB_EPOCH_LEN + 1], name[128];
	struct base_err err = { 0 };
	struct profdb *db;

	assert_int_equal(profdb_open(path, true, &db, &err), 0);
	assert_int_equal(profdb_lock(db, finish ? "box" : "open", &err), 0);
	assert_int_equal(profdb_epoch_start(db, at, epoch, &err), 0);
	if (finish)
		assert_int_equal(profdb_epoch_finish(db, &err), 0);
	profdb_close(db);
	snprintf(name, sizeof(name), "%s/%s/%s", path, epoch, finish ? "box" : "open/.open");
	assert_int_equal(utimensat(AT_FDCWD, name, times, 0), 0);
}

/* So that it has something to tell of, and nobody to tell it to. */
static void put_damaged(const char *path)
{
	char name[128];

	snprintf(name, sizeof(name), "%s/costs", path);
	assert_int_equal(mkdir(name, 0755), 0);
	snprintf(name, sizeof(name), "%s/costs/aaaa.cpu-clock", path);
	close(open(name, O_CREAT | O_WRONLY, 0600));
	snprintf(name, sizeof(name), "cd %s/*/open && ln ../../dcpi-database x.file.ab", path);
	assert_int_equal(system(name), 0);
}

static void the_child_removes_and_reports(void **state)
{
	const int64_t now = 1700000000, day = 86400;
	const struct gc_config config = { .old = true, .now = now, .size = 1 };
	char path[] = "/tmp/dcpi-gc-XXXXXX", text[200] = "", command[64];
	int report, status, nr;
	struct profdb *db;
	char **epochs;
	pid_t child;

	(void)state;
	assert_non_null(mkdtemp(path));
	make_epoch(path, now - 20 * day, true);
	for (int i = 4; i > 0; i--)
		make_epoch(path, now - i * day, true);
	make_epoch(path, now - 3600, false);
	put_damaged(path);
	nr = nr_open();
	child = gc_child_start(path, &config, &report);
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(read(report, text, sizeof(text) - 1) > 0);
	close(report);
	assert_int_equal(nr_open(), nr);
	assert_string_equal(text, "removed 5 epochs, 0 files of 0 bytes\n");
	assert_int_equal(status, 0);
	assert_int_equal(profdb_open(path, false, &db, NULL), 0);
	epochs = profdb_epochs(db, NULL);
	assert_true(epochs && epochs[0] && !epochs[1]);
	assert_true(profdb_epoch_open(db, epochs[0], "open"));
	free(epochs);
	/* Somebody else keeps house. */
	assert_int_equal(profdb_keep(db, NULL), 0);
	child = gc_child_start(path, &config, &report);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_not_equal(status, 0);
	memset(text, 0, sizeof(text));
	assert_true(read(report, text, sizeof(text) - 1) > 0);
	assert_non_null(strstr(text, "removes or joins epochs"));
	close(report);
	profdb_close(db);
	snprintf(command, sizeof(command), "rm -r %s", path);
	assert_int_equal(system(command), 0);
}

/* ---- the locks ------------------------------------------------------------------------------- */

static void tells_owned_platforms_and_locks_images(void **state)
{
	char path[] = "/tmp/dcpi-gc-XXXXXX", epoch[PROFDB_EPOCH_LEN + 1], command[64];
	struct profdb *db, *other;
	struct base_err err = { 0 };
	uint64_t len;
	size_t nr;
	int a, b;

	(void)state;
	assert_non_null(mkdtemp(path));
	assert_int_equal(profdb_open(path, true, &db, &err), 0);
	assert_int_equal(profdb_open(path, false, &other, &err), 0);
	assert_false(profdb_lock_held(other, "box"));
	assert_int_equal(profdb_lock(db, "box", &err), 0);
	assert_true(profdb_lock_held(other, "box"));
	assert_false(profdb_lock_held(other, "../box"));
	assert_int_equal(profdb_epoch_written(db, "202311142213", "box"), 0);
	assert_int_equal(profdb_epoch_start(db, 1700000000, epoch, &err), 0);
	assert_int_not_equal(profdb_epoch_written(db, epoch, "box"), 0);

	a = profdb_dyn_lock(db, false, 0, &err);
	b = profdb_dyn_lock(other, false, 0, &err);
	assert_true(a >= 0 && b >= 0);
	assert_int_equal(profdb_dyn_lock(other, true, 0, &err), -DCPI_EBUSY);
	assert_non_null(strstr(err.text, "being written"));
	close(a);
	close(b);
	a = profdb_dyn_lock(other, true, 0, &err);
	assert_true(a >= 0);
	assert_int_equal(profdb_dyn_lock(db, false, 20, NULL), -DCPI_EBUSY);
	close(a);

	assert_int_equal(gc_measure(db, &len, &nr), 0);
	assert_int_equal(nr, 0);
	for (int i = 0; i < 2; i++) {
		int fd = openat(profdb_dyn_fd(db), i ? "y.dyn" : "x.dyn", O_CREAT | O_WRONLY, 0600);

		assert_int_equal(write(fd, path, sizeof(path)), sizeof(path));
		close(fd);
	}
	a = nr_open();
	assert_int_equal(gc_measure(db, &len, &nr), 0);
	assert_int_equal(nr_open(), a);
	assert_int_equal(nr, 2);
	assert_int_equal(len, 2 * sizeof(path));
	profdb_close(db);
	assert_false(profdb_lock_held(other, "box"));
	profdb_close(other);
	snprintf(command, sizeof(command), "rm -r %s", path);
	assert_int_equal(system(command), 0);
}

/* ---- what others do meanwhile ---------------------------------------------------------------- */

struct run {
	char path[32];
	struct profdb *db, *other;
	struct gc_result result;
	char removed[64];
	struct base_err err;
};

/* Of long ago: left half written, so that nothing refers to it. */
static void put(const struct run *x, const char *name, int64_t at)
{
	const struct timespec times[2] = { { .tv_sec = at }, { .tv_sec = at } };
	int fd = openat(profdb_dyn_fd(x->db), name, O_CREAT | O_WRONLY, 0600);

	assert_true(fd >= 0);
	assert_int_equal(futimens(fd, times), 0);
	close(fd);
}

static int begin_run(void **state)
{
	static struct run x;

	x = (struct run){ .path = "/tmp/dcpi-gc-XXXXXX" };
	assert_non_null(mkdtemp(x.path));
	make_epoch(x.path, 1700000000, true);
	assert_int_equal(profdb_open(x.path, false, &x.db, NULL), 0);
	assert_int_equal(profdb_open(x.path, false, &x.other, NULL), 0);
	for (int i = 0; i < 4; i++)
		put(&x, (char[]){ '.', 't', 'm', 'p', '-', (char)('a' + i), 0 }, 1000 + i);
	*state = &x;
	return 0;
}

static int end_run(void **state)
{
	struct run *x = *state;
	char command[64];

	stuck = "";
	damaged = NULL;
	nr_joined = 0;
	profdb_close(x->other);
	profdb_close(x->db);
	snprintf(command, sizeof(command), "rm -r %s", x->path);
	return system(command);
}

static void note_epoch(void *ctx, const char *epoch)
{
	(void)ctx;
	(void)epoch;
}

static void note(void *ctx, const struct gc_file *file)
{
	struct run *x = ctx;

	strcat(x->removed, file->name + strlen(".tmp-"));
}

static int run(struct run *x, struct gc_config config)
{
	int r, nr;

	profdb_dyn_fd(x->db);
	profdb_kernel_fd(x->db);
	nr = nr_open();
	config.removed = config.removed ? config.removed : note;
	config.removed_epoch = note_epoch;
	config.ctx = x;
	r = gc_run(x->db, &config, &x->result, &x->err);
	/* Who keeps house does so until the end. */
	assert_true(config.size || nr_open() == nr);
	return r;
}

static void note_name(void *ctx, const struct gc_file *file)
{
	struct run *x = ctx;

	strcat(x->removed, file->name);
}

/* Samples below a call in @id, in an epoch that begins at @at. */
static void put_callpaths(const struct run *x, int64_t at, const struct base_id *id)
{
	const struct profdb_image_ref i = { .kind = PROFDB_FILE, .id = *id, .path = "/x" };
	struct profdb_callpaths *c = profdb_callpaths_new();
	const struct profdb_frame f = { 0, 16 };
	char epoch[PROFDB_EPOCH_LEN + 1];

	assert_int_equal(profdb_callpaths_image_add(c, &i), 0);
	assert_int_equal(profdb_callpaths_event_add(c, "cycles", 1), 0);
	assert_int_equal(profdb_callpaths_add(c, 0, PROFDB_CALLPATH_CUT, &f, 1, 1), 0);
	assert_int_equal(profdb_lock(x->other, "box", NULL), 0);
	assert_int_equal(profdb_epoch_start(x->other, at, epoch, NULL), 0);
	assert_int_equal(profdb_flush_begin(x->other, NULL), 0);
	assert_int_equal(profdb_flush_put_callpaths(x->other, c, NULL), 0);
	assert_int_equal(profdb_flush_commit(x->other, NULL), 0);
	assert_int_equal(profdb_epoch_finish(x->other, NULL), 0);
	profdb_callpaths_free(c);
}

/* A sample of a workload in @id, in an epoch that begins at @at. */
static void put_workloads(const struct run *x, int64_t at, const struct base_id *id)
{
	const struct profdb_image_ref i = { .kind = PROFDB_FILE, .id = *id, .path = "/x" };
	const struct profdb_workload k = { .comm = "java" };
	struct profdb_workloads *w = profdb_workloads_new();
	char epoch[PROFDB_EPOCH_LEN + 1];

	assert_int_equal(profdb_workloads_image_add(w, &i), 0);
	assert_int_equal(profdb_workloads_workload_add(w, &k), 0);
	assert_int_equal(profdb_workloads_event_add(w, "cycles", 1), 0);
	assert_int_equal(profdb_workloads_add(w, 0, 0, 16, 0, at / 60, 1), 0);
	assert_int_equal(profdb_lock(x->other, "box", NULL), 0);
	assert_int_equal(profdb_epoch_start(x->other, at, epoch, NULL), 0);
	assert_int_equal(profdb_flush_begin(x->other, NULL), 0);
	assert_int_equal(profdb_flush_put_workloads(x->other, w, NULL), 0);
	assert_int_equal(profdb_flush_commit(x->other, NULL), 0);
	assert_int_equal(profdb_epoch_finish(x->other, NULL), 0);
	profdb_workloads_free(w);
}

static void what_workloads_ran_stays(void **state)
{
	const struct base_id id = { .len = 2, .bytes = { 0xab, 1 } };
	struct run *x = *state;
	char command[128];

	for (int i = 0; i < 4; i++)
		unlinkat(profdb_dyn_fd(x->db),
			 (char[]){ '.', 't', 'm', 'p', '-', (char)('a' + i), 0 }, 0);
	put(x, "ab01.file", 1000);
	put(x, "ab02.file", 1000);
	put_workloads(x, 1700000000, &id);
	assert_int_equal(run(x, (struct gc_config){ .removed = note_name }), 0);
	assert_string_equal(x->removed, "ab02.file");
	put(x, "ab03.file", 1000);
	snprintf(command, sizeof(command), "truncate -s -1 %s/*/box/workloads", x->path);
	assert_int_equal(system(command), 0);
	assert_int_equal(run(x, (struct gc_config){ .removed = note_name }), -DCPI_EFORMAT);
	assert_non_null(strstr(x->err.text, "workloads"));
	assert_string_equal(x->removed, "ab02.file");
}

static void what_callers_are_in_stays(void **state)
{
	const struct base_id id = { .len = 2, .bytes = { 0xab, 1 } };
	struct run *x = *state;
	char command[128];

	for (int i = 0; i < 4; i++)
		unlinkat(profdb_dyn_fd(x->db),
			 (char[]){ '.', 't', 'm', 'p', '-', (char)('a' + i), 0 }, 0);
	put(x, "ab01.file", 1000);
	put(x, "ab02.file", 1000);
	put_callpaths(x, 1700000000, &id);
	assert_int_equal(run(x, (struct gc_config){ .removed = note_name }), 0);
	assert_string_equal(x->removed, "ab02.file");
	/* A callpaths file that cannot be read may name all images. */
	put(x, "ab03.file", 1000);
	snprintf(command, sizeof(command), "truncate -s -1 %s/*/box/callpaths", x->path);
	assert_int_equal(system(command), 0);
	assert_int_equal(run(x, (struct gc_config){ .removed = note_name }), -DCPI_EFORMAT);
	assert_non_null(strstr(x->err.text, "callpaths"));
	assert_string_equal(x->removed, "ab02.file");
}

/* At the first: one is found in use, another written anew, one is gone, none can be written. */
static void disturb(void *ctx, const struct gc_file *file)
{
	struct run *x = ctx;
	int dir = profdb_dyn_fd(x->db);

	note(ctx, file);
	assert_int_equal(utimensat(dir, ".tmp-b", NULL, 0), 0);
	put(x, "new", 1002);
	assert_int_equal(renameat(dir, "new", dir, ".tmp-c"), 0);
	assert_int_equal(unlinkat(dir, ".tmp-d", 0), 0);
	assert_int_equal(profdb_dyn_lock(x->other, false, 0, NULL), -DCPI_EBUSY);
}

static void what_changed_since_stays(void **state)
{
	struct run *x = *state;

	assert_int_equal(run(x, (struct gc_config){ .removed = disturb }), 0);
	assert_string_equal(x->removed, "a");
	assert_int_equal(x->result.nr_removed, 1);
	assert_int_equal(x->result.nr_left, 2);
}

/* Who only looks waits for nobody. */
static void looks_beside_others(void **state)
{
	struct run *x = *state;
	int lock = profdb_dyn_lock(x->other, false, 0, NULL);

	assert_true(lock >= 0);
	assert_int_equal(profdb_keep(x->other, NULL), 0);
	assert_int_equal(run(x, (struct gc_config){ .dry_run = true, .size = 1 }), 0);
	assert_string_equal(x->removed, "abcd");
	assert_int_equal(x->result.nr_epochs, 1);
	close(lock);
}

static void ends_where_one_cannot_be_removed(void **state)
{
	struct run *x = *state;

	stuck = ".tmp-b";
	assert_int_equal(run(x, (struct gc_config){ 0 }), -EACCES);
	assert_string_equal(x->removed, "a");
	assert_int_equal(x->result.nr_removed, 1);
	assert_int_equal(x->result.nr_left, 3);
	assert_non_null(strstr(x->err.text, ".tmp-b"));
}

/* An epoch that stays keeps what it refers to. */
static void ends_where_an_epoch_cannot_be_removed(void **state)
{
	struct run *x = *state;

	stuck = "202311142213";
	assert_int_equal(run(x, (struct gc_config){ .size = 1 }), -EACCES);
	assert_string_equal(x->removed, "");
	assert_int_equal(x->result.nr_epochs, 0);
}

/* What was read of them may be of before, and of after. */
static void reads_again_what_was_joined(void **state)
{
	struct run *x = *state;
	char name[96];

	snprintf(name, sizeof(name), "%s/202311142213/box/x.dynamic", x->path);
	assert_int_equal(symlink("../../dcpi-database", name), 0);
	damaged = name;
	nr_joined = 2;
	assert_int_equal(run(x, (struct gc_config){ 0 }), 0);
	assert_string_equal(x->removed, "abcd");
	nr_joined = 1000;
	assert_int_equal(run(x, (struct gc_config){ 0 }), -DCPI_EBUSY);
}

#define RUN(name) cmocka_unit_test_setup_teardown(name, begin_run, end_run)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chooses_all_that_may_go),
		cmocka_unit_test(chooses_the_oldest_until_there_is_room),
		cmocka_unit_test(chooses_epochs_until_the_database_fits),
		cmocka_unit_test(files_gone_meanwhile_cost_no_epoch),
		cmocka_unit_test(the_child_removes_and_reports),
		cmocka_unit_test(tells_owned_platforms_and_locks_images),
		RUN(what_callers_are_in_stays),
		RUN(what_workloads_ran_stays),
		RUN(what_changed_since_stays),
		RUN(looks_beside_others),
		RUN(ends_where_one_cannot_be_removed),
		RUN(ends_where_an_epoch_cannot_be_removed),
		RUN(reads_again_what_was_joined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
