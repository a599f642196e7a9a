/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The DWARF that dwarf.c and dwarf_line.c write, read back in one go: routines come in the order of
 * their symbols, rows in that of their addresses. Not for anybody else's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bound.h"
#include "pseudoimg_internal.h"

static int skip_string(struct pseudoimg_dies *d, struct pseudoimg_bytes *b)
{
	base_buf_clear(&d->skipped);
	return pseudoimg_bytes_string(b, &d->skipped);
}

/* The next string as a name. */
static int64_t take_name(struct pseudoimg_dies *d, struct pseudoimg_bytes *b)
{
	int r = skip_string(d, b);

	if (r < 0)
		return r;
	return pseudoimg_names_put(&d->names, (const char *)d->skipped.data, d->skipped.len - 1);
}

/* ---- opening --------------------------------------------------------------------------------- */

static int open_info(struct pseudoimg_dies *d, const struct pseudoimg_file *f)
{
	struct pseudoimg_bytes *b = &d->info;
	uint8_t code;
	int r = pseudoimg_file_bytes(&f->info, f->fd, b);

	if (r < 0 || !f->info.len)
		return r;
	pseudoimg_bytes_uint(b, 4);
	if (pseudoimg_bytes_uint(b, 2) != 4)
		return -DCPI_EVERSION;
	pseudoimg_bytes_uint(b, 5);
	code = pseudoimg_bytes_u8(b);
	if ((code & ~PSEUDOIMG_DECLARED) != PSEUDOIMG_UNIT)
		return -DCPI_EFORMAT;
	r = skip_string(d, b);
	pseudoimg_bytes_uint(b, 2);
	if (r >= 0)
		r = skip_string(d, b);
	pseudoimg_bytes_uint(b, 8);
	pseudoimg_bytes_uint(b, code & PSEUDOIMG_DECLARED ? 8 : 4);
	return r;
}

static int open_line(struct pseudoimg_dies *d, const struct pseudoimg_file *f)
{
	struct pseudoimg_bytes *b = &d->line;
	uint32_t *file;
	int64_t name;
	int r = pseudoimg_file_bytes(&f->line, f->fd, b);

	d->line_reg = d->file_reg = 1;
	if (r < 0 || !f->line.len)
		return r;
	pseudoimg_bytes_uint(b, 4);
	if (pseudoimg_bytes_uint(b, 2) != 4)
		return -DCPI_EVERSION;
	pseudoimg_bytes_uint(b, 4);
	/* Written in one way only, on which the reading of the program relies. */
	for (size_t i = 0; i < pseudoimg_line_header_len; i++)
		if (pseudoimg_bytes_u8(b) != pseudoimg_line_header[i])
			return -DCPI_EVERSION;
	for (;;) {
		name = take_name(d, b);
		if (name < 0)
			return (int)name;
		if (d->skipped.len == 1)
			return 0;
		file = PSEUDOIMG_PUSH(&d->files);
		if (!file)
			return -ENOMEM;
		*file = (uint32_t)name;
		pseudoimg_bytes_uint(b, 3); /* directory, time, length */
	}
}

int pseudoimg_dies_open(struct pseudoimg_dies *d, const struct pseudoimg_file *f)
{
	int r;

	memset(d, 0, sizeof(*d));
	r = open_info(d, f);
	if (r >= 0)
		r = open_line(d, f);
	if (r < 0)
		pseudoimg_dies_close(d);
	return r;
}

void pseudoimg_dies_close(struct pseudoimg_dies *d)
{
	pseudoimg_names_release(&d->names);
	base_buf_release(&d->skipped);
	free(d->abstracts.v);
	free(d->files.v);
	pseudoimg_bytes_close(&d->info);
	pseudoimg_bytes_close(&d->line);
	memset(d, 0, sizeof(*d));
}

/* ---- routines -------------------------------------------------------------------------------- */

static uint32_t name_of(const struct pseudoimg_dies *d, uint64_t off)
{
	size_t lo = BASE_LOWER_BOUND(d->abstracts.v, d->abstracts.nr, off, off);

	return lo < d->abstracts.nr && d->abstracts.v[lo].off == off ? d->abstracts.v[lo].name
								     : PSEUDOIMG_NO_FILE;
}

static int add_abstract(struct pseudoimg_dies *d, uint64_t off)
{
	int64_t name = take_name(d, &d->info);
	struct pseudoimg_abstract *to;

	if (name < 0)
		return (int)name;
	pseudoimg_bytes_u8(&d->info);
	to = PSEUDOIMG_PUSH(&d->abstracts);
	if (!to)
		return -ENOMEM;
	*to = (struct pseudoimg_abstract){ (uint32_t)off, (uint32_t)name };
	return 0;
}

static uint32_t file_of(const struct pseudoimg_dies *d, uint64_t number)
{
	return number && number <= d->files.nr ? d->files.v[number - 1] : PSEUDOIMG_NO_FILE;
}

static int add_inlined(struct pseudoimg_dies *d, uint8_t code, uint64_t vaddr, uint32_t depth,
		       struct base_buf *out)
{
	struct pseudoimg_bytes *b = &d->info;
	struct wire_inline in = { .depth = depth };
	uint32_t file;

