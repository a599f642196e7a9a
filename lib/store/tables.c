/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of the store, and a check that bytes are rows of one. */
#include <errno.h>
#include <string.h>

#include "store.h"

#define COLUMNS (const struct store_column[])

/*
 * Offsets (doff) are differences to the one before, and they and their counts (n) are 32 bits wide.
 * What does not fit stands in far and nfar, offset and count as they are.
 */
const struct store_table store_tables[STORE_NR_TABLES] = {
	[STORE_PROF] = {
		.name = "prof",
		.columns = COLUMNS{ { "event", "String" }, { "image", "FixedString(16)" },
				    { "epoch", "DateTime" }, { "platform", "String" },
				    { "file", "String" }, { "ver", "UInt64" },
				    { "period", "UInt64" }, { "enabled", "UInt32" },
				    { "label", "String" }, { "samples", "UInt64" },
				    { "doff", "Array(UInt32)" }, { "n", "Array(UInt32)" },
				    { "far", "Array(UInt64)" }, { "nfar", "Array(UInt64)" }, { 0 } },
		.order = "event, image, epoch, platform, file",
		.partition = "toDate(epoch)",
		.shard = "cityHash64(image)",
		.keep_days = 30,
	},
	[STORE_TOTALS] = {
		.name = "totals",
		.columns = COLUMNS{ { "event", "String" }, { "label", "String" },
				    { "epoch", "DateTime" }, { "platform", "String" },
				    { "ver", "UInt64" }, { "period", "UInt64" },
				    { "enabled", "UInt32" }, { "samples", "UInt64" }, { "r", "Array(UInt64)" },
				    { "n", "Array(UInt64)" }, { 0 } },
		.order = "event, label, epoch, platform",
		.partition = "toMonday(epoch)",
		.shard = "cityHash64(platform)",
		.keep_days = 400,
	},
	[STORE_WORK] = {
		.name = "work",
		.columns = COLUMNS{ { "event", "String" }, { "epoch", "DateTime" },
				    { "platform", "String" }, { "ver", "UInt64" },
				    { "period", "UInt64" }, { "comm", "Array(String)" },
				    { "exe", "Array(String)" }, { "cgroup", "Array(String)" },
				    { "label", "Array(String)" }, { "uid", "Array(UInt32)" },
				    { "w", "Array(UInt32)" }, { "image", "Array(FixedString(16))" },
				    { "n", "Array(UInt64)" }, { 0 } },
		.order = "event, epoch, platform",
		.partition = "toMonday(epoch)",
		.shard = "cityHash64(platform)",
		.keep_days = 400,
	},
	[STORE_PART] = {
		.name = "part",
		.columns = COLUMNS{ { "epoch", "DateTime" }, { "platform", "String" },
				    { "kind", "String" }, { "ver", "UInt64" },
				    { "bytes", "String" }, { 0 } },
		.order = "epoch, platform, kind",
		.partition = "toDate(epoch)",
		.shard = "cityHash64(platform)",
		.keep_days = 30,
	},
	[STORE_IMAGE] = {
		.name = "image",
		.columns = COLUMNS{ { "image", "FixedString(16)" }, { "ver", "UInt64" },
				    { "kind", "String" }, { "id", "String" }, { "path", "String" },
				    { "text", "String" }, { "name", "String" },
				    { "stem", "String" }, { "content", "FixedString(16)" },
				    { "machine", "UInt32" }, { "symbol", "Array(String)" },
				    { "off", "Array(UInt64)" }, { "len", "Array(UInt64)" }, { 0 } },
		.order = "image",
		.shard = "cityHash64(image)",
	},
	[STORE_ROUTINE] = {
		.name = "routine",
		.columns = COLUMNS{ { "r", "UInt64" }, { "image", "FixedString(16)" },
				    { "symbol", "String" }, { "off", "UInt64" },
				    { "len", "UInt64" }, { "ver", "UInt64" }, { 0 } },
		.order = "r, image, symbol, off",
		.shard = "r",
	},
	[STORE_CONTENT] = {
		.name = "content",
		.columns = COLUMNS{ { "content", "FixedString(16)" }, { "ver", "UInt64" },
				    { "bytes", "String" }, { 0 } },
		.order = "content",
		.shard = "cityHash64(content)",
	},
};

int store_columns(const struct store_table *t, struct base_buf *to)
{
	int r = 0;

	for (const struct store_column *c = t->columns; c->name && r >= 0; c++)
		r = base_buf_printf(to, "%s%s", c == t->columns ? "" : ", ", c->name);
	return r;
}

/* The bytes of a value of fixed length; 0: a string. */
static size_t type_len(const char *type)
{
	static const struct {
		const char *name;
		size_t len;
	} types[] = {
		{ "UInt32", 4 }, { "UInt64", 8 }, { "DateTime", 4 }, { "FixedString(16)", 16 }
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (strncmp(type, types[i].name, strlen(types[i].name)) == 0)
			return types[i].len;
	return 0;
}

static void check_array(struct store_reader *r, const char *type)
{
	size_t len = type_len(type), nr = store_get_count(r, len ? len : 1), skipped;

	if (len)
		store_get_bytes(r, nr * len);
	for (size_t i = 0; !len && i < nr && !r->bad; i++)
		store_get_string(r, &skipped);
}

static void check_value(struct store_reader *r, const char *type)
{
	size_t skipped;

	if (strncmp(type, "Array(", 6) == 0)
		check_array(r, type + 6);
	else if (type_len(type))
		store_get_bytes(r, type_len(type));
	else
		store_get_string(r, &skipped);
}

ssize_t store_rows_check(const struct store_table *t, const void *rows, size_t len)
{
	struct store_reader r = { rows, (const uint8_t *)rows + len, false };
	ssize_t nr = 0;

	for (; r.at < r.end && !r.bad; nr++)
		for (const struct store_column *c = t->columns; c->name; c++)
			check_value(&r, c->type);
	return r.bad ? -DCPI_EFORMAT : nr;
}
