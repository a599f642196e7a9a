/* SPDX-License-Identifier: BSD-2-Clause */
/* Says what is wrong with an image, or not known of it, and what helps. */
#include <errno.h>
#include <string.h>

#include "samples.h"

/* ---- runtimes that make code ----------------------------------------------------------------- */

/* As docs/RUNTIMES.md has them. */
static const struct {
	const char *program, *hint; /* the program's name begins so; NULL: it has no switch */
} runtimes[] = {
	{ "node", "'node --perf-prof' names V8's code" },
	{ "deno", "'deno run --v8-flags=--perf-prof' names V8's code" },
	{ "workerd", "v8Flags = [\"--perf-prof\"] in its configuration names V8's code" },
	{ "java", "'java -agentpath:libdcpi-jvmti.so' names the JVM's code (docs/RUNTIMES.md)" },
	{ "lli", "'lli --jit-kind=mcjit' with JITDUMPDIR names LLVM's code by a jitdump" },
	{ "luajit", "'luajit -jdcpi' names LuaJIT's traces" },
	{ "nginx",
	  "init_worker_by_lua_block { require(\"dcpi\").start() } names OpenResty's traces" },
	{ "beam.smp", "'erl +JPperf true' names Erlang's code" },
	{ "erl", "'erl +JPperf true' names Erlang's code" },
	{ "php", "'opcache.jit_debug=0x20' names PHP's code" },
	{ "mono", "'mono --jitmap' names Mono's code" },
	{ "postgres", "'jit_profiling_support=on' with JITDUMPDIR names PostgreSQL's code" },
	{ "dotnet", "DOTNET_PerfMapEnabled=1 names .NET's code" },
	{ "bun", "BUN_JSC_useJITDump=1 with BUN_JSC_jitDumpDirectory names JavaScriptCore's code" },
	{ "WebKitWebProcess",
	  "JSC_useJITDump=1 with JSC_jitDumpDirectory names JavaScriptCore's code" },
	{ "jsc", "JSC_useJITDump=1 with JSC_jitDumpDirectory names JavaScriptCore's code" },
	{ "moar", "MVM_JIT_PERF_MAP=1 names MoarVM's code" },
	{ "rakudo", "MVM_JIT_PERF_MAP=1 names MoarVM's code" },
	{ "pypy", NULL },
	{ "guile", NULL },
	{ "racket", NULL },
	{ "poly", NULL },
	{ "sbcl", NULL },
	{ "gjs", NULL },
	{ "firefox", NULL },
	{ "qemu-", NULL },
	{ "tcc", NULL },
};

static const char no_switch[] = "nothing is known that names this program's code; 'dcpilist -asm' "
				"lists its pages",
		  unknown[] = "docs/RUNTIMES.md says which runtimes can name their code, and by "
			      "which switch";

/* @facility: of a pseudo-image, as "node: dynamic, unnamed". NULL: its code has names. */
static const char *runtime_hint(const char *facility)
{
	static const char unnamed[] = ": dynamic, unnamed";
	const char *colon = facility ? strchr(facility, ':') : NULL;

	if (!colon || strcmp(colon, unnamed) != 0)
		return NULL;
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(*runtimes); i++)
		if (strncmp(facility, runtimes[i].program, strlen(runtimes[i].program)) == 0)
			return runtimes[i].hint ? runtimes[i].hint : no_switch;
	return unknown;
}

/* ---- images ---------------------------------------------------------------------------------- */

/* Is it worth a word, being a hundredth of the samples? */
static bool is_much(const struct analysis *a, const struct analysis_image *ai)
{
	size_t event = analysis_event_default(a);

	return a->nr_events && ai->count[event] > a->events[event].sum / 100;
}

static void hint_symbols(const struct analysis_image *ai, struct base_err *out)
{
	const struct profdb_profile *p = ai->profile;
	struct base_buf hint = { 0 };

	if (profdb_profile_path(p, 0) &&
	    image_symbols_remedy(profdb_profile_path(p, 0), profdb_profile_image(p), &hint) >= 0)
		base_hint(out, "%s", (const char *)hint.data);
	base_buf_release(&hint);
}

static void remark_symbols(const struct analysis *a, const struct analysis_image *ai,
			   struct base_err *out)
{
	bool much = ai->stripped && is_much(a, ai);

	if (ai->guessed)
		base_fail(out, -DCPI_ENOSYMBOL,
			  "image '%s' does not tell where all of its procedures are: those named "
			  "by an address are guessed from its code",
			  ai->name);
	else if (much)
		base_fail(out, -DCPI_ENOSYMBOL,
			  "image '%s' has the symbols alone that it exports: other procedures are "
			  "named by an address",
			  ai->name);
	if (much)
		hint_symbols(ai, out);
}

/* Tells it before what else there is to say. */
static void remark_twin(const struct analysis_image *ai, struct base_err *out)
{
	const struct base_err other = *out;

	*out = (struct base_err){ 0 };
	base_fail(out, -ESTALE,
		  "image '%s' is kept apart from '%s', whose build-id it has: its code is "
		  "another one, or could not be read%s%s",
		  ai->name, ai->twin->name, other.code ? "; " : "", other.text);
	if (*other.hint)
		base_hint(out, "%s", other.hint);
}

void analysis_image_ask(struct analysis *a, struct analysis_image *ai)
{
	ai->asked = a->asked = true;
}

bool analysis_image_is_asked(const struct analysis *a, const struct analysis_image *ai)
{
	return ai->asked || !a->asked;
}

bool analysis_image_is_lost(const struct analysis_image *ai)
{
	return ai->state != ANALYSIS_UNOPENED && ai->state != ANALYSIS_OPEN;
}

bool analysis_image_remark(const struct analysis *a, const struct analysis_image *ai,
			   struct base_err *out)
{
	const char *hint = runtime_hint(ai->facility);

	*out = (struct base_err){ 0 };
	if (analysis_image_is_lost(ai)) {
		*out = ai->why;
		return out->code;
	}
	if (hint && is_much(a, ai)) {
		base_fail(out, -DCPI_ENOSYMBOL, "image '%s' is code that nothing has named",
			  ai->name);
		base_hint(out, "%s", hint);
	} else {
		remark_symbols(a, ai, out);
	}
	if (ai->twin)
		remark_twin(ai, out);
	return out->code;
}
