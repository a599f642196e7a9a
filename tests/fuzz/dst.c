/* SPDX-License-Identifier: BSD-2-Clause */
/* Any DST: decoded as far as it is good, within its own bytes, rows in order. */
#include <stdlib.h>

#include "pseudoimg_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_text(const struct pseudoimg_str *s, const uint8_t *data, size_t len)
{
	if (s->p < (const char *)data || s->len > len || s->p + s->len > (const char *)data + len)
		abort();
}

static void check_rows(const struct pseudoimg_dst *dst)
{
	bool open = false;

	for (size_t i = 0; i < dst->rows.nr; i++) {
		const struct pseudoimg_dst_row *row = &dst->rows.v[i];

		if (open && row->addr < dst->rows.v[i - 1].addr)
			abort();
		if (!row->end && row->file >= dst->files.nr)
			abort();
		open = !row->end;
	}
	if (open)
		abort();
}

static void check(const uint8_t *data, size_t len, uint64_t base)
{
	struct pseudoimg_dst dst;

	if (pseudoimg_dst_decode(data, len, base, &dst) < 0)
		abort();
	if (dst.used > len)
		abort();
	for (size_t i = 0; i < dst.routines.nr; i++)
		check_text(&dst.routines.v[i].name, data, len);
	for (size_t i = 0; i < dst.files.nr; i++)
		check_text(&dst.files.v[i], data, len);
	for (size_t i = 0; i < dst.absolute.nr; i++)
		check_text(&dst.absolute.v[i], data, len);
	check_rows(&dst);
	pseudoimg_dst_release(&dst);
}

/* Offsets, and absolute addresses. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	check(data, len, 0x7f0000000000);
	check(data, len, 0);
	return 0;
}
