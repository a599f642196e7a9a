/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counting table as user space has it: mapped, an array of elements. Reading and clearing for
 * the source (and whoever counts without a kernel: tests/support/restream).
 */
#ifndef DCPI_BPF_TABLE_H
#define DCPI_BPF_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Constants for tables in which no kernel counts. */
static const uint64_t count_mix[] __attribute__((unused)) = {
	0x9e3779b97f4a7c15,
	0xbf58476d1ce4e5b9,
	0x94d049bb133111eb,
	0xd6e8feb86659fd93,
};

#define COUNT_TABLE	       union count_bucket *
#define COUNT_AT(table, index) (&(table)[index])
#define COUNT_MIX(i)	       count_mix[i]

#include "kernel/count_table.h"

/*
 * Every entry that holds counts, in no order. @table is nobody's but the caller's now.
 */
void count_walk(const union count_bucket *table, const struct count_shape *s,
		void (*fn)(void *ctx, const struct count_entry *e), void *ctx);
/* Empty, head and all. */
void count_clear(union count_bucket *table, const struct count_shape *s);

/* One sample from its reception on, as the program does it. True: a new key. */
bool count_sample(union count_bucket *table, const struct count_shape *s, const struct count_key *k,
		  bool single, uint64_t now_ns);

#endif
