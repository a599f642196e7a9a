/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "daemon_core.h"

/* Names of epochs are digits: nothing in the answer needs quoting. */
static int reply_done(const struct daemon *d, const char *epoch, struct base_buf *reply)
{
	return base_buf_printf(reply, "{\"ok\":true,\"epoch\":\"%s\",\"stored\":%llu}\n", epoch,
			       (unsigned long long)d->attrib.account.stored);
}

static int quit(struct daemon *d, struct base_err *err)
{
	/* While sampling goes on, a full disk can be made room on and nothing is lost. */
	int r = daemon_flush(d, err);

	if (r < 0) {
		base_hint(err, "the daemon goes on; remove the cause and try again");
		return r;
	}
	return daemon_finish(d, err);
}

int daemon_command(void *ctx, enum control_command command, struct base_buf *reply)
{
	struct daemon *d = ctx;
	struct base_err err = { 0 };
	int r = 0;

	switch (command) {
	case CONTROL_STATUS:
		return daemon_status(d, reply);
	case CONTROL_FLUSH:
		r = daemon_flush(d, &err);
		break;
	case CONTROL_EPOCH:
		r = daemon_new_epoch(d, &err);
		break;
	case CONTROL_QUIT:
		r = quit(d, &err);
		break;
	}
	return r < 0 ? control_reply_error(reply, &err) : reply_done(d, d->epoch, reply);
}
