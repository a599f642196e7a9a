/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables in which programs count: mapped, and exchanged for empty ones. */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "bpf_internal.h"

/*
 * Where the kernel does not tell when its programs have left a table: they stay for a microsecond,
 * with interrupts off, so only a virtual CPU that its host takes away just then is in one still.
 */
#define REST_NS 100000000L

/* So many elements fill whole pages of the usual size: no page is two CPUs'. */
enum { STRIDE = 64 };
_Static_assert(STRIDE * sizeof(union count_bucket) % 4096 == 0, "stride");

static int gate_open(struct bpf_tables *t)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts);

	t->inner_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "dcpi_inner", 4, 4, 1, NULL);
	if (t->inner_fd < 0)
		return -errno;
	opts.inner_map_fd = (uint32_t)t->inner_fd;
	t->gate_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "dcpi_gate", 4, 4, 1, &opts);
	return t->gate_fd < 0 ? -errno : 0;
}

int bpf_tables_init(struct bpf_tables *t, uint32_t len, size_t nr_cpus)
{
	size_t stride, nr;

	*t = (struct bpf_tables){ .gate_fd = -1, .inner_fd = -1, .shape = count_shape_of(len) };
	stride = base_align_up(count_nr_elements(&t->shape), STRIDE);
	if (base_mul_overflow(stride, 2 * nr_cpus, &nr) || nr > UINT32_MAX)
		return -ENOMEM;
	t->stride = (uint32_t)stride;
	t->nr_elements = (uint32_t)nr;
	t->nr_cpus = nr_cpus;
	return 0;
}

void bpf_tables_release(struct bpf_tables *t)
{
	if (t->all)
		munmap(t->all, t->nr_elements * sizeof(*t->all));
	if (t->nr_cpus && t->gate_fd >= 0)
		close(t->gate_fd);
	if (t->nr_cpus && t->inner_fd >= 0)
		close(t->inner_fd);
	*t = (struct bpf_tables){ .gate_fd = -1, .inner_fd = -1 };
}

int bpf_tables_map(struct bpf_tables *t, int fd)
{
	void *all = mmap(NULL, t->nr_elements * sizeof(*t->all), PROT_READ | PROT_WRITE, MAP_SHARED,
			 fd, 0);

	if (all == MAP_FAILED)
		return -errno;
	t->all = all;
	return gate_open(t);
}

int bpf_tables_have(const struct bpf_tables *t, unsigned int cpu)
{
	return cpu < t->nr_cpus ? 0 : -DCPI_ELIMIT;
}

/* ---- exchange -------------------------------------------------------------------------------- */

/*
 * To put a map into a map of maps, even the one that is there, returns when every program that ran
 * has ended (Linux 1ae80cf31938, in 4.20: "bpf: wait for running BPF programs when updating
 * map-in-map"; the kernel's own tests wait so). No program has to know that map of maps.
 */
int bpf_tables_wait(const struct bpf_tables *t)
{
	const struct timespec rest = { .tv_nsec = REST_NS };
	const uint32_t at = 0;
	int r = bpf_map_update_elem(t->gate_fd, &at, &t->inner_fd, BPF_ANY) < 0 ? -errno : 0;

	if (r < 0)
		nanosleep(&rest, NULL);
	return r;
}

/* A program that was not waited for may have counted after the clearing, where no bit shows it. */
static void look_everywhere(struct bpf_tables *t)
{
	for (size_t cpu = 0; cpu < t->nr_cpus; cpu++)
		count_use_all(bpf_tables_old(t, cpu), &t->shape);
}

int bpf_tables_swap(struct bpf_tables *t, uint64_t now_ns, uint32_t bank)
{
	struct sample_shared *e = t->shared;
	uint32_t set;
	int r;

	if (t->unwaited)
		look_everywhere(t);
	set = !(e->set & ~SAMPLE_BANK);
	__atomic_store_n(&e->since_ns[set], now_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&e->set, bank ? set | SAMPLE_BANK : set, __ATOMIC_SEQ_CST);
	r = bpf_tables_wait(t);
	t->unwaited = r < 0;
	return r;
}

union count_bucket *bpf_tables_old(const struct bpf_tables *t, size_t cpu)
{
	return bpf_tables_at(t, cpu, !(t->shared->set & ~SAMPLE_BANK));
}
