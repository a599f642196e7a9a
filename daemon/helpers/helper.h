/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a helper program: it is found beside dcpid, started with a socket to us, no
 * environment and no signal blocked, and killed when it is not wanted any more.
 */
#ifndef DCPI_HELPER_H
#define DCPI_HELPER_H

#include <sys/types.h>

#include "base.h"

enum { HELPER_NR_ZOMBIES = 16, HELPER_NR_MORE = 2 };

struct helper {
	const char *name;
	char program[512];
	pid_t pid;     /* 0: it does not run */
	int sock;      /* our end of its socket, or -1 */
	int effort_fd; /* its schedstat, which tells how much it has worked; or -1 */
	bool held;     /* the last one killed did not end: the kernel holds it */
	pid_t zombies[HELPER_NR_ZOMBIES]; /* killed, not yet gone */
};

/* How it is started. */
struct helper_start {
	int socket_type;	 /* SOCK_SEQPACKET or SOCK_STREAM */
	int socket_fd;		 /* the descriptor that its end of the socket has there */
	const int *more_fds;	 /* descriptors that it gets behind that one */
	size_t nr_more;		 /* HELPER_NR_MORE at most */
	const char *const *args; /* behind its name, to NULL; or NULL */
};

/* @name in @dir; nothing is started yet. 0, or -errno with @err. */
int helper_find(struct helper *h, const char *dir, const char *name, struct base_err *err);
/* Start it. 0 or -errno. */
int helper_start(struct helper *h, const struct helper_start *how);
/*
 * End it, by SIGKILL at once where @kill, else after @wait_ms without an end. One that the kernel
 * holds is not waited for longer than @wait_ms; helper_reap sees it gone. How it ended, as of
 * waitpid(2); SIGKILL where that is not known yet.
 */
int helper_end(struct helper *h, bool kill, unsigned int wait_ms);
/* CPU time that it has used; 0 while it does not run. */
uint64_t helper_cpu_ns(const struct helper *h);
/* See whether those that were killed and held are gone: how many are not. */
size_t helper_reap(struct helper *h);

#endif
