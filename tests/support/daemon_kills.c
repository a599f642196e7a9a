/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon_kills DCPID WORK SEED FROM COUNT: daemons killed by SIGKILL at random moments while
 * samples stream into them, each sample once at an offset of its own, so that the database tells
 * exactly which are there. Half of the kills fall into a flush. After each, and again after all,
 * every profile must be readable, no sample may stand twice, those there must be the first that
 * were sent, and all of them up to one flush interval before the death. The next daemon must name
 * the gap. Prints the line "sums:" for scripts/test.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "profdb.h"

enum {
	NR_IMAGES = 40,
	PER_MS = 20,
	NR_MAX = 1 << 17,   /* samples of one life */
	INTERVAL_MS = 1000, /* dcpid -flush 1 */
	SLACK_MS = 1500,    /* of a busy machine: the drain, the flush itself, being scheduled */
	LONGEST_MS = 2600,  /* of a life: two flushes and a half */
	EARLY_MS = 300,	    /* of a life that may end before its epoch is there */
	START_MS = 60000,   /* until its epoch is there, of the others */
};

static const char *dcpid, *work;
static char db_path[256], log_path[256];
static uint64_t random_state;

static void stop(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

static void stop(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static uint64_t draw(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % below;
}

static uint64_t now_ms(void)
{
	return base_now_ns() / 1000000;
}

/* ---- one life -------------------------------------------------------------------------------- */

struct life {
	int nr;
	char epoch[PROFDB_EPOCH_LEN + 1];
	uint32_t sent_ms[NR_MAX / PER_MS + 1]; /* of each batch, since the start */
	size_t nr_sent, nr_stored;
	uint64_t start_ms, dead_ms;
	uint64_t began_ms; /* when its epoch was seen first, or 0 */
	bool began;	   /* its epoch was there */
	bool torn;	   /* it died within a flush */
};

static pid_t start_daemon(const struct life *l, int *feed)
{
	const char *format = l->nr % 4 == 3 ? "0.07" : "1";
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		stop("pipe: %s", strerror(errno));
	pid = fork();
	if (pid == 0) {
		dup2(fds[0], 0);
		execl(dcpid, "dcpid", "-log", log_path, "-replay", "-", "-platform", "kill",
		      "-flush", "1", "-format", format, db_path, (char *)NULL);
		_exit(127);
	}
	close(fds[0]);
	*feed = fds[1];
	return pid;
}

/* All lives begin in a minute of their own: an epoch each. */
static void feed_head(int feed, const struct life *l)
{
	dprintf(feed, "dcpi-replay 1\nutc %d\nevent cycles 1000\nevent misses 100\n",
		1700000000 + 60 * l->nr);
	for (int i = 0; i < NR_IMAGES; i++)
		dprintf(feed,
			"mmap pid=7 addr=0x%x00000000 len=0x1000000 id=%02x%02x path=/bin/p%d\n",
			i + 1, i + 1, i + 1, i);
}

static void feed_batch(int feed, struct life *l)
{
	char text[PER_MS * 64];
	int len = 0;

	if (l->nr_sent + PER_MS > NR_MAX)
		return;
	l->sent_ms[l->nr_sent / PER_MS] = (uint32_t)(now_ms() - l->start_ms);
	for (int i = 0; i < PER_MS; i++, l->nr_sent++)
		len += snprintf(text + len, sizeof(text) - (size_t)len,
				"count pid=7 event=%zu addr=0x%zx%08zx\n", l->nr_sent % 2,
				l->nr_sent % NR_IMAGES + 1, l->nr_sent);
	if (write(feed, text, (size_t)len) != len)
		stop("the daemon does not read: %s", strerror(errno));
}

static void epoch_of(struct life *l)
{
	time_t t = 1700000000 + 60 * l->nr;
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(l->epoch, sizeof(l->epoch), "%Y%m%d%H%M", &tm);
}

static bool is_flushing(const struct life *l)
{
	char path[512];
	struct dirent *e;
	bool is = false;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%s/kill", db_path, l->epoch);
	dir = opendir(path);
	while (dir && !is && (e = readdir(dir)))
		is = !strncmp(e->d_name, ".new-", 5) || !strncmp(e->d_name, ".tmp-", 5);
	if (dir)
		closedir(dir);
	return is;
}

static void nap_us(uint64_t us)
{
	const struct timespec t = { .tv_sec = (time_t)(us / 1000000),
				    .tv_nsec = (long)(us % 1000000) * 1000 };

	nanosleep(&t, NULL);
}

static bool has_begun(const struct life *l)
{
	struct base_err err = { 0 };
	struct profdb *db = NULL;
	bool open = profdb_open(db_path, false, &db, &err) >= 0 &&
		    profdb_epoch_open(db, l->epoch, "kill");

	profdb_close(db);
	return open;
}

/* The age of its epoch, which a busy machine may let wait; of the shortest lives that of the
 * process. */
static uint64_t age_ms(struct life *l, uint64_t life_ms)
{
	uint64_t age = now_ms() - l->start_ms;

	if (life_ms < EARLY_MS || age > START_MS)
		return age;
	if (!l->began_ms && has_begun(l))
		l->began_ms = age;
	return l->began_ms ? age - l->began_ms : 0;
}

static void live_and_die(struct life *l)
{
	bool in_flush = draw(2);
	uint64_t life_ms = in_flush ? LONGEST_MS : 30 + draw(LONGEST_MS - 30);
	int feed, status;
	pid_t pid;

	l->start_ms = now_ms();
	pid = start_daemon(l, &feed);
	feed_head(feed, l);
	while (age_ms(l, life_ms) < life_ms) {
		/* Half of these in the second flush, which adds to files that are there. */
		if (in_flush && age_ms(l, life_ms) > (l->nr % 2 ? 1500u : 500u) && is_flushing(l))
			break;
		feed_batch(feed, l);
		nap_us(800);
	}
	if (in_flush)
		nap_us(draw(12000));
	kill(pid, SIGKILL);
	l->dead_ms = now_ms() - l->start_ms;
	waitpid(pid, &status, 0);
	close(feed);
	l->torn = is_flushing(l);
	if (!WIFSIGNALED(status))
		stop("a daemon ended by itself: status %d", status);
}

/* ---- what is there --------------------------------------------------------------------------- */

struct look {
	uint8_t *seen;
	size_t nr, doubled, strange;
};

static void look_at(struct look *look, size_t image, size_t event, uint64_t off, uint64_t count)
{
	if (off >= NR_MAX || off % NR_IMAGES != image || off % 2 != event)
		look->strange++;
	else if (count != 1 || look->seen[off])
		look->doubled++;
	else {
		look->seen[off] = 1;
		look->nr++;
	}
}

static int see(void *ctx, const char *file, struct profdb_profile *p)
{
	const char *path = profdb_profile_path(p, 0);
	struct look *look = ctx;

	(void)file;
	for (size_t i = 0; i < profdb_profile_nr_entries(p); i++) {
		const struct profdb_entry *e = profdb_profile_entry(p, i);

		for (size_t j = 0; j < profdb_profile_nr_events(p); j++) {
			bool misses = !strcmp(profdb_profile_event(p, j)->name, "misses");

			if (e->count[j])
				look_at(look,
					path && !strncmp(path, "/bin/p", 6) ? (size_t)atoi(path + 6)
									    : NR_IMAGES,
					misses, e->off, e->count[j]);
		}
	}
	profdb_profile_free(p);
	return 0;
}

static void see_bad(void *ctx, const char *file, const struct base_err *err)
{
	(void)ctx;
	stop("profile '%s' is damaged: %s", file, err->text);
}

/* How many samples of @l are there: the first ones that were sent, each once. */
static size_t stored(const struct life *l, struct base_err *err)
{
	static uint8_t seen[NR_MAX];
	struct look look = { .seen = seen };
	struct profdb *db = NULL;
	int r = profdb_open(db_path, false, &db, err);

	memset(seen, 0, sizeof(seen));
	if (r >= 0)
		r = profdb_walk(db, l->epoch, "kill", see, see_bad, &look, err);
	profdb_close(db);
	if (r == -ENOENT || r == -DCPI_ENOTDB)
		return 0;
	if (r < 0)
		stop("%s", err->text);
	if (look.doubled || look.strange)
		stop("epoch %s: %zu samples stand twice, %zu where none was", l->epoch,
		     look.doubled, look.strange);
	for (size_t i = 0; i < look.nr; i++)
		if (!seen[i])
			stop("epoch %s: sample %lld is missing before others", l->epoch,
			     (long long)i);
	return look.nr;
}

/* Milliseconds before the death from which nothing is there, though the daemon had begun. */
static uint64_t lost_ms(const struct life *l)
{
	uint64_t from = l->sent_ms[l->nr_stored / PER_MS];

	from = from > l->began_ms ? from : l->began_ms;
	return l->nr_stored < l->nr_sent ? l->dead_ms - from : 0;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* One that goes to the end of its stream closes what the others left. */
static void last_life(int nr)
{
	struct life *l = calloc(1, sizeof(*l));
	int feed, status;
	pid_t pid;

	l->nr = nr;
	pid = start_daemon(l, &feed);
	feed_head(feed, l);
	close(feed);
	waitpid(pid, &status, 0);
	if (status)
		stop("the last daemon failed: %d", status);
	free(l);
}

static bool is_named(const char *epoch)
{
	char line[512], want[64];
	FILE *f = fopen(log_path, "r");
	bool named = false;
	long gap;

	snprintf(want, sizeof(want), "epoch %s was left open", epoch);
	while (f && !named && fgets(line, sizeof(line), f)) {
		char *at = strstr(line, want);

		named = at && (at = strstr(at, "gap of ")) && sscanf(at, "gap of %ld s", &gap) == 1;
	}
	if (f)
		fclose(f);
	return named;
}

int main(int argc, char **argv)
{
	size_t total = 0, within = 0, beyond = 0, flushed = 0, begun = 0, torn = 0;
	struct base_err err = { 0 };
	uint64_t longest = 0;
	struct life *lives;
	int from, count;

	if (argc != 6)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	dcpid = argv[1];
	work = argv[2];
	from = atoi(argv[4]);
	count = atoi(argv[5]);
	snprintf(db_path, sizeof(db_path), "%s/db", work);
	snprintf(log_path, sizeof(log_path), "%s/log", work);
	lives = calloc((size_t)count, sizeof(*lives));
	for (int i = 0; i < count; i++) {
		struct life *l = &lives[i];

		l->nr = from + i;
		random_state = 88172645463325252ull + 1000003ull *
							      (strtoull(argv[3], NULL, 10) + 1) *
							      (uint64_t)(l->nr + 1);
		for (int k = 0; k < 20; k++)
			draw(2);
		epoch_of(l);
		live_and_die(l);
		l->began = has_begun(l);
		l->nr_stored = stored(l, &err);
		longest = lost_ms(l) > longest ? lost_ms(l) : longest;
		begun += l->began;
		flushed += l->nr_stored > 0;
		torn += l->torn;
		total += l->nr_stored;
		within += l->nr_sent - l->nr_stored;
		if (l->began && lost_ms(l) > INTERVAL_MS + SLACK_MS)
			beyond += l->nr_sent - l->nr_stored;
	}
	last_life(from + count);
	for (int i = 0; i < count; i++) {
		if (stored(&lives[i], &err) != lives[i].nr_stored)
			stop("epoch %s: not the %zu samples that were there after the kill",
			     lives[i].epoch, lives[i].nr_stored);
		if (lives[i].began && !is_named(lives[i].epoch))
			stop("epoch %s: its gap is not named", lives[i].epoch);
	}
	printf("longest time lost: %llu ms, of a flush interval of %d\n",
	       (unsigned long long)longest, INTERVAL_MS);
	printf("sums: kills %d begun %zu within_a_flush %zu flushed %zu stored %zu in_interval %zu "
	       "twice 0 "
	       "lost %zu\n",
	       count, begun, torn, flushed, total, within, beyond);
	free(lives);
	return beyond != 0;
}
