/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the programs that measure waiting and running threads (waiting.bpf.c) and the source
 * "bpf". Nanoseconds are added up by struct wait_key in two maps; programs use the one of the set
 * of tables in which samples are counted (sample.h), the daemon reads the other one.
 */
#ifndef DCPI_BPF_WAITS_H
#define DCPI_BPF_WAITS_H

enum {
	WAIT_NR_KEYS = 16384,	 /* keys in each of the two maps, and more for each CPU */
	WAIT_RING_LEN = 1 << 21, /* ring of paths */
	WAIT_STATE_BITS = 3,
};

/* The state of a thread. It stands below the time since when it holds: struct wait_thread. */
enum wait_state {
	WAIT_UNKNOWN,  /* the thread was not met yet, or it has ended */
	WAIT_RUNS,     /* on a CPU */
	WAIT_BLOCKED,  /* until it is woken */
	WAIT_IO,       /* likewise, for a disk (the kernel's "iowait") */
	WAIT_RUNNABLE, /* woken or preempted, until it is on a CPU */
	/* The first two of a thread that was there before the programs: its path is another one. */
	WAIT_BLOCKED_BEFORE,
	WAIT_IO_BEFORE,
	WAIT_NR_STATES
};

/*
 * A thread, in the kernel's storage of its task. @since is exchanged as a whole, so each nanosecond
 * is added once, whichever CPU does so. The others are written only while the thread runs, by its
 * own CPU; or before @since is first set.
 */
struct wait_thread {
	uint64_t since; /* nanoseconds << WAIT_STATE_BITS | state */
	uint64_t instance;
	uint64_t path[2];   /* hash of the path with which it left its CPU; 0: none */
	uint64_t before[2]; /* likewise, when it was first looked at; never written again */
};

struct wait_key {
	uint64_t instance;
	uint64_t path[2]; /* 0 with WAIT_RUNS */
	uint32_t tgid;
	uint32_t thread; /* number of its name (thread_names.h) */
	uint32_t state;	 /* up to WAIT_RUNNABLE */
	uint32_t unused;
};

struct wait_sum {
	uint64_t ns, nr;  /* in all; how many were added */
	uint64_t last_ns; /* end of the one that was added last */
	uint64_t sent;	  /* its frames are in the ring, or were */
};

/* A path in the ring, before its frames: sent when a thread first leaves its CPU with its key in a
 * set. */
struct wait_path {
	uint64_t time_ns, instance;
	uint64_t path[2];
	uint32_t tgid;
	uint16_t nr_kernel, nr;
	uint8_t end;
	uint8_t unused[7];
};

_Static_assert(sizeof(struct wait_key) == 40 && sizeof(struct wait_path) == 48, "waits");

/* The counters of one CPU; they only grow. */
struct wait_counts {
	uint64_t received_ns; /* added, or lost */
	uint64_t lost_ns;     /* found the map full */
	uint64_t lost_paths;  /* waits whose path found the ring full */
	uint64_t pad[5];      /* to a line of the cache */
};

_Static_assert(sizeof(struct wait_counts) == 64, "wait_counts");

#endif
