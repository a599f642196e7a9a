/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libdbgdyn from within. One registry (wire.h) per process instance, made at the first begin;
 * everything private about it stands in one page that fork wipes (state.c), and in a private area
 * that fork leaves out (what lives where, which addresses were used). Memory comes from
 * memory_linux.c, elsewhere from memory_posix.c. Nothing here allocates, prints or keeps a thread.
 *
 * What is shared is written and, but for the daemon's line of the header, never read back.
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

/* For a daemon that has attached, but is out of sight, to meet a request. Unit tests wait less. */
#ifndef DBGDYN_SEEN_MS
#define DBGDYN_SEEN_MS 3000
#endif

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the registry's layout is little-endian"
#endif

/* ELF EM_* of the code made here. */
#if defined(__x86_64__)
#define DBGDYN_MACHINE 62u
#elif defined(__aarch64__)
#define DBGDYN_MACHINE 183u
#elif defined(__riscv)
#define DBGDYN_MACHINE 243u
#else
#error "what ELF machine is this?"
#endif

#define DBGDYN_RING_LEN	   (4u << 20)
#define DBGDYN_RING_MIN	   (16u << 10)
#define DBGDYN_HEAP_LEN	   (512u << 20) /* sparse: a million of 256 bytes of code take 305 MiB */
#define DBGDYN_WORDS_MIN   1024u
#define DBGDYN_NR_ARENAS   512u
#define DBGDYN_ARENA_LEN   (2u << 20)
#define DBGDYN_ARENA_MAX   (64u << 20)
#define DBGDYN_OBJECT_MAX  (1u << 30) /* bytes that the code of an object spans */
#define DBGDYN_TIMEOUT_MS  10000u
#define DBGDYN_CODE_MAX	   WIRE_CODE_MAX
#define DBGDYN_PARTS_MAX   64u
#define DBGDYN_FILE_MAX	   65535u /* a record counts a file name's bytes in 16 bits */
#define DBGDYN_ATTACH_MS   1000u  /* for a daemon that has a queue to attach */
#define DBGDYN_REPROBE_MS  500u	  /* between looks whether the daemon still listens */
#define DBGDYN_POLL_MIN_NS 100000u
#define DBGDYN_POLL_MAX_NS 5000000u

/* ---- memory (memory.c; memory_linux.c or memory_posix.c) ------------------------------------- */

/* The registry's object: a sealed memfd, elsewhere an unlinked POSIX shared-memory object. */
struct dbgdyn_memory {
	int fd;
	dev_t dev; /* identity of fd, as the application may close it and reuse its number */
	ino_t ino;
	void *base; /* all of it, read and write */
	size_t len;
};

/* A descriptor of @len zeroed bytes, not yet sealed; or below 0. */
int dbgdyn_memory_make(size_t len);
/* Whether all that follows is of the size that @fd has now. */
bool dbgdyn_memory_seal(int fd);
/* Map @fd, which is @m's from then on. DBGDYN_OK, or DBGDYN_ENOMEM with @fd closed. */
int dbgdyn_memory_map(struct dbgdyn_memory *m, int fd, size_t len);
/* A descriptor of our own of one that another process made, and its length; or below 0. */
int dbgdyn_memory_accept(int fd, size_t *len);
/* The header is filled: seal the size, show the marker mapping. Failing to is survived. */
void dbgdyn_memory_publish(const struct dbgdyn_memory *m);
/*
 * Zeroed private memory, mostly never touched, which munmap gives back; *@wiped: a fork's child
 * finds it zero. NULL: no memory.
 */
void *dbgdyn_memory_page(size_t len, bool *wiped);
/* Whether @fd still is the object (@dev, @ino). */
bool dbgdyn_memory_same(int fd, dev_t dev, ino_t ino);

/* ---- layout (registry.c) --------------------------------------------------------------------- */

/* The layout of the registry, and the size of the private area beside it. */
struct dbgdyn_layout {
	size_t words_off, ring_off, ring_len, heap_off, heap_len, total_len;
	uint32_t nr_words;
	uint32_t nr_nodes; /* a power of two */
	size_t area_len;
};

