/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of the store, and a check that bytes are rows of one. */
#include <string.h>

#include "store.h"

#define COLUMNS (const struct store_column[])

/*
 * Offsets are 32 bits wide and their counts 16, as most of them are small. Each stands in two
 * columns, of its low half (lo, nlo) and its high one (hi, nhi), as high halves compress to nearly
 * nothing apart. What does not fit stands in far and nfar. Rows of version 1 have off and n in
 * place of the halves. Rows of one image and machine are neighbours, as they are much alike.
 */
const struct store_table store_tables[STORE_NR_TABLES] = {
	[STORE_PROF] = {
		.name = "prof",
		.columns = COLUMNS{ { "event", "String", 0 }, { "image", "FixedString(16)", 0 },
				    { "epoch", "DateTime", 0 }, { "platform", "String", 0 },
				    { "file", "String", 0 }, { "ver", "UInt64", 0 },
				    { "period", "UInt64", 0 }, { "enabled", "UInt32", 0 },
				    { "label", "String", 0 }, { "samples", "UInt64", 0 },
				    { "off", "Array(UInt32)", 1 }, { "n", "Array(UInt16)", 1 },
				    { "lo", "Array(UInt16)", 2 }, { "hi", "Array(UInt16)", 2 },
				    { "nlo", "Array(UInt8)", 2 }, { "nhi", "Array(UInt8)", 2 },
				    { "far", "Array(UInt64)", 3 }, { "nfar", "Array(UInt64)", 3 }, { 0 } },
		.order = "event, image, platform, epoch, file",
		.partition = "toDate(epoch)",
		.shard = "cityHash64(image)",
		.keep_days = 30,
		.mark = 1024,
	},
	[STORE_TOTALS] = {
		.name = "totals",
		.columns = COLUMNS{ { "event", "String", 0 }, { "label", "String", 0 },
				    { "epoch", "DateTime", 0 }, { "platform", "String", 0 },
				    { "ver", "UInt64", 0 }, { "period", "UInt64", 0 },
				    { "enabled", "UInt32", 0 }, { "samples", "UInt64", 0 }, { "r", "Array(UInt64)", 1 },
				    { "n", "Array(UInt64)", 1 }, { 0 } },
		.order = "event, label, epoch, platform",
		.partition = "toMonday(epoch)",
		.shard = "cityHash64(platform)",
		.keep_days = 400,
		.mark = 256,
	},
	[STORE_WORK] = {
		.name = "work",
		.columns = COLUMNS{ { "event", "String", 0 }, { "epoch", "DateTime", 0 },
				    { "platform", "String", 0 }, { "ver", "UInt64", 0 },
				    { "period", "UInt64", 0 }, { "comm", "Array(String)", 1 },
				    { "exe", "Array(String)", 1 }, { "cgroup", "Array(String)", 1 },
				    { "label", "Array(String)", 1 }, { "uid", "Array(UInt32)", 1 },
				    { "w", "Array(UInt32)", 2 }, { "image", "Array(FixedString(16))", 2 },
				    { "n", "Array(UInt64)", 2 }, { 0 } },
		.order = "event, epoch, platform",
		.partition = "toMonday(epoch)",
		.shard = "cityHash64(platform)",
		.keep_days = 400,
		.mark = 256,
	},
	[STORE_PART] = {
		.name = "part",
		.columns = COLUMNS{ { "epoch", "DateTime", 0 }, { "platform", "String", 0 },
				    { "kind", "String", 0 }, { "ver", "UInt64", 0 },
				    { "bytes", "String", 0 }, { 0 } },
		.order = "epoch, platform, kind",
		.partition = "toDate(epoch)",
		.shard = "cityHash64(platform)",
		.keep_days = 30,
		.mark = 16,
	},
	[STORE_IMAGE] = {
		.name = "image",
		.columns = COLUMNS{ { "image", "FixedString(16)", 0 }, { "ver", "UInt64", 0 },
				    { "kind", "String", 0 }, { "id", "String", 0 }, { "path", "String", 0 },
				    { "text", "String", 0 }, { "name", "String", 0 },
				    { "stem", "String", 0 }, { "content", "FixedString(16)", 0 },
				    { "machine", "UInt32", 0 }, { "symbol", "Array(String)", 1 },
				    { "off", "Array(UInt64)", 1 }, { "len", "Array(UInt64)", 1 }, { 0 } },
		.order = "image",
		.shard = "cityHash64(image)",
		.mark = 1,
	},
	[STORE_ROUTINE] = {
		.name = "routine",
		.columns = COLUMNS{ { "r", "UInt64", 0 }, { "image", "FixedString(16)", 0 },
				    { "symbol", "String", 0 }, { "off", "UInt64", 0 },
				    { "len", "UInt64", 0 }, { "ver", "UInt64", 0 }, { 0 } },
		.order = "r, image, symbol, off",
		.shard = "r",
		.mark = 1024,
	},
	[STORE_CONTENT] = {
		.name = "content",
		.columns = COLUMNS{ { "content", "FixedString(16)", 0 }, { "ver", "UInt64", 0 },
				    { "bytes", "String", 0 }, { 0 } },
		.order = "content",
		.shard = "cityHash64(content)",
		.mark = 4,
	},
	[STORE_SUMS] = {
		.name = "sums",
		.columns = COLUMNS{ { "event", "String", 0 }, { "span", "UInt32", 0 },
				    { "epoch", "DateTime", 0 }, { "platform", "String", 0 },
				    { "label", "String", 0 }, { "ver", "UInt64", 0 },
				    { "print", "UInt64", 0 }, { "samples", "UInt64", 0 },
				    { "r", "Array(UInt64)", 1 }, { "n", "Array(UInt64)", 1 }, { 0 } },
		.order = "event, span, epoch, platform, label",
		.partition = "toMonday(epoch)",
		.shard = "cityHash64(platform)",
		.keep_days = 400,
		.mark = 16,
	},
	[STORE_PROFSUMS] = {
		.name = "profsums",
		.columns = COLUMNS{ { "event", "String", 0 }, { "image", "FixedString(16)", 0 },
				    { "span", "UInt32", 0 }, { "epoch", "DateTime", 0 },
				    { "platform", "String", 0 }, { "label", "String", 0 },
				    { "ver", "UInt64", 0 }, { "print", "UInt64", 0 },
				    { "samples", "UInt64", 0 }, { "lo", "Array(UInt16)", 2 },
				    { "hi", "Array(UInt16)", 2 }, { "nlo", "Array(UInt8)", 2 },
				    { "nhi", "Array(UInt8)", 2 }, { "far", "Array(UInt64)", 3 },
				    { "nfar", "Array(UInt64)", 3 }, { 0 } },
		.order = "event, span, image, epoch, platform, label",
		.partition = "toDate(epoch)",
		.shard = "cityHash64(image)",
		.keep_days = 30,
		.mark = 64,
	},
};

