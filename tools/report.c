/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables and JSON that all commands share: columns, heads, numbers, notes. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "estimate.h"
#include "report.h"
#include "rows.h"
#include "terminal.h"
#include "when.h"
#include "workload.h"

/* Images of which something is told in one way, on a terminal without -all: that the table above
 * stays on the screen. */
enum { PROBLEMS_MAX = 8, PROBLEMS_ON_TERMINAL = 3 };

int report_end(const struct base_cmd *cmd, int r, const struct base_err *err)
{
	if (r >= 0)
		return r;
	base_err_print(err, cmd->name, stderr);
	return r == -DCPI_EUSAGE ? BASE_EXIT_USAGE : BASE_EXIT_FAILED;
}

int report_command(const struct base_cmd *cmd, int (*check)(int nr, struct base_err *err),
		   int (*run)(int nr, char **words, struct base_err *err), int argc, char **argv)
{
	struct base_err err = { 0 };
	int r = base_opt_parse(cmd, &argc, &argv, &err);

	if (r == BASE_OPT_DONE)
		return BASE_EXIT_OK;
	if (r >= 0 && check)
		r = check(argc, &err);
	if (r >= 0)
		r = run(argc, argv, &err);
	return report_end(cmd, r, &err);
}

int report_main(const struct base_cmd *cmd, struct select *sel,
		int (*run)(int nr, char **what, struct base_err *err), int argc, char **argv)
{
	struct base_err err = { 0 };
	int r = base_opt_parse(cmd, &argc, &argv, &err);

	if (r == BASE_OPT_DONE)
		return BASE_EXIT_OK;
	if (r >= 0)
		r = select_check(sel, &err);
	if (r >= 0)
		r = run(argc, argv, &err);
	return report_end(cmd, r, &err);
}

void report_print_clean(FILE *to, const char *text)
{
	char *copy = strdup(text);

	fputs(copy ? table_clean(copy) : "?", to);
	free(copy);
}

void report_print_name(FILE *to, const char *linkage)
{
	report_print_clean(to, demangle_shown(linkage));
}

static void report_callers(const struct analysis *a, FILE *to)
{
	size_t event = analysis_event_default(a);

	for (size_t i = 0; i < a->nr_callers; i++) {
		fputs(i ? ", " : a->nr_callers == 1 ? "caller     " : "callers    ", to);
		report_print_clean(to, a->callers[i]);
	}
	if (a->nr_callers && a->nr_events)
		fprintf(to, ": %" PRIu64 " paths of %s", a->caller_paths[event],
			a->events[event].name);
	if (a->nr_callers)
		fputc('\n', to);
}

/* A store's sums stand under the first of the epochs that were added up. */
static bool is_sum(const struct analysis *a)
{
	static const char sum[] = "fleet-of-";

	return profdb_is_store(analysis_database(a)) && a->nr_epochs == 1 && a->nr_platforms == 1 &&
	       strncmp(a->platforms[0], sum, strlen(sum)) == 0;
}

static void epochs_head(const struct analysis *a, FILE *to)
{
	if (is_sum(a)) {
		fprintf(to, "\nepochs     from %s on", a->epochs[0].name);
		return;
	}
	fprintf(to, "\nepoch%s     ", a->nr_epochs == 1 ? " " : "s");
	for (size_t i = 0; i < a->nr_epochs; i++)
		fprintf(to, "%s%s%s", i ? ", " : "", a->epochs[i].name,
			a->epochs[i].open ? " (open: shows its last flush)" : "");
}

/* The first and the last of many platforms are shown. */
static void platforms_head(const struct analysis *a, FILE *to)
{
	enum { MANY = 20 };
	size_t nr = a->nr_platforms;

	fprintf(to, "\nplatform%s  ", nr == 1 ? " " : "s");
	for (size_t i = 0; i<nr; i += nr> MANY && i == 0 ? nr - 1 : 1) {
		fputs(i == 0 ? "" : nr > MANY ? ", …, " : ", ", to);
		report_print_clean(to, a->platforms[i]);
	}
	if (nr > MANY)
		fprintf(to, " (%zu)", nr);
	fputc('\n', to);
}

