/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pseudo-image becomes a job again. Its sections are found, and their bytes and DWARF read: only
 * as this library writes them. The job gets the note's records, what the application owned, and
 * each symbol as a routine. Routines that DST brought stand in owned ranges, and come from it
 * again.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "bound.h"
#include "pseudoimg_internal.h"

/* ---- contents of compressed sections --------------------------------------------------------- */

enum { CHUNK = 64 << 10 };

struct part {
	uint64_t off, len; /* in the file; len 0: no such section */
	uint64_t packed; /* packed length of a compressed part, whose len is that of its contents */
};

struct inflater {
	uint64_t at, end; /* in the file: what is not read yet */
	z_stream z;
	uint8_t in[CHUNK];
};

/* The part is a compressed section: read its head. 0 or negative. */
static int part_open(struct part *part, int fd)
{
	Elf64_Chdr head;
	int r;

	if (part->len < sizeof(head))
		return -DCPI_EFORMAT;
	r = base_read_at(fd, part->off, &head, sizeof(head));
	if (r < 0)
		return r;
	part->packed = part->len - sizeof(head);
	part->off += sizeof(head);
	part->len = head.ch_size;
	/* No byte of deflate's becomes more than 1,032. */
	if (head.ch_type != ELFCOMPRESS_ZLIB || !part->packed || part->len / 1032 > part->packed)
		return -DCPI_EFORMAT;
	return 0;
}

/* Begin to read the contents of a compressed part. NULL: no memory. */
static struct inflater *inflater_new(const struct part *part)
{
	struct inflater *i = calloc(1, sizeof(*i));

	if (!i || inflateInit(&i->z) != Z_OK) {
		free(i);
		return NULL;
	}
	i->at = part->off;
	i->end = part->off + part->packed;
	return i;
}

static void inflater_free(struct inflater *i)
{
	if (i)
		inflateEnd(&i->z);
	free(i);
}

/* The next @len bytes, all of them, or negative. */
static int inflate_next(struct inflater *i, int fd, void *out, size_t len)
{
	int r, z;

	i->z.next_out = out;
	i->z.avail_out = (uInt)len;
	while (i->z.avail_out) {
		if (!i->z.avail_in && i->at < i->end) {
			size_t n = i->end - i->at < CHUNK ? (size_t)(i->end - i->at) : CHUNK;

			r = base_read_at(fd, i->at, i->in, n);
			if (r < 0)
				return r;
			i->at += n;
			i->z.next_in = i->in;
			i->z.avail_in = (uInt)n;
		}
		z = inflate(&i->z, Z_NO_FLUSH);
		if (z != Z_OK && (z != Z_STREAM_END || i->z.avail_out))
			return -DCPI_EFORMAT;
	}
	return 0;
}

/* ---- bytes in order -------------------------------------------------------------------------- */

enum { BUFFER = 64 << 10, STRING_MOST = 256 << 10 };

/* Bytes of a part, in order. Zeros, and @bad, behind the end. */
struct bytes {
	int fd;
	uint64_t start;	  /* in the file, where its first byte stands */
	uint64_t at, end; /* in the part: of the buffer's first byte; behind its last one */
	uint8_t *buf;	  /* owned */
	size_t pos, len;  /* in the buffer */
	struct inflater *inflater; /* owned; NULL: as the file has them */
	bool bad;
};

static int bytes_open(const struct part *part, int fd, struct bytes *b)
{
	*b = (struct bytes){ .fd = fd, .start = part->off, .end = part->len };
	b->buf = malloc(BUFFER);
	if (b->buf && part->packed)
		b->inflater = inflater_new(part);
	return b->buf && !b->inflater == !part->packed ? 0 : -ENOMEM;
}

static void bytes_close(struct bytes *b)
{
	free(b->buf);
	inflater_free(b->inflater);
}

/* Position of the next byte, in the part. */
static uint64_t bytes_at(const struct bytes *b)
{
	return b->at + b->pos;
}

static bool bytes_left(const struct bytes *b)
{
	return !b->bad && (b->pos < b->len || b->at + b->len < b->end);
}

static bool refill(struct bytes *b)
{
	uint64_t at = b->at + b->len;
	size_t n;

	if (b->bad || at >= b->end) {
		b->bad = true;
		return false;
	}
	n = b->end - at < BUFFER ? (size_t)(b->end - at) : BUFFER;
	b->bad = (b->inflater ? inflate_next(b->inflater, b->fd, b->buf, n)
			      : base_read_at(b->fd, b->start + at, b->buf, n)) < 0;
	b->at = at;
	b->pos = 0;
	b->len = b->bad ? 0 : n;
	return !b->bad;
}

