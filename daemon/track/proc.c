/* SPDX-License-Identifier: BSD-2-Clause */
/* One process as /proc shows it: what it is, whose, which life of its pid, and what it has mapped.
 * Nothing here opens a file that a process names. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "reader.h"
#include "track.h"

enum {
	STAT_STATE = 3, /* field numbers of proc_pid_stat(5) */
	STAT_PARENT = 4,
	STAT_FLAGS = 9,
	STAT_NR_THREADS = 20,
	STAT_START = 22, /* ticks since boot */
};

#define STEP_NS 10000000u  /* resolution of start times */
#define KTHREAD 0x00200000 /* flag of the kernel's own threads, the same on all machines */

/* The facts that /proc/PID/stat tells. */
struct listed {
	char comm[16];
	int32_t ppid;
	uint64_t start_time_ns;
	bool is_kthread; /* its name may say what it does just now */
};

/* Read a small file of /proc/PID into @text; the length, or -errno. */
static ssize_t proc_read(int32_t pid, const char *name, char *text, size_t cap)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, cap - 1);
	n = n < 0 ? -errno : n;
	close(fd);
	text[n < 0 ? 0 : n] = '\0';
	return n;
}

/* The name stands in parentheses and may hold any byte, parentheses too. */
static int parse_stat(struct listed *p, char *text)
{
	char *name = strchr(text, '('), *end = strrchr(text, ')'), *field, *save = NULL;
	uint64_t ticks = 0, hz = (uint64_t)sysconf(_SC_CLK_TCK);
	unsigned long nr_threads = 0;
	char state = '?';

	if (!name || !end || end < name)
		return -DCPI_EFORMAT;
	*end = '\0';
	snprintf(p->comm, sizeof(p->comm), "%s", name + 1);
	field = strtok_r(end + 1, " ", &save);
	for (int i = STAT_STATE; field && i <= STAT_START; i++) {
		if (i == STAT_STATE)
			state = *field;
		else if (i == STAT_PARENT)
			p->ppid = (int32_t)strtol(field, NULL, 10);
		else if (i == STAT_FLAGS)
			p->is_kthread = strtoul(field, NULL, 10) & KTHREAD;
		else if (i == STAT_NR_THREADS)
			nr_threads = strtoul(field, NULL, 10);
		else if (i == STAT_START)
			ticks = strtoull(field, NULL, 10);
		field = strtok_r(NULL, " ", &save);
	}
	/* It is the main thread's, which may end before others. */
	if ((state == 'Z' && nr_threads < 2) || state == 'X')
		return -ESRCH;
	p->start_time_ns = ticks * (1000000000u / (hz ? hz : 100));
	return 0;
}

/* ---- which life of a pid it is --------------------------------------------------------------- */

/* The clock of events is read without a lock, which may be so much aside of that of tasks. */
#define SLACK_NS 1000000
/* The steps of start times in /proc. */
#define TICK_NS 10000000

/* From the start of @instance to @boot_ns, to a microsecond; negative: it began later. */
static int64_t age_ns(uint64_t instance, uint64_t boot_ns)
{
	/* Sign-extend the 48-bit difference. */
	return (int64_t)((boot_ns / DRIVER_INSTANCE_UNIT - instance) << 16) / 65536 *
	       DRIVER_INSTANCE_UNIT;
}

/* A start time read from /proc can be that of @instance. */
static bool is_listed(const struct process *p, uint64_t instance)
{
	int64_t age = age_ns(instance, p->start_time_ns);

	return age <= DRIVER_INSTANCE_UNIT && age >= -TICK_NS - DRIVER_INSTANCE_UNIT;
}

bool instance_fits(struct process *p, uint64_t instance)
{
	if (p->instance)
		return p->instance == instance;
	if (p->known_ns ? !is_listed(p, instance)
			: p->born_ns && age_ns(instance, p->born_ns) < -SLACK_NS)
		return false;
	if (p->execs_announced && p->execs != instance / DRIVER_INSTANCE_EXEC)
		return false;
	p->instance = instance;
	return true;
}

