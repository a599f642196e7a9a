/* SPDX-License-Identifier: BSD-2-Clause */
/* The answer to "status": docs/format/control.md. */
#include <errno.h>
#include <inttypes.h>
#include <json.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "budget.h"
#include "core.h"
#include "step.h"
#include "values.h"
#include "trace.h"

/* An answer that is kept may be so old, and in a turn that was not expected to take long, if no
 * client asked for it before. It takes as long as hundreds of samples. */
#define MOMENT_NS  500000000ull
#define SECONDS_NS 10000000000ull

/* A path may hold what no string of JSON may: it is cleaned as reports do. */
static void add_text(struct json_object *o, const char *name, const char *text)
{
	char *copy = strdup(text);

	json_object_object_add(o, name,
			       copy ? json_object_new_string(base_text_clean(copy)) : NULL);
	free(copy);
}

static void add_u64(struct json_object *o, const char *name, uint64_t v)
{
	json_object_object_add(o, name, json_object_new_uint64(v));
}

static void add_fraction(struct json_object *o, const char *name, double v)
{
	char text[32];

	snprintf(text, sizeof(text), "%.6f", v);
	json_object_object_add(o, name, json_object_new_double_s(v, text));
}

static struct json_object *events(const struct daemon *d, const struct driver_stats *stats)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < driver_nr_events(d->driver); i++) {
		const struct driver_event *e = driver_event_get(d->driver, i);
		struct json_object *o = json_object_new_object();

		add_text(o, "name", e->name);
		add_u64(o, "period", e->period);
		add_fraction(o, "enabled", e->enabled);
		if (i < driver_nr_sampled(d->driver)) {
			add_u64(o, "received", stats->received[i]);
			add_u64(o, "missed", stats->missed[i]);
		}
		json_object_array_add(list, o);
	}
	return list;
}

static void add_account(struct json_object *o, const struct account *a)
{
	struct json_object *lost = json_object_new_object(), *bucket = json_object_new_object();

	add_u64(o, "received", a->received);
	add_u64(o, "stored", a->stored);
	add_u64(o, "pending", a->pending);
	add_u64(o, "lost", account_lost(a));
	json_object_object_add(o, "balanced", json_object_new_boolean(account_balanced(a)));
	for (int i = 0; i < ACCOUNT_NR_LOSSES; i++)
		add_u64(lost, account_loss_name((enum account_loss)i), a->lost[i]);
	for (int i = 0; i < (int)ACCOUNT_FIRST_TIME; i++)
		add_u64(bucket, account_bucket_name((enum account_bucket)i), a->bucket[i]);
	json_object_object_add(o, "losses", lost);
	json_object_object_add(o, "buckets", bucket);
}

static void add_driver(struct json_object *o, const struct driver_stats *stats)
{
	uint64_t missed = 0;

	for (size_t i = 0; i < DRIVER_NR_EVENTS; i++)
		missed += stats->missed[i];
	add_u64(o, "missed", missed);
	add_u64(o, "lost_load_events", stats->lost_load);
	add_u64(o, "throttled", stats->throttled);
}

static struct json_object *dynamic(const struct daemon *d)
{
	struct json_object *o = json_object_new_object();
	struct dyn_stats s = { 0 };
	struct budget_stats shares;

	dyn_stats_get(d->dyn, &s);
	budget_stats_get(d->budgets, &shares);
	add_u64(o, "clients", s.clients);
	add_u64(o, "facilities", s.facilities);
	add_u64(o, "routines", s.routines);
	add_u64(o, "images_written", s.images_written);
	add_u64(o, "images_folded", s.images_merged);
	add_u64(o, "folds_failed", s.merges_failed);
	add_u64(o, "files_kept", s.files_kept);
	add_u64(o, "registries_refused", s.registries_refused);
	add_u64(o, "records_bad", s.records_bad);
	add_u64(o, "records_dropped", s.records_dropped);
	add_u64(o, "entries_left_out", s.entries_left_out);
	add_u64(o, "changes_missed", s.changes_missed);
	add_u64(o, "generations_unread", s.generations_unread);
	add_u64(o, "routines_refused", s.routines_refused);
	add_u64(o, "users_over_budget", shares.users_over);
	add_u64(o, "requests_refused", shares.requests_refused);
	add_u64(o, "image_bytes", d->quota.len);
	add_u64(o, "quota_bytes", d->quota.max);
	json_object_object_add(o, "over_quota", json_object_new_boolean(d->quota.over));
	return o;
}

