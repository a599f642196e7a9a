/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of dbgdyn.h that begin and end contexts, and flush. Each keeps errno and cancellation as
 * the caller had them. Flushes wait for the daemon, which is reached by its socket.
 */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "dbgdyn_internal.h"

/* ---- the daemon's socket --------------------------------------------------------------------- */

static struct wire_doorbell bell(const struct dbgdyn_state *s)
{
	return (struct wire_doorbell){ .magic = WIRE_DOORBELL_MAGIC,
				       .version = WIRE_REGISTRY_VERSION,
				       .pid = s->pid };
}

bool dbgdyn_doorbell(const struct dbgdyn_state *s)
{
	const char *name = secure_getenv("DCPI_QUEUE");
	struct wire_doorbell b = bell(s);
	mqd_t q = mq_open(name ? name : WIRE_QUEUE_NAME, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

	if (q == (mqd_t)-1)
		return false;
	/* A full queue does not matter: whoever empties it looks at every client. */
	(void)mq_send(q, (const char *)&b, sizeof(b), 0);
	mq_close(q);
	return true;
}

static bool address_make(struct sockaddr_un *to)
{
	const char *dir = secure_getenv("DCPI_RUN");
	size_t dir_len;

	dir = dir ? dir : WIRE_RUN_DIR;
	dir_len = strlen(dir);
	if (dir_len + 1 + sizeof(WIRE_DYN_NAME) > sizeof(to->sun_path))
		return false;
	*to = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(to->sun_path, dir, dir_len);
	to->sun_path[dir_len] = '/';
	memcpy(to->sun_path + dir_len + 1, WIRE_DYN_NAME, sizeof(WIRE_DYN_NAME));
	return true;
}

static enum dbgdyn_reach reach_of(int error)
{
	switch (error) {
	case 0:
	case EAGAIN: /* its backlog is full */
	case EINPROGRESS:
		return DBGDYN_LIVE;
	case ECONNREFUSED:
		return DBGDYN_REFUSED;
	default:
		return DBGDYN_ABSENT;
	}
}

/* The descriptor goes along while it is still ours: applications close what they do not know. */
static bool send_registry(int sock, const struct dbgdyn_state *s)
{
	const struct dbgdyn_memory *m = &s->memory;
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct wire_doorbell b = bell(s);
	struct iovec part = { .iov_base = &b, .iov_len = sizeof(b) };
	struct msghdr msg = { .msg_iov = &part, .msg_iovlen = 1 };
	bool whole = dbgdyn_memory_same(m->fd, m->dev, m->ino);

	if (whole) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &m->fd, sizeof(int));
	}
	return sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(b) && whole;
}

enum dbgdyn_reach dbgdyn_hand_over(struct dbgdyn_state *s)
{
	struct stat st;
	struct sockaddr_un to;
	enum dbgdyn_reach reach;
	int sock;

	/* Where there is no daemon, this saves making a socket: a quarter of what begin would cost.
	 */
	if (!address_make(&to) || stat(to.sun_path, &st) < 0)
		return DBGDYN_ABSENT;
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0)
		return DBGDYN_ABSENT;
	reach = reach_of(connect(sock, (void *)&to, sizeof(to)) < 0 ? errno : 0);
	if (reach == DBGDYN_LIVE && send_registry(sock, s) && !dbgdyn_attached(s))
		__atomic_store_n(&s->handed, 1, __ATOMIC_RELAXED);
	close(sock);
	return reach;
}

/* ---- waiting for a flush --------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
	struct timespec now = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Ask for a flush; the number of the request, or 0 where the context was ended meanwhile. */
