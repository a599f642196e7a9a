/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dcpirun: run a program and sample it, and what it starts, into a database. No rights needed. The
 * program is started stopped, a source is chosen, both are then run to the program's end.
 */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "core.h"

/* As env(1) has them; other than that the status is the program's. */
enum { DCPIRUN_FAILED = 125, DCPIRUN_NOT_EXECUTABLE = 126, DCPIRUN_NOT_FOUND = 127 };

static const char event_inside[] = "thread-clock";

enum { LINE_MAX_LEN = 256, PHDRS_MAX = 256, SCRIPTS_MAX = 4 };

/* ---- the program: finding -------------------------------------------------------------------- */

static int try_path(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EACCES;
	return access(path, X_OK) < 0 ? -errno : 0;
}

/* Find @name as execvp(3) does. 0 and the path, or the -errno of its last failure. */
static int program_find(const char *name, char *path, size_t len)
{
	const char *dirs = getenv("PATH"), *next;
	int r, worst = -ENOENT;

	if (strchr(name, '/'))
		return snprintf(path, len, "%s", name) < (int)len ? try_path(path) : -ENAMETOOLONG;
	if (!*name)
		return -ENOENT;
	/* An empty one, the first too, is the folder where we are. */
	for (dirs = dirs ? dirs : "/bin:/usr/bin"; dirs; dirs = next) {
		int n = (int)strcspn(dirs, ":");

		next = dirs[n] ? dirs + n + 1 : NULL;
		r = snprintf(path, len, "%.*s/%s", n ? n : 1, n ? dirs : ".", name) < (int)len
			    ? try_path(path)
			    : -ENAMETOOLONG;
		if (r == 0)
			return 0;
		/* One that is there and must not be executed says more than those that lack. */
		if (r == -EACCES)
			worst = r;
	}
	return worst;
}

/* ---- the program: what it is ----------------------------------------------------------------- */

/* Runs with rights that its user has not: the loader preloads nothing, the kernel tells nothing. */
static bool has_rights(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	if ((st.st_mode & S_ISUID && st.st_uid != geteuid()) ||
	    (st.st_mode & S_ISGID && st.st_gid != getegid()))
		return true;
	return geteuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

static const char *elf_refusal(int fd, const Elf64_Ehdr *h)
{
	static const unsigned char own_class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
	Elf64_Phdr p;

	if (h->e_ident[EI_CLASS] != own_class || h->e_phentsize != sizeof(p))
		return "it is for another kind of machine";
	for (unsigned int i = 0; i < h->e_phnum && i < PHDRS_MAX; i++) {
		off_t at = (off_t)(h->e_phoff + (uint64_t)i * sizeof(p));

		if (pread(fd, &p, sizeof(p), at) != (ssize_t)sizeof(p))
			return NULL;
		if (p.p_type == PT_INTERP)
			return NULL;
	}
	return "it is statically linked";
}

/* "#! /bin/sh -e": what is executed is the interpreter. */
static bool interpreter(char *line, char *path, size_t len)
{
	char *name = line + 2 + strspn(line + 2, " \t");

	name[strcspn(name, " \t\n")] = '\0';
	return *name && snprintf(path, len, "%s", name) < (int)len;
}

static const char *file_refusal(char *path, size_t len, bool inside, bool *again)
{
	union {
		Elf64_Ehdr h;
		char text[LINE_MAX_LEN + 1];
	} b = { 0 };
	const char *why = NULL;
	struct stat st;
	int fd = base_regular_open(AT_FDCWD, path, &st);
	ssize_t n;

	/* Nor may its user then see into it by perf events. */
	if (fd < 0)
		return !inside && fd == -EACCES ? "you may not read it" : NULL;
	n = pread(fd, &b, LINE_MAX_LEN, 0);
	if (n > 2 && !memcmp(b.text, "#!", 2))
		*again = interpreter(b.text, path, len);
	else if (has_rights(fd))
		why = "it runs with rights that you have not (set-uid, set-gid or capabilities)";
	else if (inside && n >= (ssize_t)sizeof(b.h) && !memcmp(b.h.e_ident, ELFMAG, SELFMAG))
		why = elf_refusal(fd, &b.h);
	close(fd);
	return why;
}

/* Why it cannot be sampled, for people, by perf events or (@inside) what is preloaded into it.
 * NULL: it can be, or nothing is known. */
static const char *program_refusal(const char *name, bool inside)
{
	char path[4096];
	const char *why = NULL;
	bool again = true;

	snprintf(path, sizeof(path), "%s", name);
	for (int i = 0; i < SCRIPTS_MAX && again; i++) {
		again = false;
		why = file_refusal(path, sizeof(path), inside, &again);
	}
	return why;
}

/* ---- the agent ------------------------------------------------------------------------------- */

/* Path of the agent library. 0 or -DCPI_EHELPER with @err. */
static int source_agent(char *path, size_t len, struct base_err *err)
{
	/* Where it is installed, and beside a build's bin/. */
	static const char *const places[] = { DCPIRUN_AGENT, "../lib/libdcpirun.so",
					      "libdcpirun.so" };
	char exe[2048], plain[4096];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n <= 0)
		return base_fail_errno(err, n < 0 ? -errno : -ENOENT,
				       "cannot find 'libdcpirun.so'");
	exe[n] = '\0';
	*strrchr(exe, '/') = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		char *real;

		snprintf(plain, sizeof(plain), "%s/%s", exe, places[i]);
		real = realpath(plain, NULL);
		n = real ? snprintf(path, len, "%s", real) : -1;
		free(real);
		if (n < 0 || (size_t)n >= len)
			continue;
		/* A path with a separator of LD_PRELOAD cannot be put into it. */
		if (!strpbrk(path, " :"))
			return 0;
		return base_fail(err, -DCPI_EHELPER,
				 "cannot preload '%s': a blank or colon in its path", path);
	}
	base_fail(err, -DCPI_EHELPER, "cannot find 'libdcpirun.so'");
	base_hint(err, "it belongs into '%s/%s'", exe, places[0]);
	return -DCPI_EHELPER;
}

