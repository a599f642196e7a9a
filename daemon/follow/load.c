/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Load events change the table of processes and their mappings. An event can be older than what is
 * already known of its process: /proc was read, or a hand-over taken, after it. It then must not
 * undo the newer knowledge.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "follow_internal.h"

/* ---- mappings -------------------------------------------------------------------------------- */

static void recorded(struct follow *f, int r)
{
	if (r < 0 && !f->record_error)
		f->record_error = r;
}

void follow_record(struct follow *f, const struct driver_load *l)
{
	if (f->record)
		recorded(f, driver_record_load(f->record, l));
}

void follow_record_count(struct follow *f, const struct driver_count *c)
{
	recorded(f, driver_record_count(f->record, c));
}

/* ---- lives ----------------------------------------------------------------------------------- */

void follow_end(struct follow *f, struct process *p)
{
	if (!p->exited)
		dyn_leaving(p);
	f->lives_ended = true;
	processes_end(f->processes, p);
}

struct process *follow_begin(struct follow *f, int32_t pid)
{
	struct process *old = processes_find(f->processes, pid);

	if (old) {
		dyn_leaving(old);
		f->lives_ended = true;
	}
	return processes_add(f->processes, pid);
}

static void add_end(struct follow *f, const struct follow_end *end)
{
	struct follow_ends *e = &f->ends;

	if (!f->wants_ends)
		return;
	f->lives_ended = true;
	if (base_grow(&e->items, &e->cap, e->nr + 1, sizeof(*e->items)) < 0)
		e->lost = true;
	else
		e->items[e->nr++] = *end;
}

/* Queue the end of @p (may be NULL), a life of @pid, for those who want it. */
static void follow_ended(struct follow *f, struct process *p, int32_t pid, uint64_t time_ns)
{
	const struct follow_end end = { .p = p, .pid = pid, .time_ns = time_ns };

	add_end(f, &end);
}

void follow_end_lost(struct follow *f, int32_t pid)
{
	const struct follow_end end = { .pid = pid, .lost = true };

	add_end(f, &end);
}

void follow_ends_clear(struct follow *f)
{
	f->ends.nr = 0;
	f->ends.lost = f->lives_ended = false;
	processes_forget_maps(f->processes);
}

/* ---- mappings -------------------------------------------------------------------------------- */

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
static struct image *file_image(struct follow *f, struct process *p, struct driver_load *l,
				bool listed, struct reader_dump *dump)
{
	struct driver_load asked = *l;
	struct base_id id = l->id, text = l->text;
	const char *path = l->path;
	bool by_path = false;
	char there[4096];
	struct image *img;
	size_t len;

	/* A mapping listed in /proc exists now. */
	asked.time_ns = listed ? 0 : l->time_ns;
	if (id.len && !text.len)
		identity_text(f->identity, p, &asked, &text, &dump->extent);
	else if (!id.len && identity_find(f->identity, p, &asked, &id, &by_path, dump) < 0)
		return NULL;
	if (dump->fd >= 0 || (dump->no_elf && is_workspace(p, l)))
		return NULL;
	if (!by_path)
		l->id = id;
	if (dump->text.len)
		text = dump->text;
	if (mapping_is_deleted(path, &len)) {
		snprintf(there, sizeof(there), "%.*s", (int)len, path);
		path = there;
	}
	img = images_get_file(f->images, &id, &text, path, base_path_name(path));
	if (img && f->wants_extents)
		image_set_extent(img, &dump->extent);
	if (img && by_path && !profdb_profile_word(img->counts, "identity"))
		profdb_profile_set_word(img->counts, "identity",
					f->live && l->inode ? "place" : "path");
	return img;
}

static void put(struct follow *f, struct process *p, const struct map *m, enum follow_how how)
{
	int r = how == FOLLOW_LATE ? map_recall(p, m) : map_insert(p, m);

	if (r < 0)
		base_log(BASE_LOG_ERROR, "no memory for a mapping of pid %d", p->pid);
	else if (how == FOLLOW_EVENT)
		p->placeholder = false;
	f->ranges_changed |= p->dyn != NULL;
}

static void marker(struct follow *f, struct process *p, const struct driver_load *l,
		   enum follow_how how)
{
	if (how == FOLLOW_LATE || !f->dyn)
		return;
	/* A forked child has its parent's uid and no start time until /proc is asked. What is in
	 * the memory of the next process of its pid is not its. */
	if (f->live && proc_describe(p) == -ESTALE)
		return;
	dyn_marker(f->dyn, p, l->addr, l->len);
	f->ranges_changed = true;
}

