/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libdbgdyn from within. One registry (wire.h) per process instance, made at the first begin;
 * everything private about it stands in one page that fork wipes (state.c). Memory comes from
 * memory_linux.c, elsewhere from memory_posix.c. Nothing here allocates, prints or keeps a thread.
 *
 * Internal functions return 0 or an enum dbgdyn_result where they return int.
 */
#ifndef DBGDYN_INTERNAL_H
#define DBGDYN_INTERNAL_H

#include "dbgdyn.h"
#include "wire.h"

#include <stdbool.h>
#include <sys/types.h>

/* Unit tests take another, so that no daemon of this machine finds their registries. */
#ifndef DBGDYN_MEMFD_NAME
#define DBGDYN_MEMFD_NAME WIRE_MEMFD_NAME
#endif

#define DBGDYN_RING_LEN	   (4u << 20)
#define DBGDYN_RING_MIN	   (16u << 10)
#define DBGDYN_TIMEOUT_MS  10000u
#define DBGDYN_CODE_MAX	   WIRE_CODE_MAX
#define DBGDYN_FILE_MAX	   65535u /* a record counts a file name's bytes in 16 bits */
#define DBGDYN_ATTACH_MS   1000u  /* for a daemon that has a queue to attach */
#define DBGDYN_REPROBE_MS  500u	  /* between looks whether the daemon still listens */
#define DBGDYN_POLL_MIN_NS 100000u
#define DBGDYN_POLL_MAX_NS 5000000u

/* ---- memory (memory.c; memory_linux.c or memory_posix.c) ------------------------------------ */

/* The registry's object: a sealed memfd, elsewhere an unlinked POSIX shared-memory object. */
struct dbgdyn_memory {
	int fd;
	dev_t dev; /* identity of fd, as the application may close it and reuse its number */
	ino_t ino;
	void *base; /* all of it, read and write */
	size_t len;
};

/* Make and map @len zeroed bytes. DBGDYN_OK, or DBGDYN_ENOMEM with nothing left behind. */
int dbgdyn_memory_open(struct dbgdyn_memory *m, size_t len);
/* The header is filled: seal the size, show the marker mapping. Failing to is survived. */
void dbgdyn_memory_publish(const struct dbgdyn_memory *m);
/* Have the pages there before they are needed; memory that is not to be had is no error. */
void dbgdyn_memory_touch(void *base, size_t len);
/* One zeroed private page; *@wiped: a fork's child finds it zero. NULL: no memory. */
void *dbgdyn_memory_page(size_t len, bool *wiped);
void dbgdyn_memory_page_free(void *page, size_t len);
/* Whether @fd still is the object (@dev, @ino). */
bool dbgdyn_memory_same(int fd, dev_t dev, ino_t ino);

/* ---- state (state.c) ------------------------------------------------------------------------- */

/* All private state. Zero in a process that has no registry of its own, so also after fork. */
struct dbgdyn_state {
	uintptr_t lock;	     /* 0, or who holds it */
	uint64_t generation; /* not 0: a registry is open; stored with release last */
	struct dbgdyn_memory memory;
	struct wire_registry *reg;
	struct wire_facility *facilities;
	struct wire_range *ranges;
	uint8_t *ring;
	uint64_t ring_len;
	uint64_t head;	      /* behind the last record, or the pad before the next */
	uint64_t published;   /* what reg->head is; the shared one is never read back */
	uint64_t next_handle; /* the last one given out */
	uint32_t flush_wanted;
	uint32_t handed; /* the descriptor is with the daemon, which has not attached yet */
	uint32_t nr_facilities, nr_ranges;
	uint32_t check_pid; /* fork does not wipe this page here: compare pid */
	uint32_t pid;
	uint32_t timeout_ms[WIRE_NR_FACILITIES];
	uint8_t open[WIRE_NR_FACILITIES]; /* begun and not ended */
};
static_assert(sizeof(struct dbgdyn_state) <= WIRE_PAGE, "the state is one page");

/* This process's state; NULL where there is none and !@make, or no memory. */
struct dbgdyn_state *dbgdyn_state_get(bool make);
/*
 * Take or release the lock. It is held for one record's copy or, at the first begin, a few system
 * calls. dbgdyn_lock gives up (false) when this thread holds it already (a signal handler), or
 * after about 0.2 s (its holder does not run).
 */
bool dbgdyn_lock(struct dbgdyn_state *s);
void dbgdyn_unlock(struct dbgdyn_state *s);
/* The state behind a context of this very process, still open, and its slot; NULL: refuse. */
struct dbgdyn_state *dbgdyn_context_find(uint64_t context, uint32_t *index);
uint64_t dbgdyn_context_make(const struct dbgdyn_state *s, uint32_t index);

/* ---- registry (registry.c) ----------------------------------------------------------------- */

/* With the lock held: open the registry if there is none. */
int dbgdyn_registry_open(struct dbgdyn_state *s);
/* With the lock held: a facility slot with its first ranges (len 0: none), all or nothing. */
int dbgdyn_facility_add(struct dbgdyn_state *s, const char *name, size_t name_len,
			const struct dbgdyn_options *opts, uint32_t *index);
/* With the lock held: one owned range. */
int dbgdyn_range_add(struct dbgdyn_state *s, uint32_t facility, enum dbgdyn_kind kind,
		     const void *base, size_t len);
/* Not NULL, not empty, not wrapping. */
bool dbgdyn_range_good(const void *base, size_t len);
bool dbgdyn_attached(const struct dbgdyn_state *s);

/* ---- ring (ring.c) ------------------------------------------------------------------------- */

/* With the lock held: room for a record of @len bytes (a multiple of 8), contiguous, or NULL. */
void *dbgdyn_ring_reserve(struct dbgdyn_state *s, size_t len);
/*
 * With the lock held, after dbgdyn_ring_reserve gave nothing: where a record of @len bytes would
 * never fit between here and the ring's end, skip to its start, so that a later call succeeds.
 */
void dbgdyn_ring_turn(struct dbgdyn_state *s, size_t len);
/* With the lock held: the reserved record is written. True when the ring has just become half full.
 */
bool dbgdyn_ring_commit(struct dbgdyn_state *s, size_t len);

/* ---- routine (routine.c) ------------------------------------------------------------------- */

int dbgdyn_routine_put(struct dbgdyn_state *s, uint32_t facility, const struct dbgdyn_routine *r,
		       uint64_t *handle);

/* ---- doorbell (doorbell.c) ----------------------------------------------------------------- */

enum dbgdyn_reach {
	DBGDYN_ABSENT,	/* no socket to be seen from here: no daemon, or another mount namespace */
	DBGDYN_REFUSED, /* a socket on which nobody listens: its daemon is dead */
	DBGDYN_LIVE,	/* a daemon listens */
};

/*
 * Send the registry's descriptor to the daemon, without waiting. Sets s->handed where it went and
 * no daemon is attached.
 */
enum dbgdyn_reach dbgdyn_hand_over(struct dbgdyn_state *s);
/* One datagram on the message queue, never waited on; true if the queue exists. */
bool dbgdyn_doorbell(void);

/* ---- flush (flush.c) ----------------------------------------------------------------------- */

/* Flush, or with @end close context @index first, and wait. */
int dbgdyn_flush_wait(struct dbgdyn_state *s, uint32_t index, bool end);

#endif
