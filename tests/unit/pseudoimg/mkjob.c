/* SPDX-License-Identifier: BSD-2-Clause */
/* clang-format off */
/*
 * mkjob >JOB: a job from a description on stdin, for shell tests. mkjob IMAGE: the image of that
 * job, written without the helper; prints what it is. One word a field; numbers in C's notation,
 * bytes in hex:
 *
 *	image MACHINE FACILITY PID HOST EXE [UID]   "\s" in FACILITY is a blank
 *	run VADDR IMG_OFF LEN
 *	file NAME                     } of the next routine
 *	line CODE_OFF LINE FILE       }
 *	inline DEPTH CODE_OFF LEN NAME CALL_FILE CALL_LINE  } NAME an index as FILE
 *	routine ADDR NAME BYTES
 *	code BASE LEN BYTES           an owned code range
 *	dst BASE LEN BYTES
 *	place VADDR ELF LEN
 *	instance PID
 *	moved BUILD-ID FROM TO LEN    [FROM, FROM + LEN) of an image that this one replaces is at TO
 *
 * Or, for an image of symbols alone (IMAGE only):
 *
 *	symbol OFF LEN NAME           } of the next text
 *	text MACHINE LEN
 */
/* clang-format on */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job.h"
#include "pseudoimg.h"

enum { MAX_FIELDS = 7, MAX_LINES = 64, MAX_FILES = 16, MAX_SYMBOLS = 16 };

static struct base_buf job;
static struct wire_line lines[MAX_LINES];
static char *files[MAX_FILES + 1];
static struct wire_inline inlines[MAX_LINES];
static size_t nr_lines, nr_inlines, nr_files;
static struct pseudoimg_symbol symbols[MAX_SYMBOLS];
static size_t nr_symbols;
static uint32_t symbols_machine;
static uint64_t text_len; /* above 0: symbols, not a job */

static void fail(const char *what)
{
	fprintf(stderr, "mkjob: %s\n", what);
	exit(2);
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t v = strtoull(text, &end, 0);

	if (*end || end == text)
		fail("not a number");
	return v;
}

static size_t unhex(char *text)
{
	size_t n = 0;
	unsigned int byte;

	for (; sscanf(text + 2 * n, "%2x", &byte) == 1; n++)
		text[n] = (char)byte; /* never overtakes what is still to be read */
	return n;
}

static void routine(char **f)
{
	const struct job_routine r = { .addr = number(f[1]),
				       .name = f[2],
				       .code_len = unhex(f[3]),
				       .code = (const uint8_t *)f[3],
				       .lines = lines,
				       .nr_lines = nr_lines,
				       .inlines = inlines,
				       .nr_inlines = nr_inlines,
				       .files = (const char *const *)files };

	job_routine(&job, &r);
	while (nr_files)
		free(files[--nr_files]);
	files[0] = NULL;
	nr_lines = nr_inlines = 0;
}

static void moved(char **f)
{
	const struct wire_moved one = { number(f[2]), number(f[3]), number(f[4]) };

	if (unhex(f[1]) != 20)
		fail("a build-id of 20 bytes is wanted");
	job_moved(&job, (const uint8_t *)f[1], &one, 1);
}

/* In place: "\s" becomes a blank. */
static char *with_blanks(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		bool blank = from[0] == '\\' && from[1] == 's';

		*to++ = blank ? ' ' : *from;
		from += blank;
	}
	*to = '\0';
	return text;
}

