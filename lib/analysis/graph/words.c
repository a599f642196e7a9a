/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of a graph's text, and the words in them. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph_reader.h"
#include "line.h"

int graph_bad(struct graph_reader *r, const char *why)
{
	return base_fail(r->err, -DCPI_EFORMAT, "line %zu of the graph is wrong: %s", r->line, why);
}

int graph_no_memory(struct graph_reader *r)
{
	return base_fail_errno(r->err, -ENOMEM, "cannot read the graph");
}

int graph_next_line(struct graph_reader *r)
{
	const char *why = NULL;
	size_t len;
	int got;

	r->line += r->at != r->end;
	got = line_take(&r->at, r->end, &r->text, &r->cap, &why);
	if (got < 0)
		return why ? graph_bad(r, why) : graph_no_memory(r);
	for (len = got ? strlen(r->text) : 0; len && r->text[len - 1] == ' ';)
		r->text[--len] = '\0';
	return got;
}

bool graph_take(char **at, const char *word)
{
	char *p = *at + strspn(*at, " ");
	size_t len = strlen(word);

	if (strncmp(p, word, len) != 0 || (p[len] && p[len] != ' '))
		return false;
	*at = p + len;
	return true;
}

bool graph_at_end(const char *at)
{
	return at[strspn(at, " ")] == '\0';
}

bool graph_take_char(char **at, const char *text)
{
	size_t len = strlen(text);

	if (strncmp(*at, text, len) != 0)
		return false;
	*at += len;
	return true;
}

bool graph_take_uint(char **at, int base, uint64_t max, uint64_t *out)
{
	char *p = *at + strspn(*at, " "), *end;

	if (base == 16 && !graph_take_char(&p, "0x"))
		return false;
	if (!strchr(base == 16 ? "0123456789abcdef" : "0123456789", *p) || !*p)
		return false;
	errno = 0;
	*out = strtoull(p, &end, base);
	if (errno || *out > max)
		return false;
	*at = end;
	return true;
}

bool graph_take_double(char **at, double *out)
{
	char *p = *at + strspn(*at, " "), *end;

	if (*p < '0' || *p > '9' || (p[0] == '0' && p[1] == 'x'))
		return false;
	*out = strtod(p, &end);
	*at = end;
	return isfinite(*out);
}

bool graph_take_freq(char **at, struct graph_freq *f)
{
	if (!graph_take(at, "freq"))
		return true;
	if (!graph_take_double(at, &f->value))
		return false;
	for (int c = GRAPH_LOW; c <= GRAPH_EXACT; c++) {
		if (graph_take(at, graph_confidence_name(c))) {
			f->confidence = c;
			return true;
		}
	}
	return false;
}
