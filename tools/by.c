/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints samples by process, user, unit, container, thread, label or host. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "by.h"
#include "choose.h"
#include "fleet.h"
#include "report.h"
#include "workloads.h"

enum { SHORT_ID = 12, ID = 64 };

struct by {
	const struct by_options *o;
	struct select *sel; /* it names the copy of a store, once that is made */
	struct analysis *a;
	struct workloads w;
	bool host, version;    /* groups are told by platforms, or by images */
	enum workload_key key; /* unless one of these */
	int nr_what;
	char **what;
	bool *used; /* indexed by @what: it names an image */
	struct workload_groups groups;
	bool known;				 /* how many processes groups have */
	uint64_t total[ANALYSIS_NR_EVENTS];	 /* all samples of the report */
	uint64_t unrecorded[ANALYSIS_NR_EVENTS]; /* samples of these that are in no group */
	size_t event;				 /* sorted by */
	double seconds;				 /* seconds of a sample of that; 0: no clock */
	size_t nr_kept;				 /* groups before "rest" */
};

bool by_is_idle(const struct analysis_image *ai)
{
	const char *name = profdb_profile_path(ai->profile, 0);

	return ai->kind == PROFDB_NAMED && name && strcmp(name, "idle") == 0;
}

/* Are the groups those of this key? */
static bool is_keyed(const struct by *b, enum workload_key key)
{
	return !b->host && !b->version && b->key == key;
}

/* Is the image asked for? Those of @what that name it are marked. */
static bool match(struct by *b, struct analysis *a, struct analysis_image *ai)
{
	return !(b->o->no_idle && by_is_idle(ai)) &&
	       choose_names(a, ai, b->nr_what, b->what, b->used);
}

/* The images of @a, which may be of one host alone, for a report. */
struct wanted {
	struct by *b;
	struct analysis *a;
};

static bool wanted(void *ctx, struct analysis_image *ai)
{
	const struct wanted *w = ctx;

	return match(w->b, w->a, ai);
}

/* ---- groups that profiles tell --------------------------------------------------------------- */

static struct workload_group *find_group(const struct by *b, const char *name)
{
	for (size_t i = 0; i < b->groups.nr; i++)
		if (strcmp(b->groups.v[i].name, name) == 0)
			return &b->groups.v[i];
	return NULL;
}

/* The group of that name, added where it is missing. */
static struct workload_group *group(struct by *b, const char *name)
{
	struct workload_groups *g = &b->groups;
	struct workload_group *one = find_group(b, name);

	if (one)
		return one;
	if (base_grow(&g->v, &g->cap, g->nr + 1, sizeof(*g->v)) < 0)
		return NULL;
	g->nr_events = b->a->nr_events;
	one = &g->v[g->nr++];
	*one = (struct workload_group){ .name = strdup(name),
					.comm = strdup(""),
					.count = calloc(g->nr_events + 1, sizeof(*one->count)) };
	return one->name && one->comm && one->count ? one : NULL;
}

/* The image is of another analysis, which may lack events, or have them in another order. */
static void add_counts(struct by *b, const struct analysis *a, const struct analysis_image *ai,
		       struct workload_group *g)
{
	for (size_t e = 0; e < a->nr_events; e++) {
		int to = analysis_event_find(b->a, a->events[e].name, NULL);

		if (to >= 0)
			g->count[to] += ai->count[e];
	}
}

static const char *label_of(const struct analysis_image *ai)
{
	const char *label = profdb_profile_word(ai->profile, "label");

	return label ? label : "";
}

static bool has_samples(const struct analysis *a, const struct analysis_image *ai)
{
	for (size_t e = 0; e < a->nr_events; e++)
		if (ai->count[e])
			return true;
	return false;
}

