/* SPDX-License-Identifier: BSD-2-Clause */
/* The starts of procedures, found in the code that calls them or takes their addresses. */
#include <elf.h>
#include <errno.h>

#include "insn.h"
#include "starts.h"

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* "lea 0x1234(%rip), %rdi" */
static bool taken_x86(const uint8_t *code, const struct insn *insn, uint64_t *to)
{
	if (insn->len != 7 || (code[0] & 0xfb) != 0x48 || code[1] != 0x8d ||
	    (code[2] & 0xc7) != 0x05)
		return false;
	*to = insn->vaddr + insn->len + (uint64_t)(int64_t)(int32_t)get32(code + 3);
	return true;
}

/* "adrp x0, 0x41000; add x0, x0, #0x234" */
static bool taken_aarch64(const uint8_t *code, size_t len, const struct insn *insn, uint64_t *to)
{
	uint32_t adrp, add;
	uint64_t pages;

	if (len < 8)
		return false;
	adrp = get32(code);
	add = get32(code + 4);
	if ((adrp & 0x9f000000) != 0x90000000 || (add & 0xffc00000) != 0x91000000 ||
	    (add & 31) != (adrp & 31) || (add >> 5 & 31) != (adrp & 31))
		return false;
	pages = (adrp >> 29 & 3) | (adrp >> 5 & 0x7ffff) << 2;
	if (pages & 1 << 20)
		pages |= ~UINT64_C(0) << 20;
	*to = (insn->vaddr & ~UINT64_C(0xfff)) + (pages << 12) + (add >> 10 & 0xfff);
	return true;
}

static bool taken(uint32_t machine, const uint8_t *code, size_t len, const struct insn *insn,
		  uint64_t *to)
{
	if (machine == EM_X86_64)
		return taken_x86(code, insn, to);
	return machine == EM_AARCH64 && taken_aarch64(code, len, insn, to);
}

struct passing {
	struct image_pointed *v;
	size_t nr, at;
	enum image_before before;
};

static enum image_before before_next(const struct insn *insn)
{
	switch (insn->flow) {
	case INSN_JUMP:
	case INSN_RETURN:
	case INSN_TRAP:
		return IMAGE_BEFORE_END;
	case INSN_INDIRECT_JUMP:
		return IMAGE_BEFORE_INDIRECT;
	default:
		return IMAGE_BEFORE_OTHER;
	}
}

static void pass(struct passing *p, const struct insn *insn)
{
	while (p->at < p->nr && p->v[p->at].vaddr < insn->vaddr)
		p->at++;
	if (p->at < p->nr && p->v[p->at].vaddr == insn->vaddr)
		p->v[p->at].before = p->before;
	if (!(insn->kinds & INSN_PADDING))
		p->before = before_next(insn);
}

int analysis_starts(uint32_t machine, const uint8_t *code, size_t len, uint64_t vaddr,
		    struct image_pointed *pointed, size_t nr_pointed, image_start_fn *fn, void *ctx)
{
	struct passing passing = { pointed, nr_pointed, 0, IMAGE_BEFORE_END };
	struct insn_decoder *d;
	struct insn insn;
	uint64_t to;
	int r = insn_decoder_open(machine, &d, NULL);

	if (r < 0)
		return r;
	for (size_t at = 0; at < len && r >= 0; at += insn.len) {
		insn_decode_flow(d, code + at, len - at, vaddr + at, &insn);
		pass(&passing, &insn);
		/* A call to the next instruction is how code obtains its own address. */
		if (insn.flow == INSN_CALL && insn.target != insn.vaddr + insn.len)
			r = fn(ctx, insn.target);
		else if (taken(machine, code + at, len - at, &insn, &to))
			r = fn(ctx, to);
	}
	insn_decoder_close(d);
	return r;
}
