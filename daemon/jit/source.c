/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that do not link libdbgdyn: what their runtimes write into files is followed (jitdump,
 * perf maps), and GDB's JIT interface (below). Each is a registry of its own kind, that nothing is
 * written into; where several tell of an address, the first kind holds.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "jit_internal.h"
#include "bound.h"

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

/* A facility with the program's name, as its runtime does not say what it is. 0 or -ENOMEM. The
 * facility in the image's name is the program, as its runtime does not say what it is. */
static int dyn_source_facility(struct dyn_registry *reg)
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

/* Look for a perf map of @p, which is a client. */
static void watch_map(struct dyn *d, struct process *p)
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
	/* There is nothing but the root folder to let go. */
	dyn_registry_detach(reg);
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
	if (budget_may_tell(reg->dyn->config.budgets, reg->uid))
		base_log(BASE_LOG_WARN, "the %s of process %d is not read any more: %s",
			 reg->kind == DYN_JITDUMP ? "jitdump" : "perf map", reg->pid,
			 base_strerror(r));
}

/* A source that could not be read is not read before some time, longer each time. */
static void pause_source(struct dyn_registry *reg, int r)
{
	reg->pause_ns = reg->pause_ns ? reg->pause_ns * 2 : PAUSE_FIRST_NS;
	reg->pause_ns = reg->pause_ns < PAUSE_MAX_NS ? reg->pause_ns : PAUSE_MAX_NS;
	reg->pause_until_ns = base_now_ns() + reg->pause_ns;
	if (budget_may_tell(reg->dyn->config.budgets, reg->uid))
		base_log(BASE_LOG_WARN,
			 "what process %d says of its code cannot be read (%s): next try in %llu s",
			 reg->pid, base_strerror(r),
			 (unsigned long long)(reg->pause_ns / 1000000000));
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
		pause_source(reg, r);
	else if (r < 0 && !reg->starved)
		refuse(reg, r);
	else if (r >= 0)
		reg->pause_ns = 0;
	return r < 0 || i > 1 || !reg->seen.same;
}

/* True: there was something new. */
static bool read_file(struct dyn_registry *reg)
{
	if (reg->kind == DYN_PERFMAP && reg->fd < 0)
		look_for_map(reg);
	return reg->fd >= 0 && !reg->refused && base_now_ns() >= reg->pause_until_ns && follow(reg);
}

/* ---- GDB's JIT interface --------------------------------------------------------------------- */

/*
 * GDB's JIT interface as a source (foreign.h): the list of ELF files that a process has in memory
 * is read again and again, from the process itself, which continues. Nothing tells what came and
 * went between two polls, or what was not read when it ended, or when anything happened: the first
 * object at an address had it from the beginning, one that took it from another may have it since
 * the poll before, and one that left the list is charged until then.
 */

/* One reading takes so long: the rest comes with the next. */
#define GDB_BUDGET_NS 500000000ull
enum { TRIES_MAX = 3 };
/* A list that takes longer to read is read again after so many times as long. */
#define LIST_NS 5000000ull
enum { LIST_REST = 50 };

struct object {
	struct foreign_gdb_entry e;
	uint64_t seq;	    /* number of its registration; 0: none of its routines was registered */
	uint64_t addr, end; /* where these are */
	uint64_t lo;	    /* the reading before did not show it */
	uint32_t order;
	uint8_t tries;
	bool done; /* it was read, or cannot be */
	bool kept; /* it is in the next list too */
};

struct dyn_gdb {
	const struct dyn_client *client;
	bool mapped; /* files that were not asked for a descriptor yet */
	struct foreign_gdb g;
	struct object *objects; /* sorted by node */
	size_t nr_objects;
	size_t nr_todo; /* not done */
};

static struct reader_who who_is(const struct dyn_registry *reg)
{
	return (struct reader_who){ reg->pid, reg->uid, reg->life };
}

/* ---- life ------------------------------------------------------------------------------------ */

static void release(struct dyn_gdb *gdb)
{
	free(gdb->objects);
	free(gdb);
}

/* @p, which is a client, has made memory for code: look for its descriptor. */
static void watch_gdb(struct dyn *d, struct process *p)
{
	struct dyn_registry *reg;

	if (p->exited || dyn_source_find(p->dyn, DYN_GDB) ||
	    dyn_source_new(d, p, DYN_GDB, -1, &reg) < 0)
		return;
	reg->gdb = calloc(1, sizeof(*reg->gdb));
	if (!reg->gdb)
		return;
	reg->gdb_release = release;
	reg->gdb->client = p->dyn;
	reg->gdb->mapped = true;
}

