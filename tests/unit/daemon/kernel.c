/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include <cmocka.h>

#include "track.h"
#include "fake_kernel.h"

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
			       "ffffffff82400000 B _end\n"
			       "this is no line\n"
			       "ffffffff83000000 T init_code\n"
			       "ffffffffc0001080 T mod_two\t[nice]\n"
			       "ffffffffc0001000 t mod_one\t[nice]\n"
			       "ffffffffc0005000 d mod_data\t[nice]\n"
			       "ffffffffc0005100 d _end\t[nice]\n"
			       "ffffffffc0009000 t bpf_prog_123_x\t[bpf]\n"
			       "ffffffffc0009100 t ftrace_trampoline\t[__builtin__ftrace]\n";
static const char modules[] = "nice 65536 0 - Live 0xffffffffc0001000 (O)\n"
			      "hidden 4096 0 - Live 0x0000000000000000\n"
			      "bad line\n";

#define AT UINT64_C(0xffffffffd0000000)
#define S  UINT64_C(1000000000)

static void trial_open(struct fake_kernel *f, const char *symbols, const char *mods)
{
	*f = (struct fake_kernel){ 0 };
	fake_kernel_init(f);
	fake_kernel_text(f, "proc/kallsyms", symbols);
	if (mods)
		fake_kernel_text(f, "proc/modules", mods);
	fake_kernel_note(f, "sys/kernel/notes", 0xab);
	fake_kernel_note(f, "sys/module/nice/notes/.note.gnu.build-id", 0xcd);
	fake_kernel_open(f, NULL);
}

static void check_at(struct fake_kernel *f, uint64_t first_ns, uint64_t time_ns, uint64_t addr,
		     const char *path, uint64_t off, bool idle)
{
	uint64_t got = UINT64_MAX;
	bool waits = !idle;
	const char *found = fake_kernel_sample(f, addr, first_ns, time_ns, &got, &waits);

	if (!path) {
		assert_null(found);
		assert_false(waits);
		return;
	}
	assert_non_null(found);
	assert_string_equal(found, path);
	assert_int_equal(got, off);
	assert_int_equal(waits, idle);
}

/* A sample of an instant before anything happened. */
static void check(struct fake_kernel *f, uint64_t addr, const char *path, uint64_t off, bool idle)
{
	check_at(f, 1, 1, addr, path, off, idle);
}

/* Whoever else is in such a routine does not wait there. */
static void check_busy(struct fake_kernel *f, uint64_t addr, uint64_t off)
{
	const struct driver_count c = {
		.pid = 7, .first_ns = 1, .time_ns = 1, .addr = addr, .count = 1
	};
	uint64_t got = UINT64_MAX;
	bool waits = true;

	assert_non_null(kernel_lookup(f->k, &c, &got, &waits));
	assert_int_equal(got, off);
	assert_false(waits);
}

static void test_symbols(void **state)
{
	const struct kernel_symbol *s;
	struct kernel_symbols y;

	(void)state;
	assert_int_equal(kernel_symbols_parse(&y, kallsyms, strlen(kallsyms)), 0);
	assert_int_equal(y.text_start, 0xffffffff81000000);
	assert_int_equal(y.text_end, 0xffffffff81001000);
	assert_int_equal(y.image_end, 0xffffffff82400000);
	assert_false(y.hidden);
	/* One at each address, functions first; neither data nor padding. */
	assert_int_equal(y.nr, 10);
	s = kernel_symbols_find(&y, 0xffffffff81000203);
	assert_string_equal(s->name, "default_idle");
	assert_true(s->idle);
	assert_null(s->module);
	s = kernel_symbols_find(&y, 0xffffffff810001ff);
	assert_string_equal(s->name, "do_work");
	s = kernel_symbols_find(&y, 0xffffffffc0001085);
	assert_string_equal(s->name, "mod_two");
	assert_string_equal(s->module, "nice");
	assert_null(kernel_symbols_find(&y, 0x1000));
	assert_string_equal(kernel_symbols_find(&y, UINT64_MAX)->name, "ftrace_trampoline");
	kernel_symbols_release(&y);
	assert_int_equal(kernel_symbols_parse(&y, "", 0), 0);
	assert_null(kernel_symbols_find(&y, 1));
	kernel_symbols_release(&y);
}

