/* SPDX-License-Identifier: BSD-2-Clause */
/* Call paths in a flush, and as of the last one: one file for each epoch and platform. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "profdb_internal.h"

/* As of this flush so far; -ENOENT where there is none yet. */
static int read_stored(struct profdb *db, const struct profdb_file *file,
		       struct profdb_callpaths **out, struct base_err *err)
{
	bool put = file->put_seq == db->flush.seq;
	struct base_buf buf = { 0 };
	int r = profdb_read_committed(db->epoch.fd, put ? db->flush.seq : 0, file->name, &buf, err);

	*out = NULL;
	if (r >= 0)
		r = profdb_callpaths_parse_shown(&buf, file->name, out, err);
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
static int load(struct profdb *db, const struct profdb_file *file, struct profdb_callpaths **out,
		struct base_err *err)
{
	struct base_err why = { 0 };
	int r = read_stored(db, file, out, &why);
	bool bad = profdb_flush_is_bad(r);

	if (bad) {
		base_fail(err, r, "%s; it is set aside", why.text);
		r = set_aside(db, file->name);
	}
	if (r == -ENOENT || (bad && r >= 0)) {
		*out = profdb_callpaths_new();
		r = *out ? bad : -ENOMEM;
	}
	return r < 0 ? base_fail(err, r, "%s", bad ? base_strerror(r) : why.text) : r;
}

int profdb_flush_put_callpaths(struct profdb *db, const struct profdb_callpaths *c,
			       struct base_err *err)
{
	struct profdb_callpaths *m = NULL;
	struct base_buf buf = { 0 };
	struct profdb_file *file;
	int left, r;

	if (!db->flush.under_way)
		return base_fail(err, -EINVAL, "no flush is under way");
	file = profdb_epoch_file(db, PROFDB_CALLPATHS, PROFDB_CALLPATHS);
	if (!file)
		return base_fail_errno(err, -ENOMEM, "cannot store call paths");
	left = r = load(db, file, &m, err);
	if (m) {
		r = profdb_callpaths_merge(m, c);
		if (r >= 0)
			r = profdb_flush_words(db, m->header, c->header);
		if (r < 0)
			base_fail_errno(err, r, "cannot merge into '%s'", file->name);
	}
	if (r >= 0)
		r = profdb_callpaths_format(m, &buf, err);
	if (r >= 0)
		r = profdb_flush_write(db, file, &buf, NULL, err);
	base_buf_release(&buf);
	profdb_callpaths_free(m);
	return r < 0 ? r : left;
}

/* ---- reading --------------------------------------------------------------------------------- */

int profdb_callpaths_bytes(struct profdb *db, const char *epoch, const char *platform,
			   struct base_buf *out, struct base_err *err)
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
	r = profdb_read_committed(fd, c.seq, PROFDB_CALLPATHS, out, &why);
	profdb_commit_release(&c);
	close(fd);
	return r < 0 && r != -ENOENT ? base_fail(err, r, "%s", why.text) : r;
}

int profdb_callpaths_load(struct profdb *db, const char *epoch, const char *platform,
			  struct profdb_callpaths **out, struct base_err *err)
{
	struct base_buf buf = { 0 };
	char shown[128];
	int r = profdb_callpaths_bytes(db, epoch, platform, &buf, err);

	*out = NULL;
	snprintf(shown, sizeof(shown), "%.20s/%.80s/%s", epoch, platform, PROFDB_CALLPATHS);
	if (r >= 0)
		r = profdb_callpaths_parse_shown(&buf, shown, out, err);
	base_buf_release(&buf);
	return r;
}
