/* SPDX-License-Identifier: BSD-2-Clause */
/* The live view without a terminal: sums, order, filters, keys, and the daemon's answers. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "live.h"

enum { SECOND = 1000000000 };

static struct live_sums sums;
static struct live_view view;

/* ---- samples --------------------------------------------------------------------------------- */

static uint32_t image(struct profdb_workloads *w, enum profdb_kind kind, const char *path)
{
	const struct profdb_image_ref ref = { .kind = kind, .path = path };

	return (uint32_t)profdb_workloads_image_add(w, &ref);
}

static uint32_t workload(struct profdb_workloads *w, const char *comm, uint32_t uid, int32_t pid)
{
	const struct profdb_workload k = { .comm = comm,
					   .exe = "",
					   .cgroup = "",
					   .label = "",
					   .thread = comm,
					   .uid = uid,
					   .pid = pid };

	return (uint32_t)profdb_workloads_workload_add(w, &k);
}

static struct profdb_workloads *second_of(uint64_t a, uint64_t b, uint64_t idle)
{
	struct profdb_workloads *w = profdb_workloads_new();
	uint32_t one = image(w, PROFDB_FILE, "/none/one"), two = image(w, PROFDB_FILE, "/none/two");
	uint32_t no = image(w, PROFDB_NAMED, "idle");
	uint32_t ann = workload(w, "ann", 7, 70), bob = workload(w, "bob", 8, 80);
	uint32_t nobody = workload(w, "(idle)", UINT32_MAX, 0);

	assert_int_equal(profdb_workloads_event_add(w, "cpu-clock", 1000000), 0);
	assert_int_equal(profdb_workloads_add(w, ann, one, 16, 0, 1, a), 0);
	assert_int_equal(profdb_workloads_add(w, bob, two, 32, 0, 1, b), 0);
	assert_int_equal(profdb_workloads_add(w, nobody, no, 0, 0, 1, idle), 0);
	return w;
}

static void tell(uint64_t a, uint64_t b, uint64_t idle)
{
	live_sums_add(&sums, second_of(a, b, idle), SECOND);
	assert_int_equal(live_view_samples(&view, "10:00:00"), 0);
}

static int setup(void **state)
{
	(void)state;
	sums = (struct live_sums){ 0 };
	workload_filter_init(&sums.filter);
	assert_int_equal(analysis_open_empty(NULL, NULL, 0, &sums.a, NULL), 0);
	live_view_init(&view, &sums);
	view.all = true;
	view.query.by = LIVE_IMAGES;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	live_view_release(&view);
	live_sums_release(&sums);
	analysis_close(sums.a);
	return 0;
}

/* Its samples are listed: it is there, even where all calls of it are inlined. */
__attribute__((used)) static void press(const char *keys)
{
	for (; *keys; keys++)
		assert_int_equal(live_view_key(&view, *keys), 0);
}

static void expect_row(size_t i, const char *name, uint64_t count)
{
	assert_true(i < view.rows.nr);
	assert_string_equal(view.rows.v[i].name, name);
	assert_int_equal(view.rows.v[i].count, count);
}

static void expect_line(unsigned int y, const char *text)
{
	char line[1000];

	live_view_line(&view, y, line, sizeof(line));
	if (!strstr(line, text))
		fail_msg("line %u is '%s', not '%s'", y, line, text);
}

/* ---- sums ------------------------------------------------------------------------------------ */

static void test_sums(void **state)
{
	(void)state;
	tell(30, 10, 60);
	expect_row(0, "/none/one", 30);
	expect_row(1, "/none/two", 10);
	assert_int_equal(view.rows.nr, 2);
	assert_int_equal(view.rows.total, 40);
	assert_int_equal(view.rows.all, 40);
	assert_int_equal(view.rows.idle, 60);
	tell(0, 50, 0);
	expect_row(0, "/none/two", 60);
	expect_row(1, "/none/one", 30);
	assert_int_equal(view.ns, 2ull * SECOND);
	press("z");
	assert_int_equal(view.rows.total, 150);
	assert_int_equal(view.rows.nr, 3);
}

