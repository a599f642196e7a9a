/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpitop: where the time goes now, from the running daemon: on the screen, or as a table. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "by.h"
#include "control.h"
#include "fleet.h"
#include "report.h"
#include "table.h"
#include "tools.h"
#include "live.h"
#include "wire.h"
#include "workloads.h"

enum { SECONDS_MAX = 3600, LIMIT_MS = 10000 };

static struct {
	struct select sel;
	const char *run_dir, *by;
	int64_t seconds; /* of -batch; 0: on the screen */
	bool by_image, idle;
} opt;

static const struct base_opt options[] = {
	{ "run", BASE_OPT_STRING, &opt.run_dir, "DIR",
	  "Folder of the daemon's sockets (default: $DCPI_RUN or " WIRE_RUN_DIR ").", 0, 0 },
	{ "db", BASE_OPT_STRING, &opt.sel.db, "DIR",
	  "The database, for names of dynamic code and of the kernel's (default: the daemon's).", 0,
	  0 },
	{ "i", BASE_OPT_FLAG, &opt.by_image, NULL, "One line per image instead of procedure.", 0,
	  0 },
	{ "by", BASE_OPT_STRING, &opt.by, "KEY",
	  "One line per comm, exe, pid, uid, cgroup, unit, container, thread or label.", 0, 0 },
	{ "idle", BASE_OPT_FLAG, &opt.idle, NULL,
	  "The idle task has a line, and counts in percentages.", 0, 0 },
	{ "event", BASE_OPT_STRING, &opt.sel.event, "EVENT", "Samples of this event.", 0, 0 },
	SELECT_OPTIONS_WORKLOAD(opt.sel),
	{ "p", BASE_OPT_LIST, &opt.sel.files, "FILE",
	  "An image may be here; it is taken where its build-id is the sampled one. Repeatable.", 0,
	  0 },
	SELECT_OPTION_MANGLED,
	{ "batch", BASE_OPT_INT, &opt.seconds, "SECONDS",
	  "No screen: print a table of the next SECONDS, and end.", 1, SECONDS_MAX },
	{ "json", BASE_OPT_FLAG, &opt.sel.json, NULL, "With -batch: print JSON (dcpijson(5)).", 0,
	  0 },
	TERMINAL_OPTION_WIDE,
	TERMINAL_OPTION_ALL,
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpitop",
	.summary = "show where the time goes now, on the whole screen",
	.operands = "",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpitop", "The procedures of the whole machine; 'h' tells the keys." },
			{ "dcpitop -by unit", "The services." },
			{ "dcpitop -comm make -comm cc1", "The procedures of these programs." },
			{ "dcpitop -batch 10 -i", "A table of the images of the next 10 s." },
			{ NULL, NULL } },
	.min_operands = 0,
	.max_operands = 0,
};

/* ---- what is asked for ----------------------------------------------------------------------- */

static int check(struct base_err *err)
{
	if (opt.by && opt.by_image)
		return base_fail(err, -DCPI_EUSAGE, "-by and -i exclude each other");
	if (opt.sel.json && !opt.seconds)
		return base_fail(err, -DCPI_EUSAGE, "-json goes with -batch alone");
	return fleet_refuse(&opt.sel, err);
}

static int set_query(struct live_query *q, struct base_err *err)
{
	q->idle = opt.idle;
	q->by = opt.by ? LIVE_WORKLOADS : opt.by_image ? LIVE_IMAGES : LIVE_PROCEDURES;
	if (!opt.by || workload_key_find(opt.by, &q->key) >= 0)
		return 0;
	base_fail(err, -DCPI_EUSAGE, "no such key '%s'", opt.by);
	base_hint(err, "keys are comm, exe, pid, uid, cgroup, unit, container, thread and label");
	return -DCPI_EUSAGE;
}

/* The database of the daemon. It may say so to everybody, who need not be able to read it. */
static char *find_database(void)
{
	const struct control_wait wait = {
		.name = cmd.name, .notice_ms = LIMIT_MS, .limit_ms = LIMIT_MS, .gives_up = true
	};
	struct json_object *request = control_request("status"), *answer = NULL;
	struct base_buf text = { 0 };
	struct base_err err = { 0 };
	char *db = NULL;

	if (control_ask(opt.run_dir, &wait, request, &text, &answer, &err) >= 0)
		db = strdup(control_text(answer, "database"));
	json_object_put(request);
	json_object_put(answer);
	base_buf_release(&text);
	return db;
}

