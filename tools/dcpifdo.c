/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpifdo: instruction traces as profiles for compilers, linkers and runtimes. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "choose.h"
#include "fdo.h"
#include "line_profile.h"
#include "paths.h"
#include "report.h"
#include "samples.h"
#include "select.h"
#include "stalls.h"
#include "tools.h"

/* ---- the traces of a program: of all chosen epochs, aged, and of its other builds ------------ */

#define DAY 86400.0

/* Another build whose traces were taken. */
struct build {
	struct base_id id;
	struct image *img;
	struct fdo_version *version;
	struct fdo_carried carried;
	uint32_t procedures, found; /* with traces; known in the build that the profile is for */
};

struct gather {
	const struct select *sel;
	struct analysis *a;
	struct analysis_image *ai; /* the build that the profile is for, opened as @img */
	struct image *img;
	double age;    /* days in which traces come to count half; 0: they stay as they are */
	bool versions; /* other builds are taken */
	bool raw;      /* counts are those of traces */
	/* The result: */
	struct fdo *f;
	struct build *builds;
	size_t nr_builds, cap_builds;
	struct fdo_making *making; /* its own */
};

static bool is_build(const struct analysis_image *a, const struct analysis_image *b)
{
	return a->kind == b->kind &&
	       base_id_equal(profdb_profile_image(a->profile), profdb_profile_image(b->profile));
}

/* A pseudo-image has a name for each process, and grows: its file's name is its identity. */
static bool is_own(const struct analysis_image *ai, const struct gather *g)
{
	const char *one = profdb_profile_path(ai->profile, 0);
	const char *two = profdb_profile_path(g->ai->profile, 0);

	if (ai->kind != PROFDB_DYNAMIC)
		return is_build(ai, g->ai);
	return g->ai->kind == PROFDB_DYNAMIC && one && two &&
	       strcmp(base_path_name(one), base_path_name(two)) == 0;
}

/* Is it a program of the same name? */
static bool is_version(const struct analysis_image *ai, const struct gather *g)
{
	const char *one, *two;

	if (ai->kind != PROFDB_FILE || g->ai->kind != PROFDB_FILE)
		return false;
	for (size_t i = 0; (one = profdb_profile_path(ai->profile, i)); i++)
		for (size_t k = 0; (two = profdb_profile_path(g->ai->profile, k)); k++)
			if (strcmp(base_path_name(one), base_path_name(two)) == 0)
				return true;
	return false;
}

/* ---- other builds ---------------------------------------------------------------------------- */

static struct build *find_build(struct gather *g, const struct base_id *id)
{
	for (size_t i = 0; i < g->nr_builds; i++)
		if (base_id_equal(&g->builds[i].id, id))
			return &g->builds[i];
	return NULL;
}

/* The same build among all chosen epochs: report_problems tells of those where it is not found. */
static struct analysis_image *among_all(struct gather *g, struct analysis_image *ai)
{
	for (size_t i = 0; i < g->a->nr_images; i++)
		if (is_build(g->a->images[i], ai))
			return g->a->images[i];
	return ai;
}

/* *@out NULL: its file is not found. */
static int open_build(struct gather *g, struct analysis_image *ai, struct build **out,
		      struct base_err *err)
{
	struct build b = { .id = *profdb_profile_image(ai->profile) };
	int r;

	*out = find_build(g, &b.id);
	ai = among_all(g, ai);
	if (*out || analysis_image_open(g->a, ai, &b.img, &ai->why) < 0)
		return 0;
	r = fdo_version_open(b.img, g->img, &b.version, err);
	if (r >= 0 &&
	    base_grow(&g->builds, &g->cap_builds, g->nr_builds + 1, sizeof(*g->builds)) < 0)
		r = base_fail_errno(err, -ENOMEM, "cannot take other builds");
	if (r < 0) {
		fdo_version_close(b.version);
		image_close(b.img);
		return r;
	}
	*out = &g->builds[g->nr_builds++];
	**out = b;
	return 0;
}

static double correct(const void *paths, uint64_t vaddr)
{
	return paths_correction(paths, vaddr);
}

/* The traces of @ai, corrected by all that were chosen of that build. 0 or -ENOMEM. */
static int traces_of(struct gather *g, struct analysis_image *ai, struct image *img, double weight,
		     struct fdo_traces *out, struct base_err *err)
{
	const struct paths *paths = NULL;
	int r = g->raw ? 0 : analysis_image_paths(among_all(g, ai), img, &paths, err);

