/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwind tables for the files and the code that paths met: the reader makes one at a time while
 * dcpid continues, the driver takes it. Tables of code that processes write (JITs) are made from
 * the routines that they told of, by parts of 64 KiB of their memory, and again when these change.
 * Paths that ended for want of a table continue by it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

/*
 * CPU time for making tables: of each kind so long for what is new, or such a share of one CPU; so
 * none waits for another kind. The last one may take more, which is waited for. A JVM's code takes
 * some 0.3 s.
 */
static const int64_t budget_ns[CALLPATH_NR_BUDGETS] = {
	[CALLPATH_OF_FILES] = 1500000000,
	[CALLPATH_OF_LARGE] = 1500000000,
	[CALLPATH_OF_CODE] = 3000000000,
};
#define BUDGET_SHARE 40
#define LARGE	     (8u << 20)
/* The longest time of one turn for tables that are made at once; the last one may exceed it. */
#define SERVE_NS 20000000ull
/* A file is looked for again so often, and after so long in another process that runs it: by then
 * the events of a process that has ended said what it had mapped. */
#define AGAIN_NS 500000000ull
/* A path may meet code before an event told of its process. */
#define UNKNOWN_NS  20000000ull
#define WANTED_NS   50000000ull
#define PATIENCE_NS 2000000000ull
/* A small table is waited for. */
enum { SMALL_MS = 4 };
/* Time that was spent for users counts half after so long. */
#define HALF_NS 10000000000ull
/* Time in which a table holds others up counts so many times. */
enum { IDLE_COST = 20 };
enum { FILES_MAX = 4096, CODES_MAX = 1024, FAILURES_MAX = 3 };

/* ---- routines that processes told of --------------------------------------------------------- */

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

/* ---- places for what is missing -------------------------------------------------------------- */

/* Code that waits already was forgotten meanwhile, and met again. */
static bool waits(const struct callpath_rows *r, const struct driver_rows_missing *m)
{
	for (size_t i = 0; m->kind == DRIVER_ROWS_CODE && i < r->nr; i++)
		if (!memcmp(&r->files[i].m.file, &m->file, sizeof(m->file)))
			return true;
	return false;
}

/* Code that processes write leaves places for files; and a user has half of what others leave. */
static bool has_place(const struct callpath_rows *r, const struct driver_rows_missing *m,
		      uint32_t uid)
{
	size_t max = m->kind == DRIVER_ROWS_CODE ? CODES_MAX : FILES_MAX, own = 0;

	for (size_t i = 0; r->nr >= max / 2 && i < r->nr; i++)
		own += r->files[i].uid == uid;
	return r->nr < max && own < (max - (r->nr - own)) / 2;
}

static uint32_t uid_of(const struct callpaths *t, int32_t pid)
{
	const struct process *p = processes_find(t->config.follow->processes, pid);

	return p && p->uid_known ? p->uid : reader_user(pid);
}

/* False: there is no place for it. */
static bool add_file(struct callpaths *t, const struct driver_rows_missing *m)
{
	struct callpath_rows *r = &t->rows;
	uint32_t uid = uid_of(t, m->pid);

	if (!has_place(r, m, uid) ||
	    base_grow(&r->files, &r->cap, r->nr + 1, sizeof(*r->files)) < 0)
		return false;
	r->files[r->nr++] =
		(struct callpath_file){ .m = *m, .since_ns = base_now_ns(), .uid = uid };
	return true;
}

/* Have the table of code made again, which replaces the one that there is. False: there is no place
 * for one more. */
static bool renew(struct callpaths *t, const struct driver_rows_missing *m)
{
	return waits(&t->rows, m) || add_file(t, m);
}

/* ---- parts of their memory ------------------------------------------------------------------- */

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

/* There is no place for @m: check_codes has it met again. */
static void ask_later(struct callpaths *t, const struct driver_rows_missing *m)
{
	const struct process *p = process_of(t, m);
	struct callpath_code *part = p && !t->codes.unsupported ? note(t, p, m) : NULL;

	if (part)
		part->news = UINT64_MAX;
}

/* Ask for the table of the routines that a process has there now: as reader_code_rows_ask;
 * -ENODATA: none, or none that is known. */
