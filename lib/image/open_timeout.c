/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening files where other machines and processes may serve them (NFS, FUSE): who does not answer
 * holds the caller, and nothing but the end of the process frees it. So a thread of its own opens;
 * where that takes too long it is left behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "image_internal.h"

/* For the first that does not answer; whoever comes after one may be on the same file system. */
enum { PATIENCE_MS = 5000, PATIENCE_AFTER_MS = 300 };

struct job {
	pthread_mutex_t lock;
	pthread_cond_t done_cond;
	char *path;
	uint64_t len;
	int result;
	bool done, left; /* set by the thread; set by the waiting caller */
};

static pthread_mutex_t patience_lock = PTHREAD_MUTEX_INITIALIZER;
static long patience_ms = PATIENCE_MS;

static void job_free(struct job *job)
{
	pthread_cond_destroy(&job->done_cond);
	pthread_mutex_destroy(&job->lock);
	free(job->path);
	free(job);
}

int image_regular_open(int dir_fd, const char *path, uint64_t *len)
{
	struct stat st;
	int fd = base_regular_open(dir_fd, path, &st);

	if (fd < 0)
		return fd == -EISDIR ? -EINVAL : fd;
	*len = (uint64_t)st.st_size;
	return fd;
}

/* Whether it can be read shows only where it is read: at its start, and where its tables end. */
static int open_and_try(const char *path, uint64_t *len)
{
	int fd = image_regular_open(AT_FDCWD, path, len);
	char byte;

	if (fd >= 0 && *len &&
	    (pread(fd, &byte, 1, 0) < 0 || pread(fd, &byte, 1, (off_t)*len - 1) < 0)) {
		int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

static void *run(void *arg)
{
	struct job *job = arg;
	int r = open_and_try(job->path, &job->len);
	bool left;

	pthread_mutex_lock(&job->lock);
	job->result = r;
	job->done = true;
	left = job->left;
	pthread_cond_signal(&job->done_cond);
	pthread_mutex_unlock(&job->lock);
	if (left) {
		if (r >= 0)
			close(r);
		job_free(job);
	}
	return NULL;
}

static struct job *job_new(const char *path)
{
	struct job *job = calloc(1, sizeof(*job));
	pthread_condattr_t attr;

	if (!job)
		return NULL;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&job->lock, NULL);
	pthread_cond_init(&job->done_cond, &attr);
	pthread_condattr_destroy(&attr);
	job->path = strdup(path);
	if (job->path)
		return job;
	job_free(job);
	return NULL;
}

static struct timespec deadline(void)
{
	struct timespec at;
	long ms;

	pthread_mutex_lock(&patience_lock);
	ms = patience_ms;
	pthread_mutex_unlock(&patience_lock);
	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += ms / 1000;
	at.tv_nsec += ms % 1000 * 1000000;
	if (at.tv_nsec >= 1000000000) {
		at.tv_sec++;
		at.tv_nsec -= 1000000000;
	}
	return at;
}

/* Frees the job, or leaves it to its thread. */
static int wait_for(struct job *job, uint64_t *len)
{
	struct timespec until = deadline();
	int r = 0;

	pthread_mutex_lock(&job->lock);
	while (!job->done && r == 0)
		r = pthread_cond_timedwait(&job->done_cond, &job->lock, &until);
	if (!job->done) {
		job->left = true;
		pthread_mutex_unlock(&job->lock);
		pthread_mutex_lock(&patience_lock);
		patience_ms = PATIENCE_AFTER_MS;
		pthread_mutex_unlock(&patience_lock);
		return -ETIMEDOUT;
	}
	pthread_mutex_unlock(&job->lock);
	*len = job->len;
	r = job->result;
	job_free(job);
	return r;
}

int image_open_timeout(const char *path, uint64_t *len)
{
	struct job *job = job_new(path);
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	if (!job)
		return -ENOMEM;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	r = pthread_create(&thread, &attr, run, job);
	pthread_attr_destroy(&attr);
	if (r == 0)
		return wait_for(job, len);
	job_free(job);
	return image_regular_open(AT_FDCWD, path, len);
}
