/* SPDX-License-Identifier: BSD-2-Clause */
/* The keys of workloads, by which they are chosen and put into groups, as text. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "workload.h"

static const char *const names[WORKLOAD_NR_KEYS] = {
	[WORKLOAD_COMM] = "comm",
	[WORKLOAD_EXE] = "exe",
	[WORKLOAD_PID] = "pid",
	[WORKLOAD_UID] = "uid",
	[WORKLOAD_CGROUP] = "cgroup",
	[WORKLOAD_UNIT] = "unit",
	[WORKLOAD_CONTAINER] = "container",
	[WORKLOAD_THREAD] = "thread",
	[WORKLOAD_LABEL] = "label",
};

const char *workload_key_name(enum workload_key key)
{
	return names[key];
}

int workload_key_find(const char *name, enum workload_key *out)
{
	for (size_t i = 0; i < WORKLOAD_NR_KEYS; i++) {
		if (strcmp(names[i], name) == 0) {
			*out = (enum workload_key)i;
			return 0;
		}
	}
	return -ENOENT;
}

/* A process that calls itself so has a program. */
bool workload_is_idle(const struct profdb_workload *k)
{
	return !k->pid && !*k->exe && strcmp(k->comm, "(idle)") == 0;
}

bool workload_key_dropped(const struct profdb_workload *k, enum workload_key key)
{
	return !workload_is_idle(k) &&
	       ((key == WORKLOAD_PID && !k->pid) || (key == WORKLOAD_THREAD && !*k->thread));
}

int workload_group_key(const struct profdb_workload *k, enum workload_key key, struct base_buf *out)
{
	char class = workload_is_idle(k)	    ? WORKLOAD_IDLE
		     : workload_key_dropped(k, key) ? WORKLOAD_DROPPED
						    : WORKLOAD_KEPT;
	int r = base_buf_append(out, &class, 1);

	if (r >= 0 && class == WORKLOAD_KEPT)
		r = workload_key_of(k, key, out);
	return r < 0 ? r : base_buf_printf(out, "%s", "");
}

const char *workload_key_missing(enum workload_key key, enum workload_class class)
{
	if (class != WORKLOAD_KEPT)
		return class == WORKLOAD_IDLE ? "(idle)" : "(not kept)";
	return key == WORKLOAD_UNIT || key == WORKLOAD_CONTAINER || key == WORKLOAD_LABEL
		       ? "(none)"
		       : "(not known)";
}

int workload_key_of(const struct profdb_workload *k, enum workload_key key, struct base_buf *out)
{
	switch (key) {
	case WORKLOAD_COMM:
		return base_buf_printf(out, "%s", k->comm);
	case WORKLOAD_EXE:
		return base_buf_printf(out, "%s", k->exe);
	case WORKLOAD_PID:
		return workload_key_dropped(k, key) ? 0 : base_buf_printf(out, "%" PRId32, k->pid);
	case WORKLOAD_UID:
		return k->uid == UINT32_MAX ? 0 : base_buf_printf(out, "%" PRIu32, k->uid);
	case WORKLOAD_CGROUP:
		return base_buf_printf(out, "%s", k->cgroup);
	case WORKLOAD_UNIT:
		return workload_unit(k->cgroup, out);
	case WORKLOAD_CONTAINER:
		return workload_container(k->cgroup, out);
	case WORKLOAD_THREAD:
		return base_buf_printf(out, "%s", k->thread);
	default:
		return base_buf_printf(out, "%s", k->label);
	}
}
