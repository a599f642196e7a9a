/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpifdo: instruction traces as profiles for compilers, linkers and runtimes. */
#include <errno.h>
#include <stdlib.h>

#include "choose.h"
#include "fdo_advise.h"
#include "fdo_gather.h"
#include "fdo_report.h"
#include "line_profile.h"
#include "report.h"
#include "tools.h"

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
	struct fdo_gather g;
	struct fdo_quality quality;
	char **names; /* procedures; none: all */
	int nr_names;
	bool *used; /* indexed by name: whether it has edges */
};

static bool wanted(void *context, const struct image_symbol *s)
{
	struct making *m = context;
	bool yes = !m->nr_names;

	for (int i = 0; i < m->nr_names; i++)
		if (demangle_is(s->name, m->names[i]))
			yes = m->used[i] = true;
	return yes;
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
	json_object_object_add(root, "quality", fdo_report_quality_json(&m->quality));
	if (versions)
		json_object_object_add(root, "versions", fdo_report_builds_json(&m->g));
	return root;
}

static int print_json(const struct making *m, struct json_object *root, struct base_err *err)
{
	int r = report_json_print(root, m->g.a, stdout);

	return r < 0 ? base_fail_errno(err, r, "cannot print") : 0;
}

static int print_edges(struct making *m, struct base_err *err)
{
	struct json_object *root = head_json(m);

	json_object_object_add(root, "procedures", fdo_report_edges(m->g.f, m->g.img, wanted, m));
	for (int i = 0; i < m->nr_names; i++)
		if (!m->used[i]) {
			json_object_put(root);
			return base_fail(err, -DCPI_ENOSYMBOL,
					 "procedure '%s' of '%s' has no traces", m->names[i],
					 m->g.ai->name);
		}
	return print_json(m, root, err);
}

static int print_done(struct making *m, struct base_err *err)
{
	struct json_object *root = head_json(m);

	json_object_object_add(root, "files", json_object_new_array());
	done_file(root, output);
	return print_json(m, root, err);
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
	fdo_report_quality(cmd.name, m->g.ai->name, &m->quality, stderr);
	fdo_report_builds(cmd.name, &m->g, stderr);
	if (bolt)
		fdo_report_relink(cmd.name, m->g.img, stderr);
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
	int r = fdo_gather(&m->g, err);

	if (r < 0)
		return r;
	fdo_quality(m->g.f, m->g.img, m->g.ai->profile, event_of(m->g.a, m->g.ai), &m->quality);
	return form ? write_form(m, form, err) : print_edges(m, err);
}

static int of_image(struct making *m, const char *what, struct base_err *err)
{
	int r = fdo_gather_choose(&m->g, what, err);

	if (r < 0)
		return r;
	r = analysis_image_open(m->g.a, m->g.ai, &m->g.img, err);
	if (r >= 0)
		r = make(m, err);
	else
		m->g.ai->state = ANALYSIS_UNOPENED; /* @err tells it: once is enough */
	fdo_gather_release(&m->g);
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
	fdo_report_quality(cmd.name, ai->name, &q, stderr);
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
		r = advise ? fdo_advise(m.g.a, feedback.sel.json, err) : of_image(&m, what[0], err);
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
