/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The sampler: counts (process instance, address, event) in its CPU's table, in the interrupt of
 * the sample. The daemon exchanges the tables of all CPUs by storing a word, and reads the old ones
 * when no program uses them any more.
 */
#include "kernel.h"

#define COUNT_AT(table, index)                                                                     \
	({                                                                                         \
		__u32 index_ = (index);                                                            \
		(union count_bucket *)bpf_map_lookup_elem((table), &index_);                       \
	})

#include "count_table.h"
#include "sample.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* ---- set before loading ---------------------------------------------------------------------- */

const volatile uint32_t event = 0; /* the index of what is sampled: each has its own program */

/* ---- maps ------------------------------------------------------------------------------------ */

struct table {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* replaced when the source is opened */
	__uint(key_size, sizeof(uint32_t));
	__uint(value_size, sizeof(union count_bucket));
};

/* Two of each CPU: of set 0 and of set 1 (sample.h). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1); /* likewise */
	__type(key, uint32_t);
	__array(values, struct table);
} tables SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SAMPLE_NR_CLIENTS);
	__type(key, uint32_t);
	__type(value, struct sample_client);
} clients SEC(".maps");

struct sample_shared shared __attribute__((aligned(64))) = { 0 };

/* Samples of CPUs that have no table, by event. */
uint64_t untabled[COUNT_NR_EVENTS] __attribute__((aligned(64))) = { 0 };

/* A byte for each table that wants to be drained; only that there is one matters. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, SAMPLE_NOTES_LEN);
} notes SEC(".maps");

/* ---- ranges ---------------------------------------------------------------------------------- */

enum range_found { RANGE_NONE, RANGE_SINGLE, RANGE_WORDS, RANGE_UNREAD };

/* In which of the ranges of its process @addr lies; *@word: where its generation stands. */
static __always_inline enum range_found range_find(uint32_t tgid, uint64_t addr, uint64_t *word)
{
	struct sample_client *c = bpf_map_lookup_elem(&clients, &tgid);
	uint64_t words = 0;

	if (!c)
		return RANGE_NONE;
#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < SAMPLE_NR_RANGES && i < c->nr; i++) {
		const struct sample_range *r = &c->ranges[i];

		if (addr < r->start || addr >= r->end)
			continue;
		words = r->words;
		*word = words + ((addr - r->start) >> SAMPLE_BLOCK_SHIFT) * sizeof(uint32_t);
		if (*(volatile uint32_t *)&c->tgid != tgid)
			return RANGE_UNREAD;
		return words ? RANGE_WORDS : RANGE_SINGLE;
	}
	return RANGE_NONE;
}

/* The generation that runs there now, into the key. */
static __always_inline void generation_read(struct count_key *k, uint64_t word)
{
	if (bpf_probe_read_user(&k->generation, sizeof(k->generation), (void *)word) == 0)
		return;
	k->generation = 0;
	k->what |= COUNT_WHAT_UNREAD;
}

/* What a user-mode sample of a process with ranges is: *@k gets its generation. */
static __always_inline enum range_found
range_enter(const struct count_shape *s, const union count_bucket *floods, struct count_key *k)
{
	uint64_t word = 0;
	enum range_found found = range_find(k->tgid, k->addr, &word);

	if (found == RANGE_WORDS && !count_is_flooded(floods, s, k->tgid))
		generation_read(k, word);
	else if (found >= RANGE_WORDS)
		k->what |= COUNT_WHAT_UNREAD;
	return found;
}

/* ---- counting -------------------------------------------------------------------------------- */

/* Whose life this is: an exec or another use of the pid has another number. */
static __always_inline void key_process(struct count_key *k)
{
	struct task_struct *task = bpf_get_current_task_btf();

	k->instance = task->group_leader->start_boottime << 16 | (uint16_t)task->self_exec_id;
	k->tgid = task->tgid;
}

static __always_inline void ask_for_drain(struct count_head *h, uint64_t now)
{
	uint8_t note = 0;

	if (bpf_ringbuf_output(&notes, &note, sizeof(note), 0) == 0)
		h->told_ns = now;
}

/* Out of the way of what a rare sample runs through. */
static __attribute__((noinline)) int count_hashed(void *table, struct count_head *h,
						  struct count_key *k, uint64_t now, bool words)
{
	const struct count_shape s = shared.shape;
	union count_bucket *floods;

	if (count_add(table, &s, h, k, now) != COUNT_RENEWED || !words)
		return 0;
	floods = COUNT_AT(table, COUNT_FLOODS);
	if (floods)
		count_flood(floods, k->tgid);
	return 0;
}

static __attribute__((noinline)) int count_range(void *table, struct count_key *k)
{
	const struct count_shape s = shared.shape;
	union count_bucket *floods = COUNT_AT(table, COUNT_FLOODS);

	return floods ? range_enter(&s, floods, k) : RANGE_NONE;
}

