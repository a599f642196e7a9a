/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * restream FROM TO TABLE DRAIN: a recorded stream as the source "bpf" would have delivered it, by
 * the same table and the same way back out of it, but without a kernel: TABLE entries a CPU, two
 * CPUs, a drain after DRAIN nanoseconds of the stream's time or when a table asks for one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf_internal.h"
#include "perf_internal.h"

enum { NR_CPUS = 2, LOADS = 0, COUNTS = 1, REPEAT_MAX = 1000000 };

struct restream {
	FILE *to;
	struct count_shape shape;
	union count_bucket *tables[NR_CPUS];
	struct bpf_counts counts;
	struct perf_order order;
	struct driver_stats stats;
	struct base_map lives; /* pid -> number of its life */
	uint64_t nr_lives, nr_samples;
	uint64_t drain_ns, due_ns, now_ns;
	uint64_t stored;
};

/* ---- out ------------------------------------------------------------------------------------- */

static int add_count(void *ctx, const struct driver_count *count)
{
	struct restream *s = ctx;

	return perf_order_add(&s->order, COUNTS, count);
}

static int write_item(struct restream *s, const struct perf_item *item)
{
	int r;

	if (item->load) {
		r = driver_record_load(s->to, &item->load->load);
		perf_order_drop(&s->order, item->load);
		return r;
	}
	s->stored += item->count.count;
	return driver_record_count(s->to, &item->count);
}

/* Everything up to @horizon; what is younger waits, as in the source. */
static int drain(struct restream *s, uint64_t horizon)
{
	const struct perf_item *item;
	int r = 0;

	for (int i = 0; i < NR_CPUS; i++)
		bpf_counts_take(&s->counts, s->tables[i], &s->shape, &s->stats);
	bpf_counts_hand(&s->counts, add_count, s, &s->stats);
	perf_order_settle(&s->order);
	while (r >= 0 && (item = perf_order_take(&s->order, horizon)))
		r = write_item(s, item);
	s->due_ns = s->now_ns + s->drain_ns;
	return r;
}

/* A drain of the past, a little before now: some of what is there is younger. */
static int pass_time(struct restream *s, uint64_t time_ns)
{
	if (time_ns > s->now_ns)
		s->now_ns = time_ns;
	return s->now_ns < s->due_ns ? 0 : drain(s, s->due_ns - s->drain_ns / 8);
}

/* ---- in -------------------------------------------------------------------------------------- */

static int new_life(struct restream *s, int32_t pid)
{
	return base_map_set(&s->lives, &pid, sizeof(pid), (void *)(uintptr_t)++s->nr_lives);
}

static int on_load(void *ctx, const struct driver_load *l)
{
	struct restream *s = ctx;
	int r = pass_time(s, l->time_ns);

	if (r >= 0)
		r = perf_order_add_load(&s->order, LOADS, l);
	if (r >= 0 && (l->kind == DRIVER_LOAD_EXEC || l->kind == DRIVER_LOAD_FORK ||
		       l->kind == DRIVER_LOAD_EXIT))
		r = new_life(s, l->pid);
	return r;
}

static struct count_key key_of(const struct restream *s, const struct driver_count *c)
{
	struct count_key k = {
		.addr = c->addr,
		.tgid = (uint32_t)c->pid,
		.generation = c->generation,
		.what = COUNT_WHAT(c->event, (uint32_t)c->mode) |
			(c->generation_read ? COUNT_WHAT_READ : 0) |
			(c->generation_unread ? COUNT_WHAT_UNREAD : 0),
	};

	if (c->pid > 0)
		k.instance = (uintptr_t)base_map_get(&s->lives, &c->pid, sizeof(c->pid));
	return k;
}

static int on_count(void *ctx, const struct driver_count *c)
{
	struct restream *s = ctx;
	const struct count_key k = key_of(s, c);
	int r = pass_time(s, c->time_ns);

	if (c->count > REPEAT_MAX)
		return -ERANGE;
	for (uint64_t i = 0; i < c->count && r >= 0; i++) {
		union count_bucket *table = s->tables[s->nr_samples++ % NR_CPUS];

		count_sample(table, &s->shape, &k, false, i ? c->time_ns : c->first_ns);
		if (count_should_tell(&s->shape, &table->head))
			r = drain(s, s->now_ns);
	}
	return r;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int open_all(struct restream *s, char **args, struct driver **d, struct base_err *err)
{
	const struct driver_config config = { .source = "replay", .replay_path = args[1] };
	unsigned long len = strtoul(args[3], NULL, 10);
	int r = driver_open(&config, d, err);

	if (r < 0)
		return r;
	if (len < COUNT_WAYS || len & (len - 1) || len > 1 << 20)
		return base_fail(err, -DCPI_EUSAGE, "TABLE '%s' is no power of two", args[3]);
	s->shape = count_shape_of((uint32_t)len);
	s->drain_ns = s->due_ns = strtoull(args[4], NULL, 10);
	for (int i = 0; i < NR_CPUS; i++) {
		s->tables[i] = calloc(count_nr_elements(&s->shape), sizeof(*s->tables[i]));
		if (!s->tables[i])
			r = -ENOMEM;
	}
	if (r >= 0)
		r = perf_order_init(&s->order, 2);
	s->to = fopen(args[2], "we");
	if (r >= 0 && !s->to)
		r = -errno;
	return r < 0 ? base_fail_errno(err, r, "cannot begin") : 0;
}

static int run(struct restream *s, struct driver *d, struct base_err *err)
{
	const struct driver_sink sink = { .load = on_load, .count = on_count, .ctx = s };
	int r = driver_record_head(s->to, d, driver_recorded_utc(d));

	if (r >= 0)
		r = driver_start(d, err);
	while (r >= 0 && (r = driver_drain(d, false, &sink, err)) > 0)
		;
	if (r >= 0)
		r = drain(s, UINT64_MAX);
	return r < 0 ? base_fail_errno(err, r, "failed") : 0;
}

static int check(const struct restream *s, struct base_err *err)
{
	uint64_t received = 0;

	for (int i = 0; i < DRIVER_NR_EVENTS; i++)
		received += s->stats.received[i];
	printf("%llu samples received, %llu handed on\n", (unsigned long long)received,
	       (unsigned long long)s->stored);
	if (received == s->stored && received == s->nr_samples)
		return 0;
	return base_fail(err, -DCPI_EOVERFLOW, "samples were lost");
}

int main(int argc, char **argv)
{
	struct restream s = { 0 };
	struct driver *d = NULL;
	struct base_err err = { 0 };
	int r;

	if (argc != 5) {
		fputs("usage: restream FROM TO TABLE DRAIN\n", stderr);
		return BASE_EXIT_USAGE;
	}
	r = open_all(&s, argv, &d, &err);
	if (r >= 0)
		r = run(&s, d, &err);
	if (r >= 0)
		r = check(&s, &err);
	if (s.to && fclose(s.to) != 0 && r >= 0)
		r = base_fail_errno(&err, -errno, "cannot write '%s'", argv[2]);
	if (r < 0)
		base_err_print(&err, "restream", stderr);
	driver_close(d);
	perf_order_release(&s.order);
	bpf_counts_release(&s.counts);
	base_map_release(&s.lives);
	for (int i = 0; i < NR_CPUS; i++)
		free(s.tables[i]);
	return r < 0 ? BASE_EXIT_FAILED : BASE_EXIT_OK;
}