static size_t nr_whole(const struct analysis *a)
{
	size_t nr = 0;

	for (size_t i = 0; i < a->nr_epochs; i++)
		nr += a->epochs[i].whole;
	return nr;
}

static void print_whole(const struct analysis *a, size_t nr, FILE *to)
{
	fprintf(to, "           of epoch%s", nr == 1 ? "" : "s");
	for (size_t i = 0; i < a->nr_epochs; i++)
		if (a->epochs[i].whole)
			fprintf(to, " %s", a->epochs[i].name);
	fputs(" no minutes are kept: counted as a whole\n", to);
}

static void print_precision(const struct analysis *a, FILE *to)
{
	const struct analysis_window *w = &a->window;
	size_t nr = nr_whole(a);

	if (nr == a->nr_epochs) {
		fputs("           whole epochs only: no minutes are kept\n", to);
		return;
	}
	if (w->cut)
		fputs("           whole minutes; procedures within 1 KiB of code are estimated by "
		      "the "
		      "epoch's shares\n",
		      to);
	if (nr)
		print_whole(a, nr, to);
	if (!w->cut && !nr)
		fputs("           all of these epochs\n", to);
}

/* The window's lines of a head, none without one. */
static void window_head(const struct analysis *a, FILE *to)
{
	const struct analysis_window *w = &a->window;
	char text[WHEN_TEXT];

	if (!w->chosen)
		return;
	fputs("window     ", to);
	if (w->since != INT64_MIN)
		fprintf(to, "%s%s", w->until == INT64_MAX ? "from " : "",
			when_text(w->since, text));
	if (w->until != INT64_MAX)
		fprintf(to, "%s%s", w->since == INT64_MIN ? "up to " : " to ",
			when_text(w->until, text));
	fputc('\n', to);
	print_precision(a, to);
}

/* The lines of the head that say to which workloads the samples were restricted. */
static void workloads_head(const struct analysis *a, FILE *to)
{
	size_t event = analysis_event_default(a);

	for (size_t i = 0; i < a->nr_kept; i++) {
		fprintf(to, "%s%s ", i ? "; " : "only       ", a->kept[i].name);
		for (size_t k = 0; k < a->kept[i].nr; k++) {
			fputs(k ? ", " : "", to);
			report_print_clean(to, a->kept[i].v[k]);
		}
	}
	if (a->nr_kept && a->nr_events)
		fprintf(to, ": %.2f%% of %" PRIu64 " samples of %s",
			a->kept_of[event]
				? 100.0 * (double)a->events[event].sum / (double)a->kept_of[event]
				: 0,
			a->kept_of[event], a->events[event].name);
	if (a->nr_kept)
		fputc('\n', to);
	for (const char *r = NULL; (r = analysis_remark_next(a, r));)
		fprintf(to, "           %s\n", r);
}

void report_head(const struct analysis *a, FILE *to)
{
	fputs("database   ", to);
	report_print_clean(to, analysis_database(a));
	epochs_head(a, to);
	platforms_head(a, to);
	for (size_t i = 0; i < a->labels.nr; i++) {
		fputs(i ? ", " : a->labels.nr == 1 ? "label      " : "labels     ", to);
		report_print_clean(to, a->labels.v[i]);
	}
	if (a->labels.nr)
		fputc('\n', to);
	window_head(a, to);
	report_callers(a, to);
	workloads_head(a, to);
}

/* A file is read for each epoch; for a line of a report more would take too long. */
enum { IDLE_EPOCHS = 48 };

/* CPU time of all CPUs, and the part of it in which they were idle, by the kernel's own account. */
struct idle {
	double idle_s, all_s;
};

/* A note is of the time before it; of most windows of minutes some seconds too much or too little
 * are taken. */
static void add_idle_notes(const struct analysis *a, const struct profdb_workloads *w,
			   struct idle *sum)
{
	for (size_t i = 0; i < profdb_workloads_nr_notes(w); i++) {
		const struct profdb_note *n = profdb_workloads_note_at(w, i);

		if (n->kind != PROFDB_NOTE_IDLE ||
		    (a->window.chosen && (n->utc <= a->window.since || n->utc > a->window.until)))
			continue;
		sum->idle_s += (double)n->n / 1000;
		sum->all_s += (double)n->of / 1000;
	}
}

