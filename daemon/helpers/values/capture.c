/* SPDX-License-Identifier: BSD-2-Clause */
/* The values that a profiler wants of a trace are collected while it runs again. */
#include <string.h>

#include "values_capture.h"

/* The opcodes of profilers are the translator's classes, by number. */
_Static_assert((int)TRACE_OP_LOAD == (int)VTRACE_CLASS_LOAD, "TRACE_OP_LOAD");
_Static_assert((int)TRACE_OP_LEA == (int)VTRACE_CLASS_LEA, "TRACE_OP_LEA");
_Static_assert((int)TRACE_OP_BRANCH == (int)VTRACE_CLASS_BRANCH, "TRACE_OP_BRANCH");
_Static_assert((int)TRACE_OP_SYSTEM == (int)VTRACE_CLASS_SYSTEM, "TRACE_OP_SYSTEM");
_Static_assert((int)TRACE_NR_OPS == (int)VTRACE_NR_CLASSES, "TRACE_NR_OPS");

/* ---- tables ---------------------------------------------------------------------------------- */

static int check_list(const struct trace_vlist *l, unsigned int opc, struct base_err *err)
{
	const char *name = vtrace_class_name((enum vtrace_class)opc);

	if (l->too_many || l->nr > TRACE_MAX_VALUES)
		return base_fail(err, -DCPI_ELIMIT,
				 "it asks for more than %d values of an instruction (class '%s')",
				 TRACE_MAX_VALUES, name);
	if (l->unknown)
		return base_fail(err, -DCPI_EFORMAT, "it asks for what is no value (class '%s')",
				 name);
	return 0;
}

int values_table_check(const struct trace_vlist_table *t, struct base_err *err)
{
	if (!t)
		return base_fail(err, -DCPI_EFORMAT, "its prof_init returned no table");
	if (t->layout != TRACE_LAYOUT)
		return base_fail(err, -DCPI_EVERSION,
				 "its libtrace.a is another release's, or its table is none");
	for (unsigned int opc = 0; opc < TRACE_NR_OPS; opc++)
		for (unsigned int func = 0; func < TRACE_NR_FUNCS; func++) {
			int r = check_list(&t->lists[opc][func], opc, err);

			if (r < 0)
				return r;
		}
	return 0;
}

bool values_table_has(const struct trace_vlist_table *t, trace_value_t value)
{
	for (unsigned int opc = 0; opc < TRACE_NR_OPS; opc++)
		for (unsigned int func = 0; func < TRACE_NR_FUNCS; func++)
			for (unsigned int i = 0; i < t->lists[opc][func].nr; i++)
				if (t->lists[opc][func].values[i] == value)
					return true;
	return false;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* VTRACE_ZERO: none. */
static uint8_t register_of_dwarf(unsigned int n)
{
	if (VALUES_ARCH == VTRACE_AARCH64) {
		if (n >= 64 && n < 96)
			return (uint8_t)(VTRACE_VECTOR + 4 * (n - 64));
		return n < 32 ? (uint8_t)n : VTRACE_ZERO;
	}
	if (n >= 17 && n < 33)
		return (uint8_t)(VTRACE_VECTOR + 4 * (n - 17));
	if (n >= 67 && n < 83)
		return (uint8_t)(VTRACE_VECTOR + 4 * (n - 67 + 16));
	return n < 16 ? (uint8_t)n : VTRACE_ZERO;
}

/* The low @width bytes. */
static bool get_register(const struct vtrace_entry *e, uint8_t reg, unsigned int width,
			 uint64_t *out)
{
	uint8_t w = width < 8 ? (uint8_t)width : 8;

	if (reg == VTRACE_ZERO || !w || e->after->unknown[reg] & vtrace_bytes(w, 0))
		return false;
	*out = e->after->r[reg] & vtrace_mask(w);
	return true;
}

static bool is_flow(uint8_t class)
{
	return class >= VTRACE_CLASS_BRANCH && class <= VTRACE_CLASS_RETURN;
}

/* The result of an instruction; for one that extends the sign of a byte the whole register. */
static bool get_result(const struct vtrace_entry *e, const struct vtrace_operands *o, uint64_t *out)
{
	return get_register(e, o->result, o->result_width, out);
}

static bool get(trace_value_t value, const struct vtrace_entry *e, const struct vtrace_operands *o,
		bool timed, uint64_t *out)
{
	switch (value) {
	case TRACE_REGA:
		return get_register(e, o->a, 8, out);
	case TRACE_REGB:
		return get_register(e, o->b, 8, out);
	case TRACE_REGC:
		return get_register(e, o->c, 8, out);
	case TRACE_RESULT:
		return get_result(e, o, out);
	case TRACE_ADDRESS:
		*out = e->addr;
		return e->has_addr;
	case TRACE_LATENCY:
		*out = e->ns;
		return timed && e->load.has_addr;
	case TRACE_MEMORY:
		*out = e->memory;
		return e->has_addr && !e->memory_unknown;
	case TRACE_TARGET:
		*out = e->target;
		return is_flow(e->class);
	case TRACE_TAKEN:
		*out = e->taken;
		return is_flow(e->class);
	default:
		return value >= TRACE_REGISTERS &&
		       get_register(e, register_of_dwarf(value - TRACE_REGISTERS), 8, out);
	}
}

void values_capture(const struct trace_vlist *list, const struct vtrace_entry *e,
		    const struct values_insn *insn, bool timed, struct trace_item *out)
{
	*out = (struct trace_item){
		.pc = e->pc,
		.nr = list->nr,
		.opc = e->class,
		.func = insn->func,
		.len = e->len < sizeof(out->bytes) ? e->len : sizeof(out->bytes),
		.inst = insn->word,
	};
	memcpy(out->bytes, e->code->block.code + e->code->insns[e->index].offset, out->len);
	for (unsigned int i = 0; i < list->nr; i++) {
		if (get(list->values[i], e, &insn->operands, timed, &out->values[i]))
			out->known |= (uint8_t)(1u << i);
		else
			out->values[i] = 0;
	}
}
