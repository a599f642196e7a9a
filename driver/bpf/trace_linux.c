/* SPDX-License-Identifier: BSD-2-Clause */
/* Traces of the source "bpf": on their way from the ring to the daemon, in order of time; the maps
 * of their program; what driver.h says of them. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf_program.h"
#include "bpf_traces.h"

/* ---- the queue ------------------------------------------------------------------------------- */

/* Room for records that stays when there are none. */
enum { KEPT_WORDS = 1 << 18 };

static const size_t short_head = INSN_TRACE_LEN(0);

/* ---- what is missing ------------------------------------------------------------------------- */

/* Whether both have the same key of a block (place.h). */
static bool is_same_place(const struct insn_trace *a, const struct insn_trace *b)
{
	return a->code_len && b->code_len && vtrace_where(a->end_pc) == vtrace_where(b->end_pc) &&
	       memcmp(a->code, b->code, vtrace_place_len(a->end_pc)) == 0;
}

static bool is_missing(const struct bpf_traces *q, const struct insn_trace *w)
{
	for (size_t i = q->nr_missing; i-- > 0;)
		if (is_same_place(&q->missing[i], w))
			return true;
	return false;
}

/* The owner of values must be asked for while the process lives. */
static bool is_new_life(struct bpf_traces *q, const struct insn_trace *w)
{
	const uint64_t key[2] = { w->instance, w->tgid };
	uint64_t life = base_hash64(key, sizeof(key)) | 1;
	uint64_t *announced = &q->lives[life / 2 % BPF_NR_LIVES];

	if (!(w->has & INSN_TRACE_VALUES) || w->has & INSN_TRACE_KERNEL || *announced == life)
		return false;
	*announced = life;
	return true;
}

static void miss(struct bpf_traces *q, const struct insn_trace *w)
{
	if (!q->missing)
		q->missing = calloc(BPF_NR_MISSING, sizeof(*q->missing));
	if (!q->missing || q->nr_missing == BPF_NR_MISSING)
		return;
	memcpy(&q->missing[q->nr_missing], w, short_head);
	q->missing[q->nr_missing++].has &= INSN_TRACE_KERNEL;
}

int bpf_traces_missing(struct bpf_traces *q, int (*fn)(void *ctx, const struct insn_trace *w),
		       void *ctx)
{
	int r = 0;

	for (size_t i = 0; i < q->nr_missing && r >= 0; i++)
		r = fn(ctx, &q->missing[i]);
	q->nr_missing = 0;
	return r < 0 ? r : 0;
}

/* ---- the queue ------------------------------------------------------------------------------- */

/* The record's head in full or in short; 0: it is none. */
static size_t head_of(const struct insn_trace *w, size_t len)
{
	size_t head;

	if (len < short_head)
		return 0;
	head = INSN_TRACE_LEN(w->has);
	if (len != head + w->nr_words * sizeof(uint64_t) || w->end >= VTRACE_NR_ENDS ||
	    w->code_len > sizeof(w->code))
		return 0;
	return head;
}

_Static_assert(INSN_TRACE_LEN(0) % 8 == 0 && sizeof(struct insn_trace) % 8 == 0, "words");

static int enqueue(struct bpf_traces *q, const struct insn_trace *w, size_t len)
{
	size_t nr_words = len / sizeof(*q->records);
	int r = base_grow(&q->items, &q->cap, q->nr + 1, sizeof(*q->items));

	if (r >= 0)
		r = base_grow(&q->records, &q->cap_words, q->nr_words + nr_words,
			      sizeof(*q->records));
	if (r < 0)
		return r;
	memcpy(q->records + q->nr_words, w, len);
	q->sorted = q->first == q->nr || (q->sorted && q->items[q->nr - 1].time_ns <= w->time_ns);
	q->items[q->nr++] = (struct bpf_trace){ .time_ns = w->time_ns, .at = q->nr_words };
	q->nr_words += nr_words;
	return 0;
}

