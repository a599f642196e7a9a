/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses samples by their workload, and says in heads of reports which, and what is not known. */
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "window.h"
#include "workloads.h"

/* ---- users by name --------------------------------------------------------------------------- */

/* A number, or what may match one. */
static bool is_number_glob(const char *text)
{
	return text[strspn(text, "0123456789*?[]-!^")] == 0;
}

static int find_user(struct workloads *x, const char *name, const char **out, struct base_err *err)
{
	const struct passwd *user = getpwnam(name);
	char *number;

	if (!user) {
		base_fail(err, -DCPI_EUSAGE, "no user '%s' is known here", name);
		base_hint(err, "give -uid a number");
		return -DCPI_EUSAGE;
	}
	if (asprintf(&number, "%" PRIu32, (uint32_t)user->pw_uid) < 0)
		return base_fail_errno(err, -ENOMEM, "cannot take -uid");
	x->numbers[x->nr_numbers++] = number;
	*out = number;
	return 0;
}

static int find_users(struct workloads *x, const struct base_opt_list *names, struct base_err *err)
{
	int r = 0;

	x->uids = calloc(names->nr + 1, sizeof(*x->uids));
	x->numbers = calloc(names->nr + 1, sizeof(*x->numbers));
	if (!x->uids || !x->numbers)
		return base_fail_errno(err, -ENOMEM, "cannot take -uid");
	for (size_t i = 0; i < names->nr && r >= 0; i++) {
		x->uids[i] = names->items[i];
		if (!is_number_glob(names->items[i]))
			r = find_user(x, names->items[i], &x->uids[i], err);
	}
	x->filter.globs[WORKLOAD_UID] = x->uids;
	return r;
}

/* ---- what is said about it ------------------------------------------------------------------- */

static int keep(const struct select *s, struct analysis *a)
{
	a->kept = calloc(WORKLOAD_NR_KEYS, sizeof(*a->kept));
	if (!a->kept)
		return -ENOMEM;
	for (size_t i = 0; i < WORKLOAD_NR_KEYS; i++)
		if (s->globs[i].nr)
			a->kept[a->nr_kept++] =
				(struct analysis_kept){ workload_key_name((enum workload_key)i),
							s->globs[i].items, s->globs[i].nr };
	return 0;
}

