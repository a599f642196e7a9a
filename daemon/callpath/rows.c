/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwind tables for the files whose code paths met: the reader makes them, the driver takes them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "callpath_internal.h"
#include "unwind.h"

/* CPU time for making tables: three seconds for what is new, or a twentieth of one CPU. */
#define BUDGET_NS    3000000000ull
#define BUDGET_SHARE 20
/* The longest time of one turn, in which dcpid reads nothing else; the last request may exceed it.
 */
#define SERVE_NS 100000000ull
/* A file is looked for again so often, and after so long in another process that runs it: by then
 * the events of a process that has ended said what it had mapped. */
#define AGAIN_NS    500000000ull
#define PATIENCE_NS 2000000000ull
enum { FILES_MAX = 4096, CODES_MAX = 1024, FAILURES_MAX = 3, CODE_SHARE = 9 };

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

/* Code that is asked for already was forgotten meanwhile, and met again. */
static bool is_asked(const struct callpath_rows *r, const struct driver_rows_missing *m)
{
	for (size_t i = 0; m->kind == DRIVER_ROWS_CODE && i < r->nr; i++)
		if (!memcmp(&r->files[i].m.file, &m->file, sizeof(m->file)))
			return true;
	return false;
}

/* Code that processes write leaves places for files. */
static bool has_place(const struct callpath_rows *r, const struct driver_rows_missing *m)
{
	return r->nr < (m->kind == DRIVER_ROWS_CODE ? CODES_MAX : FILES_MAX);
}

static int on_missing(void *ctx, const struct driver_rows_missing *m)
{
	struct callpaths *t = ctx;
	struct callpath_rows *r = &t->rows;

	if (is_asked(r, m))
		return 0;
	if (!has_place(r, m) || base_grow(&r->files, &r->cap, r->nr + 1, sizeof(*r->files)) < 0) {
		put_none(t, &m->file);
		if (m->kind == DRIVER_ROWS_CODE)
			callpath_code_later(t, m);
		return 0;
	}
	r->files[r->nr] = (struct callpath_file){ .m = *m, .since_ns = base_now_ns() };
	/* Its process may end before it is asked for. */
	if (m->kind == DRIVER_ROWS_FILE)
		find_path(t, &r->files[r->nr]);
	r->nr++;
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

static int ask_vdso(const struct callpaths *t, struct unwind_table **out)
{
	const struct reader_mapped none = { 0 };
	int fd = kernel_vdso_open(), r;

	if (fd < 0)
		return fd;
	r = reader_rows(t->config.reader, &none, fd, out);
	close(fd);
	return r;
}

/* The process has ended, or maps another file by now. */
static bool is_gone(int r)
{
	return r == -ESTALE || r == -ENOENT || r == -ESRCH;
}

/* First by the mapping, as it is now; then by the path that events told of it. */
static int ask(struct callpaths *t, struct callpath_file *f, struct unwind_table **out)
{
	struct reader_mapped q = { .pid = f->m.pid,
				   .start = f->m.start,
				   .end = f->m.end,
				   .dev = f->m.file.dev,
				   .inode = f->m.file.ino,
				   .size = f->m.file.size };
	int r;

	if (f->m.kind == DRIVER_ROWS_VDSO)
		return ask_vdso(t, out);
	if (f->m.kind == DRIVER_ROWS_CODE)
		return callpath_code_ask(t, &f->m, out);
	q.path = f->path;
	r = reader_rows(t->config.reader, &q, -1, out);
	if (!is_gone(r))
		return r;
	find_path(t, f);
	if (!f->path || !f->id.len)
		return r;
	q.path = f->path;
	q.id = f->id;
	return reader_rows(t->config.reader, &q, -1, out);
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

/* A user's budget comes back; what a process has, or had, mapped may be found when it is known. */
static bool may_come(struct callpath_file *f, int r, uint64_t now_ns)
{
	if (r == -EDQUOT)
		return true;
	/* The machine may be busy; a file that does it again and again is given up. */
	if (r == -ETIMEDOUT || r == -DCPI_EHELPER)
		return ++f->nr_failed < FAILURES_MAX;
	return is_gone(r) && now_ns - f->since_ns < PATIENCE_NS;
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

/* False: it is to be asked for again, later. */
static bool serve_file(struct callpaths *t, struct callpath_file *f)
{
	struct unwind_table *table = NULL;
	uint64_t now = base_now_ns();
	int r;

	if (now < f->next_ns)
		return false;
	r = ask(t, f, &table);
	f->next_ns = now + AGAIN_NS;
	if (may_come(f, r, now))
		return false;
	if (is_gone(r))
		t->calls->again(t->config.driver, &f->m.file);
	else if (r < 0)
		put_none(t, &f->m.file);
	else
		put(t, f, table);
	say(f, r);
	unwind_free(table);
	return true;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void refill(struct callpath_rows *r)
{
	uint64_t now = base_now_ns();

	if (!r->refilled_ns)
		r->budget_ns = BUDGET_NS;
	else
		r->budget_ns += (now - r->refilled_ns) / BUDGET_SHARE;
	r->budget_ns = r->budget_ns > BUDGET_NS ? BUDGET_NS : r->budget_ns;
	r->refilled_ns = now;
}

/* Charge the helpers' CPU time since @before_ns. They may be others now. */
static void spend(struct callpaths *t, uint64_t before_ns)
{
	uint64_t now_ns = reader_cpu_ns(t->config.reader);
	uint64_t took_ns = now_ns > before_ns ? now_ns - before_ns : 0;

	t->rows.budget_ns -= took_ns < t->rows.budget_ns ? took_ns : t->rows.budget_ns;
}

/* May code be asked for? It has a tenth of the time: dcpid reads meanwhile who lives where. */
static bool has_turn(const struct callpath_rows *r, bool code, uint64_t begun_ns)
{
	uint64_t now_ns = base_now_ns();

	return r->budget_ns && now_ns - begun_ns < SERVE_NS && (!code || now_ns >= r->code_ns);
}

/* Code of processes, or (not @code) all else is asked for, as far as time and budget go. */
static void serve_some(struct callpaths *t, bool code, uint64_t begun_ns)
{
	struct callpath_rows *r = &t->rows;
	size_t kept = 0;

	for (size_t i = 0; i < r->nr; i++) {
		struct callpath_file *f = &r->files[i];
		bool served = false;

		if ((f->m.kind == DRIVER_ROWS_CODE) == code && has_turn(r, code, begun_ns)) {
			uint64_t before_ns = reader_cpu_ns(t->config.reader);
			uint64_t from_ns = base_now_ns(), to_ns;

			served = serve_file(t, f);
			spend(t, before_ns);
			to_ns = base_now_ns();
			if (code)
				r->code_ns = to_ns + CODE_SHARE * (to_ns - from_ns);
		}
		if (served)
			free_file(f);
		else
			r->files[kept++] = *f;
	}
	r->nr = kept;
}

bool callpath_serve(struct callpaths *t)
{
	struct callpath_rows *r = &t->rows;
	uint64_t begun_ns = base_now_ns(), put_before = r->nr_put;

	if (!t->config.reader)
		return false;
	refill(r);
	callpath_code_check(t);
	t->calls->missing(t->config.driver, on_missing, t);
	/* A process that changes its code all the time does not hold up files. */
	serve_some(t, false, begun_ns);
	serve_some(t, true, begun_ns);
	return r->nr_put > put_before;
}