/* The mapping only says where the file is, as the marker does. */
static void dump_found(struct follow *f, struct process *p, const struct reader_dump *dump,
		       enum follow_how how)
{
	if (how == FOLLOW_LATE || !f->dyn || !f->live) {
		identity_release_dump(f->identity, dump);
		return;
	}
	proc_describe(p);
	if (dyn_dump(f->dyn, p, dump) == 0)
		f->ranges_changed = true;
}

/*
 * The kernel has another vdso for programs of 32 bits, of the same name and no build-id, below
 * 4 GiB, where it maps none of ours. What it holds a program may have changed: so it is code
 * without a name.
 */
static bool is_vdso_of_32_bits(const struct driver_load *l)
{
	return UINTPTR_MAX > UINT32_MAX && !l->id.len && l->addr <= UINT32_MAX;
}

/* A recorded stream may tell which one it was; its image is not here. */
static struct image *vdso_image(struct follow *f, const struct driver_load *l)
{
	struct image *img = f->kernel ? kernel_vdso(f->kernel) : NULL;

	if (is_vdso_of_32_bits(l))
		return NULL;
	if (!img && !f->live && l->id.len)
		img = images_get(f->images, PROFDB_VDSO, &l->id, "[vdso]", "vdso");
	return img;
}

void follow_mmap(struct follow *f, struct process *p, const struct driver_load *event,
		 enum follow_how how)
{
	struct driver_load l = *event;
	bool listed = how == FOLLOW_LISTED;
	struct reader_dump dump = { .fd = -1 };
	struct map m = { .start = l.addr,
			 .file_off = l.file_off,
			 .since_ns = listed ? p->known_ns : l.time_ns,
			 .listed = listed };
	enum mapping_kind kind;

	if (!l.path || !l.len || base_add_overflow(l.addr, l.len, &m.end))
		return;
	kind = mapping_kind(&l, how == FOLLOW_EVENT);
	if (kind == MAPPING_VSYSCALL)
		return;
	if (kind == MAPPING_MARKER) {
		follow_record(f, &l);
		marker(f, p, &l, how);
		return;
	}
	if (kind == MAPPING_VDSO) {
		m.file_off = 0;
		m.image = vdso_image(f, &l);
		/* Its event does not tell, so that a stream that is recorded of it would not. */
		if (m.image)
			l.id = m.image->id;
	} else if (kind == MAPPING_FILE) {
		m.image = file_image(f, p, &l, listed, &dump);
	}
	if (dump.fd >= 0) {
		dump_found(f, p, &dump, how);
		return;
	}
	m.kind = m.image ? MAP_IMAGE : MAP_DYNAMIC;
	/* The kernel maps the program before all else that exec brings, but for a stack that may be
	 * executed. */
	if (p->begins && how == FOLLOW_EVENT && mapping_is_of_file(l.path)) {
		p->begins = false;
		p->exe = strdup(l.path);
		p->identified = false;
	}
	follow_record(f, &l);
	put(f, p, &m, how);
	if (m.kind == MAP_IMAGE && p->watched)
		dyn_mapped(p);
	/* Before it has a sample: it may be gone when that comes. No runtime lives by a vdso. */
	if (m.kind == MAP_DYNAMIC && how != FOLLOW_LATE && kind != MAPPING_VDSO && f->dyn &&
	    f->live)
		dyn_watch(f->dyn, p);
}

/* ---- load events ----------------------------------------------------------------------------- */

static uint64_t since_boot(const struct follow *f, uint64_t time_ns)
{
	return f->live ? time_ns + base_boot_ahead_ns() : time_ns;
}

/* As start times, which come in steps of 10 ms, rounded down. */
static uint64_t began(const struct follow *f, uint64_t boot_ns)
{
	return f->live ? boot_ns / 10000000 * 10000000 : boot_ns;
}

static bool began_after(const struct process *p, uint64_t time_ns)
{
	return time_ns != UINT64_MAX && p->start_time_ns > time_ns + base_boot_ahead_ns();
}

/* @p begins by fork (@parent may be NULL): its first count may say which life it is. */
static void instance_fork(struct process *p, const struct process *parent, uint64_t boot_ns)
{
	p->instance = 0;
	p->born_ns = boot_ns;
	p->execs_announced = parent && (parent->instance || parent->execs_announced);
	if (p->execs_announced)
		p->execs = parent->instance ? (uint16_t)(parent->instance / DRIVER_INSTANCE_EXEC)
					    : parent->execs;
}

