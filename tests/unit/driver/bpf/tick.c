/* SPDX-License-Identifier: BSD-2-Clause */
/* Which function is the tick's timer, by the symbols of kernels old and new. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "bpf_internal.h"

static int find(const char *text, uint64_t *function)
{
	FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int r;

	assert_non_null(f);
	r = bpf_tick_function(f, function);
	fclose(f);
	return r;
}

static void each_kernel_has_its_name(void **state)
{
	/* Until 6.6, 6.7 and 6.8, since 6.9. The handler without high resolution lies before or
	 * behind the one that counts. */
	static const char *const texts[] = {
		"ffffffff81000000 T _text\n"
		"ffffffff81150000 t tick_nohz_handler\n"
		"ffffffff81151234 t tick_sched_timer\n"
		"ffffffff81152000 T tick_nohz_idle_enter\n",
		"ffffffff81151234 t tick_sched_timer\n"
		"ffffffff81150000 t tick_nohz_handler\n",
		"ffffffff81150000 t tick_nohz_lowres_handler\n"
		"ffffffff81151234 t tick_nohz_highres_handler\n",
		"ffffffff81150000 t tick_nohz_handler\n"
		"ffffffff81151234 t tick_nohz_highres_handler\n"
		"ffffffff81152000 t tick_nohz_handler\n",
		"ffffffff81151234 t tick_nohz_handler\n"
		"ffffffff81152000 t tick_nohz_handler_not\n",
	};
	uint64_t function;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(find(texts[i], &function), 0);
		assert_int_equal(function, 0xffffffff81151234);
	}
}

static void what_is_not_the_tick_is_not_taken(void **state)
{
	uint64_t function;

	(void)state;
	assert_int_equal(find("ffffffff81000000 T _text\n", &function), -ENOENT);
	/* Of a module; of another name; not a line of this kind. */
	assert_int_equal(find("ffffffffc0001000 t tick_sched_timer\t[other]\n", &function),
			 -ENOENT);
	assert_int_equal(find("ffffffff81000000 t tick_sched_timers\n", &function), -ENOENT);
	assert_int_equal(find("tick_sched_timer\n\n\x01\n", &function), -ENOENT);
	assert_int_equal(find("\n", &function), -ENOENT);
}

static void hidden_addresses_are_told(void **state)
{
	uint64_t function;

	(void)state;
	assert_int_equal(
		find("0000000000000000 T _text\n0000000000000000 t tick_sched_timer\n", &function),
		-EPERM);
	/* Not the address of the wrong one, though it is shown. */
	assert_int_equal(find("0000000000001000 t tick_nohz_handler\n"
			      "0000000000000000 t tick_sched_timer\n",
			      &function),
			 -EPERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kernel_has_its_name),
		cmocka_unit_test(what_is_not_the_tick_is_not_taken),
		cmocka_unit_test(hidden_addresses_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
