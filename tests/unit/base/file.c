/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "folder.h"

static void check_content(const char *name, const char *expected)
{
	struct base_buf b = { 0 };

	assert_int_equal(base_file_read(dir_fd, name, 1000, &b, &err), 0);
	assert_int_equal(b.len, strlen(expected));
	assert_memory_equal(b.data, expected, b.len);
	base_buf_release(&b);
}

static void path_name(void **state)
{
	(void)state;
	assert_string_equal(base_path_name("/usr/lib/x.so"), "x.so");
	assert_string_equal(base_path_name("x.so"), "x.so");
	assert_string_equal(base_path_name("/x/"), "/x/");
	assert_string_equal(base_path_name(""), "");
}

static void write_and_replace(void **state)
{
	struct stat st;

	(void)state;
	umask(022);
	assert_int_equal(base_file_write(dir_fd, "f", 0640, "first", 5, &err), 0);
	check_content("f", "first");
	assert_int_equal(fstatat(dir_fd, "f", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(base_file_write(dir_fd, "f", 0444, "2nd", 3, &err), 0);
	check_content("f", "2nd");
	assert_int_equal(base_file_write(dir_fd, "f", 0444, NULL, 0, &err), 0);
	check_content("f", "");
	assert_int_equal(count_or_clear(false), 1);
	assert_int_equal(err.code, 0);
}

static void paths(void **state)
{
	char path[600];

	(void)state;
	assert_int_equal(mkdirat(dir_fd, "sub", 0755), 0);
	assert_int_equal(base_file_write(dir_fd, "sub/f", 0644, "1", 1, &err), 0);
	check_content("sub/f", "1");
	unlinkat(dir_fd, "sub/f", 0);
	snprintf(path, sizeof(path), "%s/g", dir);
	assert_int_equal(base_file_write(AT_FDCWD, path, 0644, "2", 1, &err), 0);
	assert_int_equal(base_file_write(-1, path, 0644, "3", 1, &err), 0);
	check_content("g", "3");
	assert_int_equal(fchdir(dir_fd), 0);
	assert_int_equal(base_file_write(AT_FDCWD, "h", 0644, "4", 1, &err), 0);
	check_content("h", "4");
	assert_int_equal(chdir("/"), 0);
}

static void long_names(void **state)
{
	char name[300];

	(void)state;
	memset(name, 'n', sizeof(name));
	name[255] = '\0';
	assert_int_equal(base_file_write(dir_fd, name, 0644, "x", 1, &err), 0);
	check_content(name, "x");
	name[255] = 'n';
	name[256] = '\0';
	assert_int_equal(base_file_write(dir_fd, name, 0644, "x", 1, &err), -ENAMETOOLONG);
}

static void nothing_before_commit(void **state)
{
	struct base_file f;

	(void)state;
	assert_int_equal(base_file_write(dir_fd, "f", 0644, "old", 3, &err), 0);
	assert_int_equal(base_file_create(&f, dir_fd, "f", 0644, &err), 0);
	assert_int_equal(base_write_all(f.fd, "new", 3), 0);
	assert_memory_equal(f.tmp, ".tmp-", 5);
	assert_int_equal(faccessat(dir_fd, f.tmp, F_OK, 0), 0);
	assert_true(fcntl(f.fd, F_GETFD) & FD_CLOEXEC);
	check_content("f", "old");
	assert_int_equal(base_file_commit(&f, &err), 0);
	check_content("f", "new");
	assert_int_equal(f.fd, -1);
	assert_int_equal(count_or_clear(false), 1);
	assert_int_equal(base_file_commit(&f, NULL), -EBADF);
	base_file_abort(&f);
	check_content("f", "new");
}

static void abort_leaves_nothing(void **state)
{
	struct base_file f, zero = { 0 };

	(void)state;
	base_file_abort(&zero);
	assert_int_equal(base_file_write(dir_fd, "f", 0644, "old", 3, &err), 0);
	assert_int_equal(base_file_create(&f, dir_fd, "f", 0644, &err), 0);
	assert_int_equal(base_write_all(f.fd, "new", 3), 0);
	base_file_abort(&f);
	base_file_abort(&f);
	check_content("f", "old");
	assert_int_equal(count_or_clear(false), 1);
}

/* Whoever may make names in the folder can guess ours: nothing is written through a link, or into a
 * file that somebody has open. */
static void planted_names_are_passed_over(void **state)
{
	char name[64];

	(void)state;
	assert_int_equal(base_file_write(dir_fd, "victim", 0644, "precious", 8, &err), 0);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), ".tmp-%ld-%d-f", (long)getpid(), i);
		assert_int_equal(i % 2 ? symlinkat("victim", dir_fd, name)
				       : linkat(dir_fd, "victim", dir_fd, name, 0),
				 0);
	}
	assert_int_equal(base_file_write(dir_fd, "f", 0644, "ours", 4, &err), 0);
	check_content("f", "ours");
	check_content("victim", "precious");
}

