/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that were removed while processes had them mapped, as some runtimes let a compiler write a
 * library, load it, and remove it at once; and files that containers alone have. Those with samples
 * are copied into <db>/dyn, where the tools look for them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jit_internal.h"

/* Files that are looked at; a look takes the reader some 40 us. */
enum { FILES_MAX = 16384 };
/* A file may be removed at any time: from one look to the next it takes twice as long. */
#define FIRST_WAIT_NS 1000000000ull
#define LAST_WAIT_NS  64000000000ull

/* ---- which --------------------------------------------------------------------------------- */

/* A copy must have the code by which the profile is known: where nobody could read it, none is
 * made. */
static bool may_be_copied(const struct dyn *d, const struct image *img)
{
	return d->config.reader && d->config.db && img->kind == PROFDB_FILE && img->id.len &&
	       img->text.len != 1 && !img->excluded;
}

void dyn_sampled(struct dyn *d, const struct process *p, const struct map *m)
{
	struct dyn_file *f;

	if (!may_be_copied(d, m->image)) {
		m->image->watched = true;
		return;
	}
	if (!budget_take(d->config.budgets, p->uid, BUDGET_FILES, 1, FILES_MAX))
		return;
	if (base_grow(&d->files, &d->cap_files, d->nr_files + 1, sizeof(*d->files)) < 0) {
		budget_give_back(d->config.budgets, p->uid, BUDGET_FILES, 1);
		return;
	}
	f = &d->files[d->nr_files++];
	*f = (struct dyn_file){ .image = image_get(m->image),
				.pid = p->pid,
				.uid = p->uid,
				.start = m->start,
				.end = m->end };
	f->image->watched = true;
}

/* @again: the next sample in it, of whatever process, has it looked at once more. */
static void forget(struct dyn *d, struct dyn_file *f, bool again)
{
	budget_give_back(d->config.budgets, f->uid, BUDGET_FILES, 1);
	f->image->watched = !again;
	image_put(f->image);
	*f = d->files[--d->nr_files];
}

