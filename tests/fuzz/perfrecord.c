/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as the contents of a ring, read from any place of it: walked, parsed, told apart by
 * threads, queued on some rings, merged. Everything queued comes out again, in order.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "perf_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { RING = 1 << 16, QUEUES = 3 };

static uint8_t ring_data[RING], scratch[PERF_RECORD_LEN_MAX];

static void use_load(struct perf_threads *t, const struct driver_load *l)
{
	perf_threads_pass(t, l);
	if (l->path && strlen(l->path) >= PERF_RECORD_LEN_MAX)
		abort();
	if (l->id.len > sizeof(l->id.bytes))
		abort();
}

/* The bytes behind the fields of a sample, as each hardware's, and with any fields before it; the
 * last one into @out. */
static void use_insn(const struct perf_record *rec, struct isample *out)
{
	uint64_t seed = rec->count.addr ^ rec->time_ns;
	struct perf_event_attr attr = { .config = seed,
					.sample_type = seed >> 8,
					.read_format = seed & 31,
					.branch_sample_type = seed >> 3,
					.sample_regs_user = seed >> 5 };

	for (enum event_hardware h = EVENT_HW_OTHER; h <= EVENT_HW_SPE; h++) {
		attr.sample_type |= h == EVENT_HW_IBS_OP ? PERF_SAMPLE_RAW : 0;
		perf_insn_parse(h, &attr, &rec->rest, rec->misc, out);
		if (out->bits & ~out->known)
			abort();
	}
}

/* In a block of its own, so that reading past the record is seen. */
static void use_record(struct perf_order *o, struct perf_threads *t, const uint8_t *bytes,
		       size_t len, size_t nr)
{
	struct perf_record rec;
	uint8_t *exact = malloc(len);

	if (!exact)
		abort();
	memcpy(exact, bytes, len);
	if (perf_record_parse(exact, len, &rec) >= 0 && rec.what == PERF_LOAD) {
		use_load(t, &rec.load);
		if (perf_order_add_load(o, nr % QUEUES, &rec.load) < 0)
			abort();
	} else {
		struct driver_count count = rec.count;
		struct isample insn;

		if (rec.what == PERF_SAMPLE) {
			use_insn(&rec, &insn);
			count.insn = &insn;
		}
		count.time_ns = rec.time_ns;
		if (perf_order_add(o, nr % QUEUES, &count) < 0)
			abort();
	}
	free(exact);
}

/* It stays good when the record it came from is gone. */
static void use_copy(struct perf_order *o, struct perf_load *load)
{
	const uint8_t *data = load->load.data;
	unsigned int sum = 0;

	for (size_t i = 0; data && i < load->load.data_len; i++)
		sum += data[i];
	if (load->load.path)
		sum += (unsigned int)strlen(load->load.path);
	if (sum == UINT32_MAX)
		abort();
	perf_order_drop(o, load);
}

static void use_order(struct perf_order *o, size_t nr)
{
	uint64_t last = 0;
	const struct perf_item *item;

	perf_order_settle(o);
	while ((item = perf_order_take(o, UINT64_MAX))) {
		if (item->count.time_ns < last || !nr--)
			abort();
		last = item->count.time_ns;
		if (item->load)
			use_copy(o, item->load);
		perf_order_drop_count(&item->count);
	}
	if (nr || o->nr_samples)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct perf_ring ring = { .data = ring_data, .len = RING };
	struct perf_threads threads = { 0 };
	struct perf_order order;
	const uint8_t *bytes;
	size_t nr = 0;
	int n;

	/* The first two bytes say where the reader stands. */
	if (len < 2 || len - 2 > RING || perf_order_init(&order, QUEUES) < 0)
		return 0;
	memcpy(&ring.tail, data, 2);
	ring.head = ring.tail + len - 2;
	for (size_t i = 2; i < len; i++)
		ring_data[(ring.tail + i - 2) % RING] = data[i];
	for (; (n = perf_ring_peek(&ring, scratch, &bytes)) > 0; nr++) {
		use_record(&order, &threads, bytes, (size_t)n, nr);
		ring.tail += (uint64_t)n;
	}
	use_order(&order, nr);
	perf_order_release(&order);
	perf_threads_forget(&threads);
	return 0;
}
