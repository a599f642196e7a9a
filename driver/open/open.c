/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening of a source: the one that is named, or the best that works here. */
#include <string.h>

#include "bpf_source.h"
#include "inprocess_source.h"
#include "perf.h"
#include "replay_source.h"

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
 * Open the scheduler's tick, when no event was asked for and the machine cannot count cycles: the
 * tick comes anyway (docs/decisions/default-event.md).
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

/* Is there something asked for that only bpf has? */
static bool wants_behind(const struct driver_config *config)
{
	return config->trace_every || config->callpath_every;
}

static int refuse_behind(const struct driver_config *config, const char *source,
			 struct base_err *err)
{
	const char *what = config->trace_every ? "traces" : "call paths";

	base_fail(err, -DCPI_EUNSUPPORTED, "no %s with the source '%s'", what, source);
	base_hint(err, "%s need the source 'bpf', and all processes", what);
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
		return wants_behind(config) ? refuse_behind(config, "perf", err)
					    : perf_open(config, out, err);
	r = open_tick(config, out);
	if (r >= 0)
		return r;
	r = bpf_open(config, out, &why);
	if (r >= 0)
		return r;
	if (r == -DCPI_EUSAGE || wants_behind(config)) {
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

static int open_source(const struct driver_config *config, struct driver **out,
		       struct base_err *err)
{
	*out = NULL;
	if (!config->source)
		return open_default(config, out, err);
	if (!strcmp(config->source, "bpf") && open_tick(config, out) >= 0)
		return 0;
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		if (strcmp(sources[i].name, config->source) != 0)
			continue;
		if (wants_behind(config) && sources[i].open != bpf_open)
			return refuse_behind(config, config->source, err);
		return sources[i].open(config, out, err);
	}
	base_fail(err, -DCPI_EUSAGE, "unknown source of samples '%s'", config->source);
	base_hint(err, "sources are: bpf, perf, replay, inprocess");
	return -DCPI_EUSAGE;
}

/*
 * Traces begin at samples of the first event. At samples of time they say how often code ran; at
 * those of cache misses they would say it of code that misses.
 */
static int check_first_event(const struct driver_config *config, struct base_err *err)
{
	static const char *const of_time[] = { "cycles", "cpu-cycles", "ref-cycles" };
	struct event_spec specs[DRIVER_NR_EVENTS];
	const char *why;
	int r = perf_specs_choose(config, specs, &why, NULL);
	bool fits = r <= 0 || specs[0].tick || specs[0].clock;

	for (size_t i = 0; i < sizeof(of_time) / sizeof(*of_time) && !fits; i++)
		fits = strcspn(specs[0].name, ":") == strlen(of_time[i]) &&
		       strncmp(specs[0].name, of_time[i], strlen(of_time[i])) == 0;
	return fits ? 0
		    : base_fail(err, -DCPI_EUNSUPPORTED, "the first event, '%s', is not of time",
				specs[0].name);
}

static void describe_no_traces(struct driver *d, const struct base_err *why)
{
	size_t len = strlen(d->refused), all = strlen(d->describe);

	/* The reason may be that for which there is another source. */
	if (strstr(d->refused, why->text))
		return;
	snprintf(d->refused + len, sizeof(d->refused) - len, " (no traces: %.180s)", why->text);
	snprintf(d->describe + all, sizeof(d->describe) - all, "%s", d->refused + len);
}

static int open_with_traces(const struct driver_config *config, struct driver **out,
			    struct base_err *err)
{
	int r = driver_traces_possible(NULL, err);

	if (r >= 0)
		r = check_first_event(config, err);
	return r < 0 ? r : open_source(config, out, err);
}

int driver_open(const struct driver_config *config, struct driver **out, struct base_err *err)
{
	struct driver_config without = *config;
	struct base_err why = { 0 };
	int r;

	*out = NULL;
	if (!config->trace_every || !config->trace_optional)
		return open_source(config, out, err);
	if (open_with_traces(config, out, &why) >= 0)
		return 0;
	without.trace_every = 0;
	r = open_source(&without, out, err);
	if (r >= 0)
		describe_no_traces(*out, &why);
	return r;
}
