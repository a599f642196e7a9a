/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Load events change the table of processes. An event can be older than what is already known of
 * its process: /proc was read, or a hand-over taken, after it. It then must not undo the newer
 * knowledge.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "attrib.h"
#include "identity.h"
#include "scan.h"
#include "windows.h"

static const char deleted[] = " (deleted)";

/* Asked of each mapping, and most paths differ in the first bytes: @start and @name have two. */
static bool starts_with(const char *text, const char *start)
{
	return text[0] == start[0] && text[1] == start[1] &&
	       strncmp(text, start, strlen(start)) == 0;
}

static bool is_named(const char *text, const char *name)
{
	return text[0] == name[0] && text[1] == name[1] && strcmp(text, name) == 0;
}

static bool is_deleted(const char *path)
{
	size_t len = strlen(path), tail = sizeof(deleted) - 1;

	return len > tail && strcmp(path + len - tail, deleted) == 0;
}

static bool is_marker(const char *path)
{
	static const char name[] = "/memfd:" WIRE_MEMFD_NAME;

	return starts_with(path, name) &&
	       (!path[sizeof(name) - 1] || strcmp(path + sizeof(name) - 1, deleted) == 0);
}

static bool is_file(const char *path)
{
	return path[0] == '/' && !is_named(path, "//anon");
}

/*
 * Memory that programs write code into themselves. A file that has no name in any folder is taken
 * for an image only when it has a build-id (programs run from a memfd have).
 */
static bool is_dynamic(const struct driver_load *l, enum track_how how)
{
	const char *path = l->path;

	if (!is_file(path))
		return true;
	if (l->id.len)
		return false;
	return starts_with(path, "/memfd:") || starts_with(path, "/dev/zero") ||
	       starts_with(path, "/SYSV") || starts_with(path, "/anon_hugepage") ||
	       (how == TRACK_EVENT && is_deleted(path));
}

static bool is_vdso(const char *path)
{
	return is_named(path, "[vdso]");
}

/* A page of the kernel's that every process lists: no program makes code there. */
static bool is_vsyscall(const char *path)
{
	return is_named(path, "[vsyscall]");
}

bool track_is_dynamic(const struct driver_load *l)
{
	return l->path && !is_marker(l->path) && !is_vdso(l->path) && !is_vsyscall(l->path) &&
	       is_dynamic(l, TRACK_LISTED);
}

/*
 * A file that a runtime maps to go on in it (SBCL's core): code that is made there later is in no
 * file. Where writing was forbidden afterwards (mprotect), it is still such memory.
 */
static bool is_workspace(const struct process *p, const struct driver_load *l)
{
	const struct map *old = map_find(p, l->addr);

	return l->prot & PROT_WRITE || (old && old->kind == MAP_DYNAMIC);
}

/* The image of an ordinary file; l->id is filled in where something better than the path tells.
 * NULL also where it is a dump, or memory for code. */
static struct image *file_image(struct attrib *a, struct process *p, struct driver_load *l,
				bool listed, struct reader_dump *dump)
{
	struct driver_load asked = *l;
	struct base_id id = l->id;
	const char *path = l->path;
	bool by_path = false;
	char there[4096];
	struct image *img;

	/* What /proc lists is there now. */
	asked.time_ns = listed ? 0 : l->time_ns;
	if (!id.len && identity_find(a->identity, p, &asked, &id, &by_path, dump) < 0)
		return NULL;
	if (dump->fd >= 0 || (dump->no_elf && is_workspace(p, l)))
		return NULL;
	if (!by_path)
		l->id = id;
	if (is_deleted(path)) {
		snprintf(there, sizeof(there), "%.*s", (int)(strlen(path) - (sizeof(deleted) - 1)),
			 path);
		path = there;
	}
	img = images_get(a->images, PROFDB_FILE, &id, path, base_path_name(path));
	if (img && by_path && !profdb_profile_word(img->counts, "identity"))
		profdb_profile_set_word(img->counts, "identity",
					a->live && l->inode ? "place" : "path");
	return img;
}

