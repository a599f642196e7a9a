/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Profile files of versions 0.06 and 0.07, written and read by nothing but the grammar of the
 * original's page (dcpiformat(4)). Shares no code with the library, so that both cannot err alike.
 *
 *   oldform write <TEXT >FILE   header lines, "samples", then a chunk a line: OFFSET COUNT…
 *   oldform read FILE…          a file's required lines and sums, a line each; 1: what breaks the
 * grammar oldform counts FILE…        "EVENT OFFSET COUNT" for each count that is not 0
 */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *file;

static void broken(const char *why, unsigned long long where)
{
	fprintf(stderr, "oldform: '%s': %s (%llu)\n", file, why, where);
	exit(1);
}

/* ---- writing --------------------------------------------------------------------------------- */

static size_t header_len;
static uint32_t nr_offsets, nr_samples;

static void put(uint32_t v)
{
	for (int i = 0; i < 4; i++, v >>= 8)
		putchar((int)(v & 255));
}

static void write_header(char *line, size_t size)
{
	while (fgets(line, (int)size, stdin) && strcmp(line, "samples\n")) {
		header_len += strlen(line);
		fputs(line, stdout);
	}
	printf("samples");
	for (header_len += 8; header_len % 4; header_len++)
		putchar(' ');
	putchar('\n');
}

static void write_chunk(char *line)
{
	uint32_t counts[256], n = 0, off;
	char *word = strtok(line, " \n");

	off = (uint32_t)strtoul(word, NULL, 0);
	while ((word = strtok(NULL, " \n")))
		counts[n++] = (uint32_t)strtoul(word, NULL, 0);
	put(off);
	put(n);
	for (uint32_t i = 0; i < n; i++) {
		put(counts[i]);
		nr_offsets += counts[i] != 0;
		nr_samples += counts[i];
	}
}

static int write_file(void)
{
	char line[4096];

	write_header(line, sizeof(line));
	while (fgets(line, sizeof(line), stdin))
		write_chunk(line);
	put(nr_offsets);
	put(nr_samples);
	return 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

static const char *const required[] = { "image",  "epoch", "platform", "event",
					"period", "tsize", "cpuspeed" };
enum { NR = sizeof(required) / sizeof(required[0]), EVENT = 3 };

static char values[NR][4096];

static int all(const char *text, int (*is)(int c))
{
	const char *at = text;

	while (*at && is((unsigned char)*at))
		at++;
	return at > text && !*at;
}

static void check_value(int word, const char *value)
{
	static const char kinds[NR] = "xedrddd"; /* hex, epoch, rest of line, event, digits */
	size_t len = strlen(value);

	if (!len || value[0] == ' ' || (kinds[word] == 'x' && !all(value, isxdigit)) ||
	    (word > EVENT && !all(value, isdigit)) ||
	    (word == 1 && (len != 10 || !all(value, isdigit))))
		broken(required[word], len);
}

static void take_line(const char *line, size_t nr)
{
	size_t word = strcspn(line, " \t"), blanks = strspn(line + word, " \t");

	if (!word || !blanks || !line[word + blanks])
		broken("a line is not a word and its value", nr);
	for (int i = 0; i < NR; i++) {
		if (strlen(required[i]) != word || strncmp(line, required[i], word))
			continue;
		if (values[i][0])
			broken("a required line stands twice", nr);
		snprintf(values[i], sizeof(values[i]), "%s", line + word + blanks);
		check_value(i, values[i]);
	}
}

static int is_end(const char *line)
{
	return !strncmp(line, "samples", 7) && strspn(line + 7, " \t") == strlen(line + 7);
}

static void read_header(FILE *f)
{
	char line[4096];
	size_t nr = 0;

	memset(values, 0, sizeof(values));
	header_len = 0;
	for (;;) {
		nr++;
		if (!fgets(line, sizeof(line), f) || line[strlen(line) - 1] != '\n')
			broken("the header has no end", nr);
		header_len += strlen(line);
		line[strlen(line) - 1] = '\0';
		if (is_end(line))
			break;
		take_line(line, nr);
	}
	for (int i = 0; i < NR; i++)
		if (!values[i][0])
			broken(required[i], 0);
	if (header_len % 4)
		broken("the header is no multiple of four", header_len);
}

static uint32_t get(FILE *f)
{
	uint32_t v = 0;

	for (int i = 0; i < 4; i++) {
		int c = getc(f);

		if (c == EOF)
			broken("the binary part is cut", (unsigned long long)ftell(f));
		v |= (uint32_t)c << 8 * i;
	}
	return v;
}

static void read_chunks(FILE *f, long footer, int print)
{
	uint64_t next = 0;

	nr_offsets = nr_samples = 0;
	while (ftell(f) < footer) {
		uint32_t off = get(f), n = get(f);

		if (off < next || !n || ftell(f) + 4l * n > footer)
			broken("a chunk overlaps another, or is empty, or too long", off);
		next = (uint64_t)off + n;
		for (uint32_t i = 0; i < n; i++) {
			uint32_t count = get(f);

			if (nr_samples + count < count)
				broken("the sum wraps", off);
			nr_offsets += count != 0;
			nr_samples += count;
			if (print && count)
				printf("%s 0x%llx %u\n", values[EVENT], (unsigned long long)off + i,
				       count);
		}
	}
	if (get(f) != nr_offsets || get(f) != nr_samples)
		broken("the footer tells of other sums", nr_samples);
}

static void read_file(int print)
{
	FILE *f = fopen(file, "rb");
	long end;

	if (!f)
		broken("cannot open it", 0);
	fseek(f, 0, SEEK_END);
	end = ftell(f);
	rewind(f);
	read_header(f);
	read_chunks(f, end - 8, print);
	if (!print)
		printf("image %s epoch %s platform %s event %s period %s tsize %s cpuspeed %s "
		       "offsets %u "
		       "samples %u\n",
		       values[0], values[1], values[2], values[3], values[4], values[5], values[6],
		       nr_offsets, nr_samples);
	fclose(f);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "write"))
		return write_file();
	if (argc < 3 || (strcmp(argv[1], "read") && strcmp(argv[1], "counts")))
		return 2;
	for (int i = 2; i < argc; i++) {
		file = argv[i];
		read_file(argv[1][0] == 'c');
	}
	return 0;
}
