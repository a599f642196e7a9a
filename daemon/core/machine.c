/* SPDX-License-Identifier: BSD-2-Clause */
/* The machine says how fast its CPUs are. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

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
