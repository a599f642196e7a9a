/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent's parts, read back with the source's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent.h"
#include "inprocess_source.h"

static char folder[64];
static struct agent_orders orders;
static struct agent_ring ring;
static uint8_t copy[64 * 32];
static struct inprocess_record rec;

static int begin(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/dcpi-agent-XXXXXX");
	assert_non_null(mkdtemp(folder));
	orders = (struct agent_orders){ .period_ns = 4000000, .nr_units = 64 };
	strcpy(orders.folder, folder);
	assert_int_equal(agent_ring_open(&orders, NULL, &ring), 0);
	agent_map_forget();
	return 0;
}

static int end(void **state)
{
	DIR *dir = opendir(folder);
	struct dirent *e;

	(void)state;
	while ((e = readdir(dir)))
		unlinkat(dirfd(dir), e->d_name, 0);
	closedir(dir);
	if (ring.head)
		munmap(ring.head, INPROCESS_HEAD_LEN + sizeof(copy));
	return rmdir(folder);
}

/* The units from the tail on, in a row; they are then read. */
static struct inprocess_span take(void)
{
	struct inprocess_span span = { copy, ring.head->tail, ring.head->head };

	for (uint64_t pos = span.from; pos < span.to; pos++)
		memcpy(copy + (pos - span.from) * 32, &ring.units[pos & ring.mask], 32);
	ring.head->tail = span.to;
	return span;
}

static void orders_parsed(void **state)
{
	static const char *const bad[] = { "",	     "4000000", "x:64:/a", "1:64:",
					   "1:64:a", "1:63:/a", "1:32:/a", "1:4194304:/a" };
	struct agent_orders o;

	(void)state;
	assert_int_equal(agent_orders_parse("4000000:4096:/tmp/a:b", &o), 0);
	assert_int_equal(o.period_ns, 4000000);
	assert_int_equal(o.nr_units, 4096);
	assert_string_equal(o.folder, "/tmp/a:b");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(agent_orders_parse(bad[i], &o), -EINVAL);
}

static void lines_parsed(void **state)
{
	static const char *const bad[] = { "",
					   "5000-6000",
					   "5000-6000 r-x",
					   "5000-6000 r-xp",
					   "5000-6000 r-xpx1000 08:01 7 /a",
					   "5000 6000 r-xp 0 0:0 0 ",
					   "5000-6000 r-xp 1000 08:01 x /a",
					   "5000-6000 r-xp 1000 0801 7 /a" };
	struct agent_line l;

	(void)state;
	assert_int_equal(
		agent_line_parse("7f00a000-7f00b000 r-xp 00001000 fd:1f 123      /a b", &l), 0);
	assert_int_equal(l.start, 0x7f00a000);
	assert_int_equal(l.end, 0x7f00b000);
	assert_int_equal(l.file_off, 0x1000);
	assert_int_equal(l.dev_major, 0xfd);
	assert_int_equal(l.dev_minor, 0x1f);
	assert_int_equal(l.inode, 123);
	assert_int_equal(l.prot, PROT_READ | PROT_EXEC);
	assert_string_equal(l.path, "/a b");
	assert_int_equal(agent_line_parse("5000-6000 --xs 90001000 00:00 7 /a", &l), 0);
	assert_int_equal(l.file_off, 0x90001000);
	assert_int_equal(l.prot, PROT_EXEC);
	assert_int_equal(agent_line_parse("5000-6000 rwxp 00000000 00:00 0 ", &l), 0);
	assert_string_equal(l.path, "");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(agent_line_parse(bad[i], &l), -EINVAL);
}

static void head_written(void **state)
{
	struct inprocess_head h;

	(void)state;
	assert_int_equal(
		inprocess_head_parse(ring.head, sizeof(h), INPROCESS_HEAD_LEN + sizeof(copy), &h),
		0);
	assert_int_equal(h.pid, getpid());
	assert_int_equal(h.pid_space, inprocess_own_space());
	assert_int_equal(h.born, INPROCESS_EXEC);
	assert_true(h.start_ns && h.start_ns <= base_now_ns());
}

