/* SPDX-License-Identifier: BSD-2-Clause */
/* Recorded values are shown beside procedures and instructions. */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "valued.h"

/* A flag of values.replay: the store was forwarded, so nothing waited. */
enum { REPLAY_FORWARDED = 0x10000 };

int valued_check(struct valued_options *o, const struct select *sel, struct base_err *err)
{
	if (o->prof + o->replay + (o->trace != NULL) > 1)
		return base_fail(err, -DCPI_EUSAGE,
				 "-vprof, -vtrace and -vreplay exclude each other");
	if (!valued_wanted(o) && valued_shown(o))
		return base_fail(err, -DCPI_EUSAGE, "-%s goes with -vprof, -vtrace or -vreplay",
				 valued_shown(o));
	if (valued_wanted(o) && sel->labels.nr)
		return base_fail(err, -DCPI_EUSAGE, "values carry no labels: leave out -label");
	if (valued_wanted(o) && select_refuse_workloads(sel, "values", err) < 0)
		return -DCPI_EUSAGE;
	if (o->cutoff < 0)
		o->cutoff = 1;
	if (!o->show)
		o->show = 8;
	return 0;
}

static int choose_profiler(struct valued *v, struct base_err *err)
{
	const char *name = v->opt->replay ? PROFDB_VALUES_REPLAY : PROFDB_VALUES;
	int r = 0;

	if (v->opt->trace) {
		r = vtrace_profiler_load(v->opt->trace, &v->loaded, err);
		name = v->loaded.name;
	}
	snprintf(v->profiler, sizeof(v->profiler), "%s", r < 0 ? "" : name);
	return r;
}

int valued_open(struct valued *v, const struct valued_options *o, struct analysis *a,
		struct base_err *err)
{
	int r;

	v->opt = o;
	r = choose_profiler(v, err);
	return r < 0 ? r : hotlists_open(a, v->profiler, &v->lists, err);
}

void valued_release(struct valued *v)
{
	hotlists_release(&v->lists);
	vtrace_profiler_unload(&v->loaded);
}

/* ---- what the values are of ------------------------------------------------------------------ */

bool valued_arch(uint32_t machine, enum vtrace_arch *arch)
{
	*arch = machine == EM_AARCH64 ? VTRACE_AARCH64 : VTRACE_X86_64;
	return machine == EM_X86_64 || machine == EM_AARCH64;
}

const char *valued_of(enum vtrace_arch arch, const struct vtrace_operands *o, char *name)
{
	switch (o->class) {
	case VTRACE_CLASS_STORE:
	case VTRACE_CLASS_STORE_FP:
	case VTRACE_CLASS_PUSH:
	case VTRACE_CLASS_MODIFY:
	case VTRACE_CLASS_ATOMIC:
		return "mem";
	case VTRACE_CLASS_BRANCH:
		return "taken";
	case VTRACE_CLASS_JUMP_INDIRECT:
	case VTRACE_CLASS_CALL_INDIRECT:
		return "target";
	case VTRACE_CLASS_COMPARE:
	case VTRACE_CLASS_JUMP:
	case VTRACE_CLASS_CALL:
	case VTRACE_CLASS_RETURN:
	case VTRACE_CLASS_SYSTEM:
		return NULL;
	default:
		return o->form & VTRACE_FORM_RESULT
			       ? vtrace_register_name(arch, o->result, o->result_width, name)
			       : NULL;
	}
}

static const char *built_in_preface(struct valued *v, enum vtrace_arch arch,
				    const struct valued_insn *insn)
{
	struct vtrace_operands o;
	const char *of;

	if (vtrace_insn_operands(arch, insn->code, insn->len, &o) < 0)
		return "?";
	/* It was seen, so that there must be something. */
	of = valued_of(arch, &o, v->text);
	return of ? of : "?";
}

/*
 * The text before the values of an instruction: mostly a register. NULL: do not show them. It is
 * valid until the next call.
 */
static const char *preface_of(struct valued *v, uint32_t machine, const struct valued_insn *insn)
{
	enum vtrace_arch arch;
	bool known = valued_arch(machine, &arch) && insn->len;
	const char *text;

	if (v->opt->replay)
		return "distance";
	if (!v->loaded.dispatch)
		return known ? built_in_preface(v, arch, insn) : "?";
	v->word = known ? vtrace_insn_word(arch, insn->code, insn->len) : 0;
	text = v->loaded.dispatch->preface ? v->loaded.dispatch->preface(v->word) : "?";
	if (!text)
		return NULL;
	snprintf(v->text, sizeof(v->text), "%s", text);
	return v->text;
}

