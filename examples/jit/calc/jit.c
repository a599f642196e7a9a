/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From functions to running code. The runtime's table holds for each function the address that
 * calls to it go through: first that of a stub which has the function compiled, then its code's.
 */
#include <errno.h>

#include "calc_internal.h"
#include "emit.h"

/* Copy what was emitted to its place, and tell of it before it can run. NULL: no room. */
static const void *place(struct calc *c, const char *name, const struct calc_line *lines,
			 size_t nr_lines)
{
	const void *code = calc_code_place(&c->code, c->emit->buf, c->emit->len);
	struct calc_routine routine = {
		.name = name,
		.code = code,
		.code_len = c->emit->len,
		.lines = lines,
		.nr_lines = nr_lines,
		.path = c->abs_path,
	};

	if (code && c->opts.made)
		c->opts.made(c->opts.arg, &routine);
	return code;
}

int calc_jit_open(struct calc *c)
{
	size_t resolve = offsetof(struct calc_runtime, helpers) + 8 * CALC_HELPER_RESOLVE;
	const uint8_t *lazy;
	int r;

	calc_runtime_open(c);
	c->emit = emit_new(CALC_MAX_ROUTINE);
	if (!c->emit)
		return -ENOMEM;
	r = calc_code_open(&c->code);
	if (r < 0)
		return r;
	emit_enter(c->emit);
	c->enter = place(c, "calc:enter", NULL, 0);
	emit_reset(c->emit);
	emit_lazy(c->emit, c->nr_functions, (int)resolve);
	lazy = place(c, "calc:lazy", NULL, 0);
	if (!c->enter || !lazy)
		return -ENOMEM;
	for (unsigned int i = 0; i < c->nr_functions; i++)
		c->runtime.entry[i] = lazy + emit_lazy_off(i);
	return 0;
}

void calc_jit_close(struct calc *c)
{
	calc_runtime_close(c);
	calc_closures_free(c);
	calc_code_close(&c->code);
	emit_free(c->emit);
}

void calc_jit_compile(struct calc *c, struct calc_function *f)
{
	struct calc_line *lines;
	const void *code;
	size_t nr_lines;

	lines = calc_gen_function(c, f, &nr_lines);
	code = place(c, f->name, lines, nr_lines);
	if (!code)
		calc_fail(c, f->pos, "no room for the code of '%s'", f->name);
	c->runtime.entry[f->index] = code;
	f->compiled = true;
}

const void *calc_jit_resolve(struct calc_runtime *rt, uint32_t function)
{
	calc_jit_compile(rt->calc, rt->calc->functions[function]);
	return rt->entry[function];
}

union calc_value calc_jit_enter(struct calc *c, struct calc_function *f,
				const union calc_value *args)
{
	const void *code = c->runtime.entry[f->index];
	union calc_value result;

	/* The same code, whose result is in one register or in another. */
	if (f->signature.result.kind == CALC_DOUBLE)
		result.d = ((calc_enter_double)(uintptr_t)c->enter)(&c->runtime, code, args);
	else
		result.i = ((calc_enter_int)(uintptr_t)c->enter)(&c->runtime, code, args);
	return result;
}
