/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sampler, once it is open: its rings are read, also while their reader is busy; counts and
 * load events are put in order of time and handed on.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "perf_internal.h"
#include "wire.h"

/* ---- order of time: room for loads ----------------------------------------------------------- */

enum { CHUNK_LEN = 64 << 10 };

/* Cut off from the front; all of it is free again when none of its loads is left. */
struct perf_chunk {
	size_t len, used; /* capacity and used length, in bytes */
	size_t nr_loads;
	uint64_t bytes[];
};

static struct perf_chunk *chunk_with(struct perf_order *o, size_t len)
{
	struct perf_chunk *c = o->chunk;

	if (c && c->len - c->used >= len)
		return c;
	/* One that holds loads is let go of with the last of these. */
	if (c && !c->nr_loads)
		free(c);
	o->chunk = c = o->spare;
	o->spare = NULL;
	if (c && c->len >= len)
		return c;
	free(c);
	len = len > CHUNK_LEN ? len : CHUNK_LEN;
	o->chunk = c = malloc(sizeof(*c) + len);
	if (c)
		*c = (struct perf_chunk){ .len = len };
	return c;
}

static struct perf_load *load_new(struct perf_order *o, size_t len)
{
	size_t need = (sizeof(struct perf_load) + len + 7) / 8 * 8;
	struct perf_chunk *c = chunk_with(o, need);
	struct perf_load *load;

	if (!c)
		return NULL;
	load = (struct perf_load *)(c->bytes + c->used / 8);
	load->chunk = c;
	c->used += need;
	c->nr_loads++;
	return load;
}

void perf_order_drop(struct perf_order *o, struct perf_load *load)
{
	struct perf_chunk *c = load->chunk;

	if (--c->nr_loads)
		return;
	c->used = 0;
	if (c == o->chunk)
		return;
	if (o->spare)
		free(c);
	else
		o->spare = c;
}

/* ---- order of time: queues ------------------------------------------------------------------- */

int perf_order_init(struct perf_order *o, size_t nr_queues)
{
	*o = (struct perf_order){ .nr_queues = nr_queues };
	o->queues = calloc(nr_queues, sizeof(*o->queues));
	o->heap = calloc(nr_queues, sizeof(*o->heap));
	if (o->queues && o->heap)
		return 0;
	perf_order_release(o);
	return -ENOMEM;
}

void perf_order_release(struct perf_order *o)
{
	for (size_t i = 0; o->queues && i < o->nr_queues; i++) {
		struct perf_queue *q = &o->queues[i];

		for (size_t k = q->first; k < q->end; k++) {
			if (q->items[k].load)
				perf_order_drop(o, q->items[k].load);
			perf_order_drop_count(&q->items[k].count);
		}
		free(q->items);
	}
	free(o->queues);
	free(o->heap);
	free(o->chunk);
	free(o->spare);
	*o = (struct perf_order){ 0 };
}

/* A count owns what is told of its instruction. */
void perf_order_drop_count(const struct driver_count *count)
{
	free((void *)count->insn);
}

/* Where an item of @time_ns goes, or NULL. */
static struct perf_item *place(struct perf_order *o, size_t queue, uint64_t time_ns)
{
	struct perf_queue *q = &o->queues[queue];
	size_t at;

	/* Taken items are overwritten once they are half of the array: amortized one move each. */
	if (q->first && q->first >= q->end - q->first) {
		memmove(q->items, q->items + q->first, (q->end - q->first) * sizeof(*q->items));
		q->end -= q->first;
		q->first = 0;
	}
	if (base_grow(&q->items, &q->cap, q->end + 1, sizeof(*q->items)) < 0)
		return NULL;
	/* One CPU's records are in order but where an interrupt came between: a step or two. */
	for (at = q->end++; at > q->first && q->items[at - 1].count.time_ns > time_ns; at--)
		q->items[at] = q->items[at - 1];
	return &q->items[at];
}