/* Five seconds are shown at first; one, fifteen, sixty by key. */
static void test_windows(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < LIVE_NR_SECONDS + 5; i++)
		tell(i, 1, 0);
	assert_int_equal(view.ns, 5ull * SECOND);
	expect_row(1, "/none/two", 5);
	press("-");
	expect_row(1, "/none/two", 1);
	press("-");
	expect_row(1, "/none/two", 1);
	press("++");
	expect_row(1, "/none/two", 15);
	press("++");
	expect_row(1, "/none/two", 60);
	assert_int_equal(sums.nr, LIVE_NR_SECONDS);
}

static void test_frozen(void **state)
{
	(void)state;
	live_view_resize(&view, 60, 20);
	tell(30, 10, 5);
	press(" ");
	tell(100, 10, 5);
	expect_row(0, "/none/one", 30);
	expect_line(0, "FROZEN");
	/* What is frozen can be looked at from other sides. */
	press("w");
	expect_row(0, "ann", 30);
	press("i ");
	expect_row(0, "/none/one", 130);
}

static void test_workloads(void **state)
{
	(void)state;
	tell(30, 10, 5);
	press("w");
	expect_row(0, "ann", 30);
	expect_row(1, "bob", 10);
	expect_line(1, "workloads by comm");
	press("ww");
	expect_row(0, "70 ann", 30);
	press("w");
	expect_row(0, "7", 30);
	press("W");
	expect_row(0, "70 ann", 30);
	for (int i = 0; i < WORKLOAD_NR_KEYS; i++)
		press("w");
	expect_row(0, "70 ann", 30);
}

