/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts get the workload of their process, whatever is known of it. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "source.h"
#include "stand_ins.h"
#include "watch.h"
#include "workload_internal.h"

static struct trial t;

static int setup(void **state)
{
	(void)state;
	trial_open(&t);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	trial_same_sums(t.store.images);
	trial_close(&t);
	return 0;
}

/* ---- what is in the tables ------------------------------------------------------------------- */

struct wanted {
	const char *comm, *exe, *cgroup, *label; /* NULL: any */
	int32_t pid;				 /* 0: any */
	int64_t uid, minute;			 /* likewise */
};

static bool fits(const char *want, const struct workload_names *n, unsigned int index)
{
	return !want || strcmp(want, workload_text(n, index)) == 0;
}

static bool is_wanted(const struct workload_count *c, const struct wanted *want)
{
	const struct workload_one *one = &t.store.workloads->lives[c->life];
	const struct workload_names *n = &t.store.workloads->names[one->names];

	return fits(want->comm, n, 0) && fits(want->exe, n, 1) && fits(want->cgroup, n, 2) &&
	       fits(want->label, n, 3) && (!want->pid || want->pid == one->pid) &&
	       (!want->uid || want->uid == n->uid) && (!want->minute || want->minute == c->minute);
}

static uint64_t found(const struct wanted *want)
{
	uint64_t sum = 0;

	counts_resolve(&t.counts, 0);
	for (const struct workload_table *w = t.store.workloads->tables; w; w = w->next)
		for (size_t i = 0; i < w->cap; i++)
			if (w->places[i].n && is_wanted(&w->places[i], want))
				sum += w->places[i].n;
	return sum;
}

#define FOUND(...) found(&(struct wanted){ __VA_ARGS__ })

/* ---- what happens ---------------------------------------------------------------------------- */

static void event(enum driver_load_kind kind, int32_t pid, int32_t ppid, const char *path)
{
	const struct driver_load l = { .kind = kind,
				       .time_ns = ++t.time_ns,
				       .pid = pid,
				       .tid = pid,
				       .ppid = ppid,
				       .path = path };

	assert_int_equal(counts_load(&t.counts, &l), 0);
}

static void begin(int32_t pid, const char *comm, const char *exe)
{
	event(DRIVER_LOAD_EXEC, pid, 0, comm);
	trial_mmap(&t, pid, 0x1000, 0x1000, 0, exe, 1);
}

static void kernel_sample(int32_t pid, uint64_t addr)
{
	const struct driver_count c = { .first_ns = t.time_ns + 1,
					.time_ns = ++t.time_ns,
					.pid = pid,
					.tid = pid,
					.mode = DRIVER_KERNEL,
					.addr = addr,
					.count = 1 };

	stand_ins.kernel_start = 0x9000;
	stand_ins.kernel_end = 0xa000;
	stand_ins.idle_addr = 0x9500;
	stand_ins.kernel_image = images_get(t.store.images, PROFDB_KERNEL,
					    &(struct base_id){ 1, { 9 } }, "vmlinux", "vmlinux");
	assert_int_equal(counts_count(&t.counts, &c), 0);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void by_process(void **state)
{
	(void)state;
	begin(10, "x", "/bin/x");
	begin(11, "y", "/bin/y");
	trial_sample(&t, 10, 0x1000);
	trial_sample(&t, 11, 0x1000);
	trial_sample(&t, 11, 0x1000);
	trial_sample(&t, 11, 0x5000);
	assert_int_equal(FOUND(.comm = "x", .exe = "/bin/x", .pid = 10), 1);
	assert_int_equal(FOUND(.comm = "y", .exe = "/bin/y", .pid = 11), 3);
	/* A recorded stream tells of no users. */
	assert_int_equal(FOUND(.uid = WORKLOAD_NO_UID), 4);
}

static void event_of_life(enum driver_load_kind kind, int32_t pid, int32_t ppid, uint64_t lives_ns)
{
	const struct driver_load l = { .kind = kind,
				       .time_ns = ++t.time_ns,
				       .pid = pid,
				       .tid = pid,
				       .ppid = ppid,
				       .path = "x",
				       .lives_ns = lives_ns };

	assert_int_equal(counts_load(&t.counts, &l), 0);
}

/* Forked or not, one whose end comes soon has no pid; before its program is mapped nothing is
 * decided. */
static void by_brief_process(void **state)
{
	(void)state;
	event_of_life(DRIVER_LOAD_EXEC, 10, 0, WORKLOAD_BRIEF_NS);
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "/bin/x", 1);
	trial_sample(&t, 10, 0x1000);
	assert_int_equal(FOUND(.comm = "x", .exe = "/bin/x", .pid = 10), 1);
	event_of_life(DRIVER_LOAD_EXEC, 11, 0, WORKLOAD_BRIEF_NS - 1);
	kernel_sample(11, 0x9100);
	trial_mmap(&t, 11, 0x1000, 0x1000, 0, "/bin/x", 1);
	trial_sample(&t, 11, 0x1000);
	event_of_life(DRIVER_LOAD_FORK, 12, 10, 1);
	trial_sample(&t, 12, 0x1000);
	assert_int_equal(FOUND(.comm = "x", .exe = "/bin/x", .pid = 11), 1);
	assert_int_equal(FOUND(.pid = 12), 0);
	assert_int_equal(FOUND(.comm = "x", .exe = "/bin/x"), 4);
}

