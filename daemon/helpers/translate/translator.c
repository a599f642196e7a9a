/* SPDX-License-Identifier: BSD-2-Clause */
/* The helper that translates: its life, and one request at a time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "helper.h"
#include "translator.h"

enum { TIMEOUT_MS = 1000, END_MS = 1000 };

struct translator {
	struct helper helper;
	unsigned int timeout_ms;
	size_t have; /* bytes of the answer */
	struct {
		struct translator_request head;
		uint8_t code[TRANSLATOR_CODE];
	} request;
	struct {
		struct translator_answer head;
		struct vtrace_code blocks[TRANSLATOR_BLOCKS];
	} answer;
};

int translator_arch(enum vtrace_arch *out)
{
#if defined(__x86_64__)
	*out = VTRACE_X86_64;
	return 0;
#elif defined(__aarch64__)
	*out = VTRACE_AARCH64;
	return 0;
#else
	(void)out;
	return -DCPI_EUNSUPPORTED;
#endif
}

/* ---- the helper's life ----------------------------------------------------------------------- */

static int spawn(struct translator *t)
{
	const struct helper_start how = { .socket_type = SOCK_STREAM,
					  .socket_fd = TRANSLATOR_SOCKET };

	return helper_start(&t->helper, &how);
}

/* It computes and nothing else: once killed it is gone soon. */
static void dismiss(struct translator *t)
{
	helper_end(&t->helper, true, END_MS);
}

int translator_open(const char *helper_dir, struct translator **out, struct base_err *err)
{
	struct translator *t = calloc(1, sizeof(*t));
	int r;

	*out = NULL;
	if (!t)
		return base_fail_errno(err, -ENOMEM, "cannot start 'dcpid-translate'");
	t->timeout_ms = TIMEOUT_MS;
	r = helper_find(&t->helper, helper_dir, "dcpid-translate", err);
	if (r < 0)
		free(t);
	else
		*out = t;
	return r;
}

void translator_close(struct translator *t)
{
	if (!t)
		return;
	dismiss(t);
	free(t);
}

void translator_set_patience(struct translator *t, unsigned int ms)
{
	t->timeout_ms = ms;
}

pid_t translator_pid(const struct translator *t)
{
	return t->helper.pid;
}

uint64_t translator_cpu_ns(const struct translator *t)
{
	uint64_t own = base_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	clockid_t clock;

	return t->helper.pid && clock_getcpuclockid(t->helper.pid, &clock) == 0
		       ? own + base_clock_ns(clock)
		       : own;
}

/* ---- one request ----------------------------------------------------------------------------- */

/* One that does not read does not hold us up: a request fits into an empty socket. */
static int send_request(struct translator *t, size_t len)
{
	ssize_t n;

	do
		n = send(t->helper.sock, &t->request, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)len ? 0 : -DCPI_EHELPER;
}

/* Until @want bytes of the answer are there. */
static int receive(struct translator *t, size_t want, unsigned int *left_ms)
{
	while (t->have < want) {
		int r = base_wait_readable(t->helper.sock, left_ms);
		ssize_t n;

		if (r < 0)
			return r;
		n = recv(t->helper.sock, (uint8_t *)&t->answer + t->have, want - t->have,
			 MSG_DONTWAIT);
		if (!n || (n < 0 && errno != EINTR && errno != EAGAIN))
			return -DCPI_EHELPER;
		t->have += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int receive_answer(struct translator *t)
{
	const struct translator_answer *a = &t->answer.head;
	unsigned int left_ms = t->timeout_ms;
	int r;

	t->have = 0;
	r = receive(t, sizeof(*a), &left_ms);
	if (r == 0 && a->nr > TRANSLATOR_BLOCKS)
		r = -DCPI_EHELPER;
	return r < 0 ? r : receive(t, sizeof(*a) + a->nr * sizeof(struct vtrace_code), &left_ms);
}

int translator_call(struct translator *t, const struct translator_request *q, const uint8_t *code,
		    const struct vtrace_code **blocks)
{
	int r = 0;

	if (!q->len || q->len > TRANSLATOR_CODE || q->pc - q->base >= q->len ||
	    q->len - (q->pc - q->base) < vtrace_place_len(q->pc))
		return -EINVAL;
	t->request.head = *q;
	memcpy(t->request.code, code, q->len);
	if (!t->helper.pid)
		r = spawn(t);
	if (r == 0)
		r = send_request(t, sizeof(*q) + q->len);
	if (r == 0)
		r = receive_answer(t);
	if (r == 0)
		r = translator_check(q, code, &t->answer, t->have, blocks);
	if (r < 0)
		dismiss(t);
	return r;
}

int translator_ready(struct translator *t)
{
	static const uint8_t code[TRANSLATOR_CODE];
	struct translator_request q = { .len = sizeof(code) };
	unsigned int patience_ms = t->timeout_ms;
	const struct vtrace_code *blocks;
	enum vtrace_arch arch;
	int r = t->helper.pid ? 0 : translator_arch(&arch);

	if (r < 0 || t->helper.pid)
		return r;
	q.arch = arch;
	t->timeout_ms = TIMEOUT_MS;
	r = translator_call(t, &q, code, &blocks);
	t->timeout_ms = patience_ms;
	return r < 0 ? r : 0;
}
