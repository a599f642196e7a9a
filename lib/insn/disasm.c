/* SPDX-License-Identifier: BSD-2-Clause */
/* Instructions as text: those of x86 through Zydis, others through capstone. */
#include <capstone/capstone.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "insn.h"
#include "insn_x86.h"

/* ---- text of x86 ----------------------------------------------------------------------------- */

/*
 * The text of x86 instructions, in AT&T syntax with the suffixes that objdump -M suffix prints.
 * Zydis decodes; its own formatter leaves most suffixes out, and the stars of indirect jumps.
 */

/* Strings of one instruction, to which insn_text points. */
struct insn_x86_text {
	char mnemonic[32], operands[160];
};

/* A string in the making; it is cut where it would not fit. */
struct string {
	char *at, *end;
};

static void put_part(struct string *s, const char *text, size_t len)
{
	while (len-- && s->at < s->end)
		*s->at++ = *text++;
	*s->at = '\0';
}

static void put(struct string *s, const char *text)
{
	put_part(s, text, strlen(text));
}

/* Numbers up to nine look the same in both bases, and need no 0x. */
static void put_number(struct string *s, uint64_t v)
{
	char digits[20], *p = digits + sizeof(digits) - 1;
	bool small = v < 10;

	*p = '\0';
	do {
		*--p = "0123456789abcdef"[v & 15];
		v >>= 4;
	} while (v);
	put(s, small ? "" : "0x");
	put(s, p);
}