static void record(char **f, size_t nr)
{
	if (!strcmp(f[0], "image") && (nr == 6 || nr == 7))
		job_image(&job, &(struct job_image){ .machine = (uint32_t)number(f[1]),
						     .facility = with_blanks(f[2]),
						     .pid = (uint32_t)number(f[3]),
						     .uid = nr == 7 ? (uint32_t)number(f[6]) : 0,
						     .host = f[4],
						     .exe = f[5] });
	else if (!strcmp(f[0], "run") && nr == 4)
		job_run(&job, number(f[1]), number(f[2]), number(f[3]));
	else if (!strcmp(f[0], "file") && nr == 2 && nr_files < MAX_FILES)
		files[nr_files++] = strdup(f[1]);
	else if (!strcmp(f[0], "line") && nr == 4 && nr_lines < MAX_LINES)
		lines[nr_lines++] = (struct wire_line){ .code_off = (uint32_t)number(f[1]),
							.line = (uint32_t)number(f[2]),
							.file = (uint32_t)number(f[3]) };
	else if (!strcmp(f[0], "inline") && nr == 7 && nr_inlines < MAX_LINES)
		inlines[nr_inlines++] = (struct wire_inline){ .depth = (uint32_t)number(f[1]),
							      .code_off = (uint32_t)number(f[2]),
							      .code_len = (uint32_t)number(f[3]),
							      .name = (uint32_t)number(f[4]),
							      .call_file = (uint32_t)number(f[5]),
							      .call_line = (uint32_t)number(f[6]) };
	else if (!strcmp(f[0], "routine") && nr == 4)
		routine(f);
	else if (!strcmp(f[0], "code") && nr == 4)
		job_bytes(&job, WIRE_RANGE_CODE, number(f[1]), number(f[2]), f[3], unhex(f[3]));
	else if (!strcmp(f[0], "dst") && nr == 4)
		job_bytes(&job, WIRE_RANGE_DST, number(f[1]), number(f[2]), f[3], unhex(f[3]));
	else if (!strcmp(f[0], "instance") && nr == 2)
		job_instance(&job, (uint32_t)number(f[1]));
	else if (!strcmp(f[0], "moved") && nr == 5)
		moved(f);
	else if (!strcmp(f[0], "place") && nr == 4)
		job_place(&job, number(f[1]), number(f[2]), number(f[3]));
	else if (!strcmp(f[0], "symbol") && nr == 4 && nr_symbols < MAX_SYMBOLS)
		symbols[nr_symbols++] = (struct pseudoimg_symbol){ .off = number(f[1]),
								   .len = number(f[2]),
								   .name = strdup(f[3]) };
	else if (!strcmp(f[0], "text") && nr == 3) {
		symbols_machine = (uint32_t)number(f[1]);
		text_len = number(f[2]);
	} else
		fail("unknown record, or wrong number of fields");
}

static int write_image(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
	struct pseudoimg_result result = { 0 };
	struct base_err err = { 0 };
	int r;

	if (fd < 0)
		fail("cannot create the image");
	if (text_len)
		r = pseudoimg_write_symbols(symbols, nr_symbols, text_len, symbols_machine,
					    &(struct base_id){ .len = 20 }, fd, &err);
	else
		r = pseudoimg_write(job.data, job.len, fd, &result, &err);
	if (r < 0) {
		base_err_print(&err, "mkjob", stderr);
		return 1;
	}
	close(fd);
	if (!text_len)
		printf("%u routines, %u bad, %llu bytes\n", result.nr_routines, result.nr_bad,
		       (unsigned long long)result.text_bytes);
	return 0;
}

int main(int argc, char **argv)
{
	int r = 0;
	char *line = NULL;
	size_t cap = 0;

	while (getline(&line, &cap, stdin) >= 0) {
		char *f[MAX_FIELDS + 1] = { 0 };
		size_t nr = 0;

		for (char *p = strtok(line, " \t\n"); p && nr < MAX_FIELDS;
		     p = strtok(NULL, " \t\n"))
			f[nr++] = p;
		if (nr && f[0][0] != '#')
			record(f, nr);
	}
	free(line);
	if (argc > 1)
		r = write_image(argv[1]);
	else if (base_write_all(STDOUT_FILENO, job.data, job.len) < 0)
		fail("cannot write");
	base_buf_release(&job);
	return r;
}
