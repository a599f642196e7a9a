/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Instruction samples of the kernel's records: where a sample has what the hardware told of its
 * instruction, behind the fields that every sample has.
 */
#include <string.h>

#include "perf.h"

/* ---- fields ---------------------------------------------------------------------------------- */

/* Newer than the headers that this is built with. */
#define BRANCH_COUNTERS (UINT64_C(1) << 19)

static bool skip_words(struct perf_bytes *b, uint64_t nr)
{
	return nr <= b->len / 8 && perf_skip(b, (size_t)nr * 8);
}

static bool skip_counted(struct perf_bytes *b, uint64_t before, uint64_t words)
{
	uint64_t nr;

	return perf_take(b, &nr, sizeof(nr)) && nr <= b->len / 8 &&
	       skip_words(b, before + nr * words);
}

static bool skip_values(struct perf_bytes *b, uint64_t format)
{
	uint64_t times = !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
			 !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	uint64_t each = 1 + !!(format & PERF_FORMAT_ID) + !!(format & PERF_FORMAT_LOST);

	return format & PERF_FORMAT_GROUP ? skip_counted(b, times, each)
					  : skip_words(b, times + each);
}

static bool skip_branches(struct perf_bytes *b, const struct perf_event_attr *a)
{
	uint64_t nr;

	if (!perf_take(b, &nr, sizeof(nr)) || nr > b->len / 8)
		return false;
	return skip_words(b, !!(a->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX) + 3 * nr +
				     (a->branch_sample_type & BRANCH_COUNTERS ? nr : 0));
}

static bool skip_registers(struct perf_bytes *b, uint64_t mask)
{
	uint64_t abi;

	return perf_take(b, &abi, sizeof(abi)) &&
	       (!abi || skip_words(b, (uint64_t)__builtin_popcountll(mask)));
}

static bool skip_stack(struct perf_bytes *b)
{
	uint64_t len;

	return perf_take(b, &len, sizeof(len)) &&
	       (!len || (len <= b->len && perf_skip(b, (size_t)len) && skip_words(b, 1)));
}

/* Its length is in the record, padded so that what follows is aligned. */
static bool take_raw(struct perf_bytes *b, struct perf_bytes *raw)
{
	uint32_t len;

	if (!perf_take(b, &len, sizeof(len)) || len > b->len)
		return false;
	*raw = (struct perf_bytes){ b->at, len };
	return perf_skip(b, len);
}

struct fields {
	struct perf_bytes raw;
	uint64_t weight, source;
};

/* Fields in the order in which the kernel has them. */
static bool take_fields(const struct perf_event_attr *a, struct perf_bytes b, struct fields *out)
{
	uint64_t type = a->sample_type;
	bool good = true;

	*out = (struct fields){ 0 };
	if (type & PERF_SAMPLE_READ)
		good = skip_values(&b, a->read_format);
	if (good && type & PERF_SAMPLE_CALLCHAIN)
		good = skip_counted(&b, 0, 1);
	if (good && type & PERF_SAMPLE_RAW)
		good = take_raw(&b, &out->raw);
	if (good && type & PERF_SAMPLE_BRANCH_STACK)
		good = skip_branches(&b, a);
	if (good && type & PERF_SAMPLE_REGS_USER)
		good = skip_registers(&b, a->sample_regs_user);
	if (good && type & PERF_SAMPLE_STACK_USER)
		good = skip_stack(&b);
	if (good && type & PERF_SAMPLE_WEIGHT_TYPE)
		good = perf_take(&b, &out->weight, sizeof(out->weight));
	if (good && type & PERF_SAMPLE_DATA_SRC)
		good = perf_take(&b, &out->source, sizeof(out->source));
	return good;
}

static bool is_ibs(enum event_hardware hw)
{
	return hw == EVENT_HW_IBS_OP || hw == EVENT_HW_IBS_FETCH;
}

static bool tells(enum event_hardware hw, uint64_t type)
{
	return type & (PERF_SAMPLE_WEIGHT_TYPE | PERF_SAMPLE_DATA_SRC) ||
	       (is_ibs(hw) && type & PERF_SAMPLE_RAW);
}

/* Facts: the folders "format" of both PMUs in sysfs. */
#define IBS_L3MISSONLY	(UINT64_C(1) << 16)
#define IBS_CNT_CTL	(UINT64_C(1) << 19) /* operations are counted, and not cycles */
#define IBS_LDLAT	UINT64_C(0xfff)	    /* of config1: only loads that take so long */
#define SPE_FILTERS	(~UINT64_C(0) << 32)
#define SPE_MIN_LATENCY UINT64_C(0xfff) /* of config2 */

static bool counts_all_ops(const struct perf_event_attr *a)
{
	return a->config & IBS_CNT_CTL && !(a->config & IBS_L3MISSONLY) &&
	       !(a->config1 & IBS_LDLAT);
}

static bool filters_nothing(const struct perf_event_attr *a)
{
	return !(a->config & SPE_FILTERS) && !a->config1 && !(a->config2 & SPE_MIN_LATENCY);
}

void perf_insn_chosen(enum event_hardware hw, const struct perf_event_attr *a, struct isample *out)
{
	if (out->known & (ISAMPLE_BIT(ISAMPLE_INEXACT) | ISAMPLE_BIT(ISAMPLE_UNREADABLE)))
		return;
	if (hw == EVENT_HW_IBS_OP)
		isample_tell(out, ISAMPLE_BYCOUNT, counts_all_ops(a));
	else if (hw == EVENT_HW_SPE)
		isample_tell(out, ISAMPLE_BYCOUNT, filters_nothing(a));
}

static int decode_raw(enum event_hardware hw, const struct fields *f, struct isample *out)
{
	return hw == EVENT_HW_IBS_OP ? isample_ibs_op(out, f->raw.at, f->raw.len)
				     : isample_ibs_fetch(out, f->raw.at, f->raw.len);
}

/* A precise event is of an instruction that retired. */
static void decode_access(uint64_t type, const struct fields *f, struct isample *out)
{
	isample_data_source(out, f->source);
	isample_weight(out, f->weight, type & PERF_SAMPLE_WEIGHT_STRUCT);
	if (!out->known)
		return;
	isample_tell(out, ISAMPLE_RETIRED, true);
	isample_tell(out, ISAMPLE_VALID, true);
	isample_tell(out, ISAMPLE_FETCH, false);
}

/* Nothing more is told of a sample whose address is another instruction's. */
static void check_exact(enum event_hardware hw, uint16_t misc, struct isample *out)
{
	if (out->known && !(misc & PERF_RECORD_MISC_EXACT_IP) &&
	    !(out->bits & ISAMPLE_BIT(ISAMPLE_UNREADABLE)) && hw != EVENT_HW_IBS_FETCH)
		isample_void(out, ISAMPLE_INEXACT);
}

void perf_insn_parse(enum event_hardware hw, const struct perf_event_attr *a,
		     const struct perf_bytes *rest, uint16_t misc, struct isample *out)
{
	struct fields f;

	*out = (struct isample){ 0 };
	if (!tells(hw, a->sample_type))
		return;
	if (!take_fields(a, *rest, &f)) {
		isample_void(out, ISAMPLE_UNREADABLE);
		return;
	}
	if (!is_ibs(hw) || !(a->sample_type & PERF_SAMPLE_RAW))
		decode_access(a->sample_type, &f, out);
	else if (decode_raw(hw, &f, out) < 0)
		isample_void(out, ISAMPLE_UNREADABLE);
	check_exact(hw, misc, out);
	if (out->known)
		perf_insn_chosen(hw, a, out);
}
