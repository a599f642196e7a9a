/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The source "bpf": opened, started, drained, stopped; its tables, exchanged for empty ones, and
 * the names of threads that stand in them by number.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "bound.h"
#include "bpf_internal.h"

enum {
	BPF_TABLE_LEN = 16384,
	BPF_TABLE_LEN_MIN = COUNT_WAYS,
	BPF_TABLE_LEN_MAX = 1 << 20,
	BPF_DRAIN_MS = 5000,
	TRACE_INSNS_MAX = 256,
};

/* So many load events in memory are enough: a storm of forks must not wait for the next exchange.
 */
#define BPF_LOADS_MAX 20000u
/* Least time between two exchanges for the sake of new code. */
#define BPF_CODE_NS 200000000u

static const struct bpf_stream_ops *const streams[] = {
	&bpf_traces_ops,
	&bpf_callpaths_ops,
	&bpf_waits_ops,
};
enum { NR_STREAMS = sizeof(streams) / sizeof(*streams) };

/* ---- the tables in which programs count ------------------------------------------------------ */

/*
 * Where the kernel does not tell when its programs have left a table: they stay for a microsecond,
 * with interrupts off, so only a virtual CPU that its host takes away just then is in one still.
 * Its count comes behind the clearing: it is read with the set's next use, or lost by name.
 */
#define REST_NS 100000000L

/* So many elements fill whole pages of the usual size: no page is two CPUs'. */
enum { STRIDE = 64 };
_Static_assert(STRIDE * sizeof(union count_bucket) % 4096 == 0, "stride");

static int gate_open(struct bpf_tables *t)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts);

	t->inner_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "dcpi_inner", 4, 4, 1, NULL);
	if (t->inner_fd < 0)
		return -errno;
	opts.inner_map_fd = (uint32_t)t->inner_fd;
	t->gate_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "dcpi_gate", 4, 4, 1, &opts);
	return t->gate_fd < 0 ? -errno : 0;
}

int bpf_tables_init(struct bpf_tables *t, uint32_t len, size_t nr_cpus)
{
	size_t stride, nr;

	*t = (struct bpf_tables){ .gate_fd = -1, .inner_fd = -1, .shape = count_shape_of(len) };
	stride = base_align_up(count_nr_elements(&t->shape), STRIDE);
	if (base_mul_overflow(stride, 2 * nr_cpus, &nr) || nr > UINT32_MAX)
		return -ENOMEM;
	t->stride = (uint32_t)stride;
	t->nr_elements = (uint32_t)nr;
	t->nr_cpus = nr_cpus;
	return 0;
}

static void bpf_tables_release(struct bpf_tables *t)
{
	if (t->all)
		munmap(t->all, t->nr_elements * sizeof(*t->all));
	if (t->nr_cpus && t->gate_fd >= 0)
		close(t->gate_fd);
	if (t->nr_cpus && t->inner_fd >= 0)
		close(t->inner_fd);
	*t = (struct bpf_tables){ .gate_fd = -1, .inner_fd = -1 };
}

/* They stand in the map @fd, which has room for nr_elements. 0 or -errno. */
static int bpf_tables_map(struct bpf_tables *t, int fd)
{
	void *all = mmap(NULL, t->nr_elements * sizeof(*t->all), PROT_READ | PROT_WRITE, MAP_SHARED,
			 fd, 0);

	if (all == MAP_FAILED)
		return -errno;
	t->all = all;
	return gate_open(t);
}

/* 0, or -DCPI_ELIMIT: @cpu has none, for it came later. Its samples are lost. */
static int bpf_tables_have(const struct bpf_tables *t, unsigned int cpu)
{
	return cpu < t->nr_cpus ? 0 : -DCPI_ELIMIT;
}

/* ---- the exchange of tables ------------------------------------------------------------------ */

/*
 * To put a map into a map of maps, even the one that is there, returns when every program that ran
 * has ended (Linux 1ae80cf31938, in 4.20: "bpf: wait for running BPF programs when updating
 * map-in-map"; the kernel's own tests wait so). No program has to know that map of maps.
 */
