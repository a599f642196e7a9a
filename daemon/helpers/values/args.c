/* SPDX-License-Identifier: BSD-2-Clause */
/* The built-in profilers of arguments and results find the registers of each call. */
#include <string.h>

#include "values.h"
#include "values_args.h"

/* As the interpreter numbers them. */
static const uint8_t registers[] = {
#if defined(__aarch64__)
	0, 1, 2, 3, 4, 5, 6, 7,
#else
	5, 4, 1, 2, 8, 9, /* rdi, rsi, rdx, rcx, r8, r9 */
#endif
};

int values_arg_of(const char *profiler)
{
	const char *digit = profiler + strlen(VALUES_ARG);

	if (strncmp(profiler, VALUES_ARG, strlen(VALUES_ARG)) != 0 || !*digit || digit[1] ||
	    *digit < '0' || *digit >= '0' + VALUES_NR_ARGS)
		return -1;
	return *digit - '0';
}

const char *values_of_vprof(size_t index)
{
	static const char *const names[] = {
		"values",	VALUES_ARG "0", VALUES_ARG "1", VALUES_ARG "2", VALUES_ARG "3",
		VALUES_ARG "4", VALUES_ARG "5", VALUES_ARG "6", VALUES_ARG "7",
	};

	return index <= VALUES_NR_ARGS ? names[index] : NULL;
}

static void read_registers(const struct vtrace_entry *e, uint64_t *r, bool *known)
{
	for (unsigned int i = 0; i < VALUES_NR_ARGS; i++) {
		known[i] = !e->after->unknown[registers[i]];
		r[i] = known[i] ? e->after->r[registers[i]] : 0;
	}
}

/* It still is as the call left it: what a stub does not touch. */
static bool is_stub(const struct values_args *a, const struct vtrace_entry *e)
{
	struct values_args now = { 0 };

	read_registers(e, now.r, now.known);
	return a->ret && a->since <= VALUES_STUB && memcmp(now.r, a->r, sizeof(now.r)) == 0 &&
	       memcmp(now.known, a->known, sizeof(now.known)) == 0;
}

bool values_args_begin(const struct values_args *a, const struct vtrace_entry *e)
{
	return a->ret && a->target == e->pc;
}

void values_args_next(struct values_args *a, const struct vtrace_entry *e)
{
	a->since++;
	a->target = 0;
	if (e->class == VTRACE_CLASS_CALL || e->class == VTRACE_CLASS_CALL_INDIRECT) {
		a->target = e->target;
		a->ret = e->pc + e->len;
		a->since = 0;
		read_registers(e, a->r, a->known);
	} else if (e->class == VTRACE_CLASS_JUMP_INDIRECT && is_stub(a, e)) {
		a->target = e->target;
	}
}
