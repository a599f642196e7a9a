/* SPDX-License-Identifier: BSD-2-Clause */
/* The answer to "watch": samples up to now, for a viewer of the running daemon. */
#include <errno.h>

#include "core.h"
#include "watch.h"

/*
 * A new viewer is shown no sample of the time before it. New viewers share one pause, as they may
 * be turned away. Users have no more of the loop's time than in a turn. A failure of the driver
 * ends the daemon in its next turn.
 */
static void drain_for_new(struct daemon *d)
{
	uint64_t now = base_now_ns();

	if (now - d->watched_anew_ns < WATCH_PAUSE_NS || now - d->watched_ns < WATCH_PAUSE_ALL_NS)
		return;
	d->watched_ns = d->watched_anew_ns = now;
	dyn_set_hasty(d->dyn, true);
	daemon_drain_counts(d, &d->source_error);
	dyn_set_hasty(d->dyn, false);
}

static int take(struct daemon *d, const struct watch_peer *peer, uint64_t now, struct base_buf *out,
		struct base_err *err)
{
	struct driver_event events[DRIVER_NR_EVENTS];

	for (size_t i = 0; i < d->store.nr_events; i++)
		events[i] = *driver_event_get(d->driver, i);
	return watch_take(d->store.watch, peer, events, d->store.nr_events, now, out, err);
}

int daemon_watch(struct daemon *d, const struct control_peer *peer, struct base_buf *reply)
{
	const struct watch_peer who = {
		.pid = peer->pid, .uid = peer->uid, .sock = peer->sock, .all = peer->privileged
	};
	uint64_t asked_ns = watch_asked(d->store.watch, &who), now;
	struct base_err err = { 0 };
	struct base_buf file = { 0 };
	int r;

	/* For others the turn did. */
	if (!asked_ns)
		drain_for_new(d);
	now = base_now_ns();
	r = take(d, &who, now, &file, &err);
	if (r >= 0)
		r = base_buf_printf(reply, "{\"ok\":true,\"ns\":%llu,\"all\":%s,\"bytes\":%zu}\n",
				    asked_ns ? (unsigned long long)(now - asked_ns) : 0,
				    peer->privileged ? "true" : "false", file.len);
	else
		r = control_reply_error(reply, &err);
	if (r >= 0 && file.len)
		r = base_buf_append(reply, file.data, file.len);
	base_buf_release(&file);
	return r;
}