int bpf_tables_wait(const struct bpf_tables *t)
{
	const struct timespec rest = { .tv_nsec = REST_NS };
	const uint32_t at = 0;
	int r = bpf_map_update_elem(t->gate_fd, &at, &t->inner_fd, BPF_ANY) < 0 ? -errno : 0;

	if (r < 0)
		nanosleep(&rest, NULL);
	return r;
}

int bpf_tables_swap(struct bpf_tables *t, uint64_t now_ns, uint32_t bank)
{
	struct sample_shared *e = t->shared;
	uint32_t set = !(e->set & ~SAMPLE_BANK);

	__atomic_store_n(&e->since_ns[set], now_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&e->set, bank ? set | SAMPLE_BANK : set, __ATOMIC_SEQ_CST);
	return bpf_tables_wait(t);
}

union count_bucket *bpf_tables_old(const struct bpf_tables *t, size_t cpu)
{
	return bpf_tables_at(t, cpu, !(t->shared->set & ~SAMPLE_BANK));
}

/* ---- names of threads, and their banks ------------------------------------------------------- */

/* Two exchanges behind one that was not waited for, nothing of that time is in a table. */
enum { WHOLE_ENOUGH = 2 };

int bpf_threads_init(struct bpf_threads *t, struct thread_name *names)
{
	*t = (struct bpf_threads){ .names = names, .whole = WHOLE_ENOUGH };
	t->texts = calloc(THREAD_NR_NAMES, sizeof(*t->texts));
	return t->texts ? 0 : -ENOMEM;
}

void bpf_threads_release(struct bpf_threads *t)
{
	free(t->texts);
	*t = (struct bpf_threads){ 0 };
}

const char *bpf_threads_name(const struct bpf_threads *t, uint32_t number)
{
	char *text;

	if (!number || number >= THREAD_NR_NAMES)
		return "";
	text = t->texts[number];
	if (!text[0] && t->names[number].word[1]) {
		memcpy(text, &t->names[number], THREAD_NAME_LEN);
		text[THREAD_NAME_LEN - 1] = '\0';
	}
	return text;
}

uint32_t bpf_threads_bank(struct bpf_threads *t, bool held)
{
	size_t from;

	if (!t->forget || held || t->whole < WHOLE_ENOUGH)
		return t->bank;
	t->forget = false;
	t->bank ^= 1;
	from = (size_t)t->bank * THREAD_BANK;
	memset(&t->names[from], 0, THREAD_BANK * sizeof(*t->names));
	for (size_t i = from; i < from + THREAD_BANK; i++) {
		if (t->texts[i][0])
			t->texts[i][0] = '\0';
	}
	return t->bank;
}

void bpf_threads_exchanged(struct bpf_threads *t, bool waited)
{
	t->whole = !waited ? 0 : t->whole < WHOLE_ENOUGH ? t->whole + 1 : t->whole;
}

/* ---- the tables of each CPU ------------------------------------------------------------------ */

/* Say of each CPU that has events and no table that it has none. */
static void tell_tables(struct bpf *b)
{
	for (size_t i = 0; i < b->sampler.nr_cpus; i++) {
		const struct perf_cpu *c = &b->sampler.cpus[i];

		if (c->track_fd >= 0)
			perf_sampler_trouble(&b->sampler, c, bpf_tables_have(&b->tables, c->cpu));
	}
}

static int add_cpu(struct driver *d, unsigned int cpu)
{
	return bpf_tables_have(&((struct bpf *)d)->tables, cpu);
}

/* ---- forks of clients: told by programs, matched with load events of perf -------------------- */

/* The clock of events is read without a lock, which may be so much aside of that of tasks. */
#define SLACK_NS 1000000u

void bpf_forks_add(struct bpf_forks *f, const struct sample_fork *fork)
{
	/* Without memory its FORK event is one without a cursor. */
	if (base_grow(&f->items, &f->cap, f->nr + 1, sizeof(*f->items)) < 0)
		return;
	f->items[f->nr++] = *fork;
	f->sorted = false;
}

