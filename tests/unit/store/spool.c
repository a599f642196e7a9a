/* SPDX-License-Identifier: BSD-2-Clause */
/* The spool, what is known of a store, and which epochs become batches. */
#include "scratch.h"
#include "ship.h"
#include "store_internal.h"

static const uint8_t key[STORE_KEY] = { 7 };

static void put_row(struct store_batch *b, size_t len)
{
	struct base_buf *row = &b->rows[STORE_CONTENT];
	struct base_buf bytes = { 0 };
	uint64_t random = 1;
	struct store_key hash;

	for (size_t i = 0; i < len; i += 8)
		assert_int_equal(base_buf_append_le(&bytes, base_random64(&random), 8), 0);
	store_content_key(bytes.data, bytes.len, &hash);
	assert_int_equal(base_buf_append(row, &hash, sizeof(hash)), 0);
	assert_int_equal(base_buf_append_le(row, 1, 8), 0);
	assert_int_equal(store_put_string(row, bytes.data, bytes.len), 0);
	base_buf_release(&bytes);
}

static int put_batch(struct spool *s, uint64_t ver, const struct store_batch *b,
		     struct base_err *err)
{
	char name[SPOOL_NAME];
	int r = spool_hold(s, "202611280100", "box", ver, b, name, err);

	return r < 0 ? r : spool_show(s, name, err);
}

static struct spool *open_spool(const char *path, uint64_t limit)
{
	struct base_err err = { 0 };
	struct spool *s;

