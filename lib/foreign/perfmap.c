/* SPDX-License-Identifier: BSD-2-Clause */
/* A perf map becomes registration records here, line by line. */
#include <errno.h>

#include "runtime_file.h"

enum { LINE_MAX_LEN = 64 << 10 };

/* The result for a piece of the file. */
enum { TAKEN, WAIT };

struct perfmap {
	struct runtime_file f;
	struct foreign_place place;
	struct base_buf *out;
	int nr_bad;
};

/* ---- a line ---------------------------------------------------------------------------------- */

static bool read_number(const char **p, const char *end, uint64_t *v)
{
	const char *begin = *p;

	if (end - begin > 2 && begin[0] == '0' && (begin[1] == 'x' || begin[1] == 'X'))
		begin += 2;
	*v = 0;
	for (*p = begin; *p < end && base_digit(**p) >= 0; ++*p) {
		if (*v >> 60)
			return false;
		*v = *v << 4 | (uint64_t)base_digit(**p);
	}
	return *p > begin;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* START SIZE name: one blank before the name, which may begin with more of them. */
static bool read_line(const char *p, const char *end, struct runtime_routine *rt)
{
	if (!read_number(&p, end, &rt->addr) || p == end || !is_blank(*p))
		return false;
	while (p < end && is_blank(*p))
		p++;
	if (!read_number(&p, end, &rt->code_len) || (p < end && !is_blank(*p)))
		return false;
	rt->name = p < end ? p + 1 : p;
	rt->name_len = (size_t)(end - rt->name);
	return runtime_code_is_good(rt->addr, rt->code_len);
}

static int line_take(struct perfmap *m, const char *p, const char *end)
{
	struct runtime_routine rt = { .flags = WIRE_ROUTINE_FETCHED };
	int r;

	if (end > p && end[-1] == '\r')
		end--;
	if (!read_line(p, end, &rt)) {
		m->nr_bad++;
		return TAKEN;
	}
	r = runtime_code_fetch(&m->f, rt.addr, rt.code_len, &rt.code);
	if (!rt.code)
		rt.flags = 0;
	return r < 0 ? r : runtime_routine_put(&rt, &m->place.seq, m->out);
}

/* ---- one after the other --------------------------------------------------------------------- */

/* Zeros up to the end are room that its writer has made. */
static bool is_unfinished(const struct perfmap *m, const uint8_t *at, size_t len)
{
	if (len < LINE_MAX_LEN && !m->place.in_line)
		return true;
	return !at[len - 1] && runtime_file_is_blank(&m->f, m->place.off + len - 1);
}

/* A line, or the next piece of one that is too long: in bounded memory. */
static int piece_take(struct perfmap *m)
{
	uint64_t left = m->f.size - m->place.off;
	size_t len = left < LINE_MAX_LEN ? (size_t)left : LINE_MAX_LEN;
	const uint8_t *at;
	const char *end;
	int r = len ? runtime_file_peek(&m->f, m->place.off, len, &at) : WAIT;

	if (r != TAKEN)
		return r;
	end = memchr(at, '\n', len);
	if (!end && is_unfinished(m, at, len)) {
		m->place.ahead = !at[len - 1];
		return WAIT;
	}
	if (end && !m->place.in_line)
		r = line_take(m, (const char *)at, end);
	if (r < 0)
		return r;
	m->nr_bad += !end && !m->place.in_line;
	m->place.in_line = !end;
	m->place.off += end ? (size_t)(end + 1 - (const char *)at) : len;
	return TAKEN;
}

/* Entries before a failure count: the next read meets the failure first. */
static int take_all(struct perfmap *m)
{
	uint64_t first = m->place.off;
	int r;

	m->place.at_end = m->place.ahead = false;
	do {
		size_t mark = m->out->len;

		r = piece_take(m);
		if (r < 0)
			m->out->len = mark;
	} while (r == TAKEN && !runtime_file_is_enough(&m->f, m->out));
	if (r < 0 && m->place.off == first)
		return r;
	m->place.at_end = r == WAIT;
	return 0;
}

int foreign_perfmap_read(const struct foreign_file *file, struct foreign_place *place,
			 struct base_buf *out)
{
	struct perfmap m = { .place = *place, .out = out };
	size_t mark = out->len;
	int r = runtime_file_open(&m.f, file, place);

	if (r == 0)
		r = take_all(&m);
	if (r == 0)
		r = runtime_file_end(&m.f, &m.place);
	if (r == 0)
		*place = m.place;
	else
		out->len = mark;
	runtime_file_release(&m.f);
	return r < 0 ? r : m.nr_bad;
}
