/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The source "inprocess": rings are found, read, taken apart, put in order of time and handed on;
 * /proc tells which of their processes live.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "inprocess_source.h"

/* ---- processes ------------------------------------------------------------------------------- */

#define SECOND_NS 1000000000ull

enum { STAT_STATE = 3, STAT_THREADS = 20, STAT_START = 22 }; /* fields of proc_pid_stat(5) */

struct stat_words {
	char state;
	uint64_t nr_threads, start_ticks;
};

uint64_t inprocess_own_space(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) < 0 ? 0 : (uint64_t)st.st_ino;
}

/* The name stands in parentheses and may hold any byte. */
static bool stat_parse(char *text, struct stat_words *out)
{
	char *p = strrchr(text, ')');

	for (int i = STAT_STATE; p && i <= STAT_START; i++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
		if (p && i == STAT_STATE)
			out->state = *p;
		else if (p && i == STAT_THREADS)
			out->nr_threads = strtoull(p, NULL, 10);
		else if (p && i == STAT_START)
			out->start_ticks = strtoull(p, NULL, 10);
	}
	return p != NULL;
}

static int stat_read(int32_t pid, struct stat_words *out)
{
	char path[64], text[1024];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		n = -errno;
	close(fd);
	if (n < 0)
		return (int)n;
	text[n] = '\0';
	return stat_parse(text, out) ? 0 : -DCPI_EFORMAT;
}

bool inprocess_alive(int32_t pid, uint64_t at_ns)
{
	struct stat_words w = { 0 };
	long hz = sysconf(_SC_CLK_TCK);
	int r = stat_read(pid, &w);

	if (r == -ENOENT || r == -ESRCH)
		return false;
	/* A process that cannot be checked (no descriptors left) may be alive. */
	if (hz <= 0 || r < 0)
		return true;
	/* A main thread that ended before the others is a zombie too. */
	if (w.state == 'X' || (w.state == 'Z' && w.nr_threads <= 1))
		return false;
	/* Start times are rounded down: a later process can at worst seem to be the same. */
	return w.start_ticks * (SECOND_NS / (uint64_t)hz) <= at_ns + base_boot_ahead_ns();
}

static uint64_t tick_ns(void)
{
	struct timespec res;

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &res) < 0 || res.tv_sec || res.tv_nsec <= 0)
		return SECOND_NS / 250;
	return (uint64_t)res.tv_nsec;
}

uint64_t inprocess_period_ns(uint64_t frequency)
{
	uint64_t tick = tick_ns(), period = frequency ? SECOND_NS / frequency : 0;

	return period > tick ? (period + tick / 2) / tick * tick : tick;
}

/* ---- the agent's records: every word of them may be wrong ------------------------------------ */

enum { UNIT = sizeof(struct inprocess_unit) };

int inprocess_head_parse(const void *bytes, size_t len, uint64_t file_len,
			 struct inprocess_head *out)
{
	if (len < sizeof(*out))
		return -EAGAIN;
	memmove(out, bytes, sizeof(*out));
	if (!out->magic)
		return -EAGAIN;
	if (out->magic != INPROCESS_MAGIC || out->version != INPROCESS_VERSION)
		return -DCPI_EFORMAT;
	if (out->nr_units < INPROCESS_UNITS_MIN || out->nr_units > INPROCESS_UNITS_MAX ||
	    out->nr_units & (out->nr_units - 1) ||
	    file_len != INPROCESS_HEAD_LEN + (uint64_t)out->nr_units * UNIT)
		return -DCPI_EFORMAT;
	if (out->pid <= 0 || (out->born != INPROCESS_EXEC && out->born != INPROCESS_FORK))
		return -DCPI_EFORMAT;
	out->comm[sizeof(out->comm) - 1] = '\0';
	return 0;
}

static const uint8_t *unit_at(const struct inprocess_span *span, uint64_t pos)
{
	return span->bytes + (pos - span->from) * UNIT;
}

static bool is_written(const struct inprocess_span *span, uint64_t pos)
{
	uint64_t seq;

	memcpy(&seq, unit_at(span, pos), sizeof(seq));
	return seq == pos + 1;
}

