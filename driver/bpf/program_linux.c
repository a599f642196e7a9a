/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The programs that run in the kernel: loaded, with their maps, constants and the place of the
 * scheduler's tick; refusals said plainly.
 */
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "bpf_internal.h"
#include "bpf_program.h"
#include "kernel/sample.h"

/* ---- the scheduler's tick -------------------------------------------------------------------- */

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

static int find_delta(int32_t *delta, struct base_err *err)
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

/* Where the scheduler's tick can be found. -DCPI_EUNSUPPORTED with the reason.
 */
static int bpf_tick_find(uint64_t *function, int32_t *irq_regs_delta, struct base_err *err)
{
	int r = find_function(function, err);

	return r < 0 ? r : find_delta(irq_regs_delta, err);
}

/* The coarse clock moves with the tick. */
uint64_t bpf_tick_period(void)
{
	struct timespec t = { .tv_nsec = 4000000 };

	clock_getres(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_nsec;
}

/* ---- programs -------------------------------------------------------------------------------- */

enum { TRACE_INSNS = 64 };

/* ---- refusals -------------------------------------------------------------------------------- */

static bool locked_down(void)
{
	struct base_buf text = { 0 };
	bool down = false;

	if (base_file_read(AT_FDCWD, "/sys/kernel/security/lockdown", 4096, &text, NULL) >= 0 &&
	    base_buf_append(&text, "", 1) >= 0)
		down = strstr((const char *)text.data, "[none]") == NULL;
	base_buf_release(&text);
	return down;
}

static void hint_refused(struct base_err *err, int error)
{
	if (error == -EPERM || error == -EACCES) {
		if (geteuid() == 0 && locked_down())
			base_hint(err, "the kernel is locked down (/sys/kernel/security/lockdown)");
		else if (error == -EACCES && geteuid() == 0 && !driver_in_user_namespace())
			base_hint(err, "this kernel, or a security module, takes no such program: "
				       "report that, with the kernel's release (uname -r)");
		else
			base_hint(err, "%s or with CAP_BPF and CAP_PERFMON", driver_run_as_root());
	} else if (error == -EINVAL) {
		base_hint(err,
			  "Linux 5.12 or later is needed; report a later one that refuses them");
	} else if (error == -ENOMEM) {
		base_hint(err, "ask for smaller tables (-table)");
	} else if (error == -EMFILE || error == -ENFILE) {
		base_hint(err, "raise the limit of open files (ulimit -n)");
	}
}

int bpf_refused(struct base_err *err, int error, const char *what)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK) < 0) {
		const char *hint, *why = driver_no_types(&hint);

		base_fail(err, -DCPI_EUNSUPPORTED, "%s: %s", what, why);
		base_hint(err, "%s", hint);
		return -DCPI_EUNSUPPORTED;
	}
	if (error == -ESRCH || error == -ENOSYS)
		return base_fail(err, -DCPI_EUNSUPPORTED, "%s: this kernel lacks a part of it: %s",
				 what, base_strerror(error));
	base_fail(err, -DCPI_ENOEVENTS, "%s: %s", what, base_strerror(error));
	hint_refused(err, error);
	return -DCPI_ENOEVENTS;
}

/* ---- loading --------------------------------------------------------------------------------- */

static int keep_silent(enum libbpf_print_level level, const char *fmt, va_list args)
{
	(void)level;
	(void)fmt;
	(void)args;
	return 0;
}

/* Linux 6.1 and earlier: see KERNEL_OLDER. */
static bool kernel_is_older(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool older = !btf || btf__find_by_name_kind(btf, "bpf_rdonly_cast", BTF_KIND_FUNC) < 0;

	btf__free(btf);
	return older;
}

/* NAME_open(older): NAME's skeleton, of the object for older kernels or of the other. NULL and
 * errno. */
#define OPEN_EITHER(name)                                                                          \
	static struct name *name##_open(bool older)                                                \
	{                                                                                          \
		struct name *own = older ? calloc(1, sizeof(*own)) : name##__open();               \
		int r;                                                                             \
                                                                                                   \
		if (!own || !older)                                                                \
			return own;                                                                \
		r = name##__create_skeleton(own);                                                  \
		if (r >= 0) {                                                                      \
			own->skeleton->data =                                                      \
				(void *)name##_older__elf_bytes(&own->skeleton->data_sz);          \
			r = bpf_object__open_skeleton(own->skeleton, NULL);                        \
		}                                                                                  \
		if (r >= 0)                                                                        \
			return own;                                                                \
		name##__destroy(own);                                                              \
		errno = -r;                                                                        \
		return NULL;                                                                       \
	}

