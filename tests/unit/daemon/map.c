/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stand_ins.h"

static struct image a, b;
static struct process p, q;

static int setup(void **state)
{
	(void)state;
	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	memset(&p, 0, sizeof(p));
	memset(&q, 0, sizeof(q));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	map_clear(&p);
	map_clear(&q);
	assert_int_equal(a.refs, 0);
	assert_int_equal(b.refs, 0);
	free(p.maps);
	free(q.maps);
	return 0;
}

static struct map range(uint64_t start, uint64_t end, struct image *img)
{
	return (struct map){ .start = start, .end = end, .file_off = start * 16, .image = img };
}

static void insert(uint64_t start, uint64_t end, struct image *img)
{
	const struct map m = range(start, end, img);

	assert_int_equal(map_insert(&p, &m), 0);
}

/* "10-20a 20-30b": what is mapped; order and references are checked on the way. */
static void expect(const char *want)
{
	char got[512] = "";
	size_t len = 0;
	uint32_t refs = 0;

	for (size_t i = 0; i < p.nr_maps; i++) {
		const struct map *m = &p.maps[i];

		assert_true(m->start < m->end);
		assert_true(i == 0 || p.maps[i - 1].end <= m->start);
		refs += m->image == &a;
		len += (size_t)snprintf(got + len, sizeof(got) - len, "%s%d-%d%c", i ? " " : "",
					(int)m->start, (int)m->end, m->image == &a ? 'a' : 'b');
	}
	assert_string_equal(got, want);
	assert_int_equal(a.refs, refs);
}

/* A piece behind a cut begins further into the file. */
static void piece_keeps_offset(void **state)
{
	const struct map old = { .start = 100, .end = 200, .file_off = 5000, .image = &a };
	const struct map new = { .start = 120, .end = 140, .file_off = 0, .image = &b };

	(void)state;
	assert_int_equal(map_insert(&p, &old), 0);
	assert_int_equal(map_insert(&p, &new), 0);
	assert_int_equal(p.nr_maps, 3);
	assert_int_equal(map_find(&p, 119)->file_off, 5000);
	assert_int_equal(map_find(&p, 140)->file_off, 5040);
	assert_int_equal(a.refs, 2);
	assert_int_equal(b.refs, 1);
}

static void find_bounds(void **state)
{
	(void)state;
	assert_null(map_find(&p, 10));
	insert(10, 20, &a);
	insert(30, 40, &b);
	assert_null(map_find(&p, 9));
	assert_ptr_equal(map_find(&p, 10)->image, &a);
	assert_ptr_equal(map_find(&p, 19)->image, &a);
	assert_null(map_find(&p, 20));
	assert_null(map_find(&p, 29));
	assert_ptr_equal(map_find(&p, 39)->image, &b);
	assert_null(map_find(&p, 40));
	assert_null(map_find(&p, UINT64_MAX));
}

static void any_order(void **state)
{
	(void)state;
	insert(50, 60, &a);
	insert(10, 20, &b);
	insert(30, 40, &a);
	insert(0, 5, &b);
	insert(70, 80, &b);
	expect("0-5b 10-20b 30-40a 50-60a 70-80b");
}

static void covers_several(void **state)
{
	(void)state;
	insert(10, 20, &a);
	insert(30, 40, &a);
	insert(50, 60, &a);
	insert(10, 60, &b);
	expect("10-60b");
}

static void same_place(void **state)
{
	(void)state;
	insert(10, 20, &a);
	insert(10, 20, &b);
	expect("10-20b");
}

static void touching_is_not_overlapping(void **state)
{
	(void)state;
	insert(10, 20, &a);
	insert(20, 30, &b);
	insert(0, 10, &b);
	expect("0-10b 10-20a 20-30b");
}

static void fill_gaps(void **state)
{
	const struct map all = range(0, 100, &b), inside = range(12, 18, &b);

	(void)state;
	insert(10, 20, &a);
	insert(40, 50, &a);
	assert_int_equal(map_fill(&p, &inside), 0);
	expect("10-20a 40-50a");
	assert_int_equal(map_fill(&p, &all), 0);
	assert_int_equal(p.nr_maps, 5);
	assert_ptr_equal(map_find(&p, 15)->image, &a);
	assert_ptr_equal(map_find(&p, 5)->image, &b);
	assert_ptr_equal(map_find(&p, 30)->image, &b);
	assert_ptr_equal(map_find(&p, 99)->image, &b);
	assert_int_equal(map_find(&p, 30)->file_off, 20);
}

static void copy_counts_references(void **state)
{
	const struct map m = range(70, 80, &b);

	(void)state;
	insert(10, 20, &a);
	insert(30, 40, &b);
	assert_int_equal(map_insert(&q, &m), 0);
	assert_int_equal(map_copy(&q, &p), 0);
	assert_int_equal(q.nr_maps, 2);
	assert_int_equal(a.refs, 2);
	assert_int_equal(b.refs, 2);
	assert_null(map_find(&q, 70));
}

static void drop_what_proc_did_not_list(void **state)
{
	struct map listed = range(10, 20, &a);

	(void)state;
	listed.listed = true;
	assert_int_equal(map_insert(&p, &listed), 0);
	insert(30, 40, &b);
	map_drop_unlisted(&p);
	expect("10-20a");
	assert_int_equal(b.refs, 0);
}

/* Against a plain array of who owns each address. */
static void random_against_model(void **state)
{
	struct image *model[256] = { 0 };
	unsigned int seed = 42;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		uint64_t start = (uint64_t)rand_r(&seed) % 250;
		uint64_t end = start + 1 + (uint64_t)rand_r(&seed) % (255 - start);
		struct image *img = rand_r(&seed) % 2 ? &a : &b;
		bool fill = rand_r(&seed) % 4 == 0;
		const struct map m = { .start = start, .end = end, .image = img };

		assert_int_equal(fill ? map_fill(&p, &m) : map_insert(&p, &m), 0);
		for (uint64_t i = start; i < end; i++)
			if (!fill || !model[i])
				model[i] = img;
		for (uint64_t i = 0; i < 256; i++) {
			const struct map *found = map_find(&p, i);

			assert_ptr_equal(found ? found->image : NULL, model[i]);
		}
		if (round % 100 == 99) {
			map_clear(&p);
			memset(model, 0, sizeof(model));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(piece_keeps_offset, setup, teardown),
		cmocka_unit_test_setup_teardown(find_bounds, setup, teardown),
		cmocka_unit_test_setup_teardown(any_order, setup, teardown),
		cmocka_unit_test_setup_teardown(covers_several, setup, teardown),
		cmocka_unit_test_setup_teardown(same_place, setup, teardown),
		cmocka_unit_test_setup_teardown(touching_is_not_overlapping, setup, teardown),
		cmocka_unit_test_setup_teardown(fill_gaps, setup, teardown),
		cmocka_unit_test_setup_teardown(copy_counts_references, setup, teardown),
		cmocka_unit_test_setup_teardown(drop_what_proc_did_not_list, setup, teardown),
		cmocka_unit_test_setup_teardown(random_against_model, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
