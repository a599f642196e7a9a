/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dcpirun from within: the daemon's core, run by a user for one program of theirs. The program is
 * started stopped (dcpirun_child.c), a source is chosen (dcpirun_source.c), both are then run to
 * the program's end (dcpirun.c).
 */
#ifndef DCPIRUN_H
#define DCPIRUN_H

#include <signal.h>

#include "core.h"

/* As env(1) has them; other than that the status is the program's. */
enum { DCPIRUN_FAILED = 125, DCPIRUN_NOT_EXECUTABLE = 126, DCPIRUN_NOT_FOUND = 127 };

/* ---- the program (dcpirun_child.c) ----------------------------------------------------------- */

struct child {
	pid_t pid;    /* 0: none */
	int go_fd;    /* a byte here lets it go; closed: it ends at once */
	int error_fd; /* why it could not be executed comes from here */
	bool ended;
	int status; /* as wait(2) tells, once ended */
	double cpu_seconds;
};

/* Additions to the program's environment. */
struct child_env {
	const char *run_dir;
	char queue[64]; /* a queue that does not exist: not to ring a daemon of the system's */
	char *preload;	/* LD_PRELOAD, with the agent; used if there is one when it is let go */
};

/* Fork what will be the program; it waits. 0 or negative with @err. */
int child_start(struct child *c, char **argv, const struct child_env *env, const sigset_t *mask,
		struct base_err *err);
/* Let it go, with @agent_env ("NAME=VALUE") and the agent, or with neither (NULL). 0, or -errno of
 * its execve. */
int child_release(struct child *c, const char *agent_env);
/* Has it ended? Does not wait. */
bool child_ended(struct child *c);
/* End what was not let go. */
void child_abandon(struct child *c);
/* For exit(3): 128 + signal where one ended it. */
int child_exit_code(const struct child *c);

/* ---- where samples come from (dcpirun_source.c) ---------------------------------------------- */

struct choice {
	const char *source; /* "perf", "inprocess" */
	char why[640];	    /* for people */
};

/* @wanted, @event: as the user asked, or NULL. @pid: stopped. 0, or negative with @err. */
int source_choose(const char *wanted, const char *event, int64_t rate, int32_t pid,
		  struct choice *out, struct base_err *err);
/* Path of the agent library. 0 or -DCPI_EHELPER with @err. */
int source_agent(char *path, size_t len, struct base_err *err);

/* ---- what the program is (dcpirun_program.c) ------------------------------------------------- */

/*
 * Find @name as execvp(3) does. 0 and the path, or the -errno of its last failure.
 */
int program_find(const char *name, char *path, size_t len);
/* Why it cannot be sampled, for people, by perf events or (@inside) what is preloaded into it.
 * NULL: it can be, or nothing is known. */
const char *program_refusal(const char *path, bool inside);

#endif
