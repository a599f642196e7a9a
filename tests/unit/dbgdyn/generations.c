/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers of changes, the words of addresses, and which routine ends when. */
#include "fake.h"
#include "dbgdyn_internal.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK 4096u

static struct fake fake;
static dbgdyn_context context;
#define NAMED(id_) ((dbgdyn_handle){ id_ })
static struct dbgdyn_state *s;
static _Alignas(2u << 20) uint8_t code[64 * BLOCK];
static _Alignas(8) uint8_t stream[1 << 20];
static size_t stream_len, stream_pos;

static int open_all(void)
{
	for (size_t i = 0; i < sizeof(code); i++)
		code[i] = (uint8_t)(i * 7 + (i >> 8));
	fake_open(&fake, FAKE_SOCKET | FAKE_QUEUE);
	CHECK(dbgdyn_begin("jit", 3, NULL, &context) == DBGDYN_OK && fake_take(&fake));
	fake_attach(&fake, 1);
	fake_bells(&fake);
	s = dbgdyn_state_get(false);
	return 0;
}

/* As the sampler finds it, from what the header says. */
static uint32_t word(const void *p)
{
	const uint32_t *words = (const void *)(uintptr_t)s->reg->words_addr;

	return words[((uintptr_t)p >> 12) % s->reg->nr_words];
}

static uint64_t seq_now(void)
{
	return *(const uint64_t *)(uintptr_t)s->reg->seq_addr;
}

static uint64_t put(const void *at, size_t len)
{
	struct dbgdyn_routine r = fake_routine("f", at, len);
	dbgdyn_handle handle = { 0 };

	return dbgdyn_register(context, &r, &handle) == DBGDYN_OK ? handle.id : 0;
}

/* The next record of the ring but padding; NULL: none. */
static const void *next(uint16_t type)
{
	const struct wire_head *h;

	if (stream_pos == stream_len) {
		stream_len = fake_read(&fake, stream, sizeof(stream));
		stream_pos = 0;
	}
	h = fake_next(stream, stream_len, &stream_pos);
	return h && h->type == type && wire_check(h) == 0 ? h : NULL;
}

static int virgin_addresses_move_nothing(void)
{
	const struct wire_routine *r;

	CHECK(open_all() == 0 && s->reg->nr_words == WIRE_NR_WORDS && seq_now() == 0);
	for (size_t i = 0; i < 32; i++) {
		CHECK(put(code + i * 128, 128) && seq_now() == i + 1);
		r = next(WIRE_ROUTINE);
		CHECK(r && r->seq == i + 1 && !(r->head.flags & WIRE_ROUTINE_REUSES));
	}
	CHECK(put(code + BLOCK - 16, BLOCK) && next(WIRE_ROUTINE)); /* over the last of them */
	CHECK(word(code) == 33 && word(code + BLOCK) == 33 && word(code + 2 * BLOCK) == 0);
	CHECK(put(code + 4 * BLOCK, 3 * BLOCK));
	for (int i = 2; i < 8; i++)
		CHECK(word(code + i * BLOCK) == 0);
	fake_close(&fake);
	return 0;
}

static int an_overlap_ends_what_was_there(void)
{
	uint64_t long_one, before, behind;
	const struct wire_routine *r;

	CHECK(open_all() == 0);
	long_one = put(code + 16, 5 * BLOCK);
	before = put(code, 16);
	behind = put(code + 5 * BLOCK + 16, 16);
	CHECK(long_one && before && behind && word(code) == 0);
	CHECK(put(code + 2 * BLOCK, 16) && seq_now() == 4);
	/* All of the long one is gone, so all of its words moved. */
	for (int i = 0; i < 6; i++)
		CHECK(word(code + i * BLOCK) == 4);
	CHECK(word(code + 6 * BLOCK) == 0);
	for (int i = 0; i < 4; i++)
		CHECK((r = next(WIRE_ROUTINE)));
	CHECK(r->seq == 4 && r->head.flags == (WIRE_ROUTINE_CODE | WIRE_ROUTINE_REUSES));
	CHECK(dbgdyn_retire(context, NAMED(long_one)) == DBGDYN_EINVAL && seq_now() == 4);
	CHECK(dbgdyn_retire(context, NAMED(before)) == DBGDYN_OK);
	CHECK(dbgdyn_retire(context, NAMED(behind)) == DBGDYN_OK && seq_now() == 6);
	CHECK(word(code) == 5 && word(code + 5 * BLOCK) == 6 && word(code + BLOCK) == 4);
	/* Of the long one's addresses, some more are used again: a gap that nobody lived in. */
	CHECK(put(code + 3 * BLOCK, 8) && word(code + 3 * BLOCK) == 7);
	fake_close(&fake);
	return 0;
}