int perf_order_add(struct perf_order *o, size_t queue, const struct driver_count *count)
{
	struct isample *insn = count->insn ? malloc(sizeof(*insn)) : NULL;
	struct perf_item *item = !insn == !count->insn ? place(o, queue, count->time_ns) : NULL;

	if (!item) {
		free(insn);
		return -ENOMEM;
	}
	if (insn)
		*insn = *count->insn;
	*item = (struct perf_item){ .count = *count };
	item->count.insn = insn;
	o->nr_samples += count->count;
	return 0;
}

int perf_order_add_load(struct perf_order *o, size_t queue, const struct driver_load *load)
{
	size_t path_len = load->path ? strlen(load->path) + 1 : 0;
	size_t data_len = load->data ? load->data_len : 0;
	size_t at = (data_len + 7) / 8 * 8;
	struct perf_load *copy = load_new(o, at + path_len);
	struct perf_item *item = copy ? place(o, queue, load->time_ns) : NULL;

	if (copy && !item)
		perf_order_drop(o, copy);
	if (!item)
		return -ENOMEM;
	copy->load = *load;
	if (data_len)
		copy->load.data = memcpy(copy->bytes, load->data, data_len);
	if (path_len)
		copy->load.path = memcpy((char *)copy->bytes + at, load->path, path_len);
	*item = (struct perf_item){ .count.time_ns = load->time_ns, .load = copy };
	return 0;
}

static struct perf_head head_of(const struct perf_order *o, size_t queue)
{
	const struct perf_queue *q = &o->queues[queue];

	return (struct perf_head){ q->items[q->first].count.time_ns, queue };
}

/* Equal times: the lower queue first, so that equal input gives equal output. */
static bool heap_less(const struct perf_order *o, size_t a, size_t b)
{
	const struct perf_head *x = &o->heap[a], *y = &o->heap[b];

	return x->time_ns < y->time_ns || (x->time_ns == y->time_ns && x->queue < y->queue);
}

static void heap_sift(struct perf_order *o, size_t at)
{
	for (;;) {
		size_t least = at, child = 2 * at + 1;

		if (child < o->nr_heap && heap_less(o, child, least))
			least = child;
		if (child + 1 < o->nr_heap && heap_less(o, child + 1, least))
			least = child + 1;
		if (least == at)
			return;
		struct perf_head swap = o->heap[at];

		o->heap[at] = o->heap[least];
		o->heap[least] = swap;
		at = least;
	}
}

void perf_order_settle(struct perf_order *o)
{
	o->nr_heap = 0;
	for (size_t i = 0; i < o->nr_queues; i++) {
		if (o->queues[i].first < o->queues[i].end)
			o->heap[o->nr_heap++] = head_of(o, i);
	}
	for (size_t at = o->nr_heap / 2; at-- > 0;)
		heap_sift(o, at);
}

const struct perf_item *perf_order_take(struct perf_order *o, uint64_t horizon)
{
	const struct perf_item *item;
	struct perf_queue *q;

	if (!o->nr_heap || o->heap[0].time_ns > horizon)
		return NULL;
	q = &o->queues[o->heap[0].queue];
	item = &q->items[q->first++];
	if (!item->load)
		o->nr_samples -= item->count.count;
	if (q->first == q->end) {
		q->first = q->end = 0;
		o->heap[0] = o->heap[--o->nr_heap];
	} else {
		o->heap[0] = head_of(o, o->heap[0].queue);
	}
	heap_sift(o, 0);
	return item;
}

/* ---- rings in memory ------------------------------------------------------------------------- */

/*
 * A thread empties the rings into memory while their reader is busy. A program that changes its
 * mappings as fast as it can fills a ring within 10 ms; one ring that would hold the longest turn
 * of the daemon's loop would have to be a hundred times as long, for each CPU.
 */

