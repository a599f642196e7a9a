/* SPDX-License-Identifier: BSD-2-Clause */
/* The multi-call program: "dcpiprof …" (a link to it) is the same as "dcpi prof …". */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "starts.h"
#include "terminal.h"
#include "tools.h"

/* A line of the list of commands. */
struct line {
	const char *name; /* NULL: a question */
	const char *text; /* the question, or what a program of its own does */
	const struct tool *tool;
};

static const struct line lines[] = {
#define G(question)	 { NULL, question, NULL },
#define P(name, summary) { #name, summary, NULL },
#define X(name)		 { #name, NULL, &name##_tool },
	TOOLS(G, P, X)
#undef G
#undef P
#undef X
};
enum { NR_LINES = sizeof(lines) / sizeof(lines[0]) };

static const char *text_of(const struct line *l)
{
	if (l->text)
		return l->text;
	return l->tool->summary ? l->tool->summary : l->tool->cmd->summary;
}

static const struct base_opt no_options[] = { { 0 } };
static const struct base_cmd dcpi_cmd = {
	.name = "dcpi",
	.summary = "profile a whole system, code made at run time included",
	.operands = "COMMAND [argument …]",
	.opts = no_options,
	.examples =
		(const struct base_example[]){
			{ "dcpi prof",
			  "The same as dcpiprof: the procedures that took the most time." },
			{ "dcpi help list", "The options of dcpilist." },
			{ NULL, NULL } },
	.min_operands = 0,
	.max_operands = 0,
};

/* "dcpiprof", or "prof" for short. */
static const struct line *find(const char *name)
{
	for (const struct line *l = lines; l < lines + NR_LINES; l++)
		if (l->tool &&
		    (strcmp(l->name, name) == 0 || strcmp(l->name + strlen("dcpi"), name) == 0))
			return l;
	return NULL;
}

static const char *nearest(const char *name)
{
	const char *best = NULL;
	unsigned int distance, best_distance = 3;

	for (const struct line *l = lines; l < lines + NR_LINES; l++) {
		const char *verb = l->tool ? l->name + strlen("dcpi") : NULL;

		if (!verb)
			continue;
		distance = base_name_distance(name, verb);
		if (base_name_distance(name, l->name) < distance)
			distance = base_name_distance(name, l->name);
		if (distance < best_distance) {
			best_distance = distance;
			best = verb;
		}
	}
	return best;
}

static void list_commands(FILE *to)
{
	fputs("\n\"dcpi prof\" is the same as \"dcpiprof\".\n", to);
	for (const struct line *l = lines; l < lines + NR_LINES; l++)
		if (l->name)
			fprintf(to, "  %-14s %s\n", l->name, text_of(l));
		else
			fprintf(to, "\n%s\n", text_of(l));
}

static void man_commands(FILE *to)
{
	fputs(".SH COMMANDS\n", to);
	for (const struct line *l = lines; l < lines + NR_LINES; l++)
		if (l->name)
			fprintf(to, ".TP\n.BR %s (%c)\n%s\n", l->name,
				strcmp(l->name, "dcpid") ? '1' : '8', text_of(l));
		else
			fprintf(to, ".SS %s\n", text_of(l));
}

static int fail(const struct base_err *err)
{
	base_err_print(err, "dcpi", stderr);
	return BASE_EXIT_USAGE;
}

static int unknown(const char *name)
{
	struct base_err err = { 0 };
	const char *verb = strncmp(name, "dcpi", 4) ? name : name + strlen("dcpi");
	const char *near = nearest(name);

	base_fail(&err, -DCPI_EUSAGE, "unknown command '%s'", name);
	if (!strcmp(verb, "d") || !strcmp(verb, "run"))
		base_hint(&err, "'dcpi%s' is a program of its own", verb);
	else if (near)
		base_hint(&err, "did you mean '%s'?", near);
	else
		base_hint(&err, "'dcpi -help' lists the commands");
	return fail(&err);
}

/* "dcpi -help" and the like; without a command there is nothing else to do. */
static int own_options(int argc, char **argv)
{
	const char *request = argc > 1 ? argv[1] + strspn(argv[1], "-") : "";
	struct base_err err = { 0 };
	int r = base_opt_parse(&dcpi_cmd, &argc, &argv, &err);

	if (r < 0)
		return fail(&err);
	if (r == BASE_OPT_DONE) {
		if (strcmp(request, "help") == 0)
			list_commands(stdout);
		else if (strcmp(request, "help-man") == 0)
			man_commands(stdout);
		return BASE_EXIT_OK;
	}
	base_opt_help(&dcpi_cmd, stderr);
	list_commands(stderr);
	return BASE_EXIT_USAGE;
}

static volatile sig_atomic_t failed = BASE_EXIT_FAILED; /* exit status of the command that runs */

/* A report that did not reach its file is no success, whatever the command thinks of it. */
static int finish(const char *name, int code)
{
	struct base_err err = { 0 };

	if (base_output_end(&err) < 0) {
		base_err_print(&err, name, stderr);
		code = failed;
	}
	terminal_end();
	return code;
}

static int run(const struct line *l, int argc, char **argv)
{
	if (l->tool->failed)
		failed = l->tool->failed;
	return finish(l->name, l->tool->main(argc, argv));
}

/* Report a mapped file that became shorter while it was read. */
static void on_bus_error(int sig)
{
	static const char text[] = "dcpi: an image was cut short while it was read\n";
	ssize_t n = write(STDERR_FILENO, text, sizeof(text) - 1);

	(void)sig;
	(void)n;
	_exit(failed);
}

/* "dcpi help prof" is "dcpi prof -help". */
static int help(int argc, char **argv)
{
	const struct line *l = argc > 2 ? find(argv[2]) : NULL;
	char *request[] = { argv[0], (char *)"-help", NULL };
	struct base_err err = { 0 };

	if (argc > 2 && !l)
		return unknown(argv[2]);
	if (argc > 3) {
		base_fail(&err, -DCPI_EUSAGE, "unexpected operand '%s'", argv[3]);
		base_hint(&err, "usage: dcpi help [COMMAND]");
		return fail(&err);
	}
	return l ? run(l, 2, request) : finish(dcpi_cmd.name, own_options(2, request));
}

int main(int argc, char **argv)
{
	const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
	const char *name = slash ? slash + 1 : argc > 0 ? argv[0] : "dcpi";
	const struct line *l = NULL;

	/* A report whose output was closed has not been printed. */
	base_standard_fill(O_RDONLY);
	signal(SIGBUS, on_bus_error);
	image_guess_by(analysis_starts);
	if (strncmp(name, "dcpi", 4) == 0 && name[4])
		l = find(name);
	if (l)
		return run(l, argc, argv);
	if (argc < 2 || argv[1][0] == '-')
		return finish(dcpi_cmd.name, own_options(argc, argv));
	if (!strcmp(argv[1], "help"))
		return help(argc, argv);
	l = find(argv[1]);
	return l ? run(l, argc - 1, argv + 1) : unknown(argv[1]);
}
