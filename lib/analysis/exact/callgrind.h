/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What valgrind's tool callgrind counted, brought into the form of exact.h. Two things of it are
 * read: its dumps (format: "Callgrind Format Specification" in valgrind's manual) with the
 * executions of each instruction and the branches between them, and its log, which tells of
 * processes, of the images that each has mapped and of the dumps written, in the order of time.
 *
 * A dump names the image of code in .text alone and counts in its vaddr there; all other code,
 * .plt and .init included, stands at addresses of the process under "???". So the log is needed to
 * tell where images lay.
 *
 * Neither is believed: any bytes give an error or counts, never a crash.
 */
#ifndef DCPI_CALLGRIND_H
#define DCPI_CALLGRIND_H

#include "exact.h"

/* ---- a dump (callgrind.c) -------------------------------------------------------------------- */

struct callgrind_sink {
	void *ctx;
	/* The instruction at @addr ran @count times. @object: a path, or "???". 0 or negative. */
	int (*count)(void *ctx, const char *object, uint64_t addr, uint64_t count);
	/* It went to @to, @count times. @to_object NULL: nobody knows where that is. */
	int (*edge)(void *ctx, const char *object, uint64_t from, const char *to_object,
		    uint64_t to, uint64_t count);
};

/* What stands before the first count of a dump; empty where it says nothing. */
struct callgrind_head {
	char creator[64]; /* "callgrind-3.19.0": no blanks */
	uint32_t pid;
};

/*
 * Hand every line of a dump to @sink. Wants what "--dump-instr=yes --dump-line=no
 * --collect-jumps=yes" writes, compressed or not. @head is filled before. Errors, with @err:
 * -DCPI_EFORMAT (the line is named; or the sum of the counts is not what the dump says),
 * -DCPI_ETRUNCATED (no end), -DCPI_EOVERFLOW, those of @sink.
 */
int callgrind_parse(const void *data, size_t len, const char *name,
		    const struct callgrind_sink *sink, struct callgrind_head *head,
		    struct base_err *err);

/* ---- the log ------------------------------------------------------------------------------- */

enum callgrind_line_kind {
	CALLGRIND_OTHER,  /* nothing that matters */
	CALLGRIND_BEGIN,  /* a process of valgrind's begins, anew where it executes a program */
	CALLGRIND_IMAGE,  /* it has mapped an image: @path */
	CALLGRIND_PLACE,  /* of the image named last: .text lies at @avma, in the file at @svma */
	CALLGRIND_LAST,	  /* the next dump is its last */
	CALLGRIND_DUMP,	  /* begins to write @path */
	CALLGRIND_DUMPED, /* has written it */
	CALLGRIND_ALARM,  /* something that the user should see: @path is the text */
};

struct callgrind_line {
	enum callgrind_line_kind kind;
	uint32_t pid;
	uint32_t parent;     /* BEGIN */
	uint64_t svma, avma; /* PLACE */
	const char *path;    /* not terminated: */
	size_t path_len;
};

/* One line of what "-v -v" logs, without its newline. */
void callgrind_log_line(const char *text, size_t len, struct callgrind_line *out);

/* ---- summing (callgrind_sum.c) --------------------------------------------------------------- */

/* Where an image lay in a process. */
struct callgrind_map {
	char *path;
	uint64_t bias; /* address - vaddr */
};

struct callgrind_maps {
	struct callgrind_map *v;
	size_t nr, cap;
};

int callgrind_maps_copy(struct callgrind_maps *to, const struct callgrind_maps *from);
int callgrind_maps_add(struct callgrind_maps *m, const char *path, uint64_t bias);
void callgrind_maps_release(struct callgrind_maps *m);

struct callgrind_sum;

/*
 * Sums go to @e, which the caller keeps. @dyn: the folder of pseudo-images in which those of
 * counted processes are, made on this machine from @since (UTC seconds) on (0: whenever and
 * wherever); NULL: none.
 */
int callgrind_sum_open(struct exact *e, const char *dyn, uint64_t since, struct callgrind_sum **out,
		       struct base_err *err);
/* Add the dump in @path, whose process had these images mapped. 0 or negative with @err. */
int callgrind_sum_add(struct callgrind_sum *s, const char *path, const struct callgrind_maps *maps,
		      struct base_err *err);
/*
 * After the last dump: a string instruction that repeats itself, which callgrind counts once for
 * each round, becomes one execution; and each image gets the procedures that ran.
 */
int callgrind_sum_end(struct callgrind_sum *s, struct base_err *err);
const char *callgrind_sum_creator(const struct callgrind_sum *s);
void callgrind_sum_close(struct callgrind_sum *s);

#endif
