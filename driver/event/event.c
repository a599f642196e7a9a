/* SPDX-License-Identifier: BSD-2-Clause */
/* The text of an event: "NAME[:MODIFIERS][:PERIOD]" or "PMU/TERM,…/[:MODIFIERS][:PERIOD]". */
#include <ctype.h>
#include <linux/perf_event.h>
#include <string.h>

#include "event.h"

/* ---- taking the text apart ------------------------------------------------------------------- */

/* Pieces of the text, cut in a copy. */
struct parts {
	char copy[EVENT_TEXT_MAX];
	const char *full;      /* the caller's text, for messages */
	char *head;	       /* a name, or a PMU's */
	char *terms;	       /* between the slashes; NULL: a mere name */
	const char *modifiers; /* "" where there are none */
	const char *period;    /* NULL: none */
};

static int bad_text(const struct parts *p, const char *why, struct base_err *err)
{
	base_fail(err, -DCPI_EUSAGE, "cannot take event '%.200s': %s", p->full, why);
	base_hint(err, "events are NAME[:MODIFIERS][:PERIOD], as 'cycles:u:100000'");
	return -DCPI_EUSAGE;
}

static bool all_digits(const char *s)
{
	return *s && strspn(s, "0123456789") == strlen(s);
}

/* "u", "u:1000" or "1000". */
static int split_rest(struct parts *p, char *rest, struct base_err *err)
{
	char *field;

	while ((field = strsep(&rest, ":"))) {
		if (!*field)
			return bad_text(p, "nothing between ':' and the next or the end", err);
		if (p->period)
			return bad_text(p, "the period must be last", err);
		if (all_digits(field))
			p->period = field;
		else if (*p->modifiers)
			return bad_text(p, "modifiers must stand together", err);
		else
			p->modifiers = field;
	}
	return 0;
}

static int split(const char *text, struct parts *p, struct base_err *err)
{
	char *rest;

	*p = (struct parts){ .full = text, .modifiers = "" };
	for (const char *c = text; *c; c++)
		if (!isgraph((unsigned char)*c))
			return bad_text(p, "only printable ASCII without blanks is allowed", err);
	if (strlen(text) >= sizeof(p->copy))
		return bad_text(p, "too long", err);
	strcpy(p->copy, text);
	p->head = p->copy;
	p->terms = strchr(p->copy, '/');
	if (p->terms) {
		*p->terms++ = '\0';
		rest = strchr(p->terms, '/');
		if (!rest)
			return bad_text(p, "the '/' that ends the terms of the PMU is missing",
					err);
		*rest++ = '\0';
		/* perf's users write "cpu/…/u" too. */
		rest = *rest == ':' ? rest + 1 : *rest ? rest : NULL;
	} else {
		rest = strchr(p->copy, ':');
		if (rest)
			*rest++ = '\0';
	}
	if (!*p->head)
		return bad_text(p, "it has no name", err);
	return rest ? split_rest(p, rest, err) : 0;
}

/* ---- what is to be counted ------------------------------------------------------------------- */

static int unknown_event(const char *name, const char *sysfs, struct base_err *err)
{
	const struct event_name *e;
	struct event_near near;

	base_fail(err, -DCPI_EUSAGE, "unknown event '%.200s'", name);
	event_near_init(&near, name);
	for (size_t i = 0; (e = event_name_nth(i)); i++)
		event_near_add(&near, e->name);
	event_sysfs_list(sysfs, "cpu", "events", event_near_add, &near);
	event_near_hint(&near, "'dcpid -list-events' lists those of this machine", err);
	return -DCPI_EUSAGE;
}

/* "r1a2": the CPU's own code of an event, in hexadecimal. */
static bool raw_parse(const char *name, struct event_spec *out)
{
	uint64_t code = 0;

	if (name[0] != 'r' || !name[1] || strlen(name) > 17)
		return false;
	for (const char *c = name + 1; *c; c++) {
		if (base_digit(*c) < 0)
			return false;
		code = code << 4 | (uint64_t)base_digit(*c);
	}
	out->type = PERF_TYPE_RAW;
	out->config = code;
	return true;
}

static int find(const struct parts *p, const char *sysfs, struct event_spec *out, char *own_name,
		struct base_err *err)
{
	const struct event_name *e;
	char pmu[EVENT_PMU_LEN];

