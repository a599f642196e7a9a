/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "base.h"

char *base_id_text(const struct base_id *id, char *text)
{
	static const char digits[] = "0123456789abcdef";
	size_t n = id->len < sizeof(id->bytes) ? id->len : sizeof(id->bytes);

	for (size_t i = 0; i < n; i++) {
		text[2 * i] = digits[id->bytes[i] >> 4];
		text[2 * i + 1] = digits[id->bytes[i] & 15];
	}
	text[2 * n] = '\0';
	return text;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int base_id_parse(struct base_id *id, const char *text, size_t len)
{
	struct base_id got = { 0 };

	if (!len || len % 2 || len > 2 * sizeof(got.bytes))
		return -EINVAL;
	got.len = (uint8_t)(len / 2);
	for (size_t i = 0; i < got.len; i++) {
		int hi = digit(text[2 * i]), lo = digit(text[2 * i + 1]);

		if (hi < 0 || lo < 0)
			return -EINVAL;
		got.bytes[i] = (uint8_t)(hi << 4 | lo);
	}
	*id = got;
	return 0;
}

bool base_id_equal(const struct base_id *a, const struct base_id *b)
{
	size_t n = a->len < sizeof(a->bytes) ? a->len : sizeof(a->bytes);

	return a->len == b->len && !memcmp(a->bytes, b->bytes, n);
}

void base_id_of_sha256(struct base_id *id, struct base_sha256 *s)
{
	uint8_t sum[32];

	base_sha256_end(s, sum);
	*id = (struct base_id){ .len = 20 };
	memcpy(id->bytes, sum, id->len);
}

void base_id_of_head(struct base_id *id, uint64_t file_len, const void *head, size_t head_len)
{
	struct base_sha256 s;

	base_sha256_init(&s);
	base_sha256_add(&s, "dcpi file", 9);
	base_sha256_add(&s, &file_len, sizeof(file_len));
	base_sha256_add(&s, head, head_len < BASE_ID_HEAD_LEN ? head_len : BASE_ID_HEAD_LEN);
	base_id_of_sha256(id, &s);
}
