/* SPDX-License-Identifier: BSD-2-Clause */
/* What lives is listed in the heap, for a daemon that reads it while threads change it. */
#include "fake.h"
#include "dbgdyn_internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static struct fake fake;
static dbgdyn_context context;
static _Alignas(4096) uint8_t code[1 << 20];

static int open_all(void)
{
	fake_open(&fake, FAKE_SOCKET);
	CHECK(dbgdyn_begin("jit", 3, NULL, &context) == DBGDYN_OK && fake_take(&fake));
	dbgdyn_state_get(false)->handed = 0;
	return 0;
}

/* ---- a reader of the heap, as the daemon's --------------------------------------------------- */

static _Alignas(8) uint8_t space[64 << 10];

/* The slot at @at, stable: 1; being changed or changed meanwhile: 0; not a slot: -1. */
static int slot_read(const struct wire_registry *reg, uint64_t at, uint64_t heap_end,
		     struct wire_slot *slot)
{
	off_t off = (off_t)(reg->heap_off + at);
	struct wire_slot after;

	if (pread(fake.fd, slot, sizeof(*slot), off) != sizeof(*slot))
		return -1;
	if (!slot->len || slot->len % WIRE_SLOT_ALIGN || slot->len > heap_end - at ||
	    slot->len - sizeof(*slot) > sizeof(space))
		return -1;
	if (pread(fake.fd, space, slot->len - sizeof(*slot), off + (off_t)sizeof(*slot)) < 0 ||
	    pread(fake.fd, &after, sizeof(after), off) != sizeof(after))
		return -1;
	return after.len == slot->len && after.version == slot->version && !(slot->version & 1);
}

typedef int (*take_slot)(const struct wire_head *h);

/* Step through all slots. Of those that are not stable *@unstable counts. */
static int heap_read(take_slot take, int *unstable)
{
	struct wire_registry reg;
	struct wire_slot slot;

	fake_header(&fake, &reg);
	CHECK(reg.heap_end <= reg.heap_len && reg.heap_end % WIRE_SLOT_ALIGN == 0);
	for (uint64_t at = 0; at < reg.heap_end; at += slot.len) {
		const struct wire_head *h = (const void *)space;
		int stable = slot_read(&reg, at, reg.heap_end, &slot);

		CHECK(stable >= 0);
		*unstable += !stable;
		if (!stable)
			continue;
		CHECK(h->len <= slot.len - sizeof(slot) && wire_check(h) == 0);
		CHECK(h->type == WIRE_PAD || take(h) == 0);
	}
	return 0;
}

/* ---- against a model ------------------------------------------------------------------------- */

#define NR_PLACES 600
#define APART	  48u

static struct model {
	dbgdyn_handle handle;
	uint32_t at, len, name_len;
	bool live, seen;
} model[4000];

static int nr_model;
static char name[6000];

static void model_end(uint32_t at, uint32_t len)
{
	for (int i = 0; i < nr_model; i++)
		if (model[i].live && model[i].at < at + len && at < model[i].at + model[i].len)
			model[i].live = false;
}

static int put_one(unsigned int *seed)
{
	struct model *m = &model[nr_model];
	struct dbgdyn_routine r;

	m->at = (uint32_t)rand_r(seed) % NR_PLACES * APART;
	m->len = (uint32_t)rand_r(seed) % (rand_r(seed) % 9 ? 300 : 9000) + 1;
	m->name_len = (uint32_t)rand_r(seed) % (rand_r(seed) % 5 ? 100 : sizeof(name) - 4) + 4;
	snprintf(name, 5, "%4d", nr_model);
	name[4] = 'x';
	r = fake_routine(name, code + m->at, m->len);
	r.name.len = m->name_len;
	model_end(m->at, m->len);
	CHECK(dbgdyn_register(context, &r, &m->handle) == DBGDYN_OK);
	m->live = true;
	nr_model++;
	return 0;
}

static int retire_one(unsigned int *seed)
{
	struct model *m = &model[rand_r(seed) % nr_model];
	int r = dbgdyn_retire(context, m->handle);

	CHECK(r == (m->live ? DBGDYN_OK : DBGDYN_EINVAL));
	m->live = false;
	return 0;
}

