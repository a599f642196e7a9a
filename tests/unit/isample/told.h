/* SPDX-License-Identifier: BSD-2-Clause */
/* Expectations of an instruction sample. */
#ifndef TEST_TOLD_H
#define TEST_TOLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "isample.h"

#define B(name) ISAMPLE_BIT(ISAMPLE_##name)
#define C(name) ISAMPLE_HAS(ISAMPLE_##name)

static inline void assert_told(const struct isample *s, uint64_t set, uint64_t unset)
{
	assert_int_equal(s->known & set, set);
	assert_int_equal(s->bits & set, set);
	assert_int_equal(s->known & unset, unset);
	assert_int_equal(s->bits & unset, 0);
}

static inline void assert_untold(const struct isample *s, uint64_t words)
{
	assert_int_equal(s->known & words, 0);
}

#endif
