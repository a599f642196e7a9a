/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon is asked through its control socket: a command is sent and its answer read, and the
 * live view asks again and again for the samples since the last time (docs/format/control.md).
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "control.h"
#include "live.h"
#include "wire.h"

enum { ANSWER_MAX = 16 << 20 };

static int no_daemon(struct base_err *err, const char *path, int cause)
{
	if (cause == -EACCES || cause == -EPERM)
		return base_fail_errno(err, cause, "cannot reach the daemon at '%s'", path);
	base_fail(err, -DCPI_ENODAEMON, "no daemon answers at '%s'", path);
	base_hint(err, "start one with 'dcpid -background DATABASE', or name its folder with -run");
	return -DCPI_ENODAEMON;
}

/* Its queue is full of others that wait: nothing was asked yet, so any command may give up. */
static int no_place(struct base_err *err, const char *path)
{
	base_fail(err, -ETIMEDOUT, "the daemon at '%s' takes no more connections", path);
	base_hint(err, "it is stopped or stuck, with others waiting already: see 'ps -C dcpid -o "
		       "pid,stat,wchan'");
	return -ETIMEDOUT;
}

/* -1: not known. */
static long peer_pid(int fd)
{
	struct ucred who = { 0 };
	socklen_t len = sizeof(who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0 || who.pid <= 0 ? -1
										       : who.pid;
}

/* A daemon whose queue is full is not waited for without limit. */
static int connect_to(int fd, const struct sockaddr_un *addr, unsigned int limit_ms)
{
	struct timeval limit = { .tv_sec = limit_ms / 1000, .tv_usec = limit_ms % 1000 * 1000 };

	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0 ||
	    connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0)
		return -errno;
	return 0;
}

/* A connection to the daemon of @run_dir, for which it is waited so long. */
static int control_connect(const char *run_dir, unsigned int limit_ms, struct base_err *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const char *env = getenv("DCPI_RUN");
	const char *dir = run_dir ? run_dir : env && env[0] ? env : WIRE_RUN_DIR;
	int fd, n = snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", dir, WIRE_CONTROL_NAME);

	if (n < 0 || (size_t)n >= sizeof(addr.sun_path))
		return base_fail_errno(err, -ENAMETOOLONG, "cannot reach a daemon in '%s'", dir);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd < 0)
		return base_fail_errno(err, -errno, "cannot make a socket");
	n = connect_to(fd, &addr, limit_ms);
	if (n == 0)
		return fd;
	n = n == -EAGAIN ? no_place(err, addr.sun_path) : no_daemon(err, addr.sun_path, n);
	close(fd);
	return n;
}

/* The descriptor @file (0: none) goes along with the newline, which ends the request. */
static ssize_t send_newline(int fd, int file)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec part = { .iov_base = (char[]){ '\n' }, .iov_len = 1 };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };

	if (file) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		control.head = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
						 .cmsg_type = SCM_RIGHTS,
						 .cmsg_len = CMSG_LEN(sizeof(file)) };
		memcpy(CMSG_DATA(&control.head), &file, sizeof(file));
	}
	return sendmsg(fd, &m, MSG_NOSIGNAL);
}

/*
 * With a newline, the only one that the line of JSON has, and along with that the descriptor @file
 * (0: none). 0 or -errno.
 */
