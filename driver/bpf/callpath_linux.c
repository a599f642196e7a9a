/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Call paths of the source "bpf": their records, checked, and handed on in order of time; the maps
 * of their program, read and filled; the operations of driver.h on them.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf_callpaths.h"
#include "bpf_maps.h"
#include "bpf_program.h"
#include "bpf_rows.h"
#include "kernel/callpaths.h"

_Static_assert(sizeof(struct callpath_file) == sizeof(struct driver_file), "a file");

_Static_assert((int)CALLPATH_COMPLETE == (int)DRIVER_CALLPATH_COMPLETE &&
		       (int)CALLPATH_CUT == (int)DRIVER_CALLPATH_CUT &&
		       (int)CALLPATH_UNREADABLE == (int)DRIVER_CALLPATH_UNREADABLE &&
		       (int)CALLPATH_NO_ROWS == (int)DRIVER_CALLPATH_NO_ROWS &&
		       (int)CALLPATH_ASTRAY == (int)DRIVER_CALLPATH_ASTRAY &&
		       (int)CALLPATH_NR_FRAMES == (int)DRIVER_NR_FRAMES &&
		       CALLPATH_EXACT == DRIVER_FRAME_EXACT &&
		       CALLPATH_FUNCTION == DRIVER_FRAME_FUNCTION &&
		       (int)CALLPATH_KEY_SHIFT == (int)DRIVER_FRAME_KEY_SHIFT,
	       "call paths");

/* ---- records of paths ------------------------------------------------------------------------ */

/* Frames that it brings. */
static size_t nr_frames(const struct callpath_record *w)
{
	return w->flags & CALLPATH_SAME ? 1 : w->nr;
}

static bool is_sound(const struct callpath_record *w, size_t len)
{
	size_t rest =
		len < sizeof(*w) || !w->stack_len ? 0 : sizeof(struct unwind_state) + w->stack_len;

	if (len < sizeof(*w) || w->stack_len > CALLPATH_STACK_LEN || w->stack_len % 8 ||
	    len != sizeof(*w) + nr_frames(w) * sizeof(uint64_t) + rest)
		return false;
	return w->nr > 0 && w->nr <= CALLPATH_NR_FRAMES && w->nr_kernel <= w->nr &&
	       w->end < DRIVER_NR_CALLPATH_ENDS && w->event < DRIVER_NR_EVENTS &&
	       w->mode <= DRIVER_KERNEL && (w->nr_kernel > 0) == (w->mode == DRIVER_KERNEL);
}

/* NULL: there is no memory for it. */
static struct bpf_callpaths_last *last_of(struct bpf_callpaths *q, const struct callpath_record *w)
{
	if (w->cpu >= q->nr_last) {
		if (base_grow(&q->last, &q->cap_last, w->cpu + 1u, sizeof(*q->last)) < 0)
			return NULL;
		memset(q->last + q->nr_last, 0, (w->cpu + 1u - q->nr_last) * sizeof(*q->last));
		q->nr_last = w->cpu + 1u;
	}
	return &q->last[w->cpu];
}

static bool add(struct bpf_callpaths *q, const struct callpath_record *w, size_t len)
{
	struct bpf_callpaths_last *last = last_of(q, w);
	bool same = w->flags & CALLPATH_SAME;
	bool added = last && !(same && last->missing) &&
		     bpf_queue_add(&q->queue, w->time_ns, w, len) >= 0;

	if (last && !same)
		last->missing = !added;
	return added;
}

void bpf_callpaths_add(struct bpf_callpaths *q, const void *record, size_t len)
{
	const struct callpath_record *w = record;
	bool sound = is_sound(w, len);

	if (sound && add(q, w, len))
		return;
	q->lost_read++;
	/* It may be of any CPU. */
	for (size_t i = 0; i < q->nr_last && !sound; i++)
		q->last[i].missing = true;
}

/* Its frames, or NULL: what they were was lost. */
static const uint64_t *frames_of(struct bpf_callpaths *q, const struct callpath_record *w,
				 const uint64_t *frames)
{
	struct bpf_callpaths_last *last = last_of(q, w);

	if (w->flags & CALLPATH_SAME) {
		if (!last || last->nr != w->nr)
			return NULL;
		last->frames[0] = frames[0];
		return last->frames;
	}
	if (!last)
		return frames;
	if (!last->frames)
		last->frames = malloc(CALLPATH_NR_FRAMES * sizeof(*frames));
	last->nr = last->frames ? w->nr : 0;
	if (last->frames)
		memcpy(last->frames, frames, w->nr * sizeof(*frames));
	return frames;
}

