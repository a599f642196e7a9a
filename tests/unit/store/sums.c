/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of hours are added up, for a server that gives prepared answers and keeps what it is sent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store_internal.h"

enum { REQUESTS = 16, SIZE = 32768 };

/* What the server shares with the test: its requests, with a 0 behind each. */
struct log {
	size_t nr, len[REQUESTS];
	char text[REQUESTS][SIZE];
};

struct fixture {
	struct base_buf answers[REQUESTS];
	size_t nr;
	struct log *log;
};

static bool is_whole(const char *text, size_t len)
{
	const char *end = memmem(text, len, "\r\n\r\n", 4);
	const char *length = end ? strcasestr(text, "content-length:") : NULL;

	return end &&
	       len >= (size_t)(end + 4 - text) +
			       (length ? strtoul(length + strlen("content-length:"), NULL, 10) : 0);
}

static void serve(int fd, struct fixture *f)
{
	for (size_t i = 0; i < f->nr; i++) {
		int c = accept(fd, NULL, NULL);
		char head[128];
		ssize_t got = 1;
		size_t *len = &f->log->len[i];

		while (got > 0 && !is_whole(f->log->text[i], *len)) {
			got = read(c, f->log->text[i] + *len, SIZE - 1 - *len);
			*len += got > 0 ? (size_t)got : 0;
		}
		f->log->nr++;
		snprintf(head, sizeof(head),
			 "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
			 f->answers[i].len);
		if (write(c, head, strlen(head)) < 0 ||
		    (f->answers[i].len && write(c, f->answers[i].data, f->answers[i].len) < 0))
			_exit(1);
		close(c);
	}
	_exit(0);
}

/* Adds up 24 hours from 1970 on; returns the number of rows. */
static uint64_t sum(struct fixture *f)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t at_len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct store_server *s;
	uint64_t rows = 0;
	char url[64];
	pid_t pid;

	f->log = mmap(NULL, sizeof(*f->log), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert_true(f->log != MAP_FAILED);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &at_len), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		serve(fd, f);
	close(fd);
	snprintf(url, sizeof(url), "clickhouse://127.0.0.1:%u/d", ntohs(at.sin_port));
	assert_int_equal(store_open(url, NULL, &s, NULL), 0);
	assert_int_equal(store_sum(s, 0, 86400, &rows, NULL), 0);
	store_close(s);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(f->log->nr, f->nr);
	return rows;
}

static void release(struct fixture *f)
{
	for (size_t i = 0; i < f->nr; i++)
		base_buf_release(&f->answers[i]);
	munmap(f->log, sizeof(*f->log));
}

/* ---- answers --------------------------------------------------------------------------------- */

static struct base_buf *answer(struct fixture *f)
{
	return &f->answers[f->nr++];
}

static void put_events(struct fixture *f)
{
	store_put_text(answer(f), "cycles");
}

/* Machine "box" has no sums of the six hours from 21600 on; nor of @image, where it is not NULL. */
static void put_missing(struct fixture *f, const uint8_t *image)
{
	struct base_buf *to = answer(f);

	if (image)
		base_buf_append(to, image, STORE_KEY);
	store_put_text(to, "box");
	base_buf_append_le(to, 21600, 4);
}

static void put_list(struct base_buf *to, const uint64_t *v, size_t nr)
{
	base_buf_append_leb128(to, nr);
	for (size_t i = 0; i < nr; i++)
		base_buf_append_le(to, v[i], 8);
}

static void put_row_of(struct base_buf *to, const uint8_t *image, const char *platform,
		       const char *own, uint64_t print, uint64_t samples, const uint64_t (*v)[3])
{
	if (image)
		base_buf_append(to, image, STORE_KEY);
	store_put_text(to, platform);
	store_put_text(to, "night");
	store_put_text(to, own);
	base_buf_append_le(to, print, 8);
	base_buf_append_le(to, samples, 8);
	put_list(to, v[0], 3);
	put_list(to, v[1], 3);
}

