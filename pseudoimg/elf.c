/* SPDX-License-Identifier: BSD-2-Clause */
/* ELF64 files, little-endian, written front to back without libelf: a dozen fields and no more.
 * Long sections are compressed. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "pseudoimg_internal.h"

/* ---- sections made shorter ------------------------------------------------------------------- */

/*
 * Sections as SHF_COMPRESSED ones, by zlib, which every reader of ELF knows. The bytes are in the
 * file already, as they were made: what they become is written behind them, and moved.
 */

enum { CHUNK = 64 << 10, LEVEL = 1 };
/* Less saves no block of a disk. */
enum { LEAST = 4096 };

struct press {
	int fd;
	uint64_t from, end; /* range of the source that is not read yet */
	uint64_t to, most;  /* where the next bytes go; they must not reach it */
	z_stream z;
	uint8_t in[CHUNK], out[CHUNK];
};

/* 1: there was no more; 0. */
static int feed(struct press *p)
{
	size_t n = p->end - p->from < CHUNK ? (size_t)(p->end - p->from) : CHUNK;
	int r = base_read_at(p->fd, p->from, p->in, n);

	p->z.next_in = p->in;
	p->z.avail_in = (uInt)n;
	p->from += n;
	return r < 0 ? r : p->from == p->end;
}

/* 1: all of it is written; 0: it does not get shorter. */
static int squeeze(struct press *p)
{
	int r, last, z = Z_OK;

	do {
		last = feed(p);
		if (last < 0)
			return last;
		do {
			p->z.next_out = p->out;
			p->z.avail_out = CHUNK;
			z = deflate(&p->z, last ? Z_FINISH : Z_NO_FLUSH);
			if (p->most - p->to <= CHUNK - p->z.avail_out)
				return 0;
			r = pseudoimg_put_at(p->fd, p->out, CHUNK - p->z.avail_out, p->to);
			if (r < 0)
				return r;
			p->to += CHUNK - p->z.avail_out;
		} while (!p->z.avail_out);
	} while (!last);
	return z == Z_STREAM_END ? 1 : -EIO;
}

static int move_back(struct press *p, uint64_t from, uint64_t to)
{
	int r = 0;

	while (r >= 0 && from < p->to) {
		size_t n = p->to - from < CHUNK ? (size_t)(p->to - from) : CHUNK;

		r = base_read_at(p->fd, from, p->in, n);
		if (r >= 0)
			r = pseudoimg_put_at(p->fd, p->in, n, to);
		from += n;
		to += n;
	}
	return r;
}

/*
 * @s, whose bytes stand at the end of the file, becomes an SHF_COMPRESSED section there if that
 * saves something: its place, length, alignment and flags change. 0, or negative.
 */
static int pseudoimg_compress(int fd, struct pseudoimg_section *s)
{
	const Elf64_Chdr head = { .ch_type = ELFCOMPRESS_ZLIB,
				  .ch_size = s->len,
				  .ch_addralign = s->align };
	uint64_t off = base_align_up(s->file_off, _Alignof(Elf64_Chdr)),
		 behind = s->file_off + s->len;
	struct press *p;
	int r;

	if (s->len < LEAST)
		return 0;
	p = calloc(1, sizeof(*p));
	if (!p || deflateInit(&p->z, LEVEL) != Z_OK) {
		free(p);
		return -ENOMEM;
	}
	p->fd = fd;
	p->from = s->file_off;
	p->end = p->to = behind;
	p->most = behind + (behind - off) - sizeof(head);
	r = squeeze(p);
	/* The descriptor is for writing alone. */
	if (r == -EBADF)
		r = 0;
	if (r > 0) {
		s->file_off = off;
		s->len = sizeof(head) + (p->to - behind);
		s->flags |= SHF_COMPRESSED;
		s->align = _Alignof(Elf64_Chdr);
		r = pseudoimg_put_at(fd, &head, sizeof(head), off);
		if (r >= 0)
			r = move_back(p, behind, off + sizeof(head));
	}
	deflateEnd(&p->z);
	free(p);
	/* Bytes written behind the end would show in gaps between sections. */
	if (r >= 0 && ftruncate(fd, (off_t)(s->file_off + s->len)) < 0)
		r = -errno;
	return r;
}

enum { PAGE = 4096, TRACE = 256 << 10 };

