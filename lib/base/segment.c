/* SPDX-License-Identifier: BSD-2-Clause */
/* The program headers of an ELF file are listed, and the code that they name is hashed and
 * measured, here. */
#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

enum { PHDRS_MAX = 1024, CHUNK = 64 << 10 };

struct table {
	bool wide, big;
	uint64_t off;
	size_t nr, entry;
};

/* A number of the file, which need not be of this machine's byte order. */
static uint64_t number(const uint8_t *p, size_t width, bool big)
{
	uint64_t v = 0;

	for (size_t i = 0; i < width; i++)
		v |= (uint64_t)p[i] << 8 * (big ? width - 1 - i : i);
	return v;
}

#define FIELD(p, t, type, field)                                                                   \
	number((p) + offsetof(type, field), sizeof(((type *)0)->field), (t)->big)

/* A file with more headers than any linker makes is refused. */
static int table_find(int fd, struct table *t)
{
	uint8_t head[sizeof(Elf64_Ehdr)];
	size_t entry;

	if (base_read_part(fd, 0, head, sizeof(head)) < sizeof(head) ||
	    memcmp(head, ELFMAG, SELFMAG) != 0 ||
	    (head[EI_DATA] != ELFDATA2LSB && head[EI_DATA] != ELFDATA2MSB))
		return -ENOENT;
	t->wide = head[EI_CLASS] == ELFCLASS64;
	t->big = head[EI_DATA] == ELFDATA2MSB;
	if (t->wide) {
		t->off = FIELD(head, t, Elf64_Ehdr, e_phoff);
		t->nr = FIELD(head, t, Elf64_Ehdr, e_phnum);
		entry = FIELD(head, t, Elf64_Ehdr, e_phentsize);
	} else {
		t->off = FIELD(head, t, Elf32_Ehdr, e_phoff);
		t->nr = FIELD(head, t, Elf32_Ehdr, e_phnum);
		entry = FIELD(head, t, Elf32_Ehdr, e_phentsize);
	}
	t->entry = t->wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	return t->entry == entry && t->nr <= PHDRS_MAX ? 0 : -ENOENT;
}

static struct base_segment segment_get(const uint8_t *p, const struct table *t)
{
	if (t->wide)
		return (struct base_segment){
			.type = (uint32_t)FIELD(p, t, Elf64_Phdr, p_type),
			.exec = FIELD(p, t, Elf64_Phdr, p_flags) & PF_X,
			.off = FIELD(p, t, Elf64_Phdr, p_offset),
			.len = FIELD(p, t, Elf64_Phdr, p_filesz),
			.align = FIELD(p, t, Elf64_Phdr, p_align),
			.vaddr = FIELD(p, t, Elf64_Phdr, p_vaddr),
		};
	return (struct base_segment){
		.type = (uint32_t)FIELD(p, t, Elf32_Phdr, p_type),
		.exec = FIELD(p, t, Elf32_Phdr, p_flags) & PF_X,
		.off = FIELD(p, t, Elf32_Phdr, p_offset),
		.len = FIELD(p, t, Elf32_Phdr, p_filesz),
		.align = FIELD(p, t, Elf32_Phdr, p_align),
		.vaddr = FIELD(p, t, Elf32_Phdr, p_vaddr),
	};
}

int base_elf_segments(int fd, int (*fn)(void *ctx, const struct base_segment *s), void *ctx)
{
	struct table t;
	int r = table_find(fd, &t);
	uint8_t *phdrs = r < 0 ? NULL : malloc(t.nr * t.entry + 1);
	size_t nr;

	if (!phdrs)
		return r < 0 ? r : -ENOMEM;
	nr = base_read_part(fd, t.off, phdrs, t.nr * t.entry) / t.entry;
	for (size_t i = 0; i < nr && r == 0; i++) {
		struct base_segment s = segment_get(phdrs + i * t.entry, &t);

		r = fn(ctx, &s);
	}
	free(phdrs);
	return r;
}

/* ---- the code of a file ---------------------------------------------------------------------- */

struct text {
	int fd;
	uint64_t len; /* hashed so far */
	struct base_sha256 sum;
	uint8_t *chunk;
};

static int add_text(void *ctx, const struct base_segment *s)
{
	struct text *t = ctx;
	uint64_t done = 0;

	if (s->type != PT_LOAD || !s->exec)
		return 0;
	if (s->len > BASE_TEXT_MAX - t->len)
		return -EFBIG;
	base_sha256_add_number(&t->sum, s->off);
	base_sha256_add_number(&t->sum, s->len);
	while (done < s->len) {
		size_t want = s->len - done < CHUNK ? (size_t)(s->len - done) : CHUNK;
		size_t got = base_read_part(t->fd, s->off + done, t->chunk, want);

		base_sha256_add(&t->sum, t->chunk, got);
		if (got < want)
			break;
		done += got;
	}
	t->len += s->len;
	return 0;
}

int base_id_of_text(struct base_id *id, int fd)
{
	struct text t = { .fd = fd, .chunk = malloc(CHUNK) };
	int r = -ENOMEM;

	if (t.chunk) {
		base_sha256_init(&t.sum);
		base_sha256_add(&t.sum, "dcpi text", 9);
		r = base_elf_segments(fd, add_text, &t);
	}
	free(t.chunk);
	if (r == 0)
		base_id_of_sha256(id, &t.sum);
	return r;
}

static int add_extent(void *ctx, const struct base_segment *s)
{
	struct base_extent *e = ctx;

	if (s->type != PT_LOAD || !s->exec)
		return 0;
	if (!e->size)
		e->start = s->vaddr - s->off;
	return base_add_overflow(e->size, s->len, &e->size) ? -ENOENT : 0;
}

int base_elf_extent(int fd, struct base_extent *out)
{
	struct base_extent e = { 0 };
	int r = base_elf_segments(fd, add_extent, &e);

	*out = r < 0 ? (struct base_extent){ 0 } : e;
	return r < 0 ? r : e.size ? 0 : -ENOENT;
}
