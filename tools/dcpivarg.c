/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpivarg: what values tell of procedures: arguments, callers, constant blocks, slow loads. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "choose.h"
#include "report.h"
#include "tools.h"
#include "varg.h"

static struct select sel;
static struct valued_options values = { VALUED_DEFAULTS, .prof = true };
static struct {
	bool arg_full, arg_terse, ret_full, ret_terse, ret_save, inv_blocks, top_loads, no_header;
	int64_t number; /* 0: not given */
} opt;

enum { LOADS = 20 };

static const struct base_opt options[] = {
	SELECT_OPTIONS(sel),
	{ "arg_full", BASE_OPT_FLAG, &opt.arg_full, NULL,
	  "Values of the argument registers where procedures begin; where no calls were seen, "
	  "those "
	  "of instructions near the beginning that save them.",
	  0, 0 },
	{ "arg_terse", BASE_OPT_FLAG, &opt.arg_terse, NULL,
	  "The same, one line for each procedure, the most frequent value of each.", 0, 0 },
	{ "ret_full", BASE_OPT_FLAG, &opt.ret_full, NULL,
	  "Where procedures return to: all callers that were seen.", 0, 0 },
	{ "ret_terse", BASE_OPT_FLAG, &opt.ret_terse, NULL,
	  "The same, one line for each procedure, its three most frequent callers (default).", 0,
	  0 },
	{ "ret_save", BASE_OPT_FLAG, &opt.ret_save, NULL,
	  "The first instruction of procedures that saves the return address.", 0, 0 },
	{ "inv_blocks", BASE_OPT_FLAG, &opt.inv_blocks, NULL,
	  "Blocks whose instructions have always, or 99 times in a hundred, the same results.", 0,
	  0 },
	{ "top_loads", BASE_OPT_FLAG, &opt.top_loads, NULL,
	  "The loads that were waited for most, with what they loaded.", 0, 0 },
	{ "n", BASE_OPT_INT, &opt.number, "N", "With -top_loads: how many (default: 20).", 1,
	  1000000 },
	VALUED_OPTIONS_SHOWN(values),
	{ "no_header", BASE_OPT_FLAG, &opt.no_header, NULL, "Leave out the lines above.", 0, 0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpivarg",
	.summary = "tell arguments, callers, constant blocks and slow loads",
	.operands = "[PROCEDURE] IMAGE",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpivarg -arg_full mix hello",
			  "With which arguments the routine 'mix' was called that the facility "
			  "'hello' made." },
			{ "dcpivarg a.out", "Who called the procedures of a program." },
			{ "dcpivarg -top_loads -n 5 a.out",
			  "The five loads that were waited for most." },
			{ NULL, NULL } },
	.min_operands = 1,
	.max_operands = 2,
};

/* ---- value profiles -------------------------------------------------------------------------- */

/* The number of values seen in the image, in all files that could be read. */
static uint64_t values_seen(const struct hotlists *v, const struct analysis_image *ai)
{
	const struct profdb_values *of = hotlists_of(v, ai);
	uint64_t all = 0;

	for (size_t i = 0; of && i < profdb_values_nr(of); i++)
		all += profdb_values_at(of, i)->vtot;
	return all;
}

/* Values of arguments may be missing, and those of instructions; not both. */
static int open_values(struct varg *x, struct base_err *err)
{
	struct base_err none = { 0 }, why = { 0 };
	int r = valued_open(&x->valued, &values, x->a, &none);
	bool any = r >= 0;

	for (unsigned int i = 0; (r >= 0 || r == -ENOENT) && i < VARG_REGISTERS; i++) {
		char name[32];

		snprintf(name, sizeof(name), VALUED_ARGUMENT, i);
		memset(&why, 0, sizeof(why));
		r = hotlists_open(x->a, name, &x->args[i], &why);
		any |= r >= 0;
	}
	if (any && (r >= 0 || r == -ENOENT))
		return 0;
	*err = r == -ENOENT || !why.code ? none : why;
	return r;
}

static void release(struct varg *x)
{
	for (size_t i = 0; i < x->nr_opened; i++)
		image_close(x->opened[i].img);
	free(x->opened);
	free(x->images);
	for (unsigned int i = 0; i < VARG_REGISTERS; i++)
		hotlists_release(&x->args[i]);
	valued_release(&x->valued);
	analysis_close(x->a);
}

/* ---- text and JSON around what is told ------------------------------------------------------- */

