/* SPDX-License-Identifier: BSD-2-Clause */
/* Hand-made perf records, written field by field as perf_event_open(2) lists them. */
#ifndef DCPI_TEST_PERF_BYTES_H
#define DCPI_TEST_PERF_BYTES_H

#include <linux/perf_event.h>
#include <stdint.h>
#include <string.h>

struct bytes {
	uint8_t data[4096];
	size_t len;
};

static inline void put(struct bytes *b, uint64_t v, size_t len)
{
	memcpy(b->data + b->len, &v, len);
	b->len += len;
}

static inline void put_text(struct bytes *b, const char *text)
{
	size_t len = (strlen(text) + 8) & ~(size_t)7;

	memset(b->data + b->len, 0, len);
	memcpy(b->data + b->len, text, strlen(text));
	b->len += len;
}

static inline void put_head(struct bytes *b, uint32_t type, uint16_t misc)
{
	b->len = 0;
	put(b, type, 4);
	put(b, misc, 2);
	put(b, 0, 2);
}

static inline void put_size(struct bytes *b)
{
	uint16_t size = (uint16_t)b->len;

	memcpy(b->data + 6, &size, 2);
}

/* The kernel's number of the event that puts all records into a ring. */
enum { EVENT_ID = 77 };

/* pid, tid, time, event: the end of every record but a sample; and the size into the head. */
static inline void put_trailer(struct bytes *b, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	put(b, pid, 4);
	put(b, tid, 4);
	put(b, time_ns, 8);
	put(b, EVENT_ID, 8);
	put_size(b);
}

static inline void make_sample(struct bytes *b, uint16_t misc, uint32_t pid, uint64_t ip,
			       uint64_t time_ns)
{
	put_head(b, PERF_RECORD_SAMPLE, misc);
	put(b, EVENT_ID, 8);
	put(b, ip, 8);
	put(b, pid, 4);
	put(b, pid + 1, 4);
	put(b, time_ns, 8);
	put_size(b);
}

/* Without @id: device 8:1, inode 77. */
static inline void make_mmap2(struct bytes *b, uint32_t pid, uint32_t prot, const uint8_t *id,
			      uint8_t id_len, const char *path, uint64_t time_ns)
{
	put_head(b, PERF_RECORD_MMAP2,
		 PERF_RECORD_MISC_USER | (id ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0));
	put(b, pid, 4);
	put(b, pid, 4);
	put(b, 0x400000, 8);
	put(b, 0x2000, 8);
	put(b, 0x1000, 8);
	if (id) {
		put(b, id_len, 4);
		memcpy(b->data + b->len, id, 20);
		b->len += 20;
	} else {
		put(b, 8, 4);
		put(b, 1, 4);
		put(b, 77, 8);
		put(b, 5, 8);
	}
	put(b, prot, 4);
	put(b, 2, 4);
	put_text(b, path);
	put_trailer(b, pid, pid, time_ns);
}

static inline void make_task(struct bytes *b, uint32_t type, uint32_t pid, uint32_t ppid,
			     uint32_t tid, uint64_t time_ns)
{
	put_head(b, type, 0);
	put(b, pid, 4);
	put(b, ppid, 4);
	put(b, tid, 4);
	put(b, ppid, 4);
	put(b, time_ns, 8);
	put_trailer(b, ppid, ppid, time_ns);
}

static inline void make_comm(struct bytes *b, uint16_t misc, uint32_t pid, uint32_t tid,
			     const char *name, uint64_t time_ns)
{
	put_head(b, PERF_RECORD_COMM, misc);
	put(b, pid, 4);
	put(b, tid, 4);
	put_text(b, name);
	put_trailer(b, pid, tid, time_ns);
}

static inline void make_ksymbol(struct bytes *b, uint16_t flags, const char *name, uint64_t time_ns)
{
	put_head(b, PERF_RECORD_KSYMBOL, 0);
	put(b, 0xffffffffc0001000ull, 8);
	put(b, 0x80, 4);
	put(b, PERF_RECORD_KSYMBOL_TYPE_BPF, 2);
	put(b, flags, 2);
	put_text(b, name);
	put_trailer(b, 9, 9, time_ns);
}

/* @old_len bytes 0x90 become @new_len bytes 0xcc. */
static inline void make_poke(struct bytes *b, uint16_t old_len, uint16_t new_len, uint64_t time_ns)
{
	size_t len = ((size_t)old_len + new_len + 4 + 7) / 8 * 8 - 4;

	put_head(b, PERF_RECORD_TEXT_POKE, PERF_RECORD_MISC_KERNEL);
	put(b, 0xffffffff81000001ull, 8);
	put(b, old_len, 2);
	put(b, new_len, 2);
	memset(b->data + b->len, 0, len);
	memset(b->data + b->len, 0x90, old_len);
	memset(b->data + b->len + old_len, 0xcc, new_len);
	b->len += len;
	put_trailer(b, 0, 0, time_ns);
}

static inline void make_numbers(struct bytes *b, uint32_t type, uint64_t first, uint64_t second,
				size_t nr, uint64_t time_ns)
{
	put_head(b, type, 0);
	if (nr > 0)
		put(b, first, 8);
	if (nr > 1)
		put(b, second, 8);
	put_trailer(b, 1, 1, time_ns);
}

#endif
