/* SPDX-License-Identifier: BSD-2-Clause */
/* The pseudo-image of a facility is written when it is behind. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jit_internal.h"
#include "pseudoimg.h"

/* A larger job is a file. */
#define JOB_IN_MEMORY (16ull << 20)

/* ---- writing ------------------------------------------------------------------------------- */

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
	struct job j = { f, full, -1 };
	int r = image_file_wait(&f->registry->dyn->helper, write_job, &j), fd = j.fd;

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

int dyn_image_write(struct dyn_facility *f, bool full, struct base_err *err)
{
	const struct dyn *d = f->registry->dyn;
	struct pseudoimg_result result = { 0 };
	struct base_id id = { .len = sizeof(result.build_id) };
	bool part; /* of what the client asked for */
	int r, job;

	if (f->image->refused) {
		/* Nothing waits for it: who is over can be forgotten. */
		dyn_facility_written(f, true);
		return base_fail(err, -DCPI_EHELPER, "'%s' is given up", f->stem);
	}
	part = full && d->full && (f->changed || f->owned_changed);
	if (!dyn_facility_is_behind(f, full))
		return tell_part(f, part, err);
	full = full && !d->full;
	r = dyn_image_remember(f);
	if (r < 0)
		return base_fail_errno(err, r, "cannot write '%s'", f->stem);
	job = make_job(f, full, err);
	if (job < 0)
		return job;
	/* The helper takes memory as well. */
	if (d->config.reader)
		reader_trim(d->config.reader);
	r = image_file_put(profdb_dyn_fd(d->config.db), f->stem, &d->helper, &f->registry->uid, job,
			   &result, err);
	close(job);
	if (image_file_refusal(r) && image_file_give_up(f->image, &f->nr_refused))
		dyn_facility_written(f, true);
	if (r < 0)
		return r;
	f->nr_refused = 0;
	memcpy(id.bytes, result.build_id, sizeof(result.build_id));
	image_set_id(f->image, &id);
	if (f->nr_replaced && base_id_equal(&f->replaced[f->nr_replaced - 1], &id))
		f->nr_replaced--;
	dyn_facility_written(f, full);
	f->registry->dyn->stats.images_written++;
	count_bad(f, &result);
	return tell_part(f, part, err);
}

int dyn_image_spare(const struct dyn_facility *f)
{
	struct profdb *db = f->registry->dyn->config.db;

	if (!db || !f->image->id.len)
		return -ENOENT;
	return utimensat(profdb_dyn_fd(db), f->stem, NULL, 0) < 0 ? -errno : 0;
}

void dyn_image_assure(struct dyn_facility *f)
{
	if (f->image->dirty && f->image->id.len && !f->image->behind &&
	    f->registry->dyn->config.db && dyn_image_spare(f) == -ENOENT)
		f->image->behind = true;
}