/* The thread looks after the reader has been busy for so long, and again and again. */
#define FIRST_NS 2000000
#define AGAIN_NS 2000000
/* So much of one CPU's waits in memory; the rest stays in the ring. */
#define SPILLED_MAX (64u << 20)
/* Memory that was needed for once is given back. */
#define KEPT_MAX (1u << 20)

/* ---- under the CPU's lock -------------------------------------------------------------------- */

static void look_at_ring(struct perf_cpu *c)
{
	const struct perf_event_mmap_page *page = c->map;

	c->ring.head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
}

static void release_ring(const struct perf_cpu *c)
{
	struct perf_event_mmap_page *page = c->map;

	__atomic_store_n(&page->data_tail, c->ring.tail, __ATOMIC_RELEASE);
}

/* Whole records, for the kernel writes no others. */
static int spill(struct perf_cpu *c)
{
	size_t len = c->ring.head - c->ring.tail, before = c->spilled.len, at, first;
	int r;

	if (!len || before + len > SPILLED_MAX)
		return 0;
	/* It was overwritten: no reader makes sense of this. */
	if (len > c->ring.len) {
		c->unreadable = true;
		c->ring.tail = c->ring.head;
		return 0;
	}
	at = (size_t)(c->ring.tail & (c->ring.len - 1));
	first = c->ring.len - at < len ? c->ring.len - at : len;
	r = base_buf_append(&c->spilled, c->ring.data + at, first);
	if (r == 0 && len > first)
		r = base_buf_append(&c->spilled, c->ring.data, len - first);
	/* Without memory it stays in the ring, also its first part. */
	if (r < 0)
		c->spilled.len = before;
	else
		c->ring.tail = c->ring.head;
	return r;
}

static int spill_ring(struct perf_cpu *c, size_t least)
{
	int r = 0;

	if (!c->map)
		return 0;
	look_at_ring(c);
	if (c->ring.head - c->ring.tail >= least)
		r = spill(c);
	release_ring(c);
	return r;
}

/* ---- for the reader -------------------------------------------------------------------------- */

/* Take what the ring of @c has. 0, or -ENOMEM: the ring keeps it. */
static int take(struct perf_cpu *c)
{
	int r;

	pthread_mutex_lock(&c->lock);
	r = spill_ring(c, 1);
	if (c->unread_at == c->unread.len) {
		struct base_buf read = c->unread;

		base_buf_clear(&read);
		c->unread = c->spilled;
		c->spilled = read;
		c->unread_at = 0;
	} else if (base_buf_append(&c->unread, c->spilled.data, c->spilled.len) == 0) {
		base_buf_clear(&c->spilled);
	}
	pthread_mutex_unlock(&c->lock);
	return r;
}

/* Records that were taken and not read: positions in memory are a ring's that has not wrapped. */
static struct perf_ring unread_of(const struct perf_cpu *c)
{
	size_t len = 1;

	while (len < c->unread.len)
		len *= 2;
	return (struct perf_ring){
		.data = c->unread.data, .len = len, .head = c->unread.len, .tail = c->unread_at
	};
}

static void was_read(struct perf_cpu *c, uint64_t up_to)
{
	c->unread_at = (size_t)up_to;
	if (c->unread_at < c->unread.len)
		return;
	c->unread_at = 0;
	if (c->unread.cap > KEPT_MAX)
		base_buf_release(&c->unread);
	else
		base_buf_clear(&c->unread);
}

/* ---- records of a ring ----------------------------------------------------------------------- */

/* Bytes of the ring from position @from on, over its end where needed. */
static const uint8_t *ring_bytes(const struct perf_ring *ring, uint64_t from, size_t len,
				 uint8_t *scratch)
{
	size_t at = (size_t)(from & (ring->len - 1)), first = ring->len - at;

	if (len <= first)
		return ring->data + at;
	memcpy(scratch, ring->data + at, first);
	memcpy(scratch + first, ring->data, len - first);
	return scratch;
}

