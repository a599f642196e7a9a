/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory that libdw takes for a line table is estimated here before libdw reads it. */
#include "foreign_internal.h"

/* A name of one letter, its end, and three numbers. */
enum { FILE_MIN = 5 };

struct cursor {
	const uint8_t *at;
	size_t left;
};

static bool skip(struct cursor *c, uint64_t len)
{
	if (len > c->left)
		return false;
	c->at += len;
	c->left -= (size_t)len;
	return true;
}

static bool number(struct cursor *c, size_t len, uint64_t *value)
{
	const uint8_t *at = c->at;

	*value = 0;
	if (!skip(c, len))
		return false;
	memcpy(value, at, len);
	return true;
}

/* From the length on to the directories: false where there are none of that kind. */
static bool skip_header(struct cursor *c)
{
	uint64_t len, version, opcodes;
	size_t width = 4;

	if (!number(c, 4, &len))
		return false;
	if (len == UINT32_MAX) {
		width = 8;
		if (!number(c, 8, &len))
			return false;
	}
	if (len < c->left)
		c->left = (size_t)len;
	if (!number(c, 2, &version) || version > 4)
		return false;
	return skip(c, width + (version == 4 ? 5 : 4)) && number(c, 1, &opcodes) &&
	       skip(c, opcodes ? opcodes - 1 : 0);
}

uint64_t elf_lines_cost(const uint8_t *section, size_t len, uint64_t off, size_t unit_dir_len)
{
	struct cursor c = { section, len };
	uint64_t longest = unit_dir_len;

	if (!skip(&c, off) || !skip_header(&c))
		return 0;
	while (c.left && *c.at) {
		size_t dir_len = strnlen((const char *)c.at, c.left);

		longest = dir_len > longest ? dir_len : longest;
		if (!skip(&c, dir_len + 1))
			return 0;
	}
	/* The program can name files too. */
	return c.left / FILE_MIN * longest;
}
