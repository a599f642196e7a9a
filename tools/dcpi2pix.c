/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpi2pix: how often blocks ran, for programs that read pixie's files or callgrind's. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "feedback.h"
#include "report.h"
#include "tools.h"

static struct feedback feedback;
static const char *output;
static bool callgrind;

static const struct base_opt options[] = {
	FEEDBACK_OPTIONS(feedback),
	{ "conf_low", BASE_OPT_FLAG, &feedback.how.low, NULL, "Write estimates of any confidence.",
	  0, 0 },
	{ "conf_med", BASE_OPT_FLAG, &feedback.how.medium, NULL,
	  "Write those of medium and high confidence, else 0 (the default).", 0, 0 },
	{ "conf_high", BASE_OPT_FLAG, &feedback.how.high, NULL,
	  "Write those of high confidence, else 0.", 0, 0 },
	{ "callgrind", BASE_OPT_FLAG, &callgrind, NULL,
	  "Write one file as callgrind does, with executions by instruction and source line.", 0,
	  0 },
	{ "o", BASE_OPT_STRING, &output, "NAME",
	  "Write NAME.Addrs and NAME.Counts (default: the image's name), or with -callgrind NAME "
	  "(default: standard output).",
	  0, 0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpi2pix",
	.summary = "write how often blocks ran as pixie or callgrind would",
	.operands = "IMAGE [PROCEDURE …]",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpi2pix a.out", "a.out.Addrs and a.out.Counts, estimated." },
			{ "dcpi2pix -callgrind -o a.callgrind a.out; callgrind_annotate "
			  "a.callgrind",
			  "Executions by source line." },
			{ "dcpi2pix -callgrind -xct a.xct ./a.out main",
			  "Those that 'dcpix -o a ./a.out' counted, of one procedure." },
			{ NULL, NULL } },
	.min_operands = 1,
	.max_operands = -1,
};

/* One row: a block, or with -callgrind an instruction. */
struct row {
	uint64_t vaddr, count;
	const char *procedure; /* the symbol's own */
};

struct making {
	struct row *v;
	size_t nr, cap;
};

static uint64_t whole(double count)
{
	return count < 0 ? 0 : count < 0x1p63 ? (uint64_t)(count + 0.5) : (uint64_t)1 << 63;
}

static int add_row(struct making *m, const struct runs_procedure *p, uint64_t vaddr, double count)
{
	int r = base_grow(&m->v, &m->cap, m->nr + 1, sizeof(*m->v));

	if (r < 0)
		return r;
	m->v[m->nr++] =
		(struct row){ vaddr, p->view ? exact_view_executions(p->view, vaddr) : whole(count),
			      p->symbol->name };
	return 0;
}

static int add(void *context, const struct runs_procedure *p, struct base_err *err)
{
	struct making *m = context;
	int r = 0;

	for (uint32_t i = 0; i < p->flow->nr_blocks && r >= 0; i++) {
		const struct flow_block *b = &p->flow->blocks[i];
		uint32_t nr = callgrind ? b->nr_insns : 1;

		for (uint32_t k = 0; k < nr && r >= 0; k++)
			r = add_row(m, p, p->flow->insns[b->insn + k].vaddr, p->block[i]);
	}
	return r < 0 ? base_fail_errno(err, r, "cannot add '%s'", p->symbol->name) : 0;
}

static int by_vaddr(const void *pa, const void *pb)
{
	const struct row *a = pa, *b = pb;

	if (a->vaddr != b->vaddr)
		return a->vaddr < b->vaddr ? -1 : 1;
	return (a->count < b->count) - (a->count > b->count);
}

/* Two procedures may lead to one piece of code: it ran as often as either says. */
static void sort(struct making *m)
{
	size_t nr = 0;

	if (m->nr)
		qsort(m->v, m->nr, sizeof(*m->v), by_vaddr);
	for (size_t i = 0; i < m->nr; i++)
		if (!nr || m->v[nr - 1].vaddr != m->v[i].vaddr)
			m->v[nr++] = m->v[i];
	m->nr = nr;
}

static int sum_of(const struct making *m, uint64_t *sum)
{
	*sum = 0;
	for (size_t i = 0; i < m->nr; i++)
		if (base_add_overflow(*sum, m->v[i].count, sum))
			return -DCPI_EOVERFLOW;
	return 0;
}

/* ---- pixie ----------------------------------------------------------------------------------- */

static int put_words(const struct making *m, bool counts, struct base_buf *out)
{
	int r = 0;

	for (size_t i = 0; i < m->nr && r >= 0; i++) {
		uint64_t word = counts ? m->v[i].count : m->v[i].vaddr;
		uint8_t bytes[8];

		for (int k = 0; k < 8; k++)
			bytes[k] = (uint8_t)(word >> 8 * k);
		r = base_buf_append(out, bytes, sizeof(bytes));
	}
	return r;
}

/* NULL where memory lacks. */
static char *pixie_path(const struct feedback *f, bool counts)
{
	char *path = NULL;

	if (asprintf(&path, "%s.%s", output ? output : base_path_name(f->image),
		     counts ? "Counts" : "Addrs") < 0)
		return NULL;
	return path;
}

