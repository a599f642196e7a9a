/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpiuninstall: take away what 'cmake --install' put on this machine. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "manifest.h"
#include "report.h"
#include "tools.h"

static bool dry_run, all, want_json;

static const struct base_opt options[] = {
	{ "n", BASE_OPT_FLAG, &dry_run, NULL, "Remove nothing: list what would be.", 0, 0 },
	{ "all", BASE_OPT_FLAG, &all, NULL,
	  "Remove files too that were changed since they were installed.", 0, 0 },
	{ "json", BASE_OPT_FLAG, &want_json, NULL, "Print JSON with the same rows (dcpijson(5)).",
	  0, 0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpiuninstall",
	.summary = "remove what the installation put on this machine",
	.operands = "",
	.opts = options,
	.examples =
		(const struct base_example[]){ { "dcpiuninstall -n", "What it would remove." },
					       { "dcpiuninstall", "Remove it; databases stay." },
					       { NULL, NULL } },
	.min_operands = 0,
	.max_operands = 0,
};

enum { MANIFEST_MAX = 16 << 20 };
#define DPKG_LIST    "/var/lib/dpkg/info/dcpi.list"
#define ENABLED_PATH "/etc/systemd/system"

/* The outcome for each entry. */
enum fate { GONE, REMOVED, CHANGED, NOT_OURS, NOT_EMPTY, FAILED };

static const char *const fates[] = {
	[GONE] = "not there",
	[REMOVED] = "removed",
	[CHANGED] = "kept: changed since it was installed",
	[NOT_OURS] = "kept: something else is there now",
	[NOT_EMPTY] = "kept: other files are in it",
	[FAILED] = "cannot be removed",
};

struct uninstall {
	char exe[PATH_MAX], prefix[PATH_MAX], list[PATH_MAX];
	struct manifest m;
	uint64_t nr[sizeof(fates) / sizeof(fates[0])];
	struct json_object *rows;
};

/* ---- what is installed ----------------------------------------------------------------------- */

static int find_self(struct uninstall *u, struct base_err *err)
{
	char dir[PATH_MAX], place[2 * PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", u->exe, sizeof(u->exe) - 1);

	if (n < 0)
		return base_fail_errno(err, -errno, "cannot tell where this program is");
	u->exe[n] = '\0';
	snprintf(dir, sizeof(dir), "%.*s", (int)(base_path_name(u->exe) - u->exe), u->exe);
	snprintf(place, sizeof(place), "%s%s", dir, DCPI_PREFIX);
	if (!realpath(place, u->prefix))
		return base_fail_errno(err, -errno, "cannot find '%s'", place);
	snprintf(place, sizeof(place), "%s%s", dir, DCPI_MANIFEST);
	if (!realpath(place, u->list))
		snprintf(u->list, sizeof(u->list), "%.*s", PATH_MAX - 1, place);
	return 0;
}

static bool is_packaged(const char *exe)
{
	struct base_buf text = { 0 };
	const char *at;
	bool yes = false;

	if (base_file_read(AT_FDCWD, DPKG_LIST, MANIFEST_MAX, &text, NULL) >= 0 &&
	    base_buf_append(&text, "", 1) >= 0) {
		at = strstr((const char *)text.data, exe);
		yes = at && at[strlen(exe)] == '\n';
	}
	base_buf_release(&text);
	return yes;
}

static int not_installed(const struct uninstall *u, struct base_err *err)
{
	base_fail(err, -ENOENT, "'%s' was not put there by 'cmake --install': there is no '%s'",
		  u->exe, u->list);
	if (is_packaged(u->exe))
		base_hint(err, "it is Debian's package 'dcpi': apt-get remove dcpi");
	else
		base_hint(err, "a package is removed by the command that installed it");
	return -ENOENT;
}

static int read_list(struct uninstall *u, struct base_err *err)
{
	struct base_err why = { 0 };
	struct base_buf text = { 0 };
	int r = base_file_read(AT_FDCWD, u->list, MANIFEST_MAX, &text, &why);

	if (r == -ENOENT)
		r = not_installed(u, err);
	else if (r < 0)
		base_fail(err, r, "%s", why.text);
	else
		r = manifest_parse(&u->m, (const char *)text.data, text.len, err);
	base_buf_release(&text);
	return r;
}

static void full_path(const struct uninstall *u, const char *path, char *to, size_t len)
{
	if (*path == '/' || !strcmp(path, "."))
		snprintf(to, len, "%s", *path == '/' ? path : u->prefix);
	else
		snprintf(to, len, "%s/%s", u->prefix, path);
}

/* ---- nobody uses it -------------------------------------------------------------------------- */

/* As /proc tells it, also where another file took its place: an installation over one that runs. */
static bool is_program(const char *exe, const char *path)
{
	size_t len = strlen(path);

	return !strncmp(exe, path, len) && (!exe[len] || !strcmp(exe + len, " (deleted)"));
}

/* The process that runs the program at @path, or 0. */
static long user_of(const char *path)
{
	DIR *proc = opendir("/proc");
	char link[300], exe[PATH_MAX];
	struct dirent *e;
	long pid = 0;

	while (proc && !pid && (e = readdir(proc))) {
		ssize_t n;

		if (e->d_name[strspn(e->d_name, "0123456789")])
			continue;
		snprintf(link, sizeof(link), "/proc/%s/exe", e->d_name);
		n = readlink(link, exe, sizeof(exe) - 1);
		exe[n > 0 ? n : 0] = '\0';
		if (is_program(exe, path))
			pid = strtol(e->d_name, NULL, 10);
	}
	if (proc)
		closedir(proc);
	return pid;
}

static int refuse_running(const struct uninstall *u, struct base_err *err)
{
	char path[2 * PATH_MAX];

	for (size_t i = 0; i < u->m.nr; i++) {
		long pid;

		if (strcmp(base_path_name(u->m.v[i].path), "dcpid") != 0)
			continue;
		full_path(u, u->m.v[i].path, path, sizeof(path));
		pid = user_of(path);
		if (!pid)
			continue;
		base_fail(err, -EBUSY, "'%s' is running (process %ld)", path, pid);
		base_hint(err, "'dcpiquit' ends it with everything on disk; a service, 'systemctl "
			       "stop dcpid'");
		return -EBUSY;
	}
	return 0;
}

/* ---- removing -------------------------------------------------------------------------------- */

static bool has_sum(const char *path, const uint8_t sum[32])
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), r = fd;

	if (fd >= 0) {
		r = base_sha256_is(fd, sum);
		close(fd);
	}
	return r > 0;
}

