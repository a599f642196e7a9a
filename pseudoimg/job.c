/* SPDX-License-Identifier: BSD-2-Clause */
/* A job's records, from memory or from a file that is never in memory as a whole. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pseudoimg_internal.h"

enum { STEP_LEAST = 4 << 10, STEP_MOST = 256 << 10 };

int pseudoimg_job_of_file(struct pseudoimg_job *j, int fd)
{
	off_t len = lseek(fd, 0, SEEK_END);

	if (len < 0)
		return -errno;
	*j = (struct pseudoimg_job){ .fd = fd, .len = (uint64_t)len };
	return 0;
}

void pseudoimg_job_release(struct pseudoimg_job *j)
{
	free(j->trace);
	memset(j, 0, sizeof(*j));
}

int pseudoimg_job_read(struct pseudoimg_job *j, uint64_t off, void *out, size_t len)
{
	if (off > j->len || len > j->len - off)
		return -DCPI_ETRUNCATED;
	if (!len)
		return 0;
	if (j->data) {
		memcpy(out, j->data + off, len);
		return 0;
	}
	return base_read_at(j->fd, j->start + off, out, len);
}

/* Large steps for who goes on where the trace ends, small ones for who jumps about. */
static size_t next_step(struct pseudoimg_job *j, uint64_t off)
{
	bool ahead = off >= j->trace_off && off - j->trace_off <= j->trace_len + STEP_MOST;

	j->step = !ahead || !j->step ? STEP_LEAST : j->step * 2;
	if (j->step > STEP_MOST)
		j->step = STEP_MOST;
	return j->step;
}

/* A trace that a long record needed is not kept for the short ones behind it. */
static int make_space(struct pseudoimg_job *j, size_t len)
{
	if (j->trace && len <= j->trace_cap && j->trace_cap <= 2 * STEP_MOST)
		return 0;
	free(j->trace);
	j->trace_len = 0;
	j->trace_cap = len > STEP_MOST ? len : STEP_MOST;
	j->trace = malloc(j->trace_cap);
	if (!j->trace)
		j->trace_cap = 0;
	return j->trace ? 0 : -ENOMEM;
}

/* @len bytes at @off, which the job has, until the next call. */
static int load(struct pseudoimg_job *j, uint64_t off, size_t len, const uint8_t **out)
{
	size_t want;
	int r;

	if (j->data) {
		*out = j->data + off;
		return 0;
	}
	if (off < j->trace_off || off - j->trace_off > j->trace_len ||
	    len > j->trace_len - (off - j->trace_off)) {
		want = next_step(j, off);
		if (want < len)
			want = len;
		if (want > j->len - off)
			want = (size_t)(j->len - off);
		r = make_space(j, want);
		if (r >= 0)
			r = pseudoimg_job_read(j, off, j->trace, want);
		j->trace_off = off;
		j->trace_len = r < 0 ? 0 : want;
		if (r < 0)
			return r;
	}
	*out = j->trace + (off - j->trace_off);
	return 0;
}

/* How much of a record is looked at; contents of ranges are read in parts, unknown ones not. */
static size_t wanted(const struct wire_head *h)
{
	switch (h->type) {
	case WIRE_IMAGE:
	case WIRE_RUN:
	case WIRE_ROUTINE:
	case WIRE_REPLACES:
	case WIRE_PLACE:
	case WIRE_INSTANCE:
		return h->len;
	case WIRE_BYTES:
		return h->len < sizeof(struct wire_bytes) ? h->len : sizeof(struct wire_bytes);
	default:
		return sizeof(*h);
	}
}

int pseudoimg_job_at(struct pseudoimg_job *j, uint64_t off, const struct wire_head **rec)
{
	struct wire_head h;
	const uint8_t *p;
	int r;

	if (off % 8 || off > j->len || j->len - off < sizeof(h))
		return -DCPI_EFORMAT;
	r = load(j, off, sizeof(h), &p);
	if (r < 0)
		return r;
	memcpy(&h, p, sizeof(h));
	if (h.len < sizeof(h) || h.len % 8 || h.len > WIRE_RECORD_MAX || h.len > j->len - off)
		return -DCPI_EFORMAT;
	r = load(j, off, wanted(&h), &p);
	*rec = (const void *)p;
	return r;
}

int pseudoimg_job_next(struct pseudoimg_job *j, uint64_t *pos, const struct wire_head **rec)
{
	int r;

	if (*pos == j->len)
		return 0;
	r = pseudoimg_job_at(j, *pos, rec);
	if (r < 0)
		return r;
	*pos += (*rec)->len;
	return 1;
}

bool pseudoimg_machine_known(uint32_t machine)
{
	/* Functions that an interpreter runs are code of no machine. */
	return machine == EM_X86_64 || machine == EM_AARCH64 || machine == EM_RISCV ||
	       machine == EM_NONE;
}
