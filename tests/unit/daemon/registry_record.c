/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_registry.h"
#include "registry.h"
#include "small_elf.h"

enum { RING = 64 << 10, CODE_LEN = 16 };

static int parse(struct fake *f, const struct registry_memory *memory, struct base_buf *out)
{
	struct registry_place place = { .list_at = REGISTRY_NO_LIST };

	base_buf_clear(out);
	return registry_parse(f->fd, memory, &place, out);
}

/* One record in an otherwise empty ring: what comes of it? */
static int parse_one(const void *record, const struct registry_memory *memory, struct base_buf *out)
{
	struct fake f;
	int r;

	fake_open(&f, RING);
	fake_facility(&f, "a");
	fake_put(&f, record);
	r = parse(&f, memory, out);
	fake_close(&f);
	return r;
}

static ssize_t memory_read(void *ctx, uint64_t addr, void *to, size_t len)
{
	(void)ctx;
	if (addr < 0x1000)
		return -EFAULT;
	memset(to, 0x77, len);
	return (ssize_t)len;
}
static const struct registry_memory memory = { memory_read, NULL };

static const struct wire_retire good_retire = { .head = { .len = sizeof(good_retire),
							  .type = WIRE_RETIRE },
						.seq = 5,
						.handle = 3,
						.addr = 0x10000,
						.code_len = 64 };

