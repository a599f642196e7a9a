/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The time that threads run and wait: at each switch of a CPU to another thread, and at each
 * wakeup, the nanoseconds since the thread's last change are added up by process, name of the
 * thread, state and call path (waits.h). The path is walked when the thread leaves its CPU, and
 * sent once for as long as its sums stay in one map.
 */
#include "kernel.h"

#include "sample.bpf.c"

#include "callpath.bpf.c"

#include "waits.h"

/* ---- set before loading ---------------------------------------------------------------------- */

const volatile uint32_t wait_first_cpu = 0; /* the first of our elements of callpath_cpus */
/* The kernel's function in which threads are switched, from @wait_schedule up to the next one; 0:
 * not known. */
const volatile uint64_t wait_schedule = 0, wait_schedule_end = 0;

/* ---- maps ------------------------------------------------------------------------------------ */

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct wait_thread);
} wait_threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WAIT_NR_KEYS);
	__uint(key_size, sizeof(struct wait_key));
	__uint(value_size, sizeof(struct wait_sum));
} wait_sums0 SEC(".maps"), wait_sums1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, WAIT_RING_LEN);
} wait_paths SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* replaced when the source is opened */
	__uint(key_size, sizeof(uint32_t));
	__uint(value_size, sizeof(struct wait_counts));
} wait_cpus SEC(".maps");

static __always_inline struct wait_counts *wait_counts(void)
{
	uint32_t cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&wait_cpus, &cpu);
}

/* ---- sums ------------------------------------------------------------------------------------ */

static __always_inline uint32_t set_now(void)
{
	return *(volatile uint32_t *)&shared.set;
}

static __always_inline struct wait_sum *sum_find(uint32_t set, const struct wait_key *k)
{
	if (set & ~SAMPLE_BANK)
		return bpf_map_lookup_elem(&wait_sums1, k);
	return bpf_map_lookup_elem(&wait_sums0, k);
}

static __always_inline void sum_make(uint32_t set, const struct wait_key *k)
{
	const struct wait_sum none = { 0 };

	if (set & ~SAMPLE_BANK)
		bpf_map_update_elem(&wait_sums1, k, &none, BPF_NOEXIST);
	else
		bpf_map_update_elem(&wait_sums0, k, &none, BPF_NOEXIST);
}

static __always_inline void key_fill(struct wait_key *k, uint32_t set,
				     const struct task_struct *task, const struct wait_thread *t,
				     uint32_t state)
{
	const uint64_t *comm = (const uint64_t *)task->comm;

	k->instance = t->instance;
	k->tgid = (uint32_t)task->tgid;
	k->thread = name_find(set / SAMPLE_BANK, comm[0], comm[1]);
	k->unused = 0;
	if (state >= WAIT_BLOCKED_BEFORE) {
		k->state = state == WAIT_IO_BEFORE ? WAIT_IO : WAIT_BLOCKED;
		k->path[0] = t->before[0];
		k->path[1] = t->before[1];
		return;
	}
	k->state = state;
	k->path[0] = state == WAIT_RUNS ? 0 : t->path[0];
	k->path[1] = state == WAIT_RUNS ? 0 : t->path[1];
}

/* @ns of @task in @state, up to @now. */
static __noinline int sum_add(uint32_t set, const struct wait_key *k, uint64_t ns, uint64_t now)
{
	struct wait_counts *counts = wait_counts();
	struct wait_sum *s;

	if (!k || !counts)
		return 0;
	s = sum_find(set, k);
	if (!s) {
		sum_make(set, k);
		s = sum_find(set, k);
	}
	__sync_fetch_and_add(&counts->received_ns, ns);
	if (!s) {
		__sync_fetch_and_add(&counts->lost_ns, ns);
		return 0;
	}
	__sync_fetch_and_add(&s->ns, ns);
	__sync_fetch_and_add(&s->nr, 1);
	*(volatile uint64_t *)&s->last_ns = now;
	return 0;
}

static __always_inline void charge(const struct task_struct *task, const struct wait_thread *t,
				   uint64_t old, uint64_t now)
{
	uint32_t set = set_now(), state = old & ((1u << WAIT_STATE_BITS) - 1);
	uint64_t from = old >> WAIT_STATE_BITS;
	struct wait_key k;

	if (state == WAIT_UNKNOWN || now <= from)
		return;
	key_fill(&k, set, task, t, state);
	sum_add(set, &k, now - from, now);
}

static __always_inline uint64_t since_of(uint64_t now, uint32_t state)
{
	return now << WAIT_STATE_BITS | state;
}

