/* SPDX-License-Identifier: BSD-2-Clause */
/* Each user has a share of the names that workloads have in an epoch. */
#include <stdio.h>

#include "workload_internal.h"

/* Names that come again after a sweep are no new ones. */
static bool is_known(const struct workloads *w, uint64_t hash)
{
	return base_map_get(&w->taken, &hash, sizeof(hash)) != NULL;
}

static bool take(struct workloads *w, uint32_t uid, size_t len)
{
	if (!budget_take(w->shares, uid, BUDGET_WORKLOADS, 1, WORKLOAD_NR_NAMES))
		return false;
	if (budget_take(w->shares, uid, BUDGET_WORKLOAD_TEXTS, len, WORKLOAD_TEXT_MAX))
		return true;
	budget_give_back(w->shares, uid, BUDGET_WORKLOADS, 1);
	return false;
}

static void tell(struct workloads *w, uint32_t uid)
{
	char who[32] = "unknown users";

	if (!budget_may_tell(w->shares, uid))
		return;
	if (uid != WORKLOAD_NO_UID)
		snprintf(who, sizeof(who), "user %u", uid);
	base_log(BASE_LOG_WARN,
		 "the share of %s of the names of workloads is used up: further ones of this epoch "
		 "have none",
		 who);
}

bool workload_share_take(struct workloads *w, uint32_t uid, const struct base_buf *key)
{
	uint64_t hash = base_hash64_seeded(w->seed, key->data, key->len);

	if (is_known(w, hash))
		return true;
	if (!take(w, uid, key->len)) {
		tell(w, uid);
		return false;
	}
	/* Without memory it is taken again when it comes again. */
	(void)base_map_set(&w->taken, &hash, sizeof(hash), w);
	return true;
}

void workload_shares_forget(struct workloads *w)
{
	base_map_release(&w->taken);
	budget_clear(w->shares, BUDGET_WORKLOADS);
	budget_clear(w->shares, BUDGET_WORKLOAD_TEXTS);
}
