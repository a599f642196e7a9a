/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Costs of blocks of any bytes: refused, or read in order; written again they are the same bytes.
 * Tried as they are and with the checksum put right, which stops nearly all mutations.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profdb.h"
#include "sealed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void try(const uint8_t *data, size_t len)
{
	struct base_buf first = { 0 }, second = { 0 };
	struct profdb_costs c, again;

	if (profdb_costs_parse(data, len, &c, NULL) < 0) {
		CHECK(!c.v && !c.path);
		return;
	}
	for (size_t i = 0; i < c.nr; i++) {
		CHECK(c.v[i].executions && c.v[i].len);
		CHECK(!i || c.v[i - 1].off + c.v[i - 1].len <= c.v[i].off);
		CHECK(profdb_costs_at(&c, c.v[i].off, c.v[i].len) == &c.v[i]);
	}
	CHECK(profdb_costs_format(&c, &first) >= 0);
	CHECK(profdb_costs_parse(first.data, first.len, &again, NULL) >= 0);
	CHECK(profdb_costs_format(&again, &second) >= 0);
	CHECK(first.len == second.len && !memcmp(first.data, second.data, first.len));
	base_buf_release(&first);
	base_buf_release(&second);
	profdb_costs_release(&c);
	profdb_costs_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	enum { CRC = 13 };
	char *sealed;

	try(data, len);
	if (len < CRC)
		return 0;
	sealed = malloc(len + 1);
	CHECK(sealed);
	memcpy(sealed, data, len);
	snprintf(sealed + len - CRC, CRC + 1, "crc %08x\n", base_crc32c(0, sealed, len - CRC));
	try((const uint8_t *)sealed, len);
	free(sealed);
	return 0;
}