static int by_child(const void *va, const void *vb)
{
	const struct sample_fork *a = va, *b = vb;

	if (a->child != b->child)
		return a->child < b->child ? -1 : 1;
	return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

/* The first of @child that was told at @time_ns or later. */
static const struct sample_fork *first_of(const struct bpf_forks *f, uint32_t child,
					  uint64_t time_ns)
{
	const struct sample_fork key = { .child = child, .time_ns = time_ns };
	size_t from = BASE_BOUND(i, f->nr, by_child(&f->items[i], &key) < 0);

	return from < f->nr && f->items[from].child == child ? &f->items[from] : NULL;
}

void bpf_forks_tell(struct bpf_forks *f, struct driver_load *load)
{
	const struct sample_fork *found;

	if (!f->sorted && f->nr)
		qsort(f->items, f->nr, sizeof(*f->items), by_child);
	f->sorted = true;
	found = first_of(f, (uint32_t)load->pid, load->time_ns);
	if (!found || found->parent != (uint32_t)load->ppid ||
	    found->begun_ns > load->time_ns + SLACK_NS)
		return;
	load->cursor = found->cursor;
	load->flags |= DRIVER_LOAD_CURSOR;
}

void bpf_forks_drop(struct bpf_forks *f, uint64_t until_ns)
{
	size_t nr = 0;

	for (size_t i = 0; i < f->nr; i++) {
		if (f->items[i].time_ns > until_ns)
			f->items[nr++] = f->items[i];
	}
	f->nr = nr;
}

void bpf_forks_release(struct bpf_forks *f)
{
	free(f->items);
	*f = (struct bpf_forks){ 0 };
}

/* ---- reading the tables ---------------------------------------------------------------------- */

static int add_count(void *ctx, const struct driver_count *count)
{
	return perf_sampler_add(ctx, count);
}

/* Samples of CPUs that were added to the machine since. */
static void gather_untabled(struct bpf *b)
{
	const volatile uint64_t *untabled = b->programs.untabled;

	for (size_t i = 0; i < b->base.nr_events; i++) {
		uint64_t nr = untabled[i] - b->untabled[i];

		b->untabled[i] += nr;
		perf_sampler_received(&b->sampler, PERF_CPU_UNKNOWN, i, nr);
	}
}

/* Everything in the tables that are not counted in, into the queue. */
static void gather(struct bpf *b)
{
	for (size_t cpu = 0; cpu < b->tables.nr_cpus; cpu++) {
		union count_bucket *table = bpf_tables_old(&b->tables, cpu);

		for (size_t i = 0; i < b->base.nr_events; i++)
			perf_sampler_received(&b->sampler, (unsigned int)cpu, i,
					      table->head.received[i]);
		bpf_counts_take(&b->counts, table, &b->tables.shape, &b->taken);
	}
	gather_untabled(b);
	bpf_counts_hand(&b->counts, add_count, &b->sampler, &b->taken);
}

static void tell_refusal(struct bpf *b, int r)
{
	if (r == b->refusal)
		return;
	b->refusal = r;
	b->sampler.why = b->why;
	if (r < 0) {
		snprintf(b->said, sizeof(b->said),
			 "%s (the kernel does not wait for its programs: %s; their tables are read "
			 "0.1 s after the exchange)",
			 b->why, base_strerror(r));
		b->sampler.why = b->said;
	}
	perf_sampler_describe(&b->sampler);
}

/* ---- accounting ------------------------------------------------------------------------------ */

/*
 * Samples in a table that is being filled are received and pending. Losses are read first: they may
 * grow meanwhile, but each is received before it is lost; a loss not yet seen in that order is
 * still to come.
 */
static void account_table(struct driver_stats *st, const volatile struct count_head *h)
{
	uint64_t table = h->lost_table, late = h->lost_late, nested = h->lost_nested,
		 bad = h->lost_bad, lost = table + late + nested + bad, received = 0;

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	for (size_t i = 0; i < DRIVER_NR_EVENTS; i++) {
		uint64_t nr = h->received[i];

		st->received[i] += nr;
		received += nr;
	}
	st->lost_table += table;
	st->lost_late += late;
	st->lost_nested += nested;
	st->lost_bad += bad;
	if (received >= lost)
		st->held += received - lost;
	else
		st->received[0] += lost - received;
}

static void account_untabled(const struct bpf *b, struct driver_stats *st)
{
	const volatile uint64_t *untabled = b->programs.untabled;

	for (size_t i = 0; i < DRIVER_NR_EVENTS; i++) {
		uint64_t nr = untabled[i];

		st->received[i] += nr;
		st->lost_table += nr;
	}
}

/* The sampler has accounted for the samples of such an event. */
static bool is_in_ring(const struct bpf *b, size_t event)
{
	return event < b->base.nr_events && b->specs[event].told;
}

static void account(struct bpf *b, bool received)
{
	struct driver_stats *st = &b->base.stats;

	perf_sampler_account(&b->sampler, received);
	for (size_t i = 0; i < DRIVER_NR_EVENTS; i++)
		st->received[i] = b->taken.received[i] + (is_in_ring(b, i) ? st->received[i] : 0);
	st->lost_table = b->taken.lost_table;
	st->lost_late = b->taken.lost_late;
	st->lost_nested = b->taken.lost_nested;
	st->lost_read = b->taken.lost_read;
	st->lost_bad = b->taken.lost_bad;
	account_untabled(b, st);
	for (size_t i = 0; i < b->tables.nr_cpus; i++) {
		for (uint32_t k = 0; k < 2; k++)
			account_table(st, &bpf_tables_at(&b->tables, i, k)->head);
	}
}

/* ---- draining -------------------------------------------------------------------------------- */

static size_t nr_waiting(const struct perf_order *o)
{
	size_t nr = 0;

	for (size_t i = 0; i < o->nr_queues; i++)
		nr += o->queues[i].end - o->queues[i].first;
	return nr;
}

/* Whether code known by its marker alone is waiting, which a later look would find too late. */
static bool is_urgent(struct bpf *b)
{
	/* No memory: the records stay, and the drain's own reading says so. */
	perf_sampler_read_rings(&b->sampler, UINT64_MAX);
	return b->sampler.code_seen && base_now_ns() - b->code_ns >= BPF_CODE_NS;
}

static int bpf_look(struct driver *d)
{
	struct bpf *b = (struct bpf *)d;
	bool urgent = is_urgent(b), news = b->sampler.nr_loads != b->nr_loads_seen;

	b->nr_loads_seen = b->sampler.nr_loads;
	return urgent ? DRIVER_URGENT : news ? DRIVER_NEWS : DRIVER_QUIET;
}

static void bpf_busy(struct driver *d, bool busy)
{
	perf_sampler_busy(&((struct bpf *)d)->sampler, busy);
}

static void spill(void *ctx)
{
	const struct bpf *b = ctx;

	for (struct bpf_reader *r = b->spilled; r; r = r->next)
		bpf_reader_spill(r);
}

static int bpf_wake_at_exec(struct driver *d)
{
	return bpf_programs_wake_at_exec(&((struct bpf *)d)->programs);
}

static bool is_code_new(struct bpf *b)
{
	if (!is_urgent(b))
		return false;
	b->code_ns = base_now_ns();
	b->sampler.code_seen = false;
	return true;
}

/* Whether one of the streams waits for a drain; *@nr: how many of their records wait. */
static bool read_streams(struct bpf *b, size_t *nr)
{
	bool due = false;

	*nr = 0;
	for (size_t i = 0; i < NR_STREAMS; i++)
		due |= streams[i]->read(b, nr);
	return due;
}

static bool is_due(struct bpf *b)
{
	uint64_t ticks;
	size_t nr;
	bool due = read(b->timer_fd, &ticks, sizeof(ticks)) == sizeof(ticks);

	ring_buffer__consume(b->notes);
	ring_buffer__consume(b->announced_forks);
	due |= is_code_new(b);
	due |= b->noted || nr_waiting(&b->sampler.order) > BPF_LOADS_MAX;
	due |= read_streams(b, &nr);
	b->noted = false;
	return due;
}

/* The time of the first record in the streams' queues. */
static uint64_t next_of_streams(struct bpf *b)
{
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < NR_STREAMS; i++) {
		uint64_t next = streams[i]->next(b);

		first = next < first ? next : first;
	}
	return first;
}

