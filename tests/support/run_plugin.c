/* SPDX-License-Identifier: BSD-2-Clause */
/* A module for run_work: the same code and layout under another name. */
unsigned long NAME(unsigned long turns);

__attribute__((noinline)) unsigned long NAME(unsigned long turns)
{
	volatile unsigned long sum = 0;

	for (unsigned long i = 0; i < turns; i++)
		sum += i ^ (sum >> 3);
	return sum;
}
