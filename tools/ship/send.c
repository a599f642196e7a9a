/* SPDX-License-Identifier: BSD-2-Clause */
/* Batches of a folder are sent, several in one request, and removed once the store has them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ship.h"

/* Batches that a store refused are tried again behind all others, after pauses that grow. */

enum { PAUSE_FIRST = 60, PAUSE_MOST = 3600, PAUSES = 6, FORGET_AFTER = 3600 };
enum { TROUBLES = 3, TROUBLE_MOST = 600, TROUBLE_PAUSES = 4 };

struct refused {
	char *name;
	uint64_t turn;	/* the last one in which it was tried */
	uint64_t tries; /* of turns in which the store took other batches */
	int64_t tried, due;
	bool seen; /* this turn's list has it */
};

static struct refused *find(const struct later *l, const char *name)
{
	return base_map_get(&l->by_name, name, strlen(name));
}

static void drop(struct later *l, struct refused *x)
{
	base_map_del(&l->by_name, x->name, strlen(x->name));
	free(x->name);
	free(x);
}

/* The length of "FOLDER" in "FOLDER/NAME"; 0: none. */
static size_t folder_len(const char *name)
{
	const char *slash = strchr(name, '/');

	return slash ? (size_t)(slash - name) : 0;
}

int later_begin(struct later *l)
{
	void *value;
	int r = 0;

	l->turn++;
	base_map_release(&l->folders);
	base_map_release(&l->skipped);
	for (size_t i = 0; r >= 0 && base_map_next(&l->by_name, &i, &value);) {
		struct refused *x = value;
		size_t len = folder_len(x->name);
		uint64_t first = (uintptr_t)base_map_get(&l->folders, x->name, len);

		x->seen = false;
		if (len && (!first || first > x->turn))
			r = base_map_set(&l->folders, x->name, len, (void *)(uintptr_t)x->turn);
	}
	return r;
}

struct later_rank later_rank(struct later *l, const char *name, int64_t now)
{
	struct refused *x = find(l, name);
	size_t len = folder_len(name);
	uint64_t first = len ? (uintptr_t)base_map_get(&l->folders, name, len) : 0;

	if (x)
		x->seen = true;
	if (x && x->tries)
		return (struct later_rank){ x->due > now ? LATER_NOT_YET : LATER_ALONE, x->due };
	/* Batches that were not tried come before others of their folder. */
	if (x)
		return (struct later_rank){ LATER_BEHIND, (int64_t)(2 * x->turn + 1) };
	return (struct later_rank){ first ? LATER_BEHIND : LATER_FIRST, (int64_t)(2 * first) };
}

int later_note(struct later *l, const char *name)
{
	struct refused *x = find(l, name);
	size_t len = folder_len(name);

	if (!x) {
		x = calloc(1, sizeof(*x));
		if (!x || !(x->name = strdup(name)) ||
		    base_map_set(&l->by_name, name, strlen(name), x) < 0) {
			if (x)
				free(x->name);
			free(x);
			return -ENOMEM;
		}
	}
	x->seen = true;
	x->turn = l->turn;
	return len ? base_map_set(&l->skipped, name, len, l) : 0;
}

bool later_skip(const struct later *l, const char *name)
{
	size_t len = folder_len(name);

	return len && base_map_get(&l->skipped, name, len);
}

static void later_taken(struct later *l, const char *name)
{
	struct refused *x = find(l, name);

	if (x)
		drop(l, x);
}

/* The store took others in this turn, so the refusal is the batch's own. */
static bool blame(struct refused *x, int64_t now)
{
	int64_t pause = PAUSE_MOST;

	if (x->tries < PAUSES)
		pause = (int64_t)PAUSE_FIRST << x->tries;
	x->due = now + pause;
	return x->tries++ == 0;
}

/* Batches that are no more count for their folders for a while. */
static void drop_old(struct later *l, int64_t now)
{
	void *value;

	for (size_t i = 0; base_map_next(&l->by_name, &i, &value);) {
		struct refused *x = value;

		if (x->seen || now - x->tried < FORGET_AFTER)
			continue;
		drop(l, x);
		i--;
	}
}

