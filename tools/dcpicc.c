/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpicc: compile C with each token on a line of its own, so that profiles tell tokens. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmap.h"
#include "done.h"
#include "report.h"
#include "tools.h"

extern char **environ;

enum { SOURCE_MAX = 1 << 28 };

static const char *map_dir = ".", *tok_dir = ".", *compiler = "cc";
static bool json;

static const struct base_opt options[] = {
	{ "map_dir", BASE_OPT_STRING, &map_dir, "DIR",
	  "Write the maps, NAME.cmap, there (default: the current folder).", 0, 0 },
	{ "tok_dir", BASE_OPT_STRING, &tok_dir, "DIR",
	  "Write the tokenized sources, NAME.i, there (default: the current folder).", 0, 0 },
	{ "compiler", BASE_OPT_STRING, &compiler, "PROGRAM",
	  "The compiler, which must know gcc's options (default: cc).", 0, 0 },
	DONE_OPTION(json),
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpicc",
	.summary = "compile C so that dcpisource knows each instruction's token",
	.operands = "ARGUMENT …",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpicc -O2 -c parse.c", "As cc would, into parse.o; writes parse.i and "
						   "parse.cmap." },
			{ "make CC='dcpicc -map_dir /tmp/maps -tok_dir /tmp/maps'",
			  "A program whose makefile names its compiler by CC." },
			{ NULL, NULL } },
	.min_operands = 1,
	.max_operands = -1,
	.first_ends = true,
};

struct args {
	char **v; /* ends with NULL; the texts belong to others, or to @own */
	size_t nr, cap;
};

struct job {
	char **from; /* the compiler's arguments, as given */
	int nr;
	bool *source; /* by argument: whether it is a C source */
	bool plain;   /* nothing is to be tokenized: it only preprocesses, or reads other things */
	bool debug;   /* -g was given */
	bool depends; /* writes make's dependencies */
	bool named_depends, named_target;
	bool stops;		       /* -c or -S: no linking */
	const char *output;	       /* -o */
	char **tokenized;	       /* by argument: the file that replaces a source */
	struct json_object *announced; /* with -json, what was done; else NULL */
};

/* ---- arguments ------------------------------------------------------------------------------- */

static int add(struct args *a, const char *text)
{
	int r = base_grow(&a->v, &a->cap, a->nr + 2, sizeof(*a->v));

	if (r < 0)
		return r;
	a->v[a->nr++] = (char *)text;
	a->v[a->nr] = NULL;
	return 0;
}

/* Options of gcc and clang whose value is the next argument. */
static bool has_value(const char *arg)
{
	static const char *const all[] = {
		"-o",
		"-I",
		"-D",
		"-U",
		"-L",
		"-l",
		"-include",
		"-imacros",
		"-isystem",
		"-idirafter",
		"-iquote",
		"-iprefix",
		"-isysroot",
		"-iwithprefix",
		"-iwithprefixbefore",
		"-MF",
		"-MT",
		"-MQ",
		"-x",
		"-Xlinker",
		"-Xassembler",
		"-Xpreprocessor",
		"-Xclang",
		"-T",
		"-u",
		"-z",
		"-e",
		"-A",
		"-B",
		"--param",
		"-aux-info",
		"-arch",
		"-target",
		"-mllvm",
		"-wrapper",
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(arg, all[i]) == 0)
			return true;
	return false;
}

static bool is_one_of(const char *arg, const char *const *all)
{
	for (; *all; all++)
		if (strcmp(arg, *all) == 0)
			return true;
	return false;
}

static bool is_source(const char *arg)
{
	size_t len = strlen(arg);

	return arg[0] != '-' && len > 2 && strcmp(arg + len - 2, ".c") == 0;
}

static void note(struct job *j, int i)
{
	static const char *const plain[] = { "-E", "-M", "-MM", "-###", "-fsyntax-only",
					     "-x", "-",	 NULL };
	const char *arg = j->from[i];

	j->plain |= is_one_of(arg, plain) || (strncmp(arg, "-x", 2) == 0 && arg[2]);
	/*
	 * A file with arguments for the compiler may hold options that preprocessing needs, or more
	 * sources.
	 */
	j->plain |= arg[0] == '@';
	j->debug |= strncmp(arg, "-g", 2) == 0;
	j->depends |= strcmp(arg, "-MD") == 0 || strcmp(arg, "-MMD") == 0;
	j->named_depends |= strncmp(arg, "-MF", 3) == 0;
	j->named_target |= strncmp(arg, "-MT", 3) == 0 || strncmp(arg, "-MQ", 3) == 0;
	j->stops |= strcmp(arg, "-c") == 0 || strcmp(arg, "-S") == 0;
	if (strncmp(arg, "-o", 2) == 0)
		j->output = arg[2] ? arg + 2 : i + 1 < j->nr ? j->from[i + 1] : NULL;
}

