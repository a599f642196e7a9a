/* SPDX-License-Identifier: BSD-2-Clause */
/* A mapping that an event told of, or /proc lists, enters the table of its process. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "follow_internal.h"

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
	if (f->record)
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

void follow_ended(struct follow *f, struct process *p, int32_t pid, uint64_t time_ns)
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
	/* A forked child has its parent's uid and no start time until somebody asks. What is in
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
 * 4 GiB, where it maps none of ours. What it holds a program may have changed: so it is code that
 * nobody named.
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
