/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's sums of waiting and running threads get their paths, and are handed on in order of
 * time. No kernel is needed. */
#include "bpf_waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/callpaths.h"

/* ---- paths ----------------------------------------------------------------------------------- */

/* A path has the hash of its frames in one life of a process. */
struct path_key {
	uint64_t instance, path[2];
	uint64_t tgid;
};

struct path {
	struct path_key key;
	uint64_t time_ns;
	uint32_t used; /* the last gathering in which a sum named it */
	uint16_t nr_kernel, nr;
	uint8_t end;
	uint64_t frames[];
};

static bool is_sound(const struct wait_path *r, size_t len)
{
	return len >= sizeof(*r) && len == sizeof(*r) + r->nr * sizeof(uint64_t) && r->nr &&
	       r->nr <= CALLPATH_NR_FRAMES && r->nr_kernel <= r->nr &&
	       r->end < DRIVER_NR_CALLPATH_ENDS;
}

static struct path *find(const struct bpf_waits *w, const struct path_key *key)
{
	return base_map_get(&w->paths, key, sizeof(*key));
}

static size_t bytes_of(size_t nr)
{
	return sizeof(struct path) + nr * sizeof(uint64_t);
}

static struct path *path_new(const struct wait_path *r, const struct path_key *key)
{
	struct path *p = malloc(bytes_of(r->nr));

	if (!p)
		return NULL;
	*p = (struct path){ .key = *key, .nr_kernel = r->nr_kernel, .nr = r->nr, .end = r->end };
	memcpy(p->frames, r + 1, r->nr * sizeof(uint64_t));
	return p;
}

static struct path *path_add(struct bpf_waits *w, const struct wait_path *r,
			     const struct path_key *key)
{
	size_t bytes = bytes_of(r->nr);
	struct path *p = bytes <= BPF_WAITS_BYTES_MAX - w->path_bytes ? path_new(r, key) : NULL;

	if (p && base_map_set(&w->paths, &p->key, sizeof(p->key), p) < 0) {
		free(p);
		p = NULL;
	}
	if (!p) {
		w->lost_paths++;
		return NULL;
	}
	w->path_bytes += bytes;
	w->new_bytes += bytes;
	return p;
}

void bpf_waits_path(struct bpf_waits *w, const void *record, size_t len)
{
	const struct wait_path *r = record;
	struct path_key key;
	struct path *p;

	if (!is_sound(r, len))
		return;
	key = (struct path_key){ r->instance, { r->path[0], r->path[1] }, r->tgid };
	p = find(w, &key);
	if (!p)
		p = path_add(w, r, &key);
	if (!p)
		return;
	/* It was walked anew: its addresses mean what they mean now. */
	p->time_ns = r->time_ns;
	p->used = w->round;
}

/* A path in the ring may be that of a wait whose first sum is read only the next time. */
void bpf_waits_gathered(struct bpf_waits *w)
{
	void *value;

	w->round++;
	w->new_bytes = 0;
	for (size_t i = 0; base_map_next(&w->paths, &i, &value);) {
		struct path *p = value;

		if (w->round - p->used <= 2)
			continue;
		w->path_bytes -= bytes_of(p->nr);
		base_map_del(&w->paths, &p->key, sizeof(p->key));
		free(p);
		i--;
	}
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* A sum in the queue, before its frames, of which the first is no address (driver.h). */
struct joined {
	uint64_t first_ns, time_ns, instance, ns;
	uint32_t tgid, thread;
	uint16_t nr_kernel, nr;
	uint8_t end, kind;
	uint8_t unused[2];
};

_Static_assert(sizeof(struct joined) % sizeof(uint64_t) == 0, "joined");

struct room {
	struct joined head;
	uint64_t frames[CALLPATH_NR_FRAMES];
};

/* The outermost frame makes way for the wait itself. */
static void join(struct room *to, const struct path *p)
{
	bool cut = p->nr == CALLPATH_NR_FRAMES;
	size_t nr = p->nr - cut;

	memcpy(to->frames + 1, p->frames, nr * sizeof(uint64_t));
	to->head.nr += (uint16_t)nr;
	to->head.nr_kernel += (uint16_t)(p->nr_kernel < nr ? p->nr_kernel : nr);
	to->head.end = cut ? DRIVER_CALLPATH_CUT : p->end;
	if (p->time_ns < to->head.time_ns)
		to->head.first_ns = p->time_ns;
}

static enum driver_wait kind_of(const struct bpf_waits *w, const struct wait_key *key,
				const struct path *p)
{
	return bpf_wait_kind(&w->kinds, (enum wait_state)key->state, p ? p->frames : NULL,
			     p ? p->nr_kernel : 0);
}

static struct path *path_of(const struct bpf_waits *w, const struct wait_key *key)
{
	const struct path_key k = { key->instance, { key->path[0], key->path[1] }, key->tgid };
	struct path *p = find(w, &k);

	if (p)
		p->used = w->round;
	return p;
}

void bpf_waits_sum(struct bpf_waits *w, const struct wait_key *key, const struct wait_sum *sum)
{
	const struct path *p = path_of(w, key);
	struct room room = { .head = { .first_ns = sum->last_ns,
				       .time_ns = sum->last_ns,
				       .instance = key->instance,
				       .ns = sum->ns,
				       .tgid = key->tgid,
				       .thread = key->thread,
				       .nr_kernel = 1,
				       .nr = 1 } };

	if (!sum->ns)
		return;
	room.frames[0] = 0;
	room.head.kind = kind_of(w, key, p);
	room.head.end =
		key->state == WAIT_RUNS ? DRIVER_CALLPATH_COMPLETE : DRIVER_CALLPATH_UNREADABLE;
	if (p)
		join(&room, p);
	if (bpf_queue_add(&w->queue, room.head.time_ns, &room,
			  sizeof(room.head) + room.head.nr * sizeof(uint64_t)) < 0)
		w->lost_ns += sum->ns;
}

/* ---- handing on ------------------------------------------------------------------------------ */

struct telling {
	struct bpf_waits *w;
	const struct driver_sink *sink;
};

static int hand(void *ctx, const uint64_t *record)
{
	const struct telling *t = ctx;
	const struct joined *j = (const void *)record;
	const struct driver_callpath c = {
		.first_ns = j->first_ns,
		.time_ns = j->time_ns,
		.instance = j->instance,
		.count = j->ns,
		.pid = (int32_t)j->tgid,
		.event = j->kind == DRIVER_WAIT_RUNS ? t->w->event_run : t->w->event_wait,
		.thread = j->thread,
		.wait = j->kind,
		.mode = DRIVER_KERNEL,
		.end = j->end,
		.nr_kernel = j->nr_kernel,
		.nr = j->nr,
	};

	t->w->handed_ns += j->ns;
	t->w->nr_handed++;
	return t->sink->callpath
		       ? t->sink->callpath(t->sink->ctx, &c, record + sizeof(*j) / sizeof(*record))
		       : 0;
}

int bpf_waits_hand(struct bpf_waits *w, uint64_t until_ns, const struct driver_sink *sink)
{
	struct telling t = { w, sink };

	return bpf_queue_hand(&w->queue, until_ns, hand, &t);
}

void bpf_waits_release(struct bpf_waits *w)
{
	void *value;

	for (size_t i = 0; base_map_next(&w->paths, &i, &value);)
		free(value);
	base_map_release(&w->paths);
	bpf_queue_release(&w->queue);
	bpf_wait_kinds_release(&w->kinds);
}
