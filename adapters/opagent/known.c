/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent finds a routine that it registered by its address or by its name. */
#include "opagent_internal.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

/* entries with a name are in both trees */
static void *by_code, *by_vma;

static int order(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_code(const void *a, const void *b)
{
	return order(((const struct opagent_code *)a)->code,
		     ((const struct opagent_code *)b)->code);
}

static int compare_vma(const void *a, const void *b)
{
	return order(((const struct opagent_code *)a)->vma, ((const struct opagent_code *)b)->vma);
}

static struct opagent_code *find(uintptr_t code)
{
	struct opagent_code key = { .code = code }, **found = tfind(&key, &by_code, compare_code);

	return found ? *found : NULL;
}

struct opagent_code *opagent_known_get(uintptr_t code)
{
	struct opagent_code *c = find(code);

	if (c)
		return c;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->code = code;
	if (tsearch(c, &by_code, compare_code))
		return c;
	free(c);
	return NULL;
}

static void forget_name(struct opagent_code *c)
{
	if (!c->name)
		return;
	tdelete(c, &by_vma, compare_vma);
	free(c->name);
	c->name = NULL;
}

static void remove_one(struct opagent_code *c)
{
	forget_name(c);
	tdelete(c, &by_code, compare_code);
	opagent_lines_release(&c->lines);
	free(c);
}

void opagent_known_remove(uintptr_t code)
{
	struct opagent_code *c = find(code);

	if (c)
		remove_one(c);
}

void opagent_known_remove_vma(uint64_t vma)
{
	struct opagent_code key = { .vma = vma }, **found = tfind(&key, &by_vma, compare_vma);

	if (found)
		remove_one(*found);
}

int opagent_known_name(struct opagent_code *c, const char *name, uint64_t vma, size_t code_len)
{
	struct opagent_code key = { .vma = vma }, **found = tfind(&key, &by_vma, compare_vma);
	char *copy = strdup(name);

	if (!copy)
		return -ENOMEM;
	if (found && *found != c)
		remove_one(*found);
	/* Its lines were those of what stood there. */
	if (c->name)
		opagent_lines_release(&c->lines);
	forget_name(c);
	c->vma = vma;
	c->code_len = code_len;
	c->name = copy;
	if (tsearch(c, &by_vma, compare_vma))
		return 0;
	c->name = NULL;
	free(copy);
	return -ENOMEM;
}
