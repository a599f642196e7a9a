/* SPDX-License-Identifier: BSD-2-Clause */
/* What is told of routines, and when. */
#include "calc_program.h"

static struct made {
	char name[32];
	const void *code;
	size_t code_len;
	struct calc_line lines[64];
	size_t nr_lines;
} made[16];

static unsigned int nr_made;

static void note(void *arg, const struct calc_routine *r)
{
	struct made *m = &made[nr_made++];

	assert_string_equal(arg, "argument");
	assert_true(nr_made <= 16 && r->nr_lines <= 64);
	snprintf(m->name, sizeof(m->name), "%s", r->name);
	m->code = r->code;
	m->code_len = r->code_len;
	m->nr_lines = r->nr_lines;
	if (r->nr_lines > 0)
		memcpy(m->lines, r->lines, r->nr_lines * sizeof(r->lines[0]));
	assert_true(strlen(r->path) > 0);
}

static const char text[] = "extern \"t_made\"(): int;\n"		   /* 1 */
			   "func main() {}\n"				   /* 2 */
			   "func g(n: int): int {\n"			   /* 3 */
			   "  var s = t_made();\n"			   /* 4 */
			   "  for var i = 0;\n"				   /* 5 */
			   "      i < n;\n"				   /* 6 */
			   "      i += 1 {\n"				   /* 7 */
			   "    s += i\n"				   /* 8 */
			   "         * n;\n"				   /* 9 */
			   "  }\n"					   /* 10 */
			   "  return s;\n"				   /* 11 */
			   "}\n"					   /* 12 */
			   "func f(): int { return g(2) * 100 + g(0); }\n" /* 13 */
			   "func unused() { unused(); }\n";

int64_t t_made(void);

/* Called by g, so that it tells how many routines were known before g ran. */
int64_t t_made(void)
{
	return nr_made;
}

static void check_lines(const struct made *m)
{
	bool seen[32] = { false };

	assert_true(m->nr_lines > 0);
	assert_int_equal(m->lines[0].code_off, 0);
	for (size_t i = 0; i < m->nr_lines; i++) {
		assert_true(m->lines[i].code_off < m->code_len);
		assert_true(i == 0 || m->lines[i].code_off > m->lines[i - 1].code_off);
		assert_true(i == 0 || m->lines[i].line != m->lines[i - 1].line);
		assert_true(m->lines[i].line < 32);
		seen[m->lines[i].line] = true;
	}
	for (unsigned int line = 3; line <= 11; line++)
		if (line != 10)
			assert_true(seen[line]);
}

static void routines(void **state)
{
	char argument[] = "argument";
	struct calc_options opts = { .made = note, .arg = argument };
	struct calc_err err;
	struct calc *c;
	union calc_value result;

	(void)state;
	nr_made = 0;
	assert_int_equal(calc_new(&c, "t.calc", text, strlen(text), &opts, &err), 0);
	assert_int_equal(nr_made, 2); /* calc's own: no function is compiled before it is called */
	assert_int_equal(calc_call(c, "f", NULL, 0, &result, &err), 0);
	assert_int_equal(nr_made, 4);
	assert_int_equal(result.i, (4 + 2) * 100 + 4); /* f and g were told before g ran */
	assert_string_equal(made[2].name, "f");
	assert_string_equal(made[3].name, "g");
	check_lines(&made[3]);
	for (unsigned int i = 1; i < 4; i++)
		assert_true((const char *)made[i].code >=
			    (const char *)made[i - 1].code + made[i - 1].code_len);
	assert_int_equal(calc_call(c, "f", NULL, 0, &result, &err), 0);
	assert_int_equal(nr_made, 4);
	assert_int_equal(calc_compile_all(c, &err), 0);
	assert_int_equal(nr_made, 6);
	calc_free(c);
}

/* The same bytes wherever they lie, so that equal runs can be known as such. */
static void same_bytes(void **state)
{
	static uint8_t bytes[16][4096];
	char argument[] = "argument";
	struct calc_options opts = { .made = note, .arg = argument };
	struct calc_err err;
	struct calc *c[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		nr_made = 0;
		assert_int_equal(calc_new(&c[i], "t.calc", text, strlen(text), &opts, &err), 0);
		assert_int_equal(calc_compile_all(c[i], &err), 0);
		for (unsigned int m = 0; m < nr_made; m++) {
			assert_true(made[m].code_len <= sizeof(bytes[m]));
			if (i == 0)
				memcpy(bytes[m], made[m].code, made[m].code_len);
			else
				assert_memory_equal(bytes[m], made[m].code, made[m].code_len);
		}
	}
	calc_free(c[0]);
	calc_free(c[1]);
}

static void shares(void **state)
{
	static const char program_text[] =
		"shares big, small;\n"
		"func work(n: int): int { var x = 1; for var i = 0; i < n; i += 1 { x = x * 3 + i; "
		"}"
		" return x; }\n"
		"func big(n: int): double { return 0.25 + work(n) % 2; }\n"
		"func small(n: int): int { return work(n); }\n"
		"func main() { for var i = 0; i < 20; i += 1 { var d = big(90000); small(10000);\n"
		"  if d != 0.25 && d != 1.25 && d != -0.75 { i = 1 / (i - i); } } }\n";
	struct calc_options opts = { .measure_shares = true };
	struct calc_err err = { "" };
	struct calc *c;
	const char *name;
	double percent, sum = 0;
	int64_t status;

	(void)state;
	assert_int_equal(calc_new(&c, "t.calc", program_text, strlen(program_text), &opts, &err),
			 0);
	if (calc_run(c, &status, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(calc_share(c, 0, &name, &percent));
	assert_string_equal(name, "big");
	assert_true(percent > 60);
	sum += percent;
	assert_true(calc_share(c, 1, &name, &percent));
	assert_string_equal(name, "small");
	assert_true(percent > 0.5 && percent < 40);
	sum += percent;
	assert_true(calc_share(c, 2, &name, &percent));
	assert_string_equal(name, "-");
	sum += percent;
	assert_true(sum > 99.99 && sum < 100.01);
	assert_false(calc_share(c, 3, &name, &percent));
	calc_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(routines),
		cmocka_unit_test(same_bytes),
		cmocka_unit_test(shares),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
