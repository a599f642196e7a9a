/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the parts of callpath.h. */
#ifndef DCPI_DAEMON_CALLPATH_INTERNAL_H
#define DCPI_DAEMON_CALLPATH_INTERNAL_H

#include "callpath.h"
#include "unwind.h"

/* A frame that was placed: at @off of @image. */
struct callpath_frame {
	struct image *image;
	uint64_t off;
};

/* ---- tree.c ---------------------------------------------------------------------------------- */

/* Zero-initialize, and set nr_events, max and seed. */
struct callpath_tree {
	size_t nr_events;
	size_t max;	       /* nodes at most */
	struct image **images; /* references */
	size_t nr_images, cap_images;
	struct base_map numbers; /* struct image by its pointer: index + 1 */
	struct callpath_node *nodes;
	size_t nr, cap;
	uint64_t *counts; /* nr_events for each node */
	size_t cap_counts;
	uint32_t *slots; /* hash table of the nodes: number, or 0 */
	size_t nr_slots; /* a power of two */
	uint64_t seed;	 /* of the hash: programs choose what is in the tree */
};

/* The node above all paths of that end and life (0: it is not kept). Or -ENOMEM, -DCPI_ELIMIT. */
int64_t callpath_tree_top(struct callpath_tree *t, enum profdb_callpath_end end, uint32_t life);
/* The node of these frames, the innermost first, below @node, which may be an error already. The
 * same. */
int64_t callpath_tree_below(struct callpath_tree *t, int64_t node,
			    const struct callpath_frame *frames, size_t nr);
static inline void callpath_tree_count(struct callpath_tree *t, int64_t node, size_t event,
				       uint64_t n)
{
	t->counts[(size_t)node * t->nr_events + event] += n;
}
/* All but nr_events, max and seed. */
void callpath_tree_clear(struct callpath_tree *t);

/* ---- callpath.c ------------------------------------------------------------------------------ */

/* A frame that is not placed yet. */
struct callpath_open {
	struct sample s; /* its image: a reference */
	size_t frame;	 /* index in the path */
};

/* A path that waits, with all that is needed to continue. */
struct callpath_pending {
	struct process *p;
	uint32_t life; /* number in the workloads */
	struct driver_callpath c;
	uint64_t news;	 /* dyn_news when its frames were looked up last; 0: they were not */
	bool unsettled;	 /* its mappings are not certain yet: nothing of it is placed */
	uint64_t *addrs; /* its own, of c.nr, of those that were unsettled; or NULL */
	struct callpath_frame *frames; /* likewise, with references; image NULL: open. Or NULL */
	struct callpath_open *open;
	size_t nr_open;
	/* While it may continue, c.state and c.stack are these, up to that time of base_now_ns. */
	struct unwind_state state;
	uint64_t *stack;
	uint64_t until_ns;
};

/* ---- callpath.c ------------------------------------------------------------------------------ */

enum { CALLPATH_NR_CALLERS = 1024 };

/* The callers of a path that were placed before, and would be placed again to the same node. */
struct callpath_callers {
	const struct process *p;
	uint64_t maps_version, tree_version;
	uint64_t since_ns; /* of younger paths */
	uint64_t hash[2];  /* of their addresses, whose seed no process knows */
	uint32_t life, node, nr;
	enum driver_callpath_end end;
};

/* ---- rows.c ---------------------------------------------------------------------------------- */

/* A part of a process's memory that the driver has a table of, or knows to have none. */
struct callpath_code {
	struct driver_rows_missing m;
	uint64_t news;	/* dyn_news when its routines were asked for */
	uint64_t print; /* a hash of them */
	uint64_t last;	/* the highest number of their registrations */
	bool ahead;	/* it lies behind one that a path met, and was looked for */
};

/* A file that lacks its table. */
struct callpath_file {
	struct driver_rows_missing m;
	uint64_t since_ns;	/* base_now_ns when it was told */
	uint64_t next_ns;	/* it is not asked for before that time */
	unsigned int nr_failed; /* requests that took too long, or of which a helper died */
	char *path;		/* as an event said; NULL: none did */
	struct base_id id;	/* likewise */
	bool by_id;		/* the mapping did not lead there: by path and id */
	bool others;		/* its process is gone: another one that has the file may show it */
	uint32_t uid;		/* whose process it is; UINT32_MAX: not known */
};

