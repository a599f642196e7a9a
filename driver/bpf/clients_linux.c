/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes whose code is reused (driver_client_set): the slots that programs look into, and pinned
 * pages of the words that tell generations.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf_program.h"

/* ---- pinned pages ---------------------------------------------------------------------------- */

enum { PAGE_LEN = sizeof(uint32_t) << SAMPLE_PAGE_SHIFT };

struct bpf_pins {
	uint32_t tgid;
	uint64_t ino, off, words; /* inode, offset and address of the client's words: see struct
				     driver_client */
	uint32_t nr_words;
	uint32_t nr; /* pages that are pinned, or were to be */
	uint8_t pages[SAMPLE_NR_PINS];
	void *base; /* the words, mapped from a page of the file on; NULL: none of them can be
		       pinned */
	size_t len, before; /* length of the mapping; length before the words */
};

/* ---- the storage ----------------------------------------------------------------------------- */

/*
 * struct dcpi_pins { struct dcpi_words { int words[]; } uptr *pages[SAMPLE_NR_PINS]; }: its id, or
 * negative. Of a name that the kernel has, too, it would take its own type.
 */
static int add_value(struct btf *btf, int number)
{
	int words = btf__add_array(btf, number, number, 1u << SAMPLE_PAGE_SHIFT);
	int page = btf__add_struct(btf, "dcpi_words", PAGE_LEN);
	int r = btf__add_field(btf, "words", words, 0, 0);
	int tag = btf__add_type_tag(btf, "uptr", page);
	int pages = btf__add_array(btf, number, btf__add_ptr(btf, tag), SAMPLE_NR_PINS);
	int value = btf__add_struct(btf, "dcpi_pins", SAMPLE_NR_PINS * sizeof(uint64_t));

	if (r >= 0)
		r = btf__add_field(btf, "pages", pages, 0, 0);
	return r < 0 ? r : value;
}

static int make_storage(const struct btf *btf, int key, int value)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_NO_PREALLOC,
		    .btf_fd = (uint32_t)btf__fd(btf), .btf_key_type_id = (uint32_t)key,
		    .btf_value_type_id = (uint32_t)value);
	int fd = bpf_map_create(BPF_MAP_TYPE_TASK_STORAGE, "pins", sizeof(int),
				SAMPLE_NR_PINS * sizeof(uint64_t), 0, &opts);

	return fd < 0 ? -errno : fd;
}

int bpf_pins_make(void)
{
	struct btf *btf = btf__new_empty();
	int key, value, r;

	if (!btf)
		return -errno;
	key = btf__add_int(btf, "int", sizeof(int), BTF_INT_SIGNED);
	value = add_value(btf, key);
	r = value < 0 ? value : btf__load_into_kernel(btf);
	if (r >= 0)
		r = make_storage(btf, key, value);
	btf__free(btf);
	return r;
}

int bpf_pins_use(const struct bpf_programs *p, void *map)
{
	return p->pins_fd < 0 ? bpf_map__set_autocreate(map, false)
			      : bpf_map__reuse_fd(map, p->pins_fd);
}

/* @values: addresses of ours, or 0; NULL: no more. */
static int store(const struct bpf_programs *p, uint32_t tgid, const uint64_t *values)
{
	int task = (int)syscall(SYS_pidfd_open, tgid, 0), r;

	if (task < 0)
		return -errno;
	r = values ? bpf_map_update_elem(p->pins_fd, &task, values, BPF_ANY)
		   : bpf_map_delete_elem(p->pins_fd, &task);
	close(task);
	return r;
}

/* The kernel's own addresses of what is stored. */
static int ask(const struct bpf_programs *p, uint32_t tgid, uint64_t *at)
{
	struct sample_pins pins = { .tgid = (int32_t)tgid };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &pins, .ctx_size_in = sizeof(pins));
	int r = bpf_prog_test_run_opts(bpf_program__fd(p->objects[0]->progs.pins_take), &opts);

	if (r >= 0 && opts.retval)
		r = -ESRCH;
	for (size_t i = 0; i < SAMPLE_NR_PINS; i++)
		at[i] = pins.at[i];
	return r;
}

/* ---- pages of a client ----------------------------------------------------------------------- */

/* Are @pins of the same words? Else close them and open others, when no sample finds their pages.
 */
static bool bpf_pins_known(const struct bpf_pins *pins, const struct driver_client *client)
{
	return pins->ino == client->words_ino && pins->off == client->words_off &&
	       pins->words == client->words && pins->nr_words == client->nr_words;
}

