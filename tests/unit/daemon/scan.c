/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "follow_internal.h"
#include "stand_ins.h"
#include "registry.h"

static struct trial t;

static int setup(void **state)
{
	(void)state;
	trial_open(&t);
	t.follow.live = t.attribute.live = true;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	trial_close(&t);
	return 0;
}

static int parse(const char *text, struct driver_load *l)
{
	static char line[512];

	strcpy(line, text);
	return proc_parse_line(line, l);
}

static void lines(void **state)
{
	struct driver_load l;

	(void)state;
	assert_int_equal(
		parse("55d4c8a00000-55d4c8a22000 r-xp 00002000 fe:01 1234     /usr/bin/x y\n", &l),
		1);
	assert_int_equal(l.addr, 0x55d4c8a00000);
	assert_int_equal(l.len, 0x22000);
	assert_int_equal(l.file_off, 0x2000);
	assert_int_equal(l.dev_major, 0xfe);
	assert_int_equal(l.dev_minor, 1);
	assert_int_equal(l.inode, 1234);
	assert_string_equal(l.path, "/usr/bin/x y");
	assert_int_equal(l.prot, PROT_READ | PROT_EXEC);
	assert_int_equal(parse("1000-2000 rwxp 00000000 00:00 0 \n", &l), 1);
	assert_int_equal(l.prot, PROT_READ | PROT_WRITE | PROT_EXEC);
	assert_string_equal(l.path, "//anon");
	assert_int_equal(parse("1000-2000 rw-p 00000000 00:00 0 [heap]\n", &l), 0);
	assert_int_equal(parse("1000-2000 --xs 00000000 00:00 9 /a\\012b\\013 (deleted)\n", &l), 1);
	assert_string_equal(l.path, "/a\nb\\013 (deleted)");
}

static void bad_lines(void **state)
{
	static const char *const bad[] = { "",
					   "\n",
					   "1000",
					   "1000-2000",
					   "2000-1000 r-xp 0 0:0 0 /a",
					   "1000-1000 r-xp 0 0:0 0 /a",
					   "1000-2000 r-x 0 0:0 0 /a",
					   "1000-2000 r-xpp 0 0:0 0 /a",
					   "1000-2000 r-xp 0 0-0 0 /a",
					   "x-y r-xp 0 0:0 0 /a" };
	struct driver_load l;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(parse(bad[i], &l), -DCPI_EFORMAT);
}

static void own_process(void **state)
{
	struct process *p = processes_add(t.follow.processes, getpid());
	void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct map *m;

	(void)state;
	assert_true(code != MAP_FAILED);
	assert_int_equal(follow_scan(&t.follow, p), 0);
	assert_int_equal(p->uid, getuid());
	assert_true(p->start_time_ns > 0);
	assert_true(p->known_ns > 0);
	assert_true(p->comm[0] != '\0');
	m = map_find(p, (uint64_t)(uintptr_t)code);
	assert_non_null(m);
	assert_int_equal(m->kind, MAP_DYNAMIC);
	munmap(code, 4096);
	m = map_find(p, (uint64_t)(uintptr_t)own_process);
	assert_non_null(m);
	assert_true(m->listed);
}

/* The reader refused: what events of before tell is still news. */
static void list_refused(void **state)
{
	struct process *p = processes_add(t.follow.processes, getpid());
	const struct map *m;
	uint64_t known_ns;

	(void)state;
	assert_int_equal(follow_scan(&t.follow, p), 0);
	known_ns = p->known_ns;
	t.time_ns = base_now_ns();
	t.follow.reader = (struct reader *)&t;
	assert_true(follow_scan(&t.follow, p) < 0);
	assert_int_equal(p->known_ns, known_ns);
	trial_mmap(&t, getpid(), (uint64_t)(uintptr_t)list_refused & -4096ull, 4096, 0, "/bin/new",
		   9);
	m = map_find(p, (uint64_t)(uintptr_t)list_refused);
	assert_non_null(m);
	assert_string_equal(m->image->path, "/bin/new");
	/* One that nothing else tells of is asked about again. */
	p->known_ns = 0;
	assert_true(follow_scan(&t.follow, p) < 0);
	assert_int_equal(p->known_ns, 0);
	t.follow.reader = NULL;
}

