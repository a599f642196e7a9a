/* SPDX-License-Identifier: BSD-2-Clause */
/* "dcpid -list-events": every event is tried, for what documents promise a machine may not have. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "check_internal.h"
#include "perf.h"

/* ---- trying ---------------------------------------------------------------------------------- */

enum check_reach check_event_try(const struct event_spec *e, uint64_t frequency, int *error)
{
	int r = perf_spec_probe(e, -1, frequency);

	*error = r < 0 ? -r : 0;
	if (r >= 0)
		return CHECK_SYSTEM;
	if (r != -EACCES && r != -EPERM)
		return CHECK_REFUSED;
	r = perf_spec_probe(e, getpid(), frequency);
	if (r >= 0)
		return CHECK_OWN;
	*error = -r;
	return CHECK_REFUSED;
}

enum check_reach check_text_try(const char *text, uint64_t frequency, int *error)
{
	struct event_spec e;

	*error = EINVAL;
	if (event_parse(text, NULL, &e, NULL) < 0)
		return CHECK_REFUSED;
	return check_event_try(&e, frequency, error);
}

int check_source_try(const char *source, const char *event, uint64_t frequency, char *describe,
		     size_t describe_len, struct base_err *err)
{
	const struct driver_config config = {
		.source = source, .slots = &event, .nr_slots = event ? 1 : 0, .frequency = frequency
	};
	struct driver *d = NULL;
	int r = driver_open(&config, &d, err);

	if (r >= 0 && describe)
		snprintf(describe, describe_len, "%s", driver_describe(d));
	driver_close(d);
	return r;
}

/* ---- the list -------------------------------------------------------------------------------- */

/* Refusals of one heading: the names by cause. */
struct refused {
	int error;
	size_t nr;
	struct base_buf names;
};

enum { NR_CAUSES = 6 };

struct listing {
	struct base_buf *out, *bad;
	const char *heading;
	uint64_t frequency;
	bool begun; /* the heading stands in @out */
	size_t nr_good, nr_own, nr_bad;
	struct refused causes[NR_CAUSES];
};

static int append(struct base_buf *to, const struct base_buf *from)
{
	return from->len ? base_buf_append(to, from->data, from->len) : 0;
}

static int print_good(struct listing *l, const char *name, const char *what)
{
	int r = l->begun ? 0 : base_buf_printf(l->out, "%s\n", l->heading);

	l->begun = true;
	l->nr_good++;
	if (r >= 0)
		r = what && *what ? base_buf_printf(l->out, "  %-25s %s\n", name, what)
				  : base_buf_printf(l->out, "  %s\n", name);
	return r;
}

static int add_bad(struct listing *l, const char *name, int error)
{
	size_t i = 0;

	while (i < NR_CAUSES - 1 && l->causes[i].nr && l->causes[i].error != error)
		i++;
	l->causes[i].error = error;
	l->causes[i].nr++;
	l->nr_bad++;
	return base_buf_printf(&l->causes[i].names, "%s%s", l->causes[i].names.len ? ", " : "",
			       name);
}

static int add_tried(struct listing *l, const char *name, const char *what, enum check_reach reach,
		     int error)
{
	if (reach == CHECK_REFUSED)
		return add_bad(l, name, error);
	l->nr_own += reach == CHECK_OWN;
	return print_good(l, name, what);
}

const char *check_cause(int error, bool hardware, bool all)
{
	switch (error) {
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
	case ENXIO:
		return !hardware ? "not in this kernel"
		       : all	 ? "this machine has no counters (a virtual machine without a PMU?)"
				 : "not on this CPU";
	case EINVAL:
		return "cannot be sampled";
	case ERANGE:
		return "more samples a second than kernel.perf_event_max_sample_rate allows";
	case EACCES:
	case EPERM:
		return "not allowed: run as root or with CAP_PERFMON";
	case EBUSY:
		return "its counter is taken (kernel.nmi_watchdog=0 frees one)";
	case ENOSYS:
		return "this kernel has no perf events";
	default:
		return base_strerror(error);
	}
}

