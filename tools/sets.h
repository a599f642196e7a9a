/* SPDX-License-Identifier: BSD-2-Clause */
/* Command lines with several sets of samples: "[common …] -set [option …] [IMAGE …] -set …". */
#ifndef DCPI_SETS_H
#define DCPI_SETS_H

#include <json.h>

#include "rows.h"
#include "select.h"

struct set {
	struct select sel;
	const char *source_path; /* where its sources are (image_source_path); NULL */
	double factor;		 /* its counts are multiplied by it where the command says so */
	int nr_what;
	char **what; /* its images; none: all */
	struct analysis *a;
	struct analysis_rows rows;
};

struct sets {
	struct set *v; /* one for each -set */
	size_t nr;
	int nr_words; /* operands before the first -set */
	char **words;
};

/*
 * Parse argv part by part by @cmd, whose option table writes into @into; what it holds after the
 * part before the first -set is what each set begins with. Lists (-p) are the command's to keep:
 * they would be shared; labels and workloads add up. BASE_OPT_RUN, BASE_OPT_DONE, or negative with
 * @err.
 */
int sets_parse(const struct base_cmd *cmd, struct set *into, int argc, char **argv,
	       struct sets *out, struct base_err *err);
/*
 * Give a copied set its own lists of labels and workloads, which sets_release frees. 0 or negative
 * with @err.
 */
int sets_own_lists(struct set *s, struct base_err *err);
/* Gather the set's samples: sets_gather does it too. */
int sets_open(struct set *s, struct base_err *err);
/* Gather the set's samples and sum them, by image or by procedure (with @code as analysis_rows has
 * it). Negative with @err, also where an image that it names has no samples. */
int sets_gather(struct set *s, bool by_image, bool code, struct base_err *err);
/* The index in @a of the event that the first set chose; negative with @err, which names the @set
 * ("set B") that lacks it. */
int sets_event_find(const struct analysis *a, const char *event, const char *set,
		    struct base_err *err);
/* Numbers of A and of B, where a set is not asked apart. */
struct json_object *sets_json_counts(const uint64_t count[2]);
/* For each set. Returns the exit code. */
int sets_problems(const char *prog, const struct sets *s);
void sets_release(struct sets *s);

#endif