static int retired_code_moves_its_words(void)
{
	const struct wire_retire *r;
	uint64_t first, second;
	dbgdyn_context other;

	CHECK(open_all() == 0 && dbgdyn_begin("other", 5, NULL, &other) == DBGDYN_OK);
	first = put(code, 2 * BLOCK);
	CHECK(dbgdyn_retire(other, NAMED(first)) == DBGDYN_EINVAL);
	CHECK(dbgdyn_retire(context, NAMED(first + (1 << 20))) == DBGDYN_EINVAL);
	CHECK(dbgdyn_retire(context, NAMED(first + 1)) == DBGDYN_EINVAL && seq_now() == 1);
	CHECK(dbgdyn_retire(context, NAMED(0)) == DBGDYN_EINVAL);
	CHECK(dbgdyn_retire((dbgdyn_context){ 0 }, NAMED(first)) == DBGDYN_EREFUSED);
	CHECK(dbgdyn_retire(context, NAMED(first)) == DBGDYN_OK && next(WIRE_ROUTINE));
	r = next(WIRE_RETIRE);
	CHECK(r && r->seq == 2 && r->handle == 1 && r->addr == (uintptr_t)code);
	CHECK(r->code_len == 2 * BLOCK && r->facility == 0);
	CHECK(word(code) == 2 && word(code + BLOCK) == 2 && word(code + 2 * BLOCK) == 0);
	CHECK(dbgdyn_retire(context, NAMED(first)) == DBGDYN_EINVAL && seq_now() == 2);
	/* Its node and slot serve the next one; the old handle stays dead. */
	second = put(code, 2 * BLOCK);
	CHECK(second && second != first && word(code) == 3);
	CHECK(dbgdyn_retire(context, NAMED(first)) == DBGDYN_EINVAL);
	CHECK(dbgdyn_retire(context, NAMED(second)) == DBGDYN_OK && seq_now() == 4);
	fake_close(&fake);
	return 0;
}

static int code_is_retired_by_address(void)
{
	struct dbgdyn_routine theirs = fake_routine("theirs", code + 512, 16);
	const struct wire_retire *r;
	uint64_t h[4];
	dbgdyn_context other;
	dbgdyn_handle their;

	CHECK(open_all() == 0 && dbgdyn_begin("other", 5, NULL, &other) == DBGDYN_OK);
	for (int i = 0; i < 4; i++)
		CHECK((h[i] = put(code + i * BLOCK, 256)) && next(WIRE_ROUTINE));
	CHECK(dbgdyn_register(other, &theirs, &their) == DBGDYN_OK && next(WIRE_ROUTINE));
	CHECK(dbgdyn_retire_code(context, code + 1, BLOCK - 1) == DBGDYN_OK && seq_now() == 5);
	CHECK(dbgdyn_retire_code(context, code + 1, 2 * BLOCK) == DBGDYN_OK && seq_now() == 6);
	r = next(WIRE_RETIRE);
	CHECK(r && r->handle == 0 && r->addr == (uintptr_t)code + 1 && r->code_len == 2 * BLOCK);
	CHECK(word(code) == 0 && word(code + BLOCK) == 6 && word(code + 2 * BLOCK) == 6);
	CHECK(dbgdyn_retire(context, NAMED(h[1])) == DBGDYN_EINVAL);
	CHECK(dbgdyn_retire(context, NAMED(h[2])) == DBGDYN_EINVAL);
	CHECK(dbgdyn_retire(context, NAMED(h[0])) == DBGDYN_OK &&
	      dbgdyn_retire(context, NAMED(h[3])) == 0);
	CHECK(dbgdyn_retire(other, their) == DBGDYN_OK);
	CHECK(dbgdyn_retire_code(context, NULL, 1) == DBGDYN_EINVAL);
	CHECK(dbgdyn_retire_code(context, code, 0) == DBGDYN_EINVAL);
	CHECK(dbgdyn_retire_code(context, code, SIZE_MAX) == DBGDYN_EINVAL);
	CHECK(dbgdyn_retire_code((dbgdyn_context){ 0 }, code, 1) == DBGDYN_EREFUSED);
	/* More than all chains of a level, and all there is. */
	CHECK(put(code + 8, 1) && put(code + 20 * BLOCK, 1));
	CHECK(dbgdyn_retire_code(context, (void *)4096, (size_t)1 << 47) == DBGDYN_OK);
	CHECK(dbgdyn_retire_code(context, (void *)4096, (size_t)1 << 47) == DBGDYN_OK);
	CHECK(seq_now() == 12);
	fake_close(&fake);
	return 0;
}

