/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The old format, against a writer and a reader made here from its page alone, that share no code
 * with the library.
 */
#include <errno.h>

#include "scratch.h"

static const char required[] = "image 199703041213140a1b2c\n"
			       "epoch 9612042334\n"
			       "platform alpha box\n"
			       "event cycles\n"
			       "period 63488\n"
			       "tsize 8192\n"
			       "cpuspeed 333\n";

/* ---- the writer ------------------------------------------------------------------------------ */

struct old {
	uint8_t bytes[4096];
	size_t len;
};

static void old_text(struct old *o, const char *text)
{
	memcpy(o->bytes + o->len, text, strlen(text));
	o->len += strlen(text);
}

static void old_u32(struct old *o, uint32_t v)
{
	o->bytes[o->len++] = v & 255;
	o->bytes[o->len++] = v >> 8 & 255;
	o->bytes[o->len++] = v >> 16 & 255;
	o->bytes[o->len++] = v >> 24;
}

/* Header lines, "samples" with padding, chunk {0x10: 1 0 3}, chunk {0x40: 7}, footer. */
static void old_make(struct old *o, const char *lines)
{
	static const uint32_t binary[] = { 0x10, 3, 1, 0, 3, 0x40, 1, 7, 3, 11 };

	o->len = 0;
	old_text(o, lines);
	old_text(o, "samples");
	while (o->len % 4 != 3)
		old_text(o, " ");
	old_text(o, "\n");
	for (size_t i = 0; i < sizeof(binary) / sizeof(binary[0]); i++)
		old_u32(o, binary[i]);
}

/* ---- the reader ------------------------------------------------------------------------------ */

static uint32_t old_get(const uint8_t *p)
{
	return p[0] + 256u * p[1] + 65536u * p[2] + 16777216u * p[3];
}

/* Count at @off, and the sum and number of all; checks the footer against them. */
static uint32_t old_count(const uint8_t *file, size_t len, uint64_t off, uint64_t *sum, size_t *nr)
{
	const uint8_t *p = memmem(file, len, "\nsamples", 8), *end = file + len - 8;
	uint32_t found = 0;

	*sum = *nr = 0;
	assert_non_null(p);
	for (p++; *p != '\n'; p++)
		assert_true(p < end);
	p++;
	assert_int_equal((p - file) % 4, 0);
	while (p < end) {
		uint32_t start = old_get(p), n = old_get(p + 4);

		p += 8;
		for (uint32_t i = 0; i < n; i++, p += 4) {
			uint32_t c = old_get(p);

			*sum += c;
			*nr += c != 0;
			if ((uint64_t)start + i == off)
				found = c;
		}
	}
	assert_ptr_equal(p, end);
	assert_int_equal(old_get(end), *nr);
	assert_int_equal(old_get(end + 4), *sum);
	return found;
}

