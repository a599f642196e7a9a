/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the sampling programs and the source "bpf", besides the table (count_table.h). */
#ifndef DCPI_BPF_SAMPLE_H
#define DCPI_BPF_SAMPLE_H

/* Modes of the CPU, numbered as enum driver_mode. */
enum { SAMPLE_USER = 0, SAMPLE_KERNEL = 1 };

enum {
	SAMPLE_NR_RANGES = 16, /* ranges of one process */
	SAMPLE_NR_CLIENTS = 1024,
	SAMPLE_NR_SLOTS = 4096,	 /* for clients; a power of two */
	SAMPLE_NR_PROBES = 16,	 /* slots in which a client may stand */
	SAMPLE_BLOCK_SHIFT = 12, /* log2 of the number of addresses that share a word */
	SAMPLE_NR_PAGES = 64,	 /* pages of a client's words, each of 2^SAMPLE_PAGE_SHIFT words */
	SAMPLE_PAGE_SHIFT = 10,
	SAMPLE_NR_PINS = 8,	       /* pages of a client that are pinned at most */
	SAMPLE_NOTES_LEN = 4096,       /* ring of notes */
	SAMPLE_FORKS_LEN = 256 * 1024, /* ring of forks */
};

/* A table wants to be drained; or a program begins, and wake_at_exec was set. */
enum sample_note { SAMPLE_NOTE_DRAIN = 0, SAMPLE_NOTE_EXEC = 1 };

/* Which of the tables, that stand in one array, is a CPU's of a set. */
#define SAMPLE_TABLE(cpu, set) (2 * (cpu) + ((set) & ~SAMPLE_BANK))

/* A flag of the set's number: threads get numbers of bank 1 (thread_names.h). */
#define SAMPLE_BANK 0x80000000u

/* The largest number that a program may add to a pointer. */
#define SAMPLE_DELTA_MAX (INT64_C(1) << 28)

/* The data that programs read at each sample and the daemon writes: one cache line. */
struct sample_shared {
	uint64_t since_ns[2]; /* when each set was last taken into use; nothing in it is older */
	uint32_t set;	      /* which is, and with SAMPLE_BANK the bank of names; written after */
	uint32_t nr_clients;  /* no more stand in the slots: these are looked at only then */
	struct count_shape shape;
	int32_t irq_regs_delta; /* from a CPU's hrtimer_bases to its __irq_regs, below the limit */
	uint64_t tick_function; /* function of the timer that is the scheduler's tick */
	uint32_t tick_event;
	uint32_t stride; /* elements from one table to the next */
};

_Static_assert(sizeof(struct sample_shared) == 64, "sample_shared");

/* ---- clients --------------------------------------------------------------------------------- */

/* Instead of a tgid: its process has ended, the slot is for the daemon to clear. */
#define SAMPLE_GONE UINT32_MAX

/*
 * See struct driver_client. It stands in the first slot from that of its tgid's hash on that was
 * not in use. The daemon writes all of it; the kernel only makes it GONE.
 */
struct sample_client {
	uint32_t tgid;	     /* 0: no client, nor behind it one that looked here first */
	uint32_t seq;	     /* odd while the daemon writes, another one afterwards */
	uint64_t start, end; /* that hold all ranges */
	uint64_t words, cursor;
	uint32_t mask;	     /* mask of the words' numbers */
	uint16_t nr;	     /* ranges; of one start and end tell all */
	uint16_t with_words; /* bit i: range i is of that kind */
	uint16_t ranges;     /* where they stand */
	uint16_t unused[7];
};

_Static_assert(sizeof(struct sample_client) == 64, "sample_client");

struct sample_ranges {
	struct {
		uint64_t start, end;
	} items[SAMPLE_NR_RANGES];
};

/*
 * The kernel's own addresses of pages of its words, by which they are read without asking the
 * process's memory: once, as nothing of that is in the caches behind an interrupt, most of what a
 * sample with a word costs. 0: no sample met it; SAMPLE_PAGE_WANTED: one did, and read it from the
 * process. The daemon pins pages that are wanted (bpf_pins_linux.c) and writes their addresses.
 */
struct sample_pages {
	uint64_t at[SAMPLE_NR_PAGES];
};

#define SAMPLE_PAGE_WANTED 1

/* Request and answer of the program pins_take. */
struct sample_pins {
	uint64_t at[SAMPLE_NR_PINS]; /* the kernel's own addresses; 0: nothing is pinned there */
	int32_t tgid;
	uint32_t unused;
};

static inline __attribute__((always_inline)) uint32_t sample_slot(uint32_t tgid)
{
	return tgid * 0x9e3779b1u / (0x100000000ull / SAMPLE_NR_SLOTS);
}

/* A fork of a client, told once: its child is there, but did not run yet. */
struct sample_fork {
	uint64_t begun_ns, time_ns; /* CLOCK_MONOTONIC: its FORK event lies between them */
	uint64_t cursor;
	uint32_t parent, child; /* tgid */
};

#endif
