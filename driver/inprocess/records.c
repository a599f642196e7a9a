/* SPDX-License-Identifier: BSD-2-Clause */
/* Parser of the agent's records. Every word of them may be wrong. */
#include <errno.h>
#include <string.h>

#include "inprocess_source.h"

enum { UNIT = sizeof(struct inprocess_unit) };

int inprocess_head_parse(const void *bytes, size_t len, uint64_t file_len,
			 struct inprocess_head *out)
{
	if (len < sizeof(*out))
		return -EAGAIN;
	memmove(out, bytes, sizeof(*out));
	if (!out->magic)
		return -EAGAIN;
	if (out->magic != INPROCESS_MAGIC || out->version != INPROCESS_VERSION)
		return -DCPI_EFORMAT;
	if (out->nr_units < INPROCESS_UNITS_MIN || out->nr_units > INPROCESS_UNITS_MAX ||
	    out->nr_units & (out->nr_units - 1) ||
	    file_len != INPROCESS_HEAD_LEN + (uint64_t)out->nr_units * UNIT)
		return -DCPI_EFORMAT;
	if (out->pid <= 0 || (out->born != INPROCESS_EXEC && out->born != INPROCESS_FORK))
		return -DCPI_EFORMAT;
	out->comm[sizeof(out->comm) - 1] = '\0';
	return 0;
}

static const uint8_t *unit_at(const struct inprocess_span *span, uint64_t pos)
{
	return span->bytes + (pos - span->from) * UNIT;
}

static bool is_written(const struct inprocess_span *span, uint64_t pos)
{
	uint64_t seq;

	memcpy(&seq, unit_at(span, pos), sizeof(seq));
	return seq == pos + 1;
}

static int parse_sample(const struct inprocess_unit *u, struct inprocess_record *out)
{
	if (u->nr != 1)
		return -DCPI_EFORMAT;
	out->count = (struct driver_count){
		.first_ns = u->time_ns,
		.time_ns = u->time_ns,
		.tid = (int32_t)u->tid,
		.mode = DRIVER_USER,
		.addr = u->addr,
		.count = 1,
	};
	return 1;
}

static int parse_map(const struct inprocess_unit *u, const uint8_t *rest, size_t len,
		     struct inprocess_record *out)
{
	struct inprocess_map m;
	uint64_t end;

	if (len < sizeof(m))
		return -DCPI_EFORMAT;
	memcpy(&m, rest, sizeof(m));
	if (m.path_len > INPROCESS_PATH_MAX || m.path_len > len - sizeof(m) || !m.len ||
	    base_add_overflow(u->addr, m.len, &end) || m.id_len > sizeof(out->load.id.bytes))
		return -DCPI_EFORMAT;
	memcpy(out->path, rest + sizeof(m), m.path_len);
	out->path[m.path_len] = '\0';
	if (!m.path_len || strlen(out->path) != m.path_len)
		return -DCPI_EFORMAT;
	out->load = (struct driver_load){
		.kind = DRIVER_LOAD_MMAP,
		.time_ns = u->time_ns,
		.tid = (int32_t)u->tid,
		.addr = u->addr,
		.len = m.len,
		.file_off = m.file_off,
		.prot = m.prot,
		.dev_major = m.dev_major,
		.dev_minor = m.dev_minor,
		.inode = m.inode,
		.id.len = m.id_len,
		.path = out->path,
	};
	memcpy(out->load.id.bytes, m.id, m.id_len);
	return 1;
}

int inprocess_record_next(const struct inprocess_span *span, uint64_t *pos,
			  struct inprocess_record *out)
{
	struct inprocess_unit u;
	const uint8_t *at;

	if (*pos >= span->to)
		return 0;
	if (!is_written(span, *pos))
		return -EAGAIN;
	at = unit_at(span, *pos);
	memcpy(&u, at, sizeof(u));
	out->type = (enum inprocess_type)u.type;
	if (!u.nr || u.nr > span->to - *pos) {
		++*pos;
		return -DCPI_EFORMAT;
	}
	*pos += u.nr;
	out->time_ns = u.time_ns;
	if (u.type == INPROCESS_SAMPLE)
		return parse_sample(&u, out);
	if (u.type == INPROCESS_MAP)
		return parse_map(&u, at + UNIT, (size_t)(u.nr - 1) * UNIT, out);
	return -DCPI_EFORMAT;
}

void inprocess_record_skip(const struct inprocess_span *span, uint64_t *pos)
{
	while (*pos < span->to && !is_written(span, *pos))
		++*pos;
}
