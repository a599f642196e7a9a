/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dynamic code as the rest of the daemon sees it: clients, polls, look-ups, forks and ends. Where
 * code has no name, the pages that samples fell into are kept as they stood there then.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jit_internal.h"

/* ---- open and close -------------------------------------------------------------------------- */

/* Names files of this boot apart from those of others; recorded streams need no such thing. */
static void read_boot(struct dyn *d)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return;
	n = read(fd, d->boot, sizeof(d->boot) - 1);
	close(fd);
	d->boot[n > 0 ? n : 0] = '\0';
	d->boot[strcspn(d->boot, "\n")] = '\0';
}

int dyn_open(const struct dyn_config *config, struct dyn **out, struct base_err *err)
{
	struct dyn *d = calloc(1, sizeof(*d));
	struct base_buf name = { 0 };
	int r = -ENOMEM;

	*out = NULL;
	if (!d)
		return base_fail_errno(err, r, "cannot follow dynamic code");
	d->config = *config;
	d->id = (uint32_t)getpid();
	d->spool.fd = d->spool.memory_fd = -1;
	d->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	d->intake = (struct dyn_intake){ .epoll = -1, .listener = -1, .queue = -1, .spare = -1 };
	d->host = strdup(config->host ? config->host : "");
	if (base_buf_printf(&name, "%s/dcpid-pseudoimg",
			    config->helper_dir ? config->helper_dir : "") == 0)
		d->program = strdup((const char *)name.data);
	base_buf_release(&name);
	d->helper =
		(struct pseudoimg_helper){ d->program, config->meanwhile, config->meanwhile_ctx };
	if (!d->host || !d->program) {
		base_fail_errno(err, r, "cannot follow dynamic code");
		goto out;
	}
	if (config->run_dir)
		read_boot(d);
	d->spool.budgets = config->budgets;
	r = dyn_spool_open(&d->spool, config->db ? profdb_dyn_fd(config->db) : -1);
	if (r < 0) {
		base_fail_errno(err, r, "cannot make a file for routines");
		goto out;
	}
	r = dyn_intake_open(&d->intake, config->run_dir, config->queue_name, err);
	if (r == 0)
		*out = d;
out:
	if (r < 0)
		dyn_close(d);
	return r;
}

void dyn_close(struct dyn *d)
{
	if (!d)
		return;
	dyn_merge_forget(d);
	dyn_files_release(d);
	while (d->registries)
		dyn_registry_free(d->registries);
	dyn_intake_release(d);
	dyn_spool_close(&d->spool);
	dyn_trace_release(&d->trace);
	if (d->wake_fd >= 0)
		close(d->wake_fd);
	free(d->host);
	free(d->program);
	free(d);
}

size_t dyn_poll_fds(const struct dyn *d, int *fds, size_t max)
{
	const int ours[] = { d->intake.epoll, d->wake_fd };
	size_t nr = 0;

	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours) && nr < max; i++)
		if (ours[i] >= 0)
			fds[nr++] = ours[i];
	return nr;
}

/* ---- clients --------------------------------------------------------------------------------- */

/* All that it holds itself: its own registry, then what else tells. NULL: that was the last. */
static struct dyn_registry *held(const struct dyn_client *c, size_t i)
{
	if (c->own)
		return i ? (i <= c->nr_sources ? c->sources[i - 1] : NULL) : c->own;
	return i < c->nr_sources ? c->sources[i] : NULL;
}

/* Its process is over: read a last time. */
static void end_source(struct dyn_registry *reg)
{
	if (reg->over)
		return;
	dyn_source_read(reg, true);
	reg->over = true;
	reg->nr_changes++;
	dyn_registry_detach(reg);
}

static void fork_remove(struct dyn_lifetimes *t, uint64_t fork_ns)
{
	size_t at = dyn_first_fork(t, fork_ns);

	if (!at || t->forks[at - 1] != fork_ns)
		return;
	memmove(t->forks + at - 1, t->forks + at, (t->nr_forks - at) * sizeof(*t->forks));
	t->nr_forks--;
}

