/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The values that a profiler wants captured (dcpivprofiler(5)): a list of values for each opcode
 * and func, in a table. In libtrace.a. All values are captured behind the instruction.
 */
#ifndef DCPI_TRACE_VLIST_H
#define DCPI_TRACE_VLIST_H

#include <trace-inst.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trace_vlist trace_vlist_t;
typedef struct trace_vlist_table trace_vlist_table_t;
typedef unsigned int trace_value_t;

enum {
	TRACE_NONE,    /* for trace_set_vlist_by_pick_value: the instruction is ignored */
	TRACE_REGA,    /* with an operand in memory: data; else the first source */
	TRACE_REGB,    /* base; else the second source */
	TRACE_REGC,    /* destination, where no operand is in memory */
	TRACE_ADDRESS, /* address of the operand in memory */
	TRACE_LATENCY, /* ns that the load took, the clock's own time included */
	TRACE_MEMORY,  /* the first eight bytes that were loaded or stored */
	TRACE_TARGET,  /* where it went on */
	TRACE_TAKEN,   /* 1 if that is not behind it, else 0 */
	TRACE_RESULT,  /* the destination, with an operand in memory too; as wide as it is */
	TRACE_REGISTERS = 256,
};
/* A register by DWARF's number for the machine: x86-64 0-15, 17-32 (xmm0-15), 67-82 (xmm16-31);
 * aarch64 0-31, 64-95. Of a vector the low eight bytes. */
#define TRACE_REGISTER(n) (TRACE_REGISTERS + (n))

enum { TRACE_MAX_VALUES = 7 };

/* NULL: no memory. An empty table ignores all instructions; an empty list captures pc, code and
 * contexts. */
trace_vlist_table_t *trace_vlist_table_alloc(void);
trace_vlist_t *trace_vlist_alloc(void);
void trace_vlist_table_free(trace_vlist_table_t *table);
void trace_vlist_free(trace_vlist_t *vlist);

/*
 * The functions below return 0, or -1 if a list would hold more than TRACE_MAX_VALUES or an invalid
 * value: a table with such a list is refused when the profiler is loaded. Values that a list has
 * already are not added again.
 */
int trace_add_value_to_vlist(trace_vlist_t *vlist, trace_value_t value);
/* To those of all instructions of class @opc. */
int trace_add_vlist_by_opc(trace_vlist_table_t *table, uchar opc, const trace_vlist_t *vlist);
/* The only value captured for each opcode and func is the one that @pick returns. */
int trace_set_vlist_by_pick_value(trace_vlist_table_t *table,
				  trace_value_t (*pick)(uchar opc, uchar func));
/* To those of which @selector says not 0. */
int trace_add_vlist_by_select(trace_vlist_table_t *table, int (*selector)(uchar opc, uchar func),
			      const trace_vlist_t *vlist);

#ifdef __cplusplus
}
#endif

#endif
