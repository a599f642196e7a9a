/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Removal while the daemon runs, by children without rights: pseudo-images over the quota, and the
 * day's housekeeping, as the loop and each flush have them done.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "budget.h"
#include "core.h"

/* ---- the quota ------------------------------------------------------------------------------- */

/*
 * Over the quota of <db>/dyn, a child removes what no epoch refers to; where that does not suffice,
 * dynamic code that is not on disk yet is refused, until there is room again: that of users who
 * have more than their share, and of all users where it is far over.
 */

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

/*
 * While it is over: a user whose images take as much or more has no more place, so that one alone
 * cannot fill it for all. 0: no user has, for all take a quarter more than is allowed.
 */
static uint64_t quota_share(const struct quota *q)
{
	return q->len > q->max + q->max / 4 ? 0 : q->max / (q->nr_users + 1);
}

/* The child has done what it could. */
static void quota_tell(struct quota *q, bool failed)
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

static void quota_take_child(struct quota *q, int flags)
{
	int status = 0;

	if (q->child <= 0 || waitpid(q->child, &status, flags) != q->child)
		return;
	q->child = 0;
	measure(q);
	put_off(q);
	quota_tell(q, status != 0);
}

/* See whether the child is done. */
static void quota_turn(struct quota *q)
{
	quota_take_child(q, WNOHANG);
}

/* Begin to remove pseudo-images to which no epoch refers; @wait until that is done. */
static void quota_start(struct quota *q, bool wait)
{
	const struct gc_config config = { .quota = q->max };

	q->tried_len = q->len;
	q->epochs_ns = epochs_time(q);
	q->child = gc_child_start(q->path, &config, NULL);
	if (q->child < 0)
		base_log(BASE_LOG_WARN, "cannot remove pseudo-images: %s", base_strerror(q->child));
	if (wait)
		quota_take_child(q, 0);
}

/* Between flushes: was so much written since, and so long ago, that it is time to measure? */
static bool quota_is_due(const struct quota *q, uint64_t images_written)
{
	return q->max && q->checked && images_written != q->images_written &&
	       base_now_ns() - q->measured_ns > MEASURE_NS + MEASURE_PART * q->took_ns;
}

/* At the start, and after a flush, when so many images have been written in all: measure. True: it
 * is too much, and quota_start is worth it. */
static bool quota_check(struct quota *q, uint64_t images_written)
{
	if (!q->max)
		return false;
	quota_take_child(q, WNOHANG);
	if (q->checked && !q->over && images_written == q->images_written)
		return false;
	q->checked = true;
	q->images_written = images_written;
	measure(q);
	if (!q->over)
		quota_tell(q, false);
	return q->over && q->child <= 0 && is_worth_it(q);
}

static void quota_close(struct quota *q)
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

/* ---- the day: when --------------------------------------------------------------------------- */

/*
 * A child does the day's housekeeping; when that was done stands in the database, so that a daemon
 * that is started again neither repeats it nor leaves it out.
 */

enum { HOUR = 3600, FIRST_HOUR = 3, JUMP_S = 600, SETTLE_S = 600 };
/* After a failure: another program keeps house, or a profile cannot be read. */
#define AGAIN_NS (600 * 1000000000ull)
#define LOOK_NS	 (10 * 1000000000ull)

int64_t daily_slot(int64_t now, uint32_t spread)
{
	time_t from = (time_t)now, slot;
	struct tm tm;

	for (int back = 0; back < 3; back++) {
		if (!localtime_r(&from, &tm))
			return 0;
		tm.tm_mday -= back;
		tm.tm_hour = FIRST_HOUR;
		tm.tm_min = 0;
		tm.tm_sec = (int)spread;
		tm.tm_isdst = -1;
		slot = mktime(&tm);
		if (slot <= (time_t)now)
			return (int64_t)slot;
	}
	return 0;
}

static bool has_jumped(struct daily_clock *s, int64_t now, int64_t boot)
{
	int64_t by = now - boot - s->offset;
	bool jumped = s->looked && (by > JUMP_S || by < -JUMP_S);

	s->offset = now - boot;
	s->looked = true;
	return jumped;
}

bool daily_is_due(struct daily_clock *s, int64_t now, int64_t boot, uint32_t spread)
{
	if (!s->looked)
		s->first = boot;
	if (has_jumped(s, now, boot) || !s->last || s->last > now + HOUR)
		s->last = now;
	return boot - s->first >= SETTLE_S && s->last < daily_slot(now, spread);
}

/* ---- the day: what is remembered ------------------------------------------------------------- */

static void state_name(const struct daily *s, char name[PROFDB_PLATFORM_MAX + 8])
{
	snprintf(name, PROFDB_PLATFORM_MAX + 8, ".gc-%s", s->platform);
}

static void read_state(struct daily *s)
{
	char name[PROFDB_PLATFORM_MAX + 8];
	struct base_buf buf = { 0 };

	state_name(s, name);
	if (base_file_read(profdb_dir_fd(s->db), name, 64, &buf, NULL) >= 0 &&
	    base_buf_append(&buf, "", 1) >= 0 &&
	    sscanf((char *)buf.data, "%18" SCNd64, &s->when.last) != 1)
		s->when.last = 0;
	base_buf_release(&buf);
	s->stored = s->when.last;
}

