/* SPDX-License-Identifier: BSD-2-Clause */
/* Dynamic code as the rest of the daemon sees it: clients, polls, look-ups, forks and ends. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jit_internal.h"

/* ---- open and close ------------------------------------------------------------------------ */

/* Names files of this boot apart from those of others; recorded streams need no such thing. */
static void read_boot(struct dyn *d)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return;
	n = read(fd, d->boot, sizeof(d->boot) - 1);
	close(fd);
	d->boot[n > 0 ? n : 0] = '\0';
	d->boot[strcspn(d->boot, "\n")] = '\0';
}

int dyn_open(const struct dyn_config *config, struct dyn **out, struct base_err *err)
{
	struct dyn *d = calloc(1, sizeof(*d));
	struct base_buf name = { 0 };
	int r = -ENOMEM;

	*out = NULL;
	if (!d)
		return base_fail_errno(err, r, "cannot follow dynamic code");
	d->config = *config;
	d->id = (uint32_t)getpid();
	d->spool.fd = d->spool.memory_fd = -1;
	d->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	d->intake = (struct dyn_intake){ .epoll = -1, .listener = -1, .queue = -1, .spare = -1 };
	d->host = strdup(config->host ? config->host : "");
	if (base_buf_printf(&name, "%s/dcpid-pseudoimg",
			    config->helper_dir ? config->helper_dir : "") == 0)
		d->program = strdup((const char *)name.data);
	base_buf_release(&name);
	d->helper =
		(struct pseudoimg_helper){ d->program, config->meanwhile, config->meanwhile_ctx };
	if (!d->host || !d->program) {
		base_fail_errno(err, r, "cannot follow dynamic code");
		goto out;
	}
	if (config->run_dir)
		read_boot(d);
	d->spool.budgets = config->budgets;
	r = dyn_spool_open(&d->spool, config->db ? profdb_dyn_fd(config->db) : -1);
	if (r < 0) {
		base_fail_errno(err, r, "cannot make a file for routines");
		goto out;
	}
	r = dyn_intake_open(&d->intake, config->run_dir, config->queue_name, err);
	if (r == 0)
		*out = d;
out:
	if (r < 0)
		dyn_close(d);
	return r;
}

void dyn_close(struct dyn *d)
{
	if (!d)
		return;
	dyn_merge_forget(d);
	dyn_files_release(d);
	while (d->registries)
		dyn_registry_free(d->registries);
	dyn_handed_release(d);
	dyn_intake_close(&d->intake);
	dyn_spool_close(&d->spool);
	dyn_trace_release(&d->trace);
	if (d->wake_fd >= 0)
		close(d->wake_fd);
	free(d->host);
	free(d->program);
	free(d);
}

size_t dyn_poll_fds(const struct dyn *d, int *fds, size_t max)
{
	const int ours[] = { d->intake.epoll, d->wake_fd };
	size_t nr = 0;

	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours) && nr < max; i++)
		if (ours[i] >= 0)
			fds[nr++] = ours[i];
	return nr;
}

/* ---- clients --------------------------------------------------------------------------------- */

/* All that it holds itself: its own registry, then what else tells. NULL: that was the last. */
static struct dyn_registry *held(const struct dyn_client *c, size_t i)
{
	if (c->own)
		return i ? (i <= c->nr_sources ? c->sources[i - 1] : NULL) : c->own;
	return i < c->nr_sources ? c->sources[i] : NULL;
}

/* Read what is new; @all: at whatever cost. True: there was something. */
static bool read_source(struct dyn_registry *reg, bool all)
{
	uint64_t settled_ns = reg->dyn->settled_ns;
	bool news = reg->kind == DYN_GDB ? dyn_gdb_read(reg, all) : dyn_source_read(reg);

	dyn_lifetime_forget(&reg->lifetimes,
			    reg->waiting_ns < settled_ns ? reg->waiting_ns : settled_ns);
	reg->waiting_ns = UINT64_MAX;
	reg->skipped = false;
	dyn_facility_drop_unused(reg);
	return news;
}

/* Its process is over: read a last time. */
static void end_source(struct dyn_registry *reg)
{
	if (reg->over)
		return;
	read_source(reg, true);
	reg->over = true;
	reg->nr_changes++;
	dyn_registry_detach(reg);
}

