/* SPDX-License-Identifier: BSD-2-Clause */
/* Servers of all kinds, each a process that answers every request alike. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store_internal.h"

struct server {
	pid_t pid;
	char url[64];
};

struct answer {
	const char *bytes;
	size_t len;
};

/* The requests get these answers, one each; then there is no server any more. */
static void serve_each(int fd, const struct answer *answers, size_t nr)
{
	char request[65536], head[128];

	for (size_t i = 0; i < nr; i++) {
		int c = accept(fd, NULL, NULL);
		int len = snprintf(head, sizeof(head),
				   "HTTP/1.1 200 OK\r\nConnection: close\r\n"
				   "Content-Length: %zu\r\n\r\n",
				   answers[i].len);

		if (c < 0 || read(c, request, sizeof(request)) < 0 ||
		    write(c, head, (size_t)len) < 0 ||
		    write(c, answers[i].bytes, answers[i].len) < 0)
			_exit(1);
		close(c);
	}
	_exit(0);
}

/* Reads a request's head, and as much of its body as comes with it. */
static void serve(int fd, const char *answer, size_t len, bool answers)
{
	char request[65536];

	for (;;) {
		int c = accept(fd, NULL, NULL);

		if (c < 0)
			_exit(1);
		if (read(c, request, sizeof(request)) < 0 || !answers)
			pause();
		if (write(c, answer, len) < 0)
			_exit(1);
		shutdown(c, SHUT_WR);
		while (read(c, request, sizeof(request)) > 0)
			;
		close(c);
	}
}

/* With @answers one each, in turn; else @answer to all, or (@len 0, not @always) none. */
static struct server start_with(const struct answer *answers, size_t nr, const char *answer,
				size_t len, bool always)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t at_len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct server s;

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &at_len), 0);
	s.pid = fork();
	assert_true(s.pid >= 0);
	if (s.pid == 0 && answers)
		serve_each(fd, answers, nr);
	if (s.pid == 0)
		serve(fd, answer, len, always);
	close(fd);
	snprintf(s.url, sizeof(s.url), "clickhouse://127.0.0.1:%u/d", ntohs(at.sin_port));
	return s;
}

static struct server start(const char *answer, size_t len, bool always)
{
	return start_with(NULL, 0, answer, len, always);
}

static void stop(const struct server *s)
{
	assert_int_equal(kill(s->pid, SIGKILL), 0);
	assert_int_equal(waitpid(s->pid, NULL, 0), s->pid);
}

/* Ask, and return store_ask's result; the answer goes into @out where that is not NULL. */
static int ask(const char *answer, size_t len, struct base_buf *out, struct base_err *err)
{
	struct server server = start(answer, len, true);
	struct base_buf none = { 0 };
	struct store_server *s;
	int r;

	assert_int_equal(store_open(server.url, NULL, &s, err), 0);
	r = store_ask(s, "SELECT 1 FORMAT RowBinary", out ? out : &none, err);
	store_close(s);
	base_buf_release(&none);
	stop(&server);
	return r;
}

static void test_good(void **state)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\na\0b\nc";
	struct base_err err = { 0 };
	struct base_buf out = { 0 };

	(void)state;
	if (ask(answer, sizeof(answer) - 1, &out, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(out.len, 5);
	assert_memory_equal(out.data, "a\0b\nc", 5);
	base_buf_release(&out);
}

static int ask_number(const char *answer, size_t len, uint64_t *out)
{
	struct server server = start(answer, len, true);
	struct base_buf sql = { 0 };
	struct store_server *s;
	int r;

	assert_int_equal(store_open(server.url, NULL, &s, NULL), 0);
	assert_int_equal(base_buf_printf(&sql, "SELECT 1"), 0);
	r = store_ask_number(s, &sql, out, NULL);
	assert_int_equal(sql.len, 0);
	base_buf_release(&sql);
	store_close(s);
	stop(&server);
	return r;
}

/* A number of 64 bits is the whole answer. */
static void test_number(void **state)
{
	static const char good[] = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n\2\1\0\0\0\0\0\0";
	static const char more[] = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n\2\1\0\0\0\0\0\0\0";
	static const char less[] = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\2\1\0";
	uint64_t n = 1;

	(void)state;
	assert_int_equal(ask_number(good, sizeof(good) - 1, &n), 0);
	assert_int_equal(n, 258);
	assert_int_equal(ask_number(more, sizeof(more) - 1, &n), -EHOSTUNREACH);
	assert_int_equal(ask_number(less, sizeof(less), &n), -EHOSTUNREACH);
}

static void check(const char *answer, int code, const char *says)
{
	struct base_err err = { 0 };

	assert_int_equal(ask(answer, strlen(answer), NULL, &err), code);
	if (!strstr(err.text, says) && !strstr(err.hint, says))
		fail_msg("'%s' does not say '%s'", err.text, says);
}

#define ERROR(text) "HTTP/1.1 500 Internal Server Error\r\nConnection: close\r\n\r\n" text

static void test_errors(void **state)
{
	(void)state;
	check(ERROR("Code: 516, e.displayText() = DB::Exception: wrong\x1b[2J"), -EACCES,
	      "-credentials");
	check(ERROR("Code: 60, e.displayText() = DB::Exception: no such table"), -ENOENT,
	      "-make-schema");
	check(ERROR("Code: 243, e.displayText() = DB::Exception: disk"), -EAGAIN, "now");
	check(ERROR("Code: 1001, DB::Exception: write: No space left on device"), -EAGAIN, "full");
	check(ERROR("Code: 62, e.displayText() = DB::Exception: syntax"), -EAGAIN, "syntax");
	check(ERROR("Code: 33, e.displayText() = DB::Exception: cut"), -EPROTO, "refuses the rows");
	check("HTTP/1.1 404 Not Found\r\nContent-Length: 6\r\n\r\nnginx\n", -EHOSTUNREACH, "404");
	check("SSH-2.0-OpenSSH_9.2\r\n", -EHOSTUNREACH, "does not answer");
	check("", -EHOSTUNREACH, "does not answer");
	/* An answer that is cut is none. */
	check("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nabc", -EHOSTUNREACH,
	      "does not answer");
	/* Passwords are not told to another server. */
	check("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
	      -EHOSTUNREACH, "302");
}

/* No batch is given up for these: they pass. The last is of no version that is known here. */
static void test_passing_errors(void **state)
{
	static const int codes[] = { 75, 164, 173, 203, 225, 236, 242, 252, 394, 999, 1000, 9999 };
	char answer[256];

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
		snprintf(answer, sizeof(answer), ERROR("Code: %d, DB::Exception: x"), codes[i]);
		check(answer, -EAGAIN, "now");
	}
}

