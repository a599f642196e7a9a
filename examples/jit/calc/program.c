/* SPDX-License-Identifier: BSD-2-Clause */
/* The program object: its memory, its errors, and the entry points of calc.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "calc_internal.h"

#define BLOCK_LEN (64 * 1024)

struct calc_block {
	struct calc_block *next;
	size_t used;
	size_t len;
	max_align_t bytes[];
};

_Noreturn void calc_fail(struct calc *c, struct calc_pos pos, const char *fmt, ...)
{
	struct calc_err *err = c->err;
	char message[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);
	if (pos.line)
		snprintf(err->text, sizeof(err->text), "%.200s:%u:%u: %s", c->path, pos.line,
			 pos.col, message);
	else
		snprintf(err->text, sizeof(err->text), "%.200s: %s", c->path, message);
	longjmp(*c->out, 1);
}

void *calc_alloc(struct calc *c, struct calc_pos pos, size_t len)
{
	struct calc_block *b = c->arena;
	uint8_t *p;

	len = (len + 7) & ~(size_t)7;
	if (!b || b->len - b->used < len) {
		size_t want = len > BLOCK_LEN ? len : BLOCK_LEN;

		b = calloc(1, sizeof(*b) + want);
		if (!b)
			calc_fail(c, pos, "out of memory");
		b->len = want;
		b->next = c->arena;
		c->arena = b;
	}
	p = (uint8_t *)b->bytes + b->used;
	b->used += len;
	return p;
}

struct calc_function *calc_function_find(struct calc *c, const char *name)
{
	for (unsigned int i = 0; i < c->nr_functions; i++)
		if (strcmp(c->functions[i]->name, name) == 0)
			return c->functions[i];
	return NULL;
}

const struct calc_global *calc_global_find(struct calc *c, const char *name, unsigned int *index)
{
	for (unsigned int i = 0; i < c->nr_globals; i++) {
		if (strcmp(c->globals[i].name, name) == 0) {
			*index = i + 1; /* after CALC_DATA_ROUND */
			return &c->globals[i];
		}
	}
	return NULL;
}

unsigned int calc_data_add(struct calc *c, struct calc_pos pos, union calc_value value)
{
	unsigned int i = c->nr_globals + 1;

	while (i < c->nr_data && c->runtime.data[i].i != value.i)
		i++;
	if (i == CALC_MAX_DATA)
		calc_fail(c, pos, "more than %d constants", CALC_MAX_DATA);
	c->runtime.data[i] = value;
	if (i == c->nr_data)
		c->nr_data++;
	return i;
}

void calc_free(struct calc *c)
{
	if (!c)
		return;
	calc_jit_close(c);
	while (c->arena) {
		struct calc_block *b = c->arena;

		c->arena = b->next;
		free(b);
	}
	free(c->path);
	free(c->abs_path);
	free(c);
}

/* Everything that can fail by calc_fail runs below one of these, the only setjmp there is. */
static int guarded(struct calc *c, struct calc_err *err, void (*work)(struct calc *, void *),
		   void *arg)
{
	jmp_buf out;

	c->err = err;
	c->out = &out;
	if (setjmp(out))
		return -1;
	work(c, arg);
	return 0;
}

struct source {
	const char *text;
	size_t len;
};

static void load(struct calc *c, void *arg)
{
	const struct source *source = arg;

	if (!c->path || !c->abs_path)
		calc_fail(c, (struct calc_pos){ 0 }, "out of memory");
	if (source->len > CALC_MAX_SOURCE)
		calc_fail(c, (struct calc_pos){ 1, 1 }, "program of more than %d bytes",
			  CALC_MAX_SOURCE);
	calc_parse(c, source->text, source->len);
	calc_check(c);
	c->nr_data = c->nr_globals + 1;
	if (calc_jit_open(c) < 0)
		calc_fail(c, (struct calc_pos){ 0 }, "no memory for code: %s", strerror(errno));
	calc_runtime_reset(c);
}

int calc_new(struct calc **out, const char *path, const char *text, size_t len,
	     const struct calc_options *opts, struct calc_err *err)
{
	struct source source = { text, len };
	struct calc *c = calloc(1, sizeof(*c));

	if (!c) {
		snprintf(err->text, sizeof(err->text), "%.200s: out of memory", path);
		return -1;
	}
	if (opts)
		c->opts = *opts;
	if (!c->opts.out)
		c->opts.out = stdout;
	c->path = strdup(path);
	c->abs_path = realpath(path, NULL);
	if (!c->abs_path)
		c->abs_path = strdup(path);
	if (guarded(c, err, load, &source) < 0) {
		calc_free(c);
		return -1;
	}
	*out = c;
	return 0;
}

int calc_open(struct calc **calc, const char *path, const struct calc_options *opts,
	      struct calc_err *err)
{
	size_t max = CALC_MAX_SOURCE + 1, len = 0; /* one more, so that calc_new sees the excess */
	char *text = malloc(max);
	FILE *file = text ? fopen(path, "re") : NULL;
	int r = -1;

	if (file)
		len = fread(text, 1, max, file);
	if (!file || ferror(file))
		snprintf(err->text, sizeof(err->text), "%.200s: cannot read: %s", path,
			 strerror(errno));
	else
		r = calc_new(calc, path, text, len, opts, err);
	if (file)
		fclose(file);
	free(text);
	return r;
}

static void compile_all(struct calc *c, void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < c->nr_functions; i++)
		if (c->functions[i]->body && !c->functions[i]->compiled)
			calc_jit_compile(c, c->functions[i]);
}

int calc_compile_all(struct calc *c, struct calc_err *err)
{
	return guarded(c, err, compile_all, NULL);
}

struct call {
	struct calc_function *function;
	union calc_value args[CALC_MAX_PARAMS];
	union calc_value result;
};

static void enter(struct calc *c, void *arg)
{
	struct call *call = arg;

	calc_runtime_limit_stack(c);
	calc_share_start(c);
	call->result = calc_jit_enter(c, call->function, call->args);
}

int calc_run(struct calc *c, int64_t *status, struct calc_err *err)
{
	struct call call = { .function = calc_function_find(c, "main") };
	int r;

	r = guarded(c, err, enter, &call);
	calc_share_stop(c);
	calc_runtime_reset(c);
	c->runtime.data[CALC_DATA_ROUND].i++;
	*status = call.function->signature.result.kind == CALC_INT ? call.result.i : 0;
	return r;
}

int calc_call(struct calc *c, const char *name, const union calc_value *args, size_t nr_args,
	      union calc_value *result, struct calc_err *err)
{
	struct call call = { .function = calc_function_find(c, name) };
	int r;

	if (!call.function || !call.function->body ||
	    call.function->signature.nr_params != nr_args) {
		snprintf(err->text, sizeof(err->text), "%.200s: no function '%s' of %zu parameters",
			 c->path, name, nr_args);
		return -1;
	}
	for (size_t i = 0; i < nr_args; i++)
		call.args[i] = args[i];
	r = guarded(c, err, enter, &call);
	calc_share_stop(c);
	if (r == 0 && result)
		*result = call.result;
	return r;
}
