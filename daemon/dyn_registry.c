/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "dyn_internal.h"
#include "registry.h"

/* Of one reading: the rest comes with the next, so that one client does not hold up the others. */
enum { READS_MAX = 16 };
#define BUDGET_NS      1000000000ull
#define PAUSE_FIRST_NS 1000000000ull
#define PAUSE_MAX_NS   (60 * 1000000000ull)

/* ---- life ------------------------------------------------------------------------------------ */

static void describe(struct dyn_registry *reg, const struct process *p)
{
	char link[64];
	ssize_t n;

	reg->pid = p->pid;
	reg->uid = p->uid;
	reg->start_time_ns = p->start_time_ns;
	reg->created_s = (uint64_t)time(NULL);
	snprintf(reg->exe, sizeof(reg->exe), "%.*s", (int)sizeof(p->comm), p->comm);
	if (reg->fd < 0) {
		reg->created_s = 0;
		return;
	}
	registry_process_life(p->pid, reg->start_time_ns ? NULL : &reg->start_time_ns, &reg->life);
	snprintf(link, sizeof(link), "/proc/%d/exe", p->pid);
	n = readlink(link, reg->exe, sizeof(reg->exe) - 1);
	if (n > 0)
		reg->exe[n] = '\0';
}

static int put(const struct dyn_registry *reg, size_t off, const void *value, size_t len)
{
	ssize_t n = pwrite(reg->fd, value, len, (off_t)off);

	return n < 0 ? -errno : n == (ssize_t)len ? 0 : -EIO;
}
#define PUT(reg, field, value)                                                                     \
	put((reg), offsetof(struct wire_registry, field), (value), sizeof(*(value)))

static int attach(struct dyn_registry *reg)
{
	struct stat st;
	int r;

	if (fstat(reg->fd, &st) < 0)
		return -errno;
	reg->dev = st.st_dev;
	reg->ino = st.st_ino;
	r = registry_header_read(reg->fd, &reg->h);
	if (r < 0)
		return r;
	/* A daemon before us took what lies before tail, but until the ring is full it is still
	 * there. */
	reg->tail = reg->h.head <= reg->h.ring_len ? 0 : reg->h.tail;
	reg->flush_answered = reg->h.flush_done;
	reg->dirty = true;
	r = PUT(reg, attached, &reg->dyn->id);
	reg->attached = r == 0;
	return r;
}

int dyn_registry_new(struct dyn *d, const struct process *p, int fd, struct dyn_registry **out)
{
	struct dyn_registry *reg = calloc(1, sizeof(*reg));
	int r = 0;

	if (!reg) {
		if (fd >= 0)
			close(fd);
		return -ENOMEM;
	}
	reg->dyn = d;
	reg->fd = fd;
	reg->budget_ns = BUDGET_NS;
	reg->next = d->registries;
	d->registries = reg;
	d->stats.clients++;
	describe(reg, p);
	if (fd >= 0)
		r = attach(reg);
	if (r < 0) {
		dyn_registry_free(reg);
		return r;
	}
	*out = reg;
	return 0;
}

static void unlist(struct dyn_registry *reg)
{
	struct dyn_registry **at = &reg->dyn->registries;

	while (*at && *at != reg)
		at = &(*at)->next;
	if (*at)
		*at = reg->next;
}

void dyn_registry_detach(struct dyn_registry *reg)
{
	static const uint32_t none;

	if (reg->fd < 0)
		return;
	if (reg->attached)
		PUT(reg, attached, &none);
	close(reg->fd);
	reg->fd = -1;
	reg->attached = false;
}

void dyn_registry_trim(struct dyn_registry *reg)
{
	for (size_t i = 0; i < reg->nr_ranges; i++) {
		dyn_registry_give_back(reg, reg->ranges[i].contents.len);
		base_buf_release(&reg->ranges[i].contents);
	}
}

void dyn_registry_free(struct dyn_registry *reg)
{
	dyn_registry_detach(reg);
	unlist(reg);
	for (size_t i = 0; i < WIRE_NR_FACILITIES; i++) {
		reg->dyn->stats.facilities -= reg->facilities[i] != NULL;
		dyn_facility_free(reg->facilities[i]);
	}
	for (size_t i = 0; i < reg->nr_ranges; i++) {
		base_buf_release(&reg->ranges[i].contents);
		dyn_tree_release(&reg->ranges[i].changed);
	}
	free(reg->ranges);
	dyn_tenant_release(&reg->tenants);
	reg->dyn->bytes -= reg->bytes;
	reg->dyn->bad_gone += reg->nr_bad;
	reg->dyn->dropped_gone += reg->h.nr_dropped;
	reg->dyn->stats.clients--;
	free(reg);
}

bool dyn_registry_room(struct dyn_registry *reg, uint64_t len)
{
	if (len > DYN_REGISTRY_BYTES_MAX - reg->bytes || len > DYN_ALL_BYTES_MAX - reg->dyn->bytes)
		return false;
	reg->bytes += len;
	reg->dyn->bytes += len;
	return true;
}