/* Of those that others may call, the name that a reader knows; idle by any. */
static void test_aliases(void **state)
{
	static const char text[] = "ffff1000 T __x64_sys_call_longer\n"
				   "ffff1000 T call_z\n"
				   "ffff1000 T call_a\n"
				   "ffff1000 T call_aa\n"
				   "ffff1000 t a\n"
				   "ffff2000 T _known\n"
				   "ffff2000 T __k\n"
				   "ffff3000 T wait\n"
				   "ffff3000 W cpuidle_wait\n";
	struct kernel_symbols y;

	(void)state;
	assert_int_equal(kernel_symbols_parse(&y, text, strlen(text)), 0);
	assert_int_equal(y.nr, 3);
	assert_string_equal(y.v[0].name, "call_a");
	assert_false(y.v[0].idle);
	assert_string_equal(y.v[1].name, "_known");
	assert_string_equal(y.v[2].name, "wait");
	assert_true(y.v[2].idle);
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
	/* Nobody would find a routine without a name. */
	assert_int_equal(kernel_symbols_parse(&y, "ffff T \t[m]", 11), 0);
	assert_int_equal(y.nr, 0);
	kernel_symbols_release(&y);
}

static const char *vmlinux(void)
{
	static char name[128];
	struct utsname uts;

	uname(&uts);
	snprintf(name, sizeof(name), "vmlinux-%s", uts.release);
	return name;
}

static void test_lookup(void **state)
{
	struct fake_kernel f;

	(void)state;
	trial_open(&f, kallsyms, modules);
	check(&f, 0xffffffff81000000, vmlinux(), 0, false);
	check(&f, 0xffffffff81000123, vmlinux(), 0x123, false);
	check(&f, 0xffffffff81000210, vmlinux(), 0x210, true);
	check_busy(&f, 0xffffffff81000210, 0x210);
	check(&f, 0xffffffff81000280, vmlinux(), 0x280, false);
	check(&f, 0xffffffff81000fff, vmlinux(), 0xfff, false);
	check(&f, 0xffffffff81001000, NULL, 0, false);
	check(&f, 0xffffffff80ffffff, NULL, 0, false);
	/* A module's code ends with the page of its last routine; the rest of its size is data. */
	check(&f, 0xffffffffc0001084, "nice.ko", 0x84, false);
	check(&f, 0xffffffffc0001fff, "nice.ko", 0xfff, false);
	check(&f, 0xffffffffc0002000, NULL, 0, false);
	/* BPF of before: up to the next symbol, an image for each. */
	check(&f, 0xffffffffc0009010, "bpf_prog_123_x", 0x10, false);
	check(&f, 0xffffffffc0009110, "ftrace_trampoline", 0x10, false);
	check(&f, 0, NULL, 0, false);
	fake_kernel_close(&f);
}

static struct base_id id_by_symbols(const char *symbols, uint64_t addr)
{
	const struct driver_count c = { .addr = addr, .first_ns = 1, .time_ns = 1 };
	struct fake_kernel f = { 0 };
	struct image *img;
	struct base_id id;
	uint64_t off;
	bool idle;

	fake_kernel_init(&f);
	fake_kernel_text(&f, "proc/kallsyms", symbols);
	fake_kernel_open(&f, NULL);
	img = kernel_lookup(f.k, &c, &off, &idle);
	assert_non_null(img);
	id = img->id;
	fake_kernel_close(&f);
	return id;
}

/* Without a build-id: one kernel wherever it lies, another one by its names or places. */
static void test_id_by_symbols(void **state)
{
	static const char *const others[] = {
		"ffffffff81000000 T _stext\nffffffff81000100 T g\nffffffff81001000 T _etext\n",
		"ffffffff81000000 T _stext\nffffffff81000108 T f\nffffffff81001000 T _etext\n",
	};
	struct base_id id = id_by_symbols("ffffffff81000000 T _stext\nffffffff81000100 T f\n"
					  "ffffffff81001000 T _etext\n",
					  0xffffffff81000010),
		       moved = id_by_symbols("ffffffff92000000 T _stext\nffffffff92000100 T f\n"
					     "ffffffff92001000 T _etext\n",
					     0xffffffff92000010);

	(void)state;
	assert_true(id.len && base_id_equal(&id, &moved));
	for (size_t i = 0; i < 2; i++) {
		struct base_id other = id_by_symbols(others[i], 0xffffffff81000010);

		assert_false(base_id_equal(&id, &other));
	}
}

