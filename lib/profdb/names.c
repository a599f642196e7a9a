/* SPDX-License-Identifier: BSD-2-Clause */
/* A list of names grows, is sorted and packed here, and is read from a folder. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profdb_internal.h"

int profdb_names_add(struct profdb_names *n, const char *name)
{
	char *copy;

	if (base_grow(&n->items, &n->cap, n->nr + 1, sizeof(*n->items)) < 0)
		return -ENOMEM;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	n->items[n->nr++] = copy;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void profdb_names_sort(struct profdb_names *n)
{
	size_t kept = 0;

	if (n->nr)
		qsort(n->items, n->nr, sizeof(*n->items), by_name);
	for (size_t i = 0; i < n->nr; i++) {
		if (kept && !strcmp(n->items[kept - 1], n->items[i]))
			free(n->items[i]);
		else
			n->items[kept++] = n->items[i];
	}
	n->nr = kept;
}

void profdb_names_release(struct profdb_names *n)
{
	for (size_t i = 0; i < n->nr; i++)
		free(n->items[i]);
	free(n->items);
	*n = (struct profdb_names){ 0 };
}

char **profdb_names_pack(const struct profdb_names *n, size_t from, size_t to)
{
	size_t len = (to - from + 1) * sizeof(char *);
	char **list, *text;

	for (size_t i = from; i < to; i++)
		len += strlen(n->items[i]) + 1;
	list = malloc(len);
	if (!list)
		return NULL;
	text = (char *)(list + (to - from + 1));
	for (size_t i = from; i < to; i++) {
		list[i - from] = strcpy(text, n->items[i]);
		text += strlen(text) + 1;
	}
	list[to - from] = NULL;
	return list;
}

static int take_entries(struct profdb_names *n, DIR *dir)
{
	struct dirent *e;
	int r;

	for (;;) {
		errno = 0;
		e = readdir(dir);
		if (!e)
			return -errno;
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		r = profdb_names_add(n, e->d_name);
		if (r < 0)
			return r;
	}
}

int profdb_names_list(struct profdb_names *n, int dir_fd, const char *name)
{
	DIR *dir;
	int r = base_dir_open(dir_fd, name, &dir);

	if (r < 0)
		return r;
	r = take_entries(n, dir);
	closedir(dir);
	return r;
}
