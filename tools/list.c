/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of dcpilist: lines, instructions, and what is known of each. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "choose.h"
#include "estimate.h"
#include "fleet.h"
#include "list.h"
#include "listing.h"
#include "procedures.h"

enum { TAB = 4 };

bool list_source_text(const struct image_source *src, unsigned int line, size_t skip, char *text,
		      size_t text_len)
{
	size_t len = 0, at = 0, column = 0;
	const char *from = image_source_line(src, line, &len);

	for (size_t i = 0; from && i < len; i++) {
		size_t to = from[i] == '\t' ? (column / TAB + 1) * TAB : column + 1;

		for (; column < to; column++)
			if ((column >= skip || from[i] > ' ') && at + 1 < text_len)
				text[at++] = from[i] == '\t' ? ' ' : from[i] ? from[i] : '?';
	}
	text[at] = '\0';
	return from != NULL;
}

size_t list_sum_line(const struct list *x, size_t from, uint64_t *sum)
{
	size_t i = from;

	memset(sum, 0, ANALYSIS_NR_EVENTS * sizeof(*sum));
	for (; i < x->nr_by_line && x->by_line[i]->file == x->by_line[from]->file &&
	       x->by_line[i]->line == x->by_line[from]->line;
	     i++)
		for (size_t e = 0; x->by_line[i]->count && e < x->a->nr_events; e++)
			sum[e] += x->by_line[i]->count[e];
	return i;
}

void list_tell(const struct list *x, const struct analysis_unit *u, struct told_values *sum)
{
	if (x->columns.nr)
		told_add_unit(&x->columns, x->l, u, sum);
}

struct valued_insn list_insn(const struct list *x, const struct analysis_unit *u)
{
	uint64_t off = u ? u->vaddr - x->l->symbol.vaddr : 0;

	if (!u || u->kind != ANALYSIS_UNIT_INSN)
		return (struct valued_insn){ .vaddr = u ? u->vaddr : 0 };
	return (struct valued_insn){ u->vaddr, x->l->code + off, u->len };
}

const char *list_unit_name(const struct list *x)
{
	const char *event = x->a->events[x->freq.cost_event].name;

	return strstr(event, "cycles") ? "cy" : "ns";
}

bool list_is_costed(const struct list *x, const struct listing_freq_unit *f)
{
	return list_is_known(f) && x->freq.absolute && x->freq.has_cost && f->freq > 0;
}

void list_join_freq(const struct list *x, const struct analysis_unit *u,
		    struct listing_freq_unit *sum)
{
	const struct listing_freq_unit *f;
	double units = sum->units;