static void test_retire(void **state)
{
	struct base_buf out = { 0 };
	struct wire_retire r;

	(void)state;
#define TRY(change, nr_bad)                                                                        \
	do {                                                                                       \
		r = good_retire;                                                                   \
		change;                                                                            \
		if (parse_one(&r, NULL, &out) != (nr_bad) ||                                       \
		    fake_count(&out, WIRE_RETIRE) != !(nr_bad))                                    \
			fail_msg(#change);                                                         \
	} while (0)
	TRY((void)0, 0);
	assert_memory_equal(fake_first(&out, WIRE_RETIRE), &good_retire, sizeof(r));
	TRY(r.handle = 0, 0);
	TRY(r.code_len = 0, 0); /* what it covered is known by its handle */
	TRY(r.handle = r.code_len = 0, 1);
	TRY(r.seq = 0, 1);
	TRY(r.facility = 1, 1);
	TRY(r.facility = UINT32_MAX, 1);
	TRY(r.addr = UINT64_MAX, 1);
	TRY(r.addr = REGISTRY_VADDR_MAX - 63, 1);
	TRY(r.code_len = UINT64_MAX, 1);
	TRY(r.head.len = 24, 1);
	/* Flags are not its own. */
	TRY(r.head.flags = 0xffff, 0);
	assert_int_equal(((const struct wire_head *)fake_first(&out, WIRE_RETIRE))->flags, 0);
#undef TRY
	base_buf_release(&out);
}

/* The next record of @b is of @type; of a WIRE_TIME, it says @time_ns. */
static void expect(const struct base_buf *b, size_t *pos, uint16_t type, uint64_t time_ns)
{
	const struct wire_head *h = wire_next(b->data, b->len, pos);

	assert_non_null(h);
	assert_int_equal(h->type, type);
	if (type == WIRE_TIME)
		assert_int_equal(((const struct wire_time *)(const void *)h)->time_ns, time_ns);
}

/* A change has its own time, and none that another one brought; what is listed has none. */
static void test_when(void **state)
{
	const uint8_t code[16] = { 0xc3 };
	struct registry_place place = { .list_at = 0, .list_seq = 100 };
	struct wire_time bad = { .head = { .len = sizeof(struct wire_head), .type = WIRE_WHEN } };
	struct base_buf out = { 0 };
	struct fake f;
	size_t pos = 0;

	(void)state;
	fake_open(&f, RING);
	fake_facility(&f, "a");
	fake_put_when(&f, 5);
	fake_put_routine(&f, 0, 0x10000, "one", code, sizeof(code));
	fake_put_routine(&f, 0, 0x20000, "two", code, sizeof(code));
	fake_put_when(&f, 7);
	fake_put_routine(&f, 0, 0x30000, "three", code, sizeof(code));
	fake_put_when(&f, 7);
	fake_put_routine(&f, 0, 0x40000, "four", code, sizeof(code));
	fake_put(&f, &bad);
	fake_slot_routine(&f, 1, 0x10000, "one");
	assert_int_equal(registry_parse(f.fd, NULL, &place, &out), 1);
	expect(&out, &pos, WIRE_FACILITY, 0);
	expect(&out, &pos, WIRE_TIME, 5);
	expect(&out, &pos, WIRE_ROUTINE, 0);
	expect(&out, &pos, WIRE_TIME, 0);
	expect(&out, &pos, WIRE_ROUTINE, 0);
	expect(&out, &pos, WIRE_TIME, 7);
	expect(&out, &pos, WIRE_ROUTINE, 0);
	expect(&out, &pos, WIRE_ROUTINE, 0);
	expect(&out, &pos, WIRE_TIME, 0);
	expect(&out, &pos, WIRE_ROUTINE, 0);
	expect(&out, &pos, WIRE_LISTED, 0);
	assert_int_equal(pos, out.len);
	fake_close(&f);
	base_buf_release(&out);
}

struct move {
	struct wire_move m;
	uint8_t code[CODE_LEN];
};

static struct move good_move(void)
{
	struct move v = { .m = { .head = { .len = sizeof(v),
					   .type = WIRE_MOVE,
					   .flags = WIRE_ROUTINE_CODE | WIRE_ROUTINE_REUSES },
				 .seq = 9,
				 .handle = 4,
				 .from = 0x10000,
				 .to = 0x20000,
				 .code_len = CODE_LEN } };

	memset(v.code, 0x55, CODE_LEN);
	return v;
}

static void test_move(void **state)
{
	struct base_buf out = { 0 };
	const struct move *got;
	struct move v;

	(void)state;
#define TRY(change, nr_bad)                                                                        \
	do {                                                                                       \
		v = good_move();                                                                   \
		change;                                                                            \
		if (parse_one(&v, &memory, &out) != (nr_bad) ||                                    \
		    fake_count(&out, WIRE_MOVE) != !(nr_bad))                                      \
			fail_msg(#change);                                                         \
		got = nr_bad ? NULL : fake_first(&out, WIRE_MOVE);                                 \
	} while (0)
	TRY((void)0, 0);
	assert_memory_equal(got, &v, sizeof(v));
	/* Without code: fetched from where it stands now. */
	TRY((v.m.head.flags = 0, v.m.head.len = sizeof(v.m)), 0);
	assert_int_equal(got->m.head.flags, WIRE_ROUTINE_CODE | WIRE_ROUTINE_FETCHED);
	assert_int_equal(got->m.head.len, sizeof(v));
	assert_int_equal(got->m.handle, 4);
	assert_int_equal(got->code[0], 0x77);
	assert_int_equal(got->code[CODE_LEN - 1], 0x77);
	/* Which is not to be read. */
	TRY((v.m.head.flags = WIRE_ROUTINE_FETCHED, v.m.head.len = sizeof(v.m), v.m.to = 16), 0);
	assert_int_equal(got->m.head.flags, 0);
	assert_int_equal(got->m.head.len, sizeof(v.m));
	/* A length that is not one of 8 leaves no rest behind. */
	TRY((v.m.head.flags = 0, v.m.code_len = 13), 0);
	assert_int_equal(got->m.head.len, sizeof(v));
	assert_int_equal(got->code[12], 0x77);
	assert_int_equal(got->code[13], 0);
	TRY(v.m.seq = 0, 1);
	TRY(v.m.handle = 0, 1);
	TRY(v.m.facility = 3, 1);
	TRY(v.m.from = REGISTRY_VADDR_MAX, 1);
	TRY(v.m.to = REGISTRY_VADDR_MAX - CODE_LEN + 1, 1);
	TRY(v.m.code_len = CODE_LEN + 1, 1);
	TRY(v.m.code_len = 0, 1);
	TRY(v.m.code_len = WIRE_CODE_MAX + 1, 1);
	TRY((v.m.head.flags = 0, v.m.code_len = UINT64_MAX), 1);
	TRY(v.m.head.len = 48, 1);
#undef TRY
	base_buf_release(&out);
}

/* ---- objects --------------------------------------------------------------------------------- */

struct object {
	struct wire_object rec;
	struct small_elf elf;
};
static_assert(sizeof(struct object) % 8 == 0, "a record");

static void good_object(struct object *o)
{
	small_elf(&o->elf);
	o->elf.header.e_machine = REGISTRY_MACHINE;
	small_elf_record(&o->elf, &o->rec);
	o->rec.head.len = sizeof(*o);
	o->rec.head.flags = WIRE_ROUTINE_CODE | WIRE_ROUTINE_REUSES;
}

/* A process that has the file at 0x500000, and its text where it runs. */
static ssize_t object_memory(void *ctx, uint64_t addr, void *to, size_t len)
{
	const struct object *o = ctx;
	const struct wire_object *rec = &o->rec;

	if (addr >= rec->elf_addr && addr + len <= rec->elf_addr + sizeof(o->elf))
		memcpy(to, (const uint8_t *)&o->elf + (addr - rec->elf_addr), len);
	else if (addr >= rec->addr && addr + len <= rec->addr + rec->code_len)
		memset(to, 0x99, len);
	else
		return -EFAULT;
	return (ssize_t)len;
}

static void check_object(const struct base_buf *out, uint16_t flags, uint16_t code)
{
	const struct wire_object *rec = fake_first(out, WIRE_OBJECT);
	struct wire_routine_view v;

	assert_int_equal(rec->head.len, sizeof(*rec));
	assert_int_equal(rec->head.flags, flags);
	assert_int_equal(rec->seq, 7);
	assert_int_equal(rec->code_len, SMALL_TEXT_LEN);
	assert_int_equal(fake_count(out, WIRE_ROUTINE), 3);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(wire_routine_parse(fake_nth(out, WIRE_ROUTINE, i), &v), 0);
		assert_int_equal(v.rec->seq, 7);
		assert_int_equal(v.rec->part, i);
		assert_int_equal(v.rec->head.flags, flags | code);
	}
}

static void test_object(void **state)
{
	const uint16_t reuses = WIRE_ROUTINE_REUSES, code = WIRE_ROUTINE_CODE,
		       fetched = WIRE_ROUTINE_FETCHED;
	struct object o;
	struct registry_memory process = { object_memory, &o };
	struct base_buf out = { 0 };

	(void)state;
	good_object(&o);
	assert_int_equal(parse_one(&o, &process, &out), 0);
	check_object(&out, reuses, code | fetched);
	/* The process is gone: what the record brought is all there is. */
	assert_int_equal(parse_one(&o, NULL, &out), 0);
	check_object(&out, reuses, code);
	o.rec.head.flags = 0;
	o.rec.head.len = sizeof(o.rec);
	assert_int_equal(parse_one(&o, NULL, &out), 0);
	assert_int_equal(fake_count(&out, WIRE_OBJECT), 1);
	assert_int_equal(fake_count(&out, WIRE_ROUTINE), 0);
	/* The file is read from the process. */
	assert_int_equal(parse_one(&o, &process, &out), 0);
	check_object(&out, 0, code | fetched);
	base_buf_release(&out);
}

static void test_object_listed(void **state)
{
	struct object o;
	struct registry_memory process = { object_memory, &o };
	struct registry_place place = { 0 };
	struct base_buf out = { 0 };
	struct fake f;

	(void)state;
	good_object(&o);
	o.rec.head.flags = 0;
	o.rec.head.len = sizeof(o.rec);
	fake_open(&f, RING);
	fake_facility(&f, "a");
	fake_slot(&f, &o.rec);
	f.h->seq = o.rec.seq;
	assert_int_equal(registry_parse(f.fd, &process, &place, &out), 0);
	check_object(&out, WIRE_ROUTINE_LISTED, WIRE_ROUTINE_CODE | WIRE_ROUTINE_FETCHED);
	base_buf_release(&out);
	fake_close(&f);
}

static void test_object_lies(void **state)
{
	struct base_buf out = { 0 };
	struct object o;

	(void)state;
#define TRY(change, nr_bad, nr_objects)                                                            \
	do {                                                                                       \
		good_object(&o);                                                                   \
		change;                                                                            \
		if (parse_one(&o, &memory, &out) != (nr_bad) ||                                    \
		    fake_count(&out, WIRE_OBJECT) != (nr_objects) ||                               \
		    ((nr_bad) && fake_count(&out, WIRE_ROUTINE)))                                  \
			fail_msg(#change);                                                         \
	} while (0)
	TRY((void)0, 0, 1);
	TRY(o.rec.seq = 0, 1, 0);
	TRY(o.rec.facility = 1, 1, 0);
	TRY(o.rec.elf_len += 1, 1, 0);
	TRY(o.rec.elf_len = 0, 1, 0);
	TRY(o.rec.elf_addr = REGISTRY_VADDR_MAX, 1, 0);
	TRY(o.rec.addr = REGISTRY_VADDR_MAX, 1, 0);
	TRY(o.rec.code_len = 0, 1, 0);
	TRY(o.rec.code_len = UINT64_MAX, 1, 0);
	/* That it came is known, so that seq has no gap; it has no routines. */
	TRY(o.rec.elf_len -= 8, 1, 1);
	TRY((o.rec.head.flags = 0, o.rec.elf_len = WIRE_RECORD_MAX + 1), 1, 1);
	TRY(o.elf.header.e_shoff = 1, 1, 1);
	TRY(o.elf.header.e_machine = 1, 1, 1);
	TRY(o.rec.head.flags = 0, 1, 1); /* what is read there is no ELF */
#undef TRY
	base_buf_release(&out);
}

/* ---- code of who may be gone ----------------------------------------------------------------- */

/* Of one record in a ring, when nothing, or the word @at, has moved to @to: how code came of it. */
static uint16_t code_of(const void *record, const struct registry_memory *m, uint16_t type, int at,
			uint32_t to)
{
	struct base_buf out = { 0 };
	uint16_t flags;
	struct fake f;

	fake_open(&f, RING);
	fake_facility(&f, "a");
	fake_put(&f, record);
	fake_words(&f)[at < 0 ? 0 : at] = at < 0 ? 0 : to;
	assert_int_equal(parse(&f, m, &out), 0);
	flags = ((const struct wire_head *)fake_first(&out, type))->flags;
	base_buf_release(&out);
	fake_close(&f);
	return flags & (WIRE_ROUTINE_CODE | WIRE_ROUTINE_FETCHED);
}

/* What is read now is the routine's own only if nobody ended there since: the words tell. */
static void test_ended_since(void **state)
{
	enum { FETCHED = WIRE_ROUTINE_CODE | WIRE_ROUTINE_FETCHED };
	struct wire_routine *r = fake_routine(&(struct fake_routine){
		.seq = 0xffffffff, .addr = 0x2ff8, .name = "two blocks", .code_len = 16 });
	struct wire_move m = { .head = { .len = sizeof(m), .type = WIRE_MOVE },
			       .seq = 9,
			       .handle = 4,
			       .from = 0x5000,
			       .to = 0x12000, /* the word of 0x2000 */
			       .code_len = 16 };
	struct object o;
	struct registry_memory process = { object_memory, &o };

	(void)state;
	assert_int_equal(code_of(r, &memory, WIRE_ROUTINE, -1, 0), FETCHED);
	assert_int_equal(code_of(r, &memory, WIRE_ROUTINE, 2, 0xffffffff), FETCHED);
	assert_int_equal(code_of(r, &memory, WIRE_ROUTINE, 3, 0xfffffffe), FETCHED);
	assert_int_equal(code_of(r, &memory, WIRE_ROUTINE, 4, 1), FETCHED);
	assert_int_equal(code_of(r, &memory, WIRE_ROUTINE, 2, 1), 0); /* the low half went round */
	assert_int_equal(code_of(r, &memory, WIRE_ROUTINE, 3, 1), 0);
	/* Longer than all words reach. */
	r->code_len = 40 << WIRE_BLOCK_SHIFT;
	assert_int_equal(code_of(r, &memory, WIRE_ROUTINE, 1, 1), 0);
	assert_int_equal(code_of(&m, &memory, WIRE_MOVE, 2, 9), FETCHED);
	assert_int_equal(code_of(&m, &memory, WIRE_MOVE, 2, 10), 0);
	good_object(&o);
	assert_int_equal(code_of(&o, &process, WIRE_ROUTINE, -1, 0), FETCHED);
	/* The file itself is left. */
	assert_int_equal(
		code_of(&o, &process, WIRE_ROUTINE, (int)(SMALL_VADDR >> WIRE_BLOCK_SHIFT) % 16, 8),
		WIRE_ROUTINE_CODE);
	free(r);
}

/* Frames stay behind a routine whose code is fetched, and with one whose code came along. */
static void test_frames(void **state)
{
	const struct wire_frame frame = { .code_off = 8, .cfa_off = 96, .fp_off = -16 };
	struct wire_routine *r = fake_routine(&(struct fake_routine){
		.seq = 3, .addr = 0x2000, .name = "a trace", .code_len = 16 });
	uint64_t bytes[32];
	struct wire_routine *framed = (void *)bytes;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct base_buf out = { 0 };
		struct wire_routine_view v;
		struct fake f;

		assert_true(r->head.len + sizeof(frame) <= sizeof(bytes));
		memcpy(bytes, r, r->head.len);
		memcpy((uint8_t *)bytes + r->head.len, &frame, sizeof(frame));
		framed->head.len += (uint32_t)sizeof(frame);
		framed->head.flags |= WIRE_ROUTINE_FRAMES;
		fake_open(&f, RING);
		fake_facility(&f, "a");
		fake_put(&f, framed);
		assert_int_equal(parse(&f, i ? &memory : NULL, &out), 0);
		framed = (void *)fake_first(&out, WIRE_ROUTINE);
		assert_int_equal(wire_routine_parse(&framed->head, &v), 0);
		assert_true(!v.code == !i);
		assert_int_equal(v.nr_frames, 1);
		assert_memory_equal(v.frames, &frame, sizeof(frame));
		framed = (void *)bytes;
		base_buf_release(&out);
		fake_close(&f);
	}
	free(r);
}

/* Where there are no words, any change may have been that. */
static void test_ended_without_words(void **state)
{
	struct base_buf out = { 0 };
	struct wire_move v = good_move().m;
	struct fake f;

	(void)state;
	v.head.flags = 0;
	v.head.len = sizeof(v);
	fake_open(&f, RING);
	fake_facility(&f, "a");
	fake_put(&f, &v);
	f.h->seq = v.seq;
	assert_int_equal(parse(&f, &memory, &out), 0);
	assert_int_equal(((const struct wire_head *)fake_first(&out, WIRE_MOVE))->flags,
			 WIRE_ROUTINE_CODE | WIRE_ROUTINE_FETCHED);
	f.h->seq = v.seq + 1;
	assert_int_equal(parse(&f, &memory, &out), 0);
	assert_int_equal(((const struct wire_head *)fake_first(&out, WIRE_MOVE))->flags, 0);
	base_buf_release(&out);
	fake_close(&f);
}

/* ---- order ----------------------------------------------------------------------------------- */

static void put_seq(struct fake *f, uint64_t seq)
{
	struct wire_routine *r = fake_routine(&(struct fake_routine){
		.seq = seq, .addr = 0x1000 * seq, .name = "r", .code_len = 8 });

	fake_put(f, r);
	free(r);
}

static void test_seq_backward(void **state)
{
	struct registry_place place = { .list_at = REGISTRY_NO_LIST };
	struct wire_retire retire = good_retire;
	struct base_buf out = { 0 };
	struct fake f;

	(void)state;
	fake_open(&f, RING);
	fake_facility(&f, "a");
	put_seq(&f, 5);
	put_seq(&f, 4);
	put_seq(&f, 5);
	fake_put(&f, &retire); /* 5 too */
	put_seq(&f, 8);
	retire.seq = 9;
	fake_put(&f, &retire);
	assert_int_equal(registry_parse(f.fd, NULL, &place, &out), 3);
	assert_int_equal(fake_count(&out, WIRE_ROUTINE), 2);
	assert_int_equal(fake_count(&out, WIRE_RETIRE), 1);
	assert_int_equal(place.seq, 9);
	/* Nor from one reading to the next. */
	put_seq(&f, 9);
	put_seq(&f, 10);
	base_buf_clear(&out);
	assert_int_equal(registry_parse(f.fd, NULL, &place, &out), 1);
	assert_int_equal(fake_count(&out, WIRE_ROUTINE), 1);
	assert_int_equal(place.seq, 10);
	base_buf_release(&out);
	fake_close(&f);
}

/* An object that is no ELF file was told nevertheless. */
static void test_seq_behind_object(void **state)
{
	struct registry_place place = { .list_at = REGISTRY_NO_LIST };
	struct base_buf out = { 0 };
	struct object o;
	struct fake f;

	(void)state;
	fake_open(&f, RING);
	fake_facility(&f, "a");
	good_object(&o);
	o.elf.header.e_shoff = 1;
	fake_put(&f, &o);
	put_seq(&f, 6);
	put_seq(&f, 7);
	put_seq(&f, 8);
	assert_int_equal(registry_parse(f.fd, NULL, &place, &out), 3);
	assert_int_equal(fake_count(&out, WIRE_OBJECT), 1);
	assert_int_equal(fake_count(&out, WIRE_ROUTINE), 1);
	assert_int_equal(place.seq, 8);
	base_buf_release(&out);
	fake_close(&f);
}

/* One that is malformed does not count: those behind it are good. */
static void test_bad_seq_forgotten(void **state)
{
	struct registry_place place = { .list_at = REGISTRY_NO_LIST };
	struct wire_retire retire = good_retire;
	struct base_buf out = { 0 };
	struct fake f;

	(void)state;
	fake_open(&f, RING);
	fake_facility(&f, "a");
	retire.seq = UINT64_MAX;
	retire.facility = 9;
	fake_put(&f, &retire);
	put_seq(&f, 1);
	assert_int_equal(registry_parse(f.fd, NULL, &place, &out), 1);
	assert_int_equal(fake_count(&out, WIRE_ROUTINE), 1);
	base_buf_release(&out);
	fake_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_retire),
		cmocka_unit_test(test_when),
		cmocka_unit_test(test_move),
		cmocka_unit_test(test_object),
		cmocka_unit_test(test_object_listed),
		cmocka_unit_test(test_object_lies),
		cmocka_unit_test(test_ended_since),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_ended_without_words),
		cmocka_unit_test(test_seq_backward),
		cmocka_unit_test(test_bad_seq_forgotten),
		cmocka_unit_test(test_seq_behind_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