/* One reference less; with the last one goes what it holds. */
static void client_put(struct dyn_client *c)
{
	struct dyn_registry *reg;

	while (c && --c->refs == 0) {
		struct dyn_client *up = c->inherited;

		/* One that another client has too goes on with that. Its last reading takes @c. */
		for (size_t i = 0; i < c->nr_sources; i++)
			if (c->sources[i]->refs == 1)
				end_source(c->sources[i]);
		for (size_t i = 0; up && (reg = held(up, i)); i++)
			fork_remove(&reg->lifetimes, c->fork_ns);
		for (size_t i = 0; (reg = held(c, i)); i++)
			reg->refs--;
		free(c);
		c = up;
	}
}

/* Does @c hold what @of inherited? Numbers in /proc, and what processes say, may go in a circle. */
static bool is_of(const struct dyn_client *c, const struct dyn_client *of)
{
	while (of && of != c)
		of = of->inherited;
	return of != NULL;
}

int dyn_lifetime_fork_add(struct dyn_lifetimes *t, uint64_t fork_ns)
{
	int r = base_grow(&t->forks, &t->cap_forks, t->nr_forks + 1, sizeof(*t->forks));
	size_t at;

	if (r < 0)
		return r;
	at = dyn_first_fork(t, fork_ns);
	memmove(t->forks + at + 1, t->forks + at, (t->nr_forks++ - at) * sizeof(*t->forks));
	t->forks[at] = fork_ns;
	return 0;
}

void dyn_fork(struct dyn *d, struct process *parent, struct process *child, uint64_t time_ns,
	      const uint64_t *cursor)
{
	struct dyn_client *from = parent->dyn, *c = child->dyn;
	uint64_t seq = cursor ? *cursor : 0;
	bool has_seq = cursor != NULL;
	struct dyn_registry *reg;

	(void)d;
	/* A parent with nothing of its own hands on what it inherited, as of its own birth.
	 * Functions of interpreters are told of each process. */
	if (from && (!held(from, 0) || held(from, 0)->kind == DYN_FUNCTIONS)) {
		time_ns = time_ns < from->fork_ns ? time_ns : from->fork_ns;
		has_seq = from->has_seq;
		seq = from->fork_seq;
		from = from->inherited;
	}
	if (!from || (c && (c->inherited || is_of(c, from))) || !(c = dyn_client_of(child)))
		return;
	c->inherited = from;
	c->fork_ns = time_ns;
	c->fork_seq = seq;
	c->has_seq = has_seq;
	from->refs++;
	for (size_t i = 0; (reg = held(from, i)); i++)
		if (reg->kind != DYN_FUNCTIONS &&
		    dyn_lifetime_fork_add(&reg->lifetimes, time_ns) < 0)
			base_log(BASE_LOG_ERROR, "no memory for the child of process %d",
				 parent->pid);
}

/*
 * As it stands in the memory of @child, where @from said that it does. One that holds up the reader
 * may be one of thousands: no other is asked for that registry.
 */
static bool inherited_read(struct dyn_registry *from, const struct process *child,
			   struct wire_inherited *out)
{
	struct reader *reader = from->dyn->config.reader;
	uint8_t page[WIRE_PAGE];
	size_t off = from->h.inherited_addr % sizeof(page), len = off + sizeof(*out);
	ssize_t n;

	if (!reader || from->unresponsive)
		return false;
	n = reader_code_read(reader, child->pid, from->h.inherited_addr - off, page, len);
	from->unresponsive = n == -ETIMEDOUT || n == -DCPI_EHELPER;
	if (n != (ssize_t)len)
		return false;
	memcpy(out, page + off, sizeof(*out));
	return true;
}