void bpf_callpaths_release(struct bpf_callpaths *q)
{
	for (size_t i = 0; i < q->nr_last; i++)
		free(q->last[i].frames);
	free(q->last);
	bpf_queue_release(&q->queue);
	bpf_queue_release(&q->functions);
	*q = (struct bpf_callpaths){ 0 };
}

struct telling {
	struct bpf_callpaths *q;
	const struct driver_sink *sink;
};

static int hand(void *ctx, const uint64_t *record)
{
	const struct telling *t = ctx;
	const struct callpath_record *w = (const void *)record;
	const uint64_t *own = record + sizeof(*w) / sizeof(*record);
	const struct unwind_state *state = (const void *)(own + nr_frames(w));
	const uint64_t *frames = frames_of(t->q, w, own);
	const struct driver_callpath c = {
		.first_ns = w->time_ns,
		.time_ns = w->time_ns,
		.instance = w->instance,
		.count = 1,
		.pid = (int32_t)w->tgid,
		.tid = (int32_t)w->tid,
		.event = w->event,
		.mode = w->mode,
		.generation = w->generation,
		.generation_read = (w->flags & CALLPATH_READ) != 0,
		.generation_unread = (w->flags & CALLPATH_UNREAD) != 0,
		.end = w->end,
		.nr_kernel = w->nr_kernel,
		.nr = w->nr,
		.state = w->stack_len ? state : NULL,
		.stack = w->stack_len ? (const void *)(state + 1) : NULL,
		.stack_len = w->stack_len,
	};

	if (!frames) {
		t->q->lost_read++;
		return 0;
	}
	t->q->handed++;
	t->q->by_end[w->end]++;
	t->q->frames += w->nr;
	return t->sink->callpath ? t->sink->callpath(t->sink->ctx, &c, frames) : 0;
}

/* ---- records of functions -------------------------------------------------------------------- */

static bool string_is_sound(const struct callpath_string *s)
{
	return s->len <= sizeof(s->text) &&
	       (!s->len || s->kind == 1 || s->kind == 2 || s->kind == 4);
}

void bpf_callpaths_add_function(struct bpf_callpaths *q, const void *record, size_t len)
{
	const struct callpath_function *f = record;

	if (len >= offsetof(struct callpath_function, lines) && len % 8 == 0 &&
	    f->lines_len <= len - offsetof(struct callpath_function, lines) &&
	    string_is_sound(&f->name) && string_is_sound(&f->file))
		bpf_queue_add(&q->functions, f->time_ns, f, len);
}

static int hand_function(void *ctx, const uint64_t *record)
{
	const struct telling *t = ctx;
	const struct callpath_function *f = (const void *)record;
	const struct driver_function to = {
		.time_ns = f->time_ns,
		.instance = f->instance,
		.key = f->key,
		.pid = (int32_t)f->tgid,
		.nr = f->nr,
		.line = f->line,
		.uid = f->uid,
		.name = { f->name.text, f->name.len, f->name.kind },
		.file = { f->file.text, f->file.len, f->file.kind },
		.lines = f->lines,
		.lines_len = f->lines_len,
	};

	return t->sink->function ? t->sink->function(t->sink->ctx, &to) : 0;
}

int bpf_callpaths_hand(struct bpf_callpaths *q, uint64_t until_ns, const struct driver_sink *sink)
{
	struct telling t = { q, sink };
	int r = bpf_queue_hand(&q->functions, until_ns, hand_function, &t);

	return r < 0 ? r : bpf_queue_hand(&q->queue, until_ns, hand, &t);
}

/* ---- what is open ---------------------------------------------------------------------------- */

/* Files that are reported in a second, and parts of memory for code. One that is written to again
 * and again is always new. */
enum { ASKED_PER_S = 256 };

/* A second of reports began then, of so many; more were dropped. */
struct asked {
	uint64_t second_ns;
	uint32_t nr;
	bool dropped;
};

