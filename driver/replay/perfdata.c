/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The source "replay" of a perf.data file: records, and the samples in traces of Arm's statistical
 * profiling extension, are kept until their order is known, and handed on.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "perfdata_internal.h"

/* ---- order of time --------------------------------------------------------------------------- */

static int add(struct perfdata_order *o, struct perfdata_item *item, size_t len)
{
	int r = base_grow(&o->items, &o->cap, o->nr + 1, sizeof(*o->items));

	if (r < 0)
		return r;
	item->seq = o->seq++;
	if (item->time_ns > o->youngest_ns)
		o->youngest_ns = item->time_ns;
	o->items[o->nr++] = *item;
	o->len += sizeof(*item) + len;
	return 0;
}

static size_t load_len(const struct driver_load *l)
{
	return sizeof(struct perfdata_load) + l->data_len + (l->path ? strlen(l->path) + 1 : 0);
}

int perfdata_order_load(struct perfdata_order *o, uint64_t time_ns, const struct driver_load *load)
{
	struct perfdata_item item = { .time_ns = time_ns };
	size_t len = load_len(load);
	struct perfdata_load *copy = malloc(len);
	int r;

	if (!copy)
		return -ENOMEM;
	copy->load = *load;
	if (load->data_len) {
		memcpy(copy->bytes, load->data, load->data_len);
		copy->load.data = copy->bytes;
	}
	if (load->path) {
		strcpy((char *)copy->bytes + load->data_len, load->path);
		copy->load.path = (char *)copy->bytes + load->data_len;
	}
	item.load = copy;
	r = add(o, &item, len);
	if (r < 0)
		free(copy);
	return r;
}

int perfdata_order_sample(struct perfdata_order *o, uint64_t time_ns,
			  const struct driver_count *count)
{
	struct perfdata_item item = {
		.time_ns = time_ns,
		.addr = count->addr,
		.pid = count->pid,
		.tid = count->tid,
		.event = (uint8_t)count->event,
		.mode = (uint8_t)count->mode,
	};
	size_t len = count->insn ? sizeof(*item.insn) : 0;
	int r;

	if (count->insn && !(item.insn = malloc(len)))
		return -ENOMEM;
	if (count->insn)
		*item.insn = *count->insn;
	r = add(o, &item, len);
	o->nr_samples += r >= 0;
	if (r < 0)
		free(item.insn);
	return r;
}

int perfdata_order_lost(struct perfdata_order *o, uint64_t time_ns)
{
	struct perfdata_item item = { .time_ns = time_ns, .lost = true };

	return add(o, &item, 0);
}

static int compare(const void *a, const void *b)
{
	const struct perfdata_item *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->seq < y->seq ? -1 : 1;
}

static void sort(struct perfdata_order *o)
{
	for (size_t i = 1; i < o->nr; i++) {
		if (compare(&o->items[i - 1], &o->items[i]) < 0)
			continue;
		qsort(o->items, o->nr, sizeof(*o->items), compare);
		break;
	}
}

/* No record behind a round is older than the youngest before the round before it. */
uint64_t perfdata_order_round(struct perfdata_order *o)
{
	uint64_t until = o->round_ns;

	o->round_ns = o->youngest_ns;
	return until;
}

bool perfdata_order_full(struct perfdata_order *o, uint64_t *until)
{
	if (o->len <= PERFDATA_HELD_MAX)
		return false;
	sort(o);
	*until = o->items[o->nr / 2].time_ns;
	return true;
}

static void drop_first(struct perfdata_order *o, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		struct perfdata_item *item = &o->items[i];

		o->len -= sizeof(*item) + (item->load ? load_len(&item->load->load) : 0) +
			  (item->insn ? sizeof(*item->insn) : 0);
		o->nr_samples -= !item->load && !item->lost;
		free(item->load);
		free(item->insn);
	}
	o->nr -= nr;
	if (o->nr)
		memmove(o->items, o->items + nr, o->nr * sizeof(*o->items));
}

int perfdata_order_hand(struct perfdata_order *o, uint64_t until,
			int (*fn)(void *ctx, struct perfdata_item *item), void *ctx)
{
	size_t n = 0;
	int r = 0;

	sort(o);
	while (r >= 0 && n < o->nr && o->items[n].time_ns <= until)
		r = fn(ctx, &o->items[n++]);
	drop_first(o, n);
	return r < 0 ? r : 0;
}

void perfdata_order_release(struct perfdata_order *o)
{
	drop_first(o, o->nr);
	free(o->items);
	*o = (struct perfdata_order){ 0 };
}

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

/* The index of a record's event; where that is unknown, or never samples, that of the first. */
static size_t index_of(const struct perfdata_record *rec)
{
	return rec->event && rec->event->index > 0 ? (size_t)rec->event->index : 0;
}

