/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "folder.h"

static void read_limits(void **state)
{
	struct base_buf b = { 0 };

	(void)state;
	assert_int_equal(base_file_write(dir_fd, "f", 0644, "12345", 5, &err), 0);
	assert_int_equal(base_file_read(dir_fd, "f", 5, &b, &err), 0);
	assert_int_equal(b.len, 5);
	assert_int_equal(base_file_read(dir_fd, "f", SIZE_MAX, &b, &err), 0);
	assert_int_equal(b.len, 5);
	assert_int_equal(base_file_read(dir_fd, "f", 4, &b, &err), -DCPI_ELIMIT);
	assert_string_equal(err.text, "cannot read 'f': larger than 4 bytes");
	assert_int_equal(b.len, 0);
	assert_int_equal(base_file_write(dir_fd, "e", 0644, "", 0, NULL), 0);
	assert_int_equal(base_file_read(dir_fd, "e", 0, &b, NULL), 0);
	/* fstat says 0 of these. */
	assert_int_equal(base_file_read(AT_FDCWD, "/proc/self/status", 1 << 20, &b, NULL), 0);
	assert_true(b.len > 100);
	assert_int_equal(base_file_read(AT_FDCWD, "/proc/self/status", 20, &b, NULL), -DCPI_ELIMIT);
	base_buf_release(&b);
}

/* Modes decide, whoever asks: the right of root to read is no right of everybody. */
static void read_public(void **state)
{
	struct base_buf b = { 0 };
	char path[300], link[300];

	(void)state;
	snprintf(path, sizeof(path), "%s/f", dir);
	snprintf(link, sizeof(link), "%s/link", dir);
	assert_int_equal(base_file_write(dir_fd, "f", 0644, "12345", 5, &err), 0);
	assert_int_equal(symlink("f", link), 0);
	assert_int_equal(fchmod(dir_fd, 0700), 0);
	assert_int_equal(base_file_read_public(path, 5, &b, &err), -EACCES);
	assert_non_null(strstr(err.text, "not everybody may read"));
	assert_int_equal(fchmod(dir_fd, 0711), 0);
	assert_int_equal(base_file_read_public(path, 5, &b, &err), 0);
	assert_int_equal(b.len, 5);
	assert_int_equal(base_file_read_public(link, 5, &b, &err), 0);
	assert_int_equal(base_file_read_public(path, 4, &b, NULL), -DCPI_ELIMIT);
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(base_file_read_public(path, 5, &b, NULL), -EACCES);
	assert_int_equal(base_file_read_public(link, 5, &b, NULL), -EACCES);
	assert_int_equal(base_file_read_public(dir, 5, &b, NULL), -EACCES);
	assert_int_equal(base_file_read_public("nowhere", 5, &b, NULL), -ENOENT);
	assert_int_equal(unlink(link), 0);
	base_buf_release(&b);
}

static void read_large(void **state)
{
	struct base_buf b = { 0 }, got = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 100000; i++)
		assert_int_equal(base_buf_append(&b, &i, sizeof(i)), 0);
	assert_int_equal(base_file_write(dir_fd, "f", 0644, b.data, b.len, &err), 0);
	assert_int_equal(base_file_read(dir_fd, "f", b.len, &got, &err), 0);
	assert_int_equal(got.len, b.len);
	assert_memory_equal(got.data, b.data, b.len);
	base_buf_release(&b);
	base_buf_release(&got);
}

