/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of pseudo-images: the jailed helper writes each, complete or not at all. */
#include <errno.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images.h"
#include "pseudoimg.h"

/* Of each helper, and for each megabyte of its job: several times what that takes on a quiet host.
 */
enum { HELPER_TIMEOUT_MS = 5000, HELPER_MB_MS = 400, REFUSALS = 3 };
/* ---- who may read it ------------------------------------------------------------------------- */

/* The uid whose code it holds may read it. File systems without such lists do without. */
static void allow_reader(int fd, uint32_t uid)
{
	if (uid != geteuid())
		(void)base_reader_set(fd, uid, true);
}

static void give_to_group(int fd)
{
	const struct group *g = getgrnam("dcpi");

	if (g)
		(void)!fchown(fd, (uid_t)-1, g->gr_gid);
}

/* ---- writing ------------------------------------------------------------------------------- */

unsigned int image_file_timeout_ms(uint64_t len)
{
	return HELPER_TIMEOUT_MS + (unsigned int)(len >> 20) * HELPER_MB_MS;
}

int image_file_create(struct base_file *file, int dir_fd, const char *name, const uint32_t *reader,
		      struct base_err *err)
{
	int r = base_file_create(file, dir_fd, name, 0640, err);

	if (r < 0)
		return r;
	/* The umask may have taken from the mode; owner and list come before it can be seen. */
	if (fchmod(file->fd, 0640) < 0)
		r = base_fail_errno(err, -errno, "cannot set the mode of '%s'", name);
	give_to_group(file->fd);
	if (reader)
		allow_reader(file->fd, *reader);
	if (r < 0)
		base_file_abort(file);
	return r;
}

int image_file_put(int dir_fd, const char *name, const char *helper, const uint32_t *reader,
		   int job, struct pseudoimg_result *result, struct base_err *err)
{
	struct base_file file = { 0 };
	struct stat st = { 0 };
	int r = image_file_create(&file, dir_fd, name, reader, err);

	if (r < 0)
		return r;
	if (fstat(job, &st) < 0)
		st.st_size = 0;
	r = pseudoimg_run_helper(helper, job, file.fd, image_file_timeout_ms((uint64_t)st.st_size),
				 result, err);
	if (r == 0)
		r = base_file_commit(&file, err);
	base_file_abort(&file);
	return r;
}

bool image_file_refusal(int r)
{
	return r <= -DCPI_ERROR_BASE || r == -ETIMEDOUT || r == -EINVAL;
}

/* Three times, for a helper may also be killed or slow because the machine is in need. */
bool image_file_give_up(struct image *img, uint32_t *nr_refused)
{
	if (++*nr_refused < REFUSALS)
		return false;
	img->refused = true;
	base_log(BASE_LOG_WARN, "'%s' is given up; its samples go to '%s'", img->stem,
		 account_bucket_name(ACCOUNT_BUCKET_REFUSED));
	return true;
}
