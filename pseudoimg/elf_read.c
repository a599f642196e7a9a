/* SPDX-License-Identifier: BSD-2-Clause */
/* Pseudo-images as files that are read back: which sections there are, their bytes, their DWARF. */
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

static int get_at(int fd, void *out, size_t len, uint64_t off)
{
	struct pseudoimg_job j;

	pseudoimg_job_of_part(&j, fd, off, len);
	return pseudoimg_job_read(&j, 0, out, len);
}

struct pseudoimg_inflater {
	uint64_t at, end; /* in the file: what is not read yet */
	z_stream z;
	uint8_t in[CHUNK];
};

/* The part is a compressed section: read its head. 0 or negative. */
static int pseudoimg_part_open(struct pseudoimg_part *part, int fd)
{
	Elf64_Chdr head;
	int r;

	if (part->len < sizeof(head))
		return -DCPI_EFORMAT;
	r = get_at(fd, &head, sizeof(head), part->off);
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
static struct pseudoimg_inflater *pseudoimg_inflater_new(const struct pseudoimg_part *part)
{
	struct pseudoimg_inflater *i = calloc(1, sizeof(*i));

	if (!i || inflateInit(&i->z) != Z_OK) {
		free(i);
		return NULL;
	}
	i->at = part->off;
	i->end = part->off + part->packed;
	return i;
}

static void pseudoimg_inflater_free(struct pseudoimg_inflater *i)
{
	if (i)
		inflateEnd(&i->z);
	free(i);
}

/* The next @len bytes, all of them, or negative. */
static int pseudoimg_inflate(struct pseudoimg_inflater *i, int fd, void *out, size_t len)
{
	int r, z;

	i->z.next_out = out;
	i->z.avail_out = (uInt)len;
	while (i->z.avail_out) {
		if (!i->z.avail_in && i->at < i->end) {
			size_t n = i->end - i->at < CHUNK ? (size_t)(i->end - i->at) : CHUNK;

			r = get_at(fd, i->in, n, i->at);
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

/* Position of the next byte, in the part. */
static inline uint64_t pseudoimg_bytes_at(const struct pseudoimg_bytes *b)
{
	return b->at + b->pos;
}

/* ---- files ----------------------------------------------------------------------------------- */

enum { BUFFER = 64 << 10, STRING_MOST = 256 << 10, NAMES_MOST = 1 << 20 };

/* ---- bytes in order -------------------------------------------------------------------------- */

static bool pseudoimg_bytes_left(const struct pseudoimg_bytes *b)
{
	return !b->bad && (b->pos < b->len || b->at + b->len < b->end);
}

static bool refill(struct pseudoimg_bytes *b)
{
	uint64_t at = b->at + b->len;
	size_t n;

	if (b->bad || at >= b->end) {
		b->bad = true;
		return false;
	}
	n = b->end - at < BUFFER ? (size_t)(b->end - at) : BUFFER;
	b->bad = (b->inflater ? pseudoimg_inflate(b->inflater, b->fd, b->buf, n)
			      : base_read_at(b->fd, b->start + at, b->buf, n)) < 0;
	b->at = at;
	b->pos = 0;
	b->len = b->bad ? 0 : n;
	return !b->bad;
}

void pseudoimg_bytes_seek(struct pseudoimg_bytes *b, uint64_t at)
{
	if (at - b->at < b->len) {
		b->pos = (size_t)(at - b->at);
		return;
	}
	b->at = at;
	b->pos = b->len = 0;
}

int pseudoimg_bytes_get(struct pseudoimg_bytes *b, void *out, size_t len)
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

uint8_t pseudoimg_bytes_u8(struct pseudoimg_bytes *b)
{
	return b->pos < b->len || refill(b) ? b->buf[b->pos++] : 0;
}

static uint64_t pseudoimg_bytes_uint(struct pseudoimg_bytes *b, size_t len)
{
	uint64_t v = 0;

	for (size_t i = 0; i < len; i++)
		v |= (uint64_t)pseudoimg_bytes_u8(b) << 8 * i;
	return v;
}

/* A LEB128 of either kind. @last: its last byte; @shift: the bits that it has. */
static uint64_t leb(struct pseudoimg_bytes *b, uint8_t *last, unsigned int *shift)
{
	uint64_t v = 0;

	*shift = 0;
	do {
		*last = pseudoimg_bytes_u8(b);
		if (*shift < 64)
			v |= (uint64_t)(*last & 0x7f) << *shift;
		*shift += 7;
	} while ((*last & 0x80) && *shift < 140);
	return v;
}

static uint64_t pseudoimg_bytes_uleb(struct pseudoimg_bytes *b)
{
	unsigned int shift;
	uint8_t last;

	return leb(b, &last, &shift);
}

static int64_t pseudoimg_bytes_sleb(struct pseudoimg_bytes *b)
{
	unsigned int shift;
	uint8_t last;
	uint64_t v = leb(b, &last, &shift);

	if ((last & 0x40) && shift < 64)
		v |= UINT64_MAX << shift;
	return (int64_t)v;
}

int pseudoimg_bytes_string(struct pseudoimg_bytes *b, struct base_buf *out)
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

static int add_text(struct pseudoimg_file *f, const Elf64_Shdr *h)
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

static int add_section(struct pseudoimg_file *f, const Elf64_Shdr *h, const char *name)
{
	const struct {
		const char *name;
		struct pseudoimg_part *part;
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
		*parts[i].part = (struct pseudoimg_part){ .off = h->sh_offset, .len = h->sh_size };
		if (!(h->sh_flags & SHF_COMPRESSED))
			return 0;
		return parts[i].may_be_compressed ? pseudoimg_part_open(parts[i].part, f->fd)
						  : -DCPI_EFORMAT;
	}
	return 0;
}

static int add_sections(struct pseudoimg_file *f, const Elf64_Ehdr *e, const Elf64_Shdr *h,
			uint64_t file_len)
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

static int read_sections(struct pseudoimg_file *f)
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
static int check_abbrevs(const struct pseudoimg_file *f)
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

int pseudoimg_file_open(struct pseudoimg_file *f, int fd, struct base_err *err)
{
	int r;

	*f = (struct pseudoimg_file){ .fd = fd };
	r = read_sections(f);
	if (r >= 0)
		r = check_abbrevs(f);
	if (r >= 0 && !f->note.len)
		r = -DCPI_EFORMAT;
	if (r < 0)
		pseudoimg_file_close(f);
	return r < 0 ? base_fail_errno(err, r, "cannot read pseudo-image") : 0;
}

void pseudoimg_file_close(struct pseudoimg_file *f)
{
	free(f->text.v);
	memset(f, 0, sizeof(*f));
}

int pseudoimg_file_bytes(const struct pseudoimg_part *part, int fd, struct pseudoimg_bytes *b)
{
	*b = (struct pseudoimg_bytes){ .fd = fd, .start = part->off, .end = part->len };
	b->buf = malloc(BUFFER);
	if (b->buf && part->packed)
		b->inflater = pseudoimg_inflater_new(part);
	return b->buf && !b->inflater == !part->packed ? 0 : -ENOMEM;
}

void pseudoimg_bytes_close(struct pseudoimg_bytes *b)
{
	free(b->buf);
	pseudoimg_inflater_free(b->inflater);
}

/* The section over @vaddr, or the next one; NULL behind the last. */
static const struct pseudoimg_section *section_at(const struct pseudoimg_file *f, uint64_t vaddr)
{
	size_t lo = BASE_BOUND(i, f->text.nr, f->text.v[i].addr + f->text.v[i].len <= vaddr);

	return lo < f->text.nr ? &f->text.v[lo] : NULL;
}

uint64_t pseudoimg_file_range(const struct pseudoimg_file *f, uint64_t base, uint64_t len)
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

int pseudoimg_file_code(const struct pseudoimg_file *f, uint64_t vaddr, void *out, size_t len)
{
	const struct pseudoimg_section *s = section_at(f, vaddr);
	uint64_t there = s && vaddr >= s->addr ? s->len - (vaddr - s->addr) : 0;
	size_t n = there < len ? (size_t)there : len;

	memset((uint8_t *)out + n, 0, len - n);
	return n ? base_read_at(f->fd, s->file_off + (vaddr - s->addr), out, n) : 0;
}

/* ---- DWARF ----------------------------------------------------------------------------------- */

/*
 * The DWARF that dwarf.c and dwarf_line.c write, read back in one go: routines come in the order of
 * their symbols, rows in that of their addresses. Not for anybody else's.
 */

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
