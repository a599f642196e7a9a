/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake.h"
#include "dbgdyn_internal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static struct fake fake;
static dbgdyn_context parents;
static const char code[16];
static int registry_fd;

static int exit_of(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static int child(void)
{
	struct dbgdyn_routine r = fake_routine("child's", code, sizeof(code));
	dev_t dev = dbgdyn_state_get(false) ? dbgdyn_state_get(false)->memory.dev : 0;
	ino_t ino = dbgdyn_state_get(false) ? dbgdyn_state_get(false)->memory.ino : 0;
	dbgdyn_context own;

	CHECK(dev == 0 && ino == 0);
	CHECK(dbgdyn_register(parents, &r, NULL) == DBGDYN_EREFUSED);
	CHECK(dbgdyn_add(parents, DBGDYN_CODE, code, 1) == DBGDYN_EREFUSED);
	CHECK(dbgdyn_flush(parents) == DBGDYN_EREFUSED && dbgdyn_end(parents) == DBGDYN_EREFUSED);
	CHECK(dbgdyn_begin("child", 5, NULL, &own) == DBGDYN_OK && own.id != parents.id);
	CHECK(dbgdyn_register(parents, &r, NULL) == DBGDYN_EREFUSED);
	CHECK(dbgdyn_register(own, &r, NULL) == DBGDYN_OK);
	return 0;
}

/* The child's registry is another one, and the parent's descriptor is closed in it. */
static int check_registries(void)
{
	struct dbgdyn_state *s = dbgdyn_state_get(false);
	struct wire_registry of_child, of_parent;
	int parents_fd = fake.fd;

	fake_header(&fake, &of_parent);
	fake.fd = -1;
	CHECK(fake_take(&fake));
	fake_header(&fake, &of_child);
	CHECK(!dbgdyn_memory_same(fake.fd, s->memory.dev, s->memory.ino));
	CHECK(dbgdyn_memory_same(parents_fd, s->memory.dev, s->memory.ino));
	CHECK(of_child.nr_facilities == 1 && of_child.head > 0);
	CHECK(of_parent.nr_facilities == 1 && of_parent.head == 0);
	close(parents_fd);
	return 0;
}

static int a_child_has_a_registry_of_its_own(void)
{
	struct dbgdyn_routine r = fake_routine("parent's", code, sizeof(code));
	pid_t pid;

	fake_open(&fake, FAKE_SOCKET);
	CHECK(dbgdyn_begin("parent", 6, NULL, &parents) == DBGDYN_OK && fake_take(&fake));
	pid = fork();
	if (pid == 0)
		_exit(child());
	CHECK(exit_of(pid) == 0 && check_registries() == 0);
	CHECK(dbgdyn_register(parents, &r, NULL) == DBGDYN_OK);
	fake_close(&fake);
	return 0;
}

/* Both number their routines from one; a runtime frees inherited code by the handle that it has. */
static int child_retires(dbgdyn_handle handle, const struct wire_registry *parent)
{
	struct dbgdyn_routine r = fake_routine("child's", code, sizeof(code));
	const struct wire_inherited *has = (const void *)(uintptr_t)parent->inherited_addr;
	const struct wire_registry *reg;
	dbgdyn_context context;
	dbgdyn_handle own;

	/* A daemon that comes later reads here what was inherited, … */
	CHECK(has->registry == parent->number && has->seq == 1);
	CHECK(dbgdyn_begin("child", 5, NULL, &context) == DBGDYN_OK);
	/* … and there where a registry has taken that place. */
	reg = dbgdyn_state_get(false)->reg;
	CHECK(reg->number != parent->number && has->registry == reg->number && has->seq == 0);
	CHECK(reg->inherited.registry == parent->number && reg->inherited.seq == 1);
	CHECK(dbgdyn_register(context, &r, &own) == DBGDYN_OK && own.id);
	CHECK(dbgdyn_retire(context, handle) == DBGDYN_EINVAL);
	CHECK(dbgdyn_move(context, handle, code) == DBGDYN_EINVAL);
	CHECK(dbgdyn_retire(context, own) == DBGDYN_OK);
	return 0;
}

static int a_parents_handle_names_nothing(void)
{
	struct dbgdyn_routine r = fake_routine("parent's", code, sizeof(code));
	struct wire_registry parent;
	dbgdyn_handle handle;
	pid_t pid;

	fake_open(&fake, 0);
	CHECK(dbgdyn_begin("parent", 6, NULL, &parents) == DBGDYN_OK);
	CHECK(dbgdyn_register(parents, &r, &handle) == DBGDYN_OK);
	parent = *dbgdyn_state_get(false)->reg;
	CHECK(parent.inherited_addr && parent.number);
	pid = fork();
	if (pid == 0)
		_exit(child_retires(handle, &parent));
	CHECK(exit_of(pid) == 0);
	CHECK(dbgdyn_retire(parents, handle) == DBGDYN_OK);
	fake_close(&fake);
	return 0;
}

/* The parent's thread may be anywhere when another one forks. */
static int a_lock_held_does_not_pass(void)
{
	dbgdyn_context own;
	pid_t pid;

	fake_open(&fake, 0);
	CHECK(dbgdyn_begin("parent", 6, NULL, &parents) == DBGDYN_OK);
	CHECK(dbgdyn_lock(dbgdyn_state_get(false)));
	pid = fork();
	if (pid == 0)
		_exit(dbgdyn_begin("child", 5, NULL, &own) != DBGDYN_OK);
	CHECK(exit_of(pid) == 0);
	dbgdyn_unlock(dbgdyn_state_get(false));
	CHECK(dbgdyn_end(parents) == DBGDYN_ENODAEMON);
	fake_close(&fake);
	return 0;
}

static void on_alarm(int unused)
{
	(void)unused;
}

static bool came_back;

static void *register_cancelled(void *arg)
{
	struct dbgdyn_routine r = fake_routine("f", code, sizeof(code));

	pthread_cancel(pthread_self());
	came_back = dbgdyn_register(*(dbgdyn_context *)arg, &r, NULL) == DBGDYN_EFULL;
	pthread_testcancel();
	return NULL;
}

/* The lock is another's for good: a call waits a while, and the caller notices nothing of how. */
static int waiting_changes_nothing(dbgdyn_context c)
{
	struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = { 0 };
	struct sigaction act = { .sa_handler = on_alarm };
	struct dbgdyn_routine r = fake_routine("f", code, sizeof(code));
	pthread_t thread;

	CHECK(sigaction(SIGALRM, &act, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
	errno = 4711;
	CHECK(dbgdyn_register(c, &r, NULL) == DBGDYN_EFULL);
	CHECK(errno == 4711 && setitimer(ITIMER_REAL, &never, NULL) == 0);
	CHECK(!pthread_create(&thread, NULL, register_cancelled, &c));
	CHECK(!pthread_join(thread, NULL) && came_back);
	return 0;
}

/* As from a signal handler that interrupted a call: refused, counted, no dead lock. */
static int a_call_within_a_call_gives_up(void)
{
	struct dbgdyn_routine r = fake_routine("f", code, sizeof(code));
	struct dbgdyn_state *s;
	dbgdyn_context c, other, mine = { 7 };
	dbgdyn_handle h;

	fake_open(&fake, 0);
	CHECK(dbgdyn_begin("jit", 3, NULL, &c) == DBGDYN_OK);
	CHECK(dbgdyn_begin("other", 5, NULL, &other) == DBGDYN_OK);
	CHECK(dbgdyn_register(c, &r, &h) == DBGDYN_OK);
	s = dbgdyn_state_get(false);
	CHECK(dbgdyn_lock(s));
	CHECK(dbgdyn_register(c, &r, NULL) == DBGDYN_EFULL && s->reg->nr_dropped == 1);
	CHECK(dbgdyn_move(c, h, code + 1) == DBGDYN_EFULL && s->reg->nr_dropped == 2);
	CHECK(dbgdyn_retire(c, h) == DBGDYN_EFULL && s->reg->nr_dropped == 3);
	CHECK(dbgdyn_retire_code(c, code, 1) == DBGDYN_EFULL && s->reg->nr_dropped == 4);
	CHECK(s->lock && s->reg->seq == 1);
	CHECK(dbgdyn_add(c, DBGDYN_CODE, code, 1) == DBGDYN_EFULL);
	CHECK(dbgdyn_begin("jit", 3, NULL, &mine) == DBGDYN_EFULL && mine.id == 0);
	CHECK(dbgdyn_flush(c) == DBGDYN_ETIMEDOUT && s->facilities[0].state == WIRE_FACILITY_OPEN);
	CHECK(dbgdyn_end(c) == DBGDYN_ETIMEDOUT && dbgdyn_end(c) == DBGDYN_EREFUSED);
	CHECK(s->facilities[0].state == WIRE_FACILITY_ENDED);
	/* A holder that never runs again: given up after a while. */
	s->lock = 1;
	CHECK(!dbgdyn_lock(s));
	CHECK(waiting_changes_nothing(other) == 0);
	fake_close(&fake);
	return 0;
}

/* The inherited descriptor goes at the child's own begin, unless its number is another file's. */
static int child_closes(int expect_open)
{
	dbgdyn_context own;

	if (expect_open)
		dup2(STDERR_FILENO, registry_fd);
	CHECK(dbgdyn_begin("child", 5, NULL, &own) == DBGDYN_OK);
	struct dbgdyn_state *s = dbgdyn_state_get(false);

	/* Closed, the number is the lowest free one again, and taken by the new registry. */
	CHECK((s->memory.fd == registry_fd) == !expect_open);
	return 0;
}

static int an_inherited_descriptor_is_closed(void)
{
	pid_t pid;

	fake_open(&fake, 0);
	CHECK(dbgdyn_begin("parent", 6, NULL, &parents) == DBGDYN_OK);
	registry_fd = dbgdyn_state_get(false)->memory.fd;
	for (int expect_open = 0; expect_open < 2; expect_open++) {
		pid = fork();
		if (pid == 0)
			_exit(child_closes(expect_open));
		CHECK(exit_of(pid) == 0);
	}
	fake_close(&fake);
	return 0;
}

FAKE_TEST(a_child_has_a_registry_of_its_own)
FAKE_TEST(a_parents_handle_names_nothing)
FAKE_TEST(a_lock_held_does_not_pass)
FAKE_TEST(a_call_within_a_call_gives_up)
FAKE_TEST(an_inherited_descriptor_is_closed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_child_has_a_registry_of_its_own),
		cmocka_unit_test(test_a_parents_handle_names_nothing),
		cmocka_unit_test(test_a_lock_held_does_not_pass),
		cmocka_unit_test(test_a_call_within_a_call_gives_up),
		cmocka_unit_test(test_an_inherited_descriptor_is_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
