/* SPDX-License-Identifier: BSD-2-Clause */
/* Images, contents and routines get keys that are the same on every machine. */
#include <string.h>

#include "store_internal.h"

/* Its length comes before each part, so that no two lists of parts are one row of bytes. */
static void add(struct base_sha256 *s, const void *data, size_t len)
{
	base_sha256_add_number(s, len);
	base_sha256_add(s, data, len);
}

static void add_text(struct base_sha256 *s, const char *text)
{
	add(s, text ? text : "", text ? strlen(text) : 0);
}

static void end(struct base_sha256 *s, struct store_key *out)
{
	uint8_t sum[32];

	base_sha256_end(s, sum);
	memcpy(out->bytes, sum, sizeof(out->bytes));
}

void store_file_key(const char *kind, const struct base_id *id, const char *text, const char *path,
		    struct store_key *out)
{
	struct base_sha256 s;

	base_sha256_init(&s);
	add_text(&s, kind);
	add(&s, id->bytes, id->len);
	add_text(&s, text);
	add_text(&s, id->len ? NULL : path);
	end(&s, out);
}

static void dynamic_key(const char *stem, const char *platform, struct store_key *out)
{
	struct base_sha256 s;

	base_sha256_init(&s);
	add_text(&s, profdb_kind_name(PROFDB_DYNAMIC));
	add_text(&s, platform);
	add_text(&s, stem);
	end(&s, out);
}

void store_image_key(const struct profdb_profile *p, const char *platform, struct store_key *out)
{
	if (profdb_profile_kind(p) == PROFDB_DYNAMIC)
		dynamic_key(profdb_profile_path(p, 0), platform, out);
	else
		store_file_key(profdb_kind_name(profdb_profile_kind(p)), profdb_profile_image(p),
			       profdb_profile_word(p, "text"), profdb_profile_path(p, 0), out);
}

void store_ref_key(const struct profdb_image_ref *ref, const char *platform, struct store_key *out)
{
	if (ref->kind == PROFDB_DYNAMIC)
		dynamic_key(ref->stem ? ref->stem : ref->path, platform, out);
	else
		store_file_key(profdb_kind_name(ref->kind), &ref->id, NULL, ref->path, out);
}

void store_facility_key(const char *facility, struct store_key *out)
{
	struct base_sha256 s;

	base_sha256_init(&s);
	add_text(&s, "facility");
	add_text(&s, facility);
	end(&s, out);
}

void store_content_key(const void *data, size_t len, struct store_key *out)
{
	struct base_sha256 s;

	base_sha256_init(&s);
	add(&s, data, len);
	end(&s, out);
}

uint64_t store_routine_key(const struct store_key *image, const char *symbol, uint64_t off)
{
	struct base_sha256 s;
	struct store_key key;
	uint64_t v = 0;

	base_sha256_init(&s);
	add(&s, image->bytes, sizeof(image->bytes));
	add_text(&s, symbol);
	add(&s, &off, sizeof(off));
	end(&s, &key);
	for (size_t i = 0; i < sizeof(v); i++)
		v |= (uint64_t)key.bytes[i] << 8 * i;
	return v;
}