static void add_idle_epoch(struct analysis *a, const char *epoch, struct idle *sum)
{
	char **platforms = profdb_platforms(a->db, epoch, NULL);
	struct profdb_workloads *w;

	for (size_t i = 0; platforms && platforms[i]; i++) {
		bool chosen = false;

		for (size_t k = 0; k < a->nr_platforms; k++)
			chosen |= strcmp(a->platforms[k], platforms[i]) == 0;
		if (!chosen ||
		    profdb_workloads_load_images(a->db, epoch, platforms[i], &w, NULL) < 0)
			continue;
		add_idle_notes(a, w, sum);
		profdb_workloads_free(w);
	}
	free(platforms); /* one allocation, see profdb.h */
}

/* Idle time in the epochs, platforms and window of @a; false: nothing noted it, or there are more
 * epochs. */
static bool find_idle(struct analysis *a, struct idle *out)
{
	*out = (struct idle){ 0 };
	if (!a->db || a->nr_epochs > IDLE_EPOCHS)
		return false;
	for (size_t i = 0; i < a->nr_epochs; i++)
		add_idle_epoch(a, a->epochs[i].name, out);
	return out->all_s > 0;
}

static bool knows_idle(struct analysis *a, struct idle *idle)
{
	return !a->nr_kept && !a->labels.nr && !a->nr_callers && find_idle(a, idle);
}

void report_idle_head(struct analysis *a, FILE *to)
{
	struct idle idle;

	if (knows_idle(a, &idle))
		fprintf(to,
			"idle       %.1f %% of CPU time by the kernel's account (%.2f of %.2f s)\n",
			100 * idle.idle_s / idle.all_s, idle.idle_s, idle.all_s);
}

/* The part of the time in which the event was counted, 0 to 1: below 1 where events took turns. */
static double event_enabled(const struct analysis_event *ev)
{
	return ev->whole > (double)ev->sum ? (double)ev->sum / ev->whole : 1;
}

/* Clocks and the tick are sampled by time, all other events by their number. */
bool report_is_clock(const char *event)
{
	return estimate_is_ns(event);
}

double report_seconds(const struct analysis *a, const struct analysis_image *ai, size_t event)
{
	enum { NS_PER_S = 1000000000 };
	double sum = 0, units = 0;

	if (!a->nr_events || !report_is_clock(a->events[event].name))
		return 0;
	if (ai)
		return analysis_sample_units(a, ai, event) / NS_PER_S;
	for (size_t i = 0; i < a->nr_images; i++) {
		double n = (double)a->images[i]->count[event];

		sum += n;
		units += n > 0 ? n * analysis_sample_units(a, a->images[i], event) : 0;
	}
	return sum > 0 ? units / sum / NS_PER_S : 0;
}

void report_seconds_line(const struct analysis *a, size_t event, uint64_t sum, FILE *to)
{
	double seconds = report_seconds(a, NULL, event);

	if (seconds > 0)
		fprintf(to, "seconds    %.2f of %s\n", (double)sum * seconds,
			a->events[event].name);
}

void report_event(const struct analysis_event *ev, uint64_t sum, FILE *to)
{
	double enabled = event_enabled(ev);

	if (estimate_is_measured(ev->name)) {
		fprintf(to, "%-9s  %" PRIu64 " ns of threads, measured\n", ev->name, sum);
		return;
	}
	fprintf(to, "%-9s  %" PRIu64 " samples", ev->name, sum);
	if (ev->mixed)
		fputs(", of different periods", to);
	else
		fprintf(to, ", one per %" PRIu64 " %s", ev->period,
			report_is_clock(ev->name) ? "ns" : "events");
	if (enabled < 0.9995)
		fprintf(to, ", counted %.1f %% of the time", 100 * enabled);
	/* The scheduler's own turns are in step with it (dcpid(8), Sources and rights). */
	if (strcmp(ev->name, "tick") == 0)
		fputs("\n           with more threads than CPUs shares may be off by a third", to);
	fputc('\n', to);
}

