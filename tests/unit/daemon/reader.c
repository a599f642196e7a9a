/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "budget.h"
#include "core.h"
#include "fake_registry.h"
#include "fast_clock.h"
#include "reader_internal.h"
#include "registry.h"
#include "small_elf.h"
#include "unwind.h"

static const uint8_t code[24] = { 0x31, 0xc0, 0xc3, 9, 9, 9 };

enum { LIMIT_MS = 20000 };

static unsigned int nr_before;

static int setup(void **state)
{
	struct base_err err = { 0 };
	struct reader *r = NULL;

	stride_ns = 0;
	nr_before = fake_nr_descriptors();
	if (!fake_can_exec("dcpid-reader")) {
		*state = NULL;
		return 0;
	}
	if (reader_open(fake_helper_dir(), &r, &err) < 0)
		fail_msg("%s", err.text);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	reader_close(*state);
	return fake_nr_descriptors() == nr_before ? 0 : -1;
}

#define READER(state)                                                                              \
	struct reader *r = *(state);                                                               \
	if (!r)                                                                                    \
	skip()

static char map_name[4096];

/* The mapping of ours that holds @addr, as the kernel's event tells of it. */
static struct driver_load mapping_of(uintptr_t addr)
{
	FILE *f = fopen("/proc/self/maps", "re");
	struct driver_load l = { .kind = DRIVER_LOAD_MMAP, .path = map_name };
	char line[8192];
	uint64_t end;
	int path = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %x:%x %" SCNu64 " %n",
			   &l.addr, &end, &l.file_off, &l.dev_major, &l.dev_minor, &l.inode,
			   &path) < 6)
			fail_msg("%s", line);
		if (addr >= l.addr && addr < end)
			break;
	}
	fclose(f);
	l.len = end - l.addr;
	line[strcspn(line, "\n")] = '\0';
	snprintf(map_name, sizeof(map_name), "%.4000s", line + path);
	return l;
}

static void test_image_id(void **state)
{
	struct base_id id = { 0 }, direct = { 0 };
	struct reader_dump dump = { .fd = -1 };
	struct driver_load l, gone;
	struct base_extent extent;
	int fd;

	READER(state);
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(registry_file_id(fd, &direct, NULL), 0);
	assert_int_equal(base_elf_extent(fd, &extent), 0);
	close(fd);
	l = mapping_of((uintptr_t)test_image_id);
	/* The second time it is known. */
	for (int i = 0; i < 2; i++) {
		dump.extent = (struct base_extent){ 0 };
		assert_int_equal(reader_image_id(r, getpid(), getuid(), &l, &id, &dump), 0);
		assert_true(base_id_equal(&id, &direct));
		assert_int_equal(dump.extent.start, extent.start);
		assert_int_equal(dump.extent.size, extent.size);
	}
	/* The process is gone, or has something else there: the path still leads to it. */
	id.len = 0;
	assert_int_equal(reader_image_id(r, INT32_MAX, getuid(), &l, &id, NULL), 0);
	assert_true(base_id_equal(&id, &direct));
	gone = l;
	gone.addr = 0x1000;
	assert_int_equal(reader_image_id(r, getpid(), getuid(), &gone, &id, NULL), 0);
	/* Neither does. */
	gone.path = "/nonexistent";
	assert_int_equal(reader_image_id(r, getpid(), getuid(), &gone, &id, NULL), -ENOENT);
	gone.path = "//anon";
	assert_true(reader_image_id(r, INT32_MAX, getuid(), &gone, &id, NULL) < 0);
}

static struct reader_mapped mapped(const struct driver_load *l)
{
	struct stat st;

	assert_int_equal(stat(l->path, &st), 0);
	return (struct reader_mapped){ .pid = getpid(),
				       .start = l->addr,
				       .end = l->addr + l->len,
				       .dev = (uint64_t)l->dev_major << 20 | l->dev_minor,
				       .inode = l->inode,
				       .size = (uint64_t)st.st_size };
}

/* The rule of this very code is known. */
static void check_table(struct unwind_table *t, const struct driver_load *l, uintptr_t addr)
{
	uint64_t off = addr - l->addr + l->file_off;

	assert_int_not_equal(unwind_find(t, off)->how, UNWIND_NONE);
	unwind_free(t);
}

static int wait_rows(struct reader *r, int result, struct unwind_table **t)
{
	struct reader_cost cost;

	*t = NULL;
	if (result < 0)
		return result;
	do
		result = reader_rows_take(r, 100, t, &cost);
	while (result == 1);
	return result;
}

static int rows(struct reader *r, const struct reader_mapped *m, int fd, struct unwind_table **t)
{
	return wait_rows(r, reader_rows_ask(r, m, fd), t);
}

static void test_rows(void **state)
{
	struct unwind_table *t = NULL;
	struct reader_mapped m, other;
	struct driver_load l;
	uintptr_t addr = (uintptr_t)test_rows;

	READER(state);
	l = mapping_of(addr);
	m = mapped(&l);
	assert_int_equal(rows(r, &m, -1, &t), 0);
	check_table(t, &l, addr);
	/* The process is gone: the path leads to the file, by its inode or its identity. */
	other = m;
	other.pid = INT32_MAX;
	assert_true(rows(r, &other, -1, &t) < 0);
	assert_null(t);
	other.path = l.path;
	assert_int_equal(rows(r, &other, -1, &t), 0);
	check_table(t, &l, addr);
	other.inode++;
	assert_true(rows(r, &other, -1, &t) < 0);
	assert_int_equal(reader_image_id(r, getpid(), getuid(), &l, &other.id, NULL), 0);
	assert_int_equal(rows(r, &other, -1, &t), 0);
	check_table(t, &l, addr);
	other.id.bytes[0]++;
	assert_int_equal(rows(r, &other, -1, &t), -ESTALE);
	/* It has grown since. */
	m.size--;
	assert_int_equal(rows(r, &m, -1, &t), -ESTALE);
}

static void test_rows_of_a_descriptor(void **state)
{
	const struct reader_mapped none = { 0 };
	struct unwind_table *t = NULL;
	int fd;

	READER(state);
	fd = kernel_vdso_open();
	if (fd >= 0) {
		assert_int_equal(rows(r, &none, fd, &t), 0);
		assert_true(t->nr_rows > 1);
		unwind_free(t);
		close(fd);
	}
	fd = memfd_create("no ELF", MFD_CLOEXEC);
	assert_int_equal(base_write_all(fd, code, sizeof(code)), 0);
	assert_true(rows(r, &none, fd, &t) < 0);
	assert_null(t);
	close(fd);
}

#if defined(__x86_64__)
static int32_t height_at(const struct unwind_table *t, const void *at)
{
	const struct unwind_rule *rule = unwind_find(t, (uint64_t)at);

	return rule->how == UNWIND_CFA && rule->base == UNWIND_SP ? rule->off : -1;
}