static uint32_t request(struct dbgdyn_state *s, uint32_t index, bool end)
{
	struct wire_facility *f = &s->facilities[index];
	uint32_t want;

	if (!s->open[index])
		return 0;
	want = s->flush_wanted + 1 ? s->flush_wanted + 1 : 1;
	s->flush_wanted = want;
	if (end) {
		__atomic_store_n(&s->open[index], 0, __ATOMIC_RELEASE);
		f->end_wanted = want;
		__atomic_store_n(&f->state, WIRE_FACILITY_ENDED, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&s->reg->flush_wanted, want, __ATOMIC_RELEASE);
	return want;
}

static bool answered(const struct dbgdyn_state *s, uint32_t want, int *result)
{
	uint32_t done = __atomic_load_n(&s->reg->flush_done, __ATOMIC_ACQUIRE);

	/* 0 is no answer yet, so that the first request is not taken for one long past. */
	if (!done || (int32_t)(done - want) < 0)
		return false;
	*result = __atomic_load_n(&s->reg->flush_status, __ATOMIC_ACQUIRE) ? DBGDYN_EIO : DBGDYN_OK;
	return true;
}

/* A daemon has met the request: it will answer, however long that takes. */
static bool is_met(const struct dbgdyn_state *s, uint32_t want)
{
	uint32_t seen = __atomic_load_n(&s->reg->flush_seen, __ATOMIC_ACQUIRE);

	return seen && (int32_t)(seen - want) >= 0;
}

/*
 * Wait for the answer to @want. A daemon listens, or has met the request: as long as the caller
 * allows. One has attached, but is out of sight, and may have been killed since: so long as it
 * would take to meet it. There is only a queue, perhaps left behind by one that was killed: one
 * second for its reader to attach. Its socket refuses, or there is nothing: not at all.
 */
static int wait_answer(struct dbgdyn_state *s, uint32_t want, uint64_t timeout_ns, bool queue)
{
	uint64_t start = now_ns(), probed = 0, nap = DBGDYN_POLL_MIN_NS;
	enum dbgdyn_reach reach = DBGDYN_ABSENT;
	int result;

	while (!answered(s, want, &result)) {
		uint64_t now = now_ns(), grace_ms = queue ? DBGDYN_ATTACH_MS : 0;

		if (!probed || now - probed >= DBGDYN_REPROBE_MS * 1000000ull) {
			reach = dbgdyn_hand_over(s);
			probed = now;
		}
		bool attached = dbgdyn_attached(s), known = reach == DBGDYN_LIVE || is_met(s, want);

		if (attached)
			grace_ms = DBGDYN_SEEN_MS;
		if (reach == DBGDYN_REFUSED || (!known && now - start >= grace_ms * 1000000))
			return DBGDYN_ENODAEMON;
		if (now - start >= timeout_ns)
			return known || attached ? DBGDYN_ETIMEDOUT : DBGDYN_ENODAEMON;
		nanosleep(&(struct timespec){ .tv_nsec = (long)nap }, NULL);
		nap = nap * 3 / 2 < DBGDYN_POLL_MAX_NS ? nap * 3 / 2 : DBGDYN_POLL_MAX_NS;
	}
	return result;
}

/* Flush, or with @end close context @index first, and wait. */
static int dbgdyn_flush_wait(struct dbgdyn_state *s, uint32_t index, bool end)
{
	uint32_t want = 0;
	bool locked = dbgdyn_lock(s);

	if (locked) {
		want = request(s, index, end);
		dbgdyn_unlock(s);
	} else if (end) {
		__atomic_store_n(&s->open[index], 0, __ATOMIC_RELEASE);
		__atomic_store_n(&s->facilities[index].state, WIRE_FACILITY_ENDED,
				 __ATOMIC_RELEASE);
	}
	if (!locked)
		return DBGDYN_ETIMEDOUT;
	if (!want)
		return DBGDYN_EREFUSED;
	if (s->quiet[index])
		return DBGDYN_EINPROGRESS;
	return wait_answer(s, want, s->timeout_ms[index] * 1000000ull, dbgdyn_doorbell(s));
}

/* ---- the calls ------------------------------------------------------------------------------- */

/* The caller's state that our system calls would change: errno, and the points of cancellation. */
struct caller {
	int error;
	int cancel;
};

static struct caller enter(void)
{
	struct caller c = { .error = errno };

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &c.cancel);
	return c;
}

static int leave(struct caller c, int result)
{
	pthread_setcancelstate(c.cancel, &c.cancel);
	errno = c.error;
	return result;
}

const char *dbgdyn_strerror(int result)
{
	static const char *const text[] = {
		"success",
		"invalid argument",
		"no memory or descriptor for the registry",
		"no daemon answers",
		"the daemon did not finish in time",
		"a bound is reached",
		"not an open context of this process",
		"the daemon could not write the image",
		"asked for, not waited for",
	};

	if (result > 0 || result < DBGDYN_EINPROGRESS)
		return "unknown result";
	return text[-result];
}

/* NULL and 0 is no range; anything else must be one. */
static bool first_range_good(const void *base, size_t len)
{
	return (!base && !len) || dbgdyn_range_good(base, len);
}

static bool options_good(const struct dbgdyn_options *o)
{
	/* A program compiled with an earlier, shorter struct gets the defaults for the rest. */
	if (!o)
		return true;
	if (o->size < offsetof(struct dbgdyn_options, registry_fd) ||
	    o->flags & ~(DBGDYN_NO_SYSCALLS | DBGDYN_REGISTRY_FD))
		return false;
	if (o->flags & DBGDYN_REGISTRY_FD && (o->size < sizeof(*o) || o->registry_fd < 0))
		return false;
	return first_range_good(o->code_base, o->code_len) &&
	       first_range_good(o->dst_base, o->dst_len);
}

/*
 * Have the daemon hold the descriptor. Where no socket is to be seen there is mostly no daemon, and
 * to look for its queue is a tenth of what begin costs; one elsewhere finds the marker.
 */
static void announce(struct dbgdyn_state *s)
{
	bool known = dbgdyn_attached(s) || __atomic_load_n(&s->handed, __ATOMIC_RELAXED);

	if (known || dbgdyn_hand_over(s) != DBGDYN_ABSENT)
		dbgdyn_doorbell(s);
}

static void options_take(struct dbgdyn_state *s, uint32_t index, const struct dbgdyn_options *opts)
{
	s->timeout_ms[index] = opts && opts->timeout_ms ? opts->timeout_ms : DBGDYN_TIMEOUT_MS;
	if (opts && opts->flags & DBGDYN_NO_SYSCALLS) {
		s->quiet[index] = 1;
		__atomic_store_n(&s->no_syscalls, 1, __ATOMIC_RELAXED);
	}
}

