/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of code that is hostile: rows ascend, are valid, and end; the same code has the same rows.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "height.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { VADDR = 0x1000 };

struct rows {
	uint64_t last, nr, hash, len;
	bool none;
};

static int row(void *ctx, uint64_t addr, const struct unwind_rule *rule)
{
	struct rows *r = ctx;

	if ((r->nr && addr <= r->last) || addr < VADDR || addr > VADDR + r->len ||
	    !unwind_rule_valid(rule))
		abort();
	r->last = addr;
	r->none = rule->how == UNWIND_NONE;
	r->hash = base_hash64_seeded(r->hash + addr, rule, sizeof(*rule));
	r->nr++;
	return 0;
}

static struct rows rows_of(struct height *h, const uint8_t *data, size_t len, bool is_told)
{
	const struct height_entry told[] = {
		{ .cfa = (int32_t)(base_hash64(data, len) % 128 * 8), .fp = -16, .link = -24 },
		{ .off = len > 1 ? data[1] : 0,
		  .by_fp = true,
		  .cfa = len > 2 ? data[2] : 16,
		  .fp = -16 },
	};
	struct rows r = { .len = len, .none = true };
	struct height_report report;
	uint64_t sum = 0;

	if (is_told)
		height_set_entries(h, told, 2);
	if (height_rows(h, data, len, VADDR, row, &r, &report) < 0 || !r.none)
		abort();
	for (int i = 0; i < HEIGHT_NR_REASONS; i++)
		sum += report.bytes[i];
	if (sum != len)
		abort();
	return r;
}

/* A table's rule, where the code agrees: first and last rows may be either. */
static void check_steady(struct height *h, const uint8_t *data, size_t len)
{
	const struct unwind_rule rule = { .how = UNWIND_CFA, .base = UNWIND_SP, .off = 80 };
	struct rows r = { .len = len };

	if (height_steady(h, data, len, VADDR, &rule, row, &r) < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct height *h;
	struct rows first, second;

	if (!h && height_open(EM_X86_64, &h) < 0)
		abort();
	for (int told = 0; told < 2; told++) {
		first = rows_of(h, data, len, told);
		second = rows_of(h, data, len, told);
		if (first.nr != second.nr || first.hash != second.hash)
			abort();
	}
	check_steady(h, data, len);
	return 0;
}
