/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwind tables of code that processes write (JITs): made from the routines that they told of, by
 * parts of 64 KiB of their memory, and made again when these are others.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "callpath_internal.h"
#include "jit.h"
#include "unwind.h"
#include "wire.h"

enum {
	PARTS_MAX = 4096, /* the driver knows no more files */
	CHECKED_AT_ONCE = 16,
	AHEAD = 8,		/* parts behind one that a path met */
	AHEAD_PARTS_MAX = 1024, /* where there are more, others are met first */
};
/* Parts are looked after so often, but in such a share of the time, and for so long at once.
 * Between two turns of the daemon processes are asked so often what they wrote. */
#define CHECK_AGAIN_NS 4000000ull
#define CHECK_SHARE    20
#define CHECK_NS       5000000ull
#define READ_NS	       4000000ull
/* Frames are read for so long, from records on disk; routines that come later have none. */
#define FRAMES_NS 10000000ull

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

/* Code that the process wrote lately is just what runs now. One registry at a time, however many
 * processes begin, and not the same one again and again: all are read in turns anyway. */
static void read_early(struct callpaths *t, const struct process *p)
{
	struct follow *f = t->config.follow;
	uint64_t now_ns = base_now_ns();

	if (!f->dyn || now_ns - t->codes.read_ns < READ_NS ||
	    !dyn_read_early(f->dyn, p, 2 * READ_NS))
		return;
	t->codes.read_ns = now_ns;
	f->ranges_changed = t->codes.news = true;
}

/* The frames of a routine behind those of others; where there are too many the rest is left out:
 * what only they lead to has no rule. */
