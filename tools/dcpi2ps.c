/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpi2ps: a flow graph as a picture. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "done.h"
#include "draw.h"
#include "graph.h"
#include "report.h"
#include "tools.h"

extern char **environ;

static const char *format = "ps", *output;
static double cutoff = -1;
static bool same_size, json;

static const struct base_opt options[] = {
	{ "format", BASE_OPT_STRING, &format, "FORMAT",
	  "ps (PostScript, the default), pdf, svg, or dot (graphviz's language, not laid out).", 0,
	  0 },
	{ "T", BASE_OPT_STRING, &format, "FORMAT", "The same.", 0, 0 },
	{ "o", BASE_OPT_STRING, &output, "FILE", "Write there, not to standard output.", 0, 0 },
	{ "cutoff", BASE_OPT_DOUBLE, &cutoff, "PERCENT",
	  "Draw blocks with less than this share of the procedure's samples as small boxes with "
	  "their name (default: 0, and 0.2 where there are more than 40 blocks).",
	  0, 100 },
	{ "samesize", BASE_OPT_FLAG, &same_size, NULL, "Draw all blocks with letters of one size.",
	  0, 0 },
	DONE_OPTION(json),
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpi2ps",
	.summary = "draw printed flow graphs",
	.operands = "[GRAPH]",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpiflow fib hello | dcpisource | dcpi2ps -o fib.ps",
			  "The blocks of a routine, with source and samples, as PostScript." },
			{ "dcpi2ps -format svg -o fib.svg fib.graph",
			  "A graph that was kept in a file, for a web browser." },
			{ NULL, NULL } },
	.min_operands = 0,
	.max_operands = 1,
};

/* ---- graphviz -------------------------------------------------------------------------------- */

static int cannot_run(int r, struct base_err *err)
{
	base_fail_errno(err, r, "cannot run 'dot'");
	base_hint(err, "install graphviz, or use '-format dot' and lay it out elsewhere");
	return r;
}

static int wait_for(pid_t pid, struct base_err *err)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return base_fail_errno(err, -errno, "cannot wait for 'dot'");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	/* So says a child that found nothing to run, where posix_spawn cannot (emulators). */
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return cannot_run(-ENOENT, err);
	/* The reader of dot's output has ended, so our own output would not be read either. */
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE)
		raise(SIGPIPE);
	if (WIFSIGNALED(status))
		return base_fail(err, -DCPI_EHELPER, "'dot' was ended by signal %d",
				 WTERMSIG(status));
	return base_fail(err, -DCPI_EHELPER, "'dot' failed with status %d", WEXITSTATUS(status));
}

static int spawn_dot(int from, int to, struct base_err *err)
{
	char type[16];
	char *argv[] = { (char *)"dot", type, NULL };
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int r;

	/* Were it ignored, as we inherited it, nobody would tell how 'dot' ended. */
	signal(SIGCHLD, SIG_DFL);
	/* Its "ps" says nothing of the paper's size, and what is beyond that is cut off. */
	snprintf(type, sizeof(type), "-T%s", strcmp(format, "ps") == 0 ? "ps2" : format);
	r = -posix_spawn_file_actions_init(&actions);
	if (r < 0)
		return base_fail_errno(err, r, "cannot run 'dot'");
	r = -posix_spawn_file_actions_adddup2(&actions, from, STDIN_FILENO);
	if (r >= 0)
		r = -posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO);
	if (r >= 0)
		r = -posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return r < 0 ? cannot_run(r, err) : wait_for(pid, err);
}

/* Have @drawing laid out into @to. It goes by a file: two pipes could wait for each other. */
static int lay_out(const struct base_buf *drawing, int to, struct base_err *err)
{
	FILE *from = tmpfile();
	int r = 0;

	if (!from)
		return base_fail_errno(err, -errno, "cannot make a temporary file");
	if (fwrite(drawing->data, 1, drawing->len, from) != drawing->len || fflush(from) != 0 ||
	    fseek(from, 0, SEEK_SET) != 0)
		r = base_fail_errno(err, -errno, "cannot write a temporary file");
	if (r >= 0)
		r = spawn_dot(fileno(from), to, err);
	fclose(from);
	return r;
}

