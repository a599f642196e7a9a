/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The code of the running kernel, routine by routine, as it may be shown (lib/kernel), and where it
 * differs from the same kernel's code elsewhere.
 */
#ifndef DCPI_KDIFF_H
#define DCPI_KDIFF_H

#include "kernel.h"

struct kdiff_routine {
	const char *name; /* name of the symbols */
	uint64_t off;	  /* from the kernel's base */
	size_t len;
	const uint8_t *code; /* in the text; NULL: it could not be read, or shown */
};

struct kdiff_kernel {
	char name[128]; /* "vmlinux-RELEASE" */
	struct base_id id;
	struct kernel_symbols symbols;
	uint64_t start, len; /* its text; start is a true address */
	uint8_t *text;
	struct kdiff_routine *routines; /* ascending */
	size_t nr_routines, nr_unread;
};

/* The kernel that runs here. -EPERM: its addresses or its memory are hidden from this user. */
int kdiff_read(struct kdiff_kernel *k, struct base_err *err);
void kdiff_release(struct kdiff_kernel *k);
/*
 * Code of routine @r as it is elsewhere, where the kernel would begin at @start, as it may be
 * shown: in place.
 */
void kdiff_show(const struct kdiff_kernel *k, const struct kdiff_routine *r, uint64_t start,
		uint8_t *code);
/* Its pseudo-image (docs/format/pseudoimg.md) into @fd. 0 or negative with @err. */
int kdiff_write(const struct kdiff_kernel *k, int fd, struct base_err *err);
/* Its symbols alone, as the daemon keeps them. */
int kdiff_write_symbols(const struct kdiff_kernel *k, int fd, struct base_err *err);

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