	in.name = name_of(d, pseudoimg_bytes_uint(b, 4));
	in.code_off = (uint32_t)(pseudoimg_bytes_uint(b, 8) - vaddr);
	in.code_len = (uint32_t)pseudoimg_bytes_uint(b, 4);
	if (code & PSEUDOIMG_CALLED) {
		file = file_of(d, pseudoimg_bytes_uleb(b));
		in.call_line = (uint32_t)pseudoimg_bytes_uleb(b);
		in.call_file = file == PSEUDOIMG_NO_FILE ? 0 : file;
		in.call_line = file == PSEUDOIMG_NO_FILE ? 0 : in.call_line;
	}
	if (in.name == PSEUDOIMG_NO_FILE || b->bad)
		return -DCPI_EFORMAT;
	return base_buf_append(out, &in, sizeof(in));
}

static int read_children(struct pseudoimg_dies *d, uint64_t vaddr, struct base_buf *out)
{
	uint32_t depth = 0;
	int r = 0;

	while (r >= 0) {
		uint8_t code = pseudoimg_bytes_u8(&d->info);

		if (d->info.bad)
			return -DCPI_EFORMAT;
		if (!code && !depth)
			return 0;
		if (!code) {
			depth--;
			continue;
		}
		if ((code & 0xf0) != PSEUDOIMG_INLINED || depth >= WIRE_INLINE_DEPTH)
			return -DCPI_EFORMAT;
		r = add_inlined(d, code, vaddr, depth, out);
		depth += (code & PSEUDOIMG_PARENT) != 0;
	}
	return r;
}

int pseudoimg_dies_inlines(struct pseudoimg_dies *d, uint64_t vaddr, uint64_t len,
			   struct base_buf *out)
{
	struct pseudoimg_bytes *b = &d->info;
	uint64_t off = pseudoimg_bytes_at(b);
	uint8_t code;
	int r;

	while ((code = pseudoimg_bytes_u8(b)) == PSEUDOIMG_ABSTRACT) {
		r = add_abstract(d, off);
		if (r < 0)
			return r;
		off = pseudoimg_bytes_at(b);
	}
	if ((code & 0xf0) != PSEUDOIMG_ROUTINE)
		return -DCPI_EFORMAT;
	r = skip_string(d, b);
	if (r < 0)
		return r;
	if (pseudoimg_bytes_uint(b, 8) != vaddr || pseudoimg_bytes_uint(b, 4) != len)
		return -DCPI_EFORMAT;
	if (code & PSEUDOIMG_DECLARED) {
		pseudoimg_bytes_uleb(b);
		pseudoimg_bytes_uleb(b);
	}
	if (b->bad)
		return -DCPI_EFORMAT;
	return code & PSEUDOIMG_PARENT ? read_children(d, vaddr, out) : 0;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void set_row(struct pseudoimg_dies *d, uint32_t line)
{
	uint32_t file = file_of(d, d->file_reg);

	d->has_row = true;
	d->row = (struct wire_line){ 0 };
	if (line && file != PSEUDOIMG_NO_FILE) {
		d->row.line = line;
		d->row.file = file;
		d->row.column = (uint16_t)d->column_reg;
		d->row.discriminator = (uint16_t)d->discriminator_reg;
	}
	d->discriminator_reg = 0;
}

static bool extended(struct pseudoimg_dies *d)
{
	uint64_t len = pseudoimg_bytes_uleb(&d->line);
	uint8_t op = pseudoimg_bytes_u8(&d->line);

	if (op == 1 && len == 1) { /* end of the sequence */
		set_row(d, 0);
		d->line_reg = d->file_reg = 1;
		d->column_reg = 0;
		return true;
	}
	if (op == 4 && len > 1) {
		d->discriminator_reg = (uint32_t)pseudoimg_bytes_uleb(&d->line);
		return true;
	}
	if (op != 2 || len != 9) /* set address */
		return false;
	d->addr = pseudoimg_bytes_uint(&d->line, 8);
	return true;
}

/* Run on to the next row. False where there is none, or what is there is none of ours. */
static bool next_row(struct pseudoimg_dies *d)
{
	struct pseudoimg_bytes *b = &d->line;

	while (!d->has_row && pseudoimg_bytes_left(b)) {
		uint8_t op = pseudoimg_bytes_u8(b);

		if (op >= PSEUDOIMG_OPCODE_BASE) {
			d->addr += (uint64_t)(op - PSEUDOIMG_OPCODE_BASE) / PSEUDOIMG_LINE_RANGE;
			d->line_reg +=
				(uint32_t)(PSEUDOIMG_LINE_BASE +
					   (op - PSEUDOIMG_OPCODE_BASE) % PSEUDOIMG_LINE_RANGE);
			set_row(d, d->line_reg);
		} else if (op == 0) {
			if (!extended(d))
				return false;
		} else if (op == 2) { /* advance pc */
			d->addr += pseudoimg_bytes_uleb(b);
		} else if (op == 3) { /* advance line */
			d->line_reg += (uint32_t)pseudoimg_bytes_sleb(b);
		} else if (op == 4) { /* set file */
			d->file_reg = (uint32_t)pseudoimg_bytes_uleb(b);
		} else if (op == 5) { /* set column */
			d->column_reg = (uint32_t)pseudoimg_bytes_uleb(b);
		} else {
			return false;
		}
	}
	return d->has_row && !b->bad;
}

int pseudoimg_dies_lines(struct pseudoimg_dies *d, uint64_t vaddr, uint64_t len,
			 struct base_buf *out)
{
	bool begun = false;
	int r = 0;

	while (r >= 0 && next_row(d) && d->addr < vaddr + len) {
		struct wire_line line = d->row;

		line.code_off = (uint32_t)(d->addr - vaddr);
		d->has_row = false;
		/* A row without line may only close a gap before the first. */
		if (d->addr < vaddr || (!begun && !line.line))
			continue;
		begun = true;
		r = base_buf_append(out, &line, sizeof(line));
	}
	return r;
}
