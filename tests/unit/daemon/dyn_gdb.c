/* SPDX-License-Identifier: BSD-2-Clause */
/* GDB's JIT interface as a source: we are the process, and have the descriptor. */
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "jit_internal.h"
#include "fake_registry.h"
#include "small_elf.h"
#include "tracker.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

/* ---- the interface, as its clients declare it ------------------------------------------------ */

struct node {
	struct node *next, *prev;
	const void *elf_addr;
	uint64_t elf_len;
};

struct descriptor {
	uint32_t version, action;
	struct node *relevant, *first;
};

extern struct descriptor __jit_debug_descriptor;
struct descriptor __jit_debug_descriptor = { .version = 1 };

static void link_node(struct node *n)
{
	struct descriptor *d = &__jit_debug_descriptor;

	n->prev = NULL;
	n->next = d->first;
	if (d->first)
		d->first->prev = n;
	d->relevant = d->first = n;
	d->action = 1;
}

static void unlink_node(struct node *n)
{
	struct descriptor *d = &__jit_debug_descriptor;

	if (n->prev)
		n->prev->next = n->next;
	else
		d->first = n->next;
	if (n->next)
		n->next->prev = n->prev;
	d->relevant = n;
	d->action = 2;
}

struct object {
	struct small_elf elf;
	struct node node;
};

/* What the objects say to be their code. */
static uint8_t block[4096];
#define HERE ((uintptr_t)block)

/* "alpha" with another first letter at @at, "gamma" behind it. */
static void make(struct object *o, uint64_t at, char letter)
{
	small_elf(&o->elf);
	o->elf.header.e_machine = MACHINE;
	o->elf.header.e_type = ET_REL;
	o->elf.section[SMALL_TEXT].sh_addr = at;
	for (int i = 1; i < SMALL_NR_SYMBOLS; i++)
		o->elf.symbol[i].st_value -= SMALL_VADDR;
	o->elf.names[1] = letter;
	o->node.elf_addr = &o->elf;
	o->node.elf_len = sizeof(o->elf);
}

/* ---- the daemon ------------------------------------------------------------------------------ */

static int setup(void **state)
{
	int r = tracker_setup(state);
	struct tracker *t = *state;

	if (!t)
		return r;
	__jit_debug_descriptor = (struct descriptor){ .version = 1 };
	memset(block, 0x90, sizeof(block));
	dyn_watch(t->dyn, &t->p);
	return 0;
}

static struct dyn_registry *source(const struct process *p)
{
	struct dyn_registry *reg = p->dyn ? dyn_source_find(p->dyn, DYN_GDB) : NULL;

	assert_non_null(reg);
	return reg;
}

/* A time after all that was seen, and before all that comes. */
static uint64_t refresh(struct tracker *t)
{
	dyn_refresh(t->dyn, true);
	return base_now_ns();
}

/* The same, until all of @p's list was read: on a busy machine one refresh may not be enough. */
static uint64_t refresh_all(struct tracker *t, const struct process *p)
{
	const struct dyn_registry *reg = source(p);
	uint64_t before = reg->read_ns;

	for (int i = 0; i < 20 && reg->read_ns == before; i++)
		dyn_refresh(t->dyn, true);
	assert_true(reg->read_ns > before);
	return base_now_ns();
}

static const struct wire_routine *record_of(struct dyn_registry *reg, const struct image *img,
					    uint64_t off)
{
	const struct dyn_routines *rs = &reg->lifetimes.routines;
	struct dyn_facility *f = reg->facilities[0];

	for (uint32_t k = 1; f && f->image == img && k <= rs->last; k++) {
		const struct dyn_routine *r = dyn_routine_get(rs, k);
		uint64_t begin;

		if (dyn_facility_offset(f, dyn_facility_elf(r), &begin) == 0 && off >= begin &&
		    off - begin < r->len)
			return dyn_facility_record(f, r);
	}
	return NULL;
}

static const struct wire_routine *record_at(const struct dyn_client *c, const struct image *img,
					    uint64_t off)
{
	const struct wire_routine *r = NULL;

	for (; !r && c; c = c->inherited)
		if (dyn_source_find(c, DYN_GDB))
			r = record_of(dyn_source_find(c, DYN_GDB), img, off);
	return r;
}

static const char *who(struct tracker *t, struct process *p, uint64_t addr, uint64_t time)
{
	static char name[64];
	const struct dyn_query q = {
		.addr = addr, .first_ns = time, .time_ns = time, .count = 1, .last = true
	};
	const struct wire_routine *r;
	struct image *img = NULL;
	uint64_t off;

	switch (dyn_lookup(t->dyn, p, &q, &img, &off)) {
	case DYN_NONE:
		return "-";
	case DYN_FOUND:
		break;
	default:
		return "?";
	}
	r = record_at(p->dyn, img, off);
	assert_non_null(r);
	snprintf(name, sizeof(name), "%.*s", (int)r->name_len, (const char *)(r + 1));
	return name;
}

