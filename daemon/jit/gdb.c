/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GDB's JIT interface as a source (foreign.h): the list of ELF files that a process has in memory
 * is read again and again, from the process itself, which goes on. What came and went between two
 * readings, and what was not read when it ended, nobody has told. Times it does not tell either:
 * who had an address first had it from the beginning, who took one that another had before may have
 * it since the reading before, and who was in the list no more is charged until then.
 */
#include <errno.h>
#include <stdlib.h>

#include "bound.h"
#include "jit_internal.h"

/* One reading takes so long: the rest comes with the next. */
#define BUDGET_NS 500000000ull
enum { TRIES_MAX = 3 };
/* A list that takes longer to read is read again after so many times as long. */
#define LIST_NS 5000000ull
enum { LIST_REST = 50 };

struct object {
	struct foreign_gdb_entry e;
	uint64_t seq;	    /* number of its registration; 0: none of its routines was registered */
	uint64_t addr, end; /* where these are */
	uint64_t lo;	    /* the reading before did not show it */
	uint32_t order;
	uint8_t tries;
	bool done; /* it was read, or cannot be */
	bool kept; /* it is in the next list too */
};

struct dyn_gdb {
	const struct dyn_client *client;
	bool mapped; /* files that were not asked for a descriptor yet */
	struct foreign_gdb g;
	struct object *objects; /* sorted by node */
	size_t nr_objects;
	size_t nr_todo; /* not done */
};

static struct reader_who who_is(const struct dyn_registry *reg)
{
	return (struct reader_who){ reg->pid, reg->uid, reg->life };
}

/* ---- life ------------------------------------------------------------------------------------ */

static void release(struct dyn_gdb *gdb)
{
	free(gdb->objects);
	free(gdb);
}

void dyn_gdb_watch(struct dyn *d, struct process *p)
{
	struct dyn_registry *reg;

	if (p->exited || dyn_source_find(p->dyn, DYN_GDB) ||
	    dyn_source_new(d, p, DYN_GDB, -1, &reg) < 0)
		return;
	reg->gdb = calloc(1, sizeof(*reg->gdb));
	if (!reg->gdb)
		return;
	reg->gdb_release = release;
	reg->gdb->client = p->dyn;
	reg->gdb->mapped = true;
}

void dyn_mapped(const struct process *p)
{
	struct dyn_registry *reg = p->dyn ? dyn_source_find(p->dyn, DYN_GDB) : NULL;

	if (reg && reg->gdb)
		reg->gdb->mapped = true;
}

/* A request failed. If it is that life no more, nothing of it can be read ever again. */
static void failed(struct dyn_registry *reg, int r)
{
	reg->starved = r == -EDQUOT;
	if (r == -ESRCH)
		reg->life = 0;
	else if (!reg->starved && r != -EAGAIN && r != -ENOMEM)
		dyn_source_pause(reg, r);
}

/* ---- the descriptor -------------------------------------------------------------------------- */

static void begin(struct dyn_registry *reg, const struct foreign_gdb *found)
{
	if (!reg->counted) {
		if (dyn_source_facility(reg) < 0)
			return;
		dyn_registry_count(reg);
	}
	reg->gdb->g = *found;
}

static void look_for_descriptor(struct dyn_registry *reg)
{
	const struct reader_who who = who_is(reg);
	struct dyn_gdb *gdb = reg->gdb;
	struct foreign_gdb found = { 0 };
	int r;

	if (!gdb->mapped || base_now_ns() < reg->look_ns)
		return;
	r = reader_gdb_find(reg->dyn->config.reader, &who, &found);
	dyn_source_look_later(reg);
	gdb->mapped = r != 0;
	if (r < 0)
		failed(reg, r);
	else if (found.nr_heads && memcmp(found.heads, gdb->g.heads, sizeof(found.heads)) != 0)
		begin(reg, &found);
}

/* ---- the list -------------------------------------------------------------------------------- */

