/* SPDX-License-Identifier: BSD-2-Clause */
/* Iteration over the instructions of a trace, as value profilers do it (dcpi/trace-parse.h). */
#include <stdarg.h>
#include <stddef.h>

#include "trace_internal.h"

static const struct trace_item *last(const trace_parser_t *p)
{
	return p->next ? &p->items[p->next - 1] : NULL;
}

static int is_whole(const struct trace_item *it)
{
	return it->known == (1u << it->nr) - 1;
}

static void put(ulong *to, uint64_t value)
{
	if (to)
		*to = value;
}

int trace_parser_next(trace_parser_t *p, uint *inst, ulong *pc, ulong *c0, ulong *c1, int max,
		      ulong *v0, ...)
{
	const struct trace_item *it;
	va_list more;
	int nr;

	if (p->layout != TRACE_LAYOUT)
		return -1;
	do {
		if (p->next >= p->nr)
			return -1;
		it = &p->items[p->next++];
	} while (!p->give_unknown && !is_whole(it));
	if (inst)
		*inst = it->inst;
	put(pc, it->pc);
	put(c0, it->c0);
	put(c1, it->c1);
	nr = it->nr < max ? it->nr : max;
	va_start(more, v0);
	for (int i = 0; i < nr; i++)
		put(i ? va_arg(more, ulong *) : v0, it->values[i]);
	va_end(more);
	return nr < 0 ? 0 : nr;
}

uint trace_parser_get_pid(const trace_parser_t *p)
{
	return p->pid;
}

int trace_parser_has_context(const trace_parser_t *p)
{
	return p->has_context;
}

void trace_parser_give_unknown(trace_parser_t *p, int give)
{
	p->give_unknown = give != 0;
}

int trace_parser_is_known(const trace_parser_t *p, int index)
{
	const struct trace_item *it = last(p);

	return it && index >= 0 && index < it->nr && it->known >> index & 1;
}

int trace_parser_get_bytes(const trace_parser_t *p, const uchar **bytes)
{
	const struct trace_item *it = last(p);

	*bytes = it ? it->bytes : NULL;
	return it ? it->len : 0;
}

uchar trace_parser_get_opc(const trace_parser_t *p)
{
	return last(p) ? last(p)->opc : 0;
}

uchar trace_parser_get_func(const trace_parser_t *p)
{
	return last(p) ? last(p)->func : 0;
}
