/* SPDX-License-Identifier: BSD-2-Clause */
/* What libdbgdyn writes while threads go on, read as the reader process reads it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "dbgdyn.h"
#include "registry.h"

enum { NR_STAYING = 32, NR_THREADS = 2, NR_PLACES = 24, LEN = 64 };

/* The reader reads whole pages, so what stands beside the code must be readable too. */
static struct {
	_Alignas(WIRE_PAGE) uint8_t staying[NR_STAYING][LEN];
	uint8_t places[NR_THREADS][NR_PLACES][LEN];
	uint8_t here[LEN], there[LEN];
} block;
static dbgdyn_context context;
static atomic_bool stop;
static int fd = -1;

static int find_registry(void)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	char link[256];
	int found = -1;

	while (d && found < 0 && (e = readdir(d))) {
		ssize_t n = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);

		if (n <= 0)
			continue;
		link[n] = '\0';
		if (strstr(link, DBGDYN_MEMFD_NAME))
			found = atoi(e->d_name);
	}
	if (d)
		closedir(d);
	return found;
}

static ssize_t memory_read(void *ctx, uint64_t addr, void *to, size_t len)
{
	(void)ctx;
	memcpy(to, (const void *)(uintptr_t)addr, len);
	return (ssize_t)len;
}
static const struct registry_memory memory = { memory_read, NULL };

/* The name is the byte that its code consists of. */
static dbgdyn_handle put(uint8_t *code, uint8_t byte)
{
	struct dbgdyn_routine r = {
		.size = sizeof(r), .name = { (const char *)&byte, 1 }, .code = code, .code_len = LEN
	};
	dbgdyn_handle handle = { 0 };

	memset(code, byte, LEN);
	if (dbgdyn_register(context, &r, &handle) != DBGDYN_OK)
		handle.id = 0;
	return handle;
}

static int setup(void **state)
{
	static const char name[] = "live";

	(void)state;
	setenv("DCPI_RUN", "/nonexistent", 1);
	setenv("DCPI_QUEUE", "/dbgdyn-test-nobody", 1);
	if (dbgdyn_begin(name, strlen(name), NULL, &context) != DBGDYN_OK)
		return -1;
	fd = find_registry();
	for (int i = 0; i < NR_STAYING; i++)
		if (!put(block.staying[i], (uint8_t)(1 + i)).id)
			return -1;
	return fd < 0 ? -1 : 0;
}

/* Retires, overwrites, registers and moves, each in its turn as the interface wants it. */
static void *proceed(void *ctx)
{
	uint8_t(*place)[LEN] = block.places[(uintptr_t)ctx];
	dbgdyn_handle handle[NR_PLACES] = { 0 };
	unsigned int rng = 1 + (unsigned int)(uintptr_t)ctx;

	while (!stop) {
		unsigned int i, to;

		rng = rng * 1103515245 + 12345;
		i = rng >> 16 & 15;
		to = 16 + i % (NR_PLACES - 16);
		if (handle[i].id)
			dbgdyn_retire(context, handle[i]);
		handle[i] = put(place[i], (uint8_t)(rng >> 8 | 128));
		if (rng >> 24 & 1 || !handle[i].id)
			continue;
		/* Nobody lives there any more, but by overlap. */
		dbgdyn_retire_code(context, place[to], LEN);
		memcpy(place[to], place[i], LEN);
		if (dbgdyn_move(context, handle[i], place[to]) == DBGDYN_OK)
			handle[i].id = 0;
	}
	return NULL;
}

/* Each routine's bytes are its own; the ones that stayed are marked in @seen. */
static void check(const struct base_buf *out, bool seen[NR_STAYING])
{
	struct wire_routine_view v;
	const struct wire_head *h;

	WIRE_FOR_EACH (h, out->data, out->len, pos) {
		if (h->type != WIRE_ROUTINE || !(h->flags & WIRE_ROUTINE_LISTED))
			continue;
		assert_int_equal(wire_routine_parse(h, &v), 0);
		assert_non_null(v.code);
		assert_int_equal(v.rec->code_len, LEN);
		for (int i = 0; i < LEN; i++)
			assert_int_equal(v.code[i], (uint8_t)v.name[0]);
		for (int i = 0; i < NR_STAYING; i++)
			seen[i] |= v.rec->addr == (uintptr_t)block.staying[i];
	}
}

