/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "vtrace_blocks.h"

struct vtrace_blocks {
	struct vtrace_translator *translator;
	struct base_map by_pc;
	struct vtrace_code **all; /* by id */
	size_t nr, cap;
};

int vtrace_blocks_new(enum vtrace_arch arch, struct vtrace_blocks **out)
{
	struct vtrace_blocks *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return -ENOMEM;
	r = vtrace_translator_open(arch, &b->translator);
	if (r < 0)
		free(b);
	else
		*out = b;
	return r;
}

void vtrace_blocks_free(struct vtrace_blocks *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->nr; i++)
		free(b->all[i]);
	free(b->all);
	base_map_release(&b->by_pc);
	vtrace_translator_close(b->translator);
	free(b);
}

const struct vtrace_code *vtrace_blocks_get(const struct vtrace_blocks *b, uint32_t id)
{
	return id < b->nr ? b->all[id] : NULL;
}

uint64_t vtrace_pc(const struct vtrace_blocks *b, const struct vtrace_state *s)
{
	uint64_t word = s->nr_words ? s->words[s->block_word] : UINT64_MAX;
	const struct vtrace_code *c = vtrace_blocks_get(b, VTRACE_WORD_ID(word));
	int done;

	if (!c || !s->nr_words)
		return s->pc;
	done = vtrace_code_at(c, s->words[s->block_word + 1]) + (int)VTRACE_WORD_INSNS(word);
	return done < c->block.nr_insns ? s->block_pc + c->insns[done].offset : s->pc;
}

/* As much of the code at @pc as can be read: its page may be the last one. */
static size_t fetch(const struct vtrace_memory *m, uint64_t pc, uint8_t *code)
{
	size_t len = VTRACE_BLOCK_BYTES, page = 4096 - (pc & 4095);

	if (m->read(m->ctx, code, len, pc) >= 0)
		return len;
	return page < len && m->read(m->ctx, code, page, pc) >= 0 ? page : 0;
}

/* @code is taken over. */
static int keep(struct vtrace_blocks *b, struct vtrace_code *code)
{
	int r = base_grow(&b->all, &b->cap, b->nr + 1, sizeof(*b->all));

	code->block.id = (uint32_t)b->nr;
	if (r == 0)
		r = base_map_set(&b->by_pc, &code->block.pc, sizeof(code->block.pc), code);
	if (r == 0)
		b->all[b->nr++] = code;
	return r;
}

static int translate(struct vtrace_blocks *b, const struct vtrace_memory *m, uint64_t pc,
		     struct vtrace_code **out)
{
	uint8_t bytes[VTRACE_BLOCK_BYTES];
	size_t len = fetch(m, pc, bytes);
	struct vtrace_code *code = len ? malloc(sizeof(*code)) : NULL;
	int r = len ? -ENOMEM : -EFAULT;

	if (code)
		r = vtrace_translate(b->translator, bytes, len, pc, code);
	if (code && r == 0)
		r = keep(b, code);
	if (r < 0)
		free(code);
	else
		*out = code;
	return r;
}

/* One that has an instruction at @pc and is of the code that stands there; NULL: none. */
static struct vtrace_code *find(const struct vtrace_blocks *b, const struct vtrace_memory *m,
				uint64_t pc)
{
	for (uint64_t at = pc; pc - at < VTRACE_BLOCK_BYTES; at--) {
		struct vtrace_code *c = base_map_get(&b->by_pc, &at, sizeof(at));

		if (c && vtrace_code_at(c, pc) >= 0 && vtrace_code_is((void *)m, &c->block, at))
			return c;
	}
	return NULL;
}

/* The block where @s is, entered: its first micro-op to be run is *@uop. */
static enum vtrace_end enter(struct vtrace_blocks *b, const struct vtrace_memory *m,
			     struct vtrace_state *s, struct vtrace_code **out, size_t *uop)
{
	struct vtrace_code *c = find(b, m, s->pc);
	const struct vtrace_insn *first;

	if (!c && (translate(b, m, s->pc, &c) < 0 || !vtrace_code_is((void *)m, &c->block, s->pc)))
		return VTRACE_CODE;
	first = &c->insns[vtrace_code_at(c, s->pc)];
	*out = c;
	*uop = first->first;
	return (enum vtrace_end)vtrace_enter(s, &c->block, first->offset);
}

enum vtrace_end vtrace_run(struct vtrace_blocks *b, const struct vtrace_memory *m,
			   struct vtrace_state *s)
{
	struct vtrace_code *c;
	size_t i = 0;
	int end = enter(b, m, s, &c, &i);

	while (end == VTRACE_CONTINUES) {
		const struct vtrace_uop *u = &c->uops[i++];

		end = vtrace_step((void *)m, s, u);
		if (end == VTRACE_CONTINUES && u->marks & VTRACE_LAST)
			end = vtrace_commit(s);
		if (end == VTRACE_CONTINUES && i == c->block.nr_uops)
			end = enter(b, m, s, &c, &i);
	}
	return end;
}
