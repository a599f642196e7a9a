/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpirun starts its program in a child, which waits until sampling has begun. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dcpirun.h"

/* The start signal that the child waits for. */
struct order {
	char agent_env[3072]; /* "": no agent */
};

static bool set_environment(const struct child_env *env, struct order *o)
{
	if (setenv("DCPI_RUN", env->run_dir, 1) < 0 || setenv("DCPI_QUEUE", env->queue, 1) < 0)
		return false;
	return !o->agent_env[0] ||
	       (setenv("LD_PRELOAD", env->preload, 1) == 0 && putenv(o->agent_env) == 0);
}

/* In the child. */
static void become(char **argv, const struct child_env *env, const sigset_t *mask, int go,
		   int error)
{
	pid_t above = getppid();
	struct order o;
	int e = ENOMEM;

	if (base_read_all(go, &o, sizeof(o)) < 0)
		_exit(DCPIRUN_FAILED);
	/* Where only ancestors may read a process (Yama), our helper, a sibling, may too. */
	prctl(PR_SET_PTRACER, (unsigned long)above, 0, 0, 0);
	if (set_environment(env, &o)) {
		sigprocmask(SIG_SETMASK, mask, NULL);
		execvp(argv[0], argv);
		e = errno;
	}
	if (write(error, &e, sizeof(e)) < 0)
		_exit(DCPIRUN_FAILED);
	_exit(e == ENOENT ? DCPIRUN_NOT_FOUND : DCPIRUN_NOT_EXECUTABLE);
}

int child_start(struct child *c, char **argv, const struct child_env *env, const sigset_t *mask,
		struct base_err *err)
{
	int go[2] = { -1, -1 }, error[2] = { -1, -1 };

	*c = (struct child){ .go_fd = -1, .error_fd = -1 };
	if (pipe2(go, O_CLOEXEC) < 0 || pipe2(error, O_CLOEXEC) < 0)
		goto fail;
	c->pid = fork();
	if (c->pid < 0)
		goto fail;
	if (c->pid == 0) {
		close(go[1]);
		become(argv, env, mask, go[0], error[1]);
	}
	close(go[0]);
	close(error[1]);
	c->go_fd = go[1];
	c->error_fd = error[0];
	return 0;
fail:;
	int r = base_fail_errno(err, -errno, "cannot start '%s'", argv[0]);

	c->pid = 0;
	for (int i = 0; i < 2; i++) {
		if (go[i] >= 0)
			close(go[i]);
		if (error[i] >= 0)
			close(error[i]);
	}
	return r;
}

static void close_pipes(struct child *c)
{
	if (c->go_fd >= 0)
		close(c->go_fd);
	if (c->error_fd >= 0)
		close(c->error_fd);
	c->go_fd = c->error_fd = -1;
}

int child_release(struct child *c, const char *agent_env)
{
	struct order o = { 0 };
	int e = 0, r = 0;

	if (agent_env &&
	    snprintf(o.agent_env, sizeof(o.agent_env), "%s", agent_env) >= (int)sizeof(o.agent_env))
		r = -ENAMETOOLONG;
	else
		r = base_write_all(c->go_fd, &o, sizeof(o));

	/* Its end of the pipe closes when it is the program. */
	if (r >= 0 && base_read_all(c->error_fd, &e, sizeof(e)) == 0)
		r = -e;
	close_pipes(c);
	return r;
}

bool child_ended(struct child *c)
{
	struct rusage u;
	pid_t pid;

	if (c->ended)
		return true;
	pid = wait4(c->pid, &c->status, WNOHANG, &u);
	if (pid == 0 || (pid < 0 && errno == EINTR))
		return false;
	if (pid == c->pid)
		c->cpu_seconds = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
				 (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
	c->ended = true;
	return true;
}

void child_abandon(struct child *c)
{
	int status;

	close_pipes(c);
	if (c->pid > 0 && !c->ended)
		waitpid(c->pid, &status, 0);
	c->ended = true;
}

int child_exit_code(const struct child *c)
{
	if (WIFSIGNALED(c->status))
		return 128 + WTERMSIG(c->status);
	return WEXITSTATUS(c->status);
}
