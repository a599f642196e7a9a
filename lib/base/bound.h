/* SPDX-License-Identifier: BSD-2-Clause */
/* Binary search in arrays that ascend by a member of type uint64_t. */
#ifndef DCPI_BASE_BOUND_H
#define DCPI_BASE_BOUND_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The index of the first of @nr elements whose key is above @key, or @nr. An element has @size
 * bytes, and its key is @at bytes behind its start. Use BASE_UPPER_BOUND, which fills these in. */
static inline size_t base_upper_bound(const void *v, size_t nr, size_t size, size_t at,
				      uint64_t key)
{
	size_t lo = 0, hi = nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		uint64_t here;

		memcpy(&here, (const char *)v + mid * size + at, sizeof(here));
		if (here <= key)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The index of the first element whose key is @key or above, or @nr. */
static inline size_t base_lower_bound(const void *v, size_t nr, size_t size, size_t at,
				      uint64_t key)
{
	return key ? base_upper_bound(v, nr, size, at, key - 1) : 0;
}

/* Only a member of type uint64_t is taken; @v may be NULL where @nr is 0. */
#define BASE_KEY_AT(v, member) _Generic((v)->member, uint64_t : offsetof(__typeof__(*(v)), member))
/* The index of the first of @nr elements of the array @v whose @member is above @key, or @nr. */
#define BASE_UPPER_BOUND(v, nr, member, key)                                                       \
	base_upper_bound(v, nr, sizeof(*(v)), BASE_KEY_AT(v, member), key)
/* The same for the first element whose @member is @key or above. */
#define BASE_LOWER_BOUND(v, nr, member, key)                                                       \
	base_lower_bound(v, nr, sizeof(*(v)), BASE_KEY_AT(v, member), key)

#endif
