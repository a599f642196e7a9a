/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traces go to the process that runs value profilers as fast as that takes them; what it makes of
 * them comes back by ticket, and is put where the trace's blocks were found to be. A ticket keeps
 * what is known of a life that ends.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "trace_parts.h"
#include "registry.h"

/* ---- lives that are over --------------------------------------------------------------------- */

/* A life of a process that is over, while traces of it wait or values of it are to come. */
struct trace_past {
	uint32_t refs;
	struct values_owner *owner; /* a reference, or NULL: nobody */
	struct process p; /* its mappings alone; none where other code than the files' may have
			     stood in them */
};

/* Keep the process @p, which ends; one reference. NULL: no memory. */
static struct trace_past *past_new(const struct process *p, struct values_owner *owner)
{
	struct trace_past *past = calloc(1, sizeof(*past));

	if (!past)
		return NULL;
	past->refs = 1;
	past->owner = owner;
	if (owner)
		owner->refs++;
	/* A process that announced code in a file's mapping can only be asked while it lives. */
	if (!p->dyn && map_copy(&past->p, p) < 0) {
		trace_past_put(past);
		return NULL;
	}
	return past;
}

static struct trace_past *past_get(struct trace_past *past)
{
	if (past)
		past->refs++;
	return past;
}

void trace_past_put(struct trace_past *past)
{
	if (!past || --past->refs)
		return;
	values_owner_put(past->owner);
	map_clear(&past->p);
	free(past->p.maps);
	free(past);
}

/* The mappings of the process of @k, also after its end; NULL: unknown. */
static const struct process *mapped_by(const struct traces *t, const struct trace_ticket *k)
{
	if (k->over)
		return k->past ? &k->past->p : NULL;
	return processes_find(t->config.follow->processes, (int32_t)k->w.tgid);
}

/* Traces that wait to be sent: a drain brings those of seconds at once. */
enum { QUEUE_MAX = 4096, THINNED_MAX = 32 };
/* At the end, for answers. */
#define FINISH_NS 1000000000ull
#define PAUSE_NS  1000000

/* ---- whose values they are ------------------------------------------------------------------- */

/* Its folder in /proc is its user's; its files there are root's while it may not be seen into. */
static uint32_t owner_of(int32_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (stat(path, &st) < 0 || registry_process_check(pid, st.st_uid) < 0)
		return IMAGE_VALUES_NOBODY;
	return st.st_uid;
}

/* One reference. NULL: no memory. */
static struct values_owner *owner_ask(int32_t pid)
{
	struct values_owner *o = malloc(sizeof(*o));

	if (!o)
		return NULL;
	*o = (struct values_owner){ .refs = 1, .uid = owner_of(pid) };
	/* After: an exec meanwhile is one of before. */
	o->asked_ns = base_now_ns();
	o->certain = o->uid == IMAGE_VALUES_NOBODY;
	return o;
}

/* That of the life that @tgid has now, or had when its first trace was read. */
static struct values_owner *owner_get(struct traces *t, uint32_t tgid)
{
	struct values_owner *o = base_map_get(&t->values.owners, &tgid, sizeof(tgid));

	if (o)
		return o;
	o = owner_ask((int32_t)tgid);
	if (!o || base_map_set(&t->values.owners, &tgid, sizeof(tgid), o) == 0)
		return o;
	values_owner_put(o);
	return NULL;
}

/* A younger answer may be another life's, as may what comes from now on be. */
void trace_events_lost(struct traces *t, uint64_t time_ns)
{
	void *o;

	for (size_t pos = 0; t && base_map_next(&t->values.owners, &pos, &o);) {
		values_owner_end(o, time_ns);
		values_owner_put(o);
	}
	if (t)
		base_map_release(&t->values.owners);
}

void trace_values_met(struct traces *t, const struct insn_trace *w)
{
	if (t->values.client && !(w->has & INSN_TRACE_KERNEL))
		owner_get(t, w->tgid);
}

/* ---- sending --------------------------------------------------------------------------------- */

