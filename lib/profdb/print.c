/* SPDX-License-Identifier: BSD-2-Clause */
/* The ASCII header of a profile file is written here, in all versions. */
#include <string.h>

#include "profdb_internal.h"

/*
 * A value that its line can hold. Version 1 escapes bytes that would break the line or vanish at
 * its ends. Version 0 has no escapes (a backslash is one): a newline becomes a question mark, and
 * so does a value of blanks alone, which would vanish.
 */
static int print_value(struct base_buf *out, enum profdb_format format, const char *value)
{
	size_t len = strlen(value);
	int r = 0;

	if (format != PROFDB_FORMAT_1 && strspn(value, " \t") == len)
		return base_buf_append(out, "?", 1);
	for (size_t i = 0; r >= 0 && i < len; i++) {
		unsigned char c = (unsigned char)value[i];
		bool blank = c == ' ' && (i == 0 || i == len - 1);

		if (format != PROFDB_FORMAT_1)
			r = base_buf_append(out, c == '\n' ? "?" : (char *)&c, 1);
		else if (c < ' ' || c == 0x7f || blank)
			r = base_buf_printf(out, "\\x%02x", c);
		else
			r = base_buf_append(out, c == '\\' ? "\\\\" : (char *)&c,
					    c == '\\' ? 2 : 1);
	}
	return r;
}

static int print_line(struct base_buf *out, enum profdb_format format, const char *word,
		      const char *value, char blank)
{
	int r = base_buf_printf(out, "%s%c", word, blank);

	if (r >= 0)
		r = print_value(out, format, value);
	return r < 0 ? r : base_buf_append(out, "\n", 1);
}

static int print_image(const struct profdb_profile *p, struct base_buf *out)
{
	char text[BASE_ID_TEXT_LEN];

	base_id_text(&p->image, text);
	return base_buf_printf(out, "image %s\nkind %s\n", *text ? text : "0",
			       profdb_kind_name(p->kind));
}

/* Words of version 0 that nobody told us: zero means unknown. */
static int print_required(const struct profdb_profile *p, enum profdb_format format,
			  struct base_buf *out)
{
	static const char *const words[][2] = {
		{ "epoch", NULL }, { "platform", "unknown" }, { "tsize", "0" }, { "cpuspeed", "0" }
	};
	char minute[11];
	int r = 0;

	for (size_t i = 0; r >= 0 && i < sizeof(words) / sizeof(words[0]); i++) {
		const char *value = profdb_profile_word(p, words[i][0]);

		if (!value && words[i][1] && format != PROFDB_FORMAT_1)
			value = words[i][1];
		else if (!value && format != PROFDB_FORMAT_1)
			value = "7001010000";
		else if (i == 0 && format != PROFDB_FORMAT_1) {
			snprintf(minute, sizeof(minute), "%.10s", value + 2); /* YYMMDDHHMM */
			value = minute;
		}
		if (value)
			r = print_line(out, format, words[i][0], value, ' ');
	}
	return r;
}

static bool is_required(const char *word)
{
	return !strcmp(word, "epoch") || !strcmp(word, "platform") || !strcmp(word, "tsize") ||
	       !strcmp(word, "cpuspeed");
}

static int print_event1(const struct profdb_event *e, struct base_buf *out)
{
	uint32_t enabled = profdb_enabled_millionths(e->enabled);
	int r = base_buf_append(out, "event ", 6);

	if (r >= 0)
		r = print_value(out, PROFDB_FORMAT_1, e->name);
	if (r >= 0)
		r = base_buf_printf(out, " period %llu enabled %u.%06u\n",
				    (unsigned long long)e->period, enabled / 1000000,
				    enabled % 1000000);
	return r;
}

static int print_event0(const struct profdb_event *e, struct base_buf *out)
{
	uint32_t enabled = profdb_enabled_millionths(e->enabled);
	int r = base_buf_printf(out, "event %s\nperiod %llu\n", e->name,
				(unsigned long long)e->period);

	if (r >= 0 && enabled != 1000000)
		r = base_buf_printf(out, "enabled 0.%06u\n", enabled);
	return r;
}

/* So long that the binary part begins at a multiple of @to. */
static int print_samples(struct base_buf *out, size_t start, size_t to)
{
	size_t len = out->len - start + strlen("samples\n");

	return base_buf_printf(out, "samples%*s\n", (int)((to - len % to) % to), "");
}

static int print_rest(const struct profdb_profile *p, enum profdb_format format,
		      struct base_buf *out)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < p->nr_lines; i++) {
		const struct profdb_line *line = &p->lines[i];

		/* Printed above, once; any other word keeps its place, as often as it was there. */
		if (!is_required(line->word))
			r = print_line(out, format, line->word, line->value, line->blank);
	}
	return r;
}

int profdb_header_print(const struct profdb_profile *p, enum profdb_format format, size_t event,
			struct base_buf *out, struct base_err *err)
{
	bool one = format == PROFDB_FORMAT_1;
	size_t start = out->len, first = one ? 0 : event, last = one ? p->nr_events : event + 1;
	int r;

	r = base_buf_printf(out, "%s\n",
			    one				   ? PROFDB_VERSION1_LINE
			    : format == PROFDB_FORMAT_0_07 ? "version 0.07"
							   : "version 0.06");
	if (r >= 0)
		r = print_image(p, out);
	for (size_t i = 0; r >= 0 && i < p->nr_paths; i++)
		r = print_line(out, format, "path", p->paths[i], ' ');
	if (r >= 0)
		r = print_required(p, format, out);
	for (size_t i = first; r >= 0 && i < last; i++)
		r = one ? print_event1(&p->events[i], out) : print_event0(&p->events[i], out);
	if (r >= 0)
		r = print_rest(p, format, out);
	if (r >= 0)
		r = print_samples(out, start, one ? 8 : 4);
	if (r < 0)
		return base_fail_errno(err, r, "cannot write a profile's header");
	if (out->len - start > PROFDB_HEADER_MAX)
		return base_fail(err, -DCPI_ELIMIT, "profile header longer than %u bytes",
				 PROFDB_HEADER_MAX);
	return 0;
}
