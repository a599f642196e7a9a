/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples with a generation: whose they are, whatever the readings saw of it. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "jit_internal.h"
#include "fake_registry.h"

struct trial {
	struct dyn *dyn;
	struct images *images;
	struct process p;
	struct base_buf b;
	uint64_t now;
};

static struct trial t;
static const uint8_t code[64] = { 0x90, 0x90, 0xc3, 1 };

static int setup(void **state)
{
	struct dyn_config config = { .host = "host one" };

	(void)state;
	t = (struct trial){ .images = images_new(),
			    .p = { .pid = 42, .uid = 7, .comm = "prog", .start_time_ns = 5000 },
			    .now = 100 };
	config.images = t.images;
	assert_int_equal(dyn_open(&config, &t.dyn, NULL), 0);
	fake_facility_rec(&t.b, 0, "j");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	dyn_end(t.dyn, &t.p);
	dyn_close(t.dyn);
	images_free(t.images);
	base_buf_release(&t.b);
	return 0;
}

static void *last_record(size_t at)
{
	return t.b.data + at;
}

static void put(uint64_t seq, uint64_t addr, const char *name, uint16_t flags)
{
	size_t at = t.b.len;
	struct wire_routine *r;

	fake_routine_rec(&t.b, 0, addr, name, code, 64);
	r = last_record(at);
	r->seq = seq;
	r->head.flags |= flags;
}

static size_t record_len(const char *name)
{
	return wire_routine_len(strlen(name), 64, false, 0, 0, 0);
}

#define FRESH  0
#define REUSES WIRE_ROUTINE_REUSES
#define LISTED WIRE_ROUTINE_LISTED

static void *extend(size_t len, uint16_t type)
{
	struct wire_head *h;
	void *p;

	assert_int_equal(base_buf_extend(&t.b, base_align_up(len, 8), &p), 0);
	h = p;
	*h = (struct wire_head){ .len = (uint32_t)base_align_up(len, 8), .type = type };
	return p;
}

static void retire(uint64_t seq, uint64_t handle, uint64_t addr, uint64_t len)
{
	struct wire_retire *r = extend(sizeof(*r), WIRE_RETIRE);

	r->seq = seq;
	r->handle = handle;
	r->addr = addr;
	r->code_len = len;
}

static void move(uint64_t seq, uint64_t handle, uint64_t from, uint64_t to)
{
	struct wire_move *r = extend(sizeof(*r) + sizeof(code), WIRE_MOVE);

	r->head.flags = WIRE_ROUTINE_CODE | WIRE_ROUTINE_REUSES;
	r->seq = seq;
	r->handle = handle;
	r->from = from;
	r->to = to;
	r->code_len = sizeof(code);
	memset(r + 1, 0xcc, sizeof(code));
}

static void object(uint64_t seq, uint64_t addr, uint64_t len)
{
	struct wire_object *r = extend(sizeof(*r), WIRE_OBJECT);

	r->seq = seq;
	r->elf_addr = 0x900000;
	r->elf_len = 64;
	r->addr = addr;
	r->code_len = len;
}

static void listed(uint64_t before, uint64_t after, uint64_t nr_unlisted)
{
	struct wire_listed *r = extend(sizeof(*r), WIRE_LISTED);

	r->seq_before = before;
	r->seq_after = after;
	r->nr_unlisted = nr_unlisted;
}

/* What was collected is read now. */
static void tell(void)
{
	assert_int_equal(dyn_records(t.dyn, &t.p, t.now += 100, t.b.data, t.b.len), 0);
	base_buf_clear(&t.b);
}

static enum dyn_where where(struct process *p, uint64_t addr, uint32_t generation, uint64_t *off)
{
	const struct dyn_query q = { .addr = addr,
				     .first_ns = 1,
				     .time_ns = t.now,
				     .count = 1,
				     .generation = generation,
				     .generation_read = true,
				     .last = true };
	struct image *img = NULL;

	return dyn_lookup(t.dyn, p, &q, &img, off);
}

/* The routine that a sample is charged to: "?" for not known, "-" for none. */
static const char *who_of(struct process *p, const struct dyn_registry *reg, uint64_t addr,
			  uint32_t generation)
{
	static char name[64];
	uint64_t off = 0;

	switch (where(p, addr, generation, &off)) {
	case DYN_NONE:
		return "-";
	case DYN_FOUND:
		break;
	case DYN_GENERATION:
		return "?";
	default:
		return "!";
	}
	for (uint32_t i = 1; i <= reg->lifetimes.routines.last; i++) {
		const struct dyn_routine *r = dyn_routine_get(&reg->lifetimes.routines, i);
		struct dyn_facility *f = reg->facilities[r->facility];
		const struct wire_routine *rec = dyn_facility_record(f, r);
		uint64_t begin;

		if (dyn_facility_offset(f, dyn_facility_elf(r), &begin) < 0 || off < begin ||
		    off - begin >= r->len)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)rec->name_len, (const char *)(rec + 1));
		return name;
	}
	return "nowhere";
}

static const char *who(uint64_t addr, uint32_t generation)
{
	return who_of(&t.p, t.p.dyn->own, addr, generation);
}

/* Invariant 2: A, B and A' within one reading; each generation is its own routine's. */
static void swaps(void **state)
{
	(void)state;
	put(1, 0x10000, "A", FRESH);
	put(2, 0x10000, "B", REUSES);
	put(3, 0x10000, "A", REUSES);
	put(4, 0x20000, "far", FRESH);
	retire(5, 3, 0x10000, 64);
	put(6, 0x10000, "C", REUSES);
	tell();
	assert_string_equal(who(0x10000, 0), "A");
	assert_string_equal(who(0x10000, 1), "A");
	assert_string_equal(who(0x10000, 2), "B");
	assert_string_equal(who(0x10000, 3), "A");
	/* Moved by a neighbour. */
	assert_string_equal(who(0x1003f, 4), "A");
	/* Vacant from 5 on: of whoever comes next. */
	assert_string_equal(who(0x10000, 5), "C");
	assert_string_equal(who(0x10000, 6), "C");
	assert_string_equal(who(0x20000, 0), "far");
	assert_string_equal(who(0x20000, 3), "far");
	assert_string_equal(who(0x30000, 3), "-");
	assert_int_equal(t.p.dyn->own->nr_bad, 0);
	assert_int_equal(t.p.dyn->own->lifetimes.nr_missed, 0);
	/* The same routine at the same address is the same place. */
	assert_int_equal(t.p.dyn->own->facilities[0]->nr_routines, 4);
}

