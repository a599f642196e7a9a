/* SPDX-License-Identifier: BSD-2-Clause */
/* One record of the kernel's kinds: received, and put in its place in time. */
#include <stdio.h>
#include <string.h>

#include "perfdata_internal.h"

/* ---- the kernel's mappings ------------------------------------------------------------------- */

/* "[ext4]" and "/lib/modules/6.1.0/kernel/fs/ext4/ext4.ko.xz" are both ext4.ko. */
static void name_module(const char *path, char *name, size_t len)
{
	const char *base = base_path_name(path), *end = strstr(base, ".ko");

	if (base[0] == '[' && base[strcspn(base, "]")])
		snprintf(name, len, "%.*s.ko", (int)strcspn(base + 1, "]"), base + 1);
	else
		snprintf(name, len, "%.*s", end ? (int)(end + 3 - base) : 255, base);
}

/*
 * Offsets in the kernel's image are from its first symbol on, whose address perf keeps where other
 * mappings have their offset in the file.
 */
static void begin_at_symbol(struct driver_load *l)
{
	uint64_t skipped = l->file_off - l->addr;

	if (l->file_off > l->addr && skipped < l->len) {
		l->addr = l->file_off;
		l->len -= skipped;
	}
}

static void describe_kernel(const struct perfdata *p, struct driver_load *l, char *name, size_t len)
{
	const struct base_id *id = perfdata_build_id_find(&p->build_ids, l->path);

	if (perfdata_is_kernel(l->path)) {
		begin_at_symbol(l);
		id = &p->build_ids.kernel;
		snprintf(name, len, "vmlinux%s%s", p->release[0] ? "-" : "", p->release);
	} else {
		name_module(l->path, name, len);
	}
	if (!l->id.len && id)
		l->id = *id;
	l->path = name;
	l->file_off = 0;
	l->pid = l->tid = -1;
	l->prot = 0;
}

/* ---- records --------------------------------------------------------------------------------- */

static int fail(struct perfdata *p, int code, const char *what)
{
	return perfdata_fail(&p->stream, &p->failure, code, "%s: %s", what, base_strerror(code));
}

/* Samples that were received, as the law of accounting has it. */
static int receive(struct perfdata *p, const struct perfdata_record *rec, uint64_t nr)
{
	size_t index = rec->event && rec->event->index > 0 ? (size_t)rec->event->index : 0;
	uint64_t *received = &p->base.stats.received[index];

	return base_add_overflow(*received, nr, received) ? fail(p, -DCPI_EOVERFLOW, "samples") : 0;
}

static void measure_period(struct perfdata *p, struct perfdata_record *rec)
{
	struct perfdata_event *ev = rec->event;
	uint64_t sum;

	if (!ev->attr.freq || !rec->period || base_add_overflow(ev->period_sum, rec->period, &sum))
		return;
	ev->period_sum = sum;
	p->base.events[ev->index].period = sum / ++ev->nr_periods;
}

static int keep_sample(struct perfdata *p, struct perfdata_record *rec)
{
	int r = perfdata_order_sample(&p->order, rec->perf.time_ns, &rec->perf.count);

	if (r < 0)
		return fail(p, r, "samples");
	measure_period(p, rec);
	return receive(p, rec, 1);
}

static int keep_load(struct perfdata *p, struct perfdata_record *rec)
{
	struct driver_load *l = &rec->perf.load;
	const struct base_id *id;
	char name[300];
	int r;

	l->time_ns = rec->perf.time_ns;
	if (rec->kernel) {
		describe_kernel(p, l, name, sizeof(name));
	} else if (l->kind == DRIVER_LOAD_MMAP && !l->id.len) {
		id = perfdata_build_id_find(&p->build_ids, l->path);
		if (id)
			l->id = *id;
	}
	r = perfdata_order_load(&p->order, rec->perf.time_ns, l);
	return r < 0 ? fail(p, r, "load events") : 0;
}

/*
 * Losses are told as they were noticed, whatever was lost; and where the kernel counts those of
 * each event, once more at the end. Threads are not to be judged over a loss.
 */
static int keep_lost(struct perfdata *p, const struct perfdata_record *rec)
{
	uint64_t nr = rec->perf.nr, told;
	int r;

	if (rec->perf.what == PERF_UNSENT && p->events.lost_counted) {
		told = nr < p->lost_said ? nr : p->lost_said;
		p->lost_said -= told;
		nr -= told;
	} else if (rec->perf.what == PERF_LOST) {
		perf_threads_forget(&p->threads);
		r = perfdata_order_lost(&p->order, rec->perf.time_ns);
		if (r < 0)
			return fail(p, r, "load events");
		if (base_add_overflow(p->lost_said, nr, &p->lost_said))
			return fail(p, -DCPI_EOVERFLOW, "lost records");
	}
	if (base_add_overflow(p->base.stats.lost_ring, nr, &p->base.stats.lost_ring))
		return fail(p, -DCPI_EOVERFLOW, "lost records");
	return receive(p, rec, nr);
}

static int keep_bad(struct perfdata *p, const struct perfdata_record *rec)
{
	if (rec->perf.what == PERF_LOAD)
		p->base.stats.lost_load++;
	if (rec->perf.what != PERF_SAMPLE)
		return 0;
	p->base.stats.lost_bad++;
	return receive(p, rec, 1);
}

static int keep(struct perfdata *p, struct perfdata_record *rec)
{
	switch (rec->perf.what) {
	case PERF_SAMPLE:
		return keep_sample(p, rec);
	case PERF_LOAD:
		return keep_load(p, rec);
	case PERF_LOST:
	case PERF_UNSENT:
		return keep_lost(p, rec);
	case PERF_THROTTLED:
		p->base.stats.throttled++;
		return 0;
	case PERF_SKIP:
		return 0;
	}
	return 0;
}

/* Records without a time belong where they stand. */
static void give_time(struct perfdata *p, struct perfdata_record *rec)
{
	if (!rec->has_time)
		rec->perf.time_ns = p->read_ns;
	else if (rec->perf.time_ns > p->read_ns)
		p->read_ns = rec->perf.time_ns;
}

int perfdata_keep(struct perfdata *p, const uint8_t *bytes, size_t len)
{
	struct perfdata_record rec;

	if (perfdata_record_parse(&p->events, bytes, len, &rec) < 0)
		return keep_bad(p, &rec);
	give_time(p, &rec);
	return keep(p, &rec);
}
