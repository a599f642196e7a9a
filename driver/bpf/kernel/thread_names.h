/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of threads by numbers: an open-addressed table that all CPUs share. The BPF program gives
 * numbers in the interrupt, the daemon reads names, and tests do both in user space.
 *
 * An element is the 16 bytes of a name in two words. Each word is written once, from 0, by compare
 * and exchange; whoever fails to write a word reads the one that stands there. So a name is found
 * only where both of its words stand, whatever else is being written, and it has one number:
 * threads that look for it pass the same elements in the same order.
 *
 * The table has two banks. Programs give numbers of one of them, and which one they read with the
 * set of tables in which they count (sample.h). The daemon clears the other one before it is used.
 *
 * Whoever includes this has included count_table.h.
 */
#ifndef DCPI_THREAD_NAMES_H
#define DCPI_THREAD_NAMES_H

enum {
	THREAD_NR_NAMES = 16384, /* 2 to the power of COUNT_THREAD_BITS; number 0 is no name */
	THREAD_BANK = THREAD_NR_NAMES / 2,
	THREAD_NR_PROBES = 16, /* elements at which a name may stand */
	THREAD_NAME_LEN = 16,  /* with its NUL */
};

_Static_assert(THREAD_NR_NAMES == 1 << COUNT_THREAD_BITS, "numbers of names");

/* The last byte, that of a NUL, tells that the second word was written. */
#define THREAD_WRITTEN (UINT64_C(1) << 56)

struct thread_name {
	uint64_t word[2];
};

_Static_assert(sizeof(struct thread_name) == THREAD_NAME_LEN, "thread_name");

/* Bits of a word, of which the lowest one is that of its first NUL; 0: it has none. */
COUNT_INLINE uint64_t thread_nuls(uint64_t word)
{
	return (word - 0x0101010101010101ull) & ~word & 0x8080808080808080ull;
}

/* The bytes before the first NUL. */
COUNT_INLINE uint64_t thread_text(uint64_t word, uint64_t nuls)
{
	return word & (((nuls & -nuls) >> 7) - 1);
}

/*
 * @name has only its text: what stands behind a NUL is of an earlier name. It has no branches, each
 * of which would double what the verifier looks at.
 */
COUNT_INLINE void thread_name_trim(struct thread_name *name)
{
	uint64_t nuls = thread_nuls(name->word[0]), ended = (nuls | -nuls) >> 63;

	__asm__ volatile("" : "+r"(ended));
	name->word[0] = thread_text(name->word[0], nuls);
	name->word[1] &= (ended - 1) & (THREAD_WRITTEN - 1);
	name->word[1] = thread_text(name->word[1], thread_nuls(name->word[1])) | THREAD_WRITTEN;
}

/* The word that stands at @at from now on: @word, or another one. */
COUNT_INLINE uint64_t thread_word(uint64_t *at, uint64_t word)
{
	uint64_t there = *(volatile uint64_t *)at;

	if (!there)
		there = __sync_val_compare_and_swap(at, 0, word);
	return there ? there : word;
}

/* The number of @name, which is trimmed, in @bank (0 or 1); 0: it is empty, or has no room. */
COUNT_INLINE uint32_t thread_find(struct thread_name *names, uint32_t bank,
				  const struct thread_name *name)
{
	uint64_t x = name->word[0] * COUNT_MIX(0) + name->word[1] * COUNT_MIX(1);
	uint32_t at = (uint32_t)(x >> 50), number;

	if (!name->word[0])
		return 0;
#pragma GCC unroll 1
	for (uint32_t i = 0; i < THREAD_NR_PROBES; i++, at++) {
		number = (bank & 1) * THREAD_BANK + at % THREAD_BANK;
		/* Compilers make this an OR, whose bounds Linux 6.1's verifier does not follow. */
		__asm__ volatile("" : "+r"(number));
		number %= THREAD_NR_NAMES;
		if (number && thread_word(&names[number].word[0], name->word[0]) == name->word[0] &&
		    thread_word(&names[number].word[1], name->word[1]) == name->word[1])
			return number;
	}
	return 0;
}

#endif
