/* SPDX-License-Identifier: BSD-2-Clause */
/* Knows the switches of runtimes that make code. */
#include <string.h>

#include "runtime.h"

static const struct {
	const char *program, *hint; /* the program's name begins so */
} runtimes[] = {
	{ "node", "'node --perf-prof' names V8's code" },
	{ "java", "'java -agentpath:libdcpi-jvmti.so' names the JVM's code (docs/RUNTIMES.md)" },
	{ "luajit", "'luajit -jdcpi' names LuaJIT's traces" },
	{ "beam.smp", "'erl +JPperf true' names Erlang's code" },
	{ "erl", "'erl +JPperf true' names Erlang's code" },
	{ "php", "'opcache.jit_debug=0x20' names PHP's code" },
	{ "mono", "'mono --jitmap' names Mono's code" },
	{ "postgres", "'jit_profiling_support=on' with JITDUMPDIR names PostgreSQL's code" },
	{ "dotnet", "DOTNET_PerfMapEnabled=1 names .NET's code" },
	{ "bun", "BUN_JSC_useJITDump=1 with BUN_JSC_jitDumpDirectory names JavaScriptCore's code" },
	{ "moar", "MVM_JIT_PERF_MAP=1 names MoarVM's code" },
};

const char *runtime_hint(const char *facility)
{
	static const char unnamed[] = ": dynamic, unnamed";
	const char *colon = facility ? strchr(facility, ':') : NULL;

	if (!colon || strcmp(colon, unnamed) != 0)
		return NULL;
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(*runtimes); i++)
		if (strncmp(facility, runtimes[i].program, strlen(runtimes[i].program)) == 0)
			return runtimes[i].hint;
	return "docs/RUNTIMES.md says which runtimes can name their code, and by which switch";
}
