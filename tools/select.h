/* SPDX-License-Identifier: BSD-2-Clause */
/* Options that every analysis tool has: the database, and the part of it to read. */
#ifndef DCPI_SELECT_H
#define DCPI_SELECT_H

#include "base.h"
#include "demangle.h"
#include "terminal.h"
#include "when.h"
#include "workload.h"

struct select {
	const char *db;		     /* -db, else $DCPIDB, else ./dcpi.db where there is one */
	const char *epoch;	     /* NAME|latest|all|FROM..TO; NULL: the newest */
	const char *platform;	     /* NULL: all */
	const char *event;	     /* NULL: all events */
	const char *since, *until;   /* as when_parse takes them; NULL: any time */
	bool whole;		     /* the output has no minutes: whole epochs are chosen */
	bool minutes;		     /* only what has minutes is shown */
	bool read_minutes;	     /* minutes are read, whether or not they choose samples */
	struct base_opt_list labels; /* -label: only samples with one of these */
	/* -comm, -exe, …: only samples of workloads that match one of each; that of labels is
	 * empty. */
	struct base_opt_list globs[WORKLOAD_NR_KEYS];
	struct base_opt_list callers; /* -caller: only samples that one of these called */
	struct base_opt_list files;   /* -p: where images may be */
	struct base_opt_list maps;    /* -m: dcpiscan's maps of where they are */
	bool unchecked;		      /* callers are not compared with their code */
	bool sums;		      /* the sums over images suffice */
	bool apart;		      /* keep processes apart that have profiles of their own */
	bool by_label;		      /* keep the profiles of labels apart */
	bool json;
	bool elsewhere; /* the answer goes to a file: the terminal has messages alone */
};

/* Lines of an option table, for a static struct select @s. */
/* clang-format off */
#define SELECT_OPTIONS_DB(s)                                                                       \
	{ "db", BASE_OPT_STRING, &(s).db, "DIR", "The database (default: $DCPIDB, else dcpi.db here); or the store of a fleet, clickhouse://[USER@]HOST/DATABASE (dcpiship).", 0, 0 },       \
	SELECT_OPTIONS_TIME(s)
/* A command that reads no store. */
#define SELECT_OPTIONS_DB_ALONE(s)                                                                 \
	{ "db", BASE_OPT_STRING, &(s).db, "DIR",                                                   \
	  "The database (default: $DCPIDB, else dcpi.db here).", 0, 0 },                           \
	SELECT_OPTIONS_TIME(s)
#define SELECT_OPTIONS_TIME(s)                                                                     \
	{ "epoch", BASE_OPT_STRING, &(s).epoch, "EPOCH",                                           \
	  "Which epochs: NAME, 'latest', 'all', or FROM..TO (default: the newest).", 0, 0 },       \
	{ "platform", BASE_OPT_STRING, &(s).platform, "NAME",                                      \
	  "Only this platform's samples (default: all).", 0, 0 },                                  \
	{ "since", BASE_OPT_STRING, &(s).since, "TIME",                                            \
	  "Only samples from this time on: " WHEN_FORMS " (default epochs: all of that time).",    \
	  0, 0 },                                                                                  \
	{ "until", BASE_OPT_STRING, &(s).until, "TIME", "Only samples before this time.", 0, 0 }
#define SELECT_OPTION_LABEL(s)                                                                     \
	{ "label", BASE_OPT_LIST, &(s).labels, "LABEL",                                            \
	  "Only samples of programs that ran under this label (dcpilabel). Repeatable.", 0, 0 }