void dyn_registry_give_back(struct dyn_registry *reg, uint64_t len)
{
	reg->bytes -= len;
	reg->dyn->bytes -= len;
}

/* ---- reading ------------------------------------------------------------------------------- */

int dyn_registry_peek(struct dyn_registry *reg)
{
	struct wire_registry h;
	int r;

	if (reg->fd < 0 || reg->refused)
		return 0;
	r = registry_header_read(reg->fd, &h);
	/* Where things are was said once; a header that says otherwise later lies. */
	if (r == 0 && (h.total_len != reg->h.total_len || h.ring_off != reg->h.ring_off ||
		       h.ring_len != reg->h.ring_len))
		r = -DCPI_EFORMAT;
	if (r < 0) {
		base_log(BASE_LOG_WARN, "the registry of process %d is not read any more: %s",
			 reg->pid, base_strerror(r));
		reg->refused = true;
		reg->nr_bad++;
		return r;
	}
	if (h.head != reg->h.head || h.nr_facilities != reg->h.nr_facilities ||
	    h.nr_ranges != reg->h.nr_ranges || h.flush_wanted != reg->h.flush_wanted)
		reg->dirty = true;
	reg->h = h;
	return 0;
}

static void take(struct dyn_registry *reg, const struct base_buf *b, int nr_bad, uint64_t hi)
{
	const struct dyn_config *c = &reg->dyn->config;

	if (c->record && b->len)
		c->record(c->record_ctx, reg->pid, hi, b->data, b->len);
	reg->nr_bad +=
		(uint64_t)nr_bad + (uint64_t)dyn_apply(reg, b->data, b->len, reg->read_ns, hi);
}

/* Each request may take a second: many that almost do are as bad as one that does. */
static int check_budget(uint64_t deadline_ns)
{
	return base_now_ns() < deadline_ns ? 0 : -ETIMEDOUT;
}

static int read_ring(struct dyn_registry *reg, uint64_t deadline_ns)
{
	struct base_buf b = { 0 };
	int r = 0;

	for (int i = 0; r >= 0 && reg->dirty && i < READS_MAX; i++) {
		uint64_t tail = reg->tail;

		base_buf_clear(&b);
		r = reader_registry_read(reg->dyn->config.reader, reg->fd, reg->pid, reg->uid,
					 reg->life, &tail, &b);
		if (r == -ESTALE && reg->tail < reg->h.tail) {
			reg->tail = reg->h.tail;
			r = 0;
			continue;
		}
		if (r < 0)
			break;
		take(reg, &b, r, base_now_ns());
		/* Kept now, so the ring's room may be used again. */
		reg->tail = tail;
		PUT(reg, tail, &tail);
		reg->dirty = tail < reg->h.head;
		if (reg->dirty)
			r = check_budget(deadline_ns);
	}
	base_buf_release(&b);
	return r < 0 ? r : 0;
}

/* In steps: what lies lowest was written first, so a step of nothing but zeros is the end. */
static int read_range(struct dyn_registry *reg, struct dyn_range *range, uint64_t deadline_ns)
{
	const struct dyn_config *c = &reg->dyn->config;
	struct base_buf b = { 0 };
	int r = 0;

	for (uint64_t off = 0; r >= 0 && off < range->range.len; off += REGISTRY_RANGE_MAX) {
		struct wire_range part = range->range;
		size_t before = b.len;

		r = off ? check_budget(deadline_ns) : 0;
		if (r < 0)
			break;
		part.base += off;
		part.len -= off;
		part.len = part.len < REGISTRY_RANGE_MAX ? part.len : REGISTRY_RANGE_MAX;
		r = reader_range_read(c->reader, reg->pid, reg->uid, reg->life, &part, &b);
		if (b.len == before || b.len > DYN_REGISTRY_BYTES_MAX)
			break;
	}
	if (r >= 0) {
		if (c->record && b.len)
			c->record(c->record_ctx, reg->pid, base_now_ns(), b.data, b.len);
		r = dyn_apply_contents(reg, range, b.data, b.len);
	}
	base_buf_release(&b);
	/* A process that is gone has said all it will; what was read before stays. */
	return r < 0 && r != -ESRCH && r != -DCPI_ELIMIT ? r : 0;
}

/* At least one, whatever time is left. */
static int read_ranges(struct dyn_registry *reg, bool all, uint64_t deadline_ns)
{
	size_t first = reg->next_range, nr_read = 0;
	int r = 0;

	if (reg->over || !reg->life)
		return 0;
	for (size_t i = 0; r == 0 && i < reg->nr_ranges; i++) {
		size_t at = (first + i) % reg->nr_ranges;
		struct dyn_range *range = &reg->ranges[at];

		if (!range->known || !(range->range.flags & WIRE_RANGE_OWNED) ||
		    (range->read && !all))
			continue;
		r = nr_read++ ? check_budget(deadline_ns) : 0;
		if (r < 0)
			break;
		reg->next_range = at + 1;
		r = read_range(reg, range, deadline_ns);
	}
	return r;
}

