/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples are kept once more for each viewer of the running daemon, until it fetches them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "watch.h"

struct watch_viewer {
	struct watch_peer peer;
	uint64_t asked_ns; /* 0: this place is free */
	struct profdb_workloads *to;
	struct base_map images;	   /* number in @to + 1, by struct image: references */
	struct base_map workloads; /* number in @to + 1, by life and thread */
	struct image **held;
	size_t nr_held, cap_held;
	size_t text_len, path_len; /* bytes of names, and of paths of images */
};

uint64_t watch_write_pause(uint64_t took_ns)
{
	uint64_t most_ns = WATCH_WRITE_MAX_NS / WATCH_WRITE_PART;
	uint64_t ns = (took_ns < most_ns ? took_ns : most_ns) * WATCH_WRITE_PART;

	return ns < WATCH_WRITE_MIN_NS ? WATCH_WRITE_MIN_NS : ns;
}

struct watch *watch_new(void)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->viewers = calloc(WATCH_NR_VIEWERS, sizeof(*w->viewers));
	if (w->viewers)
		return w;
	free(w);
	return NULL;
}

/* ---- one viewer ------------------------------------------------------------------------------ */

static void clear(struct watch_viewer *v)
{
	for (size_t i = 0; i < v->nr_held; i++)
		image_put(v->held[i]);
	v->nr_held = 0;
	v->text_len = v->path_len = 0;
	base_map_release(&v->images);
	base_map_release(&v->workloads);
	profdb_workloads_free(v->to);
	v->to = NULL;
}

static void forget_viewer(struct watch *w, struct watch_viewer *v)
{
	clear(v);
	free(v->held);
	*v = (struct watch_viewer){ 0 };
	w->nr--;
}

void watch_free(struct watch *w)
{
	for (size_t i = 0; w && i < WATCH_NR_VIEWERS; i++)
		if (w->viewers[i].asked_ns)
			forget_viewer(w, &w->viewers[i]);
	if (w)
		free(w->viewers);
	free(w);
}

void watch_expire(struct watch *w, uint64_t now_ns)
{
	for (size_t i = 0; w && w->nr && i < WATCH_NR_VIEWERS; i++)
		if (w->viewers[i].asked_ns && now_ns > w->viewers[i].asked_ns + WATCH_SILENCE_NS)
			forget_viewer(w, &w->viewers[i]);
}

void watch_forget(struct watch *w)
{
	for (size_t i = 0; w && w->nr && i < WATCH_NR_VIEWERS; i++)
		base_map_release(&w->viewers[i].workloads);
}

bool watch_is_due(const struct watch *w, uint64_t ns)
{
	for (size_t i = 0; w && w->nr && i < WATCH_NR_VIEWERS; i++)
		if (w->viewers[i].asked_ns && w->viewers[i].asked_ns < ns)
			return true;
	return false;
}

bool watch_wants(const struct watch *w, uint32_t uid)
{
	for (size_t i = 0; w && w->nr && uid && i < WATCH_NR_VIEWERS; i++)
		if (w->viewers[i].asked_ns && !w->viewers[i].peer.all &&
		    w->viewers[i].peer.uid == uid)
			return true;
	return false;
}

bool watch_shows(const struct watch *w, uint32_t uid)
{
	for (size_t i = 0; w && w->nr && i < WATCH_NR_VIEWERS; i++)
		if (w->viewers[i].asked_ns &&
		    (w->viewers[i].peer.all || w->viewers[i].peer.uid == uid))
			return true;
	return false;
}

/* ---- what it may see ------------------------------------------------------------------------- */

/* How a sample is shown to a viewer. */
enum sight { SIGHT_ALL, SIGHT_MODE /* that it was in the kernel, not where */, SIGHT_NONE };

