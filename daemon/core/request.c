/* SPDX-License-Identifier: BSD-2-Clause */
/* Control requests as bytes from anyone: taken apart here, without a socket, so that it is fuzzed.
 */
#include <errno.h>
#include <json.h>
#include <string.h>

#include "control.h"

enum { DEPTH_MAX = 8 };

static const char *const commands[] = {
	[CONTROL_STATUS] = "status", [CONTROL_FLUSH] = "flush", [CONTROL_EPOCH] = "epoch",
	[CONTROL_QUIT] = "quit",     [CONTROL_LABEL] = "label", [CONTROL_REGISTER] = "register",
	[CONTROL_LOG] = "log",	     [CONTROL_WATCH] = "watch",
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
	base_hint(err, "commands are status, flush, epoch, quit, label, register, log, watch");
	return -DCPI_EUNSUPPORTED;
}

/* ---- members --------------------------------------------------------------------------------- */

static int bad_member(const char *key, const char *what, struct base_err *err)
{
	return base_fail(err, -DCPI_EFORMAT, "malformed request: \"%s\" is no %s", key, what);
}

/* A number from 0 to @max; absent: it stays as it is. */
static int take_number(struct json_object *request, const char *key, uint64_t max, uint64_t *out,
		       struct base_err *err)
{
	struct json_object *value;

	if (!json_object_object_get_ex(request, key, &value))
		return 0;
	if (!json_object_is_type(value, json_type_int) || json_object_get_int64(value) < 0 ||
	    json_object_get_uint64(value) > max)
		return bad_member(key, "number that it may be", err);
	*out = json_object_get_uint64(value);
	return 0;
}

/* 1, 0 where it is absent, or -DCPI_EFORMAT; without bytes that do not show. */
static int take_text(struct json_object *request, const char *key, char *out, size_t size,
		     struct base_err *err)
{
	struct json_object *value;
	const char *text;
	size_t len;

	if (!json_object_object_get_ex(request, key, &value))
		return 0;
	if (!json_object_is_type(value, json_type_string))
		return bad_member(key, "string", err);
	text = json_object_get_string(value);
	len = (size_t)json_object_get_string_len(value);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return bad_member(key, "name", err);
	if (!len || len >= size)
		return bad_member(key, "name of that length", err);
	memcpy(out, text, len + 1);
	return 1;
}

static int take_pid(struct json_object *request, int32_t *out, struct base_err *err)
{
	uint64_t pid = 0;
	int r = take_number(request, "pid", INT32_MAX, &pid, err);

	*out = (int32_t)pid;
	return r;
}

static int parse_label(struct json_object *request, struct control_request *out,
		       struct base_err *err)
{
	struct json_object *value;
	int r = take_pid(request, &out->pid, err);
	size_t len;

	if (r < 0)
		return r;
	if (!json_object_object_get_ex(request, "label", &value) ||
	    !json_object_is_type(value, json_type_string))
		return bad_member("label", "string", err);
	len = (size_t)json_object_get_string_len(value);
	r = label_check(json_object_get_string(value), len, err);
	if (r >= 0)
		memcpy(out->label, json_object_get_string(value), len + 1);
	return r;
}

static int take_id(struct json_object *request, struct base_id *out, struct base_err *err)
{
	char text[BASE_ID_TEXT_LEN];
	int r = take_text(request, "id", text, sizeof(text), err);

	if (r > 0 && base_id_parse(out, text, strlen(text)) < 0)
		return bad_member("id", "identity", err);
	return r;
}

static int parse_register(struct json_object *request, struct control_request *out,
			  struct base_err *err)
{
	const struct {
		const char *key;
		uint64_t max, *to;
	} numbers[] = { { "start", INT64_MAX, &out->start },
			{ "size", INT64_MAX, &out->len },
			{ "offset", INT64_MAX, &out->file_off } };
	int r = take_pid(request, &out->pid, err);

	for (size_t i = 0; r >= 0 && i < sizeof(numbers) / sizeof(*numbers); i++)
		r = take_number(request, numbers[i].key, numbers[i].max, numbers[i].to, err);
	if (r >= 0)
		r = take_id(request, &out->id, err);
	if (r >= 0)
		r = take_text(request, "image", out->path, sizeof(out->path), err);
	if (r >= 0)
		r = take_text(request, "name", out->name, sizeof(out->name), err);
	if (r < 0)
		return r;
	if (!out->pid || !out->len)
		return base_fail(err, -DCPI_EFORMAT, "malformed request: no \"pid\" or \"size\"");
	return out->path[0] == '/' ? 0 : bad_member("image", "absolute path", err);
}

static int parse_members(struct json_object *request, struct control_request *out,
			 struct base_err *err)
{
	switch (out->command) {
	case CONTROL_LABEL:
		return parse_label(request, out, err);
	case CONTROL_REGISTER:
		return parse_register(request, out, err);
	case CONTROL_LOG:
		out->lines = BASE_LOG_KEPT;
		return take_number(request, "lines", INT64_MAX, &out->lines, err);
	case CONTROL_STATUS:
	case CONTROL_WATCH:
	case CONTROL_FLUSH:
	case CONTROL_EPOCH:
	case CONTROL_QUIT:
		break;
	}
	return 0;
}

static int parse_command(struct json_object *request, struct control_request *out,
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
			out->command = (enum control_command)i;
			return parse_members(request, out, err);
		}
	return unknown_command(name, len, err);
}

int control_request_parse(const char *line, size_t len, struct control_request *out,
			  struct base_err *err)
{
	struct json_tokener *tok = NULL;
	struct json_object *request = NULL;
	int r;

	*out = (struct control_request){ .command = CONTROL_STATUS };
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
