/* SPDX-License-Identifier: BSD-2-Clause */
/* What traces met and nobody had translated: what is put for it, and how much. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake_registry.h"
#include "fake_traces.h"
#include "fast_clock.h"

/*
 * Only the looks at the clock take time: a turn, a second, and the patience with the helper do not
 * end on a busy machine, nor where this process is stopped.
 */
static void stop_clock(void)
{
	stands = true;
	stride_ns = 1;
}

static int setup_translator(void **state)
{
	stop_clock();
	*state = fake_can_exec("dcpid-translate") ? &driver : NULL;
	return fake_traces_open(*state ? fake_helper_dir() : NULL);
}

static void miss(uint64_t time_ns)
{
	driver.missing = (struct insn_trace){ .time_ns = time_ns,
					      .tgid = PID,
					      .end_pc = MAIN,
					      .end = VTRACE_UNTRANSLATED,
					      .code_len = INSN_TRACE_CODE };
	memcpy(driver.missing.code, driver.code, INSN_TRACE_CODE);
	driver.nr_missing = 1;
	driver.stats.missed++;
}

static void what_is_missing(void **state)
{
	struct trace_stats stats;
	unsigned int nr;

	if (!*state)
		skip();
	assert_false(trace_serve(traces));
	miss(base_now_ns());
	trace_serve(traces);
	assert_true(driver.nr_put >= 1);
	assert_int_equal(driver.put[0], MAIN);
	nr = driver.nr_put;
	trace_stats_get(traces, false, &stats);
	assert_int_equal(stats.translated, nr);
	/* A trace of before it was put. */
	miss(1);
	trace_serve(traces);
	assert_int_equal(driver.nr_put, nr);
	/* Later it is other code; what may follow is there. */
	miss(base_now_ns());
	trace_serve(traces);
	assert_int_equal(driver.nr_put, nr + 1);
	/* One that is another one all the time is given up for a while. */
	for (int i = 0; i < 100; i++) {
		miss(base_now_ns());
		trace_serve(traces);
	}
	assert_in_range(driver.nr_put, nr + 60, nr + 70);
}

/* Where much is missing more will be, and somebody should look soon. */
static void many_misses_make_haste(void **state)
{
	if (!*state)
		skip();
	miss(base_now_ns());
	assert_false(trace_serve(traces));
	driver.stats.missed += 100;
	assert_true(trace_serve(traces));
	driver.stats.missed++;
	assert_true(trace_serve(traces));
	assert_false(trace_serve(traces));
	driver.stats.missed++;
	assert_false(trace_serve(traces));
}

/* An address without code, and a table without room. */
static void what_cannot_be_served(void **state)
{
	struct trace_stats stats;

	if (!*state)
		skip();
	miss(base_now_ns());
	driver.missing.code_len = 0;
	trace_serve(traces);
	assert_int_equal(driver.nr_put, 0);
	miss(base_now_ns());
	driver.missing.end_pc += 64;
	driver.put_result = -DCPI_ELIMIT;
	trace_serve(traces);
	driver.put_result = 0;
	miss(base_now_ns());
	driver.missing.end_pc += 128;
	trace_serve(traces);
	trace_stats_get(traces, false, &stats);
	assert_int_equal(stats.refused, 1);
	assert_int_equal(stats.postponed, 1);
	assert_int_equal(driver.nr_put, 0);
}

/* Blocks are of code: another process has them too, wherever it stands there. */
static void another_process(void **state)
{
	unsigned int nr;

	if (!*state)
		skip();
	miss(base_now_ns());
	trace_serve(traces);
	nr = driver.nr_put;
	assert_true(nr >= 1);
	fake_end(PID, base_now_ns());
	counts_resolve(&core.counts, 0);
	miss(1);
	driver.missing.tgid++;
	driver.missing.end_pc += 0x10000;
	trace_serve(traces);
	assert_int_equal(driver.nr_put, nr);
	/* Less of it than it is found by. */
	miss(base_now_ns());
	driver.missing.code_len = VTRACE_PLACE_BYTES - 1;
	trace_serve(traces);
	assert_int_equal(driver.nr_put, nr);
}

/* A process that makes code faster than it can be translated has its share and no more. */
static void a_flood(void **state)
{
	struct trace_stats stats;

	if (!*state)
		skip();
	for (unsigned int i = 0; i < 1500; i++) {
		miss(base_now_ns());
		driver.missing.end_pc += 64 * i;
		trace_serve(traces);
	}
	trace_stats_get(traces, false, &stats);
	assert_int_equal(stats.missing, 1500);
	assert_int_equal(stats.postponed, 500);
}

/* At MAIN is a call of what stands pages away, and at LIB two more: a page is read once. */
#define FAR	(MAIN + 0x5000)
#define NOWHERE (MAIN + 0x4000)
#define OWN	(MAIN + 512) /* each process has another byte there */
static unsigned int nr_far_read;
static ssize_t nowhere_result;