/* Records of the streams that began before @until_ns, in order of time. */
static int streams_until(struct bpf *b, uint64_t until_ns, const struct driver_sink *sink)
{
	int r = 0;

	for (uint64_t next; r >= 0 && (next = next_of_streams(b)) < until_ns;)
		for (size_t i = 0; i < NR_STREAMS && r >= 0; i++)
			r = streams[i]->hand_until(b, next + 1, sink);
	return r;
}

/*
 * On their way to the daemon, forks get the cursor that was read at them, and records of the
 * streams come among the others.
 */
struct telling {
	struct bpf *b;
	const struct driver_sink *sink;
};

static int tell_load(void *ctx, const struct driver_load *load)
{
	const struct telling *t = ctx;
	struct driver_load announced = *load;
	int r = streams_until(t->b, load->time_ns, t->sink);

	if (r < 0)
		return r;
	if (load->kind == DRIVER_LOAD_FORK)
		bpf_forks_tell(&t->b->forks, &announced);
	return t->sink->load(t->sink->ctx, &announced);
}

static int tell_count(void *ctx, const struct driver_count *count)
{
	const struct telling *t = ctx;
	int r = streams_until(t->b, count->time_ns, t->sink);

	return r < 0 ? r : t->sink->count(t->sink->ctx, count);
}

