/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tell the daemon to flush, to begin an epoch, to quit, what a process is or has, or ask how it
 * does; and wait for its answer. dcpiflush, dcpiepoch, dcpiquit and dcpilabel are names of the
 * same.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control.h"
#include "tools.h"
#include "wire.h"
#include "image.h"

/* The daemon is told so of an image that another program has put into a process. */

enum { WORDS = 3, WORDS_ALL = 6 };

/* Decimal, or hexadecimal behind 0x. */
static int parse_number(const char *text, const char *what, int64_t max, int64_t *out,
			struct base_err *err)
{
	char *end;

	errno = 0;
	*out = strtoll(text, &end, text[0] == '0' && text[1] == 'x' ? 16 : 10);
	if (errno || !*text || *end || *out < 0 || *out > max)
		return base_fail(err, -DCPI_EUSAGE, "'%s' is no %s", text, what);
	return 0;
}

/* Where the file's code begins and ends, by its own addresses; and the first one's offset. */
static int read_code(const char *path, uint64_t *start, uint64_t *len, uint64_t *off,
		     struct base_err *err)
{
	uint64_t end = 0;
	struct image_code code;
	struct image *img = NULL;
	int r = image_open_path(path, IMAGE_FILE, &img, err);

	if (r < 0)
		return r;
	*start = UINT64_MAX;
	for (size_t i = 0; image_code_at(img, i, &code); i++) {
		*start = code.vaddr < *start ? code.vaddr : *start;
		end = code.vaddr + code.len > end ? code.vaddr + code.len : end;
	}
	*len = end - *start;
	if (end <= *start || image_off(img, *start, off) < 0)
		r = base_fail(err, -DCPI_EFORMAT, "image '%s' has no code", path);
	image_close(img);
	return r;
}

static void add_number(struct json_object *o, const char *key, uint64_t n)
{
	json_object_object_add(o, key, json_object_new_uint64(n));
}

/* The daemon reads what we may read, and opens nothing itself. */
static int add_file(const char *image, struct json_object *request, int *file, struct base_err *err)
{
	char *path = realpath(image, NULL);
	int r = 0;

	*file = path ? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
	if (*file < 0)
		r = base_fail_errno(err, -errno, "cannot open image '%s'", image);
	else
		json_object_object_add(request, "image", json_object_new_string(path));
	free(path);
	return r;
}

/* START SIZE IMAGEID */
static int add_announced(char **words, struct json_object *request, struct base_err *err)
{
	int64_t start = 0, len = 0;
	int r = parse_number(words[0], "address", INT64_MAX, &start, err);

	if (r >= 0)
		r = parse_number(words[1], "size", INT64_MAX, &len, err);
	add_number(request, "start", (uint64_t)start);
	add_number(request, "size", (uint64_t)len);
	json_object_object_add(request, "id", json_object_new_string(words[2]));
	return r;
}

/*
 * Parse the words after "dcpictl register": PID [START SIZE IMAGEID] IMAGE NAME. Missing values are
 * read from the image's file; its descriptor, opened for reading, goes to *@file. The members are
 * added to @request. -DCPI_EUSAGE, or an error of image_open_path.
 */
static int registration_read(int nr, char **words, struct json_object *request, int *file,
			     struct base_err *err)
{
	const char *image = nr >= WORDS ? words[nr - 2] : NULL;
	uint64_t start = 0, len = 0, off = 0;
	int64_t pid = 0;
	int r;

	if (nr != WORDS && nr != WORDS_ALL) {
		base_fail(err, -DCPI_EUSAGE, "wrong number of operands for 'register'");
		base_hint(err, "usage: dcpictl register PID [START SIZE IMAGEID] IMAGE NAME");
		return -DCPI_EUSAGE;
	}
	r = parse_number(words[0], "pid", INT32_MAX, &pid, err);
	if (r >= 0)
		r = read_code(image, &start, &len, &off, err);
	if (r >= 0)
		r = add_file(image, request, file, err);
	if (r < 0)
		return r;
	add_number(request, "pid", (uint64_t)pid);
	add_number(request, "offset", off);
	json_object_object_add(request, "name", json_object_new_string(words[nr - 1]));
	if (nr == WORDS_ALL)
		return add_announced(words + 1, request, err);
	add_number(request, "start", start);
	add_number(request, "size", len);
	return 0;
}

