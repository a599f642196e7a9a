/* SPDX-License-Identifier: BSD-2-Clause */
/* Instructions as text: those of x86 through Zydis (x86_text.c), others through capstone. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <capstone/capstone.h>

#include "insn.h"
#include "x86_text.h"

struct insn_disasm {
	uint32_t machine;
	bool opened; /* capstone knows the machine */
	csh handle;
	cs_insn *insn;
	struct insn_x86_text x86;
	char data[16]; /* operand of what is no instruction, see insn_disasm_text */
};

static bool is_x86(const struct insn_disasm *d)
{
	return d->machine == EM_X86_64 || d->machine == EM_386;
}

static cs_err open_capstone(struct insn_disasm *d)
{
	switch (d->machine) {
	case EM_AARCH64:
		return cs_open(CS_ARCH_ARM64, CS_MODE_ARM, &d->handle);
#if CS_API_MAJOR >= 5
	case EM_RISCV:
		return cs_open(CS_ARCH_RISCV, CS_MODE_RISCV64 | CS_MODE_RISCVC, &d->handle);
#endif
	default:
		return CS_ERR_ARCH;
	}
}

int insn_disasm_open(uint32_t machine, struct insn_disasm **out, struct base_err *err)
{
	struct insn_disasm *d;

	if (machine != EM_X86_64 && machine != EM_386 && machine != EM_AARCH64 &&
	    machine != EM_RISCV)
		return base_fail(err, -DCPI_EUNSUPPORTED,
				 "cannot disassemble code for ELF machine %u", machine);
	d = calloc(1, sizeof(*d));
	if (!d)
		return base_fail_errno(err, -ENOMEM, "cannot disassemble");
	d->machine = machine;
	d->opened = open_capstone(d) == CS_ERR_OK;
	if (d->opened)
		d->insn = cs_malloc(d->handle);
	if (d->opened && !d->insn) {
		insn_disasm_close(d);
		return base_fail_errno(err, -ENOMEM, "cannot disassemble");
	}
	*out = d;
	return 0;
}

void insn_disasm_close(struct insn_disasm *d)
{
	if (!d)
		return;
	if (d->insn)
		cs_free(d->insn, 1);
	if (d->opened)
		cs_close(&d->handle);
	free(d);
}

/* ---- data ------------------------------------------------------------------------------------ */

/* How far to step over what is no instruction, so that the next one is found again. */
static uint32_t data_len(const struct insn_disasm *d, const uint8_t *code, size_t len)
{
	uint32_t want = 1;

	if (d->machine == EM_AARCH64)
		want = 4;
	else if (d->machine == EM_RISCV)
		want = (code[0] & 3) == 3 ? 4 : 2;
	return want <= len ? want : 1;
}

/* One number, as an assembler takes it. */
static void data_text(struct insn_disasm *d, const uint8_t *code, size_t len, struct insn_text *out)
{
	uint32_t value = 0;

	out->is_data = true;
	out->len = data_len(d, code, len);
	for (uint32_t i = 0; i < out->len; i++)
		value |= (uint32_t)code[i] << (8 * i);
	snprintf(d->data, sizeof(d->data), "0x%0*x", (int)out->len * 2, value);
	out->mnemonic = out->len == 1 ? ".byte" : out->len == 2 ? ".short" : ".word";
	out->operands = d->data;
}

/* ---- capstone -------------------------------------------------------------------------------- */

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Mnemonics of branches and calls that may be direct; indirect ones have other operands. */
static bool may_branch(const struct insn_disasm *d, const char *m)
{
	if (d->machine == EM_AARCH64)
		return (m[0] == 'b' && (!m[1] || m[1] == '.' || (m[1] == 'l' && !m[2]))) ||
		       begins(m, "cbz") || begins(m, "cbnz") || begins(m, "tbz") ||
		       begins(m, "tbnz");
	return m[0] == 'b' || m[0] == 'j' || begins(m, "c.b") || begins(m, "c.j");
}

static void find_text_target(const struct insn_disasm *d, const char *operands, uint64_t vaddr,
			     struct insn_text *out)
{
	const char *at = strrchr(operands, ' '), *number;
	char *end;

	at = at ? at + 1 : operands;
	number = *at == '#' ? at + 1 : at;
	if (strncmp(number, "0x", 2) != 0)
		return;
	out->target = strtoull(number, &end, 16);
	if (*end)
		return;
	if (d->machine == EM_RISCV)
		out->target += vaddr;
	out->target_at = (size_t)(at - operands);
	out->has_target = true;
}

void insn_disasm_text(struct insn_disasm *d, const uint8_t *code, size_t len, uint64_t vaddr,
		      struct insn_text *out)
{
	const uint8_t *at = code;
	uint64_t address = vaddr;
	size_t left = len;

	memset(out, 0, sizeof(*out));
	if (is_x86(d) && insn_x86_text(d->machine == EM_X86_64, code, len, vaddr, &d->x86, out))
		return;
	if (!d->opened || !cs_disasm_iter(d->handle, &at, &left, &address, d->insn)) {
		data_text(d, code, len, out);
		return;
	}
	out->len = d->insn->size;
	out->mnemonic = d->insn->mnemonic;
	out->operands = d->insn->op_str;
	if (may_branch(d, out->mnemonic))
		find_text_target(d, out->operands, vaddr, out);
}

void insn_disasm_one(struct insn_disasm *d, const uint8_t *code, size_t len, uint64_t vaddr,
		     struct insn_line *out)
{
	struct insn_text text;
	size_t name_len;

	insn_disasm_text(d, code, len, vaddr, &text);
	*out = (struct insn_line){ .vaddr = vaddr,
				   .len = text.len,
				   .has_target = text.has_target,
				   .target = text.target };
	snprintf(out->text, sizeof(out->text), *text.operands ? "%-7s %s" : "%s%s", text.mnemonic,
		 text.operands);
	if (!text.has_target)
		return;
	name_len = strlen(text.mnemonic);
	out->target_at = (uint16_t)((name_len < 7 ? 7 : name_len) + 1 + text.target_at);
	out->target_len = (uint16_t)(strlen(out->text) - out->target_at);
}
