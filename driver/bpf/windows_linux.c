/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows of the source "bpf": on their way from the ring to the daemon, in order of time; the maps
 * of their program; what driver.h says of them. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf_program.h"
#include "bpf_windows.h"

/* ---- the queue ------------------------------------------------------------------------------- */

/* Room for records that stays when there are none. */
enum { KEPT_WORDS = 1 << 18 };

static const size_t short_head = VTRACE_WINDOW_LEN(0);

/* ---- what is missing ------------------------------------------------------------------------- */

/* What a block would be found by (place.h) is the same. */
static bool is_same_place(const struct vtrace_window *a, const struct vtrace_window *b)
{
	return a->code_len && b->code_len && vtrace_where(a->end_pc) == vtrace_where(b->end_pc) &&
	       memcmp(a->code, b->code, vtrace_place_len(a->end_pc)) == 0;
}

static bool is_missing(const struct bpf_windows *q, const struct vtrace_window *w)
{
	for (size_t i = q->nr_missing; i-- > 0;)
		if (is_same_place(&q->missing[i], w))
			return true;
	return false;
}

/* Whose values they will be can be asked while it lives. */
static bool is_new_life(struct bpf_windows *q, const struct vtrace_window *w)
{
	const uint64_t key[2] = { w->instance, w->tgid };
	uint64_t life = base_hash64(key, sizeof(key)) | 1;
	uint64_t *told = &q->lives[life / 2 % BPF_NR_LIVES];

	if (!(w->has & VTRACE_WINDOW_VALUES) || w->has & VTRACE_WINDOW_KERNEL || *told == life)
		return false;
	*told = life;
	return true;
}

static void miss(struct bpf_windows *q, const struct vtrace_window *w)
{
	if (!q->missing)
		q->missing = calloc(BPF_NR_MISSING, sizeof(*q->missing));
	if (!q->missing || q->nr_missing == BPF_NR_MISSING)
		return;
	memcpy(&q->missing[q->nr_missing], w, short_head);
	q->missing[q->nr_missing++].has &= VTRACE_WINDOW_KERNEL;
}

int bpf_windows_missing(struct bpf_windows *q, int (*fn)(void *ctx, const struct vtrace_window *w),
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
static size_t head_of(const struct vtrace_window *w, size_t len)
{
	size_t head;

	if (len < short_head)
		return 0;
	head = VTRACE_WINDOW_LEN(w->has);
	if (len != head + w->nr_words * sizeof(uint64_t) || w->end >= VTRACE_NR_ENDS ||
	    w->code_len > sizeof(w->code))
		return 0;
	return head;
}

_Static_assert(VTRACE_WINDOW_LEN(0) % 8 == 0 && sizeof(struct vtrace_window) % 8 == 0, "words");

static int enqueue(struct bpf_windows *q, const struct vtrace_window *w, size_t len)
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
	q->items[q->nr++] = (struct bpf_window){ .time_ns = w->time_ns, .at = q->nr_words };
	q->nr_words += nr_words;
	return 0;
}