void dyn_client_put(struct dyn_client *c)
{
	struct dyn_registry *reg;

	while (c && --c->refs == 0) {
		struct dyn_client *up = c->inherited;

		/* One that another client has too goes on with that. Its last reading takes @c. */
		for (size_t i = 0; i < c->nr_sources; i++)
			if (c->sources[i]->refs == 1)
				end_source(c->sources[i]);
		for (size_t i = 0; up && (reg = held(up, i)); i++)
			dyn_lifetime_fork_remove(&reg->lifetimes, c->fork_ns);
		for (size_t i = 0; (reg = held(c, i)); i++)
			reg->refs--;
		free(c);
		c = up;
	}
}

void dyn_watch(struct dyn *d, struct process *p)
{
	p->watched |= dyn_has_registry(p);
	if (p->watched || !d->config.reader || d->nr_roots == DYN_ROOTS_MAX)
		return;
	/* A file that the next process of its pid writes does not tell of its code. */
	if ((!p->start_time_ns || !p->known_ns) && proc_describe(p) == -ESTALE)
		return;
	p->watched = true;
	if (!dyn_client_of(p))
		return;
	dyn_gdb_watch(d, p);
	dyn_source_watch(d, p);
}

/* Does @c hold what @of inherited? Numbers in /proc, and what processes say, may go in a circle. */
static bool is_of(const struct dyn_client *c, const struct dyn_client *of)
{
	while (of && of != c)
		of = of->inherited;
	return of != NULL;
}

void dyn_fork(struct dyn *d, struct process *parent, struct process *child, uint64_t time_ns,
	      const uint64_t *cursor)
{
	struct dyn_client *from = parent->dyn, *c = child->dyn;
	uint64_t seq = cursor ? *cursor : 0;
	bool has_seq = cursor != NULL;
	struct dyn_registry *reg;

	(void)d;
	/* A parent with nothing of its own hands on what it inherited, as of its own birth.
	 * Functions of interpreters are told of each process. */
	if (from && (!held(from, 0) || held(from, 0)->kind == DYN_FUNCTIONS)) {
		time_ns = time_ns < from->fork_ns ? time_ns : from->fork_ns;
		has_seq = from->has_seq;
		seq = from->fork_seq;
		from = from->inherited;
	}
	if (!from || (c && (c->inherited || is_of(c, from))) || !(c = dyn_client_of(child)))
		return;
	c->inherited = from;
	c->fork_ns = time_ns;
	c->fork_seq = seq;
	c->has_seq = has_seq;
	from->refs++;
	for (size_t i = 0; (reg = held(from, i)); i++)
		if (reg->kind != DYN_FUNCTIONS &&
		    dyn_lifetime_fork_add(&reg->lifetimes, time_ns) < 0)
			base_log(BASE_LOG_ERROR, "no memory for the child of process %d",
				 parent->pid);
}

int dyn_hand_on(struct process *from, struct process *to)
{
	struct dyn_client *c = from->dyn;

	if (!c || !c->own)
		return 0;
	if (!dyn_client_of(to))
		return -ENOMEM;
	/* Processes forked from @from before cannot have it either. */
	c->own->lifetimes.nr_forks = 0;
	to->dyn->own = c->own;
	c->own = NULL;
	from->watched &= c->nr_sources > 0;
	if (!c->inherited && !c->nr_sources) {
		dyn_client_put(c);
		from->dyn = NULL;
	}
	return 0;
}

void dyn_end(struct dyn *d, struct process *p)
{
	struct dyn_registry *reg = p->dyn ? p->dyn->own : NULL;

	(void)d;
	if (reg && !reg->over) {
		/* The ring outlives its writer. Nobody waits for an answer any more. */
		if (d->config.reader)
			dyn_registry_read(reg, false);
		reg->over = true;
		reg->nr_changes++;
		if (reg->exe[0] != '/' && p->exe)
			snprintf(reg->exe, sizeof(reg->exe), "%s", p->exe);
		dyn_registry_detach(reg);
	}
	dyn_client_put(p->dyn);
	p->dyn = NULL;
}

