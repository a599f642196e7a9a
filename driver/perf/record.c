/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of a perf ring, by the layouts of perf_event_open(2). */
#include <string.h>
#include <sys/mman.h>

#include "perf.h"

/* The fields at the end of every record that is no sample (sample_id_all with PERF_SAMPLES). */
struct trailer {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint64_t id;
};

struct sample {
	uint64_t id;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time_ns;
};

struct mmap2 {
	uint32_t pid, tid;
	uint64_t addr, len, page_off;
	union {
		struct {
			uint32_t major, minor;
			uint64_t inode, inode_generation;
		} dev;
		struct {
			uint8_t len, reserved[3];
			uint8_t bytes[20];
		} id;
	};
	uint32_t prot, flags;
};

struct task {
	uint32_t pid, ppid, tid, ptid;
	uint64_t time_ns;
};

struct comm {
	uint32_t pid, tid;
};

struct ksymbol {
	uint64_t addr;
	uint32_t len;
	uint16_t type, flags;
};

struct lost {
	uint64_t id, nr;
};

bool perf_take(struct perf_bytes *b, void *to, size_t len)
{
	if (b->len < len)
		return false;
	memcpy(to, b->at, len);
	return perf_skip(b, len);
}

bool perf_skip(struct perf_bytes *b, size_t len)
{
	if (b->len < len)
		return false;
	b->at += len;
	b->len -= len;
	return true;
}

/* The rest of the body as a string, which the kernel pads with NULs. */
static bool take_text(struct perf_bytes *b, const char **out)
{
	*out = (const char *)b->at;
	return memchr(b->at, 0, b->len);
}

static bool parse_sample(struct perf_bytes *b, uint16_t misc, struct perf_record *out)
{
	struct sample s;

	out->what = PERF_SAMPLE;
	if (!perf_take(b, &s, sizeof(s)))
		return false;
	/* The kernel says 0 for the idle task, and for tasks that our PID namespace does not show;
	 * the idle task never runs in user mode. */
	if (!s.pid && perf_mode_of(misc) == DRIVER_USER)
		s.pid = s.tid = (uint32_t)-1;
	out->time_ns = s.time_ns;
	out->id = s.id;
	out->misc = misc;
	out->rest = *b;
	out->count = (struct driver_count){
		.first_ns = s.time_ns,
		.time_ns = s.time_ns,
		.pid = (int32_t)s.pid,
		.tid = (int32_t)s.tid,
		.mode = perf_mode_of(misc),
		.addr = s.ip,
		.count = 1,
	};
	return true;
}

static bool parse_mmap2(struct perf_bytes *b, uint16_t misc, struct perf_record *out)
{
	struct driver_load *l = &out->load;
	struct mmap2 m;

	out->what = PERF_LOAD;
	if (!perf_take(b, &m, sizeof(m)) || !take_text(b, &l->path))
		return false;
	if (!(m.prot & PROT_EXEC))
		out->what = PERF_SKIP;
	l->kind = DRIVER_LOAD_MMAP;
	l->pid = (int32_t)m.pid;
	l->tid = (int32_t)m.tid;
	l->addr = m.addr;
	l->len = m.len;
	l->file_off = m.page_off;
	l->prot = m.prot;
	if (!(misc & PERF_RECORD_MISC_MMAP_BUILD_ID)) {
		l->dev_major = m.dev.major;
		l->dev_minor = m.dev.minor;
		l->inode = m.dev.inode;
		return true;
	}
	if (m.id.len > sizeof(m.id.bytes))
		return false;
	l->id.len = m.id.len;
	memcpy(l->id.bytes, m.id.bytes, m.id.len);
	return true;
}

static bool parse_task(struct perf_bytes *b, enum driver_load_kind kind, struct perf_record *out)
{
	struct driver_load *l = &out->load;
	struct task t;

	out->what = PERF_LOAD;
	if (!perf_take(b, &t, sizeof(t)))
		return false;
	l->kind = kind;
	l->pid = (int32_t)t.pid;
	l->tid = (int32_t)t.tid;
	l->ppid = (int32_t)t.ppid;
	l->ptid = (int32_t)t.ptid;
	return true;
}

static bool parse_comm(struct perf_bytes *b, uint16_t misc, struct perf_record *out)
{
	struct driver_load *l = &out->load;
	struct comm c;

	out->what = PERF_LOAD;
	if (!perf_take(b, &c, sizeof(c)) || !take_text(b, &l->path))
		return false;
	l->kind = misc & PERF_RECORD_MISC_COMM_EXEC ? DRIVER_LOAD_EXEC : DRIVER_LOAD_COMM;
	l->pid = (int32_t)c.pid;
	l->tid = (int32_t)c.tid;
	return true;
}