/* A user who looks just after a start, or after dcpiepoch, is told why there is nothing. */
static void report_none(const struct analysis *a, FILE *to)
{
	bool open = false;

	for (size_t i = 0; i < a->nr_epochs; i++)
		open = open || a->epochs[i].open;
	fputs("samples    none", to);
	if (open)
		fputs(" on disk yet: 'dcpiflush' puts there what the daemon has; -epoch all takes "
		      "earlier epochs too",
		      to);
	fputc('\n', to);
}

void report_events(const struct analysis *a, const uint64_t *sums, FILE *to)
{
	if (!a->nr_events)
		report_none(a, to);
	for (size_t i = 0; i < a->nr_events; i++)
		report_event(&a->events[i], sums ? sums[i] : 0, to);
}

const uint64_t *report_sums(const struct analysis *a, uint64_t *sums)
{
	for (size_t i = 0; i < a->nr_events; i++)
		sums[i] = a->events[i].sum;
	return sums;
}

struct json_object *report_json_text(const char *text)
{
	char *copy = text ? strdup(text) : NULL;
	struct json_object *o = copy ? json_object_new_string(table_clean(copy)) : NULL;

	free(copy);
	return o;
}

void report_json_procedure(struct json_object *o, const char *linkage)
{
	const char *shown = demangle_shown(linkage);

	json_object_object_add(o, "procedure", report_json_text(shown));
	if (shown != linkage)
		json_object_object_add(o, "linkage", report_json_text(linkage));
}

static void json_build_id(struct json_object *o, const char *key, const struct analysis_image *ai)
{
	const struct base_id *id = ai ? profdb_profile_image(ai->profile) : NULL;
	char text[BASE_ID_TEXT_LEN];

	json_object_object_add(
		o, key, id && id->len ? json_object_new_string(base_id_text(id, text)) : NULL);
}

void report_json_build_id(struct json_object *o, const struct analysis_image *ai)
{
	json_build_id(o, "build_id", ai);
}

void report_json_build_ids(struct json_object *o, struct analysis_row *const row[2])
{
	struct json_object *ids = json_object_new_object();

	for (int i = 0; i < 2; i++)
		json_build_id(ids, i ? "b" : "a",
			      row[i] && row[i]->nr_images == 1 ? row[i]->image : NULL);
	json_object_object_add(o, "build_id", ids);
}

void report_json_image(struct json_object *o, const struct analysis_image *ai)
{
	json_object_object_add(o, "image", report_json_text(ai ? ai->name : NULL));
	report_json_build_id(o, ai);
}

struct json_object *report_json_hex(uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	return json_object_new_string(text);
}

struct json_object *report_json_number(double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.10g", value);
	return json_object_new_double_s(value, text);
}

struct json_object *report_json_counts(const struct analysis *a, const uint64_t *count)
{
	struct json_object *o = json_object_new_object();

	for (size_t i = 0; i < a->nr_events; i++)
		json_object_object_add(o, a->events[i].name,
				       json_object_new_uint64(count ? count[i] : 0));
	return o;
}

static struct json_object *json_epochs(const struct analysis *a)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < a->nr_epochs; i++) {
		struct json_object *o = json_object_new_object();

		json_object_object_add(o, "name", report_json_text(a->epochs[i].name));
		json_object_object_add(o, "open", json_object_new_boolean(a->epochs[i].open));
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *json_events(const struct analysis *a, const uint64_t *sums)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < a->nr_events; i++) {
		const struct analysis_event *ev = &a->events[i];
		struct json_object *o = json_object_new_object();

		json_object_object_add(o, "name", json_object_new_string(ev->name));
		json_object_object_add(o, "period",
				       ev->mixed ? NULL : json_object_new_uint64(ev->period));
		json_object_object_add(o, "samples", json_object_new_uint64(sums ? sums[i] : 0));
		json_object_object_add(o, "enabled", report_json_number(event_enabled(ev)));
		json_object_array_add(list, o);
	}
	return list;
}

static void json_callers(struct json_object *root, const struct analysis *a)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < a->nr_callers; i++)
		json_object_array_add(list, report_json_text(a->callers[i]));
	json_object_object_add(root, "callers", list);
	json_object_object_add(root, "caller_paths", report_json_counts(a, a->caller_paths));
}

