/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An epoch becomes rows, and rows become a database again: a server that only hands on what it has
 * stands between them here.
 */
#include "fetch.h"
#include "scratch.h"

static const struct base_id kernel_id = { .len = 4, .bytes = { 0xde, 0xad, 0xbe, 0xef } };

static void write_kernel(struct profdb *db)
{
	const struct pseudoimg_symbol symbols[] = {
		{ .name = "first", .off = 0x100, .len = 0x100 },
		{ .name = "it's \\ second", .off = 0x200, .len = 0x100 },
	};
	int fd = openat(profdb_kernel_fd(db), "vmlinux-test", O_RDWR | O_CREAT, 0644);

	assert_true(fd >= 0);
	assert_int_equal(pseudoimg_write_symbols(symbols, 2, 0x1000, 62, &kernel_id, fd, NULL), 0);
	close(fd);
}

static void put_kernel(struct profdb *db, uint64_t n)
{
	struct profdb_profile *p = profdb_profile_new(PROFDB_KERNEL, &kernel_id, "vmlinux-test");

	assert_non_null(p);
	assert_int_equal(profdb_profile_event_add(p, "cycles", 62000), 0);
	assert_int_equal(profdb_profile_add(p, 0x110, 0, n), 0);
	assert_int_equal(profdb_profile_add(p, 0x210, 0, 2 * n), 0);
	assert_int_equal(profdb_profile_add(p, 0x2f0, 0, n), 0);
	assert_int_equal(profdb_profile_add(p, 0xf00, 0, 5), 0); /* in no procedure */
	assert_int_equal(profdb_flush_put(db, "vmlinux-test", p, NULL), 0);
	profdb_profile_free(p);
}

static struct store_batch pack(const char *dir, struct profdb *db, const struct store_pack_how *how)
{
	struct store_batch b = { 0 };
	struct store_pack *p;
	struct base_err err = { 0 };

	assert_int_equal(store_pack_open(db, dir, &p, &err), 0);
	if (store_pack_epoch(p, SCRATCH_EPOCH, "box", how, &b, &err) < 0)
		fail_msg("%s", err.text);
	store_pack_close(p);
	for (size_t i = 0; i < STORE_NR_SENT; i++)
		if (store_rows_check(&store_tables[i], b.rows[i].data, b.rows[i].len, NULL) < 0)
			fail_msg("rows of %s are malformed", store_tables[i].name);
	return b;
}

static struct store_reader reader_of(const struct base_buf *b)
{
	return (struct store_reader){ b->data, b->data + b->len, false };
}

static char *text(struct store_reader *r)
{
	size_t len;
	const char *t = store_get_string(r, &len);

	assert_non_null(t);
	return strndup(t, len);
}

/* ---- what a server answers ------------------------------------------------------------------- */

/* Rows of profiles by offset, as "SELECT … ARRAY JOIN" would give them, to @head and @count. */
static void answer_profiles(const struct base_buf *rows, struct base_buf *heads,
			    struct base_buf *counts)
{
	struct store_reader r = reader_of(rows);

