/* SPDX-License-Identifier: BSD-2-Clause */
/* A child without rights of its own removes files for the daemon. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launch.h"
#include "retain.h"

/* Behind the standard ones. */
enum { REPORT_FD = 3 };

/* Keep only the right to remove files of another user's database. */
static int drop_rights(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };
	const uint32_t keep = 1u << CAP_DAC_OVERRIDE;

	if (syscall(SYS_capget, &head, data) < 0)
		return -errno;
	data[0].permitted &= keep;
	data[0].effective = data[0].permitted;
	data[0].inheritable = 0;
	data[1] = (struct __user_cap_data_struct){ 0 };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_capset, &head, data) < 0)
		return -errno;
	return 0;
}

static void ignore(void *ctx, const struct gc_file *file)
{
	(void)ctx;
	(void)file;
}

static void ignore_epoch(void *ctx, const char *epoch)
{
	(void)ctx;
	(void)epoch;
}

/* Note a file that cannot be removed, or a wait. */
static void note(void *ctx, const char *text)
{
	(void)ctx;
	dprintf(REPORT_FD, GC_CHILD_NOTE "%s\n", text);
}

static void tell(const struct gc_result *result, int r, const struct base_err *err)
{
	if (r < 0)
		dprintf(REPORT_FD, "nothing more could be removed: %s\n",
			err->text[0] ? err->text : base_strerror(r));
	else
		dprintf(REPORT_FD, "removed %zu epochs, %zu files of %llu bytes\n",
			result->nr_epochs, result->nr_removed,
			(unsigned long long)result->removed_len);
}

/* Give up everything inherited from the daemon: its locks, its rings, its clients' memory. */
static int run(const char *path, const struct gc_config *config, int report)
{
	struct gc_config own = *config;
	struct gc_result result = { 0 };
	struct base_err err = { 0 };
	struct profdb *db = NULL;
	int r = 0, keep = report >= 0 ? REPORT_FD : REPORT_FD - 1;

	own.removed = ignore;
	own.removed_epoch = ignore_epoch;
	if (report >= 0 && dup2(report, REPORT_FD) < 0)
		r = -errno;
	if (syscall(SYS_close_range, keep + 1u, ~0u, 0u) < 0)
		r = -errno;
	if (r == 0)
		r = drop_rights();
	if (r == 0)
		r = profdb_open(path, false, &db, &err);
	if (r == 0 && report >= 0)
		profdb_set_watching(db, note, NULL);
	if (r == 0)
		r = gc_run(db, &own, &result, &err);
	if (report >= 0)
		tell(&result, r, &err);
	profdb_close(db);
	return r < 0 ? BASE_EXIT_FAILED : BASE_EXIT_OK;
}

struct start {
	const char *path;
	const struct gc_config *config;
};

static int start(void *ctx, const int *report)
{
	const struct start *s = ctx;
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(run(s->path, s->config, *report));
	}
	return child < 0 ? -errno : child;
}

int32_t gc_child_start(const char *path, const struct gc_config *config, int *report)
{
	struct start s = { path, config };
	int fds[2] = { -1, -1 };
	pid_t child;

	if (report && pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	child = launch(start, &s, &fds[1], 1);
	if (report) {
		close(fds[1]);
		if (child > 0)
			*report = fds[0];
		else
			close(fds[0]);
	}
	return child;
}
