/* SPDX-License-Identifier: BSD-2-Clause */
/* The source "perf": the sampler, with samples in its rings. */
#include <errno.h>
#include <stdlib.h>

#include "perf_internal.h"

/*
 * A record gets its time before it can be seen in its ring; the time between is microseconds, but
 * for a virtual CPU that its host takes away just then. Waiting costs nothing but delay.
 */
#define PERF_SLACK_NS 10000000u

static struct perf_sampler *sampler_of(struct driver *d)
{
	return &((struct perf *)d)->sampler;
}

static int perf_start(struct driver *d, struct base_err *err)
{
	return perf_sampler_start(sampler_of(d), err);
}

static void perf_stop(struct driver *d)
{
	perf_sampler_stop(sampler_of(d));
}

/*
 * A full drain of a running source leaves younger records in the rings, unread: of one CPU they
 * would overtake those that another is just writing.
 */
static int perf_drain(struct driver *d, bool all, const struct driver_sink *sink,
		      struct base_err *err)
{
	struct perf_sampler *s = sampler_of(d);
	uint64_t now = base_now_ns();
	int r, handed;

	perf_sampler_turn(s, now);
	r = perf_sampler_read(s, all && s->running ? now : UINT64_MAX, true);
	handed = perf_sampler_hand_on(s, all ? UINT64_MAX : now - PERF_SLACK_NS, sink);
	/* A flush has read less than the counters tell of: the next drain compares. */
	perf_sampler_account(s, r >= 0 && !(all && s->running));
	if (handed < 0)
		return handed;
	return r < 0 ? base_fail_errno(err, r, "cannot read the rings") : 0;
}

static int perf_poll_fd(const struct driver *d)
{
	return perf_sampler_poll_fd(&((const struct perf *)d)->sampler);
}

static const char *perf_thread_name(const struct driver *d, uint32_t thread)
{
	return perf_names_text(&((const struct perf *)d)->sampler.names, thread);
}

static void forget_threads(struct driver *d)
{
	perf_names_forget(&sampler_of(d)->names);
}

static void perf_close(struct driver *d)
{
	perf_sampler_close(sampler_of(d));
	free(d);
}

static void perf_busy(struct driver *d, bool busy)
{
	perf_sampler_busy(&((struct perf *)d)->sampler, busy);
}

const struct driver_ops perf_ops = {
	.start = perf_start,
	.drain = perf_drain,
	.poll_fd = perf_poll_fd,
	.busy = perf_busy,
	.thread_name = perf_thread_name,
	.threads_forget = forget_threads,
	.stop = perf_stop,
	.close = perf_close,
};

static int refuse_tick(const struct event_spec *specs, int nr, struct base_err *err)
{
	for (int i = 0; i < nr; i++) {
		if (!specs[i].tick)
			continue;
		base_fail(err, -DCPI_EUSAGE, "cannot sample '%s' with the source 'perf'",
			  specs[i].name);
		base_hint(err, "only the source 'bpf' can; cpu-clock is the nearest to it here");
		return -DCPI_EUSAGE;
	}
	return 0;
}

int perf_open(const struct driver_config *config, struct driver **out, struct base_err *err)
{
	struct event_spec specs[DRIVER_NR_EVENTS];
	const char *why;
	struct perf *p;
	int nr = perf_specs_choose(config, specs, &why, err), r;

	if (nr < 0)
		return nr;
	r = refuse_tick(specs, nr, err);
	if (r < 0)
		return r;
	p = calloc(1, sizeof(*p));
	if (!p)
		return base_fail_errno(err, -ENOMEM, "cannot sample");
	p->base.ops = &perf_ops;
	p->base.utc = -1;
	r = perf_sampler_open(&p->sampler, &p->base, config, specs, (size_t)nr, NULL, why, err);
	if (r < 0) {
		perf_close(&p->base);
		return r;
	}
	*out = &p->base;
	return 0;
}
