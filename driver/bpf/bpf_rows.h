/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The unwind tables of the program that walks call paths (kernel/callpaths.h), from the side that
 * fills them. No kernel is needed: the arrays may stand anywhere.
 */
#ifndef DCPI_BPF_ROWS_H
#define DCPI_BPF_ROWS_H

#include "driver.h"
#include "kernel/callpaths.h"
#include "unwind.h"

/* When room is needed at least such a part of all goes, so that programs are waited for rarely. */
enum { BPF_ROWS_SPARE = CALLPATH_NR_CHUNKS / 8 };

/* Operations on the kernel's maps. */
struct bpf_rows_ops {
	/* Make bank @number: *@words of it. 0 or -errno. */
	int (*bank)(void *ctx, uint32_t number, uint32_t **words);
	/* From now on @file leads to table @number. 0 or -errno. */
	int (*lead)(void *ctx, const struct driver_file *file, uint32_t number);
	/* It leads nowhere, and is missing when it is met. */
	void (*forget)(void *ctx, const struct driver_file *file);
	/* Programs are not to believe any more what they remember of files. */
	void (*changed)(void *ctx);
	/* Until all programs that run now have ended. */
	void (*wait)(void *ctx);
};

/* A file that is known, by the number of its table. */
struct bpf_rows_file {
	struct driver_file file;
	bool known;
	uint64_t put_ns;	   /* when it was put, or its table was asked for */
	uint32_t chunk, nr_chunks; /* where its table stands; nr_chunks 0: it has none */
	uint32_t nr_again;	   /* times that it was to be reported again */
	bool again;		   /* it is to be, and was not yet */
	bool replaced; /* another table has its file: this one stands until programs were waited
			  for */
};

/* So many tables that were replaced stand at once. */
enum { BPF_ROWS_REPLACED = 64 };

/* Numbers of files that were looked up lately. */
enum { BPF_ROWS_FOUND = 64 };

struct bpf_rows {
	const struct bpf_rows_ops *ops;
	void *ctx;
	struct callpath_table *tables; /* CALLPATH_NR_FILES */
	struct unwind_python *pythons; /* CALLPATH_NR_FILES */

	uint32_t *banks[CALLPATH_NR_BANKS]; /* NULL: not made yet */
	struct bpf_rows_file files[CALLPATH_NR_FILES];
	bool taken[CALLPATH_NR_CHUNKS];
	uint32_t found[BPF_ROWS_FOUND];
	uint32_t version; /* of the table that was written last; 0 is no table's */
	uint32_t replaced[BPF_ROWS_REPLACED]; /* numbers */
	uint32_t nr_replaced;
	uint64_t nr_tables, bytes, evicted;
};

/* As driver_rows_put; @now_ns: CLOCK_MONOTONIC. */
int bpf_rows_put(struct bpf_rows *r, const struct driver_file *file,
		 const struct unwind_table *table, uint64_t now_ns);
/* It was asked for, and not by bpf_rows_again since. */
bool bpf_rows_is_asked(const struct bpf_rows *r, const struct driver_file *file);
/* @file is missing: true the first time, and after bpf_rows_again; then programs are told not to
 * report it again. */
bool bpf_rows_ask(struct bpf_rows *r, const struct driver_file *file, uint64_t now_ns);
/* As driver_rows_again. */
void bpf_rows_again(struct bpf_rows *r, const struct driver_file *file);
/* As driver_rows_forget. */
void bpf_rows_forget(struct bpf_rows *r, const struct driver_file *files, size_t nr);
/* As driver_rows_rule. */
bool bpf_rows_rule(struct bpf_rows *r, const struct driver_file *file, uint64_t off,
		   struct unwind_rule *rule);
/* The word of this number, as the program reads it. */
uint32_t *bpf_rows_word(const struct bpf_rows *r, uint32_t number);

#endif
