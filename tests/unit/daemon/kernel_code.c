/* SPDX-License-Identifier: BSD-2-Clause */
/* Code with its bytes: BPF programs as bpf(2) dumps them, the kernel's routines as its memory holds
 * them, and the files they become. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_kernel.h"
#include "fake_registry.h"
#include "kernel_kept.h"

#define AT UINT64_C(0xffffffffc0201000)
#define S  UINT64_C(1000000000)

/* Code of this machine, which alone can be read. */
#if defined(__aarch64__)
static const uint8_t nop[] = { 0x1f, 0x20, 0x03, 0xd5 }, ret[] = { 0xc0, 0x03, 0x5f, 0xd6 };
enum { CALL_LEN = 4 };

static void put_call(uint8_t *to, int64_t distance)
{
	uint32_t insn = 0x94000000u | ((uint32_t)(distance >> 2) & 0x3ffffffu);

	memcpy(to, &insn, sizeof(insn));
}
#else
static const uint8_t nop[] = { 0x90 }, ret[] = { 0xc3 };
enum { CALL_LEN = 5 };

static void put_call(uint8_t *to, int64_t distance)
{
	int32_t rest = (int32_t)(distance - CALL_LEN);

	to[0] = 0xe8;
	memcpy(to + 1, &rest, sizeof(rest));
}
#endif

static void put_nops(uint8_t *to, size_t len)
{
	for (size_t i = 0; i < len; i += sizeof(nop))
		memcpy(to + i, nop, sizeof(nop));
}

/* ---- a kernel with programs ------------------------------------------------------------------ */

enum { FUNCS = 2, LEN = 16, BTF = 900 };

struct program {
	uint32_t id;
	uint8_t tag;   /* eight times */
	uint64_t addr; /* of function 0; function 1 lies 0x100 behind */
	uint32_t nr_funcs;
	bool lines;
	uint8_t code[FUNCS * LEN];
};

static struct {
	struct program v[8];
	size_t nr;
	uint32_t fd_id[256];
	unsigned int nr_calls;
	long refuse; /* -errno for everything */
	bool lies;   /* the second answer is about more than the first was */
} bpf;

static const struct program *program_find(uint32_t id)
{
	for (size_t i = 0; i < bpf.nr; i++)
		if (bpf.v[i].id == id)
			return &bpf.v[i];
	return NULL;
}

static long next_id(union bpf_attr *a)
{
	uint32_t best = UINT32_MAX;

	for (size_t i = 0; i < bpf.nr; i++)
		if (bpf.v[i].id > a->start_id && bpf.v[i].id < best)
			best = bpf.v[i].id;
	if (best == UINT32_MAX)
		return -ENOENT;
	a->next_id = best;
	return 0;
}

static long open_id(uint32_t id)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_in_range(fd, 0, 255);
	bpf.fd_id[fd] = id;
	return fd;
}

/* "x.c", "y.c" and "x" at 1, 5 and 9. */
static long btf_info(struct bpf_btf_info *info)
{
	static const char strings[] = "\0x.c\0y.c\0x";
	struct btf_header h = {
		.magic = BTF_MAGIC, .version = 1, .hdr_len = sizeof(h), .str_len = sizeof(strings)
	};

	if (info->btf) {
		memcpy((void *)(uintptr_t)info->btf, &h, sizeof(h));
		memcpy((char *)(uintptr_t)info->btf + sizeof(h), strings, sizeof(strings));
	}
	info->btf_size = sizeof(h) + sizeof(strings);
	return 0;
}

static void lines_of(const struct program *p, struct bpf_prog_info *info)
{
	const struct bpf_line_info lines[] = {
		{ .file_name_off = 1, .line_col = 10 << 10 | 3 },
		{ .file_name_off = 1, .line_col = 11 << 10 | 3 },
		{ .file_name_off = 9, .line_col = 12 << 10 | 3 },
		{ .file_name_off = 5, .line_col = 20 << 10 | 3 },
		{ .file_name_off = 99, .line_col = 21 << 10 | 3 }, /* no such string */
	};
	const uint64_t addrs[] = { p->addr, p->addr + 4, p->addr + 8, p->addr + 0x100,
				   p->addr + 0x104 };

	if (info->line_info)
		memcpy((void *)(uintptr_t)info->line_info, lines, sizeof(lines));
	if (info->jited_line_info)
		memcpy((void *)(uintptr_t)info->jited_line_info, addrs, sizeof(addrs));
	info->btf_id = BTF;
	info->nr_line_info = info->nr_jited_line_info = 5;
	info->line_info_rec_size = sizeof(lines[0]);
	info->jited_line_info_rec_size = sizeof(addrs[0]);
}

static long program_info(const struct program *p, struct bpf_prog_info *info)
{
	bool second = info->jited_prog_insns;

	memset(info->tag, p->tag, sizeof(info->tag));
	for (uint32_t i = 0; second && i < p->nr_funcs; i++) {
		((uint64_t *)(uintptr_t)info->jited_ksyms)[i] = p->addr + i * 0x100;
		((uint32_t *)(uintptr_t)info->jited_func_lens)[i] = LEN;
	}
	if (second)
		memcpy((void *)(uintptr_t)info->jited_prog_insns, p->code, p->nr_funcs * LEN);
	info->jited_prog_len = p->nr_funcs * LEN + (second && bpf.lies);
	info->nr_jited_ksyms = info->nr_jited_func_lens = p->nr_funcs;
	if (p->lines)
		lines_of(p, info);
	return 0;
}