bool bpf_traces_add(struct bpf_traces *q, const void *record, size_t len)
{
	const struct insn_trace *w = record;

	if (!head_of(w, len) || enqueue(q, w, len) < 0) {
		q->lost_read++;
		return false;
	}
	q->by_end[w->end]++;
	if (is_new_life(q, w) || (w->code_len && !is_missing(q, w)))
		miss(q, w);
	return true;
}

/* ---- handing on ------------------------------------------------------------------------------ */

/* Writing in an interrupt takes microseconds, unless the CPU is taken away meanwhile. */
enum { HIDDEN_US = 100, HIDDEN_TRIES = 100 };

static bool read_up_to(const struct bpf_trace_ring *ring, unsigned long reserved)
{
	for (int i = 0; i < HIDDEN_TRIES; i++) {
		ring->read(ring->ctx);
		/* Positions wrap. */
		if ((long)(reserved - __atomic_load_n(ring->consumed, __ATOMIC_ACQUIRE)) <= 0)
			return true;
		usleep(HIDDEN_US);
	}
	return false;
}

uint64_t bpf_traces_whole(struct bpf_traces *q, const struct bpf_trace_ring *ring, uint64_t now_ns)
{
	if (read_up_to(ring, __atomic_load_n(ring->reserved, __ATOMIC_ACQUIRE)))
		q->whole_ns = now_ns;
	return q->whole_ns;
}