static int control_send(int fd, struct json_object *request, int file)
{
	const char *text = json_object_to_json_string_ext(request, JSON_C_TO_STRING_PLAIN);
	size_t sent = 0, len = text ? strlen(text) : 0;

	if (!text)
		return -ENOMEM;
	while (sent <= len) {
		/* A daemon that goes away is an error to report, not a signal to die of. */
		ssize_t n = sent < len ? send(fd, text + sent, len - sent, MSG_NOSIGNAL)
				       : send_newline(fd, file);

		if (n >= 0)
			sent += (size_t)n;
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

static void tell_wait(long pid, const char *cmd, const struct control_wait *wait)
{
	struct base_err err = { 0 };

	base_fail(&err, -ETIMEDOUT, "the daemon, process %ld, has not answered '%s' yet: waiting%s",
		  pid, cmd, wait->gives_up ? " a while longer" : "");
	base_hint(&err,
		  "it may be writing much to a slow disk; 'ps -o stat,wchan -p %ld' shows what it "
		  "does, and if it is stopped (T), 'kill -CONT %ld' lets it go on",
		  pid, pid);
	base_err_print(&err, wait->name, stderr);
}

/* 1: there is something to read, or the daemon has gone. 0: neither within @ms (-1: no limit). */
static int readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int r;

	do
		r = poll(&p, 1, ms);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

static int await(int fd, const char *cmd, const struct control_wait *wait, struct base_err *err)
{
	int r = readable(fd, (int)wait->notice_ms);
	long pid = peer_pid(fd);

	if (r == 0) {
		tell_wait(pid, cmd, wait);
		r = readable(fd, wait->gives_up ? (int)wait->limit_ms : -1);
	}
	if (r < 0)
		return base_fail_errno(err, r, "the daemon did not answer '%s'", cmd);
	if (r > 0)
		return 0;
	base_fail(err, -ETIMEDOUT, "the daemon, process %ld, does not answer '%s'", pid, cmd);
	base_hint(err,
		  "once it is not stopped (kill -CONT %ld) and no longer writes, ask again; one "
		  "that is stuck is ended by 'kill -KILL %ld', and what it had put on disk stays",
		  pid, pid);
	return -ETIMEDOUT;
}

/* One line without its newline, NUL-terminated. */
static int read_answer(int fd, unsigned int limit_ms, struct base_buf *out)
{
	char bytes[4096];

	for (;;) {
		int r = readable(fd, (int)limit_ms);
		ssize_t n = r > 0 ? recv(fd, bytes, sizeof(bytes), 0) : 0;
		char *end;

		if (r <= 0)
			return r < 0 ? r : -ETIMEDOUT;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -DCPI_ETRUNCATED;
		end = memchr(bytes, '\n', (size_t)n);
		r = base_buf_append(out, bytes, end ? (size_t)(end - bytes) : (size_t)n);
		if (r >= 0 && end)
			return base_buf_append(out, "", 1);
		if (r >= 0 && out->len > ANSWER_MAX)
			r = -DCPI_ELIMIT;
		if (r < 0)
			return r;
	}
}

/*
 * The daemon begins an answer after it has done what was asked, so the wait for the rest is short.
 */
static int take_answer(int fd, const char *cmd, const struct control_wait *wait,
		       struct base_buf *text, struct base_err *err)
{
	int r = read_answer(fd, wait->limit_ms, text);
	long pid = peer_pid(fd);

	if (r == -ETIMEDOUT) {
		base_fail(err, r,
			  "the daemon, process %ld, stopped in the middle of its answer to '%s'",
			  pid, cmd);
		base_hint(err, "if it is stopped, 'kill -CONT %ld' lets it go on", pid);
	} else if (r < 0) {
		base_fail_errno(err, r, "the daemon did not answer '%s'", cmd);
	}
	return r;
}

/* A daemon without a place for this client says so and closes before it reads: perhaps now. */
static bool is_turned_away(int fd, int r)
{
	char byte;

	return (r == -EPIPE || r == -ECONNRESET) &&
	       recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

static int converse(const char *run_dir, const struct control_wait *wait,
		    struct json_object *request, struct base_buf *text, struct base_err *err)
{
	const char *cmd = control_text(request, "cmd");
	int fd = control_connect(run_dir, wait->limit_ms, err), r;

	if (fd < 0)
		return fd;
	r = control_send(fd, request, wait->file);
	if (is_turned_away(fd, r))
		r = 0;
	else if (r < 0)
		base_fail_errno(err, r, "the daemon was not asked '%s'", cmd);
	else
		r = await(fd, cmd, wait, err);
	if (r >= 0)
		r = take_answer(fd, cmd, wait, text, err);
	close(fd);
	return r;
}

const char *control_text(struct json_object *o, const char *name)
{
	struct json_object *value;

	if (!json_object_object_get_ex(o, name, &value))
		return "";
	return json_object_get_string(value) ? json_object_get_string(value) : "";
}

static int no_sense(struct base_err *err)
{
	return base_fail(err, -DCPI_EFORMAT, "the daemon's answer makes no sense");
}

/* 0, or the daemon's refusal. */
static int control_check(struct json_object *answer, struct base_err *err)
{
	struct json_object *ok;

	if (!json_object_is_type(answer, json_type_object))
		return no_sense(err);
	if (json_object_object_get_ex(answer, "ok", &ok) && json_object_get_boolean(ok))
		return 0;
	base_fail(err, -EPERM, "%s", control_text(answer, "error"));
	if (*control_text(answer, "hint"))
		base_hint(err, "%s", control_text(answer, "hint"));
	return err->code;
}

struct json_object *control_request(const char *command)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "cmd", json_object_new_string(command));
	return o;
}

int control_ask(const char *run_dir, const struct control_wait *wait, struct json_object *request,
		struct base_buf *text, struct json_object **answer, struct base_err *err)
{
	int r = converse(run_dir, wait, request, text, err);

	if (r < 0)
		return r;
	*answer = json_tokener_parse((const char *)text->data);
	return control_check(*answer, err);
}

/* ---- samples since the last time ------------------------------------------------------------- */

enum { LIMIT_MS = 5000, HEAD_MAX = 64 << 10, BYTES_MAX = 16 << 20 };

/* A question so soon after another gets no newer samples (daemon/core/command.c), and some room. */
#define NO_DRAIN_NS UINT64_C(500000000)

/* False: it is no number that it may be. */
static bool take_number(struct json_object *o, const char *name, uint64_t max, uint64_t *out)
{
	struct json_object *value;

	if (!json_object_object_get_ex(o, name, &value) ||
	    !json_object_is_type(value, json_type_int) || json_object_get_int64(value) < 0)
		return false;
	*out = json_object_get_uint64(value);
	return *out <= max;
}

int live_head_parse(const char *line, struct live_head *out, struct base_err *err)
{
	struct json_object *o = json_tokener_parse(line), *all;
	int r = control_check(o, err);

	*out = (struct live_head){ 0 };
	if (r >= 0 && (!take_number(o, "ns", INT64_MAX, &out->ns) ||
		       !take_number(o, "bytes", BYTES_MAX, &out->bytes)))
		r = no_sense(err);
	if (r >= 0)
		out->all =
			json_object_object_get_ex(o, "all", &all) && json_object_get_boolean(all);
	json_object_put(o);
	return r;
}

int live_feed_open(struct live_feed *f, const char *run_dir, struct base_err *err)
{
	*f = (struct live_feed){ .fd = control_connect(run_dir, LIMIT_MS, err) };
	return f->fd < 0 ? f->fd : 0;
}

void live_feed_close(struct live_feed *f)
{
	if (f->fd >= 0)
		close(f->fd);
	base_buf_release(&f->in);
	*f = (struct live_feed){ .fd = -1 };
}

int live_feed_ask(struct live_feed *f, struct base_err *err)
{
	struct json_object *request = control_request("watch");
	int r = control_send(f->fd, request, 0);
	json_object_put(request);
	f->asked = r >= 0;
	return r < 0 ? base_fail_errno(err, r, "the daemon was not asked") : 0;
}

/* 0, or negative where the daemon has gone. */
static int receive(struct live_feed *f, struct base_err *err)
{
	char bytes[16 << 10];

	for (;;) {
		ssize_t n = recv(f->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n <= 0)
			return base_fail(err, -DCPI_ENODAEMON, "the daemon has ended");
		if (f->in.len + (size_t)n > BYTES_MAX + HEAD_MAX ||
		    base_buf_append(&f->in, bytes, (size_t)n) < 0)
			return no_sense(err);
	}
}

static void drop(struct live_feed *f, size_t len)
{
	f->in.len -= len;
	memmove(f->in.data, f->in.data + len, f->in.len);
}

/* 1: it is there. */
static int take_head(struct live_feed *f, struct base_err *err)
{
	char *end = f->in.len ? memchr(f->in.data, '\n', f->in.len) : NULL;
	int r;

	if (f->has_head)
		return 1;
	if (!end)
		return f->in.len > HEAD_MAX ? no_sense(err) : 0;
	*end = '\0';
	r = live_head_parse((const char *)f->in.data, &f->head, err);
	drop(f, (size_t)(end + 1 - (char *)f->in.data));
	f->has_head = r >= 0;
	return r < 0 ? r : 1;
}

uint64_t live_feed_next_ns(uint64_t now_ns, uint64_t end_ns)
{
	uint64_t next_ns = now_ns + (uint64_t)LIVE_ASK_MS * 1000000;

	return end_ns < next_ns + NO_DRAIN_NS ? end_ns : next_ns;
}

int live_feed_read(struct live_feed *f, struct profdb_workloads **out, struct base_err *err)
{
	int gone = receive(f, err), r = take_head(f, err);

	*out = NULL;
	if (r > 0 && f->in.len >= f->head.bytes) {
		f->has_head = f->asked = false;
		*err = (struct base_err){ 0 };
		r = f->head.bytes ? profdb_workloads_parse(f->in.data, f->head.bytes, out, err) : 0;
		drop(f, f->head.bytes);
		return r < 0 ? r : 1;
	}
	return r < 0 ? r : gone;
}
