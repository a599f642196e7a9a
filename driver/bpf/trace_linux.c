/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traces of the source "bpf": the blocks that they run through; on their way from the ring to the
 * daemon, in order of time; the maps of their program; what driver.h says of them.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf_blocks.h"
#include "bpf_maps.h"
#include "bpf_program.h"
#include "bpf_traces.h"

/* ---- the table of blocks --------------------------------------------------------------------- */

enum {
	RUN_STEP = VTRACE_BLOCK_UOPS / BPF_NR_SIZES,
	NR_AGES = 1024, /* so many blocks are asked for their age, to tell what is old among all */
	UNENTERED_AGES = 4,
};

int bpf_blocks_init(struct bpf_blocks *b)
{
	b->own = calloc(b->max, sizeof(*b->own));
	b->nr_numbers = 1;
	return b->own ? 0 : -ENOMEM;
}

void bpf_blocks_release(struct bpf_blocks *b)
{
	for (uint32_t i = 0; b->own && i < b->nr_numbers; i++)
		free(b->own[i].code);
	for (size_t i = 0; i < BPF_NR_SIZES; i++)
		free(b->runs[i].items);
	free(b->numbers.items);
	free(b->graves);
	free(b->own);
	*b = (struct bpf_blocks){ 0 };
}

/* ---- room ------------------------------------------------------------------------------------ */

static int spare_add(struct bpf_spare *s, uint32_t item)
{
	int r = base_grow(&s->items, &s->cap, s->nr + 1, sizeof(*s->items));

	if (r >= 0)
		s->items[s->nr++] = item;
	return r;
}

/* 0: there is none; the caller never spares 0. */
static uint32_t spare_take(struct bpf_spare *s)
{
	return s->nr ? s->items[--s->nr] : 0;
}

static size_t size_of(uint32_t nr_uops)
{
	return (nr_uops - 1) / RUN_STEP;
}

/* Micro-ops that so many take the place of. */
static uint32_t space_of(uint32_t nr_uops)
{
	return (uint32_t)(size_of(nr_uops) + 1) * RUN_STEP;
}

/* A number, or 0. */
static uint32_t take_number(struct bpf_blocks *b)
{
	uint32_t number = spare_take(&b->numbers);

	if (!number && b->nr_numbers < b->max)
		number = b->nr_numbers++;
	return number;
}

/* Where so many micro-ops may stand; 0: nowhere. */
static uint32_t take_run(struct bpf_blocks *b, uint32_t nr_uops)
{
	uint32_t len = space_of(nr_uops), run = spare_take(&b->runs[size_of(nr_uops)]);

	if (!run) {
		if (!b->nr_uops)
			b->nr_uops = RUN_STEP;
		if (b->nr_uops + len > TRACE_UOPS_EACH * b->max)
			return 0;
		run = b->nr_uops;
		b->nr_uops += len;
	}
	return run;
}

static void give_back(struct bpf_blocks *b, uint32_t number, uint32_t run, uint32_t nr_uops)
{
	/* Without memory it is lost to everybody, and no more than that. */
	if (number)
		spare_add(&b->numbers, number);
	if (run)
		spare_add(&b->runs[size_of(nr_uops)], run);
}

/* ---- places ---------------------------------------------------------------------------------- */

static uint64_t hash_of(const struct bpf_blocks *b, const struct vtrace_code *code)
{
	return trace_hash(&code->place, b->mix[0], b->mix[1]);
}

static struct trace_bucket *bucket_of(const struct bpf_blocks *b, uint64_t hash)
{
	return &b->buckets[hash % (b->max / TRACE_BLOCKS_EACH)];
}

static bool is_equal(const struct vtrace_code *x, const struct vtrace_code *y)
{
	return memcmp(&x->place, &y->place, sizeof(x->place)) == 0 &&
	       x->block.len == y->block.len &&
	       memcmp(x->block.code, y->block.code, x->block.len) == 0;
}

/* Where the number of a block of this code stands; NULL: it is not there. */
static uint64_t *way_of(const struct bpf_blocks *b, const struct vtrace_code *code)
{
	struct trace_bucket *bucket = bucket_of(b, hash_of(b, code));

	for (size_t i = 0; i < TRACE_WAYS; i++) {
		uint32_t number = TRACE_ENTRY_NUMBER(bucket->way[i]);

		if (number && is_equal(b->own[number].code, code))
			return &bucket->way[i];
	}
	return NULL;
}

