/* SPDX-License-Identifier: BSD-2-Clause */
/* The rights of a process are given up here by what Linux offers. */
#include <errno.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base.h"

/*
 * Processes of one user may end, stop and slow down each other, and services and containers run as
 * the user "nobody". So helpers are a user of their own: a number that systems give to no one. A
 * container may not have it.
 */
enum { HELPERS = BASE_HELPER_ID, NOBODY = 65534 };

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

static int become(uid_t id)
{
	if (setgroups(0, NULL) == 0 && setresgid(id, id, id) == 0 && setresuid(id, id, id) == 0)
		return 0;
	return -errno;
}

int base_ids_drop(void)
{
	int r = geteuid() == 0 ? become(HELPERS) : 0;

	return r == -EINVAL ? become(NOBODY) : r;
}

/*
 * The root of a container may lack the right (EPERM), or there is no such id in it (EINVAL): then
 * it goes on as who it is, without capabilities, as anybody else does.
 */
static int drop_ids(struct base_err *err)
{
	int r = base_ids_drop();

	if (r < 0 && r != -EPERM && r != -EINVAL)
		return base_fail_errno(err, r, "cannot become another user");
	return 0;
}

/* As linux/capability.h has it, which not every C library comes with. */
struct cap_sets {
	uint32_t effective, permitted, inheritable;
};

/*
 * No program that it executes gets others than @keep. That takes a right too, without which the
 * bound stays.
 */
static void bound(uint64_t keep)
{
	for (unsigned int cap = 0; cap < 64; cap++)
		if (!(keep >> cap & 1))
			prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

static int keep_sets(uint64_t keep, uint64_t executed, struct base_err *err)
{
	struct {
		uint32_t version;
		int32_t pid;
	} head = { .version = 0x20080522 };
	struct cap_sets sets[2] = { 0 };
	bool any = false;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return base_fail_errno(err, -errno, "cannot renounce new privileges");
	if (syscall(SYS_capget, &head, sets) < 0)
		return base_fail_errno(err, -errno, "cannot read capabilities");
	/* To change the ids may have taken their effect. */
	for (size_t i = 0; i < 2; i++)
		sets[i].effective = sets[i].permitted;
	if (syscall(SYS_capset, &head, sets) == 0)
		bound(executed);
	for (size_t i = 0; i < 2; i++) {
		uint32_t mask = (uint32_t)(keep >> 32 * i);

		sets[i].permitted &= mask;
		sets[i].effective = sets[i].permitted;
		sets[i].inheritable = 0;
		any |= sets[i].permitted;
	}
	if (syscall(SYS_capset, &head, sets) < 0)
		return base_fail_errno(err, -errno, "cannot drop capabilities");
	return any;
}

int base_rights_keep(uint64_t keep, struct base_err *err)
{
	return keep_sets(keep, 0, err);
}

int base_rights_bound(uint64_t keep, struct base_err *err)
{
	return keep_sets(keep, keep, err);
}

int base_rights_drop(struct base_err *err)
{
	int r;

	bound(0);
	r = drop_ids(err);
	if (r >= 0)
		r = base_rights_keep(0, err);
	/* After the ids, whose change sets it anew. */
	if (r >= 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		r = base_fail_errno(err, -errno, "cannot forbid inspection");
	return r < 0 ? r : 0;
}
