/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bursts of single steps as traces (trace.h): the interpreter runs beside the processor, and what
 * it does not know, or knows otherwise, is put right after each instruction.
 */
#ifndef DCPI_STEP_RECORD_H
#define DCPI_STEP_RECORD_H

#include "step_shadow.h"
#include "step_wire.h"
#include "translator.h"

/* A thread stands no longer than that, but for what a translation takes. */
#define STEP_STOP_NS UINT64_C(5000000)

/* Code that bursts met, translated. */
struct step_blocks {
	struct base_map by_pc;	  /* the last one at each place */
	struct vtrace_code **all; /* all blocks by id - STEP_ID_FIRST; they stay */
	size_t nr, cap;
};

struct step_recorder {
	struct step_target target;
	struct step_shadow shadow;
	struct step_blocks blocks;
	struct translator *translator;
	/* state of the burst */
	struct vtrace_state s;
	struct step_regs regs;
	struct step_values values;
	uint64_t stopped_ns; /* since when its thread stands */
	struct {
		struct step_trace head;
		uint64_t words[VTRACE_NR_WORDS + 2 * VTRACE_NR_FIXES];
	} out;
	struct vtrace_fix fixes[VTRACE_NR_FIXES];
};

/*
 * A burst of one thread that runs: how many instructions, with the trace in r->out; 0: none;
 * -errno: no shadow can be had.
 */
int step_record(struct step_recorder *r);
void step_record_release(struct step_recorder *r);

#endif