/* ---- where samples come from ----------------------------------------------------------------- */

struct choice {
	const char *source; /* "perf", "inprocess" */
	char why[704];	    /* for people */
};

static bool paranoid(char *why, size_t len)
{
	struct base_buf text = { 0 };
	int level, r;

	r = base_file_read(AT_FDCWD, "/proc/sys/kernel/perf_event_paranoid", 64, &text, NULL);
	if (r >= 0)
		r = base_buf_append(&text, "", 1);
	level = r >= 0 ? atoi((const char *)text.data) : 0;
	base_buf_release(&text);
	/* Up to 2 one's own programs may be sampled: what refuses them then is something else. */
	if (r < 0 || level <= 2)
		return false;
	snprintf(why, len, "kernel.perf_event_paranoid is %d", level);
	return true;
}

static void choose_inside(struct choice *out, const char *cause, uint64_t per_second)
{
	out->source = "inprocess";
	snprintf(out->why, sizeof(out->why),
		 "%s%ssampling from inside the program, by its CPU time, %llu samples a second",
		 cause, *cause ? ": " : "", (unsigned long long)per_second);
}

static int try_source(const char *source, const char *event, int64_t rate, int32_t pid,
		      struct driver **d, struct base_err *err)
{
	const struct driver_config config = { .source = source,
					      .slots = &event,
					      .nr_slots = event ? 1 : 0,
					      .frequency = (uint64_t)rate,
					      .pid = pid,
					      .run_dir = "/" };

	return driver_open(&config, d, err);
}

static int try_inside(const char *event, int64_t rate, const char *cause, struct choice *out,
		      struct base_err *err)
{
	struct driver *d = NULL;
	int r = try_source("inprocess", event, rate, 0, &d, err);

	if (r < 0)
		return r;
	choose_inside(out, cause, 1000000000u / driver_event_get(d, 0)->period);
	driver_close(d);
	return 0;
}

