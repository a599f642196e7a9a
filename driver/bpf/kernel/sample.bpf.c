/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The sampler: counts (process instance, thread's name, address, event) in its CPU's table, in the
 * interrupt of the sample. The daemon exchanges the tables of all CPUs by storing a word, and reads
 * the old ones when no program uses them any more.
 */
#include "kernel.h"

union count_bucket;
static union count_bucket *element_at(uint32_t index);

/* Set before loading: count_table.h says of what kind. */
const volatile uint64_t mix[4] = { 0 };

#define COUNT_TABLE	       uint32_t /* where its first element stands */
#define COUNT_AT(table, index) element_at((table) + (index))
#define COUNT_MIX(i)	       mix[i]

#include "count_table.h"
#include "sample.h"
#include "thread_names.h"

/* Called after a sample was counted (behind.bpf.c); here it is empty. */
#ifndef SAMPLE_AFTER_EVENT
#define SAMPLE_AFTER_EVENT(ctx, key)	  ((void)0)
#define SAMPLE_AFTER_TICK(ctx, regs, key) ((void)0)
#define SAMPLE_COUNT			  static __always_inline
#endif

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* ---- set before loading ---------------------------------------------------------------------- */

const volatile uint32_t event = 0; /* the index of what is sampled: each has its own program */
/* Pages of words may be pinned. */
const volatile bool can_pin = false;

/* ---- maps ------------------------------------------------------------------------------------ */

/*
 * The tables of all CPUs, of set 0 and of set 1 each (sample.h), one behind the other: as one array
 * that is known when a program is loaded, where an element stands is arithmetic and no call.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* replaced when the source is opened */
	/* Both in bytes: of a type for one alone the kernel refuses the map with BTF. */
	__uint(key_size, sizeof(uint32_t));
	__uint(value_size, sizeof(union count_bucket));
} tables SEC(".maps");

struct sample_shared shared __attribute__((aligned(64))) = { 0 };

/* Samples of CPUs that have no table, by event. */
uint64_t untabled[COUNT_NR_EVENTS] __attribute__((aligned(64))) = { 0 };

struct sample_client clients[SAMPLE_NR_SLOTS] __attribute__((aligned(64)));
struct sample_ranges ranges[SAMPLE_NR_CLIENTS] __attribute__((aligned(64)));

struct sample_pages pages[SAMPLE_NR_CLIENTS] __attribute__((aligned(64)));

struct thread_name names[THREAD_NR_NAMES] __attribute__((aligned(64)));

/* Set by the daemon when it rests, cleared by who wakes it (sample.h). */
uint32_t wake_at_exec __attribute__((aligned(64))) = 0;
/* A page became SAMPLE_PAGE_WANTED. */
uint32_t pages_wanted = 0;

/* Pages that a process has pinned, as long as its first thread is there: bpf_pins_linux.c makes it,
 * as the types that it needs are more than every compiler can tell. */
struct pins {
	void *pages[SAMPLE_NR_PINS];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct pins);
} pins SEC(".maps");

/* A byte for whatever wakes the daemon: enum sample_note. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, SAMPLE_NOTES_LEN);
} notes SEC(".maps");

/* struct sample_fork. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, SAMPLE_FORKS_LEN);
} forks SEC(".maps");

static __always_inline union count_bucket *element_at(uint32_t index)
{
	return bpf_map_lookup_elem(&tables, &index);
}

/* ---- clients --------------------------------------------------------------------------------- */

static __always_inline struct sample_client *client_find(uint32_t tgid)
{
	uint32_t at = sample_slot(tgid), of;

#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < SAMPLE_NR_PROBES; i++, at++) {
		struct sample_client *c = &clients[at % SAMPLE_NR_SLOTS];

		of = *(volatile uint32_t *)&c->tgid;
		if (of == tgid)
			return c;
		if (!of)
			return NULL;
	}
	return NULL;
}

enum range_found { RANGE_NONE, RANGE_SINGLE, RANGE_WORDS, RANGE_UNREAD };

/* The number of the first of @c's ranges in which @addr lies; SAMPLE_NR_RANGES: none. */
static __always_inline uint32_t range_number(const struct sample_client *c, uint64_t addr)
{
	const struct sample_ranges *r = &ranges[c->ranges % SAMPLE_NR_CLIENTS];

	if (addr < c->start || addr >= c->end)
		return SAMPLE_NR_RANGES;
	if (c->nr == 1)
		return 0;
#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < SAMPLE_NR_RANGES && i < c->nr; i++) {
		if (addr >= r->items[i].start && addr < r->items[i].end)
			return i;
	}
	return SAMPLE_NR_RANGES;
}

