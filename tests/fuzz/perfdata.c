/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A perf.data file of any bytes: refused or replayed; every sample received is handed on or counted
 * as lost, times do not go back, and what was recorded of it is a good stream.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perfdata_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct seen {
	FILE *to;
	uint64_t handed, last_ns;
};

static int load(void *ctx, const struct driver_load *l)
{
	struct seen *s = ctx;

	if (l->time_ns && l->time_ns < s->last_ns)
		abort();
	if (l->time_ns)
		s->last_ns = l->time_ns;
	return driver_record_load(s->to, l);
}

static int count(void *ctx, const struct driver_count *c)
{
	struct seen *s = ctx;

	if (c->time_ns < s->last_ns || c->first_ns > c->time_ns)
		abort();
	s->last_ns = c->time_ns;
	s->handed += c->count;
	return driver_record_count(s->to, c);
}

static void check_law(const struct driver *d, const struct seen *s)
{
	struct driver_stats stats;
	uint64_t received = 0;

	driver_stats_get(d, &stats);
	for (size_t i = 0; i < DRIVER_NR_EVENTS; i++)
		received += stats.received[i];
	if (stats.held || received != s->handed + stats.lost_ring + stats.lost_bad)
		abort();
}

static int take_load(void *ctx, const struct driver_load *l)
{
	(void)ctx;
	(void)l;
	return 0;
}

static int take_count(void *ctx, const struct driver_count *c)
{
	*(uint64_t *)ctx += c->count;
	return 0;
}

static void check_stream(const char *text, size_t len, uint64_t handed)
{
	FILE *in = fmemopen((void *)(uintptr_t)text, len, "r");
	uint64_t taken = 0;
	const struct driver_sink sink = { .load = take_load, .count = take_count, .ctx = &taken };
	struct base_err err = { 0 };
	struct driver *d = NULL;
	int r;

	if (!in || replay_open_stream(in, "fuzz", &d, NULL) < 0)
		abort();
	while ((r = driver_drain(d, false, &sink, &err)) > 0)
		;
	if (r < 0)
		fprintf(stderr, "%s\n", err.text);
	if (r < 0 || taken != handed)
		abort();
	driver_close(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	FILE *in = len ? fmemopen((void *)(uintptr_t)data, len, "r") : NULL;
	struct seen seen = { 0 };
	struct driver_sink sink = { .load = load, .count = count, .ctx = &seen };
	struct base_err err = { 0 };
	struct driver *d = NULL;
	size_t text_len;
	char *text = NULL;

	if (!in)
		return 0;
	seen.to = open_memstream(&text, &text_len);
	if (perfdata_open_stream(in, "fuzz", &d, &err) >= 0) {
		driver_record_head(seen.to, d, driver_recorded_utc(d));
		while (driver_drain(d, false, &sink, &err) > 0)
			;
		check_law(d, &seen);
		driver_close(d);
	} else if (!err.text[0]) {
		abort();
	}
	fclose(seen.to);
	if (text_len)
		check_stream(text, text_len, seen.handed);
	free(text);
	return 0;
}
