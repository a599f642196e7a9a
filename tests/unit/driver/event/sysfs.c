/* SPDX-License-Identifier: BSD-2-Clause */
/* What sysfs says is not believed: every file of a PMU with everything in it. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "event.h"

static char root[64];

static void put_bytes(const char *file, const void *bytes, size_t len)
{
	char path[512], *slash;
	struct base_err err = { 0 };

	snprintf(path, sizeof(path), "%s/%s", root, file);
	for (slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	assert_int_equal(base_file_write(AT_FDCWD, path, 0600, bytes, len, &err), 0);
}

static void put(const char *file, const char *text)
{
	put_bytes(file, text, strlen(text));
}

static int make(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/dcpi-sysfs-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	put("cpu/type", "4\n");
	put("cpu/format/event", "config:0-7\n");
	put("cpu/events/good", "event=1\n");
	return 0;
}

static int clean(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

static int parse(const char *text, struct event_spec *e, struct base_err *err)
{
	*err = (struct base_err){ 0 };
	return event_parse(text, root, e, err);
}

static void bad_formats_are_refused(void **state)
{
	static const char *const formats[] = {
		"",
		"\n",
		"config",
		"config:",
		"config:-1",
		"config:64",
		"config:0-64",
		"config:7-0",
		"config:0-",
		"config:0,",
		"config:,0",
		"config: 0",
		"config:0-7x",
		"config:0--7",
		"configs:0",
		"konfig:0-7",
		"config3:0-7",
		"config:1000000000000000000000000",
		"config0:1",
		"config:0\n1",
		"config:0\t",
		"config:0-7-9",
		"config1:0,64",
		"config:+1",
		"config:0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16",
	};
	struct event_spec e;
	struct base_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		put("cpu/format/odd", formats[i]);
		if (parse("cpu/odd=1/", &e, &err) >= 0)
			fail_msg("'%s' was taken", formats[i]);
		assert_true(err.text[0]);
	}
	put("cpu/format/odd", "config1:63,0-1,62\n");
	assert_int_equal(parse("cpu/odd=0xd/", &e, &err), 0);
	assert_int_equal(e.config1, 1ull << 63 | 2 | 1ull << 62);
	assert_int_equal(parse("cpu/odd=16/", &e, &err), -DCPI_EUSAGE);
	put("cpu/format/odd", "config2:0-63");
	assert_int_equal(parse("cpu/odd=0xffffffffffffffff/", &e, &err), 0);
	assert_int_equal(e.config2, UINT64_MAX);
}

static void bad_events_are_refused(void **state)
{
	static const char *const events[] = {
		"\n",	",",	     "event",	     "event=",	   "event=1,",	"event=?",
		"good", "none",	     "event=1 ,x=2", "=1",	   "event=256", "config=zz",
		"\x7f", "event=1\r", "period=-1",    "../../type",
	};
	struct event_spec e;
	struct base_err err;
	char longer[3000];

	(void)state;
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		put("cpu/events/odd", events[i]);
		/* A term alone means 1. */
		if (parse("cpu/odd/", &e, &err) >= 0 && strcmp(events[i], "event") != 0)
			fail_msg("'%s' was taken", events[i]);
	}
	memset(longer, '1', sizeof(longer));
	memcpy(longer, "event=", 6);
	put_bytes("cpu/events/odd", longer, sizeof(longer));
	assert_true(parse("odd", &e, &err) < 0);
	put_bytes("cpu/events/odd", "event=1\0x", 9);
	assert_true(parse("odd", &e, &err) < 0);
	put("cpu/events/odd", "event=2,name=other,period=77\n");
	assert_int_equal(parse("odd", &e, &err), 0);
	assert_string_equal(e.name, "odd");
	assert_int_equal(e.period, 77);
}

static void bad_types_are_refused(void **state)
{
	static const char *const types[] = { "", "-1", "4294967296", "4 4", "x", "0x", "4\n\n" };
	struct event_spec e;
	struct base_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		put("other/type", types[i]);
		if (parse("other//", &e, &err) != -DCPI_EUSAGE)
			fail_msg("'%s' was taken", types[i]);
	}
	put("other/type", "4294967295\n");
	assert_int_equal(parse("other//", &e, &err), 0);
	assert_int_equal(e.type, UINT32_MAX);
}

/* A FIFO would be waited for without end. */
static void only_files_are_read(void **state)
{
	struct event_spec e;
	struct base_err err;
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/cpu/format/fifo", root);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_true(parse("cpu/fifo=1/", &e, &err) < 0);
	snprintf(path, sizeof(path), "%s/cpu/events/folder", root);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_true(parse("cpu/folder/", &e, &err) < 0);
}

static int stop_at_good(void *ctx, const char *name)
{
	(*(size_t *)ctx)++;
	return strcmp(name, "good") == 0 ? 7 : 0;
}

static void folders_are_listed_in_order(void **state)
{
	size_t nr = 0;
	char pmu[EVENT_PMU_LEN];

	(void)state;
	put("cpu/events/aaa", "event=1");
	put("cpu/events/.hidden", "event=1");
	put("cpu/events/with space", "event=1");
	put("cpu/events/zzz", "event=1");
	assert_int_equal(event_sysfs_list(root, "cpu", "events", stop_at_good, &nr), 7);
	assert_true(nr >= 2 && nr <= 4); /* aaa, folder, good */
	assert_int_equal(event_sysfs_list(root, "none", "events", stop_at_good, &nr), -ENOENT);
	assert_int_equal(event_sysfs_core(root, "good", pmu), 0);
	assert_string_equal(pmu, "cpu");
	assert_int_equal(event_sysfs_core(root, "../type", pmu), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_formats_are_refused),
		cmocka_unit_test(bad_events_are_refused),
		cmocka_unit_test(bad_types_are_refused),
		cmocka_unit_test(only_files_are_read),
		cmocka_unit_test(folders_are_listed_in_order),
	};

	return cmocka_run_group_tests(tests, make, clean);
}
