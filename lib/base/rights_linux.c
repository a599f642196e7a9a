/* SPDX-License-Identifier: BSD-2-Clause */
/* The rights of a process are given up here by what Linux offers. */
#include <errno.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base.h"

enum { NOBODY = 65534 };

static int limit(int what, rlim_t value)
{
	const struct rlimit l = { value, value };
	struct rlimit now;

	if (setrlimit(what, &l) == 0)
		return 0;
	/* One that is tighter already cannot be raised, and need not be. */
	if (errno == EPERM && getrlimit(what, &now) == 0 && now.rlim_max <= value)
		return 0;
	return -errno;
}

int base_limits_set(const struct base_limit *limits, size_t nr, struct base_err *err)
{
	for (size_t i = 0; i < nr; i++) {
		int r;

#if defined(__SANITIZE_ADDRESS__)
		/* A sanitizer's shadow alone reserves terabytes. */
		if (limits[i].what == RLIMIT_AS)
			continue;
#endif
		r = limit(limits[i].what, (rlim_t)limits[i].value);
		if (r < 0)
			return base_fail_errno(err, r, "cannot limit resource %d", limits[i].what);
	}
	return 0;
}

/*
 * The root of a container may lack the right (EPERM), or there is no such id in it (EINVAL): then
 * it goes on as who it is, without capabilities, as anybody else does.
 */
static int drop_ids(struct base_err *err)
{
	if (geteuid() != 0)
		return 0;
	if (setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
	    setresuid(NOBODY, NOBODY, NOBODY) == 0)
		return 0;
	if (errno == EPERM || errno == EINVAL)
		return 0;
	return base_fail_errno(err, -errno, "cannot become nobody");
}

/* As linux/capability.h has it, which not every C library comes with. */
static int drop_capabilities(struct base_err *err)
{
	const struct {
		uint32_t version;
		int32_t pid;
	} head = { .version = 0x20080522 };
	const struct {
		uint32_t effective, permitted, inheritable;
	} none[2] = { 0 };

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capset, &head, none) < 0)
		return base_fail_errno(err, -errno, "cannot drop capabilities");
	return 0;
}

int base_rights_drop(struct base_err *err)
{
	int r = 0;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return base_fail_errno(err, -errno, "cannot renounce new privileges");
	r = drop_ids(err);
	if (r >= 0)
		r = drop_capabilities(err);
	/* After the ids, whose change sets it anew. */
	if (r >= 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		r = base_fail_errno(err, -errno, "cannot forbid inspection");
	return r;
}