/* The time is CLOCK_MONOTONIC's, to a tick. */
static uint64_t began_ns(const struct process *child)
{
	uint64_t ahead = base_boot_ahead_ns();

	return child->start_time_ns > ahead ? child->start_time_ns - ahead : 0;
}

bool dyn_inherit(struct dyn *d, struct process *ancestor, struct process *child)
{
	struct dyn_registry *from = ancestor->dyn ? ancestor->dyn->own : NULL;
	const struct dyn_registry *own = child->dyn ? child->dyn->own : NULL;
	struct wire_inherited has = { 0 };

	if (!from || !from->h.number || !from->h.inherited_addr)
		return false;
	if (child->dyn && child->dyn->inherited)
		return false;
	if (own)
		has = own->h.inherited;
	else if (!inherited_read(from, child, &has))
		return false;
	if (has.registry != from->h.number)
		return false;
	dyn_fork(d, ancestor, child, began_ns(child), &has.seq);
	return child->dyn && child->dyn->inherited;
}

int dyn_hand_on(struct process *from, struct process *to)
{
	struct dyn_client *c = from->dyn;

	if (!c || !c->own)
		return 0;
	if (!dyn_client_of(to))
		return -ENOMEM;
	/* Processes forked from @from before cannot have it either. */
	c->own->lifetimes.nr_forks = 0;
	to->dyn->own = c->own;
	c->own = NULL;
	from->watched &= c->nr_sources > 0;
	if (!c->inherited && !c->nr_sources) {
		client_put(c);
		from->dyn = NULL;
	}
	return 0;
}

void dyn_end(struct dyn *d, struct process *p)
{
	struct dyn_registry *reg = p->dyn ? p->dyn->own : NULL;

	(void)d;
	if (reg && !reg->over) {
		/* The ring outlives its writer. Nobody waits for an answer any more. */
		if (d->config.reader)
			dyn_registry_read(reg, false);
		reg->over = true;
		reg->nr_changes++;
		if (reg->exe[0] != '/' && p->exe)
			snprintf(reg->exe, sizeof(reg->exe), "%s", p->exe);
		dyn_registry_detach(reg);
	}
	client_put(p->dyn);
	p->dyn = NULL;
}

int dyn_records(struct dyn *d, struct process *p, uint64_t time_ns, const void *data, size_t len)
{
	struct dyn_registry *reg;
	int r;

	if (!dyn_client_of(p))
		return -ENOMEM;
	if (!p->dyn->own) {
		r = dyn_registry_new(d, p, DYN_REGISTRY, -1, &reg);
		if (r < 0)
			return r;
		reg->refs++;
		p->dyn->own = reg;
	}
	reg = p->dyn->own;
	reg->nr_bad += (uint64_t)dyn_apply(reg, data, len, reg->read_ns, time_ns);
	reg->read_ns = time_ns;
	dyn_lifetime_forget(&reg->lifetimes, time_ns);
	dyn_facility_drop_unused(reg);
	return 0;
}

static bool read_any(struct dyn_registry *reg, bool ranges)
{
	struct budgets *b = reg->dyn->config.budgets;
	uint64_t since_ns = budget_begin(b);
	bool news = reg->kind == DYN_REGISTRY ? dyn_registry_read(reg, ranges)
					      : dyn_source_read(reg, ranges);

	budget_end(b, reg->uid, since_ns);
	return news;
}

void dyn_read_ended(struct dyn *d, struct process *p)
{
	struct dyn_registry *reg = p->dyn ? p->dyn->own : NULL;

	if (reg && reg->skipped && !reg->over && d->config.reader)
		read_any(reg, false);
}

enum { SOON_READ_MAX = 256 << 10 };

/* Something is new, and little enough to be read between turns; its header is read for that. */
static bool is_soon_read(struct dyn_registry *reg)
{
	if (reg->fd < 0 || reg->refused || reg->over || dyn_registry_is_put_off(reg) ||
	    reg->place.list_at != REGISTRY_NO_LIST)
		return false;
	dyn_registry_peek(reg);
	return reg->dirty && reg->h.head - reg->place.tail <= SOON_READ_MAX;
}

