/* SPDX-License-Identifier: BSD-2-Clause */
/* A trace of values as vp_prof_process is given it (dcpivprofiler(5)). In libtrace.a. */
#ifndef DCPI_TRACE_PARSE_H
#define DCPI_TRACE_PARSE_H

#include <trace-inst.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trace_parser trace_parser_t;

/*
 * The next instruction: its 32-bit code, pc, contexts (return address of the procedure, and of its
 * caller; 0: not known) and, of the values of its list in their order, the first @max (0 to 7),
 * each into the unsigned long that stands behind. Pointers may be NULL. Returns how many values the
 * list has, at most @max, or -1 at the end.
 *
 * Instructions of which a value of the list is not known (or makes no sense) are left out, unless
 * trace_parser_give_unknown asked for them.
 */
int trace_parser_next(trace_parser_t *parser, unsigned int *inst, unsigned long *pc,
		      unsigned long *c0, unsigned long *c1, int max, unsigned long *v0, ...);

/* The process of the trace. */
unsigned int trace_parser_get_pid(const trace_parser_t *parser);
/* Were contexts asked for (dcpid -vcontext)? */
int trace_parser_has_context(const trace_parser_t *parser);

/* From now on instructions with values that are not known come too: those are given as 0. */
void trace_parser_give_unknown(trace_parser_t *parser, int give);
/* Whether value @index in the list of the last instruction from trace_parser_next is known. */
int trace_parser_is_known(const trace_parser_t *parser, int index);
/* Its bytes; returns how many. */
int trace_parser_get_bytes(const trace_parser_t *parser, const uchar **bytes);
/* Its class and func, as selectors have them. */
uchar trace_parser_get_opc(const trace_parser_t *parser);
uchar trace_parser_get_func(const trace_parser_t *parser);

#ifdef __cplusplus
}
#endif

#endif
