/* SPDX-License-Identifier: BSD-2-Clause */
/* Batches of a folder are sent, several in one request, and removed once the store has them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ship.h"

enum { BATCH_FILE_MAX = 1 << 30, AT_ONCE = 64 << 20 };

struct names {
	char **v;
	size_t nr, cap;
};

static void names_release(struct names *n)
{
	for (size_t i = 0; i < n->nr; i++)
		free(n->v[i]);
	free(n->v);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list(int dir_fd, struct names *out)
{
	struct dirent *e;
	DIR *d;
	int r = base_dir_open(dir_fd, ".", &d);

	if (r < 0)
		return r;
	while (r >= 0 && (e = readdir(d))) {
		size_t len = strlen(e->d_name), suffix = strlen(SHIP_SUFFIX);

		if (e->d_name[0] == '.' || len <= suffix ||
		    strcmp(e->d_name + len - suffix, SHIP_SUFFIX) != 0)
			continue;
		r = base_grow(&out->v, &out->cap, out->nr + 1, sizeof(*out->v));
		if (r >= 0 && !(out->v[out->nr++] = strdup(e->d_name)))
			r = -ENOMEM;
	}
	closedir(d);
	if (r >= 0 && out->nr)
		qsort(out->v, out->nr, sizeof(*out->v), compare);
	return r;
}

static void set_aside(struct send *out, int dir_fd, const char *name, const struct base_err *why)
{
	char bad[300];

	snprintf(bad, sizeof(bad), "%.255s.bad", name);
	fprintf(stderr, "%s: warning: batch '%s' is set aside as '%s': %s\n", out->prog, name, bad,
		why->text);
	renameat(dir_fd, name, dir_fd, bad);
}

/* 1: it is in @to; 0: it is damaged. */
static int take(int dir_fd, const char *name, struct send *out, struct store_batch *to,
		struct base_err *err)
{
	struct store_batch b = { 0 };
	struct base_buf file = { 0 };
	struct base_err why = { 0 };
	int r = base_file_read(dir_fd, name, BATCH_FILE_MAX, &file, &why);

	if (r >= 0)
		r = store_batch_parse(file.data, file.len, &b, &why);
	if (r >= 0)
		r = store_batch_add(to, &b);
	out->bytes += r < 0 ? 0 : file.len;
	store_batch_release(&b);
	base_buf_release(&file);
	if (r == -ENOMEM)
		return base_fail_errno(err, r, "cannot read batch '%s'", name);
	if (r < 0)
		set_aside(out, dir_fd, name, &why);
	return r >= 0;
}

/* Sends those from @from on that fit into one request; returns the index behind them. */
static ssize_t send_some(struct store_server *s, int dir_fd, const struct names *n, size_t from,
			 struct send *out, struct base_err *err)
{
	struct store_batch all = { 0 };
	size_t to = from;
	int r = 0;

	for (; r >= 0 && to < n->nr && store_batch_len(&all) < AT_ONCE; to++) {
		r = take(dir_fd, n->v[to], out, &all, err);
		if (r == 0) {
			free(n->v[to]);
			n->v[to] = NULL;
		}
	}
	if (r >= 0)
		r = store_send(s, &all, err);
	for (size_t i = from; i < to && r >= 0; i++) {
		if (!n->v[i])
			continue;
		if (unlinkat(dir_fd, n->v[i], 0) < 0)
			r = base_fail_errno(err, -errno, "cannot remove '%s'", n->v[i]);
		out->batches++;
	}
	store_batch_release(&all);
	return r < 0 ? r : (ssize_t)to;
}

int send_batches(struct store_server *s, int dir_fd, struct send *out, struct base_err *err)
{
	struct names n = { 0 };
	int r = list(dir_fd, &n);
	ssize_t at = r < 0 ? base_fail_errno(err, r, "cannot list batches") : 0;

	out->batches = out->bytes = 0;
	while (at >= 0 && (size_t)at < n.nr)
		at = send_some(s, dir_fd, &n, (size_t)at, out, err);
	names_release(&n);
	return at < 0 ? (int)at : 0;
}
