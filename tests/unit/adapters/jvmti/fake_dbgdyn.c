/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake_dbgdyn.h"

struct jvmti_agent jvmti_agent = { .context = { FAKE_CONTEXT } };
const void *fake_retired;
size_t fake_retired_len;

int dbgdyn_register(dbgdyn_context context, const struct dbgdyn_routine *routine,
		    dbgdyn_handle *handle)
{
	(void)handle;
	return context.id == FAKE_CONTEXT ? fake_register(routine) : DBGDYN_EREFUSED;
}

int dbgdyn_retire_code(dbgdyn_context context, const void *code, size_t len)
{
	if (context.id != FAKE_CONTEXT)
		return DBGDYN_EREFUSED;
	fake_retired = code;
	fake_retired_len = len;
	return DBGDYN_OK;
}
