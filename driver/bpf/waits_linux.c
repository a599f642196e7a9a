/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting and running threads of the source "bpf": the programs that measure them, and the maps in
 * which these add up. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "bpf_maps.h"
#include "bpf_program.h"
#include "bpf_waits.h"

enum { NR_LINKS = 4, BATCH = 4096 };

struct bpf_wait_source {
	struct sample_waiting *programs;
	struct bpf_waits waits;
	struct bpf_reader paths;
	void *links[NR_LINKS]; /* while threads are measured */
	void *look;
	void *cpus;
	size_t nr_cpus;
	struct wait_key *keys; /* BATCH of both */
	struct wait_sum *sums;
	bool said; /* that a look failed */
};

/* ---- all threads up to now ------------------------------------------------------------------- */

/* The program writes nothing; it has seen all threads when this ends. After a million of them the
 * kernel takes a break. */
static int look_at_all(int fd)
{
	char nothing[64];
	ssize_t r;

	do
		r = read(fd, nothing, sizeof(nothing));
	while (r > 0 || (r < 0 && (errno == EAGAIN || errno == EINTR)));
	return r < 0 ? -errno : 0;
}

void bpf_waits_look(struct bpf *b)
{
	struct bpf_wait_source *s = b->waits;
	int fd, r;

	if (!s || !s->look)
		return;
	fd = bpf_iter_create(bpf_link__fd(s->look));
	r = fd < 0 ? -errno : look_at_all(fd);
	if (fd >= 0)
		close(fd);
	if (r < 0 && !s->said)
		base_log(BASE_LOG_WARN,
			 "cannot look at all threads: %s; waits count when they are over",
			 base_strerror(r));
	s->said |= r < 0;
}

static int attach(struct bpf_wait_source *s)
{
	struct bpf_program *const programs[NR_LINKS] = {
		s->programs->progs.wait_switch,
		s->programs->progs.wait_wakeup,
		s->programs->progs.wait_begin,
		s->programs->progs.wait_exec,
	};

	for (size_t i = 0; i < NR_LINKS; i++) {
		s->links[i] = bpf_program__attach_trace(programs[i]);
		if (!s->links[i])
			return -errno;
	}
	s->look = bpf_program__attach_iter(s->programs->progs.wait_look, NULL);
	return s->look ? 0 : -errno;
}

static void detach(struct bpf_wait_source *s)
{
	for (size_t i = 0; i < NR_LINKS; i++) {
		bpf_link__destroy(s->links[i]);
		s->links[i] = NULL;
	}
	bpf_link__destroy(s->look);
	s->look = NULL;
}

