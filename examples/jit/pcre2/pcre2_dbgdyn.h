/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The machine code of PCRE2's patterns for DCPI: each is a routine whose name is the pattern. To be
 * included by pcre2_jit_compile.c alone. Where libdbgdyn is not installed, the calls do nothing.
 */
#ifndef PCRE2_DBGDYN_H
#define PCRE2_DBGDYN_H

#include <dbgdyn_dlopen.h>
#include <pthread.h>

static dbgdyn_context pcre2_dbgdyn;
static pthread_mutex_t pcre2_dbgdyn_lock = PTHREAD_MUTEX_INITIALIZER;

/* The code is final and has not run. The first pattern begins; in a child of fork its first. */
static void pcre2_dbgdyn_made(const void *pattern, size_t pattern_size, const void *code,
			      size_t code_len)
{
	struct dbgdyn_routine r = { .size = sizeof(r),
				    .name = { (const char *)pattern, pattern_size },
				    .code = code,
				    .code_len = code_len };

	if (pattern_size == 0)
		r.name = (struct dbgdyn_string)DBGDYN_STR("(empty)");
	pthread_mutex_lock(&pcre2_dbgdyn_lock);
	if (dbgdyn_register(pcre2_dbgdyn, &r, NULL) == DBGDYN_EREFUSED &&
	    dbgdyn_begin("pcre2", 5, NULL, &pcre2_dbgdyn) == DBGDYN_OK)
		dbgdyn_register(pcre2_dbgdyn, &r, NULL);
	pthread_mutex_unlock(&pcre2_dbgdyn_lock);
}

/* The code does not run any more; its place may be used again. */
static void pcre2_dbgdyn_gone(const void *code, size_t code_len)
{
	pthread_mutex_lock(&pcre2_dbgdyn_lock);
	dbgdyn_retire_code(pcre2_dbgdyn, code, code_len);
	pthread_mutex_unlock(&pcre2_dbgdyn_lock);
}

#endif
