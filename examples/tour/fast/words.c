/* SPDX-License-Identifier: BSD-2-Clause */
/* The same program without the problem: its words are spread over all chains. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { NR_WORDS = 20000, NR_CHAINS = 32768, WORD_LEN = 16 };

struct word {
	struct word *next; /* of its chain */
	uint64_t count;
	char text[WORD_LEN];
};

static struct word words[NR_WORDS], *chains[NR_CHAINS];
static size_t nr_words;

static uint64_t draw(uint64_t *state)
{
	*state = *state * 6364136223846793005 + 1442695040888963407;
	return *state >> 33;
}

/* The word of that number: five to twelve letters. */
static void make(uint64_t number, char *text)
{
	uint64_t state = number;
	size_t len = 5 + draw(&state) % 8;

	for (size_t i = 0; i < len; i++)
		text[i] = (char)('a' + draw(&state) % 26);
	text[len] = '\0';
}

static int same(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

static unsigned int hash(const char *text)
{
	unsigned int sum = 2166136261;

	for (size_t i = 0; text[i]; i++)
		sum = (sum ^ (unsigned char)text[i]) * 16777619;
	return sum;
}

static struct word *find(const char *text)
{
	struct word **chain = &chains[hash(text) % NR_CHAINS], *w = *chain;

	while (w && !same(w->text, text))
		w = w->next;
	if (w)
		return w;
	w = &words[nr_words++];
	for (size_t i = 0; i < WORD_LEN; i++)
		w->text[i] = text[i];
	w->next = *chain;
	*chain = w;
	return w;
}

int main(int argc, char **argv)
{
	uint64_t state = 1, most = 0;
	long rounds = argc > 1 ? atol(argv[1]) : 3000000;
	char text[WORD_LEN] = "";

	for (long i = 0; i < rounds; i++) {
		make(draw(&state) % NR_WORDS, text);
		find(text)->count++;
	}
	for (size_t i = 0; i < nr_words; i++)
		most = words[i].count > most ? words[i].count : most;
	printf("%zu words, the most frequent one %llu times\n", nr_words, (unsigned long long)most);
	return 0;
}
