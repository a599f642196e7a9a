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

static void test_idle(void **state)
{
	char root[] = "/tmp/dcpi-machine-XXXXXX", line[64];
	struct machine_idle idle;

	(void)state;
	assert_non_null(mkdtemp(root));
	assert_false(machine_idle(root, &idle));
	make_folders(root, "/proc");
	write_text(root, "/proc/stat", "cpu  100 20 30 4000\ncpu0 1 2 3 4 5 6 7 8\n");
	assert_false(machine_idle(root, &idle));
	write_text(root, "/proc/stat", "cpu  100 20 30 4000 500 6 7 8 90 1\ncpu0 1 2 3 4\n");
	assert_true(machine_idle(root, &idle));
	assert_int_equal(idle.idle_ms, 4500 * (1000 / sysconf(_SC_CLK_TCK)));
	assert_int_equal(idle.all_ms, 4671 * (1000 / sysconf(_SC_CLK_TCK)));
	snprintf(line, sizeof(line), "rm -rf %s", root);
	assert_int_equal(system(line), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_speed),
					    cmocka_unit_test(test_idle) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
