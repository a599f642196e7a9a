/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "scratch.h"

static struct profdb_profile *new_profile(void)
{
	return scratch_profile("/bin/true", 1, 0, 0);
}

static void test_header(void **state)
{
	struct base_id image = { .len = 1, .bytes = { 7 } }, other = { .len = 1, .bytes = { 8 } };
	struct profdb_profile *p = profdb_profile_new(PROFDB_VDSO, &image, "[vdso]");

	(void)state;
	assert_int_equal(profdb_profile_kind(p), PROFDB_VDSO);
	assert_true(base_id_equal(profdb_profile_image(p), &image));
	profdb_profile_set_image(p, &other);
	assert_true(base_id_equal(profdb_profile_image(p), &other));
	assert_int_equal(profdb_profile_add_path(p, "/b"), 0);
	assert_int_equal(profdb_profile_add_path(p, "[vdso]"), 0);
	assert_int_equal(profdb_profile_add_path(p, ""), 0);
	assert_string_equal(profdb_profile_path(p, 0), "[vdso]");
	assert_string_equal(profdb_profile_path(p, 1), "/b");
	assert_null(profdb_profile_path(p, 2));
	profdb_profile_free(p);
	profdb_profile_free(NULL);
}

static void test_paths_are_limited(void **state)
{
	struct profdb_profile *p = new_profile();
	char path[32];

	(void)state;
	for (int i = 0; i < 1000; i++) {
		snprintf(path, sizeof(path), "/%d", i);
		assert_int_equal(profdb_profile_add_path(p, path), 0);
	}
	assert_string_equal(profdb_profile_path(p, 0), "/bin/true");
	assert_string_equal(profdb_profile_path(p, PROFDB_NR_PATHS - 1), "/62");
	assert_null(profdb_profile_path(p, PROFDB_NR_PATHS));
	profdb_profile_free(p);
}

/* As many as are kept, however they are escaped, fit into a header. */
static void test_long_paths_are_cut(void **state)
{
	static char path[(2u << 20) + 1];
	struct profdb_profile *p = profdb_profile_new(PROFDB_FILE, NULL, "/a");
	struct base_buf buf = { 0 };

	(void)state;
	memset(path, '\n', sizeof(path) - 1);
	for (int i = 0; i < PROFDB_NR_PATHS; i++) {
		path[0] = (char)('A' + i);
		assert_int_equal(profdb_profile_add_path(p, path), 0);
		assert_int_equal(profdb_profile_add_path(p, path), 0);
	}
	assert_int_equal(strlen(profdb_profile_path(p, 1)), PROFDB_PATH_MAX);
	assert_int_equal(profdb_profile_path(p, 2)[0], 'B');
	assert_int_equal(profdb_profile_format(p, PROFDB_FORMAT_1, 0, &buf, NULL), 0);
	base_buf_release(&buf);
	profdb_profile_free(p);
}

static void test_words(void **state)
{
	struct profdb_profile *p = new_profile();
	const char *word;

	(void)state;
	assert_null(profdb_profile_word(p, "label"));
	assert_int_equal(profdb_profile_set_word(p, "label", "run one"), 0);
	assert_int_equal(profdb_profile_set_word(p, "label", "run two"), 0);
	assert_string_equal(profdb_profile_word(p, "label"), "run two");
	assert_int_equal(profdb_profile_set_word(p, "label", NULL), 0);
	assert_null(profdb_profile_word(p, "label"));
	assert_int_equal(profdb_profile_set_word(p, "tsize", "4096"), 0);
	assert_int_equal(profdb_profile_set_word(p, "tstart", "0x120000000"), 0);
	assert_string_equal(profdb_profile_word(p, "tstart"), "0x120000000");
	assert_int_equal(profdb_profile_set_word(p, "weather", "fine"), 0);
	assert_string_equal(profdb_profile_line(p, 2, &word), "fine");
	assert_string_equal(word, "weather");
	assert_null(profdb_profile_line(p, 3, &word));
	profdb_profile_free(p);
}

static void test_words_that_no_file_could_hold(void **state)
{
	static const char *const bad[][2] = {
		{ "", "x" },
		{ "two words", "x" },
		{ "new\nline", "x" },
		{ "label", "" },
		{ "image", "ab" },
		{ "version", "0.07" },
		{ "period", "1" },
		{ "path", "/x" },
		{ "event", "cycles" },
		{ "kind", "file" },
		{ "tsize", "many" },
		{ "tsize", "0x10" },
		{ "cpuspeed", "" },
		{ "cpuamask", "xyz" },
		{ "epoch", "202613010000" },
		{ "epoch", "noon" },
		{ "tstart", "120000000h" },
		{ "enabled", "1" },
		{ "epoch", "202601012400" },
	};
	struct profdb_profile *p = new_profile();

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(profdb_profile_set_word(p, bad[i][0], bad[i][1]), -EINVAL);
		assert_null(profdb_profile_word(p, bad[i][0]));
	}
	profdb_profile_free(p);
}