/* Adds every image of @a that has samples to the group @name, or (NULL) that of its label. */
static int add_images(struct by *b, struct analysis *a, const char *name)
{
	for (size_t i = 0; i < a->nr_images; i++) {
		struct analysis_image *ai = a->images[i];
		struct workload_group *g;

		if (!match(b, a, ai) || !has_samples(a, ai))
			continue;
		g = group(b, name ? name : label_of(ai));
		if (!g)
			return -ENOMEM;
		add_counts(b, a, ai, g);
	}
	return 0;
}

static int add_version(struct by *b, const struct analysis_image *ai, const char *name)
{
	struct workload_group *g = group(b, name);

	if (!g)
		return -ENOMEM;
	add_counts(b, b->a, ai, g);
	return 0;
}

/* Builds of a file differ in their build-id; what has none is told by its name. */
static int by_version(struct by *b)
{
	char text[BASE_ID_TEXT_LEN];
	int r = 0;

	for (size_t i = 0; i < b->a->nr_images && r >= 0; i++) {
		struct analysis_image *ai = b->a->images[i];
		const struct base_id *id = profdb_profile_image(ai->profile);
		char *name = NULL;

		if (!match(b, b->a, ai) || !has_samples(b->a, ai))
			continue;
		if (asprintf(&name, "%.16s%s%s", id->len ? base_id_text(id, text) : "",
			     id->len ? "  " : "", ai->name) < 0)
			return -ENOMEM;
		r = add_version(b, ai, name);
		free(name);
	}
	return r;
}

static bool lacks_workloads(const struct analysis *a)
{
	for (size_t i = 0; i < a->nr_epochs; i++)
		if (a->epochs[i].unrecorded)
			return true;
	return false;
}

static uint64_t processes_of(struct by *b, struct analysis *a, struct workloads *w)
{
	struct workload_groups groups = { 0 };
	struct wanted of = { b, a };
	uint64_t nr = 0;

	/* Only the number is asked for, and labels divide processes. */
	if (workload_by(a, w->w, &w->filter, WORKLOAD_LABEL, wanted, &of, &groups) >= 0)
		for (size_t i = 0; i < groups.nr; i++)
			nr += groups.v[i].processes;
	workload_groups_release(&groups);
	b->known = b->known && !lacks_workloads(a);
	return nr;
}

/* One that has nothing of what is chosen (a label, an event, an image) has no line. */
static int add_host(struct by *b, const char *platform, struct base_err *err)
{
	struct select one = *b->sel;
	struct workloads w = { 0 };
	struct analysis *a = NULL;
	struct workload_group *g;
	struct base_err why = { 0 };
	int r;

	one.platform = platform;
	r = report_open_workloads(&one, &a, &w, &why);
	if (r >= 0)
		r = add_images(b, a, platform);
	else if (r != -ENOENT)
		*err = why;
	g = r >= 0 ? find_group(b, platform) : NULL;
	if (g)
		g->processes = processes_of(b, a, &w);
	workloads_release(&w);
	analysis_close(a);
	return r == -ENOENT ? 0 : r;
}

static int by_host(struct by *b, struct base_err *err)
{
	int r = 0;

	b->known = true;
	for (size_t i = 0; i < b->a->nr_platforms && r >= 0; i++)
		r = add_host(b, b->a->platforms[i], err);
	return r;
}

/* Profiles of labels are apart in every database. Here no epoch that has workloads is cut to its
 * minutes, whose images have no label. */
static int by_label(struct by *b, struct base_err *err)
{
	struct select one = *b->sel;
	struct analysis *a = NULL;
	int r;

	one.by_label = true;
	r = report_open(&one, &a, err);
	if (r >= 0)
		r = add_images(b, a, NULL);
	analysis_close(a);
	return r;
}

/* ---- groups of workloads --------------------------------------------------------------------- */

static int by_workload(struct by *b)
{
	struct wanted of = { b, b->a };
	int r = workload_by(b->a, b->w.w, &b->w.filter, b->key, wanted, &of, &b->groups);

	b->known = true;
	return r;
}

