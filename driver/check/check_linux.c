/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "dcpid -check": what this machine offers for sampling, what it costs on an idle CPU, and how to
 * get what lacks.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "check_internal.h"
#include "perf.h"

struct check_idle {
	bool measured;
	int cpu;
	double idle, idle_on;	/* part of the time that it was idle; sampled */
	double samples;		/* samples in an idle second */
	double wakes, wakes_on; /* times a second that it came out of idling; sampled */
};

/* ---- the cost on an idle CPU ----------------------------------------------------------------- */

/*
 * The cost of sampling on an idle CPU: how often a clock wakes it, and how long it stays awake, by
 * the kernel's own accounts of idling (cpuidle). The CPU that idles most is measured.
 */

enum {
	MEASURE_NS = 300000000,
	NR_TRIES = 3,
	NR_CPUS_MAX = 1024,
	NR_STATES = 16,
	RING_PAGES = 8, /* some 1300 samples of 24 bytes */
};

struct idling {
	uint64_t ns, wakes, at_ns;
};

static bool read_state(int cpu, int state, const char *name, uint64_t *out)
{
	char path[128];
	int64_t n;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cpuidle/state%d/%s", cpu, state,
		 name);
	n = event_number_read(path, -1);
	*out = (uint64_t)n;
	return n >= 0;
}

/* False: this kernel does not account, or there is no such CPU. */
static bool read_idling(int cpu, struct idling *out)
{
	uint64_t us, n;
	int i;

	*out = (struct idling){ .at_ns = base_now_ns() };
	for (i = 0; i < NR_STATES; i++) {
		if (!read_state(cpu, i, "time", &us) || !read_state(cpu, i, "usage", &n))
			break;
		out->ns += us * 1000;
		out->wakes += n;
	}
	return i > 0;
}

static void wait_ns(uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / 1000000000u),
			      .tv_nsec = (long)(ns % 1000000000u) };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

/* The part of the time, at most all. */
static double idle_part(const struct idling *from, const struct idling *to)
{
	double part = to->at_ns > from->at_ns
			      ? seconds(to->ns - from->ns) / seconds(to->at_ns - from->at_ns)
			      : 0;

	return part > 1 ? 1 : part;
}

static double wakes_per_second(const struct idling *from, const struct idling *to)
{
	return (double)(to->wakes - from->wakes) / seconds(to->at_ns - from->at_ns);
}

/* Watch all of them for a while; the idlest into @out. */
static int find_idlest(struct check_idle *out)
{
	struct idling *from = calloc(NR_CPUS_MAX, sizeof(*from)), to;
	int nr = 0;

	if (!from)
		return -ENOMEM;
	while (nr < NR_CPUS_MAX && read_idling(nr, &from[nr]))
		nr++;
	if (nr)
		wait_ns(MEASURE_NS);
	out->cpu = -1;
	for (int cpu = 0; cpu < nr; cpu++) {
		if (!read_idling(cpu, &to) ||
		    (out->cpu >= 0 && idle_part(&from[cpu], &to) <= out->idle))
			continue;
		out->cpu = cpu;
		out->idle = idle_part(&from[cpu], &to);
		out->wakes = wakes_per_second(&from[cpu], &to);
	}
	free(from);
	return nr ? 0 : -EOPNOTSUPP;
}

/* ---- the samples of idling ------------------------------------------------------------------- */

struct sample {
	struct perf_event_header header;
	uint64_t ip;
	uint32_t pid, tid;
};

/* The ring was never read, so all stands there from its beginning. */
static uint64_t count_idle_samples(const void *map, size_t ring_len)
{
	const struct perf_event_mmap_page *page = map;
	const uint8_t *data = (const uint8_t *)map + (size_t)sysconf(_SC_PAGESIZE);
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), nr = 0;
	struct sample s;

	for (uint64_t at = 0; at + sizeof(s) <= head && at + sizeof(s) <= ring_len;
	     at += s.header.size) {
		memcpy(&s, data + at, sizeof(s));
		if (s.header.size < sizeof(s.header))
			break;
		nr += s.header.type == PERF_RECORD_SAMPLE && s.pid == 0;
	}
	return nr;
}

