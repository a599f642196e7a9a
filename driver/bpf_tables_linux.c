/* SPDX-License-Identifier: BSD-2-Clause */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "bpf_internal.h"
#include "bpf/sample.h"

/*
 * Where the kernel does not tell when its programs have left a table: they stay for a microsecond,
 * with interrupts off, so only a virtual CPU that its host takes away just then is in one still.
 */
#define REST_NS 100000000L

static size_t table_len(const struct bpf_tables *t)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return base_align_up(count_nr_elements(&t->shape) * sizeof(union count_bucket), page);
}

int bpf_tables_init(struct bpf_tables *t, uint32_t len, size_t nr_cpus)
{
	*t = (struct bpf_tables){ .fd = -1, .any_fd = -1, .shape = count_shape_of(len) };
	t->cpus = calloc(nr_cpus, sizeof(*t->cpus));
	if (!t->cpus)
		return -ENOMEM;
	t->nr_cpus = nr_cpus;
	return 0;
}

void bpf_tables_release(struct bpf_tables *t)
{
	for (size_t i = 0; t->cpus && i < t->nr_cpus; i++) {
		for (int k = 0; k < 2; k++) {
			if (t->cpus[i].sets[k])
				munmap(t->cpus[i].sets[k], table_len(t));
		}
	}
	if (t->cpus && t->any_fd >= 0)
		close(t->any_fd);
	free(t->cpus);
	*t = (struct bpf_tables){ .fd = -1, .any_fd = -1 };
}

/* ---- tables ---------------------------------------------------------------------------------- */

int bpf_tables_template(const struct bpf_tables *t)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "dcpi_counts", sizeof(uint32_t),
				sizeof(union count_bucket), count_nr_elements(&t->shape), &opts);

	return fd < 0 ? -errno : fd;
}

static int put(const struct bpf_tables *t, uint32_t at, int fd)
{
	return bpf_map_update_elem(t->fd, &at, &fd, BPF_ANY) < 0 ? -errno : 0;
}

/* The mapping and the map of maps keep it; one descriptor stays, to wait with. */
static void keep_fd(struct bpf_tables *t, uint32_t at, int fd)
{
	if (t->any_fd >= 0) {
		close(fd);
		return;
	}
	t->any_fd = fd;
	t->any = at;
}

/* Once programs can find it, it is mapped: what they count in it can be read. */
static int add(struct bpf_tables *t, uint32_t cpu, uint32_t set)
{
	uint32_t at = SAMPLE_TABLE(cpu, set);
	int fd = bpf_tables_template(t), r;
	void *map;

	if (fd < 0)
		return fd;
	map = mmap(NULL, table_len(t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	r = map == MAP_FAILED ? -errno : put(t, at, fd);
	if (r < 0) {
		if (map != MAP_FAILED)
			munmap(map, table_len(t));
		close(fd);
		return r;
	}
	t->cpus[cpu].sets[set] = map;
	keep_fd(t, at, fd);
	return 0;
}

int bpf_tables_add(struct bpf_tables *t, unsigned int cpu)
{
	int r = cpu < t->nr_cpus ? 0 : -ENODEV;

	for (uint32_t set = 0; set < 2 && r >= 0; set++) {
		if (!t->cpus[cpu].sets[set])
			r = add(t, cpu, set);
	}
	return r;
}

/* ---- exchange -------------------------------------------------------------------------------- */

/*
 * To put a map into a map of maps, even the one that is there, returns when every program that ran
 * has ended (Linux 1ae80cf31938, in 4.20: "bpf: wait for running BPF programs when updating
 * map-in-map"; the kernel's own tests wait so).
 */
static int wait_for_programs(const struct bpf_tables *t)
{
	const struct timespec rest = { .tv_nsec = REST_NS };
	int r = put(t, t->any, t->any_fd);

	if (r < 0)
		nanosleep(&rest, NULL);
	return r;
}

/* Who was not waited for may have counted behind the clearing, where no bit tells of it. */
static void look_everywhere(struct bpf_tables *t)
{
	for (size_t cpu = 0; cpu < t->nr_cpus; cpu++) {
		union count_bucket *table = bpf_tables_old(t, cpu);

		if (table)
			count_use_all(table, &t->shape);
	}
}

int bpf_tables_swap(struct bpf_tables *t, uint64_t now_ns)
{
	struct sample_shared *e = t->shared;
	int r;

	if (t->any_fd < 0)
		return 0;
	if (t->unwaited)
		look_everywhere(t);
	__atomic_store_n(&e->since_ns[!e->set], now_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&e->set, !e->set, __ATOMIC_SEQ_CST);
	r = wait_for_programs(t);
	t->unwaited = r < 0;
	return r;
}

union count_bucket *bpf_tables_old(const struct bpf_tables *t, size_t cpu)
{
	return t->cpus[cpu].sets[!t->shared->set];
}
