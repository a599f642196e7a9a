/* SPDX-License-Identifier: BSD-2-Clause */
/* x86 instructions through Zydis: their operands, registers, and where their numbers stand. */
#include "insn_x86.h"

static ZydisDecoder decoder_for(bool is_64)
{
	ZydisDecoder d;

	ZydisDecoderInit(&d, is_64 ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32,
			 is_64 ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32);
	return d;
}

bool insn_x86_decode(bool is_64, const uint8_t *code, size_t len, struct insn_x86 *out)
{
	const ZydisDecoder d = decoder_for(is_64);

	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&d, code, len, &out->head, out->op));
}

bool insn_x86_decode_head(bool is_64, const uint8_t *code, size_t len, ZydisDecodedInstruction *out)
{
	const ZydisDecoder d = decoder_for(is_64);
	ZydisDecoderContext context;

	return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&d, &context, code, len, out));
}

uint64_t insn_x86_target(const ZydisDecodedInstruction *i, uint64_t vaddr)
{
	uint64_t target = vaddr + i->length + i->raw.imm[0].value.u;

	if (i->machine_mode == ZYDIS_MACHINE_MODE_LONG_64)
		return target;
	return i->operand_width == 16 ? (uint16_t)target : (uint32_t)target;
}

bool insn_x86_writes_flags(const ZydisDecodedInstruction *i)
{
	const ZydisAccessedFlags *f = i->cpu_flags;

	return f && (f->modified | f->set_0 | f->set_1 | f->undefined);
}

/* ---- registers ------------------------------------------------------------------------------- */

static struct insn_x86_register general(ZydisRegister reg, uint8_t width)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
	bool high = reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH;

	return (struct insn_x86_register){ high ? INSN_X86_HIGH : INSN_X86_GENERAL,
					   (uint8_t)ZydisRegisterGetId(whole), width };
}

struct insn_x86_register insn_x86_register(ZydisRegister reg)
{
	uint8_t number = (uint8_t)ZydisRegisterGetId(reg);

