/* SPDX-License-Identifier: BSD-2-Clause */
/* The workloads whose samples options such as -comm choose (report_open.c). */
#ifndef DCPI_WORKLOADS_H
#define DCPI_WORKLOADS_H

#include "select.h"

/* Zero-initialize; release also on failure. */
struct workloads {
	struct profdb_workloads *w;    /* workloads of all chosen epochs */
	struct workload_filter filter; /* as the options say */
	const char **uids;	       /* its globs of users, whose names are numbers here */
	char **numbers;
	size_t nr_numbers;
};

/* The filter alone, of no time. 0 or negative with @err. */
int workloads_filter(const struct select *s, struct workloads *out, struct base_err *err);
void workloads_release(struct workloads *x);

#endif
