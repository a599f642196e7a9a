/* SPDX-License-Identifier: BSD-2-Clause */
/* Metrics of instruction samples: their text is parsed, and they are added up. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "isample.h"

/* Bits of the original that no hardware of today tells. */
static const char *const unknown_today[] = {
	"nyp",	     "ldstorder",  "map_stall",	     "early_kill",  "late_kill",
	"capped",    "twnzrd",	   "replays",	     "unaligntrap", "dtb2miss3",
	"dtb2miss4", "arithtrap",  "fpdisabledtrap", "MT_FPCRtrap", "dfaulttrap",
	"iacvtrap",  "OPCDECtrap", "interrupt",	     "mchktrap",
};

struct piece {
	const char *at;
	size_t len;
};

static bool is(const struct piece *p, const char *word)
{
	return strlen(word) == p->len && !strncmp(p->at, word, p->len);
}

static int refuse(const struct piece *p, const char *what, struct base_err *err)
{
	base_fail(err, -DCPI_EUSAGE, "'%.*s' is no %s of instruction samples",
		  p->len < 60 ? (int)p->len : 60, p->at, what);
	for (size_t i = 0; i < sizeof(unknown_today) / sizeof(*unknown_today); i++)
		if (is(p, unknown_today[i])) {
			base_hint(err, "no hardware of today tells it");
			return -DCPI_EUSAGE;
		}
	base_hint(err, "dcpiprofileme -names lists bits and counters");
	return -DCPI_EUSAGE;
}

/* "NAME", "!NAME"; "notrap" is the original's for "!trap". */
static int take_bit(struct isample_metric *m, struct piece p, struct base_err *err)
{
	const struct piece whole = p;
	bool set = true;
	uint64_t bit = 0;

	for (; p.len && *p.at == '!'; p.at++, p.len--)
		set = !set;
	if (is(&p, "notrap")) {
		p = (struct piece){ "trap", 4 };
		set = !set;
	}
	for (int i = 0; i < ISAMPLE_NR_BITS; i++)
		if (is(&p, isample_bit_name((enum isample_bit)i)))
			bit = ISAMPLE_BIT(i);
	if (!bit)
		return refuse(&p, "bit", err);
	if (m->want & bit && !(m->set & bit) == set)
		return base_fail(err, -DCPI_EUSAGE, "'%.*s' contradicts what stands before it",
				 (int)whole.len, whole.at);
	m->want |= bit;
	m->set |= set ? bit : 0;
	return 0;
}

static int take_counter(struct isample_metric *m, const struct piece *p, struct base_err *err)
{
	if (is(p, "count"))
		return 0;
	for (int i = 0; i < ISAMPLE_NR_COUNTERS; i++)
		if (is(p, isample_counter_name((enum isample_counter)i))) {
			m->counter = i;
			m->want |= ISAMPLE_HAS(i);
			return 0;
		}
	return refuse(p, "counter", err);
}

/* The piece up to @end, or all; @from moves behind it. */
static struct piece cut(struct piece *from, char end)
{
	const char *at = memchr(from->at, end, from->len);
	struct piece p = { from->at, at ? (size_t)(at - from->at) : from->len };
	size_t len = p.len + (at != NULL);

	from->at += len;
	from->len -= len;
	return p;
}

static int parse_metric(struct isample_metric *m, struct piece text, struct base_err *err)
{
	struct piece bits = cut(&text, ':'), counter = text;
	int r = 0;

	*m = (struct isample_metric){ .counter = -1 };
	if (bits.at[bits.len] == ':')
		r = take_counter(m, &counter, err);
	if (is(&bits, "count") || (!bits.len && counter.len))
		return r;
	do
		r = r < 0 ? r : take_bit(m, cut(&bits, '^'), err);
	while (r >= 0 && bits.at[-1] == '^');
	return r;
}

static int parse_column(struct isample_column *c, struct piece text, struct base_err *err)
{
	struct piece of;
	int r;

	*c = (struct isample_column){ 0 };
	if (text.len >= sizeof(c->text))
		return base_fail(err, -DCPI_EUSAGE, "a metric of more than %zu bytes",
				 sizeof(c->text) - 1);
	memcpy(c->text, text.at, text.len);
	of = cut(&text, '/');
	c->ratio = of.at[of.len] == '/';
	/* Pieces of the copy end where they seem to. */
	r = parse_metric(&c->of, (struct piece){ c->text, of.len }, err);
	c->of.need = c->of.want;
	if (r >= 0 && c->ratio)
		r = parse_metric(&c->by, (struct piece){ c->text + of.len + 1, text.len }, err);
	if (r >= 0 && c->ratio)
		c->of.need = c->by.need = c->of.want | c->by.want;
	return r;
}

int isample_columns_parse(struct isample_columns *c, const char *text, struct base_err *err)
{
	struct piece all = { text, strlen(text) };
	int r = 0;

	do {
		if (c->nr == ISAMPLE_NR_COLUMNS)
			return base_fail(err, -DCPI_EUSAGE, "more than %d metrics",
					 ISAMPLE_NR_COLUMNS);
		r = parse_column(&c->v[c->nr], cut(&all, ','), err);
		c->nr += r >= 0;
	} while (r >= 0 && all.at[-1] == ',');
	return r;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static void add(uint64_t *to, uint64_t n)
{
	if (base_add_overflow(*to, n, to))
		*to = UINT64_MAX;
}

void isample_value_add(struct isample_value *v, const struct isample_metric *m, uint64_t known,
		       uint64_t bits, uint64_t count, const uint64_t *sum)
{
	uint64_t want = m->want & ISAMPLE_ALL_BITS;

	if ((known & m->need) != m->need)
		return;
	add(&v->told, count);
	if ((bits & want) == m->set)
		add(&v->value, m->counter < 0 ? count : sum[m->counter]);
}

double isample_column_value(const struct isample_column *c, const struct isample_value *of,
			    const struct isample_value *by)
{
	if (!of->told || (c->ratio && (!by->told || !by->value)))
		return NAN;
	return c->ratio ? (double)of->value / (double)by->value : (double)of->value;
}
