/* SPDX-License-Identifier: BSD-2-Clause */
#include "image_internal.h"

static bool section_at(const struct image *img, size_t index, struct image_code *out)
{
	GElf_Shdr sh;

	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(img->main.elf, scn));) {
		if (!gelf_getshdr(scn, &sh) || !(sh.sh_flags & SHF_EXECINSTR) ||
		    sh.sh_type == SHT_NOBITS || !sh.sh_size || index--)
			continue;
		*out = (struct image_code){ image_elf_section_name(&img->main, &sh), sh.sh_addr,
					    sh.sh_size };
		return true;
	}
	return false;
}

static bool segment_at(const struct image *img, size_t index, struct image_code *out)
{
	for (size_t i = 0; i < img->nr_segments; i++) {
		const struct image_segment *s = &img->segments[i];

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