static int try_perf(const char *event, int64_t rate, int32_t pid, struct choice *out,
		    struct base_err *err)
{
	struct driver *d = NULL;
	int r = try_source("perf", event, rate, pid, &d, err);

	if (r < 0)
		return r;
	out->source = "perf";
	snprintf(out->why, sizeof(out->why), "perf events of your own programs are allowed: %s",
		 driver_describe(d));
	driver_close(d);
	return 0;
}

/* @wanted, @event: as the user asked, or NULL. @pid: stopped. 0, or negative with @err. */
static int source_choose(const char *wanted, const char *event, int64_t rate, int32_t pid,
			 struct choice *out, struct base_err *err)
{
	struct base_err refused = { 0 };
	char cause[sizeof(refused.text)] = "";
	int r;

	if (wanted && strcmp(wanted, "perf") != 0 && strcmp(wanted, "inprocess") != 0) {
		base_fail(err, -DCPI_EUSAGE, "unknown source of samples '%s'", wanted);
		base_hint(err, "sources are: perf, inprocess");
		return -DCPI_EUSAGE;
	}
	if ((wanted && !strcmp(wanted, "inprocess")) ||
	    (!wanted && event && !strcmp(event, event_inside)))
		return try_inside(event, rate, "", out, err);
	if (wanted && event && !strcmp(event, event_inside)) {
		base_fail(err, -DCPI_EUSAGE, "'%s' is not of perf", event_inside);
		base_hint(err, "it is sampled from inside the program: -source inprocess");
		return -DCPI_EUSAGE;
	}
	r = try_perf(event, rate, pid, out, &refused);
	/* An event that was asked for by name is not replaced by another. */
	if (r >= 0 || wanted || event || r != -DCPI_ENOEVENTS) {
		if (r < 0)
			*err = refused;
		return r;
	}
	if (!paranoid(cause, sizeof(cause)))
		snprintf(cause, sizeof(cause), "%s", refused.text);
	return try_inside(event, rate, cause, out, err);
}

/* ---- the child ------------------------------------------------------------------------------- */

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

/* Fork what will be the program; it waits. 0 or negative with @err. */
static int child_start(struct child *c, char **argv, const struct child_env *env,
		       const sigset_t *mask, struct base_err *err)
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

/* Let it go, with @agent_env ("NAME=VALUE") and the agent, or with neither (NULL). 0, or -errno of
 * its execve. */
static int child_release(struct child *c, const char *agent_env)
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

/* Has it ended? Does not wait. */
static bool child_ended(struct child *c)
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

/* End what was not let go. */
static void child_abandon(struct child *c)
{
	int status;

	close_pipes(c);
	if (c->pid > 0 && !c->ended)
		waitpid(c->pid, &status, 0);
	c->ended = true;
}

/* For exit(3): 128 + signal where one ended it. */
static int child_exit_code(const struct child *c)
{
	if (WIFSIGNALED(c->status))
		return 128 + WTERMSIG(c->status);
	return WEXITSTATUS(c->status);
}

enum {
	DRAIN_MS = 100,
	DYN_FDS = 16,
	FLUSH_S = 60,
	/* With a socket in it, whose path may have 107 bytes. */
	RUN_DIR_MAX = 108 - sizeof(WIRE_DYN_NAME),
};

#define QUIET_NS 300000000u

static struct options opt = { .flush_s = FLUSH_S, .own = true, .new_epoch = true };
static const char *database, *event;
static bool wait_all;