static void put(struct attrib *a, struct process *p, const struct map *m, enum track_how how)
{
	int r = how == TRACK_LATE ? map_recall(p, m) : map_insert(p, m);

	if (r < 0)
		base_log(BASE_LOG_ERROR, "no memory for a mapping of pid %d", p->pid);
	else if (how == TRACK_EVENT)
		p->hollow = false;
	a->ranges_changed |= p->dyn != NULL;
}

static void marker(struct attrib *a, struct process *p, const struct driver_load *l,
		   enum track_how how)
{
	if (how == TRACK_LATE || !a->dyn)
		return;
	/* A forked child has its parent's uid and no start time until somebody asks. What is in
	 * the memory of the next process of its pid is not its. */
	if (a->live && scan_describe(p) == -ESTALE)
		return;
	dyn_marker(a->dyn, p, l->addr, l->len);
	a->ranges_changed = true;
}

/* The mapping only says where the file is, as the marker does. */
static void dump_found(struct attrib *a, struct process *p, const struct reader_dump *dump,
		       enum track_how how)
{
	if (how == TRACK_LATE || !a->dyn || !a->live) {
		close(dump->fd);
		return;
	}
	scan_describe(p);
	if (dyn_dump(a->dyn, p, dump) == 0)
		a->ranges_changed = true;
}

void track_watch(struct attrib *a, struct process *p)
{
	if (p->watched || !a->dyn || !a->live || dyn_has_registry(p))
		return;
	/* What the next process of its pid writes does not tell of its code. */
	if ((!p->start_time_ns || !p->known_ns) && scan_describe(p) == -ESTALE)
		return;
	dyn_watch(a->dyn, p);
}

/*
 * The kernel has another vdso for programs of 32 bits, of the same name and no build-id, below
 * 4 GiB, where it maps none of ours. What it holds a program may have changed: so it is code that
 * nobody named.
 */
static bool is_vdso_of_32_bits(const struct driver_load *l)
{
	return UINTPTR_MAX > UINT32_MAX && !l->id.len && l->addr <= UINT32_MAX;
}

/* A recorded stream may tell which one it was; its image is not here. */
static struct image *vdso_image(struct attrib *a, const struct driver_load *l)
{
	struct image *img = a->kernel ? kernel_vdso(a->kernel) : NULL;

	if (is_vdso_of_32_bits(l))
		return NULL;
	if (!img && !a->live && l->id.len)
		img = images_get(a->images, PROFDB_VDSO, &l->id, "[vdso]", "vdso");
	return img;
}

void track_mmap(struct attrib *a, struct process *p, const struct driver_load *event,
		enum track_how how)
{
	struct driver_load l = *event;
	bool listed = how == TRACK_LISTED, vdso = l.path && is_vdso(l.path);
	struct reader_dump dump = { .fd = -1 };
	struct map m = { .start = l.addr,
			 .file_off = l.file_off,
			 .since_ns = listed ? p->known_ns : l.time_ns,
			 .listed = listed };

	if (!l.path || !l.len || base_add_overflow(l.addr, l.len, &m.end) || is_vsyscall(l.path))
		return;
	if (is_marker(l.path)) {
		attrib_record_load(a, &l);
		marker(a, p, &l, how);
		return;
	}
	if (vdso) {
		m.file_off = 0;
		m.image = vdso_image(a, &l);
		/* Its event does not tell, so that a stream that is recorded of it would not. */
		if (m.image)
			l.id = m.image->id;
	} else if (!is_dynamic(&l, how)) {
		m.image = file_image(a, p, &l, listed, &dump);
	}
	if (dump.fd >= 0) {
		dump_found(a, p, &dump, how);
		return;
	}
	m.kind = m.image ? MAP_IMAGE : MAP_DYNAMIC;
	/* The kernel maps the program before all else that exec brings, but for a stack that may be
	 * executed. */
	if (p->begins && how == TRACK_EVENT && is_file(l.path)) {
		p->begins = false;
		p->exe = strdup(l.path);
	}
	attrib_record_load(a, &l);
	put(a, p, &m, how);
	if (m.kind == MAP_IMAGE && p->watched)
		dyn_mapped(p);
	/* Before it has a sample: it may be gone when that comes. No runtime lives by a vdso. */
	if (m.kind == MAP_DYNAMIC && how != TRACK_LATE && !vdso)
		track_watch(a, p);
}

