/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core.h"

static const char freq[] = "/sys/devices/system/cpu/cpu0/cpufreq";

static void make_folders(const char *root, const char *below)
{
	char path[256];

	for (const char *at = strchr(below + 1, '/');; at = strchr(at + 1, '/')) {
		size_t len = at ? (size_t)(at - below) : strlen(below);

		snprintf(path, sizeof(path), "%s%.*s", root, (int)len, below);
		mkdir(path, 0755);
		if (!at)
			return;
	}
}

static void write_text(const char *root, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", root, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void test_speed(void **state)
{
	char root[] = "/tmp/dcpi-machine-XXXXXX", line[64];

	(void)state;
	assert_non_null(mkdtemp(root));
	assert_int_equal(machine_cpu_mhz(root), 0);
	make_folders(root, "/proc");
	write_text(root, "/proc/cpuinfo", "processor : 0\nBogoMIPS : 50.0\n");
	assert_int_equal(machine_cpu_mhz(root), 0);
	write_text(root, "/proc/cpuinfo", "processor : 0\ncpu MHz\t\t: 2299.998\ncpu MHz\t: 1\n");
	assert_int_equal(machine_cpu_mhz(root), 2300);
	make_folders(root, freq);
	write_text(root, "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "4463000\n");
	assert_int_equal(machine_cpu_mhz(root), 4463);
	snprintf(line, sizeof(line), "rm -rf %s", root);
	assert_int_equal(system(line), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_speed) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
