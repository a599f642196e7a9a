/* SPDX-License-Identifier: BSD-2-Clause */
/* Binary search in arrays that ascend. */
#ifndef DCPI_BASE_BOUND_H
#define DCPI_BASE_BOUND_H

#include <stddef.h>

/*
 * The first index below @nr for which @before is false, or @nr. @before is an expression about the
 * index @i, which this declares: true up to some index, and false from there on.
 */
#define BASE_BOUND(i, nr, before)                                                                  \
	__extension__({                                                                            \
		size_t lo_ = 0, hi_ = (nr);                                                        \
                                                                                                   \
		while (lo_ < hi_) {                                                                \
			size_t i = lo_ + (hi_ - lo_) / 2;                                          \
                                                                                                   \
			if (before)                                                                \
				lo_ = i + 1;                                                       \
			else                                                                       \
				hi_ = i;                                                           \
		}                                                                                  \
		lo_;                                                                               \
	})
/* The first of @nr elements of the array @v whose @member is above @key. @v may be NULL where @nr
 * is 0. */
#define BASE_UPPER_BOUND(v, nr, member, key) BASE_BOUND(i_, nr, (v)[i_].member <= (key))
/* The same for the first element whose @member is @key or above. */
#define BASE_LOWER_BOUND(v, nr, member, key) BASE_BOUND(i_, nr, (v)[i_].member < (key))

#endif