/* Where a generation stands. */
struct place {
	uint64_t word;	 /* in the process's memory */
	uint64_t *page;	 /* page of the word: see struct sample_pages; … */
	uint64_t at;	 /* … what was there */
	uint32_t number; /* number of the word */
};

/* In which of the ranges of its process @addr lies, and *@place of what runs there. */
static __always_inline enum range_found range_find(uint32_t tgid, uint64_t addr,
						   struct place *place)
{
	struct sample_client *c = client_find(tgid);
	uint32_t seq, number, with_words;

	if (!c)
		return RANGE_NONE;
	seq = *(volatile uint32_t *)&c->seq;
	COUNT_BARRIER();
	number = range_number(c, addr);
	with_words = (uint32_t)c->with_words >> number & 1;
	place->number = (uint32_t)(addr >> SAMPLE_BLOCK_SHIFT) & c->mask;
	place->word = c->words + (uint64_t)place->number * sizeof(uint32_t);
	place->page = &pages[c->ranges % SAMPLE_NR_CLIENTS]
			       .at[place->number >> SAMPLE_PAGE_SHIFT & (SAMPLE_NR_PAGES - 1)];
	place->at = can_pin ? *(volatile uint64_t *)place->page : SAMPLE_PAGE_WANTED;
	COUNT_BARRIER();
	/* Nothing of what was read is known to belong together, not even that it is in no range. */
	if (seq & 1 || *(volatile uint32_t *)&c->seq != seq ||
	    *(volatile uint32_t *)&c->tgid != tgid)
		return RANGE_UNREAD;
	if (number >= SAMPLE_NR_RANGES)
		return RANGE_NONE;
	return with_words ? RANGE_WORDS : RANGE_SINGLE;
}

static __always_inline uint32_t pinned_read(const struct place *place)
{
	const uint32_t in_page = place->number & ((1u << SAMPLE_PAGE_SHIFT) - 1);
	struct seqcount *word = bpf_rdonly_cast((void *)(place->at + in_page * sizeof(uint32_t)),
						bpf_core_type_id_kernel(struct seqcount));

	return word->sequence;
}

/* The generation that runs at @place now; false: it cannot be read. */
static __always_inline bool generation_read(uint32_t *generation, const struct place *place)
{
	if (KERNEL_HAS_FUNCTIONS && can_pin && place->at > SAMPLE_PAGE_WANTED) {
		*generation = pinned_read(place);
		return true;
	}
	if (bpf_probe_read_user(generation, sizeof(*generation), (void *)place->word) < 0)
		return false;
	if (!place->at && !__sync_val_compare_and_swap(place->page, 0, SAMPLE_PAGE_WANTED))
		pages_wanted = 1;
	return true;
}

static __always_inline void generation_put(struct count_key *k, const struct place *place)
{
	if (generation_read(&k->generation, place)) {
		k->what |= COUNT_WHAT_READ;
		return;
	}
	k->generation = 0;
	k->what |= COUNT_WHAT_UNREAD;
}

static __always_inline bool is_flooded(uint32_t table, const struct count_head *h, uint32_t tgid)
{
	const struct count_shape s = shared.shape;
	const union count_bucket *floods = h->flooded ? COUNT_AT(table, COUNT_FLOODS) : NULL;

	return floods && count_is_flooded(floods, &s, tgid);
}

/* ---- counting -------------------------------------------------------------------------------- */

/* Not static, so that the verifier looks at it once, and not with each program. */
__attribute__((noinline)) uint32_t name_find(uint32_t bank, uint64_t word0, uint64_t word1)
{
	struct thread_name name = { .word = { word0, word1 } };

	thread_name_trim(&name);
	return thread_find(names, bank, &name);
}

/*
 * The number of the name of @task: mostly that of the sample before, whose name the head has. A
 * thread that is just being renamed may have parts of both names.
 */
