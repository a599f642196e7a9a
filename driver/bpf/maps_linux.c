/* SPDX-License-Identifier: BSD-2-Clause */
/* Maps of the kernel's programs as memory of ours, and rings among them that are read. */
#include <bpf/libbpf.h>
#include <errno.h>
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

int bpf_reader_open(struct bpf_reader *r, const struct bpf_map *ring,
		    int (*fn)(void *ctx, void *data, size_t len), void *ctx)
{
	int e = map_position(&r->consumed, ring, 0);

	if (e >= 0)
		e = map_position(&r->reserved, ring, 1);
	if (e < 0)
		return e;
	r->ring = ring_buffer__new(bpf_map__fd(ring), fn, ctx, NULL);
	return r->ring ? 0 : -errno;
}

void bpf_reader_close(struct bpf_reader *r)
{
	ring_buffer__free(r->ring);
	unmap_position(r->consumed);
	unmap_position(r->reserved);
	*r = (struct bpf_reader){ 0 };
}

int bpf_reader_poll_fd(const struct bpf_reader *r)
{
	return ring_buffer__epoll_fd(r->ring);
}

static void read_ring(void *ring)
{
	ring_buffer__consume(ring);
}

void bpf_reader_read(const struct bpf_reader *r)
{
	read_ring(r->ring);
}

uint64_t bpf_reader_whole(const struct bpf_reader *r, struct bpf_queue *q, uint64_t now_ns)
{
	const struct bpf_ring ring = { r->consumed, r->reserved, read_ring, r->ring };

	return bpf_queue_whole(q, &ring, now_ns);
}
