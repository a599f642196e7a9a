/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwind tables of code that processes write (JITs): made from the routines that they told of, by
 * parts of 64 KiB of their memory, and made again when these are others.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "callpath_internal.h"
#include "jit.h"
#include "unwind.h"
#include "wire.h"

enum {
	PARTS_MAX = 4096, /* the driver knows no more files */
	CHECKED_AT_ONCE = 16,
};
/* Parts are looked after so often, those of which no routine was known yet and young ones more
 * often, and for so long at once. */
#define CHECK_AGAIN_NS 250000000ull
#define CHECK_BARE_NS  50000000ull
#define CHECK_NS       5000000ull
/* Frames are read for so long, from records on disk; routines that come later have none. */
#define FRAMES_NS 50000000ull
/* A runtime makes most of its code when it begins: what it says is read more often then. */
#define YOUNG_NS 1000000000ull

void callpath_codes_release(struct callpath_codes *c)
{
	free(c->parts);
	free(c->gone);
	free(c->routines);
	free(c->frames);
	*c = (struct callpath_codes){ 0 };
}

/* ---- routines -------------------------------------------------------------------------------- */

/* The process, if it is still the life that met the code, or may be. */
static const struct process *process_of(const struct callpaths *t,
					const struct driver_rows_missing *m)
{
	const struct process *p = processes_find(t->config.follow->processes, m->pid);

	if (!p || p->exited || (p->instance && m->instance && p->instance != m->instance))
		return NULL;
	return p;
}

/* The frames of a routine behind those of others; where there are too many the rest is left out:
 * what only they lead to has no rule. */
static uint32_t add_frames(struct callpath_codes *c, uint64_t addr, uint64_t seq)
{
	size_t nr, room = READER_FRAMES_MAX - c->nr_frames;

	if (base_now_ns() - c->gathered_ns > FRAMES_NS)
		return 0;
	room = room < READER_ROUTINE_FRAMES_MAX ? room : READER_ROUTINE_FRAMES_MAX;
	if (base_grow(&c->frames, &c->cap_frames, c->nr_frames + room, sizeof(*c->frames)) < 0) {
		c->no_memory = true;
		return 0;
	}
	nr = dyn_frames(c->process, addr, seq, c->frames + c->nr_frames, room);
	c->nr_frames += nr;
	return (uint32_t)nr;
}

static void add_routine(void *ctx, uint64_t addr, uint64_t len, uint64_t seq)
{
	struct callpath_codes *c = ctx;
	uint32_t first = (uint32_t)c->nr_frames, nr;

	if (c->nr_routines == READER_ROUTINES_MAX)
		return;
	nr = add_frames(c, addr, seq);
	if (base_grow(&c->routines, &c->cap_routines, c->nr_routines + 1, sizeof(*c->routines)) < 0)
		c->no_memory = true;
	else
		c->routines[c->nr_routines++] = (struct reader_routine){ addr, len, first, nr };
}

static int by_addr(const void *a, const void *b)
{
	const struct reader_routine *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	/* The one whose frames were told stays, of two that are the same. */
	return (x->nr_frames < y->nr_frames) - (x->nr_frames > y->nr_frames);
}

/* One stays where several were told of the same code. */
static void sort_routines(struct callpath_codes *c)
{
	uint64_t end = 0;
	size_t kept = 0;

	if (c->nr_routines)
		qsort(c->routines, c->nr_routines, sizeof(*c->routines), by_addr);
	for (size_t i = 0; i < c->nr_routines; i++) {
		const struct reader_routine *q = &c->routines[i];

		if (q->addr < end || !q->len || q->len > UINT64_MAX - q->addr)
			continue;
		end = q->addr + q->len;
		c->routines[kept++] = *q;
	}
	c->nr_routines = kept;
}

/* Routines up to a number: their hash. One that took another one's place has a higher number. */
struct print {
	uint64_t hash, upto;
	uint64_t last_seq; /* the highest of all */
};

static void add_print(void *ctx, uint64_t addr, uint64_t len, uint64_t seq)
{
	struct print *print = ctx;
	uint64_t words[] = { print->hash, addr, len, seq };

	if (seq <= print->upto)
		print->hash = base_hash64(words, sizeof(words));
	if (seq > print->last_seq)
		print->last_seq = seq;
}

