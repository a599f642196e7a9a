/* SPDX-License-Identifier: BSD-2-Clause */
/* The reader remembers what it found in a file, until the file changes. */
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "reader_known.h"

/* A later one takes the place of one that has the same number. */
enum { KNOWN = 1024 };

#define SECOND_NS 1000000000u

/* A file that is written anew has another time. */
static struct known {
	uint64_t dev, ino, len, changed_ns;
	struct reader_known is;
} known[KNOWN];

static uint64_t ns_of(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * SECOND_NS + (uint64_t)t->tv_nsec;
}

static struct known *place_of(const struct stat *st)
{
	return &known[(base_hash_u64(st->st_dev) ^ base_hash_u64(st->st_ino + 1)) % KNOWN];
}

bool reader_known_find(const struct stat *st, struct reader_known *out)
{
	const struct known *k = place_of(st);

	if (!k->is.id.len || k->dev != st->st_dev || k->ino != st->st_ino ||
	    k->len != (uint64_t)st->st_size || k->changed_ns != ns_of(&st->st_ctim))
		return false;
	*out = k->is;
	return true;
}

void reader_known_add(const struct stat *st, const struct reader_known *k)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	/* Times of files move by ticks: within one it could be written again. */
	if (ns_of(&st->st_ctim) + SECOND_NS > ns_of(&now))
		return;
	*place_of(st) = (struct known){ .dev = st->st_dev,
					.ino = st->st_ino,
					.len = (uint64_t)st->st_size,
					.changed_ns = ns_of(&st->st_ctim),
					.is = *k };
}

/*
 * A time of writing can be set back, that of change cannot; it moves with names and rights, too. Of
 * what has no name any more that was its removal. A time to come is another clock's.
 */
bool reader_written_since(const struct stat *st, uint64_t since_ns)
{
	uint64_t changed_ns = ns_of(st->st_nlink ? &st->st_ctim : &st->st_mtim);
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return since_ns && changed_ns > since_ns && changed_ns <= ns_of(&now);
}
