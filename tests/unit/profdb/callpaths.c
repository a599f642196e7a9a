/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "scratch.h"

static const struct base_id id_a = { .len = 2, .bytes = { 0xab, 1 } };
static const struct base_id id_b = { .len = 3, .bytes = { 0xab, 1, 2 } };

static int image(struct profdb_callpaths *c, enum profdb_kind kind, const struct base_id *id,
		 const char *path, const char *stem)
{
	struct profdb_callpath_image i = { .kind = kind, .id = *id, .path = path, .stem = stem };

	return profdb_callpaths_image_add(c, &i);
}

static struct profdb_callpaths *make(void)
{
	struct profdb_callpaths *c = profdb_callpaths_new();

	assert_non_null(c);
	assert_int_equal(image(c, PROFDB_FILE, &id_a, "/bin/prog", NULL), 0);
	assert_int_equal(image(c, PROFDB_KERNEL, &id_b, "vmlinux", NULL), 1);
	assert_int_equal(profdb_callpaths_event_add(c, "cycles", 62000), 0);
	return c;
}

static void add(struct profdb_callpaths *c, size_t event, enum profdb_callpath_end end,
		const struct profdb_frame *frames, size_t nr, uint64_t n)
{
	assert_int_equal(profdb_callpaths_add(c, event, end, frames, nr, n), 0);
}

/* The path of a node: "END;IMAGE+OFF;…", outermost first. */
static void path_of(const struct profdb_callpaths *c, size_t index, char text[256])
{
	struct profdb_callpath_node n = profdb_callpaths_node(c, index);
	size_t len;

	if (index < PROFDB_NR_CALLPATH_ENDS) {
		assert_int_equal(n.parent, index);
		snprintf(text, 256, "%zu", index);
		return;
	}
	assert_true(n.parent < index);
	path_of(c, n.parent, text);
	len = strlen(text);
	snprintf(text + len, 256 - len, ";%u+%llx", n.frame.image, (unsigned long long)n.frame.off);
}

static uint64_t count_of(const struct profdb_callpaths *c, const char *path, size_t event)
{
	char text[256];

	for (size_t i = 0; i < profdb_callpaths_nr_nodes(c); i++) {
		path_of(c, i, text);
		if (!strcmp(text, path))
			return profdb_callpaths_node(c, i).count[event];
	}
	fail_msg("no path %s", path);
	return 0;
}

static void test_paths_share_their_callers(void **state)
{
	const struct profdb_frame deep[] = { { 1, 0x30 }, { 0, 0x20 }, { 0, 0x10 } };
	struct profdb_callpaths *c = make();

	(void)state;
	add(c, 0, PROFDB_CALLPATH_COMPLETE, deep, 3, 2);
	add(c, 0, PROFDB_CALLPATH_COMPLETE, deep + 1, 2, 3);
	add(c, 0, PROFDB_CALLPATH_COMPLETE, deep, 3, 5);
	assert_int_equal(profdb_callpaths_nr_nodes(c), PROFDB_NR_CALLPATH_ENDS + 3);
	add(c, 0, PROFDB_CALLPATH_CUT, deep, 3, 1);
	assert_int_equal(profdb_callpaths_nr_nodes(c), PROFDB_NR_CALLPATH_ENDS + 6);
	assert_int_equal(count_of(c, "0;0+10;0+20;1+30", 0), 7);
	assert_int_equal(count_of(c, "0;0+10;0+20", 0), 3);
	assert_int_equal(count_of(c, "0;0+10", 0), 0);
	assert_int_equal(count_of(c, "1;0+10;0+20;1+30", 0), 1);
	assert_int_equal(profdb_callpaths_event(c, 0)->sum, 11);
	profdb_callpaths_free(c);
}

static void test_an_event_more_keeps_the_counts(void **state)
{
	const struct profdb_frame f = { 0, 16 };
	struct profdb_callpaths *c = make();
	char name[16];

	(void)state;
	add(c, 0, PROFDB_CALLPATH_COMPLETE, &f, 1, 4);
	for (int i = 1; i < PROFDB_NR_EVENTS; i++) {
		snprintf(name, sizeof(name), "e%d", i);
		assert_int_equal(profdb_callpaths_event_add(c, name, 1), i);
		add(c, (size_t)i, PROFDB_CALLPATH_COMPLETE, &f, 1, 10 + (uint64_t)i);
	}
	assert_int_equal(profdb_callpaths_event_add(c, "cycles", 1), 0);
	assert_int_equal(profdb_callpaths_event_add(c, "many", 1), -DCPI_ELIMIT);
	assert_int_equal(profdb_callpaths_event_add(c, "a b", 1), -EINVAL);
	assert_int_equal(profdb_callpaths_nr_events(c), PROFDB_NR_EVENTS);
	assert_int_equal(count_of(c, "0;0+10", 0), 4);
	for (size_t i = 1; i < PROFDB_NR_EVENTS; i++)
		assert_int_equal(count_of(c, "0;0+10", i), 10 + i);
	profdb_callpaths_free(c);
}

