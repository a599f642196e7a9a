/* SPDX-License-Identifier: BSD-2-Clause */
/* Room for unwind tables in the kernel's maps, which stand in plain memory here. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bpf_rows.h"

struct led {
	struct driver_file file;
	uint32_t number;
	bool known;
};

/* The contents of the kernel's maps, so to speak. */
struct kernel {
	struct bpf_rows rows;
	struct callpath_table tables[CALLPATH_NR_FILES];
	struct unwind_python pythons[CALLPATH_NR_FILES];
	struct led led[2 * CALLPATH_NR_FILES];
	uint32_t changes, waits, banks;
	uint32_t watched; /* a word that must stay what it is until programs were waited for; … */
	uint32_t kept;	  /* … that */
	bool no_bank;
};

static struct kernel *k;

static struct led *led_of(const struct driver_file *file)
{
	struct led *led = &k->led[file->ino % (2 * CALLPATH_NR_FILES)];

	led->file = *file;
	return led;
}

static int make_bank(void *ctx, uint32_t number, uint32_t **words)
{
	(void)ctx;
	assert_true(number < CALLPATH_NR_BANKS);
	if (k->no_bank)
		return -ENOMEM;
	k->banks++;
	*words = calloc(CALLPATH_BANK * CALLPATH_CHUNK, sizeof(uint32_t));
	return *words ? 0 : -ENOMEM;
}

static int lead(void *ctx, const struct driver_file *file, uint32_t number)
{
	(void)ctx;
	led_of(file)->number = number;
	led_of(file)->known = true;
	return 0;
}

static void forget(void *ctx, const struct driver_file *file)
{
	(void)ctx;
	led_of(file)->known = false;
}

static void changed(void *ctx)
{
	(void)ctx;
	k->changes++;
}

static void wait(void *ctx)
{
	(void)ctx;
	k->waits++;
	if (k->watched)
		assert_int_equal(*bpf_rows_word(&k->rows, k->watched), k->kept);
	k->watched = 0;
}

static const struct bpf_rows_ops ops = { make_bank, lead, forget, changed, wait };

static int begin(void **state)
{
	(void)state;
	k = calloc(1, sizeof(*k));
	if (!k)
		return -1;
	k->rows.ops = &ops;
	k->rows.tables = k->tables;
	k->rows.pythons = k->pythons;
	return 0;
}

static int end(void **state)
{
	(void)state;
	for (size_t i = 0; i < CALLPATH_NR_BANKS; i++)
		free(k->rows.banks[i]);
	free(k);
	return 0;
}

static struct driver_file file_of(uint64_t ino)
{
	return (struct driver_file){ .dev = 1, .ino = ino, .size = 2, .changed = 3 };
}

/* Rows at @step bytes from each other. */
static struct unwind_table *table_of(uint32_t nr, uint32_t step, uint32_t nr_rules)
{
	struct unwind_builder *b = unwind_builder_new();
	struct unwind_table *t = NULL;

	for (uint32_t i = 0; i <= nr; i++) {
		struct unwind_rule rule = { .how = UNWIND_CFA, .base = UNWIND_SP };

		rule.off = 8 * (int32_t)(i % nr_rules + 1);
		if (i == nr)
			rule = (struct unwind_rule){ .how = UNWIND_NONE };
		assert_int_equal(unwind_builder_add(b, 0x12340 + (uint64_t)i * step, &rule), 0);
	}
	assert_int_equal(unwind_builder_done(b, &t), 0);
	unwind_builder_free(b);
	return t;
}

/* A table of @mib, less a few bytes; its rows are empty. */
static struct unwind_table *large_table(uint32_t mib)
{
	struct unwind_table *t = table_of(1, 16, 1);

	t->nr_rows = (mib << 18) - 100;
	free(t->rows);
	t->rows = calloc(t->nr_rows, sizeof(*t->rows));
	assert_non_null(t->rows);
	return t;
}

static uint32_t word(uint32_t number)
{
	return *bpf_rows_word(&k->rows, number);
}

/* The offset of the rule at @off, as the program finds it; 0: none. */
static int32_t rule_at(uint32_t number, uint64_t off)
{
	const struct callpath_table *t = &k->tables[number];
	uint64_t page = (off >> UNWIND_PAGE_BITS) - t->first_page;
	uint32_t row, rule;

	if (page >= t->nr_pages)
		return 0;
	for (row = word(t->pages + (uint32_t)page); row < word(t->pages + (uint32_t)page + 1);
	     row++)
		if ((word(t->rows + row) & 0xffff) > (off & 0xffff))
			break;
	rule = row ? word(t->rows + row - 1) >> 16 : 0;
	return rule ? (int32_t)word(t->rules + rule * CALLPATH_RULE_WORDS + 1) : 0;
}