	*out = (struct fdo_traces){ ai->profile, weight, paths ? correct : NULL, paths };
	return r;
}

static int add_own(struct gather *g, struct analysis_image *ai, double weight, struct base_err *err)
{
	struct fdo_traces t;
	int r = traces_of(g, ai, g->img, weight, &t, err);

	return r < 0 ? r : fdo_add(g->making, &t, err);
}

static int add_build(struct gather *g, struct analysis_image *ai, double weight,
		     struct base_err *err)
{
	struct fdo_traces t;
	struct build *b;
	int r = open_build(g, ai, &b, err);

	if (r >= 0 && b)
		r = traces_of(g, ai, b->img, weight, &t, err);
	return r < 0 || !b ? r : fdo_add_version(g->making, &t, b->version, &b->carried, err);
}

/* ---- epochs ---------------------------------------------------------------------------------- */

static int add_images(struct gather *g, struct analysis *a, double weight, struct base_err *err)
{
	int r = 0;

	for (size_t i = 0; i < a->nr_images && r >= 0; i++) {
		struct analysis_image *ai = a->images[i];

		if (!profdb_profile_nr_edges(ai->profile))
			continue;
		if (is_own(ai, g))
			r = add_own(g, ai, weight, err);
		else if (g->versions && is_version(ai, g))
			r = add_build(g, ai, weight, err);
	}
	return r;
}

static int add_epoch(struct gather *g, const char *name, double weight, struct base_err *err)
{
	struct select sel = *g->sel;
	struct analysis *a = NULL;
	int r;

	sel.epoch = name;
	r = report_open(&sel, &a, err);
	if (r >= 0)
		r = add_images(g, a, weight, err);
	analysis_close(a);
	return r;
}

/* Each epoch by itself: the newest counts in full. */
static int add_aged(struct gather *g, struct base_err *err)
{
	const struct analysis *a = g->a;
	int64_t newest = INT64_MIN;
	int r = 0;

	for (size_t i = 0; i < a->nr_epochs; i++)
		if (profdb_epoch_begin_time(a->epochs[i].name) > newest)
			newest = profdb_epoch_begin_time(a->epochs[i].name);
	for (size_t i = 0; i < a->nr_epochs && r >= 0; i++) {
		int64_t older = newest - profdb_epoch_begin_time(a->epochs[i].name);

		r = add_epoch(g, a->epochs[i].name, exp2(-(double)older / DAY / g->age), err);
	}
	return r;
}

/* Makes @f. 0, or negative with @err as of fdo_make. A build whose file is not found is left out,
 * and report_problems tells of it. */
static int gather_traces(struct gather *g, struct base_err *err)
{
	int ended, r = fdo_begin(g->img, &g->making, err);

	if (r < 0)
		return r;
	r = g->age > 0 ? add_aged(g, err) : add_images(g, g->a, 1, err);
	ended = fdo_end(g->making, r < 0 ? NULL : &g->f, err);
	for (size_t i = 0; i < g->nr_builds; i++)
		fdo_version_found(g->builds[i].version, &g->builds[i].procedures,
				  &g->builds[i].found);
	return r < 0 ? r : ended;
}

static void gather_release(struct gather *g)
{
	fdo_free(g->f);
	for (size_t i = 0; i < g->nr_builds; i++) {
		fdo_version_close(g->builds[i].version);
		image_close(g->builds[i].img);
	}
	free(g->builds);
}

/* The image to lay out: of several builds that are to be taken together, that of the file @what. */
static int gather_choose(struct gather *g, const char *what, struct base_err *err)
{
	return g->versions && access(what, F_OK) == 0 ? analysis_image_add(g->a, what, &g->ai, err)
						      : choose_image(g->a, what, &g->ai, err);
}

/* ---- words about a profile, beside the profile itself ---------------------------------------- */

#define PER_SECOND 100	/* traces of a busy program by dcpid -rate 1000 -vwindows 10 */
#define UNPLACED   0.01 /* of all edges: more are worth a warning */

static void print_wanted(const struct fdo_quality *q, FILE *to)
{
	double more = q->wanted - (double)q->traces;

	fprintf(to, "about %.0f traces make it %.0f %%", q->wanted, 100 * FDO_UNSEEN_ENOUGH);
	fprintf(to, ": %.0f seconds more of the program at %d traces a second\n",
		more / PER_SECOND + 1, PER_SECOND);
}