enum { BANK_BYTES = CALLPATH_BANK * CALLPATH_CHUNK * sizeof(uint32_t) };

struct bpf_callpath_source {
	const struct sample_behind *programs;
	const struct bpf_tables *tables; /* to wait for programs */
	struct bpf_callpaths queue;
	struct bpf_rows rows;
	struct bpf_reader paths, functions, missing;
	struct driver_rows_missing *missed;
	size_t nr_missed, cap_missed;
	struct asked files, codes;
	void *cpus;
	size_t nr_cpus;
};

static struct bpf_callpath_source *source_of(const struct driver *d)
{
	return ((const struct bpf *)d)->callpaths;
}

static volatile struct callpath_counts *counts_of(const struct bpf_callpath_source *s, size_t cpu)
{
	return (void *)((char *)s->cpus +
			cpu * bpf_map__value_size(s->programs->maps.callpath_cpus));
}

/* ---- tables ---------------------------------------------------------------------------------- */

static int make_bank(void *ctx, uint32_t number, uint32_t **words)
{
	struct bpf_callpath_source *s = ctx;
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "callpath_bank", 4,
				CALLPATH_CHUNK * sizeof(uint32_t), CALLPATH_BANK, &opts);
	void *memory = fd < 0 ? MAP_FAILED
			      : mmap(NULL, BANK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	int r = memory == MAP_FAILED ? -errno : 0;

	if (r >= 0 && bpf_map_update_elem(bpf_map__fd(s->programs->maps.callpath_banks), &number,
					  &fd, BPF_ANY) < 0) {
		r = -errno;
		munmap(memory, BANK_BYTES);
	}
	if (fd >= 0)
		close(fd);
	if (r >= 0)
		*words = memory;
	return r;
}

static int lead(void *ctx, const struct driver_file *file, uint32_t number)
{
	const struct bpf_callpath_source *s = ctx;
	int fd = bpf_map__fd(s->programs->maps.callpath_files);

	return bpf_map_update_elem(fd, file, &number, BPF_ANY) < 0 ? -errno : 0;
}

static void forget(void *ctx, const struct driver_file *file)
{
	const struct bpf_callpath_source *s = ctx;

	bpf_map_delete_elem(bpf_map__fd(s->programs->maps.callpath_files), file);
}

static void changed(void *ctx)
{
	const struct bpf_callpath_source *s = ctx;

	for (size_t i = 0; i < s->nr_cpus; i++)
		__atomic_fetch_add(&counts_of(s, i)->epoch, 1, __ATOMIC_SEQ_CST);
}

static void wait(void *ctx)
{
	const struct bpf_callpath_source *s = ctx;

	bpf_tables_wait(s->tables);
}

static const struct bpf_rows_ops rows_ops = {
	.bank = make_bank,
	.lead = lead,
	.forget = forget,
	.changed = changed,
	.wait = wait,
};

/* ---- rings ----------------------------------------------------------------------------------- */

static void on_path(void *ctx, const void *data, size_t len)
{
	struct bpf_callpath_source *s = ctx;

	bpf_callpaths_add(&s->queue, data, len);
}

static void on_function(void *ctx, const void *data, size_t len)
{
	struct bpf_callpath_source *s = ctx;

	bpf_callpaths_add_function(&s->queue, data, len);
}

/* Reports that were dropped come again, in the next second. */
static void next_second(struct bpf_callpath_source *s, struct asked *a, uint64_t now_ns)
{
	if (now_ns - a->second_ns < 1000000000u)
		return;
	if (a->dropped)
		changed(s);
	*a = (struct asked){ .second_ns = now_ns };
}

static bool may_ask(struct bpf_callpath_source *s, struct asked *a, uint64_t now_ns)
{
	next_second(s, a, now_ns);
	a->dropped |= a->nr >= ASKED_PER_S;
	return a->nr++ < ASKED_PER_S;
}