/* Entered by a jump, as the runtime says; the routine beside it is called. */
static void test_rows_of_told_code(void **state)
{
	/* sub $16, %rsp; nop; add $16, %rsp; jmp .+0x1005 */
	static const uint8_t bytes[] = { 0x48, 0x83, 0xec, 0x10, 0x90, 0x48, 0x83,
					 0xc4, 0x10, 0xe9, 0,	 0x10, 0,    0 };
	enum { PAGE = 65536 };
	uint8_t *memory =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *part = (uint8_t *)(((uintptr_t)memory + PAGE) & ~(uintptr_t)(PAGE - 1));
	const uint64_t start = (uintptr_t)part;
	const struct reader_routine routines[2] = { { start, 1, 0, 0 },
						    { start + 16, sizeof(bytes), 1, 1 } };
	struct wire_frame frames[2] = { { 0 }, { .cfa_off = 96, .fp_off = -16, .link_off = -24 } };
	struct reader_code c = { .pid = getpid(),
				 .start = start,
				 .end = start + 4096,
				 .routines = routines,
				 .nr = 2,
				 .frames = frames,
				 .nr_frames = 2 };
	struct unwind_table *t;

	READER(state);
	assert_true(memory != MAP_FAILED);
	part[0] = 0xc3;
	memcpy(part + 16, bytes, sizeof(bytes));
	assert_int_equal(wait_rows(r, reader_code_rows_ask(r, &c), &t), 0);
	assert_int_equal(height_at(t, part), 8);
	assert_int_equal(height_at(t, part + 16), 96);
	assert_int_equal(height_at(t, part + 20), 112);
	assert_int_equal(height_at(t, part + 25), 96);
	assert_int_equal(unwind_find(t, start + 20)->fp_words, -2);
	assert_int_equal(unwind_find(t, start + 20)->link_words, -3);
	unwind_free(t);
	/* Frames of a dump count as well, where the code proves nothing; not where it does. */
	frames[1].flags = WIRE_FRAME_FALLBACK;
	assert_int_equal(wait_rows(r, reader_code_rows_ask(r, &c), &t), 0);
	assert_int_equal(height_at(t, part + 20), 112);
	unwind_free(t);
	part[29] = 0xc3;
	memset(part + 25, 0x90, 4);
	assert_int_equal(wait_rows(r, reader_code_rows_ask(r, &c), &t), 0);
	assert_int_equal(height_at(t, part + 20), 24);
	unwind_free(t);
	/* Less than was said, or nonsense. */
	c.nr_frames = 1;
	assert_int_equal(wait_rows(r, reader_code_rows_ask(r, &c), &t), -EINVAL);
	c.nr_frames = 2;
	frames[1].cfa_off = 7;
	assert_int_equal(wait_rows(r, reader_code_rows_ask(r, &c), &t), -EINVAL);
	munmap(memory, 2 * PAGE);
}

/* Routines of this process's memory, of which two lie only partly in what is asked for. */
static void test_rows_of_code(void **state)
{
	/* push %rbx; sub $32, %rsp; call .+0x1005; add $32, %rsp; pop %rbx; ret */
	static const uint8_t bytes[] = { 0x53, 0x48, 0x83, 0xec, 0x20, 0xe8, 0,	   0x10,
					 0,    0,    0x48, 0x83, 0xc4, 0x20, 0x5b, 0xc3 };
	enum { LEN = sizeof(bytes), PAGE = 65536 };
	uint8_t *memory =
		mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct reader_routine routines[3];
	struct reader_code c = { .pid = getpid(), .routines = routines, .nr = 3 };
	struct unwind_table *t;

	READER(state);
	assert_true(memory != MAP_FAILED);
	c.start = ((uintptr_t)memory + PAGE) & ~(uint64_t)(PAGE - 1);
	c.end = c.start + PAGE;
	routines[0] = (struct reader_routine){ c.start - 8, LEN, 0, 0 };
	routines[1] = (struct reader_routine){ c.start + 100, LEN, 0, 0 };
	routines[2] = (struct reader_routine){ c.end - 3, LEN, 0, 0 };
	for (size_t i = 0; i < 3; i++)
		memcpy((void *)(uintptr_t)routines[i].addr, bytes, LEN);
	assert_int_equal(wait_rows(r, reader_code_rows_ask(r, &c), &t), 0);
	assert_int_equal(height_at(t, (void *)(uintptr_t)(c.start - 1)), -1);
	assert_int_equal(height_at(t, (void *)(uintptr_t)c.start), 48);
	assert_int_equal(height_at(t, (void *)(uintptr_t)(c.start + 7)), 8);
	assert_int_equal(height_at(t, (void *)(uintptr_t)(c.start + 8)), -1);
	assert_int_equal(height_at(t, (void *)(uintptr_t)(c.start + 100)), 8);
	assert_int_equal(height_at(t, (void *)(uintptr_t)(c.start + 101)), 16);
	assert_int_equal(height_at(t, (void *)(uintptr_t)(c.start + 105)), 48);
	assert_int_equal(height_at(t, (void *)(uintptr_t)(c.start + 116)), -1);
	assert_int_equal(height_at(t, (void *)(uintptr_t)(c.end - 2)), 16);
	assert_int_equal(height_at(t, (void *)(uintptr_t)c.end), -1);
	unwind_free(t);
	/* One lies where there is no memory, and has no rules. */
	munmap((void *)(uintptr_t)(c.start & ~4095ull), 4096);
	assert_int_equal(wait_rows(r, reader_code_rows_ask(r, &c), &t), 0);
	assert_int_equal(height_at(t, (void *)(uintptr_t)(c.start + 100)), -1);
	assert_int_equal(height_at(t, (void *)(uintptr_t)(c.end - 2)), 16);
	unwind_free(t);
	/* Out of order. */
	routines[1].addr = routines[0].addr;
	assert_int_equal(wait_rows(r, reader_code_rows_ask(r, &c), &t), -EINVAL);
	assert_null(t);
	c.pid = INT32_MAX;
	assert_true(wait_rows(r, reader_code_rows_ask(r, &c), &t) < 0);
	munmap(memory, 3 * PAGE);
}
#endif

/* Of @fd, where it comes with a newline. */
static int sent_id(struct reader *r, int fd, struct base_id *id)
{
	struct base_id text;
	int pair[2], r_id;
	char byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(reader_send(pair[0], "\n", 1, fd), 0);
	r_id = reader_file_id(r, pair[1], id, &text);
	/* It stays for the socket's own reader. */
	assert_int_equal(recv(pair[1], &byte, 1, MSG_DONTWAIT), 1);
	close(pair[0]);
	close(pair[1]);
	return r_id;
}

static void test_sent_file(void **state)
{
	static const int refused[] = { O_PATH, O_WRONLY };
	char path[] = "/tmp/dcpi-reader-XXXXXX";
	struct base_id id = { 0 }, direct;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), file, pipes[2];

	READER(state);
	assert_int_equal(registry_file_id(fd, &direct, NULL), 0);
	assert_int_equal(sent_id(r, fd, &id), 0);
	assert_true(base_id_equal(&id, &direct));
	close(fd);
	assert_int_equal(sent_id(r, -1, &id), -ENODATA);
	file = mkostemp(path, O_CLOEXEC);
	assert_int_equal(write(file, "secret", 6), 6);
	assert_int_equal(sent_id(r, file, &id), -DCPI_EFORMAT);
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		fd = open(path, refused[i] | O_CLOEXEC);
		assert_int_equal(sent_id(r, fd, &id), -EACCES);
		close(fd);
	}
	close(file);
	unlink(path);
	fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	assert_int_equal(sent_id(r, fd, &id), -EINVAL);
	close(fd);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(sent_id(r, pipes[0], &id), -EINVAL);
	close(pipes[0]);
	close(pipes[1]);
}

/* As the kernel tells of a mapping. */
static void set_file(struct driver_load *l, const struct stat *st)
{
	l->inode = st->st_ino;
	l->dev_major = major(st->st_dev);
	l->dev_minor = minor(st->st_dev);
}