static uint64_t since_boot(const struct attrib *a, uint64_t time_ns)
{
	return a->live ? time_ns + base_boot_ahead_ns() : time_ns;
}

/* As start times, which come in steps of 10 ms, rounded down. */
static uint64_t began(const struct attrib *a, uint64_t boot_ns)
{
	return a->live ? boot_ns / 10000000 * 10000000 : boot_ns;
}

static bool began_after(const struct process *p, uint64_t time_ns)
{
	return time_ns != UINT64_MAX && p->start_time_ns > time_ns + base_boot_ahead_ns();
}

/* Events of it were lost, or it is older than we are. */
static void ask(struct attrib *a, struct process *p, uint64_t time_ns)
{
	p->asked = true;
	p->hollow = !a->live || scan_process(a, p) < 0 || began_after(p, time_ns);
	if (!p->hollow)
		return;
	map_clear(p);
	p->known_ns = 0;
	a->hollow_made = true;
}

static void carry_own(struct attrib *a, struct process *from, struct process *to)
{
	if (dyn_hand_on(from, to) < 0)
		base_log(BASE_LOG_ERROR, "no memory for the registry of process %d", to->pid);
	to->attached_ns = from->attached_ns;
	to->later = from->later;
	from->attached_ns = 0;
	from->later = NULL;
	a->ranges_changed = true;
}

static void inherit_label(struct process *p, const struct process *parent)
{
	p->label = parent ? parent->label : NULL;
	p->next_label = parent ? parent->next_label : NULL;
	p->labelled_ns = parent ? parent->labelled_ns : 0;
}

/* An event of before it got its next one. */
static bool is_labelled_after(const struct process *p, const struct driver_load *l)
{
	return p->next_label && p->labelled_ns > l->time_ns;
}

/* Its next program begins. */
static void turn_label(struct process *p)
{
	p->label = p->next_label ? p->next_label : p->label;
	p->next_label = NULL;
}

/*
 * A registry that was handed over after @l happened belongs to the life that @l began, though it
 * could only be attached to the one before.
 */
static void carry_client(struct attrib *a, struct process *from, struct process *to,
			 const struct driver_load *l)
{
	struct process *later = from ? from->later : NULL;

	if (from && from->attached_ns > l->time_ns) {
		carry_own(a, from, to);
	} else if (later && later->attached_ns > l->time_ns) {
		carry_own(a, later, to);
		to->told = later->told;
		from->later = NULL;
		if (a->dyn && later->dyn)
			dyn_end(a->dyn, later);
		free(later);
	}
}

/* The fork or exec that began it was lost. */
static struct process *next_life(struct attrib *a, struct process *p, uint64_t time_ns,
				 uint64_t instance)
{
	const struct driver_load last = { .pid = p->pid, .time_ns = p->seen_ns };
	struct process *next;

	base_log(BASE_LOG_DEBUG, "process %d has another life than events told", p->pid);
	if (a->windows)
		windows_ended(a->windows, a, p->pid, p->seen_ns);
	/* What /proc listed was another life's than that of the counts of before. */
	if (time_ns < p->known_ns) {
		map_clear(p);
		p->hollow = true;
	}
	next = processes_add(a->processes, p->pid);
	if (!next)
		return NULL;
	next->instance = instance;
	next->hollow = a->hollow_made = true;
	if (p->instance % DRIVER_INSTANCE_EXEC == instance % DRIVER_INSTANCE_EXEC) {
		inherit_label(next, p);
		turn_label(next);
	}
	carry_client(a, p, next, &last);
	return next;
}