static int parse_sample(const struct inprocess_unit *u, struct inprocess_record *out)
{
	if (u->nr != 1)
		return -DCPI_EFORMAT;
	out->count = (struct driver_count){
		.first_ns = u->time_ns,
		.time_ns = u->time_ns,
		.tid = (int32_t)u->tid,
		.mode = DRIVER_USER,
		.addr = u->addr,
		.count = 1,
	};
	return 1;
}

static int parse_map(const struct inprocess_unit *u, const uint8_t *rest, size_t len,
		     struct inprocess_record *out)
{
	struct inprocess_map m;
	uint64_t end;

	if (len < sizeof(m))
		return -DCPI_EFORMAT;
	memcpy(&m, rest, sizeof(m));
	if (m.path_len > INPROCESS_PATH_MAX || m.path_len > len - sizeof(m) || !m.len ||
	    base_add_overflow(u->addr, m.len, &end) || m.id_len > sizeof(out->load.id.bytes))
		return -DCPI_EFORMAT;
	memcpy(out->path, rest + sizeof(m), m.path_len);
	out->path[m.path_len] = '\0';
	if (!m.path_len || strlen(out->path) != m.path_len)
		return -DCPI_EFORMAT;
	out->load = (struct driver_load){
		.kind = DRIVER_LOAD_MMAP,
		.time_ns = u->time_ns,
		.tid = (int32_t)u->tid,
		.addr = u->addr,
		.len = m.len,
		.file_off = m.file_off,
		.prot = m.prot,
		.dev_major = m.dev_major,
		.dev_minor = m.dev_minor,
		.inode = m.inode,
		.id.len = m.id_len,
		.path = out->path,
	};
	memcpy(out->load.id.bytes, m.id, m.id_len);
	return 1;
}

int inprocess_record_next(const struct inprocess_span *span, uint64_t *pos,
			  struct inprocess_record *out)
{
	struct inprocess_unit u;
	const uint8_t *at;

	if (*pos >= span->to)
		return 0;
	if (!is_written(span, *pos))
		return -EAGAIN;
	at = unit_at(span, *pos);
	memcpy(&u, at, sizeof(u));
	out->type = (enum inprocess_type)u.type;
	if (!u.nr || u.nr > span->to - *pos) {
		++*pos;
		return -DCPI_EFORMAT;
	}
	*pos += u.nr;
	out->time_ns = u.time_ns;
	if (u.type == INPROCESS_SAMPLE)
		return parse_sample(&u, out);
	if (u.type == INPROCESS_MAP)
		return parse_map(&u, at + UNIT, (size_t)(u.nr - 1) * UNIT, out);
	return -DCPI_EFORMAT;
}

/* The next position from *@pos on at which a record is written, or the end of the span. */
static void record_skip(const struct inprocess_span *span, uint64_t *pos)
{
	while (*pos < span->to && !is_written(span, *pos))
		++*pos;
}

/* ---- rings ----------------------------------------------------------------------------------- */

/* A record gets its time before it is written, by a thread that may just then lose its CPU. */
#define SLACK_NS 10000000u
/* A record begun and not completed for so long never will be (its thread was killed in it). */
#define TORN_NS 1000000000u
/* A process that announced its end, and wrote nothing for so long since, has ended. */
#define QUIET_NS 1000000000u
/* Units of a ring: a second of 16 busy threads; it is read ten times as often. */
enum { RING_UNITS = 4096 };
/* Descriptors left to the rest of the program, which must go on reading, and writing profiles. */
enum { SPARE_FDS = 32 };
/* Units of the shortest record of a mapping. */
enum { MAP_UNITS_MIN = 1 + (sizeof(struct inprocess_map) + 1 + 31) / 32 };
/* Processes of other PID namespaces get numbers that no process here can have. */
enum { FOREIGN_PID = 0x40000000 };

static const char event_name[] = "thread-clock";

/* One life of a process. */
struct ring {
	int fd;
	struct inprocess_head head; /* as read last; magic 0: not yet */
	int32_t pid;		    /* as handed on */
	uint64_t tail;
	uint64_t stuck_ns;   /* since when the record at the tail is awaited, or 0 */
	uint64_t stuck_to;   /* the head then: what is behind is younger */
	uint64_t ended_ns;   /* when it was seen to end, or wrote last since; 0: not yet */
	uint64_t nr_samples; /* read */
	bool announced;	     /* its birth was queued */
	bool superseded;     /* its pid has a newer life */
	bool continues;	     /* the newer life has the pid that was handed on */
	bool over;	     /* all is read, nothing more will come */
};

