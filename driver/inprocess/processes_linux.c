/* SPDX-License-Identifier: BSD-2-Clause */
/* What /proc and the clocks say of a process and of time. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "inprocess_source.h"

#define SECOND_NS 1000000000ull

enum { STAT_STATE = 3, STAT_THREADS = 20, STAT_START = 22 }; /* fields of proc_pid_stat(5) */

struct stat_words {
	char state;
	uint64_t nr_threads, start_ticks;
};

uint64_t inprocess_own_space(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) < 0 ? 0 : (uint64_t)st.st_ino;
}

/* The name stands in parentheses and may hold any byte. */
static bool stat_parse(char *text, struct stat_words *out)
{
	char *p = strrchr(text, ')');

	for (int i = STAT_STATE; p && i <= STAT_START; i++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
		if (p && i == STAT_STATE)
			out->state = *p;
		else if (p && i == STAT_THREADS)
			out->nr_threads = strtoull(p, NULL, 10);
		else if (p && i == STAT_START)
			out->start_ticks = strtoull(p, NULL, 10);
	}
	return p != NULL;
}

static int stat_read(int32_t pid, struct stat_words *out)
{
	char path[64], text[1024];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		n = -errno;
	close(fd);
	if (n < 0)
		return (int)n;
	text[n] = '\0';
	return stat_parse(text, out) ? 0 : -DCPI_EFORMAT;
}

bool inprocess_alive(int32_t pid, uint64_t at_ns)
{
	struct stat_words w = { 0 };
	long hz = sysconf(_SC_CLK_TCK);
	int r = stat_read(pid, &w);

	if (r == -ENOENT || r == -ESRCH)
		return false;
	/* What cannot be read (descriptors run out) may well live. */
	if (hz <= 0 || r < 0)
		return true;
	/* A main thread that ended before the others is a zombie too. */
	if (w.state == 'X' || (w.state == 'Z' && w.nr_threads <= 1))
		return false;
	/* Start times are rounded down: a later process can at worst seem to be the same. */
	return w.start_ticks * (SECOND_NS / (uint64_t)hz) <= at_ns + base_boot_ahead_ns();
}

static uint64_t tick_ns(void)
{
	struct timespec res;

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &res) < 0 || res.tv_sec || res.tv_nsec <= 0)
		return SECOND_NS / 250;
	return (uint64_t)res.tv_nsec;
}

uint64_t inprocess_period_ns(uint64_t frequency)
{
	uint64_t tick = tick_ns(), period = frequency ? SECOND_NS / frequency : 0;

	return period > tick ? (period + tick / 2) / tick * tick : tick;
}
