/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several old epochs become one of a day, a week or a month. As a flush it is a redo log, of
 * folders:
 * ".new-SEQ-INTO" is made beside them, ".commit" in the database's folder says that it counts and
 * which epochs are no more; these lose their names, then it gets its own. Readers go by that record
 * (profdb_epochs), and begin anew where it changed while they read (profdb_epochs_changed).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "profdb_internal.h"

/*
 * The list of epochs in a joined epoch: a line EPOCH/PLATFORM each in its folder, read by imports.
 */

#define JOINED_NAME ".joined"
enum { TEXT_MAX = 16 << 20 };

static bool line_ok(const char *line)
{
	char epoch[PROFDB_EPOCH_LEN + 1];
	size_t len = strcspn(line, "/");

	snprintf(epoch, sizeof(epoch), "%.*s", (int)len, line);
	return line[len] && len <= PROFDB_EPOCH_LEN && profdb_epoch_name_ok(epoch) &&
	       profdb_platform_name_ok(line + len + 1);
}

int profdb_joined_parse(struct base_buf *text, struct profdb_names *out)
{
	char *save = NULL, *line;
	int r = base_buf_append(text, "", 1);

	line = r < 0 ? NULL : strtok_r((char *)text->data, "\n", &save);
	for (; r >= 0 && line; line = strtok_r(NULL, "\n", &save))
		if (line_ok(line))
			r = profdb_names_add(out, line);
	return r;
}

int profdb_joined_read(struct profdb *db, const char *epoch, struct profdb_names *out)
{
	char path[PROFDB_EPOCH_LEN + sizeof(JOINED_NAME) + 1];
	struct base_buf buf = { 0 };
	int r;

	snprintf(path, sizeof(path), "%.*s/" JOINED_NAME, PROFDB_EPOCH_LEN, epoch);
	r = base_file_read(db->fd, path, TEXT_MAX, &buf, NULL);
	if (r >= 0)
		r = profdb_joined_parse(&buf, out);
	base_buf_release(&buf);
	return r == -ENOENT ? 0 : r;
}

char **profdb_epoch_parts(struct profdb *db, const char *epoch, struct base_err *err)
{
	struct profdb_names names = { 0 };
	int r = profdb_joined_read(db, epoch, &names);
	char **parts = r < 0 ? NULL : profdb_names_pack(&names, 0, names.nr);

	profdb_names_release(&names);
	if (!parts)
		base_fail_errno(err, r < 0 ? r : -ENOMEM, "cannot read the parts of epoch '%s'",
				epoch);
	return parts;
}

static int add_platforms(struct profdb *db, const char *epoch, struct profdb_names *out,
			 struct base_err *err)
{
	char line[PROFDB_EPOCH_LEN + PROFDB_PLATFORM_MAX + 2];
	char **platforms = profdb_platforms(db, epoch, err);
	int r = platforms ? 0 : -EIO;

	for (size_t i = 0; r >= 0 && platforms[i]; i++) {
		snprintf(line, sizeof(line), "%s/%s", epoch, platforms[i]);
		r = profdb_names_add(out, line);
	}
	free(platforms);
	return r;
}

/* That of all these becomes part of the epoch whose folder is @epoch_fd. 0 or negative. */
static int profdb_joined_write(struct profdb *db, int epoch_fd, const struct profdb_names *epochs,
			       struct base_err *err)
{
	struct profdb_names lines = { 0 };
	struct base_buf text = { 0 };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < epochs->nr; i++) {
		r = profdb_joined_read(db, epochs->items[i], &lines);
		if (r >= 0)
			r = add_platforms(db, epochs->items[i], &lines, err);
	}
	profdb_names_sort(&lines);
	for (size_t i = 0; r >= 0 && i < lines.nr; i++)
		r = base_buf_printf(&text, "%s\n", lines.items[i]);
	if (r >= 0)
		r = profdb_file_write(epoch_fd, JOINED_NAME, text.data, text.len, err);
	base_buf_release(&text);
	profdb_names_release(&lines);
	return r;
}

enum { DAY = 86400 };

static const char *const spans[] = {
	[PROFDB_DAY] = "day", [PROFDB_WEEK] = "week", [PROFDB_MONTH] = "month"
};

int profdb_span_find(const char *name, enum profdb_span *out, struct base_err *err)
{
	for (size_t i = 0; i < sizeof(spans) / sizeof(*spans); i++) {
		if (!strcmp(name, spans[i])) {
			*out = (enum profdb_span)i;
			return 0;
		}
	}
	base_fail(err, -DCPI_EUSAGE, "unknown span of time '%.40s'", name);
	base_hint(err, "day, week or month");
	return -DCPI_EUSAGE;
}