void dyn_mapped(const struct process *p)
{
	struct dyn_registry *reg = p->dyn ? dyn_source_find(p->dyn, DYN_GDB) : NULL;

	if (reg && reg->gdb)
		reg->gdb->mapped = true;
}

/* A request failed. If it is that life no more, nothing of it can be read ever again. */
static void failed(struct dyn_registry *reg, int r)
{
	reg->starved = r == -EDQUOT;
	if (r == -ESRCH)
		reg->life = 0;
	else if (!reg->starved && r != -EAGAIN && r != -ENOMEM)
		pause_source(reg, r);
}

/* ---- the descriptor -------------------------------------------------------------------------- */

static void begin(struct dyn_registry *reg, const struct foreign_gdb *found)
{
	if (!reg->counted) {
		if (dyn_source_facility(reg) < 0)
			return;
		dyn_registry_count(reg);
	}
	reg->gdb->g = *found;
}

static void look_for_descriptor(struct dyn_registry *reg)
{
	const struct reader_who who = who_is(reg);
	struct dyn_gdb *gdb = reg->gdb;
	struct foreign_gdb found = { 0 };
	int r;

	if (!gdb->mapped || base_now_ns() < reg->look_ns)
		return;
	r = reader_gdb_find(reg->dyn->config.reader, &who, &found);
	dyn_source_look_later(reg);
	gdb->mapped = r != 0;
	if (r < 0)
		failed(reg, r);
	else if (found.nr_heads && memcmp(found.heads, gdb->g.heads, sizeof(found.heads)) != 0)
		begin(reg, &found);
}

/* ---- the list -------------------------------------------------------------------------------- */

