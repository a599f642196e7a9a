/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpifdo -advise: what a new layout of each program's code may gain, and what it lacks. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "fdo_advise.h"
#include "fdo_report.h"
#include "report.h"
#include "stalls.h"

#define LEAST_PART 0.01 /* of all samples: an image with fewer has no row */
#define LITTLE	   0.05 /* of its time at branches and the front end: less is little */

struct row {
	const struct analysis_image *ai;
	struct fdo_quality quality;
	struct image_relink relink;
	double part;	      /* of all samples */
	double branch, front; /* parts of its own samples; below 0: not known */
	double taken;	      /* part of its conditional branches; below 0: none */
	uint64_t hot_bytes;   /* of code that its traces reach */
	bool moves;	      /* a linker could lay it out: it is a file */
};

struct rows {
	struct row *v;
	size_t nr, cap;
	size_t event;
};

static uint64_t hot_bytes(const struct fdo *f)
{
	uint64_t sum = 0, end = 0;

	for (size_t i = 0; i < f->nr_ranges; i++) {
		const struct fdo_range *r = &f->ranges[i];
		uint64_t from = r->from > end ? r->from : end;

		if (r->to < from)
			continue;
		sum += r->to - from + 1;
		end = r->to + 1;
	}
	return sum;
}

/* ---- one image ------------------------------------------------------------------------------- */

static int add_stalls(struct row *row, struct analysis *a, struct analysis_image *ai, size_t event,
		      struct base_err *err)
{
	const struct stalls_options o = { .event = event,
					  .least = FREQ_LOW,
					  .outside = STALL_SELECTIVE };
	struct stalls s = { 0 };
	int r = stalls_add_image(&s, a, ai, &o, err);

	if (r >= 0 && s.total.samples > 0) {
		row->branch = s.total.cause[STALL_BRANCH].likely / s.total.samples;
		row->front = s.total.cause[STALL_FRONT_END].likely / s.total.samples;
	}
	stalls_release(&s);
	return r;
}

static int measure(struct row *row, struct image *img, struct base_err *err)
{
	const struct analysis_image *ai = row->ai;
	struct fdo *f = NULL;
	double all;
	int r = fdo_make(ai->profile, img, &f, err);

	if (r < 0)
		return r;
	fdo_quality(f, img, ai->profile, -1, &row->quality);
	all = (double)f->sum[FDO_TAKEN] + (double)f->sum[FDO_FELL];
	row->taken = all > 0 ? (double)f->sum[FDO_TAKEN] / all : -1;
	row->hot_bytes = hot_bytes(f);
	image_relink(img, &row->relink);
	fdo_free(f);
	return 0;
}

/* An image that cannot be opened has no row: the problems below the table name it. */
static int add_image(struct rows *rows, struct analysis *a, struct analysis_image *ai, double part,
		     struct base_err *err)
{
	struct row row = { .ai = ai, .part = part, .branch = -1, .front = -1 };
	struct image *img;
	int r;

	if (analysis_image_open(a, ai, &img, &ai->why) < 0)
		return 0;
	row.moves = ai->kind == PROFDB_FILE;
	r = measure(&row, img, err);
	image_close(img);
	if (r >= 0)
		r = add_stalls(&row, a, ai, rows->event, err);
	if (r >= 0)
		r = base_grow(&rows->v, &rows->cap, rows->nr + 1, sizeof(*rows->v));
	if (r >= 0)
		rows->v[rows->nr++] = row;
	return r;
}

static int by_part(const void *pa, const void *pb)
{
	const struct row *a = pa, *b = pb;

	return (a->part < b->part) - (a->part > b->part);
}

static int gather(struct rows *rows, struct analysis *a, struct base_err *err)
{
	int event = estimate_event(a, NULL), r = 0;

	if (event < 0)
		return base_fail(err, event, "no samples of time or instructions are chosen");
	rows->event = (size_t)event;
	for (size_t i = 0; i < a->nr_images && r >= 0; i++) {
		struct analysis_image *ai = a->images[i];
		double part = (double)ai->count[event] / (double)a->events[event].sum;

		if (part >= LEAST_PART && profdb_profile_nr_edges(ai->profile))
			r = add_image(rows, a, ai, part, err);
	}
	if (rows->nr)
		qsort(rows->v, rows->nr, sizeof(*rows->v), by_part);
	return r;
}

