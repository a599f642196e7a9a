/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening of the source "bpf": programs, events, tables; failures said plainly. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bpf_internal.h"
#include "kernel/sample.h"

enum {
	BPF_TABLE_LEN = 16384,
	BPF_TABLE_LEN_MIN = COUNT_WAYS,
	BPF_TABLE_LEN_MAX = 1 << 20,
	BPF_DRAIN_MS = 5000,
};

/* Inode of the PID namespace in which programs see processes (include/linux/proc_ns.h). */
#define INITIAL_PID_NAMESPACE 0xeffffffcu

static int check_config(const struct driver_config *config, struct base_err *err)
{
	size_t len = config->table_len;

	if (config->pid > 0)
		return base_fail(err, -DCPI_EUSAGE,
				 "a single process is not counted in the kernel: use 'perf'");
	if (len && (len & (len - 1) || len < BPF_TABLE_LEN_MIN || len > BPF_TABLE_LEN_MAX))
		return base_fail(err, -DCPI_EUSAGE,
				 "table of %zu entries: not a power of two from %d to %d", len,
				 BPF_TABLE_LEN_MIN, BPF_TABLE_LEN_MAX);
	if (config->window_every) {
		int r = bpf_windows_check(config, err);

		if (r < 0)
			return r;
	}
	return perf_config_check(config, err);
}

/* Programs see processes by their numbers outside of any container. */
static int check_namespace(struct base_err *err)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == INITIAL_PID_NAMESPACE)
		return 0;
	base_fail(err, -DCPI_EUNSUPPORTED,
		  "cannot count in the kernel from within a PID namespace of its own");
	base_hint(err, "start the container in the host's PID namespace");
	return -DCPI_EUNSUPPORTED;
}

/* One more than the highest number of a CPU that is there, on or off. */
static int nr_present(void)
{
	unsigned int *cpus = NULL, highest = 0;
	int nr = perf_cpus_list("present", &cpus);

	for (int i = 0; i < nr; i++)
		highest = cpus[i] > highest ? cpus[i] : highest;
	free(cpus);
	return nr < 0 ? nr : (int)highest + 1;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static int open_tables(struct bpf *b, const struct driver_config *config, struct base_err *err)
{
	size_t len = config->table_len ? config->table_len : BPF_TABLE_LEN;
	int r = nr_present();

	if (r >= 0)
		r = bpf_tables_init(&b->tables, (uint32_t)len, (size_t)r);
	return r < 0 ? base_fail_errno(err, r, "cannot count in the kernel") : 0;
}

static int open_sampler(struct bpf *b, const struct driver_config *config, size_t nr,
			const char *why, struct base_err *err)
{
	int programs[DRIVER_NR_EVENTS], r;

	for (size_t i = 0; i < nr; i++)
		programs[i] = bpf_programs_fd(&b->programs, i);
	r = perf_sampler_open(&b->sampler, &b->base, config, b->specs, nr, programs, why, err);
	for (size_t i = 0; i < nr && r >= 0; i++) {
		if (b->specs[i].tick)
			b->base.events[i].period = bpf_tick_period();
	}
	return r;
}

static int on_fork(void *ctx, void *data, size_t len)
{
	struct bpf *b = ctx;

	if (len >= sizeof(struct sample_fork))
		bpf_forks_add(&b->forks, data);
	return 0;
}

static int on_note(void *ctx, void *data, size_t len)
{
	struct bpf *b = ctx;

	b->noted |= len > 0 && *(uint8_t *)data == SAMPLE_NOTE_DRAIN;
	return 0;
}

static int open_timer(struct bpf *b)
{
	const struct timespec every = { .tv_sec = b->drain_ms / 1000,
					.tv_nsec = b->drain_ms % 1000 * 1000000L };
	const struct itimerspec when = { every, every };

	b->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (b->timer_fd < 0 || timerfd_settime(b->timer_fd, 0, &when, NULL) < 0)
		return -errno;
	return perf_sampler_poll_add(&b->sampler, b->timer_fd);
}

static int open_ring(struct bpf *b, void **ring, int fd, ring_buffer_sample_fn on_record)
{
	*ring = ring_buffer__new(fd, on_record, b, NULL);
	return *ring ? perf_sampler_poll_add(&b->sampler, ring_buffer__epoll_fd(*ring)) : -errno;
}

static int open_polling(struct bpf *b, struct base_err *err)
{
	int r = open_timer(b);

	if (r >= 0)
		r = open_ring(b, &b->notes, bpf_programs_notes_fd(&b->programs), on_note);
	if (r >= 0)
		r = open_ring(b, &b->told_forks, bpf_programs_forks_fd(&b->programs), on_fork);
	return r < 0 ? base_fail_errno(err, r, "cannot wait for the kernel's tables") : 0;
}

static int open_parts(struct bpf *b, const struct driver_config *config, struct base_err *err)
{
	const char *why;
	int nr = perf_specs_choose(config, b->specs, &why, err), r = nr;

	if (r >= 0)
		r = open_tables(b, config, err);
	if (r >= 0)
		r = bpf_programs_open(&b->programs, config, b->specs, (size_t)nr, &b->tables, err);
	if (r < 0)
		return r;
	r = bpf_tables_map(&b->tables, bpf_programs_tables_fd(&b->programs));
	if (r < 0)
		return bpf_refused(err, r, "cannot make the kernel's tables");
	b->tables.shared = bpf_programs_shared(&b->programs);
	r = open_sampler(b, config, (size_t)nr, why, err);
	b->sampler.new_cpu = bpf_add_cpu;
	b->why = b->sampler.why;
	if (r >= 0)
		r = open_polling(b, err);
	if (r < 0)
		return r;
	r = bpf_windows_open(b, config);
	return r < 0 ? bpf_refused(err, r, "cannot make room for windows") : 0;
}

int bpf_open(const struct driver_config *config, struct driver **out, struct base_err *err)
{
	struct bpf *b;
	int r = check_config(config, err);

	*out = NULL;
	if (r >= 0)
		r = check_namespace(err);
	if (r < 0)
		return r;
	b = calloc(1, sizeof(*b));
	if (!b)
		return base_fail_errno(err, -ENOMEM, "cannot sample");
	b->base.ops = &bpf_ops;
	b->base.utc = -1;
	b->timer_fd = -1;
	b->programs.pins_fd = -1;
	b->tables.gate_fd = b->tables.inner_fd = -1;
	b->drain_ms = config->drain_ms ? config->drain_ms : BPF_DRAIN_MS;
	r = open_parts(b, config, err);
	if (r < 0) {
		bpf_ops.close(&b->base);
		return r;
	}
	*out = &b->base;
	return 0;
}
