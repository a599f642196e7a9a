/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The traces of Arm's statistical profiling extension in a perf.data file: each of their records is
 * a sample. They are decoded in pieces, as a trace may be longer than memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "perfdata_internal.h"

enum { PIECE = 256 << 10 };

int perfdata_spe_conversion(struct perfdata_spe *t, struct perf_bytes *b)
{
	uint64_t v[3], more[2];
	uint8_t caps[2];

	if (!perf_take(b, v, sizeof(v)) || v[0] > 63)
		return -DCPI_EFORMAT;
	t->shift = v[0];
	t->mult = v[1];
	t->zero = v[2];
	t->cycles = 0;
	t->mask = UINT64_MAX;
	if (perf_take(b, more, sizeof(more)) && perf_take(b, caps, sizeof(caps)) && caps[1]) {
		t->cycles = more[0];
		t->mask = more[1];
	}
	return 0;
}

static uint64_t time_of(const struct perfdata_spe *t, uint64_t cycles)
{
	uint64_t rest;

	cycles = t->cycles + ((cycles - t->cycles) & t->mask);
	rest = cycles & ((UINT64_C(1) << t->shift) - 1);
	return t->zero + (cycles >> t->shift) * t->mult + (rest * t->mult >> t->shift);
}

int perfdata_spe_begin(struct perfdata *p, struct perf_bytes *b)
{
	struct {
		uint64_t size, offset, reference;
		uint32_t idx;
		int32_t tid;
	} trace;
	struct perfdata_spe *t = &p->spe;
	struct perfdata_event *ev = perfdata_pmu_event(&p->events, EVENT_HW_SPE);

	if (!perf_take(b, &trace, sizeof(trace)))
		return -DCPI_EFORMAT;
	/* Traces of other hardware are skipped. */
	if (!ev)
		return 0;
	if (!t->bytes && !(t->bytes = malloc(PIECE)))
		return -ENOMEM;
	t->event = ev;
	t->nr = 0;
	t->offset = trace.offset;
	t->tid = trace.tid < 0 ? -1 : trace.tid;
	return 0;
}

static enum driver_mode mode_of(uint8_t el)
{
	return el == 0 ? DRIVER_USER : el < 3 ? DRIVER_KERNEL : DRIVER_OTHER;
}

static int keep(struct perfdata *p, const struct isample_spe *s)
{
	const struct perfdata_spe *t = &p->spe;
	struct isample insn = s->sample;
	struct driver_count c = { .time_ns = p->read_ns,
				  .pid = PERFDATA_PID_BY_THREAD,
				  .tid = s->has_context ? (int32_t)s->context : t->tid,
				  .event = (uint32_t)t->event->index,
				  .mode = mode_of(s->el),
				  .addr = s->pc,
				  .count = 1,
				  .insn = &insn };

	if (s->bad)
		return perfdata_sample_bad(p, t->event);
	perf_insn_chosen(t->event->pmu, &t->event->attr, &insn);
	/* An inverse filter. */
	if (t->event->config3)
		isample_tell(&insn, ISAMPLE_BYCOUNT, false);
	if (t->mult && s->has_time)
		c.time_ns = time_of(t, s->time);
	/* Thread 0 is the idle task, which never runs in user mode. */
	if (c.tid < 0 || (!c.tid && c.mode == DRIVER_USER))
		c.pid = c.tid = -1;
	else if (!c.tid)
		c.pid = 0;
	return perfdata_sample_keep(p, &c);
}

/* The next record; 0: its end is in the next piece, or there is none. */
static int next(const struct perfdata *p, size_t *pos, struct isample_spe *out)
{
	const struct perfdata_spe *t = &p->spe;
	size_t start = *pos;
	int r = isample_spe_next(t->bytes, t->nr, t->offset, pos, out);

	if (r && out->bad && *pos == t->nr && start && p->stream.trail) {
		*pos = start;
		return 0;
	}
	return r;
}

/* The bytes left for the next piece move to the front. */
static void advance(struct perfdata_spe *t, size_t nr)
{
	memmove(t->bytes, t->bytes + nr, t->nr - nr);
	t->nr -= nr;
	t->offset += nr;
}

int perfdata_spe_continue(struct perfdata *p)
{
	struct perfdata_spe *t = &p->spe;
	ssize_t n = perfdata_trail(&p->stream, t->bytes + t->nr, PIECE - t->nr, &p->failure);
	struct isample_spe s;
	size_t pos = 0;
	int r = 0;

	if (n < 0)
		return (int)n;
	t->nr += (size_t)n;
	while (r >= 0 && pos < t->nr && next(p, &pos, &s))
		r = keep(p, &s);
	advance(t, pos);
	if (!p->stream.trail)
		t->event = NULL;
	return r;
}
