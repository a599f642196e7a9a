/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * opagent_jit PREFIX SECONDS: a JIT built for OProfile's agent library. Slot 1 is told as the guide
 * has it, lines after code; slot 2 lines first, and its bytes in another place; in a third place
 * one slot after another comes and goes, told without bytes. Prints "PREFIX_SLOT SECONDS" of CPU
 * time.
 */
#include <opagent.h>
#include <stdio.h>
#include <stdlib.h>

#include "truth_jit.h"

enum { FIRST_TURNING = 10, NR_TURNING = 20 };

static op_agent_t agent;
static const char *prefix;
static double ran[TRUTH_SLOTS];
static uint64_t seed = 1;

static void must(int r, const char *what)
{
	if (r == 0)
		return;
	perror(what);
	exit(1);
}

static void tell_code(int slot, const unsigned char *code, const void *bytes)
{
	char name[64];

	snprintf(name, sizeof(name), "%s_%d", prefix, slot);
	must(op_write_native_code(agent, name, (uintptr_t)code, bytes, TRUTH_BLOCK),
	     "op_write_native_code");
}

static void tell_lines(int slot, const void *bytes)
{
	unsigned long at = (unsigned long)(uintptr_t)bytes;
	struct debug_line_info lines[] = {
		{ at, truth_line(slot, 0), "/src/truth.jit" },
		{ at + TRUTH_HEAD, truth_line(slot, TRUTH_HEAD), "/src/truth.jit" },
	};

	must(op_write_debug_line_info(agent, bytes, 2, lines), "op_write_debug_line_info");
}

static void run(int slot, const unsigned char *code, double seconds)
{
	ran[slot] += truth_run(code, CLOCK_THREAD_CPUTIME_ID, seconds, &seed);
}

static void turn(int slot, unsigned char *code)
{
	truth_put(code, slot);
	tell_code(slot, code, NULL);
	tell_lines(slot, code);
	run(slot, code, 0.01);
	must(op_unload_native_code(agent, (uintptr_t)code), "op_unload_native_code");
}

int main(int argc, char **argv)
{
	static unsigned char bytes[TRUTH_BLOCK];
	unsigned char *code = truth_map(8192);
	double end = truth_clock(CLOCK_THREAD_CPUTIME_ID) + (argc > 2 ? atof(argv[2]) : 0);
	int slot = 0;

	if (argc < 3 || !code)
		return 2;
	prefix = argv[1];
	agent = op_open_agent();
	must(!agent, "op_open_agent");
	truth_put(code, 1);
	tell_code(1, code, code);
	tell_lines(1, code);
	truth_put(code + 4096, 2);
	truth_code(bytes, 2);
	tell_lines(2, bytes);
	tell_code(2, code + 4096, bytes);
	while (truth_clock(CLOCK_THREAD_CPUTIME_ID) < end) {
		run(1, code, 0.02);
		run(2, code + 4096, 0.01);
		turn(FIRST_TURNING + slot++ % NR_TURNING, code + 2048);
	}
	must(op_close_agent(agent), "op_close_agent");
	truth_print(prefix, ran);
	return 0;
}
