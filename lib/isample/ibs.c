/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of AMD's instruction-based sampling are decoded here. Facts: AMD64 Architecture
 * Programmer's Manual, volume 2, chapter 13, and the processor programming references.
 */
#include <string.h>

#include "isample.h"

/* Capabilities (CPUID Fn8000_001B EAX), as far as they say how to read the registers. */
enum { CAP_FETCH_EXT = 1 << 9, CAP_ZEN4 = 1 << 11 };

struct registers {
	uint32_t caps;
	uint64_t v[16];
	size_t nr;
};

static int take(struct registers *r, const void *raw, size_t len, size_t least)
{
	*r = (struct registers){ 0 };
	if (len < sizeof(r->caps) + least * 8)
		return -DCPI_EFORMAT;
	memcpy(&r->caps, raw, sizeof(r->caps));
	len = (len - sizeof(r->caps)) / 8;
	r->nr = len < sizeof(r->v) / 8 ? len : sizeof(r->v) / 8;
	memcpy(r->v, (const uint8_t *)raw + sizeof(r->caps), r->nr * 8);
	return 0;
}

static bool bit(uint64_t word, unsigned int nr)
{
	return word >> nr & 1;
}

static uint64_t field(uint64_t word, unsigned int from, unsigned int bits)
{
	return word >> from & ((UINT64_C(1) << bits) - 1);
}

/* ---- operations ------------------------------------------------------------------------------ */

enum { OP_CTL, OP_RIP, OP_DATA, OP_DATA2, OP_DATA3, OP_LIN_AD, OP_PHYS_AD, OP_LEAST };

static void tell_branch(struct isample *s, uint64_t data)
{
	bool branch = bit(data, 37);

	isample_tell(s, ISAMPLE_BRANCH, branch);
	isample_tell(s, ISAMPLE_MICROCODE, bit(data, 40));
	isample_tell(s, ISAMPLE_TAKEN, branch && bit(data, 35));
	isample_tell(s, ISAMPLE_MISPREDICT, branch && bit(data, 36));
	isample_tell(s, ISAMPLE_RETURN, branch && bit(data, 34));
}

static void tell_source(struct isample *s, bool other, bool memory, bool remote)
{
	isample_tell(s, ISAMPLE_OTHERCACHE, other);
	isample_tell(s, ISAMPLE_MEMORY, memory);
	isample_tell(s, ISAMPLE_REMOTE, remote);
	isample_tell(s, ISAMPLE_LLCMISS, other || memory || remote);
}

/* The source of a load's data, where its number is one that the manuals name. */
static void tell_north(struct isample *s, uint64_t data2, bool zen4)
{
	uint64_t source = field(data2, 0, 3) | (zen4 ? field(data2, 6, 2) << 3 : 0);
	bool remote = bit(data2, 4);

	if (source == 1) /* a cache of its own cores */
		tell_source(s, false, false, false);
	else if (source == 2 || (zen4 && source == 5)) /* another core's, near and far */
		tell_source(s, true, false, remote);
	else if (source == 3 || (zen4 && (source == 6 || source == 8))) /* memory of any kind */
		tell_source(s, false, true, remote);
	else if (zen4 && source == 12) /* another agent's */
		tell_source(s, false, true, true);
	if (source == 2 || (zen4 && source == 5))
		isample_tell(s, ISAMPLE_MODIFIED, !bit(data2, 5));
}

/* The bits of data accesses mean something of loads and stores alone. */
static void tell_access(struct isample *s, uint64_t data2, uint64_t data3, bool zen4)
{
	bool load = bit(data3, 0), miss = bit(data3, 7), l2miss = bit(data3, 20);

	isample_tell(s, ISAMPLE_DCMISS, miss);
	isample_tell(s, ISAMPLE_DTBMISS, bit(data3, 2));
	isample_tell(s, ISAMPLE_DTB2MISS, bit(data3, 2) && bit(data3, 3));
	isample_tell(s, ISAMPLE_UNALIGNED, bit(data3, 8));
	isample_tell(s, ISAMPLE_UNCACHED, bit(data3, 13) || bit(data3, 14));
	isample_tell(s, ISAMPLE_LOCKED, bit(data3, 15));
	isample_tell(s, ISAMPLE_PREFETCH, bit(data3, 21));
	isample_count(s, ISAMPLE_XLAT, field(data3, 48, 16));
	if (!load)
		return;
	isample_tell(s, ISAMPLE_L2MISS, miss && l2miss);
	if (miss)
		isample_count(s, ISAMPLE_LATENCY, field(data3, 32, 16));
	if (miss && l2miss)
		tell_north(s, data2, zen4);
	else
		tell_source(s, false, false, false);
}

/* Only operations that retire are told of. */
int isample_ibs_op(struct isample *s, const void *raw, size_t len)
{
	struct registers r;
	uint64_t data, data3;

	if (take(&r, raw, len, OP_LEAST) < 0)
		return -DCPI_EFORMAT;
	data = r.v[OP_DATA];
	data3 = r.v[OP_DATA3];
	if (bit(data, 38)) { /* RipInvalid */
		isample_void(s, ISAMPLE_INEXACT);
		return 0;
	}
	isample_tell(s, ISAMPLE_RETIRED, true);
	isample_tell(s, ISAMPLE_VALID, true);
	isample_tell(s, ISAMPLE_FETCH, false);
	isample_tell(s, ISAMPLE_LOAD, bit(data3, 0));
	isample_tell(s, ISAMPLE_STORE, bit(data3, 1));
	isample_count(s, ISAMPLE_COMPLETED, field(data, 0, 16));
	isample_count(s, ISAMPLE_INFLIGHT, field(data, 16, 16));
	tell_branch(s, data);
	if (data3 & 3)
		tell_access(s, r.v[OP_DATA2], data3, r.caps & CAP_ZEN4);
	return 0;
}

/* ---- fetches --------------------------------------------------------------------------------- */

enum { FETCH_CTL, FETCH_LIN_AD, FETCH_PHYS_AD, FETCH_LEAST, FETCH_EXT = FETCH_LEAST };

int isample_ibs_fetch(struct isample *s, const void *raw, size_t len)
{
	struct registers r;
	uint64_t ctl;

	if (take(&r, raw, len, FETCH_LEAST) < 0)
		return -DCPI_EFORMAT;
	ctl = r.v[FETCH_CTL];
	isample_tell(s, ISAMPLE_FETCH, true);
	isample_tell(s, ISAMPLE_FETCHED, bit(ctl, 50));
	isample_tell(s, ISAMPLE_ICMISS, bit(ctl, 51));
	isample_tell(s, ISAMPLE_ITBMISS, bit(ctl, 55));
	isample_tell(s, ISAMPLE_ITB2MISS, bit(ctl, 55) && bit(ctl, 56));
	isample_tell(s, ISAMPLE_IC2MISS, bit(ctl, 51) && bit(ctl, 58));
	if (r.caps & CAP_ZEN4)
		isample_tell(s, ISAMPLE_IC3MISS, bit(ctl, 51) && bit(ctl, 61));
	isample_count(s, ISAMPLE_FETCHLAT, field(ctl, 32, 16));
	if (r.caps & CAP_FETCH_EXT && r.nr > FETCH_EXT)
		isample_count(s, ISAMPLE_ITBLAT, field(r.v[FETCH_EXT], 0, 16));
	return 0;
}