static void print_title(const struct varg *x, const struct hotlists_procedure *p)
{
	size_t event = analysis_event_default(x->a);
	uint64_t total = event < x->a->nr_events ? x->ai->count[event] : 0;
	struct image_line line;

	printf("%5.2f%%  ", total ? 100.0 * (double)p->samples / (double)total : 0);
	report_print_name(stdout, p->symbol->name);
	if (image_line_at(x->img, p->symbol->vaddr, &line) >= 0) {
		fputs(" (", stdout);
		report_print_clean(stdout, line.file);
		putchar(')');
	}
	printf(" 0x%" PRIx64 "\n", p->symbol->vaddr);
}

static struct json_object *json_title(const struct varg *x, const struct hotlists_procedure *p)
{
	struct json_object *o = json_object_new_object();

	report_json_procedure(o, p->symbol->name);
	json_object_object_add(o, "address", report_json_hex(p->symbol->vaddr));
	report_json_image(o, x->ai);
	json_object_object_add(o, "samples", json_object_new_uint64(p->samples));
	return o;
}

static int tell(struct varg *x, const struct varg_procedure *p, struct json_object *o)
{
	enum varg_part part = opt.arg_full || opt.arg_terse ? VARG_ARGUMENTS
			      : opt.ret_save		    ? VARG_SAVES
			      : opt.inv_blocks		    ? VARG_BLOCKS
							    : VARG_CALLERS;

	return varg_tell(x, part, opt.arg_full || opt.ret_full, p, o);
}

static bool is_terse(void)
{
	return opt.arg_terse || !(opt.arg_full || opt.ret_full || opt.ret_save || opt.inv_blocks);
}

/* A title stands above what is told, and not where nothing is. */
static int print_one(struct varg *x, const struct varg_procedure *p, bool *printed)
{
	struct json_object *o;
	int r;

	if (is_terse()) {
		r = tell(x, p, NULL);
		*printed |= r > 0;
		return r;
	}
	o = json_object_new_object();
	r = tell(x, p, o);
	json_object_put(o);
	if (r <= 0)
		return r;
	if (*printed)
		putchar('\n');
	*printed = true;
	print_title(x, p->of);
	return tell(x, p, NULL);
}

static int add_one(struct varg *x, const struct varg_procedure *p, struct json_object *list)
{
	struct json_object *o = json_title(x, p->of);
	int r = tell(x, p, o);

	if (r > 0)
		json_object_array_add(list, o);
	else
		json_object_put(o);
	return r;
}

/* ---- images ---------------------------------------------------------------------------------- */

static bool is_meant(const struct hotlists_procedure *p, const char *what)
{
	char *end;
	uint64_t vaddr;

	if (!what || demangle_is(p->symbol->name, what))
		return true;
	vaddr = strtoull(what, &end, 0);
	return end != what && !*end && vaddr - p->symbol->vaddr < p->symbol->len;
}

static int tell_procedures(struct varg *x, const struct hotlists_procedure *v, size_t nr,
			   const char *what, struct json_object *list, size_t *nr_met,
			   bool *printed)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < nr; i++) {
		struct varg_procedure p = { .of = &v[i] };

		if (!is_meant(&v[i], what))
			continue;
		++*nr_met;
		r = flow_build(x->img, v[i].symbol, &p.flow, NULL);
		if (r >= 0)
			r = list ? add_one(x, &p, list) : print_one(x, &p, printed);
		flow_free(p.flow);
		r = r == -DCPI_EUNSUPPORTED ? 0 : r;
	}
	return r;
}

static int tell_image(struct varg *x, const char *what, struct json_object *list, size_t *nr_met,
		      bool *printed)
{
	struct hotlists_procedure *v = NULL;
	ssize_t nr = hotlists_procedures(&x->valued.lists, x->ai, x->img,
					 analysis_event_default(x->a), &v);
	int r = nr < 0 ? (int)nr : 0;

	if (r >= 0 && opt.top_loads) {
		r = varg_loads(x, v, (size_t)nr, opt.number ? (size_t)opt.number : LOADS, list);
		++*nr_met;
	} else if (r >= 0) {
		r = tell_procedures(x, v, (size_t)nr, what, list, nr_met, printed);
	}
	free(v);
	return r;
}

