/* SPDX-License-Identifier: BSD-2-Clause */
/* Maps of the kernel's programs as memory of ours, and rings among them that are read. */
#ifndef DCPI_BPF_MAPS_H
#define DCPI_BPF_MAPS_H

#include "bpf_queue.h"

struct bpf_map;

/* Its memory to *@at, a pointer. 0 or -errno. */
int bpf_map_in(void *at, const struct bpf_map *map);
/* NULL: it was not mapped. */
void bpf_map_out(void *memory, const struct bpf_map *map);

struct bpf_reader {
	void *ring;
	void *consumed, *reserved; /* pages of the ring that begin with these positions */
};

/* 0 or -errno; close it also then. @fn: each record, as it is read. */
int bpf_reader_open(struct bpf_reader *r, const struct bpf_map *ring,
		    int (*fn)(void *ctx, void *data, size_t len), void *ctx);
void bpf_reader_close(struct bpf_reader *r);
int bpf_reader_poll_fd(const struct bpf_reader *r);
void bpf_reader_read(const struct bpf_reader *r);
/* See bpf_queue_whole: @fn puts records into @q. */
uint64_t bpf_reader_whole(const struct bpf_reader *r, struct bpf_queue *q, uint64_t now_ns);

#endif
