/* SPDX-License-Identifier: BSD-2-Clause */
/* A routine's hashes: of what it is, not of where it stands, nor (the second) of what moving
 * changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <cmocka.h>

#include "image.h"
#include "pseudoimg_internal.h"

/* ---- operands -------------------------------------------------------------------------------- */

struct masking {
	const char *what;
	uint32_t machine;
	const char *code, *masked; /* hex */
};

static size_t unhex(const char *hex, uint8_t *out)
{
	size_t n = 0;

	for (; hex[2 * n]; n++) {
		char digits[3] = { hex[2 * n], hex[2 * n + 1] };

		out[n] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return n;
}

static const struct masking maskings[] = {
	{ "call out", EM_X86_64, "90e811223344c3", "90e800000000c3" },
	{ "call of itself", EM_X86_64, "90e8fafffffFc3", "90e8fafffffFc3" },
	{ "jcc out, then back", EM_X86_64,
	  "0f8400010000"
	  "75f8c3",
	  "0f8400000000"
	  "75f8c3" },
	{ "short jump out", EM_X86_64, "eb7fc3", "eb00c3" },
	{ "mov rax, [rip+out]", EM_X86_64, "488b0511111100c3", "488b0500000000c3" },
	{ "mov rax, [rip+1]: its own", EM_X86_64, "488b0501000000c390", "488b0501000000c390" },
	{ "cmp dword [rip+out], imm8", EM_X86_64, "833d4433221107c3", "833d0000000007c3" },
	{ "cmp dword [rip+out], imm32", EM_X86_64, "813d4433221101020304c3",
	  "813d0000000001020304c3" },
	{ "mov rdi, imm64", EM_X86_64, "48bf8877665544332211c3", "48bf0000000000000000c3" },
	{ "mov edi, imm32", EM_X86_64, "bf44332211c3", "bf44332211c3" },
	{ "mov al, [moffs]", EM_X86_64, "a08877665544332211c3", "a00000000000000000c3" },
	{ "mov ax, imm16; call", EM_X86_64, "66b83412e811223344c3", "66b83412e800000000c3" },
	{ "mov [rsp+disp32], imm32; call", EM_X86_64,
	  "c784240001000001020304"
	  "e811223344c3",
	  "c784240001000001020304"
	  "e800000000c3" },
	{ "test of group 3; call", EM_X86_64,
	  "f605112233440a"
	  "f7d8"
	  "e811223344c3",
	  "f605000000000a"
	  "f7d8"
	  "e800000000c3" },
	{ "vmovaps ymm, [rip+out]; call", EM_X86_64,
	  "c5fc280511223344"
	  "e811223344c3",
	  "c5fc280500000000"
	  "e800000000c3" },
	{ "vpalignr (c4, map 3) imm8; call", EM_X86_64,
	  "c4e3710fc204"
	  "e811223344c3",
	  "c4e3710fc204"
	  "e800000000c3" },
	{ "evex with disp8; call", EM_X86_64,
	  "62f17c48284801"
	  "e811223344c3",
	  "62f17c48284801"
	  "e800000000c3" },
	{ "pshufb (0f 38), palignr (0f 3a); call", EM_X86_64,
	  "660f3800c1"
	  "660f3a0fc104"
	  "e811223344c3",
	  "660f3800c1"
	  "660f3a0fc104"
	  "e800000000c3" },
	/* The immediates would be a call out, were they taken for opcodes. */
	{ "shufps imm8", EM_X86_64, "0fc6c1e89090909090c3", "0fc6c1e89090909090c3" },
	{ "cmpps imm8", EM_X86_64, "0fc2c1e89090909090c3", "0fc2c1e89090909090c3" },
	{ "pinsrw imm8", EM_X86_64, "0fc4c1e89090909090c3", "0fc4c1e89090909090c3" },
	{ "pextrw imm8", EM_X86_64, "0fc5c1e89090909090c3", "0fc5c1e89090909090c3" },
	{ "pshufw imm8", EM_X86_64, "0f70c1e89090909090c3", "0f70c1e89090909090c3" },
	{ "enter; call", EM_X86_64,
	  "c8100000"
	  "e811223344c3",
	  "c8100000"
	  "e800000000c3" },
	{ "no instruction: the rest stays", EM_X86_64, "06e811223344c3", "06e811223344c3" },
	{ "cut short", EM_X86_64, "90e81122", "90e81122" },
	{ "bl out", EM_AARCH64, "00010094c0035fd6", "00000094c0035fd6" },
	{ "b within", EM_AARCH64, "01000014c0035fd6", "01000014c0035fd6" },
	{ "adrp, add", EM_AARCH64,
	  "20000090"
	  "00400091"
	  "c0035fd6",
	  "00000090"
	  "00000091"
	  "c0035fd6" },
	{ "adrp, ldr of another register", EM_AARCH64,
	  "20000090"
	  "410440f9",
	  "00000090"
	  "410440f9" },
	{ "ldr of a literal out", EM_AARCH64,
	  "e00f0058"
	  "c0035fd6",
	  "00000058"
	  "c0035fd6" },
	{ "a number in four pieces", EM_AARCH64,
	  "800082d2"
	  "2000a2f2"
	  "4000c2f2"
	  "6000e0f2",
	  "000080d2"
	  "0000a0f2"
	  "0000c0f2"
	  "0000e0f2" },
	{ "a number in two: no address", EM_AARCH64,
	  "800082d2"
	  "2000a2f2",
	  "800082d2"
	  "2000a2f2" },
	{ "riscv64: as it is", EM_RISCV, "97000000e7800000", "97000000e7800000" },
};

static void test_masks(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(maskings) / sizeof(maskings[0]); i++) {
		const struct masking *m = &maskings[i];
		uint8_t code[64], want[64];
		size_t len = unhex(m->code, code);
		bool differs = strcasecmp(m->code, m->masked) != 0;

		assert_int_equal(unhex(m->masked, want), len);
		if (pseudoimg_mask(m->machine, code, len) != differs ||
		    memcmp(code, want, len) != 0)
			fail_msg("%s", m->what);
	}
}

