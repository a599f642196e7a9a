/* SPDX-License-Identifier: BSD-2-Clause */
/* The process of value profilers runs each trace once more, lets the profilers choose, and collects
 * the values that they want. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "insn_word.h"
#include "trace_internal.h"
#include "values_args.h"
#include "values_replay.h"
#include "values_run.h"

/* ---- capture --------------------------------------------------------------------------------- */

/* The part of an instruction that is the same at each execution. */
struct values_insn {
	struct vtrace_operands operands;
	uint32_t word;
	uint8_t func;
};

/* The opcodes of profilers are the translator's classes, by number. */
_Static_assert((int)TRACE_OP_LOAD == (int)VTRACE_CLASS_LOAD, "TRACE_OP_LOAD");
_Static_assert((int)TRACE_OP_LEA == (int)VTRACE_CLASS_LEA, "TRACE_OP_LEA");
_Static_assert((int)TRACE_OP_BRANCH == (int)VTRACE_CLASS_BRANCH, "TRACE_OP_BRANCH");
_Static_assert((int)TRACE_OP_SYSTEM == (int)VTRACE_CLASS_SYSTEM, "TRACE_OP_SYSTEM");
_Static_assert((int)TRACE_NR_OPS == (int)VTRACE_NR_CLASSES, "TRACE_NR_OPS");

/* ---- tables ---------------------------------------------------------------------------------- */

static int check_list(const struct trace_vlist *l, unsigned int opc, struct base_err *err)
{
	const char *name = vtrace_class_name((enum vtrace_class)opc);

	if (l->too_many || l->nr > TRACE_MAX_VALUES)
		return base_fail(err, -DCPI_ELIMIT,
				 "it asks for more than %d values of an instruction (class '%s')",
				 TRACE_MAX_VALUES, name);
	if (l->unknown)
		return base_fail(err, -DCPI_EFORMAT, "it asks for what is no value (class '%s')",
				 name);
	return 0;
}

/* Is the list one that can be captured? 0, -DCPI_ELIMIT (more than seven values), -DCPI_EFORMAT. */
static int values_table_check(const struct trace_vlist_table *t, struct base_err *err)
{
	if (!t)
		return base_fail(err, -DCPI_EFORMAT, "its prof_init returned no table");
	if (t->layout != TRACE_LAYOUT)
		return base_fail(err, -DCPI_EVERSION,
				 "its libtrace.a is another release's, or its table is none");
	for (unsigned int opc = 0; opc < TRACE_NR_OPS; opc++)
		for (unsigned int func = 0; func < TRACE_NR_FUNCS; func++) {
			int r = check_list(&t->lists[opc][func], opc, err);

			if (r < 0)
				return r;
		}
	return 0;
}

