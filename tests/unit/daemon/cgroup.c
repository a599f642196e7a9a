/* SPDX-License-Identifier: BSD-2-Clause */
/* The cgroup of a process, out of any form of /proc/PID/cgroup. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stand_ins.h"

static const char *parsed(const char *text)
{
	static char copy[20000];

	snprintf(copy, sizeof(copy), "%s", text);
	return proc_parse_cgroup(copy);
}

static void unified(void **state)
{
	(void)state;
	assert_string_equal(parsed("0::/system.slice/cron.service\n"),
			    "/system.slice/cron.service");
	assert_string_equal(parsed("0::/\n"), "/");
	assert_string_equal(parsed("0::/a"), "/a");
	assert_string_equal(parsed("0::/gone (deleted)\n"), "/gone");
}

static void version_1(void **state)
{
	(void)state;
	assert_string_equal(parsed("12:pids:/\n11:memory:/m/x\n10:cpu,cpuacct:/c\n"), "/m/x");
	assert_string_equal(parsed("2:cpu:/\n1:name=systemd:/\n"), "/");
	assert_string_equal(parsed("1:name=systemd:/docker/ab:cd\n"), "/docker/ab:cd");
	/* There a name may end so. */
	assert_string_equal(parsed("1:cpu:/a (deleted)\n"), "/a (deleted)");
}

static void both(void **state)
{
	(void)state;
	assert_string_equal(parsed("2:cpu:/v1\n1:name=systemd:/v1\n0::/v2\n"), "/v2");
	assert_string_equal(parsed("0::/v2\n2:cpu:/v1\n"), "/v2");
	assert_string_equal(parsed("2:cpu:/\n1:name=systemd:/v1\n0::/\n"), "/v1");
	assert_string_equal(parsed("0::/\n2:cpu:/\n1:memory:/v1\n"), "/v1");
}

static void anything_in_it(void **state)
{
	char line[12000] = "3:memory:/";

	(void)state;
	assert_string_equal(parsed("0::/a\\012b\n1:x:/c\n"), "/a\nb");
	assert_string_equal(parsed("0::/0::/x y\t\xff\n"), "/0::/x y\t\xff");
	assert_string_equal(parsed("rubbish\n\n::\n0:\n0::\n5:x:relative\n1:cpu:/a\n"), "/a");
	assert_null(parsed(""));
	assert_null(parsed("no line"));
	assert_null(parsed("\n\n"));
	memset(line + strlen(line), 'x', 11000);
	assert_int_equal(strlen(parsed(line)), 11001);
}

/* We know all of it of ourselves. */
static void own_place(void **state)
{
	struct process p = { .pid = getpid(), .uid = 12345, .identified = true };
	char exe[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	(void)state;
	assert_true(n > 0);
	exe[n] = '\0';
	assert_int_equal(proc_place(&p, true), 0);
	assert_true(p.uid_known);
	assert_false(p.identified);
	assert_int_equal(p.uid, getuid());
	assert_string_equal(p.exe, exe);
	/* Nothing is new. */
	p.identified = true;
	assert_int_equal(proc_place(&p, true), 0);
	assert_true(p.identified);
	free(p.exe);
	free(p.cgroup);
}

/* The inherited place stays. */
static void gone(void **state)
{
	struct process p = { .pid = INT32_MAX, .uid = 7, .uid_known = true, .identified = true };

	(void)state;
	assert_true(proc_place(&p, false) < 0);
	assert_true(p.identified && p.uid_known);
	assert_int_equal(p.uid, 7);
	/* That pid is another process's. */
	p.pid = getpid();
	p.start_time_ns = 1;
	assert_int_equal(proc_place(&p, false), -ESTALE);
	assert_int_equal(p.uid, 7);
	assert_null(p.exe);
}

/* The event of its exec is still queued: /proc tells of the program behind it. */
static void another_program(void **state)
{
	struct process p = { .pid = getpid(), .comm = "bash", .uid = 12345, .identified = true };

	(void)state;
	assert_int_equal(proc_place(&p, true), -ESTALE);
	assert_null(p.exe);
	assert_null(p.cgroup);
	assert_true(p.identified && !p.uid_known);
	assert_int_equal(p.uid, 12345);
	/* Nor does it matter where the name is known to lag behind. */
	assert_int_equal(proc_place(&p, false), 0);
	assert_non_null(p.exe);
	assert_int_equal(p.uid, getuid());
	free(p.exe);
	free(p.cgroup);
	p = (struct process){ .pid = getpid() };
	strncat(p.comm, program_invocation_short_name, sizeof(p.comm) - 1);
	assert_int_equal(proc_place(&p, true), 0);
	free(p.exe);
	free(p.cgroup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unified),
		cmocka_unit_test(version_1),
		cmocka_unit_test(both),
		cmocka_unit_test(anything_in_it),
		cmocka_unit_test(own_place),
		cmocka_unit_test(gone),
		cmocka_unit_test(another_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
