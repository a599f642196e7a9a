/* SPDX-License-Identifier: BSD-2-Clause */
/* Routines: registered, and moved. */
#include "dbgdyn_internal.h"

struct job {
	const struct dbgdyn_routine *r;
	struct dbgdyn_parts parts;
	uint16_t flags;
};

static void number(struct wire_routine *rec, const struct dbgdyn_change *c)
{
	rec->facility = c->facility;
	rec->seq = c->seq;
}

/* With the code where it fits, else without: its bytes can be read later. */
static void tell(struct dbgdyn_change *c, const struct job *j)
{
	uint16_t flags = j->flags | WIRE_ROUTINE_CODE;
	size_t len = dbgdyn_record_len(j->r, &j->parts, true);
	struct wire_routine *rec;

	if (!c->asked)
		return;
	rec = dbgdyn_change_reserve(c, len);
	if (!rec) {
		flags = j->flags;
		len = dbgdyn_record_len(j->r, &j->parts, false);
		rec = dbgdyn_change_reserve(c, len);
	}
	if (!rec) {
		dbgdyn_change_turn(c, len);
		return;
	}
	dbgdyn_record_fill(rec, len, j->r, &j->parts, flags);
	number(rec, c);
	dbgdyn_change_tell(c, len);
}

/* Keep it among what lives, for a daemon that comes later. */
static struct dbgdyn_node *list(struct dbgdyn_change *c, const struct job *j)
{
	size_t len = dbgdyn_record_len(j->r, &j->parts, false);
	struct dbgdyn_node *n = dbgdyn_heap_take(c->s, len);
	struct wire_routine *rec;

	if (!n) {
		c->s->nr_unlisted++;
		return NULL;
	}
	rec = dbgdyn_slot_begin(c->s, n);
	dbgdyn_record_fill(rec, len, j->r, &j->parts, j->flags);
	number(rec, c);
	dbgdyn_slot_end(c->s, n);
	n->addr = (uintptr_t)j->r->code;
	n->code_len = (uint32_t)j->r->code_len;
	n->seq = n->born = c->seq;
	n->facility = (uint16_t)c->facility;
	n->type = WIRE_ROUTINE;
	dbgdyn_live_add(c->s, n);
	return n;
}

int dbgdyn_routine_put(struct dbgdyn_state *s, uint32_t facility, const struct dbgdyn_routine *r,
		       uint64_t *handle)
{
	struct job j = { .r = r };
	struct dbgdyn_change c;
	struct dbgdyn_node *n;
	uint32_t replaced;
	uint64_t addr;
	int result;

	if (!dbgdyn_record_measure(r, &j.parts) || !dbgdyn_record_len(r, &j.parts, false))
		return DBGDYN_EINVAL;
	result = dbgdyn_change_begin(&c, s, facility);
	if (result < 0)
		return result;
	if (j.parts.nr_defects)
		__atomic_fetch_add(&s->reg->nr_left_out, j.parts.nr_defects, __ATOMIC_RELAXED);
	dbgdyn_change_number(&c);
	addr = (uintptr_t)r->code;
	replaced = dbgdyn_live_take(s, addr, r->code_len);
	if (dbgdyn_used_mark(s, addr, r->code_len))
		j.flags = WIRE_ROUTINE_REUSES;
	c.bell = dbgdyn_arena_tell(s, facility, addr, r->code_len) && c.asked;
	tell(&c, &j);
	dbgdyn_change_close(&c, replaced);
	n = list(&c, &j);
	if (j.flags)
		dbgdyn_words_move(s, addr, r->code_len, c.seq);
	if (handle)
		*handle = n || c.announced ? dbgdyn_handle_make(s, n, c.seq) : 0;
	result = dbgdyn_change_commit(&c);
	return n || c.announced ? result : dbgdyn_dropped(s);
}

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
	if (n && (n->type != WIRE_ROUTINE || !dbgdyn_range_good(code, n->code_len)))
		result = DBGDYN_EINVAL;
	if (result < 0) {
		dbgdyn_unlock(s);
		return result;
	}
	move(&c, n, (uintptr_t)code);
	return dbgdyn_change_commit(&c);
}
