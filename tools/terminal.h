/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports that go to a terminal: its width, colours, length, and a pager. */
#ifndef DCPI_TERMINAL_H
#define DCPI_TERMINAL_H

#include "base.h"

/* Rows of a table that are printed without -all. */
enum { TERMINAL_ROWS = 40 };

extern bool terminal_wide; /* -wide */
extern bool terminal_all;  /* -all */

/* Lines of an option table. */
/* clang-format off */
#define TERMINAL_OPTION_WIDE                                                                       \
	{ "wide", BASE_OPT_FLAG, &terminal_wide, NULL,                                             \
	  "On a terminal: do not shorten names to fit its width.", 0, 0 }
#define TERMINAL_OPTION_ALL                                                                        \
	{ "all", BASE_OPT_FLAG, &terminal_all, NULL,                                               \
	  "On a terminal: all rows, not just the first 40.", 0, 0 }
/* clang-format on */

/*
 * Looks at standard output. Where it is a terminal, what is printed from here on goes through the
 * user's pager: $DCPI_PAGER, else $PAGER, else less where there is one; none where that is "" or
 * "cat". A command that is interrupted then waits for the pager, and exits with 130. Nothing
 * happens elsewhere.
 */
void terminal_begin(void);
/* Waits until the user has left the pager. To be called when everything was printed. */
void terminal_end(void);

/* Columns that it has, whatever the pager is; 0: it is none. */
size_t terminal_columns(void);

#endif
