/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replicates: parts of the samples, by machine and epoch, whose differences show how samples vary.
 * They are divided as dcpiregress divides those of a database (tools/regress_sets.c): each machine
 * and epoch is one; where these are too many, each has several epochs, and then several machines.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fetch.h"

/* ---- which rows ------------------------------------------------------------------------------ */

/* Asks for the different values of a column, in order. */
static int ask_distinct(struct fetch *f, const char *column, const char *as, unsigned int limit,
			struct base_buf *answer, struct base_err *err)
{
	struct base_buf sql = { 0 };
	int r = base_buf_printf(&sql, "SELECT %s FROM totals WHERE %s%s%s GROUP BY %s ORDER BY %s",
				as, fetch_text(&f->where), fetch_text(&f->event),
				fetch_text(&f->labels), column, column);

	if (r >= 0 && limit)
		r = base_buf_printf(&sql, " LIMIT %u", limit);
	if (r >= 0)
		r = base_buf_printf(&sql, " FORMAT RowBinary");
	if (r >= 0)
		r = store_ask(f->s, (const char *)sql.data, answer, err);
	base_buf_release(&sql);
	return r;
}

/* The list of platforms, quoted; returns how many, or negative. */
static int quote_platforms(const struct base_buf *answer, struct base_buf *list)
{
	struct store_reader reader = { answer->data, answer->data + answer->len, false };
	int nr = 0, r = 0;

	for (; r >= 0 && reader.at < reader.end; nr++) {
		size_t len;
		const char *text = store_get_string(&reader, &len);

		if (!text)
			return -EHOSTUNREACH;
		r = nr ? base_buf_printf(list, ", ") : 0;
		if (r >= 0)
			r = store_quote(list, text, len);
	}
	return r < 0 ? r : nr;
}

/* transform(platform, [NAMES], [0, PER, 2 PER …], 0): the first replicate of a machine. */
static int add_machine(struct fetch *f, const char *names, size_t nr, size_t per)
{
	int r = base_buf_printf(&f->replicate, "toUInt8(transform(platform, [%s], [", names);

	for (size_t i = 0; i < nr && r >= 0; i++)
		r = base_buf_printf(&f->replicate, "%s%zu", i ? ", " : "", i * per);
	return r < 0 ? r : base_buf_printf(&f->replicate, "], 0)");
}

/* + (epoch >= BEGIN) …: how many of the machine's replicates are earlier. Version 18 does not find
 * a column that only a lambda names. */
static int add_epochs(struct fetch *f, const struct base_buf *epochs, size_t per)
{
	size_t nr = epochs->len / 4;
	int r = 0;

	for (size_t i = 1; i < per && r >= 0; i++) {
		const uint8_t *at = epochs->data + i * nr / per * 4;
		struct store_reader reader = { at, at + 4, false };

		r = base_buf_printf(&f->replicate, " + (toUInt32(epoch) >= %u)",
				    (unsigned int)store_get_number(&reader, 4));
	}
	return r < 0 ? r : base_buf_printf(&f->replicate, ")");
}

/* A machine's name tells its replicate where there are more machines than replicates. */
static int add_hash(struct fetch *f)
{
	return base_buf_printf(&f->replicate,
			       "bitAnd(reinterpretAsUInt8(substring(SHA256(platform), 1, 1)), %d)",
			       STORE_REPLICATES - 1);
}

static int divide(struct fetch *f, const char *names, size_t nr, struct base_err *err)
{
	struct base_buf epochs = { 0 };
	int r = ask_distinct(f, "epoch", "toUInt32(epoch)", 0, &epochs, err);
	size_t per = epochs.len / 4;

	if (per > STORE_REPLICATES / nr)
		per = STORE_REPLICATES / nr;
	f->replicate_epochs = per > 1;
	if (r >= 0)
		r = add_machine(f, names, nr, per);
	if (r >= 0)
		r = add_epochs(f, &epochs, per);
	base_buf_release(&epochs);
	return r;
}

int fetch_find_replicates(struct fetch *f, struct base_err *err)
{
	struct base_buf platforms = { 0 }, names = { 0 };
	int r = ask_distinct(f, "platform", "platform", STORE_REPLICATES + 1, &platforms, err), nr;

	nr = r < 0 ? r : quote_platforms(&platforms, &names);
	if (nr == -EHOSTUNREACH)
		base_fail(err, nr, "the server's answer is malformed");
	if (nr > STORE_REPLICATES)
		r = add_hash(f);
	else
		r = nr <= 0 ? nr : divide(f, fetch_text(&names), (size_t)nr, err);
	base_buf_release(&platforms);
	base_buf_release(&names);
	return r;
}

/* ---- their samples --------------------------------------------------------------------------- */

static int find_workload(struct fetch_replicates *x, unsigned long number)
{
	char name[32];
	const struct profdb_workload k = {
		.comm = name, .exe = "", .cgroup = "", .label = "", .thread = "", .uid = UINT32_MAX
	};
	int w;

	if (x->workload[number])
		return x->workload[number] - 1;
	snprintf(name, sizeof(name), "replicate %lu", number);
	w = profdb_workloads_workload_add(x->w, &k);
	if (w >= 0)
		x->workload[number] = w + 1;
	return w;
}

static int find_image(struct fetch_replicates *x, struct fetch_profile *p)
{
	enum profdb_kind kind = profdb_profile_kind(p->p);
	const char *path = profdb_profile_path(p->p, 0);
	struct profdb_image_ref ref = { .kind = kind,
					.id = *profdb_profile_image(p->p),
					.path = path,
					.stem = kind == PROFDB_DYNAMIC ? path : NULL };
	int i = p->replicated ? p->replicated - 1 : profdb_workloads_image_add(x->w, &ref);

	if (i >= 0)
		p->replicated = i + 1;
	return i;
}

int fetch_replicates_add(struct fetch *f, struct fetch_profile *p, const char *text, size_t event,
			 uint64_t off, uint64_t n)
{
	const struct profdb_event *e = profdb_profile_event(p->p, event);
	struct fetch_replicates *x = &f->replicates;
	unsigned long number = strtoul(text, NULL, 10);
	int w, i, at;

	if (!x->w && !(x->w = profdb_workloads_new()))
		return -ENOMEM;
	if (number >= STORE_REPLICATES)
		return -EINVAL;
	w = find_workload(x, number);
	i = w < 0 ? w : find_image(x, p);
	at = i < 0 ? i : profdb_workloads_event_add(x->w, e->name, e->period);
	return at < 0 ? at
		      : profdb_workloads_add(x->w, (uint32_t)w, (uint32_t)i, off, (size_t)at,
					     f->begin / 60, n);
}