/* Samples of the event of this index that were received, as the law of accounting has it. */
static int receive(struct perfdata *p, size_t index, uint64_t nr)
{
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
	return receive(p, index_of(rec), 1);
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
	uint64_t nr = rec->perf.nr, announced;
	int r;

	if (rec->perf.what == PERF_UNSENT && p->events.lost_counted) {
		announced = nr < p->lost_said ? nr : p->lost_said;
		p->lost_said -= announced;
		nr -= announced;
	} else if (rec->perf.what == PERF_LOST) {
		perf_threads_forget(&p->threads);
		perf_names_lose(&p->names);
		r = perfdata_order_lost(&p->order, rec->perf.time_ns);
		if (r < 0)
			return fail(p, r, "load events");
		if (base_add_overflow(p->lost_said, nr, &p->lost_said))
			return fail(p, -DCPI_EOVERFLOW, "lost records");
	}
	if (base_add_overflow(p->base.stats.lost_ring, nr, &p->base.stats.lost_ring))
		return fail(p, -DCPI_EOVERFLOW, "lost records");
	return receive(p, index_of(rec), nr);
}

static int keep_bad(struct perfdata *p, const struct perfdata_record *rec)
{
	if (rec->perf.what == PERF_LOAD)
		p->base.stats.lost_load++;
	if (rec->perf.what != PERF_SAMPLE)
		return 0;
	p->base.stats.lost_bad++;
	return receive(p, index_of(rec), 1);
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

/*
 * A record of the kernel's kinds into the order, or counted as bad or lost; what was received is
 * counted. Negative: p->failure .
 */
static int perfdata_keep(struct perfdata *p, const uint8_t *bytes, size_t len)
{
	struct perfdata_record rec;

	if (perfdata_record_parse(&p->events, bytes, len, &rec) < 0)
		return keep_bad(p, &rec);
	give_time(p, &rec);
	return keep(p, &rec);
}

/* ---- traces of Arm's SPE --------------------------------------------------------------------- */

/*
 * Each record of a trace is a sample. Traces are decoded in pieces, as one may be longer than
 * memory.
 */

static uint64_t time_of(const struct perfdata_spe *t, uint64_t cycles)
{
	uint64_t rest;

	cycles = t->cycles + ((cycles - t->cycles) & t->mask);
	rest = cycles & ((UINT64_C(1) << t->shift) - 1);
	return t->zero + (cycles >> t->shift) * t->mult + (rest * t->mult >> t->shift);
}

static enum driver_mode mode_of(uint8_t el)
{
	return el == 0 ? DRIVER_USER : el < 3 ? DRIVER_KERNEL : DRIVER_OTHER;
}

static int keep_traced(struct perfdata *p, const struct isample_spe *s)
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
	int r;

	if (s->bad) {
		p->base.stats.lost_bad++;
		return receive(p, c.event, 1);
	}
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
	r = perfdata_order_sample(&p->order, c.time_ns, &c);
	return r < 0 ? fail(p, r, "samples") : receive(p, c.event, 1);
}

/* The next record; 0: its end is in the next piece, or there is none. */
static int next_traced(const struct perfdata *p, size_t *pos, struct isample_spe *out)
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

/* Decode the next piece of the trace into the order. 0 or negative: p->failure. */
static int continue_trace(struct perfdata *p)
{
	struct perfdata_spe *t = &p->spe;
	ssize_t n = perfdata_trail(&p->stream, t->bytes + t->nr, PERFDATA_SPE_PIECE - t->nr,
				   &p->failure);
	struct isample_spe s;
	size_t pos = 0;
	int r = 0;

	if (n < 0)
		return (int)n;
	t->nr += (size_t)n;
	while (r >= 0 && pos < t->nr && next_traced(p, &pos, &s))
		r = keep_traced(p, &s);
	advance(t, pos);
	if (!p->stream.trail)
		t->event = NULL;
	return r;
}

enum { DRAIN_RECORDS = 16384 };
#define SECOND_NS 1000000000u

/* ---- handing on ------------------------------------------------------------------------------ */

struct handing {
	struct perfdata *p;
	const struct driver_sink *sink;
};

/* Behind something younger, whose place in time is gone: what was between may have changed. */
static bool is_late(const struct perfdata *p, const struct perfdata_item *item)
{
	return item->time_ns < p->handed_ns;
}

/* Traces name threads; of what process one is, the records of its names and forks tell. */
static void note_process(struct perfdata *p, const struct driver_load *load)
{
	if (!perfdata_pmu_event(&p->events, EVENT_HW_SPE) || load->pid < 0 || load->tid < 0)
		return;
	base_map_set(&p->process_of, &load->tid, sizeof(load->tid),
		     (void *)(uintptr_t)((uint32_t)load->pid + 1));
}