/* Does the CPU count anything? The events of one heading may all be missing where others work. */
static bool has_counters(uint64_t frequency)
{
	int error;

	return check_text_try("cycles", frequency, &error) != CHECK_REFUSED;
}

/* The lines of what was refused; the names only where others of the heading work. */
static int end_heading(struct listing *l, bool hardware)
{
	bool none = !l->nr_good && !(hardware && has_counters(l->frequency));
	int r = 0;

	for (size_t i = 0; i < NR_CAUSES; i++) {
		struct refused *c = &l->causes[i];

		if (c->nr && r >= 0)
			r = base_buf_printf(l->bad, "  %s", l->heading);
		if (c->nr && l->nr_good && r >= 0)
			r = base_buf_printf(l->bad, ", %.*s", (int)c->names.len,
					    (const char *)c->names.data);
		if (c->nr && r >= 0)
			r = base_buf_printf(l->bad, ": %s\n",
					    check_cause(c->error, hardware, none));
		base_buf_release(&c->names);
	}
	return r;
}

/* Describe the event, and list its other names. */
static int explain(const struct event_name *e, size_t index, struct base_buf *out)
{
	const struct event_name *next;
	int r = base_buf_printf(out, "%s", e->what);

	while (r >= 0 && (next = event_name_nth(++index)) && !next->what)
		r = base_buf_printf(out, " (also: %s)", next->name);
	return r < 0 ? r : base_buf_append(out, "", 1);
}

static int list_name(struct listing *l, const struct event_name *e, size_t index)
{
	const struct event_spec spec = { .type = e->type, .config = e->config, .clock = e->clock };
	struct base_buf what = { 0 };
	int error, r = explain(e, index, &what);
	enum check_reach reach = check_event_try(&spec, l->frequency, &error);

	if (r >= 0)
		r = add_tried(l, e->name, (const char *)what.data, reach, error);
	base_buf_release(&what);
	return r;
}

static int list_class(struct listing *l, enum event_class class)
{
	const struct event_name *e;
	int r = 0;

	for (size_t i = 0; (e = event_name_nth(i)) && r >= 0; i++)
		if (e->class == class && e->what)
			r = list_name(l, e, i);
	return r < 0 ? r : end_heading(l, class != EVENT_SOFTWARE);
}

static int list_tick(struct listing *l)
{
	const struct event_name *e = event_name_find("tick");
	struct base_err err = { 0 };

	if (check_source_try("bpf", e->name, l->frequency, NULL, 0, &err) >= 0)
		return print_good(l, e->name, e->what);
	return base_buf_printf(l->bad, "  %s: %s\n", e->name, err.text);
}

/* ---- PMUs of sysfs --------------------------------------------------------------------------- */

struct pmus {
	struct listing *l, one;
	const char *pmu;
};

/* Names with a dot tell scale and unit of another. */
static int list_pmu_event(void *ctx, const char *name)
{
	struct pmus *p = ctx;
	char text[160], pmu[EVENT_PMU_LEN];
	enum check_reach reach;
	bool core; /* can be asked for by its mere name */
	int error;

	if (strchr(name, '.'))
		return 0;
	core = event_sysfs_core(NULL, name, pmu) == 0 && !strcmp(pmu, p->pmu);
	if (core && event_name_find(name))
		return 0; /* the name has the same meaning for all */
	snprintf(text, sizeof(text), core ? "%s%s" : "%s/%s/", core ? "" : p->pmu, name);
	reach = check_text_try(text, p->l->frequency, &error);
	return add_tried(&p->one, text, "", reach, error);
}

