/* SPDX-License-Identifier: BSD-2-Clause */
/* Stalls summed up by cause, as text and JSON. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "choose.h"
#include "progress.h"
#include "stall_report.h"

static int choose_event(struct stall_report *x, struct base_err *err)
{
	size_t event = analysis_event_default(x->a);

	if (event < x->a->nr_events && estimate_model(x->a->events[event].name) == FREQ_TIME) {
		x->options.event = event;
		return 0;
	}
	if (event < x->a->nr_events)
		return base_fail(err, -ENOENT, "samples of '%s' do not tell time",
				 x->a->events[event].name);
	return base_fail(err, -ENOENT, "there are no samples");
}

static int add_images(struct stall_report *x, struct base_err *err)
{
	int r = 0;

	for (size_t i = 0; i < x->nr_images && r >= 0; i++) {
		progress_show("estimating", i, x->nr_images);
		r = stalls_add_image(&x->stalls, x->a, x->images[i], &x->options, err);
	}
	progress_show("estimating", 1, 1);
	stalls_finish(&x->stalls, &x->options);
	return r;
}

int stall_report_make(struct stall_report *x, const struct select *sel, const struct estimation *e,
		      int nr, char **what, struct base_err *err)
{
	int r = estimation_check(e, &x->options.least, &x->options.outside, err);

	if (r >= 0)
		r = report_open(sel, &x->a, err);
	if (r >= 0)
		r = choose_images(x->a, nr, what, &x->images, &x->nr_images, err);
	if (r >= 0)
		r = choose_event(x, err);
	return r < 0 ? r : add_images(x, err);
}

void stall_report_release(struct stall_report *x)
{
	stalls_release(&x->stalls);
	free(x->images);
	analysis_close(x->a);
	memset(x, 0, sizeof(*x));
}

double stall_report_percent(const struct stall_report *x, double samples)
{
	return x->stalls.samples > 0 ? 100 * samples / x->stalls.samples : 0;
}

static const char *event_name(const struct stall_report *x)
{
	return x->a->events[x->options.event].name;
}

const char *stall_report_unit(const struct stall_report *x, bool absolute)
{
	return !absolute ? "x" : estimate_is_cycles(event_name(x)) ? "cy" : "ns";
}

/* Say what the counts are: executions of some procedures, or proportions within them only. */
static void counts_text(const struct stall_report *x, bool absolute, uint64_t traces, char *buf,
			size_t buf_len)
{
	int event = estimate_event(x->a, NULL);

	estimate_text(event < 0 ? "no event" : x->a->events[event].name, absolute, traces, buf,
		      buf_len);
}

static void print_counts(const struct stall_report *x, bool absolute, uint64_t traces, size_t nr,
			 FILE *to)
{
	char text[200];

	if (!nr)
		return;
	counts_text(x, absolute, traces, text, sizeof(text));
	fprintf(to, "counts     %s (%zu procedure%s, unit %s)\n", text, nr, nr == 1 ? "" : "s",
		stall_report_unit(x, absolute));
}

static void print_limits(const struct stall_report *x, FILE *to)
{
	const char *before = "causes     limited by samples of ";

	for (size_t i = 0; i < x->a->nr_events; i++) {
		if (!x->stalls.limited[i])
			continue;
		fprintf(to, "%s%s", before, x->a->events[i].name);
		before = ", ";
	}
	if (*before == ',')
		fputc('\n', to);
}

/* The part that is not tallied matters more than what is, and most of it has one reason. */
static void print_covered(const struct stall_report *x, FILE *to)
{
	const struct stalls *s = &x->stalls;
	double tallied = stall_report_percent(x, s->total.samples);

	if (tallied >= 50 || !s->nr_parts)
		return;
	fprintf(to, "covered    %.2f %% of the samples; %.2f %% %s%s\n", tallied,
		stall_report_percent(x, s->parts[0].samples),
		*s->parts[0].what == '(' ? "" : "are ", s->parts[0].what);
	if (s->unsure > s->samples / 4)
		fprintf(to, "           %s; -conf_low takes any\n",
			estimate_remedy(s->nr_traced ? s->traces : 0));
}

void stall_report_head(const struct stall_report *x, FILE *to)
{
	print_covered(x, to);
	report_head(x->a, to);
	report_event(&x->a->events[x->options.event], (uint64_t)x->stalls.samples, to);
	fprintf(to, "tallied    blocks whose count has %s confidence%s\n",
		freq_confidence_text(x->options.least),
		x->options.least == FREQ_LOW   ? " or better"
		: x->options.least < FREQ_HIGH ? " or better (-conf_low: any)"
					       : " (-conf_low: any)");
	print_counts(x, true, 0, x->stalls.nr_absolute, to);
	print_counts(x, false, x->stalls.traces, x->stalls.nr_traced, to);
	print_counts(x, false, 0, x->stalls.nr_relative, to);
	print_limits(x, to);
}

static void json_counts(const struct stall_report *x, bool absolute, uint64_t traces, size_t nr,
			struct json_object *list)
{
	struct json_object *o;
	char text[200];

	if (!nr)
		return;
	o = json_object_new_object();
	counts_text(x, absolute, traces, text, sizeof(text));
	json_object_object_add(o, "unit", json_object_new_string(stall_report_unit(x, absolute)));
	json_object_object_add(o, "text", json_object_new_string(text));
	json_object_object_add(o, "procedures", json_object_new_uint64(nr));
	if (traces)
		json_object_object_add(o, "windows", json_object_new_uint64(traces));
	json_object_array_add(list, o);
}

struct json_object *stall_report_json(const struct stall_report *x, const char *schema)
{
	uint64_t *sums = calloc(x->a->nr_events + 1, sizeof(*sums));
	struct json_object *root, *counts = json_object_new_array();
	struct json_object *limits = json_object_new_array();

	for (size_t i = 0; sums && i < x->nr_images; i++)
		for (size_t k = 0; k < x->a->nr_events; k++)
			sums[k] += x->images[i]->count[k];
	root = report_json(schema, x->a, sums);
	free(sums);
	json_counts(x, true, 0, x->stalls.nr_absolute, counts);
	json_counts(x, false, x->stalls.traces, x->stalls.nr_traced, counts);
	json_counts(x, false, 0, x->stalls.nr_relative, counts);
	for (size_t i = 0; i < x->a->nr_events; i++)
		if (x->stalls.limited[i])
			json_object_array_add(limits, json_object_new_string(x->a->events[i].name));
	json_object_object_add(root, "limited_by", limits);
	json_object_object_add(root, "event", json_object_new_string(event_name(x)));
	json_object_object_add(root, "counts", counts);
	json_object_object_add(root, "confidence",
			       json_object_new_string(freq_confidence_text(x->options.least)));
	json_object_object_add(root, "samples", report_json_number(x->stalls.samples));
	json_object_object_add(root, "tallied", report_json_number(x->stalls.total.samples));
	return root;
}
