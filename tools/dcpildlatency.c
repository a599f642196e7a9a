/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpildlatency: how long loads took, as the value profiler vp-ldlatency timed them. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "choose.h"
#include "tools.h"
#include "valued.h"

#define PROFILER "vp-ldlatency"

static struct select sel;
static int64_t number = 100;
static double far_ns = 50;
static bool no_header, concise;

static const struct base_opt options[] = {
	SELECT_OPTIONS_DB(sel),
	SELECT_OPTIONS_FILES(sel.files, sel.maps),
	SELECT_OPTION_MANGLED,
	{ "n", BASE_OPT_INT, &number, "N", "How many loads (default: 100).", 1, 1000000 },
	{ "far", BASE_OPT_DOUBLE, &far_ns, "NS",
	  "A load that took so long, or longer, was far (default: 50).", 1, 1e9 },
	{ "vconcise", BASE_OPT_FLAG, &concise, NULL,
	  "Estimate from the concise samples instead of the counting ones.", 0, 0 },
	{ "no_header", BASE_OPT_FLAG, &no_header, NULL, "Leave out the lines above the table.", 0,
	  0 },
	{ "json", BASE_OPT_FLAG, &sel.json, NULL, "Print JSON with the same rows (dcpijson(5)).", 0,
	  0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpildlatency",
	.summary = "tell which loads were far, and how often",
	.operands = "[IMAGE …]",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpildlatency -n 20",
			  "The loads that took most time, of all programs." },
			{ "dcpildlatency hello",
			  "Those in the routines that the facility 'hello' made." },
			{ NULL, NULL } },
	.min_operands = 0,
	.max_operands = -1,
};

/* Loads of one instruction; or of all. */
struct load {
	struct analysis_image *ai;
	uint64_t vaddr;
	bool placed; /* the image has that address */
	char *procedure, *text, *file;
	uint64_t into;
	unsigned int line;
	uint64_t seen;	  /* that were timed */
	double near, far; /* ratio of near and far accesses */
	double ns; /* that all took, those not told of being like the others of their instruction */
};

struct latency {
	struct analysis *a;
	struct hotlists lists;
	struct load *v;
	size_t nr, cap;
	struct load total;
};

/* ---- gathering ------------------------------------------------------------------------------- */

static void take_spot(struct load *to, const struct hotlist_spot *s)
{
	double announced_ns = 0;

	to->seen = s->vtot;
	for (size_t i = 0; i < s->nv; i++) {
		if ((double)s->v[i].value < far_ns)
			to->near += s->v[i].count;
		else
			to->far += s->v[i].count;
		announced_ns += s->v[i].count * (double)s->v[i].value;
	}
	if (to->near + to->far > 0)
		to->ns = announced_ns / (to->near + to->far) * (double)to->seen;
}

static void add_load(struct load *to, const struct load *l)
{
	to->seen += l->seen;
	to->near += l->near;
	to->far += l->far;
	to->ns += l->ns;
}

static double mean(const struct load *l)
{
	return l->seen ? l->ns / (double)l->seen : 0;
}

static int place(struct load *l, struct image *img, struct insn_disasm *d, uint64_t off)
{
	const struct image_symbol *s;
	struct insn_line insn;
	struct image_line line;
	uint8_t code[16];
	size_t len;

	l->placed = img && image_vaddr(img, off, &l->vaddr) >= 0;
	s = l->placed ? image_symbol_at(img, l->vaddr) : NULL;
	l->procedure = strdup(s ? s->name : img ? "(no symbol)" : "(image not readable)");
	l->into = s ? l->vaddr - s->vaddr : 0;
	len = d && l->placed ? image_bytes(img, l->vaddr, code, sizeof(code)) : 0;
	if (len)
		insn_disasm_one(d, code, len, l->vaddr, &insn);
	l->text = strdup(len ? insn.text : "");
	if (l->placed && image_line_at(img, l->vaddr, &line) >= 0) {
		l->file = strdup(line.file);
		l->line = line.line;
	}
	if (!l->placed)
		l->vaddr = off;
	return l->procedure && l->text ? 0 : -ENOMEM;
}