static void partly_overwritten(void **state)
{
	(void)state;
	put(1, 0x10000, "A", FRESH);
	put(2, 0x10020, "B", REUSES);
	tell();
	assert_string_equal(who(0x10000, 1), "A");
	assert_string_equal(who(0x10030, 1), "A");
	assert_string_equal(who(0x10030, 2), "B");
	assert_string_equal(who(0x10050, 1), "B");
	/* The rest of A nobody has told. */
	assert_string_equal(who(0x10000, 2), "-");
}

static void retire_by_address(void **state)
{
	(void)state;
	put(1, 0x10000, "A", FRESH);
	put(2, 0x10040, "B", FRESH);
	put(3, 0x10080, "C", FRESH);
	retire(4, 0, 0x10020, 0x41);
	/* No such handle, or elsewhere: nothing is gone. */
	retire(5, 77, 0x10000, 64);
	retire(6, 1, 0x50000, 64);
	tell();
	assert_string_equal(who(0x10000, 6), "A");
	assert_string_equal(who(0x10040, 3), "B");
	assert_string_equal(who(0x10040, 4), "-");
	assert_string_equal(who(0x10080, 3), "C");
	assert_string_equal(who(0x10080, 6), "C");
	retire(7, 1, 0x10000, 64);
	tell();
	assert_string_equal(who(0x10000, 6), "A");
	assert_string_equal(who(0x10000, 7), "-");
}

static void moves(void **state)
{
	const struct dyn_routine *r;

	(void)state;
	put(1, 0x10000, "A", FRESH);
	put(2, 0x20000, "B", FRESH);
	move(3, 1, 0x10000, 0x20000);
	put(4, 0x10000, "C", REUSES);
	move(5, 3, 0x20000, 0x30000);
	tell();
	assert_string_equal(who(0x10000, 2), "A");
	assert_string_equal(who(0x20000, 2), "B");
	assert_string_equal(who(0x20000, 3), "A");
	assert_string_equal(who(0x10000, 3), "C");
	assert_string_equal(who(0x30000, 5), "A");
	/* With its code as it is there. */
	r = dyn_routine_get(&t.p.dyn->own->lifetimes.routines, 3);
	assert_int_equal(r->addr, 0x20000);
	assert_int_equal(
		((const uint8_t *)(dyn_facility_record(t.p.dyn->own->facilities[0], r) + 1))[1],
		0xcc);
	assert_int_equal(t.p.dyn->own->nr_bad, 0);
	/* Nobody knows the routine: nor who stands there now. */
	move(6, 99, 0x70000, 0x30000);
	tell();
	assert_string_equal(who(0x30000, 5), "A");
	assert_string_equal(who(0x30000, 6), "?");
}

static const struct wire_routine *record_of(uint32_t index)
{
	const struct dyn_registry *reg = t.p.dyn->own;

	return dyn_facility_record(reg->facilities[0],
				   dyn_routine_get(&reg->lifetimes.routines, index));
}

/* Its record is lost: who stands at its new address is not known. */
static void moves_unread(void **state)
{
	(void)state;
	put(1, 0x10000, "A", FRESH);
	tell();
	t.dyn->spool.late_len = 0;
	assert_null(record_of(1));
	put(2, 0x20000, "B", FRESH);
	move(3, 1, 0x10000, 0x20000);
	tell();
	assert_string_equal(who(0x20000, 2), "B");
	assert_string_equal(who(0x20000, 3), "?");
	assert_true(t.p.dyn->own->lifetimes.wants_list);
}

static void objects(void **state)
{
	size_t at;

	(void)state;
	put(1, 0x10000, "old", FRESH);
	object(2, 0x10000, 0x1000);
	put(2, 0x10100, "one", REUSES);
	at = t.b.len;
	put(2, 0x10200, "two", REUSES);
	((struct wire_routine *)last_record(at))->part = 1;
	tell();
	assert_int_equal(t.p.dyn->own->nr_bad, 0);
	assert_string_equal(who(0x10000, 1), "old");
	assert_string_equal(who(0x10000, 2), "nowhere");
	assert_string_equal(who(0x10100, 2), "one");
	assert_string_equal(who(0x10200, 2), "two");
	put(3, 0x10300, "other", FRESH);
	retire(4, 2, 0x10000, 0x1000);
	tell();
	assert_string_equal(who(0x10100, 3), "one");
	assert_string_equal(who(0x10100, 4), "-");
	assert_string_equal(who(0x10200, 4), "-");
	assert_string_equal(who(0x10300, 4), "other");
}

