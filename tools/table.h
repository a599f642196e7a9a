/* SPDX-License-Identifier: BSD-2-Clause */
/* Text in columns: cells are put in order, widths found at the end. */
#ifndef DCPI_TABLE_H
#define DCPI_TABLE_H

#include "base.h"

/* Columns are at most this wide; a longer cell moves the rest of its own row only. */
#define TABLE_WIDEST 40

struct table {
	char **cells;
	size_t nr_cells, cap_cells;
	size_t nr_columns;
	uint64_t left; /* bit per column: aligned to the left */
	uint64_t heat; /* bit per column: shares, coloured on a terminal */
	/* Bits per column, of what a terminal has too little room for: */
	uint64_t code;	  /* text whose end is cut, as its beginning says most */
	uint64_t address; /* what is of no use in part */
	uint64_t spare; /* left out before others become too short to be read, the last one first */
	size_t foot;	/* number of last rows that stay where a terminal shows the first ones */
	bool cut;	/* a terminal shows the first ones (terminal_rows) */
	bool failed;	/* out of memory once; told by table_print */
};

/* A column, its head being the first row. At most 64; all of them before the first cell. */
void table_column(struct table *t, bool left, const char *head);
/* They say what the column added last is, as above. */
void table_code(struct table *t);
void table_address(struct table *t);
void table_spare(struct table *t);
/* The next cell. Control characters become '?': names come from outside. */
void table_cell(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/*
 * Leaves out the rows whose @keep is false; it is indexed by row, heads not counted. For those that
 * stood together @gap is called with the first and the one behind the last: it may add a row.
 */
void table_leave_out(struct table *t, const bool *keep,
		     void (*gap)(void *ctx, size_t from, size_t to), void *ctx);
/* 0 or -ENOMEM (nothing printed). Heads only with @heads. No blanks at the ends of lines. On a
 * terminal names are shortened, and spare columns left out, until rows fit. */
int table_print(const struct table *t, bool heads, FILE *to);
/* The same comma-separated, as RFC 4180 has it; empty cells are kept. */
int table_print_csl(const struct table *t, bool heads, FILE *to);
void table_release(struct table *t);

/* base_text_clean. */
char *table_clean(char *text);

#endif