/* Whose code it is, in the ring and in what is listed for a daemon that comes later. */
static int each_facility_has_its_own(void)
{
	struct dbgdyn_routine theirs = fake_routine("theirs", code, 16);
	const struct wire_routine *r, *listed;
	const struct wire_retire *gone;
	const struct wire_move *m;
	dbgdyn_context other;
	dbgdyn_handle h;

	CHECK(open_all() == 0 && dbgdyn_begin("other", 5, NULL, &other) == DBGDYN_OK);
	CHECK(dbgdyn_register(other, &theirs, &h) == DBGDYN_OK);
	CHECK((r = next(WIRE_ROUTINE)) && r->facility == 1);
	listed = (const void *)(s->heap + sizeof(struct wire_slot));
	CHECK(listed->facility == 1 && listed->seq == 1);
	CHECK(dbgdyn_move(other, h, code + 64) == DBGDYN_OK);
	CHECK((m = next(WIRE_MOVE)) && m->facility == 1 && listed->facility == 1);
	CHECK(dbgdyn_retire(other, h) == DBGDYN_OK);
	CHECK((gone = next(WIRE_RETIRE)) && gone->facility == 1);
	fake_close(&fake);
	return 0;
}

static int a_routine_moves(void)
{
	const struct wire_routine *listed;
	const struct wire_move *m;
	uint64_t h, away;

	CHECK(open_all() == 0);
	h = put(code, 100);
	CHECK(h && dbgdyn_move(context, NAMED(h), code + BLOCK) == DBGDYN_OK && next(WIRE_ROUTINE));
	m = next(WIRE_MOVE);
	CHECK(m && m->seq == 2 && m->handle == 1 && m->head.flags == WIRE_ROUTINE_CODE);
	CHECK(m->from == (uintptr_t)code && m->to == (uintptr_t)code + BLOCK && m->code_len == 100);
	CHECK(!memcmp(m + 1, code + BLOCK, 100) && word(code) == 2 && word(code + BLOCK) == 0);
	listed = (const void *)(s->heap + sizeof(struct wire_slot));
	CHECK(listed->addr == (uintptr_t)code + BLOCK && listed->seq == 2 && !listed->head.flags);
	/* The handle goes on; over another one, that ends; over itself. */
	away = put(code + 2 * BLOCK, 100);
	CHECK(away && next(WIRE_ROUTINE));
	CHECK(dbgdyn_move(context, NAMED(h), code + 2 * BLOCK + 50) == DBGDYN_OK);
	m = next(WIRE_MOVE);
	CHECK(m && m->handle == 2 && m->head.flags & WIRE_ROUTINE_REUSES);
	CHECK(dbgdyn_retire(context, NAMED(away)) == DBGDYN_EINVAL && word(code + 2 * BLOCK) == 4);
	CHECK(listed->seq == 4 && listed->head.flags == WIRE_ROUTINE_REUSES);
	CHECK(dbgdyn_move(context, NAMED(h), code + 2 * BLOCK + 60) == DBGDYN_OK);
	CHECK(word(code + 2 * BLOCK) == 5 && word(code + BLOCK) == 4);
	CHECK(dbgdyn_move(context, NAMED(h), NULL) == DBGDYN_EINVAL);
	CHECK(dbgdyn_move(context, NAMED(h), (void *)(UINTPTR_MAX - 50)) == DBGDYN_EINVAL);
	CHECK(dbgdyn_move(context, NAMED(away), code) == DBGDYN_EINVAL);
	CHECK(dbgdyn_move((dbgdyn_context){ 0 }, NAMED(h), code) == DBGDYN_EREFUSED &&
	      seq_now() == 5);
	CHECK(dbgdyn_retire(context, NAMED(h)) == DBGDYN_OK && word(code + 2 * BLOCK) == 6);
	CHECK(dbgdyn_move(context, NAMED(h), code) == DBGDYN_EINVAL);
	fake_close(&fake);
	return 0;
}

