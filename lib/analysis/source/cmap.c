/* SPDX-License-Identifier: BSD-2-Clause */
/* Token maps: the tokenizer of a C source, the map from its tokens to their places, and the
 * reader and writer of the map. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cmap.h"
#include "line.h"

/* ---- tokens of C ----------------------------------------------------------------------------- */

void ctoken_init(struct ctoken_reader *r, const char *text, size_t len)
{
	*r = (struct ctoken_reader){
		.at = text, .end = len ? text + len : text, .line = text, .row = 1
	};
}

static size_t left(const struct ctoken_reader *r)
{
	return (size_t)(r->end - r->at);
}

static bool stands(const struct ctoken_reader *r, const char *text)
{
	size_t len = strlen(text);

	return left(r) >= len && memcmp(r->at, text, len) == 0;
}

/* Advances by one byte and counts rows. */
static void step(struct ctoken_reader *r)
{
	if (*r->at++ == '\n') {
		r->row++;
		r->line = r->at;
	}
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Is the character one of identifiers? Universal names and bytes that are not ASCII count as
 * such. */
static bool is_name(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       c == '$' || c == '\\' || (unsigned char)c >= 0x80;
}

/* The length of a line continuation (backslash and newline), or 0. */
static size_t splice(const struct ctoken_reader *r)
{
	if (stands(r, "\\\n"))
		return 2;
	return stands(r, "\\\r\n") ? 3 : 0;
}

static void skip_line(struct ctoken_reader *r)
{
	while (left(r) && *r->at != '\n') {
		size_t n = splice(r);

		for (step(r); n > 1; n--)
			step(r);
	}
}

static void skip_comment(struct ctoken_reader *r)
{
	r->at += 2;
	while (left(r) && !stands(r, "*/"))
		step(r);
	r->at += left(r) ? 2 : 0;
}

static void skip_blank(struct ctoken_reader *r)
{
	for (;;) {
		size_t n = splice(r);

		if (stands(r, "/*")) {
			skip_comment(r);
		} else if (stands(r, "//")) {
			skip_line(r);
		} else if (n) {
			for (; n; n--)
				step(r);
		} else if (left(r) && strchr(" \t\r\v\f\n", *r->at) && *r->at) {
			if (*r->at == '\n')
				r->started = false;
			step(r);
		} else {
			return;
		}
	}
}

/* To the closing quote; one that the line does not close is a token of its own. */
static void skip_quoted(struct ctoken_reader *r)
{
	struct ctoken_reader start = *r;
	char quote = *r->at++;

	while (left(r) && *r->at != quote && *r->at != '\n') {
		if (*r->at == '\\' && left(r) > 1)
			step(r);
		step(r);
	}
	if (!left(r) || *r->at != quote)
		*r = start;
	r->at++;
}

/* Skips a raw string R"delimiter( … )delimiter"; @r is at its quote. Without an end it is read
 * as an ordinary string. */
static void skip_raw(struct ctoken_reader *r)
{
	const char *open = memchr(r->at, '(', left(r) < 18 ? left(r) : 18);
	size_t len = open ? (size_t)(open - r->at - 1) : 0;

	for (const char *p = open; p && (size_t)(r->end - p) > len + 1; p++) {
		if (*p == ')' && memcmp(p + 1, r->at + 1, len) == 0 && p[1 + len] == '"') {
			while (r->at < p + 2 + len)
				step(r);
			return;
		}
	}
	skip_quoted(r);
}

static bool is_prefix(const char *text, size_t len, bool *raw)
{
	static const char *const prefixes[] = { "L", "u", "U", "u8", "R", "LR", "uR", "UR", "u8R" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		if (strlen(prefixes[i]) == len && memcmp(prefixes[i], text, len) == 0) {
			*raw = text[len - 1] == 'R';
			return true;
		}
	}
	return false;
}

static void skip_name(struct ctoken_reader *r)
{
	const char *start = r->at;
	bool raw = false;

	while (left(r) && is_name(*r->at) && !splice(r))
		r->at++;
	if (!left(r) || (*r->at != '"' && *r->at != '\'') ||
	    !is_prefix(start, (size_t)(r->at - start), &raw))
		return;
	if (raw && *r->at == '"')
		skip_raw(r);
	else
		skip_quoted(r);
}

/* Skips a preprocessing number: 1e+5, 0x1p-3, 1.5f, 1'000. */
static void skip_number(struct ctoken_reader *r)
{
	while (left(r)) {
		bool exponent = strchr("eEpP", *r->at) && *r->at;

		if (exponent && left(r) > 1 && (r->at[1] == '+' || r->at[1] == '-'))
			r->at += 2;
		else if (*r->at == '\'' && left(r) > 1 && is_name(r->at[1]))
			r->at += 2;
		else if ((is_name(*r->at) || *r->at == '.') && !splice(r))
			r->at++;
		else
			return;
	}
}

static void skip_punctuator(struct ctoken_reader *r)
{
	static const char *const all[] = {
		"%:%:", "...", "<<=", ">>=", "->", "++", "--", "<<", ">>", "<=",
		">=",	"==",  "!=",  "&&",  "||", "*=", "/=", "%=", "+=", "-=",
		"&=",	"^=",  "|=",  "##",  "<:", ":>", "<%", "%>", "%:", "::",
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (stands(r, all[i])) {
			r->at += strlen(all[i]);
			return;
		}
	}
	r->at++;
}

static void skip_token(struct ctoken_reader *r)
{
	char c = *r->at;

	if (c == '"' || c == '\'')
		skip_quoted(r);
	else if (is_digit(c) || (c == '.' && left(r) > 1 && is_digit(r->at[1])))
		skip_number(r);
	else if (is_name(c))
		skip_name(r);
	else
		skip_punctuator(r);
}

void ctoken_next(struct ctoken_reader *r, struct ctoken *out)
{
	skip_blank(r);
	*out = (struct ctoken){ .text = r->at,
				.row = r->row,
				.column = (unsigned int)(r->at - r->line) + 1 };
	if (!left(r))
		return;
	if (!r->started && (*r->at == '#' || stands(r, "%:"))) {
		out->kind = CTOKEN_DIRECTIVE;
		skip_line(r);
	} else {
		out->kind = CTOKEN_TEXT;
		r->started = true;
		skip_token(r);
	}
	out->len = (size_t)(r->at - out->text);
}

enum { TEXT_MAX = 120, NAME_MAX_LEN = 4096, TABLE_MAX = 1 << 20 };

void cmap_free(struct cmap *map)
{
	if (!map)
		return;
	for (size_t i = 0; i < map->nr_files; i++)
		free(map->files[i]);
	for (size_t i = 0; i < map->nr_tokens; i++)
		free(map->tokens[i].text);
	free(map->files);
	free(map->tokens);
	free(map->tokenized);
	free(map);
}

const struct cmap_token *cmap_at(const struct cmap *map, unsigned int line)
{
	size_t low = 0, high = map->nr_tokens;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (map->tokens[mid].line < line)
			low = mid + 1;
		else
			high = mid;
	}
	return low < map->nr_tokens && map->tokens[low].line == line ? &map->tokens[low] : NULL;
}

