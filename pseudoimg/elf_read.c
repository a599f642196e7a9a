/* SPDX-License-Identifier: BSD-2-Clause */
/* Pseudo-images as files: which sections there are, and their bytes. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bound.h"
#include "pseudoimg_internal.h"

enum { BUFFER = 64 << 10, STRING_MOST = 256 << 10, NAMES_MOST = 1 << 20 };

/* ---- bytes in order -------------------------------------------------------------------------- */

bool pseudoimg_bytes_left(const struct pseudoimg_bytes *b)
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

uint64_t pseudoimg_bytes_uint(struct pseudoimg_bytes *b, size_t len)
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

uint64_t pseudoimg_bytes_uleb(struct pseudoimg_bytes *b)
{
	unsigned int shift;
	uint8_t last;

	return leb(b, &last, &shift);
}

int64_t pseudoimg_bytes_sleb(struct pseudoimg_bytes *b)
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
