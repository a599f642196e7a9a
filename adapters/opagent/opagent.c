/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of OProfile's agent library call libdbgdyn. */
#include "opagent_internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define FACILITY "opagent"

/* A handle is known by its place in this list. */
struct agent {
	struct agent *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct agent *agents;
static dbgdyn_context context; /* one for the process: its facilities are few */

static void take(void)
{
	pthread_mutex_lock(&lock);
}

static void give(void)
{
	pthread_mutex_unlock(&lock);
}

/* Else a child might find it taken by a thread that it does not have. */
static void survive_fork(void)
{
	pthread_atfork(take, give, give);
}

static int error_of(int result)
{
	switch (result) {
	case DBGDYN_EINVAL:
		return -EINVAL;
	case DBGDYN_ENOMEM:
	case DBGDYN_EFULL:
		return -ENOMEM;
	default:
		return result < 0 ? -EIO : 0;
	}
}

static int begin(void)
{
	return error_of(dbgdyn_begin(FACILITY, strlen(FACILITY), NULL, &context));
}

static struct agent **find_agent(op_agent_t hdl)
{
	struct agent **link = &agents;

	while (*link && *link != hdl)
		link = &(*link)->next;
	return *link ? link : NULL;
}

/* Leave a call that entered with the lock. */
static int leave(int r)
{
	give();
	if (r == 0)
		return 0;
	errno = -r;
	return -1;
}

op_agent_t op_open_agent(void)
{
	struct agent *a = malloc(sizeof(*a));
	int r = a ? 0 : -ENOMEM;

	pthread_once(&once, survive_fork);
	take();
	if (r == 0 && !context.id)
		r = begin();
	if (r == 0) {
		a->next = agents;
		agents = a;
	}
	if (leave(r) == 0)
		return a;
	free(a);
	return NULL;
}

int op_close_agent(op_agent_t hdl)
{
	struct agent **link, *a;

	take();
	link = find_agent(hdl);
	if (!link)
		return leave(-EINVAL);
	a = *link;
	*link = a->next;
	free(a);
	return leave(0);
}

static int tell(const struct opagent_code *c)
{
	struct dbgdyn_routine r = { .size = sizeof(r),
				    .name = { c->name, strlen(c->name) },
				    .code = (const void *)(uintptr_t)c->vma,
				    .code_len = c->code_len,
				    .bytes = (const void *)c->code };
	void *space;
	int result = opagent_lines_put(c, &r, &space);

	if (result < 0)
		return result;
	result = dbgdyn_register(context, &r, NULL);
	/* A child of fork. */
	if (result == DBGDYN_EREFUSED && begin() == 0)
		result = dbgdyn_register(context, &r, NULL);
	free(space);
	return error_of(result);
}

static int write_code(const char *name, uint64_t vma, uintptr_t code, size_t len)
{
	struct opagent_code *c = opagent_known_get(code);
	int r = c ? opagent_known_name(c, name, vma, len) : -ENOMEM;

	if (r == 0)
		r = tell(c);
	if (r < 0)
		opagent_known_remove(code);
	return r;
}

int op_write_native_code(op_agent_t hdl, char const *symbol_name, uint64_t vma, void const *code,
			 unsigned int const code_size)
{
	take();
	if (!find_agent(hdl) || !symbol_name || !*symbol_name || !vma || !code_size)
		return leave(-EINVAL);
	if (!code && !opagent_readable((const void *)(uintptr_t)vma, code_size))
		return leave(-EFAULT);
	return leave(
		write_code(symbol_name, vma, code ? (uintptr_t)code : (uintptr_t)vma, code_size));
}

int op_write_debug_line_info(op_agent_t hdl, void const *code, size_t nr_entry,
			     struct debug_line_info const *compile_map)
{
	struct opagent_code *c;
	int r;

	take();
	if (!find_agent(hdl) || !code || (nr_entry && !compile_map))
		return leave(-EINVAL);
	if (!nr_entry)
		return leave(0);
	c = opagent_known_get((uintptr_t)code);
	r = c ? opagent_lines_set(&c->lines, compile_map, nr_entry) : -ENOMEM;
	if (r == 0 && c->name)
		r = opagent_readable(code, c->code_len) ? tell(c) : -EFAULT;
	return leave(r);
}

int op_unload_native_code(op_agent_t hdl, uint64_t vma)
{
	int r;

	take();
	if (!find_agent(hdl) || !vma)
		return leave(-EINVAL);
	opagent_known_remove_vma(vma);
	r = dbgdyn_retire_code(context, (const void *)(uintptr_t)vma, 1);
	/* In a child of fork nothing of the parent's can be ended. */
	return leave(r == DBGDYN_EREFUSED ? 0 : error_of(r));
}

int op_major_version(void)
{
	return 1;
}

int op_minor_version(void)
{
	return 0;
}
