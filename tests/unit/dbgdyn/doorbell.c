/* SPDX-License-Identifier: BSD-2-Clause */
/* How a daemon is reached, and what that leaves behind. */
#include "fake.h"
#include "dbgdyn_internal.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static struct fake fake;
static dbgdyn_context context;

/* ---- a daemon that is killed between two of our calls ---------------------------------------- */

static bool dies_after_connect;

int __real_connect(int fd, const struct sockaddr *to, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t len);

int __wrap_connect(int fd, const struct sockaddr *to, socklen_t len)
{
	int r = __real_connect(fd, to, len);

	if (dies_after_connect)
		fake_die(&fake);
	return r;
}

static int a_daemon_that_dies_takes_nobody_along(void)
{
	signal(SIGPIPE, SIG_DFL);
	dies_after_connect = true;
	fake_open(&fake, FAKE_SOCKET);
	CHECK(dbgdyn_begin("jit", 3, NULL, &context) == DBGDYN_OK);
	CHECK(!dbgdyn_state_get(false)->handed);
	CHECK(dbgdyn_flush(context) == DBGDYN_ENODAEMON);
	fake_close(&fake);
	return 0;
}

/* ---- where it is ----------------------------------------------------------------------------- */

/* A folder of so many bytes in that of the fake, named in the environment. */
static int make_folder(size_t len, char folder[256])
{
	int n = snprintf(folder, 256, "%s/", fake.dir);

	memset(folder + n, 'x', len - (size_t)n);
	folder[len] = '\0';
	CHECK(mkdir(folder, 0700) == 0 && setenv("DCPI_RUN", folder, 1) == 0);
	return 0;
}

static int a_folder_may_be_as_long_as_fits(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	size_t len = sizeof(a.sun_path) - sizeof("/" WIRE_DYN_NAME);
	char folder[256];

	fake_open(&fake, 0);
	CHECK(make_folder(len, folder) == 0);
	memcpy(a.sun_path, folder, len);
	memcpy(a.sun_path + len, "/" WIRE_DYN_NAME, sizeof("/" WIRE_DYN_NAME));
	fake.listen = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK(bind(fake.listen, (void *)&a, sizeof(a)) == 0 && listen(fake.listen, 1) == 0);
	CHECK(dbgdyn_begin("jit", 3, NULL, &context) == DBGDYN_OK);
	CHECK(dbgdyn_state_get(false)->handed && fake_take(&fake));
	CHECK(unlink(a.sun_path) == 0 && rmdir(folder) == 0);
	fake_close(&fake);
	return 0;
}

static int of_a_longer_one_nothing_is_written(void)
{
	size_t len = sizeof(((struct sockaddr_un *)NULL)->sun_path) - sizeof("/" WIRE_DYN_NAME);
	char folder[256];

	for (size_t more = 1; more <= 12; more++) {
		fake_open(&fake, 0);
		CHECK(make_folder(len + more, folder) == 0);
		CHECK(dbgdyn_begin("jit", 3, NULL, &context) == DBGDYN_OK);
		CHECK(!dbgdyn_state_get(false)->handed);
		CHECK(dbgdyn_flush(context) == DBGDYN_ENODAEMON);
		CHECK(rmdir(folder) == 0);
		fake_close(&fake);
	}
	return 0;
}

/* ---- what it leaves behind ------------------------------------------------------------------- */

static int no_descriptor_is_left_open(void)
{
	int nr;

	fake_open(&fake, FAKE_SOCKET | FAKE_QUEUE);
	CHECK(dbgdyn_begin("jit", 3, NULL, &context) == DBGDYN_OK && fake_take(&fake));
	nr = fake_descriptors();
	for (int i = 0; i < 5; i++) {
		CHECK(dbgdyn_begin("jit", 3, NULL, &context) == DBGDYN_OK);
		CHECK(dbgdyn_hand_over(dbgdyn_state_get(false)) == DBGDYN_LIVE);
		CHECK(dbgdyn_doorbell(dbgdyn_state_get(false)));
	}
	CHECK(fake_descriptors() == nr);
	fake_die(&fake);
	CHECK(fake_descriptors() == --nr);
	CHECK(dbgdyn_hand_over(dbgdyn_state_get(false)) == DBGDYN_REFUSED);
	fake_hide(&fake);
	CHECK(dbgdyn_hand_over(dbgdyn_state_get(false)) == DBGDYN_ABSENT);
	CHECK(mq_unlink(fake.queue_name) == 0);
	CHECK(!dbgdyn_doorbell(dbgdyn_state_get(false)));
	CHECK(fake_descriptors() == nr);
	fake_close(&fake);
	return 0;
}

FAKE_TEST(a_daemon_that_dies_takes_nobody_along)
FAKE_TEST(a_folder_may_be_as_long_as_fits)
FAKE_TEST(of_a_longer_one_nothing_is_written)
FAKE_TEST(no_descriptor_is_left_open)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_daemon_that_dies_takes_nobody_along),
		cmocka_unit_test(test_a_folder_may_be_as_long_as_fits),
		cmocka_unit_test(test_of_a_longer_one_nothing_is_written),
		cmocka_unit_test(test_no_descriptor_is_left_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
