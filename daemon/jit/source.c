/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that do not link libdbgdyn: what their runtimes write into files is followed (jitdump,
 * perf maps), and GDB's JIT interface (gdb.c). Each is a registry of its own kind, that nothing
 * is written into; where several tell of an address, the first kind holds.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "jit_internal.h"

/* One reading takes so many, so that one file does not hold up the others. */
enum { READS_MAX = 16 };
#define BUDGET_NS      1000000000ull
#define PAUSE_FIRST_NS 1000000000ull
#define PAUSE_MAX_NS   (60 * 1000000000ull)
/*
 * A perf map may be made at any time; its process is looked at less and less often. Each pause is
 * longer by a part only: what a container keeps in a /tmp of its own goes with it.
 */
#define LOOK_FIRST_NS 250000000ull
#define LOOK_PART     8
#define LOOK_MAX_NS   (16 * 1000000000ull)

/* ---- sources of a client --------------------------------------------------------------------- */

struct dyn_client *dyn_client_of(struct process *p)
{
	if (!p->dyn && (p->dyn = calloc(1, sizeof(*p->dyn))))
		p->dyn->refs = 1;
	return p->dyn;
}

struct dyn_registry *dyn_source_find(const struct dyn_client *c, enum dyn_kind kind)
{
	for (size_t i = 0; i < c->nr_sources; i++)
		if (c->sources[i]->kind == kind)
			return c->sources[i];
	return NULL;
}

/* Sources are sorted by kind. */
static int add(struct dyn_client *c, struct dyn_registry *reg)
{
	size_t at = c->nr_sources;

	/* There may be many dumps: the last place is for functions. */
	if (at >= DYN_SOURCES_MAX - (reg->kind != DYN_FUNCTIONS))
		return -DCPI_ELIMIT;
	while (at && c->sources[at - 1]->kind > reg->kind)
		at--;
	memmove(c->sources + at + 1, c->sources + at, (c->nr_sources++ - at) * sizeof(*c->sources));
	c->sources[at] = reg;
	reg->refs++;
	return 0;
}

/* The facility in the image's name is the program, as its runtime does not say what it is. */
int dyn_source_facility(struct dyn_registry *reg)
{
	static const char unnamed[] = ": dynamic, unnamed", functions[] = ": Python";
	struct {
		struct wire_facility_rec rec;
		char name[WIRE_FACILITY_NAME];
	} f = { .rec = { .head.type = WIRE_FACILITY,
			 .state = WIRE_FACILITY_OPEN,
			 .machine = reg->kind == DYN_FUNCTIONS ? EM_NONE : REGISTRY_MACHINE } };
	size_t space = sizeof(f.name) - sizeof(unnamed);
	const char *exe = base_path_name(reg->exe), *end = strstr(exe, " (deleted)");
	size_t exe_len = end ? (size_t)(end - exe) : strlen(exe);
	int len = snprintf(f.name, sizeof(f.name), "%.*s%s",
			   (int)(exe_len < space ? exe_len : space), exe,
			   reg->kind == DYN_UNNAMED	? unnamed
			   : reg->kind == DYN_FUNCTIONS ? functions
							: "");

	f.rec.name_len = (uint32_t)len;
	f.rec.head.len = (uint32_t)base_align_up(sizeof(f.rec) + (size_t)len, 8);
	return dyn_apply(reg, &f, f.rec.head.len, 0, 0) ? -ENOMEM : 0;
}

int dyn_source_new(struct dyn *d, struct process *p, enum dyn_kind kind, int fd,
		   struct dyn_registry **out)
{
	struct dyn_registry *reg;
	int r = dyn_registry_new(d, p, kind, fd, &reg);

	if (r == 0 && kind != DYN_GDB)
		r = dyn_source_facility(reg);
	if (r == 0)
		r = add(p->dyn, reg);
	if (r == 0)
		*out = reg;
	else if (reg)
		dyn_registry_free(reg);
	return r;
}

/* ---- files ----------------------------------------------------------------------------------- */

static struct dyn_registry *find_file(const struct dyn *d, const struct reader_dump *dump)
{
	for (struct dyn_registry *reg = d->registries; reg; reg = reg->next)
		if (reg->kind == DYN_JITDUMP && reg->fd >= 0 && reg->dev == dump->dev &&
		    reg->ino == dump->ino)
			return reg;
	return NULL;
}

/*
 * Files that a process forked without a program of its own has mapped are its parent's: both have
 * them.
 */
static int share(struct process *p, struct dyn_registry *reg)
{
	for (const struct dyn_client *c = p->dyn; c; c = c->inherited)
		for (size_t i = 0; i < c->nr_sources; i++)
			if (c->sources[i] == reg)
				return -EEXIST;
	return dyn_client_of(p) ? add(p->dyn, reg) : -ENOMEM;
}

