/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A registry of one process life is opened, polled, looked up in, and closed. The routine that
 * lived at an address is found by the numbers of the registry's changes where a sample brings one,
 * else by the times of the polls.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bound.h"
#include "jit_internal.h"

/* One reading takes so many: the rest comes with the next, so that one client does not hold up the
 * others. */
enum { READS_MAX = 16 };
/* A client's budget: sums of so many stay far from the end of 64 bits. */
#define BUDGET_NS      200000000ull
#define FLUSH_MAX_NS   (60 * 1000000000ull)
#define PAUSE_FIRST_NS 1000000000ull
#define PAUSE_MAX_NS   (60 * 1000000000ull)

/* ---- life ------------------------------------------------------------------------------------ */

static void describe(struct dyn_registry *reg, const struct process *p)
{
	char link[64];
	ssize_t n;

	reg->pid = p->pid;
	reg->uid = reg->store.uid = p->uid;
	reg->start_time_ns = p->start_time_ns;
	reg->created_s = (uint64_t)time(NULL);
	/* A registry may have been handed over by a program whose exec is not known yet. */
	if (p->exe && reg->kind != DYN_REGISTRY)
		snprintf(reg->exe, sizeof(reg->exe), "%s", p->exe);
	else
		snprintf(reg->exe, sizeof(reg->exe), "%.*s", (int)sizeof(p->comm), p->comm);
	if (reg->kind == DYN_REGISTRY && reg->fd < 0) {
		reg->created_s = 0;
		return;
	}
	/* A registry's life is that which it was bound to (intake.c). */
	registry_process_life(p->pid, reg->start_time_ns ? NULL : &reg->start_time_ns,
			      reg->kind == DYN_REGISTRY ? NULL : &reg->life);
	snprintf(link, sizeof(link), "/proc/%d/exe", p->pid);
	n = readlink(link, reg->exe, sizeof(reg->exe) - 1);
	if (n > 0)
		reg->exe[n] = '\0';
}

static int attach(struct dyn_registry *reg)
{
	struct stat st;
	int r;

	if (fstat(reg->fd, &st) < 0)
		return -errno;
	reg->dev = st.st_dev;
	reg->ino = st.st_ino;
	r = registry_header_read(reg->fd, &reg->h);
	if (r < 0)
		return r;
	/* A daemon before us took what lies before tail, but until the ring is full it is still
	 * there. */
	reg->place.tail = reg->h.head <= reg->h.ring_len ? 0 : reg->h.tail;
	reg->place.list_at = REGISTRY_NO_LIST;
	reg->flush_answered = reg->h.flush_done;
	reg->dirty = true;
	/* For other daemons that read it. What a client does to this lock harms itself alone. */
	(void)flock(reg->fd, LOCK_SH | LOCK_NB);
	r = DYN_PUT(reg, attached, &reg->dyn->id);
	reg->attached = r == 0;
	return r;
}

