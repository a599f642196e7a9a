/* SPDX-License-Identifier: BSD-2-Clause */
/* The process that runs value profilers: its beginnings and ends. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "values_internal.h"

/* One that was killed, or has crashed, is waited for so long; profilers have longer for their ends.
 */
enum { END_MS = 20, FINI_MS = 1000 };

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

int values_start(struct values *v)
{
	int r;

	v->started_ns = v->looked_ns = base_now_ns();
	v->waited_ns = 0;
	v->who = memfd_create("dcpid-values", MFD_CLOEXEC);
	r = v->who < 0 || ftruncate(v->who, 1) < 0 ? -errno : spawn(v);
	if (r < 0) {
		values_dismiss(v);
		return r;
	}
	v->state = VALUES_STARTING;
	v->stats.starts++;
	return 0;
}

/* ---- ends ------------------------------------------------------------------------------------ */

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

void values_dismiss(struct values *v)
{
	end(v, true, END_MS);
}

/* It calls the profilers' prof_fini and fini, which may be without end: then it is killed. */
void values_finish(struct values *v)
{
	end(v, v->state != VALUES_RUNNING, v->state == VALUES_RUNNING ? FINI_MS : END_MS);
}

void values_give_up(struct values *v, uint32_t profiler, const char *why)
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
		values_give_up(v, (uint32_t)(p - v->profilers), "this was the last time");
}

void values_end_hung(struct values *v)
{
	struct values_profiler *p = at_work(v);

	end(v, true, END_MS);
	if (p)
		p->stats.hangs++;
	note_fault(v, p, "does not answer");
}

void values_end_crashed(struct values *v)
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

ssize_t values_next_message(const struct values *v, void *to)
{
	ssize_t n;

	do
		n = recv(v->helper.sock, to, VALUES_MESSAGE_MAX, MSG_DONTWAIT | MSG_TRUNC);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}
