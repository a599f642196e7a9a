/* SPDX-License-Identifier: BSD-2-Clause */
/* Where two states of a routine of the kernel differ: apart for the unit test of that. */
#ifndef DCPI_KDIFF_H
#define DCPI_KDIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Why the kernel changed its code, as far as the instructions tell. */
enum kdiff_cause {
	KDIFF_KEY,   /* a static key: a jump became a nop, or a nop a jump */
	KDIFF_TRACE, /* the call at a routine's start, for tracing, became a nop, or the other way
		      */
	KDIFF_CALL,  /* a static call: a direct call or jump goes elsewhere, or nowhere */
	KDIFF_OTHER, /* alternatives for this processor, and whatever else */
	KDIFF_NR_CAUSES
};
extern const char *const kdiff_causes[KDIFF_NR_CAUSES];

/* A stretch of whole instructions that differ. */
struct kdiff_place {
	size_t at, len;
	enum kdiff_cause cause;
	size_t bytes; /* number of bytes that differ in these */
};
/* The next at or behind @from in code of @machine (EM_*); false: none. */
bool kdiff_next(uint32_t machine, const uint8_t *was, const uint8_t *is, size_t len, size_t from,
		struct kdiff_place *out);

#endif
