/* SPDX-License-Identifier: BSD-2-Clause */
/* Execution counts of a procedure's blocks from its flow graph, its samples, and known costs. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "estimate.h"

static bool begins_with(const char *text, const char *name)
{
	size_t len = strlen(name);

	return strncmp(text, name, len) == 0 && (!text[len] || strchr(":/,#", text[len]));
}

bool estimate_event_is(const char *event, const char *name)
{
	const char *term = strchr(event, '/');

	return begins_with(event, name) || (term && begins_with(term + 1, name));
}

int estimate_model(const char *event)
{
	static const struct {
		const char *name;
		enum freq_model model;
	} known[] = {
		{ "cycles", FREQ_TIME },
		{ "cpu-cycles", FREQ_TIME },
		{ "ref-cycles", FREQ_TIME },
		{ "cpu-clock", FREQ_TIME },
		{ "task-clock", FREQ_TIME },
		{ "thread-clock", FREQ_TIME },
		{ "tick", FREQ_TIME },
		{ "instructions", FREQ_INSTRUCTIONS },
		{ "retires", FREQ_INSTRUCTIONS },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (estimate_event_is(event, known[i].name))
			return known[i].model;
	}
	return -ENOENT;
}

bool estimate_is_cycles(const char *event)
{
	return strstr(event, "cycles") != NULL;
}

bool estimate_is_measured(const char *event)
{
	return strcmp(event, "wait") == 0 || strcmp(event, "run") == 0;
}

bool estimate_is_ns(const char *event)
{
	return estimate_is_measured(event) ||
	       (estimate_model(event) == FREQ_TIME && !estimate_is_cycles(event));
}

double estimate_samples_of(const struct flow *f, uint32_t block, const double *by_insn)
{
	const struct flow_block *b = &f->blocks[block];
	double sum = 0;

	for (uint32_t i = 0; i < b->nr_insns; i++)
		sum += by_insn[b->insn + i];
	return sum;
}

/* ---- frequencies ----------------------------------------------------------------------------- */

static int model_of(const struct estimate_input *in)
{
	return in->retired ? FREQ_INSTRUCTIONS : estimate_model(in->event);
}

static const struct profdb_cost *kept_cost(const struct estimate_input *in, uint32_t block)
{
	const struct flow_block *b = &in->flow->blocks[block];
	const struct profdb_cost *cost;
	uint64_t off;

	if (!in->costs || image_off(in->img, b->vaddr, &off) < 0)
		return NULL;
	cost = profdb_costs_at(in->costs, off, b->end - b->vaddr);
	return cost && cost->samples >= ESTIMATE_MIN_SAMPLES && cost->units ? cost : NULL;
}

/*
 * The units of the event that an instruction takes: the mean of the blocks with measured costs,
 * weighted by their executions in the measured run; 1 if there are none.
 */
static double units_per_insn(const struct estimate_input *in)
{
	double units = 0, insns = 0;

	for (uint32_t i = 0; i < in->flow->nr_blocks; i++) {
		const struct profdb_cost *c = kept_cost(in, i);

		if (c) {
			units += (double)c->units;
			insns += (double)c->executions * in->flow->blocks[i].nr_insns;
		}
	}
	return insns > 0 ? units / insns : 1;
}

/* Costs are in samples, as freq_solve expects. */
static void set_blocks(const struct estimate_input *in, struct freq_block *blocks,
		       struct estimate *out)
{
	double per_insn = units_per_insn(in), sum = 0, measured = 0;

	for (uint32_t i = 0; i < in->flow->nr_blocks; i++) {
		const struct profdb_cost *c = kept_cost(in, i);
		double units = per_insn * in->flow->blocks[i].nr_insns;

		if (c)
			units = (double)c->units / (double)c->executions;
		blocks[i].samples = estimate_samples_of(in->flow, i, in->by_insn);
		blocks[i].cost = units / in->period;
		blocks[i].insns = in->flow->blocks[i].nr_insns;
		blocks[i].measured = c != NULL;
		out->units[i] = blocks[i].samples * in->period;
		out->measured[i] = c != NULL;
		sum += blocks[i].samples;
		measured += c ? blocks[i].samples : 0;
	}
	out->absolute = model_of(in) == FREQ_INSTRUCTIONS || (sum > 0 && measured >= sum / 2);
}

/* Scales the traces' counts so that, over the samples of all blocks, they agree with those of
 * the samples. */