static bool has_target(const char *path, const char *target)
{
	char now[PATH_MAX];
	ssize_t n = readlink(path, now, sizeof(now) - 1);

	return n >= 0 && (size_t)n == strlen(target) && !memcmp(now, target, (size_t)n);
}

static enum fate judge(const struct manifest_entry *e, const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR ? GONE : FAILED;
	switch (e->kind) {
	case MANIFEST_FILE:
		if (!S_ISREG(st.st_mode))
			return NOT_OURS;
		return all || has_sum(path, e->sum) ? REMOVED : CHANGED;
	case MANIFEST_LINK:
		return S_ISLNK(st.st_mode) && has_target(path, e->target) ? REMOVED : NOT_OURS;
	default:
		return S_ISDIR(st.st_mode) ? REMOVED : NOT_OURS;
	}
}

static enum fate take_away(const struct manifest_entry *e, const char *path)
{
	int r = e->kind == MANIFEST_DIR ? rmdir(path) : unlink(path);

	if (r == 0)
		return REMOVED;
	return e->kind == MANIFEST_DIR && (errno == ENOTEMPTY || errno == EEXIST) ? NOT_EMPTY
										  : FAILED;
}

static void tell(struct uninstall *u, const char *path, enum fate fate)
{
	u->nr[fate]++;
	if (want_json) {
		struct json_object *o = json_object_new_object();

		json_object_object_add(o, "path", report_json_text(path));
		json_object_object_add(o, "result", json_object_new_string(fates[fate]));
		json_object_array_add(u->rows, o);
	} else if (fate != GONE && (dry_run || fate != REMOVED)) {
		report_print_clean(stdout, path);
		printf(": %s\n", dry_run && fate == REMOVED ? "would be removed" : fates[fate]);
	}
}

static void take_entry(struct uninstall *u, const struct manifest_entry *e)
{
	char path[2 * PATH_MAX];
	enum fate fate;

	full_path(u, e->path, path, sizeof(path));
	fate = judge(e, path);
	if (fate == REMOVED && !dry_run)
		fate = take_away(e, path);
	tell(u, path, fate);
}

/* "dcpid.service" in a folder of wants: what 'systemctl enable' made, where it leads to our unit.
 */
