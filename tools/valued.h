/* SPDX-License-Identifier: BSD-2-Clause */
/* Which values are shown beside instructions, and how they read. */
#ifndef DCPI_VALUED_H
#define DCPI_VALUED_H

#include "hotlists.h"
#include "insn_word.h"
#include "profiler.h"
#include "report.h"

/*
 * The name of the values that -vprof collects at calls: argument number %u (from 0) where
 * procedures begin.
 */
#define VALUED_ARGUMENT PROFDB_VALUES_ARG "%u"

struct valued_options {
	bool prof, replay, concise;
	const char *trace; /* a value profiler's file */
	double cutoff;	   /* below 0: not given */
	int64_t show;	   /* 0: not given */
};

/* Before the options are parsed. */
#define VALUED_DEFAULTS .cutoff = -1

/* Lines of an option table, for a static struct valued_options @o. */
/* clang-format off */
#define VALUED_OPTIONS_SHOWN(o)                                                                    \
	{ "vconcise", BASE_OPT_FLAG, &(o).concise, NULL,                                           \
	  "Estimate percentages from the concise samples instead of the counting ones.", 0, 0 },   \
	{ "vcutoff", BASE_OPT_DOUBLE, &(o).cutoff, "PERCENT",                                      \
	  "Values that make up less than this are printed as dots (default: 1).", 0, 100 },        \
	{ "vshow", BASE_OPT_INT, &(o).show, "N",                                                   \
	  "Show the N most frequent values, dots included (default: 8).", 1, 1000 }
#define VALUED_OPTIONS(o)                                                                          \
	{ "vprof", BASE_OPT_FLAG, &(o).prof, NULL,                                                 \
	  "Show the values that instructions had as results, as 'dcpid -vprof' collects them.", 0, \
	  0 },                                                                                     \
	{ "vtrace", BASE_OPT_STRING, &(o).trace, "FILE",                                           \
	  "Show what this value profiler (dcpivprofiler(5)) collected; it says how values read.",  \
	  0, 0 },                                                                                  \
	{ "vreplay", BASE_OPT_FLAG, &(o).replay, NULL,                                             \
	  "Show which loads met stores before them, as 'dcpid -vreplay' collects it: the values "  \
	  "are distances in instructions.",                                                        \
	  0, 0 },                                                                                  \
	VALUED_OPTIONS_SHOWN(o)
/* clang-format on */

static inline bool valued_wanted(const struct valued_options *o)
{
	return o->prof || o->replay || o->trace;
}

/* Which of -vconcise, -vcutoff and -vshow was given, without the dash; NULL: none. Before
 * valued_check. */
static inline const char *valued_shown(const struct valued_options *o)
{
	return o->concise ? "vconcise" : o->cutoff >= 0 ? "vcutoff" : o->show ? "vshow" : NULL;
}

/* Fill in defaults. -DCPI_EUSAGE where options exclude each other, or say how values are shown and
 * none are wanted. */
int valued_check(struct valued_options *o, const struct select *sel, struct base_err *err);

/* The machine's bytes of one instruction, as far as they are there. */
struct valued_insn {
	uint64_t vaddr;
	const uint8_t *code;
	size_t len; /* 0: there are none */
};

/* Zero-initialize. */
struct valued {
	const struct valued_options *opt;
	char profiler[VTRACE_PROFILER_NAME];
	struct hotlists lists;
	struct vtrace_profiler loaded; /* the profiler of -vtrace */
	uint32_t word;		       /* the instruction that its preface was asked for */
	char text[256];		       /* text of a preface or a value */
};

/* Read what @o asks for, of what @a has gathered. Errors: those of hotlists_open, and of loading a
 * value profiler. Release it also on failure. */
int valued_open(struct valued *v, const struct valued_options *o, struct analysis *a,
		struct base_err *err);
void valued_release(struct valued *v);

/* False: nobody interprets code of it. */
bool valued_arch(uint32_t machine, enum vtrace_arch *arch);
/*
 * The operand whose values 'dcpid -vprof' keeps, chosen as in profilers/vp-classic.c: a register
 * (written to @name, VTRACE_REGISTER_NAME bytes), "mem", "taken", "target"; NULL: none.
 */
const char *valued_of(enum vtrace_arch arch, const struct vtrace_operands *o, char *name);
/* A value of the instruction whose cells were put last. Up to the next call. */
const char *valued_text(struct valued *v, uint64_t value);

/* Did it, which is taken up once in s->thld times, come so often that its share means something?
 * Else a dot stands for it. */
static inline bool valued_is_given(const struct hotlist_spot *s, size_t i)
{
	return s->thld <= 1 || s->v[i].count >= 2 * (double)s->thld;
}

/* vtot, thld, nv and the values; all empty for NULL or a spot where nothing was seen. */
void valued_columns(struct table *t);
void valued_cells(struct valued *v, uint32_t machine, const struct valued_insn *insn,
		  const struct hotlist_spot *s, struct table *t);
/* The same of something seen, before which @preface (NULL: its values are not shown) stands. */
void valued_cells_as(struct valued *v, const char *preface, const struct hotlist_spot *s,
		     struct table *t);
struct json_object *valued_json_as(struct valued *v, const char *preface,
				   const struct hotlist_spot *s);
/* The same as an object; NULL where nothing was seen. */
struct json_object *valued_json(struct valued *v, uint32_t machine, const struct valued_insn *insn,
				const struct hotlist_spot *s);

/* "values     1234 seen here, 'values'" and what may not be read. */
void valued_head(const struct valued *v, uint64_t here, FILE *to);
struct json_object *valued_head_json(const struct valued *v, uint64_t here);
/* Which files may not be read. */
void valued_warn(const char *prog, const struct hotlists *lists, FILE *to);

#endif