static void print_thin(const char *prog, const struct fdo_quality *q, FILE *to)
{
	if (q->unseen < 0) {
		fprintf(to,
			"%s: warning: the profile is too thin to say how good it is: %" PRIu64
			" traces; some thousands make a good one, at %d a second a minute of the "
			"program\n",
			prog, q->traces, PER_SECOND);
	} else if (q->unseen > FDO_UNSEEN_ENOUGH) {
		fprintf(to,
			"%s: warning: the profile is thin: %.1f %% of what runs next is not in "
			"it; ",
			prog, 100 * q->unseen);
		print_wanted(q, to);
	}
}

/* One line, and a warning for all that makes the profile worth less: too few traces, code that is
 * not what ran. */
static void print_quality(const char *prog, const char *image, const struct fdo_quality *q,
			  FILE *to)
{
	double all = (double)q->taken + (double)q->fell + (double)q->unplaced;

	fprintf(to, "%s: ", prog);
	report_print_clean(to, image);
	fprintf(to, ": %" PRIu64 " traces, %" PRIu64 " taken branches", q->traces, q->taken);
	if (q->text_bytes)
		fprintf(to, " (%.3g for a byte of code)", (double)q->taken / (double)q->text_bytes);
	if (q->samples_part >= 0)
		fprintf(to, ", %.1f %% of the samples in code they reach", 100 * q->samples_part);
	if (q->unseen >= 0)
		fprintf(to, ", %.1f %% of further branches would be new", 100 * q->unseen);
	fputc('\n', to);
	print_thin(prog, q, to);
	if (all > 0 && (double)q->unplaced > UNPLACED * all)
		fprintf(to,
			"%s: warning: %" PRIu64 " edges (%.1f %%) fit no instruction of the image: "
			"its code is not what ran\n",
			prog, q->unplaced, 100 * (double)q->unplaced / all);
}

static double placed_part(const struct build *b)
{
	return b->carried.edges ? (double)b->carried.placed / (double)b->carried.edges : 0;
}

/* A line for each other build: how much of its traces is in the profile. */
static void print_builds(const char *prog, const struct gather *g, FILE *to)
{
	char id[BASE_ID_TEXT_LEN];

	for (size_t i = 0; i < g->nr_builds; i++) {
		const struct build *b = &g->builds[i];

		fprintf(to,
			"%s: build %s: %" PRIu32 " of %" PRIu32
			" procedures and %.1f %% of %" PRIu64 " edges are found in this one\n",
			prog, base_id_text(&b->id, id), b->found, b->procedures,
			100 * placed_part(b), b->carried.edges);
	}
}

/* Warns of all that keeps llvm-bolt from laying out this file anew. */
static void print_relink(const char *prog, const struct image *img, FILE *to)
{
	struct image_relink x;

	image_relink(img, &x);
	if (x.packed)
		fprintf(to,
			"%s: warning: the image is packed, or writes its code: lay out the "
			"program before it is packed\n",
			prog);
	if (!x.symbols)
		fprintf(to,
			"%s: warning: the image is stripped: llvm-bolt needs its symbols, so "
			"give it the file before it was stripped\n",
			prog);
	if (!x.relocations)
		fprintf(to,
			"%s: warning: the image was linked without -Wl,--emit-relocs: "
			"llvm-bolt cannot move its functions\n",
			prog);
}

/* ---- the same as JSON ------------------------------------------------------------------------ */

static int print_root(struct json_object *root, const struct analysis *a, struct base_err *err)
{
	int r = report_json_print(root, a, stdout);

	return r < 0 ? base_fail_errno(err, r, "cannot print") : 0;
}

/* null: below 0. */
static void add_known(struct json_object *o, const char *key, double value)
{
	json_object_object_add(o, key, value >= 0 ? report_json_number(value) : NULL);
}

static struct json_object *quality_json(const struct fdo_quality *q)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "traces", json_object_new_uint64(q->traces));
	json_object_object_add(o, "taken", json_object_new_uint64(q->taken));
	json_object_object_add(o, "not_taken", json_object_new_uint64(q->fell));
	json_object_object_add(o, "unplaced", json_object_new_uint64(q->unplaced));
	json_object_object_add(o, "code_bytes", json_object_new_uint64(q->text_bytes));
	add_known(o, "samples_part", q->samples_part);
	add_known(o, "unseen_part", q->unseen);
	add_known(o, "traces_wanted", q->wanted);
	return o;
}

