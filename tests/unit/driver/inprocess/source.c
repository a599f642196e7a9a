/* SPDX-License-Identifier: BSD-2-Clause */
/* The source "inprocess" over rings that the test writes itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "inprocess_source.h"

enum { UNITS = 64, LOG = 200 };

/* In place of lib/base's: nobody need wait for a second to pass. */
static uint64_t ahead_ns;

uint64_t base_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec + ahead_ns;
}

/* ---- what was handed on ---------------------------------------------------------------------- */

static char handed[LOG][128];
static size_t nr_handed;
static uint64_t last_ns, nr_counted;

static int note_load(void *ctx, const struct driver_load *l)
{
	static const char *const kinds[] = { "mmap", "fork", "exec", "comm", "exit" };
	char *to = handed[nr_handed++];

	(void)ctx;
	assert_true(nr_handed < LOG && l->kind <= DRIVER_LOAD_EXIT);
	assert_true(l->time_ns >= last_ns);
	last_ns = l->time_ns;
	if (l->kind == DRIVER_LOAD_MMAP)
		snprintf(to, 128, "mmap %d %llx+%llx %s id %d:%02x", l->pid,
			 (unsigned long long)l->addr, (unsigned long long)l->len, l->path,
			 l->id.len, l->id.bytes[0]);
	else if (l->kind == DRIVER_LOAD_FORK)
		snprintf(to, 128, "fork %d of %d", l->pid, l->ppid);
	else
		snprintf(to, 128, "%s %d%s%s", kinds[l->kind], l->pid, l->path ? " " : "",
			 l->path ? l->path : "");
	return 0;
}

static int note_count(void *ctx, const struct driver_count *c)
{
	(void)ctx;
	assert_true(nr_handed < LOG);
	assert_true(c->time_ns >= last_ns && c->first_ns == c->time_ns);
	assert_int_equal(c->mode, DRIVER_USER);
	assert_int_equal(c->count, 1);
	last_ns = c->time_ns;
	nr_counted++;
	snprintf(handed[nr_handed++], 128, "sample %d.%d %llx", c->pid, c->tid,
		 (unsigned long long)c->addr);
	return 0;
}

static const struct driver_sink sink = { .load = note_load, .count = note_count };

/* ---- a ring ---------------------------------------------------------------------------------- */

struct fake {
	int fd;
	struct inprocess_head head;
};

static char folder[64];
static uint64_t own_space, base_ns;
static struct driver *source;
static struct base_err err;

static void fake_head(struct fake *f)
{
	uint32_t stop = 0;
	uint64_t tail = 0;

	/* The reader's line is the reader's. */
	assert_true(pread(f->fd, &tail, 8, offsetof(struct inprocess_head, tail)) >= 0);
	assert_true(pread(f->fd, &stop, 4, offsetof(struct inprocess_head, stop)) >= 0);
	f->head.tail = tail;
	f->head.stop = stop;
	assert_int_equal(pwrite(f->fd, &f->head, sizeof(f->head), 0), sizeof(f->head));
}

static struct fake fake_open(const char *name, int32_t pid, enum inprocess_born born,
			     uint64_t start_ns)
{
	struct fake f = { .head = { .magic = INPROCESS_MAGIC,
				    .version = INPROCESS_VERSION,
				    .nr_units = UNITS,
				    .pid = pid,
				    .pid_space = own_space,
				    .parent_space = own_space,
				    .start_ns = start_ns,
				    .period_ns = 4000000,
				    .born = born,
				    .comm = "prog" } };
	char path[128];

	snprintf(path, sizeof(path), "%s/%s%s", folder, INPROCESS_PREFIX, name);
	f.fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(f.fd >= 0);
	assert_int_equal(ftruncate(f.fd, INPROCESS_HEAD_LEN + UNITS * 32), 0);
	fake_head(&f);
	return f;
}

static void put_unit(struct fake *f, uint64_t pos, const void *unit)
{
	assert_int_equal(pwrite(f->fd, unit, 32, INPROCESS_HEAD_LEN + (off_t)(pos % UNITS) * 32),
			 32);
}

static void put_sample_at(struct fake *f, uint64_t pos, uint64_t time_ns, uint64_t addr)
{
	const struct inprocess_unit u = { .seq = pos + 1,
					  .time_ns = time_ns,
					  .addr = addr,
					  .tid = 7,
					  .type = INPROCESS_SAMPLE,
					  .nr = 1 };

	put_unit(f, pos, &u);
}

static void put_sample(struct fake *f, uint64_t time_ns, uint64_t addr)
{
	put_sample_at(f, f->head.head++, time_ns, addr);
	f->head.received++;
	fake_head(f);
}