/* Samples that the images have beyond the groups were not recorded by workload. */
static void add_up(struct by *b)
{
	for (size_t i = 0; i < b->groups.nr; i++)
		for (size_t e = 0; e < b->a->nr_events; e++)
			b->total[e] += b->groups.v[i].count[e];
	for (size_t e = 0; e < b->a->nr_events; e++) {
		uint64_t flat = 0;

		for (size_t i = 0; i < b->a->nr_images; i++)
			if (match(b, b->a, b->a->images[i]))
				flat += b->a->images[i]->count[e];
		if (flat > b->total[e]) {
			b->unrecorded[e] = flat - b->total[e];
			b->total[e] = flat;
		}
	}
}

static int check_images(struct by *b, struct base_err *err)
{
	for (int i = 0; i < b->nr_what; i++)
		if (!b->used[i])
			return analysis_image_unknown(b->a, b->what[i], err);
	return 0;
}

/* Profiles tell more about labels than workloads do, where epochs lack these. */
static bool is_by_profiles(const struct by *b)
{
	bool old = b->w.w && (lacks_workloads(b->a) || !profdb_workloads_nr(b->w.w));

	return is_keyed(b, WORKLOAD_LABEL) && old && !b->a->window.cut && !select_workload(b->sel);
}

static int collect(struct by *b, struct base_err *err)
{
	int r;

	if (b->host)
		r = by_host(b, err);
	else if (b->version)
		r = by_version(b);
	else if (is_by_profiles(b))
		r = by_label(b, err);
	else
		r = by_workload(b);
	if (r < 0)
		return base_fail_errno(err, r, "cannot sum samples");
	add_up(b);
	return check_images(b, err);
}

/* ---- what is shown --------------------------------------------------------------------------- */

static const char *unnamed(const struct by *b, const struct workload_group *g)
{
	return is_keyed(b, WORKLOAD_PID) && g->class == WORKLOAD_DROPPED
		       ? "others"
		       : workload_key_missing(b->key, g->class);
}

static void put_name(const struct by *b, const struct workload_group *g, struct table *t)
{
	if (!*g->name)
		table_cell(t, "%s", unnamed(b, g));
	else if (is_keyed(b, WORKLOAD_PID) && *g->comm)
		table_cell(t, "%s %s", g->name, g->comm);
	else if (is_keyed(b, WORKLOAD_CONTAINER) && strlen(g->name) == ID)
		table_cell(t, "%.*s", SHORT_ID, g->name);
	else
		table_cell(t, "%s", g->name);
}

static void put_seconds(const struct by *b, struct table *t, uint64_t count)
{
	if (b->seconds > 0)
		table_cell(t, "%.2f", (double)count * b->seconds);
}

/* @sum: of this line and all above; NULL: of the last one. */
static void put_counts(const struct by *b, struct table *t, const uint64_t *count,
		       const uint64_t *sum, uint64_t processes)
{
	report_cells(t, count[b->event], b->total[b->event]);
	if (sum && b->total[b->event])
		table_cell(t, "%.2f%%", 100.0 * (double)*sum / (double)b->total[b->event]);
	else
		table_cell(t, "%s", "");
	put_seconds(b, t, count[b->event]);
	if (b->known && processes)
		table_cell(t, "%" PRIu64, processes);
	else
		table_cell(t, "%s", "");
	for (size_t e = 0; e < b->a->nr_events; e++)
		if (e != b->event)
			report_cells(t, count[e], b->total[e]);
}

static void put_heads(const struct by *b, struct table *t)
{
	table_column(t, false, b->a->events[b->event].name);
	table_column(t, false, "%");
	table_column(t, false, "cum%");
	if (b->seconds > 0)
		table_column(t, false, "seconds");
	table_column(t, false, "procs");
	for (size_t e = 0; e < b->a->nr_events; e++) {
		if (e == b->event)
			continue;
		table_column(t, false, b->a->events[e].name);
		table_column(t, false, "%");
	}
	table_column(t, true, b->o->key);
}