static uint32_t reader(struct process *p, uint64_t first_ns)
{
	struct sample s = { .p = p, .first_ns = first_ns };
	struct store_count to = { 0 };

	owner_find(&t.counts.owners, &s, &to);
	return to.reader;
}

/* A process that was asked at a time: what came before may be of another program that it was. */
static void by_reader(void **state)
{
	const struct watch_peer user = { .pid = 1, .uid = 1000 };
	struct base_buf out = { 0 };
	struct process *p;

	(void)state;
	begin(10, "x", "/bin/x");
	p = processes_find(t.counts.follow->processes, 10);
	p->uid = 1000;
	p->uid_known = true;
	p->seen_into_ns = 50;
	assert_int_equal(reader(p, 51), 0);
	t.store.watch = watch_new();
	assert_int_equal(watch_take(t.store.watch, &user, NULL, 0, 1, &out, NULL), 0);
	assert_int_equal(reader(p, 50), 0);
	assert_int_equal(reader(p, 51), 1000);
	assert_int_equal(reader(NULL, 51), 0);
	p->uid = 1001;
	assert_int_equal(reader(p, 51), 0);
	p->uid = 1000;
	p->seen_into_ns = UINT64_MAX;
	assert_int_equal(reader(p, 51), 0);
	/* In a recorded stream nobody is asked. */
	owner_ask_again(&t.counts.owners);
	assert_int_equal(reader(p, 51), 0);
	assert_int_equal(p->seen_into_ns, 0);
	/* It executes another program, and /proc had told of it before. */
	p->seen_into_ns = 50;
	p->known_ns = UINT64_MAX;
	trial_event(&t, DRIVER_LOAD_EXEC, 10, 0);
	trial_sample(&t, 10, 0x1000);
	assert_ptr_equal(processes_find(t.counts.follow->processes, 10), p);
	assert_int_equal(p->seen_into_ns, 0);
	watch_free(t.store.watch);
	t.store.watch = NULL;
}

static void by_minute(void **state)
{
	(void)state;
	t.counts.recorded_utc_ns = 600000000000;
	begin(10, "x", "/bin/x");
	trial_sample(&t, 10, 0x1000);
	t.time_ns += 60000000000;
	trial_sample(&t, 10, 0x1000);
	assert_int_equal(FOUND(.minute = 10), 1);
	assert_int_equal(FOUND(.minute = 11), 1);
}

static void in_the_kernel(void **state)
{
	(void)state;
	begin(10, "x", "/bin/x");
	kernel_sample(10, 0x9100);
	kernel_sample(10, 0xb000);
	kernel_sample(0, 0x9500);
	kernel_sample(0, 0x9100);
	kernel_sample(-1, 0x9100);
	assert_int_equal(FOUND(.pid = 10), 2);
	assert_int_equal(FOUND(.comm = "(idle)"), 2);
	assert_int_equal(FOUND(.comm = ""), 1);
	/* Counts behind its end, and of a process that no event told of. */
	event(DRIVER_LOAD_EXIT, 10, 0, NULL);
	kernel_sample(10, 0x9100);
	kernel_sample(12, 0x9100);
	assert_int_equal(FOUND(.comm = "x", .pid = 10), 3);
	assert_int_equal(FOUND(.comm = "", .pid = 12), 1);
}

/* A count in the kernel does not begin a life: the counts of the process lie in the same program.
 */
static void another_life_in_the_kernel(void **state)
{
	struct driver_count c = { .first_ns = 2000,
				  .time_ns = 2000,
				  .instance = 5,
				  .pid = 10,
				  .mode = DRIVER_USER,
				  .addr = 0x1000,
				  .count = 1 };

	(void)state;
	begin(10, "x", "/bin/x");
	assert_int_equal(counts_count(&t.counts, &c), 0);
	c.mode = DRIVER_KERNEL;
	c.instance += DRIVER_INSTANCE_EXEC;
	assert_int_equal(counts_count(&t.counts, &c), 0);
	assert_false(processes_find(t.counts.follow->processes, 10)->placeholder);
	assert_int_equal(FOUND(.comm = "x", .pid = 10), 2);
}

