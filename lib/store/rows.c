/* SPDX-License-Identifier: BSD-2-Clause */
/* Values are written and read in ClickHouse's format RowBinary: little-endian, lengths as varints.
 */
#include <errno.h>
#include <string.h>

#include "store.h"

int store_put_array(struct base_buf *to, uint64_t nr, const struct base_buf *values)
{
	int r = base_buf_append_leb128(to, nr);

	return r < 0 || !nr ? r : base_buf_append(to, values->data, values->len);
}

int store_put_string(struct base_buf *to, const void *text, size_t len)
{
	int r = base_buf_append_leb128(to, len);

	return r < 0 ? r : base_buf_append(to, text, len);
}

int store_put_text(struct base_buf *to, const char *text)
{
	return store_put_string(to, text ? text : "", text ? strlen(text) : 0);
}

const void *store_get_bytes(struct store_reader *r, size_t len)
{
	const void *at = r->at;

	if (r->bad || len > (size_t)(r->end - r->at)) {
		r->bad = true;
		return NULL;
	}
	r->at += len;
	return at;
}

uint64_t store_get_number(struct store_reader *r, size_t bytes)
{
	const uint8_t *v = store_get_bytes(r, bytes);
	uint64_t value = 0;

	for (size_t i = 0; v && i < bytes; i++)
		value |= (uint64_t)v[i] << 8 * i;
	return value;
}

size_t store_get_count(struct store_reader *r, size_t least)
{
	uint64_t value = 0;
	const uint8_t *v;
	unsigned int shift = 0;

	do {
		v = store_get_bytes(r, 1);
		if (!v || shift > 63 || (shift == 63 && *v > 1)) {
			r->bad = true;
			return 0;
		}
		value |= (uint64_t)(*v & 0x7f) << shift;
		shift += 7;
	} while (*v & 0x80);
	if (value > (size_t)(r->end - r->at) / (least ? least : 1)) {
		r->bad = true;
		return 0;
	}
	return value;
}

const char *store_get_string(struct store_reader *r, size_t *len)
{
	*len = store_get_count(r, 1);
	return store_get_bytes(r, *len);
}

/* ---- offsets --------------------------------------------------------------------------------- */

int store_offsets_add(struct store_offsets *x, uint64_t off, uint64_t count)
{
	bool far = off > UINT32_MAX || count > UINT16_MAX;
	int r;

	if (far) {
		x->nr_far++;
		r = base_buf_append_le(&x->far, off, 8);
		return r < 0 ? r : base_buf_append_le(&x->nfar, count, 8);
	}
	x->nr++;
	r = base_buf_append_le(&x->lo, off & UINT16_MAX, 2);
	if (r >= 0)
		r = base_buf_append_le(&x->hi, off >> 16, 2);
	if (r >= 0)
		r = base_buf_append_le(&x->nlo, count & UINT8_MAX, 1);
	return r < 0 ? r : base_buf_append_le(&x->nhi, count >> 8, 1);
}

int store_offsets_put(const struct store_offsets *x, struct base_buf *row)
{
	int r = store_put_array(row, x->nr, &x->lo);

	if (r >= 0)
		r = store_put_array(row, x->nr, &x->hi);
	if (r >= 0)
		r = store_put_array(row, x->nr, &x->nlo);
	if (r >= 0)
		r = store_put_array(row, x->nr, &x->nhi);
	if (r >= 0)
		r = store_put_array(row, x->nr_far, &x->far);
	return r < 0 ? r : store_put_array(row, x->nr_far, &x->nfar);
}

void store_offsets_release(struct store_offsets *x)
{
	base_buf_release(&x->lo);
	base_buf_release(&x->hi);
	base_buf_release(&x->nlo);
	base_buf_release(&x->nhi);
	base_buf_release(&x->far);
	base_buf_release(&x->nfar);
}
