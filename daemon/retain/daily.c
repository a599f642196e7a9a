/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The day's housekeeping of a daemon: a child does it (gc_child.c); when that was done stands in
 * the database, so that a daemon that is started again neither repeats it nor leaves it out.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gc_child.h"
#include "retain.h"

enum { HOUR = 3600, FIRST_HOUR = 3, JUMP_S = 600, SETTLE_S = 600 };
/* After a failure: somebody else keeps house, or a profile cannot be read. */
#define AGAIN_NS (600 * 1000000000ull)
#define LOOK_NS	 (10 * 1000000000ull)

/* ---- when ------------------------------------------------------------------------------------ */

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

/* ---- what is remembered ---------------------------------------------------------------------- */

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

/* ---- doing it -------------------------------------------------------------------------------- */

/* Its notes, then what it did. */
static void tell(char *text, bool failed)
{
	char *save = NULL, *line = strtok_r(text, "\n", &save);

	while (line && !strncmp(line, GC_CHILD_NOTE, strlen(GC_CHILD_NOTE))) {
		base_log(BASE_LOG_WARN, "housekeeping: %s", line + strlen(GC_CHILD_NOTE));
		line = strtok_r(NULL, "\n", &save);
	}
	base_log(failed ? BASE_LOG_WARN : BASE_LOG_INFO, "housekeeping: %s",
		 line ? line : "it was ended");
}

static void take_child(struct daily *s)
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
	tell(text, status != 0);
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

void daily_start(struct daily *s)
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

bool daily_turn(struct daily *s)
{
	struct timespec boot = { 0 };

	if (!s->wanted)
		return false;
	if (s->child > 0)
		take_child(s);
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

void daily_close(struct daily *s)
{
	if (s->child <= 0)
		return;
	kill(s->child, SIGKILL);
	waitpid(s->child, NULL, 0);
	close(s->report);
	s->child = 0;
}
