/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the scheduler's tick is, by what the kernel tells of itself: symbols and types. */
#include <bpf/btf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bpf_internal.h"
#include "kernel/sample.h"

#define KALLSYMS "/proc/kallsyms"
#define PERCPU	 ".data..percpu"

static int no_tick(struct base_err *err, const char *why, const char *hint)
{
	base_fail(err, -DCPI_EUNSUPPORTED, "cannot sample on 'tick': %s", why);
	if (hint)
		base_hint(err, "%s", hint);
	return -DCPI_EUNSUPPORTED;
}

/* ---- the timer's function -------------------------------------------------------------------- */

/*
 * Its names. tick_nohz_handler is older than the other two, but until Linux 6.8 it stood beside
 * them, for timers without high resolution: then it is not what we look for.
 */
static int rank_of(const char *name)
{
	if (!strcmp(name, "tick_sched_timer") || !strcmp(name, "tick_nohz_highres_handler"))
		return 2;
	return !strcmp(name, "tick_nohz_handler");
}

int bpf_tick_function(FILE *kallsyms, uint64_t *function)
{
	char line[512], name[128], module[2];
	uint64_t addr;
	int best = 0, rank, n;

	*function = 0;
	while (fgets(line, sizeof(line), kallsyms)) {
		n = sscanf(line, "%" SCNx64 " %*c %127s %1s", &addr, name, module);
		rank = n == 2 ? rank_of(name) : 0;
		if (rank <= best)
			continue;
		best = rank;
		*function = addr;
	}
	if (!best)
		return -ENOENT;
	return *function ? 0 : -EPERM;
}

static int find_function(uint64_t *function, struct base_err *err)
{
	FILE *f = fopen(KALLSYMS, "re");
	int r;

	if (!f)
		return no_tick(err, "cannot open '" KALLSYMS "'", NULL);
	r = bpf_tick_function(f, function);
	fclose(f);
	if (r == -EPERM) {
		no_tick(err, "the kernel hides its addresses", NULL);
		base_hint(err, "%s or with CAP_SYSLOG, with kernel.kptr_restrict at 1 or 0",
			  driver_run_as_root());
		return -DCPI_EUNSUPPORTED;
	}
	return r < 0 ? no_tick(err, "this kernel's tick is no high-resolution timer", NULL) : 0;
}

/* ---- the interrupted registers --------------------------------------------------------------- */

static const struct btf_type *find_percpu(const struct btf *btf)
{
	for (uint32_t id = 1; id < btf__type_cnt(btf); id++) {
		const struct btf_type *t = btf__type_by_id(btf, id);

		if (btf_is_datasec(t) && !strcmp(btf__name_by_offset(btf, t->name_off), PERCPU))
			return t;
	}
	return NULL;
}

/* Offset of a per-CPU variable, or -1. */
static int64_t percpu_offset(const struct btf *btf, const struct btf_type *sec, const char *name)
{
	const struct btf_var_secinfo *v = btf_var_secinfos(sec);

	for (uint32_t i = 0; i < btf_vlen(sec); i++) {
		const struct btf_type *var = btf__type_by_id(btf, v[i].type);

		if (!strcmp(btf__name_by_offset(btf, var->name_off), name))
			return v[i].offset;
	}
	return -1;
}

static int find_delta(int32_t *delta, bool *can_cast, struct base_err *err)
{
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *percpu = btf ? find_percpu(btf) : NULL;
	int64_t regs = -1, bases = -1, distance;

	if (percpu) {
		regs = percpu_offset(btf, percpu, "__irq_regs");
		bases = percpu_offset(btf, percpu, "hrtimer_bases");
	}
	distance = regs - bases;
	*delta = (int32_t)distance;
	*can_cast = btf && btf__find_by_name_kind(btf, "bpf_rdonly_cast", BTF_KIND_FUNC) > 0;
	btf__free(btf);
	if (!btf) {
		const char *hint, *why = driver_no_types(&hint);

		return no_tick(err, why, hint);
	}
	if (regs < 0 || bases < 0 || distance >= SAMPLE_DELTA_MAX || distance < -SAMPLE_DELTA_MAX)
		return no_tick(err, "the kernel does not tell where it keeps interrupted registers",
			       NULL);
	return 0;
}

int bpf_tick_find(uint64_t *function, int32_t *irq_regs_delta, bool *can_cast, struct base_err *err)
{
	int r = find_function(function, err);

	return r < 0 ? r : find_delta(irq_regs_delta, can_cast, err);
}

/* The coarse clock moves with the tick. */
uint64_t bpf_tick_period(void)
{
	struct timespec t = { .tv_nsec = 4000000 };

	clock_getres(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_nsec;
}
