/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpid starts dcpid-step, and takes and checks the blocks and traces that it sends. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "helper.h"
#include "step.h"
#include "step_wire.h"
#include "translator.h"

/* ---- check of what comes --------------------------------------------------------------------- */

int step_trace_check(const void *message, size_t len)
{
	const struct step_trace *m = message;

	if (len < sizeof(*m) || m->type != STEP_TRACE || m->w.nr_words > VTRACE_NR_WORDS ||
	    m->w.nr_fixes > VTRACE_NR_FIXES || m->w.end >= VTRACE_NR_ENDS ||
	    m->w.has != (INSN_TRACE_VALUES | INSN_TRACE_STEPPED))
		return -DCPI_EFORMAT;
	if (!m->w.nr_words || !m->w.nr_insns || m->w.nr_insns > STEP_INSNS)
		return -DCPI_EFORMAT;
	return len == sizeof(*m) + insn_trace_words(&m->w) * sizeof(uint64_t) ? 0 : -DCPI_EFORMAT;
}

static size_t size_of_uops(const struct vtrace_block *b)
{
	return b->nr_uops * sizeof(struct vtrace_uop);
}

static bool is_block(const struct step_block *m, size_t len)
{
	const struct vtrace_block *b = &m->block;

	if (len < sizeof(*m) || m->type != STEP_BLOCK || b->nr_uops > VTRACE_BLOCK_UOPS ||
	    b->nr_insns > VTRACE_BLOCK_INSNS || b->len > VTRACE_BLOCK_BYTES ||
	    b->id < STEP_ID_FIRST || b->id >= STEP_ID_END)
		return false;
	return len == sizeof(*m) + size_of_uops(b) + b->nr_insns * sizeof(struct vtrace_insn);
}

int step_block_take(const void *message, size_t len, struct vtrace_code **out)
{
	const struct step_block *m = message;
	struct vtrace_code *c;
	size_t uops;

	*out = NULL;
	if (!is_block(m, len))
		return -DCPI_EFORMAT;
	uops = size_of_uops(&m->block);
	c = calloc(1, offsetof(struct vtrace_code, uops) + uops);
	if (!c)
		return -ENOMEM;
	c->block = m->block;
	memcpy(c->uops, m + 1, uops);
	memcpy(c->insns, (const char *)(m + 1) + uops, m->block.nr_insns * sizeof(*c->insns));
	/* Its code is what it says: the program's cannot be looked at here. */
	if (!translator_block_is_sound(c)) {
		free(c);
		return -DCPI_EFORMAT;
	}
	*out = c;
	return 0;
}

enum { START_MS = 10000, END_MS = 1000, TURN_MAX = 256 };

struct step {
	struct helper helper;
	char helper_dir[500];
	pid_t target;
	struct vtrace_code *blocks[STEP_ID_END - STEP_ID_FIRST];
	struct step_stats stats;
};

/* ---- its life -------------------------------------------------------------------------------- */

static int spawn(struct step *s)
{
	char pid[16];
	const char *const args[] = { s->helper_dir, pid, NULL };
	const struct helper_start how = { .socket_type = SOCK_SEQPACKET,
					  .socket_fd = STEP_SOCKET_FD,
					  .args = args };

	snprintf(pid, sizeof(pid), "%d", (int)s->target);
	return helper_start(&s->helper, &how);
}

/* It may be killed at any time: what it stopped runs again. */
static int dismiss(struct step *s)
{
	s->stats.ended = true;
	return helper_end(&s->helper, true, END_MS);
}