static void children(void **state)
{
	(void)state;
	begin(10, "x", "/bin/x");
	event(DRIVER_LOAD_FORK, 11, 10, NULL);
	trial_sample(&t, 11, 0x1000);
	event(DRIVER_LOAD_COMM, 11, 0, "worker");
	trial_sample(&t, 11, 0x1000);
	trial_sample(&t, 11, 0x1000);
	begin(11, "y", "/bin/y");
	trial_sample(&t, 11, 0x1000);
	assert_int_equal(FOUND(.comm = "x", .exe = "/bin/x", .pid = 11), 1);
	assert_int_equal(FOUND(.comm = "worker", .exe = "/bin/x", .pid = 11), 2);
	assert_int_equal(FOUND(.comm = "y", .exe = "/bin/y", .pid = 11), 1);
}

static void inherited(void **state)
{
	struct process *p;

	(void)state;
	begin(10, "x", "/bin/x");
	p = processes_find(t.counts.follow->processes, 10);
	p->uid = 1000;
	p->uid_known = true;
	p->cgroup = strdup("/c");
	event(DRIVER_LOAD_FORK, 11, 10, NULL);
	begin(11, "y", "/bin/y");
	trial_sample(&t, 11, 0x1000);
	assert_int_equal(FOUND(.comm = "y", .uid = 1000, .cgroup = "/c"), 1);
	/* It is found elsewhere, and what is not on disk is told so. */
	p = processes_find(t.follow.processes, 11);
	p->uid = 1001;
	p->identified = false;
	trial_sample(&t, 11, 0x1000);
	assert_int_equal(FOUND(.comm = "y", .uid = 1001, .cgroup = "/c"), 2);
}

/* /proc is asked once in an epoch. */
static void of_this_machine(void **state)
{
	char comm[16] = "";
	struct process *p;
	int64_t uid = getuid();

	(void)state;
	strncat(comm, program_invocation_short_name, sizeof(comm) - 1);
	t.follow.live = true;
	begin(getpid(), comm, "/bin/x");
	p = processes_find(t.follow.processes, getpid());
	p->uid = 12345;
	trial_sample(&t, getpid(), 0x1000);
	assert_int_equal(p->uid, uid);
	assert_int_equal(FOUND(.comm = comm, .exe = "/bin/x"), 1);
	p->uid = 12345;
	trial_sample(&t, getpid(), 0x1000);
	assert_int_equal(p->uid, 12345);
	counts_new_epoch(&t.counts);
	trial_sample(&t, getpid(), 0x1000);
	assert_int_equal(p->uid, uid);
}

/* When there were too many processes, some got the number of others that are like them. */
static void counted_anew(void **state)
{
	struct process *p, *q;
	uint32_t own;

	(void)state;
	begin(10, "x", "/bin/x");
	begin(11, "x", "/bin/x");
	trial_sample(&t, 10, 0x1000);
	p = processes_find(t.counts.follow->processes, 10);
	q = processes_find(t.follow.processes, 11);
	own = p->workload;
	q->workload = workload_group(
		t.store.workloads,
		&(struct workload_who){ .comm = "x", .exe = "/bin/x", .uid = WORKLOAD_NO_UID });
	q->identified = true;
	counts_new_epoch(&t.counts);
	assert_int_equal(p->workload, own);
	trial_sample(&t, 11, 0x1000);
	assert_int_equal(t.store.workloads->lives[q->workload].processes, 1);
	assert_int_equal(FOUND(.comm = "x", .pid = 11), 1);
}

/* While /proc has another name, the event of an exec may be queued; not for ever, as names differ
 * for other reasons, too. It is asked once in a drain. */
static void of_another_name(void **state)
{
	struct process *p;

	(void)state;
	t.follow.live = true;
	begin(getpid(), "x", "/bin/x");
	p = processes_find(t.follow.processes, getpid());
	p->uid = 12345;
	for (uint32_t drain = 1; drain < 8; drain++) {
		trial_sample(&t, getpid(), 0x1000);
		trial_sample(&t, getpid(), 0x1000);
		assert_int_equal(FOUND(.comm = "x", .uid = WORKLOAD_NO_UID), 2 * drain);
		assert_int_equal(p->place_tries, drain);
	}
	assert_false(p->uid_known);
	trial_sample(&t, getpid(), 0x1000);
	assert_int_equal(p->uid, getuid());
	assert_true(p->uid_known);
	assert_int_equal(FOUND(.comm = "x", .uid = WORKLOAD_NO_UID), 0);
}

static void labels(void **state)
{
	(void)state;
	begin(10, "x", "/bin/x");
	event(DRIVER_LOAD_LABEL, 10, 0, "run");
	trial_sample(&t, 10, 0x1000);
	begin(10, "y", "/bin/y");
	trial_sample(&t, 10, 0x1000);
	assert_int_equal(FOUND(.comm = "x", .label = ""), 1);
	assert_int_equal(FOUND(.comm = "y", .label = "run"), 1);
}