/* ---- tokenizing ------------------------------------------------------------------------------ */

struct making {
	struct cmap *map;
	struct base_map by_name; /* index of the file + 1 */
	struct base_buf *out;
	unsigned int line;	 /* the next line of @out */
	char name[NAME_MAX_LEN]; /* the current file */
	bool named;		 /* the current file is in the map: @file */
	uint32_t file;
	bool system, announced; /* the current file is a system header; the last state written for
			      the compiler */
	unsigned int row, from; /* row @row of the text is line @from of the file */
};

/* A file enters the map with its first token, as most headers define macros alone. */
static int find_file(struct making *m)
{
	struct cmap *map = m->map;
	uintptr_t known = (uintptr_t)base_map_get(&m->by_name, m->name, strlen(m->name));

	if (!known) {
		if (base_grow(&map->files, &map->cap_files, map->nr_files + 1,
			      sizeof(*map->files)) < 0)
			return -ENOMEM;
		map->files[map->nr_files] = strdup(m->name);
		if (!map->files[map->nr_files])
			return -ENOMEM;
		known = ++map->nr_files;
		if (base_map_set(&m->by_name, m->name, strlen(m->name), (void *)known) < 0)
			return -ENOMEM;
	}
	m->file = (uint32_t)(known - 1);
	m->named = true;
	return 0;
}