/* One that makes the reader wait is asked more and more rarely. */
static void set_pause(struct dyn_registry *reg, int r)
{
	if (r != -ETIMEDOUT && r != -DCPI_EHELPER) {
		reg->pause_ns = 0;
		return;
	}
	reg->pause_ns = reg->pause_ns ? reg->pause_ns * 2 : PAUSE_FIRST_NS;
	reg->pause_ns = reg->pause_ns < PAUSE_MAX_NS ? reg->pause_ns : PAUSE_MAX_NS;
	reg->pause_until_ns = base_now_ns() + reg->pause_ns;
	base_log(BASE_LOG_WARN, "process %d cannot be read (%s): next try in %llu s", reg->pid,
		 base_strerror(r), (unsigned long long)(reg->pause_ns / 1000000000));
}

bool dyn_registry_read(struct dyn_registry *reg, bool ranges)
{
	uint64_t now = base_now_ns(), deadline = now + reg->budget_ns;
	bool news = false;
	uint32_t wanted;
	int r = 0;

	if (reg->fd < 0 || reg->refused)
		return false;
	dyn_registry_peek(reg);
	wanted = reg->h.flush_wanted;
	if (now < reg->pause_until_ns) {
		r = -ETIMEDOUT;
	} else {
		news = reg->dirty;
		r = reg->refused ? -DCPI_EFORMAT : read_ring(reg, deadline);
		/* After a pause there may be ranges left that were not read yet. */
		if (r == 0 && (news || ranges || reg->pause_ns))
			r = read_ranges(reg, ranges, deadline);
		set_pause(reg, r);
	}
	/* Only when all was read up to the header seen above was nothing else there before now. */
	if (r == 0 && !reg->dirty)
		reg->read_ns = now;
	if (ranges && (r < 0 || !reg->dirty)) {
		reg->flush_ready = wanted;
		reg->flush_error = r;
	}
	dyn_tenant_forget(&reg->tenants, reg->dyn->settled_ns);
	return news;
}

/* ---- flush requests -------------------------------------------------------------------------- */

bool dyn_registry_wants_flush(const struct dyn_registry *reg)
{
	return reg->fd >= 0 && !reg->over && !reg->refused &&
	       reg->h.flush_wanted != reg->flush_answered && reg->h.flush_wanted != 0;
}

void dyn_registry_answer(struct dyn_registry *reg, int status)
{
	int32_t code = reg->flush_error ? reg->flush_error : status;

	if (!dyn_registry_wants_flush(reg) || reg->flush_ready == reg->flush_answered)
		return;
	PUT(reg, flush_status, &code);
	PUT(reg, flush_done, &reg->flush_ready);
	reg->flush_answered = reg->flush_ready;
}

/* ---- lookup ---------------------------------------------------------------------------------- */

static const struct dyn_range *range_at(const struct dyn_registry *reg, uint64_t addr)
{
	for (size_t i = 0; i < reg->nr_ranges; i++) {
		const struct dyn_range *range = &reg->ranges[i];

		if (range->known && range->range.kind == WIRE_RANGE_CODE &&
		    addr >= range->range.base && addr - range->range.base < range->range.len)
			return range;
	}
	return NULL;
}

/* An address of a declared range in no routine: the range's own place, if nobody else has it. */
static enum dyn_where in_range(const struct dyn_registry *reg, uint64_t addr, uint64_t first_ns,
			       uint64_t time_ns, struct dyn_facility **f, bool *sure)
{
	const struct dyn_range *range = range_at(reg, addr);

	if (!range || time_ns <= range->lo)
		return DYN_NONE;
	*f = reg->facilities[range->range.facility];
	*sure = first_ns >= range->hi;
	if (dyn_tree_find(&(*f)->occupied, addr))
		return DYN_NONE;
	if (first_ns <= range->lo)
		return DYN_REUSED;
	return dyn_tree_find(&range->changed, addr) ? DYN_REUSED : DYN_FOUND;
}

enum dyn_where dyn_registry_lookup(const struct dyn_registry *reg, uint64_t addr, uint64_t first_ns,
				   uint64_t time_ns, struct image **image, uint64_t *off,
				   bool *sure)
{
	struct dyn_facility *f = NULL;
	uint64_t elf = addr;
	enum dyn_where where =
		dyn_tenant_find(&reg->tenants, addr, first_ns, time_ns, &f, &elf, sure);

	if (where == DYN_NONE) {
		elf = addr;
		where = in_range(reg, addr, first_ns, time_ns, &f, sure);
	}
	if (where != DYN_FOUND)
		return where;
	if (dyn_facility_offset(f, elf, off) < 0)
		return DYN_NONE;
	*image = f->image;
	f->image->behind |= f->changed;
	return DYN_FOUND;
}