static int hand_on(struct bpf *b, uint64_t horizon, const struct driver_sink *sink)
{
	struct telling t = { b, sink };
	const struct driver_sink telling = { .load = tell_load, .count = tell_count, .ctx = &t };
	size_t nr_streamed;
	int r;

	read_streams(b, &nr_streamed);
	/*
	 * Forks until then are in the ring, unless the parent was stopped between event and
	 * program.
	 */
	ring_buffer__consume(b->announced_forks);
	if (!b->forks.nr && !nr_streamed)
		return perf_sampler_hand_on(&b->sampler, horizon, sink);
	r = perf_sampler_hand_on(&b->sampler, horizon, &telling);
	if (r >= 0)
		r = streams_until(b, horizon, sink);
	if (r >= 0)
		bpf_forks_drop(&b->forks, horizon);
	return r;
}

/* Whether a record that waits has the number of a thread's name. */
static bool names_threads(struct bpf *b)
{
	bool some = false;

	for (size_t i = 0; i < NR_STREAMS; i++)
		some |= streams[i]->names_threads && streams[i]->names_threads(b);
	return some;
}

/* The streams' records are whole up to the answer, which is @horizon at most. */
static uint64_t horizon_of(struct bpf *b, uint64_t horizon)
{
	for (size_t i = 0; i < NR_STREAMS; i++)
		if (streams[i]->horizon)
			horizon = streams[i]->horizon(b, horizon);
	return horizon;
}

/* Exchange, and hand on what is older than that. */
static int drain_tables(struct bpf *b, const struct driver_sink *sink)
{
	uint64_t now, horizon;
	uint32_t bank;
	int r, waited;

	for (size_t i = 0; i < NR_STREAMS; i++)
		if (streams[i]->look)
			streams[i]->look(b);
	now = base_now_ns();
	horizon = b->running ? now : UINT64_MAX;
	bank = bpf_threads_bank(&b->threads, b->sampler.order.nr_samples || names_threads(b));
	waited = bpf_tables_swap(&b->tables, now, bank);
	bpf_threads_exchanged(&b->threads, waited >= 0);
	tell_refusal(b, waited);
	gather(b);
	for (size_t i = 0; i < NR_STREAMS; i++)
		if (streams[i]->gather)
			streams[i]->gather(b);
	/* No CPU is still writing an older record into a ring. */
	r = perf_sampler_read_rings(&b->sampler, UINT64_MAX);
	horizon = horizon_of(b, horizon);
	if (r >= 0)
		r = hand_on(b, horizon, sink);
	for (size_t i = 0; r >= 0 && i < NR_STREAMS; i++)
		streams[i]->settle(b, horizon);
	return r;
}