static void miss(struct bpf_callpath_source *s, const struct callpath_missing *m)
{
	struct driver_rows_missing to = {
		.instance = m->instance,
		.addr = m->addr,
		.start = m->start,
		.end = m->end,
		.file_off = m->file_off,
		.pid = (int32_t)m->tgid,
		.kind = m->file.changed == CALLPATH_VDSO   ? DRIVER_ROWS_VDSO
			: m->file.changed == CALLPATH_CODE ? DRIVER_ROWS_CODE
							   : DRIVER_ROWS_FILE,
	};

	memcpy(&to.file, &m->file, sizeof(to.file));
	/* All that has this table, in whatever mappings it lies. */
	if (to.kind == DRIVER_ROWS_CODE) {
		to.start = to.file.size << UNWIND_PAGE_BITS;
		to.end = to.start + (1 << UNWIND_PAGE_BITS);
	}
	/* Several CPUs meet the same one. */
	if (bpf_rows_is_asked(&s->rows, &to.file))
		return;
	/* Without room for it, it is met again. */
	if (base_grow(&s->missed, &s->cap_missed, s->nr_missed + 1, sizeof(to)) < 0)
		return;
	if (may_ask(s, to.kind == DRIVER_ROWS_CODE ? &s->codes : &s->files, base_now_ns()) &&
	    bpf_rows_ask(&s->rows, &to.file, base_now_ns()))
		s->missed[s->nr_missed++] = to;
}

static void on_missing(void *ctx, const void *data, size_t len)
{
	if (len >= sizeof(struct callpath_missing))
		miss(ctx, data);
}

/* ---- the stream ------------------------------------------------------------------------------ */

static const struct driver_callpath_ops callpath_ops;

static int open_maps(struct bpf_callpath_source *s)
{
	int r = bpf_map_in(&s->cpus, s->programs->maps.callpath_cpus);

	if (r >= 0)
		r = bpf_map_in(&s->rows.tables, s->programs->maps.callpath_tables);
	if (r >= 0)
		r = bpf_map_in(&s->rows.pythons, s->programs->maps.callpath_pythons);
	if (r >= 0)
		r = bpf_reader_open(&s->functions, s->programs->maps.callpath_functions,
				    on_function, s);
	if (r >= 0)
		r = bpf_reader_open(&s->paths, s->programs->maps.callpaths, on_path, s);
	if (r >= 0)
		r = bpf_reader_open(&s->missing, s->programs->maps.callpath_missing, on_missing, s);
	return r;
}

static int open_callpaths(struct bpf *b, const struct driver_config *config)
{
	struct bpf_callpath_source *s;
	int r;

	if (!config->callpath_every)
		return 0;
	s = b->callpaths = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->programs = b->programs.behind[0];
	s->tables = &b->tables;
	s->rows.ops = &rows_ops;
	s->rows.ctx = s;
	s->nr_cpus = bpf_map__max_entries(s->programs->maps.callpath_cpus);
	r = open_maps(s);
	if (r >= 0)
		r = perf_sampler_poll_add(&b->sampler, bpf_reader_poll_fd(&s->paths), true);
	if (r >= 0)
		r = perf_sampler_poll_add(&b->sampler, bpf_reader_poll_fd(&s->missing), false);
	if (r < 0)
		return r;
	b->base.callpaths = &callpath_ops;
	/* Last: a path's functions are in their ring before it is in its own. */
	bpf_spill(b, &s->functions);
	bpf_spill(b, &s->paths);
	return 0;
}

static void close_callpaths(struct bpf *b)
{
	struct bpf_callpath_source *s = b->callpaths;

	if (!s)
		return;
	bpf_reader_close(&s->paths);
	bpf_reader_close(&s->functions);
	bpf_reader_close(&s->missing);
	bpf_map_out(s->cpus, s->programs->maps.callpath_cpus);
	bpf_map_out(s->rows.tables, s->programs->maps.callpath_tables);
	bpf_map_out(s->rows.pythons, s->programs->maps.callpath_pythons);
	for (size_t i = 0; i < CALLPATH_NR_BANKS; i++)
		if (s->rows.banks[i])
			munmap(s->rows.banks[i], BANK_BYTES);
	bpf_callpaths_release(&s->queue);
	free(s->missed);
	free(s);
	b->callpaths = NULL;
}