int perf_ring_peek(const struct perf_ring *ring, uint8_t *scratch, const uint8_t **rec)
{
	uint64_t left = ring->head - ring->tail;
	struct perf_event_header h;

	if (!left)
		return 0;
	if (left > ring->len || left < sizeof(h))
		return -DCPI_EFORMAT;
	memcpy(&h, ring_bytes(ring, ring->tail, sizeof(h), scratch), sizeof(h));
	if (h.size < sizeof(h) || h.size > left)
		return -DCPI_EFORMAT;
	*rec = ring_bytes(ring, ring->tail, h.size, scratch);
	return h.size;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void spill_rings(struct perf_sampler *s)
{
	for (size_t i = 0; i < s->nr_cpus; i++) {
		struct perf_cpu *c = &s->cpus[i];

		/* The reader empties it just now. */
		if (pthread_mutex_trylock(&c->lock))
			continue;
		spill_ring(c, c->ring.len / 8 + 1);
		pthread_mutex_unlock(&c->lock);
	}
}

static void *spill_all(void *arg)
{
	struct perf_sampler *s = arg;
	uint64_t ticks;

	while (read(s->spill.timer_fd, &ticks, sizeof(ticks)) == sizeof(ticks) &&
	       !__atomic_load_n(&s->spill.quit, __ATOMIC_ACQUIRE)) {
		spill_rings(s);
		if (s->spill.more)
			s->spill.more(s->spill.ctx);
	}
	return NULL;
}

/* The daemon's signals are for its main thread. */
static bool start_spill(struct perf_sampler *s)
{
	sigset_t all, old;

	s->spill.tried = true;
	s->spill.timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (s->spill.timer_fd < 0)
		return false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	s->spill.runs = pthread_create(&s->spill.thread, NULL, spill_all, s) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!s->spill.runs)
		close(s->spill.timer_fd);
	return s->spill.runs;
}

static void arm_spill(const struct perf_sampler *s, long first_ns)
{
	const struct itimerspec when = { .it_value.tv_nsec = first_ns,
					 .it_interval.tv_nsec = first_ns ? AGAIN_NS : 0 };

	timerfd_settime(s->spill.timer_fd, 0, &when, NULL);
}

void perf_sampler_busy(struct perf_sampler *s, bool busy)
{
	if (s->spill.runs || (busy && !s->spill.tried && start_spill(s)))
		arm_spill(s, busy ? FIRST_NS : 0);
}

static void stop_spill(struct perf_sampler *s)
{
	if (!s->spill.runs)
		return;
	__atomic_store_n(&s->spill.quit, true, __ATOMIC_RELEASE);
	arm_spill(s, 1);
	pthread_join(s->spill.thread, NULL);
	close(s->spill.timer_fd);
	s->spill.runs = false;
}

/* ---- description ----------------------------------------------------------------------------- */

/* CPUs whose kind has no such event. */
static size_t nr_absent(const struct perf_sampler *s, size_t event)
{
	size_t nr = 0;

	for (size_t i = 0; i < s->nr_cpus; i++)
		nr += s->cpus[i].track_fd >= 0 && s->cpus[i].events[event].absent;
	return nr;
}

static size_t describe_event(const struct perf_sampler *s, size_t event, char *to, size_t len)
{
	const struct event_spec *spec = &s->specs[event];
	int n;
	char often[32] = "", where[48] = "";

	if (spec->period)
		snprintf(often, sizeof(often), " each %" PRIu64, spec->period);
	else if (!spec->tick)
		snprintf(often, sizeof(often), " at %" PRIu64 " Hz", s->frequency);
	if (nr_absent(s, event))
		snprintf(where, sizeof(where), " (not on %zu)", nr_absent(s, event));
	n = snprintf(to, len, "%s%s%s", spec->name, often, where);
	return n < 0 ? len : (size_t)n;
}

