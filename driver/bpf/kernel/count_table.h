/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table in which one CPU counts: DCPI's four-way hash table. One source for the BPF program
 * that fills it in the interrupt, for user space that fills it in tests, and for the daemon that
 * reads it. Free of locks: only its own CPU writes, and who interrupts that finds it busy.
 *
 * A table is an array of elements of one size (a BPF array map that can be mapped): the head, a
 * line of counters against floods, a bit for each bucket that holds anything (to read a quiet CPU's
 * table is to read little), the buckets' tags, the buckets, and a log of what is in no bucket:
 * entries pushed out by others, samples that are to stay single, and those that come too rarely to
 * be hashed (the tick's).
 *
 * What a sample must read of its bucket is one line of the cache: hashes of the keys that stand
 * there, and their counts. These lines lie together. The entries themselves are only written to,
 * which waits for no memory. Of a bucket whose bit is clear nothing is read: another CPU has read
 * what stands there, and its line would have to come from there. Two keys whose hashes of 64 bits
 * are the same are taken for one: see count_place_of.
 *
 * Law: the sum of received[] is the sum of all counts and of the four losses.
 *
 * Whoever includes this defines before
 *	COUNT_TABLE			type by which a table is known
 *	COUNT_AT(table, index)		pointer to an element, or null where there is none
 *	COUNT_MIX(i)			odd numbers of 64 bits, 0 to COUNT_NR_MIX - 1
 * and may use stdint's names.
 */
#ifndef DCPI_COUNT_TABLE_H
#define DCPI_COUNT_TABLE_H

#define COUNT_INLINE	static inline __attribute__((always_inline))
#define COUNT_BARRIER() __asm__ volatile("" ::: "memory")

enum {
	COUNT_NR_EVENTS = 16,
	COUNT_WAYS = 4,
	COUNT_NR_FLOODS = 32, /* a power of two */
	COUNT_NR_WORDS = 32,  /* number of bits; a power of two */
	COUNT_NR_TAGS = 3,    /* buckets whose tags fill an element */
	COUNT_NR_MIX = 4,
	COUNT_THREAD_BITS = 14,
	COUNT_HEAD = 0, /* indices of elements */
	COUNT_FLOODS = 1,
	COUNT_USED = 2, /* the first of them; tags, buckets and log follow */
};

#define COUNT_LATE_NS 100000000ull

/*
 * The kind of a count: event, mode of the CPU (enum driver_mode), the result of reading the
 * generation (without either flag it was not asked for), and the number of its thread's name
 * (thread_names.h; 0: not known).
 */
#define COUNT_WHAT(event, mode) ((event) | (mode) << 8)
#define COUNT_WHAT_EVENT(what)	((what)&0xff)
#define COUNT_WHAT_MODE(what)	((what) >> 8 & 0xff)
#define COUNT_WHAT_UNREAD	0x10000u
#define COUNT_WHAT_READ		0x20000u
#define COUNT_WHAT_THREAD(what) ((what) >> (32 - COUNT_THREAD_BITS))
#define COUNT_OF_THREAD(number) ((uint32_t)(number) << (32 - COUNT_THREAD_BITS))

struct count_key {
	uint64_t instance; /* one life of a process, told apart from all others; 0: not known */
	uint64_t addr;
	uint32_t tgid; /* (uint32_t)-1: any; 0: the idle task */
	uint32_t generation;
	uint32_t what;
};

struct count_entry {
	uint64_t instance, addr;
	uint32_t tgid, generation, what;
	uint32_t count; /* in a bucket it is of no meaning: see struct count_tags */
	uint64_t first_ns, last_ns;
};

/* The tags of a bucket's ways: one cache line, of no meaning while the bucket's bit is clear. */
struct count_tags {
	uint64_t tag[COUNT_WAYS];   /* hash of the key */
	uint32_t count[COUNT_WAYS]; /* 0: free, and so are the ways behind it */
	uint32_t place[COUNT_WAYS]; /* hash of the key without its generation */
};

/* The fields that each sample touches come first, in one cache line. */
struct count_head {
	uint32_t busy;	  /* a program is counting */
	uint32_t clock;	  /* which way goes next */
	uint32_t nr_log;  /* entries in the log */
	uint32_t flooded; /* some counter against floods has reached its limit */
	uint32_t thread;  /* number of the last sample's name; 0: none */
	uint32_t unused;
	uint64_t name[2];      /* the last sample's, with what stands behind its end */
	uint64_t announced_ns; /* when a drain was asked for; 0: not yet */
	uint64_t received[COUNT_NR_EVENTS];
	uint32_t lost_table, lost_late, lost_nested;
	uint32_t lost_bad; /* samples at an unknown address */
};

/* An element. */
union count_bucket {
	struct count_entry way[COUNT_WAYS];
	struct count_head head;
	uint32_t floods[COUNT_NR_FLOODS];
	uint32_t used[COUNT_NR_WORDS];
	struct count_tags tags[COUNT_NR_TAGS];
};

enum { COUNT_BITS = 32 * COUNT_NR_WORDS }; /* buckets that an element tells of */

_Static_assert(COUNT_NR_TAGS == 3, "count_tags_at");

_Static_assert(sizeof(struct count_entry) == 48, "count_entry");
_Static_assert(sizeof(struct count_tags) == 64, "count_tags");
_Static_assert(sizeof(union count_bucket) == COUNT_WAYS * sizeof(struct count_entry), "element");

/* How large a table is. */
struct count_shape {
	uint32_t nr_buckets; /* a power of two */
	uint32_t tags;	     /* where those of the first are */
	uint32_t buckets;    /* where the first is */
	uint32_t nr_log;     /* entries, a multiple of COUNT_WAYS */
	uint32_t nr_flood;   /* entries of new generations that one process may make */
};

/* A log a quarter as long as the table. @table_len: entries, a power of two, at least COUNT_WAYS.
 */
COUNT_INLINE struct count_shape count_shape_of(uint32_t table_len)
{
	struct count_shape s = {
		.nr_buckets = table_len / COUNT_WAYS,
		.tags = COUNT_USED + (table_len / COUNT_WAYS + COUNT_BITS - 1) / COUNT_BITS,
		.nr_log = table_len / 4 < COUNT_WAYS ? COUNT_WAYS : table_len / 4,
		.nr_flood = table_len / 4,
	};

	s.buckets = s.tags + (s.nr_buckets + COUNT_NR_TAGS - 1) / COUNT_NR_TAGS;
	return s;
}

COUNT_INLINE uint32_t count_nr_elements(const struct count_shape *s)
{
	return s->buckets + s->nr_buckets + s->nr_log / COUNT_WAYS;
}

COUNT_INLINE uint64_t count_lost(const volatile struct count_head *h)
{
	return (uint64_t)h->lost_table + h->lost_late + h->lost_nested + h->lost_bad;
}

/*
 * Take the table. False: the caller interrupted another on this CPU, and its sample is counted as
 * lost. An interrupt between test and setting leaves the table as it found it.
 */
COUNT_INLINE bool count_enter(struct count_head *h)
{
	if (h->busy) {
		__sync_fetch_and_add(&h->lost_nested, 1);
		return false;
	}
	*(volatile uint32_t *)&h->busy = 1;
	COUNT_BARRIER();
	return true;
}

COUNT_INLINE void count_leave(struct count_head *h)
{
	COUNT_BARRIER();
	*(volatile uint32_t *)&h->busy = 0;
}

COUNT_INLINE void count_fill(struct count_entry *e, const struct count_key *k, uint64_t now_ns)
{
	e->instance = k->instance;
	e->addr = k->addr;
	e->tgid = k->tgid;
	e->generation = k->generation;
	e->what = k->what;
	e->count = 1;
	e->first_ns = e->last_ns = now_ns;
}

struct count_place {
	uint32_t bucket, place;
	uint64_t tag;
};

/*
 * One life of a process (DRIVER_INSTANCE_EXEC of driver.h): no two of one pid began in the same
 * microsecond. A start time differs in its low bits, and those tell most in a product.
 */
COUNT_INLINE uint64_t count_instance(uint64_t start_ns, uint32_t exec_id)
{
	return (start_ns >> 10 & 0xffffffffffffull) | (uint64_t)exec_id << 48;
}

/*
 * Counts of one address share a bucket whatever their generation, and are seen together there.
 * Threads of other names have buckets of their own: many may be at one address. Two such places
 * have one hash with probability 2^-63 over the secret random numbers; with 2^(t-63) if 2^t divides
 * all differences between their parts. Never if only one part differs.
 */
COUNT_INLINE struct count_place count_place_of(const struct count_shape *s,
					       const struct count_key *k)
{
	const uint32_t flags = COUNT_WHAT_READ | COUNT_WHAT_UNREAD;
	uint64_t x = k->instance * COUNT_MIX(0) + k->addr * COUNT_MIX(1) + k->tgid * COUNT_MIX(2) +
		     (uint64_t)(k->what & ~flags) * COUNT_MIX(3);
	struct count_place p;

	x ^= x >> 32;
	x *= 0xff51afd7ed558ccdull;
	p.bucket = (uint32_t)(x >> 40) & (s->nr_buckets - 1);
	p.place = (uint32_t)(x >> 32) ^ (uint32_t)x;
	p.tag = x + ((uint64_t)k->generation << 16 | (k->what & flags) >> 16) * COUNT_MIX(3);
	return p;
}

/* Room at the end of the log, or null: it is full, one sample is lost. */
COUNT_INLINE struct count_entry *count_log(COUNT_TABLE table, const struct count_shape *s,
					   struct count_head *h, uint64_t now_ns)
{
	uint32_t at = h->nr_log;
	union count_bucket *b = 0;

	if (at < s->nr_log)
		b = COUNT_AT(table, s->buckets + s->nr_buckets + at / COUNT_WAYS);
	if (!b) {
		if (h->announced_ns && now_ns > h->announced_ns + COUNT_LATE_NS)
			h->lost_late++;
		else
			h->lost_table++;
		return 0;
	}
	h->nr_log = at + 1;
	return &b->way[at % COUNT_WAYS];
}

/* A sample by itself. Between count_enter and count_leave, as the next. */
COUNT_INLINE void count_add_single(COUNT_TABLE table, const struct count_shape *s,
				   struct count_head *h, const struct count_key *k, uint64_t now_ns)
{
	struct count_entry *e = count_log(table, s, h, now_ns);

	if (e)
		count_fill(e, k, now_ns);
}

/* The word that has the bucket's bit, which is set when the bucket holds something; or null. */
COUNT_INLINE uint32_t *count_used_at(COUNT_TABLE table, uint32_t bucket)
{
	union count_bucket *u = COUNT_AT(table, COUNT_USED + bucket / COUNT_BITS);

	return u ? &u->used[bucket / 32 % COUNT_NR_WORDS] : 0;
}

COUNT_INLINE struct count_tags *count_tags_at(COUNT_TABLE table, const struct count_shape *s,
					      uint32_t bucket)
{
	/* A third: compilers for BPF would divide. */
	uint32_t at = (uint32_t)(bucket * UINT64_C(0xaaaaaaab) >> 33);
	uint64_t i = bucket - at * COUNT_NR_TAGS;
	union count_bucket *b = COUNT_AT(table, s->tags + at);

	/* The verifier does not know what the compiler does: it is to see this checked first. */
	__asm__ volatile("" : "+r"(i));
	if (!b || i >= COUNT_NR_TAGS)
		return 0;
	__asm__ volatile("" : "+r"(i));
	return &b->tags[i];
}

/* Its line of tags is on the way then, while something else is looked up. */
COUNT_INLINE void count_touch(COUNT_TABLE table, const struct count_shape *s,
			      const struct count_place *p)
{
	const struct count_tags *t = count_tags_at(table, s, p->bucket);
	const uint32_t *used = count_used_at(table, p->bucket);

	if (t && used && *used & 1u << p->bucket % 32)
		(void)*(const volatile uint32_t *)&t->count[0];
}

enum count_made {
	COUNT_KNOWN,   /* or lost */
	COUNT_NEW,     /* the key is new */
	COUNT_RENEWED, /* only its generation is */
};

/* Which way holds @p, or a free one, or COUNT_WAYS. *@renewed: its place stands there otherwise. */
COUNT_INLINE uint32_t count_find(const struct count_tags *t, const struct count_place *p,
				 bool *renewed)
{
#pragma GCC unroll 4
	for (uint32_t w = 0; w < COUNT_WAYS; w++) {
		if (!t->count[w] || (t->tag[w] == p->tag && t->count[w] != UINT32_MAX))
			return w;
		*renewed |= t->place[w] == p->place && t->tag[w] != p->tag;
	}
	return COUNT_WAYS;
}

/* DCPI's way: round and round, whoever that hits. COUNT_WAYS: the log is full. */
COUNT_INLINE uint32_t count_push_out(COUNT_TABLE table, const struct count_shape *s,
				     struct count_head *h, const union count_bucket *b,
				     const struct count_tags *t, uint64_t now_ns)
{
	struct count_entry *e = count_log(table, s, h, now_ns);
	uint32_t w = h->clock % COUNT_WAYS;

	if (!e)
		return COUNT_WAYS;
	h->clock++;
	*e = b->way[w];
	e->count = t->count[w];
	return w;
}

COUNT_INLINE enum count_made count_add(COUNT_TABLE table, const struct count_shape *s,
				       struct count_head *h, const struct count_key *k,
				       const struct count_place *p, uint64_t now_ns)
{
	struct count_tags *t = count_tags_at(table, s, p->bucket);
	union count_bucket *b = COUNT_AT(table, s->buckets + p->bucket);
	uint32_t *used = count_used_at(table, p->bucket);
	const uint32_t bit = 1u << p->bucket % 32;
	bool renewed = false;
	uint32_t w;

	if (!b || !t || !used) {
		h->lost_table++;
		return COUNT_KNOWN;
	}
	if (*used & bit) {
		w = count_find(t, p, &renewed);
		if (w < COUNT_WAYS && t->count[w]) {
			t->count[w]++;
			b->way[w].last_ns = now_ns;
			return COUNT_KNOWN;
		}
		if (w == COUNT_WAYS)
			w = count_push_out(table, s, h, b, t, now_ns);
		if (w >= COUNT_WAYS)
			return COUNT_KNOWN;
	} else {
#pragma GCC unroll 4
		for (w = COUNT_WAYS - 1; w; w--)
			t->count[w] = 0;
	}
	t->tag[w] = p->tag;
	t->place[w] = p->place;
	t->count[w] = 1;
	count_fill(&b->way[w], k, now_ns);
	/* Last: a program that is not waited for may be interrupted by the clearing. */
	COUNT_BARRIER();
	*used |= bit;
	return renewed ? COUNT_RENEWED : COUNT_NEW;
}

/*
 * Counters by a hash of the process: who shares one with a process that floods the table counts as
 * flooding too. @floods: element COUNT_FLOODS; no need to look while the head is not flooded.
 */
COUNT_INLINE bool count_is_flooded(const union count_bucket *floods, const struct count_shape *s,
				   uint32_t tgid)
{
	return floods->floods[tgid % COUNT_NR_FLOODS] >= s->nr_flood;
}

/* @tgid made an entry for a place that had one: its generation has moved. */
COUNT_INLINE void count_flood(union count_bucket *floods, const struct count_shape *s,
			      struct count_head *h, uint32_t tgid)
{
	if (++floods->floods[tgid % COUNT_NR_FLOODS] >= s->nr_flood)
		h->flooded = 1;
}

/* Ask for a drain, and set announced_ns, if none was asked for yet and the log is half full. */
COUNT_INLINE bool count_should_tell(const struct count_shape *s, const struct count_head *h)
{
	return !h->announced_ns && h->nr_log >= s->nr_log / 2;
}

#endif