/* clang-format off */
static const struct base_opt options[] = {
	{ "db", BASE_OPT_STRING, &database, "DIR",
	  "Database to write, made where there is none (default: $DCPIDB or 'dcpi.db').", 0, 0 },
	{ "source", BASE_OPT_STRING, &opt.source, "NAME",
	  "Where samples come from: 'perf' (the kernel's events), 'inprocess' (from inside the "
	  "program). Default: perf where the kernel allows it.", 0, 0 },
	{ "event", BASE_OPT_STRING, &event, "NAME",
	  "What to sample: of perf 'cycles', 'cpu-clock', … as of dcpid; 'thread-clock', from inside the "
	  "program (default: cycles where there are any, else cpu-clock; inprocess: thread-clock).",
	  0, 0 },
	{ "rate", BASE_OPT_INT, &opt.rate, "HZ",
	  "Samples a second (default: 1000, or what the kernel allows where that is less; inprocess: the "
	  "rate of the kernel's tick, which cannot be exceeded).", 1, 100000 },
	{ "platform", BASE_OPT_STRING, &opt.platform, "NAME",
	  "Folder of this machine within an epoch (default: the host's name).", 0, 0 },
	{ "wait", BASE_OPT_FLAG, &wait_all, NULL,
	  "Go on until everything that the program started has ended too (default: until the program "
	  "has).", 0, 0 },
	{ "unknown", BASE_OPT_FLAG, &opt.unknown, NULL,
	  "Tell each sample that is in no image, with its process and address.", 0, 0 },
	{ "quiet", BASE_OPT_FLAG, &opt.quiet, NULL, "Say nothing but errors.", 0, 0 },
	{ "verbose", BASE_OPT_FLAG, &opt.verbose, NULL, "Say details.", 0, 0 },
	{ 0 },
};

static const struct base_example examples[] = {
	{ "dcpirun -db /tmp/db sort -u words", "Profile a program." },
	{ "dcpirun -source inprocess -- ./a.out -x", "Without any help of the kernel's." },
	{ 0 },
};
/* clang-format on */

static const struct base_cmd command = {
	.name = "dcpirun",
	.summary = "run a program and sample it into a profile database",
	.operands = "PROGRAM [ARG …]",
	.opts = options,
	.examples = examples,
	.min_operands = 1,
	.max_operands = -1,
	.first_ends = true,
};

static struct daemon daemon_state;

/* ---- messages -------------------------------------------------------------------------------- */

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *fmt, ...)
{
	char text[2048];
	va_list args;

	if (opt.quiet)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	fprintf(stderr, "dcpirun: %s\n", base_text_clean(text));
}

static int fail(const struct base_err *err, int status)
{
	base_err_print(err, "dcpirun", stderr);
	return err->code == -DCPI_EUSAGE ? BASE_EXIT_USAGE : status;
}

/* ---- its own folder -------------------------------------------------------------------------- */

/*
 * A folder for this user alone, with the socket for registries and the rings; in memory if
 * possible.
 */
static int make_run_dir(char *dir, size_t len, struct base_err *err)
{
	const char *const places[] = { getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/dev/shm",
				       "/tmp" };
	int r = -ENOENT;

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		if (!places[i] || places[i][0] != '/')
			continue;
		r = -ENAMETOOLONG;
		if (snprintf(dir, len, "%s/dcpirun-XXXXXX", places[i]) >= (int)len)
			continue;
		if (mkdtemp(dir))
			return 0;
		r = -errno;
	}
	dir[0] = '\0';
	base_fail_errno(err, r, "cannot make a folder for the run");
	base_hint(err, "TMPDIR can name a place where you may");
	return r;
}

/* With rings that came too late to be read. */
static void remove_run_dir(const char *path)
{
	DIR *dir = path[0] ? opendir(path) : NULL;
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		unlinkat(dirfd(dir), e->d_name, 0);
	if (dir)
		closedir(dir);
	if (path[0])
		rmdir(path);
}

/* ---- what the program is told ---------------------------------------------------------------- */

/* Without the agent perf events can still be had: then @preload stays NULL, and @err says why. */
static int make_env(struct child_env *env, const char *run_dir, struct base_err *err)
{
	const char *old = getenv("LD_PRELOAD");
	char agent[4096];
	int r = source_agent(agent, sizeof(agent), err);

	env->run_dir = run_dir;
	snprintf(env->queue, sizeof(env->queue), "/dcpirun-%d", getpid());
	if (r == -DCPI_EHELPER)
		return 0;
	if (r < 0)
		return r;
	if (asprintf(&env->preload, "%s%s%s", agent, old && *old ? ":" : "", old ? old : "") < 0)
		return base_fail_errno(err, -ENOMEM, "cannot start");
	return 0;
}