void dyn_files_release(struct dyn *d)
{
	while (d->nr_files)
		forget(d, d->files, false);
	free(d->files);
	d->files = NULL;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void name_of(const struct dyn_file *f, char name[BASE_COPY_NAME_LEN])
{
	base_copy_name(&f->image->id, &f->image->text, name);
}

/* It is newer than the last flush from now on, so that dcpid -gc leaves it alone. */
static bool spare(const struct dyn *d, const struct dyn_file *f)
{
	char name[BASE_COPY_NAME_LEN];

	name_of(f, name);
	return utimensat(profdb_dyn_fd(d->config.db), name, NULL, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A memfd has the mode of a public file, and nobody else could open it. */
static bool is_public(const struct dyn_file *f, const struct reader_removed *found)
{
	static const char memfd[] = "/memfd:";

	return found->public && strncmp(f->image->path, memfd, sizeof(memfd) - 1) != 0;
}

/* A pseudo-image is its user's and the group's: of a private file the copy is not the group's. */
static int create(const struct dyn *d, const struct dyn_file *f, const struct reader_removed *found,
		  struct base_file *file, struct base_err *err)
{
	bool public = is_public(f, found);
	char name[BASE_COPY_NAME_LEN];
	int r;

	name_of(f, name);
	r = image_file_create(file, profdb_dyn_fd(d->config.db), name, &d->helper,
			      public ? &found->owner : NULL, err);
	if (r < 0 || public)
		return r;
	r = base_reader_clear(file->fd);
	if (r == 0 && found->owner != geteuid())
		(void)base_reader_set(file->fd, found->owner, false);
	if (r < 0)
		base_file_abort(file);
	return r < 0 ? base_fail_errno(err, r, "cannot set the mode of '%s'", name) : 0;
}

/* The file that was looked at, with the code by which its profile is known. */
static bool is_same(const struct dyn_file *f, const struct reader_removed *found,
		    const struct reader_removed *copied)
{
	bool code =
		f->image->text.len ? base_id_equal(&f->image->text, &copied->text) : copied->roots;

	return code && copied->len == found->len && copied->owner == found->owner &&
	       copied->public == found->public;
}

static int copy(const struct dyn *d, const struct dyn_file *f, const struct reader_removed *found,
		struct base_err *err)
{
	struct reader_removed copied = *found;
	struct base_file file = { 0 };
	int r = create(d, f, found, &file, err);

	if (r < 0)
		return r;
	r = reader_removed_file(d->config.reader, &copied, file.fd);
	if (r == 0 && !is_same(f, found, &copied))
		r = -ESTALE;
	if (r == 0)
		r = image_file_commit(&file, &d->helper, err);
	base_file_abort(&file);
	return r;
}

/* Its user's share of a half of the quota; for a pseudo-image the other half is always left. */
static int keep(struct dyn *d, struct dyn_file *f, const struct reader_removed *found,
		struct base_err *err)
{
	struct budgets *b = d->config.budgets;
	int r;

	if (dyn_is_full(d, f->uid) ||
	    !budget_take(b, f->uid, BUDGET_COPIES, found->len, d->config.quota / 2))
		return base_fail(err, -ENOSPC, "it is over %s",
				 dyn_is_full(d, f->uid) ? "the database's quota"
							: "its user's share of the quota");
	r = copy(d, f, found, err);
	if (r < 0)
		budget_give_back(b, f->uid, BUDGET_COPIES, found->len);
	else
		d->stats.files_kept++;
	return r;
}

/* Under the lock, as dcpid -gc removes files at any time. */
static int keep_once(struct dyn *d, struct dyn_file *f, const struct reader_removed *found,
		     struct base_err *err)
{
	int lock = profdb_dyn_lock(d->config.db, false, IMAGE_FILE_LOCK_MS, err), r = 0;

	if (lock < 0)
		return lock;
	if (!spare(d, f))
		r = keep(d, f, found, err);
	close(lock);
	f->kept = r == 0;
	return r;
}

/* ---- looks ----------------------------------------------------------------------------------- */

static int look(struct dyn *d, struct dyn_file *f, struct base_err *err)
{
	struct reader_removed found = { .path = f->image->path,
					.pid = f->pid,
					.uid = f->uid,
					.start = f->start,
					.end = f->end,
					.id = f->image->id };
	int r = reader_removed_file(d->config.reader, &found, -1);

	return r < 0 ? r : keep_once(d, f, &found, err);
}

/* Said once of a file that never is kept, and now and then of what may be yet. */
static void tell(struct dyn *d, const struct dyn_file *f, int r, const struct base_err *err)
{
	const char *why = err->code	  ? err->text
			  : r == -EFBIG	  ? "it is larger than 64 MiB"
			  : r == -EREMOTE ? "its file system may not answer"
					  : NULL;

	if (why && budget_may_tell(d->config.budgets, f->uid))
		base_log(BASE_LOG_WARN, "'%s', which its path will not lead to, is not kept: %s",
			 f->image->path, why);
}

/* False: it is forgotten, and another one stands in its place. */
static bool looked(struct dyn *d, struct dyn_file *f, int r)
{
	switch (r) {
	case -ENOENT:
	case -ESRCH:
	case -ESTALE:
		forget(d, f, true);
		return false;
	case -EINVAL:
	case -ENOEXEC:
	case -EFBIG:
	case -EREMOTE:
	case -EPERM:
	case -EACCES:
		forget(d, f, false);
		return false;
	}
	f->wait_ns = !f->wait_ns		 ? FIRST_WAIT_NS
		     : f->wait_ns < LAST_WAIT_NS ? 2 * f->wait_ns
						 : LAST_WAIT_NS;
	f->next_ns = base_now_ns() + f->wait_ns;
	return true;
}

static bool look_now(struct dyn *d, struct dyn_file *f)
{
	uint64_t since_ns = budget_begin(d->config.budgets);
	struct base_err err = { 0 };
	uint32_t uid = f->uid;
	int r = look(d, f, &err);
	bool stays;

	if (r < 0)
		tell(d, f, r, &err);
	stays = looked(d, f, r);
	budget_end(d->config.budgets, uid, since_ns);
	return stays;
}

static bool is_due(const struct dyn *d, const struct dyn_file *f, uint64_t now_ns)
{
	return !f->kept && f->next_ns <= now_ns &&
	       (!d->hasty || budget_has_turn(d->config.budgets, f->uid));
}

/* No process has it any more; what was counted in it is on disk. */
static bool is_over(const struct dyn_file *f)
{
	return f->image->refs == 1 && !(f->kept && f->image->dirty);
}

void dyn_files_look(struct dyn *d)
{
	uint64_t now_ns = base_now_ns();

	for (size_t i = 0; i < d->nr_files;) {
		struct dyn_file *f = &d->files[i];
		bool stays = true;

		if (is_over(f)) {
			forget(d, f, true);
			stays = false;
		} else if (is_due(d, f, now_ns)) {
			stays = look_now(d, f);
		}
		i += stays;
	}
}

void dyn_files_spare(struct dyn *d)
{
	int lock =
		d->nr_files ? profdb_dyn_lock(d->config.db, false, IMAGE_FILE_LOCK_MS, NULL) : -1;

	for (size_t i = 0; lock >= 0 && i < d->nr_files; i++) {
		struct dyn_file *f = &d->files[i];

		if (!f->kept || spare(d, f))
			continue;
		f->kept = false;
		f->next_ns = f->wait_ns = 0;
	}
	if (lock >= 0)
		close(lock);
}
