/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recorded code and symbols become an ordinary ELF file: .text sections at the addresses the
 * process saw, sized FUNC symbols, DWARF lines, a build-id that is the hash of the contents, one
 * note with facility, process and runs. Works for x86-64, aarch64 and riscv64 code on any machine.
 *
 * A job is a stream of wire records (wire.h): WIRE_IMAGE first, then WIRE_RUN, WIRE_ROUTINE (with
 * code), WIRE_BYTES (owned code and DST ranges), WIRE_REPLACES, in any order. Every owned code
 * range has a WIRE_BYTES, be it with no bytes: addresses in DST count from the base of the one with
 * the lowest image offset (the first that was registered). A DST range is
 * WIRE_BYTES from its base on, its parts one after another. Of overlapping routines, runs or ranges
 * the later is refused.
 */
#ifndef DCPI_PSEUDOIMG_H
#define DCPI_PSEUDOIMG_H

#include "base.h"
#include "wire.h"

struct pseudoimg_result {
	uint8_t build_id[20];
	uint32_t nr_routines; /* symbols written */
	uint32_t
		nr_bad; /* records or DST parts refused: malformed, out of every run, overlapping */
	uint64_t text_bytes;
};

/*
 * Write the ELF image of @job to @fd (seekable, empty). 0 or negative with @err. Equal contents at
 * equal addresses and of one facility give equal bytes but for the note. Runs in the jailed helper;
 * also callable directly in tests.
 */
int pseudoimg_write(const void *job, size_t job_len, int fd, struct pseudoimg_result *result,
		    struct base_err *err);

/* A symbol of a kernel image: offset from the image's base. */
struct pseudoimg_symbol {
	const char *name;
	uint64_t off;
	uint64_t len; /* 0: up to the next symbol */
};

/*
 * Write a symbols-only ELF (a kernel, or a module of it): .text without contents (SHT_NOBITS) of
 * @text_len bytes at address 0, FUNC symbols, the given build-id as .note.gnu.build-id.
 */
int pseudoimg_write_symbols(const struct pseudoimg_symbol *syms, size_t nr, uint64_t text_len,
			    uint32_t machine, const struct base_id *build_id, int fd,
			    struct base_err *err);

/* ---- the note: section .dcpi.note, owner "DCPI" -------------------------------------------- */

#define PSEUDOIMG_NOTE_SECTION                                                                     \
	".dcpi.note"			  /* PROGBITS: eu-elflint refuses unknown SHT_NOTE owners */
#define PSEUDOIMG_DST_SECTION ".dcpi.dst" /* raw DST, as read */
#define PSEUDOIMG_NOTE_OWNER  "DCPI"
#define PSEUDOIMG_NOTE_TYPE   1u
/*
 * The note's descriptor is a stream of wire records: WIRE_IMAGE, WIRE_RUN …, WIRE_REPLACES ….
 * Offsets in profiles are image offsets: WIRE_RUN maps them to ELF virtual addresses (its vaddr).
 */

/* ---- the jailed helper ----------------------------------------------------------------------- */

/*
 * Run the helper program @program: job from @job_fd (read from offset 0), image to @out_fd, bounded
 * by
 * @timeout_ms. The helper drops every right, limits its memory and allows itself only the
 * system calls that reading and writing need. 0, or negative with @err (-DCPI_EHELPER when it
 * was killed or refused, -ETIMEDOUT).
 */
int pseudoimg_run_helper(const char *program, int job_fd, int out_fd, unsigned int timeout_ms,
			 struct pseudoimg_result *result, struct base_err *err);

#endif