static size_t describe_events(const struct perf_sampler *s, char *to, size_t len)
{
	size_t at = 0;

	to[0] = '\0';
	for (uint32_t slot = 0; slot < s->turn.nr_slots; slot++) {
		const char *between = slot ? ", " : "";

		for (size_t i = 0; i < s->d->nr_events && at < len; i++) {
			if (!(s->specs[i].slots >> slot & 1))
				continue;
			at += (size_t)snprintf(to + at, len - at, "%s", between);
			if (at < len)
				at += describe_event(s, i, to + at, len - at);
			between = " + ";
		}
	}
	return at;
}

static void describe_place(const struct perf_sampler *s, char *to, size_t len)
{
	size_t open = 0;

	for (size_t i = 0; i < s->nr_cpus; i++)
		open += s->cpus[i].track_fd >= 0;
	if (s->pid > 0)
		snprintf(to, len, "of process %d", s->pid);
	else
		snprintf(to, len, "on %zu CPU%s", open, open == 1 ? "" : "s");
}

void perf_sampler_describe(struct perf_sampler *s)
{
	char events[192], place[32];

	if (describe_events(s, events, sizeof(events)) >= sizeof(events))
		snprintf(events, sizeof(events), "%zu events", s->d->nr_events);
	describe_place(s, place, sizeof(place));
	snprintf(s->d->describe, sizeof(s->d->describe), "%s: %s %s%s%s%s",
		 s->in_kernel ? "bpf" : "perf", events, place, s->why, s->trouble, s->d->refused);
}

/* ---- closing --------------------------------------------------------------------------------- */

