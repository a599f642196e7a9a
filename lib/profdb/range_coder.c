/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers through an adaptive binary range coder: each is its length in bits, then the bits below
 * its first one, and each model learns from its numbers. docs/format/dcpiformat.md has every number
 * of it.
 */
#include <errno.h>
#include <stdlib.h>

#include "profdb_internal.h"

enum {
	ONE = 4096, /* a probability of 1 */
	SHIFT = 4,  /* how fast they follow what comes */
	TOP = 1 << 24,
	ROWS_A_BYTE = 4 /* at most */
};

uint64_t profdb_range_least(uint64_t nr_rows)
{
	return nr_rows / ROWS_A_BYTE + 1;
}

/* A probability is kept as 0 where it is one half: most of them are never touched. */
struct profdb_range_model *profdb_range_models(size_t nr)
{
	return calloc(nr, sizeof(struct profdb_range_model));
}

static inline uint32_t probability(const uint16_t *p)
{
	return *p ^ ONE / 2;
}

static inline void learn(uint16_t *p, bool bit)
{
	uint32_t now = probability(p);

	now = bit ? now - (now >> SHIFT) : now + ((ONE - now) >> SHIFT);
	*p = (uint16_t)(now ^ ONE / 2);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void shift_low(struct profdb_range_encoder *e)
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

static void put_bit(struct profdb_range_encoder *e, uint16_t *p, bool bit)
{
	uint32_t zero = (e->range / ONE) * probability(p);

	if (bit)
		e->low += zero;
	e->range = bit ? e->range - zero : zero;
	learn(p, bit);
	for (; e->range < TOP; e->range <<= 8)
		shift_low(e);
}

static void put_plain(struct profdb_range_encoder *e, bool bit)
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

void profdb_range_put(struct profdb_range_encoder *e, struct profdb_range_model *m, uint64_t v)
{
	unsigned int length = length_of(v), node = 1;

	for (int i = PROFDB_RANGE_LENGTH_BITS - 1; i >= 0; i--) {
		put_bit(e, &m->length[node], length >> i & 1);
		node = node * 2 + (length >> i & 1);
	}
	node = 1;
	for (int i = (int)length - 2; i >= 0; i--) {
		bool bit = v >> i & 1;

		if ((int)length - 2 - i >= PROFDB_RANGE_LEARNT) {
			put_plain(e, bit);
			continue;
		}
		put_bit(e, &m->bit[length][node], bit);
		node = node * 2 + bit;
	}
}

void profdb_range_begin(struct profdb_range_encoder *e, struct base_buf *out)
{
	*e = (struct profdb_range_encoder){ .out = out, .held = 1, .range = UINT32_MAX };
}

int profdb_range_end(struct profdb_range_encoder *e)
{
	for (int i = 0; i < PROFDB_RANGE_TAIL; i++)
		shift_low(e);
	return e->error;
}

/* ---- reading --------------------------------------------------------------------------------- */

static uint8_t next_byte(struct profdb_range_decoder *d)
{
	uint8_t byte = d->pos < d->len ? d->data[d->pos] : 0;

	d->pos++;
	return byte;
}

static inline void refill(struct profdb_range_decoder *d)
{
	for (; d->range < TOP; d->range <<= 8)
		d->code = d->code << 8 | next_byte(d);
}

static inline bool get_bit(struct profdb_range_decoder *d, uint16_t *p)
{
	uint32_t zero = (d->range / ONE) * probability(p);
	bool bit = d->code >= zero;

	d->code -= bit ? zero : 0;
	d->range = bit ? d->range - zero : zero;
	learn(p, bit);
	refill(d);
	return bit;
}

static inline bool get_plain(struct profdb_range_decoder *d)
{
	bool bit;

	d->range /= 2;
	bit = d->code >= d->range;
	d->code -= bit ? d->range : 0;
	refill(d);
	return bit;
}

int profdb_range_open(struct profdb_range_decoder *d, const uint8_t *data, size_t len)
{
	*d = (struct profdb_range_decoder){
		.data = data, .len = len, .pos = 1, .range = UINT32_MAX
	};
	if (len < PROFDB_RANGE_TAIL || data[0])
		return -DCPI_EFORMAT;
	for (int i = 1; i < PROFDB_RANGE_TAIL; i++)
		d->code = d->code << 8 | next_byte(d);
	return 0;
}

int profdb_range_get(struct profdb_range_decoder *d, struct profdb_range_model *m, uint64_t *out)
{
	unsigned int length, node = 1;
	uint64_t v;

	while (node < 1 << PROFDB_RANGE_LENGTH_BITS)
		node = node * 2 + get_bit(d, &m->length[node]);
	length = node - (1 << PROFDB_RANGE_LENGTH_BITS);
	if (length >= PROFDB_RANGE_LENGTHS)
		return -DCPI_EFORMAT;
	node = 1;
	v = length > 0;
	for (unsigned int i = 1; i < length; i++) {
		bool bit;

		if (i > PROFDB_RANGE_LEARNT) {
			v = v * 2 + get_plain(d);
			continue;
		}
		bit = get_bit(d, &m->bit[length][node]);
		node = node * 2 + bit;
		v = v * 2 + bit;
	}
	*out = v;
	return d->pos > d->len ? -DCPI_EFORMAT : 0;
}
