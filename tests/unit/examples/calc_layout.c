/* SPDX-License-Identifier: BSD-2-Clause */
/* A routine that is laid out by a profile does what it did; what ran seldom stands at its end. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "calc_program.h"
#include "layout.h"

static const char rare_body[] =
	"func f(a: int, b: int): int {\n"
	"  var s = 0;\n"
	"  for var i = 0; i < a; i += 1 {\n"
	"    if i % 8 == 0 { if i == b { break; } else { s += 100; } continue; } else { s += i; }\n"
	"    if s < 0 { return -1; }\n"
	"  }\n"
	"  return s;\n"
	"}\n"
	"func main() {}\n";

static char path[] = "/tmp/calc-layout-XXXXXX";

struct made {
	unsigned char code[4096];
	size_t len;
	struct calc_line lines[64];
	size_t nr_lines;
};

static void keep(void *arg, const struct calc_routine *r)
{
	struct made *m = arg;

	assert_true(r->code_len <= sizeof(m->code) && r->nr_lines <= 64);
	memcpy(m->code, r->code, r->code_len);
	if (r->nr_lines)
		memcpy(m->lines, r->lines, r->nr_lines * sizeof(r->lines[0]));
	m->len = r->code_len;
	m->nr_lines = r->nr_lines;
}

/* f(@a, @b), compiled by the profile, and what was made. */
static int64_t run_laid_out(const struct calc_layout *layout, int64_t a, int64_t b, struct made *m)
{
	const struct calc_options opts = { .layout = layout, .made = keep, .arg = m };
	struct calc_err err = { "" };
	struct calc *c = NULL;
	int64_t result;

	if (calc_new(&c, "t.calc", rare_body, strlen(rare_body), &opts, &err) < 0)
		fail_msg("%s", err.text);
	result = call_ints(c, "f", a, b);
	calc_free(c);
	return result;
}

static void write_text(const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* A profile with one edge inside "f", which has @size bytes, and one that leads to elsewhere. */
static struct calc_layout *profile(size_t size, size_t from, size_t to)
{
	struct calc_layout *layout;
	char text[512];

	snprintf(text, sizeof(text),
		 "{\"procedures\": [{\"procedure\": \"g\"}, {\"procedure\": \"f\", \"size\": %zu, "
		 "\"edges\": [{\"from\": %zu, \"to\": %zu, \"kind\": \"taken\", \"count\": 900},"
		 "{\"from\": %zu, \"to\": 0, \"to_procedure\": \"g\", \"count\": 5}]}]}\n",
		 size, from, to, from);
	write_text(text);
	assert_int_equal(calc_layout_read(path, &layout), 0);
	return layout;
}

static void results_stay(void **state)
{
	struct made usual, other;
	unsigned int nr_different = 0;

	(void)state;
	assert_int_equal(run_laid_out(NULL, 100, 64, &usual), 2592);
	/* Whatever two places an edge is said to lead from and to. */
	for (size_t from = 0; from < usual.len; from += 4)
		for (size_t i = 0; i < usual.nr_lines; i++) {
			struct calc_layout *l = profile(usual.len, from, usual.lines[i].code_off);

			assert_int_equal(run_laid_out(l, 100, 64, &other), 2592);
			nr_different += other.len != usual.len ||
					memcmp(other.code, usual.code, usual.len) != 0;
			calc_layout_free(l);
		}
	assert_true(nr_different > 0);
}

static void another_size(void **state)
{
	struct made usual, other;
	struct calc_layout *l;

	(void)state;
	run_laid_out(NULL, 100, 64, &usual);
	for (size_t from = 0; from < usual.len; from += 4) {
		l = profile(usual.len + 1, from, usual.lines[3].code_off);
		run_laid_out(l, 100, 64, &other);
		assert_int_equal(other.len, usual.len);
		calc_layout_free(l);
	}
}

static void no_profile(void **state)
{
	static const char *const texts[] = { "", "{", "[]", "{\"procedures\": 3}", "null", "7" };
	static const char *const odd[] = {
		"{\"procedures\": [1, null, {\"procedure\": 5, \"size\": \"x\", \"edges\": {}}]}",
		"{\"procedures\": [{\"procedure\": \"f\", \"size\": 1, \"edges\": [0, {\"from\": "
		"[]}]}]}",
	};
	struct calc_layout *l;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		write_text(texts[i]);
		assert_int_equal(calc_layout_read(path, &l), -EINVAL);
	}
	assert_int_equal(calc_layout_read("/no/such/file", &l), -EINVAL);
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		struct json_object *f;

		write_text(odd[i]);
		assert_int_equal(calc_layout_read(path, &l), 0);
		f = calc_layout_find(l, "f", 1);
		assert_int_equal(f ? calc_layout_count(f, 0, 100, 50) : 0, 0);
		calc_layout_free(l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_stay),
		cmocka_unit_test(another_size),
		cmocka_unit_test(no_profile),
	};
	int fd = mkstemp(path), r;

	if (fd < 0)
		return 1;
	close(fd);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return r;
}
