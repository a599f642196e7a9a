/* SPDX-License-Identifier: BSD-2-Clause */
/* A procedure's flow graph with frequencies, costs and stalls added to it. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "calc.h"
#include "evidence.h"
#include "procedures.h"
#include "runs.h"

/* The analysis of one procedure; arrays of blocks and edges are in the flow's order. */
struct calc {
	const struct graph_flow *f;
	const struct flow *flow;
	const struct calc_how *o;
	struct analysis *a;
	size_t event;
	struct graph_proc *p;
	struct graph_freq *block, *edge;
	double *runs, *gone;  /* the same values, whatever their confidence */
	bool known, absolute; /* frequencies exist; they are executions */
	uint64_t traces;      /* number of traces that they come from */
	double *by_insn;      /* samples of @event; NULL: the event is not of time */
	struct stall stall;
	uint32_t said; /* causes whose letters already have a legend */
};

/* ---- samples --------------------------------------------------------------------------------- */

/* Returns how many samples of an event a unit with samples has. */
typedef uint64_t unit_samples(const struct analysis_listing *l, const struct analysis_unit *u,
			      size_t event);

static uint64_t all_samples(const struct analysis_listing *l, const struct analysis_unit *u,
			    size_t event)
{
	(void)l;
	return u->count[event];
}

static void place_part(const struct flow *flow, const struct analysis_listing *l, size_t event,
		       unit_samples *samples, double *by_insn)
{
	for (size_t i = 0; i < l->nr_units; i++) {
		const struct analysis_unit *u = &l->units[i];
		const struct insn *insn = u->count ? flow_insn_at(flow, u->vaddr) : NULL;

		if (insn)
			by_insn[insn - flow->insns] += (double)samples(l, u, event);
	}
}

/* The samples of @event by instruction of the flow, to be freed; NULL where memory lacks. */
static double *samples_by_insn(const struct graph_flow *f, size_t event, unit_samples *samples)
{
	double *by_insn = calloc((size_t)f->flow->nr_insns + 1, sizeof(*by_insn));

	for (size_t i = 0; by_insn && i < f->nr_parts; i++)
		place_part(f->flow, f->parts[i], event, samples, by_insn);
	return by_insn;
}

static uint32_t insn_index(const struct flow *flow, uint64_t vaddr)
{
	const struct insn *insn = flow_insn_at(flow, vaddr);

	return insn ? (uint32_t)(insn - flow->insns) : UINT32_MAX;
}

static int place_time(struct calc *c)
{
	if (c->event >= c->a->nr_events || estimate_model(c->a->events[c->event].name) != FREQ_TIME)
		return 0;
	c->by_insn = samples_by_insn(c->f, c->event, all_samples);
	return c->by_insn ? 0 : -ENOMEM;
}

/* ---- frequencies ----------------------------------------------------------------------------- */

static int set_text(char **to, const char *text)
{
	*to = strdup(text);
	return *to ? 0 : -ENOMEM;
}

static enum graph_confidence confidence_of(enum freq_confidence c)
{
	static const enum graph_confidence of[] = {
		[FREQ_NONE] = GRAPH_UNKNOWN,
		[FREQ_LOW] = GRAPH_LOW,
		[FREQ_MEDIUM] = GRAPH_MEDIUM,
		[FREQ_HIGH] = GRAPH_HIGH,
	};

	return of[c];
}

/* An edge has the lower confidence of its two blocks. */
static enum freq_confidence of_edge(const struct estimate *e, const struct flow_edge *edge)
{
	const enum freq_confidence *c = e->freq.confidence;

	if (edge->from == FLOW_OUTSIDE || edge->to == FLOW_OUTSIDE)
		return c[edge->from == FLOW_OUTSIDE ? edge->to : edge->from];
	return c[edge->from] < c[edge->to] ? c[edge->from] : c[edge->to];
}

static int say_estimated(struct calc *c, const struct analysis_event *ev, const struct estimate *e,
			 bool measured)
{
	char text[200];

	estimate_text(ev->name, measured, e->traces, text, sizeof(text));
	if (e->freq.unfinished &&
	    graph_text_add(&c->p->notes, "the procedure is too large for the best estimate") < 0)
		return -ENOMEM;
	return set_text(&c->p->freq, text);
}