OPEN_EITHER(sample)
OPEN_EITHER(sample_behind)
OPEN_EITHER(sample_waiting)

/* Has @own (SHARED_MAPS of an object not loaded yet) use those of @first. 0 or a negative errno. */
static int maps_share(struct bpf_map *const *own, struct bpf_map *const *first)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < NR_SHARED_MAPS; i++)
		r = bpf_map__reuse_fd(own[i], bpf_map__fd(first[i]));
	return r;
}

/* Only what is used is loaded: a kernel without a part of it may still do. */
static void choose_programs(struct sample *own, bool tick, bool first, bool behind)
{
	bpf_program__set_autoload(own->progs.pins_take, first && own->rodata->can_pin);
	bpf_program__set_autoload(own->progs.sample_event, !tick && !behind);
	bpf_program__set_autoload(own->progs.sample_tick, tick && !behind);
	bpf_program__set_autoload(own->progs.program_begins, first);
	bpf_program__set_autoload(own->progs.sample_exec, first);
	bpf_program__set_autoload(own->progs.sample_exit, first);
	bpf_program__set_autoload(own->progs.sample_fork, first);
}

static int set_constants(struct bpf_programs *p, const struct bpf_tables *t, size_t event,
			 bool tick, struct base_err *err)
{
	struct sample_shared *s = &p->objects[0]->bss->shared;

	p->objects[event]->rodata->event = (uint32_t)event;
	p->objects[event]->rodata->can_pin = p->pins_fd >= 0;
	for (size_t i = 0; i < COUNT_NR_MIX; i++)
		p->objects[event]->rodata->mix[i] = p->mix[i];
	s->shape = t->shape;
	s->stride = t->stride;
	if (!tick)
		return 0;
	s->tick_event = (uint32_t)event;
	return bpf_tick_find(&s->tick_function, &s->irq_regs_delta, err);
}

/* @behind: another program samples it, and here are but the maps. */
static int open_one(struct bpf_programs *p, size_t event, bool tick, bool behind,
		    const struct bpf_tables *t, struct base_err *err)
{
	struct sample *own = sample_open(p->older);
	int r;

	if (!own)
		return bpf_refused(err, -errno, "cannot open the BPF programs");
	p->objects[event] = own;
	p->nr = event + 1;
	r = set_constants(p, t, event, tick, err);
	if (r < 0)
		return r;
	choose_programs(own, tick, event == 0, behind);
	r = event == 0 ? bpf_map__set_max_entries(own->maps.tables, t->nr_elements)
		       : maps_share(SHARED_MAPS(own), SHARED_MAPS(p->objects[0]));
	if (r >= 0)
		r = bpf_pins_use(p, own->maps.pins);
	if (r >= 0)
		r = sample__load(own);
	return r < 0 ? bpf_refused(err, r, "cannot load a BPF program") : 0;
}

/* Without random numbers it is a hash that can be foreseen. */
static void draw_mix(struct bpf_programs *p)
{
	if (getrandom(p->mix, sizeof(p->mix), GRND_NONBLOCK) < (ssize_t)sizeof(p->mix))
		memcpy(p->mix, count_mix, sizeof(p->mix));
	for (size_t i = 0; i < COUNT_NR_MIX; i++)
		p->mix[i] |= 1;
}

/* ---- what comes behind a sample -------------------------------------------------------------- */

uint64_t bpf_rate(const struct driver_config *config, const struct event_spec *spec)
{
	uint64_t period = spec->tick ? bpf_tick_period() : spec->clock ? spec->period : 0;

	return period		   ? 1000000000 / period
	       : spec->period	   ? BPF_DEFAULT_RATE
	       : config->frequency ? config->frequency
				   : BPF_DEFAULT_RATE;
}

static void set_behind_constants(struct sample_behind *own, const struct driver_config *config,
				 size_t event, const struct event_spec *spec)
{
	own->rodata->traced = config->trace_every && event == 0;
	own->rodata->callpath_kernel = !spec->precise;
	own->rodata->trace_insns = config->trace_insns ? config->trace_insns : TRACE_INSNS;
	own->rodata->trace_log = config->trace_log;
	own->rodata->trace_kernel = config->trace_kernel;
	own->rodata->callpath_every =
		config->callpath_scaled ? bpf_scaled(config->callpath_every, bpf_rate(config, spec))
					: config->callpath_every;
}

