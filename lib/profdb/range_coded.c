/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many counts, in half the room: the numbers of CNTS through an adaptive binary range coder. Each
 * is its length in bits, then the bits below its first one; a model for the gaps, and one for each
 * event's counts. docs/format/dcpiformat.md has every number of it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

enum {
	HEAD = 8,
	ONE = 4096, /* a probability of 1 */
	SHIFT = 4,  /* how fast they follow what comes */
	LENGTH_BITS = 7,
	LENGTHS = 65, /* 0 to 64 */
	LEARNT = 7,   /* number of low bits with learnt probabilities */
	TOP = 1 << 24,
	TAIL = 5,	/* bytes by which the decoder is ahead */
	ROWS_A_BYTE = 4 /* so that who reads knows what memory a file may take */
};

/* Probabilities that the next bit is 0, by the bits of the number before it. */
struct model {
	uint16_t length[1 << LENGTH_BITS];
	uint16_t bit[LENGTHS][1 << LEARNT];
};

static struct model *models_new(size_t nr)
{
	struct model *m = malloc(nr * sizeof(*m));
	uint16_t *p = (uint16_t *)m;

	for (size_t i = 0; m && i < nr * sizeof(*m) / sizeof(*p); i++)
		p[i] = ONE / 2;
	return m;
}

static inline void learn(uint16_t *p, bool bit)
{
	*p = (uint16_t)(bit ? *p - (*p >> SHIFT) : *p + ((ONE - *p) >> SHIFT));
}

/* ---- writing --------------------------------------------------------------------------------- */

struct encoder {
	struct base_buf *out;
	uint64_t low;  /* 33 bits: the highest is a carry */
	uint64_t held; /* bytes that a carry may still change: one, then 0xff ones */
	uint32_t range;
	uint8_t first; /* first of the bytes held */
	int error;
};

static void shift_low(struct encoder *e)
{
	uint8_t carry = (uint8_t)(e->low >> 32), byte = (uint8_t)(e->first + carry);

	if (carry || e->low < 0xff000000) {
		for (; e->held && e->error >= 0; e->held--) {
			e->error = base_buf_append(e->out, &byte, 1);
			byte = (uint8_t)(0xff + carry);
		}
		e->first = (uint8_t)(e->low >> 24);
	}
	e->held++;
	e->low = (e->low & 0xffffff) << 8;
}

static void put_bit(struct encoder *e, uint16_t *p, bool bit)
{
	uint32_t zero = (e->range / ONE) * *p;

	if (bit)
		e->low += zero;
	e->range = bit ? e->range - zero : zero;
	learn(p, bit);
	for (; e->range < TOP; e->range <<= 8)
		shift_low(e);
}

static void put_plain(struct encoder *e, bool bit)
{
	e->range /= 2;
	if (bit)
		e->low += e->range;
	for (; e->range < TOP; e->range <<= 8)
		shift_low(e);
}

static unsigned int length_of(uint64_t v)
{
	return v ? 64 - (unsigned int)__builtin_clzll(v) : 0;
}

static void put_number(struct encoder *e, struct model *m, uint64_t v)
{
	unsigned int length = length_of(v), node = 1;

	for (int i = LENGTH_BITS - 1; i >= 0; i--) {
		put_bit(e, &m->length[node], length >> i & 1);
		node = node * 2 + (length >> i & 1);
	}
	node = 1;
	for (int i = (int)length - 2; i >= 0; i--) {
		bool bit = v >> i & 1;

		if ((int)length - 2 - i >= LEARNT) {
			put_plain(e, bit);
			continue;
		}
		put_bit(e, &m->bit[length][node], bit);
		node = node * 2 + bit;
	}
}

