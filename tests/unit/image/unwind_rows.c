/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwind tables of files: of this machine's, and of some made by hand with each instruction. */
#include <dlfcn.h>
#include <dwarf.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cmocka.h>

#include "unwind_rows.h"
#include "unwind.h"

/* ---- files of this machine ------------------------------------------------------------------- */

static struct unwind_table *table_of(const char *path)
{
	struct base_err err = { 0 };
	struct unwind_table *t;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	if (image_rows_read(fd, path, &t, &err) < 0)
		fail_msg("%s", err.text);
	close(fd);
	return t;
}

static size_t count(const struct unwind_table *t, uint8_t how)
{
	size_t nr = 0;

	for (uint32_t i = 0; i < t->nr_rows; i++)
		nr += t->rules[t->rows[i].rule].how == how;
	return nr;
}

static Elf64_Ehdr head_of(const char *path)
{
	Elf64_Ehdr head;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_int_equal(read(fd, &head, sizeof(head)), sizeof(head));
	close(fd);
	return head;
}

static void expect_entry(const struct unwind_rule *r)
{
	assert_int_equal(r->how, UNWIND_CFA);
	assert_int_equal(r->base, UNWIND_SP);
	assert_int_equal(r->fp_at, UNWIND_AT_SAME);
#if defined(__x86_64__)
	assert_int_equal(r->off, 8);
	assert_int_equal(r->returns, 0);
#else
	assert_int_equal(r->off, 0);
	assert_int_equal(r->returns, UNWIND_RETURNS_LINK);
#endif
}

static void libc(void **state)
{
	struct unwind_table *t;
	Dl_info info;

	(void)state;
	assert_true(dladdr((void *)(uintptr_t)l64a, &info)); /* no sanitizer has its own */
	t = table_of(info.dli_fname);
	assert_true(t->nr_rows > 5000);
	assert_true(count(t, UNWIND_END) >= 1); /* where threads begin */
	/* In libc the offset of code is its address: the linker leaves no gap before it. */
	expect_entry(unwind_find(t, (uintptr_t)info.dli_saddr - (uintptr_t)info.dli_fbase));
#if defined(__x86_64__)
	assert_int_equal(count(t, UNWIND_SIGNAL_X86), 1);
	assert_int_equal(count(t, UNWIND_PLT), 1);
#endif
	unwind_free(t);
}

static void static_program(void **state)
{
	Elf64_Ehdr head = head_of(FIXTURES "/rows_static");
	struct unwind_table *t = table_of(FIXTURES "/rows_static");

	(void)state;
	assert_true(count(t, UNWIND_END) >= 1);
	/* glibc says so from the second instruction on, on aarch64. */
	assert_int_equal(unwind_find(t, head.e_entry % 0x400000 + 8)->how, UNWIND_END);
	unwind_free(t);
}

/* Entries with a personality routine and tables of handlers. */
static void with_exceptions(void **state)
{
	struct unwind_table *t = table_of(FIXTURES "/rows_exceptions.so");

	(void)state;
	assert_true(count(t, UNWIND_CFA) >= 4);
	unwind_free(t);
}

#if defined(__x86_64__)
/* Assembly without a word about its frames: a function, one that only jumps on, and bytes that no
 * symbol calls a function. */
__asm__(".text\n"
	".type unsaid, @function\n"
	"unsaid: push %rbx\n"
	"	sub $32, %rsp\n"
	"	call unsaid_jumps\n"
	"	add $32, %rsp\n"
	"	pop %rbx\n"
	"	ret\n"
	".size unsaid, . - unsaid\n"
	".type unsaid_jumps, @function\n"
	"unsaid_jumps: push %rbx\n"
	"	pop %rbx\n"
	"	jmp *%rax\n"
	".size unsaid_jumps, . - unsaid_jumps\n"
	"unsaid_bytes: push %rbx\n"
	"	pop %rbx\n"
	"	ret\n");
extern const uint8_t unsaid[], unsaid_jumps[], unsaid_bytes[];