static bool read_callpaths(struct bpf *b, size_t *nr)
{
	size_t own;

	if (!b->callpaths)
		return false;
	bpf_reader_read(&b->callpaths->missing);
	bpf_reader_read(&b->callpaths->paths);
	/* Last: a path's functions are in their ring before it is in its own. */
	bpf_reader_read(&b->callpaths->functions);
	own = bpf_queue_nr(&b->callpaths->queue.queue) +
	      bpf_queue_nr(&b->callpaths->queue.functions);
	*nr += own;
	return own > BPF_STREAM_MAX;
}

static uint64_t horizon(struct bpf *b, uint64_t now_ns)
{
	struct bpf_callpath_source *s = b->callpaths;

	return s ? bpf_reader_horizon(b, &s->paths, &s->queue.queue, now_ns) : now_ns;
}

static uint64_t next(struct bpf *b)
{
	uint64_t path, function;

	if (!b->callpaths)
		return UINT64_MAX;
	path = bpf_queue_next(&b->callpaths->queue.queue);
	function = bpf_queue_next(&b->callpaths->queue.functions);
	return function < path ? function : path;
}

static int hand_until(struct bpf *b, uint64_t until_ns, const struct driver_sink *sink)
{
	return b->callpaths ? bpf_callpaths_hand(&b->callpaths->queue, until_ns, sink) : 0;
}

static void settle(struct bpf *b, uint64_t until_ns)
{
	(void)until_ns;
	if (!b->callpaths)
		return;
	bpf_queue_tidy(&b->callpaths->queue.queue);
	bpf_queue_tidy(&b->callpaths->queue.functions);
}

const struct bpf_stream_ops bpf_callpaths_ops = {
	.open = open_callpaths,
	.read = read_callpaths,
	.horizon = horizon,
	.next = next,
	.hand_until = hand_until,
	.settle = settle,
	.close = close_callpaths,
};

/* ---- ops ------------------------------------------------------------------------------------- */

static int missing(struct driver *d, int (*fn)(void *ctx, const struct driver_rows_missing *m),
		   void *ctx)
{
	struct bpf_callpath_source *s = source_of(d);
	size_t nr;
	int r = 0;

	if (s->files.dropped)
		next_second(s, &s->files, base_now_ns());
	if (s->codes.dropped)
		next_second(s, &s->codes, base_now_ns());
	bpf_reader_read(&s->missing);
	nr = s->nr_missed;
	s->nr_missed = 0;
	for (size_t i = 0; i < nr && r >= 0; i++)
		r = fn(ctx, &s->missed[i]);
	return r < 0 ? r : 0;
}

static int put(struct driver *d, const struct driver_file *file, const struct unwind_table *table)
{
	return bpf_rows_put(&source_of(d)->rows, file, table, base_now_ns());
}

static void again(struct driver *d, const struct driver_file *file)
{
	bpf_rows_again(&source_of(d)->rows, file);
}

static void forget_files(struct driver *d, const struct driver_file *files, size_t nr)
{
	bpf_rows_forget(&source_of(d)->rows, files, nr);
}

static bool rule(struct driver *d, const struct driver_file *file, uint64_t off,
		 struct unwind_rule *out)
{
	return bpf_rows_rule(&source_of(d)->rows, file, off, out);
}

/* Losses are read first: they may grow between, but are received before. */
static void add_cpu(struct driver_callpath_stats *out, const volatile struct callpath_counts *c)
{
	out->lost_ring += c->lost_ring;
	out->lost_busy += c->lost_busy;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	out->received += c->received;
}

static void stats(const struct driver *d, struct driver_callpath_stats *out)
{
	const struct bpf_callpath_source *s = source_of(d);

	*out = (struct driver_callpath_stats){
		.lost_read = s->queue.lost_read + s->paths.spill.lost,
		.frames = s->queue.frames,
		.nr_tables = s->rows.nr_tables,
		.table_bytes = s->rows.bytes,
		.evicted = s->rows.evicted,
	};
	memcpy(out->by_end, s->queue.by_end, sizeof(out->by_end));
	for (size_t i = 0; i < s->nr_cpus; i++)
		add_cpu(out, counts_of(s, i));
	out->held =
		out->received - out->lost_ring - out->lost_busy - out->lost_read - s->queue.handed;
}

static const struct driver_callpath_ops callpath_ops = {
	.missing = missing,
	.put = put,
	.again = again,
	.forget = forget_files,
	.rule = rule,
	.stats = stats,
};