/* The ring had no room for its code, and that may be another's by now: a list brings it. */
static void without_code(void **state)
{
	struct dyn_facility *f;
	struct dyn_lifetimes *n;

	(void)state;
	put(1, 0x10000, "A", FRESH);
	fake_routine_rec(&t.b, 0, 0x20000, "B", NULL, 64);
	((struct wire_routine *)last_record(t.b.len - record_len("B")))->seq = 2;
	tell();
	n = &t.p.dyn->own->lifetimes;
	f = t.p.dyn->own->facilities[0];
	assert_true(n->wants_list);
	assert_int_equal(n->codeless, 2);
	assert_string_equal(who(0x20000, 2), "B");
	assert_int_equal(record_of(2)->head.flags & WIRE_ROUTINE_CODE, 0);
	f->changed = f->image->behind = false;
	n->codeless = 0; /* as where the list is asked for */
	put(1, 0x10000, "A", LISTED);
	put(2, 0x20000, "B", LISTED);
	listed(2, 2, 0);
	tell();
	assert_int_equal(record_of(2)->head.flags & WIRE_ROUTINE_CODE, WIRE_ROUTINE_CODE);
	assert_memory_equal((const uint8_t *)(record_of(2) + 1) + 1, code, sizeof(code));
	/* It had samples: the image on disk lacks what it must have. */
	assert_true(f->image->behind);
	assert_string_equal(who(0x20000, 2), "B");
	assert_true(f->changed);
	assert_int_equal(f->nr_routines, 2);
	assert_false(n->wants_list);
	assert_int_equal(t.p.dyn->own->nr_bad, 0);
}

/* Its process is over its quota by then: nothing is wrong with the record. */
static void without_code_or_room(void **state)
{
	(void)state;
	fake_routine_rec(&t.b, 0, 0x20000, "B", NULL, 64);
	((struct wire_routine *)last_record(t.b.len - record_len("B")))->seq = 1;
	tell();
	t.dyn->config.process_quota = 1;
	put(1, 0x20000, "B", LISTED);
	listed(1, 1, 0);
	tell();
	assert_int_equal(record_of(1)->head.flags & WIRE_ROUTINE_CODE, 0);
	assert_string_equal(who(0x20000, 1), "B");
	assert_int_equal(t.p.dyn->own->nr_bad, 0);
	assert_int_equal(t.dyn->stats.records_dropped, 1);
}

/* What no symbol covers is the object's still, and not of who comes next. */
static void object_beside_its_symbols(void **state, uint16_t flags)
{
	uint64_t off;

	(void)state;
	object(1, 0x10000, 0x1000);
	((struct wire_head *)last_record(t.b.len - sizeof(struct wire_object)))->flags |= flags;
	for (uint32_t i = 0; i < 2; i++) {
		size_t at = t.b.len;

		put(1, 0x10100 + i * 0x100, i ? "two" : "one", flags);
		((struct wire_routine *)last_record(at))->part = i;
	}
	if (flags)
		listed(1, 1, 0);
	tell();
	retire(2, 1, 0x10000, 0x1000);
	put(3, 0x10000, "Z", REUSES);
	put(4, 0x10800, "later", REUSES);
	tell();
	assert_int_equal(t.p.dyn->own->nr_bad, 0);
	assert_string_equal(who(0x10100, 1), "one");
	assert_string_equal(who(0x10200, 1), "two");
	for (uint64_t addr = 0x10000; addr < 0x11000; addr += 0x80)
		assert_int_equal(where(&t.p, addr, 1, &off), DYN_FOUND);
	assert_string_equal(who(0x10000, 1), "nowhere");
	assert_string_equal(who(0x10180, 1), "nowhere");
	assert_string_equal(who(0x10800, 1), "nowhere");
	assert_string_equal(who(0x10fff, 1), "nowhere");
	assert_string_equal(who(0x10000, 2), "Z");
	assert_string_equal(who(0x10800, 2), "later");
	assert_string_equal(who(0x10100, 2), "-");
	assert_int_equal(t.dyn->stats.routines_refused, 0);
}

static void object_in_the_ring(void **state)
{
	object_beside_its_symbols(state, 0);
}

static void object_in_the_list(void **state)
{
	object_beside_its_symbols(state, LISTED);
}

/* One of whose file nothing is known, told by the ring and by a list. */
static void object_without_symbols(void **state)
{
	(void)state;
	object(1, 0x10000, 0x1000);
	put(5, 0x20000, "far", FRESH);
	tell();
	object(1, 0x10000, 0x1000);
	((struct wire_head *)last_record(0))->flags |= LISTED;
	put(5, 0x20000, "far", LISTED);
	listed(5, 5, 0);
	tell();
	retire(6, 1, 0x10000, 0x1000);
	put(7, 0x10000, "Z", REUSES);
	tell();
	assert_string_equal(who(0x10000, 1), "nowhere");
	assert_string_equal(who(0x10fff, 5), "nowhere");
	assert_string_equal(who(0x10000, 6), "Z");
	assert_string_equal(who(0x10100, 6), "-");
	assert_int_equal(t.p.dyn->own->lifetimes.routines.nr_live, 2);
}

/* What was missed is told by a list: who lived through it, who came, who is gone. */
static void a_gap(void **state)
{
	(void)state;
	put(1, 0x10000, "stays", FRESH);
	put(2, 0x20000, "goes", FRESH);
	put(3, 0x30000, "is replaced", FRESH);
	put(10, 0x40000, "late", FRESH);
	tell();
	assert_true(t.p.dyn->own->lifetimes.wants_list);
	assert_int_equal(t.p.dyn->own->lifetimes.nr_missed, 6);
	/* Before the list: whoever lived may be gone. */
	assert_string_equal(who(0x10000, 3), "stays");
	assert_string_equal(who(0x10000, 4), "?");
	put(1, 0x10000, "stays", LISTED);
	put(6, 0x30000, "new", LISTED | REUSES);
	put(7, 0x50000, "virgin", LISTED);
	put(8, 0x60000, "reuses", LISTED | REUSES);
	put(10, 0x40000, "late", LISTED);
	listed(10, 10, 0);
	tell();
	assert_false(t.p.dyn->own->lifetimes.wants_list);
	assert_string_equal(who(0x10000, 5), "stays");
	assert_string_equal(who(0x10000, 10), "stays");
	assert_string_equal(who(0x20000, 3), "goes");
	assert_string_equal(who(0x20000, 4), "?");
	assert_string_equal(who(0x20000, 8), "?");
	assert_string_equal(who(0x20000, 10), "-");
	assert_string_equal(who(0x30000, 3), "is replaced");
	assert_string_equal(who(0x30000, 4), "?");
	assert_string_equal(who(0x30000, 6), "new");
	assert_string_equal(who(0x30000, 9), "new");
	assert_string_equal(who(0x40000, 9), "late");
	assert_string_equal(who(0x50000, 0), "virgin");
	assert_string_equal(who(0x50000, 5), "virgin");
	assert_string_equal(who(0x60000, 3), "?");
	assert_string_equal(who(0x60000, 8), "reuses");
	/* Where nobody lives, somebody may have. */
	assert_string_equal(who(0x70000, 3), "?");
	assert_string_equal(who(0x70000, 10), "-");
	assert_int_equal(t.p.dyn->own->nr_bad, 0);
	/* What happens after it is exact again. */
	retire(11, 1, 0x10000, 64);
	put(12, 0x10000, "next", REUSES);
	tell();
	assert_string_equal(who(0x10000, 10), "stays");
	assert_string_equal(who(0x10000, 11), "next");
}