/* Bytes of a registry that the process's limits of memory and of files allow. */
size_t dbgdyn_layout_allowed(void);
/* Share out @total_len bytes at most; false where the smallest registry has no room. */
bool dbgdyn_layout_make(struct dbgdyn_layout *l, size_t total_len);

/* ---- state (state.c) ------------------------------------------------------------------------- */

/*
 * A slot of the heap and what lives there. The two stay together for good: a node that is free
 * waits with its slot for the next record of that size.
 */
struct dbgdyn_node {
	uint64_t addr;
	uint64_t seq;  /* number of its registration or last move; 0: free */
	uint64_t born; /* number of its registration, from which its handle is made */
	uint32_t code_len;
	uint32_t unit;	   /* its slot begins at this multiple of WIRE_SLOT_ALIGN */
	uint32_t nr_units; /* the slot's length */
	uint32_t next;	   /* next live node that begins nearby, or next free node; 0: none */
	uint16_t facility;
	uint16_t type;	  /* type of its record: WIRE_ROUTINE or WIRE_OBJECT */
	uint32_t version; /* version of its slot; the shared one is never read back */
	uint32_t sibling; /* the next range of its routine, and of the last the first; 0: none */
};

#define DBGDYN_NR_LEVELS  6
#define DBGDYN_NR_CLASSES 80

struct dbgdyn_arena {
	uint64_t base, end;
};

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
	uint64_t head;	    /* behind the last record, or the pad before the next */
	uint64_t published; /* the value of reg->head; the shared one is never read back */
	uint64_t seq;	    /* the last one given out */
	uint32_t flush_wanted;
	uint32_t handed; /* the descriptor is with the daemon, which has not attached yet */
	uint32_t nr_facilities, nr_ranges;
	uint32_t check_pid; /* fork does not wipe this page here: compare pid */
	uint32_t pid;
	uint32_t no_syscalls; /* some facility may make none */
	size_t allowed_len;   /* dbgdyn_layout_allowed, of when this page was made; 0: ask */
	size_t area_len;      /* length of the private area before this page; 0: none */

	uint32_t *words;
	uint32_t nr_words;
	uint32_t all_used; /* a child of fork: whatever the parent told may live anywhere */
	uint64_t *used;	   /* a bit for 16 bytes of code, addresses folded as the words' are */
	struct dbgdyn_arena *arenas; /* ascending, disjoint */
	uint32_t nr_arenas, last_arena;
	uint32_t arenas_full;

	uint8_t *heap;
	uint64_t heap_len, heap_end;
	struct dbgdyn_node *nodes; /* chains hold an index + 1 */
	uint32_t nr_nodes, nodes_end;
	uint32_t free[DBGDYN_NR_CLASSES];
	uint32_t *live[DBGDYN_NR_LEVELS];
	uint32_t nr_live[DBGDYN_NR_LEVELS];
	uint32_t nr_live_chains[DBGDYN_NR_LEVELS]; /* powers of two */
	uint64_t nr_unlisted;

	uint32_t timeout_ms[WIRE_NR_FACILITIES];
	uint8_t open[WIRE_NR_FACILITIES];  /* begun and not ended */
	uint8_t quiet[WIRE_NR_FACILITIES]; /* DBGDYN_NO_SYSCALLS */
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
/* Slot in the low byte, above 0; the rest is the registry's generation. */
static inline uint64_t dbgdyn_context_make(const struct dbgdyn_state *s, uint32_t index)
{
	return s->generation << 8 | (index + 1);
}

/* ---- registry (registry.c) ------------------------------------------------------------------- */

/* With the lock held: open the registry if there is none. @opts may be NULL. */
int dbgdyn_registry_open(struct dbgdyn_state *s, const struct dbgdyn_options *opts);
/* With the lock held: what a child that is forked from now on has lived as of change @seq. */
void dbgdyn_inherited_announce(uint64_t seq);
/* With the lock held: one range, of an application's (WIRE_RANGE_OWNED) or an arena. */
int dbgdyn_range_add(struct dbgdyn_state *s, uint32_t facility, enum wire_range_kind kind,
		     uint64_t base, uint64_t len);
/* Not NULL, not empty, not wrapping. */
bool dbgdyn_range_good(const void *base, size_t len);
bool dbgdyn_attached(const struct dbgdyn_state *s);