/*
 * With @all: an address that was just being counted when the tables were exchanged, behind the
 * horizon, keeps all its count. The next exchange ends it.
 */
static int drain_due(struct bpf *b, bool all, const struct driver_sink *sink)
{
	int r = drain_tables(b, sink);

	if (r >= 0 && all && b->sampler.order.nr_samples)
		r = drain_tables(b, sink);
	return r;
}

static int bpf_drain(struct driver *d, bool all, const struct driver_sink *sink,
		     struct base_err *err)
{
	struct bpf *b = (struct bpf *)d;
	bool due = is_due(b) || all;
	int r, handed = 0;

	perf_sampler_turn(&b->sampler, base_now_ns());
	r = perf_sampler_read(&b->sampler, UINT64_MAX, due);
	tell_tables(b);
	if (due && r >= 0)
		handed = drain_due(b, all, sink);
	bpf_clients_sweep(&b->programs);
	account(b, due);
	if (handed < 0)
		return handed;
	return r < 0 ? base_fail_errno(err, r, "cannot read the rings") : 0;
}

/* ---- the source ------------------------------------------------------------------------------ */

static int run_streams(struct bpf *b, bool on)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < NR_STREAMS; i++)
		r = streams[i]->run ? streams[i]->run(b, on) : 0;
	return r;
}

static int bpf_start(struct driver *d, struct base_err *err)
{
	struct bpf *b = (struct bpf *)d;
	int r = perf_sampler_start(&b->sampler, err);

	if (r < 0)
		return r;
	b->running = true;
	r = bpf_programs_tick(&b->programs, true);
	if (r < 0)
		return bpf_refused(err, r, "cannot sample on 'tick'");
	r = run_streams(b, true);
	return r < 0 ? bpf_refused(err, r, "cannot measure waits") : 0;
}

static void bpf_stop(struct driver *d)
{
	struct bpf *b = (struct bpf *)d;

	bpf_programs_tick(&b->programs, false);
	run_streams(b, false);
	perf_sampler_stop(&b->sampler);
	b->running = false;
}

static int bpf_poll_fd(const struct driver *d)
{
	return perf_sampler_poll_fd(&((const struct bpf *)d)->sampler);
}

static int bpf_client_set(struct driver *d, int32_t pid, const struct driver_client *client)
{
	return bpf_clients_set(&((struct bpf *)d)->programs, pid, client);
}

static const char *bpf_thread_name(const struct driver *d, uint32_t thread)
{
	return bpf_threads_name(&((const struct bpf *)d)->threads, thread);
}

static void bpf_threads_forget(struct driver *d)
{
	((struct bpf *)d)->threads.forget = true;
}

static void bpf_close(struct driver *d)
{
	struct bpf *b = (struct bpf *)d;

	perf_sampler_close(&b->sampler);
	for (size_t i = 0; i < NR_STREAMS; i++)
		streams[i]->close(b);
	ring_buffer__free(b->notes);
	ring_buffer__free(b->announced_forks);
	if (b->timer_fd >= 0)
		close(b->timer_fd);
	bpf_programs_close(&b->programs);
	bpf_tables_release(&b->tables);
	bpf_counts_release(&b->counts);
	bpf_forks_release(&b->forks);
	bpf_threads_release(&b->threads);
	free(b);
}

static const struct driver_ops bpf_ops = {
	.start = bpf_start,
	.drain = bpf_drain,
	.poll_fd = bpf_poll_fd,
	.look = bpf_look,
	.wake_at_exec = bpf_wake_at_exec,
	.busy = bpf_busy,
	.client_set = bpf_client_set,
	.thread_name = bpf_thread_name,
	.threads_forget = bpf_threads_forget,
	.stop = bpf_stop,
	.close = bpf_close,
};

/* ---- opening: what is asked for -------------------------------------------------------------- */

/* Inode of the PID namespace in which programs see processes (include/linux/proc_ns.h). */
#define INITIAL_PID_NAMESPACE 0xeffffffcu