static int sample_idling(uint64_t frequency, struct check_idle *out)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID,
		.sample_period = 1000000000u / frequency,
		.disabled = 1,
		.watermark = 1,
		.wakeup_watermark = UINT32_MAX,
	};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct idling from, to;
	int fd = perf_event_try(&attr, -1, out->cpu);
	void *map;
	double idle;

	if (fd < 0)
		return fd;
	map = mmap(NULL, (RING_PAGES + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		int r = -errno;

		close(fd);
		return r;
	}
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	read_idling(out->cpu, &from);
	wait_ns(MEASURE_NS);
	read_idling(out->cpu, &to);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	idle = idle_part(&from, &to);
	out->idle_on = idle;
	out->wakes_on = wakes_per_second(&from, &to);
	if (idle > 0)
		out->samples = (double)count_idle_samples(map, RING_PAGES * page) /
			       (idle * seconds(to.at_ns - from.at_ns));
	munmap(map, (RING_PAGES + 1) * page);
	close(fd);
	return 0;
}

/*
 * The CPU that idles most, sampled and not, a third of a second each. -EBUSY: other work came up,
 * each of three times; -errno. Other work that runs on the CPU in one of the two halves would be
 * charged to sampling.
 */
static int check_idle_measure(uint64_t frequency, struct check_idle *out)
{
	int r = -EBUSY;

	for (int i = 0; i < NR_TRIES && r == -EBUSY; i++) {
		*out = (struct check_idle){ 0 };
		r = find_idlest(out);
		if (r >= 0)
			r = sample_idling(frequency, out);
		if (r >= 0 && (out->idle < 0.8 || out->idle_on < 0.8))
			r = -EBUSY;
	}
	return r;
}

struct check_report {
	struct base_buf *out;
	int error;	    /* first failure of writing, or 0 */
	uint64_t frequency; /* frequency of the events that are tried, as in driver_config */
	bool has_bpf, has_tick;
	size_t nr_sources, nr_events; /* that work */
};

/* ---- writing --------------------------------------------------------------------------------- */

static void check_head(struct check_report *c, const char *text)
{
	if (c->error >= 0)
		c->error = base_buf_printf(c->out, "%s%s\n", c->out->len ? "\n" : "", text);
}

__attribute__((format(printf, 3, 4))) static void check_item(struct check_report *c,
							     const char *what, const char *fmt, ...)
{
	char text[600];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (c->error >= 0)
		c->error = base_buf_printf(c->out, "  %-26s %s\n", what, text);
}

/* Behind an item: how to get what lacks; nothing where the text is empty. */
__attribute__((format(printf, 2, 3))) static void put_hint(struct check_report *c, const char *fmt,
							   ...)
{
	char text[400];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (c->error >= 0 && text[0])
		c->error = base_buf_printf(c->out, "  %-26s -> %s\n", "", text);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The file's first line, "" where there is none. */
static const char *first_line(const char *path, char *line, size_t len)
{
	struct base_buf text = { 0 };

	line[0] = '\0';
	if (base_file_read(AT_FDCWD, path, 1u << 20, &text, NULL) >= 0 && text.len)
		snprintf(line, len, "%.*s", (int)text.len, (const char *)text.data);
	line[strcspn(line, "\n")] = '\0';
	base_buf_release(&text);
	return line;
}

/* The text after "@key: " or "@key\t: " in a file of such lines. */
static const char *keyed_line(const char *path, const char *key, char *value, size_t len)
{
	FILE *f = fopen(path, "re");
	char *line = NULL, *colon;
	size_t cap = 0;
	bool found = false;

	value[0] = '\0';
	while (f && !found && getline(&line, &cap, f) >= 0) {
		colon = strchr(line, ':');
		found = colon && !strncmp(line, key, strlen(key)) &&
			strspn(line + strlen(key), "\t ") == (size_t)(colon - line) - strlen(key);
		if (found)
			snprintf(value, len, "%s", colon + 1 + strspn(colon + 1, "\t "));
	}
	value[strcspn(value, "\n")] = '\0';
	free(line);
	if (f)
		fclose(f);
	return value;
}

/* LLONG_MIN where it cannot be read. */
static long long sysctl_number(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name);
	return event_number_read(path, LLONG_MIN);
}

