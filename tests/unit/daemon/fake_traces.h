/* SPDX-License-Identifier: BSD-2-Clause */
/* Traces over code known by hand, of a core beside stand-ins (stand_ins.h): a driver that runs and
 * keeps them, and what tests ask of it. */
#ifndef FAKE_TRACES_H
#define FAKE_TRACES_H

#include "stand_ins.h"
#include "vtrace_blocks.h"
#include "trace.h"

/* At MAIN: xor eax,eax; mov ecx,3; 1: call LIB; dec ecx; jnz 1b; syscall. At LIB: inc eax; ret. */
#define MAIN  0x401000ull
#define LIB   0x402000ull
#define CALL  (MAIN + 7)
#define AFTER (MAIN + 12)
#define JNZ   (MAIN + 14)
#define END   (MAIN + 16)
#define RET   (LIB + 2)
/* Offsets in "/bin/a" and "/lib/b". */
#define A(addr) ((addr)-MAIN + 0x1000)
#define B(addr) ((addr)-LIB + 0x5000)
#define OUTSIDE PROFDB_OUTSIDE

enum { PID = 10, PUT_MAX = 1024 };

struct fake_driver {
	struct driver base;
	struct driver_trace_stats stats;
	struct vtrace_blocks *blocks;
	uint64_t code[2048]; /* both pages, from MAIN on */
	uint64_t stack[64];
	struct insn_trace missing; /* of so many processes, PID and those that follow */
	unsigned int nr_missing, nr_put;
	uint64_t put[PUT_MAX];
	int put_result;
	uint32_t every; /* as it was told last; 0: it was not */
};

extern struct trial core;
extern struct fake_driver driver;
extern struct traces *traces;
extern struct vtrace_state machine; /* of the last trace */
extern const struct trace_driver fake_traces_calls;

/* All of these; who translates is in @helper_dir (NULL: nobody). 0. */
/* The configuration of traces over the core; @end of the life that @pid has. */
struct trace_config fake_traces_config(void);
void fake_end(int32_t pid, uint64_t time_ns);
int fake_traces_open(const char *helper_dir);
/* For cmocka: without who translates. At the end invariant 1 of traces is held, whatever a test
 * did. */
int fake_traces_setup(void **state);
int fake_traces_teardown(void **state);
/* PID has both pages mapped: MAIN "/bin/a", LIB "/lib/b". */
void fake_traces_map(void);
/* A trace of so many instructions from @pc on. */
struct insn_trace fake_run(uint64_t pc, uint16_t insns);
void fake_take(const struct insn_trace *trace);
struct image *fake_image(const char *path);
/* How often in both halves. */
uint64_t fake_moved(const char *path, uint64_t start, uint64_t from, uint64_t to);
uint64_t fake_nr_moves(const char *path);
uint64_t fake_lost(enum trace_loss loss);
uint64_t fake_stored(void);

#endif
