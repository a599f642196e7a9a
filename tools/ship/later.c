/* SPDX-License-Identifier: BSD-2-Clause */
/* Batches that a store refused are tried again behind all others, after pauses that grow. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ship.h"

enum { PAUSE_FIRST = 60, PAUSE_MOST = 3600, PAUSES = 6, FORGET_AFTER = 3600 };
enum { TROUBLES = 3, TROUBLE_MOST = 600, TROUBLE_PAUSES = 4 };

struct refused {
	char *name;
	uint64_t turn;	/* the last one in which it was tried */
	uint64_t tries; /* of turns in which the store took other batches */
	int64_t tried, due;
	bool seen; /* this turn's list has it */
};

static struct refused *find(const struct later *l, const char *name)
{
	return base_map_get(&l->by_name, name, strlen(name));
}

static void drop(struct later *l, struct refused *x)
{
	base_map_del(&l->by_name, x->name, strlen(x->name));
	free(x->name);
	free(x);
}

/* The length of "FOLDER" in "FOLDER/NAME"; 0: none. */
static size_t folder_len(const char *name)
{
	const char *slash = strchr(name, '/');

	return slash ? (size_t)(slash - name) : 0;
}

int later_begin(struct later *l)
{
	void *value;
	int r = 0;

	l->turn++;
	base_map_release(&l->folders);
	base_map_release(&l->skipped);
	for (size_t i = 0; r >= 0 && base_map_next(&l->by_name, &i, &value);) {
		struct refused *x = value;
		size_t len = folder_len(x->name);
		uint64_t first = (uintptr_t)base_map_get(&l->folders, x->name, len);

		x->seen = false;
		if (len && (!first || first > x->turn))
			r = base_map_set(&l->folders, x->name, len, (void *)(uintptr_t)x->turn);
	}
	return r;
}

struct later_rank later_rank(struct later *l, const char *name, int64_t now)
{
	struct refused *x = find(l, name);
	size_t len = folder_len(name);
	uint64_t first = len ? (uintptr_t)base_map_get(&l->folders, name, len) : 0;

	if (x)
		x->seen = true;
	if (x && x->tries)
		return (struct later_rank){ x->due > now ? LATER_NOT_YET : LATER_ALONE, x->due };
	/* Batches that were not tried come before others of their folder. */
	if (x)
		return (struct later_rank){ LATER_BEHIND, (int64_t)(2 * x->turn + 1) };
	return (struct later_rank){ first ? LATER_BEHIND : LATER_FIRST, (int64_t)(2 * first) };
}

int later_note(struct later *l, const char *name)
{
	struct refused *x = find(l, name);
	size_t len = folder_len(name);

	if (!x) {
		x = calloc(1, sizeof(*x));
		if (!x || !(x->name = strdup(name)) ||
		    base_map_set(&l->by_name, name, strlen(name), x) < 0) {
			if (x)
				free(x->name);
			free(x);
			return -ENOMEM;
		}
	}
	x->seen = true;
	x->turn = l->turn;
	return len ? base_map_set(&l->skipped, name, len, l) : 0;
}

bool later_skip(const struct later *l, const char *name)
{
	size_t len = folder_len(name);

	return len && base_map_get(&l->skipped, name, len);
}

void later_taken(struct later *l, const char *name)
{
	struct refused *x = find(l, name);

	if (x)
		drop(l, x);
}

/* The store took others in this turn, so the refusal is the batch's own. */
static bool blame(struct refused *x, int64_t now)
{
	int64_t pause = PAUSE_MOST;

	if (x->tries < PAUSES)
		pause = (int64_t)PAUSE_FIRST << x->tries;
	x->due = now + pause;
	return x->tries++ == 0;
}

/* Batches that are no more count for their folders for a while. */
static void drop_old(struct later *l, int64_t now)
{
	void *value;

	for (size_t i = 0; base_map_next(&l->by_name, &i, &value);) {
		struct refused *x = value;

		if (x->seen || now - x->tried < FORGET_AFTER)
			continue;
		drop(l, x);
		i--;
	}
}

int64_t later_pause(const struct later *l, int64_t now)
{
	int64_t left = l->not_before - now;

	/* More than the longest is a clock that was set back. */
	return left > 0 && left <= TROUBLE_MOST ? left : 0;
}

static void note_trouble(struct later *l, bool took, bool trouble, int64_t now)
{
	int64_t pause = TROUBLE_MOST;

	if (took || !trouble) {
		l->troubles = 0;
		return;
	}
	if (++l->troubles < TROUBLES)
		return;
	if (l->troubles < TROUBLES + TROUBLE_PAUSES)
		pause = (int64_t)PAUSE_FIRST << (l->troubles - TROUBLES);
	l->not_before = now + pause;
}

size_t later_end(struct later *l, bool took, bool trouble, int64_t now)
{
	size_t blamed = 0;
	void *value;

	for (size_t i = 0; base_map_next(&l->by_name, &i, &value);) {
		struct refused *x = value;

		if (x->turn != l->turn)
			continue;
		x->tried = now;
		if (took)
			blamed += blame(x, now);
	}
	note_trouble(l, took, trouble, now);
	drop_old(l, now);
	return blamed;
}

void later_release(struct later *l)
{
	void *value;

	for (size_t i = 0; base_map_next(&l->by_name, &i, &value);) {
		struct refused *x = value;

		free(x->name);
		free(x);
	}
	base_map_release(&l->by_name);
	base_map_release(&l->folders);
	base_map_release(&l->skipped);
}
