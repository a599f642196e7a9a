/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "scratch.h"

static void print(const struct profdb_profile *p, struct base_buf *out)
{
	struct base_err err = { 0 };

	base_buf_clear(out);
	if (profdb_profile_format(p, PROFDB_FORMAT_1, 0, out, &err) < 0)
		fail_msg("%s", err.text);
}

static int add(struct profdb_profile *p, uint64_t start, uint64_t from, uint64_t to, uint64_t even,
	       uint64_t odd)
{
	const struct profdb_edge m = { start, from, to, { even, odd } };

	return profdb_profile_edge_add(p, &m);
}

static void assert_move(const struct profdb_profile *p, size_t i, uint64_t start, uint64_t from,
			uint64_t to, uint64_t even, uint64_t odd)
{
	const struct profdb_edge *m = profdb_profile_edge(p, i);

	assert_non_null(m);
	assert_true(m->start == start && m->from == from && m->to == to);
	assert_true(m->count[0] == even && m->count[1] == odd);
}

static void assert_equal_moves(const struct profdb_profile *p, const struct profdb_profile *q)
{
	assert_int_equal(profdb_profile_nr_edges(p), profdb_profile_nr_edges(q));
	for (size_t i = 0; i < profdb_profile_nr_edges(p); i++)
		assert_memory_equal(profdb_profile_edge(p, i), profdb_profile_edge(q, i),
				    sizeof(struct profdb_edge));
}

/* In the file, and back. */
static struct profdb_profile *reread(const struct profdb_profile *p)
{
	struct profdb_profile *q = NULL;
	struct base_buf buf = { 0 }, again = { 0 };
	struct base_err err = { 0 };

	print(p, &buf);
	if (profdb_profile_parse(buf.data, buf.len, &q, &err) < 0)
		fail_msg("%s", err.text);
	print(q, &again);
	assert_int_equal(again.len, buf.len);
	assert_memory_equal(again.data, buf.data, buf.len);
	base_buf_release(&buf);
	base_buf_release(&again);
	return q;
}

static void test_moves_add_up_in_order(void **state)
{
	struct profdb_profile *p = scratch_profile("/a", 1, 0, 0);

	(void)state;
	assert_int_equal(add(p, 40, 44, 16, 1, 0), 0);
	assert_int_equal(add(p, 16, PROFDB_OUTSIDE, 16, 0, 1), 0);
	assert_int_equal(add(p, 16, 24, 32, 2, 0), 0);
	assert_int_equal(add(p, 40, 44, 16, 2, 5), 0);
	assert_int_equal(add(p, 16, 24, PROFDB_OUTSIDE, 1, 0), 0);
	assert_int_equal(add(p, PROFDB_OUTSIDE, PROFDB_OUTSIDE, 8, 0, 1), 0);
	assert_int_equal(add(p, 16, 24, 28, 0, 0), 0);
	assert_int_equal(profdb_profile_nr_edges(p), 5);
	assert_move(p, 0, 16, 24, 32, 2, 0);
	assert_move(p, 1, 16, 24, PROFDB_OUTSIDE, 1, 0);
	assert_move(p, 2, 16, PROFDB_OUTSIDE, 16, 0, 1);
	assert_move(p, 3, 40, 44, 16, 3, 5);
	assert_move(p, 4, PROFDB_OUTSIDE, PROFDB_OUTSIDE, 8, 0, 1);
	assert_null(profdb_profile_edge(p, 5));
	/* Sorted now: what comes still finds its own. */
	assert_int_equal(add(p, 16, 24, 32, 0, 1), 0);
	assert_move(p, 0, 16, 24, 32, 2, 1);
	profdb_profile_clear(p);
	assert_int_equal(profdb_profile_nr_edges(p), 0);
	assert_int_equal(add(p, 1, 2, 3, UINT64_MAX, UINT64_MAX), 0);
	profdb_profile_free(p);
}

static void test_what_is_written_is_read(void **state)
{
	struct profdb_profile *p = scratch_profile("/a", 1, 3, 7), *q;
	uint64_t seed = 1;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		uint64_t at[3];

		for (int k = 0; k < 3; k++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
			at[k] = seed >> 60 == 0 ? PROFDB_OUTSIDE : seed >> 40 & 0x3f;
		}
		assert_int_equal(add(p, at[0], at[1], at[2], seed >> 33 & 3, 1), 0);
	}
	assert_int_equal(add(p, 0, UINT64_MAX - 2, 0, UINT64_C(1) << 62, 0), 0);
	assert_int_equal(add(p, PROFDB_ANY_START, 5, 6, 7, UINT64_C(1) << 62), 0);
	q = reread(p);
	assert_equal_moves(p, q);
	assert_int_equal(profdb_profile_event(q, 0)->sum, 21);
	profdb_profile_free(p);
	profdb_profile_free(q);
}

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return *seed >> 33;
}

