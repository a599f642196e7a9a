/* SPDX-License-Identifier: BSD-2-Clause */
/* Execution counts of a procedure's blocks from its flow graph, its samples, and known costs: the
 * frequencies and their confidence that fit samples and flow equations best. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "circulation.h"
#include "estimate.h"
#include "freq.h"

/* ---- the solution of all flow equations ------------------------------------------------------ */

/* The squared relative error of samples / cost beside statistical noise, by model and cost. */
#define VARIANCE_TIME	      1.0
#define VARIANCE_MEASURED     (0.1 * 0.1)
#define VARIANCE_INSTRUCTIONS (0.02 * 0.02)

/* Weights depend on the answer, and a curve's chords are best near the answer, so the solution
 * is iterated. With time as the model, answers oscillate: each is averaged with the one before
 * until no more than this part moves. */
#define ROUNDS_TIME 5
#define KEPT_TIME   0.5
#define STILL_TIME  0.03
static const double chord_steps[] = { 1.6, 1.15, 1.04, 1.01 };
#define ROUNDS_INSTRUCTIONS (sizeof(chord_steps) / sizeof(*chord_steps))
#define CHORDS		    12

/* Some seconds for a procedure of a million blocks. */
#define MAX_WORK UINT64_C(2000000000)

/* The scale of the network's integers: the sum of all frequencies, and the sums of slopes along
 * any path. */
#define FLOW_UNITS  0x1p50
#define SLOPE_UNITS 0x1p59
/* Slopes are limited to this range: the steepest would leave no digits to the others. Blocks a
 * billion times less important may be inexact. */
#define SLOPE_RANGE 0x1p34

/* The network: node 0 is outside; a block is a bundle of arcs between two nodes, one for each
 * slope of its cost function. */
struct network {
	enum freq_model model;
	const struct freq_block *blocks;
	const struct freq_edge *edges;
	uint32_t nr_blocks, nr_edges;
	double unit;		      /* executions in a unit of flow */
	struct circulation_arc *arcs; /* arcs of the edges, then of the blocks */
	double *slope;		      /* indexed by arc */
	uint32_t *block;	      /* indexed by arc */
	size_t nr_arcs;
};

static uint32_t before(uint32_t block)
{
	return block == FREQ_OUTSIDE ? 0 : 1 + 2 * block;
}

static uint32_t behind(uint32_t block)
{
	return block == FREQ_OUTSIDE ? 0 : 2 + 2 * block;
}

static double wanted(const struct freq_block *b)
{
	return b->samples / b->cost;
}

static void add_arc(struct network *n, uint32_t from, uint32_t to, double space, double slope)
{
	n->slope[n->nr_arcs] = slope;
	n->arcs[n->nr_arcs++] = (struct circulation_arc){
		.from = from,
		.to = to,
		.cap = isinf(space) ? CIRCULATION_NO_LIMIT : llround(space / n->unit),
	};
}

static void add_slope(struct network *n, uint32_t block, double space, double slope)
{
	n->block[n->nr_arcs] = block;
	add_arc(n, before(block), behind(block), space, slope);
}

/*
 * The cost of a deviation of F from samples / cost is the curve x - ln(x) of their ratio x,
 * approximated by chords with a limited slope. It is measured in standard deviations of samples /
 * cost, which grow with the last F and shrink with the block's number of instructions, as their
 * times even out.
 *
 * The chords join powers of two, halves between these, and eighths around the last F. Where chords
 * are long, answers lie at their corners.
 */
#define CHORD_PARTS   8
#define CHORD_HALF    (CHORD_PARTS / 2)
#define CHORDS_NEAR   3
#define SLOPES_TIME   (2 * CHORD_PARTS + 2)
#define STEEPEST_DOWN (-1)
#define STEEPEST_UP   0.5

static double chord_slope(double from, double to)
{
	return fmax(STEEPEST_DOWN, fmin(STEEPEST_UP, 1 - log(to / from) / (to - from)));
}

