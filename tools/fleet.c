/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpifetch copies the chosen part of a fleet's store into a database of this process. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fleet.h"

/* Databases that were copied; they live as long as the process. */
static struct copy {
	char path[PATH_MAX];
	const char *store;
	bool replicates;
	struct copy *next;
} * copies;

static bool is_store(const char *db)
{
	return db && profdb_is_store(db);
}

const char *fleet_name(const char *path)
{
	for (const struct copy *c = copies; c; c = c->next)
		if (strcmp(c->path, path) == 0)
			return c->store;
	return NULL;
}

bool fleet_has_replicates(const char *path)
{
	for (const struct copy *c = copies; c; c = c->next)
		if (strcmp(c->path, path) == 0)
			return c->replicates;
	return false;
}

int fleet_refuse(const struct select *s, struct base_err *err)
{
	return s->db ? profdb_refuse_store(s->db, err) : 0;
}

/* ---- the folder ------------------------------------------------------------------------------ */

static int fork_failed(const int ends[2])
{
	int r = -errno;

	close(ends[0]);
	close(ends[1]);
	return r;
}

/* Another process removes the folder when this one has ended, in whatever way. */
static int remove_later(const char *folder)
{
	int ends[2];
	pid_t pid;
	char c;

	if (pipe(ends) < 0)
		return -errno;
	pid = fork();
	if (pid < 0)
		return fork_failed(ends);
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		/* A reader of this process's output does not wait for the other one. */
		for (int fd = 0; fd < 3 && null >= 0; fd++)
			dup2(null, fd);
		close(ends[1]);
		setsid();
		while (read(ends[0], &c, 1) < 0 && errno == EINTR)
			;
		execlp("rm", "rm", "-rf", "--", folder, (char *)NULL);
		_exit(127);
	}
	close(ends[0]);
	return 0;
}

/* Makes a folder that is removed at the end; @path becomes that of a database in it. */
static int make_folder(char path[PATH_MAX], struct base_err *err)
{
	const char *tmp = getenv("TMPDIR");
	char folder[PATH_MAX - 8];
	int r;

	snprintf(folder, sizeof(folder), "%.3000s/dcpi-fleet-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(folder))
		return base_fail_errno(err, -errno, "cannot make a folder in '%s'",
				       tmp && *tmp ? tmp : "/tmp");
	r = remove_later(folder);
	if (r < 0) {
		rmdir(folder);
		return base_fail_errno(err, r, "cannot use '%s'", folder);
	}
	snprintf(path, PATH_MAX, "%s/db", folder);
	return 0;
}

/* ---- dcpifetch ------------------------------------------------------------------------------- */

struct words {
	const char **v;
	size_t nr, cap;
	bool failed;
};

static void add_word(struct words *w, const char *word)
{
	w->failed |= base_grow(&w->v, &w->cap, w->nr + 1, sizeof(*w->v)) < 0;
	if (!w->failed)
		w->v[w->nr++] = word;
}

static void add_option(struct words *w, const char *option, const char *value)
{
	if (!value)
		return;
	add_word(w, option);
	add_word(w, value);
}

static bool divides(enum fleet_detail detail)
{
	return detail == FLEET_REPLICATES || detail == FLEET_INSN_REPLICATES;
}

static void add_options(struct words *w, const struct select *s, enum fleet_detail detail,
			const char *into)
{
	static const char *const details[] = {
		[FLEET_PLATFORM] = "platform", [FLEET_WORKLOAD] = "workload",
		[FLEET_ROUTINE] = "routine",   [FLEET_REPLICATES] = "routine",
		[FLEET_OFFSET] = "offset",     [FLEET_INSN_REPLICATES] = "offset",
		[FLEET_PATHS] = "paths",       [FLEET_FILES] = "files",
	};

	add_word(w, "dcpifetch");
	add_word(w, "-quiet");
	add_option(w, "-from", s->db);
	add_option(w, "-o", into);
	add_option(w, "-detail", details[detail]);
	if (divides(detail))
		add_word(w, "-replicates");
	add_option(w, "-epoch", s->epoch);
	add_option(w, "-platform", s->platform);
	add_option(w, "-since", s->since);
	add_option(w, "-until", s->until);
	add_option(w, "-event", s->event);
	for (size_t i = 0; i < s->labels.nr; i++)
		add_option(w, "-label", s->labels.items[i]);
}

/* dcpifetch lies beside this program. */
static void exec_fetch(const struct words *w)
{
	char path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 16);

	path[len < 0 ? 0 : len] = 0;
	if (strrchr(path, '/')) {
		strcpy(strrchr(path, '/'), "/dcpifetch");
		execv(path, (char **)w->v);
	}
	execvp("dcpifetch", (char **)w->v);
	fprintf(stderr, "dcpifetch: cannot be started: %s\n", strerror(errno));
	_exit(127);
}

