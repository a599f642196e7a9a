/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake.h"
#include "dbgdyn_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static struct fake fake;
static dbgdyn_context context;
static const char code[16];

static int begin(int parts, uint32_t timeout_ms)
{
	struct dbgdyn_options o = { .size = sizeof(o), .timeout_ms = timeout_ms };

	fake_open(&fake, parts);
	CHECK(dbgdyn_begin("jit", 3, &o, &context) == DBGDYN_OK);
	return 0;
}

static void nap_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

/* Answer the first request @ms after it came. */
static void answer_after(long ms, int32_t status)
{
	struct wire_registry reg;

	do {
		nap_ms(1);
		fake_header(&fake, &reg);
	} while (!reg.flush_wanted);
	nap_ms(ms);
	fake_answer(&fake, status);
}

/* A daemon that attaches at once and answers the first request after a while. */
static void *answer_soon(void *status)
{
	fake_attach(&fake, 1);
	answer_after(20, (int32_t)(intptr_t)status);
	return NULL;
}

static int flush_against(int status, int *result, double *seconds)
{
	pthread_t daemon;

	CHECK(begin(FAKE_SOCKET | FAKE_QUEUE, 5000) == 0 && fake_take(&fake));
	CHECK(!pthread_create(&daemon, NULL, answer_soon, (void *)(intptr_t)status));
	*seconds = -fake_seconds();
	*result = dbgdyn_flush(context);
	*seconds += fake_seconds();
	pthread_join(daemon, NULL);
	return 0;
}

static int flush_waits_for_the_answer(void)
{
	double seconds;
	int r;

	CHECK(flush_against(0, &r, &seconds) == 0 && r == DBGDYN_OK && seconds > 0.019);
	CHECK(fake_bells(&fake) == 2); /* begin's and flush's */
	fake_close(&fake);
	return 0;
}

static int a_failed_write_is_said(void)
{
	double seconds;
	int r;

	CHECK(flush_against(-ENOSPC, &r, &seconds) == 0 && r == DBGDYN_EIO);
	fake_close(&fake);
	return 0;
}

static int end_closes_whatever_the_result(void)
{
	struct dbgdyn_routine r = fake_routine("f", code, sizeof(code));
	struct wire_registry reg;
	struct wire_facility fac;
	dbgdyn_context other;

	CHECK(begin(FAKE_SOCKET, 30) == 0 && fake_take(&fake));
	CHECK(dbgdyn_begin("other", 5, NULL, &other) == DBGDYN_OK);
	CHECK(dbgdyn_flush(context) == DBGDYN_ETIMEDOUT);
	CHECK(dbgdyn_end(context) == DBGDYN_ETIMEDOUT);
	fake_header(&fake, &reg);
	CHECK(pread(fake.fd, &fac, sizeof(fac), (off_t)reg.facilities_off) == sizeof(fac));
	CHECK(fac.state == WIRE_FACILITY_ENDED && fac.end_wanted == 2 && reg.flush_wanted == 2);
	CHECK(dbgdyn_end(context) == DBGDYN_EREFUSED && dbgdyn_flush(context) == DBGDYN_EREFUSED);
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_EREFUSED);
	CHECK(dbgdyn_add(context, DBGDYN_CODE, code, 1) == DBGDYN_EREFUSED);
	CHECK(dbgdyn_register(other, &r, NULL) == DBGDYN_OK);
	CHECK(dbgdyn_begin("jit", 3, NULL, &other) == DBGDYN_OK && other.id != context.id);
	fake_close(&fake);
	return 0;
}

static void *register_late(void *result)
{
	struct dbgdyn_routine r = fake_routine("f", code, sizeof(code));

	*(int *)result = dbgdyn_register(context, &r, NULL);
	return NULL;
}

/* The context is ended while a call waits for the lock. */
static int an_end_meanwhile_refuses(void)
{
	int result = DBGDYN_OK;
	struct dbgdyn_state *s;
	pthread_t thread;

	CHECK(begin(0, 0) == 0);
	s = dbgdyn_state_get(false);
	CHECK(dbgdyn_lock(s));
	CHECK(!pthread_create(&thread, NULL, register_late, &result));
	nap_ms(20);
	CHECK(dbgdyn_end(context) == DBGDYN_ETIMEDOUT);
	dbgdyn_unlock(s);
	pthread_join(thread, NULL);
	CHECK(result == DBGDYN_EREFUSED && s->reg->head == 0 && s->reg->nr_dropped == 0);
	CHECK(dbgdyn_lock(s)); /* nobody is held up */
	fake_close(&fake);
	return 0;
}