/* ---- signals --------------------------------------------------------------------------------- */

static const int forwarded[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM };

/* Before the fork, so that none is missed; the program gets @old back. */
static int open_signals(sigset_t *old)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < sizeof(forwarded) / sizeof(*forwarded); i++)
		sigaddset(&set, forwarded[i]);
	if (sigprocmask(SIG_BLOCK, &set, old) < 0)
		return -errno;
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/*
 * Whether the program got the signal too. Signals of the terminal (SI_KERNEL) go to all processes
 * of the foreground: but a hangup goes to the session's leader alone, and an alarm from before our
 * exec is ours.
 */
static bool program_has(int sig, int code)
{
	bool leads = getsid(0) == getpid();

	return code == SI_KERNEL && sig != SIGALRM && !(sig == SIGHUP && leads);
}

/* The program gets what was sent to us alone. True: end, nobody is left to forward to. */
static bool take_signals(int fd, const struct child *c)
{
	struct signalfd_siginfo info;
	bool end = false;

	while (read(fd, &info, sizeof(info)) == sizeof(info)) {
		int sig = (int)info.ssi_signo;

		if (sig == SIGCHLD)
			continue;
		if (c->ended)
			end = true;
		else if (!program_has(sig, info.ssi_code))
			kill(c->pid, sig);
	}
	return end;
}

/* ---- the run --------------------------------------------------------------------------------- */

static void wait_for_work(struct daemon *d, int signal_fd)
{
	struct pollfd p[DYN_FDS + 2] = { { .fd = signal_fd, .events = POLLIN } };
	int fds[DYN_FDS];
	size_t nr = dyn_poll_fds(d->dyn, fds, DYN_FDS), n = 1;

	if (driver_poll_fd(d->driver) >= 0)
		p[n++] = (struct pollfd){ .fd = driver_poll_fd(d->driver), .events = POLLIN };
	for (size_t i = 0; i < nr; i++)
		p[n++] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
	/* Interrupted or not, what there is to do is looked for. */
	if (poll(p, n, DRAIN_MS) < 0 && errno != EINTR)
		base_log(BASE_LOG_DEBUG, "cannot wait: %s", base_strerror(-errno));
}

/* A process just started may not be known yet: all have ended if none is seen for a while. */
static bool all_ended(const struct daemon *d, uint64_t *since_ns)
{
	uint64_t now = base_now_ns();

	if (processes_nr(d->processes) || !*since_ns)
		*since_ns = now;
	return now - *since_ns > QUIET_NS;
}

static int run_to_end(struct daemon *d, struct child *c, int signal_fd, struct base_err *err)
{
	uint64_t nobody_since_ns = 0;
	bool end = false;
	int r = 0;

	d->next_flush_ns = base_now_ns() + FLUSH_S * 1000000000ull;
	while (r >= 0 && !end) {
		wait_for_work(d, signal_fd);
		end = take_signals(signal_fd, c);
		/* Asked before the drain, so that the last one sees everything. */
		if (child_ended(c) && (!wait_all || all_ended(d, &nobody_since_ns)))
			end = true;
		r = daemon_turn(d, err);
	}
	return r;
}

/* The program must go on, whatever became of its profile. */
static void wait_unprofiled(struct child *c, int signal_fd)
{
	struct pollfd p = { .fd = signal_fd, .events = POLLIN };

	while (!child_ended(c)) {
		poll(&p, 1, DRAIN_MS);
		take_signals(signal_fd, c);
	}
}

/*
 * Few samples are no wonder where little CPU time was used. The agent draws at rates below the
 * tick's which ticks are samples: in ten periods none is one in 20,000.
 */
static void explain_none(const struct daemon *d, const struct child *c)
{
	double period = (double)driver_event_get(d->driver, 0)->period / 1e9;

	if (c->cpu_seconds < (driver_agent_env(d->driver) ? 10 : 3) * period)
		say("the program used %.3f s of CPU time, too little for a sample", c->cpu_seconds);
	else if (driver_agent_env(d->driver))
		say("the program used %.3f s of CPU time, but the agent 'libdcpirun.so' did not "
		    "come up in it",
		    c->cpu_seconds);
}

