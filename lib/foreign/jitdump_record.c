/* SPDX-License-Identifier: BSD-2-Clause */
/* One record of a jitdump file becomes registration records here. */
#include <errno.h>

#include "jitdump_internal.h"

/* A name that is longer is a lie. */
enum { NAME_LOOKED = 1 << 20 };

int jitdump_copy(struct jitdump *d, uint64_t off, void *to, size_t len)
{
	const uint8_t *at;
	int r = runtime_file_peek(&d->f, off, len, &at);

	if (r == 0)
		memcpy(to, at, len);
	return r;
}

/* Where the rest of the file is zeros its writer has only made room for it so far. */
static int bad(struct jitdump *d, const struct jitdump_record *rec)
{
	if (runtime_file_is_blank(&d->f, rec->off + sizeof(rec->head)))
		return JITDUMP_FULL;
	d->nr_bad++;
	return JITDUMP_TAKEN;
}

static int put_time(struct jitdump *d, const struct jitdump_record *rec)
{
	uint64_t time_ns = d->header.flags & JITDUMP_ARCH_TIME ? 0 : rec->head.timestamp;
	struct wire_time time = { .head = { .len = sizeof(time), .type = WIRE_TIME },
				  .time_ns = time_ns };

	if (d->has_time && d->time_ns == time_ns)
		return 0;
	d->has_time = true;
	d->time_ns = time_ns;
	return base_buf_append(d->out, &time, sizeof(time));
}

/*
 * Copy the name, cut where it is too long; it ends before the code begins. *@len: what it takes in
 * the file, with its NUL; 0: it does not end.
 */
static int name_read(struct jitdump *d, const struct jitdump_record *rec, struct jitdump_code *code,
		     size_t *len)
{
	size_t space = (size_t)(rec->head.total_size - sizeof(struct jitdump_load) - code->len);
	const uint8_t *at, *end;
	int r;

	space = space < NAME_LOOKED ? space : NAME_LOOKED;
	r = runtime_file_peek(&d->f, rec->off + sizeof(struct jitdump_load), space, &at);
	end = r == 0 ? memchr(at, 0, space) : NULL;
	*len = end ? (size_t)(end + 1 - at) : 0;
	if (!end)
		return r;
	code->name = d->name;
	code->name_len = *len - 1 < sizeof(d->name) ? *len - 1 : sizeof(d->name);
	memcpy(d->name, at, code->name_len);
	return 0;
}

static int routine_put(struct jitdump *d, const struct jitdump_record *rec,
		       const struct jitdump_code *code, uint64_t code_off)
{
	struct runtime_routine rt = { .addr = code->addr,
				      .code_len = code->len,
				      .name = code->name,
				      .name_len = code->name_len,
				      .lines = &d->lines.lines,
				      .files = &d->lines.files,
				      .nr_files = d->lines.nr_files,
				      .frames = &d->frames };
	int r = runtime_code_copy(&d->f, code_off, code->len, &rt.code);

	if (r == 0)
		r = put_time(d, rec);
	return r < 0 ? r : runtime_routine_put(&rt, &d->place.seq, d->out);
}

/* The unwinding record right before this one, if there is one. */
static struct jitdump_lines_at frames_at(struct jitdump *d, const struct jitdump_record *rec)
{
	struct jitdump_lines_at at =
		jitdump_pending_find(&d->pending, JITDUMP_PENDING_FRAMES, rec->off);

	return at.len && at.off + at.len == rec->off ? at : (struct jitdump_lines_at){ 0 };
}

static int load_put(struct jitdump *d, const struct jitdump_record *rec,
		    const struct jitdump_load *load)
{
	struct jitdump_code code = { .addr = load->code_addr, .len = load->code_size };
	struct jitdump_lines_at at = jitdump_pending_find(&d->pending, code.addr, rec->off);
	struct jitdump_lines_at frames = frames_at(d, rec);
	size_t name_len;
	int r = name_read(d, rec, &code, &name_len), bad_lines;

	if (r < 0)
		return r;
	if (!name_len)
		return bad(d, rec);
	bad_lines = jitdump_lines_read(&d->f, &at, &code, &d->place.lines, &d->lines);
	if (bad_lines < 0)
		return bad_lines;
	r = jitdump_frames_read(d, &frames, &code);
	if (r < 0)
		return r;
	r = routine_put(d, rec, &code, rec->off + sizeof(*load) + name_len);
	d->nr_bad += r == 0 && bad_lines;
	return r < 0 ? r : JITDUMP_TAKEN;
}

static int load_judge(struct jitdump *d, const struct jitdump_record *rec,
		      const struct jitdump_load *load)
{
	if (!runtime_code_is_good(load->code_addr, load->code_size) ||
	    load->code_size >= rec->head.total_size - sizeof(*load))
		return bad(d, rec);
	if (load->pid != d->header.pid) {
		d->place.nr_others++;
		return JITDUMP_TAKEN;
	}
	return load_put(d, rec, load);
}