static void test_hidden(void **state)
{
	struct fake_kernel f;

	(void)state;
	base_log_init(stderr, BASE_LOG_ERROR, BASE_LOG_BARE);
	trial_open(&f, "0000000000000000 T _stext\n0000000000000000 T do_work\n", NULL);
	assert_true(f.k->symbols.hidden);
	check(&f, 0, NULL, 0, false);
	check(&f, 0xffffffff81000000, NULL, 0, false);
	fake_kernel_close(&f);
}

/* ---- code that comes and goes ---------------------------------------------------------------- */

static const char plain[] = "ffffffff81000000 T _stext\nffffffff81001000 T _etext\n";

static void came(struct fake_kernel *f, uint64_t time_ns, const char *name, uint64_t addr)
{
	fake_kernel_load(f, DRIVER_LOAD_KSYMBOL, addr, 100, name, false, time_ns);
}

static void went(struct fake_kernel *f, uint64_t time_ns, uint64_t addr)
{
	fake_kernel_load(f, DRIVER_LOAD_KSYMBOL, addr, 100, "", true, time_ns);
}

/* One address, three lifetimes: samples of each time go to the right one, or to none. */
static void test_tenants(void **state)
{
	struct fake_kernel f;

	(void)state;
	trial_open(&f, plain, NULL);
	came(&f, 10 * S, "bpf_prog_1", AT);
	check_at(&f, 11 * S, 11 * S, AT + 5, "bpf_prog_1", 5, false);
	/* It may be on its way out when it is said to be gone. */
	went(&f, 20 * S, AT);
	check_at(&f, 20 * S + 1, 20 * S + 1, AT + 5, "bpf_prog_1", 5, false);
	check_at(&f, 22 * S, 22 * S, AT + 5, NULL, 0, false);
	check_at(&f, 11 * S, 22 * S, AT + 5, NULL, 0, false);
	came(&f, 30 * S, "bpf_prog_2", AT);
	check_at(&f, 31 * S, 31 * S, AT + 5, "bpf_prog_2", 5, false);
	/* Counted since before the second came, but after the first had gone. */
	check_at(&f, 22 * S, 31 * S, AT + 5, "bpf_prog_2", 5, false);
	/* Counted since the first was there: nobody can tell. */
	check_at(&f, 20 * S, 31 * S, AT + 5, NULL, 0, false);
	check_at(&f, 5 * S, 31 * S, AT + 5, NULL, 0, false);
	/* The event of its end was lost: nothing is sure up to the next one's beginning. */
	came(&f, 40 * S, "bpf_prog_3", AT);
	check_at(&f, 39 * S, 41 * S, AT + 5, NULL, 0, false);
	check_at(&f, 41 * S, 41 * S, AT + 5, "bpf_prog_3", 5, false);
	fake_kernel_close(&f);
}

/* The same program again at the same address: there is no other that a sample could be of. */
static void test_same_again(void **state)
{
	struct fake_kernel f;

	(void)state;
	trial_open(&f, plain, NULL);
	came(&f, 10 * S, "bpf_prog_1", AT);
	went(&f, 20 * S, AT);
	came(&f, 20 * S + 1, "bpf_prog_1", AT);
	check_at(&f, 11 * S, 21 * S, AT + 5, "bpf_prog_1", 5, false);
	/* In place of another for a while, it is not sure. */
	came(&f, 30 * S, "bpf_prog_2", AT);
	came(&f, 31 * S, "bpf_prog_1", AT);
	check_at(&f, 29 * S, 32 * S, AT + 5, NULL, 0, false);
	check_at(&f, 32 * S, 32 * S, AT + 5, "bpf_prog_1", 5, false);
	fake_kernel_close(&f);
}

