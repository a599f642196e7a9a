/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting and running threads of the source "bpf": the kernel's sums of them get their paths, which
 * tell what is waited for, and are handed on in order of time; the programs that measure them, and
 * the maps in which the sums grow.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf_maps.h"
#include "bpf_program.h"
#include "bpf_waits.h"
#include "kernel/callpaths.h"

/* ---- kinds of waits -------------------------------------------------------------------------- */

/* The function that switches threads: found beside the others. */
#define KIND_SCHEDULE DRIVER_NR_WAITS

/*
 * Names without what a compiler adds behind a dot. Functions that several kinds go through (as
 * schedule_timeout) tell nothing and are not here.
 */
static const struct {
	const char *name;
	enum driver_wait kind;
} known[] = {
	{ "__schedule", KIND_SCHEDULE },

	{ "asm_exc_page_fault", DRIVER_WAIT_FAULT },
	{ "exc_page_fault", DRIVER_WAIT_FAULT },
	{ "do_user_addr_fault", DRIVER_WAIT_FAULT },
	{ "do_page_fault", DRIVER_WAIT_FAULT },
	{ "do_translation_fault", DRIVER_WAIT_FAULT },
	{ "do_mem_abort", DRIVER_WAIT_FAULT },
	{ "handle_mm_fault", DRIVER_WAIT_FAULT },
	{ "handle_userfault", DRIVER_WAIT_FAULT },
	{ "faultin_page", DRIVER_WAIT_FAULT },

	{ "hrtimer_nanosleep", DRIVER_WAIT_SLEEP },
	{ "do_nanosleep", DRIVER_WAIT_SLEEP },
	{ "common_nsleep", DRIVER_WAIT_SLEEP },
	{ "common_nsleep_timens", DRIVER_WAIT_SLEEP },
	{ "alarmtimer_do_nsleep", DRIVER_WAIT_SLEEP },
	{ "msleep", DRIVER_WAIT_SLEEP },
	{ "msleep_interruptible", DRIVER_WAIT_SLEEP },
	{ "usleep_range_state", DRIVER_WAIT_SLEEP },
	{ "timerfd_read", DRIVER_WAIT_SLEEP },
	{ "timerfd_read_iter", DRIVER_WAIT_SLEEP },

	{ "do_futex", DRIVER_WAIT_LOCK },
	{ "futex_wait", DRIVER_WAIT_LOCK },
	{ "__futex_wait", DRIVER_WAIT_LOCK },
	{ "futex_wait_queue", DRIVER_WAIT_LOCK },
	{ "futex_wait_queue_me", DRIVER_WAIT_LOCK },
	{ "futex_do_wait", DRIVER_WAIT_LOCK },
	{ "futex_wait_multiple", DRIVER_WAIT_LOCK },
	{ "futex_wait_requeue_pi", DRIVER_WAIT_LOCK },
	{ "futex_lock_pi", DRIVER_WAIT_LOCK },
	{ "rt_mutex_slowlock", DRIVER_WAIT_LOCK },
	{ "mutex_lock", DRIVER_WAIT_LOCK },
	{ "__mutex_lock", DRIVER_WAIT_LOCK },
	{ "__mutex_lock_slowpath", DRIVER_WAIT_LOCK },
	{ "__mutex_lock_killable_slowpath", DRIVER_WAIT_LOCK },
	{ "__mutex_lock_interruptible_slowpath", DRIVER_WAIT_LOCK },
	{ "__ww_mutex_lock", DRIVER_WAIT_LOCK },
	{ "rwsem_down_read_slowpath", DRIVER_WAIT_LOCK },
	{ "rwsem_down_write_slowpath", DRIVER_WAIT_LOCK },
	{ "percpu_rwsem_wait", DRIVER_WAIT_LOCK },
	{ "percpu_down_write", DRIVER_WAIT_LOCK },
	{ "__down", DRIVER_WAIT_LOCK },
	{ "__down_common", DRIVER_WAIT_LOCK },
	{ "__down_interruptible", DRIVER_WAIT_LOCK },
	{ "__down_killable", DRIVER_WAIT_LOCK },
	{ "__down_timeout", DRIVER_WAIT_LOCK },
	{ "posix_lock_inode_wait", DRIVER_WAIT_LOCK },
	{ "flock_lock_inode_wait", DRIVER_WAIT_LOCK },
	{ "locks_lock_inode_wait", DRIVER_WAIT_LOCK },
	{ "do_lock_file_wait", DRIVER_WAIT_LOCK },
	{ "fcntl_setlk", DRIVER_WAIT_LOCK },
	{ "do_semtimedop", DRIVER_WAIT_LOCK },
	{ "__do_semtimedop", DRIVER_WAIT_LOCK },

	{ "pipe_read", DRIVER_WAIT_PIPE },
	{ "pipe_write", DRIVER_WAIT_PIPE },
	{ "anon_pipe_read", DRIVER_WAIT_PIPE },
	{ "anon_pipe_write", DRIVER_WAIT_PIPE },
	{ "fifo_pipe_read", DRIVER_WAIT_PIPE },
	{ "fifo_pipe_write", DRIVER_WAIT_PIPE },
	{ "fifo_open", DRIVER_WAIT_PIPE },
	{ "wait_for_partner", DRIVER_WAIT_PIPE },
	{ "pipe_wait_readable", DRIVER_WAIT_PIPE },
	{ "pipe_wait_writable", DRIVER_WAIT_PIPE },
	{ "splice_to_pipe", DRIVER_WAIT_PIPE },
	{ "do_poll", DRIVER_WAIT_PIPE },
	{ "do_sys_poll", DRIVER_WAIT_PIPE },
	{ "do_select", DRIVER_WAIT_PIPE },
	{ "core_sys_select", DRIVER_WAIT_PIPE },
	{ "ep_poll", DRIVER_WAIT_PIPE },
	{ "do_epoll_wait", DRIVER_WAIT_PIPE },
	{ "ep_send_events", DRIVER_WAIT_PIPE },
	{ "eventfd_read", DRIVER_WAIT_PIPE },
	{ "eventfd_write", DRIVER_WAIT_PIPE },
	{ "unix_stream_read_generic", DRIVER_WAIT_PIPE },
	{ "unix_stream_data_wait", DRIVER_WAIT_PIPE },
	{ "unix_wait_for_peer", DRIVER_WAIT_PIPE },
	{ "unix_stream_connect", DRIVER_WAIT_PIPE },
	{ "unix_accept", DRIVER_WAIT_PIPE },
	{ "sock_alloc_send_pskb", DRIVER_WAIT_PIPE },
	{ "sk_wait_data", DRIVER_WAIT_PIPE },
	{ "sk_stream_wait_memory", DRIVER_WAIT_PIPE },
	{ "sk_stream_wait_connect", DRIVER_WAIT_PIPE },
	{ "sk_stream_wait_close", DRIVER_WAIT_PIPE },
	{ "tcp_recvmsg", DRIVER_WAIT_PIPE },
	{ "tcp_recvmsg_locked", DRIVER_WAIT_PIPE },
	{ "tcp_sendmsg_locked", DRIVER_WAIT_PIPE },
	{ "inet_csk_accept", DRIVER_WAIT_PIPE },
	{ "inet_csk_wait_for_connect", DRIVER_WAIT_PIPE },
	{ "__inet_stream_connect", DRIVER_WAIT_PIPE },
	{ "inet_wait_for_connect", DRIVER_WAIT_PIPE },
	{ "__skb_wait_for_more_packets", DRIVER_WAIT_PIPE },
	{ "__skb_recv_datagram", DRIVER_WAIT_PIPE },
	{ "__skb_recv_udp", DRIVER_WAIT_PIPE },
	{ "vsock_connectible_recvmsg", DRIVER_WAIT_PIPE },
	{ "__sock_recvmsg", DRIVER_WAIT_PIPE },
	{ "sock_recvmsg", DRIVER_WAIT_PIPE },
	{ "sock_read_iter", DRIVER_WAIT_PIPE },
	{ "sock_write_iter", DRIVER_WAIT_PIPE },
	{ "__sys_recvfrom", DRIVER_WAIT_PIPE },
	{ "__sys_sendto", DRIVER_WAIT_PIPE },
	{ "___sys_recvmsg", DRIVER_WAIT_PIPE },
	{ "___sys_sendmsg", DRIVER_WAIT_PIPE },
	{ "do_accept", DRIVER_WAIT_PIPE },
	{ "__sys_accept4", DRIVER_WAIT_PIPE },
	{ "__sys_connect", DRIVER_WAIT_PIPE },
	{ "wq_sleep", DRIVER_WAIT_PIPE },
	{ "do_msgrcv", DRIVER_WAIT_PIPE },
	{ "do_msgsnd", DRIVER_WAIT_PIPE },

	{ "io_schedule", DRIVER_WAIT_DISK },
	{ "io_schedule_timeout", DRIVER_WAIT_DISK },
	{ "folio_wait_bit_common", DRIVER_WAIT_DISK },
	{ "folio_wait_writeback", DRIVER_WAIT_DISK },
	{ "submit_bio_wait", DRIVER_WAIT_DISK },
	{ "blk_execute_rq", DRIVER_WAIT_DISK },
	{ "blkdev_issue_flush", DRIVER_WAIT_DISK },
	{ "jbd2_log_wait_commit", DRIVER_WAIT_DISK },
	{ "__wait_on_buffer", DRIVER_WAIT_DISK },
};