static void test_filter_of_workloads(void **state)
{
	const char *globs[] = { "b*" };

	(void)state;
	sums.filter.globs[WORKLOAD_COMM] = globs;
	sums.filter.nr[WORKLOAD_COMM] = 1;
	tell(30, 10, 0);
	assert_int_equal(view.rows.nr, 1);
	expect_row(0, "/none/two", 10);
	assert_int_equal(view.rows.total, 10);
	assert_int_equal(view.rows.all, 40);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void test_text(void **state)
{
	(void)state;
	tell(30, 10, 0);
	press("/TWp");
	assert_int_equal(view.rows.nr, 0);
	live_view_key(&view, LIVE_BACK);
	assert_int_equal(view.rows.nr, 1);
	expect_row(0, "/none/two", 10);
	expect_line(23, "only rows with: TW_");
	/* Percentages stay those of all. */
	expect_line(3, "25.00%");
	live_view_key(&view, LIVE_ENTER);
	assert_false(view.prompting);
	assert_int_equal(view.rows.nr, 1);
	live_view_key(&view, LIVE_BACK);
	assert_int_equal(view.rows.nr, 2);
	for (int i = 0; i < 200; i++)
		press(i ? "x" : "/");
	assert_true(strlen(view.text) < sizeof(view.text));
}

static void test_order(void **state)
{
	(void)state;
	tell(10, 30, 0);
	expect_row(0, "/none/two", 30);
	press("s");
	expect_row(0, "/none/one", 10);
	expect_line(1, "sorted by name");
	press("r");
	expect_row(0, "/none/two", 30);
	press("rs");
	expect_row(0, "/none/two", 30);
	press("sr");
	expect_row(0, "/none/one", 10);
}

/* A chosen row is followed; the first place is not. */
static void test_cursor(void **state)
{
	(void)state;
	tell(30, 10, 0);
	tell(0, 90, 0);
	assert_int_equal(view.selected, 0);
	expect_row(0, "/none/two", 100);
	press("j");
	assert_int_equal(view.selected, 1);
	tell(500, 0, 0);
	assert_string_equal(view.rows.v[0].name, "/none/one");
	assert_int_equal(view.selected, 0);
	press("G");
	assert_int_equal(view.selected, 1);
	press("jjj");
	assert_int_equal(view.selected, 1);
	live_view_key(&view, LIVE_PAGE_UP);
	assert_int_equal(view.selected, 0);
	live_view_key(&view, LIVE_UP);
	live_view_key(&view, LIVE_PAGE_DOWN);
	assert_int_equal(view.selected, 1);
	press("gk");
	assert_int_equal(view.selected, 0);
}

static void test_into(void **state)
{
	(void)state;
	tell(30, 10, 0);
	live_view_key(&view, LIVE_ENTER);
	assert_int_equal(view.query.by, LIVE_PROCEDURES);
	assert_int_equal(view.rows.nr, 1);
	expect_row(0, "(image missing)", 30);
	expect_line(1, "of one");
	/* There is no code: the key does nothing. */
	live_view_key(&view, LIVE_ENTER);
	assert_int_equal(view.page, LIVE_ROWS);
	live_view_key(&view, LIVE_BACK);
	assert_int_equal(view.query.by, LIVE_IMAGES);
	press("wj");
	live_view_key(&view, LIVE_ENTER);
	expect_line(1, "of comm 'bob'");
	expect_row(0, "(image missing)", 10);
	assert_string_equal(view.rows.v[0].image, "/none/two");
	press("i");
	expect_row(0, "/none/two", 10);
	live_view_key(&view, LIVE_BACK);
	assert_int_equal(view.query.by, LIVE_WORKLOADS);
	assert_int_equal(view.rows.nr, 2);
}

static void test_help_and_end(void **state)
{
	(void)state;
	tell(30, 10, 0);
	press("h");
	expect_line(3, "procedures; images");
	press("q");
	assert_false(view.quit);
	expect_line(3, "/none/one");
	press("q");
	assert_true(view.quit);
}

/* A key longer than a line of the screen chooses its samples. */
static void test_into_long(void **state)
{
	struct profdb_workloads *w = second_of(3, 4, 0);
	char exe[3001] = "/";
	struct profdb_workload k = {
		.comm = "eve", .exe = exe, .cgroup = "", .label = "", .thread = "eve", .pid = 90
	};

	(void)state;
	memset(exe + 1, 'x', sizeof(exe) - 2);
	assert_int_equal(profdb_workloads_add(w, (uint32_t)profdb_workloads_workload_add(w, &k),
					      image(w, PROFDB_FILE, "/none/one"), 16, 0, 1, 50),
			 0);
	live_sums_add(&sums, w, SECOND);
	live_view_samples(&view, "10:00:00");
	press("ww");
	assert_int_equal(view.rows.v[0].count, 50);
	live_view_key(&view, LIVE_ENTER);
	assert_int_equal(view.rows.nr, 1);
	expect_row(0, "(image missing)", 50);
}

/* Wide characters have two columns, marks none. */
static void test_cut(void **state)
{
	static const char wide[] = "\xe6\xbc\xa2";
	char text[64];

	(void)state;
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		skip();
	snprintf(text, sizeof(text), "a%s%s", wide, wide);
	live_text_cut(text, 4);
	assert_string_equal(text, "a\xe6\xbc\xa2");
	snprintf(text, sizeof(text), "ae\xcc\x81z");
	live_text_cut(text, 2);
	assert_string_equal(text, "ae\xcc\x81");
	setlocale(LC_CTYPE, "C");
	live_text_cut(text, 0);
	assert_string_equal(text, "");
}

/* ---- a listing ------------------------------------------------------------------------------- */

/* Samples at the start of a function of this program. */
static struct profdb_workloads *samples_here(const char *function, uint64_t n)
{
	char path[4096] = "";
	struct profdb_image_ref ref = { .kind = PROFDB_FILE, .path = path };
	struct profdb_workloads *w = profdb_workloads_new();
	const struct image_symbol *symbol;
	struct image *img;
	uint64_t off;
	size_t pos = 0;
	int at;

	assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	assert_int_equal(image_identify(AT_FDCWD, path, &ref.id, NULL), 0);
	assert_int_equal(image_open_path(path, IMAGE_FILE, &img, NULL), 0);
	symbol = image_symbol_find(img, function, &pos);
	assert_non_null(symbol);
	assert_int_equal(image_off(img, symbol->vaddr, &off), 0);
	image_close(img);
	at = profdb_workloads_image_add(w, &ref);
	assert_int_equal(profdb_workloads_event_add(w, "cpu-clock", 1000000), 0);
	workload(w, "ann", 7, 70);
	assert_int_equal(profdb_workloads_add(w, 0, (uint32_t)at, off, 0, 1, n), 0);
	return w;
}

static void test_listing(void **state)
{
	(void)state;
	view.query.by = LIVE_PROCEDURES;
	live_sums_add(&sums, samples_here("press", 30), SECOND);
	live_sums_add(&sums, samples_here("expect_row", 10), SECOND);
	live_view_samples(&view, "10:00:00");
	expect_row(0, "press", 30);
	expect_row(1, "expect_row", 10);
	live_view_key(&view, LIVE_ENTER);
	assert_int_equal(view.page, LIVE_LISTING);
	expect_line(1, "75.0% of all, 30 samples: press in ");
	expect_line(2, "instruction");
	expect_line(3, "100.00%");
	assert_int_equal(view.line, 0);
	press("jG");
	assert_true(view.line > 1);
	live_sums_add(&sums, samples_here("press", 12), SECOND);
	live_view_samples(&view, "10:00:01");
	press("g");
	expect_line(1, "80.8% of all, 42 samples: press in ");
	live_view_resize(&view, 200, 60);
	expect_line(3, "live.c:");
	press(" ");
	live_view_key(&view, LIVE_BACK);
	expect_row(0, "press", 42);
}

/* The daemon told no path: own processes have the file mapped. */
static void test_untold_path(void **state)
{
	struct profdb_workloads *told = samples_here("press", 5), *w = profdb_workloads_new();
	struct profdb_image_ref ref = *profdb_workloads_image(told, 0);
	uint64_t off = profdb_workloads_count(told, 0).off;
	const char *name = strrchr(ref.path, '/') + 1;

	(void)state;
	ref.path = LIVE_UNTOLD;
	profdb_workloads_image_add(w, &ref);
	profdb_workloads_event_add(w, "cpu-clock", 1000000);
	workload(w, "own", 7, getpid());
	profdb_workloads_add(w, 0, 0, off, 0, 1, 5);
	live_sums_add(&sums, w, SECOND);
	live_view_samples(&view, "10:00:00");
	assert_string_equal(base_path_name(view.rows.v[0].name), name);
	press("p");
	expect_row(0, "press", 5);
	profdb_workloads_free(told);
}

static size_t nr_files(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* An image that no kept answer has is closed, and opened again when it comes again. */
static void test_closed(void **state)
{
	size_t before = nr_files();

	(void)state;
	view.query.by = LIVE_PROCEDURES;
	live_sums_add(&sums, samples_here("press", 30), SECOND);
	live_view_samples(&view, "10:00:00");
	expect_row(0, "press", 30);
	assert_true(nr_files() > before);
	for (int i = 0; i < 2 * LIVE_NR_SECONDS; i++)
		tell(1, 1, 0);
	assert_int_equal(nr_files(), before);
	live_sums_add(&sums, samples_here("press", 30), SECOND);
	live_view_samples(&view, "10:00:00");
	expect_row(0, "press", 30);
}

/* Without samples, and on screens of any size, whatever key is pressed. */
static void test_sizes(void **state)
{
	static const char keys[] = "piwWsrze+-/x jkgGh?\n";
	char line[1000];

	(void)state;
	for (unsigned int width = 1; width < 220; width += 13) {
		for (unsigned int height = 1; height < 70; height += 7) {
			live_view_resize(&view, width, height);
			live_view_key(&view, keys[(width + height) % (sizeof(keys) - 1)]);
			live_view_key(&view, LIVE_UP + (int)(width + height) % 8);
			for (unsigned int y = 0; y < height; y++) {
				live_view_line(&view, y, line, sizeof(line));
				assert_true(base_text_width(line) <= width);
			}
		}
		tell(width, 3, 1);
	}
}

/* ---- the daemon's answers -------------------------------------------------------------------- */

static void test_heads(void **state)
{
	struct live_head h;
	struct base_err err = { 0 };

	(void)state;
	assert_int_equal(
		live_head_parse("{\"ok\":true,\"ns\":5,\"all\":true,\"bytes\":0}", &h, &err), 0);
	assert_true(h.all && h.ns == 5 && !h.bytes);
	assert_int_equal(live_head_parse("{\"ok\":false,\"error\":\"no\"}", &h, &err), -EPERM);
	assert_string_equal(err.text, "no");
	err = (struct base_err){ 0 };
	assert_int_equal(live_head_parse("{\"ok\":true,\"ns\":5,\"bytes\":-1}", &h, &err),
			 -DCPI_EFORMAT);
	err = (struct base_err){ 0 };
	assert_int_equal(live_head_parse("{\"ok\":true,\"ns\":5,\"bytes\":99999999999}", &h, &err),
			 -DCPI_EFORMAT);
	err = (struct base_err){ 0 };
	assert_int_equal(live_head_parse("nonsense", &h, &err), -DCPI_EFORMAT);
}

/* The last question is never so soon after another that the daemon does not drain. */
static void test_next_question(void **state)
{
	const uint64_t ms = 1000000;

	(void)state;
	assert_int_equal(live_feed_next_ns(0, 5000 * ms), LIVE_ASK_MS * ms);
	assert_int_equal(live_feed_next_ns(0, 1000 * ms), 1000 * ms);
	for (uint64_t end = 1; end < 8000; end += 50)
		for (uint64_t at = 0, next; at < end * ms; at = next) {
			next = live_feed_next_ns(at, end * ms);
			assert_true(next <= end * ms);
			assert_true(!at || next - at >= 400 * ms);
		}
}

/* An answer that comes byte by byte is one, and the next follows it. */
static void test_pieces(void **state)
{
	struct profdb_workloads *w = second_of(3, 4, 5), *got = NULL;
	struct live_feed f = { 0 };
	struct base_buf file = { 0 }, all = { 0 };
	struct base_err err = { 0 };
	int fds[2];

	(void)state;
	assert_int_equal(profdb_workloads_format(w, &file, &err), 0);
	base_buf_printf(&all, "{\"ok\":true,\"ns\":7,\"all\":false,\"bytes\":%zu}\n", file.len);
	base_buf_append(&all, file.data, file.len);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	f.fd = fds[0];
	for (size_t i = 0; i < all.len; i++) {
		assert_int_equal(send(fds[1], all.data + i, 1, 0), 1);
		assert_int_equal(live_feed_read(&f, &got, &err), i + 1 == all.len);
	}
	assert_non_null(got);
	assert_int_equal(f.head.ns, 7);
	assert_int_equal(profdb_workloads_nr_counts(got), 3);
	close(fds[1]);
	profdb_workloads_free(got);
	assert_int_equal(live_feed_read(&f, &got, &err), -DCPI_ENODAEMON);
	live_feed_close(&f);
	profdb_workloads_free(w);
	base_buf_release(&file);
	base_buf_release(&all);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_sums),
		T(test_windows),
		T(test_frozen),
		T(test_workloads),
		T(test_text),
		T(test_filter_of_workloads),
		T(test_order),
		T(test_cursor),
		T(test_into),
		T(test_help_and_end),
		T(test_sizes),
		T(test_into_long),
		T(test_cut),
		T(test_closed),
		cmocka_unit_test(test_next_question),
		cmocka_unit_test(test_heads),
		cmocka_unit_test(test_pieces),
		T(test_listing),
		T(test_untold_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
