/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The value profiler that DCPI's dcpivprofiler page had as its sample, here: addresses of 64-bit
 * loads. Of that one the includes, the switch, and how the address is come by have changed.
 *
 *	cc -shared -fPIC -I/usr/local/include/dcpi vp-ldq-addr.c \
 *		-L/usr/local/lib/dcpi -ltrace -o vp-ldq-addr.so
 */
#include <stdio.h>
#include <trace-inst.h>
#include <vprofiler.h>

static vsample_t vsample_buffer[VSAMPLE_BUFFER_SIZE];

static int select_loads(uchar opc, uchar func)
{
	switch (opc) {
	case TRACE_OP_LOAD:
		return TRACE_FUNC_WIDTH(func) == 8;
	}
	return 0;
}

static trace_vlist_table_t *table;

static trace_vlist_table_t *vp_prof_init(void)
{
	trace_vlist_t *vlist;

	table = trace_vlist_table_alloc();
	vlist = trace_vlist_alloc();
	trace_add_value_to_vlist(vlist, TRACE_ADDRESS);
	trace_add_vlist_by_select(table, select_loads, vlist);
	return table;
}

static int vp_prof_process(uint pid, trace_parser_t *parser, vsample_t **vsamples)
{
	int n = 0, nvalues, no_context;
	ulong pc, c0, c1, addr;
	union alpha_instruction inst;

	(void)pid;
	no_context = !trace_parser_has_context(parser);
	while ((nvalues = trace_parser_next(parser, (uint *)&inst, &pc, &c0, &c1, 1, &addr)) >= 0) {
		if (nvalues == 1) {
			if (no_context)
				c0 = c1 = 0;
			vsample_buffer[n].pc = pc;
			vsample_buffer[n].value = addr;
			vsample_buffer[n].context0 = c0;
			vsample_buffer[n].context1 = c1;
			n++;
			if (n >= VSAMPLE_BUFFER_SIZE)
				break;
		}
	}
	*vsamples = vsample_buffer;
	return n;
}

static const char *vp_name(void)
{
	return "vp-ldq-addr";
}

static const char *vp_preface(uint inst)
{
	(void)inst;
	return "addr";
}

static const char *vp_format(uint inst, ulong value)
{
	static char buffer[32];

	(void)inst;
	sprintf(buffer, "%lx", value & ((1UL << 48) - 1));
	return buffer;
}

vp_dispatch_t _dispatch = {
	vp_name, NULL, NULL, vp_prof_init, NULL, vp_prof_process, vp_preface, vp_format,
};
