/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows over code known by hand, of a core beside stand-ins (stand_ins.h): a driver that runs and
 * keeps them, and what tests ask of it. */
#ifndef FAKE_WINDOWS_H
#define FAKE_WINDOWS_H

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

struct driver {
	struct driver_window_stats stats;
	struct vtrace_blocks *blocks;
	uint64_t code[2048]; /* both pages, from MAIN on */
	uint64_t stack[64];
	struct vtrace_window missing; /* of so many processes, PID and those that follow */
	unsigned int nr_missing, nr_put;
	uint64_t put[PUT_MAX];
	int put_result;
};

extern struct trial core;
extern struct driver driver;
extern struct windows *windows;
extern struct vtrace_state machine; /* of the last window */
extern const struct windows_driver fake_windows_calls;

/* All of these; who translates is in @helper_dir (NULL: nobody). 0. */
/* The configuration of windows over the core; @end of the life that @pid has. */
struct windows_config fake_windows_config(void);
void fake_end(int32_t pid, uint64_t time_ns);
int fake_windows_open(const char *helper_dir);
/* For cmocka: without who translates. At the end law 1 of windows is held, whatever a test did. */
int fake_windows_setup(void **state);
int fake_windows_teardown(void **state);
/* PID has both pages mapped: MAIN "/bin/a", LIB "/lib/b". */
void fake_windows_map(void);
/* A window of so many instructions from @pc on. */
struct vtrace_window fake_run(uint64_t pc, uint16_t insns);
void fake_take(const struct vtrace_window *window);
struct image *fake_image(const char *path);
/* How often in both halves. */
uint64_t fake_moved(const char *path, uint64_t start, uint64_t from, uint64_t to);
uint64_t fake_nr_moves(const char *path);
uint64_t fake_lost(enum windows_loss loss);
uint64_t fake_stored(void);

#endif