/* Written over in place, as cp does it, it is another image, however soon. */
static void test_image_written_over(void **state)
{
	struct base_id id, before = { 0 };
	char path[] = "/tmp/dcpi-reader-XXXXXX";
	struct stat st;
	int fd;

	READER(state);
	fd = mkostemp(path, O_CLOEXEC);
	assert_int_equal(ftruncate(fd, 4096), 0);
	for (char i = 1; i < 20; i++) {
		struct driver_load l = { .addr = 0x1000, .len = 0x1000, .path = path };

		assert_int_equal(pwrite(fd, &i, 1, 0), 1);
		assert_int_equal(fstat(fd, &st), 0);
		set_file(&l, &st);
		assert_int_equal(reader_image_id(r, INT32_MAX, getuid(), &l, &id, NULL), 0);
		assert_false(base_id_equal(&id, &before));
		before = id;
	}
	close(fd);
	unlink(path);
}

/* A file that is remembered (it is not just written) is told of as before. */
static void test_image_no_elf(void **state)
{
	struct reader_dump dump = { .fd = -1, .no_elf = true };
	struct driver_load elf = mapping_of((uintptr_t)test_image_id);
	struct driver_load l = { .path = "/etc/passwd" };
	struct base_id id;
	struct stat st;

	READER(state);
	assert_int_equal(stat(l.path, &st), 0);
	set_file(&l, &st);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(reader_image_id(r, getpid(), getuid(), &elf, &id, &dump), 0);
		assert_false(dump.no_elf);
		assert_int_equal(reader_image_id(r, INT32_MAX, getuid(), &l, &id, &dump), 0);
		assert_true(dump.no_elf);
		assert_true(dump.fd < 0);
	}
}