/* Go on at byte @at of a part that is not compressed. */
static void bytes_seek(struct bytes *b, uint64_t at)
{
	if (at - b->at < b->len) {
		b->pos = (size_t)(at - b->at);
		return;
	}
	b->at = at;
	b->pos = b->len = 0;
}

/* The next @len bytes. 0, or -DCPI_ETRUNCATED, -DCPI_EFORMAT, -errno. */
static int bytes_get(struct bytes *b, void *out, size_t len)
{
	uint8_t *to = out;

	while (len) {
		size_t n = b->len - b->pos < len ? b->len - b->pos : len;

		if (!n && !refill(b))
			return -DCPI_ETRUNCATED;
		memcpy(to, b->buf + b->pos, n);
		b->pos += n;
		to += n;
		len -= n;
	}
	return 0;
}

static uint8_t bytes_u8(struct bytes *b)
{
	return b->pos < b->len || refill(b) ? b->buf[b->pos++] : 0;
}

static uint64_t bytes_uint(struct bytes *b, size_t len)
{
	uint64_t v = 0;

	for (size_t i = 0; i < len; i++)
		v |= (uint64_t)bytes_u8(b) << 8 * i;
	return v;
}

/* A LEB128 of either kind. @last: its last byte; @shift: the bits that it has. */
static uint64_t leb(struct bytes *b, uint8_t *last, unsigned int *shift)
{
	uint64_t v = 0;

	*shift = 0;
	do {
		*last = bytes_u8(b);
		if (*shift < 64)
			v |= (uint64_t)(*last & 0x7f) << *shift;
		*shift += 7;
	} while ((*last & 0x80) && *shift < 140);
	return v;
}

static uint64_t bytes_uleb(struct bytes *b)
{
	unsigned int shift;
	uint8_t last;

	return leb(b, &last, &shift);
}

static int64_t bytes_sleb(struct bytes *b)
{
	unsigned int shift;
	uint8_t last;
	uint64_t v = leb(b, &last, &shift);

	if ((last & 0x40) && shift < 64)
		v |= UINT64_MAX << shift;
	return (int64_t)v;
}

/* Append up to and with the NUL. 0, -ENOMEM, -DCPI_EFORMAT where there is none in 256 KiB. */
static int bytes_string(struct bytes *b, struct base_buf *out)
{
	size_t start = out->len;
	const uint8_t *nul;
	size_t n;
	int r;

	do {
		if (b->pos == b->len && !refill(b))
			return -DCPI_EFORMAT;
		nul = memchr(b->buf + b->pos, '\0', b->len - b->pos);
		n = nul ? (size_t)(nul - b->buf) + 1 - b->pos : b->len - b->pos;
		r = base_buf_append(out, b->buf + b->pos, n);
		b->pos += n;
		if (r < 0)
			return r;
		if (out->len - start > STRING_MOST)
			return -DCPI_EFORMAT;
	} while (!nul);
	return 0;
}

/* ---- the file -------------------------------------------------------------------------------- */

enum { NAMES_MOST = 1 << 20 };

/* The file's sections that count. */
struct file {
	int fd;
	uint32_t machine;
	PSEUDOIMG_ARRAY(struct pseudoimg_section) text; /* as in the file: by address */
	struct part note, id, dst, abbrev, info, line, symbols, strings;
};

static int add_text(struct file *f, const Elf64_Shdr *h)
{
	const struct pseudoimg_section *last = f->text.nr ? &f->text.v[f->text.nr - 1] : NULL;
	struct pseudoimg_section *s;

	if (h->sh_addr + h->sh_size < h->sh_addr || (last && h->sh_addr < last->addr + last->len))
		return -DCPI_EFORMAT;
	s = PSEUDOIMG_PUSH(&f->text);
	if (!s)
		return -ENOMEM;
	*s = (struct pseudoimg_section){ .addr = h->sh_addr,
					 .len = h->sh_size,
					 .file_off = h->sh_offset };
	return 0;
}

