/* SPDX-License-Identifier: BSD-2-Clause */
/* Identities of images are compared, printed, parsed and computed here. */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
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

int base_id_parse(struct base_id *id, const char *text, size_t len)
{
	struct base_id got = { 0 };

	if (!len || len % 2 || len > 2 * sizeof(got.bytes))
		return -EINVAL;
	got.len = (uint8_t)(len / 2);
	for (size_t i = 0; i < got.len; i++) {
		int hi = base_digit(text[2 * i]), lo = base_digit(text[2 * i + 1]);

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

static const char copy_end[] = ".file";

void base_copy_name(const struct base_id *id, const struct base_id *text, char *name)
{
	char ids[2][BASE_ID_TEXT_LEN];

	snprintf(name, BASE_COPY_NAME_LEN, "%s%s%s%s", base_id_text(id, ids[0]),
		 text->len ? "-" : "", base_id_text(text, ids[1]), copy_end);
}

int base_copy_id(const char *name, struct base_id *id)
{
	size_t len = strcspn(name, "-."), end = strcspn(name, ".");
	struct base_id text;

	if (strcmp(name + end, copy_end) != 0 || base_id_parse(id, name, len) < 0)
		return -EINVAL;
	return end == len ? 0 : base_id_parse(&text, name + len + 1, end - len - 1);
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
	base_sha256_add_number(&s, file_len);
	base_sha256_add(&s, head, head_len < BASE_ID_HEAD_LEN ? head_len : BASE_ID_HEAD_LEN);
	base_id_of_sha256(id, &s);
}

void base_id_of_place(struct base_id *id, const uint64_t where[3], const char *path)
{
	struct base_sha256 s;

	base_sha256_init(&s);
	base_sha256_add(&s, "path", 4);
	for (size_t i = 0; i < 3; i++)
		base_sha256_add_number(&s, where[i]);
	base_sha256_add(&s, path, strlen(path));
	base_id_of_sha256(id, &s);
}

static uint32_t note_number(const uint8_t *p, bool big)
{
	return big ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]
		   : (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static int id_in_notes(struct base_id *id, const uint8_t *p, size_t len, size_t align, bool big)
{
	size_t pos = 0;

	while (pos <= len && len - pos >= sizeof(Elf64_Nhdr)) {
		uint32_t name_len = note_number(p + pos, big);
		uint32_t desc_len = note_number(p + pos + 4, big);
		uint32_t type = note_number(p + pos + 8, big);
		uint64_t name = pos + sizeof(Elf64_Nhdr);
		uint64_t desc = base_align_up(name + name_len, align);
		uint64_t next = base_align_up(desc + desc_len, align);

		if (desc > len || desc_len > len - desc)
			break;
		if (type == NT_GNU_BUILD_ID && name_len == 4 && !memcmp(p + name, "GNU", 4) &&
		    desc_len && desc_len <= sizeof(id->bytes)) {
			*id = (struct base_id){ .len = (uint8_t)desc_len };
			memcpy(id->bytes, p + desc, desc_len);
			return 0;
		}
		pos = next < len ? (size_t)next : len;
	}
	return -ENOENT;
}

int base_id_of_notes(struct base_id *id, const void *notes, size_t len, size_t align)
{
	align = align == 8 ? 8 : 4;
	return id_in_notes(id, notes, len, align, false) == 0
		       ? 0
		       : id_in_notes(id, notes, len, align, true);
}
