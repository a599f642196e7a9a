/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames of call paths are checked against the code: a caller's call leads to its callee. */
#include "called.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum {
	CALL_MAX = 9,	     /* bytes of a call, with its prefixes */
	JUMPS_MAX = 4,	     /* procedures that jump on, one to the next */
	PROCEDURES_MAX = 16, /* that are looked through for that */
	CODE_MAX = 64 << 10, /* bytes of one */
	SIGRETURN_MAX = 9,
};

/* The search for a way from a call's target to the procedure. */
struct search {
	struct insn_decoder *d;
	struct image *caller;
	const struct image_symbol *to;
	bool here;
	uint64_t seen[PROCEDURES_MAX];
	size_t nr_seen;
};

bool analysis_is_sigreturn(const struct image *img, uint64_t vaddr)
{
	static const uint8_t x86[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t aarch64[] = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 };
	const bool arm = image_machine(img) == EM_AARCH64;
	const size_t len = arm ? sizeof(aarch64) : sizeof(x86);
	uint8_t code[SIGRETURN_MAX];

	return image_bytes(img, vaddr, code, len) == len &&
	       memcmp(code, arm ? aarch64 : x86, len) == 0;
}

/* A stub of the linker's, which has the name of what it jumps to: "NAME@plt". */
static size_t stub_name_len(const struct image_symbol *s)
{
	const char *at = strstr(s->name, "@plt");

	return at ? (size_t)(at - s->name) : 0;
}

static enum called leads_on(struct search *s, uint64_t target, unsigned int depth);

/* Where the instruction @i of procedure @p goes, outside of @p. */
static enum called goes_on(struct search *s, const struct image_symbol *p, const struct insn *i,
			   unsigned int depth)
{
	uint64_t next = i->vaddr + i->len;

	if (i->flow == INSN_INDIRECT_JUMP)
		return CALLED_UNCHECKED;
	if ((i->flow == INSN_JUMP || i->flow == INSN_BRANCH) && i->target - p->vaddr >= p->len)
		return leads_on(s, i->target, depth + 1);
	/* The last one of a procedure that runs into the next. */
	if (next - p->vaddr >= p->len && i->flow <= INSN_BRANCH)
		return leads_on(s, next, depth + 1);
	return CALLED_CONTRADICTED;
}

/* The jumps of procedure @p from @vaddr on. */
static enum called jumps_on(struct search *s, const struct image_symbol *p, uint64_t vaddr,
			    unsigned int depth)
{
	const uint64_t left = p->vaddr + p->len - vaddr;
	uint8_t *code = left <= CODE_MAX ? malloc((size_t)left) : NULL;
	size_t len = code ? image_bytes(s->caller, vaddr, code, (size_t)left) : 0, at = 0;
	enum called result = len == left ? CALLED_CONTRADICTED : CALLED_UNCHECKED;

	while (at < len && result != CALLED_AGREES) {
		enum called one;
		struct insn i;

		insn_decode_flow(s->d, code + at, len - at, vaddr + at, &i);
		at += i.len;
		one = goes_on(s, p, &i, depth);
		if (one < result)
			result = one;
	}
	free(code);
	return result;
}

static enum called leads_on(struct search *s, uint64_t target, unsigned int depth)
{
	const struct image_symbol *p = image_symbol_at(s->caller, target);
	size_t stub = p ? stub_name_len(p) : 0;

	if (s->here && target - s->to->vaddr < s->to->len)
		return CALLED_AGREES;
	if (stub)
		return strlen(s->to->name) == stub && strncmp(s->to->name, p->name, stub) == 0
			       ? CALLED_AGREES
			       : CALLED_UNCHECKED;
	if (!p || depth == JUMPS_MAX || s->nr_seen == PROCEDURES_MAX)
		return CALLED_UNCHECKED;
	for (size_t i = 0; i < s->nr_seen; i++)
		if (s->seen[i] == target)
			return CALLED_CONTRADICTED;
	s->seen[s->nr_seen++] = target;
	return jumps_on(s, p, target, depth);
}

/* The verdict by the one instruction that would be the call. */
static enum called by_call(struct search *s, const struct insn *call, bool patched)
{
	enum called result;

	if (call->flow == INSN_INDIRECT_CALL)
		return CALLED_AGREES;
	if (!s->to)
		return CALLED_UNCHECKED;
	s->nr_seen = 0;
	result = leads_on(s, call->target, 0);
	return patched && result == CALLED_CONTRADICTED ? CALLED_UNCHECKED : result;
}

enum called analysis_called(struct insn_decoder *d, struct image *caller, uint64_t last,
			    const struct image_symbol *to, bool here, bool patched)
{
	struct search s = { .d = d, .caller = caller, .to = to, .here = here };
	enum called result = CALLED_CONTRADICTED;
	uint8_t code[CALL_MAX];

	if (image_bytes(caller, last, code, 1) != 1)
		return CALLED_UNCHECKED;
	/* The bytes before it may be read in several ways: any that is a call may be the one. */
	for (uint32_t len = 1; len <= CALL_MAX && len <= last && result != CALLED_AGREES; len++) {
		const uint64_t start = last + 1 - len;
		enum called one;
		struct insn i;

		if (image_bytes(caller, start, code, len) != len)
			break;
		insn_decode_flow(d, code, len, start, &i);
		if (i.len != len || (i.flow != INSN_CALL && i.flow != INSN_INDIRECT_CALL))
			continue;
		one = by_call(&s, &i, patched);
		if (one < result)
			result = one;
	}
	return result;
}
