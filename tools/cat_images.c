/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpicat prints the images and counts of any file about all images. */
#include "cat_images.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *cat_clean(const char *text)
{
	char *out = malloc(4 * strlen(text) + 1), *to = out;

	while (out && *text) {
		uint32_t c = 0;
		size_t len = base_utf8(text, strlen(text), &c);

		if (len && !base_utf8_acts(c)) {
			memcpy(to, text, len);
			to += len;
		} else {
			to += sprintf(to, "\\x%02x", (unsigned char)*text);
			len = 1;
		}
		text += len;
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
