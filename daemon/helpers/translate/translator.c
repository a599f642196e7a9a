/* SPDX-License-Identifier: BSD-2-Clause */
/* The helper that translates: its life, and one request at a time, whose answer is checked. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "helper.h"
#include "translator.h"

/* ---- check of answers ------------------------------------------------------------------------ */

/* Answers are untrusted, since the code that the helper read may have taken it over. */

/* The bytes of a block behind its code, which must not hold anything. */
static bool is_zero(const uint8_t *p, size_t len)
{
	while (len && !*p)
		p++, len--;
	return !len;
}

/* It lies within the code that was sent, and holds the same bytes. */
static bool is_of_code(const struct translator_request *q, const uint8_t *code,
		       const struct vtrace_code *c)
{
	const struct vtrace_block *b = &c->block;
	uint64_t off = b->pc - q->base;
	struct vtrace_place place;

	return b->pc >= q->base && off < q->len && b->len <= q->len - off &&
	       memcmp(code + off, b->code, b->len) == 0 &&
	       vtrace_place_of(b->pc, code + off, q->len - off, &place) &&
	       memcmp(&place, &c->place, sizeof(place)) == 0;
}

static bool uops_are_sound(const struct vtrace_code *c)
{
	const struct vtrace_block *b = &c->block;

	if (!b->nr_uops || b->nr_uops > VTRACE_BLOCK_UOPS)
		return false;
	for (size_t i = 0; i < b->nr_uops; i++)
		if (!vtrace_uop_is_sound(&c->uops[i]))
			return false;
	return c->uops[b->nr_uops - 1].marks & VTRACE_LAST;
}

/* Where the micro-ops of the instruction behind the one at @first begin. */
static size_t behind(const struct vtrace_code *c, size_t first)
{
	while (first < c->block.nr_uops && !(c->uops[first].marks & VTRACE_LAST))
		first++;
	return first + 1;
}

/* One after the other they make up the block, and their micro-ops the block's. */
static bool insns_are_sound(const struct vtrace_code *c)
{
	const struct vtrace_block *b = &c->block;
	size_t off = 0, first = 0;

	if (!b->nr_insns || b->nr_insns > VTRACE_BLOCK_INSNS)
		return false;
	for (size_t i = 0; i < b->nr_insns; i++) {
		const struct vtrace_insn *n = &c->insns[i];

		if (n->offset != off || !n->len || n->class >= VTRACE_NR_CLASSES ||
		    n->first != first || first >= b->nr_uops)
			return false;
		off += n->len;
		first = behind(c, first);
	}
	return off == b->len && first == b->nr_uops;
}

bool translator_block_is_sound(const struct vtrace_code *c)
{
	const struct vtrace_block *b = &c->block;

	return b->len && b->len <= VTRACE_BLOCK_BYTES &&
	       is_zero(b->code + b->len, VTRACE_BLOCK_BYTES - b->len) && uops_are_sound(c) &&
	       insns_are_sound(c) && c->nr_successors <= 2;
}

int translator_check(const struct translator_request *q, const uint8_t *code, const void *answer,
		     size_t len, const struct vtrace_code **blocks)
{
	const struct translator_answer *a = answer;
	const struct vtrace_code *c = (const void *)(a + 1);

	if (len < sizeof(*a) || !a->nr || a->nr > TRANSLATOR_BLOCKS ||
	    len != sizeof(*a) + a->nr * sizeof(*c) || c->block.pc != q->pc)
		return -DCPI_EHELPER;
	for (size_t i = 0; i < a->nr; i++)
		if (!translator_block_is_sound(&c[i]) || !is_of_code(q, code, &c[i]))
			return -DCPI_EHELPER;
	*blocks = c;
	return (int)a->nr;
}

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
	return base_clock_ns(CLOCK_PROCESS_CPUTIME_ID) + helper_cpu_ns(&t->helper);
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
