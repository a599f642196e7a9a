/* SPDX-License-Identifier: BSD-2-Clause */
/* Each error of the page provoked, and a refused call leaves what was on as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "burn.h"
#include "sprofil.h"

static uint32_t all; /* every tick */
static char *page;   /* one that can be written; the next cannot be touched */
static size_t page_len;

static struct prof everything(void)
{
	return (struct prof){ &all, sizeof(all), NULL, 2 };
}

static void check(int errno_wanted, struct prof *profp, int profcnt, struct timeval *tvp,
		  unsigned int flags)
{
	errno = 0;
	assert_int_equal(sprofil(profp, profcnt, tvp, flags), -1);
	assert_int_equal(errno, errno_wanted);
}

static uint32_t ticked(uint32_t nr)
{
	uint32_t from = *(volatile uint32_t *)&all;

	for (int i = 0; i < 1000 && *(volatile uint32_t *)&all - from < nr; i++)
		burn(5000000);
	return *(volatile uint32_t *)&all - from;
}

static void test_e2big(void **state)
{
	static struct prof many[SPROFIL_MAX + 1];

	(void)state;
	check(E2BIG, many, -1, NULL, PROF_UINT);
	check(E2BIG, many, INT_MIN, NULL, PROF_UINT);
	check(E2BIG, many, SPROFIL_MAX + 1, NULL, PROF_UINT);
	check(E2BIG, NULL, INT_MAX, NULL, PROF_UINT);
	assert_int_equal(sprofil(many, SPROFIL_MAX, NULL, PROF_UINT), 0); /* all ignored */
	for (int i = 0; i < SPROFIL_MAX; i++)
		many[i] = (struct prof){ &all, 4, (void *)(uintptr_t)(4 * i), 65536 };
	assert_int_equal(sprofil(many, SPROFIL_MAX, NULL, PROF_UINT), 0);
	check(E2BIG, many, SPROFIL_MAX + 1, NULL, PROF_UINT);
}

static void test_efault_profp(void **state)
{
	struct prof *last = (struct prof *)(void *)(page + page_len) - 1;

	(void)state;
	check(EFAULT, NULL, 1, NULL, PROF_UINT);
	check(EFAULT, (struct prof *)(uintptr_t)16, 1, NULL, PROF_UINT);
	check(EFAULT, (struct prof *)(void *)(page + page_len), 1, NULL, PROF_UINT);
	check(EFAULT, (struct prof *)(uintptr_t)(UINTPTR_MAX & ~(uintptr_t)7), 1, NULL, PROF_UINT);
	*last = everything();
	check(EFAULT, last, 2, NULL, PROF_UINT); /* the second is not there */
	assert_int_equal(sprofil(last, 1, NULL, PROF_UINT), 0);
	check(EFAULT, last, SPROFIL_MAX, NULL, PROF_UINT);
	assert_int_equal(mprotect(page, page_len, PROT_NONE), 0);
	check(EFAULT, last, 1, NULL, PROF_UINT);
	/* What can be read only is enough. */
	assert_int_equal(mprotect(page, page_len, PROT_READ), 0);
	assert_int_equal(sprofil(last, 1, NULL, PROF_UINT), 0);
	assert_int_equal(mprotect(page, page_len, PROT_READ | PROT_WRITE), 0);
}