/* A daemon that flushes answers nobody: a notice soon, and what only asks ends some day. */
enum { NOTICE_MS = 5000, LIMIT_MS = 60000 };

/* Exit status of "label" itself; otherwise it ends as its program does. */
enum { LABEL_FAILED = 125, LABEL_NOT_EXECUTABLE = 126, LABEL_NOT_FOUND = 127 };

static struct {
	const char *run_dir;
	int64_t lines; /* 0: not given */
	bool json;
} opt;

enum { LOG_LINES = 20 };

#define RUN_OPTION                                                                                 \
	{                                                                                          \
		"run", BASE_OPT_STRING, &opt.run_dir, "DIR",                                       \
			"Folder of the daemon's sockets (default: $DCPI_RUN or " WIRE_RUN_DIR      \
			").",                                                                      \
			0, 0                                                                       \
	}

static const struct base_opt ctl_options[] = {
	RUN_OPTION,
	{ "n", BASE_OPT_INT, &opt.lines, "LINES", "With log: the last LINES (default: 20).", 1,
	  BASE_LOG_KEPT },
	{ "json", BASE_OPT_FLAG, &opt.json, NULL, "Print the daemon's answer as it is: JSON.", 0,
	  0 },
	{ 0 },
};

static const struct base_opt short_options[] = { RUN_OPTION, { 0 } };

static const struct base_cmd ctl_cmd = {
	.name = "dcpictl",
	.summary = "control the daemon",
	.operands = "flush|epoch|quit|status|label|register|log [argument …]",
	.opts = ctl_options,
	.examples =
		(const struct base_example[]){
			{ "dcpictl status", "What the daemon samples, stores and loses." },
			{ "dcpictl flush", "Put all samples on disk; return when they are there." },
			{ "dcpictl status -json", "The same for programs." },
			{ "dcpictl label run1 ./prog -x", "Run a program whose samples can be told "
							  "from others: dcpiprof -label run1." },
			{ "dcpictl register 4711 0x7f1200001000 8192 0a1b2c3d4e /opt/prog prog",
			  "Process 4711 has copied the code of /opt/prog to that address." },
			{ "dcpictl log -n 5", "The last five messages of the daemon." },
			{ NULL, NULL } },
	.min_operands = 1,
	.max_operands = -1,
};

/* The options of a program that is run are its own. */
static const struct base_cmd ctl_label_cmd = {
	.name = "dcpictl",
	.summary = "control the daemon",
	.operands = "label LABEL COMMAND [argument …]",
	.opts = ctl_options,
	.min_operands = 3,
	.max_operands = -1,
	.first_ends = true,
};

/* ---- what it answered ------------------------------------------------------------------------ */

static unsigned long long number_of(struct json_object *o, const char *name)
{
	struct json_object *value;

	return json_object_object_get_ex(o, name, &value) ? json_object_get_uint64(value) : 0;
}

/* 1 where it is not told. */
static double fraction_of(struct json_object *o, const char *name)
{
	struct json_object *value;

	return json_object_object_get_ex(o, name, &value) ? json_object_get_double(value) : 1;
}

static struct json_object *part_of(struct json_object *o, const char *name)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(o, name, &value);
	return value;
}

/* "NAME N" for each member that is not 0. */
static void print_parts(struct json_object *o, const char *name, const char *title)
{
	struct json_object *parts = part_of(o, name);

	if (!json_object_is_type(parts, json_type_object))
		return;
	json_object_object_foreach(parts, key, value)
	{
		if (json_object_get_uint64(value))
			printf("  %-26s %llu  (%s)\n", key,
			       (unsigned long long)json_object_get_uint64(value), title);
	}
}

static void print_events(struct json_object *o)
{
	struct json_object *list = part_of(o, "events");
	size_t nr = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;

	for (size_t i = 0; i < nr; i++) {
		struct json_object *e = json_object_array_get_idx(list, i);

		printf("event       %s, period %llu", control_text(e, "name"),
		       number_of(e, "period"));
		if (fraction_of(e, "enabled") < 1)
			printf(", %.1f %% of the time", 100 * fraction_of(e, "enabled"));
		if (part_of(e, "received"))
			printf(": received %llu, missed %llu\n", number_of(e, "received"),
			       number_of(e, "missed"));
		else
			puts(" ns: measured, see waits");
	}
}

