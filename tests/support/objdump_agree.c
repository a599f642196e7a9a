/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * objdump_agree [BOUNDS] < OUTPUT-OF-objdump -d -w: decode every instruction of x86-64 that objdump
 * shows, and say which of them lib/insn shows as bytes or gives another length. BOUNDS has lines
 * "START LENGTH" (in hex) of functions; what lies outside of these may be data, and is left out.
 */
#include <ctype.h>
#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "insn.h"

enum { LONGEST = 15 };

struct bound {
	uint64_t start, len;
};

struct bounds {
	struct bound *v;
	size_t nr, cap;
};

struct shown {
	uint64_t addr;
	uint8_t code[LONGEST];
	size_t len;
	const char *text;
};

static int by_start(const void *a, const void *b)
{
	const struct bound *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static bool read_bounds(const char *path, struct bounds *b)
{
	FILE *f = fopen(path, "r");
	struct bound one;

	if (!f)
		return false;
	while (fscanf(f, "%" SCNx64 " %" SCNx64, &one.start, &one.len) == 2) {
		if (b->nr == b->cap) {
			b->cap = b->cap ? 2 * b->cap : 4096;
			b->v = reallocarray(b->v, b->cap, sizeof(*b->v));
			if (!b->v)
				abort();
		}
		b->v[b->nr++] = one;
	}
	fclose(f);
	qsort(b->v, b->nr, sizeof(*b->v), by_start);
	return b->nr;
}

/* Names for one place may have different lengths: the last ones that begin before are looked at. */
static bool is_inside(const struct bounds *b, uint64_t addr, size_t len)
{
	size_t low = 0, high = b->nr;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (b->v[mid].start <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	for (size_t i = low; i-- && low - i <= 8;)
		if (addr + len <= b->v[i].start + b->v[i].len)
			return true;
	return false;
}

/* objdump calls a prefix that nothing follows by its name. */
static bool is_prefix_alone(const struct shown *s)
{
	return s->len == 1 && strncmp(s->text, "rex", 3) == 0;
}

/* "  ADDRESS:\tBYTES\tTEXT"; false: the line shows no instruction. */
static bool parse(char *line, struct shown *out)
{
	char *bytes = strchr(line, '\t'), *text = bytes ? strchr(bytes + 1, '\t') : NULL, *end;

	if (!text)
		return false;
	out->addr = strtoull(line, &end, 16);
	out->text = text + 1;
	if (*end != ':' || strstr(text, "(bad)") || text[1] == '.')
		return false;
	for (out->len = 0; out->len < LONGEST && isxdigit((unsigned char)bytes[1]); out->len++) {
		out->code[out->len] = (uint8_t)strtoul(bytes + 1, &end, 16);
		bytes = end;
	}
	return out->len && !is_prefix_alone(out);
}

static bool agrees(struct insn_disasm *d, const struct shown *s)
{
	struct insn_line line;

	insn_disasm_one(d, s->code, s->len, s->addr, &line);
	if (line.len == s->len && line.text[0] != '.')
		return true;
	printf("%#" PRIx64 ": %s, not %s", s->addr, line.text, s->text);
	return false;
}

int main(int argc, char **argv)
{
	struct bounds bounds = { 0 };
	unsigned long nr = 0, differ = 0;
	struct insn_disasm *d = NULL;
	struct shown s;
	char line[4096];

	if (insn_disasm_open(EM_X86_64, &d, NULL) < 0 ||
	    (argc > 1 && !read_bounds(argv[1], &bounds)))
		return 2;
	while (fgets(line, sizeof(line), stdin)) {
		if (!parse(line, &s) || (argc > 1 && !is_inside(&bounds, s.addr, s.len)))
			continue;
		nr++;
		differ += !agrees(d, &s);
	}
	printf("%lu instructions, %lu differ\n", nr, differ);
	insn_disasm_close(d);
	free(bounds.v);
	return nr < 10000 || differ;
}
