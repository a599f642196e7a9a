/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpicat prints the images and counts of any file about all images. */
#include "cat_images.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the UTF-8 character at @s, 0 where there is none that a terminal may see. */
static size_t printable(const unsigned char *s)
{
	size_t len = s[0] < 0x80 ? 1 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	uint32_t c = len == 1 ? s[0] : s[0] & (0x7fu >> len);

	if (s[0] < ' ' || s[0] == 0x7f || (s[0] >= 0x80 && s[0] < 0xc2) || s[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if ((len == 2 && c < 0xa0) || (len == 3 && c < 0x800) || (len == 4 && c < 0x10000) ||
	    c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	return len;
}

char *cat_clean(const char *text)
{
	char *out = malloc(4 * strlen(text) + 1), *to = out;

	while (out && *text) {
		size_t len = printable((const unsigned char *)text);

		if (len) {
			memcpy(to, text, len);
			to += len;
		} else {
			to += sprintf(to, "\\x%02x", (unsigned char)*text);
		}
		text += len ? len : 1;
	}
	if (out)
		*to = '\0';
	return out;
}

/* "image 3 file ab01 /bin/prog" */
void cat_image_print(const struct profdb_image_ref *i, size_t number)
{
	char id[BASE_ID_TEXT_LEN], *path = cat_clean(i->stem ? i->stem : i->path);

	printf("%-10s %zu %s %s %s\n", "image", number, profdb_kind_name(i->kind),
	       i->id.len ? base_id_text(&i->id, id) : "0", path ? path : "");
	free(path);
}

bool cat_counts_any(const uint64_t *count, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++)
		if (count[i])
			return true;
	return false;
}

void cat_counts_print(const uint64_t *count, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++)
		printf(" %" PRIu64, count[i]);
	putchar('\n');
}

struct json_object *cat_text_json(const char *text)
{
	char *copy = cat_clean(text);
	struct json_object *o = json_object_new_string(copy ? copy : "");

	free(copy);
	return o;
}

struct json_object *cat_image_json(const struct profdb_image_ref *i)
{
	struct json_object *o = json_object_new_object();
	char id[BASE_ID_TEXT_LEN];

	json_object_object_add(o, "kind", json_object_new_string(profdb_kind_name(i->kind)));
	json_object_object_add(o, "image",
			       i->id.len ? json_object_new_string(base_id_text(&i->id, id)) : NULL);
	json_object_object_add(o, "path", cat_text_json(i->path));
	if (i->stem)
		json_object_object_add(o, "dyn", cat_text_json(i->stem));
	return o;
}

struct json_object *cat_counts_json(const uint64_t *count, size_t first, size_t end)
{
	struct json_object *counts = json_object_new_array();

	for (size_t i = first; i < end; i++)
		json_object_array_add(counts, json_object_new_uint64(count[i]));
	return counts;
}