	*own_name = '\0';
	if (p->terms)
		return event_sysfs_resolve(sysfs, p->head, p->terms, out, own_name, err);
	e = event_name_find(p->head);
	if (e) {
		out->type = e->type;
		out->config = e->config;
		out->clock = e->clock;
		out->tick = e->class == EVENT_TICK;
		return 0;
	}
	if (event_sysfs_core(sysfs, p->head, pmu) == 0)
		return event_sysfs_resolve(sysfs, pmu, p->head, out, own_name, err);
	return raw_parse(p->head, out) ? 0 : unknown_event(p->head, sysfs, err);
}

/* ---- how ------------------------------------------------------------------------------------- */

static int take_modifiers(const struct parts *p, struct event_spec *out, struct base_err *err)
{
	bool user = false, kernel = false, hv = false;

	for (const char *c = p->modifiers; *c; c++) {
		user |= *c == 'u';
		kernel |= *c == 'k';
		hv |= *c == 'h';
		out->precise += *c == 'p';
		if (strchr("ukhp", *c))
			continue;
		base_fail(err, -DCPI_EUSAGE, "unknown modifier '%c' of event '%.200s'", *c,
			  p->full);
		base_hint(err, "modifiers are u (user mode), k (kernel), h (hypervisor), "
			       "p, pp, ppp (precise); a period is digits only");
		return -DCPI_EUSAGE;
	}
	if (out->precise > 3)
		return bad_text(p, "more than three 'p'", err);
	if (user || kernel || hv) {
		out->exclude_user = !user;
		out->exclude_kernel = !kernel;
		out->exclude_hv = !hv;
	}
	return 0;
}

static int take_period(const struct parts *p, struct event_spec *out, struct base_err *err)
{
	uint64_t n;

	if (p->period) {
		if (!base_number_parse(p->period, &n) || n == 0)
			return bad_text(p, "the period is no number above 0", err);
		out->period = n;
	}
	/* The kernel keeps the sign. */
	if (out->period > INT64_MAX)
		return bad_text(p, "the period is too large", err);
	if (out->period && out->clock && out->period < EVENT_CLOCK_LEAST)
		return bad_text(p, "a clock's period is in nanoseconds, 10000 at least", err);
	return 0;
}

static int check_tick(const struct parts *p, struct base_err *err)
{
	if (*p->modifiers || p->period)
		return bad_text(p, "the scheduler's tick has neither modifiers nor another period",
				err);
	return 0;
}

/* ---- precise sampling ------------------------------------------------------------------------ */

/*
 * Intel's cores do it by themselves, up to the level in caps/max_precise. AMD's have no precise
 * events; a unit beside them (IBS) samples every nth cycle or micro-operation exactly, and
 * everybody's names for those two stand for it (perf-amd-ibs(1)).
 */
enum {
	IBS_CYCLES = 0x76, /* the core's own codes, for which IBS stands in */
	IBS_MICRO_OPS = 0xc1,
	IBS_PERIOD_STEP = 16, /* it counts in sixteens, from nine of them on */
	IBS_PERIOD_MIN = 0x90,
};

static int ibs_term(const char *text, const char *sysfs, const char *term, const char *hint,
		    struct event_spec *out, struct base_err *err)
{
	char name[EVENT_NAME_LEN];

	if (event_sysfs_resolve(sysfs, "ibs_op", term, out, name, NULL) >= 0)
		return 0;
	base_fail(err, -DCPI_EUSAGE, "cannot sample '%.200s' precisely: IBS has no '%s' here", text,
		  term);
	base_hint(err, "%s", hint);
	return -DCPI_EUSAGE;
}

static int use_ibs(const char *text, const char *sysfs, struct event_spec *out,
		   struct base_err *err)
{
	bool hardware = out->type == PERF_TYPE_HARDWARE, raw = out->type == PERF_TYPE_RAW;
	bool cycles = (hardware && out->config == PERF_COUNT_HW_CPU_CYCLES) ||
		      (raw && out->config == IBS_CYCLES);
	int r;

	if ((!cycles && !(raw && out->config == IBS_MICRO_OPS)) || out->precise > 2) {
		base_fail(err, -DCPI_EUSAGE,
			  "cannot sample '%.200s' on this CPU: it is not that precise", text);
		base_hint(err,
			  "its IBS samples cycles (cycles:p, cycles:pp) and micro-ops (r0c1:p)");
		return -DCPI_EUSAGE;
	}
	out->config = 0;
	r = ibs_term(text, sysfs, cycles ? "" : "cnt_ctl=1", "cycles:p needs less", out, err);
	if (r >= 0 && (out->exclude_user || out->exclude_kernel))
		r = ibs_term(text, sysfs, "swfilt=1",
			     "leave u, k and h out; Linux 6.14 and newer can do them", out, err);
	return r;
}

