/* SPDX-License-Identifier: BSD-2-Clause */
/* The samples that a report is of are opened: those that options choose by time, by workload and by
 * caller, and what is to be said about that choice. */
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "callpaths.h"
#include "fleet.h"
#include "progress.h"
#include "report.h"
#include "terminal.h"
#include "when.h"
#include "workloads.h"

/* ---- a window of time: -since and -until ----------------------------------------------------- */

/* Call paths, values and single processes have no minutes. */
static bool is_whole(const struct select *s)
{
	return s->whole || s->callers.nr || s->apart;
}

/* The window of the options, in whole minutes, into @sel. 0 or -DCPI_EUSAGE with @err. */
/* The whole minutes that a window touches. */
static void round_out(struct when_window *w)
{
	enum { MINUTE = 60 };

	if (w->since != INT64_MIN)
		w->since -= w->since % MINUTE;
	if (w->until != INT64_MAX && w->until % MINUTE)
		w->until += MINUTE - w->until % MINUTE;
}

static int window_choose(const struct select *s, struct analysis_selection *sel,
			 struct base_err *err)
{
	struct when_window w;
	int r = when_window(s->since, s->until, (int64_t)time(NULL), &w, err);

	if (r < 0 || (!s->since && !s->until))
		return r;
	round_out(&w);
	sel->timed = true;
	sel->whole = is_whole(s);
	sel->since = w.since;
	sel->until = w.until;
	return 0;
}

int report_epochs(const struct select *s, struct profdb *db, char ***out, struct base_err *err)
{
	struct analysis_selection sel = { .epoch = s->epoch };
	int r = window_choose(s, &sel, err);

	*out = NULL;
	if (r >= 0)
		r = profdb_epoch_select(db, s->epoch || !sel.timed ? s->epoch : "all", out, err);
	if (r < 0 || !sel.timed || profdb_epochs_within(db, *out, sel.since, sel.until))
		return r;
	return base_fail(err, -ENOENT, "no epoch has samples of this time");
}

/* Whether @a, which was opened with it, is to be restricted to minutes. */
static bool window_cuts(const struct select *s, const struct analysis *a)
{
	for (size_t i = 0; i < a->nr_epochs; i++)
		if (!a->epochs[i].inside)
			return !is_whole(s);
	return false;
}

/* Notes in @a the epochs that count as a whole, where what is shown has no minutes. */
static void window_whole(const struct select *s, struct analysis *a)
{
	for (size_t i = 0; is_whole(s) && i < a->nr_epochs; i++)
		a->epochs[i].whole = !a->epochs[i].inside;
}

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

/*
 * Reads the workloads of what is in @a, and leaves in @a only the samples that @s chooses; without
 * such options @a stays as it is. -ENOENT, with a hint: none are kept of it.
 */
static int workloads_open(const struct select *s, struct analysis *a, struct workloads *out,
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

/* ---- all of it ------------------------------------------------------------------------------- */

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
