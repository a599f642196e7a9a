/* SPDX-License-Identifier: BSD-2-Clause */
/* The configuration file: the options' names and values as a JSON object. */
#include <errno.h>
#include <fcntl.h>
#include <json.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

enum { DEPTH_MAX = 3 };

struct config {
	struct json_object *root; /* options point into it */
	const char *name, *text;
	size_t len;
};

/* Options of one run, or of a shell that waits: never the service's habit. */
static const char *const not_here[] = {
	"background", "check",	  "config",	"gc",	 "join",   "list-events",
	"n",	      "nodaemon", "old_epochs", "older", "replay", "vstep",
};

static int line_of(const struct config *c, size_t pos)
{
	int line = 1;

	for (size_t i = 0; i < pos && i < c->len; i++)
		line += c->text[i] == '\n';
	return line;
}

static int fail_at(const struct config *c, size_t pos, const char *what, struct base_err *err)
{
	return base_fail(err, -DCPI_EUSAGE, "malformed configuration '%s', line %d: %s", c->name,
			 line_of(c, pos), what);
}

/* ---- where the members stand ----------------------------------------------------------------- */

/* Behind the string that begins at @pos. The text has been parsed: all strings end. */
static size_t skip_string(const struct config *c, size_t pos)
{
	for (pos++; pos < c->len && c->text[pos] != '"'; pos++)
		pos += c->text[pos] == '\\';
	return pos + 1;
}

/* The next name of a member of the outermost object, from *@pos on. False: there is none. */
static bool next_member(const struct config *c, size_t *pos, size_t *start, size_t *len)
{
	int depth = *pos ? 1 : 0;

	for (size_t i = *pos; i < c->len; i++) {
		char ch = c->text[i];

		depth += (ch == '{' || ch == '[') - (ch == '}' || ch == ']');
		if (ch != '"')
			continue;
		*start = i + 1;
		i = skip_string(c, i);
		*len = i - 1 - *start;
		*pos = i;
		while (i < c->len && strchr(" \t\r\n", c->text[i]) && c->text[i])
			i++;
		if (depth == 1 && i < c->len && c->text[i] == ':')
			return true;
		i--;
	}
	return false;
}

/* ---- one member ------------------------------------------------------------------------------ */

static const struct base_opt *find_option(const struct base_cmd *cmd, const char *name, size_t len)
{
	for (const struct base_opt *o = cmd->opts; o->name; o++)
		if (strlen(o->name) == len && memcmp(o->name, name, len) == 0)
			return o;
	return NULL;
}

static int unknown_option(const struct config *c, const struct base_cmd *cmd, size_t pos,
			  size_t len, struct base_err *err)
{
	char name[64], what[100];
	const char *nearest;

	snprintf(name, sizeof(name), "%.*s", len < 60 ? (int)len : 60, c->text + pos);
	snprintf(what, sizeof(what), "unknown option '%s'", name);
	fail_at(c, pos, what, err);
	nearest = base_opt_nearest(cmd, name);
	if (nearest)
		base_hint(err, "did you mean \"%s\"?", nearest);
	else
		base_hint(err, "the names are those of dcpid's options, without the dash");
	return -DCPI_EUSAGE;
}

static int check_place(const struct config *c, const struct base_opt *o, size_t pos,
		       struct base_err *err)
{
	char what[80];

	for (size_t i = 0; i < sizeof(not_here) / sizeof(*not_here); i++) {
		if (strcmp(o->name, not_here[i]) != 0)
			continue;
		snprintf(what, sizeof(what), "'%s' is for the command line only", o->name);
		return fail_at(c, pos, what, err);
	}
	return 0;
}

/* @text of the file as if it stood on the command line, its error with the place. */
static int set_text(const struct config *c, const struct base_opt *o, struct json_object *value,
		    size_t pos, struct base_err *err)
{
	const char *text = json_object_get_string(value);
	struct base_err own = { 0 };
	int r;

	if (!text)
		return base_fail_errno(err, -ENOMEM, "cannot read configuration '%s'", c->name);
	if (json_object_is_type(value, json_type_string) &&
	    strlen(text) != (size_t)json_object_get_string_len(value))
		return fail_at(c, pos, "a string holds a NUL", err);
	r = base_opt_set(o, text, &own);
	if (r < 0) {
		fail_at(c, pos, own.text, err);
		if (own.hint[0])
			base_hint(err, "%s", own.hint);
	}
	return r;
}

static int wrong_type(const struct config *c, const struct base_opt *o, size_t pos,
		      struct base_err *err)
{
	static const char *const wants[] = {
		[BASE_OPT_FLAG] = "true or false",
		[BASE_OPT_STRING] = "a string",
		[BASE_OPT_LIST] = "a string or a list of strings",
		[BASE_OPT_INT] = "an integer",
		[BASE_OPT_DOUBLE] = "a number",
	};
	char what[120];

	snprintf(what, sizeof(what), "'%s' takes %s", o->name, wants[o->kind]);
	return fail_at(c, pos, what, err);
}