uint32_t bpf_blocks_find(const struct bpf_blocks *b, const struct vtrace_code *code)
{
	const uint64_t *way = way_of(b, code);

	return way ? TRACE_ENTRY_NUMBER(*way) : 0;
}

/* ---- graves ---------------------------------------------------------------------------------- */

/* Found no more. Room for its grave was made before. */
static void bury(struct bpf_blocks *b, uint32_t number, uint64_t now_ns)
{
	uint64_t *way = way_of(b, b->own[number].code);

	if (way)
		__atomic_store_n(way, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&b->blocks[number].alive, 0, __ATOMIC_SEQ_CST);
	b->graves[b->nr_graves++] = (struct bpf_grave){ .dead_ns = now_ns, .number = number };
	b->nr--;
	b->nr_live_uops -= space_of(b->blocks[number].block.nr_uops);
}

/* Allocate graves for all live blocks, so that burying never fails. */
static int dig(struct bpf_blocks *b)
{
	return base_grow(&b->graves, &b->cap_graves, b->nr_graves + b->nr + 1, sizeof(*b->graves));
}

void bpf_blocks_used(struct bpf_blocks *b, uint32_t number, uint64_t time_ns)
{
	if (number >= b->nr_numbers)
		return;
	b->own[number].entered = true;
	if (time_ns > b->own[number].used_ns)
		b->own[number].used_ns = time_ns;
}

static uint64_t age_of(const struct bpf_blocks *b, uint32_t number, uint64_t now_ns)
{
	const struct bpf_block *own = &b->own[number];
	uint64_t age = now_ns > own->used_ns ? now_ns - own->used_ns : 0;

	return own->entered ? age : UNENTERED_AGES * age;
}

static int by_age(const void *x, const void *y)
{
	const uint64_t *a = x, *b = y;

	return (*a < *b) - (*a > *b);
}

/* The age that the oldest of an eighth of the blocks have at least, approximately. */
static uint64_t old_age(const struct bpf_blocks *b, uint64_t now_ns)
{
	const uint32_t every = b->max / NR_AGES - 1;
	uint64_t ages[NR_AGES];
	size_t nr = 0;

	for (uint32_t i = 1; nr < NR_AGES && i < b->nr_numbers; i += every)
		if (b->blocks[i].alive)
			ages[nr++] = age_of(b, i, now_ns);
	qsort(ages, nr, sizeof(*ages), by_age);
	return nr ? ages[nr / BPF_SPARE_PART] : 0;
}

static void make_space(struct bpf_blocks *b, uint64_t now_ns)
{
	uint64_t old = old_age(b, now_ns);
	uint32_t left = b->max / BPF_SPARE_PART;

	for (uint32_t i = 1; left && i < b->nr_numbers; i++)
		if (b->blocks[i].alive && age_of(b, i, now_ns) >= old) {
			bury(b, i, now_ns);
			left--;
		}
}

static bool is_tight(const struct bpf_blocks *b)
{
	uint32_t most = b->max - b->max / BPF_SPARE_PART;

	return b->nr >= most || b->nr_live_uops >= TRACE_UOPS_EACH * most;
}

