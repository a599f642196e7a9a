/* SPDX-License-Identifier: BSD-2-Clause */
/* An image becomes a row with its symbols, and where the database has its file, with that. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_internal.h"

enum { EM_NOTHING = 0 };

/* Pseudo-images and kernels are files of the database; all others are found by their path. */
static int read_content(const struct store_pack *p, enum profdb_kind kind, const struct image *img,
			struct base_buf *out)
{
	const char *name = base_path_name(image_path(img));
	int fd = kind == PROFDB_DYNAMIC ? profdb_dyn_fd(p->db) : profdb_kernel_fd(p->db);

	if (kind != PROFDB_DYNAMIC && kind != PROFDB_KERNEL && kind != PROFDB_VDSO)
		return -ENOENT;
	return fd < 0 ? fd : base_file_read(fd, name, STORE_CONTENT_MAX, out, NULL);
}

static int put_content(struct store_pack *p, const struct store_key *key,
		       const struct base_buf *bytes)
{
	struct base_buf *row = &p->out->rows[STORE_CONTENT];
	int r = store_pack_offered(p, key->bytes, sizeof(key->bytes));

	if (r != 0)
		return r < 0 ? r : 0;
	r = base_buf_append(row, key->bytes, sizeof(key->bytes));
	if (r >= 0)
		r = base_buf_append_le(row, 1, 8);
	return r < 0 ? r : store_put_string(row, bytes->data, bytes->len);
}

/* ---- symbols -----------------------------------------------------------------------------------
 */

struct symbols {
	struct base_buf names, offs, lens;
	uint64_t nr;
};

static int add_symbols(struct symbols *s, struct image *img)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < image_nr_symbols(img) && s->nr < STORE_SYMBOLS_MAX; i++) {
		const struct image_symbol *symbol = image_symbol(img, i);
		uint64_t off;

		if (image_off(img, symbol->vaddr, &off) < 0)
			continue;
		s->nr++;
		r = store_put_text(&s->names, symbol->name);
		if (r >= 0)
			r = base_buf_append_le(&s->offs, off, 8);
		if (r >= 0)
			r = base_buf_append_le(&s->lens, symbol->len, 8);
	}
	return r;
}

int store_put_symbols(struct base_buf *row, struct image *img)
{
	struct symbols s = { 0 };
	int r = img ? add_symbols(&s, img) : 0;

	if (r >= 0)
		r = store_put_array(row, s.nr, &s.names);
	if (r >= 0)
		r = store_put_array(row, s.nr, &s.offs);
	if (r >= 0)
		r = store_put_array(row, s.nr, &s.lens);
	base_buf_release(&s.names);
	base_buf_release(&s.offs);
	base_buf_release(&s.lens);
	return r;
}

/* ---- the row -----------------------------------------------------------------------------------
 */

/* The file's name in a database; kernels' too, as profiles do not have it. */
static const char *stem_of(const struct analysis_image *ai, const struct image *img)
{
	return img && ai->kind != PROFDB_FILE && ai->kind != PROFDB_NAMED
		       ? base_path_name(image_path(img))
		       : NULL;
}

static int put_head(struct base_buf *row, const struct analysis_image *ai)
{
	char id[BASE_ID_TEXT_LEN];
	const struct profdb_profile *p = ai->profile;
	int r = store_put_text(row, profdb_kind_name(ai->kind));

	if (r >= 0)
		r = store_put_text(row, base_id_text(profdb_profile_image(p), id));
	if (r >= 0)
		r = store_put_text(row, profdb_profile_path(p, 0));
	if (r >= 0)
		r = store_put_text(row, profdb_profile_word(p, "text"));
	return r < 0 ? r : store_put_text(row, ai->facility ? ai->facility : ai->name);
}

static int put_row(struct store_pack *p, const struct store_key *key, uint64_t ver,
		   struct analysis_image *ai, struct image *img, const struct store_key *content,
		   bool has_content)
{
	struct base_buf *row = &p->out->rows[STORE_IMAGE];
	int r = base_buf_append(row, key->bytes, sizeof(key->bytes));

	if (r >= 0)
		r = base_buf_append_le(row, ver, 8);
	if (r >= 0)
		r = put_head(row, ai);
	if (r >= 0)
		r = store_put_text(row, stem_of(ai, img));
	if (r >= 0)
		r = base_buf_append(row, content->bytes, sizeof(content->bytes));
	if (r >= 0)
		r = base_buf_append_le(row, img ? image_machine(img) : EM_NOTHING, 4);
	return r < 0 ? r : store_put_symbols(row, has_content ? NULL : img);
}

/*
 * The row that tells more counts: with more symbols, or with the larger contents; of a pseudo-image
 * the later one, which has all that an earlier one has.
 */
static uint64_t version_of(const struct store_pack *p, const struct analysis_image *ai,
			   struct image *img, const struct base_buf *bytes)
{
	if (!img)
		return 0;
	if (ai->kind == PROFDB_DYNAMIC)
		return p->ver;
	return bytes->len ? bytes->len : image_nr_symbols(img) + 1;
}

/* Tells apart the rows of one image that a store may need. */
static void row_key(const struct store_key *key, const struct store_key *content, uint64_t detail,
		    struct store_key *out)
{
	struct {
		struct store_key key, content;
		uint64_t detail;
	} all = { *key, *content, detail };

	store_content_key(&all, sizeof(all), out);
}

static int put_image(struct store_pack *p, const struct store_key *key, struct analysis_image *ai,
		     struct image *img, const struct base_buf *bytes)
{
	struct store_key content = { { 0 } }, row;
	int r;

	if (bytes->len)
		store_content_key(bytes->data, bytes->len, &content);
	row_key(key, &content, img ? image_nr_symbols(img) + 1 : 0, &row);
	r = store_pack_offered(p, row.bytes, sizeof(row.bytes));
	if (r != 0)
		return r < 0 ? r : 0;
	if (bytes->len)
		r = put_content(p, &content, bytes);
	return r < 0 ? r
		     : put_row(p, key, version_of(p, ai, img, bytes), ai, img, &content,
			       bytes->len);
}

int store_pack_image(struct store_pack *p, const struct store_key *key, struct analysis_image *ai,
		     struct image *img)
{
	struct base_buf bytes = { 0 };
	int r = 0;

	if (img)
		r = read_content(p, ai->kind, img, &bytes);
	r = r == -ENOMEM ? r : put_image(p, key, ai, img, &bytes);
	base_buf_release(&bytes);
	return r;
}