static void bpf_pins_close(const struct bpf_programs *p, struct bpf_pins *pins)
{
	if (pins->nr)
		store(p, pins->tgid, NULL);
	if (pins->base)
		munmap(pins->base, pins->len);
	*pins = (struct bpf_pins){ 0 };
}

/* From nothing, or what was closed. Without a file, or where it cannot be mapped, none are pinned.
 */
static void bpf_pins_open(const struct bpf_programs *p, struct bpf_pins *pins, uint32_t tgid,
			  const struct driver_client *client)
{
	size_t before = client->words_off % (size_t)sysconf(_SC_PAGESIZE);
	size_t len = before + client->nr_words * sizeof(uint32_t);
	void *base = MAP_FAILED;

	if (p->pins_fd >= 0 && client->words_ino && client->nr_words &&
	    client->nr_words <= SAMPLE_NR_PAGES << SAMPLE_PAGE_SHIFT)
		base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, client->words_fd,
			    (off_t)(client->words_off - before));
	*pins = (struct bpf_pins){ .tgid = tgid,
				   .ino = client->words_ino,
				   .off = client->words_off,
				   .words = client->words,
				   .nr_words = client->nr_words,
				   .base = base == MAP_FAILED ? NULL : base,
				   .len = len,
				   .before = before };
}

/* How many are pinned then, which stand first among its pages. */
static uint32_t add_wanted(struct bpf_pins *pins, const struct sample_pages *pages)
{
	uint32_t nr = pins->nr;

	for (size_t i = 0; i < SAMPLE_NR_PAGES && nr < SAMPLE_NR_PINS; i++)
		if (__atomic_load_n(&pages->at[i], __ATOMIC_RELAXED) == SAMPLE_PAGE_WANTED)
			pins->pages[nr++] = (uint8_t)i;
	return nr;
}

static int pin(const struct bpf_programs *p, const struct bpf_pins *pins, uint64_t *at)
{
	uint64_t values[SAMPLE_NR_PINS] = { 0 };
	int r;

	for (uint32_t i = 0; i < pins->nr; i++)
		values[i] = (uintptr_t)pins->base + pins->before + pins->pages[i] * PAGE_LEN;
	r = store(p, pins->tgid, values);
	return r < 0 ? r : ask(p, pins->tgid, at);
}

/* Pin those of its @pages that are wanted, if there is room, and tell where they are. */
static void bpf_pins_take(const struct bpf_programs *p, struct bpf_pins *pins,
			  struct sample_pages *pages)
{
	uint64_t at[SAMPLE_NR_PINS];
	uint32_t nr = pins->base ? add_wanted(pins, pages) : pins->nr;

	if (nr == pins->nr)
		return;
	/* Also what fails may have been stored. */
	pins->nr = nr;
	if (pin(p, pins, at) < 0) {
		/* The same pages were pinned before and are not pinned again. */
		munmap(pins->base, pins->len);
		pins->base = NULL;
		return;
	}
	for (uint32_t i = 0; i < nr; i++)
		__atomic_store_n(&pages->at[pins->pages[i]], at[i], __ATOMIC_RELEASE);
}

/* ---- clients --------------------------------------------------------------------------------- */

/*
 * The processes in the slots that programs look into. A slot stays in use until it was swept, even
 * if its process ended before.
 */
struct bpf_clients {
	size_t nr;
	uint16_t slots[SAMPLE_NR_CLIENTS];
	bool used[SAMPLE_NR_SLOTS];
	uint16_t spare[SAMPLE_NR_CLIENTS]; /* the first so many that are left: places of ranges */
	struct bpf_pins pins[SAMPLE_NR_CLIENTS]; /* pins of the same slots */
};

static struct sample_client *slot(const struct bpf_programs *p, uint32_t at)
{
	return &p->objects[0]->bss->clients[at % SAMPLE_NR_SLOTS];
}

static uint32_t tgid_of(const struct bpf_programs *p, uint32_t at)
{
	return __atomic_load_n(&slot(p, at)->tgid, __ATOMIC_ACQUIRE);
}

static void set_tgid(const struct bpf_programs *p, uint32_t at, uint32_t tgid)
{
	__atomic_store_n(&slot(p, at)->tgid, tgid, __ATOMIC_RELEASE);
}