static int by_node(const void *pa, const void *pb)
{
	const struct object *a = pa, *b = pb;

	if (a->e.node != b->e.node)
		return a->e.node < b->e.node ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

static int by_order(const void *pa, const void *pb)
{
	const struct object *a = *(struct object *const *)pa, *b = *(struct object *const *)pb;

	return (a->order > b->order) - (a->order < b->order);
}

static struct object *find(const struct dyn_gdb *gdb, uint64_t node)
{
	size_t lo = BASE_LOWER_BOUND(gdb->objects, gdb->nr_objects, e.node, node);

	return lo < gdb->nr_objects && gdb->objects[lo].e.node == node ? &gdb->objects[lo] : NULL;
}

/* As far as is known; an entry's memory may have become another's. */
static bool is_same(const struct foreign_gdb_entry *a, const struct foreign_gdb_entry *b)
{
	return a->node == b->node && a->elf_addr == b->elf_addr && a->elf_len == b->elf_len &&
	       (!a->print || !b->print || a->print == b->print);
}

/* Sorted, none twice, and what is known of those that were in the last list. */
static size_t carry_on(struct dyn_gdb *gdb, struct object *fresh, size_t nr)
{
	size_t kept = 0;

	qsort(fresh, nr, sizeof(*fresh), by_node);
	gdb->nr_todo = 0;
	for (size_t i = 0; i < nr; i++) {
		struct object *old = find(gdb, fresh[i].e.node), o = fresh[i];

		if (kept && fresh[kept - 1].e.node == o.e.node)
			continue;
		if (old && is_same(&old->e, &o.e)) {
			uint64_t print = old->e.print ? old->e.print : o.e.print;

			old->kept = true;
			o = *old;
			o.e.print = print;
			o.kept = false;
			o.order = fresh[i].order;
		}
		gdb->nr_todo += !o.done;
		fresh[kept++] = o;
	}
	return kept;
}

static uint64_t next_seq(const struct dyn_registry *reg)
{
	uint64_t seq = reg->lifetimes.last_seq + 1;

	return seq + !(uint32_t)seq;
}

/* No other object had its addresses before @hi, unless one comes with this list. */
static void retire(struct dyn_registry *reg, const struct object *o, uint64_t hi)
{
	const struct wire_retire rec = { .head = { .len = sizeof(rec), .type = WIRE_RETIRE },
					 .seq = next_seq(reg),
					 .handle = o->seq,
					 .addr = o->addr,
					 .code_len = o->end - o->addr };

	reg->nr_bad += (uint64_t)dyn_apply(reg, &rec, sizeof(rec), hi - 1, hi);
}

/* @whole: those that are not in it are gone. */
static int take_list(struct dyn_registry *reg, const struct base_buf *b, bool whole)
{
	const struct foreign_gdb_entry *e = (const void *)b->data;
	size_t nr = b->len / sizeof(*e);
	struct object *fresh = calloc(nr ? nr : 1, sizeof(*fresh));
	struct dyn_gdb *gdb = reg->gdb;
	uint64_t hi = base_now_ns();

	if (!fresh)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		fresh[i] = (struct object){ .e = e[i], .order = (uint32_t)i };
	nr = carry_on(gdb, fresh, nr);
	for (size_t i = 0; whole && i < gdb->nr_objects; i++)
		if (!gdb->objects[i].kept && gdb->objects[i].seq)
			retire(reg, &gdb->objects[i], hi);
	free(gdb->objects);
	gdb->objects = fresh;
	gdb->nr_objects = nr;
	return 0;
}

/* ---- objects --------------------------------------------------------------------------------- */

/* A process that was forked has its parent's list; who was told of there is inherited. */
static bool is_inherited(const struct dyn_gdb *gdb, const struct object *o)
{
	uint64_t fork_ns = UINT64_MAX;

	for (const struct dyn_client *c = gdb->client; c->inherited; c = c->inherited) {
		const struct dyn_registry *reg = dyn_source_find(c->inherited, DYN_GDB);
		const struct object *same = reg && reg->gdb ? find(reg->gdb, o->e.node) : NULL;

		fork_ns = c->fork_ns < fork_ns ? c->fork_ns : fork_ns;
		if (same && same->done && same->lo < fork_ns && is_same(&same->e, &o->e))
			return true;
	}
	return false;
}

/* So that they are known to be its. */
static void read_parent(const struct dyn_gdb *gdb)
{
	const struct dyn_client *c = gdb->client->inherited;
	struct dyn_registry *reg = c ? dyn_source_find(c, DYN_GDB) : NULL;

	if (reg)
		dyn_gdb_read(reg, true);
}

static void apply(struct dyn_registry *reg, struct object *o, uint64_t seq,
		  const struct base_buf *b)
{
	struct wire_routine_view v;
	const struct wire_head *h;

	WIRE_FOR_EACH (h, b->data, b->len, pos) {
		if (wire_routine_parse(h, &v) < 0)
			continue;
		if (!o->seq || v.rec->addr < o->addr)
			o->addr = v.rec->addr;
		if (!o->seq || v.rec->addr + v.rec->code_len > o->end)
			o->end = v.rec->addr + v.rec->code_len;
		o->seq = seq;
	}
	reg->nr_bad += (uint64_t)dyn_apply(reg, b->data, b->len, reg->read_ns, base_now_ns());
	/* A list is what libdbgdyn's registries have. */
	reg->lifetimes.wants_list = false;
}

/* An object that fails time and again is given up; so is one that makes the helper fail. */
static int give_up(struct dyn_registry *reg, struct object *o, int r)
{
	if (r != -DCPI_EFORMAT && ++o->tries < TRIES_MAX)
		return r;
	base_log(BASE_LOG_DEBUG, "an object of process %d is not read: %s", reg->pid,
		 base_strerror(r));
	reg->nr_bad++;
	o->done = true;
	o->lo = reg->read_ns;
	return r == -DCPI_EFORMAT ? 0 : r;
}

static int read_object(struct dyn_registry *reg, struct object *o, struct base_buf *b)
{
	const struct reader_who who = who_is(reg);
	uint64_t seq = next_seq(reg);
	int r;

	base_buf_clear(b);
	r = reader_gdb_object(reg->dyn->config.reader, &who, seq, &o->e, b);
	if (r == -ESRCH || r == -ENOMEM || r == -EDQUOT)
		return r;
	if (r < 0)
		return give_up(reg, o, r);
	o->done = true;
	o->lo = reg->read_ns;
	if (is_inherited(reg->gdb, o))
		return 0;
	reg->nr_bad += (uint64_t)r;
	apply(reg, o, seq, b);
	return 0;
}

/* Objects to be read, the oldest first; or NULL. */
static struct object **sort_todo(struct dyn_gdb *gdb)
{
	struct object **todo = calloc(gdb->nr_todo, sizeof(struct object *));
	size_t nr = 0;

	for (size_t i = 0; todo && i < gdb->nr_objects; i++)
		if (!gdb->objects[i].done)
			todo[nr++] = &gdb->objects[i];
	if (todo)
		qsort(todo, nr, sizeof(struct object *), by_order);
	return todo;
}

/* An object that is not there any more does not hold up the others; the next list will tell. */
static int read_objects(struct dyn_registry *reg)
{
	uint64_t until = base_now_ns() + BUDGET_NS;
	struct dyn_gdb *gdb = reg->gdb;
	size_t nr = gdb->nr_todo;
	struct object **todo = sort_todo(gdb);
	struct base_buf b = { 0 };
	int r = todo ? 0 : -ENOMEM;

	read_parent(gdb);
	for (size_t i = 0; r == 0 && i < nr && base_now_ns() < until; i++) {
		r = read_object(reg, todo[i], &b);
		gdb->nr_todo -= todo[i]->done;
		r = r == -EAGAIN ? 0 : r;
	}
	base_buf_release(&b);
	free(todo);
	return r;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* 1: something was new. */
static int read_list(struct dyn_registry *reg)
{
	const struct reader_who who = who_is(reg);
	struct dyn_gdb *gdb = reg->gdb;
	struct foreign_gdb g = gdb->g;
	struct base_buf b = { 0 };
	int r = reader_gdb_list(reg->dyn->config.reader, &who, &g, &b), taken = 0;

	if (r > 0)
		taken = take_list(reg, &b, r == 1);
	if (r >= 0 && taken == 0)
		gdb->g = g;
	base_buf_release(&b);
	return taken < 0 ? taken : r;
}

/*
 * A program that tells of an object each moment, and has thousands, has its whole list read each
 * time: but for @all, that may take its part of the loop's time and no more.
 */
static int read_list_in_time(struct dyn_registry *reg, bool all)
{
	uint64_t now = base_now_ns(), took;
	int r;

	if (!all && now < reg->list_ns)
		return -EINPROGRESS;
	r = read_list(reg);
	took = base_now_ns() - now;
	reg->list_ns = took > LIST_NS ? now + LIST_REST * took : 0;
	return r;
}

bool dyn_gdb_read(struct dyn_registry *reg, bool all)
{
	struct dyn_gdb *gdb = reg->gdb;
	uint64_t now = base_now_ns();
	bool news, rests;
	int r;

	if (!gdb || !reg->life || reg->over || now < reg->pause_until_ns)
		return false;
	look_for_descriptor(reg);
	if (!gdb->g.nr_heads || !reg->life || base_now_ns() < reg->pause_until_ns)
		return false;
	r = read_list_in_time(reg, all);
	rests = r == -EINPROGRESS;
	r = rests ? 0 : r;
	news = r > 0 || gdb->nr_todo;
	if (r >= 0 && gdb->nr_todo)
		r = read_objects(reg);
	if (r < 0)
		failed(reg, r);
	else
		reg->pause_ns = reg->starved = 0;
	/* Only when all was read up to here was nothing else there before now. */
	if (r >= 0 && !gdb->nr_todo && !rests)
		reg->read_ns = now;
	return news;
}