static int note_arm(void *ctx, const char *pmu)
{
	bool *arm = ctx;

	*arm |= !strncmp(pmu, "armv", 4);
	return 0;
}

/* On Arm the kernel accepts a precise level, and ignores it. */
static bool is_arm(const char *sysfs)
{
	bool arm = false;

	event_sysfs_list(sysfs, NULL, NULL, note_arm, &arm);
	return arm;
}

static int check_core(const char *text, const char *sysfs, const struct event_spec *e,
		      struct base_err *err)
{
	uint64_t max = 0;

	if (!is_arm(sysfs) &&
	    (event_sysfs_number(sysfs, "cpu", "caps", "max_precise", 3, &max) < 0 ||
	     e->precise <= max))
		return 0; /* the kernel will tell */
	base_fail(err, -DCPI_EUSAGE, "cannot sample '%.200s' on this CPU: %s", text,
		  max ? "it is not that precise" : "it has no precise events");
	base_hint(err, "%s%.*s", max ? "its most is " : "leave the p out", (int)max, "ppp");
	return -DCPI_EUSAGE;
}

/* The unit is precise by itself: it asks for no level, and refuses periods that it cannot count. */
static void fit_ibs(struct event_spec *out)
{
	out->precise = 0;
	out->exclude_hv = false; /* no such mode here, and older kernels refuse every exclusion */
	if (out->period && out->period < IBS_PERIOD_MIN)
		out->period = IBS_PERIOD_MIN;
	out->period -= out->period % IBS_PERIOD_STEP;
}

/* See that the machine is as precise as @out asks for; on AMD put IBS in its place. @text stands in
 * messages. */
static int make_precise(const char *text, const char *sysfs, struct event_spec *out,
			struct base_err *err)
{
	uint64_t ibs;
	bool has_ibs = event_sysfs_number(sysfs, "ibs_op", NULL, "type", UINT32_MAX, &ibs) == 0;
	int r = 0;

	if (out->precise && out->type == PERF_TYPE_SOFTWARE)
		return base_fail(err, -DCPI_EUSAGE,
				 "cannot sample '%.200s': only hardware events can be precise",
				 text);
	if (out->precise && has_ibs && out->type != ibs)
		r = use_ibs(text, sysfs, out, err);
	else if (out->precise && !has_ibs)
		r = check_core(text, sysfs, out, err);
	if (r >= 0 && has_ibs && out->type == ibs)
		fit_ibs(out);
	return r;
}

/* ---- instruction samples --------------------------------------------------------------------- */

enum event_hardware event_hardware_of(const char *pmu)
{
	if (!strncmp(pmu, "ibs_op", 6))
		return EVENT_HW_IBS_OP;
	if (!strncmp(pmu, "ibs_fetch", 9))
		return EVENT_HW_IBS_FETCH;
	return !strncmp(pmu, "arm_spe", 7) ? EVENT_HW_SPE : EVENT_HW_OTHER;
}

/* The number of an event's PMU tells its hardware, as IBS stands in for events of other names. */
static enum event_hardware hardware_of(const struct parts *p, const char *sysfs, uint32_t type)
{
	static const char *const pmus[] = { "ibs_op", "ibs_fetch" };
	uint64_t n;

	if (p->terms && event_hardware_of(p->head) == EVENT_HW_SPE)
		return EVENT_HW_SPE;
	for (size_t i = 0; i < sizeof(pmus) / sizeof(*pmus); i++)
		if (event_sysfs_number(sysfs, pmus[i], NULL, "type", UINT32_MAX, &n) == 0 &&
		    n == type)
			return event_hardware_of(pmus[i]);
	return EVENT_HW_OTHER;
}

