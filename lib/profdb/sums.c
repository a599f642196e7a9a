/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The index of a finished epoch: of each of a platform's profiles the header and the sums, in one
 * file, made of them and worth nothing without them. It is as old as its folder, so that whatever
 * happens there makes it old.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profdb_internal.h"

#define INDEX_NAME ".index"
#define MAGIC	   "DCPIepo\1"

enum {
	HEAD = 16,
	EVENT = PROFDB_EVENT_NAME + 16,
	EVENTS_MAX = 4096,
	FILE_MAX = 1 << 28,
	SETTLE_S = 2,
};

/* ---- making it ------------------------------------------------------------------------------- */

static int put32(struct base_buf *b, uint32_t v)
{
	uint8_t bytes[4];

	profdb_put32(bytes, v);
	return base_buf_append(b, bytes, sizeof(bytes));
}

static int put64(struct base_buf *b, uint64_t v)
{
	uint8_t bytes[8];

	profdb_put64(bytes, v);
	return base_buf_append(b, bytes, sizeof(bytes));
}

/* Its number among the events that were met, each with its period and fraction of the time. */
static int event_number(struct profdb_sums *s, const struct profdb_event *e, uint32_t *nr)
{
	uint8_t text[EVENT] = { 0 };
	size_t known = s->events.len / EVENT;

	memcpy(text, e->name, strlen(e->name));
	profdb_put64(text + PROFDB_EVENT_NAME, e->period);
	profdb_put64(text + PROFDB_EVENT_NAME + 8, profdb_enabled_millionths(e->enabled));
	for (*nr = 0; *nr < known; ++*nr)
		if (!memcmp(s->events.data + *nr * EVENT, text, EVENT))
			return 0;
	return known == EVENTS_MAX ? -DCPI_ELIMIT : base_buf_append(&s->events, text, EVENT);
}

/* All of the header that does not change from epoch to epoch: equal ones are equal bytes. */
static int print_header(struct profdb_profile *p, struct base_buf *out)
{
	size_t nr_events = p->nr_events;
	int r = profdb_profile_set_word(p, "epoch", NULL);

	p->nr_events = 0;
	if (r >= 0)
		r = profdb_header_print(p, PROFDB_FORMAT_1, 0, out, NULL);
	p->nr_events = nr_events;
	return r;
}

int profdb_sums_add(struct profdb_sums *s, struct profdb_profile *p)
{
	struct base_buf header = { 0 };
	int r = print_header(p, &header);

	if (r >= 0)
		r = put32(&s->entries, (uint32_t)header.len);
	if (r >= 0)
		r = put32(&s->entries, (uint32_t)p->nr_events);
	for (size_t i = 0; r >= 0 && i < p->nr_events; i++) {
		uint32_t nr;

		r = event_number(s, &p->events[i], &nr);
		if (r >= 0)
			r = put64(&s->entries, nr);
		if (r >= 0)
			r = put64(&s->entries, p->events[i].sum);
	}
	if (r >= 0)
		r = base_buf_append(&s->entries, header.data, header.len);
	base_buf_release(&header);
	s->nr += r >= 0;
	return r < 0 ? r : 0;
}

static int format(const struct profdb_sums *s, struct base_buf *out)
{
	int r = base_buf_append(out, MAGIC, 8);

	if (r >= 0)
		r = put32(out, (uint32_t)(s->events.len / EVENT));
	if (r >= 0)
		r = put32(out, s->nr);
	if (r >= 0 && s->events.len)
		r = base_buf_append(out, s->events.data, s->events.len);
	if (r >= 0 && s->entries.len)
		r = base_buf_append(out, s->entries.data, s->entries.len);
	return r < 0 ? r : put32(out, base_crc32c(0, out->data, out->len));
}

/* ---- reading it ------------------------------------------------------------------------------ */

struct reader {
	const uint8_t *data;
	size_t len, pos; /* without the sum at the end */
	uint32_t nr_events, nr;
};

static int take_head(struct reader *in)
{
	if (in->len < HEAD + 4 || memcmp(in->data, MAGIC, 8))
		return -DCPI_EVERSION;
	in->len -= 4;
	if (base_crc32c(0, in->data, in->len) != profdb_get32(in->data + in->len))
		return -DCPI_ECHECKSUM;
	in->nr_events = profdb_get32(in->data + 8);
	in->nr = profdb_get32(in->data + 12);
	if (in->nr_events > EVENTS_MAX || in->len - HEAD < (size_t)in->nr_events * EVENT)
		return -DCPI_EFORMAT;
	in->pos = HEAD + (size_t)in->nr_events * EVENT;
	return 0;
}