/* Times that are taken later are not before it. */
static __always_inline uint64_t since_read(const struct wait_thread *t)
{
	uint64_t since = *(volatile const uint64_t *)&t->since;

	COUNT_BARRIER();
	return since;
}

static __always_inline uint64_t later(uint64_t now, uint64_t since)
{
	uint64_t from = since >> WAIT_STATE_BITS;

	return now > from ? now : from;
}

/* The thread is in @state from @*now on; if a look has charged it up to a later time meanwhile,
 * from then on, as it is in @*now then. Returns what was before. */
static __always_inline uint64_t since_set(struct wait_thread *t, uint64_t *now, uint32_t state)
{
	uint64_t old = since_read(t), seen;

	*now = later(*now, old);
	seen = __sync_val_compare_and_swap(&t->since, old, since_of(*now, state));
	if (seen == old)
		return old;
	/* Looks are far from one another. */
	*now = later(*now, seen);
	return __sync_lock_test_and_set(&t->since, since_of(*now, state));
}

/* The same, and what was before is added. */
static __always_inline void change(const struct task_struct *task, struct wait_thread *t,
				   uint64_t now, uint32_t state)
{
	uint64_t old = since_set(t, &now, state);

	charge(task, t, old, now);
}

/* Likewise, if the thread is still as it was when @old was read, from which @state follows. False:
 * it has changed. */
static __always_inline bool change_from_afar(const struct task_struct *task, struct wait_thread *t,
					     uint64_t old, uint64_t now, uint32_t state)
{
	struct wait_thread seen;

	seen.since = old;
	seen.instance = t->instance;
	seen.path[0] = *(volatile uint64_t *)&t->path[0];
	seen.path[1] = *(volatile uint64_t *)&t->path[1];
	seen.before[0] = t->before[0];
	seen.before[1] = t->before[1];
	COUNT_BARRIER();
	if (now < old >> WAIT_STATE_BITS ||
	    __sync_val_compare_and_swap(&t->since, old, since_of(now, state)) != old)
		return false;
	charge(task, &seen, old, now);
	return true;
}

static __always_inline uint64_t instance_of(const struct task_struct *task)
{
	return count_instance(task->group_leader->start_boottime, task->self_exec_id);
}

/* ---- paths ----------------------------------------------------------------------------------- */

static __always_inline bool begins_in_schedule(const struct callpath_cpu *c, uint32_t nr)
{
	return nr && c->frames[0] >= wait_schedule && c->frames[0] < wait_schedule_end;
}

/* How many frames stand above that of the switch: those of this program and its tracepoint. */
static __always_inline uint32_t frames_above(const struct callpath_cpu *c, uint32_t nr)
{
	uint32_t i = 0;

#pragma clang loop unroll(disable)
	for (; i < KERNEL_SKIP && i < nr; i++)
		if (c->frames[i] >= wait_schedule && c->frames[i] < wait_schedule_end)
			return i;
	return 0;
}

static __always_inline void kernel_frames_of_switch(void *ctx, struct callpath_cpu *c)
{
	uint32_t nr = kernel_frames(ctx, c, c->counts.skip), skip;

	if (!begins_in_schedule(c, nr)) {
		nr = kernel_frames(ctx, c, 0);
		skip = frames_above(c, nr);
		if (skip) {
			c->counts.skip = skip;
			nr = kernel_frames(ctx, c, skip);
		}
	}
	c->w.nr_kernel = c->w.nr = (uint16_t)nr;
}

static __always_inline void frames_hash(struct callpath_cpu *c, uint64_t hash[2])
{
	uint64_t a = mix[2] ^ c->w.end, b = mix[3] ^ c->w.nr_kernel;
	uint32_t nr = c->w.nr;

#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < CALLPATH_NR_FRAMES && i < nr; i++) {
		uint64_t frame = *frame_at(c, i);

		a = (a ^ frame) * mix[0];
		b = (b + frame) * mix[1];
		a ^= a >> 32;
		b ^= b >> 29;
	}
	hash[0] = a;
	hash[1] = b | 1;
}