/* Seconds that the store is left alone for; 0: a turn may begin. */
static int64_t later_pause(const struct later *l, int64_t now)
{
	int64_t left = l->not_before - now;

	/* More than the longest is a clock that was set back. */
	return left > 0 && left <= TROUBLE_MOST ? left : 0;
}

static void note_trouble(struct later *l, bool took, bool trouble, int64_t now)
{
	int64_t pause = TROUBLE_MOST;

	if (took || !trouble) {
		l->troubles = 0;
		return;
	}
	if (++l->troubles < TROUBLES)
		return;
	if (l->troubles < TROUBLES + TROUBLE_PAUSES)
		pause = (int64_t)PAUSE_FIRST << (l->troubles - TROUBLES);
	l->not_before = now + pause;
}

size_t later_end(struct later *l, bool took, bool trouble, int64_t now)
{
	size_t blamed = 0;
	void *value;

	for (size_t i = 0; base_map_next(&l->by_name, &i, &value);) {
		struct refused *x = value;

		if (x->turn != l->turn)
			continue;
		x->tried = now;
		if (took)
			blamed += blame(x, now);
	}
	note_trouble(l, took, trouble, now);
	drop_old(l, now);
	return blamed;
}

void later_release(struct later *l)
{
	void *value;

	for (size_t i = 0; base_map_next(&l->by_name, &i, &value);) {
		struct refused *x = value;

		free(x->name);
		free(x);
	}
	base_map_release(&l->by_name);
	base_map_release(&l->folders);
	base_map_release(&l->skipped);
}

enum { BATCH_FILE_MAX = 1 << 28, AT_ONCE = 64 << 20, DAYS_AT_ONCE = 50, AWAY_AFTER = 3 };

struct waiting {
	char *name; /* "NAME", or of a machine's own folder "FOLDER/NAME"; NULL: it waits no more */
	struct later_rank rank;
};

struct names {
	struct waiting *v;
	size_t nr, cap;
};

/* It lasts while the batches of one folder are sent. */
struct sending {
	struct store_server *s;
	int dir_fd;
	struct names n;
	struct send *out;
	size_t refused;	     /* batches, one behind the other, that the store refused */
	bool trouble;	     /* so many, or it gives no answer: the turn is over */
	bool stays;	     /* one of all was not taken, and is still there */
	struct base_err why; /* the last refusal */
};

static void names_release(struct names *n)
{
	for (size_t i = 0; i < n->nr; i++)
		free(n->v[i].name);
	free(n->v);
}

/* Within a rank the order is that of the last part of names, which begins with the epoch. */
static int compare(const void *pa, const void *pb)
{
	const struct waiting *a = pa, *b = pb;

	if (a->rank.class != b->rank.class)
		return a->rank.class < b->rank.class ? -1 : 1;
	if (a->rank.when != b->rank.when)
		return a->rank.when < b->rank.when ? -1 : 1;
	return strcmp(base_path_name(a->name), base_path_name(b->name));
}

static int add_name(struct names *n, const char *folder, const char *name)
{
	int r = base_grow(&n->v, &n->cap, n->nr + 1, sizeof(*n->v));

	if (r < 0 || asprintf(&n->v[n->nr].name, "%s%s%s", folder ? folder : "", folder ? "/" : "",
			      name) < 0)
		return -ENOMEM;
	n->nr++;
	return 0;
}

/* The folder's batches, and those of its folders: a machine each. */
static int list(int dir_fd, const char *folder, struct names *out)
{
	struct dirent *e;
	DIR *d;
	int r = base_dir_open(dir_fd, folder ? folder : ".", &d);

	if (r < 0)
		return folder ? 0 : r;
	while (r >= 0 && (e = readdir(d))) {
		if (spool_is_batch(e->d_name))
			r = add_name(out, folder, e->d_name);
		else if (!folder && (e->d_type == DT_DIR || e->d_type == DT_UNKNOWN) &&
			 e->d_name[0] != '.')
			r = list(dir_fd, e->d_name, out);
	}
	closedir(d);
	return r;
}

static void warn(const struct send *out, const char *name, const char *what,
		 const struct base_err *why)
{
	char *clean = strdup(name);

	fprintf(stderr, "%s: warning: batch '%s' %s: %s\n", out->prog,
		clean ? base_text_clean(clean) : "?", what, why->text);
	free(clean);
}