/* The value of "versions" of dcpifdo/1. */
static struct json_object *builds_json(const struct gather *g)
{
	struct json_object *all = json_object_new_array();
	char id[BASE_ID_TEXT_LEN];

	for (size_t i = 0; i < g->nr_builds; i++) {
		const struct build *b = &g->builds[i];
		struct json_object *o = json_object_new_object();

		json_object_object_add(o, "build_id",
				       json_object_new_string(base_id_text(&b->id, id)));
		json_object_object_add(o, "procedures", json_object_new_uint64(b->procedures));
		json_object_object_add(o, "found", json_object_new_uint64(b->found));
		json_object_object_add(o, "edges", json_object_new_uint64(b->carried.edges));
		json_object_object_add(o, "placed", json_object_new_uint64(b->carried.placed));
		json_object_array_add(all, o);
	}
	return all;
}

static uint64_t offset_in(const struct image_symbol *s, uint64_t vaddr)
{
	return s ? vaddr - s->vaddr : vaddr;
}

static const char *const kind_names[FDO_NR_KINDS] = {
	[FDO_TAKEN] = "taken",	     [FDO_FELL] = "not taken",
	[FDO_JUMP] = "jump",	     [FDO_INDIRECT_JUMP] = "indirect jump",
	[FDO_CALL] = "call",	     [FDO_INDIRECT_CALL] = "indirect call",
	[FDO_RETURN] = "return",     [FDO_RESUMED] = "call outside",
	[FDO_STUB] = "jump outside", [FDO_BEGUN] = "begun",
	[FDO_ENTERED] = "entered",   [FDO_ENDED] = "ended",
	[FDO_UNKNOWN] = "unknown",
};

static struct json_object *edge_json(const struct fdo_edge *e, const struct image_symbol *from,
				     const struct image_symbol *to)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "from", json_object_new_uint64(offset_in(from, e->from)));
	json_object_object_add(o, "to", json_object_new_uint64(offset_in(to, e->to)));
	if (to != from)
		json_object_object_add(o, "to_procedure", report_json_text(to ? to->name : NULL));
	json_object_object_add(o, "kind", json_object_new_string(kind_names[e->kind]));
	json_object_object_add(o, "count", json_object_new_uint64(e->count[0] + e->count[1]));
	return o;
}

static struct json_object *procedure_json(const struct image_symbol *s)
{
	struct json_object *o = json_object_new_object();

	report_json_procedure(o, s->name);
	json_object_object_add(o, "address", report_json_hex(s->vaddr));
	json_object_object_add(o, "size", json_object_new_uint64(s->len));
	json_object_object_add(o, "edges", json_object_new_array());
	return o;
}

/* ---- -advise: what a new layout of each program may gain, and what it lacks ------------------ */

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

static int gather_rows(struct rows *rows, struct analysis *a, struct base_err *err)
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

static struct json_object *row_json(const struct row *row)
{
	struct json_object *o = json_object_new_object();
	char id[BASE_ID_TEXT_LEN];

	json_object_object_add(o, "image", report_json_text(row->ai->name));
	json_object_object_add(
		o, "build_id",
		json_object_new_string(base_id_text(profdb_profile_image(row->ai->profile), id)));
	add_known(o, "samples_part", row->part);
	add_known(o, "branch_part", row->branch);
	add_known(o, "front_end_part", row->front);
	add_known(o, "taken_part", row->taken);
	json_object_object_add(o, "hot_bytes", json_object_new_uint64(row->hot_bytes));
	json_object_object_add(o, "quality", quality_json(&row->quality));
	json_object_object_add(o, "advice", json_object_new_string(advice(row)));
	return o;
}

static int print_rows_json(const struct rows *rows, struct analysis *a, struct base_err *err)
{
	uint64_t sums[ANALYSIS_NR_EVENTS];
	struct json_object *root = report_json("dcpifdo/1", a, report_sums(a, sums));
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < rows->nr; i++)
		json_object_array_add(list, row_json(&rows->v[i]));
	json_object_object_add(root, "images", list);
	return print_root(root, a, err);
}

/* Prints a row for each image with traces, the one with most samples first; as the rows of
 * dcpifdo/1 where @json. 0, or negative with @err. */