int dyn_records(struct dyn *d, struct process *p, uint64_t time_ns, const void *data, size_t len)
{
	struct dyn_registry *reg;
	int r;

	if (!dyn_client_of(p))
		return -ENOMEM;
	if (!p->dyn->own) {
		r = dyn_registry_new(d, p, DYN_REGISTRY, -1, &reg);
		if (r < 0)
			return r;
		reg->refs++;
		p->dyn->own = reg;
	}
	reg = p->dyn->own;
	reg->nr_bad += (uint64_t)dyn_apply(reg, data, len, reg->read_ns, time_ns);
	reg->read_ns = time_ns;
	dyn_lifetime_forget(&reg->lifetimes, time_ns);
	dyn_facility_drop_unused(reg);
	return 0;
}

static bool read_any(struct dyn_registry *reg, bool ranges)
{
	struct budgets *b = reg->dyn->config.budgets;
	uint64_t since_ns = budget_begin(b);
	bool news = reg->kind == DYN_REGISTRY ? dyn_registry_read(reg, ranges)
					      : read_source(reg, ranges);

	budget_end(b, reg->uid, since_ns);
	return news;
}

void dyn_read_ended(struct dyn *d, struct process *p)
{
	struct dyn_registry *reg = p->dyn ? p->dyn->own : NULL;

	if (reg && reg->skipped && !reg->over && d->config.reader)
		read_any(reg, false);
}

bool dyn_read_early(struct dyn *d, const struct process *p, uint64_t after_ns)
{
	struct dyn_registry *reg = p->dyn ? p->dyn->own : NULL;

	if (!reg || reg->over || reg->kind != DYN_REGISTRY || !d->config.reader ||
	    base_now_ns() - reg->read_ns < after_ns ||
	    (d->config.budgets && !budget_has_turn(d->config.budgets, reg->uid)) ||
	    !dyn_registry_is_soon_read(reg))
		return false;
	return read_any(reg, false);
}

bool dyn_refresh(struct dyn *d, bool ranges)
{
	struct dyn_registry *first = NULL;
	bool news = false;

	if (!d->config.reader)
		return false;
	for (struct dyn_registry *reg = d->registries; reg; reg = reg->next) {
		if (!d->hasty || budget_has_turn(d->config.budgets, reg->uid)) {
			news |= read_any(reg, ranges);
			continue;
		}
		reg->skipped = true;
		first = first ? first : reg;
	}
	d->unread = first != NULL;
	dyn_begin_with(d, first);
	return news;
}

void dyn_settled(struct dyn *d, uint64_t time_ns)
{
	d->settled_ns = time_ns;
}

uint64_t dyn_news(const struct process *p)
{
	const struct dyn_registry *reg;
	uint64_t news = 0;

	for (const struct dyn_client *c = p->dyn; c; c = c->inherited)
		for (size_t i = 0; (reg = held(c, i)); i++)
			news += 1 + reg->nr_changes;
	return news;
}

void dyn_wait(const struct process *p, uint64_t first_ns)
{
	dyn_source_wait(p->dyn, first_ns);
}

bool dyn_has_registry(const struct process *p)
{
	return p->dyn && p->dyn->own;
}

/* An inherited list does not change any more. */
bool dyn_reuses(const struct process *p)
{
	const struct dyn_registry *reg;
	bool reused = false;

	for (size_t i = 0; p->dyn && !reused && (reg = held(p->dyn, i)); i++)
		reused = reg->lifetimes.reused || reg->kind == DYN_JITDUMP;
	return reused;
}

/* Asked of each count in a file: most lie outside of all that the process said. */
static bool covers(const struct dyn_registry *reg, uint64_t addr)
{
	if (reg->kind > DYN_GDB || addr < reg->low || addr >= reg->high)
		return false;
	for (size_t k = 0; k < WIRE_NR_FACILITIES; k++)
		if (reg->facilities[k] && interval_find(&reg->facilities[k]->pages, addr))
			return true;
	return false;
}

bool dyn_claims(const struct process *p, uint64_t addr)
{
	const struct dyn_registry *reg;

	for (const struct dyn_client *c = p->dyn; c; c = c->inherited)
		for (size_t i = 0; (reg = held(c, i)); i++)
			if (covers(reg, addr))
				return true;
	return false;
}