/* With the lock held: a facility slot with its first ranges (len 0: none), all or nothing. */
static int facility_add(struct dbgdyn_state *s, const char *name, size_t name_len,
			const struct dbgdyn_options *opts, uint32_t *index)
{
	struct wire_facility *f = &s->facilities[s->nr_facilities];
	uint32_t nr_ranges = opts ? !!opts->code_len + !!opts->dst_len : 0;

	if (s->nr_facilities == WIRE_NR_FACILITIES || WIRE_NR_RANGES - s->nr_ranges < nr_ranges)
		return DBGDYN_EFULL;
	*index = s->nr_facilities;
	memcpy(f->name, name, name_len);
	f->name_len = (uint32_t)name_len;
	options_take(s, *index, opts);
	__atomic_store_n(&f->state, WIRE_FACILITY_OPEN, __ATOMIC_RELEASE);
	__atomic_store_n(&s->reg->nr_facilities, ++s->nr_facilities, __ATOMIC_RELEASE);
	if (opts) {
		dbgdyn_range_add(s, *index, WIRE_RANGE_CODE, (uintptr_t)opts->code_base,
				 opts->code_len);
		dbgdyn_range_add(s, *index, WIRE_RANGE_DST, (uintptr_t)opts->dst_base,
				 opts->dst_len);
	}
	__atomic_store_n(&s->open[*index], 1, __ATOMIC_RELEASE);
	return DBGDYN_OK;
}

static int begin(const char *name, size_t name_len, const struct dbgdyn_options *opts,
		 uint64_t *context)
{
	struct dbgdyn_state *s = dbgdyn_state_get(true);
	uint32_t index;
	bool first;
	int r;

	if (!s)
		return DBGDYN_ENOMEM;
	if (!dbgdyn_lock(s))
		return DBGDYN_EFULL;
	first = !s->generation;
	r = dbgdyn_registry_open(s, opts);
	if (r == DBGDYN_OK)
		r = facility_add(s, name, name_len, opts, &index);
	if (r == DBGDYN_OK) {
		if (first)
			dbgdyn_memory_publish(&s->memory);
		*context = dbgdyn_context_make(s, index);
	}
	dbgdyn_unlock(s);
	if (r == DBGDYN_OK)
		announce(s);
	return r;
}

int dbgdyn_begin(const char *facility, size_t facility_len, const struct dbgdyn_options *opts,
		 dbgdyn_context *context)
{
	if (context)
		context->id = 0;
	if (!facility || !facility_len || facility_len > WIRE_FACILITY_NAME || !context ||
	    !options_good(opts))
		return DBGDYN_EINVAL;
	struct caller c = enter();

	return leave(c, begin(facility, facility_len, opts, &context->id));
}

int dbgdyn_add(dbgdyn_context context, enum dbgdyn_kind kind, const void *base, size_t len)
{
	uint32_t index;
	struct dbgdyn_state *s = dbgdyn_context_find(context.id, &index);
	int r;

	if (!s)
		return DBGDYN_EREFUSED;
	if ((kind != DBGDYN_CODE && kind != DBGDYN_DST) || !dbgdyn_range_good(base, len))
		return DBGDYN_EINVAL;
	struct caller c = enter();

	if (!dbgdyn_lock(s))
		return leave(c, DBGDYN_EFULL);
	r = DBGDYN_EREFUSED;
	if (s->open[index])
		r = dbgdyn_range_add(s, index,
				     kind == DBGDYN_DST ? WIRE_RANGE_DST : WIRE_RANGE_CODE,
				     (uintptr_t)base, len);
	dbgdyn_unlock(s);
	if (r == DBGDYN_OK)
		dbgdyn_doorbell(s);
	return leave(c, r);
}

int dbgdyn_changed(const struct dbgdyn_state *s, int result)
{
	if (result > 0) {
		struct caller c = enter();

		dbgdyn_doorbell(s);
		result = leave(c, DBGDYN_OK);
	}
	return result;
}

int dbgdyn_registry_make(void)
{
	struct caller c = enter();
	struct dbgdyn_layout l;
	int fd = -1;

	if (dbgdyn_layout_make(&l, dbgdyn_layout_allowed()))
		fd = dbgdyn_memory_make(l.total_len);
	if (fd >= 0 && !dbgdyn_memory_seal(fd)) {
		close(fd);
		fd = -1;
	}
	return leave(c, fd < 0 ? DBGDYN_ENOMEM : fd);
}

static int flush(dbgdyn_context context, bool end)
{
	uint32_t index;
	struct dbgdyn_state *s = dbgdyn_context_find(context.id, &index);

	if (!s)
		return DBGDYN_EREFUSED;
	struct caller c = enter();

	return leave(c, dbgdyn_flush_wait(s, index, end));
}

int dbgdyn_flush(dbgdyn_context context)
{
	return flush(context, false);
}

int dbgdyn_end(dbgdyn_context context)
{
	return flush(context, true);
}