static int add_image(struct latency *x, struct analysis_image *ai)
{
	const struct profdb_values *v = hotlists_of(&x->lists, ai);
	struct insn_disasm *d = NULL;
	struct image *img = NULL;
	ssize_t at = 0;
	int r = 0;

	if (!v)
		return 0;
	if (analysis_image_open(x->a, ai, &img, NULL) >= 0)
		insn_disasm_open(image_machine(img), &d, NULL);
	while (r >= 0 && (size_t)at < profdb_values_nr(v)) {
		uint64_t off = profdb_values_at(v, (size_t)at)->off;
		struct hotlist_spot spot = { 0 };
		struct load *l;

		at = hotlist_spot_at(v, (size_t)at, concise, &spot);
		r = at < 0 ? (int)at : base_grow(&x->v, &x->cap, x->nr + 1, sizeof(*x->v));
		if (r >= 0) {
			l = &x->v[x->nr++];
			*l = (struct load){ .ai = ai };
			take_spot(l, &spot);
			add_load(&x->total, l);
			r = place(l, img, d, off);
		}
		hotlist_spot_release(&spot);
	}
	insn_disasm_close(d);
	image_close(img);
	return r;
}

static int by_time(const void *pa, const void *pb)
{
	const struct load *a = pa, *b = pb;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	if (a->seen != b->seen)
		return a->seen > b->seen ? -1 : 1;
	return (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
}

static int gather(struct latency *x, int nr, char **what, struct base_err *err)
{
	struct analysis_image **images = NULL;
	size_t nr_images = 0;
	int r;

	sel.whole = true;
	r = report_open(&sel, &x->a, err);
	if (r >= 0)
		r = choose_images(x->a, nr, what, &images, &nr_images, err);
	if (r >= 0)
		r = hotlists_open(x->a, PROFILER, &x->lists, err);
	for (size_t i = 0; r >= 0 && i < nr_images; i++) {
		r = add_image(x, images[i]);
		if (r < 0)
			base_fail_errno(err, r, "cannot gather loads");
	}
	if (x->nr)
		qsort(x->v, x->nr, sizeof(*x->v), by_time);
	free(images);
	return r;
}

static void release(struct latency *x)
{
	for (size_t i = 0; i < x->nr; i++) {
		free(x->v[i].procedure);
		free(x->v[i].text);
		free(x->v[i].file);
	}
	free(x->v);
	hotlists_release(&x->lists);
	analysis_close(x->a);
}

/* All that are not listed. */
static struct load others(const struct latency *x)
{
	struct load o = { 0 };

	for (size_t i = (size_t)number; i < x->nr; i++)
		add_load(&o, &x->v[i]);
	return o;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_head(const struct latency *x)
{
	report_head(x->a, stdout);
	printf("loads      %" PRIu64
	       " timed one by one: that tells near from far, not more; far is "
	       "from %g ns on\n",
	       x->total.seen, far_ns);
	if (x->lists.nr_denied)
		printf("           those of %zu more files are not yours to read\n",
		       x->lists.nr_denied);
	putchar('\n');
}

static void put_heads(struct table *t)
{
	static const char *const numbers[] = { "loads", "ns", "near", "far", "untold", "time" };
	static const char *const texts[] = { "procedure", "pc", "instruction", "image", "source" };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		table_column(t, false, numbers[i]);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		report_column(t, texts[i]);
}

static double share(double part, const struct load *l)
{
	return l->seen ? 100 * part / (double)l->seen : 0;
}

static void put_numbers(const struct latency *x, const struct load *l, struct table *t)
{
	double unannounced = (double)l->seen - l->near - l->far;

	table_cell(t, "%" PRIu64, l->seen);
	table_cell(t, "%.0f", mean(l));
	table_cell(t, "%.1f%%", share(l->near, l));
	table_cell(t, "%.1f%%", share(l->far, l));
	table_cell(t, "%.1f%%", share(unannounced > 0 ? unannounced : 0, l));
	table_cell(t, "%.1f%%", x->total.ns > 0 ? 100 * l->ns / x->total.ns : 0);
}

static void put_sum(const struct latency *x, const struct load *l, const char *name,
		    struct table *t)
{
	put_numbers(x, l, t);
	table_cell(t, "%s", name);
	for (int i = 0; i < 4; i++)
		table_cell(t, "%s", "");
}

static void put_load(const struct latency *x, const struct load *l, struct table *t)
{
	put_numbers(x, l, t);
	table_cell(t, "%s", demangle_shown(l->procedure));
	table_cell(t, "0x%" PRIx64, l->vaddr);
	table_cell(t, "%s", l->text);
	table_cell(t, "%s", l->ai->name);
	if (l->file)
		table_cell(t, "%s:%u", base_path_name(l->file), l->line);
	else
		table_cell(t, "%s", "");
}

static int print_text(const struct latency *x, struct base_err *err)
{
	struct load rest = others(x);
	struct table t = { 0 };
	int r;

	if (!no_header)
		print_head(x);
	put_heads(&t);
	for (size_t i = 0; i < x->nr && i < (size_t)number; i++)
		put_load(x, &x->v[i], &t);
	if (x->nr > (size_t)number)
		put_sum(x, &rest, "others", &t);
	put_sum(x, &x->total, "total", &t);
	r = table_print(&t, !no_header, stdout);
	table_release(&t);
	return r < 0 ? base_fail_errno(err, r, "cannot print the table") : 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static struct json_object *json_numbers(const struct load *l)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "loads", json_object_new_uint64(l->seen));
	json_object_object_add(o, "mean_ns", report_json_number(mean(l)));
	json_object_object_add(o, "near_percent", report_json_number(share(l->near, l)));
	json_object_object_add(o, "far_percent", report_json_number(share(l->far, l)));
	return o;
}

static struct json_object *json_load(const struct load *l)
{
	struct json_object *o = json_numbers(l);

	report_json_procedure(o, l->procedure);
	json_object_object_add(o, "pc", l->placed ? report_json_hex(l->vaddr) : NULL);
	json_object_object_add(o, "into", json_object_new_uint64(l->into));
	json_object_object_add(o, "instruction", report_json_text(l->text));
	report_json_image(o, l->ai);
	json_object_object_add(o, "file", report_json_text(l->file));
	json_object_object_add(o, "line", l->file ? json_object_new_int64(l->line) : NULL);
	return o;
}

static int print_json(const struct latency *x, struct base_err *err)
{
	uint64_t sums[ANALYSIS_NR_EVENTS];
	struct json_object *root = report_json("dcpildlatency/1", x->a, report_sums(x->a, sums));
	struct json_object *rows = json_object_new_array();
	struct load rest = others(x);
	int r;

	for (size_t i = 0; i < x->nr && i < (size_t)number; i++)
		json_object_array_add(rows, json_load(&x->v[i]));
	json_object_object_add(root, "far_ns", report_json_number(far_ns));
	json_object_object_add(root, "unreadable_files",
			       json_object_new_uint64(x->lists.nr_denied));
	json_object_object_add(root, "rows", rows);
	json_object_object_add(root, "others", json_numbers(&rest));
	json_object_object_add(root, "total", json_numbers(&x->total));
	r = report_json_print(root, x->a, stdout);
	return r < 0 ? base_fail_errno(err, r, "cannot print") : 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int run(int nr, char **what, struct base_err *err)
{
	struct latency x = { 0 };
	int code = BASE_EXIT_OK, r = gather(&x, nr, what, err);

	if (r >= 0)
		r = sel.json ? print_json(&x, err) : print_text(&x, err);
	valued_warn(cmd.name, &x.lists, stderr);
	if (x.a)
		code = report_bad(cmd.name, x.a, stderr);
	release(&x);
	return r < 0 ? r : code;
}

static int dcpildlatency_main(int argc, char **argv)
{
	return report_main(&cmd, &sel, run, argc, argv);
}

const struct tool dcpildlatency_tool = { .cmd = &cmd, .main = dcpildlatency_main };
