/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients hand their registries over by a socket, and ring a doorbell, or are seen by a marker;
 * each registry is bound to the process that it is of. */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "closer.h"
#include "jit_internal.h"
#include "reader_internal.h"

/* The bound of one call, so that a crowd at the socket does not hold up sampling. */
enum { TAKE_MAX = 256 };

/* How long a connection may stay silent, and how many messages one look at the queue takes. */
#define SILENCE_NS 1000000000ull
enum { QUEUE_DRAIN_MAX = 1024, QUEUE_MESSAGES = 10, BACKLOG = 4096 };

static int watch(struct dyn_intake *in, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(in->epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

/* ---- the socket ------------------------------------------------------------------------------ */

static bool somebody_listens(const struct sockaddr_un *to)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool yes;

	if (fd < 0)
		return false;
	yes = connect(fd, (const void *)to, sizeof(*to)) == 0 || errno == EAGAIN;
	close(fd);
	return yes;
}

static int open_socket(struct dyn_intake *in, const char *run_dir, struct base_err *err)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int r;

	if (snprintf(in->socket_path, sizeof(in->socket_path), "%s/%s", run_dir, WIRE_DYN_NAME) >=
	    (int)sizeof(to.sun_path))
		return base_fail(err, -ENAMETOOLONG, "cannot make a socket in '%s': name too long",
				 run_dir);
	strcpy(to.sun_path, in->socket_path);
	in->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (in->listener < 0)
		return base_fail_errno(err, -errno, "cannot make a socket");
	r = bind(in->listener, (void *)&to, sizeof(to)) < 0 ? -errno : 0;
	if (r == -EADDRINUSE && somebody_listens(&to))
		return base_fail(err, -DCPI_EBUSY, "cannot listen on '%s': another daemon does",
				 in->socket_path);
	if (r == -EADDRINUSE) {
		unlink(in->socket_path);
		r = bind(in->listener, (void *)&to, sizeof(to)) < 0 ? -errno : 0;
	}
	if (r == 0) {
		in->own_socket = true;
		/* Anyone may hand over a registry; who it is, the kernel says. */
		if (chmod(in->socket_path, 0666) < 0 || listen(in->listener, BACKLOG) < 0)
			r = -errno;
	}
	if (r == 0)
		r = watch(in, in->listener);
	if (r < 0)
		base_fail_errno(err, r, "cannot listen on '%s'", in->socket_path);
	return r;
}

/* ---- the queue ------------------------------------------------------------------------------- */

static int open_queue_once(struct dyn_intake *in)
{
	struct mq_attr attr = { .mq_maxmsg = QUEUE_MESSAGES,
				.mq_msgsize = sizeof(struct wire_doorbell) };
	mqd_t q = mq_open(in->queue_name, O_CREAT | O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0622, &attr);
	struct stat st;
	int r = 0;

	if (q == (mqd_t)-1)
		return -errno;
	if (fstat(q, &st) < 0)
		r = -errno;
	else if (st.st_uid != geteuid())
		r = -EEXIST; /* made by somebody who can take it away */
	else if (flock(q, LOCK_EX | LOCK_NB) < 0)
		r = -DCPI_EBUSY;
	/* The umask may have taken from the mode. */
	else if (fchmod(q, 0622) < 0 || mq_getattr(q, &attr) < 0)
		r = -errno;
	if (r < 0) {
		mq_close(q);
		return r;
	}
	in->queue_msg_len = (size_t)attr.mq_msgsize;
	return q;
}

/* The doorbell is a convenience: without it clients are seen by their marker and at each drain. */
static void open_queue(struct dyn_intake *in, const char *name)
{
	int q;

	snprintf(in->queue_name, sizeof(in->queue_name), "%s", name);
	q = open_queue_once(in);
	if ((q == -EEXIST || q == -EACCES) && geteuid() == 0 && mq_unlink(name) == 0)
		q = open_queue_once(in);
	if (q >= 0 && watch(in, q) < 0) {
		mq_close(q);
		q = -EINVAL;
	}
	if (q < 0) {
		base_log(BASE_LOG_WARN, "going on without the message queue '%s': %s", name,
			 q == -EEXIST ? "it belongs to somebody else" : base_strerror(q));
		return;
	}
	in->queue = q;
}

