/* SPDX-License-Identifier: BSD-2-Clause */
/* Effective addresses of loads and stores. */
#include <stdio.h>
#include <vprofiler.h>

static vsample_t samples[VSAMPLE_BUFFER_SIZE];
static trace_vlist_table_t *table;

/* The stack's own operands of calls and returns are not asked for. */
static int uses_memory(uchar opc, uchar func)
{
	switch (opc) {
	case TRACE_OP_PUSH:
	case TRACE_OP_POP:
	case TRACE_OP_CALL:
	case TRACE_OP_CALL_INDIRECT:
	case TRACE_OP_RETURN:
		return 0;
	default:
		return (func & (TRACE_FUNC_READS | TRACE_FUNC_WRITES)) != 0;
	}
}

static trace_vlist_table_t *vp_prof_init(void)
{
	trace_vlist_t *vlist = trace_vlist_alloc();

	table = trace_vlist_table_alloc();
	if (vlist && table) {
		trace_add_value_to_vlist(vlist, TRACE_ADDRESS);
		trace_add_vlist_by_select(table, uses_memory, vlist);
	}
	trace_vlist_free(vlist);
	return table;
}

static void vp_prof_fini(void)
{
	trace_vlist_table_free(table);
	table = NULL;
}

static int vp_prof_process(uint pid, trace_parser_t *parser, vsample_t **vsamples)
{
	ulong pc, c0, c1, addr;
	int n = 0;

	(void)pid;
	while (n < VSAMPLE_BUFFER_SIZE &&
	       trace_parser_next(parser, NULL, &pc, &c0, &c1, 1, &addr) == 1)
		samples[n++] =
			(vsample_t){ .pc = pc, .context0 = c0, .context1 = c1, .value = addr };
	*vsamples = samples;
	return n;
}

static const char *vp_name(void)
{
	return "vp-addr";
}

static const char *vp_preface(uint inst)
{
	(void)inst;
	return "addr";
}

static const char *vp_format(uint inst, ulong value)
{
	static char text[24];

	(void)inst;
	snprintf(text, sizeof(text), "%lx", value);
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
