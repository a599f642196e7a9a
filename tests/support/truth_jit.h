/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code for JITs whose samples are judged one by one. A routine has a slot number. Half of its time
 * it works in its first bytes, where all routines do the same; half in bytes of its own, which its
 * slot gives. So a sample there that was charged to another slot's routine is known to be wrong,
 * and its bytes and lines are known to whoever finds it (dyn_truth.c).
 *
 * The name of a routine ends with "_SLOT". Its lines: truth_line.
 */
#ifndef TESTS_TRUTH_JIT_H
#define TESTS_TRUTH_JIT_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum {
	TRUTH_HEAD = 16, /* bytes where all routines work */
	TRUTH_OWN = 16,	 /* bytes of a slot */
	TRUTH_SLOTS = 63,
	TRUTH_BLOCKS = 64,
	TRUTH_BLOCK = TRUTH_HEAD + TRUTH_SLOTS * TRUTH_OWN, /* length of each routine */
};

/* The bytes of slot's routine; they run anywhere. */
void truth_code(unsigned char out[TRUTH_BLOCK], int slot);
/* The source line of the byte at @off. */
static inline unsigned int truth_line(int slot, size_t off)
{
	return 1000 + 10 * (unsigned int)slot + (off < TRUTH_HEAD ? 1 : 2);
}
/* The slot that a routine's name ends with, or -1. */
int truth_slot(const char *name);

/* Where the code of all these programs is, so that samples there are known to be theirs whatever
 * the daemon takes them for (truth.sh). */
#define TRUTH_BASE 0x200000000000ull
/* Memory there that can be written and run; NULL. */
unsigned char *truth_map(size_t len);
/* Write slot's routine to @code. */
void truth_put(unsigned char *code, int slot);
/* Tell of it as "PREFIX_SLOT"; @handle may be NULL. As dbgdyn_register. */
int truth_register(uint64_t context, const unsigned char *code, const char *prefix, int slot,
		   uint64_t *handle);
/* Both. */
int truth_make(uint64_t context, unsigned char *code, const char *prefix, int slot,
	       uint64_t *handle);
/*
 * Run it for @seconds by @clock, in pieces of random length of some ten microseconds. Returns how
 * long it was. A host that takes a virtual machine's CPU away lets its clocks and CPU time go on,
 * and one sample comes of it however long it was: so a piece counts for a sample's period at most.
 */
double truth_run(const unsigned char *code, clockid_t clock, double seconds, uint64_t *random);

/*
 * Fill TRUTH_BLOCKS blocks, running each routine as soon as it is told of; then go on in any of
 * them, and now and then put another one there. Adds to @ran the seconds of CPU time of each slot.
 */
void truth_live(uint64_t context, unsigned char *code, const char *prefix, double seconds,
		double ran[TRUTH_SLOTS], uint64_t *random);
/* "PREFIX_SLOT SECONDS" lines of all that ran. */
void truth_print(const char *prefix, const double ran[TRUTH_SLOTS]);

double truth_clock(clockid_t clock);
/* The next number of a sequence; *@random must not be 0. */
uint64_t truth_random(uint64_t *random);

#endif
