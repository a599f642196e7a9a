/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * moves DATABASE NAME: the moves (profdb.h) of the images of that base name in all of the database:
 * "START FROM TO EVEN ODD", hexadecimal offsets, or '-' outside. Of pseudo-images NAME is how the
 * facility begins.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profdb.h"

static void print_off(uint64_t off)
{
	if (off == PROFDB_OUTSIDE)
		fputs("- ", stdout);
	else
		printf("%llx ", (unsigned long long)off);
}

static int print(void *ctx, const char *file, struct profdb_profile *p)
{
	const char *name = ctx, *path = profdb_profile_path(p, 0);
	const char *base = path ? base_path_name(path) : "";
	bool wanted = profdb_profile_kind(p) == PROFDB_DYNAMIC
			      ? strncmp(base, name, strlen(name)) == 0
			      : strcmp(base, name) == 0;

	(void)file;
	for (size_t i = 0; wanted && i < profdb_profile_nr_edges(p); i++) {
		const struct profdb_edge *m = profdb_profile_edge(p, i);

		print_off(m->start);
		print_off(m->from);
		print_off(m->to);
		printf("%llu %llu\n", (unsigned long long)m->count[0],
		       (unsigned long long)m->count[1]);
	}
	profdb_profile_free(p);
	return 0;
}

static int walk(struct profdb *db, const char *epoch, char *name, struct base_err *err)
{
	char **platforms = profdb_platforms(db, epoch, err);
	int r = 0;

	for (size_t i = 0; r >= 0 && platforms && platforms[i]; i++)
		r = profdb_walk(db, epoch, platforms[i], print, NULL, name, err);
	free(platforms);
	return r;
}

int main(int argc, char **argv)
{
	struct base_err err = { 0 };
	struct profdb *db = NULL;
	char **epochs;
	int r;

	if (argc != 3) {
		fputs("usage: moves DATABASE NAME\n", stderr);
		return BASE_EXIT_USAGE;
	}
	r = profdb_open(argv[1], false, &db, &err);
	epochs = r < 0 ? NULL : profdb_epochs(db, &err);
	for (size_t i = 0; r >= 0 && epochs && epochs[i]; i++)
		r = walk(db, epochs[i], argv[2], &err);
	free(epochs);
	profdb_close(db);
	if (r < 0)
		base_err_print(&err, "moves", stderr);
	return r < 0 ? BASE_EXIT_FAILED : BASE_EXIT_OK;
}