static struct process *find(struct attrib *a, int32_t pid, uint64_t time_ns, uint64_t instance)
{
	struct process *p = processes_find(a->processes, pid);

	if (p && instance && !instance_fits(p, instance))
		return next_life(a, p, time_ns, instance);
	if (p)
		return p;
	p = processes_add(a->processes, pid);
	if (!p)
		return NULL;
	p->hollow = true;
	p->instance = instance;
	p->born_ns = instance ? 0 : since_boot(a, time_ns);
	return p;
}

struct process *track_find(struct attrib *a, int32_t pid, uint64_t time_ns, uint64_t instance)
{
	struct process *p = find(a, pid, time_ns, instance);

	if (!p)
		return NULL;
	p->seen_ns = time_ns > p->seen_ns ? time_ns : p->seen_ns;
	if (p->hollow && !p->asked)
		ask(a, p, time_ns);
	return p;
}

static bool is_late(const struct process *p, const struct driver_load *l)
{
	return p && l->time_ns < p->known_ns;
}

static void on_fork(struct attrib *a, const struct driver_load *l)
{
	struct process *parent = processes_find(a->processes, l->ppid);
	struct process *old = processes_find(a->processes, l->pid), *p;
	uint64_t boot_ns;

	if (l->pid == l->ppid)
		return;
	if (old)
		windows_end_lost(a->windows, l->pid);
	if (is_late(old, l)) {
		map_restart(old, l->time_ns);
		instance_fork(old, parent, since_boot(a, l->time_ns));
		if (is_labelled_after(old, l))
			old->label = parent ? parent->label : NULL;
		else
			inherit_label(old, parent);
		return;
	}
	if (parent && parent->hollow)
		parent = track_find(a, l->ppid, l->time_ns, 0);
	p = processes_add(a->processes, l->pid);
	if (!p)
		return;
	boot_ns = since_boot(a, l->time_ns);
	p->began_ns = began(a, boot_ns);
	p->seen_ns = l->time_ns;
	instance_fork(p, parent, boot_ns);
	inherit_label(p, parent);
	carry_client(a, old, p, l);
	if (!parent) {
		ask(a, p, UINT64_MAX);
		return;
	}
	/* What /proc listed of the parent after the fork need not have been the child's. */
	p->hollow = parent->hollow || is_late(parent, l) || map_copy(p, parent) < 0;
	a->hollow_made |= p->hollow;
	p->uid = parent->uid;
	memcpy(p->comm, parent->comm, sizeof(p->comm));
	p->exe = parent->exe ? strdup(parent->exe) : NULL;
	if (parent->dyn && a->dyn)
		dyn_fork(a->dyn, parent, p, l->time_ns,
			 l->flags & DRIVER_LOAD_CURSOR ? &l->cursor : NULL);
	a->ranges_changed |= p->dyn != NULL;
}

static void set_comm(struct process *p, const char *comm)
{
	size_t len;

	if (!comm)
		return;
	len = strnlen(comm, sizeof(p->comm) - 1);
	memcpy(p->comm, comm, len);
	p->comm[len] = '\0';
}

