/* SPDX-License-Identifier: BSD-2-Clause */
/* Code for a function: its statements, its frame, and which code is of which line. */
#include <string.h>

#include "gen.h"
#include "layout.h"

static void gen_stmt(struct gen *g, const struct calc_stmt *s);

/* Room for one more; the program keeps all of them, they are few and small. */
static void *grow(struct gen *g, void *array, size_t nr, size_t *cap, size_t size)
{
	void *bigger;

	if (nr < *cap)
		return array;
	*cap = *cap ? 2 * *cap : 32;
	bigger = calc_alloc(g->c, g->f->pos, *cap * size);
	if (nr > 0)
		memcpy(bigger, array, nr * size);
	return bigger;
}

void gen_mark(struct gen *g, struct calc_pos pos)
{
	struct calc_line *last = g->nr_lines > 0 ? &g->lines[g->nr_lines - 1] : NULL;

	if (last && last->line == pos.line)
		return;
	if (last && last->code_off == g->e->len) {
		/* Nothing was emitted for it. */
		g->nr_lines--;
		gen_mark(g, pos);
		return;
	}
	g->lines = grow(g, g->lines, g->nr_lines, &g->cap_lines, sizeof(*g->lines));
	g->lines[g->nr_lines++] = (struct calc_line){ (uint32_t)g->e->len, pos.line };
}

emit_label gen_trap(struct gen *g, enum calc_trap why, struct calc_pos pos)
{
	struct gen_trap *t;

	g->traps = grow(g, g->traps, g->nr_traps, &g->cap_traps, sizeof(*g->traps));
	t = &g->traps[g->nr_traps++];
	*t = (struct gen_trap){ why, pos, emit_label_new(g->e) };
	return t->label;
}

/* Out of the way, at the end: a call that does not come back for each way to fail. */
static void gen_traps(struct gen *g)
{
	size_t off = offsetof(struct calc_runtime, helpers) + 8 * CALC_HELPER_TRAP;

	for (size_t i = 0; i < g->nr_traps; i++) {
		const struct gen_trap *t = &g->traps[i];

		gen_mark(g, t->pos);
		emit_label_bind(g->e, t->label);
		emit_call_helper(g->e, (int)off, gen_imm(gen_pack_pos(t->pos) | t->why));
	}
}

/* Who had the CPU before is kept in the slot before the spilled temporaries' first one. */
static struct emit_operand share_slot(const struct gen *g, unsigned int index)
{
	return (struct emit_operand){ EMIT_SLOT, g->f->nr_locals + index };
}

static bool is_measured(const struct gen *g)
{
	return g->c->opts.measure_shares && g->f->share > 0;
}

static void gen_enter(struct gen *g)
{
	gen_mark(g, g->f->pos);
	emit_prologue(g->e, gen_trap(g, CALC_TRAP_STACK, g->f->pos));
	if (is_measured(g)) {
		gen_helper(g, CALC_HELPER_SHARE_ENTER, EMIT_INT, g->f->share);
		emit_store(g->e, EMIT_INT, 0, share_slot(g, 0));
	}
}

static void gen_leave(struct gen *g)
{
	enum emit_class cl = gen_class(g->f->signature.result);

	if (is_measured(g)) {
		emit_store(g->e, cl, 0, share_slot(g, 1));
		emit_load(g->e, EMIT_INT, 0, share_slot(g, 0));
		gen_helper(g, CALC_HELPER_SHARE_LEAVE, EMIT_INT, 0);
		emit_load(g->e, cl, 0, share_slot(g, 1));
	}
	emit_epilogue(g->e);
}

static void gen_block(struct gen *g, const struct calc_stmt *block)
{
	for (const struct calc_stmt *s = block->body; s; s = s->next)
		gen_stmt(g, s);
}

static void gen_var(struct gen *g, const struct calc_stmt *s)
{
	gen_expr(g, s->value, 0);
	gen_mark(g, s->pos);
	emit_store(g->e, gen_class(s->type), 0, gen_place(s->place));
}

