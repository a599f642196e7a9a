/* SPDX-License-Identifier: BSD-2-Clause */
/* The source "replay" from within: its input (input.c) and the words of a recorded stream. */
#ifndef DCPI_REPLAY_INTERNAL_H
#define DCPI_REPLAY_INTERNAL_H

#include "replay_source.h"
#include "source.h"

/* ---- input (input.c) ------------------------------------------------------------------------- */

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

/* The default of an absent prot: an ordinary text mapping, PROT_READ | PROT_EXEC. */
enum { REPLAY_PROT_DEFAULT = 5 };

#endif