/* The groups that are cut off, added up. Returns their processes. */
static uint64_t rest(const struct by *b, uint64_t *count)
{
	uint64_t processes = 0;

	for (size_t i = b->nr_kept; i < b->groups.nr; i++) {
		processes += b->groups.v[i].processes;
		for (size_t e = 0; e < b->a->nr_events; e++)
			count[e] += b->groups.v[i].count[e];
	}
	return processes;
}

static bool has_unrecorded(const struct by *b)
{
	for (size_t e = 0; e < b->a->nr_events; e++)
		if (b->unrecorded[e])
			return true;
	return false;
}

static void put_rows(const struct by *b, struct table *t)
{
	uint64_t others[ANALYSIS_NR_EVENTS] = { 0 }, sum = 0, processes = rest(b, others);

	for (size_t i = 0; i < b->nr_kept; i++) {
		const struct workload_group *g = &b->groups.v[i];

		sum += g->count[b->event];
		put_counts(b, t, g->count, &sum, g->processes);
		put_name(b, g, t);
	}
	if (b->nr_kept < b->groups.nr) {
		sum += others[b->event];
		put_counts(b, t, others, &sum, processes);
		table_cell(t, "%s", "rest");
	}
	if (has_unrecorded(b)) {
		sum += b->unrecorded[b->event];
		put_counts(b, t, b->unrecorded, &sum, 0);
		table_cell(t, "%s", "(not recorded)");
	}
	put_counts(b, t, b->total, NULL, 0);
	table_cell(t, "%s", "total");
}

static int print_text(const struct by *b, struct base_err *err)
{
	bool heads = !b->o->no_header && !b->o->csl;
	struct table t = { 0 };
	int r = 0;

	if (heads) {
		report_head(b->a, stdout);
		report_events(b->a, b->total, stdout);
		if (b->seconds > 0)
			report_idle_head(b->a, stdout);
	}
	if (b->a->nr_events) {
		if (heads)
			putchar('\n');
		put_heads(b, &t);
		put_rows(b, &t);
		r = b->o->csl ? table_print_csl(&t, !b->o->no_header, stdout)
			      : table_print(&t, heads, stdout);
	}
	table_release(&t);
	return r < 0 ? base_fail_errno(err, r, "cannot print the table") : 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static struct json_object *json_seconds(const struct by *b, const uint64_t *count)
{
	return b->seconds > 0 ? report_json_number((double)count[b->event] * b->seconds) : NULL;
}

static struct json_object *json_group(const struct by *b, const struct workload_group *g)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "name", *g->name ? report_json_text(g->name) : NULL);
	json_object_object_add(o, "label", report_json_text(*g->name ? g->name : unnamed(b, g)));
	json_object_object_add(o, "comm", *g->comm ? report_json_text(g->comm) : NULL);
	json_object_object_add(o, "processes",
			       b->known ? json_object_new_uint64(g->processes) : NULL);
	json_object_object_add(o, "samples", report_json_counts(b->a, g->count));
	json_object_object_add(o, "seconds", json_seconds(b, g->count));
	return o;
}

static int print_json(const struct by *b, struct base_err *err)
{
	struct json_object *root = report_json("dcpiprof_by/1", b->a, b->total);
	struct json_object *rows = json_object_new_array();
	uint64_t others[ANALYSIS_NR_EVENTS] = { 0 };
	int r;

	rest(b, others);
	for (size_t i = 0; i < b->nr_kept; i++)
		json_object_array_add(rows, json_group(b, &b->groups.v[i]));
	if (b->seconds > 0)
		report_idle_json(b->a, root);
	json_object_object_add(root, "by", json_object_new_string(b->o->key));
	json_object_object_add(root, "sorted_by",
			       b->a->nr_events ? report_json_text(b->a->events[b->event].name)
					       : NULL);
	json_object_object_add(root, "rows", rows);
	json_object_object_add(root, "rest", report_json_counts(b->a, others));
	json_object_object_add(root, "not_recorded", report_json_counts(b->a, b->unrecorded));
	json_object_object_add(root, "total", report_json_counts(b->a, b->total));
	json_object_object_add(root, "seconds", json_seconds(b, b->total));
	r = report_json_print(root, b->a, stdout);
	return r < 0 ? base_fail_errno(err, r, "cannot print") : 0;
}