static int offset_in(struct dl_phdr_info *info, size_t size, void *ctx)
{
	uint64_t *addr = ctx, vaddr = *addr - info->dlpi_addr;

	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && vaddr - ph->p_vaddr < ph->p_filesz)
			*addr = vaddr - ph->p_vaddr + ph->p_offset;
	}
	return 1; /* the program is the first */
}

static int32_t height_at(const struct unwind_table *t, const uint8_t *code)
{
	uint64_t at = (uint64_t)code;
	const struct unwind_rule *rule;

	dl_iterate_phdr(offset_in, &at);
	rule = unwind_find(t, at);
	return rule->how == UNWIND_CFA && rule->base == UNWIND_SP ? rule->off : -1;
}

static void routines_without_frames(void **state)
{
	struct unwind_table *t = table_of("/proc/self/exe");

	(void)state;
	assert_int_equal(height_at(t, unsaid), 8);
	assert_int_equal(height_at(t, unsaid + 1), 16);
	assert_int_equal(height_at(t, unsaid + 5), 48);
	assert_int_equal(height_at(t, unsaid_jumps), 8);
	assert_int_equal(height_at(t, unsaid_jumps + 1), 16);
	assert_int_equal(height_at(t, unsaid_jumps + 2), 8);
	assert_int_equal(height_at(t, unsaid_bytes), -1);
	assert_int_equal(height_at(t, unsaid_bytes + 1), -1);
	unwind_free(t);
}
#endif

static void vdso(void **state)
{
	const Elf64_Ehdr *bytes = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);
	size_t len = bytes ? bytes->e_shoff + (size_t)bytes->e_shnum * bytes->e_shentsize : 0;
	struct base_err err = { 0 };
	struct unwind_table *t;

	(void)state;
	if (!bytes)
		return; /* an emulator has none */
	assert_int_equal(image_rows_of_bytes(bytes, len, "[vdso]", &t, &err), 0);
	assert_true(count(t, UNWIND_CFA) >= 1);
	unwind_free(t);
}

/* ---- files made by hand ---------------------------------------------------------------------- */

enum {
	ROOM = 1 << 12,
	VADDR = 0x100000, /* of offset 0 */
	CODE = 0x2000,	  /* offset of code that is longer than the file */
	CODE_LEN = 0x100,
	MAX_SEGMENTS = 65,
};

static const char names[] = "\0.eh_frame\0.shstrtab";

struct file {
	Elf64_Ehdr head;
	Elf64_Phdr segments[MAX_SEGMENTS];
	Elf64_Shdr sections[3];
	char names[32];
	uint8_t frames[ROOM];
	size_t used; /* of frames */
	uint8_t code[64];
};

static void begin(struct file *f, uint16_t machine)
{
	*f = (struct file){ .head = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
						   ELFDATA2LSB, EV_CURRENT },
				      .e_type = ET_DYN,
				      .e_machine = machine,
				      .e_version = EV_CURRENT,
				      .e_phoff = offsetof(struct file, segments),
				      .e_phentsize = sizeof(f->segments[0]),
				      .e_phnum = 1,
				      .e_shoff = offsetof(struct file, sections),
				      .e_ehsize = sizeof(f->head),
				      .e_shentsize = sizeof(f->sections[0]),
				      .e_shnum = 3,
				      .e_shstrndx = 2 } };
	memcpy(f->names, names, sizeof(names));
	f->segments[0] = (Elf64_Phdr){ .p_type = PT_LOAD,
				       .p_flags = PF_X | PF_R,
				       .p_vaddr = VADDR,
				       .p_filesz = 0x10000,
				       .p_memsz = 0x10000 };
	f->sections[1] = (Elf64_Shdr){ .sh_name = 1,
				       .sh_type = SHT_PROGBITS,
				       .sh_flags = SHF_ALLOC,
				       .sh_addr = VADDR + offsetof(struct file, frames),
				       .sh_offset = offsetof(struct file, frames) };
	f->sections[2] = (Elf64_Shdr){ .sh_name = 11,
				       .sh_type = SHT_STRTAB,
				       .sh_offset = offsetof(struct file, names),
				       .sh_size = sizeof(names) };
}