static int scale_traces(const struct freq_block *blocks, uint32_t nr, struct freq_result *out,
			uint32_t nr_edges)
{
	double samples = 0, cost = 0;

	for (uint32_t i = 0; i < nr; i++) {
		samples += blocks[i].samples;
		cost += out->block[i] * blocks[i].cost;
	}
	if (!(samples > 0) || !(cost > 0))
		return -ENOENT;
	for (uint32_t i = 0; i < nr; i++)
		out->block[i] *= samples / cost;
	for (uint32_t i = 0; i < nr_edges; i++)
		out->edge[i] *= samples / cost;
	return 0;
}

/* Traces replace counts from samples of time; measured costs and samples of instructions are
 * better than traces. */
static int take_traces(const struct estimate_input *in, const struct freq_block *blocks,
		       struct estimate *out)
{
	uint32_t nr_blocks = in->flow->nr_blocks, nr_edges = in->flow->nr_edges;
	struct freq_result *f = &out->freq;
	int r;

	f->block = calloc((size_t)nr_blocks + 1, sizeof(*f->block));
	f->edge = calloc((size_t)nr_edges + 1, sizeof(*f->edge));
	f->confidence = calloc((size_t)nr_blocks + 1, sizeof(*f->confidence));
	r = f->block && f->edge && f->confidence ? paths_flow(in->paths, in->flow, f) : -ENOMEM;
	if (r >= 0)
		r = scale_traces(blocks, nr_blocks, f, nr_edges);
	if (r >= 0)
		out->traces = paths_traces(in->paths);
	else
		freq_release(f);
	return r;
}

static int solve(const struct estimate_input *in, struct freq_block *blocks,
		 struct freq_edge *edges, struct estimate *out, struct base_err *err)
{
	const struct flow *f = in->flow;

	for (uint32_t i = 0; i < f->nr_edges; i++)
		edges[i] = (struct freq_edge){ f->edges[i].from, f->edges[i].to };
	set_blocks(in, blocks, out);
	if (in->paths && !out->absolute) {
		int r = take_traces(in, blocks, out);

		if (r != -ENOENT)
			return r;
	}
	return freq_solve((enum freq_model)model_of(in), blocks, f->nr_blocks, edges, f->nr_edges,
			  &out->freq, err);
}

_Static_assert(FREQ_OUTSIDE == FLOW_OUTSIDE, "edges are handed on as they are");

int estimate_frequencies(const struct estimate_input *in, struct estimate *out,
			 struct base_err *err)
{
	struct freq_block *blocks = calloc((size_t)in->flow->nr_blocks + 1, sizeof(*blocks));
	struct freq_edge *edges = calloc((size_t)in->flow->nr_edges + 1, sizeof(*edges));
	int r = -ENOMEM;

	memset(out, 0, sizeof(*out));
	out->nr_blocks = in->flow->nr_blocks;
	out->units = calloc((size_t)out->nr_blocks + 1, sizeof(*out->units));
	out->measured = calloc((size_t)out->nr_blocks + 1, sizeof(*out->measured));
	if (!blocks || !edges || !out->units || !out->measured)
		base_fail_errno(err, r, "cannot estimate frequencies");
	else if (model_of(in) < 0 || !(in->period > 0))
		r = base_fail(err, -EINVAL, "samples of '%s' do not tell frequencies", in->event);
	else
		r = solve(in, blocks, edges, out, err);
	free(blocks);
	free(edges);
	return r;
}

void estimate_release(struct estimate *e)
{
	freq_release(&e->freq);
	free(e->units);
	free(e->measured);
	memset(e, 0, sizeof(*e));
}

void estimate_text(const char *event, bool absolute, uint64_t traces, char *buf, size_t buf_len)
{
	if (traces)
		snprintf(buf, buf_len,
			 "in proportion to one another within a procedure, from %" PRIu64
			 " traces of the image; how procedures compare, from samples of %s",
			 traces, event);
	else if (estimate_model(event) == FREQ_INSTRUCTIONS)
		snprintf(buf, buf_len, "executions, estimated from samples of %s", event);
	else if (absolute && estimate_model(event) < 0)
		snprintf(buf, buf_len,
			 "executions, measured: retired instruction samples of %s, times their "
			 "period",
			 event);
	else if (absolute)
		snprintf(buf, buf_len,
			 "executions, estimated from samples of %s and measured costs of blocks",
			 event);
	else
		snprintf(buf, buf_len,
			 "in proportion to one another, estimated from samples of %s: executions "
			 "if an average instruction took one %s",
			 event, estimate_is_cycles(event) ? "cycle" : "nanosecond");
}

const char *estimate_remedy(uint64_t traces)
{
	return traces ? "more instruction traces (dcpid -vwindows, for longer or with a smaller N) "
			"tell more"
		      : "instruction traces (dcpid -vwindows) or samples of instructions (dcpid "
			"-event) tell more";
}