static int move_one(unsigned int *seed)
{
	struct model *m = &model[rand_r(seed) % nr_model];
	uint32_t to = (uint32_t)rand_r(seed) % NR_PLACES * APART;
	int r = dbgdyn_move(context, m->handle, code + to);

	CHECK(r == (m->live ? DBGDYN_OK : DBGDYN_EINVAL));
	if (!m->live)
		return 0;
	m->live = false;
	model_end(to, m->len);
	m->live = true;
	m->at = to;
	return 0;
}

static int take_modelled(const struct wire_head *h)
{
	struct wire_routine_view v;
	char number[5] = "";
	struct model *m;

	CHECK(wire_routine_parse(h, &v) == 0 && !v.code);
	memcpy(number, v.name, 4);
	m = &model[atoi(number)];
	CHECK(m->live && !m->seen && v.rec->addr == (uintptr_t)code + m->at);
	CHECK(v.rec->code_len == m->len);
	CHECK(v.rec->name_len == (m->name_len < WIRE_NAME_MAX ? m->name_len : WIRE_NAME_MAX));
	m->seen = true;
	return 0;
}

static int all_that_lives_is_listed(void)
{
	struct dbgdyn_state *s;
	unsigned int seed = 4711;
	uint32_t chained = 0, nr_live = 0;
	int unstable = 0;

	memset(name, 'x', sizeof(name) - 1);
	CHECK(open_all() == 0 && put_one(&seed) == 0);
	for (int i = 0; nr_model < 3000; i++)
		CHECK((i % 4 == 1 ? retire_one : i % 16 == 2 ? move_one : put_one)(&seed) == 0);
	CHECK(heap_read(take_modelled, &unstable) == 0 && !unstable);
	for (int i = 0; i < nr_model; i++) {
		CHECK(model[i].seen == model[i].live);
		nr_live += model[i].live;
	}
	s = dbgdyn_state_get(false);
	for (int i = 0; i < DBGDYN_NR_LEVELS; i++)
		chained += s->nr_live[i];
	/* Freed slots were used again. */
	CHECK(chained == nr_live && nr_live > 20 && s->nodes_end < 500);
	fake_close(&fake);
	return 0;
}

/* ---- while threads change it ----------------------------------------------------------------- */

#define NR_THREADS 3

static bool stop;

static void *change_on(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	uint8_t *mine = code + (uintptr_t)arg * 65536;
	dbgdyn_handle handle[16] = { 0 };
	char text[200];

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		uint32_t at = (uint32_t)rand_r(&seed) % 16, len = (uint32_t)rand_r(&seed) % 200 + 1;
		struct dbgdyn_routine r = fake_routine("", mine + at * 256, len);
		size_t pad = (size_t)rand_r(&seed) % 100;

		snprintf(text, sizeof(text), "%p %u%*s", (const void *)r.code, len, (int)pad, "");
		r.name = (struct dbgdyn_string){ text, strlen(text) };
		if (rand_r(&seed) % 3)
			dbgdyn_register(context, &r, &handle[at]);
		else
			dbgdyn_retire(context, handle[at]);
	}
	return NULL;
}

static int nr_taken;

/* Never half of one and half of another. */
static int take_any(const struct wire_head *h)
{
	struct wire_routine_view v;
	char text[200] = "";
	unsigned int len;
	void *at;

	CHECK(wire_routine_parse(h, &v) == 0 && v.rec->name_len < sizeof(text));
	memcpy(text, v.name, v.rec->name_len);
	CHECK(sscanf(text, "%p %u", &at, &len) == 2);
	CHECK(v.rec->addr == (uintptr_t)at && v.rec->code_len == len);
	nr_taken++;
	return 0;
}

static int a_reader_sees_whole_routines(void)
{
	pthread_t thread[NR_THREADS];
	double end = fake_seconds() + 0.4;
	int unstable = 0, rounds = 0;

	CHECK(open_all() == 0);
	for (uintptr_t i = 0; i < NR_THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, change_on, (void *)(i + 1)));
	for (; fake_seconds() < end || nr_taken < 100; rounds++)
		CHECK(heap_read(take_any, &unstable) == 0);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(thread[i], NULL);
	nr_taken = unstable = 0;
	CHECK(heap_read(take_any, &unstable) == 0 && !unstable && nr_taken <= 16 * NR_THREADS);
	fake_close(&fake);
	return 0;
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static const uint32_t *word_of(const struct dbgdyn_state *s, const void *at)
{
	return &s->words[((uintptr_t)at >> WIRE_BLOCK_SHIFT) & (s->nr_words - 1)];
}

static int nr_listed;

