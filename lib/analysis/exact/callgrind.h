/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts of valgrind's tool callgrind in the form of exact.h. Two of its outputs are read: the
 * dumps (format: "Callgrind Format Specification" in valgrind's manual), with the executions of
 * each instruction and the branches between them; and the log, which reports processes, the images
 * that each maps, and the dumps written, in the order of time.
 *
 * A dump names an image only for code in .text, which it counts by the image's vaddr; all other
 * code, including .plt and .init, is counted by addresses of the process under "???". So the log is
 * needed to find the images' addresses.
 *
 * Both are untrusted: any bytes give an error or counts, never a crash.
 */
#ifndef DCPI_CALLGRIND_H
#define DCPI_CALLGRIND_H

#include "exact.h"

/* ---- a dump ---------------------------------------------------------------------------------- */

struct callgrind_sink {
	void *ctx;
	/* Receives the count of the instruction at @addr. @object: a path, or "???". 0 or
	 * negative. */
	int (*count)(void *ctx, const char *object, uint64_t addr, uint64_t count);
	/* Receives the count of an edge to @to. @to_object NULL: the target's object is not
	 * known. */
	int (*edge)(void *ctx, const char *object, uint64_t from, const char *to_object,
		    uint64_t to, uint64_t count);
};

/* The header of a dump; empty fields: the dump does not have them. */
struct callgrind_head {
	char creator[64]; /* "callgrind-3.19.0": no blanks */
	uint32_t pid;
};

/*
 * Passes every count of a dump to @sink. It must be the output of "--dump-instr=yes --dump-line=no
 * --collect-jumps=yes", compressed or not. @head is filled before the first count. Errors, with
 * @err: -DCPI_EFORMAT (naming the line; also if the sum of the counts is wrong), -DCPI_ETRUNCATED
 * (no end), -DCPI_EOVERFLOW, errors of @sink.
 */
int callgrind_parse(const void *data, size_t len, const char *name,
		    const struct callgrind_sink *sink, struct callgrind_head *head,
		    struct base_err *err);

/* ---- the log --------------------------------------------------------------------------------- */

enum callgrind_line_kind {
	CALLGRIND_OTHER,  /* a line without relevance */
	CALLGRIND_BEGIN,  /* a process begins under valgrind, or executes a new program */
	CALLGRIND_IMAGE,  /* a process mapped an image: @path */
	CALLGRIND_PLACE,  /* the last image has .text at @avma, in the file at @svma */
	CALLGRIND_LAST,	  /* the next dump is its last */
	CALLGRIND_DUMP,	  /* the process begins to write @path */
	CALLGRIND_DUMPED, /* the process has written @path */
	CALLGRIND_ALARM,  /* a message for the user: @path is the text */
};

struct callgrind_line {
	enum callgrind_line_kind kind;
	uint32_t pid;
	uint32_t parent;     /* BEGIN */
	uint64_t svma, avma; /* PLACE */
	const char *path;    /* not NUL-terminated */
	size_t path_len;
};

/* Parses one line of the log of "-v -v", without its newline. */
void callgrind_log_line(const char *text, size_t len, struct callgrind_line *out);

/* ---- summing --------------------------------------------------------------------------------- */

/* The load address of an image in a process. */
struct callgrind_map {
	char *path;
	uint64_t bias; /* address - vaddr */
};

struct callgrind_maps {
	struct callgrind_map *v;
	size_t nr, cap;
};

struct callgrind_dump {
	char *path;
	uint32_t pid;
	struct callgrind_maps maps; /* images that its process had mapped */
};

/*
 * Adds the dumps of a run to @e. @dyn: the folder with the pseudo-images of the counted processes,
 * made on this machine since @since (UTC seconds; 0: any time and machine); NULL: none. *@head:
 * that of the last dump; a creator without a name is "callgrind". 0 or negative with @err.
 */
int callgrind_sum(struct exact *e, const char *dyn, uint64_t since,
		  const struct callgrind_dump *dumps, size_t nr, struct callgrind_head *head,
		  struct base_err *err);

#endif
