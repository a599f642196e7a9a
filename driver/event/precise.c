/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Precise sampling. Intel's cores do it by themselves, up to the level in caps/max_precise. AMD's
 * have no precise events; a unit beside them (IBS) samples every nth cycle or micro-operation
 * exactly, and everybody's names for those two stand for it (perf-amd-ibs(1)).
 */
#include <linux/perf_event.h>

#include "event_internal.h"

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

static int check_core(const char *text, const char *sysfs, const struct event_spec *e,
		      struct base_err *err)
{
	uint64_t max;

	if (event_sysfs_number(sysfs, "cpu", "caps", "max_precise", 3, &max) < 0 ||
	    e->precise <= max)
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

int event_precise(const char *text, const char *sysfs, struct event_spec *out, struct base_err *err)
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
