/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Single steps, but not of the program: of a child without any memory or rights, which is given the
 * program's registers, and of its memory the pages that it touches. A program that is itself
 * stepped dies of SIGTRAP when whoever steps it is killed; one that only stands goes on.
 * x86-64 alone.
 */
#ifndef DCPI_STEP_SHADOW_H
#define DCPI_STEP_SHADOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "step_target.h"

enum { STEP_PAGES_MAX = 128, STEP_PAGE = 4096 };

struct step_shadow {
	pid_t pid; /* 0: there is none */
	bool has_fd;
	int fd; /* the file that it maps: its own page, then those in pages[] */
	struct user_regs_struct idle;
	uint64_t pages[STEP_PAGES_MAX]; /* that it has */
	size_t nr_pages;
};

/* Start it. 0, -errno. */
int step_shadow_open(struct step_shadow *s);
void step_shadow_close(struct step_shadow *s);
/* Without memory, with these registers. 0, or -errno: then it is of no use any more. */
int step_shadow_begin(struct step_shadow *s, const struct step_regs *regs);
/*
 * One instruction, with what it touches of @t's memory. 1: @regs are those behind it; 0: it does
 * not run to its end (no memory there, a division by zero, …); -errno: the shadow is lost.
 */
int step_shadow_step(struct step_shadow *s, struct step_target *t, struct step_regs *regs);
/* Its memory, and where it has none @t's. 0, -EFAULT. */
int step_shadow_read(const struct step_shadow *s, const struct step_target *t, void *to, size_t len,
		     uint64_t addr);

#endif
