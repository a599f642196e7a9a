/* SPDX-License-Identifier: BSD-2-Clause */
/* The help text and the man page of a command are printed from its options here. */
#include <string.h>

#include "opt.h"

enum { LINE_LEN = 80, COLUMN_MAX = 30 };

/* Characters, not bytes: help may hold UTF-8. */
static size_t width(const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)text[i] & 0xc0) != 0x80;
	return n;
}

/* "  -name ARG" */
static size_t left_width(const struct base_opt *o)
{
	return 3 + strlen(o->name) + (o->arg ? 1 + width(o->arg, strlen(o->arg)) : 0);
}

static size_t help_column(const struct base_cmd *cmd)
{
	const struct base_opt *o;
	size_t column = 0;

	for (size_t i = 0; (o = base_opt_nth(cmd, i)); i++) {
		size_t w = left_width(o) + 2;

		if (w > column && w <= COLUMN_MAX)
			column = w;
	}
	return column;
}

/* Words of @text from column @indent on; the cursor stands at column @at. Ends the line. */
static void print_wrapped(FILE *to, const char *text, size_t indent, size_t at)
{
	const char *gap = "";

	if (at >= indent && at > 0) {
		fputc('\n', to);
		at = 0;
	}
	fprintf(to, "%*s", (int)(indent - at), "");
	at = indent;
	for (text += strspn(text, " \n"); *text; text += strspn(text, " \n")) {
		size_t len = strcspn(text, " \n"), w = width(text, len);

		if (*gap && at + 1 + w > LINE_LEN) {
			fprintf(to, "\n%*s", (int)indent, "");
			at = indent;
			gap = "";
		}
		fprintf(to, "%s%.*s", gap, (int)len, text);
		at += w + (*gap != '\0');
		gap = " ";
		text += len;
	}
	fputc('\n', to);
}

void base_opt_help(const struct base_cmd *cmd, FILE *to)
{
	const struct base_example *e = cmd->examples;
	size_t column = help_column(cmd);
	const struct base_opt *o;

	fprintf(to, "usage: %s [options]%s%s\n", cmd->name, *cmd->operands ? " " : "",
		cmd->operands);
	fprintf(to, "%s\n\noptions:\n", cmd->summary);
	for (size_t i = 0; (o = base_opt_nth(cmd, i)); i++) {
		fprintf(to, "  -%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
		print_wrapped(to, o->help, column, left_width(o));
	}
	if (e && e->command)
		fputs("\nexamples:\n", to);
	for (; e && e->command; e++) {
		fprintf(to, "  %s\n", e->command);
		print_wrapped(to, e->what, 6, 0);
	}
}

/* A "." or "'" that starts a line would be a request; the rest is changed by typesetting. */
static void roff_text(FILE *to, const char *text)
{
	bool start = true;

	for (; *text; start = *text++ == '\n') {
		if (*text == '-')
			fputs("\\-", to);
		else if (*text == '\\')
			fputs("\\e", to);
		else if (*text == '\'')
			fputs("\\(aq", to);
		else if (*text == '`')
			fputs("\\(ga", to);
		else if (*text == '^')
			fputs("\\(ha", to);
		else if (*text == '~')
			fputs("\\(ti", to);
		else
			fprintf(to, "%s%c", start && *text == '.' ? "\\&" : "", *text);
	}
}

static void roff_option(FILE *to, const struct base_opt *o)
{
	fputs(".TP\n\\fB\\-", to);
	roff_text(to, o->name);
	fputs("\\fR", to);
	if (o->arg) {
		fputs(" \\fI", to);
		roff_text(to, o->arg);
		fputs("\\fR", to);
	}
	fputc('\n', to);
	roff_text(to, o->help);
	fputc('\n', to);
}

void base_opt_man(const struct base_cmd *cmd, FILE *to)
{
	const struct base_example *e = cmd->examples;
	const struct base_opt *o;

	fputs(".SH OPTIONS\n", to);
	for (size_t i = 0; (o = base_opt_nth(cmd, i)); i++)
		roff_option(to, o);
	if (e && e->command)
		fputs(".SH EXAMPLES\n", to);
	for (; e && e->command; e++) {
		fputs(".TP\n\\fB", to);
		roff_text(to, e->command);
		fputs("\\fR\n", to);
		roff_text(to, e->what);
		fputc('\n', to);
	}
}

/* With the dash, as the user types them. */
void base_opt_names(const struct base_cmd *cmd, FILE *to)
{
	const struct base_opt *o;

	for (size_t i = 0; (o = base_opt_nth(cmd, i)); i++)
		fprintf(to, "-%s\n", o->name);
}