static void a_zeroed_object_owns_no_descriptor(void **state)
{
	struct base_file zero = { 0 };
	int fd = dup(STDIN_FILENO), null = open("/dev/null", O_RDONLY);

	(void)state;
	assert_true(dup2(null, STDIN_FILENO) == STDIN_FILENO);
	base_file_abort(&zero);
	assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
	if (fd >= 0)
		dup2(fd, STDIN_FILENO);
	close(fd);
	close(null);
}

static void refused_names(void **state)
{
	struct base_file f;

	(void)state;
	assert_int_equal(base_file_create(&f, dir_fd, "", 0644, &err), -EISDIR);
	assert_int_equal(f.fd, -1);
	base_file_abort(&f);
	assert_int_equal(base_file_create(&f, dir_fd, "sub/", 0644, NULL), -EISDIR);
	assert_int_equal(base_file_create(&f, dir_fd, "..", 0644, NULL), -EISDIR);
	assert_int_equal(base_file_create(&f, dir_fd, "./.", 0644, NULL), -EISDIR);
	assert_int_equal(base_file_create(&f, dir_fd, "none/f", 0644, NULL), -ENOENT);
	memset(&err, 0, sizeof(err));
	assert_int_equal(base_file_write(dir_fd, "none/f", 0644, "", 0, &err), -ENOENT);
	assert_string_equal(err.text, "cannot create 'none/f': No such file or directory");
	assert_int_equal(base_file_write(dir_fd, "f", 0644, "x", 1, NULL), 0);
	assert_int_equal(base_file_write(dir_fd, "f/g", 0644, "x", 1, NULL), -ENOTDIR);
	assert_int_equal(count_or_clear(false), 1);
}

static void final_name_is_a_folder(void **state)
{
	struct base_file f;

	(void)state;
	assert_int_equal(mkdirat(dir_fd, "sub", 0755), 0);
	assert_int_equal(base_file_create(&f, dir_fd, "sub", 0644, &err), 0);
	assert_int_equal(base_file_commit(&f, &err), -EISDIR);
	assert_string_equal(err.text, "cannot complete 'sub': Is a directory");
	assert_int_equal(f.fd, -1);
	assert_int_equal(count_or_clear(false), 1);
	base_file_abort(&f);
}