static int count(const struct wire_head *h)
{
	nr_listed += h->type == WIRE_ROUTINE;
	return 0;
}

/* The heap full, the daemon is told of each; full with the ring, one is dropped. */
static int a_full_heap_is_counted(void)
{
	static const struct dbgdyn_line lines[100000];
	struct dbgdyn_routine r = fake_routine("f", code, 1);
	struct dbgdyn_state *s;
	dbgdyn_handle handle, listed;
	const struct rlimit little = { 70u << 20, RLIM_INFINITY };
	int announced = 0;

	CHECK(setrlimit(RLIMIT_FSIZE, &little) == 0 && open_all() == 0);
	s = dbgdyn_state_get(false);
	s->handed = 1;
	r.lines = lines;
	r.nr_lines = 100000;
	r.code = code;
	CHECK(dbgdyn_register(context, &r, &listed) == DBGDYN_OK);
	while (!s->nr_unlisted) {
		r.code = (const uint8_t *)r.code + 1;
		CHECK(dbgdyn_register(context, &r, &handle) == DBGDYN_OK || s->nr_unlisted);
	}
	/* Powers of two, of which this wastes a little. */
	CHECK(s->nodes_end >= 31 && s->reg->nr_dropped == 1 && handle.id == 0);
	static uint8_t stream[4 << 20];

	CHECK(fake_read(&fake, stream, sizeof(stream)) > 0);
	for (int i = 0; i < 3; i++, announced++) {
		r.code = (const uint8_t *)r.code + 1;
		if (dbgdyn_register(context, &r, &handle) != DBGDYN_OK)
			break;
		CHECK(dbgdyn_retire(context, handle) == DBGDYN_EFULL);
		CHECK(dbgdyn_move(context, handle, code) == DBGDYN_EFULL);
	}
	CHECK(announced >= 1 && s->reg->nr_unlisted == s->nr_unlisted);
	/* By address the last one is retired all the same. */
	uint64_t seq = s->reg->seq;

	CHECK(dbgdyn_retire_code(context, r.code, 1) == DBGDYN_OK && s->reg->seq == seq + 1);
	/* Where nothing ever was there is nothing to end, and no word moves. */
	CHECK(dbgdyn_retire_code(context, code + 65536, 65536) == DBGDYN_OK);
	CHECK(s->reg->seq == seq + 1);
	/* Room again, for one. */
	r.code = code + 5000;
	CHECK(dbgdyn_retire(context, listed) == DBGDYN_OK);
	CHECK(dbgdyn_register(context, &r, &handle) == DBGDYN_OK);
	CHECK(dbgdyn_retire(context, handle) == DBGDYN_OK);
	CHECK(dbgdyn_retire_code(context, code, 65536) == DBGDYN_OK);
	CHECK(*word_of(s, code) == s->reg->seq && *word_of(s, code + 32768) == 0);
	fake_close(&fake);
	return 0;
}

/* The heap's last bytes are a slot, shorter than others of its kind, for what it has room for. */
static int the_last_slot_is_short(void)
{
	static const struct dbgdyn_line lines[345];
	struct dbgdyn_routine r = fake_routine("f", code, 1);
	struct dbgdyn_state *s;
	dbgdyn_handle handle;

	CHECK(open_all() == 0 && dbgdyn_register(context, &r, NULL) == DBGDYN_OK);
	s = dbgdyn_state_get(false);
	s->heap_len = s->heap_end + 100u * WIRE_SLOT_ALIGN;
	r = fake_routine("g", code + 16, 1);
	r.lines = lines;
	r.nr_lines = 270; /* of 69 units, where 128 are taken else */
	CHECK(dbgdyn_register(context, &r, &handle) == DBGDYN_OK);
	CHECK(dbgdyn_retire(context, handle) == DBGDYN_OK);
	r.nr_lines = 345;
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_EFULL);
	r.nr_lines = 150; /* nor is there so much behind it */
	CHECK(dbgdyn_register(context, &r, &handle) == DBGDYN_OK && s->nodes_end == 2);
	fake_close(&fake);
	return 0;
}

static uint32_t first_version;

static int take_version(const struct wire_head *h)
{
	struct wire_slot slot;

	memcpy(&slot, (const uint8_t *)dbgdyn_state_get(false)->heap, sizeof(slot));
	first_version = slot.version;
	return h->type != WIRE_ROUTINE;
}

/*
 * One call empties a slot and fills it again: two changes of it, or a reader that looked between
 * them would take what it had half copied for stable.
 */