/* @p begins by exec of the life @old (may be NULL, or @p). */
static void instance_exec(struct process *p, const struct process *old, uint64_t boot_ns)
{
	p->instance = old && old->instance ? old->instance + DRIVER_INSTANCE_EXEC : 0;
	p->born_ns = old && old->born_ns ? old->born_ns : boot_ns;
	p->execs_announced = old && old->execs_announced;
	if (p->execs_announced)
		p->execs = (uint16_t)(old->execs + 1);
}

/* Events of it were lost, or it is older than we are. */
static void ask(struct follow *f, struct process *p, uint64_t time_ns)
{
	p->asked = true;
	p->placeholder = !f->live || follow_scan(f, p) < 0 || began_after(p, time_ns);
	if (!p->placeholder)
		return;
	map_clear(p);
	p->known_ns = 0;
	f->placeholder_made = true;
}

static void carry_own(struct follow *f, struct process *from, struct process *to)
{
	if (dyn_hand_on(from, to) < 0)
		base_log(BASE_LOG_ERROR, "no memory for the registry of process %d", to->pid);
	to->attached_ns = from->attached_ns;
	to->later = from->later;
	from->attached_ns = 0;
	from->later = NULL;
	f->ranges_changed = true;
}

static void inherit_label(struct process *p, const struct process *parent)
{
	p->identified = false;
	p->label = parent ? parent->label : NULL;
	p->next_label = parent ? parent->next_label : NULL;
	p->labelled_ns = parent ? parent->labelled_ns : 0;
}

/* Until /proc tells something else. */
static void inherit_place(struct process *p, const struct process *from)
{
	p->uid = from->uid;
	p->uid_known = from->uid_known;
	p->cgroup = from->cgroup ? strdup(from->cgroup) : NULL;
}

/* An event of before it got its next one. */
static bool is_labelled_after(const struct process *p, const struct driver_load *l)
{
	return p->next_label && p->labelled_ns > l->time_ns;
}

/* A fork that is told late brings the parent's label late. */
static void inherit_late_label(struct process *p, const struct process *parent,
			       const struct driver_load *l)
{
	if (!is_labelled_after(p, l)) {
		inherit_label(p, parent);
		return;
	}
	p->identified = false;
	p->label = parent ? parent->label : NULL;
}

/* Its next program begins. */
static void turn_label(struct process *p)
{
	p->identified = false;
	p->label = p->next_label ? p->next_label : p->label;
	p->next_label = NULL;
}

/*
 * A registry that was handed over after @l happened belongs to the life that @l began, though it
 * could only be attached to the one before.
 */
static void carry_client(struct follow *f, struct process *from, struct process *to,
			 const struct driver_load *l)
{
	struct process *later = from ? from->later : NULL;

	if (from && from->attached_ns > l->time_ns) {
		carry_own(f, from, to);
	} else if (later && later->attached_ns > l->time_ns) {
		carry_own(f, later, to);
		to->announced = later->announced;
		from->later = NULL;
		if (f->dyn && later->dyn)
			dyn_end(f->dyn, later);
		free(later);
	}
}

/* The fork or exec that began it was lost. */
static struct process *next_life(struct follow *f, struct process *p, uint64_t time_ns,
				 uint64_t instance)
{
	const struct driver_load last = { .pid = p->pid, .time_ns = p->seen_ns };
	struct process *next;

	base_log(BASE_LOG_DEBUG, "process %d has another life than events told", p->pid);
	follow_ended(f, p, p->pid, p->seen_ns);
	/* The list of /proc belongs to another life than the earlier counts. */
	if (time_ns < p->known_ns) {
		map_clear(p);
		p->placeholder = true;
	}
	next = follow_begin(f, p->pid);
	if (!next)
		return NULL;
	next->instance = instance;
	next->placeholder = f->placeholder_made = true;
	inherit_place(next, p);
	if (p->instance % DRIVER_INSTANCE_EXEC == instance % DRIVER_INSTANCE_EXEC) {
		inherit_label(next, p);
		turn_label(next);
	}
	carry_client(f, p, next, &last);
	return next;
}

/* No event told of its begin. */
static struct process *begin_untold(struct follow *f, int32_t pid, uint64_t time_ns,
				    uint64_t instance)
{
	struct process *p = follow_begin(f, pid);

	if (!p)
		return NULL;
	p->placeholder = true;
	p->instance = instance;
	p->born_ns = instance ? 0 : since_boot(f, time_ns);
	return p;
}

