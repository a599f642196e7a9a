/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The output of dcpilist, as text (list_text.c) or JSON (list_json.c): a listing by instruction and
 * by source line.
 */
#ifndef DCPI_LIST_H
#define DCPI_LIST_H

#include "estimate.h"
#include "listing.h"
#include "profileme.h"
#include "report.h"
#include "select.h"
#include "valued.h"

/* Execution counts of a listing's instructions, and the cost of each execution. */
struct listing_freq_unit {
	enum freq_confidence confidence; /* FREQ_NONE: not known */
	double freq;			 /* executions */
	double units;			 /* units of the cost event spent here: samples * period */
};

struct listing_freq {
	struct listing_freq_unit *v; /* indexed by unit of the listing */
	size_t event;		     /* the event that determines the frequencies */
	size_t cost_event;	     /* the event of the costs: a clock or cycles */
	bool has_cost;
	/*
	 * True: executions, and units / freq is the cost of one. False: at best proportions,
	 * without costs (see struct estimate).
	 */
	bool absolute;
	uint64_t traces;	/* above 0: proportions from so many traces (see struct estimate) */
	uint32_t nr_unresolved; /* number of indirect jumps with unknown targets */
};

struct list_source {
	struct image_source *text; /* NULL: not found */
	size_t indent;		   /* columns that all lines of the procedure begin with */
};

struct list_options {
	bool as_asm, as_source, as_both; /* else what is there decides */
	bool in_order, bytes, freq, no_freq, hot, no_header;
	bool all;	     /* procedures of the images that are operands */
	bool valued;	     /* values even where nobody says whose */
	const char *metrics; /* columns of instruction samples; NULL: none */
	struct valued_options values;
};

/* Lines of an option table, for static structs select @s and list_options @o. */
/* clang-format off */
#define LIST_OPTIONS(s, o)									   \
	SELECT_OPTIONS(s),									   \
	{ "asm", BASE_OPT_FLAG, &(o).as_asm, NULL,						   \
	  "Instructions in order of address, source lines named where they change.", 0, 0 },	   \
	{ "source", BASE_OPT_FLAG, &(o).as_source, NULL, "Source lines alone.", 0, 0 },		   \
	{ "both", BASE_OPT_FLAG, &(o).as_both, NULL,						   \
	  "Source lines in their order, with the instructions of each beneath it.", 0, 0 },	   \
	{ "order", BASE_OPT_FLAG, &(o).in_order, NULL,						   \
	  "As -both, but in order of address: a source line above each run of its instructions.", 0,\
	  0 },											   \
	{ "bytes", BASE_OPT_FLAG, &(o).bytes, NULL, "Show the instructions' bytes too.", 0, 0 },   \
	{ "freq", BASE_OPT_FLAG, &(o).freq, NULL,						   \
	  "Show how sure it is how often instructions ran, beside that and what one run of them "  \
	  "cost; fail where no event tells it.",						   \
	  0, 0 },										   \
	{ "no_freq", BASE_OPT_FLAG, &(o).no_freq, NULL,						   \
	  "Leave out how often instructions ran and what one run of them cost.", 0, 0 },	   \
	{ "hot", BASE_OPT_FLAG, &(o).hot, NULL,							   \
	  "Leave out lines and instructions without samples, but for two beside each that has "	   \
	  "some; JSON has all.",								   \
	  0, 0 },										   \
	SELECT_OPTION_SOURCE(image_source_path),						   \
	{ "no_header", BASE_OPT_FLAG, &(o).no_header, NULL,					   \
	  "Leave out the lines above the table.", 0, 0 },					   \
	VALUED_OPTIONS((o).values)
/* clang-format on */

/* A row of the text, for -hot. */
enum list_level {
	LIST_BODY, /* one that is listed for its samples */
	LIST_NOTE, /* stands above some of them, as what they are inlined into */
	LIST_LINE, /* a source line above its instructions */
	LIST_GAP,  /* says that others lie between */
};

struct list_row {
	enum list_level level;
	bool hot;
	unsigned int nr; /* source lines that it stands for */
};

struct list {
	const struct list_options *opt;
	struct analysis *a;
	struct analysis_listing *l;
	struct list_source *sources;	/* sources, by the listing's file index */
	struct analysis_unit **by_line; /* units with a line, by file and line, then address */
	size_t nr_by_line;
	struct listing_freq freq; /* v is NULL where it is not shown */
	bool has_freq, has_cost;  /* columns of it that the text has */
	double freq_unit;	  /* by which it is multiplied there */
	struct valued valued;
	struct hotlists_listing values; /* v is NULL where they are not shown */
	struct isample_columns columns; /* of instruction samples */
	struct table t;
	bool is_source;	       /* it is in order of source lines or shows them alone */
	struct list_row *rows; /* those of the table */
	size_t nr_rows, cap_rows;
};

/*
 * Source text for a cell, without the first @skip columns, tabs as blanks: their width would depend
 * on the columns before. Returns false past the end of the source.
 */
bool list_source_text(const struct image_source *src, unsigned int line, size_t skip, char *text,
		      size_t text_len);
/* Sum of a line's units by event (ANALYSIS_NR_EVENTS); returns the index behind them. */
size_t list_sum_line(const struct list *x, size_t from, uint64_t *sum);

/* Adds what is told at the unit to @sum, where there are such columns. */
void list_tell(const struct list *x, const struct analysis_unit *u, struct told_values *sum);

/* The unit's bytes; @u may be NULL. */
struct valued_insn list_insn(const struct list *x, const struct analysis_unit *u);

/* The unit of an event after a cost: "1.0cy". */
const char *list_unit_name(const struct list *x);
/* Is it more than a hint? @f may be NULL. */
static inline bool list_is_known(const struct listing_freq_unit *f)
{
	return f && (f->confidence == FREQ_MEDIUM || f->confidence == FREQ_HIGH);
}

/* And is it enough to say what one run costs? */
bool list_is_costed(const struct list *x, const struct listing_freq_unit *f);
/*
 * Join the frequencies of several instructions: that of the most often executed, with the cost of
 * all.
 */
void list_join_freq(const struct list *x, const struct analysis_unit *u,
		    struct listing_freq_unit *sum);

/* The main function of a command that lists: parses by @cmd, whose options write to @sel and @opt.
 */
int list_main(const struct base_cmd *cmd, struct select *sel, struct list_options *opt, int argc,
	      char **argv);
/* An object with all of it. */
struct json_object *list_json(struct list *x);
/* All of it, printed. 0 or negative. */
int list_print_text(struct list *x, struct base_err *err);

#endif