/* IBS by its own name, and the events of Intel's that weigh loads and stores. */
static bool is_told(const struct parts *p, const struct event_spec *e)
{
	const char *name = p->terms ? p->terms : p->head;

	if (e->hardware != EVENT_HW_OTHER)
		return p->terms && event_hardware_of(p->head) == e->hardware;
	return e->precise && (!strncmp(name, "mem-loads", 9) || !strncmp(name, "mem-stores", 10));
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* "name=" of a PMU's terms is the name; the modifiers belong to it. */
static int take_name(const struct parts *p, const char *own, struct event_spec *out,
		     struct base_err *err)
{
	int full = (int)(p->period ? strlen(p->full) - strlen(p->period) - 1 : strlen(p->full));
	int n;

	if (*own)
		n = snprintf(out->name, sizeof(out->name), "%s%s%s", own, *p->modifiers ? ":" : "",
			     p->modifiers);
	else
		n = snprintf(out->name, sizeof(out->name), "%.*s", full, p->full);
	if (n >= 0 && n < (int)sizeof(out->name))
		return 0;
	base_fail(err, -DCPI_EUSAGE, "event '%.200s' has a name of more than %zu bytes", p->full,
		  sizeof(out->name) - 1);
	base_hint(err, p->terms
			       ? "give it a shorter one: PMU/…,name=NAME/"
			       : "names of this machine's events can be given as PMU/NAME,name=…/");
	return -DCPI_EUSAGE;
}

int event_parse(const char *text, const char *sysfs, struct event_spec *out, struct base_err *err)
{
	char own_name[EVENT_NAME_LEN];
	struct parts p;
	int r = split(text, &p, err);

	*out = (struct event_spec){ 0 };
	if (r >= 0)
		r = find(&p, sysfs, out, own_name, err);
	if (r >= 0 && out->tick)
		r = check_tick(&p, err);
	if (r >= 0)
		r = take_modifiers(&p, out, err);
	if (r >= 0)
		r = take_period(&p, out, err);
	if (r >= 0)
		r = make_precise(text, sysfs, out, err);
	if (r >= 0)
		out->hardware = hardware_of(&p, sysfs, out->type);
	out->told = r >= 0 && is_told(&p, out);
	return r < 0 ? r : take_name(&p, own_name, out, err);
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* A profile knows its events by their names. */
static struct event_spec *find_same(struct event_spec *all, size_t nr, const char *name)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(all[i].name, name))
			return &all[i];
	return NULL;
}

static int take_again(const struct event_spec *one, uint64_t slot, struct event_spec *had,
		      struct base_err *err)
{
	if (had->slots & slot)
		return base_fail(err, -DCPI_EUSAGE, "event '%s' is asked for twice", one->name);
	if (had->period != one->period) {
		base_fail(err, -DCPI_EUSAGE, "event '%s' is asked for with two periods", one->name);
		base_hint(err, "in each slot that has it, it needs the same one");
		return -DCPI_EUSAGE;
	}
	if (had->type != one->type || had->config != one->config || had->config1 != one->config1 ||
	    had->config2 != one->config2 || had->precise != one->precise)
		return base_fail(err, -DCPI_EUSAGE, "'%s' is the name of two events", one->name);
	had->slots |= slot;
	return 0;
}

static int take_event(const char *text, const char *sysfs, uint64_t slot, struct event_spec *all,
		      size_t *nr, struct base_err *err)
{
	struct event_spec one, *had;
	int r = event_parse(text, sysfs, &one, err);

	if (r < 0)
		return r;
	had = find_same(all, *nr, one.name);
	if (had)
		return take_again(&one, slot, had, err);
	if (*nr == DRIVER_NR_EVENTS)
		return base_fail(err, -DCPI_EUSAGE, "more than %d events", DRIVER_NR_EVENTS);
	one.slots = slot;
	all[(*nr)++] = one;
	return 0;
}

/* It goes on whosever turn it is. */
static int check_turns(const struct event_spec *all, size_t nr, size_t nr_slots,
		       struct base_err *err)
{
	for (size_t i = 0; i < nr; i++) {
		if (!all[i].tick || all[i].slots + 1 == UINT64_C(1) << nr_slots)
			continue;
		base_fail(err, -DCPI_EUSAGE, "cannot sample '%s' in turn: it goes on all the time",
			  all[i].name);
		base_hint(err, "leave it out, or name it in every slot");
		return -DCPI_EUSAGE;
	}
	return 0;
}

int event_parse_slots(const char *const *slots, size_t nr_slots, const char *sysfs,
		      struct event_spec *out, struct base_err *err)
{
	char text[EVENT_TEXT_MAX + 1];
	size_t nr = 0;

	if (nr_slots > EVENT_NR_SLOTS)
		return base_fail(err, -DCPI_EUSAGE, "more than %d slots", EVENT_NR_SLOTS);
	for (size_t i = 0; i < nr_slots; i++) {
		const char *at = slots[i];

		for (bool more = true; more;) {
			size_t len = strcspn(at, "+");
			/* Cut where event_parse will find it too long. */
			int n = len < sizeof(text) ? (int)len : (int)sizeof(text) - 1, r;

			snprintf(text, sizeof(text), "%.*s", n, at);
			r = take_event(text, sysfs, UINT64_C(1) << i, out, &nr, err);
			if (r < 0)
				return r;
			more = at[len] == '+';
			at += len + more;
		}
	}
	if (check_turns(out, nr, nr_slots, err) < 0)
		return -DCPI_EUSAGE;
	return (int)nr;
}
