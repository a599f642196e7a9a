/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A platform has one writer: its lock holds on this machine by flock, and among machines by a
 * heartbeat.
 */
#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "profdb_internal.h"

/*
 * The lock file names its owner. On one machine flock tells whether that one lives; it is the
 * descriptor's, not lost when the process closes another one of the same file. Between machines
 * nothing is needed but that O_EXCL makes a file once: an owner touches its file every few seconds,
 * and whoever finds the file of another machine watches it for longer than that before he takes it.
 * Mode 0600, because whoever can open it could hold the lock.
 */
enum {
	HEARTBEAT_MS = 10000,
	WATCH_MS = 45000, /* an owner may be busy; an attribute may be cached */
	LOOK_MS = 1000,
	SETTLE_MS = 2000, /* for who took it at the same moment to write his name */
};

enum { WHOSE_MAX = 320 };

struct owner {
	char host[256], machine[64], boot[64];
	long pid;
};

/* ---- who ------------------------------------------------------------------------------------- */

static void read_word(const char *path, char *out, size_t size)
{
	struct base_buf buf = { 0 };

	snprintf(out, size, "-");
	if (base_file_read(AT_FDCWD, path, 4096, &buf, NULL) >= 0 &&
	    base_buf_append(&buf, "", 1) >= 0 && buf.data[strcspn((char *)buf.data, "\n")])
		snprintf(out, size, "%.*s", (int)strcspn((char *)buf.data, " \t\n"),
			 (char *)buf.data);
	if (!*out)
		snprintf(out, size, "-");
	base_buf_release(&buf);
}

static void own_text(char text[PROFDB_LOCK_TEXT])
{
	char host[256] = "", machine[64], boot[64];

	if (gethostname(host, sizeof(host) - 1) < 0 || !*host)
		strcpy(host, "unknown");
	read_word("/etc/machine-id", machine, sizeof(machine));
	read_word("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	snprintf(text, PROFDB_LOCK_TEXT, "host %s pid %ld machine %s boot %s\n", host,
		 (long)getpid(), machine, boot);
}

static int read_text(int fd, char text[PROFDB_LOCK_TEXT])
{
	ssize_t n = pread(fd, text, PROFDB_LOCK_TEXT - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return n < 0 ? -errno : 0;
}

static bool parse(const char *text, struct owner *o)
{
	return sscanf(text, "host %255s pid %ld machine %63s boot %63s", o->host, &o->pid,
		      o->machine, o->boot) == 4;
}

static bool same_word(const char *a, const char *b)
{
	return strcmp(a, "-") != 0 && !strcmp(a, b);
}

/* One whose flock we would see: of this kernel, or of this machine before it was started again. */
static bool is_local(const char *text)
{
	char mine[PROFDB_LOCK_TEXT];
	struct owner a, b;

	own_text(mine);
	return parse(text, &a) && parse(mine, &b) &&
	       (same_word(a.boot, b.boot) ||
		(same_word(a.machine, b.machine) && !strcmp(a.host, b.host)));
}

static int in_use(struct profdb *db, int fd, const char *platform, struct base_err *err)
{
	char text[PROFDB_LOCK_TEXT];
	struct owner o;

	read_text(fd, text);
	if (*platform == '.') {
		bool known = parse(text, &o);

		base_fail(err, -DCPI_EBUSY,
			  "somebody removes or joins epochs of database '%s': host '%s', pid %ld",
			  db->path, known ? o.host : "?", known ? o.pid : 0);
		base_hint(err, "wait until that has ended");
		return -DCPI_EBUSY;
	}
	if (parse(text, &o))
		base_fail(err, -DCPI_EBUSY,
			  "platform '%s' of database '%s' is in use by another daemon: host '%s', "
			  "pid %ld",
			  platform, db->path, o.host, o.pid);
	else
		base_fail(err, -DCPI_EBUSY,
			  "platform '%s' of database '%s' is in use by another daemon", platform,
			  db->path);
	base_hint(err, "end that daemon (dcpiquit), or give this one another database or platform");
	return -DCPI_EBUSY;
}

static void wait_ms(long ms)
{
	const struct timespec pause = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&pause, NULL);
}