static void on_exec(struct attrib *a, const struct driver_load *l)
{
	struct process *old = processes_find(a->processes, l->pid), *p;

	if (a->windows)
		windows_ended(a->windows, a, l->pid, l->time_ns);
	if (is_late(old, l)) {
		map_restart(old, l->time_ns);
		old->execed_ns = since_boot(a, l->time_ns);
		instance_exec(old, old, old->execed_ns);
		if (!is_labelled_after(old, l))
			turn_label(old);
		return;
	}
	p = processes_add(a->processes, l->pid);
	if (!p)
		return;
	p->seen_ns = l->time_ns;
	p->execed_ns = since_boot(a, l->time_ns);
	instance_exec(p, old, p->execed_ns);
	inherit_label(p, old);
	turn_label(p);
	if (old) {
		p->uid = old->uid;
		p->start_time_ns = old->start_time_ns;
		p->began_ns = old->began_ns;
	}
	carry_client(a, old, p, l);
	p->begins = true;
	set_comm(p, l->path);
}

static void on_mmap(struct attrib *a, const struct driver_load *l)
{
	struct process *p = track_find(a, l->pid, l->time_ns, 0);

	if (p)
		track_mmap(a, p, l, is_late(p, l) ? TRACK_LATE : TRACK_EVENT);
}

static void on_exit_event(struct attrib *a, const struct driver_load *l)
{
	struct process *p = processes_find(a->processes, l->pid), *next;
	bool own;

	if (a->windows)
		windows_ended(a->windows, a, l->pid, l->time_ns);
	if (!p || is_late(p, l))
		return;
	processes_end(a->processes, p);
	/* That pid lives again, and has told so itself. */
	own = p->attached_ns > l->time_ns + DYN_MADE_NS;
	if (!own && !(p->later && p->later->attached_ns > l->time_ns))
		return;
	next = processes_add(a->processes, l->pid);
	if (!next)
		return;
	next->hollow = a->hollow_made = true;
	/* In doubt its registry is of the life that ended: that may have been a short one. */
	if (!own)
		p->attached_ns = 0;
	carry_client(a, p, next, l);
}

static void on_dyn(struct attrib *a, const struct driver_load *l)
{
	struct process *p = track_find(a, l->pid, l->time_ns, 0);

	if (p && a->dyn && dyn_records(a->dyn, p, l->time_ns, l->data, l->data_len) < 0)
		base_log(BASE_LOG_WARN, "bad records of dynamic code of pid %d", l->pid);
}

/* From its next program on: one life, and so one registry, has one label. */
static void on_label(struct attrib *a, const struct driver_load *l)
{
	struct process *p = track_find(a, l->pid, l->time_ns, 0);
	const char *label = l->path && label_check(l->path, strlen(l->path), NULL) == 0
				    ? labels_get(&a->labels, l->path)
				    : NULL;

	if (!p || !label) {
		base_log(BASE_LOG_WARN, "process %d gets no label", l->pid);
		return;
	}
	p->next_label = label;
	p->labelled_ns = l->time_ns;
	a->labels.changed = true;
}

static void on_comm(struct attrib *a, const struct driver_load *l)
{
	struct process *p = processes_find(a->processes, l->pid);

	if (p && !is_late(p, l))
		set_comm(p, l->path);
}

void track_load(struct attrib *a, const struct driver_load *l)
{
	if (l->kind != DRIVER_LOAD_MMAP)
		attrib_record_load(a, l);
	switch (l->kind) {
	case DRIVER_LOAD_MMAP:
		on_mmap(a, l);
		break;
	case DRIVER_LOAD_FORK:
		on_fork(a, l);
		break;
	case DRIVER_LOAD_EXEC:
		on_exec(a, l);
		break;
	case DRIVER_LOAD_COMM:
		on_comm(a, l);
		break;
	case DRIVER_LOAD_EXIT:
		on_exit_event(a, l);
		break;
	case DRIVER_LOAD_KSYMBOL:
	case DRIVER_LOAD_KERNEL:
	case DRIVER_LOAD_POKE:
		if (a->kernel)
			kernel_load(a->kernel, l);
		break;
	case DRIVER_LOAD_DYN:
		on_dyn(a, l);
		break;
	case DRIVER_LOAD_LABEL:
		on_label(a, l);
		break;
	case DRIVER_LOAD_LOST:
		break;
	}
}
