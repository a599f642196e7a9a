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
	return (struct map){ .start = start, .end = end, .file_off = start, .image = img };
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

/* p was read from /proc at 1000; later events tell of before. */
static void listed(uint64_t start, uint64_t end, struct image *img)
{
	struct map m = range(start, end, img);

	m.listed = true;
	p.known_ns = m.since_ns = 1000;
	assert_int_equal(map_insert(&p, &m), 0);
}

static void recall(uint64_t start, uint64_t end, struct image *img, uint64_t time_ns)
{
	struct map m = range(start, end, img);

	m.since_ns = time_ns;
	assert_int_equal(map_recall(&p, &m), 0);
}

static uint64_t since(uint64_t addr)
{
	return map_find(&p, addr)->since_ns;
}

static void recalled_fills_gaps(void **state)
{
	(void)state;
	listed(10, 20, &a);
	listed(40, 50, &a);
	recall(12, 18, &b, 500);
	assert_ptr_equal(map_find(&p, 15)->image, &a);
	recall(0, 100, &b, 510);
	assert_ptr_equal(map_find(&p, 15)->image, &a);
	assert_ptr_equal(map_find(&p, 45)->image, &a);
	assert_ptr_equal(map_find(&p, 5)->image, &b);
	assert_ptr_equal(map_find(&p, 30)->image, &b);
	assert_ptr_equal(map_find(&p, 99)->image, &b);
	assert_int_equal(map_find(&p, 30)->file_off, map_find(&p, 30)->start);
	assert_int_equal(since(30), 0);
	/* What is not listed any more is replaced like anything else. */
	recall(30, 35, &a, 520);
	assert_ptr_equal(map_find(&p, 30)->image, &a);
	assert_int_equal(since(30), 520);
}

/* What stood there at 1000 came at 600; from 700 to 800 it was something else. */
static void recalled_times(void **state)
{
	(void)state;
	listed(10, 30, &a);
	assert_int_equal(since(10), 0);
	recall(10, 20, &a, 600);
	assert_int_equal(since(10), 600);
	assert_int_equal(since(20), 0);
	recall(10, 20, &a, 650);
	assert_int_equal(since(10), 600);
	recall(10, 20, &b, 700);
	assert_int_equal(since(19), 1000);
	recall(10, 20, &a, 800);
	assert_int_equal(since(10), 800);
	map_restart(&p, 900);
	assert_int_equal(since(10), 900);
	assert_int_equal(since(20), 900);
	expect("10-30a");
}

/* Where something else stood before, and only there, it is known since when. */
static void times(void **state)
{
	struct map m = range(10, 30, &a);

	(void)state;
	insert(10, 20, &a);
	m.since_ns = 100;
	assert_int_equal(map_insert(&p, &m), 0);
	assert_int_equal(since(10), 0);
	assert_int_equal(since(25), 0);
	expect("10-30a");
	/* Half over it, half over nothing. */
	m = range(20, 40, &b);
	m.since_ns = 200;
	assert_int_equal(map_insert(&p, &m), 0);
	assert_int_equal(since(19), 0);
	assert_int_equal(since(20), 200);
	assert_int_equal(since(30), 0);
	/* Told again, as by mprotect, in parts too: it is as old as it was. */
	m.since_ns = 300;
	assert_int_equal(map_insert(&p, &m), 0);
	m = range(24, 26, &b);
	m.since_ns = 400;
	assert_int_equal(map_insert(&p, &m), 0);
	assert_int_equal(since(24), 200);
	assert_int_equal(since(30), 0);
	expect("10-20a 20-30b 30-40b");
	/* The same file at another offset is not the same. */
	m.file_off++;
	m.since_ns = 500;
	assert_int_equal(map_insert(&p, &m), 0);
	assert_int_equal(since(24), 500);
	assert_int_equal(since(26), 200);
	assert_int_equal(map_copy(&q, &p), 0);
	assert_int_equal(map_find(&q, 24)->since_ns, 500);
}

/* Dynamic memory is dynamic memory, whatever its offset; a file in its place is not. */
static void times_of_dynamic(void **state)
{
	struct map m = { .start = 10, .end = 20, .kind = MAP_DYNAMIC, .since_ns = 100 };

	(void)state;
	assert_int_equal(map_insert(&p, &m), 0);
	m.file_off = 77;
	m.since_ns = 200;
	assert_int_equal(map_insert(&p, &m), 0);
	assert_int_equal(since(10), 0);
	m = range(10, 15, &a);
	m.since_ns = 300;
	assert_int_equal(map_insert(&p, &m), 0);
	assert_int_equal(since(10), 300);
	assert_int_equal(since(15), 0);
	m = (struct map){ .start = 10, .end = 20, .kind = MAP_DYNAMIC, .since_ns = 400 };
	assert_int_equal(map_insert(&p, &m), 0);
	assert_int_equal(since(10), 400);
	assert_int_equal(since(15), 0);
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

static void restart_drops_what_proc_did_not_list(void **state)
{
	(void)state;
	listed(10, 20, &a);
	insert(30, 40, &b);
	map_restart(&p, 7);
	expect("10-20a");
	assert_int_equal(since(10), 7);
	assert_int_equal(b.refs, 0);
}

/* Against a plain array of who stands at each address, and since when. */
static void random_against_model(void **state)
{
	struct {
		struct image *image;
		uint64_t off, since;
	} model[256] = { 0 };
	unsigned int seed = 42;

	(void)state;
	for (uint64_t round = 1; round <= 2000; round++) {
		uint64_t start = (uint64_t)rand_r(&seed) % 250;
		uint64_t end = start + 1 + (uint64_t)rand_r(&seed) % (255 - start);
		/* Often the same at the same place. */
		const struct map m = { .start = start,
				       .end = end,
				       .file_off = start + (uint64_t)rand_r(&seed) % 2,
				       .since_ns = round,
				       .image = rand_r(&seed) % 2 ? &a : &b };

		assert_int_equal(map_insert(&p, &m), 0);
		for (uint64_t i = start; i < end; i++) {
			uint64_t off = m.file_off + (i - start);

			if (model[i].image && (model[i].image != m.image || model[i].off != off))
				model[i].since = round;
			model[i].image = m.image;
			model[i].off = off;
		}
		for (uint64_t i = 0; i < 256; i++) {
			const struct map *found = map_find(&p, i);

			assert_ptr_equal(found ? found->image : NULL, model[i].image);
			if (!found)
				continue;
			assert_int_equal(found->file_off + (i - found->start), model[i].off);
			assert_int_equal(found->since_ns, model[i].since);
		}
		for (size_t i = 1; i < p.nr_maps; i++)
			assert_true(p.maps[i - 1].end <= p.maps[i].start);
		if (round % 100 == 0) {
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
		cmocka_unit_test_setup_teardown(recalled_fills_gaps, setup, teardown),
		cmocka_unit_test_setup_teardown(recalled_times, setup, teardown),
		cmocka_unit_test_setup_teardown(times, setup, teardown),
		cmocka_unit_test_setup_teardown(times_of_dynamic, setup, teardown),
		cmocka_unit_test_setup_teardown(copy_counts_references, setup, teardown),
		cmocka_unit_test_setup_teardown(restart_drops_what_proc_did_not_list, setup,
						teardown),
		cmocka_unit_test_setup_teardown(random_against_model, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