static enum dyn_where between(uint64_t addr, uint64_t first_ns, uint64_t time_ns)
{
	const struct dyn_query q = {
		.addr = addr, .first_ns = first_ns, .time_ns = time_ns, .count = 1, .last = true
	};
	struct image *img = NULL;
	uint64_t off;

	return dyn_lookup(t.dyn, &t.p, &q, &img, &off);
}

/* By time, who is not in a list lived for certain up to the reading before the first that missed.
 */
static void missed_at_a_time(void **state)
{
	uint64_t first, second;

	(void)state;
	put(1, 0x10000, "goes first", FRESH);
	put(2, 0x20000, "goes second", FRESH);
	tell();
	put(3, 0x60000, "beside", FRESH);
	tell();
	first = t.now;
	put(10, 0x40000, "stays", FRESH);
	tell();
	second = t.now;
	/* The list, and behind it a change before which others were missed. */
	put(2, 0x20000, "goes second", LISTED);
	put(10, 0x40000, "stays", LISTED);
	listed(10, 10, 0);
	put(20, 0x50000, "late", FRESH);
	tell();
	put(10, 0x40000, "stays", LISTED);
	put(20, 0x50000, "late", LISTED);
	listed(20, 20, 0);
	tell();
	assert_int_equal(t.p.dyn->own->nr_bad, 0);
	assert_int_equal(between(0x10000, first - 50, first), DYN_FOUND);
	assert_int_equal(between(0x10000, first - 50, first + 1), DYN_REUSED);
	assert_int_equal(between(0x20000, second - 50, second), DYN_FOUND);
	assert_int_equal(between(0x20000, second - 50, second + 1), DYN_REUSED);
}

/* A retirement that the ring tells after the list was read is exact all the same. */
static void list_ahead_of_the_ring(void **state)
{
	(void)state;
	put(1, 0x10000, "A", FRESH);
	put(4, 0x20000, "B", FRESH);
	put(4, 0x20000, "B", LISTED);
	put(6, 0x30000, "C", LISTED);
	listed(4, 6, 0);
	tell();
	retire(5, 1, 0x10000, 64);
	put(6, 0x30000, "C", FRESH);
	put(7, 0x10000, "D", REUSES);
	tell();
	assert_int_equal(t.p.dyn->own->nr_bad, 0);
	assert_string_equal(who(0x10000, 1), "A");
	/* 2 and 3 were missed, but the ring says that it lived until 5. */
	assert_string_equal(who(0x10000, 5), "D");
	assert_string_equal(who(0x30000, 6), "C");
	assert_string_equal(who(0x20000, 7), "B");
}

/* Who came with a change that was missed may live on long after it. */
static void missed_long_before(void **state)
{
	(void)state;
	put(1, 0x10000, "X", FRESH);
	/* 2 to 10 were missed: 5 is somebody at 0x20000. */
	put(11, 0x30000, "elsewhere", FRESH);
	retire(12, 5, 0x20000, 64);
	put(13, 0x20000, "Z", REUSES);
	tell();
	assert_string_equal(who(0x20000, 11), "?");
	assert_string_equal(who(0x20000, 13), "Z");
	/* Whose predecessor is known to have gone after that had nobody in between. */
	put(14, 0x40000, "P", FRESH);
	retire(15, 14, 0x40000, 64);
	put(16, 0x30000, "other", REUSES);
	put(17, 0x40000, "Q", REUSES);
	tell();
	assert_string_equal(who(0x40000, 14), "P");
	assert_string_equal(who(0x40000, 16), "Q");
	assert_string_equal(who(0x20000, 16), "Z");
}

/* The same routine at the same address again need not have been there all the time. */
static void registered_again(void **state, uint16_t flags)
{
	struct dyn_query q = { .addr = 0x10000, .first_ns = 250, .time_ns = 260, .last = true };
	struct image *img;
	uint64_t off;

	(void)state;
	put(1, 0x10000, "X", FRESH);
	tell();
	tell();
	/* Missed: X is gone with 2, somebody came with 3 and went with 4. */
	put(5, 0x10000, "X", REUSES | flags);
	if (flags)
		listed(5, 5, 0);
	tell();
	assert_int_equal(t.p.dyn->own->nr_bad, 0);
	assert_string_equal(who(0x10000, 1), "X");
	assert_string_equal(who(0x10000, 3), "?");
	assert_string_equal(who(0x10000, 5), "X");
	assert_int_equal(dyn_lookup(t.dyn, &t.p, &q, &img, &off), DYN_REUSED);
	assert_int_equal(t.p.dyn->own->facilities[0]->nr_routines, 1);
}

static void again_in_the_ring(void **state)
{
	registered_again(state, 0);
}

static void again_in_the_list(void **state)
{
	registered_again(state, LISTED);
}