void step_close(struct step *s)
{
	if (!s)
		return;
	dismiss(s);
	for (size_t i = 0; i < sizeof(s->blocks) / sizeof(*s->blocks); i++)
		free(s->blocks[i]);
	free(s);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Its length, 0: it has ended, -EAGAIN: there is none. */
static ssize_t next_message(const struct step *s, void *to)
{
	ssize_t n;

	do
		n = recv(s->helper.sock, to, STEP_MESSAGE_MAX, MSG_DONTWAIT | MSG_TRUNC);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* A word of it, its text such that it can be printed. */
static int take_word(const void *message, size_t len, struct step_word *out)
{
	if (len != sizeof(*out))
		return -DCPI_EFORMAT;
	memcpy(out, message, sizeof(*out));
	out->err.text[sizeof(out->err.text) - 1] = '\0';
	out->err.hint[sizeof(out->err.hint) - 1] = '\0';
	return out->type == STEP_READY || out->type == STEP_FAILED || out->type == STEP_ENDED
		       ? 0
		       : -DCPI_EFORMAT;
}

static int wait_for_word(const struct step *s, struct step_word *out)
{
	static _Alignas(8) uint8_t message[STEP_MESSAGE_MAX];
	struct pollfd p = { .fd = s->helper.sock, .events = POLLIN };
	ssize_t n;
	int r;

	do
		r = poll(&p, 1, START_MS);
	while (r < 0 && errno == EINTR);
	if (r <= 0)
		return -ETIMEDOUT;
	n = next_message(s, message);
	return n <= 0 || take_word(message, (size_t)n, out) < 0 ? -DCPI_EHELPER : 0;
}

static int start(struct step *s, struct base_err *err)
{
	struct step_word word;
	int r;

	r = helper_find(&s->helper, s->helper_dir, "dcpid-step", err);
	if (r < 0)
		return r;
	r = spawn(s);
	if (r == 0)
		r = wait_for_word(s, &word);
	if (r < 0)
		return base_fail_errno(err, r, "cannot start '%s'", s->helper.program);
	if (word.type == STEP_READY)
		return 0;
	base_fail(err, word.err.code < 0 ? word.err.code : -DCPI_EHELPER, "%s", word.err.text);
	if (word.err.hint[0])
		base_hint(err, "%s", word.err.hint);
	return err->code;
}

static bool is_possible(void)
{
#if defined(__x86_64__)
	return true;
#else
	return false;
#endif
}

int step_open(const char *helper_dir, pid_t pid, struct step **out, struct base_err *err)
{
	struct step *s = calloc(1, sizeof(*s));
	int r;

	*out = NULL;
	if (!s)
		return base_fail_errno(err, -ENOMEM, "cannot step");
	s->helper.sock = -1;
	s->target = pid;
	snprintf(s->helper_dir, sizeof(s->helper_dir), "%s", helper_dir);
	r = is_possible()
		    ? start(s, err)
		    : base_fail(err, -DCPI_EUNSUPPORTED, "programs are stepped on x86-64 only");
	if (r < 0)
		step_close(s);
	else
		*out = s;
	return r;
}

static int take_block(struct step *s, const void *message, size_t len)
{
	struct vtrace_code *c, **at;
	int r = step_block_take(message, len, &c);

	if (r < 0)
		return r;
	at = &s->blocks[c->block.id - STEP_ID_FIRST];
	/* Traces that name it may be under way. */
	if (*at) {
		free(c);
		return -DCPI_EFORMAT;
	}
	*at = c;
	return 0;
}

struct taker {
	void (*fn)(void *ctx, const struct insn_trace *w, const uint64_t *words);
	void *ctx;
};

static int take(struct step *s, const void *message, size_t len, const struct taker *to)
{
	const struct step_trace *m = message;
	uint32_t type;

	if (len < sizeof(type) || len > STEP_MESSAGE_MAX)
		return -DCPI_EFORMAT;
	memcpy(&type, message, sizeof(type));
	if (type == STEP_BLOCK)
		return take_block(s, message, len);
	if (step_trace_check(message, len) < 0 || m->w.tgid != (uint32_t)s->target)
		return -DCPI_EFORMAT;
	s->stats.instructions += m->w.nr_insns;
	s->stats.stopped_ns += m->stopped_ns;
	s->stats.by_end[m->w.end]++;
	to->fn(to->ctx, &m->w, (const uint64_t *)(m + 1));
	return 0;
}

/* True: there was a message, and more may come. */
static bool receive_one(struct step *s, const struct taker *to)
{
	static _Alignas(8) uint8_t message[STEP_MESSAGE_MAX];
	struct step_word word;
	ssize_t n = next_message(s, message);
	int status;

	if (n == -EAGAIN)
		return false;
	if (n > 0 && take(s, message, (size_t)n, to) == 0)
		return true;
	if (n > 0 && take_word(message, (size_t)n, &word) == 0 && word.type == STEP_ENDED) {
		dismiss(s);
		base_log(BASE_LOG_INFO, "stepping ends: %s", word.err.text);
		return false;
	}
	status = dismiss(s);
	base_log(BASE_LOG_WARN, "stepping ends: dcpid-step %s (%d)",
		 n > 0 ? "gave no proper answer" : "was ended", status);
	return false;
}

void step_receive(struct step *s,
		  void (*fn)(void *ctx, const struct insn_trace *w, const uint64_t *words),
		  void *ctx)
{
	const struct taker to = { fn, ctx };

	for (int i = 0; s->helper.sock >= 0 && i < TURN_MAX && receive_one(s, &to); i++)
		;
}

/* ---- questions ------------------------------------------------------------------------------- */

bool step_has_id(uint32_t id)
{
	return id >= STEP_ID_FIRST && id < STEP_ID_END;
}

const struct vtrace_code *step_block(const struct step *s, uint32_t id)
{
	return s && step_has_id(id) ? s->blocks[id - STEP_ID_FIRST] : NULL;
}

pid_t step_pid(const struct step *s)
{
	return s->helper.pid;
}

int step_poll_fd(const struct step *s)
{
	return s->helper.sock;
}

void step_stats_get(const struct step *s, struct step_stats *out)
{
	*out = s->stats;
}