static void test_images_are_equal_by_what_they_are(void **state)
{
	const struct base_id none = { 0 };
	struct profdb_callpaths *c = make();

	(void)state;
	assert_int_equal(image(c, PROFDB_FILE, &id_a, "/bin/prog", NULL), 0);
	assert_int_equal(image(c, PROFDB_FILE, &id_a, "/bin/other", NULL), 2);
	assert_int_equal(image(c, PROFDB_FILE, &id_b, "/bin/prog", NULL), 3);
	assert_int_equal(image(c, PROFDB_NAMED, &none, "unknown", NULL), 4);
	assert_int_equal(image(c, PROFDB_NAMED, &none, NULL, NULL), 5);
	assert_int_equal(image(c, PROFDB_NAMED, &none, "", NULL), 5);
	assert_int_equal(image(c, PROFDB_DYNAMIC, &id_a, "java", "java-1.dyn"), 6);
	assert_int_equal(image(c, PROFDB_DYNAMIC, &id_b, "java", "java-1.dyn"), 6);
	assert_int_equal(image(c, PROFDB_DYNAMIC, &id_b, "java", "java-2.dyn"), 7);
	assert_true(base_id_equal(&profdb_callpaths_image(c, 6)->id, &id_b));
	assert_string_equal(profdb_callpaths_image(c, 6)->stem, "java-1.dyn");
	assert_string_equal(profdb_callpaths_image(c, 5)->path, "");
	assert_int_equal(profdb_callpaths_nr_images(c), 8);
	assert_null(profdb_callpaths_image(c, 8));
	assert_int_equal(image(c, PROFDB_DYNAMIC, &id_b, "java", NULL), -EINVAL);
	assert_int_equal(image(c, PROFDB_FILE, &id_b, "java", "java-1.dyn"), -EINVAL);
	profdb_callpaths_free(c);
}

static void test_what_is_refused_changes_nothing(void **state)
{
	const struct profdb_frame good[] = { { 0, 1 }, { 1, 1 } }, bad[] = { { 0, 1 }, { 2, 1 } };
	struct profdb_callpaths *c = make();

	(void)state;
	assert_int_equal(profdb_callpaths_add(c, 0, PROFDB_CALLPATH_CUT, bad, 2, 1), -EINVAL);
	assert_int_equal(profdb_callpaths_add(c, 0, PROFDB_CALLPATH_CUT, good, 0, 1), -EINVAL);
	assert_int_equal(profdb_callpaths_add(c, 1, PROFDB_CALLPATH_CUT, good, 2, 1), -EINVAL);
	assert_int_equal(profdb_callpaths_add(c, 0, PROFDB_NR_CALLPATH_ENDS, good, 2, 1), -EINVAL);
	add(c, 0, PROFDB_CALLPATH_CUT, good, 2, 0);
	assert_int_equal(profdb_callpaths_nr_nodes(c), PROFDB_NR_CALLPATH_ENDS);
	add(c, 0, PROFDB_CALLPATH_CUT, good, 1, UINT64_MAX - 1);
	assert_int_equal(profdb_callpaths_add(c, 0, PROFDB_CALLPATH_CUT, good, 2, 2),
			 -DCPI_EOVERFLOW);
	assert_int_equal(profdb_callpaths_nr_nodes(c), PROFDB_NR_CALLPATH_ENDS + 1);
	assert_int_equal(profdb_callpaths_event(c, 0)->sum, UINT64_MAX - 1);
	profdb_callpaths_free(c);
}

static void test_merging_adds_all(void **state)
{
	const struct profdb_frame x[] = { { 0, 1 }, { 1, 2 } }, y[] = { { 1, 1 }, { 2, 2 } };
	struct profdb_callpaths *a = make(), *b = profdb_callpaths_new();

	(void)state;
	assert_int_equal(image(b, PROFDB_DYNAMIC, &id_b, "jit", "jit.dyn"), 0);
	assert_int_equal(image(b, PROFDB_FILE, &id_a, "/bin/prog", NULL), 1);
	assert_int_equal(image(b, PROFDB_KERNEL, &id_b, "vmlinux", NULL), 2);
	assert_int_equal(profdb_callpaths_event_add(b, "misses", 7), 0);
	assert_int_equal(profdb_callpaths_event_add(b, "cycles", 62000), 1);
	add(a, 0, PROFDB_CALLPATH_COMPLETE, x, 2, 3);
	add(b, 1, PROFDB_CALLPATH_COMPLETE, y, 2, 4);
	add(b, 0, PROFDB_CALLPATH_COMPLETE, y, 2, 9);
	add(b, 0, PROFDB_CALLPATH_NO_ROWS, &(struct profdb_frame){ 0, 5 }, 1, 1);
	assert_int_equal(profdb_callpaths_merge(a, b), 0);
	assert_int_equal(count_of(a, "0;1+2;0+1", 0), 7);
	assert_int_equal(count_of(a, "0;1+2;0+1", 1), 9);
	assert_int_equal(count_of(a, "3;2+5", 1), 1);
	assert_int_equal(profdb_callpaths_event(a, 0)->sum, 7);
	assert_int_equal(profdb_callpaths_event(a, 1)->sum, 10);
	assert_int_equal(profdb_callpaths_nr_nodes(a), PROFDB_NR_CALLPATH_ENDS + 3);
	add(b, 1, PROFDB_CALLPATH_COMPLETE, y, 1, UINT64_MAX - 4);
	assert_int_equal(profdb_callpaths_merge(a, b), -DCPI_EOVERFLOW);
	assert_int_equal(profdb_callpaths_nr_nodes(a), PROFDB_NR_CALLPATH_ENDS + 3);
	assert_int_equal(profdb_callpaths_event(a, 1)->sum, 10);
	profdb_callpaths_free(a);
	profdb_callpaths_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths_share_their_callers),
		cmocka_unit_test(test_an_event_more_keeps_the_counts),
		cmocka_unit_test(test_images_are_equal_by_what_they_are),
		cmocka_unit_test(test_what_is_refused_changes_nothing),
		cmocka_unit_test(test_merging_adds_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
