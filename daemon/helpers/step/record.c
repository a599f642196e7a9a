/* SPDX-License-Identifier: BSD-2-Clause */
/* Single steps of a program become traces over translated blocks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "step_record.h"

static int read_memory(void *ctx, void *to, size_t len, uint64_t addr)
{
	const struct step_recorder *r = ctx;

	return step_shadow_read(&r->shadow, &r->target, to, len, addr);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* @c is copied. */
static int keep(struct step_recorder *r, const struct vtrace_code *c)
{
	struct step_blocks *b = &r->blocks;
	size_t len = offsetof(struct vtrace_code, uops) + c->block.nr_uops * sizeof(c->uops[0]);
	struct vtrace_code *copy;

	if (b->nr == STEP_ID_END - STEP_ID_FIRST)
		return -DCPI_ELIMIT;
	if (base_grow(&b->all, &b->cap, b->nr + 1, sizeof(*b->all)) < 0)
		return -ENOMEM;
	copy = malloc(len);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, c, len);
	copy->block.id = (uint32_t)(STEP_ID_FIRST + b->nr);
	b->all[b->nr++] = copy;
	return base_map_set(&b->by_pc, &copy->block.pc, sizeof(copy->block.pc), copy);
}

static const struct vtrace_code *find(const struct step_recorder *r, uint64_t pc)
{
	return base_map_get(&r->blocks.by_pc, &pc, sizeof(pc));
}

/* Two pages from that of @pc on, as far as they are there. */
static uint32_t fetch(const struct step_recorder *r, uint64_t base, uint8_t *code)
{
	uint32_t len = 0;

	while (len < TRANSLATOR_CODE &&
	       step_target_read(&r->target, code + len, STEP_PAGE, base + len) == 0)
		len += STEP_PAGE;
	return len;
}

/*
 * Put translated blocks where none is known yet; at the place itself the code differs from the
 * known one.
 */
static int translate(struct step_recorder *r, uint64_t pc)
{
	static uint8_t code[TRANSLATOR_CODE];
	struct translator_request q = { .pc = pc, .base = pc & ~(uint64_t)(STEP_PAGE - 1) };
	const struct vtrace_code *blocks;
	enum vtrace_arch arch;
	int nr = translator_arch(&arch);

	q.arch = arch;
	q.len = fetch(r, q.base, code);
	if (nr == 0)
		nr = q.len ? translator_call(r->translator, &q, code, &blocks) : -EFAULT;
	for (int i = 0; i < nr; i++)
		if ((i == 0 || !find(r, blocks[i].block.pc)) && keep(r, &blocks[i]) < 0)
			return -ENOMEM;
	return nr < 0 ? nr : 0;
}

static int enter(struct step_recorder *r, const struct vtrace_code **out)
{
	struct vtrace_memory m = { read_memory, r };
	uint64_t pc = r->s.pc;

	*out = find(r, pc);
	if (!*out || !vtrace_code_is(&m, &(*out)->block, pc)) {
		if (translate(r, pc) < 0 || !(*out = find(r, pc)))
			return VTRACE_UNTRANSLATED;
		if (!vtrace_code_is(&m, &(*out)->block, pc))
			return VTRACE_CODE;
	}
	return vtrace_enter(&r->s, &(*out)->block, 0);
}

/* ---- what the processor says ----------------------------------------------------------------- */

static bool add_fix(struct step_recorder *r, uint8_t reg, uint64_t value)
{
	struct insn_trace *w = &r->out.head.w;

	if (w->nr_fixes == VTRACE_NR_FIXES)
		return false;
	r->fixes[w->nr_fixes++] =
		(struct vtrace_fix){ .before = r->s.nr_insns, .reg = reg, .value = value };
	return true;
}

static bool fix_flags(struct step_recorder *r)
{
	struct vtrace_state *s = &r->s;

	if (!s->flags_unknown && s->flags == r->values.flags)
		return true;
	vtrace_flags(s, r->values.flags, VTRACE_FLAGS, 0);
	return add_fix(r, VTRACE_FIX_FLAGS, r->values.flags);
}

/* The state becomes what the processor has. False: there is no room to say so. */
static bool fix(struct step_recorder *r)
{
	struct vtrace_state *s = &r->s;

	step_regs_values(&r->regs, &r->values);
	for (unsigned int i = 0; i < VTRACE_NR_REGS; i++) {
		if (!r->values.has[i] || (!s->unknown[i] && s->r[i] == r->values.r[i]))
			continue;
		vtrace_put(s, (uint8_t)i, r->values.r[i], 0);
		if (!add_fix(r, (uint8_t)i, r->values.r[i]))
			return false;
	}
	vtrace_settle_memory(s);
	return fix_flags(r);
}

/* ---- a burst --------------------------------------------------------------------------------- */

/* Registers in the trace's head need no fix. */
static bool begin(struct step_recorder *r, pid_t tid)
{
	struct insn_trace *w = &r->out.head.w;
	struct vtrace_state *s = &r->s;

	step_regs_values(&r->regs, &r->values);
	memset(s->unknown, 0xff, sizeof(s->unknown));
	for (unsigned int i = 0; i < INSN_TRACE_REGS; i++)
		vtrace_put(s, (uint8_t)i, r->values.has[i] ? r->values.r[i] : 0, 0);
	vtrace_flags(s, r->values.flags, VTRACE_FLAGS, 0);
	s->pc = r->regs.u.rip;
	vtrace_begin(s, STEP_INSNS);
	s->log = VTRACE_LOG_READS;
	memset(&r->out.head, 0, sizeof(r->out.head));
	*w = (struct insn_trace){
		.time_ns = r->stopped_ns,
		.pc = s->pc,
		.tgid = (uint32_t)r->target.pid,
		.tid = (uint32_t)tid,
		.has = INSN_TRACE_VALUES | INSN_TRACE_STEPPED,
		.flags = s->flags,
	};
	memcpy(w->r, s->r, sizeof(w->r));
	return fix(r);
}