static void print_account(struct json_object *o)
{
	unsigned long long received = number_of(o, "received"), stored = number_of(o, "stored");
	unsigned long long pending = number_of(o, "pending"), lost = number_of(o, "lost");
	bool same = received == stored + pending + lost;

	printf("samples     received %llu %s stored %llu + pending %llu + lost %llu%s\n", received,
	       same ? "=" : "!=", stored, pending, lost, same ? "" : "  (a defect of the daemon)");
	print_parts(o, "losses", "lost");
	print_parts(o, "buckets", "stored, in no image");
	printf("missed      %llu never delivered by the kernel; %llu load events lost\n",
	       number_of(o, "missed"), number_of(o, "lost_load_events"));
}

static void print_dynamic(struct json_object *o)
{
	struct json_object *d = part_of(o, "dynamic");

	if (!json_object_is_type(d, json_type_object))
		return;
	printf("dynamic     %llu clients, %llu facilities, %llu routines; %llu images written\n",
	       number_of(d, "clients"), number_of(d, "facilities"), number_of(d, "routines"),
	       number_of(d, "images_written"));
	if (number_of(d, "registries_refused"))
		printf("            %llu registries refused\n", number_of(d, "registries_refused"));
	if (number_of(d, "records_bad") || number_of(d, "records_dropped"))
		printf("            %llu records bad, %llu dropped by clients\n",
		       number_of(d, "records_bad"), number_of(d, "records_dropped"));
	if (number_of(d, "entries_left_out"))
		printf("            %llu entries of tables made no sense and were left out "
		       "(dbgdyn_check says which)\n",
		       number_of(d, "entries_left_out"));
}

static void print_traces(struct json_object *o)
{
	struct json_object *w = part_of(o, "windows");

	if (!json_object_is_type(w, json_type_object))
		return;
	printf("traces      of one sample in %llu: received %llu, stored %llu, pending %llu, lost "
	       "%llu; %llu blocks\n",
	       number_of(w, "every"), number_of(w, "windows_received"),
	       number_of(w, "windows_stored"), number_of(w, "windows_pending"),
	       number_of(w, "windows_lost"), number_of(w, "blocks"));
	print_parts(w, "window_losses", "lost");
	print_parts(w, "window_ends", "ended so");
}

static void print_callpaths(struct json_object *o)
{
	struct json_object *c = part_of(o, "callpaths");

	if (!json_object_is_type(c, json_type_object))
		return;
	if (*control_text(c, "none_because")) {
		printf("call paths  none: %s\n", control_text(c, "none_because"));
		return;
	}
	printf("call paths  received %llu, stored %llu, pending %llu, lost %llu; %llu unwind "
	       "tables, "
	       "%llu KiB\n",
	       number_of(c, "callpaths_received"), number_of(c, "callpaths_stored"),
	       number_of(c, "callpaths_pending"), number_of(c, "callpaths_lost"),
	       number_of(c, "tables"), number_of(c, "table_bytes") / 1024);
	print_parts(c, "callpath_losses", "lost");
	print_parts(c, "callpath_ends", "ended so");
}

static void print_waits(struct json_object *o)
{
	struct json_object *w = part_of(o, "waits");
	const unsigned int ms = 1000000;

	if (!json_object_is_type(w, json_type_object))
		return;
	printf("waits       in ms: received %llu, stored %llu, pending %llu, lost %llu\n",
	       number_of(w, "ns_received") / ms, number_of(w, "ns_stored") / ms,
	       number_of(w, "ns_pending") / ms, number_of(w, "ns_lost") / ms);
	print_parts(w, "ns_losses", "ns lost");
	print_parts(w, "ns_by_kind", "ns");
}

static void print_workloads(struct json_object *o)
{
	struct json_object *w = part_of(o, "workloads");

	if (!json_object_is_type(w, json_type_object))
		return;
	printf("workloads   %llu process%s by pid in this epoch, %llu without",
	       number_of(w, "apart"), number_of(w, "apart") == 1 ? "" : "es",
	       number_of(w, "together"));
	if (number_of(w, "undivided"))
		printf("; %llu samples have none", number_of(w, "undivided"));
	putchar('\n');
}