static void put(struct file *f, uint64_t value, size_t len)
{
	assert_true(f->used + len <= ROOM);
	for (size_t i = 0; i < len; i++)
		f->frames[f->used++] = (uint8_t)(value >> (8 * i));
	f->sections[1].sh_size = f->used;
}

static void put_bytes(struct file *f, const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		put(f, bytes[i], 1);
}

/* The common entry of x86-64: CFA = sp + 8, return address at CFA - 8. */
static const uint8_t as_called[] = { DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1 };

static size_t put_common(struct file *f, const char *letters, uint8_t return_reg,
			 const uint8_t *program, size_t len)
{
	size_t at = f->used;

	put(f, 4 + 1 + strlen(letters) + 1 + 3 + (*letters ? 2 : 0) + len, 4);
	put(f, 0, 4);
	put(f, 1, 1);
	put_bytes(f, (const uint8_t *)letters, strlen(letters) + 1);
	put(f, 1, 1);	 /* code factor */
	put(f, 0x78, 1); /* data factor: -8 */
	put(f, return_reg, 1);
	if (*letters) {
		put(f, 1, 1);
		put(f, DW_EH_PE_udata4, 1);
	}
	put_bytes(f, program, len);
	return at;
}

static void put_range(struct file *f, size_t common, bool augmented, uint64_t off,
		      uint64_t code_len, const uint8_t *program, size_t len)
{
	size_t word = augmented ? 4 : 8;

	put(f, 4 + 2 * word + (augmented ? 1 : 0) + len, 4);
	put(f, f->used - common, 4);
	put(f, VADDR + off, word);
	put(f, code_len, word);
	if (augmented)
		put(f, 0, 1);
	put_bytes(f, program, len);
}

static int read_file(const struct file *f, struct unwind_table **t, struct base_err *err)
{
	return image_rows_of_bytes(f, sizeof(*f), "made", t, err);
}

/* The table of code with this program, as called. */
static struct unwind_table *made(const uint8_t *program, size_t len)
{
	struct unwind_table *t;
	struct file f;
	size_t common;

	begin(&f, EM_X86_64);
	common = put_common(&f, "zR", 16, as_called, sizeof(as_called));
	put_range(&f, common, true, CODE, CODE_LEN, program, len);
	assert_int_equal(read_file(&f, &t, NULL), 0);
	return t;
}

#define MADE(...) made((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void expect(const struct unwind_table *t, uint64_t at, struct unwind_rule want)
{
	const struct unwind_rule *r = unwind_find(t, CODE + at);

	if (memcmp(r, &want, sizeof(want)) != 0)
		fail_msg("at %zu: how %u, base %u, fp %u %d, link %u %d, off %d, add %d, pc %u",
			 (size_t)at, r->how, r->base, r->fp_at, r->fp_words, r->link_at,
			 r->link_words, r->off, r->add, r->returns);
}

static struct unwind_rule sp(int off)
{
	return (struct unwind_rule){ .how = UNWIND_CFA, .base = UNWIND_SP, .off = off };
}

static void nothing_around_it(void **state)
{
	struct unwind_table *t = MADE(DW_CFA_nop);

	(void)state;
	expect(t, (uint64_t)-1, (struct unwind_rule){ 0 });
	expect(t, 0, sp(8));
	expect(t, CODE_LEN - 1, sp(8));
	expect(t, CODE_LEN, (struct unwind_rule){ 0 });
	assert_int_equal(t->nr_rows, 2);
	unwind_free(t);
}

/* A prologue with a frame pointer, and an epilogue. */
static void frame(void **state)
{
	struct unwind_rule pushed = sp(16), by_fp, link;
	struct unwind_table *t =
		MADE(DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 6, 2,
		     DW_CFA_advance_loc1, 3, DW_CFA_def_cfa_register, 6, DW_CFA_offset | 3, 3,
		     DW_CFA_advance_loc2, 4, 0, DW_CFA_remember_state, DW_CFA_restore | 6,
		     DW_CFA_restore_extended, 3, DW_CFA_def_cfa, 7, 8, DW_CFA_advance_loc4, 1, 0, 0,
		     0, DW_CFA_restore_state);

	(void)state;
	expect(t, 0, sp(8));
	pushed.fp_at = UNWIND_AT_CFA;
	pushed.fp_words = -2;
	expect(t, 1, pushed);
	by_fp = pushed;
	by_fp.base = UNWIND_FP;
	link = by_fp;
	link.link_at = UNWIND_AT_CFA;
	link.link_words = -3;
	expect(t, 4, link);
	expect(t, 7, link);
	expect(t, 8, sp(8));
	expect(t, 9, link);
	unwind_free(t);
}

