/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the time of whole images has gone: stall.h for every procedure of theirs that has samples,
 * added up, and which instructions stalled most. Each sample is in the tally or in one of the named
 * parts beside it.
 */
#ifndef DCPI_STALLS_H
#define DCPI_STALLS_H

#include "procedures.h"
#include "stall.h"

/* An instruction whose stall is shorter (in units of one execution) is not listed. */
#define STALLS_LEAST 0.1

struct stalls_options {
	size_t event; /* of time (estimate_model) */
	/* Blocks whose frequency is less sure are not tallied. */
	enum freq_confidence least;
	enum stall_outside outside;
	size_t max_insns; /* how many stalled instructions to keep */
	/* Told of each procedure when it is done; or NULL. */
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
	double stalled;	  /* samples */
	double count;	  /* executions, or, as struct estimate has it, proportions */
	double length;	  /* units of the event that an execution stalled; below 0: count is 0 */
	uint16_t causes;  /* 1 << enum stall_cause */
	bool unexplained; /* a tenth of it or more has none of these */
	enum freq_confidence confidence;
	bool absolute;
};

/* Samples that are in no tally. */
struct stalls_part {
	const char *what; /* "in no procedure"; of images that cannot be analysed "(idle)", … */
	double samples;
};

/* Zero-initialize. */
struct stalls {
	struct stalls_proc *procs; /* those with tallied samples, as they were met */
	size_t nr_procs, cap_procs;
	/* Most stalled first, once stalls_finish was called; ties by image and address. */
	struct stalls_insn *insns;
	size_t nr_insns, cap_insns;
	size_t nr_others;	   /* stalled instructions that are not among these */
	struct stalls_part *parts; /* most samples first, once stalls_finish was called */
	size_t nr_parts, cap_parts;
	struct stall_tally total;
	double samples; /* of the event: total.samples and all parts together */
	/* Procedures with executions, with proportions only, and with those of windows. */
	size_t nr_absolute, nr_relative, nr_windowed;
	uint64_t windows;		  /* of all images */
	bool limited[ANALYSIS_NR_EVENTS]; /* by event: its samples have limited causes (evidence.h)
					   */
};

/*
 * Add an image's samples. One that cannot be analysed is a part; its state says why. 0, -ENOMEM,
 * errors of profdb_costs_read with @err.
 */
int stalls_add_image(struct stalls *s, struct analysis *a, struct analysis_image *ai,
		     const struct stalls_options *o, struct base_err *err);
/* After the last image. */
void stalls_finish(struct stalls *s, const struct stalls_options *o);
void stalls_release(struct stalls *s);

#endif
