/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every source shares. A source's own struct begins with struct driver and is handed out as
 * one; driver.c dispatches by the ops.
 */
#ifndef DCPI_DRIVER_INTERNAL_H
#define DCPI_DRIVER_INTERNAL_H

#include "driver.h"

/* Of a source that has windows, while they are asked for; see driver.h. */
struct driver_window_ops {
	int (*missing)(struct driver *d, int (*fn)(void *ctx, const struct vtrace_window *w),
		       void *ctx);
	int (*block_put)(struct driver *d, const struct vtrace_code *code);
	const struct vtrace_code *(*block_get)(const struct driver *d, uint32_t id);
	void (*stats)(const struct driver *d, struct driver_window_stats *out);
};

struct driver_ops {
	int (*start)(struct driver *d, struct base_err *err);
	int (*drain)(struct driver *d, bool all, const struct driver_sink *sink,
		     struct base_err *err);
	int (*poll_fd)(const struct driver *d);
	/* Both NULL: it cannot tell */
	int (*look)(struct driver *d);
	int (*wake_at_exec)(struct driver *d);
	/* NULL: every sample is handed on by itself */
	int (*client_set)(struct driver *d, int32_t pid, const struct driver_client *client);
	void (*stop)(struct driver *d);
	void (*close)(struct driver *d); /* frees @d; also called on a half-opened source */
};

struct driver {
	const struct driver_ops *ops;
	const struct driver_window_ops *windows; /* NULL: there are none */
	struct driver_event events[DRIVER_NR_EVENTS];
	size_t nr_events;
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

/* ---- events by name (event.c) -------------------------------------------------------------- */

/* Nanoseconds: the kernel's clocks go no faster. */
enum { EVENT_CLOCK_LEAST = 10000 };

/* What to sample, before any system call. Numbers as perf_event_open(2) takes them. */
struct event_spec {
	char name[32]; /* as announced and stored: the text without its period */
	bool tick;     /* the scheduler's tick: no perf event at all */
	bool clock;    /* counts nanoseconds: can be said to miss samples */
	uint32_t type; /* PERF_TYPE_*, or a PMU's number from sysfs */
	uint64_t config, config1, config2;
	uint64_t period;      /* 0: by frequency */
	unsigned int precise; /* precise_ip, 0 to 3 */
	bool exclude_user, exclude_kernel, exclude_hv;
	uint64_t slots; /* bit i: has its turn with slot i; events of one slot count together */
};

/*
 * "NAME[:MODIFIERS][:PERIOD]". @sysfs: the folder of PMUs (NULL: '/sys/bus/event_source/devices').
 * -DCPI_EUSAGE: no such event (the nearest names as hint), or a bad modifier or period.
 */
int event_parse(const char *text, const char *sysfs, struct event_spec *out, struct base_err *err);
/*
 * All slots, in order: at most EVENT_NR_SLOTS, of DRIVER_NR_EVENTS different events. An event may
 * be in several slots, all alike; tick, which has no turns, only in all. The number of events, or
 * as above.
 */
enum { EVENT_NR_SLOTS = 63 };
int event_parse_slots(const char *const *slots, size_t nr_slots, const char *sysfs,
		      struct event_spec *out, struct base_err *err);

/* ---- sources --------------------------------------------------------------------------------- */

/* Counts in the kernel, by a BPF program. */
int bpf_open(const struct driver_config *config, struct driver **out, struct base_err *err);
int perf_open(const struct driver_config *config, struct driver **out, struct base_err *err);
int inprocess_open(const struct driver_config *config, struct driver **out, struct base_err *err);
int replay_open(const struct driver_config *config, struct driver **out, struct base_err *err);
/* @in is closed with the driver, also when this fails; @name stands in messages. */
int replay_open_stream(FILE *in, const char *name, struct driver **out, struct base_err *err);
/* The file that @config names, or standard input. A pipe that is silent while
 * @config->stop_fd is readable ends with an error, errno ECANCELED. */
int replay_input_open(const struct driver_config *config, FILE **out, struct base_err *err);
/* base_now_ns when a drain of @in that begins now leaves off; UINT64_MAX: it is no pipe. */
uint64_t replay_drain_end(FILE *in);

/* ---- the recorded stream's words: record.c writes them, replay.c reads them ------------------ */

#define REPLAY_MAGIC "dcpi-replay"
enum { REPLAY_VERSION = 1 };

/* Keys of a record line, in the order in which they are written. */
#define REPLAY_KEYS(X)                                                                             \
	X(FIRST, "first")                                                                          \
	X(TIME, "t")                                                                               \
	X(PID, "pid")                                                                              \
	X(PPID, "ppid")                                                                            \
	X(TID, "tid")                                                                              \
	X(EVENT, "event")                                                                          \
	X(MODE, "mode")                                                                            \
	X(GENERATION, "gen")                                                                       \
	X(UNREAD, "unread")                                                                        \
	X(CURSOR, "cursor")                                                                        \
	X(GONE, "gone")                                                                            \
	X(ADDR, "addr")                                                                            \
	X(LEN, "len")                                                                              \
	X(OFF, "off")                                                                              \
	X(PROT, "prot")                                                                            \
	X(MAJOR, "major")                                                                          \
	X(MINOR, "minor")                                                                          \
	X(INODE, "inode")                                                                          \
	X(COUNT, "n")                                                                              \
	X(ID, "id")                                                                                \
	X(DATA, "data")                                                                            \
	X(PATH, "path")

enum replay_key {
#define X(id, name) REPLAY_##id,
	REPLAY_KEYS(X)
#undef X
		REPLAY_NR_KEYS
};

#define REPLAY_BIT(key) (1u << REPLAY_##key)

/* A kind of line: the keys it must and may have. Bit i is enum replay_key i. */
struct replay_kind {
	const char *name;
	uint32_t must, may;
};

/* Indexed by enum driver_load_kind; the last entry is the count line. */
enum { REPLAY_COUNT_LINE = DRIVER_LOAD_LABEL + 1, REPLAY_NR_KINDS };
extern const struct replay_kind replay_kinds[REPLAY_NR_KINDS];
extern const char *const replay_keys[REPLAY_NR_KEYS];
extern const char *const replay_modes[DRIVER_OTHER + 1];

/* A record line. Strings and data lie in the line. */
struct replay_record {
	bool is_count;
	struct driver_load load;
	struct driver_count count;
};

enum { REPLAY_WHY_LEN = 160 };

/*
 * Take @line (writable, 8-byte aligned, without its newline) apart; it is cut up and overwritten.
 * 0, or -DCPI_EFORMAT with the cause in @why (REPLAY_WHY_LEN bytes).
 */
int replay_line_parse(char *line, struct replay_record *out, char *why);
/* The next word at *@at, cut off in place; NULL at the end. */
char *replay_word_next(char **at);
/* Decimal, or hexadecimal behind 0x. No sign, no blank, nothing behind it. */
bool replay_number_parse(const char *s, uint64_t *out);
bool replay_signed_parse(const char *s, int64_t min, int64_t max, int64_t *out);

/* What an absent prot means: an ordinary text mapping, PROT_READ | PROT_EXEC. */
enum { REPLAY_PROT_DEFAULT = 5 };

#endif