/* Days from 1970-01-05, a Monday, or months: a number that the epochs of one span share. */
static int64_t span_of(enum profdb_span span, const char *epoch)
{
	int64_t days = (profdb_epoch_begin_time(epoch) - 4 * DAY) / DAY;

	return span == PROFDB_DAY    ? days
	       : span == PROFDB_WEEK ? days / 7
				     : strtoll((char[]){ epoch[0], epoch[1], epoch[2], epoch[3],
							 epoch[4], epoch[5], '\0' },
					       NULL, 10);
}

/* ---- one platform's profiles ----------------------------------------------------------------- */

/* A profile of the new epoch, or values; several of one key where they must not be added up. */
struct sum {
	struct profdb_profile *p; /* the header of a file of values, owned by the values */
	struct profdb_values *values;
	uid_t owner; /* owner of the files of values; 0 if they had several */
	struct sum *next;
	char name[256];
};

struct join {
	struct profdb *db;
	const char *platform;
	struct base_map sums;		/* key -> the first struct sum */
	void *wholes[PROFDB_NR_WHOLES]; /* sums of the platform's; NULL: there are none */
	struct base_err *err;
	int error;
	struct profdb_names *epochs; /* that become one, ascending */
	const char *epoch;	     /* that is read */
	struct stat like;	     /* the newest folder of the platform: whose it is, and when */
	int dir_fd;		     /* folder of the platform in the new epoch */
	int from_fd;		     /* folder of the epoch that is read */
};

/* Whether a header word may differ between epochs for the same image. */
static bool is_passing(const char *word)
{
	static const char *const words[] = { "epoch", "tsize", "tstart", "cpuspeed", "cpucount" };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!strcmp(words[i], word))
			return true;
	return false;
}

static const struct profdb_line *next_line(const struct profdb_profile *p, size_t *at)
{
	while (*at < p->nr_lines && is_passing(p->lines[*at].word))
		++*at;
	return *at < p->nr_lines ? &p->lines[(*at)++] : NULL;
}

/* All lines are kept: what says other things of itself stays apart, in a file of its own. */
static bool may_add(const struct profdb_profile *a, const struct profdb_profile *b)
{
	const struct profdb_line *x, *y;
	size_t i = 0, k = 0;

	if (a->kind != b->kind ||
	    (a->kind != PROFDB_DYNAMIC && !base_id_equal(&a->image, &b->image)))
		return false;
	do {
		x = next_line(a, &i);
		y = next_line(b, &k);
		if (x && y && (strcmp(x->word, y->word) || strcmp(x->value, y->value)))
			return false;
	} while (x && y);
	return !x && !y;
}

static void sum_free(struct sum *s)
{
	if (s->values)
		profdb_values_free(s->values);
	else
		profdb_profile_free(s->p);
	free(s);
}

static int new_sum(struct join *j, const char *key, struct sum *last, unsigned int nr,
		   const char *file, struct sum *s)
{
	int len = (int)strcspn(file, "~"), r = 0;

	snprintf(s->name, sizeof(s->name), nr ? "%.*s~%u" : "%.*s", len, file, nr);
	if (last)
		last->next = s;
	else if ((r = base_map_set(&j->sums, key, strlen(key), s)) < 0)
		sum_free(s);
	return r;
}

static int merge(struct sum *s, const struct sum *one)
{
	if (!s->values)
		return profdb_profile_merge(s->p, one->p);
	/* A profiler's name is told in full by the file alone. */
	if (strcmp(s->values->profiler, one->values->profiler) != 0)
		return -DCPI_EVERSION;
	return profdb_values_merge(s->values, one->values);
}

/* 1: added; 0: it cannot be; negative. The newer identity is what a pseudo-image has now. */
static int add_to(struct sum *s, const struct sum *one)
{
	int r = may_add(s->p, one->p) ? merge(s, one) : -DCPI_EVERSION;

	if (r == -DCPI_EVERSION || r == -DCPI_ELIMIT || r == -DCPI_EOVERFLOW)
		return 0;
	if (r >= 0 && one->p->image.len)
		s->p->image = one->p->image;
	if (r >= 0 && one->owner != s->owner)
		s->owner = 0;
	return r < 0 ? r : 1;
}