/* Can traces and call paths be had as @config wishes? -DCPI_EUSAGE, -DCPI_EUNSUPPORTED. */
static int check_behind(const struct driver_config *config, struct base_err *err)
{
	int r = config->callpath_every ? driver_callpaths_possible(NULL, err) : 0;

	if (r >= 0 && config->waits && !config->callpath_every)
		return base_fail(err, -DCPI_EUSAGE, "waits are measured with call paths only");
	if (r < 0 || !config->trace_every)
		return r;
	if (config->trace_insns > TRACE_INSNS_MAX)
		return base_fail(err, -DCPI_EUSAGE, "traces of %u instructions: more than %d",
				 config->trace_insns, TRACE_INSNS_MAX);
	if (config->trace_log > VTRACE_LOG_TIMES)
		return base_fail(err, -DCPI_EUSAGE, "traces with values of kind %u: unknown",
				 config->trace_log);
	return driver_traces_possible(NULL, err);
}

static int check_config(const struct driver_config *config, struct base_err *err)
{
	size_t len = config->table_len;
	int r;

	if (config->pid > 0)
		return base_fail(err, -DCPI_EUSAGE,
				 "a single process is not counted in the kernel: use 'perf'");
	if (len && (len & (len - 1) || len < BPF_TABLE_LEN_MIN || len > BPF_TABLE_LEN_MAX))
		return base_fail(err, -DCPI_EUSAGE,
				 "table of %zu entries: not a power of two from %d to %d", len,
				 BPF_TABLE_LEN_MIN, BPF_TABLE_LEN_MAX);
	r = check_behind(config, err);
	return r < 0 ? r : perf_config_check(config, err);
}

/* Programs see processes by their numbers outside of any container. */
static int check_namespace(struct base_err *err)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == INITIAL_PID_NAMESPACE)
		return 0;
	base_fail(err, -DCPI_EUNSUPPORTED,
		  "cannot count in the kernel from within a PID namespace of its own");
	base_hint(err, "start the container in the host's PID namespace");
	return -DCPI_EUNSUPPORTED;
}

/* One more than the highest number of a CPU that is there, on or off. */
static int nr_present(void)
{
	unsigned int *cpus = NULL, highest = 0;
	int nr = perf_cpus_list("present", &cpus);

	for (int i = 0; i < nr; i++)
		highest = cpus[i] > highest ? cpus[i] : highest;
	free(cpus);
	return nr < 0 ? nr : (int)highest + 1;
}

/* ---- opening: parts -------------------------------------------------------------------------- */

static int open_tables(struct bpf *b, const struct driver_config *config, struct base_err *err)
{
	size_t len = config->table_len ? config->table_len : BPF_TABLE_LEN;
	int r = nr_present();

	if (r >= 0)
		r = bpf_tables_init(&b->tables, (uint32_t)len, (size_t)r);
	return r < 0 ? base_fail_errno(err, r, "cannot count in the kernel") : 0;
}

static int open_sampler(struct bpf *b, const struct driver_config *config, size_t nr,
			const char *why, struct base_err *err)
{
	int programs[DRIVER_NR_EVENTS], r;

	/* No program reads what the hardware tells of an instruction: the ring has it. */
	for (size_t i = 0; i < nr; i++)
		programs[i] = b->specs[i].told ? -1 : bpf_programs_fd(&b->programs, i);
	r = perf_sampler_open(&b->sampler, &b->base, config, b->specs, nr, programs, why, err);
	for (size_t i = 0; i < nr && r >= 0; i++) {
		if (b->specs[i].tick)
			b->base.events[i].period = bpf_tick_period();
	}
	return r;
}

static int on_fork(void *ctx, void *data, size_t len)
{
	struct bpf *b = ctx;

	if (len >= sizeof(struct sample_fork))
		bpf_forks_add(&b->forks, data);
	return 0;
}

static int on_note(void *ctx, void *data, size_t len)
{
	struct bpf *b = ctx;

	b->noted |= len > 0 && *(uint8_t *)data == SAMPLE_NOTE_DRAIN;
	return 0;
}

