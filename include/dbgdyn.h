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
 * interrupted one of them a call gives up instead of waiting for itself: register, retire and move
 * with DBGDYN_EFULL, counted; begin and add with DBGDYN_EFULL; flush and end with DBGDYN_ETIMEDOUT
 * (end closes the context all the same). Such a change is not made: after a refused register or
 * move the old routines still count as living there, and get the samples, until a call outside the
 * handler retires or registers again.
 *
 * fork: a context belongs to the process that began it. In a child every call with one of the
 * parent's contexts returns DBGDYN_EREFUSED at once; what the parent told until then holds for the
 * child too; for a daemon that comes after the fork, what of it the parent still has, while both
 * live. A child that makes code of its own begins anew; the parent's handles name nothing there
 * (DBGDYN_EINVAL), and what it registers over inherited code replaces that. A child that shares the
 * parent's memory (vfork, clone with CLONE_VM alone) is the parent here: it must not call, for its
 * samples are looked up as its parent's code was when it began. After exec nothing is left. dlopen
 * and dlclose: the library stays loaded until the process ends.
 *
 * Source: the three calls DBG$DYN_BEGIN, DBG$DYN_ADD, DBG$DYN_END of DCPI for OpenVMS; under their
 * original names and argument order they stand in dbgdyn_vms.h.
 *
 * Two ways to use it, also both at once:
 *  - record writer: begin, then register each routine as it is made, end when no more will come;
 *  - as those calls had it: begin and add name ranges that the application owns, into which it
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
#define DBGDYN_VERSION_MINOR 2

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
	DBGDYN_EINPROGRESS = -8 /* flush, end without system calls: asked for, nobody waited */
};

/* Text of a result; never NULL, static storage. */
DBGDYN_API const char *dbgdyn_strerror(int result);

/* Name a facility, and a routine or object of it, in later calls. An id of 0 names nothing. */
typedef struct {
	uint64_t id;
} dbgdyn_context;
typedef struct {
	uint64_t id;
} dbgdyn_handle;

enum dbgdyn_kind {
	DBGDYN_CODE = 1, /* machine code, written and run by the application */
	DBGDYN_DST = 2 /* debug-symbol records in the layout of dbgdyn_vms.h, growing upwards, rest
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
	uint32_t flags;	     /* DBGDYN_NO_SYSCALLS, DBGDYN_REGISTRY_FD */
	int registry_fd;     /* with DBGDYN_REGISTRY_FD: made by dbgdyn_registry_make */
};

/*
 * All system calls happen in begin and add; for sandboxes that forbid them afterwards. The daemon
 * looks by itself four times a second; flush and end ask, and return DBGDYN_EINPROGRESS.
 */
#define DBGDYN_NO_SYSCALLS 1u
/* The process may not make the registry's memory itself: another one made it. */
#define DBGDYN_REGISTRY_FD 2u

/*
 * For a broker process: a descriptor for the registry of one other process, to which the broker
 * sends it, and which gives it to its first begin (that keeps a copy of its own; one that is not
 * such a descriptor, or has served already, is DBGDYN_EINVAL there). Either closes its own. A
 * descriptor, or DBGDYN_ENOMEM.
 */
DBGDYN_API int dbgdyn_registry_make(void);

/*
 * Announce a facility (a JIT engine in this process; the pseudo-image file's name begins with it).
 * Call it before any of its code runs. @facility: @facility_len bytes, 1 to 104, any bytes but
 * those unfit for a file name are replaced there. @opts may be NULL (no range, default timeout).
 * Stores a context for the later calls into *@context (one that names nothing where begin fails).
 * Succeeds whether or not a daemon runs; a daemon that starts later finds the process by itself. At
 * most 64 facilities a process. Returns DBGDYN_OK, DBGDYN_EINVAL, DBGDYN_ENOMEM, DBGDYN_EFULL.
 * Environment: DCPI_RUN (folder of the daemon's sockets) and DCPI_QUEUE (name of its message queue)
 * replace the defaults /run/dcpi and /dcpi, but not in set-id programs.
 */