static int32_t process_of(const struct perfdata *p, const struct perfdata_item *item)
{
	void *known;

	if (item->pid != PERFDATA_PID_BY_THREAD)
		return item->pid;
	known = base_map_get(&p->process_of, &item->tid, sizeof(item->tid));
	return known ? (int32_t)((uintptr_t)known - 1) : -1;
}

static int hand_load(struct perfdata *p, struct driver_load *load, bool late,
		     const struct driver_sink *sink)
{
	if (late && load->time_ns) {
		p->base.stats.lost_load++;
		load->time_ns = p->handed_ns;
	}
	perf_names_load(&p->names, load);
	note_process(p, load);
	return perf_threads_pass(&p->threads, load) ? sink->load(sink->ctx, load) : 0;
}

static int hand_sample(const struct perfdata *p, const struct perfdata_item *item, bool late,
		       const struct driver_sink *sink)
{
	const struct driver_count count = {
		.first_ns = item->time_ns,
		.time_ns = late ? p->handed_ns : item->time_ns,
		.pid = process_of(p, item),
		.tid = item->tid,
		.thread = perf_names_get(&p->names, item->tid),
		.event = item->event,
		.mode = (enum driver_mode)item->mode,
		.addr = item->addr,
		.count = 1,
		.insn = item->insn,
	};

	return sink->count(sink->ctx, &count);
}

static int hand_item(void *ctx, struct perfdata_item *item)
{
	const struct handing *h = ctx;
	bool late = is_late(h->p, item);

	if (!late)
		h->p->handed_ns = item->time_ns;
	if (item->load)
		return hand_load(h->p, &item->load->load, late, h->sink);
	if (!item->lost)
		return hand_sample(h->p, item, late, h->sink);
	perf_threads_forget(&h->p->threads);
	perf_names_lose(&h->p->names);
	return 0;
}

static int hand_until(struct perfdata *p, uint64_t until, const struct driver_sink *sink)
{
	struct handing h = { p, sink };

	return perfdata_order_hand(&p->order, until, hand_item, &h);
}

/* ---- records --------------------------------------------------------------------------------- */

static uint32_t type_of(const uint8_t *rec)
{
	uint32_t type;

	memcpy(&type, rec, sizeof(type));
	return type;
}

/* 1: all is known up to *@until now; 0: not more than before. */
static int take_record(struct perfdata *p, const uint8_t *rec, size_t len, uint64_t *until)
{
	uint32_t type = type_of(rec);
	int r;

	if (type == PERFDATA_FINISHED_ROUND) {
		*until = perfdata_order_round(&p->order);
		return 1;
	}
	if (type >= PERFDATA_ATTR)
		return perfdata_note_parse(p, type, rec, len, &p->failure);
	r = perfdata_keep(p, rec, len);
	return r < 0 ? r : perfdata_order_full(&p->order, until);
}

/* 1: there may be more; 0: the end. */
static int next_record(struct perfdata *p, const uint8_t **rec, size_t *len, struct base_err *err)
{
	if (!p->waiting)
		return perfdata_next(&p->stream, rec, len, err);
	*rec = p->waiting;
	*len = p->waiting_len;
	p->waiting = NULL;
	return 1;
}

/* As next_record; a failure of the file's is in p->failure and ends it, any other is the sink's. */
static int step(struct perfdata *p, const struct driver_sink *sink)
{
	uint64_t until = 0;
	const uint8_t *rec;
	size_t len;
	int r = 1, known = 0;

	if (p->spe.event) {
		known = continue_trace(p);
		known = known < 0 ? known : perfdata_order_full(&p->order, &until);
	} else {
		r = next_record(p, &rec, &len, &p->failure);
		if (r > 0)
			known = take_record(p, rec, len, &until);
	}
	if (r == -ECANCELED)
		p->failure = (struct base_err){ 0 };
	if (r <= 0 || known < 0) {
		p->ended = true;
		return 0;
	}
	r = known ? hand_until(p, until, sink) : 0;
	return r < 0 ? r : 1;
}

/* ---- the source ------------------------------------------------------------------------------ */

static int perfdata_start(struct driver *d, struct base_err *err)
{
	(void)d;
	(void)err;
	return 0;
}

static int perfdata_drain(struct driver *d, bool all, const struct driver_sink *sink,
			  struct base_err *err)
{
	struct perfdata *p = (struct perfdata *)d;
	uint64_t end_ns = replay_drain_end(p->stream.in);
	int r = 1;