struct callpath_codes {
	struct callpath_code *parts;
	size_t nr, cap;
	size_t next;		  /* part that is checked next; 0: the round is over */
	uint64_t round_ns;	  /* when it began */
	uint64_t took_ns;	  /* CPU time that it took up to now */
	uint64_t read_ns;	  /* when a registry was read early last */
	bool news;		  /* processes had written more code, when they were asked last */
	struct driver_file *gone; /* that this turn found */
	size_t cap_gone;
	struct reader_routine *routines; /* the part that is asked for has them */
	size_t nr_routines, cap_routines;
	struct wire_frame *frames; /* what their runtime told of them */
	size_t nr_frames, cap_frames;
	const struct process *process; /* whose routines they are, while they are gathered … */
	uint64_t gathered_ns;	       /* … from then on */
	bool no_memory;		       /* some of them are not there */
	bool unsupported;
};

enum { CALLPATH_USERS = 64 };

/* A user, and the time that was spent for that one lately. */
struct callpath_user {
	uint32_t uid;
	uint64_t took_ns; /* 0: this place is free */
};

enum { CALLPATH_OF_FILES, CALLPATH_OF_LARGE, CALLPATH_OF_CODE, CALLPATH_NR_BUDGETS };

struct callpath_rows {
	struct callpath_file *files;
	size_t nr, cap;
	bool is_asked;				/* the reader makes the table of … */
	size_t asked;				/* … this one */
	bool was_code;				/* it, or the last one, is code of a process */
	int64_t budget_ns[CALLPATH_NR_BUDGETS]; /* time that may be spent now; below 0: a debt */
	uint64_t refilled_ns;
	struct callpath_user users[CALLPATH_USERS];
	uint64_t halved_ns;
	uint64_t nr_put, nr_none;
	bool is_unknown; /* code waits whose process is not known */
	uint64_t wanted_ns;
};

/* A file whose table the driver has, by the image that was mapped of it. */
struct callpath_known {
	struct driver_rows_missing m;
	struct base_id id, text; /* the image's; id.len 0: its process was not known yet */
	uint32_t uid;		 /* the process's user */
	uint64_t put_ns;
};

/*
 * The frames behind those of @c, a path that ended in code without a table, by the tables that are
 * there now. They are added to @c, and all of them returned, valid up to the next call. Where they
 * end in such code again nothing is added, unless @last: its table may come.
 */
const uint64_t *callpath_continue(struct callpaths *t, const struct process *p,
				  struct driver_callpath *c, const uint64_t *frames, bool last);

/* ---- all of it ------------------------------------------------------------------------------- */

struct callpaths {
	struct callpath_config config;
	const struct callpath_driver *calls;
	struct callpath_stats stats; /* the daemon's part */
	struct callpath_stats times; /* the same of nanoseconds */
	struct callpath_tree tree;
	uint64_t tree_version;		  /* number of its nodes' last change */
	struct callpath_callers *callers; /* CALLPATH_NR_CALLERS */
	struct callpath_pending **waiting;
	size_t nr_waiting, cap_waiting;
	size_t nr_stacks;      /* of those that wait */
	uint64_t unsettled_ns; /* first of known_ns of those that are unsettled; UINT64_MAX */
	struct callpath_rows rows;
	struct callpath_codes codes;
	struct callpath_known *known;
	size_t nr_known, cap_known;
	size_t nr_unlearned; /* of those whose image is not known yet */
	/* Paths that continued, and how they end now; their frames. */
	uint64_t continued, continued_to[DRIVER_NR_CALLPATH_ENDS], frames_found;
	bool *waits; /* nodes of the tree that callpath_put has left, up to callpath_written; or
			NULL */
	uint64_t nr_unfit; /* samples whose paths it could not put */
	uint64_t ns_unfit; /* nanoseconds, likewise */
	/* The path that is being placed uses these. */
	struct callpath_frame frames[DRIVER_NR_FRAMES];
	struct callpath_open open[DRIVER_NR_FRAMES];
	/* One that continues uses these. */
	uint64_t addrs[DRIVER_NR_FRAMES];
	struct unwind_frame found[DRIVER_NR_FRAMES];
};

static inline bool callpath_is_timed(const struct callpaths *t, size_t event)
{
	return event < t->config.nr_events && event >= t->config.nr_events - t->config.nr_timed;
}
/* The account of @event. */
static inline struct callpath_stats *callpath_account(struct callpaths *t, size_t event)
{
	return callpath_is_timed(t, event) ? &t->times : &t->stats;
}

#endif
