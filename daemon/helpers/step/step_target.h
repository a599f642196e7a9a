/* SPDX-License-Identifier: BSD-2-Clause */
/* The program that is looked at: which of its threads run, one of them stopped, what it has. */
#ifndef DCPI_STEP_TARGET_H
#define DCPI_STEP_TARGET_H

#include <sys/types.h>
#include <sys/user.h>

#include "base.h"
#include "vtrace.h"

/* Registers of a thread that is stopped, vectors included. */
struct step_regs {
	struct user_regs_struct u;
	size_t len;
	_Alignas(64) uint8_t x[16384]; /* as XSAVE lays them out */
};

int step_regs_get(pid_t tid, struct step_regs *out);
int step_regs_put(pid_t tid, const struct step_regs *r);

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

/* Negative with @err: there is no such process, it is a kernel thread, it is traced by somebody
 * else, it may not be looked at. */
int step_target_open(pid_t pid, struct step_target *t, struct base_err *err);
void step_target_close(struct step_target *t);

/* While one of its threads stands. 0, -EFAULT. */
int step_target_read(const struct step_target *t, void *to, size_t len, uint64_t addr);
/* PROT_… of the page at @addr, or -EFAULT. */
int step_target_prot(struct step_target *t, uint64_t addr);

#endif