bool dyn_read_early(struct dyn *d, const struct process *p, uint64_t after_ns)
{
	struct dyn_registry *reg = p->dyn ? p->dyn->own : NULL;

	if (!reg || reg->over || reg->kind != DYN_REGISTRY || !d->config.reader ||
	    base_now_ns() - reg->read_ns < after_ns ||
	    (d->config.budgets && !budget_has_turn(d->config.budgets, reg->uid)) ||
	    !is_soon_read(reg))
		return false;
	return read_any(reg, false);
}

bool dyn_refresh(struct dyn *d, bool ranges)
{
	struct dyn_registry *first = NULL;
	bool news = false;

	if (!d->config.reader)
		return false;
	for (struct dyn_registry *reg = d->registries; reg; reg = reg->next) {
		if (!d->hasty || budget_has_turn(d->config.budgets, reg->uid)) {
			news |= read_any(reg, ranges);
			continue;
		}
		reg->skipped = true;
		first = first ? first : reg;
	}
	d->unread = first != NULL;
	dyn_begin_with(d, first);
	return news;
}

void dyn_settled(struct dyn *d, uint64_t time_ns)
{
	d->settled_ns = time_ns;
}

uint64_t dyn_news(const struct process *p)
{
	const struct dyn_registry *reg;
	uint64_t news = 0;

	for (const struct dyn_client *c = p->dyn; c; c = c->inherited)
		for (size_t i = 0; (reg = held(c, i)); i++)
			news += 1 + reg->nr_changes;
	return news;
}

bool dyn_has_registry(const struct process *p)
{
	return p->dyn && p->dyn->own;
}

/* An inherited list does not change any more. */
bool dyn_reuses(const struct process *p)
{
	const struct dyn_registry *reg;
	bool reused = false;

	for (size_t i = 0; p->dyn && !reused && (reg = held(p->dyn, i)); i++)
		reused = reg->lifetimes.reused || reg->kind == DYN_JITDUMP;
	return reused;
}

/* Asked of each count in a file: most lie outside of all that the process said. */
static bool covers(const struct dyn_registry *reg, uint64_t addr)
{
	if (reg->kind > DYN_GDB || addr < reg->low || addr >= reg->high)
		return false;
	for (size_t k = 0; k < WIRE_NR_FACILITIES; k++)
		if (reg->facilities[k] && interval_find(&reg->facilities[k]->pages, addr))
			return true;
	return false;
}

bool dyn_claims(const struct process *p, uint64_t addr)
{
	const struct dyn_registry *reg;

	for (const struct dyn_client *c = p->dyn; c; c = c->inherited)
		for (size_t i = 0; (reg = held(c, i)); i++)
			if (covers(reg, addr))
				return true;
	return false;
}

/* Tell of routines that were registered up to change @last; returns how many. */
static size_t living(const struct dyn_routines *t, uint64_t start, uint64_t end, uint64_t last,
		     void (*fn)(void *ctx, uint64_t addr, uint64_t len, uint64_t seq), void *ctx)
{
	size_t nr = 0;
	uint32_t i;

	while ((i = dyn_routine_overlap(t, t->live, start, end)) != 0) {
		const struct dyn_routine *r = dyn_routine_get(t, i);

		if (!(r->flags & DYN_HOLE) && r->seq <= last) {
			fn(ctx, r->addr, r->len, r->seq);
			nr++;
		}
		start = r->addr + r->len;
	}
	return nr;
}

