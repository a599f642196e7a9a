/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tell the daemon to flush, to begin an epoch, to quit, or ask how it does; and wait for its
 * answer. dcpiflush, dcpiepoch and dcpiquit are names of the same.
 */
#include <errno.h>
#include <json.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tools.h"
#include "wire.h"

enum { ANSWER_MAX = 16 << 20 };

static struct {
	const char *run_dir;
	bool json;
} opt;

#define RUN_OPTION                                                                                 \
	{                                                                                          \
		"run", BASE_OPT_STRING, &opt.run_dir, "DIR",                                       \
			"Folder of the daemon's sockets (default: $DCPI_RUN or " WIRE_RUN_DIR      \
			").",                                                                      \
			0, 0                                                                       \
	}

static const struct base_opt ctl_options[] = {
	RUN_OPTION,
	{ "json", BASE_OPT_FLAG, &opt.json, NULL, "Print the daemon's answer as it is: JSON.", 0,
	  0 },
	{ 0 },
};

static const struct base_opt short_options[] = { RUN_OPTION, { 0 } };

static const struct base_cmd ctl_cmd = {
	.name = "dcpictl",
	.summary = "control the daemon",
	.operands = "flush|epoch|quit|status",
	.opts = ctl_options,
	.examples =
		(const struct base_example[]){
			{ "dcpictl status", "What the daemon samples, stores and loses." },
			{ "dcpictl flush", "Put all samples on disk; return when they are there." },
			{ "dcpictl status -json", "The same for programs." },
			{ NULL, NULL } },
	.min_operands = 1,
	.max_operands = 1,
};

/* ---- the conversation ---------------------------------------------------------------------- */

static int no_daemon(struct base_err *err, const char *path, int cause)
{
	if (cause == -EACCES || cause == -EPERM)
		return base_fail_errno(err, cause, "cannot reach the daemon at '%s'", path);
	base_fail(err, -DCPI_ENODAEMON, "no daemon answers at '%s'", path);
	base_hint(err, "start one with 'dcpid -background DATABASE', or name its folder with -run");
	return -DCPI_ENODAEMON;
}

static int connect_daemon(struct base_err *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const char *env = getenv("DCPI_RUN");
	const char *dir = opt.run_dir ? opt.run_dir : env && env[0] ? env : WIRE_RUN_DIR;
	int fd, n = snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", dir, WIRE_CONTROL_NAME);

	if (n < 0 || (size_t)n >= sizeof(addr.sun_path))
		return base_fail_errno(err, -ENAMETOOLONG, "cannot reach a daemon in '%s'", dir);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd < 0)
		return base_fail_errno(err, -errno, "cannot make a socket");
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		n = no_daemon(err, addr.sun_path, -errno);
		close(fd);
		return n;
	}
	return fd;
}

static int send_request(int fd, const char *verb)
{
	char line[64];
	size_t len = (size_t)snprintf(line, sizeof(line), "{\"cmd\":\"%s\"}\n", verb), sent = 0;

	while (sent < len) {
		/* A daemon that goes away is an error to report, not a signal to die of. */
		ssize_t n = send(fd, line + sent, len - sent, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		sent += (size_t)n;
	}
	return 0;
}

/* One line without its newline, NUL-terminated. */
static int read_answer(int fd, struct base_buf *out)
{
	char bytes[4096];

	for (;;) {
		ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
		char *end;
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -DCPI_ETRUNCATED;
		end = memchr(bytes, '\n', (size_t)n);
		r = base_buf_append(out, bytes, end ? (size_t)(end - bytes) : (size_t)n);
		if (r >= 0 && end)
			return base_buf_append(out, "", 1);
		if (r >= 0 && out->len > ANSWER_MAX)
			r = -DCPI_ELIMIT;
		if (r < 0)
			return r;
	}
}

static int ask(const char *verb, struct base_buf *answer, struct base_err *err)
{
	int fd = connect_daemon(err), r;

	if (fd < 0)
		return fd;
	r = send_request(fd, verb);
	if (r >= 0)
		r = read_answer(fd, answer);
	close(fd);
	return r < 0 ? base_fail_errno(err, r, "the daemon did not answer '%s'", verb) : 0;
}

/* ---- what it answered ---------------------------------------------------------------------- */

static const char *text_of(struct json_object *o, const char *name)
{
	struct json_object *value;

	if (!json_object_object_get_ex(o, name, &value))
		return "";
	return json_object_get_string(value);
}

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

		printf("event       %s, period %llu", text_of(e, "name"), number_of(e, "period"));
		if (fraction_of(e, "enabled") < 1)
			printf(", %.1f %% of the time", 100 * fraction_of(e, "enabled"));
		printf(": received %llu, missed %llu\n", number_of(e, "received"),
		       number_of(e, "missed"));
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
	if (number_of(d, "records_bad") || number_of(d, "records_dropped"))
		printf("            %llu records bad, %llu dropped by clients\n",
		       number_of(d, "records_bad"), number_of(d, "records_dropped"));
}

