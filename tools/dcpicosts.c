/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpicosts: keep what blocks cost, from samples and exact counts of the same run. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "estimate.h"
#include "report.h"
#include "select.h"
#include "tools.h"

static struct select sel;

static const struct base_opt options[] = {
	SELECT_OPTIONS_DB(sel),
	SELECT_OPTIONS_FILES(sel.files, sel.maps),
	{ "event", BASE_OPT_STRING, &sel.event, "EVENT",
	  "Costs in this event (default: of those that measure time, the one with most samples).",
	  0, 0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpicosts",
	.summary = "keep measured costs of blocks, for later estimates",
	.operands = "FILE.xct …",
	.opts = options,
	.examples = (const struct base_example[]){ { "dcpicosts -db /var/lib/dcpi a.xct",
						     "The newest epoch has the samples of the run "
						     "that a.xct counted." },
						   { NULL, NULL } },
	.min_operands = 1,
	.max_operands = -1,
};

/* An image that is missing, or whose procedures cannot be read, hinders no other. */
static int keep_image(struct analysis *a, struct analysis_image *ai, size_t event,
		      const struct exact *truth)
{
	struct base_err err = { 0 };
	struct estimate_kept kept;
	int r = estimate_costs_keep(a, ai, event, truth, a->db, &kept, &err);

	if (r < 0) {
		base_err_print(&err, cmd.name, stderr);
		return BASE_EXIT_FAILED;
	}
	printf("%s: %" PRIu64 " blocks with %" PRIu64 " of %" PRIu64 " samples\n", ai->name,
	       kept.blocks, kept.in_blocks, kept.samples);
	return BASE_EXIT_OK;
}

static int keep(struct analysis *a, const struct exact *truth, struct base_err *err)
{
	int event = estimate_event(a), code = BASE_EXIT_OK;
	size_t counted = 0;

	if (event < 0)
		return base_fail(err, event, "no samples of time or instructions are chosen");
	for (size_t i = 0; i < a->nr_images; i++) {
		if (!exact_find(truth, profdb_profile_image(a->images[i]->profile)))
			continue;
		counted++;
		if (keep_image(a, a->images[i], (size_t)event, truth) != BASE_EXIT_OK)
			code = BASE_EXIT_FAILED;
	}
	if (!counted) {
		base_fail(err, -ENOENT, "no image that was counted has samples");
		base_hint(err, "sample the program with the input that dcpix counted");
		return -ENOENT;
	}
	return code;
}

static int run(int nr, char **files, struct base_err *err)
{
	struct analysis *a = NULL;
	struct exact truth = { 0 };
	int r = 0;

	for (int i = 0; i < nr && r >= 0; i++)
		r = exact_read(&truth, files[i], err);
	if (r >= 0)
		r = report_open(&sel, &a, err);
	if (r >= 0)
		r = keep(a, &truth, err);
	analysis_close(a);
	exact_release(&truth);
	return r;
}

int dcpicosts_main(int argc, char **argv)
{
	return report_main(&cmd, &sel, run, argc, argv);
}
