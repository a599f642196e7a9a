/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recorded code and symbols become an ordinary ELF file: .text sections at the addresses the
 * process saw, sized FUNC symbols, DWARF lines, a build-id that is the hash of the contents, one
 * note with facility, process and runs. Works for x86-64, aarch64 and riscv64 code on any machine.
 *
 * A job is a stream of wire records (wire.h): WIRE_IMAGE first, then WIRE_RUN, WIRE_ROUTINE (with
 * code), WIRE_BYTES (owned code and DST ranges), WIRE_REPLACES, WIRE_PLACE and WIRE_INSTANCE (for
 * the note), in any order. Every owned code
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
	uint32_t nr_overlaps; /* number of these routines and ranges that overlap others */
	uint64_t text_bytes;
};

/*
 * Write the ELF image of @job to @fd (seekable, empty; that it compresses
 * sections it must be readable). 0 or negative with @err. Equal contents at
 * equal addresses and of one facility give equal bytes but for the note. Runs in the jailed helper;
 * also callable directly in tests.
 */
int pseudoimg_write(const void *job, size_t job_len, int fd, struct pseudoimg_result *result,
		    struct base_err *err);
/*
 * The same of a job in a file: read in parts, never in memory as a whole (16 bytes a routine, and
 * what its owned ranges and file names take). -ESPIPE where @job_fd cannot be read from any place.
 */
int pseudoimg_write_file(int job_fd, int fd, struct pseudoimg_result *result, struct base_err *err);

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

/* ---- the note: section .dcpi.note, owner "DCPI" ---------------------------------------------- */

#define PSEUDOIMG_NOTE_SECTION                                                                     \
	".dcpi.note" /* PROGBITS: eu-elflint refuses unknown SHT_NOTE owners */
#define PSEUDOIMG_DST_SECTION  ".dcpi.dst"    /* raw DST, as read */
#define PSEUDOIMG_HASH_SECTION ".dcpi.hashes" /* struct pseudoimg_hashes of each symbol */
#define PSEUDOIMG_NOTE_OWNER   "DCPI"
#define PSEUDOIMG_NOTE_TYPE    1u
/*
 * The note's descriptor is a stream of wire records: WIRE_IMAGE, WIRE_RUN …, WIRE_REPLACES ….
 * Offsets in profiles are image offsets: WIRE_RUN maps them to ELF virtual addresses (its vaddr).
 */

/*
 * Hashes of a routine, independent of its place; in the order of .symtab, whose first entry has
 * none. @exact: name, bytes, lines, inlined parts. @masked: the same with zeros for the operands
 * that change when the code or its targets move.
 */
struct pseudoimg_hashes {
	uint8_t exact[20], masked[20];
};
static_assert(sizeof(struct pseudoimg_hashes) == 40, "hashes");

/* Processes that the note tells of; of further ones it has the number. */
#define PSEUDOIMG_INSTANCES_MAX 1024

/* ---- folding --------------------------------------------------------------------------------- */

/*
 * Descriptors of a folding. Several processes that ended become one image: the first keeps its
 * offsets and addresses, of the others each routine that is there already (equal by its exact hash)
 * is one with that, every other gets room behind, with a WIRE_PLACE that tells its address.
 *
 * @job_fd: jobs, one behind the other, each from its WIRE_IMAGE on, of one machine and facility; or
 * a pseudo-image, whose build-id then stands among those that the new one replaces. A job names by
 * WIRE_REPLACES the build-ids it has had on disk. Only the first may have ranges that its
 * application owns (else -DCPI_EUNSUPPORTED: images with equal build-ids need no folding).
 */
struct pseudoimg_merge {
	int base_fd; /* a pseudo-image that comes first, or -1 */
	int job_fd;
	int scratch_fd; /* empty, readable; at the end of no use */
	int out_fd;
};

/*
 * Room of their own for routines, in the file, whose own address an earlier one has: far above
 * every user address, below 2^63. The daemon and foldings give it.
 */
#define PSEUDOIMG_MODULE UINT64_C(0x7000000000000000)
/*
 * Where offsets of folded images are that were in no routine: one run without code, so that their
 * samples stay apart from every routine.
 */
#define PSEUDOIMG_GAP	  UINT64_C(0x7800000000000000)
#define PSEUDOIMG_GAP_OFF (UINT64_C(1) << 60)
#define PSEUDOIMG_GAP_LEN (UINT64_C(1) << 56)

/*
 * Write the folded image. @maps gets a WIRE_REPLACES (its id zero) for each image of the job, in
 * order: wire_moved_off by it leads from the image's offsets to those of the new one. 0 or negative
 * with @err: then nothing of this is of use.
 */
int pseudoimg_merge(const struct pseudoimg_merge *fds, struct pseudoimg_result *result,
		    struct base_buf *maps, struct base_err *err);

/* ---- the jailed helper ----------------------------------------------------------------------- */

/* The program, and what is called now and then while it works (or NULL). */
struct pseudoimg_helper {
	const char *program;
	void (*meanwhile)(void *ctx);
	void *ctx;
};

/*
 * Run the helper program: job from @job_fd (read from offset 0), image to @out_fd, which is synced,
 * bounded by @timeout_ms. The helper drops every right, limits its memory and allows itself only
 * the system calls that reading and writing need. 0, or negative with @err. -ENOSPC, -EDQUOT, -EIO:
 * the disk's; -DCPI_EHELPER (killed, refused, any other -errno of its own), other DCPI_ERRORS,
 * -EINVAL, -ETIMEDOUT: this image's; any other -errno: it could not be started.
 */
int pseudoimg_run_helper(const struct pseudoimg_helper *helper, int job_fd, int out_fd,
			 unsigned int timeout_ms, struct pseudoimg_result *result,
			 struct base_err *err);
/* The same of pseudoimg_merge. */
int pseudoimg_run_merge(const struct pseudoimg_helper *helper, const struct pseudoimg_merge *fds,
			unsigned int timeout_ms, struct pseudoimg_result *result,
			struct base_buf *maps, struct base_err *err);

#endif
