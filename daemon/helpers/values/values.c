/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpid runs the process of value profilers, sends traces to it, and takes its tuples. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "values_args.h"
#include "values_internal.h"

#define SECOND UINT64_C(1000000000)

/* ---- the process's beginnings and ends ------------------------------------------------------- */

/* One that was killed, or has crashed, is waited for so long; profilers have longer for their ends.
 */
enum { END_MS = 20, FINI_MS = 1000 };

/* How it ended; one held in the kernel counts as killed. */
static int end(struct values *v, bool kill_it, unsigned int wait_ms)
{
	int status = helper_end(&v->helper, kill_it, wait_ms);

	if (v->who >= 0)
		close(v->who);
	v->who = -1;
	v->state = VALUES_DEAD;
	if (v->known)
		memset(v->known, 0, v->cap_known * sizeof(*v->known));
	v->nr_known = 0;
	return status;
}

static int spawn(struct values *v)
{
	const char *args[VALUES_PROFILERS_MAX + 2] = { v->context ? "context" : "-" };
	const struct helper_start how = { .socket_type = SOCK_SEQPACKET,
					  .socket_fd = VALUES_SOCKET_FD,
					  .more_fds = &v->who,
					  .nr_more = 1,
					  .args = args };

	for (uint32_t i = 0; i < v->nr_profilers; i++)
		args[i + 1] = v->profilers[i].stats.given_up ? "-" : v->profilers[i].given;
	return helper_start(&v->helper, &how);
}

/* Begin a process, which will say when it is ready. 0 or -errno. */
static int start(struct values *v)
{
	int r;

	v->started_ns = v->looked_ns = base_now_ns();
	v->waited_ns = 0;
	v->who = memfd_create("dcpid-values", MFD_CLOEXEC);
	r = v->who < 0 || ftruncate(v->who, 1) < 0 ? -errno : spawn(v);
	if (r < 0) {
		end(v, true, END_MS);
		return r;
	}
	v->state = VALUES_STARTING;
	v->stats.starts++;
	return 0;
}

/* The last trace was: profilers come to their ends, for a second at most. It calls the profilers'
 * prof_fini and fini, which may be without end: then it is killed. */
static void finish(struct values *v)
{
	end(v, v->state != VALUES_RUNNING, v->state == VALUES_RUNNING ? FINI_MS : END_MS);
}

/* A profiler is not to be loaded again. */
static void give_up(struct values *v, uint32_t profiler, const char *why)
{
	struct values_profiler *p = &v->profilers[profiler];

	p->stats.given_up = true;
	base_log(BASE_LOG_WARN, "value profiler '%s' is given up: %s",
		 p->name[0] ? p->name : p->given, why);
}

bool values_any_left(const struct values *v)
{
	for (uint32_t i = 0; i < v->nr_profilers; i++)
		if (!v->profilers[i].stats.given_up)
			return true;
	return false;
}

/* The profiler that was working; NULL: none. */
static struct values_profiler *at_work(const struct values *v)
{
	uint8_t who = 0;

	if (v->who < 0 || pread(v->who, &who, 1, 0) != 1 || !who || who > v->nr_profilers)
		return NULL;
	return &v->profilers[who - 1];
}

static void note_fault(struct values *v, struct values_profiler *p, const char *what)
{
	const char *name = p ? p->name[0] ? p->name : p->given : "";

	if (!p) {
		base_log(BASE_LOG_WARN, "dcpid-values %s; traces lost: %u", what, v->nr_pending);
		return;
	}
	base_log(BASE_LOG_WARN, "value profiler '%s' %s; traces lost: %u", name, what,
		 v->nr_pending);
	if (p->stats.crashes + p->stats.hangs >= VALUES_FAULTS_MAX)
		give_up(v, (uint32_t)(p - v->profilers), "this was the last time");
}

/* It has not answered, or is at its end: end it, and note whose fault it was. Its
 * traces stay pending. */
static void end_hung(struct values *v)
{
	struct values_profiler *p = at_work(v);

	end(v, true, END_MS);
	if (p)
		p->stats.hangs++;
	note_fault(v, p, "does not answer");
}

static void end_crashed(struct values *v)
{
	struct values_profiler *p = at_work(v);
	char what[64];
	int status = end(v, false, END_MS);

	if (WIFSIGNALED(status))
		snprintf(what, sizeof(what), "was ended by signal %d", WTERMSIG(status));
	else
		snprintf(what, sizeof(what), "has ended its process");
	if (p)
		p->stats.crashes++;
	note_fault(v, p, what);
}