/* ---- the machine ----------------------------------------------------------------------------- */

static void check_machine(struct check_report *c)
{
	char model[128], flags[4096];
	struct utsname u;

	check_head(c, "machine");
	if (uname(&u) == 0)
		check_item(c, "kernel", "%s %s, %s", u.sysname, u.release, u.machine);
	keyed_line("/proc/cpuinfo", "model name", model, sizeof(model));
	keyed_line("/proc/cpuinfo", "flags", flags, sizeof(flags));
	check_item(c, "processors", "%ld online%s%s%s", sysconf(_SC_NPROCESSORS_ONLN),
		   *model ? ", " : "", model,
		   strstr(flags, " hypervisor") ? ", in a virtual machine" : "");
}

/* ---- sources --------------------------------------------------------------------------------- */

static void check_source(struct check_report *c, const char *source)
{
	char describe[160];
	struct base_err err = { 0 };

	if (check_source_try(source, NULL, c->frequency, describe, sizeof(describe), &err) >= 0) {
		check_item(c, source, "ok: %s", describe);
		c->nr_sources++;
		c->has_bpf |= !strcmp(source, "bpf");
		return;
	}
	check_item(c, source, "no: %s", err.text);
	put_hint(c, "%s", err.hint);
}

static void check_bpf(struct check_report *c)
{
	int r = check_bpf_load();
	const char *hint;

#ifdef DCPI_HAVE_BPF
	check_item(c, "  built with programs", "yes");
#else
	check_item(c, "  built with programs", "no: clang or bpftool were missing");
	put_hint(c, "install clang and bpftool, and build again");
#endif
	check_item(c, "  kernel takes programs", "%s%s", r < 0 ? "no: " : "yes",
		   r < 0 ? base_strerror(r) : "");
	if (r == -EPERM)
		put_hint(c,
			 "%s or with CAP_BPF and CAP_PERFMON; a kernel locked down for "
			 "confidentiality refuses it to root too",
			 driver_run_as_root());
	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0) {
		check_item(c, "  kernel's types (BTF)", "yes");
		return;
	}
	check_item(c, "  kernel's types (BTF)", "no: /sys/kernel/btf/vmlinux is missing");
	driver_no_types(&hint);
	put_hint(c, "%s", hint);
}

/* The programs for these are some that the kernel may find too much. */
static void check_part(struct check_report *c, const char *name, const struct driver_config *config,
		       int (*possible)(const char *release, struct base_err *err))
{
	struct base_err err = { 0 };
	struct driver *d = NULL;
	int r = possible(NULL, &err);

	if (r >= 0)
		r = driver_open(config, &d, &err);
	driver_close(d);
	check_item(c, name, "%s%s", r < 0 ? "no: " : "yes", r < 0 ? err.text : "");
	if (r < 0)
		put_hint(c, "%s", err.hint);
}

static void check_parts(struct check_report *c)
{
	struct driver_config config = { .source = "bpf", .frequency = c->frequency };

	config.trace_every = 1;
	check_part(c, "  traces", &config, driver_traces_possible);
	config.trace_every = 0;
	config.callpath_every = 1;
	check_part(c, "  call paths", &config, driver_callpaths_possible);
	config.waits = true;
	check_part(c, "  waits", &config, driver_callpaths_possible);
}

static void check_sources(struct check_report *c)
{
	check_head(c, "sources of samples");
	check_source(c, "bpf");
	check_bpf(c);
	check_parts(c);
	check_source(c, "perf");
}

/* ---- events ---------------------------------------------------------------------------------- */

