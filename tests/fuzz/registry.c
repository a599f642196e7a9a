/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parser of registries, as the reader process runs it: the input is a registry's file, but that
 * the facts of the file (its length) are filled in where the input asks for it, so that mutations
 * get behind the header. What comes out must be well-formed whatever went in.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "registry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int file = -1;

static ssize_t memory_read(void *ctx, uint64_t addr, void *to, size_t len)
{
	(void)ctx;
	if (addr % 3 == 0)
		return -14;
	if (addr % 3 == 1)
		len = len / 2;
	memset(to, 0x90, len);
	return (ssize_t)len;
}

static void check(const struct base_buf *b)
{
	const struct wire_head *h;
	size_t pos = 0;

	while ((h = wire_next(b->data, b->len, &pos)))
		if (wire_check(h) < 0)
			abort();
	if (pos != b->len)
		abort();
}

/*
 * A small input stands for a large sparse file: the header (64 bytes), the counters (24), then the
 * facilities' table, the ranges' table and the ring, as far as the input goes.
 */
static void spread(const uint8_t *data, size_t len)
{
	static const struct {
		off_t to;
		size_t len;
	} part[] = { { 0, 64 }, { 256, 24 }, { 4096, 512 }, { 12288, 256 }, { 77824, 65536 } };

	if (ftruncate(file, 0) < 0 || ftruncate(file, 77824 + 65536) < 0)
		abort();
	for (size_t i = 0; i < sizeof(part) / sizeof(part[0]) && len; i++) {
		size_t n = len < part[i].len ? len : part[i].len;

		if (pwrite(file, data, n, part[i].to) != (ssize_t)n)
			abort();
		data += n;
		len -= n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct registry_memory memory = { memory_read, NULL };
	struct base_buf out = { 0 };
	uint64_t tail = 0;

	if (file < 0)
		file = memfd_create("fuzz", MFD_CLOEXEC);
	spread(data, len);
	for (int i = 0; i < 4; i++) {
		uint64_t before = tail;
		int r;

		base_buf_clear(&out);
		r = registry_parse(file, &memory, &tail, &out);
		if (r < 0 || tail == before)
			break;
		check(&out);
	}
	base_buf_release(&out);
	return 0;
}