static void other_forms(void **state)
{
	struct unwind_rule want = sp(24);
	struct unwind_table *t =
		MADE(DW_CFA_def_cfa_sf, 7, 0x7d, DW_CFA_offset_extended, 6, 2,
		     DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset_sf, 0x7c,
		     DW_CFA_offset_extended_sf, 6, 3, DW_CFA_advance_loc | 1, DW_CFA_same_value, 6,
		     0x2e, 0x10, 0x2f, 3, 2, DW_CFA_advance_loc | 1, DW_CFA_val_offset, 6, 1,
		     DW_CFA_restore | 3, DW_CFA_advance_loc | 1, DW_CFA_undefined, 6,
		     DW_CFA_val_expression, 3, 1, DW_OP_nop);

	(void)state;
	want.fp_at = UNWIND_AT_CFA;
	want.fp_words = -2;
	expect(t, 0, want);
	want.off = 32;
	want.fp_words = -3;
	expect(t, 1, want);
	want.fp_at = UNWIND_AT_SAME;
	want.fp_words = 0;
	want.link_at = UNWIND_AT_CFA;
	want.link_words = 2;
	expect(t, 2, want);
	want.fp_at = UNWIND_AT_LOST;
	want.link_at = UNWIND_AT_SAME;
	want.link_words = 0;
	expect(t, 3, want);
	want.link_at = UNWIND_AT_LOST;
	expect(t, 4, want);
	unwind_free(t);
}

/* As gcc writes them for a stack that is aligned anew, OpenSSL for its own, the linker for a PLT.
 */
static void expressions(void **state)
{
	struct unwind_rule want = { .how = UNWIND_DEREF,
				    .base = UNWIND_FP,
				    .off = -8,
				    .fp_at = UNWIND_AT_FP,
				    .link_at = UNWIND_AT_FP,
				    .link_words = -5 };
	struct unwind_table *t = MADE(
		DW_CFA_def_cfa_expression, 3, DW_OP_breg6, 0x78, DW_OP_deref, DW_CFA_expression, 6,
		2, DW_OP_breg6, 0, DW_CFA_expression, 3, 2, DW_OP_breg6, 0x58,
		DW_CFA_advance_loc | 1, DW_CFA_def_cfa_expression, 5, DW_OP_breg7, 40, DW_OP_deref,
		DW_OP_plus_uconst, 8, DW_CFA_restore | 6, DW_CFA_restore | 3,
		DW_CFA_advance_loc | 1, DW_CFA_def_cfa_expression, 11, DW_OP_breg7, 8, DW_OP_breg16,
		0, DW_OP_lit15, DW_OP_and, DW_OP_lit11, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus,
		DW_CFA_advance_loc | 1, DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 8, DW_OP_lit16,
		DW_OP_plus, DW_CFA_expression, 6, 2, DW_OP_breg7, 8, DW_CFA_advance_loc | 1,
		DW_CFA_def_cfa_expression, 3, DW_OP_breg7, 8, DW_OP_mul);

	(void)state;
	expect(t, 0, want);
	expect(t, 1,
	       (struct unwind_rule){ .how = UNWIND_DEREF, .base = UNWIND_SP, .off = 40, .add = 8 });
	expect(t, 2,
	       (struct unwind_rule){ .how = UNWIND_PLT, .base = UNWIND_SP, .off = 8, .add = 11 });
	want = sp(24);
	want.fp_at = UNWIND_AT_CFA;
	want.fp_words = -2;
	expect(t, 3, want);
	expect(t, 4, (struct unwind_rule){ 0 });
	unwind_free(t);
}