/* Tell of routines that were registered up to change @last; returns how many. */
static size_t living(const struct dyn_routines *t, uint64_t start, uint64_t end, uint64_t last,
		     void (*fn)(void *ctx, uint64_t addr, uint64_t len, uint64_t seq), void *ctx)
{
	size_t nr = 0;
	uint32_t i;

	while ((i = dyn_routine_overlap(t, t->live, start, end)) != 0) {
		const struct dyn_routine *r = dyn_routine_get(t, i);

		if (!(r->flags & DYN_HOLE) && r->seq <= last) {
			fn(ctx, r->addr, r->len, r->seq);
			nr++;
		}
		start = r->addr + r->len;
	}
	return nr;
}

void dyn_living(const struct process *p, uint64_t start, uint64_t end,
		void (*fn)(void *ctx, uint64_t addr, uint64_t len, uint64_t seq), void *ctx)
{
	const struct dyn_registry *reg;
	uint64_t last = UINT64_MAX;
	size_t nr = 0;

	for (const struct dyn_client *c = p->dyn; c && !nr; c = c->inherited) {
		for (size_t i = 0; (reg = held(c, i)); i++)
			if (reg->kind < DYN_UNNAMED)
				nr += living(&reg->lifetimes.routines, start, end, last, fn, ctx);
		/* The parent may have replaced since what the child still has. */
		if (!c->has_seq)
			break;
		last = c->fork_seq < last ? c->fork_seq : last;
	}
}

/* Another routine stood there that samples may still be of, or may have. */
static bool has_past(const struct dyn_lifetimes *t, uint64_t addr)
{
	struct dyn_past_walk w = { .addr = addr };

	return t->nr_missed || dyn_past_next(t, &w);
}

bool dyn_is_first(const struct process *p, uint64_t addr)
{
	const struct dyn_registry *reg;

	for (size_t i = 0; p->dyn && (reg = held(p->dyn, i)); i++) {
		const struct dyn_routines *t = &reg->lifetimes.routines;
		uint32_t n = reg->kind < DYN_UNNAMED
				     ? dyn_routine_overlap(t, t->live, addr, addr + 1)
				     : 0;

		if (n)
			return !(dyn_routine_get(t, n)->flags & (DYN_HOLE | DYN_REUSES)) &&
			       !has_past(&reg->lifetimes, addr);
	}
	return false;
}

static size_t frames_of(const struct dyn_registry *reg, const struct dyn_routine *r,
			struct wire_frame *frames, size_t max)
{
	const struct dyn_facility *f = reg->facilities[r->facility];
	const struct wire_routine *rec = r->record ? dyn_facility_record(f, r) : NULL;
	struct wire_routine_view v;

	if (!rec || wire_routine_parse(&rec->head, &v) < 0)
		return 0;
	max = v.nr_frames < max ? v.nr_frames : max;
	if (max)
		memcpy(frames, v.frames, max * sizeof(*frames));
	return max;
}

size_t dyn_frames(const struct process *p, uint64_t addr, uint64_t seq, struct wire_frame *frames,
		  size_t max)
{
	const struct dyn_registry *reg;

	for (const struct dyn_client *c = p->dyn; c; c = c->inherited)
		for (size_t i = 0; (reg = held(c, i)); i++) {
			const struct dyn_routines *t = &reg->lifetimes.routines;
			uint32_t n = dyn_lifetime_handle(&reg->lifetimes, addr, seq);

			if (n && dyn_routine_get(t, n)->has_frames)
				return frames_of(reg, dyn_routine_get(t, n), frames, max);
			if (n)
				return 0;
		}
	return 0;
}

void dyn_ranges(const struct process *p, void (*fn)(void *ctx, uint64_t start, uint64_t end),
		void *ctx)
{
	for (const struct dyn_client *c = p->dyn; c; c = c->inherited)
		for (size_t i = 0; c->own && i < WIRE_NR_FACILITIES; i++)
			if (c->own->facilities[i])
				dyn_facility_ranges(c->own->facilities[i], fn, ctx);
}