static void test_efault_tvp(void **state)
{
	struct prof one = everything();
	struct timeval *gone = (struct timeval *)(void *)(page + page_len);
	struct timeval *half = (struct timeval *)(void *)(page + page_len - sizeof(*half) / 2);

	(void)state;
	check(EFAULT, &one, 1, (struct timeval *)(uintptr_t)8, PROF_UINT);
	check(EFAULT, &one, 1, gone, PROF_UINT);
	check(EFAULT, &one, 1, half, PROF_UINT);
	check(EFAULT, NULL, 0, gone, PROF_UINT);
	assert_int_equal(mprotect(page, page_len, PROT_READ), 0);
	check(EFAULT, &one, 1, (struct timeval *)(void *)page, PROF_UINT);
	assert_int_equal(mprotect(page, page_len, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(sprofil(&one, 1, (struct timeval *)(void *)page, PROF_UINT), 0);
}

static void test_einval(void **state)
{
	struct prof two[] = { { &all, 4, (void *)0x1000, 65536 }, everything() };

	(void)state;
	assert_int_equal(sprofil(two, 2, NULL, PROF_UINT), 0);
	check(EINVAL, two, 2, NULL, 0);
	check(EINVAL, two, 2, NULL, PROF_USHORT | PROF_UINT);
	check(EINVAL, two, 2, NULL, PROF_UINT64); /* elements of 4 bytes */
	two[0].pr_size = 0;
	check(EINVAL, two, 2, NULL, PROF_UINT);
	two[0].pr_size = (1u << 31) + 4;
	two[0].pr_scale = 2;
	check(EINVAL, two, 2, NULL, PROF_UINT);
	two[0] = two[1]; /* the overflow descriptor twice */
	check(EINVAL, two, 2, NULL, PROF_UINT);
	two[0].pr_scale = 1;
	assert_int_equal(sprofil(two, 2, NULL, PROF_UINT), 0);
	two[1].pr_size = 8; /* longer than an element */
	check(EINVAL, two, 2, NULL, PROF_UINT);
}

static void test_refused_changes_nothing(void **state)
{
	struct prof one = everything(), bad = { &all, 3, NULL, 65536 };

	(void)state;
	assert_int_equal(sprofil(&one, 1, NULL, PROF_UINT), 0);
	check(EINVAL, &bad, 1, NULL, PROF_UINT);
	check(EFAULT, NULL, 1, NULL, PROF_UINT);
	check(E2BIG, &one, -1, NULL, PROF_UINT);
	check(EFAULT, NULL, 0, (struct timeval *)(uintptr_t)8, PROF_UINT);
	assert_true(ticked(2) >= 2);
}

static void test_zero_disables(void **state)
{
	struct prof one = everything();
	struct timeval tick = { -1, -1 };
	uint32_t before;

	(void)state;
	assert_int_equal(sprofil(NULL, 0, NULL, 0), 0); /* also when nothing is on */
	assert_int_equal(sprofil(&one, 1, NULL, PROF_UINT), 0);
	assert_true(ticked(2) >= 2);
	assert_int_equal(sprofil(NULL, 0, &tick, 99), 0);
	assert_true(tick.tv_sec == 0 && tick.tv_usec > 0);
	before = all;
	burn(30000000);
	assert_int_equal(all, before);
}

/* Pages of address space. */
static long space(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long pages = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%ld", &pages), 1);
	fclose(f);
	return pages;
}

/* Where all is ignored it is off, as with none; and no call keeps what another one had. */
static void test_calls_leave_nothing(void **state)
{
	static struct prof many[SPROFIL_MAX];
	struct sigaction now;
	long before = 0;

	(void)state;
	for (int i = 0; i < 41; i++) {
		many[0] = everything();
		assert_int_equal(sprofil(many, SPROFIL_MAX, NULL, PROF_UINT), 0);
		assert_int_equal(sprofil(many, SPROFIL_MAX, NULL, PROF_UINT), 0);
		many[0].pr_scale = 1;
		assert_int_equal(sprofil(many, SPROFIL_MAX, NULL, PROF_UINT), 0);
		assert_int_equal(sigaction(SIGPROF, NULL, &now), 0);
		assert_ptr_equal(now.sa_handler, SIG_DFL);
		before = i ? before : space();
	}
	/* A table has 24 pages or more. */
	assert_true(space() - before < 40 * 12);
}

/* It is one-for-one with sprofil, errors included. */
static void test_profil(void **state)
{
	static unsigned short bin[1];

	(void)state;
	errno = 0;
	assert_int_equal(profil(bin, 0, 0, 65536), -1);
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_int_equal(profil(bin, (size_t)UINT_MAX + 3, 0, 65536), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(profil(bin, sizeof(bin), 0, 2), 0); /* one entry, so an overflow bin */
	for (int i = 0; i < 1000 && *(volatile unsigned short *)bin < 2; i++)
		burn(5000000);
	assert_true(bin[0] >= 2);
	assert_int_equal(profil(NULL, 0, 0, 0), 0); /* ignored: nothing is left to profile */
	bin[0] = 0;
	burn(30000000);
	assert_int_equal(bin[0], 0);
}

/* No room for a timer: nothing is changed, and it works when there is. */
static void test_eagain(void **state)
{
	struct prof one = everything();
	pid_t pid = fork();
	int status = -1;

	(void)state;
	if (!pid) {
		struct rlimit limit, none;
		struct sigaction now;

		getrlimit(RLIMIT_SIGPENDING, &limit);
		none = limit;
		none.rlim_cur = 0;
		setrlimit(RLIMIT_SIGPENDING, &none);
		errno = 0;
		if (sprofil(&one, 1, NULL, PROF_UINT) != -1 || errno != EAGAIN)
			_exit(1);
		if (sigaction(SIGPROF, NULL, &now) || now.sa_handler != SIG_DFL)
			_exit(2);
		setrlimit(RLIMIT_SIGPENDING, &limit);
		if (sprofil(&one, 1, NULL, PROF_UINT) || ticked(2) < 2)
			_exit(3);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_tick(void **state)
{
	struct prof one = everything();
	struct timeval tick = { -1, -1 };
	double cpu;

	(void)state;
	assert_int_equal(sprofil(&one, 1, &tick, PROF_UINT), 0);
	assert_true(ticked(1) >= 1);
	cpu = (double)burn_cpu_ns();
	/* From one tick to another, 20 or more later; looked at every 5 ms of CPU time. */
	double nr = ticked(20);

	cpu = (double)burn_cpu_ns() - cpu;
	assert_true(tick.tv_sec == 0);
	assert_true(nr * (double)tick.tv_usec * 1e3 < cpu + 15e6);
	assert_true(nr * (double)tick.tv_usec * 1e3 > cpu - 15e6);
}

static int setup(void **state)
{
	(void)state;
	page_len = (size_t)sysconf(_SC_PAGESIZE);
	page = mmap(NULL, 2 * page_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return page == MAP_FAILED || mprotect(page + page_len, page_len, PROT_NONE);
}

static int off(void **state)
{
	(void)state;
	all = 0;
	return sprofil(NULL, 0, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_e2big, off),
		cmocka_unit_test_teardown(test_efault_profp, off),
		cmocka_unit_test_teardown(test_efault_tvp, off),
		cmocka_unit_test_teardown(test_einval, off),
		cmocka_unit_test_teardown(test_refused_changes_nothing, off),
		cmocka_unit_test_teardown(test_zero_disables, off),
		cmocka_unit_test_teardown(test_calls_leave_nothing, off),
		cmocka_unit_test_teardown(test_profil, off),
		cmocka_unit_test_teardown(test_eagain, off),
		cmocka_unit_test_teardown(test_tick, off),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