int bpf_waits_run(struct bpf *b, bool on)
{
	struct bpf_wait_source *s = b->waits;
	int r;

	if (!s)
		return 0;
	if (!on) {
		bpf_waits_look(b);
		detach(s);
		return 0;
	}
	r = attach(s);
	if (r < 0)
		detach(s);
	else
		bpf_waits_look(b);
	return r;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void on_path(void *ctx, const void *data, size_t len)
{
	struct bpf_wait_source *s = ctx;

	bpf_waits_path(&s->waits, data, len);
}

bool bpf_waits_read(struct bpf *b)
{
	if (!b->waits)
		return false;
	bpf_reader_read(&b->waits->paths);
	/* A path stays for two gatherings more. */
	return b->waits->waits.new_bytes > BPF_WAITS_BYTES_MAX / 4;
}

/* Everything in the map that is not added to. */
static void read_sums(struct bpf_wait_source *s, int fd)
{
	uint32_t at, *from = NULL, nr = BATCH;
	int r = 0;

	while (r >= 0) {
		nr = BATCH;
		r = bpf_map_lookup_and_delete_batch(fd, from, &at, s->keys, s->sums, &nr, NULL);
		if (r < 0 && errno != ENOENT)
			return;
		for (uint32_t i = 0; i < nr; i++)
			bpf_waits_sum(&s->waits, &s->keys[i], &s->sums[i]);
		from = &at;
	}
}

void bpf_waits_gather(struct bpf *b)
{
	struct bpf_wait_source *s = b->waits;

	if (!s)
		return;
	bpf_reader_read(&s->paths);
	read_sums(s,
		  bpf_map__fd(b->tables.shared->set & ~SAMPLE_BANK ? s->programs->maps.wait_sums0
								   : s->programs->maps.wait_sums1));
	bpf_waits_gathered(&s->waits);
}

size_t bpf_waits_nr(struct bpf *b)
{
	return b->waits ? bpf_queue_nr(&b->waits->waits.queue) : 0;
}

uint64_t bpf_waits_next(struct bpf *b)
{
	return b->waits ? bpf_queue_next(&b->waits->waits.queue) : UINT64_MAX;
}

int bpf_waits_until(struct bpf *b, uint64_t until_ns, const struct driver_sink *sink)
{
	return b->waits ? bpf_waits_hand(&b->waits->waits, until_ns, sink) : 0;
}

void bpf_waits_settle(struct bpf *b)
{
	if (b->waits)
		bpf_queue_tidy(&b->waits->waits.queue);
}

/* ---- the account ----------------------------------------------------------------------------- */

/* Losses are read first: they may grow between, but are received before. */
static void add_cpu(struct driver_wait_stats *out, const volatile struct wait_counts *c)
{
	out->lost_full += c->lost_ns;
	out->lost_paths += c->lost_paths;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	out->received += c->received_ns;
}

static void stats(const struct driver *d, struct driver_wait_stats *out)
{
	const struct bpf_wait_source *s = ((const struct bpf *)d)->waits;
	const struct wait_counts *counts = s->cpus;

	*out = (struct driver_wait_stats){ .lost_read = s->waits.lost_ns,
					   .lost_paths = s->paths.spill.lost,
					   .keys = s->waits.nr_handed };
	for (size_t i = 0; i < s->nr_cpus; i++)
		add_cpu(out, &counts[i]);
	out->held = out->received - out->lost_full - out->lost_read - s->waits.handed_ns;
}

static const struct driver_wait_ops wait_ops = { .stats = stats };

/* ---- the source ------------------------------------------------------------------------------ */

static int open_maps(struct bpf_wait_source *s)
{
	int r = bpf_map_in(&s->cpus, s->programs->maps.wait_cpus);

	if (r >= 0)
		r = bpf_reader_open(&s->paths, s->programs->maps.wait_paths, on_path, s);
	s->keys = malloc(BATCH * sizeof(*s->keys));
	s->sums = malloc(BATCH * sizeof(*s->sums));
	return r < 0 ? r : s->keys && s->sums ? 0 : -ENOMEM;
}

/* Their counts are nanoseconds. */
static void add_events(struct bpf *b, struct bpf_waits *w)
{
	struct driver *d = &b->base;

	w->event_wait = (uint32_t)d->nr_events;
	w->event_run = (uint32_t)d->nr_events + 1;
	d->events[w->event_wait] =
		(struct driver_event){ .name = "wait", .period = 1, .enabled = 1 };
	d->events[w->event_run] = (struct driver_event){ .name = "run", .period = 1, .enabled = 1 };
	d->nr_timed = BPF_WAIT_EVENTS;
}

int bpf_waits_open(struct bpf *b, const struct driver_config *config)
{
	struct bpf_wait_source *s;
	int r;

	if (!config->waits)
		return 0;
	s = b->waits = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->programs = b->programs.waiting;
	s->nr_cpus = bpf_map__max_entries(s->programs->maps.wait_cpus);
	s->waits.kinds = b->programs.kinds;
	b->programs.kinds = (struct bpf_wait_kinds){ 0 };
	r = open_maps(s);
	if (r >= 0)
		r = perf_sampler_poll_add(&b->sampler, bpf_reader_poll_fd(&s->paths));
	if (r < 0)
		return r;
	bpf_spill(b, &s->paths);
	add_events(b, &s->waits);
	b->base.waits = &wait_ops;
	return 0;
}

void bpf_waits_close(struct bpf *b)
{
	struct bpf_wait_source *s = b->waits;

	if (!s)
		return;
	detach(s);
	bpf_reader_close(&s->paths);
	bpf_map_out(s->cpus, s->programs->maps.wait_cpus);
	bpf_waits_release(&s->waits);
	free(s->keys);
	free(s->sums);
	free(s);
	b->waits = NULL;
}