static int by_time(const void *a, const void *b)
{
	const struct bpf_trace *x = a, *y = b;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static int hand(struct bpf_traces *q, const struct bpf_trace *item, const struct driver_sink *sink)
{
	const uint64_t *record = q->records + item->at;
	const struct insn_trace *w = (const void *)record;

	q->handed++;
	return sink->trace ? sink->trace(sink->ctx, w,
					 record + INSN_TRACE_LEN(w->has) / sizeof(*record))
			   : 0;
}

int bpf_traces_hand(struct bpf_traces *q, uint64_t until_ns, const struct driver_sink *sink)
{
	int r = 0;

	if (!q->sorted && bpf_traces_nr(q))
		qsort(q->items + q->first, bpf_traces_nr(q), sizeof(*q->items), by_time);
	q->sorted = true;
	while (r >= 0 && q->first < q->nr && q->items[q->first].time_ns < until_ns)
		r = hand(q, &q->items[q->first++], sink);
	return r < 0 ? r : 0;
}

void bpf_traces_tidy(struct bpf_traces *q)
{
	size_t nr = bpf_traces_nr(q), from = q->nr_words;

	/* Sort in the youngest traces only, so that these are few. */
	for (size_t i = q->first; i < q->nr; i++)
		from = q->items[i].at < from ? q->items[i].at : from;
	for (size_t i = 0; i < nr; i++) {
		q->items[i] = q->items[q->first + i];
		q->items[i].at -= from;
	}
	q->first = 0;
	q->nr = nr;
	q->nr_words -= from;
	if (q->nr_words)
		memmove(q->records, q->records + from, q->nr_words * sizeof(*q->records));
	if (q->nr_words || q->cap_words <= KEPT_WORDS)
		return;
	free(q->records);
	q->records = NULL;
	q->cap_words = 0;
}

void bpf_traces_release(struct bpf_traces *q)
{
	free(q->records);
	free(q->items);
	free(q->missing);
	*q = (struct bpf_traces){ 0 };
}

struct bpf_trace_source {
	const struct bpf_programs *programs;
	struct bpf_blocks blocks;
	struct bpf_traces queue;
	bool eager;	 /* records in the ring are wanted at once, whatever they are */
	uint64_t missed; /* counts.missed of all CPUs, when that was looked for last */
	void *ring, *cpus;
	size_t nr_cpus;
	void *consumed, *reserved; /* pages of the ring that begin with these positions */
};

/* ---- maps ------------------------------------------------------------------------------------ */

static size_t map_len(const struct bpf_map *map)
{
	return base_align_up(bpf_map__value_size(map) * (size_t)bpf_map__max_entries(map), 4096);
}

static int map_in(void *at, const struct bpf_map *map)
{
	void *memory =
		mmap(NULL, map_len(map), PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	if (memory == MAP_FAILED)
		return -errno;
	*(void **)at = memory;
	return 0;
}

static void map_out(void *memory, const struct bpf_map *map)
{
	if (memory)
		munmap(memory, map_len(map));
}

/* The ring's map begins with a page for each of its positions. */
static int map_position(void **at, const struct bpf_map *ring, long page)
{
	long len = sysconf(_SC_PAGESIZE);
	void *memory =
		mmap(NULL, (size_t)len, PROT_READ, MAP_SHARED, bpf_map__fd(ring), page * len);

	if (memory == MAP_FAILED)
		return -errno;
	*at = memory;
	return 0;
}

static void unmap_position(void *memory)
{
	if (memory)
		munmap(memory, (size_t)sysconf(_SC_PAGESIZE));
}

static int map_all(struct bpf_trace_source *s)
{
	const struct sample_trace *own = s->programs->traces;
	int r = map_in(&s->cpus, own->maps.trace_cpus);

	if (r >= 0)
		r = map_in(&s->blocks.blocks, own->maps.trace_blocks);
	if (r >= 0)
		r = map_in(&s->blocks.buckets, own->maps.trace_buckets);
	if (r >= 0)
		r = map_in(&s->blocks.uops, own->maps.trace_uops);
	if (r >= 0)
		r = map_position(&s->consumed, own->maps.traces, 0);
	if (r >= 0)
		r = map_position(&s->reserved, own->maps.traces, 1);
	return r;
}

static void use_blocks(struct bpf_trace_source *s, const struct insn_trace *w)
{
	const uint64_t *words = (const void *)((const char *)w + INSN_TRACE_LEN(w->has));
	struct vtrace_visit v = { 0 };

	while (vtrace_visit_read(words, w->nr_words, v.end, &v) > 0)
		bpf_blocks_used(&s->blocks, v.id, w->time_ns);
}

static int on_trace(void *ctx, void *data, size_t len)
{
	struct bpf_trace_source *s = ctx;
	const struct insn_trace *w = data;

	if (bpf_traces_add(&s->queue, data, len))
		use_blocks(s, w);
	return 0;
}

static struct bpf_trace_source *source_of(const struct driver *d)
{
	return ((const struct bpf *)d)->traces;
}

/* ---- the source ------------------------------------------------------------------------------ */

static const struct driver_trace_ops trace_ops;

int bpf_traces_open(struct bpf *b, const struct driver_config *config)
{
	struct bpf_trace_source *s;
	int r;

	if (!config->trace_every)
		return 0;
	s = b->traces = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->programs = &b->programs;
	s->nr_cpus = bpf_map__max_entries(b->programs.traces->maps.trace_cpus);
	/* A new life with values is reported at once. */
	s->eager = config->trace_log != VTRACE_LOG_PATH;
	s->blocks.max = bpf_map__max_entries(b->programs.traces->maps.trace_blocks);
	s->blocks.mix[0] = b->programs.mix[0];
	s->blocks.mix[1] = b->programs.mix[1];
	r = map_all(s);
	if (r >= 0)
		r = bpf_blocks_init(&s->blocks);
	if (r < 0)
		return r;
	s->ring = ring_buffer__new(bpf_map__fd(b->programs.traces->maps.traces), on_trace, s, NULL);
	if (!s->ring)
		return -errno;
	b->base.traces = &trace_ops;
	return perf_sampler_poll_add(&b->sampler, ring_buffer__epoll_fd(s->ring));
}

void bpf_traces_close(struct bpf *b)
{
	struct bpf_trace_source *s = b->traces;
	const struct sample_trace *own = b->programs.traces;

	if (!s)
		return;
	ring_buffer__free(s->ring);
	map_out(s->cpus, own->maps.trace_cpus);
	map_out(s->blocks.blocks, own->maps.trace_blocks);
	map_out(s->blocks.buckets, own->maps.trace_buckets);
	map_out(s->blocks.uops, own->maps.trace_uops);
	unmap_position(s->consumed);
	unmap_position(s->reserved);
	bpf_blocks_release(&s->blocks);
	bpf_traces_release(&s->queue);
	free(s);
	b->traces = NULL;
}

size_t bpf_traces_read(struct bpf *b)
{
	if (!b->traces)
		return 0;
	ring_buffer__consume(b->traces->ring);
	return bpf_traces_nr(&b->traces->queue);
}

static void read_ring(void *ring)
{
	ring_buffer__consume(ring);
}

uint64_t bpf_traces_horizon(struct bpf *b, uint64_t now_ns)
{
	struct bpf_trace_source *s = b->traces;
	struct bpf_trace_ring ring = { .read = read_ring };
	uint64_t whole_ns;

	if (!s)
		return now_ns;
	ring.consumed = s->consumed;
	ring.reserved = s->reserved;
	ring.ctx = s->ring;
	whole_ns = bpf_traces_whole(&s->queue, &ring, b->running ? now_ns : base_now_ns());
	/* Nothing comes later. */
	return b->running ? whole_ns : now_ns;
}

int bpf_traces_until(struct bpf *b, uint64_t until_ns, const struct driver_sink *sink)
{
	return b->traces ? bpf_traces_hand(&b->traces->queue, until_ns, sink) : 0;
}

void bpf_traces_settle(struct bpf *b, uint64_t until_ns)
{
	if (!b->traces)
		return;
	bpf_traces_tidy(&b->traces->queue);
	bpf_blocks_reuse(&b->traces->blocks, until_ns);
}

/* ---- ops ------------------------------------------------------------------------------------- */

static volatile struct trace_counts *counts_of(const struct bpf_trace_source *s, size_t cpu)
{
	size_t stride = bpf_map__value_size(s->programs->traces->maps.trace_cpus);

	return (void *)((char *)s->cpus + cpu * stride);
}

/* Be woken when many blocks are missing from now on. */
static uint64_t look_at_missed(const struct bpf_trace_source *s)
{
	uint64_t nr = 0;

	for (size_t i = 0; i < s->nr_cpus; i++) {
		volatile struct trace_counts *c = counts_of(s, i);

		c->looked = c->missed;
		nr += c->looked;
	}
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return nr;
}

/* A look for what is missing must not cost the reading of all that is there. */
static int missing(struct driver *d, int (*fn)(void *ctx, const struct insn_trace *w), void *ctx)
{
	struct bpf_trace_source *s = source_of(d);
	uint64_t missed = look_at_missed(s);

	if (s->eager || missed != s->missed)
		ring_buffer__consume(s->ring);
	s->missed = missed;
	return bpf_traces_missing(&s->queue, fn, ctx);
}

static int block_put(struct driver *d, const struct vtrace_code *code)
{
	return bpf_blocks_put(&source_of(d)->blocks, code, base_now_ns());
}

static const struct vtrace_code *block_get(const struct driver *d, uint32_t id)
{
	return bpf_blocks_get(&source_of(d)->blocks, id);
}

/* Losses are read first: they may grow between, but are received before. */
static void add_cpu(struct driver_trace_stats *out, const volatile struct trace_counts *c)
{
	out->lost_ring += c->lost_ring;
	out->lost_busy += c->lost_busy;
	out->skipped += c->skipped;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	out->received += c->received;
	out->missed += c->missed;
}

static void stats(const struct driver *d, struct driver_trace_stats *out)
{
	const struct bpf_trace_source *s = source_of(d);
	uint64_t read;

	*out = (struct driver_trace_stats){
		.lost_read = s->queue.lost_read,
		.no_room = s->blocks.no_room,
		.nr_blocks = s->blocks.nr,
		.max_blocks = s->blocks.max - 1,
	};
	for (size_t i = 0; i < VTRACE_NR_ENDS; i++)
		out->by_end[i] = s->queue.by_end[i];
	read = s->queue.handed + s->queue.lost_read;
	for (size_t i = 0; i < s->nr_cpus; i++)
		add_cpu(out, counts_of(s, i));
	out->held = out->received - out->lost_ring - out->lost_busy - read;
}

static const struct driver_trace_ops trace_ops = {
	.missing = missing,
	.block_put = block_put,
	.block_get = block_get,
	.stats = stats,
};
