/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A daemon for tests of libdbgdyn: a socket, a message queue, and pread/pwrite on the descriptor
 * that it is handed, as the real one works. And what the tests share.
 */
#ifndef TESTS_DBGDYN_FAKE_H
#define TESTS_DBGDYN_FAKE_H

#include <stdarg.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "dbgdyn.h"
#include "wire.h"

#include <mqueue.h>

struct fake {
	char dir[64], queue_name[64];
	int listen; /* -1: no socket */
	mqd_t queue;
	int fd; /* the registry, once taken */
	uint32_t message_pid;
};

enum { FAKE_SOCKET = 1, FAKE_QUEUE = 2 };

/* Point the environment at a folder and queue of our own and make what @parts says. */
void fake_open(struct fake *f, int parts);
/* Stop listening, as a killed daemon does: the socket's file and the queue stay. */
void fake_die(struct fake *f);
/* Have the socket's file gone: with its folder, or in another mount namespace. */
void fake_hide(const struct fake *f);
void fake_close(struct fake *f);
/* Take one hand-over (at most a minute): true with f->fd set where a descriptor came along. */
bool fake_take(struct fake *f);
/* Messages that wait in the queue; each is checked to be a doorbell. */
int fake_bells(struct fake *f);

void fake_header(const struct fake *f, struct wire_registry *reg);
void fake_attach(const struct fake *f, uint32_t attached);
/* As a daemon that has met request @wanted: the answer may take its time. */
void fake_see(const struct fake *f, uint32_t wanted);
void fake_answer(const struct fake *f, int32_t status);
/* Read what the ring holds from its tail on into @to, then move the tail. Returns bytes. */
size_t fake_read(const struct fake *f, void *to, size_t space);
/*
 * The next change of @len bytes that were read; NULL: none. Of the time before it, fake_when_ns (0:
 * none), it is checked that it is past, and not before the last one.
 */
const struct wire_head *fake_next(const void *data, size_t len, size_t *pos);
extern uint64_t fake_when_ns;

/*
 * A process has one registry for life, so each case runs in a child of its own. @run says by
 * CHECK what is wrong.
 */
void fake_in_child(int (*run)(void));
#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);                    \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

/* A cmocka test of each such case. */
#define FAKE_TEST(name)                                                                            \
	static void test_##name(void **state)                                                      \
	{                                                                                          \
		(void)state;                                                                       \
		fake_in_child(name);                                                               \
	}

/* A routine named @name with @code, no lines. */
struct dbgdyn_routine fake_routine(const char *name, const void *code, size_t code_len);
double fake_seconds(void);
/* How many this process has open. */
int fake_descriptors(void);

#endif
