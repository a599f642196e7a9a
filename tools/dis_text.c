/* SPDX-License-Identifier: BSD-2-Clause */
/* One disassembled instruction, label or byte row becomes text. */
#include <stdlib.h>
#include <string.h>

#include "demangle.h"
#include "dis.h"
#include "table.h"

enum { NAME_LEN_MAX = 4096 };

static void put(struct dis_text *x, const char *text, size_t len)
{
	if (len > x->cap - x->len && base_grow(&x->data, &x->cap, x->len + len, 1) < 0) {
		x->failed = true;
		return;
	}
	memcpy(x->data + x->len, text, len);
	x->len += len;
}

static void put_string(struct dis_text *x, const char *text)
{
	put(x, text, strlen(text));
}

static void put_hex(struct dis_text *x, uint64_t value)
{
	char text[18];
	size_t at = sizeof(text);

	do {
		text[--at] = "0123456789abcdef"[value & 15];
		value >>= 4;
	} while (value);
	text[--at] = 'x';
	text[--at] = '0';
	put(x, text + at, sizeof(text) - at);
}

/* From outside; most names need no cleaning. */
static void put_name(struct dis_text *x, const char *name)
{
	size_t len = 0;
	char *copy;

	while (name[len] >= ' ' && name[len] < 0x7f && len < NAME_LEN_MAX)
		len++;
	if (!name[len] || len == NAME_LEN_MAX) {
		put(x, name, len);
		return;
	}
	copy = strndup(name, NAME_LEN_MAX);
	put_string(x, copy ? table_clean(copy) : "?");
	free(copy);
}

/* "name", "name+0x12", or "0x4012". */
static void put_where(struct dis_text *x, uint64_t vaddr)
{
	const struct image_symbol *s = image_symbol_at(x->img, vaddr);

	if (!s) {
		put_hex(x, vaddr);
		return;
	}
	put_name(x, demangle_shown(s->name));
	if (s->vaddr != vaddr) {
		put(x, "+", 1);
		put_hex(x, vaddr - s->vaddr);
	}
}

void dis_text_operation(struct dis_text *x, const struct insn_text *t)
{
	size_t len = strlen(t->mnemonic);

	put(x, t->mnemonic, len);
	if (!*t->operands)
		return;
	put(x, "        ", len < 7 ? 8 - len : 1);
	if (!t->has_target) {
		put_string(x, t->operands);
		return;
	}
	put(x, t->operands, t->target_at);
	put_where(x, t->target);
}

void dis_text_bytes(struct dis_text *x, const uint8_t *code, size_t len)
{
	for (size_t i = 0; i < len; i++)
		put(x,
		    (char[]){ "0123456789abcdef"[code[i] >> 4], "0123456789abcdef"[code[i] & 15] },
		    2);
}

void dis_text_label(void *ctx, const struct dis_range *range, const struct image_symbol *symbol,
		    uint64_t vaddr)
{
	struct dis_text *x = ctx;

	(void)range;
	put(x, "\n", 1);
	if (symbol)
		put_where(x, vaddr);
	else
		put_string(x, "(no symbol)");
	put(x, ":\n", 2);
}

/* Where it is another than that of the instruction before. */
static void put_line(struct dis_text *x, uint64_t vaddr)
{
	struct image_line line = { 0 };
	bool known = image_line_at(x->img, vaddr, &line) >= 0;
	char text[32];

	if (known ? x->line == line.line && x->line_file && !strcmp(x->line_file, line.file)
		  : !x->line_file)
		return;
	free(x->line_file);
	x->line_file = known ? strdup(line.file) : NULL;
	x->line = line.line;
	snprintf(text, sizeof(text), ":%u\n", line.line);
	put(x, "; ", 2);
	put_name(x, known ? line.file : "(no source line)");
	put_string(x, known ? text : "\n");
}

void dis_text_insn(void *ctx, uint64_t vaddr, const uint8_t *code, const struct insn_text *t)
{
	static const char blanks[] = "                        ";
	struct dis_text *x = ctx;
	size_t nr = t->len < 16 ? t->len : 16;

	if (x->source)
		put_line(x, vaddr);
	put(x, "  ", 2);
	put_hex(x, vaddr);
	put(x, "  ", 2);
	if (x->bytes) {
		dis_text_bytes(x, code, nr);
		put(x, blanks, nr < 10 ? 22 - 2 * nr : 2);
	}
	dis_text_operation(x, t);
	put(x, "\n", 1);
}

void dis_text_release(struct dis_text *x)
{
	free(x->data);
	free(x->line_file);
	memset(x, 0, sizeof(*x));
}