	if (spool_open(path, limit, &s, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

/* Notes stay; a second process does not wait for the first one, but is told of it. */
static void test_lasts(void **state)
{
	const char *path = scratch_path(*state, "spool");
	struct spool *s = open_spool(path, 1 << 20), *second;
	struct base_err err = { 0 };

	assert_int_equal(spool_open(path, 1, &second, &err), -EBUSY);
	assert_false(spool_is_shipped(s, "202611280100", "box"));
	assert_int_equal(spool_set_shipped(s, "202611280100", "box", NULL), 0);
	known_add(&s->known, key, sizeof(key));
	known_add(&s->known, "12345678", 8);
	assert_int_equal(known_keep(&s->known, NULL), 0);
	known_add(&s->known, "87654321", 8);
	known_drop(&s->known);
	assert_false(known_has(&s->known, "87654321", 8));
	spool_close(s);
	s = open_spool(path, 1 << 20);
	assert_true(spool_is_shipped(s, "202611280100", "box"));
	assert_false(spool_is_shipped(s, "202611280100", "bo"));
	assert_true(known_has(&s->known, key, sizeof(key)));
	assert_true(known_has(&s->known, "12345678", 8));
	assert_false(known_has(&s->known, "87654321", 8));
	spool_close(s);
}

/* A note is of one store: another one has none. */
static void test_other_store(void **state)
{
	const char *path = scratch_path(*state, "spool");
	struct spool *s = open_spool(path, 1 << 20);

	known_add(&s->known, key, sizeof(key));
	assert_int_equal(known_keep(&s->known, NULL), 0);
	assert_int_equal(known_store(&s->known, "one", NULL), 0);
	assert_int_equal(known_store(&s->known, "one", NULL), 0);
	assert_int_equal(known_store(&s->known, "two", NULL), 1);
	assert_false(known_has(&s->known, key, sizeof(key)));
	spool_close(s);
	s = open_spool(path, 1 << 20);
	assert_false(known_has(&s->known, key, sizeof(key)));
	spool_close(s);
}

static void test_limit(void **state)
{
	struct spool *s = open_spool(scratch_path(*state, "spool"), 100000);
	struct store_batch b = { 0 };
	struct base_err err = { 0 };
	size_t nr;

	put_row(&b, 40000);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(put_batch(s, i, &b, NULL), 0);
	assert_int_equal(put_batch(s, 2, &b, &err), -ENOSPC);
	assert_non_null(strstr(err.hint, "database"));
	assert_true(spool_waiting(s, &nr) > 80000);
	assert_int_equal(nr, 2);
	store_batch_release(&b);
	spool_close(s);
}

/* A damaged batch is set aside, and the others wait for a store that is away. */
static void test_away(void **state)
{
	struct spool *s = open_spool(scratch_path(*state, "spool"), 1 << 20);
	struct send out = { .prog = "test", .known = &s->known };
	struct store_server *server;
	struct store_batch b = { 0 };
	struct base_err err = { 0 };
	size_t nr;

	put_row(&b, 80);
	known_add(&s->known, key, sizeof(key));
	assert_int_equal(known_keep(&s->known, NULL), 0);
	assert_int_equal(put_batch(s, 1, &b, NULL), 0);
	scratch_write(*state, "spool/202611280000-box-1.batch", "DCPIBAT2 and not more", 21);
	/* No server listens there. */
	assert_int_equal(store_open("clickhouse://127.0.0.1:1/d", NULL, &server, NULL), 0);
	assert_int_equal(send_batches(server, s->dir_fd, &out, &err), -EHOSTUNREACH);
	assert_int_equal(out.batches, 0);
	spool_waiting(s, &nr);
	assert_int_equal(nr, 1);
	assert_int_equal(faccessat(s->dir_fd, "202611280000-box-1.batch.bad", F_OK, 0), 0);
	/* Images that the damaged one had are sent again. */
	assert_false(known_has(&s->known, key, sizeof(key)));
	assert_int_equal(faccessat(s->dir_fd, "keys", F_OK, 0), -1);
	assert_int_equal(out.bytes, 0);
	later_release(&out.later);
	store_close(server);
	store_batch_release(&b);
	spool_close(s);
}

static void flush(struct profdb *db, uint64_t n)
{
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	scratch_put(db, "/bin/prog", 1, n);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
}

static uint64_t packed(struct spool *s, const char *dir, bool open)
{
	struct gather g = { .prog = "test", .open = open };
	struct base_err err = { 0 };

	if (gather_epochs(s, dir, &g, &err) < 0)
		fail_msg("%s", err.text);
	return g.packed;
}

/* An epoch is packed when it is finished, once; an open one after each flush. */
static void test_gather(void **state)
{
	const char *dir = scratch_path(*state, "db");
	struct profdb *db = scratch_writer(dir);
	struct spool *s = open_spool(scratch_path(*state, "spool"), 1 << 20);
	size_t nr;

	flush(db, 10);
	assert_int_equal(packed(s, dir, false), 0);
	assert_int_equal(packed(s, dir, true), 1);
	assert_int_equal(packed(s, dir, true), 0);
	flush(db, 5);
	assert_int_equal(packed(s, dir, true), 1);
	assert_int_equal(profdb_epoch_finish(db, NULL), 0);
	assert_int_equal(packed(s, dir, false), 1);
	assert_int_equal(packed(s, dir, false), 0);
	spool_waiting(s, &nr);
	assert_true(nr >= 2);
	profdb_close(db);
	spool_close(s);
}

static void on_joined(void *ctx, const char *first, const char *last, size_t nr)
{
	(void)ctx, (void)first, (void)last, (void)nr;
}

/* The epochs of all of @dir become one. */
static void join(const char *dir)
{
	const struct profdb_join how = { .span = PROFDB_DAY,
					 .before = (int64_t)time(NULL) + 86400,
					 .joined = on_joined };
	struct profdb *db = scratch_open(dir, false);

	assert_int_equal(profdb_epochs_join(db, &how, NULL), 1);
	profdb_close(db);
}

/* The answer of -verify where it need not ask the store; a store would be unreachable here. */
static int verified(struct spool *s, const char *dir)
{
	const struct gather g = { .prog = "test" };
	struct base_err err = { 0 };
	struct store_server *server;
	int r;

	assert_int_equal(store_open("clickhouse://127.0.0.1:1/d", NULL, &server, NULL), 0);
	r = verify(s, server, dir, &g, 0, &err);
	store_close(server);
	return r;
}

/* A joined epoch does not count again where a part of it was sent, and is not compared then. */
static void test_joined(void **state)
{
	const char *dir = scratch_path(*state, "db");
	struct profdb *db = scratch_writer(dir);
	struct spool *s = open_spool(scratch_path(*state, "spool"), 1 << 20);
	char epoch[PROFDB_EPOCH_LEN + 1];

	flush(db, 10);
	assert_int_equal(profdb_epoch_start(db, SCRATCH_NOW + 600, epoch, NULL), 0);
	assert_int_equal(packed(s, dir, false), 1);
	assert_int_equal(verified(s, dir), -EHOSTUNREACH);
	flush(db, 20);
	assert_int_equal(profdb_epoch_finish(db, NULL), 0);
	profdb_close(db);
	join(dir);
	assert_int_equal(verified(s, dir), 1);
	assert_int_equal(packed(s, dir, false), 0);
	assert_true(spool_is_left_out(s, SCRATCH_EPOCH, "box"));
	assert_int_equal(verified(s, dir), 1);
	spool_close(s);
}

/* One that was joined before anything was sent goes once, though its name is its first part's. */
static void test_joined_first(void **state)
{
	const char *dir = scratch_path(*state, "db"), *path = scratch_path(*state, "spool");
	struct profdb *db = scratch_writer(dir);
	struct spool *s = open_spool(path, 1 << 20);
	char epoch[PROFDB_EPOCH_LEN + 1];

	flush(db, 10);
	assert_int_equal(profdb_epoch_start(db, SCRATCH_NOW + 600, epoch, NULL), 0);
	flush(db, 20);
	assert_int_equal(profdb_epoch_finish(db, NULL), 0);
	profdb_close(db);
	join(dir);
	assert_int_equal(packed(s, dir, false), 1);
	spool_close(s);
	s = open_spool(path, 1 << 20);
	assert_int_equal(packed(s, dir, false), 0);
	assert_false(spool_is_left_out(s, SCRATCH_EPOCH, "box"));
	assert_true(spool_is_joined(s, SCRATCH_EPOCH, "box", 2));
	assert_false(spool_is_joined(s, SCRATCH_EPOCH, "box", 3));
	assert_int_equal(verified(s, dir), -EHOSTUNREACH);
	spool_close(s);
}

/* An open epoch that found no space does not count as begun; one that was sent before does. */
static void test_full(void **state)
{
	const char *dir = scratch_path(*state, "db");
	struct profdb *db = scratch_writer(dir);
	struct spool *s = open_spool(scratch_path(*state, "spool"), 1);
	struct gather g = { .prog = "test", .open = true };
	struct base_err err = { 0 };

	flush(db, 10);
	assert_int_equal(gather_epochs(s, dir, &g, &err), -ENOSPC);
	assert_false(spool_is_begun(s, SCRATCH_EPOCH, "box"));
	s->limit = 1 << 20;
	assert_int_equal(packed(s, dir, true), 1);
	assert_true(spool_is_begun(s, SCRATCH_EPOCH, "box"));
	flush(db, 10);
	s->limit = 1;
	assert_int_equal(gather_epochs(s, dir, &g, &err), -ENOSPC);
	assert_true(spool_is_begun(s, SCRATCH_EPOCH, "box"));
	profdb_close(db);
	spool_close(s);
}

/* The only batch is held again, as if its program had been killed before it was shown. */
static void hold_again(struct spool *s)
{
	char held[300], name[256] = "";
	struct dirent *e;
	DIR *d;

	assert_int_equal(base_dir_open(s->dir_fd, ".", &d), 0);
	while ((e = readdir(d)))
		if (spool_is_batch(e->d_name))
			snprintf(name, sizeof(name), "%s", e->d_name);
	closedir(d);
	assert_true(name[0]);
	snprintf(held, sizeof(held), ".held-%s", name);
	assert_int_equal(renameat(s->dir_fd, name, s->dir_fd, held), 0);
}

static struct spool *reopen(struct spool *s, const char *path, size_t *nr)
{
	spool_close(s);
	s = open_spool(path, 1 << 20);
	spool_waiting(s, nr);
	return s;
}

/* Wherever dcpiship is killed, a batch that is noted is sent, and one that is not is made again. */
static void test_killed(void **state)
{
	const char *dir = scratch_path(*state, "db"), *path = scratch_path(*state, "spool");
	struct profdb *db = scratch_writer(dir);
	struct spool *s = open_spool(path, 1 << 20);
	size_t nr;

	flush(db, 10);
	assert_int_equal(packed(s, dir, true), 1);
	hold_again(s);
	s = reopen(s, path, &nr);
	assert_int_equal(nr, 1);
	assert_true(spool_is_begun(s, SCRATCH_EPOCH, "box"));
	/* Its keys were not written yet. */
	hold_again(s);
	scratch_write(*state, "spool/open-" SCRATCH_EPOCH "-box", "12345678", 8);
	s = reopen(s, path, &nr);
	assert_int_equal(nr, 0);
	assert_int_equal(unlinkat(s->dir_fd, "open-" SCRATCH_EPOCH "-box", 0), 0);
	/* A finished one. */
	assert_int_equal(profdb_epoch_finish(db, NULL), 0);
	assert_int_equal(packed(s, dir, false), 1);
	hold_again(s);
	s = reopen(s, path, &nr);
	assert_int_equal(nr, 1);
	assert_int_equal(packed(s, dir, false), 0);
	/* It was not noted yet. */
	hold_again(s);
	assert_int_equal(unlinkat(s->dir_fd, "shipped", 0), 0);
	s = reopen(s, path, &nr);
	assert_int_equal(nr, 0);
	assert_false(spool_is_begun(s, SCRATCH_EPOCH, "box"));
	assert_int_equal(packed(s, dir, false), 1);
	profdb_close(db);
	spool_close(s);
}

/* Rows of two machines must not get one name: they would replace each other. */
static void test_one_name(void **state)
{
	const char *dir = scratch_path(*state, "db");
	struct profdb *db = scratch_writer(dir), *other = scratch_open(dir, false);
	struct spool *s = open_spool(scratch_path(*state, "spool"), 1 << 20);
	struct gather g = { .prog = "test", .open = true, .as = "name" };
	char epoch[PROFDB_EPOCH_LEN + 1];
	struct base_err err = { 0 };

	flush(db, 10);
	assert_int_equal(gather_epochs(s, dir, &g, NULL), 0);
	assert_int_equal(profdb_lock(other, "other", NULL), 0);
	assert_int_equal(profdb_epoch_start(other, SCRATCH_NOW, epoch, NULL), 0);
	flush(other, 10);
	assert_int_equal(gather_epochs(s, dir, &g, &err), -DCPI_EUSAGE);
	assert_non_null(strstr(err.hint, "-platform"));
	g.platform = "other";
	assert_int_equal(gather_epochs(s, dir, &g, NULL), 0);
	assert_int_equal(g.packed, 1);
	profdb_close(other);
	profdb_close(db);
	spool_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_lasts),	 scratch_test(test_other_store),
		scratch_test(test_limit),	 scratch_test(test_away),
		scratch_test(test_gather),	 scratch_test(test_joined),
		scratch_test(test_joined_first), scratch_test(test_full),
		scratch_test(test_one_name),	 scratch_test(test_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
