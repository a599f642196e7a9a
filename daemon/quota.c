/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The quota of <db>/dyn. Over it, a child without rights removes what no epoch refers to; where
 * that does not suffice, dynamic code that is not on disk yet is refused, until there is room
 * again.
 */
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon_core.h"
#include "gc.h"

/* ---- the child ------------------------------------------------------------------------------- */

/* Of the rights, that to remove files of another user's database. */
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

/* What it has of the daemon's it gives up: its locks, its rings, its clients' memory. */
static int run_child(const char *path, uint64_t max)
{
	const struct gc_config config = { .quota = max, .removed = ignore };
	struct gc_result result;
	struct base_err err = { 0 };
	struct profdb *db = NULL;
	int r = syscall(SYS_close_range, 3u, ~0u, 0u) < 0 ? -errno : drop_rights();

	if (r == 0)
		r = profdb_open(path, false, &db, NULL);
	if (r == 0)
		r = gc_run(db, &config, &result, &err);
	return r < 0 ? BASE_EXIT_FAILED : BASE_EXIT_OK;
}

static void start(struct daemon *d)
{
	struct quota *q = &d->quota;

	/* What lives may get samples yet. */
	dyn_spare_images(d->dyn);
	q->child = fork();
	if (q->child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(run_child(d->opt.database, q->max));
	}
	if (q->child < 0)
		base_log(BASE_LOG_WARN, "cannot remove pseudo-images: %s", base_strerror(errno));
}

/* ---- the quota ------------------------------------------------------------------------------- */

static void measure(struct daemon *d)
{
	struct quota *q = &d->quota;
	size_t nr;

	if (gc_measure(d->db, &q->len, &nr) < 0)
		return;
	q->over = q->len > q->max;
	dyn_set_full(d->dyn, q->over);
}

/* The child has done what it could. */
static void tell(struct quota *q, bool failed)
{
	if (q->over && !q->told)
		base_log(BASE_LOG_WARN,
			 "pseudo-images take %llu bytes, more than -quota allows, and %s: new "
			 "dynamic code is refused; remove old epochs",
			 (unsigned long long)q->len,
			 failed ? "none could be removed ('dcpid -gc' says why)"
				: "epochs refer to them");
	else if (!q->over && q->told)
		base_log(BASE_LOG_INFO, "there is room for pseudo-images again");
	q->told = q->over;
}

static void take_child(struct daemon *d, int flags)
{
	struct quota *q = &d->quota;
	int status = 0;

	if (q->child <= 0 || waitpid(q->child, &status, flags) != q->child)
		return;
	q->child = 0;
	measure(d);
	tell(q, status != 0);
}

void quota_turn(struct daemon *d)
{
	take_child(d, WNOHANG);
}

void quota_check(struct daemon *d)
{
	struct quota *q = &d->quota;
	struct dyn_stats stats = { 0 };

	if (!q->max)
		return;
	dyn_stats_get(d->dyn, &stats);
	take_child(d, WNOHANG);
	if (q->checked && !q->over && stats.images_written == q->images_written)
		return;
	q->checked = true;
	q->images_written = stats.images_written;
	measure(d);
	if (!q->over)
		tell(q, false);
	else if (q->child <= 0)
		start(d);
	/* Of a recorded stream all comes at once. */
	if (!d->attrib.live)
		take_child(d, 0);
}

void quota_close(struct daemon *d)
{
	if (d->quota.child <= 0)
		return;
	kill(d->quota.child, SIGKILL);
	waitpid(d->quota.child, NULL, 0);
	d->quota.child = 0;
}