/* " (3 lost, 17 missed)", or nothing. */
static const char *shortfall(const struct account *total, const struct driver_stats *stats,
			     char *text, size_t len)
{
	uint64_t lost = account_lost(total), missed = 0;

	for (size_t i = 0; i < DRIVER_NR_EVENTS; i++)
		missed += stats->missed[i];
	text[0] = '\0';
	if (lost && missed)
		snprintf(text, len, " (%" PRIu64 " lost, %" PRIu64 " missed)", lost, missed);
	else if (lost || missed)
		snprintf(text, len, " (%" PRIu64 " %s)", lost + missed, lost ? "lost" : "missed");
	return text;
}

/* Not even counted: how many samples they had nobody knows. */
static void tell_unread(const struct driver_stats *stats, const char *run_dir)
{
	int place = (int)(strrchr(run_dir, '/') - run_dir);
	struct base_err err = { 0 };

	if (!stats->nr_unread)
		return;
	base_fail(&err, -EMFILE, "cannot read the samples of %" PRIu64 " process%s",
		  stats->nr_unread, stats->nr_unread == 1 ? "" : "es");
	base_hint(&err, "each needs a file: see 'ulimit -n', 'ulimit -f' and the room in '%.*s'",
		  place, run_dir);
	base_err_print(&err, "dcpirun", stderr);
}

static void report(const struct daemon *d, const struct child *c, const char *refusal)
{
	struct driver_stats stats = { 0 };
	struct account total;
	char text[64];

	driver_stats_get(d->driver, &stats);
	account_total(&d->store.account, &stats, &total);
	tell_unread(&stats, d->opt.run_dir);
	/* There may still be samples: of its child before it became the program, or of the
	 * program's children. */
	if (refusal)
		say("the program could not be sampled%s: %s",
		    driver_agent_env(d->driver) ? " from inside" : "", refusal);
	else if (!total.stored)
		explain_none(d, c);
	say("%" PRIu64 " sample%s%s of %s, %s, %s in '%s', epoch %s: dcpiprof -db '%s'",
	    total.stored, total.stored == 1 ? "" : "s",
	    shortfall(&total, &stats, text, sizeof(text)), driver_event_get(d->driver, 0)->name,
	    driver_agent_env(d->driver) ? "taken inside the program" : "from perf events",
	    total.stored == 1 ? "is" : "are", profdb_path(d->db), d->epoch, profdb_path(d->db));
}

static int not_executable(const char *name, int r)
{
	struct base_err err = { 0 };

	base_fail_errno(&err, r, "cannot run '%s'", name);
	return fail(&err, r == -ENOENT ? DCPIRUN_NOT_FOUND : DCPIRUN_NOT_EXECUTABLE);
}

/* The core is open and samples: let the program go. Its exit status. */
static int run_program(struct daemon *d, struct child *c, const char *name, const char *refusal,
		       int signal_fd)
{
	struct base_err err = { 0 };
	int r = child_release(c, driver_agent_env(d->driver)), s;

	if (r < 0) {
		child_abandon(c);
		/* Its epoch is begun. */
		if (daemon_finish(d, &err) < 0)
			base_err_print(&err, "dcpirun", stderr);
		return not_executable(name, r);
	}
	r = run_to_end(d, c, signal_fd, &err);
	s = daemon_finish(d, &err);
	if (r < 0 || s < 0)
		base_err_print(&err, "dcpirun", stderr);
	else
		report(d, c, refusal);
	wait_unprofiled(c, signal_fd);
	return child_exit_code(c);
}

static int start_core(struct daemon *d, const struct child *c, const struct child_env *env,
		      struct choice *choice, struct base_err *err)
{
	struct base_err no_agent = *err;
	int r;

	*err = (struct base_err){ 0 };
	r = source_choose(opt.source, event, opt.rate, c->pid, choice, err);

