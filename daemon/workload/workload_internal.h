/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the parts of workload.h. */
#ifndef DCPI_DAEMON_WORKLOAD_INTERNAL_H
#define DCPI_DAEMON_WORKLOAD_INTERNAL_H

#include "budget.h"
#include "workload.h"

enum {
	WORKLOAD_NR_LIVES = 1 << 16,   /* more processes count under their groups */
	WORKLOAD_NR_THREADS = 1 << 14, /* further names are not kept */
	WORKLOAD_NR_COUNTS = 1 << 20,  /* more lose thread and pid, twice as many the minute, too */
	WORKLOAD_NR_APART = 512,       /* processes kept by pid in an epoch */
	WORKLOAD_NR_APART_NS = 256,   /* further ones, for time alone: it takes none from samples */
	WORKLOAD_TEXT_MAX = 32 << 20, /* bytes of all names of processes */
	/* Names of an epoch, as the file holds as many again that differ in pid or thread. */
	WORKLOAD_NR_NAMES = PROFDB_NR_WORKLOADS / 2,
	WORKLOAD_THREAD_LEN = 16,
	WORKLOAD_NR_NOTES = 4096, /* that wait for a flush; further ones are not kept */
};

/* Processes that are equal but for their pid. */
struct workload_names {
	char *text; /* comm, exe, cgroup, label, each with its 0; NULL: this one is free */
	size_t len;
	uint32_t uid;
	uint32_t life; /* the one that stands for all of them; 0: none yet */
	bool used;
};

struct workload_one {
	uint32_t names;	    /* index */
	int32_t pid;	    /* 0: it stands for many */
	uint64_t samples;   /* in this epoch */
	uint64_t ns;	    /* likewise, of events that count nanoseconds */
	uint64_t processes; /* that are still to be told of */
	uint64_t telling;   /* counts that workload_put has told of, up to workload_written */
	bool apart;	    /* its pid is kept */
	bool used;
	bool taken; /* not free */
};

struct workload_count {
	uint64_t off, n; /* n 0: a free place */
	uint32_t life, thread, minute, event;
};

struct workload_table {
	struct workloads *of;
	struct workload_table *next, **link;
	struct workload_count *places;
	size_t nr, cap; /* cap: 0 or a power of two, more than nr */
};

struct workloads {
	struct workload_names *names;
	size_t nr_names, cap_names;
	struct base_map by_names; /* index + 1 */
	struct base_buf key;	  /* of these, the last one that was looked for */
	size_t text_len;
	struct budgets *shares; /* of users, since the epoch began */
	struct base_map taken;	/* hashes of the names in these -> anything */
	uint32_t *free_names;
	size_t nr_free_names, cap_free_names;

	struct workload_one *lives; /* [0] is none */
	size_t nr_lives, cap_lives;
	uint32_t *free_lives;
	size_t nr_free_lives, cap_free_lives;
	size_t nr_apart, nr_apart_ns; /* for their samples; for time alone */
	uint64_t samples;	      /* in this epoch, but for those of the idle task */
	uint64_t ns;		      /* likewise, of events that count nanoseconds: */
	uint32_t first_timed;	      /* the first of these; 0: there are none */
	uint64_t joined;

	char (*threads)[WORKLOAD_THREAD_LEN]; /* [0] is "" */
	size_t nr_threads, cap_threads;
	struct base_map by_thread;
	uint32_t *of_driver; /* number + 1 for each of the driver's, or 0 */
	size_t nr_of_driver, cap_of_driver;

	struct workload_table *tables;
	size_t nr_counts;     /* in all of them */
	uint32_t full_minute; /* minute of all counts that are too many; 0: there are none */
	uint64_t seed;	      /* seed of their hashes: programs choose the addresses */

	struct profdb_note
		*notes; /* for the next flush; the first nr_noted of them are in this one */
	size_t nr_notes, cap_notes, nr_noted;

	unsigned int level; /* enum workload_level */
	uint64_t lost, losing;
};

/* When one flush has more workloads than a file may have, the rest of the epoch does without one
 * thing after the other. */
enum workload_level {
	WORKLOAD_ALL,
	WORKLOAD_NO_THREADS,
	WORKLOAD_NO_PIDS,
	WORKLOAD_NO_CGROUPS,
	WORKLOAD_NO_NAMES, /* all is one */
};

/* The life that stands for all that have these names. WORKLOAD_NOBODY where @names is negative, or
 * there is no memory for it. */
uint32_t workload_group_of(struct workloads *w, int64_t names);
/* Its four names. */
const char *workload_text(const struct workload_names *n, unsigned int index);

#endif
