/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The breakdown of the time of whole images: stall.h for each of their procedures with samples,
 * summed up, and the instructions that stalled most. Each sample is in the tally or in one of the
 * named parts beside it.
 */
#ifndef DCPI_STALLS_H
#define DCPI_STALLS_H

#include "procedures.h"
#include "stall.h"

/* An instruction whose stall is shorter (in units of one execution) is not listed. */
#define STALLS_LEAST 0.1

struct stalls_options {
	size_t event; /* an event of time (estimate_model) */
	/* Blocks whose frequency has less confidence are not tallied. */
	enum freq_confidence least;
	enum stall_outside outside;
	size_t max_insns; /* how many stalled instructions to keep */
	/* Called after each procedure; or NULL. */
	void (*progress)(const struct analysis_image *ai, const char *procedure, double samples);
};

struct stalls_proc {
	const struct analysis_image *image;
	char *name;
	uint64_t vaddr;
	struct stall_tally tally;
};

struct stalls_insn {
	const struct analysis_image *image;
	char *procedure;
	uint64_t vaddr;
	char *file; /* NULL: no line */
	unsigned int line;
	double stalled; /* samples */
	double count;	/* executions, or proportions as in struct estimate */
	double length;	/* units of the event for which an execution stalled; below 0: count is 0 */
	uint16_t causes;  /* 1 << enum stall_cause */
	bool unexplained; /* at least a tenth of it has none of these causes */
	enum freq_confidence confidence;
	bool absolute;
};

/* Samples outside of every tally. */
struct stalls_part {
	const char *what; /* "in no procedure"; for images that cannot be analysed "(idle)", … */
	double samples;
};

/* Zero-initialize. */
struct stalls {
	struct stalls_proc *procs; /* procedures with tallied samples, in the order of the visit */
	size_t nr_procs, cap_procs;
	/* sorted by stalled samples once stalls_finish was called; ties by image and address */
	struct stalls_insn *insns;
	size_t nr_insns, cap_insns;
	size_t nr_others;	   /* stalled instructions that are not in the list */
	struct stalls_part *parts; /* most samples first, once stalls_finish was called */
	size_t nr_parts, cap_parts;
	struct stall_tally total;
	double unsure;	/* samples in blocks of lower confidence */
	double samples; /* samples of the event: total.samples and all parts together */
	/* The number of procedures with executions, with proportions only, and with proportions
	 * from traces. */
	size_t nr_absolute, nr_relative, nr_traced;
	uint64_t traces;		  /* traces of all images */
	bool limited[ANALYSIS_NR_EVENTS]; /* indexed by event: its samples limited causes
					     (evidence.h) */
};

/*
 * Adds an image's samples. An image that cannot be analysed becomes a part; its state has the
 * reason. 0, -ENOMEM, or errors of profdb_costs_read with @err.
 */
int stalls_add_image(struct stalls *s, struct analysis *a, struct analysis_image *ai,
		     const struct stalls_options *o, struct base_err *err);
/* Sorts the results; called after the last image. */
void stalls_finish(struct stalls *s, const struct stalls_options *o);
void stalls_release(struct stalls *s);

#endif
