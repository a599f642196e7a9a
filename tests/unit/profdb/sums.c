/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>

#include "scratch.h"

struct seen {
	size_t nr;
	uint64_t sum, period;
	char paths[200];
	bool stop;
};

/* A header is one of version 1, and nothing else stands behind it. */
static void check_refused(const struct profdb_sum *s)
{
	static const uint8_t old[] = "version 0.07\n\n\n";
	struct profdb_sum other = *s;
	struct profdb_profile *p = NULL;
	uint8_t *longer = calloc(1, s->header_len + 8);

	assert_non_null(longer);
	memcpy(longer, s->header, s->header_len);
	other.header = longer;
	other.header_len += 8;
	assert_int_equal(profdb_sum_profile(&other, &p), -DCPI_EFORMAT);
	other.header = old;
	other.header_len = sizeof(old) - 1;
	assert_true(profdb_sum_profile(&other, &p) < 0);
	assert_null(p);
	free(longer);
}

static int see(void *ctx, const struct profdb_sum *s)
{
	struct profdb_profile *p = NULL;
	struct seen *seen = ctx;

	assert_int_equal(profdb_sum_profile(s, &p), 0);
	check_refused(s);
	assert_int_equal(profdb_profile_nr_entries(p), 0);
	assert_int_equal(profdb_profile_nr_events(p), 1);
	assert_null(profdb_profile_word(p, "epoch"));
	seen->nr++;
	seen->sum += profdb_profile_event(p, 0)->sum;
	seen->period = profdb_profile_event(p, 0)->period;
	strcat(seen->paths, profdb_profile_path(p, 0));
	strcat(seen->paths, " ");
	profdb_profile_free(p);
	return seen->stop ? -ECANCELED : 0;
}

static void set_time(struct profdb *db, time_t seconds)
{
	const struct timespec times[2] = { { .tv_sec = seconds }, { .tv_sec = seconds } };

	assert_int_equal(utimensat(profdb_dir_fd(db), SCRATCH_EPOCH "/box", times, 0), 0);
}

static int make_index(struct profdb *db)
{
	struct profdb_sums sums = { 0 };
	bool open = profdb_epoch_open(db, SCRATCH_EPOCH, "box");

	/* One that has just changed is not indexed: a further change would not show in its time. */
	assert_int_equal(profdb_sums_begin(db, SCRATCH_EPOCH, "box", &sums), open ? -EPERM : 0);
	assert_int_equal(profdb_sums_write(db, SCRATCH_EPOCH, "box", &sums),
			 open ? -EPERM : -EAGAIN);
	set_time(db, 1000);
	return profdb_sums_make(db, SCRATCH_EPOCH, "box", 2);
}

static int look(struct profdb *db, struct seen *seen)
{
	*seen = (struct seen){ .stop = seen->stop };
	return profdb_sums_walk(db, SCRATCH_EPOCH, "box", see, seen);
}

/* A finished epoch of two images; who reads it. */
static struct profdb *finished(const char *dir)
{
	struct profdb *db = scratch_writer(dir);

	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	scratch_put(db, "/bin/a", 1, 5);
	scratch_put(db, "/bin/b", 2, 7);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	assert_int_equal(make_index(db), -EPERM); /* it is open */
	assert_int_equal(profdb_epoch_finish(db, NULL), 0);
	profdb_close(db);
	return scratch_open(dir, false);
}

static void test_sums_are_told(void **state)
{
	struct profdb *db = finished(*state);
	struct stat after;
	struct seen seen = { 0 };

	assert_int_equal(look(db, &seen), -ENOENT);
	assert_int_equal(profdb_sums_make(db, SCRATCH_EPOCH, "box", 1), -DCPI_ELIMIT);
	assert_int_equal(make_index(db), 0);
	assert_int_equal(stat(scratch_path(*state, SCRATCH_EPOCH "/box"), &after), 0);
	assert_int_equal(after.st_mtim.tv_sec, 1000);
	assert_int_equal(look(db, &seen), 0);
	assert_int_equal(seen.nr, 2);
	assert_int_equal(seen.sum, 36);
	assert_int_equal(seen.period, 62000);
	assert_string_equal(seen.paths, "/bin/a /bin/b ");
	seen.stop = true;
	assert_int_equal(look(db, &seen), -ECANCELED);
	assert_int_equal(seen.nr, 1);
	profdb_close(db);
}

/* What was read before the epoch's last flush is not all of it. */
static void test_no_index_of_what_has_changed_since(void **state)
{
	struct profdb *db = finished(*state);
	struct profdb_sums sums = { 0 };
	struct seen seen = { 0 };

	set_time(db, 1000);
	assert_int_equal(profdb_sums_write(db, SCRATCH_EPOCH, "box", &sums), -EAGAIN);
	assert_int_equal(profdb_sums_begin(db, SCRATCH_EPOCH, "box", &sums), 0);
	set_time(db, 1001);
	assert_int_equal(profdb_sums_write(db, SCRATCH_EPOCH, "box", &sums), -EAGAIN);
	assert_int_equal(look(db, &seen), -ENOENT);
	assert_int_equal(profdb_sums_begin(db, SCRATCH_EPOCH, "box", &sums), 0);
	assert_int_equal(profdb_sums_write(db, SCRATCH_EPOCH, "box", &sums), 0);
	assert_int_equal(look(db, &seen), 0);
	profdb_close(db);
}

static void test_old_or_damaged_it_is_none(void **state)
{
	struct profdb *db = finished(*state);
	char path[256];
	struct base_buf bytes = { 0 };
	struct seen seen = { 0 };
	struct stat st;

	snprintf(path, sizeof(path), "%s/" SCRATCH_EPOCH "/box/.index", (char *)*state);
	assert_int_equal(make_index(db), 0);
	assert_int_equal(unlink(scratch_path(*state, SCRATCH_EPOCH "/box/_bin_b.file.ab02")), 0);
	assert_int_equal(look(db, &seen), -ENOENT);
	assert_int_equal(make_index(db), 0);
	assert_int_equal(look(db, &seen), 0);
	assert_int_equal(seen.sum, 15);
	assert_int_equal(stat(path, &st), 0);
	assert_true(base_file_read(AT_FDCWD, path, 1 << 20, &bytes, NULL) >= 0);
	for (size_t i = 0; i < bytes.len; i++) {
		const struct timespec times[2] = { st.st_atim, st.st_mtim };

		bytes.data[i] ^= 1;
		assert_int_equal(truncate(path, 0), 0);
		scratch_write(*state, SCRATCH_EPOCH "/box/.index", bytes.data, bytes.len);
		assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
		assert_int_equal(look(db, &seen), -ENOENT);
		assert_int_equal(seen.nr, 0);
		bytes.data[i] ^= 1;
	}
	base_buf_release(&bytes);
	profdb_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_sums_are_told),
		scratch_test(test_no_index_of_what_has_changed_since),
		scratch_test(test_old_or_damaged_it_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
