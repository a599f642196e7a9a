/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting and running threads on their way from the kernel's sums to the drain (waits_linux.c). */
#ifndef DCPI_BPF_WAITS_QUEUE_H
#define DCPI_BPF_WAITS_QUEUE_H

#include <stdio.h>

#include "bpf_queue.h"
#include "driver.h"
#include "kernel/waits.h"

/* ---- kinds of waits -------------------------------------------------------------------------- */

/* Functions of the kernel that tell for what a thread waits: addresses, ascending. */
struct bpf_wait_kinds {
	struct bpf_wait_range {
		uint64_t start, end;
		enum driver_wait kind;
	} * items;
	size_t nr;
	uint64_t schedule, schedule_end; /* the function that switches threads; 0: not found */
};

/* From what @kallsyms lists. 0; -ENOMEM; -EPERM: addresses are hidden. Release it also then. */
int bpf_wait_kinds_read(struct bpf_wait_kinds *k, FILE *kallsyms);
void bpf_wait_kinds_release(struct bpf_wait_kinds *k);
/*
 * The kind of a wait in @state, whose path has these frames of the kernel (return addresses, the
 * innermost first): a page fault wherever it stands in the path, or what the state says, or what
 * the innermost function says that tells a kind.
 */
enum driver_wait bpf_wait_kind(const struct bpf_wait_kinds *k, enum wait_state state,
			       const uint64_t *frames, size_t nr_kernel);

/* ---- sums and their paths -------------------------------------------------------------------- */

/* Paths that are kept at a time. */
#define BPF_WAITS_BYTES_MAX ((size_t)64 << 20)

/* Zero-initialize; kinds, event_wait and event_run are set by the caller. */
struct bpf_waits {
	struct bpf_wait_kinds kinds;
	uint32_t event_wait, event_run;
	struct base_map paths;	      /* paths that sums may name */
	size_t path_bytes, new_bytes; /* of these; of those that are new since the last gathering */
	uint64_t lost_paths;	      /* found no room */
	struct bpf_queue queue;
	uint64_t handed_ns, lost_ns, nr_handed;
	uint32_t round; /* number of gatherings */
};

/* A record of the ring. Without room or memory its waits have no path. */
void bpf_waits_path(struct bpf_waits *w, const void *record, size_t len);
/* A sum of the map that programs no longer use, and whose paths were read. */
void bpf_waits_sum(struct bpf_waits *w, const struct wait_key *key, const struct wait_sum *sum);
/* All sums of the map were read: paths that none of them named are forgotten. */
void bpf_waits_gathered(struct bpf_waits *w);
/* All that ended before @until_ns, in order of time. 0, or what the sink said. */
int bpf_waits_hand(struct bpf_waits *w, uint64_t until_ns, const struct driver_sink *sink);
void bpf_waits_release(struct bpf_waits *w);

#endif