#define SELECT_OPTIONS_WORKLOAD(s)                                                                 \
	{ "comm", BASE_OPT_LIST, &(s).globs[WORKLOAD_COMM], "GLOB",                                \
	  "Only samples of processes of this name. Repeatable, as those below: of what is said "   \
	  "more than once one must match, and all that is said.",                                  \
	  0, 0 },                                                                                  \
	{ "exe", BASE_OPT_LIST, &(s).globs[WORKLOAD_EXE], "GLOB",                                  \
	  "Only of this program: its path, or its base name.", 0, 0 },                             \
	{ "pid", BASE_OPT_LIST, &(s).globs[WORKLOAD_PID], "GLOB",                                  \
	  "Only of this process. Small ones are not kept apart; the head says how much they are.", \
	  0, 0 },                                                                                  \
	{ "uid", BASE_OPT_LIST, &(s).globs[WORKLOAD_UID], "GLOB",                                  \
	  "Only of this user: a number, or a name that is known here.", 0, 0 },                    \
	{ "cgroup", BASE_OPT_LIST, &(s).globs[WORKLOAD_CGROUP], "GLOB",                            \
	  "Only of this cgroup; '/a/*' is all below /a.", 0, 0 },                                  \
	{ "unit", BASE_OPT_LIST, &(s).globs[WORKLOAD_UNIT], "GLOB",                                \
	  "Only of this unit of systemd: the innermost one of the cgroup.", 0, 0 },                \
	{ "container", BASE_OPT_LIST, &(s).globs[WORKLOAD_CONTAINER], "GLOB",                      \
	  "Only of this container: its id ('4f5e*') or name, or the uid of its pod.", 0, 0 },      \
	{ "thread", BASE_OPT_LIST, &(s).globs[WORKLOAD_THREAD], "GLOB",                            \
	  "Only of threads of this name.", 0, 0 }
#define SELECT_OPTIONS_FILES(files, maps)                                                          \
	{ "p", BASE_OPT_LIST, &(files), "FILE",                                                    \
	  "An image may be here; it is taken where its build-id is the profiled one. Repeatable.", \
	  0, 0 },                                                                                  \
	{ "m", BASE_OPT_LIST, &(maps), "MAP",                                                      \
	  "Images may be where this map of dcpiscan has them. Repeatable.", 0, 0 }
#define SELECT_OPTION_CALLER(s)                                                                    \
	{ "caller", BASE_OPT_LIST, &(s).callers, "PROCEDURE",                                      \
	  "Only samples with this procedure among their callers, as far as call paths tell "       \
	  "(dcpid -callpaths). Repeatable: or this one.",                                          \
	  0, 0 }
#define SELECT_OPTION_UNCHECKED(s)                                                                 \
	{ "unchecked", BASE_OPT_FLAG, &(s).unchecked, NULL,                                        \
	  "Believe call paths as they are, without a look at the code of callers.", 0, 0 }
#define SELECT_OPTION_SOURCE(path)                                                                 \
	{ "source-path", BASE_OPT_STRING, &(path), "DIR[:DIR]",                                    \
	  "Sources are there: each is looked for under its name, then without its first folders, "  \
	  "before it is where its compiler read it.",                                              \
	  0, 0 }
#define SELECT_OPTION_MANGLED                                                                      \
	{ "mangled", BASE_OPT_FLAG, &demangle_off, NULL,                                           \
	  "Show procedures of C++ and Rust by the linker's names.", 0, 0 }
#define SELECT_OPTIONS(s)                                                                          \
	SELECT_OPTIONS_DB(s),                                                                      \
	SELECT_OPTION_LABEL(s),                                                                    \
	SELECT_OPTIONS_WORKLOAD(s),                                                                \
	SELECT_OPTIONS_FILES((s).files, (s).maps),                                                 \
	{ "event", BASE_OPT_STRING, &(s).event, "EVENT", "Only samples of this event.", 0, 0 },    \
	SELECT_OPTION_MANGLED,                                                                     \
	TERMINAL_OPTION_WIDE,                                                                      \
	{ "json", BASE_OPT_FLAG, &(s).json, NULL, "Print JSON with the same rows (dcpijson(5)).", 0, 0 }
/* clang-format on */

/* Fill in defaults and refuse what cannot be. 0 or -DCPI_EUSAGE with @err. Call after parsing. */
int select_check(struct select *s, struct base_err *err);
/* The option, without its dash, that chooses the samples of some workloads alone; NULL: none. */
const char *select_workload(const struct select *s);
/* -DCPI_EUSAGE where they are: @what ("call paths") are not kept by workload. Else 0. */
int select_refuse_workloads(const struct select *s, const char *what, struct base_err *err);

#endif