/* A profiler without complaints has no line. */
static void print_profilers(struct json_object *list)
{
	size_t nr = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;

	for (size_t i = 0; i < nr; i++) {
		struct json_object *p = json_object_array_get_idx(list, i);
		unsigned long long wild = number_of(p, "values_wild");
		unsigned long long crashes = number_of(p, "crashes"), hangs = number_of(p, "hangs");

		if (wild || crashes || hangs || number_of(p, "given_up"))
			printf("  %s: %llu values, %llu wild; crashed %llu times, hung %llu%s\n",
			       control_text(p, "name"), number_of(p, "values"), wild, crashes,
			       hangs, number_of(p, "given_up") ? ": given up" : "");
	}
}

static void print_values(struct json_object *o)
{
	struct json_object *v = part_of(o, "values");
	unsigned long long not_sent = number_of(v, "windows_not_sent");
	unsigned long long unanswered = number_of(v, "windows_unanswered");

	if (!json_object_is_type(v, json_type_object))
		return;
	printf("values      traces answered %llu, waiting %llu, lost %llu; values stored %llu\n",
	       number_of(v, "windows_answered"), number_of(v, "windows_waiting"),
	       not_sent + unanswered, number_of(v, "values_stored"));
	if (not_sent)
		printf("  %-26s %llu  (lost: profilers were behind)\n", "not-sent", not_sent);
	if (unanswered)
		printf("  %-26s %llu  (lost)\n", "unanswered", unanswered);
	if (number_of(v, "values_unplaced"))
		printf("  %-26s %llu  (values lost)\n", "unplaced",
		       number_of(v, "values_unplaced"));
	print_profilers(part_of(v, "profilers"));
}

static void print_steps(struct json_object *o)
{
	struct json_object *s = part_of(o, "stepped");

	if (!json_object_is_type(s, json_type_object))
		return;
	printf("steps       of process %llu: bursts received %llu, stored %llu, pending %llu, lost "
	       "%llu; it stood for %s s\n",
	       number_of(s, "of_pid"), number_of(s, "stepped_received"),
	       number_of(s, "stepped_stored"), number_of(s, "stepped_pending"),
	       number_of(s, "stepped_lost"), control_text(s, "stopped_seconds"));
	print_parts(s, "stepped_losses", "lost");
	print_parts(s, "stepped_ends", "ended so");
}

static void print_status(struct json_object *o)
{
	const char *flushed = control_text(o, "last_flush");

	printf("daemon      dcpid %s\n", control_text(o, "version"));
	printf("pid         %llu\n", number_of(o, "pid"));
	printf("database    %s\n", control_text(o, "database"));
	printf("epoch       %s on %s\n", control_text(o, "epoch"), control_text(o, "platform"));
	printf("source      %s\n", control_text(o, "source"));
	print_events(o);
	print_account(o);
	printf("processes   %llu, %llu images\n", number_of(o, "processes"),
	       number_of(o, "images"));
	print_dynamic(o);
	print_traces(o);
	print_callpaths(o);
	print_waits(o);
	print_workloads(o);
	print_values(o);
	print_steps(o);
	printf("last flush  %s\n", *flushed ? flushed : "none yet");
	if (*control_text(o, "flush_error"))
		printf("            failed: %s\n", control_text(o, "flush_error"));
	if (*control_text(o, "flush_hint"))
		printf("            hint: %s\n", control_text(o, "flush_hint"));
	printf("cost        %s s CPU, %llu KiB resident\n", control_text(o, "cpu_seconds"),
	       number_of(o, "rss_kb"));
}

static void print_log(struct json_object *o)
{
	struct json_object *lines = part_of(o, "lines");

	for (size_t i = 0; i < json_object_array_length(lines); i++)
		puts(json_object_get_string(json_object_array_get_idx(lines, i)));
}

/* ---- the commands ---------------------------------------------------------------------------- */

static int fail(const char *name, const struct base_err *err)
{
	base_err_print(err, name, stderr);
	return err->code == -DCPI_EUSAGE ? BASE_EXIT_USAGE : BASE_EXIT_FAILED;
}

