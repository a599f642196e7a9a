/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random instructions, run by the interpreter of lib/vtrace and by an emulator that others wrote:
 * whatever the interpreter calls known must be what the emulator has.
 */
#ifndef DCPI_ORACLE_H
#define DCPI_ORACLE_H

#include <unicorn/unicorn.h>

#include "vtrace_blocks.h"

enum {
	ORACLE_CODE = 0x400000,
	ORACLE_CODE_LEN = 0x40000,
	ORACLE_DATA = 0x10000000,
	ORACLE_DATA_LEN = 0x4000,
	ORACLE_MAX_INSNS = 8,
	ORACLE_MAX_GENERAL = 34,
	ORACLE_MAX_VECTORS = 32,
};

uint64_t oracle_random(void);
/* One of the numbers at which arithmetic breaks, or any. */
uint64_t oracle_value(void);
/* Somewhere in the middle of the data. */
uint64_t oracle_pointer(void);

struct oracle_arch {
	const char *name;
	enum vtrace_arch arch;
	uc_arch uc_arch;
	uc_mode uc_mode;
	int cpu; /* the emulator's model */
	int pc, flags;
	/* The emulator's names of registers, and the interpreter's numbers. */
	const int *general, *vectors;
	const uint8_t *numbers;
	int nr_general, nr_vectors;
	/* Of how many instructions of integers at least all must be known, in per cent. */
	unsigned int known_pct;
	void (*prepare)(uc_engine *uc); /* may be NULL */
	uint64_t (*flags_to_machine)(uint8_t flags);
	uint8_t (*flags_of_machine)(uint64_t flags);
	uint8_t flags_compared;
	/* What stands behind the code: it ends the trace. Flags are kept up to there. */
	uint8_t filler;
	/* A register's first content. */
	uint64_t (*content)(int number);
	/*
	 * One instruction into @code (16 bytes): its length. *integer: it must be known. *jumps:
	 * into the middle of what comes then, so that nothing should.
	 */
	size_t (*generate)(uint8_t *code, bool *integer, bool *jumps);
};

extern const struct oracle_arch oracle_aarch64, oracle_x86;

#endif