/* ---- the report ------------------------------------------------------------------------------ */

/* Just enough groups that their sum reaches the share that is to be kept. */
static void cut(struct by *b)
{
	uint64_t sum = 0;

	b->nr_kept = b->groups.nr;
	if (b->o->keep >= 100)
		return;
	for (b->nr_kept = 0; b->nr_kept < b->groups.nr; b->nr_kept++) {
		if ((double)sum >= b->o->keep / 100 * (double)b->total[b->event])
			break;
		sum += b->groups.v[b->nr_kept].count[b->event];
	}
}

static int choose_event(struct by *b, struct base_err *err)
{
	int event = b->o->sort_event ? analysis_event_find(b->a, b->o->sort_event, err) : 0;

	if (event < 0)
		return event;
	b->event = b->o->sort_event ? (size_t)event : analysis_event_default(b->a);
	return 0;
}

static int print(struct by *b, struct base_err *err)
{
	int r = workload_groups_sort(&b->groups, b->event);

	if (r < 0)
		return base_fail_errno(err, r, "cannot sort");
	b->seconds = report_seconds(b->a, NULL, b->event);
	cut(b);
	return b->sel->json ? print_json(b, err) : print_text(b, err);
}

static int choose_key(struct by *b, struct base_err *err)
{
	b->host = strcmp(b->o->key, "host") == 0;
	b->version = strcmp(b->o->key, "version") == 0;
	if (b->host || b->version || workload_key_find(b->o->key, &b->key) >= 0)
		return 0;
	base_fail(err, -DCPI_EUSAGE, "-by cannot be '%s'", b->o->key);
	base_hint(err,
		  "comm, exe, pid, uid, cgroup, unit, container, thread, label, host or version");
	return -DCPI_EUSAGE;
}

static enum fleet_detail detail(const struct by *b)
{
	if (b->o->no_idle && !b->version)
		return FLEET_FILES; /* sums by machine and workload are of all images */
	/* Pids and threads are in machines' files alone. */
	if (is_keyed(b, WORKLOAD_PID) || is_keyed(b, WORKLOAD_THREAD))
		return FLEET_FILES;
	return b->host ? FLEET_PLATFORM : b->version ? FLEET_ROUTINE : FLEET_WORKLOAD;
}

static int open_all(struct by *b, struct base_err *err)
{
	int r = choose_key(b, err);

	if (r >= 0)
		r = fleet_use(b->sel, detail(b), b->nr_what, b->what, err);
	if (r < 0)
		return r;
	b->used = calloc((size_t)b->nr_what + 1, sizeof(*b->used));
	if (!b->used)
		return base_fail_errno(err, -ENOMEM, "cannot sum samples");
	return report_open_workloads(b->sel, &b->a, &b->w, err);
}

int by_report(const char *prog, const struct select *sel, const struct by_options *o, int nr,
	      char **what, struct base_err *err)
{
	struct select own = *sel; /* it may be of a copy */
	struct by b = { .o = o, .sel = &own, .nr_what = nr, .what = what };
	int code = BASE_EXIT_OK, r = open_all(&b, err);

	if (r >= 0)
		r = choose_event(&b, err);
	if (r >= 0)
		r = collect(&b, err);
	if (r >= 0)
		r = print(&b, err);
	if (b.a)
		code = report_problems(prog, b.a, stderr);
	workload_groups_release(&b.groups);
	workloads_release(&b.w);
	analysis_close(b.a);
	free(b.used);
	return r < 0 ? r : code;
}
