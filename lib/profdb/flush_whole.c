/* SPDX-License-Identifier: BSD-2-Clause */
/* Files about all images, one of each kind for an epoch and platform, in a flush, and as of the
 * last one: call paths, and workloads. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "profdb_internal.h"

/* As of this flush so far; -ENOENT where there is none yet. */
static int read_stored(struct profdb *db, const struct profdb_whole *kind,
		       const struct profdb_file *file, void **out, struct base_err *err)
{
	bool put = file->put_seq == db->flush.seq;
	struct base_buf buf = { 0 };
	int r = profdb_read_committed(db->epoch.fd, put ? db->flush.seq : 0, file->name, &buf, err);

	*out = NULL;
	if (r >= 0)
		r = kind->parse_stored(&buf, file->name, out, err);
	base_buf_release(&buf);
	return r;
}

/* Readers find nothing there until the flush is committed, as before: they could not read it. */
static int set_aside(struct profdb *db, const char *name)
{
	char bad[256];

	profdb_bad_name(db->flush.seq, name, bad);
	return renameat(db->epoch.fd, name, db->epoch.fd, bad) < 0 ? -errno : 0;
}

/* 1: the file was damaged, and is out of the way. */
static int load(struct profdb *db, const struct profdb_whole *kind, const struct profdb_file *file,
		void **out, struct base_err *err)
{
	struct base_err why = { 0 };
	int r = read_stored(db, kind, file, out, &why);
	bool bad = profdb_flush_is_bad(r);

	if (bad) {
		base_fail(err, r, "%s; it is set aside", why.text);
		r = set_aside(db, file->name);
	}
	if (r == -ENOENT || (bad && r >= 0)) {
		*out = kind->make();
		r = *out ? bad : -ENOMEM;
	}
	return r < 0 ? base_fail(err, r, "%s", bad ? base_strerror(r) : why.text) : r;
}

static int merge(struct profdb *db, const struct profdb_whole *kind, void *to, const void *from)
{
	int r = kind->merge(to, from);

	return r < 0 ? r : profdb_flush_words(db, kind->header(to), kind->header(from));
}

static int put(struct profdb *db, const struct profdb_whole *kind, const void *of,
	       struct base_err *err)
{
	void *m = NULL;
	struct base_buf buf = { 0 };
	struct profdb_file *file;
	int left, r;

	if (!db->flush.under_way)
		return base_fail(err, -EINVAL, "no flush is under way");
	file = profdb_epoch_file(db, kind->name, kind->name);
	if (!file)
		return base_fail_errno(err, -ENOMEM, "cannot store %s", kind->what);
	left = r = load(db, kind, file, &m, err);
	if (m) {
		r = merge(db, kind, m, of);
		if (r < 0)
			base_fail_errno(err, r, "cannot merge into '%s'", file->name);
	}
	if (r >= 0)
		r = kind->format(m, &buf, err);
	if (r >= 0)
		r = profdb_flush_write(db, file, &buf, NULL, err);
	base_buf_release(&buf);
	kind->release(m);
	return r < 0 ? r : left;
}

static int bytes(struct profdb *db, const struct profdb_whole *kind, const char *epoch,
		 const char *platform, struct base_buf *out, struct base_err *err)
{
	int r, fd = profdb_platform_open(db, epoch, platform);
	struct profdb_commit c = { 0 };
	struct base_err why = { 0 };

	if (fd < 0)
		return fd == -ENOENT ? fd
				     : base_fail_errno(err, fd, "cannot open '%s/%.20s/%.80s'",
						       db->path, epoch, platform);
	/* A record that cannot be read is no reason to show nothing. */
	profdb_commit_read(fd, &c, NULL);
	r = profdb_read_committed(fd, c.seq, kind->name, out, &why);
	profdb_commit_release(&c);
	close(fd);
	return r < 0 && r != -ENOENT ? base_fail(err, r, "%s", why.text) : r;
}

int profdb_whole_load(struct profdb *db, const struct profdb_whole *kind, const char *epoch,
		      const char *platform, void **out, struct base_err *err)
{
	struct base_buf buf = { 0 };
	char shown[128];
	int r = bytes(db, kind, epoch, platform, &buf, err);

	*out = NULL;
	snprintf(shown, sizeof(shown), "%.20s/%.80s/%s", epoch, platform, kind->name);
	if (r >= 0)
		r = kind->parse(&buf, shown, out, err);
	base_buf_release(&buf);
	return r;
}

/* ---- call paths ------------------------------------------------------------------------------ */

static void *callpaths_make(void)
{
	return profdb_callpaths_new();
}

static void callpaths_release(void *of)
{
	profdb_callpaths_free(of);
}

static int callpaths_parse(const struct base_buf *data, const char *shown, void **out,
			   struct base_err *err)
{
	struct profdb_callpaths *c;
	int r = profdb_callpaths_parse_shown(data, shown, &c, err);

	*out = c;
	return r;
}

static int callpaths_merge(void *to, const void *from)
{
	return profdb_callpaths_merge(to, from);
}

static int callpaths_format(const void *of, struct base_buf *out, struct base_err *err)
{
	return profdb_callpaths_format(of, out, err);
}

static struct profdb_profile *callpaths_header(const void *of)
{
	return ((const struct profdb_callpaths *)of)->header;
}