static struct print print_of(const struct process *p, const struct driver_rows_missing *m,
			     uint64_t upto)
{
	struct print print = { .upto = upto };

	dyn_living(p, m->start, m->end, add_print, &print);
	return print;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static struct callpath_code *find(const struct callpath_codes *c, const struct driver_file *file)
{
	for (size_t i = 0; i < c->nr; i++)
		if (!memcmp(&c->parts[i].m.file, file, sizeof(*file)))
			return &c->parts[i];
	return NULL;
}

/* A place for one more. Where there is none the first part makes way. */
static struct callpath_code *add_part(struct callpaths *t)
{
	struct callpath_codes *c = &t->codes;

	if (c->nr == PARTS_MAX) {
		t->calls->forget(t->config.driver, &c->parts[0].m.file, 1);
		c->parts[0] = c->parts[--c->nr];
	}
	if (base_grow(&c->parts, &c->cap, c->nr + 1, sizeof(*c->parts)) < 0)
		return NULL;
	return &c->parts[c->nr++];
}

/* That it has a table, or none, holds until its routines are others. NULL: no memory. */
static struct callpath_code *note(struct callpaths *t, const struct process *p,
				  const struct driver_rows_missing *m)
{
	struct callpath_code *part = find(&t->codes, &m->file);
	struct print print = print_of(p, m, UINT64_MAX);
	uint64_t met_ns = part ? part->met_ns : base_now_ns();

	if (!part)
		part = add_part(t);
	if (!part)
		return NULL;
	*part = (struct callpath_code){ .m = *m,
					.news = dyn_news(p),
					.print = print.hash,
					.last_seq = print.last_seq,
					.met_ns = met_ns };
	if (met_ns + YOUNG_NS > t->codes.young_ns)
		t->codes.young_ns = met_ns + YOUNG_NS;
	return part;
}

void callpath_code_later(struct callpaths *t, const struct driver_rows_missing *m)
{
	const struct process *p = process_of(t, m);
	struct callpath_code *part = p && !t->codes.unsupported ? note(t, p, m) : NULL;

	if (part)
		part->news = UINT64_MAX;
}

int callpath_code_ask(struct callpaths *t, const struct driver_rows_missing *m)
{
	struct callpath_codes *c = &t->codes;
	const struct process *p = process_of(t, m);
	struct reader_code code = { .pid = m->pid, .start = m->start, .end = m->end };
	struct callpath_code *part;

	if (c->unsupported)
		return -DCPI_EUNSUPPORTED;
	if (!p)
		return -ESRCH;
	part = note(t, p, m);
	if (!part)
		return -ENOMEM;
	c->nr_routines = c->nr_frames = 0;
	c->no_memory = false;
	c->process = p;
	c->gathered_ns = base_now_ns();
	dyn_living(p, m->start, m->end, add_routine, c);
	sort_routines(c);
	part->bare = !c->nr_routines;
	if (!c->nr_routines || c->no_memory)
		return c->no_memory ? -ENOMEM : -ENODATA;
	code.routines = c->routines;
	code.nr = c->nr_routines;
	code.frames = c->frames;
	code.nr_frames = c->nr_frames;
	return reader_code_rows_ask(t->config.reader, &code);
}

bool callpath_expects(const struct callpaths *t)
{
	uint64_t now = base_now_ns();

	return now < t->codes.young_ns || now - t->config.follow->attached_ns < YOUNG_NS;
}

static bool is_young(const struct callpath_code *part)
{
	return base_now_ns() - part->met_ns < YOUNG_NS;
}

/* One registry at a time, however many begin: others are read in turns. While a table is made the
 * reader answers nothing else. */
static void refresh(struct callpaths *t, const struct process *p)
{
	uint64_t now = base_now_ns();

	if (t->rows.is_asked || now - t->codes.refreshed_ns < CHECK_BARE_NS / 2)
		return;
	t->codes.refreshed_ns = now;
	t->config.follow->ranges_changed |= dyn_refresh_one(p);
}

enum { HOLDS, GROWN, GONE };

/* Is what was asked for what its process has now, or has it more? */
static int look(struct callpaths *t, struct callpath_code *part)
{
	const struct process *p = process_of(t, &part->m);
	struct print print;
	uint64_t news;

	if (!p || part->news == UINT64_MAX)
		return GONE;
	if (is_young(part))
		refresh(t, p);
	news = dyn_news(p);
	if (news == part->news)
		return HOLDS;
	print = print_of(p, &part->m, part->last_seq);
	if (print.hash != part->print)
		return GONE;
	part->news = news;
	return print.last_seq > part->last_seq ? GROWN : HOLDS;
}

bool callpath_code_done(struct callpaths *t, const struct driver_rows_missing *m, int r)
{
	/* Code of this machine is not followed. */
	t->codes.unsupported |= r == -DCPI_EUNSUPPORTED;
	return t->codes.unsupported || find(&t->codes, &m->file);
}

/* Its table is in the making: it is looked after when that is there. */
static bool is_asked(const struct callpaths *t, const struct callpath_code *part)
{
	const struct callpath_rows *r = &t->rows;

	return r->is_asked &&
	       !memcmp(&r->files[r->asked].m.file, &part->m.file, sizeof(part->m.file));
}

/* Some parts from the cursor on; those that are gone go behind the @nr_gone; how many are there. */
static size_t check_some(struct callpaths *t, size_t nr_gone)
{
	struct callpath_codes *c = &t->codes;

	for (size_t i = 0; i < CHECKED_AT_ONCE && c->next < c->nr; i++) {
		struct callpath_code *part = &c->parts[c->next];
		bool is_old = c->bare_only && !part->bare && !is_young(part);
		int found = is_old || is_asked(t, part) ? HOLDS : look(t, part);

		if (found == GROWN)
			callpath_rows_missing(t, &part->m);
		/* Where it had no place it is forgotten in the next round. */
		if (found != GONE) {
			c->next++;
			continue;
		}
		c->gone[nr_gone++] = part->m.file;
		*part = c->parts[--c->nr];
	}
	return nr_gone;
}

/* A round may take several turns: a process can have a million routines. */
void callpath_code_check(struct callpaths *t)
{
	struct callpath_codes *c = &t->codes;
	uint64_t begun_ns = base_now_ns();
	size_t nr_gone = 0;

	if (!c->next && begun_ns - c->round_ns < CHECK_BARE_NS)
		return;
	if (base_grow(&c->gone, &c->cap_gone, c->nr, sizeof(*c->gone)) < 0)
		return;
	if (!c->next) {
		c->round_ns = begun_ns;
		c->bare_only = begun_ns - c->whole_ns < CHECK_AGAIN_NS;
		if (!c->bare_only)
			c->whole_ns = begun_ns;
	}
	while (c->next < c->nr && base_now_ns() - begun_ns < CHECK_NS)
		nr_gone = check_some(t, nr_gone);
	if (c->next >= c->nr)
		c->next = 0;
	if (nr_gone)
		t->calls->forget(t->config.driver, c->gone, nr_gone);
}
