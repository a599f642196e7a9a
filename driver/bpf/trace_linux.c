/* SPDX-License-Identifier: BSD-2-Clause */
/* Traces of the source "bpf": on their way from the ring to the daemon, in order of time; the maps
 * of their program; what driver.h says of them. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf_maps.h"
#include "bpf_program.h"
#include "bpf_traces.h"

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

bool bpf_traces_add(struct bpf_traces *q, const void *record, size_t len)
{
	const struct insn_trace *w = record;

	if (!head_of(w, len) || bpf_queue_add(&q->queue, w->time_ns, w, len) < 0) {
		q->lost_read++;
		return false;
	}
	q->by_end[w->end]++;
	if (is_new_life(q, w) || (w->code_len && !is_missing(q, w)))
		miss(q, w);
	return true;
}

/* ---- handing on ------------------------------------------------------------------------------ */

struct telling {
	struct bpf_traces *q;
	const struct driver_sink *sink;
};

static int hand(void *ctx, const uint64_t *record)
{
	const struct telling *t = ctx;
	const struct insn_trace *w = (const void *)record;

	t->q->handed++;
	return t->sink->trace ? t->sink->trace(t->sink->ctx, w,
					       record + INSN_TRACE_LEN(w->has) / sizeof(*record))
			      : 0;
}

int bpf_traces_hand(struct bpf_traces *q, uint64_t until_ns, const struct driver_sink *sink)
{
	struct telling t = { q, sink };

	return bpf_queue_hand(&q->queue, until_ns, hand, &t);
}

void bpf_traces_release(struct bpf_traces *q)
{
	bpf_queue_release(&q->queue);
	free(q->missing);
	*q = (struct bpf_traces){ 0 };
}

struct bpf_trace_source {
	const struct bpf_programs *programs;
	struct bpf_blocks blocks;
	struct bpf_traces queue;
	bool eager;	 /* records in the ring are wanted at once, whatever they are */
	uint64_t missed; /* counts.missed of all CPUs, when that was looked for last */
	struct bpf_reader reader;
	void *cpus;
	size_t nr_cpus;
};

/* ---- maps ------------------------------------------------------------------------------------ */

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

static int map_all(struct bpf_trace_source *s)
{
	const struct sample_behind *own = s->programs->behind[0];
	int r = bpf_map_in(&s->cpus, own->maps.trace_cpus);

	if (r >= 0)
		r = bpf_map_in(&s->blocks.blocks, own->maps.trace_blocks);
	if (r >= 0)
		r = bpf_map_in(&s->blocks.buckets, own->maps.trace_buckets);
	if (r >= 0)
		r = bpf_map_in(&s->blocks.uops, own->maps.trace_uops);
	if (r >= 0)
		r = bpf_reader_open(&s->reader, own->maps.traces, on_trace, s);
	return r;
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
	s->nr_cpus = bpf_map__max_entries(b->programs.behind[0]->maps.trace_cpus);
	/* A new life with values is reported at once. */
	s->eager = config->trace_log != VTRACE_LOG_PATH;
	s->blocks.max = bpf_map__max_entries(b->programs.behind[0]->maps.trace_blocks);
	s->blocks.mix[0] = b->programs.mix[0];
	s->blocks.mix[1] = b->programs.mix[1];
	r = map_all(s);
	if (r >= 0)
		r = bpf_blocks_init(&s->blocks);
	if (r < 0)
		return r;
	b->base.traces = &trace_ops;
	return perf_sampler_poll_add(&b->sampler, bpf_reader_poll_fd(&s->reader));
}

void bpf_traces_close(struct bpf *b)
{
	struct bpf_trace_source *s = b->traces;
	const struct sample_behind *own = b->programs.behind[0];

	if (!s)
		return;
	bpf_reader_close(&s->reader);
	bpf_map_out(s->cpus, own->maps.trace_cpus);
	bpf_map_out(s->blocks.blocks, own->maps.trace_blocks);
	bpf_map_out(s->blocks.buckets, own->maps.trace_buckets);
	bpf_map_out(s->blocks.uops, own->maps.trace_uops);
	bpf_blocks_release(&s->blocks);
	bpf_traces_release(&s->queue);
	free(s);
	b->traces = NULL;
}

size_t bpf_traces_read(struct bpf *b)
{
	if (!b->traces)
		return 0;
	bpf_reader_read(&b->traces->reader);
	return bpf_queue_nr(&b->traces->queue.queue);
}

uint64_t bpf_traces_horizon(struct bpf *b, uint64_t now_ns)
{
	struct bpf_trace_source *s = b->traces;
	uint64_t whole_ns;

	if (!s)
		return now_ns;
	whole_ns =
		bpf_reader_whole(&s->reader, &s->queue.queue, b->running ? now_ns : base_now_ns());
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
	bpf_queue_tidy(&b->traces->queue.queue);
	bpf_blocks_reuse(&b->traces->blocks, until_ns);
}

/* ---- ops ------------------------------------------------------------------------------------- */

static volatile struct trace_counts *counts_of(const struct bpf_trace_source *s, size_t cpu)
{
	size_t stride = bpf_map__value_size(s->programs->behind[0]->maps.trace_cpus);

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
		bpf_reader_read(&s->reader);
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
