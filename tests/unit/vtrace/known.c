/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Instructions of which a CPU's results are known (tests/data/vtrace/vectors): what the interpreter
 * calls known is the same, and it knows all that the instruction changes. Behind "# ~" it need not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "vtrace_blocks.h"
#include "vtrace_known.h"

enum { CODE = 0x400000, LINE = 2048, MAX_CODE = 16, HLT = 0xf4 };

static struct {
	struct known before, after;
	uint8_t code[KNOWN_PAGE], page[KNOWN_PAGE];
	struct vtrace_state s;
	const char *line;
	unsigned int nr_bad;
} t;

static int read_memory(void *ctx, void *to, size_t len, uint64_t addr)
{
	(void)ctx;
	if (addr >= CODE && addr - CODE + len <= KNOWN_PAGE)
		memcpy(to, t.code + (addr - CODE), len);
	else if (addr >= KNOWN_DATA && addr - KNOWN_DATA + len <= KNOWN_PAGE)
		memcpy(to, t.page + (addr - KNOWN_DATA), len);
	else
		return -1;
	return 0;
}

/* "BYTES SEED CHANGE…": the state before and after. */
static void parse(char *line)
{
	char *save, *word = strtok_r(line, " \n", &save), *name;

	memset(t.code, HLT, sizeof(t.code));
	for (size_t len = 0; sscanf(word + 2 * len, "%2hhx", &t.code[len]) == 1;)
		assert_true(++len < MAX_CODE);
	word = strtok_r(NULL, " \n", &save);
	assert_non_null(word);
	known_fill(&t.before, strtoull(word, NULL, 10));
	t.after = t.before;
	while ((name = strtok_r(NULL, " \n", &save))) {
		char *value = strchr(name, '='), *chunk = strchr(name, '.');
		unsigned long n = strtoul(name + 1, NULL, 10);
		uint64_t v;

		assert_non_null(value);
		v = strtoull(value + 1, NULL, 16);
		switch (*name) {
		case 'v':
			assert_true(chunk && n < 32);
			t.after.v[n][strtoul(chunk + 1, NULL, 10) & 3] = v;
			break;
		case 'k':
			t.after.k[n & 7] = v;
			break;
		case 'r':
			t.after.r[n & 15] = v;
			break;
		case 'm':
			t.after.data[n & 7] = v;
			break;
		default:
			assert_int_equal(*name, 'f');
			t.after.flags = (uint8_t)v;
		}
	}
}

static void interpret(struct vtrace_blocks *blocks)
{
	const struct vtrace_memory memory = { read_memory, NULL };
	struct vtrace_state *s = &t.s;

	memset(s, 0, sizeof(*s));
	memcpy(t.page + KNOWN_AT, t.before.data, sizeof(t.before.data));
	for (int i = 0; i < 16; i++)
		s->r[i] = t.before.r[i];
	s->r[KNOWN_RSP] = KNOWN_DATA + KNOWN_PAGE / 2;
	for (int i = 0; i < 8; i++)
		s->r[VTRACE_MASK + i] = t.before.k[i];
	for (int i = 0; i < 32 * 4; i++)
		s->r[VTRACE_VECTOR + i] = t.before.v[i / 4][i % 4];
	s->flags = t.before.flags;
	s->pc = CODE;
	vtrace_begin(s, 1);
	vtrace_run(blocks, &memory, s);
}

static void __attribute__((format(printf, 1, 2))) bad(const char *format, ...)
{
	char text[LINE];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	print_error("%s: %s\n", t.line, text);
	t.nr_bad++;
}

/* Known bytes are as the CPU had them; all bytes that it changed are known if @all. */
static void same(const char *name, int n, uint64_t got, uint64_t known, uint64_t before,
		 uint64_t want, bool all)
{
	if ((got ^ want) & known)
		bad("%s%d is %llx, of which %llx is known; the CPU had %llx", name, n,
		    (unsigned long long)got, (unsigned long long)known, (unsigned long long)want);
	else if (all && (before ^ want) & ~known)
		bad("%s%d is not known", name, n);
}

static void check_register(const char *name, int n, unsigned int reg, uint64_t before,
			   uint64_t want, bool all)
{
	same(name, n, t.s.r[reg], ~vtrace_spread(t.s.unknown[reg]), before, want, all);
}

static bool is_lost(uint64_t addr)
{
	return t.s.memory_unknown || (addr >= t.s.lost_start && addr < t.s.lost_end);
}

/* Bytes of the words at rdi as the instruction left them. */
static void check_memory(bool all)
{
	uint8_t got[sizeof(t.before.data)], known[sizeof(got)];
	uint64_t value, mask;

	memcpy(got, t.before.data, sizeof(got));
	for (size_t i = 0; i < sizeof(got); i++)
		known[i] = is_lost(KNOWN_DATA + KNOWN_AT + i) ? 0 : 0xff;
	for (unsigned int e = 0; e < 8 * VTRACE_NR_STORES; e++) {
		const struct vtrace_store *st = &t.s.stores[e / 8];
		uint64_t at = st->addr + e % 8 - KNOWN_DATA - KNOWN_AT;

		if (!vtrace_has_store(&t.s, e / 8) || !(st->written >> (e % 8) & 1))
			continue;
		assert_true(at < sizeof(got));
		got[at] = (uint8_t)(st->value >> 8 * (e % 8));
		known[at] = st->unknown >> (e % 8) & 1 ? 0 : 0xff;
	}
	for (int i = 0; i < 8; i++) {
		memcpy(&value, got + (size_t)8 * i, 8);
		memcpy(&mask, known + (size_t)8 * i, 8);
		same("m", i, value, mask, t.before.data[i], t.after.data[i], all);
	}
}

static void check(bool all)
{
	if (all && t.s.nr_insns != 1)
		bad("not run");
	for (int i = 0; i < 16; i++)
		if (i != KNOWN_RSP)
			check_register("r", i, (unsigned int)i, t.before.r[i], t.after.r[i], all);
	for (int i = 0; i < 8; i++)
		check_register("k", i, (unsigned int)(VTRACE_MASK + i), t.before.k[i], t.after.k[i],
			       all);
	for (int i = 0; i < 32 * 4; i++)
		check_register(i % 4 > 1 ? "upper half of v" : "v", i / 4,
			       (unsigned int)(VTRACE_VECTOR + i), t.before.v[i / 4][i % 4],
			       t.after.v[i / 4][i % 4], all);
	same("f", 0, t.s.flags, VTRACE_FLAGS & ~t.s.flags_unknown, t.before.flags, t.after.flags,
	     all);
	check_memory(all);
}

static void vectors(void **state)
{
	char path[4096], line[LINE], insn[LINE] = "", shown[LINE];
	struct vtrace_blocks *blocks = NULL;
	bool all = true;
	int nr = 0;
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/tests/data/vtrace/vectors", getenv("DCPI_SRC"));
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (*line == '#') {
			all = line[2] != '~';
			memcpy(insn, line, sizeof(insn));
			insn[strcspn(insn, "\n")] = 0;
			vtrace_blocks_free(blocks);
			assert_int_equal(vtrace_blocks_new(VTRACE_X86_64, &blocks), 0);
			continue;
		}
		snprintf(shown, sizeof(shown), "%.60s: %.*s", insn, (int)strcspn(line, "="), line);
		t.line = shown;
		parse(line);
		interpret(blocks);
		check(all);
		nr++;
	}
	vtrace_blocks_free(blocks);
	fclose(f);
	assert_true(nr > 1000);
	assert_int_equal(t.nr_bad, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(vectors) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