/* Of so many bits, now and then none. */
static uint64_t random_offset(uint64_t *seed, int bits)
{
	uint64_t off = next_random(seed) << 31 ^ next_random(seed);

	return next_random(seed) % 8 ? off & ((UINT64_C(1) << bits) - 1) : PROFDB_OUTSIDE;
}

static void add_random(struct profdb_profile *p, size_t nr, int bits, uint64_t seed)
{
	for (size_t i = 0; i < nr; i++) {
		bool any = next_random(&seed) % 16 == 0;
		uint64_t start = random_offset(&seed, bits), from = random_offset(&seed, bits);

		add(p, any ? PROFDB_ANY_START : start, from, random_offset(&seed, bits), i % 3,
		    i % 2);
	}
}

static void assert_ascending(const struct profdb_profile *p)
{
	for (size_t i = 1; i < profdb_profile_nr_edges(p); i++) {
		const struct profdb_edge *a = profdb_profile_edge(p, i - 1),
					 *b = profdb_profile_edge(p, i);

		assert_true(a->start < b->start || (a->start == b->start && a->from < b->from) ||
			    (a->start == b->start && a->from == b->from && a->to < b->to));
	}
}

/* Few and many, low and high: the same as if each had been added by itself. */
static void test_many_are_sorted_and_merged(void **state)
{
	static const struct {
		size_t nr;
		int bits;
	} cases[] = { { 0, 8 },	    { 1, 8 },	  { 400, 4 },	{ 600, 1 },
		      { 20000, 5 }, { 5000, 21 }, { 5000, 32 }, { 5000, 60 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct profdb_profile *a = scratch_profile("/a", 1, 0, 0), *both = reread(a),
				      *b = reread(a), *again;

		add_random(a, cases[i].nr, cases[i].bits, i);
		add_random(both, cases[i].nr, cases[i].bits, i);
		add_random(b, cases[i].nr / 2 + 1, cases[i].bits, i + 50);
		add_random(both, cases[i].nr / 2 + 1, cases[i].bits, i + 50);
		assert_ascending(both);
		assert_int_equal(profdb_profile_merge(a, b), 0);
		assert_equal_moves(a, both);
		/* What comes then still finds its own. */
		add_random(a, cases[i].nr, cases[i].bits, i);
		add_random(both, cases[i].nr, cases[i].bits, i);
		assert_equal_moves(a, both);
		again = reread(both);
		assert_equal_moves(a, again);
		profdb_profile_free(again);
		profdb_profile_free(a);
		profdb_profile_free(b);
		profdb_profile_free(both);
	}
}

static void test_merge_adds_all_or_nothing(void **state)
{
	struct profdb_profile *a = scratch_profile("/a", 1, 3, 7), *b = reread(a);

	(void)state;
	add(a, 1, 2, 3, UINT64_MAX - 5, 1);
	add(b, 1, 2, 3, 5, 1);
	add(b, 1, 2, 0, 0, 1);
	assert_int_equal(profdb_profile_merge(a, b), 0);
	assert_int_equal(profdb_profile_nr_edges(a), 2);
	assert_move(a, 0, 1, 2, 0, 0, 1);
	assert_move(a, 1, 1, 2, 3, UINT64_MAX, 2);
	assert_int_equal(profdb_profile_merge(a, b), -DCPI_EOVERFLOW);
	assert_int_equal(add(a, 9, 9, 9, 1, 0), -DCPI_EOVERFLOW);
	assert_int_equal(profdb_profile_nr_edges(a), 2);
	assert_int_equal(profdb_profile_event(a, 0)->sum, 42);
	profdb_profile_free(a);
	profdb_profile_free(b);
}

static uint64_t sum_of(const struct profdb_profile *p)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < profdb_profile_nr_edges(p); i++)
		sum += profdb_profile_edge(p, i)->count[0] + profdb_profile_edge(p, i)->count[1];
	return sum;
}

/* Beyond the limit starts are forgotten, then places: never counts. */
static void test_too_many_lose_no_count(void **state)
{
	struct profdb_profile *p = scratch_profile("/a", 1, 0, 0), *q;
	const uint64_t n = PROFDB_NR_EDGES;

	(void)state;
	for (uint64_t i = 0; i < n; i++)
		assert_int_equal(add(p, 0, i, i, 1, 0), 0);
	assert_int_equal(add(p, 0, 7, 7, 0, 1), 0);
	assert_int_equal(add(p, 0, 7, 8, 1, 0), 0);
	assert_int_equal(add(p, 1, 7, 8, 1, 0), 0);
	assert_int_equal(profdb_profile_nr_edges(p), n + 1);
	assert_move(p, 7, 0, 7, 7, 1, 1);
	assert_move(p, n, PROFDB_ANY_START, 7, 8, 2, 0);
	for (uint64_t i = 0; i < n + 10; i++)
		assert_int_equal(add(p, 2, i, i + 1, 0, 1), 0);
	assert_int_equal(profdb_profile_nr_edges(p), 2 * n + 1);
	assert_move(p, n + 7, PROFDB_ANY_START, 7, 8, 2, 1);
	assert_move(p, 2 * n, PROFDB_ANY_START, PROFDB_OUTSIDE, PROFDB_OUTSIDE, 0, 10);
	assert_true(sum_of(p) == n + 3 + n + 10);
	q = reread(p);
	assert_equal_moves(p, q);
	assert_int_equal(profdb_profile_merge(q, p), 0);
	assert_true(sum_of(q) == 2 * sum_of(p));
	profdb_profile_free(p);
	profdb_profile_free(q);
}

