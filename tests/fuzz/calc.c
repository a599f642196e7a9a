/* SPDX-License-Identifier: BSD-2-Clause */
/* calc's front end: any text becomes a program or an error. Compiles all of it, and runs nothing.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "calc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static FILE *sink;
	struct calc_err err = { "" };
	struct calc *c = NULL;

	if (!sink)
		sink = fopen("/dev/null", "we");
	if (calc_new(&c, "fuzz.calc", (const char *)data, len, NULL, &err) < 0) {
		/* An error has its place and a text. */
		if (err.text[0] == '\0')
			abort();
		return 0;
	}
	if (sink)
		calc_print_ast(c, sink);
	if (calc_compile_all(c, &err) < 0 && err.text[0] == '\0')
		abort();
	calc_free(c);
	return 0;
}