static void add_chords(struct network *n, uint32_t block, double last, double steepness)
{
	double want = wanted(&n->blocks[block]), from = 0.5;
	double near = CHORD_PARTS * log2(fmax(last, n->unit) / want);

	near = fmax(-CHORD_PARTS, fmin(CHORD_PARTS, near));
	add_slope(n, block, from * want, steepness * STEEPEST_DOWN);
	for (int i = 1 - CHORD_PARTS; i <= CHORD_PARTS; i++) {
		double to = exp2((double)i / CHORD_PARTS);

		if (i % CHORD_HALF && fabs(i - near) > CHORDS_NEAR)
			continue;
		add_slope(n, block, (to - from) * want, steepness * chord_slope(from, to));
		from = to;
	}
}

static void add_deviation(struct network *n, uint32_t block, double last)
{
	const struct freq_block *b = &n->blocks[block];
	double variance = b->measured ? VARIANCE_MEASURED : VARIANCE_TIME;
	double chance = (last + 1 / b->cost) / b->cost;
	double steepness = b->insns / sqrt(variance * last * last + chance);

	if (b->samples > 0)
		add_chords(n, block, last, steepness);
	add_slope(n, block, INFINITY, steepness * STEEPEST_UP);
}

/* -log of the likelihood of the block's samples if @rate is right. */
static double surprise(const struct freq_block *b, double rate)
{
	return b->cost * rate - b->samples * log(rate);
}

/* The weight of a block's samples: their systematic error does not shrink with their number. */
static double weight_of(const struct freq_block *b)
{
	return 1 / (1 + VARIANCE_INSTRUCTIONS * b->samples);
}

static void add_chord(struct network *n, uint32_t block, double from, double to, double space)
{
	const struct freq_block *b = &n->blocks[block];
	double slope = (surprise(b, to) - surprise(b, from)) / (to - from);

	add_slope(n, block, space, weight_of(b) * slope);
}

/* Adds the arcs of a block: the curve of surprise as chords around the last answer. */
static void add_surprise(struct network *n, uint32_t block, double last, double step)
{
	const struct freq_block *b = &n->blocks[block];
	double want = wanted(b), from = 0;
	double to = fmax(last, want * 0x1p-20) / pow(step, CHORDS / 2.0);

	if (!(want > 0)) {
		add_slope(n, block, INFINITY, b->cost);
		return;
	}
	for (int i = 0; i < CHORDS; i++) {
		add_chord(n, block, fmax(from, to / 8), to, to - from);
		from = to;
		to *= step;
	}
	if (from < want) {
		add_chord(n, block, from, want, want - from);
		from = want;
	}
	add_chord(n, block, from, 8 * from, INFINITY);
}

static void add_slopes(struct network *n, const double *last, unsigned int round)
{
	n->nr_arcs = n->nr_edges;
	for (uint32_t i = 0; i < n->nr_blocks; i++) {
		if (n->model == FREQ_TIME)
			add_deviation(n, i, last[i]);
		else
			add_surprise(n, i, last[i], chord_steps[round]);
	}
}

static void round_off_slopes(struct network *n)
{
	double least = INFINITY, most = 0, units = SLOPE_UNITS / (2.0 * n->nr_blocks + 2);

	/* The last slope of each block is its steepest upwards. */
	for (size_t i = n->nr_edges; i < n->nr_arcs; i++) {
		most = fmax(most, fabs(n->slope[i]));
		if (i + 1 == n->nr_arcs || n->block[i + 1] != n->block[i])
			least = fmin(least, n->slope[i]);
	}
	most = fmin(most, least * SLOPE_RANGE);
	for (size_t i = n->nr_edges; i < n->nr_arcs; i++)
		n->arcs[i].cost = llround(fmax(-1, fmin(1, n->slope[i] / most)) * units);
}

