/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control socket. Clients are whoever can reach it, so each has bounds: length of a line, of
 * unread answers, of silence; and unprivileged ones cannot take all the room, nor one user theirs.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "closer.h"
#include "control.h"

enum {
	UNPRIVILEGED_MAX = CONTROL_CLIENTS / 2,
	USER_MAX = UNPRIVILEGED_MAX / 2,
	OUT_MAX = 1 << 20,
	NR_GROUPS = 1024,
	CLOSE_WAIT_MS = 200,
	PASSES_MAX = 4, /* of one turn */
	ACCEPTS_MAX = CONTROL_CLIENTS,
	GRACE_MS = 50, /* in which the loop, which knows more, may come to answer */
};
#define SILENCE_NS (30 * 1000000000ull)
#define AGAIN_NS   2000000 /* until a request that takes turns is looked at again */

struct client {
	int fd;		 /* -1: free */
	uint32_t number; /* no other client has had it for long */
	struct control_peer peer;
	bool closing; /* when everything is sent */
	uint64_t heard_ns;
	struct base_buf in; /* a request, as far as it came, without its newline */
	bool whole;	    /* its newline is what the socket has next */
	bool served;	    /* its request is being answered */
	bool later;	    /* it takes turns: nothing is heard of the client meanwhile */
	struct base_buf out;
	size_t sent;
};

struct control {
	int listen_fd, epoll_fd;
	int again_fd; /* a timer, while there are requests that take turns */
	int spare;    /* a descriptor to take a client by, where there is no other; or -1 */
	gid_t group;  /* of those who may do what root may; (gid_t)-1: none */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	control_fn fn;
	void *ctx;
	/* Held by who serves; not while another request than for the status is carried out. */
	pthread_mutex_t lock;
	bool status_only;     /* other requests wait */
	struct base_buf kept; /* control_keep */
	pthread_t stand_in;
	int stop_fd; /* of the stand-in, or -1 */
	uint32_t nr_accepted;
	struct client clients[CONTROL_CLIENTS];
};

/* ---- who asks -------------------------------------------------------------------------------- */

static bool in_group(int fd, gid_t primary, gid_t group)
{
	gid_t groups[NR_GROUPS];
	socklen_t len = sizeof(groups);

	if (group == (gid_t)-1)
		return false;
	if (primary == group)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) < 0)
		return false;
	for (size_t i = 0; i < len / sizeof(*groups); i++)
		if (groups[i] == group)
			return true;
	return false;
}

static struct control_peer find_peer(const struct control *c, int fd)
{
	struct ucred cred = { .uid = (uid_t)-1, .gid = (gid_t)-1 };
	socklen_t len = sizeof(cred);
	struct control_peer peer = { .uid = (uid_t)-1 };

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return peer;
	peer.pid = cred.pid;
	peer.uid = cred.uid;
	peer.privileged =
		cred.uid == 0 || cred.uid == geteuid() || in_group(fd, cred.gid, c->group);
	return peer;
}

/* ---- one client ------------------------------------------------------------------------------ */

static void client_close(const struct control *c, struct client *cl)
{
	/* Its close may take time, during which it is not to wake us, nor is the client to wait. */
	if (cl->fd >= 0) {
		epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, cl->fd, NULL);
		shutdown(cl->fd, SHUT_RDWR);
	}
	closer_close(cl->fd);
	base_buf_release(&cl->in);
	base_buf_release(&cl->out);
	*cl = (struct client){ .fd = -1 };
}

static uint64_t event_of(const struct control *c, const struct client *cl)
{
	return (uint64_t)cl->number << 32 | (uint64_t)(cl - c->clients);
}

static void watch(struct control *c, struct client *cl, int op)
{
	struct epoll_event ev = { .data.u64 = event_of(c, cl) };

	/*
	 * A client that does not read answers gets no more of them. A further line stays in the
	 * socket, and is served next time round, behind everybody else.
	 */
	ev.events = cl->sent < cl->out.len ? EPOLLOUT : EPOLLIN;
	if (epoll_ctl(c->epoll_fd, op, cl->fd, &ev) < 0)
		client_close(c, cl);
}