static int read_args(struct job *j, int nr, char **from)
{
	bool any = false;

	j->from = from;
	j->nr = nr;
	j->source = calloc((size_t)nr + 1, sizeof(*j->source));
	j->tokenized = calloc((size_t)nr + 1, sizeof(*j->tokenized));
	if (!j->source || !j->tokenized)
		return -ENOMEM;
	for (int i = 0; i < nr; i++) {
		note(j, i);
		if (has_value(from[i]))
			i++;
		else
			any |= j->source[i] = is_source(from[i]);
	}
	j->plain |= !any;
	return 0;
}

/* Do arguments of this kind serve preprocessing or compiling, and how many are they? */
static int is_depends(const char *arg)
{
	static const char *const alone[] = { "-MD", "-MMD", "-MP", "-MG", NULL };

	if (strcmp(arg, "-MF") == 0 || strcmp(arg, "-MT") == 0 || strcmp(arg, "-MQ") == 0)
		return 2;
	return is_one_of(arg, alone) || strncmp(arg, "-MF", 3) == 0 ||
	       strncmp(arg, "-MT", 3) == 0 || strncmp(arg, "-MQ", 3) == 0;
}

/* ---- running the compiler -------------------------------------------------------------------- */

static int cannot_run(const char *program, int r, struct base_err *err)
{
	base_fail_errno(err, r, "cannot run '%s'", program);
	base_hint(err, "name the compiler by -compiler");
	return r;
}

/* Its exit code, or negative. @out: its standard output, or -1 for ours. */
static int run_compiler(char **argv, int out, struct base_err *err)
{
	posix_spawn_file_actions_t actions;
	int status, r = -posix_spawn_file_actions_init(&actions);
	pid_t pid;

	/* Were it ignored, as we inherited it, nobody would tell how the compiler ended. */
	signal(SIGCHLD, SIG_DFL);
	if (r >= 0 && out >= 0)
		r = -posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (r >= 0)
		r = -posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (r < 0)
		return cannot_run(argv[0], r, err);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return base_fail_errno(err, -errno, "cannot wait for '%s'", argv[0]);
	/* So says a child that found nothing to run, where posix_spawn cannot (emulators). */
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return cannot_run(argv[0], -ENOENT, err);
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	return base_fail(err, -DCPI_EHELPER, "'%s' was ended by signal %d", argv[0],
			 WTERMSIG(status));
}

/* "dir/parse.c" and ".o": "parse.o" */
static char *renamed(const char *path, const char *suffix)
{
	const char *name = base_path_name(path), *dot = strrchr(name, '.');
	char *to = NULL;

	if (asprintf(&to, "%.*s%s", (int)(dot ? dot - name : (ptrdiff_t)strlen(name)), name,
		     suffix) < 0)
		return NULL;
	return to;
}

/* Dependencies are named as they would be without us: by the object. */
static int add_depends(const struct job *j, const char *source, struct args *a, char *own[2])
{
	bool object = j->output && j->stops;
	int r = 0;

	own[0] = object ? strdup(j->output) : renamed(source, ".o");
	if (!own[0])
		return -ENOMEM;
	if (!j->named_target) {
		r = add(a, "-MT");
		r = r < 0 ? r : add(a, own[0]);
	}
	if (!j->named_depends && r >= 0) {
		size_t len = strlen(own[0]);
		const char *dot = strrchr(own[0], '.');

		if (dot && dot > base_path_name(own[0]))
			len = (size_t)(dot - own[0]);
		if (asprintf(&own[1], "%.*s.d", (int)len, own[0]) < 0) {
			own[1] = NULL;
			return -ENOMEM;
		}
		r = add(a, "-MF");
		r = r < 0 ? r : add(a, own[1]);
	}
	return r;
}

static int preprocess_args(const struct job *j, int source, struct args *a, char *own[2])
{
	int r = add(a, compiler);

	for (int i = 0; i < j->nr && r >= 0; i++) {
		const char *arg = j->from[i];
		bool two = has_value(arg);

		if (strcmp(arg, "-c") == 0 || strcmp(arg, "-S") == 0 ||
		    (strncmp(arg, "-o", 2) == 0 && !two)) {
			continue;
		}
		if (arg[0] == '-' && strcmp(arg, "-o") != 0) {
			r = add(a, arg);
			if (two && i + 1 < j->nr && r >= 0)
				r = add(a, j->from[i + 1]);
		}
		i += two;
	}
	if (j->depends && r >= 0)
		r = add_depends(j, j->from[source], a, own);
	if (r >= 0)
		r = add(a, "-E");
	return r < 0 ? r : add(a, j->from[source]);
}

