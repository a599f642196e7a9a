/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A flush merges changed profiles into those on disk, and makes all of them visible at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profdb_internal.h"

enum { MANY = 4096 }; /* profiles in one flush */

int profdb_flush_begin(struct profdb *db, struct base_err *err)
{
	int r;

	if (db->epoch.fd < 0)
		return base_fail(err, -EINVAL, "no epoch is open");
	if (db->flush.under_way)
		return base_fail(err, -EINVAL, "a flush is under way already");
	r = profdb_commit_redo(db, err);
	if (r < 0)
		return r;
	db->flush.under_way = true;
	db->flush.broken = false;
	db->flush.commit = (struct profdb_commit){ .seq = ++db->flush.seq };
	return 0;
}

/* ---- one profile ----------------------------------------------------------------------------- */

static struct profdb_file *find_file(struct profdb *db, const char *stem,
				     const struct profdb_profile *p, const char *event)
{
	char key[PROFDB_KEY_MAX], name[256];

	profdb_key(p, stem, event, key);
	profdb_file_name(p, stem, event, 0, name);
	return profdb_epoch_file(db, key, name);
}

/* Names of files hold but a part of a long one. */
static bool has_same_word(const struct profdb_profile *a, const struct profdb_profile *b,
			  const char *word)
{
	const char *x = profdb_profile_word(a, word), *y = profdb_profile_word(b, word);

	return x && y ? !strcmp(x, y) : x == y;
}

/* As of this flush so far; -ENOENT where there is none yet. */
static int read_stored(struct profdb *db, const struct profdb_file *file,
		       const struct profdb_profile *p, struct profdb_profile **out,
		       struct base_err *err)
{
	char new_name[256];
	bool put = file->put_seq == db->flush.seq;
	int r = profdb_profile_read_at(db->epoch.fd,
				       put ? profdb_new_name(db->flush.seq, file->name, new_name)
					   : file->name,
				       file->name, out, err);

	/* One bad block must not keep the samples of all images from the disk. */
	if (r == -EIO && !put)
		r = -DCPI_EFORMAT;
	if (r < 0)
		return r;
	if ((*out)->kind == p->kind &&
	    (p->kind == PROFDB_DYNAMIC ||
	     (base_id_equal(&(*out)->image, &p->image) && has_same_word(*out, p, "text") &&
	      has_same_word(*out, p, "label"))))
		return r;
	profdb_profile_free(*out);
	*out = NULL;
	return base_fail(err, -DCPI_EFORMAT, "profile '%s' is of another image, code or label",
			 file->name);
}

bool profdb_flush_is_bad(int r)
{
	return profdb_error_is_content(r) || r == -EISDIR || r == -EINVAL;
}

/* The samples go on in another file; the one so far stays as it is. */
static int next_version(struct profdb_file *file, const struct profdb_profile *p, const char *stem,
			const char *event)
{
	char name[256];
	int r;

	profdb_file_name(p, stem, event, file->version + 1, name);
	r = profdb_file_rename(file, name);
	if (r < 0)
		return r;
	file->version++;
	file->put_seq = 0;
	return 0;
}

/*
 * Read the stored profile, or begin an empty one. A damaged file stays as it is, for inspection: 1,
 * and a new file is written beside it.
 */
static int load(struct profdb *db, struct profdb_file *file, const char *stem, const char *event,
		const struct profdb_profile *p, struct profdb_profile **out, struct base_err *err)
{
	struct base_err why = { 0 };
	int left = 0, r;

	while (profdb_flush_is_bad(r = read_stored(db, file, p, out, &why))) {
		base_fail(err, r, "%s; it stays, its image gets a second file", why.text);
		why = (struct base_err){ 0 };
		r = next_version(file, p, stem, event);
		if (r < 0)
			break;
		left = 1;
	}
	if (r == -ENOENT) {
		*out = profdb_profile_new(p->kind, &p->image, NULL);
		r = *out ? 0 : -ENOMEM;
	}
	if (r < 0)
		return base_fail(err, r, "%s", why.text[0] ? why.text : base_strerror(r));
	return left;
}

static int set_number(struct profdb_profile *p, const char *word, uint64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	return n ? profdb_profile_set_word(p, word, text) : 0;
}