static struct json_object *json_labels(const struct analysis *a)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < a->labels.nr; i++)
		json_object_array_add(list, report_json_text(a->labels.v[i]));
	return list;
}

static struct json_object *json_time(int64_t utc)
{
	return utc == INT64_MIN || utc == INT64_MAX ? NULL : json_object_new_int64(utc);
}

static struct json_object *json_whole(const struct analysis *a)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < a->nr_epochs; i++)
		if (a->epochs[i].whole)
			json_object_array_add(list, json_object_new_string(a->epochs[i].name));
	return list;
}

static void window_json(const struct analysis *a, struct json_object *root)
{
	const struct analysis_window *w = &a->window;
	struct json_object *o;

	if (!w->chosen)
		return;
	o = json_object_new_object();
	json_object_object_add(o, "since", json_time(w->since));
	json_object_object_add(o, "until", json_time(w->until));
	json_object_object_add(o, "minutes", json_object_new_boolean(w->cut));
	json_object_object_add(o, "whole_epochs", json_whole(a));
	json_object_object_add(root, "window", o);
}

static void workloads_json(const struct analysis *a, struct json_object *root)
{
	struct json_object *only = json_object_new_object(), *list = json_object_new_array();

	for (size_t i = 0; i < a->nr_kept; i++) {
		struct json_object *globs = json_object_new_array();

		for (size_t k = 0; k < a->kept[i].nr; k++)
			json_object_array_add(globs, report_json_text(a->kept[i].v[k]));
		json_object_object_add(only, a->kept[i].name, globs);
	}
	for (const char *r = NULL; (r = analysis_remark_next(a, r));)
		json_object_array_add(list, report_json_text(r));
	json_object_object_add(root, "only", only);
	json_object_object_add(root, "only_of", report_json_counts(a, a->kept_of));
	json_object_object_add(root, "remarks", list);
}

struct json_object *report_json(const char *schema, const struct analysis *a, const uint64_t *sums)
{
	struct json_object *root = json_object_new_object();
	struct json_object *platforms = json_object_new_array();

	for (size_t i = 0; i < a->nr_platforms; i++)
		json_object_array_add(platforms, report_json_text(a->platforms[i]));
	if (schema)
		json_object_object_add(root, "schema", json_object_new_string(schema));
	json_object_object_add(root, "database", report_json_text(analysis_database(a)));
	json_object_object_add(root, "epochs", json_epochs(a));
	json_object_object_add(root, "platforms", platforms);
	if (a->labels.nr)
		json_object_object_add(root, "labels", json_labels(a));
	window_json(a, root);
	if (a->nr_callers)
		json_callers(root, a);
	if (a->nr_kept)
		workloads_json(a, root);
	json_object_object_add(root, "events", json_events(a, sums));
	return root;
}

void report_idle_json(struct analysis *a, struct json_object *root)
{
	struct idle idle;
	struct json_object *o;

	if (!knows_idle(a, &idle))
		return;
	o = json_object_new_object();
	json_object_object_add(o, "idle_seconds", report_json_number(idle.idle_s));
	json_object_object_add(o, "cpu_seconds", report_json_number(idle.all_s));
	json_object_object_add(root, "idle", o);
}

/* The database brings these images along, so that it is its fault where one is missing. */
static bool is_ours(const struct analysis_image *ai)
{
	return ai->kind != PROFDB_FILE && ai->state != ANALYSIS_UNREADABLE;
}

static void json_problem(struct json_object *list, const struct base_err *err)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "text", report_json_text(err->text));
	if (*err->hint)
		json_object_object_add(o, "hint", report_json_text(err->hint));
	json_object_array_add(list, o);
}

/* An image that could not be opened is told by itself. */
static bool is_remarkable(const struct analysis *a, const struct analysis_image *ai,
			  struct base_err *out)
{
	return analysis_image_is_asked(a, ai) && !analysis_image_is_lost(ai) &&
	       analysis_image_remark(a, ai, out);
}

static bool has_lost(const struct analysis_epoch *e, struct base_err *out)
{
	*out = (struct base_err){ 0 };
	if (e->lost)
		base_fail(out, -EIO,
			  "epoch %s lacks %" PRIu64 " sample%s that its daemon could not write "
			  "before it ended",
			  e->name, e->lost, e->lost == 1 ? "" : "s");
	return e->lost;
}