/* A record waiting for its turn. */
struct item {
	uint64_t time_ns, seq; /* seq: order of reading, for equal times */
	struct driver_count count;
	struct driver_load *load; /* with its path behind it, one allocation; NULL: a sample */
};

struct inprocess {
	struct driver base;
	DIR *folder;
	uint64_t space;
	struct ring *rings;
	size_t nr_rings, cap_rings;
	size_t nr_left;	    /* rings that could not be opened when last looked for */
	uint64_t nr_failed; /* processes that could make none */
	struct item *items;
	size_t nr_items, cap_items;
	uint64_t seq, handed_ns;
	int32_t nr_foreign;
	bool running;
	uint8_t *bytes; /* bytes of a span */
	size_t cap_bytes;
	struct inprocess_record record;
	/* sums of rings that ended */
	uint64_t received, lost, torn, missed, lost_maps;
	uint64_t bad_maps;
};

/* ---- items ----------------------------------------------------------------------------------- */

/* Its time is the program's word: never before what was handed on, never in the future. */
static int queue(struct inprocess *s, struct item *item, uint64_t now)
{
	int r = base_grow(&s->items, &s->cap_items, s->nr_items + 1, sizeof(*s->items));

	if (r < 0)
		return r;
	if (item->time_ns < s->handed_ns)
		item->time_ns = s->handed_ns;
	if (item->time_ns > now)
		item->time_ns = now;
	item->seq = s->seq++;
	s->items[s->nr_items++] = *item;
	return 0;
}

static int queue_load(struct inprocess *s, const struct driver_load *load, uint64_t now)
{
	size_t len = load->path ? strlen(load->path) + 1 : 0;
	struct item item = { .time_ns = load->time_ns };
	char *path;
	int r;

	item.load = malloc(sizeof(*item.load) + len);
	if (!item.load)
		return -ENOMEM;
	*item.load = *load;
	path = (char *)(item.load + 1);
	if (len)
		item.load->path = memcpy(path, load->path, len);
	r = queue(s, &item, now);
	if (r < 0)
		free(item.load);
	return r;
}