static int advise_all(struct analysis *a, bool json, struct base_err *err)
{
	struct rows rows = { 0 };
	int r = gather_rows(&rows, a, err);

	if (r >= 0 && !rows.nr) {
		r = base_fail(err, -ENOENT,
			      "no program with a hundredth of the samples has traces");
		base_hint(err, "dcpid -vwindows 10 makes traces, of one sample in ten");
	} else if (r >= 0) {
		r = json ? print_rows_json(&rows, a, err) : print_table(&rows, err);
	}
	free(rows.v);
	return r;
}

/* ---- what is asked for ----------------------------------------------------------------------- */

static struct feedback feedback;
static const char *output;
static bool bolt, llvm, unsymbolized, gcc, advise, versions, raw;
static double age;

static const struct base_opt options[] = {
	{ "bolt", BASE_OPT_FLAG, &bolt, NULL,
	  "Write branches and ranges of addresses for llvm-bolt (-pa).", 0, 0 },
	{ "llvm", BASE_OPT_FLAG, &llvm, NULL,
	  "Write counts of source lines for clang (-fprofile-sample-use), as dcpi2bb does.", 0, 0 },
	{ "llvm_unsymbolized", BASE_OPT_FLAG, &unsymbolized, NULL,
	  "Write ranges and branches of addresses for llvm-profgen (--unsymbolized-profile).", 0,
	  0 },
	{ "gcc", BASE_OPT_FLAG, &gcc, NULL,
	  "Write counts of source lines for gcc from 12 on (-fauto-profile).", 0, 0 },
	{ "json", BASE_OPT_FLAG, &feedback.sel.json, NULL,
	  "Alone: print how often each branch of the procedures went where, by name and offset. "
	  "With another form: say what was done (dcpijson(5)).",
	  0, 0 },
	{ "advise", BASE_OPT_FLAG, &advise, NULL,
	  "List which programs would gain by a profile, and whether theirs is enough.", 0, 0 },
	{ "versions", BASE_OPT_FLAG, &versions, NULL,
	  "Add what traces saw of other builds of IMAGE: of procedures of the same name, or of "
	  "equal code, where their blocks are the same. IMAGE may be a new build without samples.",
	  0, 0 },
	{ "raw", BASE_OPT_FLAG, &raw, NULL,
	  "Counts are those of traces as they are: code that is slow has too many.", 0, 0 },
	{ "age", BASE_OPT_DOUBLE, &age, "DAYS",
	  "Traces count half for each so many days that their epoch is older than the newest one.",
	  0.001, 100000 },
	{ "o", BASE_OPT_STRING, &output, "FILE",
	  "Write the profile here (default: standard output).", 0, 0 },
	SELECT_OPTIONS_DB(feedback.sel),
	SELECT_OPTION_LABEL(feedback.sel),
	SELECT_OPTIONS_FILES(feedback.sel.files, feedback.sel.maps),
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpifdo",
	.summary = "write a program's traced branches for compilers and linkers",
	.operands = "[IMAGE [PROCEDURE …]]",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpifdo -advise -epoch all", "Which programs would gain." },
			{ "dcpifdo -bolt -o app.pa app; llvm-bolt app -o app.new -p app.pa -pa "
			  "-reorder-blocks=ext-tsp -reorder-functions=hfsort -split-functions",
			  "A program laid out anew." },
			{ "dcpifdo -llvm -o app.prof app; clang -O2 -g "
			  "-fprofile-sample-use=app.prof -o app app.c",
			  "A program compiled by it." },
			{ "dcpifdo -json 'calc[1234]' loop", "The branches of a JIT's routine." },
			{ NULL, NULL } },
	.min_operands = 0,
	.max_operands = -1,
};

static const struct form {
	const bool *chosen;
	const char *name;
	fdo_write *write;
} forms[] = {
	{ &bolt, "bolt", fdo_write_bolt },
	{ &unsymbolized, "llvm_unsymbolized", fdo_write_unsymbolized },
};

/* NULL: none of these. */
static const struct form *chosen_form(void)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (*forms[i].chosen)
			return &forms[i];
	return NULL;
}

/* Lines are not of traces alone, and -advise is about what there is. */
static int refuse_sums(struct base_err *err)
{
	base_fail(err, -DCPI_EUSAGE, "-%s does not go with -%s",
		  versions ? "versions"
		  : raw	   ? "raw"
			   : "age",
		  llvm	? "llvm"
		  : gcc ? "gcc"
			: "advise");
	if (!advise)
		base_hint(err, "-llvm_unsymbolized takes it; or write a profile of each build, and "
			       "add them up: llvm-profdata merge --sample");
	return -DCPI_EUSAGE;
}

