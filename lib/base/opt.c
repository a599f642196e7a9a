/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of a command line are parsed here. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

static const struct base_opt *base_opt_nth(const struct base_cmd *cmd, size_t i);

/* The help text and the man page of a command are printed from its options here. */

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

/* The answer to -help-man. */
static void base_opt_man(const struct base_cmd *cmd, FILE *to)
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

/* The answer to -help-options: the names with the dash, as the user types them. */
static void base_opt_names(const struct base_cmd *cmd, FILE *to)
{
	const struct base_opt *o;

	for (size_t i = 0; (o = base_opt_nth(cmd, i)); i++)
		fprintf(to, "-%s\n", o->name);
}

/* The options every command has; those without help are for the build and not listed. */
static const struct base_opt common_opts[] = {
	{ .name = "help", .help = "Print this help and exit." },
	{ .name = "version", .help = "Print the version and exit." },
	{ .name = "help-man" },
	{ .name = "help-options" },
	{ .name = "V" },
	{ 0 },
};

/* A word of the command line taken apart: dashes dropped, value NULL where it has no "=". */
struct word {
	const char *name, *value;
	int len;
};

static struct word split(const char *text)
{
	struct word w = { .name = text + 1 };
	size_t len;

	if (*w.name == '-')
		w.name++;
	len = strcspn(w.name, "=");
	if (w.name[len])
		w.value = w.name + len + 1;
	w.len = len < 255 ? (int)len : 255;
	return w;
}

/* The @i-th listed option: the command's own, then the common ones. NULL after the last. */
static const struct base_opt *base_opt_nth(const struct base_cmd *cmd, size_t i)
{
	for (const struct base_opt *o = cmd->opts; o && o->name; o++)
		if (!i--)
			return o;
	for (const struct base_opt *o = common_opts; o->help; o++)
		if (!i--)
			return o;
	return NULL;
}

static const struct base_opt *find(const struct base_opt *o, const struct word *w)
{
	for (; o && o->name; o++)
		if (strlen(o->name) == (size_t)w->len && !memcmp(o->name, w->name, (size_t)w->len))
			return o;
	return NULL;
}

static unsigned int min3(unsigned int a, unsigned int b, unsigned int c)
{
	unsigned int m = a < b ? a : b;

	return m < c ? m : c;
}

unsigned int base_name_distance(const char *a, const char *b)
{
	size_t a_len = strnlen(a, 255), b_len = strnlen(b, 255);
	unsigned int row[256]; /* distances of the first i of @a to each start of @b */

	for (unsigned int j = 0; j <= b_len; j++)
		row[j] = j;
	for (unsigned int i = 1; i <= a_len; i++) {
		unsigned int corner = row[0];

		row[0] = i;
		for (unsigned int j = 1; j <= b_len; j++) {
			unsigned int above = row[j];

			row[j] = min3(above + 1, row[j - 1] + 1, corner + (a[i - 1] != b[j - 1]));
			corner = above;
		}
	}
	return row[b_len];
}

const char *base_opt_nearest(const struct base_cmd *cmd, const char *name)
{
	/* A third of what was typed, and one: a longer way is not a slip of the fingers. */
	unsigned int best = (unsigned int)strnlen(name, 255) / 3 + 2;
	const struct base_opt *o;
	const char *nearest = NULL;

	for (size_t i = 0; (o = base_opt_nth(cmd, i)); i++) {
		unsigned int d = base_name_distance(name, o->name);

		if (d < best && d < strlen(o->name)) {
			best = d;
			nearest = o->name;
		}
	}
	return nearest;
}

static int unknown(const struct base_cmd *cmd, const struct word *w, struct base_err *err)
{
	const char *nearest;
	char name[256];

	snprintf(name, sizeof(name), "%.*s", w->len, w->name);
	nearest = base_opt_nearest(cmd, name);
	base_fail(err, -DCPI_EUSAGE, "unknown option '-%s'", name);
	if (nearest)
		base_hint(err, "did you mean '-%s'?", nearest);
	else
		base_hint(err, "'%s -help' lists the options", cmd->name);
	return -DCPI_EUSAGE;
}

static int check_limits(const struct base_opt *o, double v, const char *text, struct base_err *err)
{
	if (o->min == o->max || (v >= o->min && v <= o->max))
		return 0;
	base_fail(err, -DCPI_EUSAGE, "value '%s' of option '-%s' is out of limits", text, o->name);
	base_hint(err, "give a value from %.15g to %.15g", o->min, o->max);
	return -DCPI_EUSAGE;
}

static int not_a_number(const struct base_opt *o, const char *text, struct base_err *err)
{
	return base_fail(err, -DCPI_EUSAGE, "value '%s' of option '-%s' is not %s", text, o->name,
			 o->kind == BASE_OPT_INT ? "an integer" : "a number");
}

/* Text that strtoll and strtod would also accept ("  1", "inf") is no number here. */
static bool starts_number(const char *text)
{
	text += *text == '-' || *text == '+';
	return (*text >= '0' && *text <= '9') || *text == '.';
}

