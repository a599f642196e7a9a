/* SPDX-License-Identifier: BSD-2-Clause */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf_internal.h"

static size_t table_len(const struct bpf_tables *t)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return base_align_up(count_nr_elements(&t->shape) * sizeof(union count_bucket), page);
}

int bpf_tables_init(struct bpf_tables *t, uint32_t len, size_t nr_cpus)
{
	*t = (struct bpf_tables){ .fd = -1, .shape = count_shape_of(len) };
	t->cpus = calloc(nr_cpus, sizeof(*t->cpus));
	if (!t->cpus)
		return -ENOMEM;
	t->nr_cpus = nr_cpus;
	for (size_t i = 0; i < nr_cpus; i++)
		t->cpus[i].sets[0].fd = t->cpus[i].sets[1].fd = -1;
	return 0;
}

/* ---- sets ------------------------------------------------------------------------------------ */

static void set_close(const struct bpf_tables *t, struct bpf_set *set)
{
	if (set->table)
		munmap(set->table, table_len(t));
	if (set->fd >= 0)
		close(set->fd);
	*set = (struct bpf_set){ .fd = -1 };
}

int bpf_tables_template(const struct bpf_tables *t)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "dcpi_counts", sizeof(uint32_t),
				sizeof(union count_bucket), count_nr_elements(&t->shape), &opts);

	return fd < 0 ? -errno : fd;
}

static int set_open(const struct bpf_tables *t, struct bpf_set *set)
{
	void *map;

	set->fd = bpf_tables_template(t);
	if (set->fd < 0)
		return set->fd;
	map = mmap(NULL, table_len(t), PROT_READ | PROT_WRITE, MAP_SHARED, set->fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	set->table = map;
	return 0;
}

void bpf_tables_release(struct bpf_tables *t)
{
	for (size_t i = 0; t->cpus && i < t->nr_cpus; i++) {
		set_close(t, &t->cpus[i].sets[0]);
		set_close(t, &t->cpus[i].sets[1]);
	}
	free(t->cpus);
	*t = (struct bpf_tables){ .fd = -1 };
}

static int use(struct bpf_tables *t, uint32_t cpu, unsigned int which)
{
	uint32_t fd = (uint32_t)t->cpus[cpu].sets[which].fd;

	return bpf_map_update_elem(t->fd, &cpu, &fd, BPF_ANY) < 0 ? -errno : 0;
}

int bpf_tables_add(struct bpf_tables *t, unsigned int cpu)
{
	struct bpf_cpu *c = &t->cpus[cpu];
	int r;

	if (cpu >= t->nr_cpus)
		return -ENODEV;
	if (c->present)
		return 0;
	r = set_open(t, &c->sets[0]);
	if (r >= 0)
		r = set_open(t, &c->sets[1]);
	if (r >= 0)
		r = use(t, cpu, 0);
	c->present = r >= 0;
	if (r >= 0)
		return 0;
	set_close(t, &c->sets[0]);
	set_close(t, &c->sets[1]);
	return r;
}

/* ---- exchange -------------------------------------------------------------------------------- */

static void exchanged(struct bpf_cpu *c)
{
	c->in_use ^= 1;
	c->unread = true;
}

/* The CPUs to exchange: how many. */
static uint32_t list(const struct bpf_tables *t, uint32_t *cpus, uint32_t *fds)
{
	uint32_t nr = 0;

	for (size_t i = 0; i < t->nr_cpus; i++) {
		const struct bpf_cpu *c = &t->cpus[i];

		if (!c->present || c->unread)
			continue;
		cpus[nr] = (uint32_t)i;
		fds[nr++] = (uint32_t)c->sets[!c->in_use].fd;
	}
	return nr;
}

/* How many of @nr the kernel exchanged by one call, which is not known everywhere. */
static uint32_t swap_batch(const struct bpf_tables *t, const uint32_t *cpus, const uint32_t *fds,
			   uint32_t nr)
{
	LIBBPF_OPTS(bpf_map_batch_opts, opts);
	uint32_t done = nr;

	if (nr < 2)
		return 0;
	if (bpf_map_update_batch(t->fd, cpus, fds, &done, &opts) == 0)
		return nr;
	/* After a failure on the way it says how far it came; all of them it cannot have done. */
	return done < nr ? done : 0;
}

/*
 * All at once, as nearly as can be: what is counted between the first and the last is too young to be
 * handed on, and with it all that was counted at its address before. One by one each would wait until
 * its old table is left.
 */
static int exchange_all(struct bpf_tables *t)
{
	uint32_t *cpus = malloc((t->nr_cpus + 1) * 2 * sizeof(*cpus)), nr, done;
	int r = 0;

	if (!cpus)
		return -ENOMEM;
	nr = list(t, cpus, cpus + t->nr_cpus);
	done = swap_batch(t, cpus, cpus + t->nr_cpus, nr);
	for (uint32_t i = 0; i < nr; i++) {
		struct bpf_cpu *c = &t->cpus[cpus[i]];
		int own = i < done ? 0 : use(t, cpus[i], !c->in_use);

		if (own >= 0)
			exchanged(c);
		else if (r >= 0)
			r = own;
	}
	free(cpus);
	return r;
}

/* An update alone waits until no program is in a table that was replaced; a batch does so on some
 * kernels only. */
static int wait_left(struct bpf_tables *t, size_t last)
{
	int r = use(t, (uint32_t)last, t->cpus[last].in_use);

	t->unsettled = r < 0;
	return r;
}

int bpf_tables_swap(struct bpf_tables *t)
{
	size_t last = t->nr_cpus;
	int r, w;

	while (last && !t->cpus[last - 1].present)
		last--;
	if (!last--)
		return 0;
	r = exchange_all(t);
	w = wait_left(t, last);
	return r < 0 ? r : w;
}

/* ---- reading --------------------------------------------------------------------------------- */

void bpf_tables_stopped(struct bpf_tables *t)
{
	t->unsettled = false;
	for (size_t i = 0; i < t->nr_cpus; i++) {
		if (t->cpus[i].present && !t->cpus[i].unread)
			exchanged(&t->cpus[i]);
	}
}

union count_bucket *bpf_tables_next(struct bpf_tables *t, size_t *cpu)
{
	while (!t->unsettled && *cpu < t->nr_cpus) {
		struct bpf_cpu *c = &t->cpus[(*cpu)++];

		if (!c->unread)
			continue;
		c->unread = false;
		return c->sets[!c->in_use].table;
	}
	return NULL;
}