void bpf_blocks_reuse(struct bpf_blocks *b, uint64_t until_ns)
{
	size_t nr = 0;

	while (nr < b->nr_graves && b->graves[nr].dead_ns < until_ns) {
		uint32_t number = b->graves[nr++].number;
		const struct vtrace_block *block = &b->blocks[number].block;

		free(b->own[number].code);
		b->own[number].code = NULL;
		give_back(b, number, block->first, block->nr_uops);
	}
	b->nr_graves -= nr;
	if (nr)
		memmove(b->graves, b->graves + nr, b->nr_graves * sizeof(*b->graves));
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static struct vtrace_code *copy_of(const struct vtrace_code *code, uint32_t number, uint32_t run)
{
	size_t len =
		offsetof(struct vtrace_code, uops) + code->block.nr_uops * sizeof(code->uops[0]);
	struct vtrace_code *copy = malloc(len);

	if (!copy)
		return NULL;
	memcpy(copy, code, len);
	copy->block.id = number;
	copy->block.first = run;
	return copy;
}

/* Whole, before anybody can find it. */
static void write_block(struct bpf_blocks *b, uint32_t number, const struct vtrace_code *code)
{
	struct trace_block *w = &b->blocks[number];

	memcpy(&b->uops[code->block.first], code->uops,
	       code->block.nr_uops * sizeof(code->uops[0]));
	w->block = code->block;
	w->link[0] = w->link[1] = 0;
	w->starts = 0;
	for (size_t i = 0; i < code->block.nr_insns && i < TRACE_ENTRIES; i++) {
		w->starts |= 1ull << code->insns[i].offset % VTRACE_BLOCK_BYTES;
		w->first[i] = code->insns[i].first;
	}
	__atomic_store_n(&w->alive, 1, __ATOMIC_SEQ_CST);
}

/* Where one more may stand: of a full bucket in place of the one that was longest without a trace.
 */
static uint64_t *way_for(const struct bpf_blocks *b, uint64_t hash)
{
	struct trace_bucket *bucket = bucket_of(b, hash);
	uint64_t *least = &bucket->way[0];

	for (size_t i = 0; i < TRACE_WAYS; i++) {
		uint64_t *way = &bucket->way[i];

		if (!*way)
			return way;
		if (b->own[TRACE_ENTRY_NUMBER(*way)].used_ns <
		    b->own[TRACE_ENTRY_NUMBER(*least)].used_ns)
			least = way;
	}
	return least;
}

/* A number and a run of micro-ops for a new one; -DCPI_ELIMIT. */
static int take_space(struct bpf_blocks *b, uint32_t nr_uops, uint32_t *number, uint32_t *run)
{
	*number = take_number(b);
	*run = *number ? take_run(b, nr_uops) : 0;
	if (*run)
		return 0;
	give_back(b, *number, 0, 0);
	return -DCPI_ELIMIT;
}

static void publish(struct bpf_blocks *b, uint64_t hash, uint32_t number, uint64_t now_ns)
{
	uint64_t *way = way_for(b, hash);

	if (*way)
		bury(b, TRACE_ENTRY_NUMBER(*way), now_ns);
	__atomic_store_n(way, TRACE_ENTRY(hash, number), __ATOMIC_RELEASE);
	b->nr++;
	b->nr_live_uops += space_of(b->blocks[number].block.nr_uops);
}

int bpf_blocks_put(struct bpf_blocks *b, const struct vtrace_code *code, uint64_t now_ns)
{
	const uint64_t *way = way_of(b, code);
	uint32_t number, run, nr_uops = code->block.nr_uops;

	if (way)
		return (int)TRACE_ENTRY_NUMBER(*way);
	if (dig(b) < 0)
		return -ENOMEM;
	if (is_tight(b))
		make_space(b, now_ns);
	if (take_space(b, nr_uops, &number, &run) < 0) {
		b->no_room++;
		/* Runs of other lengths are free: some of each have to go. */
		if (!b->nr_graves)
			make_space(b, now_ns);
		return -DCPI_ELIMIT;
	}
	b->own[number].code = copy_of(code, number, run);
	if (!b->own[number].code) {
		give_back(b, number, run, nr_uops);
		return -ENOMEM;
	}
	b->own[number].used_ns = now_ns;
	b->own[number].entered = false;
	write_block(b, number, b->own[number].code);
	publish(b, hash_of(b, code), number, now_ns);
	return (int)number;
}

const struct vtrace_code *bpf_blocks_get(const struct bpf_blocks *b, uint32_t number)
{
	return number < b->nr_numbers ? b->own[number].code : NULL;
}

/* ---- traces ---------------------------------------------------------------------------------- */

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
	uint64_t rate; /* samples a second and CPU */
};

/* ---- maps ------------------------------------------------------------------------------------ */

static void use_blocks(struct bpf_trace_source *s, const struct insn_trace *w)
{
	const uint64_t *words = (const void *)((const char *)w + INSN_TRACE_LEN(w->has));
	struct vtrace_visit v = { 0 };

	while (vtrace_visit_read(words, w->nr_words, v.end, &v) > 0)
		bpf_blocks_used(&s->blocks, v.id, w->time_ns);
}

