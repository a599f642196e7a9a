/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs value profilers for dcpid (values.c). It loads them as whoever it was started as, then gives
 * up all rights: "dcpid-values context|- PROFILER …".
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "values_run.h"

enum { NR_FDS = 5 };
#define MEMORY_BYTES (UINT64_C(4) << 30)

/* ---- the jail -------------------------------------------------------------------------------- */

/* A profiler may run without end, which nobody else would make an end of. dcpid may have ended
 * before it could be asked for; a change of rights forgets that it was. */
static int end_with_parent(struct base_err *err)
{
	struct pollfd p = { .fd = VALUES_SOCKET_FD };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || poll(&p, 1, 0) != 0)
		return base_fail(err, -DCPI_EHELPER, "dcpid is gone");
	return 0;
}

/* The values that pass here are secrets. */
static int enter_jail(struct base_err *err)
{
	static const struct base_limit limits[] = {
		{ RLIMIT_CORE, 0 },	   { RLIMIT_FSIZE, 0 },		{ RLIMIT_NPROC, 0 },
		{ RLIMIT_NOFILE, NR_FDS }, { RLIMIT_AS, MEMORY_BYTES },
	};
	int r = base_limits_set(limits, sizeof(limits) / sizeof(limits[0]), err);

	if (r >= 0)
		r = base_rights_drop(err);
	return r < 0 ? r : end_with_parent(err);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* dcpid has ended, or wants no more: the profilers' ends are still called. */
static bool closed;

static void send_message(const void *data, size_t len)
{
	ssize_t n;

	do
		n = send(VALUES_SOCKET_FD, data, len, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	closed |= n < 0;
}

static int answer(void *ctx, const struct values_tuples *head, const struct values_tuple *t)
{
	static struct {
		struct values_tuples head;
		struct values_tuple t[VSAMPLE_BUFFER_SIZE];
	} message;

	(void)ctx;
	message.head = *head;
	memcpy(message.t, t, head->nr * sizeof(*t));
	send_message(&message, sizeof(message.head) + head->nr * sizeof(*t));
	return 0;
}

static int serve_one(struct values_run *r, const void *message, size_t len)
{
	uint32_t type;

	if (len < sizeof(type))
		return -DCPI_EFORMAT;
	memcpy(&type, message, sizeof(type));
	switch (type) {
	case VALUES_BLOCK:
		return values_run_block(r, message, len);
	case VALUES_FORGET:
		values_run_forget(r);
		return 0;
	case VALUES_TRACE:
		return values_run_trace(r, message, len, answer, NULL);
	default:
		return -DCPI_EFORMAT;
	}
}

static int serve(struct values_run *r)
{
	static _Alignas(8) uint8_t message[VALUES_MESSAGE_MAX];
	int ret = 0;

	while (ret >= 0 && !closed) {
		ssize_t n = recv(VALUES_SOCKET_FD, message, sizeof(message), MSG_TRUNC);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return 0;
		ret = (size_t)n > sizeof(message) ? -DCPI_EFORMAT
						  : serve_one(r, message, (size_t)n);
	}
	return ret;
}

/* ---- beginning ------------------------------------------------------------------------------- */

static void say_failed(uint32_t profiler, const struct base_err *err)
{
	const struct values_failed f = { VALUES_FAILED, profiler, *err };

	send_message(&f, sizeof(f));
}

static int load(struct values_run *r, int nr, char **profilers)
{
	struct base_err err = { 0 };
	struct values_ready ready;

	if (end_with_parent(&err) < 0)
		return -1;
	for (int i = 0; i < nr; i++) {
		if (values_run_add(r, profilers[i], &err) < 0) {
			say_failed((uint32_t)i, &err);
			return -1;
		}
	}
	if (enter_jail(&err) < 0) {
		say_failed(VALUES_PROFILERS_MAX, &err);
		return -1;
	}
	values_run_ready(r, &ready);
	send_message(&ready, sizeof(ready));
	return 0;
}

int main(int argc, char **argv)
{
	uint8_t *at_work = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, VALUES_WHO_FD, 0);
	struct values_run *r;
	int ret;

	if (argc < 2 || at_work == MAP_FAILED) {
		fputs("dcpid-values: not for use by hand: dcpid starts it\n", stderr);
		return BASE_EXIT_USAGE;
	}
	if (values_run_new(!strcmp(argv[1], "context"), at_work, &r) < 0)
		return BASE_EXIT_FAILED;
	ret = load(r, argc - 2, argv + 2);
	if (ret >= 0)
		ret = serve(r);
	values_run_free(r);
	return ret < 0 ? BASE_EXIT_FAILED : BASE_EXIT_OK;
}