static __always_inline uint32_t key_thread(const struct task_struct *task, struct count_head *h,
					   uint32_t set)
{
	const uint64_t *comm = (const uint64_t *)task->comm;
	uint64_t word0 = comm[0], word1 = comm[1];

	if (h->name[0] != word0 || h->name[1] != word1) {
		h->thread = name_find(set / SAMPLE_BANK, word0, word1);
		h->name[0] = word0;
		h->name[1] = word1;
	}
	return COUNT_OF_THREAD(h->thread);
}

/*
 * Put the life of the process into the key: an exec or another use of the pid has another number.
 * The idle task has none. A thread that has ended, and runs its last instructions in the kernel,
 * may have lost its leader.
 */
static __always_inline void key_process(struct count_key *k, const struct task_struct *task,
					struct count_head *h, uint32_t set, bool user)
{
	if (!user && !task->pid)
		return;
	k->tgid = task->tgid;
	if (user || !task->exit_state)
		k->instance =
			count_instance(task->group_leader->start_boottime, task->self_exec_id);
	k->what |= key_thread(task, h, set);
}

static __always_inline void ask_for_drain(struct count_head *h, uint64_t now)
{
	uint8_t note = SAMPLE_NOTE_DRAIN;

	if (bpf_ringbuf_output(&notes, &note, sizeof(note), 0) == 0)
		h->announced_ns = now;
}

/* Classify a user-mode sample while there are clients: *@k gets its generation. */
static __always_inline int count_range(uint32_t table, const struct count_head *h,
				       struct count_key *k)
{
	struct place place = { 0 };
	enum range_found found = range_find(k->tgid, k->addr, &place);

	if (found == RANGE_WORDS && !is_flooded(table, h, k->tgid))
		generation_put(k, &place);
	else if (found >= RANGE_WORDS)
		k->what |= COUNT_WHAT_UNREAD;
	return found;
}

/* Both out of the way of what a rare sample runs through; a frequent one would pay for the calls.
 */
static __attribute__((noinline)) int count_add_apart(uint32_t table, struct count_head *h,
						     const struct count_key *k,
						     const struct count_place *p, uint64_t now)
{
	const struct count_shape s = shared.shape;

	return count_add(table, &s, h, k, p, now);
}

static __attribute__((noinline)) int count_range_apart(uint32_t table, const struct count_head *h,
						       struct count_key *k)
{
	return count_range(table, h, k);
}

static __always_inline void count_hashed(uint32_t table, const struct count_shape *s,
					 struct count_head *h, const struct count_key *k, bool rare,
					 uint64_t now)
{
	const struct count_place p = count_place_of(s, k);
	union count_bucket *floods;
	int made = rare ? count_add_apart(table, h, k, &p, now)
			: (int)count_add(table, s, h, k, &p, now);

	if (made != COUNT_RENEWED || !(k->what & COUNT_WHAT_READ))
		return;
	floods = COUNT_AT(table, COUNT_FLOODS);
	if (floods)
		count_flood(floods, s, h, k->tgid);
}

/* A process that is younger may be over before the daemon learns that it reuses addresses. */
#define YOUNG_NS 1000000000ull

static __always_inline bool is_young(const struct task_struct *task, uint64_t now)
{
	return now - task->group_leader->start_time < YOUNG_NS;
}

/*
 * Whether a sample is put into the log by itself without being asked for so. A part of the log
 * stays for entries that are pushed out, so that no drain is asked for earlier. @timeless: of user
 * mode, and no generation tells which routine it is of.
 */
static __always_inline bool has_log(const struct count_head *h, const struct count_shape *s,
				    const struct task_struct *task, bool timeless, bool rare,
				    uint64_t now)
{
	uint32_t nr = h->nr_log + 1;

	return rare ? nr < s->nr_log / 2 : timeless && nr < s->nr_log / 4 && is_young(task, now);
}

/*
 * @rare: in a second there are too few samples for a table to be in the caches when the next one
 * comes. The end of the log is; so that is used up first, until one more would ask for a drain.
 */
static __always_inline void count_in(uint32_t table, struct count_head *h, struct count_key *k,
				     const struct task_struct *task, bool user, bool rare,
				     uint64_t now)
{
	const struct count_shape s = shared.shape;
	enum range_found found = RANGE_NONE;

	if (user && shared.nr_clients) {
		const struct count_place p = count_place_of(&s, k);

		if (!rare)
			count_touch(table, &s, &p);
		found = rare ? count_range_apart(table, h, k) : count_range(table, h, k);
	}
	if (found == RANGE_SINGLE || has_log(h, &s, task, user && found == RANGE_NONE, rare, now)) {
		count_add_single(table, &s, h, k, now);
	} else {
		count_hashed(table, &s, h, k, rare, now);
	}
	if (count_should_tell(&s, h))
		ask_for_drain(h, now);
}