static void free_ticket(struct trace_ticket *k)
{
	for (size_t i = 0; i < k->nr; i++)
		image_put(k->steps[i].image);
	values_owner_put(k->owner);
	trace_past_put(k->past);
	free(k->words);
	free(k);
}

static struct trace_ticket *make_ticket(const struct trace_pending *k, const uint64_t *words)
{
	struct trace_ticket *t = calloc(1, sizeof(*t) + k->nr * sizeof(*t->steps));
	size_t len = insn_trace_words(&k->w) * sizeof(*words);

	if (!t)
		return NULL;
	t->words = malloc(len);
	if (!t->words) {
		free(t);
		return NULL;
	}
	memcpy(t->words, words, len);
	memcpy(t->steps, k->steps, k->nr * sizeof(*t->steps));
	t->w = k->w;
	t->over = k->p && k->p->exited;
	t->past = past_get(k->past);
	t->nr = k->nr;
	for (size_t i = 0; i < t->nr; i++)
		image_get(t->steps[i].image);
	return t;
}

/*
 * The owner of a life that is over cannot be asked for, and its pid may belong to another process
 * now.
 */
static struct values_owner *owner_of_trace(struct traces *t, const struct trace_pending *k)
{
	if (!k->p)
		return NULL;
	if (k->p->exited)
		return k->past ? k->past->owner : NULL;
	return owner_get(t, k->w.tgid);
}

/* Half of those that wait, drawn, are not sent. */
static void thin_out(struct trace_values *v)
{
	struct trace_ticket **at = &v->first, *k;

	v->last = NULL;
	while ((k = *at)) {
		if (base_random64(&v->random) & 1) {
			v->last = k;
			at = &k->next;
			continue;
		}
		*at = k->next;
		free_ticket(k);
		v->nr_queued--;
		v->stats.not_sent++;
	}
	if (v->thinned < THINNED_MAX)
		v->thinned++;
}

/*
 * Where more come than are sent, each has the same chance, whenever it came: the first of a drain
 * are of its first seconds, and the last are those that had to wait for registries.
 */
static bool is_taken(struct trace_values *v)
{
	if (!v->first)
		v->thinned = 0;
	if (base_random64(&v->random) & ((UINT64_C(1) << v->thinned) - 1))
		return false;
	if (v->nr_queued == QUEUE_MAX)
		thin_out(v);
	return true;
}

void trace_values_add(struct traces *t, const struct trace_pending *k, const uint64_t *words)
{
	struct trace_values *v = &t->values;
	struct trace_ticket *ticket = NULL;

	if (!v->client || !(k->w.has & INSN_TRACE_VALUES))
		return;
	if (is_taken(v))
		ticket = make_ticket(k, words);
	if (!ticket) {
		v->stats.not_sent++;
		return;
	}
	ticket->owner = owner_of_trace(t, k);
	if (ticket->owner)
		ticket->owner->refs++;
	if (v->last)
		v->last->next = ticket;
	else
		v->first = ticket;
	v->last = ticket;
	v->nr_queued++;
}

/* The words are needed no more; where its blocks lie is. */
static int send_first(struct traces *t)
{
	struct trace_values *v = &t->values;
	struct trace_ticket *k = v->first;
	uint64_t number = v->next_ticket;
	int r = values_send(v->client, number, &k->w, k->words, trace_block, t);

	if (r == -EAGAIN)
		return r;
	v->first = k->next;
	v->last = v->first ? v->last : NULL;
	v->nr_queued--;
	k->next = NULL;
	free(k->words);
	k->words = NULL;
	if (r >= 0)
		r = base_map_set(&v->sent, &number, sizeof(number), k);
	if (r < 0) {
		v->stats.not_sent++;
		free_ticket(k);
		return 0;
	}
	v->next_ticket++;
	v->nr_sent++;
	return 0;
}

/* ---- what comes back ------------------------------------------------------------------------- */

static const struct trace_step *step_of(const struct trace_ticket *k, uint64_t pc)
{
	for (size_t i = 0; i < k->nr; i++)
		if (k->steps[i].ran && pc >= k->steps[i].pc && pc < k->steps[i].next)
			return &k->steps[i];
	return NULL;
}

