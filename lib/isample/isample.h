/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Instruction samples: what hardware tells of a sampled instruction, in words of no vendor's. Each
 * is a set of bits, of which it is known whether they were told, and some counters. The records of
 * AMD (IBS), Arm (SPE), and of whatever Linux gives as a data source and weight (Intel PEBS) are
 * decoded here, from bytes alone; metrics such as "retired^!taken:inflight" are parsed here too.
 * docs/decisions/instruction-samples.md
 */
#ifndef DCPI_ISAMPLE_H
#define DCPI_ISAMPLE_H

#include "base.h"

/* ---- the words ------------------------------------------------------------------------------- */

/* Bits by their numbers, which profile files have: new ones are added at the end. */
#define ISAMPLE_BITS(X)                                                                            \
	X(RETIRED, "retired", "it retired")                                                        \
	X(VALID, "valid", "it retired and caused no exception")                                    \
	X(TRAP, "trap", "it caused an exception")                                                  \
	X(BRANCH, "branch", "it is a branch that retired")                                         \
	X(COND, "cond", "it is a conditional branch")                                              \
	X(TAKEN, "taken", "the branch was taken")                                                  \
	X(MISPREDICT, "mispredict", "the branch was predicted wrongly")                            \
	X(CBRMISPREDICT, "cbrmispredict", "it is a conditional branch, predicted wrongly")         \
	X(RETURN, "return", "it is a return from a procedure")                                     \
	X(INDIRECT, "indirect", "it is a branch whose target is no constant")                      \
	X(MICROCODE, "microcode", "it is of microcode")                                            \
	X(LOAD, "load", "it loads")                                                                \
	X(STORE, "store", "it stores")                                                             \
	X(PREFETCH, "prefetch", "it is a prefetch of data")                                        \
	X(LOCKED, "locked", "its access was locked or atomic")                                     \
	X(UNALIGNED, "unaligned", "its access crossed a boundary")                                 \
	X(UNCACHED, "uncached", "its access was to memory that is not cached")                     \
	X(BLOCKED, "blocked", "its load waited for an earlier store")                              \
	X(DCMISS, "dcmiss", "it missed the first-level data cache")                                \
	X(L2MISS, "l2miss", "its data were not in the second-level cache")                         \
	X(LLCMISS, "llcmiss", "its data were not in the last-level cache near it")                 \
	X(OTHERCACHE, "othercache", "its data came from another core's cache")                     \
	X(MODIFIED, "modified", "another cache had its data modified")                             \
	X(MEMORY, "memory", "its data came from memory")                                           \
	X(REMOTE, "remote", "its data came from another node or socket")                           \
	X(DTBMISS, "dtbmiss", "it missed the first-level data TLB")                                \
	X(DTB2MISS, "dtb2miss", "it missed all data TLBs")                                         \
	X(FETCH, "fetch", "the sample is of an instruction fetch")                                 \
	X(FETCHED, "fetched", "the fetch delivered bytes")                                         \
	X(ICMISS, "icmiss", "the fetch missed the first-level instruction cache")                  \
	X(IC2MISS, "ic2miss", "the fetch missed the second-level cache")                           \
	X(IC3MISS, "ic3miss", "the fetch missed the third-level cache")                            \
	X(ITBMISS, "itbmiss", "the fetch missed the first-level instruction TLB")                  \
	X(ITB2MISS, "itb2miss", "the fetch missed all instruction TLBs")                           \
	X(INEXACT, "inexact", "the address is not the instruction's: nothing else is told")        \
	X(UNREADABLE, "unreadable", "the record made no sense: nothing else is told")              \
	X(BYCOUNT, "bycount", "it was chosen by a count of all operations: the more it runs")

/* Counters, likewise; in cycles. */
#define ISAMPLE_COUNTERS(X)                                                                        \
	X(INFLIGHT, "inflight", "from when it was tagged or dispatched to its end")                \
	X(RETDELAY, "retdelay", "by which it delayed retirement")                                  \
	X(COMPLETED, "completed", "from its completion to its retirement")                         \
	X(LATENCY, "latency", "until its data were there")                                         \
	X(XLAT, "xlat", "until its data's address was translated")                                 \
	X(ISSUE, "issue", "from its dispatch to its issue")                                        \
	X(FETCHLAT, "fetchlat", "of the fetch")                                                    \
	X(ITBLAT, "itblat", "until the fetch's address was translated")

enum isample_bit {
#define X(id, name, text) ISAMPLE_##id,
	ISAMPLE_BITS(X)
#undef X
		ISAMPLE_NR_BITS
};

enum isample_counter {
#define X(id, name, text) ISAMPLE_##id,
	ISAMPLE_COUNTERS(X)
#undef X
		ISAMPLE_NR_COUNTERS
};

