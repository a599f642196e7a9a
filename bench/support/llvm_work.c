/* SPDX-License-Identifier: BSD-2-Clause */
/* A fixed amount of work for a JIT of LLVM's: 64 functions, all of them hot. */
#include <stdint.h>

#define ONE(i)                                                                                     \
	__attribute__((noinline)) static uint64_t made_##i(uint32_t n)                             \
	{                                                                                          \
		uint64_t x = i + 1;                                                                \
                                                                                                   \
		for (uint32_t k = 0; k < n; k++)                                                   \
			x = (x * (48271 + 2 * i) + k) % 2147483647;                                \
		return x;                                                                          \
	}
#define FOUR(X, i) X(i##0) X(i##1) X(i##2) X(i##3)
/* A list that clang-format never ends with. */
/* clang-format off */
#define ALL(X)                                                                                     \
	FOUR(X, 1) FOUR(X, 2) FOUR(X, 3) FOUR(X, 4) FOUR(X, 5) FOUR(X, 6) FOUR(X, 7) FOUR(X, 8)    \
	FOUR(X, 11) FOUR(X, 12) FOUR(X, 13) FOUR(X, 14) FOUR(X, 15) FOUR(X, 16) FOUR(X, 17)        \
	FOUR(X, 18)
/* clang-format on */

ALL(ONE)

int main(void)
{
	uint64_t sum = 0;

	for (uint32_t round = 0; round < 28; round++) {
#define CALL(i) sum ^= made_##i(400000 + round);
		ALL(CALL)
	}
	return sum == 5;
}
