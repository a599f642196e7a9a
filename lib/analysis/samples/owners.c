/* SPDX-License-Identifier: BSD-2-Clause */
/* Call paths are kept by all that workloads are, but for pid and thread; some of these are chosen.
 */
#include <errno.h>
#include <string.h>

#include "samples.h"

static int make_key(const struct profdb_workload *k, struct base_buf *key)
{
	const char *const texts[] = { k->comm, k->exe, k->cgroup, k->label };
	int r = base_buf_append(key, &k->uid, sizeof(k->uid));

	for (size_t i = 0; r >= 0 && i < sizeof(texts) / sizeof(texts[0]); i++)
		r = base_buf_append(key, texts[i], strlen(texts[i]) + 1);
	return r;
}

int analysis_owner_choose(struct analysis *a, const struct profdb_workload *k)
{
	struct base_buf key = { 0 };
	int r = make_key(k, &key);

	a->by_owner = true;
	if (r >= 0)
		r = base_map_set(&a->owners, key.data, key.len, a);
	base_buf_release(&key);
	return r < 0 ? r : 0;
}

static bool has_label(const struct analysis *a, const char *label)
{
	for (size_t i = 0; i < a->labels.nr; i++)
		if (strcmp(a->labels.v[i], label) == 0)
			return true;
	return !a->labels.nr;
}

int analysis_owner_chosen(const struct analysis *a, const struct profdb_workload *k)
{
	struct base_buf key = { 0 };
	int r;

	if (!has_label(a, k->label) || !a->by_owner)
		return has_label(a, k->label);
	r = make_key(k, &key);
	if (r >= 0)
		r = base_map_get(&a->owners, key.data, key.len) != NULL;
	base_buf_release(&key);
	return r;
}