static int put_file(const struct making *m, const struct feedback *f, bool counts,
		    struct base_err *err)
{
	struct base_buf text = { 0 };
	char *path = pixie_path(f, counts);
	int r = path ? put_words(m, counts, &text) : -ENOMEM;

	if (r >= 0)
		r = base_file_write(AT_FDCWD, path, 0644, text.data, text.len, err);
	else
		base_fail_errno(err, r, "cannot write counts of '%s'", f->image);
	free(path);
	base_buf_release(&text);
	return r;
}

static int put_pixie(const struct making *m, const struct feedback *f, struct base_err *err)
{
	int r = put_file(m, f, false, err);

	return r < 0 ? r : put_file(m, f, true, err);
}

/* ---- callgrind ------------------------------------------------------------------------------- */

/* @what with what parts it from the name. */
static int put_name(struct base_buf *out, const char *what, const char *name)
{
	char *copy = strdup(name);
	int r = copy ? base_buf_printf(out, "%s%s\n", what, table_clean(copy)) : -ENOMEM;

	free(copy);
	return r;
}

static int put_head(const struct making *m, const struct feedback *f, struct base_buf *out)
{
	uint64_t sum;
	char unit[300];
	int r = sum_of(m, &sum);

	if (r < 0)
		return r;
	feedback_unit(f, unit, sizeof(unit));
	r = base_buf_printf(out, "# callgrind format\nversion: 1\ncreator: dcpi2pix-%s\n",
			    base_release());
	if (r >= 0)
		r = put_name(out, "cmd: ", f->image);
	if (r >= 0)
		r = base_buf_printf(out, "desc: Ir: instructions: %s\n", unit);
	if (r >= 0)
		r = base_buf_printf(
			out, "positions: instr line\nevents: Ir\nsummary: %" PRIu64 "\n\n", sum);
	return r < 0 ? r : put_name(out, "ob=", f->image);
}

/* Lines are told of the file and the function that were named last. */
static int put_rows(const struct making *m, const struct feedback *f, struct base_buf *out)
{
	const char *procedure = NULL, *file = NULL;
	int r = 0;

	for (size_t i = 0; i < m->nr && r >= 0; i++) {
		const struct row *row = &m->v[i];
		struct image_line at;
		bool other = procedure != row->procedure;

		if (!row->count)
			continue;
		if (image_line_at(f->runs.img, row->vaddr, &at) < 0)
			at = (struct image_line){ .file = "???" };
		if (other || !file || strcmp(file, at.file) != 0)
			r = put_name(out, other ? "fl=" : "fi=", at.file);
		if (r >= 0 && other)
			r = put_name(out, "fn=", row->procedure);
		procedure = row->procedure;
		file = at.file;
		if (r >= 0)
			r = base_buf_printf(out, "0x%" PRIx64 " %u %" PRIu64 "\n", row->vaddr,
					    at.line, row->count);
	}
	return r;
}

static int put_callgrind(const struct making *m, const struct feedback *f, struct base_err *err)
{
	struct base_buf text = { 0 };
	int r = put_head(m, f, &text);

	if (r >= 0)
		r = put_rows(m, f, &text);
	if (r < 0)
		base_fail_errno(err, r, "cannot write counts of '%s'", f->image);
	else if (output)
		r = base_output_write(output, 0644, text.data, text.len, err);
	else if (!f->sel.json &&
		 (fwrite(text.data, 1, text.len, stdout) != text.len || fflush(stdout) != 0))
		r = base_fail_errno(err, -errno, "cannot write counts");
	base_buf_release(&text);
	return r;
}

/* ---- what is not covered --------------------------------------------------------------------- */

/* Samples of a procedure (NULL: of none) at instructions that have no count. */
struct lost {
	const char *procedure;
	uint64_t samples;
};

struct uncovered {
	uint64_t samples, all;
	struct lost *v;
	size_t nr, cap;
};

static int by_address(const void *key, const void *row)
{
	uint64_t vaddr = *(const uint64_t *)key, other = ((const struct row *)row)->vaddr;

	return (vaddr > other) - (vaddr < other);
}

static bool is_covered(const struct making *m, uint64_t vaddr)
{
	const struct row *row = bsearch(&vaddr, m->v, m->nr, sizeof(*m->v), by_address);

	return row && row->count;
}

static int add_lost(struct uncovered *u, const char *procedure, uint64_t samples)
{
	int r = 0;

	u->samples += samples;
	if (!u->nr || u->v[u->nr - 1].procedure != procedure) {
		r = base_grow(&u->v, &u->cap, u->nr + 1, sizeof(*u->v));
		if (r >= 0)
			u->v[u->nr++] = (struct lost){ procedure, 0 };
	}
	if (r >= 0)
		u->v[u->nr - 1].samples += samples;
	return r;
}

