/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes JSON as it comes: an export has millions of numbers, which are not made objects first.
 * Only texts need a library's care.
 */
#include <json.h>

#include "export_internal.h"

void json_text(FILE *to, const char *text)
{
	struct json_object *o = json_object_new_string(text);

	fputs(o ? json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN |
							    JSON_C_TO_STRING_NOSLASHESCAPE)
		: "\"?\"",
	      to);
	json_object_put(o);
}