bool dyn_intake_drain_queue(struct dyn_intake *in)
{
	char small[256], *text = small;
	size_t len = sizeof(small);
	bool rang = false;

	if (in->queue < 0)
		return false;
	if (in->queue_msg_len > len) {
		len = in->queue_msg_len;
		text = malloc(len);
	}
	for (int i = 0; text && i < QUEUE_DRAIN_MAX; i++) {
		if (mq_receive(in->queue, text, len, NULL) < 0)
			break;
		rang = true;
	}
	if (text != small)
		free(text);
	return rang;
}

/* ---- both ------------------------------------------------------------------------------------ */

int dyn_intake_open(struct dyn_intake *in, const char *run_dir, const char *queue_name,
		    struct base_err *err)
{
	struct base_err why = { 0 };
	int r;

	*in = (struct dyn_intake){ .epoll = -1, .listener = -1, .queue = -1, .spare = -1 };
	if (!run_dir && !queue_name)
		return 0;
	in->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (in->epoll < 0)
		return base_fail_errno(err, -errno, "cannot make an epoll descriptor");
	in->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	r = run_dir ? open_socket(in, run_dir, &why) : 0;
	if (r == -DCPI_EBUSY) {
		base_log(BASE_LOG_WARN, "going on without hand-overs: %s", why.text);
		close(in->listener);
		in->listener = -1;
		r = 0;
	}
	if (r < 0) {
		base_fail(err, r, "%s", why.text);
		dyn_intake_close(in);
		return r;
	}
	if (queue_name)
		open_queue(in, queue_name);
	return 0;
}

void dyn_intake_close(struct dyn_intake *in)
{
	for (size_t i = 0; i < in->nr_waiting; i++)
		closer_close(in->waiting[i].fd);
	if (in->own_socket)
		unlink(in->socket_path);
	/* Connections that were not accepted are closed with it. */
	closer_close(in->listener);
	if (in->queue >= 0) {
		mq_unlink(in->queue_name);
		mq_close(in->queue);
	}
	if (in->spare >= 0)
		close(in->spare);
	if (in->epoll >= 0)
		close(in->epoll);
	*in = (struct dyn_intake){ .epoll = -1, .listener = -1, .queue = -1, .spare = -1 };
}

/* 0 if @fd is a memfd sealed against shrinking, and readable and writable; else -EPERM. */
static int is_sealed(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS), flags = fcntl(fd, F_GETFL);

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || flags < 0 || (flags & O_ACCMODE) != O_RDWR)
		return -EPERM;
	return 0;
}

/* Since Linux 6.5; not in every libc's headers. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/*
 * The process that connected, and no other that has its number since. An older kernel tells the
 * number alone: the process that has it now is that one, or it is not as @who says.
 */
static int peer_pidfd(int sock, const struct ucred *who)
{
	socklen_t len = sizeof(int);
	int fd = -1;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &fd, &len) == 0)
		return fd;
	return errno == ENOPROTOOPT ? (int)syscall(SYS_pidfd_open, who->pid, 0) : -1;
}

/* Take the message of a connection: a descriptor; -EAGAIN: nothing yet; else it is of no use. */
static int hear(int sock, struct dyn_peer *peer)
{
	struct wire_doorbell bell;
	struct ucred who;
	socklen_t len = sizeof(who);
	int fd, r;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0)
		return -errno;
	if (closer_is_held(who.uid))
		return -EDQUOT;
	r = reader_receive_from(sock, &bell, sizeof(bell), &fd, closer_close_sent, who.uid);
	if (r < 0)
		return r;
	if (fd < 0)
		return -ENODATA;
	if (who.pid <= 0 || bell.magic != WIRE_DOORBELL_MAGIC || is_sealed(fd) < 0) {
		closer_close_sent(fd, who.uid);
		return -EPERM;
	}
	*peer = (struct dyn_peer){ who.pid, who.uid, peer_pidfd(sock, &who) };
	return fd;
}

static void drop_waiting(struct dyn_intake *in, size_t i)
{
	epoll_ctl(in->epoll, EPOLL_CTL_DEL, in->waiting[i].fd, NULL);
	closer_close(in->waiting[i].fd);
	in->waiting[i] = in->waiting[--in->nr_waiting];
}

