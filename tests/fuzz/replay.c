/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A recorded stream of any bytes: refused or replayed; what was replayed and recorded again must
 * replay to the same once more.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int load(void *ctx, const struct driver_load *l)
{
	return driver_record_load(ctx, l);
}

static int count(void *ctx, const struct driver_count *c)
{
	return driver_record_count(ctx, c);
}

/* Replay @text and record it; whether it was good to its end. */
static bool again(const void *text, size_t len, char **out, size_t *out_len)
{
	FILE *in = fmemopen((void *)(uintptr_t)text, len, "r"), *to = open_memstream(out, out_len);
	const struct driver_sink sink = { .load = load, .count = count, .ctx = to };
	struct driver *d = NULL;
	int r;

	if (!in || !to)
		abort();
	r = replay_open_stream(in, "fuzz", &d, NULL);
	if (r >= 0) {
		driver_record_head(to, d, driver_recorded_utc(d));
		while ((r = driver_drain(d, false, &sink, NULL)) > 0)
			;
		driver_close(d);
	}
	fclose(to);
	return r >= 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *first = NULL, *second = NULL;
	size_t first_len = 0, second_len = 0;

	if (!len)
		return 0;
	again(data, len, &first, &first_len);
	/* What was recorded before a bad line is good by itself. */
	if (first_len && (!again(first, first_len, &second, &second_len) ||
			  first_len != second_len || memcmp(first, second, first_len)))
		abort();
	free(first);
	free(second);
	return 0;
}
