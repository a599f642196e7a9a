/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of an image that hold code are listed here, and an address is tested against them. */
#include "image_internal.h"

static bool has_code(const GElf_Shdr *sh)
{
	return (sh->sh_flags & SHF_EXECINSTR) && sh->sh_type != SHT_NOBITS && sh->sh_size;
}

static bool section_at(const struct image *img, size_t index, struct image_code *out)
{
	GElf_Shdr sh;

	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(img->main.elf, scn));) {
		if (!gelf_getshdr(scn, &sh) || !has_code(&sh) || index--)
			continue;
		*out = (struct image_code){ image_elf_section_name(&img->main, &sh), sh.sh_addr,
					    sh.sh_size };
		return true;
	}
	return false;
}

static bool segment_at(const struct image *img, size_t index, struct image_code *out)
{
	for (size_t i = 0; i < img->segments.nr; i++) {
		const struct image_segment *s = &img->segments.v[i];

		if (!s->exec || !s->len || index--)
			continue;
		*out = (struct image_code){ "", s->vaddr, s->len };
		return true;
	}
	return false;
}

bool image_code_at(const struct image *img, size_t index, struct image_code *out)
{
	if (section_at(img, 0, out))
		return section_at(img, index, out);
	return segment_at(img, index, out);
}

static bool add_range(struct image_ranges *ranges, uint64_t vaddr, uint64_t len)
{
	if (base_grow(&ranges->v, &ranges->cap, ranges->nr + 1, sizeof(*ranges->v)) < 0)
		return false;
	ranges->v[ranges->nr++] = (struct image_range){ vaddr, len };
	return true;
}

/* None: it is not known which addresses are code's. */
static void read_ranges(struct image *img)
{
	struct image_ranges *ranges = &img->code_ranges;
	GElf_Shdr sh;
	bool good = true;

	for (Elf_Scn *scn = NULL; good && (scn = elf_nextscn(img->main.elf, scn));)
		if (gelf_getshdr(scn, &sh) && has_code(&sh))
			good = add_range(ranges, sh.sh_addr, sh.sh_size);
	for (size_t i = 0, nr = ranges->nr; good && !nr && i < img->segments.nr; i++)
		if (img->segments.v[i].exec && img->segments.v[i].len)
			good = add_range(ranges, img->segments.v[i].vaddr, img->segments.v[i].len);
	if (!good)
		ranges->nr = 0;
}

bool image_is_code(struct image *img, uint64_t vaddr)
{
	const struct image_ranges *ranges = &img->code_ranges;

	if (!img->code_ranges_known)
		read_ranges(img);
	img->code_ranges_known = true;
	for (size_t i = 0; i < ranges->nr; i++)
		if (vaddr >= ranges->v[i].vaddr && vaddr - ranges->v[i].vaddr < ranges->v[i].len)
			return true;
	return !ranges->nr;
}