static void only_regular_files(void **state)
{
	int opened = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	struct inotify_event event;
	struct base_buf b = { 0 };
	char path[64];

	(void)state;
	/* Should it block after all, die rather than wait. */
	alarm(60);
	assert_int_equal(mkfifoat(dir_fd, "fifo", 0644), 0);
	assert_int_equal(symlinkat("fifo", dir_fd, "link"), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d/fifo", dir_fd);
	assert_true(inotify_add_watch(opened, path, IN_OPEN) >= 0);
	assert_int_equal(base_file_read(dir_fd, "fifo", 100, &b, &err), -EINVAL);
	assert_string_equal(err.text, "cannot read 'fifo': not a regular file");
	assert_int_equal(base_file_read(dir_fd, "link", 100, &b, NULL), -EINVAL);
	/* To open some does something: it was not. */
	assert_int_equal(read(opened, &event, sizeof(event)), -1);
	close(opened);
	assert_int_equal(base_file_read(AT_FDCWD, "/dev/zero", 100, &b, NULL), -EINVAL);
	assert_int_equal(base_file_read(dir_fd, ".", 100, &b, NULL), -EISDIR);
	memset(&err, 0, sizeof(err));
	assert_int_equal(base_file_read(dir_fd, "none", 100, &b, &err), -ENOENT);
	assert_string_equal(err.text, "cannot open 'none': No such file or directory");
	alarm(0);
	base_buf_release(&b);
}

static void whole_transfers(void **state)
{
	int fd = openat(dir_fd, "f", O_RDWR | O_CREAT, 0644);
	char got[10] = "";

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(base_write_all(fd, "hello", 5), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(base_read_all(fd, got, 3), 0);
	assert_string_equal(got, "hel");
	assert_int_equal(base_read_all(fd, got, 3), -DCPI_ETRUNCATED);
	assert_int_equal(base_read_all(fd, got, 0), 0);
	close(fd);
	assert_int_equal(base_read_all(-1, got, 1), -EBADF);
	assert_int_equal(base_write_all(-1, got, 1), -EBADF);
	assert_int_equal(base_write_all(-1, got, 0), 0);
}

static void on_alarm(int sig)
{
	(void)sig;
}

/* A full pipe cuts writes short, and timers without SA_RESTART interrupt both ends. */
static void short_and_interrupted(void **state)
{
	const struct itimerval tick = { { 0, 2000 }, { 0, 2000 } }, off = { 0 };
	struct sigaction act = { .sa_handler = on_alarm };
	static uint8_t data[1 << 20], got[1 << 20];
	int pipes[2];
	uint8_t more;
	pid_t pid;

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i ^ i >> 8);
	assert_int_equal(pipe(pipes), 0);
	sigaction(SIGALRM, &act, NULL);
	pid = fork();
	assert_true(pid >= 0);
	setitimer(ITIMER_REAL, &tick, NULL);
	if (pid == 0)
		_exit(base_write_all(pipes[1], data, sizeof(data)) < 0);
	close(pipes[1]);
	for (size_t at = 0; at < sizeof(data); at += 128 << 10) {
		usleep(5000);
		assert_int_equal(base_read_all(pipes[0], got + at, 128 << 10), 0);
	}
	setitimer(ITIMER_REAL, &off, NULL);
	assert_int_equal(base_read_all(pipes[0], &more, 1), -DCPI_ETRUNCATED);
	assert_memory_equal(got, data, sizeof(got));
	close(pipes[0]);
	waitpid(pid, NULL, 0);
}

static void from_a_place(void **state)
{
	char got[8] = "";
	int fd;

	(void)state;
	assert_int_equal(base_file_write(dir_fd, "f", 0644, "0123456789", 10, &err), 0);
	fd = openat(dir_fd, "f", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	/* Wherever the descriptor stands, and it stays there. */
	assert_int_equal(lseek(fd, 1, SEEK_SET), 1);
	assert_int_equal(base_read_at(fd, 6, got, 4), 0);
	assert_memory_equal(got, "6789", 5);
	assert_int_equal(base_read_at(fd, 7, got, 4), -DCPI_ETRUNCATED);
	assert_int_equal(base_read_at(fd, 20, got, 1), -DCPI_ETRUNCATED);
	assert_int_equal(base_read_at(fd, 20, got, 0), 0);
	assert_int_equal(base_read_part(fd, 0, got, 3), 3);
	assert_memory_equal(got, "0129", 5);
	assert_int_equal(base_read_part(fd, 8, got, 4), 2);
	assert_memory_equal(got, "8929", 5);
	assert_int_equal(base_read_part(fd, 10, got, 4), 0);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 1);
	close(fd);
	assert_int_equal(base_read_at(-1, 0, got, 1), -EBADF);
	assert_int_equal(base_read_part(-1, 0, got, 1), 0);
}

static int nr_entries(DIR *d)
{
	int nr = 0;

	while (readdir(d))
		nr++;
	closedir(d);
	return nr;
}

static void folders(void **state)
{
	DIR *d;

	(void)state;
	assert_int_equal(base_file_write(dir_fd, "f", 0644, "", 0, &err), 0);
	assert_int_equal(mkdirat(dir_fd, "d", 0755), 0);
	/* Each time all of it: ".", "..", "f", "d". */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(base_dir_open(dir_fd, ".", &d), 0);
		assert_int_equal(nr_entries(d), 4);
	}
	assert_int_equal(base_dir_open(dir_fd, "d", &d), 0);
	assert_int_equal(nr_entries(d), 2);
	assert_int_equal(base_dir_open(dir_fd, "f", &d), -ENOTDIR);
	assert_int_equal(base_dir_open(dir_fd, "none", &d), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FOLDER(read_limits),	    IN_FOLDER(read_large),
		IN_FOLDER(read_public),	    IN_FOLDER(only_regular_files),
		IN_FOLDER(whole_transfers), IN_FOLDER(short_and_interrupted),
		IN_FOLDER(from_a_place),    IN_FOLDER(folders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
