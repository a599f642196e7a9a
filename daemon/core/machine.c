/* SPDX-License-Identifier: BSD-2-Clause */
/* The machine says how fast its CPUs are, and for how long they idled. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core.h"

static const char *read_text(const char *root, const char *name, struct base_buf *buf)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	base_buf_clear(buf);
	if (base_file_read(AT_FDCWD, path, 1 << 20, buf, NULL) < 0 ||
	    base_buf_append(buf, "", 1) < 0)
		return "";
	return (const char *)buf->data;
}

uint64_t machine_cpu_mhz(const char *root)
{
	struct base_buf buf = { 0 };
	const char *text =
		read_text(root, "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", &buf);
	uint64_t mhz = strtoull(text, NULL, 10) / 1000;

	/* A virtual machine has no such file; x86 names the present speed. */
	if (!mhz) {
		text = strstr(read_text(root, "proc/cpuinfo", &buf), "\ncpu MHz");
		text = text ? strchr(text, ':') : NULL;
		mhz = text ? (uint64_t)(strtod(text + 1, NULL) + 0.5) : 0;
	}
	base_buf_release(&buf);
	return mhz;
}

/* The times that /proc/stat has of all CPUs together: user, nice, system, idle, waiting for I/O,
 * interrupts, softirqs, stolen. Those of guests are in the first two. */
bool machine_idle(const char *root, struct machine_idle *out)
{
	enum { NR_TIMES = 8, IDLE = 3, IO_WAIT = 4, MS_PER_S = 1000 };
	struct base_buf buf = { 0 };
	const char *at = read_text(root, "proc/stat", &buf);
	uint64_t per_s = (uint64_t)sysconf(_SC_CLK_TCK), n;
	bool found = strncmp(at, "cpu ", 4) == 0;
	char *end = (char *)(uintptr_t)(found ? at + 4 : at);

	*out = (struct machine_idle){ 0 };
	for (int i = 0; found && i < NR_TIMES; i++) {
		at = end;
		n = strtoull(at, &end, 10);
		found = end != at;
		out->all_ms += n * MS_PER_S / per_s;
		if (i == IDLE || i == IO_WAIT)
			out->idle_ms += n * MS_PER_S / per_s;
	}
	base_buf_release(&buf);
	return found;
}
