/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Workloads in the daemon: whose each sample is, and in which minute it was. Every image keeps,
 * beside the counts of its profile, a table of the same counts divided among lives of processes,
 * threads and minutes; the flush that puts the profile puts the table too, so that both have the
 * same sums. Which processes are worth a pid of their own is decided then.
 */
#ifndef DCPI_DAEMON_WORKLOAD_H
#define DCPI_DAEMON_WORKLOAD_H

#include "profdb.h"

struct workloads;

struct workloads *workloads_new(void); /* NULL: no memory */
/* Events from @first on count nanoseconds of threads and no samples. */
void workloads_set_timed(struct workloads *w, uint32_t first);
/* After all tables were freed. */
void workloads_free(struct workloads *w);

/* ---- whose a sample is (life.c) -------------------------------------------------------------- */

/* A life that always is there, of a process of which nothing is known; and the idle task. */
enum { WORKLOAD_NOBODY = 1, WORKLOAD_IDLE = 2 };

#define WORKLOAD_NO_UID UINT32_MAX
/* A process that lives for less is brief: its samples are few, and all at other places. */
#define WORKLOAD_BRIEF_NS 10000000

/* One life of a process; its names may be NULL, or as long as they like. */
struct workload_who {
	const char *comm, *exe, *cgroup, *label;
	uint32_t uid; /* or WORKLOAD_NO_UID */
	int32_t pid;
	bool brief; /* it was gone so soon that its pid is not kept */
};

/*
 * The number of a new life. WORKLOAD_NOBODY where there is no memory for it; where there are too
 * many, or it is brief, that of all processes that are equal but for their pid, as of
 * workload_group.
 */
uint32_t workload_life(struct workloads *w, const struct workload_who *who);
/* All processes that are equal to @who but for their pid; none is counted by that. */
uint32_t workload_group(struct workloads *w, const struct workload_who *who);
/* It is known better by now who life @number is, a number of workload_life. Returns its number,
 * which is another one only where the old one was of many. */
uint32_t workload_life_change(struct workloads *w, uint32_t number, const struct workload_who *who);
/* Life @number stands for many processes. */
bool workload_is_group(const struct workloads *w, uint32_t number);
/* Life @number, and a thread of it (0: none), with all names; valid until the next change. */
struct profdb_workload workload_describe(const struct workloads *w, uint32_t number,
					 uint32_t thread);
/* Life @number as a file without threads has it; valid likewise. Its pid means nothing. */
struct profdb_workload workload_owner(struct workloads *w, uint32_t number);
/* Life @number is that of a process that is still known; up to workload_sweep. */
void workload_mark(struct workloads *w, uint32_t number);
/* Lives that are neither marked nor in a table are over. */
void workload_sweep(struct workloads *w);
/*
 * A new epoch: every process is counted anew, and none is kept apart; those whose number is a
 * group's have to get another one for that. The driver gives threads new numbers. True: so does
 * workload_thread, and counts that wait outside of tables lose theirs.
 */
bool workload_new_epoch(struct workloads *w);

/* ---- names of threads (life.c) --------------------------------------------------------------- */

/* The number of the name that the driver calls @thread; @name tells it when it is not known yet. 0:
 * it has none, or there is no room. */
uint32_t workload_thread(struct workloads *w, uint32_t thread,
			 const char *(*name)(const void *ctx, uint32_t thread), const void *ctx);
const char *workload_thread_name(const struct workloads *w, uint32_t number);

/* ---- minutes (minute.c) ---------------------------------------------------------------------- */

enum { WORKLOAD_NR_STEPS = 8 };

/* A clock that counts from boot, and what it is in UTC; zero-initialize. */
struct workload_clock {
	struct workload_clock_step {
		uint64_t from_ns;
		int64_t offset_ns; /* distance of UTC from the clock */
	} steps[WORKLOAD_NR_STEPS];
	size_t nr;
};

/* UTC is @utc_ns at @time_ns, not before the last look. */
void workload_clock_look(struct workload_clock *c, uint64_t time_ns, int64_t utc_ns);
/* The minute of a sample, as the clock was set then. */
static inline uint32_t workload_clock_minute(const struct workload_clock *c, uint64_t time_ns)
{
	size_t i = c->nr;
	int64_t utc_ns;

	while (i > 1 && c->steps[i - 1].from_ns > time_ns)
		i--;
	utc_ns = (int64_t)(time_ns + (i ? (uint64_t)c->steps[i - 1].offset_ns : 0));
	return utc_ns < 0 ? 0 : (uint32_t)(utc_ns / 60000000000);
}

/* ---- counts of an image (table.c) ------------------------------------------------------------ */

struct workload_table;

struct workload_where {
	uint32_t life, thread; /* numbers; 0: not known */
	uint32_t minute;       /* UTC */
};

/* Room for @nr more counts; the table is made where *@t is NULL. 0 or -ENOMEM. */
int workload_table_reserve(struct workloads *w, struct workload_table **t, size_t nr);
/* The same in *@to for what comes from @from (may be NULL: nothing). */
int workload_table_reserve_from(const struct workload_table *from, struct workload_table **to,
				size_t nr);
/* Samples on their way to an offset of a table. */
struct workload_add {
	struct workload_table *to; /* NULL: they are left out */
	struct workload_where where;
	uint64_t off, n;
	uint32_t event;
};

/* Add them; there is room for them. Their places are brought into the caches together. */
void workload_tables_add(const struct workload_add *v, size_t nr);
/* All of @from to @to, which has room for them, at the offsets that @moved gives. */
void workload_table_move(struct workload_table *from, struct workload_table *to,
			 uint64_t (*moved)(void *ctx, uint64_t off), void *ctx);
/* How many there are. @t may be NULL. */
size_t workload_table_nr(const struct workload_table *t);
/* Samples in it, of @event. */
uint64_t workload_table_sum(const struct workload_table *t, uint32_t event);
void workload_table_clear(struct workload_table *t); /* may be NULL */
void workload_table_free(struct workload_table *t);

/* ---- what goes out (table.c) ----------------------------------------------------------------- */

struct workload_image {
	struct profdb_image_ref ref;
	const struct workload_table *table;
};

/*
 * Within a flush: put the tables of these images. @events: as profiles have them. 0, or negative
 * with @err, in which nothing is yet: -ENOMEM, or a failure of profdb_flush_put_workloads; those of
 * which no later flush can be better are logged, and cost the counts.
 */
int workload_put(struct workloads *w, struct profdb *db, const struct profdb_event *events,
		 size_t nr_events, const struct workload_image *images, size_t nr,
		 struct base_err *err);
/* The next flush with samples brings this note along, as profdb_workloads_note takes it; where
 * there is no room or memory it is dropped. */
void workload_note(struct workloads *w, const struct profdb_note *n);
/* The tables that were put are on disk. The caller clears the tables, then sweeps. */
void workload_written(struct workloads *w);

struct workload_stats {
	uint64_t lives;	    /* that are known now */
	uint64_t apart;	    /* processes kept by pid in this epoch */
	uint64_t joined;    /* written in this epoch under those that are equal but for their pid */
	uint64_t counts;    /* in tables now */
	uint64_t lost;	    /* samples that the file did not take */
	unsigned int level; /* how much was left out for want of room; 0: nothing */
};
void workload_stats_get(const struct workloads *w, struct workload_stats *out);

#endif