enum { NR_KNOWN = sizeof(known) / sizeof(known[0]) };

/* ---- the kernel's functions ------------------------------------------------------------------ */

static int kind_by_function(const char *name)
{
	size_t len = strcspn(name, ".");

	for (size_t i = 0; i < NR_KNOWN; i++)
		if (strncmp(known[i].name, name, len) == 0 && !known[i].name[len])
			return (int)known[i].kind;
	return DRIVER_WAIT_NONE;
}

/* A line of code: its address, and its name in @line without the newline. NULL: it is none. */
static char *parse(char *line, uint64_t *addr)
{
	char *at, *name;

	*addr = strtoull(line, &at, 16);
	if (at == line || at[0] != ' ' || !at[1] || !strchr("tTwW", at[1]) || at[2] != ' ')
		return NULL;
	name = at + 3;
	name[strcspn(name, "\t\n")] = '\0';
	return name;
}

/* Order by address; at one address the function whose kind is known comes last. */
static int by_start(const void *a, const void *b)
{
	const struct bpf_wait_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (int)x->kind - (int)y->kind;
}

static int read_all(struct bpf_wait_kinds *k, FILE *kallsyms)
{
	char line[1024];
	size_t cap = 0;

	while (fgets(line, sizeof(line), kallsyms)) {
		uint64_t addr;
		char *name = parse(line, &addr);

		if (!name)
			continue;
		if (base_grow(&k->items, &cap, k->nr + 1, sizeof(*k->items)) < 0)
			return -ENOMEM;
		k->items[k->nr++] =
			(struct bpf_wait_range){ .start = addr,
						 .kind = (enum driver_wait)kind_by_function(name) };
	}
	return 0;
}