/* A list that tells who came before the ring tells who went. */
static void list_before_the_retirement(void **state)
{
	(void)state;
	put(1, 0x10000, "X", FRESH);
	tell();
	put(4, 0x10000, "Y", LISTED | REUSES);
	tell();
	retire(3, 1, 0x10000, 64);
	put(4, 0x10000, "Y", REUSES);
	listed(4, 4, 0);
	tell();
	assert_string_equal(who(0x10000, 1), "X");
	assert_string_equal(who(0x10000, 3), "?");
	assert_string_equal(who(0x10000, 4), "Y");
}

/* Whoever of a list cannot be kept lives all the same: no disk, and no memory in its place. */
static void listed_on_a_full_disk(void **state)
{
	static uint8_t large[40000];
	int fd;

	(void)state;
	put(1, 0x10000, "A", FRESH);
	tell();
	fd = t.dyn->spool.fd;
	t.dyn->spool.late_len = 0;
	t.dyn->spool.fd = open("/dev/full", O_RDWR | O_CLOEXEC);
	t.dyn->spool.in_memory = DYN_SPOOL_MEMORY_MAX;
	fake_routine_rec(&t.b, 0, 0x20000, "B", large, sizeof(large));
	((struct wire_routine *)last_record(0))->seq = 3;
	((struct wire_head *)last_record(0))->flags |= LISTED;
	listed(3, 3, 0);
	tell();
	assert_string_equal(who(0x20000, 3), "nowhere");
	close(t.dyn->spool.fd);
	t.dyn->spool.fd = fd;
	t.dyn->spool.in_memory = 0;
}

/* Who retires by address ends nobody else's. */
static void retire_of_a_facility(void **state)
{
	(void)state;
	fake_facility_rec(&t.b, 1, "k");
	put(1, 0x10000, "A", FRESH);
	retire(2, 0, 0x10000, 64);
	((struct wire_retire *)last_record(t.b.len - sizeof(struct wire_retire)))->facility = 1;
	tell();
	assert_int_equal(t.p.dyn->own->nr_bad, 0);
	assert_string_equal(who(0x10000, 2), "A");
	retire(3, 0, 0x10000, 64);
	tell();
	assert_string_equal(who(0x10000, 3), "-");
}

/* Each is found by its address among all that are gone, whatever its length. */
static void the_past_by_address(void **state)
{
	enum { NR = 400 };
	static const uint8_t large[70000];
	static uint64_t addr[NR], len[NR];
	const struct dyn_lifetimes *lifetimes;
	uint64_t at = 0x10000;

	(void)state;
	for (uint64_t i = 0; i < NR; i++) {
		size_t rec = t.b.len;

		len[i] = 1 + i * i * 7919 % (i % 8 ? 600 : sizeof(large));
		addr[i] = at;
		at += len[i] + i % 3;
		fake_routine_rec(&t.b, 0, addr[i], "r", large, len[i]);
		((struct wire_routine *)last_record(rec))->seq = i + 1;
	}
	for (uint64_t i = 0; i < NR; i++)
		retire(NR + 1 + i, i + 1, addr[i], len[i]);
	tell();
	lifetimes = &t.p.dyn->own->lifetimes;
	assert_int_equal(lifetimes->nr_past, NR);
	for (uint64_t i = 0; i < NR; i++) {
		const uint64_t ask[3] = { addr[i], addr[i] + len[i] / 2, addr[i] + len[i] - 1 };
		uint32_t index;
		bool sure;

		for (size_t k = 0; k < 3; k++) {
			assert_int_equal(
				dyn_lifetime_find_seq(lifetimes, ask[k], NR, &index, &sure),
				DYN_FOUND);
			assert_int_equal(dyn_routine_get(&lifetimes->routines, index)->addr,
					 addr[i]);
		}
		if (i % 3)
			assert_int_equal(dyn_lifetime_find_seq(lifetimes, addr[i] + len[i], NR,
							       &index, &sure),
					 DYN_NONE);
	}
}

/* A JIT puts one after another where the last one stood; the older half is forgotten at last. */
static void many_at_one_address(void **state)
{
	enum { NR = DYN_PAST_MAX + 5000, ASKED = 97 };
	struct dyn_lifetimes *lifetimes;
	uint32_t index;
	bool sure;

	(void)state;
	put(1, 0x10000, "A", FRESH);
	put(2, 0x10020, "B", REUSES);
	tell();
	lifetimes = &t.p.dyn->own->lifetimes;
	for (uint64_t seq = 3; seq <= NR; seq++) {
		const struct dyn_interval m = { seq, 100 + seq, 101 + seq };

		dyn_lifetime_reached(lifetimes, &m, true);
		assert_int_equal(dyn_lifetime_enter(lifetimes, 2 - seq % 2, DYN_REUSES, &m), 0);
	}
	for (uint64_t seq = DYN_PAST_MAX / 2 + 2; seq <= NR; seq += ASKED) {
		assert_int_equal(dyn_lifetime_find_seq(lifetimes, 0x10030, seq, &index, &sure),
				 DYN_FOUND);
		assert_int_equal(index, 2 - seq % 2);
		assert_true(sure);
	}
	assert_int_equal(dyn_lifetime_find_seq(lifetimes, 0x10030, 1000, &index, &sure),
			 DYN_GENERATION);
}

/* One that comes and goes on page after page gets no more of them at last. */
static void too_many_pages(void **state)
{
	(void)state;
	put(1, 0x10000, "A", FRESH);
	tell();
	assert_int_equal(t.p.dyn->own->nr_runs, 1);
	t.p.dyn->own->nr_runs = DYN_RUNS_MAX;
	put(2, 0x90000, "B", FRESH);
	put(3, 0x10000, "C", REUSES);
	tell();
	assert_int_equal(t.p.dyn->own->nr_bad, 0);
	assert_string_equal(who(0x10000, 1), "A");
	assert_string_equal(who(0x90000, 2), "nowhere");
	assert_string_equal(who(0x10000, 3), "nowhere");
	assert_true(t.p.dyn->own->nr_runs <= DYN_RUNS_MAX + 1);
}

