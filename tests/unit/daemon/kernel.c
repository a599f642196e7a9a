/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernel_internal.h"

static const char kallsyms[] = "0000000000000000 A fixed_percpu_data\n"
			       "ffffffff81000000 T _stext\n"
			       "ffffffff81000000 T _text\n"
			       "ffffffff81000000 t early\n"
			       "ffffffff81000100 T do_work\n"
			       "ffffffff810001f0 t __pfx_default_idle\n"
			       "ffffffff81000200 T default_idle\n"
			       "ffffffff81000200 W a_weak_alias\n"
			       "ffffffff81000280 t after_idle\n"
			       "ffffffff81001000 T _etext\n"
			       "ffffffff82000000 D jiffies\n"
			       "this is no line\n"
			       "ffffffff83000000 T init_code\n"
			       "ffffffffc0001000 t mod_one\t[nice]\n"
			       "ffffffffc0001080 T mod_two\t[nice]\n"
			       "ffffffffc0009000 t bpf_prog_123_x\t[bpf]\n"
			       "ffffffffc0009100 t ftrace_trampoline\t[__builtin__ftrace]\n";
static const char modules[] = "nice 8192 0 - Live 0xffffffffc0001000 (O)\n"
			      "hidden 4096 0 - Live 0x0000000000000000\n"
			      "bad line\n";

static int module_id(const char *name, struct base_id *id)
{
	*id = (struct base_id){ .len = 20, .bytes = { (uint8_t)name[0] } };
	return 0;
}

struct trial {
	struct kernel *k;
	struct images *images;
};

static void trial_open(struct trial *t, const char *symbols)
{
	struct kernel_texts texts = { .kallsyms = symbols,
				      .modules = modules,
				      .release = "6.1-test",
				      .id = { .len = 20, .bytes = { 0xab } },
				      .module_id = module_id };

	t->images = images_new();
	assert_int_equal(kernel_open(NULL, t->images, false, &t->k, NULL), 0);
	assert_int_equal(kernel_fill(t->k, &texts, NULL), 0);
}

static void trial_close(struct trial *t)
{
	kernel_close(t->k);
	images_free(t->images);
}

static void check(struct trial *t, uint64_t addr, const char *path, uint64_t off, bool idle)
{
	uint64_t got = UINT64_MAX;
	bool waits = !idle;
	struct image *img = kernel_lookup(t->k, addr, &got, &waits);

	if (!path) {
		assert_null(img);
		assert_false(waits);
		return;
	}
	assert_non_null(img);
	assert_string_equal(img->path, path);
	assert_int_equal(img->kind, PROFDB_KERNEL);
	assert_int_equal(got, off);
	assert_int_equal(waits, idle);
}

static void test_symbols(void **state)
{
	const struct kernel_symbol *s;
	struct kernel_symbols y;

	(void)state;
	assert_int_equal(kernel_symbols_parse(&y, kallsyms, strlen(kallsyms)), 0);
	assert_int_equal(y.text_start, 0xffffffff81000000);
	assert_int_equal(y.text_end, 0xffffffff81001000);
	assert_false(y.hidden);
	/* One at each address, functions first; neither data nor padding. */
	assert_int_equal(y.nr, 10);
	s = kernel_symbols_find(&y, 0xffffffff81000203);
	assert_string_equal(s->name, "default_idle");
	assert_true(s->idle);
	s = kernel_symbols_find(&y, 0xffffffff810001ff);
	assert_string_equal(s->name, "do_work");
	assert_null(kernel_symbols_find(&y, 0x1000));
	assert_string_equal(kernel_symbols_find(&y, UINT64_MAX)->name, "ftrace_trampoline");
	kernel_symbols_release(&y);
	assert_int_equal(kernel_symbols_parse(&y, "", 0), 0);
	assert_null(kernel_symbols_find(&y, 1));
	kernel_symbols_release(&y);
}

static void test_odd_lines(void **state)
{
	static const char *const text[] = { "\n\n\n",  "ffff",	       "ffff ",	      "ffff T",
					    "ffff T ", "ffff T x\t",   "ffff T x\t[", "zz T x\n",
					    " T x",    "ffff T x\ty\n" };
	struct kernel_symbols y;

	(void)state;
	for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++) {
		assert_int_equal(kernel_symbols_parse(&y, text[i], strlen(text[i])), 0);
		assert_true(y.nr <= 1);
		kernel_symbols_release(&y);
	}
}

static void test_lookup(void **state)
{
	struct trial t;

	(void)state;
	trial_open(&t, kallsyms);
	check(&t, 0xffffffff81000000, "vmlinux-6.1-test", 0, false);
	check(&t, 0xffffffff81000123, "vmlinux-6.1-test", 0x123, false);
	check(&t, 0xffffffff81000210, "vmlinux-6.1-test", 0x210, true);
	check(&t, 0xffffffff81000280, "vmlinux-6.1-test", 0x280, false);
	check(&t, 0xffffffff81000fff, "vmlinux-6.1-test", 0xfff, false);
	check(&t, 0xffffffff81001000, NULL, 0, false);
	check(&t, 0xffffffff80ffffff, NULL, 0, false);
	check(&t, 0xffffffffc0001084, "nice.ko", 0x84, false);
	check(&t, 0xffffffffc0003000, NULL, 0, false);
	/* BPF of before: up to the next symbol. */
	check(&t, 0xffffffffc0009010, "bpf", 0x10, false);
	check(&t, 0xffffffffc0009110, "bpf", 0x110, false);
	check(&t, 0, NULL, 0, false);
	trial_close(&t);
}