/* Samples of who lived there before are in the tables yet. */
static int a_move_to_where_code_was_moves_words(void)
{
	const struct wire_move *m;
	uint64_t h, gone;

	CHECK(open_all() == 0);
	gone = put(code, 100);
	h = put(code + BLOCK, 100);
	CHECK(gone && h && dbgdyn_retire(context, NAMED(gone)) == DBGDYN_OK && word(code) == 3);
	CHECK(dbgdyn_move(context, NAMED(h), code + 50) == DBGDYN_OK && word(code) == 4);
	CHECK(next(WIRE_ROUTINE) && next(WIRE_ROUTINE) && next(WIRE_RETIRE));
	CHECK((m = next(WIRE_MOVE)) && m->head.flags & WIRE_ROUTINE_REUSES);
	fake_close(&fake);
	return 0;
}

/* Where its bytes find no room its place is told all the same; and its list tells where not even
 * that. */
static int a_move_needs_no_room_for_bytes(void)
{
	const struct wire_move *m;
	uint64_t h;

	CHECK(open_all() == 0);
	h = put(code, 100);
	s->ring_len =
		s->head + sizeof(*m) + sizeof(struct wire_time); /* as if all else were full */
	CHECK(h && dbgdyn_move(context, NAMED(h), code + BLOCK) == DBGDYN_OK && next(WIRE_ROUTINE));
	m = next(WIRE_MOVE);
	CHECK(m && m->seq == 2 && m->head.len == sizeof(*m) && !m->head.flags);
	CHECK(m->to == (uintptr_t)code + BLOCK && m->code_len == 100);
	s->ring_len = s->head;
	s->reg->tail = 0;
	CHECK(dbgdyn_move(context, NAMED(h), code + 2 * BLOCK) == DBGDYN_OK &&
	      s->reg->head == s->head);
	CHECK(seq_now() == 3 && s->reg->nr_dropped == 0 && word(code + BLOCK) == 3);
	CHECK(((const struct wire_routine *)(void *)(s->heap + sizeof(struct wire_slot)))->addr ==
	      (uintptr_t)code + 2 * BLOCK);
	fake_close(&fake);
	return 0;
}