/*
 * Place it by the trace itself, or by a mapping that stood there at that time and to the end; else
 * it is unknown.
 */
static struct image *place_context(const struct traces *t, const struct trace_ticket *k,
				   uint64_t addr, uint64_t *off)
{
	const struct trace_step *s = step_of(k, addr);
	const struct process *p;
	const struct map *m;

	if (s && s->where == TRACE_PLACED) {
		*off = s->off + (addr - s->pc);
		return s->image;
	}
	p = addr && !s ? mapped_by(t, k) : NULL;
	m = p ? map_find(p, addr) : NULL;
	if (!m || m->kind != MAP_IMAGE || m->since_ns > k->w.time_ns || dyn_claims(p, addr))
		return NULL;
	*off = m->file_off + (addr - m->start);
	return m->image;
}

static struct profdb_context context_of(const struct traces *t, const struct trace_ticket *k,
					struct profdb_values *to, uint64_t addr)
{
	struct profdb_context c = { 0 };
	struct image *image = addr ? place_context(t, k, addr, &c.off) : NULL;
	int index = image ? profdb_values_image_add(to, &image->id, image->path) : 0;

	c.image = index > 0 ? (uint32_t)index : 0;
	c.off = index > 0 ? c.off : 0;
	return c;
}

static void add_tuple(struct traces *t, const struct trace_ticket *k, const char *profiler,
		      const struct values_tuple *tuple)
{
	const struct trace_step *s = step_of(k, tuple->pc);
	struct profdb_values *to = NULL;
	struct profdb_context context[2];
	int r = -ENOENT;

	if (s && s->where == TRACE_PLACED && !s->image->excluded)
		to = image_values_get(s->image, profiler, k->owner);
	if (to) {
		context[0] = context_of(t, k, to, tuple->c0);
		context[1] = context_of(t, k, to, tuple->c1);
		r = profdb_values_add(to, s->off + (tuple->pc - s->pc), context, tuple->value);
	}
	if (r < 0)
		t->values.stats.unplaced++;
	else
		t->values.stats.stored++;
}

static int on_answer(void *ctx, uint64_t ticket, size_t profiler, const struct values_tuple *tuples,
		     size_t nr)
{
	struct traces *t = ctx;
	struct trace_values *v = &t->values;
	struct trace_ticket *k = base_map_get(&v->sent, &ticket, sizeof(ticket));

	if (!k)
		return 0;
	for (size_t i = 0; i < nr; i++)
		add_tuple(t, k, values_name(v->client, profiler), &tuples[i]);
	if (++k->nr_answers < v->nr_profilers)
		return 0;
	base_map_del(&v->sent, &ticket, sizeof(ticket));
	v->nr_sent--;
	free_ticket(k);
	return 0;
}

int trace_values_turn(struct traces *t)
{
	struct trace_values *v = &t->values;
	int r = 0;

	if (!v->client)
		return 0;
	r = values_receive(v->client, on_answer, t);
	while (v->first && send_first(t) == 0)
		;
	return r;
}

void trace_values_finish(struct traces *t)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	uint64_t until = base_now_ns() + FINISH_NS;

	if (!t->values.client)
		return;
	while ((t->values.nr_queued || t->values.nr_sent) && base_now_ns() < until) {
		trace_values_turn(t);
		nanosleep(&pause, NULL);
	}
}

static void move_ticket(struct trace_ticket *k, const struct image *from,
			const struct wire_replaces *map, struct image *to)
{
	for (size_t i = 0; i < k->nr; i++) {
		struct trace_step *s = &k->steps[i];

		if (s->where != TRACE_PLACED || s->image != from)
			continue;
		s->off = wire_moved_off(map, s->off);
		s->last_off = wire_moved_off(map, s->last_off);
		image_put(s->image);
		s->image = image_get(to);
	}
}

/* Traces that wait for their place belong to a living process, whose image is its own. */
void trace_moved(struct traces *t, const struct image *from, const struct wire_replaces *map,
		 struct image *to)
{
	struct trace_values *v = &t->values;
	void *k;

