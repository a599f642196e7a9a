/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flow graphs: the first byte chooses the machine, the rest is code at 0x1000 with its last quarter
 * as the tables that it may read. Whatever it is, the graph must hold together.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "flow.h"
#include "stall.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { BASE = 0x1000 };

struct input {
	const uint8_t *code;
	size_t len;
};

static struct image_symbol procedure = { "f", BASE, 0 }, cold = { "f.cold", BASE, 0 };

static size_t bytes(void *context, uint64_t vaddr, void *out, size_t len)
{
	const struct input *in = context;

	if (vaddr - BASE >= in->len)
		return 0;
	if (len > in->len - (vaddr - BASE))
		len = in->len - (vaddr - BASE);
	memcpy(out, in->code + (vaddr - BASE), len);
	return len;
}

static const struct image_symbol *symbol_at(void *context, uint64_t vaddr)
{
	(void)context;
	if (vaddr - procedure.vaddr < procedure.len)
		return &procedure;
	return vaddr - cold.vaddr < cold.len ? &cold : NULL;
}

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void check_blocks(const struct flow *f)
{
	uint32_t insn = 0;

	for (uint32_t b = 0; b < f->nr_blocks; b++) {
		const struct flow_block *block = &f->blocks[b];
		uint64_t at = block->vaddr;

		require(block->insn == insn && block->nr_insns && block->nr_in && block->nr_out);
		require(block->eq_class < f->nr_classes);
		require(!b || f->blocks[b - 1].end <= block->vaddr);
		for (uint32_t i = 0; i < block->nr_insns; i++, insn++) {
			require(f->insns[insn].vaddr == at && f->insns[insn].len);
			require(flow_insn_at(f, at) == &f->insns[insn]);
			at += f->insns[insn].len;
		}
		require(at == block->end && flow_block_at(f, at - 1) == b);
	}
	require(insn == f->nr_insns);
}

static void check_edges(const struct flow *f)
{
	uint32_t in = 0, out = 0;

	for (uint32_t i = 0; i < f->nr_edges; i++) {
		const struct flow_edge *e = &f->edges[i];

		require(e->from == FLOW_OUTSIDE ? e->kind == FLOW_ENTRY : e->from < f->nr_blocks);
		require(e->to == FLOW_OUTSIDE ? e->kind == FLOW_EXIT : e->to < f->nr_blocks);
		require(e->eq_class < f->nr_classes);
	}
	for (uint32_t b = 0; b < f->nr_blocks; b++) {
		const struct flow_block *block = &f->blocks[b];

		for (uint32_t i = 0; i < block->nr_in; i++, in++)
			require(f->edges[f->into[block->in + i]].to == b);
		for (uint32_t i = 0; i < block->nr_out; i++, out++)
			require(f->edges[f->out_of[block->out + i]].from == b);
		/* The only way in or out of a block runs as often as the block. */
		require(block->nr_in > 1 ||
			f->edges[f->into[block->in]].eq_class == block->eq_class);
		require(block->nr_out > 1 ||
			f->edges[f->out_of[block->out]].eq_class == block->eq_class);
	}
	for (uint32_t i = 0; i < f->nr_edges; i++) {
		in -= f->edges[i].to != FLOW_OUTSIDE;
		out -= f->edges[i].from != FLOW_OUTSIDE;
	}
	require(!in && !out);
}

/* Walk it as a program might: each class must be passed as often as its members. */
static void check_classes(const struct flow *f)
{
	uint64_t *block = calloc((size_t)f->nr_blocks + 1, sizeof(*block));
	uint64_t *edge = calloc((size_t)f->nr_edges + 1, sizeof(*edge));
	uint64_t *count = calloc((size_t)f->nr_classes + 1, sizeof(*count));
	uint32_t seed = 12345, at = FLOW_OUTSIDE, nr_entries = 0, *entries;

	entries = calloc((size_t)f->nr_edges + 1, sizeof(*entries));
	require(block && edge && count && entries);
	for (uint32_t i = 0; i < f->nr_edges; i++)
		if (f->edges[i].from == FLOW_OUTSIDE)
			entries[nr_entries++] = i;
	for (int step = 0; nr_entries && (step < 2000 || at != FLOW_OUTSIDE); step++) {
		uint32_t e;

		if (step > 1000000)
			goto out; /* it does not find its way out by chance */
		seed = seed * 1103515245 + 12345;
		if (at == FLOW_OUTSIDE) {
			e = entries[(seed >> 8) % nr_entries];
		} else {
			block[at]++;
			e = f->out_of[f->blocks[at].out + (seed >> 8) % f->blocks[at].nr_out];
		}
		edge[e]++;
		at = f->edges[e].to;
	}
	memset(count, 0xff, ((size_t)f->nr_classes + 1) * sizeof(*count));
	for (uint32_t b = 0; b < f->nr_blocks; b++) {
		uint64_t *c = &count[f->blocks[b].eq_class];

		require(*c == UINT64_MAX || *c == block[b]);
		*c = block[b];
	}
	for (uint32_t i = 0; i < f->nr_edges; i++) {
		uint64_t *c = &count[f->edges[i].eq_class];

		require(*c == UINT64_MAX || *c == edge[i]);
		*c = edge[i];
	}
out:
	free(block);
	free(edge);
	free(count);
	free(entries);
}

/* Whatever the samples are, they are all accounted for. */
static void check_stalls(const struct flow *f, uint32_t machine)
{
	double *samples = calloc((size_t)f->nr_insns + 1, sizeof(*samples)), sum = 0, all = 0;
	const struct stall_evidence evidence[] = {
		{ STALL_MEMORY, false, samples, 0.3, NULL },
		{ STALL_FRONT_END, true, samples, 0.01, samples },
	};
	struct stall_input in = { .flow = f,
				  .samples = samples,
				  .machine = machine,
				  .evidence = evidence,
				  .nr_evidence = 2 };
	struct stall s;

	require(samples);
	for (uint32_t i = 0; i < f->nr_insns; i++)
		all += samples[i] = (double)(f->insns[i].vaddr * 7 % 13);
	in.outside = (enum stall_outside)(f->nr_insns % 3);
	require(stall_find(&in, &s) == 0);
	sum = s.total.execution + s.total.unexplained;
	for (int c = 0; c < STALL_NR_CAUSES; c++)
		sum += s.total.cause[c].likely;
	require(sum > all * 0.999999 - 1e-6 && sum < all * 1.000001 + 1e-6);
	stall_release(&s);
	free(samples);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const uint32_t machines[] = { EM_X86_64, EM_386, EM_AARCH64, EM_RISCV };
	static struct insn_decoder *decoders[4];
	uint8_t which = len ? data[0] & 3 : 0;
	struct input in = { data + 1, len ? len - 1 : 0 };
	const struct flow_source source = { &in, bytes, NULL, symbol_at };
	struct base_err err = { 0 };
	struct flow *f = NULL;

	if (!decoders[which] && insn_decoder_open(machines[which], &decoders[which], &err) < 0)
		abort();
	procedure.len = in.len / 2;
	cold.vaddr = BASE + procedure.len;
	cold.len = in.len / 4;
	if (flow_build_from(&source, decoders[which], &procedure, &f, &err) < 0)
		abort();
	check_blocks(f);
	check_edges(f);
	check_classes(f);
	check_stalls(f, machines[which]);
	flow_free(f);
	return 0;
}