	switch (ZydisRegisterGetClass(reg)) {
	case ZYDIS_REGCLASS_GPR8:
		return general(reg, 1);
	case ZYDIS_REGCLASS_GPR16:
		return general(reg, 2);
	case ZYDIS_REGCLASS_GPR32:
		return general(reg, 4);
	case ZYDIS_REGCLASS_GPR64:
		return general(reg, 8);
	case ZYDIS_REGCLASS_XMM:
		return (struct insn_x86_register){ INSN_X86_VECTOR, number, 16 };
	case ZYDIS_REGCLASS_YMM:
		return (struct insn_x86_register){ INSN_X86_VECTOR, number, 32 };
	case ZYDIS_REGCLASS_ZMM:
		return (struct insn_x86_register){ INSN_X86_VECTOR, number, 64 };
	case ZYDIS_REGCLASS_MASK:
		return (struct insn_x86_register){ INSN_X86_MASK, number, 8 };
	case ZYDIS_REGCLASS_X87:
	case ZYDIS_REGCLASS_MMX:
		return (struct insn_x86_register){ INSN_X86_STACK, number, 10 };
	case ZYDIS_REGCLASS_FLAGS:
		return (struct insn_x86_register){ INSN_X86_FLAGS, number, 8 };
	default:
		return (struct insn_x86_register){ INSN_X86_OTHER, 0, 0 };
	}
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Addresses are moved, added, subtracted, compared or pushed: nothing else is done with them. A
 * 32-bit operand is extended with zeros, which no address of the kernel has. */
static bool takes_address(const ZydisDecodedInstruction *i, uint8_t imm_len)
{
	if (i->raw.imm[0].is_relative || imm_len < 4)
		return false;
	switch (i->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_PUSH:
		return i->operand_width == 64;
	default:
		return false;
	}
}

/*
 * Most instructions of compilers are of a few forms, whose numbers are found without the decoder,
 * ten times as fast: pseudo-images mask all code of a process at each flush.
 */
enum form {
	ANY,  /* left to the decoder */
	BARE, /* the opcode alone */
	MODRM,
	MODRM_IMM8,
	BRANCH8,
	BRANCH32,
	NUMBER, /* moved into a register: 32 bits, or 64 */
};

static enum form form_of(uint8_t op)
{
	if (op < 0x40)
		return (op & 7) < 4 ? MODRM : ANY; /* add, or, adc, sbb, and, sub, xor, cmp */
	if ((op & 0xf0) == 0x50 || (op & 0xf8) == 0x90 || op == 0xc3)
		return BARE; /* push, pop; nop, xchg; ret */
	if ((op & 0xf0) == 0x70 || op == 0xeb)
		return BRANCH8;
	if (op == 0xe8 || op == 0xe9)
		return BRANCH32;
	if ((op & 0xf8) == 0xb8)
		return NUMBER;
	if (op == 0x83)
		return MODRM_IMM8;
	return op == 0x63 || (op & 0xfc) == 0x84 || (op & 0xfc) == 0x88 || op == 0x8d ? MODRM : ANY;
}

/* Behind 0x0f. */
static enum form form_of_second(uint8_t op)
{
	if ((op & 0xf0) == 0x80)
		return BRANCH32;
	if ((op & 0xf0) == 0x40 || (op & 0xf6) == 0xb6 || op == 0x1f)
		return MODRM; /* cmov; movzx, movsx; nop */
	return ANY;
}

/* The end of the memory operand that the ModRM byte at @at begins, or 0 where it is cut off. */
static size_t memory_end(const uint8_t *code, size_t at, size_t len, struct insn_x86_numbers *out)
{
	uint8_t mod, base;
	size_t pos = at + 1;

	if (at >= len)
		return 0;
	mod = code[at] >> 6;
	base = code[at] & 7;
	out->pc_relative = mod == 0 && base == 5;
	if (mod == 3)
		return pos;
	if (base == 4) {
		if (pos >= len)
			return 0;
		base = code[pos++] & 7;
	}
	out->no_base = mod == 0 && base == 5;
	out->disp_len = mod == 1 ? 1 : mod == 2 || out->no_base ? 4 : 0;
	out->disp_at = out->disp_len ? (uint8_t)pos : 0;
	return pos + out->disp_len;
}

/* Decode 64-bit code. False: ask the decoder. */
static bool find_common(const uint8_t *code, size_t len, struct insn_x86_numbers *out)
{
	bool wide = len && (code[0] & 0xf8) == 0x48, rex = len && (code[0] & 0xf0) == 0x40;
	size_t pos = rex;
	enum form form = pos < len ? form_of(code[pos++]) : ANY;

	if (pos < len && code[pos - 1] == 0x0f)
		form = form_of_second(code[pos++]);
	/* lea of a register is none. */
	if (form == ANY || (code[pos - 1] == 0x8d && pos < len && code[pos] >> 6 == 3))
		return false;
	if (form == MODRM || form == MODRM_IMM8)
		pos = memory_end(code, pos, len, out);
	out->imm_len = form == MODRM_IMM8 || form == BRANCH8 ? 1
		       : form == BRANCH32		     ? 4
		       : form == NUMBER			     ? (wide ? 8 : 4)
							     : 0;
	out->imm_at = out->imm_len ? (uint8_t)pos : 0;
	out->branch = form == BRANCH8 || form == BRANCH32;
	out->address = form == NUMBER && wide;
	out->len = (uint8_t)(pos + out->imm_len);
	return pos && out->len <= len;
}

bool insn_x86_find_numbers(bool is_64, const uint8_t *code, size_t len,
			   struct insn_x86_numbers *out)
{
	ZydisDecodedInstruction i;
	bool modrm;

	*out = (struct insn_x86_numbers){ 0 };
	if (is_64 && find_common(code, len, out))
		return true;
	*out = (struct insn_x86_numbers){ 0 };
	if (!insn_x86_decode_head(is_64, code, len, &i))
		return false;
	modrm = i.attributes & ZYDIS_ATTRIB_HAS_MODRM;
	out->len = i.length;
	out->disp_at = i.raw.disp.offset;
	out->disp_len = i.raw.disp.size / 8;
	out->imm_at = i.raw.imm[0].offset;
	out->imm_len = i.raw.imm[0].size / 8;
	out->branch = i.raw.imm[0].is_relative;
	out->address = takes_address(&i, out->imm_len);
	/* In this form of ModRM a displacement takes the place of the base register. */
	out->no_base = out->disp_len && (!modrm || i.raw.modrm.mod == 0);
	out->pc_relative = out->no_base && modrm && is_64 && i.raw.modrm.rm == 5;
	return true;
}
