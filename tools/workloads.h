/* SPDX-License-Identifier: BSD-2-Clause */
/* The samples that options such as -comm choose: read, restricted, and said in heads of reports. */
#ifndef DCPI_WORKLOADS_H
#define DCPI_WORKLOADS_H

#include <json-c/json.h>

#include "select.h"

/* Zero-initialize; release also on failure. */
struct workloads {
	struct profdb_workloads *w;    /* workloads of all chosen epochs */
	struct workload_filter filter; /* as the options say */
	const char **uids;	       /* its globs of users, whose names are numbers here */
	char **numbers;
	size_t nr_numbers;
};

/*
 * Reads the workloads of what is in @a, and leaves in @a only the samples that @s chooses; without
 * such options @a stays as it is. -ENOENT, with a hint: none are kept of it.
 */
int workloads_open(const struct select *s, struct analysis *a, struct workloads *out,
		   struct base_err *err);
/* The filter alone, of no time. 0 or negative with @err. */
int workloads_filter(const struct select *s, struct workloads *out, struct base_err *err);
void workloads_release(struct workloads *x);

/* The lines of the head, and the members of the object, that say what @a was restricted to. */
void workloads_head(const struct analysis *a, FILE *to);
void workloads_json(const struct analysis *a, struct json_object *root);

/* A line of the head, and a member of the object, that say what the kernel told of idle CPUs; none
 * where samples of some workloads, labels or callers alone are shown. */
void workloads_idle_head(struct analysis *a, FILE *to);
void workloads_idle_json(struct analysis *a, struct json_object *root);

#endif
