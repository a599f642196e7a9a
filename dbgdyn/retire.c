/* SPDX-License-Identifier: BSD-2-Clause */
/* Routines and code that end. */
#include "dbgdyn_internal.h"

/* @handle 0: what begins in [addr, addr + len). */
static void tell(struct dbgdyn_change *c, uint64_t handle, uint64_t addr, uint64_t len)
{
	struct wire_retire *rec = dbgdyn_change_reserve(c, sizeof(*rec));

	if (!rec)
		return;
	*rec = (struct wire_retire){ .head = { sizeof(*rec), WIRE_RETIRE, 0 },
				     .facility = c->facility,
				     .seq = c->seq,
				     .handle = handle,
				     .addr = addr,
				     .code_len = len };
	dbgdyn_change_tell(c, sizeof(*rec));
}

int dbgdyn_routine_retire(struct dbgdyn_state *s, uint32_t facility, uint64_t handle)
{
	struct dbgdyn_change c;
	struct dbgdyn_node *n;
	int result = dbgdyn_change_begin(&c, s, facility);

	if (result < 0)
		return result;
	n = dbgdyn_handle_find(s, facility, handle, &result);
	if (!n) {
		dbgdyn_unlock(s);
		return result;
	}
	dbgdyn_change_number(&c);
	dbgdyn_live_remove(s, n);
	tell(&c, n->seq, n->addr, n->code_len);
	n->next = 0;
	dbgdyn_change_close(&c, (uint32_t)(n - s->nodes) + 1);
	return dbgdyn_change_commit(&c);
}

int dbgdyn_code_retire(struct dbgdyn_state *s, uint32_t facility, const void *code, size_t len)
{
	struct dbgdyn_change c;
	uint32_t chain;
	bool unlisted;
	int result;

	if (!dbgdyn_range_good(code, len))
		return DBGDYN_EINVAL;
	result = dbgdyn_change_begin(&c, s, facility);
	if (result < 0)
		return result;
	chain = dbgdyn_live_take_of(s, facility, (uintptr_t)code, len);
	/* Code that did not fit into the heap may be at any address that was ever used. */
	unlisted = s->nr_unlisted && dbgdyn_used_find(s, (uintptr_t)code, len);
	if (!chain && !unlisted) {
		dbgdyn_unlock(s);
		return DBGDYN_OK;
	}
	dbgdyn_change_number(&c);
	tell(&c, 0, (uintptr_t)code, len);
	dbgdyn_change_close(&c, chain);
	if (unlisted) {
		dbgdyn_used_move(s, (uintptr_t)code, len, c.seq);
		if (!c.announced)
			dbgdyn_dropped(s);
	}
	return dbgdyn_change_commit(&c);
}
