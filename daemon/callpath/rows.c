/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwind tables for the files whose code paths met: the reader makes one at a time while dcpid goes
 * on, the driver takes it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "callpath_internal.h"
#include "unwind.h"

/*
 * CPU time for making tables: three seconds for what is new, or a twentieth of one CPU. The last
 * one may take more, which is waited for. Half of it is for large files: others do not wait for
 * those.
 */
#define BUDGET_NS    1500000000ll
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

static void free_file(struct callpath_file *f)
{
	free(f->path);
}

void callpath_rows_release(struct callpath_rows *r)
{
	for (size_t i = 0; i < r->nr; i++)
		free_file(&r->files[i]);
	free(r->files);
	*r = (struct callpath_rows){ 0 };
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

static void forget_half(struct callpath_rows *r, uint64_t now_ns)
{
	if (now_ns - r->halved_ns < HALF_NS)
		return;
	r->halved_ns = now_ns;
	for (size_t i = 0; i < CALLPATH_USERS; i++)
		r->users[i].took_ns /= 2;
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

bool callpath_rows_renew(struct callpaths *t, const struct driver_rows_missing *m)
{
	return waits(&t->rows, m) || add_file(t, m);
}

static int on_missing(void *ctx, const struct driver_rows_missing *m)
{
	struct callpaths *t = ctx;

	if (waits(&t->rows, m))
		return 0;
	if (!add_file(t, m)) {
		put_none(t, &m->file);
		if (m->kind == DRIVER_ROWS_CODE)
			callpath_code_later(t, m);
		return 0;
	}
	/* Its process may end before it is asked for. */
	if (m->kind == DRIVER_ROWS_FILE)
		find_path(t, &t->rows.files[t->rows.nr - 1]);
	return 0;
}

static bool is_of(const struct callpath_file *f, const struct driver_load *l)
{
	return !f->path && f->m.kind == DRIVER_ROWS_FILE && f->m.pid == l->pid &&
	       f->m.addr >= l->addr && f->m.addr - l->addr < l->len &&
	       l->file_off + (f->m.start - l->addr) == f->m.file_off;
}

/* A process that has ended when its file is asked for cannot show it: its events said which. */
void callpath_load(struct callpaths *t, const struct driver_load *l)
{
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
		return callpath_code_ask(t, &f->m);
	if (f->by_id)
		q.id = f->id;
	return reader_rows_ask(t->config.reader, &q, -1);
}

static void put(struct callpaths *t, const struct callpath_file *f,
		const struct unwind_table *table)
{
	int r = t->calls->put(t->config.driver, &f->m.file, table);

	if (r < 0)
		put_none(t, &f->m.file);
	else
		t->rows.nr_put++;
}

/* Files that a process has, or had, mapped may be found when it is known. */
static bool may_come(const struct callpaths *t, struct callpath_file *f, int r)
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

/* There is @table, or @r says why not. True: it is to be asked for again. */
static bool settle(struct callpaths *t, struct callpath_file *f, int r,
		   const struct unwind_table *table)
{
	if (may_come(t, f, r))
		return true;
	if (is_gone(r) || (f->m.kind == DRIVER_ROWS_CODE && !callpath_code_done(t, &f->m, r)))
		t->calls->again(t->config.driver, &f->m.file);
	else if (r < 0)
		put_none(t, &f->m.file);
	else
		put(t, f, table);
	say(f, r);
	return false;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int64_t *budget_of(struct callpath_rows *r, const struct callpath_file *f)
{
	return &r->budget_ns[f->m.kind == DRIVER_ROWS_FILE && f->m.file.size >= LARGE];
}

static void refill(struct callpath_rows *r)
{
	uint64_t now = base_now_ns();
	int64_t more_ns =
		r->refilled_ns ? (int64_t)((now - r->refilled_ns) / BUDGET_SHARE) : BUDGET_NS;

	for (size_t i = 0; i < 2; i++) {
		r->budget_ns[i] += more_ns;
		if (r->budget_ns[i] > BUDGET_NS)
			r->budget_ns[i] = BUDGET_NS;
	}
	r->refilled_ns = now;
	forget_half(r, now);
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
		free_file(&f);
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
	callpath_code_check(t);
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
