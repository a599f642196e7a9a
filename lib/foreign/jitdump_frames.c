/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames of a routine from the unwinding record before it: its .eh_frame says how they are found.
 */
#include <errno.h>

#include "eh_bytes.h"
#include "jitdump_internal.h"

/* Longer records are left out, and further rows. */
enum { RECORD_MAX = 1 << 20, FRAMES_MAX = 4096 };

struct making {
	struct base_buf *frames;
	uint64_t code;
};

/* Where the rule has it, as frames say it. */
static int32_t place(uint8_t at, int16_t words)
{
	return at == UNWIND_AT_SAME  ? WIRE_FRAME_IN_REGISTER
	       : at == UNWIND_AT_CFA ? words * 8
				     : WIRE_FRAME_LOST;
}

/* A row that frames cannot say is left out: the code from the one before is followed. */
static int row(void *ctx, uint64_t vaddr, const struct unwind_rule *rule)
{
	const struct making *m = ctx;
	struct wire_frame f = { .code_off = (uint32_t)(vaddr - m->code),
				.flags = WIRE_FRAME_FALLBACK |
					 (rule->base == UNWIND_FP ? WIRE_FRAME_BY_FP : 0),
				.cfa_off = rule->off,
				.fp_off = place(rule->fp_at, rule->fp_words),
				.link_off = place(rule->link_at, rule->link_words) };

	if (rule->how != UNWIND_CFA || rule->returns || wire_frame_fault(&f) ||
	    (rule->base != UNWIND_FP && rule->base != UNWIND_SP) ||
	    m->frames->len / sizeof(f) == FRAMES_MAX)
		return 0;
	return base_buf_append(m->frames, &f, sizeof(f));
}

/* The record's head is looked at again: @at may be another record's. 0: it is none. */
static int unwinding_len(struct jitdump *d, const struct jitdump_lines_at *at,
			 struct jitdump_unwinding *u, uint64_t *len)
{
	int r = jitdump_copy(d, at->off, u, sizeof(*u));

	*len = r == 0 && u->head.id == JITDUMP_UNWINDING &&
			       u->eh_frame_hdr_size <= u->unwinding_size
		       ? u->unwinding_size - u->eh_frame_hdr_size
		       : 0;
	if (*len > at->len - sizeof(*u))
		*len = 0;
	return r;
}

int jitdump_frames_read(struct jitdump *d, const struct jitdump_lines_at *at,
			const struct jitdump_code *code)
{
	struct making m = { .frames = &d->frames, .code = code->addr };
	struct image_eh_bytes eh = { .vaddr = code->addr + base_align_up(code->len, 8),
				     .code = code->addr,
				     .code_len = code->len,
				     .machine = (uint16_t)d->f.from->machine };
	struct jitdump_unwinding u;
	uint64_t len;
	int r;

	base_buf_clear(&d->frames);
	if (at->len < sizeof(u) || at->len > RECORD_MAX)
		return 0;
	r = unwinding_len(d, at, &u, &len);
	if (r == 0 && len)
		r = runtime_file_peek(&d->f, at->off + sizeof(u), (size_t)len, &eh.data);
	if (r < 0 || !len)
		return r;
	eh.len = (size_t)len;
	r = image_eh_bytes_run(&eh, row, &m);
	return r == -ENOMEM ? r : 0;
}