/* What a program was that is gone, nobody can tell once its file was written over. */
static void test_image_written_since(void **state)
{
	struct base_id id;
	char path[] = "/tmp/dcpi-reader-XXXXXX";
	struct driver_load l = { .addr = 0x1000, .len = 0x1000, .path = path };
	const struct timespec long_ago[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	struct stat st;
	int fd;

	READER(state);
	fd = mkostemp(path, O_CLOEXEC);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(pwrite(fd, "\177ELF", 4, 0), 4);
	assert_int_equal(fstat(fd, &st), 0);
	set_file(&l, &st);
	/* Mapped as soon as it was written; the times of files come in ticks. */
	l.time_ns = base_now_ns();
	assert_int_equal(reader_image_id(r, INT32_MAX, getuid(), &l, &id, NULL), 0);
	usleep(30000);
	assert_int_equal(pwrite(fd, "x", 1, 100), 1);
	assert_int_equal(reader_image_id(r, INT32_MAX, getuid(), &l, &id, NULL), -ETXTBSY);
	/* As cp -p does it. */
	assert_int_equal(futimens(fd, long_ago), 0);
	assert_int_equal(reader_image_id(r, INT32_MAX, getuid(), &l, &id, NULL), -ETXTBSY);
	l.time_ns = base_now_ns();
	assert_int_equal(reader_image_id(r, INT32_MAX, getuid(), &l, &id, NULL), 0);
	l.time_ns = 0;
	assert_int_equal(reader_image_id(r, INT32_MAX, getuid(), &l, &id, NULL), 0);
	/* What is no ELF file holds code that its program writes into it. */
	l.time_ns = base_now_ns();
	usleep(30000);
	assert_int_equal(pwrite(fd, "x", 1, 0), 1);
	assert_int_equal(reader_image_id(r, INT32_MAX, getuid(), &l, &id, NULL), 0);
	close(fd);
	unlink(path);
}

/* Written just now: somebody's who maps it still. Taking its name away changes no byte. */
static void test_image_without_name(void **state)
{
	struct base_id id;
	char path[] = "/tmp/dcpi-reader-XXXXXX";
	struct driver_load l;
	void *at;
	int fd;

	READER(state);
	fd = mkostemp(path, O_CLOEXEC);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(pwrite(fd, "\177ELF", 4, 0), 4);
	at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	l = mapping_of((uintptr_t)at);
	l.time_ns = base_now_ns();
	usleep(30000);
	unlink(path);
	/* Without the right to open what another one has mapped: its path is gone. */
	if (reader_image_id(r, getpid(), getuid(), &l, &id, NULL) != -ENOENT)
		assert_int_equal(reader_image_id(r, getpid(), getuid(), &l, &id, NULL), 0);
	munmap(at, 4096);
	close(fd);
}

static void copy_file(const char *from, int to)
{
	int fd = open(from, O_RDONLY | O_CLOEXEC);
	char bytes[65536];
	ssize_t n;

	assert_true(fd >= 0);
	while ((n = read(fd, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(to, bytes, (size_t)n), n);
	close(fd);
}

static int find_code(void *ctx, const struct base_segment *s)
{
	if (s->type != PT_LOAD || !s->exec)
		return 0;
	/* Linkers may put the file's head before the code. */
	*(uint64_t *)ctx = s->off + s->len - 1;
	return 1;
}

/* Copies of one build-id, one of which differs by a byte of its code. */
static void test_image_text(void **state)
{
	char paths[2][32] = { "/tmp/dcpi-reader-XXXXXX", "/tmp/dcpi-reader-XXXXXX" };
	struct base_id id, wanted;
	struct reader_dump dumps[3] = { { .fd = -1 }, { .fd = -1 }, { .fd = -1 } };
	struct driver_load l = mapping_of((uintptr_t)test_image_id);
	uint64_t where = 0;

	READER(state);
	assert_int_equal(reader_image_id(r, getpid(), getuid(), &l, &l.id, &dumps[0]), 0);
	wanted = l.id;
	for (int i = 0; i < 2; i++) {
		int fd = mkostemp(paths[i], O_CLOEXEC);

		copy_file("/proc/self/exe", fd);
		assert_int_equal(base_elf_segments(fd, find_code, &where), 1);
		if (i)
			assert_int_equal(pwrite(fd, "?", 1, (off_t)where), 1);
		close(fd);
		l = (struct driver_load){ .addr = 0x1000, .path = paths[i], .id = wanted };
		assert_int_equal(reader_image_id(r, INT32_MAX, getuid(), &l, &id, &dumps[1 + i]),
				 0);
		assert_true(base_id_equal(&id, &wanted));
	}
	/* Anybody can write below /tmp. */
	assert_false(dumps[1].roots);
	assert_int_equal(dumps[1].text.len, 20);
	assert_false(base_id_equal(&dumps[1].text, &dumps[2].text));
	/* A copy of its own content is no other. */
	if (dumps[0].text.len)
		assert_true(base_id_equal(&dumps[0].text, &dumps[1].text));
	l.id = (struct base_id){ .len = 4, .bytes = "else" };
	assert_int_equal(reader_image_id(r, INT32_MAX, getuid(), &l, &id, NULL), -ESTALE);
	unlink(paths[0]);
	unlink(paths[1]);
}

/* Root's own, where nobody else can put another one, is as its build-id says. */
static void test_image_of_root(void **state)
{
	struct reader_dump dump = { .fd = -1 };
	struct driver_load l = mapping_of((uintptr_t)malloc);
	struct base_id id;
	struct stat st;

	READER(state);
	assert_int_equal(stat(l.path, &st), 0);
	if (st.st_uid != 0)
		skip();
	assert_int_equal(reader_image_id(r, getpid(), getuid(), &l, &id, &dump), 0);
	assert_true(dump.roots);
	assert_int_equal(dump.text.len, 0);
}

/* What is mapped there now, or stands under that name, is not what was meant. */
static void test_image_of_another(void **state)
{
	struct base_id id = { 0 };
	struct driver_load l, other;

	READER(state);
	l = mapping_of((uintptr_t)test_image_id);
	other = l;
	other.inode++;
	assert_int_equal(reader_image_id(r, getpid(), getuid(), &other, &id, NULL), -ESTALE);
	assert_int_equal(reader_image_id(r, INT32_MAX, getuid(), &other, &id, NULL), -ESTALE);
	other = l;
	other.dev_minor++;
	assert_int_equal(reader_image_id(r, getpid(), getuid(), &other, &id, NULL), -ESTALE);
	other = l;
	other.path = "/proc/self/maps";
	assert_int_equal(reader_image_id(r, INT32_MAX, getuid(), &other, &id, NULL), -ESTALE);
	/* Not even opened. */
	other.path = "/dev/null";
	assert_int_equal(reader_image_id(r, INT32_MAX, getuid(), &other, &id, NULL), -EINVAL);
	assert_int_equal(id.len, 0);
}

static void test_registry_open(void **state)
{
	struct stat mine, got;
	struct driver_load l;
	struct fake f;
	int fd, plain;
	void *p;

	READER(state);
	fake_open(&f, 64 << 10);
	l = mapping_of((uintptr_t)f.map);
	fd = reader_registry_open(r, getpid(), l.addr, l.addr + l.len);
	if (fd == -EPERM || fd == -EACCES) {
		fake_close(&f);
		skip(); /* needs the right to open /proc/PID/map_files */
	}
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &got) + fstat(f.fd, &mine), 0);
	assert_int_equal(got.st_ino, mine.st_ino);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
	close(fd);
	/* Sealed, but no registry; a registry, but not sealed; no memfd at all. */
	f.h->magic = 0;
	assert_int_equal(reader_registry_open(r, getpid(), l.addr, l.addr + l.len), -DCPI_EFORMAT);
	plain = memfd_create("dbgdyn", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	f.h->magic = WIRE_REGISTRY_MAGIC;
	assert_int_equal(write(plain, f.map, f.len), f.len);
	p = mmap(NULL, f.len, PROT_READ, MAP_SHARED, plain, 0);
	l = mapping_of((uintptr_t)p);
	assert_int_equal(reader_registry_open(r, getpid(), l.addr, l.addr + l.len), -EPERM);
	munmap(p, f.len);
	close(plain);
	l = mapping_of((uintptr_t)test_image_id);
	assert_true(reader_registry_open(r, getpid(), l.addr, l.addr + l.len) < 0);
	fake_close(&f);
}

static void test_registry_read(void **state)
{
	struct base_buf out = { 0 };
	struct wire_routine_view v = { 0 };
	const struct wire_head *h;
	struct registry_place place = { .list_at = REGISTRY_NO_LIST };
	uint64_t life = 0;
	struct fake f;
	int nr = 0;

	READER(state);
	fake_open(&f, 64 << 10);
	fake_facility(&f, "f");
	fake_put_routine(&f, 0, 0x10000, "with code", code, sizeof(code));
	fake_put_routine(&f, 0, (uintptr_t)code, "without", NULL, sizeof(code));
	fake_put_routine(&f, 9, 0x10000, "bad", code, sizeof(code));
	registry_process_life(getpid(), NULL, &life);
	assert_int_equal(reader_registry_read(r, f.fd, getpid(), getuid(), life, &place, &out), 1);
	assert_int_equal(place.tail, f.h->head);
	WIRE_FOR_EACH (h, out.data, out.len, pos)
		if (h->type == WIRE_ROUTINE && ++nr == 2)
			assert_int_equal(wire_routine_parse(h, &v), 0);
	assert_int_equal(nr, 2);
	/* Where processes' memory may not be read (yama), the routine stays without. */
	if (v.code)
		assert_memory_equal(v.code, code, sizeof(code));
	/* Another program by now: its memory is not read. */
	place = (struct registry_place){ .list_at = REGISTRY_NO_LIST };
	base_buf_clear(&out);
	assert_int_equal(reader_registry_read(r, f.fd, getpid(), getuid(), life + 2, &place, &out),
			 1);
	nr = 0;
	WIRE_FOR_EACH (h, out.data, out.len, pos)
		if (h->type == WIRE_ROUTINE && ++nr == 2)
			assert_int_equal(wire_routine_parse(h, &v), 0);
	assert_null(v.code);
	/* Nor that of a program which is not that user's. */
	place = (struct registry_place){ .list_at = REGISTRY_NO_LIST };
	base_buf_clear(&out);
	assert_int_equal(reader_registry_read(r, f.fd, getpid(), getuid() ^ 1, life, &place, &out),
			 1);
	nr = 0;
	WIRE_FOR_EACH (h, out.data, out.len, pos)
		if (h->type == WIRE_ROUTINE && ++nr == 2)
			assert_int_equal(wire_routine_parse(h, &v), 0);
	assert_int_equal(nr, 2);
	assert_null(v.code);
	f.h->magic = 1;
	base_buf_clear(&out);
	assert_int_equal(reader_registry_read(r, f.fd, getpid(), getuid(), life, &place, &out),
			 -DCPI_EFORMAT);
	assert_int_equal(out.len, 0);
	base_buf_release(&out);
	fake_close(&f);
}

/* What lives, of this process: code and an object's file are read from it. */
static void test_list(void **state)
{
	static struct small_elf elf;
	struct registry_place place = { 0 };
	const struct wire_routine *routine;
	struct wire_object object;
	struct wire_routine_view v;
	struct base_buf out = { 0 };
	uint64_t life = 0;
	struct fake f;

	READER(state);
	small_elf(&elf);
	small_elf_record(&elf, &object);
	object.elf_addr = (uintptr_t)&elf;
	fake_open(&f, 64 << 10);
	fake_facility(&f, "f");
	f.h->machine = EM_X86_64;
	fake_slot_routine(&f, 1, (uintptr_t)code, "code");
	fake_slot(&f, &object);
	f.h->seq = object.seq > f.h->seq ? object.seq : f.h->seq;
	registry_process_life(getpid(), NULL, &life);
	assert_int_equal(reader_registry_read(r, f.fd, getpid(), getuid(), life, &place, &out), 0);
	assert_int_equal(place.list_at, REGISTRY_NO_LIST);
	assert_int_equal(fake_count(&out, WIRE_LISTED), 1);
	assert_int_equal(fake_count(&out, WIRE_OBJECT), 1);
	routine = fake_first(&out, WIRE_ROUTINE);
	assert_int_equal(wire_routine_parse(&routine->head, &v), 0);
	/* Where processes' memory may not be read (yama), both stay without. */
	if (v.code) {
		assert_memory_equal(v.code, code, 16);
		assert_int_equal(fake_count(&out, WIRE_ROUTINE), 1 + 3);
	}
	base_buf_release(&out);
	fake_close(&f);
}

/* What a process has mapped in a registry's place is another one; the first stays what it is. */
static void test_replaced(void **state)
{
	struct registry_place place = { .list_at = REGISTRY_NO_LIST };
	struct stat one, two;
	struct base_buf out = { 0 };
	struct driver_load l;
	struct fake f, g;
	int fd, again;

	READER(state);
	fake_open(&f, 64 << 10);
	fake_facility(&f, "first");
	fake_open(&g, 64 << 10);
	l = mapping_of((uintptr_t)f.map);
	fd = reader_registry_open(r, getpid(), l.addr, l.addr + l.len);
	if (fd < 0) {
		fake_close(&f);
		fake_close(&g);
		skip(); /* needs the right to open /proc/PID/map_files */
	}
	assert_ptr_equal(mmap(f.map, f.len, PROT_READ, MAP_SHARED | MAP_FIXED, g.fd, 0), f.map);
	again = reader_registry_open(r, getpid(), l.addr, l.addr + l.len);
	assert_int_equal(fstat(fd, &one) + fstat(again, &two), 0);
	assert_int_not_equal(one.st_ino, two.st_ino);
	assert_int_equal(reader_registry_read(r, fd, 0, 0, 0, &place, &out), 0);
	assert_int_equal(fake_count(&out, WIRE_FACILITY), 1);
	base_buf_clear(&out);
	assert_int_equal(reader_registry_read(r, again, 0, 0, 0, &place, &out), 0);
	assert_int_equal(fake_count(&out, WIRE_FACILITY), 0);
	close(fd);
	close(again);
	base_buf_release(&out);
	fake_close(&f);
	fake_close(&g);
}

/* The code that a registry speaks of is that of the process it is read for, and of no other. */
static void test_mapped_by_another(void **state)
{
	static uint8_t secret[16];
	struct registry_place place = { .list_at = REGISTRY_NO_LIST };
	const struct wire_routine *routine;
	struct wire_routine_view v;
	struct base_buf out = { 0 };
	uint64_t life = 0;
	struct fake f;
	int ready[2];
	pid_t child;
	char c;

	READER(state);
	fake_open(&f, 64 << 10);
	fake_facility(&f, "f");
	fake_put_routine(&f, 0, (uintptr_t)secret, "secret", NULL, sizeof(secret));
	memset(secret, 0x11, sizeof(secret));
	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		memset(secret, 0x22, sizeof(secret));
		(void)!write(ready[1], "", 1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	registry_process_life(child, NULL, &life);
	assert_int_equal(reader_registry_read(r, f.fd, child, getuid(), life, &place, &out), 0);
	routine = fake_first(&out, WIRE_ROUTINE);
	assert_int_equal(wire_routine_parse(&routine->head, &v), 0);
	if (v.code)
		assert_int_equal(v.code[0], 0x22);
	/* Not with the life of one and the number of the other. */
	place = (struct registry_place){ .list_at = REGISTRY_NO_LIST };
	base_buf_clear(&out);
	assert_int_equal(reader_registry_read(r, f.fd, getpid(), getuid(), life, &place, &out), 0);
	routine = fake_first(&out, WIRE_ROUTINE);
	assert_int_equal(routine->head.flags, 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	base_buf_release(&out);
	fake_close(&f);
}

static void test_range_read(void **state)
{
	const size_t len = 5 << 20;
	uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct wire_range range = { .kind = WIRE_RANGE_CODE, .base = (uintptr_t)p, .len = len };
	struct base_buf out = { 0 };
	const struct wire_bytes *b;
	uint64_t life = 0;
	int n;

	READER(state);
	memset(p, 0x5a, 3 << 20);
	mprotect(p + WIRE_PAGE, WIRE_PAGE, PROT_NONE);
	registry_process_life(getpid(), NULL, &life);
	n = reader_range_read(r, getpid(), getuid(), life, &range, &out);
	assert_int_equal(n, 0);
	if (!out.len) {
		munmap(p, len);
		skip(); /* yama: only a parent may read */
	}
	b = (const void *)out.data;
	assert_int_equal(b->head.type, WIRE_BYTES);
	assert_int_equal(b->bytes_len, 3 << 20);
	assert_int_equal(((const uint8_t *)(b + 1))[(3 << 20) - 1], 0x5a);
	/* Somebody else's, as a set-uid program is. */
	base_buf_clear(&out);
	assert_int_equal(reader_range_read(r, getpid(), getuid() ^ 1, life, &range, &out), -ESRCH);
	assert_int_equal(out.len, 0);
	assert_int_equal(reader_range_read(r, getpid(), getuid(), 0, &range, &out), -ESRCH);
	assert_int_equal(reader_range_read(r, getpid(), getuid(), life ^ 2, &range, &out), -ESRCH);
	assert_int_equal(reader_range_read(r, INT32_MAX, getuid(), 1, &range, &out), -ESRCH);
	munmap(p, len);
	base_buf_release(&out);
}

/* Where there is none, and where it is somebody else's: only the first may come yet. */
static void test_perfmap(void **state)
{
	char dir[] = "/tmp/dcpi-reader-XXXXXX", path[64];
	int root, fd;

	READER(state);
	assert_non_null(mkdtemp(dir));
	root = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(root, "tmp", 0700), 0);
	assert_int_equal(reader_perfmap_find(r, root, 42, getuid(), 0), -ENOENT);
	snprintf(path, sizeof(path), "%s/tmp/perf-42.map", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(reader_perfmap_find(r, root, 42, getuid() + 1, 0), -EPERM);
	fd = reader_perfmap_find(r, root, 42, getuid(), 0);
	assert_true(fd >= 0);
	close(fd);
	unlink(path);
	assert_int_equal(unlinkat(root, "tmp", AT_REMOVEDIR), 0);
	close(root);
	rmdir(dir);
}

/* A request that does not end ends the helper; the next one has another. */
static void test_hanging_helper(void **state)
{
	unsigned int tries = 0;
	struct base_id id;
	struct driver_load l;
	uint64_t before;
	pid_t hung;

	READER(state);
	l = mapping_of((uintptr_t)test_image_id);
	assert_int_equal(reader_image_id(r, getpid(), getuid(), &l, &id, NULL), 0);
	hung = r->helper.pid;
	kill(hung, SIGSTOP);
	r->timeout_ms = 100;
	before = base_now_ns();
	assert_int_equal(reader_image_id(r, getpid(), getuid(), &l, &id, NULL), -ETIMEDOUT);
	assert_true(base_now_ns() - before >= 90000000);
	r->timeout_ms = 60000;
	/* On a busy machine it may take long until it is gone. */
	while (helper_reap(&r->helper) && tries++ < LIMIT_MS)
		usleep(1000);
	assert_int_equal(kill(hung, 0), -1);
	assert_int_equal(reader_image_id(r, getpid(), getuid(), &l, &id, NULL), 0);
	assert_int_not_equal(r->helper.pid, hung);
}

/* A child that keeps the CPU that we run on busy; the helpers share it, with little weight. */
static pid_t keep_busy(const struct reader *r)
{
	cpu_set_t one;
	pid_t busy;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	busy = fork();
	if (busy == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sched_setaffinity(0, sizeof(one), &one);
		for (;;)
			;
	}
	assert_true(busy > 0);
	for (int i = 0; i < 2; i++) {
		pid_t pid = i ? r->parser.pid : r->helper.pid;

		assert_int_equal(sched_setaffinity(pid, sizeof(one), &one), 0);
		assert_int_equal(setpriority(PRIO_PROCESS, (id_t)pid, 19), 0);
	}
	return busy;
}

/* Where the helpers get no CPU, their client is not to blame. */
static void test_busy_machine(void **state)
{
	struct base_id id;
	struct driver_load l;
	pid_t same, busy;

	READER(state);
	l = mapping_of((uintptr_t)test_image_id);
	assert_int_equal(reader_image_id(r, getpid(), getuid(), &l, &id, NULL), 0);
	same = r->helper.pid;
	busy = keep_busy(r);
	r->timeout_ms = 4;
	for (int i = 0; i < 10; i++)
		assert_int_equal(reader_image_id(r, getpid(), getuid(), &l, &id, NULL), 0);
	kill(busy, SIGKILL);
	waitpid(busy, NULL, 0);
	assert_int_equal(r->helper.pid, same);
}

/* A daemon that was stopped meanwhile (a container's freezer) blames no file. */
static void test_stopped_daemon(void **state)
{
	struct base_id id;
	struct driver_load l;
	pid_t same;

	READER(state);
	l = mapping_of((uintptr_t)test_image_id);
	assert_int_equal(reader_image_id(r, getpid(), getuid(), &l, &id, NULL), 0);
	same = r->helper.pid;
	stride_ns = 2000000000;
	assert_int_equal(reader_image_id(r, getpid(), getuid(), &l, &id, NULL), 0);
	stride_ns = 0;
	assert_int_equal(r->helper.pid, same);
}

static void test_dying_helper(void **state)
{
	struct base_id id;
	struct driver_load l;

	READER(state);
	l = mapping_of((uintptr_t)test_image_id);
	assert_int_equal(reader_image_id(r, getpid(), getuid(), &l, &id, NULL), 0);
	kill(r->helper.pid, SIGKILL);
	assert_int_equal(reader_image_id(r, getpid(), getuid(), &l, &id, NULL), -DCPI_EHELPER);
	assert_int_equal(reader_image_id(r, getpid(), getuid(), &l, &id, NULL), 0);
}

/* As if a helper ran that has answered already: @told, with @bytes as its long answer, and with the
 * descriptor @fd (-1: none). */
static void told_already(struct reader *r, const struct reader_answer *announced,
			 const struct base_buf *bytes, int fd)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	r->answers = memfd_create("answers", MFD_CLOEXEC);
	assert_int_equal(write(r->answers, bytes->data, bytes->len), bytes->len);
	assert_int_equal(reader_send(pair[1], announced, sizeof(*announced), fd), 0);
	r->helper.sock = pair[0];
	r->helper.pid = fork();
	if (r->helper.pid == 0) {
		sleep(60);
		_exit(0);
	}
	close(pair[1]);
}

/* Until the next one. */
static void end_of(struct reader *r)
{
	kill(r->helper.pid, SIGKILL);
	waitpid(r->helper.pid, NULL, 0);
	close(r->helper.sock);
	close(r->answers);
	r->helper.pid = 0;
	r->helper.sock = r->answers = -1;
}

/* As if a helper ran that took @ms of CPU time for each request, and then has nothing, or does not
 * answer. */
static void works_long(struct reader *r, unsigned int ms, bool answers)
{
	const struct reader_answer none = { .status = -DCPI_EFORMAT };
	int effort_fd = memfd_create("schedstat", MFD_CLOEXEC);
	uint64_t ran_ns = 0;
	struct reader_request q;
	int pair[2], fd;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	r->helper.sock = pair[0];
	r->helper.effort_fd = effort_fd;
	r->helper.pid = fork();
	if (r->helper.pid == 0) {
		char text[64];

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		while (reader_receive(pair[1], &q, sizeof(q), &fd) == 0) {
			ran_ns += ms * 1000000ull;
			snprintf(text, sizeof(text), "%" PRIu64 " 0 1\n", ran_ns);
			(void)!pwrite(effort_fd, text, strlen(text), 0);
			if (answers)
				reader_send(pair[1], &none, sizeof(none), -1);
		}
		_exit(0);
	}
	close(pair[1]);
}

static void forget_effort(struct reader *r)
{
	if (r->helper.effort_fd >= 0)
		close(r->helper.effort_fd);
	r->helper.effort_fd = -1;
}

/* A table of a large file takes long: no user pays for it, and the reader takes no other request.
 */
static void test_rows_are_made_meanwhile(void **state)
{
	const struct reader_mapped m = { .pid = getpid() };
	struct base_buf maps = { 0 };
	struct unwind_table *t = NULL;
	unsigned int before_ms;
	struct reader_cost cost;
	struct budgets *b;

	READER(state);
	b = budgets_new();
	reader_share(r, b);
	works_long(r, 600, true);
	before_ms = budget_wait_ms(b, getuid());
	assert_int_equal(reader_rows_take(r, 0, &t, &cost), -EINVAL);
	assert_int_equal(reader_rows_ask(r, &m, -1), 0);
	assert_int_equal(reader_rows_ask(r, &m, -1), -EBUSY);
	assert_int_equal(reader_maps(r, getpid(), &maps), -EBUSY);
	while (reader_rows_take(r, 100, &t, &cost) == 1)
		;
	assert_int_equal(cost.ran_ns, 600 * 1000000);
	assert_null(t);
	assert_true(budget_wait_ms(b, getuid()) >= before_ms);
	forget_effort(r);
	end_of(r);
	reader_share(r, NULL);
	budgets_free(b);
}

/* The request is there, and it has worked for it: works_long's helper waits for the next one. */
static void wait_until_worked(const struct reader *r)
{
	char path[32], text[128] = "";
	struct stat st = { 0 };

	snprintf(path, sizeof(path), "/proc/%d/stat", r->helper.pid);
	for (unsigned int i = 0; i < LIMIT_MS && !(st.st_size > 0 && strstr(text, ") S")); i++) {
		FILE *f = fopen(path, "re");

		assert_non_null(f);
		assert_non_null(fgets(text, sizeof(text), f));
		fclose(f);
		assert_int_equal(fstat(r->helper.effort_fd, &st), 0);
		usleep(1000);
	}
	assert_true(st.st_size > 0);
}

/* -EREMOTE is told of helpers that were not gone soon after they were killed: on a busy machine,
 * any. */
static void assert_given_up(const struct reader *r, int result, int why)
{
	if (result != -EREMOTE || !r->helper.held)
		assert_int_equal(result, why);
	assert_int_equal(r->helper.pid, 0);
}

/* One that works without end, or waits for others, is replaced. */
static void test_rows_take_too_long(void **state)
{
	const struct reader_mapped m = { .pid = getpid() };
	struct unwind_table *t = NULL;
	struct reader_cost cost;
	int result;

	READER(state);
	works_long(r, 1900, false);
	assert_int_equal(reader_rows_ask(r, &m, -1), 0);
	wait_until_worked(r);
	assert_int_equal(reader_rows_take(r, 50, &t, &cost), 1);
	/* That all stood still does not count for more than a look. */
	for (int i = 0; i < 3; i++) {
		r->making.looked_ns -= 10000000000;
		assert_int_equal(reader_rows_take(r, 0, &t, &cost), 1);
	}
	r->making.looked_ns -= 10000000000;
	assert_given_up(r, reader_rows_take(r, 0, &t, &cost), -ETIMEDOUT);
	assert_int_equal(cost.idle_ns, 1000000000);
	works_long(r, 2000, false);
	assert_int_equal(reader_rows_ask(r, &m, -1), 0);
	wait_until_worked(r);
	do
		result = reader_rows_take(r, 10, &t, &cost);
	while (result == 1);
	assert_given_up(r, result, -DCPI_ELIMIT);
	assert_int_equal(cost.ran_ns, 2000 * 1000000ull);
	assert_true(rows(r, &m, -1, &t) < 0);
	assert_true(r->helper.pid > 0);
}

/* Helpers that file systems hold are waited for before more of them are lost. */
static void test_rows_wait_for_held_helpers(void **state)
{
	const struct reader_mapped m = { .pid = INT32_MAX };
	struct unwind_table *t;

	READER(state);
	for (size_t i = 0; i < 4; i++) {
		r->helper.zombies[i] = fork();
		if (r->helper.zombies[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pause();
		}
	}
	assert_int_equal(reader_rows_ask(r, &m, -1), -EBUSY);
	kill(r->helper.zombies[2], SIGKILL);
	waitpid(r->helper.zombies[2], NULL, 0);
	assert_true(rows(r, &m, -1, &t) < 0);
	for (size_t i = 0; i < 4; i++)
		if (i != 2)
			kill(r->helper.zombies[i], SIGKILL);
}

/* Its answers are checked: it reads what applications wrote, and may have become one's tool. */
static void test_hostile_answers(void **state)
{
	struct base_buf records = { 0 }, out = { 0 };
	struct reader_request q = { 0 };
	struct reader_answer a;
	struct wire_routine *rec;
	size_t at;

	READER(state);
	fake_facility_rec(&records, 0, "jit");
	at = records.len;
	fake_routine_rec(&records, 0, 0x1000, "f", code, sizeof(code));
	rec = (void *)(records.data + at);
#define HOSTILE(change, announced)                                                                 \
	do {                                                                                       \
		struct wire_routine was = *rec;                                                    \
                                                                                                   \
		change;                                                                            \
		told_already(r, &(struct reader_answer){ .len = announced }, &records, -1);        \
		assert_int_equal(reader_call_long(r, &q, -1, &a, &out), -DCPI_EHELPER);            \
		assert_true(!r->helper.pid && r->helper.sock < 0 && r->answers < 0 && !out.len);   \
		*rec = was;                                                                        \
	} while (0)
	HOSTILE(, READER_ANSWER_MAX + 1ull);
	HOSTILE(, UINT64_MAX);
	HOSTILE(, records.len + 8); /* than are there */
	HOSTILE(, records.len - 8);
	HOSTILE(rec->head.type = WIRE_PAD, records.len);
	HOSTILE(rec->head.type = 99, records.len);
	HOSTILE(rec->head.len -= 8, records.len);
	HOSTILE(rec->code_len = 0, records.len);
	HOSTILE(rec->name_len = UINT16_MAX, records.len);
	/* A descriptor that nobody asked for does not stay. */
	told_already(r, &(struct reader_answer){ .len = records.len }, &records, STDERR_FILENO);
	assert_int_equal(reader_call_long(r, &q, -1, &a, &out), 0);
	assert_true(out.len == records.len && !memcmp(out.data, records.data, out.len));
	base_buf_release(&records);
	base_buf_release(&out);
}

/* No length of its own leads out of what the caller has. */
static void test_answers_that_do_not_fit(void **state)
{
	const struct driver_load l = { .kind = DRIVER_LOAD_MMAP, .path = "/bin/x" };
	const struct reader_who who = { .pid = getpid() };
	struct reader_answer announced = { .id_len = sizeof(announced.id) + 1 };
	struct base_buf bytes = { 0 }, out = { 0 };
	struct foreign_gdb g = { 0 };
	struct base_id id = { 0 };
	uint8_t space[16] = { 0 };

	READER(state);
	assert_int_equal(base_buf_append(&bytes, code, sizeof(code)), 0);
	told_already(r, &announced, &bytes, -1);
	assert_int_equal(reader_image_id(r, getpid(), getuid(), &l, &id, NULL), -DCPI_EHELPER);
	end_of(r);
	announced.id_len = 0;
	told_already(r, &announced, &bytes, -1);
	assert_int_equal(reader_image_id(r, getpid(), getuid(), &l, &id, NULL), -DCPI_EHELPER);
	assert_int_equal(id.len, 0);
	end_of(r);
	announced.len = bytes.len;
	told_already(r, &announced, &bytes, -1);
	assert_int_equal(reader_code_read(r, getpid(), 0x1000, space, 8), 8);
	assert_true(!memcmp(space, code, 8) && !space[8]);
	end_of(r);
	told_already(r, &announced, &bytes, -1);
	assert_int_equal(reader_gdb_list(r, &who, &g, &out), -DCPI_EHELPER);
	announced.gdb.nr_heads = FOREIGN_GDB_HEADS + 1;
	told_already(r, &announced, &bytes, -1);
	assert_int_equal(reader_gdb_find(r, &who, &g), -DCPI_EHELPER);
	assert_int_equal(g.nr_heads, 0);
	end_of(r);
	/* Good, but without what it is good for. */
	told_already(r, &announced, &bytes, -1);
	assert_int_equal(reader_registry_open(r, getpid(), 0, 1), -DCPI_EHELPER);
	base_buf_release(&bytes);
	base_buf_release(&out);
}

/* A number of /proc/PID/status. */
static uint64_t status_of(pid_t pid, const char *name, int base)
{
	uint64_t value = UINT64_MAX;
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':')
			value = strtoull(line + strlen(name) + 1, NULL, base);
	fclose(f);
	return value;
}

/* The reader is left what opening takes, and nothing parses there; the parser has no right. */
static void test_rights(void **state)
{
	const uint64_t allowed = 1ull << 19 | 1ull << 2 | 1ull << 40;
	struct driver_load l;
	struct base_id id;

	READER(state);
	l = mapping_of((uintptr_t)test_image_id);
	assert_int_equal(reader_image_id(r, getpid(), getuid(), &l, &id, NULL), 0);
	assert_int_equal(status_of(r->helper.pid, "CapEff", 16) & ~allowed, 0);
	assert_int_equal(status_of(r->helper.pid, "NoNewPrivs", 10), 1);
	assert_int_equal(status_of(r->parser.pid, "CapEff", 16), 0);
	assert_int_equal(status_of(r->parser.pid, "CapPrm", 16), 0);
	assert_int_equal(status_of(r->parser.pid, "NoNewPrivs", 10), 1);
	assert_int_equal(status_of(r->parser.pid, "Seccomp", 10), 2);
#if !defined(__SANITIZE_ADDRESS__)
	struct rlimit memory;

	assert_int_equal(prlimit(r->helper.pid, RLIMIT_AS, NULL, &memory), 0);
	assert_int_equal(memory.rlim_cur, 1u << 30);
#endif
}

/* The reader is of no use without its parser, and a parser does not outlive its reader. */
static void test_dying_parser(void **state)
{
	struct reader_who who = { .pid = getpid(), .uid = getuid() };
	struct foreign_gdb g = { 0 };
	struct driver_load l;
	struct base_id id;
	pid_t parser;

	READER(state);
	registry_process_life(getpid(), NULL, &who.life);
	l = mapping_of((uintptr_t)test_image_id);
	assert_int_equal(reader_image_id(r, getpid(), getuid(), &l, &id, NULL), 0);
	parser = r->parser.pid;
	assert_int_equal(kill(r->helper.pid, SIGKILL), 0);
	assert_int_equal(waitpid(parser, NULL, 0), parser);
	assert_int_equal(reader_image_id(r, getpid(), getuid(), &l, &id, NULL), -DCPI_EHELPER);
	assert_int_equal(reader_image_id(r, getpid(), getuid(), &l, &id, NULL), 0);
	kill(r->parser.pid, SIGKILL);
	/* What the reader knows of a file, it may answer without. */
	assert_int_equal(reader_gdb_find(r, &who, &g), -DCPI_EHELPER);
	assert_int_equal(reader_image_id(r, getpid(), getuid(), &l, &id, NULL), 0);
}

static void test_missing_helper(void **state)
{
	struct base_err err = { 0 };
	struct reader *r = NULL;

	(void)state;
	assert_int_equal(reader_open("/nonexistent", &r, &err), -ENOENT);
	assert_null(r);
	assert_non_null(strstr(err.text, "cannot run '/nonexistent/dcpid-reader'"));
	assert_true(err.hint[0] != '\0');
}

static void count_map(void *ctx, struct driver_load *l, bool exec)
{
	(void)l;
	*(unsigned int *)ctx += exec;
}

/* As many as a program likes; who has none is not there. */
static void test_mappings(void **state)
{
	enum { PAGE = 4096, NR = 4000 };
	char *p = mmap(NULL, 2 * NR * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned int nr = 0, own = 0;
	READER(state);

	assert_true(p != MAP_FAILED);
	for (unsigned int i = 0; i < NR; i++)
		assert_int_equal(mprotect(p + 2 * i * PAGE, PAGE, PROT_READ | PROT_EXEC), 0);
	assert_int_equal(proc_each_map(r, getpid(), count_map, &nr), 0);
	assert_int_equal(proc_each_map(NULL, getpid(), count_map, &own), 0);
	assert_int_equal(nr, own);
	assert_true(nr > NR);
	assert_int_equal(proc_check_code(r, getpid(), (uintptr_t)p, (uintptr_t)p + PAGE), 0);
	assert_int_equal(proc_check_code(r, getpid(), (uintptr_t)p, (uintptr_t)p + 2 * PAGE),
			 -ENOENT);
	munmap(p, 2 * NR * PAGE);
	assert_true(proc_each_map(r, INT32_MAX, count_map, &nr) < 0);
}

/* Whether a part of a file is mapped. */
static void test_mapped_parts(void **state)
{
	enum { PAGE = 4096 };
	int fd = memfd_create("mapped", MFD_CLOEXEC);
	struct registry_part part = { 0 };
	struct stat st;
	char *p;
	READER(state);

	assert_int_equal(ftruncate(fd, 4 * PAGE), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(reader_mapped(r, getpid(), &st, &part), 0);
	p = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, PAGE);
	assert_true(p != MAP_FAILED);
	assert_int_equal(reader_mapped(r, getpid(), &st, &part), 1);
	part = (struct registry_part){ (uintptr_t)p + 8, PAGE, PAGE + 8 };
	assert_int_equal(reader_mapped(r, getpid(), &st, &part), 1);
	part.off += 8;
	assert_int_equal(reader_mapped(r, getpid(), &st, &part), 0);
	munmap(p, 2 * PAGE);
	close(fd);
}

/* A process of another user's, who forbids to look into it: the kernel says that it is root's. */
static pid_t undumpable(uid_t uid)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		if (setresuid(uid, uid, uid) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
			_exit(1);
		(void)!write(ready[1], "", 1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

/* Its user pays, not root. */
static void test_who_pays(void **state)
{
	enum { OTHER = 65534 };
	struct budgets *b = budgets_new();
	unsigned int nr = 0;
	pid_t pid;
	READER(state);

	if (geteuid() != 0) {
		budgets_free(b);
		skip();
	}
	reader_share(r, b);
	pid = undumpable(OTHER);
	budget_waited(b, OTHER, 10000000000ull, 0, 0);
	assert_int_equal(proc_each_map(r, pid, count_map, &nr), -EDQUOT);
	budget_waited(b, 0, 10000000000ull, 0, 0);
	assert_int_equal(proc_each_map(r, getpid(), count_map, &nr), -EDQUOT);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	/* Who is gone costs nobody anything. */
	assert_int_equal(proc_each_map(r, pid, count_map, &nr), -ESRCH);
	reader_share(r, NULL);
	budgets_free(b);
}

static void count_call(void *ctx)
{
	++*(unsigned int *)ctx;
}

/* Many short requests let the caller look around as one long one does. */
static void test_meanwhile(void **state)
{
	unsigned int nr = 0, maps = 0;
	READER(state);

	reader_set_meanwhile(r, count_call, &nr);
	for (unsigned int i = 1; i <= 20; i++) {
		assert_int_equal(proc_each_map(r, getpid(), count_map, &maps), 0);
		assert_true(nr >= i);
	}
	reader_set_meanwhile(r, NULL, NULL);
}

static void late_host(void *ctx)
{
	const struct reader *r = ctx;

	ahead_ns += 5000000000ull;
	kill(r->helper.pid, SIGCONT);
}

/* A user owes nothing for seconds in which the host took the CPUs away. */
static void test_late_host(void **state)
{
	struct budgets *b = budgets_new();
	unsigned int nr = 0, left_ms;
	uint64_t since_ns;
	READER(state);

	assert_int_equal(proc_each_map(r, getpid(), count_map, &nr), 0);
	reader_share(r, b);
	reader_set_meanwhile(r, late_host, r);
	kill(r->helper.pid, SIGSTOP);
	assert_int_equal(proc_each_map(r, getpid(), count_map, &nr), 0);
	reader_set_meanwhile(r, NULL, NULL);
	assert_in_range(budget_wait_ms(b, geteuid()), 100, 200);
	/* A helper that stands still by itself is waited for on its user's account. */
	kill(r->helper.pid, SIGSTOP);
	since_ns = base_now_ns();
	assert_int_equal(proc_each_map(r, getpid(), count_map, &nr), -ETIMEDOUT);
	left_ms = budget_wait_ms(b, geteuid());
	/* A twentieth of the time comes back. */
	assert_in_range(left_ms, 0, 100 + (base_now_ns() - since_ns) / 20000000);
	reader_share(r, NULL);
	budgets_free(b);
}

/* Of a user who has spent all, nothing is read, and nobody waits. */
static void test_mappings_over_budget(void **state)
{
	struct budgets *b = budgets_new();
	unsigned int nr = 0;
	READER(state);

	reader_share(r, b);
	budget_waited(b, geteuid(), 10000000000ull, 0, 0);
	assert_int_equal(proc_each_map(r, getpid(), count_map, &nr), -EDQUOT);
	assert_int_equal(nr, 0);
	reader_share(r, NULL);
	budgets_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_image_id, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sent_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rows_of_a_descriptor, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rows_are_made_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rows_take_too_long, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rows_wait_for_held_helpers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_image_written_over, setup, teardown),
		cmocka_unit_test_setup_teardown(test_image_no_elf, setup, teardown),
		cmocka_unit_test_setup_teardown(test_image_written_since, setup, teardown),
		cmocka_unit_test_setup_teardown(test_image_without_name, setup, teardown),
		cmocka_unit_test_setup_teardown(test_image_text, setup, teardown),
		cmocka_unit_test_setup_teardown(test_image_of_root, setup, teardown),
		cmocka_unit_test_setup_teardown(test_image_of_another, setup, teardown),
		cmocka_unit_test_setup_teardown(test_registry_open, setup, teardown),
		cmocka_unit_test_setup_teardown(test_registry_read, setup, teardown),
		cmocka_unit_test_setup_teardown(test_list, setup, teardown),
		cmocka_unit_test_setup_teardown(test_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mapped_by_another, setup, teardown),
		cmocka_unit_test_setup_teardown(test_range_read, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mappings, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mapped_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_who_pays, setup, teardown),
		cmocka_unit_test_setup_teardown(test_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mappings_over_budget, setup, teardown),
		cmocka_unit_test_setup_teardown(test_perfmap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hanging_helper, setup, teardown),
		cmocka_unit_test_setup_teardown(test_busy_machine, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stopped_daemon, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_host, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dying_helper, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile_answers, setup, teardown),
#if defined(__x86_64__)
		cmocka_unit_test_setup_teardown(test_rows_of_code, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rows_of_told_code, setup, teardown),
#endif
		cmocka_unit_test_setup_teardown(test_answers_that_do_not_fit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rights, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dying_parser, setup, teardown),
		cmocka_unit_test(test_missing_helper),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