static void put_signed(struct string *s, int64_t v)
{
	put(s, v < 0 ? "-" : "");
	put_number(s, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

/* ---- mnemonics ------------------------------------------------------------------------------- */

struct name {
	uint16_t id; /* ZydisMnemonic */
	const char *att;
};

/* Names in AT&T syntax that are not Intel's; suffixes come behind them. */
static const struct name names[] = {
	{ ZYDIS_MNEMONIC_CBW, "cbtw" },	     { ZYDIS_MNEMONIC_CWDE, "cwtl" },
	{ ZYDIS_MNEMONIC_CDQE, "cltq" },     { ZYDIS_MNEMONIC_CWD, "cwtd" },
	{ ZYDIS_MNEMONIC_CDQ, "cltd" },	     { ZYDIS_MNEMONIC_CQO, "cqto" },
	{ ZYDIS_MNEMONIC_MOVSXD, "movs" },   { ZYDIS_MNEMONIC_MOVSX, "movs" },
	{ ZYDIS_MNEMONIC_MOVZX, "movz" },    { ZYDIS_MNEMONIC_INSD, "insl" },
	{ ZYDIS_MNEMONIC_OUTSD, "outsl" },   { ZYDIS_MNEMONIC_LODSD, "lodsl" },
	{ ZYDIS_MNEMONIC_SCASD, "scasl" },   { ZYDIS_MNEMONIC_STOSD, "stosl" },
	{ ZYDIS_MNEMONIC_IRET, "iretw" },    { ZYDIS_MNEMONIC_IRETD, "iretl" },
	{ ZYDIS_MNEMONIC_PUSHFD, "pushfl" }, { ZYDIS_MNEMONIC_POPFD, "popfl" },
	{ ZYDIS_MNEMONIC_PUSHAD, "pushal" }, { ZYDIS_MNEMONIC_POPAD, "popal" },
};

/* Conditions of jumps, moves and results, where AT&T syntax names the other one of two. */
static const struct {
	const char *intel, *att;
} conditions[] = { { "z", "e" },   { "nz", "ne" }, { "nb", "ae" },
		   { "nbe", "a" }, { "nl", "ge" }, { "nle", "g" } };

static bool starts(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

static bool has_condition(const ZydisDecodedInstruction *i)
{
	return i->meta.category == ZYDIS_CATEGORY_COND_BR ||
	       i->meta.category == ZYDIS_CATEGORY_CMOV || i->meta.category == ZYDIS_CATEGORY_SETCC;
}

static void put_conditional(struct string *s, const char *name)
{
	size_t n = *name == 'j' ? 1 : starts(name, "set") ? 3 : 4; /* cmov, loop */

	for (size_t c = 0; c < sizeof(conditions) / sizeof(conditions[0]); c++) {
		if (strlen(name) < n || strcmp(name + n, conditions[c].intel) != 0)
			continue;
		put_part(s, name, n);
		put(s, conditions[c].att);
		return;
	}
	put(s, name);
}

/* With the result in another register than st(0), AT&T syntax has these names the other way round.
 */
static bool put_reversed(struct string *s, const ZydisDecodedInstruction *i, const char *name)
{
	bool sub = starts(name, "fsub"), reverse = name[4] == 'r';

	if ((!sub && !starts(name, "fdiv")) || i->raw.modrm.mod != 3 ||
	    (i->opcode != 0xdc && i->opcode != 0xde))
		return false;
	put(s, sub ? "fsub" : "fdiv");
	put(s, reverse ? "" : "r");
	put(s, name + 4 + reverse);
	return true;
}

/* Comparisons of vectors have the kind as part of the name, and NULL where it is a number. */
static const char *compare_of(const struct insn_x86 *in)
{
	static const char *const kinds[2][8] = {
		{ "eq", "lt", "le", "unord", "neq", "nlt", "nle", "ord" },
		{ "eq", "lt", "le", NULL, "neq", "nlt", "nle", NULL },
	};
	const char *name = ZydisMnemonicGetString(in->head.mnemonic);
	bool integers = starts(name, "vpcmp");

	if ((!integers && !starts(name, "vcmp") && !starts(name, "cmp")) ||
	    in->head.meta.category == ZYDIS_CATEGORY_STTNI || in->head.raw.imm[0].size != 8 ||
	    in->head.meta.category == ZYDIS_CATEGORY_BINARY || in->head.raw.imm[0].value.u > 7)
		return NULL;
	return kinds[integers][in->head.raw.imm[0].value.u];
}

static void put_compare(struct string *s, const struct insn_x86 *in, const char *name)
{
	const char *rest = strstr(name, "cmp") + 3;

	put_part(s, name, (size_t)(rest - name));
	put(s, compare_of(in));
	put(s, rest);
}

static void put_name(struct string *s, const struct insn_x86 *in)
{
	const char *name = ZydisMnemonicGetString(in->head.mnemonic);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].id == in->head.mnemonic)
			name = names[i].att;
	if (in->head.meta.category == ZYDIS_CATEGORY_STRINGOP && starts(name, "movsd"))
		name = "movsl";
	if (in->head.meta.category == ZYDIS_CATEGORY_STRINGOP && starts(name, "cmpsd"))
		name = "cmpsl";
	if (compare_of(in))
		put_compare(s, in, name);
	else if (has_condition(&in->head))
		put_conditional(s, name);
	else if (!put_reversed(s, &in->head, name))
		put(s, name);
}

static const char *suffix_of(uint16_t bits)
{
	return bits == 8 ? "b" : bits == 16 ? "w" : bits == 32 ? "l" : bits == 64 ? "q" : "";
}

static bool is_memory(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY;
}

/* Instructions on general registers and memory, which have the size of the operands as suffix. */
static bool takes_suffix(const ZydisDecodedInstruction *i)
{
	switch (i->meta.category) {
	case ZYDIS_CATEGORY_ADOX_ADCX:
	case ZYDIS_CATEGORY_BINARY:
	case ZYDIS_CATEGORY_BITBYTE:
	case ZYDIS_CATEGORY_BMI1:
	case ZYDIS_CATEGORY_BMI2:
	case ZYDIS_CATEGORY_CMOV:
	case ZYDIS_CATEGORY_DATAXFER:
	case ZYDIS_CATEGORY_LOGICAL:
	case ZYDIS_CATEGORY_LZCNT:
	case ZYDIS_CATEGORY_ROTATE:
	case ZYDIS_CATEGORY_SEMAPHORE:
	case ZYDIS_CATEGORY_SHIFT:
	case ZYDIS_CATEGORY_TBM:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_WIDENOP:
		return true;
	default:
		return i->mnemonic == ZYDIS_MNEMONIC_LEA || i->mnemonic == ZYDIS_MNEMONIC_POPCNT ||
		       i->mnemonic == ZYDIS_MNEMONIC_CRC32;
	}
}

static const char *of_float(const ZydisDecodedOperand *op, bool is_integer)
{
	switch (op->size) {
	case 16:
		return "s";
	case 32:
		return is_integer ? "l" : "s";
	case 64:
		return is_integer ? "ll" : "l";
	default:
		return "t";
	}
}

static void put_float_suffix(struct string *s, const struct insn_x86 *in)
{
	const char *name = ZydisMnemonicGetString(in->head.mnemonic);
	bool integer = name[1] == 'i';

	if (integer || in->op[0].element_type == ZYDIS_ELEMENT_TYPE_FLOAT32 ||
	    in->op[0].element_type == ZYDIS_ELEMENT_TYPE_FLOAT64 ||
	    in->op[0].element_type == ZYDIS_ELEMENT_TYPE_FLOAT80)
		put(s, of_float(&in->op[0], integer));
}

/* Instructions that have the stack's width, whatever operands they name. */
static bool is_of_stack(const struct insn_x86 *in)
{
	switch (in->head.mnemonic) {
	case ZYDIS_MNEMONIC_RET:
	case ZYDIS_MNEMONIC_LEAVE:
	case ZYDIS_MNEMONIC_ENTER:
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_CALL:
		return true;
	default:
		return false;
	}
}

static bool is_outside_vectors(const ZydisDecodedOperand *op)
{
	struct insn_x86_register reg;

	if (op->type != ZYDIS_OPERAND_TYPE_REGISTER)
		return true;
	reg = insn_x86_register(op->reg.value);
	return reg.class == INSN_X86_GENERAL || reg.class == INSN_X86_HIGH ||
	       reg.class == INSN_X86_OTHER;
}

/* The size of the operands as suffix, of an instruction that takes one. */
static void put_size(struct string *s, const struct insn_x86 *in)
{
	const ZydisDecodedOperand *op = in->op;
	bool number = op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;

	if (!is_outside_vectors(&op[0]) ||
	    (in->head.operand_count_visible > 1 && !is_outside_vectors(&op[1])))
		return;
	if (in->head.mnemonic == ZYDIS_MNEMONIC_CRC32)
		put(s, suffix_of(op[1].size));
	else
		put(s, suffix_of(number ? in->head.operand_width : op[0].size));
}

static void put_suffix(struct string *s, const struct insn_x86 *in)
{
	const ZydisDecodedInstruction *i = &in->head;
	const ZydisDecodedOperand *op = in->op;
	uint8_t nr = i->operand_count_visible;

	if (is_of_stack(in)) {
		put(s, suffix_of(i->operand_width));
	} else if (i->mnemonic == ZYDIS_MNEMONIC_MOVSX || i->mnemonic == ZYDIS_MNEMONIC_MOVSXD ||
		   i->mnemonic == ZYDIS_MNEMONIC_MOVZX) {
		put(s, suffix_of(op[1].size));
		put(s, suffix_of(op[0].size));
	} else if (!nr || i->raw.imm[0].is_relative) {
		return;
	} else if (i->meta.category == ZYDIS_CATEGORY_X87_ALU && is_memory(&op[0])) {
		put_float_suffix(s, in);
	} else if (takes_suffix(i)) {
		put_size(s, in);
	} else if (nr > 1 && strstr(ZydisMnemonicGetString(i->mnemonic), "cvtsi2")) {
		put(s, suffix_of(op[nr - 1].size));
	}
}

static void put_prefixes(struct string *s, const ZydisDecodedInstruction *i)
{
	static const struct {
		uint64_t attribute;
		const char *text;
	} prefixes[] = {
		{ ZYDIS_ATTRIB_HAS_XACQUIRE, "xacquire " },
		{ ZYDIS_ATTRIB_HAS_XRELEASE, "xrelease " },
		{ ZYDIS_ATTRIB_HAS_LOCK, "lock " },
		{ ZYDIS_ATTRIB_HAS_BND, "bnd " },
		{ ZYDIS_ATTRIB_HAS_NOTRACK, "notrack " },
		{ ZYDIS_ATTRIB_HAS_REP, "rep " },
		{ ZYDIS_ATTRIB_HAS_REPE, "repe " },
		{ ZYDIS_ATTRIB_HAS_REPNE, "repne " },
	};

	for (size_t n = 0; n < sizeof(prefixes) / sizeof(prefixes[0]); n++)
		if (i->attributes & prefixes[n].attribute)
			put(s, prefixes[n].text);
}

static void put_mnemonic(struct string *s, const struct insn_x86 *in)
{
	const ZydisDecodedInstruction *i = &in->head;

	put_prefixes(s, i);
	if (i->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR && i->meta.category != ZYDIS_CATEGORY_RET)
		put(s, "l");
	if (i->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR && i->mnemonic == ZYDIS_MNEMONIC_RET)
		put(s, "l");
	/* Only this move has a number or an address of 64 bits. */
	if (i->mnemonic == ZYDIS_MNEMONIC_MOV &&
	    (i->raw.imm[0].size == 64 || i->raw.disp.size == 64))
		put(s, "movabs");
	else
		put_name(s, in);
	put_suffix(s, in);
}

/* ---- operands -------------------------------------------------------------------------------- */

static void put_register(struct string *s, ZydisRegister reg)
{
	struct insn_x86_register r = insn_x86_register(reg);

	put(s, "%");
	if (ZydisRegisterGetClass(reg) == ZYDIS_REGCLASS_X87) {
		put(s, "st(");
		put_number(s, r.number);
		put(s, ")");
	} else {
		put(s, ZydisRegisterGetString(reg));
	}
}

/* Numbers of the operands' width, and of logic, are shown as bits; others are signed. */
static void put_immediate(struct string *s, const struct insn_x86 *in,
			  const ZydisDecodedOperand *op)
{
	uint16_t width = in->head.operand_width;
	bool bits = !op->imm.is_signed || op->size == width ||
		    in->head.meta.category == ZYDIS_CATEGORY_LOGICAL;
	uint64_t v = op->imm.value.u;

	put(s, "$");
	if (!bits) {
		put_signed(s, op->imm.value.s);
		return;
	}
	if (!op->imm.is_signed)
		width = op->size;
	put_number(s, width < 64 ? v & ((1ull << width) - 1) : v);
}

static void put_base_and_index(struct string *s, const ZydisDecodedOperandMem *mem)
{
	put(s, "(");
	if (mem->base != ZYDIS_REGISTER_NONE)
		put_register(s, mem->base);
	if (mem->index != ZYDIS_REGISTER_NONE && mem->type != ZYDIS_MEMOP_TYPE_MIB) {
		put(s, ", ");
		put_register(s, mem->index);
		if (mem->scale > 1) {
			put(s, ", ");
			put_number(s, mem->scale);
		}
	}
	put(s, ")");
}

/* In 64-bit mode prefixes of the other segments do nothing, but padding has them. */
static void put_segment(struct string *s, const struct insn_x86 *in,
			const ZydisDecodedOperandMem *mem)
{
	if (in->head.attributes & ZYDIS_ATTRIB_HAS_SEGMENT) {
		put_register(s, mem->segment);
		put(s, ":");
		return;
	}
	for (uint8_t n = 0; n < in->head.raw.prefix_count; n++)
		if (in->head.raw.prefixes[n].value == 0x2e)
			put(s, "%cs:");
}

static void put_memory(struct string *s, const struct insn_x86 *in, const ZydisDecodedOperand *op)
{
	const ZydisDecodedOperandMem *mem = &op->mem;
	bool registers = mem->base != ZYDIS_REGISTER_NONE || mem->index != ZYDIS_REGISTER_NONE;

	put_segment(s, in, mem);
	if (!registers)
		put_number(s, in->head.address_width == 64 ? (uint64_t)mem->disp.value
							   : (uint32_t)mem->disp.value);
	else if (mem->disp.value)
		put_signed(s, mem->disp.value);
	if (registers)
		put_base_and_index(s, mem);
}

static void put_broadcast(struct string *s, const struct insn_x86 *in)
{
	static const char *const text[] = {
		[ZYDIS_BROADCAST_MODE_1_TO_2] = "{1to2}",
		[ZYDIS_BROADCAST_MODE_1_TO_4] = "{1to4}",
		[ZYDIS_BROADCAST_MODE_1_TO_8] = "{1to8}",
		[ZYDIS_BROADCAST_MODE_1_TO_16] = "{1to16}",
		[ZYDIS_BROADCAST_MODE_1_TO_32] = "{1to32}",
	};
	unsigned int mode = in->head.avx.broadcast.mode;

	if (!in->head.avx.broadcast.is_static && mode < sizeof(text) / sizeof(text[0]) &&
	    text[mode])
		put(s, text[mode]);
}

static void put_mask(struct string *s, const struct insn_x86 *in)
{
	if (in->head.avx.mask.reg == ZYDIS_REGISTER_NONE ||
	    in->head.avx.mask.reg == ZYDIS_REGISTER_K0)
		return;
	put(s, " {");
	put_register(s, in->head.avx.mask.reg);
	put(s, in->head.raw.evex.z ? "} {z}" : "}");
}

static void put_operand(struct string *s, const struct insn_x86 *in, const ZydisDecodedOperand *op)
{
	bool indirect = (in->head.meta.category == ZYDIS_CATEGORY_CALL ||
			 in->head.meta.category == ZYDIS_CATEGORY_UNCOND_BR);

	switch (op->type) {
	case ZYDIS_OPERAND_TYPE_REGISTER:
		put(s, indirect ? "*" : "");
		put_register(s, op->reg.value);
		break;
	case ZYDIS_OPERAND_TYPE_MEMORY:
		put(s, indirect ? "*" : "");
		put_memory(s, in, op);
		put_broadcast(s, in);
		break;
	case ZYDIS_OPERAND_TYPE_POINTER:
		put(s, "$");
		put_number(s, op->ptr.segment);
		put(s, ", $");
		put_number(s, op->ptr.offset);
		break;
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		put_immediate(s, in, op);
		break;
	default:
		break;
	}
	if (op == &in->op[0])
		put_mask(s, in);
}

/* Does the text name it? Of strings all memory and the register that it meets. */
static bool is_named(const struct insn_x86 *in, const ZydisDecodedOperand *op, uint8_t nr)
{
	bool string = in->head.meta.category == ZYDIS_CATEGORY_STRINGOP ||
		      in->head.meta.category == ZYDIS_CATEGORY_IOSTRINGOP;

	if (string)
		return nr < 2;
	if (op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && compare_of(in))
		return false;
	return nr < in->head.operand_count_visible && op->encoding != ZYDIS_OPERAND_ENCODING_MASK &&
	       !(nr && in->head.meta.category == ZYDIS_CATEGORY_WIDENOP);
}

static void put_rounding(struct string *s, const ZydisDecodedInstruction *i)
{
	static const char *const text[] = {
		[ZYDIS_ROUNDING_MODE_RN] = "{rn-sae}, ",
		[ZYDIS_ROUNDING_MODE_RD] = "{rd-sae}, ",
		[ZYDIS_ROUNDING_MODE_RU] = "{ru-sae}, ",
		[ZYDIS_ROUNDING_MODE_RZ] = "{rz-sae}, ",
	};
	unsigned int mode = i->avx.rounding.mode;

	if (mode < sizeof(text) / sizeof(text[0]) && text[mode])
		put(s, text[mode]);
	else if (i->avx.has_sae)
		put(s, "{sae}, ");
}

/* The source first. Numbers come before a rounding mode, other operands behind it. */
static void put_operands(struct string *s, const struct insn_x86 *in)
{
	bool any = false, rounded = false;

	for (uint8_t nr = in->head.operand_count; nr--;) {
		const ZydisDecodedOperand *op = &in->op[nr];

		if (!is_named(in, op, nr))
			continue;
		put(s, any ? ", " : "");
		if (!rounded && op->type != ZYDIS_OPERAND_TYPE_IMMEDIATE) {
			put_rounding(s, &in->head);
			rounded = true;
		}
		put_operand(s, in, op);
		any = true;
	}
}

/* False: no instruction. */
static bool insn_x86_text(bool is_64, const uint8_t *code, size_t len, uint64_t vaddr,
			  struct insn_x86_text *text, struct insn_text *out)
{
	struct string mnemonic = { text->mnemonic, text->mnemonic + sizeof(text->mnemonic) - 1 };
	struct string operands = { text->operands, text->operands + sizeof(text->operands) - 1 };
	struct insn_x86 in;

	if (!insn_x86_decode(is_64, code, len, &in))
		return false;
	text->operands[0] = '\0';
	put_mnemonic(&mnemonic, &in);
	*out = (struct insn_text){ .len = in.head.length,
				   .mnemonic = text->mnemonic,
				   .operands = text->operands };
	if (in.head.raw.imm[0].is_relative) {
		out->has_target = true;
		out->target = insn_x86_target(&in.head, vaddr);
		put_number(&operands, out->target);
	} else {
		put_operands(&operands, &in);
	}
	return true;
}

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
