/* SPDX-License-Identifier: BSD-2-Clause */
/* The time that an epoch spans, and the epochs that have a part of a window of time. */
#include <stdlib.h>

#include "profdb_internal.h"

/* When the last flush of any platform was; 0: there is none. */
static int64_t last_written(struct profdb *db, const char *epoch)
{
	char **platforms = profdb_platforms(db, epoch, NULL);
	int64_t last = 0;

	for (size_t i = 0; platforms && platforms[i]; i++) {
		/* Its second is not over. */
		int64_t at = (int64_t)(profdb_epoch_written(db, epoch, platforms[i]) / 1000000000);

		last = at >= last ? at + 1 : last;
	}
	free(platforms);
	return last;
}

void profdb_epoch_span(struct profdb *db, const char *epoch, int64_t *begin, int64_t *end)
{
	int64_t named = profdb_epoch_begin_time(epoch), written = last_written(db, epoch);

	*begin = written && written < named ? written : named;
	*end = written > named ? written : named + 1;
}

size_t profdb_epochs_within(struct profdb *db, char **epochs, int64_t since, int64_t until)
{
	size_t kept = 0;

	for (size_t i = 0; epochs[i]; i++) {
		int64_t begin = profdb_epoch_begin_time(epochs[i]), end;

		/* The name says it of most. */
		if (begin >= until || begin < since)
			profdb_epoch_span(db, epochs[i], &begin, &end);
		else
			end = INT64_MAX;
		if (begin < until && end > since)
			epochs[kept++] = epochs[i];
	}
	epochs[kept] = NULL;
	return kept;
}
