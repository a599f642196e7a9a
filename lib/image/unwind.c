/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where procedures stand by what unwinding needs: .eh_frame stays when symbols are stripped, and
 * has a start and a length for each piece of code that a compiler made (Linux Standard Base,
 * "Exception Frames").
 */
#include <string.h>

#include "image_internal.h"

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

/* Bytes of the section, read in order; past the end all is zero and bad. */
struct cursor {
	const uint8_t *data;
	size_t at, end;
	uint64_t vaddr;	   /* address of the section */
	unsigned int word; /* bytes of an address */
	bool bad;
};

static uint64_t fixed(struct cursor *c, size_t len)
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

static uint64_t leb(struct cursor *c, bool is_signed)
{
	uint64_t value = 0, byte;
	unsigned int shift = 0;

	do {
		byte = fixed(c, 1);
		if (shift < 64)
			value |= (byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && shift < 64 && (byte & 0x40))
		value |= UINT64_MAX << shift;
	return value;
}

static uint64_t number(struct cursor *c, uint8_t format)
{
	switch (format) {
	case ENCODED_ABSOLUTE:
		return fixed(c, c->word);
	case ENCODED_ULEB:
		return leb(c, false);
	case ENCODED_SLEB:
		return leb(c, true);
	case ENCODED_U2:
		return fixed(c, 2);
	case ENCODED_U4:
		return fixed(c, 4);
	case ENCODED_U8:
	case ENCODED_S8:
		return fixed(c, 8);
	case ENCODED_S2:
		return sign_extended(fixed(c, 2), 2);
	case ENCODED_S4:
		return sign_extended(fixed(c, 4), 4);
	default:
		c->bad = true;
		return 0;
	}
}

static uint64_t pointer(struct cursor *c, uint8_t encoding)
{
	uint64_t here = c->vaddr + c->at, value = number(c, encoding & ENCODED_FORMAT);

	if ((encoding & ENCODED_APPLIED) == ENCODED_RELATIVE)
		return value + here;
	if (encoding & (ENCODED_APPLIED | ENCODED_INDIRECT))
		c->bad = true; /* relative to what only the running program knows */
	return value;
}

/* How the entries of a common entry write addresses; negative: not to be known. @c is behind its
 * id. */
static int encoding_of(struct cursor *c)
{
	uint8_t version = (uint8_t)fixed(c, 1);
	const char *text = (const char *)c->data + c->at;
	size_t len = strnlen(text, c->end - c->at);
	int encoding = ENCODED_ABSOLUTE;

	c->at += len;
	fixed(c, 1);
	if (c->bad || (version != 1 && version != 3))
		return -DCPI_EFORMAT;
	leb(c, false);
	leb(c, true);
	if (version == 1)
		fixed(c, 1);
	else
		leb(c, false);
	if (len && text[0] != 'z')
		return -DCPI_EFORMAT;
	if (len)
		leb(c, false);
	for (size_t i = 1; i < len && !c->bad; i++) {
		uint8_t byte;

		if (text[i] == 'R')
			return c->at < c->end ? (int)fixed(c, 1) : -DCPI_EFORMAT;
		if (text[i] != 'P' && text[i] != 'L')
			continue;
		byte = (uint8_t)fixed(c, 1);
		if (text[i] == 'P')
			number(c, byte & ENCODED_FORMAT);
	}
	return c->bad ? -DCPI_EFORMAT : encoding;
}

/* The entry at @c: its end and its id, which is @id_at before what it stands for. False: the last.
 */
static bool entry_head(struct cursor *c, size_t *id_at, uint64_t *id)
{
	uint64_t len = fixed(c, 4);
	bool wide = len == UINT32_MAX;

	if (wide)
		len = fixed(c, 8);
	if (c->bad || !len || len > c->end - c->at)
		return false;
	c->end = c->at + (size_t)len;
	*id_at = c->at;
	*id = fixed(c, wide ? 8 : 4);
	return !c->bad;
}

static int common_encoding(const struct cursor *section, size_t at)
{
	struct cursor c = *section;
	uint64_t id;
	size_t id_at;

	c.at = at;
	if (!entry_head(&c, &id_at, &id) || id)
		return -DCPI_EFORMAT;
	return encoding_of(&c);
}

static int add_range(struct image_ranges *out, struct cursor *c, int encoding)
{
	struct image_range range = { .vaddr = pointer(c, (uint8_t)encoding) };
	uint64_t end;
	int r;

	range.len = number(c, (uint8_t)encoding & ENCODED_FORMAT);
	if (c->bad || !range.len || base_add_overflow(range.vaddr, range.len, &end))
		return 0;
	r = base_grow(&out->v, &out->cap, out->nr + 1, sizeof(*out->v));
	if (r >= 0)
		out->v[out->nr++] = range;
	return r;
}

static int read_entries(struct image_ranges *out, const struct cursor *section)
{
	size_t at = 0, known_at = SIZE_MAX;
	int r = 0, known = -DCPI_EFORMAT;

	while (r >= 0 && at < section->end) {
		struct cursor c = *section;
		uint64_t id;
		size_t id_at;

		c.at = at;
		if (!entry_head(&c, &id_at, &id))
			break;
		at = c.end;
		if (!id || id > id_at)
			continue;
		if (id_at - (size_t)id != known_at) {
			known_at = id_at - (size_t)id;
			known = common_encoding(section, known_at);
		}
		if (known >= 0)
			r = add_range(out, &c, known);
	}
	return r;
}

int image_ranges_read(struct image_ranges *out, const struct image_elf *f)
{
	GElf_Shdr sh;
	Elf_Scn *scn = image_elf_section(f, ".eh_frame", &sh);
	Elf_Data *data = scn ? elf_rawdata(scn, NULL) : NULL;
	struct cursor section = { .vaddr = sh.sh_addr };

	/* An object file has no addresses yet. */
	if (!data || !data->d_buf || f->header.e_type == ET_REL ||
	    f->header.e_ident[EI_DATA] != ELFDATA2LSB)
		return 0;
	section.data = data->d_buf;
	section.end = data->d_size;
	section.word = f->header.e_ident[EI_CLASS] == ELFCLASS32 ? 4 : 8;
	return read_entries(out, &section);
}
