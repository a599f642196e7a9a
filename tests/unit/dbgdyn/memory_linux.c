/* SPDX-License-Identifier: BSD-2-Clause */
/* What only Linux has: seals, the marker in the process's map, advice for dumps and forks. */
#include "fake.h"
#include "dbgdyn_internal.h"

#include <fcntl.h>
#include <unistd.h>

static struct fake fake;
static dbgdyn_context context;

static int the_size_is_sealed(void)
{
	int seals, want = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

	fake_open(&fake, FAKE_SOCKET);
	CHECK(dbgdyn_begin("jit", 3, NULL, &context) == DBGDYN_OK && fake_take(&fake));
	seals = fcntl(fake.fd, F_GET_SEALS);
	CHECK(seals >= 0 && (seals & want) == want && !(seals & F_SEAL_WRITE));
	CHECK(ftruncate(fake.fd, 4096) < 0 && ftruncate(fake.fd, 64 << 20) < 0);
	CHECK(fcntl(dbgdyn_state_get(false)->memory.fd, F_GETFD) & FD_CLOEXEC);
	fake_close(&fake);
	return 0;
}

struct map {
	unsigned long start, end;
	char prot[8];
	int nr;
};

/* Mappings of the registry: the one with execute permission, and how many others. */
static int find_maps(struct map *marker, int *others)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];

	*marker = (struct map){ 0 };
	*others = 0;
	CHECK(maps);
	while (fgets(line, sizeof(line), maps)) {
		struct map m = { 0 };
		unsigned long off = 1;

		if (!strstr(line, "/memfd:" DBGDYN_MEMFD_NAME))
			continue;
		CHECK(sscanf(line, "%lx-%lx %7s %lx", &m.start, &m.end, m.prot, &off) == 4);
		CHECK(off == 0);
		m.nr = marker->nr + 1;
		if (strchr(m.prot, 'x'))
			*marker = m;
		else
			++*others;
	}
	fclose(maps);
	return 0;
}

static int the_marker_shows(void)
{
	struct map marker;
	int others;

	fake_open(&fake, 0);
	CHECK(find_maps(&marker, &others) == 0 && marker.nr == 0 && others == 0);
	for (int i = 0; i < 2; i++) {
		CHECK(dbgdyn_begin("jit", 3, NULL, &context) == DBGDYN_OK);
		CHECK(find_maps(&marker, &others) == 0 && marker.nr == 1 && others == 1);
	}
	CHECK(!memcmp(marker.prot, "r-x", 3));
	CHECK(marker.end - marker.start == (unsigned long)sysconf(_SC_PAGESIZE));
	CHECK(((const struct wire_registry *)marker.start)->magic == WIRE_REGISTRY_MAGIC);
	CHECK(((const struct wire_registry *)marker.start)->nr_facilities == 2);
	fake_close(&fake);
	return 0;
}

/* Neither a core dump nor a child has the registry; the child's state is wiped. */
static int advice_is_taken(void)
{
	FILE *smaps;
	char line[512];
	int in_registry = 0, nr = 0, good = 0;

	fake_open(&fake, 0);
	CHECK(dbgdyn_begin("jit", 3, NULL, &context) == DBGDYN_OK);
	smaps = fopen("/proc/self/smaps", "re");
	CHECK(smaps);
	while (fgets(line, sizeof(line), smaps)) {
		if (strstr(line, "/memfd:" DBGDYN_MEMFD_NAME)) {
			in_registry = 1;
			nr++;
		} else if (in_registry && !strncmp(line, "VmFlags:", 8)) {
			good += strstr(line, " dc") && strstr(line, " dd");
			in_registry = 0;
		}
	}
	fclose(smaps);
	/* User-mode emulation shows no flags. */
	CHECK(nr == 2 && (good == 2 || dbgdyn_state_get(false)->check_pid));
	fake_close(&fake);
	return 0;
}

FAKE_TEST(the_size_is_sealed)
FAKE_TEST(the_marker_shows)
FAKE_TEST(advice_is_taken)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_size_is_sealed),
		cmocka_unit_test(test_the_marker_shows),
		cmocka_unit_test(test_advice_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
