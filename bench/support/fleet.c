/* SPDX-License-Identifier: BSD-2-Clause */
/* Simulated machines for bench/fleet. */
/* clang-format off */
/*
 *	fleet load BASE SAMPLES STORE FIRST LAST HOURS BEGIN
 *		rows of machines FIRST to LAST - 1 go into a store
 *	fleet write BASE SAMPLES DB FILES HOURS BEGIN
 *		the database of one machine, whose images are in FILES
 *
 * Each machine has SAMPLES an hour, resampled from the database BASE.
 */
/* clang-format on */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fleet.h"

static uint32_t number(const char *text)
{
	return (uint32_t)strtoul(text, NULL, 10);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int load(const struct fleet *f, char **v, struct base_err *err)
{
	struct fleet_load l = { .first = number(v[1]),
				.last = number(v[2]),
				.hours = number(v[3]),
				.begin = number(v[4]) };
	struct store_server *s;
	double start = now();
	int r = store_open(v[0], NULL, &s, err);

	if (r < 0)
		return r;
	store_set_timeout(s, 600000);
	r = fleet_load(f, s, &l, err);
	store_close(s);
	if (r >= 0)
		printf("machine_hours %" PRIu64 "\nrows %" PRIu64 "\nentries %" PRIu64
		       "\nroutines %" PRIu64 "\nsamples %" PRIu64 "\nimages %" PRIu64
		       "\nseconds %.3f\n",
		       l.machine_hours, l.rows, l.entries, l.routines, l.samples, l.images,
		       now() - start);
	return r;
}

int main(int argc, char **argv)
{
	struct base_err err = { 0 };
	static struct fleet f;
	int r;

	if (argc < 4 || !((argc == 9 && strcmp(argv[1], "load") == 0) ||
			  (argc == 8 && strcmp(argv[1], "write") == 0))) {
		fprintf(stderr, "usage: fleet load BASE SAMPLES STORE FIRST LAST HOURS BEGIN, or "
				"fleet write BASE SAMPLES DB FILES HOURS BEGIN\n");
		return BASE_EXIT_USAGE;
	}
	r = fleet_open(argv[2], strtod(argv[3], NULL), &f, &err);
	if (r >= 0)
		r = argc == 9 ? load(&f, argv + 4, &err)
			      : fleet_write(&f, argv[4], argv[5], number(argv[6]), number(argv[7]),
					    &err);
	if (r < 0)
		base_err_print(&err, "fleet", stderr);
	return r < 0 ? BASE_EXIT_FAILED : BASE_EXIT_OK;
}