/* @one is ours from here on. */
static int take_sum(struct join *j, const char *file, struct sum *one)
{
	char key[PROFDB_KEY_MAX];
	struct sum *s, *last = NULL;
	unsigned int nr = 0;
	int r;

	profdb_key_of_name(file, key, &nr);
	nr = 0;
	for (s = base_map_get(&j->sums, key, strlen(key)); s; s = s->next) {
		r = add_to(s, one);
		if (r) {
			sum_free(one);
			return r < 0 ? r : 0;
		}
		last = s;
		nr++;
	}
	return new_sum(j, key, last, nr, file, one);
}

static int take(void *ctx, const char *file, struct profdb_profile *p)
{
	struct sum *one = calloc(1, sizeof(*one));

	if (!one) {
		profdb_profile_free(p);
		return -ENOMEM;
	}
	one->p = p;
	return take_sum(ctx, file, one);
}

static int take_values(void *ctx, const char *file, struct profdb_values *v)
{
	struct sum *one = calloc(1, sizeof(*one));
	struct join *j = ctx;
	struct stat st;
	int fd;

	if (!one) {
		profdb_values_free(v);
		return -ENOMEM;
	}
	one->p = v->header;
	one->values = v;
	fd = openat(j->from_fd, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	v->uid = fd < 0 ? UINT32_MAX : base_reader_get(fd);
	if (fd >= 0 && fstat(fd, &st) == 0)
		one->owner = st.st_uid;
	if (fd >= 0)
		close(fd);
	return take_sum(j, file, one);
}

static void unreadable(void *ctx, const char *file, const struct base_err *why)
{
	struct join *j = ctx;

	(void)file;
	if (!j->error)
		j->error = base_fail(j->err, -DCPI_EFORMAT, "%s (epoch %s, platform %s)", why->text,
				     j->epoch, j->platform);
}

/* They have the identity that a pseudo-image got last. */
static int take_whole(struct join *j, const char *epoch, size_t which)
{
	const struct profdb_whole *kind = profdb_wholes[which];
	struct base_err why = { 0 };
	void *more;
	int r = profdb_whole_load(j->db, kind, epoch, j->platform, &more, &why);

	if (r >= 0 && j->wholes[which]) {
		r = kind->merge(j->wholes[which], more);
		kind->release(more);
		if (r < 0)
			base_fail_errno(&why, r, "cannot add up %s", kind->what);
	} else if (r >= 0) {
		j->wholes[which] = more;
	}
	if (r == -ENOENT || r == -ENOMEM || r >= 0)
		return r == -ENOENT ? 0 : r;
	unreadable(j, kind->name, &why);
	return 0;
}

static void forget_sums(struct join *j)
{
	struct sum *s, *next;
	size_t pos = 0;
	void *value;

	while (base_map_next(&j->sums, &pos, &value)) {
		for (s = value; s; s = next) {
			next = s->next;
			sum_free(s);
		}
	}
	base_map_release(&j->sums);
	for (size_t i = 0; i < PROFDB_NR_WHOLES; i++) {
		profdb_wholes[i]->release(j->wholes[i]);
		j->wholes[i] = NULL;
	}
}

/* ---- writing --------------------------------------------------------------------------------- */

/*
 * The joined epoch goes to the owner of its parts, who may then remove it; only root can give files
 * away.
 */
static void give(int fd, const struct stat *like)
{
	if (fchown(fd, like->st_uid, like->st_gid) < 0)
		return;
}

static int format(const struct sum *s, struct base_buf *out, struct base_err *err)
{
	return s->values ? profdb_values_format(s->values, out, err)
			 : profdb_profile_format(s->p, PROFDB_FORMAT_1, 0, out, err);
}

/* @values: what it is the file of, or NULL. */
static int write_file(struct join *j, const char *name, const struct sum *values,
		      const struct base_buf *buf)
{
	int fd = openat(j->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
			values ? 0600 : 0644);
	int r = fd < 0 ? -errno : 0;

	if (r >= 0 && (!values || values->owner == j->like.st_uid))
		give(fd, &j->like);
	if (r >= 0 && values)
		r = profdb_make_private(fd, values->values->uid);
	if (r >= 0)
		r = base_write_all(fd, buf->data, buf->len);
	if (r >= 0 && fsync(fd) < 0)
		r = -errno;
	if (fd >= 0)
		close(fd);
	return r < 0 ? base_fail_errno(j->err, r, "cannot write '%s'", name) : 0;
}

static int write_sum(struct join *j, const struct sum *s)
{
	struct base_buf buf = { 0 };
	int r = format(s, &buf, j->err);

	if (r >= 0)
		r = write_file(j, s->name, s->values ? s : NULL, &buf);
	base_buf_release(&buf);
	profdb_lock_heartbeat(j->db);
	return r;
}

static int write_whole(struct join *j, size_t which)
{
	const struct profdb_whole *kind = profdb_wholes[which];
	struct base_buf buf = { 0 };
	int r = kind->format(j->wholes[which], &buf, j->err);

	if (r >= 0)
		r = write_file(j, kind->name, NULL, &buf);
	base_buf_release(&buf);
	profdb_lock_heartbeat(j->db);
	return r;
}

static int write_sums(struct join *j)
{
	int r = 0;
	size_t pos = 0;
	void *value;

	while (r >= 0 && base_map_next(&j->sums, &pos, &value))
		for (const struct sum *s = value; r >= 0 && s; s = s->next)
			r = write_sum(j, s);
	for (size_t i = 0; r >= 0 && i < PROFDB_NR_WHOLES; i++)
		if (j->wholes[i])
			r = write_whole(j, i);
	return r;
}

/* It is as old as what it was made of: else it would be too young to be old for another week. */
static int finish_folder(int fd, const struct stat *like)
{
	const struct timespec times[2] = { like->st_atim, like->st_mtim };

	give(fd, like);
	if (futimens(fd, times) < 0)
		return -errno;
	return base_sync_dir(fd);
}

/* ---- one epoch ------------------------------------------------------------------------------- */

/* Where it was written last, as profdb_epoch_written has it. */
static int read_platform(struct join *j, const char *epoch)
{
	int r, fd = profdb_platform_open(j->db, epoch, j->platform);
	uint64_t ns = profdb_epoch_written(j->db, epoch, j->platform);
	struct stat st;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	r = fstat(fd, &st) < 0 ? -errno : 0;
	if (r < 0) {
		close(fd);
		return r;
	}
	st.st_mtim.tv_sec = (time_t)(ns / 1000000000);
	st.st_mtim.tv_nsec = (long)(ns % 1000000000);
	if (!j->like.st_nlink || st.st_mtim.tv_sec >= j->like.st_mtim.tv_sec)
		j->like = st;
	j->from_fd = fd;
	j->epoch = epoch;
	r = profdb_walk(j->db, epoch, j->platform, take, unreadable, j, j->err);
	if (r >= 0)
		r = profdb_walk_values(j->db, epoch, j->platform, NULL, take_values, unreadable, j,
				       j->err);
	for (size_t i = 0; r >= 0 && i < PROFDB_NR_WHOLES; i++)
		r = take_whole(j, epoch, i);
	close(fd);
	profdb_lock_heartbeat(j->db);
	return r < 0 ? r : j->error;
}

/* Samples that the platform's epochs lost are lost in the one as well. */
static int write_lost(struct join *j)
{
	char text[PROFDB_EPOCH_LEN + 3], began[PROFDB_TIME_LEN + 1];
	uint64_t nr = 0;

	for (size_t i = 0; i < j->epochs->nr; i++)
		nr += profdb_epoch_lost(j->db, j->epochs->items[i], j->platform);
	snprintf(text, sizeof(text), "%.*s00", PROFDB_EPOCH_LEN, j->epochs->items[0]);
	snprintf(began, sizeof(began), "%.*s", PROFDB_TIME_LEN, text);
	return nr ? profdb_lost_write(j->dir_fd, began, nr, j->err) : 0;
}

static int join_platform(struct join *j, int epoch_fd)
{
	int r = 0;

	j->like = (struct stat){ 0 };
	for (size_t i = 0; r >= 0 && i < j->epochs->nr; i++)
		r = read_platform(j, j->epochs->items[i]);
	if (r >= 0) {
		r = profdb_make_folder(epoch_fd, j->platform);
		j->dir_fd =
			r < 0 ? r
			      : openat(epoch_fd, j->platform, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (j->dir_fd < 0)
			r = r < 0 ? r : -errno;
	}
	if (r >= 0)
		r = write_sums(j);
	if (r >= 0)
		r = write_lost(j);
	if (r >= 0)
		r = finish_folder(j->dir_fd, &j->like);
	if (j->dir_fd >= 0)
		close(j->dir_fd);
	j->dir_fd = -1;
	forget_sums(j);
	return r;
}

static int all_platforms(struct join *j, struct profdb_names *out)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < j->epochs->nr; i++) {
		char **platforms = profdb_platforms(j->db, j->epochs->items[i], j->err);

		if (!platforms)
			return j->err && j->err->code ? j->err->code : -EIO;
		for (size_t k = 0; r >= 0 && platforms[k]; k++)
			r = profdb_names_add(out, platforms[k]);
		free(platforms);
	}
	profdb_names_sort(out);
	return r;
}

