/* SPDX-License-Identifier: BSD-2-Clause */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flow_internal.h"

struct flow_decoder {
	uint32_t machine;
	struct flow_x86 *x86;
};

int flow_decoder_open(uint32_t machine, struct flow_decoder **out, struct base_err *err)
{
	struct flow_decoder *d;
	int r = 0;

	if (machine != EM_X86_64 && machine != EM_386 && machine != EM_AARCH64 &&
	    machine != EM_RISCV)
		return base_fail(err, -DCPI_EUNSUPPORTED,
				 "cannot follow the flow of code for ELF machine %u", machine);
	d = calloc(1, sizeof(*d));
	if (!d)
		return base_fail_errno(err, -ENOMEM, "cannot decode instructions");
	d->machine = machine;
	if (machine == EM_X86_64 || machine == EM_386)
		r = flow_x86_open(machine == EM_X86_64, &d->x86);
	if (r < 0) {
		free(d);
		return base_fail_errno(err, r, "cannot decode instructions");
	}
	*out = d;
	return 0;
}

void flow_decoder_close(struct flow_decoder *d)
{
	if (!d)
		return;
	flow_x86_close(d->x86);
	free(d);
}

/* By the calling convention of the machine: what it does not say to be kept. */
uint64_t flow_call_writes(const struct flow_decoder *d)
{
	switch (d->machine) {
	case EM_X86_64:
		return FLOW_FLAGS | 0x0fc7;
	case EM_386:
		return FLOW_FLAGS | 0x7;
	case EM_AARCH64:
		return FLOW_FLAGS | 0x4007ffff;
	default:
		return FLOW_FLAGS | 0xf003fce2;
	}
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* How far to step over what is no instruction, so that the next one is found again. */
static uint8_t data_len(const struct flow_decoder *d, const uint8_t *code, size_t len)
{
	uint8_t want = 1;

	if (d->machine == EM_AARCH64)
		want = 4;
	else if (d->machine == EM_RISCV)
		want = (code[0] & 3) == 3 ? 4 : 2;
	return want <= len ? want : 1;
}

static bool decode(struct flow_decoder *d, const uint8_t *code, size_t len, struct flow_insn *out)
{
	if (d->x86)
		return flow_x86_insn(d->x86, code, len, out);
	if (d->machine == EM_RISCV)
		return flow_riscv_insn(code, len, out);
	out->len = 4;
	return len >= 4 && flow_aarch64_insn(get32(code), out);
}

void flow_decode(struct flow_decoder *d, const uint8_t *code, size_t len, uint64_t vaddr,
		 struct flow_insn *out)
{
	const struct flow_insn empty = { .vaddr = vaddr,
					 .base = FLOW_NO_REGISTER,
					 .index = FLOW_NO_REGISTER };

	*out = empty;
	if (decode(d, code, len, out))
		return;
	*out = empty;
	out->flow = FLOW_DATA;
	out->len = data_len(d, code, len);
}

void flow_decode_flow(struct flow_decoder *d, const uint8_t *code, size_t len, uint64_t vaddr,
		      struct flow_insn *out)
{
	*out = (struct flow_insn){ .vaddr = vaddr };
	if (d->machine != EM_X86_64 || !flow_x86_quick(code, len, out))
		flow_decode(d, code, len, vaddr, out);
}

void flow_decode_op(struct flow_decoder *d, const uint8_t *code, size_t len, uint64_t vaddr,
		    struct flow_op *out)
{
	*out = (struct flow_op){ .dst = FLOW_NO_REGISTER,
				 .a = FLOW_NO_REGISTER,
				 .b = FLOW_NO_REGISTER,
				 .plus = FLOW_NO_REGISTER,
				 .scale = 1,
				 .size = 8,
				 .b_size = 8,
				 .max = UINT64_MAX };
	if (d->x86)
		flow_x86_op(d->x86, code, len, vaddr, out);
	else if (d->machine == EM_RISCV)
		flow_riscv_op(code, len, vaddr, out);
	else if (len >= 4)
		flow_aarch64_op(get32(code), vaddr, out);
}

enum flow_condition flow_decode_condition(struct flow_decoder *d, const uint8_t *code, size_t len,
					  struct flow_op *op)
{
	if (d->x86)
		return flow_x86_condition(code, len);
	if (d->machine == EM_RISCV)
		return flow_riscv_condition(code, len, op);
	return len >= 4 ? flow_aarch64_condition(get32(code)) : FLOW_OTHER;
}

int flow_stack_move(struct flow_decoder *d, const uint8_t *code, size_t len)
{
	struct flow_op op;

	if (d->x86)
		return flow_x86_stack_move(code, len);
	if (d->machine == EM_AARCH64)
		return len >= 4 ? flow_aarch64_stack_move(get32(code)) : 0;
	flow_decode_op(d, code, len, 0, &op);
	if (op.dst != 2 || op.a != 2 || op.load)
		return 0;
	return op.disp > 0 ? 1 : -1;
}

bool flow_jumps_within(const struct flow_decoder *d, const uint8_t *code, size_t len)
{
	return d->x86 && len && *code == 0x3e;
}
