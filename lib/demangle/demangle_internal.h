/* SPDX-License-Identifier: BSD-2-Clause */
/* The readers of the mangling schemes, for demangle.c, and what it shares with match.c. */
#ifndef DCPI_DEMANGLE_INTERNAL_H
#define DCPI_DEMANGLE_INTERNAL_H

#include "demangle.h"

/* Does the name begin like one of a known scheme? */
static inline bool dem_may(const char *linkage)
{
	return linkage[0] == '_' && (linkage[1] == 'Z' || linkage[1] == 'R');
}

/*
 * A name of C++: the first @len bytes of @linkage, which begins with "_Z"; @rest is appended. The
 * caller frees it. NULL where the name cannot be read, a limit is reached, or memory lacks.
 */
char *dem_cxx(const char *linkage, size_t len, const char *rest);

/* A name of Rust in either of its schemes, to be freed; NULL where @name is in none of them, or
 * memory lacks. @name begins with "_R" or "_Z". */
char *dem_rust(const char *name);

static inline bool dem_digit(char c)
{
	return c >= '0' && c <= '9';
}

#endif
