/* SPDX-License-Identifier: BSD-2-Clause */
/* A daemon that listens and does not answer, as one that is stopped. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "control.h"
#include "wire.h"

struct silent {
	char dir[64], path[128];
	int fd;
};

static void silent_begin(struct silent *s)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	strcpy(s->dir, "/tmp/dcpi-control-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	snprintf(s->path, sizeof(s->path), "%s/%s", s->dir, WIRE_CONTROL_NAME);
	strcpy(addr.sun_path, s->path);
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(s->fd >= 0);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(s->fd, 1), 0);
}

static void silent_end(struct silent *s)
{
	close(s->fd);
	unlink(s->path);
	rmdir(s->dir);
}

static int ask(const struct silent *s, const struct control_wait *wait, const char *cmd,
	       struct base_err *err)
{
	struct json_object *request = json_object_new_object(), *answer = NULL;
	struct base_buf text = { 0 };
	int r;

	*err = (struct base_err){ 0 };
	json_object_object_add(request, "cmd", json_object_new_string(cmd));
	r = control_ask(s->dir, wait, request, &text, &answer, err);
	json_object_put(request);
	json_object_put(answer);
	base_buf_release(&text);
	return r;
}

static void test_gives_up(void **state)
{
	const struct control_wait wait = {
		.name = "test", .notice_ms = 1, .limit_ms = 1, .gives_up = true
	};
	struct base_err err = { 0 };
	struct silent s;
	char pid[32];

	(void)state;
	silent_begin(&s);
	assert_int_equal(ask(&s, &wait, "status", &err), -ETIMEDOUT);
	snprintf(pid, sizeof(pid), "process %ld,", (long)getpid());
	assert_non_null(strstr(err.text, pid));
	assert_non_null(strstr(err.hint, "kill -CONT"));
	silent_end(&s);
}

/* What others have asked fills the queue: whoever comes then gives up, whatever he wants. */
static void test_full_queue(void **state)
{
	const struct control_wait asks = {
		.name = "test", .notice_ms = 1, .limit_ms = 1, .gives_up = true
	};
	const struct control_wait waits = { .name = "test", .notice_ms = 1, .limit_ms = 1 };
	struct base_err err = { 0 };
	struct silent s;

	(void)state;
	silent_begin(&s);
	/* The kernel keeps those who left until they are accepted. */
	for (int i = 0; i < 10 && !strstr(err.text, "no more connections"); i++)
		assert_int_equal(ask(&s, &asks, "status", &err), -ETIMEDOUT);
	assert_int_equal(ask(&s, &waits, "flush", &err), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "no more connections"));
	silent_end(&s);
}

/* One that must wait does so, beyond the limit, and takes the answer. */
static void test_waits(void **state)
{
	const struct control_wait wait = { .name = "test", .notice_ms = 1, .limit_ms = 1 };
	static const char answer[] = "{\"ok\": true}\n";
	struct base_err err = { 0 };
	struct silent s;
	int status, fd;
	char byte;
	pid_t pid;

	(void)state;
	silent_begin(&s);
	pid = fork();
	if (pid == 0)
		_exit(ask(&s, &wait, "flush", &err) == 0 ? 0 : 1);
	fd = accept(s.fd, NULL, NULL);
	assert_true(fd >= 0);
	assert_int_equal(recv(fd, &byte, 1, 0), 1);
	usleep(50000);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	assert_int_equal(send(fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL), sizeof(answer) - 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(fd);
	silent_end(&s);
}

/* What it was asked is done when an answer begins: nobody waits without limit for the rest. */
static void test_half_an_answer(void **state)
{
	const struct control_wait wait = { .name = "test", .notice_ms = 60000, .limit_ms = 1 };
	struct base_err err = { 0 };
	struct silent s;
	char byte;
	pid_t pid;
	int fd;

	(void)state;
	silent_begin(&s);
	pid = fork();
	if (pid == 0) {
		fd = accept(s.fd, NULL, NULL);
		if (recv(fd, &byte, 1, 0) == 1 && send(fd, "{", 1, MSG_NOSIGNAL) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(ask(&s, &wait, "flush", &err), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "middle of its answer"));
	assert_non_null(strstr(err.hint, "kill -CONT"));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	silent_end(&s);
}

/*
 * The answer of one that cannot serve comes before it is asked, and its end is closed: a request
 * that no socket's buffer holds is not sent by then.
 */
static void test_turned_away(void **state)
{
	const struct control_wait wait = { .name = "test", .notice_ms = 60000, .limit_ms = 60000 };
	static const char answer[] = "{\"ok\":false,\"error\":\"no place\",\"hint\":\"later\"}\n";
	const size_t len = sizeof(answer) - 1, cmd_len = 16 << 20;
	char *cmd = malloc(cmd_len + 1);
	struct base_err err = { 0 };
	struct silent s;
	int status, fd;
	pid_t pid;

	(void)state;
	assert_non_null(cmd);
	memset(cmd, 'x', cmd_len);
	cmd[cmd_len] = '\0';
	silent_begin(&s);
	pid = fork();
	if (pid == 0) {
		fd = accept(s.fd, NULL, NULL);
		_exit(send(fd, answer, len, MSG_NOSIGNAL) == (ssize_t)len ? 0 : 1);
	}
	assert_true(ask(&s, &wait, cmd, &err) < 0);
	assert_string_equal(err.text, "no place");
	assert_string_equal(err.hint, "later");
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	silent_end(&s);
	free(cmd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gives_up),    cmocka_unit_test(test_full_queue),
		cmocka_unit_test(test_waits),	    cmocka_unit_test(test_half_an_answer),
		cmocka_unit_test(test_turned_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