void dyn_living(const struct process *p, uint64_t start, uint64_t end,
		void (*fn)(void *ctx, uint64_t addr, uint64_t len, uint64_t seq), void *ctx)
{
	const struct dyn_registry *reg;
	uint64_t last = UINT64_MAX;
	size_t nr = 0;

	for (const struct dyn_client *c = p->dyn; c && !nr; c = c->inherited) {
		for (size_t i = 0; (reg = held(c, i)); i++)
			if (reg->kind < DYN_UNNAMED)
				nr += living(&reg->lifetimes.routines, start, end, last, fn, ctx);
		/* The parent may have replaced since what the child still has. */
		if (!c->has_seq)
			break;
		last = c->fork_seq < last ? c->fork_seq : last;
	}
}

/* Another routine stood there that samples may still be of, or may have. */
static bool has_past(const struct dyn_lifetimes *t, uint64_t addr)
{
	struct dyn_past_walk w = { .addr = addr };

	return dyn_past_next(t, &w);
}

static bool lived(const struct dyn_lifetimes *t, uint32_t index, uint64_t addr, uint64_t time_ns)
{
	const struct dyn_routine *r = dyn_routine_get(&t->routines, index);

	if (r->flags & DYN_HOLE || t->nr_missed)
		return false;
	return dyn_poll_get(t, r->poll).hi <= time_ns ||
	       (!(r->flags & DYN_REUSES) && !has_past(t, addr));
}

bool dyn_lived(const struct process *p, uint64_t addr, uint64_t time_ns)
{
	const struct dyn_registry *reg;

	for (size_t i = 0; p->dyn && (reg = held(p->dyn, i)); i++) {
		const struct dyn_routines *t = &reg->lifetimes.routines;
		uint32_t n = reg->kind < DYN_UNNAMED
				     ? dyn_routine_overlap(t, t->live, addr, addr + 1)
				     : 0;

		if (n)
			return lived(&reg->lifetimes, n, addr, time_ns);
	}
	return false;
}

static size_t frames_of(const struct dyn_registry *reg, const struct dyn_routine *r,
			struct wire_frame *frames, size_t max)
{
	const struct dyn_facility *f = reg->facilities[r->facility];
	const struct wire_routine *rec = r->record ? dyn_facility_record(f, r) : NULL;
	struct wire_routine_view v;

	if (!rec || wire_routine_parse(&rec->head, &v) < 0)
		return 0;
	max = v.nr_frames < max ? v.nr_frames : max;
	if (max)
		memcpy(frames, v.frames, max * sizeof(*frames));
	return max;
}

size_t dyn_frames(const struct process *p, uint64_t addr, uint64_t seq, struct wire_frame *frames,
		  size_t max)
{
	const struct dyn_registry *reg;

	for (const struct dyn_client *c = p->dyn; c; c = c->inherited)
		for (size_t i = 0; (reg = held(c, i)); i++) {
			const struct dyn_routines *t = &reg->lifetimes.routines;
			uint32_t n = dyn_lifetime_handle(&reg->lifetimes, addr, seq);

			if (n && dyn_routine_get(t, n)->has_frames)
				return frames_of(reg, dyn_routine_get(t, n), frames, max);
			if (n)
				return 0;
		}
	return 0;
}

void dyn_ranges(const struct process *p, void (*fn)(void *ctx, uint64_t start, uint64_t end),
		void *ctx)
{
	const struct dyn_facility *f;

	for (const struct dyn_client *c = p->dyn; c; c = c->inherited)
		for (size_t i = 0; c->own && i < WIRE_NR_FACILITIES; i++) {
			f = c->own->facilities[i];
			for (const struct dyn_run *run = f ? f->first_run : NULL; run;
			     run = run->next)
				if (run->node.start < PSEUDOIMG_MODULE)
					fn(ctx, run->node.start, run->node.end);
		}
}