/* Averages the flow into the answer, of which the part @kept stays. Returns the change, in
 * samples. */
static double take_flow(const struct network *n, double kept, struct freq_result *out)
{
	double moved = 0;

	for (uint32_t i = 0; i < n->nr_edges; i++)
		out->edge[i] = kept * out->edge[i] + (1 - kept) * (double)n->arcs[i].flow * n->unit;
	for (size_t i = n->nr_edges; i < n->nr_arcs;) {
		uint32_t block = n->block[i];
		double was = out->block[block];
		int64_t flow = 0;

		for (; i < n->nr_arcs && n->block[i] == block; i++)
			flow += n->arcs[i].flow;
		out->block[block] = kept * was + (1 - kept) * (double)flow * n->unit;
		moved += fabs(out->block[block] - was) * n->blocks[block].cost;
	}
	return moved;
}

static int solve_rounds(struct network *n, struct freq_result *out, struct base_err *err)
{
	bool time = n->model == FREQ_TIME;
	unsigned int rounds = time ? ROUNDS_TIME : ROUNDS_INSTRUCTIONS;
	double samples = 0;

	for (uint32_t i = 0; i < n->nr_blocks; i++) {
		out->block[i] = wanted(&n->blocks[i]);
		samples += n->blocks[i].samples;
	}
	for (uint32_t i = 0; i < n->nr_edges; i++)
		add_arc(n, behind(n->edges[i].from), before(n->edges[i].to), INFINITY, 0);
	for (unsigned int round = 0; round < rounds; round++) {
		double moved;
		int r;

		add_slopes(n, out->block, round);
		round_off_slopes(n);
		r = circulation_solve(2 * n->nr_blocks + 1, n->arcs, n->nr_arcs, MAX_WORK, err);
		if (r < 0)
			return r;
		out->unfinished |= r > 0;
		/* The first answers depend on samples alone and stay out of the mean. */
		moved = take_flow(n, time && round > 1 ? KEPT_TIME : 0, out);
		if (time && moved <= STILL_TIME * samples)
			break;
	}
	return 0;
}

static int network_solve(struct network *n, struct freq_result *out, struct base_err *err)
{
	size_t per_block = n->model == FREQ_TIME ? SLOPES_TIME : CHORDS + 2;
	size_t max_arcs = n->nr_edges + per_block * n->nr_blocks;
	int r = -ENOMEM;

	n->arcs = calloc(max_arcs, sizeof(*n->arcs));
	n->slope = calloc(max_arcs, sizeof(*n->slope));
	n->block = calloc(max_arcs, sizeof(*n->block));
	if (n->arcs && n->slope && n->block)
		r = solve_rounds(n, out, err);
	free(n->arcs);
	free(n->slope);
	free(n->block);
	return r;
}

/* ---- confidence ------------------------------------------------------------------------------ */

/* |ln(F * cost / samples)|; frequencies are scaled to the samples of the whole graph. */
static double moved(const struct freq_block *b, double rate)
{
	return b->samples > 0 ? fabs(log(rate * b->cost / b->samples)) : INFINITY;
}

/* The weighted mean deviation. A block that the flow equations set to 0 counts as off by a
 * factor of a thousand. */
static double mean_moved(const struct freq_block *blocks, uint32_t nr_blocks, const double *rate)
{
	double sum = 0, samples = 0;

	for (uint32_t i = 0; i < nr_blocks; i++) {
		if (!(blocks[i].samples > 0))
			continue;
		sum += blocks[i].samples * fmin(moved(&blocks[i], rate[i]), log(1000));
		samples += blocks[i].samples;
	}
	return samples > 0 ? sum / samples : 0;
}

static double share_measured(const struct network *n)
{
	double sum = 0, measured = 0;

	for (uint32_t i = 0; i < n->nr_blocks; i++) {
		sum += n->blocks[i].samples;
		if (n->blocks[i].measured || n->model == FREQ_INSTRUCTIONS)
			measured += n->blocks[i].samples;
	}
	return measured / sum;
}

