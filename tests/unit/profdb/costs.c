/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "scratch.h"

static struct profdb_costs costs_of(const char *event)
{
	struct profdb_costs c = { .image = { 4, { 0xde, 0xad, 0xbe, 0xef } } };

	c.path = strdup("/usr/bin/some thing");
	snprintf(c.event, sizeof(c.event), "%s", event);
	return c;
}

static void add(struct profdb_costs *c, uint64_t off, uint64_t len, uint64_t samples)
{
	struct profdb_cost b = { off, len, samples, samples * 1000, samples * 7 + 1 };

	assert_int_equal(profdb_costs_add(c, &b), 0);
}

static void check_block(const struct profdb_costs *c, size_t i, uint64_t off, uint64_t len,
			uint64_t samples)
{
	assert_int_equal(c->v[i].off, off);
	assert_int_equal(c->v[i].len, len);
	assert_int_equal(c->v[i].samples, samples);
	assert_ptr_equal(profdb_costs_at(c, off, len), &c->v[i]);
}

static void test_add(void **state)
{
	struct profdb_costs c = costs_of("cpu-clock");
	struct profdb_cost bad = { 0x10, 0, 1, 1, 1 }, end = { UINT64_MAX, 2, 1, 1, 1 };
	struct profdb_cost never = { 0x10, 4, 1, 1, 0 }, full = { 0x30, 8, UINT64_MAX, 1, 1 };

	(void)state;
	add(&c, 0x30, 8, 5);
	add(&c, 0x10, 8, 1);
	add(&c, 0x18, 8, 2);
	add(&c, 0x30, 8, 6); /* the same */
	assert_int_equal(c.nr, 3);
	check_block(&c, 0, 0x10, 8, 1);
	check_block(&c, 1, 0x18, 8, 2);
	check_block(&c, 2, 0x30, 8, 11);
	assert_int_equal(c.v[2].units, 11000);
	assert_int_equal(c.v[2].executions, 5 * 7 + 1 + 6 * 7 + 1);
	assert_null(profdb_costs_at(&c, 0x10, 9));
	assert_null(profdb_costs_at(&c, 0x11, 7));
	assert_null(profdb_costs_at(&c, 0x38, 1));
	/* What is cut otherwise replaces all that it touches. */
	add(&c, 0x17, 0x1a, 9);
	assert_int_equal(c.nr, 1);
	check_block(&c, 0, 0x17, 0x1a, 9);
	add(&c, 0x30, 8, 3);
	add(&c, 0x10, 7, 4);
	assert_int_equal(c.nr, 2);
	check_block(&c, 0, 0x10, 7, 4);
	assert_int_equal(profdb_costs_add(&c, &bad), -EINVAL);
	assert_int_equal(profdb_costs_add(&c, &end), -EINVAL);
	assert_int_equal(profdb_costs_add(&c, &never), -EINVAL);
	add(&c, 0x30, 8, 5);
	assert_int_equal(profdb_costs_add(&c, &full), -DCPI_EOVERFLOW);
	profdb_costs_release(&c);
}

static void test_kept(void **state)
{
	struct profdb_costs c = costs_of("cpu-clock"), other = costs_of("cycles/x/"), got;
	struct base_id unknown = { 2, { 1, 2 } };
	struct base_err err = { 0 };
	struct profdb *db;

	assert_int_equal(profdb_open(*state, true, &db, &err), 0);
	assert_int_equal(profdb_costs_read(db, &c.image, "cpu-clock", &got, &err), -ENOENT);
	assert_int_equal(err.code, 0);
	add(&c, 0x1000, 16, 40);
	add(&other, 0x1000, 16, 2);
	assert_int_equal(profdb_costs_keep(db, &c, &err), 0);
	assert_int_equal(profdb_costs_keep(db, &other, &err), 0);
	add(&c, 0x2000, 4, 8);
	assert_int_equal(profdb_costs_keep(db, &c, &err), 0);
	assert_int_equal(profdb_costs_read(db, &c.image, "cpu-clock", &got, &err), 0);
	assert_string_equal(got.path, "/usr/bin/some thing");
	assert_int_equal(got.nr, 2);
	check_block(&got, 0, 0x1000, 16, 80);
	check_block(&got, 1, 0x2000, 4, 8);
	profdb_costs_release(&got);
	assert_int_equal(profdb_costs_read(db, &c.image, "cycles/x/", &got, &err), 0);
	check_block(&got, 0, 0x1000, 16, 2);
	profdb_costs_release(&got);
	assert_int_equal(profdb_costs_read(db, &unknown, "cpu-clock", &got, &err), -ENOENT);
	other.event[0] = '\0';
	assert_int_equal(profdb_costs_keep(db, &other, NULL), -EINVAL);
	profdb_costs_release(&c);
	profdb_costs_release(&other);
	profdb_close(db);
}