/* Who finds no room is nobody; a list tells that the others live, and that it lacks him. */
static void too_many_routines(void **state, bool of_all)
{
	struct dyn_registry *reg;

	(void)state;
	put(1, 0x10000, "A", FRESH);
	put(2, 0x20000, "B", FRESH);
	put(3, 0x30000, "C", FRESH);
	tell();
	reg = t.p.dyn->own;
	assert_string_equal(who(0x10000, 3), "A");
	assert_int_equal(reg->nr_slots, 3);
	assert_int_equal(t.dyn->nr_slots, 3);
	*(of_all ? &t.dyn->nr_slots : &reg->nr_slots) =
		of_all ? DYN_ALL_ROUTINES_MAX : DYN_ROUTINES_MAX;
	put(4, 0x20000, "D", REUSES);
	object(5, 0x60000, 64);
	move(6, 3, 0x30000, 0x10000);
	tell();
	assert_int_equal(reg->lifetimes.routines.last, 3);
	assert_true(reg->crowded);
	assert_int_equal(reg->nr_bad, 0);
	assert_int_equal(t.dyn->stats.records_dropped, 3);
	assert_int_equal(reg->lifetimes.nr_missed, 3);
	assert_string_equal(who(0x20000, 3), "B");
	assert_string_equal(who(0x20000, 4), "?");
	assert_string_equal(who(0x10000, 5), "?");
	assert_string_equal(who(0x10000, 6), "?");
	assert_true(reg->lifetimes.wants_list);
	put(4, 0x20000, "D", LISTED);
	put(6, 0x10000, "C", LISTED);
	listed(6, 6, 0);
	tell();
	assert_false(reg->lifetimes.wants_list);
	assert_int_equal(reg->lifetimes.complete, 0);
	assert_string_equal(who(0x20000, 6), "?");
	assert_string_equal(who(0x90000, 6), "?");
	/* C had no sample: there is room for one when it is forgotten. */
	dyn_lifetime_forget(&reg->lifetimes, t.now + 2 * DYN_PAST_NS);
	dyn_facility_drop_unused(reg);
	put(7, 0x40000, "E", FRESH);
	put(8, 0x50000, "F", FRESH);
	tell();
	assert_string_equal(who(0x40000, 7), "E");
	assert_string_equal(who(0x50000, 8), "?");
	assert_string_equal(who(0x40000, 8), "?");
	put(7, 0x40000, "E", LISTED);
	listed(8, 8, 0);
	tell();
	assert_string_equal(who(0x40000, 8), "E");
	reg->nr_slots = t.dyn->nr_slots = 3;
}

static void too_many_of_one(void **state)
{
	too_many_routines(state, false);
}

static void too_many_of_all(void **state)
{
	too_many_routines(state, true);
}

/* A list that lacks some of those that live tells of nobody that he is gone. */
static void unlisted(void **state)
{
	(void)state;
	put(1, 0x10000, "A", FRESH);
	put(2, 0x20000, "B", FRESH);
	put(5, 0x30000, "C", FRESH);
	put(1, 0x10000, "A", LISTED);
	listed(5, 5, 1);
	tell();
	assert_string_equal(who(0x10000, 5), "A");
	assert_string_equal(who(0x20000, 2), "B");
	assert_string_equal(who(0x20000, 3), "?");
	assert_string_equal(who(0x20000, 5), "?");
	assert_string_equal(who(0x30000, 5), "C");
	retire(6, 2, 0x20000, 64);
	tell();
	/* The number that it names is B: nobody else was there. */
	assert_string_equal(who(0x20000, 5), "B");
	assert_string_equal(who(0x20000, 6), "-");
}

/* A daemon that comes late: all it knows is what lives. */
static void attached_late(void **state)
{
	(void)state;
	put(40, 0x10000, "virgin", LISTED);
	put(50, 0x20000, "reuses", LISTED | REUSES);
	listed(60, 60, 0);
	tell();
	assert_string_equal(who(0x10000, 0), "virgin");
	assert_string_equal(who(0x20000, 49), "?");
	assert_string_equal(who(0x20000, 50), "reuses");
	assert_string_equal(who(0x20000, 60), "reuses");
	assert_string_equal(who(0x30000, 59), "?");
	assert_string_equal(who(0x30000, 60), "-");
	put(61, 0x30000, "first", FRESH);
	tell();
	assert_string_equal(who(0x30000, 0), "first");
	assert_int_equal(t.p.dyn->own->lifetimes.nr_missed, 60);
}

/* Records that go backwards, or whose number is none or too large, are refused. */
static void lies(void **state)
{
	(void)state;
	put(5, 0x10000, "A", FRESH);
	put(4, 0x10000, "B", FRESH);
	put(0, 0x10000, "C", FRESH);
	put(DYN_SEQ_MAX + 1, 0x10000, "D", FRESH);
	retire(UINT64_MAX, 5, 0x10000, 64);
	retire(5, 5, 0x10000, 64);
	retire(6, 5, UINT64_MAX - 10, 64);
	retire(7, 5, 0x10000, UINT64_MAX);
	tell();
	assert_int_equal(t.p.dyn->own->nr_bad, 7);
	assert_string_equal(who(0x10000, 7), "A");
	/* A list with what ended before, or older than who lives there. */
	put(2, 0x10020, "E", LISTED);
	listed(1, 0, 0);
	tell();
	assert_string_equal(who(0x10020, 7), "A");
	assert_string_equal(who(0x10050, 7), "?");
}

