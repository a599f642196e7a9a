/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "announce.h"

void announce_begin(dbgdyn_context *context)
{
	/* After a refusal the later calls do nothing, so there is nothing to ask for. */
	dbgdyn_begin("calc", strlen("calc"), NULL, context);
}

void announce_routine(void *context, const struct calc_routine *routine)
{
	struct dbgdyn_line *lines = calloc(routine->nr_lines + 1, sizeof(*lines));
	struct dbgdyn_string file = { routine->path, strlen(routine->path) };
	struct dbgdyn_routine r = {
		.size = sizeof(r),
		.name = { routine->name, strlen(routine->name) },
		.code = routine->code,
		.code_len = routine->code_len,
		.lines = lines,
		.nr_lines = lines ? routine->nr_lines : 0,
		.files = &file,
		.nr_files = 1,
	};

	for (size_t i = 0; i < r.nr_lines; i++)
		lines[i] = (struct dbgdyn_line){ .code_off = routine->lines[i].code_off,
						 .line = routine->lines[i].line };
	/* Full or refused: the program runs all the same, and the daemon counts what it lacks. */
	dbgdyn_register(*(dbgdyn_context *)context, &r, NULL);
	free(lines);
}

const char *announce_end(dbgdyn_context context)
{
	int result = dbgdyn_end(context);

	if (result == DBGDYN_ETIMEDOUT || result == DBGDYN_EIO)
		return dbgdyn_strerror(result);
	return NULL;
}
