/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a linker's name, with and without the beginning that makes it one: what becomes of
 * it is within its limit, has a match in itself, and is the same the next time.
 */
#include <stdlib.h>
#include <string.h>

#include "demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Any name may be made short; brackets alone may become longer. */
static void check_short(const char *name)
{
	char *once = demangle_short(name);

	if (!once || strlen(once) > 3 * strlen(name) + 4)
		abort();
	free(once);
}

static void check(const char *linkage)
{
	char *name = demangle_name(linkage), *again = demangle_name(linkage);

	if (!name != !again)
		abort();
	if (name && (!*name || strlen(name) > DEMANGLE_MAX || strcmp(name, again) != 0 ||
		     !demangle_match(name, name)))
		abort();
	if (name)
		demangle_is(linkage, name + strlen(name) / 2);
	check_short(name ? name : linkage);
	free(name);
	free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = malloc(len + 3);

	if (!text)
		return 0;
	memcpy(text, "_Z", 2);
	memcpy(text + 2, data, len);
	text[len + 2] = '\0';
	check(text);
	check(text + 2);
	free(text);
	return 0;
}
