/* SPDX-License-Identifier: BSD-2-Clause */
/* Labels that users give to processes (label.c), also over a restart (label_keep.c). */
#ifndef DCPI_DAEMON_LABEL_H
#define DCPI_DAEMON_LABEL_H

#include "process.h"

enum { LABEL_MAX = 64, LABELS_MAX = 1024, LABELS_OF_USER = 64 };

struct label {
	char *text;
	bool given; /* by @uid, in @epoch at last */
	uint32_t uid;
	uint64_t epoch;
};

/* That a process had under a daemon before us. */
struct label_kept {
	int32_t pid;
	uint64_t start_ns; /* since boot */
	const char *text;
};

/* Zero-initialize. A text once in it stays where it is until labels_release. */
struct labels {
	struct label *items;
	size_t nr, cap;
	uint64_t epoch; /* a number, from 0 */

	/* label_keep.c */
	struct label_kept *kept; /* of processes that were not met yet */
	size_t nr_kept, cap_kept;
	struct base_buf written; /* what stands in the file */
	uint64_t written_ns;	 /* when it was looked at last */
	bool changed;		 /* some process got one since */
	bool failed;		 /* it could not be written, and that was said */
};

/* @len bytes from anybody: 0, or -EINVAL with @err, which has the first of them. */
int label_check(const char *text, size_t len, struct base_err *err);
/* The text that processes refer to; NULL: no memory. */
const char *labels_get(struct labels *t, const char *text);
/* @uid wants to give it: 0, -DCPI_ELIMIT (so many labels in one epoch; root has all that are left),
 * -ENOMEM. */
int labels_give(struct labels *t, const char *text, uint32_t uid, struct base_err *err);
void labels_new_epoch(struct labels *t);
void labels_release(struct labels *t);

/*
 * Over a restart of the daemon (label_keep.c). @run_dir/labels holds a first line with the boot's
 * id, then a line PID START-TIME LABEL for each process that has one; there is none where none has.
 * Failures are logged.
 */
void labels_keep_read(struct labels *t, const char *run_dir);
void labels_keep_write(struct labels *t, const struct processes *processes, const char *run_dir);
/* @p, whose start time is known, gets back what it had; once. */
void labels_keep_restore(struct labels *t, struct process *p);
/* The file's text. Of another @boot nothing is taken. 0, -DCPI_EVERSION, -DCPI_EFORMAT (nothing is
 * taken), -DCPI_ELIMIT, -ENOMEM. */
int labels_keep_parse(struct labels *t, const char *text, size_t len, const char *boot);
/* Append the file's text to @out. Of how many processes it tells, or -ENOMEM. */
int labels_keep_format(const struct labels *t, const struct processes *processes, const char *boot,
		       struct base_buf *out);

#endif
