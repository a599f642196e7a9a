/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake.h"
#include "opagent.h"
#include "routine_file.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct fake fake;
static op_agent_t agent;
static uint8_t code[8192];
static _Alignas(8) uint8_t stream[4u << 20];
static size_t stream_len, stream_pos;

static int open_all(void)
{
	for (size_t i = 0; i < sizeof(code); i++)
		code[i] = (uint8_t)(i * 7 + (i >> 8));
	fake_open(&fake, FAKE_SOCKET);
	agent = op_open_agent();
	CHECK(agent && fake_take(&fake));
	return 0;
}

/* The next record that was told, or NULL. */
static const struct wire_head *next(void)
{
	if (stream_pos == stream_len) {
		stream_len = fake_read(&fake, stream, sizeof(stream));
		stream_pos = 0;
	}
	return fake_next(stream, stream_len, &stream_pos);
}

static int next_routine(struct wire_routine_view *v)
{
	const struct wire_head *h = next();

	CHECK(h && wire_routine_parse(h, v) == 0);
	return 0;
}

/* Line @at of a routine is at @off, of @line in @file. */
static int line_is(const struct wire_routine_view *v, uint32_t at, uint32_t off, uint32_t line,
		   const char *file)
{
	size_t len;
	const char *name = routine_file(v, v->lines[at].file, &len);

	CHECK(v->lines[at].code_off == off && v->lines[at].line == line);
	CHECK(!line || (name && len == strlen(file) && !memcmp(name, file, len)));
	return 0;
}

static uint64_t vma(size_t off)
{
	return (uintptr_t)(code + off);
}

static int fails(int r, int error)
{
	int had = errno;

	errno = 0;
	CHECK(r == -1 && had == error);
	return 0;
}

static int code_and_its_end_are_told(void)
{
	struct wire_routine_view v;
	const struct wire_head *h;

	CHECK(open_all() == 0 && op_major_version() == 1 && op_minor_version() == 0);
	CHECK(op_write_native_code(agent, "A.f(I)V", vma(16), code + 16, 100) == 0);
	CHECK(next_routine(&v) == 0 && v.rec->addr == vma(16) && v.rec->code_len == 100);
	CHECK(v.rec->name_len == 7 && !memcmp(v.name, "A.f(I)V", 7) && v.rec->nr_lines == 0);
	CHECK(v.code && !memcmp(v.code, code + 16, 100));
	/* No code: it stands where it runs. */
	CHECK(op_write_native_code(agent, "g", vma(512), NULL, 10) == 0 && next_routine(&v) == 0);
	CHECK(v.rec->addr == vma(512) && v.code && !memcmp(v.code, code + 512, 10));
	CHECK(op_unload_native_code(agent, vma(16)) == 0);
	h = next();
	CHECK(h && h->type == WIRE_RETIRE);
	CHECK(((const struct wire_retire *)(const void *)h)->addr == vma(16));
	CHECK(op_unload_native_code(agent, vma(16)) == 0 && !next());
	CHECK(op_close_agent(agent) == 0);
	fake_close(&fake);
	return 0;
}

static int bytes_stand_elsewhere(void)
{
	uint8_t *away = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct debug_line_info by_vma = { (uintptr_t)away + 8, 3, "a" };
	struct debug_line_info by_code = { vma(8), 4, "a" };
	struct wire_routine_view v;

	CHECK(open_all() == 0 && away != MAP_FAILED);
	CHECK(op_write_native_code(agent, "f", (uintptr_t)away, code, 64) == 0);
	CHECK(next_routine(&v) == 0 && v.rec->addr == (uintptr_t)away);
	CHECK(v.code && !memcmp(v.code, code, 64));
	/* Lines come for the pointer, with addresses of either place. */
	CHECK(op_write_debug_line_info(agent, code, 1, &by_vma) == 0 && next_routine(&v) == 0);
	CHECK(v.rec->addr == (uintptr_t)away && v.rec->nr_lines == 1);
	CHECK(line_is(&v, 0, 8, 3, "a") == 0 && !memcmp(v.code, code, 64));
	CHECK(op_write_debug_line_info(agent, code, 1, &by_code) == 0 && next_routine(&v) == 0);
	CHECK(v.rec->nr_lines == 1 && line_is(&v, 0, 8, 4, "a") == 0);
	/* It ends by its vma, and its pointer is then unknown. */
	CHECK(op_unload_native_code(agent, (uintptr_t)away) == 0 && next());
	CHECK(op_write_debug_line_info(agent, code, 1, &by_code) == 0 && !next());
	CHECK(fails(op_write_native_code(agent, "g", (uintptr_t)away, NULL, 64), EFAULT) == 0);
	CHECK(!next());
	fake_close(&fake);
	return 0;
}