static void report(const char *verb, struct json_object *answer)
{
	if (strcmp(verb, "status") == 0)
		print_status(answer);
	else if (strcmp(verb, "epoch") == 0)
		printf("epoch %s begins\n", control_text(answer, "epoch"));
	else if (strcmp(verb, "log") == 0 &&
		 json_object_is_type(part_of(answer, "lines"), json_type_array))
		print_log(answer);
	if (number_of(answer, "left"))
		printf("%llu samples wait for their code to be written, which takes long: the next "
		       "flush goes on\n",
		       number_of(answer, "left"));
}

static struct json_object *new_request(const char *verb)
{
	struct json_object *request = json_object_new_object();

	json_object_object_add(request, "cmd", json_object_new_string(verb));
	return request;
}

static int no_operand(int nr, char **words, struct base_err *err)
{
	return nr ? base_fail(err, -DCPI_EUSAGE, "unexpected operand '%s'", words[0]) : 0;
}

/* *@file: to go along with it. */
static int make_request(const char *verb, int nr, char **words, struct json_object *request,
			int *file, struct base_err *err)
{
	static const char *const plain[] = { "flush", "epoch", "quit", "status" };

	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		if (strcmp(verb, plain[i]) == 0)
			return no_operand(nr, words, err);
	if (strcmp(verb, "register") == 0)
		return registration_read(nr, words, request, file, err);
	if (strcmp(verb, "log") == 0) {
		json_object_object_add(request, "lines",
				       json_object_new_int64(opt.lines ? opt.lines : LOG_LINES));
		return no_operand(nr, words, err);
	}
	base_fail(err, -DCPI_EUSAGE, "unknown command '%s'", verb);
	base_hint(err, "commands are flush, epoch, quit, status, label, register, log");
	return -DCPI_EUSAGE;
}

/*
 * A client that gives up does not know whether the request was done, so only questions may time
 * out.
 */
static int ask(const char *name, struct json_object *request, int file, struct base_buf *text,
	       struct json_object **answer, struct base_err *err)
{
	const char *cmd = control_text(request, "cmd");
	const struct control_wait wait = {
		.name = name,
		.notice_ms = NOTICE_MS,
		.limit_ms = LIMIT_MS,
		.gives_up = !strcmp(cmd, "status") || !strcmp(cmd, "log"),
		.file = file,
	};

	return control_ask(opt.run_dir, &wait, request, text, answer, err);
}

/* A flush leaves what takes the daemon long for the next one: ask again while each leaves less, but
 * no longer than one user's code may hold up another user. */
static int ask_until_done(const char *name, struct json_object *request, int file,
			  struct base_buf *text, struct json_object **answer, struct base_err *err)
{
	enum { TIMES_MAX = 3 };
	unsigned long long left = ULLONG_MAX, before;
	int r, times = 0;

	do {
		json_object_put(*answer);
		*answer = NULL;
		base_buf_clear(text);
		before = left;
		r = ask(name, request, file, text, answer, err);
		left = r < 0 ? 0 : number_of(*answer, "left");
	} while (left && left < before && ++times < TIMES_MAX);
	return r;
}

static int run(const char *name, const char *verb, int nr, char **words)
{
	struct json_object *request = new_request(verb), *answer = NULL;
	struct base_err err = { 0 };
	struct base_buf text = { 0 };
	int file = 0;
	int r = make_request(verb, nr, words, request, &file, &err);

	if (r >= 0 && opt.lines && strcmp(verb, "log") != 0)
		r = base_fail(&err, -DCPI_EUSAGE, "-n goes with log");
	if (r >= 0)
		r = ask_until_done(name, request, file, &text, &answer, &err);
	if (r >= 0 && opt.json)
		puts((const char *)text.data);
	else if (r >= 0)
		report(verb, answer);
	json_object_put(request);
	json_object_put(answer);
	base_buf_release(&text);
	return r < 0 ? fail(name, &err) : BASE_EXIT_OK;
}

