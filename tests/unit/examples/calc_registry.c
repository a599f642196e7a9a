/* SPDX-License-Identifier: BSD-2-Clause */
/* What of a running program a daemon finds in the registry. */
#include "../routine_file.h"
#include "fake.h"

#include <string.h>

#include "announce.h"
#include "wire.h"

static _Alignas(8) uint8_t stream[1 << 20];

static const char text[] = "func f(n: int): int {\n"
			   "    return n * 3;\n"
			   "}\n"
			   "func unused() {}\n"
			   "func main(): int {\n"
			   "    return f(14);\n"
			   "}\n";

struct seen {
	unsigned int nr;
	char names[8][32];
	struct wire_routine_view views[8];
};

static int read_all(const struct fake *fake, struct seen *seen)
{
	size_t len = fake_read(fake, stream, sizeof(stream)), pos = 0;
	const struct wire_head *h;

	while ((h = fake_next(stream, len, &pos)) != NULL) {
		struct wire_routine_view *v = &seen->views[seen->nr];

		CHECK(seen->nr < 8 && wire_routine_parse(h, v) == 0);
		snprintf(seen->names[seen->nr], sizeof(seen->names[0]), "%.*s",
			 (int)v->rec->name_len, (const char *)v->name);
		seen->nr++;
	}
	return 0;
}

static int check_f(const struct wire_routine_view *v)
{
	size_t len = 0;
	const char *file = routine_file(v, 0, &len);

	CHECK(file && len == strlen("/tmp/no such file.calc"));
	CHECK(memcmp(file, "/tmp/no such file.calc", len) == 0);
	CHECK(v->rec->nr_lines >= 3 && v->lines[0].line == 1 && v->lines[1].line == 2);
	CHECK(v->lines[0].code_off == 0 && v->lines[1].code_off > 0);
	CHECK(v->code &&
	      memcmp(v->code, (const void *)(uintptr_t)v->rec->addr, v->rec->code_len) == 0);
	return 0;
}

static int every_routine_that_ran(void)
{
	struct fake fake;
	struct seen seen = { 0 };
	dbgdyn_context context = { 0 };
	struct calc_options opts = { .made = announce_routine, .arg = &context };
	struct calc_err err;
	struct calc *c;
	int64_t status;

	fake_open(&fake, FAKE_SOCKET);
	announce_begin(&context);
	CHECK(fake_take(&fake));
	CHECK(calc_new(&c, "/tmp/no such file.calc", text, strlen(text), &opts, &err) == 0);
	CHECK(calc_run(c, &status, &err) == 0 && status == 42);
	CHECK(read_all(&fake, &seen) == 0 && seen.nr == 4);
	CHECK(strcmp(seen.names[0], "calc:enter") == 0 && strcmp(seen.names[1], "calc:lazy") == 0);
	CHECK(strcmp(seen.names[2], "main") == 0 && strcmp(seen.names[3], "f") == 0);
	CHECK(check_f(&seen.views[3]) == 0);
	calc_free(c);
	fake_close(&fake);
	return 0;
}
FAKE_TEST(every_routine_that_ran)

/* Nobody there: the program runs all the same, and the end neither waits nor warns. */
static int without_a_daemon(void)
{
	struct fake fake;
	dbgdyn_context context = { 0 };
	struct calc_options opts = { .made = announce_routine, .arg = &context };
	struct calc_err err;
	struct calc *c;
	int64_t status;
	double start = fake_seconds();

	fake_open(&fake, 0);
	announce_begin(&context);
	CHECK(calc_new(&c, "x.calc", text, strlen(text), &opts, &err) == 0);
	CHECK(calc_run(c, &status, &err) == 0 && status == 42);
	CHECK(announce_end(context) == NULL);
	CHECK(fake_seconds() - start < 1);
	calc_free(c);
	fake_close(&fake);
	return 0;
}
FAKE_TEST(without_a_daemon)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_routine_that_ran),
		cmocka_unit_test(test_without_a_daemon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
