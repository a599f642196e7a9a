/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libsprofil: estimates of where a program spends its CPU time, made by the program itself, in
 * arrays of its own: sprofil() of HP-UX, and profil() as its form for one region. It needs libc
 * alone and no rights. The whole contract is in sprofil(3).
 *
 * glibc has functions of these names too, with another structure (<sys/profil.h>). Who includes
 * this header and links with -lsprofil gets these: sprofil and profil are macros for names of
 * their own, so other parts of the same program may go on using glibc's. One source file cannot
 * include both headers.
 *
 * Source: sprofil(2) of HP-UX 11i Version 2.
 */
#ifndef SPROFIL_H
#define SPROFIL_H

#ifdef _PROFIL_H /* glibc's guard */
#error "sprofil.h and sys/profil.h both define struct prof: include one of them"
#endif

#include <stddef.h>
#include <sys/time.h>
#include <unistd.h> /* before profil becomes a macro: it may declare libc's */

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SPROFIL_API __attribute__((visibility("default")))
#else
#define SPROFIL_API
#endif

struct prof {
	void *pr_base;	       /* the array: elements as flags says */
	unsigned int pr_size;  /* its length in bytes, a multiple of the element size */
	void *pr_offset;       /* first address of the region */
	unsigned int pr_scale; /* bytes of array per byte of region, 16 bits behind the point */
};

/* flags: the size of an element. */
#define PROF_USHORT 1u /* 2 bytes */
#define PROF_UINT   2u /* 4 bytes */
#define PROF_UINT64 4u /* 8 bytes */

/* The most entries that a call may have (elsewhere sysconf(_SC_PROFIL_MAX)). */
#define SPROFIL_MAX 4096

/*
 * Profile the regions of the @profcnt entries at @profp from now on, instead of those of the call
 * before; 0 entries: stop. On every tick of CPU time that a thread of this process uses, the
 * element at pr_base + ((pc - pr_offset) * pr_scale >> 16), rounded down to a whole element, is
 * incremented, unless it is at its maximum. Entries ascend by pr_offset and do not overlap; those
 * with pr_scale 0 or 1 are ignored; the last, if it has pr_offset 0 and pr_scale 2, is one element
 * for every pc that no other entry has. @tvp, if not NULL, is set to the time between two ticks.
 *
 * When it returns, the arrays of the call before are no longer touched. 0, or -1 with errno:
 * E2BIG (profcnt below 0 or above SPROFIL_MAX), EFAULT (profp or tvp), EINVAL (flags, sizes, order,
 * overlap: see the page), EAGAIN, ENOMEM, EMFILE (no room for timer, tables); then the profiling
 * that was on still is. Any thread may call it, but no signal handler.
 */
SPROFIL_API int sprofil_sprofil(struct prof *profp, int profcnt, struct timeval *tvp,
				unsigned int flags);

/*
 * sprofil() with one entry { buf, bufsiz, offset, scale }, no tvp and PROF_USHORT. The order of the
 * arguments is that of Linux's profil(3).
 */
SPROFIL_API int sprofil_profil(unsigned short *buf, size_t bufsiz, size_t offset,
			       unsigned int scale);

#define sprofil sprofil_sprofil
#define profil	sprofil_profil

#ifdef __cplusplus
}
#endif

#endif