static void check_all(const bool seen[NR_STAYING])
{
	for (int i = 0; i < NR_STAYING; i++)
		assert_true(seen[i]);
}

/* On a busy machine a list comes in parts; none that stayed is missing from all of them. */
static void list(struct registry_place *place, struct base_buf *out)
{
	bool seen[NR_STAYING] = { false };

	place->list_at = 0;
	while (place->list_at != REGISTRY_NO_LIST) {
		int r;

		base_buf_clear(out);
		r = registry_parse(fd, &memory, place, out);
		assert_int_equal(r, 0);
		check(out, seen);
	}
	check_all(seen);
}

static void test_list_while_it_changes(void **state)
{
	struct registry_place place = { 0 };
	struct base_buf out = { 0 };
	struct wire_registry h;
	pthread_t thread[NR_THREADS];
	uint64_t first, end;

	(void)state;
	assert_int_equal(registry_header_read(fd, &h), 0);
	assert_true(h.nr_words && h.heap_len);
	first = h.seq;
	for (uintptr_t i = 0; i < NR_THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, proceed, (void *)i), 0);
	/* Long enough for the threads to have their turns. */
	for (end = base_now_ns() + 200000000; base_now_ns() < end || h.seq < first + 1000;) {
		list(&place, &out);
		assert_int_equal(registry_header_read(fd, &h), 0);
	}
	stop = true;
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(thread[i], NULL);
	base_buf_release(&out);
}

/* What is told by the ring as long as it is read, and at the end by the list, agrees. */
static void test_ring_and_list(void **state)
{
	bool seen[NR_STAYING] = { false };
	const uint32_t attached = 1;
	struct registry_place place = { .list_at = REGISTRY_NO_LIST };
	struct base_buf out = { 0 };
	const struct wire_listed *l = NULL;
	const struct wire_head *h;
	dbgdyn_handle handle;
	uint64_t seq = 0;
	unsigned int nr[WIRE_INSTANCE + 1] = { 0 };
	struct wire_registry reg;

	(void)state;
	assert_int_equal(
		pwrite(fd, &attached, sizeof(attached), offsetof(struct wire_registry, attached)),
		sizeof(attached));
	assert_int_equal(registry_header_read(fd, &reg), 0);
	place.tail = reg.head;
	assert_int_equal(
		pwrite(fd, &reg.head, sizeof(reg.head), offsetof(struct wire_registry, tail)),
		sizeof(reg.head));
	place.seq = reg.seq;
	handle = put(block.here, 77);
	assert_true(handle.id != 0);
	memset(block.there, 77, LEN);
	assert_int_equal(dbgdyn_move(context, handle, block.there), DBGDYN_OK);
	assert_int_equal(dbgdyn_retire(context, handle), DBGDYN_OK);
	place.list_at = 0;
	while (place.list_at != REGISTRY_NO_LIST)
		assert_int_equal(registry_parse(fd, &memory, &place, &out), 0);
	WIRE_FOR_EACH (h, out.data, out.len, pos) {
		if (h->flags & WIRE_ROUTINE_LISTED || h->type > WIRE_INSTANCE)
			continue;
		nr[h->type]++;
		if (h->type == WIRE_ROUTINE || h->type == WIRE_MOVE)
			assert_int_equal(h->flags & (WIRE_ROUTINE_CODE | WIRE_ROUTINE_FETCHED),
					 WIRE_ROUTINE_CODE);
		if (h->type == WIRE_RETIRE)
			seq = ((const struct wire_retire *)(const void *)h)->seq;
		if (h->type == WIRE_LISTED)
			l = (const void *)h;
	}
	assert_int_equal(nr[WIRE_ROUTINE], 1);
	assert_int_equal(nr[WIRE_MOVE], 1);
	assert_int_equal(nr[WIRE_RETIRE], 1);
	assert_int_equal(nr[WIRE_LISTED], 1);
	assert_int_equal(place.seq, seq);
	assert_int_equal(l->seq_before, seq);
	assert_int_equal(l->seq_after, seq);
	check(&out, seen);
	check_all(seen);
	base_buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list_while_it_changes),
		cmocka_unit_test(test_ring_and_list),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