/* Words of @from replace those of @to. 0 or -ENOMEM. */
static int take_words(struct profdb_profile *to, const struct profdb_profile *from)
{
	for (size_t i = 0; i < from->nr_lines; i++) {
		const struct profdb_line *line = &from->lines[i];
		int r;

		/*
		 * The first line with a repeated word holds the value; the others stay as they are.
		 */
		if (profdb_profile_word(from, line->word) != line->value)
			continue;
		r = profdb_profile_set_word(to, line->word, line->value);
		if (r < 0)
			return r;
	}
	return 0;
}

int profdb_flush_words(struct profdb *db, struct profdb_profile *m, const struct profdb_profile *p)
{
	int r = take_words(m, p);

	if (r >= 0)
		r = profdb_profile_set_word(m, "epoch", db->epoch.began);
	if (r >= 0)
		r = profdb_profile_set_word(m, "platform", db->platform);
	if (r >= 0)
		r = set_number(m, "cpuspeed", db->flush.cpu_mhz);
	if (r >= 0)
		r = set_number(m, "cpucount", db->flush.nr_cpus);
	profdb_profile_set_image(m, &p->image);
	return r;
}

void profdb_set_alive(struct profdb *db, void (*alive)(void *ctx), void *ctx)
{
	db->flush.alive = alive;
	db->flush.alive_ctx = ctx;
}

/*
 * A flush of many profiles takes minutes; without a heartbeat other machines would take our lock.
 */
static void show_life(struct profdb *db)
{
	profdb_lock_heartbeat(db);
	if (db->flush.alive)
		db->flush.alive(db->flush.alive_ctx);
}

/* Always a file of our own: who owns the folder could read what comes into one that he has planted.
 */
static int open_new(struct profdb *db, const char *name, mode_t mode)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(db->epoch.fd, name, flags, mode);

	if (fd < 0 && errno == EEXIST && unlinkat(db->epoch.fd, name, 0) == 0)
		fd = openat(db->epoch.fd, name, flags, mode);
	return fd < 0 ? -errno : fd;
}

int profdb_flush_write(struct profdb *db, struct profdb_file *file, const struct base_buf *buf,
		       const uint32_t *reader, struct base_err *err)
{
	bool again = file->put_seq == db->flush.seq;
	char name[256];
	int r, fd;

	show_life(db);
	profdb_new_name(db->flush.seq, file->name, name);
	r = fd = open_new(db, name, reader ? 0600 : 0644);
	/* Values of all users are not one's for the folder is his. */
	if (r >= 0 && reader)
		r = profdb_make_private(fd, *reader);
	else if (r >= 0)
		profdb_give(db->epoch.fd, fd);
	if (r >= 0)
		r = base_write_all(fd, buf->data, buf->len);
	if (r >= 0)
		base_sync_begin(fd);
	if (fd >= 0 && close(fd) < 0 && errno != EINTR && r >= 0)
		r = -errno;
	if (r >= 0 && !again)
		r = profdb_names_add(&db->flush.commit.files, file->name);
	if (r >= 0) {
		file->put_seq = db->flush.seq;
		return 0;
	}
	/* Samples of an earlier put may be gone with the file: no commit after this. */
	db->flush.broken = db->flush.broken || again;
	unlinkat(db->epoch.fd, name, 0);
	return base_fail_errno(err, r, "cannot write '%s'", name);
}

/* @event: the only one of @p, for the old forms; else NULL. @held: there was something before. */
static int merge_into(struct profdb *db, struct profdb_file *file, const char *stem,
		      const struct profdb_profile *p, const char *event, bool *held,
		      struct base_err *err)
{
	enum profdb_format format = event ? db->flush.format : PROFDB_FORMAT_1;
	struct profdb_profile *m = NULL;
	struct base_buf buf = { 0 };
	int left, r;

	left = r = load(db, file, stem, event, p, &m, err);
	*held = r >= 0 && m->nr_events;
	if (r >= 0) {
		r = profdb_profile_merge(m, p);
		if (r >= 0)
			r = profdb_flush_words(db, m, p);
		if (r < 0)
			base_fail_errno(err, r, "cannot merge into profile '%s'", file->name);
	}
	if (r >= 0)
		r = profdb_profile_format(m, format, 0, &buf, err);
	if (r >= 0)
		r = profdb_flush_write(db, file, &buf, NULL, err);
	base_buf_release(&buf);
	profdb_profile_free(m);
	return r < 0 ? r : left;
}

