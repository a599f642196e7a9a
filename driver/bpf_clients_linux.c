/* SPDX-License-Identifier: BSD-2-Clause */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>

#include "bpf_program.h"

static int clients_fd(const struct bpf_programs *p)
{
	return bpf_map__fd(p->objects[0]->maps.clients);
}

static uint32_t *nr_clients(const struct bpf_programs *p)
{
	return &p->objects[0]->bss->shared.nr_clients;
}

/* The programs on exec and exit take away what these end. */
static int watch(struct bpf_programs *p)
{
	struct sample *s = p->objects[0];

	if (!p->on_exec)
		p->on_exec = bpf_program__attach_trace(s->progs.sample_exec);
	if (p->on_exec && !p->on_exit)
		p->on_exit = bpf_program__attach_trace(s->progs.sample_exit);
	return p->on_exec && p->on_exit ? 0 : -errno;
}

void bpf_clients_sweep(struct bpf_programs *p)
{
	if (!p->on_exec || __atomic_load_n(nr_clients(p), __ATOMIC_ACQUIRE))
		return;
	bpf_link__destroy(p->on_exec);
	bpf_link__destroy(p->on_exit);
	p->on_exec = p->on_exit = NULL;
}

/* The kernel's side may have been faster: only who takes it away counts it. */
static int drop(struct bpf_programs *p, uint32_t tgid)
{
	if (bpf_map_delete_elem(clients_fd(p), &tgid) == 0)
		__atomic_sub_fetch(nr_clients(p), 1, __ATOMIC_ACQ_REL);
	else if (errno != ENOENT)
		return -errno;
	return 0;
}

static int put(struct bpf_programs *p, uint32_t tgid, const struct sample_client *c)
{
	int r;

	if (bpf_map_update_elem(clients_fd(p), &tgid, c, BPF_EXIST) == 0)
		return 0;
	if (errno != ENOENT)
		return -errno;
	/* Before it is there, or a sample would not look. */
	__atomic_add_fetch(nr_clients(p), 1, __ATOMIC_ACQ_REL);
	r = bpf_map_update_elem(clients_fd(p), &tgid, c, BPF_NOEXIST) < 0 ? -errno : 0;
	if (r < 0)
		__atomic_sub_fetch(nr_clients(p), 1, __ATOMIC_ACQ_REL);
	return r == -E2BIG || r == -ENOMEM ? -DCPI_ELIMIT : r;
}

int bpf_clients_set(struct bpf_programs *p, int32_t pid, const struct driver_range *ranges,
		    size_t nr)
{
	struct sample_client c = { .tgid = (uint32_t)pid, .nr = (uint32_t)nr };
	int r;

	if (pid <= 0)
		return -EINVAL;
	if (nr > SAMPLE_NR_RANGES)
		return -DCPI_ELIMIT;
	if (!nr)
		return drop(p, c.tgid);
	for (size_t i = 0; i < nr; i++) {
		c.ranges[i].start = ranges[i].start;
		c.ranges[i].end = ranges[i].end;
		c.ranges[i].words = ranges[i].words;
	}
	r = watch(p);
	if (r >= 0)
		r = put(p, c.tgid, &c);
	/* It may have ended before its exit was watched for. */
	if (r >= 0 && kill(pid, 0) < 0 && errno == ESRCH)
		drop(p, c.tgid);
	return r;
}