/* The last daemon to let go of it says so. */
static void unattach(const struct dyn_registry *reg)
{
	static const uint32_t none;

	if (flock(reg->fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
		DYN_PUT(reg, attached, &none);
	(void)flock(reg->fd, LOCK_UN);
}

int dyn_registry_new(struct dyn *d, const struct process *p, enum dyn_kind kind, int fd,
		     struct dyn_registry **out)
{
	struct dyn_registry *reg = calloc(1, sizeof(*reg));
	int r = 0;

	*out = NULL;
	if (!reg) {
		if (fd >= 0)
			close(fd);
		return -ENOMEM;
	}
	reg->dyn = d;
	reg->kind = kind;
	reg->fd = fd;
	reg->root = -1;
	reg->waiting_ns = UINT64_MAX;
	reg->budget_ns = BUDGET_NS;
	reg->served_ns = base_now_ns();
	reg->next = d->registries;
	d->registries = reg;
	if (kind == DYN_REGISTRY || fd >= 0)
		dyn_registry_count(reg);
	describe(reg, p);
	if (kind == DYN_REGISTRY && fd >= 0)
		r = attach(reg);
	if (r < 0) {
		dyn_registry_free(reg);
		return r;
	}
	*out = reg;
	return 0;
}

static void unlist(struct dyn_registry *reg)
{
	struct dyn_registry **at = &reg->dyn->registries;

	while (*at && *at != reg)
		at = &(*at)->next;
	if (*at)
		*at = reg->next;
}

/* The folder in which a perf map was looked for is not needed any more. */
static void close_root(struct dyn_registry *reg)
{
	if (reg->root < 0)
		return;
	reader_release(reg->dyn->config.reader, reg->uid, reg->root);
	reg->root = -1;
	reg->dyn->nr_roots--;
	budget_give_back(reg->dyn->config.budgets, reg->uid, BUDGET_ROOTS, 1);
}

void dyn_registry_detach(struct dyn_registry *reg)
{
	close_root(reg);
	if (reg->fd < 0)
		return;
	if (reg->attached)
		unattach(reg);
	/* A registry is a memfd: to close it waits for nothing. */
	if (reg->kind == DYN_REGISTRY)
		close(reg->fd);
	else
		reader_release(reg->dyn->config.reader, reg->uid, reg->fd);
	reg->fd = -1;
	reg->attached = false;
}

static void release_lifetimes(struct dyn_lifetimes *t)
{
	dyn_routine_release(&t->routines);
	dyn_gap_release(&t->gaps);
	dyn_past_release(t);
	free(t->unused);
	free(t->polls);
	free(t->forks);
	*t = (struct dyn_lifetimes){ 0 };
}

void dyn_registry_free(struct dyn_registry *reg)
{
	dyn_registry_detach(reg);
	if (reg->gdb)
		reg->gdb_release(reg->gdb);
	base_map_release(&reg->functions);
	unlist(reg);
	for (size_t i = 0; i < WIRE_NR_FACILITIES; i++) {
		reg->dyn->stats.facilities -= reg->facilities[i] != NULL;
		dyn_facility_free(reg->facilities[i]);
	}
	for (size_t i = 0; i < reg->nr_ranges; i++) {
		base_buf_release(&reg->ranges[i].contents);
		dyn_patch_release(&reg->ranges[i]);
	}
	free(reg->ranges);
	reg->dyn->missed_gone += reg->lifetimes.nr_missed;
	release_lifetimes(&reg->lifetimes);
	dyn_spool_release(&reg->dyn->spool, &reg->store);
	dyn_capacity_give_back(reg, reg->bytes);
	reg->dyn->nr_slots -= reg->nr_slots;
	budget_give_back(reg->dyn->config.budgets, reg->uid, BUDGET_ROUTINES, reg->nr_slots);
	reg->dyn->bad_gone += reg->nr_bad;
	reg->dyn->dropped_gone += dyn_believed(reg->h.nr_dropped);
	reg->dyn->left_out_gone += dyn_believed(reg->h.nr_left_out);
	reg->dyn->stats.clients -= reg->counted;
	free(reg);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int refuse(struct dyn_registry *reg, int error)
{
	if (budget_may_tell(reg->dyn->config.budgets, reg->uid))
		base_log(BASE_LOG_WARN, "the registry of process %d is not read any more: %s",
			 reg->pid, base_strerror(error));
	reg->refused = true;
	reg->nr_changes++;
	reg->nr_bad++;
	return error;
}

int dyn_registry_peek(struct dyn_registry *reg)
{
	struct wire_registry h;
	int r;

	if (reg->kind != DYN_REGISTRY || reg->fd < 0 || reg->refused)
		return 0;
	r = base_read_at(reg->fd, 0, &h, sizeof(h));
	/* Where things are was said once, and checked then; a header that says otherwise later
	 * lies. */
	if (r == 0 && memcmp(&h, &reg->h, offsetof(struct wire_registry, pad0)) != 0) {
		r = registry_header_read(reg->fd, &h);
		r = r < 0 ? r : -DCPI_EFORMAT;
	}
	if (r == 0)
		r = registry_counters_read(reg->fd, &h);
	if (r < 0)
		return refuse(reg, r);
	if (h.head != reg->h.head || h.nr_facilities != reg->h.nr_facilities ||
	    h.nr_ranges != reg->h.nr_ranges || h.flush_wanted != reg->h.flush_wanted ||
	    h.seq != reg->h.seq)
		reg->dirty = true;
	reg->h = h;
	return 0;
}

/* Each request may take a second: many that almost do are as bad as one that does. */
static int check_budget(uint64_t deadline_ns)
{
	return base_now_ns() < deadline_ns ? 0 : -ETIMEDOUT;
}

/* All that was in the ring up to the header is read: what is not among it was never put there. */
static void reached(struct dyn_registry *reg)
{
	struct dyn_interval m = { reg->h.seq, reg->read_ns, base_now_ns() };
	struct dyn_lifetimes *t = &reg->lifetimes;

	if (m.seq <= DYN_SEQ_MAX)
		dyn_lifetime_reached(t, &m, false);
	dyn_lifetime_sweep(t, &m);
	/* It cannot be told what lives. */
	if (!reg->h.heap_len)
		t->wants_list = false;
	if (t->wants_list && !t->list_ended && reg->place.list_at == REGISTRY_NO_LIST) {
		uint64_t missed = dyn_gap_first(&t->gaps, t->confirmed + 1, UINT64_MAX);

		reg->place.list_at = 0;
		reg->place.known_seq = missed ? missed - 1 : t->last_seq;
		if (t->codeless && t->codeless <= reg->place.known_seq)
			reg->place.known_seq = t->codeless - 1;
		t->codeless = 0;
	}
}

static int read_once(struct dyn_registry *reg, struct base_buf *b)
{
	const struct dyn_config *c = &reg->dyn->config;
	struct registry_place place = reg->place;
	uint64_t hi;
	int r;

	base_buf_clear(b);
	r = reader_registry_read(c->reader, reg->fd, reg->pid, reg->uid, reg->life, &place, b);
	if (r == -ESTALE && reg->place.tail < reg->h.tail) {
		reg->place.tail = reg->h.tail;
		return 0;
	}
	if (r < 0)
		return r;
	hi = base_now_ns();
	if (c->record && b->len)
		c->record(c->record_ctx, reg->pid, hi, b->data, b->len);
	reg->nr_bad += (uint64_t)r;
	reg->nr_bad += (uint64_t)dyn_apply(reg, b->data, b->len, reg->read_ns, hi);
	/* Kept now, so the ring's room may be used again. */
	reg->place = place;
	DYN_PUT(reg, tail, &place.tail);
	reg->dirty = place.tail < reg->h.head;
	return 0;
}

/*
 * The ring, and what lives where changes were missed; that is acted upon when the ring has told
 * what happened meanwhile. 1: there is more, for the next reading.
 */
static int read_ring(struct dyn_registry *reg, uint64_t deadline_ns)
{
	struct base_buf b = { 0 };
	int r = 0;

	for (int i = 0; r == 0 && i < READS_MAX; i++) {
		if (!reg->dirty)
			reached(reg);
		if (!reg->dirty && reg->place.list_at == REGISTRY_NO_LIST) {
			if (!reg->lifetimes.list_ended)
				break;
			r = dyn_registry_peek(reg);
			if (r == 0 && !reg->dirty)
				break;
		}
		/* It answered: its user's budget bounds how often it is asked. */
		if (r == 0 && i && check_budget(deadline_ns) < 0)
			r = 1;
		if (r == 0)
			r = read_once(reg, &b);
	}
	base_buf_release(&b);
	return r;
}

/* In steps: what lies lowest was written first, so a step of nothing but zeros is the end. */
static int read_range(struct dyn_registry *reg, struct dyn_range *range, uint64_t deadline_ns)
{
	const struct dyn_config *c = &reg->dyn->config;
	struct dyn_poll when = { .lo = base_now_ns() };
	struct base_buf b = { 0 };
	int r = 0;

	for (uint64_t off = 0; r >= 0 && off < range->range.len; off += REGISTRY_RANGE_MAX) {
		struct wire_range part = range->range;
		size_t before = b.len;

		r = off ? check_budget(deadline_ns) : 0;
		if (r < 0)
			break;
		part.base += off;
		part.len -= off;
		part.len = part.len < REGISTRY_RANGE_MAX ? part.len : REGISTRY_RANGE_MAX;
		r = reader_range_read(c->reader, reg->pid, reg->uid, reg->life, &part, &b);
		if (b.len == before || b.len > DYN_REGISTRY_BYTES_MAX)
			break;
	}
	if (r >= 0) {
		if (c->record && b.len)
			c->record(c->record_ctx, reg->pid, base_now_ns(), b.data, b.len);
		when.hi = base_now_ns();
		r = dyn_apply_contents(reg, range, b.data, b.len, &when);
	}
	base_buf_release(&b);
	/* A process that is gone has said all it will; what was read before stays. */
	return r < 0 && r != -ESRCH && r != -DCPI_ELIMIT ? r : 0;
}

/* At least one, whatever time is left. */
static int read_ranges(struct dyn_registry *reg, bool all, uint64_t deadline_ns)
{
	size_t first = reg->next_range, nr_read = 0;
	int r = 0;

	if (reg->over || !reg->life)
		return 0;
	for (size_t i = 0; r == 0 && i < reg->nr_ranges; i++) {
		size_t at = (first + i) % reg->nr_ranges;
		struct dyn_range *range = &reg->ranges[at];

		if (!range->known || !(range->range.flags & WIRE_RANGE_OWNED) ||
		    (range->read && !all))
			continue;
		r = nr_read++ ? check_budget(deadline_ns) : 0;
		if (r < 0)
			break;
		reg->next_range = at + 1;
		r = read_range(reg, range, deadline_ns);
	}
	return r;
}

/* One that makes the reader wait is asked more and more rarely. */
static void set_pause(struct dyn_registry *reg, int r)
{
	/* It was not asked: nothing is known of how it answers. */
	reg->starved = r == -EDQUOT;
	if (reg->starved)
		return;
	if (r != -ETIMEDOUT && r != -DCPI_EHELPER) {
		reg->pause_ns = 0;
		return;
	}
	reg->pause_ns = reg->pause_ns ? reg->pause_ns * 2 : PAUSE_FIRST_NS;
	reg->pause_ns = reg->pause_ns < PAUSE_MAX_NS ? reg->pause_ns : PAUSE_MAX_NS;
	reg->pause_until_ns = base_now_ns() + reg->pause_ns;
	if (budget_may_tell(reg->dyn->config.budgets, reg->uid))
		base_log(BASE_LOG_WARN, "process %d cannot be read (%s): next try in %llu s",
			 reg->pid, base_strerror(r),
			 (unsigned long long)(reg->pause_ns / 1000000000));
}

/* A flush is for what was told when it was asked for: who goes on telling gets his answer too. */
static void note_flush(struct dyn_registry *reg)
{
	if (!dyn_registry_wants_flush(reg) || reg->flush_noted == reg->h.flush_wanted)
		return;
	reg->flush_noted = reg->h.flush_wanted;
	DYN_PUT(reg, flush_seen, &reg->flush_noted);
	reg->flush_seq = reg->h.seq;
	reg->flush_until_ns = base_now_ns() + FLUSH_MAX_NS;
}

/* The outcome of all changes up to @seq is known, as far as it ever will be. */
static bool knows(const struct dyn_registry *reg, uint64_t seq)
{
	const struct dyn_lifetimes *t = &reg->lifetimes;

	if (reg->dirty && t->last_seq < seq)
		return false;
	return !reg->h.heap_len || !dyn_gap_first(&t->gaps, t->confirmed + 1, seq);
}

/* The program that it was taken from is not that user's alone any more; an exec is told by events.
 */
static bool has_other_rights(const struct dyn_registry *reg)
{
	uint64_t life;

	return reg->life && !reg->over && registry_process_check(reg->pid, reg->uid) == -EPERM &&
	       registry_process_life(reg->pid, NULL, &life) == 0 && life == reg->life;
}

static bool is_too_late(const struct dyn_registry *reg, uint64_t now)
{
	return dyn_registry_wants_flush(reg) && now >= reg->flush_until_ns;
}

/* An error that its client is told. A spent budget is none: it is refilled while the client waits.
 */
static bool is_final(const struct dyn_registry *reg, int r, uint64_t now)
{
	return r < 0 && (r != -EDQUOT || is_too_late(reg, now));
}

bool dyn_registry_read(struct dyn_registry *reg, bool ranges)
{
	uint64_t now = base_now_ns(), deadline = now + reg->budget_ns;
	bool news = false, lost;
	uint32_t wanted;
	int r = 0;

	reg->skipped = false;
	if (reg->fd < 0 || reg->refused)
		return false;
	dyn_registry_peek(reg);
	lost = (reg->dirty || ranges) && has_other_rights(reg);
	if (lost)
		reg->life = 0;
	note_flush(reg);
	wanted = reg->h.flush_wanted;
	if (now < reg->pause_until_ns) {
		r = -ETIMEDOUT;
	} else {
		news = reg->dirty || reg->place.list_at != REGISTRY_NO_LIST;
		r = reg->refused ? -DCPI_EFORMAT : read_ring(reg, deadline);
		/* After a pause there may be ranges left that were not read yet. */
		if (r == 0 && (news || ranges || reg->pause_ns))
			r = read_ranges(reg, ranges, deadline);
		set_pause(reg, r);
	}
	/* Only when all was read up to the header seen above was nothing else there before now. */
	if (r == 0 && !reg->dirty)
		reg->read_ns = now;
	if (ranges && r >= 0 && is_too_late(reg, now))
		r = -ETIMEDOUT;
	if (ranges && (is_final(reg, r, now) || (r == 0 && knows(reg, reg->flush_seq)))) {
		reg->flush_ready = wanted;
		reg->flush_error = r;
	}
	/* After this last reading; what its program did before it has its names. */
	if (lost)
		refuse(reg, -EPERM);
	dyn_lifetime_forget(&reg->lifetimes, reg->dyn->settled_ns);
	dyn_facility_drop_unused(reg);
	return news || lost;
}

/* ---- flush requests -------------------------------------------------------------------------- */

bool dyn_registry_wants_flush(const struct dyn_registry *reg)
{
	return reg->fd >= 0 && !reg->over && !reg->refused &&
	       reg->h.flush_wanted != reg->flush_answered && reg->h.flush_wanted != 0;
}

bool dyn_registry_is_catching_up(const struct dyn_registry *reg)
{
	return dyn_registry_wants_flush(reg) && reg->flush_ready != reg->h.flush_wanted;
}

/* ---- the routine at an address, by number ---------------------------------------------------- */

/* The first change with which the last known lifetime of @addr that was gone by @seq may have gone.
 */
static uint64_t vacant_since(const struct dyn_lifetimes *t, uint64_t addr, uint64_t seq)
{
	struct dyn_past_walk w = { .addr = addr };
	uint64_t since = 0;

	while (dyn_past_next(t, &w))
		if (w.p->until <= seq && w.p->until_first > since)
			since = w.p->until_first;
	return since;
}

/*
 * A routine that was never announced may have lived at a vacant @addr at @seq or from then on to
 * @to: one that came with a change that was missed, also long before @seq.
 */
static bool may_be_missed(const struct dyn_lifetimes *t, uint64_t addr, uint64_t seq, uint64_t to)
{
	uint64_t from = seq >= t->complete ? t->complete + 1 : 0, since;

	if (!dyn_gap_first(&t->gaps, from, to))
		return false;
	since = vacant_since(t, addr, seq);
	return since <= from || dyn_gap_first(&t->gaps, since, to) != 0;
}

/*
 * The word tells of change @seq, and the next lifetime that is known came with @from: it was a
 * virgin address, or one that had been retired, which both belong to that lifetime.
 */
static enum dyn_where before(const struct dyn_lifetimes *t, uint64_t addr, uint64_t seq,
			     uint64_t from, bool reuses)
{
	if (!reuses)
		return DYN_FOUND;
	if (seq < t->forgotten_seq || may_be_missed(t, addr, seq, from - 1))
		return DYN_GENERATION;
	return DYN_FOUND;
}

enum dyn_where dyn_lifetime_find_seq(const struct dyn_lifetimes *t, uint64_t addr, uint64_t seq,
				     uint32_t *index, bool *sure)
{
	size_t from = BASE_UPPER_BOUND(t->past, t->nr_past, order, seq);
	struct dyn_past_walk w = { .addr = addr, .from = from };
	const struct dyn_past *p = NULL;
	const struct dyn_routine *r;

	*sure = true;
	/* Behind the first one stand those that ended later. */
	while (dyn_past_next(t, &w)) {
		if (w.p->until <= seq)
			continue;
		if (!p || w.p < p)
			p = w.p;
		dyn_past_skip(&w);
	}
	if (p) {
		*index = p->routine;
		*sure = p->seq <= seq;
		if (p->seq <= seq)
			return seq < p->until_first ? DYN_FOUND : DYN_GENERATION;
		return before(t, addr, seq, p->seq, p->reuses);
	}
	*index = dyn_routine_living(&t->routines, addr);
	if (!*index) {
		*sure = vacant_since(t, addr, seq) != 0;
		return may_be_missed(t, addr, seq, t->last_seq) ? DYN_GENERATION : DYN_NONE;
	}
	r = dyn_routine_get(&t->routines, *index);
	*sure = r->seq <= seq;
	if (r->seq > seq)
		return before(t, addr, seq, r->seq, r->flags & DYN_REUSES);
	return dyn_gap_first(&t->gaps, dyn_alive_until(t, r) + 1, seq) ? DYN_GENERATION : DYN_FOUND;
}

/* ---- the routine at an address, by time ------------------------------------------------------ */

/* The answer for an address so far. */
struct answer {
	enum dyn_where where;
	uint32_t index;
};

/* One more that may have lived there in the interval; @whole: if it was there, then all the time.
 */
static void may_be(struct answer *a, uint32_t index, bool whole)
{
	bool other = a->where != DYN_NONE && a->index != index;

	a->index = index;
	if (other)
		a->where = DYN_REUSED;
	else if (a->where == DYN_NONE)
		a->where = whole ? DYN_FOUND : DYN_REUSED;
}

enum dyn_where dyn_lifetime_find(const struct dyn_lifetimes *t, uint64_t addr, uint64_t first_ns,
				 uint64_t time_ns, uint32_t *index, bool *sure)
{
	uint32_t now = dyn_routine_living(&t->routines, addr);
	const struct dyn_routine *r = now ? dyn_routine_get(&t->routines, now) : NULL;
	size_t from = BASE_UPPER_BOUND(t->past, t->nr_past, until_hi, first_ns);
	struct dyn_past_walk w = { .addr = addr, .from = from };
	struct dyn_poll since = { 0 };
	struct answer a = { 0 };

	if (r)
		since = dyn_poll_get(t, r->poll);
	if (r && since.lo < time_ns)
		may_be(&a, now, since.lo < first_ns);
	*sure = r && first_ns >= since.hi;
	if (!*sure && first_ns < t->forgotten_ns && r && r->flags & DYN_REUSES)
		return DYN_REUSED;
	/* Not certainly this one: whoever else may have lived here then makes it unknown. */
	while (!*sure && dyn_past_next(t, &w))
		if (w.p->lo < time_ns)
			may_be(&a, w.p->routine, w.p->lo < first_ns && time_ns <= w.p->whole_ns);
	*index = a.index;
	return a.where;
}

uint64_t dyn_lifetime_announced_ns(const struct dyn_lifetimes *t, uint32_t index)
{
	uint32_t number = dyn_routine_get(&t->routines, index)->poll;

	return dyn_poll_is_pruned(t, number) ? 0 : dyn_poll_get(t, number).hi;
}

/* ---- lookup ---------------------------------------------------------------------------------- */

static const struct dyn_range *range_at(const struct dyn_registry *reg, uint64_t addr)
{
	for (size_t i = 0; i < reg->nr_ranges; i++) {
		const struct dyn_range *range = &reg->ranges[i];

		if (range->known && range->range.kind == WIRE_RANGE_CODE &&
		    addr >= range->range.base && addr - range->range.base < range->range.len)
			return range;
	}
	return NULL;
}

/* The routine of that facility which has its own address there in the ELF. */
static bool is_occupied(const struct dyn_registry *reg, uint32_t facility, uint64_t addr)
{
	const struct dyn_lifetimes *t = &reg->lifetimes;
	uint32_t i = dyn_routine_living(&t->routines, addr);

	if (i && dyn_routine_get(&t->routines, i)->facility == facility &&
	    dyn_routine_get(&t->routines, i)->place == DYN_PLACE_OWN)
		return true;
	return dyn_routine_find(&t->routines, t->dead[facility], addr) != 0;
}

/*
 * An address of a declared range in no routine: the range's own place, if no file has it. One
 * that was told of before a file was mapped in its place was unmapped, though it was never
 * unregistered. (A client that writes code over a mapped file's tells of it then.)
 */
static enum dyn_where in_range(const struct dyn_registry *reg, const struct dyn_ask *ask,
			       struct image **image, uint64_t *off, bool *sure)
{
	const struct dyn_range *range = range_at(reg, ask->addr);
	struct dyn_facility *f;
	enum dyn_where where;
	uint64_t elf;

	if (!range || ask->time_ns <= range->lo || (ask->mapped_ns && range->hi <= ask->mapped_ns))
		return DYN_NONE;
	f = reg->facilities[range->range.facility];
	*sure = ask->first_ns >= range->hi;
	if (is_occupied(reg, range->range.facility, ask->addr))
		return DYN_NONE;
	if (dyn_is_full(reg->dyn, reg->uid) && !f->image->behind &&
	    (f->owned_changed || !f->image->id.len))
		return DYN_NO_CAPACITY;
	if (ask->first_ns <= range->lo)
		return DYN_REUSED;
	where = dyn_patch_find(range, ask, &elf);
	if (where == DYN_FOUND && dyn_facility_offset(f, elf, off) < 0)
		where = DYN_NONE;
	if (where != DYN_FOUND)
		return where;
	*image = f->image;
	f->image->behind |= f->owned_changed;
	return DYN_FOUND;
}

/* A list that is under way may still tell. */
static bool is_being_listed(const struct dyn_registry *reg)
{
	return reg->fd >= 0 && !reg->refused &&
	       (reg->lifetimes.wants_list || reg->lifetimes.list_ended);
}

/* Changes up to that time may stand in the registry that were not read: a turn had no time for it.
 */
static bool is_unread(const struct dyn_registry *reg, const struct dyn_ask *ask)
{
	return reg->kind == DYN_REGISTRY && reg->fd >= 0 && !reg->refused &&
	       (reg->dirty || reg->skipped) && ask->time_ns > reg->read_ns;
}

static enum dyn_where find(const struct dyn_registry *reg, const struct dyn_ask *ask,
			   uint32_t *index, bool *sure)
{
	const struct dyn_lifetimes *t = &reg->lifetimes;
	enum dyn_where where;

	if (!ask->by_seq && is_unread(reg, ask))
		return DYN_LATER;
	if (!ask->by_seq) {
		where = dyn_lifetime_find(t, ask->addr, ask->first_ns, ask->time_ns, index, sure);
		return where == DYN_FOUND && t->wants_list && is_being_listed(reg) ? DYN_LATER
										   : where;
	}
	if (ask->seq > t->last_seq && reg->fd >= 0 && !reg->refused)
		return DYN_LATER;
	where = dyn_lifetime_find_seq(t, ask->addr, ask->seq, index, sure);
	/* Its address was vacant at the fork: it is the parent's alone. */
	if (where == DYN_FOUND && ask->forked && !*sure)
		return DYN_NONE;
	if (where == DYN_GENERATION && is_being_listed(reg))
		return DYN_LATER;
	/* The parent has nobody there now, who it had is not known: as code that nobody names. */
	return where == DYN_GENERATION && ask->forked && !*index ? DYN_NONE : where;
}

/* Image offset of all samples of routines of which nothing is kept. 0 or negative. */
static int dyn_facility_unnamed(struct dyn_facility *f, uint64_t *off)
{
	uint32_t place = f->unnamed ? f->unnamed : f->next_private;
	uint64_t elf = PSEUDOIMG_MODULE + (place - 1) * 16ull;
	int r = 0;

	if (!f->unnamed) {
		if (place >= DYN_PLACE_OWN - 1)
			return -DCPI_ELIMIT;
		r = dyn_facility_cover(f, elf, 16);
		if (r < 0)
			return r;
		f->unnamed = f->next_private++;
		f->image->behind = true;
	}
	return dyn_facility_offset(f, elf, off);
}

/* All of a facility are at one offset, in no routine. */
static enum dyn_where in_nameless(struct dyn_facility *f, struct image **image, uint64_t *off)
{
	if (dyn_is_full(f->registry->dyn, f->registry->uid) && !f->unnamed)
		return DYN_NO_CAPACITY;
	if (dyn_facility_unnamed(f, off) < 0)
		return DYN_NONE;
	*image = f->image;
	return DYN_FOUND;
}

/* It got a sample: it is kept, and stands in the image. */
static enum dyn_where in_routine(struct dyn_registry *reg, uint32_t index, uint64_t addr,
				 struct image **image, uint64_t *off)
{
	struct dyn_routine *r = dyn_routine_get(&reg->lifetimes.routines, index);
	struct dyn_facility *f = reg->facilities[r->facility];
	int err = 0;

	if (r->flags & DYN_NAMELESS)
		return in_nameless(f, image, off);
	/* It would make the image larger; one that got a sample before is written all the same. */
	if (!(r->flags & (DYN_SAMPLED | DYN_WRITTEN)) && dyn_is_full(reg->dyn, reg->uid)) {
		reg->dyn->stats.routines_refused += !(r->flags & DYN_REFUSED);
		r->flags |= DYN_REFUSED;
		return DYN_NO_CAPACITY;
	}
	if (r->place == DYN_PLACE_NONE)
		err = dyn_facility_place(f, index, true);
	if (err == -DCPI_ELIMIT)
		return in_nameless(f, image, off);
	if (err < 0 || dyn_facility_offset(f, dyn_facility_elf(r) + (addr - r->addr), off) < 0)
		return DYN_NONE;
	r->flags |= DYN_SAMPLED;
	f->image->behind |= !(r->flags & DYN_WRITTEN);
	*image = f->image;
	return DYN_FOUND;
}

enum dyn_where dyn_registry_lookup(struct dyn_registry *reg, const struct dyn_ask *ask,
				   struct image **image, uint64_t *off, bool *sure)
{
	uint32_t index = 0;
	enum dyn_where where;

	/* The program's changes after the last reading will never be told. */
	if (reg->refused && ask->time_ns > reg->read_ns)
		return DYN_NONE;
	where = find(reg, ask, &index, sure);
	/* As a range: it was unmapped. */
	if (where == DYN_FOUND && ask->mapped_ns &&
	    dyn_lifetime_announced_ns(&reg->lifetimes, index) <= ask->mapped_ns)
		where = DYN_NONE;
	if (where == DYN_FOUND)
		where = in_routine(reg, index, ask->addr, image, off);
	else if (where == DYN_NONE)
		where = in_range(reg, ask, image, off, sure);
	/* Vacant: of whoever is registered there next. */
	return where == DYN_NONE && ask->awaits_next && reg->fd >= 0 && !reg->refused ? DYN_LATER
										      : where;
}

void dyn_begin_with(struct dyn *d, struct dyn_registry *first)
{
	struct dyn_registry **end = &d->registries, **before = NULL;

	if (!first || first == d->registries)
		return;
	for (; *end; end = &(*end)->next)
		before = *end == first ? end : before;
	*before = NULL;
	*end = d->registries;
	d->registries = first;
}