static int remark(struct analysis *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int remark(struct analysis *a, const char *fmt, ...)
{
	va_list args;
	int r;

	va_start(args, fmt);
	r = base_buf_vprintf(&a->remarks, fmt, args);
	va_end(args);
	return r < 0 ? r : base_buf_append(&a->remarks, "", 1);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* Samples of the epochs that no workload has; @recorded: those that some have; @names: epochs that
 * have none. */
static int remark_unrecorded(struct analysis *a, const struct base_buf *names, uint64_t recorded,
			     size_t event)
{
	uint64_t sum = a->events[event].sum;

	if (recorded >= sum)
		return 0;
	if (!names->len)
		return remark(a, "%.2f%% of the samples were not recorded by workload",
			      percent(sum - recorded, sum));
	return remark(a,
		      "%.2f%% of the samples were not recorded by workload: some epochs have none "
		      "(%.*s)",
		      percent(sum - recorded, sum), (int)names->len - 1,
		      (const char *)names->data + 1);
}

static int remark_epochs(struct analysis *a, const struct workload_filter *f, uint64_t recorded,
			 size_t event)
{
	struct base_buf names = { 0 };
	int r = workload_unrecorded(a, &names);

	/* Samples that were not recorded have no time: how many they are in it is not known. */
	if (r >= 0 && !workload_filter_has_time(f))
		r = remark_unrecorded(a, &names, recorded, event);
	else if (r >= 0 && names.len)
		r = remark(a, "epochs left out, as they keep no workloads:%.*s", (int)names.len,
			   (const char *)names.data);
	base_buf_release(&names);
	return r;
}

/* How much of what the other options choose may be of the wanted processes, or threads. */
static int remark_dropped(struct analysis *a, const struct workloads *x, enum workload_key key,
			  size_t event, bool *marks)
{
	uint64_t all[ANALYSIS_NR_EVENTS] = { 0 }, dropped[ANALYSIS_NR_EVENTS] = { 0 };
	int r = x->filter.nr[key] ? workload_mark(a, x->w, &x->filter, key, marks) : 0;

	if (r < 0 || !x->filter.nr[key])
		return r;
	workload_sum(a, x->w, &x->filter, marks, all);
	for (size_t i = 0; i < profdb_workloads_nr(x->w); i++)
		marks[i] =
			marks[i] && workload_key_dropped(profdb_workloads_workload(x->w, i), key);
	workload_sum(a, x->w, &x->filter, marks, dropped);
	return !dropped[event] ? 0
	       : key == WORKLOAD_PID
		       ? remark(a,
				"-pid: %.1f%% of the samples are of processes too small to be kept "
				"by pid",
				percent(dropped[event], all[event]))
		       : remark(a,
				"-thread: %.1f%% of the samples are of threads whose name is not "
				"kept",
				percent(dropped[event], all[event]));
}

static int remarks(struct analysis *a, const struct workloads *x)
{
	uint64_t recorded[ANALYSIS_NR_EVENTS] = { 0 };
	size_t event = analysis_event_default(a);
	bool *marks = calloc(profdb_workloads_nr(x->w) + 1, sizeof(*marks));
	struct workload_filter all;
	int r = marks ? 0 : -ENOMEM;

	workload_filter_init(&all);
	all.since = x->filter.since;
	all.until = x->filter.until;
	if (r >= 0)
		r = workload_mark(a, x->w, &all, WORKLOAD_NR_KEYS, marks);
	if (r >= 0 && a->nr_events) {
		workload_sum(a, x->w, &all, marks, recorded);
		r = remark_epochs(a, &all, recorded[event], event);
	}
	for (size_t i = 0; i < a->nr_events; i++)
		a->kept_of[i] = a->events[i].sum > recorded[i] && !workload_filter_has_time(&all)
					? a->events[i].sum
					: recorded[i];
	if (r >= 0 && a->nr_events)
		r = remark_dropped(a, x, WORKLOAD_PID, event, marks);
	if (r >= 0 && a->nr_events)
		r = remark_dropped(a, x, WORKLOAD_THREAD, event, marks);
	free(marks);
	return r;
}

/* ---- the choice ------------------------------------------------------------------------------ */

static int no_workloads(const struct analysis *a, struct base_err *err)
{
	struct base_buf names = { 0 };
	int r = workload_unrecorded(a, &names);

	if (r < 0 || !names.len) {
		r = base_fail(err, -DCPI_EFORMAT, "no workloads can be read");
	} else {
		r = base_fail(err, -ENOENT, "no workloads were kept in the chosen epochs:%.*s",
			      (int)names.len, (const char *)names.data);
		base_hint(err, "an older dcpid wrote them; all but such options works there");
	}
	base_buf_release(&names);
	return r;
}

static bool is_unknown(const struct analysis *a, const struct workloads *x)
{
	return !profdb_workloads_nr(x->w) && a->nr_events;
}

static int choose(const struct select *s, struct analysis *a, struct workloads *x,
		  struct base_err *err)
{
	int r = keep(s, a);

	if (r >= 0 && is_unknown(a, x))
		return no_workloads(a, err);
	if (r >= 0)
		r = remarks(a, x);
	if (r < 0)
		return base_fail_errno(err, r, "cannot choose samples by their workload");
	a->window.cut = workload_filter_has_time(&x->filter);
	return workload_only(a, x->w, &x->filter, err);
}

/* Epochs without minutes count as a whole, which is said. */
static int choose_time(const struct select *s, struct analysis *a, const struct workloads *x,
		       struct base_err *err)
{
	int r = workload_only(a, x->w, &x->filter, err);

	a->window.cut = true;
	return r < 0 || s->minutes ? r : workload_window_fill(a, err);
}

int workloads_filter(const struct select *s, struct workloads *out, struct base_err *err)
{
	workload_filter_init(&out->filter);
	for (size_t i = 0; i < WORKLOAD_NR_KEYS; i++) {
		out->filter.globs[i] = s->globs[i].items;
		out->filter.nr[i] = s->globs[i].nr;
	}
	return find_users(out, &s->globs[WORKLOAD_UID], err);
}

int workloads_open(const struct select *s, struct analysis *a, struct workloads *out,
		   struct base_err *err)
{
	int r = workloads_filter(s, out, err);
	bool minutes;

	if (a->window.chosen && (s->minutes || window_cuts(s, a))) {
		out->filter.since = a->window.since;
		out->filter.until = a->window.until;
	}
	minutes = s->minutes || s->read_minutes || workload_filter_has_time(&out->filter);
	if (r >= 0)
		r = workload_load(a, minutes ? WORKLOAD_MINUTES : WORKLOAD_COUNTS, &out->w, err);
	if (r < 0)
		return r;
	if (select_workload(s))
		return choose(s, a, out, err);
	return workload_filter_is_all(&out->filter) ? 0 : choose_time(s, a, out, err);
}

void workloads_release(struct workloads *x)
{
	profdb_workloads_free(x->w);
	for (size_t i = 0; i < x->nr_numbers; i++)
		free(x->numbers[i]);
	free(x->numbers);
	free(x->uids);
}

/* ---- heads ----------------------------------------------------------------------------------- */

void workloads_head(const struct analysis *a, FILE *to)
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
			percent(a->events[event].sum, a->kept_of[event]), a->kept_of[event],
			a->events[event].name);
	if (a->nr_kept)
		fputc('\n', to);
	for (const char *r = NULL; (r = analysis_remark_next(a, r));)
		fprintf(to, "           %s\n", r);
}

void workloads_json(const struct analysis *a, struct json_object *root)
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

/* ---- idle CPUs ------------------------------------------------------------------------------- */

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

void workloads_idle_head(struct analysis *a, FILE *to)
{
	struct idle idle;

	if (knows_idle(a, &idle))
		fprintf(to,
			"idle       %.1f %% of CPU time by the kernel's account (%.2f of %.2f s)\n",
			100 * idle.idle_s / idle.all_s, idle.idle_s, idle.all_s);
}

void workloads_idle_json(struct analysis *a, struct json_object *root)
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