static int old_lines(const uint8_t *file, size_t len, const char *line)
{
	int n = 0;

	for (size_t i = 0; i + strlen(line) < len; i++)
		n += !memcmp(file + i, line, strlen(line)) && (!i || file[i - 1] == '\n');
	return n;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int try(const struct old *o, struct profdb_profile **p)
{
	return profdb_profile_parse(o->bytes, o->len, p, NULL);
}

static void make_with(struct old *o, const char *more)
{
	char lines[1024];

	snprintf(lines, sizeof(lines), "%s%s", required, more);
	old_make(o, lines);
}

static void test_reads_every_version_zero(void **state)
{
	static const char *const versions[] = { "", "version 0.07\n", "version 0.06\n" };
	struct profdb_profile *p;
	struct base_id id = { .len = 10,
			      .bytes = { 0x19, 0x97, 3, 4, 0x12, 0x13, 0x14, 0xa, 0x1b, 0x2c } };
	struct old o;

	(void)state;
	for (int i = 0; i < 3; i++) {
		make_with(&o, versions[i]);
		assert_int_equal(try(&o, &p), 0);
		assert_true(base_id_equal(profdb_profile_image(p), &id));
		assert_int_equal(profdb_profile_kind(p), PROFDB_FILE);
		assert_string_equal(profdb_profile_word(p, "epoch"), "199612042334");
		assert_string_equal(profdb_profile_word(p, "platform"), "alpha box");
		assert_string_equal(profdb_profile_word(p, "tsize"), "8192");
		assert_string_equal(profdb_profile_event(p, 0)->name, "cycles");
		assert_int_equal(profdb_profile_event(p, 0)->period, 63488);
		assert_int_equal(profdb_profile_event(p, 0)->sum, 11);
		assert_int_equal(profdb_profile_nr_entries(p), 3);
		assert_int_equal(profdb_profile_entry(p, 1)->off, 0x12);
		assert_int_equal(profdb_profile_entry(p, 1)->count[0], 3);
		assert_int_equal(profdb_profile_entry(p, 2)->off, 0x40);
		profdb_profile_free(p);
	}
}

static void test_refuses_other_versions(void **state)
{
	static const char *const lines[] = { "version 1.01\n",		 "version 1.0\n",
					     "version 0.08\n",		 "version 0.05\n",
					     "version dcpi-dynamic 1\n", "version x\n" };
	struct profdb_profile *p;
	struct base_err err;
	struct old o;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		err = (struct base_err){ 0 };
		make_with(&o, lines[i]);
		assert_int_equal(profdb_profile_parse(o.bytes, o.len, &p, &err), -DCPI_EVERSION);
		if (i == 0)
			assert_non_null(strstr(err.hint, "never published"));
	}
}

static void test_keeps_lines_it_does_not_know(void **state)
{
	static const char rest[] =
		"\nweather  fine\ttoday  \nweather\train \x01\ncpucount 4\nsamples 4\n";
	struct base_buf buf = { 0 };
	struct profdb_profile *p, *sum;
	struct old o;

	(void)state;
	make_with(&o, "weather  fine\ttoday  \npath /vmunix\nweather\train \x01\ncpucount 4\n"
		      "path C:\\NT\\x.exe\nsamples 4\n");
	assert_int_equal(try(&o, &p), 0);
	assert_string_equal(profdb_profile_word(p, "weather"), " fine\ttoday  ");
	assert_string_equal(profdb_profile_word(p, "samples"), "4");
	assert_string_equal(profdb_profile_path(p, 1), "C:\\NT\\x.exe");
	assert_int_equal(profdb_profile_format(p, PROFDB_FORMAT_0_07, 0, &buf, NULL), 0);
	assert_non_null(memmem(buf.data, buf.len, rest, strlen(rest)));
	assert_int_equal(old_lines(buf.data, buf.len, "path C:\\NT\\x.exe\n"), 1);
	base_buf_release(&buf);
	/* By way of version 1, and of a sum, too. */
	assert_int_equal(profdb_profile_format(p, PROFDB_FORMAT_1, 0, &buf, NULL), 0);
	profdb_profile_free(p);
	assert_int_equal(profdb_profile_parse(buf.data, buf.len, &p, NULL), 0);
	base_buf_release(&buf);
	sum = profdb_profile_new(PROFDB_FILE, NULL, NULL);
	assert_int_equal(profdb_profile_merge(sum, p), 0);
	profdb_profile_free(p);
	assert_int_equal(profdb_profile_format(sum, PROFDB_FORMAT_0_07, 0, &buf, NULL), 0);
	assert_non_null(memmem(buf.data, buf.len, rest, strlen(rest)));
	base_buf_release(&buf);
	profdb_profile_free(sum);
}

static void test_headers_that_are_refused(void **state)
{
	static const char *const more[] = {
		"epoch 9612042334\n",
		"event imiss\n",
		"period 1\n",
		"tsize 1\n",
		"cpuspeed 1\n",
		"image 12\n",
		"cpucount many\n",
		"cpuamask xyz\n",
		"word\n",
		"\n",
		" lead 1\n",
		"kind strange\n",
		"enabled 2\n",
		"tstart 12zz\n",
		"bad\x01word 1\n",
		"word \n",
	};
	struct profdb_profile *p;
	struct old o;

	(void)state;
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
		make_with(&o, more[i]);
		if (try(&o, &p) != -DCPI_EFORMAT)
			fail_msg("line '%s' was taken", more[i]);
	}
	make_with(&o, "word 1\n");
	((uint8_t *)memmem(o.bytes, o.len, "word", 4))[2] = 0;
	assert_int_equal(try(&o, &p), -DCPI_EFORMAT);
}

