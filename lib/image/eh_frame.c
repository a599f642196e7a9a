/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entries of .eh_frame are read, and their programs run, here: it stays when symbols are stripped,
 * and has a start, a length and a program for each piece of code that a compiler made (Linux
 * Standard Base, "Exception Frames").
 */
#include <dwarf.h>
#include <errno.h>
#include <string.h>

#include "eh_bytes.h"
#include "eh_frame.h"

/* ---- entries --------------------------------------------------------------------------------- */

/* Letters of an augmentation: more than any compiler writes. */
enum { MAX_LETTERS = 16 };

enum {
	ENCODED_ABSOLUTE = 0x00,
	ENCODED_ULEB = 0x01,
	ENCODED_U2 = 0x02,
	ENCODED_U4 = 0x03,
	ENCODED_U8 = 0x04,
	ENCODED_SLEB = 0x09,
	ENCODED_S2 = 0x0a,
	ENCODED_S4 = 0x0b,
	ENCODED_S8 = 0x0c,
	ENCODED_FORMAT = 0x0f,
	ENCODED_RELATIVE = 0x10, /* to where it stands */
	ENCODED_APPLIED = 0x70,
	ENCODED_INDIRECT = 0x80,
};

/* @len: at most 8. Numbers are little-endian. */
static uint64_t image_cursor_fixed(struct image_cursor *c, size_t len)
{
	uint64_t value = 0;

	if (c->end - c->at < len) {
		c->bad = true;
		c->at = c->end;
		return 0;
	}
	for (size_t i = 0; i < len; i++)
		value |= (uint64_t)c->data[c->at + i] << (8 * i);
	c->at += len;
	return value;
}

static uint64_t sign_extended(uint64_t value, size_t len)
{
	unsigned int shift = 64 - 8 * (unsigned int)len;

	return (uint64_t)((int64_t)(value << shift) >> shift);
}

