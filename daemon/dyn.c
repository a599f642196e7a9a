/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "dyn_internal.h"

/* Of one call, so that a crowd at the socket does not hold up sampling. */
enum { TAKE_MAX = 256 };

/* ---- open and close ------------------------------------------------------------------------ */

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
	d->intake = (struct dyn_intake){ .epoll = -1, .listener = -1, .queue = -1, .spare = -1 };
	d->host = strdup(config->host ? config->host : "");
	if (base_buf_printf(&name, "%s/dcpid-pseudoimg",
			    config->helper_dir ? config->helper_dir : "") == 0)
		d->helper = strdup((const char *)name.data);
	base_buf_release(&name);
	if (!d->host || !d->helper) {
		base_fail_errno(err, r, "cannot follow dynamic code");
		goto out;
	}
	if (config->run_dir)
		read_boot(d);
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
	while (d->registries)
		dyn_registry_free(d->registries);
	dyn_intake_close(&d->intake);
	free(d->host);
	free(d->helper);
	free(d);
}

size_t dyn_poll_fds(const struct dyn *d, int *fds, size_t max)
{
	if (d->intake.epoll < 0 || !max)
		return 0;
	fds[0] = d->intake.epoll;
	return 1;
}

/* ---- clients --------------------------------------------------------------------------------- */

static struct dyn_client *client_new(struct process *p)
{
	struct dyn_client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->refs = 1;
	p->dyn = c;
	return c;
}

static void client_put(struct dyn_client *c)
{
	while (c && --c->refs == 0) {
		struct dyn_client *up = c->inherited;

		if (c->own)
			c->own->refs--;
		free(c);
		c = up;
	}
}

static struct dyn_registry *find_file(const struct dyn *d, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return NULL;
	for (struct dyn_registry *reg = d->registries; reg; reg = reg->next)
		if (reg->fd >= 0 && reg->dev == st.st_dev && reg->ino == st.st_ino)
			return reg;
	return NULL;
}

/*
 * A registry of @p; @fd is taken over. -EEXIST: it is known already. -EPERM: another one is, and a
 * life of a process has one.
 */
static int adopt(struct dyn *d, struct process *p, int fd)
{
	struct dyn_registry *reg;
	bool fresh = !p->dyn;
	int r = 0;

	if (find_file(d, fd))
		r = -EEXIST;
	else if (p->dyn && p->dyn->own)
		r = -EPERM;
	else if (fresh && !client_new(p))
		r = -ENOMEM;
	if (r < 0) {
		d->intake.nr_refused += r == -EPERM;
		close(fd);
		return r;
	}
	r = dyn_registry_new(d, p, fd, &reg);
	if (r < 0) {
		if (fresh) {
			client_put(p->dyn);
			p->dyn = NULL;
		}
		base_log(BASE_LOG_WARN, "cannot attach the registry of process %d: %s", p->pid,
			 base_strerror(r));
		return r;
	}
	reg->refs++;
	p->dyn->own = reg;
	return 0;
}

/* Until the file is written to, which the library does not do, its last change is its making. */
static uint64_t made_ns(int fd)
{
	struct timespec wall = { 0 };
	struct stat st;
	uint64_t now = base_now_ns();
	int64_t age;

	if (fstat(fd, &st) < 0)
		return now;
	clock_gettime(CLOCK_REALTIME, &wall);
	age = (int64_t)(wall.tv_sec - st.st_ctim.tv_sec) * 1000000000 +
	      (wall.tv_nsec - st.st_ctim.tv_nsec) - (int64_t)DYN_MADE_NS;
	return age <= 0 || (uint64_t)age >= now ? now : now - (uint64_t)age;
}

