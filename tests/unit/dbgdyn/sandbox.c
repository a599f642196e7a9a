/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes that may not do much: a registry that another one made for them. */
#include "fake.h"
#include "dbgdyn_internal.h"

#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct fake fake;
static const char code[64];

/* The process that the broker made @fd for. */
static int client(int fd)
{
	struct dbgdyn_options o = { .size = sizeof(o),
				    .flags = DBGDYN_REGISTRY_FD,
				    .registry_fd = fd };
	struct dbgdyn_routine r = fake_routine("brokered", code, sizeof(code));
	dbgdyn_context c;

	CHECK(dbgdyn_begin("jit", 3, &o, &c) == DBGDYN_OK);
	CHECK(close(fd) == 0); /* the library keeps one of its own */
	CHECK(dbgdyn_register(c, &r, NULL) == DBGDYN_OK);
	/* Of a later begin the descriptor is not looked at. */
	CHECK(dbgdyn_begin("more", 4, &o, &c) == DBGDYN_OK);
	return 0;
}

static int in_child(int (*run)(int), int fd)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(run(fd));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* The limit of files lets it make a small one only, but it was given a large one. */
static int limited_client(int fd)
{
	const struct rlimit little = { 4u << 20, RLIM_INFINITY };
	struct dbgdyn_options o = { .size = sizeof(o),
				    .flags = DBGDYN_REGISTRY_FD,
				    .registry_fd = fd };
	dbgdyn_context c;

	CHECK(setrlimit(RLIMIT_FSIZE, &little) == 0);
	CHECK(dbgdyn_begin("jit", 3, &o, &c) == DBGDYN_OK);
	CHECK(dbgdyn_state_get(false)->ring_len == 4u << 20);
	for (size_t i = 0; i < sizeof(code); i++) {
		struct dbgdyn_routine r = fake_routine("f", code + i, 1);
		dbgdyn_handle handle;

		CHECK(dbgdyn_register(c, &r, &handle) == DBGDYN_OK);
		CHECK(dbgdyn_retire(c, handle) == DBGDYN_OK);
	}
	return 0;
}

static int refused(int fd)
{
	struct dbgdyn_options o = { .size = sizeof(o),
				    .flags = DBGDYN_REGISTRY_FD,
				    .registry_fd = fd };
	dbgdyn_context c = { 7 };
	int nr = fake_descriptors();

	CHECK(dbgdyn_begin("jit", 3, &o, &c) == DBGDYN_EINVAL && c.id == 0);
	CHECK(fake_descriptors() == nr);
	CHECK(dbgdyn_begin("jit", 3, NULL, &c) == DBGDYN_OK);
	return 0;
}

static int a_broker_makes_the_registry(void)
{
	struct wire_registry reg;
	int fd, pipes[2];

	fake_open(&fake, FAKE_SOCKET);
	fd = dbgdyn_registry_make();
	CHECK(fd >= 0 && !dbgdyn_state_get(false));
	CHECK(in_child(client, fd) == 0);
	CHECK(pread(fd, &reg, sizeof(reg), 0) == sizeof(reg) && reg.nr_facilities == 2);
	CHECK(reg.magic == WIRE_REGISTRY_MAGIC && reg.seq == 1 && reg.heap_end == 128);
	CHECK(fake_take(&fake));
	fake_header(&fake, &reg);
	CHECK(reg.nr_facilities == 2 && reg.ring_len == 4u << 20);
	/* Not one that has served, nor what is none. */
	CHECK(in_child(refused, fd) == 0 && pipe(pipes) == 0 && in_child(refused, pipes[0]) == 0);
	CHECK(in_child(refused, 9999) == 0);
	fd = dbgdyn_registry_make();
	CHECK(fd >= 0 && in_child(limited_client, fd) == 0);
	fd = dbgdyn_memory_make(4096);
	CHECK(fd >= 0 && dbgdyn_memory_seal(fd) && in_child(refused, fd) == 0);
	fake_close(&fake);
	return 0;
}

static dbgdyn_context context;
static int results[2];

static void *register_against(void *arg)
{
	struct dbgdyn_routine r = fake_routine("f", code, sizeof(code));

	(void)arg;
	results[0] = dbgdyn_register(context, &r, NULL);
	return NULL;
}

/* A lock whose holder never runs is given up without a sleep, too. */
static int spinning_has_an_end(void)
{
	struct dbgdyn_options o = { .size = sizeof(o), .flags = DBGDYN_NO_SYSCALLS };
	pthread_t thread;

	fake_open(&fake, 0);
	CHECK(dbgdyn_begin("jit", 3, &o, &context) == DBGDYN_OK);
	CHECK(dbgdyn_flush(context) == DBGDYN_EINPROGRESS);
	CHECK(dbgdyn_lock(dbgdyn_state_get(false)));
	CHECK(!pthread_create(&thread, NULL, register_against, NULL));
	CHECK(!pthread_join(thread, NULL) && results[0] == DBGDYN_EFULL);
	dbgdyn_unlock(dbgdyn_state_get(false));
	CHECK(dbgdyn_end(context) == DBGDYN_EINPROGRESS);
	CHECK(dbgdyn_end(context) == DBGDYN_EREFUSED);
	CHECK(dbgdyn_state_get(false)->facilities[0].end_wanted == 2);
	fake_close(&fake);
	return 0;
}

FAKE_TEST(a_broker_makes_the_registry)
FAKE_TEST(spinning_has_an_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_broker_makes_the_registry),
		cmocka_unit_test(test_spinning_has_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
