/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long loads took, in ns. The time between two readings of the clock contains those, so what
 * the quickest loads take is taken off: it tells near from far, not more. Values are told by bins.
 */
#include <stdio.h>
#include <string.h>
#include <vprofiler.h>

enum {
	NR_TIMES = 512, /* ns; a longer one is far in any case */
	ENOUGH = 64,	/* loads before which nothing is known of the clock */
	QUICKEST = 20,	/* one in so many is as quick as the clock itself */
};

static vsample_t samples[VSAMPLE_BUFFER_SIZE];
static trace_vlist_table_t *table;
static unsigned int seen[NR_TIMES], nr_seen;

static int loads(uchar opc, uchar func)
{
	(void)func;
	return opc == TRACE_OP_LOAD || opc == TRACE_OP_LOAD_SIGNED || opc == TRACE_OP_LOAD_FP;
}

static trace_vlist_table_t *vp_prof_init(void)
{
	trace_vlist_t *vlist = trace_vlist_alloc();

	memset(seen, 0, sizeof(seen));
	nr_seen = 0;
	table = trace_vlist_table_alloc();
	if (vlist && table) {
		trace_add_value_to_vlist(vlist, TRACE_LATENCY);
		trace_add_vlist_by_select(table, loads, vlist);
	}
	trace_vlist_free(vlist);
	return table;
}

static void vp_prof_fini(void)
{
	trace_vlist_table_free(table);
	table = NULL;
}

static void count(ulong ns)
{
	/* So that it never runs over, and follows a clock that changes. */
	if (nr_seen == 1u << 20) {
		nr_seen = 0;
		for (int i = 0; i < NR_TIMES; i++)
			nr_seen += seen[i] /= 2;
	}
	seen[ns < NR_TIMES ? ns : NR_TIMES - 1]++;
	nr_seen++;
}

static ulong base(void)
{
	unsigned int below = 0;
	ulong ns = 0;

	while (ns < NR_TIMES - 1 && (below += seen[ns]) * QUICKEST < nr_seen)
		ns++;
	return ns;
}

/* So few different values that a hotlist holds them all: the lower ends of what is told apart. */
static ulong bin(ulong ns)
{
	static const ulong ends[] = { 5000, 2000, 1000, 500, 300, 200, 150, 100,
				      80,   60,	  50,	40,  30,  20,  10 };

	for (unsigned int i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (ns >= ends[i])
			return ends[i];
	return 0;
}

static int vp_prof_process(uint pid, trace_parser_t *parser, vsample_t **vsamples)
{
	ulong pc, c0, c1, ns;
	int n = 0;

	(void)pid;
	while (n < VSAMPLE_BUFFER_SIZE &&
	       trace_parser_next(parser, NULL, &pc, &c0, &c1, 1, &ns) == 1) {
		ulong own;

		count(ns);
		if (nr_seen < ENOUGH)
			continue;
		own = base();
		samples[n++] = (vsample_t){ .pc = pc,
					    .context0 = c0,
					    .context1 = c1,
					    .value = bin(ns > own ? ns - own : 0) };
	}
	*vsamples = samples;
	return n;
}

static const char *vp_name(void)
{
	return "vp-ldlatency";
}

static const char *vp_preface(uint inst)
{
	(void)inst;
	return "ns";
}

static const char *vp_format(uint inst, ulong value)
{
	static char text[24];

	(void)inst;
	snprintf(text, sizeof(text), "%lu", value);
	return text;
}

vp_dispatch_t _dispatch = {
	.name = vp_name,
	.prof_init = vp_prof_init,
	.prof_fini = vp_prof_fini,
	.prof_process = vp_prof_process,
	.preface = vp_preface,
	.format = vp_format,
};