static unsigned int newlines(const char *text, size_t len)
{
	unsigned int n = 0;

	for (size_t i = 0; i < len; i++)
		n += text[i] == '\n';
	return n;
}

static int emit(struct making *m, const char *text, size_t len)
{
	int r = base_buf_append(m->out, text, len);

	/* A backslash at the end would join the line with the next one. */
	if (r >= 0 && len && text[len - 1] == '\\')
		r = base_buf_append(m->out, " ", 1);
	m->line += newlines(text, len) + 1;
	return r < 0 ? r : base_buf_append(m->out, "\n", 1);
}

/* Parses a number of a few digits; NULL: there is none. */
static const char *parse_number(const char *p, const char *end, unsigned int *out)
{
	const char *start = p;

	*out = 0;
	for (; p < end && *p >= '0' && *p <= '9'; p++) {
		if (*out > (INT_MAX - 9) / 10)
			return NULL;
		*out = *out * 10 + (unsigned int)(*p - '0');
	}
	return p > start ? p : NULL;
}

static const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	return p;
}

/* Parses a quoted name, in which a backslash precedes quotes and backslashes. */
static const char *parse_name(const char *p, const char *end, char *name)
{
	size_t n = 0;

	if (p == end || *p++ != '"')
		return NULL;
	for (; p < end && *p != '"'; p++) {
		if (*p == '\\' && p + 1 < end && (p[1] == '"' || p[1] == '\\'))
			p++;
		if (n + 1 == NAME_MAX_LEN || !*p)
			return NULL;
		name[n++] = *p;
	}
	name[n] = '\0';
	return p < end && n ? p + 1 : NULL;
}

/* Parses a line marker: # 12 "file.c" 1 3, or #line 12 "file.c". False: it is another directive. */
static bool parse_marker(const struct ctoken *t, unsigned int *line, char *name, bool *system)
{
	const char *end = t->text + t->len, *p = skip_blanks(t->text + 1, end);

	if (end - p > 4 && memcmp(p, "line", 4) == 0)
		p = skip_blanks(p + 4, end);
	p = parse_number(p, end, line);
	if (!p)
		return false;
	p = skip_blanks(p, end);
	*name = '\0';
	*system = false;
	if (p == end)
		return true;
	p = parse_name(p, end, name);
	for (; p && p < end; p++)
		*system |= *p == '3';
	return p != NULL;
}

/* Writes a marker where system headers begin and end, as the compiler is lenient there. */
static int emit_system(struct making *m)
{
	char marker[NAME_MAX_LEN + 64];
	int n;

	if (m->system == m->announced)
		return 0;
	m->announced = m->system;
	n = snprintf(marker, sizeof(marker), "# %u \"%s\"%s", m->line + 1, m->map->tokenized,
		     m->system ? " 3" : "");
	return emit(m, marker, (size_t)n);
}

static int add_directive(struct making *m, const struct ctoken *t)
{
	char name[NAME_MAX_LEN];
	unsigned int line;
	bool system;
	int r;

	if (!parse_marker(t, &line, name, &system)) {
		r = emit_system(m);
		return r < 0 ? r : emit(m, t->text, t->len);
	}
	m->row = t->row + 1;
	m->from = line;
	if (!*name)
		return 0;
	memcpy(m->name, name, sizeof(name));
	m->named = false;
	m->system = system;
	return 0;
}

static char *shown(const char *text, size_t len)
{
	const char *newline = memchr(text, '\n', len);
	char *copy;

	if (newline)
		len = (size_t)(newline - text);
	if (len > TEXT_MAX)
		len = TEXT_MAX;
	copy = calloc(len + 1, 1);
	if (!copy)
		return NULL;
	for (size_t i = 0; i < len; i++)
		copy[i] = text[i] ? text[i] : '?';
	return base_text_clean(copy);
}