static int ask_code(struct callpaths *t, const struct driver_rows_missing *m)
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
		    !renew(t, &m))
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
	if (prints.all != part->print && !renew(t, &part->m))
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

/* Tables of parts whose routines have changed since, or whose process has ended, are forgotten. A
 * round may take several turns: a process can have a million routines. */
static void check_codes(struct callpaths *t)
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

/* ---- users ----------------------------------------------------------------------------------- */

static struct callpath_user *user_of(struct callpath_rows *r, uint32_t uid)
{
	struct callpath_user *least = r->users;

	for (size_t i = 0; i < CALLPATH_USERS; i++) {
		if (r->users[i].uid == uid && r->users[i].took_ns)
			return &r->users[i];
		if (r->users[i].took_ns < least->took_ns)
			least = &r->users[i];
	}
	return least;
}

static uint64_t took_ns(struct callpath_rows *r, uint32_t uid)
{
	const struct callpath_user *u = user_of(r, uid);

	return u->uid == uid ? u->took_ns : 0;
}

/* Where there are more than are known, who took least is forgotten. */
static void charge(struct callpath_rows *r, uint32_t uid, uint64_t ns)
{
	struct callpath_user *u = user_of(r, uid);

	if (u->uid != uid)
		*u = (struct callpath_user){ .uid = uid };
	u->took_ns += ns;
}

/* ---- what is missing ------------------------------------------------------------------------- */

/* Its code stays without rows. */
static void put_none(struct callpaths *t, const struct driver_file *file)
{
	t->calls->put(t->config.driver, file, NULL);
	t->rows.nr_none++;
}

/* The process may be known, and what it has mapped. */
static void find_path(const struct callpaths *t, struct callpath_file *f)
{
	struct process *p = processes_find(t->config.follow->processes, f->m.pid);
	const struct map *m = p && !f->path ? map_find(p, f->m.addr) : NULL;

	if (!m || m->kind != MAP_IMAGE || m->image->kind != PROFDB_FILE)
		return;
	f->path = strdup(m->image->path);
	f->id = m->image->id;
}

static int on_missing(void *ctx, const struct driver_rows_missing *m)
{
	struct callpaths *t = ctx;

	if (waits(&t->rows, m))
		return 0;
	if (!add_file(t, m)) {
		put_none(t, &m->file);
		if (m->kind == DRIVER_ROWS_CODE)
			ask_later(t, m);
		return 0;
	}
	/* Its process may end before it is asked for. */
	if (m->kind == DRIVER_ROWS_FILE)
		find_path(t, &t->rows.files[t->rows.nr - 1]);
	return 0;
}

/* ---- files and their images ------------------------------------------------------------------ */

enum { KNOWN_MAX = 4096 };
/* The events of a process come so much later at most, or it is not looked for any more. */
#define LEARN_NS 2000000000ull

static bool learn(const struct callpaths *t, struct callpath_known *k)
{
	const struct process *p = processes_find(t->config.follow->processes, k->m.pid);
	const struct map *m = p ? map_find(p, k->m.addr) : NULL;

	if (p && p->instance && k->m.instance && p->instance != k->m.instance)
		return false;
	if (!m || m->kind != MAP_IMAGE || m->image->kind != PROFDB_FILE)
		return false;
	k->id = m->image->id;
	k->text = m->image->text;
	/* Not that of a later life of its pid. */
	if (p->uid_known && p->instance && p->instance == k->m.instance)
		k->uid = p->uid;
	return true;
}

/* The driver has the table of @f. The first one makes way where there are too many: files that are
 * in use are put again. */
static void know(struct callpaths *t, const struct callpath_file *f)
{
	struct callpath_known k = { .m = f->m, .uid = f->uid, .put_ns = base_now_ns() };

	if (f->m.kind != DRIVER_ROWS_FILE)
		return;
	learn(t, &k);
	if (t->nr_known == KNOWN_MAX)
		t->known[0] = t->known[--t->nr_known];
	if (base_grow(&t->known, &t->cap_known, t->nr_known + 1, sizeof(*t->known)) == 0)
		t->known[t->nr_known++] = k;
	t->nr_unlearned += !k.id.len;
}

