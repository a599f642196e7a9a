/* SPDX-License-Identifier: BSD-2-Clause */
/* Call paths in memory and as a file: paths in, nodes and equal files out. */
#include <errno.h>

#include "scratch.h"

static const struct base_id id_a = { .len = 2, .bytes = { 0xab, 1 } };
static const struct base_id id_b = { .len = 3, .bytes = { 0xab, 1, 2 } };

static int image(struct profdb_callpaths *c, enum profdb_kind kind, const struct base_id *id,
		 const char *path, const char *stem)
{
	struct profdb_image_ref i = { .kind = kind, .id = *id, .path = path, .stem = stem };

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

/* ---- whose they are -------------------------------------------------------------------------- */

static uint32_t workload(struct profdb_callpaths *c, const char *comm)
{
	const struct profdb_workload k = { .comm = comm,
					   .exe = "/bin/prog",
					   .cgroup = "/",
					   .label = "",
					   .thread = "one",
					   .uid = 7,
					   .pid = 12,
					   .processes = 3 };
	int r = profdb_callpaths_workload_add(c, &k);

	assert_true(r >= 0);
	return (uint32_t)r;
}

static void add_of(struct profdb_callpaths *c, uint32_t whose, const struct profdb_frame *frames,
		   size_t nr, uint64_t n)
{
	assert_int_equal(
		profdb_callpaths_add_of(c, whose, 0, PROFDB_CALLPATH_COMPLETE, frames, nr, n), 0);
}

/* Two workloads, and paths of which it is not known. */
static struct profdb_callpaths *owned(void)
{
	const struct profdb_frame f[] = { { 1, 2 }, { 0, 1 } };
	struct profdb_callpaths *c = make();

	add_of(c, workload(c, "a"), f, 2, 3);
	add_of(c, workload(c, "b"), f, 2, 40);
	add_of(c, workload(c, "b"), f + 1, 1, 500);
	add(c, 0, PROFDB_CALLPATH_CUT, f, 2, 6000);
	return c;
}

static void test_paths_of_workloads_stay_apart(void **state)
{
	const struct profdb_frame f = { 0, 1 };
	struct profdb_callpaths *c = owned(), *d = profdb_callpaths_new();
	const struct profdb_workload *k = profdb_callpaths_workload(c, 1);

	(void)state;
	assert_int_equal(profdb_callpaths_nr_workloads(c), 2);
	assert_string_equal(k->comm, "b");
	assert_string_equal(k->thread, "");
	assert_true(k->uid == 7 && !k->pid && !k->processes);
	assert_int_equal(count_of(c, "0;4294967295+0;0+1;1+2", 0), 3);
	assert_int_equal(count_of(c, "0;4294967295+1;0+1;1+2", 0), 40);
	assert_int_equal(count_of(c, "1;0+1;1+2", 0), 6000);
	assert_int_equal(profdb_callpaths_add_of(c, 2, 0, PROFDB_CALLPATH_CUT, &f, 1, 1), -EINVAL);
	workload(d, "b");
	assert_int_equal(profdb_callpaths_merge(d, c), 0);
	assert_int_equal(profdb_callpaths_merge(d, c), 0);
	assert_int_equal(count_of(d, "0;4294967295+1;0+1;1+2", 0), 6);
	assert_int_equal(count_of(d, "0;4294967295+0;0+1", 0), 1000);
	profdb_callpaths_free(c);
	profdb_callpaths_free(d);
}

/* Chosen paths that keep their workload, whose frames are the same as without. */
static void check_owners(const struct profdb_callpaths *c, const bool *wanted)
{
	struct profdb_callpaths *to = profdb_callpaths_new();

	assert_int_equal(profdb_callpaths_select(to, c, wanted, true), 0);
	assert_int_equal(profdb_callpaths_nr_workloads(to), profdb_callpaths_nr_workloads(c));
	assert_int_equal(profdb_callpaths_event(to, 0)->sum, 540);
	assert_int_equal(profdb_callpaths_nr_nodes(to), PROFDB_NR_CALLPATH_ENDS + 3);
	for (size_t i = PROFDB_NR_CALLPATH_ENDS + 1; i < PROFDB_NR_CALLPATH_ENDS + 3; i++)
		assert_int_equal(profdb_callpaths_owner(to, i), 1);
	assert_int_equal(profdb_callpaths_node(to, PROFDB_NR_CALLPATH_ENDS + 1).parent,
			 PROFDB_NR_CALLPATH_ENDS);
	assert_int_equal(profdb_callpaths_frame(to, PROFDB_NR_CALLPATH_ENDS + 1).parent, 0);
	assert_int_equal(profdb_callpaths_frame(to, PROFDB_NR_CALLPATH_ENDS + 2).parent,
			 PROFDB_NR_CALLPATH_ENDS + 1);
	profdb_callpaths_free(to);
}

static void test_paths_of_some_workloads(void **state)
{
	const bool wanted[] = { false, true };
	struct profdb_callpaths *c = owned(), *all = profdb_callpaths_new();
	struct profdb_callpaths *some = profdb_callpaths_new();

	(void)state;
	assert_int_equal(profdb_callpaths_select(all, c, NULL, false), 0);
	assert_int_equal(count_of(all, "0;0+1;1+2", 0), 43);
	assert_int_equal(count_of(all, "0;0+1", 0), 500);
	assert_int_equal(count_of(all, "1;0+1;1+2", 0), 6000);
	assert_int_equal(profdb_callpaths_event(all, 0)->sum, 6543);
	assert_int_equal(profdb_callpaths_nr_workloads(all), 0);
	assert_int_equal(profdb_callpaths_select(some, c, wanted, false), 0);
	assert_int_equal(count_of(some, "0;0+1;1+2", 0), 40);
	assert_int_equal(profdb_callpaths_nr_nodes(some), PROFDB_NR_CALLPATH_ENDS + 2);
	assert_int_equal(profdb_callpaths_event(some, 0)->sum, 540);
	check_owners(c, wanted);
	profdb_callpaths_free(c);
	profdb_callpaths_free(all);
	profdb_callpaths_free(some);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void print(const struct profdb_callpaths *c, struct base_buf *out)
{
	struct base_err err = { 0 };

	base_buf_clear(out);
	if (profdb_callpaths_format(c, out, &err) < 0)
		fail_msg("%s", err.text);
}

static struct profdb_callpaths *parse(const struct base_buf *b)
{
	struct profdb_callpaths *c;
	struct base_err err = { 0 };

	if (profdb_callpaths_parse(b->data, b->len, &c, &err) < 0)
		fail_msg("%s", err.text);
	return c;
}

static struct profdb_callpaths *sample(void)
{
	const struct profdb_frame x[] = { { 0, UINT64_MAX }, { 1, 0 }, { 2, 0x1000 }, { 0, 7 } };
	struct profdb_callpaths *c = make();

	assert_int_equal(image(c, PROFDB_DYNAMIC, &id_b, "ja\nva", "java.dyn"), 2);
	assert_int_equal(image(c, PROFDB_NAMED, &(struct base_id){ 0 }, "", NULL), 3);
	assert_int_equal(profdb_callpaths_event_add(c, "misses", 7), 1);
	add(c, 0, PROFDB_CALLPATH_COMPLETE, x, 4, 3);
	add(c, 1, PROFDB_CALLPATH_COMPLETE, x, 4, UINT64_MAX);
	add(c, 0, PROFDB_CALLPATH_COMPLETE, x + 1, 3, 200);
	add(c, 0, PROFDB_CALLPATH_COMPLETE, x + 3, 1, 1);
	add(c, 0, PROFDB_CALLPATH_CONTRADICTED, x, 2, 1);
	add(c, 0, PROFDB_CALLPATH_CONTRADICTED, x, 1, 1);
	for (uint64_t i = 0; i < 200; i++) {
		struct profdb_frame f[3] = { { i % 4, i * 77 % 64 }, { i % 3, i % 5 }, { 0, 7 } };

		add(c, 0, (enum profdb_callpath_end)(i % 5), f, 1 + i % 3, 1 + i);
		add_of(c, i % 3 ? workload(c, i % 2 ? "a" : "b") : PROFDB_CALLPATH_NOBODY, f,
		       1 + i % 3, 1);
	}
	return c;
}

static void test_what_is_written_is_read(void **state)
{
	struct profdb_callpaths *c = sample(), *d;
	struct base_buf a = { 0 }, b = { 0 };
	struct profdb_profile *p;
	char text[256];

	(void)state;
	print(c, &a);
	assert_int_equal(profdb_profile_parse(a.data, a.len, &p, NULL), -DCPI_EVERSION);
	d = parse(&a);
	assert_int_equal(profdb_callpaths_nr_nodes(d), profdb_callpaths_nr_nodes(c));
	assert_int_equal(profdb_callpaths_nr_images(d), 4);
	assert_string_equal(profdb_callpaths_image(d, 2)->path, "ja\nva");
	assert_string_equal(profdb_callpaths_image(d, 2)->stem, "java.dyn");
	assert_null(profdb_callpaths_image(d, 3)->stem);
	assert_true(base_id_equal(&profdb_callpaths_image(d, 1)->id, &id_b));
	for (size_t e = 0; e < 2; e++)
		assert_int_equal(profdb_callpaths_event(d, e)->sum,
				 profdb_callpaths_event(c, e)->sum);
	for (size_t i = 0; i < profdb_callpaths_nr_nodes(c); i++) {
		path_of(c, i, text);
		for (size_t e = 0; e < 2; e++)
			assert_int_equal(count_of(d, text, e),
					 profdb_callpaths_node(c, i).count[e]);
	}
	print(d, &b);
	assert_int_equal(a.len, b.len);
	assert_memory_equal(a.data, b.data, a.len);
	base_buf_release(&a);
	base_buf_release(&b);
	profdb_callpaths_free(c);
	profdb_callpaths_free(d);
}

static void test_what_was_read_can_be_added_to(void **state)
{
	const struct profdb_frame f = { 0, 7 };
	struct profdb_callpaths *c = sample(), *d;
	struct base_buf a = { 0 };
	uint64_t sum = profdb_callpaths_event(c, 0)->sum;
	size_t nr = profdb_callpaths_nr_nodes(c);

	(void)state;
	print(c, &a);
	d = parse(&a);
	add(d, 0, PROFDB_CALLPATH_COMPLETE, &f, 1, 5);
	assert_int_equal(profdb_callpaths_nr_nodes(d), nr);
	assert_int_equal(profdb_callpaths_merge(d, c), -DCPI_EOVERFLOW);
	profdb_callpaths_free(c);
	c = make();
	add(c, 0, PROFDB_CALLPATH_COMPLETE, &f, 1, 5);
	assert_int_equal(profdb_callpaths_merge(d, c), 0);
	assert_int_equal(profdb_callpaths_nr_nodes(d), nr);
	assert_int_equal(profdb_callpaths_event(d, 0)->sum, sum + 10);
	base_buf_release(&a);
	profdb_callpaths_free(c);
	profdb_callpaths_free(d);
}

static void seal(struct base_buf *b)
{
	uint32_t crc = base_crc32c(0, b->data, b->len - 4);

	for (int i = 0; i < 4; i++)
		b->data[b->len - 4 + (size_t)i] = (uint8_t)(crc >> 8 * i);
}

static int try_parse(const struct base_buf *b, size_t len)
{
	uint8_t *copy = malloc(len + 1);
	struct profdb_callpaths *c;
	struct base_err err = { 0 };
	int r;

	memcpy(copy, b->data, len);
	r = profdb_callpaths_parse(copy, len, &c, &err);
	if (r < 0) {
		assert_null(c);
		assert_true(err.code == r && err.text[0]);
	}
	profdb_callpaths_free(c);
	free(copy);
	return r;
}

/* Damage is noticed by the checksum; with a matching one, nothing goes wrong. */
static void test_damage_at_every_byte(void **state)
{
	struct profdb_callpaths *c = sample();
	struct base_buf a = { 0 };
	int r;

	(void)state;
	print(c, &a);
	for (size_t i = 0; i < a.len; i++) {
		uint8_t was = a.data[i];

		r = try_parse(&a, i);
		assert_true(r == -DCPI_ETRUNCATED || r == -DCPI_EFORMAT || r == -DCPI_ECHECKSUM);
		for (int bit = 0; bit < 8; bit++) {
			a.data[i] = was ^ (uint8_t)(1 << bit);
			assert_true(try_parse(&a, a.len) < 0);
			seal(&a);
			try_parse(&a, a.len);
			a.data[i] = was;
			seal(&a);
		}
	}
	assert_int_equal(try_parse(&a, a.len), 0);
	base_buf_release(&a);
	profdb_callpaths_free(c);
}

/* @from becomes @to somewhere in the file, once. */
static void replace(struct base_buf *b, const char *from, const char *to, size_t len)
{
	uint8_t *at = memmem(b->data, b->len, from, len);

	assert_non_null(at);
	memcpy(at, to, len);
	seal(b);
}

static int parse_replaced(const char *from, const char *to, size_t len)
{
	const struct profdb_frame f[] = { { 0, 0x21 }, { 1, 0x31 } };
	struct profdb_callpaths *c = make();
	struct base_buf a = { 0 };
	int r;

	add(c, 0, PROFDB_CALLPATH_COMPLETE, f, 2, 0x41);
	print(c, &a);
	replace(&a, from, to, len);
	r = try_parse(&a, a.len);
	base_buf_release(&a);
	profdb_callpaths_free(c);
	return r;
}

static void test_what_makes_no_sense_is_refused(void **state)
{
	/* Two nodes, from the root down: frames 1 and 0, the last with a count. */
	static const char tree[] = "\x02\x00\x01\x01\x00\x41\x00\x00\x00\x00";

	(void)state;
	assert_int_equal(parse_replaced(tree, tree, 10), 0);
	assert_int_equal(parse_replaced(tree, "\x02\x00\x02\x01\x00\x41\x00\x00\x00\x00", 10),
			 -DCPI_EFORMAT);
	assert_int_equal(parse_replaced(tree, "\x02\x02\x01\x01\x00\x41\x00\x00\x00\x00", 10),
			 -DCPI_EFORMAT);
	assert_int_equal(parse_replaced(tree, "\x02\x00\x01\x03\x00\x41\x00\x00\x00\x00", 10),
			 -DCPI_EFORMAT);
	assert_int_equal(parse_replaced(tree, "\x02\x00\x01\x01\x00\x40\x00\x00\x00\x00", 10),
			 -DCPI_EFORMAT);
	assert_int_equal(parse_replaced(tree, "\x02\x00\x01\x01\x00\x00\x00\x00\x00\x00", 10),
			 -DCPI_EFORMAT);
	assert_int_equal(parse_replaced(tree, "\x01\x00\x01\x01\x00\x41\x00\x00\x00\x00", 10),
			 -DCPI_EFORMAT);
	assert_int_equal(parse_replaced("TREE", "TREF", 4), -DCPI_EVERSION);
	assert_int_equal(parse_replaced("TREE", "tree", 4), -DCPI_EFORMAT);
	assert_int_equal(parse_replaced("IMGS", "imgs", 4), -DCPI_EFORMAT);
	assert_int_equal(parse_replaced("kind named", "kind vdso ", 10), -DCPI_EFORMAT);
	assert_int_equal(parse_replaced("vmlinux", "vm\0inux", 7), -DCPI_EFORMAT);
	assert_int_equal(parse_replaced("dynamic 1\n", "dynamic 2\n", 10), -DCPI_EVERSION);
}

static void test_a_node_takes_few_bytes(void **state)
{
	struct profdb_callpaths *c = make();
	struct base_buf a = { 0 };
	uint64_t coins = 1;

	(void)state;
	for (int i = 0; i < 5000; i++) {
		struct profdb_frame f[16];
		size_t nr = 4 + base_random64(&coins) % 12;

		for (size_t k = 0; k < nr; k++) {
			uint64_t coin = base_random64(&coins);

			f[nr - 1 - k] =
				(struct profdb_frame){ coin & 1, coin % (40 * (k + 1)) * 4099 };
		}
		add(c, 0, PROFDB_CALLPATH_COMPLETE, f, nr, 1);
	}
	print(c, &a);
	assert_true(a.len < 6 * profdb_callpaths_nr_nodes(c));
	base_buf_release(&a);
	profdb_callpaths_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths_share_their_callers),
		cmocka_unit_test(test_an_event_more_keeps_the_counts),
		cmocka_unit_test(test_images_are_equal_by_what_they_are),
		cmocka_unit_test(test_what_is_refused_changes_nothing),
		cmocka_unit_test(test_merging_adds_all),
		cmocka_unit_test(test_paths_of_workloads_stay_apart),
		cmocka_unit_test(test_paths_of_some_workloads),
		cmocka_unit_test(test_what_is_written_is_read),
		cmocka_unit_test(test_what_was_read_can_be_added_to),
		cmocka_unit_test(test_damage_at_every_byte),
		cmocka_unit_test(test_what_makes_no_sense_is_refused),
		cmocka_unit_test(test_a_node_takes_few_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
