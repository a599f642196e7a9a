/* SPDX-License-Identifier: BSD-2-Clause */
/* Files about all images, one of each kind for an epoch and platform, in a flush, and as of the
 * last one: call paths, and workloads. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "profdb_internal.h"

const struct profdb_whole *const profdb_wholes[PROFDB_NR_WHOLES] = { &profdb_whole_callpaths,
								     &profdb_whole_workloads };

int profdb_whole_header(const struct profdb_whole *kind, const void *data, size_t len,
			struct profdb_profile **header, size_t *binary, struct base_err *err)
{
	const struct profdb_profile *h;
	enum profdb_format format;
	int r;

	profdb_profile_free(*header);
	*header = NULL;
	r = profdb_header_parse(data, len, header, binary, &format, err);
	if (r < 0)
		return r;
	h = *header;
	if (format != PROFDB_FORMAT_1 || h->kind != PROFDB_NAMED || h->nr_paths != 1 ||
	    strcmp(h->paths[0], kind->name) != 0)
		return base_fail(err, -DCPI_EFORMAT, "it holds no %s", kind->what);
	return 0;
}

/* ---- in a flush ------------------------------------------------------------------------------ */

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

	snprintf(bad, sizeof(bad), PROFDB_BAD_PREFIX "%llu-%s", (unsigned long long)db->flush.seq,
		 name);
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

/* ---- as of the last flush -------------------------------------------------------------------- */

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

/* ---- call paths, and workloads --------------------------------------------------------------- */

int profdb_flush_put_callpaths(struct profdb *db, const struct profdb_callpaths *c,
			       struct base_err *err)
{
	return put(db, &profdb_whole_callpaths, c, err);
}

int profdb_callpaths_bytes(struct profdb *db, const char *epoch, const char *platform,
			   struct base_buf *out, struct base_err *err)
{
	return bytes(db, &profdb_whole_callpaths, epoch, platform, out, err);
}

int profdb_callpaths_load(struct profdb *db, const char *epoch, const char *platform,
			  struct profdb_callpaths **out, struct base_err *err)
{
	void *of;
	int r = profdb_whole_load(db, &profdb_whole_callpaths, epoch, platform, &of, err);

	*out = of;
	return r;
}

/* ---- when an epoch ends ---------------------------------------------------------------------- */

static int write_one(struct profdb *db, const struct profdb_workloads *w)
{
	struct profdb_file *file = profdb_epoch_file(db, PROFDB_WORKLOADS, PROFDB_WORKLOADS);
	struct base_buf buf = { 0 };
	int r = file ? profdb_workloads_format(w, &buf, NULL) : -ENOMEM;

	if (r >= 0)
		r = profdb_flush_write(db, file, &buf, NULL, NULL);
	base_buf_release(&buf);
	return r;
}

static bool is_in_short_parts(struct profdb *db)
{
	struct profdb_workloads *w;
	bool yes;

	if (profdb_workloads_load_images(db, db->epoch.name, db->platform, &w, NULL) < 0)
		return false;
	yes = w->nr_parts > 1 && w->nr_rows <= PROFDB_MERGED_ROWS;
	profdb_workloads_free(w);
	return yes;
}

/* A file that flushes left in parts becomes one, if it is not too long; where that fails it is as
 * it was. */
static void compact(struct profdb *db)
{
	struct profdb_workloads *w;

	if (!is_in_short_parts(db) ||
	    profdb_workloads_load(db, db->epoch.name, db->platform, &w, NULL) < 0)
		return;
	if (profdb_flush_begin(db, NULL) >= 0 &&
	    (write_one(db, w) < 0 || profdb_flush_commit(db, NULL) < 0))
		profdb_flush_abort(db);
	profdb_workloads_free(w);
}

int profdb_flush_put_workloads(struct profdb *db, const struct profdb_workloads *w,
			       struct base_err *err)
{
	db->epoch.closing = compact;
	return put(db, &profdb_whole_workloads, w, err);
}

int profdb_workloads_bytes(struct profdb *db, const char *epoch, const char *platform,
			   struct base_buf *out, struct base_err *err)
{
	return bytes(db, &profdb_whole_workloads, epoch, platform, out, err);
}

int profdb_workloads_load(struct profdb *db, const char *epoch, const char *platform,
			  struct profdb_workloads **out, struct base_err *err)
{
	void *of;
	int r = profdb_whole_load(db, &profdb_whole_workloads, epoch, platform, &of, err);

	*out = of;
	return r;
}

int profdb_workloads_load_images(struct profdb *db, const char *epoch, const char *platform,
				 struct profdb_workloads **out, struct base_err *err)
{
	void *of;
	int r = profdb_whole_load(db, &profdb_whole_workload_images, epoch, platform, &of, err);

	*out = of;
	return r;
}

int profdb_workloads_load_counts(struct profdb *db, const char *epoch, const char *platform,
				 struct profdb_workloads **out, struct base_err *err)
{
	void *of;
	int r = profdb_whole_load(db, &profdb_whole_counts, epoch, platform, &of, err);

	*out = of;
	return r;
}
