/* SPDX-License-Identifier: BSD-2-Clause */
/* One decoder for all machines: it asks the machine's own (machine.h). */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "machine.h"

struct insn_decoder {
	const struct insn_machine *machine;
	void *state;
};

static const struct insn_machine *machine_of(uint32_t machine)
{
	switch (machine) {
	case EM_X86_64:
		return &insn_x86_64;
	case EM_386:
		return &insn_x86_32;
	case EM_AARCH64:
		return &insn_aarch64;
	case EM_RISCV:
		return &insn_riscv;
	default:
		return NULL;
	}
}

int insn_decoder_open(uint32_t machine, struct insn_decoder **out, struct base_err *err)
{
	const struct insn_machine *m = machine_of(machine);
	struct insn_decoder *d;
	int r = 0;

	if (!m)
		return base_fail(err, -DCPI_EUNSUPPORTED,
				 "cannot follow the flow of code for ELF machine %u", machine);
	d = calloc(1, sizeof(*d));
	if (!d)
		return base_fail_errno(err, -ENOMEM, "cannot decode instructions");
	d->machine = m;
	if (m->open)
		r = m->open(&d->state);
	if (r < 0) {
		free(d);
		return base_fail_errno(err, r, "cannot decode instructions");
	}
	*out = d;
	return 0;
}

void insn_decoder_close(struct insn_decoder *d)
{
	if (!d)
		return;
	if (d->machine->close)
		d->machine->close(d->state);
	free(d);
}

uint64_t insn_call_writes(const struct insn_decoder *d)
{
	return d->machine->call_writes;
}

/* Turn @out, of which vaddr is set, into a step over what is no instruction. */
static void as_data(const struct insn_decoder *d, const uint8_t *code, size_t len, struct insn *out)
{
	uint8_t want = d->machine->step(code);

	*out = (struct insn){ .vaddr = out->vaddr,
			      .flow = INSN_DATA,
			      .len = want <= len ? want : 1,
			      .base = INSN_NO_REGISTER,
			      .index = INSN_NO_REGISTER };
}

void insn_decode(struct insn_decoder *d, const uint8_t *code, size_t len, uint64_t vaddr,
		 struct insn *out)
{
	*out = (struct insn){ .vaddr = vaddr, .base = INSN_NO_REGISTER, .index = INSN_NO_REGISTER };
	if (!d->machine->decode(d->state, code, len, out))
		as_data(d, code, len, out);
}

void insn_decode_flow(struct insn_decoder *d, const uint8_t *code, size_t len, uint64_t vaddr,
		      struct insn *out)
{
	if (!d->machine->decode_flow) {
		insn_decode(d, code, len, vaddr, out);
		return;
	}
	*out = (struct insn){ .vaddr = vaddr };
	if (!d->machine->decode_flow(d->state, code, len, out))
		as_data(d, code, len, out);
}

void insn_decode_op(struct insn_decoder *d, const uint8_t *code, size_t len, uint64_t vaddr,
		    struct insn_op *out)
{
	*out = (struct insn_op)INSN_OP_UNKNOWN;
	d->machine->op(d->state, code, len, vaddr, out);
}

enum insn_condition insn_decode_condition(struct insn_decoder *d, const uint8_t *code, size_t len,
					  struct insn_op *op)
{
	return d->machine->condition(code, len, op);
}

int insn_stack_move(struct insn_decoder *d, const uint8_t *code, size_t len)
{
	return d->machine->stack_move(d->state, code, len);
}

bool insn_jumps_within(const struct insn_decoder *d, const uint8_t *code, size_t len)
{
	return d->machine->jumps_within && d->machine->jumps_within(code, len);
}