static bool parse_ksymbol(struct perf_bytes *b, struct perf_record *out)
{
	struct driver_load *l = &out->load;
	struct ksymbol k;

	out->what = PERF_LOAD;
	if (!perf_take(b, &k, sizeof(k)) || !take_text(b, &l->path))
		return false;
	l->kind = DRIVER_LOAD_KSYMBOL;
	l->addr = k.addr;
	l->len = k.len;
	l->flags = k.flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER ? DRIVER_LOAD_GONE : 0;
	return true;
}

/* Behind the head the old bytes, then the new ones. */
static bool parse_poke(struct perf_bytes *b, struct perf_record *out)
{
	struct driver_load *l = &out->load;
	uint16_t lens[2]; /* lengths of old and new */

	out->what = PERF_LOAD;
	if (!perf_take(b, &l->addr, sizeof(l->addr)) || !perf_take(b, lens, sizeof(lens)) ||
	    b->len < (size_t)lens[0] + lens[1])
		return false;
	l->kind = DRIVER_LOAD_POKE;
	l->len = lens[1];
	l->data = b->at + lens[0];
	l->data_len = lens[1];
	return true;
}

static bool parse_lost(struct perf_bytes *b, struct perf_record *out)
{
	struct lost l;

	out->what = PERF_LOST;
	if (!perf_take(b, &l, sizeof(l)))
		return false;
	out->nr = l.nr;
	return true;
}

static bool parse_unsent(struct perf_bytes *b, struct perf_record *out)
{
	out->what = PERF_UNSENT;
	return perf_take(b, &out->nr, sizeof(out->nr));
}

/* @b: the record between head and trailer. */
static bool parse_other(uint32_t type, uint16_t misc, struct perf_bytes *b, struct perf_record *out)
{
	switch (type) {
	case PERF_RECORD_MMAP2:
		return parse_mmap2(b, misc, out);
	case PERF_RECORD_COMM:
		return parse_comm(b, misc, out);
	case PERF_RECORD_FORK:
		return parse_task(b, DRIVER_LOAD_FORK, out);
	case PERF_RECORD_EXIT:
		return parse_task(b, DRIVER_LOAD_EXIT, out);
	case PERF_RECORD_KSYMBOL:
		return parse_ksymbol(b, out);
	case PERF_RECORD_TEXT_POKE:
		return parse_poke(b, out);
	case PERF_RECORD_LOST:
		return parse_lost(b, out);
	case PERF_RECORD_LOST_SAMPLES:
		return parse_unsent(b, out);
	case PERF_RECORD_THROTTLE:
		out->what = PERF_THROTTLED;
		return true;
	default:
		return true;
	}
}

bool perf_record_parse_body(uint32_t type, uint16_t misc, const uint8_t *body, size_t len,
			    struct perf_record *out)
{
	struct perf_bytes b = { body, len };

	return parse_other(type, misc, &b, out);
}

static bool is_of_process(enum driver_load_kind kind)
{
	return kind != DRIVER_LOAD_KSYMBOL && kind != DRIVER_LOAD_POKE;
}

int perf_record_parse(const uint8_t *rec, size_t len, struct perf_record *out)
{
	struct perf_bytes b = { rec, len };
	struct perf_event_header h;
	struct trailer t;

	*out = (struct perf_record){ .what = PERF_SKIP };
	if (!perf_take(&b, &h, sizeof(h)))
		return -DCPI_EFORMAT;
	if (h.type == PERF_RECORD_SAMPLE)
		return parse_sample(&b, h.misc, out) ? 0 : -DCPI_EFORMAT;
	if (b.len < sizeof(t)) {
		b.len = 0;
		parse_other(h.type, h.misc, &b, out);
		return -DCPI_EFORMAT;
	}
	b.len -= sizeof(t);
	memcpy(&t, b.at + b.len, sizeof(t));
	if (!parse_other(h.type, h.misc, &b, out))
		return -DCPI_EFORMAT;
	/* A process that is dead already, or not in our PID namespace: nobody to tell it of. */
	if (out->what == PERF_LOAD && is_of_process(out->load.kind) && out->load.pid <= 0)
		out->what = PERF_SKIP;
	out->time_ns = t.time_ns;
	out->id = t.id;
	out->load.time_ns = t.time_ns;
	return 0;
}
