/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as the ring of a program that samples itself: the head, then units. It is read, both
 * are changed under the reader's hands, read again, and given up. What is handed on is in order,
 * and the accounts balance.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inprocess_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { UNITS_MAX = 256 };

static char folder[64], path[96];
static uint64_t last_ns, nr_counted;

static void remove_folder(void)
{
	unlink(path);
	rmdir(folder);
}

static int take_load(void *ctx, const struct driver_load *l)
{
	(void)ctx;
	if (l->time_ns < last_ns || l->pid <= 0 || l->id.len > sizeof(l->id.bytes) ||
	    (l->path && strlen(l->path) > INPROCESS_PATH_MAX))
		abort();
	if (l->kind == DRIVER_LOAD_MMAP && (!l->len || !l->path || l->addr + l->len < l->addr))
		abort();
	last_ns = l->time_ns;
	return 0;
}

static int take_count(void *ctx, const struct driver_count *c)
{
	(void)ctx;
	if (c->time_ns < last_ns || c->pid <= 0 || c->count != 1)
		abort();
	last_ns = c->time_ns;
	nr_counted++;
	return 0;
}

static void write_ring(const uint8_t *data, size_t len)
{
	struct inprocess_head h;
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	off_t file_len = (off_t)(INPROCESS_HEAD_LEN + len - sizeof(h));

	memcpy(&h, data, sizeof(h));
	if (h.nr_units <= UNITS_MAX)
		file_len = INPROCESS_HEAD_LEN + (off_t)h.nr_units * 32;
	if (fd < 0 || pwrite(fd, data, sizeof(h), 0) < 0 ||
	    pwrite(fd, data + sizeof(h), len - sizeof(h), INPROCESS_HEAD_LEN) < 0 ||
	    ftruncate(fd, file_len) < 0)
		abort();
	close(fd);
}

/* Its last bytes over the counters, and over the first units: sequence numbers go anywhere too. */
static void change_ring(int fd, const uint8_t *data, size_t len)
{
	size_t counters_at = offsetof(struct inprocess_head, head);
	size_t counters_len = sizeof(struct inprocess_head) / 2;
	size_t units_len = (len - sizeof(struct inprocess_head)) / 2;

	if (pwrite(fd, data + len - counters_len, counters_len, (off_t)counters_at) !=
		    (ssize_t)counters_len ||
	    pwrite(fd, data + len - units_len, units_len, INPROCESS_HEAD_LEN) != (ssize_t)units_len)
		abort();
}

static void drain(struct driver *d, bool all)
{
	const struct driver_sink sink = { .load = take_load, .count = take_count };
	struct base_err err = { 0 };
	struct driver_stats s;
	uint64_t sum;

	if (driver_drain(d, all, &sink, &err) < 0)
		abort();
	driver_stats_get(d, &s);
	/* Numbers that are lies stop at their end. */
	if (base_add_overflow(nr_counted + s.held + s.lost_bad, s.lost_ring, &sum))
		sum = UINT64_MAX;
	if (s.received[0] != sum)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct driver_config config = { .source = "inprocess", .run_dir = folder };
	struct base_err err = { 0 };
	struct driver *d;
	int fd;

	if (len < sizeof(struct inprocess_head))
		return 0;
	if (!folder[0]) {
		snprintf(folder, sizeof(folder), "/tmp/dcpi-fuzz-XXXXXX");
		if (!mkdtemp(folder))
			abort();
		snprintf(path, sizeof(path), "%s/%sx", folder, INPROCESS_PREFIX);
		atexit(remove_folder);
	}
	last_ns = nr_counted = 0;
	write_ring(data, len);
	/* Kept by a second name's worth: the source removes the first. */
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || driver_open(&config, &d, &err) < 0 || driver_start(d, &err) < 0)
		abort();
	drain(d, false);
	change_ring(fd, data, len);
	drain(d, true);
	driver_stop(d);
	drain(d, true);
	driver_close(d);
	close(fd);
	return 0;
}
