/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes, what they have mapped, and which life of a pid it is. */
#ifndef DCPI_DAEMON_PROCESS_H
#define DCPI_DAEMON_PROCESS_H

#include "daemon_internal.h"

/* ---- images (image.c) ---------------------------------------------------------------------- */

/* Forget files that no mapping shows, pseudo-images of no facility, when they hold no samples. */
void images_drop_unused(struct images *t);
/* What @p (NULL: anybody) counts in, instead of @img: a profile of its own, where that is kept
 * apart; one of its label's. Not for pseudo-images. NULL: no memory. */
struct image *images_of_process(struct images *t, struct image *img, const struct process *p);
size_t images_nr(const struct images *t);
/* References held by mappings and facilities; @img may be NULL. */
struct image *image_get(struct image *img);
void image_put(struct image *img);

/* ---- maps of a process (map.c) ------------------------------------------------------------- */

/* The mapping at @addr, or NULL. */
const struct map *map_find(const struct process *p, uint64_t addr);
/*
 * @m (a reference of its image is taken) stands there from @m->since_ns on; what it covers of older
 * mappings is cut away. Where it stood already it keeps its time. -ENOMEM: nothing changed.
 */
int map_insert(struct process *p, const struct map *m);
/* The same of an event from before the last reading of /proc (known_ns): what was listed stays. */
int map_recall(struct process *p, const struct map *m);
int map_copy(struct process *to, const struct process *from);
void map_clear(struct process *p);
/* A life that was listed only later began at @time_ns: what events told of the one before is gone.
 */
void map_restart(struct process *p, uint64_t time_ns);

/* ---- processes (process.c) ----------------------------------------------------------------- */

struct processes;

struct processes *processes_new(void);
/* Frees what is left; @end sees each process before (may be NULL). */
void processes_free(struct processes *t, void (*end)(void *ctx, struct process *p), void *ctx);
struct process *processes_find(struct processes *t, int32_t pid);
/* The last life of @pid that is over and not yet reaped, or NULL. */
struct process *processes_find_over(const struct processes *t, int32_t pid);
/* A new life; an older one of that pid is over. NULL: no memory. */
struct process *processes_add(struct processes *t, int32_t pid);
/* The life is over; it stays until the next reaping, for counts that still refer to it. Its
 * mappings go at once, unless @p->unsettled. */
void processes_end(struct processes *t, struct process *p);
/* Free the lives that are over but for those that are unsettled; @end sees each before (may be
 * NULL). */
void processes_reap(struct processes *t, void (*end)(void *ctx, struct process *p), void *ctx);
/* Whoever was returned last may be ended: then go on with --*pos. */
bool processes_next(const struct processes *t, size_t *pos, struct process **out);
size_t processes_nr(const struct processes *t);

/*
 * ---- which life of a pid it is (instance.c) --------------------------------------------------
 *
 * Counts of some sources tell it (struct driver_count); events do not, but say that one begins. So
 * the first count of a life says which it is, if it can be: not of a process forked later, and with
 * as many programs executed as its parent's instance and the events told. Events that were lost
 * make that number too low and never too high, so a count of another life does not fit.
 */

/* Is @instance (not 0) that of @p? Where nothing told before, it is from now on. */
bool instance_fits(struct process *p, uint64_t instance);
/* @p begins, by fork (@parent may be NULL), or by exec of the life @old (may be NULL, or @p). */
void instance_fork(struct process *p, const struct process *parent, uint64_t boot_ns);
void instance_exec(struct process *p, const struct process *old, uint64_t boot_ns);
/* @p->start_time_ns, read from /proc, can be that of @instance. */
bool instance_is_listed(const struct process *p, uint64_t instance);
/* /proc was read, and tells from now on what @p is. */
void instance_listed(struct process *p);

#endif