static void check_event(struct check_report *c, const char *event, const char *hint)
{
	int error;
	enum check_reach reach = check_text_try(event, c->frequency, &error);

	c->nr_events += reach != CHECK_REFUSED;
	if (reach == CHECK_SYSTEM)
		check_item(c, event, "yes");
	else if (reach == CHECK_OWN)
		check_item(c, event, "your own programs only, user mode");
	else
		check_item(c, event, "no: %s", check_cause(error, true, true));
	if (reach == CHECK_OWN)
		put_hint(c, "%s or with CAP_PERFMON, or lower kernel.perf_event_paranoid to 0",
			 driver_run_as_root());
	else if (reach == CHECK_REFUSED)
		put_hint(c, "%s", hint);
}

static int note_spe(void *ctx, const char *pmu)
{
	bool *spe = ctx;

	*spe |= event_hardware_of(pmu) == EVENT_HW_SPE;
	return 0;
}

/* Does the hardware tell more of a sampled instruction than its address? */
static void check_told(struct check_report *c)
{
	static const char name[] = "instruction samples";
	bool spe = false;
	uint64_t max = 0;

	event_sysfs_list(NULL, NULL, NULL, note_spe, &spe);
	if (event_sysfs_number(NULL, "ibs_op", NULL, "type", UINT32_MAX, &max) == 0)
		check_item(c, name, "yes: AMD's IBS (ibs_op, ibs_fetch)");
	else if (spe)
		check_item(c, name, "in files of perf record alone: Arm's SPE");
	else if (event_sysfs_number(NULL, "cpu", "caps", "max_precise", 3, &max) == 0 && max)
		check_item(c, name, "yes: mem-loads:p, mem-stores:p");
	else
		check_item(c, name, "no: the hardware tells of none");
}

static void check_precise(struct check_report *c)
{
	uint64_t max = 0;
	int error;

	if (check_text_try("cycles:p", c->frequency, &error) != CHECK_REFUSED &&
	    event_sysfs_number(NULL, "ibs_op", NULL, "type", UINT32_MAX, &max) == 0)
		check_item(c, "precise sampling", "yes: AMD's IBS");
	else if (event_sysfs_number(NULL, "cpu", "caps", "max_precise", 3, &max) == 0 && max)
		check_item(c, "precise sampling", "yes: up to %.*s", (int)max, "ppp");
	else
		check_item(c, "precise sampling", "no");
}

static void check_tick(struct check_report *c)
{
	struct base_err err = { 0 };

	c->has_tick = check_source_try("bpf", "tick", c->frequency, NULL, 0, &err) >= 0;
	check_item(c, "tick", "%s%s", c->has_tick ? "yes" : "no: ", err.text);
	put_hint(c, "%s", err.hint);
}

static void check_events(struct check_report *c)
{
	check_head(c, "events (dcpid -list-events tries them all)");
	check_event(c, "cycles", "where this is a virtual machine, its host may give it a PMU");
	check_precise(c);
	check_told(c);
	check_event(c, "cpu-clock", "");
	check_tick(c);
}

/* ---- rights and limits ----------------------------------------------------------------------- */

static void check_capabilities(struct check_report *c)
{
	static const struct {
		unsigned int bit;
		const char *name, *what;
	} caps[] = {
		{ 38, "CAP_PERFMON", "sample other users' programs and the kernel" },
		{ 39, "CAP_BPF", "count in the kernel" },
		{ 19, "CAP_SYS_PTRACE", "read what dynamic code programs have made" },
		{ 2, "CAP_DAC_READ_SEARCH", "read any program's file" },
		{ 40, "CAP_CHECKPOINT_RESTORE", "read files that are mapped but gone" },
		{ 34, "CAP_SYSLOG", "see the kernel's addresses" },
	};
	const unsigned int admin = 21; /* includes the three that were split from it, from 38 on */
	char text[64];
	uint64_t set =
		strtoull(keyed_line("/proc/self/status", "CapEff", text, sizeof(text)), NULL, 16);
	size_t nr = 0;

	if (driver_in_user_namespace()) {
		check_item(c, "capabilities",
			   "of a user namespace: no right to count in the kernel, or to sample "
			   "others");
		put_hint(c, "%s", driver_run_as_root());
		return;
	}
	for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		if (set >> caps[i].bit & 1 || (caps[i].bit >= 38 && set >> admin & 1))
			continue;
		check_item(c, caps[i].name, "missing, to %s", caps[i].what);
		nr++;
	}
	if (nr)
		put_hint(c, "run as root, or give dcpid these capabilities");
	else
		check_item(c, "capabilities", "all that are needed");
}

