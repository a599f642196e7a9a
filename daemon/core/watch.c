/* SPDX-License-Identifier: BSD-2-Clause */
/* The answer to "watch": samples up to now, for a viewer of the running daemon. */
#include <errno.h>

#include "core.h"
#include "watch.h"

/* Draining costs: a viewer that asks more often gets what there is, and so do all of them together.
 */
#define OF_ONE_NS UINT64_C(400000000)
#define OF_ALL_NS UINT64_C(50000000)

/* A failure of the driver ends the daemon in its next turn. */
static void drain(struct daemon *d, uint64_t asked_ns)
{
	uint64_t now = base_now_ns();

	if (now - asked_ns < OF_ONE_NS || now - d->watched_ns < OF_ALL_NS)
		return;
	d->watched_ns = now;
	daemon_drain_counts(d, &d->source_error);
}

static int take(struct daemon *d, const struct watch_peer *peer, struct base_buf *out,
		struct base_err *err)
{
	struct driver_event events[DRIVER_NR_EVENTS];

	for (size_t i = 0; i < d->store.nr_events; i++)
		events[i] = *driver_event_get(d->driver, i);
	return watch_take(d->store.watch, peer, events, d->store.nr_events, base_now_ns(), out,
			  err);
}

int daemon_watch(struct daemon *d, const struct control_peer *peer, struct base_buf *reply)
{
	const struct watch_peer who = {
		.pid = peer->pid, .uid = peer->uid, .sock = peer->sock, .all = peer->privileged
	};
	uint64_t asked_ns = watch_asked(d->store.watch, &who);
	struct base_err err = { 0 };
	struct base_buf file = { 0 };
	int r;

	drain(d, asked_ns);
	r = take(d, &who, &file, &err);
	if (r >= 0)
		r = base_buf_printf(reply, "{\"ok\":true,\"ns\":%llu,\"all\":%s,\"bytes\":%zu}\n",
				    asked_ns ? (unsigned long long)(base_now_ns() - asked_ns) : 0,
				    peer->privileged ? "true" : "false", file.len);
	else
		r = control_reply_error(reply, &err);
	if (r >= 0 && file.len)
		r = base_buf_append(reply, file.data, file.len);
	base_buf_release(&file);
	return r;
}
