/* SPDX-License-Identifier: BSD-2-Clause */
/* What compiled code calls: helper(runtime, arguments, data), see emit_call_helper. */
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "calc_internal.h"

#define MAX_STACK (8 * 1024 * 1024)

/* Compiled code sees the address of the elements, and the length just before them. */
struct calc_array {
	struct calc_array *next;
	int64_t length;
	union calc_value elements[];
};

const void *calc_runtime_empty_array(void)
{
	static const struct {
		int64_t length;
		union calc_value end;
	} empty;

	return &empty.end;
}

/* The inverse of gen_pack_pos. */
static struct calc_pos unpack_pos(uint64_t data)
{
	return (struct calc_pos){ .line = data >> 8 & 0xffffff, .col = (unsigned int)(data >> 32) };
}

static void helper_trap(struct calc_runtime *rt, const union calc_value *args, uintptr_t data)
{
	static const char *const texts[] = {
		[CALC_TRAP_DIVIDE] = "division by zero",
		[CALC_TRAP_INDEX] = "index outside the array",
		[CALC_TRAP_CONVERT] = "number does not fit an int",
		[CALC_TRAP_STACK] = "recursion too deep",
		[CALC_TRAP_POINTER] = "null pointer",
		[CALC_TRAP_RETURN] = "function ends without 'return'",
	};

	(void)args;
	calc_fail(rt->calc, unpack_pos(data), "%s", texts[data & 0xff]);
}

static void helper_print_int(struct calc_runtime *rt, const union calc_value *args)
{
	fprintf(rt->calc->opts.out, "%lld", (long long)args[0].i);
}

static void helper_print_double(struct calc_runtime *rt, const union calc_value *args)
{
	/* Which sign a not-a-number has differs between machines. */
	fprintf(rt->calc->opts.out, "%.10g", isnan(args[0].d) ? (double)NAN : args[0].d);
}

static void helper_print_string(struct calc_runtime *rt, const union calc_value *args)
{
	fputs(args[0].p ? args[0].p : "(null)", rt->calc->opts.out);
}

static const void *helper_new_array(struct calc_runtime *rt, const union calc_value *args,
				    uintptr_t data)
{
	struct calc *c = rt->calc;
	int64_t length = args[0].i;
	struct calc_array *a = NULL;
	uint64_t len;

	if (length < 0)
		calc_fail(c, unpack_pos(data), "array of %lld elements", (long long)length);
	if ((uint64_t)length <= CALC_MAX_ARRAYS / 8) {
		len = sizeof(*a) + 8 * (uint64_t)length;
		if (c->arrays_len + len <= CALC_MAX_ARRAYS)
			a = calloc(1, len);
	}
	if (!a)
		calc_fail(c, unpack_pos(data), "no memory for an array of %lld elements",
			  (long long)length);
	a->length = length;
	a->next = c->arrays;
	c->arrays = a;
	c->arrays_len += len;
	return a->elements;
}

static uint64_t thread_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Charge what passed to whom the CPU belonged, and give it to @next. */
static void share_switch(struct calc *c, unsigned int next)
{
	uint64_t now = thread_ns();

	c->share_ns[c->share_now] += now - c->share_since;
	c->share_since = now;
	c->share_now = next;
}

static int64_t helper_share_enter(struct calc_runtime *rt, const union calc_value *args,
				  uintptr_t data)
{
	unsigned int before = rt->calc->share_now;

	(void)args;
	share_switch(rt->calc, (unsigned int)data);
	return before;
}

static void helper_share_leave(struct calc_runtime *rt, const union calc_value *args)
{
	share_switch(rt->calc, (unsigned int)args[0].i);
}

void calc_share_start(struct calc *c)
{
	c->share_since = thread_ns();
	c->share_now = 0;
}

void calc_share_stop(struct calc *c)
{
	share_switch(c, 0);
}

bool calc_share(const struct calc *c, unsigned int index, const char **name, double *percent)
{
	uint64_t sum = 0;

	if (index > c->nr_shares || c->nr_shares == 0 || !c->opts.measure_shares)
		return false;
	for (unsigned int i = 0; i <= c->nr_shares; i++)
		sum += c->share_ns[i];
	*name = index < c->nr_shares ? c->shares[index].name : "-";
	index = index < c->nr_shares ? index + 1 : 0;
	*percent = sum > 0 ? 100.0 * (double)c->share_ns[index] / (double)sum : 0;
	return true;
}

#define HELPER(f) ((const void *)(uintptr_t)(f))

void calc_runtime_open(struct calc *c)
{
	const void **helpers = c->runtime.helpers;

	c->runtime.calc = c;
	helpers[CALC_HELPER_RESOLVE] = HELPER(calc_jit_resolve);
	helpers[CALC_HELPER_TRAP] = HELPER(helper_trap);
	helpers[CALC_HELPER_PRINT_INT] = HELPER(helper_print_int);
	helpers[CALC_HELPER_PRINT_DOUBLE] = HELPER(helper_print_double);
	helpers[CALC_HELPER_PRINT_STRING] = HELPER(helper_print_string);
	helpers[CALC_HELPER_NEW_ARRAY] = HELPER(helper_new_array);
	helpers[CALC_HELPER_C_INT] = HELPER(calc_site_call_int);
	helpers[CALC_HELPER_C_DOUBLE] = HELPER(calc_site_call_double);
	helpers[CALC_HELPER_SHARE_ENTER] = HELPER(helper_share_enter);
	helpers[CALC_HELPER_SHARE_LEAVE] = HELPER(helper_share_leave);
}

void calc_runtime_close(struct calc *c)
{
	while (c->arrays) {
		struct calc_array *a = c->arrays;

		c->arrays = a->next;
		free(a);
	}
	c->arrays_len = 0;
}

void calc_runtime_reset(struct calc *c)
{
	calc_runtime_close(c);
	for (unsigned int i = 0; i < c->nr_globals; i++)
		c->runtime.data[i + 1] = c->globals[i].first;
}

/* Half of the stack is for the program; the rest for C functions, and for what came before. */
void calc_runtime_limit_stack(struct calc *c)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	struct rlimit limit;
	rlim_t bytes = MAX_STACK;

	if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < bytes)
		bytes = limit.rlim_cur;
	c->runtime.stack_limit = here - bytes / 2;
}
