/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The quota of <db>/dyn. Over it, a child without rights removes what no epoch refers to; where
 * that does not suffice, dynamic code that is not on disk yet is refused, until there is room
 * again: that of users who have more than their share, and of all users where it is far over.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "gc_child.h"
#include "retain.h"

/* After a run that found nothing to remove, which reads the whole database; each time twice as
 * long. */
#define FIRST_WAIT_NS (300 * 1000000000ull)
#define LAST_WAIT_NS  (3600 * 1000000000ull)
/* Looking at the files takes a fiftieth of the time at most. */
#define MEASURE_NS 1000000000ull
enum { MEASURE_PART = 50 };

/* When an epoch last came or went. */
static uint64_t epochs_time(const struct quota *q)
{
	struct stat st;

	if (fstat(profdb_dir_fd(q->db), &st) < 0)
		return 0;
	return (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
}

static bool is_worth_it(const struct quota *q)
{
	return base_now_ns() >= q->next_ns || epochs_time(q) != q->epochs_ns;
}

static void put_off(struct quota *q)
{
	if (!q->over || q->len < q->tried_len)
		q->wait_ns = 0;
	else if (!q->wait_ns)
		q->wait_ns = FIRST_WAIT_NS;
	else if (q->wait_ns < LAST_WAIT_NS)
		q->wait_ns = 2 * q->wait_ns < LAST_WAIT_NS ? 2 * q->wait_ns : LAST_WAIT_NS;
	q->next_ns = base_now_ns() + q->wait_ns;
}

/* ---- the quota ------------------------------------------------------------------------------- */

static void measure(struct quota *q)
{
	uint64_t since_ns = base_now_ns();
	size_t nr;

	if (gc_measure(q->db, &q->len, &nr) >= 0)
		q->over = q->len > q->max;
	free(q->users);
	q->users = NULL;
	q->nr_users = 0;
	if (q->over && gc_measure_users(q->db, &q->users, &q->nr_users) < 0)
		base_log(BASE_LOG_WARN, "what each user's pseudo-images take is not known");
	q->measured_ns = base_now_ns();
	q->took_ns = q->measured_ns - since_ns;
}

uint64_t quota_share(const struct quota *q)
{
	return q->len > q->max + q->max / 4 ? 0 : q->max / (q->nr_users + 1);
}

/* The child has done what it could. */
static void tell(struct quota *q, bool failed)
{
	if (q->over && !q->announced)
		base_log(BASE_LOG_WARN,
			 "pseudo-images take %llu bytes, more than -quota allows, and %s: new "
			 "dynamic code is refused to users who have %llu bytes or more; remove old "
			 "epochs",
			 (unsigned long long)q->len,
			 failed ? "none could be removed ('dcpid -gc' says why)"
				: "epochs refer to them",
			 (unsigned long long)quota_share(q));
	else if (!q->over && q->announced)
		base_log(BASE_LOG_INFO, "there is room for pseudo-images again");
	q->announced = q->over;
}

static void take_child(struct quota *q, int flags)
{
	int status = 0;

	if (q->child <= 0 || waitpid(q->child, &status, flags) != q->child)
		return;
	q->child = 0;
	measure(q);
	put_off(q);
	tell(q, status != 0);
}

void quota_turn(struct quota *q)
{
	take_child(q, WNOHANG);
}

void quota_start(struct quota *q, bool wait)
{
	const struct gc_config config = { .quota = q->max };

	q->tried_len = q->len;
	q->epochs_ns = epochs_time(q);
	q->child = gc_child_start(q->path, &config, NULL);
	if (q->child < 0)
		base_log(BASE_LOG_WARN, "cannot remove pseudo-images: %s", base_strerror(q->child));
	if (wait)
		take_child(q, 0);
}

bool quota_is_due(const struct quota *q, uint64_t images_written)
{
	return q->max && q->checked && images_written != q->images_written &&
	       base_now_ns() - q->measured_ns > MEASURE_NS + MEASURE_PART * q->took_ns;
}

bool quota_check(struct quota *q, uint64_t images_written)
{
	if (!q->max)
		return false;
	take_child(q, WNOHANG);
	if (q->checked && !q->over && images_written == q->images_written)
		return false;
	q->checked = true;
	q->images_written = images_written;
	measure(q);
	if (!q->over)
		tell(q, false);
	return q->over && q->child <= 0 && is_worth_it(q);
}

void quota_close(struct quota *q)
{
	free(q->users);
	q->users = NULL;
	q->nr_users = 0;
	if (q->child <= 0)
		return;
	kill(q->child, SIGKILL);
	waitpid(q->child, NULL, 0);
	q->child = 0;
}