static int add_section(struct file *f, const Elf64_Shdr *h, const char *name)
{
	const struct {
		const char *name;
		struct part *part;
		bool may_be_compressed;
	} parts[] = {
		{ PSEUDOIMG_NOTE_SECTION, &f->note, true }, { ".note.gnu.build-id", &f->id, false },
		{ PSEUDOIMG_DST_SECTION, &f->dst, false },  { ".debug_abbrev", &f->abbrev, false },
		{ ".debug_info", &f->info, true },	    { ".debug_line", &f->line, true },
		{ ".symtab", &f->symbols, false },	    { ".strtab", &f->strings, false },
	};

	if (h->sh_flags & SHF_EXECINSTR)
		return add_text(f, h);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (strcmp(name, parts[i].name) != 0)
			continue;
		*parts[i].part = (struct part){ .off = h->sh_offset, .len = h->sh_size };
		if (!(h->sh_flags & SHF_COMPRESSED))
			return 0;
		return parts[i].may_be_compressed ? part_open(parts[i].part, f->fd) : -DCPI_EFORMAT;
	}
	return 0;
}

static int add_sections(struct file *f, const Elf64_Ehdr *e, const Elf64_Shdr *h, uint64_t file_len)
{
	const Elf64_Shdr *names = &h[e->e_shstrndx];
	char *text = NULL;
	int r = 0;

	for (size_t i = 1; i < e->e_shnum; i++)
		if (h[i].sh_type != SHT_NOBITS &&
		    (h[i].sh_offset > file_len || h[i].sh_size > file_len - h[i].sh_offset))
			return -DCPI_ETRUNCATED;
	if (!names->sh_size || names->sh_size > NAMES_MOST || names->sh_type == SHT_NOBITS)
		return -DCPI_EFORMAT;
	text = calloc(1, names->sh_size + 1);
	if (!text)
		return -ENOMEM;
	r = base_read_at(f->fd, names->sh_offset, text, names->sh_size);
	for (size_t i = 1; r >= 0 && i < e->e_shnum; i++) {
		if (h[i].sh_type == SHT_NOBITS)
			continue;
		r = h[i].sh_name < names->sh_size ? add_section(f, &h[i], text + h[i].sh_name)
						  : -DCPI_EFORMAT;
	}
	free(text);
	return r;
}

static int read_sections(struct file *f)
{
	off_t file_len = lseek(f->fd, 0, SEEK_END);
	Elf64_Shdr *h = NULL;
	Elf64_Ehdr e;
	int r;

	if (file_len < 0)
		return -errno;
	r = base_read_at(f->fd, 0, &e, sizeof(e));
	if (r < 0)
		return r;
	f->machine = e.e_machine;
	if (memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || e.e_ident[EI_CLASS] != ELFCLASS64 ||
	    e.e_ident[EI_DATA] != ELFDATA2LSB || e.e_shentsize != sizeof(*h) || !e.e_shnum ||
	    e.e_shstrndx >= e.e_shnum || !pseudoimg_machine_known(f->machine))
		return -DCPI_EFORMAT;
	h = calloc(e.e_shnum, sizeof(*h));
	if (!h)
		return -ENOMEM;
	r = base_read_at(f->fd, e.e_shoff, h, e.e_shnum * sizeof(*h));
	if (r >= 0)
		r = add_sections(f, &e, h, (uint64_t)file_len);
	free(h);
	return r;
}

/* The contents of .debug_info can be read only if the abbreviations are those of today. */
static int check_abbrevs(const struct file *f)
{
	uint8_t *bytes;
	int r;

	if (!f->abbrev.len && !f->info.len)
		return 0;
	if (f->abbrev.len != pseudoimg_abbrevs_len)
		return -DCPI_EVERSION;
	bytes = malloc(pseudoimg_abbrevs_len);
	if (!bytes)
		return -ENOMEM;
	r = base_read_at(f->fd, f->abbrev.off, bytes, pseudoimg_abbrevs_len);
	if (r >= 0 && memcmp(bytes, pseudoimg_abbrevs, pseudoimg_abbrevs_len) != 0)
		r = -DCPI_EVERSION;
	free(bytes);
	return r;
}

static void file_close(struct file *f)
{
	free(f->text.v);
	memset(f, 0, sizeof(*f));
}

/* 0, or a negative where it is no pseudo-image of this version. */
static int file_open(struct file *f, int fd, struct base_err *err)
{
	int r;

	*f = (struct file){ .fd = fd };
	r = read_sections(f);
	if (r >= 0)
		r = check_abbrevs(f);
	if (r >= 0 && !f->note.len)
		r = -DCPI_EFORMAT;
	if (r < 0)
		file_close(f);
	return r < 0 ? base_fail_errno(err, r, "cannot read pseudo-image") : 0;
}