static void return_addresses(void **state)
{
	struct unwind_rule in_rdi = sp(0);
	struct unwind_table *t =
		MADE(DW_CFA_def_cfa_offset, 0, DW_CFA_register, 16, 5, DW_CFA_advance_loc | 1,
		     DW_CFA_undefined, 16, DW_CFA_advance_loc | 1, DW_CFA_offset | 16, 2,
		     DW_CFA_advance_loc | 1, DW_CFA_restore | 16, DW_CFA_register, 7, 8);

	(void)state;
	in_rdi.returns = 6;
	expect(t, 0, in_rdi);
	expect(t, 1, (struct unwind_rule){ .how = UNWIND_END });
	expect(t, 2, (struct unwind_rule){ 0 }); /* elsewhere */
	expect(t, 3,
	       (struct unwind_rule){ 0 }); /* the stack pointer of the caller is not the CFA */
	unwind_free(t);
}

/* Nothing is known behind what makes no sense, and of rows that are too large for a rule. */
static void damaged_programs(void **state)
{
	static const uint8_t bad[][6] = {
		{ DW_CFA_advance_loc | 1, 0x3f },
		{ DW_CFA_advance_loc | 1, DW_CFA_restore_state },
		{ DW_CFA_advance_loc | 1, DW_CFA_set_loc, 0, 0, 0, 0 },
		{ DW_CFA_advance_loc | 1, DW_CFA_def_cfa_expression, 100 },
		{ DW_CFA_advance_loc | 1, DW_CFA_def_cfa_register, 16 },
		{ DW_CFA_advance_loc | 1, 0x2d },
		{ DW_CFA_advance_loc | 1, DW_CFA_def_cfa, 7, 0x80, 0x80, 0x80 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct unwind_table *t = made(bad[i], sizeof(bad[i]));

		expect(t, 0, sp(8));
		expect(t, 1, (struct unwind_rule){ 0 });
		expect(t, CODE_LEN - 1, (struct unwind_rule){ 0 });
		unwind_free(t);
	}
}

static void overlapping_ranges(void **state)
{
	static const uint8_t larger[] = { DW_CFA_def_cfa_offset, 32 };
	struct unwind_table *t;
	struct file f;
	size_t common;

	(void)state;
	begin(&f, EM_X86_64);
	common = put_common(&f, "zR", 16, as_called, sizeof(as_called));
	put_range(&f, common, true, CODE + 0x80, 0x20, larger, sizeof(larger));
	put_range(&f, common, true, CODE, CODE_LEN, NULL, 0);
	put_range(&f, common, true, 0x20000, CODE_LEN, NULL, 0); /* in no segment */
	put_range(&f, common, true, 0xfff0, CODE_LEN, NULL, 0);	 /* to the end of the segment */
	assert_int_equal(read_file(&f, &t, NULL), 0);
	expect(t, 0x7f, sp(8));
	expect(t, 0x80, sp(32));
	expect(t, 0xa0, (struct unwind_rule){ 0 });
	expect(t, 0xffff - CODE, sp(8));
	expect(t, 0x10000 - CODE, (struct unwind_rule){ 0 });
	unwind_free(t);
}

static void without_augmentation(void **state)
{
	struct unwind_table *t;
	struct file f;
	size_t common;

	(void)state;
	begin(&f, EM_X86_64);
	common = put_common(&f, "", 16, as_called, sizeof(as_called));
	put_range(&f, common, false, CODE, CODE_LEN, NULL, 0);
	assert_int_equal(read_file(&f, &t, NULL), 0);
	expect(t, 0, sp(8));
	unwind_free(t);
}

/* ---- signals and entry points ---------------------------------------------------------------- */

static void marked_signal_frames(void **state)
{
	static const uint8_t by_context[] = {
		DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 0xa0, 1, DW_OP_deref
	};
	struct unwind_table *t;
	struct file f;

	(void)state;
	for (size_t known = 0; known < 2; known++) {
		size_t common;

		begin(&f, EM_X86_64);
		common = put_common(&f, "zRS", 16, as_called, sizeof(as_called));
		put_range(&f, common, true, CODE, CODE_LEN, by_context,
			  known ? sizeof(by_context) : 0);
		assert_int_equal(read_file(&f, &t, NULL), 0);
		expect(t, 0,
		       (struct unwind_rule){ .how = known ? UNWIND_SIGNAL_X86 : UNWIND_NONE });
		unwind_free(t);
	}
}

/* Without rows: as in the C library musl, and in aarch64's vdso. */
static void signal_frames_by_their_code(void **state)
{
	static const struct {
		uint16_t machine;
		uint8_t how, before, len, align;
		uint8_t code[16];
	} kinds[] = {
		{ EM_X86_64,
		  UNWIND_SIGNAL_X86,
		  0x90,
		  9,
		  1,
		  { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 15, 5 } },
		{ EM_X86_64, UNWIND_SIGNAL_X86, 0xcc, 7, 1, { 0xb8, 15, 0, 0, 0, 15, 5 } },
		{ EM_X86_64, UNWIND_NONE, 0xc3, 7, 1, { 0xb8, 15, 0, 0, 0, 15, 5 } },
		{ EM_AARCH64,
		  UNWIND_SIGNAL_AARCH64,
		  0xd5,
		  8,
		  4,
		  { 0x68, 0x11, 0x80, 0xd2, 1, 0, 0, 0xd4 } },
	};
	const size_t at = (offsetof(struct file, code) + 16) & ~(size_t)15;

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct unwind_table *t;
		struct file f;

		begin(&f, kinds[i].machine);
		((uint8_t *)&f)[at - 1] = kinds[i].before;
		memcpy((uint8_t *)&f + at, kinds[i].code, kinds[i].len);
		assert_int_equal(read_file(&f, &t, NULL), 0);
		assert_int_equal(unwind_find(t, at - kinds[i].align - 1)->how, UNWIND_NONE);
		assert_int_equal(unwind_find(t, at - 1)->how, kinds[i].how);
		assert_int_equal(unwind_find(t, at + kinds[i].len - 1)->how, kinds[i].how);
		assert_int_equal(unwind_find(t, at + kinds[i].len)->how, UNWIND_NONE);
		unwind_free(t);
	}
}