static uint64_t image_cursor_leb(struct image_cursor *c, bool is_signed)
{
	uint64_t value = 0, byte;
	unsigned int shift = 0;

	do {
		byte = image_cursor_fixed(c, 1);
		if (shift < 64)
			value |= (byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && shift < 64 && (byte & 0x40))
		value |= UINT64_MAX << shift;
	return value;
}

static uint64_t number(struct image_cursor *c, uint8_t format)
{
	switch (format) {
	case ENCODED_ABSOLUTE:
		return image_cursor_fixed(c, c->word);
	case ENCODED_ULEB:
		return image_cursor_leb(c, false);
	case ENCODED_SLEB:
		return image_cursor_leb(c, true);
	case ENCODED_U2:
		return image_cursor_fixed(c, 2);
	case ENCODED_U4:
		return image_cursor_fixed(c, 4);
	case ENCODED_U8:
	case ENCODED_S8:
		return image_cursor_fixed(c, 8);
	case ENCODED_S2:
		return sign_extended(image_cursor_fixed(c, 2), 2);
	case ENCODED_S4:
		return sign_extended(image_cursor_fixed(c, 4), 4);
	default:
		c->bad = true;
		return 0;
	}
}

/* An address as @encoding (DW_EH_PE) writes it. */
static uint64_t image_cursor_pointer(struct image_cursor *c, uint8_t encoding)
{
	uint64_t here = c->vaddr + c->at, value = number(c, encoding & ENCODED_FORMAT);

	if ((encoding & ENCODED_APPLIED) == ENCODED_RELATIVE)
		return value + here;
	if (encoding & (ENCODED_APPLIED | ENCODED_INDIRECT))
		c->bad = true; /* relative to what only the running program knows */
	return value;
}

/* The letters of its augmentation have data. @c is behind the length of these. */
static void read_letters(struct image_cie *cie, struct image_cursor *c, const char *text,
			 size_t len)
{
	for (size_t i = 1; i < len && !c->bad; i++) {
		uint8_t byte;

		if (text[i] == 'S')
			cie->signal = true;
		if (text[i] != 'P' && text[i] != 'L' && text[i] != 'R')
			continue;
		byte = (uint8_t)image_cursor_fixed(c, 1);
		if (text[i] == 'R')
			cie->encoding = byte;
		if (text[i] == 'P')
			number(c, byte & ENCODED_FORMAT);
	}
}

/* @c is behind the id. */
static bool read_cie(struct image_cie *cie, struct image_cursor *c)
{
	uint8_t version = (uint8_t)image_cursor_fixed(c, 1);
	const char *text = (const char *)c->data + c->at;
	size_t room = c->end - c->at, len = strnlen(text, room < MAX_LETTERS ? room : MAX_LETTERS);
	uint64_t data_len = 0;

	*cie = (struct image_cie){ .encoding = ENCODED_ABSOLUTE };
	c->at += len;
	if (image_cursor_fixed(c, 1) || c->bad || (version != 1 && version != 3))
		return false;
	cie->code_factor = image_cursor_leb(c, false);
	cie->data_factor = (int64_t)image_cursor_leb(c, true);
	cie->return_reg = version == 1 ? image_cursor_fixed(c, 1) : image_cursor_leb(c, false);
	if (len && text[0] != 'z')
		return false;
	cie->augmented = len > 0;
	if (len)
		data_len = image_cursor_leb(c, false);
	if (c->bad || data_len > c->end - c->at)
		return false;
	cie->program = *c;
	cie->program.at += (size_t)data_len;
	c->end = cie->program.at;
	read_letters(cie, c, text, len);
	return !c->bad;
}

/* The entry at @c: its end and its id, which is @id_at before what it stands for. False: the last.
 */
static bool entry_head(struct image_cursor *c, size_t *id_at, uint64_t *id)
{
	uint64_t len = image_cursor_fixed(c, 4);
	bool wide = len == UINT32_MAX;

	if (wide)
		len = image_cursor_fixed(c, 8);
	if (c->bad || !len || len > c->end - c->at)
		return false;
	c->end = c->at + (size_t)len;
	*id_at = c->at;
	*id = image_cursor_fixed(c, wide ? 8 : 4);
	return !c->bad;
}

/* The common entry at @at of the section, which is often that of the range before. */
static bool find_cie(struct image_eh_frame *eh, size_t at)
{
	struct image_cursor c = eh->section;
	uint64_t id;
	size_t id_at;

	if (eh->known && eh->known_at == at)
		return eh->known_good;
	c.at = at;
	eh->known = true;
	eh->known_at = at;
	eh->known_good = entry_head(&c, &id_at, &id) && !id && read_cie(&eh->cie, &c);
	return eh->known_good;
}

/* @c is behind the id. */
static bool read_fde(struct image_fde *fde, struct image_cursor *c, const struct image_cie *cie)
{
	uint64_t end;

	fde->vaddr = image_cursor_pointer(c, cie->encoding);
	fde->len = number(c, cie->encoding & ENCODED_FORMAT);
	fde->cie = cie;
	if (c->bad || !fde->len || base_add_overflow(fde->vaddr, fde->len, &end))
		return false;
	fde->program = *c;
	if (cie->augmented) {
		uint64_t skip = image_cursor_leb(&fde->program, false);

		if (fde->program.bad || skip > c->end - fde->program.at)
			fde->program.at = c->end;
		else
			fde->program.at += (size_t)skip;
	}
	return true;
}

bool image_eh_frame_next(struct image_eh_frame *eh, size_t *at, struct image_fde *fde)
{
	while (*at < eh->section.end) {
		struct image_cursor c = eh->section;
		uint64_t id;
		size_t id_at;

		c.at = fde->at = *at;
		if (!entry_head(&c, &id_at, &id))
			return false;
		*at = c.end;
		if (id && id <= id_at && find_cie(eh, id_at - (size_t)id) &&
		    read_fde(fde, &c, &eh->cie))
			return true;
	}
	return false;
}

bool image_eh_frame_open(struct image_eh_frame *eh, const struct image_elf *f)
{
	GElf_Shdr sh;
	Elf_Scn *scn = image_elf_section(f, ".eh_frame", &sh);
	Elf_Data *data = scn ? elf_rawdata(scn, NULL) : NULL;

	*eh = (struct image_eh_frame){ 0 };
	/* An object file has no addresses yet. */
	if (!data || !data->d_buf || f->header.e_type == ET_REL ||
	    f->header.e_ident[EI_DATA] != ELFDATA2LSB)
		return false;
	eh->section = (struct image_cursor){
		.data = data->d_buf,
		.end = data->d_size,
		.vaddr = sh.sh_addr,
		.word = f->header.e_ident[EI_CLASS] == ELFCLASS32 ? 4 : 8,
	};
	return true;
}

/* ---- programs -------------------------------------------------------------------------------- */

/*
 * Programs of .eh_frame are run here (DWARF 5, section 6.4), for the few registers that unwind
 * rules know. libdw has its own for a single address, which would run a program anew for each row,
 * and which (0.188) misreads aarch64's signed return addresses.
 */

enum {
	/* On aarch64, 0x2d says that return addresses are signed from here on, or no longer; 0x2c
	 * the same with the pc as a part of the signature. */
	CFA_NEGATE_RA_STATE_WITH_PC = 0x2c,
	CFA_NEGATE_RA_STATE = 0x2d,
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
	MAX_REMEMBERED = 16,
	UNKNOWN_REG = 0xff,
};

/* How the caller's value of a register is found. */
enum kind {
	KIND_SAME,
	KIND_AT_CFA, /* in memory at CFA + off */
	KIND_AT_REG, /* in memory at reg + off */
	KIND_REG,    /* in reg */
	KIND_UNDEFINED,
	KIND_OTHER,
};

struct column {
	uint8_t kind, reg;
	int64_t off;
};

enum { COLUMN_FP, COLUMN_LINK, COLUMN_SP, COLUMN_RETURN, NR_COLUMNS };

struct row {
	uint8_t how, base; /* NONE: not to be described */
	int64_t off, add;
	struct column column[NR_COLUMNS];
};

struct run {
	const struct image_cie *cie;
	bool aarch64;
	struct row row, initial, remembered[MAX_REMEMBERED];
	unsigned int nr_remembered;
	uint64_t at, end; /* vaddr */
	uint64_t *budget;
	image_cfa_fn *fn;
	void *ctx;
};

/* ---- registers ------------------------------------------------------------------------------- */

/* The number in rules of a DWARF register. */
static uint8_t rule_reg(const struct run *m, uint64_t reg)
{
	if (!m->aarch64)
		return reg < UNWIND_NR_REGS ? (uint8_t)reg : UNKNOWN_REG;
	if (reg == 29)
		return UNWIND_FP;
	if (reg == 30)
		return UNWIND_LINK;
	return reg == 31 ? UNWIND_SP : UNKNOWN_REG;
}

/* NULL: rules do not need it. On aarch64 the link is the return address too. */
static struct column *column_of(struct run *m, uint64_t reg)
{
	if (!m->aarch64 && reg == m->cie->return_reg)
		return &m->row.column[COLUMN_RETURN];
	switch (rule_reg(m, reg)) {
	case UNWIND_FP:
		return &m->row.column[COLUMN_FP];
	case UNWIND_LINK:
		return &m->row.column[COLUMN_LINK];
	case UNWIND_SP:
		return &m->row.column[COLUMN_SP];
	default:
		return NULL;
	}
}

static void set(struct run *m, uint64_t reg, struct column how)
{
	struct column *c = column_of(m, reg);

	if (c)
		*c = how;
}

static void restore(struct run *m, uint64_t reg)
{
	struct column *c = column_of(m, reg);

	if (c)
		*c = m->initial.column[c - m->row.column];
}

/* ---- expressions ----------------------------------------------------------------------------- */

/* "DW_OP_bregN off": the value of a register and a number. */
static bool register_and(const struct run *m, struct image_cursor *c, uint8_t *reg, int64_t *off)
{
	uint8_t op = (uint8_t)image_cursor_fixed(c, 1);

	if (op < DW_OP_breg0 || op > DW_OP_breg31)
		return false;
	*reg = rule_reg(m, op - DW_OP_breg0);
	*off = (int64_t)image_cursor_leb(c, true);
	return !c->bad && *reg != UNKNOWN_REG;
}

/* The rest of the linker's expression for a PLT, behind "rsp + 8": pc & 15 is at or above a number,
 * times 8, added. */
static bool plt_rest(struct image_cursor c, int64_t *from)
{
	static const uint8_t pc_low[] = { DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and },
			     times[] = { DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus };
	const uint8_t *at = c.data + c.at;

	if (c.end - c.at != sizeof(pc_low) + 1 + sizeof(times) ||
	    memcmp(at, pc_low, sizeof(pc_low)) != 0 ||
	    memcmp(at + sizeof(pc_low) + 1, times, sizeof(times)) != 0)
		return false;
	*from = at[sizeof(pc_low)] - DW_OP_lit0;
	return *from >= 0 && *from <= 15;
}

/* "+ number", at the end of an expression, or nothing. */
static bool added(struct image_cursor *c, int64_t *add)
{
	uint8_t op;

	*add = 0;
	if (c->at == c->end)
		return true;
	op = (uint8_t)image_cursor_fixed(c, 1);
	if (op == DW_OP_plus_uconst) {
		*add = (int64_t)image_cursor_leb(c, false);
	} else if (op >= DW_OP_lit0 && op <= DW_OP_lit31) {
		*add = op - DW_OP_lit0;
		if (image_cursor_fixed(c, 1) != DW_OP_plus)
			return false;
	} else {
		return false;
	}
	return !c->bad && c->at == c->end;
}

/* The expressions are known that compilers, linkers and assembly use for the CFA; others give no
 * rule. */
static void cfa_expression(struct run *m, struct image_cursor c)
{
	struct row *row = &m->row;

	row->how = UNWIND_NONE;
	if (!register_and(m, &c, &row->base, &row->off))
		return;
	if (!m->aarch64 && row->base == UNWIND_SP && plt_rest(c, &row->add)) {
		row->how = UNWIND_PLT;
	} else if (c.at < c.end && c.data[c.at] == DW_OP_deref) {
		c.at++;
		if (added(&c, &row->add))
			row->how = UNWIND_DEREF;
	} else if (added(&c, &row->add) && !base_add_overflow(row->off, row->add, &row->off)) {
		row->how = UNWIND_CFA;
	}
}

static struct column column_expression(const struct run *m, struct image_cursor c)
{
	struct column how = { .kind = KIND_AT_REG };

	if (!register_and(m, &c, &how.reg, &how.off) || c.at != c.end)
		how.kind = KIND_OTHER;
	return how;
}

/* ---- one row as a rule ----------------------------------------------------------------------- */

static bool words_of(int64_t off, int16_t *words)
{
	*words = (int16_t)(off / 8);
	return off % 8 == 0 && off / 8 == *words;
}

/* Memory where a register is saved, as the rule has it; UNWIND_AT_LOST if it cannot. */
static uint8_t saved_at(const struct row *row, const struct column *c, int16_t *words)
{
	int64_t off;

	*words = 0;
	if (c->kind == KIND_SAME)
		return UNWIND_AT_SAME;
	if (c->kind == KIND_AT_CFA && words_of(c->off, words))
		return UNWIND_AT_CFA;
	if (c->kind == KIND_AT_REG && row->how == UNWIND_CFA && c->reg == row->base &&
	    !__builtin_sub_overflow(c->off, row->off, &off) && words_of(off, words))
		return UNWIND_AT_CFA;
	if (c->kind == KIND_AT_REG && c->reg == UNWIND_FP && words_of(c->off, words))
		return UNWIND_AT_FP;
	*words = 0;
	return UNWIND_AT_LOST;
}

/* How the pc is found, into @rule. False: rules cannot say it. */
static bool returns(const struct run *m, struct unwind_rule *rule)
{
	const struct column *c = &m->row.column[COLUMN_RETURN];

	if (m->aarch64) {
		rule->returns = UNWIND_RETURNS_LINK;
		return m->cie->return_reg == 30 && rule->link_at != UNWIND_AT_LOST;
	}
	rule->returns = c->kind == KIND_REG ? (uint8_t)(c->reg + 1) : 0;
	return c->kind == KIND_REG || (c->kind == KIND_AT_CFA && c->off == -8);
}

static bool undefined_return(const struct run *m)
{
	return m->row.column[m->aarch64 ? COLUMN_LINK : COLUMN_RETURN].kind == KIND_UNDEFINED;
}

/* The code behind a signal handler: its registers are where the kernel put them. */
static struct unwind_rule signal_rule(const struct run *m)
{
	const struct row *row = &m->row;

	if (m->aarch64)
		return (struct unwind_rule){ .how = UNWIND_SIGNAL_AARCH64 };
	if (row->how == UNWIND_DEREF && row->base == UNWIND_SP && row->off == 160 && !row->add)
		return (struct unwind_rule){ .how = UNWIND_SIGNAL_X86 };
	return (struct unwind_rule){ .how = UNWIND_NONE };
}

static struct unwind_rule rule_of(const struct run *m)
{
	const struct row *row = &m->row;
	struct unwind_rule none = { .how = UNWIND_NONE }, rule = none;

	if (m->cie->signal)
		return signal_rule(m);
	if (undefined_return(m))
		return (struct unwind_rule){ .how = UNWIND_END };
	rule.how = row->how;
	rule.base = row->base;
	rule.off = (int32_t)row->off;
	rule.add = row->how == UNWIND_CFA ? 0 : (int16_t)row->add;
	rule.fp_at = saved_at(row, &row->column[COLUMN_FP], &rule.fp_words);
	rule.link_at = saved_at(row, &row->column[COLUMN_LINK], &rule.link_words);
	if (row->how == UNWIND_NONE || rule.off != row->off || row->base == UNKNOWN_REG ||
	    (row->how != UNWIND_CFA && rule.add != row->add) ||
	    row->column[COLUMN_SP].kind != KIND_SAME || !returns(m, &rule))
		return none;
	return rule;
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* The row holds up to @to. */
static int advance(struct run *m, uint64_t to)
{
	struct unwind_rule rule;
	int r;

	if (to < m->at)
		return -DCPI_EFORMAT;
	if (to > m->end)
		to = m->end;
	if (to == m->at)
		return 0;
	rule = rule_of(m);
	r = m->fn(m->ctx, m->at, &rule);
	m->at = to;
	return r;
}

static int advance_by(struct run *m, uint64_t delta)
{
	uint64_t to;

	if (base_mul_overflow(delta, m->cie->code_factor, &to) || base_add_overflow(to, m->at, &to))
		return -DCPI_EFORMAT;
	return advance(m, to);
}

static int64_t factored(const struct run *m, uint64_t value)
{
	return (int64_t)(value * (uint64_t)m->cie->data_factor);
}

static struct column at_cfa(int64_t off)
{
	return (struct column){ .kind = KIND_AT_CFA, .off = off };
}

static struct column in_register(const struct run *m, uint64_t reg)
{
	struct column how = { .kind = KIND_REG, .reg = rule_reg(m, reg) };

	if (how.reg == UNKNOWN_REG)
		how.kind = KIND_OTHER;
	return how;
}

/* A block: its bytes alone. */
static struct image_cursor block(struct image_cursor *c)
{
	uint64_t len = image_cursor_leb(c, false);
	struct image_cursor b;

	if (len > c->end - c->at)
		c->bad = true;
	b = *c;
	if (!c->bad)
		c->at += (size_t)len;
	b.end = c->at;
	return b;
}

static void def_cfa(struct run *m, uint64_t reg, int64_t off)
{
	m->row.how = UNWIND_CFA;
	m->row.base = rule_reg(m, reg);
	m->row.off = off;
}

/* Change a part of the CFA's rule, which must be a register and a number. */
static void change_cfa(struct run *m, uint8_t base, int64_t off)
{
	if (m->row.how != UNWIND_CFA)
		m->row.how = UNWIND_NONE;
	m->row.base = base;
	m->row.off = off;
}

static int remember(struct run *m)
{
	if (m->nr_remembered == MAX_REMEMBERED)
		return -DCPI_EFORMAT;
	m->remembered[m->nr_remembered++] = m->row;
	return 0;
}

static int recall(struct run *m)
{
	if (!m->nr_remembered)
		return -DCPI_EFORMAT;
	m->row = m->remembered[--m->nr_remembered];
	return 0;
}

/* Instructions that change how the CFA is found. False: it is another one. */
static bool run_cfa(struct run *m, uint8_t op, struct image_cursor *c)
{
	uint64_t reg;

	switch (op) {
	case DW_CFA_def_cfa:
		reg = image_cursor_leb(c, false);
		def_cfa(m, reg, (int64_t)image_cursor_leb(c, false));
		return true;
	case DW_CFA_def_cfa_sf:
		reg = image_cursor_leb(c, false);
		def_cfa(m, reg, factored(m, image_cursor_leb(c, true)));
		return true;
	case DW_CFA_def_cfa_register:
		change_cfa(m, rule_reg(m, image_cursor_leb(c, false)), m->row.off);
		return true;
	case DW_CFA_def_cfa_offset:
		change_cfa(m, m->row.base, (int64_t)image_cursor_leb(c, false));
		return true;
	case DW_CFA_def_cfa_offset_sf:
		change_cfa(m, m->row.base, factored(m, image_cursor_leb(c, true)));
		return true;
	case DW_CFA_def_cfa_expression:
		cfa_expression(m, block(c));
		return true;
	default:
		return false;
	}
}

/* Instructions that change how a register is found. */
static bool run_register(struct run *m, uint8_t op, struct image_cursor *c)
{
	uint64_t reg = image_cursor_leb(c, false);

	switch (op) {
	case DW_CFA_offset_extended:
		set(m, reg, at_cfa(factored(m, image_cursor_leb(c, false))));
		return true;
	case DW_CFA_offset_extended_sf:
		set(m, reg, at_cfa(factored(m, image_cursor_leb(c, true))));
		return true;
	case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
		set(m, reg,
		    at_cfa((int64_t)(0 - (uint64_t)factored(m, image_cursor_leb(c, false)))));
		return true;
	case DW_CFA_restore_extended:
		restore(m, reg);
		return true;
	case DW_CFA_undefined:
		set(m, reg, (struct column){ .kind = KIND_UNDEFINED });
		return true;
	case DW_CFA_same_value:
		set(m, reg, (struct column){ .kind = KIND_SAME });
		return true;
	case DW_CFA_register:
		set(m, reg, in_register(m, image_cursor_leb(c, false)));
		return true;
	case DW_CFA_expression:
		set(m, reg, column_expression(m, block(c)));
		return true;
	case DW_CFA_val_expression:
		block(c);
		set(m, reg, (struct column){ .kind = KIND_OTHER });
		return true;
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		image_cursor_leb(c, false);
		set(m, reg, (struct column){ .kind = KIND_OTHER });
		return true;
	default:
		return false;
	}
}

static int run_other(struct run *m, uint8_t op, struct image_cursor *c)
{
	switch (op) {
	case DW_CFA_nop:
		return 0;
	case DW_CFA_set_loc:
		return advance(m, image_cursor_pointer(c, m->cie->encoding));
	case DW_CFA_advance_loc1:
		return advance_by(m, image_cursor_fixed(c, 1));
	case DW_CFA_advance_loc2:
		return advance_by(m, image_cursor_fixed(c, 2));
	case DW_CFA_advance_loc4:
		return advance_by(m, image_cursor_fixed(c, 4));
	case DW_CFA_remember_state:
		return remember(m);
	case DW_CFA_restore_state:
		return recall(m);
	case CFA_GNU_ARGS_SIZE:
		image_cursor_leb(c, false);
		return 0;
	case CFA_NEGATE_RA_STATE:
	case CFA_NEGATE_RA_STATE_WITH_PC:
		return m->aarch64 ? 0 : -DCPI_EFORMAT;
	default:
		if (run_cfa(m, op, c) || run_register(m, op, c))
			return 0;
		return -DCPI_EFORMAT;
	}
}

static int run_one(struct run *m, struct image_cursor *c)
{
	uint8_t op = (uint8_t)image_cursor_fixed(c, 1), low = op & 0x3f;
	int r = 0;

	switch (op & 0xc0) {
	case DW_CFA_advance_loc:
		r = advance_by(m, low);
		break;
	case DW_CFA_offset:
		set(m, low, at_cfa(factored(m, image_cursor_leb(c, false))));
		break;
	case DW_CFA_restore:
		restore(m, low);
		break;
	default:
		r = run_other(m, op, c);
	}
	return r < 0 ? r : c->bad ? -DCPI_EFORMAT : 0;
}

static int run_program(struct run *m, struct image_cursor c)
{
	int r = 0;

	while (r >= 0 && c.at < c.end && m->at < m->end) {
		if (!*m->budget)
			return -DCPI_ELIMIT;
		--*m->budget;
		r = run_one(m, &c);
	}
	return r;
}

int image_cfa_run(const struct image_fde *fde, uint16_t machine, uint64_t *budget, image_cfa_fn *fn,
		  void *ctx)
{
	struct run m = { .cie = fde->cie,
			 .aarch64 = machine == EM_AARCH64,
			 .at = fde->vaddr,
			 .end = fde->vaddr + fde->len,
			 .budget = budget,
			 .fn = fn,
			 .ctx = ctx };
	int r = run_program(&m, fde->cie->program);

	m.initial = m.row;
	if (r >= 0)
		r = run_program(&m, fde->program);
	if (r == -DCPI_EFORMAT)
		m.row = (struct row){ .how = UNWIND_NONE };
	return r < 0 && r != -DCPI_EFORMAT ? r : advance(&m, m.end);
}

/* ---- an .eh_frame in memory ------------------------------------------------------------------ */

enum { STEPS_MAX = 65536 };

int image_eh_bytes_run(const struct image_eh_bytes *eh,
		       int (*fn)(void *ctx, uint64_t vaddr, const struct unwind_rule *rule),
		       void *ctx)
{
	struct image_eh_frame frames = {
		.section = { .data = eh->data, .end = eh->len, .vaddr = eh->vaddr, .word = 8 }
	};
	uint64_t budget = STEPS_MAX;
	struct image_fde fde;
	size_t at = 0;

	while (image_eh_frame_next(&frames, &at, &fde))
		if (fde.vaddr == eh->code && fde.len == eh->code_len)
			return image_cfa_run(&fde, eh->machine, &budget, fn, ctx);
	return -ENOENT;
}
