/* SPDX-License-Identifier: BSD-2-Clause */
/* Control requests: request.c parses them, control.c has the socket. */
#ifndef DCPI_DAEMON_CONTROL_H
#define DCPI_DAEMON_CONTROL_H

#include "track.h"

/* ---- control requests (request.c: parsing; control.c: the socket; command.c: what they do) --- */

#define CONTROL_LINE_MAX (64u << 10)
#define CONTROL_CLIENTS	 64

enum control_command {
	CONTROL_STATUS,
	CONTROL_FLUSH,
	CONTROL_EPOCH,
	CONTROL_QUIT,
	CONTROL_LABEL,
	CONTROL_REGISTER,
	CONTROL_LOG,
	CONTROL_WATCH,
};

enum { CONTROL_PATH_MAX = 4095, CONTROL_NAME_MAX = 255 };

struct control_request {
	enum control_command command;
	int32_t pid;		   /* LABEL (0: the client), REGISTER */
	char label[LABEL_MAX + 1]; /* LABEL; checked */
	uint64_t lines;		   /* LOG: at most so many */
	/* REGISTER: [start, start + len) of the process is the file's that came with it. */
	uint64_t start, len, file_off;	 /* from file_off on */
	struct base_id id;		 /* that the file must have; len 0: any */
	char path[CONTROL_PATH_MAX + 1]; /* that the image is to have, absolute */
	char name[CONTROL_NAME_MAX + 1]; /* another of the image, or "" */
};

/* The process that asks, as the kernel tells. */
struct control_peer {
	int32_t pid; /* 0: not one that can be seen from here */
	uint32_t uid;
	bool privileged; /* root, the daemon's user, group dcpi */
	int sock;	 /* which has next what came with the request (reader_file_id) */
};

/* One line without its newline. 0, or negative with @err: -DCPI_EFORMAT, -DCPI_EUNSUPPORTED,
 * -EINVAL (no label, no path). */
int control_request_parse(const char *line, size_t len, struct control_request *out,
			  struct base_err *err);
/* {"ok":false,"error":…,"hint":…} and a newline onto @out. 0 or -ENOMEM. */
int control_reply_error(struct base_buf *out, const struct base_err *err);

struct control;
/*
 * Does the work and appends one line to @reply; a negative return only for lack of memory.
 * CONTROL_LATER: the work is not done, and nothing appended; it is called again with the same
 * request by a control_serve, for which the descriptor is readable a moment later.
 */
enum { CONTROL_LATER = 1 };
typedef int (*control_fn)(void *ctx, const struct control_request *request,
			  const struct control_peer *peer, struct base_buf *reply);

/* Make <run_dir>/control. -DCPI_EBUSY: a live daemon answers there. */
int control_open(const char *run_dir, control_fn fn, void *ctx, struct control **out,
		 struct base_err *err);
/* Sends what is still to be sent, as far as it can be without waiting long. */
void control_close(struct control *c);
/* Readable when control_serve has something to do. */
int control_poll_fd(const struct control *c);
/* Serve what there is; never waits for a client. */
void control_serve(struct control *c);
/* The answer to "status" of who cannot wait for the loop; NULL: there is none just now. */
void control_keep(struct control *c, const struct base_buf *status);
/* Give it to those who ask for the status. Other requests wait; one may be carried out meanwhile.
 */
void control_serve_status(struct control *c);
/*
 * From now on a thread does that for clients that wait for longer than a moment. 0, or negative:
 * there is no such thread.
 */
int control_stand_in(struct control *c);

#endif
