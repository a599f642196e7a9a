/* SPDX-License-Identifier: BSD-2-Clause */
/* The kinds of waits, by what a list of the kernel's symbols says. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "bpf_waits.h"

static int read_text(struct bpf_wait_kinds *k, const char *text)
{
	FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int r;

	assert_non_null(f);
	r = bpf_wait_kinds_read(k, f);
	fclose(f);
	return r;
}

/* Out of order, with data, an alias, a part that the compiler cut off, and lines of no meaning. */
static const char symbols[] = "0000000000001000 T __schedule\n"
			      "0000000000003000 t futex_wait_queue.isra.0\n"
			      "0000000000002000 T do_nanosleep\n"
			      "0000000000004000 T asm_exc_page_fault\n"
			      "0000000000002800 t schedule_timeout\n"
			      "0000000000002800 D pipe_read\n"
			      "0000000000004100 T pipe_alias\n"
			      "0000000000004100 T pipe_read\n"
			      "0000000000004200 T pipe_readable\n"
			      "nonsense\n"
			      "\n"
			      "0000000000005000 t msleep\t[module]\n"
			      "0000000000006000 T the_end\n";

static void names_give_kinds(void **state)
{
	struct bpf_wait_kinds k;

	(void)state;
	assert_int_equal(read_text(&k, symbols), 0);
	assert_int_equal(k.schedule, 0x1000);
	assert_int_equal(k.schedule_end, 0x2000);
	assert_int_equal(k.nr, 5);
	assert_int_equal(k.items[1].start, 0x3000);
	assert_int_equal(k.items[1].end, 0x4000);
	bpf_wait_kinds_release(&k);
}

static enum driver_wait kind(enum wait_state state, size_t nr, const uint64_t *frames)
{
	struct bpf_wait_kinds k;
	enum driver_wait is;

	assert_int_equal(read_text(&k, symbols), 0);
	is = bpf_wait_kind(&k, state, frames, nr);
	bpf_wait_kinds_release(&k);
	return is;
}

static void innermost_function_tells(void **state)
{
	static const uint64_t sleeps[] = { 0x1100, 0x2900, 0x2001, 0x4110 },
			      locks[] = { 0x1100, 0x4000, 0x4110 },
			      pipes[] = { 0x1100, 0x4200, 0x3800 }, others[] = { 0x1100, 0x2900 },
			      ends[] = { 0x1100, 0x2801 };

	(void)state;
	assert_int_equal(kind(WAIT_BLOCKED, 4, sleeps), DRIVER_WAIT_SLEEP);
	/* A return address may stand behind its function: 0x4000 is still the one before. */
	assert_int_equal(kind(WAIT_BLOCKED, 3, locks), DRIVER_WAIT_LOCK);
	assert_int_equal(kind(WAIT_BLOCKED, 3, pipes), DRIVER_WAIT_PIPE);
	assert_int_equal(kind(WAIT_BLOCKED, 2, others), DRIVER_WAIT_OTHER);
	assert_int_equal(kind(WAIT_BLOCKED, 2, ends), DRIVER_WAIT_OTHER);
	assert_int_equal(kind(WAIT_BLOCKED, 0, NULL), DRIVER_WAIT_UNKNOWN);
}

static void states_tell(void **state)
{
	static const uint64_t pipes[] = { 0x1100, 0x4110 }, faults[] = { 0x1100, 0x4110, 0x4050 };

	(void)state;
	assert_int_equal(kind(WAIT_RUNS, 0, NULL), DRIVER_WAIT_RUNS);
	assert_int_equal(kind(WAIT_RUNNABLE, 3, faults), DRIVER_WAIT_RUNNABLE);
	assert_int_equal(kind(WAIT_IO, 2, pipes), DRIVER_WAIT_DISK);
	/* A page that is read from a disk. */
	assert_int_equal(kind(WAIT_IO, 3, faults), DRIVER_WAIT_FAULT);
	assert_int_equal(kind(WAIT_IO, 0, NULL), DRIVER_WAIT_DISK);
}

static void hidden_addresses(void **state)
{
	struct bpf_wait_kinds k;

	(void)state;
	assert_int_equal(read_text(&k, "0000000000000000 T __schedule\n"
				       "0000000000000000 T pipe_read\n"),
			 -EPERM);
	bpf_wait_kinds_release(&k);
	assert_int_equal(read_text(&k, "\n"), -EPERM);
	bpf_wait_kinds_release(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_give_kinds),
		cmocka_unit_test(innermost_function_tells),
		cmocka_unit_test(states_tell),
		cmocka_unit_test(hidden_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
