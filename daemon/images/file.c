/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of pseudo-images: the jailed helper writes each, complete or not at all. */
#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "images.h"
#include "pseudoimg.h"

enum { REFUSALS = 3, MEANWHILE_NS = 40000000 };

/* ---- who may read it ------------------------------------------------------------------------- */

/* The uid whose code it holds may read it. File systems without such lists do without. */
static void allow_reader(int fd, uint32_t uid)
{
	if (uid != geteuid())
		(void)base_reader_set(fd, uid, true);
}

static gid_t group = (gid_t)-1;

static void find_group(void)
{
	const struct group *g = getgrnam("dcpi");

	group = g ? g->gr_gid : group;
}

/* The group is looked up once, as that may ask other programs. */
static void give_to_group(int fd)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_group);
	if (group != (gid_t)-1)
		(void)!fchown(fd, (uid_t)-1, group);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* A call that may take long, in a thread of its own. */
struct image_task {
	int (*fn)(void *arg);
	void *arg;
	const struct pseudoimg_helper *helper;
	int wake_fd;
	pthread_t thread;
	sem_t done;
	bool is_done;
	int result;
};

static void *run(void *arg)
{
	struct image_task *t = arg;

	t->result = t->fn(t->arg);
	sem_post(&t->done);
	if (t->wake_fd >= 0)
		eventfd_write(t->wake_fd, 1);
	return NULL;
}

/* The daemon's signals are for its main thread. */
static bool start_thread(struct image_task *t)
{
	sigset_t all, old;
	bool started;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	started = pthread_create(&t->thread, NULL, run, t) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return started;
}

struct image_task *image_task_begin(const struct pseudoimg_helper *helper, int wake_fd,
				    int (*fn)(void *arg), void *arg)
{
	struct image_task *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	*t = (struct image_task){ .fn = fn, .arg = arg, .helper = helper, .wake_fd = wake_fd };
	sem_init(&t->done, 0, 0);
	if (start_thread(t))
		return t;
	sem_destroy(&t->done);
	free(t);
	return NULL;
}

/* False: the time is over, or a signal came. */
static bool wait_for(struct image_task *t, uint64_t ns)
{
	struct timespec until;

	ns = ns < MEANWHILE_NS ? ns : MEANWHILE_NS;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)ns;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return sem_clockwait(&t->done, CLOCK_MONOTONIC, &until) == 0;
}

bool image_task_is_done(struct image_task *t, unsigned int wait_ms)
{
	uint64_t end_ns = base_now_ns() + wait_ms * UINT64_C(1000000), now;

	t->is_done = t->is_done || wait_for(t, 0);
	while (!t->is_done && (now = base_now_ns()) < end_ns) {
		t->is_done = wait_for(t, end_ns - now);
		if (!t->is_done && t->helper->meanwhile)
			t->helper->meanwhile(t->helper->ctx);
	}
	return t->is_done;
}

int image_task_end(struct image_task *t)
{
	int r;

	while (!image_task_is_done(t, 1000))
		;
	pthread_join(t->thread, NULL);
	r = t->result;
	sem_destroy(&t->done);
	free(t);
	return r;
}

int image_file_wait(const struct pseudoimg_helper *helper, int (*fn)(void *arg), void *arg)
{
	struct image_task *t = NULL;

	if (helper && helper->meanwhile)
		t = image_task_begin(helper, -1, fn, arg);
	return t ? image_task_end(t) : fn(arg);
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
