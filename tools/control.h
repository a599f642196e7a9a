/* SPDX-License-Identifier: BSD-2-Clause */
/* Asking the daemon (docs/format/control.md). */
#ifndef DCPI_CONTROL_H
#define DCPI_CONTROL_H

#include <json.h>

#include "base.h"

/* How long a daemon that is stopped, stuck or busy is waited for. */
struct control_wait {
	const char *name;	/* the program's name, for messages during the wait */
	unsigned int notice_ms; /* after that long it says on standard error that it waits */
	unsigned int limit_ms;	/* for a place in the daemon's queue; for more of an answer that has
				   begun; and for the answer, if it */
	bool gives_up;		/* does: what has been asked for is done later, answered or not */
	int file;		/* its descriptor goes along with the request; 0: none */
};

/*
 * Send @request to the daemon of @run_dir (NULL: $DCPI_RUN, or the usual folder) and wait for its
 * answer: as it came into @text, NUL-terminated, and parsed into *@answer. -DCPI_ENODAEMON;
 * -ETIMEDOUT; -EPERM with the daemon's own words where it refused.
 */
int control_ask(const char *run_dir, const struct control_wait *wait, struct json_object *request,
		struct base_buf *text, struct json_object **answer, struct base_err *err);
/* A request of nothing but its name, the caller's. */
struct json_object *control_request(const char *command);
/* A string member; "" where there is none. */
const char *control_text(struct json_object *o, const char *name);

#endif
