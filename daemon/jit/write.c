/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pseudo-images are written, at a flush and when processes have ended, and files with samples that
 * were removed while processes had them mapped are copied; clients are told.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jit_internal.h"
#include "pseudoimg.h"
#include "watch.h"

/* A larger job is a file. */
#define JOB_IN_MEMORY (16ull << 20)
/* A smaller one is written before a thread would be there. */
#define JOB_SMALL (256ull << 10)

/* ---- one image ------------------------------------------------------------------------------- */

static int open_job(const struct dyn_facility *f)
{
	const struct dyn_registry *reg = f->registry;
	int fd = -1;

	if (reg->store.used + reg->bytes > JOB_IN_MEMORY)
		fd = openat(profdb_dyn_fd(reg->dyn->config.db), ".", O_TMPFILE | O_RDWR | O_CLOEXEC,
			    0600);
	if (fd < 0)
		fd = memfd_create("dcpid-job", MFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

struct job {
	const struct dyn_facility *f;
	bool full;
	int fd;
};

/* A large one goes to the disk, which may be busy. */
static int write_job(void *arg)
{
	struct job *j = arg;
	int r;

	j->fd = r = open_job(j->f);
	if (r >= 0)
		r = dyn_facility_job(j->f, j->full, j->fd);
	if (r == 0 && lseek(j->fd, 0, SEEK_SET) < 0)
		r = -errno;
	return r;
}

static int make_job(const struct dyn_facility *f, bool full, struct base_err *err)
{
	const struct dyn_registry *reg = f->registry;
	bool small = reg->store.used + reg->bytes <= JOB_SMALL;
	struct job j = { f, full, -1 };
	int r = image_file_wait(small ? NULL : &reg->dyn->helper, write_job, &j), fd = j.fd;

	if (r == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return base_fail_errno(err, r, "cannot make the job of '%s'", f->stem);
}

int dyn_image_remember(struct dyn_facility *f)
{
	const struct base_id *old = &f->image->id;
	int r;

	if (!old->len || !f->image->put ||
	    (f->nr_replaced && base_id_equal(&f->replaced[f->nr_replaced - 1], old)))
		return 0;
	if (f->nr_replaced == DYN_REPLACES_MAX)
		memmove(f->replaced, f->replaced + 1, --f->nr_replaced * sizeof(*f->replaced));
	r = base_grow(&f->replaced, &f->cap_replaced, f->nr_replaced + 1, sizeof(*f->replaced));
	if (r == 0)
		f->replaced[f->nr_replaced++] = *old;
	return r;
}

/* An image is written many times, and what is wrong with it is wrong each time. */
static void count_bad(struct dyn_facility *f, const struct pseudoimg_result *result)
{
	uint32_t nr_bad = result->nr_bad, nr_overlaps = result->nr_overlaps;

	if (nr_bad <= f->nr_bad)
		return;
	if (nr_overlaps)
		base_log(BASE_LOG_WARN,
			 "%u ranges or routines of '%s' overlap others, or were added twice, and "
			 "are left out",
			 nr_overlaps, f->stem);
	if (nr_bad > nr_overlaps)
		base_log(BASE_LOG_WARN,
			 "%u routines, lines or parts of the DST of '%s' are malformed or out of "
			 "place, and left out",
			 nr_bad - nr_overlaps, f->stem);
	f->registry->nr_bad += nr_bad - f->nr_bad;
	f->nr_bad = nr_bad;
}

/* A client that asked for all of it got but a part, or nothing. */
static int tell_part(const struct dyn_facility *f, bool part, struct base_err *err)
{
	return part ? base_fail(err, -EDQUOT, "'%s' is over the database's quota", f->stem) : 0;
}

/* The file is in place, or why it is not. */
static int written(struct dyn_facility *f, int r, const struct pseudoimg_result *result)
{
	struct base_id id = { .len = sizeof(result->build_id) };

	if (image_file_refusal(r) && image_file_give_up(f->image, &f->nr_refused))
		dyn_facility_written(f, true);
	if (r < 0)
		return r;
	f->nr_refused = 0;
	memcpy(id.bytes, result->build_id, sizeof(result->build_id));
	image_set_id(f->image, &id);
	if (f->nr_replaced && base_id_equal(&f->replaced[f->nr_replaced - 1], &id))
		f->nr_replaced--;
	f->registry->dyn->stats.images_written++;
	count_bad(f, result);
	return 0;
}

/* ---- while the loop does other things -------------------------------------------------------- */

/* News and samples that come while the file is written make the image behind again. */
struct dyn_writing {
	struct dyn_task task;
	const char *program, *stem; /* its facility's, as long as this */
	int dir_fd, job;
	uint32_t uid;
	struct pseudoimg_result result;
	struct base_err err;

	uint32_t flush; /* its registry's flush_ready, when the job was made */
	bool full, part;
	bool changed, owned_changed; /* of the facility, then */
};

static int put(void *arg)
{
	struct dyn_writing *w = arg;
	const struct pseudoimg_helper helper = { .program = w->program };

	return image_file_put(w->dir_fd, w->stem, &helper, &w->uid, w->job, &w->result, &w->err);
}

static void writing_free(struct dyn_writing *w)
{
	if (w->dir_fd >= 0)
		close(w->dir_fd);
	free(w);
}

/* The task is its first member. */
static void writing_release(struct dyn_task *t)
{
	struct dyn_writing *w = (void *)t;

	close(w->job);
	writing_free(w);
}

/* False: that cannot be; @job stays the caller's. */
static bool begin_writing(struct dyn_facility *f, bool full, bool part, int job)
{
	struct dyn_registry *reg = f->registry;
	struct dyn *d = reg->dyn;
	struct dyn_writing *w = calloc(1, sizeof(*w));

	if (!w)
		return false;
	*w = (struct dyn_writing){ .program = d->program,
				   .stem = f->stem,
				   .dir_fd = fcntl(profdb_dyn_fd(d->config.db), F_DUPFD_CLOEXEC, 0),
				   .job = job,
				   .uid = reg->uid,
				   .flush = reg->flush_ready,
				   .full = full,
				   .part = part,
				   .changed = f->changed,
				   .owned_changed = f->owned_changed };
	if (w->dir_fd < 0 || !dyn_task_begin(d, &w->task, w->uid, put, w)) {
		writing_free(w);
		return false;
	}
	w->task.release = writing_release;
	f->writing = &w->task;
	f->image->writing = true;
	dyn_facility_written(f, full);
	return true;
}

/* Whether it failed or not. The caller's to free. */
static struct dyn_writing *stop_writing(struct dyn_facility *f, int *r)
{
	struct dyn_writing *w = (void *)f->writing;

	*r = dyn_task_end(f->registry->dyn, &w->task);
	close(w->job);
	f->writing = NULL;
	f->image->writing = false;
	return w;
}

/* All of it is to be written anew. */
static void set_behind(struct dyn_facility *f, const struct dyn_writing *w)
{
	f->image->behind = true;
	f->changed |= w->changed;
	f->owned_changed |= w->owned_changed;
}

/* A failure from before the flush that goes on says nothing of now: the disk may have room. */
static bool is_outdated(const struct dyn *d, const struct dyn_writing *w, int r)
{
	return r < 0 && w->task.begun_ns < d->flush_ns && !image_file_refusal(r);
}

/* The end of what was begun, as dyn_image_write. */
static int end_writing(struct dyn_facility *f, struct base_err *err)
{
	struct dyn_writing *w;
	int r;

	if (!dyn_task_is_done(f->registry->dyn, f->writing))
		return -EAGAIN;
	w = stop_writing(f, &r);
	if (r < 0)
		set_behind(f, w);
	if (is_outdated(f->registry->dyn, w, r)) {
		writing_free(w);
		return 0;
	}
	if (r < 0 && err)
		*err = w->err;
	r = written(f, r, &w->result);
	if (r == 0 && w->full)
		f->flush_written = w->flush;
	if (r == 0)
		r = tell_part(f, w->part, err);
	writing_free(w);
	return r;
}

/* Wherever it was written to, it is not there any more. */
static void forget_writing(struct dyn_facility *f)
{
	struct dyn_writing *w;
	int r;

	if (!f->writing)
		return;
	w = stop_writing(f, &r);
	set_behind(f, w);
	writing_free(w);
}

/* ---- one image, now or later ----------------------------------------------------------------- */

/* News and samples since the job was made wait for the next time, but for two: routines
 * with samples, whose profile waits for them, and those of a later request of its client's. */
static bool is_due_again(const struct dyn_facility *f, bool full)
{
	return f->image->behind || (full && f->flush_written != f->registry->flush_ready);
}

static int write_now(struct dyn_facility *f, bool full, int job, struct base_err *err)
{
	const struct dyn *d = f->registry->dyn;
	struct pseudoimg_result result = { 0 };
	int r = image_file_put(profdb_dyn_fd(d->config.db), f->stem, &d->helper, &f->registry->uid,
			       job, &result, err);

	close(job);
	r = written(f, r, &result);
	if (r == 0)
		dyn_facility_written(f, full);
	return r;
}

/* The image is newer than the last flush from now on. 0, -ENOENT, also where it was never written.
 */
static int dyn_image_spare(const struct dyn_facility *f)
{
	struct profdb *db = f->registry->dyn->config.db;

	if (!db || !f->image->id.len)
		return -ENOENT;
	return utimensat(profdb_dyn_fd(db), f->stem, NULL, 0) < 0 ? -errno : 0;
}

/*
 * Profiles will refer to its image: that is newer than the last flush from now on, so that dcpid
 * -gc leaves it alone (retain.h); where it was removed, it is behind.
 */
static void assure(struct dyn_facility *f)
{
	if (f->image->dirty && f->image->id.len && !f->image->behind &&
	    f->registry->dyn->config.db && dyn_image_spare(f) == -ENOENT)
		f->image->behind = true;
}

int dyn_image_write(struct dyn_facility *f, bool full, struct base_err *err)
{
	const struct dyn *d = f->registry->dyn;
	uint32_t uid = f->registry->uid;
	bool part, was = f->writing; /* part: of what the client asked for */
	int r, job;

	assure(f);
	r = was ? end_writing(f, err) : 0;
	if (r < 0 || (was && !is_due_again(f, full)))
		return r;
	if (f->image->refused) {
		/* Nothing waits for it: who is over can be forgotten. */
		dyn_facility_written(f, true);
		return base_fail(err, -DCPI_EHELPER, "'%s' is given up", f->stem);
	}
	part = full && dyn_is_full(d, uid) && (f->changed || f->owned_changed);
	if (!dyn_facility_is_behind(f, full))
		return tell_part(f, part, err);
	full = full && !dyn_is_full(d, uid);
	r = dyn_image_remember(f);
	if (r < 0)
		return base_fail_errno(err, r, "cannot write '%s'", f->stem);
	job = make_job(f, full, err);
	if (job < 0)
		return job;
	/* The helper takes memory as well. */
	if (d->config.reader)
		reader_trim(d->config.reader);
	if (d->hasty && begin_writing(f, full, part, job))
		return -EAGAIN;
	r = write_now(f, full, job, err);
	return r < 0 ? r : tell_part(f, part, err);
}

/* ---- files that were removed ----------------------------------------------------------------- */

/*
 * Some runtimes let a compiler write a library, load it, and remove it at once; and some files are
 * in containers alone. Those with samples are copied into <db>/dyn, where the tools look for them.
 */

/* Files that are looked at; a look takes the reader some 40 us. */
enum { FILES_MAX = 16384 };
/* A file may be removed at any time, one that is old less likely: the next look is after twice the
 * time, or after its age. */
#define FIRST_WAIT_NS 1000000000ull
#define LAST_WAIT_NS  (64 * FIRST_WAIT_NS)

/* A copy must have the code by which the profile is known: where it could not be read, none is
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

/* ---- files that were removed: copies --------------------------------------------------------- */

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

/* A memfd has the mode of a public file, and no other process could open it. */
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

/* ---- files that were removed: looks ---------------------------------------------------------- */

/* The reader would find as much, by a request: beside many short processes that is a dozen a
 * second. */
static bool has_ended(int32_t pid)
{
	return kill(pid, 0) < 0 && errno == ESRCH;
}

static int look(struct dyn *d, struct dyn_file *f, struct base_err *err)
{
	struct reader_removed found = { .path = f->image->path,
					.pid = f->pid,
					.uid = f->uid,
					.start = f->start,
					.end = f->end,
					.id = f->image->id };
	int r = has_ended(f->pid) ? -ESRCH : reader_removed_file(d->config.reader, &found, -1);

	f->age_s = found.age_s;
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

static uint64_t wait_of(const struct dyn_file *f)
{
	uint64_t wait_ns = f->wait_ns ? 2 * f->wait_ns : FIRST_WAIT_NS;

	if (f->age_s >= LAST_WAIT_NS / 1000000000 || wait_ns > LAST_WAIT_NS)
		return LAST_WAIT_NS;
	return wait_ns > f->age_s * 1000000000 ? wait_ns : f->age_s * 1000000000;
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
	f->wait_ns = wait_of(f);
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

/* ---- when ------------------------------------------------------------------------------------ */

/* A turn has so long for images of processes that have ended. */
#define ENDED_NS 100000000ull

static int write_one(struct dyn_facility *f, bool full, struct base_err *err)
{
	struct budgets *b = f->registry->dyn->config.budgets;
	uint64_t since_ns = budget_begin(b);
	bool waits = f->joining || dyn_merge_wants(f);
	int r = f->joining ? -EAGAIN : 0;

	if (waits)
		assure(f);
	else
		r = dyn_image_write(f, full, err);
	budget_end(b, f->registry->uid, since_ns);
	return r;
}

/* Its user has had its turn. */
static bool must_wait(struct dyn_registry *reg)
{
	struct dyn *d = reg->dyn;
	bool must = d->hasty && !budget_has_turn(d->config.budgets, reg->uid);

	d->unwritten |= must;
	return must;
}

/* Nor may its user begin another file before the end of one, which wakes the loop. */
static bool must_wait_to_write(const struct dyn_facility *f)
{
	struct dyn_registry *reg = f->registry;

	return !f->writing && (must_wait(reg) || dyn_task_must_wait(reg->dyn, reg->uid));
}

/* *@answer: what the client is told; -EAGAIN: nothing yet, some of its images wait. */
static int write_registry(struct dyn_registry *reg, int *answer, struct base_err *err)
{
	bool full = dyn_registry_wants_flush(reg) && !dyn_registry_is_catching_up(reg);
	int first = 0, refused = 0;
	bool waits = false;

	for (size_t i = 0; i < WIRE_NR_FACILITIES; i++) {
		struct dyn_facility *f = reg->facilities[i];
		struct base_err why = { 0 };
		int r;

		dyn_meanwhile(reg->dyn);
		if (f && must_wait_to_write(f)) {
			*answer = -EAGAIN;
			return first;
		}
		r = f ? write_one(f, full, &why) : 0;
		if (r == 0)
			continue;
		if (r == -EAGAIN) {
			waits = true;
			continue;
		}
		if (!f->image->refused && image_file_refusal(r))
			base_log(BASE_LOG_WARN, "%s", why.text);
		/* One client's words are no reason to call everybody's flush failed. */
		if (image_file_refusal(r) || r == -EDQUOT) {
			refused = r;
			continue;
		}
		if (!first)
			base_fail(err, r, "%s", why.text);
		first = first ? first : r;
	}
	*answer = waits ? -EAGAIN : first ? first : refused;
	return first;
}

/* One of its images is to be part of another. */
static bool merges_some(const struct dyn_registry *reg)
{
	bool merges = false;

	for (size_t i = 0; !merges && i < WIRE_NR_FACILITIES; i++)
		merges = reg->facilities[i] && dyn_merge_wants(reg->facilities[i]);
	return merges;
}

/* Answer a flush request. */
static void answer_flush(struct dyn_registry *reg, int status)
{
	int32_t code = reg->flush_error ? reg->flush_error : status;

	if (!dyn_registry_wants_flush(reg) || reg->flush_ready == reg->flush_answered)
		return;
	DYN_PUT(reg, flush_status, &code);
	DYN_PUT(reg, flush_done, &reg->flush_ready);
	reg->flush_answered = reg->flush_ready;
}

/* Without a database none waits for its time limit in vain. */
static void refuse_all(struct dyn *d, int why)
{
	for (struct dyn_registry *reg = d->registries; reg; reg = reg->next) {
		if (d->config.reader && dyn_registry_is_catching_up(reg))
			dyn_registry_read(reg, true);
		answer_flush(reg, why);
	}
}

enum which { ALL, ENDED, WAITED, WATCHED };

/* WAITED: its client waits for nothing but the writing. WATCHED: it lives, and a viewer is shown
 * its samples. */
static bool is_among(const struct dyn_registry *reg, enum which which)
{
	if (which == WATCHED)
		return !dyn_registry_has_ended(reg) && watch_shows(reg->dyn->watch, reg->uid);
	if (which == WAITED)
		return dyn_registry_wants_flush(reg) && !dyn_registry_is_catching_up(reg);
	return which == ALL || dyn_registry_has_ended(reg);
}

static int write_all(struct dyn *d, enum which which, uint64_t deadline_ns, struct base_err *err)
{
	struct dyn_registry *next, *waits = NULL;
	int first = 0;

	/* Images for viewers tell nothing of those that clients wait for. */
	if (which != WATCHED)
		d->unwritten = false;
	for (struct dyn_registry *reg = d->registries; reg; reg = next) {
		int r, answer;

		next = reg->next;
		if (dyn_registry_has_ended(reg) && base_now_ns() > deadline_ns) {
			d->unwritten = true;
			waits = waits ? waits : reg;
			continue;
		}
		if (!is_among(reg, which))
			continue;
		if (d->config.reader && dyn_registry_is_catching_up(reg) && !must_wait(reg))
			dyn_registry_read(reg, true);
		r = write_registry(reg, &answer, err);
		if (answer != -EAGAIN) {
			/* Something is left of one that was not read, or is merged later. */
			if (!reg->skipped && !merges_some(reg))
				reg->served_ns = base_now_ns();
			answer_flush(reg, answer);
			dyn_merge_settle(reg);
		} else {
			waits = waits ? waits : reg;
		}
		first = first ? first : r;
	}
	dyn_begin_with(d, waits);
	return first;
}

/* @deadline_ns: those of processes that have ended, for which only samples wait, are left for the
 * next time from then on. */
static int write_images(struct dyn *d, enum which which, uint64_t deadline_ns, struct base_err *err)
{
	int first, lock = -1;

	/* The lock keeps images from being removed between our look and the profile that refers to
	 * them. */
	if (d->config.db && d->registries)
		lock = profdb_dyn_lock(d->config.db, false, IMAGE_FILE_LOCK_MS, err);
	if (lock < 0 && d->config.db && d->registries) {
		if (lock != -DCPI_EBUSY)
			refuse_all(d, lock);
		return lock;
	}
	first = write_all(d, which, deadline_ns, err);
	/* Tasks that were begun have ended soon, most often. */
	if (first == 0 && dyn_tasks_await(d))
		first = write_all(d, which, deadline_ns, err);
	if (lock >= 0)
		close(lock);
	return first;
}

int dyn_write_images(struct dyn *d, struct base_err *err)
{
	dyn_files_spare(d);
	dyn_files_look(d);
	return write_images(d, ALL, d->hasty ? base_now_ns() + ENDED_NS : UINT64_MAX, err);
}

bool dyn_read_waited(struct dyn *d)
{
	bool read = false;

	for (struct dyn_registry *reg = d->registries; reg; reg = reg->next) {
		if (dyn_registry_is_catching_up(reg) && !must_wait(reg)) {
			uint64_t since_ns = budget_begin(d->config.budgets);

			dyn_registry_read(reg, true);
			budget_end(d->config.budgets, reg->uid, since_ns);
		}
		read |= is_among(reg, WAITED);
	}
	return read;
}

int dyn_write_waited(struct dyn *d, struct base_err *err)
{
	return write_images(d, WAITED, UINT64_MAX, err);
}

int dyn_write_watched(struct dyn *d, const struct watch *watch, struct base_err *err)
{
	int r;

	d->watch = watch;
	r = write_images(d, WATCHED, UINT64_MAX, err);
	d->watch = NULL;
	return r;
}

int dyn_write_ended(struct dyn *d, struct base_err *err)
{
	bool some = false;
	int r = 0;

	eventfd_t nr;

	if (d->wake_fd >= 0)
		eventfd_read(d->wake_fd, &nr);
	dyn_files_look(d);
	if (d->merge_after_ns && base_now_ns() < d->merge_after_ns)
		return 0;
	for (const struct dyn_registry *reg = d->registries; !some && reg; reg = reg->next)
		some = dyn_registry_has_ended(reg) && !merges_some(reg);
	if (some)
		r = write_images(d, ENDED, base_now_ns() + ENDED_NS, err);
	if (r < 0)
		d->merge_after_ns = base_now_ns() + DYN_AGAIN_NS;
	return r;
}

void dyn_set_hasty(struct dyn *d, bool hasty)
{
	d->hasty = hasty;
	dyn_tasks_grace(d);
}

void dyn_set_full(struct dyn *d, bool full, uint64_t share)
{
	d->full = full;
	d->share = share;
}

void dyn_spare_images(struct dyn *d)
{
	dyn_files_spare(d);
	for (const struct dyn_registry *reg = d->registries; reg; reg = reg->next)
		for (size_t i = 0; i < WIRE_NR_FACILITIES; i++)
			if (reg->facilities[i])
				dyn_image_spare(reg->facilities[i]);
}

/* Folded images cannot be made again: their records are gone. */
void dyn_images_lost(struct dyn *d)
{
	dyn_merge_forget(d);
	for (struct dyn_registry *reg = d->registries; reg; reg = reg->next) {
		for (size_t i = 0; i < WIRE_NR_FACILITIES; i++) {
			struct dyn_facility *f = reg->facilities[i];

			if (f)
				forget_writing(f);
			if (f && !f->merged && f->image->id.len)
				f->image->behind = true;
		}
	}
	d->merge_after_ns = 0;
}
