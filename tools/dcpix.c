/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dcpix: exact counts of a program's instructions and branches. valgrind's callgrind counts; what
 * it logs and dumps is read here, while the program runs and after.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "dcpix.h"
#include "done.h"
#include "report.h"
#include "tools.h"

/* ---- images mapped --------------------------------------------------------------------------- */

static int maps_add(struct callgrind_maps *m, const char *path, uint64_t bias)
{
	int r = base_grow(&m->v, &m->cap, m->nr + 1, sizeof(*m->v));

	if (r < 0)
		return r;
	m->v[m->nr] = (struct callgrind_map){ strdup(path), bias };
	return m->v[m->nr++].path ? 0 : -ENOMEM;
}

static int maps_copy(struct callgrind_maps *to, const struct callgrind_maps *from)
{
	int r = 0;

	for (size_t i = 0; i < from->nr && r >= 0; i++)
		r = maps_add(to, from->v[i].path, from->v[i].bias);
	return r;
}

static void maps_release(struct callgrind_maps *m)
{
	for (size_t i = 0; i < m->nr; i++)
		free(m->v[i].path);
	free(m->v);
	*m = (struct callgrind_maps){ 0 };
}

/* ---- the folder ------------------------------------------------------------------------------ */

/* Not readable by others: the dumps tell what the program did. Absolute, as it is named by others.
 */
static int make_folder(struct dcpix_run *run)
{
	const char *tmp = getenv("TMPDIR");
	char path[4096];

	if (!tmp || tmp[0] != '/' || strlen(tmp) > 2048 || strchr(tmp, '%'))
		tmp = "/tmp"; /* in valgrind's names "%" means something */
	snprintf(path, sizeof(path), "%s/dcpix-XXXXXX", tmp);
	if (!mkdtemp(path))
		return -errno;
	run->folder = strdup(path);
	return run->folder ? 0 : -ENOMEM;
}

int dcpix_run_open(struct dcpix_run *run, struct base_err *err)
{
	char path[4200];
	int r = make_folder(run);

	if (r < 0)
		return base_fail_errno(err, r, "cannot make a folder for the counts");
	snprintf(path, sizeof(path), "%s/log", run->folder);
	if (mkfifo(path, 0600) == 0)
		/* For writing too, so that it neither ends nor waits without a writer. */
		run->log_fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	return run->log_fd < 0 ? base_fail_errno(err, -errno, "cannot open '%s'", path) : 0;
}