static void test_ksymbols(void **state)
{
	struct fake_kernel f;

	(void)state;
	trial_open(&f, plain, NULL);
	came(&f, S, "bpf_prog_1", AT);
	came(&f, S, "bpf_trampoline_2", AT + 0x1000);
	check_at(&f, 2 * S, 2 * S, AT + 0x1000, "bpf_trampoline_2", 0, false);
	check_at(&f, 2 * S, 2 * S, AT + 100, NULL, 0, false);
	/* Overlapping what was there: the newer one is right. */
	fake_kernel_load(&f, DRIVER_LOAD_KSYMBOL, AT - 0x10, 64, "tramp", false, 3 * S);
	check_at(&f, 4 * S, 4 * S, AT + 5, "tramp", 0x15, false);
	check_at(&f, 4 * S, 4 * S, AT + 0x40, NULL, 0, false);
	/* Nonsense. */
	fake_kernel_load(&f, DRIVER_LOAD_KSYMBOL, UINT64_MAX - 5, 100, "wraps", false, 5 * S);
	fake_kernel_load(&f, DRIVER_LOAD_KSYMBOL, AT + 0x8000, 0, "empty", false, 5 * S);
	fake_kernel_load(&f, DRIVER_LOAD_KSYMBOL, AT + 0x8000, 8, "", false, 5 * S);
	check_at(&f, 6 * S, 6 * S, AT + 0x8000, "unnamed", 0, false);
	fake_kernel_close(&f);
}

/* Code of before the daemon, of which only the start is told. */
static void test_guesses(void **state)
{
	const uint64_t tramp = 0xffffffffc0009100;
	struct fake_kernel f;

	(void)state;
	trial_open(&f, kallsyms, modules);
	check(&f, tramp + 0x10, "ftrace_trampoline", 0x10, false);
	/* It ends at the latest where another begins. */
	came(&f, S, "bpf_prog_1", tramp + 0x200);
	check_at(&f, 2 * S, 2 * S, tramp + 0x10, "ftrace_trampoline", 0x10, false);
	check_at(&f, 2 * S, 2 * S, tramp + 0x205, "bpf_prog_1", 5, false);
	check_at(&f, 2 * S, 2 * S, tramp + 0x300, NULL, 0, false);
	/* Its end is told with its true length. */
	went(&f, 3 * S, tramp);
	check_at(&f, 9 * S, 9 * S, tramp + 0x10, NULL, 0, false);
	check_at(&f, 9 * S, 9 * S, tramp + 0x205, "bpf_prog_1", 5, false);
	fake_kernel_close(&f);
}

/* ---- modules --------------------------------------------------------------------------------- */

static const char one_module[] = "ffffffff81000000 T _stext\n"
				 "ffffffff81001000 T _etext\n"
				 "ffffffffc0001040 t one_work\t[one]\n"
				 "ffffffffc0003010 t two_work\t[two]\n";

/* The next look at /proc/modules is due. */
static void time_passes(struct fake_kernel *f)
{
	f->k->checked_ns -= 10 * S;
}

static void test_module_comes(void **state)
{
	struct fake_kernel f;
	uint64_t now;

	(void)state;
	trial_open(&f, one_module, "one 8192 0 - Live 0xffffffffc0001000\n");
	now = base_now_ns();
	check_at(&f, now, now, 0xffffffffc0001050, "one.ko", 0x50, false);
	check_at(&f, now, now, 0xffffffffc0003020, NULL, 0, false);
	fake_kernel_text(&f, "proc/modules",
			 "two 4096 0 - Live 0xffffffffc0003000\n"
			 "one 8192 0 - Live 0xffffffffc0001000\n");
	/* Offsets count from what the module's own file calls .text. */
	fake_kernel_text(&f, "sys/module/two/sections/.text", "0xffffffffc0003010\n");
	/* Not at every sample. */
	f.k->checked_ns = base_now_ns();
	check_at(&f, now, base_now_ns(), 0xffffffffc0003020, NULL, 0, false);
	time_passes(&f);
	now = base_now_ns();
	check_at(&f, now, now, 0xffffffffc0003020, "two.ko", 0x10, false);
	check_at(&f, now, now, 0xffffffffc0001050, "one.ko", 0x50, false);
	/* Samples of before it was seen are its own: nothing else was there. */
	check_at(&f, S, S, 0xffffffffc0003020, "two.ko", 0x10, false);
	fake_kernel_close(&f);
}