	while (r.at < r.end) {
		struct base_buf key = { 0 };
		char *event = text(&r);
		const void *image = store_get_bytes(&r, STORE_KEY);
		uint64_t epoch = store_get_number(&r, 4), samples;
		char *platform = text(&r), *file = text(&r), *label;
		double period, enabled;
		uint64_t bits;
		const uint8_t *lo, *hi, *nlo, *nhi, *far, *nfar;
		size_t nr, nr_far;

		store_get_number(&r, 8);
		period = (double)store_get_number(&r, 8);
		enabled = (double)store_get_number(&r, 4);
		label = text(&r);
		samples = store_get_number(&r, 8);
		assert_int_equal(store_get_count(&r, 4), 0); /* version 1's */
		assert_int_equal(store_get_count(&r, 2), 0);
		nr = store_get_count(&r, 2);
		lo = store_get_bytes(&r, 2 * nr);
		assert_int_equal(store_get_count(&r, 2), nr);
		hi = store_get_bytes(&r, 2 * nr);
		assert_int_equal(store_get_count(&r, 1), nr);
		nlo = store_get_bytes(&r, nr);
		assert_int_equal(store_get_count(&r, 1), nr);
		nhi = store_get_bytes(&r, nr);
		nr_far = store_get_count(&r, 8);
		far = store_get_bytes(&r, 8 * nr_far);
		assert_int_equal(store_get_count(&r, 8), nr_far);
		nfar = store_get_bytes(&r, 8 * nr_far);
		store_put_text(&key, event);
		base_buf_append(&key, image, STORE_KEY);
		store_put_text(&key, label);
		store_put_text(&key, platform);
		base_buf_append_le(&key, epoch, 4);
		if (samples) {
			base_buf_append(heads, key.data, key.len);
			memcpy(&bits, &period, 8);
			base_buf_append_le(heads, bits, 8);
			memcpy(&bits, &enabled, 8);
			base_buf_append_le(heads, bits, 8);
		}
		for (size_t i = 0; i < nr; i++) {
			uint64_t o = lo[2 * i] + (lo[2 * i + 1] << 8) +
				     (uint64_t)hi[2 * i] * 65536 +
				     (uint64_t)hi[2 * i + 1] * 65536 * 256;
			uint64_t c = nlo[i] + 256U * nhi[i];

			samples -= c;
			base_buf_append(counts, key.data, key.len);
			base_buf_append_le(counts, o, 8);
			base_buf_append_le(counts, c, 8);
		}
		for (size_t i = 0; i < nr_far; i++) {
			uint64_t o, c;

			memcpy(&o, far + 8 * i, 8);
			memcpy(&c, nfar + 8 * i, 8);
			samples -= c;
			base_buf_append(counts, key.data, key.len);
			base_buf_append_le(counts, o, 8);
			base_buf_append_le(counts, c, 8);
		}
		assert_int_equal(samples, 0); /* the sum that the row tells */
		base_buf_release(&key);
		free(event);
		free(platform);
		free(file);
		free(label);
	}
	assert_false(r.bad);
}

static void take_all(struct fetch *f, const struct base_buf *rows, enum fetch_row row)
{
	struct store_reader r = reader_of(rows);

	while (r.at < r.end) {
		assert_int_equal(fetch_take(f, row, &r), 0);
		assert_false(r.bad);
	}
}

static void take_contents(struct fetch *f, const struct base_buf *rows)
{
	struct store_reader r = reader_of(rows);
	struct base_buf answer = { 0 };

	while (r.at < r.end) {
		size_t len;
		const void *key = store_get_bytes(&r, STORE_KEY);
		const char *bytes;

		store_get_number(&r, 8);
		bytes = store_get_string(&r, &len);
		base_buf_append(&answer, key, STORE_KEY);
		store_put_string(&answer, bytes, len);
	}
	take_all(f, &answer, FETCH_CONTENT);
	base_buf_release(&answer);
}

/* The database @to of the batch's profiles. */
static void fetch_offsets(const struct store_batch *b, const char *to)
{
	const struct store_want w = { .by_platform = true, .by_epoch = true };
	struct fetch f = { .w = &w };
	struct base_buf heads = { 0 }, counts = { 0 };
	struct store_fetched got;
	struct base_err err = { 0 };

	take_all(&f, &b->rows[STORE_IMAGE], FETCH_IMAGE);
	take_contents(&f, &b->rows[STORE_CONTENT]);
	answer_profiles(&b->rows[STORE_PROF], &heads, &counts);
	take_all(&f, &heads, FETCH_HEAD);
	take_all(&f, &counts, FETCH_COUNT);
	if (fetch_write(&f, to, &got, &err) < 0)
		fail_msg("%s", err.text);
	fetch_release(&f);
	base_buf_release(&heads);
	base_buf_release(&counts);
}

/* ---- tests ----------------------------------------------------------------------------------- */

struct all {
	struct base_buf text;
};