	for (struct trace_ticket *i = v->first; i; i = i->next)
		move_ticket(i, from, map, to);
	for (size_t pos = 0; base_map_next(&v->sent, &pos, &k);)
		move_ticket(k, from, map, to);
}

bool trace_values_stats_get(const struct traces *t, struct trace_values_stats *out,
			    size_t *nr_waiting)
{
	*out = t->values.stats;
	*nr_waiting = t->values.nr_queued + t->values.nr_sent;
	return t->values.client;
}

void trace_values_release(struct trace_values *v)
{
	void *k;

	for (struct trace_ticket *i = v->first, *next; i; i = next) {
		next = i->next;
		free_ticket(i);
	}
	for (size_t pos = 0; base_map_next(&v->sent, &pos, &k);)
		free_ticket(k);
	base_map_release(&v->sent);
	for (size_t pos = 0; base_map_next(&v->owners, &pos, &k);)
		values_owner_put(k);
	base_map_release(&v->owners);
	*v = (struct trace_values){ 0 };
}

/* ---- ends of lives --------------------------------------------------------------------------- */

static void end_ticket(struct trace_ticket *k, int32_t tgid, struct trace_past *past)
{
	if (k->over || k->w.tgid != (uint32_t)tgid)
		return;
	k->over = true;
	k->past = past_get(past);
}

/* Close the tickets: the addresses will belong to another process. @past may be NULL. */
static void end_tickets(struct trace_values *v, int32_t tgid, struct trace_past *past)
{
	void *k;

	for (struct trace_ticket *i = v->first; i; i = i->next)
		end_ticket(i, tgid, past);
	for (size_t pos = 0; base_map_next(&v->sent, &pos, &k);)
		end_ticket(k, tgid, past);
}

/* All that will be known of @p is; a life that has not been listed since is as its events told. */
static void end_waiting(struct traces *t, const struct process *p)
{
	for (size_t i = 0; t->unsettled_ns != UINT64_MAX && i < t->nr_waiting; i++)
		if (t->waiting[i]->p == p && t->waiting[i]->unsettled)
			trace_place_listed(&t->config, t->waiting[i]);
}

/* The life @p (may be NULL) of @tgid ended at @time_ns; what it had mapped is still known. */
static void life_ended(struct traces *t, struct process *p, int32_t tgid, uint64_t time_ns)
{
	struct trace_values *v = &t->values;
	struct values_owner *o = base_map_del(&v->owners, &tgid, sizeof(tgid));
	struct trace_past *past = NULL;

	if (o)
		values_owner_end(o, time_ns);
	/* A list read after the end belongs to another life. */
	if (p && p->known_ns <= time_ns)
		end_waiting(t, p);
	if (p && p->known_ns <= time_ns && (v->nr_queued || v->nr_sent || t->nr_waiting))
		past = past_new(p, o);
	end_tickets(v, tgid, past);
	for (size_t i = 0; past && i < t->nr_waiting; i++)
		if (t->waiting[i]->p == p && !t->waiting[i]->past)
			t->waiting[i]->past = past_get(past);
	trace_past_put(past);
	values_owner_put(o);
}

/*
 * The life's last traces, and the question for its owner, may concern another process with that
 * number.
 */
static void life_end_lost(struct traces *t, int32_t tgid)
{
	struct values_owner *o;

	o = base_map_del(&t->values.owners, &tgid, sizeof(tgid));
	if (o)
		values_owner_end(o, 0);
	end_tickets(&t->values, tgid, NULL);
	values_owner_put(o);
}

void trace_take_ends(struct traces *t)
{
	const struct follow_ends *ends = &t->config.follow->ends;

	for (size_t i = 0; i < ends->nr; i++) {
		const struct follow_end *e = &ends->items[i];

		if (e->lost)
			life_end_lost(t, e->pid);
		else
			life_ended(t, e->p, e->pid, e->time_ns);
	}
	if (ends->lost)
		trace_events_lost(t, t->config.follow->now_ns);
}
