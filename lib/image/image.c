/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "image_internal.h"

static int read_segments(struct image *img)
{
	size_t nr = 0;
	GElf_Phdr ph;
	int r;

	if (elf_getphdrnum(img->main.elf, &nr) < 0)
		return -DCPI_EFORMAT;
	for (size_t i = 0; i < nr; i++) {
		if (!gelf_getphdr(img->main.elf, (int)i, &ph))
			return -DCPI_EFORMAT;
		if (ph.p_type != PT_LOAD)
			continue;
		r = base_grow(&img->segments, &img->cap_segments, img->nr_segments + 1,
			      sizeof(*img->segments));
		if (r < 0)
			return r;
		img->segments[img->nr_segments++] = (struct image_segment){
			.file_off = ph.p_offset,
			.vaddr = ph.p_vaddr,
			.len = ph.p_filesz,
			.exec = ph.p_flags & PF_X,
		};
	}
	return 0;
}

int image_new(struct image_elf *f, enum image_kind kind, struct image **out, struct base_err *err)
{
	struct image *img = calloc(1, sizeof(*img));
	int r;

	if (!img) {
		image_elf_close(f);
		return base_fail_errno(err, -ENOMEM, "cannot open image");
	}
	img->kind = kind;
	img->main = *f;
	img->debug.fd = img->mini.fd = img->alt.fd = -1;
	img->index_fds[0] = img->index_fds[1] = -1;
	r = read_segments(img);
	if (r < 0)
		base_fail_errno(err, r, "cannot read image '%s'", img->main.path);
	else if (kind == IMAGE_DYNAMIC)
		r = image_note_read(&img->note, &img->main, err);
	if (r < 0) {
		image_close(img);
		return r;
	}
	*out = img;
	return 0;
}

int image_open_path(const char *path, enum image_kind kind, struct image **out,
		    struct base_err *err)
{
	struct image_elf f;
	int r = image_elf_open(&f, AT_FDCWD, path, err);

	return r < 0 ? r : image_new(&f, kind, out, err);
}

void image_close(struct image *img)
{
	if (!img)
		return;
	image_close(img->code);
	image_splits_release(img);
	image_paths_release(img);
	dwarf_end(img->dwarf);
	dwarf_end(img->alt_dwarf);
	image_spans_free(img->spans);
	image_units_free(img->units);
	free(img->code_ranges.v);
	image_program_free(img->program);
	image_live_programs_release(img);
	image_pointers_free(img->pointers);
	image_symbols_release(&img->symbols);
	image_symbols_release(&img->given_up);
	image_note_release(&img->note);
	free(img->segments);
	image_elf_close(&img->mini);
	image_elf_close(&img->debug);
	image_elf_close(&img->alt);
	image_elf_close(&img->main);
	image_unpacked_free(img);
	free(img);
}

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
	size_t lo = 0, hi = note->nr_runs;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (note->runs[mid].img_off <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || off - note->runs[lo - 1].img_off >= note->runs[lo - 1].len)
		return -ENOENT;
	*vaddr = note->runs[lo - 1].vaddr + (off - note->runs[lo - 1].img_off);
	return 0;
}

/* Segments may share a page of the file; samples lie in the executable one. */
static int segment_vaddr(const struct image *img, uint64_t off, uint64_t *vaddr)
{
	for (int exec = 1; exec >= 0; exec--) {
		for (size_t i = 0; i < img->nr_segments; i++) {
			const struct image_segment *s = &img->segments[i];

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
	for (size_t i = 0; i < img->nr_segments; i++) {
		const struct image_segment *s = &img->segments[i];

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

	for (size_t i = 0; i < img->nr_segments && !n; i++) {
		const struct image_segment *s = &img->segments[i];

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

/* What stands between the routines that are kept was never read. */
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
