/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stand_ins.h"

/* ---- a manager ------------------------------------------------------------------------------- */

static char dir[64], path[80];

static int listen_at(const char *name)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t len = strlen(name);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(addr.sun_path, name, len);
	if (name[0] == '@')
		addr.sun_path[0] = '\0';
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
			 0);
	return fd;
}

/* The next message, or "" where there is none. */
static const char *heard(int fd)
{
	static char text[1024];
	ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

	text[n < 0 ? 0 : n] = '\0';
	return text;
}

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/service-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/notify", dir);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	unsetenv("JOURNAL_STREAM");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

/* ---- what it is told ------------------------------------------------------------------------- */

static void a_life(void **state)
{
	struct base_err err = { 0 };
	int fd = listen_at(path);
	struct service s;

	(void)state;
	setenv("NOTIFY_SOCKET", path, 1);
	assert_int_equal(service_open(&s, &err), 0);
	service_ready(&s, "bpf: tick");
	assert_string_equal(heard(fd), "READY=1\nSTATUS=bpf: tick");
	service_alive(&s, "202611210512", 7); /* no watchdog: nobody wants to know */
	assert_string_equal(heard(fd), "");
	service_stopping(&s);
	assert_string_equal(heard(fd), "STOPPING=1\nSTATUS=flushing");
	base_fail(&err, -ENOSPC, "full");
	service_failed(&s, &err);
	assert_string_equal(heard(fd), "STATUS=full\nERRNO=28");
	err = (struct base_err){ 0 };
	base_fail(&err, -DCPI_ENOTDB, "none");
	service_failed(&s, &err);
	assert_string_equal(heard(fd), "STATUS=none");
	service_close(&s);
	service_stopping(&s);
	assert_string_equal(heard(fd), "");
	close(fd);
}

static void abstract(void **state)
{
	char name[64];
	struct service s;
	int fd;

	(void)state;
	snprintf(name, sizeof(name), "@dcpi-test-%ld", (long)getpid());
	fd = listen_at(name);
	setenv("NOTIFY_SOCKET", name, 1);
	assert_int_equal(service_open(&s, NULL), 0);
	service_ready(&s, "x");
	assert_string_equal(heard(fd), "READY=1\nSTATUS=x");
	service_close(&s);
	close(fd);
}

static void watchdog(void **state)
{
	int fd = listen_at(path);
	struct service s;

	(void)state;
	setenv("NOTIFY_SOCKET", path, 1);
	setenv("WATCHDOG_USEC", "80000000", 1);
	assert_int_equal(service_open(&s, NULL), 0);
	assert_int_equal(s.every_ns, 40000000000);
	service_ready(&s, "x");
	heard(fd);
	service_alive(&s, "202611210512", 7);
	assert_string_equal(heard(fd), "");
	s.next_ns -= s.every_ns; /* so long passes */
	service_alive(&s, "202611210512", 8);
	assert_string_equal(heard(fd), "WATCHDOG=1\nSTATUS=epoch 202611210512, 8 samples stored");
	service_alive(&s, "202611210512", 9);
	assert_string_equal(heard(fd), "");
	service_close(&s);
	/* Another process's watchdog, or none to be read. */
	setenv("WATCHDOG_PID", "1", 1);
	assert_int_equal(service_open(&s, NULL), 0);
	assert_int_equal(s.every_ns, 0);
	service_close(&s);
	unsetenv("WATCHDOG_PID");
	setenv("WATCHDOG_USEC", "99999999999999999999", 1);
	assert_int_equal(service_open(&s, NULL), 0);
	assert_int_equal(s.every_ns, 0);
	service_close(&s);
	close(fd);
}

static void nobody(void **state)
{
	char long_path[300];
	struct service s;

	(void)state;
	assert_int_equal(service_open(&s, NULL), 0);
	service_ready(&s, "x");
	service_close(&s);
	setenv("NOTIFY_SOCKET", path, 1); /* nobody listens there */
	assert_int_equal(service_open(&s, NULL), 0);
	service_ready(&s, "x");
	service_close(&s);
	memset(long_path, 'a', sizeof(long_path) - 1);
	long_path[0] = '/';
	long_path[sizeof(long_path) - 1] = '\0';
	const char *const bad[] = { "relative", "/", "@", "vsock:2:1", long_path };

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct base_err err = { 0 };

		setenv("NOTIFY_SOCKET", bad[i], 1);
		assert_int_equal(service_open(&s, &err), -EINVAL);
		assert_non_null(strstr(err.text, "NOTIFY_SOCKET"));
		service_ready(&s, "x");
		service_close(&s);
	}
}

static void on_journal(void **state)
{
	char stream[64];
	struct stat st;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_false(service_on_journal(ends[1]));
	assert_int_equal(fstat(ends[1], &st), 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	assert_true(service_on_journal(ends[1]));
	assert_false(service_on_journal(-1));
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino + 1);
	setenv("JOURNAL_STREAM", stream, 1);
	assert_false(service_on_journal(ends[1])); /* it was led elsewhere since */
	setenv("JOURNAL_STREAM", "nonsense", 1);
	assert_false(service_on_journal(ends[1]));
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_life, setup, teardown),
		cmocka_unit_test_setup_teardown(abstract, setup, teardown),
		cmocka_unit_test_setup_teardown(watchdog, setup, teardown),
		cmocka_unit_test_setup_teardown(nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(on_journal, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