static int each_change_of_a_slot_has_its_version(void)
{
	struct dbgdyn_routine r = fake_routine("f", code, 16);
	struct dbgdyn_state *s;
	uint32_t before;
	int unstable = 0;

	CHECK(open_all() == 0 && dbgdyn_register(context, &r, NULL) == DBGDYN_OK);
	s = dbgdyn_state_get(false);
	CHECK(heap_read(take_version, &unstable) == 0 && !unstable);
	before = first_version;
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK && s->nodes_end == 1);
	CHECK(heap_read(take_version, &unstable) == 0 && !unstable);
	CHECK(first_version - before == 2 * 2);
	fake_close(&fake);
	return 0;
}

/* Without a daemon, one that comes later learns of what lives; nobody copies code meanwhile. */
static int small_routines_fill_little(void)
{
	int unstable = 0;

	CHECK(open_all() == 0);
	for (int i = 0; i < 10000; i++) {
		struct dbgdyn_routine r = fake_routine("small", code + i * 16, 16);

		CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK);
	}
	CHECK(heap_read(count, &unstable) == 0 && nr_listed == 10000);
	CHECK(dbgdyn_state_get(false)->heap_end == 10000 * 128);
	CHECK(dbgdyn_retire_code(context, code, sizeof(code)) == DBGDYN_OK);
	nr_listed = 0;
	CHECK(heap_read(count, &unstable) == 0 && nr_listed == 0 && !unstable);
	fake_close(&fake);
	return 0;
}

FAKE_TEST(all_that_lives_is_listed)
FAKE_TEST(a_reader_sees_whole_routines)
FAKE_TEST(a_full_heap_is_counted)
FAKE_TEST(the_last_slot_is_short)
FAKE_TEST(each_change_of_a_slot_has_its_version)
/* A slot for a record of @len bytes: it holds that, whoever had it before. */
static int slot_for(struct dbgdyn_state *s, size_t len, struct dbgdyn_node **n)
{
	*n = dbgdyn_heap_take(s, len);
	CHECK(*n && (*n)->nr_units * (size_t)WIRE_SLOT_ALIGN >= sizeof(struct wire_slot) + len);
	CHECK(((*n)->unit + (uint64_t)(*n)->nr_units) * WIRE_SLOT_ALIGN <= s->heap_end);
	return 0;
}

/* Around the longest length that has slots of its own, and the powers of two behind it. */
static int a_slot_holds_what_it_is_taken_for(void)
{
	struct dbgdyn_node *n, *other;
	struct dbgdyn_state *s;
	uint32_t nodes_end;

	CHECK(open_all() == 0);
	s = dbgdyn_state_get(false);
	for (size_t len = 8; len < 260 * WIRE_SLOT_ALIGN; len += 8) {
		CHECK(slot_for(s, len, &n) == 0);
		dbgdyn_heap_give(s, n);
	}
	nodes_end = s->nodes_end;
	for (size_t len = 260 * WIRE_SLOT_ALIGN - 8; len; len -= 8) {
		CHECK(slot_for(s, len, &n) == 0 && slot_for(s, len, &other) == 0);
		CHECK(n != other && n->unit != other->unit);
		dbgdyn_heap_give(s, n);
		dbgdyn_heap_give(s, other);
	}
	/* Of each length one was there already, and is used again. */
	CHECK(s->nodes_end - nodes_end <= nodes_end);
	/* With nothing new to be had, what is longer serves; and too long is too long. */
	s->heap_len = s->heap_end;
	CHECK(slot_for(s, 8, &n) == 0 && slot_for(s, 8, &n) == 0 && slot_for(s, 8, &n) == 0);
	CHECK(!dbgdyn_heap_take(s, 4000 * WIRE_SLOT_ALIGN));
	fake_close(&fake);
	return 0;
}

FAKE_TEST(a_slot_holds_what_it_is_taken_for)
FAKE_TEST(small_routines_fill_little)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_that_lives_is_listed),
		cmocka_unit_test(test_a_reader_sees_whole_routines),
		cmocka_unit_test(test_a_full_heap_is_counted),
		cmocka_unit_test(test_the_last_slot_is_short),
		cmocka_unit_test(test_each_change_of_a_slot_has_its_version),
		cmocka_unit_test(test_a_slot_holds_what_it_is_taken_for),
		cmocka_unit_test(test_small_routines_fill_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