static int read_output(FILE *from, struct base_buf *to, struct base_err *err)
{
	char chunk[1 << 14];
	size_t n;
	int r = 0;

	rewind(from);
	while (r >= 0 && (n = fread(chunk, 1, sizeof(chunk), from)) > 0)
		r = to->len + n > SOURCE_MAX ? -DCPI_ELIMIT : base_buf_append(to, chunk, n);
	return r < 0 ? base_fail_errno(err, r, "cannot read what the preprocessor printed") : 0;
}

/* 0 and its output in @text, above 0 the compiler's exit code, or negative. */
static int preprocess(const struct job *j, int source, struct base_buf *text, struct base_err *err)
{
	char *own[2] = { NULL, NULL };
	struct args a = { 0 };
	FILE *out = tmpfile();
	int r = out ? preprocess_args(j, source, &a, own) : -errno;

	if (r < 0)
		base_fail_errno(err, r, "cannot preprocess '%s'", j->from[source]);
	else
		r = run_compiler(a.v, fileno(out), err);
	if (r == 0)
		r = read_output(out, text, err);
	if (out)
		fclose(out);
	free(own[0]);
	free(own[1]);
	free(a.v);
	return r;
}

/* ---- tokenizing ------------------------------------------------------------------------------ */

/* Columns of those files that can be read; of others the preprocessor's are as good as any. */
static int correct_columns(struct cmap *map)
{
	int r = 0;

	for (size_t i = 0; i < map->nr_files && r >= 0; i++) {
		struct base_buf source = { 0 };

		if (base_file_read(AT_FDCWD, map->files[i], SOURCE_MAX, &source, NULL) >= 0)
			r = cmap_columns(map, (uint32_t)i, (const char *)source.data, source.len);
		base_buf_release(&source);
	}
	return r;
}

static void tell(struct job *j, int source, const struct cmap *map, const char *map_path)
{
	struct json_object *o = json_object_new_object();

	done_file(j->announced, j->tokenized[source]);
	done_file(j->announced, map_path);
	json_object_object_add(o, "source", report_json_text(j->from[source]));
	json_object_object_add(o, "tokenized", report_json_text(j->tokenized[source]));
	json_object_object_add(o, "map", report_json_text(map_path));
	json_object_object_add(o, "tokens", json_object_new_uint64(map->nr_tokens));
	json_object_object_add(o, "of_files", json_object_new_uint64(map->nr_files));
	json_object_array_add(json_object_object_get(j->announced, "sources"), o);
}

static int write_map(struct job *j, int at, const struct cmap *map, struct base_err *err)
{
	const char *source = j->from[at];
	char *name = renamed(source, ".cmap"), *path = NULL;
	struct base_buf text = { 0 };
	int r = -ENOMEM;

	if (name && asprintf(&path, "%s/%s", map_dir, name) >= 0)
		r = cmap_write(map, &text);
	if (r < 0)
		base_fail_errno(err, r, "cannot write the map of '%s'", source);
	else
		r = base_file_write(AT_FDCWD, path, 0666, text.data, text.len, err);
	if (r >= 0 && j->announced)
		tell(j, at, map, path);
	base_buf_release(&text);
	free(path);
	free(name);
	return r;
}

/* The absolute path of the tokenized file: debug information shall not depend on where we are. */
static char *tokenized_path(const char *source, struct base_err *err)
{
	char dir[PATH_MAX], *name = renamed(source, ".i"), *path = NULL;

	if (!realpath(tok_dir, dir))
		base_fail_errno(err, -errno, "cannot write into '%s'", tok_dir);
	else if (!name || asprintf(&path, "%s/%s", strcmp(dir, "/") ? dir : "", name) < 0)
		path = NULL;
	if (!path)
		base_fail_errno(err, -ENOMEM, "cannot tokenize '%s'", source);
	free(name);
	return path;
}

static int check_unique(const struct job *j, int source, struct base_err *err)
{
	for (int i = 0; i < source; i++) {
		if (j->source[i] && strcmp(j->tokenized[i], j->tokenized[source]) == 0) {
			base_fail(err, -EEXIST, "'%s' and '%s' have one name", j->from[i],
				  j->from[source]);
			base_hint(err, "compile them one by one");
			return -EEXIST;
		}
	}
	return 0;
}

static int tokenize(struct job *j, int source, struct base_err *err)
{
	struct base_buf text = { 0 }, out = { 0 };
	struct cmap *map = NULL;
	int r;

	j->tokenized[source] = tokenized_path(j->from[source], err);
	if (!j->tokenized[source])
		return err->code;
	r = check_unique(j, source, err);
	if (r == 0)
		r = preprocess(j, source, &text, err);
	if (r == 0) {
		r = cmap_tokenize((const char *)text.data, text.len, j->tokenized[source], &out,
				  &map);
		if (r >= 0)
			r = correct_columns(map);
		if (r < 0)
			base_fail_errno(err, r, "cannot tokenize '%s'", j->from[source]);
	}
	if (r == 0)
		r = base_file_write(AT_FDCWD, j->tokenized[source], 0666, out.data, out.len, err);
	if (r == 0)
		r = write_map(j, source, map, err);
	cmap_free(map);
	base_buf_release(&text);
	base_buf_release(&out);
	return r;
}

