/* SPDX-License-Identifier: BSD-2-Clause */
/* Jobs for tests, record by record, into a growable buffer. Each asserts that memory suffices. */
#ifndef DCPI_TEST_JOB_H
#define DCPI_TEST_JOB_H

#include "base.h"
#include "wire.h"

struct job_image {
	uint32_t machine;
	const char *facility, *host, *exe;
	uint32_t pid, uid;
	uint64_t start_time_ns, created_s;
};

struct job_routine {
	uint64_t addr;
	const char *name;
	size_t name_len;     /* 0: up to its NUL */
	const uint8_t *code; /* NULL: not in the record */
	size_t code_len;
	const struct wire_line *lines;
	size_t nr_lines;
	const struct wire_inline *inlines;
	size_t nr_inlines;
	const char *const *files; /* NULL-terminated, or NULL */
};

void job_image(struct base_buf *job, const struct job_image *image);
void job_run(struct base_buf *job, uint64_t vaddr, uint64_t img_off, uint64_t len);
void job_routine(struct base_buf *job, const struct job_routine *routine);
/* All of a range, from its base on. */
void job_bytes(struct base_buf *job, enum wire_range_kind kind, uint64_t base, uint64_t range_len,
	       const void *bytes, size_t bytes_len);
void job_part(struct base_buf *job, enum wire_range_kind kind, uint64_t base, uint64_t range_len,
	      uint64_t at, const void *bytes, size_t bytes_len);
void job_replaces(struct base_buf *job, const uint8_t id[20]);
void job_moved(struct base_buf *job, const uint8_t id[20], const struct wire_moved *moved,
	       size_t nr);
void job_place(struct base_buf *job, uint64_t vaddr, uint64_t elf, uint64_t len);
void job_instance(struct base_buf *job, uint32_t pid);

#endif
