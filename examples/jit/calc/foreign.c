/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * C functions, by libffi: what a call of one needs stands in a site, made once for each call in the
 * program; what C needs to call back stands in a closure. A declaration that is not C's own makes
 * here what it would make in C.
 */
#include <ffi.h>

#include "calc_internal.h"

struct calc_site {
	ffi_cif cif;
	void (*function)(void);
	enum calc_kind result;
	ffi_type *types[CALC_MAX_PARAMS];
};

struct calc_closure {
	struct calc_closure *next;
	struct calc *c;
	struct calc_function *function;
	const struct calc_signature *signature;
	ffi_closure *closure;
	ffi_cif cif;
	ffi_type *types[CALC_MAX_PARAMS];
};

static ffi_type *ffi_type_of(struct calc_type type)
{
	switch (type.kind) {
	case CALC_VOID:
		return &ffi_type_void;
	case CALC_INT:
		return &ffi_type_sint64;
	case CALC_INT32:
		return &ffi_type_sint32;
	case CALC_DOUBLE:
		return &ffi_type_double;
	default:
		return &ffi_type_pointer;
	}
}

struct calc_site *calc_site_new(struct calc *c, const struct calc_expr *call)
{
	const struct calc_signature *s = &call->function->signature;
	struct calc_site *site = calc_alloc(c, call->pos, sizeof(*site));
	unsigned int i = 0;
	ffi_status status;

	for (const struct calc_expr *a = call->args; a; a = a->next, i++)
		site->types[i] = ffi_type_of(i < s->nr_params ? s->params[i] : a->type);
	site->function = (void (*)(void))(uintptr_t)call->function->address;
	site->result = s->result.kind;
	if (s->variadic)
		status = ffi_prep_cif_var(&site->cif, FFI_DEFAULT_ABI, s->nr_params, i,
					  ffi_type_of(s->result), site->types);
	else
		status = ffi_prep_cif(&site->cif, FFI_DEFAULT_ABI, i, ffi_type_of(s->result),
				      site->types);
	if (status != FFI_OK)
		calc_fail(c, call->pos, "libffi cannot call '%s'", call->function->symbol);
	return site;
}

/* libffi widens integer results to a whole register. */
union result {
	ffi_arg widened;
	int64_t i;
	double d;
};

static union result call(const struct calc_site *site, const union calc_value *args)
{
	void *addresses[CALC_MAX_PARAMS];
	union result result = { 0 };
	ffi_cif cif = site->cif;

	/* All values stand at the lowest address of their 8 bytes: these machines are
	 * little-endian. */
	for (unsigned int i = 0; i < CALC_MAX_PARAMS; i++)
		addresses[i] = (void *)(uintptr_t)&args[i];
	ffi_call(&cif, site->function, &result, addresses);
	return result;
}

int64_t calc_site_call_int(struct calc_runtime *rt, const union calc_value *args, const void *site)
{
	union result result = call(site, args);

	(void)rt;
	if (((const struct calc_site *)site)->result == CALC_INT32)
		return (int32_t)result.widened;
	return result.i;
}

double calc_site_call_double(struct calc_runtime *rt, const union calc_value *args,
			     const void *site)
{
	(void)rt;
	return call(site, args).d;
}

static union calc_value from_c(struct calc_type type, const void *arg)
{
	union calc_value value;

	if (type.kind == CALC_INT32)
		value.i = *(const int32_t *)arg;
	else
		value = *(const union calc_value *)arg;
	return value;
}

/* What libffi runs when C calls the closure. */
static void called_back(ffi_cif *cif, void *result, void **args, void *user)
{
	struct calc_closure *closure = user;
	const struct calc_signature *s = closure->signature;
	union calc_value values[CALC_MAX_PARAMS] = { 0 };
	union calc_value value;

	(void)cif;
	for (unsigned int i = 0; i < s->nr_params; i++)
		values[i] = from_c(s->params[i], args[i]);
	value = calc_jit_enter(closure->c, closure->function, values);
	if (s->result.kind != CALC_VOID)
		*(union calc_value *)result = value;
}

const void *calc_closure_new(struct calc *c, struct calc_pos pos, struct calc_function *f,
			     const struct calc_signature *signature)
{
	struct calc_closure *closure = calc_alloc(c, pos, sizeof(*closure));
	void *code = NULL;

	closure->c = c;
	closure->function = f;
	closure->signature = signature;
	for (unsigned int i = 0; i < signature->nr_params; i++)
		closure->types[i] = ffi_type_of(signature->params[i]);
	closure->closure = ffi_closure_alloc(sizeof(*closure->closure), &code);
	if (!closure->closure)
		calc_fail(c, pos, "libffi has no memory for a closure");
	closure->next = c->closures;
	c->closures = closure;
	if (ffi_prep_cif(&closure->cif, FFI_DEFAULT_ABI, signature->nr_params,
			 ffi_type_of(signature->result), closure->types) != FFI_OK ||
	    ffi_prep_closure_loc(closure->closure, &closure->cif, called_back, closure, code) !=
		    FFI_OK)
		calc_fail(c, pos, "libffi cannot make a closure of '%s'", f->name);
	return code;
}

void calc_closures_free(struct calc *c)
{
	for (struct calc_closure *closure = c->closures; closure; closure = closure->next)
		ffi_closure_free(closure->closure);
	c->closures = NULL;
}
