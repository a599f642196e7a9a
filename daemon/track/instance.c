/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts tell which life of a pid they are of; here it is compared with what events told. */
#include "track.h"

/* The clock of events is read without a lock, which may be so much aside of that of tasks. */
#define SLACK_NS 1000000
/* The steps of start times in /proc. */
#define TICK_NS 10000000

/* From the start of @instance to @boot_ns, to a microsecond; negative: it began later. */
static int64_t age_ns(uint64_t instance, uint64_t boot_ns)
{
	/* Sign-extend the 48-bit difference. */
	return (int64_t)((boot_ns / DRIVER_INSTANCE_UNIT - instance) << 16) / 65536 *
	       DRIVER_INSTANCE_UNIT;
}

bool instance_is_listed(const struct process *p, uint64_t instance)
{
	int64_t age = age_ns(instance, p->start_time_ns);

	return age <= DRIVER_INSTANCE_UNIT && age >= -TICK_NS - DRIVER_INSTANCE_UNIT;
}

bool instance_fits(struct process *p, uint64_t instance)
{
	if (p->instance)
		return p->instance == instance;
	if (p->known_ns ? !instance_is_listed(p, instance)
			: p->born_ns && age_ns(instance, p->born_ns) < -SLACK_NS)
		return false;
	if (p->execs_announced && p->execs != instance / DRIVER_INSTANCE_EXEC)
		return false;
	p->instance = instance;
	return true;
}

void instance_fork(struct process *p, const struct process *parent, uint64_t boot_ns)
{
	p->instance = 0;
	p->born_ns = boot_ns;
	p->execs_announced = parent && (parent->instance || parent->execs_announced);
	if (p->execs_announced)
		p->execs = parent->instance ? (uint16_t)(parent->instance / DRIVER_INSTANCE_EXEC)
					    : parent->execs;
}

void instance_exec(struct process *p, const struct process *old, uint64_t boot_ns)
{
	p->instance = old && old->instance ? old->instance + DRIVER_INSTANCE_EXEC : 0;
	p->born_ns = old && old->born_ns ? old->born_ns : boot_ns;
	p->execs_announced = old && old->execs_announced;
	if (p->execs_announced)
		p->execs = (uint16_t)(old->execs + 1);
}

void instance_listed(struct process *p)
{
	if (p->instance)
		return;
	p->born_ns = 0;
	p->execs_announced = false;
}
