/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes JSON whose texts are inert, also inside of HTML. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "jwrite.h"

static void put(struct jwrite *j, const char *text, size_t len)
{
	if (j->r >= 0)
		j->r = base_buf_append(j->to, text, len);
}

static void put_string(struct jwrite *j, const char *text)
{
	put(j, text, strlen(text));
}

static void begin(struct jwrite *j, const char *key)
{
	if (j->comma)
		put(j, ",", 1);
	j->comma = true;
	if (!key)
		return;
	put(j, "\"", 1);
	put_string(j, key);
	put(j, "\":", 2);
}

void jwrite_open(struct jwrite *j, const char *key, char bracket)
{
	begin(j, key);
	put(j, &bracket, 1);
	j->comma = false;
}

void jwrite_close(struct jwrite *j, char bracket)
{
	put(j, &bracket, 1);
	j->comma = true;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* A character that has no form of its own, or changes that of others. */
static bool is_hidden(uint32_t c)
{
	static const uint32_t ranges[][2] = {
		{ 0xad, 0xad },	    { 0x34f, 0x34f },	{ 0x115f, 0x1160 }, { 0x17b4, 0x17b5 },
		{ 0x180b, 0x180f }, { 0x3164, 0x3164 }, { 0xe000, 0xf8ff }, { 0xfe00, 0xfe0f },
		{ 0xffa0, 0xffa0 }, { 0xfff0, 0xfffb }, { 0xfffe, 0xffff }, { 0xe0000, 0x10ffff },
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (c >= ranges[i][0] && c <= ranges[i][1])
			return true;
	return base_utf8_acts(c);
}

static void put_char(struct jwrite *j, const char *at, size_t len, uint32_t c)
{
	char spelled[32];

	if (is_hidden(c))
		snprintf(spelled, sizeof(spelled), "\\u003cU+%04" PRIX32 ">", c);
	else if (c == '<')
		snprintf(spelled, sizeof(spelled), "\\u003c");
	else if (c == '"' || c == '\\')
		snprintf(spelled, sizeof(spelled), "\\%c", (char)c);
	else {
		put(j, at, len);
		return;
	}
	put_string(j, spelled);
}

void jwrite_part(struct jwrite *j, const char *key, const char *text, size_t len, size_t max)
{
	bool cut = len > max;
	size_t end = cut ? max : len;

	begin(j, key);
	put(j, "\"", 1);
	for (size_t i = 0; i < end;) {
		uint32_t c = 0;
		size_t n = base_utf8(text + i, len - i, &c);
		char spelled[16];

		if (n) {
			put_char(j, text + i, n, c);
		} else {
			snprintf(spelled, sizeof(spelled), "\\u003c%02X>", (unsigned char)text[i]);
			put_string(j, spelled);
		}
		i += n ? n : 1;
	}
	put_string(j, cut ? "\u2026\"" : "\"");
}

void jwrite_text(struct jwrite *j, const char *key, const char *text)
{
	if (text)
		jwrite_part(j, key, text, strlen(text), 2000);
	else
		jwrite_null(j, key);
}

/* ---- other values ---------------------------------------------------------------------------- */

void jwrite_count(struct jwrite *j, const char *key, uint64_t n)
{
	char text[24];

	begin(j, key);
	snprintf(text, sizeof(text), "%" PRIu64, n);
	put_string(j, text);
}

void jwrite_int(struct jwrite *j, const char *key, int64_t n)
{
	char text[24];

	begin(j, key);
	snprintf(text, sizeof(text), "%" PRId64, n);
	put_string(j, text);
}

void jwrite_real(struct jwrite *j, const char *key, double value)
{
	char text[40];

	if (!isfinite(value)) {
		jwrite_null(j, key);
		return;
	}
	begin(j, key);
	snprintf(text, sizeof(text), "%.4g", value);
	put_string(j, text);
}

void jwrite_null(struct jwrite *j, const char *key)
{
	begin(j, key);
	put(j, "null", 4);
}

void jwrite_hex(struct jwrite *j, const char *key, uint64_t n)
{
	char text[24];

	begin(j, key);
	snprintf(text, sizeof(text), "\"%" PRIx64 "\"", n);
	put_string(j, text);
}

void jwrite_raw(struct jwrite *j, const char *key, const struct base_buf *json)
{
	begin(j, key);
	put(j, (const char *)json->data, json->len);
}

void jwrite_line(struct jwrite *j)
{
	put(j, "\n", 1);
}