static int check(int nr, struct base_err *err)
{
	int nr_forms = bolt + llvm + unsymbolized + gcc + advise;
	const struct form *form = chosen_form();

	if (nr_forms > 1 || (!nr_forms && !feedback.sel.json)) {
		base_fail(err, -DCPI_EUSAGE, "one form is to be chosen");
		base_hint(err, "-bolt, -llvm, -llvm_unsymbolized, -gcc, -json or -advise");
		return -DCPI_EUSAGE;
	}
	if (advise ? nr != 0 : nr == 0)
		return base_fail(err, -DCPI_EUSAGE,
				 advise ? "-advise is about all images: it has no operands"
					: "which image?");
	if ((versions || age > 0 || raw) && (llvm || gcc || advise))
		return refuse_sums(err);
	if (form && nr > 1)
		return base_fail(err, -DCPI_EUSAGE,
				 "-%s is of a whole image: it takes no procedures", form->name);
	return feedback_check(&feedback, FREQ_LOW, err);
}

/* ---- an image's traces ----------------------------------------------------------------------- */

struct making {
	struct gather g;
	struct fdo_quality quality;
	char **names; /* procedures; none: all */
	int nr_names;
	bool *used; /* indexed by name: whether it has edges */
};

static bool wanted(struct making *m, const struct image_symbol *s)
{
	bool yes = !m->nr_names;

	for (int i = 0; i < m->nr_names; i++)
		if (demangle_is(s->name, m->names[i]))
			yes = m->used[i] = true;
	return yes;
}

/* The edges of the wanted procedures, by name and offset: the value of "procedures" of dcpifdo/1.
 */
static struct json_object *edges_json(struct making *m)
{
	struct json_object *all = json_object_new_array(), *edges = NULL;
	const struct image_symbol *last = NULL;

	for (size_t i = 0; i < m->g.f->nr_edges; i++) {
		const struct fdo_edge *e = &m->g.f->edges[i];
		const struct image_symbol *s;

		if (e->kind > FDO_STUB)
			continue;
		s = image_symbol_at(m->g.img, e->from);
		if (!s || !wanted(m, s))
			continue;
		if (s != last) {
			struct json_object *o = procedure_json(s);

			json_object_array_add(all, o);
			edges = json_object_object_get(o, "edges");
			last = s;
		}
		json_object_array_add(edges, edge_json(e, s, image_symbol_at(m->g.img, e->to)));
	}
	return all;
}

static struct json_object *head_json(const struct making *m)
{
	uint64_t sums[ANALYSIS_NR_EVENTS];
	struct json_object *root = report_json("dcpifdo/1", m->g.a, report_sums(m->g.a, sums));
	char id[BASE_ID_TEXT_LEN];

	json_object_object_add(root, "image", report_json_text(m->g.ai->name));
	json_object_object_add(
		root, "build_id",
		json_object_new_string(base_id_text(profdb_profile_image(m->g.ai->profile), id)));
	json_object_object_add(root, "quality", quality_json(&m->quality));
	if (versions)
		json_object_object_add(root, "versions", builds_json(&m->g));
	return root;
}

static int print_edges(struct making *m, struct base_err *err)
{
	struct json_object *root = head_json(m);

	json_object_object_add(root, "procedures", edges_json(m));
	for (int i = 0; i < m->nr_names; i++)
		if (!m->used[i]) {
			json_object_put(root);
			return base_fail(err, -DCPI_ENOSYMBOL,
					 "procedure '%s' of '%s' has no traces", m->names[i],
					 m->g.ai->name);
		}
	return print_root(root, m->g.a, err);
}

static int print_done(struct making *m, struct base_err *err)
{
	struct json_object *root = head_json(m);

	json_object_object_add(root, "files", json_object_new_array());
	done_file(root, output);
	return print_root(root, m->g.a, err);
}

static int put(const struct base_buf *text, struct base_err *err)
{
	if (output)
		return base_output_write(output, 0644, text->data, text->len, err);
	if (feedback.sel.json)
		return 0;
	if (fwrite(text->data, 1, text->len, stdout) != text->len || fflush(stdout) != 0)
		return base_fail_errno(err, -errno, "cannot write the profile");
	return 0;
}