/* The value first, then what stands in the variable. */
static void assign_name(struct gen *g, const struct calc_stmt *s)
{
	struct emit_operand to = gen_place(s->target->place), value;
	enum emit_class cl = gen_class(s->target->type);
	unsigned int result = 0;

	if (s->op == CALC_NO_OP) {
		gen_expr(g, s->value, 0);
	} else if (s->value->has_call) {
		gen_expr(g, s->value, 0);
		emit_load(g->e, cl, result = 1, to);
		gen_arith(g, s->target->type, s->op, 1, gen_temp(0), s->pos);
	} else {
		emit_load(g->e, cl, 0, to);
		if (!gen_direct(g, s->value, &value)) {
			gen_expr(g, s->value, 1);
			value = gen_temp(1);
		}
		gen_arith(g, s->target->type, s->op, 0, value, s->pos);
	}
	gen_mark(g, s->pos);
	emit_store(g->e, cl, result, to);
}

static void assign_element(struct gen *g, const struct calc_stmt *s)
{
	enum emit_class cl = gen_class(s->target->type);
	bool spill = s->target->has_call;
	unsigned int value = spill ? 2 : 0, base = spill ? 0 : 1, old = 3;
	struct emit_operand index, slot;

	gen_expr(g, s->value, 0);
	if (spill)
		slot = gen_spill(g, cl, 0, s->pos);
	gen_element(g, s->target, base, &index);
	if (spill) {
		emit_load(g->e, cl, value, slot);
		gen_unspill(g);
	}
	if (s->op != CALC_NO_OP) {
		emit_load_element(g->e, cl, old, base, index);
		gen_arith(g, s->target->type, s->op, old, gen_temp(value), s->pos);
		value = old;
	}
	gen_mark(g, s->pos);
	emit_store_element(g->e, cl, value, base, index);
}

static const struct gen_if *find_if(const struct gen *g, const struct calc_stmt *s)
{
	for (size_t i = 0; g->laid_out && i < g->nr_ifs; i++)
		if (g->ifs[i].stmt == s)
			return &g->ifs[i];
	return NULL;
}

static emit_label gen_later(struct gen *g, const struct calc_stmt *s, emit_label done)
{
	struct gen_rare *r;

	g->rares = grow(g, g->rares, g->nr_rares, &g->cap_rares, sizeof(*g->rares));
	r = &g->rares[g->nr_rares++];
	*r = (struct gen_rare){ s, emit_label_new(g->e), done, g->break_to, g->continue_to };
	return r->begin;
}

static void gen_rares(struct gen *g)
{
	for (size_t i = 0; i < g->nr_rares; i++) {
		struct gen_rare r = g->rares[i]; /* there may be more in it */

		g->break_to = r.break_to;
		g->continue_to = r.continue_to;
		emit_label_bind(g->e, r.begin);
		gen_stmt(g, r.stmt);
		emit_jump(g->e, r.done);
	}
}

/* What ran seldom stands elsewhere, so that the rest needs no jump. */
static void gen_if_laid_out(struct gen *g, const struct calc_stmt *s, bool rare_body)
{
	emit_label done = emit_label_new(g->e);

	gen_jump(g, s->value, rare_body, gen_later(g, rare_body ? s->body : s->other, done), 0);
	if (!rare_body)
		gen_stmt(g, s->body);
	else if (s->other)
		gen_stmt(g, s->other);
	emit_label_bind(g->e, done);
}

static void note_if(struct gen *g, const struct gen_if *noted)
{
	if (g->laid_out)
		return;
	g->ifs = grow(g, g->ifs, g->nr_ifs, &g->cap_ifs, sizeof(*g->ifs));
	g->ifs[g->nr_ifs++] = *noted;
}

static void gen_if(struct gen *g, const struct calc_stmt *s)
{
	const struct gen_if *known = find_if(g, s);
	struct gen_if noted = { .stmt = s, .test = g->e->len };
	emit_label no, done;

	if (known && (known->rare_body || known->rare_other)) {
		gen_if_laid_out(g, s, known->rare_body);
		return;
	}
	no = emit_label_new(g->e);
	done = emit_label_new(g->e);
	gen_jump(g, s->value, false, no, 0);
	noted.body = g->e->len;
	gen_stmt(g, s->body);
	if (s->other)
		emit_jump(g->e, done);
	emit_label_bind(g->e, no);
	noted.other = g->e->len;
	if (s->other)
		gen_stmt(g, s->other);
	emit_label_bind(g->e, done);
	note_if(g, &noted);
}