static const char *at(struct tracker *t, uint64_t addr, uint64_t time)
{
	return who(t, &t->p, addr, time);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void registered(void **state)
{
	TRACKER(state);
	const struct wire_routine *r;
	struct dyn_registry *reg;
	struct object a;
	uint64_t off;

	assert_string_equal(at(t, HERE, refresh(t)), "-");
	reg = source(&t->p);
	assert_int_equal(reg->gdb != NULL && reg->counted, true);
	make(&a, HERE, 'A');
	link_node(&a.node);
	/* Nobody had the address before. */
	dyn_refresh(t->dyn, true);
	assert_string_equal(at(t, HERE, 5), "Alpha");
	assert_string_equal(at(t, HERE + 31, base_now_ns()), "Alpha");
	assert_string_equal(at(t, HERE + 32, 5), "gamma");
	assert_string_equal(at(t, HERE + SMALL_TEXT_LEN, 5), "-");
	/* Its code is what stands there, not what the file has. */
	assert_int_equal(dyn_facility_offset(reg->facilities[0], HERE, &off), 0);
	r = record_at(t->p.dyn, reg->facilities[0]->image, off);
	assert_int_equal(r->head.flags, WIRE_ROUTINE_CODE | WIRE_ROUTINE_FETCHED);
	assert_memory_equal((const char *)(r + 1) + r->name_len, block, r->code_len);
}

/* An address that had one name, and no other: that. */
static void unregistered(void **state)
{
	TRACKER(state);
	uint64_t seen, before, gone;
	struct object a, b;

	make(&a, HERE, 'A');
	make(&b, HERE + 256, 'B');
	link_node(&a.node);
	link_node(&b.node);
	seen = refresh_all(t, &t->p);
	unlink_node(&a.node);
	before = base_now_ns();
	gone = refresh(t);
	assert_string_equal(at(t, HERE, seen), "Alpha");
	assert_string_equal(at(t, HERE, before), "Alpha");
	assert_string_equal(at(t, HERE, gone), "-");
	assert_string_equal(at(t, HERE + 256, gone), "Blpha");
	assert_true(dyn_reuses(&t->p));
}

/* Who came into another's place may have come just after the reading before. */
static void replaced(void **state)
{
	TRACKER(state);
	uint64_t seen, before, now;
	struct object a, b;

	make(&a, HERE, 'A');
	make(&b, HERE + 16, 'B');
	link_node(&a.node);
	seen = refresh(t);
	refresh(t);
	before = base_now_ns();
	unlink_node(&a.node);
	link_node(&b.node);
	now = refresh(t);
	assert_string_equal(at(t, HERE + 16, seen), "Alpha");
	assert_string_equal(at(t, HERE + 16, before), "?");
	assert_string_equal(at(t, HERE, before), "Alpha");
	assert_string_equal(at(t, HERE + 16, now), "Blpha");
	assert_string_equal(at(t, HERE, now), "-");
	/* Long vacant, but not from the beginning. */
	unlink_node(&b.node);
	seen = refresh(t);
	refresh(t);
	link_node(&a.node);
	now = refresh(t);
	assert_string_equal(at(t, HERE, seen), "-");
	assert_string_equal(at(t, HERE, now), "Alpha");
}

/* The list is the very same as before: its entry, and where the file stands. */
static void replaced_in_place(void **state)
{
	TRACKER(state);
	uint64_t seen, before, now;
	struct object a, other;

	make(&other, HERE + 1024, 'O');
	make(&a, HERE, 'A');
	link_node(&other.node);
	link_node(&a.node);
	seen = refresh_all(t, &t->p);
	refresh(t);
	before = base_now_ns();
	make(&a, HERE, 'B');
	now = refresh(t);
	assert_string_equal(at(t, HERE, seen), "Alpha");
	assert_string_equal(at(t, HERE, before), "?");
	assert_string_equal(at(t, HERE, now), "Blpha");
	assert_string_equal(at(t, HERE + 1024, 5), "Olpha");
	/* One that was not the last to come, when the list moves for another reason. */
	make(&other, HERE + 1024, 'P');
	unlink_node(&a.node);
	now = refresh(t);
	assert_string_equal(at(t, HERE + 1024, now), "Plpha");
}

/* Its code was freed, and others' stands there. */
static void never_unregistered(void **state)
{
	TRACKER(state);
	uint64_t seen, before, now;
	struct object a, b;

	make(&a, HERE, 'A');
	make(&b, HERE + 48, 'B');
	link_node(&a.node);
	seen = refresh(t);
	refresh(t);
	before = base_now_ns();
	link_node(&b.node);
	now = refresh(t);
	assert_string_equal(at(t, HERE + 48, seen), "gamma");
	assert_string_equal(at(t, HERE + 48, before), "?");
	assert_string_equal(at(t, HERE + 48, now), "Blpha");
	assert_string_equal(at(t, HERE, now), "Alpha");
	/* The later one holds, whichever was read first. */
	assert_string_equal(at(t, HERE + 64, now), "Blpha");
}

static void no_object(void **state)
{
	TRACKER(state);
	struct dyn_registry *reg = source(&t->p);
	struct object a, b, c;
	struct dyn_stats stats;
	uint64_t read_ns;

	make(&a, HERE, 'A');
	make(&b, HERE + 256, 'B');
	a.elf.header.e_ident[0] = 'M';
	link_node(&a.node);
	link_node(&b.node);
	for (int i = 0; i < 3; i++) {
		refresh(t);
		__jit_debug_descriptor.action = (uint32_t)i;
	}
	assert_string_equal(at(t, HERE, 5), "-");
	assert_string_equal(at(t, HERE + 256, 5), "Blpha");
	dyn_stats_get(t->dyn, &stats);
	assert_int_equal(stats.records_bad, 1);
	/* What cannot be read is tried a few times, and holds up nobody. */
	a.node.elf_addr = (const void *)(uintptr_t)64;
	make(&c, HERE + 512, 'C');
	link_node(&c.node);
	read_ns = reg->read_ns;
	refresh(t);
	assert_string_equal(at(t, HERE + 512, 5), "Clpha");
	/* Until then nobody knows what else is there. */
	assert_int_equal(reg->read_ns, read_ns);
	for (int i = 0; i < 10; i++)
		refresh(t);
	assert_true(reg->read_ns > read_ns);
	dyn_stats_get(t->dyn, &stats);
	assert_int_equal(stats.records_bad, 2);
}

static void list_that_lies(void **state)
{
	TRACKER(state);
	struct dyn_registry *reg = source(&t->p);
	struct object a, b;
	uint64_t now;

	make(&a, HERE, 'A');
	make(&b, HERE + 256, 'B');
	link_node(&a.node);
	refresh(t);
	link_node(&b.node);
	a.node.next = &b.node;
	now = base_now_ns();
	refresh(t);
	assert_string_equal(at(t, HERE, 5), "Alpha");
	assert_string_equal(at(t, HERE + 256, 5), "-");
	assert_true(reg->pause_until_ns > now);
	reg->pause_until_ns = UINT64_MAX;
	a.node.next = NULL;
	refresh(t);
	assert_string_equal(at(t, HERE + 256, 5), "-");
	reg->pause_until_ns = 0;
	refresh(t);
	assert_string_equal(at(t, HERE + 256, 5), "Blpha");
}

/* Of one that is gone nothing can be read; what was read stays. */
static void leaving(void **state)
{
	TRACKER(state);
	struct object a, b;

	make(&a, HERE, 'A');
	make(&b, HERE + 256, 'B');
	link_node(&a.node);
	refresh(t);
	dyn_leaving(&t->p);
	unlink_node(&a.node);
	link_node(&b.node);
	assert_string_equal(at(t, HERE, refresh(t)), "Alpha");
	assert_string_equal(at(t, HERE + 256, 5), "-");
}

/* A list that takes long: not before its time, but for a flush. */
static void rests(void **state)
{
	TRACKER(state);
	struct dyn_registry *reg = source(&t->p);
	uint64_t before, later = base_now_ns() + 3600000000000u;
	struct object a, b;

	refresh(t);
	make(&a, HERE, 'A');
	link_node(&a.node);
	before = reg->read_ns;
	reg->list_ns = later;
	dyn_refresh(t->dyn, false);
	assert_string_equal(at(t, HERE, base_now_ns()), "-");
	assert_int_equal(reg->read_ns, before);
	dyn_refresh(t->dyn, true);
	assert_string_equal(at(t, HERE, base_now_ns()), "Alpha");
	assert_true(reg->read_ns > before);
	assert_true(reg->list_ns < later);
	/* Its time has come. */
	make(&b, HERE + 4096, 'B');
	link_node(&b.node);
	reg->list_ns = 1;
	dyn_refresh(t->dyn, false);
	assert_string_equal(at(t, HERE + 4096, base_now_ns()), "Blpha");
}

/* It is looked for when files were mapped, and not often. */
static void look(void **state)
{
	TRACKER(state);
	struct dyn_registry *reg = source(&t->p);
	struct object a;
	uint64_t next, before = base_now_ns();

	refresh(t);
	assert_true(reg->look_ns > before);
	/* A time that does not come in this test. */
	next = reg->look_ns = base_now_ns() + 3600000000000u;
	refresh(t);
	dyn_mapped(&t->p);
	refresh(t);
	assert_int_equal(reg->look_ns, next);
	reg->look_ns = 0;
	refresh(t);
	assert_true(reg->look_ns > before && reg->look_ns != next);
	reg->look_ns = 0;
	refresh(t);
	assert_int_equal(reg->look_ns, 0);
	/* What was found stays. */
	make(&a, HERE, 'A');
	link_node(&a.node);
	refresh(t);
	assert_string_equal(at(t, HERE, 5), "Alpha");
}

/* The child has its parent's list, and what either puts there later is its own. */
static void forked(void **state)
{
	TRACKER(state);
	struct process child = { .pid = getpid(), .uid = getuid(), .comm = "child" };
	struct object a, b;
	uint64_t now;

	make(&a, HERE, 'A');
	make(&b, HERE + 256, 'B');
	link_node(&a.node);
	refresh(t);
	dyn_fork(t->dyn, &t->p, &child, base_now_ns(), NULL);
	refresh(t);
	link_node(&b.node);
	now = refresh(t);
	assert_string_equal(at(t, HERE + 256, now), "Blpha");
	/* Nothing is known of what the child has there. */
	assert_string_equal(who(t, &child, HERE, now), "Alpha");
	assert_string_equal(who(t, &child, HERE + 256, now), "-");
	dyn_watch(t->dyn, &child);
	refresh(t);
	assert_string_equal(who(t, &child, HERE, now), "Alpha");
	dyn_end(t->dyn, &child);
}

/* What stood in both at the fork may be seen in the child first. */
static void forked_unread(void **state)
{
	TRACKER(state);
	struct process child = { .pid = getpid(), .uid = getuid(), .comm = "child" };
	struct object a, b, c;
	uint64_t now;

	make(&a, HERE, 'A');
	make(&b, HERE + 256, 'B');
	make(&c, HERE + 512, 'C');
	link_node(&a.node);
	refresh(t);
	link_node(&b.node);
	dyn_fork(t->dyn, &t->p, &child, base_now_ns(), NULL);
	dyn_watch(t->dyn, &child);
	now = refresh_all(t, &child);
	assert_string_equal(who(t, &child, HERE, now), "Alpha");
	assert_string_equal(who(t, &child, HERE + 256, now), "Blpha");
	assert_string_equal(at(t, HERE + 256, 5), "Blpha");
	/* Since the fork each has its own, though they look alike. */
	link_node(&c.node);
	now = refresh_all(t, &child);
	assert_string_equal(who(t, &child, HERE + 512, now), "Clpha");
	assert_string_equal(at(t, HERE + 512, now), "Clpha");
	dyn_end(t->dyn, &child);
}

/* What a parent had ends with the last who inherited it: nothing is looked for any more. */
static void outlived(void **state)
{
	TRACKER(state);
	struct process child = { .pid = getpid(), .uid = getuid(), .comm = "child" };
	struct dyn_registry *reg = source(&t->p);
	struct object a;

	assert_int_equal(t->dyn->nr_roots, 1);
	dyn_fork(t->dyn, &t->p, &child, base_now_ns(), NULL);
	dyn_end(t->dyn, &t->p);
	/* The child may write of it still. */
	assert_false(reg->over);
	assert_int_equal(t->dyn->nr_roots, 1);
	make(&a, HERE, 'A');
	link_node(&a.node);
	dyn_end(t->dyn, &child);
	assert_true(reg->lifetimes.routines.nr_live > 0);
	assert_int_equal(t->dyn->nr_roots, 0);
	for (reg = t->dyn->registries; reg; reg = reg->next)
		assert_true(reg->over && !reg->refs && reg->fd < 0);
	dyn_refresh(t->dyn, true);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, tracker_teardown)
	const struct CMUnitTest tests[] = {
		TEST(registered),
		TEST(unregistered),
		TEST(replaced),
		TEST(replaced_in_place),
		TEST(never_unregistered),
		TEST(no_object),
		TEST(list_that_lies),
		TEST(leaving),
		TEST(rests),
		TEST(look),
		TEST(forked),
		TEST(forked_unread),
		TEST(outlived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
