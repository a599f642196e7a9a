/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "perf_internal.h"

static const struct {
	const char *name;
	int (*open)(const struct driver_config *config, struct driver **out, struct base_err *err);
} sources[] = {
	{ "bpf", bpf_open },
	{ "perf", perf_open },
	{ "replay", replay_open },
	{ "inprocess", inprocess_open },
};

/* Put what was refused behind the description, which the source may write again with it. */
static void describe_refused(struct driver *d)
{
	size_t len = strlen(d->describe);

	snprintf(d->describe + len, sizeof(d->describe) - len, "%s", d->refused);
}

/*
 * Nobody wished for anything, and there is no hardware to count cycles: the scheduler's tick comes
 * anyway (docs/decisions/default-event.md).
 */
static int open_tick(const struct driver_config *config, struct driver **out)
{
	const char *const tick = "tick", *why = "";
	struct event_spec specs[DRIVER_NR_EVENTS];
	struct driver_config own = *config;
	int r;

	if (config->nr_slots || config->frequency)
		return -DCPI_EUNSUPPORTED;
	r = perf_specs_choose(config, specs, &why, NULL);
	if (r < 0 || !why[0])
		return -DCPI_EUNSUPPORTED;
	own.slots = &tick;
	own.nr_slots = 1;
	r = bpf_open(&own, out, NULL);
	if (r < 0)
		return r;
	snprintf((*out)->refused, sizeof((*out)->refused), "%s", why);
	describe_refused(*out);
	return r;
}

/* The one usage that perf refuses and bpf does not. */
static bool wants_tick(const struct driver_config *config)
{
	struct event_spec specs[DRIVER_NR_EVENTS];
	const char *why;
	int nr = perf_specs_choose(config, specs, &why, NULL);

	for (int i = 0; i < nr; i++) {
		if (specs[i].tick)
			return true;
	}
	return false;
}

static int refuse_windows(const char *source, struct base_err *err)
{
	base_fail(err, -DCPI_EUNSUPPORTED, "no windows with the source '%s'", source);
	base_hint(err, "windows need the source 'bpf', and all processes");
	return -DCPI_EUNSUPPORTED;
}

/* The best source; where that is refused, the next, which says why. */
static int open_default(const struct driver_config *config, struct driver **out,
			struct base_err *err)
{
	struct base_err why = { 0 }, other = { 0 };
	struct driver *d;
	int r;

	if (config->pid > 0)
		return config->window_every ? refuse_windows("perf", err)
					    : perf_open(config, out, err);
	r = open_tick(config, out);
	if (r >= 0)
		return r;
	r = bpf_open(config, out, &why);
	if (r >= 0)
		return r;
	if (r == -DCPI_EUSAGE || config->window_every) {
		if (err && !err->code)
			*err = why;
		return r;
	}
	r = perf_open(config, out, err ? &other : NULL);
	if (r < 0) {
		if (r == -DCPI_EUSAGE && wants_tick(config)) {
			other = why;
			r = why.code;
		}
		if (err && !err->code)
			*err = other;
		return r;
	}
	d = *out;
	snprintf(d->refused, sizeof(d->refused), " (bpf refused: %.150s%s%.80s)", why.text,
		 why.hint[0] ? "; " : "", why.hint);
	describe_refused(d);
	return r;
}

int driver_open(const struct driver_config *config, struct driver **out, struct base_err *err)
{
	*out = NULL;
	if (!config->source)
		return open_default(config, out, err);
	if (!strcmp(config->source, "bpf") && open_tick(config, out) >= 0)
		return 0;
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		if (strcmp(sources[i].name, config->source) != 0)
			continue;
		if (config->window_every && sources[i].open != bpf_open)
			return refuse_windows(config->source, err);
		return sources[i].open(config, out, err);
	}
	base_fail(err, -DCPI_EUSAGE, "unknown source of samples '%s'", config->source);
	base_hint(err, "sources are: bpf, perf, replay, inprocess");
	return -DCPI_EUSAGE;
}

int driver_start(struct driver *d, struct base_err *err)
{
	return d->ops->start(d, err);
}

int driver_drain(struct driver *d, bool all, const struct driver_sink *sink, struct base_err *err)
{
	return d->ops->drain(d, all, sink, err);
}

int driver_look(struct driver *d)
{
	return d->ops->look ? d->ops->look(d) : -DCPI_EUNSUPPORTED;
}

int driver_wake_at_exec(struct driver *d)
{
	return d->ops->wake_at_exec ? d->ops->wake_at_exec(d) : -DCPI_EUNSUPPORTED;
}

int driver_poll_fd(const struct driver *d)
{
	return d->ops->poll_fd(d);
}

static bool is_valid(const struct driver_client *c)
{
	bool good = c->words % sizeof(uint32_t) == 0 && c->cursor % sizeof(uint64_t) == 0 &&
		    (!c->words_ino || c->words_off % 4096 == 0);

	for (size_t i = 0; i < c->nr_ranges && good; i++)
		good = c->ranges[i].kind == DRIVER_RANGE_SINGLE ||
		       (c->ranges[i].kind == DRIVER_RANGE_WORDS && c->words && c->nr_words &&
			!(c->nr_words & (c->nr_words - 1)));
	return good;
}

int driver_client_set(struct driver *d, int32_t pid, const struct driver_client *client)
{
	if (client && client->nr_ranges > DRIVER_NR_RANGES)
		return -DCPI_ELIMIT;
	if (pid <= 0 || (client && !is_valid(client)))
		return -EINVAL;
	return d->ops->client_set ? d->ops->client_set(d, pid, client) : 0;
}

void driver_stop(struct driver *d)
{
	d->ops->stop(d);
}

void driver_close(struct driver *d)
{
	if (d)
		d->ops->close(d);
}

size_t driver_nr_events(const struct driver *d)
{
	return d->nr_events;
}

const struct driver_event *driver_event_get(const struct driver *d, size_t index)
{
	return index < d->nr_events ? &d->events[index] : NULL;
}

void driver_stats_get(const struct driver *d, struct driver_stats *out)
{
	*out = d->stats;
}

const char *driver_describe(const struct driver *d)
{
	return d->describe;
}

bool driver_is_recorded(const struct driver *d)
{
	return d->utc >= 0;
}

int64_t driver_recorded_utc(const struct driver *d)
{
	return d->utc;
}

const char *driver_agent_env(const struct driver *d)
{
	return d->agent_env;
}
