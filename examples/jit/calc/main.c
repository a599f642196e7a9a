/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "announce.h"
#include "calc.h"
#include "layout.h"

enum mode {
	RUN,
	AST,
	DUMP,
};

struct command {
	enum mode mode;
	double seconds; /* 0: one round */
	bool shares;
	const char *profile; /* of an earlier run */
	const char *path;
};

static const char usage[] =
	"usage: calc [-time SECONDS] [-shares] [-profile JSON] FILE.calc\n"
	"       calc -ast | -dump FILE.calc\n"
	"\n"
	"Compile a calc program to machine code as it runs, told to DCPI through libdbgdyn.\n"
	"\n"
	"  -time SECONDS  Run main again and again until it has used so much CPU time.\n"
	"  -shares        Say at the end what the functions named by 'shares' took of the CPU "
	"time.\n"
	"  -profile JSON  Put code that seldom ran in an earlier run, without this, out of the "
	"way:\n"
	"                 what 'dcpifdo -json calc[PID]' printed of it.\n"
	"  -ast           Print the syntax tree and run nothing.\n"
	"  -dump          Print each function's code, by line, and run nothing.\n"
	"  -help          Print this.\n"
	"\n"
	"Exit status: what main returns (its lowest 8 bits), 0 if it returns nothing; 1 after an\n"
	"error in the program, 2 for a wrong command line.\n";

static int wrong(const char *text, const char *what)
{
	fprintf(stderr, "calc: %s '%s'\nhint: calc -help\n", text, what);
	return -1;
}

static int parse_time(struct command *cmd, const char *text)
{
	char *end = NULL;

	if (text)
		cmd->seconds = strtod(text, &end);
	if (!text || end == text || *end || !(cmd->seconds > 0 && cmd->seconds < 1e9))
		return wrong("-time wants a number of seconds, not", text ? text : "");
	return 0;
}

/* 1: printed the help; 0 good; -1 wrong. Options have one dash, or two. */
static int parse_options(struct command *cmd, char **argv)
{
	for (; *argv; argv++) {
		const char *arg = *argv,
			   *name = arg + (arg[0] == '-') + (arg[0] == '-' && arg[1] == '-');

		if (name == arg && cmd->path)
			return wrong("more than one program:", arg);
		if (name == arg)
			cmd->path = arg;
		else if (strcmp(name, "ast") == 0)
			cmd->mode = AST;
		else if (strcmp(name, "dump") == 0)
			cmd->mode = DUMP;
		else if (strcmp(name, "shares") == 0)
			cmd->shares = true;
		else if (strcmp(name, "profile") == 0 && argv[1])
			cmd->profile = *++argv;
		else if (strcmp(name, "profile") == 0)
			return wrong("-profile wants a file, not", "");
		else if (strcmp(name, "help") == 0)
			return fputs(usage, stdout), 1;
		else if (strcmp(name, "time") != 0)
			return wrong("unknown option", arg);
		else if (parse_time(cmd, argv[1]) < 0)
			return -1;
		else
			argv++;
	}
	if (!cmd->path)
		return fprintf(stderr, "calc: no program given\nhint: calc -help\n"), -1;
	return 0;
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int run(struct calc *calc, const struct command *cmd, int64_t *status, struct calc_err *err)
{
	double start = cpu_seconds(), used;
	unsigned long nr_rounds = 0;

	do {
		if (calc_run(calc, status, err) < 0)
			return -1;
		nr_rounds++;
		used = cpu_seconds() - start;
	} while (used < cmd->seconds);
	fflush(stdout);
	if (cmd->seconds > 0)
		fprintf(stderr, "calc: %lu rounds in %.2f s\n", nr_rounds, used);
	return 0;
}

static void print_shares(const struct calc *calc)
{
	const char *name;
	double percent;

	for (unsigned int i = 0; calc_share(calc, i, &name, &percent); i++)
		printf("share %-16s %6.2f %%\n", name, percent);
}

/* A function as calc -dump shows it: for each line of source its bytes. */
static void dump(void *arg, const struct calc_routine *r)
{
	const uint8_t *code = r->code;

	(void)arg;
	printf("%s: %zu bytes\n", r->name, r->code_len);
	for (size_t i = 0; i < r->nr_lines; i++) {
		size_t end = i + 1 < r->nr_lines ? r->lines[i + 1].code_off : r->code_len;

		printf("  +%04x line %u:", r->lines[i].code_off, r->lines[i].line);
		for (size_t at = r->lines[i].code_off; at < end; at++)
			printf(" %02x", code[at]);
		putchar('\n');
	}
}

static int end_output(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	fprintf(stderr, "calc: cannot write the output: %s\n", strerror(errno));
	return -1;
}

static int execute(const struct command *cmd, const struct calc_options *opts, int64_t *status)
{
	struct calc_err err;
	struct calc *calc = NULL;
	int r = calc_open(&calc, cmd->path, opts, &err), written;

	if (r == 0 && cmd->mode == AST)
		calc_print_ast(calc, stdout);
	else if (r == 0 && cmd->mode == DUMP)
		r = calc_compile_all(calc, &err);
	else if (r == 0)
		r = run(calc, cmd, status, &err);
	if (r == 0)
		print_shares(calc);
	written = end_output();
	if (r < 0)
		fprintf(stderr, "%s\n", err.text);
	calc_free(calc);
	return r < 0 ? r : written;
}

/* Tell libdbgdyn of all code that is made, and say at the end that there will be no more. */
static int execute_announced(const struct command *cmd, const struct calc_layout *layout,
			     int64_t *status)
{
	dbgdyn_context context = { 0 };
	struct calc_options opts = {
		.measure_shares = cmd->shares,
		.layout = layout,
		.made = announce_routine,
		.arg = &context,
	};
	const char *warning;
	int r;

	announce_begin(&context);
	r = execute(cmd, &opts, status);
	warning = announce_end(context);
	if (warning)
		fprintf(stderr, "calc: the profiler did not finish: %s\n", warning);
	return r;
}

int main(int argc, char **argv)
{
	struct calc_options dumping = { .made = dump };
	struct calc_layout *layout = NULL;
	struct command cmd = { 0 };
	int64_t status = 0;
	int r;

	(void)argc;
	r = parse_options(&cmd, argv + 1);
	if (r < 0)
		return 2;
	if (r > 0)
		return end_output() < 0;
	if (cmd.profile && calc_layout_read(cmd.profile, &layout) < 0) {
		fprintf(stderr,
			"calc: cannot read the profile '%s'\n"
			"hint: make it with: dcpifdo -json 'calc[PID]' > FILE\n",
			cmd.profile);
		return 1;
	}
	dumping.layout = layout;
	if (cmd.mode == RUN)
		r = execute_announced(&cmd, layout, &status);
	else
		r = execute(&cmd, cmd.mode == DUMP ? &dumping : NULL, &status);
	calc_layout_free(layout);
	return r < 0 ? 1 : (int)(status & 0xff);
}