static void check_paranoid(struct check_report *c)
{
	long long n = sysctl_number("perf_event_paranoid");

	if (n == LLONG_MIN) {
		check_item(c, "perf_event_paranoid",
			   c->nr_events ? "not to be read" : "this kernel has no perf events");
		return;
	}
	check_item(c, "perf_event_paranoid", "%lld: without CAP_PERFMON %s", n,
		   n < 0   ? "everything is allowed"
		   : n < 1 ? "everything but raw tracepoints is allowed"
		   : n < 2 ? "one's own programs can be sampled, in the kernel too"
		   : n < 3 ? "one's own programs can be sampled, user mode only"
			   : "one's own programs can be sampled, user mode only, or, by "
			     "distributions' kernels, nothing");
}

static void check_number(struct check_report *c, const char *name, const char *what)
{
	long long n = sysctl_number(name);

	if (n != LLONG_MIN)
		check_item(c, name, "%lld%s", n, what);
}

static void check_lockdown(struct check_report *c)
{
	char line[128], *open, *close;

	first_line("/sys/kernel/security/lockdown", line, sizeof(line));
	open = strchr(line, '[');
	close = open ? strchr(open, ']') : NULL;
	if (!close) {
		check_item(c, "lockdown", "%s",
			   geteuid() ? "not to be read" : "not in this kernel");
		return;
	}
	*close = '\0';
	check_item(c, "lockdown", "%s", open + 1);
	if (!strcmp(open + 1, "confidentiality"))
		put_hint(c, "BPF and perf are refused in this mode: boot with lockdown=integrity");
}

static void check_rights(struct check_report *c)
{
	check_head(c, "rights and limits");
	check_capabilities(c);
	check_paranoid(c);
	check_lockdown(c);
	check_number(c, "perf_event_max_sample_rate", " a second and CPU, for hardware events");
	check_number(c, "perf_cpu_time_max_percent",
		     " %: above it the kernel lowers the rate of hardware events");
	check_number(c, "perf_event_mlock_kb",
		     " KiB of ring a CPU without CAP_IPC_LOCK (128 pages of 4 KiB need 516)");
	check_number(c, "kptr_restrict",
		     " (0, and 1 with CAP_SYSLOG, tell where the kernel's procedures are)");
}

/* ---- costs ----------------------------------------------------------------------------------- */

/* The frequency for which costs are printed. */
enum { FREQUENCY = 1000 };

/* The scheduler's ticks a second: the coarse clock moves with them. 0: not known. */
static unsigned int ticks_per_second(void)
{
	struct timespec t;

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &t) < 0 || t.tv_sec || t.tv_nsec <= 0)
		return 0;
	return (unsigned int)((1000000000 + t.tv_nsec / 2) / t.tv_nsec);
}

static double microseconds(uint64_t ns)
{
	return (double)ns / 1000;
}

/* Share of a second, in percent. */
static double percent(uint64_t ns, double frequency)
{
	return (double)ns * frequency / 1e7;
}

static void tell_interrupt(struct check_report *c, struct check_cost *cost)
{
	int r = check_cost_measure(cost);

	if (r < 0)
		check_item(c, "interrupt of a sample", "not measured: %s", base_strerror(r));
	else if (!cost->measured)
		check_item(c, "interrupt of a sample",
			   "not measured: too much else runs here (%zu interruptions)", cost->nr);
	else
		check_item(
			c, "interrupt of a sample",
			"%.1f us of a busy CPU, nine of ten below %.1f us (%zu of cpu-clock, %s)",
			microseconds(cost->gap_ns), microseconds(cost->gap_90_ns), cost->nr,
			cost->own ? "this process's own" : "counting not included");
}

