/* SPDX-License-Identifier: BSD-2-Clause */
/* Code that nobody names: the pages that samples fell into, as they stood there then. */
#include <errno.h>

#include "jit_internal.h"

/* Its bytes as they are now: how many, or none. -EDQUOT: they may be had later. */
static ssize_t read_page(const struct dyn_registry *reg, uint64_t page, uint8_t code[WIRE_PAGE])
{
	const struct wire_range range = { .base = page, .len = WIRE_PAGE };
	struct base_buf b = { 0 };
	const struct wire_head *h;
	ssize_t len = 0;
	int r = -ESRCH;

	if (reg->life)
		r = reader_range_read(reg->dyn->config.reader, reg->pid, reg->uid, reg->life,
				      &range, &b);
	if (r < 0) {
		len = r == -EDQUOT ? r : 0;
		goto out;
	}
	memset(code, 0, WIRE_PAGE);
	WIRE_FOR_EACH (h, b.data, b.len, pos) {
		const struct wire_bytes *bytes = (const void *)h;

		if (bytes->vaddr < page || bytes->vaddr - page > WIRE_PAGE ||
		    bytes->bytes_len > WIRE_PAGE - (bytes->vaddr - page))
			goto out;
		memcpy(code + (bytes->vaddr - page), bytes + 1, bytes->bytes_len);
		len = WIRE_PAGE;
	}
out:
	base_buf_release(&b);
	return len;
}

/* Named by its place in the mapping, so that it is the same in each run. */
static int add_page(struct dyn_registry *reg, uint64_t page, uint64_t map_start)
{
	uint64_t record[(sizeof(struct wire_routine) + 64 + WIRE_PAGE + 8) / sizeof(uint64_t)];
	struct wire_routine *r = (void *)record;
	uint8_t code[WIRE_PAGE];
	ssize_t code_len = read_page(reg, page, code);
	char *name = (char *)(r + 1);

	if (code_len < 0)
		return (int)code_len;
	memset(record, 0, sizeof(record));
	*r = (struct wire_routine){ .head.type = WIRE_ROUTINE,
				    .seq = reg->lifetimes.last_seq + 1,
				    .addr = page,
				    .code_len = WIRE_PAGE };
	r->name_len = (uint32_t)snprintf(name, 64, "[anonymous]+0x%llx",
					 (unsigned long long)(page - map_start));
	r->head.len = (uint32_t)wire_routine_len(r->name_len, WIRE_PAGE, (size_t)code_len, 0, 0, 0);
	if (code_len) {
		r->head.flags = WIRE_ROUTINE_CODE | WIRE_ROUTINE_FETCHED;
		memcpy(name + r->name_len, code, (size_t)code_len);
	}
	/* It was there before anybody looked. */
	return dyn_apply(reg, record, r->head.len, 0, 0) ? -ENOMEM : 0;
}

enum dyn_where dyn_unnamed_find(struct dyn *d, struct process *p, const struct dyn_query *q,
				struct image **image, uint64_t *off)
{
	uint64_t page = q->addr & ~(uint64_t)(WIRE_PAGE - 1);
	const struct dyn_ask ask = { .addr = q->addr, .first_ns = 1, .time_ns = UINT64_MAX };
	struct dyn_registry *reg;
	bool sure;
	int r;

	if (!d->config.reader || !dyn_client_of(p))
		return DYN_NONE;
	reg = dyn_source_find(p->dyn, DYN_UNNAMED);
	if (!reg && dyn_source_new(d, p, DYN_UNNAMED, -1, &reg) < 0)
		return DYN_NONE;
	if (!dyn_routine_living(&reg->lifetimes.routines, q->addr)) {
		/* It would be read for each sample. */
		if (reg->crowded)
			return DYN_NONE;
		r = add_page(reg, page, q->map_start <= page ? q->map_start : page);
		if (r < 0)
			return r == -EDQUOT ? DYN_NO_BUDGET : DYN_NONE;
	}
	reg->lifetimes.wants_list = false;
	return dyn_registry_lookup(reg, &ask, image, off, &sure);
}