/* ---- what to do ------------------------------------------------------------------------------ */

/* The first thing that stands in the way; else that it would gain. */
static const char *advice(const struct row *row)
{
	double cost = row->branch + row->front;

	if (!row->moves)
		return "made at run time: dcpifdo -json has its edges";
	if (row->relink.packed)
		return "packed: lay it out before";
	if (row->branch >= 0 && cost < LITTLE)
		return "little to gain";
	if (row->quality.unseen < 0 || row->quality.unseen > FDO_UNSEEN_ENOUGH)
		return "may gain; the profile is thin";
	if (!row->relink.symbols)
		return "may gain; stripped: build it anew";
	if (!row->relink.relocations)
		return "may gain; link it by -Wl,--emit-relocs";
	return "may gain; the profile is enough";
}

static void put_percent(struct table *t, double part)
{
	if (part >= 0)
		table_cell(t, "%.1f%%", 100 * part);
	else
		table_cell(t, "-");
}

static int print_table(const struct rows *rows, struct base_err *err)
{
	static const char *const heads[] = { "samples",	  "branches", "front end", "taken",
					     "hot bytes", "traces",   "new" };
	struct table t = { 0 };
	int r;

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		table_column(&t, false, heads[i]);
	table_column(&t, true, "image");
	table_column(&t, true, "advice");
	for (size_t i = 0; i < rows->nr; i++) {
		const struct row *row = &rows->v[i];

		put_percent(&t, row->part);
		put_percent(&t, row->branch);
		put_percent(&t, row->front);
		put_percent(&t, row->taken);
		table_cell(&t, "%" PRIu64, row->hot_bytes);
		table_cell(&t, "%" PRIu64, row->quality.traces);
		put_percent(&t, row->quality.unseen);
		table_cell(&t, "%s", row->ai->name);
		table_cell(&t, "%s", advice(row));
	}
	r = table_print(&t, true, stdout);
	table_release(&t);
	return r < 0 ? base_fail_errno(err, r, "cannot print the table") : 0;
}

static void add_part(struct json_object *o, const char *key, double part)
{
	json_object_object_add(o, key, part >= 0 ? report_json_number(part) : NULL);
}

static struct json_object *row_json(const struct row *row)
{
	struct json_object *o = json_object_new_object();
	char id[BASE_ID_TEXT_LEN];

	json_object_object_add(o, "image", report_json_text(row->ai->name));
	json_object_object_add(
		o, "build_id",
		json_object_new_string(base_id_text(profdb_profile_image(row->ai->profile), id)));
	add_part(o, "samples_part", row->part);
	add_part(o, "branch_part", row->branch);
	add_part(o, "front_end_part", row->front);
	add_part(o, "taken_part", row->taken);
	json_object_object_add(o, "hot_bytes", json_object_new_uint64(row->hot_bytes));
	json_object_object_add(o, "quality", fdo_report_quality_json(&row->quality));
	json_object_object_add(o, "advice", json_object_new_string(advice(row)));
	return o;
}

static int print_json(const struct rows *rows, struct analysis *a, struct base_err *err)
{
	uint64_t sums[ANALYSIS_NR_EVENTS];
	struct json_object *root = report_json("dcpifdo/1", a, report_sums(a, sums));
	struct json_object *list = json_object_new_array();
	int r;

	for (size_t i = 0; i < rows->nr; i++)
		json_object_array_add(list, row_json(&rows->v[i]));
	json_object_object_add(root, "images", list);
	r = report_json_print(root, a, stdout);
	return r < 0 ? base_fail_errno(err, r, "cannot print") : 0;
}

int fdo_advise(struct analysis *a, bool json, struct base_err *err)
{
	struct rows rows = { 0 };
	int r = gather(&rows, a, err);

	if (r >= 0 && !rows.nr) {
		r = base_fail(err, -ENOENT,
			      "no program with a hundredth of the samples has traces");
		base_hint(err, "dcpid -vwindows 10 makes traces, of one sample in ten");
	} else if (r >= 0) {
		r = json ? print_json(&rows, a, err) : print_table(&rows, err);
	}
	free(rows.v);
	return r;
}
