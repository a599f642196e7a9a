/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libdbgdyn: tell the DCPI daemon about code that this process creates at run time, so that the
 * analysis tools show it by routine, line and instruction, also after the process is gone.
 *
 * The library links libc alone, starts no thread, installs no handler, prints nothing, never blocks
 * but in dbgdyn_flush and dbgdyn_end (bounded, see there), and does nothing noticeable when no
 * daemon runs. Nothing here harms the program: a call that cannot do its work returns a negative
 * code, and after a refused dbgdyn_begin every later call with its context is a cheap no-op that
 * returns DBGDYN_EREFUSED. All calls may be made from any thread; they need no lock of the
 * caller's, leave errno alone and are no cancellation points. From a signal handler that
 * interrupted one of them a call gives up instead of waiting for itself: register with
 * DBGDYN_EFULL, counted; begin and add with DBGDYN_EFULL; flush and end with DBGDYN_ETIMEDOUT (end
 * closes the context all the same).
 *
 * fork: a context belongs to the process that began it. In a child every call with one of the
 * parent's contexts returns DBGDYN_EREFUSED at once; what the parent told until then holds for the
 * child too, as the daemon knows. A child that makes code of its own begins anew. After exec
 * nothing is left. dlopen and dlclose: the library stays loaded until the process ends.
 *
 * Source: the three calls DBG$DYN_BEGIN, DBG$DYN_ADD, DBG$DYN_END of DCPI for OpenVMS; under their
 * original names and argument order they stand in dbgdyn_vms.h.
 *
 * Two ways to use it, also both at once:
 *  - record writer: begin, then register each routine as it is made, end when no more will come;
 *  - the seed's own contract: begin and add name ranges that the application owns, into which it
 *    writes code and debug-symbol (DST) records; the daemon reads them when it likes.
 */
#ifndef DBGDYN_H
#define DBGDYN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define DBGDYN_API __attribute__((visibility("default")))
#else
#define DBGDYN_API
#endif

#define DBGDYN_VERSION_MAJOR 0
#define DBGDYN_VERSION_MINOR 1

/* Results: 0 good, below 0 bad. */
enum dbgdyn_result {
	DBGDYN_OK = 0,
	DBGDYN_EINVAL = -1, /* an argument is wrong: NULL, empty or wrapping range, unknown kind */
	DBGDYN_ENOMEM = -2, /* no memory, descriptor, file size or address space for the registry */
	DBGDYN_ENODAEMON = -3, /* flush, end: no daemon answers; the program may go on */
	DBGDYN_ETIMEDOUT = -4, /* flush, end: a daemon is there but did not finish in time */
	DBGDYN_EFULL =
		-5, /* a bound is reached (facilities, ranges, ring); counted, see each call */
	DBGDYN_EREFUSED =
		-6,	 /* the context is not one that begin returned with success, or has ended */
	DBGDYN_EIO = -7, /* flush, end: the daemon could not write the image (its log says why) */
};

/* Text of a result; never NULL, static storage. */
DBGDYN_API const char *dbgdyn_strerror(int result);

enum dbgdyn_kind {
	DBGDYN_CODE = 1, /* machine code, written and run by the application */
	DBGDYN_DST = 2, /* debug-symbol records in the layout of dbgdyn_vms.h, growing upwards, rest
			   zero */
};

/* Option structs start with their size, so that they can grow: set it with sizeof. */
struct dbgdyn_options {
	size_t size;
	const void *code_base; /* first application-owned code range; NULL with code_len 0: none */
	size_t code_len;
	const void *dst_base; /* first DST range, likewise */
	size_t dst_len;
	uint32_t timeout_ms; /* longest wait of flush and end; 0: 10,000 */
	uint32_t flags;	     /* must be 0 */
};

/*
 * Announce a facility (a JIT engine in this process; the pseudo-image file's name begins with it).
 * Call it before any of its code runs. @facility: @facility_len bytes, 1 to 104, any bytes but
 * those unfit for a file name are replaced there. @opts may be NULL (no range, default timeout).
 * Stores a context for the later calls into *@context (never 0; 0 where begin fails). Succeeds
 * whether or not a daemon runs; a daemon that starts later finds the process by itself. At most 64
 * facilities a process. Returns DBGDYN_OK, DBGDYN_EINVAL, DBGDYN_ENOMEM, DBGDYN_EFULL. Environment:
 * DCPI_RUN (folder of the daemon's sockets) and DCPI_QUEUE (name of its message queue) replace the
 * defaults /run/dcpi and /dcpi, but not in set-id programs.
 */
DBGDYN_API int dbgdyn_begin(const char *facility, size_t facility_len,
			    const struct dbgdyn_options *opts, uint64_t *context);

/*
 * Add a further application-owned range (the first ones may be given to begin). The range belongs
 * to the application: it writes code or DST records there, lowest address first, unused parts zero,
 * and does not change what is written. The daemon reads it at times of its own choosing until end.
 * At most 2,048 ranges a process. DBGDYN_OK, _EINVAL, _EFULL, _EREFUSED.
 */
DBGDYN_API int dbgdyn_add(uint64_t context, enum dbgdyn_kind kind, const void *base, size_t len);

/* From code_off on (up to the next entry) the code is of this line. */
struct dbgdyn_line {
	uint32_t code_off; /* bytes from the routine's start, ascending */
	uint32_t line;	   /* from 1; 0: no source */
	uint32_t file;	   /* index into the routine's files */
};

struct dbgdyn_string {
	const char *text; /* UTF-8 by custom; any bytes are survived */
	size_t len;
};

struct dbgdyn_routine {
	size_t size;
	struct dbgdyn_string name;	 /* 1 to 4,095 bytes, the rest is cut */
	const void *code;		 /* where it runs */
	size_t code_len;		 /* 1 to 16 MiB */
	const struct dbgdyn_line *lines; /* may be NULL */
	size_t nr_lines;
	const struct dbgdyn_string *files; /* source files, absolute names by custom; may be NULL */
	size_t nr_files;
};

/*
 * Tell of a routine: its code is written, it has not run. Copies what it needs (with a daemon
 * attached the code's bytes too, so they must be readable) before it returns; makes no system call
 * but one doorbell when the ring is half full, never waits. *@handle (may be NULL) names it in
 * later calls, above 0. When the ring is full (4 MiB that a daemon has not fetched, or no daemon
 * has come) the record is dropped and counted; the daemon's status shows how many. A routine whose
 * address overlaps earlier ones replaces them from then on. The record with code, name, lines and
 * files must fit into the ring; a code too long for it is left out and read from the process later.
 * DBGDYN_OK, _EINVAL (a line outside the code, not ascending, or of a file that is not there; a
 * file's name above 65,535 bytes; an empty name), _EFULL, _EREFUSED.
 */
DBGDYN_API int dbgdyn_register(uint64_t context, const struct dbgdyn_routine *routine,
			       uint64_t *handle);

/*
 * Return when everything told so far is on disk in the pseudo-image (file and folder synced), or
 * say that no daemon runs: within milliseconds where none is to be found, within a second where one
 * was killed and left its queue behind. Waits at most timeout_ms for a daemon that is there,
 * polling with sleeps of up to 5 ms. DBGDYN_OK, _ENODAEMON, _ETIMEDOUT, _EIO, _EREFUSED.
 */
DBGDYN_API int dbgdyn_flush(uint64_t context);

/*
 * The facility makes no more code: as flush, then the context is closed (always, whatever the
 * result). The code may go on running: its samples are charged to the image until the process ends.
 */
DBGDYN_API int dbgdyn_end(uint64_t context);

#ifdef __cplusplus
}
#endif
#endif