/* Does a list ask for @value? */
static bool values_table_has(const struct trace_vlist_table *t, trace_value_t value)
{
	for (unsigned int opc = 0; opc < TRACE_NR_OPS; opc++)
		for (unsigned int func = 0; func < TRACE_NR_FUNCS; func++)
			for (unsigned int i = 0; i < t->lists[opc][func].nr; i++)
				if (t->lists[opc][func].values[i] == value)
					return true;
	return false;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* VTRACE_ZERO: none. */
static uint8_t register_of_dwarf(unsigned int n)
{
	if (VALUES_ARCH == VTRACE_AARCH64) {
		if (n >= 64 && n < 96)
			return (uint8_t)(VTRACE_VECTOR + 4 * (n - 64));
		return n < 32 ? (uint8_t)n : VTRACE_ZERO;
	}
	if (n >= 17 && n < 33)
		return (uint8_t)(VTRACE_VECTOR + 4 * (n - 17));
	if (n >= 67 && n < 83)
		return (uint8_t)(VTRACE_VECTOR + 4 * (n - 67 + 16));
	return n < 16 ? (uint8_t)n : VTRACE_ZERO;
}

/* The low @width bytes. */
static bool get_register(const struct vtrace_entry *e, uint8_t reg, unsigned int width,
			 uint64_t *out)
{
	uint8_t w = width < 8 ? (uint8_t)width : 8;

	if (reg == VTRACE_ZERO || !w || e->after->unknown[reg] & vtrace_bytes(w, 0))
		return false;
	*out = e->after->r[reg] & vtrace_mask(w);
	return true;
}

static bool is_flow(uint8_t class)
{
	return class >= VTRACE_CLASS_BRANCH && class <= VTRACE_CLASS_RETURN;
}

/* The result of an instruction; for one that extends the sign of a byte the whole register. */
static bool get_result(const struct vtrace_entry *e, const struct vtrace_operands *o, uint64_t *out)
{
	return get_register(e, o->result, o->result_width, out);
}

static bool get(trace_value_t value, const struct vtrace_entry *e, const struct vtrace_operands *o,
		bool timed, uint64_t *out)
{
	switch (value) {
	case TRACE_REGA:
		return get_register(e, o->a, 8, out);
	case TRACE_REGB:
		return get_register(e, o->b, 8, out);
	case TRACE_REGC:
		return get_register(e, o->c, 8, out);
	case TRACE_RESULT:
		return get_result(e, o, out);
	case TRACE_ADDRESS:
		*out = e->addr;
		return e->has_addr;
	case TRACE_LATENCY:
		*out = e->ns;
		return timed && e->load.has_addr;
	case TRACE_MEMORY:
		*out = e->memory;
		return e->has_addr && !e->memory_unknown;
	case TRACE_TARGET:
		*out = e->target;
		return is_flow(e->class);
	case TRACE_TAKEN:
		*out = e->taken;
		return is_flow(e->class);
	default:
		return value >= TRACE_REGISTERS &&
		       get_register(e, register_of_dwarf(value - TRACE_REGISTERS), 8, out);
	}
}

/* Contexts are the caller's. @timed: the trace has times. */
static void values_capture(const struct trace_vlist *list, const struct vtrace_entry *e,
			   const struct values_insn *insn, bool timed, struct trace_item *out)
{
	*out = (struct trace_item){
		.pc = e->pc,
		.nr = list->nr,
		.opc = e->class,
		.func = insn->func,
		.len = e->len < sizeof(out->bytes) ? e->len : sizeof(out->bytes),
		.inst = insn->word,
	};
	memcpy(out->bytes, e->code->block.code + e->code->insns[e->index].offset, out->len);
	for (unsigned int i = 0; i < list->nr; i++) {
		if (get(list->values[i], e, &insn->operands, timed, &out->values[i]))
			out->known |= (uint8_t)(1u << i);
		else
			out->values[i] = 0;
	}
}

/* ---- values.replay --------------------------------------------------------------------------- */

static uint32_t find(const struct values_stores *s, const struct vtrace_access *load,
		     uint32_t index, bool *covered)
{
	uint64_t end = load->addr + load->width;
	uint32_t first = s->nr < VALUES_NR_STORES ? 0 : s->nr - VALUES_NR_STORES;

	for (uint32_t i = s->nr; i > first; i--) {
		uint32_t k = (i - 1) % VALUES_NR_STORES;

		if (s->at[k].addr >= end || s->at[k].end <= load->addr)
			continue;
		*covered = s->at[k].addr <= load->addr && s->at[k].end >= end;
		return index - s->at[k].index;
	}
	return 0;
}

uint32_t values_stores_add(struct values_stores *s, const struct vtrace_entry *e, uint32_t index,
			   bool *covered)
{
	uint32_t distance = 0, k;

	*covered = false;
	if (e->load.width && e->load.has_addr)
		distance = find(s, &e->load, index, covered);
	if (e->store.width && e->store.has_addr) {
		k = s->nr++ % VALUES_NR_STORES;
		s->at[k].addr = e->store.addr;
		s->at[k].end = e->store.addr + e->store.width;
		s->at[k].index = index;
	}
	return distance;
}

/* ---- values.arg0 and on ---------------------------------------------------------------------- */

/* The registers that carry arguments, as the interpreter numbers them. */
static const uint8_t registers[] = {
#if defined(__aarch64__)
	0, 1, 2, 3, 4, 5, 6, 7,
#else
	5, 4, 1, 2, 8, 9, /* rdi, rsi, rdx, rcx, r8, r9 */
#endif
};

static void read_registers(const struct vtrace_entry *e, uint64_t *r, bool *known)
{
	for (unsigned int i = 0; i < VALUES_NR_ARGS; i++) {
		known[i] = !e->after->unknown[registers[i]];
		r[i] = known[i] ? e->after->r[registers[i]] : 0;
	}
}

/* It still is as the call left it: what a stub does not touch. */
static bool is_stub(const struct values_args *a, const struct vtrace_entry *e)
{
	struct values_args now = { 0 };

	read_registers(e, now.r, now.known);
	return a->ret && a->since <= VALUES_STUB && memcmp(now.r, a->r, sizeof(now.r)) == 0 &&
	       memcmp(now.known, a->known, sizeof(now.known)) == 0;
}

bool values_args_begin(const struct values_args *a, const struct vtrace_entry *e)
{
	return a->ret && a->target == e->pc;
}

void values_args_next(struct values_args *a, const struct vtrace_entry *e)
{
	a->since++;
	a->target = 0;
	if (e->class == VTRACE_CLASS_CALL || e->class == VTRACE_CLASS_CALL_INDIRECT) {
		a->target = e->target;
		a->ret = e->pc + e->len;
		a->since = 0;
		read_registers(e, a->r, a->known);
	} else if (e->class == VTRACE_CLASS_JUMP_INDIRECT && is_stub(a, e)) {
		a->target = e->target;
	}
}

/* ---- the profilers of a process -------------------------------------------------------------- */

/* profilers/vp-classic.c, under another name. */
extern vp_dispatch_t values_classic;

enum kind { NONE, CLASSIC, REPLAY, ARGUMENT, LOADED };

struct profiler {
	enum kind kind;
	struct vtrace_profiler loaded;
	const vp_dispatch_t *dispatch;
	const char *name;
	const struct trace_vlist_table *table; /* the profiler's */
	int arg;
	char arg_name[sizeof(VALUES_ARG) + 1];
	/* items of the current trace */
	struct trace_item items[VSAMPLE_BUFFER_SIZE];
	uint32_t indices[VSAMPLE_BUFFER_SIZE]; /* in the trace */
	struct values_tuple tuples[VSAMPLE_BUFFER_SIZE];
	uint32_t nr;
};

/* A block with what profilers want of its instructions. */
struct block {
	struct vtrace_code code;
	struct values_insn insns[VTRACE_BLOCK_INSNS];
};

struct values_run {
	bool context;
	volatile uint8_t *at_work;
	struct vtrace_translator *translator;
	struct profiler *profilers[VALUES_PROFILERS_MAX];
	uint32_t nr_profilers;
	struct block **blocks; /* blocks by id */
	size_t nr_blocks, cap_blocks;
	/* replay of the current trace */
	struct vtrace_replay replay;
	struct vtrace_contexts contexts;
	struct values_stores stores;
	struct values_args args;
};

/* ---- profilers ------------------------------------------------------------------------------- */

int values_run_new(bool context, volatile uint8_t *at_work, struct values_run **out)
{
	struct values_run *r = calloc(1, sizeof(*r));
	int ret;

	if (!r)
		return -ENOMEM;
	r->context = context;
	r->at_work = at_work;
	ret = vtrace_translator_open(VALUES_ARCH, &r->translator);
	if (ret < 0)
		free(r);
	else
		*out = r;
	return ret;
}

void values_run_free(struct values_run *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->nr_profilers; i++) {
		struct profiler *p = r->profilers[i];

		if (p->dispatch && p->dispatch->prof_fini)
			p->dispatch->prof_fini();
		vtrace_profiler_unload(&p->loaded);
		free(p);
	}
	values_run_forget(r);
	free(r->blocks);
	vtrace_translator_close(r->translator);
	free(r);
}

