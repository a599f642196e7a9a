/* SPDX-License-Identifier: BSD-2-Clause */
/* Maps of the kernel's programs as memory of ours, and rings among them that are read. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf_maps.h"

static size_t map_len(const struct bpf_map *map)
{
	return base_align_up(bpf_map__value_size(map) * (size_t)bpf_map__max_entries(map), 4096);
}

int bpf_map_in(void *at, const struct bpf_map *map)
{
	void *memory =
		mmap(NULL, map_len(map), PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	if (memory == MAP_FAILED)
		return -errno;
	*(void **)at = memory;
	return 0;
}

void bpf_map_out(void *memory, const struct bpf_map *map)
{
	if (memory)
		munmap(memory, map_len(map));
}

/* ---- rings ----------------------------------------------------------------------------------- */

/* So much of a ring waits in memory; the rest stays in the ring. */
#define SPILLED_MAX (16u << 20)

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

/* Memory that was needed for once is given back. */
enum { SPILL_KEPT = 1 << 18 };

static void spill_record(struct bpf_spill *s, const void *record, size_t len)
{
	uint64_t *to;

	if (base_buf_extend(&s->records, sizeof(*to) + base_align_up(len, sizeof(*to)),
			    (void **)&to) < 0) {
		s->lost++;
		return;
	}
	*to = len;
	memcpy(to + 1, record, len);
}

/* All to the reader's function, in the order in which they came. */
static void take_spilled(struct bpf_reader *r)
{
	struct bpf_spill *s = &r->spill;
	const uint64_t *at = (const void *)s->records.data;
	const uint64_t *end = at + s->records.len / sizeof(*at);

	for (; at < end; at += 1 + base_align_up(*at, sizeof(*at)) / sizeof(*at))
		r->fn(r->ctx, at + 1, *at);
	if (s->records.cap > SPILL_KEPT)
		base_buf_release(&s->records);
	else
		base_buf_clear(&s->records);
}

static int on_record(void *reader, void *data, size_t len)
{
	struct bpf_reader *r = reader;

	if (r->spilling)
		spill_record(&r->spill, data, len);
	else
		r->fn(r->ctx, data, len);
	return 0;
}

int bpf_reader_open(struct bpf_reader *r, const struct bpf_map *ring,
		    void (*fn)(void *ctx, const void *data, size_t len), void *ctx)
{
	int e = map_position(&r->consumed, ring, 0);

	pthread_mutex_init(&r->lock, NULL);
	r->fn = fn;
	r->ctx = ctx;
	if (e >= 0)
		e = map_position(&r->reserved, ring, 1);
	if (e < 0)
		return e;
	r->ring = ring_buffer__new(bpf_map__fd(ring), on_record, r, NULL);
	return r->ring ? 0 : -errno;
}

void bpf_reader_close(struct bpf_reader *r)
{
	ring_buffer__free(r->ring);
	unmap_position(r->consumed);
	unmap_position(r->reserved);
	base_buf_release(&r->spill.records);
	*r = (struct bpf_reader){ 0 };
}

int bpf_reader_poll_fd(const struct bpf_reader *r)
{
	return ring_buffer__epoll_fd(r->ring);
}

void bpf_reader_read(struct bpf_reader *r)
{
	pthread_mutex_lock(&r->lock);
	take_spilled(r);
	ring_buffer__consume(r->ring);
	pthread_mutex_unlock(&r->lock);
}

void bpf_reader_spill(struct bpf_reader *r)
{
	/* It is read just now: who waited for its reader, and that for a CPU, would leave the
	 * other rings full. */
	if (pthread_mutex_trylock(&r->lock))
		return;
	r->spilling = true;
	if (r->spill.records.len < SPILLED_MAX)
		ring_buffer__consume(r->ring);
	r->spilling = false;
	pthread_mutex_unlock(&r->lock);
}

static void read_ring(void *reader)
{
	bpf_reader_read(reader);
}

uint64_t bpf_reader_whole(struct bpf_reader *r, struct bpf_queue *q, uint64_t now_ns)
{
	const struct bpf_ring ring = { r->consumed, r->reserved, read_ring, r };
	uint64_t whole_ns = bpf_queue_whole(q, &ring, now_ns);

	/* The last of them may have been taken by the thread. */
	bpf_reader_read(r);
	return whole_ns;
}