static int say_left_out(struct calc *c, const struct estimate *e)
{
	for (uint32_t i = 0; i < c->flow->nr_blocks; i++)
		if (e->freq.confidence[i] > FREQ_NONE && e->freq.confidence[i] < c->o->least)
			return graph_text_add(&c->p->notes,
					      "frequencies of lower confidence are left out: "
					      "-conf_low shows them");
	return 0;
}

static int take_estimate(struct calc *c, const struct analysis_event *ev, const struct estimate *e)
{
	int r = say_left_out(c, e);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < c->flow->nr_blocks; i++) {
		c->runs[i] = e->freq.block[i];
		if (e->freq.confidence[i] >= c->o->least)
			c->block[i] = (struct graph_freq){ e->freq.block[i],
							   confidence_of(e->freq.confidence[i]) };
	}
	for (uint32_t i = 0; i < c->flow->nr_edges; i++) {
		enum freq_confidence sure = of_edge(e, &c->flow->edges[i]);

		c->gone[i] = e->freq.edge[i];
		if (sure >= c->o->least)
			c->edge[i] = (struct graph_freq){ e->freq.edge[i], confidence_of(sure) };
	}
	c->known = true;
	c->absolute = e->absolute;
	c->traces = e->traces;
	return say_estimated(c, ev, e, e->absolute);
}

static int estimate_all(struct calc *c, struct base_err *err)
{
	const struct analysis_listing *l = c->f->parts[0];
	int event = estimate_event(c->a, l->ai), r;
	struct profdb_costs costs = { 0 };
	struct estimate_input in = { .flow = c->flow, .img = l->img };
	struct estimate e = { 0 };
	double *by_insn;

	if (event < 0)
		return graph_text_add(&c->p->notes, "no event here tells how often code ran");
	by_insn = samples_by_insn(c->f, (size_t)event, analysis_unit_runs);
	if (!by_insn)
		return -ENOMEM;
	in.by_insn = by_insn;
	in.event = c->a->events[event].name;
	in.retired = estimate_by_retired(c->a, (size_t)event);
	in.period = analysis_sample_units(l->a, l->ai, (size_t)event);
	r = profdb_costs_read(c->a->db, image_id(l->img), in.event, &costs, err);
	if (r >= 0)
		in.costs = &costs;
	if (r >= 0 || r == -ENOENT)
		r = analysis_image_paths(l->ai, l->img, &in.paths, err);
	if (r >= 0)
		r = estimate_frequencies(&in, &e, err);
	if (r >= 0)
		r = take_estimate(c, &c->a->events[event], &e);
	estimate_release(&e);
	profdb_costs_release(&costs);
	free(by_insn);
	return r;
}

/* ---- counts ---------------------------------------------------------------------------------- */

static double edge_count(const struct calc *c, const struct exact_view *v,
			 const struct flow_edge *e)
{
	if (e->from == FLOW_OUTSIDE || e->to == FLOW_OUTSIDE)
		return 0;
	return runs_edge(v, c->flow, e, c->block[e->from].value);
}

/* The entries and exits are the differences that the edges within the procedure leave. */
static void count_outside(struct calc *c)
{
	for (uint32_t i = 0; i < c->flow->nr_edges; i++) {
		const struct flow_edge *e = &c->flow->edges[i];
		bool entry = e->from == FLOW_OUTSIDE;
		uint32_t block = entry ? e->to : e->from;
		const struct flow_block *b;
		double rest, within = 0;

		if (!entry && e->to != FLOW_OUTSIDE)
			continue;
		b = &c->flow->blocks[block];
		for (uint32_t k = 0; k < (entry ? b->nr_in : b->nr_out); k++) {
			uint32_t other =
				entry ? c->flow->into[b->in + k] : c->flow->out_of[b->out + k];

			within += other == i ? 0 : c->edge[other].value;
		}
		rest = c->block[block].value - within;
		c->edge[i] = (struct graph_freq){ rest > 0 ? rest : 0, GRAPH_EXACT };
	}
}

