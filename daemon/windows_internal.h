/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the parts of windows.h. */
#ifndef DCPI_DAEMON_WINDOWS_INTERNAL_H
#define DCPI_DAEMON_WINDOWS_INTERNAL_H

#include "daemon_core.h"
#include "windows.h"

/* A window that waits, with all that is needed to go on. */
struct windows_pending {
	struct process *p;
	struct vtrace_window w;
	uint64_t number;
	uint64_t until_ns; /* base_now_ns up to which it waits for its registry; 0: not asked yet */
	size_t nr;
	struct windows_step steps[WINDOWS_STEPS];
};

/* Processes whose blocks are put: what of them the driver has. */
struct windows_code {
	struct base_map by_tgid; /* struct windows_program */
	uint64_t budget_ns;	 /* time that may be spent on translating now */
	uint64_t refilled_ns;
	uint64_t full_ns; /* the driver had no room then; 0 */
	uint32_t fetched_tgid;
	uint64_t fetched_base;
	size_t fetched_len; /* 0: nothing is in code[] */
	uint8_t code[TRANSLATOR_CODE];
};

struct windows {
	struct windows_config config;
	const struct windows_driver *calls;
	struct translator *translator;
	struct windows_stats stats; /* the daemon's part */
	uint64_t number;	    /* of the next window */
	struct windows_pending **waiting;
	size_t nr_waiting, cap_waiting;
	struct windows_code code;
};

/* windows_code.c */

void windows_code_release(struct windows_code *c);
/* @tgid had a window at @time_ns: its blocks are in use. */
void windows_code_used(struct windows *t, uint32_t tgid, uint64_t time_ns);
/* The blocks of processes that ended are forgotten; once their windows need them no more. */
void windows_code_settle(struct windows *t);

#endif
