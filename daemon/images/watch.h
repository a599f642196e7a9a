/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Viewers of the running daemon (dcpitop): each has the samples that were stored since it asked
 * last, and that it may see, as a file of workloads has them. Nothing waits for a viewer: what it
 * does not fetch stays here, bounded, until it is forgotten.
 */
#ifndef DCPI_IMAGES_WATCH_H
#define DCPI_IMAGES_WATCH_H

#include "images.h"

enum {
	WATCH_NR_VIEWERS = 8,
	WATCH_NR_OTHERS = 4, /* of these, viewers of users that may not see all */
	WATCH_NR_OWN = 2,    /* viewers of one such user */
	WATCH_NR_COUNTS = 8192,
	WATCH_NR_IMAGES = 1024,
	WATCH_NR_WORKLOADS = 2048,
	WATCH_TEXT_MAX = 256 << 10, /* bytes of names of these, and as many of paths */
};
/* A viewer that asks nothing for so long is forgotten. */
#define WATCH_SILENCE_NS UINT64_C(5000000000)
/* Draining costs: a viewer that asks more often gets what there is, and so do all of them together.
 */
#define WATCH_PAUSE_NS	   UINT64_C(400000000)
#define WATCH_PAUSE_ALL_NS UINT64_C(50000000)

struct watch {
	size_t nr;		      /* viewers */
	struct watch_viewer *viewers; /* WATCH_NR_VIEWERS places; watch.c */
};

/* @w may be NULL. */
static inline bool watch_has_viewers(const struct watch *w)
{
	return w && w->nr != 0;
}

/* A connection to the daemon. */
struct watch_peer {
	int32_t pid;
	uint32_t uid;
	int sock;
	bool all; /* it may see the samples of all users */
};

/*
 * Images are written for viewers, and then not for so long, by how long it took: one part in
 * WATCH_WRITE_PART of the time is spent on that. A busy machine makes it seem long, and what runs
 * only now is to be named while its viewer looks: so the pause has an end.
 */
enum { WATCH_WRITE_PART = 500 };
#define WATCH_WRITE_MIN_NS UINT64_C(1000000000)
#define WATCH_WRITE_MAX_NS UINT64_C(5000000000)
uint64_t watch_write_pause(uint64_t took_ns);

struct watch *watch_new(void); /* NULL: no memory */
void watch_free(struct watch *w);
/* Is there a viewer that asked last before @ns? */
bool watch_is_due(const struct watch *w, uint64_t ns);
/* Is there a viewer of this user's that may not see all? False for root. */
bool watch_wants(const struct watch *w, uint32_t uid);
/* Is there a viewer that is shown the samples of this user's processes? @w may be NULL. */
bool watch_shows(const struct watch *w, uint32_t uid);
/* Samples of @img were stored. @w may be NULL. Where there is no memory, or no room, they count for
 * the names "left out", or are missing. */
void watch_add(struct watch *w, const struct workloads *workloads, struct image *img,
	       const struct store_count *c);
/* Numbers of workloads may be given anew. @w may be NULL. */
void watch_forget(struct watch *w);
/* Viewers that were silent are forgotten. @w may be NULL. */
void watch_expire(struct watch *w, uint64_t now_ns);

/* When @peer asked last; 0: it is new. */
uint64_t watch_asked(const struct watch *w, const struct watch_peer *peer);
/*
 * The samples since @peer asked last, in the form of a file of workloads, onto @out: nothing where
 * it is new. They are gone from here. 0, or negative with @err: -DCPI_ELIMIT (too many viewers),
 * -ENOMEM.
 */
int watch_take(struct watch *w, const struct watch_peer *peer, const struct driver_event *events,
	       size_t nr_events, uint64_t now_ns, struct base_buf *out, struct base_err *err);

#endif
