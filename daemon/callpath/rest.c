/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A path that met code which its program had just written ended there, for want of a table. It
 * brings a copy of its stack, and continues here when the table has been made.
 */
#include <stdlib.h>
#include <string.h>

#include "callpath_internal.h"
#include "jit.h"
#include "unwind.h"

enum { KNOWN_MAX = 4096 };
/* The events of a process come so much later at most, or it is not looked for any more. */
#define LEARN_NS 2000000000ull

/* ---- files and their images ------------------------------------------------------------------ */

static bool learn(const struct callpaths *t, struct callpath_known *k)
{
	const struct process *p = processes_find(t->config.follow->processes, k->m.pid);
	const struct map *m = p ? map_find(p, k->m.addr) : NULL;

	if (p && p->instance && k->m.instance && p->instance != k->m.instance)
		return false;
	if (!m || m->kind != MAP_IMAGE || m->image->kind != PROFDB_FILE)
		return false;
	k->id = m->image->id;
	k->text = m->image->text;
	return true;
}

/* The first one makes way where there are too many: files that are in use are put again. */
void callpath_know(struct callpaths *t, const struct callpath_file *f)
{
	struct callpath_known k = { .m = f->m, .uid = f->uid, .put_ns = base_now_ns() };

	if (f->m.kind != DRIVER_ROWS_FILE)
		return;
	learn(t, &k);
	if (t->nr_known == KNOWN_MAX)
		t->known[0] = t->known[--t->nr_known];
	if (base_grow(&t->known, &t->cap_known, t->nr_known + 1, sizeof(*t->known)) == 0)
		t->known[t->nr_known++] = k;
}

void callpath_know_images(struct callpaths *t)
{
	uint64_t now_ns = base_now_ns();
	size_t kept = 0;

	for (size_t i = 0; i < t->nr_known; i++) {
		struct callpath_known *k = &t->known[i];

		if (k->id.len || learn(t, k) || now_ns - k->put_ns < LEARN_NS)
			t->known[kept++] = *k;
	}
	t->nr_known = kept;
}

/* A process may have mapped another file there meanwhile: only root's count for other users. */
static bool holds_for(const struct callpath_known *k, const struct process *p,
		      const struct image *img)
{
	return k->id.len && base_id_equal(&k->id, &img->id) &&
	       base_id_equal(&k->text, &img->text) &&
	       (!k->uid || (p->uid_known && k->uid == p->uid));
}

/* The newest: a file may have been changed since the others. */
static const struct driver_file *file_of(const struct callpaths *t, const struct process *p,
					 const struct image *img)
{
	for (size_t i = t->nr_known; i--;)
		if (holds_for(&t->known[i], p, img))
			return &t->known[i].m.file;
	return NULL;
}

/* ---- code of the process --------------------------------------------------------------------- */

static const struct driver_file *part_of(const struct callpaths *t, uint64_t instance, int32_t pid,
					 uint64_t addr)
{
	for (size_t i = 0; i < t->codes.nr; i++) {
		const struct driver_rows_missing *m = &t->codes.parts[i].m;

		if (m->pid == pid && m->instance == instance && addr >= m->start && addr < m->end)
			return &m->file;
	}
	return NULL;
}

/* ---- the walk -------------------------------------------------------------------------------- */

struct walk {
	struct callpaths *t;
	const struct process *p;
	const struct driver_callpath *c;
	uint64_t sp;
	struct unwind_rule rule;
};

static int read_stack(void *ctx, uint64_t addr, uint64_t *value)
{
	const struct walk *w = ctx;
	uint64_t off = addr - w->sp;

	if (off >= w->c->stack_len || w->c->stack_len - off < sizeof(*value))
		return -1;
	memcpy(value, (const char *)w->c->stack + off, sizeof(*value));
	return 0;
}

/* Where a table has none, and where there is no table, it is UNWIND_NONE; and where other code
 * stood before, which the path may have met. */
static const struct unwind_rule *find_rule(void *ctx, uint64_t addr)
{
	struct walk *w = ctx;
	const struct map *m = map_find(w->p, addr);
	const struct driver_file *file = NULL;
	uint64_t off = addr;

	w->rule = (struct unwind_rule){ .how = UNWIND_NONE };
	if (m && m->kind == MAP_IMAGE) {
		file = file_of(w->t, w->p, m->image);
		off = addr - m->start + m->file_off;
	} else if (dyn_is_first(w->p, addr)) {
		file = part_of(w->t, w->c->instance, w->c->pid, addr);
	}
	if (!file || !w->t->calls->rule(w->t->config.driver, file, off, &w->rule))
		w->rule = (struct unwind_rule){ .how = UNWIND_NONE };
	return &w->rule;
}

/* The stack is copied so far only. */
static enum driver_callpath_end end_of(enum unwind_step step)
{
	return step == UNWIND_STEP_COMPLETE  ? DRIVER_CALLPATH_COMPLETE
	       : step == UNWIND_STEP_NO_ROWS ? DRIVER_CALLPATH_NO_ROWS
	       : step == UNWIND_STEP_ASTRAY  ? DRIVER_CALLPATH_ASTRAY
					     : DRIVER_CALLPATH_CUT;
}

/* The first one that was found is the last one that was known. */
static void add_frames(struct callpaths *t, struct driver_callpath *c, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		t->addrs[c->nr - 1 + i] =
			t->found[i].pc | (t->found[i].exact ? DRIVER_FRAME_EXACT : 0);
	c->nr = (uint16_t)(c->nr - 1 + nr);
}

const uint64_t *callpath_continue(struct callpaths *t, const struct process *p,
				  struct driver_callpath *c, const uint64_t *frames)
{
	struct walk w = { .t = t, .p = p, .c = c };
	const struct unwind_memory memory = { read_stack, find_rule, &w };
	enum unwind_step end;
	size_t nr;

	if (!c->state || !p || c->end != DRIVER_CALLPATH_NO_ROWS ||
	    c->state->pc != (frames[c->nr - 1] & ~DRIVER_FRAME_EXACT))
		return frames;
	w.sp = c->state->reg[UNWIND_SP];
	nr = unwind_walk(&memory, c->state, t->found, DRIVER_NR_FRAMES - c->nr + 1, &end);
	if (nr < 2)
		return frames;
	t->continued++;
	t->frames_found += nr - 1;
	memcpy(t->addrs, frames, c->nr * sizeof(*frames));
	add_frames(t, c, nr);
	c->end = end_of(end);
	t->continued_to[c->end]++;
	return t->addrs;
}
