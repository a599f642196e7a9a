/* SPDX-License-Identifier: BSD-2-Clause */
/* Hashes of a procedure's code, which tell whether two runs had the same code: one of its bytes,
 * and one of its bytes without the operands that change when code moves. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "code.h"
#include "insn.h"

enum { CODE_MAX = 16 << 20 };

static uint64_t hash(const uint8_t *code, size_t len)
{
	struct base_sha256 s;
	uint8_t sum[32];
	uint64_t out;

	base_sha256_init(&s);
	base_sha256_add(&s, code, len);
	base_sha256_end(&s, sum);
	memcpy(&out, sum, sizeof(out));
	return out;
}

/* Code that the database does not keep reads as zeros. */
static bool any_byte(const uint8_t *code, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (code[i])
			return true;
	return false;
}

/* Is any byte of the procedure at @vaddr kept? Bytes outside of all procedures count as kept. */
static bool is_kept(struct image *img, uint64_t vaddr)
{
	const struct image_symbol *symbol = image_symbol_at(img, vaddr);
	uint8_t part[4096];

	for (uint64_t at = 0; symbol && at < symbol->len; at += sizeof(part)) {
		size_t len = symbol->len - at < sizeof(part) ? symbol->len - at : sizeof(part);

		if (any_byte(part, image_bytes(img, symbol->vaddr + at, part, len)))
			return true;
	}
	return !symbol;
}

size_t analysis_code_bytes(struct image *img, uint64_t vaddr, void *out, size_t len)
{
	size_t n = image_bytes(img, vaddr, out, len);

	return any_byte(out, n) || is_kept(img, vaddr) ? n : 0;
}

int analysis_code_hash(struct image *img, const struct image_symbol *symbol, bool masked,
		       uint64_t *out)
{
	size_t len = symbol->len < CODE_MAX ? symbol->len : CODE_MAX;
	uint8_t *code = malloc(len + 1);
	int r = code ? 0 : -ENOMEM;

	if (r >= 0 &&
	    (!len || image_bytes(img, symbol->vaddr, code, len) < len || !any_byte(code, len)))
		r = -ENOENT;
	if (r >= 0 && masked)
		insn_mask(image_machine(img), code, len, symbol->vaddr);
	if (r >= 0)
		*out = hash(code, len);
	free(code);
	return r;
}
