/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables and JSON that all commands share: columns, heads, numbers, notes. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "callpaths.h"
#include "estimate.h"
#include "fleet.h"
#include "progress.h"
#include "report.h"
#include "rows.h"
#include "terminal.h"
#include "window.h"
#include "workloads.h"

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

static int check_workloads(const struct select *s, struct base_err *err)
{
	return s->apart && select_workload(s)
		       ? base_fail(err, -DCPI_EUSAGE, "-pids and -%s exclude each other",
				   select_workload(s))
		       : 0;
}

static int open_database(const struct select *s, struct analysis **out, struct workloads *w,
			 struct base_err *err)
{
	struct analysis_selection sel = { .db = s->db,
					  .shown = fleet_name(s->db),
					  .epoch = s->epoch,
					  .platform = s->platform,
					  .event = s->event,
					  .files = s->files.items,
					  .nr_files = s->files.nr,
					  .maps = s->maps.items,
					  .nr_maps = s->maps.nr,
					  .labels = s->labels.items,
					  .nr_labels = s->labels.nr,
					  .apart = s->apart,
					  .by_label = s->by_label,
					  .sums = s->sums && !s->callers.nr };
	struct workloads own = { 0 };
	int r = check_workloads(s, err);

	if (r >= 0)
		r = window_choose(s, &sel, err);
	if (r < 0)
		return r;
	/*
	 * The index that is kept for the next question may be longer than the user's limit of file
	 * sizes. Programs that open a database in this way execute no other program.
	 */
	signal(SIGXFSZ, SIG_IGN);
	progress_begin(STDERR_FILENO);
	r = analysis_open(&sel, out, err);
	if (r >= 0 && (w || select_workload(s)))
		r = workloads_open(s, *out, w ? w : &own, err);
	else if (r >= 0 && window_cuts(s, *out))
		r = workload_window_restrict(*out, err);
	workloads_release(&own);
	if (r >= 0)
		window_whole(s, *out);
	if (r >= 0 && !s->json && !s->elsewhere)
		terminal_begin();
	return r < 0 || !s->callers.nr ? r : callpaths_restrict(s, *out, err);
}

/* A command that needs less of a store than this has copied it before, by fleet_use. */
int report_open_workloads(const struct select *s, struct analysis **out, struct workloads *w,
			  struct base_err *err)
{
	struct select own = *s;
	int r = fleet_use(&own, w ? FLEET_FILES : FLEET_OFFSET, 0, NULL, err);

	return r < 0 ? r : open_database(&own, out, w, err);
}

int report_open(const struct select *s, struct analysis **out, struct base_err *err)
{
	return report_open_workloads(s, out, NULL, err);
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
	return !analysis_image_is_lost(ai) && analysis_image_remark(a, ai, out);
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