/* Together they may be more than a profile has room for: events of two daemons in one epoch. */
static int put_file(struct profdb *db, const char *stem, const struct profdb_profile *p,
		    const char *event, struct base_err *err)
{
	struct profdb_file *file = find_file(db, stem, p, event);
	struct base_err why = { 0 };
	bool held;
	int r;

	if (!file)
		return base_fail_errno(err, -ENOMEM, "cannot store a profile of '%.80s'", stem);
	r = merge_into(db, file, stem, p, event, &held, &why);
	if (r != -DCPI_ELIMIT || !held || next_version(file, p, stem, event) < 0) {
		if (r)
			base_fail(err, why.code, "%s", why.text);
		return r;
	}
	r = merge_into(db, file, stem, p, event, &held, err);
	if (r < 0)
		return r;
	base_fail(err, why.code, "%s; it stays, its image gets a second file", why.text);
	return 1;
}

void profdb_set_format(struct profdb *db, enum profdb_format format)
{
	db->flush.format = format;
}

void profdb_set_machine(struct profdb *db, uint64_t cpu_mhz, uint64_t nr_cpus)
{
	db->flush.cpu_mhz = cpu_mhz;
	db->flush.nr_cpus = nr_cpus;
}

/* Counts above 32 bits continue in a file of version 1: nothing wraps, and nothing is lost. */
static int put_event(struct profdb *db, const char *stem, const struct profdb_profile *p,
		     struct base_err *err)
{
	struct base_err why = { 0 };
	struct profdb_file *file;
	int r = put_file(db, stem, p, p->events[0].name, &why);

	if (r != -DCPI_EOVERFLOW) {
		if (r)
			base_fail(err, why.code, "%s", why.text);
		return r;
	}
	r = put_file(db, stem, p, NULL, err);
	file = find_file(db, stem, p, NULL);
	if (r || !file || file->announced)
		return r;
	file->announced = true;
	base_fail(err, -DCPI_EOVERFLOW, "%s: samples of '%s' go into '%s', in version 1", why.text,
		  p->events[0].name, file->name);
	return 1;
}

static int put_events(struct profdb *db, const char *stem, const struct profdb_profile *p,
		      struct base_err *err)
{
	int left = 0, nr = 0;

	for (size_t i = 0; i < p->nr_events; i++) {
		struct profdb_profile *one;
		int r;

		if (!p->events[i].sum)
			continue;
		one = profdb_profile_extract(p, i);
		r = one ? put_event(db, stem, one, err)
			: base_fail_errno(err, -ENOMEM, "cannot store a profile of '%.80s'", stem);
		profdb_profile_free(one);
		if (r < 0) {
			/* The caller keeps all of @p: what was put of it must not count too. */
			db->flush.broken = db->flush.broken || nr;
			return r;
		}
		left |= r;
		nr++;
	}
	return left;
}

int profdb_flush_put(struct profdb *db, const char *stem, const struct profdb_profile *p,
		     struct base_err *err)
{
	if (!db->flush.under_way)
		return base_fail(err, -EINVAL, "no flush is under way");
	return db->flush.format == PROFDB_FORMAT_1 ? put_file(db, stem, p, NULL, err)
						   : put_events(db, stem, p, err);
}

/* The next of a pseudo-image's files, from *@pos = 0 on; several where events have files of their
 * own. */
static struct profdb_file *next_file(struct profdb *db, const char *stem, size_t *pos)
{
	struct profdb_file *file = NULL;
	char key[PROFDB_KEY_MAX];

	while (!file && *pos <= db->epoch.endings.nr) {
		profdb_dynamic_key(stem, *pos ? db->epoch.endings.items[*pos - 1] : "", key);
		file = base_map_get(&db->epoch.files, key, strlen(key));
		*pos += 1;
	}
	return file;
}

static int add_stored(struct profdb *db, const struct profdb_file *file,
		      struct profdb_profile **out, struct base_err *err)
{
	const struct profdb_profile dynamic = { .kind = PROFDB_DYNAMIC };
	struct profdb_profile *p = NULL;
	int r = read_stored(db, file, &dynamic, &p, err);

	if (r >= 0 && *out) {
		r = profdb_profile_merge(*out, p);
		profdb_profile_free(p);
	} else if (r >= 0) {
		*out = p;
	}
	return r == -ENOENT ? 0 : profdb_flush_is_bad(r) ? -DCPI_EFORMAT : r;
}

int profdb_flush_read(struct profdb *db, const char *stem, struct profdb_profile **out,
		      struct base_err *err)
{
	const struct profdb_file *file;
	size_t pos = 0;
	int r = 0;

