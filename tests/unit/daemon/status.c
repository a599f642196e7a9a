/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon's status: each number of its parts stands behind its own name. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "budget.h"
#include "stand_ins.h"
#include "step.h"
#include "trace.h"

static char folder[64];
static struct trial t;
static struct daemon d;
static struct driver source;
static struct base_buf reply;
static char path[80];

/* ---- numbers that tell where they come from ---------------------------------------------------
 */

/* The words of a struct, all of whose members are 8 bytes long, become FIRST, FIRST + 1, ... */
#define FILL(out, first)                                                                           \
	do {                                                                                       \
		for (size_t i = 0; i < sizeof(*(out)) / 8; i++)                                    \
			((uint64_t *)(void *)(out))[i] = (first) + i;                              \
	} while (0)

void __wrap_trace_stats_get(const struct traces *s, bool stepped, struct trace_stats *out);
void __wrap_trace_stats_get(const struct traces *s, bool stepped, struct trace_stats *out)
{
	assert_ptr_equal(s, d.traces);
	FILL(out, stepped ? 2000 : 1000);
}

void __wrap_trace_driver_stats_get(const struct traces *s, struct driver_trace_stats *out);
void __wrap_trace_driver_stats_get(const struct traces *s, struct driver_trace_stats *out)
{
	assert_ptr_equal(s, d.traces);
	FILL(out, 3000);
	out->nr_blocks = 31;
	out->max_blocks = 32;
}

uint32_t __wrap_trace_every(const struct traces *s);
uint32_t __wrap_trace_every(const struct traces *s)
{
	(void)s;
	return 64;
}

bool __wrap_trace_values_stats_get(const struct traces *s, struct trace_values_stats *out,
				   size_t *nr_waiting);
bool __wrap_trace_values_stats_get(const struct traces *s, struct trace_values_stats *out,
				   size_t *nr_waiting)
{
	(void)s;
	FILL(out, 4000);
	*nr_waiting = 4;
	return true;
}

void __wrap_values_stats_get(const struct values *v, struct values_stats *out);
void __wrap_values_stats_get(const struct values *v, struct values_stats *out)
{
	(void)v;
	FILL(out, 5000);
}

const char *__wrap_values_name(const struct values *v, size_t index);
const char *__wrap_values_name(const struct values *v, size_t index)
{
	(void)v;
	return index ? "second" : "fi\nrst";
}

void __wrap_values_profiler_stats_get(const struct values *v, size_t index,
				      struct values_profiler_stats *out);
void __wrap_values_profiler_stats_get(const struct values *v, size_t index,
				      struct values_profiler_stats *out)
{
	(void)v;
	*out = (struct values_profiler_stats){ 51 + 10 * index, 52, 53, 54, index == 1 };
}

void __wrap_step_stats_get(const struct step *s, struct step_stats *out);
void __wrap_step_stats_get(const struct step *s, struct step_stats *out)
{
	(void)s;
	*out = (struct step_stats){ .instructions = 61, .stopped_ns = 1250000000, .ended = true };
	FILL(&out->by_end, 6000);
}

void __wrap_callpath_stats_get(const struct callpaths *s, bool times, struct callpath_stats *out);
void __wrap_callpath_stats_get(const struct callpaths *s, bool times, struct callpath_stats *out)
{
	assert_ptr_equal(s, d.callpaths);
	FILL(out, times ? 7500 : 7000);
}

void __wrap_callpath_driver_stats_get(const struct callpaths *s, struct driver_callpath_stats *out);
void __wrap_callpath_driver_stats_get(const struct callpaths *s, struct driver_callpath_stats *out)
{
	(void)s;
	FILL(out, 8000);
}

void __wrap_workload_stats_get(const struct workloads *w, struct workload_stats *out);
void __wrap_workload_stats_get(const struct workloads *w, struct workload_stats *out)
{
	(void)w;
	*out = (struct workload_stats){ 91, 92, 93, 94, 95, 96 };
}

void __wrap_dyn_stats_get(const struct dyn *y, struct dyn_stats *out);
void __wrap_dyn_stats_get(const struct dyn *y, struct dyn_stats *out)
{
	(void)y;
	FILL(out, 10000);
}

void __wrap_budget_stats_get(const struct budgets *b, struct budget_stats *out);
void __wrap_budget_stats_get(const struct budgets *b, struct budget_stats *out)
{
	(void)b;
	FILL(out, 11000);
}

static void waits_stats(const struct driver *s, struct driver_wait_stats *out)
{
	assert_ptr_equal(s, &source);
	FILL(out, 12000);
}

static const struct driver_wait_ops waits = { .stats = waits_stats };

/* ---- a daemon -------------------------------------------------------------------------------- */

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/dcpi-status-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/db", folder);
	trial_daemon(&t, &d, path);
	source = (struct driver){ .nr_events = 2 };
	source.events[0] = (struct driver_event){ "cpu-clock", 1000000, 1 };
	source.events[1] = (struct driver_event){ "imiss", 4096, 0.25 };
	strcpy(source.describe, "a source");
	FILL(&source.stats, 13000);
	d.driver = &source;
	FILL(&d.store.account, 14000);
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	d.driver = NULL;
	d.traces = NULL;
	d.callpaths = NULL;
	d.values = NULL;
	d.step = NULL;
	memset(&d.store.account, 0, sizeof(d.store.account));
	trial_daemon_close(&t, &d);
	base_buf_release(&reply);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

