/* SPDX-License-Identifier: BSD-2-Clause */
/* What callgrind writes: the input as a dump, and each of its lines as one of the log. */
#include <stdlib.h>
#include <string.h>

#include "callgrind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int on_count(void *ctx, const char *object, uint64_t addr, uint64_t count)
{
	struct exact_image **x = ctx;

	if (!*object || !count)
		abort();
	return exact_count_add(*x, addr, count);
}

static int on_edge(void *ctx, const char *object, uint64_t from, const char *to_object, uint64_t to,
		   uint64_t count)
{
	struct exact_image **x = ctx;

	return exact_edge_add(*x, from,
			      to_object && !strcmp(object, to_object) ? to : EXACT_OUTSIDE, count);
}

static void dump(const uint8_t *data, size_t len)
{
	const struct base_id none = { 0 };
	struct exact_image *x;
	const struct callgrind_sink sink = { &x, on_count, on_edge };
	struct base_buf out = { 0 };
	struct exact e = { 0 }, copy = { 0 };
	struct callgrind_head head = { 0 };

	if (exact_image_add(&e, EXACT_PROCESS, &none, 1, "x", &x) < 0)
		abort();
	if (callgrind_parse(data, len, "fuzz", &sink, &head, NULL) == 0 &&
	    exact_format(&e, &out) == 0 && exact_parse(&copy, out.data, out.len, "x", NULL) < 0)
		abort();
	base_buf_release(&out);
	exact_release(&copy);
	exact_release(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const char *at = (const char *)data, *end = at + len;
	struct callgrind_line l;

	dump(data, len);
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;

		callgrind_log_line(at, (size_t)(stop - at), &l);
		if (l.path_len > (size_t)(stop - at))
			abort();
		at = stop + 1;
	}
	return 0;
}
