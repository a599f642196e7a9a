/* SPDX-License-Identifier: BSD-2-Clause */
/* Value profiles in a flush: as profiles, but that they are private (docs/format/values.md). */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "profdb_internal.h"

static struct profdb_file *find_file(struct profdb *db, const struct profdb_values *v,
				     const char *stem)
{
	char key[PROFDB_KEY_MAX], name[256];

	profdb_values_key(v, stem, key);
	profdb_values_file_name(v, stem, 0, name);
	return profdb_epoch_file(db, key, name);
}

/* Its name as of this flush so far. */
static const char *current_name(struct profdb *db, const struct profdb_file *file, char name[256])
{
	return file->put_seq == db->flush.seq ? profdb_new_name(db->flush.seq, file->name, name)
					      : file->name;
}

static int read_reader(struct profdb *db, const char *name, uint32_t *uid)
{
	int fd = openat(db->epoch.fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	*uid = base_reader_get(fd);
	close(fd);
	return 0;
}

static int read_file(struct profdb *db, const struct profdb_file *file, struct profdb_values **out,
		     struct base_err *err)
{
	char text[256];
	const char *name = current_name(db, file, text);
	int r = profdb_values_read_at(db->epoch.fd, name, file->name, out, err);

	if (r == -EIO && file->put_seq != db->flush.seq) /* as in flush.c */
		r = -DCPI_EFORMAT;
	if (r >= 0)
		r = read_reader(db, name, &(*out)->uid);
	if (r < 0) {
		profdb_values_free(*out);
		*out = NULL;
	}
	return r;
}

static int read_stored(struct profdb *db, const struct profdb_file *file,
		       const struct profdb_values *v, struct profdb_values **out,
		       struct base_err *err)
{
	const struct profdb_profile *want = v->header, *got;
	int r = read_file(db, file, out, err);

	if (r < 0)
		return r;
	got = (*out)->header;
	if (got->kind == want->kind && !strcmp((*out)->profiler, v->profiler) &&
	    (want->kind == PROFDB_DYNAMIC || base_id_equal(&got->image, &want->image)))
		return r;
	profdb_values_free(*out);
	*out = NULL;
	return base_fail(err, -DCPI_EFORMAT, "values '%s' are of another image or profiler",
			 file->name);
}

/* As in flush.c: what is damaged stays as it is (1), and a new file goes beside it. */
static int load(struct profdb *db, struct profdb_file *file, const char *stem,
		const struct profdb_values *v, uint32_t uid, struct profdb_values **out,
		struct base_err *err)
{
	struct base_err why = { 0 };
	char name[256];
	int left = 0, r;

	while (profdb_flush_is_bad(r = read_stored(db, file, v, out, &why))) {
		base_fail(err, r, "%s; it stays, its image gets a second file", why.text);
		why = (struct base_err){ 0 };
		profdb_values_file_name(v, stem, file->version + 1, name);
		r = profdb_file_rename(file, name);
		if (r < 0)
			break;
		file->version++;
		left = 1;
	}
	if (r == -ENOENT) {
		*out = profdb_values_new(v->header->kind, &v->header->image, NULL, v->profiler);
		r = *out ? 0 : -ENOMEM;
		if (*out)
			(*out)->uid = uid;
	}
	if (r < 0)
		return base_fail(err, r, "%s", why.text[0] ? why.text : base_strerror(r));
	/* Two users' values together are nobody's. */
	if ((*out)->uid != uid)
		(*out)->uid = UINT32_MAX;
	return left;
}

int profdb_flush_put_values(struct profdb *db, const char *stem, const struct profdb_values *v,
			    uint32_t uid, struct base_err *err)
{
	struct profdb_values *m = NULL;
	struct base_buf buf = { 0 };
	struct profdb_file *file;
	int left, r;

	if (!db->flush.under_way)
		return base_fail(err, -EINVAL, "no flush is under way");
	file = find_file(db, v, stem);
	if (!file)
		return base_fail_errno(err, -ENOMEM, "cannot store values of '%.80s'", stem);
	left = r = load(db, file, stem, v, uid, &m, err);
	if (r >= 0) {
		r = profdb_values_take_all(m, v, NULL, NULL);
		if (r >= 0)
			r = profdb_flush_words(db, m->header, v->header);
		if (r < 0)
			base_fail_errno(err, r, "cannot merge into values '%s'", file->name);
	}
	if (r >= 0)
		r = profdb_values_format(m, &buf, err);
	if (r >= 0)
		r = profdb_flush_write(db, file, &buf, &m->uid, err);
	base_buf_release(&buf);
	profdb_values_free(m);
	return r < 0 ? r : left;
}

/* ---- of pseudo-images that became part of another one ---------------------------------------- */

static int put_moved(struct profdb *db, const struct profdb_values *stored,
		     const struct profdb_moved *to, struct base_err *err)
{
	struct profdb_values *v =
		profdb_values_new(PROFDB_DYNAMIC, to->image, to->path, stored->profiler);
	int r = v ? profdb_values_take_all(v, stored, to->off, to->ctx) : -ENOMEM;

	if (r < 0)
		base_fail_errno(err, r, "cannot move values into those of '%.80s'", to->stem);
	else
		r = profdb_flush_put_values(db, to->stem, v, stored->uid, err);
	profdb_values_free(v);
	return r;
}

static int move_file(struct profdb *db, const struct profdb_file *file,
		     const struct profdb_moved *to, struct base_err *err)
{
	struct profdb_values *stored = NULL;
	int r = read_file(db, file, &stored, err);

	if (r >= 0 && file->put_seq == db->flush.seq)
		r = base_fail(err, -EINVAL, "values '%s' were put in this flush", file->name);
	if (r >= 0)
		r = put_moved(db, stored, to, err);
	if (r >= 0)
		r = profdb_names_add(&db->flush.commit.gone, file->name);
	profdb_values_free(stored);
	return r;
}

static int list_files(struct profdb *db, const char *stem, struct profdb_names *names)
{
	char key[PROFDB_KEY_MAX];
	size_t pos = 0;
	void *value;
	int r = 0;

	while (r >= 0 && base_map_next(&db->epoch.files, &pos, &value)) {
		const struct profdb_file *file = value;
		unsigned int version;

		profdb_key_of_name(file->name, key, &version);
		if (profdb_values_of_dynamic(key, stem))
			r = profdb_names_add(names, key);
	}
	return r;
}

int profdb_flush_move_values(struct profdb *db, const char *stem, const struct profdb_moved *to,
			     struct base_err *err)
{
	struct profdb_names keys = { 0 };
	int r = db->flush.under_way ? list_files(db, stem, &keys)
				    : base_fail(err, -EINVAL, "no flush is under way");

	for (size_t i = 0; r >= 0 && i < keys.nr; i++) {
		struct base_err why = { 0 };
		const struct profdb_file *file =
			base_map_get(&db->epoch.files, keys.items[i], strlen(keys.items[i]));

		r = move_file(db, file, to, &why);
		/* An unreadable file stays: its pseudo-image's build-id leads to the other one. */
		if (r == -ENOENT || profdb_flush_is_bad(r))
			r = 0;
		if (r < 0)
			base_fail(err, r, "%s", why.text[0] ? why.text : base_strerror(r));
	}
	profdb_names_release(&keys);
	return r < 0 ? r : 0;
}