static void judge(const struct network *n, struct freq_result *out)
{
	bool sure;

	out->disagreement = mean_moved(n->blocks, n->nr_blocks, out->block);
	sure = out->disagreement <= 0.05 && share_measured(n) >= 0.9 && !out->unfinished;
	for (uint32_t i = 0; i < n->nr_blocks; i++) {
		const struct freq_block *b = &n->blocks[i];
		double own = moved(b, out->block[i]);

		out->confidence[i] = FREQ_LOW;
		if (out->disagreement <= 0.5 && own <= log(2) && b->samples >= 25)
			out->confidence[i] = FREQ_MEDIUM;
		if (sure && (b->measured || n->model == FREQ_INSTRUCTIONS) && own <= 0.1 &&
		    b->samples >= 100)
			out->confidence[i] = FREQ_HIGH;
	}
}

/* ---- the interface --------------------------------------------------------------------------- */

static bool is_end(uint32_t block, uint32_t nr_blocks)
{
	return block < nr_blocks || block == FREQ_OUTSIDE;
}

/* Checks the input. *@sum: the sum of samples / cost. */
static int check(const struct network *n, double *sum, struct base_err *err)
{
	*sum = 0;
	for (uint32_t i = 0; i < n->nr_blocks; i++) {
		const struct freq_block *b = &n->blocks[i];

		if (!(b->samples >= 0) || !(b->cost > 0) || !isfinite(b->cost) || !b->insns)
			return base_fail(err, -EINVAL, "block %u has no valid samples or cost", i);
		*sum += wanted(b);
	}
	if (!isfinite(*sum))
		return base_fail(err, -EINVAL, "samples are too many");
	for (uint32_t i = 0; i < n->nr_edges; i++) {
		if (!is_end(n->edges[i].from, n->nr_blocks) ||
		    !is_end(n->edges[i].to, n->nr_blocks))
			return base_fail(err, -EINVAL, "edge %u leads to no block", i);
	}
	return 0;
}

int freq_solve(enum freq_model model, const struct freq_block *blocks, uint32_t nr_blocks,
	       const struct freq_edge *edges, uint32_t nr_edges, struct freq_result *out,
	       struct base_err *err)
{
	struct network n = { .model = model,
			     .blocks = blocks,
			     .edges = edges,
			     .nr_blocks = nr_blocks,
			     .nr_edges = nr_edges };
	double sum;
	int r;

	memset(out, 0, sizeof(*out));
	if (nr_blocks > UINT32_MAX / 4)
		return base_fail(err, -EINVAL, "a graph of %u blocks is too large", nr_blocks);
	r = check(&n, &sum, err);
	if (r < 0)
		return r;
	out->block = calloc((size_t)nr_blocks + 1, sizeof(*out->block));
	out->edge = calloc((size_t)nr_edges + 1, sizeof(*out->edge));
	out->confidence = calloc((size_t)nr_blocks + 1, sizeof(*out->confidence));
	if (!out->block || !out->edge || !out->confidence)
		return base_fail_errno(err, -ENOMEM, "cannot estimate frequencies");
	n.unit = sum / FLOW_UNITS;
	if (!(n.unit > 0))
		return 0;
	r = network_solve(&n, out, err);
	if (r == -ENOMEM)
		base_fail_errno(err, r, "cannot estimate frequencies");
	if (r >= 0)
		judge(&n, out);
	return r;
}

void freq_release(struct freq_result *r)
{
	free(r->block);
	free(r->edge);
	free(r->confidence);
	memset(r, 0, sizeof(*r));
}

const char *freq_confidence_text(enum freq_confidence c)
{
	static const char *const names[] = { "none", "low", "medium", "high" };

	return names[c];
}

/* ---- estimates from an event's samples ------------------------------------------------------- */

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
