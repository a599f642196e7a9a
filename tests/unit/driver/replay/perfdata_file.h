/* SPDX-License-Identifier: BSD-2-Clause */
/* Hand-made perf.data files, written field by field; and what their replay hands on, as text. */
#ifndef DCPI_TEST_PERFDATA_FILE_H
#define DCPI_TEST_PERFDATA_FILE_H

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "perfdata_internal.h"

/* What every event of these files has in its samples. */
#define FILE_SAMPLE                                                                                \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_PERIOD)

/* ---- writing --------------------------------------------------------------------------------- */

static size_t rec_at; /* where the current record begins */

static inline void put(struct base_buf *f, uint64_t v, size_t len)
{
	base_buf_append(f, &v, len);
}

static inline void put_text(struct base_buf *f, const char *text)
{
	static const char zeros[8];
	size_t len = strlen(text) + 1;

	base_buf_append(f, text, len);
	base_buf_append(f, zeros, base_align_up(len, 8) - len);
}

static inline void rec_begin(struct base_buf *f, uint32_t type, uint16_t misc)
{
	rec_at = f->len;
	put(f, type, 4);
	put(f, misc, 2);
	put(f, 0, 2);
}

static inline void rec_end(struct base_buf *f)
{
	uint16_t size = (uint16_t)(f->len - rec_at);

	memcpy(f->data + rec_at + 6, &size, 2);
}

/* pid, tid, time, id: the end of every record but a sample. */
static inline void rec_trail(struct base_buf *f, uint32_t pid, uint64_t time_ns, uint64_t id)
{
	put(f, pid, 4);
	put(f, pid, 4);
	put(f, time_ns, 8);
	put(f, id, 8);
	rec_end(f);
}

static inline struct perf_event_attr file_attr(uint32_t type, uint64_t config, uint64_t period)
{
	return (struct perf_event_attr){
		.type = type,
		.size = sizeof(struct perf_event_attr),
		.config = config,
		.sample_period = period,
		.sample_type = FILE_SAMPLE,
		.sample_id_all = 1,
	};
}

static inline void put_attr(struct base_buf *f, const struct perf_event_attr *a, uint64_t id)
{
	rec_begin(f, PERFDATA_ATTR, 0);
	base_buf_append(f, a, sizeof(*a));
	put(f, id, 8);
	rec_end(f);
}

static inline void put_pipe_head(struct base_buf *f)
{
	base_buf_append(f, "PERFILE2", 8);
	put(f, 16, 8);
}

/* A pipe's file with page-faults (id 11, every 5th) and cpu-clock by frequency (id 12). */
static inline void put_two_events(struct base_buf *f)
{
	struct perf_event_attr a = file_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 5);

	put_pipe_head(f);
	put_attr(f, &a, 11);
	a = file_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 1000);
	a.freq = 1;
	a.build_id = 1;
	put_attr(f, &a, 12);
}

static inline void put_sample(struct base_buf *f, uint16_t mode, uint64_t ip, uint32_t pid,
			      uint64_t time_ns, uint64_t id, uint64_t period)
{
	rec_begin(f, PERF_RECORD_SAMPLE, mode);
	put(f, ip, 8);
	put(f, pid, 4);
	put(f, pid, 4);
	put(f, time_ns, 8);
	put(f, id, 8);
	put(f, period, 8);
	rec_end(f);
}

static inline void put_task(struct base_buf *f, uint32_t type, uint32_t pid, uint32_t ppid,
			    uint32_t tid, uint64_t time_ns)
{
	rec_begin(f, type, 0);
	put(f, pid, 4);
	put(f, ppid, 4);
	put(f, tid, 4);
	put(f, ppid, 4);
	put(f, time_ns, 8);
	rec_trail(f, ppid, time_ns, 11);
}

static inline void put_comm(struct base_buf *f, uint16_t misc, uint32_t pid, const char *name,
			    uint64_t time_ns)
{
	rec_begin(f, PERF_RECORD_COMM, misc);
	put(f, pid, 4);
	put(f, pid, 4);
	put_text(f, name);
	rec_trail(f, pid, time_ns, 11);
}

