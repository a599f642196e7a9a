/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps one program for dcpid (step.c): "dcpid-step HELPERS PID". Of all rights it keeps that of
 * ptrace. Whenever it is killed, the thread that it stopped goes on.
 */
#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "step_record.h"

enum {
	SHARE = 20,	   /* a thread stands for at most this part of the time */
	PAUSE_MS = 20,	   /* at least, and so much more by chance, that it may not keep in step */
	TRANSLATE_MS = 50, /* while a thread stands */
};

/* ---- rights ---------------------------------------------------------------------------------- */

static int give_up_root(struct base_err *err)
{
	int r = prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 ? -errno : base_ids_drop();

	return r < 0 ? base_fail_errno(err, r, "cannot become another user") : 0;
}

static int keep_one_right(struct base_err *err)
{
	int r = base_rights_keep(1ull << CAP_SYS_PTRACE, err);

	/* The data that pass here are a program's. Without that right it is this user's own. */
	if (r > 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		r = base_fail_errno(err, -errno, "cannot forbid inspection");
	return r;
}

/* dcpid may have ended before it could be asked for. */
static int end_with_parent(struct base_err *err)
{
	struct pollfd p = { .fd = STEP_SOCKET_FD };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || poll(&p, 1, 0) != 0)
		return base_fail(err, -DCPI_EHELPER, "dcpid is gone");
	return 0;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* False: nobody is there any more. */
static bool send_parts(struct iovec *parts, size_t nr)
{
	const struct msghdr m = { .msg_iov = parts, .msg_iovlen = nr };
	ssize_t n;

	do
		n = sendmsg(STEP_SOCKET_FD, &m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n >= 0;
}

static bool send_word(enum step_type type, const struct base_err *err)
{
	struct step_word word = { .type = type, .err = *err };
	struct iovec part = { &word, sizeof(word) };

	return send_parts(&part, 1);
}

static bool send_block(const struct vtrace_code *c)
{
	struct step_block head = { .type = STEP_BLOCK, .block = c->block };
	struct iovec parts[] = {
		{ &head, sizeof(head) },
		{ (void *)(uintptr_t)c->uops, c->block.nr_uops * sizeof(c->uops[0]) },
		{ (void *)(uintptr_t)c->insns, c->block.nr_insns * sizeof(c->insns[0]) },
	};

	return send_parts(parts, 3);
}

/* While nobody stands: dcpid may be slow. */
static bool send_burst(struct step_recorder *r, size_t *nr_blocks)
{
	struct iovec part = { &r->out, sizeof(r->out.head) + insn_trace_words(&r->out.head.w) *
								     sizeof(r->out.words[0]) };

	while (*nr_blocks < r->blocks.nr)
		if (!send_block(r->blocks.all[(*nr_blocks)++]))
			return false;
	return send_parts(&part, 1);
}

/* ---- bursts ---------------------------------------------------------------------------------- */

/* True: go on. */
static bool pause_between(const struct step_recorder *r, bool *gone)
{
	struct pollfd p[] = {
		{ .fd = STEP_SOCKET_FD, .events = POLLIN },
		{ .fd = r->target.fd, .events = POLLIN },
	};
	uint64_t stood_ms = r->out.head.stopped_ns / 1000000 + 1;
	uint64_t ms = stood_ms * (SHARE - 1), least = PAUSE_MS + (uint64_t)random() % PAUSE_MS;
	int n = poll(p, 2, (int)(ms > least ? ms : least));

	*gone = n > 0 && p[1].revents;
	return n == 0 || (n < 0 && errno == EINTR);
}

static void serve(struct step_recorder *r)
{
	struct base_err err = { 0 };
	size_t nr_blocks = 0;
	bool gone = false;

	do {
		int n = step_record(r);

		if (n < 0) {
			base_fail(&err, n, "no process to step with can be had");
			send_word(STEP_ENDED, &err);
			return;
		}
		if (n > 0 && !send_burst(r, &nr_blocks))
			return;
	} while (pause_between(r, &gone));
	if (!gone)
		return;
	base_fail(&err, -ESRCH, "process %d has ended", (int)r->target.pid);
	send_word(STEP_ENDED, &err);
}

/* ---- beginning ------------------------------------------------------------------------------- */

static int begin(struct step_recorder *r, const char *helpers, const char *pid,
		 struct base_err *err)
{
	int ret = give_up_root(err);

	if (ret >= 0)
		ret = keep_one_right(err);
	if (ret >= 0)
		ret = end_with_parent(err);
	if (ret >= 0)
		ret = translator_open(helpers, &r->translator, err);
	if (ret < 0)
		return ret;
	translator_set_patience(r->translator, TRANSLATE_MS);
	return step_record_open(r, (pid_t)strtol(pid, NULL, 10), err);
}

int main(int argc, char **argv)
{
	static struct step_recorder r = { .target.fd = -1 };
	struct base_err err = { 0 };
	int ret;

	if (argc != 3) {
		fputs("dcpid-step: not for use by hand: dcpid starts it\n", stderr);
		return BASE_EXIT_USAGE;
	}
	srandom((unsigned int)base_now_ns());
	ret = begin(&r, argv[1], argv[2], &err);
	if (ret < 0)
		send_word(STEP_FAILED, &err);
	else if (send_word(STEP_READY, &err))
		serve(&r);
	step_record_release(&r);
	return ret < 0 ? BASE_EXIT_FAILED : BASE_EXIT_OK;
}
