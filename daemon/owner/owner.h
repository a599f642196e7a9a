/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The owner of a sample: the process and the thread that it is of, as workloads number them, the
 * minute, and the user who may see it while the daemon runs.
 */
#ifndef DCPI_OWNER_H
#define DCPI_OWNER_H

#include "follow.h"

struct owners {
	/* set by the caller */
	struct follow *follow;
	struct store *store; /* its workloads and viewers */

	/* kept here; zero-initialize */
	struct workload_clock clock;
	uint32_t epoch, drain;	      /* numbers; the caller counts drains */
	uint32_t asks_drain, nr_asks; /* in this drain processes were asked who may see them */
};

/* The thread of @s gets the number of its name in the workloads, which outlives the driver's. */
void owner_thread(const struct owners *o, struct sample *s);
/* The owner that @s has now goes into @to: where and reader, the user other than root who may see
 * samples of its process from first_ns on while the daemon runs. */
void owner_find(struct owners *o, struct sample *s, struct store_count *to);
/* Events were lost: a process may have become another program since it was asked who may see it. */
void owner_ask_again(struct owners *o);
/* A new epoch has begun. True: samples that wait outside of tables lose their threads. */
bool owner_new_epoch(struct owners *o);

#endif
