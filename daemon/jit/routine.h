/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The routines of one registry: a table, so that a million of them take little room. A routine is
 * an address with contents; which of them lives at an address, and when, lifetime.c says. They are
 * named by their index, from 1 on; 0 is none.
 */
#ifndef DCPI_DYN_ROUTINE_H
#define DCPI_DYN_ROUTINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base.h"

/* Numbers of changes, which begin at 1, are smaller: of a million a second nine years. */
#define DYN_SEQ_MAX ((1ull << 48) - 1)

/* 52 bytes, on machines that read words of 64 bits at multiples of 4. */
struct dyn_routine {
	uint64_t addr;	   /* vaddr */
	uint64_t seq : 48; /* number of its registration, while it lives */
	uint64_t list : 8; /* the last list that it was in, or that had begun when it came */
	uint64_t facility : 8;
	uint32_t record; /* in the spool; 0: it was dropped, but its place on disk is taken */
	uint32_t len;	 /* bytes of code */
	uint32_t place;	 /* in the ELF, see DYN_PLACE_OWN */
	uint32_t hash;	 /* hash of address and contents */
	uint32_t next;	 /* the next one of the same bucket, or the next free one */
	/* In one tree: of who lives, or of its facility's dead that keep their own address. Of
	 * the other dead: halves of the number with which it went. */
	uint32_t kid[2];
	uint32_t poll; /* in which its registration was seen */
	uint32_t flags : 8;
	uint32_t has_frames : 1; /* its record tells of them */
	uint32_t nr_past : 23;	 /* lifetimes of the past that were it: DYN_PAST_MAX at most */
} __attribute__((packed, aligned(4)));

#define DYN_LIVE     1u
#define DYN_REUSES   2u	  /* others lived at some of its addresses before */
#define DYN_LISTED   4u	  /* told by a list: since when is not known */
#define DYN_SAMPLED  8u	  /* it got a sample: it is kept */
#define DYN_WRITTEN  16u  /* it is in the image on disk */
#define DYN_REFUSED  32u  /* it got samples, but the database is full: counted once */
#define DYN_NAMELESS 64u  /* over the quota of its process: it has no record and no place */
#define DYN_HOLE     128u /* a part that none of an object's routines covers: nameless as well */

/* Places: none yet, its own address, or room of its own (in units of 16 bytes, + 1). */
#define DYN_PLACE_NONE 0u
#define DYN_PLACE_OWN  UINT32_MAX

struct dyn_routines {
	struct dyn_routine **chunks;
	size_t nr_chunks, cap_chunks;
	uint32_t last;	  /* the highest index ever used */
	uint32_t nr_used; /* without those that are free */
	uint32_t free;
	uint32_t *buckets; /* first routine for each hash */
	uint32_t nr_buckets;
	uint64_t seed;
	uint32_t live; /* tree of who lives */
	uint32_t nr_live;
	uint32_t *hints; /* for each address the last two that came there, or were found */
	uint32_t nr_hints;
};

enum { DYN_ROUTINE_CHUNK = 64 };

static inline struct dyn_routine *dyn_routine_get(const struct dyn_routines *t, uint32_t index)
{
	return &t->chunks[(index - 1) / DYN_ROUTINE_CHUNK][(index - 1) % DYN_ROUTINE_CHUNK];
}

/* A new one, zeroed but for its hash, found by that from now on. -ENOMEM. */
int dyn_routine_new(struct dyn_routines *t, uint32_t hash, uint32_t *index);
/* It is in no tree. */
void dyn_routine_drop(struct dyn_routines *t, uint32_t index);
/* The first of the bucket of @hash; go on by next. Hashes need not be equal. */
static inline uint32_t dyn_routine_bucket(const struct dyn_routines *t, uint32_t hash)
{
	return t->nr_buckets ? t->buckets[hash & (t->nr_buckets - 1)] : 0;
}
/* 32 bits that who does not know the table's seed cannot choose. */
uint32_t dyn_routine_hash(struct dyn_routines *t, uint64_t addr, uint64_t len, const void *rest,
			  size_t rest_len);
void dyn_routine_release(struct dyn_routines *t);

/* Trees of routines whose addresses are disjoint; @root is 0 where empty. */
/* The one at @addr, or 0. */
uint32_t dyn_routine_find(const struct dyn_routines *t, uint32_t root, uint64_t addr);
/* In the tree of who lives, which are those that have DYN_LIVE; fast where it was found before. */
uint32_t dyn_routine_living(const struct dyn_routines *t, uint64_t addr);
/* Lines of code, by a power of two, and hints of lines that fall together. */
enum { DYN_ROUTINE_LINE_SHIFT = 6, DYN_ROUTINE_HINTS = 2 };
/* Samples come back to the same lines of code: those found there, the newest first; or 0. */
static inline uint32_t *dyn_routine_hints(const struct dyn_routines *t, uint64_t addr)
{
	uint64_t hash = base_hash_u64(addr >> DYN_ROUTINE_LINE_SHIFT);

	return &t->hints[hash & (t->nr_hints - DYN_ROUTINE_HINTS)];
}
/* That will be asked for soon: what it reads of memory, in steps 0 and 1. */
static inline void dyn_routine_expect(const struct dyn_routines *t, uint64_t addr,
				      unsigned int step)
{
	const uint32_t *hints = t->nr_hints ? dyn_routine_hints(t, addr) : NULL;

	if (hints && !step)
		base_prefetch(hints);
	for (size_t i = 0; hints && step && i < DYN_ROUTINE_HINTS && hints[i]; i++) {
		const struct dyn_routine *r = dyn_routine_get(t, hints[i]);

		base_prefetch(r);
		base_prefetch((const uint8_t *)(r + 1) - 1);
	}
}
/* The lowest one that overlaps [start, end), or 0. */
uint32_t dyn_routine_overlap(const struct dyn_routines *t, uint32_t root, uint64_t start,
			     uint64_t end);
void dyn_routine_insert(const struct dyn_routines *t, uint32_t *root, uint32_t index);
void dyn_routine_remove(const struct dyn_routines *t, uint32_t *root, uint32_t index);

#endif