static void has(const char *what)
{
	if (!strstr((const char *)reply.data, what))
		fail_msg("no %s in %s", what, (const char *)reply.data);
}

static void lacks(const char *what)
{
	assert_null(strstr((const char *)reply.data, what));
}

static void ask(void)
{
	base_buf_clear(&reply);
	assert_int_equal(daemon_status(&d, &reply), 0);
	assert_int_equal(reply.data[reply.len - 1], '\n');
	assert_int_equal(base_buf_append(&reply, "", 1), 0);
}

/* A status of all that may be sampled; at first of what there always is. */
static void all_parts(void **state)
{
	static int something;

	(void)state;
	ask();
	lacks("\"windows\"");
	d.traces = (struct traces *)(void *)&something;
	d.callpaths = (struct callpaths *)(void *)&something;
	d.values = (struct values *)(void *)&something;
	d.step = (struct step *)(void *)&something;
	d.nr_profilers = 2;
	d.opt.step_pid = 77;
	d.opt.callpath_every = 8;
	d.store.nr_timed = 1;
	source.waits = &waits;
	FILL(&d.store.times, 15000);
	d.quota = (struct quota){ .len = 171, .max = 172, .over = true };
	ask();
	has("\"epoch\":\"202311142213\",\"platform\":\"here\",\"source\":\"a source\","
	    "\"events\":[{\"name\":\"cpu-clock\",\"period\":1000000,\"enabled\":1.000000,"
	    "\"received\":13000,\"missed\":13024},{\"name\":\"imiss\",\"period\":4096,"
	    "\"enabled\":0.250000,\"received\":13001,\"missed\":13025}],"
	    "\"received\":222120,\"stored\":14001,\"pending\":27018,\"lost\":218193,"
	    "\"balanced\":false,\"losses\":{\"ring-full\":27020,\"table-full\":27022,"
	    "\"drain-late\":27024,\"nested\":27026,\"table-unread\":27028,"
	    "\"bad-record\":27031,\"no-memory\":14009,\"count-overflow\":14010,"
	    "\"excluded\":14011,\"unwritten\":14012},\"buckets\":{\"unknown\":14013,"
	    "\"unknown process\":14014,\"ambiguous mapping\":14015,"
	    "\"unknown kernel\":14016,\"idle\":14017,\"dynamic, unknown\":14018,"
	    "\"dynamic, generation unknown\":14019,\"dynamic,"
	    " image refused\":14020,\"dynamic, over quota\":14021,\"dynamic,"
	    " over budget\":14022,\"reused, time unknown\":14023,"
	    "\"hypervisor or guest\":14024},\"missed\":208504,"
	    "\"lost_load_events\":13022,\"throttled\":13040,\"processes\":0,"
	    "\"images\":0");
	has("\"dynamic\":{\"clients\":10000,\"facilities\":10001,\"routines\":10002,"
	    "\"images_written\":10003,\"images_folded\":10011,\"folds_failed\":10013,"
	    "\"files_kept\":10012,\"registries_refused\":10006,\"records_bad\":10004,"
	    "\"records_dropped\":10005,\"entries_left_out\":10007,"
	    "\"changes_missed\":10009,\"generations_unread\":10010,"
	    "\"routines_refused\":10008,\"users_over_budget\":11000,"
	    "\"requests_refused\":11001,\"image_bytes\":171,\"quota_bytes\":172,"
	    "\"over_quota\":true}");
	has("\"windows\":{\"windows_received\":1000,\"windows_stored\":1001,"
	    "\"windows_pending\":1002,\"windows_lost\":14133,"
	    "\"windows_skipped\":3005,\"every\":64,"
	    "\"window_losses\":{\"ring-full\":1003,\"busy\":1004,\"unread\":1005,"
	    "\"malformed\":1006,\"unknown-process\":1007,\"unknown\":1008,"
	    "\"ambiguous-mapping\":1009,\"reused\":1010,\"generation-unknown\":1011,"
	    "\"over-quota\":1012,\"image-refused\":1013,\"excluded\":1014,"
	    "\"no-memory\":1015,\"count-overflow\":1016},"
	    "\"window_ends\":{\"full\":3007,\"untranslated\":3008,"
	    "\"code-unreadable\":3009,\"unknown-branch\":3010,\"unknown-jump\":3011,"
	    "\"system\":3012,\"faults\":3013,\"undecoded\":3014,\"trace-full\":3015},"
	    "\"blocks\":31,\"blocks_max\":32,\"blocks_no_room\":3017,"
	    "\"blocks_translated\":1018,\"blocks_refused\":1019,"
	    "\"places_missing\":1017,\"places_postponed\":1020,"
	    "\"places_failed\":1021}");
	has("\"values\":{\"windows_sent\":5000,\"windows_answered\":5001,"
	    "\"windows_waiting\":4,\"windows_unanswered\":5002,"
	    "\"windows_not_sent\":4000,\"windows_bad\":5004,\"values_stored\":4001,"
	    "\"values_unplaced\":4002,\"starts\":5005,"
	    "\"profilers\":[{\"name\":\"fi?rst\",\"values\":51,\"values_wild\":52,"
	    "\"crashes\":53,\"hangs\":54,\"given_up\":false},{\"name\":\"second\","
	    "\"values\":61,\"values_wild\":52,\"crashes\":53,\"hangs\":54,"
	    "\"given_up\":true}]}");
	has("\"stepped\":{\"of_pid\":77,\"ended\":true,\"steps\":61,"
	    "\"stopped_seconds\":1.250000,\"stepped_received\":2000,"
	    "\"stepped_stored\":2001,\"stepped_pending\":2002,\"stepped_lost\":28133,"
	    "\"stepped_losses\":{\"ring-full\":2003,\"busy\":2004,\"unread\":2005,"
	    "\"malformed\":2006,\"unknown-process\":2007,\"unknown\":2008,"
	    "\"ambiguous-mapping\":2009,\"reused\":2010,\"generation-unknown\":2011,"
	    "\"over-quota\":2012,\"image-refused\":2013,\"excluded\":2014,"
	    "\"no-memory\":2015,\"count-overflow\":2016},"
	    "\"stepped_ends\":{\"goes-on\":6000,\"full\":6001,\"untranslated\":6002,"
	    "\"code-unreadable\":6003,\"unknown-branch\":6004,\"unknown-jump\":6005,"
	    "\"system\":6006,\"faults\":6007,\"undecoded\":6008,\"trace-full\":6009}}");
	has("\"callpaths\":{\"every\":8,\"callpaths_received\":7000,"
	    "\"callpaths_stored\":7001,\"callpaths_pending\":7002,"
	    "\"callpaths_lost\":49042,\"callpath_losses\":{\"ring-full\":7003,"
	    "\"busy\":7004,\"unread\":7005,\"excluded\":7006,\"too-many\":7007,"
	    "\"no-memory\":7008,\"count-overflow\":7009},"
	    "\"callpath_ends\":{\"complete\":8005,\"cut\":8006,\"unreadable\":8007,"
	    "\"no-rows\":8008,\"astray\":8009},\"frames\":8010,\"nodes\":7010,"
	    "\"tables\":8011,\"table_bytes\":8012,\"tables_evicted\":8013,"
	    "\"tables_put\":7011,\"tables_none\":7012,\"tables_waiting\":7013}");
	has("\"waits\":{\"ns_received\":27000,\"ns_stored\":15001,\"ns_pending\":27003,"
	    "\"ns_lost\":174080,\"ns_balanced\":false,"
	    "\"ns_losses\":{\"ring-full\":15003,\"table-full\":27006,"
	    "\"drain-late\":15005,\"nested\":15006,\"table-unread\":27010,"
	    "\"bad-record\":15008,\"no-memory\":15009,\"count-overflow\":15010,"
	    "\"excluded\":15011,\"unwritten\":15012},\"ns_by_kind\":{\"running\":15025,"
	    "\"waiting, sleep\":15026,\"waiting, disk\":15027,\"waiting,"
	    " lock\":15028,\"waiting, pipe or socket\":15029,\"waiting,"
	    " page fault\":15030,\"waiting, run queue\":15031,\"waiting,"
	    " other\":15032,\"waiting, unknown\":15033},\"ns_with_path\":7501,"
	    "\"ns_path_pending\":7502,\"ns_path_lost\":52542,\"paths_unsent\":12004,"
	    "\"sums\":12005}");
	has("\"workloads\":{\"apart\":92,\"together\":93,\"lives\":91,\"counts\":94,"
	    "\"left_out\":96,\"undivided\":95}");
}