static void remove_folder(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (e->d_name[0] != '.')
			unlinkat(dirfd(dir), e->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(folder);
}

void dcpix_run_close(struct dcpix_run *run)
{
	for (size_t i = 0; i < run->nr_processes; i++) {
		maps_release(&run->processes[i].maps);
		free(run->processes[i].reading);
		free(run->processes[i].dumping);
	}
	for (size_t i = 0; i < run->nr_dumps; i++) {
		maps_release(&run->dumps[i].maps);
		free(run->dumps[i].path);
	}
	if (run->log_fd >= 0)
		close(run->log_fd);
	if (run->folder)
		remove_folder(run->folder);
	free(run->processes);
	free(run->dumps);
	free(run->folder);
	free(run->alarm);
	base_buf_release(&run->log);
}

/* ---- processes ------------------------------------------------------------------------------- */

static struct dcpix_process *process(const struct dcpix_run *run, uint32_t pid)
{
	for (size_t i = 0; i < run->nr_processes; i++)
		if (run->processes[i].pid == pid)
			return &run->processes[i];
	return NULL;
}

/* At least 1. */
static size_t nr_processes(const struct dcpix_run *run)
{
	return run->nr_processes ? run->nr_processes : 1;
}

size_t dcpix_nr_open(const struct dcpix_run *run)
{
	size_t nr = 0;

	for (size_t i = 0; i < run->nr_processes; i++)
		nr += !run->processes[i].ended;
	return nr;
}

/* Forked, it has what its parent has; executed, nothing that it had. */
static int begin(struct dcpix_run *run, uint32_t pid, uint32_t parent_pid)
{
	struct dcpix_process *p = process(run, pid), *parent;
	int r = 0;

	if (p && !p->ended) {
		maps_release(&p->maps);
		p->nr_inherited = 0;
		return 0;
	}
	if (p) /* its number was given to another */
		p->pid = 0;
	r = base_grow(&run->processes, &run->cap_processes, run->nr_processes + 1,
		      sizeof(*run->processes));
	if (r < 0)
		return r;
	parent = process(run, parent_pid);
	p = &run->processes[run->nr_processes++];
	*p = (struct dcpix_process){ .pid = pid };
	if (parent)
		r = maps_copy(&p->maps, &parent->maps);
	p->nr_inherited = p->maps.nr;
	return r;
}

/* A process that maps the engine itself did not come from a fork after all. */
static void drop_inherited(struct dcpix_process *p)
{
	if (!p->nr_inherited || !strstr(p->reading, "/callgrind-"))
		return;
	for (size_t i = 0; i < p->nr_inherited; i++)
		free(p->maps.v[i].path);
	p->maps.nr -= p->nr_inherited;
	memmove(p->maps.v, p->maps.v + p->nr_inherited, p->maps.nr * sizeof(*p->maps.v));
	p->nr_inherited = 0;
}

static int keep_path(char **to, const struct callgrind_line *l)
{
	free(*to);
	*to = strndup(l->path, l->path_len);
	return *to ? 0 : -ENOMEM;
}

/* A dump, with what its process has mapped. 0 or -ENOMEM. */
static int dump_add(struct dcpix_run *run, const char *path, uint32_t pid)
{
	const struct dcpix_process *p = process(run, pid);
	struct callgrind_dump *d;
	int r = base_grow(&run->dumps, &run->cap_dumps, run->nr_dumps + 1, sizeof(*run->dumps));

	if (r < 0)
		return r;
	d = &run->dumps[run->nr_dumps++];
	*d = (struct callgrind_dump){ .path = strdup(path), .pid = pid };
	if (!d->path)
		return -ENOMEM;
	return p ? maps_copy(&d->maps, &p->maps) : 0;
}

/* The process may write the next one under the same name, once it has executed a program. */
static int dumped(struct dcpix_run *run, struct dcpix_process *p)
{
	char path[4200];

	if (!p->dumping)
		return 0;
	snprintf(path, sizeof(path), "%s/%zu", run->folder, run->nr_dumps);
	if (rename(p->dumping, path) < 0)
		return -errno;
	p->ended = p->last;
	free(p->dumping);
	p->dumping = NULL;
	return dump_add(run, path, p->pid);
}

/* ---- the log --------------------------------------------------------------------------------- */

static int alarm_keep(struct dcpix_run *run, const struct callgrind_line *l)
{
	int r = run->alarm ? 0 : keep_path(&run->alarm, l);

	if (run->alarm)
		base_text_clean(run->alarm);
	return r;
}

static int handle(struct dcpix_run *run, const char *text, size_t len)
{
	struct dcpix_process *p;
	struct callgrind_line l;

	callgrind_log_line(text, len, &l);
	if (l.kind == CALLGRIND_BEGIN)
		return begin(run, l.pid, l.parent);
	if (l.kind == CALLGRIND_ALARM)
		return alarm_keep(run, &l);
	p = process(run, l.pid);
	if (!p)
		return 0;
	switch (l.kind) {
	case CALLGRIND_IMAGE:
		return keep_path(&p->reading, &l);
	case CALLGRIND_PLACE:
		if (!p->reading)
			return 0;
		drop_inherited(p);
		return maps_add(&p->maps, p->reading, l.avma - l.svma);
	case CALLGRIND_LAST:
		p->last = true;
		return 0;
	case CALLGRIND_DUMP:
		return keep_path(&p->dumping, &l);
	case CALLGRIND_DUMPED:
		return dumped(run, p);
	default:
		return 0;
	}
}

static int handle_lines(struct dcpix_run *run)
{
	const char *at = (const char *)run->log.data, *end = at + run->log.len, *newline;
	int r = 0;

	while (r >= 0 && at < end && (newline = memchr(at, '\n', (size_t)(end - at)))) {
		r = handle(run, at, (size_t)(newline - at));
		at = newline + 1;
	}
	if (at == end) {
		run->log.len = 0;
	} else if (at > (const char *)run->log.data) {
		run->log.len = (size_t)(end - at);
		memmove(run->log.data, at, run->log.len);
	}
	return r;
}

int dcpix_log_read(struct dcpix_run *run, int timeout_ms, struct base_err *err)
{
	struct pollfd p = { .fd = run->log_fd, .events = POLLIN };
	char bytes[16384];
	ssize_t n;
	int r = 0;

	poll(&p, 1, timeout_ms);
	while (r >= 0 && (n = read(run->log_fd, bytes, sizeof(bytes))) > 0) {
		r = base_buf_append(&run->log, bytes, (size_t)n);
		if (r >= 0)
			r = handle_lines(run);
	}
	return r < 0 ? base_fail_errno(err, r, "cannot follow valgrind's log") : 0;
}

/* ---- what is asked for ----------------------------------------------------------------------- */

/* As env(1) has them; other than that the status is the program's. */
enum { DCPIX_FAILED = 125, DCPIX_NOT_EXECUTABLE = 126, DCPIX_NOT_FOUND = 127 };

static const char *prefix, *database;
static struct base_opt_list from;
static bool quiet, json;

static const struct base_opt options[] = {
	{ "o", BASE_OPT_STRING, &prefix, "PREFIX",
	  "Write PREFIX.xct and PREFIX.tab (default: the program's name, in this folder).", 0, 0 },
	{ "db", BASE_OPT_STRING, &database, "DIR",
	  "A daemon keeps the program's JIT code in this database: count it by routine. Without "
	  "it, "
	  "code that no file holds is counted by process and address.",
	  0, 0 },
	{ "from", BASE_OPT_LIST, &from, "FILE",
	  "Run nothing; take this file that callgrind wrote, by --dump-instr=yes --dump-line=no "
	  "--collect-jumps=yes --skip-plt=no. Repeatable.",
	  0, 0 },
	{ "quiet", BASE_OPT_FLAG, &quiet, NULL, "Say nothing where all went well.", 0, 0 },
	DONE_OPTION(json),
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpix",
	.summary = "run a program and count each instruction and branch exactly",
	.operands = "[program [argument …]]",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpix gzip -9 -k big.log",
			  "Run gzip under valgrind; its counts are in gzip.xct and gzip.tab." },
			{ "dcpix -o run1 ./server -once",
			  "The same into run1.xct and run1.tab, of the server and of every program "
			  "that it starts." },
			{ NULL, NULL } },
	.min_operands = 0,
	.max_operands = -1,
	.first_ends = true,
};