static int open_timer(struct bpf *b)
{
	const struct timespec every = { .tv_sec = b->drain_ms / 1000,
					.tv_nsec = b->drain_ms % 1000 * 1000000L };
	const struct itimerspec when = { every, every };

	b->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (b->timer_fd < 0 || timerfd_settime(b->timer_fd, 0, &when, NULL) < 0)
		return -errno;
	return perf_sampler_poll_add(&b->sampler, b->timer_fd, false);
}

static int open_ring(struct bpf *b, void **ring, int fd, ring_buffer_sample_fn on_record)
{
	*ring = ring_buffer__new(fd, on_record, b, NULL);
	return *ring ? perf_sampler_poll_add(&b->sampler, ring_buffer__epoll_fd(*ring), false)
		     : -errno;
}

static int open_polling(struct bpf *b, struct base_err *err)
{
	int r = open_timer(b);

	if (r >= 0)
		r = open_ring(b, &b->notes, b->programs.notes_fd, on_note);
	if (r >= 0)
		r = open_ring(b, &b->announced_forks, b->programs.forks_fd, on_fork);
	return r < 0 ? base_fail_errno(err, r, "cannot wait for the kernel's tables") : 0;
}

/* Waits have events of their own, behind those that are sampled. */
static int check_room(const struct driver_config *config, int nr, struct base_err *err)
{
	if (!config->waits || nr + BPF_WAIT_EVENTS <= DRIVER_NR_EVENTS)
		return 0;
	base_fail(err, -DCPI_EUSAGE, "%d events and those of waits: more than %d", nr,
		  DRIVER_NR_EVENTS);
	base_hint(err, "sample at most %d events with waits", DRIVER_NR_EVENTS - BPF_WAIT_EVENTS);
	return -DCPI_EUSAGE;
}

static int open_parts(struct bpf *b, const struct driver_config *config, struct base_err *err)
{
	const char *why;
	int nr = perf_specs_choose(config, b->specs, &why, err), r = nr;

	if (r >= 0)
		r = check_room(config, nr, err);
	if (r >= 0)
		r = open_tables(b, config, err);
	if (r >= 0)
		r = bpf_programs_open(&b->programs, config, b->specs, (size_t)nr, &b->tables, err);
	if (r < 0)
		return r;
	r = bpf_tables_map(&b->tables, b->programs.tables_fd);
	if (r < 0)
		return bpf_refused(err, r, "cannot make the kernel's tables");
	b->tables.shared = b->programs.shared;
	r = bpf_threads_init(&b->threads, b->programs.names);
	if (r < 0)
		return base_fail_errno(err, r, "cannot count in the kernel");
	r = open_sampler(b, config, (size_t)nr, why, err);
	b->sampler.new_cpu = add_cpu;
	b->sampler.spill.more = spill;
	b->sampler.spill.ctx = b;
	b->why = b->sampler.why;
	if (r >= 0)
		r = open_polling(b, err);
	if (r < 0)
		return r;
	for (size_t i = 0; r >= 0 && i < NR_STREAMS; i++)
		r = streams[i]->open(b, config);
	return r < 0 ? bpf_refused(err, r, "cannot make room for traces, call paths or waits") : 0;
}

int bpf_open(const struct driver_config *config, struct driver **out, struct base_err *err)
{
	struct bpf *b;
	int r = check_config(config, err);

	*out = NULL;
	if (r >= 0)
		r = check_namespace(err);
	if (r < 0)
		return r;
	b = calloc(1, sizeof(*b));
	if (!b)
		return base_fail_errno(err, -ENOMEM, "cannot sample");
	b->base.ops = &bpf_ops;
	b->base.utc = -1;
	b->timer_fd = -1;
	b->programs.pins_fd = -1;
	b->tables.gate_fd = b->tables.inner_fd = -1;
	b->drain_ms = config->drain_ms ? config->drain_ms : BPF_DRAIN_MS;
	r = open_parts(b, config, err);
	if (r < 0) {
		bpf_ops.close(&b->base);
		return r;
	}
	*out = &b->base;
	return 0;
}