static int take_event(const struct reader *in, uint64_t nr, uint64_t sum, struct profdb_event *e)
{
	const uint8_t *at;
	uint64_t millionths;

	if (nr >= in->nr_events)
		return -DCPI_EFORMAT;
	at = in->data + HEAD + nr * EVENT;
	if (at[PROFDB_EVENT_NAME - 1])
		return -DCPI_EFORMAT;
	millionths = profdb_get64(at + PROFDB_EVENT_NAME + 8);
	memcpy(e->name, at, PROFDB_EVENT_NAME);
	e->period = profdb_get64(at + PROFDB_EVENT_NAME);
	e->enabled = (double)millionths / 1e6;
	e->sum = sum;
	return profdb_event_name_ok(e->name) && millionths <= 1000000 ? 0 : -DCPI_EFORMAT;
}

static int take_sum(struct reader *in, struct profdb_sum *s)
{
	const uint8_t *at = in->data + in->pos;
	size_t left = in->len - in->pos, header_len, nr;

	if (left < 8)
		return -DCPI_EFORMAT;
	header_len = profdb_get32(at);
	nr = profdb_get32(at + 4);
	if (nr > PROFDB_NR_EVENTS || left - 8 < nr * 16 || left - 8 - nr * 16 < header_len)
		return -DCPI_EFORMAT;
	s->nr_events = nr;
	for (size_t i = 0; i < nr; i++) {
		int r = take_event(in, profdb_get64(at + 8 + i * 16),
				   profdb_get64(at + 16 + i * 16), &s->events[i]);

		if (r < 0)
			return r;
	}
	s->header = at + 8 + nr * 16;
	s->header_len = header_len;
	in->pos += 8 + nr * 16 + header_len;
	return 0;
}

/* All of it, before anybody is told of a part. */
static int check(const void *data, size_t len, struct reader *out)
{
	struct reader in = { .data = data, .len = len };
	struct profdb_sum s;
	int r = take_head(&in);

	*out = in;
	for (uint32_t i = 0; r >= 0 && i < in.nr; i++)
		r = take_sum(&in, &s);
	return r < 0 ? r : in.pos != in.len ? -DCPI_EFORMAT : 0;
}

static int visit(struct reader *in, int (*fn)(void *ctx, const struct profdb_sum *s), void *ctx)
{
	struct profdb_sum s;
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < in->nr; i++) {
		r = take_sum(in, &s);
		if (r >= 0)
			r = fn(ctx, &s);
	}
	return r < 0 ? r : 0;
}

int profdb_sums_parse(const void *data, size_t len,
		      int (*fn)(void *ctx, const struct profdb_sum *s), void *ctx)
{
	struct reader in;
	int r = check(data, len, &in);

	return r < 0 ? r : visit(&in, fn, ctx);
}

int profdb_sum_profile(const struct profdb_sum *s, struct profdb_profile **out)
{
	struct profdb_profile *p = NULL;
	enum profdb_format format;
	size_t binary;
	int r = profdb_header_parse(s->header, s->header_len, &p, &binary, &format, NULL);

	if (r >= 0 && (format != PROFDB_FORMAT_1 || binary != s->header_len))
		r = -DCPI_EFORMAT;
	for (size_t i = 0; r >= 0 && i < s->nr_events; i++)
		r = profdb_profile_add_sum(p, &s->events[i]);
	if (r >= 0) {
		*out = p;
		return 0;
	}
	profdb_profile_free(p);
	return r;
}