struct process *follow_find(struct follow *f, int32_t pid, uint64_t time_ns, uint64_t instance)
{
	struct process *p = processes_find(f->processes, pid);

	if (!p)
		p = begin_untold(f, pid, time_ns, instance);
	else if (instance && !instance_fits(p, instance))
		p = next_life(f, p, time_ns, instance);
	if (!p)
		return NULL;
	p->seen_ns = time_ns > p->seen_ns ? time_ns : p->seen_ns;
	if (p->placeholder && !p->asked)
		ask(f, p, time_ns);
	return p;
}

/*
 * Events still to come may tell that the mapping found in /proc is younger than the count. Those
 * that were lost tell nothing, but what /proc lists next may.
 */
bool follow_count(struct follow *f, const struct driver_count *c, struct sample *s, bool wait)
{
	struct process *p = c->pid > 0 ? follow_find(f, c->pid, c->time_ns, c->instance) : NULL;
	const struct map *m;

	s->p = p;
	sample_locate(s);
	m = s->map;
	if (p && f->events_lost && wait)
		return false;
	return !m || !m->listed || m->since_ns || c->time_ns >= p->known_ns;
}

static bool is_late(const struct process *p, const struct driver_load *l)
{
	return p && l->time_ns < p->known_ns;
}

static void on_fork(struct follow *f, const struct driver_load *l)
{
	struct process *parent = processes_find(f->processes, l->ppid);
	struct process *old = processes_find(f->processes, l->pid), *p;
	uint64_t boot_ns;

	if (l->pid == l->ppid)
		return;
	if (old)
		follow_end_lost(f, l->pid);
	if (is_late(old, l)) {
		map_restart(old, l->time_ns);
		old->seen_into_ns = 0;
		instance_fork(old, parent, since_boot(f, l->time_ns));
		inherit_late_label(old, parent, l);
		return;
	}
	if (parent && parent->placeholder)
		parent = follow_find(f, l->ppid, l->time_ns, 0);
	p = follow_begin(f, l->pid);
	if (!p)
		return;
	boot_ns = since_boot(f, l->time_ns);
	p->lives_ns = l->lives_ns;
	p->began_ns = began(f, boot_ns);
	p->seen_ns = l->time_ns;
	instance_fork(p, parent, boot_ns);
	inherit_label(p, parent);
	carry_client(f, old, p, l);
	if (!parent) {
		ask(f, p, UINT64_MAX);
		return;
	}
	/* The parent's mappings that /proc listed after the fork need not have been the child's. */
	p->placeholder = parent->placeholder || is_late(parent, l) || map_copy(p, parent) < 0;
	f->placeholder_made |= p->placeholder;
	inherit_place(p, parent);
	memcpy(p->comm, parent->comm, sizeof(p->comm));
	p->exe = parent->exe ? strdup(parent->exe) : NULL;
	if (parent->dyn && f->dyn)
		dyn_fork(f->dyn, parent, p, l->time_ns,
			 l->flags & DRIVER_LOAD_CURSOR ? &l->cursor : NULL);
	f->ranges_changed |= p->dyn != NULL;
}

static void on_exec(struct follow *f, const struct driver_load *l)
{
	struct process *old = processes_find(f->processes, l->pid), *p;

	follow_ended(f, old, l->pid, l->time_ns);
	if (is_late(old, l)) {
		map_restart(old, l->time_ns);
		old->seen_into_ns = 0;
		old->execed_ns = since_boot(f, l->time_ns);
		instance_exec(old, old, old->execed_ns);
		if (!is_labelled_after(old, l))
			turn_label(old);
		return;
	}
	p = follow_begin(f, l->pid);
	if (!p)
		return;
	p->lives_ns = l->lives_ns;
	p->seen_ns = l->time_ns;
	p->execed_ns = since_boot(f, l->time_ns);
	instance_exec(p, old, p->execed_ns);
	inherit_label(p, old);
	turn_label(p);
	if (old) {
		inherit_place(p, old);
		p->start_time_ns = old->start_time_ns;
		p->began_ns = old->began_ns;
	}
	carry_client(f, old, p, l);
	p->begins = true;
	if (l->path)
		process_set_comm(p, l->path);
}

static void on_mmap(struct follow *f, const struct driver_load *l)
{
	struct process *p = follow_find(f, l->pid, l->time_ns, 0);

	if (p)
		follow_mmap(f, p, l, is_late(p, l) ? FOLLOW_LATE : FOLLOW_EVENT);
}