bool dyn_words(const struct process *p, struct driver_client *client)
{
	const struct dyn_registry *reg = p->dyn ? p->dyn->own : NULL;
	const struct wire_registry *h = reg ? &reg->h : NULL;

	if (!h || reg->fd < 0 || reg->refused || reg->no_words || !reg->life || !h->nr_words ||
	    h->nr_words > WIRE_NR_WORDS || h->nr_words & (h->nr_words - 1) || !h->words_addr ||
	    h->words_addr % 4 || h->words_addr >= REGISTRY_VADDR_MAX - 4ull * WIRE_NR_WORDS)
		return false;
	client->words = h->words_addr;
	client->nr_words = h->nr_words;
	client->cursor = h->seq_addr % 8 || h->seq_addr >= REGISTRY_VADDR_MAX - 8 ? 0 : h->seq_addr;
	if (h->words_off % WIRE_PAGE)
		return true;
	client->words_ino = reg->ino;
	client->words_off = h->words_off;
	client->words_fd = reg->fd;
	return true;
}

/* ---- code without a name --------------------------------------------------------------------- */

/* Its bytes as they are now: how many, or none. -EDQUOT: they may be had later. */
static ssize_t read_page(const struct dyn_registry *reg, uint64_t page, uint8_t code[WIRE_PAGE])
{
	const struct wire_range range = { .base = page, .len = WIRE_PAGE };
	struct base_buf b = { 0 };
	const struct wire_head *h;
	ssize_t len = 0;
	int r = -ESRCH;

	if (reg->life)
		r = reader_range_read(reg->dyn->config.reader, reg->pid, reg->uid, reg->life,
				      &range, &b);
	if (r < 0) {
		len = r == -EDQUOT ? r : 0;
		goto out;
	}
	memset(code, 0, WIRE_PAGE);
	WIRE_FOR_EACH (h, b.data, b.len, pos) {
		const struct wire_bytes *bytes = (const void *)h;

		if (bytes->vaddr < page || bytes->vaddr - page > WIRE_PAGE ||
		    bytes->bytes_len > WIRE_PAGE - (bytes->vaddr - page))
			goto out;
		memcpy(code + (bytes->vaddr - page), bytes + 1, bytes->bytes_len);
		len = WIRE_PAGE;
	}
out:
	base_buf_release(&b);
	return len;
}

/* Named by its place in the mapping, so that it is the same in each run. */
static int add_page(struct dyn_registry *reg, uint64_t page, uint64_t map_start)
{
	uint64_t record[(sizeof(struct wire_routine) + 64 + WIRE_PAGE + 8) / sizeof(uint64_t)];
	struct wire_routine *r = (void *)record;
	uint8_t code[WIRE_PAGE];
	ssize_t code_len = read_page(reg, page, code);
	char *name = (char *)(r + 1);

	if (code_len < 0)
		return (int)code_len;
	memset(record, 0, sizeof(record));
	*r = (struct wire_routine){ .head.type = WIRE_ROUTINE,
				    .seq = reg->lifetimes.last_seq + 1,
				    .addr = page,
				    .code_len = WIRE_PAGE };
	r->name_len = (uint32_t)snprintf(name, 64, "[anonymous]+0x%llx",
					 (unsigned long long)(page - map_start));
	r->head.len = (uint32_t)wire_routine_len(r->name_len, WIRE_PAGE, (size_t)code_len, 0, 0, 0);
	if (code_len) {
		r->head.flags = WIRE_ROUTINE_CODE | WIRE_ROUTINE_FETCHED;
		memcpy(name + r->name_len, code, (size_t)code_len);
	}
	/* It was there before anybody looked. */
	return dyn_apply(reg, record, r->head.len, 0, 0) ? -ENOMEM : 0;
}

/* The page at the address, which has no name: kept as it is now. DYN_FOUND, DYN_NO_CAPACITY,
 * DYN_NO_BUDGET, DYN_NONE. */
static enum dyn_where find_unnamed(struct dyn *d, struct process *p, const struct dyn_query *q,
				   struct image **image, uint64_t *off)
{
	uint64_t page = q->addr & ~(uint64_t)(WIRE_PAGE - 1);
	const struct dyn_ask ask = { .addr = q->addr, .first_ns = 1, .time_ns = UINT64_MAX };
	struct dyn_registry *reg;
	bool sure;
	int r;