static void put_map(struct fake *f, uint64_t time_ns, uint64_t addr, const char *path)
{
	struct inprocess_map m = {
		.len = 0x1000, .path_len = (uint16_t)strlen(path), .id_len = 20, .id = { 0xab }
	};
	size_t len = sizeof(m) + strlen(path), nr = 1 + (len + 31) / 32;
	struct inprocess_unit u = {
		.time_ns = time_ns, .addr = addr, .type = INPROCESS_MAP, .nr = (uint16_t)nr
	};
	uint8_t bytes[32 * UNITS] = { 0 };

	u.seq = f->head.head + 1;
	memcpy(bytes, &u, sizeof(u));
	memcpy(bytes + 32, &m, sizeof(m));
	memcpy(bytes + 32 + sizeof(m), path, strlen(path));
	for (size_t i = 0; i < nr; i++)
		put_unit(f, f->head.head++, bytes + 32 * i);
	fake_head(f);
}

/* ---- a trial --------------------------------------------------------------------------------- */

static int begin(void **state)
{
	struct driver_config config = { .source = "inprocess", .run_dir = folder };

	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/dcpi-inprocess-XXXXXX");
	assert_non_null(mkdtemp(folder));
	own_space = inprocess_own_space();
	ahead_ns = 0;
	base_ns = base_now_ns() - 50000000;
	nr_handed = nr_counted = 0;
	last_ns = 0;
	err = (struct base_err){ 0 };
	assert_int_equal(driver_open(&config, &source, &err), 0);
	assert_int_equal(driver_start(source, &err), 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	driver_close(source);
	return rmdir(folder);
}

static void drain(bool all)
{
	struct driver_stats s;

	nr_handed = 0;
	assert_int_equal(driver_drain(source, all, &sink, &err), 0);
	driver_stats_get(source, &s);
	assert_int_equal(s.received[0], nr_counted + s.held + s.lost_ring + s.lost_bad);
}

static void expect(size_t nr, const char *const *lines)
{
	for (size_t i = 0; i < nr && i < nr_handed; i++)
		assert_string_equal(handed[i], lines[i]);
	assert_int_equal(nr_handed, nr);
}

#define EXPECT(...)                                                                                \
	do {                                                                                       \
		const char *const lines[] = { __VA_ARGS__ };                                       \
		expect(sizeof(lines) / sizeof(*lines), lines);                                     \
	} while (0)

/* @text with the pid in place of its "%d". */
static const char *line_pid(const char *text, int32_t pid)
{
	static char lines[8][128];
	static unsigned int next;
	const char *at = strstr(text, "%d");
	char *to = lines[next++ % 8];

	assert_non_null(at);
	snprintf(to, 128, "%.*s%d%s", (int)(at - text), text, pid, at + 2);
	return to;
}

#define ME(format) line_pid(format, getpid())

/* A pid that nobody has. */
static int32_t dead_pid(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void one_process(void **state)
{
	struct fake f = fake_open("a", getpid(), INPROCESS_EXEC, base_ns);
	struct driver_stats s;
	uint64_t tail;

	(void)state;
	put_map(&f, base_ns + 10, 0x5000, "/lib/x y.so");
	put_sample(&f, base_ns + 20, 0x5010);
	f.head.missed = 3;
	fake_head(&f);
	drain(false);
	EXPECT(ME("exec %d prog"), ME("mmap %d 5000+1000 /lib/x y.so id 20:ab"),
	       ME("sample %d.7 5010"));
	driver_stats_get(source, &s);
	assert_int_equal(s.missed[0], 3);
	assert_int_equal(pread(f.fd, &tail, 8, offsetof(struct inprocess_head, tail)), 8);
	assert_int_equal(tail, f.head.head);
	drain(false);
	assert_int_equal(nr_handed, 0);
	close(f.fd);
}

/* Each has its own path, although they are read one by one into one place. */
static void several_mappings(void **state)
{
	struct fake f = fake_open("a", getpid(), INPROCESS_EXEC, base_ns);

	(void)state;
	put_map(&f, base_ns + 10, 0x5000, "/lib/one.so");
	put_map(&f, base_ns + 10, 0x6000, "/lib/two.so");
	put_map(&f, base_ns + 5, 0x7000, "/lib/first.so");
	drain(false);
	EXPECT(ME("exec %d prog"), ME("mmap %d 7000+1000 /lib/first.so id 20:ab"),
	       ME("mmap %d 5000+1000 /lib/one.so id 20:ab"),
	       ME("mmap %d 6000+1000 /lib/two.so id 20:ab"));
	close(f.fd);
}

/* What the program counts is read each time, and once more at the end. */
static void counters_go_on(void **state)
{
	struct fake f = fake_open("a", getpid(), INPROCESS_EXEC, base_ns);
	struct driver_stats s;

	(void)state;
	put_sample(&f, base_ns + 10, 0x1);
	drain(true);
	f.head.lost = 3;
	f.head.missed = 4;
	f.head.lost_maps = 5;
	f.head.received += 3 + 2; /* two were begun and never written */
	for (int i = 0; i < 2; i++) {
		fake_head(&f);
		drain(true);
		driver_stats_get(source, &s);
		assert_int_equal(s.received[0], i ? 6 : 4);
		assert_int_equal(s.lost_ring, 3);
		assert_int_equal(s.missed[0], 4);
		assert_int_equal(s.lost_load, 5);
		assert_int_equal(s.lost_bad, i ? 2 : 0);
		driver_stop(source);
	}
	close(f.fd);
}

/* Its name is there before its head is: it is looked at again. */
static void a_head_comes_late(void **state)
{
	struct fake f = fake_open("a", getpid(), INPROCESS_EXEC, base_ns);

	(void)state;
	f.head.magic = 0;
	put_sample(&f, base_ns + 10, 0x1);
	drain(true);
	assert_int_equal(nr_handed, 0);
	f.head.magic = INPROCESS_MAGIC;
	fake_head(&f);
	drain(true);
	EXPECT(ME("exec %d prog"), ME("sample %d.7 1"));
	close(f.fd);
}

/* What another version of the agent wrote, or nobody's, is not taken apart; nor looked at again. */
static void heads_of_others(void **state)
{
	struct fake newer = fake_open("a", getpid(), INPROCESS_EXEC, base_ns);
	struct fake nobodys = fake_open("b", getpid(), INPROCESS_EXEC, base_ns);

	(void)state;
	newer.head.version++;
	put_sample(&newer, base_ns + 10, 0x1);
	nobodys.head.magic++;
	put_sample(&nobodys, base_ns + 10, 0x1);
	drain(true);
	assert_int_equal(nr_handed, 0);
	newer.head.version--;
	fake_head(&newer);
	nobodys.head.magic--;
	fake_head(&nobodys);
	drain(true);
	assert_int_equal(nr_handed, 0);
	close(newer.fd);
	close(nobodys.fd);
}

static uint64_t tail_of(const struct fake *f)
{
	uint64_t tail = 0;

	assert_int_equal(pread(f->fd, &tail, 8, offsetof(struct inprocess_head, tail)), 8);
	return tail;
}

/* What was awaited up to a head that went back is given up as far as there is something. */
static void a_head_goes_back_over_a_torn_record(void **state)
{
	struct fake f = fake_open("a", getpid(), INPROCESS_EXEC, base_ns);

	(void)state;
	f.head.head = 10;
	fake_head(&f);
	drain(true);
	f.head.head = 5;
	fake_head(&f);
	ahead_ns = 1100000000;
	drain(true);
	assert_int_equal(tail_of(&f), 5);
	put_sample(&f, base_ns + 1, 0x1);
	drain(true);
	EXPECT(ME("sample %d.7 1"));
	close(f.fd);
}

/* More lost than fits beside what was read: then none is torn. */
static void sums_that_do_not_fit(void **state)
{
	struct fake f = fake_open("a", getpid(), INPROCESS_EXEC, base_ns);
	struct driver_stats s;

	(void)state;
	put_sample(&f, base_ns + 10, 0x1);
	f.head.lost = UINT64_MAX;
	f.head.received = 50;
	fake_head(&f);
	driver_stop(source);
	assert_int_equal(driver_drain(source, true, &sink, &err), 0);
	driver_stats_get(source, &s);
	assert_int_equal(s.lost_bad, 0);
	assert_int_equal(s.received[0], UINT64_MAX);
	close(f.fd);
}

/* Who it is stands fast: it cannot seem to be another, or dead, later. */
static void who_it_is_is_believed_once(void **state)
{
	struct fake f = fake_open("a", getpid(), INPROCESS_EXEC, base_ns);

	(void)state;
	put_sample(&f, base_ns + 10, 0x1);
	drain(true);
	f.head.pid = dead_pid();
	f.head.pid_space = own_space + 1;
	f.head.start_ns = 1;
	f.head.ended = 1;
	put_sample(&f, base_ns + 20, 0x2);
	drain(true);
	EXPECT(ME("sample %d.7 2"));
	ahead_ns = 2000000000;
	for (int i = 0; i < 2; i++) {
		drain(true);
		assert_int_equal(nr_handed, 0);
	}
	close(f.fd);
}

static void young_ones_wait(void **state)
{
	struct fake f = fake_open("a", getpid(), INPROCESS_EXEC, base_ns);
	struct driver_stats s;

	(void)state;
	/* A time to come is no better than now. */
	put_sample(&f, UINT64_MAX, 0x2);
	put_sample(&f, base_ns, 0x1);
	put_map(&f, UINT64_MAX, 0x5000, "/lib/x.so");
	drain(false);
	EXPECT(ME("exec %d prog"), ME("sample %d.7 1"));
	driver_stats_get(source, &s);
	assert_int_equal(s.held, 1); /* sample */
	drain(true);
	EXPECT(ME("sample %d.7 2"), ME("mmap %d 5000+1000 /lib/x.so id 20:ab"));
	/* Nor is one that is past already. */
	put_sample(&f, 5, 0x3);
	drain(true);
	EXPECT(ME("sample %d.7 3"));
	close(f.fd);
}

static void wraps(void **state)
{
	struct fake f = fake_open("a", getpid(), INPROCESS_EXEC, base_ns);

	(void)state;
	drain(true);
	for (int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < 40; i++)
			put_sample(&f, base_ns + i, 0x100 + i);
		put_map(&f, base_ns + 50, 0x7000, "/a/rather/long/path/over/units");
		drain(true);
		assert_int_equal(nr_handed, 41);
		assert_string_equal(handed[39], ME("sample %d.7 127"));
		assert_string_equal(
			handed[40],
			ME("mmap %d 7000+1000 /a/rather/long/path/over/units id 20:ab"));
	}
	close(f.fd);
}

static void a_record_begun_is_waited_for(void **state)
{
	struct fake f = fake_open("a", getpid(), INPROCESS_EXEC, base_ns);

	(void)state;
	f.head.head = 1;
	f.head.received = 1;
	put_sample(&f, base_ns + 2, 0x2);
	drain(true);
	EXPECT(ME("exec %d prog"));
	put_sample_at(&f, 0, base_ns + 1, 0x1);
	drain(true);
	EXPECT(ME("sample %d.7 1"), ME("sample %d.7 2"));
	close(f.fd);
}

/* Not for ever: its thread may have been killed in it. Younger ones have their own time. */
static void a_torn_record_is_given_up(void **state)
{
	struct fake f = fake_open("a", getpid(), INPROCESS_EXEC, base_ns);
	struct driver_stats s;

	(void)state;
	f.head.head = 4; /* as long as a mapping */
	fake_head(&f);
	drain(true);
	ahead_ns = 900000000;
	f.head.head = 5; /* a young one */
	put_sample(&f, base_ns + 2, 0x2);
	drain(true);
	assert_int_equal(nr_handed, 0);
	ahead_ns = 1100000000;
	drain(true);
	assert_int_equal(nr_handed, 0);
	driver_stats_get(source, &s);
	assert_int_equal(s.lost_load, 1);
	put_sample_at(&f, 4, base_ns + 1, 0x1);
	drain(true);
	EXPECT(ME("sample %d.7 1"), ME("sample %d.7 2"));
	/* Torn, too short for a mapping. */
	f.head.head = 7;
	put_sample(&f, base_ns + 3, 0x3);
	drain(true);
	ahead_ns += 1100000000;
	drain(true);
	EXPECT(ME("sample %d.7 3"));
	driver_stats_get(source, &s);
	assert_int_equal(s.lost_load, 1);
	close(f.fd);
}

static void of_the_dead_nothing_is_awaited(void **state)
{
	int32_t pid = dead_pid();
	struct fake f = fake_open("a", pid, INPROCESS_EXEC, base_ns);
	struct driver_stats s;

	(void)state;
	f.head.lost = 4;
	f.head.head = 3; /* begun, never completed */
	f.head.received = 4 + 3;
	put_sample(&f, base_ns + 2, 0x2);
	drain(true);
	EXPECT(line_pid("exec %d prog", pid), line_pid("sample %d.7 2", pid),
	       line_pid("exit %d", pid));
	driver_stats_get(source, &s);
	assert_int_equal(s.received[0], 8);
	assert_int_equal(s.lost_ring, 4);
	assert_int_equal(s.lost_bad, 3);
	close(f.fd);
}

static void zombies_are_dead(void **state)
{
	pid_t pid = fork();
	siginfo_t info;

	(void)state;
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_false(inprocess_alive(pid, base_now_ns()));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(inprocess_alive(getpid(), base_now_ns()));
	/* Who began later is somebody else. */
	assert_false(inprocess_alive(getpid(), 1));
}

static void children_and_programs(void **state)
{
	int32_t pid = dead_pid();
	/* Found in any order: by name, not by birth. */
	struct fake next = fake_open("0", pid, INPROCESS_EXEC, base_ns + 40);
	struct fake program = fake_open("a", pid, INPROCESS_EXEC, base_ns + 30);
	struct fake child = fake_open("b", pid, INPROCESS_FORK, base_ns + 20);
	struct fake parent = fake_open("c", getpid(), INPROCESS_EXEC, base_ns + 10);

	(void)state;
	child.head.parent_pid = getpid();
	fake_head(&child);
	put_sample(&child, base_ns + 25, 0xc);
	put_sample(&program, base_ns + 35, 0xe);
	put_sample(&next, base_ns + 45, 0xf);
	drain(true);
	snprintf(handed[LOG - 1], 128, "fork %d of %d", pid, getpid());
	assert_string_equal(handed[1], handed[LOG - 1]);
	assert_string_equal(handed[2], line_pid("sample %d.7 c", pid));
	assert_string_equal(handed[3], line_pid("exec %d prog", pid));
	assert_string_equal(handed[4], line_pid("sample %d.7 e", pid));
	assert_string_equal(handed[5], line_pid("exec %d prog", pid));
	assert_string_equal(handed[6], line_pid("sample %d.7 f", pid));
	/* One end, of the last life. */
	assert_string_equal(handed[7], line_pid("exit %d", pid));
	assert_int_equal(nr_handed, 8);
	close(next.fd);
	close(program.fd);
	close(child.fd);
	close(parent.fd);
}

/* Pid 2 of another namespace is nobody here, and the same nobody after an exec. */
static void other_namespaces(void **state)
{
	struct fake f = fake_open("a", 2, INPROCESS_EXEC, base_ns), g;
	int first, second;

	(void)state;
	f.head.pid_space = own_space + 1;
	fake_head(&f);
	drain(true);
	assert_int_equal(sscanf(handed[0], "exec %d prog", &first), 1);
	assert_true(first >= 0x40000000);
	g = fake_open("b", 2, INPROCESS_EXEC, base_ns + 5);
	g.head.pid_space = own_space + 1;
	fake_head(&g);
	drain(true);
	assert_int_equal(sscanf(handed[0], "exec %d prog", &second), 1);
	assert_int_equal(first, second);
	assert_int_equal(nr_handed, 1);
	/* Another process, later, with that number. */
	close(f.fd);
	f = fake_open("c", 2, INPROCESS_FORK, base_ns + 7);
	f.head.pid_space = own_space + 1;
	fake_head(&f);
	drain(true);
	assert_int_equal(sscanf(handed[0], "fork %d of", &second), 1);
	assert_int_not_equal(first, second);
	assert_string_equal(handed[1], line_pid("exit %d", first));
	assert_int_equal(nr_handed, 2);
	close(f.fd);
	close(g.fd);
}

/* A child of somebody there is told as his, by the number that he has here; else as of nobody. */
static void children_in_other_namespaces(void **state)
{
	struct fake parent = fake_open("a", 2, INPROCESS_EXEC, base_ns);
	struct fake child = fake_open("b", 3, INPROCESS_FORK, base_ns + 5);
	struct fake orphan = fake_open("c", 4, INPROCESS_FORK, base_ns + 6);
	int first, second, of;

	(void)state;
	parent.head.pid_space = child.head.pid_space = orphan.head.pid_space = own_space + 1;
	child.head.parent_space = orphan.head.parent_space = own_space + 1;
	child.head.parent_pid = 2;
	orphan.head.parent_pid = getpid();
	fake_head(&parent);
	fake_head(&child);
	fake_head(&orphan);
	drain(true);
	assert_int_equal(nr_handed, 3);
	assert_int_equal(sscanf(handed[0], "exec %d prog", &first), 1);
	assert_int_equal(sscanf(handed[1], "fork %d of %d", &second, &of), 2);
	assert_int_equal(of, first);
	assert_int_not_equal(second, first);
	assert_int_equal(sscanf(handed[2], "fork %d of %d", &second, &of), 2);
	assert_int_equal(of, second);
	close(parent.fd);
	close(child.fd);
	close(orphan.fd);
}

/* Nobody can ask whether it lives: it says that it ends, and is quiet then. */
static void they_tell_their_end(void **state)
{
	struct fake f = fake_open("a", 2, INPROCESS_EXEC, base_ns);
	int pid;

	(void)state;
	f.head.pid_space = own_space + 1;
	fake_head(&f);
	drain(true);
	assert_int_equal(sscanf(handed[0], "exec %d prog", &pid), 1);
	f.head.ended = 1;
	fake_head(&f);
	drain(true);
	ahead_ns = 900000000;
	put_sample(&f, base_ns + 1, 0x1); /* other threads run on for a while */
	drain(true);
	EXPECT(line_pid("sample %d.7 1", pid));
	ahead_ns = 1800000000;
	drain(true);
	assert_int_equal(nr_handed, 0);
	/* The last look is before the end. */
	ahead_ns = 2000000000;
	put_sample(&f, base_ns + 1, 0x2);
	drain(true);
	EXPECT(line_pid("sample %d.7 2", pid), line_pid("exit %d", pid));
	put_sample(&f, base_ns + 1, 0x3);
	drain(true);
	assert_int_equal(nr_handed, 0);
	close(f.fd);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

/* So many more can be opened before the source leaves the rest to others. */
static struct rlimit limit_to(int nr)
{
	int free_fd = dup(0);
	rlim_t want = (rlim_t)free_fd + (rlim_t)nr;
	struct rlimit old, low;

	close(free_fd);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = old;
	for (low.rlim_cur = want; low.rlim_cur - low.rlim_cur / 4 < want;)
		low.rlim_cur++;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	return old;
}

enum { CROWD = 12 };

static void make_crowd(int32_t pid)
{
	char name[8];

	for (unsigned int i = 0; i < CROWD; i++) {
		struct fake f;

		snprintf(name, sizeof(name), "%u", i);
		f = fake_open(name, pid, INPROCESS_EXEC, base_ns + i);
		put_sample(&f, base_ns + i, i);
		close(f.fd);
	}
}

static void crowds_are_read_in_turns(void **state)
{
	struct driver_stats s;
	struct rlimit old;

	(void)state;
	make_crowd(dead_pid());
	old = limit_to(3);
	drain(true);
	assert_int_equal(nr_counted, 3);
	driver_stats_get(source, &s);
	assert_int_equal(s.nr_unread, 0); /* their turn will come */
	driver_stop(source);
	drain(true);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_int_equal(nr_counted, CROWD);
	driver_stats_get(source, &s);
	assert_int_equal(s.nr_unread, 0);
}

static void who_was_not_read_is_counted(void **state)
{
	struct driver_stats s;
	struct rlimit old;

	(void)state;
	make_crowd(dead_pid());
	old = limit_to(0);
	driver_stop(source);
	drain(true);
	assert_int_equal(nr_counted, 0);
	driver_stats_get(source, &s);
	assert_int_equal(s.nr_unread, CROWD);
	setrlimit(RLIMIT_NOFILE, &old);
	drain(true);
	assert_int_equal(nr_counted, CROWD);
	driver_stats_get(source, &s);
	assert_int_equal(s.nr_unread, 0);
}

/* Who could make no ring is told at the end, once. */
static void who_has_no_ring_is_counted(void **state)
{
	struct driver_stats s;
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/%s", folder, INPROCESS_FAILED "2.1");
	assert_int_equal(mknod(path, S_IFREG | 0600, 0), 0);
	drain(true);
	assert_int_equal(access(path, F_OK), -1);
	driver_stop(source);
	drain(true);
	drain(true);
	driver_stats_get(source, &s);
	assert_int_equal(s.nr_unread, 1);
	assert_int_equal(nr_handed, 0);
}

static void without_descriptors_none_is_dead(void **state)
{
	struct rlimit old, none;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_true(inprocess_alive(getpid(), base_now_ns()));
	setrlimit(RLIMIT_NOFILE, &old);
}

static void liars(void **state)
{
	struct fake bad = fake_open("a", getpid(), INPROCESS_EXEC, base_ns);
	struct fake far = fake_open("b", getpid(), INPROCESS_EXEC, base_ns + 1);
	struct fake many = fake_open("c", dead_pid(), INPROCESS_EXEC, base_ns + 2);
	struct fake nobody = fake_open("d", 0, INPROCESS_EXEC, base_ns + 3);
	struct driver_stats s;

	(void)state;
	bad.head.nr_units = 65;
	fake_head(&bad);
	far.head.head = UINT64_MAX - 3;
	fake_head(&far);
	many.head.received = many.head.lost = UINT64_MAX;
	fake_head(&many);
	drain(true);
	for (size_t i = 0; i < nr_handed; i++)
		assert_null(strstr(handed[i], " 0 "));
	drain(true);
	driver_stats_get(source, &s);
	assert_int_equal(s.lost_ring, UINT64_MAX);
	assert_int_equal(nr_counted, 0);
	close(bad.fd);
	close(far.fd);
	close(many.fd);
	close(nobody.fd);
}

/* Who says that it began more samples than its ring holds has lost no more than that. */
static void torn_samples_have_a_bound(void **state)
{
	struct fake f = fake_open("a", dead_pid(), INPROCESS_EXEC, base_ns);
	struct driver_stats s;

	(void)state;
	f.head.received = 1000000;
	fake_head(&f);
	drain(true);
	driver_stats_get(source, &s);
	assert_int_equal(s.lost_bad, UNITS);
	assert_int_equal(s.received[0], UNITS);
	close(f.fd);
}

/* A head that runs past the ring leaves what is still in it; one that goes back leaves nothing. */
static void heads_that_jump(void **state)
{
	struct fake f = fake_open("a", getpid(), INPROCESS_EXEC, base_ns);

	(void)state;
	for (int i = 0; i < UNITS + 10; i++)
		put_sample(&f, base_ns + 1, 0x1);
	drain(true);
	assert_int_equal(nr_counted, UNITS);
	f.head.head -= 5;
	fake_head(&f);
	drain(true);
	assert_int_equal(nr_counted, UNITS);
	f.head.head += 5;
	put_sample(&f, base_ns + 2, 0x2);
	drain(true);
	EXPECT(ME("sample %d.7 2"));
	close(f.fd);
}

static void bad_records(void **state)
{
	struct fake f = fake_open("a", getpid(), INPROCESS_EXEC, base_ns);
	struct inprocess_unit u = { .seq = 1, .type = 99, .nr = 1 };
	struct driver_stats s;

	(void)state;
	put_unit(&f, 0, &u);
	u = (struct inprocess_unit){ .seq = 2, .type = INPROCESS_MAP, .nr = 1, .addr = 1 };
	put_unit(&f, 1, &u);
	u = (struct inprocess_unit){ .seq = 3, .type = INPROCESS_SAMPLE, .nr = 60000 };
	put_unit(&f, 2, &u);
	u = (struct inprocess_unit){ .seq = 4, .type = INPROCESS_SAMPLE, .nr = 2 };
	put_unit(&f, 3, &u);
	f.head.head = 5;
	put_sample(&f, base_ns + 1, 0x1);
	drain(true);
	EXPECT(ME("exec %d prog"), ME("sample %d.7 1"));
	driver_stats_get(source, &s);
	assert_int_equal(s.lost_load, 1);
	close(f.fd);
}

/* A mapping of a page at 0x5000 whose path takes up all of the record's @nr units. */
static void put_full_map(struct fake *f, struct inprocess_map m, uint16_t nr)
{
	struct inprocess_unit u = { .seq = f->head.head + 1,
				    .time_ns = base_ns + 1,
				    .addr = 0x5000,
				    .type = INPROCESS_MAP,
				    .nr = nr };
	uint8_t bytes[32 * UNITS];

	memset(bytes, 'x', sizeof(bytes));
	memcpy(bytes, &u, sizeof(u));
	memcpy(bytes + 32, &m, sizeof(m));
	for (uint16_t i = 0; i < nr; i++)
		put_unit(f, f->head.head++, bytes + 32 * i);
	fake_head(f);
}

/* A mapping that leaves its record, has no length or no name, is refused, and no more. Nor may a
 * name end before its end: what is stored would be another one. */
static void bad_maps(void **state)
{
	enum { NR = 4, ROOM = 32 * (NR - 1) - sizeof(struct inprocess_map) };
	static const struct inprocess_map good = { .len = 0x1000, .path_len = ROOM, .id_len = 20 };
	struct fake f = fake_open("a", getpid(), INPROCESS_EXEC, base_ns);
	struct inprocess_map bad[6];
	struct driver_stats s;

	(void)state;
	for (int i = 0; i < 6; i++)
		bad[i] = good;
	bad[0].path_len++; /* into the next record */
	bad[1].path_len = 0;
	bad[2].len = 0;
	bad[3].len = UINT64_MAX - 0x4fff;
	bad[4].id_len = sizeof(bad[4].id) + 1;
	bad[5].path_len = UINT16_MAX;
	put_full_map(&f, good, NR);
	for (int i = 0; i < 6; i++)
		put_full_map(&f, bad[i], NR);
	put_full_map(&f, good, NR);
	/* In the midst of its name. */
	assert_int_equal(pwrite(f.fd, "", 1,
				INPROCESS_HEAD_LEN + (off_t)((f.head.head - 1) % UNITS) * 32 + 24),
			 1);
	put_sample(&f, base_ns + 2, 0x1);
	drain(true);
	assert_int_equal(nr_handed, 3);
	assert_non_null(strstr(handed[1], " 5000+1000 xxxx"));
	assert_string_equal(handed[2], ME("sample %d.7 1"));
	driver_stats_get(source, &s);
	assert_int_equal(s.lost_load, 7);
	close(f.fd);
}

/* What is not, or not any more, what was begun at its place is waited for. */
static void units_of_another_time(void **state)
{
	struct fake f = fake_open("a", getpid(), INPROCESS_EXEC, base_ns);
	struct fake g = fake_open("b", dead_pid(), INPROCESS_EXEC, base_ns + 3);

	(void)state;
	/* A record longer than what was written. */
	put_full_map(&g, (struct inprocess_map){ .len = 0x1000, .path_len = 1 }, 4);
	g.head.head--;
	fake_head(&g);
	put_sample(&f, base_ns + 1, 0x1);
	put_sample_at(&f, 1 + UNITS, base_ns + 2, 0x2);
	f.head.head = 2;
	fake_head(&f);
	drain(true);
	assert_int_equal(nr_handed, 4);
	assert_string_equal(handed[1], ME("sample %d.7 1"));
	assert_string_equal(handed[2], line_pid("exec %d prog", g.head.pid));
	assert_string_equal(handed[3], line_pid("exit %d", g.head.pid));
	close(f.fd);
	close(g.fd);
}

static void stop_is_told(void **state)
{
	struct fake f = fake_open("a", getpid(), INPROCESS_EXEC, base_ns);
	uint32_t stop = 0;

	(void)state;
	put_sample(&f, base_ns + 1, 0x1);
	drain(false);
	driver_stop(source);
	assert_int_equal(pread(f.fd, &stop, 4, offsetof(struct inprocess_head, stop)), 4);
	assert_int_equal(stop, 1);
	put_sample(&f, base_ns + 2, 0x2);
	drain(true);
	EXPECT(ME("sample %d.7 2"), ME("exit %d"));
	close(f.fd);
}

/* Nothing is written into what never was a ring. */
static void strangers_are_left_alone(void **state)
{
	struct fake f = fake_open("a", getpid(), INPROCESS_EXEC, base_ns);
	uint32_t stop = 0;

	(void)state;
	f.head.magic = 0;
	fake_head(&f);
	drain(false);
	driver_stop(source);
	assert_int_equal(pread(f.fd, &stop, 4, offsetof(struct inprocess_head, stop)), 4);
	assert_int_equal(stop, 0);
	close(f.fd);
}

static void wrong_use(void **state)
{
	static const char *const cycles = "cycles";
	struct driver_config config = { .source = "inprocess" };
	struct driver *d;

	(void)state;
	assert_int_equal(driver_open(&config, &d, &err), -DCPI_EUSAGE);
	err = (struct base_err){ 0 };
	config.run_dir = "/";
	config.slots = &cycles;
	config.nr_slots = 1;
	assert_int_equal(driver_open(&config, &d, &err), -DCPI_EUSAGE);
	assert_non_null(strstr(err.text, "cycles"));
	err = (struct base_err){ 0 };
	config.run_dir = "/nowhere";
	config.nr_slots = 0;
	assert_int_equal(driver_open(&config, &d, &err), -ENOENT);
	assert_non_null(strstr(err.text, "cannot read '/nowhere'"));
	assert_true(inprocess_period_ns(0) >= 100000 && inprocess_period_ns(0) <= 10000000);
	assert_int_equal(inprocess_period_ns(100000), inprocess_period_ns(0));
	assert_int_equal(inprocess_period_ns(10), 100000000);
}

int main(void)
{
#define TRIAL(test) cmocka_unit_test_setup_teardown(test, begin, end)
	const struct CMUnitTest tests[] = {
		TRIAL(one_process),
		TRIAL(several_mappings),
		TRIAL(counters_go_on),
		TRIAL(a_head_comes_late),
		TRIAL(heads_of_others),
		TRIAL(a_head_goes_back_over_a_torn_record),
		TRIAL(sums_that_do_not_fit),
		TRIAL(who_it_is_is_believed_once),
		TRIAL(young_ones_wait),
		TRIAL(wraps),
		TRIAL(a_record_begun_is_waited_for),
		TRIAL(a_torn_record_is_given_up),
		TRIAL(of_the_dead_nothing_is_awaited),
		TRIAL(zombies_are_dead),
		TRIAL(children_and_programs),
		TRIAL(other_namespaces),
		TRIAL(they_tell_their_end),
		TRIAL(crowds_are_read_in_turns),
		TRIAL(who_was_not_read_is_counted),
		TRIAL(who_has_no_ring_is_counted),
		TRIAL(without_descriptors_none_is_dead),
		TRIAL(liars),
		TRIAL(torn_samples_have_a_bound),
		TRIAL(heads_that_jump),
		TRIAL(bad_records),
		TRIAL(bad_maps),
		TRIAL(units_of_another_time),
		TRIAL(children_in_other_namespaces),
		TRIAL(stop_is_told),
		TRIAL(strangers_are_left_alone),
		TRIAL(wrong_use),
	};

	/* The lives that are tried began some time ago: later than this process. */
	usleep(80000);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