static int list_pmu(void *ctx, const char *pmu)
{
	struct pmus *p = ctx;
	char heading[EVENT_PMU_LEN + 16];
	int r;

	snprintf(heading, sizeof(heading), "PMU %s", pmu);
	p->pmu = pmu;
	p->one = (struct listing){ .out = p->l->out, .bad = p->l->bad, .heading = heading };
	r = event_sysfs_list(NULL, pmu, "events", list_pmu_event, p);
	p->l->nr_good += p->one.nr_good;
	p->l->nr_own += p->one.nr_own;
	/* PMUs without a folder of events offer none by name. */
	return r == -ENOMEM ? r : end_heading(&p->one, true);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Raw codes and precision: no names of their own. */
static int list_forms(struct listing *l)
{
	static const struct {
		const char *text, *name, *what;
	} forms[] = {
		{ "r0", "rNNN", "the CPU's own code of an event, hexadecimal" },
		{ "cycles:p", "cycles:p", "at the very instruction (pp: with less shift)" },
	};
	int error, r = 0;

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]) && r >= 0; i++) {
		enum check_reach reach = check_text_try(forms[i].text, l->frequency, &error);

		r = add_tried(l, forms[i].name, forms[i].what, reach, error);
	}
	return r < 0 ? r : end_heading(l, true);
}

static int list_all(struct base_buf *out, struct base_buf *bad, struct listing *sum)
{
	static const struct {
		const char *heading;
		enum event_class class;
	} classes[] = {
		{ "hardware events", EVENT_HARDWARE },
		{ "hardware cache events", EVENT_CACHE },
		{ "software events", EVENT_SOFTWARE },
		{ "DCPI's names of hardware events", EVENT_DCPI },
	};
	struct listing forms = { .out = out,
				 .bad = bad,
				 .heading = "raw and precise events",
				 .frequency = sum->frequency };
	struct listing tick = {
		.out = out, .bad = bad, .heading = "the tick", .frequency = sum->frequency
	};
	struct pmus pmus = { .l = sum };
	int r = 0;

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]) && r >= 0; i++) {
		struct listing l = { .out = out,
				     .bad = bad,
				     .heading = classes[i].heading,
				     .frequency = sum->frequency };

		r = list_class(&l, classes[i].class);
		sum->nr_good += l.nr_good;
		sum->nr_own += l.nr_own;
	}
	if (r >= 0)
		r = list_forms(&forms);
	if (r >= 0)
		r = list_tick(&tick);
	sum->nr_good += forms.nr_good + tick.nr_good;
	sum->nr_own += forms.nr_own;
	if (r >= 0) {
		sum->out = out;
		sum->bad = bad;
		r = event_sysfs_list(NULL, NULL, NULL, list_pmu, &pmus);
		r = r == -ENOMEM ? r : 0;
	}
	return r;
}

/* docs/decisions/default-event.md has the measurements. */
static const char biases[] =
	"\nwith many more threads than CPUs\n"
	"  by tick, shares of programs may be off by a third: the scheduler is in step with it\n"
	"  by cpu-clock and task-clock they hold; code with interrupts off counts where they come "
	"on\n"
	"  by counters they hold, of what is counted: cycles are no time where CPUs change their "
	"speed\n";

int driver_list_events(uint64_t frequency, struct base_buf *out, struct base_err *err)
{
	struct base_buf good = { 0 }, bad = { 0 };
	struct listing sum = { .frequency = frequency };
	int r = list_all(&good, &bad, &sum);

	if (r >= 0 && sum.nr_own)
		r = base_buf_printf(out,
				    "With your rights these sample your own programs alone, "
				    "user mode (dcpirun);\nroot or CAP_PERFMON samples all.\n\n");
	if (r >= 0)
		r = append(out, &good);
	if (r >= 0 && good.len)
		r = base_buf_printf(out, "%s", biases);
	if (r >= 0 && bad.len)
		r = base_buf_printf(out, "%snot here\n", good.len ? "\n" : "");
	if (r >= 0)
		r = append(out, &bad);
	base_buf_release(&good);
	base_buf_release(&bad);
	if (r < 0)
		return base_fail_errno(err, r, "cannot list events");
	return sum.nr_good ? 0 : base_fail(err, -DCPI_ENOEVENTS, "nothing can be sampled here");
}
