/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "job.h"

static void put(struct base_buf *job, const void *data, size_t len)
{
	if (base_buf_append(job, data, len) < 0)
		abort();
}

static void pad(struct base_buf *job)
{
	void *space;

	if (base_buf_extend(job, -job->len & 7, &space) < 0)
		abort();
}

static void end(struct base_buf *job, size_t start)
{
	uint32_t len;

	pad(job);
	len = (uint32_t)(job->len - start);
	memcpy(job->data + start, &len, sizeof(len));
}

void job_image(struct base_buf *job, const struct job_image *image)
{
	const struct wire_image rec = { .head = { .type = WIRE_IMAGE },
					.machine = image->machine,
					.pid = image->pid,
					.uid = image->uid,
					.start_time_ns = image->start_time_ns,
					.created_s = image->created_s,
					.facility_len = (uint16_t)strlen(image->facility),
					.host_len = (uint16_t)strlen(image->host),
					.exe_len = (uint16_t)strlen(image->exe) };
	size_t start = job->len;

	put(job, &rec, sizeof(rec));
	put(job, image->facility, rec.facility_len);
	put(job, image->host, rec.host_len);
	put(job, image->exe, rec.exe_len);
	end(job, start);
}

void job_run(struct base_buf *job, uint64_t vaddr, uint64_t img_off, uint64_t len)
{
	const struct wire_run rec = { .head = { .len = sizeof(rec), .type = WIRE_RUN },
				      .vaddr = vaddr,
				      .img_off = img_off,
				      .len = len };

	put(job, &rec, sizeof(rec));
}

void job_routine(struct base_buf *job, const struct job_routine *routine)
{
	struct wire_routine rec = { .head = { .type = WIRE_ROUTINE,
					      .flags = routine->code ? WIRE_ROUTINE_CODE : 0 },
				    .seq = 1 + job->len,
				    .addr = routine->addr,
				    .code_len = routine->code_len,
				    .nr_lines = (uint32_t)routine->nr_lines,
				    .nr_inlines = (uint32_t)routine->nr_inlines };
	size_t start = job->len;

	rec.name_len = (uint32_t)(routine->name_len ? routine->name_len : strlen(routine->name));
	while (routine->files && routine->files[rec.nr_files])
		rec.nr_files++;
	put(job, &rec, sizeof(rec));
	put(job, routine->name, rec.name_len);
	if (routine->code)
		put(job, routine->code, routine->code_len);
	pad(job);
	put(job, routine->lines, routine->nr_lines * sizeof(*routine->lines));
	put(job, routine->inlines, routine->nr_inlines * sizeof(*routine->inlines));
	for (uint32_t i = 0; i < rec.nr_files; i++) {
		uint16_t len = (uint16_t)strlen(routine->files[i]);

		put(job, &len, sizeof(len));
		put(job, routine->files[i], len);
	}
	end(job, start);
}

void job_bytes(struct base_buf *job, enum wire_range_kind kind, uint64_t base, uint64_t range_len,
	       const void *bytes, size_t bytes_len)
{
	job_part(job, kind, base, range_len, 0, bytes, bytes_len);
}

void job_part(struct base_buf *job, enum wire_range_kind kind, uint64_t base, uint64_t range_len,
	      uint64_t at, const void *bytes, size_t bytes_len)
{
	const struct wire_bytes rec = { .head = { .type = WIRE_BYTES },
					.kind = kind,
					.vaddr = base + at,
					.bytes_len = bytes_len,
					.range_base = base,
					.range_len = range_len };
	size_t start = job->len;

	put(job, &rec, sizeof(rec));
	put(job, bytes, bytes_len);
	end(job, start);
}

void job_replaces(struct base_buf *job, const uint8_t id[20])
{
	job_moved(job, id, NULL, 0);
}

void job_moved(struct base_buf *job, const uint8_t id[20], const struct wire_moved *moved,
	       size_t nr)
{
	struct wire_replaces rec = { .head = { .type = WIRE_REPLACES }, .nr_moved = (uint32_t)nr };
	size_t start = job->len;

	memcpy(rec.id, id, sizeof(rec.id));
	put(job, &rec, sizeof(rec));
	put(job, moved, nr * sizeof(*moved));
	end(job, start);
}

void job_place(struct base_buf *job, uint64_t vaddr, uint64_t elf, uint64_t len)
{
	const struct wire_place rec = { .head = { .len = sizeof(rec), .type = WIRE_PLACE },
					.vaddr = vaddr,
					.elf = elf,
					.len = len,
					.from_seq = 1 };

	put(job, &rec, sizeof(rec));
}

void job_instance(struct base_buf *job, uint32_t pid)
{
	const struct wire_instance rec = { .head = { .len = sizeof(rec), .type = WIRE_INSTANCE },
					   .pid = pid };

	put(job, &rec, sizeof(rec));
}