int dyn_dump(struct dyn *d, struct process *p, const struct reader_dump *dump)
{
	struct dyn_registry *reg;
	int r;

	if (!d->config.reader) {
		close(dump->fd);
		return -EIO;
	}
	reg = find_file(d, dump);
	if (dump->owner != p->uid || reg || !dyn_client_of(p)) {
		reader_release(d->config.reader, p->uid, dump->fd);
		return dump->owner != p->uid ? -EPERM : reg ? share(p, reg) : -ENOMEM;
	}
	r = dyn_source_new(d, p, DYN_JITDUMP, dump->fd, &reg);
	if (r < 0) {
		base_log(BASE_LOG_WARN, "cannot follow the jitdump of process %d: %s", p->pid,
			 base_strerror(r));
		return r;
	}
	reg->dev = dump->dev;
	reg->ino = dump->ino;
	return 0;
}

/* A map that a process left may be found after its end, where it has the same numbers as here. */
static int open_root(struct dyn *d, const struct process *p, int32_t *ns_pid)
{
	int root = reader_root_find(d->config.reader, p->pid, ns_pid);

	if (root >= 0)
		return root;
	*ns_pid = p->pid;
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return root < 0 ? -errno : root;
}

/*
 * Its program, CLOCK_REALTIME, as far as it is known; a tick less, as files have the time of the
 * last one. What another program of that pid has written stays there when it is over.
 */