static long fake_bpf(void *ctx, int cmd, void *attr, size_t attr_len)
{
	union bpf_attr *a = attr;

	(void)ctx;
	assert_true(attr_len == sizeof(*a));
	bpf.nr_calls++;
	if (bpf.refuse)
		return bpf.refuse;
	switch (cmd) {
	case BPF_PROG_GET_NEXT_ID:
		return next_id(a);
	case BPF_PROG_GET_FD_BY_ID:
		return program_find(a->prog_id) ? open_id(a->prog_id) : -ENOENT;
	case BPF_BTF_GET_FD_BY_ID:
		return a->btf_id == BTF ? open_id(BTF) : -ENOENT;
	case BPF_OBJ_GET_INFO_BY_FD:
		if (bpf.fd_id[a->info.bpf_fd] == BTF)
			return btf_info((void *)(uintptr_t)a->info.info);
		return program_info(program_find(bpf.fd_id[a->info.bpf_fd]),
				    (void *)(uintptr_t)a->info.info);
	}
	return -EINVAL;
}

/* Function 0 calls the kernel's do_work and the next one; both end with a return. */
static void program_add(uint32_t id, uint8_t tag, uint64_t addr, uint32_t nr_funcs)
{
	struct program *p = &bpf.v[bpf.nr++];
	*p = (struct program){ .id = id, .tag = tag, .addr = addr, .nr_funcs = nr_funcs };
	put_nops(p->code, sizeof(p->code));
	put_call(p->code, (int64_t)(FAKE_TEXT + 0x100 - addr));
	put_call(p->code + CALL_LEN, 0x100 - CALL_LEN);
	memcpy(p->code + LEN - sizeof(ret), ret, sizeof(ret));
	memcpy(p->code + 2 * LEN - sizeof(ret), ret, sizeof(ret));
}

/* ---- trials ---------------------------------------------------------------------------------- */

static const char kallsyms[] = "ffffffff81000000 T _stext\n"
			       "ffffffff81000100 T do_work\n"
			       "ffffffff81000200 T more_work\n"
			       "ffffffff81001000 T _etext\n";

static void trial_open(struct fake_kernel *f, const char *symbols)
{
	*f = (struct fake_kernel){ 0 };
	base_log_init(stderr, BASE_LOG_ERROR, BASE_LOG_BARE);
	fake_kernel_init(f);
	fake_kernel_database(f);
	fake_kernel_text(f, "proc/kallsyms", symbols);
	fake_kernel_note(f, "sys/kernel/notes", 0xab);
	fake_kernel_open(f, fake_bpf);
}

static void trial_close(struct fake_kernel *f)
{
	fake_kernel_close(f);
	memset(&bpf, 0, sizeof(bpf));
}

/* Cross-built helpers run in the emulator alone. */
static void need_helper(void)
{
	if (!fake_can_exec("dcpid-pseudoimg"))
		skip();
}

/* A sample that is stored: marks the image as one to be written. */
static struct image *sampled(struct fake_kernel *f, uint64_t addr, uint64_t time_ns, uint64_t *off)
{
	const struct driver_count c = { .addr = addr, .first_ns = time_ns, .time_ns = time_ns };
	struct image *img;
	bool idle;

	img = kernel_lookup(f->k, &c, off, &idle);
	if (!img)
		return NULL;
	if (!profdb_profile_nr_events(img->counts))
		assert_int_equal(profdb_profile_event_add(img->counts, "cpu-clock", 1), 0);
	assert_int_equal(profdb_profile_add(img->counts, *off, 0, 1), 0);
	img->dirty = true;
	return img;
}

static void write_images(struct fake_kernel *f)
{
	struct base_err err = { 0 };

	if (kernel_write_images(f->k, false, &err) < 0)
		fail_msg("%s", err.text);
}

struct found {
	const char *name; /* sought; NULL: count all */
	size_t nr;
	uint64_t off;
	uint8_t code[64];
	size_t len;
};

static int find_routine(void *ctx, const char *name, uint64_t off, const uint8_t *code, size_t len)
{
	struct found *f = ctx;

	f->nr += !f->name || !strcmp(f->name, name);
	if (f->name && !strcmp(f->name, name)) {
		f->off = off;
		f->len = len < sizeof(f->code) ? len : sizeof(f->code);
		memcpy(f->code, code, f->len);
	}
	return 0;
}

static struct found routine(struct fake_kernel *f, const char *folder, const char *file,
			    const char *name)
{
	struct found found = { .name = name };
	char path[512];

	snprintf(path, sizeof(path), "%s/db/%s/%s", f->root, folder, file);
	kernel_kept_read(path, find_routine, &found);
	return found;
}

#define MAIN "bpf_prog_1111111111111111_main"
#define SUB  "bpf_prog_2222222222222222_sub"

static void announce(struct fake_kernel *f, const char *name, uint64_t addr, uint64_t time_ns)
{
	fake_kernel_load(f, DRIVER_LOAD_KSYMBOL, addr, LEN, name, false, time_ns);
}

/* ---- programs -------------------------------------------------------------------------------- */

