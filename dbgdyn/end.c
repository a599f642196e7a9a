/* SPDX-License-Identifier: BSD-2-Clause */
/* Routines end; and they move, which is an end at one place and a beginning at another. */
#include "dbgdyn_internal.h"

/* ---- moved ----------------------------------------------------------------------------------- */

static void tell_move(struct dbgdyn_change *c, const struct dbgdyn_node *n, uint64_t to,
		      uint16_t flags)
{
	size_t code_len = n->code_len, len = (sizeof(struct wire_move) + code_len + 7) & ~(size_t)7;
	struct wire_move *m;

	if (!c->asked)
		return;
	m = dbgdyn_change_reserve(c, len);
	if (!m) {
		code_len = 0;
		len = sizeof(*m);
		m = dbgdyn_change_reserve(c, len);
	}
	if (!m) {
		dbgdyn_change_turn(c, len);
		return;
	}
	if (code_len)
		flags |= WIRE_ROUTINE_CODE;
	memset((uint8_t *)m + len - 8, 0, 8); /* padding */
	*m = (struct wire_move){ .head = { (uint32_t)len, WIRE_MOVE, flags },
				 .facility = c->facility,
				 .seq = c->seq,
				 .handle = n->seq,
				 .from = n->addr,
				 .to = to,
				 .code_len = n->code_len };
	memcpy(m + 1, (const void *)(uintptr_t)to, code_len);
	dbgdyn_change_tell(c, len);
}

/* The slot's record from now on: the same at another place. */
static void list_move(struct dbgdyn_change *c, struct dbgdyn_node *n, uint64_t to, uint16_t flags)
{
	struct wire_routine *rec = dbgdyn_slot_begin(c->s, n);

	rec->head.flags = flags | (rec->head.flags & WIRE_ROUTINE_FRAMES);
	rec->seq = c->seq;
	rec->addr = to;
	dbgdyn_slot_end(c->s, n);
	dbgdyn_words_move(c->s, n->addr, n->code_len, c->seq);
	n->addr = to;
	n->seq = c->seq;
	dbgdyn_live_add(c->s, n);
}

static void move(struct dbgdyn_change *c, struct dbgdyn_node *n, uint64_t to)
{
	struct dbgdyn_state *s = c->s;
	uint16_t flags = 0;
	uint32_t replaced;

	dbgdyn_change_number(c);
	dbgdyn_live_remove(s, n);
	replaced = dbgdyn_live_take(s, to, n->code_len);
	if (dbgdyn_used_mark(s, to, n->code_len))
		flags = WIRE_ROUTINE_REUSES;
	c->bell = dbgdyn_arena_tell(s, c->facility, to, n->code_len) && c->asked;
	tell_move(c, n, to, flags);
	dbgdyn_change_close(c, replaced);
	list_move(c, n, to, flags);
	if (flags)
		dbgdyn_words_move(s, to, n->code_len, c->seq);
}

int dbgdyn_routine_move(struct dbgdyn_state *s, uint32_t facility, uint64_t handle,
			const void *code)
{
	struct dbgdyn_change c;
	struct dbgdyn_node *n;
	int result = dbgdyn_change_begin(&c, s, facility);

	if (result < 0)
		return result;
	n = dbgdyn_handle_find(s, facility, handle, &result);
	if (n && (n->type != WIRE_ROUTINE || n->sibling || !dbgdyn_range_good(code, n->code_len)))
		result = DBGDYN_EINVAL;
	if (result < 0) {
		dbgdyn_unlock(s);
		return result;
	}
	move(&c, n, (uintptr_t)code);
	return dbgdyn_change_commit(&c);
}

/* ---- ends ------------------------------------------------------------------------------------ */

/* @handle 0: what begins in [addr, addr + len). */
static void tell_end(struct dbgdyn_change *c, uint64_t handle, uint64_t addr, uint64_t len)
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
	while (n) {
		struct dbgdyn_node *more = n->sibling ? &s->nodes[n->sibling - 1] : NULL;

		dbgdyn_change_number(&c);
		dbgdyn_live_remove(s, n);
		tell_end(&c, n->seq, n->addr, n->code_len);
		n->next = 0;
		dbgdyn_change_close(&c, (uint32_t)(n - s->nodes) + 1);
		n = more;
	}
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
	tell_end(&c, 0, (uintptr_t)code, len);
	dbgdyn_change_close(&c, chain);
	if (unlisted) {
		dbgdyn_used_move(s, (uintptr_t)code, len, c.seq);
		if (!c.announced)
			dbgdyn_dropped(s);
	}
	return dbgdyn_change_commit(&c);
}
