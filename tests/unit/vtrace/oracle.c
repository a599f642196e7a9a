/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DCPI_COUNT instructions per architecture (default: what takes less than a second), alone or in
 * sequences of up to eight, from DCPI_SEED on. What may differ stands in the generators, with its
 * reason.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "oracle.h"

enum { CASES_OF_ONE_MACHINE = 2048, CASE_LEN = 128 };

struct machine {
	const struct oracle_arch *arch;
	uc_engine *uc;
	struct vtrace_blocks *blocks;
	struct vtrace_translator *translator;
	uint8_t data[ORACLE_DATA_LEN];
	uint8_t *code, *emulated; /* the emulator's, which changes the latter */
	unsigned int nr_cases;
};

struct one_case {
	uint8_t code[CASE_LEN];
	size_t len;
	unsigned int nr;
	bool integer;
	uint64_t seed, pc;
	size_t starts[ORACLE_MAX_INSNS];
	struct vtrace_state before, after;
};

struct tally {
	unsigned long cases, insns, refused, ended, integer, known;
};

/* ---- numbers --------------------------------------------------------------------------------- */

static uint64_t random_state;

uint64_t oracle_random(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

uint64_t oracle_value(void)
{
	uint64_t v = oracle_random();

	switch (oracle_random() % 8) {
	case 0:
		return v % 3 - 1;
	case 1:
		return (1ull << v % 64) - (v >> 6) % 3 + 1;
	case 2:
		return (v & 0xff) * 0x0101010101010101;
	case 3:
		return (uint64_t)((int64_t)v >> v % 64);
	default:
		return v;
	}
}

uint64_t oracle_pointer(void)
{
	return ORACLE_DATA + ORACLE_DATA_LEN / 4 + oracle_random() % (ORACLE_DATA_LEN / 2);
}

/* ---- machines -------------------------------------------------------------------------------- */

static void open_machine(struct machine *m)
{
	const struct oracle_arch *a = m->arch;

	assert_int_equal(uc_open(a->uc_arch, a->uc_mode, &m->uc), UC_ERR_OK);
	assert_int_equal(uc_ctl_set_cpu_model(m->uc, a->cpu), UC_ERR_OK);
	assert_int_equal(uc_mem_map_ptr(m->uc, ORACLE_CODE, ORACLE_CODE_LEN, UC_PROT_ALL, m->code),
			 UC_ERR_OK);
	assert_int_equal(uc_mem_map_ptr(m->uc, ORACLE_DATA, ORACLE_DATA_LEN,
					UC_PROT_READ | UC_PROT_WRITE, m->emulated),
			 UC_ERR_OK);
	if (a->prepare)
		a->prepare(m->uc);
	memset(m->code, a->filler, ORACLE_CODE_LEN);
	for (size_t i = 0; i < ORACLE_DATA_LEN; i += 8)
		memcpy(m->data + i, &(uint64_t){ oracle_value() }, 8);
	assert_int_equal(vtrace_blocks_new(a->arch, &m->blocks), 0);
	assert_int_equal(vtrace_translator_open(a->arch, &m->translator), 0);
	m->nr_cases = 0;
}

static void close_machine(struct machine *m)
{
	vtrace_translator_close(m->translator);
	vtrace_blocks_free(m->blocks);
	uc_close(m->uc);
}

/* ---- cases ----------------------------------------------------------------------------------- */

static int read_memory(void *ctx, void *to, size_t len, uint64_t addr)
{
	struct machine *m = ctx;

	if (addr >= ORACLE_CODE && addr - ORACLE_CODE <= ORACLE_CODE_LEN - len)
		memcpy(to, m->code + (addr - ORACLE_CODE), len);
	else if (addr >= ORACLE_DATA && addr - ORACLE_DATA <= ORACLE_DATA_LEN - len)
		memcpy(to, m->data + (addr - ORACLE_DATA), len);
	else
		return -1;
	return 0;
}

static void make_case(struct machine *m, struct one_case *c)
{
	const struct oracle_arch *a = m->arch;
	struct vtrace_state *s = &c->before;
	unsigned int want;
	bool integer, jumps = false;

	memset(c, 0, sizeof(*c));
	c->seed = random_state;
	c->integer = true;
	want = oracle_random() % 2 ? 1 : 1 + oracle_random() % ORACLE_MAX_INSNS;
	for (; c->nr < want && !jumps; c->nr++) {
		c->starts[c->nr] = c->len;
		c->len += a->generate(c->code + c->len, &integer, &jumps);
		c->integer &= integer;
	}
	c->pc = ORACLE_CODE + (uint64_t)CASE_LEN * m->nr_cases++;
	memcpy(m->code + (c->pc - ORACLE_CODE), c->code, c->len);
	/* Something may have been here, on its way. */
	uc_ctl_remove_cache(m->uc, c->pc, c->pc + CASE_LEN);
	for (int i = 0; i < a->nr_general; i++)
		s->r[a->numbers[i]] = a->content(a->numbers[i]);
	for (int i = 0; i < 2 * a->nr_vectors; i++)
		s->r[VTRACE_VECTOR + 4 * (i / 2) + i % 2] = oracle_value();
	s->flags = oracle_random() & VTRACE_FLAGS & a->flags_compared;
	s->pc = c->pc;
}

static enum vtrace_end interpret(struct machine *m, struct one_case *c)
{
	const struct vtrace_memory memory = { read_memory, m };

	c->after = c->before;
	vtrace_begin(&c->after, (uint16_t)c->nr);
	return vtrace_run(m->blocks, &memory, &c->after);
}

/* The same bytes are the same block in any other page. */
static bool same_elsewhere(const struct machine *m, const struct one_case *c)
{
	const uint64_t far = 0x1234567000;
	struct vtrace_code here, there;
	bool ok = true;

	for (size_t at = 0; ok && at < c->len; at += here.block.len) {
		vtrace_translate(m->translator, c->code + at, c->len - at, c->pc + at, &here);
		vtrace_translate(m->translator, c->code + at, c->len - at, c->pc + at + far,
				 &there);
		for (int i = 0; i < there.nr_successors; i++)
			there.successors[i] -= far;
		there.block.pc -= far;
		ok = memcmp(&here, &there, sizeof(here)) == 0;
	}
	if (!ok)
		print_error("it is another block elsewhere\n");
	return ok;
}

/* Registers to the emulator, or from it. */
static uc_err exchange(struct machine *m, struct vtrace_state *s, bool write)
{
	const struct oracle_arch *a = m->arch;
	int regs[ORACLE_MAX_GENERAL + ORACLE_MAX_VECTORS + 2], n = 0;
	void *values[ORACLE_MAX_GENERAL + ORACLE_MAX_VECTORS + 2];
	uint64_t flags = a->flags_to_machine(s->flags);
	uc_err err;

	for (int i = 0; i < a->nr_general; i++, n++) {
		regs[n] = a->general[i];
		values[n] = &s->r[a->numbers[i]];
	}
	for (int i = 0; i < a->nr_vectors; i++, n++) {
		regs[n] = a->vectors[i];
		values[n] = &s->r[VTRACE_VECTOR + 4 * i];
	}
	regs[n] = a->flags;
	values[n++] = &flags;
	regs[n] = a->pc;
	values[n++] = &s->pc;
	err = write ? uc_reg_write_batch(m->uc, regs, values, n)
		    : uc_reg_read_batch(m->uc, regs, values, n);
	if (!write)
		s->flags = a->flags_of_machine(flags);
	return err;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static bool same(const char *what, int which, uint64_t got, uint64_t want)
{
	if (got != want)
		print_error("%s %d: 0x%llx interpreted, 0x%llx emulated\n", what, which,
			    (unsigned long long)got, (unsigned long long)want);
	return got == want;
}

/* In the bytes that are known. */
static bool same_register(const char *what, int number, uint8_t reg, const struct vtrace_state *s,
			  const struct vtrace_state *want)
{
	uint64_t known = ~vtrace_spread(s->unknown[reg]);

	return same(what, number, s->r[reg] & known, want->r[reg] & known);
}

static bool same_registers(const struct machine *m, const struct one_case *c,
			   const struct vtrace_state *want)
{
	const struct oracle_arch *a = m->arch;
	const struct vtrace_state *s = &c->after;
	uint8_t flags = a->flags_compared & ~s->flags_unknown;
	/* Within a block flags that nobody reads are not kept. */
	bool ok =
		s->nr_insns < c->nr || same("flags", flags, s->flags & flags, want->flags & flags);

	for (int i = 0; i < a->nr_general; i++)
		ok &= same_register("register", a->numbers[i], a->numbers[i], s, want);
	for (int i = 0; i < 2 * a->nr_vectors; i++) {
		uint8_t reg = (uint8_t)(VTRACE_VECTOR + 4 * (i / 2) + i % 2);

		ok &= same_register("vector chunk", i, reg, s, want);
	}
	return same("pc", 0, vtrace_pc(m->blocks, s), want->pc) && ok;
}

/* Where a byte of memory may be anything. */
static bool byte_is_lost(const struct vtrace_state *s, uint64_t addr)
{
	return s->memory_unknown || (addr >= s->lost_start && addr < s->lost_end);
}

static bool same_memory(const struct machine *m, struct one_case *c)
{
	struct vtrace_state *s = &c->after;
	uint8_t want[ORACLE_DATA_LEN], lost[ORACLE_DATA_LEN];
	bool ok = true;

	if (!s->nr_stores && !s->memory_unknown && s->lost_start == s->lost_end)
		return same("memory", 0, memcmp(m->data, m->emulated, sizeof(want)) != 0, 0);
	memcpy(want, m->data, sizeof(want));
	for (size_t i = 0; i < sizeof(lost); i++)
		lost[i] = byte_is_lost(s, ORACLE_DATA + i);
	for (unsigned int e = 0; e < 8 * VTRACE_NR_STORES; e++) {
		const struct vtrace_store *st = &s->stores[e / 8];
		uint64_t at = st->addr + e % 8 - ORACLE_DATA;

		if (!vtrace_has_store(s, e / 8) || !(st->written >> (e % 8) & 1) ||
		    at >= sizeof(want))
			continue;
		want[at] = (uint8_t)(st->value >> 8 * (e % 8));
		lost[at] = st->unknown >> (e % 8) & 1;
	}
	for (size_t i = 0; i < sizeof(want); i++)
		if (!lost[i] && want[i] != m->emulated[i])
			ok = same("byte", (int)i, want[i], m->emulated[i]);
	return ok;
}

static void show_case(const struct machine *m, const struct one_case *c)
{
	print_error("%s, DCPI_SEED=0x%llx, pc 0x%llx, code", m->arch->name,
		    (unsigned long long)c->seed, (unsigned long long)c->pc);
	for (size_t i = 0; i < c->len; i++)
		print_error("%s%02x", i % 4 ? "" : " ", c->code[i]);
	print_error(", %u instructions run\n", c->after.nr_insns);
}

static bool all_is_known(const struct one_case *c, const struct oracle_arch *a)
{
	const struct vtrace_state *s = &c->after;
	bool unknown = s->memory_unknown || s->nr_insns < c->nr;

	for (int i = 0; i < a->nr_general; i++)
		unknown |= vtrace_is_unknown(s, a->numbers[i]);
	return !unknown;
}

/* It says nothing of exceptions, but stays where they were; nothing goes back there otherwise. */
static bool met_exception(const struct one_case *c, uint64_t pc)
{
	for (unsigned int i = 0; i < c->after.nr_insns; i++)
		if (pc == c->pc + c->starts[i])
			return true;
	return false;
}

/* As many instructions as were interpreted; false: they are none, or meet no memory. */
static bool emulate(struct machine *m, const struct one_case *c, struct vtrace_state *out)
{
	uc_err err;

	*out = c->before;
	memcpy(m->emulated, m->data, sizeof(m->data));
	assert_int_equal(exchange(m, out, true), UC_ERR_OK);
	err = uc_emu_start(m->uc, c->pc, 0, 0, c->after.nr_insns ? c->after.nr_insns : 1);
	assert_int_equal(exchange(m, out, false), UC_ERR_OK);
	return err == UC_ERR_OK && !met_exception(c, out->pc);
}

/* ---- the test -------------------------------------------------------------------------------- */

static bool check_case(struct machine *m, struct one_case *c, struct tally *t)
{
	static struct vtrace_state want;
	bool ok;

	interpret(m, c);
	t->cases++;
	if (c->after.nr_insns < c->nr)
		t->ended++;
	if (!emulate(m, c, &want)) {
		t->refused++;
		return true;
	}
	if (c->integer) {
		t->integer++;
		t->known += all_is_known(c, m->arch);
	}
	if (!c->after.nr_insns)
		return true;
	t->insns += c->after.nr_insns;
	ok = same_registers(m, c, &want);
	ok &= same_elsewhere(m, c);
	ok &= same_memory(m, c);
	if (!ok)
		show_case(m, c);
	return ok;
}

/* The second half of @c, from where the emulator is behind the first: within a block that is there
 * already. False: it does not get so far. */
static bool halve(struct machine *m, struct one_case *c)
{
	static struct vtrace_state middle;
	unsigned int half = c->nr / 2;
	size_t off = c->starts[half];

	c->after.nr_insns = (uint16_t)half;
	if (!half || !emulate(m, c, &middle) || middle.pc != c->pc + off)
		return false;
	memcpy(m->data, m->emulated, sizeof(m->data));
	c->before = middle;
	c->pc = middle.pc;
	c->nr -= half;
	c->len -= off;
	memmove(c->code, c->code + off, c->len);
	for (unsigned int i = 0; i < c->nr; i++)
		c->starts[i] = c->starts[i + half] - off;
	return true;
}

static bool run_case(struct machine *m, struct tally *t)
{
	static struct one_case c;
	bool ok;

	make_case(m, &c);
	ok = check_case(m, &c, t);
	if (ok && halve(m, &c))
		ok = check_case(m, &c, t);
	return ok;
}

static unsigned long number(const char *variable, unsigned long otherwise)
{
	const char *text = getenv(variable);

	return text ? strtoul(text, NULL, 0) : otherwise;
}

static void run(const struct oracle_arch *arch)
{
	struct machine *m = calloc(1, sizeof(*m));
	unsigned long count = number("DCPI_COUNT", 5000), differ = 0, seed = number("DCPI_SEED", 1);
	struct tally t = { 0 };

	assert_non_null(m);
	m->arch = arch;
	m->emulated = aligned_alloc(4096, ORACLE_DATA_LEN);
	m->code = aligned_alloc(4096, ORACLE_CODE_LEN);
	assert_true(m->emulated && m->code);
	random_state = seed;
	open_machine(m);
	while (t.insns < count && differ < 20) {
		if (m->nr_cases == CASES_OF_ONE_MACHINE) {
			close_machine(m);
			open_machine(m);
		}
		differ += !run_case(m, &t);
	}
	close_machine(m);
	free(m->emulated);
	free(m->code);
	free(m);
	print_message(
		"%s: seed %lu, %lu cases, %lu instructions, %lu differ; %lu refused, %lu ended "
		"early; of %lu integer cases %lu known\n",
		arch->name, seed, t.cases, t.insns, differ, t.refused, t.ended, t.integer, t.known);
	assert_int_equal(differ, 0);
	assert_true(t.refused < t.cases / 2);
	assert_true(100 * t.known >= arch->known_pct * t.integer);
}

static void aarch64(void **state)
{
	(void)state;
	run(&oracle_aarch64);
}

static void x86(void **state)
{
	(void)state;
	run(&oracle_x86);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aarch64),
		cmocka_unit_test(x86),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