	(void)all; /* unordered records stay, even if all are wanted */
	for (int n = 0; n < DRAIN_RECORDS && r > 0 && !p->ended; n++) {
		r = step(p, sink);
		if (end_ns != UINT64_MAX && base_now_ns() > end_ns)
			break;
	}
	if (r >= 0 && p->ended)
		r = hand_until(p, UINT64_MAX, sink);
	p->base.stats.held = p->order.nr_samples;
	if (r < 0 || !p->failure.code)
		return r < 0 ? r : !p->ended;
	base_fail(err, p->failure.code, "%s", p->failure.text);
	if (p->failure.hint[0])
		base_hint(err, "%s", p->failure.hint);
	return p->failure.code;
}

static int perfdata_poll_fd(const struct driver *d)
{
	(void)d;
	return -1;
}

static const char *perfdata_thread_name(const struct driver *d, uint32_t thread)
{
	return perf_names_text(&((const struct perfdata *)d)->names, thread);
}

static void perfdata_threads_forget(struct driver *d)
{
	perf_names_forget(&((struct perfdata *)d)->names);
}

static void perfdata_stop(struct driver *d)
{
	((struct perfdata *)d)->ended = true;
}

static void perfdata_close(struct driver *d)
{
	struct perfdata *p = (struct perfdata *)d;

	perfdata_stream_close(&p->stream);
	perfdata_events_release(&p->events);
	perfdata_build_ids_release(&p->build_ids);
	perfdata_order_release(&p->order);
	perf_threads_forget(&p->threads);
	perf_names_release(&p->names);
	base_map_release(&p->process_of);
	free(p->spe.bytes);
	free(p->name);
	free(p);
}

static const struct driver_ops perfdata_ops = {
	.start = perfdata_start,
	.drain = perfdata_drain,
	.poll_fd = perfdata_poll_fd,
	.thread_name = perfdata_thread_name,
	.threads_forget = perfdata_threads_forget,
	.stop = perfdata_stop,
	.close = perfdata_close,
};

/* ---- opening --------------------------------------------------------------------------------- */

/* Read perf's notes on events and features, which come before everything else. */
static int read_notes(struct perfdata *p, struct base_err *err)
{
	const uint8_t *rec;
	size_t len;
	int r;

	while ((r = perfdata_next(&p->stream, &rec, &len, err)) > 0) {
		uint32_t type = type_of(rec);

		if (type < PERFDATA_ATTR || type == PERFDATA_FINISHED_ROUND) {
			p->waiting = rec;
			p->waiting_len = len;
			return 0;
		}
		r = perfdata_note_parse(p, type, rec, len, err);
		if (r < 0)
			return r;
	}
	return r;
}

static int announce(struct perfdata *p, struct base_err *err)
{
	const char *why = NULL;
	int r = perfdata_events_announce(&p->events, &p->pmus, &p->base, &why);

	return r < 0 ? base_fail(err, r, "cannot replay '%s': %s", p->name, why) : 0;
}

/* Without a clock's feature: when the file was written last, less what it holds. */
static int64_t utc_of(const struct perfdata *p)
{
	uint64_t len_ns = p->last_ns > p->first_ns ? p->last_ns - p->first_ns : 0;
	int64_t utc = (int64_t)time(NULL);
	struct stat st;
	int fd = fileno(p->stream.in);

	if (p->utc_ns)
		return (int64_t)(p->utc_ns / SECOND_NS);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		utc = (int64_t)st.st_mtime;
	utc -= (int64_t)(len_ns / SECOND_NS);
	return utc > 0 ? utc : 0;
}

static void describe(struct perfdata *p)
{
	snprintf(p->base.describe, sizeof(p->base.describe),
		 "replay: '%.60s', by perf %.20s on %.40s%s", p->name,
		 p->version[0] ? p->version : "unknown", p->host[0] ? p->host : "unknown",
		 p->unfinished ? ", unfinished" : "");
}

static int open_all(struct perfdata *p, struct base_err *err)
{
	int r = perfdata_head_read(p, err);

	if (r >= 0 && p->pipe)
		r = read_notes(p, err);
	if (r >= 0)
		r = announce(p, err);
	if (r < 0)
		return r;
	p->base.utc = utc_of(p);
	describe(p);
	return 0;
}

int perfdata_open_stream(FILE *in, const char *name, struct driver **out, struct base_err *err)
{
	struct perfdata *p = calloc(1, sizeof(*p));
	int r;

	if (p)
		p->name = strdup(name);
	if (!p || !p->name) {
		fclose(in);
		free(p);
		return base_fail_errno(err, -ENOMEM, "cannot replay '%s'", name);
	}
	p->base.ops = &perfdata_ops;
	p->stream.in = in;
	p->stream.name = p->name;
	r = open_all(p, err);
	if (r < 0)
		perfdata_close(&p->base);
	else
		*out = &p->base;
	return r;
}