DBGDYN_API int dbgdyn_begin(const char *facility, size_t facility_len,
			    const struct dbgdyn_options *opts, dbgdyn_context *context);

/*
 * Add a further application-owned range (the first ones may be given to begin). The range belongs
 * to the application: it writes code or DST records there, lowest address first, unused parts zero,
 * and does not change what is written. The daemon reads it at times of its own choosing until end.
 * At most 2,048 ranges a process, of which regions with registered code take some (at most 512).
 * DBGDYN_OK, _EINVAL, _EFULL, _EREFUSED.
 */
DBGDYN_API int dbgdyn_add(dbgdyn_context context, enum dbgdyn_kind kind, const void *base,
			  size_t len);

/* From code_off on (up to the next entry) the code is of this line. */
struct dbgdyn_line {
	uint32_t code_off;	/* bytes from the routine's start, ascending */
	uint32_t line;		/* from 1; 0: no source */
	uint32_t file;		/* index into the routine's files */
	uint16_t column;	/* from 1; 0: unknown */
	uint16_t discriminator; /* DWARF's, its low bits: tells blocks of one line apart; or 0 */
};

struct dbgdyn_string {
	const char *text; /* UTF-8 by custom; any bytes are survived */
	size_t len;
};
/* Initializes one with a literal. */
#define DBGDYN_STR(literal)                                                                        \
	{                                                                                          \
		literal, sizeof(literal) - 1                                                       \
	}

/*
 * The code from code_off on is that of a routine that was inlined there. In preorder: an entry of
 * depth d lies within the last one before it of depth d - 1; entries of one depth ascend and do not
 * overlap.
 */
struct dbgdyn_inline {
	uint32_t code_off, code_len;
	struct dbgdyn_string name;
	uint32_t call_file; /* index into the routine's files: where it is called from */
	uint32_t call_line; /* from 1; 0: unknown */
	uint32_t depth;	    /* 0: inlined into the routine itself; at most 63 */
};

/*
 * The frame of the routine where its code is entered, for who called it to be found (call paths,
 * x86-64; elsewhere it is not used yet). Routines that are called and return, as C's, need none:
 * the daemon finds out from their instructions. It cannot where code is entered or left by jumps on
 * a frame that other code made, as a trace of LuaJIT is, in the interpreter's frame.
 *
 * The CFA is the stack pointer as it is in the caller, right before the call that led here: it is
 * cfa_off bytes above the stack pointer (DBGDYN_FRAME_BY_FP: the frame pointer, rbp) when the
 * instruction at code_off is about to run, and the return address is in memory below it, at
 * CFA - 8. How that goes on with each instruction from there the daemon works out itself; so one
 * entry for each way into the code is enough, and entries for other places may be given too. What
 * is said of a place holds on all ways there. Where two entries lead to different frames at one
 * place, or the code does what the frame does not allow (it returns with another stack pointer),
 * nothing is found there, and paths end. It is taken for granted that calls the code makes leave
 * the stack pointer and what is saved here as C's do, and that the code is entered at no other
 * place.
 *
 * It is the routine's author who is believed: false entries give false callers, of the own process.
 */
struct dbgdyn_frame {
	uint32_t code_off; /* of an instruction, from the routine's start; ascending, each once */
	uint32_t flags;	   /* DBGDYN_FRAME_… */
	int32_t cfa_off;   /* bytes, a multiple of 8; from the stack pointer 8 to 1 MiB */
	/* The caller's rbp and rbx are in memory at CFA + this, at -16 or below it, a multiple of 8
	 * and not below the stack pointer; or: */
	int32_t fp_off, link_off;
	uint32_t reserved; /* 0 */
};
#define DBGDYN_FRAME_BY_FP 1u
#define DBGDYN_IN_REGISTER 0 /* nothing saved it: the register still has the caller's */
#define DBGDYN_LOST	   (-0x7fffffff - 1) /* it is nowhere, or that is not known */