static void put_row(struct base_buf *to, const uint8_t *image, const char *own, uint64_t print,
		    uint64_t samples, const uint64_t (*v)[3])
{
	put_row_of(to, image, "box", own, print, samples, v);
}

/* Levels of sums that are asked for, of routines and of offsets. */
enum { ROUTINES = 5, PLACES = 4 };

/* ---- tests ----------------------------------------------------------------------------------- */

/* The row that was sent ends in this. */
static void check_sent(const struct fixture *f, size_t request, const struct base_buf *end)
{
	size_t len = f->log->len[request];

	assert_true(len > end->len);
	assert_memory_equal(f->log->text[request] + len - end->len, end->data, end->len);
}

static void test_routines(void **state)
{
	static const uint64_t first[2][3] = { { 1, 2, 9 }, { 1, 2, 4 } };
	static const uint64_t second[2][3] = { { 2, 7, 3 }, { 10, 1, 30 } }; /* 3 did not fit */
	static const uint64_t numbers[] = { 1, 2, 3, 7, 9 }, counts[] = { 1, 12, 30, 1, 4 };
	struct fixture f = { .nr = 0 };
	struct base_buf *rows, end = { 0 };

	(void)state;
	put_events(&f);
	put_missing(&f, NULL);
	rows = answer(&f);
	put_row(rows, NULL, "21600", UINT64_MAX, 7, first);
	put_row(rows, NULL, "25200", 5, 41, second);
	f.nr += 1 + ROUTINES - 1 + PLACES; /* the insert, and other levels */
	assert_int_equal(sum(&f), 1);
	base_buf_append_le(&end, 4, 8); /* fingerprints wrap around */
	base_buf_append_le(&end, 48, 8);
	put_list(&end, numbers, 5);
	put_list(&end, counts, 5);
	check_sent(&f, 3, &end);
	assert_non_null(strstr(f.log->text[3], "INSERT%20INTO%20sums"));
	assert_null(strstr(f.log->text[2], "FINAL"));
	assert_non_null(strstr(f.log->text[2], "epoch >= toDateTime(21600) AND "
					       "epoch < toDateTime(43200)"));
	base_buf_release(&end);
	release(&f);
}

/* A row that is there twice, as an older one of it is: all are asked for with FINAL. */
static void test_twice(void **state)
{
	static const uint8_t image[STORE_KEY] = "0123456789abcdef";
	static const uint64_t v[2][3] = { { 0x10002, 0x10004, UINT64_C(1) << 40 },
					  { 1, 0x203, 3 } };
	struct store_offsets o = { .nr = 0 };
	struct fixture f = { .nr = 0 };
	struct base_buf *rows, end = { 0 };

	(void)state;
	put_events(&f);
	f.nr += ROUTINES; /* none of these is missing */
	put_missing(&f, image);
	rows = answer(&f);
	put_row(rows, image, "app/21600", 1, 519, v);
	put_row(rows, image, "app/21600", 2, 519, v);
	put_row(answer(&f), image, "app/21600", 2, 519, v);
	f.nr += 1 + PLACES - 1;
	assert_int_equal(sum(&f), 1);
	base_buf_append_le(&end, 2, 8);
	base_buf_append_le(&end, 519, 8);
	for (size_t i = 0; i < 3; i++)
		store_offsets_add(&o, v[0][i], v[1][i]);
	store_offsets_put(&o, &end);
	store_offsets_release(&o);
	check_sent(&f, ROUTINES + 4, &end);
	assert_null(strstr(f.log->text[ROUTINES + 2], "FINAL"));
	assert_non_null(strstr(f.log->text[ROUTINES + 3], "FROM prof FINAL WHERE"));
	base_buf_release(&end);
	release(&f);
}

static void put_fleet_row(struct base_buf *to, uint32_t begin, uint64_t print, uint64_t samples,
			  const uint64_t *numbers, const uint64_t *counts, size_t nr)
{
	store_put_text(to, "cycles");
	base_buf_append_le(to, 3601, 4);
	base_buf_append_le(to, begin, 4);
	store_put_text(to, "");
	store_put_text(to, "night");
	base_buf_append_le(to, UINT64_C(86400) * 1000000000, 8);
	base_buf_append_le(to, print, 8);
	base_buf_append_le(to, samples, 8);
	put_list(to, numbers, nr);
	put_list(to, counts, nr);
}