static uint32_t add_frames(struct callpath_codes *c, uint64_t addr, uint64_t seq)
{
	size_t nr, room = READER_FRAMES_MAX - c->nr_frames;

	if (!room || base_now_ns() - c->gathered_ns > FRAMES_NS)
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

/* The routines of a part as they are now, and those of them that were registered up to a number. */
struct prints {
	uint64_t all, old;
	uint64_t up_to, last;
};

/* A routine that took another one's place has another number. */
static void add_print(void *ctx, uint64_t addr, uint64_t len, uint64_t seq)
{
	struct prints *p = ctx;
	uint64_t words[] = { p->all, addr, len, seq };

	p->all = base_hash64(words, sizeof(words));
	if (seq > p->last)
		p->last = seq;
	words[0] = p->old;
	if (seq <= p->up_to)
		p->old = base_hash64(words, sizeof(words));
}

static struct prints prints_of(const struct process *p, const struct driver_rows_missing *m,
			       uint64_t up_to)
{
	struct prints prints = { .up_to = up_to };

	dyn_living(p, m->start, m->end, add_print, &prints);
	return prints;
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
	c->parts[c->nr] = (struct callpath_code){ .ahead = false };
	return &c->parts[c->nr++];
}

/* That it has a table, or none, holds until its routines are others. NULL: no memory. */
static struct callpath_code *note(struct callpaths *t, const struct process *p,
				  const struct driver_rows_missing *m)
{
	struct callpath_code *part = find(&t->codes, &m->file);

	if (!part)
		part = add_part(t);
	if (part) {
		const struct prints prints = prints_of(p, m, 0);

		*part = (struct callpath_code){ .m = *m,
						.news = dyn_news(p),
						.print = prints.all,
						.last = prints.last,
						.ahead = part->ahead };
	}
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
	read_early(t, p);
	/* A routine that the table has is gone: it must not be walked by until the next is there.
	 */
	part = find(c, &m->file);
	if (part && part->news != UINT64_MAX && prints_of(p, m, part->last).old != part->print)
		t->calls->forget(t->config.driver, &m->file, 1);
	part = note(t, p, m);
	if (!part)
		return -ENOMEM;
	c->nr_routines = c->nr_frames = 0;
	c->no_memory = false;
	c->process = p;
	c->gathered_ns = base_now_ns();
	dyn_living(p, m->start, m->end, add_routine, c);
	sort_routines(c);
	if (!c->nr_routines || c->no_memory)
		return c->no_memory ? -ENOMEM : -ENODATA;
	code.routines = c->routines;
	code.nr = c->nr_routines;
	code.frames = c->frames;
	code.nr_frames = c->nr_frames;
	return reader_code_rows_ask(t->config.reader, &code);
}

/* JITs fill their memory from below: the parts behind have tables before a path meets them. */
static void look_ahead(struct callpaths *t, const struct process *p,
		       const struct driver_rows_missing *met)
{
	for (uint64_t i = 1; i <= AHEAD && t->codes.nr < AHEAD_PARTS_MAX; i++) {
		struct driver_rows_missing m = *met;
		struct callpath_code *part;

		m.file.size += i;
		m.start += i << UNWIND_PAGE_BITS;
		m.end += i << UNWIND_PAGE_BITS;
		m.addr = m.start;
		if (m.end <= met->end || find(&t->codes, &m.file) || !prints_of(p, &m, 0).all ||
		    !callpath_rows_renew(t, &m))
			continue;
		part = note(t, p, &m);
		if (part)
			part->ahead = true;
	}
}

/* Is the table of what its process has now? Of more routines a new one is asked for, and the old
 * one stays until then: it says nothing wrong. */
static bool holds(struct callpaths *t, struct callpath_code *part)
{
	const struct process *p = process_of(t, &part->m);
	struct prints prints;
	uint64_t news;

	if (!p || part->news == UINT64_MAX)
		return false;
	read_early(t, p);
	news = dyn_news(p);
	if (news == part->news)
		return true;
	prints = prints_of(p, &part->m, part->last);
	if (prints.old != part->print)
		return false;
	if (prints.all != part->print && !callpath_rows_renew(t, &part->m))
		return false;
	part->news = news;
	return true;
}

/* The same, and the parts behind it are looked for where there is something new. */
static bool check(struct callpaths *t, size_t i)
{
	struct callpath_codes *c = &t->codes;
	const struct driver_rows_missing m = c->parts[i].m;
	const uint64_t news = c->parts[i].news;
	const bool ahead = c->parts[i].ahead;

	if (!holds(t, &c->parts[i]))
		return false;
	if (!ahead && c->parts[i].news != news)
		look_ahead(t, process_of(t, &m), &m);
	return true;
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

/* Some parts from the cursor on; those that do not hold go behind the @nr_gone. How many these are
 * then. */
static size_t check_some(struct callpaths *t, size_t nr_gone)
{
	struct callpath_codes *c = &t->codes;

	for (size_t i = 0; i < CHECKED_AT_ONCE && c->next < c->nr; i++) {
		if (is_asked(t, &c->parts[c->next]) || check(t, c->next)) {
			c->next++;
			continue;
		}
		/* Without memory it is tried again in the next turn. */
		if (base_grow(&c->gone, &c->cap_gone, nr_gone + 1, sizeof(*c->gone)) < 0)
			break;
		c->gone[nr_gone++] = c->parts[c->next].m.file;
		c->parts[c->next] = c->parts[--c->nr];
	}
	return nr_gone;
}

/* A round may take several turns: a process can have a million routines. */
void callpath_code_check(struct callpaths *t)
{
	struct callpath_codes *c = &t->codes;
	uint64_t begun_ns = base_now_ns(), cpu_ns;
	size_t nr_gone = 0;

	if (!c->next && (begun_ns - c->round_ns < CHECK_AGAIN_NS ||
			 begun_ns - c->round_ns < CHECK_SHARE * c->took_ns))
		return;
	if (!c->next) {
		c->round_ns = begun_ns;
		c->took_ns = 0;
		c->news = false;
	}
	/* Time in which the reader was waited for is none of it. */
	cpu_ns = base_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	while (c->next < c->nr && base_now_ns() - begun_ns < CHECK_NS)
		nr_gone = check_some(t, nr_gone);
	c->took_ns += base_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	if (c->next >= c->nr)
		c->next = 0;
	if (nr_gone)
		t->calls->forget(t->config.driver, c->gone, nr_gone);
}