/* Out of what @set was read once: who reads it again may find another table. */
static __always_inline uint32_t own_table(uint32_t set)
{
	return SAMPLE_TABLE(bpf_get_smp_processor_id(), set) * shared.stride;
}

/*
 * The time of a sample that is put into a table of @set, so late that what a younger table holds is
 * never older than the exchange. @now: 0, or what somebody has read before, as a clock is not in
 * the caches either when it is asked rarely.
 */
static __always_inline uint64_t time_of(uint32_t set, uint64_t now)
{
	uint64_t since;

	if (!now)
		return bpf_ktime_get_ns();
	since = *(volatile uint64_t *)&shared.since_ns[set & 1];
	return now > since ? now : since;
}

/*
 * @known: where it was; else it is lost by name. @rare, @now: see count_in, time_of. *@k, which the
 * caller has cleared, is what it counted as; of tgid 0 where it did not, or of the idle task.
 */
static __always_inline void count(struct count_key *k, uint32_t of, bool known, uint64_t addr,
				  bool user, bool rare, uint64_t now)
{
	uint32_t set = *(volatile uint32_t *)&shared.set;
	uint32_t table = own_table(set);
	const struct task_struct *task;
	union count_bucket *first = COUNT_AT(table, COUNT_HEAD);

	if (!first) {
		__sync_fetch_and_add(&untabled[of % COUNT_NR_EVENTS], 1);
		return;
	}
	k->addr = addr;
	k->what = COUNT_WHAT(of, user ? SAMPLE_USER : SAMPLE_KERNEL);
	first->head.received[of % COUNT_NR_EVENTS]++;
	if (!known)
		__sync_fetch_and_add(&first->head.lost_bad, 1);
	if (!known || !count_enter(&first->head))
		return;
	task = bpf_get_current_task_btf();
	key_process(k, task, &first->head, set, user);
	count_in(table, &first->head, k, task, user, rare, time_of(set, now));
	count_leave(&first->head);
}

SAMPLE_COUNT int count_event(struct bpf_perf_event_data *ctx, struct count_key *k)
{
	count(k, event, true, ctx->regs.ip, KERNEL_IS_USER(ctx->regs.KERNEL_MODE_WORD), false, 0);
	return 0;
}

SEC("perf_event")
int sample_event(struct bpf_perf_event_data *ctx)
{
	struct count_key k = { 0 };

	count_event(ctx, &k);
	SAMPLE_AFTER_EVENT(ctx, &k);
	return 0;
}

/* The eight bytes at @from, which may be anything. */
static __always_inline bool read_word(const void *from, uint64_t *to)
{
	struct timespec64 *word;

	if (!KERNEL_HAS_FUNCTIONS)
		return bpf_probe_read_kernel(to, sizeof(*to), from) == 0;
	word = bpf_rdonly_cast(from, bpf_core_type_id_kernel(struct timespec64));
	*to = (uint64_t)word->tv_sec;
	return true;
}

/* The program counter, and the word that tells the mode. */
static __always_inline bool read_regs(uint64_t at, uint64_t v[2])
{
	struct pt_regs *regs = (struct pt_regs *)at;

	if (!KERNEL_HAS_FUNCTIONS)
		return bpf_probe_read_kernel(v, 2 * sizeof(v[0]), &regs->KERNEL_REGS_IP) == 0;
	regs = bpf_rdonly_cast((void *)at, bpf_core_type_id_kernel(struct pt_regs));
	v[0] = regs->KERNEL_REGS_IP;
	v[1] = regs->KERNEL_REGS_MODE;
	/* A fault gives 0. */
	return v[0] != 0;
}

/*
 * The registers that the timer interrupted. They are in __irq_regs, a per-CPU variable, found by
 * its distance to one that the timer leads to.
 */
static __always_inline bool read_interrupted(struct hrtimer *timer, uint64_t *regs, uint64_t v[2])
{
	/* Shows the verifier that it is below the limit. */
	int64_t delta = (int64_t)shared.irq_regs_delta << 35 >> 35;

	return read_word((char *)timer->base->cpu_base + delta, regs) && *regs &&
	       read_regs(*regs, v);
}

