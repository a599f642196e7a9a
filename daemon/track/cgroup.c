/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a process belongs, as /proc shows it now: its user, its cgroup, its program. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "track.h"

/* Hierarchies of version 1 have a line each, with a path of 4095 bytes at most. */
enum { CGROUP_MAX = 64 << 10 };

/* ---- the cgroup ------------------------------------------------------------------------------ */

/* Behind "NUMBER:CONTROLLERS:"; NULL: it is no such line. Names of controllers have no colon. */
static char *path_of(char *line, bool *unified)
{
	char *controllers = strchr(line, ':'), *path;

	path = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!path || path[1] != '/')
		return NULL;
	*unified = strncmp(line, "0::", 3) == 0;
	return path + 1;
}

static bool is_root(const char *path)
{
	return !path[1];
}

/* A path that tells something is better than the root, and a unified one than others. */
static char *better(char *a, bool a_unified, char *b, bool b_unified)
{
	if (!a || (is_root(a) && !is_root(b)))
		return b;
	return b_unified && !a_unified && !is_root(b) ? b : a;
}

/* The kernel marks one that was removed, of the unified hierarchy alone. */
static void finish(char *path, bool unified)
{
	size_t len;

	proc_unescape(path);
	if (unified && mapping_is_deleted(path, &len))
		path[len] = '\0';
}

char *proc_parse_cgroup(char *text)
{
	char *best = NULL, *next;
	bool best_unified = false;

	for (char *line = text; line; line = next) {
		bool unified = false;
		char *path;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		path = path_of(line, &unified);
		if (!path || better(best, best_unified, path, unified) != path)
			continue;
		best = path;
		best_unified = unified;
	}
	if (best)
		finish(best, best_unified);
	return best;
}

static int read_cgroup(struct process *p)
{
	char *text = malloc(CGROUP_MAX), *path = NULL;
	ssize_t n = text ? proc_read(p->pid, "cgroup", text, CGROUP_MAX) : -ENOMEM;

	if (n >= 0)
		path = proc_parse_cgroup(text);
	p->cgroup = path ? strdup(path) : NULL;
	free(text);
	return n < 0 ? (int)n : 0;
}

/* ---- the program ----------------------------------------------------------------------------- */

/* The target of a link of /proc/PID; the length, or -errno. */
static ssize_t read_link(int32_t pid, const char *name, char *path, size_t cap)
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/%s", pid, name);
	n = readlink(link, path, cap - 1);
	if (n < 0)
		return -errno;
	path[n] = '\0';
	return n;
}

/* As its own root shows it. A kernel thread has none. */
static void read_exe(struct process *p)
{
	char path[4096], root[4096];
	size_t from = 0, len;
	ssize_t n = read_link(p->pid, "exe", path, sizeof(path)), r;

	if (n <= 0 || path[0] != '/')
		return;
	r = read_link(p->pid, "root", root, sizeof(root));
	if (r > 1 && r < n && strncmp(path, root, (size_t)r) == 0 && path[r] == '/')
		from = (size_t)r;
	if (mapping_is_deleted(path, &len))
		path[len] = '\0';
	p->exe = strdup(path + from);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void swap(char **a, char **b)
{
	char *old = *a;

	*a = *b;
	*b = old;
}

/* Things that were not read stay as they are. */
static void take(struct process *p, struct process *now)
{
	bool same = !now->uid_known || (p->uid_known && p->uid == now->uid);

	if (now->uid_known)
		p->uid = now->uid;
	p->uid_known |= now->uid_known;
	if (now->cgroup && !(p->cgroup && strcmp(p->cgroup, now->cgroup) == 0)) {
		swap(&p->cgroup, &now->cgroup);
		same = false;
	}
	if (now->exe) {
		swap(&p->exe, &now->exe);
		same = false;
	}
	p->identified &= same;
}

/* It is checked at the end: a life that is over does not come back. */
int proc_place(struct process *p, int (*check)(const struct process *p))
{
	struct process now = { .pid = p->pid };
	int r = proc_read_uid(&now);

	if (r == 0)
		r = read_cgroup(&now);
	if (r == 0 && !p->exe && !p->begins)
		read_exe(&now);
	if (r == 0)
		r = check(p);
	if (r == 0)
		take(p, &now);
	free(now.exe);
	free(now.cgroup);
	return r;
}
