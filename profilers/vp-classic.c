/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The value of each instruction: the number that it loads, stores or computes; for a conditional
 * branch whether it is taken, for an indirect jump or call its target.
 */
#include <stdio.h>
#include <vprofiler.h>

static vsample_t samples[VSAMPLE_BUFFER_SIZE];
static trace_vlist_table_t *table;

static trace_value_t pick(uchar opc, uchar func)
{
	(void)func;
	switch (opc) {
	case TRACE_OP_STORE:
	case TRACE_OP_STORE_FP:
	case TRACE_OP_PUSH:
	case TRACE_OP_MODIFY:
	case TRACE_OP_ATOMIC:
		return TRACE_MEMORY;
	case TRACE_OP_BRANCH:
		return TRACE_TAKEN;
	case TRACE_OP_JUMP_INDIRECT:
	case TRACE_OP_CALL_INDIRECT:
		return TRACE_TARGET;
	case TRACE_OP_COMPARE:
	case TRACE_OP_JUMP:
	case TRACE_OP_CALL:
	case TRACE_OP_RETURN:
	case TRACE_OP_SYSTEM:
		return TRACE_NONE;
	default:
		return TRACE_RESULT;
	}
}

static trace_vlist_table_t *vp_prof_init(void)
{
	table = trace_vlist_table_alloc();
	if (table)
		trace_set_vlist_by_pick_value(table, pick);
	return table;
}

static void vp_prof_fini(void)
{
	trace_vlist_table_free(table);
	table = NULL;
}

static int vp_prof_process(uint pid, trace_parser_t *parser, vsample_t **vsamples)
{
	ulong pc, c0, c1, value;
	int n = 0;

	(void)pid;
	while (n < VSAMPLE_BUFFER_SIZE &&
	       trace_parser_next(parser, NULL, &pc, &c0, &c1, 1, &value) == 1)
		samples[n++] =
			(vsample_t){ .pc = pc, .context0 = c0, .context1 = c1, .value = value };
	*vsamples = samples;
	return n;
}

static const char *vp_name(void)
{
	return "vp-classic";
}

/* ---- printing -------------------------------------------------------------------------------- */

#if defined(__aarch64__)

/* Branches and what reads or writes memory, by the architecture's groups of instructions. */
static const char *vp_preface(uint inst)
{
	static char name[16];
	uint group = inst >> 25 & 15;

	if ((inst & 0xfe000000) == 0xd6000000)
		return "target";
	if ((group & 14) == 10)
		return "taken";
	if ((group & 5) == 4 && !(inst >> 22 & 1))
		return "mem";
	snprintf(name, sizeof(name), "%c%u", group & 2 && group & 4 ? 'v' : 'x', inst & 31);
	return name;
}

#else

static const char *register_name(uint r)
{
	static const char *const names[] = {
		"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp"
	};
	static char name[16];

	if (r < 8)
		return names[r];
	if (r < 16)
		snprintf(name, sizeof(name), "r%u", r);
	else if (r < 48)
		snprintf(name, sizeof(name), "xmm%u", r - 16);
	else
		snprintf(name, sizeof(name), "k%u", r - 48);
	return name;
}

static const char *vp_preface(uint inst)
{
	uint form = TRACE_X86_FORM(inst);

	switch (pick(TRACE_X86_CLASS(inst), 0)) {
	case TRACE_MEMORY:
		return "mem";
	case TRACE_TAKEN:
		return "taken";
	case TRACE_TARGET:
		return "target";
	case TRACE_RESULT:
		if (!(form & TRACE_FORM_RESULT))
			return NULL;
		return register_name(form & (TRACE_FORM_READS | TRACE_FORM_WRITES)
					     ? TRACE_X86_RA(inst)
					     : TRACE_X86_RC(inst));
	default:
		return NULL;
	}
}

#endif

static const char *vp_format(uint inst, ulong value)
{
	static char text[24];

	(void)inst;
	snprintf(text, sizeof(text), "%#lx", value);
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