/* Where a device, a FIFO or our standard output is, no file comes in its place. */
static void what_is_no_file_is_written_in_place(void **state)
{
	char path[600], link[600], got[8] = "";
	struct base_file f;
	struct stat st;
	int fd, saved;

	(void)state;
	snprintf(path, sizeof(path), "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(base_output_write(path, 0644, "to it", 5, &err), 0);
	assert_int_equal(read(fd, got, sizeof(got)), 5);
	assert_string_equal(got, "to it");
	assert_int_equal(base_output_create(&f, path, 0644, &err), 0);
	base_file_abort(&f);
	assert_int_equal(base_file_commit(&f, NULL), -EBADF);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	close(fd);

	snprintf(path, sizeof(path), "%s/out", dir);
	snprintf(link, sizeof(link), "%s/stdout", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	assert_true(fd >= 0 && saved >= 0 && dup2(fd, STDOUT_FILENO) == STDOUT_FILENO);
	assert_int_equal(write(fd, "1", 1), 1);
	assert_int_equal(symlinkat("/proc/self/fd/1", dir_fd, "stdout"), 0);
	assert_int_equal(base_output_write(link, 0644, "2", 1, &err), 0);
	assert_int_equal(dup2(saved, STDOUT_FILENO), STDOUT_FILENO);
	close(fd);
	close(saved);
	check_content("out", "12");
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	/* A file is replaced as ever, and a folder refused. */
	assert_int_equal(base_output_write(path, 0644, "new", 3, &err), 0);
	check_content("out", "new");
	assert_true(base_output_write(dir, 0644, "x", 1, NULL) < 0);
	count_or_clear(true);
}

static void folder_not_writable(void **state)
{
	bool root = geteuid() == 0;

	(void)state;
	assert_int_equal(fchmod(dir_fd, 0555), 0);
	/* To root every folder is writable. */
	if (root)
		assert_int_equal(seteuid(65534), 0);
	assert_int_equal(base_file_write(dir_fd, "f", 0644, "x", 1, &err), -EACCES);
	if (root)
		assert_int_equal(seteuid(0), 0);
	assert_string_equal(err.text, "cannot create 'f': Permission denied");
	assert_int_equal(count_or_clear(false), 0);
}

/* A file may not grow beyond 100 bytes: stands for the full disk. */
static void write_fails_midway(void **state)
{
	struct rlimit old, small;
	char data[1000] = { 0 };
	int r;

	(void)state;
	assert_int_equal(base_file_write(dir_fd, "f", 0644, "old", 3, &err), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = (struct rlimit){ .rlim_cur = 100, .rlim_max = old.rlim_max };
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	r = base_file_write(dir_fd, "f", 0644, data, sizeof(data), &err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(r, -EFBIG);
	assert_string_equal(err.text, "cannot write 'f': File too large");
	check_content("f", "old");
	assert_int_equal(count_or_clear(false), 1);
}

static void two_at_once(void **state)
{
	struct base_file a, b;

	(void)state;
	assert_int_equal(base_file_create(&a, dir_fd, "f", 0644, &err), 0);
	assert_int_equal(base_file_create(&b, dir_fd, "f", 0644, &err), 0);
	assert_int_equal(base_write_all(a.fd, "aa", 2), 0);
	assert_int_equal(base_write_all(b.fd, "b", 1), 0);
	assert_int_equal(base_file_commit(&b, &err), 0);
	check_content("f", "b");
	assert_int_equal(base_file_commit(&a, &err), 0);
	check_content("f", "aa");
}

static void file_systems(void **state)
{
	int proc = open("/proc/self", O_RDONLY | O_DIRECTORY), r;

	(void)state;
	assert_int_equal(base_file_write(dir_fd, "f", 0644, "x", 1, NULL), 0);
	r = base_sync_file_system(dir_fd);
	assert_true(r == 0 || r == 1);
	/* Not a disk of this machine, and no descriptor at all. */
	assert_int_equal(base_sync_file_system(proc), 0);
	assert_int_equal(base_sync_file_system(-1), 0);
	if (proc >= 0)
		close(proc);
}

static void descriptors_do_not_leak(void **state)
{
	int first = dup(dir_fd), last;
	struct base_buf b = { 0 };
	struct base_file f;

	(void)state;
	close(first);
	base_file_write(dir_fd, "f", 0644, "x", 1, NULL);
	base_file_write(dir_fd, "none/f", 0644, "x", 1, NULL);
	base_file_create(&f, dir_fd, "f", 0644, NULL);
	base_file_abort(&f);
	base_file_read(dir_fd, "f", 9, &b, NULL);
	base_file_read(dir_fd, "f", 0, &b, NULL);
	base_file_read(dir_fd, ".", 9, &b, NULL);
	base_buf_release(&b);
	last = dup(dir_fd);
	close(last);
	assert_int_equal(first, last);
}

static void waiting_for_what_can_be_read(void **state)
{
	unsigned int left_ms = 30;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(base_wait_readable(ends[0], &left_ms), -ETIMEDOUT);
	assert_int_equal(left_ms, 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	/* What is there is taken, whatever is left. */
	assert_int_equal(base_wait_readable(ends[0], &left_ms), 0);
	assert_int_equal(read(ends[0], &(char){ 0 }, 1), 1);
	left_ms = 10000;
	close(ends[1]);
	assert_int_equal(base_wait_readable(ends[0], &left_ms), 0);
	assert_true(left_ms > 0);
	close(ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FOLDER(path_name),
		IN_FOLDER(write_and_replace),
		IN_FOLDER(paths),
		IN_FOLDER(long_names),
		IN_FOLDER(nothing_before_commit),
		IN_FOLDER(abort_leaves_nothing),
		IN_FOLDER(planted_names_are_passed_over),
		IN_FOLDER(a_zeroed_object_owns_no_descriptor),
		IN_FOLDER(refused_names),
		IN_FOLDER(final_name_is_a_folder),
		IN_FOLDER(what_is_no_file_is_written_in_place),
		IN_FOLDER(folder_not_writable),
		IN_FOLDER(write_fails_midway),
		IN_FOLDER(two_at_once),
		IN_FOLDER(file_systems),
		IN_FOLDER(descriptors_do_not_leak),
		IN_FOLDER(waiting_for_what_can_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
