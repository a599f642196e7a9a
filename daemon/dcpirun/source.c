/* SPDX-License-Identifier: BSD-2-Clause */
/* Perf events of one's own process where they are allowed, else an agent inside the program. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dcpirun.h"

static const char event_inside[] = "thread-clock";

/* ---- the agent ------------------------------------------------------------------------------- */

int source_agent(char *path, size_t len, struct base_err *err)
{
	/* Where it is installed, and beside a build's bin/. */
	static const char *const places[] = { DCPIRUN_AGENT, "../lib/libdcpirun.so",
					      "libdcpirun.so" };
	char exe[2048], plain[4096];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n <= 0)
		return base_fail_errno(err, n < 0 ? -errno : -ENOENT,
				       "cannot find 'libdcpirun.so'");
	exe[n] = '\0';
	*strrchr(exe, '/') = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		char *real;

		snprintf(plain, sizeof(plain), "%s/%s", exe, places[i]);
		real = realpath(plain, NULL);
		n = real ? snprintf(path, len, "%s", real) : -1;
		free(real);
		if (n < 0 || (size_t)n >= len)
			continue;
		/* A path with a separator of LD_PRELOAD cannot be put into it. */
		if (!strpbrk(path, " :"))
			return 0;
		return base_fail(err, -DCPI_EHELPER,
				 "cannot preload '%s': a blank or colon in its path", path);
	}
	base_fail(err, -DCPI_EHELPER, "cannot find 'libdcpirun.so'");
	base_hint(err, "it belongs into '%s/%s'", exe, places[0]);
	return -DCPI_EHELPER;
}

/* ---- the choice ------------------------------------------------------------------------------ */

static bool paranoid(char *why, size_t len)
{
	struct base_buf text = { 0 };
	int level, r;

	r = base_file_read(AT_FDCWD, "/proc/sys/kernel/perf_event_paranoid", 64, &text, NULL);
	if (r >= 0)
		r = base_buf_append(&text, "", 1);
	level = r >= 0 ? atoi((const char *)text.data) : 0;
	base_buf_release(&text);
	/* Up to 2 one's own programs may be sampled: what refuses them then is something else. */
	if (r < 0 || level <= 2)
		return false;
	snprintf(why, len, "kernel.perf_event_paranoid is %d", level);
	return true;
}

static void choose_inside(struct choice *out, const char *cause, uint64_t per_second)
{
	out->source = "inprocess";
	snprintf(out->why, sizeof(out->why),
		 "%s%ssampling from inside the program, by its CPU time, %llu samples a second",
		 cause, *cause ? ": " : "", (unsigned long long)per_second);
}

static int try_source(const char *source, const char *event, int64_t rate, int32_t pid,
		      struct driver **d, struct base_err *err)
{
	const struct driver_config config = { .source = source,
					      .slots = &event,
					      .nr_slots = event ? 1 : 0,
					      .frequency = (uint64_t)rate,
					      .pid = pid,
					      .run_dir = "/" };

	return driver_open(&config, d, err);
}

static int try_inside(const char *event, int64_t rate, const char *cause, struct choice *out,
		      struct base_err *err)
{
	struct driver *d = NULL;
	int r = try_source("inprocess", event, rate, 0, &d, err);

	if (r < 0)
		return r;
	choose_inside(out, cause, 1000000000u / driver_event_get(d, 0)->period);
	driver_close(d);
	return 0;
}

static int try_perf(const char *event, int64_t rate, int32_t pid, struct choice *out,
		    struct base_err *err)
{
	struct driver *d = NULL;
	int r = try_source("perf", event, rate, pid, &d, err);

	if (r < 0)
		return r;
	out->source = "perf";
	snprintf(out->why, sizeof(out->why), "perf events of your own programs are allowed: %s",
		 driver_describe(d));
	driver_close(d);
	return 0;
}

int source_choose(const char *wanted, const char *event, int64_t rate, int32_t pid,
		  struct choice *out, struct base_err *err)
{
	struct base_err refused = { 0 };
	char cause[sizeof(refused.text)] = "";
	int r;

	if (wanted && strcmp(wanted, "perf") != 0 && strcmp(wanted, "inprocess") != 0) {
		base_fail(err, -DCPI_EUSAGE, "unknown source of samples '%s'", wanted);
		base_hint(err, "sources are: perf, inprocess");
		return -DCPI_EUSAGE;
	}
	if ((wanted && !strcmp(wanted, "inprocess")) ||
	    (!wanted && event && !strcmp(event, event_inside)))
		return try_inside(event, rate, "", out, err);
	if (wanted && event && !strcmp(event, event_inside)) {
		base_fail(err, -DCPI_EUSAGE, "'%s' is not of perf", event_inside);
		base_hint(err, "it is sampled from inside the program: -source inprocess");
		return -DCPI_EUSAGE;
	}
	r = try_perf(event, rate, pid, out, &refused);
	/* An event that was asked for by name is not replaced by another. */
	if (r >= 0 || wanted || event || r != -DCPI_ENOEVENTS) {
		if (r < 0)
			*err = refused;
		return r;
	}
	if (!paranoid(cause, sizeof(cause)))
		snprintf(cause, sizeof(cause), "%s", refused.text);
	return try_inside(event, rate, cause, out, err);
}