/* The daemon's own, and why something is missing. */
static void own_parts(void **state)
{
	(void)state;
	ask();
	lacks("\"callpaths\"");
	lacks("\"waits\"");
	has("\"suspends\":0,\"suspended_seconds\":0,\"clock_sets\":0,\"longest_turn_ms\":0,"
	    "\"last_flush\":\"\",\"flushes\":0,\"flush_error\":\"\",\"flush_hint\":\"\"");
	base_fail(&d.no_callpaths, -1, "no ring");
	d.suspends.nr = 1;
	d.suspends.ns = 2999999999;
	d.clock_sets.nr = 3;
	d.longest_turn_ns = 4999999;
	d.last_flush_utc = 1700000005;
	d.nr_flushes = 6;
	base_fail(&d.flush_error, -1, "a full disk");
	base_hint(&d.flush_error, "make room");
	ask();
	has("\"callpaths\":{\"every\":0,\"none_because\":\"no ring\"}");
	has("\"suspends\":1,\"suspended_seconds\":2,\"clock_sets\":3,\"longest_turn_ms\":4,"
	    "\"last_flush\":\"2023-11-14T22:13:25Z\",\"flushes\":6,\"flush_error\":\"a full disk\","
	    "\"flush_hint\":\"make room\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(own_parts, setup, teardown),
	};

	return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