static void on_trace(void *ctx, const void *data, size_t len)
{
	struct bpf_trace_source *s = ctx;
	const struct insn_trace *w = data;

	if (bpf_traces_add(&s->queue, data, len))
		use_blocks(s, w);
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

static volatile struct trace_counts *counts_of(const struct bpf_trace_source *s, size_t cpu)
{
	size_t stride = bpf_map__value_size(s->programs->behind[0]->maps.trace_cpus);

	return (void *)((char *)s->cpus + cpu * stride);
}

static void set_every(struct bpf_trace_source *s, uint32_t every)
{
	for (size_t i = 0; i < s->nr_cpus; i++)
		counts_of(s, i)->every = every;
}

/* ---- the source ------------------------------------------------------------------------------ */

static const struct driver_trace_ops trace_ops;

static int open_traces(struct bpf *b, const struct driver_config *config)
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
	s->rate = bpf_rate(config, &b->specs[0]);
	set_every(s, config->trace_optional ? bpf_scaled(config->trace_every, s->rate)
					    : config->trace_every);
	b->base.traces = &trace_ops;
	bpf_spill(b, &s->reader);
	return perf_sampler_poll_add(&b->sampler, bpf_reader_poll_fd(&s->reader), true);
}

static void close_traces(struct bpf *b)
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

static bool read_traces(struct bpf *b, size_t *nr)
{
	if (!b->traces)
		return false;
	bpf_reader_read(&b->traces->reader);
	*nr += bpf_queue_nr(&b->traces->queue.queue);
	return bpf_queue_nr(&b->traces->queue.queue) > BPF_STREAM_MAX;
}

static uint64_t horizon(struct bpf *b, uint64_t now_ns)
{
	struct bpf_trace_source *s = b->traces;

	return s ? bpf_reader_horizon(b, &s->reader, &s->queue.queue, now_ns) : now_ns;
}

static uint64_t next(struct bpf *b)
{
	return b->traces ? bpf_queue_next(&b->traces->queue.queue) : UINT64_MAX;
}

static int hand_until(struct bpf *b, uint64_t until_ns, const struct driver_sink *sink)
{
	return b->traces ? bpf_traces_hand(&b->traces->queue, until_ns, sink) : 0;
}

static void settle(struct bpf *b, uint64_t until_ns)
{
	if (!b->traces)
		return;
	bpf_queue_tidy(&b->traces->queue.queue);
	bpf_blocks_reuse(&b->traces->blocks, until_ns);
}

const struct bpf_stream_ops bpf_traces_ops = {
	.open = open_traces,
	.read = read_traces,
	.horizon = horizon,
	.next = next,
	.hand_until = hand_until,
	.settle = settle,
	.close = close_traces,
};

/* ---- ops ------------------------------------------------------------------------------------- */

/* Be woken when many blocks are missing from now on. */
static uint64_t look_at_missed(const struct bpf_trace_source *s)
{
	uint64_t nr = 0;

	for (size_t i = 0; i < s->nr_cpus; i++) {
		volatile struct trace_counts *c = counts_of(s, i);

		uint64_t missed = c->missed;

		c->looked = (uint32_t)missed;
		nr += missed;
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

static void trace_every(struct driver *d, uint32_t every)
{
	struct bpf_trace_source *s = source_of(d);

	set_every(s, bpf_scaled(every, s->rate));
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
	out->ran_ns += c->ran_ns;
}

static void stats(const struct driver *d, struct driver_trace_stats *out)
{
	const struct bpf_trace_source *s = source_of(d);
	uint64_t read;

	*out = (struct driver_trace_stats){
		.lost_read = s->queue.lost_read + s->reader.spill.lost,
		.no_room = s->blocks.no_room,
		.nr_blocks = s->blocks.nr,
		.max_blocks = s->blocks.max - 1,
	};
	for (size_t i = 0; i < VTRACE_NR_ENDS; i++)
		out->by_end[i] = s->queue.by_end[i];
	read = s->queue.handed + out->lost_read;
	for (size_t i = 0; i < s->nr_cpus; i++)
		add_cpu(out, counts_of(s, i));
	out->held = out->received - out->lost_ring - out->lost_busy - read;
}

static const struct driver_trace_ops trace_ops = {
	.missing = missing,
	.block_put = block_put,
	.block_get = block_get,
	.every = trace_every,
	.stats = stats,
};
