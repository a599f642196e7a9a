/* SPDX-License-Identifier: BSD-2-Clause */
/* The instructions of a block, in columns. */
#include <stdlib.h>
#include <string.h>

#include "graph_reader.h"

int graph_read_heading(struct graph_reader *r, char *at)
{
	if (r->columns.seen)
		return graph_bad(r, "a block has one heading");
	r->columns.seen = graph_take(&at, "Instruction") && graph_take(&at, "Samples");
	r->columns.cpi = graph_take(&at, r->p->unit == GRAPH_CYCLES ? "CPI" : "Cost");
	r->columns.culprit = graph_take(&at, "Culprit");
	r->columns.line = graph_take(&at, "Line");
	return r->columns.seen && graph_at_end(at) ? 0 : graph_bad(r, "these are not the columns");
}

/* Cut the last word off; NULL where there is none. */
static char *last_word(char *text)
{
	size_t len = strlen(text);

	while (len && text[len - 1] == ' ')
		len--;
	text[len] = '\0';
	while (len && text[len - 1] != ' ')
		len--;
	if (!text[len])
		return NULL;
	if (!len)
		return text;
	text[len - 1] = '\0';
	return text + len;
}

static bool parse_cpi(struct graph_reader *r, char *word, double *out)
{
	if (!word)
		return false;
	if (strcmp(word, "-") == 0)
		return true;
	return graph_take_double(&word, out) && strcmp(word, graph_unit_name(r->p->unit)) == 0;
}

static bool parse_line(struct graph_reader *r, char *word, struct graph_insn *insn)
{
	uint64_t file, line;

	if (!word)
		return false;
	if (strcmp(word, "-") == 0)
		return true;
	if (!graph_take_uint(&word, 10, GRAPH_MAX_FILES, &file) || !graph_take_char(&word, ":") ||
	    !graph_take_uint(&word, 10, UINT32_MAX, &line) || *word || !line ||
	    file >= r->p->files.nr)
		return false;
	insn->file = (uint32_t)file;
	insn->line = (unsigned int)line;
	return true;
}

static char *trim(char *text)
{
	size_t len;

	text += strspn(text, " ");
	for (len = strlen(text); len && text[len - 1] == ' '; len--)
		text[len - 1] = '\0';
	return text;
}

static int add_insn(struct graph_reader *r, const struct graph_insn *from, const char *culprit)
{
	struct graph_block *b = r->b;
	struct graph_insn *insn;

	if (from->vaddr < b->vaddr || from->vaddr >= b->end ||
	    (b->nr_insns && from->vaddr <= b->insns[b->nr_insns - 1].vaddr))
		return graph_bad(r, "the address does not follow, or is not the block's");
	if (from->samples > UINT64_MAX - b->samples)
		return graph_bad(r, "too many samples");
	insn = graph_insn_add(b, from->vaddr, from->text, from->samples);
	if (!insn)
		return graph_no_memory(r);
	insn->cpi = from->cpi;
	insn->file = from->file;
	insn->line = from->line;
	insn->above = r->above;
	memset(&r->above, 0, sizeof(r->above));
	if (culprit && strcmp(culprit, "-") != 0) {
		insn->culprit = strdup(culprit);
		if (!insn->culprit)
			return graph_no_memory(r);
	}
	return 0;
}

/* The columns behind the text are words each: they are found from the end. */
int graph_read_insn(struct graph_reader *r, char *at)
{
	struct graph_insn insn = { .cpi = -1 };
	char *culprit = NULL, *word;

	if (!r->columns.seen)
		return graph_bad(r, "an instruction stands below the names of the columns");
	if (!graph_take_uint(&at, 16, UINT64_MAX, &insn.vaddr) || *at != ' ')
		return graph_bad(r, "no address");
	if (r->columns.line && !parse_line(r, last_word(at), &insn))
		return graph_bad(r, "the last column is FILE:LINE or '-'");
	if (r->columns.culprit) {
		culprit = last_word(at);
		if (!culprit)
			return graph_bad(r, "the culprit is missing");
	}
	if (r->columns.cpi && !parse_cpi(r, last_word(at), &insn.cpi))
		return graph_bad(r, "the CPI is like '1.0cy', or '-'");
	word = last_word(at);
	if (!word || !graph_take_uint(&word, 10, UINT64_MAX, &insn.samples) || *word)
		return graph_bad(r, "the samples are missing");
	insn.text = trim(at);
	return *insn.text ? add_insn(r, &insn, culprit)
			  : graph_bad(r, "the instruction is missing");
}