/* Numbers of requests begin again, at 1: an answer of before is none to those. */
static int numbers_of_requests_wrap(void)
{
	struct wire_registry reg;

	CHECK(begin(FAKE_SOCKET, 20) == 0 && fake_take(&fake));
	dbgdyn_state_get(false)->flush_wanted = UINT32_MAX - 1;
	CHECK(dbgdyn_flush(context) == DBGDYN_ETIMEDOUT);
	fake_answer(&fake, 0);
	CHECK(dbgdyn_flush(context) == DBGDYN_ETIMEDOUT);
	fake_header(&fake, &reg);
	CHECK(reg.flush_done == UINT32_MAX && reg.flush_wanted == 1);
	fake_close(&fake);
	return 0;
}

static int each_facility_has_its_own_limit(void)
{
	struct dbgdyn_options o = { .size = sizeof(o), .timeout_ms = 20 };
	dbgdyn_context hasty;

	CHECK(begin(FAKE_SOCKET, 100000) == 0 && fake_take(&fake));
	CHECK(dbgdyn_begin("hasty", 5, &o, &hasty) == DBGDYN_OK);
	CHECK(dbgdyn_flush(hasty) == DBGDYN_ETIMEDOUT);
	fake_close(&fake);
	return 0;
}

static int without_a_daemon_it_says_so(void)
{
	double seconds;

	CHECK(begin(0, 0) == 0);
	seconds = -fake_seconds();
	CHECK(dbgdyn_flush(context) == DBGDYN_ENODAEMON && dbgdyn_end(context) == DBGDYN_ENODAEMON);
	CHECK(seconds + fake_seconds() < 5);
	fake_close(&fake);
	return 0;
}

/* A daemon that was killed leaves its socket's file, its queue, and `attached` set. */
static int a_killed_daemon_is_found_out(void)
{
	double seconds;

	CHECK(begin(FAKE_SOCKET | FAKE_QUEUE, 0) == 0 && fake_take(&fake));
	fake_attach(&fake, 1);
	fake_die(&fake);
	seconds = -fake_seconds();
	CHECK(dbgdyn_end(context) == DBGDYN_ENODAEMON);
	CHECK(seconds + fake_seconds() < 5);
	fake_close(&fake);
	return 0;
}

/* It was killed and its folder removed, or never to be seen from here: nobody meets the request. */
static int a_killed_daemon_out_of_sight_is_found_out(void)
{
	CHECK(begin(FAKE_SOCKET, 20000) == 0 && fake_take(&fake));
	fake_attach(&fake, 1);
	fake_die(&fake);
	fake_hide(&fake);
	CHECK(dbgdyn_flush(context) == DBGDYN_ENODAEMON);
	fake_close(&fake);
	return 0;
}

static void *answer_late(void *unused)
{
	answer_after(DBGDYN_SEEN_MS + 200, 0);
	return unused;
}

/* One that is out of sight and has met the request is waited for. */
static int a_slow_daemon_out_of_sight_is_waited_for(void)
{
	pthread_t daemon;

	CHECK(begin(FAKE_SOCKET, 60000) == 0 && fake_take(&fake));
	fake_attach(&fake, 1);
	fake_hide(&fake);
	/* The number of the request to come. */
	fake_see(&fake, 1);
	CHECK(!pthread_create(&daemon, NULL, answer_late, NULL));
	CHECK(dbgdyn_flush(context) == DBGDYN_OK);
	pthread_join(daemon, NULL);
	fake_close(&fake);
	return 0;
}

static void *die_soon(void *unused)
{
	nap_ms(50);
	fake_die(&fake);
	return unused;
}

static int a_daemon_killed_meanwhile_is_found_out(void)
{
	pthread_t daemon;

	CHECK(begin(FAKE_SOCKET, 0) == 0 && fake_take(&fake));
	fake_attach(&fake, 1);
	CHECK(!pthread_create(&daemon, NULL, die_soon, NULL));
	CHECK(dbgdyn_flush(context) == DBGDYN_ENODAEMON);
	pthread_join(daemon, NULL);
	fake_close(&fake);
	return 0;
}