static int set_list(const struct config *c, const struct base_opt *o, struct json_object *value,
		    size_t pos, struct base_err *err)
{
	size_t nr = json_object_array_length(value);
	int r = 0;

	for (size_t i = 0; r >= 0 && i < nr; i++) {
		struct json_object *item = json_object_array_get_idx(value, i);

		r = json_object_is_type(item, json_type_string) ? set_text(c, o, item, pos, err)
								: wrong_type(c, o, pos, err);
	}
	return r;
}

static int set_option(const struct config *c, const struct base_opt *o, struct json_object *value,
		      size_t pos, struct base_err *err)
{
	enum json_type type = json_object_get_type(value);

	switch (o->kind) {
	case BASE_OPT_FLAG:
		if (type != json_type_boolean)
			return wrong_type(c, o, pos, err);
		*(bool *)o->dest = json_object_get_boolean(value);
		return 0;
	case BASE_OPT_LIST:
		if (type == json_type_array)
			return set_list(c, o, value, pos, err);
		break;
	case BASE_OPT_INT:
		if (type != json_type_int)
			return wrong_type(c, o, pos, err);
		return set_text(c, o, value, pos, err);
	case BASE_OPT_DOUBLE:
		if (type != json_type_int && type != json_type_double)
			return wrong_type(c, o, pos, err);
		return set_text(c, o, value, pos, err);
	case BASE_OPT_STRING:
		break;
	}
	return type == json_type_string ? set_text(c, o, value, pos, err)
					: wrong_type(c, o, pos, err);
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* The command line has the last word; but the file is to be right all the same. */
static int check_option(const struct config *c, const struct base_opt *o, struct json_object *value,
			size_t pos, struct base_err *err)
{
	union {
		bool flag;
		int64_t number;
		double fraction;
		const char *string;
		struct base_opt_list list;
	} none = { 0 };
	struct base_opt unused = *o;
	int r;

	unused.dest = &none;
	r = set_option(c, &unused, value, pos, err);
	if (o->kind == BASE_OPT_LIST)
		free(none.list.items);
	return r;
}

static int set_member(const struct config *c, const struct base_cmd *cmd, uint64_t given,
		      uint64_t *seen, size_t pos, size_t len, struct base_err *err)
{
	const struct base_opt *o = find_option(cmd, c->text + pos, len);
	struct json_object *value = NULL;
	uint64_t bit;
	int r;

	if (!o)
		return unknown_option(c, cmd, pos, len, err);
	bit = 1ull << (o - cmd->opts);
	if (*seen & bit)
		return fail_at(c, pos, "an option stands there twice", err);
	*seen |= bit;
	r = check_place(c, o, pos, err);
	if (r < 0)
		return r;
	json_object_object_get_ex(c->root, o->name, &value);
	return given & bit ? check_option(c, o, value, pos, err)
			   : set_option(c, o, value, pos, err);
}

static int set_all(const struct config *c, const struct base_cmd *cmd, uint64_t given,
		   struct base_err *err)
{
	size_t pos = 0, start = 0, len = 0;
	uint64_t seen = 0;
	int r = 0;

	while (r >= 0 && next_member(c, &pos, &start, &len))
		r = set_member(c, cmd, given, &seen, start, len, err);
	return r;
}

static int parse_json(struct config *c, struct base_err *err)
{
	struct json_tokener *tok = json_tokener_new_ex(DEPTH_MAX);
	size_t end;
	int r = 0;

	if (!tok)
		return base_fail_errno(err, -ENOMEM, "cannot read configuration '%s'", c->name);
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	c->root = json_tokener_parse_ex(tok, c->text, (int)c->len);
	end = json_tokener_get_parse_end(tok);
	if (json_tokener_get_error(tok) == json_tokener_continue)
		r = fail_at(c, c->len, "the object has no end", err);
	else if (json_tokener_get_error(tok) != json_tokener_success)
		r = fail_at(c, end, json_tokener_error_desc(json_tokener_get_error(tok)), err);
	else if (!json_object_is_type(c->root, json_type_object))
		r = fail_at(c, 0, "not a JSON object", err);
	for (; r == 0 && end < c->len; end++)
		if (!c->text[end] || !strchr(" \t\r\n", c->text[end]))
			r = fail_at(c, end, "something stands behind the object", err);
	json_tokener_free(tok);
	return r;
}

int config_parse(const char *text, size_t len, const char *name, const struct base_cmd *cmd,
		 uint64_t given, struct json_object **root, struct base_err *err)
{
	struct config c = { .name = name, .text = text, .len = len };
	int r;

	*root = NULL;
	if (len > CONFIG_MAX)
		return base_fail(err, -DCPI_ELIMIT, "configuration '%s' is longer than %u bytes",
				 name, CONFIG_MAX);
	r = parse_json(&c, err);
	if (r >= 0)
		r = set_all(&c, cmd, given, err);
	*root = c.root;
	return r;
}

int config_read(const char *path, const struct base_cmd *cmd, uint64_t given,
		struct json_object **root, struct base_err *err)
{
	struct base_buf text = { 0 };
	int r = base_file_read(AT_FDCWD, path, CONFIG_MAX, &text, err);

	*root = NULL;
	if (r >= 0)
		r = config_parse((const char *)text.data, text.len, path, cmd, given, root, err);
	base_buf_release(&text);
	return r;
}