/* A function ends where the next one begins. What tells no kind goes. */
static void keep_known(struct bpf_wait_kinds *k)
{
	size_t kept = 0;

	for (size_t i = 0; i < k->nr; i++) {
		struct bpf_wait_range r = k->items[i];
		size_t next = i + 1;

		while (next < k->nr && k->items[next].start == r.start)
			next++;
		r.end = next < k->nr ? k->items[next].start : r.start;
		if ((int)r.kind == KIND_SCHEDULE) {
			k->schedule = r.start;
			k->schedule_end = r.end;
		} else if (r.kind) {
			k->items[kept++] = r;
		}
	}
	k->nr = kept;
}

int bpf_wait_kinds_read(struct bpf_wait_kinds *k, FILE *kallsyms)
{
	int r;

	*k = (struct bpf_wait_kinds){ 0 };
	r = read_all(k, kallsyms);
	if (r < 0)
		return r;
	if (k->nr)
		qsort(k->items, k->nr, sizeof(*k->items), by_start);
	/* Hidden addresses are all 0. */
	if (!k->nr || !k->items[k->nr - 1].start)
		return -EPERM;
	keep_known(k);
	return 0;
}

void bpf_wait_kinds_release(struct bpf_wait_kinds *k)
{
	free(k->items);
	*k = (struct bpf_wait_kinds){ 0 };
}

/* ---- the kind of a wait ---------------------------------------------------------------------- */