static int lines_come_after_or_before(void)
{
	char name[] = "/src/b.java", other[] = "/src/a.java";
	struct debug_line_info lines[] = { { vma(40), 12, name },  { vma(0), 10, other },
					   { vma(4), 11, NULL },   { vma(8), 13, "/src/b.java" },
					   { vma(100), 99, name }, { vma(0) - 1, 98, name } };
	struct wire_routine_view v;

	CHECK(open_all() == 0);
	CHECK(op_write_native_code(agent, "f", vma(0), code, 100) == 0 && next_routine(&v) == 0);
	CHECK(op_write_debug_line_info(agent, code, 6, lines) == 0 && next_routine(&v) == 0);
	CHECK(v.rec->name_len == 1 && v.rec->addr == vma(0) && v.rec->nr_files == 2);
	/* Sorted; those outside the code are left out. */
	CHECK(v.rec->nr_lines == 4 && line_is(&v, 0, 0, 10, other) == 0);
	CHECK(line_is(&v, 1, 4, 0, "") == 0 && line_is(&v, 2, 8, 13, name) == 0);
	CHECK(line_is(&v, 3, 40, 12, name) == 0);
	/* Before: kept, copied, until the code comes; once. */
	lines[0].vma = vma(1000);
	CHECK(op_write_debug_line_info(agent, code + 1000, 1, lines) == 0 && !next());
	memset(name, 'x', sizeof(name) - 1);
	CHECK(op_write_native_code(agent, "g", vma(1000), code + 1000, 8) == 0);
	CHECK(next_routine(&v) == 0 && v.rec->nr_lines == 1);
	CHECK(line_is(&v, 0, 0, 12, "/src/b.java") == 0 && !next());
	/* Other code in its place has none of its lines. */
	CHECK(op_write_native_code(agent, "h", vma(1000), code + 1000, 8) == 0);
	CHECK(next_routine(&v) == 0 && *v.name == 'h' && v.rec->nr_lines == 0);
	CHECK(op_write_debug_line_info(agent, code + 1000, 0, NULL) == 0 && !next());
	fake_close(&fake);
	return 0;
}

static int bad_arguments_are_refused(void)
{
	struct debug_line_info line = { vma(0), 1, "a" };
	op_agent_t second;

	CHECK(open_all() == 0);
	second = op_open_agent();
	CHECK(second && second != agent && op_close_agent(second) == 0);
	CHECK(fails(op_close_agent(second), EINVAL) == 0);
	CHECK(fails(op_close_agent(NULL), EINVAL) == 0);
	CHECK(fails(op_write_native_code(second, "f", vma(0), code, 8), EINVAL) == 0);
	CHECK(fails(op_write_native_code(agent, NULL, vma(0), code, 8), EINVAL) == 0);
	CHECK(fails(op_write_native_code(agent, "", vma(0), code, 8), EINVAL) == 0);
	CHECK(fails(op_write_native_code(agent, "f", 0, code, 8), EINVAL) == 0);
	CHECK(fails(op_write_native_code(agent, "f", vma(0), code, 0), EINVAL) == 0);
	CHECK(fails(op_write_native_code(agent, "f", UINT64_MAX - 3, code, 8), EINVAL) == 0);
	CHECK(fails(op_write_native_code(agent, "f", vma(0), code, (16u << 20) + 1), EINVAL) == 0);
	CHECK(fails(op_write_debug_line_info(second, code, 1, &line), EINVAL) == 0);
	CHECK(fails(op_write_debug_line_info(agent, NULL, 1, &line), EINVAL) == 0);
	CHECK(fails(op_write_debug_line_info(agent, code, 1, NULL), EINVAL) == 0);
	CHECK(fails(op_write_debug_line_info(agent, code, SIZE_MAX / 8, &line), ENOMEM) == 0);
	CHECK(fails(op_unload_native_code(second, vma(0)), EINVAL) == 0);
	CHECK(fails(op_unload_native_code(agent, 0), EINVAL) == 0);
	CHECK(!next());
	/* errno is nobody's after success. */
	errno = 4711;
	CHECK(op_write_native_code(agent, "f", vma(0), NULL, 8) == 0 && errno == 4711 && next());
	fake_close(&fake);
	return 0;
}

/* Handles of the parent go on; what the child tells is its own. */
static int a_child_begins_anew(void)
{
	int status;
	pid_t pid;

	CHECK(open_all() == 0);
	CHECK(op_write_native_code(agent, "f", vma(0), code, 8) == 0 && next());
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(op_write_native_code(agent, "g", vma(64), code + 64, 8) ||
		      op_unload_native_code(agent, vma(64)) || op_close_agent(agent));
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(fake_take(&fake)); /* a registry of its own */
	fake_close(&fake);
	return 0;
}

enum { NR_THREADS = 4, NR_EACH = 500 };

static void *tell_many(void *arg)
{
	uint8_t *mine = code + 2048 * (size_t)(intptr_t)arg;
	struct debug_line_info line = { (uintptr_t)mine + 1, 7, "t" };

	for (int i = 0; i < NR_EACH; i++)
		if (op_write_native_code(agent, "t", (uintptr_t)mine, mine, 16) ||
		    op_write_debug_line_info(agent, mine, 1, &line) ||
		    op_unload_native_code(agent, (uintptr_t)mine))
			return arg ? arg : (void *)1;
	return NULL;
}

static int threads_need_no_lock(void)
{
	pthread_t thread[NR_THREADS];
	int nr[WIRE_RETIRE + WIRE_ROUTINE + 1] = { 0 };
	const struct wire_head *h;
	void *bad;

	CHECK(open_all() == 0);
	for (int i = 0; i < NR_THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, tell_many, (void *)(intptr_t)i));
	for (int i = 0; i < NR_THREADS; i++)
		CHECK(!pthread_join(thread[i], &bad) && !bad);
	while ((h = next()))
		nr[h->type]++;
	CHECK(nr[WIRE_ROUTINE] == 2 * NR_THREADS * NR_EACH);
	CHECK(nr[WIRE_RETIRE] == NR_THREADS * NR_EACH);
	fake_close(&fake);
	return 0;
}

FAKE_TEST(code_and_its_end_are_told)
FAKE_TEST(bytes_stand_elsewhere)
FAKE_TEST(lines_come_after_or_before)
FAKE_TEST(bad_arguments_are_refused)
FAKE_TEST(a_child_begins_anew)
FAKE_TEST(threads_need_no_lock)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_code_and_its_end_are_told),
		cmocka_unit_test(test_bytes_stand_elsewhere),
		cmocka_unit_test(test_lines_come_after_or_before),
		cmocka_unit_test(test_bad_arguments_are_refused),
		cmocka_unit_test(test_a_child_begins_anew),
		cmocka_unit_test(test_threads_need_no_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