static int add_token(struct making *m, const struct ctoken *t)
{
	struct cmap *map = m->map;
	struct cmap_token *to;

	/* A '#' at the start of a line would begin a directive. */
	if (*t->text == '#' || (t->len > 1 && memcmp(t->text, "%:", 2) == 0)) {
		if (m->out->len && m->line > 1) {
			m->out->data[m->out->len - 1] = ' ';
			m->line--;
		}
		return emit(m, t->text, t->len);
	}
	if (emit_system(m) < 0 || (!m->named && find_file(m) < 0) ||
	    base_grow(&map->tokens, &map->cap_tokens, map->nr_tokens + 1, sizeof(*map->tokens)) < 0)
		return -ENOMEM;
	to = &map->tokens[map->nr_tokens];
	*to = (struct cmap_token){ .line = m->line,
				   .file = m->file,
				   .from = m->from + (t->row - m->row),
				   .column = t->column,
				   .text = shown(t->text, t->len) };
	if (!to->text)
		return -ENOMEM;
	map->nr_tokens++;
	return emit(m, t->text, t->len);
}

int cmap_tokenize(const char *text, size_t len, const char *name, struct base_buf *out,
		  struct cmap **map)
{
	struct making m = { .map = calloc(1, sizeof(*m.map)), .out = out, .line = 1 };
	struct ctoken_reader reader;
	struct ctoken t;
	int r = -ENOMEM;

	m.row = m.from = 1;
	if (m.map)
		m.map->tokenized = strdup(name);
	if (m.map && m.map->tokenized && strlen(name) < NAME_MAX_LEN) {
		memcpy(m.name, name, strlen(name) + 1);
		r = 0;
	}
	ctoken_init(&reader, text, len);
	for (ctoken_next(&reader, &t); r >= 0 && t.kind != CTOKEN_END; ctoken_next(&reader, &t))
		r = t.kind == CTOKEN_DIRECTIVE ? add_directive(&m, &t) : add_token(&m, &t);
	base_map_release(&m.by_name);
	if (r < 0)
		cmap_free(m.map);
	else
		*map = m.map;
	return r;
}

/* ---- columns --------------------------------------------------------------------------------- */

struct line_tokens {
	struct ctoken *v; /* tokens of the source, in order */
	size_t nr, cap;
};

static int read_source(struct line_tokens *all, const char *source, size_t len)
{
	struct ctoken_reader reader;
	struct ctoken t;
	int r = 0;

	ctoken_init(&reader, source, len);
	for (ctoken_next(&reader, &t); r >= 0 && t.kind != CTOKEN_END; ctoken_next(&reader, &t)) {
		if (t.kind != CTOKEN_TEXT)
			continue;
		r = base_grow(&all->v, &all->cap, all->nr + 1, sizeof(*all->v));
		if (r >= 0)
			all->v[all->nr++] = t;
	}
	return r;
}