/* A fork is told after the start that /proc has, and both come in steps. */
static bool is_other_start(const struct process *p, uint64_t start_ns)
{
	const struct process now = { .start_time_ns = start_ns };

	if (p->start_time_ns)
		return start_ns != p->start_time_ns;
	if (p->instance)
		return !is_listed(&now, p->instance);
	return p->began_ns && start_ns > p->began_ns + STEP_NS;
}

/* ---- what it is ------------------------------------------------------------------------------ */

/* @now gets what the pid is now, if that is still @p's. */
static int read_stat(const struct process *p, struct listed *now)
{
	char text[4096];
	ssize_t n = proc_read(p->pid, "stat", text, sizeof(text));
	int r = n < 0 ? (int)n : parse_stat(now, text);

	if (r < 0)
		return r;
	return is_other_start(p, now->start_time_ns) ? -ESTALE : 0;
}

/* Read the uid of the process that has that pid now. 0 or -errno. */
static int proc_read_uid(struct process *p)
{
	char text[4096];
	ssize_t n = proc_read(p->pid, "status", text, sizeof(text));
	const char *uid = n < 0 ? NULL : strstr(text, "\nUid:");
	uint32_t now = uid ? (uint32_t)strtoul(uid + 5, NULL, 10) : p->uid;

	if (n < 0)
		return (int)n;
	p->identified &= p->uid_known && p->uid == now;
	p->uid_known |= uid != NULL;
	p->uid = now;
	return 0;
}

int proc_describe(struct process *p)
{
	struct listed now = { 0 };
	int r = read_stat(p, &now);

	if (r == 0)
		r = proc_read_uid(p);
	if (r < 0)
		return r;
	p->ppid = now.ppid;
	p->start_time_ns = now.start_time_ns;
	process_set_comm(p, now.comm);
	return 0;
}

/* The kernel writes a newline as \012 in lists of /proc; nothing else is escaped. */
static void proc_unescape(char *path)
{
	char *to = path;

	for (; *path; path++) {
		if (strncmp(path, "\\012", 4) == 0) {
			*to++ = '\n';
			path += 3;
		} else {
			*to++ = *path;
		}
	}
	*to = '\0';
}

static uint32_t prot_of(const char *perms)
{
	return (perms[0] == 'r' ? PROT_READ : 0u) | (perms[1] == 'w' ? PROT_WRITE : 0u) |
	       (perms[2] == 'x' ? PROT_EXEC : 0u);
}

int proc_parse_line(char *line, struct driver_load *l)
{
	uint64_t start, end;
	char perms[8];
	int path_at = 0;

	line[strcspn(line, "\n")] = '\0';
	*l = (struct driver_load){ .kind = DRIVER_LOAD_MMAP };
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64 " %n", &start,
		   &end, perms, &l->file_off, &l->dev_major, &l->dev_minor, &l->inode,
		   &path_at) < 7 ||
	    end <= start || strlen(perms) != 4 || !path_at)
		return -DCPI_EFORMAT;
	l->addr = start;
	l->len = end - start;
	l->prot = prot_of(perms);
	proc_unescape(line + path_at);
	l->path = line[path_at] ? line + path_at : "//anon";
	return perms[2] == 'x';
}

/* NULL with errno, or where it shows nothing with errno 0. */
static FILE *open_if_any(const char *path)
{
	FILE *maps = fopen(path, "re");
	int c = maps ? getc(maps) : EOF;

	if (c != EOF) {
		ungetc(c, maps);
		return maps;
	}
	if (maps) {
		fclose(maps);
		errno = 0;
	}
	return NULL;
}

/* A main thread that has ended shows no mappings; its other threads show them. */
static FILE *open_maps(int32_t pid)
{
	char path[64], name[400];
	struct dirent *entry;
	FILE *maps;
	DIR *task;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = open_if_any(path);
	if (maps || errno)
		return maps;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	task = opendir(path);
	while (!maps && task && (entry = readdir(task))) {
		snprintf(name, sizeof(name), "%s/%s/maps", path, entry->d_name);
		maps = entry->d_name[0] == '.' ? NULL : open_if_any(name);
	}
	if (task)
		closedir(task);
	errno = 0;
	return maps;
}

typedef void map_fn(void *ctx, struct driver_load *l, bool exec);