static int set_kind(struct profiler *p, const char *profiler, struct base_err *err)
{
	int r;

	if (!strcmp(profiler, "-")) {
		p->kind = NONE;
		p->name = "";
	} else if (!strcmp(profiler, "values")) {
		p->kind = CLASSIC;
		p->name = "values";
		p->dispatch = &values_classic;
	} else if (!strcmp(profiler, "values.replay")) {
		p->kind = REPLAY;
		p->name = "values.replay";
	} else if (values_arg_of(profiler) >= 0) {
		p->kind = ARGUMENT;
		p->arg = values_arg_of(profiler);
		snprintf(p->arg_name, sizeof(p->arg_name), "%s", profiler);
		p->name = p->arg_name;
	} else {
		r = vtrace_profiler_load(profiler, &p->loaded, err);
		if (r < 0)
			return r;
		p->kind = LOADED;
		p->name = p->loaded.name;
		p->dispatch = p->loaded.dispatch;
	}
	return 0;
}

static int check_name(const struct values_run *r, const char *name, struct base_err *err)
{
	for (uint32_t i = 0; i < r->nr_profilers; i++)
		if (*name && !strcmp(r->profilers[i]->name, name))
			return base_fail(err, -EEXIST, "two value profilers have the name '%s'",
					 name);
	return 0;
}