static ssize_t read_code(int32_t pid, uint64_t addr, void *to, size_t len)
{
	if (addr == NOWHERE)
		return nowhere_result;
	if (addr == FAR) {
		nr_far_read++;
		memset(to, 0x90, len);
		for (size_t i = 0; i < len; i += 64)
			((uint8_t *)to)[i] = 0xc3;
		return (ssize_t)len;
	}
	assert_in_range(addr, MAIN, MAIN + sizeof(driver.code) - len);
	memcpy(to, (uint8_t *)driver.code + (addr - MAIN), len);
	((uint8_t *)to)[OWN - MAIN] += (uint8_t)(pid - PID);
	return (ssize_t)len;
}

static void put_call(uint64_t at, uint64_t to)
{
	uint32_t rel = (uint32_t)(to - at - 5);
	uint8_t *code = (uint8_t *)driver.code + (at - MAIN);

	code[0] = 0xe8;
	memcpy(code + 1, &rel, sizeof(rel));
}

static bool was_put(uint64_t pc)
{
	for (unsigned int i = 0; i < driver.nr_put && i < PUT_MAX; i++)
		if (driver.put[i] == pc)
			return true;
	return false;
}

/* A turn that takes long, as the helper starts, leaves what lies ahead to the next. */
static void miss_until(uint64_t pc, uint64_t wanted)
{
	for (int i = 0; i < 50 && !was_put(wanted); i++) {
		miss(base_now_ns());
		driver.missing.end_pc = pc;
		memcpy(driver.missing.code, (uint8_t *)driver.code + (pc - MAIN), INSN_TRACE_CODE);
		trace_serve(traces);
	}
	assert_true(was_put(pc));
	assert_true(was_put(wanted));
}

static int setup_reader(void **state)
{
	static char reader;
	struct trace_config config = fake_traces_config();
	struct base_err err = { 0 };
	enum vtrace_arch arch;

	config.reader = (struct reader *)&reader;

	stop_clock();
	fake_traces_open(NULL);
	*state = NULL;
	if (!fake_can_exec("dcpid-translate") || translator_arch(&arch) < 0 ||
	    arch != VTRACE_X86_64)
		return 0;
	*state = &driver;
	config.helper_dir = fake_helper_dir();
	trace_close(traces);
	assert_int_equal(trace_open(&config, &traces, &err), 0);
	core.counts.traces = traces;
	stand_ins.read_code = read_code;
	nr_far_read = 0;
	return 0;
}

/* What is called lies elsewhere, and is there before a trace comes to it. */
static void what_lies_ahead(void **state)
{
	if (!*state)
		skip();
	memset(driver.code, 0, sizeof(driver.code));
	put_call(MAIN, FAR);
	put_call(LIB, FAR + 64);
	put_call(LIB + 5, FAR + 128);
	miss_until(MAIN, FAR);
	assert_int_equal(nr_far_read, 1);
	/* One reading for both. */
	miss_until(LIB, FAR + 128);
	assert_true(was_put(FAR + 64));
	assert_int_equal(nr_far_read, 2);
	/* What was looked at once is not read for another who calls it. */
	put_call(MAIN + 256, FAR);
	miss_until(MAIN + 256, MAIN + 256);
	assert_int_equal(nr_far_read, 2);
}

/* Where nothing is nothing was waited for: the next place of the same process has its turn. */
static void one_that_is_not_there(void **state)
{
	const ssize_t results[] = { -EFAULT, -ETIMEDOUT };

	if (!*state)
		skip();
	for (unsigned int i = 0; i < 2; i++) {
		const uint64_t main = MAIN + 256 * i;

		nowhere_result = results[i];
		put_call(main, NOWHERE + 64 * i);
		put_call(main + 5, FAR + 64 * (i + 2));
		miss(base_now_ns());
		driver.missing.end_pc = main;
		memcpy(driver.missing.code, (uint8_t *)driver.code + (main - MAIN),
		       INSN_TRACE_CODE);
		while (trace_serve(traces))
			;
		assert_int_equal(was_put(FAR + 64 * (i + 2)), i == 0);
	}
}

/* What follows is of the process whose trace it was, not of the one before that. */
static void each_has_its_own(void **state)
{
	unsigned int nr = 0;

	if (!*state)
		skip();
	memset(driver.code, 0x90, sizeof(driver.code));
	put_call(MAIN, OWN);
	*((uint8_t *)driver.code + (OWN - MAIN)) = 0x50; /* push %rax, push %rcx */
	*((uint8_t *)driver.code + (OWN - MAIN) + 1) = 0xc3;
	/* Both in one turn, which the helper's start may take up. */
	for (int i = 0; i < 50 && nr < 2; i++) {
		miss(base_now_ns() + 1000000000);
		driver.nr_missing = 2;
		trace_serve(traces);
		nr = 0;
		for (unsigned int k = 0; k < driver.nr_put && k < PUT_MAX; k++)
			nr += driver.put[k] == OWN;
	}
	assert_int_equal(nr, 2);
}

#define CODE(test) cmocka_unit_test_setup_teardown(test, setup_translator, fake_traces_teardown)
#define READ(test) cmocka_unit_test_setup_teardown(test, setup_reader, fake_traces_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CODE(what_is_missing),
		CODE(many_misses_make_haste),
		CODE(what_cannot_be_served),
		CODE(another_process),
		CODE(a_flood),
		READ(what_lies_ahead),
		READ(one_that_is_not_there),
		READ(each_has_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