static uint64_t began(const struct process *p)
{
	uint64_t forked_ns = p->began_ns ? p->began_ns : p->start_time_ns, age;
	uint64_t boot_ns = p->execed_ns ? p->execed_ns : forked_ns;
	struct timespec boot, wall;

	if (!boot_ns)
		return 0;
	clock_gettime(CLOCK_BOOTTIME, &boot);
	clock_gettime(CLOCK_REALTIME, &wall);
	age = (uint64_t)boot.tv_sec * 1000000000u + (uint64_t)boot.tv_nsec - boot_ns + DYN_MADE_NS;
	return (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec - age;
}

void dyn_source_watch(struct dyn *d, struct process *p)
{
	struct dyn_registry *reg;
	int32_t ns_pid = 0;
	int root = open_root(d, p, &ns_pid);

	if (root < 0)
		return;
	if (!budget_take(d->config.budgets, p->uid, BUDGET_ROOTS, 1, DYN_ROOTS_MAX)) {
		reader_release(d->config.reader, p->uid, root);
		return;
	}
	if (dyn_source_new(d, p, DYN_PERFMAP, -1, &reg) < 0) {
		budget_give_back(d->config.budgets, p->uid, BUDGET_ROOTS, 1);
		reader_release(d->config.reader, p->uid, root);
		return;
	}
	d->nr_roots++;
	reg->root = root;
	reg->ns_pid = ns_pid;
	reg->since_ns = began(p);
}

void dyn_leaving(struct process *p)
{
	/* Its memfd stays with us, and to read it takes none of the memory that goes. */
	if (p->dyn && p->dyn->own)
		p->dyn->own->pause_until_ns = 0;
	for (size_t i = 0; p->dyn && i < p->dyn->nr_sources; i++) {
		struct dyn_registry *reg = p->dyn->sources[i];

		reg->look_ns = reg->pause_until_ns = 0;
		/* Its memory is gone, and what was not read is not known. */
		if (reg->kind == DYN_GDB)
			reg->life = 0;
	}
}

/*
 * A process that ran for long without a map, or before the daemon began, is not likely to make one
 * just now.
 */
static uint64_t first_pause(const struct dyn_registry *reg)
{
	uint64_t now = base_clock_ns(CLOCK_REALTIME), since = reg->since_ns;
	uint64_t part = since && since < now ? (now - since) / LOOK_PART : 0;

	return part > LOOK_FIRST_NS ? part : LOOK_FIRST_NS;
}

void dyn_source_look_later(struct dyn_registry *reg)
{
	uint64_t last = reg->look_pause_ns;

	reg->look_pause_ns = last ? last + last / LOOK_PART : first_pause(reg);
	if (reg->look_pause_ns > LOOK_MAX_NS)
		reg->look_pause_ns = LOOK_MAX_NS;
	reg->look_ns = base_now_ns() + reg->look_pause_ns;
}

/* The perf map may be made later. */
static void look_for_map(struct dyn_registry *reg)
{
	int fd;

	if (reg->root < 0 || base_now_ns() < reg->look_ns)
		return;
	fd = reader_perfmap_find(reg->dyn->config.reader, reg->root, reg->ns_pid, reg->uid,
				 reg->since_ns);
	dyn_source_look_later(reg);
	reg->starved = fd == -EDQUOT;
	if (reg->starved || fd == -ENOENT || fd == -ENOTDIR || fd == -ETIMEDOUT ||
	    fd == -DCPI_EHELPER)
		return;
	dyn_registry_close_root(reg);
	if (fd >= 0) {
		reg->fd = fd;
		dyn_registry_count(reg);
		return;
	}
	reg->refused = true;
	base_log(BASE_LOG_WARN, "the perf map of process %d is not read: %s", reg->pid,
		 base_strerror(fd));
}

/* ---- reading --------------------------------------------------------------------------------- */

static void refuse(struct dyn_registry *reg, int r)
{
	reg->refused = true;
	reg->nr_changes++;
	reg->nr_bad++;
	base_log(BASE_LOG_WARN, "the %s of process %d is not read any more: %s",
		 reg->kind == DYN_JITDUMP ? "jitdump" : "perf map", reg->pid, base_strerror(r));
}

void dyn_source_pause(struct dyn_registry *reg, int r)
{
	reg->pause_ns = reg->pause_ns ? reg->pause_ns * 2 : PAUSE_FIRST_NS;
	reg->pause_ns = reg->pause_ns < PAUSE_MAX_NS ? reg->pause_ns : PAUSE_MAX_NS;
	reg->pause_until_ns = base_now_ns() + reg->pause_ns;
	base_log(BASE_LOG_WARN,
		 "what process %d says of its code cannot be read (%s): next try in %llu s",
		 reg->pid, base_strerror(r), (unsigned long long)(reg->pause_ns / 1000000000));
}

static int read_once(struct dyn_registry *reg, struct base_buf *b)
{
	const struct reader_who who = { reg->pid, reg->uid, reg->life };
	enum foreign_kind kind = reg->kind == DYN_JITDUMP ? FOREIGN_JITDUMP : FOREIGN_PERFMAP;
	uint64_t now = base_now_ns();
	int r;

	base_buf_clear(b);
	r = reader_file_read(reg->dyn->config.reader, reg->fd, kind, &who, &reg->file, &reg->seen,
			     b);
	/* Announced routines stay until what is written now replaces them. */
	if (r == -DCPI_ETRUNCATED) {
		reg->file = (struct foreign_place){ .seq = reg->file.seq };
		return 0;
	}
	if (r < 0 || reg->seen.same)
		return r < 0 ? r : 1;
	reg->nr_bad += (uint64_t)r +
		       (uint64_t)dyn_apply(reg, b->data, b->len, reg->read_ns, base_now_ns());
	/* A list is what libdbgdyn's registries have. */
	reg->lifetimes.wants_list = false;
	if (!reg->file.at_end)
		return 0;
	/* Only when all was read up to here was nothing else there before now. */
	reg->read_ns = now;
	return 1;
}

/* True: something was new. */
static bool follow(struct dyn_registry *reg)
{
	uint64_t until = base_now_ns() + BUDGET_NS;
	struct base_buf b = { 0 };
	int r = 0, i;

	for (i = 0; r == 0 && i < READS_MAX && (!i || base_now_ns() < until); i++)
		r = read_once(reg, &b);
	base_buf_release(&b);
	reg->starved = r == -EDQUOT;
	if (r == -ETIMEDOUT || r == -DCPI_EHELPER)
		dyn_source_pause(reg, r);
	else if (r < 0 && !reg->starved)
		refuse(reg, r);
	else if (r >= 0)
		reg->pause_ns = 0;
	return r < 0 || i > 1 || !reg->seen.same;
}

bool dyn_source_read(struct dyn_registry *reg)
{
	if (reg->kind == DYN_PERFMAP && reg->fd < 0)
		look_for_map(reg);
	return reg->fd >= 0 && !reg->refused && base_now_ns() >= reg->pause_until_ns && follow(reg);
}

/* ---- lookup ---------------------------------------------------------------------------------- */

/* Changes with time stamps are announced late: a later one says that none is missing before it. */
static bool may_be_announced(const struct dyn_registry *reg, uint64_t time_ns)
{
	return reg->kind == DYN_JITDUMP && !reg->refused && !reg->over &&
	       time_ns >= reg->announced_ns;
}

enum dyn_where dyn_source_lookup(const struct dyn_client *c, const struct dyn_ask *ask, bool last,
				 struct image **image, uint64_t *off)
{
	enum dyn_where where = DYN_NONE;

	for (size_t i = 0; where == DYN_NONE && i < c->nr_sources; i++) {
		struct dyn_registry *reg = c->sources[i];
		struct dyn_ask by_time = *ask;
		bool sure;

		if (reg->kind >= DYN_UNNAMED)
			continue;
		by_time.by_seq = by_time.forked = false;
		where = !last && may_be_announced(reg, ask->time_ns)
				? DYN_LATER
				: dyn_registry_lookup(reg, &by_time, image, off, &sure);
	}
	return where;
}

void dyn_source_wait(const struct dyn_client *c, uint64_t first_ns)
{
	for (; c; c = c->inherited)
		for (size_t i = 0; i < c->nr_sources; i++)
			if (first_ns < c->sources[i]->waiting_ns)
				c->sources[i]->waiting_ns = first_ns;
}