/* Flags that a machine wants in e_flags: riscv64 with compressed instructions and hard floats. */
#define RISCV_FLAGS 0x5u

int pseudoimg_elf_add(struct pseudoimg_elf *e, const struct pseudoimg_section *section)
{
	struct pseudoimg_section *to;
	int r;

	if (!e->sections.nr) {
		to = PSEUDOIMG_PUSH(&e->sections);
		if (!to || base_buf_append(&e->names, "", 1) < 0)
			return -ENOMEM;
		*to = (struct pseudoimg_section){ .type = SHT_NULL };
	}
	to = PSEUDOIMG_PUSH(&e->sections);
	if (!to)
		return -ENOMEM;
	*to = *section;
	to->name_off = (uint32_t)e->names.len;
	r = base_buf_append(&e->names, section->name, strlen(section->name) + 1);
	return r < 0 ? r : (int)e->sections.nr - 1;
}

void pseudoimg_elf_release(struct pseudoimg_elf *e)
{
	free(e->sections.v);
	base_buf_release(&e->names);
	memset(e, 0, sizeof(*e));
}

int pseudoimg_build_id_note(struct base_buf *b, const uint8_t *id, size_t id_len)
{
	const Elf64_Nhdr head = { .n_namesz = 4,
				  .n_descsz = (uint32_t)id_len,
				  .n_type = NT_GNU_BUILD_ID };
	void *pad;
	int r = base_buf_append(b, &head, sizeof(head));

	if (r >= 0)
		r = base_buf_append(b, "GNU", 4);
	if (r >= 0)
		r = base_buf_append(b, id, id_len);
	return r < 0 ? r : base_buf_extend(b, -b->len & 3, &pad);
}

/* ---- where things stand in the file ---------------------------------------------------------- */

static bool is_load(const struct pseudoimg_section *s)
{
	return s->flags & SHF_ALLOC;
}

static size_t nr_loads(const struct pseudoimg_elf *e)
{
	size_t nr = 0;

	for (size_t i = 0; i < e->sections.nr; i++)
		nr += is_load(&e->sections.v[i]);
	return nr;
}

/* An executable must have a program header: one without code has a void one. */
static size_t nr_headers(const struct pseudoimg_elf *e)
{
	size_t nr = nr_loads(e);

	return nr ? nr : 1;
}

/* A page of the file must be able to stand as a page in memory. */
static uint64_t place(const struct pseudoimg_section *s, uint64_t off)
{
	if (is_load(s) && s->len)
		return base_align_up(off, PAGE) + s->addr % PAGE;
	return base_align_up(off, s->align);
}