/* /proc was read, and the process got its next label, before the fork was told. */
static void a_label_that_is_told_late(void **state)
{
	struct driver_load fork = { .kind = DRIVER_LOAD_FORK, .pid = 11, .tid = 11, .ppid = 10 };

	(void)state;
	begin(10, "x", "/bin/x");
	event(DRIVER_LOAD_LABEL, 10, 0, "run");
	begin(10, "x", "/bin/x");
	begin(11, "x", "/bin/x");
	fork.time_ns = ++t.time_ns;
	trial_sample(&t, 11, 0x1000);
	event(DRIVER_LOAD_LABEL, 11, 0, "next");
	processes_find(t.follow.processes, 11)->known_ns = fork.time_ns + 1;
	trial_sample(&t, 11, 0x1000);
	assert_int_equal(FOUND(.label = "", .pid = 11), 2);
	assert_int_equal(counts_load(&t.counts, &fork), 0);
	trial_sample(&t, 11, 0x1000);
	assert_int_equal(FOUND(.label = "run", .pid = 11), 3);
}

static void of_nobody(void **state)
{
	const struct driver_count c = {
		.time_ns = 5000, .pid = -1, .mode = DRIVER_OTHER, .count = 3
	};

	(void)state;
	assert_int_equal(counts_count(&t.counts, &c), 0);
	trial_sample(&t, 10, 0x1000);
	assert_int_equal(FOUND(.comm = "", .exe = ""), 4);
	assert_int_equal(FOUND(.pid = 10), 1);
}

/* Dynamic code: they wait, and are stored in the minute in which they came. */
static void that_waited(void **state)
{
	(void)state;
	t.counts.recorded_utc_ns = 600000000000;
	begin(10, "x", "/bin/x");
	trial_mmap(&t, 10, 0x3000, 0x1000, 0, "//anon", 0);
	stand_ins.where = DYN_LATER;
	trial_sample(&t, 10, 0x3000);
	t.time_ns += 120000000000;
	trial_sample(&t, 10, 0x1000);
	counts_resolve(&t.counts, UINT64_MAX);
	assert_int_equal(FOUND(.comm = "x", .minute = 10), 1);
	assert_int_equal(FOUND(.comm = "x", .minute = 12), 1);
}

static const char *thread_name(const struct driver *d, uint32_t thread)
{
	assert_int_equal(thread, 1);
	return d->nr_events ? "young" : "old";
}

/* The driver's numbers of threads end with the epoch, and those of samples that wait do not. */
static void of_a_thread_that_waited(void **state)
{
	static const struct driver_ops ops = { .thread_name = thread_name };
	struct driver driver = { .ops = &ops };
	struct driver_count c = { .pid = 10, .addr = 0x3000, .count = 1, .thread = 1 };
	const struct workload_table *w;
	size_t nr = 0;

	(void)state;
	t.counts.follow->driver = &driver;
	begin(10, "x", "/bin/x");
	trial_mmap(&t, 10, 0x3000, 0x1000, 0, "//anon", 0);
	stand_ins.where = DYN_LATER;
	c.first_ns = c.time_ns = ++t.time_ns;
	assert_int_equal(counts_count(&t.counts, &c), 0);
	counts_new_epoch(&t.counts);
	driver.nr_events = 1;
	counts_resolve(&t.counts, UINT64_MAX);
	for (w = t.store.workloads->tables; w; w = w->next)
		for (size_t i = 0; i < w->cap; i++)
			if (w->places[i].n && ++nr)
				assert_string_equal(workload_thread_name(t.store.workloads,
									 w->places[i].thread),
						    "old");
	assert_int_equal(nr, 1);
	t.counts.follow->driver = NULL;
}

static void excluded(void **state)
{
	struct exclude e = { 0 };

	(void)state;
	t.counts.exclude = &e;
	t.store.workloads->samples = 0;
	begin(10, "x", "/bin/x");
	images_get(t.store.images, PROFDB_FILE, &(struct base_id){ 20, { 1 } }, "/bin/x", "x");
	processes_find(t.counts.follow->processes, 10)->maps[0].image->excluded = true;
	trial_sample(&t, 10, 0x1000);
	assert_int_equal(FOUND(.comm = NULL), 0);
	assert_int_equal(t.store.account.lost[ACCOUNT_LOST_EXCLUDED], 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(by_process),
		T(by_brief_process),
		T(by_minute),
		T(by_reader),
		T(in_the_kernel),
		T(children),
		T(another_life_in_the_kernel),
		T(inherited),
		T(of_this_machine),
		T(of_another_name),
		T(counted_anew),
		T(labels),
		T(a_label_that_is_told_late),
		T(of_nobody),
		T(that_waited),
		T(of_a_thread_that_waited),
		T(excluded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