/* Now and then: which images those are whose process was not known. */
static void know_images(struct callpaths *t)
{
	uint64_t now_ns = base_now_ns();
	size_t kept = 0;

	t->nr_unlearned = 0;
	for (size_t i = 0; i < t->nr_known; i++) {
		struct callpath_known *k = &t->known[i];
		bool known = k->id.len || learn(t, k);

		if (!known && now_ns - k->put_ns >= LEARN_NS)
			continue;
		t->nr_unlearned += !known;
		t->known[kept++] = *k;
	}
	t->nr_known = kept;
}

/* A short process is known by its events alone, and forgotten by the same drain: this is the time
 * when all of its mappings are known. */
static void know_ending(struct callpaths *t, int32_t pid)
{
	for (size_t i = 0; t->nr_unlearned && i < t->nr_known; i++)
		if (!t->known[i].id.len && t->known[i].m.pid == pid)
			learn(t, &t->known[i]);
}

/* A process may have mapped another file there meanwhile: only root's, and dcpid's own helpers,
 * count for other users. */
static bool holds_for(const struct callpath_known *k, const struct process *p,
		      const struct image *img)
{
	return k->id.len && base_id_equal(&k->id, &img->id) &&
	       base_id_equal(&k->text, &img->text) &&
	       (!k->uid || k->uid == BASE_HELPER_ID || (p->uid_known && k->uid == p->uid));
}

/* The newest: a file may have been changed since the others. */
static const struct driver_file *file_of(const struct callpaths *t, const struct process *p,
					 const struct image *img)
{
	for (size_t i = t->nr_known; i--;)
		if (holds_for(&t->known[i], p, img))
			return &t->known[i].m.file;
	return NULL;
}

/* ---- load events ----------------------------------------------------------------------------- */

static bool is_of(const struct callpath_file *f, const struct driver_load *l)
{
	return !f->path && f->m.kind == DRIVER_ROWS_FILE && f->m.pid == l->pid &&
	       f->m.addr >= l->addr && f->m.addr - l->addr < l->len &&
	       l->file_off + (f->m.start - l->addr) == f->m.file_off;
}

/* A process that has ended when its file is asked for cannot show it: its events said which. */
void callpath_load(struct callpaths *t, const struct driver_load *l)
{
	if (l->kind == DRIVER_LOAD_EXIT || l->kind == DRIVER_LOAD_EXEC)
		know_ending(t, l->pid);
	if (l->kind != DRIVER_LOAD_MMAP || !l->path)
		return;
	for (size_t i = 0; i < t->rows.nr; i++) {
		struct callpath_file *f = &t->rows.files[i];

		if (!is_of(f, l))
			continue;
		f->path = strdup(l->path);
		f->id = l->id;
		f->next_ns = 0;
	}
}

/* ---- one file -------------------------------------------------------------------------------- */

static int ask_vdso(const struct callpaths *t)
{
	const struct reader_mapped none = { 0 };
	int fd = kernel_vdso_open(), r;

	if (fd < 0)
		return fd;
	r = reader_rows_ask(t->config.reader, &none, fd);
	close(fd);
	return r;
}

/* The process has ended, or maps another file by now. */
static bool is_gone(int r)
{
	return r == -ESTALE || r == -ENOENT || r == -ESRCH;
}

/* First by the mapping, as it is now; then by the path that events told of it. */
static int ask(struct callpaths *t, const struct callpath_file *f)
{
	struct reader_mapped q = { .pid = f->m.pid,
				   .start = f->m.start,
				   .end = f->m.end,
				   .dev = f->m.file.dev,
				   .inode = f->m.file.ino,
				   .size = f->m.file.size,
				   .path = f->path };

	if (f->m.kind == DRIVER_ROWS_VDSO)
		return ask_vdso(t);
	if (f->m.kind == DRIVER_ROWS_CODE)
		return ask_code(t, &f->m);
	if (f->by_id)
		q.id = f->id;
	return reader_rows_ask(t->config.reader, &q, -1);
}

/* Another process that has the file may show it: the next one that meets it is told of. */
static void ask_others(struct callpaths *t, struct callpath_file *f)
{
	if (!f->others)
		t->calls->again(t->config.driver, &f->m.file);
	f->others = true;
}

