/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes that run already, and what lost events did not tell: /proc is read for them. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "follow_internal.h"

struct listing {
	struct follow *f;
	struct process *p;
};

static void list_map(void *ctx, struct driver_load *l, bool exec)
{
	struct listing *to = ctx;

	if (!exec)
		return;
	l->pid = l->tid = to->p->pid;
	l->time_ns = to->f->now_ns;
	follow_mmap(to->f, to->p, l, FOLLOW_LISTED);
}

static int list_maps(struct follow *f, struct process *p)
{
	struct listing to = { f, p };

	return proc_each_map(f->reader, p->pid, list_map, &to);
}

static void record_comm(struct follow *f, const struct process *p)
{
	struct driver_load l = { .kind = DRIVER_LOAD_COMM,
				 .pid = p->pid,
				 .tid = p->pid,
				 .time_ns = f->now_ns,
				 .path = p->comm };

	follow_record(f, &l);
}

/* Numbers may be given again while /proc is read, so that ancestors might go in a circle. */
enum { ANCESTORS_MAX = 64 };

/* Its fork was before us, or its event is lost: whose code it has is told by who it descends from.
 */
static void find_inherited(struct follow *f, struct process *p)
{
	struct process *up = p;

	for (int i = 0; i < ANCESTORS_MAX && up->ppid > 0; i++) {
		up = processes_find(f->processes, up->ppid);
		if (!up || up == p)
			return;
		if (dyn_inherit(f->dyn, up, p)) {
			f->ranges_changed = true;
			return;
		}
	}
}

/* /proc was read, and tells from now on which life @p is. */
static void instance_listed(struct process *p)
{
	if (p->instance)
		return;
	p->born_ns = 0;
	p->execs_announced = false;
}

static int list(struct follow *f, struct process *p)
{
	uint64_t known_ns = p->known_ns;
	int r = proc_describe(p);

	if (r < 0)
		return r;
	instance_listed(p);
	labels_keep_restore(&f->labels, p);
	record_comm(f, p);
	p->known_ns = base_now_ns();
	r = list_maps(f, p);
	/* The reader refused, or was killed: events of before still tell something new. */
	if (r < 0)
		p->known_ns = known_ns;
	return r;
}

int follow_scan(struct follow *f, struct process *p)
{
	int r = list(f, p);

	if (r == 0 && f->dyn)
		find_inherited(f, p);
	return r;
}

static void end_lost(struct follow *f, struct process *p)
{
	follow_end_lost(f, p->pid);
	follow_end(f, p);
}

/* Kernel threads have no mappings and are left out until something asks for them. */
static void scan_pid(struct follow *f, int32_t pid)
{
	struct process *p = processes_find(f->processes, pid);
	bool added = !p || proc_is_other_life(p);

	if (p && added)
		follow_end_lost(f, pid);
	if (added)
		p = follow_begin(f, pid);
	if (p && list(f, p) < 0 && added)
		follow_end(f, p);
}

static int32_t pid_of(const char *name)
{
	char *end;
	long pid = strtol(name, &end, 10);

	return isdigit((unsigned char)name[0]) && !*end && pid > 0 && pid <= INT32_MAX
		       ? (int32_t)pid
		       : -1;
}

int follow_scan_all(struct follow *f)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	struct process *p;
	int nr = 0;

	if (!proc)
		return -errno;
	while ((entry = readdir(proc))) {
		int32_t pid = pid_of(entry->d_name);

		if (pid < 0)
			continue;
		scan_pid(f, pid);
		nr++;
	}
	closedir(proc);
	/* Not before: children may be listed before their parents. */
	for (size_t pos = 0; f->dyn && processes_next(f->processes, &pos, &p);)
		find_inherited(f, p);
	return nr;
}

void follow_scan_known(struct follow *f)
{
	struct process *p;

	for (size_t pos = 0; processes_next(f->processes, &pos, &p);) {
		if (!proc_is_other_life(p)) {
			follow_scan(f, p);
			continue;
		}
		/* Later events tell which process has that number now. */
		end_lost(f, p);
		pos--;
	}
}

/* /proc has the process no more. */
static bool is_gone(const struct process *p)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", p->pid);
	return access(path, F_OK) < 0 && errno == ENOENT;
}

void follow_sweep(struct follow *f)
{
	struct process *p;

	for (size_t pos = 0; processes_next(f->processes, &pos, &p);) {
		if (!is_gone(p)) {
			p->gone = false;
		} else if (!p->gone) {
			/* Its end, and samples before it, may still be on their way. */
			p->gone = true;
		} else {
			end_lost(f, p);
			pos--;
		}
	}
}
