/* SPDX-License-Identifier: BSD-2-Clause */
/* Which of the events of a perf.data file are of hardware that tells of sampled instructions. */
#include "perfdata_internal.h"

/* ---- hardware -------------------------------------------------------------------------------- */

int perfdata_pmus_parse(struct perfdata_pmus *t, struct perf_bytes *b)
{
	uint32_t nr, type;

	if (!perf_take(b, &nr, sizeof(nr)))
		return -DCPI_EFORMAT;
	for (; nr; nr--) {
		const char *name;
		enum event_hardware pmu;

		if (!perf_take(b, &type, sizeof(type)) || !(name = perfdata_take_string(b)))
			return -DCPI_EFORMAT;
		pmu = event_hardware_of(name);
		if (pmu != EVENT_HW_OTHER && t->nr < PERFDATA_NR_PMUS) {
			t->type[t->nr] = type;
			t->pmu[t->nr++] = pmu;
		}
	}
	return 0;
}

void perfdata_pmus_settle(const struct perfdata_pmus *t, struct perfdata_events *e)
{
	for (size_t i = 0; i < e->nr; i++) {
		struct perfdata_event *ev = &e->v[i];

		ev->pmu = event_hardware_of(ev->name);
		for (size_t j = 0; j < t->nr; j++)
			if (t->type[j] == ev->attr.type)
				ev->pmu = t->pmu[j];
	}
}

struct perfdata_event *perfdata_pmu_event(const struct perfdata_events *e, enum event_hardware pmu)
{
	for (size_t i = 0; i < e->nr; i++)
		if (e->v[i].pmu == pmu && e->v[i].index >= 0)
			return &e->v[i];
	return NULL;
}
