/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream_keys FILE START END: of the user samples at [START, END) in a recorded stream: "samples
 * N", "read N" (those whose generation was read), and of these "addresses N" (different ones: the
 * keys that a sampler's table has without generations) and "keys N" (the same with them).
 */
#include <stdio.h>
#include <stdlib.h>

#include "driver.h"

struct key {
	uint64_t addr, generation;
};

struct sums {
	uint64_t start, end, samples, read;
	struct key *keys;
	size_t nr, cap;
};

static int skip(void *ctx, const struct driver_load *load)
{
	(void)ctx;
	(void)load;
	return 0;
}

static int add(void *ctx, const struct driver_count *count)
{
	struct sums *s = ctx;
	int r;

	if (count->mode != DRIVER_USER || count->addr < s->start || count->addr >= s->end)
		return 0;
	s->samples += count->count;
	if (!count->generation_read)
		return 0;
	s->read += count->count;
	r = base_grow(&s->keys, &s->cap, s->nr + 1, sizeof(*s->keys));
	if (r == 0)
		s->keys[s->nr++] = (struct key){ count->addr, count->generation };
	return r;
}

static int compare(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return (x->generation > y->generation) - (x->generation < y->generation);
}

static void print(struct sums *s)
{
	size_t addresses = 0, keys = 0;

	if (s->nr)
		qsort(s->keys, s->nr, sizeof(*s->keys), compare);
	for (size_t i = 0; i < s->nr; i++) {
		addresses += !i || s->keys[i].addr != s->keys[i - 1].addr;
		keys += !i || compare(&s->keys[i], &s->keys[i - 1]);
	}
	printf("samples %llu\nread %llu\naddresses %zu\nkeys %zu\n", (unsigned long long)s->samples,
	       (unsigned long long)s->read, addresses, keys);
}

int main(int argc, char **argv)
{
	struct sums s = { 0 };
	const struct driver_sink sink = { .load = skip, .count = add, .ctx = &s };
	struct driver_config config = { .source = "replay",
					.replay_path = argc == 4 ? argv[1] : NULL };
	struct base_err err = { 0 };
	struct driver *d = NULL;
	int r;

	if (argc != 4) {
		fputs("usage: stream_keys FILE START END\n", stderr);
		return 2;
	}
	s.start = strtoull(argv[2], NULL, 0);
	s.end = strtoull(argv[3], NULL, 0);
	r = driver_open(&config, &d, &err);
	if (r == 0)
		r = driver_start(d, &err);
	while (r >= 0 && (r = driver_drain(d, true, &sink, &err)) > 0)
		;
	driver_close(d);
	if (r < 0)
		fprintf(stderr, "stream_keys: %s\n", err.text);
	else
		print(&s);
	free(s.keys);
	return r < 0;
}