	if (!d->config.reader || !dyn_client_of(p))
		return DYN_NONE;
	reg = dyn_source_find(p->dyn, DYN_UNNAMED);
	if (!reg && dyn_source_new(d, p, DYN_UNNAMED, -1, &reg) < 0)
		return DYN_NONE;
	if (!dyn_routine_living(&reg->lifetimes.routines, q->addr)) {
		/* It would be read for each sample. */
		if (reg->crowded)
			return DYN_NONE;
		r = add_page(reg, page, q->map_start <= page ? q->map_start : page);
		if (r < 0)
			return r == -EDQUOT ? DYN_NO_BUDGET : DYN_NONE;
	}
	reg->lifetimes.wants_list = false;
	return dyn_registry_lookup(reg, &ask, image, off, &sure);
}

/* ---- look-ups -------------------------------------------------------------------------------- */

/* Something that would tell of its code was not read. */
static bool is_starved(const struct dyn_client *c)
{
	const struct dyn_registry *reg;
	bool starved = false;

	for (; c && !starved; c = c->inherited)
		for (size_t i = 0; !starved && (reg = held(c, i)); i++)
			starved = reg->starved;
	return starved;
}

/* Changes with time stamps are announced late: a later one says that none is missing before it. */
static bool may_be_announced(const struct dyn_registry *reg, uint64_t time_ns)
{
	return reg->kind == DYN_JITDUMP && !reg->refused && !reg->over &&
	       time_ns >= reg->announced_ns;
}

/* Ask by time the first of @c's sources that knows the address. DYN_LATER not where @last. */
static enum dyn_where ask_sources(const struct dyn_client *c, const struct dyn_ask *ask, bool last,
				  struct image **image, uint64_t *off)
{
	enum dyn_where where = DYN_NONE;

	for (size_t i = 0; where == DYN_NONE && i < c->nr_sources; i++) {
		struct dyn_registry *reg = c->sources[i];
		struct dyn_ask by_time = *ask;
		bool sure;

		if (reg->kind >= DYN_UNNAMED)
			continue;
		by_time.by_seq = by_time.forked = by_time.awaits_next = false;
		where = !last && may_be_announced(reg, ask->time_ns)
				? DYN_LATER
				: dyn_registry_lookup(reg, &by_time, image, off, &sure);
	}
	return where;
}

static enum dyn_where lookup(const struct dyn_client *c, const struct dyn_query *q,
			     struct image **image, uint64_t *off)
{
	struct dyn_ask ask = { .addr = q->addr,
			       .first_ns = q->first_ns,
			       .time_ns = q->time_ns,
			       .mapped_ns = q->mapped_ns };
	enum dyn_where found = DYN_NONE;
	bool own = true;

	for (; c; c = c->inherited) {
		enum dyn_where where = DYN_NONE;
		struct image *img = NULL;
		uint64_t at = 0;
		bool sure = false;

		if (own && q->generation_read && c->own) {
			ask.by_seq = true;
			ask.seq = dyn_registry_seq(c->own, q->generation);
		}
		ask.awaits_next = ask.by_seq && own && !q->last && !c->inherited;
		if (c->own)
			where = dyn_registry_lookup(c->own, &ask, &img, &at, &sure);
		if (where == DYN_NONE)
			where = ask_sources(c, &ask, q->last, &img, &at);
		/* Until the child's own came, what it inherited may have stood there; where the
		 * word tells that its own came later, it did. */
		if (where != DYN_NONE && found != DYN_NONE && !q->generation_read)
			return DYN_REUSED;
		if (where != DYN_NONE) {
			found = where;
			*image = img;
			*off = at;
		}
		if ((where != DYN_NONE && where != DYN_FOUND) || sure)
			break;
		/* Inherited code is what it was at the fork. */
		ask.time_ns = ask.time_ns < c->fork_ns ? ask.time_ns : c->fork_ns;
		ask.first_ns = ask.time_ns;
		ask.by_seq = c->has_seq;
		ask.forked = true;
		ask.seq = c->fork_seq;
		own = false;
	}
	return found;
}

