/* SPDX-License-Identifier: BSD-2-Clause */
#include <elf.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "growing.h"

/* What has come of a file. */
struct announced {
	struct foreign_place place;
	struct base_buf records; /* but for times that are as before */
	uint64_t seq, time_ns, nr_bad;
	bool has_time;
	int status;
};

static int file = -1;

static ssize_t memory_read(void *ctx, uint64_t addr, void *to, size_t len)
{
	(void)ctx;
	if (addr / WIRE_PAGE % 3 == 0)
		return -14;
	if (addr / WIRE_PAGE % 3 == 1)
		len = len / 2;
	memset(to, 0x90, len);
	return (ssize_t)len;
}

static bool is_known_time(struct announced *t, const struct wire_head *h)
{
	uint64_t time_ns;

	if (h->type != WIRE_TIME)
		return false;
	time_ns = ((const struct wire_time *)(const void *)h)->time_ns;
	if (t->has_time && t->time_ns == time_ns)
		return true;
	t->has_time = true;
	t->time_ns = time_ns;
	return false;
}

static uint64_t seq_of(const struct wire_head *h)
{
	if (h->type == WIRE_ROUTINE)
		return ((const struct wire_routine *)(const void *)h)->seq;
	if (h->type == WIRE_MOVE)
		return ((const struct wire_move *)(const void *)h)->seq;
	if (h->type != WIRE_TIME)
		abort();
	return 0;
}

static void take(struct announced *t, const struct base_buf *out)
{
	const struct wire_head *h;
	size_t pos = 0;

	while ((h = wire_next(out->data, out->len, &pos))) {
		uint64_t seq = seq_of(h);

		if (wire_check(h) < 0 || (seq && seq <= t->seq))
			abort();
		t->seq = seq ? seq : t->seq;
		if (!is_known_time(t, h) && base_buf_append(&t->records, h, h->len) < 0)
			abort();
	}
	if (pos != out->len || t->seq != t->place.seq)
		abort();
}

static void read_on(struct announced *t, growing_read_fn *read, size_t answer_max)
{
	struct foreign_file from = { .fd = file,
				     .machine = EM_X86_64,
				     .read = memory_read,
				     .deadline_ns = UINT64_MAX,
				     .answer_max = answer_max };

	do {
		struct foreign_place before = t->place;
		struct base_buf out = { 0 };

		t->status = read(&from, &t->place, &out);
		if (t->status < 0 && (out.len || memcmp(&t->place, &before, sizeof(before))))
			abort();
		/* It comes on. */
		if (t->status >= 0 && !t->place.at_end && t->place.off <= before.off)
			abort();
		t->nr_bad += t->status > 0 ? (uint64_t)t->status : 0;
		take(t, &out);
		base_buf_release(&out);
	} while (t->status >= 0 && !t->place.at_end);
}

static void put(const uint8_t *data, size_t from, size_t to)
{
	if (pwrite(file, data + from, to - from, (off_t)from) != (ssize_t)(to - from))
		abort();
}

static bool same(const struct announced *a, const struct announced *b)
{
	return a->records.len == b->records.len && a->nr_bad == b->nr_bad &&
	       (a->status < 0 ? a->status : 0) == (b->status < 0 ? b->status : 0) &&
	       !memcmp(&a->place, &b->place, sizeof(a->place)) &&
	       (!a->records.len || !memcmp(a->records.data, b->records.data, a->records.len));
}

int growing_check(growing_read_fn *read, const uint8_t *data, size_t len)
{
	struct announced whole = { 0 }, parts = { 0 };
	size_t cut;

	if (len < 2)
		return 0;
	if (file < 0)
		file = memfd_create("fuzz", MFD_CLOEXEC);
	cut = data[0] | (size_t)data[1] << 8;
	data += 2;
	len -= 2;
	cut = cut < len ? cut : len;
	if (ftruncate(file, 0) < 0)
		abort();
	put(data, 0, cut);
	read_on(&parts, read, 0);
	put(data, cut, len);
	if (parts.status >= 0)
		read_on(&parts, read, 0);
	read_on(&whole, read, SIZE_MAX);
	if (parts.status >= 0 && !same(&parts, &whole))
		abort();
	base_buf_release(&parts.records);
	base_buf_release(&whole.records);
	return 0;
}
