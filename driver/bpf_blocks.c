/* SPDX-License-Identifier: BSD-2-Clause */
#include "bpf_blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RUN_STEP = VTRACE_BLOCK_UOPS / BPF_NR_SIZES };

struct bpf_process {
	uint32_t tgid;
	uint32_t first;	  /* of its blocks */
	uint64_t used_ns; /* when it had its last window, or block */
};

int bpf_blocks_init(struct bpf_blocks *b)
{
	b->own = calloc(WINDOW_NR_BLOCKS, sizeof(*b->own));
	b->nr_numbers = 1;
	return b->own ? 0 : -ENOMEM;
}

void bpf_blocks_release(struct bpf_blocks *b)
{
	void *process;

	for (uint32_t i = 0; b->own && i < b->nr_numbers; i++)
		free(b->own[i].code);
	for (size_t i = 0; base_map_next(&b->processes, &i, &process);)
		free(process);
	for (size_t i = 0; i < BPF_NR_SIZES; i++)
		free(b->runs[i].items);
	base_map_release(&b->processes);
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

/* A number, or 0. */
static uint32_t take_number(struct bpf_blocks *b)
{
	uint32_t number = spare_take(&b->numbers);

	if (!number && b->nr_numbers < WINDOW_NR_BLOCKS)
		number = b->nr_numbers++;
	return number;
}

/* Where so many micro-ops may stand; 0: nowhere. */
static uint32_t take_run(struct bpf_blocks *b, uint32_t nr_uops)
{
	size_t size = size_of(nr_uops);
	uint32_t len = (uint32_t)(size + 1) * RUN_STEP, run = spare_take(&b->runs[size]);

	if (!run) {
		if (!b->nr_uops)
			b->nr_uops = RUN_STEP;
		if (b->nr_uops + len > WINDOW_NR_UOPS)
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

/* ---- processes ------------------------------------------------------------------------------- */

static struct bpf_process *process_of(struct bpf_blocks *b, uint32_t tgid)
{
	struct bpf_process *p = base_map_get(&b->processes, &tgid, sizeof(tgid));

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->tgid = tgid;
	if (base_map_set(&b->processes, &tgid, sizeof(tgid), p) < 0) {
		free(p);
		return NULL;
	}
	return p;
}

static void join(struct bpf_blocks *b, struct bpf_process *p, uint32_t number)
{
	struct bpf_block *own = &b->own[number];

	own->prev = 0;
	own->next = p->first;
	if (p->first)
		b->own[p->first].prev = number;
	p->first = number;
}

static void leave(struct bpf_blocks *b, uint32_t tgid, uint32_t number)
{
	struct bpf_process *p = base_map_get(&b->processes, &tgid, sizeof(tgid));
	struct bpf_block *own = &b->own[number];

	if (own->next)
		b->own[own->next].prev = own->prev;
	if (own->prev)
		b->own[own->prev].next = own->next;
	else if (p)
		p->first = own->next;
}

/* ---- places ---------------------------------------------------------------------------------- */

static bool is_at(const struct window_block *w, uint32_t tgid, uint32_t generation, uint64_t pc)
{
	return w->alive && w->block.pc == pc && w->tgid == tgid && w->generation == generation;
}

static uint64_t hash_of(const struct bpf_blocks *b, uint32_t tgid, uint32_t generation, uint64_t pc)
{
	return window_hash(pc, tgid, generation, b->mix[0], b->mix[1]);
}

/* Where the number of a block of this place stands; NULL: it is not there. */
static uint64_t *way_of(const struct bpf_blocks *b, uint32_t tgid, uint32_t generation, uint64_t pc)
{
	uint64_t hash = hash_of(b, tgid, generation, pc);
	struct window_bucket *bucket = &b->buckets[hash % WINDOW_NR_BUCKETS];

	for (size_t i = 0; i < WINDOW_WAYS; i++) {
		uint32_t number = WINDOW_ENTRY_NUMBER(bucket->way[i]);

		if (number && is_at(&b->blocks[number], tgid, generation, pc))
			return &bucket->way[i];
	}
	return NULL;
}

static uint64_t *free_way(const struct bpf_blocks *b, uint64_t hash)
{
	struct window_bucket *bucket = &b->buckets[hash % WINDOW_NR_BUCKETS];

	for (size_t i = 0; i < WINDOW_WAYS; i++) {
		if (!bucket->way[i])
			return &bucket->way[i];
	}
	return NULL;
}

uint32_t bpf_blocks_find(const struct bpf_blocks *b, uint32_t tgid, uint32_t generation,
			 uint64_t pc)
{
	const uint64_t *way = way_of(b, tgid, generation, pc);

	return way ? WINDOW_ENTRY_NUMBER(*way) : 0;
}

/* ---- graves ---------------------------------------------------------------------------------- */

/* Found no more. Room for its grave was made before. */
static void bury(struct bpf_blocks *b, uint32_t number, uint64_t now_ns)
{
	struct window_block *w = &b->blocks[number];
	uint64_t *way = way_of(b, w->tgid, w->generation, w->block.pc);

	if (way)
		__atomic_store_n(way, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&w->alive, 0, __ATOMIC_SEQ_CST);
	leave(b, w->tgid, number);
	b->graves[b->nr_graves++] = (struct bpf_grave){ .dead_ns = now_ns, .number = number };
	b->nr--;
}

/* Of all that live, so that to bury never fails. */
static int dig(struct bpf_blocks *b)
{
	return base_grow(&b->graves, &b->cap_graves, b->nr_graves + b->nr + 1, sizeof(*b->graves));
}

void bpf_blocks_forget(struct bpf_blocks *b, uint32_t tgid, uint64_t now_ns)
{
	struct bpf_process *p = base_map_del(&b->processes, &tgid, sizeof(tgid));

	if (!p)
		return;
	for (uint32_t number = p->first, next; number; number = next) {
		next = b->own[number].next;
		bury(b, number, now_ns);
	}
	free(p);
}

void bpf_blocks_used(struct bpf_blocks *b, uint32_t tgid, uint64_t time_ns)
{
	struct bpf_process *p = base_map_get(&b->processes, &tgid, sizeof(tgid));

	if (p && time_ns > p->used_ns)
		p->used_ns = time_ns;
}

/* Nobody may sit on the table for having been busy once. */
static void make_room(struct bpf_blocks *b, uint64_t now_ns)
{
	const struct bpf_process *least = NULL;
	void *value;

	for (size_t i = 0; base_map_next(&b->processes, &i, &value);) {
		const struct bpf_process *p = value;

		if (p->first && (!least || p->used_ns < least->used_ns))
			least = p;
	}
	if (least && least->used_ns + BPF_IDLE_NS <= now_ns)
		bpf_blocks_forget(b, least->tgid, now_ns);
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
static void write_block(struct bpf_blocks *b, uint32_t number, uint32_t tgid, uint32_t generation,
			const struct vtrace_code *code)
{
	struct window_block *w = &b->blocks[number];

	memcpy(&b->uops[code->block.first], code->uops,
	       code->block.nr_uops * sizeof(code->uops[0]));
	w->block = code->block;
	w->tgid = tgid;
	w->generation = generation;
	w->link[0] = w->link[1] = 0;
	__atomic_store_n(&w->alive, 1, __ATOMIC_SEQ_CST);
}

/* Into *@way, which was free or the one's that stood there. */
static void publish(struct bpf_blocks *b, uint64_t *way, uint32_t number, uint64_t hash,
		    uint64_t now_ns)
{
	uint32_t old = WINDOW_ENTRY_NUMBER(*way);

	if (old)
		bury(b, old, now_ns);
	__atomic_store_n(way, WINDOW_ENTRY(hash, number), __ATOMIC_RELEASE);
	b->nr++;
}

int bpf_blocks_put(struct bpf_blocks *b, uint32_t tgid, uint32_t generation,
		   const struct vtrace_code *code, uint64_t now_ns)
{
	uint64_t pc = code->block.pc, hash = hash_of(b, tgid, generation, pc);
	uint64_t *way = way_of(b, tgid, generation, pc);
	uint32_t number = 0, run = 0, nr_uops = code->block.nr_uops;
	struct bpf_process *p = process_of(b, tgid);

	if (!way)
		way = free_way(b, hash);
	if (way)
		number = take_number(b);
	if (number)
		run = take_run(b, nr_uops);
	if (!run) {
		give_back(b, number, 0, 0);
		b->no_room++;
		if (way)
			make_room(b, now_ns);
		return -DCPI_ELIMIT;
	}
	b->own[number].code = copy_of(code, number, run);
	if (!p || !b->own[number].code || dig(b) < 0) {
		free(b->own[number].code);
		b->own[number].code = NULL;
		give_back(b, number, run, nr_uops);
		return -ENOMEM;
	}
	write_block(b, number, tgid, generation, b->own[number].code);
	publish(b, way, number, hash, now_ns);
	join(b, p, number);
	p->used_ns = now_ns;
	return (int)number;
}

const struct vtrace_code *bpf_blocks_get(const struct bpf_blocks *b, uint32_t number)
{
	return number < b->nr_numbers ? b->own[number].code : NULL;
}