static __always_inline bool send_frames(struct callpath_cpu *c, const uint64_t path[2])
{
	struct wait_path w = {
		.time_ns = c->w.time_ns,
		.instance = c->w.instance,
		.path = { path[0], path[1] },
		.tgid = c->w.tgid,
		.nr_kernel = c->w.nr_kernel,
		.nr = c->w.nr,
		.end = c->w.end,
	};
	uint32_t len = c->w.nr * sizeof(c->frames[0]);
	struct bpf_dynptr record;

	if (len > sizeof(c->frames))
		len = sizeof(c->frames);
	if (bpf_ringbuf_reserve_dynptr(&wait_paths, sizeof(w) + len, 0, &record) < 0) {
		bpf_ringbuf_discard_dynptr(&record, BPF_RB_NO_WAKEUP);
		return false;
	}
	bpf_dynptr_write(&record, 0, &w, sizeof(w), 0);
	if (len)
		bpf_dynptr_write(&record, sizeof(w), c->frames, len, 0);
	bpf_ringbuf_submit_dynptr(&record, bpf_ringbuf_query(&wait_paths, BPF_RB_AVAIL_DATA) <
							   WAIT_RING_LEN / 2
						   ? BPF_RB_NO_WAKEUP
						   : BPF_RB_FORCE_WAKEUP);
	return true;
}

/* The frames of @k, if they are not sent yet in this set; who finds no room there sends nothing, as
 * its time is lost anyway. False: the ring has no room. */
static __always_inline bool send_once(struct callpath_cpu *c, uint32_t set,
				      const struct wait_key *k, const uint64_t path[2])
{
	struct wait_sum *s = sum_find(set, k);

	if (!s) {
		sum_make(set, k);
		s = sum_find(set, k);
	}
	if (!s || s->sent)
		return true;
	s->sent = send_frames(c, path);
	return s->sent;
}

static __always_inline void walk_task(void *ctx, struct callpath_cpu *c, uint32_t cpu,
				      struct task_struct *task)
{
	struct mm_struct *mm = task->mm;
	const void *regs;

	c->w.end = CALLPATH_COMPLETE;
	kernel_frames_of_switch(ctx, c);
	if (!mm || task->flags & KERNEL_PF_KTHREAD)
		return;
	regs = (void *)bpf_task_pt_regs(task);
	if (!bpf_probe_read_kernel(&c->regs, sizeof(c->regs), regs))
		callers_of_kernel(c, cpu, mm, regs);
}

/* The frames of the current thread, which leaves its CPU at @now. Walking and keeping a path are
 * two functions, as all that call one another share one stack. */
static __noinline int path_walk(void *ctx, struct callpath_cpu *c, uint32_t cpu, uint64_t now,
				uint64_t instance)
{
	struct task_struct *task = bpf_get_current_task_btf();

	c->w.time_ns = now;
	c->w.instance = instance;
	c->w.tgid = (uint32_t)task->tgid;
	walk_task(ctx, c, cpu, task);
	return 0;
}

/* That path, of the thread @t that is in @state now: to its storage, and to the daemon where its
 * key is new. */
static __noinline int path_keep(struct callpath_cpu *c, struct wait_thread *t, uint32_t state)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct wait_counts *counts = wait_counts();
	uint32_t set = set_now();
	struct wait_key k;

	if (!counts)
		return 0;
	frames_hash(c, t->path);
	key_fill(&k, set, task, t, state);
	if (send_once(c, set, &k, t->path))
		return 0;
	__sync_fetch_and_add(&counts->lost_paths, 1);
	t->path[0] = t->path[1] = 0;
	return 0;
}

/* ---- changes --------------------------------------------------------------------------------- */

enum { TASK_DEAD = 0x80 };

static __always_inline uint32_t state_at_switch(const struct task_struct *task, bool preempted,
						uint32_t state)
{
	if (preempted || !state)
		return WAIT_RUNNABLE;
	if (state & TASK_DEAD)
		return WAIT_UNKNOWN;
	return BPF_CORE_READ_BITFIELD(task, in_iowait) ? WAIT_IO : WAIT_BLOCKED;
}

