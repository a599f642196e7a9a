/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a CPython keeps what a walk needs (struct unwind_python). Of versions 3.11 and 3.12 it is
 * known, and checked against the code of short functions of their interface, which read the same
 * places (x86-64); 3.13 has a table of it. A build that keeps them elsewhere, or that was changed,
 * is not known.
 */
#ifndef DCPI_PYTHON_LAYOUT_H
#define DCPI_PYTHON_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "python.h"

/* Symbols that CPython exports: objects, then functions whose code is looked at. */
#define PYTHON_SYMBOLS(X)                                                                          \
	X(VERSION, "Py_Version")                                                                   \
	X(RUNTIME, "_PyRuntime")                                                                   \
	X(CODE_TYPE, "PyCode_Type")                                                                \
	X(RUN_FRAME, "_PyEval_EvalFrameDefault")                                                   \
	X(MAIN, "PyInterpreterState_Main")                                                         \
	X(THREAD_HEAD, "PyInterpreterState_ThreadHead")                                            \
	X(THREAD_NEXT, "PyThreadState_Next")                                                       \
	X(GET_FRAME, "PyThreadState_GetFrame")                                                     \
	X(GET_CODE, "PyFrame_GetCode")                                                             \
	X(GET_BACK, "PyFrame_GetBack")                                                             \
	X(GET_LASTI, "PyFrame_GetLasti")

enum python_symbol {
#define X(id, name) PYTHON_##id,
	PYTHON_SYMBOLS(X)
#undef X
		PYTHON_NR_SYMBOLS
};

enum { PYTHON_BYTES_MAX = 576 };

/* A symbol as the file has it. */
struct python_part {
	uint64_t vaddr; /* 0: the file has none of that name */
	uint64_t size;
	uint8_t bytes[PYTHON_BYTES_MAX];
	size_t len; /* of these */
};

/* From @parts, by enum python_symbol, with addresses as they are in the file. A version of 0: it is
 * no CPython that is known. The bytes are not believed. */
void python_layout(const struct python_part *parts, struct unwind_python *out);

#endif
