/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entries of .eh_frame are read here: it stays when symbols are stripped, and has a start, a length
 * and a program for each piece of code that a compiler made (Linux Standard Base, "Exception
 * Frames").
 */
#include <string.h>

#include "eh_frame.h"

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

uint64_t image_cursor_fixed(struct image_cursor *c, size_t len)
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

uint64_t image_cursor_leb(struct image_cursor *c, bool is_signed)
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

uint64_t image_cursor_pointer(struct image_cursor *c, uint8_t encoding)
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
