/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processor's own steps of one program, in short bursts (dcpid-step): traces of which all
 * registers are known, floating point included. The program stands for a few ms while it is looked
 * at, at most a twentieth of the time, and goes on whatever becomes of us.
 */
#ifndef DCPI_DAEMON_STEP_H
#define DCPI_DAEMON_STEP_H

#include <sys/types.h>

#include "base.h"
#include "vtrace.h"
#include "insn_trace.h"

struct step;

struct step_stats {
	uint64_t instructions;
	uint64_t stopped_ns; /* that a thread stood, in bursts that gave something */
	uint64_t by_end[VTRACE_NR_ENDS];
	bool ended; /* no more will come */
};

/*
 * Begin to step @pid, with the programs in @helper_dir. Negative with @err: -ESRCH, -EINVAL (a
 * kernel thread), -EBUSY (it is traced), -EPERM, -DCPI_EUNSUPPORTED (not on this machine),
 * -ETIMEDOUT, -DCPI_EHELPER.
 */
int step_open(const char *helper_dir, pid_t pid, struct step **out, struct base_err *err);
void step_close(struct step *s);
pid_t step_pid(const struct step *s);
/* Hand on the traces that have come; their blocks are step_block's. Never blocks. */
void step_receive(struct step *s,
		  void (*fn)(void *ctx, const struct insn_trace *w, const uint64_t *words),
		  void *ctx);
/* The block of a trace's word, until step_close; NULL: there is none. */
const struct vtrace_code *step_block(const struct step *s, uint32_t id);
/* Is @id one of step_block's? */
bool step_has_id(uint32_t id);
/* -1: nothing more will come. */
int step_poll_fd(const struct step *s);
void step_stats_get(const struct step *s, struct step_stats *out);

#endif