/* In a word of what is known counters come behind all bits that there may ever be. */
enum { ISAMPLE_FIRST_COUNTER = 48 };
#define ISAMPLE_BIT(bit)     (UINT64_C(1) << (bit))
#define ISAMPLE_HAS(counter) (UINT64_C(1) << (ISAMPLE_FIRST_COUNTER + (counter)))
#define ISAMPLE_ALL_BITS     (ISAMPLE_BIT(ISAMPLE_NR_BITS) - 1)
#define ISAMPLE_ALL_COUNTERS (((UINT64_C(1) << ISAMPLE_NR_COUNTERS) - 1) << ISAMPLE_FIRST_COUNTER)

struct isample {
	uint64_t known; /* bits and counters that the hardware tells of this instruction */
	uint64_t bits;	/* set among the known ones */
	uint32_t counter[ISAMPLE_NR_COUNTERS]; /* 0 where not known */
};

const char *isample_bit_name(enum isample_bit bit);
const char *isample_counter_name(enum isample_counter counter);

/* It is known whether @bit is set. */
void isample_tell(struct isample *s, enum isample_bit bit, bool set);
/* Above 32 bits it is the highest number of 32 bits. */
void isample_count(struct isample *s, enum isample_counter counter, uint64_t value);
/* Nothing is told but @why, ISAMPLE_INEXACT or ISAMPLE_UNREADABLE. */
void isample_void(struct isample *s, enum isample_bit why);

/* ---- records (ibs.c, data_source.c, spe.c) --------------------------------------------------- */

/*
 * AMD's instruction-based sampling, as Linux has it in PERF_SAMPLE_RAW: the capabilities (u32),
 * then the registers. Bytes behind those that are known are ignored, missing ones tell nothing, but
 * for those that every record has: -DCPI_EFORMAT. @s is added to.
 */
int isample_ibs_op(struct isample *s, const void *raw, size_t len);
int isample_ibs_fetch(struct isample *s, const void *raw, size_t len);

/* The union perf_mem_data_src of <linux/perf_event.h>: any word is one. */
void isample_data_source(struct isample *s, uint64_t source);
/* PERF_SAMPLE_WEIGHT_STRUCT of x86, of which 0 is not told; with @split false PERF_SAMPLE_WEIGHT.
 */
void isample_weight(struct isample *s, uint64_t weight, bool split);

/* A record of Arm's statistical profiling extension. */
struct isample_spe {
	struct isample sample;
	uint64_t pc;
	uint64_t time; /* the generic timer's; with has_time */
	uint32_t context;
	uint8_t el; /* the exception level of the pc: 0 is user mode */
	bool has_pc, has_time, has_context;
	bool bad; /* a packet in it is no packet, or it is cut; it tells no more than "unreadable"
		   */
};

/*
 * The next record of @len bytes at @data, which lie at @offset in their buffer, from *@pos on;
 * *@pos moves behind it. 1; 0: there is none, but padding perhaps. Behind a byte that begins no
 * packet it is looked for where the next record begins, so hostile bytes cost no more than others.
 */
int isample_spe_next(const uint8_t *data, size_t len, uint64_t offset, size_t *pos,
		     struct isample_spe *out);

/* ---- metrics (metric.c) ---------------------------------------------------------------------- */

/* "<bit>[^<bit>…][:<counter>]", or "count"; "!bit": it is not set. */
struct isample_metric {
	uint64_t want, set; /* samples with all bits of want told, those of set being set */
	uint64_t need; /* samples must tell this to be looked at: want, in a ratio that of both */
	int counter;   /* it is this counter's sum; -1: the number of samples */
};

/* A column: a metric, or the ratio of two, "A/B". */
struct isample_column {
	char text[96];
	struct isample_metric of, by;
	bool ratio;
};

enum { ISAMPLE_NR_COLUMNS = 32 };

struct isample_columns {
	struct isample_column v[ISAMPLE_NR_COLUMNS];
	size_t nr;
};

/* Adds the columns of "COLUMN[,COLUMN…]". 0 or -DCPI_EUSAGE with @err. */
int isample_columns_parse(struct isample_columns *c, const char *text, struct base_err *err);

/* The value of a metric among some samples. */
struct isample_value {
	uint64_t told;	/* samples that tell all that it asks for */
	uint64_t value; /* at most 2^64 - 1 */
};

/* Adds @count samples that are equal in known and bits, with @sum of each counter. */
void isample_value_add(struct isample_value *v, const struct isample_metric *m, uint64_t known,
		       uint64_t bits, uint64_t count, const uint64_t *sum);
/* Its number; NAN: the hardware does not tell. @by: only where the column is a ratio. */
double isample_column_value(const struct isample_column *c, const struct isample_value *of,
			    const struct isample_value *by);

#endif
