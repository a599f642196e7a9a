/* SPDX-License-Identifier: BSD-2-Clause */
/* Control requests as bytes from anyone: taken apart here, without a socket, so that it is fuzzed.
 */
#include <errno.h>
#include <json.h>
#include <string.h>

#include "daemon_core.h"

enum { DEPTH_MAX = 8 };

static const char *const commands[] = {
	[CONTROL_STATUS] = "status",
	[CONTROL_FLUSH] = "flush",
	[CONTROL_EPOCH] = "epoch",
	[CONTROL_QUIT] = "quit",
};

/* The name may hold any byte: what is shown of it is short, and clean. */
static int unknown_command(const char *name, size_t len, struct base_err *err)
{
	char text[40];
	size_t n = len < sizeof(text) - 1 ? len : sizeof(text) - 1;

	for (size_t i = 0; i < n; i++)
		text[i] = (name[i] >= 0x20 && name[i] < 0x7f) ? name[i] : '?';
	text[n] = '\0';
	base_fail(err, -DCPI_EUNSUPPORTED, "unknown command '%s'%s", text, n < len ? " (cut)" : "");
	base_hint(err, "commands are status, flush, epoch, quit");
	return -DCPI_EUNSUPPORTED;
}

static int parse_command(struct json_object *request, enum control_command *out,
			 struct base_err *err)
{
	struct json_object *value;
	const char *name;
	size_t len;

	if (!json_object_is_type(request, json_type_object))
		return base_fail(err, -DCPI_EFORMAT, "malformed request: not a JSON object");
	if (!json_object_object_get_ex(request, "cmd", &value) ||
	    !json_object_is_type(value, json_type_string))
		return base_fail(err, -DCPI_EFORMAT, "malformed request: no string \"cmd\"");
	name = json_object_get_string(value);
	len = (size_t)json_object_get_string_len(value);
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (len == strlen(commands[i]) && memcmp(name, commands[i], len) == 0) {
			*out = (enum control_command)i;
			return 0;
		}
	return unknown_command(name, len, err);
}

int control_request_parse(const char *line, size_t len, enum control_command *out,
			  struct base_err *err)
{
	struct json_tokener *tok = NULL;
	struct json_object *request = NULL;
	int r;

	if (len > CONTROL_LINE_MAX)
		return base_fail(err, -DCPI_ELIMIT, "request longer than %u bytes",
				 CONTROL_LINE_MAX);
	tok = json_tokener_new_ex(DEPTH_MAX);
	if (!tok)
		return base_fail_errno(err, -ENOMEM, "cannot parse a request");
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	request = json_tokener_parse_ex(tok, line, (int)len);
	if (json_tokener_get_error(tok) != json_tokener_success)
		r = base_fail(err, -DCPI_EFORMAT, "malformed request: %s",
			      json_tokener_error_desc(json_tokener_get_error(tok)));
	else if (json_tokener_get_parse_end(tok) != len)
		r = base_fail(err, -DCPI_EFORMAT, "malformed request: more than one value");
	else
		r = parse_command(request, out, err);
	json_object_put(request);
	json_tokener_free(tok);
	return r;
}

int control_reply_error(struct base_buf *out, const struct base_err *err)
{
	struct json_object *reply = json_object_new_object();
	const char *text;
	int r = -ENOMEM;

	if (!reply)
		return r;
	json_object_object_add(reply, "ok", json_object_new_boolean(0));
	json_object_object_add(reply, "error", json_object_new_string(err->text));
	if (err->hint[0])
		json_object_object_add(reply, "hint", json_object_new_string(err->hint));
	text = json_object_to_json_string_ext(reply, JSON_C_TO_STRING_PLAIN |
							     JSON_C_TO_STRING_NOSLASHESCAPE);
	if (text)
		r = base_buf_printf(out, "%s\n", text);
	json_object_put(reply);
	return r;
}