static bool is_over(const struct step_recorder *r)
{
	return base_now_ns() - r->stopped_ns > STEP_STOP_NS;
}

/* It goes on where the interpreter says; a string instruction, once it has been repeated. */
static int step(struct step_recorder *r, uint64_t from, uint64_t next)
{
	int ran;

	do {
		ran = step_shadow_step(&r->shadow, &r->target, &r->regs);
		if (ran <= 0)
			return ran < 0 ? ran : VTRACE_FAULTS;
		if (r->regs.u.rip == next)
			return VTRACE_CONTINUES;
	} while (r->regs.u.rip == from && !is_over(r));
	return VTRACE_SYSTEM;
}

/* The last instruction is not completely known: it leaves the trace. */
static void take_back(struct step_recorder *r)
{
	struct insn_trace *w = &r->out.head.w;

	r->s.words[r->s.block_word]--;
	r->s.nr_insns--;
	while (w->nr_fixes && r->fixes[w->nr_fixes - 1].before > r->s.nr_insns)
		w->nr_fixes--;
}

/* Instruction @i of @c, whose micro-ops begin at @*uop. */
static int run_insn(struct step_recorder *r, const struct vtrace_code *c, unsigned int i,
		    unsigned int *uop)
{
	struct vtrace_memory m = { read_memory, r };
	uint64_t pc = c->block.pc + c->insns[i].offset, next;
	const struct vtrace_uop *u;
	int end;

	do {
		if (*uop == c->block.nr_uops)
			return VTRACE_UNDECODED;
		u = &c->uops[(*uop)++];
		end = vtrace_step(&m, &r->s, u);
	} while (end == VTRACE_CONTINUES && !(u->marks & VTRACE_LAST));
	if (end != VTRACE_CONTINUES)
		return end;
	next = i + 1u < c->block.nr_insns ? pc + c->insns[i].len : r->s.pc;
	end = step(r, pc, next);
	if (end != VTRACE_CONTINUES)
		return end;
	end = vtrace_commit(&r->s);
	if (end <= VTRACE_FULL && !fix(r)) {
		take_back(r);
		return VTRACE_TRACE;
	}
	return end;
}

/* Why it ended (VTRACE_CONTINUES: its time was over), or -errno. */
static int run(struct step_recorder *r)
{
	const struct vtrace_code *c = NULL;
	int end = enter(r, &c);

	for (unsigned int i = 0, uop = 0; end == VTRACE_CONTINUES && !is_over(r); i++) {
		if (i == c->block.nr_insns) {
			end = enter(r, &c);
			i = uop = 0;
		}
		if (end == VTRACE_CONTINUES)
			end = run_insn(r, c, i, &uop);
	}
	return end;
}

static void finish(struct step_recorder *r, int end)
{
	struct step_trace *out = &r->out.head;
	struct insn_trace *w = &out->w;
	const struct vtrace_state *s = &r->s;

	out->type = STEP_TRACE;
	w->nr_words = (uint16_t)(s->nr_words < VTRACE_NR_WORDS ? s->nr_words : VTRACE_NR_WORDS);
	w->nr_insns = s->nr_insns;
	w->end = (uint8_t)end;
	w->end_pc = s->pc;
	memcpy(w->failed, s->failed, sizeof(w->failed));
	memcpy(r->out.words, s->words, w->nr_words * sizeof(uint64_t));
	memcpy(r->out.words + w->nr_words, r->fixes, w->nr_fixes * sizeof(r->fixes[0]));
}

int step_record(struct step_recorder *r)
{
	pid_t tid = step_target_next(&r->target);
	int end = r->shadow.pid ? 0 : step_shadow_open(&r->shadow);

	r->out.head.stopped_ns = 0;
	/* No thread stands while the translator starts, which may take longer than its patience. */
	if (end < 0 || !tid || translator_ready(r->translator) < 0 ||
	    step_target_stop(&r->target, tid, &r->regs) <= 0)
		return end;
	r->stopped_ns = base_now_ns();
	end = begin(r, tid) ? step_shadow_begin(&r->shadow, &r->regs) : -DCPI_ELIMIT;
	if (end == 0)
		end = run(r);
	step_target_release(tid);
	r->out.head.stopped_ns = base_now_ns() - r->stopped_ns;
	/* Whatever failed, another shadow may succeed. */
	if (end < 0) {
		step_shadow_close(&r->shadow);
		return 0;
	}
	finish(r, end);
	return r->s.nr_insns;
}

void step_record_release(struct step_recorder *r)
{
	for (size_t i = 0; i < r->blocks.nr; i++)
		free(r->blocks.all[i]);
	free(r->blocks.all);
	base_map_release(&r->blocks.by_pc);
	step_shadow_close(&r->shadow);
	step_target_close(&r->target);
	translator_close(r->translator);
}
