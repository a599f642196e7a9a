/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part that every source shares. A source's own struct begins with struct driver and is given
 * out as one; driver.c dispatches by the ops. driver_open calls a source's function NAME_open
 * (bpf_open, perf_open, …).
 */
#ifndef DCPI_DRIVER_SOURCE_H
#define DCPI_DRIVER_SOURCE_H

#include "driver.h"

/* Operations of a source with traces, while traces are asked for; see driver.h. */
struct driver_trace_ops {
	int (*missing)(struct driver *d, int (*fn)(void *ctx, const struct insn_trace *w),
		       void *ctx);
	int (*block_put)(struct driver *d, const struct vtrace_code *code);
	const struct vtrace_code *(*block_get)(const struct driver *d, uint32_t id);
	void (*stats)(const struct driver *d, struct driver_trace_stats *out);
};

/* Operations of a source with call paths, likewise. */
struct driver_callpath_ops {
	int (*missing)(struct driver *d, int (*fn)(void *ctx, const struct driver_rows_missing *m),
		       void *ctx);
	int (*put)(struct driver *d, const struct driver_file *file,
		   const struct unwind_table *table);
	void (*again)(struct driver *d, const struct driver_file *file);
	void (*forget)(struct driver *d, const struct driver_file *files, size_t nr);
	bool (*rule)(struct driver *d, const struct driver_file *file, uint64_t off,
		     struct unwind_rule *rule);
	void (*stats)(const struct driver *d, struct driver_callpath_stats *out);
};

/* Operations of a source that measures waits. */
struct driver_wait_ops {
	void (*stats)(const struct driver *d, struct driver_wait_stats *out);
};

struct driver_ops {
	int (*start)(struct driver *d, struct base_err *err);
	int (*drain)(struct driver *d, bool all, const struct driver_sink *sink,
		     struct base_err *err);
	int (*poll_fd)(const struct driver *d);
	/* Both NULL: it cannot tell */
	int (*look)(struct driver *d);
	int (*wake_at_exec)(struct driver *d);
	void (*busy)(struct driver *d, bool busy); /* NULL: nothing is lost meanwhile */
	/* NULL: every sample is handed on by itself */
	int (*client_set)(struct driver *d, int32_t pid, const struct driver_client *client);
	/* Both NULL: it tells no names. */
	const char *(*thread_name)(const struct driver *d, uint32_t thread);
	void (*threads_forget)(struct driver *d);
	void (*stop)(struct driver *d);
	void (*close)(struct driver *d); /* frees @d; also called on a half-opened source */
};

struct driver {
	const struct driver_ops *ops;
	const struct driver_trace_ops *traces;	     /* NULL: there are none */
	const struct driver_callpath_ops *callpaths; /* likewise */
	const struct driver_wait_ops *waits;	     /* likewise */
	struct driver_event events[DRIVER_NR_EVENTS];
	size_t nr_events; /* that are sampled */
	size_t nr_timed;  /* behind them, those whose counts are nanoseconds */
	struct driver_stats stats;
	int64_t utc;	   /* when the recorded stream began; -1: live */
	char refused[256]; /* why it is not the source that would be better; or empty */
	char describe[640];
	char *agent_env; /* see driver_agent_env; the source's */
};

/* ---- where we are (host_linux.c) ------------------------------------------------------------ */

/* In one of a container's: what capabilities it has there are none for sampling or for BPF. */
bool driver_in_user_namespace(void);
/* "run as root", or what that means in a user namespace; a hint begins with it. */
const char *driver_run_as_root(void);
/* Why /sys/kernel/btf/vmlinux is not there, and what to do. */
const char *driver_no_types(const char **hint);

#endif
