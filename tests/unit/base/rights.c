/* SPDX-License-Identifier: BSD-2-Clause */
/* A child that gives up its rights: what it is left with, and that it does not get any back. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base.h"

/* As linux/capability.h has them, which not every C library comes with. */
struct cap_head {
	uint32_t version;
	int32_t pid;
};

struct cap_sets {
	uint32_t effective, permitted, inheritable;
};

enum { CAP_SETGID = 6, CAP_SETUID = 7, CAP_SETPCAP = 8, CAP_SYS_PTRACE = 19, CAP_SYS_ADMIN = 21 };
enum { CAP_VERSION = 0x20080522 };

static int in_child(int (*act)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(act());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static bool has_capabilities(void)
{
	struct cap_head head = { .version = CAP_VERSION };
	struct cap_sets data[2] = { 0 };

	if (syscall(SYS_capget, &head, data) < 0)
		return true;
	return data[0].effective || data[0].permitted || data[1].effective || data[1].permitted;
}

static int act_drop(void)
{
	bool was_root = geteuid() == 0;
	struct base_err err = { 0 };

	if (base_rights_drop(&err) < 0)
		return 1;
	if (geteuid() == 0 || getuid() == 0 || getegid() == 0)
		return 2;
	if (has_capabilities())
		return 3;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return 4;
	if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
		return 5;
	/* Programs of the user nobody could end it. A container may lack other ids. */
	if (was_root && getuid() == 65534 &&
	    system("grep -q ' 4294967295$' /proc/self/uid_map") == 0)
		return 7;
	return setuid(0) == 0 ? 6 : 0;
}

static void test_rights(void **state)
{
	(void)state;
	assert_int_equal(in_child(act_drop), 0);
}

/* One right is left, of those that there are, and no other can come back by an exec. */
static int act_keep(void)
{
	struct cap_head head = { .version = CAP_VERSION };
	struct cap_sets data[2] = { 0 };
	struct base_err err = { 0 };
	int r = base_rights_keep(1ull << CAP_SYS_PTRACE, &err);

	if (r < 0 || syscall(SYS_capget, &head, data) < 0)
		return 1;
	if (data[0].effective != (r ? 1u << CAP_SYS_PTRACE : 0) ||
	    data[0].permitted != data[0].effective || data[1].permitted || data[1].effective)
		return 2;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return 3;
	return geteuid() == 0 && prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) != 0 ? 4 : 0;
}

static void test_keep(void **state)
{
	(void)state;
	assert_int_equal(in_child(act_keep), 0);
}

/* Programs that it executes as root have those rights that are left, and no others. */
static int act_bound(void)
{
	const uint32_t keep = 1u << CAP_SYS_PTRACE | 1u << CAP_SETPCAP;
	struct base_err err = { 0 };
	int r;

	if (geteuid() != 0)
		return 0;
	r = base_rights_bound(keep, &err);
	if (r < 0)
		return 1;
	return r ? system("grep -q '^CapEff:.*0000000000080100$' /proc/self/status") : 0;
}

static void test_bound(void **state)
{
	(void)state;
	assert_int_equal(in_child(act_bound), 0);
}

/* Root as in a container that was given no right to become somebody else. */
static int act_drop_bound(void)
{
	struct cap_head head = { .version = CAP_VERSION };
	struct cap_sets data[2] = { 0 };
	struct base_err err = { 0 };

	if (geteuid() != 0)
		return 0;
	if (syscall(SYS_capget, &head, data) < 0)
		return 1;
	data[0].permitted &= ~(1u << CAP_SETUID | 1u << CAP_SETGID);
	data[0].effective = data[0].permitted;
	if (syscall(SYS_capset, &head, data) < 0 || base_rights_drop(&err) < 0)
		return 2;
	return has_capabilities() || prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0 ? 3 : 0;
}

static void test_rights_bound(void **state)
{
	(void)state;
	assert_int_equal(in_child(act_drop_bound), 0);
}

static bool is_limited(int what, rlim_t value)
{
	struct rlimit l;

	return getrlimit(what, &l) == 0 && l.rlim_cur == value && l.rlim_max == value;
}

static int act_limit(void)
{
	static const struct base_limit tight[] = { { RLIMIT_CORE, 0 }, { RLIMIT_FSIZE, 4096 } };
	static const struct base_limit wide[] = { { RLIMIT_FSIZE, 1 << 20 }, { RLIMIT_NOFILE, 7 } };
	struct base_err err = { 0 };

	if (base_limits_set(tight, 2, &err) < 0)
		return 1;
	if (!is_limited(RLIMIT_CORE, 0) || !is_limited(RLIMIT_FSIZE, 4096))
		return 2;
	/* Without the right to, nobody raises one. */
	if (base_rights_drop(&err) < 0 || base_limits_set(wide, 2, &err) < 0)
		return 3;
	return !is_limited(RLIMIT_FSIZE, 4096) || !is_limited(RLIMIT_NOFILE, 7) ? 4 : 0;
}

static void test_limits(void **state)
{
	(void)state;
	assert_int_equal(in_child(act_limit), 0);
}

static int act_nonsense(void)
{
	static const struct base_limit none = { 9999, 0 };
	struct base_err err = { 0 };

	return base_limits_set(&none, 1, &err) == -EINVAL && err.text[0] ? 0 : 1;
}

static void test_nonsense(void **state)
{
	(void)state;
	assert_int_equal(in_child(act_nonsense), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rights),	     cmocka_unit_test(test_keep),
		cmocka_unit_test(test_rights),	     cmocka_unit_test(test_bound),
		cmocka_unit_test(test_rights_bound), cmocka_unit_test(test_limits),
		cmocka_unit_test(test_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