static int set_int(const struct base_opt *o, const char *text, struct base_err *err)
{
	const char *digits = text + (*text == '-' || *text == '+');
	bool hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
	long long v;
	char *end;
	int r;

	errno = 0;
	/* Not base 0: a leading zero shall not mean octal. */
	v = strtoll(text, &end, hex ? 16 : 10);
	if (!starts_number(text) || end == text || *end)
		return not_a_number(o, text, err);
	r = check_limits(o, (double)v, text, err);
	if (r == 0 && errno == ERANGE)
		r = base_fail(err, -DCPI_EUSAGE, "value '%s' of option '-%s' is out of limits",
			      text, o->name);
	if (r == 0)
		*(int64_t *)o->dest = v;
	return r;
}

static int set_double(const struct base_opt *o, const char *text, struct base_err *err)
{
	char *end;
	double v = strtod(text, &end);
	int r;

	if (!starts_number(text) || end == text || *end || !isfinite(v))
		return not_a_number(o, text, err);
	r = check_limits(o, v, text, err);
	if (r == 0)
		*(double *)o->dest = v;
	return r;
}

static int add_item(const struct base_opt *o, const char *text, struct base_err *err)
{
	struct base_opt_list *list = o->dest;
	const char **items = realloc(list->items, (list->nr + 1) * sizeof(*items));

	if (!items)
		return base_fail_errno(err, -ENOMEM, "cannot take option '-%s'", o->name);
	items[list->nr] = text;
	list->items = items;
	list->nr++;
	return 0;
}

int base_opt_set(const struct base_opt *o, const char *text, struct base_err *err)
{
	switch (o->kind) {
	case BASE_OPT_FLAG:
		break;
	case BASE_OPT_STRING:
		*(const char **)o->dest = text;
		return 0;
	case BASE_OPT_LIST:
		return add_item(o, text, err);
	case BASE_OPT_INT:
		return set_int(o, text, err);
	case BASE_OPT_DOUBLE:
		return set_double(o, text, err);
	}
	return base_fail(err, -DCPI_EUSAGE, "option '-%s' takes no value", o->name);
}

static int serve(const struct base_cmd *cmd, const struct base_opt *o)
{
	switch (o - common_opts) {
	case 0:
		base_opt_help(cmd, stdout);
		break;
	case 1:
	case 4:
		printf("%s (DCPI) %s%s%s\n", cmd->name, base_release(),
		       *base_revision() ? ", revision " : "", base_revision());
		break;
	case 2:
		base_opt_man(cmd, stdout);
		break;
	default:
		base_opt_names(cmd, stdout);
	}
	return BASE_OPT_DONE;
}

/* @args: the option and what follows it. Says in @used how many words it took. */
static int take(const struct base_cmd *cmd, char **args, int left, int *used, struct base_err *err)
{
	struct word w = split(args[0]);
	const struct base_opt *o = find(cmd->opts, &w), *common = find(common_opts, &w);

	*used = 1;
	if (!o && !common)
		return unknown(cmd, &w, err);
	if (o && cmd->given)
		*cmd->given |= 1ull << (o - cmd->opts);
	if (w.value)
		return base_opt_set(o ? o : common, w.value, err);
	if (!o)
		return serve(cmd, common);
	if (o->kind == BASE_OPT_FLAG) {
		*(bool *)o->dest = true;
		return BASE_OPT_RUN;
	}
	if (left < 2) {
		base_fail(err, -DCPI_EUSAGE, "missing value of option '-%s'", o->name);
		base_hint(err, "give it as '-%s %s'", o->name, o->arg ? o->arg : "VALUE");
		return -DCPI_EUSAGE;
	}
	*used = 2;
	return base_opt_set(o, args[1], err);
}

static int usage_hint(const struct base_cmd *cmd, struct base_err *err)
{
	base_hint(err, "usage: %s [options]%s%s", cmd->name, *cmd->operands ? " " : "",
		  cmd->operands);
	return -DCPI_EUSAGE;
}

int base_opt_usage(const struct base_cmd *cmd, const char *what, struct base_err *err)
{
	base_fail(err, -DCPI_EUSAGE, "%s", what);
	return usage_hint(cmd, err);
}

static int check_operands(const struct base_cmd *cmd, int nr, char **operands, struct base_err *err)
{
	if (nr >= cmd->min_operands && (cmd->max_operands < 0 || nr <= cmd->max_operands))
		return BASE_OPT_RUN;
	if (nr < cmd->min_operands)
		base_fail(err, -DCPI_EUSAGE, "missing operand");
	else
		base_fail(err, -DCPI_EUSAGE, "unexpected operand '%s'",
			  operands[cmd->max_operands]);
	return usage_hint(cmd, err);
}

int base_opt_parse(const struct base_cmd *cmd, int *argc, char ***argv, struct base_err *err)
{
	char **words = *argv + (*argc > 0);
	int left = *argc - (*argc > 0), nr = 0, used = 1;
	bool ended = false;

	for (int i = 0; i < left; i += used) {
		char *word = words[i];
		int r = BASE_OPT_RUN;

		used = 1;
		if (ended || word[0] != '-' || !word[1]) {
			words[nr++] = word;
			ended |= cmd->first_ends;
		} else if (!strcmp(word, "--")) {
			ended = true;
		} else {
			r = take(cmd, words + i, left - i, &used, err);
		}
		if (r != BASE_OPT_RUN)
			return r;
	}
	if (nr < left)
		words[nr] = NULL;
	*argc = nr;
	*argv = words;
	return check_operands(cmd, nr, words, err);
}
