/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base.h"

static mode_t mode_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_mode & 0777;
}

static void test_one_reader(void **state)
{
	char path[] = "/tmp/dcpi-acl-XXXXXX";
	int fd = mkstemp(path), r;

	(void)state;
	assert_true(fd >= 0);
	unlink(path);
	assert_true(base_reader_get(fd) == UINT32_MAX);
	assert_int_equal(base_reader_clear(fd), 0);
	r = base_reader_set(fd, 1000, false);
	if (r == -ENOTSUP) {
		close(fd);
		print_message("skipped: no lists of readers on the file system of /tmp\n");
		return;
	}
	assert_int_equal(r, 0);
	assert_int_equal(base_reader_get(fd), 1000);
	/* Where a mode has its group the list's mask stands. */
	assert_int_equal(mode_of(fd), 0640);
	assert_int_equal(base_reader_set(fd, 1001, true), 0);
	assert_int_equal(base_reader_get(fd), 1001);
	/* More than that nobody here has set: it tells nothing. */
	assert_int_equal(fchmod(fd, 0644), 0);
	assert_true(base_reader_get(fd) == UINT32_MAX);
	assert_int_equal(base_reader_clear(fd), 0);
	assert_true(base_reader_get(fd) == UINT32_MAX);
	assert_int_equal(mode_of(fd), 0600);
	close(fd);
	assert_int_equal(base_reader_set(fd, 1000, false), -EBADF);
	assert_int_equal(base_reader_clear(fd), -EBADF);
}

static void test_of_a_file(void **state)
{
	char path[] = "/tmp/dcpi-acl-XXXXXX";
	int fd = mkstemp(path), r;

	(void)state;
	assert_true(fd >= 0);
	assert_true(base_reader_of(AT_FDCWD, path) == UINT32_MAX);
	r = base_reader_set(fd, 1000, true);
	close(fd);
	if (r >= 0)
		assert_int_equal(base_reader_of(AT_FDCWD, path), 1000);
	else
		print_message("skipped: no lists of readers on the file system of /tmp\n");
	unlink(path);
	assert_true(base_reader_of(AT_FDCWD, path) == UINT32_MAX);
}

static void test_folder(void **state)
{
	char path[] = "/tmp/dcpi-acl-XXXXXX";
	int fd, r;

	(void)state;
	assert_non_null(mkdtemp(path));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = base_reader_set(fd, 1000, true);
	if (r != -ENOTSUP) {
		assert_int_equal(r, 0);
		assert_int_equal(mode_of(fd), 0750);
	}
	close(fd);
	rmdir(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_one_reader),
					    cmocka_unit_test(test_folder),
					    cmocka_unit_test(test_of_a_file) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
