/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CPython in a file: where the interpreter keeps the frames of its functions, so that a walk up a
 * stack can tell them in place of the interpreter's own. Plain data, for the kernel's programs and
 * for user space alike. Addresses are told from the file's code: where that is mapped, its address
 * less its offset in the file is to be added to them.
 *
 * A thread's state leads to the chunk of frames that its innermost activation of the interpreter
 * runs. A frame leads to its caller's. Where the interpreter was entered from C code the chunk
 * ends: with a frame that says so (version 3.11), or before one that is of no function (from 3.12
 * on). Up to 3.12 there is a "cframe" between: it stands on the stack of the C code, in the frame
 * of the interpreter, and leads to the activation before it. From 3.13 on the frame that is of no
 * function stands there.
 */
#ifndef DCPI_UNWIND_PYTHON_H
#define DCPI_UNWIND_PYTHON_H

#include <stdbool.h>
#include <stdint.h>

enum {
	UNWIND_PYTHON_3_11 = 0x030b,
	UNWIND_PYTHON_3_12 = 0x030c,
	UNWIND_PYTHON_3_13 = 0x030d,
	UNWIND_PYTHON_OFFSET_MAX = 1 << 15,
};

/* Offsets in structures; those that are 0 are so in all versions, or are not used in this one. */
struct unwind_python {
	uint64_t current; /* address of the pointer to the state of the thread that runs; or 0 */
	uint64_t main;	  /* address of the pointer to the main interpreter */
	uint64_t code, code_end; /* 3.13: addresses of the function that runs frames */
	uint64_t code_type;	 /* address of the type of code objects */
	uint16_t version;	 /* as PY_VERSION_HEX >> 16; 0: there is no CPython in the file */
	uint16_t threads;	 /* of an interpreter: its first thread's state */
	uint16_t thread_next;	 /* of a thread's state: the next one */
	uint16_t thread_id;	 /* its pthread_t */
	uint16_t thread_cframe;
	uint16_t thread_frame; /* 3.13: its innermost frame */
	uint16_t cframe_frame; /* of a cframe: its innermost frame */
	uint16_t cframe_previous;
	uint16_t frame_code; /* of a frame: its function's code object */
	uint16_t frame_previous;
	uint16_t frame_instr; /* the instruction that runs, or ran last */
	uint16_t frame_entry; /* 3.11: a byte, 1: C code entered here */
	uint16_t frame_owner; /* a byte, 3: C code made it, it is of no function */
	uint16_t code_line;   /* of a code object: its first line */
	uint16_t code_file;
	uint16_t code_name;    /* qualified */
	uint16_t code_lines;   /* the table of locations */
	uint16_t code_bytes;   /* its instructions, of 2 bytes each */
	uint16_t string_ascii; /* of a string: where its characters are if all are ASCII … */
	uint16_t string_other; /* … and if not */
};

static inline bool unwind_python_valid(const struct unwind_python *p)
{
	if (!p->version)
		return true;
	for (const uint16_t *off = &p->threads; off <= &p->string_other; off++)
		if (*off >= UNWIND_PYTHON_OFFSET_MAX)
			return false;
	return p->version >= UNWIND_PYTHON_3_11 && p->version <= UNWIND_PYTHON_3_13;
}

#endif