/*
 * @rare: in a second there are too few samples for a table to be in the caches when the next one
 * comes. The end of the log is; so that is used up first, until one more would ask for a drain.
 */
static __always_inline void count_in(void *table, struct count_head *h, struct count_key *k,
				     bool user, bool rare, uint64_t now)
{
	const struct count_shape s = shared.shape;
	enum range_found found = RANGE_NONE;

	if (user && shared.nr_clients)
		found = count_range(table, k);
	if (found == RANGE_SINGLE || (rare && h->nr_log + 1 < s.nr_log / 2))
		count_add_single(table, &s, h, k, now);
	else
		count_hashed(table, h, k, now, found == RANGE_WORDS);
	if (count_should_tell(&s, h))
		ask_for_drain(h, now);
}

/* @set was read once: who reads it again may find another table. */
static __always_inline union count_bucket *own_table(void **table, uint32_t set)
{
	uint32_t at = SAMPLE_TABLE(bpf_get_smp_processor_id(), set);

	*table = bpf_map_lookup_elem(&tables, &at);
	return *table ? COUNT_AT(*table, COUNT_HEAD) : NULL;
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

/* @known: where it was; else it is lost by name. @rare_ns: it is a rare one, of that time; or 0. */
static __always_inline int count(uint32_t of, bool known, uint64_t addr, bool user,
				 uint64_t rare_ns)
{
	uint32_t set = *(volatile uint32_t *)&shared.set;
	void *table;
	union count_bucket *first = own_table(&table, set);
	struct count_key k = {
		.addr = addr,
		.what = COUNT_WHAT(of, user ? SAMPLE_USER : SAMPLE_KERNEL),
	};

	if (!first) {
		__sync_fetch_and_add(&untabled[of % COUNT_NR_EVENTS], 1);
		return 0;
	}
	first->head.received[of % COUNT_NR_EVENTS]++;
	if (!known)
		__sync_fetch_and_add(&first->head.lost_bad, 1);
	if (!known || !count_enter(&first->head))
		return 0;
	if (user)
		key_process(&k);
	else
		k.tgid = (uint32_t)bpf_get_current_pid_tgid() ? (uint32_t)-1 : 0;
	count_in(table, &first->head, &k, user, rare_ns != 0, time_of(set, rare_ns));
	count_leave(&first->head);
	return 0;
}

SEC("perf_event")
int sample_event(struct bpf_perf_event_data *ctx)
{
	return count(event, true, ctx->regs.ip, KERNEL_IS_USER(ctx->regs.KERNEL_MODE_WORD), 0);
}

/*
 * The program counter and the mode of what the timer interrupted: they are in __irq_regs, a per-CPU
 * variable, found by its distance to one that the timer leads to.
 */
static __always_inline bool read_interrupted(struct hrtimer *timer, uint64_t v[2])
{
	/* Shows the verifier that it is below the limit. */
	int64_t delta = shared.irq_regs_delta << 35 >> 35;
	struct pt_regs *regs = NULL;
	const void *from;

	if (bpf_probe_read_kernel(&regs, sizeof(regs), (char *)timer->base->cpu_base + delta) ||
	    !regs)
		return false;
#if defined(DCPI_BPF_x86_64)
	from = &regs->ip;
#else
	from = &regs->pc;
#endif
	return bpf_probe_read_kernel(v, 2 * sizeof(v[0]), from) == 0;
}

/* The scheduler's tick, before its timer's function runs. */
SEC("tp_btf/hrtimer_expire_entry")
int sample_tick(uint64_t *ctx)
{
	struct hrtimer *timer = (struct hrtimer *)ctx[0];
	uint64_t v[2] = { 0 }, now = 0;
	bool known;

	if ((uint64_t)timer->function != shared.tick_function)
		return 0;
	known = read_interrupted(timer, v);
	/* When the interrupt began: the tick is a timer of CLOCK_MONOTONIC. */
	bpf_probe_read_kernel(&now, sizeof(now), (void *)ctx[1]);
	return count(shared.tick_event, known, v[0], KERNEL_IS_USER(v[1]), now);
}

/* ---- the end of ranges ----------------------------------------------------------------------- */

static __always_inline void client_drop(uint32_t tgid)
{
	if (bpf_map_delete_elem(&clients, &tgid) == 0)
		__sync_fetch_and_sub(&shared.nr_clients, 1);
}

SEC("tp_btf/sched_process_exec")
int sample_exec(uint64_t *ctx)
{
	client_drop(((struct task_struct *)ctx[0])->tgid);
	return 0;
}

/* Of a process: its last thread has counted itself out already. */
SEC("tp_btf/sched_process_exit")
int sample_exit(uint64_t *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];

	if (task->signal->live.counter == 0)
		client_drop(task->tgid);
	return 0;
}