/* A name that is too long for the suffix cannot be kept. 0, or negative: it is still there. */
static int rename_bad(const struct sending *x, const char *name, const char **what)
{
	char bad[600];
	int len = snprintf(bad, sizeof(bad), "%s.bad", name);

	*what = "is set aside as .bad";
	if (len < (int)sizeof(bad) && renameat(x->dir_fd, name, x->dir_fd, bad) == 0)
		return 0;
	*what = "is removed";
	if ((len >= (int)sizeof(bad) || errno == ENAMETOOLONG) && unlinkat(x->dir_fd, name, 0) == 0)
		return 0;
	*what = "cannot be set aside";
	return -EIO;
}

/* Images and routines of this batch may stand in no other one, so they count as not sent. */
static void forget_known(const struct sending *x, const char *name)
{
	struct base_err err = { 0 };

	if (x->out->known && known_forget(x->out->known, &err) < 0)
		warn(x->out, name, "was not sent", &err);
}

static void set_aside(struct sending *x, const char *name, const struct base_err *why)
{
	const char *what;

	x->stays |= rename_bad(x, name, &what) < 0;
	warn(x->out, name, what, why);
	forget_known(x, name);
}

static bool is_bad(int r)
{
	return r == -DCPI_EFORMAT || r == -DCPI_ECHECKSUM || r == -DCPI_ELIMIT;
}

/* 1: it is in @to; 0: it is damaged, or cannot be read now. */
static int take(struct sending *x, const char *name, struct store_batch *to, struct base_err *err)
{
	struct store_batch b = { 0 };
	struct base_buf file = { 0 };
	struct base_err why = { 0 };
	int r = base_file_read(x->dir_fd, name, BATCH_FILE_MAX, &file, &why);

	if (r >= 0)
		r = store_batch_parse(file.data, file.len, &b, &why);
	if (r >= 0)
		r = store_batch_add(to, &b);
	store_batch_release(&b);
	base_buf_release(&file);
	if (r == -ENOMEM)
		return base_fail_errno(err, r, "cannot read batch '%s'", name);
	if (is_bad(r))
		set_aside(x, name, &why);
	else if (r < 0)
		warn(x->out, name, "stays", &why);
	return r >= 0;
}

static void forget(struct sending *x, size_t at)
{
	free(x->n.v[at].name);
	x->n.v[at].name = NULL;
}

