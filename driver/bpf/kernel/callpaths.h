/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the program that walks call paths (callpath.bpf.c) and the source "bpf". Unwind tables
 * (lib/unwind) stand in words of 4 bytes that are numbered throughout; these lie in banks, each an
 * array map of its own that is made when it is needed. A table is written completely before its
 * file leads to it, and its words are used again only when no program can be in it.
 */
#ifndef DCPI_BPF_CALLPATHS_H
#define DCPI_BPF_CALLPATHS_H

#include "python.h"
#include "rule.h"
#include "state.h"

enum {
	CALLPATH_NR_FRAMES = 1024,
	CALLPATH_STACK_PART = 512, /* bytes that are copied at once */
	CALLPATH_STACK_LEN = 8 * CALLPATH_STACK_PART,
	CALLPATH_RING_LEN = 1 << 20,
	CALLPATH_MISSING_LEN = 64 << 10,
	CALLPATH_NR_FILES = 4096, /* that are known, with a table or without */

	CALLPATH_CHUNK_BITS = 10, /* log2 of words in a chunk: an element of a bank */
	CALLPATH_CHUNK = 1 << CALLPATH_CHUNK_BITS,
	CALLPATH_BANK_BITS = 8, /* log2 of chunks in a bank */
	CALLPATH_BANK = 1 << CALLPATH_BANK_BITS,
	CALLPATH_NR_BANKS = 32,
	CALLPATH_NR_CHUNKS = CALLPATH_NR_BANKS * CALLPATH_BANK, /* 32 MiB */

	CALLPATH_RULE_WORDS = sizeof(struct unwind_rule) / 4,

	CALLPATH_FUNCTIONS_LEN = 512 << 10,
	CALLPATH_NR_TOLD_FUNCTIONS = 4096, /* a power of two */
	CALLPATH_STRING_MAX = 4096,	   /* characters; of a longer string there is none */
	CALLPATH_TEXT_LEN = 512,
	CALLPATH_LINES_LEN = 4096,
};

/* Ends, numbered as enum driver_callpath_end. */
enum {
	CALLPATH_COMPLETE,
	CALLPATH_CUT,
	CALLPATH_UNREADABLE,
	CALLPATH_NO_ROWS,
	CALLPATH_ASTRAY,
};

/*
 * As struct driver_file. By changed are told apart: the vdso (all else 0), and memory that a
 * program writes its code into. Of that each 64 KiB have a table of their own, whose offsets are
 * addresses: ino is the process's instance, size the address's page (UNWIND_PAGE_BITS).
 */
struct callpath_file {
	uint64_t dev, ino, size, changed;
};

#define CALLPATH_VDSO 1 /* changed */
#define CALLPATH_CODE 2

/*
 * Where a table of a file stands: its rules, then its pages, then its rows, as unwind.h has them.
 * Files lead to numbers of these; number 0 is that of a file that has none, and was reported.
 */
struct callpath_table {
	uint32_t rules, pages, rows; /* the first word of each */
	uint32_t first_page, nr_pages, nr_rows, nr_rules;
	uint32_t python;  /* not 0: it has a CPython, whose layout has the same number */
	uint64_t used_ns; /* by the program: when it was last walked through, approximately */
	uint32_t version; /* of what stands there: no other table has or had it */
	uint32_t unused;
	uint64_t unused2[2];
};

_Static_assert(sizeof(struct callpath_table) == 64, "callpath_table");

/*
 * A record in the ring, before its frames. Behind them, where stack_len is above 0: struct
 * unwind_state at the last frame, and so many bytes from its stack pointer on. With CALLPATH_SAME
 * there is only the first frame: the nr - 1 behind it are those of the CPU's record before.
 */
struct callpath_record {
	uint64_t time_ns, instance;
	uint32_t tgid, tid, generation;
	uint8_t event, mode, end;
	uint8_t flags; /* CALLPATH_READ, CALLPATH_UNREAD: of its generation; CALLPATH_SAME */
	uint16_t nr_kernel, nr;
	uint16_t stack_len, cpu;
};

_Static_assert(sizeof(struct callpath_record) == 40, "callpath_record");

#define CALLPATH_READ	1
#define CALLPATH_UNREAD 2
#define CALLPATH_SAME	4
#define CALLPATH_EXACT	(UINT64_C(1) << 63) /* of a frame: DRIVER_FRAME_EXACT */
/* A frame that is of an interpreter's function, DRIVER_FRAME_FUNCTION: below this are the
 * function's key and the number of its instruction. */
#define CALLPATH_FUNCTION  (UINT64_C(1) << 62)
#define CALLPATH_KEY_SHIFT 16
#define CALLPATH_KEY_DROP  18 /* bits of a hash that a key leaves out */
#define CALLPATH_INSTR_MAX 0xffff

/* Characters of @kind bytes each: 1 (Latin-1), 2 or 4. */
struct callpath_string {
	uint16_t len;  /* bytes */
	uint16_t kind; /* 0: it could not be read */
	uint32_t unused;
	uint8_t text[CALLPATH_TEXT_LEN];
};

/* A function, in a ring: up to what its lines have. */
struct callpath_function {
	uint64_t time_ns, instance, key;
	uint32_t tgid;
	uint32_t nr;   /* instructions */
	uint32_t line; /* its first */
	uint32_t uid;  /* the process's user */
	uint16_t lines_len;
	uint16_t unused[3];
	struct callpath_string name, file;
	uint8_t lines[CALLPATH_LINES_LEN]; /* CPython's table of locations, or its beginning */
};

_Static_assert(sizeof(struct callpath_function) % 8 == 0, "callpath_function");

struct callpath_missing {
	struct callpath_file file;
	uint64_t instance, addr, start, end, file_off;
	uint32_t tgid, unused;
};

/* The counters of one CPU; they only grow. */
struct callpath_counts {
	uint32_t busy; /* a path is walked */
	uint32_t skip; /* frames of the handler above the interrupted one */
	uint64_t received, lost_ring, lost_busy;
	/* The daemon's: changes with every change of what files lead to. What the program
	 * remembers of them is of this epoch, or not valid. */
	uint32_t epoch;
	uint32_t unused;
	uint64_t pad[3]; /* to a line of the cache */
};

_Static_assert(sizeof(struct callpath_counts) == 64, "callpath_counts");

#endif