	if (!x->freq.v)
		return;
	f = &x->freq.v[u - x->l->units];
	if (f->confidence != FREQ_NONE && (sum->confidence == FREQ_NONE || f->freq > sum->freq))
		*sum = *f;
	sum->units = units + f->units;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static int by_line(const void *pa, const void *pb)
{
	const struct analysis_unit *a = *(struct analysis_unit *const *)pa;
	const struct analysis_unit *b = *(struct analysis_unit *const *)pb;

	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
}

static void note_indent(struct list *x, const struct analysis_unit *u)
{
	struct list_source *s = &x->sources[u->file];
	char text[256];
	size_t indent;

	if (!s->text || !list_source_text(s->text, u->line, 0, text, sizeof(text)))
		return;
	indent = strspn(text, " ");
	if (indent < s->indent)
		s->indent = indent;
}

static int open_sources(struct list *x, struct base_err *err)
{
	struct analysis_listing *l = x->l;

	x->sources = calloc(l->nr_files + 1, sizeof(*x->sources));
	x->by_line = calloc(l->nr_units + 1, sizeof(*x->by_line));
	if (!x->sources || !x->by_line)
		return base_fail_errno(err, -ENOMEM, "cannot list '%s'", l->symbol.name);
	for (size_t i = 0; i < l->nr_units; i++)
		if (l->units[i].line)
			x->by_line[x->nr_by_line++] = &l->units[i];
	qsort(x->by_line, x->nr_by_line, sizeof(*x->by_line), by_line);
	/* One that is not there is no error: its lines are shown by number. */
	for (size_t i = 0; i < l->nr_files && !x->opt->as_asm; i++) {
		x->sources[i].indent = SIZE_MAX;
		image_source_open(l->files[i], image_program(l->img), false, &x->sources[i].text,
				  NULL);
	}
	for (size_t i = 0; i < x->nr_by_line; i++)
		note_indent(x, x->by_line[i]);
	return 0;
}

/* ---- execution counts ------------------------------------------------------------------------ */

struct work {
	const struct analysis_listing *l;
	struct flow *flow;
	double *by_insn;
	struct profdb_costs costs;
	struct estimate estimate;
	struct estimate_samples samples;
};

/* A listing of several places has the sums of their samples. A listing of a single place lacks
 * the samples of its cold parts, but the image has them. */
static int place_samples(struct work *w, const struct listing_freq *out)
{
	const struct analysis_listing *l = w->l;
	const struct insn *insn;
	int r;

	if (l->nr_places <= 1) {
		r = estimate_runs_gather(&w->samples, l->a, l->ai, l->img, out->event);
		if (r >= 0)
			estimate_samples_place(&w->samples, w->flow, w->by_insn);
		return r;
	}
	for (size_t i = 0; i < l->nr_units; i++) {
		const struct analysis_unit *u = &l->units[i];

		insn = u->count ? flow_insn_at(w->flow, u->vaddr) : NULL;
		if (insn)
			w->by_insn[insn - w->flow->insns] +=
				(double)analysis_unit_runs(l, u, out->event);
	}
	return 0;
}

static int solve(struct work *w, const struct listing_freq *out, struct base_err *err)
{
	const struct analysis_event *ev = &w->l->a->events[out->event];
	struct estimate_input in = { .flow = w->flow,
				     .by_insn = w->by_insn,
				     .event = ev->name,
				     .retired = estimate_by_retired(w->l->a, out->event),
				     .period = analysis_sample_units(w->l->a, w->l->ai, out->event),
				     .img = w->l->img };
	int r = profdb_costs_read(w->l->a->db, image_id(w->l->img), ev->name, &w->costs, err);

	if (r < 0 && r != -ENOENT)
		return r;
	in.costs = r >= 0 ? &w->costs : NULL;
	r = analysis_image_paths(w->l->ai, w->l->img, &in.paths, err);
	return r < 0 ? r : estimate_frequencies(&in, &w->estimate, err);
}

static void tell(const struct work *w, struct listing_freq *out)
{
	double each = analysis_sample_units(w->l->a, w->l->ai, out->cost_event);

	for (size_t i = 0; i < w->l->nr_units; i++) {
		const struct analysis_unit *u = &w->l->units[i];
		uint32_t b = flow_block_at(w->flow, u->vaddr);
		struct listing_freq_unit *to = &out->v[i];

		if (u->kind == ANALYSIS_UNIT_INSN && b != FLOW_OUTSIDE) {
			to->confidence = w->estimate.freq.confidence[b];
			to->freq = w->estimate.freq.block[b];
		}
		if (out->has_cost && u->count)
			to->units = (double)u->count[out->cost_event] * each;
	}
	out->absolute = w->estimate.absolute;
	out->traces = w->estimate.traces;
	out->nr_unresolved = w->flow->nr_unresolved;
}

static int choose_events(const struct analysis_listing *l, struct listing_freq *out,
			 struct base_err *err)
{
	const struct analysis *a = l->a;
	int event = estimate_event(a, l->ai);

	if (event < 0)
		return base_fail(err, -ENOENT, "no event here tells how often code ran");
	out->event = (size_t)event;
	out->cost_event = analysis_event_default(a);
	out->has_cost = estimate_model(a->events[out->cost_event].name) == FREQ_TIME;
	return 0;
}

/*
 * Fills @out, which the caller zero-initializes and releases, also on failure. Errors: -ENOENT (no
 * event determines frequencies), those of flow_build and estimate_frequencies.
 */
static int listing_freq_make(const struct analysis_listing *l, struct listing_freq *out,
			     struct base_err *err)
{
	struct work w = { .l = l };
	int r = choose_events(l, out, err);