static uint32_t put(uint64_t ino, const struct unwind_table *t, uint64_t now_ns)
{
	struct driver_file file = file_of(ino);

	assert_int_equal(bpf_rows_put(&k->rows, &file, t, now_ns), 0);
	assert_true(led_of(&file)->known);
	return led_of(&file)->number;
}

static bool is_known(uint64_t ino)
{
	struct driver_file file = file_of(ino);

	return led_of(&file)->known;
}

static int32_t rule_of(uint64_t ino, uint64_t off)
{
	struct driver_file file = file_of(ino);
	struct unwind_rule rule = { .off = 0 };

	return bpf_rows_rule(&k->rows, &file, off, &rule) ? rule.off : 0;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void table_is_as_it_was_put(void **state)
{
	struct unwind_table *a = table_of(5000, 37, 300), *b = table_of(20000, 5, 7);
	uint32_t first = put(10, a, 1), second = put(11, b, 1);

	(void)state;
	assert_true(first && second && first != second);
	for (uint64_t off = 0x10000; off < 0x45000; off += 11) {
		assert_int_equal(rule_at(first, off), unwind_find(a, off)->off);
		assert_int_equal(rule_at(second, off), unwind_find(b, off)->off);
	}
	assert_int_equal(k->rows.nr_tables, 2);
	assert_int_equal(k->banks, 1);
	assert_int_equal(k->waits, 0);
	assert_true(k->rows.bytes >= unwind_size(a) + unwind_size(b));
	unwind_free(a);
	unwind_free(b);
}

static void rules_are_found_by_their_file(void **state)
{
	struct unwind_table *a = table_of(5000, 37, 300), *b = table_of(20000, 5, 7);
	struct driver_file file = file_of(11);

	(void)state;
	put(10, a, 1);
	put(11, b, 1);
	for (uint64_t off = 0x10000; off < 0x45000; off += 11) {
		assert_int_equal(rule_of(10, off), unwind_find(a, off)->off);
		assert_int_equal(rule_of(11, off), unwind_find(b, off)->off);
	}
	assert_int_equal(rule_of(12, 0x12340), 0);
	put(10, b, 2);
	assert_int_equal(rule_of(10, 0x12345), unwind_find(b, 0x12345)->off);
	bpf_rows_forget(&k->rows, &file, 1);
	assert_int_equal(rule_of(11, 0x12345), 0);
	unwind_free(a);
	unwind_free(b);
}

static void file_is_asked_for_once(void **state)
{
	struct driver_file file = file_of(7);
	struct unwind_table *t = table_of(10, 16, 2);

	(void)state;
	assert_true(bpf_rows_ask(&k->rows, &file, 1));
	assert_false(bpf_rows_ask(&k->rows, &file, 2));
	assert_true(is_known(7));
	assert_int_equal(put(7, NULL, 3), 0);
	assert_false(bpf_rows_ask(&k->rows, &file, 4));
	assert_int_not_equal(put(7, t, 5), 0);
	assert_false(bpf_rows_ask(&k->rows, &file, 6));
	assert_int_equal(k->rows.nr_tables, 1);
	assert_int_equal(put(7, NULL, 7), 0);
	assert_int_equal(k->rows.nr_tables, 0);
	assert_int_equal(k->rows.bytes, 0);
	/* A program may have been in it. */
	assert_int_equal(k->waits, 1);
	unwind_free(t);
}

/* Its process could not show it: another one is asked, a number of times. */
static void file_is_asked_for_again(void **state)
{
	struct driver_file file = file_of(7);
	struct unwind_table *t = table_of(10, 16, 2);
	size_t nr = 0;

	(void)state;
	bpf_rows_again(&k->rows, &file);
	assert_true(bpf_rows_ask(&k->rows, &file, 1));
	for (; nr < 100; nr++) {
		bpf_rows_again(&k->rows, &file);
		if (!bpf_rows_ask(&k->rows, &file, 2))
			break;
		assert_true(is_known(7));
		assert_false(bpf_rows_ask(&k->rows, &file, 3));
	}
	assert_in_range(nr, 2, 99);
	assert_true(is_known(7));
	assert_int_not_equal(put(7, t, 5), 0);
	bpf_rows_again(&k->rows, &file);
	assert_false(bpf_rows_ask(&k->rows, &file, 6));
	unwind_free(t);
}

/* Files that are forgotten make way, and are missing when they are met; others stay. */
static void files_are_forgotten(void **state)
{
	struct driver_file files[] = { file_of(7), file_of(8), file_of(9) };
	struct unwind_table *t = table_of(10, 16, 2);
	uint64_t bytes;

	(void)state;
	put(6, t, 1);
	bytes = k->rows.bytes;
	k->watched = k->tables[put(7, t, 1)].rows + 5;
	k->kept = word(k->watched);
	assert_int_equal(put(8, NULL, 1), 0);
	bpf_rows_forget(&k->rows, files, 3);
	/* A program may have been in the first. */
	assert_int_equal(k->watched, 0);
	assert_true(is_known(6));
	assert_false(is_known(7));
	assert_false(is_known(8));
	assert_int_equal(k->rows.bytes, bytes);
	assert_int_equal(k->rows.evicted, 0);
	assert_true(bpf_rows_ask(&k->rows, &files[0], 2));
	assert_int_not_equal(put(7, t, 3), 0);
	unwind_free(t);
}

/* A program may be in the first one, which stays as it is until programs were waited for: once for
 * many. */
static void another_table_takes_the_place_of_the_first(void **state)
{
	struct unwind_table *a = table_of(3000, 16, 2), *b = table_of(3000, 16, 9);
	uint32_t number = put(7, a, 1), next;
	uint64_t bytes = k->rows.bytes;

	(void)state;
	k->watched = k->tables[number].rows + 5;
	k->kept = word(k->watched);
	next = put(7, b, 2);
	assert_int_not_equal(next, number);
	assert_int_not_equal(k->watched, 0);
	assert_int_equal(word(k->watched), k->kept);
	for (uint64_t off = 0x12340; off < 0x20000; off += 16)
		assert_int_equal(rule_at(next, off), unwind_find(b, off)->off);
	for (uint64_t i = 2; i < BPF_ROWS_REPLACED; i++)
		put(7, i % 2 ? a : b, 1 + i);
	assert_int_equal(k->waits, 0);
	put(7, b, 1 + BPF_ROWS_REPLACED);
	assert_int_equal(k->waits, 1);
	assert_int_equal(k->watched, 0);
	assert_int_equal(k->rows.nr_tables, 1);
	assert_int_equal(k->rows.bytes, bytes);
	assert_int_equal(k->rows.evicted, 0);
	/* One that is put without a table leads nowhere. */
	assert_int_equal(put(7, NULL, 100), 0);
	assert_int_equal(k->waits, 2);
	assert_int_equal(k->rows.nr_tables, 0);
	unwind_free(a);
	unwind_free(b);
}

/* Programs remember rules by it, and must not take one table's for another's. */
static void each_table_has_a_version_of_its_own(void **state)
{
	struct unwind_table *t = table_of(10, 16, 2);
	uint32_t seen[4];

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		seen[i] = k->tables[put(7 + i / 2, t, i)].version;
		assert_int_not_equal(seen[i], 0);
		for (uint32_t before = 0; before < i; before++)
			assert_int_not_equal(seen[i], seen[before]);
	}
	unwind_free(t);
}