static int item_order(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static int hand_item(struct item *item, const struct driver_sink *sink)
{
	int r;

	if (!item->load) {
		item->count.first_ns = item->count.time_ns = item->time_ns;
		return sink->count(sink->ctx, &item->count);
	}
	item->load->time_ns = item->time_ns;
	r = sink->load(sink->ctx, item->load);
	free(item->load);
	return r;
}

static int hand_on(struct inprocess *s, uint64_t horizon, const struct driver_sink *sink)
{
	size_t nr = 0;
	int r = 0;

	if (!s->nr_items)
		return 0;
	qsort(s->items, s->nr_items, sizeof(*s->items), item_order);
	while (r >= 0 && nr < s->nr_items && s->items[nr].time_ns <= horizon) {
		s->handed_ns = s->items[nr].time_ns;
		r = hand_item(&s->items[nr++], sink);
	}
	memmove(s->items, s->items + nr, (s->nr_items - nr) * sizeof(*s->items));
	s->nr_items -= nr;
	return r < 0 ? r : 0;
}

/* ---- rings: found ---------------------------------------------------------------------------- */

static bool is_spare(int fd)
{
	struct rlimit limit;
	rlim_t spare;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return false;
	spare = limit.rlim_cur / 4 < SPARE_FDS ? limit.rlim_cur / 4 : SPARE_FDS;
	return (rlim_t)fd >= limit.rlim_cur - spare;
}

/* 1: it is ours now, its name gone. 0: it stays where it is, for another time. */
static int ring_open(struct inprocess *s, const char *name)
{
	int dir = dirfd(s->folder);
	struct ring ring = { 0 };
	int r = base_grow(&s->rings, &s->cap_rings, s->nr_rings + 1, sizeof(*s->rings));

	if (r < 0)
		return r;
	ring.fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	/* With its name it would be found again. */
	if (ring.fd >= 0 && !is_spare(ring.fd) && unlinkat(dir, name, 0) == 0) {
		s->rings[s->nr_rings++] = ring;
		return 1;
	}
	if (ring.fd >= 0)
		close(ring.fd);
	s->nr_left++;
	return 0;
}

/* 1: a ring was opened. */
static int take_name(struct inprocess *s, const char *name)
{
	if (strncmp(name, INPROCESS_FAILED, sizeof(INPROCESS_FAILED) - 1) == 0) {
		s->nr_failed += unlinkat(dirfd(s->folder), name, 0) == 0;
		return 0;
	}
	if (strncmp(name, INPROCESS_PREFIX, sizeof(INPROCESS_PREFIX) - 1) != 0)
		return 0;
	return ring_open(s, name);
}

/* How many were opened. */
static int find_rings(struct inprocess *s)
{
	struct dirent *e;
	int r = 0, nr = 0;

	s->nr_left = 0;
	rewinddir(s->folder);
	while (r >= 0) {
		errno = 0;
		e = readdir(s->folder);
		if (!e)
			break;
		r = take_name(s, e->d_name);
		nr += r > 0;
	}
	if (r >= 0 && errno)
		r = -errno;
	return r < 0 ? r : nr;
}

/* ---- rings: who it is ------------------------------------------------------------------------ */

/* The latest life of a pid that begins before @before_ns, or NULL. */
static struct ring *ring_find(struct inprocess *s, uint64_t space, int32_t pid, uint64_t before_ns)
{
	struct ring *best = NULL;

	for (size_t i = 0; i < s->nr_rings; i++) {
		struct ring *g = &s->rings[i];

		if (g->announced && g->head.pid == pid && g->head.pid_space == space &&
		    g->head.start_ns < before_ns &&
		    (!best || g->head.start_ns > best->head.start_ns))
			best = g;
	}
	return best;
}

static bool is_foreign(const struct inprocess *s, uint64_t space)
{
	return !space || space != s->space;
}

/* Where nothing tells which pid it is here, one that nobody has keeps it apart. */
static int32_t pid_here(struct inprocess *s, const struct ring *g)
{
	const struct ring *old;

	if (!is_foreign(s, g->head.pid_space))
		return g->head.pid;
	old = ring_find(s, g->head.pid_space, g->head.pid, g->head.start_ns);
	if (old && g->head.born == INPROCESS_EXEC)
		return old->pid;
	return FOREIGN_PID + s->nr_foreign++ % FOREIGN_PID;
}

static int announce(struct inprocess *s, struct ring *g, uint64_t now)
{
	struct ring *old = ring_find(s, g->head.pid_space, g->head.pid, g->head.start_ns), *parent;
	struct driver_load l = { .kind = DRIVER_LOAD_EXEC, .time_ns = g->head.start_ns };

	g->pid = pid_here(s, g);
	g->announced = true;
	if (old) {
		old->superseded = true;
		old->continues = old->pid == g->pid;
	}
	l.pid = l.tid = g->pid;
	l.path = g->head.comm;
	if (g->head.born == INPROCESS_EXEC)
		return queue_load(s, &l, now);
	parent = ring_find(s, g->head.parent_space, g->head.parent_pid, g->head.start_ns);
	l.kind = DRIVER_LOAD_FORK;
	l.path = NULL;
	l.ppid = parent ? parent->pid : g->head.parent_pid;
	if (!parent && is_foreign(s, g->head.parent_space))
		l.ppid = g->pid;
	return queue_load(s, &l, now);
}

/* Read the head again. Its constants are believed once. */
static int ring_look(struct ring *g)
{
	struct inprocess_head h;
	struct stat st;
	ssize_t n = pread(g->fd, &h, sizeof(h), 0);
	int r;

	if (n < 0 || fstat(g->fd, &st) < 0)
		return -errno;
	r = inprocess_head_parse(&h, (size_t)n, (uint64_t)st.st_size, &h);
	if (r < 0)
		return r;
	if (!g->head.magic) {
		g->head = h;
		return 0;
	}
	g->head.head = h.head;
	g->head.received = h.received;
	g->head.lost = h.lost;
	g->head.lost_maps = h.lost_maps;
	g->head.missed = h.missed;
	g->head.ended = h.ended;
	return 0;
}

static struct ring *next_new(struct inprocess *s)
{
	struct ring *first = NULL;

	for (size_t i = 0; i < s->nr_rings; i++) {
		struct ring *g = &s->rings[i];

		if (g->head.magic && !g->announced &&
		    (!first || g->head.start_ns < first->head.start_ns))
			first = g;
	}
	return first;
}

/* In the order of their births, so that each meets its parent and the life before it. */
static int announce_all(struct inprocess *s, uint64_t now)
{
	struct ring *g;
	int r = 0;

	for (size_t i = 0; i < s->nr_rings; i++)
		if (!s->rings[i].head.magic && ring_look(&s->rings[i]) == -DCPI_EFORMAT)
			s->rings[i].over = true;
	while (r >= 0 && (g = next_new(s)))
		r = announce(s, g, now);
	return r;
}

/* ---- rings: what is in them ------------------------------------------------------------------ */

static int read_units(struct inprocess *s, const struct ring *g, uint64_t from, uint64_t to)
{
	uint64_t nr_units = g->head.nr_units, unit = sizeof(struct inprocess_unit);
	size_t have = 0;
	int r = base_grow(&s->bytes, &s->cap_bytes, (size_t)((to - from) * unit), 1);

	while (r >= 0 && from < to) {
		uint64_t at = from & (nr_units - 1);
		uint64_t nr = to - from < nr_units - at ? to - from : nr_units - at;
		ssize_t n = pread(g->fd, s->bytes + have, (size_t)(nr * unit),
				  (off_t)(INPROCESS_HEAD_LEN + at * unit));

		if (n != (ssize_t)(nr * unit))
			return n < 0 ? -errno : -DCPI_ETRUNCATED;
		have += (size_t)n;
		from += nr;
	}
	return r;
}

static int take_record(struct inprocess *s, struct ring *g, uint64_t now)
{
	struct inprocess_record *rec = &s->record;
	struct item item = { .time_ns = rec->time_ns };

	if (rec->type == INPROCESS_MAP) {
		rec->load.pid = g->pid;
		return queue_load(s, &rec->load, now);
	}
	rec->count.pid = g->pid;
	item.count = rec->count;
	g->nr_samples++;
	return queue(s, &item, now);
}

/* A record that is begun is waited for, but not for ever; of the dead not at all. */
static bool give_up_waiting(struct ring *g, uint64_t to, bool dead, uint64_t now)
{
	if (!g->stuck_ns) {
		g->stuck_ns = now;
		g->stuck_to = to;
	}
	if (!dead && now - g->stuck_ns < TORN_NS)
		return false;
	if (dead || g->stuck_to > to)
		g->stuck_to = to;
	g->stuck_ns = 0;
	return true;
}

/*
 * Skip records begun that long ago; younger ones get their own time. Samples are counted at the
 * end.
 */
static void skip_torn(struct inprocess *s, struct ring *g, const struct inprocess_span *span)
{
	const struct inprocess_span old = { span->bytes, span->from, g->stuck_to };
	uint64_t before = g->tail;

	record_skip(&old, &g->tail);
	s->bad_maps += g->tail - before >= MAP_UNITS_MIN;
}

static int take_span(struct inprocess *s, struct ring *g, const struct inprocess_span *span,
		     bool dead, uint64_t now)
{
	int r;

	while ((r = inprocess_record_next(span, &g->tail, &s->record)) != 0) {
		if (r == -EAGAIN) {
			if (!give_up_waiting(g, span->to, dead, now))
				return 0;
			skip_torn(s, g, span);
			continue;
		}
		g->stuck_ns = 0;
		if (r == -DCPI_EFORMAT)
			s->bad_maps += s->record.type == INPROCESS_MAP;
		else
			r = take_record(s, g, now);
		if (r == -ENOMEM)
			return r;
	}
	return 0;
}

static void tell_tail(struct ring *g)
{
	ssize_t n = pwrite(g->fd, &g->tail, sizeof(g->tail), offsetof(struct inprocess_head, tail));

	/* The agent then finds its ring full, and counts. */
	(void)n;
}

static int ring_read(struct inprocess *s, struct ring *g, bool dead, uint64_t now)
{
	struct inprocess_span span = { .from = g->tail, .to = g->head.head };
	uint64_t before = g->tail;
	int r;

	if (span.to - span.from > g->head.nr_units) {
		/* A head that lies, or went back: what it leaves out is lost. */
		if (span.to < span.from)
			return 0;
		span.from = g->tail = span.to - g->head.nr_units;
	}
	r = read_units(s, g, span.from, span.to);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	span.bytes = s->bytes;
	r = take_span(s, g, &span, dead, now);
	if (g->tail != before)
		tell_tail(g);
	return r;
}

/* ---- rings: their end ------------------------------------------------------------------------ */

static bool ring_dead(const struct inprocess *s, const struct ring *g, uint64_t now)
{
	if (g->superseded || !s->running)
		return true;
	if (is_foreign(s, g->head.pid_space))
		return g->ended_ns && now - g->ended_ns >= QUIET_NS;
	return !inprocess_alive(g->pid, g->head.start_ns);
}

/* Taken by a handler that did not live to write it down. Bounded: the number is the program's. */
static uint64_t torn(const struct ring *g)
{
	uint64_t had;

	if (base_add_overflow(g->nr_samples, g->head.lost, &had) || g->head.received <= had)
		return 0;
	had = g->head.received - had;
	return had < g->head.nr_units ? had : g->head.nr_units;
}

static uint64_t add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return base_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static int ring_end(struct inprocess *s, struct ring *g, uint64_t now)
{
	const struct driver_load l = {
		.kind = DRIVER_LOAD_EXIT, .time_ns = now, .pid = g->pid, .tid = g->pid
	};
	uint64_t bad = torn(g);

	g->over = true;
	s->received = add(s->received, add(add(g->nr_samples, g->head.lost), bad));
	s->lost = add(s->lost, g->head.lost);
	s->torn = add(s->torn, bad);
	s->missed = add(s->missed, g->head.missed);
	s->lost_maps = add(s->lost_maps, g->head.lost_maps);
	return g->continues ? 0 : queue_load(s, &l, now);
}

static void drop_over(struct inprocess *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->nr_rings; i++) {
		if (s->rings[i].over)
			close(s->rings[i].fd);
		else
			s->rings[kept++] = s->rings[i];
	}
	s->nr_rings = kept;
}

