/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs value profilers for dcpid (values.c). It loads them as whoever it was started as, then gives
 * up all rights: "dcpid-values context|- PROFILER …".
 */
#include <errno.h>
#include <linux/capability.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "values_run.h"

enum { NOBODY = 65534, NR_FDS = 5 };
#define MEMORY_BYTES (UINT64_C(4) << 30)

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* ---- the jail -------------------------------------------------------------------------------- */

static int limit(int what, rlim_t value)
{
	struct rlimit l;

	if (getrlimit((__rlimit_resource_t)what, &l) < 0)
		return -errno;
	/* One that is tighter already cannot be raised, and need not be. */
	if (l.rlim_max < value)
		return 0;
	l = (struct rlimit){ value, value };
	return setrlimit((__rlimit_resource_t)what, &l) < 0 ? -errno : 0;
}

static int set_limits(struct base_err *err)
{
	const struct {
		int what;
		rlim_t value;
	} limits[] = {
		{ RLIMIT_CORE, 0 },
		{ RLIMIT_FSIZE, 0 },
		{ RLIMIT_NPROC, 0 },
		{ RLIMIT_NOFILE, NR_FDS },
		/* A sanitizer's shadow alone reserves terabytes. */
		{ RLIMIT_AS, SANITIZED ? RLIM_INFINITY : MEMORY_BYTES },
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		int r = limit(limits[i].what, limits[i].value);

		if (r < 0)
			return base_fail_errno(err, r, "cannot limit resource %d", limits[i].what);
	}
	return 0;
}

static int drop_rights(struct base_err *err)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[2] = { 0 };

	if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
			       setresuid(NOBODY, NOBODY, NOBODY) < 0))
		return base_fail_errno(err, -errno, "cannot become nobody");
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capset, &head, none) < 0)
		return base_fail_errno(err, -errno, "cannot drop capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return base_fail_errno(err, -errno, "cannot renounce new privileges");
	/* The values that pass here are secrets. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return base_fail_errno(err, -errno, "cannot forbid inspection");
	return 0;
}

static int enter_jail(struct base_err *err)
{
	int r = set_limits(err);

	return r < 0 ? r : drop_rights(err);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Nobody is there any more, or the message is longer than the socket takes: then dcpid has gone. */
static void send_message(const void *data, size_t len)
{
	ssize_t n;

	do
		n = send(VALUES_SOCKET_FD, data, len, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		_exit(BASE_EXIT_FAILED);
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
	case VALUES_WINDOW:
		return values_run_window(r, message, len, answer, NULL);
	default:
		return -DCPI_EFORMAT;
	}
}

static int serve(struct values_run *r)
{
	static _Alignas(8) uint8_t message[VALUES_MESSAGE_MAX];
	int ret = 0;

	while (ret >= 0) {
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

	if (argc < 2 || at_work == MAP_FAILED ||
	    values_run_new(!strcmp(argv[1], "context"), at_work, &r) < 0)
		return BASE_EXIT_FAILED;
	ret = load(r, argc - 2, argv + 2);
	if (ret >= 0)
		ret = serve(r);
	values_run_free(r);
	return ret < 0 ? BASE_EXIT_FAILED : BASE_EXIT_OK;
}
