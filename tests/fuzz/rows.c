/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwind rows are made of any program on the machine. */
#include <stdlib.h>
#include <string.h>

#include "unwind_rows.h"
#include "unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* It would pass as one from another process, and comes back as it was. */
static void expect_sound(const struct unwind_table *t)
{
	size_t len = unwind_encoded_len(t);
	uint8_t *bytes = malloc(len), *again = malloc(len);
	struct unwind_table *other;

	if (!bytes || !again)
		abort();
	unwind_encode(t, bytes);
	if (unwind_decode(bytes, len, &other) < 0 || unwind_encoded_len(other) != len)
		abort();
	unwind_encode(other, again);
	if (memcmp(bytes, again, len) != 0)
		abort();
	unwind_free(other);
	free(again);
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct base_err err = { 0 };
	struct unwind_table *t = NULL;
	int r = image_rows_of_bytes(data, len, "fuzz", &t, &err);

	if (r < 0 ? !err.code || t : !t)
		abort();
	if (t)
		expect_sound(t);
	unwind_free(t);
	return 0;
}