static const char *const end_names[VTRACE_NR_ENDS] = {
	[VTRACE_CONTINUES] = "goes-on",
	[VTRACE_FULL] = "full",
	[VTRACE_UNTRANSLATED] = "untranslated",
	[VTRACE_CODE] = "code-unreadable",
	[VTRACE_UNKNOWN_IF] = "unknown-branch",
	[VTRACE_UNKNOWN_JUMP] = "unknown-jump",
	[VTRACE_SYSTEM] = "system",
	[VTRACE_FAULTS] = "faults",
	[VTRACE_UNDECODED] = "undecoded",
	[VTRACE_TRACE] = "trace-full",
};

static void add_trace_parts(struct json_object *o, const struct trace_stats *s,
			    const struct driver_trace_stats *driver)
{
	struct json_object *lost = json_object_new_object(), *ends = json_object_new_object();

	for (int i = 0; i < TRACE_NR_LOSSES; i++)
		add_u64(lost, trace_loss_name((enum trace_loss)i), s->lost[i]);
	for (int i = VTRACE_FULL; i < VTRACE_NR_ENDS; i++)
		add_u64(ends, end_names[i], driver->by_end[i]);
	json_object_object_add(o, "window_losses", lost);
	json_object_object_add(o, "window_ends", ends);
}

/* Names of their own: whoever looks for "stored" finds that of samples. */
static struct json_object *traces(const struct daemon *d)
{
	struct json_object *o = json_object_new_object();
	struct driver_trace_stats driver = { 0 };
	struct trace_stats s = { 0 };

	trace_stats_get(d->traces, false, &s);
	trace_driver_stats_get(d->traces, &driver);
	add_u64(o, "windows_received", s.received);
	add_u64(o, "windows_stored", s.stored);
	add_u64(o, "windows_pending", s.pending);
	add_u64(o, "windows_lost", trace_lost(&s));
	add_u64(o, "windows_skipped", driver.skipped);
	add_u64(o, "every", trace_every(d->traces));
	add_trace_parts(o, &s, &driver);
	add_u64(o, "blocks", driver.nr_blocks);
	add_u64(o, "blocks_max", driver.max_blocks);
	add_u64(o, "blocks_no_room", driver.no_room);
	add_u64(o, "blocks_translated", s.translated);
	add_u64(o, "blocks_refused", s.refused);
	add_u64(o, "places_missing", s.missing);
	add_u64(o, "places_postponed", s.postponed);
	add_u64(o, "places_failed", s.failed);
	return o;
}

static struct json_object *profiler(const struct values *v, size_t index)
{
	struct json_object *o = json_object_new_object();
	struct values_profiler_stats s = { 0 };

	values_profiler_stats_get(v, index, &s);
	add_text(o, "name", values_name(v, index));
	add_u64(o, "values", s.tuples);
	add_u64(o, "values_wild", s.wild);
	add_u64(o, "crashes", s.crashes);
	add_u64(o, "hangs", s.hangs);
	json_object_object_add(o, "given_up", json_object_new_boolean(s.given_up));
	return o;
}

static struct json_object *values(const struct daemon *d)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	struct trace_values_stats own = { 0 };
	struct values_stats s = { 0 };
	size_t nr_waiting = 0;

	trace_values_stats_get(d->traces, &own, &nr_waiting);
	values_stats_get(d->values, &s);
	for (size_t i = 0; i < d->nr_profilers; i++)
		json_object_array_add(list, profiler(d->values, i));
	add_u64(o, "windows_sent", s.sent);
	add_u64(o, "windows_answered", s.answered);
	add_u64(o, "windows_waiting", nr_waiting);
	add_u64(o, "windows_unanswered", s.lost);
	add_u64(o, "windows_not_sent", own.not_sent);
	add_u64(o, "windows_bad", s.bad);
	add_u64(o, "values_stored", own.stored);
	add_u64(o, "values_unplaced", own.unplaced);
	add_u64(o, "starts", s.starts);
	json_object_object_add(o, "profilers", list);
	return o;
}

static struct json_object *stepped(const struct daemon *d)
{
	struct json_object *o = json_object_new_object(), *lost = json_object_new_object(),
			   *ends = json_object_new_object();
	struct trace_stats s = { 0 };
	struct step_stats own;

	trace_stats_get(d->traces, true, &s);
	step_stats_get(d->step, &own);
	add_u64(o, "of_pid", (uint64_t)d->opt.step_pid);
	json_object_object_add(o, "ended", json_object_new_boolean(own.ended));
	add_u64(o, "steps", own.instructions);
	add_fraction(o, "stopped_seconds", (double)own.stopped_ns / 1e9);
	add_u64(o, "stepped_received", s.received);
	add_u64(o, "stepped_stored", s.stored);
	add_u64(o, "stepped_pending", s.pending);
	add_u64(o, "stepped_lost", trace_lost(&s));
	for (int i = 0; i < TRACE_NR_LOSSES; i++)
		add_u64(lost, trace_loss_name((enum trace_loss)i), s.lost[i]);
	for (int i = VTRACE_CONTINUES; i < VTRACE_NR_ENDS; i++)
		add_u64(ends, end_names[i], own.by_end[i]);
	json_object_object_add(o, "stepped_losses", lost);
	json_object_object_add(o, "stepped_ends", ends);
	return o;
}