bool bpf_windows_add(struct bpf_windows *q, const void *record, size_t len)
{
	const struct vtrace_window *w = record;

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

/* What is written in an interrupt takes microseconds, unless its CPU is taken away meanwhile. */
enum { HIDDEN_US = 100, HIDDEN_TRIES = 100 };

static bool read_up_to(const struct bpf_window_ring *ring, unsigned long reserved)
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

uint64_t bpf_windows_whole(struct bpf_windows *q, const struct bpf_window_ring *ring,
			   uint64_t now_ns)
{
	if (read_up_to(ring, __atomic_load_n(ring->reserved, __ATOMIC_ACQUIRE)))
		q->whole_ns = now_ns;
	return q->whole_ns;
}

static int by_time(const void *a, const void *b)
{
	const struct bpf_window *x = a, *y = b;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static int hand(struct bpf_windows *q, const struct bpf_window *item,
		const struct driver_sink *sink)
{
	const uint64_t *record = q->records + item->at;
	const struct vtrace_window *w = (const void *)record;

	q->handed++;
	return sink->window ? sink->window(sink->ctx, w,
					   record + VTRACE_WINDOW_LEN(w->has) / sizeof(*record))
			    : 0;
}

int bpf_windows_hand(struct bpf_windows *q, uint64_t until_ns, const struct driver_sink *sink)
{
	int r = 0;

	if (!q->sorted && bpf_windows_nr(q))
		qsort(q->items + q->first, bpf_windows_nr(q), sizeof(*q->items), by_time);
	q->sorted = true;
	while (r >= 0 && q->first < q->nr && q->items[q->first].time_ns < until_ns)
		r = hand(q, &q->items[q->first++], sink);
	return r < 0 ? r : 0;
}

void bpf_windows_tidy(struct bpf_windows *q)
{
	size_t nr = bpf_windows_nr(q), from = q->nr_words;

	/* Of the youngest, so that these are few. */
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

void bpf_windows_release(struct bpf_windows *q)
{
	free(q->records);
	free(q->items);
	free(q->missing);
	*q = (struct bpf_windows){ 0 };
}

struct bpf_window_source {
	const struct bpf_programs *programs;
	struct bpf_blocks blocks;
	struct bpf_windows queue;
	bool eager;	 /* what is in the ring is wanted at once, whatever it is */
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

static int map_all(struct bpf_window_source *s)
{
	const struct sample_window *own = s->programs->windows;
	int r = map_in(&s->cpus, own->maps.window_cpus);

	if (r >= 0)
		r = map_in(&s->blocks.blocks, own->maps.window_blocks);
	if (r >= 0)
		r = map_in(&s->blocks.buckets, own->maps.window_buckets);
	if (r >= 0)
		r = map_in(&s->blocks.uops, own->maps.window_uops);
	if (r >= 0)
		r = map_position(&s->consumed, own->maps.windows, 0);
	if (r >= 0)
		r = map_position(&s->reserved, own->maps.windows, 1);
	return r;
}

static void use_blocks(struct bpf_window_source *s, const struct vtrace_window *w)
{
	const uint64_t *words = (const void *)((const char *)w + VTRACE_WINDOW_LEN(w->has));
	struct vtrace_visit v = { 0 };

	while (vtrace_visit_read(words, w->nr_words, v.end, &v) > 0)
		bpf_blocks_used(&s->blocks, v.id, w->time_ns);
}

static int on_window(void *ctx, void *data, size_t len)
{
	struct bpf_window_source *s = ctx;
	const struct vtrace_window *w = data;

	if (bpf_windows_add(&s->queue, data, len))
		use_blocks(s, w);
	return 0;
}

static struct bpf_window_source *source_of(const struct driver *d)
{
	return ((const struct bpf *)d)->windows;
}

/* ---- the source ------------------------------------------------------------------------------ */

static const struct driver_window_ops window_ops;

int bpf_windows_open(struct bpf *b, const struct driver_config *config)
{
	struct bpf_window_source *s;
	int r;

	if (!config->window_every)
		return 0;
	s = b->windows = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->programs = &b->programs;
	s->nr_cpus = bpf_map__max_entries(b->programs.windows->maps.window_cpus);
	/* Of a new life that has values somebody wants to know. */
	s->eager = config->window_log != VTRACE_LOG_PATH;
	s->blocks.mix[0] = b->programs.mix[0];
	s->blocks.mix[1] = b->programs.mix[1];
	r = map_all(s);
	if (r >= 0)
		r = bpf_blocks_init(&s->blocks);
	if (r < 0)
		return r;
	s->ring = ring_buffer__new(bpf_map__fd(b->programs.windows->maps.windows), on_window, s,
				   NULL);
	if (!s->ring)
		return -errno;
	b->base.windows = &window_ops;
	return perf_sampler_poll_add(&b->sampler, ring_buffer__epoll_fd(s->ring));
}

void bpf_windows_close(struct bpf *b)
{
	struct bpf_window_source *s = b->windows;
	const struct sample_window *own = b->programs.windows;

	if (!s)
		return;
	ring_buffer__free(s->ring);
	map_out(s->cpus, own->maps.window_cpus);
	map_out(s->blocks.blocks, own->maps.window_blocks);
	map_out(s->blocks.buckets, own->maps.window_buckets);
	map_out(s->blocks.uops, own->maps.window_uops);
	unmap_position(s->consumed);
	unmap_position(s->reserved);
	bpf_blocks_release(&s->blocks);
	bpf_windows_release(&s->queue);
	free(s);
	b->windows = NULL;
}

size_t bpf_windows_read(struct bpf *b)
{
	if (!b->windows)
		return 0;
	ring_buffer__consume(b->windows->ring);
	return bpf_windows_nr(&b->windows->queue);
}

static void read_ring(void *ring)
{
	ring_buffer__consume(ring);
}

uint64_t bpf_windows_horizon(struct bpf *b, uint64_t now_ns)
{
	struct bpf_window_source *s = b->windows;
	struct bpf_window_ring ring = { .read = read_ring };
	uint64_t whole_ns;

	if (!s)
		return now_ns;
	ring.consumed = s->consumed;
	ring.reserved = s->reserved;
	ring.ctx = s->ring;
	whole_ns = bpf_windows_whole(&s->queue, &ring, b->running ? now_ns : base_now_ns());
	/* Nothing comes later. */
	return b->running ? whole_ns : now_ns;
}

int bpf_windows_until(struct bpf *b, uint64_t until_ns, const struct driver_sink *sink)
{
	return b->windows ? bpf_windows_hand(&b->windows->queue, until_ns, sink) : 0;
}

void bpf_windows_settle(struct bpf *b, uint64_t until_ns)
{
	if (!b->windows)
		return;
	bpf_windows_tidy(&b->windows->queue);
	bpf_blocks_reuse(&b->windows->blocks, until_ns);
}

/* ---- ops ------------------------------------------------------------------------------------- */

static volatile struct window_counts *counts_of(const struct bpf_window_source *s, size_t cpu)
{
	size_t stride = bpf_map__value_size(s->programs->windows->maps.window_cpus);

	return (void *)((char *)s->cpus + cpu * stride);
}

/* What is missing from now on wakes us, when it is much. */
static uint64_t look_at_missed(const struct bpf_window_source *s)
{
	uint64_t nr = 0;

	for (size_t i = 0; i < s->nr_cpus; i++) {
		volatile struct window_counts *c = counts_of(s, i);

		c->looked = c->missed;
		nr += c->looked;
	}
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return nr;
}

/* A look for what is missing must not cost the reading of all that is there. */
static int missing(struct driver *d, int (*fn)(void *ctx, const struct vtrace_window *w), void *ctx)
{
	struct bpf_window_source *s = source_of(d);
	uint64_t missed = look_at_missed(s);

	if (s->eager || missed != s->missed)
		ring_buffer__consume(s->ring);
	s->missed = missed;
	return bpf_windows_missing(&s->queue, fn, ctx);
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
static void add_cpu(struct driver_window_stats *out, const volatile struct window_counts *c)
{
	out->lost_ring += c->lost_ring;
	out->lost_busy += c->lost_busy;
	out->skipped += c->skipped;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	out->received += c->received;
	out->missed += c->missed;
}

static void stats(const struct driver *d, struct driver_window_stats *out)
{
	const struct bpf_window_source *s = source_of(d);
	uint64_t read;

	*out = (struct driver_window_stats){
		.lost_read = s->queue.lost_read,
		.no_room = s->blocks.no_room,
		.nr_blocks = s->blocks.nr,
		.max_blocks = WINDOW_NR_BLOCKS - 1,
	};
	for (size_t i = 0; i < VTRACE_NR_ENDS; i++)
		out->by_end[i] = s->queue.by_end[i];
	read = s->queue.handed + s->queue.lost_read;
	for (size_t i = 0; i < s->nr_cpus; i++)
		add_cpu(out, counts_of(s, i));
	out->held = out->received - out->lost_ring - out->lost_busy - read;
}

static const struct driver_window_ops window_ops = {
	.missing = missing,
	.block_put = block_put,
	.block_get = block_get,
	.stats = stats,
};