/* The section with that payload in a file that is well otherwise. */
static int parse_payload(const char *payload, size_t len)
{
	struct profdb_profile *p = scratch_profile("/a", 1, 0, 0), *q = NULL;
	struct base_buf buf = { 0 };
	uint8_t section[64] = "move";
	size_t at, all = 16 + (len + 7) / 8 * 8;
	uint32_t crc;
	int r;

	print(p, &buf);
	at = (size_t)((uint8_t *)memmem(buf.data, buf.len, "FOOT", 4) - buf.data);
	section[8] = (uint8_t)len;
	memcpy(section + 16, payload, len);
	assert_true(base_buf_extend(&buf, all, NULL) >= 0);
	memmove(buf.data + at + all, buf.data + at, buf.len - at - all);
	memcpy(buf.data + at, section, all);
	crc = base_crc32c(0, buf.data, buf.len - 4);
	for (int i = 0; i < 4; i++)
		buf.data[buf.len - 4 + (size_t)i] = (uint8_t)(crc >> 8 * i);
	r = profdb_profile_parse(buf.data, buf.len, &q, NULL);
	base_buf_release(&buf);
	profdb_profile_free(p);
	profdb_profile_free(q);
	return r;
}

static void test_sealed_nonsense_is_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		int want;
	} cases[] = {
		{ "", 0, 0 },
		{ "\x20\1\x10\x20\3\1", 6, 0 },
		{ "\x20\2\x10\x20\3\1\0\x22\1\0", 10, 0 },
		{ "\x20\1\x10\x20\3", 5, -DCPI_EFORMAT },	       /* cut */
		{ "\x20\2\x10\x20\3\1", 6, -DCPI_EFORMAT },	       /* one of two */
		{ "\x20\0\x10\x20\3\1", 6, -DCPI_EFORMAT },	       /* a start without moves */
		{ "\x20\0", 2, -DCPI_EFORMAT },			       /* … */
		{ "\x20\1\x10\x20\0\0", 6, -DCPI_EFORMAT },	       /* not counted */
		{ "\x20\2\x10\x20\3\1\0\x20\1\0", 10, -DCPI_EFORMAT }, /* twice */
		{ "\x20\2\x10\x20\3\1\1\x20\1\0", 10, -DCPI_EFORMAT }, /* descending */
		{ "\x20\1\x10\x20\3\1\0\1\x10\x40\1\0", 12, -DCPI_EFORMAT }, /* a start twice */
		{ "\x20\1\x10\x20\3\1\1\1\x10\x40\1\0", 12, -DCPI_EFORMAT }, /* descending */
		{ "\x20\x81\0\x10\x20\3\1", 7, -DCPI_EFORMAT },		     /* another form of 1 */
		{ "\x20\2\x10\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\0\0\x22\1\0", 19,
		  -DCPI_EFORMAT }, /* above 64 bits */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (parse_payload(cases[i].bytes, cases[i].len) != cases[i].want)
			fail_msg("case %zu", i);
}

/* The example of docs/format/dcpiformat.md. */
static void test_the_page_tells_the_truth(void **state)
{
	static const uint8_t want[] =
		"move\0\0\0\0\x0e\0\0\0\0\0\0\0"
		"\x20\x03\x10\x0f\x05\x02\x00\x10\x02\x00\x31\x22\x00\x01\x00\x00";
	struct profdb_profile *p = scratch_profile("/x", 1, 0, 0);
	struct base_buf buf = { 0 };
	const uint8_t *at;

	(void)state;
	add(p, 0x10, 0x18, 0x10, 5, 2);
	add(p, 0x10, 0x18, 0x20, 2, 0);
	add(p, 0x10, PROFDB_OUTSIDE, 0x10, 0, 1);
	print(p, &buf);
	at = memmem(buf.data, buf.len, "move", 4);
	assert_non_null(at);
	assert_memory_equal(at, want, sizeof(want) - 1);
	base_buf_release(&buf);
	profdb_profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moves_add_up_in_order),
		cmocka_unit_test(test_what_is_written_is_read),
		cmocka_unit_test(test_many_are_sorted_and_merged),
		cmocka_unit_test(test_merge_adds_all_or_nothing),
		cmocka_unit_test(test_too_many_lose_no_count),
		cmocka_unit_test(test_sealed_nonsense_is_refused),
		cmocka_unit_test(test_the_page_tells_the_truth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