static const struct profdb_whole callpaths = {
	.name = PROFDB_CALLPATHS,
	.what = "call paths",
	.make = callpaths_make,
	.release = callpaths_release,
	.parse = callpaths_parse,
	.parse_stored = callpaths_parse,
	.merge = callpaths_merge,
	.format = callpaths_format,
	.header = callpaths_header,
};

int profdb_flush_put_callpaths(struct profdb *db, const struct profdb_callpaths *c,
			       struct base_err *err)
{
	return put(db, &callpaths, c, err);
}

int profdb_callpaths_bytes(struct profdb *db, const char *epoch, const char *platform,
			   struct base_buf *out, struct base_err *err)
{
	return bytes(db, &callpaths, epoch, platform, out, err);
}

int profdb_callpaths_load(struct profdb *db, const char *epoch, const char *platform,
			  struct profdb_callpaths **out, struct base_err *err)
{
	void *of;
	int r = profdb_whole_load(db, &callpaths, epoch, platform, &of, err);

	*out = of;
	return r;
}

/* ---- workloads ------------------------------------------------------------------------------- */

static void *workloads_make(void)
{
	return profdb_workloads_new();
}

static void workloads_release(void *of)
{
	profdb_workloads_free(of);
}

static int workloads_parse_how(const struct base_buf *data, const char *shown,
			       enum profdb_workload_read how, void **out, struct base_err *err)
{
	struct profdb_workloads *w;
	int r = profdb_workloads_parse_shown(data, shown, how, &w, err);

	*out = w;
	return r;
}

static int workloads_parse(const struct base_buf *data, const char *shown, void **out,
			   struct base_err *err)
{
	return workloads_parse_how(data, shown, PROFDB_WORKLOADS_ALL, out, err);
}

static int workloads_parse_stored(const struct base_buf *data, const char *shown, void **out,
				  struct base_err *err)
{
	return workloads_parse_how(data, shown, PROFDB_WORKLOADS_STORED, out, err);
}

/* Read alone: nothing of them is written. */
static int workload_counts_parse(const struct base_buf *data, const char *shown, void **out,
				 struct base_err *err)
{
	return workloads_parse_how(data, shown, PROFDB_WORKLOADS_COUNTS, out, err);
}

static int workloads_merge(void *to, const void *from)
{
	return profdb_workloads_merge(to, from);
}

static int workloads_format(const void *of, struct base_buf *out, struct base_err *err)
{
	return profdb_workloads_format(of, out, err);
}

static struct profdb_profile *workloads_header(const void *of)
{
	return ((const struct profdb_workloads *)of)->header;
}

static const struct profdb_whole workloads = {
	.name = PROFDB_WORKLOADS,
	.what = "workloads",
	.make = workloads_make,
	.release = workloads_release,
	.parse = workloads_parse,
	.parse_stored = workloads_parse_stored,
	.merge = workloads_merge,
	.format = workloads_format,
	.header = workloads_header,
};

int profdb_flush_put_workloads(struct profdb *db, const struct profdb_workloads *w,
			       struct base_err *err)
{
	return put(db, &workloads, w, err);
}

int profdb_workloads_bytes(struct profdb *db, const char *epoch, const char *platform,
			   struct base_buf *out, struct base_err *err)
{
	return bytes(db, &workloads, epoch, platform, out, err);
}

int profdb_workloads_load(struct profdb *db, const char *epoch, const char *platform,
			  struct profdb_workloads **out, struct base_err *err)
{
	void *of;
	int r = profdb_whole_load(db, &workloads, epoch, platform, &of, err);

	*out = of;
	return r;
}

int profdb_workloads_load_counts(struct profdb *db, const char *epoch, const char *platform,
				 struct profdb_workloads **out, struct base_err *err)
{
	static const struct profdb_whole counts = { .name = PROFDB_WORKLOADS,
						    .parse = workload_counts_parse };
	void *of;
	int r = profdb_whole_load(db, &counts, epoch, platform, &of, err);

	*out = of;
	return r;
}

const struct profdb_whole *const profdb_wholes[PROFDB_NR_WHOLES] = { &callpaths, &workloads };

bool profdb_whole_name(const char *name)
{
	for (size_t i = 0; i < PROFDB_NR_WHOLES; i++)
		if (!strcmp(name, profdb_wholes[i]->name))
			return true;
	return false;
}

/* ---- when an epoch ends ---------------------------------------------------------------------- */

static int write_one(struct profdb *db, const struct profdb_workloads *w, struct base_err *err)
{
	struct profdb_file *file = profdb_epoch_file(db, PROFDB_WORKLOADS, PROFDB_WORKLOADS);
	struct base_buf buf = { 0 };
	int r = file ? profdb_workloads_format(w, &buf, err) : -ENOMEM;

	if (r >= 0)
		r = profdb_flush_write(db, file, &buf, NULL, err);
	base_buf_release(&buf);
	return r;
}

int profdb_flush_compact(struct profdb *db, struct base_err *err)
{
	struct profdb_workloads *w;
	int r = profdb_workloads_load(db, db->epoch.name, db->platform, &w, err);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (w->nr_parts > 1) {
		r = profdb_flush_begin(db, err);
		if (r >= 0)
			r = write_one(db, w, err);
		if (r >= 0)
			r = profdb_flush_commit(db, err);
		if (r < 0)
			profdb_flush_abort(db);
	}
	profdb_workloads_free(w);
	return r;
}