/* The condition stands at the end, so that a round has one jump. */
static void gen_loop(struct gen *g, const struct calc_stmt *s)
{
	emit_label body = emit_label_new(g->e), test = emit_label_new(g->e);
	emit_label break_to = g->break_to, continue_to = g->continue_to;

	g->break_to = emit_label_new(g->e);
	g->continue_to = emit_label_new(g->e);
	if (s->init)
		gen_stmt(g, s->init);
	if (s->value)
		emit_jump(g->e, test);
	emit_label_bind(g->e, body);
	gen_stmt(g, s->body);
	emit_label_bind(g->e, g->continue_to);
	if (s->step)
		gen_stmt(g, s->step);
	emit_label_bind(g->e, test);
	gen_mark(g, s->pos);
	if (s->value)
		gen_jump(g, s->value, true, body, 0);
	else
		emit_jump(g->e, body);
	emit_label_bind(g->e, g->break_to);
	g->break_to = break_to;
	g->continue_to = continue_to;
}

static void gen_return(struct gen *g, const struct calc_stmt *s)
{
	if (s->value)
		gen_expr(g, s->value, 0);
	gen_mark(g, s->pos);
	gen_leave(g);
}

static void gen_stmt(struct gen *g, const struct calc_stmt *s)
{
	if (s->kind != CALC_STMT_BLOCK)
		gen_mark(g, s->pos);
	switch (s->kind) {
	case CALC_STMT_BLOCK:
		gen_block(g, s);
		break;
	case CALC_STMT_VAR:
		gen_var(g, s);
		break;
	case CALC_STMT_ASSIGN:
		if (s->target->kind == CALC_EXPR_NAME)
			assign_name(g, s);
		else
			assign_element(g, s);
		break;
	case CALC_STMT_EXPR:
		gen_expr(g, s->value, 0);
		break;
	case CALC_STMT_IF:
		gen_if(g, s);
		break;
	case CALC_STMT_LOOP:
		gen_loop(g, s);
		break;
	case CALC_STMT_RETURN:
		gen_return(g, s);
		break;
	case CALC_STMT_BREAK:
		emit_jump(g->e, g->break_to);
		break;
	case CALC_STMT_CONTINUE:
		emit_jump(g->e, g->continue_to);
		break;
	}
}

static bool ends_in_return(const struct calc_stmt *block)
{
	const struct calc_stmt *s = block->body;

	while (s && s->next)
		s = s->next;
	return s && s->kind == CALC_STMT_RETURN;
}

static void gen_body(struct gen *g)
{
	gen_enter(g);
	gen_block(g, g->f->body);
	if (!ends_in_return(g->f->body)) {
		gen_mark(g, g->f->end);
		if (g->f->signature.result.kind == CALC_VOID)
			gen_leave(g);
		else
			emit_jump(g->e, gen_trap(g, CALC_TRAP_RETURN, g->f->end));
	}
	gen_rares(g);
	gen_traps(g);
	emit_finish(g->e);
}

static void gen_pass(struct gen *g)
{
	emit_reset(g->e);
	g->e->nr_slots = g->first_spill + g->max_spilled;
	g->nr_lines = 0;
	g->nr_traps = 0;
	g->nr_rares = 0;
	if (!g->laid_out)
		g->nr_ifs = 0;
	gen_body(g);
}

/* Is there anything to lay out? The profile is of a run that had none. */
static bool find_rare(struct gen *g)
{
	const struct calc_layout *l = g->c->opts.layout;
	struct json_object *p = l ? calc_layout_find(l, g->f->name, g->e->len) : NULL;
	bool any = false;

	for (size_t i = 0; p && i < g->nr_ifs; i++) {
		struct gen_if *x = &g->ifs[i];
		uint64_t body = calc_layout_count(p, x->test, x->body, x->body);
		uint64_t other = calc_layout_count(p, x->test, x->body, x->other);

		x->rare_body = body < other;
		x->rare_other = other < body && x->stmt->other;
		any = any || x->rare_body || x->rare_other;
	}
	return any;
}

/* Twice, since only at the end it is known how large the frame is; and once more where a profile
 * says that parts ran seldom. */
struct calc_line *calc_gen_function(struct calc *c, struct calc_function *f, size_t *nr_lines)
{
	struct gen g = { .c = c, .f = f, .e = c->emit };

	g.first_spill = f->nr_locals + (is_measured(&g) ? 2 : 0);
	gen_pass(&g);
	gen_pass(&g);
	g.laid_out = !c->emit->failed && find_rare(&g);
	if (g.laid_out)
		gen_pass(&g);
	if (c->emit->failed)
		calc_fail(c, f->pos, "function '%s' is too large", f->name);
	*nr_lines = g.nr_lines;
	return g.lines;
}
