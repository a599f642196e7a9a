/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Instruction samples of a perf.data file: where a sample has what the hardware told of its
 * instruction, and which of the file's events are of hardware that tells.
 */
#include <stdlib.h>
#include <string.h>

#include "perfdata_internal.h"

/* ---- hardware -------------------------------------------------------------------------------- */

static enum perfdata_pmu pmu_of_name(const char *name)
{
	if (!strncmp(name, "ibs_op", 6))
		return PERFDATA_PMU_IBS_OP;
	if (!strncmp(name, "ibs_fetch", 9))
		return PERFDATA_PMU_IBS_FETCH;
	return !strncmp(name, "arm_spe", 7) ? PERFDATA_PMU_SPE : PERFDATA_PMU_OTHER;
}

int perfdata_pmus_parse(struct perfdata_pmus *t, struct perfdata_bytes *b)
{
	uint32_t nr, type;

	if (!perfdata_take(b, &nr, sizeof(nr)))
		return -DCPI_EFORMAT;
	for (; nr; nr--) {
		const char *name;
		enum perfdata_pmu pmu;

		if (!perfdata_take(b, &type, sizeof(type)) || !(name = perfdata_take_string(b)))
			return -DCPI_EFORMAT;
		pmu = pmu_of_name(name);
		if (pmu != PERFDATA_PMU_OTHER && t->nr < PERFDATA_NR_PMUS) {
			t->type[t->nr] = type;
			t->pmu[t->nr++] = pmu;
		}
	}
	return 0;
}

void perfdata_pmus_settle(const struct perfdata_pmus *t, struct perfdata_events *e)
{
	for (size_t i = 0; i < e->nr; i++) {
		struct perfdata_event *ev = &e->v[i];

		ev->pmu = pmu_of_name(ev->name);
		for (size_t j = 0; j < t->nr; j++)
			if (t->type[j] == ev->attr.type)
				ev->pmu = t->pmu[j];
	}
}

struct perfdata_event *perfdata_pmu_event(const struct perfdata_events *e, enum perfdata_pmu pmu)
{
	for (size_t i = 0; i < e->nr; i++)
		if (e->v[i].pmu == pmu && e->v[i].index >= 0)
			return &e->v[i];
	return NULL;
}

/* ---- fields behind the period ---------------------------------------------------------------- */

/* Newer than the headers that this is built with. */
#define BRANCH_COUNTERS (UINT64_C(1) << 19)

static bool skip_words(struct perfdata_bytes *b, uint64_t nr)
{
	return nr <= b->len / 8 && perfdata_skip(b, (size_t)nr * 8);
}

static bool skip_counted(struct perfdata_bytes *b, uint64_t before, uint64_t words)
{
	uint64_t nr;

	return perfdata_take(b, &nr, sizeof(nr)) && nr <= b->len / 8 &&
	       skip_words(b, before + nr * words);
}

static bool skip_values(struct perfdata_bytes *b, uint64_t format)
{
	uint64_t times = !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
			 !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	uint64_t each = 1 + !!(format & PERF_FORMAT_ID) + !!(format & PERF_FORMAT_LOST);

	return format & PERF_FORMAT_GROUP ? skip_counted(b, times, each)
					  : skip_words(b, times + each);
}

static bool skip_branches(struct perfdata_bytes *b, const struct perf_event_attr *a)
{
	uint64_t nr;

	if (!perfdata_take(b, &nr, sizeof(nr)) || nr > b->len / 8)
		return false;
	return skip_words(b, !!(a->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX) + 3 * nr +
				     (a->branch_sample_type & BRANCH_COUNTERS ? nr : 0));
}

static bool skip_registers(struct perfdata_bytes *b, uint64_t mask)
{
	uint64_t abi;

	return perfdata_take(b, &abi, sizeof(abi)) &&
	       (!abi || skip_words(b, (uint64_t)__builtin_popcountll(mask)));
}

static bool skip_stack(struct perfdata_bytes *b)
{
	uint64_t len;

	return perfdata_take(b, &len, sizeof(len)) &&
	       (!len || (len <= b->len && perfdata_skip(b, (size_t)len) && skip_words(b, 1)));
}

/* Its length is in the record, padded so that what follows is aligned. */
static bool take_raw(struct perfdata_bytes *b, struct perfdata_bytes *raw)
{
	uint32_t len;

	if (!perfdata_take(b, &len, sizeof(len)) || len > b->len)
		return false;
	*raw = (struct perfdata_bytes){ b->at, len };
	return perfdata_skip(b, len);
}

struct fields {
	struct perfdata_bytes raw;
	uint64_t weight, source;
};

/* Fields in the order in which the kernel has them. */
static bool take_fields(const struct perf_event_attr *a, struct perfdata_bytes b,
			struct fields *out)
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
		good = perfdata_take(&b, &out->weight, sizeof(out->weight));
	if (good && type & PERF_SAMPLE_DATA_SRC)
		good = perfdata_take(&b, &out->source, sizeof(out->source));
	return good;
}

static bool is_ibs(const struct perfdata_event *ev)
{
	return ev->pmu == PERFDATA_PMU_IBS_OP || ev->pmu == PERFDATA_PMU_IBS_FETCH;
}

static bool tells(const struct perfdata_event *ev)
{
	uint64_t type = ev->attr.sample_type;

	return type & (PERF_SAMPLE_WEIGHT_TYPE | PERF_SAMPLE_DATA_SRC) ||
	       (is_ibs(ev) && type & PERF_SAMPLE_RAW);
}

static int decode_raw(const struct perfdata_event *ev, const struct fields *f, struct isample *out)
{
	return ev->pmu == PERFDATA_PMU_IBS_OP ? isample_ibs_op(out, f->raw.at, f->raw.len)
					      : isample_ibs_fetch(out, f->raw.at, f->raw.len);
}

/* A precise event is of an instruction that retired. */
static void decode_access(const struct perfdata_event *ev, const struct fields *f,
			  struct isample *out)
{
	isample_data_source(out, f->source);
	isample_weight(out, f->weight, ev->attr.sample_type & PERF_SAMPLE_WEIGHT_STRUCT);
	if (!out->known)
		return;
	isample_tell(out, ISAMPLE_RETIRED, true);
	isample_tell(out, ISAMPLE_VALID, true);
	isample_tell(out, ISAMPLE_FETCH, false);
}

void perfdata_insn_parse(const struct perfdata_event *ev, const struct perfdata_bytes *rest,
			 uint16_t misc, struct isample *out)
{
	struct fields f;

	*out = (struct isample){ 0 };
	if (!tells(ev))
		return;
	if (!take_fields(&ev->attr, *rest, &f)) {
		isample_void(out, ISAMPLE_UNREADABLE);
		return;
	}
	if (!is_ibs(ev) || !(ev->attr.sample_type & PERF_SAMPLE_RAW))
		decode_access(ev, &f, out);
	else if (decode_raw(ev, &f, out) < 0)
		isample_void(out, ISAMPLE_UNREADABLE);
	if (out->known && !(misc & PERF_RECORD_MISC_EXACT_IP) &&
	    !(out->bits & ISAMPLE_BIT(ISAMPLE_UNREADABLE)) && ev->pmu != PERFDATA_PMU_IBS_FETCH)
		isample_void(out, ISAMPLE_INEXACT);
}
