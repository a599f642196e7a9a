/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpid starts the reader and its parser, sends one request at a time, and replaces a reader that
 * fails. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "closer.h"
#include "parser.h"
#include "reader.h"
#include "reader_internal.h"

/* MEANWHILE_MS: by far less than the kernel's rings hold. */
enum { TIMEOUT_MS = 1000, END_MS = 50, MEANWHILE_MS = 40 };
/* A request for which the helpers work so long is as bad as one that waits; nor is longer waited
 * for an answer, however busy the machine is. */
#define WORK_MAX_NS 1000000000u
enum { WAIT_MAX_MS = 4000 };

/* ---- the helper's life --------------------------------------------------------------------- */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* A reader held in the kernel may outlive its killing for a while: that is not waited for. */
void reader_dismiss(struct reader *r)
{
	r->making.asked = false;
	close_fd(&r->answers);
	helper_end(&r->helper, true, END_MS);
	helper_end(&r->parser, true, END_MS);
	r->helper.held |= r->parser.held;
}

static int spawn_parser(struct reader *r)
{
	const struct helper_start how = { .socket_type = SOCK_SEQPACKET,
					  .socket_fd = PARSER_SOCKET_FD,
					  .more_fds = &r->answers,
					  .nr_more = 1 };

	return helper_start(&r->parser, &how);
}

/* The parser's socket is the reader's alone: each of them ends when the other is gone. */
static int spawn(struct reader *r)
{
	struct helper_start how = { .socket_type = SOCK_SEQPACKET, .socket_fd = READER_SOCKET_FD };
	int fds[HELPER_NR_MORE], code;

	r->answers = memfd_create("dcpid-reader", MFD_CLOEXEC);
	code = r->answers < 0 ? -errno : spawn_parser(r);
	if (code == 0) {
		fds[0] = r->answers;
		fds[1] = r->parser.sock;
		how.more_fds = fds;
		how.nr_more = 2;
		code = helper_start(&r->helper, &how);
		close_fd(&r->parser.sock);
	}
	if (code < 0)
		reader_dismiss(r);
	return code;
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
	if (code == 0)
		code = helper_find(&r->parser, helper_dir, "dcpid-parse", err);
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
	reader_dismiss(r);
	helper_reap(&r->helper);
	helper_reap(&r->parser);
	free(r);
}

void reader_share(struct reader *r, struct budgets *budgets)
{
	r->budgets = budgets;
}

void reader_set_meanwhile(struct reader *r, void (*fn)(void *ctx), void *ctx)
{
	r->meanwhile = fn;
	r->ctx = ctx;
}

void reader_trim(struct reader *r)
{
	if (r->answers >= 0 && ftruncate(r->answers, 0) < 0)
		base_log(BASE_LOG_WARN, "the reader's answers stay: %s", base_strerror(errno));
}

/* ---- one request --------------------------------------------------------------------------- */

int reader_ask(struct reader *r, const struct reader_request *q, int fd,
	       struct helper_effort *before)
{
	int code = 0;

	helper_reap(&r->helper);
	helper_reap(&r->parser);
	if (!r->helper.pid)
		code = spawn(r);
	/* They may be done with it before this process runs again. */
	*before = reader_effort(r);
	return code < 0 ? code : reader_send(r->helper.sock, q, sizeof(*q), fd);
}

/* 0: it is refused. */
static unsigned int wait_ms_of(const struct reader *r, const struct reader_request *q)
{
	return r->budgets ? budget_wait_ms(r->budgets, q->uid) : r->timeout_ms;
}

struct helper_effort reader_effort(const struct reader *r)
{
	struct helper_effort reader = helper_effort(&r->helper);
	struct helper_effort parser = helper_effort(&r->parser);

	return (struct helper_effort){ reader.ran_ns + parser.ran_ns,
				       reader.ready_ns + parser.ready_ns };
}

