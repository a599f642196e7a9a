/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of values and their counts, as value profilers keep them (dcpi/trace-vlist.h). */
#include <stdlib.h>

#include "trace_internal.h"

trace_vlist_table_t *trace_vlist_table_alloc(void)
{
	trace_vlist_table_t *table = calloc(1, sizeof(*table));

	if (table)
		table->layout = TRACE_LAYOUT;
	return table;
}

trace_vlist_t *trace_vlist_alloc(void)
{
	return calloc(1, sizeof(trace_vlist_t));
}

void trace_vlist_table_free(trace_vlist_table_t *table)
{
	free(table);
}

void trace_vlist_free(trace_vlist_t *vlist)
{
	free(vlist);
}

static int is_value(trace_value_t value)
{
	return (value > TRACE_NONE && value <= TRACE_RESULT) ||
	       (value >= TRACE_REGISTERS && value < TRACE_REGISTERS + TRACE_NR_REGISTERS);
}

int trace_add_value_to_vlist(trace_vlist_t *vlist, trace_value_t value)
{
	if (!is_value(value)) {
		vlist->unknown = 1;
		return -1;
	}
	for (unsigned int i = 0; i < vlist->nr; i++)
		if (vlist->values[i] == value)
			return 0;
	if (vlist->nr == TRACE_MAX_VALUES) {
		vlist->too_many = 1;
		return -1;
	}
	vlist->values[vlist->nr++] = (uint16_t)value;
	return 0;
}

/* An error in one list is an error of the other. */
static int add_vlist(trace_vlist_t *to, const trace_vlist_t *vlist)
{
	int r = vlist->too_many || vlist->unknown ? -1 : 0;

	to->wanted = 1;
	to->too_many |= vlist->too_many;
	to->unknown |= vlist->unknown;
	for (unsigned int i = 0; i < vlist->nr; i++)
		if (trace_add_value_to_vlist(to, vlist->values[i]) < 0)
			r = -1;
	return r;
}

int trace_add_vlist_by_opc(trace_vlist_table_t *table, uchar opc, const trace_vlist_t *vlist)
{
	int r = 0;

	if (opc >= TRACE_NR_OPS)
		return -1;
	for (unsigned int func = 0; func < TRACE_NR_FUNCS; func++)
		if (add_vlist(&table->lists[opc][func], vlist) < 0)
			r = -1;
	return r;
}

int trace_set_vlist_by_pick_value(trace_vlist_table_t *table,
				  trace_value_t (*pick)(uchar opc, uchar func))
{
	int r = 0;

	for (unsigned int opc = 0; opc < TRACE_NR_OPS; opc++) {
		for (unsigned int func = 0; func < TRACE_NR_FUNCS; func++) {
			trace_value_t value = pick((uchar)opc, (uchar)func);
			trace_vlist_t *to = &table->lists[opc][func];

			*to = (trace_vlist_t){ .wanted = value != TRACE_NONE };
			if (to->wanted && trace_add_value_to_vlist(to, value) < 0)
				r = -1;
		}
	}
	return r;
}

int trace_add_vlist_by_select(trace_vlist_table_t *table, int (*selector)(uchar opc, uchar func),
			      const trace_vlist_t *vlist)
{
	int r = 0;

	for (unsigned int opc = 0; opc < TRACE_NR_OPS; opc++)
		for (unsigned int func = 0; func < TRACE_NR_FUNCS; func++)
			if (selector((uchar)opc, (uchar)func) &&
			    add_vlist(&table->lists[opc][func], vlist) < 0)
				r = -1;
	return r;
}
