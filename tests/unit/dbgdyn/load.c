/* SPDX-License-Identifier: BSD-2-Clause */
/* The shared library by dlopen: no constructor, and dlclose does not forget the registry. */
#include "fake.h"

#include <dlfcn.h>
#include <unistd.h>

static const char code[16];

/* As daemons look for it: by this very name, executable. */
static bool marker_shows(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	bool shown = false;

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "/memfd:dbgdyn (deleted)") && strstr(line, " r-xs "))
			shown = true;
	if (maps)
		fclose(maps);
	return shown;
}

static int opens_and_closes(void)
{
	int (*begin)(const char *, size_t, const struct dbgdyn_options *, uint64_t *);
	int (*tell)(uint64_t, const struct dbgdyn_routine *, uint64_t *);
	uint32_t (*vms_end)(uint64_t *);
	struct dbgdyn_routine r = fake_routine("f", code, sizeof(code));
	struct fake f;
	uint64_t first, second;

	fake_open(&f, FAKE_SOCKET);
	for (int i = 0; i < 2; i++) {
		void *lib = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

		CHECK(lib);
		*(void **)&begin = dlsym(lib, "dbgdyn_begin");
		*(void **)&tell = dlsym(lib, "dbgdyn_register");
		*(void **)&vms_end = dlsym(lib, "DBG$DYN_END");
		CHECK(begin && tell && vms_end);
		CHECK(begin("jit", 3, NULL, i ? &second : &first) == DBGDYN_OK);
		CHECK(tell(first, &r, NULL) == DBGDYN_OK);
		CHECK(dlclose(lib) == 0);
	}
	/* Still the same registry, and its code is still there. */
	CHECK(fake_take(&f));
	CHECK(tell(second, &r, NULL) == DBGDYN_OK);
	struct wire_registry reg;

	fake_header(&f, &reg);
	CHECK(reg.nr_facilities == 2 && reg.head > 0);
	CHECK(marker_shows());
	fake_die(&f);
	/* A daemon of this machine may have found the marker, and answer: either is fine. */
	vms_end(&first);
	CHECK(first == 0);
	fake_close(&f);
	return 0;
}

FAKE_TEST(opens_and_closes)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_opens_and_closes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