bool dyn_words(const struct process *p, struct driver_client *client)
{
	const struct dyn_registry *reg = p->dyn ? p->dyn->own : NULL;
	const struct wire_registry *h = reg ? &reg->h : NULL;

	if (!h || reg->fd < 0 || reg->refused || reg->no_words || !reg->life || !h->nr_words ||
	    h->nr_words > WIRE_NR_WORDS || h->nr_words & (h->nr_words - 1) || !h->words_addr ||
	    h->words_addr % 4 || h->words_addr >= REGISTRY_VADDR_MAX - 4ull * WIRE_NR_WORDS)
		return false;
	client->words = h->words_addr;
	client->nr_words = h->nr_words;
	client->cursor = h->seq_addr % 8 || h->seq_addr >= REGISTRY_VADDR_MAX - 8 ? 0 : h->seq_addr;
	if (h->words_off % WIRE_PAGE)
		return true;
	client->words_ino = reg->ino;
	client->words_off = h->words_off;
	client->words_fd = reg->fd;
	return true;
}

/*
 * The words, and the number of the last change, stand in @p's memory in pages of the registry, and
 * @p is the program that this is of. 1, 0, or negative: the reader did not answer.
 */
static int words_stand(const struct dyn_registry *reg)
{
	const struct wire_registry *h = &reg->h;
	const struct stat file = { .st_dev = reg->dev, .st_ino = reg->ino };
	const struct registry_part words = { h->words_addr, h->nr_words * sizeof(uint32_t),
					     h->words_off };
	const struct registry_part seq = { h->seq_addr, sizeof(h->seq),
					   offsetof(struct wire_registry, seq) };
	uint64_t life;
	int r;

	if (registry_process_check(reg->pid, reg->uid) < 0 ||
	    !registry_process_open(reg->pid, reg->uid))
		return 0;
	r = dyn_has_mapped(reg->dyn, reg->pid, &file, &words);
	if (r > 0 && h->seq_addr)
		r = dyn_has_mapped(reg->dyn, reg->pid, &file, &seq);
	if (r <= 0)
		return r;
	return registry_process_life(reg->pid, NULL, &life) == 0 && life == reg->life;
}

bool dyn_words_stand(const struct process *p)
{
	struct dyn_registry *reg = p->dyn ? p->dyn->own : NULL;
	int r = reg && reg->life ? words_stand(reg) : 0;

	if (reg && r == 0)
		reg->no_words = true;
	return r > 0;
}

/* Something that would tell of its code was not read. */
static bool is_starved(const struct dyn_client *c)
{
	const struct dyn_registry *reg;
	bool starved = false;

	for (; c && !starved; c = c->inherited)
		for (size_t i = 0; !starved && (reg = held(c, i)); i++)
			starved = reg->starved;
	return starved;
}

/* Where nobody knows yet who it is, the next reading may tell. */
static enum dyn_where not_yet(enum dyn_where where, const struct dyn_query *q)
{
	if (where == DYN_LATER && q->last)
		return q->generation_read || q->generation_unread ? DYN_GENERATION : DYN_REUSED;
	if (where == DYN_REUSED && q->generation_unread)
		return DYN_GENERATION;
	return where;
}

/* One registry answers: by the sample's generation, by time, or as of a fork. */
static enum dyn_where look(struct dyn_registry *reg, const struct dyn_ask *ask, bool last,
			   struct image **image, uint64_t *off, bool *sure)
{
	enum dyn_where where = dyn_registry_lookup(reg, ask, image, off, sure);

	/* Vacant: of whoever is registered there next. */
	if (where == DYN_NONE && ask->by_seq && !last && reg->fd >= 0 && !reg->refused)
		return DYN_LATER;
	return where;
}

static enum dyn_where lookup(const struct dyn_client *c, const struct dyn_query *q,
			     struct image **image, uint64_t *off)
{
	struct dyn_ask ask = { .addr = q->addr,
			       .first_ns = q->first_ns,
			       .time_ns = q->time_ns,
			       .mapped_ns = q->mapped_ns };
	enum dyn_where found = DYN_NONE;
	bool own = true;