/* Files that a process has, or had, mapped may be found when it is known. */
static bool may_come(struct callpaths *t, struct callpath_file *f, int r)
{
	bool by_id = f->by_id;

	if (r == -EBUSY)
		return true;
	/* The machine may be busy; a file that does it again and again is given up. */
	if (r == -ETIMEDOUT || r == -DCPI_EHELPER)
		return ++f->nr_failed < FAILURES_MAX;
	if (!is_gone(r))
		return false;
	if (f->m.kind == DRIVER_ROWS_FILE)
		find_path(t, f);
	f->by_id = !by_id && f->path && f->id.len;
	if (f->by_id)
		f->next_ns = 0;
	else if (f->m.kind == DRIVER_ROWS_FILE)
		ask_others(t, f);
	return f->by_id || base_now_ns() - f->since_ns < PATIENCE_NS;
}

static void say(const struct callpath_file *f, int r)
{
	static const char *const of[] = {
		[DRIVER_ROWS_FILE] = "a file",
		[DRIVER_ROWS_VDSO] = "the vdso",
		[DRIVER_ROWS_CODE] = "code that a process wrote",
	};

	base_log(BASE_LOG_DEBUG, "unwind table of %s, inode %llu, pid %d, at 0x%llx: %s",
		 of[f->m.kind], (unsigned long long)f->m.file.ino, f->m.pid,
		 (unsigned long long)f->m.addr, r < 0 ? base_strerror(r) : "made");
}

/* A table that is there is waited for no more, from whichever process it was to come. */
static void drop_waiting(struct callpath_rows *r, const struct driver_file *file)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->nr; i++) {
		if (memcmp(&r->files[i].m.file, file, sizeof(*file)) ||
		    r->files[i].m.kind != DRIVER_ROWS_FILE)
			r->files[kept++] = r->files[i];
		else
			free(r->files[i].path);
	}
	r->nr = kept;
}

static void was_put(struct callpaths *t, const struct callpath_file *f)
{
	t->rows.nr_put++;
	drop_waiting(&t->rows, &f->m.file);
	know(t, f);
}