static int give_label(const char *name, const char *label, struct base_err *err)
{
	struct json_object *request = new_request("label"), *answer = NULL;
	struct base_buf text = { 0 };
	int r;

	/* The kernel tells the daemon whose process this is. */
	json_object_object_add(request, "label", json_object_new_string(label));
	r = ask(name, request, 0, &text, &answer, err);
	json_object_put(request);
	json_object_put(answer);
	base_buf_release(&text);
	return r;
}

/* @words: LABEL COMMAND [argument …]. The label is this process's from its next program on. */
static int run_labelled(const char *name, char **words)
{
	struct base_err err = { 0 };
	int r;

	/* Standard output is the program's. */
	if (opt.lines || opt.json) {
		base_fail(&err, -DCPI_EUSAGE, "-%s does not go with label",
			  opt.json ? "json" : "n");
		return fail(name, &err);
	}
	r = give_label(name, words[0], &err);
	if (r < 0) {
		base_err_print(&err, name, stderr);
		return LABEL_FAILED;
	}
	execvp(words[1], words + 1);
	r = -errno;
	base_fail_errno(&err, r, "cannot run '%s'", words[1]);
	base_err_print(&err, name, stderr);
	return r == -ENOENT ? LABEL_NOT_FOUND : LABEL_NOT_EXECUTABLE;
}

static int run_command(const struct base_cmd *cmd, const char *verb, int argc, char **argv)
{
	struct base_err err = { 0 };
	int r = base_opt_parse(cmd, &argc, &argv, &err);

	if (r == BASE_OPT_DONE)
		return BASE_EXIT_OK;
	if (r < 0)
		return fail(cmd->name, &err);
	if (!verb) {
		verb = argv[0];
		argc--;
		argv++;
	}
	return strcmp(verb, "label") == 0 ? run_labelled(cmd->name, argv)
					  : run(cmd->name, verb, argc, argv);
}

/* Is that its first operand? */
static bool is_label(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i] + strspn(argv[i], "-");

		if (word == argv[i])
			return strcmp(word, "label") == 0;
		if (strcmp(word, "run") == 0 || strcmp(word, "n") == 0)
			i++;
	}
	return false;
}

static int dcpictl_main(int argc, char **argv)
{
	return run_command(is_label(argc, argv) ? &ctl_label_cmd : &ctl_cmd, NULL, argc, argv);
}

const struct tool dcpictl_tool = {
	.cmd = &ctl_cmd,
	.summary = "flush, begin an epoch, quit, or ask the daemon for its status",
	.main = dcpictl_main,
};

static const struct base_cmd label_cmd = {
	.name = "dcpilabel",
	.summary = "run a program whose samples have a label",
	.operands = "LABEL COMMAND [argument …]",
	.opts = short_options,
	.examples =
		(const struct base_example[]){
			{ "dcpilabel before ./prog -x",
			  "Run it; 'dcpiprof -label before' shows it and what it ran, alone." },
			{ "dcpilabel v2 make test", "A whole tree of processes." },
			{ NULL, NULL } },
	.min_operands = 2,
	.max_operands = -1,
	.first_ends = true,
};

static int dcpilabel_main(int argc, char **argv)
{
	return run_command(&label_cmd, "label", argc, argv);
}

const struct tool dcpilabel_tool = { .cmd = &label_cmd, .main = dcpilabel_main, .failed = 125 };

#define SHORT_FORM(verb, says, example)                                                            \
	static const struct base_cmd verb##_cmd = {                                                \
		.name = "dcpi" #verb,                                                              \
		.summary = says,                                                                   \
		.operands = "",                                                                    \
		.opts = short_options,                                                             \
		.examples = (const struct base_example[]){ { "dcpi" #verb, example },              \
							   { NULL, NULL } },                       \
	};                                                                                         \
	static int verb##_main(int argc, char **argv)                                              \
	{                                                                                          \
		return run_command(&verb##_cmd, #verb, argc, argv);                                \
	}                                                                                          \
	const struct tool dcpi##verb##_tool = { .cmd = &verb##_cmd, .main = verb##_main };

SHORT_FORM(flush, "put the daemon's samples on disk", "Return when all samples are on disk.")
SHORT_FORM(epoch, "begin a new epoch", "Finish the epoch and print the next one's name.")
SHORT_FORM(quit, "end the daemon", "Put all samples on disk, finish the epoch, end the daemon.")