static size_t first_of_row(const struct line_tokens *all, unsigned int row)
{
	size_t low = 0, high = all->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (all->v[mid].row < row)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Compares two texts; the map truncates them, so the comparison stops there too. */
static bool same(const struct cmap_token *a, const struct ctoken *b)
{
	size_t len = strlen(a->text);

	return (b->len == len || (len == TEXT_MAX && b->len > len)) &&
	       memcmp(a->text, b->text, len) == 0;
}

/* Fills @table[i][j] with the length of the longest common subsequence of a[i..] and b[j..]. */
static void fill(uint16_t *table, const struct cmap_token *a, size_t n, const struct ctoken *b,
		 size_t m)
{
	for (size_t i = n; i-- > 0;) {
		for (size_t j = m; j-- > 0;) {
			uint16_t *at = &table[i * (m + 1) + j];
			uint16_t down = at[m + 1], right = at[1];

			*at = same(&a[i], &b[j]) ? (uint16_t)(at[m + 2] + 1)
			      : down > right	 ? down
						 : right;
		}
	}
}

/* Follows the longest common subsequence: for each token of a, the equal one of b, or m. */
static void follow(const uint16_t *table, const struct cmap_token *a, size_t n,
		   const struct ctoken *b, size_t m, size_t *partner)
{
	size_t j = 0;

	for (size_t i = 0; i < n; i++) {
		const uint16_t *row = &table[i * (m + 1)], *below = row + m + 1;
		size_t k = j;

		while (k < m && row[k + 1] == row[k] && !same(&a[i], &b[k]))
			k++;
		partner[i] = m;
		if (k < m && same(&a[i], &b[k]) && row[j] == below[k + 1] + 1) {
			partner[i] = k;
			j = k + 1;
		}
	}
}

static bool is_word(const struct ctoken *t)
{
	return (*t->text >= 'a' && *t->text <= 'z') || (*t->text >= 'A' && *t->text <= 'Z') ||
	       *t->text == '_';
}

/*
 * A common token gets its place in the source. A token that a macro made gets the place of the
 * macro's name: the last word of the source before the next common token that the preprocessor
 * removed.
 */
static void place(struct cmap_token *a, size_t n, const struct ctoken *b, size_t m,
		  const size_t *partner)
{
	size_t j = 0, macro = m;

	for (size_t i = 0; i < n; i++) {
		size_t next = m;

		for (size_t k = i; k < n && next == m; k++)
			next = partner[k];
		for (; j < next; j++)
			if (is_word(&b[j]))
				macro = j;
		if (partner[i] < m) {
			a[i].column = b[partner[i]].column;
			j = partner[i] + 1;
		} else if (macro < m) {
			a[i].column = b[macro].column;
		}
	}
}

/* Matches the tokens of one line with those that the preprocessor left of it. */
static int match(struct cmap_token *a, size_t n, const struct ctoken *b, size_t m)
{
	size_t *partner;
	uint16_t *table;
	int r = -ENOMEM;

	for (size_t i = 0; i < n; i++)
		a[i].column = 0;
	if (!m || n >= UINT16_MAX || m >= UINT16_MAX || (n + 1) * (m + 1) > TABLE_MAX)
		return 0;
	table = calloc((n + 1) * (m + 1), sizeof(*table));
	partner = calloc(n, sizeof(*partner));
	if (table && partner) {
		fill(table, a, n, b, m);
		follow(table, a, n, b, m, partner);
		place(a, n, b, m, partner);
		r = 0;
	}
	free(table);
	free(partner);
	return r;
}

int cmap_columns(struct cmap *map, uint32_t file, const char *source, size_t len)
{
	struct line_tokens all = { 0 };
	int r = read_source(&all, source, len);

	for (size_t i = 0, end; i < map->nr_tokens && r >= 0; i = end) {
		struct cmap_token *t = &map->tokens[i];
		size_t from, to;

		for (end = i + 1; end < map->nr_tokens && map->tokens[end].file == t->file &&
				  map->tokens[end].from == t->from;)
			end++;
		if (t->file != file)
			continue;
		from = first_of_row(&all, t->from);
		to = t->from == UINT_MAX ? from : first_of_row(&all, t->from + 1);
		r = match(t, end - i, all.v + from, to - from);
	}
	free(all.v);
	return r;
}

/* ---- writing --------------------------------------------------------------------------------- */

static int put_text(struct base_buf *to, const char *before, const char *text)
{
	char *copy = strdup(text);
	int r = copy ? base_buf_printf(to, "%s%s\n", before, base_text_clean(copy)) : -ENOMEM;

	free(copy);
	return r;
}

int cmap_write(const struct cmap *map, struct base_buf *to)
{
	char before[64];
	int r = base_buf_printf(to, "dcpi-cmap 1\n");

	if (r >= 0)
		r = put_text(to, "tokenized ", map->tokenized);
	for (size_t i = 0; i < map->nr_files && r >= 0; i++)
		r = put_text(to, "file ", map->files[i]);
	for (size_t i = 0; i < map->nr_tokens && r >= 0; i++) {
		const struct cmap_token *t = &map->tokens[i];

		snprintf(before, sizeof(before), "%u %" PRIu32 ":%u:%u ", t->line, t->file, t->from,
			 t->column);
		r = put_text(to, before, t->text);
	}
	return r;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reader {
	const char *at, *end;
	size_t line;
	char *text; /* the current line; owned */
	size_t cap;
	struct cmap *map;
	struct base_err *err;
};

static int bad(struct reader *r, const char *why)
{
	return base_fail(r->err, -DCPI_EFORMAT, "line %zu of the map is wrong: %s", r->line, why);
}

static int no_memory(struct reader *r)
{
	return base_fail_errno(r->err, -ENOMEM, "cannot read the map");
}

/* Reads the next line: 1, 0 at the end of the text, or negative. */
static int next_line(struct reader *r)
{
	const char *why = NULL;
	int got;

	r->line += r->at != r->end;
	got = line_take(&r->at, r->end, &r->text, &r->cap, &why);
	if (got < 0)
		return why ? bad(r, why) : no_memory(r);
	return got;
}

/* Reads a number that is followed by @behind. */
static bool take(const char **at, char behind, unsigned int *out)
{
	unsigned long long n;
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	n = strtoull(*at, &end, 10);
	if (errno || n > UINT_MAX || *end != behind)
		return false;
	*out = (unsigned int)n;
	*at = end + 1;
	return true;
}

static int read_file(struct reader *r, const char *name)
{
	struct cmap *map = r->map;

	if (!*name || map->nr_tokens)
		return bad(r, "a file needs a name, and stands before the tokens");
	if (base_grow(&map->files, &map->cap_files, map->nr_files + 1, sizeof(*map->files)) < 0)
		return no_memory(r);
	map->files[map->nr_files] = strdup(name);
	return map->files[map->nr_files++] ? 0 : no_memory(r);
}

static int read_token(struct reader *r, const char *at)
{
	struct cmap *map = r->map;
	struct cmap_token t = { 0 };

	if (!take(&at, ' ', &t.line) || !take(&at, ':', &t.file) || !take(&at, ':', &t.from) ||
	    !take(&at, ' ', &t.column) || !*at)
		return bad(r, "a token is LINE FILE:LINE:COLUMN TEXT");
	if (t.file >= map->nr_files)
		return bad(r, "no such file");
	if (t.line <= (map->nr_tokens ? map->tokens[map->nr_tokens - 1].line : 0))
		return bad(r, "the lines do not ascend");
	if (base_grow(&map->tokens, &map->cap_tokens, map->nr_tokens + 1, sizeof(*map->tokens)) < 0)
		return no_memory(r);
	t.text = strdup(at);
	if (!t.text)
		return no_memory(r);
	map->tokens[map->nr_tokens++] = t;
	return 0;
}

static int read_head(struct reader *r)
{
	const char *at;
	unsigned int version;
	int n = next_line(r);

	if (n < 0)
		return n;
	at = r->text;
	if (n == 0 || strncmp(at, "dcpi-cmap ", 10) != 0) {
		n = base_fail(r->err, -DCPI_EFORMAT, "this is no token map");
		base_hint(r->err, "it begins with 'dcpi-cmap 1', as dcpicc writes it");
		return n;
	}
	at += 10;
	if (!take(&at, '\0', &version))
		return bad(r, "no version");
	if (version != 1)
		return base_fail(r->err, -DCPI_EVERSION, "the map has version %u, known is 1",
				 version);
	n = next_line(r);
	if (n < 0)
		return n;
	if (n == 0 || strncmp(r->text, "tokenized ", 10) != 0 || !r->text[10])
		return bad(r, "the name of the tokenized file is missing");
	r->map->tokenized = strdup(r->text + 10);
	return r->map->tokenized ? 0 : no_memory(r);
}

int cmap_read(const char *text, size_t len, struct cmap **out, struct base_err *err)
{
	struct reader r = {
		.at = text, .end = text + len, .map = calloc(1, sizeof(*r.map)), .err = err
	};
	int n = r.map ? read_head(&r) : no_memory(&r);

	while (n >= 0 && (n = next_line(&r)) > 0)
		n = strncmp(r.text, "file ", 5) == 0 ? read_file(&r, r.text + 5)
						     : read_token(&r, r.text);
	free(r.text);
	if (n < 0)
		cmap_free(r.map);
	else
		*out = r.map;
	return n;
}