static int read_one(struct inprocess *s, struct ring *g, uint64_t now)
{
	/* Asked before it is read: then what is read of the dead is all. */
	bool dead = ring_dead(s, g, now);
	uint64_t before = g->head.head;
	int r = ring_look(g);

	if (g->head.ended && (!g->ended_ns || g->head.head != before))
		g->ended_ns = now;
	if (r >= 0)
		r = ring_read(s, g, dead, now);
	if (r == -ENOMEM)
		return r;
	return dead ? ring_end(s, g, now) : 0;
}

/* New ones are announced before any is read: what they supersede is then read to its end. */
static int read_found(struct inprocess *s, uint64_t now)
{
	int r = announce_all(s, now);

	for (size_t i = 0; i < s->nr_rings && r != -ENOMEM; i++)
		if (s->rings[i].announced)
			r = read_one(s, &s->rings[i], now);
	drop_over(s);
	return r == -ENOMEM ? r : 0;
}

/*
 * Where descriptors do not suffice, the others wait for the next time; once stopped there is none,
 * and all that were read make room: as many again are looked for as were left at first.
 */
static int read_all(struct inprocess *s, uint64_t now)
{
	int nr = find_rings(s), r = read_found(s, now);
	size_t due = s->running ? 0 : s->nr_left;

	while (r >= 0 && nr >= 0 && due) {
		nr = find_rings(s);
		r = read_found(s, now);
		due = nr > 0 && (size_t)nr < due ? due - (size_t)nr : 0;
	}
	return nr < 0 ? nr : r;
}