static void a_layout_of_python_goes_with_its_table(void **state)
{
	struct unwind_table *t = table_of(10, 16, 2), *none = table_of(10, 16, 2);
	uint32_t first, second;

	(void)state;
	t->python = (struct unwind_python){ .version = UNWIND_PYTHON_3_11, .main = 5 };
	first = put(1, t, 1);
	assert_int_not_equal(k->tables[first].python, 0);
	assert_int_equal(k->pythons[first].main, 5);
	second = put(2, none, 1);
	assert_int_equal(k->tables[second].python, 0);
	/* It goes where its file's next table has none. */
	assert_int_equal(k->tables[put(1, none, 2)].python, 0);
	unwind_free(t);
	unwind_free(none);
}

/* Where there is no room, what was replaced goes first. */
static void replaced_tables_make_way(void **state)
{
	struct unwind_table *large = large_table(14), *small = table_of(10, 16, 2);

	(void)state;
	put(1, large, 1);
	put(2, large, 2);
	put(1, small, 3);
	assert_int_equal(k->waits, 0);
	put(3, large, 4);
	assert_int_equal(k->waits, 1);
	assert_int_equal(k->rows.evicted, 0);
	for (uint64_t i = 1; i <= 3; i++)
		assert_true(is_known(i));
	/* And what is replaced may be what is not used for longest. */
	put(2, large, 5);
	assert_true(is_known(2));
	assert_int_equal(k->rows.nr_tables, 3);
	unwind_free(large);
	unwind_free(small);
}