/* Lines and frames belong to this record alone, whatever happens to it. */
static void forget_pending(struct jitdump *d, const struct jitdump_load *load)
{
	jitdump_pending_remove(&d->pending, load->code_addr);
	jitdump_pending_remove(&d->pending, JITDUMP_PENDING_FRAMES);
}

static int load_take(struct jitdump *d, const struct jitdump_record *rec)
{
	struct jitdump_load load;
	int r;

	if (rec->head.total_size < sizeof(load))
		return bad(d, rec);
	r = jitdump_copy(d, rec->off, &load, sizeof(load));
	if (r == 0)
		r = load_judge(d, rec, &load);
	if (r == JITDUMP_TAKEN)
		forget_pending(d, &load);
	return r;
}

static int move_put(struct jitdump *d, const struct jitdump_record *rec,
		    const struct jitdump_move *move)
{
	struct wire_move m = { .head = { .type = WIRE_MOVE },
			       .from = move->old_code_addr,
			       .to = move->new_code_addr,
			       .code_len = move->code_size };
	const uint8_t *code;
	size_t len = sizeof(m);
	struct wire_move *to;
	int r = runtime_code_fetch(&d->f, m.to, m.code_len, &code);

	if (r == 0)
		r = put_time(d, rec);
	if (code) {
		m.head.flags = WIRE_ROUTINE_CODE | WIRE_ROUTINE_FETCHED;
		len = base_align_up(len + m.code_len, 8);
	}
	m.head.len = (uint32_t)len;
	if (r == 0)
		r = base_buf_extend(d->out, len, (void **)&to);
	if (r < 0)
		return r;
	m.seq = runtime_seq_next(&d->place.seq);
	*to = m;
	if (code)
		memcpy(to + 1, code, m.code_len);
	return JITDUMP_TAKEN;
}

static int move_take(struct jitdump *d, const struct jitdump_record *rec)
{
	struct jitdump_move move;
	int r;

	if (rec->head.total_size < sizeof(move))
		return bad(d, rec);
	r = jitdump_copy(d, rec->off, &move, sizeof(move));
	if (r < 0)
		return r;
	if (!runtime_code_is_good(move.old_code_addr, move.code_size) ||
	    !runtime_code_is_good(move.new_code_addr, move.code_size))
		return bad(d, rec);
	if (move.pid != d->header.pid) {
		d->place.nr_others++;
		return JITDUMP_TAKEN;
	}
	return move_put(d, rec, &move);
}

static int debug_note(struct jitdump *d, const struct jitdump_record *rec)
{
	struct jitdump_lines_at at = { .off = rec->off, .len = rec->head.total_size };
	struct jitdump_debug debug;
	int r = jitdump_copy(d, rec->off, &debug, sizeof(debug));

	at.addr = debug.code_addr;
	if (r == 0 && debug.nr_entry)
		jitdump_pending_add(&d->pending, &at);
	return r;
}

static int debug_take(struct jitdump *d, const struct jitdump_record *rec)
{
	if (rec->head.total_size < sizeof(struct jitdump_debug))
		return bad(d, rec);
	return debug_note(d, rec);
}

static int unwinding_note(struct jitdump *d, const struct jitdump_record *rec)
{
	const struct jitdump_lines_at at = { .addr = JITDUMP_PENDING_FRAMES,
					     .off = rec->off,
					     .len = rec->head.total_size };

	jitdump_pending_add(&d->pending, &at);
	return JITDUMP_TAKEN;
}

int jitdump_record_take(struct jitdump *d, const struct jitdump_record *rec)
{
	switch (rec->head.id) {
	case JITDUMP_LOAD:
		return load_take(d, rec);
	case JITDUMP_MOVE:
		return move_take(d, rec);
	case JITDUMP_DEBUG:
		return debug_take(d, rec);
	case JITDUMP_UNWINDING:
		return unwinding_note(d, rec);
	default:
		return JITDUMP_TAKEN; /* the end, or of a later version */
	}
}

int jitdump_record_again(struct jitdump *d, const struct jitdump_record *rec)
{
	struct jitdump_load load;
	int r = 0;

	if (rec->head.id == JITDUMP_DEBUG && rec->head.total_size >= sizeof(struct jitdump_debug))
		return debug_note(d, rec);
	if (rec->head.id == JITDUMP_UNWINDING)
		return unwinding_note(d, rec);
	if (rec->head.id == JITDUMP_LOAD && rec->head.total_size >= sizeof(load)) {
		r = jitdump_copy(d, rec->off, &load, sizeof(load));
		if (r == 0)
			forget_pending(d, &load);
	}
	return r;
}
