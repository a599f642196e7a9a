/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon is asked again and again for the samples since the last time (docs/format/control.md).
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control.h"
#include "live.h"

enum { LIMIT_MS = 5000, LINE_MAX = 64 << 10, BYTES_MAX = 16 << 20 };

/* A question so soon after another gets no newer samples (daemon/core/command.c), and some room. */
#define NO_DRAIN_NS UINT64_C(500000000)

static int no_sense(struct base_err *err)
{
	return base_fail(err, -DCPI_EFORMAT, "the daemon's answer makes no sense");
}

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
		if (f->in.len + (size_t)n > BYTES_MAX + LINE_MAX ||
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
		return f->in.len > LINE_MAX ? no_sense(err) : 0;
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