/* ---- the program ----------------------------------------------------------------------------- */

/* 0 where execvp(3) would find it; else the exit code. */
static int check_program(const char *name, struct base_err *err)
{
	const char *path = getenv("PATH");
	int code = -ENOENT;
	char full[4096];

	if (strchr(name, '/'))
		path = "";
	else if (!path)
		path = "/usr/bin:/bin";
	for (;;) {
		size_t len = strcspn(path, ":");
		struct stat st;

		snprintf(full, sizeof(full), "%.*s%s%s", (int)len, path, len ? "/" : "", name);
		if (stat(full, &st) == 0 && S_ISREG(st.st_mode) && access(full, X_OK) == 0)
			return 0;
		if (stat(full, &st) == 0)
			code = -EACCES;
		if (!path[len])
			break;
		path += len + 1;
	}
	base_fail_errno(err, code, "cannot run '%s'", name);
	return code == -ENOENT ? DCPIX_NOT_FOUND : DCPIX_NOT_EXECUTABLE;
}

static int check_engine(struct base_err *err)
{
	if (check_program("valgrind", err) == 0)
		return 0;
	err->hint[0] = '\0';
	base_hint(err, "dcpix needs the package valgrind: apt-get install valgrind");
	return DCPIX_FAILED;
}

/*
 * A process forked counts on from where its parent was, so the parent's counts are dumped, and
 * begin anew, just before; a program executed takes the process's counts with it, so they
 * are dumped as well. The log's name holds %p so that forked processes, too, open it and say who
 * they are.
 */
static void execute(const struct dcpix_run *run, char **argv)
{
	static const char *const fixed[] = {
		"valgrind",
		"-v",
		"-v",
		"--tool=callgrind",
		"--dump-instr=yes",
		"--dump-line=no",
		"--collect-jumps=yes",
		"--skip-plt=no",
		"--trace-children=yes",
		"--dump-before=_Fork",
		"--dump-before=vfork",
		"--dump-before=__vfork",
		"--dump-before=clone",
		"--dump-before=__clone",
		"--dump-before=execve",
		"--dump-before=execveat",
		"--run-libc-freeres=no",
		"--run-cxx-freeres=no",
		"--vgdb=no",
	};
	size_t nr = sizeof(fixed) / sizeof(fixed[0]), at, nr_args = 0;
	char log[4200], dump[4200];
	const char **args;

	while (argv[nr_args])
		nr_args++;
	args = calloc(nr + 2 + nr_args + 1, sizeof(*args));
	if (!args)
		_exit(DCPIX_FAILED);
	memcpy(args, fixed, sizeof(fixed));
	snprintf(log, sizeof(log), "--log-file=/proc/%%p/../..%s/log", run->folder);
	snprintf(dump, sizeof(dump), "--callgrind-out-file=%s/dump.%%p", run->folder);
	at = nr;
	args[at++] = log;
	args[at++] = dump;
	memcpy(args + at, argv, nr_args * sizeof(*args));
	if (json)
		dup2(STDERR_FILENO, STDOUT_FILENO);
	execvp("valgrind", (char **)args);
	_exit(DCPIX_FAILED);
}

