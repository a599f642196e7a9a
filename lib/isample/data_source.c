/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data source and weight of a memory access, as Linux gives them for any vendor (Intel PEBS
 * above all), become bits and counters. Facts: union perf_mem_data_src, <linux/perf_event.h>.
 */
#include "isample.h"

/* Fields of the word: lowest bit and length. */
enum field {
	OP = 0x0005,	   /* at 0, 5 bits */
	LEVEL = 0x050e,	   /* at 5, 14 bits */
	SNOOP = 0x1305,	   /* at 19 */
	LOCK = 0x1802,	   /* at 24 */
	DTLB = 0x1a07,	   /* at 26 */
	LEVEL_NR = 0x2104, /* at 33 */
	REMOTE = 0x2501,   /* at 37 */
	SNOOP_X = 0x2602,  /* at 38 */
	BLOCK = 0x2803,	   /* at 40 */
	HOPS = 0x2b03,	   /* at 43 */
};

enum { NA = 1 };
enum { OP_LOAD = 2, OP_STORE = 4, OP_PREFETCH = 8 };
enum {
	LEVEL_HIT = 2,
	LEVEL_MISS = 4,
	LEVEL_L1 = 8,
	LEVEL_LFB = 0x10,
	LEVEL_L2 = 0x20,
	LEVEL_L3 = 0x40,
	LEVEL_LOCAL_RAM = 0x80,
	LEVEL_REMOTE_RAM = 0x300,
	LEVEL_REMOTE_CACHE = 0xc00,
	LEVEL_UNCACHED = 0x3000,
};
enum {
	NR_L1 = 1,
	NR_L2,
	NR_L3,
	NR_UNCACHED = 8,
	NR_CXL,
	NR_IO,
	NR_LFB = 0xc,
	NR_RAM,
	NR_PMEM,
	NR_NA
};
enum { SNOOP_HITM = 0x10 };
enum { DTLB_HIT = 2, DTLB_MISS = 4, DTLB_L1 = 8, DTLB_L2 = 0x10 };
enum { BLOCK_DATA = 2, BLOCK_ADDRESS = 4 };

static uint64_t get(uint64_t word, enum field f)
{
	return word >> (f >> 8) & ((UINT64_C(1) << (f & 0xff)) - 1);
}

/* Where the data were found: of a level that is farther all nearer ones missed. */
enum place { UNKNOWN, L1, FILL, L2, L3, CACHE, RAM, UNCACHED };

static enum place place_of_number(uint64_t nr)
{
	switch (nr) {
	case NR_L1:
		return L1;
	case NR_LFB:
		return FILL;
	case NR_L2:
		return L2;
	case NR_L3:
		return L3;
	case NR_RAM:
	case NR_PMEM:
	case NR_CXL:
		return RAM;
	case NR_UNCACHED:
	case NR_IO:
		return UNCACHED;
	default:
		return UNKNOWN;
	}
}

static enum place place_of_level(uint64_t level)
{
	if (!(level & LEVEL_HIT))
		return UNKNOWN;
	if (level & LEVEL_UNCACHED)
		return UNCACHED;
	if (level & LEVEL_REMOTE_CACHE)
		return CACHE;
	if (level & (LEVEL_LOCAL_RAM | LEVEL_REMOTE_RAM))
		return RAM;
	if (level & LEVEL_L3)
		return L3;
	if (level & LEVEL_L2)
		return L2;
	if (level & LEVEL_LFB)
		return FILL;
	return level & LEVEL_L1 ? L1 : UNKNOWN;
}

static void tell_place(struct isample *s, enum place place, bool remote, bool other)
{
	isample_tell(s, ISAMPLE_DCMISS, place != L1);
	/* A line that was on its way already: from where is not told. */
	if (place == FILL)
		return;
	isample_tell(s, ISAMPLE_UNCACHED, place == UNCACHED);
	if (place == UNCACHED)
		return;
	isample_tell(s, ISAMPLE_L2MISS, place > L2);
	isample_tell(s, ISAMPLE_LLCMISS, place > L3 || remote);
	isample_tell(s, ISAMPLE_MEMORY, place == RAM);
	isample_tell(s, ISAMPLE_REMOTE, remote);
	isample_tell(s, ISAMPLE_OTHERCACHE, place != RAM && other);
}

static void tell_snoop(struct isample *s, uint64_t snoop)
{
	if (snoop && !(snoop & NA))
		isample_tell(s, ISAMPLE_MODIFIED, snoop & SNOOP_HITM);
}

static void tell_level(struct isample *s, uint64_t source)
{
	uint64_t level = get(source, LEVEL), nr = get(source, LEVEL_NR), hops = get(source, HOPS);
	uint64_t snoop = get(source, SNOOP);
	enum place place = place_of_number(nr);
	bool remote =
		get(source, REMOTE) || hops > 1 || level & (LEVEL_REMOTE_RAM | LEVEL_REMOTE_CACHE);
	bool other;

	if (place == UNKNOWN)
		place = place_of_level(level);
	other = place == CACHE || hops || get(source, SNOOP_X) || remote ||
		(!(snoop & NA) && snoop & SNOOP_HITM);
	if (place != UNKNOWN)
		tell_place(s, place, remote, other);
	else if (level & LEVEL_MISS && level & LEVEL_L1)
		isample_tell(s, ISAMPLE_DCMISS, true);
	tell_snoop(s, snoop);
}

/* Where it is only told that one of two levels had it, the first one may have missed. */
static void tell_dtlb(struct isample *s, uint64_t dtlb)
{
	bool first = dtlb & DTLB_L1, second = dtlb & DTLB_L2;

	if (dtlb & NA)
		return;
	if (dtlb & DTLB_MISS) {
		isample_tell(s, ISAMPLE_DTBMISS, true);
		if (second || !first)
			isample_tell(s, ISAMPLE_DTB2MISS, true);
		return;
	}
	if (!(dtlb & DTLB_HIT) || !(first || second))
		return;
	isample_tell(s, ISAMPLE_DTB2MISS, false);
	if (first != second)
		isample_tell(s, ISAMPLE_DTBMISS, !first);
}

static void tell_block(struct isample *s, uint64_t block)
{
	if (block && !(block & NA))
		isample_tell(s, ISAMPLE_BLOCKED, block & (BLOCK_DATA | BLOCK_ADDRESS));
}

void isample_data_source(struct isample *s, uint64_t source)
{
	uint64_t op = get(source, OP), lock = get(source, LOCK);

	if (!source || !op || op & NA)
		return;
	isample_tell(s, ISAMPLE_LOAD, op & OP_LOAD);
	isample_tell(s, ISAMPLE_STORE, op & OP_STORE);
	isample_tell(s, ISAMPLE_PREFETCH, op & OP_PREFETCH);
	tell_level(s, source);
	tell_dtlb(s, get(source, DTLB));
	tell_block(s, get(source, BLOCK));
	if (lock && !(lock & NA))
		isample_tell(s, ISAMPLE_LOCKED, lock & 2);
}

void isample_weight(struct isample *s, uint64_t weight, bool split)
{
	uint64_t latency = split ? weight & UINT32_MAX : weight;

	if (latency)
		isample_count(s, ISAMPLE_LATENCY, latency);
	if (split && weight >> 32 & 0xffff)
		isample_count(s, ISAMPLE_INFLIGHT, weight >> 32 & 0xffff);
	if (split && weight >> 48)
		isample_count(s, ISAMPLE_RETDELAY, weight >> 48);
}
