/* SPDX-License-Identifier: BSD-2-Clause */
/* What clients send may take long to close: nobody waits for it, and nothing stays open. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base.h"
#include "closer.h"
#include "fake_registry.h"
#include "lingering.h"

static struct sockaddr_in at;
static int listener, pair[2];

static int setup(void **state)
{
	(void)state;
	listener = lingering_listener(&at);
	assert_true(listener >= 0);
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
}

static int teardown(void **state)
{
	(void)state;
	close(listener);
	close(pair[0]);
	close(pair[1]);
	return 0;
}

/* False: not within half a minute. */
static bool are_closed(unsigned int before)
{
	for (int i = 0; i < 30000 && fake_nr_descriptors() > before; i++)
		usleep(1000);
	return fake_nr_descriptors() <= before;
}

/* From a process that has ended. */
static void send_lingering(int sock, int nr)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(lingering_send(sock, "x", 1, &at, nr) != 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void what_lingers_is_closed(void **state)
{
	unsigned int before = fake_nr_descriptors();
	uint64_t since_ns = base_now_ns();

	(void)state;
	for (int i = 0; i < 40; i++)
		closer_close_sent(lingering_socket(&at), 1000);
	/* A crowd of them is no reason to refuse its user; that they last for long would be one. */
	assert_true(!closer_is_held(1000) || base_now_ns() - since_ns > 1000000000);
	assert_true(are_closed(before));
	assert_false(closer_is_held(1000));
}

/* With more descriptors than a receiver expects: none is dropped while it waits. */
static void messages_are_received_at_once(void **state)
{
	unsigned int before = fake_nr_descriptors();
	uint64_t since_ns = base_now_ns();
	char byte;

	(void)state;
	send_lingering(pair[0], LINGERING_MAX);
	assert_int_equal(closer_recv(pair[1], &byte, 1, 1000), 1);
	assert_true(base_now_ns() - since_ns < 60 * 1000000000ull);
	assert_true(are_closed(before));
}

/* Those lie unread in a connection that is closed. */
static void connections_are_closed(void **state)
{
	unsigned int before = fake_nr_descriptors();

	(void)state;
	for (int i = 0; i < 40; i++) {
		int ends[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
		send_lingering(ends[0], 4);
		closer_close(ends[1]);
		close(ends[0]);
	}
	assert_true(are_closed(before));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_lingers_is_closed, setup, teardown),
		cmocka_unit_test_setup_teardown(messages_are_received_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(connections_are_closed, setup, teardown),
	};

	base_log_init(stderr, BASE_LOG_ERROR, BASE_LOG_BARE);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