/* Retirements that make us look at everything for nothing. */
static void wasted_work(void **state)
{
	enum { NR = 2000 };

	(void)state;
	for (uint64_t i = 1; i <= NR; i++)
		put(i, 0x10000 + i * 64, "r", FRESH);
	for (uint64_t i = 1; i <= NR; i++)
		retire(NR + i, 1ull << 40, 0x10000, 0x1000000);
	tell();
	assert_true(t.p.dyn->own->nr_bad + t.dyn->stats.records_dropped > NR / 2);
	assert_string_equal(who(0x10000 + 64, 1), "r");
}

static void wraps(void **state)
{
	const uint64_t base = 1ull << 32;

	(void)state;
	put(base - 2, 0x10000, "A", FRESH);
	put(base - 1, 0x20000, "B", FRESH);
	/* The number whose low half would be 0 is left out. */
	put(base + 1, 0x10000, "C", REUSES);
	put(base + 2, 0x20000, "D", REUSES);
	tell();
	assert_int_equal(t.p.dyn->own->lifetimes.nr_missed, base - 3);
	assert_string_equal(who(0x10000, (uint32_t)(base - 1)), "A");
	assert_string_equal(who(0x10000, 1), "C");
	assert_string_equal(who(0x20000, 2), "D");
	assert_int_equal(dyn_registry_seq(t.p.dyn->own, 3), base + 3);
	assert_int_equal(dyn_registry_seq(t.p.dyn->own, 2), base + 2);
	assert_int_equal(dyn_registry_seq(t.p.dyn->own, UINT32_MAX), base - 1);
}

/* A child has what lived at the fork, whatever the parent does after. */
static void forks(void **state)
{
	struct process child = { .pid = 43 }, grandchild = { .pid = 44 };
	const uint64_t cursor = 2;
	const struct dyn_registry *reg;
	uint64_t off, fork_ns;
	struct dyn_registry *own;

	(void)state;
	put(1, 0x10000, "A", FRESH);
	put(2, 0x10000, "B", REUSES);
	put(3, 0x10000, "C", REUSES);
	retire(4, 3, 0x10000, 64);
	put(5, 0x20000, "D", FRESH);
	fork_ns = t.now + 50;
	tell();
	reg = t.p.dyn->own;
	dyn_fork(t.dyn, &t.p, &child, fork_ns, &cursor);
	dyn_fork(t.dyn, &child, &grandchild, t.now, NULL);
	/* Long after it is known still. */
	t.now += 100 * DYN_PAST_NS;
	put(6, 0x40000, "E", FRESH);
	tell();
	tell();
	assert_true(t.p.dyn->own->lifetimes.nr_past > 0);
	assert_string_equal(who_of(&child, reg, 0x10000, 77), "B");
	assert_string_equal(who_of(&grandchild, reg, 0x10000, 77), "B");
	/* D came after the fork, at an address that was virgin then: never the child's. */
	assert_string_equal(who_of(&child, reg, 0x20000, 77), "-");
	assert_string_equal(who_of(&grandchild, reg, 0x20000, 77), "-");
	dyn_end(t.dyn, &grandchild);
	/* The child's own: what it registers is its own, from then on. */
	fake_facility_rec(&t.b, 0, "own");
	put(1, 0x10000, "mine", REUSES);
	assert_int_equal(dyn_records(t.dyn, &child, t.now, t.b.data, t.b.len), 0);
	base_buf_clear(&t.b);
	own = child.dyn->own;
	assert_string_equal(who_of(&child, own, 0x10000, 1), "mine");
	assert_int_equal(where(&child, 0x10000, 0, &off), DYN_FOUND);
	assert_string_equal(who_of(&child, reg, 0x10000, 0), "B");
	dyn_end(t.dyn, &child);
	tell();
	assert_int_equal(t.p.dyn->own->lifetimes.nr_past, 0);
}

/* A child that makes code of its own still runs what it inherited, and hands on both. */
static void forks_with_own(void **state)
{
	struct process child = { .pid = 43 }, grandchild = { .pid = 44 };
	const uint64_t cursor = 2, own_cursor = 1;
	const struct dyn_registry *reg, *own;

	(void)state;
	put(1, 0x10000, "A", FRESH);
	put(2, 0x20000, "B", FRESH);
	tell();
	reg = t.p.dyn->own;
	dyn_fork(t.dyn, &t.p, &child, t.now, &cursor);
	fake_facility_rec(&t.b, 0, "own");
	put(1, 0x10000, "mine", REUSES);
	retire(2, 1, 0x10000, 64);
	assert_int_equal(dyn_records(t.dyn, &child, t.now, t.b.data, t.b.len), 0);
	base_buf_clear(&t.b);
	own = child.dyn->own;
	dyn_fork(t.dyn, &child, &grandchild, t.now, &own_cursor);
	assert_string_equal(who_of(&child, own, 0x10000, 1), "mine");
	assert_string_equal(who_of(&child, reg, 0x20000, 0), "B");
	assert_string_equal(who_of(&child, reg, 0x20000, 1), "B");
	assert_string_equal(who_of(&grandchild, own, 0x10000, 77), "mine");
	assert_string_equal(who_of(&grandchild, reg, 0x20000, 77), "B");
	/* What it has overwritten is nobody's, and never its parent's again. */
	assert_string_equal(who_of(&child, reg, 0x10000, 2), "-");
	dyn_end(t.dyn, &grandchild);
	dyn_end(t.dyn, &child);
}

/* Without a generation the readings tell; where they do not, that is named. */
static void unread(void **state)
{
	struct dyn_query q = { .addr = 0x10000,
			       .first_ns = 120,
			       .time_ns = 130,
			       .count = 3,
			       .generation_unread = true,
			       .last = true };
	struct dyn_stats stats;
	struct image *img;
	uint64_t off;

	(void)state;
	put(1, 0x10000, "A", FRESH);
	tell();
	put(2, 0x10000, "B", REUSES);
	tell();
	assert_int_equal(dyn_lookup(t.dyn, &t.p, &q, &img, &off), DYN_FOUND);
	q.time_ns = 250;
	assert_int_equal(dyn_lookup(t.dyn, &t.p, &q, &img, &off), DYN_GENERATION);
	q.generation_unread = false;
	assert_int_equal(dyn_lookup(t.dyn, &t.p, &q, &img, &off), DYN_REUSED);
	dyn_stats_get(t.dyn, &stats);
	assert_int_equal(stats.generations_unread, 6);
}