static void what_was_not_used_for_longest_makes_way(void **state)
{
	struct unwind_table *t = large_table(4);
	struct driver_file file = file_of(2);
	uint32_t numbers[8];

	(void)state;
	for (uint64_t i = 0; i < 8; i++)
		numbers[i] = put(i, t, i);
	assert_int_equal(k->rows.nr_tables, 8);
	assert_int_equal(k->rows.evicted, 0);
	/* All were walked through later than put but the third. */
	for (uint32_t i = 0; i < 8; i++)
		if (i != 2)
			k->tables[numbers[i]].used_ns = 100 + i;
	k->watched = k->tables[numbers[2]].rows;
	k->kept = word(k->watched);
	put(8, t, 200);
	assert_int_equal(k->watched, 0);
	assert_int_equal(k->waits, 1);
	assert_int_equal(k->rows.evicted, 1);
	for (uint64_t i = 0; i <= 8; i++)
		assert_int_equal(is_known(i), i != 2);
	assert_true(bpf_rows_ask(&k->rows, &file, 201));
	unwind_free(t);
}

static void what_is_too_large_is_refused(void **state)
{
	struct unwind_table *t = large_table(31), too_large = *t;
	struct driver_file file = file_of(5), other = file_of(6);

	(void)state;
	too_large.nr_rows = 8 << 20;
	assert_int_equal(bpf_rows_put(&k->rows, &file, &too_large, 1), -DCPI_ELIMIT);
	assert_int_equal(bpf_rows_put(&k->rows, &file, t, 2), 0);
	assert_int_equal(bpf_rows_put(&k->rows, &other, t, 3), 0);
	assert_int_equal(k->rows.nr_tables, 1);
	assert_false(is_known(5));
	unwind_free(t);
}

static void without_memory_it_is_not_missing_any_more(void **state)
{
	struct unwind_table *t = table_of(100, 16, 2);
	struct driver_file file = file_of(5);

	(void)state;
	k->no_bank = true;
	assert_int_equal(bpf_rows_put(&k->rows, &file, t, 1), -ENOMEM);
	assert_true(led_of(&file)->known);
	assert_int_equal(led_of(&file)->number, 0);
	assert_int_equal(k->rows.nr_tables, 0);
	k->no_bank = false;
	assert_int_not_equal(put(5, t, 2), 0);
	unwind_free(t);
}

static void more_files_than_can_be_known(void **state)
{
	struct unwind_table *t = table_of(10, 16, 2);

	(void)state;
	put(0, t, 1000000);
	for (uint64_t i = 1; i < CALLPATH_NR_FILES + 10; i++) {
		struct driver_file file = file_of(i);

		assert_true(bpf_rows_ask(&k->rows, &file, i));
	}
	for (uint64_t i = 0; i < CALLPATH_NR_FILES + 10; i++)
		assert_int_equal(is_known(i), i == 0 || i > 11);
	/* The files had no tables: no walk can be in one, and no wait is due. */
	assert_int_equal(k->waits, 0);
	unwind_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(table_is_as_it_was_put, begin, end),
		cmocka_unit_test_setup_teardown(rules_are_found_by_their_file, begin, end),
		cmocka_unit_test_setup_teardown(file_is_asked_for_once, begin, end),
		cmocka_unit_test_setup_teardown(file_is_asked_for_again, begin, end),
		cmocka_unit_test_setup_teardown(files_are_forgotten, begin, end),
		cmocka_unit_test_setup_teardown(another_table_takes_the_place_of_the_first, begin,
						end),
		cmocka_unit_test_setup_teardown(each_table_has_a_version_of_its_own, begin, end),
		cmocka_unit_test_setup_teardown(a_layout_of_python_goes_with_its_table, begin, end),
		cmocka_unit_test_setup_teardown(replaced_tables_make_way, begin, end),
		cmocka_unit_test_setup_teardown(what_was_not_used_for_longest_makes_way, begin,
						end),
		cmocka_unit_test_setup_teardown(what_is_too_large_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(without_memory_it_is_not_missing_any_more, begin,
						end),
		cmocka_unit_test_setup_teardown(more_files_than_can_be_known, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
