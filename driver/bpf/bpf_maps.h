/* SPDX-License-Identifier: BSD-2-Clause */
/* Maps of the kernel's programs as memory of ours, and rings among them that are read. */
#ifndef DCPI_BPF_MAPS_H
#define DCPI_BPF_MAPS_H

#include <pthread.h>

#include "bpf_queue.h"

struct bpf_map;

/* Its memory to *@at, a pointer. 0 or -errno. */
int bpf_map_in(void *at, const struct bpf_map *map);
/* NULL: it was not mapped. */
void bpf_map_out(void *memory, const struct bpf_map *map);

/* Records that a thread took from a ring, until it is read. */
struct bpf_spill {
	struct base_buf records; /* each behind its length, both in whole words */
	uint64_t lost;		 /* no memory */
};

struct bpf_reader {
	void *ring;
	void *consumed, *reserved; /* pages of the ring that begin with these positions */
	void (*fn)(void *ctx, const void *data, size_t len);
	void *ctx;
	pthread_mutex_t lock;	 /* guards what follows, and who reads the ring */
	bool spilling;		 /* records are put into spill */
	struct bpf_spill spill;	 /* they wait for the next reading */
	struct bpf_reader *next; /* of those that are spilled */
};

/* 0 or -errno; close it also then. @r stays where it is. @fn: each record, as it is read. */
int bpf_reader_open(struct bpf_reader *r, const struct bpf_map *ring,
		    void (*fn)(void *ctx, const void *data, size_t len), void *ctx);
void bpf_reader_close(struct bpf_reader *r);
int bpf_reader_poll_fd(const struct bpf_reader *r);
void bpf_reader_read(struct bpf_reader *r);
/* For a thread, while who reads is busy: empties the ring into memory. */
void bpf_reader_spill(struct bpf_reader *r);
/* See bpf_queue_whole: @fn puts records into @q. */
uint64_t bpf_reader_whole(struct bpf_reader *r, struct bpf_queue *q, uint64_t now_ns);

#endif