static const char *const callpath_end_names[DRIVER_NR_CALLPATH_ENDS] = {
	[DRIVER_CALLPATH_COMPLETE] = "complete",     [DRIVER_CALLPATH_CUT] = "cut",
	[DRIVER_CALLPATH_UNREADABLE] = "unreadable", [DRIVER_CALLPATH_NO_ROWS] = "no-rows",
	[DRIVER_CALLPATH_ASTRAY] = "astray",
};

static const char *const callpath_loss_names[CALLPATH_NR_LOSSES] = {
#define X(id, name, text) [CALLPATH_LOST_##id] = name,
	CALLPATH_LOSSES(X)
#undef X
};

static void add_callpath_parts(struct json_object *o, const struct callpath_stats *s,
			       const struct driver_callpath_stats *driver)
{
	struct json_object *lost = json_object_new_object(), *ends = json_object_new_object();

	for (int i = 0; i < CALLPATH_NR_LOSSES; i++)
		add_u64(lost, callpath_loss_names[i], s->lost[i]);
	for (int i = 0; i < DRIVER_NR_CALLPATH_ENDS; i++)
		add_u64(ends, callpath_end_names[i], driver->by_end[i]);
	json_object_object_add(o, "callpath_losses", lost);
	json_object_object_add(o, "callpath_ends", ends);
}

static struct json_object *callpaths(const struct daemon *d)
{
	struct json_object *o = json_object_new_object();
	struct driver_callpath_stats driver = { 0 };
	struct callpath_stats s = { 0 };

	add_u64(o, "every", (uint64_t)d->opt.callpath_every);
	if (!d->callpaths) {
		add_text(o, "none_because", d->no_callpaths.text);
		return o;
	}
	callpath_stats_get(d->callpaths, false, &s);
	callpath_driver_stats_get(d->callpaths, &driver);
	add_u64(o, "callpaths_received", s.received);
	add_u64(o, "callpaths_stored", s.stored);
	add_u64(o, "callpaths_pending", s.pending);
	add_u64(o, "callpaths_lost", callpath_lost(&s));
	add_callpath_parts(o, &s, &driver);
	add_u64(o, "frames", driver.frames);
	add_u64(o, "nodes", s.nodes);
	add_u64(o, "tables", driver.nr_tables);
	add_u64(o, "table_bytes", driver.table_bytes);
	add_u64(o, "tables_evicted", driver.evicted);
	add_u64(o, "tables_put", s.tables_put);
	add_u64(o, "tables_none", s.tables_none);
	add_u64(o, "tables_waiting", s.tables_waiting);
	return o;
}

/* In nanoseconds, but for the last two. */
static struct json_object *waits(const struct daemon *d)
{
	struct json_object *o = json_object_new_object(), *lost = json_object_new_object(),
			   *kinds = json_object_new_object();
	struct driver_wait_stats driver = { 0 };
	struct callpath_stats paths = { 0 };
	struct account total;

	driver_wait_stats_get(d->driver, &driver);
	account_times_total(&d->store.times, &driver, &total);
	callpath_stats_get(d->callpaths, true, &paths);
	add_u64(o, "ns_received", total.received);
	add_u64(o, "ns_stored", total.stored);
	add_u64(o, "ns_pending", total.pending);
	add_u64(o, "ns_lost", account_lost(&total));
	json_object_object_add(o, "ns_balanced", json_object_new_boolean(account_balanced(&total)));
	for (int i = 0; i < ACCOUNT_NR_LOSSES; i++)
		add_u64(lost, account_loss_name((enum account_loss)i), total.lost[i]);
	for (int i = ACCOUNT_FIRST_TIME; i < ACCOUNT_NR_BUCKETS; i++)
		add_u64(kinds, account_bucket_name((enum account_bucket)i), total.bucket[i]);
	json_object_object_add(o, "ns_losses", lost);
	json_object_object_add(o, "ns_by_kind", kinds);
	add_u64(o, "ns_with_path", paths.stored);
	add_u64(o, "ns_path_pending", paths.pending);
	add_u64(o, "ns_path_lost", callpath_lost(&paths));
	add_u64(o, "paths_unsent", driver.lost_paths);
	add_u64(o, "sums", driver.keys);
	return o;
}

static struct json_object *workloads(const struct daemon *d)
{
	struct json_object *o = json_object_new_object();
	struct workload_stats s;