int dyn_take(struct dyn *d, struct process *(*find)(void *ctx, int32_t pid, uint64_t time_ns),
	     void *ctx)
{
	bool look = dyn_intake_drain_queue(&d->intake);
	int taken = 0, fd;

	for (int i = 0; i < TAKE_MAX; i++) {
		struct process *p;
		uint32_t uid;
		int32_t pid;

		fd = dyn_intake_next(&d->intake, &pid, &uid);
		if (fd == -EAGAIN)
			break;
		/* Whoever asks again for what we have already wants to be looked at. */
		look |= fd >= 0 || fd == -ENODATA;
		if (fd < 0)
			continue;
		p = find_file(d, fd) ? NULL : find(ctx, pid, made_ns(fd));
		if (!p) {
			close(fd);
			continue;
		}
		/* Who it was when it connected; since then it may run a set-uid program. */
		p->uid = uid;
		taken += adopt(d, p, fd) == 0;
	}
	for (struct dyn_registry *reg = d->registries; look && reg; reg = reg->next)
		dyn_registry_peek(reg);
	return taken;
}

void dyn_marker(struct dyn *d, struct process *p, uint64_t addr, uint64_t len)
{
	struct stat st;
	int fd, r;

	/* Ours has been handed over already: reading its marker would tell nothing new. */
	if (!d->config.reader || (p->dyn && p->dyn->own))
		return;
	fd = reader_registry_open(d->config.reader, p->pid, addr, addr + len);
	r = fd < 0 ? fd : dyn_intake_check(fd);
	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	if (r < 0) {
		base_log(BASE_LOG_DEBUG, "cannot open the registry of process %d: %s", p->pid,
			 base_strerror(r));
		if (fd >= 0)
			close(fd);
		return;
	}
	/* Who made it; a forked child's uid is its parent's until asked for. */
	p->uid = st.st_uid;
	adopt(d, p, fd);
}

void dyn_fork(struct dyn *d, struct process *parent, struct process *child, uint64_t time_ns)
{
	struct dyn_client *from = parent->dyn, *c = child->dyn;

	(void)d;
	/* A parent with nothing of its own hands on what it inherited, as of its own birth. */
	if (from && !from->own) {
		time_ns = time_ns < from->fork_ns ? time_ns : from->fork_ns;
		from = from->inherited;
	}
	if (!from || (c && c->inherited) || (!c && !(c = client_new(child))))
		return;
	c->inherited = from;
	c->fork_ns = time_ns;
	from->refs++;
}

int dyn_hand_on(struct process *from, struct process *to)
{
	struct dyn_client *c = from->dyn;

	if (!c || !c->own)
		return 0;
	if (!client_new(to))
		return -ENOMEM;
	/* Who was forked from @from before cannot have it either. */
	to->dyn->own = c->own;
	c->own = NULL;
	if (!c->inherited) {
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
		dyn_registry_detach(reg);
	}
	client_put(p->dyn);
	p->dyn = NULL;
}

int dyn_records(struct dyn *d, struct process *p, uint64_t time_ns, const void *data, size_t len)
{
	struct dyn_registry *reg;
	int r;

	if (!p->dyn && !client_new(p))
		return -ENOMEM;
	if (!p->dyn->own) {
		r = dyn_registry_new(d, p, -1, &reg);
		if (r < 0)
			return r;
		reg->refs++;
		p->dyn->own = reg;
	}
	reg = p->dyn->own;
	reg->nr_bad += (uint64_t)dyn_apply(reg, data, len, reg->read_ns, time_ns);
	reg->read_ns = time_ns;
	dyn_tenant_forget(&reg->tenants, time_ns);
	return 0;
}

bool dyn_refresh(struct dyn *d, bool ranges)
{
	bool news = false;

	if (!d->config.reader)
		return false;
	for (struct dyn_registry *reg = d->registries; reg; reg = reg->next)
		news |= dyn_registry_read(reg, ranges);
	return news;
}

void dyn_settled(struct dyn *d, uint64_t time_ns)
{
	d->settled_ns = time_ns;
}

bool dyn_has_registry(const struct process *p)
{
	return p->dyn && p->dyn->own;
}

bool dyn_reuses(const struct process *p)
{
	for (const struct dyn_client *c = p->dyn; c; c = c->inherited)
		if (c->own && c->own->tenants.reused)
			return true;
	return false;
}