static int count_all(struct calc *c, struct base_err *err)
{
	const struct analysis_listing *l = c->f->parts[0];
	struct exact_view v;
	int r = exact_view(c->o->exact, l->img, image_id(l->img), &l->symbol, &v);

	if (r < 0)
		return base_fail(err, r, "procedure '%s' of '%s' was not counted", l->symbol.name,
				 l->ai->name);
	for (uint32_t i = 0; i < c->flow->nr_blocks; i++)
		c->block[i] = (struct graph_freq){
			(double)exact_view_executions(&v, c->flow->blocks[i].vaddr), GRAPH_EXACT
		};
	for (uint32_t i = 0; i < c->flow->nr_edges; i++)
		c->edge[i] =
			(struct graph_freq){ edge_count(c, &v, &c->flow->edges[i]), GRAPH_EXACT };
	count_outside(c);
	for (uint32_t i = 0; i < c->flow->nr_blocks; i++)
		c->runs[i] = c->block[i].value;
	for (uint32_t i = 0; i < c->flow->nr_edges; i++)
		c->gone[i] = c->edge[i].value;
	c->known = c->absolute = true;
	r = graph_text_add(&c->p->notes,
			   "costs suppose that the counted runs did the work of the sampled ones");
	return r < 0 ? r : set_text(&c->p->freq, "executions, counted");
}

/* ---- costs ----------------------------------------------------------------------------------- */

static void set_unit(struct calc *c)
{
	if (!c->absolute)
		c->p->unit = GRAPH_TIMES;
	else if (!estimate_is_cycles(c->a->events[c->event].name))
		c->p->unit = GRAPH_NS;
}

/* Converts samples of a block to the cost of one execution. */
static double cost(const struct calc *c, uint32_t block, double samples)
{
	return samples * analysis_sample_units(c->a, c->f->parts[0]->ai, c->event) /
	       c->block[block].value;
}

/*
 * A sample of time lies where the processor continues, often behind the instruction that waited,
 * and instructions that retire together have the samples of one: so if frequencies are only
 * proportions, costs are shown for blocks alone.
 */
static void set_costs(struct calc *c, uint32_t i)
{
	struct graph_block *b = &c->p->blocks[i];

	b->actual = (struct graph_cycles){ cost(c, i, c->stall.block[i].samples),
					   c->flow->blocks[i].nr_insns };
	for (size_t k = 0; c->absolute && k < b->nr_insns; k++)
		b->insns[k].cpi = cost(c, i, (double)b->insns[k].samples);
}

/* ---- stalls ---------------------------------------------------------------------------------- */

static int add_legend(struct calc *c, enum stall_cause cause, struct base_buf *legend)
{
	if (c->said >> cause & 1)
		return 0;
	c->said |= 1u << cause;
	return base_buf_printf(legend, "%s%c = %s", legend->len ? ", " : "",
			       stall_cause_letter(cause), stall_cause_name(cause));
}

/* A cause gets a letter if it has a tenth of the block's stalls. */
static int tell_stall(struct calc *c, uint32_t i)
{
	const struct stall_tally *t = &c->stall.block[i];
	double stalled = t->samples - t->execution, low = 0;
	char text[STALL_NR_CAUSES + 2] = "";
	enum stall_cause order[STALL_NR_CAUSES + 1];
	struct base_buf legend = { 0 };
	size_t nr = stall_order(t, order), len = 0;
	int r = 0;

	for (int k = 0; k < STALL_NR_CAUSES; k++)
		low += t->cause[k].low;
	for (size_t k = 0; k < nr && r >= 0; k++) {
		double mine = order[k] < STALL_NR_CAUSES ? t->cause[order[k]].high : t->unexplained;

		if (mine < stalled / 10)
			continue;
		text[len++] = stall_cause_letter(order[k]);
		r = add_legend(c, order[k], &legend);
	}
	if (r >= 0 && len && cost(c, i, stalled) >= 0.1)
		r = graph_stall_add(&c->p->blocks[i].above, text, cost(c, i, low),
				    cost(c, i, stalled),
				    legend.len ? (const char *)legend.data : NULL);
	base_buf_release(&legend);
	return r;
}