static void tell_nr(const struct bpf_programs *p, size_t nr)
{
	__atomic_store_n(&p->objects[0]->bss->shared.nr_clients, (uint32_t)nr, __ATOMIC_SEQ_CST);
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* Where @tgid stands, or -1. */
static int find(const struct bpf_programs *p, uint32_t tgid)
{
	uint32_t at = sample_slot(tgid), of;

	for (uint32_t i = 0; i < SAMPLE_NR_PROBES; i++, at++) {
		of = tgid_of(p, at);
		if (of == tgid)
			return (int)(at % SAMPLE_NR_SLOTS);
		if (!of)
			return -1;
	}
	return -1;
}

/* A lookup goes past a slot marked GONE, at a cost; the mark is needed only if an entry follows. */
static void clear(const struct bpf_programs *p, uint32_t at)
{
	set_tgid(p, at, SAMPLE_GONE);
	while (!p->clients->used[at] && tgid_of(p, at) == SAMPLE_GONE && !tgid_of(p, at + 1)) {
		set_tgid(p, at, 0);
		at = (at + SAMPLE_NR_SLOTS - 1) % SAMPLE_NR_SLOTS;
	}
}

/* The @k-th of those in use is not any more. */
static void leave(struct bpf_programs *p, size_t k)
{
	struct bpf_clients *c = p->clients;
	uint16_t at = c->slots[k], place = slot(p, at)->ranges;

	bpf_pins_close(p, &c->pins[place]);
	c->slots[k] = c->slots[--c->nr];
	c->spare[SAMPLE_NR_CLIENTS - 1 - c->nr] = place;
	c->used[at] = false;
	clear(p, at);
}

static void sweep(struct bpf_programs *p)
{
	for (size_t k = p->clients->nr; k-- > 0;) {
		if (tgid_of(p, p->clients->slots[k]) == SAMPLE_GONE)
			leave(p, k);
	}
	tell_nr(p, p->clients->nr);
}

static void drop(struct bpf_programs *p, uint32_t tgid)
{
	int at = p->clients ? find(p, tgid) : -1;

	if (at < 0)
		return;
	set_tgid(p, (uint32_t)at, SAMPLE_GONE);
	sweep(p);
}

/* A slot for @tgid, with a place for ranges, or -DCPI_ELIMIT. */
static int enter(struct bpf_programs *p, uint32_t tgid)
{
	struct bpf_clients *c = p->clients;
	uint32_t at = sample_slot(tgid);

	sweep(p);
	for (uint32_t i = 0; i < SAMPLE_NR_PROBES; i++, at++) {
		if (c->used[at % SAMPLE_NR_SLOTS])
			continue;
		if (c->nr == SAMPLE_NR_CLIENTS)
			break;
		at %= SAMPLE_NR_SLOTS;
		c->used[at] = true;
		slot(p, at)->ranges = c->spare[SAMPLE_NR_CLIENTS - 1 - c->nr];
		c->slots[c->nr++] = (uint16_t)at;
		return (int)at;
	}
	return -DCPI_ELIMIT;
}

/* ---- what stands in one ---------------------------------------------------------------------- */

static void fill_ranges(struct sample_client *c, struct sample_ranges *ranges,
			const struct driver_client *client)
{
	uint64_t start = UINT64_MAX, end = 0;
	uint32_t with_words = 0;

	for (uint32_t i = 0; i < client->nr_ranges; i++) {
		const struct driver_range *r = &client->ranges[i];

		ranges->items[i].start = r->start;
		ranges->items[i].end = r->end;
		with_words |= (uint32_t)(r->kind == DRIVER_RANGE_WORDS) << i;
		if (r->start < start)
			start = r->start;
		if (r->end > end)
			end = r->end;
	}
	c->nr = (uint16_t)client->nr_ranges;
	c->with_words = (uint16_t)with_words;
	c->start = start;
	c->end = end;
}

static void fill(const struct bpf_programs *p, uint32_t at, uint32_t tgid,
		 const struct driver_client *client)
{
	struct sample_client *c = slot(p, at);
	struct bpf_pins *pins = &p->clients->pins[c->ranges];
	bool known = bpf_pins_known(pins, client);
	uint32_t seq = c->seq;

	__atomic_store_n(&c->seq, seq + 1, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	c->words = client->words;
	c->mask = client->nr_words ? client->nr_words - 1 : 0;
	c->cursor = client->cursor;
	fill_ranges(c, &p->objects[0]->bss->ranges[c->ranges], client);
	if (!known)
		p->objects[0]->bss->pages[c->ranges] = (struct sample_pages){ 0 };
	__atomic_store_n(&c->seq, seq + 2, __ATOMIC_SEQ_CST);
	if (known)
		return;
	bpf_pins_close(p, pins);
	bpf_pins_open(p, pins, tgid, client);
}

/* A slot in which @tgid stands without anything to be read. */
static int enter_empty(struct bpf_programs *p, uint32_t tgid)
{
	static const struct driver_client empty;
	int at = enter(p, tgid);

	if (at < 0)
		return at;
	fill(p, (uint32_t)at, tgid, &empty);
	/* Before it is there, or a sample would not look. */
	tell_nr(p, p->clients->nr);
	set_tgid(p, (uint32_t)at, tgid);
	return at;
}

/* Nothing is read where nothing was before. */
static bool reads_same(const struct sample_client *c, const struct driver_client *client)
{
	return c->words == client->words && c->cursor == client->cursor &&
	       c->mask == (client->nr_words ? client->nr_words - 1 : 0);
}

/*
 * An exec or end of @tgid after it entered its slot makes that GONE, and what is written there
 * afterwards is read by no sample: so addresses that stand now are those of the program that has
 * them, or are never read.
 */
static int put(struct bpf_programs *p, uint32_t tgid, const struct driver_client *client)
{
	int at = find(p, tgid);

	if (at < 0)
		at = enter_empty(p, tgid);
	if (at < 0)
		return at;
	if (!reads_same(slot(p, (uint32_t)at), client) && !client->stands(client->ctx)) {
		drop(p, tgid);
		return -ESTALE;
	}
	fill(p, (uint32_t)at, tgid, client);
	return 0;
}

/* ---- programs -------------------------------------------------------------------------------- */

static int watch_one(void **link, struct bpf_program *program)
{
	if (!*link)
		*link = bpf_program__attach_trace(program);
	return *link ? 0 : -errno;
}

/*
 * Attach the programs that remove processes at exec or exit; without the one for forks we can do.
 */
static int watch(struct bpf_programs *p, bool forks)
{
	struct sample *s = p->objects[0];
	int r = watch_one(&p->on_exec, s->progs.sample_exec);

	if (r >= 0)
		r = watch_one(&p->on_exit, s->progs.sample_exit);
	if (r >= 0 && forks)
		watch_one(&p->on_fork, s->progs.sample_fork);
	return r;
}

static void unwatch(struct bpf_programs *p)
{
	bpf_link__destroy(p->on_exec);
	bpf_link__destroy(p->on_exit);
	bpf_link__destroy(p->on_fork);
	p->on_exec = p->on_exit = p->on_fork = NULL;
}

/* Take the pages that samples have asked for since. */
static void take_pins(const struct bpf_programs *p)
{
	struct sample__bss *bss = p->objects[0]->bss;

	if (!__atomic_exchange_n(&bss->pages_wanted, 0, __ATOMIC_SEQ_CST))
		return;
	for (size_t k = 0; k < p->clients->nr; k++) {
		uint16_t place = slot(p, p->clients->slots[k])->ranges;

		bpf_pins_take(p, &p->clients->pins[place], &bss->pages[place]);
	}
}

void bpf_clients_sweep(struct bpf_programs *p)
{
	if (!p->clients)
		return;
	sweep(p);
	take_pins(p);
	if (!p->clients->nr)
		unwatch(p);
}

void bpf_clients_close(struct bpf_programs *p)
{
	unwatch(p);
	while (p->clients && p->clients->nr)
		leave(p, p->clients->nr - 1);
	free(p->clients);
	p->clients = NULL;
}

static int make(struct bpf_programs *p)
{
	if (p->clients)
		return 0;
	p->clients = calloc(1, sizeof(*p->clients));
	if (!p->clients)
		return -ENOMEM;
	for (int i = 0; i < SAMPLE_NR_CLIENTS; i++)
		p->clients->spare[i] = (uint16_t)i;
	return 0;
}

int bpf_clients_set(struct bpf_programs *p, int32_t pid, const struct driver_client *client)
{
	int r;

	if (!client || (!client->nr_ranges && !client->cursor)) {
		drop(p, (uint32_t)pid);
		return 0;
	}
	r = make(p);
	if (r >= 0)
		r = watch(p, client->cursor != 0);
	if (r >= 0)
		r = put(p, (uint32_t)pid, client);
	/* It may have ended before its exit was watched for. */
	if (r >= 0 && kill(pid, 0) < 0 && errno == ESRCH)
		drop(p, (uint32_t)pid);
	return r;
}
