/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of threads by numbers, where load events tell them and samples tell the thread. */
#include <stdlib.h>
#include <string.h>

#include "perf.h"

/* Names that have numbers; further ones have none. */
enum { NAMES_MAX = 1 << 16 };

static uintptr_t number_of(struct perf_names *n, const char *path)
{
	char text[PERF_NAME_LEN] = { 0 };
	size_t len = strnlen(path, sizeof(text) - 1);
	uintptr_t number;

	memcpy(text, path, len);
	number = (uintptr_t)base_map_get(&n->numbers, text, sizeof(text));
	if (number || !len || n->nr >= NAMES_MAX ||
	    base_grow(&n->texts, &n->cap, n->nr + 1, sizeof(*n->texts)) < 0)
		return number;
	number = n->nr + 1;
	if (base_map_set(&n->numbers, text, sizeof(text), (void *)number) < 0)
		return 0;
	memcpy(n->texts[n->nr++], text, sizeof(text));
	return number;
}

static void name(struct perf_names *n, int32_t tid, uintptr_t number)
{
	if (!number || base_map_set(&n->threads, &tid, sizeof(tid), (void *)number) < 0)
		base_map_del(&n->threads, &tid, sizeof(tid));
}

void perf_names_load(struct perf_names *n, const struct driver_load *load)
{
	switch (load->kind) {
	case DRIVER_LOAD_FORK:
		name(n, load->tid, perf_names_get(n, load->ptid));
		break;
	case DRIVER_LOAD_EXEC:
	case DRIVER_LOAD_COMM:
		name(n, load->tid, load->path ? number_of(n, load->path) : 0);
		break;
	case DRIVER_LOAD_EXIT:
		name(n, load->tid, 0);
		break;
	default:
		break;
	}
}

uint32_t perf_names_get(const struct perf_names *n, int32_t tid)
{
	return tid > 0 ? (uint32_t)(uintptr_t)base_map_get(&n->threads, &tid, sizeof(tid)) : 0;
}

const char *perf_names_text(const struct perf_names *n, uint32_t number)
{
	return number && number <= n->nr ? n->texts[number - 1] : "";
}

void perf_names_lose(struct perf_names *n)
{
	base_map_release(&n->threads);
	n->threads = (struct base_map){ 0 };
}

void perf_names_forget(struct perf_names *n)
{
	if (n->nr > NAMES_MAX / 2)
		perf_names_release(n);
}

void perf_names_release(struct perf_names *n)
{
	base_map_release(&n->threads);
	base_map_release(&n->numbers);
	free(n->texts);
	*n = (struct perf_names){ 0 };
}