/* Hours of all machines: the first has so many machines that it is read by two questions. */
static void test_fleet(void **state)
{
	static const uint64_t first[2][3] = { { 1, 2, 9 }, { 1, 2, 4 } };
	static const uint64_t second[2][3] = { { 2, 7, 3 }, { 10, 1, 30 } };
	static const uint64_t numbers[] = { 1, 2, 3, 7, 9 }, counts[] = { 1, 12, 30, 1, 4 };
	struct fixture f = { .nr = 0 };
	struct base_buf end = { 0 }, *missing;

	(void)state;
	put_events(&f);
	f.nr += 2; /* no machine's sums are missing */
	missing = answer(&f);
	for (unsigned int i = 0; i < 201; i++) {
		char name[16];

		snprintf(name, sizeof(name), "m%03u", i);
		store_put_text(missing, name);
		base_buf_append_le(missing, 3600, 4);
	}
	store_put_text(missing, "m000");
	base_buf_append_le(missing, 7200, 4);
	put_row_of(answer(&f), NULL, "m000", "3600", 5, 7, first);
	put_row_of(answer(&f), NULL, "m200", "3600", 6, 41, second);
	put_row_of(answer(&f), NULL, "m000", "7200", 9, 7, first);
	f.nr += 1 + 2 + PLACES;
	assert_int_equal(sum(&f), 2);
	assert_non_null(strstr(f.log->text[3], "platform, b FROM (SELECT platform"));
	assert_null(strstr(f.log->text[4], "'m200'"));
	assert_non_null(strstr(f.log->text[5], "'m200'"));
	put_fleet_row(&end, 3600, 11, 48, numbers, counts, 5);
	put_fleet_row(&end, 7200, 9, 7, first[0], first[1], 3);
	check_sent(&f, 7, &end);
	base_buf_release(&end);
	release(&f);
}

/* Machines of an image that are read by two questions. */
static void test_fleet_image(void **state)
{
	static const uint8_t image[STORE_KEY] = "0123456789abcdef";
	static const uint64_t first[2][3] = { { 1, 2, 9 }, { 1, 2, 4 } };
	static const uint64_t second[2][3] = { { 2, 7, 9 }, { 10, 1, 30 } };
	static const uint64_t places[] = { 1, 2, 7, 9 }, counts[] = { 1, 12, 1, 34 };
	struct store_offsets o = { .nr = 0 };
	struct fixture f = { .nr = 0 };
	struct base_buf end = { 0 }, *missing;

	(void)state;
	put_events(&f);
	f.nr += ROUTINES + 2;
	missing = answer(&f);
	for (unsigned int i = 0; i < 501; i++) {
		char name[16];

		snprintf(name, sizeof(name), "m%03u", i);
		base_buf_append(missing, image, STORE_KEY);
		store_put_text(missing, name);
		base_buf_append_le(missing, 21600, 4);
	}
	put_row_of(answer(&f), image, "m000", "21600", 5, 7, first);
	put_row_of(answer(&f), image, "m500", "21600", 6, 41, second);
	f.nr += 1 + PLACES - 3;
	assert_int_equal(sum(&f), 1);
	base_buf_append_le(&end, 11, 8);
	base_buf_append_le(&end, 48, 8);
	for (size_t i = 0; i < 4; i++)
		store_offsets_add(&o, places[i], counts[i]);
	store_offsets_put(&o, &end);
	store_offsets_release(&o);
	check_sent(&f, ROUTINES + 6, &end);
	assert_non_null(strstr(f.log->text[ROUTINES + 4], "FROM profsums WHERE span = 21600"));
	base_buf_release(&end);
	release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_routines),
		cmocka_unit_test(test_twice),
		cmocka_unit_test(test_fleet),
		cmocka_unit_test(test_fleet_image),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