static void test_module_replaced(void **state)
{
	uint64_t before, after;
	struct fake_kernel f;

	(void)state;
	trial_open(&f, one_module, "one 8192 0 - Live 0xffffffffc0001000\n");
	fake_kernel_text(&f, "proc/modules", "two 16384 0 - Live 0xffffffffc0001000\n");
	time_passes(&f);
	before = base_now_ns();
	/* Between two looks one went and the other came: such a sample may be of either. */
	check_at(&f, before, before, 0xffffffffc0001050, NULL, 0, false);
	after = base_now_ns();
	check_at(&f, after, after, 0xffffffffc0001050, "two.ko", 0x50, false);
	check_at(&f, before, after, 0xffffffffc0001050, NULL, 0, false);
	/* Gone, and nothing there. */
	fake_kernel_text(&f, "proc/modules", "");
	time_passes(&f);
	after = base_now_ns();
	check_at(&f, after, after, 0xffffffffc0001050, "two.ko", 0x50, false);
	check_at(&f, after + 5 * S, after + 5 * S, 0xffffffffc0001050, NULL, 0, false);
	fake_kernel_close(&f);
}

/* The size of a module counts data that lies elsewhere: what follows its code is not its own. */
static void test_module_goes_alone(void **state)
{
	static const char symbols[] = "ffffffff81000000 T _stext\n"
				      "ffffffff81001000 T _etext\n"
				      "ffffffffc0001040 t one_work\t[one]\n"
				      "ffffffffc0004010 t two_work\t[two]\n";
	struct fake_kernel f;
	uint64_t now;

	(void)state;
	trial_open(&f, symbols,
		   "one 65536 0 - Live 0xffffffffc0001000\n"
		   "two 65536 0 - Live 0xffffffffc0004000\n");
	came(&f, S, "bpf_prog_1", 0xffffffffc0008000);
	fake_kernel_text(&f, "proc/modules", "two 65536 0 - Live 0xffffffffc0004000\n");
	time_passes(&f);
	kernel_live_check(f.k);
	now = base_now_ns() + 5 * S;
	check_at(&f, now, now, 0xffffffffc0001050, NULL, 0, false);
	check_at(&f, now, now, 0xffffffffc0004020, "two.ko", 0x20, false);
	check_at(&f, now, now, 0xffffffffc0008005, "bpf_prog_1", 5, false);
	/* Nor when it is the last one. */
	fake_kernel_text(&f, "proc/modules", "");
	time_passes(&f);
	kernel_live_check(f.k);
	now = base_now_ns() + 5 * S;
	check_at(&f, now, now, 0xffffffffc0004020, NULL, 0, false);
	check_at(&f, now, now, 0xffffffffc0008005, "bpf_prog_1", 5, false);
	fake_kernel_close(&f);
}

/* Built anew and loaded again, it has the same name, size and address. */
static void test_module_rebuilt(void **state)
{
	static const char list[] = "one 8192 0 - Live 0xffffffffc0001000\n";
	const uint64_t addr = 0xffffffffc0001050;
	struct image *first, *second;
	uint64_t off, before, after;
	char from[128], to[128];
	struct fake_kernel f;
	bool idle;

	(void)state;
	trial_open(&f, one_module, list);
	fake_kernel_note(&f, "sys/module/one/notes/.note.gnu.build-id", 1);
	time_passes(&f);
	kernel_live_check(f.k);
	before = base_now_ns();
	check_at(&f, before, before, addr, "one.ko", 0x50, false);
	first = kernel_lookup(f.k, &(struct driver_count){ .addr = addr, .time_ns = before }, &off,
			      &idle);
	/* Its folder is another one. */
	fake_kernel_note(&f, "sys/module/next/notes/.note.gnu.build-id", 2);
	snprintf(from, sizeof(from), "%s/sys/module/one", f.root);
	snprintf(to, sizeof(to), "%s/sys/module/old", f.root);
	assert_int_equal(rename(from, to), 0);
	snprintf(to, sizeof(to), "%s/sys/module/next", f.root);
	assert_int_equal(rename(to, from), 0);
	time_passes(&f);
	before = base_now_ns();
	check_at(&f, before, before, addr, NULL, 0, false);
	after = base_now_ns();
	second = kernel_lookup(
		f.k, &(struct driver_count){ .addr = addr, .first_ns = after, .time_ns = after },
		&off, &idle);
	assert_non_null(second);
	assert_ptr_not_equal(first, second);
	assert_int_equal(second->id.bytes[0], 2);
	fake_kernel_close(&f);
}