static void print_status(struct json_object *o)
{
	const char *flushed = text_of(o, "last_flush");

	printf("daemon      dcpid %s\n", text_of(o, "version"));
	printf("pid         %llu\n", number_of(o, "pid"));
	printf("database    %s\n", text_of(o, "database"));
	printf("epoch       %s on %s\n", text_of(o, "epoch"), text_of(o, "platform"));
	printf("source      %s\n", text_of(o, "source"));
	print_events(o);
	print_account(o);
	printf("processes   %llu, %llu images\n", number_of(o, "processes"),
	       number_of(o, "images"));
	print_dynamic(o);
	printf("last flush  %s\n", *flushed ? flushed : "none yet");
	if (*text_of(o, "flush_error"))
		printf("            failed: %s\n", text_of(o, "flush_error"));
	printf("cost        %s s CPU, %llu KiB resident\n", text_of(o, "cpu_seconds"),
	       number_of(o, "rss_kb"));
}

/* ---- the commands -------------------------------------------------------------------------- */

static bool is_ok(struct json_object *answer)
{
	struct json_object *ok;

	return json_object_object_get_ex(answer, "ok", &ok) && json_object_get_boolean(ok);
}

static int check_answer(struct json_object *answer, struct base_err *err)
{
	if (!json_object_is_type(answer, json_type_object))
		return base_fail(err, -DCPI_EFORMAT, "the daemon's answer makes no sense");
	if (is_ok(answer))
		return 0;
	base_fail(err, -EPERM, "%s", text_of(answer, "error"));
	if (*text_of(answer, "hint"))
		base_hint(err, "%s", text_of(answer, "hint"));
	return err->code;
}

static void report(const char *verb, struct json_object *answer)
{
	if (strcmp(verb, "status") == 0)
		print_status(answer);
	else if (strcmp(verb, "epoch") == 0)
		printf("epoch %s begins\n", text_of(answer, "epoch"));
}

static int fail(const char *name, const struct base_err *err)
{
	base_err_print(err, name, stderr);
	return err->code == -DCPI_EUSAGE ? BASE_EXIT_USAGE : BASE_EXIT_FAILED;
}

static int run(const char *name, const char *verb)
{
	struct base_err err = { 0 };
	struct base_buf text = { 0 };
	struct json_object *answer = NULL;
	int r = ask(verb, &text, &err);

	if (r >= 0) {
		answer = json_tokener_parse((const char *)text.data);
		r = check_answer(answer, &err);
	}
	if (r >= 0 && opt.json)
		puts((const char *)text.data);
	else if (r >= 0)
		report(verb, answer);
	json_object_put(answer);
	base_buf_release(&text);
	return r < 0 ? fail(name, &err) : BASE_EXIT_OK;
}

static int check_verb(const char *verb, struct base_err *err)
{
	static const char *const verbs[] = { "flush", "epoch", "quit", "status" };

	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (strcmp(verb, verbs[i]) == 0)
			return 0;
	base_fail(err, -DCPI_EUSAGE, "unknown command '%s'", verb);
	base_hint(err, "commands are flush, epoch, quit, status");
	return -DCPI_EUSAGE;
}

static int run_command(const struct base_cmd *cmd, const char *verb, int argc, char **argv)
{
	struct base_err err = { 0 };
	int r = base_opt_parse(cmd, &argc, &argv, &err);

	if (r == BASE_OPT_DONE)
		return BASE_EXIT_OK;
	if (r >= 0 && !verb) {
		verb = argv[0];
		r = check_verb(verb, &err);
	}
	return r < 0 ? fail(cmd->name, &err) : run(cmd->name, verb);
}

int dcpictl_main(int argc, char **argv)
{
	return run_command(&ctl_cmd, NULL, argc, argv);
}

#define SHORT_FORM(verb, says, example)                                                            \
	static const struct base_cmd verb##_cmd = {                                                \
		.name = "dcpi" #verb,                                                              \
		.summary = says,                                                                   \
		.operands = "",                                                                    \
		.opts = short_options,                                                             \
		.examples = (const struct base_example[]){ { "dcpi" #verb, example },              \
							   { NULL, NULL } },                       \
	};                                                                                         \
	int dcpi##verb##_main(int argc, char **argv)                                               \
	{                                                                                          \
		return run_command(&verb##_cmd, #verb, argc, argv);                                \
	}

SHORT_FORM(flush, "put the daemon's samples on disk", "Return when all samples are on disk.")
SHORT_FORM(epoch, "begin a new epoch", "Finish the epoch and print the next one's name.")
SHORT_FORM(quit, "end the daemon", "Put all samples on disk, finish the epoch, end the daemon.")
