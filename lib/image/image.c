/* SPDX-License-Identifier: BSD-2-Clause */
/* An image is opened and closed here. */
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
		r = base_grow(&img->segments.v, &img->segments.cap, img->segments.nr + 1,
			      sizeof(*img->segments.v));
		if (r < 0)
			return r;
		img->segments.v[img->segments.nr++] = (struct image_segment){
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
	img->debug.fd = img->mini.fd = img->dwarf.alt_file.fd = -1;
	img->lookup.index_fds[0] = img->lookup.index_fds[1] = -1;
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
	dwarf_end(img->dwarf.own);
	dwarf_end(img->dwarf.alt);
	image_spans_free(img->frames.spans);
	image_units_free(img->units.by_addr);
	free(img->code_ranges.v);
	image_program_free(img->lines.program);
	image_live_programs_release(img);
	image_pointers_free(img->pointers);
	image_symbols_release(&img->lookup.symbols);
	image_symbols_release(&img->lookup.given_up);
	image_note_release(&img->note);
	free(img->segments.v);
	image_elf_close(&img->mini);
	image_elf_close(&img->debug);
	image_elf_close(&img->dwarf.alt_file);
	image_elf_close(&img->main);
	image_unpacked_free(img);
	free(img);
}