/* It was not told once. */
static uint64_t grown(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

struct helper_effort reader_effort_since(const struct helper_effort *from,
					 const struct helper_effort *to)
{
	return (struct helper_effort){ grown(from->ran_ns, to->ran_ns),
				       grown(from->ready_ns, to->ready_ns) };
}

/* How an answer was waited for. */
struct waited {
	struct helper_effort used;
	unsigned int idle_ms; /* the helpers neither worked nor waited for a CPU */
	uint64_t all_ns;      /* by the clock */
};

/* The helpers may have worked before this process waited, on its CPU. */
static void charge(const struct reader *r, const struct reader_request *q, uint64_t since_ns,
		   const struct waited *w, uint64_t bytes)
{
	uint64_t all_ns = base_now_ns() - since_ns, ran_ns = w->used.ran_ns;
	uint64_t took_ns = all_ns - w->all_ns + ran_ns + w->idle_ms * UINT64_C(1000000);
	uint64_t most_ns = w->used.ready_ns < all_ns ? all_ns - w->used.ready_ns : 0;

	budget_waited(r->budgets, q->uid, took_ns < most_ns ? took_ns : most_ns, ran_ns, bytes);
}

static bool is_ready(const struct reader *r)
{
	return helper_is_ready(&r->helper) || helper_is_ready(&r->parser);
}

/* Time in which the helpers work, or wait for a CPU, is not their client's to answer for. */
static unsigned int idle_ms_of(const struct helper_effort *e, unsigned int took_ms)
{
	uint64_t ms = (e->ran_ns + e->ready_ns) / 1000000;

	return ms < took_ms ? took_ms - (unsigned int)ms : 0;
}

/* The helpers' effort was *@start. Where this process, or the host, is late itself, each step is no
 * longer for that. */
static int wait_for_answer(struct reader *r, unsigned int wait_ms,
			   const struct helper_effort *start, struct waited *w)
{
	uint64_t since_ns = base_now_ns();
	int code = -ETIMEDOUT;

	for (unsigned int all_ms = 0; code == -ETIMEDOUT && w->idle_ms < wait_ms &&
				      all_ms < WAIT_MAX_MS && w->used.ran_ns < WORK_MAX_NS;) {
		unsigned int left_ms = wait_ms - w->idle_ms;
		unsigned int step_ms = left_ms < MEANWHILE_MS ? left_ms : MEANWHILE_MS;
		unsigned int rest_ms = step_ms;
		struct helper_effort now, used, step;

		code = base_wait_readable(r->helper.sock, &rest_ms);
		now = reader_effort(r);
		used = reader_effort_since(start, &now);
		step = reader_effort_since(&w->used, &used);
		w->used = used;
		if (code != -ETIMEDOUT || !is_ready(r))
			w->idle_ms += idle_ms_of(&step, step_ms - rest_ms);
		all_ms += step_ms;
		if (code == -ETIMEDOUT && r->meanwhile)
			r->meanwhile(r->ctx);
	}
	w->all_ns = base_now_ns() - since_ns;
	return code;
}

static int hear(struct reader *r, unsigned int wait_ms, struct reader_answer *a, int *fd_out,
		const struct helper_effort *before, struct waited *w)
{
	int none, code = wait_for_answer(r, wait_ms, before, w);

	if (code == 0)
		code = reader_receive(r->helper.sock, a, sizeof(*a), fd_out ? fd_out : &none);
	if (code == 0 && !fd_out && none >= 0)
		close(none);
	return code;
}

/*
 * Ask, wait, and charge the user. @fd is passed on (-1: none). Where @gives, ours is closed as soon
 * as the helper has its own, so that ours is not the last one of the file.
 */
static int call(struct reader *r, const struct reader_request *q, int fd, bool gives,
		struct reader_answer *a, int *fd_out)
{
	unsigned int wait_ms = wait_ms_of(r, q);
	uint64_t since_ns = base_now_ns();
	struct helper_effort before;
	struct waited w = { 0 };
	int code;

	*a = (struct reader_answer){ 0 };
	if (!wait_ms || r->making.asked) {
		if (gives)
			closer_close(fd);
		return wait_ms ? -EBUSY : -EDQUOT;
	}
	code = reader_ask(r, q, fd, &before);
	if (gives)
		close(fd);
	if (code == 0)
		code = hear(r, wait_ms, a, fd_out, &before, &w);
	if (code < 0)
		reader_dismiss(r);
	charge(r, q, since_ns, &w, a->len);
	/* Many short requests are as long as one that takes long. */
	if (r->meanwhile)
		r->meanwhile(r->ctx);
	return code == 0 ? a->status : code == -ETIMEDOUT ? code : -DCPI_EHELPER;
}

int reader_call(struct reader *r, const struct reader_request *q, int fd, struct reader_answer *a,
		int *fd_out)
{
	if (fd_out)
		*fd_out = -1;
	return call(r, q, fd, false, a, fd_out);
}

/* Ours is closed while the helper has another: its own is the last. */
void reader_release(struct reader *r, uint32_t uid, int fd)
{
	const struct reader_request q = { .op = READER_CLOSE, .uid = uid };
	struct reader_answer a;

	call(r, &q, fd, true, &a, NULL);
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

int reader_fetch(struct reader *r, const struct reader_answer *a, reader_check_fn *check,
		 struct base_buf *out)
{
	int code = fetch_answer(r, a, check, out);

	if (code != -DCPI_EFORMAT && code != -DCPI_ETRUNCATED)
		return code;
	reader_dismiss(r);
	return -DCPI_EHELPER;
}

int reader_call_checked(struct reader *r, const struct reader_request *q, int fd,
			struct reader_answer *a, reader_check_fn *check, struct base_buf *out)
{
	int status = reader_call(r, q, fd, a, NULL), code;

	if (status < 0)
		return status;
	code = reader_fetch(r, a, check, out);
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
