/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring that the agent shares with the daemon: made, and written in signal handlers. */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

uint64_t agent_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int agent_orders_parse(const char *text, struct agent_orders *out)
{
	unsigned long long units;
	char *end;

	out->period_ns = strtoull(text, &end, 10);
	if (end == text || *end++ != ':')
		return -EINVAL;
	text = end;
	units = strtoull(text, &end, 10);
	if (end == text || *end++ != ':' || *end != '/' || strlen(end) >= sizeof(out->folder))
		return -EINVAL;
	if (units < INPROCESS_UNITS_MIN || units > INPROCESS_UNITS_MAX || units & (units - 1))
		return -EINVAL;
	out->nr_units = (uint32_t)units;
	strcpy(out->folder, end);
	return 0;
}

/* ---- making ---------------------------------------------------------------------------------- */

/*
 * All of it is there before it is used: a full file system must be an error here, not a SIGBUS
 * later. Above RLIMIT_FSIZE the attempt alone would be a signal.
 */
static int make_file(const char *path, size_t len, void **out)
{
	struct rlimit limit;
	int r, fd;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < len)
		return -EFBIG;
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = -posix_fallocate(fd, 0, (off_t)len);
	if (r == 0) {
		*out = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		r = *out == MAP_FAILED ? -errno : 0;
	}
	if (r < 0)
		unlink(path);
	close(fd);
	return r;
}

/* Empty, it needs no room; and it is made by calls that a ring needs too (seccomp filters). */
static void tell_failure(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
}

static uint64_t own_space(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) < 0 ? 0 : (uint64_t)st.st_ino;
}

static void fill_head(struct inprocess_head *h, const struct agent_orders *orders,
		      const struct inprocess_head *parent, uint64_t now)
{
	h->version = INPROCESS_VERSION;
	h->nr_units = orders->nr_units;
	h->pid = getpid();
	h->pid_space = own_space();
	h->start_ns = now;
	h->period_ns = orders->period_ns;
	h->born = parent ? INPROCESS_FORK : INPROCESS_EXEC;
	if (parent) {
		h->parent_pid = parent->pid;
		h->parent_space = parent->pid_space;
	}
	prctl(PR_GET_NAME, h->comm);
	__atomic_store_n(&h->magic, INPROCESS_MAGIC, __ATOMIC_RELEASE);
}

/* The time makes it unique where two PID namespaces have the same number. */
static void fill_path(char *path, size_t len, const char *folder, const char *prefix, uint64_t now)
{
	snprintf(path, len, "%s/%s%d.%llx", folder, prefix, getpid(), (unsigned long long)now);
}

int agent_ring_open(const struct agent_orders *orders, const struct inprocess_head *parent,
		    struct agent_ring *out)
{
	size_t len = INPROCESS_HEAD_LEN + orders->nr_units * sizeof(struct inprocess_unit);
	char path[sizeof(orders->folder) + 64];
	uint64_t now = agent_now_ns();
	void *at = NULL;
	int r;

	*out = (struct agent_ring){ 0 };
	fill_path(path, sizeof(path), orders->folder, INPROCESS_PREFIX, now);
	r = make_file(path, len, &at);
	if (r < 0) {
		fill_path(path, sizeof(path), orders->folder, INPROCESS_FAILED, now);
		tell_failure(path);
		return r;
	}
	/* A child that forked has its own; no dump is about us. */
	madvise(at, len, MADV_DONTFORK);
	madvise(at, len, MADV_DONTDUMP);
	out->head = at;
	out->units = (struct inprocess_unit *)((uint8_t *)at + INPROCESS_HEAD_LEN);
	out->mask = orders->nr_units - 1;
	fill_head(out->head, orders, parent, now);
	return 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Position of @nr units that are ours now; false: there is no room. */
static bool reserve(const struct agent_ring *r, uint32_t nr, uint64_t *pos)
{
	struct inprocess_head *h = r->head;
	uint64_t head = __atomic_load_n(&h->head, __ATOMIC_RELAXED), tail;

	do {
		tail = __atomic_load_n(&h->tail, __ATOMIC_ACQUIRE);
		if (head + nr - tail > (uint64_t)r->mask + 1)
			return false;
	} while (!__atomic_compare_exchange_n(&h->head, &head, head + nr, false, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	*pos = head;
	return true;
}

/* Bytes behind the first unit, over the ring's end. */
static void put_bytes(const struct agent_ring *r, uint64_t pos, size_t at, const void *from,
		      size_t len)
{
	size_t ring_len = ((size_t)r->mask + 1) * sizeof(*r->units);
	size_t to = ((size_t)(pos & r->mask) * sizeof(*r->units) + at) & (ring_len - 1);
	size_t first = len < ring_len - to ? len : ring_len - to;

	if (!len)
		return;
	memcpy((uint8_t *)r->units + to, from, first);
	memcpy(r->units, (const uint8_t *)from + first, len - first);
}

bool agent_ring_put(const struct agent_ring *r, const struct inprocess_unit *unit, const void *rest,
		    size_t rest_len, const void *more, size_t more_len)
{
	size_t len = sizeof(*unit) + rest_len + more_len;
	uint32_t nr = (uint32_t)((len + sizeof(*unit) - 1) / sizeof(*unit));
	struct inprocess_unit *to, first = *unit;
	uint64_t pos;

	if (nr > r->mask || !reserve(r, nr, &pos))
		return false;
	to = &r->units[pos & r->mask];
	put_bytes(r, pos, sizeof(first), rest, rest_len);
	put_bytes(r, pos, sizeof(first) + rest_len, more, more_len);
	to->time_ns = first.time_ns;
	to->addr = first.addr;
	to->tid = first.tid;
	to->type = first.type;
	to->nr = (uint16_t)nr;
	__atomic_store_n(&to->seq, pos + 1, __ATOMIC_RELEASE);
	return true;
}
