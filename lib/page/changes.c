/* SPDX-License-Identifier: BSD-2-Clause */
/* The comparison of a page: how each procedure's share of the samples changed. */
#include "demangle.h"
#include "diff.h"
#include "page_internal.h"

/* Rows beyond these have next to no samples; their sums are told. */
enum { ROWS_MAX = 4000 };

static const char *code_text(enum analysis_code code)
{
	static const char *const texts[] = {
		[ANALYSIS_CODE_NONE] = "",
		[ANALYSIS_CODE_EQUAL] = "equal",
		[ANALYSIS_CODE_OPERANDS] = "bytes differ only in operands",
		[ANALYSIS_CODE_DIFFERS] = "differ",
		[ANALYSIS_CODE_ONLY_A] = "only before",
		[ANALYSIS_CODE_ONLY_B] = "only now",
		[ANALYSIS_CODE_UNKNOWN] = "bytes missing",
	};

	return texts[code];
}

/* [name, image, row now or -1, before, now, standard error of the share, changed, code] */
static void put_row(struct jwrite *j, const struct page *p, const struct analysis_diff_row *d)
{
	size_t at = d->row[1] ? (size_t)(d->row[1] - p->procedures.v) : SIZE_MAX;

	jwrite_line(j);
	jwrite_open(j, NULL, '[');
	jwrite_text(j, NULL, demangle_shown(analysis_diff_label(d)));
	jwrite_text(j, NULL, analysis_diff_image(d));
	jwrite_int(j, NULL, at < p->nr_shown ? (int64_t)at : -1);
	jwrite_count(j, NULL, d->count[0]);
	jwrite_count(j, NULL, d->count[1]);
	jwrite_real(j, NULL, d->error);
	jwrite_count(j, NULL, d->change != 0);
	jwrite_text(j, NULL, code_text(d->code));
	jwrite_close(j, ']');
}

static void put_rows(struct jwrite *j, const struct page *p, const struct analysis_diff *d)
{
	uint64_t rest[2] = { 0 };
	size_t nr = d->nr < ROWS_MAX ? d->nr : ROWS_MAX;

	jwrite_open(j, "rows", '[');
	for (size_t i = 0; i < nr; i++)
		put_row(j, p, &d->v[i]);
	jwrite_close(j, ']');
	for (size_t i = nr; i < d->nr; i++)
		for (int set = 0; set < 2; set++)
			rest[set] += d->v[i].count[set];
	jwrite_count(j, "left_out", d->nr - nr);
	jwrite_open(j, "rest", '[');
	jwrite_count(j, NULL, rest[0]);
	jwrite_count(j, NULL, rest[1]);
	jwrite_close(j, ']');
}

int page_changes(struct page *p, struct jwrite *j, struct base_err *err)
{
	struct analysis_rows before = { .code = true };
	struct analysis *const a[2] = { p->o->before, p->a };
	struct analysis_rows *const rows[2] = { &before, &p->procedures };
	const size_t event[2] = { p->o->before_event, p->o->event };
	struct analysis_diff d = { 0 };
	int r = page_rows(p->o->before, false, &before);

	if (r >= 0)
		r = analysis_diff_rows(a, rows, event, &d);
	if (r >= 0) {
		jwrite_line(j);
		jwrite_open(j, "before", '{');
		page_source(j, p->o->before);
		jwrite_count(j, "event", p->o->before_event);
		jwrite_real(j, "bound", d.bound);
		jwrite_open(j, "total", '[');
		jwrite_count(j, NULL, d.total[0]);
		jwrite_count(j, NULL, d.total[1]);
		jwrite_close(j, ']');
		put_rows(j, p, &d);
		jwrite_close(j, '}');
	}
	analysis_diff_release(&d);
	analysis_rows_release(&before);
	return r < 0 ? base_fail_errno(err, r, "cannot compare") : j->r;
}