/* Neither escape sequences nor characters that turn the direction of text reach a terminal. */
static void test_no_control_characters(void **state)
{
	static const char answer[] = ERROR("Code: 62, \x1b[2J\xe2\x80\xae");
	struct base_err err = { 0 };

	(void)state;
	assert_int_equal(ask(answer, sizeof(answer) - 1, NULL, &err), -EAGAIN);
	assert_non_null(strstr(err.text, "62"));
	assert_null(strchr(err.text, 0x1b));
	assert_null(strstr(err.text, "\xe2\x80\xae"));
}

static void test_silent(void **state)
{
	struct server server = start("", 0, false);
	struct base_err err = { 0 };
	struct base_buf out = { 0 };
	struct store_server *s;

	(void)state;
	assert_int_equal(store_open(server.url, NULL, &s, &err), 0);
	store_set_timeout(s, 200);
	assert_int_equal(store_ask(s, "SELECT 1", &out, &err), -EHOSTUNREACH);
	assert_non_null(strstr(err.text, "does not answer"));
	store_close(s);
	stop(&server);
}

static void schema(const char *body, size_t len, int code, const char *says)
{
	char answer[256];
	int head = snprintf(answer, sizeof(answer),
			    "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", len);
	struct base_err err = { 0 };
	struct server server;
	struct store_server *s;
	char id[64];

	memcpy(answer + head, body, len);
	server = start(answer, (size_t)head + len, true);
	assert_int_equal(store_open(server.url, NULL, &s, NULL), 0);
	assert_int_equal(store_schema_check(s, id, &err), code);
	if (code < 0)
		assert_non_null(strstr(err.text, says));
	else
		assert_string_equal(id, says);
	store_close(s);
	stop(&server);
}

static void test_schema(void **state)
{
	(void)state;
	schema("\2\0\0\0\4abcd", 9, 0, "abcd");
	schema("\1\0\0\0\4abcd", 9, -DCPI_EVERSION, "version 1");
	schema("\3\0\0\0\4abcd", 9, -DCPI_EVERSION, "version 3");
	schema("\1\0\0\0\4abc", 8, -DCPI_EVERSION, "no store");
	schema("\1\0\0\0\4abcde", 10, -DCPI_EVERSION, "no store");
	schema("", 0, -DCPI_EVERSION, "no store");
}

/* Rows of heads that end in the middle: refused, and not read for ever. */
static void test_cut_heads(void **state)
{
	static const struct answer answers[] = {
		{ "\2\0\0\0\4abcd", 9 },   /* the schema */
		{ "\2\0\0\0\0\0\0\0", 8 }, /* machines */
		{ "\6cycles01234", 12 },   /* heads */
	};
	struct server server = start_with(answers, 3, NULL, 0, false);
	const struct store_want w = { .epoch = "all", .since = INT64_MIN, .until = INT64_MAX };
	struct store_fetched got;
	struct base_err err = { 0 };
	struct store_server *s;

	(void)state;
	assert_int_equal(store_open(server.url, NULL, &s, NULL), 0);
	alarm(20);
	assert_int_equal(store_fetch(s, &w, "/nonexistent/db", &got, &err), -EHOSTUNREACH);
	alarm(0);
	assert_non_null(strstr(err.text, "malformed"));
	store_close(s);
	waitpid(server.pid, NULL, 0);
}

/* A folder with files is refused before a server is asked. */
static void test_not_empty(void **state)
{
	const struct store_want w = { .epoch = "all", .since = INT64_MIN, .until = INT64_MAX };
	struct store_fetched got;
	struct base_err err = { 0 };
	struct store_server *s;

	(void)state;
	assert_int_equal(store_open("clickhouse://127.0.0.1:1/d", NULL, &s, NULL), 0);
	assert_int_equal(store_fetch(s, &w, "/", &got, &err), -ENOTEMPTY);
	assert_int_equal(store_fetch(s, &w, "/nonexistent/db", &got, &err), -EHOSTUNREACH);
	store_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_number),
		cmocka_unit_test(test_passing_errors),
		cmocka_unit_test(test_no_control_characters),
		cmocka_unit_test(test_cut_heads),
		cmocka_unit_test(test_silent),
		cmocka_unit_test(test_schema),
		cmocka_unit_test(test_not_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