/* The next message, at most VALUES_MESSAGE_MAX bytes of it, never waiting: its length, 0: it has
 * ended, -EAGAIN: there is none, -errno. */
static ssize_t next_message(const struct values *v, void *to)
{
	ssize_t n;

	do
		n = recv(v->helper.sock, to, VALUES_MESSAGE_MAX, MSG_DONTWAIT | MSG_TRUNC);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* ---- opening --------------------------------------------------------------------------------- */

static bool is_built_in(const char *profiler)
{
	return !strcmp(profiler, "values") || !strcmp(profiler, "values.replay") ||
	       values_arg_of(profiler) >= 0;
}

static int set_up(struct values *v, const char *helper_dir, const char *const *profilers, size_t nr,
		  struct base_err *err)
{
	int found;

	if (nr > VALUES_PROFILERS_MAX)
		return base_fail(err, -DCPI_ELIMIT, "more than %d value profilers",
				 VALUES_PROFILERS_MAX);
	found = helper_find(&v->helper, helper_dir, "dcpid-values", err);
	if (found < 0)
		return found;
	v->profilers = calloc(nr ? nr : 1, sizeof(*v->profilers));
	for (size_t i = 0; v->profilers && i < nr; i++) {
		int r = is_built_in(profilers[i]) ? 0 : vtrace_profiler_check(profilers[i], err);

		if (r < 0)
			return r;
		v->profilers[i].given = strdup(profilers[i]);
		if (!v->profilers[i].given)
			return base_fail_errno(err, -ENOMEM, "cannot run value profilers");
		v->nr_profilers++;
	}
	return v->profilers ? 0 : base_fail_errno(err, -ENOMEM, "cannot run value profilers");
}

static void free_all(struct values *v)
{
	for (uint32_t i = 0; i < v->nr_profilers; i++)
		free(v->profilers[i].given);
	free(v->profilers);
	free(v->known);
	free(v);
}

static int take_ready(struct values *v, const void *message, size_t len)
{
	const struct values_ready *m = message;

	if (len != sizeof(*m) || m->type != VALUES_READY || m->log > VTRACE_LOG_TIMES)
		return -DCPI_EHELPER;
	/* A name is what it was the first time, whatever the profiler says of it later. */
	for (uint32_t i = 0; i < v->nr_profilers; i++)
		if (!v->profilers[i].name[0])
			snprintf(v->profilers[i].name, sizeof(v->profilers[i].name), "%.*s",
				 VTRACE_PROFILER_NAME - 1, m->names[i]);
	v->log = (enum vtrace_log)m->log;
	v->state = VALUES_RUNNING;
	return 0;
}

/* Take the message of a failure; the text of an untrusted process. */
static int take_failed(const void *message, size_t len, struct values_failed *out)
{
	memset(out, 0, sizeof(*out));
	if (len != sizeof(*out))
		return -DCPI_EHELPER;
	memcpy(out, message, sizeof(*out));
	out->err.text[sizeof(out->err.text) - 1] = '\0';
	out->err.hint[sizeof(out->err.hint) - 1] = '\0';
	if (out->type != VALUES_FAILED || out->err.code >= 0 || out->err.code <= -DCPI_ERROR_END)
		return -DCPI_EHELPER;
	return 0;
}

static int wait_for_message(const struct values *v, uint64_t deadline)
{
	struct pollfd p = { .fd = v->helper.sock, .events = POLLIN };
	uint64_t now;

	while ((now = base_now_ns()) < deadline) {
		int n = poll(&p, 1, (int)((deadline - now) / 1000000) + 1);

		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
	return -ETIMEDOUT;
}

/* No word of it: one of the profilers is at fault. */
static int fail_silent(struct values *v, bool hung, struct base_err *err)
{
	hung ? end_hung(v) : end_crashed(v);
	for (uint32_t i = 0; i < v->nr_profilers; i++)
		if (v->profilers[i].stats.crashes || v->profilers[i].stats.hangs)
			return base_fail(err, hung ? -ETIMEDOUT : -DCPI_EHELPER,
					 "cannot use value profiler '%s': it %s when it is loaded",
					 v->profilers[i].given,
					 hung ? "does not come back" : "crashes");
	return base_fail(err, hung ? -ETIMEDOUT : -DCPI_EHELPER, "'%s' %s", v->helper.program,
			 hung ? "does not answer" : "ended at once");
}

static int first_start(struct values *v, struct base_err *err)
{
	static _Alignas(8) uint8_t message[VALUES_MESSAGE_MAX];
	struct values_failed failed;
	ssize_t n;
	int r = start(v);

	if (r < 0)
		return base_fail_errno(err, r, "cannot start '%s'", v->helper.program);
	r = wait_for_message(v, base_now_ns() + VALUES_START_PATIENCE * v->patience_ns);
	n = r < 0 ? 0 : next_message(v, message);
	if (r < 0 || n <= 0)
		return fail_silent(v, r == -ETIMEDOUT, err);
	if (take_ready(v, message, (size_t)n) == 0)
		return 0;
	if (take_failed(message, (size_t)n, &failed) < 0)
		return base_fail(err, -DCPI_EHELPER, "'%s' gave no proper answer",
				 v->helper.program);
	base_fail(err, failed.err.code, "%s", failed.err.text);
	if (failed.err.hint[0])
		base_hint(err, "%s", failed.err.hint);
	return failed.err.code;
}

int values_open_timeout(const char *helper_dir, const char *const *profilers, size_t nr,
			bool context, uint64_t patience_ns, struct values **out,
			struct base_err *err)
{
	struct values *v = calloc(1, sizeof(*v));
	int r;

	*out = NULL;
	if (!v)
		return base_fail_errno(err, -ENOMEM, "cannot run value profilers");
	v->helper.sock = v->who = -1;
	v->context = context;
	v->patience_ns = patience_ns;
	v->pause_ns = SECOND;
	r = set_up(v, helper_dir, profilers, nr, err);
	if (r >= 0)
		r = first_start(v, err);
	if (r < 0)
		values_close(v);
	else
		*out = v;
	return r;
}

int values_open(const char *helper_dir, const char *const *profilers, size_t nr, bool context,
		struct values **out, struct base_err *err)
{
	return values_open_timeout(helper_dir, profilers, nr, context, SECOND, out, err);
}

void values_close(struct values *v)
{
	if (!v)
		return;
	finish(v);
	free_all(v);
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Whole or not at all. */
static int send_parts(struct values *v, struct iovec *parts, size_t nr)
{
	const struct msghdr m = { .msg_iov = parts, .msg_iovlen = nr };
	ssize_t n;

	do
		n = sendmsg(v->helper.sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	/* values_receive notices if it has ended. */
	return n < 0 ? -EAGAIN : 0;
}

/* Not 0. */
static uint64_t hash_of(const struct vtrace_code *c)
{
	return base_hash64(&c->block, offsetof(struct vtrace_block, code) + c->block.len) | 1;
}

static int send_block(struct values *v, const struct vtrace_code *c, uint32_t id)
{
	struct values_block head = { .type = VALUES_BLOCK, .block = c->block };
	struct iovec parts[] = {
		{ &head, sizeof(head) },
		{ (void *)(uintptr_t)c->uops, c->block.nr_uops * sizeof(c->uops[0]) },
		{ (void *)(uintptr_t)c->insns, c->block.nr_insns * sizeof(c->insns[0]) },
	};
	size_t old = v->cap_known;
	uint64_t hash = hash_of(c);
	int r;

	if (c->block.nr_uops > VTRACE_BLOCK_UOPS || c->block.nr_insns > VTRACE_BLOCK_INSNS ||
	    c->block.len > VTRACE_BLOCK_BYTES || id >= VALUES_IDS_MAX)
		return -DCPI_EFORMAT;
	if (base_grow(&v->known, &v->cap_known, id + 1, sizeof(*v->known)) < 0)
		return -ENOMEM;
	memset(v->known + old, 0, (v->cap_known - old) * sizeof(*v->known));
	if (v->known[id] == hash)
		return 0;
	head.block.id = id;
	r = send_parts(v, parts, 3);
	if (r < 0)
		return r;
	v->nr_known += !v->known[id];
	v->known[id] = hash;
	return 0;
}

static int send_blocks(struct values *v, const struct insn_trace *w, const uint64_t *words,
		       vtrace_block_fn *get, void *ctx)
{
	struct vtrace_visit visit = { 0 };
	int r;

	while ((r = vtrace_visit_read(words, w->nr_words, visit.end, &visit)) > 0) {
		const struct vtrace_code *c = get(ctx, visit.id);

		r = c ? send_block(v, c, visit.id) : -DCPI_EFORMAT;
		if (r < 0)
			break;
	}
	return r;
}

static int forget_blocks(struct values *v)
{
	uint32_t message[2] = { VALUES_FORGET };
	struct iovec part = { message, sizeof(message) };
	int r = send_parts(v, &part, 1);

	if (r < 0)
		return r;
	memset(v->known, 0, v->cap_known * sizeof(*v->known));
	v->nr_known = 0;
	return 0;
}

static int send_trace(struct values *v, uint64_t ticket, const struct insn_trace *w,
		      const uint64_t *words)
{
	struct values_trace head = { .type = VALUES_TRACE, .ticket = ticket, .w = *w };
	struct iovec parts[] = {
		{ &head, sizeof(head) },
		{ (void *)(uintptr_t)words, insn_trace_words(w) * sizeof(*words) },
	};

	return send_parts(v, parts, 2);
}

int values_send(struct values *v, uint64_t ticket, const struct insn_trace *w,
		const uint64_t *words, vtrace_block_fn *get, void *ctx)
{
	int r = 0;

	if (!(w->has & INSN_TRACE_VALUES) || w->nr_words > VTRACE_NR_WORDS)
		return -DCPI_EFORMAT;
	if (v->state != VALUES_RUNNING && !values_any_left(v))
		return -DCPI_EHELPER;
	if (v->state != VALUES_RUNNING || v->nr_pending == VALUES_PENDING_MAX)
		r = -EAGAIN;
	if (r == 0 && v->nr_known >= VALUES_BLOCKS_MAX)
		r = forget_blocks(v);
	if (r == 0)
		r = send_blocks(v, w, words, get, ctx);
	if (r == 0)
		r = send_trace(v, ticket, w, words);
	if (r == -EAGAIN)
		v->stats.busy++;
	if (r < 0)
		return r;
	/* Until now it had nothing to answer. */
	if (!v->nr_pending)
		v->waited_ns = 0;
	v->pending[(v->first + v->nr_pending++) % VALUES_PENDING_MAX].ticket = ticket;
	v->stats.sent++;
	return 0;
}

/* ---- receiving ------------------------------------------------------------------------------- */

struct receiver {
	int (*fn)(void *ctx, uint64_t ticket, size_t profiler, const struct values_tuple *t,
		  size_t nr);
	void *ctx;
	int calls;
};

static int hand_on(struct receiver *to, uint64_t ticket, uint32_t profiler,
		   const struct values_tuple *t, size_t nr)
{
	int r = to->fn(to->ctx, ticket, profiler, t, nr);

	to->calls++;
	return r < 0 ? r : 0;
}

/* The oldest trace's profilers up to @until have nothing to say. */
static int hand_on_none(struct values *v, struct receiver *to, uint32_t until)
{
	uint64_t ticket = v->pending[v->first].ticket;
	uint32_t *next = &v->pending[v->first].next;
	int r = 0;

	while (r >= 0 && *next < until)
		r = hand_on(to, ticket, (*next)++, NULL, 0);
	return r;
}

static bool all_given_up(const struct values *v, uint32_t from)
{
	while (from < v->nr_profilers && v->profilers[from].stats.given_up)
		from++;
	return from == v->nr_profilers;
}

static void drop_first(struct values *v)
{
	v->pending[v->first].next = 0;
	v->first = (v->first + 1) % VALUES_PENDING_MAX;
	v->nr_pending--;
}

static bool is_expected(const struct values *v, const struct values_tuples *m, size_t len)
{
	return len >= sizeof(*m) && m->type == VALUES_TUPLES && v->nr_pending &&
	       m->ticket == v->pending[v->first].ticket && m->profiler < v->nr_profilers &&
	       m->profiler >= v->pending[v->first].next && m->nr <= VSAMPLE_BUFFER_SIZE &&
	       len == sizeof(*m) + m->nr * sizeof(struct values_tuple);
}

/* One profiler's answer; *@fault: it is none. */
static int take_tuples(struct values *v, const void *message, size_t len, struct receiver *to,
		       bool *fault)
{
	const struct values_tuples *m = message;
	struct values_profiler_stats *s;
	uint64_t ticket;
	int r;

	*fault = !is_expected(v, m, len);
	if (*fault)
		return 0;
	ticket = m->ticket;
	s = &v->profilers[m->profiler].stats;
	r = hand_on_none(v, to, m->profiler);
	v->pending[v->first].next = m->profiler + 1;
	s->tuples += m->nr;
	s->wild += m->wild;
	if (r >= 0)
		r = hand_on(to, ticket, m->profiler, (const struct values_tuple *)(m + 1), m->nr);
	if (all_given_up(v, m->profiler + 1)) {
		if (r >= 0)
			r = hand_on_none(v, to, v->nr_profilers);
		v->stats.answered++;
		v->stats.bad += m->bad != 0;
		drop_first(v);
	}
	return r;
}

/* It has begun anew. */
static void take_start(struct values *v, const void *message, size_t len)
{
	struct values_failed failed;

	if (take_ready(v, message, len) == 0)
		return;
	if (take_failed(message, len, &failed) == 0 && failed.profiler < v->nr_profilers)
		give_up(v, failed.profiler, failed.err.text);
	else
		base_log(BASE_LOG_WARN, "'%s' gave no proper answer", v->helper.program);
	end(v, true, END_MS);
}

/* All that has come. */
static int take_messages(struct values *v, struct receiver *to)
{
	static _Alignas(8) uint8_t message[VALUES_MESSAGE_MAX];
	bool fault = false;
	int r = 0;

	while (r >= 0 && v->state != VALUES_DEAD) {
		ssize_t n = next_message(v, message);

		if (n == -EAGAIN)
			return r;
		v->waited_ns = 0;
		if (n <= 0)
			end_crashed(v);
		else if (n > VALUES_MESSAGE_MAX)
			fault = true;
		else if (v->state == VALUES_STARTING)
			take_start(v, message, (size_t)n);
		else
			r = take_tuples(v, message, (size_t)n, to, &fault);
		if (fault)
			end_hung(v);
	}
	return r;
}

/* While nobody looked, nobody waited: a daemon that was stopped blames no profiler. */
static void look_at_the_clock(struct values *v)
{
	uint64_t now = base_now_ns(), since = now - v->looked_ns;

	v->looked_ns = now;
	if (v->state == VALUES_DEAD || (v->state == VALUES_RUNNING && !v->nr_pending))
		return;
	v->waited_ns += since < v->patience_ns / 2 ? since : v->patience_ns / 2;
	if (v->waited_ns >
	    (v->state == VALUES_STARTING ? VALUES_START_PATIENCE : 1) * v->patience_ns)
		end_hung(v);
}

static int lose_pending(struct values *v, struct receiver *to)
{
	int r = 0;

	while (r >= 0 && v->nr_pending) {
		r = hand_on_none(v, to, v->nr_profilers);
		if (r >= 0) {
			drop_first(v);
			v->stats.lost++;
		}
	}
	return r;
}

int values_receive(struct values *v,
		   int (*fn)(void *ctx, uint64_t ticket, size_t profiler,
			     const struct values_tuple *t, size_t nr),
		   void *ctx)
{
	struct receiver to = { fn, ctx, 0 };
	int r = take_messages(v, &to);

	if (r >= 0)
		look_at_the_clock(v);
	if (r >= 0 && v->state == VALUES_DEAD)
		r = lose_pending(v, &to);
	if (r >= 0 && v->state == VALUES_DEAD && values_any_left(v) &&
	    base_now_ns() - v->started_ns >= v->pause_ns && start(v) < 0)
		base_log(BASE_LOG_WARN, "cannot start '%s'", v->helper.program);
	return r < 0 ? r : to.calls;
}

/* ---- questions ------------------------------------------------------------------------------- */

const char *values_of_vprof(size_t index)
{
	static const char *const names[] = {
		"values",	VALUES_ARG "0", VALUES_ARG "1", VALUES_ARG "2", VALUES_ARG "3",
		VALUES_ARG "4", VALUES_ARG "5", VALUES_ARG "6", VALUES_ARG "7",
	};

	return index <= VALUES_NR_ARGS ? names[index] : NULL;
}

const char *values_name(const struct values *v, size_t index)
{
	return index < v->nr_profilers ? v->profilers[index].name : "";
}

enum vtrace_log values_log(const struct values *v)
{
	return v->log;
}

int values_poll_fd(const struct values *v)
{
	return v->helper.sock;
}

void values_stats_get(const struct values *v, struct values_stats *out)
{
	*out = v->stats;
}

void values_profiler_stats_get(const struct values *v, size_t index,
			       struct values_profiler_stats *out)
{
	*out = index < v->nr_profilers ? v->profilers[index].stats
				       : (struct values_profiler_stats){ 0 };
}
