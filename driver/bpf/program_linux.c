/* SPDX-License-Identifier: BSD-2-Clause */
/* The programs that run in the kernel: loaded, with their maps and constants; refusals said
 * plainly. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "bpf_program.h"

enum { TRACE_INSNS = 64, TRACE_INSNS_MAX = 256, DEFAULT_RATE = 1000 };

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
		else
			base_hint(err, "%s or with CAP_BPF and CAP_PERFMON", driver_run_as_root());
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

/* Has @own (SHARED_MAPS of an object not loaded yet) use those of @first. 0 or a negative errno. */
static int maps_share(struct bpf_map *const *own, struct bpf_map *const *first)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < NR_SHARED_MAPS; i++)
		r = bpf_map__reuse_fd(own[i], bpf_map__fd(first[i]));
	return r;
}

/* Only what is used is loaded: a kernel without a part of it may still do. */
static void choose_programs(struct sample *own, bool tick, bool first, bool traces)
{
	bpf_program__set_autoload(own->progs.pins_take, first && own->rodata->can_pin);
	bpf_program__set_autoload(own->progs.sample_event, !tick && !traces);
	bpf_program__set_autoload(own->progs.sample_tick, tick && !traces);
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
	return bpf_tick_find(&s->tick_function, &s->irq_regs_delta,
			     &p->objects[event]->rodata->can_cast, err);
}

