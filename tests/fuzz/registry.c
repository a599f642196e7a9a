/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parser of registries, as the reader process runs it: the input is a registry's file, but that
 * the facts of the file (its length) are filled in where the input asks for it, so that mutations
 * get behind the header. What comes out must be well-formed whatever went in.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "registry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { RING = 77824, HEAP = 143360, PART = 65536 };

static int file = -1;

static ssize_t memory_read(void *ctx, uint64_t addr, void *to, size_t len)
{
	static const uint32_t version = 2;

	(void)ctx;
	/* The client goes on meanwhile. */
	if (addr % 5 == 0 && pwrite(file, &version, sizeof(version),
				    (off_t)(HEAP + 4 + (addr * 64) % PART)) != sizeof(version))
		abort();
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
 * A small input stands for a large sparse file: the header (104 bytes), the counters (56), the
 * facilities' table (512), the ranges' (256), two bytes: the length of what goes into the ring,
 * that, and the rest into the heap.
 */
static void spread(const uint8_t *data, size_t len)
{
	struct {
		off_t to;
		size_t len;
	} part[] = { { 0, 104 },     { 256, 56 }, { 4096, 512 },
		     { 12288, 256 }, { RING, 0 }, { HEAP, PART } };

	if (ftruncate(file, 0) < 0 || ftruncate(file, HEAP + PART) < 0)
		abort();
	for (size_t i = 0; i < sizeof(part) / sizeof(part[0]) && len; i++) {
		size_t n;

		if (part[i].to == RING && len >= 2) {
			part[i].len = data[0] | (size_t)data[1] << 8;
			data += 2;
			len -= 2;
		}
		n = len < part[i].len ? len : part[i].len;
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
	struct registry_place place = { 0 };

	if (file < 0)
		file = memfd_create("fuzz", MFD_CLOEXEC);
	spread(data, len);
	for (int i = 0; i < 4; i++) {
		struct registry_place before = place;

		base_buf_clear(&out);
		if (registry_parse(file, &memory, &place, &out) < 0)
			break;
		check(&out);
		if (!memcmp(&place, &before, sizeof(place)))
			break;
	}
	base_buf_release(&out);
	return 0;
}
