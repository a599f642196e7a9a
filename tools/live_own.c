/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon tells an ordinary user no path of a file that may lie in another user's folder. The
 * user's own processes have the file mapped too, and /proc says from where.
 */
#include <stdlib.h>
#include <string.h>

#include "live.h"

enum { PIDS_MAX = 64 };

/* The path on a line of /proc/PID/maps, if that is of code in a file. */
static const char *code_of(char *line)
{
	char *perms = strchr(line, ' '), *path = strchr(line, '/');

	if (!perms || strlen(perms) < 4 || perms[3] != 'x' || !path)
		return NULL;
	path[strcspn(path, "\n")] = '\0';
	return path;
}

/* An image is known by its identity, and gets the path for its name. */
static void name_image(struct live_sums *s, const char *path)
{
	struct analysis_image *ai;
	char *name;

	if (base_map_get(&s->looked, path, strlen(path)) ||
	    base_map_set(&s->looked, path, strlen(path), s) < 0 ||
	    analysis_image_add(s->a, path, &ai, NULL) < 0 || strcmp(ai->name, LIVE_UNTOLD) != 0)
		return;
	name = strdup(path);
	if (!name)
		return;
	free(ai->name);
	ai->name = name;
}

static void look_in(struct live_sums *s, int32_t pid)
{
	char file[64], *line = NULL;
	const char *path;
	size_t cap = 0;
	FILE *f;

	snprintf(file, sizeof(file), "/proc/%d/maps", pid);
	f = fopen(file, "re");
	while (f && getline(&line, &cap, f) > 0) {
		path = code_of(line);
		if (path)
			name_image(s, path);
	}
	free(line);
	if (f)
		fclose(f);
}

void live_own_find(struct live_sums *s, const struct profdb_workloads *w)
{
	size_t nr = profdb_workloads_nr(w);

	/* A file that was not there, or not mapped, may be now. */
	base_map_release(&s->looked);
	for (size_t i = 0; i < nr && i < PIDS_MAX; i++) {
		int32_t pid = profdb_workloads_workload(w, i)->pid;

		if (pid > 0)
			look_in(s, pid);
	}
}