/* Peers that said nothing at first. */
static int next_waiting(struct dyn_intake *in, struct dyn_peer *peer)
{
	uint64_t now = base_now_ns();

	for (size_t i = 0; i < in->nr_waiting;) {
		int fd = hear(in->waiting[i].fd, peer);

		if (fd == -EAGAIN && now - in->waiting[i].since_ns < SILENCE_NS) {
			i++;
			continue;
		}
		drop_waiting(in, i);
		if (fd >= 0 || fd == -ENODATA)
			return fd;
		in->nr_refused++;
	}
	return -EAGAIN;
}

static size_t nr_waiting_of(const struct dyn_intake *in, uint32_t uid)
{
	size_t nr = 0;

	for (size_t i = 0; i < in->nr_waiting; i++)
		nr += in->waiting[i].uid == uid;
	return nr;
}

/* One of the user who has the most. */
static size_t least_missed(const struct dyn_intake *in)
{
	size_t found = 0, most = 0;

	for (size_t i = 0; i < in->nr_waiting; i++) {
		size_t nr = nr_waiting_of(in, in->waiting[i].uid);

		found = nr > most ? i : found;
		most = nr > most ? nr : most;
	}
	return found;
}

static void keep_waiting(struct dyn_intake *in, int sock)
{
	struct ucred who = { .uid = UINT32_MAX };
	socklen_t len = sizeof(who);

	if (in->nr_waiting == DYN_NR_WAITING) {
		drop_waiting(in, least_missed(in));
		in->nr_refused++;
	}
	getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &who, &len);
	in->waiting[in->nr_waiting].fd = sock;
	in->waiting[in->nr_waiting].uid = who.uid;
	in->waiting[in->nr_waiting++].since_ns = base_now_ns();
	watch(in, sock);
}