/* ---- the source ------------------------------------------------------------------------------ */

static void count_stats(struct inprocess *s)
{
	struct driver_stats *t = &s->base.stats;
	uint64_t received = s->received, lost = s->lost, missed = s->missed, maps = s->lost_maps;

	for (size_t i = 0; i < s->nr_rings; i++) {
		const struct ring *g = &s->rings[i];

		received = add(received, add(g->nr_samples, g->head.lost));
		lost = add(lost, g->head.lost);
		missed = add(missed, g->head.missed);
		maps = add(maps, g->head.lost_maps);
	}
	t->received[0] = received;
	t->lost_ring = lost;
	t->lost_bad = s->torn;
	t->lost_load = add(maps, s->bad_maps);
	t->missed[0] = missed;
	t->nr_unread = s->running ? 0 : s->nr_left + s->nr_failed;
	t->held = 0;
	for (size_t i = 0; i < s->nr_items; i++)
		t->held += !s->items[i].load;
}

static int source_start(struct driver *d, struct base_err *err)
{
	(void)err;
	((struct inprocess *)d)->running = true;
	return 0;
}

static int source_drain(struct driver *d, bool all, const struct driver_sink *sink,
			struct base_err *err)
{
	struct inprocess *s = (struct inprocess *)d;
	uint64_t now = base_now_ns(), horizon = all ? UINT64_MAX : now - SLACK_NS;
	int r = read_all(s, now), handed = hand_on(s, horizon, sink);