/* Where it cannot be kept the next daemon begins to count anew. */
static void write_state(struct daily *s)
{
	char name[PROFDB_PLATFORM_MAX + 8], text[32];
	struct base_err err = { 0 };

	if (s->stored == s->when.last)
		return;
	s->stored = s->when.last;
	state_name(s, name);
	snprintf(text, sizeof(text), "%" PRId64 "\n", s->when.last);
	if (base_file_write(profdb_dir_fd(s->db), name, 0644, text, strlen(text), &err) < 0)
		base_log(BASE_LOG_WARN, "%s", err.text);
}

/* ---- the day: doing it ----------------------------------------------------------------------- */

/* Its notes, then what it did. */
static void daily_tell(char *text, bool failed)
{
	char *save = NULL, *line = strtok_r(text, "\n", &save);

	while (line && !strncmp(line, GC_CHILD_NOTE, strlen(GC_CHILD_NOTE))) {
		base_log(BASE_LOG_WARN, "housekeeping: %s", line + strlen(GC_CHILD_NOTE));
		line = strtok_r(NULL, "\n", &save);
	}
	base_log(failed ? BASE_LOG_WARN : BASE_LOG_INFO, "housekeeping: %s",
		 line ? line : "it was ended");
}

static void daily_take_child(struct daily *s)
{
	char text[6000];
	int status = 0;
	ssize_t n;

	if (waitpid(s->child, &status, WNOHANG) != s->child)
		return;
	s->child = 0;
	n = read(s->report, text, sizeof(text) - 1);
	close(s->report);
	text[n > 0 ? n : 0] = '\0';
	daily_tell(text, status != 0);
	if (status) {
		s->next_ns = base_now_ns() + AGAIN_NS;
		return;
	}
	s->when.last = s->started;
	write_state(s);
}

static uint32_t spread_of(const struct daily *s)
{
	return (uint32_t)(base_crc32c(0, s->platform, strlen(s->platform)) % (2 * HOUR));
}

static void daily_start(struct daily *s)
{
	const struct gc_config config = { .old = true,
					  .now = (int64_t)time(NULL),
					  .size = s->size };
	s->started = config.now;
	s->child = gc_child_start(s->path, &config, &s->report);
	if (s->child < 0) {
		base_log(BASE_LOG_WARN, "cannot remove old epochs: %s", base_strerror(s->child));
		s->child = 0;
		s->next_ns = base_now_ns() + AGAIN_NS;
	}
}

/* See whether the child is done. True: the maintenance is due, and daily_start begins it. */
static bool daily_turn(struct daily *s)
{
	struct timespec boot = { 0 };

	if (!s->wanted)
		return false;
	if (s->child > 0)
		daily_take_child(s);
	if (s->child > 0 || base_now_ns() < s->next_ns)
		return false;
	s->next_ns = base_now_ns() + LOOK_NS;
	if (!s->when.looked)
		read_state(s);
	clock_gettime(CLOCK_BOOTTIME, &boot);
	if (daily_is_due(&s->when, (int64_t)time(NULL), (int64_t)boot.tv_sec, spread_of(s)))
		return true;
	write_state(s);
	return false;
}

static void daily_close(struct daily *s)
{
	if (s->child <= 0)
		return;
	kill(s->child, SIGKILL);
	waitpid(s->child, NULL, 0);
	close(s->report);
	s->child = 0;
}

/* ---- both ------------------------------------------------------------------------------------ */

static uint64_t written(const struct daemon *d)
{
	struct dyn_stats stats = { 0 };

	dyn_stats_get(d->dyn, &stats);
	return stats.images_written + stats.files_kept;
}

static void tell_full(struct daemon *d)
{
	const struct quota *q = &d->quota;

	budget_clear(d->budgets, BUDGET_IMAGES);
	for (size_t i = 0; i < q->nr_users; i++)
		budget_take(d->budgets, q->users[i].uid, BUDGET_IMAGES, q->users[i].len,
			    UINT64_MAX);
	dyn_set_full(d->dyn, q->over, quota_share(q));
}

void daemon_keep_quota(struct daemon *d)
{
	if (quota_check(&d->quota, written(d))) {
		/* Processes that live may get samples yet. */
		dyn_spare_images(d->dyn);
		/* A recorded stream comes at once. */
		quota_start(&d->quota, !d->follow.live);
	}
	tell_full(d);
}

void daemon_maintain(struct daemon *d)
{
	quota_turn(&d->quota);
	tell_full(d);
	/* Users may write much up to the next flush. */
	if (quota_is_due(&d->quota, written(d)))
		daemon_keep_quota(d);
	if (d->gone_ns || !daily_turn(&d->daily))
		return;
	/* Processes that live may get samples yet. */
	dyn_spare_images(d->dyn);
	daily_start(&d->daily);
}

void daemon_maintain_close(struct daemon *d)
{
	quota_close(&d->quota);
	daily_close(&d->daily);
}
