/* SPDX-License-Identifier: BSD-2-Clause */
/* The values that a list asks for, of an instruction that was replayed. */
#ifndef DCPI_VALUES_CAPTURE_H
#define DCPI_VALUES_CAPTURE_H

#include "base.h"
#include "insn_word.h"
#include "replay.h"
#include "trace_internal.h"

/* The part of an instruction that is the same at each execution. */
struct values_insn {
	struct vtrace_operands operands;
	uint32_t word;
	uint8_t func;
};

#if defined(__aarch64__)
#define VALUES_ARCH VTRACE_AARCH64
#else
#define VALUES_ARCH VTRACE_X86_64
#endif

/* Is the list one that can be captured? 0, -DCPI_ELIMIT (more than seven values), -DCPI_EFORMAT. */
int values_table_check(const struct trace_vlist_table *t, struct base_err *err);
/* Does a list ask for @value? */
bool values_table_has(const struct trace_vlist_table *t, trace_value_t value);

/* Contexts are the caller's. @timed: the trace has times. */
void values_capture(const struct trace_vlist *list, const struct vtrace_entry *e,
		    const struct values_insn *insn, bool timed, struct trace_item *out);

#endif