static void take_enablement(struct uninstall *u, const char *unit)
{
	DIR *dir = opendir(ENABLED_PATH);
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		char path[PATH_MAX], to[PATH_MAX];
		ssize_t n;

		if (d->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), ENABLED_PATH "/%s/%s", d->d_name,
			 base_path_name(unit));
		n = readlink(path, to, sizeof(to) - 1);
		to[n > 0 ? n : 0] = '\0';
		if (!strcmp(to, unit))
			tell(u, path, dry_run || unlink(path) == 0 ? REMOVED : FAILED);
	}
	if (dir)
		closedir(dir);
}

static void take_enablements(struct uninstall *u)
{
	char path[2 * PATH_MAX];

	for (size_t i = 0; i < u->m.nr; i++) {
		size_t len = strlen(u->m.v[i].path);

		if (len < 8 || strcmp(u->m.v[i].path + len - 8, ".service") != 0)
			continue;
		full_path(u, u->m.v[i].path, path, sizeof(path));
		take_enablement(u, path);
	}
}

/* Inside of the prefix, the prefix itself, around it or elsewhere. */
static int place(const char *path)
{
	return *path == '/' ? 2 : !strcmp(path, ".");
}

/* Folders last, inner ones first; the list itself before them, if nothing failed. */
static int by_depth(const void *a, const void *b)
{
	const struct manifest_entry *x = a, *y = b;

	if ((x->kind == MANIFEST_DIR) != (y->kind == MANIFEST_DIR))
		return x->kind == MANIFEST_DIR ? 1 : -1;
	if (x->kind == MANIFEST_DIR && place(x->path) != place(y->path))
		return place(x->path) - place(y->path);
	return x->kind == MANIFEST_DIR ? strcmp(y->path, x->path) : strcmp(x->path, y->path);
}

static void take_all(struct uninstall *u)
{
	struct manifest_entry list = { .kind = MANIFEST_FILE };
	size_t i = 0;

	if (u->m.nr)
		qsort(u->m.v, u->m.nr, sizeof(*u->m.v), by_depth);
	take_enablements(u);
	for (; i < u->m.nr && u->m.v[i].kind != MANIFEST_DIR; i++)
		take_entry(u, &u->m.v[i]);
	/*
	 * Entries that could not be removed, now or for want of rights, stay known to the next run.
	 */
	if (!u->nr[FAILED] && !u->nr[CHANGED])
		tell(u, u->list, dry_run ? REMOVED : take_away(&list, u->list));
	for (; i < u->m.nr; i++)
		take_entry(u, &u->m.v[i]);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int print(struct uninstall *u)
{
	struct json_object *root;

	if (!want_json) {
		printf("%s %llu files and folders of '", dry_run ? "would remove" : "removed",
		       (unsigned long long)u->nr[REMOVED]);
		report_print_clean(stdout, u->prefix);
		puts("'; databases, and the user and group dcpi, stay");
		return 0;
	}
	root = json_object_new_object();
	json_object_object_add(root, "schema", json_object_new_string("dcpiuninstall/1"));
	json_object_object_add(root, "prefix", report_json_text(u->prefix));
	json_object_object_add(root, "dry_run", json_object_new_boolean(dry_run));
	json_object_object_add(root, "removed", json_object_new_uint64(u->nr[REMOVED]));
	json_object_object_add(root, "rows", u->rows);
	u->rows = NULL;
	return report_json_put(root, stdout);
}

static int run(struct base_err *err)
{
	struct uninstall *u = calloc(1, sizeof(*u));
	int r = u ? find_self(u, err) : base_fail_errno(err, -ENOMEM, "cannot uninstall");

	if (r >= 0)
		r = read_list(u, err);
	if (r >= 0 && !dry_run)
		r = refuse_running(u, err);
	if (r >= 0) {
		u->rows = json_object_new_array();
		take_all(u);
		r = print(u);
	}
	if (r >= 0 && u->nr[FAILED])
		r = BASE_EXIT_FAILED;
	if (u) {
		json_object_put(u->rows);
		manifest_release(&u->m);
	}
	free(u);
	return r;
}

static int dcpiuninstall_main(int argc, char **argv)
{
	struct base_err err = { 0 };
	int r = base_opt_parse(&cmd, &argc, &argv, &err);

	if (r == BASE_OPT_DONE)
		return BASE_EXIT_OK;
	if (r >= 0)
		r = run(&err);
	return report_end(&cmd, r, &err);
}

const struct tool dcpiuninstall_tool = { .cmd = &cmd, .main = dcpiuninstall_main };