/* There is @table, or @r says why not. True: it is to be asked for again. */
static bool settle(struct callpaths *t, struct callpath_file *f, int r,
		   const struct unwind_table *table)
{
	bool forgotten = false;

	if (may_come(t, f, r))
		return true;
	if (f->m.kind == DRIVER_ROWS_CODE) {
		/* Code of this machine is not followed. */
		t->codes.unsupported |= r == -DCPI_EUNSUPPORTED;
		forgotten = !t->codes.unsupported && !find(&t->codes, &f->m.file);
	}
	if (is_gone(r) || forgotten)
		ask_others(t, f);
	else if (r < 0 || t->calls->put(t->config.driver, &f->m.file, table) < 0)
		put_none(t, &f->m.file);
	else
		was_put(t, f);
	say(f, r);
	return false;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int64_t *budget_of(struct callpath_rows *r, const struct callpath_file *f)
{
	if (f->m.kind == DRIVER_ROWS_CODE)
		return &r->budget_ns[CALLPATH_OF_CODE];
	return &r->budget_ns[f->m.kind == DRIVER_ROWS_FILE && f->m.file.size >= LARGE
				     ? CALLPATH_OF_LARGE
				     : CALLPATH_OF_FILES];
}

static void refill(struct callpath_rows *r)
{
	uint64_t now = base_now_ns();
	int64_t more_ns = (int64_t)((now - r->refilled_ns) / BUDGET_SHARE);

	for (size_t i = 0; i < CALLPATH_NR_BUDGETS; i++) {
		r->budget_ns[i] += more_ns;
		if (!r->refilled_ns || r->budget_ns[i] > budget_ns[i])
			r->budget_ns[i] = budget_ns[i];
	}
	r->refilled_ns = now;
	if (now - r->halved_ns < HALF_NS)
		return;
	r->halved_ns = now;
	for (size_t i = 0; i < CALLPATH_USERS; i++)
		r->users[i].took_ns /= 2;
}

/* The asked one is done with, or goes behind the others. */
static void end_asked(struct callpaths *t, int code, const struct unwind_table *table)
{
	struct callpath_rows *r = &t->rows;
	struct callpath_file f = r->files[r->asked];
	bool unknown;

	r->nr--;
	memmove(&r->files[r->asked], &r->files[r->asked + 1],
		(r->nr - r->asked) * sizeof(*r->files));
	r->is_asked = false;
	unknown = f.m.kind == DRIVER_ROWS_CODE && code == -ESRCH;
	r->is_unknown |= unknown;
	f.next_ns = base_now_ns() + (unknown ? UNKNOWN_NS : AGAIN_NS);
	if (settle(t, &f, code, table))
		r->files[r->nr++] = f;
	else
		free(f.path);
}

/* False: it is not made in @wait_ms. */
static bool take(struct callpaths *t, unsigned int wait_ms)
{
	struct callpath_rows *r = &t->rows;
	struct unwind_table *table;
	struct reader_cost cost;
	int code = reader_rows_take(t->config.reader, wait_ms, &table, &cost);

	if (code == 1)
		return false;
	*budget_of(r, &r->files[r->asked]) -= (int64_t)cost.ran_ns;
	charge(r, r->files[r->asked].uid, cost.ran_ns + IDLE_COST * cost.idle_ns + 1);
	end_asked(t, code, table);
	unwind_free(table);
	return true;
}

/* The order of files: the least of each is next, and the first one that came where all are equal.
 */
struct rank {
	uint64_t took_ns; /* by its user */
	bool again;    /* files and code of processes take turns: those that change their code all
			  the time do not hold up files */
	uint64_t size; /* small files do not wait for large ones */
};

static struct rank rank_of(struct callpath_rows *r, const struct callpath_file *f)
{
	bool code = f->m.kind == DRIVER_ROWS_CODE;

	return (struct rank){ took_ns(r, f->uid), code == r->was_code, code ? 0 : f->m.file.size };
}

static bool is_before(const struct rank *a, const struct rank *b)
{
	if (a->took_ns != b->took_ns)
		return a->took_ns < b->took_ns;
	return a->again != b->again ? b->again : a->size < b->size;
}

/* The one that is next. False: none is due, or may be asked for. */
static bool pick(struct callpath_rows *r, uint64_t now_ns, size_t *found)
{
	struct rank first;
	bool any = false;

	for (size_t i = 0; i < r->nr; i++) {
		struct rank rank;

		if (r->files[i].next_ns > now_ns || *budget_of(r, &r->files[i]) <= 0)
			continue;
		rank = rank_of(r, &r->files[i]);
		if (any && !is_before(&rank, &first))
			continue;
		any = true;
		first = rank;
		*found = i;
	}
	return any;
}

/* False: there is nothing to ask for. */
static bool ask_next(struct callpaths *t)
{
	struct callpath_rows *r = &t->rows;
	uint64_t begun_ns = base_now_ns(), took_ns;
	int code;

	if (!pick(r, begun_ns, &r->asked))
		return false;
	r->is_asked = true;
	r->was_code = r->files[r->asked].m.kind == DRIVER_ROWS_CODE;
	code = ask(t, &r->files[r->asked]);
	/* dcpid itself has gathered the routines and frames of code. */
	took_ns = base_now_ns() - begun_ns;
	*budget_of(r, &r->files[r->asked]) -= (int64_t)took_ns;
	charge(r, r->files[r->asked].uid, took_ns);
	if (code < 0)
		end_asked(t, code, NULL);
	return true;
}

bool callpath_serve(struct callpaths *t)
{
	struct callpath_rows *r = &t->rows;
	uint64_t begun_ns = base_now_ns(), put_before = r->nr_put;
	bool more;

	if (!t->config.reader)
		return false;
	refill(r);
	know_images(t);
	check_codes(t);
	t->calls->missing(t->config.driver, on_missing, t);
	more = !r->is_asked || take(t, 0);
	/* However long that took, one is asked. */
	while (more)
		more = ask_next(t) && (!r->is_asked || take(t, SMALL_MS)) &&
		       base_now_ns() - begun_ns < SERVE_NS;
	return r->is_asked || r->nr_put > put_before || t->codes.news;
}

bool callpath_wants_events(struct callpaths *t)
{
	struct callpath_rows *r = &t->rows;
	uint64_t now_ns = base_now_ns();

	if (!r->is_unknown || now_ns - r->wanted_ns < WANTED_NS)
		return false;
	r->is_unknown = false;
	r->wanted_ns = now_ns;
	return true;
}

/* ---- paths that continue --------------------------------------------------------------------- */

/*
 * A path that met code which its program had just written ended there, for want of a table. It
 * brings a copy of its stack, and continues here when the table has been made.
 */

static const struct driver_file *part_of(const struct callpaths *t, uint64_t instance, int32_t pid,
					 uint64_t addr)
{
	for (size_t i = 0; i < t->codes.nr; i++) {
		const struct driver_rows_missing *m = &t->codes.parts[i].m;

		if (m->pid == pid && m->instance == instance && addr >= m->start && addr < m->end)
			return &m->file;
	}
	return NULL;
}

struct walk {
	struct callpaths *t;
	const struct process *p;
	const struct driver_callpath *c;
	uint64_t sp;
	struct unwind_rule rule;
};

static int read_stack(void *ctx, uint64_t addr, uint64_t *value)
{
	const struct walk *w = ctx;
	uint64_t off = addr - w->sp;

	if (off >= w->c->stack_len || w->c->stack_len - off < sizeof(*value))
		return -1;
	memcpy(value, (const char *)w->c->stack + off, sizeof(*value));
	return 0;
}

/* Where a table has none, and where there is no table, it is UNWIND_NONE; and where other code
 * stood before, which the path may have met, or another file. */
static const struct unwind_rule *find_rule(void *ctx, uint64_t addr)
{
	struct walk *w = ctx;
	const struct map *m = map_find(w->p, addr);
	const struct driver_file *file = NULL;
	uint64_t off = addr;

	w->rule = (struct unwind_rule){ .how = UNWIND_NONE };
	if (m && m->kind == MAP_IMAGE && m->since_ns <= w->c->first_ns) {
		file = file_of(w->t, w->p, m->image);
		off = addr - m->start + m->file_off;
	} else if (dyn_lived(w->p, addr, w->c->first_ns)) {
		file = part_of(w->t, w->c->instance, w->c->pid, addr);
	}
	if (!file || !w->t->calls->rule(w->t->config.driver, file, off, &w->rule))
		w->rule = (struct unwind_rule){ .how = UNWIND_NONE };
	return &w->rule;
}

/* The stack is copied so far only. */
static enum driver_callpath_end end_of(enum unwind_step step)
{
	return step == UNWIND_STEP_COMPLETE  ? DRIVER_CALLPATH_COMPLETE
	       : step == UNWIND_STEP_NO_ROWS ? DRIVER_CALLPATH_NO_ROWS
	       : step == UNWIND_STEP_ASTRAY  ? DRIVER_CALLPATH_ASTRAY
					     : DRIVER_CALLPATH_CUT;
}

/* The first one that was found is the last one that was known. */
static void add_found(struct callpaths *t, struct driver_callpath *c, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		t->addrs[c->nr - 1 + i] =
			t->found[i].pc | (t->found[i].exact ? DRIVER_FRAME_EXACT : 0);
	c->nr = (uint16_t)(c->nr - 1 + nr);
}

const uint64_t *callpath_continue(struct callpaths *t, const struct process *p,
				  struct driver_callpath *c, const uint64_t *frames, bool last)
{
	struct walk w = { .t = t, .p = p, .c = c };
	const struct unwind_memory memory = { read_stack, find_rule, &w };
	enum unwind_step end;
	size_t nr;

	if (!c->state || !p || c->end != DRIVER_CALLPATH_NO_ROWS ||
	    c->state->pc != (frames[c->nr - 1] & ~DRIVER_FRAME_EXACT))
		return frames;
	w.sp = c->state->reg[UNWIND_SP];
	nr = unwind_walk(&memory, c->state, t->found, DRIVER_NR_FRAMES - c->nr + 1, &end);
	if (nr < 2 || (!last && end_of(end) == DRIVER_CALLPATH_NO_ROWS))
		return frames;
	t->continued++;
	t->frames_found += nr - 1;
	memcpy(t->addrs, frames, c->nr * sizeof(*frames));
	add_found(t, c, nr);
	c->end = end_of(end);
	t->continued_to[c->end]++;
	return t->addrs;
}