	if (r < 0)
		return r;
	opt.source = choice->source;
	if (event)
		opt.events = (struct base_opt_list){ .items = &event, .nr = 1 };
	if (!strcmp(choice->source, "inprocess") && !env->preload) {
		*err = no_agent;
		return err->code;
	}
	opt.run_dir = env->run_dir;
	opt.pid = c->pid;
	d->opt = opt;
	r = daemon_open(d, err);
	return r < 0 ? r : daemon_start(d, err);
}

static const char *choose_database(void)
{
	const char *env = getenv("DCPIDB");

	return database ? database : env && *env ? env : "dcpi.db";
}

/* DCPIDB is often set for the tools, to the machine's database. */
static void hint_database(struct base_err *err)
{
	if (!database && getenv("DCPIDB") && (err->code == -EACCES || err->code == -EROFS))
		base_hint(err, "'%s' is from DCPIDB; '-db DIR' names another database",
			  choose_database());
}

static int run(char **argv, const char *run_dir, const char *path)
{
	struct child_env env = { 0 };
	struct choice choice = { 0 };
	struct base_err err = { 0 };
	const char *refusal;
	struct child c = { 0 };
	sigset_t old;
	int fd, status = DCPIRUN_FAILED;
	int r = make_env(&env, run_dir, &err);

	fd = r < 0 ? r : open_signals(&old);
	if (fd < 0)
		r = base_fail_errno(&err, fd, "cannot start");
	/* First of all: it inherits nothing of ours. */
	if (r >= 0)
		r = child_start(&c, argv, &env, &old, &err);
	signal(SIGPIPE, SIG_IGN);
	/* A file longer than the user's limit is reported by the write that failed. */
	signal(SIGXFSZ, SIG_IGN);
	/* Were it ignored, as we inherited it, nobody would tell how the program ended. */
	signal(SIGCHLD, SIG_DFL);
	if (r >= 0)
		r = start_core(&daemon_state, &c, &env, &choice, &err);
	if (r < 0) {
		hint_database(&err);
		status = fail(&err, DCPIRUN_FAILED);
		child_abandon(&c);
	} else {
		refusal = program_refusal(path, driver_agent_env(daemon_state.driver));
		say("%s", choice.why);
		status = run_program(&daemon_state, &c, argv[0], refusal, fd);
	}
	daemon_close(&daemon_state);
	free(env.preload);
	if (fd >= 0)
		close(fd);
	return status;
}

int main(int argc, char **argv)
{
	char run_dir[RUN_DIR_MAX], path[4096];
	struct base_err err = { 0 };
	int r = base_opt_parse(&command, &argc, &argv, &err);

	if (r == BASE_OPT_DONE)
		return base_output_end(&err) < 0 ? fail(&err, DCPIRUN_FAILED) : BASE_EXIT_OK;
	if (r >= 0 && opt.quiet && opt.verbose)
		r = base_fail(&err, -DCPI_EUSAGE, "-quiet does not go with -verbose");
	if (r >= 0 && opt.quiet && opt.unknown)
		r = base_fail(&err, -DCPI_EUSAGE, "-quiet does not go with -unknown");
	/* A folder without a name would be the one that we are in. */
	if (r >= 0 && database && !*database)
		r = base_fail(&err, -DCPI_EUSAGE, "-db names no folder");
	if (r < 0)
		return fail(&err, DCPIRUN_FAILED);
	opt.database = choose_database();
	base_log_init(stderr,
		      opt.verbose   ? BASE_LOG_DEBUG
		      : opt.quiet   ? BASE_LOG_ERROR
		      : opt.unknown ? BASE_LOG_INFO
				    : BASE_LOG_WARN,
		      BASE_LOG_BARE);
	r = program_find(argv[0], path, sizeof(path));
	if (r < 0)
		return not_executable(argv[0], r);
	if (make_run_dir(run_dir, sizeof(run_dir), &err) < 0)
		return fail(&err, DCPIRUN_FAILED);
	r = run(argv, run_dir, path);
	remove_run_dir(run_dir);
	return r;
}
