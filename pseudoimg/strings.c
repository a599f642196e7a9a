/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of symbols: a fold has the same ones again and again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pseudoimg_internal.h"

enum { MOST = 1 << 16, NEAR = 8 };

int pseudoimg_strings_init(struct pseudoimg_strings *n, size_t nr_symbols)
{
	for (n->nr = 64; n->nr < 2 * nr_symbols && n->nr < MOST;)
		n->nr *= 2;
	n->slots = calloc(n->nr, sizeof(*n->slots));
	return n->slots ? 0 : -ENOMEM;
}

/* The slot that has it, or is to have it. */
static struct pseudoimg_named *find_name(const struct pseudoimg_strings *n, const uint8_t sum[32])
{
	size_t first = (size_t)sum[16] | (size_t)sum[17] << 8;
	struct pseudoimg_named *slot;

	for (size_t i = 0; i < NEAR; i++) {
		slot = &n->slots[(first + i) & (n->nr - 1)];
		if (!slot->at || !memcmp(slot->sum, sum, sizeof(slot->sum)))
			return slot;
	}
	return slot;
}

int pseudoimg_strings_put(struct pseudoimg_strings *n, const struct pseudoimg_str *name,
			  struct pseudoimg_sink *s, uint64_t start, uint32_t *out)
{
	size_t len = s->b.len;
	uint64_t at = s->off + len - start;
	struct base_sha256 sha;
	struct pseudoimg_named *slot;
	uint8_t sum[32];
	int r = pseudoimg_symbol_name_put(&s->b, name);

	if (r < 0 || at > UINT32_MAX)
		return r < 0 ? r : -DCPI_ELIMIT;
	base_sha256_init(&sha);
	base_sha256_add(&sha, s->b.data + len, s->b.len - len);
	base_sha256_end(&sha, sum);
	slot = find_name(n, sum);
	if (slot->at && !memcmp(slot->sum, sum, sizeof(slot->sum))) {
		s->b.len = len;
	} else {
		memcpy(slot->sum, sum, sizeof(slot->sum));
		slot->at = (uint32_t)at;
	}
	*out = slot->at;
	return pseudoimg_sink_drain(s);
}