static int read_back(int fd, struct base_buf *out)
{
	off_t len = lseek(fd, 0, SEEK_END);
	void *to;
	int r;

	if (len < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	r = base_buf_extend(out, (size_t)len, &to);
	return r < 0 ? r : base_read_all(fd, to, (size_t)len);
}

static bool begins(const char *line, size_t len, const char *word)
{
	return len >= strlen(word) && memcmp(line, word, strlen(word)) == 0;
}

/*
 * For several pictures dot ends the document after each one, and repeats in its trailer what the
 * next needs: keep the last trailer only. Texts stand in parentheses, so no line of theirs begins
 * like a trailer.
 */
static int join_pages(const struct base_buf *from, struct base_buf *to)
{
	const char *at = (const char *)from->data, *stop = at + from->len, *end = NULL;
	size_t end_len = 0;
	bool in_end = false;
	int r = 0;

	while (at < stop && r >= 0) {
		const char *newline = memchr(at, '\n', (size_t)(stop - at));
		size_t len = newline ? (size_t)(newline + 1 - at) : (size_t)(stop - at);

		if (begins(at, len, "%%Trailer")) {
			end = at;
			in_end = true;
		}
		if (in_end)
			end_len = (size_t)(at + len - end);
		else
			r = base_buf_append(to, at, len);
		if (begins(at, len, "%%EOF"))
			in_end = false;
		at += len;
	}
	return r < 0 ? r : base_buf_append(to, end, end_len);
}

static int lay_out_pages(const struct base_buf *drawing, int to, struct base_err *err)
{
	struct base_buf laid_out = { 0 }, joined = { 0 };
	FILE *file = tmpfile();
	int r;

	if (!file)
		return base_fail_errno(err, -errno, "cannot make a temporary file");
	r = lay_out(drawing, fileno(file), err);
	if (r >= 0) {
		r = read_back(fileno(file), &laid_out);
		if (r >= 0)
			r = join_pages(&laid_out, &joined);
		if (r >= 0)
			r = base_write_all(to, joined.data, joined.len);
		if (r < 0)
			base_fail_errno(err, r, "cannot write the drawing");
	}
	base_buf_release(&laid_out);
	base_buf_release(&joined);
	fclose(file);
	return r;
}

/* ---- where to -------------------------------------------------------------------------------- */

static int put(const struct base_buf *drawing, int to, struct base_err *err)
{
	int r;

	if (strcmp(format, "ps") == 0)
		return lay_out_pages(drawing, to, err);
	if (strcmp(format, "dot") != 0)
		return lay_out(drawing, to, err);
	r = base_write_all(to, drawing->data, drawing->len);
	return r < 0 ? base_fail_errno(err, r, "cannot write the drawing") : 0;
}

static int put_file(const struct base_buf *drawing, const char *path, struct base_err *err)
{
	struct base_file file = { .dir_fd = -1, .fd = -1 };
	int r;

	if (!path)
		return json ? 0 : put(drawing, STDOUT_FILENO, err);
	r = base_output_create(&file, path, 0666, err);
	if (r < 0)
		return r;
	r = put(drawing, file.fd, err);
	if (r >= 0)
		return base_file_commit(&file, err);
	base_file_abort(&file);
	return r;
}

/* ---- procedures ------------------------------------------------------------------------------ */

static void tell(struct json_object *announced, const struct graph_proc *p,
		 const struct draw_counts *counts, const char *path)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "procedure", report_json_text(p->name));
	if (p->linkage)
		json_object_object_add(o, "linkage", report_json_text(p->linkage));
	json_object_object_add(o, "image", report_json_text(p->image));
	json_object_object_add(o, "build_id", report_json_text(p->id));
	json_object_object_add(o, "file", report_json_text(path));
	json_object_object_add(o, "blocks", json_object_new_int64(counts->blocks));
	json_object_object_add(o, "small_blocks", json_object_new_int64(counts->small));
	json_object_object_add(o, "small_boxes", json_object_new_int64(counts->boxes));
	json_object_object_add(o, "lines", json_object_new_uint64(counts->lines));
	json_object_array_add(json_object_object_get(announced, "procedures"), o);
}