int profdb_range_coded_print(const struct profdb_profile *p, struct base_buf *out)
{
	struct encoder e = { .out = out, .held = 1, .range = UINT32_MAX };
	struct model *m = models_new(1 + p->nr_events);
	uint64_t next = 0;
	uint8_t head[HEAD];

	if (!m)
		return -ENOMEM;
	profdb_put64(head, p->counts.nr);
	e.error = base_buf_append(out, head, sizeof(head));
	for (size_t i = 0; e.error >= 0 && i < p->counts.nr; i++) {
		const struct profdb_entry *row = profdb_profile_entry(p, i);

		put_number(&e, &m[0], row->off - next);
		for (size_t k = 0; k < p->nr_events; k++)
			put_number(&e, &m[1 + k], row->count[k]);
		next = row->off + 1;
	}
	for (int i = 0; i < TAIL; i++)
		shift_low(&e);
	free(m);
	return e.error;
}

bool profdb_range_coded_fits(size_t nr_rows, size_t len)
{
	return nr_rows / ROWS_A_BYTE < len;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct decoder {
	const uint8_t *data;
	size_t len, pos; /* pos goes beyond len where it was cut */
	uint32_t range, code;
};

static uint8_t next_byte(struct decoder *d)
{
	uint8_t byte = d->pos < d->len ? d->data[d->pos] : 0;

	d->pos++;
	return byte;
}

static inline void refill(struct decoder *d)
{
	for (; d->range < TOP; d->range <<= 8)
		d->code = d->code << 8 | next_byte(d);
}

static inline bool get_bit(struct decoder *d, uint16_t *p)
{
	uint32_t zero = (d->range / ONE) * *p;
	bool bit = d->code >= zero;

	d->code -= bit ? zero : 0;
	d->range = bit ? d->range - zero : zero;
	learn(p, bit);
	refill(d);
	return bit;
}

static inline bool get_plain(struct decoder *d)
{
	bool bit;

	d->range /= 2;
	bit = d->code >= d->range;
	d->code -= bit ? d->range : 0;
	refill(d);
	return bit;
}

static int get_number(struct decoder *d, struct model *m, uint64_t *out)
{
	unsigned int length, node = 1;
	uint64_t v;

	while (node < 1 << LENGTH_BITS)
		node = node * 2 + get_bit(d, &m->length[node]);
	length = node - (1 << LENGTH_BITS);
	if (length >= LENGTHS)
		return -DCPI_EFORMAT;
	node = 1;
	v = length > 0;
	for (unsigned int i = 1; i < length; i++) {
		bool bit;

		if (i > LEARNT) {
			v = v * 2 + get_plain(d);
			continue;
		}
		bit = get_bit(d, &m->bit[length][node]);
		node = node * 2 + bit;
		v = v * 2 + bit;
	}
	*out = v;
	return 0;
}

static int get_row(struct decoder *d, struct model *m, struct profdb_rows *rows)
{
	uint64_t gap, count[PROFDB_NR_EVENTS];
	int r = get_number(d, m, &gap);

	for (size_t k = 0; r >= 0 && k < rows->p->nr_events; k++)
		r = get_number(d, &m[1 + k], &count[k]);
	if (r >= 0 && d->pos > d->len)
		r = -DCPI_EFORMAT;
	return r < 0 ? r : profdb_rows_take(rows, gap, count);
}

int profdb_range_coded_parse(const uint8_t *data, size_t len, struct profdb_profile *p)
{
	struct decoder d = { .data = data, .len = len, .pos = HEAD + 1, .range = UINT32_MAX };
	struct profdb_rows rows = { .p = p };
	struct model *m;
	uint64_t nr;
	int r = 0;

	if (len < HEAD + TAIL || data[HEAD])
		return -DCPI_EFORMAT;
	nr = profdb_get64(data);
	if (nr > SIZE_MAX || !profdb_range_coded_fits((size_t)nr, len))
		return -DCPI_EFORMAT;
	m = models_new(1 + p->nr_events);
	if (!m)
		return -ENOMEM;
	for (int i = 1; i < TAIL; i++)
		d.code = d.code << 8 | next_byte(&d);
	for (uint64_t i = 0; r >= 0 && i < nr; i++)
		r = get_row(&d, m, &rows);
	free(m);
	return r < 0 ? r : d.pos == len ? 0 : -DCPI_EFORMAT;
}