/* ---- hashes in images ------------------------------------------------------------------------ */

struct variant {
	uint32_t machine;
	const char *name, *file, *code; /* hex */
	uint64_t addr;
	uint32_t line, call_line, inline_len;
	uint16_t column, discriminator;
	const char *inlined;
	bool crowd; /* others stand before and behind it, in descending order of offsets */
};

static const struct variant plain = { .machine = EM_X86_64,
				      .name = "r",
				      .file = "/a",
				      .code = "90e811223344c3",
				      .addr = 0x5000,
				      .line = 7,
				      .call_line = 3,
				      .inline_len = 2,
				      .inlined = "in" };

static void put_other(struct base_buf *job, uint64_t addr, const char *name)
{
	static const uint8_t code[] = { 0xc3 };

	job_routine(job, &(struct job_routine){
				 .addr = addr, .name = name, .code = code, .code_len = 1 });
}

static void hashes_of(const struct variant *v, struct pseudoimg_hashes *out)
{
	const struct job_image head = {
		.machine = v->machine, .facility = "j", .host = "h", .exe = "x"
	};
	const struct wire_line lines[] = {
		{ .line = v->line, .column = v->column, .discriminator = v->discriminator }
	};
	const struct wire_inline in = {
		.code_off = 1, .code_len = v->inline_len, .name = 1, .call_line = v->call_line
	};
	const char *const files[] = { v->file, v->inlined, NULL };
	struct base_buf job = { 0 };
	uint8_t code[64];
	struct image img;
	const Elf64_Sym *symbols, *sym;
	size_t len = unhex(v->code, code);

	job_image(&job, &head);
	job_run(&job, v->addr & ~UINT64_C(0xfff), 0x1000, 0x1000);
	if (v->crowd) {
		job_run(&job, 0x1000, 0x8000, 0x1000);
		job_run(&job, 0x90000, 0, 0x1000);
		put_other(&job, 0x1000, "before");
		put_other(&job, 0x90000, "behind");
	}
	job_routine(&job, &(struct job_routine){ .addr = v->addr,
						 .name = v->name,
						 .code = code,
						 .code_len = len,
						 .lines = lines,
						 .nr_lines = 1,
						 .inlines = &in,
						 .nr_inlines = v->inlined ? 1 : 0,
						 .files = files });
	image_write(&img, &job);
	assert_int_equal(img.status, 0);
	assert_int_equal(img.result.nr_bad, 0);
	symbols = image_bytes(&img, image_section(&img, ".symtab"));
	sym = image_symbol(&img, v->name);
	assert_non_null(sym);
	memcpy(out,
	       (const struct pseudoimg_hashes *)image_bytes(
		       &img, image_section(&img, PSEUDOIMG_HASH_SECTION)) +
		       (sym - symbols - 1),
	       sizeof(*out));
	assert_int_equal(image_section(&img, PSEUDOIMG_HASH_SECTION)->sh_size,
			 image_nr_symbols(&img) * sizeof(*out));
	image_release(&img);
	base_buf_release(&job);
}

