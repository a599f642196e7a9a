/* SPDX-License-Identifier: BSD-2-Clause */
/* The profiles of an epoch are visited as of one flush, whatever the daemon writes meanwhile. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "profdb_internal.h"

/*
 * Take the bytes of all files, then look whether a flush was committed meanwhile: if so, they may
 * be of two flushes, so again. Between two commits every name means one content: ".new-SEQ-NAME"
 * where that is, else NAME.
 */
enum { ATTEMPTS = 200 };

struct snapshot {
	struct profdb *db;
	bool values;		   /* else profiles */
	const char *profiler;	   /* profiler of the values; NULL: any */
	struct profdb_names names; /* ascending */
	struct taken {
		struct base_buf bytes;
		struct base_err err; /* where the file could not be read */
		bool gone;
	} * files;
};

static void snapshot_release(struct snapshot *s)
{
	for (size_t i = 0; s->files && i < s->names.nr; i++)
		base_buf_release(&s->files[i].bytes);
	free(s->files);
	profdb_names_release(&s->names);
	s->files = NULL;
}

static int by_name(const void *name, const void *item)
{
	return strcmp(name, *(char *const *)item);
}

/* @c->gone ascends. */
static bool is_gone(const struct profdb_commit *c, const char *name)
{
	return c->gone.nr &&
	       bsearch(name, c->gone.items, c->gone.nr, sizeof(*c->gone.items), by_name);
}

static bool is_whole(const char *name)
{
	for (size_t i = 0; i < PROFDB_NR_WHOLES; i++)
		if (!strcmp(name, profdb_wholes[i]->name))
			return true;
	return false;
}

static bool is_wanted(const struct snapshot *s, const char *name)
{
	return !is_whole(name) &&
	       profdb_values_name(name, s->values ? s->profiler : NULL) == s->values;
}

/* A listing may miss a name that is just being renamed: the commit has those. */
static int take_names(int fd, const struct profdb_commit *c, struct snapshot *s)
{
	struct profdb_names all = { 0 };
	int r = profdb_names_list(&all, fd, ".");

	for (size_t i = 0; r >= 0 && i < all.nr; i++) {
		const char *name = all.items[i];

		if (name[0] != '.' && !is_gone(c, name) && is_wanted(s, name))
			r = profdb_names_add(&s->names, name);
	}
	for (size_t i = 0; r >= 0 && i < c->files.nr; i++)
		if (is_wanted(s, c->files.items[i]))
			r = profdb_names_add(&s->names, c->files.items[i]);
	profdb_names_sort(&s->names);
	profdb_names_release(&all);
	return r;
}

static void take_file(int fd, uint64_t seq, const char *name, struct taken *t)
{
	t->gone = profdb_read_committed(fd, seq, name, &t->bytes, &t->err) == -ENOENT;
}

static int take_snapshot(int fd, const struct profdb_commit *c, struct snapshot *s)
{
	int r = take_names(fd, c, s);

	if (r < 0)
		return r;
	s->files = calloc(s->names.nr + 1, sizeof(*s->files));
	if (!s->files)
		return -ENOMEM;
	for (size_t i = 0; i < s->names.nr; i++) {
		take_file(fd, c->seq, s->names.items[i], &s->files[i]);
		profdb_lock_heartbeat(s->db);
	}
	return 0;
}

/* 1: a flush came between. A record that cannot be read is no reason to show nothing. */
static int attempt(int fd, struct snapshot *s, struct base_err *record)
{
	struct profdb_commit before = { 0 }, after = { 0 };
	int r;

	profdb_commit_read(fd, &before, record);
	profdb_names_sort(&before.gone);
	r = take_snapshot(fd, &before, s);
	profdb_commit_read(fd, &after, NULL);
	if (r >= 0)
		r = before.seq != after.seq;
	profdb_commit_release(&before);
	profdb_commit_release(&after);
	return r;
}

static int settle(int fd, struct snapshot *s, struct base_err *record)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	int r = 1;

	for (int i = 0; r == 1 && i < ATTEMPTS; i++) {
		if (i)
			nanosleep(&pause, NULL);
		snapshot_release(s);
		*record = (struct base_err){ 0 };
		r = attempt(fd, s, record);
	}
	return r == 1 ? -EAGAIN : r;
}

struct visitor {
	bool values;
	const char *profiler;
	int (*values_fn)(void *ctx, const char *file, struct profdb_values *v);
	int (*fn)(void *ctx, const char *file, struct profdb_profile *p);
	int (*file_fn)(void *ctx, const char *file, const struct base_buf *bytes,
		       const struct profdb_profile *p); /* instead */
	void (*bad)(void *ctx, const char *file, const struct base_err *err);
	void *ctx;
};

static int visit_profile(const struct visitor *v, const char *name, struct taken *t,
			 struct profdb_profile *p)
{
	int r;