/* The descriptor that took its place may only now be closed. */
static void keep_spare(struct dyn_intake *in)
{
	if (in->spare < 0)
		in->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Without a descriptor for it a connection would stay in the backlog, and wake us for ever. */
static bool turn_away(struct dyn_intake *in)
{
	int sock;

	if ((errno != EMFILE && errno != ENFILE) || in->spare < 0)
		return false;
	close(in->spare);
	sock = accept4(in->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	closer_close(sock);
	in->spare = -1;
	keep_spare(in);
	in->nr_refused += sock >= 0;
	return sock >= 0;
}

bool dyn_intake_is_quiet(const struct dyn_intake *in)
{
	struct epoll_event ev;

	return in->epoll < 0 || (!in->nr_waiting && epoll_wait(in->epoll, &ev, 1, 0) == 0);
}

int dyn_intake_next(struct dyn_intake *in, struct dyn_peer *peer)
{
	int sock, fd;

	if (in->listener < 0)
		return -EAGAIN;
	keep_spare(in);
	sock = accept4(in->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (sock < 0)
		return turn_away(in) ? -EMFILE : next_waiting(in, peer);
	fd = hear(sock, peer);
	if (fd == -EAGAIN) {
		keep_waiting(in, sock);
		return -EINPROGRESS;
	}
	closer_close(sock);
	in->nr_refused += fd < 0 && fd != -ENODATA;
	return fd;
}

/* ---- which process a registry is of ---------------------------------------------------------- */

static struct dyn_registry *find_file(const struct dyn *d, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return NULL;
	for (struct dyn_registry *reg = d->registries; reg; reg = reg->next)
		if (reg->kind == DYN_REGISTRY && reg->fd >= 0 && reg->dev == st.st_dev &&
		    reg->ino == st.st_ino)
			return reg;
	return NULL;
}

/* Until the file is written to, which the library does not do, its last change is its making. */
static uint64_t made_ns(int fd)
{
	struct timespec wall = { 0 };
	struct stat st;
	uint64_t now = base_now_ns();
	int64_t age;

	if (fstat(fd, &st) < 0)
		return now;
	clock_gettime(CLOCK_REALTIME, &wall);
	age = (int64_t)(wall.tv_sec - st.st_ctim.tv_sec) * 1000000000 +
	      (wall.tv_nsec - st.st_ctim.tv_nsec) - (int64_t)DYN_MADE_NS;
	return age <= 0 || (uint64_t)age >= now ? now : now - (uint64_t)age;
}

static bool is_alive(int pidfd)
{
	return pidfd >= 0 &&
	       (syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) == 0 || errno == EPERM);
}

/* Does process @pid have @part of @file mapped? The list of its mappings is as long as its program
 * wants. 1, 0, or negative: not known. */
static int has_mapped(const struct dyn *d, int32_t pid, const struct stat *file,
		      const struct registry_part *part)
{
	int r = d->config.reader ? reader_mapped(d->config.reader, pid, file, part)
				 : registry_process_maps(pid, file, part);

	return r == -ESRCH ? 0 : r;
}

/*
 * A registry is of the process that handed it over while that runs the program that has it mapped,
 * for its own user, whose the memfd is: *@life is that program's. Where it has ended, or executes
 * another program of that user, *@life is 0, and nothing of its memory is read. -EPERM: it runs
 * with other rights by now, or never had those of the memfd's user. -EAGAIN: the reader did not
 * answer, for its user's budget is spent, or it was killed: it may the next time.
 */
static int bind_to(const struct dyn *d, const struct dyn_peer *peer, int fd, uint64_t *life)
{
	const struct registry_part any = { 0 };
	uint64_t before = 0, after = 0;
	struct stat st;
	int mapped, r;

	*life = 0;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != peer->uid)
		return -EPERM;
	if (registry_process_life(peer->pid, NULL, &before) < 0)
		return 0;
	mapped = is_alive(peer->pidfd) ? has_mapped(d, peer->pid, &st, &any) : 0;
	if (mapped < 0)
		return -EAGAIN;
	/* The kernel shows the files of a process that has ended, but is not waited for, as root's.
	 */
	if (!mapped && !registry_process_open(peer->pid, peer->uid) &&
	    !registry_process_has_ended(peer->pid))
		return -EPERM;
	r = registry_process_check(peer->pid, peer->uid);
	if (r < 0)
		return r == -ESRCH ? 0 : r;
	registry_process_life(peer->pid, NULL, &after);
	/* That number was its own all the time. */
	if (mapped && is_alive(peer->pidfd) && before == after)
		*life = after;
	return 0;
}

/* Its program hears nothing. A crowd of such does not fill the log. */
static void refuse(struct dyn *d, const struct dyn_peer *peer, int error)
{
	d->intake.nr_refused++;
	if (!budget_may_tell(d->config.budgets, peer->uid))
		return;
	base_log(BASE_LOG_WARN, "the registry of user %u's process %d is refused: %s", peer->uid,
		 peer->pid,
		 error == -EDQUOT ? "too many of that user's wait" : base_strerror(error));
}

/*
 * A registry of @p, bound to @life; @fd is taken over. -EEXIST: it is known already. -EPERM:
 * another one is, and a life of a process has one.
 */
static int adopt(struct dyn *d, struct process *p, int fd, uint64_t life)
{
	struct dyn_registry *reg;
	uint64_t made = made_ns(fd);
	int r = 0;

	if (find_file(d, fd))
		r = -EEXIST;
	else if (p->dyn && p->dyn->own)
		r = -EPERM;
	if (r < 0) {
		d->intake.nr_refused += r == -EPERM;
		close(fd);
		return r;
	}
	r = dyn_registry_new(d, p, DYN_REGISTRY, fd, &reg);
	if (r == 0 && !dyn_client_of(p)) {
		dyn_registry_free(reg);
		r = -ENOMEM;
	}
	if (r < 0) {
		d->intake.nr_refused++;
		if (budget_may_tell(d->config.budgets, p->uid))
			base_log(BASE_LOG_WARN, "cannot attach the registry of process %d: %s",
				 p->pid, base_strerror(r));
		return r;
	}
	/* No range that it tells of was there before it. */
	reg->made_ns = made > DYN_MADE_NS ? made - DYN_MADE_NS : 0;
	reg->served_ns = reg->made_ns;
	reg->life = life;
	reg->refs++;
	p->dyn->own = reg;
	return 0;
}

typedef struct process *find_fn(void *ctx, int32_t pid, uint64_t time_ns);

/*
 * The registry @h, whose descriptor is taken over. 1: it is a new one, and adopted; 0; -EAGAIN: it
 * is not taken over, but is to be tried later.
 */
static int take(struct dyn *d, const struct dyn_handed *h, find_fn *find, void *ctx)
{
	/* From before the process is asked: what it executes afterwards is not its. */
	uint64_t made = made_ns(h->fd), life = 0;
	bool known = find_file(d, h->fd) != NULL;
	int r = known ? -EEXIST : bind_to(d, &h->peer, h->fd, &life);
	bool stale = r == 0 && h->found && !life;
	struct process *p = NULL;

	if (r == -EAGAIN)
		return r;
	if (r < 0 && !known)
		refuse(d, &h->peer, r);
	if (r == 0 && !stale)
		p = find(ctx, h->peer.pid, made);
	if (!p) {
		close(h->fd);
		return 0;
	}
	p->uid = h->peer.uid;
	return adopt(d, p, h->fd, life) == 0;
}

/* To find out whose registry it is, all that its process has mapped may have to be read. */
static int take_one(struct dyn *d, struct dyn_handed *h, find_fn *find, void *ctx)
{
	uint64_t since_ns = budget_begin(d->config.budgets);
	int taken = take(d, h, find, ctx);

	if (taken == -EAGAIN)
		h->again_ns = base_now_ns() + DYN_HANDED_PAUSE_NS;

	budget_end(d->config.budgets, h->peer.uid, since_ns);
	return taken;
}

static bool must_wait(const struct dyn *d, uint32_t uid)
{
	return d->hasty && !budget_has_turn(d->config.budgets, uid);
}

/* A process hands its registry over with each facility that it begins. */
static bool is_put_off(const struct dyn *d, const struct dyn_handed *h)
{
	for (size_t i = 0; i < d->nr_handed; i++)
		if (d->handed[i].dev == h->dev && d->handed[i].ino == h->ino &&
		    d->handed[i].peer.pid == h->peer.pid)
			return true;
	return false;
}

/* Its user has had its turn, or the reader did not answer: a user's crowd does not take all the
 * room for such. */
static void put_off(struct dyn *d, struct dyn_handed *h)
{
	struct stat st = { 0 };

	fstat(h->fd, &st);
	h->dev = st.st_dev;
	h->ino = st.st_ino;
	h->made_ns = made_ns(h->fd);
	if (is_put_off(d, h)) {
		close(h->fd);
		if (h->peer.pidfd >= 0)
			close(h->peer.pidfd);
		return;
	}
	if (d->nr_handed < DYN_NR_HANDED &&
	    budget_take(d->config.budgets, h->peer.uid, BUDGET_HANDED, 1, DYN_NR_HANDED)) {
		d->handed[d->nr_handed++] = *h;
		return;
	}
	refuse(d, &h->peer, -EDQUOT);
	close(h->fd);
	if (h->peer.pidfd >= 0)
		close(h->peer.pidfd);
}

/* Its memfd is closed, or somebody else's by now. */
static void forget(struct dyn *d, struct dyn_handed *h)
{
	budget_give_back(d->config.budgets, h->peer.uid, BUDGET_HANDED, 1);
	if (h->peer.pidfd >= 0)
		close(h->peer.pidfd);
}

static int take_put_off(struct dyn *d, find_fn *find, void *ctx)
{
	size_t kept = 0;
	int taken = 0, r;

	for (size_t i = 0; i < d->nr_handed; i++) {
		struct dyn_handed *h = &d->handed[i];

		r = base_now_ns() < h->again_ns || must_wait(d, h->peer.uid)
			    ? -EAGAIN
			    : take_one(d, h, find, ctx);
		if (r == -EAGAIN) {
			d->handed[kept++] = *h;
			continue;
		}
		taken += r;
		forget(d, h);
	}
	d->nr_handed = kept;
	return taken;
}

int dyn_take(struct dyn *d, struct process *(*find)(void *ctx, int32_t pid, uint64_t time_ns),
	     void *ctx)
{
	int taken = take_put_off(d, find, ctx), fd, r;
	bool look;

	if (dyn_intake_is_quiet(&d->intake))
		return taken;
	look = dyn_intake_drain_queue(&d->intake);
	for (int i = 0; i < TAKE_MAX; i++) {
		struct dyn_handed h = { .peer.pidfd = -1 };

		h.fd = fd = dyn_intake_next(&d->intake, &h.peer);
		if (fd == -EAGAIN)
			break;
		/* A client that asks again for what we have already wants to be looked at. */
		look |= fd >= 0 || fd == -ENODATA;
		r = 0;
		if (fd >= 0)
			r = must_wait(d, h.peer.uid) && !find_file(d, fd)
				    ? -EAGAIN
				    : take_one(d, &h, find, ctx);
		if (r == -EAGAIN) {
			put_off(d, &h);
			continue;
		}
		taken += r;
		if (h.peer.pidfd >= 0)
			close(h.peer.pidfd);
	}
	for (struct dyn_registry *reg = d->registries; look && reg; reg = reg->next)
		dyn_registry_peek(reg);
	return taken;
}

/* The memfd's user made it, for a process of his own, or it is mapped as any file is. */
static int bind_marker(const struct dyn *d, struct dyn_handed *h, uint64_t *life)
{
	struct stat st;
	int r = is_sealed(h->fd);

	if (r == 0 && fstat(h->fd, &st) < 0)
		r = -errno;
	if (r < 0)
		return r;
	h->peer.uid = st.st_uid;
	h->peer.pidfd = (int)syscall(SYS_pidfd_open, h->peer.pid, 0);
	r = bind_to(d, &h->peer, h->fd, life);
	return r == 0 && !*life ? -ESTALE : r;
}

void dyn_marker(struct dyn *d, struct process *p, uint64_t addr, uint64_t len)
{
	struct dyn_handed h = { .peer = { .pid = p->pid, .pidfd = -1 }, .found = true };
	uint64_t life;
	int r;

	/* Ours has been handed over already: reading its marker would tell nothing new. */
	if (!d->config.reader || (p->dyn && p->dyn->own))
		return;
	h.fd = reader_registry_open(d->config.reader, p->pid, addr, addr + len);
	r = h.fd < 0 ? h.fd : bind_marker(d, &h, &life);
	if (r == -EAGAIN && h.fd >= 0) {
		h.again_ns = base_now_ns() + DYN_HANDED_PAUSE_NS;
		put_off(d, &h);
		return;
	}
	if (h.peer.pidfd >= 0)
		close(h.peer.pidfd);
	if (r < 0) {
		base_log(BASE_LOG_DEBUG, "cannot take the registry of process %d: %s", p->pid,
			 base_strerror(r));
		if (h.fd >= 0)
			close(h.fd);
		return;
	}
	/* A forked child's uid is its parent's until asked for. */
	p->uid = h.peer.uid;
	adopt(d, p, h.fd, life);
}

/*
 * The words, and the number of the last change, stand in @p's memory in pages of the registry, and
 * @p is the program that this is of. 1, 0, or negative: the reader did not answer.
 */
static int words_stand(const struct dyn_registry *reg)
{
	const struct wire_registry *h = &reg->h;
	const struct stat file = { .st_dev = reg->dev, .st_ino = reg->ino };
	const struct registry_part words = { h->words_addr, h->nr_words * sizeof(uint32_t),
					     h->words_off };
	const struct registry_part seq = { h->seq_addr, sizeof(h->seq),
					   offsetof(struct wire_registry, seq) };
	uint64_t life;
	int r;

	if (registry_process_check(reg->pid, reg->uid) < 0 ||
	    !registry_process_open(reg->pid, reg->uid))
		return 0;
	r = has_mapped(reg->dyn, reg->pid, &file, &words);
	if (r > 0 && h->seq_addr)
		r = has_mapped(reg->dyn, reg->pid, &file, &seq);
	if (r <= 0)
		return r;
	return registry_process_life(reg->pid, NULL, &life) == 0 && life == reg->life;
}

bool dyn_words_stand(const struct process *p)
{
	struct dyn_registry *reg = p->dyn ? p->dyn->own : NULL;
	int r = reg && reg->life ? words_stand(reg) : 0;

	if (reg && r == 0)
		reg->no_words = true;
	return r > 0;
}

void dyn_intake_release(struct dyn *d)
{
	for (size_t i = 0; i < d->nr_handed; i++) {
		close(d->handed[i].fd);
		forget(d, &d->handed[i]);
	}
	dyn_intake_close(&d->intake);
}