static int by_lost(const void *pa, const void *pb)
{
	const struct lost *a = pa, *b = pb;

	if (a->samples != b->samples)
		return a->samples > b->samples ? -1 : 1;
	return strcmp(a->procedure ? a->procedure : "", b->procedure ? b->procedure : "");
}

/* Adds up the image's samples of the event that the estimates are from. */
static int find_uncovered(const struct making *m, const struct feedback *f, struct uncovered *u)
{
	const struct analysis_image *ai = f->runs.ai;
	int r = 0;

	for (size_t i = 0; i < profdb_profile_nr_entries(ai->profile) && r >= 0; i++) {
		const struct profdb_entry *e = profdb_profile_entry(ai->profile, i);
		const struct image_symbol *s = NULL;
		uint64_t count[ANALYSIS_NR_EVENTS] = { 0 }, vaddr = 0;
		bool placed = image_vaddr(f->runs.img, e->off, &vaddr) >= 0;

		analysis_entry_add(ai, e, count, NULL);
		u->all += count[f->runs.event];
		if (!count[f->runs.event] || (placed && is_covered(m, vaddr)))
			continue;
		if (placed)
			s = image_symbol_at(f->runs.img, vaddr);
		r = add_lost(u, s ? s->name : NULL, count[f->runs.event]);
	}
	if (u->nr)
		qsort(u->v, u->nr, sizeof(*u->v), by_lost);
	return r;
}

enum { LOST_SHOWN = 5 };

static void print_uncovered(const struct feedback *f, const struct uncovered *u)
{
	fprintf(stderr,
		"%s: warning: %" PRIu64 " of %" PRIu64 " samples (%.1f%%) are at instructions that "
		"have no count here: ",
		cmd.name, u->samples, u->all, 100.0 * (double)u->samples / (double)u->all);
	for (size_t i = 0; i < u->nr && i < LOST_SHOWN; i++) {
		fputs(i ? ", " : "", stderr);
		report_print_name(stderr, u->v[i].procedure ? u->v[i].procedure : "(no symbol)");
		fprintf(stderr, " %" PRIu64, u->v[i].samples);
	}
	if (u->nr > LOST_SHOWN)
		fprintf(stderr, ", and %zu more", u->nr - LOST_SHOWN);
	fprintf(stderr, "\nhint: %s'dcpiexport callgrind' writes samples, and all of them\n",
		f->how.low ? "" : "-conf_low writes estimates of any confidence; ");
}

/* Counts are exact, or estimates, of which some are not sure enough, or cannot be made. */
static int tell_uncovered(const struct making *m, const struct feedback *f, struct base_err *err)
{
	struct uncovered u = { 0 };
	int r = f->runs.exact ? 0 : find_uncovered(m, f, &u);

	if (u.samples && r >= 0)
		print_uncovered(f, &u);
	free(u.v);
	return r < 0 ? base_fail_errno(err, r, "cannot add up the samples of '%s'", f->image) : 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void add_files(struct json_object *root, const struct feedback *f)
{
	if (callgrind) {
		done_file(root, output);
		return;
	}
	for (int counts = 0; counts < 2; counts++) {
		char *path = pixie_path(f, counts);

		done_file(root, path);
		free(path);
	}
}

static int tell(const struct making *m, const struct feedback *f, struct base_err *err)
{
	struct json_object *root;
	uint64_t sum, known = 0;
	int r = sum_of(m, &sum);

	if (r < 0)
		return base_fail_errno(err, r, "cannot add the counts of '%s'", f->image);
	for (size_t i = 0; i < m->nr; i++)
		known += m->v[i].count > 0;
	root = feedback_json(f, "dcpi2pix/1");
	add_files(root, f);
	json_object_object_add(root, "form",
			       json_object_new_string(callgrind ? "callgrind" : "pixie"));
	json_object_object_add(root, callgrind ? "instructions" : "blocks",
			       json_object_new_uint64(m->nr));
	json_object_object_add(root, "above_zero", json_object_new_uint64(known));
	json_object_object_add(root, "sum", json_object_new_uint64(sum));
	return done_print(root, err);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int finish(void *context, struct feedback *f, struct base_err *err)
{
	struct making *m = context;
	int r;

	sort(m);
	r = callgrind ? put_callgrind(m, f, err) : put_pixie(m, f, err);
	if (r >= 0 && callgrind)
		r = tell_uncovered(m, f, err);
	return r >= 0 && f->sel.json ? tell(m, f, err) : r;
}

static int dcpi2pix_main(int argc, char **argv)
{
	struct base_err err = { 0 };
	struct making m = { 0 };
	int r = base_opt_parse(&cmd, &argc, &argv, &err);

	if (r == BASE_OPT_DONE)
		return BASE_EXIT_OK;
	if (r >= 0)
		r = feedback_check(&feedback, FREQ_MEDIUM, &err);
	if (r >= 0)
		r = feedback_run(&feedback, cmd.name, argc, argv, add, finish, &m, &err);
	free(m.v);
	return report_end(&cmd, r, &err);
}

const struct tool dcpi2pix_tool = { .cmd = &cmd, .main = dcpi2pix_main };
