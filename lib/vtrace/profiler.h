/* SPDX-License-Identifier: BSD-2-Clause */
/* Value profilers (dcpivprofiler(5)): shared objects that dcpid-values and the tools load. */
#ifndef DCPI_VTRACE_PROFILER_H
#define DCPI_VTRACE_PROFILER_H

#include "base.h"
#include "vprofiler.h"

#define VTRACE_PROFILER_NAME 64

struct vtrace_profiler {
	void *handle;
	const vp_dispatch_t *dispatch;
	char name[VTRACE_PROFILER_NAME]; /* vp_name */
};

/* May @path be loaded? An absolute path of a regular file that is root's or our own user's, which
 * others, or another group than root's and ours, cannot write or replace. 0, or -EACCES, -EINVAL,
 * -errno with @err. */
int vtrace_profiler_check(const char *path, struct base_err *err);
/*
 * Load it and call its init. It is run in this process: whatever it does, it may do.
 * -DCPI_EFORMAT: no _dispatch in it, or it lacks a function, or its name is none, or reserved.
 */
int vtrace_profiler_load(const char *path, struct vtrace_profiler *out, struct base_err *err);
/* Calls its fini. Safe on a zeroed object. */
void vtrace_profiler_unload(struct vtrace_profiler *p);

#endif