/* ---- the file -------------------------------------------------------------------------------- */

static void lock_name(const char *platform, char name[PROFDB_PLATFORM_MAX + 8])
{
	snprintf(name, PROFDB_PLATFORM_MAX + 8, ".lock-%s", platform);
}

/* A process that tests the lock (profdb_lock_held) holds it for the time of the test. */
static int try_lock(int fd)
{
	for (int i = 0; i < 5; i++) {
		int r = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
		if (r != -EWOULDBLOCK)
			return r;
		wait_ms(5);
	}
	return -EBUSY;
}

/* The name still leads to what we opened. */
static bool is_there(struct profdb *db, int fd, const char *name)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && fstatat(db->fd, name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
	       a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

/*
 * Read the file through a new open: a network file system may show an old state to earlier openers.
 * 0 or -errno.
 */
static int look(struct profdb *db, const char *name, char text[PROFDB_LOCK_TEXT],
		struct timespec *touched)
{
	int fd = openat(db->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), r;
	struct stat st;

	if (fd < 0)
		return -errno;
	r = fstat(fd, &st) < 0 ? -errno : read_text(fd, text);
	if (r == 0)
		*touched = st.st_mtim;
	close(fd);
	return r;
}

/* A holder on another machine is alive if it touches its file. */
static bool lives(struct profdb *db, const char *name)
{
	char first[PROFDB_LOCK_TEXT], text[PROFDB_LOCK_TEXT];
	struct timespec begin, now;

	if (look(db, name, first, &begin) < 0)
		return true;
	for (int ms = 0; ms < WATCH_MS; ms += LOOK_MS) {
		wait_ms(LOOK_MS);
		if (look(db, name, text, &now) < 0 || strcmp(first, text) != 0 ||
		    begin.tv_sec != now.tv_sec || begin.tv_nsec != now.tv_nsec)
			return true;
	}
	return false;
}

void profdb_set_watching(struct profdb *db, profdb_watching_fn *watching, void *ctx)
{
	db->lock.watching = watching;
	db->lock.watching_ctx = ctx;
}

/* Say that we are waiting; a silent wait of this length looks like a hang. */
static void tell_watching(const struct profdb *db, const char *name, const char *text)
{
	char whose[WHOSE_MAX] = "nobody", said[PATH_MAX + WHOSE_MAX];
	struct owner o;

	if (!db->lock.watching)
		return;
	if (parse(text, &o))
		snprintf(whose, sizeof(whose), "host '%s', pid %ld", o.host, o.pid);
	snprintf(said, sizeof(said),
		 "'%s/%s' was not given back, and names %s: watching it for up to %d s, as another "
		 "machine may hold it",
		 db->path, name, whose, (WATCH_MS + SETTLE_MS) / 1000);
	db->lock.watching(db->lock.watching_ctx, said);
}

static int sign(struct profdb *db, int fd)
{
	char padded[PROFDB_LOCK_TEXT];

	own_text(db->lock.text);
	/* One write, as long as any other: no other machine sees half of it. */
	memset(padded, '\n', sizeof(padded));
	memcpy(padded, db->lock.text, strlen(db->lock.text));
	if (pwrite(fd, padded, sizeof(padded), 0) != (ssize_t)sizeof(padded) || fsync(fd) < 0)
		return -errno;
	return 0;
}

/* 1, 0, or -errno: that cannot be told. */
static int is_ours(struct profdb *db, const char *name)
{
	char text[PROFDB_LOCK_TEXT];
	struct timespec touched;
	int r = look(db, name, text, &touched);

	if (r < 0)
		return r == -ENOENT || r == -ELOOP ? 0 : r;
	return !strncmp(text, db->lock.text, strlen(db->lock.text));
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* 1: made by us, 0: it was there. */
static int open_lock(struct profdb *db, const char *name, int *fd)
{
	const int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	struct stat st;

	*fd = openat(db->fd, name, flags | O_CREAT | O_EXCL, 0600);
	if (*fd < 0 && errno != EEXIST)
		return -errno;
	if (*fd >= 0) {
		profdb_give(db->fd, *fd);
		return 1;
	}
	*fd = openat(db->fd, name, flags);
	if (*fd < 0)
		return errno == ENOENT ? -EAGAIN : -errno;
	return fstat(*fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
}

/* Its owner died, or is of another machine and may live. -EAGAIN: that gave it back meanwhile. */
static int take_over(struct profdb *db, int fd, const char *name)
{
	char text[PROFDB_LOCK_TEXT];
	int r;

	read_text(fd, text);
	if (is_local(text))
		return sign(db, fd);
	tell_watching(db, name, text);
	if (lives(db, name))
		return faccessat(db->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT
			       ? -EAGAIN
			       : -EBUSY;
	r = sign(db, fd);
	wait_ms(SETTLE_MS);
	return r < 0 ? r : is_ours(db, name) == 1 ? 0 : -EBUSY;
}

/* -EAGAIN: its owner gave it back meanwhile. */
static int try_take(struct profdb *db, const char *name, int *fd)
{
	int made = open_lock(db, name, fd), r = made;

	if (r >= 0)
		r = try_lock(*fd);
	if (r >= 0 && !is_there(db, *fd, name))
		r = -EAGAIN;
	if (r >= 0)
		r = made ? sign(db, *fd) : take_over(db, *fd, name);
	/* An empty lock file would have no known owner. */
	if (r < 0 && made > 0)
		unlinkat(db->fd, name, 0);
	return r;
}

int profdb_lock(struct profdb *db, const char *platform, struct base_err *err)
{
	if (!profdb_platform_name_ok(platform))
		return base_fail(
			err, -EINVAL,
			"'%.80s' is no platform's name: letters, digits, '.', '_', '-', at "
			"most %d",
			platform, PROFDB_PLATFORM_MAX);
	return profdb_lock_name(db, platform, err);
}

int profdb_lock_name(struct profdb *db, const char *platform, struct base_err *err)
{
	char name[PROFDB_PLATFORM_MAX + 8];
	int r, fd = -1;

	if (db->lock.fd >= 0)
		return base_fail(err, -EINVAL, "platform '%s' is locked already", db->platform);
	lock_name(platform, name);
	for (int tries = 0; (r = try_take(db, name, &fd)) == -EAGAIN && tries < 10; tries++) {
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	if (r == -EBUSY)
		r = in_use(db, fd, platform, err);
	else if (r == -EINVAL)
		base_fail(err, r, "cannot lock '%s/%s': not a regular file", db->path, name);
	else if (r < 0)
		base_fail_errno(err, r, "cannot lock '%s/%s'", db->path, name);
	if (r < 0) {
		if (fd >= 0)
			close(fd);
		return r;
	}
	db->lock.fd = fd;
	db->lock.heartbeat_ns = base_now_ns();
	strcpy(db->platform, platform);
	return 0;
}

/* ---- members of a platform ------------------------------------------------------------------- */

/* Machines that sample one platform at the same time. */
enum { MEMBERS_MAX = 999 };

/* False: the name would be too long. */
static bool member_name(const char *platform, int number, char name[PROFDB_PLATFORM_MAX + 1])
{
	int len = snprintf(name, PROFDB_PLATFORM_MAX + 1, number > 1 ? "%s+%d" : "%s", platform,
			   number);

	return len <= PROFDB_PLATFORM_MAX;
}

/* A daemon of this host has it: another one would count the same samples. */
static bool is_own(struct profdb *db, const char *platform)
{
	char name[PROFDB_PLATFORM_MAX + 8], text[PROFDB_LOCK_TEXT], host[256] = "";
	struct timespec touched;
	struct owner o;

	lock_name(platform, name);
	if (gethostname(host, sizeof(host) - 1) < 0 || look(db, name, text, &touched) < 0 ||
	    !parse(text, &o) || strcmp(o.host, host) != 0)
		return false;
	return is_local(text) && profdb_lock_held(db, platform);
}

int profdb_lock_member(struct profdb *db, char platform[PROFDB_PLATFORM_MAX + 1],
		       struct base_err *err)
{
	char name[PROFDB_PLATFORM_MAX + 1];
	struct base_err why = { 0 };
	int r = -DCPI_EBUSY;

	for (int i = 1; i <= MEMBERS_MAX && member_name(platform, i, name); i++)
		if (is_own(db, name))
			return profdb_lock(db, name, err);
	for (int i = 1; i <= MEMBERS_MAX && r == -DCPI_EBUSY; i++) {
		if (!member_name(platform, i, name))
			break;
		why = (struct base_err){ 0 };
		r = profdb_lock(db, name, &why);
	}
	if (r < 0 && err)
		*err = why;
	if (r >= 0)
		strcpy(platform, name);
	return r;
}

void profdb_lock_heartbeat(struct profdb *db)
{
	uint64_t now = base_now_ns();

	if (db->lock.fd < 0 || now - db->lock.heartbeat_ns < HEARTBEAT_MS * UINT64_C(1000000))
		return;
	db->lock.heartbeat_ns = now;
	/* Should it fail, others find the file as it is; what counts is asked before each commit.
	 */
	(void)futimens(db->lock.fd, NULL);
}

int profdb_lock_check(struct profdb *db, struct base_err *err)
{
	char name[PROFDB_PLATFORM_MAX + 8];
	int ours;

	lock_name(db->platform, name);
	ours = is_ours(db, name);
	if (ours == 1)
		return 0;
	if (ours < 0)
		return base_fail_errno(err, ours, "cannot read '%s/%s'", db->path, name);
	if (*db->platform == '.')
		return base_fail(err, -DCPI_EBUSY,
				 "'%s/%s' is not ours any more: it was taken or removed", db->path,
				 name);
	base_fail(err, -DCPI_EBUSY,
		  "platform '%s' of database '%s' is not ours any more: its lock file was taken or "
		  "removed",
		  db->platform, db->path);
	base_hint(err, "end one of the two daemons");
	return -DCPI_EBUSY;
}

void profdb_unlock(struct profdb *db)
{
	char name[PROFDB_PLATFORM_MAX + 8];

	if (db->lock.fd < 0)
		return;
	lock_name(db->platform, name);
	if (is_there(db, db->lock.fd, name) && is_ours(db, name) == 1)
		unlinkat(db->fd, name, 0);
	close(db->lock.fd);
	db->lock.fd = -1;
}

/* ---- who else is there ----------------------------------------------------------------------- */

bool profdb_lock_held(struct profdb *db, const char *platform)
{
	char name[PROFDB_PLATFORM_MAX + 8], text[PROFDB_LOCK_TEXT];
	bool held;
	int fd;

	if (!profdb_platform_name_ok(platform))
		return false;
	lock_name(platform, name);
	fd = openat(db->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno != ENOENT;
	read_text(fd, text);
	held = flock(fd, LOCK_SH | LOCK_NB) < 0 || !is_local(text);
	close(fd);
	return held;
}

int profdb_dyn_lock(struct profdb *db, bool exclusive, unsigned int timeout_ms,
		    struct base_err *err)
{
	uint64_t end_ns = base_now_ns() + (uint64_t)timeout_ms * 1000000;
	int r, fd = openat(db->fd, ".lock.dyn",
			   O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	if (fd < 0)
		return base_fail_errno(err, -errno, "cannot lock '%s/dyn'", db->path);
	profdb_give(db->fd, fd);
	while ((r = flock(fd, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB)) < 0 &&
	       errno == EWOULDBLOCK && base_now_ns() < end_ns)
		wait_ms(5);
	if (r == 0)
		return fd;
	r = errno == EWOULDBLOCK ? -DCPI_EBUSY : -errno;
	close(fd);
	if (r != -DCPI_EBUSY)
		return base_fail_errno(err, r, "cannot lock '%s/dyn'", db->path);
	return base_fail(err, r, "'%s/dyn' is in use: %s", db->path,
			 exclusive ? "pseudo-images are being written"
				   : "pseudo-images are being removed");
}