static void set_sample_constants(struct sample_behind *own, const struct sample *instead_of)
{
	own->rodata->event = instead_of->rodata->event;
	own->rodata->can_pin = instead_of->rodata->can_pin;
	for (size_t i = 0; i < COUNT_NR_MIX; i++)
		own->rodata->mix[i] = instead_of->rodata->mix[i];
}

enum { NOTHING_LEN = 65536 /* bytes of a ring, at least a page of any size */ };

/* Traces by default take little memory: for the code that programs run most of the time. */
enum { SMALL_BLOCKS = TRACE_NR_BLOCKS / 16, SMALL_RING = TRACE_RING_LEN / 4 };

/* Maps of what is not asked for are as small as can be. */
static int size_trace_maps(const struct sample_behind *own, const struct driver_config *config,
			   uint32_t nr_cpus)
{
	const bool on = config->trace_every != 0;
	const uint32_t blocks = !on ? 1 : config->trace_optional ? SMALL_BLOCKS : TRACE_NR_BLOCKS;
	const uint32_t buckets = on ? blocks / TRACE_BLOCKS_EACH : 1;
	const uint32_t ring = !on		       ? NOTHING_LEN
			      : config->trace_optional ? SMALL_RING
						       : TRACE_RING_LEN;
	int r = bpf_map__set_max_entries(own->maps.trace_cpus, on ? nr_cpus : 1);

	own->rodata->trace_nr_buckets = buckets;
	own->rodata->trace_ring_len = ring;
	if (r >= 0)
		r = bpf_map__set_max_entries(own->maps.trace_blocks, blocks);
	if (r >= 0)
		r = bpf_map__set_max_entries(own->maps.trace_buckets, buckets);
	if (r >= 0)
		r = bpf_map__set_max_entries(own->maps.trace_uops,
					     on ? blocks * TRACE_UOPS_EACH : 1);
	return r < 0 ? r : bpf_map__set_max_entries(own->maps.traces, ring);
}

static int size_callpath_maps(const struct sample_behind *own, bool on, uint32_t nr_cpus)
{
	struct bpf_map *const maps[] = { own->maps.callpath_banks, own->maps.callpath_tables,
					 own->maps.callpath_files, own->maps.callpath_pythons };
	int r = bpf_map__set_max_entries(own->maps.callpath_cpus, on ? nr_cpus : 1);

	if (r >= 0)
		r = bpf_map__set_max_entries(own->maps.callpath_python_cpus, on ? nr_cpus : 1);
	for (size_t i = 0; r >= 0 && !on && i < sizeof(maps) / sizeof(maps[0]); i++)
		r = bpf_map__set_max_entries(maps[i], 1);
	if (r >= 0 && !on)
		r = bpf_map__set_max_entries(own->maps.callpaths, NOTHING_LEN);
	if (r >= 0 && !on)
		r = bpf_map__set_max_entries(own->maps.callpath_functions, NOTHING_LEN);
	return r;
}

static void choose_behind(const struct sample_behind *own, bool tick)
{
	bpf_program__set_autoload(own->progs.sample_event, !tick);
	bpf_program__set_autoload(own->progs.sample_tick, tick);
	bpf_program__set_autoload(own->progs.program_begins, false);
	bpf_program__set_autoload(own->progs.sample_exec, false);
	bpf_program__set_autoload(own->progs.sample_exit, false);
	bpf_program__set_autoload(own->progs.sample_fork, false);
	bpf_program__set_autoload(own->progs.pins_take, false);
}

static const char *behind_name(const struct driver_config *config)
{
	return !config->callpath_every ? "cannot load the BPF program of traces"
	       : !config->trace_every  ? "cannot load the BPF program of call paths"
				       : "cannot load the BPF program of traces and call paths";
}

/* @own uses the maps of @first that have the same names, but for two. */
static int share_named(struct bpf_object *own, const struct bpf_object *first,
		       const struct bpf_map *rodata, const struct bpf_map *pins)
{
	struct bpf_map *map;
	int r = 0;

	bpf_object__for_each_map(map, own)
	{
		const struct bpf_map *of = bpf_object__find_map_by_name(first, bpf_map__name(map));

		if (r >= 0 && of && map != rodata && map != pins)
			r = bpf_map__reuse_fd(map, bpf_map__fd(of));
	}
	return r;
}