void report_json_problems(struct json_object *root, const struct analysis *a)
{
	struct json_object *problems = json_object_new_array();
	struct base_err why = { 0 };

	for (size_t i = 0; i < a->nr_bad; i++)
		json_problem(problems, &a->bad[i].err);
	for (size_t i = 0; i < a->nr_images; i++)
		if (analysis_image_is_lost(a->images[i]))
			json_problem(problems, &a->images[i]->why);
	for (size_t i = 0; i < a->nr_images; i++)
		if (is_remarkable(a, a->images[i], &why))
			json_problem(problems, &why);
	for (size_t i = 0; i < a->nr_epochs; i++)
		if (has_lost(&a->epochs[i], &why))
			json_problem(problems, &why);
	json_object_object_add(root, "problems", problems);
}

int report_json_put(struct json_object *root, FILE *to)
{
	const char *text = json_object_to_json_string_ext(
		root, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE);

	if (text)
		fprintf(to, "%s\n", text);
	json_object_put(root);
	return text ? 0 : -ENOMEM;
}

int report_json_print(struct json_object *root, const struct analysis *a, FILE *to)
{
	report_json_problems(root, a);
	return report_json_put(root, to);
}

/* Most samples first: the images whose names are missed most. */
static int by_samples(const void *pa, const void *pb)
{
	const struct analysis_image *a = *(struct analysis_image *const *)pa;
	const struct analysis_image *b = *(struct analysis_image *const *)pb;

	if (a->count[0] != b->count[0])
		return a->count[0] > b->count[0] ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* How much has no names; images without samples are there for the callers that lie in them. */
static void print_lost(const struct analysis *a, const struct analysis_image *ai, FILE *to)
{
	bool sampled = profdb_profile_nr_events(ai->profile);

	if (!sampled)
		fputs(" (callers alone)\n", to);
	else
		fprintf(to, " (%" PRIu64 " sample%s of %s)\n", ai->count[0],
			ai->count[0] == 1 ? "" : "s",
			a->nr_events ? a->events[0].name : "no event");
}

static size_t problems_max(void)
{
	return terminal_columns() && !terminal_all ? PROBLEMS_ON_TERMINAL : PROBLEMS_MAX;
}

static int image_problems(const char *prog, const struct analysis *a, struct analysis_image **bad,
			  size_t nr, FILE *to)
{
	int code = BASE_EXIT_OK;
	static bool told; /* of another set */
	bool files = false;
	size_t shown = 0;

	for (size_t i = 0; i < nr; i++) {
		bool ours = is_ours(bad[i]);

		code = ours ? BASE_EXIT_FAILED : code;
		files |= bad[i]->kind == PROFDB_FILE;
		if (!ours && shown >= problems_max())
			continue;
		shown++;
		fprintf(to, "%s: %s%s", prog, ours ? "" : "warning: ", bad[i]->why.text);
		print_lost(a, bad[i], to);
		if (ours && *bad[i]->why.hint)
			fprintf(to, "hint: %s\n", bad[i]->why.hint);
	}
	if (shown < nr)
		fprintf(to, "%s: warning: %zu more images could not be read\n", prog, nr - shown);
	if (files && !told)
		fputs("hint: -p FILE names where it is; DCPI_DEBUG_PATH=DIR looks for DIR/<path> "
		      "and DIR/.build-id/xx/yyy; 'dcpiscan -o MAP DIR' and -m MAP find files "
		      "anywhere\n",
		      to);
	told |= files;
	return code;
}

/* Report names of -p that can be no image at all; an image without samples is no error. */
static void bad_files(const char *prog, const struct analysis *a, FILE *to)
{
	for (size_t i = 0; i < a->sources.nr_files; i++) {
		struct base_err why = { 0 };
		struct image *img;

		if (image_open_path(a->sources.files[i], IMAGE_FILE, &img, &why) < 0)
			fprintf(to, "%s: warning: -p: %s\n", prog, why.text);
		else
			image_close(img);
	}
}

/* Is it said for the first time? */
static bool is_new(const char *part, size_t len)
{
	enum { PARTS_MAX = 32 };
	static char *said[PARTS_MAX];
	size_t nr = 0;

	for (; nr < PARTS_MAX && said[nr]; nr++)
		if (strncmp(said[nr], part, len) == 0 && !said[nr][len])
			return false;
	if (nr < PARTS_MAX)
		said[nr] = strndup(part, len);
	return true;
}

/* The parts of a hint, between "; ", that were not said of other images, also of other sets. */
static void print_hint(const struct base_err *why, FILE *to)
{
	const char *before = "hint: ";

	for (const char *part = why->hint; *part;) {
		const char *end = strstr(part, "; ");
		size_t len = end ? (size_t)(end - part) : strlen(part);

		if (is_new(part, len)) {
			fprintf(to, "%s%.*s", before, (int)len, part);
			before = "; ";
		}
		part += len + (end ? 2 : 0);
	}
	if (*before == ';')
		fputc('\n', to);
}

/* What is wrong with images, or not known of them, those with most samples first. */
static void print_remarks(const char *prog, const struct analysis *a, FILE *to)
{
	struct analysis_image **v = calloc(a->nr_images + 1, sizeof(struct analysis_image *));
	struct base_err why = { 0 };
	size_t nr = 0;

	if (!v)
		return;
	if (a->nr_images)
		memcpy(v, a->images, a->nr_images * sizeof(struct analysis_image *));
	qsort(v, a->nr_images, sizeof(struct analysis_image *), by_samples);
	for (size_t i = 0; i < a->nr_images; i++) {
		if (!is_remarkable(a, v[i], &why) || nr++ >= problems_max())
			continue;
		fprintf(to, "%s: warning: %s\n", prog, why.text);
		print_hint(&why, to);
	}
	if (nr > problems_max())
		fprintf(to,
			"%s: warning: %zu more images lack names, or have the build-id of another; "
			"'dcpiprof -json' lists them\n",
			prog, nr - problems_max());
	free(v);
}

int report_bad(const char *prog, const struct analysis *a, FILE *to)
{
	struct base_err why = { 0 };

	fflush(stdout);
	bad_files(prog, a, to);
	for (size_t i = 0; i < a->nr_bad; i++)
		base_err_print(&a->bad[i].err, prog, to);
	print_remarks(prog, a, to);
	for (size_t i = 0; i < a->nr_epochs; i++)
		if (has_lost(&a->epochs[i], &why))
			fprintf(to, "%s: warning: %s\n", prog, why.text);
	return a->nr_bad ? BASE_EXIT_FAILED : BASE_EXIT_OK;
}

int report_problems(const char *prog, const struct analysis *a, FILE *to)
{
	struct analysis_image **bad = calloc(a->nr_images + 1, sizeof(struct analysis_image *));
	int code = report_bad(prog, a, to);
	size_t nr = 0;

	for (size_t i = 0; bad && i < a->nr_images; i++)
		if (analysis_image_is_lost(a->images[i]))
			bad[nr++] = a->images[i];
	if (nr) {
		qsort(bad, nr, sizeof(struct analysis_image *), by_samples);
		if (image_problems(prog, a, bad, nr, to) != BASE_EXIT_OK)
			code = BASE_EXIT_FAILED;
	}
	free(bad);
	return code;
}

void report_cells(struct table *t, uint64_t count, uint64_t total)
{
	if (!count) {
		table_cell(t, "%s", "");
		table_cell(t, "%s", "");
		return;
	}
	table_cell(t, "%" PRIu64, count);
	table_cell(t, "%.2f%%", 100.0 * (double)count / (double)total);
}

void report_column(struct table *t, const char *head)
{
	table_column(t, true, head);
	if (strcmp(head, "pc") == 0)
		table_address(t);
	if (strcmp(head, "image") == 0)
		table_spare(t);
	if (strcmp(head, "instruction") == 0 || strcmp(head, "text") == 0)
		table_code(t);
}

void report_columns(struct table *t, const struct analysis *a)
{
	for (size_t i = 0; i < a->nr_events; i++) {
		table_column(t, false, a->events[i].name);
		table_column(t, false, "%");
	}
}
