/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bursts of single steps as traces (trace.h): the interpreter runs beside the processor, and what
 * it does not know, or knows otherwise, is put right after each instruction.
 */
#ifndef DCPI_STEP_RECORD_H
#define DCPI_STEP_RECORD_H

#include <sys/types.h>
#include <sys/user.h>

#include "step_wire.h"
#include "translator.h"

/* Registers of a thread that is stopped, vectors included. */
struct step_regs {
	struct user_regs_struct u;
	size_t len;
	_Alignas(64) uint8_t x[16384]; /* as XSAVE lays them out */
};

/*
 * Registers by the interpreter's numbers (uop.h), valid if @has is set; flags are VTRACE_C and the
 * others.
 */
struct step_values {
	uint64_t r[VTRACE_NR_REGS];
	bool has[VTRACE_NR_REGS];
	uint8_t flags;
};

struct step_map {
	uint64_t start, end;
	int prot;
};

struct step_target {
	pid_t pid;
	int fd; /* readable when it has ended */
	pid_t *tids;
	size_t nr_tids, cap_tids, next;
	struct step_map *maps; /* mappings of the burst, read on demand */
	size_t nr_maps, cap_maps;
	bool has_maps;
};

/* Negative with @err: there is no such process, it is a kernel thread, it is traced by
 * another one, it may not be looked at. */
int step_target_open(pid_t pid, struct step_target *t, struct base_err *err);
void step_target_close(struct step_target *t);

/*
 * Single steps, but not of the program: of a child without any memory or rights, the shadow, which
 * is given the program's registers, and of its memory the pages that it touches. A program that is
 * itself stepped dies of SIGTRAP when whoever steps it is killed; one that only stands goes on.
 * x86-64 alone.
 */
enum { STEP_PAGES_MAX = 128, STEP_PAGE = 4096 };

struct step_shadow {
	pid_t pid; /* 0: there is none */
	bool has_fd;
	int fd; /* the file that it maps: its own page, then those in pages[] */
	struct user_regs_struct idle;
	uint64_t pages[STEP_PAGES_MAX]; /* that it has */
	size_t nr_pages;
};

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

/* Begin with process @pid. Negative with @err: as step_target_open, or no shadow can be had. */
int step_record_open(struct step_recorder *r, pid_t pid, struct base_err *err);
/*
 * A burst of one thread that runs: how many instructions, with the trace in r->out; 0: none;
 * -errno: no shadow can be had.
 */
int step_record(struct step_recorder *r);
void step_record_release(struct step_recorder *r);

#endif