static void test_events(void **state)
{
	struct profdb_profile *p = new_profile();
	char name[PROFDB_EVENT_NAME + 1];

	(void)state;
	assert_int_equal(profdb_profile_event_add(p, "imiss", 4096), 1);
	assert_int_equal(profdb_profile_event_add(p, "cycles", 1), 0);
	assert_int_equal(profdb_profile_event(p, 0)->period, 62000);
	assert_int_equal(profdb_profile_event_find(p, "imiss"), 1);
	assert_int_equal(profdb_profile_event_find(p, "dmiss"), -ENOENT);
	assert_int_equal(profdb_profile_event_add(p, "", 1), -EINVAL);
	assert_int_equal(profdb_profile_event_add(p, "a b", 1), -EINVAL);
	memset(name, 'x', sizeof(name));
	name[PROFDB_EVENT_NAME] = '\0';
	assert_int_equal(profdb_profile_event_add(p, name, 1), -EINVAL);
	name[PROFDB_EVENT_NAME - 1] = '\0';
	assert_int_equal(profdb_profile_event_add(p, name, 1), 2);
	assert_int_equal(profdb_profile_event_set_enabled(p, 1, 0.25), 0);
	assert_true(profdb_profile_event(p, 1)->enabled == 0.25);
	assert_int_equal(profdb_profile_event_set_enabled(p, 1, 1.5), -EINVAL);
	assert_int_equal(profdb_profile_event_set_enabled(p, 3, 0.5), -EINVAL);
	assert_int_equal(profdb_profile_add(p, 0, 3, 1), -EINVAL);
	for (int i = 3; i < PROFDB_NR_EVENTS; i++) {
		snprintf(name, sizeof(name), "event%d", i);
		assert_int_equal(profdb_profile_event_add(p, name, 1), i);
	}
	assert_int_equal(profdb_profile_event_add(p, "more", 1), -DCPI_ELIMIT);
	assert_int_equal(profdb_profile_nr_events(p), PROFDB_NR_EVENTS);
	assert_null(profdb_profile_event(p, PROFDB_NR_EVENTS));
	profdb_profile_free(p);
}

/* Offsets in an order that neither sorts nor repeats at once, looked at now and then. */
static void test_counts(void **state)
{
	enum { N = 4001 };
	struct profdb_profile *p = new_profile();
	const struct profdb_entry *e;

	(void)state;
	for (uint64_t i = 0; i < 3 * N; i++) {
		assert_int_equal(profdb_profile_add(p, i * 1597 % N * 8, 0, i % N), 0);
		if (i == N / 2 || i == 2 * N)
			assert_non_null(profdb_profile_entry(p, 0));
		if (i == N)
			assert_int_equal(profdb_profile_event_add(p, "imiss", 1), 1);
		if (i == N + 7)
			assert_int_equal(profdb_profile_add(p, 800, 1, 5), 0);
	}
	/* i = 0 added nothing, at offset 0. */
	assert_int_equal(profdb_profile_nr_entries(p), N - 1);
	assert_int_equal(profdb_profile_event(p, 0)->sum, 3ull * N * (N - 1) / 2);
	for (size_t i = 0; i < N - 1; i++) {
		e = profdb_profile_entry(p, i);
		assert_int_equal(e->off, 8 * (i + 1));
		assert_int_equal(e->count[0] / 3 * 1597 % N, i + 1);
		assert_int_equal(e->count[1], e->off == 800 ? 5 : 0);
	}
	assert_null(profdb_profile_entry(p, N - 1));
	profdb_profile_clear(p);
	assert_int_equal(profdb_profile_nr_entries(p), 0);
	assert_int_equal(profdb_profile_event(p, 0)->sum, 0);
	assert_int_equal(profdb_profile_nr_events(p), 2);
	assert_int_equal(profdb_profile_add(p, 9, 1, 1), 0);
	assert_int_equal(profdb_profile_entry(p, 0)->off, 9);
	assert_int_equal(profdb_profile_entry(p, 0)->count[0], 0);
	profdb_profile_free(p);
}

static void test_all_events_of_a_row_are_kept(void **state)
{
	struct profdb_profile *p = new_profile();
	char name[16];

	(void)state;
	for (int i = 1; i < PROFDB_NR_EVENTS; i++) {
		assert_int_equal(profdb_profile_add(p, 5 + 7 * (unsigned int)(i % 3),
						    (unsigned int)i - 1, 1u << i),
				 0);
		snprintf(name, sizeof(name), "e%d", i);
		assert_int_equal(profdb_profile_event_add(p, name, 1), i);
	}
	assert_int_equal(profdb_profile_nr_entries(p), 3);
	for (int i = 1; i < PROFDB_NR_EVENTS; i++) {
		for (int row = 0; row < 3; row++)
			assert_int_equal(profdb_profile_entry(p, (size_t)row)->count[i - 1],
					 i % 3 == row ? 1u << i : 0);
	}
	profdb_profile_free(p);
}

static void test_overflow_changes_nothing(void **state)
{
	struct profdb_profile *p = new_profile();

	(void)state;
	assert_int_equal(profdb_profile_add(p, 1, 0, UINT64_MAX - 1), 0);
	assert_int_equal(profdb_profile_add(p, 2, 0, 2), -DCPI_EOVERFLOW);
	assert_int_equal(profdb_profile_nr_entries(p), 1);
	assert_int_equal(profdb_profile_add(p, 1, 0, 1), 0);
	assert_int_equal(profdb_profile_add(p, 1, 0, 1), -DCPI_EOVERFLOW);
	assert_true(profdb_profile_event(p, 0)->sum == UINT64_MAX);
	profdb_profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_paths_are_limited),
		cmocka_unit_test(test_long_paths_are_cut),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_words_that_no_file_could_hold),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_all_events_of_a_row_are_kept),
		cmocka_unit_test(test_overflow_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