	*out = NULL;
	if (!db->flush.under_way)
		return base_fail(err, -EINVAL, "no flush is under way");
	while (r >= 0 && (file = next_file(db, stem, &pos)))
		r = add_stored(db, file, out, err);
	if (r >= 0)
		return *out ? 0 : -ENOENT;
	profdb_profile_free(*out);
	*out = NULL;
	return r;
}

int profdb_flush_remove(struct profdb *db, const char *stem, struct base_err *err)
{
	struct profdb_names names = { 0 };
	const struct profdb_file *file;
	size_t pos = 0;
	int r = 0;

	while (r >= 0 && (file = next_file(db, stem, &pos)))
		r = file->put_seq == db->flush.seq ? -EINVAL : profdb_names_add(&names, file->name);
	if (r == -EINVAL || !db->flush.under_way || !names.nr)
		r = base_fail(err, -EINVAL, "no profile to remove");
	for (size_t i = 0; r >= 0 && i < names.nr; i++) {
		r = profdb_names_add(&db->flush.commit.gone, names.items[i]);
		if (r < 0)
			base_fail_errno(err, r, "cannot remove '%s'", names.items[i]);
	}
	profdb_names_release(&names);
	return r < 0 ? r : 0;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int sync_file(struct profdb *db, const char *name, struct base_err *err)
{
	char new_name[256];
	int fd, r = 0;

	show_life(db);
	profdb_new_name(db->flush.seq, name, new_name);
	fd = openat(db->epoch.fd, new_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fsync(fd) < 0)
		r = base_fail_errno(err, -errno, "cannot sync '%s'", new_name);
	if (fd >= 0)
		close(fd);
	return r;
}

/* Each sync takes a millisecond, and 100,000 of them minutes. That of a whole file system waits for
 * what others have written too: not for few. */
static int sync_files(struct profdb *db, struct base_err *err)
{
	int r = db->flush.commit.files.nr < MANY ? 0 : base_sync_file_system(db->epoch.fd);

	if (r < 0)
		return base_fail_errno(err, r, "cannot sync the file system of epoch '%s'",
				       db->epoch.name);
	for (size_t i = 0; r == 0 && i < db->flush.commit.files.nr; i++)
		r = sync_file(db, db->flush.commit.files.items[i], err);
	return r;
}

static int sync_all(struct profdb *db, struct base_err *err)
{
	int r = sync_files(db, err);

	if (r >= 0) {
		r = base_sync_dir(db->epoch.fd);
		if (r < 0)
			base_fail_errno(err, r, "cannot sync epoch '%s'", db->epoch.name);
	}
	return r;
}

/* The rename may have happened though syncing the folder after it failed: readers see it, so it
 * counts. */
static bool is_visible(struct profdb *db)
{
	struct profdb_commit c;
	bool seen = profdb_commit_read(db->epoch.fd, &c, NULL) >= 0 && c.seq == db->flush.seq;

	profdb_commit_release(&c);
	return seen;
}

int profdb_flush_commit(struct profdb *db, struct base_err *err)
{
	struct base_err why = { 0 };
	int r;

	if (!db->flush.under_way)
		return base_fail(err, -EINVAL, "no flush is under way");
	if (db->flush.broken)
		return base_fail(err, -EIO, "the flush has lost a profile and cannot be completed");
	if (!db->flush.commit.files.nr) {
		profdb_flush_abort(db);
		return 0;
	}
	r = sync_all(db, err);
	if (r >= 0)
		r = profdb_lock_check(db, err);
	if (r < 0)
		return r;
	r = profdb_commit_write(db->epoch.fd, &db->flush.commit, &why);
	if (r < 0 && !is_visible(db))
		return base_fail(err, r, "%s", why.text);
	/* It is done. Should the renames fail, the next begin or finish goes on with them. */
	db->flush.under_way = false;
	db->flush.redo = true;
	profdb_commit_redo(db, NULL);
	return 0;
}

/* The number is used up: files of it that could not be removed belong to no later flush. */
void profdb_flush_abort(struct profdb *db)
{
	char new_name[256];

	if (!db->flush.under_way)
		return;
	for (size_t i = 0; i < db->flush.commit.files.nr; i++)
		unlinkat(db->epoch.fd,
			 profdb_new_name(db->flush.commit.seq, db->flush.commit.files.items[i],
					 new_name),
			 0);
	profdb_commit_release(&db->flush.commit);
	db->flush.under_way = false;
}
