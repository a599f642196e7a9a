/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpicosts: keep what blocks cost, from samples and exact counts of the same run. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "estimate.h"
#include "fleet.h"
#include "measured.h"
#include "report.h"
#include "select.h"
#include "tools.h"

static struct select sel;

static const struct base_opt options[] = {
	SELECT_OPTIONS_DB_ALONE(sel),
	SELECT_OPTION_LABEL(sel),
	SELECT_OPTIONS_WORKLOAD(sel),
	SELECT_OPTIONS_FILES(sel.files, sel.maps),
	{ "event", BASE_OPT_STRING, &sel.event, "EVENT",
	  "Costs in this event (default: of those that measure time, the one with most samples).",
	  0, 0 },
	{ "json", BASE_OPT_FLAG, &sel.json, NULL, "Print JSON with the same rows (dcpijson(5)).", 0,
	  0 },
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

struct keeping {
	struct analysis *a;
	const struct exact *truth;
	size_t event;
	struct json_object *images; /* JSON */
	uint64_t *total;	    /* totals of the counted images, by event */
	size_t nr;		    /* number of these images */
	bool failed;		    /* with one of them */
};

static void print_kept(const struct analysis_image *ai, const struct estimate_kept *kept)
{
	report_print_clean(stdout, ai->name);
	printf(": %" PRIu64 " block%s with %" PRIu64 " of %" PRIu64 " sample%s\n", kept->blocks,
	       kept->blocks == 1 ? "" : "s", kept->in_blocks, kept->samples,
	       kept->samples == 1 ? "" : "s");
}

static void json_kept(struct keeping *k, const struct analysis_image *ai,
		      const struct estimate_kept *kept, const struct base_err *err)
{
	struct json_object *o = json_object_new_object();
	char id[BASE_ID_TEXT_LEN];

	json_object_object_add(o, "image", report_json_text(ai->name));
	json_object_object_add(
		o, "build_id",
		json_object_new_string(base_id_text(profdb_profile_image(ai->profile), id)));
	json_object_object_add(o, "samples", json_object_new_uint64(kept->samples));
	json_object_object_add(o, "blocks", json_object_new_uint64(kept->blocks));
	json_object_object_add(o, "samples_in_blocks", json_object_new_uint64(kept->in_blocks));
	json_object_object_add(o, "error", err->code ? report_json_text(err->text) : NULL);
	json_object_array_add(k->images, o);
}

/* An image that is missing, or whose procedures cannot be read, hinders no other. */
static void keep_image(struct keeping *k, struct analysis_image *ai)
{
	struct base_err err = { 0 };
	struct estimate_kept kept;
	int r = estimate_costs_keep(k->a, ai, k->event, k->truth, k->a->db, &kept, &err);

	k->nr++;
	for (size_t i = 0; i < k->a->nr_events; i++)
		k->total[i] += ai->count[i];
	if (r < 0) {
		base_err_print(&err, cmd.name, stderr);
		k->failed = true;
	}
	if (sel.json)
		json_kept(k, ai, &kept, &err);
	else if (r >= 0)
		print_kept(ai, &kept);
}

/* The one with most samples: instructions tell how often a block ran, not what that costs. */
static int event_of_time(const struct analysis *a)
{
	int best = -ENOENT;

	for (size_t i = 0; i < a->nr_events; i++)
		if (estimate_model(a->events[i].name) == FREQ_TIME && a->events[i].sum &&
		    (best < 0 || a->events[i].sum > a->events[best].sum))
			best = (int)i;
	return best;
}

static int keep_all(struct keeping *k, struct base_err *err)
{
	int event = event_of_time(k->a);

	if (event < 0) {
		base_fail(err, event, "no samples of time are chosen");
		base_hint(err, "costs are times: sample cycles, cpu-clock or tick");
		return event;
	}
	k->event = (size_t)event;
	for (size_t i = 0; i < k->a->nr_images; i++)
		if (exact_find(k->truth, profdb_profile_image(k->a->images[i]->profile)))
			keep_image(k, k->a->images[i]);
	if (!k->nr) {
		base_fail(err, -ENOENT, "no image that was counted has samples");
		base_hint(err, "sample the program with the input that dcpix counted");
		return -ENOENT;
	}
	return 0;
}

static int print_json(struct keeping *k, struct base_err *err)
{
	struct json_object *root = report_json("dcpicosts/1", k->a, k->total);
	int r;

	json_object_object_add(root, "event", json_object_new_string(k->a->events[k->event].name));
	json_object_object_add(root, "images", k->images);
	k->images = NULL;
	r = report_json_print(root, k->a, stdout);
	return r < 0 ? base_fail_errno(err, r, "cannot print") : 0;
}

static int keep(struct analysis *a, const struct exact *truth, struct base_err *err)
{
	struct keeping k = { .a = a, .truth = truth };
	int r;

	k.images = sel.json ? json_object_new_array() : NULL;
	k.total = calloc(a->nr_events + 1, sizeof(*k.total));
	r = k.total ? keep_all(&k, err) : base_fail_errno(err, -ENOMEM, "cannot start");
	if (r >= 0 && sel.json)
		r = print_json(&k, err);
	json_object_put(k.images);
	free(k.total);
	return r < 0 ? r : k.failed ? BASE_EXIT_FAILED : BASE_EXIT_OK;
}

/* A cost from a part of the samples would be too low, and spoil every estimate from then on. */
static int check_samples(const struct analysis *a, struct base_err *err)
{
	if (!a->nr_bad)
		return 0;
	base_fail(err, a->bad[0].err.code, "no costs are kept, as samples are missing");
	base_hint(err, "-epoch and -platform leave out what is not of the run");
	return a->bad[0].err.code;
}

static int run(int nr, char **files, struct base_err *err)
{
	struct analysis *a = NULL;
	struct exact truth = { 0 };
	int r = fleet_refuse(&sel, err); /* costs are kept in the database */

	for (int i = 0; i < nr && r >= 0; i++)
		r = exact_read(&truth, files[i], err);
	if (r >= 0)
		r = report_open(&sel, &a, err);
	if (r >= 0)
		r = check_samples(a, err);
	if (r >= 0)
		r = keep(a, &truth, err);
	if (a)
		report_bad(cmd.name, a, stderr);
	analysis_close(a);
	exact_release(&truth);
	return r;
}

static int dcpicosts_main(int argc, char **argv)
{
	return report_main(&cmd, &sel, run, argc, argv);
}

const struct tool dcpicosts_tool = { .cmd = &cmd, .main = dcpicosts_main };