/* Prefetches the memory that the next look-ups will read. */
static void expect_next(const struct dyn_query *q)
{
	static const size_t ahead[] = { 16, 8 };

	for (unsigned int step = 0; step < 2; step++) {
		const struct sample *s = ahead[step] < q->nr_next ? &q->next[ahead[step]] : NULL;

		if (s && dyn_has_registry(s->p))
			dyn_routine_expect(&s->p->dyn->own->lifetimes.routines, s->addr, step);
	}
}

enum dyn_where dyn_lookup(struct dyn *d, struct process *p, const struct dyn_query *q,
			  struct image **image, uint64_t *off)
{
	bool unread = q->generation_unread;
	enum dyn_where where;

	expect_next(q);
	where = lookup(p->dyn, q, image, off);
	/* Runtimes write files late. */
	if (where == DYN_NONE && q->dynamic && !dyn_has_registry(p))
		where = q->last || !p->dyn ? find_unnamed(d, p, q, image, off) : DYN_LATER;
	if (where == DYN_LATER && !q->last)
		dyn_wait(p, q->first_ns);
	if (where == DYN_LATER && q->last)
		where = unread || q->generation_read ? DYN_GENERATION : DYN_REUSED;
	else if (where == DYN_REUSED && unread)
		where = DYN_GENERATION;
	if ((where == DYN_NONE || where == DYN_REUSED || where == DYN_GENERATION) &&
	    is_starved(p->dyn))
		where = DYN_NO_BUDGET;
	if (where != DYN_LATER && unread)
		d->stats.generations_unread += q->count;
	return where;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static bool wants_flush(const struct dyn *d)
{
	for (const struct dyn_registry *reg = d->registries; reg; reg = reg->next)
		if (dyn_registry_wants_flush(reg))
			return true;
	return false;
}

void dyn_begin_flush(struct dyn *d)
{
	d->flush_ns = base_now_ns();
}

bool dyn_is_behind(const struct dyn *d)
{
	for (size_t i = 0; i < d->nr_handed; i++)
		if (d->handed[i].made_ns < d->flush_ns && !d->handed[i].again_ns)
			return true;
	for (const struct dyn_registry *reg = d->registries; reg; reg = reg->next)
		if (reg->served_ns < d->flush_ns)
			return true;
	return false;
}

bool dyn_is_catching_up(const struct dyn *d)
{
	if (d->unread || (d->unwritten && wants_flush(d)))
		return true;
	for (size_t i = 0; i < d->nr_handed; i++)
		if (base_now_ns() >= d->handed[i].again_ns)
			return true;
	for (const struct dyn_registry *reg = d->registries; reg; reg = reg->next)
		if (dyn_registry_is_catching_up(reg) && !dyn_registry_is_put_off(reg))
			return true;
	return false;
}

void dyn_stats_get(const struct dyn *d, struct dyn_stats *out)
{
	*out = d->stats;
	out->registries_refused = d->intake.nr_refused;
	out->records_bad += d->bad_gone;
	out->records_dropped += d->dropped_gone;
	out->entries_left_out += d->left_out_gone;
	out->changes_missed += d->missed_gone;
	for (const struct dyn_registry *reg = d->registries; reg; reg = reg->next) {
		out->records_bad += reg->nr_bad;
		out->records_dropped += dyn_believed(reg->h.nr_dropped);
		out->entries_left_out += dyn_believed(reg->h.nr_left_out);
		out->changes_missed += reg->lifetimes.nr_missed;
	}
}
