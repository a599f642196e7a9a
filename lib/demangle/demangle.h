/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Readable names of symbols that C++ and Rust compilers mangled. Everything on disk, and everything
 * that is compared between images or runs, keeps the linker's names; readable names are for output
 * and for names that users type.
 */
#ifndef DCPI_DEMANGLE_H
#define DCPI_DEMANGLE_H

#include "base.h"

/*
 * Returns the readable form of a linker's name, which the caller frees. Known schemes: C++ (Itanium
 * ABI, "_Z…") and Rust ("_ZN…17h<16 digits>E", and "_R…" of version 0), both without hashes. The
 * spelling is that of binutils' c++filt, for "_R…" that of LLVM. NULL: the name is of no known
 * scheme or uses unknown constructs, it or the result is longer than DEMANGLE_MAX bytes, or memory
 * lacks. Time, memory and stack are bounded, whatever the name.
 */
#define DEMANGLE_MAX 4096
char *demangle_name(const char *linkage);

/*
 * Does @what, as a user types it, match the readable name @name? It matches if it equals the whole
 * name, or the name without the parts around the function's own name: return type, parameters, and
 * "const" behind them. Blanks do not count, and "…" (as of demangle_shorten) stands for anything.
 */
bool demangle_match(const char *name, const char *what);

/* How well @what names @name, from the loosest. */
enum demangle_fit {
	DEMANGLE_NONE,
	DEMANGLE_PART,	   /* it is a part of it, of three characters at least */
	DEMANGLE_WORDS,	   /* and ends at both sides where words end */
	DEMANGLE_UNARGUED, /* it matches the name without template arguments */
	DEMANGLE_MATCHES,  /* demangle_match */
};
enum demangle_fit demangle_fit(const char *name, const char *what);

/*
 * Returns the name to show for a linker's name: the readable one, or @linkage itself if it has
 * none, demangle_off is set, or memory lacks. The result lives as long as the program, or @linkage.
 * Each name is read once. Any thread may call it.
 */
const char *demangle_shown(const char *linkage);
/* Does @what name the procedure, by the linker's name or as demangle_match does? */
bool demangle_is(const char *linkage, const char *what);

/*
 * A readable name without what stands in its brackets, the type of its result, and which copy of
 * it a compiler made, as "std::swap<…>(…)", which the caller frees. NULL: no memory.
 */
char *demangle_short(const char *name);

/*
 * A readable name or a path in at most @width (8 at least) characters, as far as needed with "…" in
 * place of template arguments, then of parameters, then of the middle; the caller frees it. NULL:
 * no memory.
 */
char *demangle_shorten(const char *name, size_t width);
/* A line of code in at most @width characters (0: as it is), with "…" at its end; likewise. */
char *demangle_cut(const char *text, size_t width);

extern bool demangle_off; /* show the linker's names: -mangled */

#endif
