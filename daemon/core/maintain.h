/* SPDX-License-Identifier: BSD-2-Clause */
/* Removal while the daemon runs (maintain.c): pseudo-images over the quota, and old epochs once a
 * day. */
#ifndef DCPI_DAEMON_MAINTAIN_H
#define DCPI_DAEMON_MAINTAIN_H

#include "retain.h"

/* ---- the quota of pseudo-images -------------------------------------------------------------- */

#define QUOTA_MIB 10240 /* unless told */

struct quota {
	/* set by the caller */
	struct profdb *db;
	const char *path; /* path of the database, for our child to open */
	uint64_t max;	  /* bytes of <db>/dyn that are allowed; 0: as many as there are */

	/* kept here; zero-initialize */
	uint64_t len; /* when measured last */
	bool over;
	bool checked, announced;
	uint64_t images_written;       /* when measured */
	uint64_t next_ns;	       /* base_now_ns before which no other begins, while */
	uint64_t epochs_ns;	       /* the database's folder was changed then last */
	uint64_t wait_ns;	       /* between them; 0: the last removed something */
	uint64_t tried_len;	       /* len when it began */
	int32_t child;		       /* removes what nothing refers to; 0: none */
	uint64_t measured_ns, took_ns; /* when it was, and how long that took */
	struct quota_user *users;      /* while it is over */
	size_t nr_users;
};

/* ---- the day's maintenance (dcpid -gc_daily) ------------------------------------------------- */

struct daily_clock {
	int64_t last; /* UTC: it was done, or need not be done for what was before; 0: not known */
	int64_t offset; /* offset of UTC from the time since boot, at the last look */
	int64_t first;	/* seconds since boot at the first look */
	bool looked;
};

/* The last time up to @now that was 03:00, local time, and @spread seconds (below two hours: so
 * that machines do not all do it at once). */
int64_t daily_slot(int64_t now, uint32_t spread);
/*
 * Was there such a time since it was done last? If @s does not know when that was, or it would be
 * to come, it counts as done now; so it does when the clock has jumped, for by a wrong clock every
 * epoch may be old. Nothing is due in the ten minutes after the first look, within which a clock
 * that is wrong at boot is put right. @boot: seconds since boot, suspended ones too.
 */
bool daily_is_due(struct daily_clock *s, int64_t now, int64_t boot, uint32_t spread);

struct daily {
	/* set by the caller */
	struct profdb *db;
	const char *path; /* path of the database, for our child to open */
	const char *platform;
	uint64_t size; /* bytes that old epochs may keep; 0: whatever it takes */
	bool wanted;

	/* kept here; zero-initialize */
	struct daily_clock when;
	int64_t stored;	  /* time in when.last, in the database */
	int64_t started;  /* UTC, by the child */
	uint64_t next_ns; /* base_now_ns of the next look */
	int32_t child;	  /* 0: none */
	int report;	  /* descriptor of the report at its end */
};

#endif
