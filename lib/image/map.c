/* SPDX-License-Identifier: BSD-2-Clause */
/* A map from build-ids to paths is kept, parsed and formatted here. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "bound.h"
#include "image_internal.h"
#include "line.h"

#define MAP_HEAD "dcpi-map 1"

enum { MAP_MAX = 256 << 20 };

/* ---- identities ------------------------------------------------------------------------------ */

/* Files of symbols alone have the sections of the program, without their contents. */
static bool has_code(const struct image_elf *f)
{
	GElf_Shdr sh;

	if (f->header.e_type != ET_EXEC && f->header.e_type != ET_DYN)
		return false;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(f->elf, scn));)
		if (gelf_getshdr(scn, &sh) && (sh.sh_flags & SHF_EXECINSTR))
			return sh.sh_type != SHT_NOBITS;
	return f->header.e_phnum > 0;
}

static int head_id(const struct image_elf *f, struct base_id *id)
{
	void *head = malloc(BASE_ID_HEAD_LEN);

	if (!head)
		return -ENOMEM;
	base_id_of_head(id, f->len, head, image_elf_read(f, 0, head, BASE_ID_HEAD_LEN));
	free(head);
	return 0;
}

int image_identify(int dir_fd, const char *path, struct base_id *id, struct base_err *err)
{
	struct image_elf f;
	int r = image_elf_open(&f, dir_fd, path, err);

	if (r < 0)
		return r;
	*id = f.id;
	if (!has_code(&f))
		r = base_fail(err, -ENOEXEC, "'%s' has no code", path);
	else if (!id->len && (r = head_id(&f, id)) < 0)
		base_fail_errno(err, r, "cannot read '%s'", path);
	image_elf_close(&f);
	return r;
}

/* Where the kernel and the daemon look for the build-id. */
static bool headers_tell_id(const struct image_elf *f)
{
	uint8_t notes[4096];
	struct base_id id;
	GElf_Phdr ph;
	size_t nr = 0;

	if (elf_getphdrnum(f->elf, &nr) < 0)
		return false;
	for (size_t i = 0; i < nr; i++) {
		size_t len = sizeof(notes);

		if (!gelf_getphdr(f->elf, (int)i, &ph) || ph.p_type != PT_NOTE)
			continue;
		len = image_elf_read(f, ph.p_offset, notes, ph.p_filesz < len ? ph.p_filesz : len);
		if (base_id_of_notes(&id, notes, len, ph.p_align) >= 0)
			return true;
	}
	return false;
}

int image_identify_second(const char *path, struct base_id *id)
{
	struct image_elf f;
	int r = image_elf_open(&f, AT_FDCWD, path, NULL);

	if (r < 0)
		return r;
	r = f.id.len && !headers_tell_id(&f) ? head_id(&f, id) : -ENOENT;
	image_elf_close(&f);
	return r;
}

/* ---- maps ------------------------------------------------------------------------------------ */

static int compare_ids(const struct base_id *a, const struct base_id *b)
{
	size_t len = a->len < b->len ? a->len : b->len;
	int r = memcmp(a->bytes, b->bytes, len);

	return r ? r : (int)a->len - (int)b->len;
}

static int by_id(const void *pa, const void *pb)
{
	const struct image_map_entry *a = pa, *b = pb;
	int r = compare_ids(&a->id, &b->id);

	return r ? r : strcmp(a->path, b->path);
}

static bool fits_line(const char *path)
{
	for (; *path; path++)
		if ((unsigned char)*path < ' ' || *path == 0x7f)
			return false;
	return true;
}

int image_map_add(struct image_map *m, const struct base_id *id, const char *path)
{
	int r;

	if (!id->len || !*path || !fits_line(path))
		return -EINVAL;
	r = base_grow(&m->v, &m->cap, m->nr + 1, sizeof(*m->v));
	if (r < 0)
		return r;
	m->v[m->nr] = (struct image_map_entry){ .id = *id };
	m->v[m->nr].path = strdup(path);
	if (!m->v[m->nr].path)
		return -ENOMEM;
	m->nr++;
	m->sorted = false;
	return 0;
}