void dyn_ranges(const struct process *p, void (*fn)(void *ctx, uint64_t start, uint64_t end),
		void *ctx)
{
	for (const struct dyn_client *c = p->dyn; c; c = c->inherited)
		for (size_t i = 0; c->own && i < WIRE_NR_FACILITIES; i++)
			if (c->own->facilities[i])
				dyn_facility_ranges(c->own->facilities[i], fn, ctx);
}

enum dyn_where dyn_lookup(struct dyn *d, struct process *p, uint64_t addr, uint64_t first_ns,
			  uint64_t time_ns, struct image **image, uint64_t *off)
{
	enum dyn_where found = DYN_NONE;

	(void)d;
	for (const struct dyn_client *c = p->dyn; c; c = c->inherited) {
		enum dyn_where where = DYN_NONE;
		struct image *img = NULL;
		uint64_t at = 0;
		bool sure = false;

		if (c->own)
			where = dyn_registry_lookup(c->own, addr, first_ns, time_ns, &img, &at,
						    &sure);
		/* Until the child's own came, what it inherited may have stood there. */
		if (where != DYN_NONE && found != DYN_NONE)
			return DYN_REUSED;
		if (where != DYN_NONE) {
			found = where;
			*image = img;
			*off = at;
		}
		if (where == DYN_REUSED || sure)
			break;
		/* Inherited code is what it was at the fork. */
		time_ns = time_ns < c->fork_ns ? time_ns : c->fork_ns;
		first_ns = time_ns;
	}
	return found;
}

/* ---- images ---------------------------------------------------------------------------------- */

/* *@answer: what the client is told. */
static int write_registry(struct dyn_registry *reg, int *answer, struct base_err *err)
{
	int first = 0, refused = 0;

	for (size_t i = 0; i < WIRE_NR_FACILITIES; i++) {
		struct dyn_facility *f = reg->facilities[i];
		struct base_err why = { 0 };
		int r = f ? dyn_image_write(f, &why) : 0;

		if (r == 0)
			continue;
		if (!f->image->refused)
			base_log(BASE_LOG_WARN, "%s", why.text);
		/* What one client said is no reason to call everybody's flush failed. */
		if (dyn_image_refusal(r)) {
			refused = r;
			continue;
		}
		if (!first)
			base_fail(err, r, "%s", why.text);
		first = first ? first : r;
	}
	*answer = first ? first : refused;
	return first;
}

/* A life that is over and on disk is only looked up; one that nobody looks up is forgotten. */
static void settle(struct dyn_registry *reg)
{
	bool pending = false;

	if (!reg->over)
		return;
	for (size_t i = 0; i < WIRE_NR_FACILITIES; i++) {
		struct dyn_facility *f = reg->facilities[i];

		if (f && f->changed)
			pending = true;
		else if (f)
			dyn_facility_trim(f);
	}
	if (!pending)
		dyn_registry_trim(reg);
	if (!pending && !reg->refs)
		dyn_registry_free(reg);
}

int dyn_write_images(struct dyn *d, struct base_err *err)
{
	struct dyn_registry *next;
	int first = 0;

	for (struct dyn_registry *reg = d->registries; reg; reg = next) {
		int r, answer;

		next = reg->next;
		if (d->config.reader && dyn_registry_wants_flush(reg) &&
		    reg->flush_ready != reg->h.flush_wanted)
			dyn_registry_read(reg, true);
		r = write_registry(reg, &answer, err);
		dyn_registry_answer(reg, answer);
		settle(reg);
		first = first ? first : r;
	}
	return first;
}

bool dyn_wants_flush(const struct dyn *d)
{
	for (const struct dyn_registry *reg = d->registries; reg; reg = reg->next)
		if (dyn_registry_wants_flush(reg))
			return true;
	return false;
}

void dyn_stats_get(const struct dyn *d, struct dyn_stats *out)
{
	*out = d->stats;
	out->records_bad += d->intake.nr_refused + d->bad_gone;
	out->records_dropped += d->dropped_gone;
	for (const struct dyn_registry *reg = d->registries; reg; reg = reg->next) {
		out->records_bad += reg->nr_bad;
		out->records_dropped += reg->h.nr_dropped;
	}
}