/* The bytes of a value of fixed length; 0: a string. */
static size_t type_len(const char *type)
{
	static const struct {
		const char *name;
		size_t len;
	} types[] = { { "UInt8", 1 },  { "UInt16", 2 },	  { "UInt32", 4 },
		      { "UInt64", 8 }, { "DateTime", 4 }, { "FixedString(16)", 16 } };

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (strncmp(type, types[i].name, strlen(types[i].name)) == 0)
			return types[i].len;
	return 0;
}

enum { NR_TOGETHER = 4 };

static void check_array(struct store_reader *r, const struct store_column *c,
			size_t lengths[NR_TOGETHER])
{
	size_t len = type_len(c->type + strlen("Array("));
	size_t nr = store_get_count(r, len ? len : 1), skipped;

	if (len)
		store_get_bytes(r, nr * len);
	for (size_t i = 0; !len && i < nr && !r->bad; i++)
		store_get_string(r, &skipped);
	if (lengths[c->together] == SIZE_MAX)
		lengths[c->together] = nr;
	r->bad |= c->together && lengths[c->together] != nr;
}

static void check_number(const struct store_column *c, uint64_t v, bool *other,
			 struct store_rows_facts *f)
{
	if (strcmp(c->name, "ver") == 0)
		*other |= f->ver_max && v > f->ver_max;
	if (strcmp(c->name, "epoch") == 0) {
		*other |= f->known && f->epoch != v;
		f->epoch = v;
	}
}

static void check_text(const struct store_column *c, const char *text, size_t len, bool *other,
		       struct store_rows_facts *f)
{
	if (!text || strcmp(c->name, "platform") != 0)
		return;
	*other |= len >= sizeof(f->platform) ||
		  (f->known && (strlen(f->platform) != len || memcmp(f->platform, text, len)));
	if (!*other && !f->known) {
		memcpy(f->platform, text, len);
		f->platform[len] = 0;
		f->known = true;
	}
}

static void check_row(struct store_reader *r, const struct store_table *t,
		      struct store_rows_facts *f)
{
	size_t lengths[NR_TOGETHER] = { SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX }, len;
	bool other = false;

	for (const struct store_column *c = t->columns; c->name && !r->bad; c++) {
		len = type_len(c->type);
		if (strncmp(c->type, "Array(", 6) == 0) {
			check_array(r, c, lengths);
		} else if (len == 16) {
			store_get_bytes(r, len);
		} else if (len) {
			check_number(c, store_get_number(r, len), &other, f);
		} else {
			const char *text = store_get_string(r, &len);

			check_text(c, text, len, &other, f);
		}
	}
	r->bad |= other;
}

ssize_t store_rows_check(const struct store_table *t, const void *rows, size_t len,
			 struct store_rows_facts *facts)
{
	struct store_rows_facts none = { .known = false };
	struct store_reader r = { rows, (const uint8_t *)rows + len, false };
	ssize_t nr = 0;

	for (; r.at < r.end && !r.bad; nr++)
		check_row(&r, t, facts ? facts : &none);
	return r.bad ? -DCPI_EFORMAT : nr;
}