static void test_hidden(void **state)
{
	struct trial t;

	(void)state;
	base_log_init(stderr, BASE_LOG_ERROR, false);
	trial_open(&t, "0000000000000000 T _stext\n0000000000000000 T do_work\n");
	assert_true(t.k->symbols.hidden);
	check(&t, 0, NULL, 0, false);
	check(&t, 0xffffffff81000000, NULL, 0, false);
	trial_close(&t);
}

static void load(struct trial *t, enum driver_load_kind kind, uint64_t addr, uint64_t len,
		 const char *name, uint32_t flags)
{
	struct driver_load l = { .kind = kind,
				 .addr = addr,
				 .len = len,
				 .path = name,
				 .flags = flags,
				 .id = { .len = 20, .bytes = { 1 } } };

	kernel_load(t->k, &l);
}

static void test_ksymbols(void **state)
{
	const uint64_t at = 0xffffffffd0000000;
	struct trial t;

	(void)state;
	trial_open(&t, "ffffffff81000000 T _stext\nffffffff81001000 T _etext\n");
	load(&t, DRIVER_LOAD_KSYMBOL, at, 100, "bpf_prog_1", 0);
	load(&t, DRIVER_LOAD_KSYMBOL, at + 0x1000, 200, "bpf_prog_2", 0);
	check(&t, at + 5, "bpf", 5, false);
	check(&t, at + 0x1000, "bpf", 128, false);
	check(&t, at + 100, NULL, 0, false);
	assert_true(t.k->dynsyms_changed);
	/* Gone, and another in its place; then the first again, elsewhere: its old offset. */
	load(&t, DRIVER_LOAD_KSYMBOL, at, 100, "bpf_prog_1", DRIVER_LOAD_GONE);
	check(&t, at + 5, NULL, 0, false);
	load(&t, DRIVER_LOAD_KSYMBOL, at, 100, "bpf_prog_3", 0);
	check(&t, at + 5, "bpf", 128 + 256 + 5, false);
	load(&t, DRIVER_LOAD_KSYMBOL, at + 0x5000, 100, "bpf_prog_1", 0);
	check(&t, at + 0x5005, "bpf", 5, false);
	/* Overlapping what was there: the newer one is right. */
	load(&t, DRIVER_LOAD_KSYMBOL, at + 0x4ff0, 64, "tramp", 0);
	check(&t, at + 0x5005, "bpf", 512 + 0x15, false);
	check(&t, at + 0x5040, NULL, 0, false);
	/* Nonsense. */
	load(&t, DRIVER_LOAD_KSYMBOL, UINT64_MAX - 5, 100, "wraps", 0);
	load(&t, DRIVER_LOAD_KSYMBOL, at + 0x8000, 0, "empty", 0);
	load(&t, DRIVER_LOAD_KSYMBOL, at + 0x8000, 8, "", 0);
	check(&t, at + 0x8000, "bpf", 576, false);
	trial_close(&t);
}

static void test_recorded_kernel(void **state)
{
	struct trial t = { 0 };

	(void)state;
	t.images = images_new();
	assert_int_equal(kernel_open(NULL, t.images, false, &t.k, NULL), 0);
	check(&t, 0xffffffff81000123, NULL, 0, false);
	load(&t, DRIVER_LOAD_KERNEL, 0xffffffff81000000, 0x1000, "vmlinux-5", 0);
	check(&t, 0xffffffff81000123, "vmlinux-5", 0x123, false);
	assert_null(kernel_vdso(t.k));
	assert_int_equal(kernel_write_images(t.k, NULL), 0);
	trial_close(&t);
}

static void test_idle_names(void **state)
{
	(void)state;
	assert_true(kernel_is_idle("pv_native_safe_halt"));
	assert_true(kernel_is_idle("intel_idle_ibrs"));
	assert_true(kernel_is_idle("cpuidle_enter_state"));
	assert_true(kernel_is_idle("do_idle"));
	assert_false(kernel_is_idle("do_idle_work"));
	assert_false(kernel_is_idle("idle_cpu"));
	assert_false(kernel_is_idle("schedule"));
	assert_false(kernel_is_idle(""));
}

static void test_module_lines(void **state)
{
	struct kernel_module m;

	(void)state;
	assert_int_equal(kernel_module_parse("nf 16384 1 a,b, Live 0xffffffffc0a00000", &m), 0);
	assert_string_equal(m.name, "nf");
	assert_int_equal(m.len, 16384);
	assert_int_equal(m.addr, 0xffffffffc0a00000);
	assert_true(kernel_module_parse("", &m) < 0);
	assert_true(kernel_module_parse("nf 16384 1 - Live 0x0", &m) < 0);
	assert_true(kernel_module_parse("nf x 1 - Live 0x10", &m) < 0);
	assert_true(kernel_module_parse("nf 18446744073709551615 1 - Live 0xffff000", &m) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_symbols),	   cmocka_unit_test(test_odd_lines),
		cmocka_unit_test(test_lookup),	   cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_ksymbols),   cmocka_unit_test(test_recorded_kernel),
		cmocka_unit_test(test_idle_names), cmocka_unit_test(test_module_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