static int add_drawing(const struct graph_proc *p, const struct draw_options *how,
		       struct base_buf *to, const char *path, struct json_object *announced)
{
	struct draw_counts counts;
	int r = draw_proc(p, how, to, &counts);

	if (r >= 0 && announced)
		tell(announced, p, &counts, path);
	return r;
}

/* "fib.svg", "fib-2.svg", … */
static char *nth_path(size_t n)
{
	const char *name = base_path_name(output), *dot = strrchr(name, '.');
	int before = (int)((dot && dot > name ? dot : name + strlen(name)) - output);
	char *path = NULL;

	if (!n)
		return strdup(output);
	if (asprintf(&path, "%.*s-%zu%s", before, output, n + 1, output + before) < 0)
		return NULL;
	return path;
}

static int draw_apart(const struct graph *g, const struct draw_options *how,
		      struct json_object *announced, struct base_err *err)
{
	int r = 0;

	for (size_t i = 0; i < g->nr && r >= 0; i++) {
		struct base_buf drawing = { 0 };
		char *path = output ? nth_path(i) : NULL;

		r = output && !path ? -ENOMEM
				    : add_drawing(&g->procs[i], how, &drawing, path, announced);
		r = r < 0 ? base_fail_errno(err, r, "cannot draw") : put_file(&drawing, path, err);
		if (r >= 0 && announced)
			done_file(announced, path);
		free(path);
		base_buf_release(&drawing);
	}
	return r;
}

static int draw_together(const struct graph *g, const struct draw_options *how,
			 struct json_object *announced, struct base_err *err)
{
	struct base_buf drawing = { 0 };
	int r = 0;

	for (size_t i = 0; i < g->nr && r >= 0; i++)
		r = add_drawing(&g->procs[i], how, &drawing, output, announced);
	r = r < 0 ? base_fail_errno(err, r, "cannot draw") : put_file(&drawing, output, err);
	if (r >= 0 && announced)
		done_file(announced, output);
	base_buf_release(&drawing);
	return r;
}

static int draw(const struct graph *g, struct json_object *announced, struct base_err *err)
{
	struct draw_options how = { .cutoff = cutoff, .same_size = same_size };
	bool pages = strcmp(format, "ps") == 0 || strcmp(format, "dot") == 0;

	if (!g->nr)
		return base_fail(err, -ENOENT, "the graph has no procedure");
	if (pages || g->nr == 1)
		return draw_together(g, &how, announced, err);
	if (output || announced)
		return draw_apart(g, &how, announced, err);
	base_fail(err, -DCPI_EUSAGE, "%s has no pages, and the graph has %zu procedures", format,
		  g->nr);
	base_hint(err, "name a file by -o; the others are numbered");
	return -DCPI_EUSAGE;
}

static int draw_and_tell(const struct graph *g, struct base_err *err)
{
	struct json_object *announced = done_json("dcpi2ps/1");
	int r;

	json_object_object_add(announced, "format", json_object_new_string(format));
	json_object_object_add(announced, "procedures", json_object_new_array());
	r = draw(g, announced, err);
	if (r >= 0)
		return done_print(announced, err);
	json_object_put(announced);
	return r;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int check_format(struct base_err *err)
{
	static const char *const known[] = { "ps", "pdf", "svg", "dot" };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(format, known[i]) == 0)
			return 0;
	return base_fail(err, -DCPI_EUSAGE, "no such format '%s': ps, pdf, svg and dot are",
			 format);
}

static int dcpi2ps_main(int argc, char **argv)
{
	struct base_err err = { 0 };
	struct graph *g = NULL;
	int r = base_opt_parse(&cmd, &argc, &argv, &err);

	if (r == BASE_OPT_DONE)
		return BASE_EXIT_OK;
	if (r >= 0)
		r = check_format(&err);
	if (r >= 0)
		r = graph_file_read(argc ? argv[0] : NULL, &g, &err);
	if (r >= 0)
		r = json ? draw_and_tell(g, &err) : draw(g, NULL, &err);
	graph_free(g);
	return report_end(&cmd, r, &err);
}

const struct tool dcpi2ps_tool = { .cmd = &cmd, .main = dcpi2ps_main };
