/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attribution: the verdict on a sample. It is an image and an offset in it, or a named class, or
 * "not yet", where the registry of its process, or a file of its runtime, may still tell. Nothing
 * is stored here, and nothing waits here.
 */
#ifndef DCPI_ATTRIBUTE_H
#define DCPI_ATTRIBUTE_H

#include "jit.h"
#include "kernelcode.h"
#include "track.h"

struct attribute {
	/* set by the caller */
	struct images *images;
	struct dyn *dyn;       /* may be NULL in tests */
	struct kernel *kernel; /* likewise */
	bool live;	       /* /proc tells of these processes */
	bool flushing; /* a flush waits: counts in files without an image yet get their place now */

	/* kept here; zero-initialize */
	uint64_t resolved_ns;	   /* base_now_ns when those that wait were to be looked up last */
	uint64_t dynamic_ns;	   /* base_now_ns when samples in dynamic code were seen last; 0 */
	const struct sample *next; /* nr_next of them wait; the first is looked up now */
	size_t nr_next;
};

enum verdict_kind {
	VERDICT_IMAGE,
	VERDICT_BUCKET,
	VERDICT_LATER, /* the registries, or files, are to be read first */
};

struct verdict {
	enum verdict_kind kind;
	struct image *image; /* VERDICT_IMAGE; NULL: there was no memory for it */
	uint64_t off;
	enum account_bucket bucket; /* VERDICT_BUCKET */
};

/*
 * The verdict on a sample, of whatever mode, whose process and mapping are in it. In user mode its
 * mapping says it, with every event up to the sample's time seen. VERDICT_LATER: it lies in dynamic
 * code; what is known of its mapping goes into @s (with a reference of an image). Behind that,
 * after the registries of its process were read, they say it: VERDICT_LATER again where another
 * poll may tell, not where @last. With any other verdict the reference in @s is given back.
 */
struct verdict attribute_sample(const struct attribute *a, struct sample *s, bool last);
/* A sample in the kernel's mode. */
struct verdict attribute_kernel(const struct attribute *a, const struct driver_count *c);
/* The verdict on a frame that is of a function which an interpreter runs in @p (driver_function;
 * may be NULL). */
struct verdict attribute_function(const struct attribute *a, const struct process *p, uint64_t key,
				  uint32_t instr);
/* Looked up last at @news of @p's: may a look-up say something else now? Also of a process that
 * ended, or has a registry since. */
bool attribute_is_due(const struct process *p, uint64_t news);
/*
 * May samples of @p's dynamic code wait on? For its registry a poll or two more, of which
 * *@until_ns (0 at first) keeps the end; runtimes that write files write them late, so for these
 * until the next flush. A life that is over has told all.
 */
bool attribute_may_wait(const struct attribute *a, const struct process *p, uint64_t *until_ns);

/* Records that wait beside the counts, and are attributed as those: traces (trace.h), call paths
 * (callpath.h). */
struct attribute_later {
	/* Time advances to @time_ns: records older than a poll of /proc up to then have certain
	 * mappings. */
	void (*pass)(void *ctx, uint64_t time_ns);
	/* Before that time, pass does nothing. */
	uint64_t (*next_ns)(const void *ctx);
	/* After dyn_refresh: what waits for it is placed; @last: nothing is to be waited for. */
	void (*resolve)(void *ctx, bool last);
};

#endif