uint64_t pseudoimg_elf_next_off(const struct pseudoimg_elf *e, uint64_t align)
{
	uint64_t off = sizeof(Elf64_Ehdr) + nr_headers(e) * sizeof(Elf64_Phdr);

	for (size_t i = 1; i < e->sections.nr; i++) {
		const struct pseudoimg_section *s = &e->sections.v[i];

		off = place(s, off) + (s->type == SHT_NOBITS ? 0 : s->len);
	}
	return base_align_up(off, align);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Traces without bytes are left out: holes on disk. */
static int put_text(int fd, const struct pseudoimg_section *s, struct pseudoimg_filler *filler,
		    uint8_t *trace)
{
	uint64_t done = 0;
	size_t n;
	int r = 0;

	for (; r >= 0 && done < s->len; done += n) {
		n = s->len - done < TRACE ? s->len - done : TRACE;
		r = pseudoimg_fill(filler, s->addr + done, trace, n);
		if (r > 0)
			r = pseudoimg_put_at(fd, trace, n, s->file_off + done);
	}
	return r;
}

/* A section that is made while it is written: now it is known how long it is. */
static int put_made(int fd, struct pseudoimg_section *s)
{
	struct pseudoimg_sink sink = { .fd = fd, .off = s->file_off };
	int r = s->put(s->ctx, &sink);

	if (r >= 0)
		r = pseudoimg_put_at(fd, sink.b.data, sink.b.len, sink.off);
	s->len = pseudoimg_sink_at(&sink) - s->file_off;
	base_buf_release(&sink.b);
	return r;
}

/* Returns where the section headers go. */
static int put_sections(struct pseudoimg_elf *e, int fd, struct pseudoimg_filler *filler,
			uint64_t *end)
{
	uint64_t off = sizeof(Elf64_Ehdr) + nr_headers(e) * sizeof(Elf64_Phdr);
	uint8_t *trace = malloc(TRACE);
	int r = trace ? 0 : -ENOMEM;

	for (size_t i = 1; r >= 0 && i < e->sections.nr; i++) {
		struct pseudoimg_section *s = &e->sections.v[i];

		s->file_off = place(s, off);
		if (s->put)
			r = put_made(fd, s);
		else if (s->type == SHT_NOBITS || !s->len || s->there)
			r = 0;
		else if (s->data)
			r = pseudoimg_put_at(fd, s->data, s->len, s->file_off);
		else
			r = put_text(fd, s, filler, trace);
		if (r >= 0 && s->compress)
			r = pseudoimg_compress(fd, s);
		off = s->file_off + (s->type == SHT_NOBITS ? 0 : s->len);
	}
	free(trace);
	*end = base_align_up(off, 8);
	return r;
}

static int put_section_headers(const struct pseudoimg_elf *e, int fd, uint64_t off)
{
	Elf64_Shdr *h = calloc(e->sections.nr, sizeof(*h));
	int r;

	if (!h)
		return -ENOMEM;
	for (size_t i = 1; i < e->sections.nr; i++) {
		const struct pseudoimg_section *s = &e->sections.v[i];

		h[i] = (Elf64_Shdr){
			.sh_name = s->name_off,
			.sh_type = s->type,
			.sh_flags = s->flags,
			.sh_addr = s->addr,
			.sh_offset = s->file_off,
			.sh_size = s->len,
			.sh_link = s->link,
			.sh_info = s->info,
			.sh_addralign = s->align,
			.sh_entsize = s->entsize,
		};
	}
	r = pseudoimg_put_at(fd, h, e->sections.nr * sizeof(*h), off);
	free(h);
	return r;
}

static int put_program_headers(const struct pseudoimg_elf *e, int fd)
{
	size_t nr = nr_headers(e), n = 0;
	Elf64_Phdr *h = calloc(nr, sizeof(*h));
	int r;

	if (!h)
		return -ENOMEM;
	for (size_t i = 1; i < e->sections.nr; i++) {
		const struct pseudoimg_section *s = &e->sections.v[i];

		if (is_load(s))
			h[n++] = (Elf64_Phdr){
				.p_type = PT_LOAD,
				.p_flags = PF_R | PF_X,
				.p_offset = s->file_off,
				.p_vaddr = s->addr,
				.p_paddr = s->addr,
				.p_filesz = s->type == SHT_NOBITS ? 0 : s->len,
				.p_memsz = s->len,
				.p_align = PAGE,
			};
	}
	r = pseudoimg_put_at(fd, h, nr * sizeof(*h), sizeof(Elf64_Ehdr));
	free(h);
	return r;
}

static int put_header(const struct pseudoimg_elf *e, int fd, uint64_t headers_off)
{
	const Elf64_Ehdr h = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = e->machine,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_shoff = headers_off,
		.e_flags = e->machine == EM_RISCV ? RISCV_FLAGS : 0,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = (uint16_t)nr_headers(e),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = (uint16_t)e->sections.nr,
		.e_shstrndx = (uint16_t)(e->sections.nr - 1),
	};

	return pseudoimg_put_at(fd, &h, sizeof(h), 0);
}

int pseudoimg_elf_write(struct pseudoimg_elf *e, int fd, struct pseudoimg_filler *filler,
			struct base_err *err)
{
	struct pseudoimg_section names = { .name = ".shstrtab", .type = SHT_STRTAB, .align = 1 };
	uint64_t headers_off;
	int r = pseudoimg_elf_add(e, &names);

	if (r < 0)
		return base_fail_errno(err, r, "cannot write image");
	e->sections.v[r].data = e->names.data;
	e->sections.v[r].len = e->names.len;
	r = put_sections(e, fd, filler, &headers_off);
	if (r >= 0)
		r = put_section_headers(e, fd, headers_off);
	if (r >= 0)
		r = put_program_headers(e, fd);
	if (r >= 0)
		r = put_header(e, fd, headers_off);
	return r < 0 ? base_fail_errno(err, r, "cannot write image") : 0;
}
