/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A value profiler: a shared object that exports _dispatch (dcpivprofiler(5)). Link it with
 * libtrace.a.
 */
#ifndef DCPI_VPROFILER_H
#define DCPI_VPROFILER_H

#include <trace-inst.h>
#include <trace-parse.h>
#include <trace-vlist.h>

#ifdef __cplusplus
extern "C" {
#endif

/* No trace has more instructions. */
#define VSAMPLE_BUFFER_SIZE 1024

/* A value that pc had, in these contexts (0: none). */
typedef struct vsample {
	unsigned long pc;
	unsigned long context0;
	unsigned long context1;
	unsigned long value;
} vsample_t;

/* name, prof_init and prof_process are needed; the others may be NULL. */
typedef struct vp_dispatch {
	const char *(*name)(void);
	void (*init)(void);
	void (*fini)(void);
	trace_vlist_table_t *(*prof_init)(void);
	void (*prof_fini)(void);
	int (*prof_process)(unsigned int pid, trace_parser_t *parser, vsample_t **vsamples);
	const char *(*preface)(unsigned int inst);
	const char *(*format)(unsigned int inst, unsigned long value);
} vp_dispatch_t;

/* The profiler's own. */
extern vp_dispatch_t _dispatch;

#ifdef __cplusplus
}
#endif

#endif