static void entry_point_without_rows(void **state)
{
	struct unwind_table *t;
	struct file f;
	size_t common;

	(void)state;
	begin(&f, EM_X86_64);
	f.head.e_entry = VADDR + CODE - 0x20;
	common = put_common(&f, "zR", 16, as_called, sizeof(as_called));
	put_range(&f, common, true, CODE, CODE_LEN, NULL, 0);
	assert_int_equal(read_file(&f, &t, NULL), 0);
	expect(t, (uint64_t)-0x21, (struct unwind_rule){ 0 });
	expect(t, (uint64_t)-0x20, (struct unwind_rule){ .how = UNWIND_END });
	expect(t, (uint64_t)-1, (struct unwind_rule){ .how = UNWIND_END });
	expect(t, 0, sp(8));
	unwind_free(t);
}

/* ---- aarch64 --------------------------------------------------------------------------------- */

static void aarch64(void **state)
{
	static const uint8_t at_entry[] = { DW_CFA_def_cfa, 31, 0 };
	static const uint8_t program[] = { DW_CFA_advance_loc | 4,
					   0x2d, /* the return address is signed */
					   DW_CFA_advance_loc | 4,
					   DW_CFA_def_cfa_offset,
					   0x30,
					   DW_CFA_offset | 29,
					   6,
					   DW_CFA_offset | 30,
					   5,
					   DW_CFA_advance_loc | 4,
					   DW_CFA_def_cfa_register,
					   29,
					   DW_CFA_advance_loc | 4,
					   DW_CFA_undefined,
					   30 };
	struct unwind_rule want = sp(0);
	struct unwind_table *t;
	struct file f;
	size_t common;

	(void)state;
	begin(&f, EM_AARCH64);
	common = put_common(&f, "zR", 30, at_entry, sizeof(at_entry));
	put_range(&f, common, true, CODE, CODE_LEN, program, sizeof(program));
	assert_int_equal(read_file(&f, &t, NULL), 0);
	want.returns = UNWIND_RETURNS_LINK;
	expect(t, 0, want);
	expect(t, 4, want);
	want.off = 0x30;
	want.fp_at = want.link_at = UNWIND_AT_CFA;
	want.fp_words = -6;
	want.link_words = -5;
	expect(t, 8, want);
	want.base = UNWIND_FP;
	expect(t, 12, want);
	expect(t, 16, (struct unwind_rule){ .how = UNWIND_END });
	unwind_free(t);
}

