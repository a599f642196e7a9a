/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpireport: all of a database, or of two, as one page for a browser. */
#include <errno.h>
#include <stdlib.h>

#include "fleet.h"
#include "page.h"
#include "report.h"
#include "sets.h"
#include "tools.h"
#include "workloads.h"

static struct select sel;
static const char *output, *sort_event, *before_db, *before_epoch;
static double keep = 95, size = 5;
static bool unchecked;

static const struct base_opt options[] = {
	SELECT_OPTIONS(sel),
	SELECT_OPTION_SOURCE(image_source_path),
	{ "unchecked", BASE_OPT_FLAG, &unchecked, NULL,
	  "Believe call paths as they are, without a look at the code of callers.", 0, 0 },
	{ "o", BASE_OPT_STRING, &output, "FILE", "Write the page there: name it something.html.", 0,
	  0 },
	{ "s", BASE_OPT_STRING, &sort_event, "EVENT",
	  "This event tells what is hot (default: cycles, else a clock, else the first).", 0, 0 },
	{ "keep", BASE_OPT_DOUBLE, &keep, "PERCENT",
	  "Show the code of the procedures that make up PERCENT of the samples (default: 95).", 0,
	  100 },
	{ "size", BASE_OPT_DOUBLE, &size, "MB",
	  "Put about so much data into the page, which packs them to a third or less (default: "
	  "5). What does not fit is left out, that with fewest samples first, and the page says "
	  "so.",
	  0.1, 200 },
	{ "diff", BASE_OPT_STRING, &before_db, "DIR",
	  "Compare with the samples of this database, which are from before.", 0, 0 },
	{ "diff_epoch", BASE_OPT_STRING, &before_epoch, "EPOCH",
	  "Compare with these epochs, of -diff or else of the same database.", 0, 0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpireport",
	.summary = "make a page for browsers of where the time went",
	.operands = "-o FILE",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpireport -db /var/lib/dcpi -o today.html",
			  "The newest epoch of the whole system." },
			{ "dcpireport -diff before.db -db after.db -o change.html",
			  "What a change did, procedure by procedure." },
			{ NULL, NULL } },
	.min_operands = 0,
	.max_operands = 0,
};

struct sources {
	struct analysis *a, *before;
	struct workloads w;
	struct page_options o;
};

static int choose_event(struct sources *s, struct base_err *err)
{
	int event = sort_event ? analysis_event_find(s->a, sort_event, err) : 0;

	if (event < 0)
		return event;
	s->o.event = sort_event ? (size_t)event : analysis_event_default(s->a);
	return 0;
}

/* @sel keeps the store, for -diff_epoch. */
static int open_now(struct sources *s, struct base_err *err)
{
	struct select own = sel;
	int r = fleet_use(&own, FLEET_PATHS, 0, NULL, err);

	if (r < 0)
		return r;
	own.read_minutes = true;
	r = report_open_workloads(&own, &s->a, &s->w, err);
	s->o.workloads = s->w.w;
	s->o.filter = &s->w.filter;
	return r;
}

static int open_before(struct sources *s, struct base_err *err)
{
	struct select other = sel;
	int event, r;

	if (!before_db && !before_epoch)
		return 0;
	other.db = before_db ? before_db : sel.db;
	other.epoch = before_epoch;
	r = report_open(&other, &s->before, err);
	if (r < 0)
		return r;
	s->o.before = s->before;
	if (!s->a->nr_events)
		return base_fail(err, -ENOENT, "no samples in '%s'", sel.db);
	event = sets_event_find(s->before, s->a->events[s->o.event].name, "-diff", err);
	s->o.before_event = event < 0 ? 0 : (size_t)event;
	return event < 0 ? event : 0;
}

static int write_page(const struct base_buf *model, struct base_err *err)
{
	struct base_buf page = { 0 };
	int r = page_html(model, &page);

	r = r < 0 ? base_fail_errno(err, r, "cannot make the page")
		  : base_output_write(output, 0666, page.data, page.len, err);
	base_buf_release(&page);
	return r;
}

static int make(struct sources *s, struct base_err *err)
{
	struct base_buf model = { 0 };
	int r = page_model(s->a, &s->o, &model, err);

	if (r >= 0 && output)
		r = write_page(&model, err);
	if (r >= 0 && sel.json)
		fwrite(model.data, 1, model.len, stdout);
	base_buf_release(&model);
	return r;
}

static int run(int nr, char **what, struct base_err *err)
{
	struct sources s = {
		.o = { .keep = keep, .size = (size_t)(size * 1e6), .checked = !unchecked }
	};
	int code = BASE_EXIT_OK, r;

	(void)nr;
	(void)what;
	if (!output && !sel.json) {
		base_fail(err, -DCPI_EUSAGE, "no file to write given");
		base_hint(err, "-o FILE.html");
		return -DCPI_EUSAGE;
	}
	sel.elsewhere = output != NULL;
	r = open_now(&s, err);
	if (r >= 0)
		r = choose_event(&s, err);
	if (r >= 0)
		r = open_before(&s, err);
	if (r >= 0)
		r = make(&s, err);
	if (s.a)
		code = report_problems(cmd.name, s.a, stderr);
	if (s.before && report_problems(cmd.name, s.before, stderr) != BASE_EXIT_OK)
		code = BASE_EXIT_FAILED;
	workloads_release(&s.w);
	analysis_close(s.before);
	analysis_close(s.a);
	return r < 0 ? r : code;
}

static int dcpireport_main(int argc, char **argv)
{
	return report_main(&cmd, &sel, run, argc, argv);
}

const struct tool dcpireport_tool = { .cmd = &cmd, .main = dcpireport_main };