/* ---- code by its address (live.c): what the sampler must know of addresses ------------------- */

/*
 * With the lock held: have the sampler know [addr, addr + len), with its words resident. True where
 * that was news.
 */
bool dbgdyn_arena_tell(struct dbgdyn_state *s, uint32_t facility, uint64_t addr, uint64_t len);
/* With the lock held: mark the addresses as used. Whether some were before. */
bool dbgdyn_used_mark(struct dbgdyn_state *s, uint64_t addr, uint64_t len);
/* With the lock held: the words of these addresses become that of @seq. */
void dbgdyn_words_move(struct dbgdyn_state *s, uint64_t addr, uint64_t len, uint64_t seq);

/* ---- code by its address (live.c): what lives ------------------------------------------------ */

/* All with the lock held. */
void dbgdyn_live_add(struct dbgdyn_state *s, struct dbgdyn_node *n);
/* Take out all that overlap the addresses: a chain, 0 where there are none. */
uint32_t dbgdyn_live_take(struct dbgdyn_state *s, uint64_t addr, uint64_t len);

/* ---- heap (heap.c): the slots ---------------------------------------------------------------- */

/* With the lock held: a node with a slot for a record of @len bytes, not live yet. NULL: full. */
struct dbgdyn_node *dbgdyn_heap_take(struct dbgdyn_state *s, size_t len);
/* It is free again; no chain holds it. */
void dbgdyn_heap_give(struct dbgdyn_state *s, struct dbgdyn_node *n);
/* Change what the slot holds: between these two calls. */
void *dbgdyn_slot_begin(struct dbgdyn_state *s, struct dbgdyn_node *n);
void dbgdyn_slot_end(struct dbgdyn_state *s, struct dbgdyn_node *n);
/* Names a routine, above 0; @n NULL: one that is not listed. */
uint64_t dbgdyn_handle_make(const struct dbgdyn_state *s, const struct dbgdyn_node *n,
			    uint64_t seq);
/* The node behind it; NULL with *@result DBGDYN_EINVAL or _EFULL. */
struct dbgdyn_node *dbgdyn_handle_find(struct dbgdyn_state *s, uint32_t facility, uint64_t handle,
				       int *result);

/* ---- change (change.c): what all of them have in common -------------------------------------- */

struct dbgdyn_change {
	struct dbgdyn_state *s;
	uint32_t facility;
	bool asked; /* a daemon has the registry: records go into the ring, with their bytes */
	uint64_t seq;
	uint64_t time_ns; /* when it happened; 0: that is not told */
	bool announced;	  /* there is a record in the ring */
	bool bell;	  /* the daemon should look */
};

/*
 * Lock, and begin a change of an open @facility. DBGDYN_OK; or _EREFUSED, or _EFULL, counted, with
 * nothing held.
 */
int dbgdyn_change_begin(struct dbgdyn_change *c, struct dbgdyn_state *s, uint32_t facility);
/* The next number is this change's. */
void dbgdyn_change_number(struct dbgdyn_change *c);
/* Room for a record in the ring, NULL where there is none or nobody to read it. */
void *dbgdyn_change_reserve(struct dbgdyn_change *c, size_t len);
/* The same after NULL, for a later one of that length (dbgdyn_ring_turn). */
void dbgdyn_change_turn(struct dbgdyn_change *c, size_t len);
void dbgdyn_change_tell(struct dbgdyn_change *c, size_t len);
/* End what is in the chain: slots, words. */
void dbgdyn_change_close(struct dbgdyn_change *c, uint32_t chain);
/* All is stored: the number goes out. Returns 1 where a doorbell is due, else 0. Unlocks. */
int dbgdyn_change_commit(struct dbgdyn_change *c);
/* Something could not be told. */
int dbgdyn_dropped(struct dbgdyn_state *s);

/* ---- ring (change.c) ------------------------------------------------------------------------- */

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

/* ---- doorbell (dbgdyn.c) --------------------------------------------------------------------- */

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
bool dbgdyn_doorbell(const struct dbgdyn_state *s);
/* The result of a call whose change ended with @result: 1 rings the doorbell. */
int dbgdyn_changed(const struct dbgdyn_state *s, int result);

#endif