static void test_every_required_line_is_required(void **state)
{
	struct profdb_profile *p;
	struct old o;

	(void)state;
	for (const char *line = required; *line; line = strchr(line, '\n') + 1) {
		char lines[sizeof(required)];
		size_t before = (size_t)(line - required);

		memcpy(lines, required, before);
		strcpy(lines + before, strchr(line, '\n') + 1);
		old_make(&o, lines);
		assert_int_equal(try(&o, &p), -DCPI_EFORMAT);
	}
}

static void test_epochs(void **state)
{
	static const char *const good[][2] = { { "9602290000", "199602290000" },
					       { "6912312359", "206912312359" },
					       { "7001010000", "197001010000" },
					       { "200212042334", "200212042334" },
					       { "20021204233459", "20021204233459" } };
	static const char *const bad[] = { "961204233",	 "96120423345", "9613042334",  "9600042334",
					   "9612002334", "9612042434",	"9612042360",  "today",
					   "9602300000", "9702290000",	"190002290000" };
	enum { GOOD = sizeof(good) / sizeof(good[0]), BAD = sizeof(bad) / sizeof(bad[0]) };
	char lines[512], *at;
	struct profdb_profile *p;
	struct old o;

	(void)state;
	for (int i = 0; i < GOOD + BAD; i++) {
		strcpy(lines, required);
		at = strstr(lines, "9612042334");
		sprintf(at, "%s%s", i < GOOD ? good[i][0] : bad[i - GOOD],
			strstr(required, "9612042334") + 10);
		old_make(&o, lines);
		assert_int_equal(try(&o, &p), i < GOOD ? 0 : -DCPI_EFORMAT);
		if (i < GOOD)
			assert_string_equal(profdb_profile_word(p, "epoch"), good[i][1]);
		if (i < GOOD)
			profdb_profile_free(p);
	}
}

static void test_image_identities(void **state)
{
	static const char *const text[] = { "0", "abc", "AbCd", "00" };
	static const struct base_id id[] = { { 0 },
					     { .len = 2, .bytes = { 0x0a, 0xbc } },
					     { .len = 2, .bytes = { 0xab, 0xcd } },
					     { .len = 1 } };
	char lines[512];
	struct profdb_profile *p;
	struct old o;

	(void)state;
	for (int i = 0; i < 4; i++) {
		snprintf(lines, sizeof(lines), "image %s\n%s", text[i], strchr(required, '\n') + 1);
		old_make(&o, lines);
		assert_int_equal(try(&o, &p), 0);
		assert_true(base_id_equal(profdb_profile_image(p), &id[i]));
		profdb_profile_free(p);
	}
}

static size_t binary_at(const struct old *o)
{
	return o->len - 40;
}

static void set_u32(struct old *o, size_t word, uint32_t v)
{
	size_t len = o->len;

	o->len = binary_at(o) + 4 * word;
	old_u32(o, v);
	o->len = len;
}

static void test_bad_binaries(void **state)
{
	/* Which word of the binary part is changed into what. */
	static const struct {
		size_t word;
		uint32_t value;
		int want;
	} cases[] = {
		{ 9, 12, -DCPI_ECHECKSUM },  { 8, 4, -DCPI_ECHECKSUM },
		{ 7, 8, -DCPI_ECHECKSUM },   { 5, 0x12, -DCPI_EFORMAT },
		{ 5, 0x0f, -DCPI_EFORMAT },  { 5, 0x10, -DCPI_EFORMAT },
		{ 5, 0xffffffff, 0 },	     { 5, 0x13, 0 },
		{ 0, 0x3e, -DCPI_EFORMAT },  { 1, 0, -DCPI_EFORMAT },
		{ 1, 99, -DCPI_ETRUNCATED }, { 1, 0xffffffff, -DCPI_EFORMAT },
		{ 6, 2, -DCPI_ETRUNCATED },  { 0, 0xfffffffe, -DCPI_EFORMAT },
	};
	struct profdb_profile *p;
	struct old o;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int r;

		make_with(&o, "");
		set_u32(&o, cases[i].word, cases[i].value);
		r = try(&o, &p);
		if (r != cases[i].want)
			fail_msg("case %zu: %s", i, base_strerror(r));
		profdb_profile_free(p);
	}
}