/* The maps of the first one, with those that it shares with all samplers. */
static int share_behind(struct bpf_programs *p, struct sample_behind *own)
{
	const struct sample_behind *first = p->behind[0];
	int r = maps_share(SHARED_MAPS(own), SHARED_MAPS(p->objects[0]));

	if (r < 0 || own == first)
		return r;
	return share_named(own->obj, first->obj, own->maps.rodata, own->maps.pins);
}

static int size_maps(const struct sample_behind *own, const struct driver_config *config,
		     uint32_t nr_cpus)
{
	int r = size_trace_maps(own, config, nr_cpus);

	/* Whoever measures waits walks paths beside the samples: in elements behind theirs, and the
	 * look at all threads in the last one. */
	return r < 0 ? r
		     : size_callpath_maps(own, config->callpath_every != 0,
					  config->waits ? 2 * nr_cpus + 1 : nr_cpus);
}

static int open_behind(struct bpf_programs *p, const struct driver_config *config, size_t event,
		       const struct event_spec *spec, uint32_t nr_cpus, struct base_err *err)
{
	struct sample_behind *own = sample_behind_open(p->older);
	int r;

	if (!own)
		return bpf_refused(err, -errno, behind_name(config));
	p->behind[event] = own;
	set_sample_constants(own, p->objects[event]);
	set_behind_constants(own, config, event, spec);
	choose_behind(own, spec->tick);
	r = share_behind(p, own);
	if (r >= 0)
		r = bpf_pins_use(p, own->maps.pins);
	if (r >= 0 && event == 0)
		r = size_maps(own, config, nr_cpus);
	if (r >= 0)
		r = sample_behind__load(own);
	return r < 0 ? bpf_refused(err, r, behind_name(config)) : 0;
}

/* ---- waiting and running threads ------------------------------------------------------------- */

/* So many keys, and for each CPU so many more, as each preempts threads wherever they are. */
enum { WAIT_KEYS_OF_CPU = 4096 };

static int read_kinds(struct bpf_wait_kinds *kinds)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	int r = f ? bpf_wait_kinds_read(kinds, f) : -errno;

	if (f)
		fclose(f);
	return r;
}

/* Programs of waits alone are attached here, and the iterator not by itself. */
static void choose_waiting(struct sample_waiting *own)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, own->obj)
	{
		bpf_program__set_autoload(program,
					  !strncmp(bpf_program__name(program), "wait_", 5));
	}
}

static void set_waiting_constants(const struct bpf_programs *p, struct sample_waiting *own,
				  uint32_t nr_cpus)
{
	own->rodata->can_pin = p->objects[0]->rodata->can_pin;
	for (size_t i = 0; i < COUNT_NR_MIX; i++)
		own->rodata->mix[i] = p->mix[i];
	own->rodata->wait_first_cpu = nr_cpus;
	own->rodata->wait_schedule = p->kinds.schedule;
	own->rodata->wait_schedule_end = p->kinds.schedule_end;
}

static int size_waiting_maps(const struct sample_waiting *own, uint32_t nr_cpus)
{
	uint32_t keys = WAIT_NR_KEYS + nr_cpus * WAIT_KEYS_OF_CPU;
	int r = bpf_map__set_max_entries(own->maps.wait_cpus, nr_cpus);

	if (r >= 0)
		r = bpf_map__set_max_entries(own->maps.wait_sums0, keys);
	return r < 0 ? r : bpf_map__set_max_entries(own->maps.wait_sums1, keys);
}