/* The section over @vaddr, or the next one; NULL behind the last. */
static const struct pseudoimg_section *section_at(const struct file *f, uint64_t vaddr)
{
	size_t lo = BASE_BOUND(i, f->text.nr, f->text.v[i].addr + f->text.v[i].len <= vaddr);

	return lo < f->text.nr ? &f->text.v[lo] : NULL;
}

/*
 * How many bytes an owned range has, without zeros that end it. Of each of its parts, all but the
 * last WIRE_BYTES_MOST long, what is not zero lies in the section at the part's beginning; one that
 * has none is the end, as for who reads the range from memory.
 */
static uint64_t file_range(const struct file *f, uint64_t base, uint64_t len)
{
	const struct pseudoimg_section *s;
	uint64_t extent = 0, last;

	/* The next part wraps around where a file claims all addresses. */
	for (uint64_t part = 0; part < len && part >= extent;
	     part = base_align_up(extent, WIRE_BYTES_MOST)) {
		s = section_at(f, base + part);
		if (!s || s->addr > base + part)
			break;
		last = s->addr + s->len - base;
		extent = last < len ? last : len;
	}
	return extent;
}

/* Copy of @len bytes at @vaddr; what is not in the section there is zero. 0 or -errno. */
static int file_code(const struct file *f, uint64_t vaddr, void *out, size_t len)
{
	const struct pseudoimg_section *s = section_at(f, vaddr);
	uint64_t there = s && vaddr >= s->addr ? s->len - (vaddr - s->addr) : 0;
	size_t n = there < len ? (size_t)there : len;

	memset((uint8_t *)out + n, 0, len - n);
	return n ? base_read_at(f->fd, s->file_off + (vaddr - s->addr), out, n) : 0;
}

/* ---- DWARF ----------------------------------------------------------------------------------- */

/* A routine as such, of which parts are inlined. */
struct abstract {
	uint32_t off, name; /* in the unit, in names */
};

/*
 * Lines and inlined parts of the DWARF that dwarf.c writes, read back in one go: routines come in
 * the order of their symbols, rows in that of their addresses.
 */
struct dies {
	struct pseudoimg_names names;
	PSEUDOIMG_ARRAY(struct abstract) abstracts; /* ascending */
	struct bytes info, line;
	PSEUDOIMG_ARRAY(uint32_t) files; /* names by number - 1 */
	/* The registers of the line program. */
	uint64_t addr;
	uint32_t line_reg, file_reg, column_reg, discriminator_reg;
	/* The row that comes next stands at addr. */
	bool has_row;
	struct wire_line row; /* its file is a name */
	struct base_buf skipped;
};

static int skip_string(struct dies *d, struct bytes *b)
{
	base_buf_clear(&d->skipped);
	return bytes_string(b, &d->skipped);
}

/* The next string as a name. */
static int64_t take_name(struct dies *d, struct bytes *b)
{
	int r = skip_string(d, b);

	if (r < 0)
		return r;
	return pseudoimg_names_put(&d->names, (const char *)d->skipped.data, d->skipped.len - 1);
}

static int open_info(struct dies *d, const struct file *f)
{
	struct bytes *b = &d->info;
	uint8_t code;
	int r = bytes_open(&f->info, f->fd, b);

	if (r < 0 || !f->info.len)
		return r;
	bytes_uint(b, 4);
	if (bytes_uint(b, 2) != 4)
		return -DCPI_EVERSION;
	bytes_uint(b, 5);
	code = bytes_u8(b);
	if ((code & ~PSEUDOIMG_DECLARED) != PSEUDOIMG_UNIT)
		return -DCPI_EFORMAT;
	r = skip_string(d, b);
	bytes_uint(b, 2);
	if (r >= 0)
		r = skip_string(d, b);
	bytes_uint(b, 8);
	bytes_uint(b, code & PSEUDOIMG_DECLARED ? 8 : 4);
	return r;
}

static int open_line(struct dies *d, const struct file *f)
{
	struct bytes *b = &d->line;
	uint32_t *file;
	int64_t name;
	int r = bytes_open(&f->line, f->fd, b);

	d->line_reg = d->file_reg = 1;
	if (r < 0 || !f->line.len)
		return r;
	bytes_uint(b, 4);
	if (bytes_uint(b, 2) != 4)
		return -DCPI_EVERSION;
	bytes_uint(b, 4);
	/* Written in one way only, on which the reading of the program relies. */
	for (size_t i = 0; i < pseudoimg_line_header_len; i++)
		if (bytes_u8(b) != pseudoimg_line_header[i])
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
		bytes_uint(b, 3); /* directory, time, length */
	}
}

