/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpid starts the reader, sends one request at a time, and replaces a reader that fails. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "reader.h"
#include "reader_internal.h"

enum { TIMEOUT_MS = 1000, END_MS = 100 };

/* ---- the helper's life --------------------------------------------------------------------- */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int spawn(struct reader *r)
{
	struct helper_start how = { .socket_type = SOCK_SEQPACKET, .socket_fd = READER_SOCKET_FD };
	int code;

	r->answers = how.more_fd = memfd_create("dcpid-reader", MFD_CLOEXEC);
	code = r->answers < 0 ? -errno : helper_start(&r->helper, &how);
	if (code < 0)
		close_fd(&r->answers);
	return code;
}

/* A reader held in the kernel may outlive its killing for a while: that is not waited for. */
static void dismiss(struct reader *r)
{
	close_fd(&r->answers);
	helper_end(&r->helper, true, END_MS);
}

int reader_open(const char *helper_dir, struct reader **out, struct base_err *err)
{
	struct reader *r = calloc(1, sizeof(*r));
	int code;

	*out = NULL;
	if (!r)
		return base_fail_errno(err, -ENOMEM, "cannot start 'dcpid-reader'");
	r->answers = -1;
	r->timeout_ms = TIMEOUT_MS;
	code = helper_find(&r->helper, helper_dir, "dcpid-reader", err);
	if (code < 0)
		free(r);
	else
		*out = r;
	return code;
}

void reader_close(struct reader *r)
{
	if (!r)
		return;
	dismiss(r);
	helper_reap(&r->helper);
	free(r);
}

void reader_trim(struct reader *r)
{
	if (r->answers >= 0 && ftruncate(r->answers, 0) < 0)
		base_log(BASE_LOG_WARN, "the reader's answers stay: %s", base_strerror(errno));
}

/* ---- one request --------------------------------------------------------------------------- */

static int ask(struct reader *r, const struct reader_request *q, int fd, struct reader_answer *a)
{
	int code = 0;

	helper_reap(&r->helper);
	*a = (struct reader_answer){ 0 };
	if (!r->helper.pid)
		code = spawn(r);
	return code < 0 ? code : reader_send(r->helper.sock, q, sizeof(*q), fd);
}

static int hear(struct reader *r, int code, struct reader_answer *a, int *fd_out)
{
	unsigned int left_ms = r->timeout_ms;
	int none;

	if (code == 0)
		code = base_wait_readable(r->helper.sock, &left_ms);
	if (code == 0)
		code = reader_receive(r->helper.sock, a, sizeof(*a), fd_out ? fd_out : &none);
	if (code == 0 && !fd_out && none >= 0)
		close(none);
	if (code < 0) {
		dismiss(r);
		return code == -ETIMEDOUT ? code : -DCPI_EHELPER;
	}
	return a->status;
}

int reader_call(struct reader *r, const struct reader_request *q, int fd, struct reader_answer *a,
		int *fd_out)
{
	return hear(r, ask(r, q, fd, a), a, fd_out);
}

/* Ours is closed while the helper has another: its own is the last. */
void reader_release(struct reader *r, int fd)
{
	const struct reader_request q = { .op = READER_CLOSE };
	struct reader_answer a;
	int code = ask(r, &q, fd, &a);

	close(fd);
	hear(r, code, &a, NULL);
}

static bool one_of_ours(uint16_t type)
{
	switch (type) {
	case WIRE_FACILITY:
	case WIRE_RANGE:
	case WIRE_ROUTINE:
	case WIRE_RETIRE:
	case WIRE_MOVE:
	case WIRE_OBJECT:
	case WIRE_LISTED:
	case WIRE_BYTES:
	case WIRE_TIME:
		return true;
	}
	return false;
}

/* The outer shape of what the helper made from an application's bytes, checked once more. */
static int check_answer(const struct base_buf *b, size_t from)
{
	const struct wire_head *h;
	size_t pos = 0, len = b->len - from;

	while (len && (h = wire_next(b->data + from, len, &pos))) {
		if (!one_of_ours(h->type))
			return -DCPI_EFORMAT;
		if (wire_check(h) < 0)
			return -DCPI_EFORMAT;
	}
	return pos == len ? 0 : -DCPI_EFORMAT;
}

static int fetch_answer(const struct reader *r, const struct reader_answer *a,
			reader_check_fn *check, struct base_buf *out)
{
	size_t from = out->len;
	void *to;
	int code;

	if (a->len > READER_ANSWER_MAX)
		return -DCPI_EFORMAT;
	code = base_buf_extend(out, a->len, &to);
	if (code == 0)
		code = base_read_at(r->answers, 0, to, a->len);
	if (code == 0)
		code = check(out, from);
	if (code < 0)
		out->len = from;
	return code;
}

int reader_call_checked(struct reader *r, const struct reader_request *q, int fd,
			struct reader_answer *a, reader_check_fn *check, struct base_buf *out)
{
	int status = reader_call(r, q, fd, a, NULL), code;

	if (status < 0)
		return status;
	code = fetch_answer(r, a, check, out);
	if (code == -DCPI_EFORMAT || code == -DCPI_ETRUNCATED) {
		dismiss(r);
		return -DCPI_EHELPER;
	}
	return code < 0 ? code : status;
}

int reader_call_long(struct reader *r, const struct reader_request *q, int fd,
		     struct reader_answer *a, struct base_buf *out)
{
	return reader_call_checked(r, q, fd, a, check_answer, out);
}

int reader_call_for_fd(struct reader *r, const struct reader_request *q, int fd,
		       struct reader_answer *a)
{
	int opened = -1, code = reader_call(r, q, fd, a, &opened);

	if (code >= 0 && opened < 0)
		code = -DCPI_EHELPER;
	if (code >= 0)
		return opened;
	close_fd(&opened);
	return code;
}
