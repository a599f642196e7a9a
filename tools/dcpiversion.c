/* SPDX-License-Identifier: BSD-2-Clause */
/* Which DCPI this is, and on what: for reports of defects. */
#include <fcntl.h>
#include <json.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "report.h"
#include "tools.h"

static bool want_json;

static const struct base_cmd cmd = {
	.name = "dcpiversion",
	.summary = "print the release, and what a report of a defect needs",
	.operands = "",
	.opts = (const struct base_opt[]){ { "json", BASE_OPT_FLAG, &want_json, NULL,
					     "Print JSON with the same rows (dcpijson(5)).", 0, 0 },
					   { 0 } },
	.examples =
		(const struct base_example[]){
			{ "dcpiversion", "What to put at the top of a report." }, { NULL, NULL } },
};

enum { SYSTEM_FILE_MAX = 1 << 20 };

struct row {
	const char *name;
	char text[256];
};

enum { REVISION, COMPILER, SYSTEM, DISTRIBUTION, PROCESSORS, NR_ROWS };

/* Copy the value after @word at the start of a line of a system's file, without quotes; or "". */
static void word_of_file(const char *path, const char *word, char *out, size_t out_len)
{
	struct base_buf text = { 0 };
	const char *line;
	size_t len;

	*out = '\0';
	if (base_file_read(AT_FDCWD, path, SYSTEM_FILE_MAX, &text, NULL) < 0 ||
	    base_buf_append(&text, "", 1) < 0) {
		base_buf_release(&text);
		return;
	}
	for (line = (const char *)text.data; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, word, strlen(word)) == 0)
			break;
	}
	if (line) {
		line += strlen(word);
		line += strspn(line, "=: \t\"");
		len = strcspn(line, "\"\n");
		snprintf(out, out_len, "%.*s", len < out_len ? (int)len : (int)out_len - 1, line);
	}
	base_buf_release(&text);
}

static void gather(struct row rows[NR_ROWS])
{
	static const char *const names[NR_ROWS] = { "revision", "compiler", "system",
						    "distribution", "processors" };
	struct utsname u;
	char model[160];

	for (int i = 0; i < NR_ROWS; i++)
		rows[i] = (struct row){ .name = names[i], .text = "unknown" };
	if (*base_revision())
		snprintf(rows[REVISION].text, sizeof(rows[0].text), "%s", base_revision());
	snprintf(rows[COMPILER].text, sizeof(rows[0].text), "%s", __VERSION__);
	if (uname(&u) == 0)
		snprintf(rows[SYSTEM].text, sizeof(rows[0].text), "%s %s %s", u.sysname, u.release,
			 u.machine);
	word_of_file("/etc/os-release", "PRETTY_NAME", rows[DISTRIBUTION].text,
		     sizeof(rows[0].text));
	if (!*rows[DISTRIBUTION].text)
		strcpy(rows[DISTRIBUTION].text, "unknown");
	word_of_file("/proc/cpuinfo", "model name", model, sizeof(model));
	snprintf(rows[PROCESSORS].text, sizeof(rows[0].text), "%ld%s%s",
		 sysconf(_SC_NPROCESSORS_ONLN), *model ? ", " : "", model);
}

static void print_text(const struct row *rows)
{
	printf("%s (DCPI) %s\n", cmd.name, base_release());
	for (int i = 0; i < NR_ROWS; i++)
		printf("%-13s %s\n", rows[i].name, rows[i].text);
	printf("\nA report needs this, what was done, what came, and where it is of the daemon\n"
	       "what 'dcpid -check' and 'dcpictl status' print.\n");
}

static int print_json(const struct row *rows)
{
	struct json_object *root = json_object_new_object();

	json_object_object_add(root, "schema", json_object_new_string("dcpiversion/1"));
	json_object_object_add(root, "release", json_object_new_string(base_release()));
	for (int i = 0; i < NR_ROWS; i++)
		json_object_object_add(root, rows[i].name, json_object_new_string(rows[i].text));
	return report_json_put(root, stdout);
}

static int dcpiversion_main(int argc, char **argv)
{
	struct row rows[NR_ROWS];
	struct base_err err = { 0 };
	int r = base_opt_parse(&cmd, &argc, &argv, &err);

	if (r == BASE_OPT_DONE)
		return BASE_EXIT_OK;
	if (r < 0) {
		base_err_print(&err, cmd.name, stderr);
		return BASE_EXIT_USAGE;
	}
	gather(rows);
	if (!want_json)
		print_text(rows);
	return want_json && print_json(rows) < 0 ? BASE_EXIT_FAILED : BASE_EXIT_OK;
}

const struct tool dcpiversion_tool = { .cmd = &cmd, .main = dcpiversion_main };