/* ---- a table --------------------------------------------------------------------------------- */

/* Wait for an answer to the question that was asked. */
static int await(struct live_feed *f, struct profdb_workloads **w, struct base_err *err)
{
	struct pollfd p = { .fd = f->fd, .events = POLLIN };
	int r = 0;

	while (r == 0) {
		r = poll(&p, 1, LIMIT_MS);
		if (r == 0)
			return base_fail(err, -ETIMEDOUT, "the daemon does not answer 'watch'");
		r = r < 0 && errno != EINTR ? base_fail_errno(err, -errno, "cannot wait")
					    : live_feed_read(f, w, err);
	}
	return r;
}

static void sleep_until(uint64_t ns)
{
	uint64_t now = base_now_ns();

	if (ns > now)
		usleep((useconds_t)((ns - now) / 1000));
}

/* All of them are one. */
static int gather(struct live_feed *f, struct profdb_workloads *all, uint64_t *ns,
		  struct base_err *err)
{
	uint64_t end_ns = 0;
	int r;

	for (;;) {
		struct profdb_workloads *w = NULL;

		r = live_feed_ask(f, err);
		if (r >= 0)
			r = await(f, &w, err);
		if (!end_ns)
			end_ns = base_now_ns() + (uint64_t)opt.seconds * 1000000000;
		if (r >= 0 && w)
			r = profdb_workloads_merge(all, w);
		*ns += f->head.ns;
		profdb_workloads_free(w);
		if (r < 0 || base_now_ns() >= end_ns)
			break;
		sleep_until(live_feed_next_ns(base_now_ns(), end_ns));
	}
	return r < 0 ? base_fail_errno(err, r, "cannot gather samples") : 0;
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static int print_table(const struct live_rows *rows, const struct live_query *q)
{
	struct table t = { .cut = true };
	int r;

	table_column(&t, false, "samples");
	table_column(&t, false, "%");
	table_column(&t, true,
		     q->by == LIVE_WORKLOADS ? workload_key_name(q->key)
		     : q->by == LIVE_IMAGES  ? "image"
					     : "procedure");
	if (q->by == LIVE_PROCEDURES)
		table_column(&t, true, "image");
	for (size_t i = 0; i < rows->nr; i++) {
		table_cell(&t, "%" PRIu64, rows->v[i].count);
		table_cell(&t, "%.2f%%", percent(rows->v[i].count, rows->total));
		table_cell(&t, "%s", rows->v[i].name);
		if (q->by == LIVE_PROCEDURES)
			table_cell(&t, "%s", rows->v[i].image);
	}
	r = table_print(&t, true, stdout);
	table_release(&t);
	return r;
}

static int print_text(const struct live_sums *s, const struct live_query *q,
		      const struct live_rows *rows, uint64_t ns)
{
	const char *event = q->event < s->a->nr_events ? s->a->events[q->event].name : "none";

	terminal_begin();
	printf("event      %s, in %.1f s%s\n", event, (double)ns / 1e9,
	       opt.sel.globs[0].nr ? ", chosen" : "");
	printf("samples    %" PRIu64 " of %" PRIu64 ", and %" PRIu64 " of the idle task\n\n",
	       q->idle ? rows->total - rows->idle : rows->total, rows->all, rows->idle);
	return rows->nr ? print_table(rows, q) : 0;
}

static struct json_object *json_row(const struct live_row *row, const struct live_query *q)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "name", report_json_text(row->group ? row->group : row->name));
	if (q->by == LIVE_PROCEDURES)
		json_object_object_add(o, "image", report_json_text(row->image));
	if (q->by != LIVE_WORKLOADS)
		report_json_build_id(o, row->ai);
	json_object_object_add(o, "samples", json_object_new_uint64(row->count));
	return o;
}