static void dies_close(struct dies *d)
{
	pseudoimg_names_release(&d->names);
	base_buf_release(&d->skipped);
	free(d->abstracts.v);
	free(d->files.v);
	bytes_close(&d->info);
	bytes_close(&d->line);
	memset(d, 0, sizeof(*d));
}

static int dies_open(struct dies *d, const struct file *f)
{
	int r;

	memset(d, 0, sizeof(*d));
	r = open_info(d, f);
	if (r >= 0)
		r = open_line(d, f);
	if (r < 0)
		dies_close(d);
	return r;
}

/* ---- routines -------------------------------------------------------------------------------- */

static uint32_t name_of(const struct dies *d, uint64_t off)
{
	size_t lo = BASE_LOWER_BOUND(d->abstracts.v, d->abstracts.nr, off, off);

	return lo < d->abstracts.nr && d->abstracts.v[lo].off == off ? d->abstracts.v[lo].name
								     : PSEUDOIMG_NO_FILE;
}

static int add_abstract(struct dies *d, uint64_t off)
{
	int64_t name = take_name(d, &d->info);
	struct abstract *to;

	if (name < 0)
		return (int)name;
	bytes_u8(&d->info);
	to = PSEUDOIMG_PUSH(&d->abstracts);
	if (!to)
		return -ENOMEM;
	*to = (struct abstract){ (uint32_t)off, (uint32_t)name };
	return 0;
}

static uint32_t file_of(const struct dies *d, uint64_t number)
{
	return number && number <= d->files.nr ? d->files.v[number - 1] : PSEUDOIMG_NO_FILE;
}

static int add_inlined(struct dies *d, uint8_t code, uint64_t vaddr, uint32_t depth,
		       struct base_buf *out)
{
	struct bytes *b = &d->info;
	struct wire_inline in = { .depth = depth };
	uint32_t file;

	in.name = name_of(d, bytes_uint(b, 4));
	in.code_off = (uint32_t)(bytes_uint(b, 8) - vaddr);
	in.code_len = (uint32_t)bytes_uint(b, 4);
	if (code & PSEUDOIMG_CALLED) {
		file = file_of(d, bytes_uleb(b));
		in.call_line = (uint32_t)bytes_uleb(b);
		in.call_file = file == PSEUDOIMG_NO_FILE ? 0 : file;
		in.call_line = file == PSEUDOIMG_NO_FILE ? 0 : in.call_line;
	}
	if (in.name == PSEUDOIMG_NO_FILE || b->bad)
		return -DCPI_EFORMAT;
	return base_buf_append(out, &in, sizeof(in));
}

