/* SPDX-License-Identifier: BSD-2-Clause */
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "bpf_program.h"

/*
 * Who stands in the slots that programs look into. A slot is in use until it was swept, though its
 * process has ended before.
 */
struct bpf_clients {
	size_t nr;
	uint16_t slots[SAMPLE_NR_CLIENTS];
	bool used[SAMPLE_NR_SLOTS];
	uint16_t spare[SAMPLE_NR_CLIENTS]; /* the first so many that are left: places of ranges */
	struct bpf_pins pins[SAMPLE_NR_CLIENTS]; /* by the same places */
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

/* Who looks for something goes past a slot that is GONE, which costs; nobody has to if nothing
 * stands behind it. */
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

static int put(struct bpf_programs *p, uint32_t tgid, const struct driver_client *client)
{
	int at = find(p, tgid);
	bool known = at >= 0;

	if (!known)
		at = enter(p, tgid);
	if (at < 0)
		return at;
	fill(p, (uint32_t)at, tgid, client);
	if (known)
		return 0;
	/* Before it is there, or a sample would not look. */
	tell_nr(p, p->clients->nr);
	set_tgid(p, (uint32_t)at, tgid);
	return 0;
}

/* ---- programs -------------------------------------------------------------------------------- */

static int watch_one(void **link, struct bpf_program *program)
{
	if (!*link)
		*link = bpf_program__attach_trace(program);
	return *link ? 0 : -errno;
}

/* What takes away whom an exec or exit ends; without what tells of forks we can do. */
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

/* What samples have asked for since. */
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
	for (uint16_t i = 0; i < SAMPLE_NR_CLIENTS; i++)
		p->clients->spare[i] = i;
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