/* ---- the file -------------------------------------------------------------------------------- */

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Its bytes, if it is as old as its folder. */
static int read_file(int fd, struct base_buf *buf)
{
	struct stat dir, st;

	if (fstat(fd, &dir) < 0 || fstatat(fd, INDEX_NAME, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || !same_time(&dir.st_mtim, &st.st_mtim))
		return -ENOENT;
	return base_file_read(fd, INDEX_NAME, FILE_MAX, buf, NULL);
}

int profdb_sums_walk(struct profdb *db, const char *epoch, const char *platform,
		     int (*fn)(void *ctx, const struct profdb_sum *s), void *ctx)
{
	int fd = profdb_platform_open(db, epoch, platform), r;
	struct base_buf buf = { 0 };
	struct reader in;

	if (fd < 0)
		return fd;
	r = read_file(fd, &buf);
	if (r >= 0)
		r = check(buf.data, buf.len, &in);
	/* If anything is wrong with the sums, the profiles themselves are read. */
	r = r < 0 ? -ENOENT : visit(&in, fn, ctx);
	base_buf_release(&buf);
	close(fd);
	return r;
}

/* Since @dir's last change enough time has gone by that another one would show, on any file system.
 */
static bool is_settled(int fd, const struct stat *dir)
{
	struct stat st;

	return fstatat(fd, INDEX_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_mtim.tv_sec > dir->st_mtim.tv_sec + SETTLE_S;
}

/* The folder keeps its time, which tells when the epoch was written. */
static int write_file(int fd, const struct stat *dir, const struct base_buf *buf)
{
	const struct timespec times[2] = { dir->st_atim, dir->st_mtim };
	int r = base_file_write(fd, INDEX_NAME, 0644, buf->data, buf->len, NULL);

	if (r >= 0 && !is_settled(fd, dir)) {
		unlinkat(fd, INDEX_NAME, 0);
		r = -EAGAIN;
	}
	if (r >= 0 && utimensat(fd, INDEX_NAME, times, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	return futimens(fd, times) < 0 && r >= 0 ? -errno : r;
}

/* The platform's folder, which may be given an index, and how it is. */
static int open_finished(struct profdb *db, const char *epoch, const char *platform,
			 struct stat *dir)
{
	int fd = profdb_platform_open(db, epoch, platform), r = 0;

	if (fd < 0)
		return fd;
	if (fstat(fd, dir) < 0)
		r = -errno;
	else if (dir->st_uid != geteuid() || profdb_epoch_open(db, epoch, platform))
		r = -EPERM;
	if (r < 0)
		close(fd);
	return r < 0 ? r : fd;
}

int profdb_sums_begin(struct profdb *db, const char *epoch, const char *platform,
		      struct profdb_sums *s)
{
	struct stat dir;
	int fd = open_finished(db, epoch, platform, &dir);

	if (fd < 0)
		return fd;
	s->as_of = dir.st_mtim;
	close(fd);
	return 0;
}

int profdb_sums_write(struct profdb *db, const char *epoch, const char *platform,
		      const struct profdb_sums *s)
{
	struct base_buf buf = { 0 };
	struct stat dir;
	int fd = open_finished(db, epoch, platform, &dir), r;

	if (fd < 0)
		return fd;
	r = same_time(&dir.st_mtim, &s->as_of) ? format(s, &buf) : -EAGAIN;
	if (r >= 0)
		r = write_file(fd, &dir, &buf);
	base_buf_release(&buf);
	close(fd);
	return r < 0 ? r : 0;
}

/* ---- all of it at once ----------------------------------------------------------------------- */

struct making {
	struct profdb_sums sums;
	size_t max;
	bool bad;
};

static int take_profile(void *ctx, const char *file, struct profdb_profile *p)
{
	struct making *m = ctx;
	int r = m->sums.nr < m->max ? profdb_sums_add(&m->sums, p) : -DCPI_ELIMIT;

	(void)file;
	profdb_profile_free(p);
	return r;
}

static void take_bad(void *ctx, const char *file, const struct base_err *err)
{
	struct making *m = ctx;

	(void)file, (void)err;
	m->bad = true;
}

static bool is_made(struct profdb *db, const char *epoch, const char *platform)
{
	int fd = profdb_platform_open(db, epoch, platform);
	struct stat dir, st;
	bool made = fd >= 0 && fstat(fd, &dir) == 0 &&
		    fstatat(fd, INDEX_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    same_time(&dir.st_mtim, &st.st_mtim);

	if (fd >= 0)
		close(fd);
	return made;
}

int profdb_sums_make(struct profdb *db, const char *epoch, const char *platform, size_t max)
{
	struct making m = { .max = max };
	int r;

	if (is_made(db, epoch, platform))
		return 0;
	r = profdb_sums_begin(db, epoch, platform, &m.sums);
	if (r >= 0)
		r = profdb_walk(db, epoch, platform, take_profile, take_bad, &m, NULL);
	if (r >= 0)
		r = m.bad ? -DCPI_EFORMAT : profdb_sums_write(db, epoch, platform, &m.sums);
	profdb_sums_release(&m.sums);
	return r < 0 ? r : 0;
}