static int read_children(struct dies *d, uint64_t vaddr, struct base_buf *out)
{
	uint32_t depth = 0;
	int r = 0;

	while (r >= 0) {
		uint8_t code = bytes_u8(&d->info);

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

/*
 * Append the inlined parts of the routine at [@vaddr, @vaddr + @len), which ascend; names count in
 * @d->names.
 */
static int dies_inlines(struct dies *d, uint64_t vaddr, uint64_t len, struct base_buf *out)
{
	struct bytes *b = &d->info;
	uint64_t off = bytes_at(b);
	uint8_t code;
	int r;

	while ((code = bytes_u8(b)) == PSEUDOIMG_ABSTRACT) {
		r = add_abstract(d, off);
		if (r < 0)
			return r;
		off = bytes_at(b);
	}
	if ((code & 0xf0) != PSEUDOIMG_ROUTINE)
		return -DCPI_EFORMAT;
	r = skip_string(d, b);
	if (r < 0)
		return r;
	if (bytes_uint(b, 8) != vaddr || bytes_uint(b, 4) != len)
		return -DCPI_EFORMAT;
	if (code & PSEUDOIMG_DECLARED) {
		bytes_uleb(b);
		bytes_uleb(b);
	}
	if (b->bad)
		return -DCPI_EFORMAT;
	return code & PSEUDOIMG_PARENT ? read_children(d, vaddr, out) : 0;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void set_row(struct dies *d, uint32_t line)
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

static bool extended(struct dies *d)
{
	uint64_t len = bytes_uleb(&d->line);
	uint8_t op = bytes_u8(&d->line);

	if (op == 1 && len == 1) { /* end of the sequence */
		set_row(d, 0);
		d->line_reg = d->file_reg = 1;
		d->column_reg = 0;
		return true;
	}
	if (op == 4 && len > 1) {
		d->discriminator_reg = (uint32_t)bytes_uleb(&d->line);
		return true;
	}
	if (op != 2 || len != 9) /* set address */
		return false;
	d->addr = bytes_uint(&d->line, 8);
	return true;
}

/* Run on to the next row. False where there is none, or what is there is none of ours. */
static bool next_row(struct dies *d)
{
	struct bytes *b = &d->line;

	while (!d->has_row && bytes_left(b)) {
		uint8_t op = bytes_u8(b);

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
			d->addr += bytes_uleb(b);
		} else if (op == 3) { /* advance line */
			d->line_reg += (uint32_t)bytes_sleb(b);
		} else if (op == 4) { /* set file */
			d->file_reg = (uint32_t)bytes_uleb(b);
		} else if (op == 5) { /* set column */
			d->column_reg = (uint32_t)bytes_uleb(b);
		} else {
			return false;
		}
	}
	return d->has_row && !b->bad;
}

static int dies_lines(struct dies *d, uint64_t vaddr, uint64_t len, struct base_buf *out)
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

enum { NOTE_MOST = 256 << 20 };

struct reader {
	struct file file;
	struct dies dies;
	struct pseudoimg_sink *out;
	uint64_t *note; /* the descriptor, aligned */
	size_t note_len;
	PSEUDOIMG_ARRAY(struct pseudoimg_span) owned; /* where DST may have routines */
	bool has_dst;
	struct base_buf name, lines, inlines, files, record;
	uint32_t stamp;
};

/* ---- the note -------------------------------------------------------------------------------- */

static int read_note(struct reader *rd)
{
	struct bytes b = { 0 };
	Elf64_Nhdr nh = { 0 };
	uint8_t owner[8];
	uint64_t len = rd->file.note.len, head = sizeof(nh) + sizeof(owner);
	int r;

	if (len < head || len > NOTE_MOST)
		return -DCPI_EFORMAT;
	r = bytes_open(&rd->file.note, rd->file.fd, &b);
	if (r >= 0)
		r = bytes_get(&b, &nh, sizeof(nh));
	if (r >= 0)
		r = bytes_get(&b, owner, sizeof(owner));
	if (r >= 0 && (nh.n_namesz != sizeof(PSEUDOIMG_NOTE_OWNER) ||
		       nh.n_type != PSEUDOIMG_NOTE_TYPE || nh.n_descsz > len - head))
		r = -DCPI_EFORMAT;
	if (r >= 0) {
		rd->note_len = nh.n_descsz;
		rd->note = malloc(rd->note_len + 8);
		r = rd->note ? bytes_get(&b, rd->note, rd->note_len) : -ENOMEM;
	}
	bytes_close(&b);
	return r;
}

static int put(struct reader *rd, const void *data, size_t len)
{
	int r = base_buf_append(&rd->out->b, data, len);

	return r < 0 ? r : pseudoimg_sink_drain(rd->out);
}

/* The image itself is one that the next one replaces: profiles may name it. */
static int put_own_id(struct reader *rd)
{
	struct wire_replaces rec = { .head = { .len = sizeof(rec), .type = WIRE_REPLACES } };
	int r;

	if (rd->file.id.len != sizeof(Elf64_Nhdr) + 4 + sizeof(rec.id))
		return 0;
	r = base_read_at(rd->file.fd, rd->file.id.off + sizeof(Elf64_Nhdr) + 4, rec.id,
			 sizeof(rec.id));
	return r < 0 ? r : put(rd, &rec, sizeof(rec));
}

/* ---- owned ranges ---------------------------------------------------------------------------- */

/* @len bytes at @off of the range: by @get, in records that are not too long. */
static int put_bytes(struct reader *rd, const struct wire_range *range, uint64_t len,
		     int (*get)(struct reader *, uint64_t from, void *out, size_t len),
		     uint64_t from)
{
	uint64_t done = 0;
	int r = 0;

	do {
		size_t n = len - done < WIRE_BYTES_MOST ? (size_t)(len - done) : WIRE_BYTES_MOST;
		const struct wire_bytes rec = {
			.head = { .len = (uint32_t)base_align_up(sizeof(rec) + n, 8),
				  .type = WIRE_BYTES },
			.facility = range->facility,
			.kind = range->kind,
			.vaddr = range->base + done,
			.bytes_len = n,
			.range_base = range->base,
			.range_len = range->len,
		};
		void *space;

		r = base_buf_append(&rd->out->b, &rec, sizeof(rec));
		if (r >= 0)
			r = base_buf_extend(&rd->out->b, rec.head.len - sizeof(rec), &space);
		if (r >= 0)
			r = get(rd, from + done, space, n);
		if (r >= 0)
			r = pseudoimg_sink_drain(rd->out);
		done += n;
	} while (r >= 0 && done < len);
	return r;
}

static int get_code(struct reader *rd, uint64_t vaddr, void *out, size_t len)
{
	return file_code(&rd->file, vaddr, out, len);
}

static int get_dst(struct reader *rd, uint64_t off, void *out, size_t len)
{
	return base_read_at(rd->file.fd, rd->file.dst.off + off, out, len);
}

static int put_range(struct reader *rd, const struct wire_range_rec *rec, uint64_t *dst)
{
	const struct wire_range *range = &rec->range;
	struct pseudoimg_span *owned;
	int r;

	if (range->kind == WIRE_RANGE_DST) {
		if (*dst > rd->file.dst.len || rec->dst_len > rd->file.dst.len - *dst ||
		    rec->dst_len > range->len)
			return -DCPI_EFORMAT;
		rd->has_dst = true;
		r = put_bytes(rd, range, rec->dst_len, get_dst, *dst);
		*dst += rec->dst_len;
		return r;
	}
	owned = PSEUDOIMG_PUSH(&rd->owned);
	if (!owned)
		return -ENOMEM;
	*owned = (struct pseudoimg_span){ .start = range->base, .len = range->len };
	return put_bytes(rd, range, file_range(&rd->file, range->base, range->len), get_code,
			 range->base);
}

static int put_note(struct reader *rd)
{
	const struct wire_head *rec;
	uint64_t dst = 0;
	size_t pos = 0;
	bool first = true;
	int r = 0;

	while (r >= 0 && (rec = wire_next(rd->note, rd->note_len, &pos))) {
		if (wire_check(rec) < 0 || first != (rec->type == WIRE_IMAGE))
			return -DCPI_EFORMAT;
		first = false;
		if (rec->type == WIRE_RANGE)
			r = put_range(rd, (const void *)rec, &dst);
		else if (rec->type != WIRE_ROUTINE && rec->type != WIRE_BYTES)
			r = put(rd, rec, rec->len);
	}
	if (r >= 0 && (first || pos != rd->note_len))
		r = -DCPI_EFORMAT;
	return r < 0 ? r : put_own_id(rd);
}

/* ---- routines -------------------------------------------------------------------------------- */

static bool from_dst(const struct reader *rd, const Elf64_Sym *sym)
{
	for (size_t i = 0; rd->has_dst && i < rd->owned.nr; i++)
		if (sym->st_value - rd->owned.v[i].start < rd->owned.v[i].len)
			return true;
	return false;
}

/* The record's own number for a name, which is added to its files where it is new. */
static int number(struct reader *rd, uint32_t index, uint32_t *nr_files, uint32_t *out)
{
	struct pseudoimg_name *name = &rd->dies.names.v.v[index];
	const char *text = pseudoimg_names_text(&rd->dies.names, index);
	size_t len = strlen(text);
	uint8_t head[2] = { (uint8_t)len, (uint8_t)(len >> 8) };
	int r = 0;

	if (name->stamp != rd->stamp) {
		name->stamp = rd->stamp;
		name->local = (*nr_files)++;
		r = base_buf_append(&rd->files, head, sizeof(head));
		if (r >= 0)
			r = base_buf_append(&rd->files, text, len);
	}
	*out = name->local;
	return r;
}

static int number_all(struct reader *rd, uint32_t *nr_files)
{
	struct wire_line *lines = (void *)rd->lines.data;
	struct wire_inline *inlines = (void *)rd->inlines.data;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < rd->lines.len / sizeof(*lines); i++)
		if (lines[i].line)
			r = number(rd, lines[i].file, nr_files, &lines[i].file);
	for (size_t i = 0; r >= 0 && i < rd->inlines.len / sizeof(*inlines); i++) {
		r = number(rd, inlines[i].name, nr_files, &inlines[i].name);
		if (r >= 0 && inlines[i].call_line)
			r = number(rd, inlines[i].call_file, nr_files, &inlines[i].call_file);
	}
	return r;
}

static int pad(struct base_buf *b)
{
	void *space;

	return base_buf_extend(b, -b->len & 7, &space);
}

static int make_record(struct reader *rd, const Elf64_Sym *sym, uint64_t seq)
{
	struct wire_routine rec = {
		.head = { .type = WIRE_ROUTINE, .flags = WIRE_ROUTINE_CODE },
		.seq = seq,
		.addr = sym->st_value,
		.code_len = sym->st_size,
		.name_len = (uint32_t)rd->name.len - 1,
		.nr_lines = (uint32_t)(rd->lines.len / sizeof(struct wire_line)),
		.nr_inlines = (uint32_t)(rd->inlines.len / sizeof(struct wire_inline)),
	};
	struct base_buf *b = &rd->record;
	void *code;
	int r;

	base_buf_clear(b);
	base_buf_clear(&rd->files);
	rd->stamp++;
	r = number_all(rd, &rec.nr_files);
	if (r >= 0)
		r = base_buf_append(b, &rec, sizeof(rec));
	if (r >= 0)
		r = base_buf_append(b, rd->name.data, rec.name_len);
	if (r >= 0)
		r = base_buf_extend(b, sym->st_size, &code);
	if (r >= 0)
		r = file_code(&rd->file, sym->st_value, code, sym->st_size);
	if (r >= 0)
		r = pad(b);
	if (r >= 0)
		r = base_buf_append(b, rd->lines.data, rd->lines.len);
	if (r >= 0)
		r = base_buf_append(b, rd->inlines.data, rd->inlines.len);
	if (r >= 0)
		r = base_buf_append(b, rd->files.data, rd->files.len);
	return r < 0 ? r : pad(b);
}

static int put_symbol(struct reader *rd, const Elf64_Sym *sym, uint64_t seq)
{
	struct wire_routine_view view;
	struct wire_head *head;
	int r;

	if (!sym->st_size || sym->st_size > WIRE_CODE_MAX)
		return -DCPI_EFORMAT;
	base_buf_clear(&rd->lines);
	base_buf_clear(&rd->inlines);
	r = dies_inlines(&rd->dies, sym->st_value, sym->st_size, &rd->inlines);
	if (r < 0 || from_dst(rd, sym))
		return r;
	r = dies_lines(&rd->dies, sym->st_value, sym->st_size, &rd->lines);
	if (r >= 0)
		r = make_record(rd, sym, seq);
	if (r < 0)
		return r;
	head = (void *)rd->record.data;
	if (rd->record.len > WIRE_RECORD_MAX)
		return -DCPI_EFORMAT;
	head->len = (uint32_t)rd->record.len;
	if (wire_routine_parse(head, &view) < 0)
		return -DCPI_EFORMAT;
	return put(rd, rd->record.data, rd->record.len);
}

static int put_symbols(struct reader *rd)
{
	uint64_t nr = rd->file.symbols.len / sizeof(Elf64_Sym);
	struct bytes symbols = { 0 }, names = { 0 };
	Elf64_Sym sym;
	int r = bytes_open(&rd->file.symbols, rd->file.fd, &symbols);

	if (r >= 0)
		r = bytes_open(&rd->file.strings, rd->file.fd, &names);
	for (size_t i = 0; r >= 0 && nr && i < sizeof(sym); i++)
		bytes_u8(&symbols);
	for (uint64_t i = 1; r >= 0 && i < nr; i++) {
		if (bytes_get(&symbols, &sym, sizeof(sym)) < 0) {
			r = -DCPI_EFORMAT;
			break;
		}
		base_buf_clear(&rd->name);
		bytes_seek(&names, sym.st_name);
		r = bytes_string(&names, &rd->name);
		if (r >= 0 && rd->name.len - 1 > WIRE_NAME_MAX)
			r = -DCPI_EFORMAT;
		if (r >= 0)
			r = put_symbol(rd, &sym, i);
	}
	bytes_close(&symbols);
	bytes_close(&names);
	return r;
}

static void release(struct reader *rd)
{
	dies_close(&rd->dies);
	file_close(&rd->file);
	base_buf_release(&rd->name);
	base_buf_release(&rd->lines);
	base_buf_release(&rd->inlines);
	base_buf_release(&rd->files);
	base_buf_release(&rd->record);
	free(rd->owned.v);
	free(rd->note);
}

int pseudoimg_read(int fd, struct pseudoimg_sink *out, struct base_err *err)
{
	struct reader rd = { .out = out };
	int r = file_open(&rd.file, fd, err);

	if (r < 0)
		return r;
	r = dies_open(&rd.dies, &rd.file);
	if (r >= 0)
		r = read_note(&rd);
	if (r >= 0)
		r = put_note(&rd);
	if (r >= 0)
		r = put_symbols(&rd);
	release(&rd);
	return r < 0 ? base_fail_errno(err, r, "cannot read pseudo-image") : 0;
}