static void test_no_truncation_passes(void **state)
{
	struct profdb_profile *p;
	struct old o;

	(void)state;
	make_with(&o, "");
	for (size_t full = o.len; o.len-- > 0;) {
		assert_true(try(&o, &p) < 0);
		assert_true(o.len < full);
		if (!o.len)
			break;
	}
	make_with(&o, "");
	old_text(&o, "x");
	assert_true(try(&o, &p) < 0);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The footer tells of changed counts only by their sum: an error, or a profile, and never a crash.
 */
static void test_any_changed_byte_is_survived(void **state)
{
	struct profdb_profile *p;
	int refused = 0;
	struct old o;

	(void)state;
	old_make(&o, required);
	for (size_t i = 0; i < o.len; i++) {
		uint8_t was = o.bytes[i];

		for (int byte = 0; byte < 256; byte++) {
			o.bytes[i] = (uint8_t)byte;
			if (try(&o, &p) < 0)
				refused++;
			else
				profdb_profile_free(p);
		}
		o.bytes[i] = was;
	}
	/* Of the 40 binary bytes nothing passes but another place of a chunk. */
	assert_true(refused > 36 * 250);
}

static void test_what_is_written_an_old_reader_reads(void **state)
{
	static const uint64_t offs[] = { 0, 1, 3, 4, 8, 1000, UINT32_MAX - 1, UINT32_MAX };
	enum { N = sizeof(offs) / sizeof(offs[0]) };
	struct profdb_profile *p = scratch_profile("/lib/new\nline", 1, 0, 0), *q;
	struct base_buf buf = { 0 };
	uint64_t sum;
	size_t nr;

	(void)state;
	profdb_profile_event_add(p, "imiss", 4096);
	profdb_profile_event_set_enabled(p, 1, 0.5);
	profdb_profile_set_word(p, "epoch", "202611200754");
	for (size_t i = 0; i < N; i++) {
		profdb_profile_add(p, offs[i], 1, i + 1);
		profdb_profile_add(p, 77 + i, 0, 1);
	}
	assert_int_equal(profdb_profile_format(p, PROFDB_FORMAT_0_07, 1, &buf, NULL), 0);
	for (size_t i = 0; i < N; i++)
		assert_int_equal(old_count(buf.data, buf.len, offs[i], &sum, &nr), i + 1);
	assert_int_equal(sum, N * (N + 1) / 2);
	assert_int_equal(nr, N);
	/* No chunk of zeros from 8 to 1000. */
	assert_true(buf.len < 400);
	assert_int_equal(old_lines(buf.data, buf.len, "version 0.07\n"), 1);
	assert_int_equal(old_lines(buf.data, buf.len, "image ab01\n"), 1);
	assert_int_equal(old_lines(buf.data, buf.len, "epoch 2611200754\n"), 1);
	assert_int_equal(old_lines(buf.data, buf.len, "event "), 1);
	assert_int_equal(old_lines(buf.data, buf.len, "event imiss\n"), 1);
	assert_int_equal(old_lines(buf.data, buf.len, "period 4096\n"), 1);
	assert_int_equal(old_lines(buf.data, buf.len, "platform "), 1);
	assert_int_equal(old_lines(buf.data, buf.len, "tsize 0\n"), 1);
	assert_int_equal(old_lines(buf.data, buf.len, "cpuspeed 0\n"), 1);
	assert_int_equal(old_lines(buf.data, buf.len, "path /lib/new?line\n"), 1);
	assert_int_equal(profdb_profile_parse(buf.data, buf.len, &q, NULL), 0);
	assert_true(profdb_profile_event(q, 0)->enabled == 0.5);
	assert_int_equal(profdb_profile_nr_entries(q), N);
	base_buf_clear(&buf);
	assert_int_equal(profdb_profile_format(q, PROFDB_FORMAT_0_06, 0, &buf, NULL), 0);
	assert_int_equal(old_lines(buf.data, buf.len, "version 0.06\n"), 1);
	base_buf_release(&buf);
	profdb_profile_free(p);
	profdb_profile_free(q);
}

/* A line of version 0 holds no blanks at its ends: nothing would be left of these. */
static void test_values_of_blanks_alone(void **state)
{
	struct profdb_profile *p = scratch_profile(" ", 1, 1, 1), *q;
	struct base_buf buf = { 0 };

	(void)state;
	assert_int_equal(profdb_profile_set_word(p, "platform", "  "), 0);
	assert_int_equal(profdb_profile_set_word(p, "label", " "), 0);
	assert_int_equal(profdb_profile_format(p, PROFDB_FORMAT_0_07, 0, &buf, NULL), 0);
	assert_int_equal(profdb_profile_parse(buf.data, buf.len, &q, NULL), 0);
	assert_string_equal(profdb_profile_path(q, 0), "?");
	assert_string_equal(profdb_profile_word(q, "platform"), "?");
	assert_string_equal(profdb_profile_word(q, "label"), "?");
	profdb_profile_free(q);
	base_buf_clear(&buf);
	assert_int_equal(profdb_profile_format(p, PROFDB_FORMAT_1, 0, &buf, NULL), 0);
	assert_int_equal(profdb_profile_parse(buf.data, buf.len, &q, NULL), 0);
	assert_string_equal(profdb_profile_path(q, 0), " ");
	assert_string_equal(profdb_profile_word(q, "platform"), "  ");
	base_buf_release(&buf);
	profdb_profile_free(p);
	profdb_profile_free(q);
}

static void test_nothing_is_truncated(void **state)
{
	struct profdb_profile *p;

	(void)state;
	assert_int_equal(profdb_profile_parse(NULL, 0, &p, NULL), -DCPI_ETRUNCATED);
}

static void test_what_does_not_fit_is_an_error(void **state)
{
	struct profdb_profile *p = scratch_profile("/x", 1, 1, UINT32_MAX);
	struct base_err err = { 0 };
	struct base_buf buf = { 0 };

	(void)state;
	assert_int_equal(profdb_profile_format(p, PROFDB_FORMAT_0_07, 0, &buf, NULL), 0);
	assert_int_equal(profdb_profile_format(p, PROFDB_FORMAT_0_07, 1, &buf, NULL), -EINVAL);
	profdb_profile_add(p, 8, 0, 1);
	assert_int_equal(profdb_profile_format(p, PROFDB_FORMAT_0_07, 0, &buf, &err),
			 -DCPI_EOVERFLOW);
	assert_non_null(strstr(err.hint, "64-bit"));
	profdb_profile_clear(p);
	profdb_profile_add(p, UINT64_C(1) << 32, 0, 1);
	assert_int_equal(profdb_profile_format(p, PROFDB_FORMAT_0_07, 0, &buf, NULL),
			 -DCPI_EOVERFLOW);
	base_buf_release(&buf);
	profdb_profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_of_blanks_alone),
		cmocka_unit_test(test_nothing_is_truncated),
		cmocka_unit_test(test_reads_every_version_zero),
		cmocka_unit_test(test_refuses_other_versions),
		cmocka_unit_test(test_keeps_lines_it_does_not_know),
		cmocka_unit_test(test_headers_that_are_refused),
		cmocka_unit_test(test_every_required_line_is_required),
		cmocka_unit_test(test_epochs),
		cmocka_unit_test(test_image_identities),
		cmocka_unit_test(test_bad_binaries),
		cmocka_unit_test(test_no_truncation_passes),
		cmocka_unit_test(test_any_changed_byte_is_survived),
		cmocka_unit_test(test_what_is_written_an_old_reader_reads),
		cmocka_unit_test(test_what_does_not_fit_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