/* A return address may be the first one behind its function. */
static enum driver_wait kind_at(const struct bpf_wait_kinds *k, uint64_t frame)
{
	uint64_t addr = frame - 1;
	size_t from = 0, to = k->nr;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (k->items[mid].start <= addr)
			from = mid + 1;
		else
			to = mid;
	}
	return from && addr < k->items[from - 1].end ? k->items[from - 1].kind : DRIVER_WAIT_NONE;
}

enum driver_wait bpf_wait_kind(const struct bpf_wait_kinds *k, enum wait_state state,
			       const uint64_t *frames, size_t nr_kernel)
{
	enum driver_wait innermost = DRIVER_WAIT_NONE;

	if (state == WAIT_RUNS)
		return DRIVER_WAIT_RUNS;
	if (state == WAIT_RUNNABLE)
		return DRIVER_WAIT_RUNNABLE;
	for (size_t i = 0; i < nr_kernel; i++) {
		enum driver_wait kind = kind_at(k, frames[i]);

		if (kind == DRIVER_WAIT_FAULT)
			return kind;
		if (!innermost)
			innermost = kind;
	}
	if (state == WAIT_IO)
		return DRIVER_WAIT_DISK;
	return innermost ? innermost : nr_kernel ? DRIVER_WAIT_OTHER : DRIVER_WAIT_UNKNOWN;
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* A path has the hash of its frames in one life of a process. */
struct path_key {
	uint64_t instance, path[2];
	uint64_t tgid;
};

struct path {
	struct path_key key;
	uint64_t time_ns;
	uint32_t used; /* the last gathering in which a sum named it */
	uint16_t nr_kernel, nr;
	uint8_t end;
	uint64_t frames[];
};

static bool is_sound(const struct wait_path *r, size_t len)
{
	return len >= sizeof(*r) && len == sizeof(*r) + r->nr * sizeof(uint64_t) && r->nr &&
	       r->nr <= CALLPATH_NR_FRAMES && r->nr_kernel <= r->nr &&
	       r->end < DRIVER_NR_CALLPATH_ENDS;
}

static struct path *find(const struct bpf_waits *w, const struct path_key *key)
{
	return base_map_get(&w->paths, key, sizeof(*key));
}

static size_t bytes_of(size_t nr)
{
	return sizeof(struct path) + nr * sizeof(uint64_t);
}

static struct path *path_new(const struct wait_path *r, const struct path_key *key)
{
	struct path *p = malloc(bytes_of(r->nr));

	if (!p)
		return NULL;
	*p = (struct path){ .key = *key, .nr_kernel = r->nr_kernel, .nr = r->nr, .end = r->end };
	memcpy(p->frames, r + 1, r->nr * sizeof(uint64_t));
	return p;
}

static struct path *path_add(struct bpf_waits *w, const struct wait_path *r,
			     const struct path_key *key)
{
	size_t bytes = bytes_of(r->nr);
	struct path *p = bytes <= BPF_WAITS_BYTES_MAX - w->path_bytes ? path_new(r, key) : NULL;

	if (p && base_map_set(&w->paths, &p->key, sizeof(p->key), p) < 0) {
		free(p);
		p = NULL;
	}
	if (!p) {
		w->lost_paths++;
		return NULL;
	}
	w->path_bytes += bytes;
	w->new_bytes += bytes;
	return p;
}

void bpf_waits_path(struct bpf_waits *w, const void *record, size_t len)
{
	const struct wait_path *r = record;
	struct path_key key;
	struct path *p;

	if (!is_sound(r, len))
		return;
	key = (struct path_key){ r->instance, { r->path[0], r->path[1] }, r->tgid };
	p = find(w, &key);
	if (!p)
		p = path_add(w, r, &key);
	if (!p)
		return;
	/* It was walked anew: its addresses mean what they mean now. */
	p->time_ns = r->time_ns;
	p->used = w->round;
}

/* A path in the ring may be that of a wait whose first sum is read only the next time. */
void bpf_waits_gathered(struct bpf_waits *w)
{
	void *value;

	w->round++;
	w->new_bytes = 0;
	for (size_t i = 0; base_map_next(&w->paths, &i, &value);) {
		struct path *p = value;

		if (w->round - p->used <= 2)
			continue;
		w->path_bytes -= bytes_of(p->nr);
		base_map_del(&w->paths, &p->key, sizeof(p->key));
		free(p);
		i--;
	}
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* A sum in the queue, before its frames, of which the first is no address (driver.h). */
struct joined {
	uint64_t first_ns, time_ns, instance, ns;
	uint32_t tgid, thread;
	uint16_t nr_kernel, nr;
	uint8_t end, kind;
	uint8_t unused[2];
};

_Static_assert(sizeof(struct joined) % sizeof(uint64_t) == 0, "joined");

struct room {
	struct joined head;
	uint64_t frames[CALLPATH_NR_FRAMES];
};

/* The outermost frame makes way for the wait itself. */
static void join(struct room *to, const struct path *p)
{
	bool cut = p->nr == CALLPATH_NR_FRAMES;
	size_t nr = p->nr - cut;

	memcpy(to->frames + 1, p->frames, nr * sizeof(uint64_t));
	to->head.nr += (uint16_t)nr;
	to->head.nr_kernel += (uint16_t)(p->nr_kernel < nr ? p->nr_kernel : nr);
	to->head.end = cut ? DRIVER_CALLPATH_CUT : p->end;
	if (p->time_ns < to->head.time_ns)
		to->head.first_ns = p->time_ns;
}

static enum driver_wait kind_of(const struct bpf_waits *w, const struct wait_key *key,
				const struct path *p)
{
	return bpf_wait_kind(&w->kinds, (enum wait_state)key->state, p ? p->frames : NULL,
			     p ? p->nr_kernel : 0);
}

static struct path *path_of(const struct bpf_waits *w, const struct wait_key *key)
{
	const struct path_key k = { key->instance, { key->path[0], key->path[1] }, key->tgid };
	struct path *p = find(w, &k);

	if (p)
		p->used = w->round;
	return p;
}

void bpf_waits_sum(struct bpf_waits *w, const struct wait_key *key, const struct wait_sum *sum)
{
	const struct path *p = path_of(w, key);
	struct room room = { .head = { .first_ns = sum->last_ns,
				       .time_ns = sum->last_ns,
				       .instance = key->instance,
				       .ns = sum->ns,
				       .tgid = key->tgid,
				       .thread = key->thread,
				       .nr_kernel = 1,
				       .nr = 1 } };

	if (!sum->ns)
		return;
	room.frames[0] = 0;
	room.head.kind = kind_of(w, key, p);
	room.head.end =
		key->state == WAIT_RUNS ? DRIVER_CALLPATH_COMPLETE : DRIVER_CALLPATH_UNREADABLE;
	if (p)
		join(&room, p);
	if (bpf_queue_add(&w->queue, room.head.time_ns, &room,
			  sizeof(room.head) + room.head.nr * sizeof(uint64_t)) < 0)
		w->lost_ns += sum->ns;
}

/* ---- handing on ------------------------------------------------------------------------------ */

struct telling {
	struct bpf_waits *w;
	const struct driver_sink *sink;
};

static int hand(void *ctx, const uint64_t *record)
{
	const struct telling *t = ctx;
	const struct joined *j = (const void *)record;
	const struct driver_callpath c = {
		.first_ns = j->first_ns,
		.time_ns = j->time_ns,
		.instance = j->instance,
		.count = j->ns,
		.pid = (int32_t)j->tgid,
		.event = j->kind == DRIVER_WAIT_RUNS ? t->w->event_run : t->w->event_wait,
		.thread = j->thread,
		.wait = j->kind,
		.mode = DRIVER_KERNEL,
		.end = j->end,
		.nr_kernel = j->nr_kernel,
		.nr = j->nr,
	};

	t->w->handed_ns += j->ns;
	t->w->nr_handed++;
	return t->sink->callpath
		       ? t->sink->callpath(t->sink->ctx, &c, record + sizeof(*j) / sizeof(*record))
		       : 0;
}

int bpf_waits_hand(struct bpf_waits *w, uint64_t until_ns, const struct driver_sink *sink)
{
	struct telling t = { w, sink };

	return bpf_queue_hand(&w->queue, until_ns, hand, &t);
}

void bpf_waits_release(struct bpf_waits *w)
{
	void *value;

	for (size_t i = 0; base_map_next(&w->paths, &i, &value);)
		free(value);
	base_map_release(&w->paths);
	bpf_queue_release(&w->queue);
	bpf_wait_kinds_release(&w->kinds);
}

/* ---- programs and maps ----------------------------------------------------------------------- */

enum { NR_LINKS = 4, BATCH = 4096 };

struct bpf_wait_source {
	struct sample_waiting *programs;
	struct bpf_waits waits;
	struct bpf_reader paths;
	void *links[NR_LINKS]; /* while threads are measured */
	void *look;
	void *cpus;
	size_t nr_cpus;
	struct wait_key *keys; /* BATCH of both */
	struct wait_sum *sums;
	bool said; /* that a look failed */
};

/* ---- all threads up to now ------------------------------------------------------------------- */

/* The program writes nothing; it has seen all threads when this ends. After a million of them the
 * kernel takes a break. */
static int look_at_all(int fd)
{
	char nothing[64];
	ssize_t r;

	do
		r = read(fd, nothing, sizeof(nothing));
	while (r > 0 || (r < 0 && (errno == EAGAIN || errno == EINTR)));
	return r < 0 ? -errno : 0;
}

static void look(struct bpf *b)
{
	struct bpf_wait_source *s = b->waits;
	int fd, r;

	if (!s || !s->look)
		return;
	fd = bpf_iter_create(bpf_link__fd(s->look));
	r = fd < 0 ? -errno : look_at_all(fd);
	if (fd >= 0)
		close(fd);
	if (r < 0 && !s->said)
		base_log(BASE_LOG_WARN,
			 "cannot look at all threads: %s; waits count when they are over",
			 base_strerror(r));
	s->said |= r < 0;
}

static int attach(struct bpf_wait_source *s)
{
	struct bpf_program *const programs[NR_LINKS] = {
		s->programs->progs.wait_switch,
		s->programs->progs.wait_wakeup,
		s->programs->progs.wait_begin,
		s->programs->progs.wait_exec,
	};

	for (size_t i = 0; i < NR_LINKS; i++) {
		s->links[i] = bpf_program__attach_trace(programs[i]);
		if (!s->links[i])
			return -errno;
	}
	s->look = bpf_program__attach_iter(s->programs->progs.wait_look, NULL);
	return s->look ? 0 : -errno;
}

static void detach(struct bpf_wait_source *s)
{
	for (size_t i = 0; i < NR_LINKS; i++) {
		bpf_link__destroy(s->links[i]);
		s->links[i] = NULL;
	}
	bpf_link__destroy(s->look);
	s->look = NULL;
}

static int run(struct bpf *b, bool on)
{
	struct bpf_wait_source *s = b->waits;
	int r;

	if (!s)
		return 0;
	if (!on) {
		look(b);
		detach(s);
		return 0;
	}
	r = attach(s);
	if (r < 0)
		detach(s);
	else
		look(b);
	return r;
}

/* ---- reading the maps ------------------------------------------------------------------------ */

static void on_path(void *ctx, const void *data, size_t len)
{
	struct bpf_wait_source *s = ctx;

	bpf_waits_path(&s->waits, data, len);
}

static bool read_waits(struct bpf *b, size_t *nr)
{
	if (!b->waits)
		return false;
	bpf_reader_read(&b->waits->paths);
	*nr += bpf_queue_nr(&b->waits->waits.queue);
	/* A path stays for two gatherings more. */
	return b->waits->waits.new_bytes > BPF_WAITS_BYTES_MAX / 4;
}

/* Everything in the map that is not added to. */
static void read_sums(struct bpf_wait_source *s, int fd)
{
	uint32_t at, *from = NULL, nr = BATCH;
	int r = 0;

	while (r >= 0) {
		nr = BATCH;
		r = bpf_map_lookup_and_delete_batch(fd, from, &at, s->keys, s->sums, &nr, NULL);
		if (r < 0 && errno != ENOENT)
			return;
		for (uint32_t i = 0; i < nr; i++)
			bpf_waits_sum(&s->waits, &s->keys[i], &s->sums[i]);
		from = &at;
	}
}

static void gather(struct bpf *b)
{
	struct bpf_wait_source *s = b->waits;

	if (!s)
		return;
	bpf_reader_read(&s->paths);
	read_sums(s,
		  bpf_map__fd(b->tables.shared->set & ~SAMPLE_BANK ? s->programs->maps.wait_sums0
								   : s->programs->maps.wait_sums1));
	bpf_waits_gathered(&s->waits);
}

static bool names_threads(struct bpf *b)
{
	return b->waits && bpf_queue_nr(&b->waits->waits.queue) > 0;
}

static uint64_t next(struct bpf *b)
{
	return b->waits ? bpf_queue_next(&b->waits->waits.queue) : UINT64_MAX;
}

static int hand_until(struct bpf *b, uint64_t until_ns, const struct driver_sink *sink)
{
	return b->waits ? bpf_waits_hand(&b->waits->waits, until_ns, sink) : 0;
}

static void settle(struct bpf *b, uint64_t until_ns)
{
	(void)until_ns;
	if (b->waits)
		bpf_queue_tidy(&b->waits->waits.queue);
}

/* ---- the account ----------------------------------------------------------------------------- */

/* Losses are read first: they may grow between, but are received before. */
static void add_cpu(struct driver_wait_stats *out, const volatile struct wait_counts *c)
{
	out->lost_full += c->lost_ns;
	out->lost_paths += c->lost_paths;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	out->received += c->received_ns;
}

static void stats(const struct driver *d, struct driver_wait_stats *out)
{
	const struct bpf_wait_source *s = ((const struct bpf *)d)->waits;
	const struct wait_counts *counts = s->cpus;

	*out = (struct driver_wait_stats){ .lost_read = s->waits.lost_ns,
					   .lost_paths = s->paths.spill.lost,
					   .keys = s->waits.nr_handed };
	for (size_t i = 0; i < s->nr_cpus; i++)
		add_cpu(out, &counts[i]);
	out->held = out->received - out->lost_full - out->lost_read - s->waits.handed_ns;
}

static const struct driver_wait_ops wait_ops = { .stats = stats };

/* ---- the stream ------------------------------------------------------------------------------ */

static int open_maps(struct bpf_wait_source *s)
{
	int r = bpf_map_in(&s->cpus, s->programs->maps.wait_cpus);

	if (r >= 0)
		r = bpf_reader_open(&s->paths, s->programs->maps.wait_paths, on_path, s);
	s->keys = malloc(BATCH * sizeof(*s->keys));
	s->sums = malloc(BATCH * sizeof(*s->sums));
	return r < 0 ? r : s->keys && s->sums ? 0 : -ENOMEM;
}

/* Their counts are nanoseconds. */
static void add_events(struct bpf *b, struct bpf_waits *w)
{
	struct driver *d = &b->base;

	w->event_wait = (uint32_t)d->nr_events;
	w->event_run = (uint32_t)d->nr_events + 1;
	d->events[w->event_wait] =
		(struct driver_event){ .name = "wait", .period = 1, .enabled = 1 };
	d->events[w->event_run] = (struct driver_event){ .name = "run", .period = 1, .enabled = 1 };
	d->nr_timed = BPF_WAIT_EVENTS;
}

static int open_waits(struct bpf *b, const struct driver_config *config)
{
	struct bpf_wait_source *s;
	int r;

	if (!config->waits)
		return 0;
	s = b->waits = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->programs = b->programs.waiting;
	s->nr_cpus = bpf_map__max_entries(s->programs->maps.wait_cpus);
	s->waits.kinds = b->programs.kinds;
	b->programs.kinds = (struct bpf_wait_kinds){ 0 };
	r = open_maps(s);
	if (r >= 0)
		r = perf_sampler_poll_add(&b->sampler, bpf_reader_poll_fd(&s->paths), true);
	if (r < 0)
		return r;
	bpf_spill(b, &s->paths);
	add_events(b, &s->waits);
	b->base.waits = &wait_ops;
	return 0;
}

static void close_waits(struct bpf *b)
{
	struct bpf_wait_source *s = b->waits;

	if (!s)
		return;
	detach(s);
	bpf_reader_close(&s->paths);
	bpf_map_out(s->cpus, s->programs->maps.wait_cpus);
	bpf_waits_release(&s->waits);
	free(s->keys);
	free(s->sums);
	free(s);
	b->waits = NULL;
}

const struct bpf_stream_ops bpf_waits_ops = {
	.open = open_waits,
	.run = run,
	.look = look,
	.gather = gather,
	.read = read_waits,
	.names_threads = names_threads,
	.next = next,
	.hand_until = hand_until,
	.settle = settle,
	.close = close_waits,
};