static inline void put_mmap(struct base_buf *f, uint16_t misc, uint32_t pid, uint64_t addr,
			    uint64_t len, uint64_t off, const char *path, uint64_t time_ns)
{
	rec_begin(f, PERF_RECORD_MMAP, misc);
	put(f, pid, 4);
	put(f, pid, 4);
	put(f, addr, 8);
	put(f, len, 8);
	put(f, off, 8);
	put_text(f, path);
	rec_trail(f, pid, time_ns, 0);
}

static inline void put_mmap2(struct base_buf *f, uint16_t misc, uint32_t pid, uint32_t prot,
			     const char *path, uint64_t time_ns)
{
	rec_begin(f, PERF_RECORD_MMAP2, misc);
	put(f, pid, 4);
	put(f, pid, 4);
	put(f, 0x400000, 8);
	put(f, 0x2000, 8);
	put(f, 0x1000, 8);
	if (misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		put(f, 4, 4);
		put(f, 0xddccbbaa, 8);
		put(f, 0, 8);
		put(f, 0, 4);
	} else {
		put(f, 8, 4);
		put(f, 1, 4);
		put(f, 77, 8);
		put(f, 5, 8);
	}
	put(f, prot, 4);
	put(f, 2, 4);
	put_text(f, path);
	rec_trail(f, pid, time_ns, 12);
}

static inline void put_build_id(struct base_buf *f, uint16_t misc, const char *path, uint8_t len)
{
	rec_begin(f, PERFDATA_BUILD_ID, misc | (len ? 1u << 15 : 0));
	put(f, (uint32_t)-1, 4);
	put(f, 0x04030201, 8);
	put(f, len ? 0x55 : 0, 8);
	put(f, 0, 4);
	put(f, len, 4);
	put_text(f, path);
	rec_end(f);
}

static inline void put_numbers(struct base_buf *f, uint32_t type, uint16_t misc, uint64_t first,
			       uint64_t second, size_t nr, uint64_t time_ns, uint64_t id)
{
	rec_begin(f, type, misc);
	if (nr > 0)
		put(f, first, 8);
	if (nr > 1)
		put(f, second, 8);
	rec_trail(f, 1, time_ns, id);
}

static inline void put_mark(struct base_buf *f, uint32_t type)
{
	rec_begin(f, type, 0);
	rec_end(f);
}

/* ---- replaying ------------------------------------------------------------------------------- */

struct replayed {
	FILE *to;
	char *text;
	size_t len;
	int r;	    /* of the last drain, or of opening */
	int answer; /* the sink's to the next count */
	struct base_err err;
	struct driver_stats stats;
	struct driver_event events[DRIVER_NR_EVENTS];
	size_t nr_events, drains;
	int64_t utc;
	char describe[160];
};

static int replayed_load(void *ctx, const struct driver_load *load)
{
	return driver_record_load(((struct replayed *)ctx)->to, load);
}

static int replayed_count(void *ctx, const struct driver_count *count)
{
	struct replayed *o = ctx;
	int r = o->answer;

	o->answer = 0;
	return r < 0 ? r : driver_record_count(o->to, count);
}

static inline void replay_drains(struct replayed *o, struct driver *d)
{
	const struct driver_sink sink = { .load = replayed_load,
					  .count = replayed_count,
					  .ctx = o };

	o->nr_events = driver_nr_events(d);
	o->utc = driver_recorded_utc(d);
	snprintf(o->describe, sizeof(o->describe), "%s", driver_describe(d));
	do {
		o->r = driver_drain(d, false, &sink, &o->err);
		o->drains++;
	} while (o->r > 0);
	for (size_t i = 0; i < o->nr_events; i++)
		o->events[i] = *driver_event_get(d, i);
	driver_stats_get(d, &o->stats);
}

/* Replay the file @f, which stays; the caller frees @o->text. */
static inline void replay_bytes(const struct base_buf *f, struct replayed *o)
{
	FILE *in = fmemopen(f->data, f->len, "r");
	struct driver *d = NULL;

	o->to = open_memstream(&o->text, &o->len);
	if (!in || !o->to)
		abort();
	o->r = perfdata_open_stream(in, "x", &d, &o->err);
	if (o->r >= 0) {
		replay_drains(o, d);
		driver_close(d);
	}
	fclose(o->to);
}

#endif
