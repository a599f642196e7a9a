/* SPDX-License-Identifier: BSD-2-Clause */
/* How much of the time CPUs were idle, as the kernel told the daemon. */
#include <stdlib.h>
#include <string.h>

#include "workload.h"

/* A note is of the time before it; of most windows of minutes some seconds too much or too little
 * are taken. */
static void add_notes(const struct analysis *a, const struct profdb_workloads *w,
		      struct workload_idle *sum)
{
	for (size_t i = 0; i < profdb_workloads_nr_notes(w); i++) {
		const struct profdb_note *n = profdb_workloads_note_at(w, i);

		if (n->kind != PROFDB_NOTE_IDLE ||
		    (a->window.chosen && (n->utc <= a->window.since || n->utc > a->window.until)))
			continue;
		sum->idle_s += (double)n->n / 1000;
		sum->all_s += (double)n->of / 1000;
	}
}

static void add_epoch(struct analysis *a, const char *epoch, struct workload_idle *sum)
{
	char **platforms = profdb_platforms(a->db, epoch, NULL);
	struct profdb_workloads *w;

	for (size_t i = 0; platforms && platforms[i]; i++) {
		bool chosen = false;

		for (size_t k = 0; k < a->nr_platforms; k++)
			chosen |= strcmp(a->platforms[k], platforms[i]) == 0;
		if (!chosen ||
		    profdb_workloads_load_images(a->db, epoch, platforms[i], &w, NULL) < 0)
			continue;
		add_notes(a, w, sum);
		profdb_workloads_free(w);
	}
	free(platforms); /* one allocation, see profdb.h */
}

bool workload_idle(struct analysis *a, struct workload_idle *out)
{
	*out = (struct workload_idle){ 0 };
	if (!a->db || a->nr_epochs > WORKLOAD_IDLE_EPOCHS)
		return false;
	for (size_t i = 0; i < a->nr_epochs; i++)
		add_epoch(a, a->epochs[i].name, out);
	return out->all_s > 0;
}