/* Whether both hashes agree with those of the plain one, after a change of a copy of it. */
#define ASSERT_HASHES(exact_same, masked_same, change)                                             \
	do {                                                                                       \
		struct variant v = plain;                                                          \
		struct pseudoimg_hashes a, b;                                                      \
		hashes_of(&v, &a);                                                                 \
		change;                                                                            \
		hashes_of(&v, &b);                                                                 \
		assert_int_equal(!memcmp(a.exact, b.exact, 20), exact_same);                       \
		assert_int_equal(!memcmp(a.masked, b.masked, 20), masked_same);                    \
	} while (0)

static void test_what_counts(void **state)
{
	(void)state;
	ASSERT_HASHES(true, true, v.addr = 0x7f0000005010);
	ASSERT_HASHES(true, true, v.crowd = true);
	ASSERT_HASHES(false, true, v.code = "90e855667788c3");
	ASSERT_HASHES(false, false, v.code = "f8e811223344c3");
	ASSERT_HASHES(false, false, v.name = "s");
	ASSERT_HASHES(false, false, v.file = "/b");
	ASSERT_HASHES(false, false, v.line = 8);
	ASSERT_HASHES(false, false, v.column = 1);
	ASSERT_HASHES(false, false, v.discriminator = 1);
	ASSERT_HASHES(false, false, v.inlined = "other");
	ASSERT_HASHES(false, false, v.inlined = NULL);
	ASSERT_HASHES(false, false, v.call_line = 4);
	ASSERT_HASHES(false, false, v.inline_len = 3);
	ASSERT_HASHES(true, false, v.machine = EM_AARCH64);
}

/* riscv64 code has an image as any other has. */
static void test_riscv64(void **state)
{
	struct variant v = plain;
	struct pseudoimg_hashes h;

	(void)state;
	v.machine = EM_RISCV;
	v.code = "130101ff23341100ef00000083308100130101016780000000";
	hashes_of(&v, &h);
	assert_memory_equal(h.exact, h.masked, 20);
}

/* ---- jobs in files --------------------------------------------------------------------------- */

/* In the order of addresses, backwards, and anyhow, with records longer than a trace. */
static void make_job(struct base_buf *job, size_t nr, size_t step)
{
	static const char *const files[] = { "/a", "/b", "in", NULL };
	static uint8_t code[300 << 10];

	job_image(job,
		  &(struct job_image){ .machine = 62, .facility = "j", .host = "h", .exe = "x" });
	job_run(job, 0x100000, 0, nr * sizeof(code));
	for (size_t i = 0; i < nr; i++) {
		size_t at = i * step % nr;
		const struct wire_line lines[] = { { .line = 1 + (uint32_t)at },
						   { .code_off = 2, .line = 5, .file = at % 2 } };
		const struct wire_inline in = {
			.code_off = 1, .code_len = 2, .name = 2, .call_line = 9
		};
		char name[32];

		snprintf(name, sizeof(name), "routine %zu", at);
		memset(code, (int)at, 64);
		job_routine(job,
			    &(struct job_routine){ .addr = 0x100000 + at * sizeof(code),
						   .name = name,
						   .code = code,
						   .code_len = at % 50 == 3 ? sizeof(code) : 40,
						   .lines = lines,
						   .nr_lines = 2,
						   .inlines = &in,
						   .nr_inlines = at % 3 == 0,
						   .files = files });
	}
}

static void test_files_as_memory(void **state)
{
	static const size_t steps[] = { 1, 210, 13 };

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct image memory, file = { 0 };
		struct base_buf job = { 0 };
		int in = image_fd(), out = image_fd();

		make_job(&job, 211, steps[i]);
		image_write(&memory, &job);
		assert_int_equal(memory.status, 0);
		assert_int_equal(base_write_all(in, job.data, job.len), 0);
		assert_int_equal(pseudoimg_write_file(in, out, &file.result, &file.err), 0);
		image_read(&file, out);
		assert_int_equal(memory.file.len, file.file.len);
		assert_memory_equal(memory.file.data, file.file.data, file.file.len);
		assert_memory_equal(&memory.result, &file.result, sizeof(file.result));
		image_release(&memory);
		image_release(&file);
		base_buf_release(&job);
		close(in);
		close(out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_masks),
		cmocka_unit_test(test_what_counts),
		cmocka_unit_test(test_riscv64),
		cmocka_unit_test(test_files_as_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