static void test_program(void **state)
{
	uint8_t call[CALL_LEN];
	struct image *img, *sub;
	struct fake_kernel f;
	const struct timespec old[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	struct found found;
	struct stat st, again;
	uint64_t off;

	(void)state;
	need_helper();
	trial_open(&f, kallsyms);
	program_add(7, 0x11, AT, 2);
	announce(&f, MAIN, AT, S);
	announce(&f, SUB, AT + 0x100, S);
	bpf.nr = 0; /* unloaded */
	img = sampled(&f, AT + 5, 2 * S, &off);
	assert_non_null(img);
	assert_int_equal(img->kind, PROFDB_DYNAMIC);
	assert_int_equal(off, 5);
	assert_int_equal(img->id.len, 0);
	sub = sampled(&f, AT + 0x101, 2 * S, &off);
	assert_ptr_not_equal(sub, img);
	assert_int_equal(off, 1);
	write_images(&f);
	assert_int_equal(img->id.len, 20);
	found = routine(&f, "dyn", img->stem, MAIN);
	assert_int_equal(found.nr, 1);
	assert_int_equal(found.len, LEN);
	assert_memory_equal(found.code + LEN - sizeof(ret), ret, sizeof(ret));
	/* What it calls stands by name behind it. */
	put_call(call, 0x10);
	assert_memory_equal(found.code, call, CALL_LEN);
	assert_int_equal(routine(&f, "dyn", img->stem, "do_work").off, found.off + 0x10);
	assert_int_equal(routine(&f, "dyn", sub->stem, SUB).nr, 1);
	assert_int_equal(fstatat(profdb_dyn_fd(f.db), img->stem, &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	/* It is of no earlier time than the profiles that refer to it, and written once. */
	assert_int_equal(utimensat(profdb_dyn_fd(f.db), img->stem, old, 0), 0);
	img->dirty = true;
	write_images(&f);
	assert_int_equal(fstatat(profdb_dyn_fd(f.db), img->stem, &again, 0), 0);
	assert_int_not_equal(again.st_mtim.tv_sec, 1);
	assert_int_equal(again.st_ino, st.st_ino);
	trial_close(&f);
}

/* Wherever it lies, however often it is loaded: one program, one image, one build-id. */
static void test_same_program(void **state)
{
	struct fake_kernel f;
	struct image *first;
	struct base_id id;
	uint64_t off;

	(void)state;
	need_helper();
	trial_open(&f, kallsyms);
	program_add(7, 0x11, AT, 1);
	announce(&f, MAIN, AT, S);
	first = sampled(&f, AT, 2 * S, &off);
	program_add(9, 0x11, AT + 0x4000, 1);
	announce(&f, MAIN, AT + 0x4000, S);
	assert_ptr_equal(sampled(&f, AT + 0x4003, 2 * S, &off), first);
	assert_int_equal(off, 3);
	write_images(&f);
	id = first->id;
	/* Gone before it could be read, but known. */
	announce(&f, MAIN, AT + 0x8000, S);
	assert_ptr_equal(sampled(&f, AT + 0x8003, 2 * S, &off), first);
	/* The same name, but not the same code. */
	fake_kernel_load(&f, DRIVER_LOAD_KSYMBOL, AT + 0x9000, LEN + 1, MAIN, false, S);
	assert_ptr_not_equal(sampled(&f, AT + 0x9003, 2 * S, &off), first);
	write_images(&f);
	assert_true(base_id_equal(&id, &first->id));
	trial_close(&f);
	/* Another daemon, another boot. */
	trial_open(&f, kallsyms);
	program_add(70, 0x11, AT + 0x10000, 1);
	announce(&f, MAIN, AT + 0x10000, S);
	first = sampled(&f, AT + 0x10000, 2 * S, &off);
	write_images(&f);
	assert_true(base_id_equal(&id, &first->id));
	trial_close(&f);
}

/* What a program calls is named the same whatever was, or is, loaded or known before. */
static void test_callees(void **state)
{
	struct fake_kernel f;
	struct image *img;
	uint64_t off;
	char stem[256];

	(void)state;
	need_helper();
	trial_open(&f, kallsyms);
	program_add(7, 0x11, AT, 2);
	announce(&f, MAIN, AT, S);
	announce(&f, SUB, AT + 0x100, S);
	img = sampled(&f, AT + 5, 2 * S, &off);
	snprintf(stem, sizeof(stem), "%s", img->stem);
	write_images(&f);
	assert_int_equal(routine(&f, "dyn", stem, "function_1").nr, 1);
	assert_int_equal(routine(&f, "dyn", stem, "do_work").nr, 1);
	/* The other order: its function is there, and is gone. */
	fake_kernel_load(&f, DRIVER_LOAD_KSYMBOL, AT, LEN, MAIN, true, 3 * S);
	fake_kernel_load(&f, DRIVER_LOAD_KSYMBOL, AT + 0x100, LEN, SUB, true, 3 * S);
	program_add(8, 0x11, AT, 2);
	announce(&f, MAIN, AT, 10 * S);
	assert_ptr_equal(sampled(&f, AT + 5, 11 * S, &off), img);
	program_add(9, 0x11, AT, 2);
	announce(&f, SUB, AT + 0x100, 12 * S);
	announce(&f, MAIN, AT, 12 * S);
	assert_ptr_equal(sampled(&f, AT + 5, 13 * S, &off), img);
	/* Another program's code, known or not. */
	program_add(10, 0x22, AT + 0x1000, 1);
	announce(&f, "bpf_prog_2222222222222222", AT + 0x1000, 14 * S);
	img = sampled(&f, AT + 0x1005, 15 * S, &off);
	announce(&f, "bpf_prog_3333333333333333_x", AT + 0x1100, 16 * S);
	program_add(11, 0x22, AT + 0x1000, 1);
	announce(&f, "bpf_prog_2222222222222222", AT + 0x1000, 17 * S);
	assert_ptr_equal(sampled(&f, AT + 0x1005, 18 * S, &off), img);
	trial_close(&f);
}

/* What cannot be read keeps name and samples. */
static void test_unread(void **state)
{
	struct fake_kernel f;
	struct image *img;
	unsigned int calls;
	uint64_t off;

	(void)state;
	trial_open(&f, kallsyms);
	/* Of another program, which has its address now. */
	program_add(8, 0x33, AT, 1);
	announce(&f, MAIN, AT, S);
	img = sampled(&f, AT + 5, 2 * S, &off);
	assert_int_equal(img->kind, PROFDB_KERNEL);
	assert_string_equal(img->path, MAIN);
	assert_int_equal(img->id.len, 20);
	write_images(&f);
	/* A function comes after its program, or not at all. */
	program_add(9, 0x44, AT + 0x1000, 2);
	announce(&f, SUB, AT + 0x1100, S);
	assert_int_equal(sampled(&f, AT + 0x1105, 2 * S, &off)->kind, PROFDB_KERNEL);
	/* Answers that change while we ask. */
	bpf.lies = true;
	program_add(10, 0x55, AT + 0x2000, 1);
	announce(&f, "bpf_prog_5555555555555555", AT + 0x2000, S);
	assert_int_equal(sampled(&f, AT + 0x2005, 2 * S, &off)->kind, PROFDB_KERNEL);
	/* Without the right it is asked once. */
	bpf.lies = false;
	bpf.refuse = -EPERM;
	program_add(11, 0x66, AT + 0x3000, 1);
	announce(&f, "bpf_prog_6666666666666666", AT + 0x3000, S);
	calls = bpf.nr_calls;
	announce(&f, "bpf_prog_7777777777777777", AT + 0x3100, S);
	kernel_look(f.k);
	assert_int_equal(bpf.nr_calls, calls);
	assert_int_equal(sampled(&f, AT + 0x3005, 2 * S, &off)->kind, PROFDB_KERNEL);
	write_images(&f);
	trial_close(&f);
}

/* Loaded, read at the next look, and gone before its event is handed on. */
static void test_look(void **state)
{
	struct fake_kernel f;
	uint64_t off;

	(void)state;
	trial_open(&f, kallsyms);
	program_add(7, 0x11, AT, 1);
	kernel_look(f.k);
	bpf.nr = 0;
	announce(&f, MAIN, AT, S);
	assert_int_equal(sampled(&f, AT + 5, 2 * S, &off)->kind, PROFDB_DYNAMIC);
	trial_close(&f);
}

/* Programs of before the daemon: names from kallsyms, lengths from the dump. */
static void test_programs_of_before(void **state)
{
	struct fake_kernel f;
	uint64_t off;

	(void)state;
	program_add(7, 0x11, AT, 2);
	trial_open(&f, "ffffffff81000000 T _stext\nffffffff81001000 T _etext\n"
		       "ffffffffc0201000 t " MAIN "\t[bpf]\nffffffffc0201100 t " SUB "\t[bpf]\n");
	assert_int_equal(sampled(&f, AT + 5, S, &off)->kind, PROFDB_DYNAMIC);
	assert_int_equal(sampled(&f, AT + 0x105, S, &off)->kind, PROFDB_DYNAMIC);
	assert_null(sampled(&f, AT + LEN, S, &off));
	trial_close(&f);
}

static void test_lines(void **state)
{
	struct kernel_bpf b;
	struct kernel_bpf_func f;

	(void)state;
	program_add(7, 0x11, AT, 2);
	bpf.v[0].lines = true;
	kernel_bpf_init(&b, fake_bpf, NULL);
	assert_false(kernel_bpf_take(&b, "other_1111111111111111", AT, LEN, &f));
	assert_false(kernel_bpf_take(&b, SUB, AT + 0x100, LEN, &f));
	assert_true(kernel_bpf_take(&b, MAIN, AT, LEN, &f));
	assert_memory_equal(f.code, bpf.v[0].code, LEN);
	assert_int_equal(f.nr_lines, 3);
	assert_int_equal(f.lines[0].line, 10);
	assert_int_equal(f.lines[1].line, 11);
	assert_int_equal(f.lines[1].code_off, 4);
	assert_int_equal(f.lines[1].file, 0);
	assert_int_equal(f.lines[2].file, 1);
	assert_int_equal(f.nr_files, 2);
	assert_memory_equal(f.files.data, "\3\0x.c\1\0x", 8);
	kernel_bpf_func_release(&f);
	assert_true(kernel_bpf_take(&b, SUB, AT + 0x100, LEN, &f));
	assert_memory_equal(f.code, bpf.v[0].code + LEN, LEN);
	assert_int_equal(f.nr_lines, 1);
	assert_int_equal(f.lines[0].line, 20);
	assert_memory_equal(f.files.data, "\3\0y.c", 5);
	kernel_bpf_func_release(&f);
	assert_false(kernel_bpf_take(&b, MAIN, AT, LEN, &f));
	kernel_bpf_release(&b);
	memset(&bpf, 0, sizeof(bpf));
}

/* Programs that nobody names must not fill the memory. */
static void test_storm(void **state)
{
	struct fake_kernel f;
	uint64_t off;

	(void)state;
	trial_open(&f, kallsyms);
	for (uint32_t i = 0; i < 1000; i++) {
		bpf.nr = 0;
		program_add(100 + i, 0x11, AT + i * 0x40, 1);
		bpf.v[0].code[LEN - sizeof(ret) - sizeof(nop)] ^= (uint8_t)(i % 4);
		announce(&f, MAIN, AT + i * 0x40, S + i);
	}
	assert_in_range(f.k->codes.nr, 1, 4);
	sampled(&f, AT + 5, 2 * S, &off);
	write_images(&f);
	assert_true(f.k->job_bytes < 1 << 16);
	trial_close(&f);
}

/* What the helper will not make an image of is given up, and its bytes with it. */
static void test_given_up(void **state)
{
	struct fake_kernel f;
	struct image *img;
	uint64_t off;

	(void)state;
	trial_open(&f, kallsyms);
	snprintf(f.k->helper, sizeof(f.k->helper), "/bin/false");
	program_add(7, 0x11, AT, 1);
	announce(&f, MAIN, AT, S);
	img = sampled(&f, AT, 2 * S, &off);
	for (int i = 0; i < 3; i++) {
		assert_false(img->refused);
		assert_true(f.k->job_bytes > 0);
		write_images(&f);
	}
	assert_true(img->refused);
	assert_int_equal(f.k->job_bytes, 0);
	write_images(&f);
	trial_close(&f);
}

/* ---- the kernel's routines ------------------------------------------------------------------- */

static const char *kernel_file(const struct image *img, const char *suffix)
{
	static char name[256];

	kernel_file_name(name, sizeof(name), img->path, &img->id, suffix);
	return name;
}

static const char *code_file(const struct image *img)
{
	return kernel_file(img, "code");
}

static uint8_t memory[0x1000];

/* A kernel, or module, at @at: routines of 0x100 bytes, of which two end with a return. */
static void give_memory(struct fake_kernel *f, uint64_t at)
{
	put_nops(memory, sizeof(memory));
	memcpy(memory + 0x200 - sizeof(ret), ret, sizeof(ret));
	memcpy(memory + 0x300 - sizeof(ret), ret, sizeof(ret));
	f->memory = memory;
	f->memory_at = at;
	f->memory_len = sizeof(memory);
}

/* Its text was sampled once, in do_work, and that is on disk. */
static struct image *trial_with_text(struct fake_kernel *f)
{
	struct image *img;
	uint64_t off;

	need_helper();
	trial_open(f, kallsyms);
	give_memory(f, FAKE_TEXT);
	img = sampled(f, FAKE_TEXT + 0x123, S, &off);
	write_images(f);
	return img;
}

static void test_routines(void **state)
{
	struct stat was, is;
	struct fake_kernel f;
	struct image *img;
	struct found found;
	unsigned int reads;
	uint64_t off;

	(void)state;
	img = trial_with_text(&f);
	found = routine(&f, "kernel", code_file(img), "do_work");
	assert_int_equal(found.nr, 1);
	assert_int_equal(found.off, 0x100);
	assert_memory_equal(found.code, nop, sizeof(nop));
	/* Only what was sampled, and only once. */
	assert_int_equal(routine(&f, "kernel", code_file(img), NULL).nr, 1);
	assert_int_equal(fstatat(profdb_kernel_fd(f.db), code_file(img), &was, 0), 0);
	sampled(&f, FAKE_TEXT + 0x1f0, S, &off);
	reads = f.nr_reads;
	write_images(&f);
	assert_int_equal(f.nr_reads, reads + 1);
	assert_int_equal(fstatat(profdb_kernel_fd(f.db), code_file(img), &is, 0), 0);
	assert_int_equal(is.st_ino, was.st_ino);
	/* The kernel patches itself: what stands in the file is what ran last. */
	memory[0x110] = 0xcd;
	write_images(&f);
	assert_int_equal(routine(&f, "kernel", code_file(img), "do_work").code[0x10], 0xcd);
	/* So it is of routines without samples since, where it tells. */
	profdb_profile_clear(img->counts);
	memory[0x100] = 0xcc;
	fake_kernel_load(&f, DRIVER_LOAD_POKE, FAKE_TEXT + 0x100, 1, NULL, false, base_now_ns());
	sampled(&f, FAKE_TEXT + 0x200, S, &off);
	write_images(&f);
	assert_int_equal(routine(&f, "kernel", code_file(img), "do_work").code[0], 0xcc);
	assert_int_equal(routine(&f, "kernel", code_file(img), NULL).nr, 2);
	profdb_profile_clear(img->counts);
	/* A poke of before it was read changes nothing, nor does one elsewhere. */
	reads = f.nr_reads;
	fake_kernel_load(&f, DRIVER_LOAD_POKE, FAKE_TEXT + 0x100, 1, NULL, false, 1);
	fake_kernel_load(&f, DRIVER_LOAD_POKE, FAKE_TEXT + 0x80, 1, NULL, false, base_now_ns());
	fake_kernel_load(&f, DRIVER_LOAD_POKE, UINT64_MAX, 8, NULL, false, base_now_ns());
	write_images(&f);
	assert_int_equal(f.nr_reads, reads);
	trial_close(&f);
}

/* A helper that begins its work when a line was written to the FIFO "go". */
static void make_slow_helper(struct fake_kernel *f)
{
	char path[512], go[512];
	FILE *out;

	snprintf(go, sizeof(go), "%s/go", profdb_path(f->db));
	snprintf(path, sizeof(path), "%s/slow-helper", profdb_path(f->db));
	assert_int_equal(mkfifo(go, 0600), 0);
	out = fopen(path, "we");
	assert_non_null(out);
	fprintf(out, "#!/bin/sh\nread line <'%s'\nexec '%s'\n", go, f->k->helper);
	assert_int_equal(fchmod(fileno(out), 0700), 0);
	assert_int_equal(fclose(out), 0);
	snprintf(f->k->helper, sizeof(f->k->helper), "%s", path);
}

/* A disk, or a helper, that takes its time does not hold up the loop: a thread waits for it. */
static void test_slow_file(void **state)
{
	struct base_err err = { 0 };
	struct fake_kernel f;
	struct image *img;
	char go[512];
	uint64_t off;
	int fd;

	(void)state;
	need_helper();
	trial_open(&f, kallsyms);
	make_slow_helper(&f);
	give_memory(&f, FAKE_TEXT);
	img = sampled(&f, FAKE_TEXT + 0x123, S, &off);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(kernel_write_images(f.k, true, &err), 0);
		assert_true(kernel_is_writing(f.k));
		assert_int_equal(routine(&f, "kernel", code_file(img), NULL).nr, 0);
	}
	snprintf(go, sizeof(go), "%s/go", profdb_path(f.db));
	fd = open(go, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0 && write(fd, "\n", 1) == 1);
	/* It ends, and writing without haste waits for that. */
	write_images(&f);
	assert_false(kernel_is_writing(f.k));
	assert_int_equal(routine(&f, "kernel", code_file(img), "do_work").nr, 1);
	close(fd);
	trial_close(&f);
}

/* Gone when its routines are to be read: something else may be there. */
static void test_module_gone(void **state)
{
	struct fake_kernel f = { 0 };
	struct image *img;
	uint64_t off;

	(void)state;
	need_helper();
	base_log_init(stderr, BASE_LOG_ERROR, BASE_LOG_BARE);
	fake_kernel_init(&f);
	fake_kernel_database(&f);
	fake_kernel_text(&f, "proc/kallsyms",
			 "ffffffff81000000 T _stext\nffffffff81001000 T _etext\n"
			 "ffffffffc0201000 t work\t[one]\nffffffffc0201100 t more\t[one]\n");
	fake_kernel_text(&f, "proc/modules", "one 8192 0 - Live 0xffffffffc0201000\n");
	fake_kernel_note(&f, "sys/kernel/notes", 0xab);
	fake_kernel_open(&f, fake_bpf);
	give_memory(&f, AT);
	img = sampled(&f, AT + 0x10, base_now_ns(), &off);
	write_images(&f);
	assert_int_equal(f.nr_reads, 1);
	assert_int_equal(routine(&f, "kernel", code_file(img), "work").nr, 1);
	assert_ptr_equal(sampled(&f, AT + 0x110, base_now_ns(), &off), img);
	fake_kernel_text(&f, "proc/modules", "");
	write_images(&f);
	assert_int_equal(f.nr_reads, 1);
	/* It comes back elsewhere: its routines are read there. */
	fake_kernel_text(&f, "proc/kallsyms",
			 "ffffffff81000000 T _stext\nffffffff81001000 T _etext\n"
			 "ffffffffc0301000 t work\t[one]\nffffffffc0301100 t more\t[one]\n");
	fake_kernel_text(&f, "proc/modules", "one 8192 0 - Live 0xffffffffc0301000\n");
	give_memory(&f, 0xffffffffc0301000);
	f.k->checked_ns = 0;
	kernel_live_check(f.k);
	assert_ptr_equal(sampled(&f, 0xffffffffc0301110, base_now_ns(), &off), img);
	assert_int_equal(off, 0x110);
	write_images(&f);
	assert_int_equal(routine(&f, "kernel", code_file(img), "more").nr, 1);
	trial_close(&f);
}

/* A daemon after us keeps what we kept. */
static void test_restart(void **state)
{
	struct fake_kernel f;
	struct image *img;
	uint64_t off;

	(void)state;
	trial_with_text(&f);
	kernel_close(f.k);
	images_free(f.images);
	f.images = images_new();
	fake_kernel_open(&f, fake_bpf);
	img = sampled(&f, FAKE_TEXT + 0x223, S, &off);
	write_images(&f);
	assert_int_equal(routine(&f, "kernel", code_file(img), "do_work").nr, 1);
	assert_int_equal(routine(&f, "kernel", code_file(img), "more_work").nr, 1);
	trial_close(&f);
}

/* What a database that is gone held is written into the next one. */
static void test_lost(void **state)
{
	struct fake_kernel f;
	struct image *img, *other;
	struct base_id id;
	uint64_t off;

	(void)state;
	need_helper();
	trial_open(&f, kallsyms);
	program_add(7, 0x11, AT, 1);
	announce(&f, MAIN, AT, S);
	program_add(8, 0x22, AT + 0x1000, 2);
	announce(&f, "bpf_prog_2222222222222222", AT + 0x1000, S);
	img = sampled(&f, AT, 2 * S, &off);
	other = sampled(&f, AT + 0x1000, 2 * S, &off);
	write_images(&f);
	id = img->id;
	assert_int_equal(unlinkat(profdb_dyn_fd(f.db), img->stem, 0), 0);
	kernel_images_lost(f.k);
	/* Its profile waits for it. */
	assert_int_equal(img->id.len, 0);
	bpf.nr = 0; /* unloaded */
	write_images(&f);
	assert_int_equal(routine(&f, "dyn", img->stem, MAIN).nr, 1);
	assert_true(base_id_equal(&id, &img->id));
	/* Bytes of what is on disk make room for others. */
	f.k->job_bytes += 8 << 20;
	program_add(9, 0x33, AT + 0x2000, 1);
	announce(&f, "bpf_prog_3333333333333333", AT + 0x2000, 3 * S);
	f.k->job_bytes -= 8 << 20;
	assert_int_equal(f.k->job_bytes, 0);
	kernel_images_lost(f.k);
	assert_true(base_id_equal(&id, &img->id));
	assert_int_equal(other->id.len, 20);
	trial_close(&f);
}

/* A copy from before is put back: what it holds stays, what came later is added. */
static void test_copy_put_back(void **state)
{
	struct fake_kernel f;
	struct base_buf copy = { 0 };
	struct image *img;
	uint64_t off;

	(void)state;
	img = trial_with_text(&f);
	assert_int_equal(
		base_file_read(profdb_kernel_fd(f.db), code_file(img), 1 << 20, &copy, NULL), 0);
	kernel_close(f.k);
	assert_int_equal(unlinkat(profdb_kernel_fd(f.db), code_file(img), 0), 0);
	images_free(f.images);
	f.images = images_new();
	fake_kernel_open(&f, fake_bpf);
	img = sampled(&f, FAKE_TEXT + 0x223, S, &off);
	write_images(&f);
	assert_int_equal(routine(&f, "kernel", code_file(img), "do_work").nr, 0);
	assert_int_equal(base_file_write(profdb_kernel_fd(f.db), code_file(img), 0640, copy.data,
					 copy.len, NULL),
			 0);
	kernel_images_lost(f.k);
	write_images(&f);
	assert_int_equal(routine(&f, "kernel", code_file(img), "do_work").nr, 1);
	assert_int_equal(routine(&f, "kernel", code_file(img), "more_work").nr, 1);
	base_buf_release(&copy);
	trial_close(&f);
}

/* No profile may refer to what could not be written. */
static void test_nowhere(void **state)
{
	struct base_err err = { 0 };
	struct fake_kernel f;
	struct image *img;
	char path[128];
	uint64_t off;

	(void)state;
	need_helper();
	trial_open(&f, kallsyms);
	program_add(7, 0x11, AT, 1);
	announce(&f, MAIN, AT, S);
	img = sampled(&f, AT, 2 * S, &off);
	snprintf(path, sizeof(path), "rm -r '%s/db/dyn'", f.root);
	assert_int_equal(system(path), 0);
	assert_true(kernel_write_images(f.k, false, &err) < 0);
	assert_int_equal(img->id.len, 0);
	trial_close(&f);
}

static unsigned int nr_lines(const char *text)
{
	unsigned int nr = 0;

	while ((text = strchr(text, '\n'))) {
		nr++;
		text++;
	}
	return nr;
}

/* A file that cannot be written is told of once, and one that can again is no news. */
static void test_told_once(void **state)
{
	struct fake_kernel f;
	struct image *img;
	char *said = NULL;
	size_t len;
	FILE *to = open_memstream(&said, &len);

	(void)state;
	assert_non_null(to);
	img = trial_with_text(&f);
	base_log_init(to, BASE_LOG_WARN, BASE_LOG_BARE);
	assert_int_equal(unlinkat(profdb_kernel_fd(f.db), code_file(img), 0), 0);
	assert_int_equal(mkdirat(profdb_kernel_fd(f.db), code_file(img), 0755), 0);
	for (int i = 0; i < 3; i++) {
		struct base_err err = { 0 };

		if (i == 2)
			assert_int_equal(
				unlinkat(profdb_kernel_fd(f.db), code_file(img), AT_REMOVEDIR), 0);
		memory[0x110]++;
		img->dirty = true;
		kernel_write_images(f.k, false, &err);
		fflush(to);
		assert_int_equal(nr_lines(said), 1);
	}
	assert_int_equal(routine(&f, "kernel", code_file(img), "do_work").nr, 1);
	base_log_init(stderr, BASE_LOG_ERROR, BASE_LOG_BARE);
	trial_close(&f);
	fclose(to);
	free(said);
}

/* As many bytes are kept as may be: those that are read again take no more room. */
static void test_full(void **state)
{
	enum { NR = 64, EACH = 256 << 10 };
	uint8_t *code = malloc(NR * EACH);
	struct base_buf symbols = { 0 };
	struct fake_kernel f;
	uint64_t off;

	(void)state;
	assert_non_null(code);
	memset(code, 6, NR * EACH); /* no instruction, which is quickly seen */
	base_buf_printf(&symbols, "%llx T _stext\n%llx T _etext\n", FAKE_TEXT + 0ull,
			FAKE_TEXT + 0ull + NR * EACH);
	for (unsigned int i = 0; i < NR; i++)
		base_buf_printf(&symbols, "%llx T work_%u\n", FAKE_TEXT + 0ull + i * EACH, i);
	assert_int_equal(base_buf_append(&symbols, "", 1), 0);
	trial_open(&f, (const char *)symbols.data);
	f.memory = code;
	f.memory_at = FAKE_TEXT;
	f.memory_len = NR * EACH;
	for (uint64_t i = 0; i < NR; i++)
		sampled(&f, FAKE_TEXT + i * EACH + 5, S, &off);
	write_images(&f);
	assert_int_equal(f.nr_reads, NR);
	write_images(&f);
	assert_int_equal(f.nr_reads, 2 * NR);
	trial_close(&f);
	base_buf_release(&symbols);
	free(code);
}

/* Memory that cannot be read leaves symbols and samples. */
static void test_no_memory(void **state)
{
	struct fake_kernel f;
	struct image *img;
	uint64_t off;

	(void)state;
	trial_open(&f, kallsyms);
	img = sampled(&f, FAKE_TEXT + 0x123, S, &off);
	write_images(&f);
	assert_true(f.nr_reads > 0);
	assert_int_equal(faccessat(profdb_kernel_fd(f.db), code_file(img), F_OK, 0), -1);
	assert_int_equal(faccessat(profdb_kernel_fd(f.db), kernel_file(img, "elf"), F_OK, 0), 0);
	assert_int_equal(profdb_profile_nr_entries(img->counts), 1);
	trial_close(&f);
}

/* Somebody who found them referred to by nothing (gc.c). */
static void remove_file(struct fake_kernel *f, const char *name)
{
	assert_int_equal(unlinkat(profdb_kernel_fd(f->db), name, 0), 0);
}

/* Long ago; whether it still is. */
static void make_old(struct fake_kernel *f, const char *name)
{
	const struct timespec times[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };

	assert_int_equal(utimensat(profdb_kernel_fd(f->db), name, times, 0), 0);
}

static bool is_old(struct fake_kernel *f, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(profdb_kernel_fd(f->db), name, &st, 0), 0);
	return st.st_mtim.tv_sec == 1;
}

static void test_renewed(void **state)
{
	struct fake_kernel f;
	struct image *img;

	(void)state;
	img = trial_with_text(&f);
	/* What a coming profile refers to is newer than the one before. */
	make_old(&f, code_file(img));
	make_old(&f, kernel_file(img, "elf"));
	img->dirty = false;
	write_images(&f);
	assert_true(is_old(&f, code_file(img)) && is_old(&f, kernel_file(img, "elf")));
	img->dirty = true;
	write_images(&f);
	assert_false(is_old(&f, code_file(img)) || is_old(&f, kernel_file(img, "elf")));
	/* What is gone comes back when it gets samples. */
	remove_file(&f, code_file(img));
	remove_file(&f, kernel_file(img, "elf"));
	write_images(&f);
	assert_int_equal(routine(&f, "kernel", code_file(img), "do_work").nr, 1);
	assert_false(is_old(&f, kernel_file(img, "elf")));
	trial_close(&f);
}

/* The kernel's page in every process: it is written at the start, and again for who has counts. */
static void test_vdso(void **state)
{
	struct fake_kernel f;
	struct image *img;
	char file[256];

	(void)state;
	trial_open(&f, kallsyms);
	img = kernel_vdso(f.k);
	if (!img) {
		trial_close(&f);
		skip();
	}
	kernel_file_name(file, sizeof(file), "vdso", &img->id, "so");
	make_old(&f, file);
	write_images(&f);
	assert_true(is_old(&f, file));
	img->dirty = true;
	write_images(&f);
	assert_false(is_old(&f, file));
	remove_file(&f, file);
	write_images(&f);
	assert_false(is_old(&f, file));
	/* Values as well as samples. */
	img->dirty = false;
	make_old(&f, file);
	assert_non_null(image_values_get(img, PROFDB_VALUES, NULL));
	write_images(&f);
	assert_false(is_old(&f, file));
	trial_close(&f);
}

static void test_renewed_name(void **state)
{
	struct fake_kernel f;
	struct image *img;
	uint64_t off;

	(void)state;
	trial_open(&f, kallsyms);
	fake_kernel_load(&f, DRIVER_LOAD_KSYMBOL, AT, 0x40, "trampoline", false, S);
	img = sampled(&f, AT, 2 * S, &off);
	write_images(&f);
	make_old(&f, kernel_file(img, "elf"));
	write_images(&f);
	assert_false(is_old(&f, kernel_file(img, "elf")));
	remove_file(&f, kernel_file(img, "elf"));
	write_images(&f);
	assert_false(is_old(&f, kernel_file(img, "elf")));
	trial_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_program),	      cmocka_unit_test(test_same_program),
		cmocka_unit_test(test_callees),	      cmocka_unit_test(test_unread),
		cmocka_unit_test(test_look),	      cmocka_unit_test(test_programs_of_before),
		cmocka_unit_test(test_lines),	      cmocka_unit_test(test_storm),
		cmocka_unit_test(test_given_up),      cmocka_unit_test(test_routines),
		cmocka_unit_test(test_slow_file),     cmocka_unit_test(test_module_gone),
		cmocka_unit_test(test_restart),	      cmocka_unit_test(test_lost),
		cmocka_unit_test(test_copy_put_back), cmocka_unit_test(test_full),
		cmocka_unit_test(test_no_memory),     cmocka_unit_test(test_renewed),
		cmocka_unit_test(test_renewed_name),  cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_nowhere),	      cmocka_unit_test(test_told_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