struct dbgdyn_routine {
	size_t size;
	struct dbgdyn_string name;	 /* 1 to 4,095 bytes, the rest is cut */
	const void *code;		 /* where it runs */
	size_t code_len;		 /* 1 to 16 MiB */
	const struct dbgdyn_line *lines; /* may be NULL */
	size_t nr_lines;
	const struct dbgdyn_string *files; /* source files, absolute names by custom; may be NULL */
	size_t nr_files;
	const struct dbgdyn_inline *inlines; /* may be NULL */
	size_t nr_inlines;
	const void *bytes; /* code_len bytes of the code where it can be read now; NULL: at code */
	/*
	 * Where entries are the beginnings of larger structs of the caller's: the sizes of those,
	 * in bytes, multiples of their alignment. 0: that of the struct here.
	 */
	uint32_t line_stride, file_stride, inline_stride, frame_stride;
	const struct dbgdyn_frame *frames; /* may be NULL: it is called, and returns */
	size_t nr_frames;
	/*
	 * Ranges of its code that stand elsewhere, as what seldom runs: at most 64. Each has tables
	 * of its own, whose offsets count from its own start. One without a name is NAME.cold, the
	 * ones behind it NAME.cold.1 and so on, as compilers have it. Their sizes are that of the
	 * first; parts of parts are passed over.
	 */
	const struct dbgdyn_routine *parts; /* may be NULL */
	size_t nr_parts;
};

/*
 * Tell of a routine: its code is written, it has not run. Where other code stood at some of its
 * addresses, and ended without being retired, that is gone from this call on; so the call falls
 * after the last instruction of the old code can execute, and before the first of the new one can.
 * A runtime that cannot keep to that, as it learns of code late, retires the old in time: samples
 * between belong to the next routine that is registered there.
 *
 * Copies what it needs (with a daemon attached the code's bytes too, so they must be readable)
 * before it returns; makes no system call but a doorbell when 2 MiB wait to be fetched or code
 * appears in a new region, never waits. *@handle (may be NULL) names the routine in later calls,
 * above 0. All live routines stay listed for a daemon that comes later, in up to 512 MiB (less
 * under RLIMIT_FSIZE, RLIMIT_AS or RLIMIT_DATA); one that finds that full is told to the daemon
 * that is there, or, where none takes it, dropped: DBGDYN_EFULL. Either is counted and shown by the
 * daemon's status. A code too long for the 4 MiB of records in flight is left out and read from the
 * process later.
 *
 * An entry of a table that makes no sense is left out and counted (the daemon's status shows the
 * number), and the routine is registered without it: a line behind the code, below one before, or
 * of a file that is not there; an inlined part without code or name, or not nested, with all that
 * is inlined into it; a frame behind the code, not above the one before, or whose offsets are none;
 * the end of a file's name above 65,535 bytes; of its parts one that could not be registered by
 * itself, or overlaps the routine or a part before. A line at code_len, as the rows
 * that end DWARF's tables, is left out too, and not counted. dbgdyn_check says what it would be.
 *
 * The handle is of the routine with its parts. Code that is registered over one of these ranges
 * ends that one alone; over the first, the handle too: what is left of the routine ends likewise,
 * or by dbgdyn_retire_code.
 *
 * DBGDYN_OK, _EINVAL (no name, no code, or longer than 16 MiB; a table without address, with too
 * many entries, or with a stride below their size), _EFULL, _EREFUSED.
 */
DBGDYN_API int dbgdyn_register(dbgdyn_context context, const struct dbgdyn_routine *routine,
			       dbgdyn_handle *handle);

/*
 * The same for @nr of them, for callers to whom a call is dear. Their sizes are that of the first.
 * @handles (may be NULL) has room for as many; one that was not registered has an id of 0.
 * DBGDYN_OK, or the result of the first that failed; the others are registered all the same.
 */