static int describe(void *ctx, const char *file, struct profdb_profile *p)
{
	struct all *a = ctx;
	char id[BASE_ID_TEXT_LEN];

	(void)file;
	base_buf_printf(&a->text, "%s %s %s %s", profdb_kind_name(profdb_profile_kind(p)),
			profdb_profile_path(p, 0), base_id_text(profdb_profile_image(p), id),
			profdb_profile_word(p, "label") ? profdb_profile_word(p, "label") : "");
	for (size_t e = 0; e < profdb_profile_nr_events(p); e++)
		base_buf_printf(&a->text, " %s/%llu/%g", profdb_profile_event(p, e)->name,
				(unsigned long long)profdb_profile_event(p, e)->period,
				profdb_profile_event(p, e)->enabled);
	for (size_t i = 0; i < profdb_profile_nr_entries(p); i++) {
		const struct profdb_entry *entry = profdb_profile_entry(p, i);

		base_buf_printf(&a->text, " %llx", (unsigned long long)entry->off);
		for (size_t e = 0; e < profdb_profile_nr_events(p); e++)
			base_buf_printf(&a->text, ":%llu", (unsigned long long)entry->count[e]);
	}
	base_buf_printf(&a->text, "\n");
	profdb_profile_free(p);
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All profiles of the epoch as lines, sorted: names of files do not count. */
static char *description(const char *dir)
{
	struct profdb *db = scratch_open(dir, false);
	struct all a = { { 0 } };
	char *lines[64], *save, *out;
	struct base_buf sorted = { 0 };
	size_t nr = 0;

	assert_int_equal(profdb_walk(db, SCRATCH_EPOCH, "box", describe, NULL, &a, NULL), 0);
	for (char *l = strtok_r((char *)a.text.data, "\n", &save); l && nr < 64;
	     l = strtok_r(NULL, "\n", &save))
		lines[nr++] = l;
	qsort(lines, nr, sizeof(*lines), by_text);
	for (size_t i = 0; i < nr; i++)
		base_buf_printf(&sorted, "%s\n", lines[i]);
	out = strdup((char *)sorted.data);
	base_buf_release(&a.text);
	base_buf_release(&sorted);
	profdb_close(db);
	return out;
}

/* Large differences and counts, two events, a label, a second file of one build-id. */
static void put_odd(struct profdb *db)
{
	const struct base_id id = { .len = 2, .bytes = { 0xab, 7 } };
	struct profdb_profile *p = profdb_profile_new(PROFDB_FILE, &id, "/bin/o'dd \\ \n name");

	assert_non_null(p);
	assert_int_equal(profdb_profile_event_add(p, "cycles", 62000), 0);
	assert_int_equal(profdb_profile_event_add(p, "misses", 100), 1);
	assert_int_equal(profdb_profile_event_set_enabled(p, 1, 0.25), 0);
	assert_int_equal(profdb_profile_add(p, 0, 0, UINT32_MAX), 0);
	assert_int_equal(profdb_profile_add(p, 1, 0, (uint64_t)UINT32_MAX + 1), 0);
	assert_int_equal(profdb_profile_add(p, UINT32_MAX, 1, 3), 0);
	assert_int_equal(profdb_profile_add(p, UINT64_C(1) << 40, 0, UINT64_C(1) << 40), 0);
	assert_int_equal(profdb_flush_put(db, "odd", p, NULL), 0);
	assert_int_equal(profdb_profile_set_word(p, "label", "a'label"), 0);
	assert_int_equal(profdb_flush_put(db, "odd", p, NULL), 0);
	profdb_profile_free(p);
	p = profdb_profile_new(PROFDB_NAMED, &(const struct base_id){ 0 }, "idle");
	assert_int_equal(profdb_profile_event_add(p, "cycles", 62000), 0);
	assert_int_equal(profdb_profile_add(p, 0, 0, 9), 0);
	assert_int_equal(profdb_flush_put(db, "idle", p, NULL), 0);
	profdb_profile_free(p);
}

static void make_database(const char *dir)
{
	struct profdb *db = scratch_writer(dir);

	write_kernel(db);
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	scratch_put(db, "/bin/prog", 1, 10);
	put_odd(db);
	put_kernel(db, 100);
	assert_int_equal(scratch_put_workloads(db, 30), 0);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	assert_int_equal(profdb_epoch_finish(db, NULL), 0);
	profdb_close(db);
}

/* A fetched database has the counts of the packed one, one by one. */
static void test_same(void **state)
{
	const struct store_pack_how how = { 0 };
	const char *dir = scratch_path(*state, "from"), *to = scratch_path(*state, "to");
	struct store_batch b;
	struct profdb *db;
	char *before, *after;

	make_database(dir);
	db = scratch_open(dir, false);
	b = pack(dir, db, &how);
	profdb_close(db);
	fetch_offsets(&b, to);
	before = description(dir);
	after = description(to);
	assert_string_equal(before, after);
	assert_non_null(strstr(before, "10000000000:1099511627776"));
	assert_int_equal(faccessat(AT_FDCWD, scratch_path(to, "kernel/vmlinux-test"), R_OK, 0), 0);
	free(before);
	free(after);
	store_batch_release(&b);
}

/* The sum of the routine of that name in rows of totals. */
static uint64_t sum_of(const struct store_batch *b, const char *symbol)
{
	struct store_reader r = reader_of(&b->rows[STORE_ROUTINE]);
	uint64_t number = 0, sum = 0;

	while (r.at < r.end) {
		uint64_t one = store_get_number(&r, 8);
		char *name;

		store_get_bytes(&r, STORE_KEY);
		name = text(&r);
		number = strcmp(name, symbol) == 0 ? one : number;
		free(name);
		store_get_bytes(&r, 24);
	}
	r = reader_of(&b->rows[STORE_TOTALS]);
	while (r.at < r.end) {
		uint64_t samples, all = 0;
		const uint8_t *numbers, *n;
		size_t nr;

		free(text(&r));
		free(text(&r));
		store_get_number(&r, 4);
		free(text(&r));
		store_get_bytes(&r, 20);
		samples = store_get_number(&r, 8);
		nr = store_get_count(&r, 8);
		numbers = store_get_bytes(&r, 8 * nr);
		assert_int_equal(store_get_count(&r, 8), nr);
		n = store_get_bytes(&r, 8 * nr);
		for (size_t i = 0; i < nr; i++) {
			uint64_t k, c;

			memcpy(&k, numbers + 8 * i, 8);
			memcpy(&c, n + 8 * i, 8);
			all += c;
			sum += k == number ? c : 0;
		}
		assert_int_equal(all, samples);
	}
	assert_false(r.bad);
	return sum;
}

static void test_routines(void **state)
{
	const struct store_pack_how how = { 0 };
	struct profdb *db;
	struct store_batch b;

	make_database(*state);
	db = scratch_open(*state, false);
	b = pack(*state, db, &how);
	assert_int_equal(sum_of(&b, "first"), 100);
	assert_int_equal(sum_of(&b, "it's \\ second"), 300);
	profdb_close(db);
	store_batch_release(&b);
}

struct keys {
	struct base_buf bytes[64];
	struct store_row_key v[64];
	size_t nr;
};

static int keep_key(void *ctx, const struct store_row_key *key)
{
	struct keys *k = ctx;

	assert_true(k->nr < 64);
	assert_int_equal(base_buf_append(&k->bytes[k->nr], key->data, key->len), 0);
	k->v[k->nr] = (struct store_row_key){ key->table, k->bytes[k->nr].data, key->len };
	k->nr++;
	return 0;
}

/* A row that was sent, and whose profile is no more, becomes an empty one of a later version. */
static void test_gone(void **state)
{
	struct keys keys = { .nr = 0 };
	struct store_pack_how how = { .row = keep_key, .ctx = &keys };
	const char *dir = scratch_path(*state, "from"), *to = scratch_path(*state, "to");
	uint32_t begin = (uint32_t)profdb_epoch_begin_time(SCRATCH_EPOCH);
	char gone[] = "\6cycles0123456789abcdefTIME\3box\7gone.f1";
	struct store_batch b;
	struct profdb *db;
	char *before, *after;
	uint64_t ver = 0;
	const uint8_t *row;

	memcpy(strstr(gone, "TIME"), &begin, 4);
	make_database(dir);
	db = scratch_open(dir, false);
	b = pack(dir, db, &how);
	assert_true(keys.nr > 5);
	store_batch_release(&b);
	keys.v[keys.nr++] = (struct store_row_key){ STORE_PROF, gone, sizeof(gone) - 1 };
	how = (struct store_pack_how){ .before = keys.v, .nr_before = keys.nr, .ver = &ver };
	b = pack(dir, db, &how);
	profdb_close(db);
	/* One row more, which adds nothing. */
	row = memmem(b.rows[STORE_PROF].data, b.rows[STORE_PROF].len, gone, sizeof(gone) - 1);
	assert_non_null(row);
	assert_memory_equal(row + sizeof(gone) - 1, &ver, sizeof(ver));
	fetch_offsets(&b, to);
	before = description(dir);
	after = description(to);
	assert_string_equal(before, after);
	for (size_t i = 0; i < keys.nr; i++)
		base_buf_release(&keys.bytes[i]);
	free(before);
	free(after);
	store_batch_release(&b);
}

static bool has_all(void *ctx, const void *key, size_t len)
{
	(void)key;
	*(size_t *)ctx += len != 0;
	return true;
}

/* Images and routines that the store has are not sent again. */
static void test_known(void **state)
{
	struct store_batch b = { 0 };
	struct store_pack *p;
	struct profdb *db;
	size_t asked = 0;
	const struct store_pack_how how = { .has = has_all, .known = &asked };

	make_database(*state);
	db = scratch_open(*state, false);
	assert_int_equal(store_pack_open(db, *state, &p, NULL), 0);
	assert_int_equal(store_pack_epoch(p, SCRATCH_EPOCH, "box", &how, &b, NULL), 0);
	assert_true(asked > 4);
	assert_int_equal(b.rows[STORE_IMAGE].len, 0);
	assert_int_equal(b.rows[STORE_ROUTINE].len, 0);
	assert_int_equal(b.rows[STORE_CONTENT].len, 0);
	assert_true(b.rows[STORE_PROF].len > 0);
	store_pack_close(p);
	profdb_close(db);
	store_batch_release(&b);
}

/* The kernel is on a call path alone: its row and its bytes are in the batch all the same. */
static void test_callers(void **state)
{
	const struct store_pack_how how = { .above = 0 };
	const struct profdb_image_ref images[] = {
		{ .kind = PROFDB_FILE,
		  .id = { .len = 2, .bytes = { 0xab, 1 } },
		  .path = "/bin/prog" },
		{ .kind = PROFDB_KERNEL, .id = kernel_id, .path = "vmlinux-test" },
	};
	const struct profdb_frame frames[] = { { 0, 16 }, { 1, 0x210 } };
	struct profdb_callpaths *c = profdb_callpaths_new();
	struct profdb *db = scratch_writer(*state);
	struct store_batch b;

	write_kernel(db);
	for (int i = 0; i < 2; i++)
		assert_int_equal(profdb_callpaths_image_add(c, &images[i]), i);
	assert_int_equal(profdb_callpaths_event_add(c, "cycles", 62000), 0);
	assert_int_equal(profdb_callpaths_add(c, 0, PROFDB_CALLPATH_COMPLETE, frames, 2, 7), 0);
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	scratch_put(db, "/bin/prog", 1, 10);
	assert_int_equal(profdb_flush_put_callpaths(db, c, NULL), 0);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	b = pack(*state, db, &how);
	assert_non_null(
		memmem(b.rows[STORE_IMAGE].data, b.rows[STORE_IMAGE].len, "vmlinux-test", 12));
	assert_true(b.rows[STORE_CONTENT].len > 0);
	assert_non_null(memmem(b.rows[STORE_CONTENT].data, b.rows[STORE_CONTENT].len, "second", 6));
	profdb_callpaths_free(c);
	store_batch_release(&b);
	profdb_close(db);
}

static void put_part(struct base_buf *rows, const char *platform, const char *kind)
{
	store_put_text(rows, platform);
	base_buf_append_le(rows, 1795161250, 4);
	store_put_text(rows, kind);
	assert_int_equal(store_put_text(rows, "x"), 0);
}

/* Rows that lead to no file of a database, and contents with another's key, are left out, counted,
 * and take nothing else with them. */
static void test_left_out(void **state)
{
	const struct store_want w = { .by_platform = true, .by_epoch = true };
	struct fetch f = { .w = &w };
	struct base_buf head = { 0 }, parts = { 0 }, content = { 0 };
	struct store_fetched got;
	struct store_reader r;
	void *key;

	store_put_text(&head, "cycles");
	base_buf_extend(&head, STORE_KEY, &key);
	store_put_text(&head, "");
	store_put_text(&head, "box");
	base_buf_append_le(&head, 1795161250, 4);
	assert_int_equal(base_buf_extend(&head, 16, &key), 0);
	take_all(&f, &head, FETCH_HEAD);
	put_part(&parts, "../..", "workloads");
	put_part(&parts, "box", "passwd");
	take_all(&f, &parts, FETCH_PART);
	base_buf_extend(&content, STORE_KEY, &key);
	assert_int_equal(store_put_text(&content, "other bytes"), 0);
	r = reader_of(&content);
	assert_int_equal(fetch_take(&f, FETCH_CONTENT, &r), -DCPI_EFORMAT);
	assert_false(r.bad);
	assert_int_equal(fetch_write(&f, scratch_path(*state, "to"), &got, NULL), 0);
	assert_int_equal(got.skipped, 2);
	assert_int_equal(got.profiles, 1);
	fetch_release(&f);
	base_buf_release(&head);
	base_buf_release(&parts);
	base_buf_release(&content);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_same),  scratch_test(test_routines), scratch_test(test_gone),
		scratch_test(test_known), scratch_test(test_left_out), scratch_test(test_callers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
