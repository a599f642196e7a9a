/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Machines for bench/fleet, made by resampling a real database. Each has images of its own shapes:
 * copies of the real ones, with other identities and other weights, of which most are found on many
 * machines, some on one. What a machine records in an hour is a Poisson number for each offset.
 */
#ifndef DCPI_BENCH_FLEET_H
#define DCPI_BENCH_FLEET_H

#include "profdb.h"
#include "store.h"

enum {
	FLEET_IMAGES = 380, /* of a machine */
	FLEET_OWN = 6,	    /* of these, with an identity that no other machine has */
	FLEET_VERSIONS = 3, /* of each other image in the fleet */
	FLEET_LEVELS = 12,  /* loads, each twice the one before */
};

struct fleet_routine {
	char *name;
	uint64_t off, len;
};

/* A place of an image that may have samples. */
struct fleet_place {
	uint64_t off;
	uint32_t routine;
	double rate;		  /* samples an hour at level 0 */
	float none[FLEET_LEVELS]; /* the probability of no sample */
};

/* An image as the real machine has it. */
struct fleet_source {
	enum profdb_kind kind;
	char *path;
	struct base_id id;
	struct fleet_routine *routines;
	size_t nr_routines;
	struct fleet_place *places; /* rate: counts */
	size_t nr_places;
	double *share;		 /* of each workload */
	struct base_buf symbols; /* store_put_symbols, for its row */
};

/* An image of the simulated machines. */
struct fleet_image {
	const struct fleet_source *source;
	struct fleet_place *places;
};

struct fleet {
	struct fleet_source *sources;
	size_t nr_sources;
	struct fleet_image images[FLEET_IMAGES];
	struct profdb_workload *workloads;
	size_t nr_workloads;
	struct profdb_workloads *w; /* has their texts */
	char event[PROFDB_EVENT_NAME];
	uint64_t period;
};

/* @samples: in an hour of a machine, on average. */
int fleet_open(const char *db, double samples, struct fleet *out, struct base_err *err);

/* The places of the image that has most of them: so many counts fleet_sample may give. */
size_t fleet_most_places(const struct fleet *f);
/* The samples of one image in one hour: counts by place. Returns their sum. */
uint64_t fleet_sample(const struct fleet *f, uint32_t machine, uint32_t hour, size_t image,
		      uint32_t *count);
/* The number of the image's version on that machine: it tells identities apart. */
uint64_t fleet_version(const struct fleet *f, uint32_t machine, size_t image);
uint64_t fleet_mix(uint64_t a, uint64_t b);

struct fleet_load {
	uint32_t first, last, hours, begin; /* machines; UTC seconds of the first hour */
	uint64_t machine_hours, rows, entries, routines, samples, images; /* results */
};

/* Sends the rows of machines @first to @last - 1. */
int fleet_load(const struct fleet *f, struct store_server *s, struct fleet_load *l,
	       struct base_err *err);
/* Writes the database of one machine, whose images are real files with other build-ids, in @files.
 */
int fleet_write(const struct fleet *f, const char *db, const char *files, uint32_t hours,
		uint32_t begin, struct base_err *err);

#endif