static int write_form(struct making *m, const struct form *form, struct base_err *err)
{
	struct base_buf text = { 0 };
	int r = form->write(m->g.f, &text);

	r = r < 0 ? base_fail_errno(err, r, "cannot write the profile") : put(&text, err);
	base_buf_release(&text);
	if (r < 0)
		return r;
	print_quality(cmd.name, m->g.ai->name, &m->quality, stderr);
	print_builds(cmd.name, &m->g, stderr);
	if (bolt)
		print_relink(cmd.name, m->g.img, stderr);
	return feedback.sel.json ? print_done(m, err) : 0;
}

/* The event of @ai's profile whose samples are compared with its traces; negative: none. */
static int event_of(const struct analysis *a, const struct analysis_image *ai)
{
	int event = estimate_event(a, ai);

	return event < 0 ? event : profdb_profile_event_find(ai->profile, a->events[event].name);
}

static int make(struct making *m, struct base_err *err)
{
	const struct form *form = chosen_form();
	int r = gather_traces(&m->g, err);

	if (r < 0)
		return r;
	fdo_quality(m->g.f, m->g.img, m->g.ai->profile, event_of(m->g.a, m->g.ai), &m->quality);
	return form ? write_form(m, form, err) : print_edges(m, err);
}

static int of_image(struct making *m, const char *what, struct base_err *err)
{
	int r = gather_choose(&m->g, what, err);

	if (r < 0)
		return r;
	r = analysis_image_open(m->g.a, m->g.ai, &m->g.img, err);
	if (r >= 0)
		r = make(m, err);
	else
		m->g.ai->state = ANALYSIS_UNOPENED; /* @err tells it: once is enough */
	gather_release(&m->g);
	image_close(m->g.img);
	return r;
}

static int tell_quality(const struct feedback *f, struct base_err *err)
{
	const struct analysis_image *ai = f->runs.ai;
	struct fdo_quality q;
	struct fdo *traces;
	int r;

	if (!profdb_profile_nr_edges(ai->profile)) {
		fprintf(stderr,
			"%s: warning: there are no traces of the image: its counts are "
			"guessed from samples alone\n",
			cmd.name);
		return 0;
	}
	r = fdo_make(ai->profile, f->runs.img, &traces, err);
	if (r < 0)
		return r;
	fdo_quality(traces, f->runs.img, ai->profile, event_of(f->runs.a, ai), &q);
	print_quality(cmd.name, ai->name, &q, stderr);
	fdo_free(traces);
	return 0;
}

static int run_lines(int nr, char **what, struct base_err *err)
{
	const struct line_profile how = { cmd.name, output,
					  gcc ? sampleprof_format_gcov : sampleprof_format, llvm,
					  tell_quality };

	if (gcc && !output && !feedback.sel.json)
		return base_fail(err, -DCPI_EUSAGE, "gcc's form is no text: name a file by -o");
	return line_profile_run(&feedback, &how, nr, what, err);
}

static int run(int nr, char **what, struct base_err *err)
{
	struct making m = {
		.g = { .sel = &feedback.sel, .age = age, .versions = versions, .raw = raw },
		.names = what + 1,
		.nr_names = nr - 1
	};
	int code = BASE_EXIT_OK, r;

	if (llvm || gcc)
		return run_lines(nr, what, err);
	feedback.sel.elsewhere = !advise;
	r = report_open(&feedback.sel, &m.g.a, err);
	m.used = r >= 0 ? calloc((size_t)nr + 1, sizeof(*m.used)) : NULL;
	if (r >= 0 && !m.used)
		r = base_fail_errno(err, -ENOMEM, "cannot start");
	if (r >= 0)
		r = advise ? advise_all(m.g.a, feedback.sel.json, err) : of_image(&m, what[0], err);
	if (m.g.a)
		code = report_problems(cmd.name, m.g.a, stderr);
	analysis_close(m.g.a);
	free(m.used);
	return r < 0 ? r : code;
}

static int dcpifdo_main(int argc, char **argv)
{
	struct base_err err = { 0 };
	int r = base_opt_parse(&cmd, &argc, &argv, &err);

	if (r == BASE_OPT_DONE)
		return BASE_EXIT_OK;
	if (r >= 0)
		r = check(argc, &err);
	if (r >= 0)
		r = run(argc, argv, &err);
	return report_end(&cmd, r, &err);
}

const struct tool dcpifdo_tool = { .cmd = &cmd, .main = dcpifdo_main };
