/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent that dcpirun loads into programs (libdcpirun.so): on each tick of a thread it writes
 * where the thread was into the ring of its process (inprocess_ring.h), and before it, if that
 * was not told yet, which mapping that is. libc alone; nothing of it is for anybody else to call.
 *
 * What a tick needs (agent_ring_put, agent_map_tell and what they call) runs in signal handlers,
 * with all signals blocked; the rest when the program begins, or in a child after fork.
 */
#ifndef DCPI_INPROCESS_AGENT_H
#define DCPI_INPROCESS_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inprocess_ring.h"

/* ---- the ring (agent_ring.c) ----------------------------------------------------------------- */

struct agent_ring {
	struct inprocess_head *head; /* NULL: none */
	struct inprocess_unit *units;
	uint32_t mask;
};

/* The orders of dcpirun (INPROCESS_ENV), parsed. */
struct agent_orders {
	uint64_t period_ns;
	uint32_t nr_units;
	char folder[1024];
};

/* 0 or -EINVAL. */
int agent_orders_parse(const char *text, struct agent_orders *out);

/*
 * Make the ring of this life. @parent: the head of the process it was forked from (its constants
 * still readable here), or NULL: a new program. 0 or -errno; then @out->head is NULL,
 * and a file INPROCESS_FAILED… tells of it, if that can be.
 */
int agent_ring_open(const struct agent_orders *orders, const struct inprocess_head *parent,
		    struct agent_ring *out);
/* @unit's seq is filled in. False: the ring is full. */
bool agent_ring_put(const struct agent_ring *r, const struct inprocess_unit *unit, const void *rest,
		    size_t rest_len, const void *more, size_t more_len);
uint64_t agent_now_ns(void);

/* ---- mappings (agent_map.c) ------------------------------------------------------------------ */

/* Tell the mapping of @pc unless the ring has it. One thread at a time. */
void agent_map_tell(const struct agent_ring *r, uint64_t pc);
/* Nothing was told yet. */
void agent_map_forget(void);

/* A line of /proc/PID/maps without its newline: 0 or -EINVAL. The path is what is left, or "". */
struct agent_line {
	uint64_t start, end, file_off, inode;
	uint32_t dev_major, dev_minor;
	uint32_t prot;
	const char *path;
};
int agent_line_parse(const char *line, struct agent_line *out);

/* The loaded object that holds @pc, as the dynamic loader knows it. False: none, or unknown. */
struct agent_object {
	uint64_t start;	 /* vaddr */
	const void *key; /* unequal for objects that are loaded at the same time */
};
bool agent_object_find(uint64_t pc, struct agent_object *out);
/* Build-id of the ELF image at @start, and where it stands there. Its length, 0: none. */
size_t agent_object_id(uint64_t start, uint8_t id[32], uint64_t *at);

/* ---- the signal (agent_signal.c) ------------------------------------------------------------- */

/* Find libc's calls, while that is safe. */
void agent_signal_prepare(void);
/*
 * From now on @signo, which has its handler, is neither reset nor blocked nor waited for by the
 * program; the handler that it sets is put beneath (inprocess_before).
 */
void agent_signal_keep(int signo);

#endif