/* Who is forgotten is not mixed up with who came after. */
static void long_ago(void **state)
{
	(void)state;
	put(1, 0x10000, "A", FRESH);
	put(2, 0x10000, "B", REUSES);
	tell();
	t.now += 100 * DYN_PAST_NS;
	put(3, 0x20000, "C", FRESH);
	tell();
	tell();
	assert_int_equal(t.p.dyn->own->lifetimes.nr_past, 0);
	assert_string_equal(who(0x10000, 1), "?");
	assert_string_equal(who(0x10000, 2), "B");
	assert_string_equal(who(0x20000, 1), "C");
}

/* By time: whose sample it is, or nobody's (0), or not known (UINT32_MAX). */
static uint32_t found(uint64_t addr, uint64_t time_ns)
{
	uint32_t index = 0;
	bool sure;

	switch (dyn_lifetime_find(&t.p.dyn->own->lifetimes, addr, time_ns, time_ns, &index,
				  &sure)) {
	case DYN_FOUND:
		return index;
	case DYN_NONE:
		return 0;
	default:
		return UINT32_MAX;
	}
}

/* A child that lives on may ask for all that was told since its fork, but not without end. */
static void very_many_times(void **state)
{
	enum { FORK = 1000, NR = DYN_POLLS_MAX + 100, END = 10 + 2 * NR };
	struct dyn_lifetimes *lifetimes;
	struct dyn_interval m;

	(void)state;
	put(1, 0x10000, "A", FRESH);
	put(2, 0x20000, "B", FRESH);
	put(3, 0x20000, "C", REUSES);
	put(4, 0x20000, "D", REUSES);
	tell();
	lifetimes = &t.p.dyn->own->lifetimes;
	assert_int_equal(dyn_lifetime_fork_add(lifetimes, FORK), 0);
	for (uint64_t i = 0; i < NR; i++) {
		m = (struct dyn_interval){ 5 + i, FORK + 10 + 2 * i, FORK + 10 + 2 * i };
		assert_int_equal(dyn_lifetime_enter(lifetimes, 3 + i % 2, 0, &m), 0);
	}
	dyn_lifetime_forget(lifetimes, FORK + END + 2 * DYN_PAST_NS);
	assert_true(lifetimes->nr_polls <= DYN_POLLS_MAX);
	assert_int_equal(found(0x20000, FORK + END), 3 + (NR - 1) % 2);
	assert_int_equal(found(0x10000, FORK + END), 1);
	/* When A came is not known any more: at the fork nobody is taken for it. */
	assert_int_equal(found(0x10000, FORK), 0);
	assert_int_equal(found(0x20000, FORK), UINT32_MAX);
}

/* They are numbered on from 0. */
static void numbers_of_times(void **state)
{
	struct dyn_lifetimes *lifetimes;

	(void)state;
	tell();
	lifetimes = &t.p.dyn->own->lifetimes;
	lifetimes->first_poll = UINT32_MAX;
	put(1, 0x10000, "A", FRESH);
	tell();
	put(2, 0x20000, "B", FRESH);
	tell();
	assert_int_equal(lifetimes->nr_polls, 2);
	assert_int_equal(found(0x10000, 150), 0);
	assert_int_equal(found(0x10000, 400), 1);
	assert_int_equal(found(0x20000, 250), 0);
	assert_int_equal(found(0x20000, 400), 2);
	assert_int_equal(dyn_lifetime_announced_ns(lifetimes, 1), 300);
	assert_int_equal(dyn_lifetime_announced_ns(lifetimes, 2), 400);
}

/* Owned ranges have no generations of their own. */
static void owned_ranges(void **state)
{
	(void)state;
	fake_range_rec(&t.b, 0, 0, WIRE_RANGE_CODE, 0x10000, 0x1000);
	fake_range_rec(&t.b, 1, 0, WIRE_RANGE_ARENA, 0x200000, 0x200000);
	put(1, 0x300000, "A", FRESH);
	tell();
	tell();
	assert_int_equal(t.p.dyn->own->nr_bad, 0);
	assert_string_equal(who(0x300000, 0), "A");
	assert_string_equal(who(0x10010, 0), "nowhere");
	assert_string_equal(who(0x200010, 0), "-");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(swaps),
		TEST(partly_overwritten),
		TEST(moves),
		TEST(moves_unread),
		TEST(without_code),
		TEST(without_code_or_room),
		TEST(retire_by_address),
		TEST(objects),
		TEST(a_gap),
		TEST(missed_at_a_time),
		TEST(missed_long_before),
		TEST(again_in_the_ring),
		TEST(again_in_the_list),
		TEST(list_before_the_retirement),
		TEST(object_in_the_ring),
		TEST(object_in_the_list),
		TEST(object_without_symbols),
		TEST(listed_on_a_full_disk),
		TEST(retire_of_a_facility),
		TEST(the_past_by_address),
		TEST(many_at_one_address),
		TEST(too_many_pages),
		TEST(too_many_of_one),
		TEST(too_many_of_all),
		TEST(unlisted),
		TEST(list_ahead_of_the_ring),
		TEST(attached_late),
		TEST(lies),
		TEST(wasted_work),
		TEST(wraps),
		TEST(forks),
		TEST(forks_with_own),
		TEST(unread),
		TEST(long_ago),
		TEST(very_many_times),
		TEST(numbers_of_times),
		TEST(owned_ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