/* @traces: another program samples it, and here are but the maps. */
static int open_one(struct bpf_programs *p, size_t event, bool tick, bool traces,
		    const struct bpf_tables *t, struct base_err *err)
{
	struct sample *own = sample__open();
	int r;

	if (!own)
		return bpf_refused(err, -errno, "cannot open the BPF programs");
	p->objects[event] = own;
	p->nr = event + 1;
	r = set_constants(p, t, event, tick, err);
	if (r < 0)
		return r;
	choose_programs(own, tick, event == 0, traces);
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

/* ---- traces --------------------------------------------------------------------------------- */

/* Traces by default come as often as at 1000 samples a second, whatever the rate is. */
static uint32_t choose_every(const struct driver_config *config, const struct event_spec *spec)
{
	uint64_t period = spec->tick ? bpf_tick_period() : spec->clock ? spec->period : 0;
	uint64_t rate = period		    ? 1000000000 / period
			: spec->period	    ? DEFAULT_RATE
			: config->frequency ? config->frequency
					    : DEFAULT_RATE;
	uint64_t every = (config->trace_every * rate + DEFAULT_RATE - 1) / DEFAULT_RATE;

	return config->trace_optional && every ? (uint32_t)every : config->trace_every;
}

static void set_trace_constants(struct sample_trace *own, const struct sample *first,
				const struct driver_config *config, const struct event_spec *spec)
{
	own->rodata->event = first->rodata->event;
	own->rodata->can_cast = first->rodata->can_cast;
	own->rodata->can_pin = first->rodata->can_pin;
	for (size_t i = 0; i < COUNT_NR_MIX; i++)
		own->rodata->mix[i] = first->rodata->mix[i];
	own->rodata->trace_every = choose_every(config, spec);
	own->rodata->trace_insns = config->trace_insns ? config->trace_insns : TRACE_INSNS;
	own->rodata->trace_log = config->trace_log;
	own->rodata->trace_kernel = config->trace_kernel;
}

/* Where nobody asked for traces they take little memory: what programs run most of the time. */
enum { SMALL_BLOCKS = TRACE_NR_BLOCKS / 16, SMALL_RING = TRACE_RING_LEN / 4 };

static int size_traces(struct sample_trace *own, const struct driver_config *config, size_t nr_cpus)
{
	uint32_t blocks = config->trace_optional ? SMALL_BLOCKS : TRACE_NR_BLOCKS;
	uint32_t ring = config->trace_optional ? SMALL_RING : TRACE_RING_LEN;
	int r = bpf_map__set_max_entries(own->maps.trace_cpus, (uint32_t)nr_cpus);

	own->rodata->trace_nr_buckets = blocks / TRACE_BLOCKS_EACH;
	own->rodata->trace_ring_len = ring;
	if (r >= 0)
		r = bpf_map__set_max_entries(own->maps.trace_blocks, blocks);
	if (r >= 0)
		r = bpf_map__set_max_entries(own->maps.trace_buckets, blocks / TRACE_BLOCKS_EACH);
	if (r >= 0)
		r = bpf_map__set_max_entries(own->maps.trace_uops, blocks * TRACE_UOPS_EACH);
	return r < 0 ? r : bpf_map__set_max_entries(own->maps.traces, ring);
}

static int open_traces(struct bpf_programs *p, const struct driver_config *config,
		       const struct event_spec *spec, size_t nr_cpus, struct base_err *err)
{
	struct sample_trace *own = sample_trace__open();
	int r;

	if (!own)
		return bpf_refused(err, -errno, "cannot open the BPF program of traces");
	p->traces = own;
	set_trace_constants(own, p->objects[0], config, spec);
	bpf_program__set_autoload(own->progs.sample_event, !spec->tick);
	bpf_program__set_autoload(own->progs.sample_tick, spec->tick);
	bpf_program__set_autoload(own->progs.program_begins, false);
	bpf_program__set_autoload(own->progs.sample_exec, false);
	bpf_program__set_autoload(own->progs.sample_exit, false);
	bpf_program__set_autoload(own->progs.sample_fork, false);
	bpf_program__set_autoload(own->progs.pins_take, false);
	r = maps_share(SHARED_MAPS(own), SHARED_MAPS(p->objects[0]));
	if (r >= 0)
		r = bpf_pins_use(p, own->maps.pins);
	if (r >= 0)
		r = size_traces(own, config, nr_cpus);
	if (r >= 0)
		r = sample_trace__load(own);
	return r < 0 ? bpf_refused(err, r, "cannot load the BPF program of traces") : 0;
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
}

static int open_all(struct bpf_programs *p, const struct driver_config *config,
		    const struct event_spec *specs, size_t nr, const struct bpf_tables *t,
		    struct base_err *err)
{
	bool traces = config->trace_every != 0;
	int r = 0;

	draw_mix(p);
	for (size_t i = 0; i < nr && r >= 0; i++)
		r = open_one(p, i, specs[i].tick, traces && i == 0, t, err);
	if (r >= 0 && traces)
		r = open_traces(p, config, &specs[0], t->nr_cpus, err);
	if (r >= 0)
		find_parts(p);
	return r;
}

int bpf_traces_check(const struct driver_config *config, struct base_err *err)
{
	if (config->trace_insns > TRACE_INSNS_MAX)
		return base_fail(err, -DCPI_EUSAGE, "traces of %u instructions: more than %d",
				 config->trace_insns, TRACE_INSNS_MAX);
	if (config->trace_log > VTRACE_LOG_TIMES)
		return base_fail(err, -DCPI_EUSAGE, "traces with values of kind %u: unknown",
				 config->trace_log);
	return driver_traces_possible(NULL, err);
}

int bpf_programs_open(struct bpf_programs *p, const struct driver_config *config,
		      const struct event_spec *specs, size_t nr, const struct bpf_tables *t,
		      struct base_err *err)
{
	*p = (struct bpf_programs){ 0 };
	libbpf_set_print(keep_silent);
	p->pins_fd = bpf_pins_make();
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
	/* The first one's maps are in the others' use. */
	sample_trace__destroy(p->traces);
	while (p->nr)
		sample__destroy(p->objects[--p->nr]);
	if (p->pins_fd >= 0)
		close(p->pins_fd);
	*p = (struct bpf_programs){ .pins_fd = -1 };
}

/* ---- parts ----------------------------------------------------------------------------------- */

int bpf_programs_fd(const struct bpf_programs *p, size_t event)
{
	if (event == 0 && p->traces)
		return bpf_program__fd(p->traces->progs.sample_event);
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
	if (p->traces && bpf_program__autoload(p->traces->progs.sample_tick))
		return p->traces->progs.sample_tick;
	for (size_t i = 0; i < p->nr; i++) {
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