static int tell_images(struct varg *x, const char *procedure, struct json_object *list,
		       struct base_err *err)
{
	bool printed = false;
	size_t nr_met = 0;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < x->nr_images; i++) {
		r = varg_image_open(x, x->images[i]);
		if (r > 0)
			r = tell_image(x, procedure, list, &nr_met, &printed);
		varg_image_close(x);
		if (r < 0)
			base_fail_errno(err, r, "cannot look into '%s'", x->images[i]->name);
	}
	if (r >= 0 && procedure && !nr_met)
		return base_fail(err, -DCPI_ENOSYMBOL, "no samples or values in a procedure '%s'",
				 procedure);
	if (r >= 0 && !list && !opt.no_header && !opt.top_loads && !printed)
		puts("nothing of that was seen");
	return r;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Values of the images that are looked into, not of all that have some. */
static uint64_t values_here(const struct varg *x)
{
	uint64_t all = 0;

	for (size_t i = 0; i < x->nr_images; i++)
		all += values_seen(&x->valued.lists, x->images[i]);
	return all;
}

static int print_json(struct varg *x, struct json_object *list, struct base_err *err)
{
	uint64_t sums[ANALYSIS_NR_EVENTS];
	struct json_object *root = report_json("dcpivarg/1", x->a, report_sums(x->a, sums));
	int r;

	json_object_object_add(root, "values", valued_head_json(&x->valued, values_here(x)));
	json_object_object_add(root, opt.top_loads ? "loads" : "procedures", list);
	r = report_json_print(root, x->a, stdout);
	return r < 0 ? base_fail_errno(err, r, "cannot print") : 0;
}

static int run(int nr, char **what, struct base_err *err)
{
	struct json_object *list = sel.json ? json_object_new_array() : NULL;
	struct varg x = { 0 };
	int code = BASE_EXIT_OK, r = select_refuse_workloads(&sel, "values", err);

	sel.whole = true;
	if (r >= 0)
		r = report_open(&sel, &x.a, err);
	if (r >= 0)
		r = open_values(&x, err);
	if (r >= 0)
		r = choose_images(x.a, 1, what + nr - 1, &x.images, &x.nr_images, err);
	if (r >= 0 && !sel.json && !opt.no_header) {
		report_head(x.a, stdout);
		valued_head(&x.valued, values_here(&x), stdout);
		putchar('\n');
	}
	if (r >= 0)
		r = tell_images(&x, nr > 1 ? what[0] : NULL, list, err);
	if (r >= 0 && list)
		r = print_json(&x, list, err);
	else
		json_object_put(list);
	valued_warn(cmd.name, &x.valued.lists, stderr);
	for (unsigned int i = 0; i < VARG_REGISTERS; i++)
		valued_warn(cmd.name, &x.args[i], stderr);
	if (x.a)
		code = report_problems(cmd.name, x.a, stderr);
	release(&x);
	return r < 0 ? r : code;
}

/* They are of lists of values; -arg_terse shows one value of each. */
static int check_shown(struct base_err *err)
{
	bool lists = opt.arg_full || opt.ret_save || opt.inv_blocks || opt.top_loads;
	const char *shown = valued_shown(&values);

	if (!shown || lists || (opt.arg_terse && values.cutoff < 0 && !values.show))
		return 0;
	if (opt.arg_terse)
		return base_fail(err, -DCPI_EUSAGE,
				 "-arg_terse shows one value each: use -arg_full with -%s",
				 values.cutoff >= 0 ? "vcutoff" : "vshow");
	base_fail(err, -DCPI_EUSAGE, "-%s is of values, and callers have none", shown);
	base_hint(err, "-arg_full, -ret_save, -inv_blocks and -top_loads show values");
	return -DCPI_EUSAGE;
}

static int check(int nr, struct base_err *err)
{
	int r;

	if (opt.arg_full + opt.arg_terse + opt.ret_full + opt.ret_terse + opt.ret_save +
		    opt.inv_blocks + opt.top_loads >
	    1)
		return base_fail(err, -DCPI_EUSAGE,
				 "one thing at a time, of -arg_full, -arg_terse, "
				 "-ret_full, -ret_terse, -ret_save, -inv_blocks "
				 "and -top_loads");
	if (opt.top_loads && nr > 1)
		return base_fail(err, -DCPI_EUSAGE, "-top_loads is of whole images");
	if (opt.number && !opt.top_loads)
		return base_fail(err, -DCPI_EUSAGE, "-n goes with -top_loads");
	r = check_shown(err);
	if (r >= 0)
		r = valued_check(&values, &sel, err);
	return r < 0 ? r : select_check(&sel, err);
}

static int dcpivarg_main(int argc, char **argv)
{
	return report_command(&cmd, check, run, argc, argv);
}

const struct tool dcpivarg_tool = { .cmd = &cmd, .main = dcpivarg_main };