static int set_table(struct profiler *p, const char *profiler, struct base_err *err)
{
	struct base_err why = { 0 };
	int r;

	if (!p->dispatch)
		return 0;
	p->table = p->dispatch->prof_init();
	r = values_table_check(p->table, &why);
	return r < 0 ? base_fail(err, r, "cannot use value profiler '%s': %s", profiler, why.text)
		     : 0;
}

int values_run_add(struct values_run *r, const char *profiler, struct base_err *err)
{
	struct profiler *p;
	int ret;

	if (r->nr_profilers == VALUES_PROFILERS_MAX)
		return base_fail(err, -DCPI_ELIMIT, "more than %d value profilers",
				 VALUES_PROFILERS_MAX);
	p = calloc(1, sizeof(*p));
	if (!p)
		return base_fail_errno(err, -ENOMEM, "cannot load '%s'", profiler);
	*r->at_work = (uint8_t)(r->nr_profilers + 1);
	ret = set_kind(p, profiler, err);
	if (ret >= 0)
		ret = check_name(r, p->name, err);
	if (ret >= 0)
		ret = set_table(p, profiler, err);
	*r->at_work = 0;
	if (ret < 0) {
		vtrace_profiler_unload(&p->loaded);
		free(p);
	} else {
		r->profilers[r->nr_profilers++] = p;
	}
	return ret;
}

