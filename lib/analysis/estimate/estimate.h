/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How often the blocks of a procedure ran, from its samples: the flow graph, the samples of an
 * event and what is known of the blocks' costs, brought together for freq.h.
 */
#ifndef DCPI_ESTIMATE_H
#define DCPI_ESTIMATE_H

#include "analysis.h"
#include "exact.h"
#include "flow.h"
#include "freq.h"
#include "paths.h"

/* A cost measured by fewer samples is not used. */
#define ESTIMATE_MIN_SAMPLES 25

/* What the samples of an event are in proportion to, or -ENOENT where it is neither. */
int estimate_model(const char *event);
/* Is its unit a cycle? Of the other events of time (clocks) it is a nanosecond. */
bool estimate_is_cycles(const char *event);
/*
 * The event that tells most of frequencies: one of instructions, else of time with the most
 * samples in @ai, or in all that was chosen (NULL, or where @ai has none). Its index in @a, or
 * -ENOENT.
 */
int estimate_event(const struct analysis *a, const struct analysis_image *ai);

/* ---- samples --------------------------------------------------------------------------------- */

struct estimate_sample {
	uint64_t vaddr, count;
};

/* The samples of one event in an image. Zero-initialize; release with estimate_samples_release. */
struct estimate_samples {
	struct estimate_sample *v; /* ascending by vaddr */
	size_t nr, cap;
	double period; /* units of the event that a sample stands for; 1 where that is unknown */
	char event[PROFDB_EVENT_NAME];
};

/* 0 or -ENOMEM. Samples at offsets where the image has no address are left out. */
int estimate_samples_gather(struct estimate_samples *s, const struct analysis *a,
			    const struct analysis_image *ai, const struct image *img, size_t event);
/*
 * Executions of instructions instead, as @truth has them of the image that profiles know by @id: 0,
 * -ENOMEM, or -ENOENT where it has none.
 */
int estimate_samples_count(struct estimate_samples *s, const struct exact *truth, struct image *img,
			   const struct base_id *id);
void estimate_samples_release(struct estimate_samples *s);
/* Add to @by_insn (f->nr_insns) what lies in the graph's instructions. Returns how many samples. */
uint64_t estimate_samples_place(const struct estimate_samples *s, const struct flow *f,
				double *by_insn);

/* Of one block, where @by_insn has been filled. */
double estimate_samples_of(const struct flow *f, uint32_t block, const double *by_insn);

typedef int estimate_visit(void *context, const struct image_symbol *symbol, const struct flow *f,
			   const double *by_insn, struct base_err *err);
/* Samples that are in no visited procedure's instructions. */
struct estimate_rest {
	uint64_t no_procedure; /* in none */
	uint64_t no_code;      /* its bytes are not in the image */
	uint64_t no_block;     /* outside of its blocks */
};

/*
 * Visit each procedure of the image that has samples, once; cold parts with the procedure that
 * leads to them. Where procedures share instructions, the innermost has their samples, of such as
 * do not lie inside of one another the first; each is in one @by_insn, or in @rest (may be NULL).
 * Returns the first negative of @visit, those of flow_build, or 0.
 */
int estimate_procedures(struct image *img, const struct estimate_samples *s, estimate_visit *visit,
			void *context, struct estimate_rest *rest, struct base_err *err);

/* ---- frequencies ----------------------------------------------------------------------------- */

struct estimate_input {
	const struct flow *flow;
	const double *by_insn;	 /* samples of each instruction */
	const char *event;	 /* what they are of; else than time or instructions: -EINVAL */
	double period;		 /* units of the event in a sample */
	const struct image *img; /* with @costs: whose offsets these are */
	const struct profdb_costs *costs; /* of that event, or NULL */
	const struct paths *paths;	  /* what windows saw of the image, or NULL */
};

struct estimate {
	struct freq_result freq; /* by block and edge of the graph */
	/*
	 * True: executions. False, where samples are of time and no costs of blocks were measured:
	 * what they would be if each instruction took one unit of the event (a cycle, a
	 * nanosecond); right in proportion to one another at best.
	 */
	bool absolute;
	/*
	 * Above 0: the frequencies are of so many windows, and the samples only say how they
	 * compare with other procedures' (paths.h).
	 */
	uint64_t windows;
	double *units;	/* by block, of the event: samples * period */
	bool *measured; /* by block: its cost is a measured one */
	uint32_t nr_blocks;
};

/*
 * 0, -EINVAL, -ENOMEM; @out is released with estimate_release, also after a failure. A block
 * without a measured cost counts as its number of instructions, each of which costs what the
 * measured ones of the procedure do.
 *
 * Samples of time stand one instruction behind the one that waited. Moving them back was tried and
 * helped frequencies no more than it harmed (docs/decisions/frequencies.md): they stay.
 */
int estimate_frequencies(const struct estimate_input *in, struct estimate *out,
			 struct base_err *err);
void estimate_release(struct estimate *e);

/* What estimates from samples of @event are; @absolute and @windows as above. */
void estimate_text(const char *event, bool absolute, uint64_t windows, char *buf, size_t buf_len);

/* ---- costs ----------------------------------------------------------------------------------- */

struct estimate_kept {
	uint64_t samples;   /* of the image */
	uint64_t blocks;    /* with enough samples for their cost to be used later */
	uint64_t in_blocks; /* samples in these */
};

/*
 * Of an image that @truth has: what each block cost in the run that both counted and sampled,
 * into the costs that @db keeps of it. 0; -ENOENT (a bucket), and other errors of
 * analysis_image_open; -DCPI_EOVERFLOW, -ENOMEM; those of profdb_costs_keep.
 */
int estimate_costs_keep(struct analysis *a, struct analysis_image *ai, size_t event,
			const struct exact *truth, struct profdb *db, struct estimate_kept *kept,
			struct base_err *err);

#endif
