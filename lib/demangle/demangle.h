/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What C++ and Rust compilers named for the linker, as people wrote it. Everything on disk, and
 * whatever is compared between images or runs, keeps the linker's names; these are for people.
 */
#ifndef DCPI_DEMANGLE_H
#define DCPI_DEMANGLE_H

#include "base.h"

/*
 * The readable form of a linker's name, the caller's to free; NULL where it is none of
 * C++ (Itanium ABI, "_Z…") or of Rust's schemes ("_ZN…17h<16 digits>E", and "_R…" of version 0;
 * hashes dropped), where it uses what is not known here, where it or its readable form is above
 * DEMANGLE_MAX bytes, and without memory. Written as binutils' c++filt does, of "_R…" as LLVM's.
 * Takes bounded time, memory and stack, whatever the bytes.
 */
#define DEMANGLE_MAX 4096
char *demangle_name(const char *linkage);

/*
 * Is @what, as a user typed it, the readable name @name? All of it, or all but what stands around
 * the function's own name: return type, parameters, and "const" behind them. Blanks do not count.
 */
bool demangle_match(const char *name, const char *what);

/*
 * What to show for a linker's name: readable, or the name itself where that has no such form, after
 * demangle_off was set, or without memory. Lives as long as the program, or @linkage. Each name is
 * made once. Any thread.
 */
const char *demangle_shown(const char *linkage);
/* Is that the procedure @what: by the linker's name, or demangle_match? */
bool demangle_is(const char *linkage, const char *what);

extern bool demangle_off; /* show the linker's names: -mangled */

#endif
