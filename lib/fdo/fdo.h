/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The instruction traces of an image as compilers and linkers take them: branches that were taken,
 * the ranges of code that ran between them without one, and how good such a profile is. Formats:
 * docs/FDO.md.
 *
 * Addresses are those of the image's ELF. Traces are joined where two meet: one that begins within
 * code that control is known to have come to continues, on the average, one that ended there. So
 * as often as branches lead to an address, fall through, or come in from another image, ranges
 * begin there, and each ends at the next instruction that may branch.
 */
#ifndef DCPI_FDO_H
#define DCPI_FDO_H

#include "image.h"
#include "profdb.h"

enum fdo_kind {
	FDO_TAKEN, /* a conditional branch that was taken */
	FDO_FELL,  /* a conditional branch that was not taken: @to is the next instruction */
	FDO_JUMP,
	FDO_INDIRECT_JUMP,
	FDO_CALL,
	FDO_INDIRECT_CALL,
	FDO_RETURN,
	FDO_RESUMED, /* a call into another image, which returned to @to, the next instruction */
	FDO_STUB,    /* a jump into another image, whose callee returned to @to */
	FDO_BEGUN,   /* traces that begin at @to; @from is none */
	FDO_CAME,    /* control came, in another build, from code that this one has not, or from
			which it does not lead to @to; @from is none */
	FDO_ENTERED, /* control came from another image to @to; @from is none */
	FDO_ENDED,   /* traces whose last instruction in the image is @from; @to is none */
	FDO_UNKNOWN, /* not placed: the code there is not what ran, or was not kept */
	FDO_NR_KINDS,
};

#define FDO_NONE UINT64_MAX

struct fdo_edge {
	uint64_t from, to;
	uint64_t count[2]; /* as struct profdb_edge has them */
	enum fdo_kind kind;
};

/* Instructions that ran one after the other: from @from up to and including that at @to. */
struct fdo_range {
	uint64_t from, to, count;
	uint64_t before; /* the branch or call that fell through to @from; else @from */
	bool after_call; /* control came back to @from, or may have */
	bool stub;	 /* it lies in one of the linker's stubs (.plt) */
};

struct fdo {
	struct fdo_edge *edges; /* ascending by from, to, kind */
	size_t nr_edges;
	struct fdo_range *ranges; /* ascending by from, to, before */
	size_t nr_ranges, cap_ranges;
	uint64_t sum[FDO_NR_KINDS]; /* counts of edges, by kind, without corrections */
};

/*
 * Makes *@out, released with fdo_free, from the edges of a profile. With @err: -ENOENT (it has no
 * traces), errors of insn_decoder_open, -ENOMEM.
 */
int fdo_make(const struct profdb_profile *p, struct image *img, struct fdo **out,
	     struct base_err *err);
void fdo_free(struct fdo *f);

/*
 * The same of several profiles: begin, add, end. @img must stay open. Each count is multiplied,
 * and rounded when all are added up. fdo_end fails where nothing was added, and
 * releases @m in any case.
 */
struct fdo_making;
struct fdo_version;
struct fdo_traces {
	const struct profdb_profile *profile;
	double weight; /* above 0: of all counts */
	/* And by this, of control that left the instruction at @vaddr for another place; NULL: 1.
	 */
	double (*correct)(const void *context, uint64_t vaddr);
	const void *context;
};
struct fdo_carried {
	uint64_t edges,
		placed; /* counts of edges between two instructions, as the profile has them */
};
int fdo_begin(struct image *img, struct fdo_making **m, struct base_err *err);
int fdo_add(struct fdo_making *m, const struct fdo_traces *t, struct base_err *err);
/*
 * The same of another build's profile, whose addresses are found in @img by @v. What is not found
 * is left out; its counts are then no exact ones any more, as code behind it ran, but not the way
 * there. Adds to @sum.
 */
int fdo_add_version(struct fdo_making *m, const struct fdo_traces *t, struct fdo_version *v,
		    struct fdo_carried *sum, struct base_err *err);
/* @out NULL: @m is released, and that is all. */
int fdo_end(struct fdo_making *m, struct fdo **out, struct base_err *err);

/* ---- version.c ------------------------------------------------------------------------------- */

/*
 * Where instructions of the build @from stand in the build @to. A procedure is that of the same
 * name, or, where @to has none of that name, one of equal code. Its code is cut into blocks at what
 * it branches to, and behind each instruction that may go elsewhere. Blocks are equal whose
 * instructions read and write the same registers and do the same, whatever their constants and
 * addresses; of those that occur more than once, neighbours decide. Both images must stay open.
 */
int fdo_version_open(struct image *from, struct image *to, struct fdo_version **out,
		     struct base_err *err);
void fdo_version_close(struct fdo_version *v);
struct image *fdo_version_from(const struct fdo_version *v);
/* The address in @to of the instruction at @vaddr of @from, or FDO_NONE. 0 or -ENOMEM. */
int fdo_version_place(struct fdo_version *v, uint64_t vaddr, uint64_t *out);
/* The procedures that were asked for, and those of them that are known in @to. */
void fdo_version_found(const struct fdo_version *v, uint32_t *nr, uint32_t *found);

/* ---- quality.c ------------------------------------------------------------------------------- */

struct fdo_quality {
	uint64_t traces;     /* begun in the image, or come into it */
	uint64_t taken;	     /* branches, jumps, calls and returns to elsewhere */
	uint64_t fell;	     /* conditional branches that were not taken */
	uint64_t unplaced;   /* edges that fit no instruction of the image */
	uint64_t text_bytes; /* of code that the image has */
	double samples_part; /* of the samples: those at instructions in a range; below 0: none */
	/*
	 * The estimated share of the edges of further traces that no trace has seen yet, below 0:
	 * not known. Half of the traces do not know edges of the other half; the share falls by a
	 * power of the number of traces, -0.85 for sqlite, python and lua.
	 */
	double unseen;
	double wanted; /* so many traces would make it FDO_UNSEEN_ENOUGH; below 0: not known */
};

#define FDO_UNSEEN_ENOUGH 0.05

/* @event: index of the event of @p whose samples are compared; negative: none. */
void fdo_quality(const struct fdo *f, struct image *img, const struct profdb_profile *p, int event,
		 struct fdo_quality *out);

/* ---- write.c --------------------------------------------------------------------------------- */

/* Each appends to @out, and returns 0 or -ENOMEM. */
typedef int fdo_write(const struct fdo *f, struct base_buf *out);
/* BOLT's pre-aggregated profile, of lines B, F and f (llvm-bolt -pa), without ranges in stubs,
 * which have no blocks to BOLT. */
fdo_write fdo_write_bolt;
/* Ranges and branches, as llvm-profgen takes them by --unsymbolized-profile --use-offset=0.
 */
fdo_write fdo_write_unsymbolized;

#endif