static volatile pid_t child;

static void hand_on(int sig)
{
	if (child > 0)
		kill(child, sig);
}

/*
 * The terminal's signals are the program's to heed, and it gets those that are sent to us: its
 * counts come when it has ended. Where SIGCHLD is ignored, nobody tells how.
 */
static pid_t start(const struct dcpix_run *run, char **argv)
{
	static const int changed[] = { SIGINT, SIGQUIT, SIGCHLD };
	const struct sigaction to[] = { { .sa_handler = SIG_IGN },
					{ .sa_handler = SIG_IGN },
					{ .sa_handler = SIG_DFL } };
	struct sigaction old[3];
	struct sigaction forward = { .sa_handler = hand_on, .sa_flags = SA_RESTART };
	pid_t pid;

	for (size_t i = 0; i < 3; i++)
		sigaction(changed[i], &to[i], &old[i]);
	pid = fork();
	if (pid == 0) {
		for (size_t i = 0; i < 3; i++)
			sigaction(changed[i], &old[i], NULL);
		execute(run, argv);
	}
	child = pid;
	sigaction(SIGTERM, &forward, NULL);
	sigaction(SIGHUP, &forward, NULL);
	return pid;
}

/* Read the log until the program has ended, and to its end then. */
static int follow(struct dcpix_run *run, pid_t pid, int *status, struct base_err *err)
{
	bool ended = false;
	int r = 0;

	while (!ended && r >= 0) {
		pid_t got = waitpid(pid, status, WNOHANG);

		ended = got == pid || (got < 0 && errno == ECHILD);
		r = dcpix_log_read(run, ended ? 0 : 20, err);
	}
	return r;
}

static int exit_code(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- results --------------------------------------------------------------------------------- */

static int add_run(struct exact *e, const struct dcpix_run *run, const char *creator, char **argv,
		   int status)
{
	struct base_buf command = { 0 };
	int r = 0;

	for (size_t i = 0; argv[i] && r >= 0; i++)
		r = base_buf_printf(&command, "%s%s", i ? " " : "", argv[i]);
	if (r >= 0)
		r = exact_run_add(e, &(struct exact_run){ .utc = run->utc,
							  .nr_processes = nr_processes(run),
							  .status = status,
							  .counter = (char *)creator,
							  .command = (char *)command.data });
	base_buf_release(&command);
	return r;
}

static int write_file(const char *stem, const char *suffix, bool tab, struct exact *e,
		      struct base_err *err)
{
	struct base_buf out = { 0 };
	char path[4200];
	int r = tab ? exact_format_tab(e, &out) : exact_format(e, &out);

	snprintf(path, sizeof(path), "%s.%s", stem, suffix);
	if (r < 0)
		base_fail_errno(err, r, "cannot write '%s'", path);
	else
		r = base_file_write(AT_FDCWD, path, 0644, out.data, out.len, err);
	base_buf_release(&out);
	return r;
}

static int tell(const struct dcpix_run *run, const char *stem, const struct exact *e, int status,
		struct base_err *err)
{
	struct json_object *root = done_json("dcpix/1");
	char path[4200];

	for (int tab = 0; tab < 2; tab++) {
		snprintf(path, sizeof(path), "%s.%s", stem, tab ? "tab" : "xct");
		done_file(root, path);
	}
	done_exact(root, e);
	json_object_object_add(root, "status", json_object_new_int(status));
	json_object_object_add(root, "incomplete", json_object_new_uint64(dcpix_nr_open(run)));
	json_object_object_add(root, "engine_says", report_json_text(run->alarm));
	return done_print(root, err);
}

static uint64_t nr_instructions(const struct exact *e)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < e->nr_images; i++)
		for (size_t k = 0; k < e->images[i]->nr_counts; k++)
			sum += e->images[i]->counts[k].count;
	return sum;
}