/* *@regs: see read_interrupted. */
SAMPLE_COUNT int count_tick(uint64_t *ctx, struct count_key *k, uint64_t *regs)
{
	uint64_t v[2] = { 0 }, now = 0;
	bool known = read_interrupted((struct hrtimer *)ctx[0], regs, v);

	/* When the interrupt began: the tick is a timer of CLOCK_MONOTONIC. */
	read_word((void *)ctx[1], &now);
	count(k, shared.tick_event, known, v[0], KERNEL_IS_USER(v[1]), true, now);
	return 0;
}

/* The scheduler's tick, before its timer's function runs. */
SEC("tp_btf/hrtimer_expire_entry")
int sample_tick(uint64_t *ctx)
{
	struct hrtimer *timer = (struct hrtimer *)ctx[0];
	struct count_key k = { 0 };
	uint64_t regs = 0;

	if ((uint64_t)timer->function != shared.tick_function)
		return 0;
	count_tick(ctx, &k, &regs);
	SAMPLE_AFTER_TICK(ctx, (void *)regs, &k);
	return 0;
}

/* A program begins: wake who rests, once. */
SEC("tp_btf/sched_process_exec")
int program_begins(uint64_t *ctx)
{
	uint8_t note = SAMPLE_NOTE_EXEC;

	(void)ctx;
	if (*(volatile uint32_t *)&wake_at_exec &&
	    __sync_val_compare_and_swap(&wake_at_exec, 1, 0) == 1)
		bpf_ringbuf_output(&notes, &note, sizeof(note), BPF_RB_FORCE_WAKEUP);
	return 0;
}

/* ---- forks and ends of clients --------------------------------------------------------------- */

static __always_inline void client_drop(uint32_t tgid)
{
	struct sample_client *c = client_find(tgid);

	/* The daemon may have given the slot to another one meanwhile. */
	if (c)
		__sync_val_compare_and_swap(&c->tgid, tgid, SAMPLE_GONE);
}

SEC("tp_btf/sched_process_exec")
int sample_exec(uint64_t *ctx)
{
	client_drop(((struct task_struct *)ctx[0])->tgid);
	return 0;
}

/* In the parent, when the child's FORK event was just written: of a process, not a thread. */
SEC("tp_btf/task_newtask")
int sample_fork(uint64_t *ctx)
{
	struct task_struct *child = (struct task_struct *)ctx[0];
	struct sample_fork f = { .parent = bpf_get_current_pid_tgid() >> 32 };
	struct sample_client *c;

	f.child = child->tgid;
	c = f.child == f.parent ? NULL : client_find(f.parent);
	if (!c || !c->cursor || bpf_probe_read_user(&f.cursor, sizeof(f.cursor), (void *)c->cursor))
		return 0;
	f.begun_ns = child->start_time;
	f.time_ns = bpf_ktime_get_ns();
	bpf_ringbuf_output(&forks, &f, sizeof(f),
			   bpf_ringbuf_query(&forks, BPF_RB_AVAIL_DATA) < SAMPLE_FORKS_LEN / 2
				   ? BPF_RB_NO_WAKEUP
				   : BPF_RB_FORCE_WAKEUP);
	return 0;
}

/* Exit of a process: its last thread has counted itself out already. */
SEC("tp_btf/sched_process_exit")
int sample_exit(uint64_t *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];

	if (task->signal->live.counter == 0)
		client_drop(task->tgid);
	return 0;
}

/* ---- pins ------------------------------------------------------------------------------------ */

/* Run by the daemon: where the kernel has what @p->tgid has pinned. */
SEC("syscall")
int pins_take(struct sample_pins *p)
{
	struct task_struct *task = KERNEL_HAS_FUNCTIONS ? bpf_task_from_pid(p->tgid) : NULL;
	struct pins *pinned = task ? bpf_task_storage_get(&pins, task, NULL, 0) : NULL;

	if (pinned) {
#pragma clang loop unroll(full)
		for (int i = 0; i < SAMPLE_NR_PINS; i++)
			p->at[i] = (uint64_t)pinned->pages[i];
	}
	if (task)
		bpf_task_release(task);
	return pinned ? 0 : 1;
}
