/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A value profiler for tests/system/values.sh: does r13 hold three times what was loaded into r12
 * before it, and was that stored? Of each such instruction 1, or 0 where it is not so.
 */
#include <stddef.h>
#include <vprofiler.h>

enum { R12 = 12, R13 = 13 };

static vsample_t samples[VSAMPLE_BUFFER_SIZE];

static int has_result(uchar opc, uchar func)
{
	(void)func;
	return opc == TRACE_OP_LOAD || opc == TRACE_OP_LEA;
}

static int stores(uchar opc, uchar func)
{
	(void)func;
	return opc == TRACE_OP_STORE;
}

static int add(trace_vlist_table_t *table, trace_value_t value, int (*of)(uchar opc, uchar func))
{
	trace_vlist_t *list = trace_vlist_alloc();
	int r = list ? trace_add_value_to_vlist(list, value) : -1;

	if (r == 0)
		r = trace_add_vlist_by_select(table, of, list);
	trace_vlist_free(list);
	return r;
}

static trace_vlist_table_t *prof_init(void)
{
	trace_vlist_table_t *table = trace_vlist_table_alloc();

	if (table &&
	    (add(table, TRACE_RESULT, has_result) < 0 || add(table, TRACE_MEMORY, stores) < 0)) {
		trace_vlist_table_free(table);
		return NULL;
	}
	return table;
}

static int prof_process(uint pid, trace_parser_t *parser, vsample_t **out)
{
	ulong pc, v, loaded = 0, tripled = 0;
	int n = 0, has_loaded = 0, has_tripled = 0;
	uint inst;

	(void)pid;
	while (n < VSAMPLE_BUFFER_SIZE &&
	       trace_parser_next(parser, &inst, &pc, NULL, NULL, 1, &v) == 1) {
		if (TRACE_X86_CLASS(inst) == TRACE_OP_LOAD && TRACE_X86_RA(inst) == R12) {
			loaded = v;
			has_loaded = 1;
			has_tripled = 0;
		} else if (TRACE_X86_CLASS(inst) == TRACE_OP_LEA && TRACE_X86_RC(inst) == R13 &&
			   has_loaded) {
			samples[n++] = (vsample_t){ .pc = pc, .value = v == 3 * loaded };
			tripled = v;
			has_tripled = 1;
		} else if (TRACE_X86_CLASS(inst) == TRACE_OP_STORE && TRACE_X86_RA(inst) == R13 &&
			   has_tripled) {
			samples[n++] = (vsample_t){ .pc = pc, .value = v == tripled };
		}
	}
	*out = samples;
	return n;
}

static const char *name(void)
{
	return "vp-relations";
}

vp_dispatch_t _dispatch = {
	.name = name,
	.prof_init = prof_init,
	.prof_process = prof_process,
};
