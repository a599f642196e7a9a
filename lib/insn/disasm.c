/* SPDX-License-Identifier: BSD-2-Clause */
/* Instructions as text, through capstone, and what of an x86 instruction moving it changes. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <capstone/capstone.h>

#include "disasm.h"
#include "x86.h"

struct insn_disasm {
	uint32_t machine;
	bool opened; /* else everything is data */
	csh handle;
	cs_insn *insn;
	char data[96]; /* operand of what is no instruction, see insn_disasm_text */
};

static cs_err open_machine(struct insn_disasm *d)
{
	switch (d->machine) {
	case EM_X86_64:
		return cs_open(CS_ARCH_X86, CS_MODE_64, &d->handle);
	case EM_386:
		return cs_open(CS_ARCH_X86, CS_MODE_32, &d->handle);
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
	d->opened = open_machine(d) == CS_ERR_OK;
	if (d->opened) {
		cs_option(d->handle, CS_OPT_DETAIL, CS_OPT_ON);
		if (machine == EM_X86_64 || machine == EM_386)
			cs_option(d->handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
		d->insn = cs_malloc(d->handle);
	}
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

/* How far to step over what is no instruction, or none that capstone knows, so that the next one is
 * found again: where the flow graph has it. */
static uint32_t data_len(const struct insn_disasm *d, const uint8_t *code, size_t len)
{
	struct insn newer = { .base = INSN_NO_REGISTER, .index = INSN_NO_REGISTER };
	uint32_t want = 1;

	if (d->machine == EM_X86_64 && insn_x86_new(code, len, &newer))
		return newer.len;
	if (d->machine == EM_AARCH64)
		want = 4;
	else if (d->machine == EM_RISCV)
		want = (code[0] & 3) == 3 ? 4 : 2;
	return want <= len ? want : 1;
}

static bool in_bytes(const struct insn_disasm *d, uint32_t len)
{
	return len == 1 || d->machine == EM_X86_64;
}

static const char *data_name(const struct insn_disasm *d, uint32_t len)
{
	return in_bytes(d, len) ? ".byte" : len == 2 ? ".short" : ".word";
}

/* One number, or its bytes, as an assembler takes them. */
static void data_text(const struct insn_disasm *d, const uint8_t *code, uint32_t len, char *out,
		      size_t size)
{
	uint32_t value = 0;
	size_t n = 0;

	if (in_bytes(d, len)) {
		for (uint32_t i = 0; i < len && n < size; i++)
			n += (size_t)snprintf(out + n, size - n, i ? ", 0x%02x" : "0x%02x",
					      code[i]);
		return;
	}
	for (uint32_t i = 0; i < len; i++)
		value |= (uint32_t)code[i] << (8 * i);
	snprintf(out, size, "0x%0*x", (int)len * 2, value);
}

static void as_data(const struct insn_disasm *d, const uint8_t *code, size_t len,
		    struct insn_line *out)
{
	int n;

	out->len = data_len(d, code, len);
	n = snprintf(out->text, sizeof(out->text), "%-7s ", data_name(d, out->len));
	data_text(d, code, out->len, out->text + n, sizeof(out->text) - (size_t)n);
}

static bool is_direct_branch(const cs_insn *insn)
{
	for (uint8_t i = 0; insn->detail && i < insn->detail->groups_count; i++)
		if (insn->detail->groups[i] == CS_GRP_BRANCH_RELATIVE)
			return true;
	return false;
}

/* The last number of a direct branch is its target; an indirect one has none, or brackets. */
static void find_target(const struct insn_disasm *d, const cs_insn *insn, struct insn_line *out)
{
	const char *at = NULL;
	char *end;

	if (!is_direct_branch(insn) || strpbrk(insn->op_str, "*[("))
		return;
	for (const char *p = out->text; (p = strstr(p, "0x")); p += 2)
		at = p;
	if (!at)
		return;
	if (at > out->text && at[-1] == '-')
		return;
	out->target = strtoull(at, &end, 16);
	/* capstone prints the distance there */
	if (d->machine == EM_RISCV)
		out->target += insn->address;
	if (at > out->text && at[-1] == '#')
		at--;
	out->target_at = (uint16_t)(at - out->text);
	out->target_len = (uint16_t)(end - at);
	out->has_target = *end == '\0';
}

void insn_disasm_one(struct insn_disasm *d, const uint8_t *code, size_t len, uint64_t vaddr,
		     struct insn_line *out)
{
	const uint8_t *at = code;
	uint64_t address = vaddr;

	memset(out, 0, sizeof(*out));
	out->vaddr = vaddr;
	if (!d->opened || !cs_disasm_iter(d->handle, &at, &len, &address, d->insn)) {
		as_data(d, code, len, out);
		return;
	}
	out->len = d->insn->size;
	if (*d->insn->op_str)
		snprintf(out->text, sizeof(out->text), "%-7s %s", d->insn->mnemonic,
			 d->insn->op_str);
	else
		snprintf(out->text, sizeof(out->text), "%s", d->insn->mnemonic);
	find_target(d, d->insn, out);
}

/* ---- text alone ---------------------------------------------------------------------------- */

void insn_disasm_plain(struct insn_disasm *d)
{
	if (d->opened)
		cs_option(d->handle, CS_OPT_DETAIL, CS_OPT_OFF);
}

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
	if (d->machine == EM_RISCV)
		return m[0] == 'b' || m[0] == 'j' || begins(m, "c.b") || begins(m, "c.j");
	if (m[0] != 'j' && m[0] != 'c' && m[0] != 'l' && m[0] != 'x' && m[0] != 'b' && m[0] != 'n')
		return false;
	/* "bnd jmp", "notrack jmp" */
	if (begins(m, "bnd "))
		m += 4;
	else if (begins(m, "notrack "))
		m += 8;
	return m[0] == 'j' || begins(m, "call") || begins(m, "loop") || begins(m, "xbegin");
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
	if (!d->opened || !cs_disasm_iter(d->handle, &at, &left, &address, d->insn)) {
		out->len = data_len(d, code, len);
		out->mnemonic = data_name(d, out->len);
		data_text(d, code, out->len, d->data, sizeof(d->data));
		out->operands = d->data;
		return;
	}
	out->len = d->insn->size;
	out->mnemonic = d->insn->mnemonic;
	out->operands = d->insn->op_str;
	if (may_branch(d, out->mnemonic))
		find_text_target(d, out->operands, vaddr, out);
}

/* ---- masking ------------------------------------------------------------------------------- */

/* Does a direct branch stay in [start, end)? */
static bool stays(const cs_insn *insn, uint64_t start, uint64_t end)
{
	const cs_x86 *x = &insn->detail->x86;
	uint64_t target = x->op_count ? (uint64_t)x->operands[0].imm : 0;

	return x->op_count && x->operands[0].type == X86_OP_IMM && target >= start && target < end;
}

/* An address without a register to count from, or one that counts from the instruction. */
static bool is_place(const cs_x86 *x)
{
	for (uint8_t i = 0; i < x->op_count; i++)
		if (x->operands[i].type == X86_OP_MEM &&
		    (x->operands[i].mem.base == X86_REG_RIP ||
		     x->operands[i].mem.base == X86_REG_INVALID))
			return true;
	return false;
}

static void mask_part(uint8_t *code, size_t insn_len, uint8_t at, uint8_t len)
{
	if (at && at < insn_len && len <= insn_len - at)
		memset(code + at, 0, len);
}

/* Behind an operand-size prefix, which is part of most opcodes of SSE and AVX, capstone 4 takes the
 * 4 bytes for 2. */
static uint8_t place_size(const cs_x86 *x)
{
	return x->encoding.disp_size < 4 ? 4 : x->encoding.disp_size;
}

/* What capstone does not know; a byte of no instruction stays. */
static size_t mask_newer(const struct insn_disasm *d, uint8_t *code, size_t len)
{
	size_t own = data_len(d, code, len);

	if (d->machine == EM_X86_64)
		mask_part(code, own, insn_x86_new_place(code, own), 4);
	return own;
}

size_t insn_disasm_mask_x86(struct insn_disasm *d, uint8_t *code, size_t len, uint64_t vaddr,
			    uint64_t start, uint64_t end)
{
	const uint8_t *at = code;
	uint64_t address = vaddr;
	const cs_x86 *x;

	if (!d->opened || !cs_disasm_iter(d->handle, &at, &len, &address, d->insn) ||
	    !d->insn->detail)
		return mask_newer(d, code, len);
	x = &d->insn->detail->x86;
	/* Of a far jump, which only 32-bit code has, capstone leaves the size undefined. */
	if (is_direct_branch(d->insn) ? !stays(d->insn, start, end)
				      : d->machine == EM_X86_64 && x->encoding.imm_size == 8)
		mask_part(code, d->insn->size, x->encoding.imm_offset, x->encoding.imm_size);
	if (is_place(x))
		mask_part(code, d->insn->size, x->encoding.disp_offset, place_size(x));
	return d->insn->size;
}