/* A task of which nothing was known has run up to now; since when is not known. */
static __always_inline void leave(void *ctx, struct task_struct *task, uint32_t state, uint64_t now)
{
	struct wait_thread *t =
		bpf_task_storage_get(&wait_threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	uint32_t cpu = wait_first_cpu + bpf_get_smp_processor_id();
	struct callpath_cpu *c = bpf_map_lookup_elem(&callpath_cpus, &cpu);
	uint64_t old;

	if (!t)
		return;
	if (!t->instance)
		t->instance = instance_of(task);
	if (c && state != WAIT_UNKNOWN) {
		path_walk(ctx, c, cpu, now, t->instance);
		path_keep(c, t, state);
	}
	/* It ran, whatever was thought of it. */
	old = since_set(t, &now, state);
	if (old)
		charge(task, t, old >> WAIT_STATE_BITS << WAIT_STATE_BITS | WAIT_RUNS, now);
}

SEC("tp_btf/sched_switch")
int wait_switch(uint64_t *ctx)
{
	struct task_struct *prev = (struct task_struct *)ctx[1],
			   *next = (struct task_struct *)ctx[2];
	uint64_t now = bpf_ktime_get_ns();
	struct wait_thread *t;

	if (prev->pid)
		leave(ctx, prev, state_at_switch(prev, ctx[0] & 1, (uint32_t)ctx[3]), now);
	if (!next->pid)
		return 0;
	t = bpf_task_storage_get(&wait_threads, next, NULL, 0);
	if (t)
		change(next, t, now, WAIT_RUNS);
	return 0;
}

/* False: a look came between. */
static __always_inline bool wake(const struct task_struct *task, struct wait_thread *t)
{
	uint64_t old = since_read(t);
	uint32_t state = old & ((1u << WAIT_STATE_BITS) - 1);

	return state == WAIT_UNKNOWN || state == WAIT_RUNS || state == WAIT_RUNNABLE ||
	       change_from_afar(task, t, old, bpf_ktime_get_ns(), WAIT_RUNNABLE);
}

SEC("tp_btf/sched_wakeup")
int wait_wakeup(uint64_t *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	struct wait_thread *t = bpf_task_storage_get(&wait_threads, task, NULL, 0);

	if (t && !wake(task, t))
		wake(task, t);
	return 0;
}

/* A new thread waits for its first CPU. */
SEC("tp_btf/sched_wakeup_new")
int wait_begin(uint64_t *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	struct wait_thread *t =
		bpf_task_storage_get(&wait_threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!t)
		return 0;
	t->instance = instance_of(task);
	*(volatile uint64_t *)&t->since = since_of(bpf_ktime_get_ns(), WAIT_RUNNABLE);
	return 0;
}

/* Up to here its process was another program. */
SEC("tp_btf/sched_process_exec")
int wait_exec(uint64_t *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	struct wait_thread *t = bpf_task_storage_get(&wait_threads, task, NULL, 0);

	if (!t)
		return 0;
	change(task, t, bpf_ktime_get_ns(), WAIT_RUNS);
	t->instance = instance_of(task);
	return 0;
}

/* ---- all threads, up to now ------------------------------------------------------------------ */

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} __attribute__((preserve_access_index));

static __always_inline uint32_t state_at_start(const struct task_struct *task)
{
	if (task->on_cpu)
		return WAIT_RUNS;
	if (!task->__state)
		return WAIT_RUNNABLE;
	if (task->__state & TASK_DEAD || task->exit_state)
		return WAIT_UNKNOWN;
	return BPF_CORE_READ_BITFIELD(task, in_iowait) ? WAIT_IO_BEFORE : WAIT_BLOCKED_BEFORE;
}

/* A thread that waits already shows its frames in the kernel; those of its process cannot be had.
 */
static __always_inline void path_before(struct task_struct *task, struct wait_thread *t,
					uint32_t state, uint64_t now)
{
	uint32_t last = 2 * wait_first_cpu, set = set_now();
	struct callpath_cpu *c = bpf_map_lookup_elem(&callpath_cpus, &last);
	struct wait_key k;
	long len;

	if (!c)
		return;
	len = bpf_get_task_stack(task, c->frames, KERNEL_FRAMES_LEN, 0);
	if (len <= 0 || len > KERNEL_FRAMES_LEN)
		return;
	c->w.time_ns = now;
	c->w.instance = t->instance;
	c->w.tgid = (uint32_t)task->tgid;
	c->w.end = task->flags & KERNEL_PF_KTHREAD ? CALLPATH_COMPLETE : CALLPATH_UNREADABLE;
	c->w.nr_kernel = c->w.nr = (uint16_t)(len / sizeof(uint64_t));
	frames_hash(c, t->before);
	key_fill(&k, set, task, t, state);
	if (!send_once(c, set, &k, t->before))
		t->before[0] = t->before[1] = 0;
}

/*
 * Run by the daemon: what is not over is added up to now. Where the state changes meanwhile, that
 * adds it. A thread that was there before the programs begins here.
 */
SEC("iter/task")
int wait_look(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct wait_thread *t;
	uint64_t now, old;
	uint32_t state;

	if (!task || !task->pid)
		return 0;
	t = bpf_task_storage_get(&wait_threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t)
		return 0;
	old = since_read(t);
	now = bpf_ktime_get_ns();
	state = old ? old & ((1u << WAIT_STATE_BITS) - 1) : state_at_start(task);
	if (!t->instance)
		t->instance = instance_of(task);
	if (!old && state >= WAIT_BLOCKED_BEFORE)
		path_before(task, t, state, now);
	if (state != WAIT_UNKNOWN)
		change_from_afar(task, t, old, now, state);
	return 0;
}