static void on_exit_event(struct follow *f, const struct driver_load *l)
{
	struct process *p = processes_find(f->processes, l->pid), *next;
	bool own;

	follow_ended(f, p, l->pid, l->time_ns);
	if (!p || is_late(p, l))
		return;
	follow_end(f, p);
	/* That pid lives again, and has told so itself. */
	own = p->attached_ns > l->time_ns + DYN_MADE_NS;
	if (!own && !(p->later && p->later->attached_ns > l->time_ns))
		return;
	next = follow_begin(f, l->pid);
	if (!next)
		return;
	next->placeholder = f->placeholder_made = true;
	/* In doubt its registry is of the life that ended: that may have been a short one. */
	if (!own)
		p->attached_ns = 0;
	carry_client(f, p, next, l);
}

static void on_dyn(struct follow *f, const struct driver_load *l)
{
	struct process *p = follow_find(f, l->pid, l->time_ns, 0);

	if (p && f->dyn && dyn_records(f->dyn, p, l->time_ns, l->data, l->data_len) < 0)
		base_log(BASE_LOG_WARN, "bad records of dynamic code of pid %d", l->pid);
}

/* From its next program on: one life, and so one registry, has one label. */
static void on_label(struct follow *f, const struct driver_load *l)
{
	struct process *p = follow_find(f, l->pid, l->time_ns, 0);
	const char *label = l->path && label_check(l->path, strlen(l->path), NULL) == 0
				    ? labels_get(&f->labels, l->path)
				    : NULL;

	if (!p || !label) {
		base_log(BASE_LOG_WARN, "process %d gets no label", l->pid);
		return;
	}
	p->next_label = label;
	p->labelled_ns = l->time_ns;
	f->labels.changed = true;
}

static void on_comm(struct follow *f, const struct driver_load *l)
{
	struct process *p = processes_find(f->processes, l->pid);

	if (p && l->path && !is_late(p, l))
		process_set_comm(p, l->path);
}

void follow_load(struct follow *f, const struct driver_load *l)
{
	if (l->kind != DRIVER_LOAD_MMAP)
		follow_record(f, l);
	switch (l->kind) {
	case DRIVER_LOAD_MMAP:
		on_mmap(f, l);
		break;
	case DRIVER_LOAD_FORK:
		on_fork(f, l);
		break;
	case DRIVER_LOAD_EXEC:
		on_exec(f, l);
		break;
	case DRIVER_LOAD_COMM:
		on_comm(f, l);
		break;
	case DRIVER_LOAD_EXIT:
		on_exit_event(f, l);
		break;
	case DRIVER_LOAD_KSYMBOL:
	case DRIVER_LOAD_KERNEL:
	case DRIVER_LOAD_POKE:
		if (f->kernel)
			kernel_load(f->kernel, l);
		break;
	case DRIVER_LOAD_DYN:
		on_dyn(f, l);
		break;
	case DRIVER_LOAD_LABEL:
		on_label(f, l);
		break;
	case DRIVER_LOAD_LOST:
		break;
	}
}

/* ---- events that clients announced ----------------------------------------------------------- */

/*
 * An announcement of a client has its place among the driver's load events: an earlier event may
 * still lie in a ring, and a later one must find the announcement handled.
 */
enum { QUEUE_MAX = 4096 };

int follow_queue_add(struct follow_queue *q, const struct driver_load *l)
{
	struct follow_queued *to;

	if (q->nr >= QUEUE_MAX)
		return -DCPI_ELIMIT;
	if (base_grow(&q->items, &q->cap, q->nr + 1, sizeof(*q->items)) < 0)
		return -ENOMEM;
	to = &q->items[q->nr];
	*to = (struct follow_queued){ .load = *l, .path = strdup(l->path) };
	if (!to->path)
		return -ENOMEM;
	to->load.path = to->path;
	q->nr++;
	return 0;
}

void follow_until(struct follow *f, uint64_t time_ns)
{
	struct follow_queue *q = &f->queue;
	size_t nr = 0;

	for (; nr < q->nr && q->items[nr].load.time_ns <= time_ns; nr++) {
		f->now_ns = q->items[nr].load.time_ns;
		follow_load(f, &q->items[nr].load);
		free(q->items[nr].path);
	}
	q->nr -= nr;
	if (nr)
		memmove(q->items, q->items + nr, q->nr * sizeof(*q->items));
	f->now_ns = time_ns;
}
