/* SPDX-License-Identifier: BSD-2-Clause */
#include "dbgdyn_internal.h"

static bool lines_good(const struct dbgdyn_routine *r)
{
	if ((r->nr_lines && !r->lines) || r->nr_lines > WIRE_RECORD_MAX / sizeof(struct wire_line))
		return false;
	for (size_t i = 0; i < r->nr_lines; i++) {
		const struct dbgdyn_line *l = &r->lines[i];

		if (l->code_off >= r->code_len || (i && l->code_off < l[-1].code_off))
			return false;
		if (l->line && l->file >= r->nr_files)
			return false;
	}
	return true;
}

/* Bytes of the file names in the record; false where one is too long. */
static bool files_measure(const struct dbgdyn_routine *r, size_t *len)
{
	*len = 0;
	if ((r->nr_files && !r->files) || r->nr_files > WIRE_RECORD_MAX / 2)
		return false;
	for (size_t i = 0; i < r->nr_files; i++) {
		if (r->files[i].len > DBGDYN_FILE_MAX || (r->files[i].len && !r->files[i].text))
			return false;
		*len += 2 + r->files[i].len;
		if (*len > WIRE_RECORD_MAX)
			return false;
	}
	return true;
}

static bool routine_good(const struct dbgdyn_routine *r, size_t *files_len)
{
	return r && r->size >= sizeof(*r) && r->name.text && r->name.len &&
	       dbgdyn_range_good(r->code, r->code_len) && r->code_len <= DBGDYN_CODE_MAX &&
	       files_measure(r, files_len) && lines_good(r);
}

static uint8_t *pad8(uint8_t *p)
{
	while ((uintptr_t)p % 8)
		*p++ = 0;
	return p;
}

static uint8_t *put_lines(uint8_t *p, const struct dbgdyn_routine *r)
{
	for (size_t i = 0; i < r->nr_lines; i++) {
		struct wire_line l = { .code_off = r->lines[i].code_off,
				       .line = r->lines[i].line,
				       .file = r->lines[i].file };

		memcpy(p, &l, sizeof(l));
		p += sizeof(l);
	}
	return p;
}

static uint8_t *put_files(uint8_t *p, const struct dbgdyn_routine *r)
{
	for (size_t i = 0; i < r->nr_files; i++) {
		uint16_t len = (uint16_t)r->files[i].len;

		memcpy(p, &len, sizeof(len));
		p += sizeof(len);
		if (len)
			memcpy(p, r->files[i].text, len);
		p += len;
	}
	return p;
}

static void put(struct wire_routine *rec, size_t len, const struct dbgdyn_routine *r,
		size_t name_len, bool with_code)
{
	uint8_t *p = (uint8_t *)(rec + 1);

	rec->head = (struct wire_head){ .len = (uint32_t)len,
					.type = WIRE_ROUTINE,
					.flags = with_code ? WIRE_ROUTINE_CODE : 0 };
	rec->generation = 0;
	rec->addr = (uintptr_t)r->code;
	rec->code_len = r->code_len;
	rec->name_len = (uint32_t)name_len;
	rec->nr_lines = (uint32_t)r->nr_lines;
	rec->nr_files = (uint32_t)r->nr_files;
	rec->reserved = 0;
	memcpy(p, r->name.text, name_len);
	p += name_len;
	if (with_code) {
		memcpy(p, r->code, r->code_len);
		p += r->code_len;
	}
	pad8(put_files(put_lines(pad8(p), r), r));
}

/* Who has the descriptor can read the code after this process is gone; else nobody needs a copy. */
static bool wants_code(struct dbgdyn_state *s)
{
	if (!dbgdyn_attached(s))
		return __atomic_load_n(&s->handed, __ATOMIC_RELAXED);
	if (__atomic_load_n(&s->handed, __ATOMIC_RELAXED))
		__atomic_store_n(&s->handed, 0, __ATOMIC_RELAXED);
	return true;
}

/* With the code where it is wanted and fits, else without: its bytes can be read later. */
static struct wire_routine *reserve(struct dbgdyn_state *s, const struct dbgdyn_routine *r,
				    size_t name_len, size_t files_len, bool *with_code, size_t *len)
{
	struct wire_routine *rec = NULL;

	if (*with_code) {
		*len = wire_routine_len(name_len, r->code_len, true, r->nr_lines, files_len);
		rec = dbgdyn_ring_reserve(s, *len);
	}
	if (rec)
		return rec;
	*with_code = false;
	*len = wire_routine_len(name_len, r->code_len, false, r->nr_lines, files_len);
	return dbgdyn_ring_reserve(s, *len);
}

static int dropped(struct dbgdyn_state *s)
{
	__atomic_fetch_add(&s->reg->nr_dropped, 1, __ATOMIC_RELAXED);
	return DBGDYN_EFULL;
}

int dbgdyn_routine_put(struct dbgdyn_state *s, uint32_t facility, const struct dbgdyn_routine *r,
		       uint64_t *handle)
{
	struct wire_routine *rec;
	size_t files_len, name_len, len;
	bool with_code, half;

	if (!routine_good(r, &files_len))
		return DBGDYN_EINVAL;
	name_len = r->name.len < WIRE_NAME_MAX ? r->name.len : WIRE_NAME_MAX;
	if (!wire_routine_len(name_len, r->code_len, false, r->nr_lines, files_len))
		return DBGDYN_EINVAL;
	with_code = wants_code(s);
	if (!dbgdyn_lock(s))
		return dropped(s);
	if (!s->open[facility]) { /* ended meanwhile */
		dbgdyn_unlock(s);
		return DBGDYN_EREFUSED;
	}
	rec = reserve(s, r, name_len, files_len, &with_code, &len);
	if (!rec) {
		dbgdyn_ring_turn(s, len);
		dbgdyn_unlock(s);
		return dropped(s);
	}
	put(rec, len, r, name_len, with_code);
	rec->facility = facility;
	rec->handle = ++s->next_handle;
	if (handle)
		*handle = rec->handle;
	half = dbgdyn_ring_commit(s, len);
	dbgdyn_unlock(s);
	return half;
}
