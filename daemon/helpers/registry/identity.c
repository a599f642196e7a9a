/* SPDX-License-Identifier: BSD-2-Clause */
/* The identity of an ELF file is its build-id, or a hash of its heads. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "registry.h"

enum { HEAD_LEN = BASE_ID_HEAD_LEN, NOTES_MAX = 64 << 10, PHDRS_MAX = 1024 };

struct file {
	int fd;
	uint64_t len;
	uint8_t *head; /* the first head_len bytes */
	size_t head_len;
};

/* What of a program header is needed here, of either class. */
struct segment {
	uint32_t type;
	uint64_t off, len, align;
};

static int segment_id(const struct file *f, const struct segment *s, struct base_id *id)
{
	size_t len = s->len < NOTES_MAX ? (size_t)s->len : NOTES_MAX;
	uint8_t *notes;
	int r;

	if (s->type != PT_NOTE || s->off > f->len || !len)
		return -ENOENT;
	notes = malloc(len);
	if (!notes)
		return -ENOMEM;
	r = base_id_of_notes(id, notes, base_read_part(f->fd, s->off, notes, len), s->align);
	free(notes);
	return r;
}

static struct segment segment_get(const uint8_t *p, bool wide)
{
	Elf64_Phdr w;
	Elf32_Phdr n;

	if (wide) {
		memcpy(&w, p, sizeof(w));
		return (struct segment){ w.p_type, w.p_offset, w.p_filesz, w.p_align };
	}
	memcpy(&n, p, sizeof(n));
	return (struct segment){ n.p_type, n.p_offset, n.p_filesz, n.p_align };
}

/* Place of the program headers: 0 or -ENOENT. */
static int phdrs_find(const struct file *f, bool *wide, uint64_t *off, size_t *nr)
{
	Elf64_Ehdr w;
	Elf32_Ehdr n;
	size_t entry;

	if (f->head_len < sizeof(w) || memcmp(f->head, ELFMAG, SELFMAG) ||
	    f->head[EI_DATA] != ELFDATA2LSB)
		return -ENOENT;
	*wide = f->head[EI_CLASS] == ELFCLASS64;
	memcpy(&w, f->head, sizeof(w));
	memcpy(&n, f->head, sizeof(n));
	*off = *wide ? w.e_phoff : n.e_phoff;
	*nr = *wide ? w.e_phnum : n.e_phnum;
	entry = *wide ? w.e_phentsize : n.e_phentsize;
	if (entry != (*wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)) || *nr > PHDRS_MAX ||
	    *off > f->len)
		return -ENOENT;
	return 0;
}

static int build_id(const struct file *f, struct base_id *id)
{
	size_t nr, entry;
	uint64_t off;
	uint8_t *phdrs;
	bool wide;
	int r = phdrs_find(f, &wide, &off, &nr);

	if (r < 0)
		return r;
	entry = wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	phdrs = malloc(nr * entry + 1);
	if (!phdrs)
		return -ENOMEM;
	nr = base_read_part(f->fd, off, phdrs, nr * entry) / entry;
	r = -ENOENT;
	for (size_t i = 0; i < nr && r == -ENOENT; i++) {
		struct segment s = segment_get(phdrs + i * entry, wide);

		r = segment_id(f, &s, id);
	}
	free(phdrs);
	return r;
}

int registry_file_id(int fd, struct base_id *id, bool *elf)
{
	struct file f = { .fd = fd, .head = malloc(HEAD_LEN) };
	struct stat st;
	int r = 0;

	if (!f.head || fstat(fd, &st) < 0) {
		r = f.head ? -errno : -ENOMEM;
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		r = -EINVAL;
		goto out;
	}
	f.len = (uint64_t)st.st_size;
	f.head_len = base_read_part(fd, 0, f.head, HEAD_LEN);
	if (elf)
		*elf = f.head_len >= SELFMAG && memcmp(f.head, ELFMAG, SELFMAG) == 0;
	r = build_id(&f, id);
	if (r == -ENOENT) {
		base_id_of_head(id, f.len, f.head, f.head_len);
		r = 0;
	}
out:
	free(f.head);
	return r;
}