/* dcpifetch says "dcpifetch: TEXT", and on a second line "hint: TEXT". */
static int take_failure(char *said, struct base_err *err)
{
	static const char prefix[] = "dcpifetch: ", hint[] = "\nhint: ";
	char *text = strncmp(said, prefix, strlen(prefix)) ? said : said + strlen(prefix);
	char *second = strstr(text, hint);

	text[strcspn(text, "\n")] = 0;
	base_fail(err, -DCPI_EHELPER, "%s", *text ? text : "dcpifetch has failed");
	if (second) {
		second += strlen(hint);
		second[strcspn(second, "\n")] = 0;
		base_hint(err, "%s", second);
	}
	return -DCPI_EHELPER;
}

/* Reads the output to its end and keeps the beginning: a process with a full pipe would not end. */
static void read_said(int from, char *said, size_t size)
{
	char part[512];
	size_t len = 0;
	ssize_t n;

	while ((n = read(from, part, sizeof(part))) > 0 || (n < 0 && errno == EINTR)) {
		size_t fits = n < 0 ? 0 : (size_t)n < size - 1 - len ? (size_t)n : size - 1 - len;

		memcpy(said + len, part, fits);
		len += fits;
	}
	said[len] = 0;
}

static int wait_for(pid_t pid, int from, struct base_err *err)
{
	char said[2048];
	int status;

	read_said(from, said, sizeof(said));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return take_failure(said, err);
	fputs(said, stderr); /* warnings */
	return 0;
}

static int run(const struct words *w, struct base_err *err)
{
	int ends[2], r;
	pid_t pid;

	if (pipe(ends) < 0)
		return -errno;
	pid = fork();
	if (pid < 0)
		return fork_failed(ends);
	if (pid == 0) {
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		exec_fetch(w);
	}
	close(ends[1]);
	r = wait_for(pid, ends[0], err);
	close(ends[0]);
	return r;
}

static int fetch(const struct select *s, enum fleet_detail detail, int nr, char *const *what,
		 const char *into, struct base_err *err)
{
	struct words w = { 0 };
	int r;

	add_options(&w, s, detail, into);
	if (nr)
		add_word(&w, "--");
	for (int i = 0; i < nr; i++)
		add_word(&w, what[i]);
	add_word(&w, NULL);
	r = w.failed ? -ENOMEM : run(&w, err);
	free(w.v);
	return r < 0 ? base_fail_errno(err, r, "cannot read store '%s'", s->db) : 0;
}

/* Pids and threads are in machines' files alone, workloads also in sums by workload. */
static bool needs_files(const struct select *s, enum fleet_detail detail)
{
	return s->globs[WORKLOAD_PID].nr || s->globs[WORKLOAD_THREAD].nr ||
	       (detail != FLEET_WORKLOAD && select_workload(s));
}

int fleet_use(struct select *s, enum fleet_detail detail, int nr, char *const *what,
	      struct base_err *err)
{
	struct copy *c;
	int r;

	if (!is_store(s->db))
		return 0;
	if (needs_files(s, detail))
		detail = FLEET_FILES;
	else if (s->callers.nr)
		detail = FLEET_PATHS;
	/* Callers lie in other images; the head tells a workload's share of them all. */
	if (detail >= FLEET_PATHS)
		nr = 0;
	c = calloc(1, sizeof(*c));
	r = c ? make_folder(c->path, err) : base_fail_errno(err, -ENOMEM, "cannot start");
	if (r >= 0)
		r = fetch(s, detail, nr, what, c->path, err);
	if (r < 0) {
		free(c);
		return r;
	}
	c->store = s->db;
	c->replicates = divides(detail);
	c->next = copies;
	copies = c;
	s->db = c->path;
	s->epoch = "all";
	s->platform = s->since = s->until = NULL;
	/* Sums by routine have no label any more: those that were chosen are of it. */
	if (detail <= FLEET_REPLICATES)
		s->labels.nr = 0; /* a set frees the items */
	return 0;
}

int fleet_symbols(const char *path, size_t nr, char *const *ids, char folder[PATH_MAX],
		  struct base_err *err)
{
	const char *store = fleet_name(path);
	struct words w = { 0 };
	int r = make_folder(folder, err);

	add_word(&w, "dcpifetch");
	add_word(&w, "-quiet");
	add_option(&w, "-from", store);
	add_option(&w, "-o", folder);
	add_option(&w, "-detail", "symbols");
	add_word(&w, "--");
	for (size_t i = 0; i < nr; i++)
		add_word(&w, ids[i]);
	add_word(&w, NULL);
	if (r >= 0)
		r = w.failed ? -ENOMEM : run(&w, err);
	free(w.v);
	return r < 0 ? base_fail_errno(err, r, "cannot read store '%s'", store) : 0;
}