/* The newline of a request that takes turns would wake us until it is done, and so would the end of
 * its client. */
static void watch_again(struct control *c, struct client *cl, bool was_later)
{
	const struct itimerspec soon = { .it_value.tv_nsec = AGAIN_NS };

	if (!cl->later)
		watch(c, cl, was_later ? EPOLL_CTL_ADD : EPOLL_CTL_MOD);
	else if (!was_later)
		epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, cl->fd, NULL);
	if (cl->later)
		timerfd_settime(c->again_fd, 0, &soon, NULL);
}

static int client_send(struct client *cl)
{
	while (cl->sent < cl->out.len) {
		ssize_t n = send(cl->fd, cl->out.data + cl->sent, cl->out.len - cl->sent,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		cl->sent += (size_t)n;
	}
	base_buf_clear(&cl->out);
	cl->sent = 0;
	return cl->closing ? -ESHUTDOWN : 0;
}

/* Requests about one's own processes, and samples of these, are the others, which are checked where
 * they are served. */
static bool needs_rights(enum control_command command)
{
	return command != CONTROL_STATUS && command != CONTROL_LABEL &&
	       command != CONTROL_REGISTER && command != CONTROL_WATCH;
}

/* Meanwhile the stand-in may serve the others. */
static int carry_out(struct control *c, struct client *cl, const struct control_request *request)
{
	int r;

	pthread_mutex_unlock(&c->lock);
	r = c->fn(c->ctx, request, &cl->peer, &cl->out);
	pthread_mutex_lock(&c->lock);
	return r;
}

static int answer(struct control *c, struct client *cl, const char *line, size_t len)
{
	struct control_request request;
	struct base_err err = { 0 };

	if (control_request_parse(line, len, &request, &err) < 0)
		return control_reply_error(&cl->out, &err);
	if (needs_rights(request.command) && !cl->peer.privileged) {
		base_fail(&err, -EPERM, "permission denied: this needs root or group 'dcpi'");
		base_hint(&err, "run it as root, or as a member of group 'dcpi'");
		return control_reply_error(&cl->out, &err);
	}
	if (c->status_only && request.command == CONTROL_STATUS)
		return base_buf_append(&cl->out, c->kept.data, c->kept.len);
	return c->status_only ? CONTROL_LATER : carry_out(c, cl, &request);
}

/* Answer one line; 0 where there is none. */
static int client_line(struct control *c, struct client *cl)
{
	struct base_err err = { 0 };
	char newline;
	int r;

	if (cl->in.len > CONTROL_LINE_MAX) {
		base_fail(&err, -DCPI_ELIMIT, "request longer than %u bytes", CONTROL_LINE_MAX);
		cl->closing = true;
		return control_reply_error(&cl->out, &err);
	}
	if (!cl->whole)
		return 0;
	cl->served = true;
	r = answer(c, cl, (const char *)cl->in.data, cl->in.len);
	cl->served = false;
	cl->heard_ns = base_now_ns(); /* until then it was for us to speak */
	/* Its newline, which is not taken, calls the loop to what the stand-in leaves. */
	cl->later = r == CONTROL_LATER && !c->status_only;
	if (r == CONTROL_LATER)
		return 0;
	base_buf_clear(&cl->in);
	cl->whole = false;
	if (r >= 0 && closer_recv(cl->fd, &newline, 1, cl->peer.uid) != 1)
		r = -ESHUTDOWN;
	return r < 0 ? r : 1;
}

/*
 * A request up to its newline, which stays in the socket: with it comes a request's file, which the
 * reader takes (READER_FILE_ID). Descriptors that come with what is taken here are closed
 * elsewhere.
 */
static int client_read(struct client *cl)
{
	char bytes[16 << 10], *end;
	ssize_t n;

	if (closer_is_held(cl->peer.uid)) {
		struct base_err err = { 0 };

		base_fail(&err, -EDQUOT, "too many files of user %u are still being closed",
			  cl->peer.uid);
		base_hint(&err, "try again later");
		cl->closing = true;
		return control_reply_error(&cl->out, &err);
	}
	n = recv(cl->fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_PEEK);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -ESHUTDOWN;
	cl->heard_ns = base_now_ns();
	end = memchr(bytes, '\n', (size_t)n);
	cl->whole = end != NULL;
	n = end ? end - bytes : n;
	if (n > 0 && closer_recv(cl->fd, bytes, (size_t)n, cl->peer.uid) != n)
		return -EIO;
	return base_buf_append(&cl->in, bytes, (size_t)n);
}

static void client_serve(struct control *c, struct client *cl, uint32_t events)
{
	bool was_later = cl->later;
	int r = 0;

	if (events & EPOLLIN)
		r = client_read(cl);
	else if (events & (EPOLLHUP | EPOLLERR))
		r = -ESHUTDOWN;
	if (r >= 0)
		r = client_send(cl);
	if (r >= 0 && cl->sent == cl->out.len)
		r = client_line(c, cl);
	if (r > 0 || (r == 0 && cl->closing))
		r = client_send(cl);
	if (r < 0 || cl->out.len > OUT_MAX)
		client_close(c, cl);
	else
		watch_again(c, cl, was_later);
}

/* Requests that take turns. */
static void serve_later(struct control *c)
{
	uint64_t ticks;

	if (c->status_only || read(c->again_fd, &ticks, sizeof(ticks)) < 0)
		return;
	for (int i = 0; i < CONTROL_CLIENTS; i++)
		if (c->clients[i].fd >= 0 && c->clients[i].later && !c->clients[i].served)
			client_serve(c, &c->clients[i], 0);
}

/* ---- all clients ----------------------------------------------------------------------------- */

static struct client *free_slot(struct control *c, const struct control_peer *peer)
{
	struct client *slot = NULL;
	int nr = 0, nr_own = 0;

	for (int i = 0; i < CONTROL_CLIENTS; i++) {
		struct client *cl = &c->clients[i];

		if (cl->fd < 0) {
			slot = slot ? slot : cl;
		} else if (!cl->peer.privileged) {
			nr++;
			nr_own += cl->peer.uid == peer->uid;
		}
	}
	return peer->privileged || (nr < UNPRIVILEGED_MAX && nr_own < USER_MAX) ? slot : NULL;
}

static void refuse(int fd, const char *why)
{
	char text[128];
	int len = snprintf(text, sizeof(text),
			   "{\"ok\":false,\"error\":\"%s\",\"hint\":\"try again later\"}\n", why);

	if (send(fd, text, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		base_log(BASE_LOG_DEBUG, "control: a client went away");
	shutdown(fd, SHUT_RDWR);
	closer_close(fd);
}

static int accept_client(const struct control *c)
{
	return accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

static void keep_spare(struct control *c)
{
	if (c->spare < 0)
		c->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Without a descriptor for it a client would stay before the door, and wake us for ever. */
static void turn_away(struct control *c)
{
	int fd;

	if ((errno != EMFILE && errno != ENFILE) || c->spare < 0)
		return;
	close(c->spare);
	fd = accept_client(c);
	if (fd >= 0)
		refuse(fd, "the daemon has too many open files");
	c->spare = -1;
	keep_spare(c);
}

static void accept_one(struct control *c)
{
	struct control_peer peer;
	int fd;
	struct client *cl;

	keep_spare(c);
	fd = accept_client(c);
	if (fd < 0) {
		turn_away(c);
		return;
	}
	peer = find_peer(c, fd);
	peer.sock = fd;
	cl = free_slot(c, &peer);
	if (!cl) {
		refuse(fd, "too many clients");
		return;
	}
	*cl = (struct client){
		.fd = fd, .number = c->nr_accepted++, .peer = peer, .heard_ns = base_now_ns()
	};
	watch(c, cl, EPOLL_CTL_ADD);
}

/* Without a client to take, the spare descriptor is not to be given up: it may not come back. */
static bool is_asked(const struct control *c)
{
	struct pollfd p = { .fd = c->listen_fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/* A crowd before the door does not hold up others behind it for many turns. */
static void accept_all(struct control *c)
{
	for (int i = 0; i < ACCEPTS_MAX && is_asked(c); i++)
		accept_one(c);
}

static void close_silent(struct control *c, uint64_t now_ns)
{
	for (int i = 0; i < CONTROL_CLIENTS; i++)
		if (c->clients[i].fd >= 0 && now_ns > c->clients[i].heard_ns + SILENCE_NS)
			client_close(c, &c->clients[i]);
}

/* Since @start_ns some were served, perhaps for long, and nobody listened to the others. */
static void forgive_silence(struct control *c, uint64_t start_ns)
{
	uint64_t now = base_now_ns();

	for (int i = 0; i < CONTROL_CLIENTS; i++) {
		uint64_t then = c->clients[i].heard_ns + (now - start_ns);

		c->clients[i].heard_ns = then < now ? then : now;
	}
}

/* True: a client is new. */
static bool serve_once(struct control *c)
{
	struct epoll_event events[CONTROL_CLIENTS + 2];
	int nr = epoll_wait(c->epoll_fd, events, CONTROL_CLIENTS + 2, 0);
	bool accepted = false;

	for (int i = 0; i < nr; i++) {
		uint32_t index = (uint32_t)events[i].data.u64;

		accepted |= index == CONTROL_CLIENTS;
		if (index == CONTROL_CLIENTS)
			accept_all(c);
		else if (index == CONTROL_CLIENTS + 1)
			serve_later(c);
		/* While another was served, this one may have made way for a third. */
		else if (c->clients[index].fd >= 0 && !c->clients[index].served &&
			 event_of(c, &c->clients[index]) == events[i].data.u64)
			client_serve(c, &c->clients[index], events[i].events);
	}
	return accepted;
}

void control_serve(struct control *c)
{
	/* While one is served for long, others may have spoken: that is heard next time. */
	uint64_t now = base_now_ns();

	pthread_mutex_lock(&c->lock);
	/* A new client's request does not wait for the next turn of a busy loop. */
	for (int i = 0; i < PASSES_MAX && serve_once(c); i++)
		;
	close_silent(c, now);
	forgive_silence(c, now);
	pthread_mutex_unlock(&c->lock);
}

/* ---- while the loop is busy ------------------------------------------------------------------ */

void control_keep(struct control *c, const struct base_buf *status)
{
	pthread_mutex_lock(&c->lock);
	base_buf_clear(&c->kept);
	if (status && base_buf_append(&c->kept, status->data, status->len) < 0)
		base_buf_clear(&c->kept);
	pthread_mutex_unlock(&c->lock);
}

void control_serve_status(struct control *c)
{
	pthread_mutex_lock(&c->lock);
	c->status_only = true;
	for (int i = 0; i < PASSES_MAX && c->kept.len && serve_once(c); i++)
		;
	c->status_only = false;
	pthread_mutex_unlock(&c->lock);
}

/* True: the stand-in is to end. */
static bool wait_for(struct pollfd *fds, nfds_t nr, int ms)
{
	return poll(fds, nr, ms) > 0 && fds[0].revents;
}

static void *stand_in(void *ctx)
{
	struct control *c = ctx;
	struct pollfd fds[] = { { .fd = c->stop_fd, .events = POLLIN },
				{ .fd = c->epoll_fd, .events = POLLIN } };

	while (!wait_for(fds, 2, -1) && !wait_for(fds, 1, GRACE_MS))
		if (poll(&fds[1], 1, 0) > 0)
			control_serve_status(c);
	return NULL;
}

int control_stand_in(struct control *c)
{
	sigset_t all, old;
	int r;

	c->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (c->stop_fd < 0)
		return -errno;
	/* The daemon's signals are for its main thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = -pthread_create(&c->stand_in, NULL, stand_in, c);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r < 0) {
		close(c->stop_fd);
		c->stop_fd = -1;
	}
	return r;
}

static void end_stand_in(struct control *c)
{
	if (c->stop_fd < 0)
		return;
	if (eventfd_write(c->stop_fd, 1) == 0)
		pthread_join(c->stand_in, NULL);
	close(c->stop_fd);
	c->stop_fd = -1;
}

int control_poll_fd(const struct control *c)
{
	return c->epoll_fd;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* A socket that nobody serves is what a killed daemon left. */
static int remove_stale(const char *path, struct base_err *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r = 0;

	if (fd < 0)
		return base_fail_errno(err, -errno, "cannot make a socket");
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 || errno == EAGAIN) {
		r = base_fail(err, -DCPI_EBUSY, "another daemon answers at '%s'", path);
		base_hint(err, "stop it with 'dcpictl quit', or give this one a folder of its own "
			       "with -run");
	} else if (errno == ECONNREFUSED && unlink(path) < 0) {
		r = base_fail_errno(err, -errno, "cannot remove '%s'", path);
	}
	close(fd);
	return r;
}

static int listen_at(struct control *c, struct base_err *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int r = remove_stale(c->path, err);

	if (r < 0)
		return r;
	c->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", c->path);
	/*
	 * Every user may ask for the status; what else is allowed, the kernel tells by SO_PEERCRED.
	 */
	if (c->listen_fd < 0 || bind(c->listen_fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    chmod(c->path, 0666) < 0 || listen(c->listen_fd, CONTROL_CLIENTS) < 0)
		return base_fail_errno(err, -errno, "cannot listen at '%s'", c->path);
	return 0;
}

static int watch_listener(struct control *c, struct base_err *err)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = CONTROL_CLIENTS },
			   again = { .events = EPOLLIN, .data.u64 = CONTROL_CLIENTS + 1 };

	c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	c->again_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (c->epoll_fd < 0 || c->again_fd < 0 ||
	    epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, c->listen_fd, &ev) < 0 ||
	    epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, c->again_fd, &again) < 0)
		return base_fail_errno(err, -errno, "cannot watch '%s'", c->path);
	return 0;
}

int control_open(const char *run_dir, control_fn fn, void *ctx, struct control **out,
		 struct base_err *err)
{
	struct control *c = calloc(1, sizeof(*c));
	struct group *group = getgrnam("dcpi");
	int r;

	if (!c)
		return base_fail_errno(err, -ENOMEM, "cannot open the control socket");
	c->listen_fd = c->epoll_fd = c->again_fd = c->stop_fd = -1;
	pthread_mutex_init(&c->lock, NULL);
	c->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	c->group = group ? group->gr_gid : (gid_t)-1;
	c->fn = fn;
	c->ctx = ctx;
	for (int i = 0; i < CONTROL_CLIENTS; i++)
		c->clients[i].fd = -1;
	r = snprintf(c->path, sizeof(c->path), "%s/%s", run_dir, WIRE_CONTROL_NAME);
	if (r < 0 || (size_t)r >= sizeof(c->path))
		r = base_fail(err, -ENAMETOOLONG, "cannot make a socket in '%s': name too long",
			      run_dir);
	else
		r = listen_at(c, err);
	if (r >= 0)
		r = watch_listener(c, err);
	if (r < 0) {
		/* Another daemon's socket must not be removed. */
		c->path[0] = '\0';
		control_close(c);
		return r;
	}
	*out = c;
	return 0;
}

static void send_rest(struct client *cl)
{
	struct timeval wait = { .tv_usec = CLOSE_WAIT_MS * 1000 };

	setsockopt(cl->fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	if (send(cl->fd, cl->out.data + cl->sent, cl->out.len - cl->sent, MSG_NOSIGNAL) < 0)
		base_log(BASE_LOG_DEBUG, "control: an answer could not be sent");
}

void control_close(struct control *c)
{
	if (!c)
		return;
	end_stand_in(c);
	for (int i = 0; i < CONTROL_CLIENTS; i++) {
		struct client *cl = &c->clients[i];

		if (cl->fd >= 0 && cl->sent < cl->out.len)
			send_rest(cl);
		client_close(c, cl);
	}
	if (c->path[0])
		unlink(c->path);
	closer_close(c->listen_fd);
	if (c->epoll_fd >= 0)
		close(c->epoll_fd);
	if (c->again_fd >= 0)
		close(c->again_fd);
	if (c->spare >= 0)
		close(c->spare);
	base_buf_release(&c->kept);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