/* The daemon writes what it knows of JIT code at its next flush: this one. */
static void flush_daemon(void)
{
	char *argv[] = { (char *)"dcpiflush", NULL };
	pid_t pid = fork();
	int fd;

	if (pid == 0) {
		fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
		if (fd >= 0)
			dup2(fd, STDOUT_FILENO);
		_exit(dcpiflush_tool.main(1, argv));
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* The name is the program's, where -o says no other. */
static void say_files(const struct dcpix_run *run, const char *stem, const struct exact *e)
{
	size_t nr = nr_processes(run);

	fprintf(stderr, "dcpix: %" PRIu64 " instructions of %zu process%s are in '",
		nr_instructions(e), nr, nr == 1 ? "" : "es");
	report_print_clean(stderr, stem);
	fputs(".xct', their procedures in '", stderr);
	report_print_clean(stderr, stem);
	fputs(".tab'\n", stderr);
}

static int finish(struct dcpix_run *run, const char *stem, char **argv, int status,
		  struct base_err *err)
{
	struct callgrind_head head;
	struct exact e = { 0 };
	char dyn[4200];
	int r;

	snprintf(dyn, sizeof(dyn), "%s/dyn", database ? database : "");
	r = callgrind_sum(&e, database ? dyn : NULL, from.nr ? 0 : (uint64_t)run->utc, run->dumps,
			  run->nr_dumps, &head, err);
	if (r >= 0 && (r = add_run(&e, run, head.creator, argv, status)) < 0)
		base_fail_errno(err, r, "cannot keep the counts");
	if (r >= 0)
		r = write_file(stem, "xct", false, &e, err);
	if (r >= 0)
		r = write_file(stem, "tab", true, &e, err);
	if (r >= 0 && json)
		r = tell(run, stem, &e, status, err);
	else if (r >= 0 && !quiet)
		say_files(run, stem, &e);
	exact_release(&e);
	return r;
}

static void warn(const struct dcpix_run *run)
{
	size_t nr = dcpix_nr_open(run);

	if (run->alarm)
		fprintf(stderr, "dcpix: valgrind says: %s\n", run->alarm);
	if (nr)
		fprintf(stderr,
			"dcpix: the counts of %zu process%s are not complete: killed, or still "
			"running\n",
			nr, nr == 1 ? "" : "es");
}

/* ---- the command ----------------------------------------------------------------------------- */

static int run_program(struct dcpix_run *run, char **argv, int *code, struct base_err *err)
{
	int status = 0, r = dcpix_run_open(run, err);
	pid_t pid;

	*code = DCPIX_FAILED;
	if (r < 0)
		return r;
	pid = start(run, argv);
	if (pid < 0)
		return base_fail_errno(err, -errno, "cannot start valgrind");
	r = follow(run, pid, &status, err);
	*code = exit_code(status);
	if (database)
		flush_daemon();
	warn(run);
	return r;
}

/* Counts that callgrind wrote by itself: where images lay is not known then. */
static int take_files(struct dcpix_run *run, struct base_err *err)
{
	int r = 0;

	for (size_t i = 0; i < from.nr && r >= 0; i++)
		r = dump_add(run, from.items[i], 0);
	return r < 0 ? base_fail_errno(err, r, "cannot read dumps") : 0;
}

static int count(char **argv, struct base_err *err)
{
	char *const files[] = { (char *)"callgrind", NULL };
	struct dcpix_run run = { .log_fd = -1, .utc = time(NULL) };
	int code = BASE_EXIT_OK, r;

	if (from.nr) {
		argv = (char **)files;
		r = take_files(&run, err);
	} else {
		r = run_program(&run, argv, &code, err);
	}
	if (r >= 0)
		r = finish(&run, prefix ? prefix : base_path_name(argv[0]), argv, code, err);
	dcpix_run_close(&run);
	if (r >= 0)
		return code;
	base_err_print(err, cmd.name, stderr);
	return code == BASE_EXIT_OK ? from.nr ? BASE_EXIT_FAILED : DCPIX_FAILED : code;
}

static int refuse(const struct base_err *err, int code)
{
	base_err_print(err, cmd.name, stderr);
	return code;
}

static int dcpix_main(int argc, char **argv)
{
	struct base_err err = { 0 };
	int r = base_opt_parse(&cmd, &argc, &argv, &err);

	if (r == BASE_OPT_DONE)
		return BASE_EXIT_OK;
	if (r >= 0 && !from.nr == !argc) {
		r = base_fail(&err, -DCPI_EUSAGE, "%s",
			      argc ? "a program and -from exclude each other"
				   : "no program is named");
		base_hint(&err, "usage: dcpix [options] %s", cmd.operands);
	}
	if (r < 0)
		return refuse(&err, BASE_EXIT_USAGE);
	if (!from.nr && ((r = check_program(argv[0], &err)) || (r = check_engine(&err))))
		return refuse(&err, r);
	return count(argv, &err);
}

const struct tool dcpix_tool = { .cmd = &cmd, .main = dcpix_main, .failed = DCPIX_FAILED };