static void head_of_a_child(void **state)
{
	const struct inprocess_head parent = { .pid = 4711, .pid_space = 17, .parent_pid = 1 };
	struct agent_ring r;
	char comm[16];

	(void)state;
	assert_int_equal(agent_ring_open(&orders, &parent, &r), 0);
	assert_int_equal(r.head->born, INPROCESS_FORK);
	assert_int_equal(r.head->pid, getpid());
	assert_int_equal(r.head->parent_pid, 4711);
	assert_int_equal(r.head->parent_space, 17);
	assert_int_equal(r.head->period_ns, orders.period_ns);
	assert_int_equal(prctl(PR_GET_NAME, comm), 0);
	assert_string_equal(r.head->comm, comm);
	munmap(r.head, INPROCESS_HEAD_LEN + sizeof(copy));
}

/* Each record is another one, and over the ring's end at another place. */
static void records_wrap_and_fill(void **state)
{
	static const char long_path[] = "/somewhere/far/below/the/root/of/all/evil/libx.so.6";
	struct inprocess_unit u = { .time_ns = 5, .type = INPROCESS_SAMPLE, .tid = 9 };
	struct inprocess_unit v = { .time_ns = 6, .addr = 0x1000, .type = INPROCESS_MAP };
	struct inprocess_map m = { .len = 0x2000, .id_len = 32 };

	(void)state;
	for (int round = 0; round < 400; round++) {
		const char *path = long_path + round % 23;
		struct inprocess_span span;
		uint64_t pos;

		u.addr = (uint64_t)round;
		m.path_len = (uint16_t)strlen(path);
		memset(m.id, round, sizeof(m.id));
		if (round % 5 == 0) {
			assert_true(agent_ring_put(&ring, &u, NULL, 0, NULL, 0));
			take();
		}
		assert_true(agent_ring_put(&ring, &u, NULL, 0, NULL, 0));
		assert_true(agent_ring_put(&ring, &v, &m, sizeof(m), path, m.path_len));
		span = take();
		pos = span.from;
		assert_int_equal(inprocess_record_next(&span, &pos, &rec), 1);
		assert_int_equal(rec.count.addr, round);
		assert_int_equal(rec.count.tid, 9);
		assert_int_equal(inprocess_record_next(&span, &pos, &rec), 1);
		assert_string_equal(rec.load.path, path);
		assert_int_equal(rec.load.addr, 0x1000);
		assert_memory_equal(rec.load.id.bytes, m.id, sizeof(m.id));
		assert_int_equal(inprocess_record_next(&span, &pos, &rec), 0);
	}
	for (int i = 0; i < 64; i++)
		assert_true(agent_ring_put(&ring, &u, NULL, 0, NULL, 0));
	assert_false(agent_ring_put(&ring, &u, NULL, 0, NULL, 0));
	take();
	assert_true(agent_ring_put(&ring, &u, NULL, 0, NULL, 0));
}

static void own_code_is_told_once(void **state)
{
	uint64_t pc = (uintptr_t)own_code_is_told_once, pos;
	struct inprocess_span span;
	struct agent_object object;
	struct base_id id;
	uint8_t bytes[32];
	uint64_t at;
	char exe[256];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	(void)state;
	assert_true(n > 0);
	exe[n] = '\0';
	agent_map_tell(&ring, pc);
	span = take();
	pos = span.from;
	assert_int_equal(inprocess_record_next(&span, &pos, &rec), 1);
	assert_true(pc >= rec.load.addr && pc - rec.load.addr < rec.load.len);
	assert_string_equal(rec.load.path, exe);
	assert_int_equal(rec.load.prot, PROT_READ | PROT_EXEC);
	id = rec.load.id;
	if (agent_object_find(pc, &object))
		assert_int_equal(id.len, agent_object_id(object.start, bytes, &at));
	agent_map_tell(&ring, pc);
	assert_int_equal(ring.head->head, ring.head->tail);
	agent_map_forget();
	agent_map_tell(&ring, pc);
	span = take();
	pos = span.from;
	assert_int_equal(inprocess_record_next(&span, &pos, &rec), 1);
	assert_true(base_id_equal(&id, &rec.load.id));
	assert_int_equal(ring.head->lost_maps, 0);
}

