/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake_dbgdyn.h"

struct jvmti_agent jvmti_agent = { .context = FAKE_CONTEXT };
const void *fake_retired;
size_t fake_retired_len;

int dbgdyn_register(uint64_t context, const struct dbgdyn_routine *routine, uint64_t *handle)
{
	(void)handle;
	return context == FAKE_CONTEXT ? fake_register(routine) : DBGDYN_EREFUSED;
}

int dbgdyn_retire_code(uint64_t context, const void *code, size_t len)
{
	if (context != FAKE_CONTEXT)
		return DBGDYN_EREFUSED;
	fake_retired = code;
	fake_retired_len = len;
	return DBGDYN_OK;
}