static enum sight sight_of(const struct watch_viewer *v, const struct image *img,
			   const struct store_count *c)
{
	if (v->peer.all)
		return SIGHT_ALL;
	/* Interrupts come to the idle task too. */
	if (c->where.life == WORKLOAD_IDLE)
		return img->kind == PROFDB_NAMED ? SIGHT_ALL : SIGHT_MODE;
	if (!c->reader || c->reader != v->peer.uid)
		return SIGHT_NONE;
	return c->kernel ? SIGHT_MODE : SIGHT_ALL;
}

/* ---- adding ---------------------------------------------------------------------------------- */

static int named(struct watch_viewer *v, const char *name)
{
	return profdb_workloads_image_add(
		v->to, &(struct profdb_image_ref){ .kind = PROFDB_NAMED, .path = name });
}

/*
 * An image is known by the path under which it was seen first, perhaps in another user's folder. A
 * viewer that may not see all gets its identity, and finds the file by its own processes.
 */
static const char *path_for(const struct watch_viewer *v, const struct image *img)
{
	static const char *const open[] = { "/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/" };

	if (v->peer.all || img->kind != PROFDB_FILE)
		return img->path;
	for (size_t i = 0; i < sizeof(open) / sizeof(*open); i++)
		if (strncmp(img->path, open[i], strlen(open[i])) == 0)
			return img->path;
	return "(file)";
}

static int new_image(struct watch_viewer *v, struct image *img)
{
	const struct profdb_image_ref ref = { .kind = img->kind,
					      .id = img->id,
					      .path = path_for(v, img),
					      .stem = img->kind == PROFDB_DYNAMIC ? img->stem
										  : NULL };
	int r = base_grow(&v->held, &v->cap_held, v->nr_held + 1, sizeof(struct image *));

	if (r >= 0)
		r = profdb_workloads_image_add(v->to, &ref);
	if (r >= 0 && base_map_set(&v->images, &img, sizeof(img), (void *)((uintptr_t)r + 1)) < 0)
		r = -ENOMEM;
	if (r >= 0)
		v->held[v->nr_held++] = image_get(img);
	return r;
}

static int image_number(struct watch_viewer *v, struct image *img)
{
	uintptr_t number = (uintptr_t)base_map_get(&v->images, &img, sizeof(img));

	if (number)
		return (int)number - 1;
	if (profdb_workloads_nr_images(v->to) >= WATCH_NR_IMAGES ||
	    v->path_len + strlen(img->path) > WATCH_TEXT_MAX)
		return -DCPI_ELIMIT;
	v->path_len += strlen(img->path);
	return new_image(v, img);
}

static size_t text_len(const struct profdb_workload *k)
{
	return strlen(k->comm) + strlen(k->exe) + strlen(k->cgroup) + strlen(k->label) +
	       strlen(k->thread);
}

/* Beyond what there is room for, workloads have no names. */
static int new_workload(struct watch_viewer *v, const struct workloads *w, const uint32_t key[2])
{
	struct profdb_workload k = workload_describe(w, key[0], key[1]);
	size_t len = text_len(&k);
	int r;

	if (profdb_workloads_nr(v->to) >= WATCH_NR_WORKLOADS || v->text_len + len > WATCH_TEXT_MAX)
		k = workload_describe(w, WORKLOAD_NOBODY, 0);
	else
		v->text_len += len;
	r = profdb_workloads_workload_add(v->to, &k);
	if (r >= 0 &&
	    base_map_set(&v->workloads, key, 2 * sizeof(*key), (void *)((uintptr_t)r + 1)) < 0)
		return -ENOMEM;
	return r;
}

static int workload_number(struct watch_viewer *v, const struct workloads *w, uint32_t life,
			   uint32_t thread)
{
	const uint32_t key[2] = { life, thread };
	uintptr_t number = (uintptr_t)base_map_get(&v->workloads, key, sizeof(key));

	return number ? (int)number - 1 : new_workload(v, w, key);
}