/* ---- compiling ------------------------------------------------------------------------------- */

static int compile_args(const struct job *j, struct args *a)
{
	int r = add(a, compiler);

	for (int i = 0; i < j->nr && r >= 0; i++) {
		int depends = is_depends(j->from[i]);

		if (depends && !j->plain)
			i += depends - 1;
		else
			r = add(a, j->tokenized[i] ? j->tokenized[i] : j->from[i]);
	}
	if (!j->plain && !j->debug && r >= 0)
		r = add(a, "-g");
	/* The comments that silence warnings are gone, and the lines would mislead. */
	if (!j->plain && r >= 0)
		r = add(a, "-w");
	return r;
}

static int compile(const struct job *j, struct base_err *err)
{
	struct args a = { 0 };
	int r = compile_args(j, &a);

	if (r < 0)
		base_fail_errno(err, r, "cannot run '%s'", compiler);
	else
		r = run_compiler(a.v, json ? STDERR_FILENO : -1, err);
	free(a.v);
	return r;
}

/* @status: of the compiler, or of its preprocessor, which came first. */
static int print_given(struct job *j, int status, struct base_err *err)
{
	int r;

	json_object_object_add(j->announced, "compiler", report_json_text(compiler));
	json_object_object_add(j->announced, "status", json_object_new_int(status));
	r = done_print(j->announced, err);
	j->announced = NULL;
	return r < 0 ? r : status;
}

static int run(int nr, char **from, struct base_err *err)
{
	struct job j = { 0 };
	int r = read_args(&j, nr, from);

	if (json) {
		j.announced = done_json("dcpicc/1");
		json_object_object_add(j.announced, "sources", json_object_new_array());
	}
	if (r < 0)
		base_fail_errno(err, r, "cannot run '%s'", compiler);
	for (int i = 0; i < nr && r == 0 && !j.plain; i++)
		if (j.source[i])
			r = tokenize(&j, i, err);
	if (r == 0)
		r = compile(&j, err);
	if (r >= 0 && json)
		r = print_given(&j, r, err);
	json_object_put(j.announced);
	for (int i = 0; j.tokenized && i < nr; i++)
		free(j.tokenized[i]);
	free(j.tokenized);
	free(j.source);
	return r;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* How many of the first arguments are ours: what follows is the compiler's, options and all. */
static int own_args(int argc, char **argv)
{
	static const char *const requests[] = {
		"help", "version", "V", "help-man", "help-options", NULL,
	};
	int i = 1;

	while (i < argc && argv[i][0] == '-') {
		const char *name = argv[i] + 1 + (argv[i][1] == '-');
		const char *equals = strchr(name, '=');
		size_t len = equals ? (size_t)(equals - name) : strlen(name);
		const struct base_opt *o = options;

		if (i == 1 && is_one_of(name, requests))
			return 2;
		while (o->name && (strlen(o->name) != len || strncmp(o->name, name, len) != 0))
			o++;
		if (!o->name)
			break;
		i += equals || o->kind == BASE_OPT_FLAG ? 1 : 2;
	}
	return i < argc ? i : argc;
}

static int dcpicc_main(int argc, char **argv)
{
	int own = own_args(argc, argv), rest = argc - own;
	char **from = argv + own;
	struct base_err err = { 0 };
	struct args mine = { 0 };
	int r = 0, nr;
	char **v;

	for (int i = 0; i < own && r >= 0; i++)
		r = add(&mine, argv[i]);
	/* Something that is no option, so that the parser is content and stops there. */
	if (rest > 0 && r >= 0)
		r = add(&mine, "compile");
	if (r < 0)
		base_fail_errno(&err, r, "cannot start");
	nr = (int)mine.nr;
	v = mine.v;
	if (r >= 0)
		r = base_opt_parse(&cmd, &nr, &v, &err);
	if (r == BASE_OPT_RUN)
		r = run(rest, from, &err);
	else if (r == BASE_OPT_DONE)
		r = BASE_EXIT_OK;
	free(mine.v);
	if (r < 0)
		base_err_print(&err, cmd.name, stderr);
	return r == -DCPI_EUSAGE ? BASE_EXIT_USAGE : r < 0 ? BASE_EXIT_FAILED : r;
}

const struct tool dcpicc_tool = { .cmd = &cmd, .main = dcpicc_main };
