/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the daemon that are open get to know each other. */
#include "core.h"

void daemon_connect(struct daemon *d)
{
	d->store.images = d->images;
	d->store.workloads = d->workloads;
	d->attribute = (struct attribute){
		.images = d->images, .dyn = d->dyn, .kernel = d->kernel, .live = d->follow.live
	};
	d->follow.images = d->images;
	d->follow.processes = d->processes;
	d->follow.identity = d->identity;
	d->follow.reader = d->reader;
	d->follow.dyn = d->dyn;
	d->follow.kernel = d->kernel;
	d->follow.driver = d->driver;
	d->follow.wants_ends = d->traces;
	d->counts.attribute = &d->attribute;
	d->counts.follow = &d->follow;
	d->counts.store = &d->store;
	d->counts.owners.follow = &d->follow;
	d->counts.owners.store = &d->store;
	d->counts.traces = d->traces;
	d->counts.callpaths = d->callpaths;
	d->counts.exclude = d->exclude.nr_pids ? &d->exclude : NULL;
	d->quota.db = d->daily.db = d->db;
	d->quota.path = d->daily.path = d->opt.database;
	d->quota.max = (uint64_t)(d->opt.quota_mib ? d->opt.quota_mib : QUOTA_MIB) << 20;
	d->daily.platform = d->platform;
	d->daily.size = (uint64_t)d->opt.gc_size_mib << 20;
	d->daily.wanted = d->opt.gc_daily;
}