/* The sampler must hear of addresses that nobody told before, whatever brings code there. */
static int a_move_to_a_new_region_rings(void)
{
	uint8_t *far = mmap(NULL, BLOCK, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t h;

	CHECK(open_all() == 0 && far != MAP_FAILED);
	h = put(code, 100);
	CHECK(h && fake_bells(&fake) == 1);
	CHECK(dbgdyn_move(context, NAMED(h), code + BLOCK) == DBGDYN_OK && fake_bells(&fake) == 0);
	CHECK(dbgdyn_move(context, NAMED(h), far) == DBGDYN_OK && fake_bells(&fake) == 1);
	CHECK(s->nr_ranges == 2 && s->ranges[1].base <= (uintptr_t)far);
	CHECK(s->ranges[1].base + s->ranges[1].len >= (uintptr_t)far + 100);
	fake_close(&fake);
	return 0;
}

/* A word of 0 means that nothing happened, so no change has a number with such a half. */
static int numbers_pass_32_bits(void)
{
	const struct wire_routine *r;

	CHECK(open_all() == 0);
	s->seq = UINT32_MAX - 1;
	CHECK(put(code, 16) && put(code, 16) && seq_now() == 0x100000001ull && word(code) == 1);
	CHECK(next(WIRE_ROUTINE) && (r = next(WIRE_ROUTINE)) && r->seq == seq_now());
	fake_close(&fake);
	return 0;
}

/* Addresses that share a word, and the bits of what was used: the word moves once too often. */
static int far_addresses_share_words(void)
{
	const uint8_t *far = (void *)((uintptr_t)code + WIRE_NR_WORDS * (uint64_t)BLOCK);
	const uint8_t *behind = (void *)((uintptr_t)code + (16u << 20));

	CHECK(open_all() == 0);
	fake_attach(&fake, 0);
	s->handed = 0; /* so that nobody reads code where none is */
	CHECK(put(code, 16) && word(code) == 0 && word(far) == 0);
	CHECK(put(far, 16) && word(code) == 2 && word(far) == 2);
	CHECK(put(far + 16, 16) && word(far) == 2);
	/* Longer than the table: each word moves, once. */
	CHECK(put(code + BLOCK, 16u << 20) && put(code + BLOCK, 16u << 20) && word(code) == 2);
	CHECK(word(code + BLOCK) == 5 && word(behind) == 5);
	fake_close(&fake);
	return 0;
}

static const struct wire_range *arena(uint32_t i)
{
	return &s->ranges[i];
}

/* Each region is told once, before the call returns; what grows on is told ahead. */
static int regions_are_told_once(void)
{
	const uint64_t two = 2u << 20;
	uint8_t *base = (uint8_t *)((uintptr_t)code + (1ull << 32));
	struct wire_registry reg;

	CHECK(open_all() == 0);
	CHECK(put(code, 16) && put(code + 64, 16) && s->nr_ranges == 1 && fake_bells(&fake) == 1);
	CHECK(arena(0)->kind == WIRE_RANGE_ARENA && arena(0)->base == (uintptr_t)code);
	CHECK(arena(0)->len == two && !arena(0)->flags && arena(0)->facility == 0);
	fake_attach(&fake, 0);
	s->handed = 0;
	/* On and on: 2, 4, 8, … MiB more. */
	for (uint64_t off = two - 8; off < 64 * two; off += two / 2)
		CHECK(put(code + off, 16));
	CHECK(s->nr_ranges == 7 && arena(1)->base == (uintptr_t)code + two);
	CHECK(arena(1)->len == 2 * two && arena(6)->len == 32 * two);
	/* Downwards; and one that spans the rest up to the next. */
	CHECK(put(base, 16) && put(base - 16, 16) && s->nr_ranges == 9);
	CHECK(arena(8)->base == (uintptr_t)base - 2 * two && arena(8)->len == 2 * two);
	CHECK(put(base - 4 * two, 16) && s->nr_ranges == 10 && arena(9)->len == two);
	CHECK(put(base - 3 * two - 8, two + 16) && s->nr_ranges == 11);
	CHECK(arena(10)->base == (uintptr_t)base - 3 * two && arena(10)->len == two);
	CHECK(fake_bells(&fake) == 0); /* nobody has the registry */
	fake_header(&fake, &reg);
	CHECK(reg.nr_ranges == s->nr_ranges);
	fake_close(&fake);
	return 0;
}

/* What grows on ends where the next region begins, on either side. */
static int regions_do_not_overlap(void)
{
	const uint64_t two = 2u << 20;
	uint8_t *base = (uint8_t *)((uintptr_t)code + (1ull << 32));

	CHECK(open_all() == 0);
	fake_attach(&fake, 0);
	s->handed = 0;
	CHECK(put(base, 16) && put(base - 4 * two, 16) && put(base - 16, 16));
	CHECK(s->nr_ranges == 3 && arena(2)->base == (uintptr_t)base - 2 * two);
	CHECK(put(base - 2 * two - 16, 16) && s->nr_ranges == 4);
	CHECK(arena(3)->base == (uintptr_t)base - 3 * two && arena(3)->len == two);
	CHECK(put(base + 2 * two, 16) && put(base + two, 16) && s->nr_ranges == 6);
	CHECK(arena(5)->base == (uintptr_t)base + two && arena(5)->len == two);
	/* Downwards by more than there is room for: to the next region, or to address 0. */
	base += 1ull << 32;
	CHECK(put(base, 16) && put(base - 5 * two, 16) && put(base - 16, 16));
	CHECK(put(base - 2 * two - 16, 16) && s->nr_ranges == 10);
	CHECK(arena(9)->base == (uintptr_t)base - 4 * two && arena(9)->len == 2 * two);
	CHECK(put((void *)(5 * two), 16) && put((void *)(5 * two - 16), 16));
	CHECK(put((void *)(3 * two - 16), 16) && s->nr_ranges == 13);
	CHECK(arena(12)->base == 0 && arena(12)->len == 3 * two);
	fake_close(&fake);
	return 0;
}

/* Longer than all chains together: each is looked at, the last one too. */
static int long_ranges_are_retired(void)
{
	const uint64_t first = (uintptr_t)code / 256 - 1; /* of 256 bytes, that is looked at */
	uint64_t chains;

	CHECK(open_all() == 0);
	fake_attach(&fake, 0);
	s->handed = 0;
	chains = s->nr_live_chains[0];
	CHECK(put((void *)((first + chains - 1) * 256), 16) && s->nr_live[0] == 1);
	CHECK(dbgdyn_retire_code(context, code, (chains + 2) * 256) == DBGDYN_OK);
	CHECK(s->nr_live[0] == 0);
	fake_close(&fake);
	return 0;
}

/* Bounds: the arenas of the library, and the slots of the registry. */
static int regions_have_a_bound(void)
{
	CHECK(open_all() == 0);
	fake_attach(&fake, 0);
	s->handed = 0;
	for (uintptr_t i = 1; i < DBGDYN_NR_ARENAS + 10; i++)
		CHECK(put((void *)(i * (64u << 20)), 16));
	CHECK(s->nr_ranges == DBGDYN_NR_ARENAS && s->nr_arenas == DBGDYN_NR_ARENAS);
	for (uint32_t i = 1; i < s->nr_arenas; i++)
		CHECK(s->arenas[i - 1].end <= s->arenas[i].base);
	CHECK(put((void *)0xfffffffffffff000, 16));
	fake_close(&fake);
	return 0;
}

static int end_of_address_space(void)
{
	CHECK(open_all() == 0);
	fake_attach(&fake, 0);
	s->handed = 0;
	CHECK(put((void *)(UINTPTR_MAX - 4096), 4096) && put((void *)1, 4096));
	CHECK(put((void *)(UINTPTR_MAX - 16), 16) && s->nr_arenas == 1);
	fake_close(&fake);
	return 0;
}

static int child(void)
{
	dbgdyn_context own;

	CHECK(dbgdyn_begin("child", 5, NULL, &own) == DBGDYN_OK);
	s = dbgdyn_state_get(false);
	context = own;
	CHECK(word(code) == 0 && put(code, 16) && word(code) == 1);
	CHECK(put(code + 8 * BLOCK, 16) && word(code + 8 * BLOCK) == 2);
	/* Nor does it know where what found no room in its heap may be. */
	s->heap_len = s->heap_end;
	CHECK(put(code + 16 * BLOCK, 300) && s->nr_unlisted == 1);
	CHECK(dbgdyn_retire_code(context, code + 16 * BLOCK, 16) == DBGDYN_OK);
	CHECK(seq_now() == 4 && word(code + 16 * BLOCK) == 4);
	return 0;
}

/* What the parent told may live anywhere in a child: its first words must move. */
static int a_child_begins_with_all_used(void)
{
	int status = 0;
	pid_t pid;

	CHECK(open_all() == 0 && put(code, 16) && word(code) == 0);
	pid = fork();
	if (pid == 0)
		_exit(child());
	CHECK(waitpid(pid, &status, 0) == pid && status == 0 && word(code) == 0);
	fake_close(&fake);
	return 0;
}

/* Nobody is told and the heap is full: the old routine ends all the same. */
static int what_is_dropped_ends_what_it_replaces(void)
{
	struct dbgdyn_routine r = fake_routine("f", code, 16);
	dbgdyn_handle h = { 1 };

	CHECK(open_all() == 0 && put(code, 16));
	s->heap_len = s->heap_end; /* as if it were full, and the ring */
	s->ring_len = s->head;
	r.name = (struct dbgdyn_string){ (const char *)code, 300 };
	CHECK(dbgdyn_register(context, &r, &h) == DBGDYN_EFULL && h.id == 0);
	CHECK(word(code) == 2 && seq_now() == 2 && s->reg->nr_dropped == 1);
	CHECK(s->reg->nr_unlisted == 1);
	CHECK(((struct wire_head *)(void *)(s->heap + 8))->type == WIRE_PAD);
	fake_close(&fake);
	return 0;
}

/* What found no room in the heap is ended wherever something ever was, and nowhere else. */
static int what_is_not_listed_ends_by_address(void)
{
	CHECK(open_all() == 0 && put(code, 16));
	s->heap_len = s->heap_end;
	CHECK(put(code + 5 * BLOCK + 3000, 16) && put(code + 7 * BLOCK, 16));
	CHECK(s->nr_unlisted == 2 && word(code + 5 * BLOCK) == 0);
	CHECK(dbgdyn_retire_code(context, code + 2 * BLOCK, 3 * BLOCK) == DBGDYN_OK);
	CHECK(seq_now() == 3);
	CHECK(dbgdyn_retire_code(context, code + 2 * BLOCK, 6 * BLOCK) == DBGDYN_OK);
	CHECK(seq_now() == 4 && s->reg->nr_dropped == 0);
	for (int i = 0; i < 10; i++)
		CHECK(word(code + i * BLOCK) == (i == 5 || i == 7 ? 4 : 0));
	/* Nobody could be told either: counted, and the words move all the same. */
	s->ring_len = s->head;
	CHECK(dbgdyn_retire_code(context, code + 7 * BLOCK, 16) == DBGDYN_OK);
	CHECK(word(code + 7 * BLOCK) == 5 && s->reg->nr_dropped == 1);
	fake_close(&fake);
	return 0;
}

FAKE_TEST(virgin_addresses_move_nothing)
FAKE_TEST(an_overlap_ends_what_was_there)
FAKE_TEST(retired_code_moves_its_words)
FAKE_TEST(code_is_retired_by_address)
FAKE_TEST(each_facility_has_its_own)
FAKE_TEST(a_routine_moves)
FAKE_TEST(a_move_to_where_code_was_moves_words)
FAKE_TEST(a_move_needs_no_room_for_bytes)
FAKE_TEST(a_move_to_a_new_region_rings)
FAKE_TEST(numbers_pass_32_bits)
FAKE_TEST(far_addresses_share_words)
FAKE_TEST(regions_are_told_once)
FAKE_TEST(regions_do_not_overlap)
FAKE_TEST(long_ranges_are_retired)
FAKE_TEST(regions_have_a_bound)
FAKE_TEST(end_of_address_space)
FAKE_TEST(a_child_begins_with_all_used)
FAKE_TEST(what_is_dropped_ends_what_it_replaces)
FAKE_TEST(what_is_not_listed_ends_by_address)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_virgin_addresses_move_nothing),
		cmocka_unit_test(test_an_overlap_ends_what_was_there),
		cmocka_unit_test(test_retired_code_moves_its_words),
		cmocka_unit_test(test_code_is_retired_by_address),
		cmocka_unit_test(test_each_facility_has_its_own),
		cmocka_unit_test(test_a_routine_moves),
		cmocka_unit_test(test_a_move_to_where_code_was_moves_words),
		cmocka_unit_test(test_a_move_needs_no_room_for_bytes),
		cmocka_unit_test(test_a_move_to_a_new_region_rings),
		cmocka_unit_test(test_numbers_pass_32_bits),
		cmocka_unit_test(test_far_addresses_share_words),
		cmocka_unit_test(test_regions_are_told_once),
		cmocka_unit_test(test_regions_do_not_overlap),
		cmocka_unit_test(test_long_ranges_are_retired),
		cmocka_unit_test(test_regions_have_a_bound),
		cmocka_unit_test(test_end_of_address_space),
		cmocka_unit_test(test_a_child_begins_with_all_used),
		cmocka_unit_test(test_what_is_dropped_ends_what_it_replaces),
		cmocka_unit_test(test_what_is_not_listed_ends_by_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