/* With the right checksum, so that it is the text that is refused. */
static int parse(const char *body)
{
	struct base_buf buf = { 0 };
	struct profdb_costs c;
	int r;

	assert_int_equal(base_buf_printf(&buf, "%s", body), 0);
	assert_int_equal(base_buf_printf(&buf, "crc %08x\n", base_crc32c(0, buf.data, buf.len)), 0);
	r = profdb_costs_parse(buf.data, buf.len, &c, NULL);
	profdb_costs_release(&c);
	base_buf_release(&buf);
	return r;
}

#define HEAD "dcpi-costs 1\nimage deadbeef\npath /bin/x\nevent cpu-clock\n"

static void test_strict(void **state)
{
	static const char *const bad[] = {
		"dcpi-costs 1\n",
		"dcpi-costs 1\nimage xx\npath /bin/x\nevent cpu-clock\n",
		"dcpi-costs 1\nimage deadbeef\nevent cpu-clock\npath /bin/x\n",
		HEAD "block 10 4 1 1\n",
		HEAD "block 10 4 1 1 1 1\n",
		HEAD "block 10 4 1 1 0\n",
		HEAD "block 10 0 1 1 1\n",
		HEAD "block 10 4 1 -1 1\n",
		HEAD "block 10 4 1 1 99999999999999999999\n",
		HEAD "block 10 4 1 1 1\nblock 13 4 1 1 1\n",
		HEAD "block 20 4 1 1 1\nblock 10 4 1 1 1\n",
		HEAD "what 10 4 1 1 1\n",
		HEAD "\n",
	};

	(void)state;
	assert_int_equal(parse(HEAD), 0);
	assert_int_equal(parse(HEAD "block 10 4 1 1 1\nblock 14 4 0 0 1\n"), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(parse(bad[i]), -DCPI_EFORMAT);
	assert_int_equal(parse("dcpi-costs 2\n"), -DCPI_EVERSION);
	assert_int_equal(parse(""), -DCPI_EVERSION);
}

static void test_damaged(void **state)
{
	struct profdb_costs c = costs_of("cpu-clock"), got;
	struct base_err err = { 0 };
	struct profdb *db;
	char path[300];
	int fd;

	assert_int_equal(profdb_open(*state, true, &db, &err), 0);
	add(&c, 0x1000, 16, 40);
	assert_int_equal(profdb_costs_keep(db, &c, &err), 0);
	snprintf(path, sizeof(path), "%s/costs/deadbeef.cpu-clock", (const char *)*state);
	fd = open(path, O_WRONLY);
	assert_int_equal(pwrite(fd, "9", 1, 30), 1);
	close(fd);
	assert_int_equal(profdb_costs_read(db, &c.image, "cpu-clock", &got, &err), -DCPI_ECHECKSUM);
	assert_non_null(strstr(err.text, "costs/deadbeef.cpu-clock"));
	assert_int_equal(profdb_costs_keep(db, &c, NULL), -DCPI_ECHECKSUM);
	profdb_costs_release(&c);
	profdb_close(db);
}

/* The folder's owner may have planted it, and we may be root. */
static void test_through_no_link(void **state)
{
	struct profdb *db = scratch_open(*state, true);
	struct profdb_costs c = costs_of("cpu-clock");

	add(&c, 0x10, 8, 1);
	assert_int_equal(mkdir(scratch_path(*state, "victim"), 0700), 0);
	assert_int_equal(symlink(scratch_path(*state, "victim"), scratch_path(*state, "costs")), 0);
	assert_int_equal(profdb_costs_keep(db, &c, NULL), -ENOTDIR);
	assert_int_equal(rmdir(scratch_path(*state, "victim")), 0);
	profdb_costs_release(&c);
	profdb_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_add),	    scratch_test(test_kept),
		cmocka_unit_test(test_strict),	    scratch_test(test_damaged),
		scratch_test(test_through_no_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
