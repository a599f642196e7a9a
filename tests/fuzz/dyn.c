/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What dcpid makes of the records that its reader (or a recorded stream) hands on: their lengths
 * are good, all else in them is what a hostile client wrote. The input is steps, each begun by one
 * byte: a record, a reading of those since the last, a sample, a fork, an end, a job for an image.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "jit_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { NR_PROCESSES = 3, NR_STEPS = 1024, OWN_NUMBER = 0x80 };

static struct trial {
	struct dyn *dyn;
	struct images *images;
	struct process p[NR_PROCESSES];
	struct base_buf records;
	uint64_t now_ns, seq;
	const uint8_t *at; /* of the input */
	size_t left;
} t;

/* Little-endian; zeros where the input ends. */
static uint64_t number(size_t len)
{
	uint64_t v = 0;

	for (size_t i = 0; i < len && t.left; i++, t.left--)
		v |= (uint64_t)*t.at++ << (8 * i);
	return v;
}

/* Most that numbers themselves are changes; else few would come behind another. */
static void take_record(bool own_number)
{
	uint16_t type = (uint16_t)number(1), flags = (uint16_t)number(1);
	size_t body = 8 * (size_t)number(1), n = t.left < body ? t.left : body;
	struct wire_head *h;
	void *space;

	if (base_buf_extend(&t.records, sizeof(*h) + body, &space) < 0)
		abort();
	h = space;
	*h = (struct wire_head){ .len = (uint32_t)(sizeof(*h) + body),
				 .type = type,
				 .flags = flags };
	memcpy(h + 1, t.at, n);
	t.at += n;
	t.left -= n;
	t.seq++;
	if (!own_number && h->len >= sizeof(struct wire_retire) &&
	    (type == WIRE_ROUTINE || type == WIRE_RETIRE || type == WIRE_MOVE ||
	     type == WIRE_OBJECT))
		((struct wire_retire *)h)->seq = t.seq;
}

static void read_records(struct process *p)
{
	t.now_ns += number(1);
	if (dyn_records(t.dyn, p, t.now_ns, t.records.data, t.records.len) < 0)
		abort();
	base_buf_clear(&t.records);
}

static void look_up(struct process *p)
{
	struct dyn_query q = { .count = 1, .addr = number(8), .time_ns = t.now_ns };
	uint64_t age = number(1), flags = number(1), off;
	struct image *img = NULL;
	enum dyn_where where;

	q.first_ns = age < t.now_ns ? t.now_ns - age : 0;
	q.last = flags & 1;
	q.dynamic = flags & 2;
	q.generation_read = flags & 4;
	q.generation_unread = flags & 8;
	q.generation = flags & 4 ? (uint32_t)number(1) : 0;
	where = dyn_lookup(t.dyn, p, &q, &img, &off);
	if ((where == DYN_FOUND && !img) || (where == DYN_LATER && q.last))
		abort();
	dyn_claims(p, q.addr);
}

static void check_job(const uint8_t *job, size_t len)
{
	const struct wire_head *h;
	size_t pos = 0;

	while ((h = wire_next(job, len, &pos)))
		if (wire_check(h) < 0)
			abort();
	if (pos != len)
		abort();
}

/* The helper would refuse one that is not well-formed, and the image with it. */
static void make_jobs(const struct process *p, bool full)
{
	for (size_t i = 0; p->dyn && p->dyn->own && i < WIRE_NR_FACILITIES; i++) {
		struct dyn_facility *f = p->dyn->own->facilities[i];
		int fd = f ? memfd_create("job", MFD_CLOEXEC) : -1;
		off_t len;
		void *job;

		if (!f)
			continue;
		if (fd < 0 || dyn_facility_job(f, full, fd) < 0)
			abort();
		len = lseek(fd, 0, SEEK_END);
		job = mmap(NULL, (size_t)len, PROT_READ, MAP_PRIVATE, fd, 0);
		if (job == MAP_FAILED)
			abort();
		check_job(job, (size_t)len);
		munmap(job, (size_t)len);
		close(fd);
		dyn_facility_written(f, full);
	}
}

static void branch(struct process *p, struct process *other)
{
	uint64_t cursor = number(1);

	if (p == other)
		dyn_settled(t.dyn, t.now_ns);
	else if (!other->dyn && cursor & 1)
		dyn_hand_on(p, other);
	else
		dyn_fork(t.dyn, p, other, t.now_ns, cursor & 2 ? &cursor : NULL);
}

static void step(void)
{
	uint8_t what = (uint8_t)number(1);
	struct process *p = &t.p[(what >> 3) % NR_PROCESSES];
	struct process *other = &t.p[(what >> 5) % NR_PROCESSES];

	switch (what & 7) {
	case 3:
		read_records(p);
		break;
	case 4:
		look_up(p);
		break;
	case 5:
		branch(p, other);
		break;
	case 6:
		make_jobs(p, what & OWN_NUMBER);
		break;
	case 7:
		dyn_end(t.dyn, p);
		break;
	default:
		take_record(what & OWN_NUMBER);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct dyn_config config = { .host = "host" };
	uint64_t how;

	t = (struct trial){ .images = images_new(), .now_ns = 1000, .at = data, .left = len };
	how = number(1);
	config.images = t.images;
	config.keep_all = how & 1;
	config.process_quota = how & 2 ? 4096 : 0;
	if (!t.images || dyn_open(&config, &t.dyn, NULL) < 0)
		abort();
	for (int i = 0; i < NR_PROCESSES; i++)
		t.p[i] = (struct process){ .pid = i + 2, .comm = "prog", .start_time_ns = 5 };
	for (int i = 0; i < NR_STEPS && t.left; i++)
		step();
	read_records(&t.p[0]);
	make_jobs(&t.p[0], false);
	for (int i = 0; i < NR_PROCESSES; i++)
		dyn_end(t.dyn, &t.p[i]);
	dyn_close(t.dyn);
	images_free(t.images);
	base_buf_release(&t.records);
	return 0;
}