static int make_folder(struct join *j, const char *name)
{
	struct profdb_names platforms = { 0 };
	struct stat like = { 0 };
	int fd = -1, r = all_platforms(j, &platforms);

	if (r >= 0)
		r = profdb_make_folder(j->db->fd, name);
	if (r >= 0) {
		fd = openat(j->db->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = fd < 0 ? -errno : 0;
	}
	for (size_t i = 0; r >= 0 && i < platforms.nr; i++) {
		j->platform = platforms.items[i];
		r = join_platform(j, fd);
		like = j->like;
	}
	if (r >= 0)
		r = profdb_joined_write(j->db, fd, j->epochs, j->err);
	if (r >= 0 && platforms.nr)
		r = finish_folder(fd, &like);
	if (r >= 0)
		r = base_sync_dir(j->db->fd);
	if (fd >= 0)
		close(fd);
	profdb_names_release(&platforms);
	return r;
}

/* ---- the record ------------------------------------------------------------------------------ */

static int commit(struct join *j, const char *into)
{
	struct profdb_commit c = { .seq = j->db->join.seq + 1 };
	struct base_err why = { 0 };
	int r = profdb_names_add(&c.files, into);

	for (size_t i = 0; r >= 0 && i < j->epochs->nr; i++)
		r = profdb_names_add(&c.gone, j->epochs->items[i]);
	if (r >= 0)
		r = profdb_lock_check(j->db, &why);
	if (r >= 0)
		r = profdb_commit_write(j->db->fd, &c, &why);
	/* Its rename may have happened though what followed failed. */
	if (r < 0 && profdb_epochs_changed(j->db))
		r = 0;
	profdb_commit_release(&c);
	return r < 0 ? base_fail(j->err, r, "%s", why.text) : 0;
}

/* They become the first of them. */
static int join(struct join *j)
{
	const char *into = j->epochs->items[0];
	char name[256];
	int r;

	profdb_new_name(j->db->join.seq + 1, into, name);
	r = make_folder(j, name);
	if (r >= 0)
		r = commit(j, into);
	if (r < 0) {
		base_fail_errno(j->err, r, "cannot make one epoch '%s' of several", into);
		profdb_remove_tree(j->db->fd, name, PROFDB_DEPTH);
		return r;
	}
	return profdb_join_recover(j->db, j->err);
}

/* ---- which ----------------------------------------------------------------------------------- */

/* A profile that cannot be read, or a record: what it is of stays as it is. */
static int join_one(struct profdb *db, const struct profdb_join *how, struct profdb_names *epochs,
		    struct base_err *err)
{
	struct base_err why = { 0 };
	struct join j = { .db = db, .epochs = epochs, .err = &why, .dir_fd = -1 };
	int r = how->dry_run ? 0 : join(&j);

	if (r == -DCPI_EFORMAT && j.error) {
		how->kept(how->ctx, &why);
		return 0;
	}
	if (r < 0)
		return base_fail(err, r, "%s", why.text);
	how->joined(how->ctx, epochs->items[0], epochs->items[epochs->nr - 1], epochs->nr);
	return 1;
}

static int join_all(struct profdb *db, const struct profdb_join *how, char **all,
		    struct base_err *err)
{
	struct profdb_names group = { 0 };
	int r = 0, count = 0;

	for (size_t i = 0; r >= 0 && all[i]; i++) {
		int64_t span = span_of(how->span, all[i]);

		if (!profdb_epoch_is_old(db, all[i], how->before) ||
		    !profdb_epoch_finished(db, all[i]))
			continue;
		if (group.nr && span_of(how->span, group.items[0]) != span) {
			r = group.nr > 1 ? join_one(db, how, &group, err) : 0;
			count += r > 0;
			profdb_names_release(&group);
		}
		if (r >= 0)
			r = profdb_names_add(&group, all[i]);
	}
	if (r >= 0 && group.nr > 1) {
		r = join_one(db, how, &group, err);
		count += r > 0;
	}
	profdb_names_release(&group);
	return r < 0 ? r : count;
}

int profdb_epochs_join(struct profdb *db, const struct profdb_join *how, struct base_err *err)
{
	int r = how->dry_run ? 0 : profdb_keep(db, err);
	char **all = r < 0 ? NULL : profdb_epochs(db, err);

	if (r >= 0)
		r = all ? join_all(db, how, all, err) : -EIO;
	free(all);
	return r < 0 ? base_fail_errno(err, r, "cannot join epochs") : r;
}
