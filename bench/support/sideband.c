/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sideband: how many records the kernel writes for one start of a program, with what our driver
 * asks for and with what "perf record" asks for. Prints "ours N" and "perf N", records an exec.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perf_internal.h"

enum { STARTS = 200, RING_PAGES = 512 };

extern char **environ;

/*
 * One process on the CPUs that it may use; the children inherit the event and its ring. What other
 * processes of the machine do meanwhile is not counted.
 */
static int open_ring(struct perf_event_attr *attr, int cpu, struct perf_event_mmap_page **page)
{
	size_t len = (1 + RING_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
	int fd = perf_event_try(attr, 0, cpu);

	if (fd < 0)
		return fd;
	*page = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return *page == MAP_FAILED ? -errno : fd;
}

static int start_programs(void)
{
	char *args[] = { (char *)"/bin/true", NULL };
	pid_t pid;

	for (int i = 0; i < STARTS; i++) {
		if (posix_spawn(&pid, args[0], NULL, NULL, args, environ) != 0)
			return -1;
		waitpid(pid, NULL, 0);
	}
	return 0;
}

static uint64_t count_records(const struct perf_event_mmap_page *page)
{
	const uint8_t *data = (const uint8_t *)page + page->data_offset;
	uint64_t nr = 0;

	for (uint64_t at = 0; at < page->data_head; nr++) {
		struct perf_event_header head;

		memcpy(&head, data + at % page->data_size, sizeof(head));
		if (!head.size)
			break;
		at += head.size;
	}
	return nr;
}

static int measure(const char *name, struct perf_event_attr *attr)
{
	long nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct perf_event_mmap_page *pages[256];
	int fds[256];
	uint64_t nr = 0;

	attr->inherit = 1;
	for (int i = 0; i < nr_cpus && i < 256; i++) {
		fds[i] = open_ring(attr, i, &pages[i]);
		if (fds[i] < 0) {
			fprintf(stderr, "sideband: %s: %s\n", name, strerror(-fds[i]));
			return -1;
		}
		ioctl(fds[i], PERF_EVENT_IOC_ENABLE, 0);
	}
	if (start_programs() < 0)
		return -1;
	for (int i = 0; i < nr_cpus && i < 256; i++) {
		ioctl(fds[i], PERF_EVENT_IOC_DISABLE, 0);
		nr += count_records(pages[i]);
		close(fds[i]);
	}
	printf("%s %.2f\n", name, (double)nr / STARTS);
	return 0;
}

int main(void)
{
	struct perf_event_attr ours,
		/* As "perf record -vv -a" prints what it asks for. */
		perf = {
			.size = sizeof(perf),
			.type = PERF_TYPE_SOFTWARE,
			.config = PERF_COUNT_SW_DUMMY,
			.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
				       PERF_SAMPLE_CPU,
			.disabled = 1,
			.mmap = 1,
			.mmap2 = 1,
			.comm = 1,
			.comm_exec = 1,
			.task = 1,
			.ksymbol = 1,
			.bpf_event = 1,
			.sample_id_all = 1,
		};

	perf_attr_tracking(&ours, RING_PAGES * (size_t)sysconf(_SC_PAGESIZE), -1, PERF_USE_ALL);
	return measure("ours", &ours) < 0 || measure("perf", &perf) < 0;
}