static void tell_program(struct check_report *c, const char *event, struct check_program *p)
{
	char what[32];
	int r = check_bpf_measure(event, p);

	snprintf(what, sizeof(what), "counting, %s", event);
	if (r < 0) {
		*p = (struct check_program){ 0 };
		check_item(c, what, "not measured: %s", base_strerror(r));
		return;
	}
	check_item(c, what,
		   "%" PRIu64 " ns a sample (%" PRIu64 " samples, %" PRIu64
		   " runs, of each an empty program's %" PRIu64 " ns taken off)",
		   p->ns, p->nr, p->runs, p->empty);
}

static void tell_idle(struct check_report *c, struct check_idle *idle)
{
	int r = check_idle_measure(FREQUENCY, idle);

	if (r == -EBUSY)
		check_item(c, "an idle CPU",
			   "not measured: other work came up (CPU %d idle %.0f %%, then %.0f %%)",
			   idle->cpu, 100 * idle->idle, 100 * idle->idle_on);
	else if (r < 0)
		check_item(c, "an idle CPU", "not measured: %s",
			   r == -EOPNOTSUPP ? "this kernel does not account for idling"
					    : base_strerror(r));
	else
		check_item(
			c, "an idle CPU",
			"%.0f samples of %d a second; woken %.0f times a second, else %.0f; idle "
			"%.1f %%, else %.1f %% (CPU %d)",
			idle->samples, FREQUENCY, idle->wakes_on, idle->wakes, 100 * idle->idle_on,
			100 * idle->idle, idle->cpu);
	idle->measured = r >= 0;
}

static void summarize(struct check_report *c, const struct check_cost *cost,
		      const struct check_idle *idle, const struct check_program *clock,
		      const struct check_program *tick)
{
	unsigned int hz = ticks_per_second();
	double lost = 100 * (idle->idle - idle->idle_on);

	if (cost->measured)
		check_item(c, "cpu-clock at 1000 Hz", "costs about %.2g %% of a busy CPU",
			   percent(cost->gap_ns + clock->ns, FREQUENCY));
	if (idle->measured && lost > 0.1)
		check_item(c, "", "and about %.1f %% of an idle one", lost);
	else if (idle->measured)
		check_item(c, "", "and below what can be seen (0.1 %%) of an idle one");
	if (c->has_tick && tick->nr && hz)
		check_item(c, "tick",
			   "at %u Hz about %.2g %% of a busy CPU, nothing of an idle one", hz,
			   percent(tick->ns, hz));
	else if (hz)
		check_item(c, "tick", "comes %u times a second; its samples cannot be had here",
			   hz);
}

static void check_costs(struct check_report *c)
{
	struct check_program clock = { 0 }, tick = { 0 };
	struct check_idle idle = { 0 };
	struct check_cost cost = { 0 };

	check_head(c, "cost, measured now");
	tell_interrupt(c, &cost);
	if (c->has_bpf)
		tell_program(c, "cpu-clock", &clock);
	if (c->has_tick)
		tell_program(c, "tick", &tick);
	tell_idle(c, &idle);
	summarize(c, &cost, &idle, &clock, &tick);
}

/* ---- the whole ------------------------------------------------------------------------------- */

int driver_check(uint64_t frequency, struct base_buf *out, struct base_err *err)
{
	struct check_report c = { .out = out, .frequency = frequency };

	check_machine(&c);
	check_sources(&c);
	check_events(&c);
	check_rights(&c);
	check_costs(&c);
	if (c.error < 0)
		return base_fail_errno(err, c.error, "cannot check");
	if (c.nr_sources || c.nr_events)
		return 0;
	base_fail(err, -DCPI_ENOEVENTS, "nothing can be sampled here");
	base_hint(err, "dcpid -replay and the analysis tools work everywhere");
	return -DCPI_ENOEVENTS;
}
