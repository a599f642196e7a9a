/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that were removed while a process, which we are, has them mapped. */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "jit_internal.h"
#include "tracker.h"

enum { LEN = 4096, STRANGER = 54321 };

/* The mapped file; @fd can write to it. */
struct mapped {
	char path[128];
	int fd;
	struct map map;
};

static int find_code(void *ctx, const struct base_segment *s)
{
	if (s->type != PT_LOAD || !s->exec)
		return 0;
	*(uint64_t *)ctx = s->off;
	return 1;
}

static void fill(int fd)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char bytes[65536];
	ssize_t n;

	assert_true(from >= 0);
	while ((n = read(from, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(fd, bytes, (size_t)n), n);
	close(from);
}

/* Its image is as the reader tells. */
static void map_file(struct tracker *t, struct mapped *m)
{
	struct driver_load l = { .path = m->path, .len = LEN };
	struct reader_dump dump = { .fd = -1 };
	struct base_id id;
	struct stat st;
	void *at = mmap(NULL, LEN, PROT_READ | PROT_EXEC, MAP_PRIVATE, m->fd, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(fstat(m->fd, &st), 0);
	l.addr = (uintptr_t)at;
	l.inode = st.st_ino;
	l.dev_major = major(st.st_dev);
	l.dev_minor = minor(st.st_dev);
	assert_int_equal(reader_image_id(t->reader, getpid(), getuid(), &l, &id, &dump), 0);
	assert_true(dump.fd < 0);
	m->map = (struct map){ .start = l.addr,
			       .end = l.addr + LEN,
			       .kind = MAP_IMAGE,
			       .image = image_get(images_get_file(t->images, &id, &dump.text,
								  m->path, "x.so")) };
}

static void make(struct tracker *t, struct mapped *m, mode_t mode)
{
	snprintf(m->path, sizeof(m->path), "%s/x.so", t->dir);
	m->fd = open(m->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(m->fd >= 0);
	fill(m->fd);
	assert_int_equal(fchmod(m->fd, mode), 0);
}

static void unmap(struct mapped *m)
{
	munmap((void *)(uintptr_t)m->map.start, LEN);
	image_put(m->map.image);
	close(m->fd);
}

/* At a time when all are due. */
static void look(const struct tracker *t)
{
	for (size_t i = 0; i < t->dyn->nr_files; i++)
		t->dyn->files[i].next_ns = 0;
	dyn_files_look(t->dyn);
}

/* A sample in it, while it has no name any more. */
static void sample_removed(struct tracker *t, struct mapped *m)
{
	assert_int_equal(unlink(m->path), 0);
	dyn_sampled(t->dyn, &t->p, &m->map);
	look(t);
}

static unsigned int nr_copies(const struct tracker *t)
{
	struct dirent *entry;
	unsigned int nr = 0;
	struct base_id id;
	DIR *dir;

	assert_int_equal(base_dir_open(profdb_dyn_fd(t->db), ".", &dir), 0);
	while ((entry = readdir(dir)))
		nr += base_copy_id(entry->d_name, &id) == 0 || !strncmp(entry->d_name, ".tmp", 4);
	closedir(dir);
	return nr;
}

static const char *name_of(const struct mapped *m)
{
	static char name[BASE_COPY_NAME_LEN];

	base_copy_name(&m->map.image->id, &m->map.image->text, name);
	return name;
}

static struct stat copy_of(const struct tracker *t, const struct mapped *m)
{
	struct stat st = { 0 };

	assert_int_equal(fstatat(profdb_dyn_fd(t->db), name_of(m), &st, 0), 0);
	return st;
}

static bool is_equal(const struct tracker *t, const struct mapped *m)
{
	struct base_buf a = { 0 }, b = { 0 };
	struct base_err err = { 0 };
	bool equal;

	assert_true(base_file_read(profdb_dyn_fd(t->db), name_of(m), 1 << 26, &a, &err) >= 0);
	assert_true(base_file_read(AT_FDCWD, "/proc/self/exe", 1 << 26, &b, &err) >= 0);
	equal = a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
	base_buf_release(&a);
	base_buf_release(&b);
	return equal;
}

/* What other processes have mapped is opened by a right of root's. */
#define ROOTS_TRACKER(state)                                                                       \
	TRACKER(state);                                                                            \
	if (geteuid() != 0)                                                                        \
	skip()

static void keeps_what_was_removed(void **state)
{
	struct mapped m;
	struct dyn_stats stats;

	ROOTS_TRACKER(state);
	make(t, &m, 0755);
	map_file(t, &m);
	dyn_sampled(t->dyn, &t->p, &m.map);
	assert_true(m.map.image->watched);
	look(t);
	/* It has a name: the tools will find it. */
	assert_int_equal(nr_copies(t), 0);
	assert_true(t->dyn->files[0].next_ns > base_now_ns());
	assert_int_equal(unlink(m.path), 0);
	look(t);
	assert_int_equal(nr_copies(t), 1);
	assert_true(is_equal(t, &m));
	assert_int_equal(copy_of(t, &m).st_mode & 0777, 0640);
	dyn_stats_get(t->dyn, &stats);
	assert_int_equal(stats.files_kept, 1);
	unmap(&m);
}

static uint64_t wait_by_age(const struct stat *st)
{
	time_t age_s = time(NULL) - st->st_ctime;

	return age_s < 1 ? 1 : age_s > 64 ? 64 : (uint64_t)age_s;
}

/* An old file is left alone for as long as it is old, up to 64 s. */
static void waits_by_age(void **state)
{
	struct mapped m = { .path = "/proc/self/exe" };
	uint64_t least, wait_s;
	struct stat st;

	ROOTS_TRACKER(state);
	m.fd = open(m.path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(m.fd, &st), 0);
	map_file(t, &m);
	dyn_sampled(t->dyn, &t->p, &m.map);
	least = wait_by_age(&st);
	look(t);
	wait_s = t->dyn->files[0].wait_ns / 1000000000;
	assert_in_range(wait_s, least, wait_by_age(&st));
	/* The next one is twice as long. */
	look(t);
	assert_in_range(t->dyn->files[0].wait_ns / 1000000000, wait_s < 32 ? 2 * wait_s : 64, 64);
	unmap(&m);
}

/* For the gc it is newer than the last flush; a copy that somebody removed is made again. */
static void spares_its_copies(void **state)
{
	const struct timespec long_ago[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	struct mapped m;

	ROOTS_TRACKER(state);
	make(t, &m, 0755);
	map_file(t, &m);
	sample_removed(t, &m);
	assert_int_equal(utimensat(profdb_dyn_fd(t->db), name_of(&m), long_ago, 0), 0);
	dyn_files_spare(t->dyn);
	assert_true(copy_of(t, &m).st_mtim.tv_sec > 1000);
	assert_int_equal(unlinkat(profdb_dyn_fd(t->db), name_of(&m), 0), 0);
	dyn_spare_images(t->dyn);
	look(t);
	assert_int_equal(nr_copies(t), 1);
	/* Its process is gone, and what was counted is written. */
	unmap(&m);
	look(t);
	assert_int_equal(t->dyn->nr_files, 0);
	images_drop_unused(t->images);
	assert_int_equal(images_nr(t->images), 0);
}

/* A private file stays its owner's; a memfd is private whatever its mode says. */
static void gives_nobody_more(void **state)
{
	static const mode_t modes[] = { 0755, 0700 };
	struct mapped m;

	ROOTS_TRACKER(state);
	for (size_t i = 0; i < 2; i++) {
		make(t, &m, modes[i]);
		assert_int_equal(fchown(m.fd, STRANGER, STRANGER), 0);
		map_file(t, &m);
		sample_removed(t, &m);
		/* The group's bits are the mask of the list. */
		assert_int_equal(copy_of(t, &m).st_mode & 07707, 0600);
		assert_int_equal(copy_of(t, &m).st_uid, geteuid());
		assert_int_equal(base_reader_of(profdb_dyn_fd(t->db), name_of(&m)), STRANGER);
		assert_int_equal(unlinkat(profdb_dyn_fd(t->db), name_of(&m), 0), 0);
		unmap(&m);
		look(t);
		images_drop_unused(t->images);
	}
	strcpy(m.path, "/memfd:x");
	m.fd = memfd_create("x", MFD_CLOEXEC);
	fill(m.fd);
	map_file(t, &m);
	dyn_sampled(t->dyn, &t->p, &m.map);
	look(t);
	assert_true(is_equal(t, &m));
	assert_int_equal(copy_of(t, &m).st_mode & 0777, 0600);
	unmap(&m);
}

/* Written to after it was mapped, it is not what was counted. */
static void keeps_no_other_code(void **state)
{
	struct mapped m;
	uint64_t code = 0;

	ROOTS_TRACKER(state);
	make(t, &m, 0755);
	map_file(t, &m);
	assert_int_equal(base_elf_segments(m.fd, find_code, &code), 1);
	assert_int_equal(pwrite(m.fd, "?", 1, (off_t)code), 1);
	sample_removed(t, &m);
	assert_int_equal(nr_copies(t), 0);
	unmap(&m);
}

/* What a process maps may be anything; nothing of it is left behind. */
static void refuses_what_is_no_image(void **state)
{
	static const struct {
		off_t len;
		const char *head;
	} files[] = { { 65 << 20, "\177ELF" }, { 8192, "text" }, { 10, "\177ELF" } };

	ROOTS_TRACKER(state);
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		struct mapped m;

		make(t, &m, 0755);
		map_file(t, &m);
		assert_int_equal(ftruncate(m.fd, 0), 0);
		assert_int_equal(ftruncate(m.fd, files[i].len), 0);
		assert_int_equal(pwrite(m.fd, files[i].head, 4, 0), 4);
		sample_removed(t, &m);
		assert_int_equal(nr_copies(t), 0);
		assert_int_equal(t->dyn->nr_files, 0);
		unmap(&m);
		m.map.image->watched = false;
	}
}

static void does_without_what_is_gone(void **state)
{
	struct mapped m;

	ROOTS_TRACKER(state);
	make(t, &m, 0755);
	map_file(t, &m);
	munmap((void *)(uintptr_t)m.map.start, LEN);
	sample_removed(t, &m);
	assert_int_equal(nr_copies(t), 0);
	assert_int_equal(t->dyn->nr_files, 0);
	/* The next process that has it may tell. */
	assert_false(m.map.image->watched);
	image_put(m.map.image);
	close(m.fd);
}

/* The reader is not asked about a process that has ended. */
static void does_without_what_has_ended(void **state)
{
	struct reader *reader;
	struct mapped m;
	pid_t pid;

	ROOTS_TRACKER(state);
	make(t, &m, 0755);
	map_file(t, &m);
	pid = fork();
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	t->p.pid = pid;
	dyn_sampled(t->dyn, &t->p, &m.map);
	reader = t->dyn->config.reader;
	t->dyn->config.reader = NULL;
	look(t);
	t->dyn->config.reader = reader;
	assert_int_equal(t->dyn->nr_files, 0);
	assert_false(m.map.image->watched);
	t->p.pid = getpid();
	unmap(&m);
}

static void keeps_within_the_quota(void **state)
{
	struct budgets *b = budgets_new();
	struct mapped m;
	struct stat st;

	ROOTS_TRACKER(state);
	t->dyn->config.budgets = b;
	make(t, &m, 0755);
	assert_int_equal(fstat(m.fd, &st), 0);
	map_file(t, &m);
	t->dyn->config.quota = 4 * (uint64_t)st.st_size - 4;
	sample_removed(t, &m);
	assert_int_equal(nr_copies(t), 0);
	t->dyn->config.quota += 4;
	dyn_set_full(t->dyn, true, 0);
	look(t);
	assert_int_equal(nr_copies(t), 0);
	dyn_set_full(t->dyn, false, 0);
	look(t);
	assert_int_equal(nr_copies(t), 1);
	unmap(&m);
	dyn_files_release(t->dyn);
	t->dyn->config.budgets = NULL;
	budgets_free(b);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tracker_setup, tracker_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(keeps_what_was_removed),	 TEST(waits_by_age),
		TEST(spares_its_copies),	 TEST(gives_nobody_more),
		TEST(keeps_no_other_code),	 TEST(refuses_what_is_no_image),
		TEST(does_without_what_is_gone), TEST(does_without_what_has_ended),
		TEST(keeps_within_the_quota),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