static int by_node(const void *pa, const void *pb)
{
	const struct object *a = pa, *b = pb;

	if (a->e.node != b->e.node)
		return a->e.node < b->e.node ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

static int by_order(const void *pa, const void *pb)
{
	const struct object *a = *(struct object *const *)pa, *b = *(struct object *const *)pb;

	return (a->order > b->order) - (a->order < b->order);
}

static struct object *find(const struct dyn_gdb *gdb, uint64_t node)
{
	size_t lo = BASE_LOWER_BOUND(gdb->objects, gdb->nr_objects, e.node, node);

	return lo < gdb->nr_objects && gdb->objects[lo].e.node == node ? &gdb->objects[lo] : NULL;
}

/* As far as is known; an entry's memory may have become another's. */
static bool is_same(const struct foreign_gdb_entry *a, const struct foreign_gdb_entry *b)
{
	return a->node == b->node && a->elf_addr == b->elf_addr && a->elf_len == b->elf_len &&
	       (!a->print || !b->print || a->print == b->print);
}

/* Sorted, none twice, and what is known of those that were in the last list. */
static size_t carry_on(struct dyn_gdb *gdb, struct object *fresh, size_t nr)
{
	size_t kept = 0;

	qsort(fresh, nr, sizeof(*fresh), by_node);
	gdb->nr_todo = 0;
	for (size_t i = 0; i < nr; i++) {
		struct object *old = find(gdb, fresh[i].e.node), o = fresh[i];

		if (kept && fresh[kept - 1].e.node == o.e.node)
			continue;
		if (old && is_same(&old->e, &o.e)) {
			uint64_t print = old->e.print ? old->e.print : o.e.print;

			old->kept = true;
			o = *old;
			o.e.print = print;
			o.kept = false;
			o.order = fresh[i].order;
		}
		gdb->nr_todo += !o.done;
		fresh[kept++] = o;
	}
	return kept;
}

static uint64_t next_seq(const struct dyn_registry *reg)
{
	uint64_t seq = reg->lifetimes.last_seq + 1;

	return seq + !(uint32_t)seq;
}

/* No other object had its addresses before @hi, unless one comes with this list. */
static void retire(struct dyn_registry *reg, const struct object *o, uint64_t hi)
{
	const struct wire_retire rec = { .head = { .len = sizeof(rec), .type = WIRE_RETIRE },
					 .seq = next_seq(reg),
					 .handle = o->seq,
					 .addr = o->addr,
					 .code_len = o->end - o->addr };

	reg->nr_bad += (uint64_t)dyn_apply(reg, &rec, sizeof(rec), hi - 1, hi);
}

/* @whole: those that are not in it are gone. */
static int take_list(struct dyn_registry *reg, const struct base_buf *b, bool whole)
{
	const struct foreign_gdb_entry *e = (const void *)b->data;
	size_t nr = b->len / sizeof(*e);
	struct object *fresh = calloc(nr ? nr : 1, sizeof(*fresh));
	struct dyn_gdb *gdb = reg->gdb;
	uint64_t hi = base_now_ns();

	if (!fresh)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		fresh[i] = (struct object){ .e = e[i], .order = (uint32_t)i };
	nr = carry_on(gdb, fresh, nr);
	for (size_t i = 0; whole && i < gdb->nr_objects; i++)
		if (!gdb->objects[i].kept && gdb->objects[i].seq)
			retire(reg, &gdb->objects[i], hi);
	free(gdb->objects);
	gdb->objects = fresh;
	gdb->nr_objects = nr;
	return 0;
}

/* ---- objects --------------------------------------------------------------------------------- */

/* A process that was forked has its parent's list; who was told of there is inherited. */
static bool is_inherited(const struct dyn_gdb *gdb, const struct object *o)
{
	uint64_t fork_ns = UINT64_MAX;

	for (const struct dyn_client *c = gdb->client; c->inherited; c = c->inherited) {
		const struct dyn_registry *reg = dyn_source_find(c->inherited, DYN_GDB);
		const struct object *same = reg && reg->gdb ? find(reg->gdb, o->e.node) : NULL;

		fork_ns = c->fork_ns < fork_ns ? c->fork_ns : fork_ns;
		if (same && same->done && same->lo < fork_ns && is_same(&same->e, &o->e))
			return true;
	}
	return false;
}

static bool read_gdb(struct dyn_registry *reg, bool all);

/* So that they are known to be its. */
static void read_parent(const struct dyn_gdb *gdb)
{
	const struct dyn_client *c = gdb->client->inherited;
	struct dyn_registry *reg = c ? dyn_source_find(c, DYN_GDB) : NULL;

	if (reg)
		read_gdb(reg, true);
}

static void apply(struct dyn_registry *reg, struct object *o, uint64_t seq,
		  const struct base_buf *b)
{
	struct wire_routine_view v;
	const struct wire_head *h;

	WIRE_FOR_EACH (h, b->data, b->len, pos) {
		if (wire_routine_parse(h, &v) < 0)
			continue;
		if (!o->seq || v.rec->addr < o->addr)
			o->addr = v.rec->addr;
		if (!o->seq || v.rec->addr + v.rec->code_len > o->end)
			o->end = v.rec->addr + v.rec->code_len;
		o->seq = seq;
	}
	reg->nr_bad += (uint64_t)dyn_apply(reg, b->data, b->len, reg->read_ns, base_now_ns());
	/* A list is what libdbgdyn's registries have. */
	reg->lifetimes.wants_list = false;
}

/* An object that fails time and again is given up; so is one that makes the helper fail. */
static int give_up(struct dyn_registry *reg, struct object *o, int r)
{
	if (r != -DCPI_EFORMAT && ++o->tries < TRIES_MAX)
		return r;
	base_log(BASE_LOG_DEBUG, "an object of process %d is not read: %s", reg->pid,
		 base_strerror(r));
	reg->nr_bad++;
	o->done = true;
	o->lo = reg->read_ns;
	return r == -DCPI_EFORMAT ? 0 : r;
}

static int read_object(struct dyn_registry *reg, struct object *o, struct base_buf *b)
{
	const struct reader_who who = who_is(reg);
	uint64_t seq = next_seq(reg);
	int r;

	base_buf_clear(b);
	r = reader_gdb_object(reg->dyn->config.reader, &who, seq, &o->e, b);
	if (r == -ESRCH || r == -ENOMEM || r == -EDQUOT)
		return r;
	if (r < 0)
		return give_up(reg, o, r);
	o->done = true;
	o->lo = reg->read_ns;
	if (is_inherited(reg->gdb, o))
		return 0;
	reg->nr_bad += (uint64_t)r;
	apply(reg, o, seq, b);
	return 0;
}

/* Objects to be read, the oldest first; or NULL. */
static struct object **sort_todo(struct dyn_gdb *gdb)
{
	struct object **todo = calloc(gdb->nr_todo, sizeof(struct object *));
	size_t nr = 0;

	for (size_t i = 0; todo && i < gdb->nr_objects; i++)
		if (!gdb->objects[i].done)
			todo[nr++] = &gdb->objects[i];
	if (todo)
		qsort(todo, nr, sizeof(struct object *), by_order);
	return todo;
}

/* An object that is not there any more does not hold up the others; the next list will tell. */
static int read_objects(struct dyn_registry *reg)
{
	uint64_t until = base_now_ns() + GDB_BUDGET_NS;
	struct dyn_gdb *gdb = reg->gdb;
	size_t nr = gdb->nr_todo;
	struct object **todo = sort_todo(gdb);
	struct base_buf b = { 0 };
	int r = todo ? 0 : -ENOMEM;

	read_parent(gdb);
	for (size_t i = 0; r == 0 && i < nr && base_now_ns() < until; i++) {
		r = read_object(reg, todo[i], &b);
		gdb->nr_todo -= todo[i]->done;
		r = r == -EAGAIN ? 0 : r;
	}
	base_buf_release(&b);
	free(todo);
	return r;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* 1: something was new. */
static int read_list(struct dyn_registry *reg)
{
	const struct reader_who who = who_is(reg);
	struct dyn_gdb *gdb = reg->gdb;
	struct foreign_gdb g = gdb->g;
	struct base_buf b = { 0 };
	int r = reader_gdb_list(reg->dyn->config.reader, &who, &g, &b), taken = 0;

	if (r > 0)
		taken = take_list(reg, &b, r == 1);
	if (r >= 0 && taken == 0)
		gdb->g = g;
	base_buf_release(&b);
	return taken < 0 ? taken : r;
}

/*
 * A program that tells of an object each moment, and has thousands, has its whole list read each
 * time: but for @all, that may take its part of the loop's time and no more.
 */
static int read_list_in_time(struct dyn_registry *reg, bool all)
{
	uint64_t now = base_now_ns(), took;
	int r;

	if (!all && now < reg->list_ns)
		return -EINPROGRESS;
	r = read_list(reg);
	took = base_now_ns() - now;
	reg->list_ns = took > LIST_NS ? now + LIST_REST * took : 0;
	return r;
}

/* @all: at whatever cost. True: there was something new. */
static bool read_gdb(struct dyn_registry *reg, bool all)
{
	struct dyn_gdb *gdb = reg->gdb;
	uint64_t now = base_now_ns();
	bool news, rests;
	int r;

	if (!gdb || !reg->life || reg->over || now < reg->pause_until_ns)
		return false;
	look_for_descriptor(reg);
	if (!gdb->g.nr_heads || !reg->life || base_now_ns() < reg->pause_until_ns)
		return false;
	r = read_list_in_time(reg, all);
	rests = r == -EINPROGRESS;
	r = rests ? 0 : r;
	news = r > 0 || gdb->nr_todo;
	if (r >= 0 && gdb->nr_todo)
		r = read_objects(reg);
	if (r < 0)
		failed(reg, r);
	else
		reg->pause_ns = reg->starved = 0;
	/* Only when all was read up to here was nothing else there before now. */
	if (r >= 0 && !gdb->nr_todo && !rests)
		reg->read_ns = now;
	return news;
}

/* ---- all of them ----------------------------------------------------------------------------- */

void dyn_watch(struct dyn *d, struct process *p)
{
	p->watched |= p->dyn && p->dyn->own;
	if (p->watched || !d->config.reader || d->nr_roots == DYN_ROOTS_MAX)
		return;
	/* A file that the next process of its pid writes does not tell of its code. */
	if ((!p->start_time_ns || !p->known_ns) && proc_describe(p) == -ESTALE)
		return;
	p->watched = true;
	if (!dyn_client_of(p))
		return;
	watch_gdb(d, p);
	watch_map(d, p);
}

bool dyn_source_read(struct dyn_registry *reg, bool all)
{
	uint64_t settled_ns = reg->dyn->settled_ns;
	bool news = reg->kind == DYN_GDB ? read_gdb(reg, all) : read_file(reg);

	dyn_lifetime_forget(&reg->lifetimes,
			    reg->waiting_ns < settled_ns ? reg->waiting_ns : settled_ns);
	reg->waiting_ns = UINT64_MAX;
	reg->skipped = false;
	dyn_facility_drop_unused(reg);
	return news;
}

void dyn_wait(const struct process *p, uint64_t first_ns)
{
	for (const struct dyn_client *c = p->dyn; c; c = c->inherited)
		for (size_t i = 0; i < c->nr_sources; i++)
			if (first_ns < c->sources[i]->waiting_ns)
				c->sources[i]->waiting_ns = first_ns;
}