/* @text is changed. */
static void each_line(char *text, map_fn *fn, void *ctx)
{
	struct driver_load l;
	char *end;
	int exec;

	for (char *line = text; *line; line = end + 1) {
		end = strchr(line, '\n');
		if (!end)
			break;
		*end = '\0';
		exec = proc_parse_line(line, &l);
		if (exec >= 0)
			fn(ctx, &l, exec);
	}
}

static int read_each(struct reader *reader, int32_t pid, map_fn *fn, void *ctx)
{
	struct base_buf text = { 0 };
	int r = reader_maps(reader, pid, &text);

	if (r == 0)
		r = base_buf_append(&text, "", 1);
	if (r == 0)
		each_line((char *)text.data, fn, ctx);
	base_buf_release(&text);
	return r;
}

int proc_each_map(struct reader *reader, int32_t pid, map_fn *fn, void *ctx)
{
	struct driver_load l;
	size_t cap = 0;
	FILE *maps = reader ? NULL : open_maps(pid);
	char *line = NULL;
	int r = 0, exec;

	if (reader)
		return read_each(reader, pid, fn, ctx);
	if (!maps)
		return -errno;
	while (getline(&line, &cap, maps) > 0)
		if ((exec = proc_parse_line(line, &l)) >= 0)
			fn(ctx, &l, exec);
	if (ferror(maps))
		r = -EIO;
	free(line);
	fclose(maps);
	return r;
}

struct code_check {
	uint64_t at, end; /* up to @at it is */
};

static void check_map(void *ctx, struct driver_load *l, bool exec)
{
	struct code_check *c = ctx;

	if (exec && l->addr <= c->at && l->addr + l->len > c->at)
		c->at = l->addr + l->len;
}

int proc_check_code(struct reader *reader, int32_t pid, uint64_t start, uint64_t end)
{
	struct code_check c = { start, end };
	int r = proc_each_map(reader, pid, check_map, &c);

	return r < 0 ? r : c.at >= c.end ? 0 : -ENOENT;
}

struct dynamic_listing {
	void (*fn)(void *ctx, uint64_t start, uint64_t end);
	void *ctx;
	uint64_t start, end; /* bounds of anonymous memory without a gap */
	bool exec;	     /* some of it is executable */
};

static void end_run(struct dynamic_listing *to)
{
	if (to->exec)
		to->fn(to->ctx, to->start, to->end);
	to->start = to->end = 0;
	to->exec = false;
}

static void list_dynamic(void *ctx, struct driver_load *l, bool exec)
{
	struct dynamic_listing *to = ctx;

	if (l->addr != to->end)
		end_run(to);
	if (exec ? mapping_kind(l, false) != MAPPING_CODE : strcmp(l->path, "//anon") != 0) {
		end_run(to);
		return;
	}
	to->start = to->end ? to->start : l->addr;
	to->end = l->addr + l->len;
	to->exec |= exec;
}

void proc_dynamic(struct reader *reader, const struct process *p,
		  void (*fn)(void *ctx, uint64_t start, uint64_t end), void *ctx)
{
	struct dynamic_listing to = { .fn = fn, .ctx = ctx };

	proc_each_map(reader, p->pid, list_dynamic, &to);
	end_run(&to);
}

bool proc_is_other_life(const struct process *p)
{
	struct process now = { .pid = p->pid };

	return !p->later && proc_describe(&now) == 0 && is_other_start(p, now.start_time_ns);
}

/* ---- where a process belongs ----------------------------------------------------------------- */

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

/* The pid of @p is its own still, and (@named) it has the name that is known. */
static int check(const struct process *p, bool named)
{
	struct listed now = { 0 };
	int r = read_stat(p, &now);

	if (r < 0 || !named || now.is_kthread || !p->comm[0])
		return r;
	return strcmp(now.comm, p->comm) == 0 ? 0 : -ESTALE;
}

/* It is checked at the end: a life that is over does not come back. */
int proc_place(struct process *p, bool named)
{
	struct process now = { .pid = p->pid };
	int r = proc_read_uid(&now);

	if (r == 0)
		r = read_cgroup(&now);
	if (r == 0 && !p->exe && !p->begins)
		read_exe(&now);
	if (r == 0)
		r = check(p, named);
	if (r == 0)
		take(p, &now);
	free(now.exe);
	free(now.cgroup);
	return r;
}