	workload_stats_get(d->workloads, &s);
	add_u64(o, "apart", s.apart);
	add_u64(o, "together", s.joined);
	add_u64(o, "lives", s.lives);
	add_u64(o, "counts", s.counts);
	add_u64(o, "left_out", s.level);
	add_u64(o, "undivided", s.lost);
	return o;
}

/* An answer may be some time old (control_keep). */
static void add_now(struct json_object *o)
{
	char when[32] = "", text[48];
	struct timespec now;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	if (gmtime_r(&now.tv_sec, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, sizeof(text), "%s.%03ldZ", when, now.tv_nsec / 1000000);
	add_text(o, "as_of", text);
}

static void add_flush(struct json_object *o, const struct daemon *d)
{
	char when[32] = "";
	struct tm tm;
	time_t t = (time_t)d->last_flush_utc;

	if (t && gmtime_r(&t, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	add_text(o, "last_flush", when);
	add_u64(o, "flushes", d->nr_flushes);
	add_text(o, "flush_error", d->flush_error.text);
	add_text(o, "flush_hint", d->flush_error.hint);
}

/* Resident pages, the second number of /proc/self/statm. */
static uint64_t resident_kb(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	uint64_t pages = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%*u %" SCNu64, &pages) != 1)
		pages = 0;
	fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

static double seconds(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

/* The time of helpers that have ended is part of what profiling costs. */
static void add_cost(struct json_object *o)
{
	struct rusage own = { 0 }, helpers = { 0 };
	char text[32];
	double cpu;

	getrusage(RUSAGE_SELF, &own);
	getrusage(RUSAGE_CHILDREN, &helpers);
	cpu = seconds(&own.ru_utime) + seconds(&own.ru_stime) + seconds(&helpers.ru_utime) +
	      seconds(&helpers.ru_stime);
	snprintf(text, sizeof(text), "%.3f", cpu);
	json_object_object_add(o, "cpu_seconds", json_object_new_double_s(cpu, text));
	add_u64(o, "rss_kb", resident_kb());
}

static struct json_object *build(struct daemon *d)
{
	struct json_object *o = json_object_new_object();
	struct driver_stats stats = { 0 };
	struct account total;

	if (!o)
		return NULL;
	driver_stats_get(d->driver, &stats);
	account_total(&d->store.account, &stats, &total);
	json_object_object_add(o, "ok", json_object_new_boolean(1));
	add_now(o);
	add_text(o, "version", DCPI_VERSION);
	add_u64(o, "pid", (uint64_t)getpid());
	add_text(o, "database", profdb_path(d->db));
	add_text(o, "epoch", d->epoch);
	add_text(o, "platform", d->platform);
	add_text(o, "source", driver_describe(d->driver));
	json_object_object_add(o, "events", events(d, &stats));
	add_account(o, &total);
	add_driver(o, &stats);
	add_u64(o, "processes", processes_nr(d->processes));
	add_u64(o, "images", images_nr(d->images));
	json_object_object_add(o, "dynamic", dynamic(d));
	if (d->traces)
		json_object_object_add(o, "windows", traces(d));
	if (d->traces && d->values)
		json_object_object_add(o, "values", values(d));
	if (d->traces && d->step)
		json_object_object_add(o, "stepped", stepped(d));
	if (d->callpaths || d->no_callpaths.code)
		json_object_object_add(o, "callpaths", callpaths(d));
	if (d->store.nr_timed)
		json_object_object_add(o, "waits", waits(d));
	if (d->workloads)
		json_object_object_add(o, "workloads", workloads(d));
	add_u64(o, "suspends", d->suspends.nr);
	add_u64(o, "suspended_seconds", d->suspends.ns / 1000000000);
	add_u64(o, "clock_sets", d->clock_sets.nr);
	add_u64(o, "longest_turn_ms", d->longest_turn_ns / 1000000);
	add_flush(o, d);
	add_cost(o);
	return o;
}

int daemon_status(struct daemon *d, struct base_buf *out)
{
	struct json_object *o = build(d);
	const char *text = o ? json_object_to_json_string_ext(
				       o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE)
			     : NULL;
	int r = text ? base_buf_printf(out, "%s\n", text) : -ENOMEM;

	json_object_put(o);
	return r;
}

void daemon_keep_status(struct daemon *d, bool takes_long)
{
	struct base_buf status = { 0 };
	uint64_t now = base_now_ns();
	bool asked = d->asked_ns && now - d->asked_ns < SECONDS_NS, made;

	if (!d->control ||
	    (d->status_ns && now - d->status_ns < (takes_long || asked ? MOMENT_NS : SECONDS_NS)))
		return;
	made = daemon_status(d, &status) >= 0;
	d->status_ns = made ? now : 0;
	control_keep(d->control, made ? &status : NULL);
	base_buf_release(&status);
}