/* Names the instructions that others waited for, if that is a tenth of the block's stalls. */
static int tell_culprits(struct calc *c, uint32_t block)
{
	const struct stall_tally *t = &c->stall.block[block];
	struct graph_block *b = &c->p->blocks[block];
	char text[24];

	for (size_t k = 0; k < b->nr_insns; k++) {
		uint32_t at = insn_index(c->flow, b->insns[k].vaddr), culprit;

		if (at == UINT32_MAX || c->flow->insns[at].vaddr != b->insns[k].vaddr)
			continue;
		culprit = c->stall.culprit[at];
		if (culprit == FLOW_OUTSIDE ||
		    c->stall.stalled[at] < (t->samples - t->execution) / 10)
			continue;
		snprintf(text, sizeof(text), "0x%" PRIx64, c->flow->insns[culprit].vaddr);
		if (set_text(&b->insns[k].culprit, text) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Lists the events that limited causes. */
static int say_evidence(struct calc *c, const struct evidence *e)
{
	struct base_buf text = { 0 };
	int r = 0;

	for (size_t i = 0; i < e->nr && r >= 0; i++)
		r = base_buf_printf(&text, "%s%s", i ? ", " : "", c->a->events[e->event[i]].name);
	if (r >= 0 && e->nr)
		r = graph_text_add(&c->p->notes, "causes of stalls are limited by samples of %s",
				   (const char *)text.data);
	base_buf_release(&text);
	return r;
}

static double *samples_of(const void *context, size_t event)
{
	return samples_by_insn(context, event, all_samples);
}

static int tell_costs(struct calc *c)
{
	struct stall_input in = { .flow = c->flow,
				  .samples = c->by_insn,
				  .block = c->known ? c->runs : NULL,
				  .edge = c->known ? c->gone : NULL,
				  .outside = c->o->outside,
				  .machine = image_machine(c->f->parts[0]->img) };
	struct evidence evidence = { 0 };
	int r;

	if (!c->by_insn)
		return 0;
	r = evidence_gather(&(struct evidence_input){ .a = c->a,
						      .ai = c->f->parts[0]->ai,
						      .flow = c->flow,
						      .time = c->event,
						      .runs = c->absolute ? c->runs : NULL,
						      .samples = samples_of,
						      .context = c->f },
			    &evidence);
	in.evidence = evidence.v;
	in.nr_evidence = evidence.nr;
	if (r >= 0)
		r = stall_find(&in, &c->stall);
	if (r >= 0)
		r = say_evidence(c, &evidence);
	evidence_release(&evidence);
	if (r < 0)
		return r;
	set_unit(c);
	for (uint32_t i = 0; i < c->flow->nr_blocks && r >= 0; i++) {
		if (c->block[i].confidence == GRAPH_UNKNOWN || c->block[i].value <= 0)
			continue;
		set_costs(c, i);
		r = tell_stall(c, i);
		if (r >= 0)
			r = tell_culprits(c, i);
	}
	return r;
}

/* ---- what is shown --------------------------------------------------------------------------- */

static const struct analysis_listing *part_at(const struct calc *c, uint64_t vaddr)
{
	for (size_t i = 0; i < c->f->nr_parts; i++)
		if (vaddr - c->f->parts[i]->symbol.vaddr < c->f->parts[i]->code_len)
			return c->f->parts[i];
	return NULL;
}

static int add_opcode(const struct calc *c, struct graph_insn *insn)
{
	const struct analysis_listing *l = part_at(c, insn->vaddr);
	const struct insn *at = flow_insn_at(c->flow, insn->vaddr);
	char hex[2 * 16 + 1] = "", *text;

	if (!l || !at || at->vaddr != insn->vaddr)
		return 0;
	for (uint32_t i = 0; i < at->len && i < 16; i++)
		snprintf(hex + 2 * i, sizeof(hex) - 2 * i, "%02x",
			 l->code[insn->vaddr - l->symbol.vaddr + i]);
	if (asprintf(&text, "%-16s %s", hex, insn->text) < 0)
		return -ENOMEM;
	free(insn->text);
	insn->text = text;
	return 0;
}

static int show_blocks(struct calc *c)
{
	double least = c->o->cutoff / 100 * (double)c->p->samples;
	int r = 0;

	for (uint32_t i = 0; i < c->flow->nr_blocks && r >= 0; i++) {
		struct graph_block *b = &c->p->blocks[i];

		b->freq = c->block[i];
		if ((double)b->samples < least)
			graph_block_omit(b);
		for (size_t k = 0; c->o->opcodes && k < b->nr_insns && r >= 0; k++)
			r = add_opcode(c, &b->insns[k]);
	}
	for (uint32_t i = 0; i < c->flow->nr_edges; i++)
		c->p->edges[i].freq = c->edge[i];
	return r;
}

static int say_share(struct calc *c, const char *what, uint64_t samples)
{
	if (!samples)
		return 0;
	return graph_text_add(&c->p->summary, "%-36s %10llu  %6.2f%%", what,
			      (unsigned long long)samples,
			      100 * (double)samples / (double)c->p->samples);
}

/* Reports which part of the samples has known frequencies; the parts add up. */
static int say_known(struct calc *c)
{
	static const char *const names[] = {
		[GRAPH_UNKNOWN] = "in blocks of unknown frequency",
		[GRAPH_LOW] = "in blocks of low confidence",
		[GRAPH_MEDIUM] = "in blocks of medium confidence",
		[GRAPH_HIGH] = "in blocks of high confidence",
		[GRAPH_EXACT] = "in blocks that were counted",
	};
	uint64_t samples[GRAPH_EXACT + 1] = { 0 };
	int r = 0;

	for (uint32_t i = 0; i < c->flow->nr_blocks; i++)
		samples[c->p->blocks[i].freq.confidence] += c->p->blocks[i].samples;
	for (int k = GRAPH_EXACT; k >= 0 && r >= 0; k--)
		r = say_share(c, names[k], samples[k]);
	if (r >= 0)
		r = say_share(c, "in no block", c->p->outside);
	return r < 0 ? r : say_share(c, "total tallied", c->p->samples);
}

/* Reports the shares of execution and causes in the procedure's samples, which add up. */
static int say_stalls(struct calc *c)
{
	const struct stall_tally *t = &c->stall.total;
	double percent = c->p->samples ? 100 / (double)c->p->samples : 0;
	struct graph_texts *to = &c->p->summary;
	enum stall_cause order[STALL_NR_CAUSES + 1];
	size_t nr;
	int r;

	if (!c->by_insn || !c->p->samples)
		return 0;
	nr = stall_order(t, order);
	r = graph_text_add(to, "%-24s %8s %8s %8s", "where the time has gone", "low", "likely",
			   "high");
	for (size_t i = 0; i < nr && r >= 0; i++) {
		const struct stall_range *s = &t->cause[order[i]];

		if (order[i] == STALL_NR_CAUSES)
			r = graph_text_add(to, "%c %-22s %8s %7.2f%%", stall_cause_letter(order[i]),
					   "unexplained stall", "", percent * t->unexplained);
		else
			r = graph_text_add(to, "%c %-22s %7.2f%% %7.2f%% %7.2f%%",
					   stall_cause_letter(order[i]), stall_cause_name(order[i]),
					   percent * s->low, percent * s->likely,
					   percent * s->high);
	}
	/* Nothing tells of it where it is nought: code that ran took some time. */
	if (r >= 0 && t->execution > 0)
		r = graph_text_add(to, "  %-22s %8s %7.2f%%", "execution", "",
				   percent * t->execution);
	if (r >= 0 && c->p->outside)
		r = graph_text_add(to, "  %-22s %8s %7.2f%%", "in no block", "",
				   percent * (double)c->p->outside);
	return r < 0 ? r : graph_text_add(to, "  %-22s %8s %7.2f%%", "total tallied", "", 100.0);
}

/* Stands before all other notes, as the rest of the graph is to be read by it. */
static int note_covered(struct calc *c)
{
	struct graph_texts *notes = &c->p->notes;
	double sum = 0, unsure = 0, all = (double)c->p->samples;
	char *first;
	int r;

	for (uint32_t i = 0; i < c->flow->nr_blocks; i++)
		*(c->block[i].confidence == GRAPH_UNKNOWN ? &unsure : &sum) +=
			(double)c->p->blocks[i].samples;
	if (!c->known || c->o->exact || sum >= all / 2 || unsure <= all / 4)
		return 0;
	r = graph_text_add(notes,
			   "only %.2f %% of the samples are in blocks of known frequency: %s; "
			   "-conf_low takes any",
			   100 * sum / all, estimate_remedy(c->traces));
	if (r < 0)
		return r;
	first = notes->v[notes->nr - 1];
	memmove(notes->v + 1, notes->v, (notes->nr - 1) * sizeof(*notes->v));
	notes->v[0] = first;
	return 0;
}

static int calculate(struct calc *c, struct base_err *err)
{
	size_t nr_blocks = (size_t)c->flow->nr_blocks + 1, nr_edges = (size_t)c->flow->nr_edges + 1;
	int r;

	c->block = calloc(nr_blocks, sizeof(*c->block));
	c->runs = calloc(nr_blocks, sizeof(*c->runs));
	c->edge = calloc(nr_edges, sizeof(*c->edge));
	c->gone = calloc(nr_edges, sizeof(*c->gone));
	if (!c->block || !c->runs || !c->edge || !c->gone)
		return -ENOMEM;
	r = place_time(c);
	if (r >= 0)
		r = c->o->exact ? count_all(c, err) : estimate_all(c, err);
	if (r >= 0)
		r = tell_costs(c);
	if (r >= 0)
		r = show_blocks(c);
	if (r >= 0)
		r = note_covered(c);
	if (r >= 0)
		r = say_stalls(c);
	return r < 0 ? r : say_known(c);
}

static void release(struct calc *c)
{
	free(c->block);
	free(c->runs);
	free(c->edge);
	free(c->gone);
	free(c->by_insn);
	stall_release(&c->stall);
}

int calc_add(const struct graph_flow *f, size_t event, const struct calc_how *o, struct graph *g,
	     struct base_err *err)
{
	const char *name = f->parts[0]->symbol.name;
	struct calc c = { .f = f, .flow = f->flow, .o = o, .a = f->parts[0]->a, .event = event };
	int r = graph_flow_add(f, event, g, err);

	if (r >= 0) {
		c.p = &g->procs[g->nr - 1];
		r = calculate(&c, err);
	}
	release(&c);
	return r < 0 ? base_fail_errno(err, r, "cannot calculate '%s'", name) : 0;
}

/* ---- by instruction -------------------------------------------------------------------------- */

static enum freq_confidence as_estimated(enum graph_confidence c)
{
	static const enum freq_confidence of[] = {
		[GRAPH_UNKNOWN] = FREQ_NONE,  [GRAPH_LOW] = FREQ_LOW,
		[GRAPH_MEDIUM] = FREQ_MEDIUM, [GRAPH_HIGH] = FREQ_HIGH,
		[GRAPH_EXACT] = FREQ_HIGH,
	};

	return of[c];
}

static int take_insns(const struct calc *c, struct calc_insns *out)
{
	out->v = calloc((size_t)c->flow->nr_insns + 1, sizeof(*out->v));
	if (!out->v)
		return -ENOMEM;
	out->known = c->known;
	out->absolute = c->absolute;
	out->timed = c->by_insn != NULL;
	out->traces = c->traces;
	if (c->known && set_text(&out->text, c->p->freq) < 0)
		return -ENOMEM;
	for (uint32_t b = 0; b < c->flow->nr_blocks; b++) {
		const struct flow_block *block = &c->flow->blocks[b];

		for (uint32_t i = block->insn; i < block->insn + block->nr_insns; i++) {
			out->v[i].freq = c->runs[b];
			out->v[i].confidence = as_estimated(c->block[b].confidence);
			if (!out->timed)
				continue;
			out->v[i].samples = c->by_insn[i];
			out->v[i].stalled = c->stall.stalled[i];
			out->v[i].unexplained = c->stall.unexplained[i];
		}
	}
	return 0;
}

int calc_insns(const struct graph_flow *f, size_t event, enum stall_outside outside,
	       struct calc_insns *out, struct base_err *err)
{
	const struct calc_how o = { .least = FREQ_LOW, .outside = outside };
	struct calc c = { .f = f, .flow = f->flow, .o = &o, .a = f->parts[0]->a, .event = event };
	struct graph *g = graph_new();
	int r = g ? graph_flow_add(f, event, g, err) : -ENOMEM;

	if (r >= 0) {
		c.p = &g->procs[g->nr - 1];
		r = calculate(&c, err);
	}
	if (r >= 0)
		r = take_insns(&c, out);
	out->period = analysis_sample_units(f->parts[0]->a, f->parts[0]->ai, event);
	release(&c);
	graph_free(g);
	return r < 0 ? base_fail_errno(err, r, "cannot calculate '%s'", f->parts[0]->symbol.name)
		     : 0;
}