/* The store has these: they are removed. */
static int done(struct sending *x, size_t from, size_t to, struct base_err *err)
{
	struct stat st;
	int r = 0;

	for (size_t i = from; i < to; i++) {
		const char *name = x->n.v[i].name;

		if (!name)
			continue;
		if (fstatat(x->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			x->out->bytes += (uint64_t)st.st_size;
		if (unlinkat(x->dir_fd, name, 0) < 0)
			r = base_fail_errno(err, -errno, "cannot remove '%s'", name);
		later_taken(&x->out->later, name);
		x->out->batches++;
	}
	x->refused = 0;
	return r;
}

/* The failure is neither one batch's nor one that a next batch could escape. */
static bool is_of_all(int r)
{
	return r == -EACCES || r == -ENOENT || r == -DCPI_EVERSION || r == -ENOMEM ||
	       r == -ECANCELED;
}

/* One that was refused alone waits. After several in turn, or without an answer, all do. */
static int refuse(struct sending *x, const char *name, int r, const struct base_err *why)
{
	warn(x->out, name, "waits", why);
	x->why = *why;
	x->stays = true;
	x->trouble = r == -EHOSTUNREACH || ++x->refused >= AWAY_AFTER;
	return later_note(&x->out->later, name);
}

static int send_one(struct sending *x, size_t at, struct base_err *err)
{
	struct store_batch b = { 0 };
	struct base_err why = { 0 };
	int r = take(x, x->n.v[at].name, &b, &why);

	if (r > 0)
		r = store_send(x->s, &b, &why);
	else if (r == 0)
		forget(x, at);
	store_batch_release(&b);
	if (r >= 0)
		return x->n.v[at].name ? done(x, at, at + 1, err) : 0;
	if (is_of_all(r)) {
		*err = why;
		return r;
	}
	r = refuse(x, x->n.v[at].name, r, &why);
	return r < 0 ? base_fail_errno(err, r, "cannot send batches") : 0;
}

/* Batches from @from on that fit into one request, of not too many days, as servers refuse these;
 * returns the index behind them. */
static ssize_t take_some(struct sending *x, size_t from, struct store_batch *all,
			 struct base_err *err)
{
	const char *day = "";
	size_t to = from, days = 0;
	int r = 0;

	for (; r >= 0 && to < x->n.nr && store_batch_len(all) < AT_ONCE; to++) {
		const char *name = base_path_name(x->n.v[to].name);

		if (x->n.v[to].rank.class >= LATER_ALONE)
			break;
		days += strncmp(name, day, 8) != 0;
		if (days > DAYS_AT_ONCE)
			break;
		day = name;
		if (later_skip(&x->out->later, x->n.v[to].name)) {
			x->stays = true;
			r = 0;
		} else {
			r = take(x, x->n.v[to].name, all, err);
		}
		if (r == 0) {
			forget(x, to);
			day = "";
		}
	}
	return r < 0 ? r : (ssize_t)to;
}

static int send_each(struct sending *x, size_t from, size_t to, struct base_err *err)
{
	int r = 0;

	for (size_t i = from; i < to && r >= 0 && !x->trouble; i++) {
		const char *name = x->n.v[i].name;

		if (name && later_skip(&x->out->later, name))
			x->stays = true;
		else if (name)
			r = send_one(x, i, err);
	}
	return r;
}

/* Many at once, and where that fails one by one. */
static ssize_t send_some(struct sending *x, size_t from, struct base_err *err)
{
	struct store_batch all = { 0 };
	struct base_err why = { 0 };
	ssize_t to = take_some(x, from, &all, err);
	int r = to < 0 ? (int)to : store_send(x->s, &all, &why);

	store_batch_release(&all);
	if (to < 0)
		return to;
	if (r >= 0)
		r = done(x, from, (size_t)to, err);
	else if (is_of_all(r))
		*err = why;
	else
		r = send_each(x, from, (size_t)to, err);
	return r < 0 ? r : to;
}

/* Batches that are sent alone are the last; those whose pause is not over were told of before. */
static int send_all(struct sending *x, struct base_err *err)
{
	size_t at = 0, end = x->n.nr;
	ssize_t r = 0;

	while (end && x->n.v[end - 1].rank.class == LATER_NOT_YET)
		end--;
	while (r >= 0 && !x->trouble && at < end && x->n.v[at].rank.class < LATER_ALONE) {
		r = send_some(x, at, err);
		at = r < 0 ? at : (size_t)r;
	}
	x->refused = 0;
	return r < 0 ? (int)r : send_each(x, at, end, err);
}

static int begin(struct sending *x, struct base_err *err)
{
	int r = list(x->dir_fd, NULL, &x->n);

	if (r >= 0)
		r = later_begin(&x->out->later);
	if (r < 0)
		return base_fail_errno(err, r, "cannot list batches");
	for (size_t i = 0; i < x->n.nr; i++)
		x->n.v[i].rank = later_rank(&x->out->later, x->n.v[i].name, (int64_t)time(NULL));
	if (x->n.nr)
		qsort(x->n.v, x->n.nr, sizeof(*x->n.v), compare);
	return 0;
}

int send_batches(struct store_server *s, int dir_fd, struct send *out, struct base_err *err)
{
	struct sending x = { .s = s, .dir_fd = dir_fd, .out = out };
	int64_t pause = later_pause(&out->later, (int64_t)time(NULL));
	int r;

	out->batches = out->bytes = 0;
	if (pause)
		return base_fail(err, -EAGAIN,
				 "the store took nothing: it is left alone for %lld s",
				 (long long)pause);
	r = begin(&x, err);
	if (r >= 0)
		r = send_all(&x, err);
	if (later_end(&out->later, out->batches > 0, x.trouble, (int64_t)time(NULL)))
		forget_known(&x, "*");
	names_release(&x.n);
	if (r < 0 || !x.stays)
		return r;
	if (x.trouble) {
		*err = x.why;
		return x.why.code;
	}
	base_fail(err, -EAGAIN, "the store did not take all batches: some wait");
	if (x.why.hint[0])
		base_hint(err, "%s", x.why.hint);
	return -EAGAIN;
}