const char *valued_text(struct valued *v, uint64_t value)
{
	const char *text = NULL;

	if (v->loaded.dispatch && v->loaded.dispatch->format)
		text = v->loaded.dispatch->format(v->word, value);
	if (text)
		snprintf(v->text, sizeof(v->text), "%s", text);
	else if (v->opt->replay)
		snprintf(v->text, sizeof(v->text), "%" PRIu64 "%s", value & (REPLAY_FORWARDED - 1),
			 value & REPLAY_FORWARDED ? " forwarded" : "");
	else
		snprintf(v->text, sizeof(v->text), "0x%" PRIx64, value);
	return v->text;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* "eax: (51.1% 0x58a3de2) ..." with the @preface, appended to @to. */
static int put_values(struct valued *v, const char *preface, const struct hotlist_spot *s,
		      struct base_buf *to)
{
	size_t nr = s->nv < (size_t)v->opt->show ? s->nv : (size_t)v->opt->show, dots = 0;
	int r = base_buf_printf(to, "%s:", preface);

	for (size_t i = 0; i < nr && r >= 0; i++) {
		double percent = 100 * hotlist_share(s, i);

		/* All that follow are rarer. */
		if (percent < v->opt->cutoff || !valued_is_given(s, i))
			dots++;
		else
			r = base_buf_printf(to, " (%.1f%% %s)", percent,
					    valued_text(v, s->v[i].value));
	}
	if (r >= 0 && dots)
		r = base_buf_printf(to, " ");
	for (; dots && r >= 0; dots--)
		r = base_buf_printf(to, ".");
	return r;
}

void valued_columns(struct table *t)
{
	table_column(t, false, "vtot");
	table_column(t, false, "thld");
	table_column(t, false, "nv");
	table_column(t, true, "values");
}

void valued_cells_as(struct valued *v, const char *preface, const struct hotlist_spot *s,
		     struct table *t)
{
	struct base_buf text = { 0 };

	table_cell(t, "%" PRIu64, s->vtot);
	table_cell(t, "%" PRIu64, s->thld);
	table_cell(t, "%zu", s->nv);
	if (preface && put_values(v, preface, s, &text) >= 0)
		table_cell(t, "%.*s", (int)text.len, (const char *)text.data);
	else
		table_cell(t, "%s", "");
	base_buf_release(&text);
}

void valued_cells(struct valued *v, uint32_t machine, const struct valued_insn *insn,
		  const struct hotlist_spot *s, struct table *t)
{
	if (s && s->vtot) {
		valued_cells_as(v, preface_of(v, machine, insn), s, t);
		return;
	}
	for (int i = 0; i < 4; i++)
		table_cell(t, "%s", "");
}

void valued_head(const struct valued *v, uint64_t here, FILE *to)
{
	fprintf(to, "values     %" PRIu64 " seen here, '", here);
	report_print_clean(to, v->profiler);
	fputs(v->opt->concise ? "' (concise samples)\n" : "'\n", to);
	if (v->lists.nr_denied)
		fprintf(to, "           those of %zu more files are not yours to read\n",
			v->lists.nr_denied);
}

void valued_warn(const char *prog, const struct hotlists *lists, FILE *to)
{
	fflush(stdout);
	for (size_t i = 0; i < lists->nr_denied; i++)
		fprintf(to, "%s: warning: %s\n", prog, lists->denied[i].text);
	if (lists->nr_denied)
		fprintf(to, "hint: %s\n", lists->denied[0].hint);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

struct json_object *valued_json_as(struct valued *v, const char *preface,
				   const struct hotlist_spot *s)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();

	json_object_object_add(o, "vtot", json_object_new_uint64(s->vtot));
	json_object_object_add(o, "thld", json_object_new_uint64(s->thld));
	json_object_object_add(o, "nv", json_object_new_uint64(s->nv));
	json_object_object_add(o, "of", report_json_text(preface));
	for (size_t i = 0; preface && i < s->nv; i++) {
		struct json_object *pair = json_object_new_object();

		json_object_object_add(pair, "percent",
				       valued_is_given(s, i)
					       ? report_json_number(100 * hotlist_share(s, i))
					       : NULL);
		json_object_object_add(pair, "value", report_json_hex(s->v[i].value));
		json_object_object_add(pair, "text",
				       report_json_text(valued_text(v, s->v[i].value)));
		json_object_array_add(list, pair);
	}
	json_object_object_add(o, "values", list);
	return o;
}

struct json_object *valued_json(struct valued *v, uint32_t machine, const struct valued_insn *insn,
				const struct hotlist_spot *s)
{
	return s && s->vtot ? valued_json_as(v, preface_of(v, machine, insn), s) : NULL;
}

struct json_object *valued_head_json(const struct valued *v, uint64_t here)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "profiler", report_json_text(v->profiler));
	json_object_object_add(o, "concise", json_object_new_boolean(v->opt->concise));
	json_object_object_add(o, "seen", json_object_new_uint64(here));
	json_object_object_add(o, "unreadable_files", json_object_new_uint64(v->lists.nr_denied));
	return o;
}