void perf_sampler_close(struct perf_sampler *s)
{
	if (!s->d)
		return;
	stop_spill(s);
	for (size_t i = 0; i < s->nr_cpus; i++)
		perf_cpu_close(&s->cpus[i], s->d->nr_events);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	if (s->timer_fd >= 0)
		close(s->timer_fd);
	perf_order_release(&s->order);
	perf_threads_forget(&s->threads);
	perf_names_release(&s->names);
	free(s->cpus);
	free(s->events);
	s->d = NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int event_of(const struct perf_sampler *s, const struct perf_cpu *c, uint64_t id)
{
	for (size_t i = 0; i < s->d->nr_events; i++) {
		if (c->events[i].id == id && id)
			return (int)i;
	}
	return -1;
}

/* Where samples are counted in the kernel, no record is one. */
static void count_bad_sample(struct perf_sampler *s)
{
	if (s->in_kernel)
		s->load_bad++;
	else
		s->sample_bad++;
}

/* Fill in @out what the hardware told of the sampled instruction, if anything. */
static void tell_insn(const struct perf_sampler *s, size_t event, const struct perf_record *rec,
		      struct isample *out)
{
	const struct event_spec *spec = &s->specs[event];
	struct perf_event_attr attr;

	*out = (struct isample){ 0 };
	if (spec->hardware == EVENT_HW_OTHER && !spec->precise)
		return;
	perf_attr_sampling(&attr, spec, 1, s->frequency, s->pid, s->features);
	perf_insn_parse(spec->hardware, &attr, &rec->rest, rec->misc, out);
}

static int queue_sample(struct perf_sampler *s, size_t index, const struct perf_record *rec)
{
	struct perf_cpu *c = &s->cpus[index];
	struct driver_count count = rec->count;
	struct isample insn;
	int event = event_of(s, c, rec->id), r;

	if (event < 0) {
		count_bad_sample(s);
		return 0;
	}
	count.event = (uint32_t)event;
	tell_insn(s, (size_t)event, rec, &insn);
	count.insn = insn.known ? &insn : NULL;
	r = perf_order_add(&s->order, index, &count);
	if (r >= 0)
		c->events[event].count.received++;
	return r;
}

static void count_bad(struct perf_sampler *s, const struct perf_record *rec)
{
	if (rec->what == PERF_SAMPLE)
		count_bad_sample(s);
	else if (rec->what == PERF_LOAD)
		s->load_bad++;
}

/* Without the kernel's count by event, what was lost may be of any: of samples there are most. */
static size_t loser(const struct perf_sampler *s, size_t index, uint64_t id)
{
	int event = event_of(s, &s->cpus[index], id);

	return event < 0 ? 0 : (size_t)event;
}

/*
 * Whether memory may hold generated code: private memory, or shared memory (PHP's JIT is in
 * /dev/zero).
 */
static bool is_for_code(const struct driver_load *l)
{
	static const char *const shared[] = { "/dev/zero", "/memfd:", "/SYSV" };

	for (size_t i = 0; !l->id.len && i < sizeof(shared) / sizeof(*shared); i++)
		if (!strncmp(l->path, shared[i], strlen(shared[i])))
			return true;
	return !strcmp(l->path, "//anon");
}

/*
 * A registry's marker, or that of a file into which a runtime writes its code: a page of what is no
 * image. Or a process's first memory for code, and its end: what it left may be gone by the next
 * drain.
 */
static bool announces_code(struct perf_sampler *s, const struct driver_load *l)
{
	static const char name[] = "/memfd:" WIRE_MEMFD_NAME;
	int32_t *pid = &s->code_pids[(uint32_t)l->pid % PERF_NR_CODE_PIDS];

	if (l->kind == DRIVER_LOAD_EXIT && *pid == l->pid) {
		*pid = 0;
		return true;
	}
	if (l->kind != DRIVER_LOAD_MMAP || !l->path)
		return false;
	if (is_for_code(l) && *pid != l->pid) {
		*pid = l->pid;
		return true;
	}
	return !strncmp(l->path, name, sizeof(name) - 1) ||
	       (l->path[0] == '/' && l->path[1] != '/' && !l->id.len &&
		l->len <= (uint64_t)sysconf(_SC_PAGESIZE));
}

/* Queue or count a good record. Negative: no memory, it stays in the ring. */
static int keep(struct perf_sampler *s, size_t index, const struct perf_record *rec)
{
	switch (rec->what) {
	case PERF_SAMPLE:
		return queue_sample(s, index, rec);
	case PERF_LOAD:
		s->nr_loads++;
		s->code_seen |= announces_code(s, &rec->load);
		perf_threads_read(&s->threads, &rec->load);
		return perf_order_add_load(&s->order, index, &rec->load);
	case PERF_LOST:
		s->lost_said[loser(s, index, rec->id)] += rec->nr;
		break;
	case PERF_UNSENT:
		s->unsent[loser(s, index, rec->id)] += rec->nr;
		break;
	case PERF_THROTTLED:
		s->d->stats.throttled++;
		break;
	case PERF_SKIP:
		break;
	}
	return 0;
}

/* The rest of a ring: count at least one of each. */
static void unreadable(struct perf_sampler *s)
{
	s->load_bad++;
	s->sample_bad += !s->in_kernel;
}

/* Read a ring up to the first record younger than @until. */
static int read_ring(struct perf_sampler *s, size_t index, uint64_t until)
{
	struct perf_cpu *c = &s->cpus[index];
	struct perf_record rec;
	const uint8_t *bytes;
	/* Without memory for it, it stays in the ring. */
	int len, r = take(c);
	struct perf_ring ring = unread_of(c);

	while (r == 0 && (len = perf_ring_peek(&ring, s->scratch, &bytes)) != 0) {
		if (len < 0) {
			unreadable(s);
			ring.tail = ring.head;
			break;
		}
		if (perf_record_parse(bytes, (size_t)len, &rec) < 0) {
			count_bad(s, &rec);
		} else {
			r = rec.time_ns > until ? 1 : keep(s, index, &rec);
			if (r)
				break;
		}
		ring.tail += (uint64_t)len;
	}
	if (c->unreadable)
		unreadable(s);
	c->unreadable = false;
	was_read(c, ring.tail);
	return r < 0 ? r : 0;
}

int perf_sampler_read_rings(struct perf_sampler *s, uint64_t until)
{
	int r = 0;

	for (size_t i = 0; i < s->nr_cpus && r >= 0; i++) {
		if (s->cpus[i].map)
			r = read_ring(s, i, until);
	}
	return r;
}

int perf_sampler_add(struct perf_sampler *s, const struct driver_count *count)
{
	return perf_order_add(&s->order, s->nr_cpus, count);
}

void perf_sampler_received(struct perf_sampler *s, unsigned int cpu, size_t event, uint64_t nr)
{
	size_t i = cpu;

	if (i >= s->nr_cpus || s->cpus[i].cpu != cpu) {
		for (i = 0; i < s->nr_cpus && s->cpus[i].cpu != cpu; i++)
			;
	}
	if (i < s->nr_cpus)
		s->cpus[i].events[event].count.received += nr;
	else
		s->somewhere[event] += nr;
}

/* ---- handing on ------------------------------------------------------------------------------ */

/*
 * Losses of side-band records: by the kernel's counts, by its records of loss, by their contents.
 */
static uint64_t load_losses(const struct perf_sampler *s)
{
	uint64_t lost = s->load_bad;

	for (size_t i = 0; i < s->nr_cpus; i++)
		lost += perf_count_lost(&s->cpus[i].track);
	for (size_t i = 0; i < s->d->nr_events; i++)
		lost += s->lost_said[i];
	return lost;
}

/*
 * An interval across a loss may be wrong: earlier counts must not judge the records of this drain,
 * nor its counts those of the next.
 */
static void distrust_threads(struct perf_sampler *s, uint64_t lost)
{
	if (s->distrusted == lost)
		return;
	perf_threads_forget(&s->threads);
	perf_names_lose(&s->names);
}

/* Before what happened after it comes. */
static int tell_loss(struct perf_sampler *s, const struct driver_sink *sink)
{
	const struct driver_load l = { .kind = DRIVER_LOAD_LOST, .len = perf_sampler_lost_load(s) };

	if (s->announced_lost == l.len)
		return 0;
	s->announced_lost = l.len;
	return sink->load(sink->ctx, &l);
}

/* How long a process lives that begins by @l, whose end was read with it; or 0. */
static uint64_t lives(const struct perf_sampler *s, const struct driver_load *l)
{
	uint64_t end;

	if (l->kind != DRIVER_LOAD_FORK && l->kind != DRIVER_LOAD_EXEC)
		return 0;
	end = perf_threads_end(&s->threads, l->pid);
	return end > l->time_ns ? end - l->time_ns : 0;
}

static int hand_load(struct perf_sampler *s, struct perf_load *load, const struct driver_sink *sink)
{
	int r = 0;

	if (!s->in_kernel)
		perf_names_load(&s->names, &load->load);
	if (perf_threads_pass(&s->threads, &load->load)) {
		load->load.lives_ns = lives(s, &load->load);
		r = sink->load(sink->ctx, &load->load);
	}
	perf_order_drop(&s->order, load);
	return r;
}

static int hand_count(struct perf_sampler *s, struct driver_count *count,
		      const struct driver_sink *sink)
{
	int r;

	if (!s->in_kernel)
		count->thread = perf_names_get(&s->names, count->tid);
	r = sink->count(sink->ctx, count);
	perf_order_drop_count(count);
	return r;
}

int perf_sampler_hand_on(struct perf_sampler *s, uint64_t horizon, const struct driver_sink *sink)
{
	uint64_t lost = load_losses(s);
	const struct perf_item *next;
	int r = tell_loss(s, sink);

	distrust_threads(s, lost);
	perf_order_settle(&s->order);
	while (r >= 0 && (next = perf_order_take(&s->order, horizon))) {
		/* The reader of the ring may have the rings read (perf_sampler_read_rings). */
		struct perf_item item = *next;

		r = item.load ? hand_load(s, item.load, sink) : hand_count(s, &item.count, sink);
	}
	distrust_threads(s, lost);
	s->distrusted = lost;
	return r < 0 ? r : 0;
}
