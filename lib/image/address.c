/* SPDX-License-Identifier: BSD-2-Clause */
/* An open image answers who it is, where an offset lies in memory, and which bytes stand there. */
#include <endian.h>
#include <errno.h>

#include "image_internal.h"

const char *image_path(const struct image *img)
{
	return img->main.path;
}

const struct base_id *image_id(const struct image *img)
{
	return &img->main.id;
}

bool image_known_as(const struct image *img, size_t index, struct base_id *id)
{
	if (index > img->note.nr_replaces)
		return false;
	if (index)
		image_replaces_id(img->note.replaces[index - 1], id);
	else
		*id = img->main.id;
	return true;
}

uint32_t image_machine(const struct image *img)
{
	return img->main.header.e_machine;
}

const struct image_process *image_process(const struct image *img)
{
	return img->note.strings ? &img->note.process : NULL;
}

/* Runs ascend and may, in a file that lies, overlap: the last that starts at or below decides. */
static int run_vaddr(const struct image_note *note, uint64_t off, uint64_t *vaddr)
{
	size_t lo = BASE_UPPER_BOUND(note->runs, note->nr_runs, img_off, off);

	if (!lo || off - note->runs[lo - 1].img_off >= note->runs[lo - 1].len)
		return -ENOENT;
	*vaddr = note->runs[lo - 1].vaddr + (off - note->runs[lo - 1].img_off);
	return 0;
}

/* Segments may share a page of the file; samples lie in the executable one. */
static int segment_vaddr(const struct image *img, uint64_t off, uint64_t *vaddr)
{
	for (int exec = 1; exec >= 0; exec--) {
		for (size_t i = 0; i < img->segments.nr; i++) {
			const struct image_segment *s = &img->segments.v[i];

			if (s->exec == (bool)exec && off >= s->file_off &&
			    off - s->file_off < s->len) {
				*vaddr = s->vaddr + (off - s->file_off);
				return 0;
			}
		}
	}
	return -ENOENT;
}

int image_vaddr(const struct image *img, uint64_t off, uint64_t *vaddr)
{
	switch (img->kind) {
	case IMAGE_KERNEL:
		*vaddr = off;
		return 0;
	case IMAGE_DYNAMIC:
		return run_vaddr(&img->note, img->asked ? wire_moved_off(img->asked, off) : off,
				 vaddr);
	case IMAGE_FILE:
	case IMAGE_VDSO:
		break;
	}
	return segment_vaddr(img, off, vaddr);
}

static bool within(uint64_t from, uint64_t len, uint64_t at, uint64_t to, uint64_t *out)
{
	if (at < from || at - from >= len)
		return false;
	*out = to + (at - from);
	return true;
}

int image_off(const struct image *img, uint64_t vaddr, uint64_t *off)
{
	if (img->kind == IMAGE_KERNEL) {
		*off = vaddr;
		return 0;
	}
	if (img->kind == IMAGE_DYNAMIC) {
		for (size_t i = 0; i < img->note.nr_runs; i++) {
			const struct image_run *run = &img->note.runs[i];

			if (within(run->vaddr, run->len, vaddr, run->img_off, off))
				return 0;
		}
		return -ENOENT;
	}
	for (size_t i = 0; i < img->segments.nr; i++) {
		const struct image_segment *s = &img->segments.v[i];

		if (within(s->vaddr, s->len, vaddr, s->file_off, off))
			return 0;
	}
	return -ENOENT;
}

bool image_reused(const struct image *img, uint64_t vaddr)
{
	uint64_t at;

	for (size_t i = 0; i < img->note.nr_places; i++)
		if (within(img->note.places[i].vaddr, img->note.places[i].len, vaddr, 0, &at))
			return true;
	return false;
}

static size_t bytes_between(const struct image *img, uint64_t from, uint64_t span,
			    uint64_t file_off, uint64_t vaddr, void *out, size_t len)
{
	if (vaddr < from || vaddr - from >= span)
		return 0;
	if (len > span - (vaddr - from))
		len = span - (vaddr - from);
	return image_elf_read(&img->main, file_off + (vaddr - from), out, len);
}

static size_t own_bytes(const struct image *img, uint64_t vaddr, void *out, size_t len)
{
	GElf_Shdr sh;
	size_t n = 0;

	for (size_t i = 0; i < img->segments.nr && !n; i++) {
		const struct image_segment *s = &img->segments.v[i];

		n = bytes_between(img, s->vaddr, s->len, s->file_off, vaddr, out, len);
	}
	for (Elf_Scn *scn = NULL; !n && (scn = elf_nextscn(img->main.elf, scn));) {
		if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_PROGBITS &&
		    (sh.sh_flags & SHF_ALLOC))
			n = bytes_between(img, sh.sh_addr, sh.sh_size, sh.sh_offset, vaddr, out,
					  len);
	}
	return n;
}

/* Bytes between the kept routines were never read. */
static size_t code_bytes(struct image *code, uint64_t vaddr, void *out, size_t len)
{
	const struct image_symbol *s = image_symbol_at(code, vaddr);

	if (!s)
		return 0;
	if (len > s->len - (vaddr - s->vaddr))
		len = s->len - (vaddr - s->vaddr);
	return own_bytes(code, vaddr, out, len);
}

size_t image_bytes(const struct image *img, uint64_t vaddr, void *out, size_t len)
{
	size_t n = own_bytes(img, vaddr, out, len);

	return n || !img->code ? n : code_bytes(img->code, vaddr, out, len);
}

static bool find_pointer(const struct image_pointers *p, uint64_t vaddr, uint64_t *value)
{
	size_t lo = BASE_LOWER_BOUND(p->v, p->nr, vaddr, vaddr);

	if (lo >= p->nr || p->v[lo].vaddr != vaddr)
		return false;
	*value = p->v[lo].value;
	return true;
}

int image_pointer(struct image *img, uint64_t vaddr, uint64_t *value)
{
	uint64_t word;

	if (!img->pointers && image_pointers_read(&img->pointers, &img->main) < 0)
		return -ENOMEM;
	if (find_pointer(img->pointers, vaddr, value))
		return 0;
	if (image_bytes(img, vaddr, &word, sizeof(word)) < sizeof(word))
		return -ENOENT;
	*value = le64toh(word);
	return 0;
}