static void gone(void **state)
{
	pid_t child = fork();
	struct process *p;

	(void)state;
	if (child == 0)
		_exit(0);
	/* A zombie has no mappings and is as good as gone. */
	assert_int_equal(waitid(P_PID, (id_t)child, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
	p = processes_add(t.follow.processes, child);
	assert_int_equal(follow_scan(&t.follow, p), -ESRCH);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(follow_scan(&t.follow, p), -ENOENT);
	/* Samples of its last moments may be on their way: it goes at the second look. */
	follow_sweep(&t.follow);
	assert_ptr_equal(processes_find(t.follow.processes, child), p);
	follow_sweep(&t.follow);
	assert_null(processes_find(t.follow.processes, child));
}

/* Who replays the record knows before the count what we do. */
static void recorded_before_its_count(void **state)
{
	char *text = NULL, *count;
	size_t len;

	(void)state;
	t.follow.record = open_memstream(&text, &len);
	assert_non_null(t.follow.record);
	t.time_ns = base_now_ns();
	trial_sample(&t, getpid(), (uint64_t)(uintptr_t)recorded_before_its_count);
	trial_sample(&t, getpid(), (uint64_t)(uintptr_t)recorded_before_its_count);
	assert_int_equal(fclose(t.follow.record), 0);
	t.follow.record = NULL;
	assert_int_equal(strncmp(text, "comm ", 5), 0);
	assert_non_null(strstr(text, "\nmmap "));
	count = strstr(text, "\ncount ");
	assert_non_null(count);
	assert_null(strstr(count, "\nmmap "));
	free(text);
}

static void *wait_for_end(void *fd)
{
	char c;

	_exit(read(*(int *)fd, &c, 1) < 0);
}

static bool is_zombie(pid_t pid)
{
	char path[64], text[256], *end = NULL;
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	stat = fopen(path, "r");
	if (stat && fgets(text, sizeof(text), stat))
		end = strrchr(text, ')');
	if (stat)
		fclose(stat);
	return end && end[2] == 'Z';
}

/* The process goes on without its main thread, whose files in /proc are empty then. */
static void main_thread_gone(void **state)
{
	struct process *p;
	pthread_t thread;
	int fds[2];
	pid_t child;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	child = fork();
	if (child == 0) {
		close(fds[1]);
		if (pthread_create(&thread, NULL, wait_for_end, &fds[0]) == 0)
			syscall(SYS_exit, 0L); /* of this thread alone */
		_exit(1);
	}
	while (!is_zombie(child))
		usleep(1000);
	p = processes_add(t.follow.processes, child);
	assert_int_equal(follow_scan(&t.follow, p), 0);
	assert_true(p->nr_maps > 0);
	close(fds[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void everything(void **state)
{
	(void)state;
	assert_true(follow_scan_all(&t.follow) > 0);
	assert_non_null(processes_find(t.follow.processes, getpid()));
	follow_sweep(&t.follow);
	follow_sweep(&t.follow);
	assert_non_null(processes_find(t.follow.processes, getpid()));
}

static void lose_events(uint64_t nr)
{
	const struct driver_load l = { .kind = DRIVER_LOAD_LOST, .len = nr };

	assert_int_equal(counts_load(&t.counts, &l), 0);
}

/*
 * Where a file was mapped, there is other memory now, and nobody told. What came since the loss is
 * not charged to that file; what lies where /proc confirms the mapping is.
 */
static void lost_mapping(void **state)
{
	void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t stale = (uint64_t)(uintptr_t)code, own = (uint64_t)(uintptr_t)lost_mapping;
	struct process *p = processes_add(t.follow.processes, getpid());
	const struct image *image;

	(void)state;
	assert_true(code != MAP_FAILED);
	assert_int_equal(follow_scan(&t.follow, p), 0);
	t.time_ns = base_now_ns();
	image = map_find(p, own)->image;
	trial_mmap(&t, getpid(), stale, 4096, 0, "/bin/stale", 9);
	trial_sample(&t, getpid(), stale);
	store_all(&t.store);
	assert_int_equal(trial_count(&t, "/bin/stale", 0), 1);
	lose_events(7);
	trial_sample(&t, getpid(), stale);
	trial_sample(&t, getpid(), own);
	assert_int_equal(t.store.account.pending, 2);
	/* Not before /proc was read. */
	counts_resolve(&t.counts, 0);
	assert_int_equal(t.store.account.pending, 2);
	follow_scan_known(&t.follow);
	t.follow.events_lost = false;
	counts_resolve(&t.counts, base_now_ns());
	munmap(code, 4096);
	assert_int_equal(t.store.account.pending, 0);
	assert_int_equal(trial_count(&t, "/bin/stale", 0), 1);
	assert_int_equal(trial_count(&t, "ambiguous mapping", 0), 1);
	assert_int_equal(trial_count(&t, image->path,
				     own - map_find(p, own)->start + map_find(p, own)->file_off),
			 1);
}

/* What was lost of it, nobody can tell any more: it has what events told. */
static void lost_before_the_end(void **state)
{
	(void)state;
	trial_mmap(&t, 1 << 22, 0x1000, 0x1000, 0, "/bin/short", 1);
	lose_events(1);
	trial_sample(&t, 1 << 22, 0x1000);
	trial_event(&t, DRIVER_LOAD_EXIT, 1 << 22, 0);
	counts_resolve(&t.counts, 0);
	assert_int_equal(t.store.account.pending, 1);
	t.follow.events_lost = false;
	counts_resolve(&t.counts, 0);
	assert_int_equal(trial_count(&t, "/bin/short", 0), 1);
	/* Nor does anything wait at the daemon's own end. */
	trial_mmap(&t, 1 << 22, 0x1000, 0x1000, 0, "/bin/short", 1);
	/* /proc was read since that one was lost. */
	t.follow.lost_read = 2;
	lose_events(2);
	assert_false(t.follow.events_lost);
	lose_events(3);
	trial_sample(&t, 1 << 22, 0x1000);
	counts_resolve(&t.counts, UINT64_MAX);
	assert_int_equal(trial_count(&t, "/bin/short", 0), 2);
}

/* Its end and the next life's begin were lost: what was known of that pid is of another process. */
static void lost_lives(void **state)
{
	struct process *p = processes_add(t.follow.processes, getpid());

	(void)state;
	assert_int_equal(follow_scan(&t.follow, p), 0);
	follow_scan_all(&t.follow);
	assert_ptr_equal(processes_find(t.follow.processes, getpid()), p);
	p->label = "its";
	p->start_time_ns -= 1000000000;
	follow_scan_all(&t.follow);
	p = processes_find(t.follow.processes, getpid());
	assert_null(p->label);
	assert_true(p->nr_maps > 0);
	/* The same of one of which only its fork had told. */
	p->label = "its";
	p->began_ns = p->start_time_ns - 1000000000;
	p->start_time_ns = 0;
	follow_scan_all(&t.follow);
	p = processes_find(t.follow.processes, getpid());
	assert_null(p->label);
	/* A fork is told some time after the start that /proc has. */
	p->began_ns = p->start_time_ns + 20000000;
	p->start_time_ns = 0;
	follow_scan_all(&t.follow);
	assert_ptr_equal(processes_find(t.follow.processes, getpid()), p);
}

/* The life that samples told of has ended since: what /proc lists now is not its own. */
static void another_life(void **state)
{
	struct process *p = processes_add(t.follow.processes, getpid());

	(void)state;
	p->instance = 1;
	assert_int_equal(follow_scan(&t.follow, p), -ESTALE);
	assert_int_equal(p->nr_maps, 0);
	assert_int_equal(p->known_ns, 0);
}

/* Events come late: by then its pid can be that of another process, of which /proc tells. */
static void life_of_before(void **state)
{
	const struct process old = { .began_ns = 1, .uid = 4711, .comm = "old" };
	struct process *p = processes_add(t.follow.processes, getpid());
	uint64_t code = (uintptr_t)life_of_before;

	(void)state;
	p->began_ns = old.began_ns;
	p->uid = old.uid;
	strcpy(p->comm, old.comm);
	p->label = "its";
	assert_int_equal(proc_describe(p), -ESTALE);
	assert_int_equal(follow_scan(&t.follow, p), -ESTALE);
	/* Its registry is another's. */
	trial_mmap(&t, getpid(), 0x8000, 0x1000, 0, "/memfd:dbgdyn", 0);
	trial_mmap(&t, getpid(), 0x9000, 0x1000, 0, "//anon", 0);
	assert_int_equal(stand_ins.nr_marker, 0);
	/* It hands over: that tells of nobody's name and start. */
	assert_ptr_equal(follow_attach(&t.follow, getpid(), base_now_ns()), p);
	assert_int_equal(p->start_time_ns, 0);
	assert_int_equal(p->uid, old.uid);
	assert_string_equal(p->comm, old.comm);
	assert_int_equal(p->nr_maps, 1);
	/* Of those that are known only: whose pid it is now, nobody has told. */
	follow_scan_known(&t.follow);
	assert_null(processes_find(t.follow.processes, getpid()));
	p = follow_find(&t.follow, getpid(), base_now_ns(), 0);
	assert_null(p->label);
	assert_int_equal(p->uid, getuid());
	assert_int_equal(map_find(p, code)->kind, MAP_IMAGE);
	/* With its start known. */
	p->start_time_ns -= 1000000000;
	assert_int_equal(proc_describe(p), -ESTALE);
	p->start_time_ns += 1000000000;
	assert_int_equal(proc_describe(p), 0);
}

/* /proc tells of a process now: a sample from before its start is somebody else's. */
static void too_young(void **state)
{
	struct process *p = follow_find(&t.follow, getpid(), 1, 0);

	(void)state;
	assert_true(p->placeholder);
	assert_int_equal(p->nr_maps, 0);
	/* It is looked for again in the next drain. */
	assert_ptr_equal(follow_find(&t.follow, getpid(), base_now_ns(), 0), p);
	assert_true(p->placeholder);
	counts_resolve(&t.counts, 0);
	p = follow_find(&t.follow, getpid(), base_now_ns(), 0);
	assert_false(p->placeholder);
	assert_true(p->nr_maps > 0);
}

struct found {
	uint64_t begin, end; /* looked for: a range that covers it, … */
	uint64_t text;	     /* … and one that has this in it */
	bool covered, text_seen;
};

static void look(void *ctx, uint64_t start, uint64_t end)
{
	struct found *f = ctx;

	f->covered |= start <= f->begin && end >= f->end;
	f->text_seen |= start <= f->text && end > f->text;
}

/* What a runtime reserved for code will be that: more of it than it made executable so far. */
static void reserved_for_code(void **state)
{
	enum { LEN = 1 << 20 };
	uint8_t *code = mmap(NULL, LEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct process p = { .pid = getpid() };
	struct found f = { .begin = (uintptr_t)code,
			   .end = (uintptr_t)code + LEN,
			   .text = (uintptr_t)reserved_for_code };

	(void)state;
	assert_ptr_not_equal(code, MAP_FAILED);
	proc_dynamic(NULL, &p, look, &f);
	assert_false(f.covered);
	assert_int_equal(mprotect(code + LEN / 2, 4096, PROT_READ | PROT_EXEC), 0);
	proc_dynamic(NULL, &p, look, &f);
	assert_true(f.covered);
	assert_false(f.text_seen);
	/* Beyond a gap it is another's. */
	f.covered = false;
	munmap(code + LEN / 4, 4096);
	proc_dynamic(NULL, &p, look, &f);
	assert_false(f.covered);
	munmap(code, LEN);
}

static void whose_samples_are(void **state)
{
	(void)state;
	assert_int_equal(registry_process_check(getpid(), geteuid()), 0);
	assert_int_equal(registry_process_check(getpid(), geteuid() + 1), -EPERM);
	assert_int_equal(registry_process_check(INT32_MAX, geteuid()), -ESRCH);
}

static void where_code_is(void **state)
{
	/* An emulator lists no mapping that its host has joined with one of other rights. */
	uint8_t *code = mmap(NULL, 4 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t at = (uintptr_t)code;

	(void)state;
	assert_ptr_not_equal(code, MAP_FAILED);
	assert_int_equal(mprotect(code + 4096, 4096, PROT_READ | PROT_EXEC), 0);
	assert_int_equal(mprotect(code + 2 * 4096, 4096, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	assert_int_equal(proc_check_code(NULL, getpid(), at + 4096, at + 3 * 4096), 0);
	assert_int_equal(proc_check_code(NULL, getpid(), at + 5000, at + 9000), 0);
	assert_int_equal(proc_check_code(NULL, getpid(), at + 4095, at + 3 * 4096), -ENOENT);
	assert_int_equal(proc_check_code(NULL, getpid(), at + 4096, at + 3 * 4096 + 1), -ENOENT);
	assert_int_equal(proc_check_code(NULL, getpid(), 0x1000, 0x2000), -ENOENT);
	assert_true(proc_check_code(NULL, INT32_MAX, at, at + 1) < 0);
	munmap(code, 4 * 4096);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lines),
		TEST(bad_lines),
		TEST(own_process),
		TEST(list_refused),
		TEST(gone),
		TEST(recorded_before_its_count),
		TEST(everything),
		TEST(lost_mapping),
		TEST(lost_before_the_end),
		TEST(lost_lives),
		TEST(another_life),
		TEST(life_of_before),
		TEST(too_young),
		TEST(reserved_for_code),
		TEST(whose_samples_are),
		TEST(where_code_is),
		TEST(main_thread_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