static void add(struct watch_viewer *v, const struct workloads *w, struct image *img,
		const struct store_count *c)
{
	enum sight sight = sight_of(v, img, c);
	bool left_out = profdb_workloads_nr_counts(v->to) >= WATCH_NR_COUNTS;
	uint64_t off = sight == SIGHT_ALL && !left_out ? c->off : 0;
	int who, where = -DCPI_ELIMIT;

	if (sight == SIGHT_NONE)
		where = named(v, "other users");
	else if (sight == SIGHT_MODE)
		where = named(v, "kernel");
	else if (!left_out)
		where = image_number(v, img);
	if (where == -DCPI_ELIMIT) {
		where = named(v, "left out");
		off = 0;
	}
	who = sight == SIGHT_NONE ? workload_number(v, w, WORKLOAD_NOBODY, 0)
				  : workload_number(v, w, c->where.life, c->where.thread);
	if (where >= 0 && who >= 0)
		profdb_workloads_add(v->to, (uint32_t)who, (uint32_t)where, off, c->event,
				     c->where.minute, c->n);
}

void watch_add(struct watch *w, const struct workloads *workloads, struct image *img,
	       const struct store_count *c)
{
	for (size_t i = 0; w && w->nr && i < WATCH_NR_VIEWERS; i++)
		if (w->viewers[i].to)
			add(&w->viewers[i], workloads, img, c);
}

/* ---- taking ---------------------------------------------------------------------------------- */

static bool is_same(const struct watch_peer *a, const struct watch_peer *b)
{
	return a->pid == b->pid && a->uid == b->uid && a->sock == b->sock && a->all == b->all;
}

static struct watch_viewer *find(const struct watch *w, const struct watch_peer *peer)
{
	for (size_t i = 0; i < WATCH_NR_VIEWERS; i++)
		if (w->viewers[i].asked_ns && is_same(&w->viewers[i].peer, peer))
			return &w->viewers[i];
	return NULL;
}

static bool is_refused(const struct watch *w, const struct watch_peer *peer)
{
	size_t others = 0, own = 0;

	for (size_t i = 0; i < WATCH_NR_VIEWERS; i++)
		if (w->viewers[i].asked_ns && !w->viewers[i].peer.all) {
			others++;
			own += w->viewers[i].peer.uid == peer->uid;
		}
	return w->nr == WATCH_NR_VIEWERS ||
	       (!peer->all && (others >= WATCH_NR_OTHERS || own >= WATCH_NR_OWN));
}

static struct watch_viewer *add_viewer(struct watch *w, const struct watch_peer *peer,
				       struct base_err *err)
{
	struct watch_viewer *v = w->viewers;

	if (is_refused(w, peer)) {
		base_fail(err, -DCPI_ELIMIT, "too many viewers watch the daemon");
		base_hint(err, "end one of them, and try again after some seconds");
		return NULL;
	}
	while (v->asked_ns)
		v++;
	v->peer = *peer;
	w->nr++;
	return v;
}

/* The samples from here on. */
static int begin(struct watch_viewer *v, const struct driver_event *events, size_t nr_events)
{
	int r;

	clear(v);
	v->to = profdb_workloads_new();
	r = v->to ? 0 : -ENOMEM;
	for (size_t i = 0; r >= 0 && i < nr_events; i++)
		r = profdb_workloads_event_add(v->to, events[i].name, events[i].period);
	if (r < 0)
		clear(v);
	return r;
}

uint64_t watch_asked(const struct watch *w, const struct watch_peer *peer)
{
	const struct watch_viewer *v = find(w, peer);

	return v ? v->asked_ns : 0;
}

int watch_take(struct watch *w, const struct watch_peer *peer, const struct driver_event *events,
	       size_t nr_events, uint64_t now_ns, struct base_buf *out, struct base_err *err)
{
	struct watch_viewer *v = find(w, peer);
	int r = 0;

	if (!v)
		v = add_viewer(w, peer, err);
	if (!v)
		return -DCPI_ELIMIT;
	v->asked_ns = now_ns;
	if (v->to)
		r = profdb_workloads_format(v->to, out, err);
	if (r >= 0)
		r = begin(v, events, nr_events);
	return r < 0 ? base_fail_errno(err, r, "cannot tell of samples") : 0;
}