	count_stats(s);
	if (handed < 0)
		return handed;
	return r < 0 ? base_fail_errno(err, r, "cannot read the rings") : 0;
}

static int source_poll_fd(const struct driver *d)
{
	(void)d;
	return -1;
}

/*
 * Tell the agents that still run; an agent whose ring was not seen yet gives up when the ring stays
 * full.
 */
static void source_stop(struct driver *d)
{
	static const uint32_t yes = 1;
	struct inprocess *s = (struct inprocess *)d;

	for (size_t i = 0; i < s->nr_rings; i++) {
		const struct ring *g = &s->rings[i];
		ssize_t n = 0;

		if (g->head.magic)
			n = pwrite(g->fd, &yes, sizeof(yes), offsetof(struct inprocess_head, stop));
		(void)n;
	}
	s->running = false;
}

static void source_close(struct driver *d)
{
	struct inprocess *s = (struct inprocess *)d;

	for (size_t i = 0; i < s->nr_rings; i++)
		close(s->rings[i].fd);
	for (size_t i = 0; i < s->nr_items; i++)
		free(s->items[i].load);
	free(s->rings);
	free(s->items);
	free(s->bytes);
	if (s->folder)
		closedir(s->folder);
	free(s->base.agent_env);
	free(s);
}

static const struct driver_ops ops = {
	.start = source_start,
	.drain = source_drain,
	.poll_fd = source_poll_fd,
	.stop = source_stop,
	.close = source_close,
};

static int check_config(const struct driver_config *config, struct base_err *err)
{
	if (!config->run_dir) {
		base_fail(err, -DCPI_EUSAGE, "source 'inprocess' samples a program that it starts");
		base_hint(err, "use 'dcpirun PROGRAM'");
		return -DCPI_EUSAGE;
	}
	for (size_t i = 0; i < config->nr_slots; i++) {
		if (!strcmp(config->slots[i], event_name))
			continue;
		base_fail(err, -DCPI_EUSAGE, "cannot sample '%s' from inside a program",
			  config->slots[i]);
		base_hint(err, "there is only %s, the CPU time of its threads", event_name);
		return -DCPI_EUSAGE;
	}
	return 0;
}

static void describe(struct inprocess *s, uint64_t period)
{
	struct driver_event *e = &s->base.events[0];

	s->base.nr_events = 1;
	snprintf(e->name, sizeof(e->name), "%s", event_name);
	e->period = period;
	e->enabled = 1;
	snprintf(s->base.describe, sizeof(s->base.describe),
		 "inprocess: %s, %llu samples a second of each thread's", event_name,
		 (unsigned long long)(1000000000u / period));
}

int inprocess_open(const struct driver_config *config, struct driver **out, struct base_err *err)
{
	uint64_t period = inprocess_period_ns(config->frequency);
	struct inprocess *s;
	int r = check_config(config, err);

	if (r < 0)
		return r;
	s = calloc(1, sizeof(*s));
	if (!s)
		return base_fail_errno(err, -ENOMEM, "cannot sample");
	s->base.ops = &ops;
	s->folder = opendir(config->run_dir);
	if (!s->folder) {
		r = base_fail_errno(err, -errno, "cannot read '%s'", config->run_dir);
		source_close(&s->base);
		return r;
	}
	if (asprintf(&s->base.agent_env, INPROCESS_ENV "=%llu:%u:%s", (unsigned long long)period,
		     RING_UNITS, config->run_dir) < 0) {
		s->base.agent_env = NULL;
		source_close(&s->base);
		return base_fail_errno(err, -ENOMEM, "cannot sample");
	}
	s->base.utc = -1;
	s->space = inprocess_own_space();
	describe(s, period);
	*out = &s->base;
	return 0;
}
