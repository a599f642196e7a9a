/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reader of .xct and .tab files. The checksum is made right first, or nothing but it would be
 * tried; what was read is written, and read again.
 */
#include <stdlib.h>
#include <string.h>

#include "exact.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int parse(struct exact *e, const struct base_buf *b, bool tab)
{
	return tab ? exact_parse_tab(e, b->data, b->len, "fuzz", NULL)
		   : exact_parse(e, b->data, b->len, "fuzz", NULL);
}

static void again(struct exact *e, bool tab)
{
	struct base_buf once = { 0 }, twice = { 0 };
	struct exact copy = { 0 };

	if ((tab ? exact_format_tab(e, &once) : exact_format(e, &once)) < 0 ||
	    parse(&copy, &once, tab) < 0 ||
	    (tab ? exact_format_tab(&copy, &twice) : exact_format(&copy, &twice)) < 0 ||
	    once.len != twice.len || memcmp(once.data, twice.data, once.len) != 0)
		abort();
	base_buf_release(&once);
	base_buf_release(&twice);
	exact_release(&copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	bool tab = len > 5 && memcmp(data, "dcpi-t", 6) == 0;
	struct base_buf b = { 0 };
	struct exact e = { 0 };

	if (base_buf_append(&b, data, len) < 0 ||
	    base_buf_printf(&b, "crc32c %08x\n", base_crc32c(0, data, len)) < 0)
		abort();
	if (parse(&e, &b, tab) == 0)
		again(&e, tab);
	exact_release(&e);
	base_buf_release(&b);
	return 0;
}
