/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that knows its own call path: the compiler calls a hook at the entry of each function
 * (-finstrument-functions), which pushes its address onto a shadow stack, and one at its exit,
 * which pops it. call_walk.c stops the program anywhere and compares.
 */
#ifndef DCPI_TEST_CALL_SHAPES_H
#define DCPI_TEST_CALL_SHAPES_H

#include <stdbool.h>
#include <stdint.h>

enum { SHAPES_DEPTH = 2048 };

struct shapes_stack {
	uint64_t nr;
	uint64_t function[SHAPES_DEPTH]; /* addresses, the outermost first */
};

/* The program's answer to whoever walks it: its address is the first line of its output. */
struct shapes_state {
	uint64_t unsettled; /* above 0: it is between two stacks, or is putting its shadow right */
	uint64_t stack;	    /* address of the struct shapes_stack in use */
	uint64_t hooks[2];  /* addresses at which the hooks begin */
};

#ifdef __cplusplus
extern "C" {
#endif

extern volatile struct shapes_state shapes_state;

/* How deep the shadow is, to be restored by code that leaves frames without their exit. */
uint64_t shapes_depth(void);
void shapes_cut(uint64_t depth);
/* A number below @limit, of a row that is always the same. */
uint32_t shapes_random(uint32_t limit);
/* Frames of any kind below this one, @left levels at most. */
uint64_t shapes_down(uint32_t left);
/* Throw, and catch somewhere above; call_shapes_throw.cc. */
uint64_t shapes_throw(uint32_t left);

#ifdef __cplusplus
}
#endif

#endif