/* ---- refused --------------------------------------------------------------------------------- */

static void refused(void **state)
{
	struct unwind_table *t;
	struct file f;

	(void)state;
	begin(&f, EM_RISCV);
	assert_int_equal(read_file(&f, &t, NULL), -DCPI_EUNSUPPORTED);
	begin(&f, EM_X86_64);
	f.head.e_phoff = sizeof(f);
	assert_int_equal(read_file(&f, &t, NULL), -DCPI_ETRUNCATED);
	assert_int_equal(image_rows_of_bytes("no file", 7, "text", &t, NULL), -DCPI_EFORMAT);
	assert_null(t);
}

static void too_many_segments(void **state)
{
	struct base_err err = { 0 };
	struct unwind_table *t;
	struct file f;

	(void)state;
	begin(&f, EM_X86_64);
	for (size_t i = 1; i < MAX_SEGMENTS; i++)
		f.segments[i] = f.segments[0];
	f.head.e_phnum = MAX_SEGMENTS;
	assert_int_equal(read_file(&f, &t, &err), -DCPI_ELIMIT);
	assert_string_equal(err.text,
			    "cannot make unwind rows of 'made': too many executable segments");
}

/* A long program of a common entry, which is run for each of many ranges. */
static void too_many_steps(void **state)
{
	enum { LEN = 1 << 20, NR = 33 };
	uint8_t *whole = calloc(1, sizeof(struct file) + ROOM + LEN);
	struct base_err err = { 0 };
	struct unwind_table *t;
	uint32_t common_len;
	struct file f;
	size_t head;

	(void)state;
	begin(&f, EM_X86_64);
	put_common(&f, "zR", 16, as_called, sizeof(as_called));
	head = f.used;
	common_len = (uint32_t)(head - 4 + LEN);
	memcpy(f.frames, &common_len, sizeof(common_len));
	for (size_t i = 0; i < NR; i++)
		put_range(&f, (size_t)0 - LEN, true, CODE + i * CODE_LEN, CODE_LEN, NULL, 0);
	f.sections[1].sh_offset = sizeof(f);
	f.sections[1].sh_size = f.used + LEN;
	memcpy(whole, &f, sizeof(f));
	memcpy(whole + sizeof(f), f.frames, head);
	memcpy(whole + sizeof(f) + head + LEN, f.frames + head, f.used - head);
	assert_int_equal(image_rows_of_bytes(whole, sizeof(f) + LEN + ROOM, "made", &t, &err),
			 -DCPI_ELIMIT);
	assert_string_equal(
		err.text,
		"cannot make unwind rows of 'made': too many steps of programs in .eh_frame");
	free(whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(libc),
		cmocka_unit_test(static_program),
		cmocka_unit_test(with_exceptions),
#if defined(__x86_64__)
		cmocka_unit_test(routines_without_frames),
#endif
		cmocka_unit_test(vdso),
		cmocka_unit_test(nothing_around_it),
		cmocka_unit_test(frame),
		cmocka_unit_test(other_forms),
		cmocka_unit_test(expressions),
		cmocka_unit_test(return_addresses),
		cmocka_unit_test(damaged_programs),
		cmocka_unit_test(overlapping_ranges),
		cmocka_unit_test(without_augmentation),
		cmocka_unit_test(marked_signal_frames),
		cmocka_unit_test(signal_frames_by_their_code),
		cmocka_unit_test(entry_point_without_rows),
		cmocka_unit_test(aarch64),
		cmocka_unit_test(refused),
		cmocka_unit_test(too_many_segments),
		cmocka_unit_test(too_many_steps),
	};

	return cmocka_run_group_tests_name("image/unwind_rows", tests, NULL, NULL);
}
