/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules from the states that are proven, and why there are none from the others. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "height_internal.h"

enum { STEPS_PER_BYTE = 64 };

int height_open(uint32_t machine, struct height **out)
{
	*out = NULL;
	if (machine != EM_X86_64)
		return -DCPI_EUNSUPPORTED;
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void height_close(struct height *h)
{
	if (!h)
		return;
	free(h->state);
	free(h->queued);
	free(h->queue);
	free(h->index);
	free(h->reason);
	free(h->rule);
	free(h->insns);
	free(h->step);
	free(h->entries);
	free(h);
}

void height_set_called(struct height *h, bool called)
{
	h->called = called;
}

void height_set_entries(struct height *h, const struct height_entry *entries, size_t nr)
{
	h->told = entries;
	h->nr_told = nr;
}

const char *height_reason_text(enum height_reason reason)
{
	static const char *const texts[HEIGHT_NR_REASONS] = {
		[HEIGHT_PROVEN] = "proven",
		[HEIGHT_NO_PROOF] = "no return and no prologue",
		[HEIGHT_OTHER_RETURN] = "returns elsewhere",
		[HEIGHT_FP_CHANGED] = "returns with another rbp",
		[HEIGHT_TAKES_CALLERS] = "takes its caller's stack",
		[HEIGHT_OVERLAP] = "instructions overlap",
		[HEIGHT_TOO_LARGE] = "too large",
		[HEIGHT_UNREACHED] = "not reached from the entry",
		[HEIGHT_UNKNOWN] = "stack pointer not known",
		[HEIGHT_AFTER_CALL] = "behind a call, no return follows",
		[HEIGHT_SIDE_ENTRY] = "reached from unreached code",
		[HEIGHT_NO_CODE] = "no instruction",
	};

	return reason < HEIGHT_NR_REASONS && texts[reason] ? texts[reason] : "?";
}

/* ---- rows ------------------------------------------------------------------------------------ */

struct rows {
	int (*row)(void *ctx, uint64_t addr, const struct unwind_rule *rule);
	void *ctx;
};

static int make_rows(const struct height *h, const struct rows *rows)
{
	static const struct unwind_rule none = { .how = UNWIND_NONE };
	uint16_t last = 0;
	int r = 0;

	for (size_t off = 0; r >= 0 && off < h->len; off++) {
		if (h->rule[off] == last)
			continue;
		last = h->rule[off];
		r = rows->row(rows->ctx, h->vaddr + off, last ? &h->rules.v[last] : &none);
	}
	return r < 0 || !last ? r : rows->row(rows->ctx, h->vaddr + h->len, &none);
}

static int reserve(struct height *h, size_t len)
{
	if (base_grow(&h->state, &h->cap_state, len, sizeof(*h->state)) < 0 ||
	    base_grow(&h->queued, &h->cap_queued, len, sizeof(*h->queued)) < 0 ||
	    base_grow(&h->queue, &h->cap_queue, len, sizeof(*h->queue)) < 0 ||
	    base_grow(&h->index, &h->cap_index, len, sizeof(*h->index)) < 0 ||
	    base_grow(&h->rule, &h->cap_rule, len, sizeof(*h->rule)) < 0 ||
	    base_grow(&h->reason, &h->cap_reason, len, sizeof(*h->reason)) < 0 ||
	    base_grow(&h->step, &h->cap_step, len, sizeof(*h->step)) < 0 ||
	    base_grow(&h->entries, &h->cap_entries, len, sizeof(*h->entries)) < 0)
		return -ENOMEM;
	return 0;
}

/* Find rules and reasons of a routine that was called, if any was. */
static int work_called(struct height *h)
{
	struct height_state entry;
	int r;

	r = height_parts(h);
	if (r)
		return r;
	height_state_entry(&entry);
	r = height_flow(h, 0, &entry);
	if (r == -DCPI_ELIMIT)
		h->refused = HEIGHT_TOO_LARGE;
	else if (r >= 0)
		height_prove(h);
	if (r < 0 && r != -DCPI_ELIMIT)
		return r;
	height_keep(h);
	r = height_trials(h);
	return r < 0 ? r : height_use(h);
}

/* Find rules and reasons. */
static int work(struct height *h)
{
	int r = reserve(h, h->len);

	if (r < 0)
		return r;
	memset(h->step, 0, h->len * sizeof(*h->step));
	height_flow_clear(h, 0, h->len);
	h->low = h->high = 0;
	h->listed = false;
	h->steps = (uint64_t)h->len * STEPS_PER_BYTE;
	return h->nr_told ? height_told(h) : work_called(h);
}

static void report_to(const struct height *h, size_t len, struct height_report *report)
{
	memset(report, 0, sizeof(*report));
	for (size_t off = 0; off < len; off++)
		report->bytes[height_reason_at(h, off)]++;
	report->proof = h->proof;
	report->refused = h->refused;
}

int height_rows(struct height *h, const uint8_t *code, size_t len, uint64_t vaddr,
		int (*row)(void *ctx, uint64_t addr, const struct unwind_rule *rule), void *ctx,
		struct height_report *report)
{
	const struct rows rows = { .row = row, .ctx = ctx };
	uint64_t end;
	int r = 0;

	if (base_add_overflow(vaddr, len, &end)) {
		height_set_entries(h, NULL, 0);
		return -EINVAL;
	}
	h->code = code;
	h->len = len <= HEIGHT_MAX_LEN ? len : 0;
	h->vaddr = vaddr;
	h->nr = 0;
	h->proof = HEIGHT_BY_NOTHING;
	h->refused = h->len == len ? HEIGHT_PROVEN : HEIGHT_TOO_LARGE;
	if (h->len)
		r = work(h);
	height_set_entries(h, NULL, 0);
	if (r >= 0)
		r = make_rows(h, &rows);
	if (r >= 0 && report)
		report_to(h, len, report);
	return r < 0 ? r : 0;
}

enum height_reason height_reason_at(const struct height *h, size_t off)
{
	if (off < h->len)
		return (enum height_reason)h->reason[off];
	return h->refused != HEIGHT_PROVEN ? (enum height_reason)h->refused : HEIGHT_UNREACHED;
}
