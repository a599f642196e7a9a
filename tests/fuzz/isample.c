/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as records of instruction samples, of each kind: nothing is set that is not known, a
 * trace is read to its end in steps, and metrics are parsed or refused.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "isample.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(const struct isample *s)
{
	if (s->bits & ~s->known || s->known & ~(ISAMPLE_ALL_BITS | ISAMPLE_ALL_COUNTERS))
		abort();
	for (int i = 0; i < ISAMPLE_NR_COUNTERS; i++)
		if (s->counter[i] && !(s->known & ISAMPLE_HAS(i)))
			abort();
}

static void use_spe(const uint8_t *data, size_t len)
{
	struct isample_spe s;
	size_t pos = 0, before = 0;

	while (isample_spe_next(data, len, 0, &pos, &s)) {
		check(&s.sample);
		if (pos <= before || pos > len ||
		    (s.bad && s.sample.bits != ISAMPLE_BIT(ISAMPLE_UNREADABLE)))
			abort();
		before = pos;
	}
}

static void use_metric(const uint8_t *data, size_t len)
{
	struct isample_columns c = { 0 };
	char *text = strndup((const char *)data, len);

	if (!text)
		abort();
	if (isample_columns_parse(&c, text, NULL) >= 0 && !c.nr)
		abort();
	for (size_t i = 0; i < c.nr; i++)
		if (c.v[i].of.set & ~c.v[i].of.want || c.v[i].of.want & ~c.v[i].of.need)
			abort();
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct isample op = { 0 }, fetch = { 0 }, source = { 0 };
	uint8_t *exact = malloc(len ? len : 1);
	uint64_t words[2] = { 0 };

	/* In a block of its own, so that reading past the record is seen. */
	if (!exact)
		abort();
	memcpy(exact, data, len);
	isample_ibs_op(&op, exact, len);
	isample_ibs_fetch(&fetch, exact, len);
	memcpy(words, exact, len < sizeof(words) ? len : sizeof(words));
	isample_data_source(&source, words[0]);
	isample_weight(&source, words[1], words[0] & 1);
	check(&op);
	check(&fetch);
	check(&source);
	use_spe(exact, len);
	use_metric(exact, len);
	free(exact);
	return 0;
}