	for (; c; c = c->inherited) {
		enum dyn_where where = DYN_NONE;
		struct image *img = NULL;
		uint64_t at = 0;
		bool sure = false;

		if (own && q->generation_read && c->own) {
			ask.by_seq = true;
			ask.seq = dyn_registry_seq(c->own, q->generation);
		}
		if (c->own)
			where = look(c->own, &ask, q->last || !own || c->inherited, &img, &at,
				     &sure);
		if (where == DYN_NONE)
			where = dyn_source_lookup(c, &ask, q->last, &img, &at);
		/* Until the child's own came, what it inherited may have stood there; where the
		 * word tells that its own came later, it did. */
		if (where != DYN_NONE && found != DYN_NONE && !q->generation_read)
			return DYN_REUSED;
		if (where != DYN_NONE) {
			found = where;
			*image = img;
			*off = at;
		}
		if ((where != DYN_NONE && where != DYN_FOUND) || sure)
			break;
		/* Inherited code is what it was at the fork. */
		ask.time_ns = ask.time_ns < c->fork_ns ? ask.time_ns : c->fork_ns;
		ask.first_ns = ask.time_ns;
		ask.by_seq = c->has_seq;
		ask.forked = true;
		ask.seq = c->fork_seq;
		own = false;
	}
	return found;
}

/* Prefetches the memory that the next look-ups will read. */
static void expect_next(const struct dyn_query *q)
{
	static const size_t ahead[] = { 16, 8 };

	for (unsigned int step = 0; step < 2; step++) {
		const struct sample *s = ahead[step] < q->nr_next ? &q->next[ahead[step]] : NULL;

		if (s && dyn_has_registry(s->p))
			dyn_routine_expect(&s->p->dyn->own->lifetimes.routines, s->addr, step);
	}
}

enum dyn_where dyn_lookup(struct dyn *d, struct process *p, const struct dyn_query *q,
			  struct image **image, uint64_t *off)
{
	enum dyn_where where;

	expect_next(q);
	where = lookup(p->dyn, q, image, off);
	/* Runtimes write files late. */
	if (where == DYN_NONE && q->dynamic && !dyn_has_registry(p))
		where = q->last || !p->dyn ? dyn_unnamed_find(d, p, q, image, off) : DYN_LATER;
	if (where == DYN_LATER && !q->last)
		dyn_source_wait(p->dyn, q->first_ns);
	where = not_yet(where, q);
	if ((where == DYN_NONE || where == DYN_REUSED || where == DYN_GENERATION) &&
	    is_starved(p->dyn))
		where = DYN_NO_BUDGET;
	if (where != DYN_LATER && q->generation_unread)
		d->stats.generations_unread += q->count;
	return where;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static bool wants_flush(const struct dyn *d)
{
	for (const struct dyn_registry *reg = d->registries; reg; reg = reg->next)
		if (dyn_registry_wants_flush(reg))
			return true;
	return false;
}

void dyn_begin_flush(struct dyn *d)
{
	d->flush_ns = base_now_ns();
}

bool dyn_is_behind(const struct dyn *d)
{
	for (size_t i = 0; i < d->nr_handed; i++)
		if (d->handed[i].made_ns < d->flush_ns && !d->handed[i].again_ns)
			return true;
	for (const struct dyn_registry *reg = d->registries; reg; reg = reg->next)
		if (reg->served_ns < d->flush_ns)
			return true;
	return false;
}

bool dyn_is_catching_up(const struct dyn *d)
{
	if (d->unread || (d->unwritten && wants_flush(d)))
		return true;
	for (size_t i = 0; i < d->nr_handed; i++)
		if (base_now_ns() >= d->handed[i].again_ns)
			return true;
	for (const struct dyn_registry *reg = d->registries; reg; reg = reg->next)
		if (dyn_registry_is_catching_up(reg) && !dyn_registry_is_put_off(reg))
			return true;
	return false;
}

void dyn_stats_get(const struct dyn *d, struct dyn_stats *out)
{
	*out = d->stats;
	out->registries_refused = d->intake.nr_refused;
	out->records_bad += d->bad_gone;
	out->records_dropped += d->dropped_gone;
	out->entries_left_out += d->left_out_gone;
	out->changes_missed += d->missed_gone;
	for (const struct dyn_registry *reg = d->registries; reg; reg = reg->next) {
		out->records_bad += reg->nr_bad;
		out->records_dropped += dyn_believed(reg->h.nr_dropped);
		out->entries_left_out += dyn_believed(reg->h.nr_left_out);
		out->changes_missed += reg->lifetimes.nr_missed;
	}
}
