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

bool insn_x86_find_numbers(bool is_64, const uint8_t *code, size_t len,
			   struct insn_x86_numbers *out)
{
	ZydisDecodedInstruction i;
	bool modrm;

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