static int open_waiting(struct bpf_programs *p, uint32_t nr_cpus, struct base_err *err)
{
	static const char *const what = "cannot load the BPF program of waits";
	struct sample_waiting *own = sample_waiting_open(p->older);
	int r;

	if (!own)
		return bpf_refused(err, -errno, what);
	p->waiting = own;
	r = read_kinds(&p->kinds);
	if (r < 0)
		return bpf_refused(err, r, "cannot read the kernel's symbols");
	choose_waiting(own);
	set_waiting_constants(p, own, nr_cpus);
	r = maps_share(SHARED_MAPS(own), SHARED_MAPS(p->objects[0]));
	if (r >= 0)
		r = share_named(own->obj, p->behind[0]->obj, own->maps.rodata, own->maps.pins);
	if (r >= 0)
		r = bpf_pins_use(p, own->maps.pins);
	if (r >= 0)
		r = size_waiting_maps(own, nr_cpus);
	if (r >= 0)
		r = sample_waiting__load(own);
	return r < 0 ? bpf_refused(err, r, what) : 0;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void find_parts(struct bpf_programs *p)
{
	const struct sample *first = p->objects[0];

	p->tables_fd = bpf_map__fd(first->maps.tables);
	p->notes_fd = bpf_map__fd(first->maps.notes);
	p->forks_fd = bpf_map__fd(first->maps.forks);
	p->shared = &first->bss->shared;
	p->untabled = first->bss->untabled;
	p->names = first->bss->names;
}

static bool has_behind(const struct driver_config *config, size_t event)
{
	return config->callpath_every || (config->trace_every && event == 0);
}

static int open_all(struct bpf_programs *p, const struct driver_config *config,
		    const struct event_spec *specs, size_t nr, const struct bpf_tables *t,
		    struct base_err *err)
{
	int r = 0;

	draw_mix(p);
	for (size_t i = 0; i < nr && r >= 0; i++)
		r = open_one(p, i, specs[i].tick, has_behind(config, i), t, err);
	for (size_t i = 0; i < nr && r >= 0; i++)
		if (has_behind(config, i))
			r = open_behind(p, config, i, &specs[i], (uint32_t)t->nr_cpus, err);
	if (r >= 0 && config->waits)
		r = open_waiting(p, (uint32_t)t->nr_cpus, err);
	if (r >= 0)
		find_parts(p);
	return r;
}

int bpf_programs_open(struct bpf_programs *p, const struct driver_config *config,
		      const struct event_spec *specs, size_t nr, const struct bpf_tables *t,
		      struct base_err *err)
{
	*p = (struct bpf_programs){ .older = kernel_is_older() };
	libbpf_set_print(keep_silent);
	p->pins_fd = p->older ? -1 : bpf_pins_make();
	if (p->pins_fd >= 0) {
		int r = open_all(p, config, specs, nr, t, NULL);

		if (r >= 0)
			return r;
		/* It may be this alone that the kernel does not take. */
		bpf_programs_close(p);
	}
	return open_all(p, config, specs, nr, t, err);
}

void bpf_programs_close(struct bpf_programs *p)
{
	bpf_link__destroy(p->tick);
	bpf_link__destroy(p->on_begin);
	bpf_clients_close(p);
	sample_waiting__destroy(p->waiting);
	bpf_wait_kinds_release(&p->kinds);
	/* The first one's maps are in the others' use. */
	for (size_t i = 0; i < p->nr; i++)
		sample_behind__destroy(p->behind[i]);
	while (p->nr)
		sample__destroy(p->objects[--p->nr]);
	if (p->pins_fd >= 0)
		close(p->pins_fd);
	*p = (struct bpf_programs){ .pins_fd = -1 };
}

/* ---- parts ----------------------------------------------------------------------------------- */

int bpf_programs_fd(const struct bpf_programs *p, size_t event)
{
	if (p->behind[event])
		return bpf_program__fd(p->behind[event]->progs.sample_event);
	return bpf_program__fd(p->objects[event]->progs.sample_event);
}

int bpf_programs_wake_at_exec(struct bpf_programs *p)
{
	struct sample *s = p->objects[0];

	if (!p->on_begin)
		p->on_begin = bpf_program__attach_trace(s->progs.program_begins);
	if (!p->on_begin)
		return -errno;
	__atomic_store_n(&s->bss->wake_at_exec, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static struct bpf_program *tick_program(const struct bpf_programs *p)
{
	for (size_t i = 0; i < p->nr; i++) {
		const struct sample_behind *behind = p->behind[i];

		if (behind && bpf_program__autoload(behind->progs.sample_tick))
			return behind->progs.sample_tick;
		if (bpf_program__autoload(p->objects[i]->progs.sample_tick))
			return p->objects[i]->progs.sample_tick;
	}
	return NULL;
}

int bpf_programs_tick(struct bpf_programs *p, bool on)
{
	struct bpf_program *tick = tick_program(p);

	if (!on) {
		bpf_link__destroy(p->tick);
		p->tick = NULL;
		return 0;
	}
	if (!tick || p->tick)
		return 0;
	p->tick = bpf_program__attach_trace(tick);
	return p->tick ? 0 : -errno;
}
