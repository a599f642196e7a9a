/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of an interpreter, as the sampler read them in a process: their texts, and their table
 * of lines. */
#include <stdlib.h>
#include <string.h>

#include "bpf_callpaths.h"
#include "function.h"
#include "pseudoimg_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Rows ascend, and stay within the function. */
static void check_lines(const struct driver_function *f)
{
	uint64_t code_len = 2ull * (f->nr & 0xfffff), last = 0;
	const struct pseudoimg_row *row;
	struct base_buf rows = { 0 };

	if (pseudoimg_locations_read(f->lines, f->lines_len, f->line, code_len, 1, &rows) < 0)
		abort();
	row = (const void *)rows.data;
	for (size_t i = 0; i < rows.len / sizeof(*row); i++) {
		if (row[i].off >= code_len || (i && row[i].off <= last))
			abort();
		last = row[i].off;
	}
	base_buf_release(&rows);
}

static int take(void *ctx, const struct driver_function *f)
{
	struct base_buf path = { 0 }, name = { 0 };
	uint32_t c;

	(void)ctx;
	if (dyn_function_text(&path, &f->file) < 0 ||
	    dyn_function_name(&name, f, (const char *)path.data, path.len) < 0)
		abort();
	/* A character may be cut off at the end of a name, and nowhere else. */
	for (size_t i = 0, n; i + 3 < name.len; i += n) {
		n = base_utf8(name.data + i, name.len - i, &c);
		if (!n)
			abort();
	}
	base_buf_release(&path);
	base_buf_release(&name);
	check_lines(f);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct driver_sink sink = { .function = take };
	struct bpf_callpaths q = { 0 };
	uint8_t *copy = malloc(len + 1);

	/* As in a ring, at a multiple of 8. */
	if (!copy)
		return 0;
	memcpy(copy, data, len);
	bpf_callpaths_add_function(&q, copy, len);
	if (bpf_callpaths_hand(&q, UINT64_MAX, &sink) < 0)
		abort();
	bpf_callpaths_release(&q);
	free(copy);
	return 0;
}