/* One path once. */
static void sort(struct image_map *m)
{
	size_t kept = 0;

	if (m->sorted)
		return;
	m->sorted = true;
	if (!m->nr)
		return;
	qsort(m->v, m->nr, sizeof(*m->v), by_id);
	for (size_t i = 1; i < m->nr; i++) {
		if (by_id(&m->v[kept], &m->v[i]) != 0)
			m->v[++kept] = m->v[i];
		else
			free(m->v[i].path);
	}
	m->nr = kept + 1;
}

static int parse_line(struct image_map *m, char *line)
{
	size_t len = strcspn(line, " ");
	struct base_id id;

	if (!line[len] || base_id_parse(&id, line, len) < 0)
		return -DCPI_EFORMAT;
	return image_map_add(m, &id, line + len + 1);
}

static int check_head(const char *line, struct base_err *err)
{
	if (!line || strncmp(line, "dcpi-map ", 9) != 0)
		return base_fail(err, -DCPI_EFORMAT, "line 1: this is no map");
	if (strcmp(line, MAP_HEAD) != 0)
		return base_fail(err, -DCPI_EVERSION, "line 1: another version of maps");
	return 0;
}

static int parse_lines(struct image_map *m, struct base_lines *lines, struct base_err *err)
{
	int r = check_head(base_lines_next(lines), err);
	char *line;

	while (r >= 0 && (line = base_lines_next(lines))) {
		r = lines->cut ? -DCPI_EFORMAT : parse_line(m, line);
		if (r == -ENOMEM)
			base_fail_errno(err, r, "line %zu", lines->number);
		else if (r < 0)
			r = base_fail(err, -DCPI_EFORMAT, "line %zu: %s", lines->number,
				      lines->cut ? "it was cut" : "no 'IDENTITY PATH'");
	}
	return r < 0 ? r : 0;
}

int image_map_parse(struct image_map *m, const char *text, size_t len, struct base_err *err)
{
	struct base_lines lines;
	int r = base_lines_open(&lines, text, len);

	if (r < 0)
		base_fail(err, r, "line %zu: not text", lines.number);
	else
		r = parse_lines(m, &lines, err);
	base_lines_close(&lines);
	return r;
}

int image_map_read(struct image_map *m, const char *file, struct base_err *err)
{
	struct base_err why = { 0 };
	struct base_buf buf = { 0 };
	int r = base_file_read(AT_FDCWD, file, MAP_MAX, &buf, err);

	if (r >= 0 && (r = image_map_parse(m, (char *)buf.data, buf.len, &why)) < 0) {
		base_fail(err, r, "cannot read map '%s': %s", file, why.text);
		base_hint(err, "make it anew: dcpiscan -o '%s' DIR …", file);
	}
	base_buf_release(&buf);
	return r;
}

int image_map_format(struct image_map *m, struct base_buf *to)
{
	char id[BASE_ID_TEXT_LEN];
	int r = base_buf_printf(to, "%s\n", MAP_HEAD);

	sort(m);
	for (size_t i = 0; i < m->nr && r >= 0; i++)
		r = base_buf_printf(to, "%s %s\n", base_id_text(&m->v[i].id, id), m->v[i].path);
	return r;
}

const struct image_map_entry *image_map_find(struct image_map *m, const struct base_id *id)
{
	size_t low;

	sort(m);
	low = BASE_BOUND(i, m->nr, compare_ids(&m->v[i].id, id) < 0);
	return low < m->nr && base_id_equal(&m->v[low].id, id) ? &m->v[low] : NULL;
}

void image_map_release(struct image_map *m)
{
	for (size_t i = 0; i < m->nr; i++)
		free(m->v[i].path);
	free(m->v);
	*m = (struct image_map){ 0 };
}