void values_run_ready(const struct values_run *r, struct values_ready *out)
{
	memset(out, 0, sizeof(*out));
	out->type = VALUES_READY;
	out->log = VTRACE_LOG_READS;
	for (uint32_t i = 0; i < r->nr_profilers; i++) {
		const struct profiler *p = r->profilers[i];

		snprintf(out->names[i], sizeof(out->names[i]), "%s", p->name);
		if (p->table && values_table_has(p->table, TRACE_LATENCY))
			out->log = VTRACE_LOG_TIMES;
	}
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void describe(struct values_run *r, struct block *b)
{
	const struct vtrace_block *block = &b->code.block;

	for (unsigned int i = 0; i < block->nr_insns; i++) {
		const struct vtrace_insn *insn = &b->code.insns[i];
		const uint8_t *code = block->code + insn->offset;
		struct values_insn *v = &b->insns[i];

		vtrace_operands_read(r->translator, code, insn->len, &v->operands);
		v->word = vtrace_word_make(VALUES_ARCH, &v->operands, code);
		v->func = (uint8_t)vtrace_word_func(&v->operands);
	}
}

static bool is_block(const struct values_block *m, size_t len)
{
	const struct vtrace_block *b = &m->block;

	if (len < sizeof(*m) || b->nr_uops > VTRACE_BLOCK_UOPS ||
	    b->nr_insns > VTRACE_BLOCK_INSNS || b->len > VTRACE_BLOCK_BYTES ||
	    b->id >= VALUES_IDS_MAX)
		return false;
	return len == sizeof(*m) + b->nr_uops * sizeof(struct vtrace_uop) +
			      b->nr_insns * sizeof(struct vtrace_insn);
}

static bool insns_fit(const struct vtrace_code *c)
{
	for (unsigned int i = 0; i < c->block.nr_insns; i++)
		if (c->insns[i].offset + c->insns[i].len > c->block.len ||
		    c->insns[i].class >= VTRACE_NR_CLASSES)
			return false;
	return true;
}

int values_run_block(struct values_run *r, const void *message, size_t len)
{
	const struct values_block *m = message;
	size_t uops = len < sizeof(*m) ? 0 : m->block.nr_uops * sizeof(struct vtrace_uop);
	size_t old = r->cap_blocks;
	struct block *b;

	if (!is_block(m, len))
		return -DCPI_EFORMAT;
	if (base_grow(&r->blocks, &r->cap_blocks, m->block.id + 1, sizeof(*r->blocks)) < 0)
		return -ENOMEM;
	memset(r->blocks + old, 0, (r->cap_blocks - old) * sizeof(*r->blocks));
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->code.block = m->block;
	memcpy(b->code.uops, m + 1, uops);
	memcpy(b->code.insns, (const char *)(m + 1) + uops,
	       m->block.nr_insns * sizeof(struct vtrace_insn));
	if (!insns_fit(&b->code)) {
		free(b);
		return -DCPI_EFORMAT;
	}
	describe(r, b);
	free(r->blocks[m->block.id]);
	r->blocks[m->block.id] = b;
	if (r->nr_blocks <= m->block.id)
		r->nr_blocks = m->block.id + 1;
	return 0;
}

void values_run_forget(struct values_run *r)
{
	for (size_t i = 0; i < r->nr_blocks; i++) {
		free(r->blocks[i]);
		r->blocks[i] = NULL;
	}
	r->nr_blocks = 0;
}

static const struct vtrace_code *get_block(void *ctx, uint32_t id)
{
	const struct values_run *r = ctx;

	return id < r->nr_blocks && r->blocks[id] ? &r->blocks[id]->code : NULL;
}

/* ---- a trace --------------------------------------------------------------------------------- */

static void add_item(struct profiler *p, const struct vtrace_entry *e,
		     const struct values_insn *insn, bool timed, uint32_t index)
{
	const struct trace_vlist *list = &p->table->lists[e->class][insn->func % TRACE_NR_FUNCS];

	if (!list->wanted || p->nr == VSAMPLE_BUFFER_SIZE)
		return;
	/* The table is the profiler's, and may have changed since it was looked at. */
	if (list->nr > TRACE_MAX_VALUES)
		return;
	values_capture(list, e, insn, timed, &p->items[p->nr]);
	p->indices[p->nr++] = index;
}

static void add_replay(struct profiler *p, const struct vtrace_entry *e, uint32_t distance,
		       bool covered, uint32_t index)
{
	if (!distance || p->nr == VSAMPLE_BUFFER_SIZE)
		return;
	p->tuples[p->nr] =
		(struct values_tuple){ .pc = e->pc,
				       .value = distance + (covered ? VALUES_FORWARDED : 0) };
	p->indices[p->nr++] = index;
}

static void add_argument(struct profiler *p, const struct vtrace_entry *e,
			 const struct values_args *a, uint32_t index)
{
	if (!values_args_begin(a, e) || !a->known[p->arg] || p->nr == VSAMPLE_BUFFER_SIZE)
		return;
	p->tuples[p->nr] =
		(struct values_tuple){ .pc = e->pc, .c0 = a->ret, .value = a->r[p->arg] };
	p->indices[p->nr++] = index;
}

static void add_entry(struct values_run *r, const struct vtrace_entry *e, bool timed,
		      uint32_t index)
{
	const struct block *b = (const struct block *)e->code;
	const struct values_insn *insn = &b->insns[e->index];
	bool covered;
	uint32_t distance = values_stores_add(&r->stores, e, index, &covered);

	if (r->context)
		vtrace_contexts_add(&r->contexts, e, &insn->operands);
	for (uint32_t i = 0; index >= VALUES_SKIP && i < r->nr_profilers; i++) {
		struct profiler *p = r->profilers[i];

		if (p->kind == ARGUMENT)
			add_argument(p, e, &r->args, index);
		else if (p->kind == REPLAY)
			add_replay(p, e, distance, covered, index);
		else if (p->kind != NONE)
			add_item(p, e, insn, timed, index);
	}
	values_args_next(&r->args, e);
}

/* 0, or -DCPI_EFORMAT: what came before counts. */
static int run(struct values_run *r, const struct insn_trace *w, const uint64_t *words)
{
	bool timed = w->has & INSN_TRACE_TIMES;
	struct vtrace_entry e;
	uint32_t index = 0;
	int ret;

	for (uint32_t i = 0; i < r->nr_profilers; i++)
		r->profilers[i]->nr = 0;
	r->stores.nr = 0;
	r->args = (struct values_args){ 0 };
	if (r->context)
		vtrace_contexts_init(&r->contexts, VALUES_ARCH);
	ret = vtrace_replay_init(&r->replay, w, words, get_block, r);
	if (ret < 0)
		return ret;
	while ((ret = vtrace_replay_next(&r->replay, &e)) > 0)
		add_entry(r, &e, timed, index++);
	return ret;
}

static void set_contexts(const struct values_run *r, struct profiler *p)
{
	for (uint32_t i = 0; r->context && i < p->nr; i++) {
		uint64_t c0, c1;

		vtrace_contexts_get(&r->contexts, p->indices[i], &c0, &c1);
		/* That call was seen. */
		if (p->kind == ARGUMENT && c0 != p->tuples[i].c0)
			continue;
		p->items[i].c0 = p->tuples[i].c0 = c0;
		p->items[i].c1 = p->tuples[i].c1 = c1;
	}
}

static bool is_of_trace(const struct profiler *p, uint64_t pc, uint32_t near)
{
	for (uint32_t i = 0; i < p->nr; i++)
		if (p->items[(near + i) % p->nr].pc == pc)
			return true;
	return false;
}

/* Take a profiler's answer, which may be anything: a tuple counts if its pc was in the trace. */
static void take_samples(struct profiler *p, const vsample_t *samples, int nr,
			 struct values_tuples *head)
{
	if (nr <= 0)
		return;
	if (!samples || nr > VSAMPLE_BUFFER_SIZE) {
		head->wild = (uint32_t)nr;
		return;
	}
	for (uint32_t i = 0; i < (uint32_t)nr; i++) {
		const struct values_tuple t = { samples[i].pc, samples[i].context0,
						samples[i].context1, samples[i].value };

		if (is_of_trace(p, t.pc, i))
			p->tuples[head->nr++] = t;
		else
			head->wild++;
	}
}

static void process(struct values_run *r, uint32_t i, uint32_t pid, struct values_tuples *head)
{
	struct profiler *p = r->profilers[i];
	struct trace_parser parser = {
		.layout = TRACE_LAYOUT,
		.pid = pid,
		.nr = p->nr,
		.has_context = r->context,
		.items = p->items,
	};
	vsample_t *samples = NULL;
	int nr;

	set_contexts(r, p);
	if (p->kind == REPLAY || p->kind == ARGUMENT) {
		head->nr = p->nr;
	} else if (p->nr) {
		*r->at_work = (uint8_t)(i + 1);
		nr = p->dispatch->prof_process(pid, &parser, &samples);
		/* Reading what it left may still be its fault. */
		take_samples(p, samples, nr, head);
		*r->at_work = 0;
	}
}

int values_run_trace(struct values_run *r, const void *message, size_t len,
		     int (*answer)(void *ctx, const struct values_tuples *head,
				   const struct values_tuple *t),
		     void *ctx)
{
	const struct values_trace *m = message;
	int bad, ret = 0;

	if (len < sizeof(*m) || m->w.nr_words > VTRACE_NR_WORDS ||
	    len != sizeof(*m) + insn_trace_words(&m->w) * sizeof(uint64_t))
		return -DCPI_EFORMAT;
	bad = run(r, &m->w, (const uint64_t *)(m + 1));
	for (uint32_t i = 0; ret >= 0 && i < r->nr_profilers; i++) {
		struct values_tuples head = {
			.type = VALUES_TUPLES,
			.profiler = i,
			.ticket = m->ticket,
			.bad = bad < 0,
		};

		if (r->profilers[i]->kind == NONE)
			continue;
		process(r, i, m->w.tgid, &head);
		ret = answer(ctx, &head, r->profilers[i]->tuples);
	}
	return ret;
}
