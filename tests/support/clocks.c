/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clocks that are set, and a machine that sleeps, for one program into which this is preloaded. The
 * file DCPI_CLOCKS says by how many seconds UTC, the time since boot, and that without sleep are
 * ahead: three numbers of 19 characters, each with a newline behind it; what is not there is 0. It
 * may be written over at any time.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { NUMBER = 20 };

static const char *numbers;

/* Before main: programs that begin with many rights give them up. */
__attribute__((constructor)) static void map_numbers(void)
{
	const char *path = getenv("DCPI_CLOCKS");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *at = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);

	if (at != MAP_FAILED)
		numbers = at;
	if (fd >= 0)
		close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	int r = (int)syscall(SYS_clock_gettime, clock, t);

	if (r == 0 && numbers && clock == CLOCK_REALTIME)
		t->tv_sec += strtol(numbers, NULL, 10);
	if (r == 0 && numbers && clock == CLOCK_BOOTTIME)
		t->tv_sec += strtol(numbers + NUMBER, NULL, 10);
	if (r == 0 && numbers && clock == CLOCK_MONOTONIC)
		t->tv_sec += strtol(numbers + 2 * NUMBER, NULL, 10);
	return r;
}

time_t time(time_t *t)
{
	struct timespec now = { 0 };

	clock_gettime(CLOCK_REALTIME, &now);
	if (t)
		*t = now.tv_sec;
	return now.tv_sec;
}
