/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exact counts of instructions and edges, as dcpix counted them: the files PREFIX.xct (counts) and
 * PREFIX.tab (the procedures that contain them), docs/format/xct.md. Counts are by image identity
 * and img_off, so that they fit the profiles of any run.
 *
 * An instruction without a count never ran. Only edges that an instruction made are stored: taken
 * branches, jumps, calls; control that continues at the next instruction is the rest (exact_fall).
 * Files are untrusted: any bytes give an error or counts, never a crash.
 */
#ifndef DCPI_EXACT_H
#define DCPI_EXACT_H

#include "base.h"
#include "image.h"

#define EXACT_OUTSIDE UINT64_MAX /* an edge's target outside of the image */

enum exact_kind {
	EXACT_FILE,    /* offsets are img_off of an ordinary file */
	EXACT_DYNAMIC, /* offsets are img_off of a pseudo-image */
	EXACT_PROCESS, /* code of one process without an image: offsets are its addresses */
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
	bool hashed; /* a routine of a pseudo-image: hashes identify it wherever it lies */
	struct image_hashes hashes;
};

struct exact_image {
	enum exact_kind kind;
	struct base_id id; /* len 0: EXACT_PROCESS, or a file without a build-id */
	uint32_t pid;	   /* EXACT_PROCESS; else 0 */
	char **paths;	   /* its paths; the facility of a pseudo-image. At least one */
	size_t nr_paths, cap_paths;
	/* Counts ascend by offset, edges by (from, to), procedures by offset. */
	struct exact_count *counts;
	size_t nr_counts, cap_counts;
	struct exact_edge *edges;
	size_t nr_edges, cap_edges;
	struct exact_procedure *procedures; /* from the .tab file, if there is one */
	size_t nr_procedures, cap_procedures;
	bool dirty; /* not sorted yet (exact.c) */
};

struct exact_run {
	int64_t utc; /* start time in seconds */
	uint64_t nr_processes;
	int64_t status; /* exit status of the command, as a shell has it */
	char *counter;	/* the counting program: "callgrind-3.19.0" */
	char *command;
};

/* Zero-initialize; release with exact_release. */
struct exact {
	struct exact_run *runs;
	size_t nr_runs, cap_runs;
	struct exact_image **images;
	size_t nr_images, cap_images;
	struct base_map by_key; /* owned by exact.c */
};

void exact_release(struct exact *e);

/* ---- files (file.c) -------------------------------------------------------------------------- */

/*
 * Adds the counts of an .xct file, or the procedures of a .tab file, to @e; equal images are
 * merged. 0 or, with @err: -DCPI_EFORMAT (naming the line), -DCPI_EVERSION, -DCPI_ECHECKSUM,
 * -DCPI_ETRUNCATED, -DCPI_EOVERFLOW (a sum), -errno. After an error @e can only be released.
 */
int exact_read(struct exact *e, const char *path, struct base_err *err);
int exact_read_tab(struct exact *e, const char *path, struct base_err *err);
/* Parse the same from memory; @name is for messages. */
int exact_parse(struct exact *e, const void *data, size_t len, const char *name,
		struct base_err *err);
int exact_parse_tab(struct exact *e, const void *data, size_t len, const char *name,
		    struct base_err *err);
/* Append the files' text to @out. 0 or -ENOMEM. */
int exact_format(struct exact *e, struct base_buf *out);
int exact_format_tab(struct exact *e, struct base_buf *out);

/* ---- making (exact.c) ------------------------------------------------------------------------ */

/* These functions add to what exists. 0, -ENOMEM or -DCPI_EOVERFLOW (64 bits). */
int exact_run_add(struct exact *e, const struct exact_run *run); /* copies the strings */
/* Finds or adds the image of that identity, or without one, of that path or pid. */
int exact_image_add(struct exact *e, enum exact_kind kind, const struct base_id *id, uint32_t pid,
		    const char *path, struct exact_image **out);
int exact_count_add(struct exact_image *x, uint64_t off, uint64_t count);
int exact_edge_add(struct exact_image *x, uint64_t from, uint64_t to, uint64_t count);
int exact_procedure_add(struct exact_image *x, const struct exact_procedure *p);
/* Sorts all counts and merges equal ones; exact_read does so, and exact_format before it writes. */
int exact_sort(struct exact *e);

/* ---- asking (exact.c) ------------------------------------------------------------------------ */

/* Returns the image of that identity, or NULL. */
const struct exact_image *exact_find(const struct exact *e, const struct base_id *id);
/* Returns the executions of the instruction at @off: 0 if it never ran. */
uint64_t exact_executions(const struct exact_image *x, uint64_t off);
/* Returns how often the instruction at @from branched to @to. */
uint64_t exact_taken(const struct exact_image *x, uint64_t from, uint64_t to);
/* Returns how often control continued from @from at @next, the instruction behind it: executions
 * that took no other edge. For a call that is 0: returns are the executions of the instruction
 * behind it. */
uint64_t exact_fall(const struct exact_image *x, uint64_t from, uint64_t next);
/* Returns the number of edges that leave @from, and the first of them in *@out. */
size_t exact_edges_of(const struct exact_image *x, uint64_t from, const struct exact_edge **out);

/*
 * The counts of one procedure, by address in an opened image. An image of the same identity is
 * found directly. A routine of another pseudo-image is found by facility, name and hash, or else by
 * the masked hash (its bytes differ in operands alone); this needs the .tab file.
 */
struct exact_view {
	const struct exact_image *image;
	const struct image *img; /* converts offsets, or (NULL) @move does */
	uint64_t move;		 /* off = vaddr + move, modulo 2^64 */
};

/* Looks up the counts of the procedure; @id: the image's identity, as in profiles. 0, or
 * -ENOENT: the image, or this procedure of a pseudo-image, was not counted. */
int exact_view(const struct exact *e, struct image *img, const struct base_id *id,
	       const struct image_symbol *symbol, struct exact_view *out);
uint64_t exact_view_executions(const struct exact_view *v, uint64_t vaddr);
uint64_t exact_view_taken(const struct exact_view *v, uint64_t from, uint64_t to);
uint64_t exact_view_fall(const struct exact_view *v, uint64_t from, uint64_t next);

#endif
