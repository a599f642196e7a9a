/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How often instructions and branches truly ran, as dcpix counted them: the files PREFIX.xct (the
 * counts) and PREFIX.tab (the procedures that they lie in), docs/format/xct.md. Counts are by image
 * identity and img_off, so that they fit the profiles of any run.
 *
 * An instruction that is not there never ran. Of edges only those are kept that an instruction
 * made: branches taken, jumps, calls; what goes on to the next instruction is the rest
 * (exact_fall). Files are not believed: any bytes give an error or counts, never a crash.
 */
#ifndef DCPI_EXACT_H
#define DCPI_EXACT_H

#include "base.h"
#include "image.h"

#define EXACT_OUTSIDE UINT64_MAX /* an edge's target that is not in the same image */

enum exact_kind {
	EXACT_FILE,    /* offsets are img_off of an ordinary file */
	EXACT_DYNAMIC, /* offsets are img_off of a pseudo-image */
	EXACT_PROCESS, /* code of one process that no image holds: offsets are its addresses */
};

struct exact_count {
	uint64_t off, count; /* count above 0 */
};

struct exact_edge {
	uint64_t from, to; /* instructions */
	uint64_t count;	   /* above 0 */
};

struct exact_procedure {
	uint64_t off, len;
	char *name;
	bool hashed; /* of a pseudo-image's routine: what it is, wherever it stands */
	struct image_hashes hashes;
};

struct exact_image {
	enum exact_kind kind;
	struct base_id id; /* len 0: EXACT_PROCESS, or a file without any */
	uint32_t pid;	   /* EXACT_PROCESS; else 0 */
	char **paths;	   /* where it was; of a pseudo-image its facility. At least one */
	size_t nr_paths, cap_paths;
	/* Each ascending, by offset, by (from, to), by offset. */
	struct exact_count *counts;
	size_t nr_counts, cap_counts;
	struct exact_edge *edges;
	size_t nr_edges, cap_edges;
	struct exact_procedure *procedures; /* of the .tab; none without */
	size_t nr_procedures, cap_procedures;
	bool dirty; /* not sorted yet (exact.c) */
};

struct exact_run {
	int64_t utc; /* seconds, when it began */
	uint64_t nr_processes;
	int64_t status; /* of the command, as a shell has it */
	char *counter;	/* what counted: "callgrind-3.19.0" */
	char *command;
};

/* Zero-initialize; release with exact_release. */
struct exact {
	struct exact_run *runs;
	size_t nr_runs, cap_runs;
	struct exact_image **images;
	size_t nr_images, cap_images;
	struct base_map by_key; /* exact.c */
};

void exact_release(struct exact *e);

/* ---- files (exact_file.c) -------------------------------------------------------------------- */

/*
 * Add the counts of an .xct, or the procedures of a .tab, to @e; equal images become one. Errors,
 * with @err: -DCPI_EFORMAT (the line is named), -DCPI_EVERSION, -DCPI_ECHECKSUM, -DCPI_ETRUNCATED,
 * -DCPI_EOVERFLOW (a sum), -errno. After an error @e can only be released.
 */
int exact_read(struct exact *e, const char *path, struct base_err *err);
int exact_read_tab(struct exact *e, const char *path, struct base_err *err);
/* The same from memory (fuzzed); @name is for messages. */
int exact_parse(struct exact *e, const void *data, size_t len, const char *name,
		struct base_err *err);
int exact_parse_tab(struct exact *e, const void *data, size_t len, const char *name,
		    struct base_err *err);
/* The files' text. 0 or -ENOMEM. */
int exact_format(struct exact *e, struct base_buf *out);
int exact_format_tab(struct exact *e, struct base_buf *out);

/* ---- making (exact.c) ------------------------------------------------------------------------ */

/* All 0, -ENOMEM or -DCPI_EOVERFLOW (64 bits). What is there already is added to. */
int exact_run_add(struct exact *e, const struct exact_run *run); /* strings are copied */
/* The image of that identity; without an id of that path, or pid. Made where it is missing. */
int exact_image_add(struct exact *e, enum exact_kind kind, const struct base_id *id, uint32_t pid,
		    const char *path, struct exact_image **out);
int exact_count_add(struct exact_image *x, uint64_t off, uint64_t count);
int exact_edge_add(struct exact_image *x, uint64_t from, uint64_t to, uint64_t count);
int exact_procedure_add(struct exact_image *x, const struct exact_procedure *p);
/* Put what was added in order, equal ones summed; done by exact_read and before exact_format. */
int exact_sort(struct exact *e);

/* ---- asking (exact.c) ------------------------------------------------------------------------ */

/* The image of that identity, or NULL. */
const struct exact_image *exact_find(const struct exact *e, const struct base_id *id);
/* Executions of the instruction at @off: 0 where it never ran. */
uint64_t exact_executions(const struct exact_image *x, uint64_t off);
/* How often the instruction at @from branched to @to. */
uint64_t exact_taken(const struct exact_image *x, uint64_t from, uint64_t to);
/* How often control went on from @from to @next, the instruction behind it: what did not go
 * elsewhere. Of a call that is 0: who wants its return counts the instruction behind it. */
uint64_t exact_fall(const struct exact_image *x, uint64_t from, uint64_t next);
/* The edges that leave @from: their number, and the first. */
size_t exact_edges_of(const struct exact_image *x, uint64_t from, const struct exact_edge **out);

/*
 * The counts of one procedure, asked for by address in an image at hand. Of an image of the same
 * identity they are found by that. A routine of another pseudo-image is found by what it is:
 * facility, name and hash, the masked one if need be (its bytes differ in operands alone); this
 * needs the .tab.
 */
struct exact_view {
	const struct exact_image *image;
	const struct image *img; /* offsets by it, or (NULL) by @move */
	uint64_t move;		 /* off = vaddr + move, modulo 2^64 */
};

/* @id: the image's identity, as profiles have it. 0, or -ENOENT: the image, or this procedure of a
 * pseudo-image, was not counted. */
int exact_view(const struct exact *e, struct image *img, const struct base_id *id,
	       const struct image_symbol *symbol, struct exact_view *out);
uint64_t exact_view_executions(const struct exact_view *v, uint64_t vaddr);
uint64_t exact_view_taken(const struct exact_view *v, uint64_t from, uint64_t to);
uint64_t exact_view_fall(const struct exact_view *v, uint64_t from, uint64_t next);

#endif
