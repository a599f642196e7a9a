/* SPDX-License-Identifier: BSD-2-Clause */
/* The images that a file about all images names: each once, by number. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

static void image_release(struct profdb_image_ref *i)
{
	free((char *)i->path);
	free((char *)i->stem);
}

void profdb_image_table_release(struct profdb_image_table *t)
{
	for (size_t i = 0; i < t->nr; i++)
		image_release(&t->v[i]);
	free(t->v);
	base_map_release(&t->by_key);
}

static bool image_ok(const struct profdb_image_ref *i)
{
	return i->kind == PROFDB_DYNAMIC ? i->stem && *i->stem : !i->stem;
}

/* Equal images have one key: kind, then the stem, or identity and path. */
static int image_key(const struct profdb_image_ref *i, struct base_buf *key)
{
	uint8_t kind = (uint8_t)i->kind;
	int r = base_buf_append(key, &kind, 1);

	if (i->kind == PROFDB_DYNAMIC)
		return r < 0 ? r : base_buf_append(key, i->stem, strlen(i->stem));
	if (r >= 0)
		r = base_buf_append(key, &i->id.len, 1);
	if (r >= 0)
		r = base_buf_append(key, i->id.bytes, i->id.len);
	return r < 0 ? r : base_buf_append(key, i->path, strnlen(i->path, PROFDB_PATH_MAX));
}

static int append_image(struct profdb_image_table *t, const struct profdb_image_ref *i)
{
	struct profdb_image_ref copy = *i;

	if (t->nr == PROFDB_NR_IMAGE_REFS)
		return -DCPI_ELIMIT;
	if (base_grow(&t->v, &t->cap, t->nr + 1, sizeof(*t->v)) < 0)
		return -ENOMEM;
	copy.path = strndup(i->path, PROFDB_PATH_MAX);
	copy.stem = i->stem ? strdup(i->stem) : NULL;
	if (!copy.path || (i->stem && !copy.stem)) {
		image_release(&copy);
		return -ENOMEM;
	}
	t->v[t->nr] = copy;
	return 0;
}

static int add_image(struct profdb_image_table *t, const struct profdb_image_ref *i,
		     const struct base_buf *key)
{
	uintptr_t number = (uintptr_t)base_map_get(&t->by_key, key->data, key->len);
	int r;

	if (number) {
		/* A pseudo-image gets another identity as it grows. */
		t->v[number - 1].id = i->id;
		return (int)number - 1;
	}
	r = append_image(t, i);
	if (r < 0)
		return r;
	r = base_map_set(&t->by_key, key->data, key->len, (void *)(uintptr_t)(t->nr + 1));
	if (r < 0) {
		image_release(&t->v[t->nr]);
		return r;
	}
	return (int)t->nr++;
}

int profdb_image_table_add(struct profdb_image_table *t, const struct profdb_image_ref *i)
{
	struct profdb_image_ref image = *i;
	struct base_buf key = { 0 };
	int r;

	image.path = i->path ? i->path : "";
	if (!image_ok(i))
		return -EINVAL;
	r = image_key(&image, &key);
	if (r >= 0)
		r = add_image(t, &image, &key);
	base_buf_release(&key);
	return r;
}

int profdb_image_table_merge(struct profdb_image_table *to, const struct profdb_image_table *from,
			     uint32_t **numbers)
{
	*numbers = calloc(from->nr + 1, sizeof(**numbers));
	if (!*numbers)
		return -ENOMEM;
	for (size_t i = 0; i < from->nr; i++) {
		int r = profdb_image_table_add(to, &from->v[i]);

		if (r < 0)
			return r;
		(*numbers)[i] = (uint32_t)r;
	}
	return 0;
}

/* ---- in files -------------------------------------------------------------------------------- */

static int get_id(const struct profdb_payload *s, size_t *pos, struct base_id *id)
{
	uint64_t len;
	int r = profdb_varint_get(s, pos, &len);

	if (r < 0 || len > sizeof(id->bytes) || len > s->len - *pos)
		return -DCPI_EFORMAT;
	id->len = (uint8_t)len;
	memcpy(id->bytes, s->data + *pos, (size_t)len);
	*pos += (size_t)len;
	return 0;
}

static int get_kind(const struct profdb_payload *s, size_t *pos, enum profdb_kind *kind)
{
	uint64_t n;
	int r = profdb_varint_get(s, pos, &n);

	if (r < 0 || n > PROFDB_NAMED)
		return -DCPI_EFORMAT;
	*kind = (enum profdb_kind)n;
	return 0;
}

/* One that stands twice would have two numbers. */
int profdb_image_table_get(struct profdb_image_table *t, const struct profdb_payload *s,
			   size_t *pos)
{
	struct profdb_image_ref i = { 0 };
	size_t nr = t->nr;
	int e = get_kind(s, pos, &i.kind);

	if (e >= 0)
		e = get_id(s, pos, &i.id);
	if (e >= 0)
		e = profdb_text_get(s, pos, PROFDB_PATH_MAX, (char **)&i.path);
	if (e >= 0 && i.kind == PROFDB_DYNAMIC)
		e = profdb_text_get(s, pos, PROFDB_PATH_MAX, (char **)&i.stem);
	if (e >= 0)
		e = profdb_image_table_add(t, &i);
	image_release(&i);
	if (e == -EINVAL || (e >= 0 && t->nr == nr))
		return -DCPI_EFORMAT;
	return e < 0 ? e : 0;
}

int profdb_image_put(const struct profdb_image_ref *i, struct base_buf *out)
{
	int r = base_buf_append_leb128(out, i->kind);

	if (r >= 0)
		r = profdb_bytes_append(out, i->id.bytes, i->id.len);
	if (r >= 0)
		r = profdb_bytes_append(out, i->path, strlen(i->path));
	if (r >= 0 && i->stem)
		r = profdb_bytes_append(out, i->stem, strlen(i->stem));
	return r;
}
