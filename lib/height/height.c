/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules from the states that are proven, and why there are none from the others. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "height_internal.h"

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
	free(h->insns);
	free(h);
}

void height_set_called(struct height *h, bool called)
{
	h->called = called;
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

/* ---- a rule ---------------------------------------------------------------------------------- */

static bool usable(const struct height_value *v, enum height_kind kind, bool verified)
{
	return v->kind == kind && (!v->assumed || verified);
}

/* Where a register of the caller is: in memory, still in the register, or nowhere. */
static uint8_t place(const struct height_value *saved, const struct height_value *reg,
		     enum height_kind kind, bool verified, int16_t *words)
{
	*words = 0;
	if (usable(saved, HEIGHT_STACK, verified) && saved->off / 8 >= INT16_MIN) {
		*words = (int16_t)(saved->off / 8);
		return UNWIND_AT_CFA;
	}
	return usable(reg, kind, verified) ? UNWIND_AT_SAME : UNWIND_AT_LOST;
}

static enum height_reason rule_of(const struct height *h, const struct height_insn *i,
				  struct unwind_rule *rule)
{
	const struct height_state *s = height_states_at(&h->states, i->state);
	const struct height_value *sp = &s->reg[HEIGHT_SP], *fp = &s->reg[HEIGHT_FP];
	bool verified = i->found & HEIGHT_VERIFIED;
	bool by_fp = usable(fp, HEIGHT_STACK, verified);

	*rule = (struct unwind_rule){ .how = UNWIND_NONE };
	if (i->flow == HEIGHT_BAD)
		return HEIGHT_NO_CODE;
	if (i->found & HEIGHT_FROM_SIDE)
		return HEIGHT_SIDE_ENTRY;
	if (i->found & HEIGHT_CALLED_BEFORE)
		return HEIGHT_AFTER_CALL;
	if (!by_fp && !usable(sp, HEIGHT_STACK, verified))
		return sp->kind == HEIGHT_STACK || fp->kind == HEIGHT_STACK ? HEIGHT_AFTER_CALL
									    : HEIGHT_UNKNOWN;
	rule->how = UNWIND_CFA;
	rule->base = by_fp ? UNWIND_FP : UNWIND_SP;
	rule->off = -(by_fp ? fp->off : sp->off);
	rule->fp_at =
		place(&s->saved[HEIGHT_SAVED_FP], fp, HEIGHT_OLD_FP, verified, &rule->fp_words);
	rule->link_at = place(&s->saved[HEIGHT_SAVED_LINK], &s->reg[HEIGHT_LINK], HEIGHT_OLD_LINK,
			      verified, &rule->link_words);
	return HEIGHT_PROVEN;
}

/* ---- rows ------------------------------------------------------------------------------------ */

struct rows {
	int (*row)(void *ctx, uint64_t addr, const struct unwind_rule *rule);
	void *ctx;
	struct unwind_rule last;
};

static int add_row(struct rows *r, uint64_t addr, const struct unwind_rule *rule)
{
	if (memcmp(&r->last, rule, sizeof(*rule)) == 0)
		return 0;
	r->last = *rule;
	return r->row(r->ctx, addr, rule);
}

static int make_rows(struct height *h, struct rows *rows)
{
	const struct unwind_rule none = { .how = UNWIND_NONE };
	uint64_t end = 0;
	int r = 0;

	for (size_t n = 0; r >= 0 && n < h->nr; n++) {
		const struct height_insn *i = &h->insns[n];
		struct unwind_rule rule;
		enum height_reason reason = rule_of(h, i, &rule);

		if (i->off > end)
			r = add_row(rows, h->vaddr + end, &none);
		end = (uint64_t)i->off + i->len;
		memset(h->reason + i->off, reason, i->len);
		if (r >= 0)
			r = add_row(rows, h->vaddr + i->off, &rule);
	}
	return r < 0 ? r : add_row(rows, h->vaddr + end, &none);
}

static int reserve(struct height *h, size_t len)
{
	if (base_grow(&h->state, &h->cap_state, len, sizeof(*h->state)) < 0 ||
	    base_grow(&h->queued, &h->cap_queued, len, sizeof(*h->queued)) < 0 ||
	    base_grow(&h->queue, &h->cap_queue, len, sizeof(*h->queue)) < 0 ||
	    base_grow(&h->index, &h->cap_index, len, sizeof(*h->index)) < 0 ||
	    base_grow(&h->reason, &h->cap_reason, len, sizeof(*h->reason)) < 0)
		return -ENOMEM;
	return 0;
}

/* Find rules and reasons. */
static int work(struct height *h, struct rows *rows)
{
	int r = reserve(h, h->len);

	if (r >= 0)
		r = height_flow(h);
	if (r == -DCPI_ELIMIT)
		h->refused = HEIGHT_TOO_LARGE;
	else if (r >= 0)
		height_prove(h);
	if (r < 0 && r != -DCPI_ELIMIT)
		return r;
	memset(h->reason, h->refused != HEIGHT_PROVEN ? h->refused : HEIGHT_UNREACHED, h->len);
	return h->refused != HEIGHT_PROVEN ? 0 : make_rows(h, rows);
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
	struct rows rows = { .row = row, .ctx = ctx, .last = { .how = UNWIND_NONE } };
	uint64_t end;
	int r = 0;

	if (base_add_overflow(vaddr, len, &end))
		return -EINVAL;
	h->code = code;
	h->len = len <= HEIGHT_MAX_LEN ? len : 0;
	h->vaddr = vaddr;
	h->nr = 0;
	h->proof = HEIGHT_BY_NOTHING;
	h->refused = h->len == len ? HEIGHT_PROVEN : HEIGHT_TOO_LARGE;
	if (h->len)
		r = work(h, &rows);
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