static int print_json(const struct live_sums *s, const struct live_query *q,
		      const struct live_rows *rows, uint64_t ns, bool all)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	static const char *const by[] = { "procedure", "image" };
	const struct analysis_event *e =
		q->event < s->a->nr_events ? &s->a->events[q->event] : NULL;

	for (size_t i = 0; i < rows->nr; i++)
		json_object_array_add(list, json_row(&rows->v[i], q));
	json_object_object_add(o, "schema", json_object_new_string("dcpitop/1"));
	json_object_object_add(o, "event", e ? json_object_new_string(e->name) : NULL);
	json_object_object_add(o, "period", json_object_new_uint64(e ? e->period : 0));
	json_object_object_add(o, "seconds", report_json_number((double)ns / 1e9));
	json_object_object_add(o, "all_users", json_object_new_boolean(all));
	json_object_object_add(o, "by",
			       json_object_new_string(q->by == LIVE_WORKLOADS
							      ? workload_key_name(q->key)
							      : by[q->by]));
	json_object_object_add(o, "rows", list);
	json_object_object_add(o, "total", json_object_new_uint64(rows->total));
	json_object_object_add(o, "busy", json_object_new_uint64(rows->all));
	json_object_object_add(o, "idle", json_object_new_uint64(rows->idle));
	return report_json_put(o, stdout);
}

static int choose_event(const struct live_sums *s, struct live_query *q, struct base_err *err)
{
	int r = opt.sel.event ? analysis_event_find(s->a, opt.sel.event, err)
			      : (int)analysis_event_default(s->a);

	q->event = r < 0 ? 0 : (size_t)r;
	return r < 0 ? r : 0;
}

static int print_rows(struct live_sums *s, struct live_query *q, const struct profdb_workloads *w,
		      uint64_t ns, bool all, struct base_err *err)
{
	struct live_rows rows = { 0 };
	int r = live_rows_make(s, w, q, &rows); /* the events are known then */

	if (r >= 0)
		r = choose_event(s, q, err);
	if (r >= 0)
		r = live_rows_make(s, w, q, &rows);
	if (r >= 0)
		r = opt.sel.json ? print_json(s, q, &rows, ns, all) : print_text(s, q, &rows, ns);
	live_rows_release(&rows);
	return r < 0 ? base_fail_errno(err, r, "cannot sum samples") : 0;
}

static int run_batch(struct live_sums *s, struct live_feed *f, struct base_err *err)
{
	struct profdb_workloads *all = profdb_workloads_new();
	struct live_query q = { .text = "" };
	uint64_t ns = 0;
	int r = all ? set_query(&q, err) : -ENOMEM;

	if (r >= 0)
		r = gather(f, all, &ns, err);
	if (r >= 0)
		r = print_rows(s, &q, all, ns, f->head.all, err);
	profdb_workloads_free(all);
	return r;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int run_screen(struct live_sums *s, struct live_feed *f, struct base_err *err)
{
	struct live_view v;
	int r;

	live_view_init(&v, s);
	r = set_query(&v.query, err);
	v.event = opt.sel.event;
	if (r >= 0 && (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))) {
		r = base_fail(err, -DCPI_EUSAGE, "standard %s is no terminal",
			      isatty(STDOUT_FILENO) ? "input" : "output");
		base_hint(err, "'dcpitop -batch SECONDS' prints a table");
	}
	if (r >= 0)
		r = live_screen_run(&v, f, opt.run_dir, err);
	live_view_release(&v);
	return r;
}

static int run(struct base_err *err)
{
	struct workloads chosen = { 0 };
	struct live_sums s = { 0 };
	struct live_feed f = { .fd = -1 };
	char *db = NULL;
	int r = live_feed_open(&f, opt.run_dir, err);

	if (r >= 0)
		r = workloads_filter(&opt.sel, &chosen, err);
	if (r >= 0 && !opt.sel.db)
		opt.sel.db = db = find_database();
	if (r >= 0)
		r = analysis_open_empty(opt.sel.db, opt.sel.files.items, opt.sel.files.nr, &s.a,
					err);
	s.filter = chosen.filter;
	if (r >= 0)
		r = opt.seconds ? run_batch(&s, &f, err) : run_screen(&s, &f, err);
	live_sums_release(&s);
	analysis_close(s.a);
	workloads_release(&chosen);
	live_feed_close(&f);
	free(db);
	return r;
}

static int dcpitop_main(int argc, char **argv)
{
	struct base_err err = { 0 };
	int r = base_opt_parse(&cmd, &argc, &argv, &err);

	if (r == BASE_OPT_DONE)
		return BASE_EXIT_OK;
	if (r >= 0)
		r = check(&err);
	if (r >= 0)
		r = run(&err);
	terminal_end();
	return report_end(&cmd, r, &err);
}

const struct tool dcpitop_tool = { .cmd = &cmd, .main = dcpitop_main };
