/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of blocks that traces run through: filled, searched, reused. No kernel is needed. */
#include "bpf_blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
