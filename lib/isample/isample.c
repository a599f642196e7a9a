/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of bits and counters of instruction samples, and how they are set. */
#include "isample.h"

_Static_assert((int)ISAMPLE_NR_BITS <= (int)ISAMPLE_FIRST_COUNTER, "bits lie below counters");
_Static_assert(ISAMPLE_FIRST_COUNTER + ISAMPLE_NR_COUNTERS <= 64, "counters fit");

#define X(id, name, text) name,
static const char *const bits[] = { ISAMPLE_BITS(X) };
static const char *const counters[] = { ISAMPLE_COUNTERS(X) };
#undef X

const char *isample_bit_name(enum isample_bit bit)
{
	return bits[bit];
}

const char *isample_counter_name(enum isample_counter counter)
{
	return counters[counter];
}

void isample_tell(struct isample *s, enum isample_bit bit, bool set)
{
	s->known |= ISAMPLE_BIT(bit);
	if (set)
		s->bits |= ISAMPLE_BIT(bit);
	else
		s->bits &= ~ISAMPLE_BIT(bit);
}

void isample_count(struct isample *s, enum isample_counter counter, uint64_t value)
{
	s->known |= ISAMPLE_HAS(counter);
	s->counter[counter] = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

void isample_void(struct isample *s, enum isample_bit why)
{
	*s = (struct isample){ 0 };
	isample_tell(s, why, true);
}