DBGDYN_API int dbgdyn_register_many(dbgdyn_context context, const struct dbgdyn_routine *routines,
				    size_t nr, dbgdyn_handle *handles);

/*
 * What dbgdyn_register would leave out of @routine, for its author to find: a line of text for each
 * entry, as "lines[3]: code_off is behind the code", or one that says why all of it is refused.
 * They go into the @len bytes at @text, with a 0 behind them, as far as they have room there; with
 * @len 0 none. Registers nothing and needs no context. How many are left out; or DBGDYN_EINVAL,
 * where dbgdyn_register returns that.
 */
DBGDYN_API int dbgdyn_check(const struct dbgdyn_routine *routine, char *text, size_t len);

/*
 * The code of @handle, with its parts, is gone, or about to be overwritten: the call falls after
 * its last instruction can execute. Samples at its addresses from then on belong to the next
 * routine registered there. DBGDYN_OK, _EINVAL (no such routine, or retired, moved over or replaced
 * already), _EFULL (nothing is known of its place any more: retire it by its address), _EREFUSED.
 */
DBGDYN_API int dbgdyn_retire(dbgdyn_context context, dbgdyn_handle handle);

/*
 * The same for all routines of this context that begin in [code, code + len). DBGDYN_OK, also where
 * there were none; _EINVAL, _EFULL (from a signal handler), _EREFUSED.
 */
DBGDYN_API int dbgdyn_retire_code(dbgdyn_context context, const void *code, size_t len);

/*
 * The routine runs at @code from now on, and no longer where it was: its code is there already, of
 * the same length, with whatever relocation asked for. The handle goes on. As dbgdyn_retire, then
 * dbgdyn_register. DBGDYN_EINVAL too where it has parts: they are retired and registered instead.
 */
DBGDYN_API int dbgdyn_move(dbgdyn_context context, dbgdyn_handle handle, const void *code);

/*
 * Tell of all routines of an ELF file in memory, relocated to where it runs: its FUNC symbols, and
 * its DWARF lines and inlined parts if it has them. @elf: ELF64 of this machine; @bias is added to
 * the addresses in it (section headers or symbols that a linker has set: 0). It must stay there,
 * unchanged, until it is retired; its code, one region of up to 1 GiB, may stand elsewhere. Reading
 * it is the daemon's work, so that only an ELF header or section table that makes no sense is
 * DBGDYN_EINVAL. *@handle as in register, for retire; else as register.
 */
DBGDYN_API int dbgdyn_register_object(dbgdyn_context context, const void *elf, size_t elf_len,
				      uint64_t bias, dbgdyn_handle *handle);

/*
 * The same of a copy, which the library keeps among what lives until it is retired: the bytes may
 * go when the call returns. DBGDYN_EFULL where there is no room for it; else as above.
 */
DBGDYN_API int dbgdyn_copy_object(dbgdyn_context context, const void *elf, size_t elf_len,
				  uint64_t bias, dbgdyn_handle *handle);

/*
 * Return when everything told so far is on disk in the pseudo-image (file and folder synced), or
 * say that no daemon runs: within milliseconds where none is to be found, within a second where one
 * was killed and left its queue behind, within three where it had attached and its socket is not to
 * be seen from here (a container; a folder that was removed with it). Waits at most timeout_ms for
 * a daemon that is there, polling with sleeps of up to 5 ms. DBGDYN_OK, _ENODAEMON, _ETIMEDOUT,
 * _EIO, _EREFUSED, or _EINPROGRESS (option DBGDYN_NO_SYSCALLS).
 */
DBGDYN_API int dbgdyn_flush(dbgdyn_context context);

/*
 * The facility makes no more code: as flush, then the context is closed (always, whatever the
 * result). The code may go on running: its samples are charged to the image until the process ends.
 */
DBGDYN_API int dbgdyn_end(dbgdyn_context context);

#ifdef __cplusplus
}
#endif
#endif