	if (r >= 0)
		r = flow_build(l->img, &l->symbol, &w.flow, err);
	if (r < 0)
		return r;
	out->v = calloc(l->nr_units + 1, sizeof(*out->v));
	w.by_insn = calloc((size_t)w.flow->nr_insns + 1, sizeof(*w.by_insn));
	r = out->v && w.by_insn ? place_samples(&w, out) : -ENOMEM;
	if (r >= 0)
		r = solve(&w, out, err);
	if (r >= 0)
		tell(&w, out);
	else
		base_fail_errno(err, r, "cannot estimate how often '%s' ran", l->symbol.name);
	estimate_samples_release(&w.samples);
	estimate_release(&w.estimate);
	profdb_costs_release(&w.costs);
	free(w.by_insn);
	flow_free(w.flow);
	return r;
}

static void listing_freq_release(struct listing_freq *f)
{
	free(f->v);
	memset(f, 0, sizeof(*f));
}

/* ---- one procedure --------------------------------------------------------------------------- */

/* Free the listing of one procedure. */
static void release_listing(struct list *x)
{
	for (size_t i = 0; x->l && x->sources && i < x->l->nr_files; i++)
		image_source_close(x->sources[i].text);
	free(x->sources);
	free(x->by_line);
	free(x->rows);
	x->rows = NULL;
	x->nr_rows = x->cap_rows = 0;
	x->sources = NULL;
	x->by_line = NULL;
	x->nr_by_line = 0;
	table_release(&x->t);
	listing_freq_release(&x->freq);
	hotlists_listing_release(&x->values);
	analysis_listing_close(x->l);
	x->l = NULL;
}

static void release(struct list *x)
{
	release_listing(x);
	valued_release(&x->valued);
	analysis_close(x->a);
}

/* Where no event tells frequencies, or nobody the code's flow, it is an error only if they were
 * asked for: the listing does without. */
static int estimate(struct list *x, struct base_err *err)
{
	struct base_err why = { 0 };
	int r;

	if (x->opt->no_freq || (!x->opt->freq && estimate_event(x->a, NULL) < 0))
		return 0;
	r = listing_freq_make(x->l, &x->freq, &why);
	if (r == -DCPI_EUNSUPPORTED && !x->opt->freq) {
		listing_freq_release(&x->freq);
		return 0;
	}
	if (r < 0 && !x->opt->freq)
		base_hint(&why, "-no_freq lists without frequencies");
	if (r < 0)
		*err = why;
	return r;
}

static int find_values(struct list *x, struct base_err *err)
{
	int r;

	if (!valued_wanted(&x->opt->values))
		return 0;
	r = hotlists_listing_make(&x->valued.lists, x->l, x->opt->values.concise, &x->values);
	return r < 0 ? base_fail_errno(err, r, "cannot list values") : 0;
}

/* The listing that is open, with all that belongs to it. */
static int print(struct list *x, bool json, struct json_object *all, struct base_err *err)
{
	int r = open_sources(x, err);

	if (r >= 0)
		r = estimate(x, err);
	if (r >= 0)
		r = find_values(x, err);
	if (r < 0)
		return r;
	if (all)
		return json_object_array_add(all, list_json(x)) < 0 ? -ENOMEM : 0;
	if (!json)
		return list_print_text(x, err);
	r = report_json_print(list_json(x), x->a, stdout);
	return r < 0 ? base_fail_errno(err, r, "cannot print") : 0;
}

/* ---- all procedures -------------------------------------------------------------------------- */

/* The image is opened once: to read what debuggers know of one takes longer than most procedures.
 */
static int print_procedures(struct list *x, struct analysis_image *ai, struct json_object *all,
			    bool *printed, struct base_err *err)
{
	struct hotlists_procedure *v = NULL;
	struct image *img = NULL;
	ssize_t nr = analysis_image_open(x->a, ai, &img, NULL) < 0 ? 0 : 1;
	int r = 0;

	if (nr)
		nr = hotlists_procedures(&x->valued.lists, ai, img, analysis_event_default(x->a),
					 &v);
	if (nr < 0)
		r = base_fail_errno(err, (int)nr, "cannot list procedures");
	for (ssize_t i = 0; r >= 0 && i < nr; i++) {
		r = analysis_listing_open(x->a, ai, img, v[i].symbol, NULL, &x->l, err);
		if (r >= 0 && !all && *printed)
			putchar('\n');
		if (r >= 0)
			r = print(x, false, all, err);
		*printed = true;
		img = x->l ? analysis_listing_take_image(x->l) : NULL;
		release_listing(x);
	}
	free(v);
	image_close(img);
	return r;
}

static int print_all(struct list *x, bool json, int nr, char **what, struct base_err *err)
{
	struct json_object *all = json ? json_object_new_array() : NULL, *root;
	uint64_t sums[ANALYSIS_NR_EVENTS];
	struct analysis_image **images = NULL;
	bool printed = false;
	size_t nr_images;
	int r = choose_images(x->a, nr, what, &images, &nr_images, err);

	for (size_t i = 0; r >= 0 && i < nr_images; i++)
		r = print_procedures(x, images[i], all, &printed, err);
	free(images);
	if (r < 0 || !json) {
		json_object_put(all);
		return r;
	}
	root = report_json("dcpivlst/1", x->a, report_sums(x->a, sums));
	json_object_object_add(root, "procedures", all);
	r = report_json_print(root, x->a, stdout);
	return r < 0 ? base_fail_errno(err, r, "cannot print") : 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int run(const struct base_cmd *cmd, const struct select *sel, const struct list_options *opt,
	       int nr, char **what, struct base_err *err)
{
	struct list x = { .opt = opt };
	struct select own = *sel; /* it may be of a copy */
	int from = opt->all || !nr ? 0 : 1;
	int code = BASE_EXIT_OK, r = profileme_begin(&own, opt->metrics, &x.columns, err);

	if (r >= 0)
		r = fleet_use(&own, FLEET_OFFSET, nr - from, what + from, err);
	if (r >= 0)
		r = report_open(&own, &x.a, err);
	if (r >= 0 && valued_wanted(&opt->values))
		r = valued_open(&x.valued, &opt->values, x.a, err);
	if (r >= 0 && !opt->all)
		r = choose_procedure(x.a, what[0], nr > 1 ? what[1] : NULL, &x.l, err);
	if (r >= 0)
		r = opt->all ? print_all(&x, sel->json, nr, what, err)
			     : print(&x, sel->json, NULL, err);
	valued_warn(cmd->name, &x.valued.lists, stderr);
	if (x.a)
		code = opt->all || (r < 0 && r != -EEXIST) ? report_problems(cmd->name, x.a, stderr)
							   : report_bad(cmd->name, x.a, stderr);
	release(&x);
	return r < 0 ? r : code;
}

static int check(const struct select *sel, struct list_options *opt, int nr, struct base_err *err)
{
	bool values;

	opt->values.prof |= opt->valued && !valued_wanted(&opt->values);
	values = valued_wanted(&opt->values);
	if (nr > 2 && !opt->all) {
		base_fail(err, -DCPI_EUSAGE, "too many operands");
		base_hint(err, "-allprocs takes several images");
		return -DCPI_EUSAGE;
	}
	if (opt->in_order && (opt->as_asm || opt->as_source))
		return base_fail(err, -DCPI_EUSAGE, "-order goes with -both alone");
	opt->as_both |= opt->in_order;
	if (opt->as_asm + opt->as_source + opt->as_both > 1)
		return base_fail(err, -DCPI_EUSAGE, "-asm, -source and -both exclude each other");
	if (opt->freq && opt->no_freq)
		return base_fail(err, -DCPI_EUSAGE, "-freq and -no_freq exclude each other");
	if ((values || opt->bytes) && opt->as_source)
		return base_fail(err, -DCPI_EUSAGE,
				 "%s stand beside instructions: -source has none",
				 values ? "values" : "bytes");
	/* JSON has the bytes anyway, and the text of lines only where it is not -asm. */
	opt->as_asm |= (values || (opt->bytes && !sel->json)) && !opt->as_both;
	return valued_check(&opt->values, sel, err);
}

int list_main(const struct base_cmd *cmd, struct select *sel, struct list_options *opt, int argc,
	      char **argv)
{
	struct base_err err = { 0 };
	int r = base_opt_parse(cmd, &argc, &argv, &err);

	if (r == BASE_OPT_DONE)
		return BASE_EXIT_OK;
	if (r >= 0)
		r = check(sel, opt, argc, &err);
	/* Values have no minutes. */
	sel->whole = valued_wanted(&opt->values);
	if (r >= 0)
		r = select_check(sel, &err);
	if (r >= 0)
		r = run(cmd, sel, opt, argc, argv, &err);
	return report_end(cmd, r, &err);
}