	if (!v->file_fn) {
		base_buf_release(&t->bytes);
		return v->fn(v->ctx, name, p);
	}
	r = v->file_fn(v->ctx, name, &t->bytes, p);
	profdb_profile_free(p);
	return r;
}

/* A file of another profiler, whose name is shown alike, is not ours. */
static int visit_values(const struct visitor *v, const char *name, struct taken *t,
			struct profdb_values *values)
{
	int r = 0;

	if (v->profiler && strcmp(v->profiler, values->profiler) != 0)
		r = 0;
	else if (v->file_fn)
		r = v->file_fn(v->ctx, name, &t->bytes, values->header);
	else
		return v->values_fn(v->ctx, name, values);
	profdb_values_free(values);
	return r;
}

static void tell_bad(const struct visitor *v, const char *name, const struct base_err *file_err,
		     const struct base_err *why)
{
	const char *what = v->values ? "values" : "profile";
	struct base_err err = { 0 };

	if (!v->bad)
		return;
	base_fail(&err, why->code, "cannot read %s '%s': %s", what, name, why->text);
	if (v->values && why->code == -EACCES)
		base_hint(&err, "values are secrets: for the daemon's user, and for the one whose "
				"code ran, if it ran alone");
	else if (why->hint[0])
		base_hint(&err, "%s", why->hint);
	v->bad(v->ctx, name, file_err->code && !v->values ? file_err : &err);
}

static int visit_file(const struct visitor *v, const char *name, struct taken *t)
{
	struct profdb_values *values = NULL;
	struct profdb_profile *p = NULL;
	struct base_err why = t->err;
	int r = 0;

	if (t->gone)
		return 0; /* removed, with its epoch perhaps */
	if (!why.code && v->values)
		r = profdb_values_parse(t->bytes.data, t->bytes.len, &values, &why);
	else if (!why.code)
		r = profdb_profile_parse(t->bytes.data, t->bytes.len, &p, &why);
	if (why.code || r < 0) {
		tell_bad(v, name, &t->err, &why);
		r = 0;
	} else if (v->values) {
		r = visit_values(v, name, t, values);
	} else {
		r = visit_profile(v, name, t, p);
	}
	base_buf_release(&t->bytes);
	return r;
}

static int visit(const struct visitor *v, struct snapshot *s)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < s->names.nr; i++) {
		r = visit_file(v, s->names.items[i], &s->files[i]);
		profdb_lock_heartbeat(s->db);
	}
	return r < 0 ? r : 0;
}

static int walk(struct profdb *db, const char *epoch, const char *platform, const struct visitor *v,
		struct base_err *err)
{
	struct base_err record;
	struct snapshot s = { .db = db, .values = v->values, .profiler = v->profiler };
	int r, fd = profdb_platform_open(db, epoch, platform);

	if (fd < 0)
		return base_fail_errno(err, fd, "cannot open '%s/%.20s/%.80s'", db->path, epoch,
				       platform);
	r = settle(fd, &s, &record);
	if (r == -EAGAIN)
		base_fail(err, r, "cannot read '%s/%s/%s': flushes come faster than it can be read",
			  db->path, epoch, platform);
	if (r < 0)
		base_fail_errno(err, r, "cannot read '%s/%s/%s'", db->path, epoch, platform);
	if (r >= 0 && record.code && v->bad)
		v->bad(v->ctx, PROFDB_COMMIT_NAME, &record);
	if (r >= 0) {
		r = visit(v, &s);
		if (r < 0)
			base_fail_errno(err, r, "cannot use '%s/%s/%s'", db->path, epoch, platform);
	}
	snapshot_release(&s);
	close(fd);
	return r;
}

int profdb_walk(struct profdb *db, const char *epoch, const char *platform,
		int (*fn)(void *ctx, const char *file, struct profdb_profile *p),
		void (*bad)(void *ctx, const char *file, const struct base_err *err), void *ctx,
		struct base_err *err)
{
	const struct visitor v = { .fn = fn, .bad = bad, .ctx = ctx };

	return walk(db, epoch, platform, &v, err);
}

int profdb_walk_values(struct profdb *db, const char *epoch, const char *platform,
		       const char *profiler,
		       int (*fn)(void *ctx, const char *file, struct profdb_values *v),
		       void (*bad)(void *ctx, const char *file, const struct base_err *err),
		       void *ctx, struct base_err *err)
{
	const struct visitor v = {
		.values = true, .profiler = profiler, .values_fn = fn, .bad = bad, .ctx = ctx
	};

	return walk(db, epoch, platform, &v, err);
}

int profdb_walk_files(struct profdb *db, const char *epoch, const char *platform, bool values,
		      int (*fn)(void *ctx, const char *file, const struct base_buf *bytes,
				const struct profdb_profile *header),
		      void (*bad)(void *ctx, const char *file, const struct base_err *err),
		      void *ctx, struct base_err *err)
{
	const struct visitor v = { .values = values, .file_fn = fn, .bad = bad, .ctx = ctx };

	return walk(db, epoch, platform, &v, err);
}