/* Only a queue is there: nobody attaches in the time that a reader gets, so nobody reads it. */
static int a_queue_left_behind_is_not_waited_on_for_long(void)
{
	double seconds;

	CHECK(begin(FAKE_QUEUE, 50) == 0);
	seconds = -fake_seconds();
	CHECK(dbgdyn_flush(context) == DBGDYN_ENODAEMON);
	CHECK(seconds + fake_seconds() >= 0.05);
	CHECK(fake_bells(&fake) == 1); /* of flush: begin saw no socket */
	fake_close(&fake);
	return 0;
}

/* The daemon comes after begin: flush hands the registry over again. */
static int a_late_daemon_is_handed_the_registry(void)
{
	struct dbgdyn_routine r = fake_routine("f", code, sizeof(code));
	struct fake late;
	pthread_t daemon;

	CHECK(begin(0, 5000) == 0);
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK);
	late = fake;
	fake_open(&fake, FAKE_SOCKET);
	CHECK(dbgdyn_flush((dbgdyn_context){ 0 }) == DBGDYN_EREFUSED);
	CHECK(dbgdyn_begin("second", 6, NULL, &context) == DBGDYN_OK && fake_take(&fake));
	CHECK(!pthread_create(&daemon, NULL, answer_soon, NULL));
	CHECK(dbgdyn_end(context) == DBGDYN_OK);
	CHECK(fake_take(&fake));
	pthread_join(daemon, NULL);
	fake_close(&late);
	fake_close(&fake);
	return 0;
}

/* The application closed our descriptor and opened something else under its number. */
static int a_descriptor_taken_away_is_never_sent(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), registry = fd;

	close(fd);
	CHECK(begin(FAKE_SOCKET, 30) == 0 && fake_take(&fake));
	/* begin took the lowest free number after the fake's own: find ours by identity */
	for (registry = 0; registry < 64; registry++) {
		struct wire_registry reg = { 0 };

		if (registry != fake.fd && pread(registry, &reg, sizeof(reg), 0) > 0 &&
		    reg.magic == WIRE_REGISTRY_MAGIC)
			break;
	}
	CHECK(registry < 64);
	CHECK(dup2(STDERR_FILENO, registry) == registry);
	CHECK(dbgdyn_flush(context) == DBGDYN_ETIMEDOUT);
	close(fake.fd);
	fake.fd = -1;
	fake.message_pid = 0;
	CHECK(!fake_take(&fake) && fake.message_pid == (uint32_t)getpid());
	fake_close(&fake);
	return 0;
}

FAKE_TEST(flush_waits_for_the_answer)
FAKE_TEST(a_failed_write_is_said)
FAKE_TEST(end_closes_whatever_the_result)
FAKE_TEST(an_end_meanwhile_refuses)
FAKE_TEST(numbers_of_requests_wrap)
FAKE_TEST(each_facility_has_its_own_limit)
FAKE_TEST(without_a_daemon_it_says_so)
FAKE_TEST(a_killed_daemon_is_found_out)
FAKE_TEST(a_killed_daemon_out_of_sight_is_found_out)
FAKE_TEST(a_slow_daemon_out_of_sight_is_waited_for)
FAKE_TEST(a_daemon_killed_meanwhile_is_found_out)
FAKE_TEST(a_queue_left_behind_is_not_waited_on_for_long)
FAKE_TEST(a_late_daemon_is_handed_the_registry)
FAKE_TEST(a_descriptor_taken_away_is_never_sent)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flush_waits_for_the_answer),
		cmocka_unit_test(test_a_failed_write_is_said),
		cmocka_unit_test(test_end_closes_whatever_the_result),
		cmocka_unit_test(test_an_end_meanwhile_refuses),
		cmocka_unit_test(test_numbers_of_requests_wrap),
		cmocka_unit_test(test_each_facility_has_its_own_limit),
		cmocka_unit_test(test_without_a_daemon_it_says_so),
		cmocka_unit_test(test_a_killed_daemon_is_found_out),
		cmocka_unit_test(test_a_killed_daemon_out_of_sight_is_found_out),
		cmocka_unit_test(test_a_slow_daemon_out_of_sight_is_waited_for),
		cmocka_unit_test(test_a_daemon_killed_meanwhile_is_found_out),
		cmocka_unit_test(test_a_queue_left_behind_is_not_waited_on_for_long),
		cmocka_unit_test(test_a_late_daemon_is_handed_the_registry),
		cmocka_unit_test(test_a_descriptor_taken_away_is_never_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
