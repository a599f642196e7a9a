/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups of helpers and their limits, in folders that stand for /sys/fs/cgroup. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "group.h"

/* A folder with files as the kernel makes them, in which what is written can be read. */
static char dir[64];

static void make_file(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static const char *text_of(const char *name)
{
	static char text[64];
	char path[128];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	close(fd);
	return text;
}

static int setup(void **state)
{
	static const char *const folders[] = { "dcpid", "helpers" };
	char path[128];

	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/dcpi-group-XXXXXX");
	assert_non_null(mkdtemp(dir));
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, folders[i]);
		assert_int_equal(mkdir(path, 0755), 0);
		snprintf(path, sizeof(path), "%s/cgroup.procs", folders[i]);
		make_file(path, "");
	}
	make_file("cgroup.subtree_control", "");
	return 0;
}

static int teardown(void **state)
{
	char line[128];

	(void)state;
	base_group_set(-1);
	snprintf(line, sizeof(line), "rm -r %s", dir);
	return system(line);
}

/* False: the file system of /tmp keeps no such marks. */
static bool mark(void)
{
	return setxattr(dir, "user.delegate", "1", 1, 0) == 0;
}

/* Nobody asked for it. */
static void others_groups_stay(void **state)
{
	struct base_err err = { 0 };

	(void)state;
	assert_int_equal(group_divide(dir, &err), -ENOENT);
	assert_int_equal(err.code, 0);
	assert_string_equal(text_of("dcpid/cgroup.procs"), "");
	if (mark() && setxattr(dir, "user.delegate", "0", 1, 0) == 0)
		assert_int_equal(group_divide(dir, &err), -ENOENT);
	assert_int_equal(group_divide("/nowhere", &err), -ENOENT);
	assert_int_equal(err.code, 0);
}

static void helpers_have_limits(void **state)
{
	struct base_err err = { 0 };
	int fd;

	(void)state;
	if (!mark())
		skip();
	make_file("memory.max", "800000000\n");
	make_file("helpers/memory.max", "");
	make_file("helpers/pids.max", "");
	make_file("helpers/cpu.max", "");
	fd = group_divide(dir, &err);
	assert_true(fd >= 0);
	assert_string_equal(text_of("dcpid/cgroup.procs"), "0");
	/* The last one, over what the others left in this file. */
	assert_memory_equal(text_of("cgroup.subtree_control"), "+cpu", 4);
	assert_string_equal(text_of("helpers/memory.max"), "400000000");
	assert_string_equal(text_of("helpers/pids.max"), "48");
	assert_string_equal(text_of("helpers/cpu.max"), "400000 100000");
	base_group_set(fd);
	base_group_join(4711);
	assert_string_equal(text_of("helpers/cgroup.procs"), "4711");
	close(fd);
}

/* A manager may keep controllers for itself; without a limit all of the machine counts. */
static void some_controllers_lack(void **state)
{
	uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	struct base_err err = { 0 };
	char half[32];
	int fd;

	(void)state;
	if (!mark())
		skip();
	make_file("memory.max", "max\n");
	make_file("helpers/memory.max", "");
	fd = group_divide(dir, &err);
	assert_true(fd >= 0);
	close(fd);
	snprintf(half, sizeof(half), "%llu", (unsigned long long)(all / 2));
	assert_string_equal(text_of("helpers/memory.max"), half);
}

/* The hierarchy may be mounted read-only. */
static void refusals_are_told(void **state)
{
	struct base_err err = { 0 };
	char path[128];

	(void)state;
	if (!mark())
		skip();
	snprintf(path, sizeof(path), "%s/dcpid/cgroup.procs", dir);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(group_divide(dir, &err), -ENOENT);
	assert_non_null(strstr(err.text, "cannot divide control group '/tmp/"));
}

static void own_group_is_found(void **state)
{
	char path[4096] = "", small[4];

	(void)state;
	if (!group_own("/sys/fs/cgroup", path, sizeof(path)))
		skip();
	assert_memory_equal(path, "/sys/fs/cgroup/", 15);
	assert_null(strchr(path, '\n'));
	assert_false(group_own("/sys/fs/cgroup", small, sizeof(small)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(others_groups_stay, setup, teardown),
		cmocka_unit_test_setup_teardown(helpers_have_limits, setup, teardown),
		cmocka_unit_test_setup_teardown(some_controllers_lack, setup, teardown),
		cmocka_unit_test_setup_teardown(refusals_are_told, setup, teardown),
		cmocka_unit_test(own_group_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
