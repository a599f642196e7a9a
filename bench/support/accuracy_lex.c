/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "lex" of bench/accuracy: takes a text apart into tokens as C has them, counts them in a hash
 * table, keeps the names in a binary tree, and prints how many there are. lex FILE [ROUNDS]
 */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { NAME, NUMBER, TEXT, COMMENT, PUNCTUATION, KEYWORD, NR_KINDS };

static const char *const keywords[] = {
	"and",	  "as",	    "assert",  "break", "class", "continue", "def",    "del",	 "elif",
	"else",	  "except", "finally", "for",	"from",	 "global",   "if",     "import", "in",
	"is",	  "lambda", "not",     "or",	"pass",	 "raise",    "return", "struct", "switch",
	"static", "try",    "while",   "with",	"yield", "int",	     "char",   "const",	 "void"
};

struct token {
	struct token *next, *left, *right;
	enum kind kind;
	uint32_t hash;
	uint64_t count;
	size_t len;
	char text[];
};

enum { BUCKETS = 1 << 14 };

static struct token *buckets[BUCKETS], *root;
static uint64_t kinds[NR_KINDS];

static uint32_t hash(const char *s, size_t len)
{
	uint32_t h = 2166136261u;

	while (len--)
		h = (h ^ (uint8_t)*s++) * 16777619u;
	return h;
}

static int compare(const char *s, size_t len, const struct token *t)
{
	int r = memcmp(s, t->text, len < t->len ? len : t->len);

	return r ? r : len < t->len ? -1 : len > t->len;
}

static void plant(struct token *t)
{
	struct token **at = &root;

	while (*at)
		at = compare(t->text, t->len, *at) < 0 ? &(*at)->left : &(*at)->right;
	*at = t;
}

static int is_keyword(const char *s, size_t len)
{
	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
		if (keywords[i][0] == *s && strlen(keywords[i]) == len &&
		    memcmp(keywords[i], s, len) == 0)
			return 1;
	return 0;
}

static void put(enum kind kind, const char *s, size_t len)
{
	uint32_t h = hash(s, len);
	struct token **at = &buckets[h % BUCKETS], *t;

	if (kind == NAME && is_keyword(s, len))
		kind = KEYWORD;
	kinds[kind]++;
	for (t = *at; t; t = t->next)
		if (t->hash == h && compare(s, len, t) == 0) {
			t->count++;
			return;
		}
	t = calloc(1, sizeof(*t) + len + 1);
	if (!t)
		exit(1);
	t->kind = kind;
	t->hash = h;
	t->count = 1;
	t->len = len;
	memcpy(t->text, s, len);
	t->next = *at;
	*at = t;
	if (kind == NAME)
		plant(t);
}

static const char *quoted(const char *s, const char *end)
{
	char quote = *s++;

	while (s < end && *s != quote && *s != '\n')
		s += *s == '\\' && s + 1 < end ? 2 : 1;
	return s < end ? s + 1 : end;
}

static const char *comment(const char *s, const char *end)
{
	while (s < end && *s != '\n')
		s++;
	return s;
}

static const char *numeral(const char *s, const char *end)
{
	if (end - s > 1 && *s == '0' && (s[1] | 32) == 'x')
		s += 2;
	while (s < end && (isalnum((unsigned char)*s) || *s == '.'))
		s++;
	return s;
}

static void scan(const char *s, const char *end)
{
	while (s < end) {
		const char *from = s;
		enum kind kind = PUNCTUATION;

		switch (*s) {
		case ' ':
		case '\t':
		case '\n':
		case '\r':
			s++;
			continue;
		case '#':
			kind = COMMENT;
			s = comment(s, end);
			break;
		case '"':
		case '\'':
			kind = TEXT;
			s = quoted(s, end);
			break;
		case '<':
		case '>':
		case '=':
		case '!':
		case '+':
		case '-':
		case '*':
		case '/':
		case '&':
		case '|':
			s++;
			if (s < end && (*s == '=' || *s == *from))
				s++;
			break;
		default:
			if (isdigit((unsigned char)*s)) {
				kind = NUMBER;
				s = numeral(s, end);
			} else if (isalpha((unsigned char)*s) || *s == '_') {
				kind = NAME;
				while (s < end && (isalnum((unsigned char)*s) || *s == '_'))
					s++;
			} else {
				s++;
			}
		}
		put(kind, from, (size_t)(s - from));
	}
}

static uint64_t walk(const struct token *t, int depth)
{
	return t ? (uint64_t)depth + walk(t->left, depth + 1) + walk(t->right, depth + 1) : 0;
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[2]) : 1;
	FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;
	size_t len = 0, cap = 1 << 25;
	char *text = malloc(cap);

	if (!f || !text)
		return 1;
	len = fread(text, 1, cap, f);
	fclose(f);
	for (int i = 0; i < rounds; i++)
		scan(text, text + len);
	for (int i = 0; i < NR_KINDS; i++)
		printf("%llu ", (unsigned long long)kinds[i]);
	printf("%llu\n", (unsigned long long)walk(root, 0));
	free(text);
	return 0;
}