/* Memory that is no file; and an address that is nothing at all. */
static void other_addresses(void **state)
{
	uint8_t *code = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct inprocess_span span;
	uint64_t pos;

	(void)state;
	assert_true(code != MAP_FAILED);
	agent_map_tell(&ring, (uintptr_t)code + 4100);
	span = take();
	pos = span.from;
	assert_int_equal(inprocess_record_next(&span, &pos, &rec), 1);
	assert_string_equal(rec.load.path, "//anon");
	assert_int_equal(rec.load.id.len, 0);
	agent_map_tell(&ring, 16);
	assert_int_equal(ring.head->head, ring.head->tail);
	assert_int_equal(ring.head->lost_maps, 1);
	munmap(code, 8192);
}

/* Two that lie side by side, of a file whose name the kernel writes with \\012. */
static void a_name_of_two_lines(void **state)
{
	struct inprocess_span span;
	uint64_t pos;
	char path[128];
	uint8_t *code;
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/a\nb", folder);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 8192), 0);
	code = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	close(fd);
	if (code == MAP_FAILED)
		skip();
	/* Something else in its first page: of other rights alone an emulator makes no two lines.
	 */
	assert_ptr_equal(
		mmap(code, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), code);
	agent_map_tell(&ring, (uintptr_t)code + 4096);
	span = take();
	pos = span.from;
	assert_int_equal(inprocess_record_next(&span, &pos, &rec), 1);
	assert_string_equal(rec.load.path, path);
	assert_int_equal(rec.load.addr, (uintptr_t)code + 4096);
	assert_int_equal(rec.load.file_off, 4096);
	assert_int_equal(rec.load.prot, PROT_READ | PROT_EXEC);
	munmap(code, 8192);
}

static void build_id_of_objects(void **state)
{
	struct agent_object o;
	uint8_t id[32];
	uint64_t at = 0;
	size_t len;

	(void)state;
	if (!agent_object_find((uintptr_t)strtoull, &o))
		skip();
	assert_true(o.start <= (uintptr_t)strtoull);
	len = agent_object_id(o.start, id, &at);
	assert_int_equal(len, 20);
	assert_memory_equal((const void *)(uintptr_t)at, id, len);
	/* What is no image has none. */
	assert_int_equal(agent_object_id((uintptr_t)copy, id, &at), 0);
	assert_int_equal(agent_object_id(16, id, &at), 0);
}

/* Files of that name, which are empty. */
static int count_failed(void)
{
	DIR *dir = opendir(folder);
	struct dirent *e;
	struct stat st;
	int nr = 0;

	while ((e = readdir(dir))) {
		if (strncmp(e->d_name, INPROCESS_FAILED, strlen(INPROCESS_FAILED)) != 0)
			continue;
		assert_int_equal(fstatat(dirfd(dir), e->d_name, &st, 0), 0);
		assert_int_equal(st.st_size, 0);
		nr++;
	}
	closedir(dir);
	return nr;
}

static void no_room_for_a_ring(void **state)
{
	struct rlimit old, small = { 4096, 0 };
	struct agent_ring r;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	/* Trying it would be a signal. */
	assert_int_equal(count_failed(), 0);
	assert_int_equal(agent_ring_open(&orders, NULL, &r), -EFBIG);
	assert_null(r.head);
	assert_int_equal(count_failed(), 1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	strcpy(orders.folder, "/nonexistent/folder");
	assert_int_equal(agent_ring_open(&orders, NULL, &r), -ENOENT);
}

int main(void)
{
#define TRIAL(test) cmocka_unit_test_setup_teardown(test, begin, end)
	const struct CMUnitTest tests[] = {
		TRIAL(orders_parsed),	      TRIAL(lines_parsed),
		TRIAL(head_written),	      TRIAL(head_of_a_child),
		TRIAL(records_wrap_and_fill), TRIAL(own_code_is_told_once),
		TRIAL(other_addresses),	      TRIAL(a_name_of_two_lines),
		TRIAL(build_id_of_objects),   TRIAL(no_room_for_a_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
