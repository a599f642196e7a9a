/* SPDX-License-Identifier: BSD-2-Clause */
/* The folder of one dcpix run holds its processes and their dumps. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dcpix.h"

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

/* ---- the folder -------------------------------------------------------------------------------
 */

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
		/* For writing too, so that it neither ends nor waits when nobody has it open. */
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

/* ---- processes --------------------------------------------------------------------------------
 */

static struct dcpix_process *process(const struct dcpix_run *run, uint32_t pid)
{
	for (size_t i = 0; i < run->nr_processes; i++)
		if (run->processes[i].pid == pid)
			return &run->processes[i];
	return NULL;
}

size_t dcpix_nr_processes(const struct dcpix_run *run)
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

int dcpix_dump_add(struct dcpix_run *run, const char *path, uint32_t pid)
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
	return dcpix_dump_add(run, path, p->pid);
}

/* ---- the log ----------------------------------------------------------------------------------
 */

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