/* A disk that is full while modules come loses none of them. */
static void test_module_fails(void **state)
{
	const struct kernel_text *texts;
	struct rlimit was, none;
	struct fake_kernel f = { 0 };
	uint64_t now;

	(void)state;
	base_log_init(stderr, BASE_LOG_ERROR, BASE_LOG_BARE);
	fake_kernel_init(&f);
	fake_kernel_database(&f);
	fake_kernel_text(&f, "proc/kallsyms", one_module);
	fake_kernel_note(&f, "sys/kernel/notes", 0xab);
	fake_kernel_open(&f, NULL);
	fake_kernel_text(&f, "proc/modules",
			 "two 4096 0 - Live 0xffffffffc0003000\n"
			 "one 8192 0 - Live 0xffffffffc0001000\n");
	time_passes(&f);
	texts = f.k->texts;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	none = was;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	now = base_now_ns();
	check_at(&f, now, now, 0xffffffffc0001050, "one.ko", 0x10 + 0x40, false);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	check_at(&f, now, now, 0xffffffffc0003020, "two.ko", 0x20, false);
	/* Tried again at the next look. */
	assert_ptr_equal(f.k->texts, texts);
	time_passes(&f);
	kernel_live_check(f.k);
	assert_ptr_not_equal(f.k->texts, texts);
	now = base_now_ns();
	check_at(&f, now, now, 0xffffffffc0003020, "two.ko", 0x20, false);
	fake_kernel_close(&f);
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
	/* A name is never a path. */
	assert_true(kernel_module_parse("../x 16384 1 - Live 0x10000", &m) < 0);
}

/* ---- recorded streams ------------------------------------------------------------------------ */

static void replay(void *ctx, const struct driver_load *load)
{
	kernel_load(ctx, load);
}

/* What is told at the beginning of a stream gives the same answers when it is replayed. */
static void test_recorded(void **state)
{
	const struct kernel_config recorded = { 0 };
	struct kernel_config config = recorded;
	struct fake_kernel live, again = { 0 };

	(void)state;
	trial_open(&live, kallsyms, modules);
	config.images = again.images = images_new();
	assert_int_equal(kernel_open(&config, &again.k, NULL), 0);
	check(&again, 0xffffffff81000123, NULL, 0, false);
	kernel_tell(live.k, replay, again.k);
	/* Without samples they are needed all the same. */
	images_drop_unused(again.images);
	check(&again, 0xffffffff81000123, vmlinux(), 0x123, false);
	check(&again, 0xffffffffc0001084, "nice.ko", 0x84, false);
	check(&again, 0xffffffffc0009110, "ftrace_trampoline", 0x10, false);
	assert_null(kernel_vdso(again.k));
	assert_int_equal(kernel_write_images(again.k, false, NULL), 0);
	kernel_close(again.k);
	images_free(again.images);
	fake_kernel_close(&live);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_symbols),
		cmocka_unit_test(test_aliases),
		cmocka_unit_test(test_odd_lines),
		cmocka_unit_test(test_lookup),
		cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_id_by_symbols),
		cmocka_unit_test(test_tenants),
		cmocka_unit_test(test_same_again),
		cmocka_unit_test(test_ksymbols),
		cmocka_unit_test(test_module_comes),
		cmocka_unit_test(test_module_replaced),
		cmocka_unit_test(test_module_rebuilt),
		cmocka_unit_test(test_module_goes_alone),
		cmocka_unit_test(test_module_fails),
		cmocka_unit_test(test_guesses),
		cmocka_unit_test(test_module_lines),
		cmocka_unit_test(test_recorded),
		cmocka_unit_test(test_idle_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
