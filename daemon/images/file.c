/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of pseudo-images: the jailed helper writes each, complete or not at all. */
#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "images.h"
#include "pseudoimg.h"

/* Deadline of a helper, and of each megabyte of its job: several times the need on a quiet host. */
enum { HELPER_TIMEOUT_MS = 5000, HELPER_MB_MS = 400, REFUSALS = 3 };
enum { MEANWHILE_NS = 40000000 };
/* ---- who may read it ------------------------------------------------------------------------- */

/* The uid whose code it holds may read it. File systems without such lists do without. */
static void allow_reader(int fd, uint32_t uid)
{
	if (uid != geteuid())
		(void)base_reader_set(fd, uid, true);
}

/* The group is looked up once, as that may ask other programs. */
static void give_to_group(int fd)
{
	static bool known;
	static gid_t group = (gid_t)-1;

	if (!known) {
		const struct group *g = getgrnam("dcpi");

		known = true;
		group = g ? g->gr_gid : group;
	}
	if (group != (gid_t)-1)
		(void)!fchown(fd, (uid_t)-1, group);
}

/* ---- writing ------------------------------------------------------------------------------- */

unsigned int image_file_timeout_ms(uint64_t len)
{
	return HELPER_TIMEOUT_MS + (unsigned int)(len >> 20) * HELPER_MB_MS;
}

/* A call that may wait for the disk runs in a thread of its own. */
struct task {
	int (*fn)(void *arg);
	void *arg;
	sem_t done;
	int result;
};

static void *run(void *arg)
{
	struct task *t = arg;

	t->result = t->fn(t->arg);
	sem_post(&t->done);
	return NULL;
}

/* False: the time is over, or a signal came. */
static bool is_done(struct task *t)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += MEANWHILE_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return sem_clockwait(&t->done, CLOCK_MONOTONIC, &until) == 0;
}

/* The daemon's signals are for its main thread. */
static bool start_thread(struct task *t, pthread_t *thread)
{
	sigset_t all, old;
	bool started;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	started = pthread_create(thread, NULL, run, t) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return started;
}

int image_file_wait(const struct pseudoimg_helper *helper, int (*fn)(void *arg), void *arg)
{
	struct task t = { .fn = fn, .arg = arg };
	pthread_t thread;

	if (!helper || !helper->meanwhile)
		return fn(arg);
	sem_init(&t.done, 0, 0);
	if (!start_thread(&t, &thread)) {
		sem_destroy(&t.done);
		return fn(arg);
	}
	while (!is_done(&t))
		helper->meanwhile(helper->ctx);
	pthread_join(thread, NULL);
	sem_destroy(&t.done);
	return t.result;
}

struct creation {
	struct base_file *file;
	int dir_fd;
	const char *name;
	const uint32_t *reader;
	struct base_err *err;
};

static int create(void *arg)
{
	const struct creation *c = arg;
	int r = base_file_create(c->file, c->dir_fd, c->name, 0640, c->err);

	if (r < 0)
		return r;
	/* The umask may have taken from the mode; owner and list come before it can be seen. */
	if (fchmod(c->file->fd, 0640) < 0)
		r = base_fail_errno(c->err, -errno, "cannot set the mode of '%s'", c->name);
	give_to_group(c->file->fd);
	if (c->reader)
		allow_reader(c->file->fd, *c->reader);
	if (r < 0)
		base_file_abort(c->file);
	return r;
}

int image_file_create(struct base_file *file, int dir_fd, const char *name,
		      const struct pseudoimg_helper *helper, const uint32_t *reader,
		      struct base_err *err)
{
	struct creation c = { file, dir_fd, name, reader, err };

	return image_file_wait(helper, create, &c);
}

struct commit {
	struct base_file *file;
	struct base_err *err;
};

static int commit(void *arg)
{
	const struct commit *c = arg;

	return base_file_commit(c->file, c->err);
}

int image_file_commit(struct base_file *file, const struct pseudoimg_helper *helper,
		      struct base_err *err)
{
	struct commit c = { file, err };

	return image_file_wait(helper, commit, &c);
}

int image_file_put(int dir_fd, const char *name, const struct pseudoimg_helper *helper,
		   const uint32_t *reader, int job, struct pseudoimg_result *result,
		   struct base_err *err)
{
	struct base_file file = { 0 };
	struct stat st = { 0 };
	int r = image_file_create(&file, dir_fd, name, helper, reader, err);

	if (r < 0)
		return r;
	if (fstat(job, &st) < 0)
		st.st_size = 0;
	r = pseudoimg_run_helper(helper, job, file.fd, image_file_timeout_ms((uint64_t)st.st_size),
				 result, err);
	if (r == 0)
		r = image_file_commit(&file, helper, err);
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
