/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program with three regular expressions, which knows nothing of DCPI: the library does. It
 * prints the CPU time of each by its own clock.
 *
 *	cc match.c -lpcre2-8 -o match && ./match [SECONDS]
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct regex {
	const char *name, *text;
	size_t len; /* of the subject before the name: the time grows with its square */
	unsigned char subject[1000];
	pcre2_code *code;
	double seconds; /* CPU time that it took, as we measure it */
} regexes[] = { { .name = "sixty", .text = "(?:[abc]|_)++sixty(\\d)", .len = 735 },
		{ .name = "thirty", .text = "(?:[abc]|_)++thirty(\\d)", .len = 520 },
		{ .name = "ten", .text = "(?:[abc]|_)++ten(\\d)", .len = 300 } };

#define NR_REGEXES (sizeof(regexes) / sizeof(regexes[0]))

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* From each of its letters on, the subject matches up to the digit that is not there. */
static void write_subject(struct regex *r)
{
	for (size_t i = 0; i < r->len; i++)
		r->subject[i] = (unsigned char)"abc"[i % 3];
	memcpy(r->subject + r->len, r->name, strlen(r->name));
	r->len += strlen(r->name);
}

/* The pattern is compiled anew: the code that it had ends, and its place is used again. */
static int compile(struct regex *r)
{
	PCRE2_SIZE at;
	int error;

	pcre2_code_free(r->code);
	r->code = pcre2_compile((PCRE2_SPTR)r->text, PCRE2_ZERO_TERMINATED, 0, &error, &at, NULL);
	return r->code && pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE) == 0;
}

static double match(const struct regex *r, double last, pcre2_match_data *data)
{
	for (int i = 1 + rand() % 15; i > 0; i--) /* so that no sampler keeps step */
		pcre2_match(r->code, r->subject, r->len, 0, 0, data, NULL);
	return cpu_seconds() - last;
}

int main(int argc, char **argv)
{
	double last, end = argc > 1 ? atof(argv[1]) : 2;
	pcre2_match_data *data = pcre2_match_data_create(2, NULL);

	for (size_t i = 0; i < NR_REGEXES; i++)
		write_subject(&regexes[i]);
	while ((last = cpu_seconds()) < end) {
		struct regex *r = &regexes[(unsigned int)rand() % NR_REGEXES];

		if (!compile(r))
			return fputs("match: no JIT\n", stderr), 1;
		r->seconds += match(r, last, data);
	}
	for (size_t i = 0; i < NR_REGEXES; i++) {
		printf("%s %f\n", regexes[i].name, regexes[i].seconds);
		pcre2_code_free(regexes[i].code);
	}
	pcre2_match_data_free(data);
	return fflush(stdout) ? perror("match"), 1 : 0;
}
