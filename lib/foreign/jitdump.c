/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registration records out of a jitdump file, a record at a time; routines with their lines and
 * frames.
 */
#include <elf.h>
#include <errno.h>
#include <unistd.h>

#include "eh_bytes.h"
#include "jitdump_internal.h"

struct jitdump_pending {
	struct jitdump_lines_at v[JITDUMP_NR_PENDING]; /* ascending off */
	size_t nr;
};

struct jitdump {
	struct runtime_file f;
	struct foreign_place place;
	struct jitdump_header header;
	struct jitdump_pending pending;
	struct base_buf frames;	    /* struct wire_frame of one routine, */
	struct jitdump_lines lines; /* its lines, */
	char name[WIRE_NAME_MAX];   /* as its name */
	struct base_buf *out;
	bool has_time;
	uint64_t time_ns; /* time of the last WIRE_TIME */
	int nr_bad;
};

/* An .eh_frame, its header, and unwinding_size of them in all. It is of the next LOAD. */
struct jitdump_unwinding {
	struct jitdump_head head;
	uint64_t unwinding_size, eh_frame_hdr_size, mapped_size;
};
static_assert(sizeof(struct jitdump_unwinding) == 40, "jitdump unwinding");

/* In place of the address in the last unwinding record, which has none: no code is there. */
#define JITDUMP_PENDING_FRAMES UINT64_MAX

/*
 * The result for a record. An incomplete one is waited for: until the file is longer, or until the
 * space that the file already has is filled.
 */
enum { JITDUMP_TAKEN, JITDUMP_WAIT, JITDUMP_FULL };

/* A record as it is being taken. */
struct jitdump_record {
	uint64_t off;
	struct jitdump_head head;
};

/* ---- lines whose routine is yet to come ------------------------------------------------------ */

static void remove_at(struct jitdump_pending *p, size_t i)
{
	p->nr--;
	memmove(p->v + i, p->v + i + 1, (p->nr - i) * sizeof(p->v[0]));
}

static bool is_old(const struct jitdump_lines_at *lines, uint64_t off)
{
	return off - (lines->off + lines->len) > JITDUMP_PENDING_LEN;
}

static void remove_old(struct jitdump_pending *p, uint64_t off)
{
	for (size_t i = 0; i < p->nr;)
		if (is_old(&p->v[i], off))
			remove_at(p, i);
		else
			i++;
}

static size_t find(const struct jitdump_pending *p, uint64_t addr)
{
	size_t i = 0;

	while (i < p->nr && p->v[i].addr != addr)
		i++;
	return i;
}

/* The last ones for @addr; @off: of the routine's record. */
static struct jitdump_lines_at jitdump_pending_find(struct jitdump_pending *p, uint64_t addr,
						    uint64_t off)
{
	size_t i;

	remove_old(p, off);
	i = find(p, addr);
	return i < p->nr ? p->v[i] : (struct jitdump_lines_at){ 0 };
}

static void jitdump_pending_remove(struct jitdump_pending *p, uint64_t addr)
{
	size_t i = find(p, addr);

	if (i < p->nr)
		remove_at(p, i);
}

/*
 * Whether lines are dropped depends on those behind them alone, so that a reading that goes on from
 * the first of them finds the same ones.
 */
static void jitdump_pending_add(struct jitdump_pending *p, const struct jitdump_lines_at *lines)
{
	remove_old(p, lines->off);
	jitdump_pending_remove(p, lines->addr);
	if (p->nr == JITDUMP_NR_PENDING)
		remove_at(p, 0);
	p->v[p->nr++] = *lines;
}

/* Where to begin to know them again when the reading goes on at @off; 0: there are none. */
static uint64_t jitdump_pending_first(struct jitdump_pending *p, uint64_t off)
{
	remove_old(p, off);
	return p->nr ? p->v[0].off : 0;
}

/* ---- frames out of an unwinding record ------------------------------------------------------- */

/* Longer records are left out, and further rows. */
enum { RECORD_MAX = 1 << 20, FRAMES_MAX = 4096 };

struct making {
	struct base_buf *frames;
	uint64_t code;
};

/* Where the rule has it, as frames say it. */
static int32_t frame_place(uint8_t at, int16_t words)
{
	return at == UNWIND_AT_SAME  ? WIRE_FRAME_IN_REGISTER
	       : at == UNWIND_AT_CFA ? words * 8
				     : WIRE_FRAME_LOST;
}

/* A row that frames cannot say is left out: the code from the one before is followed. */
static int row(void *ctx, uint64_t vaddr, const struct unwind_rule *rule)
{
	const struct making *m = ctx;
	struct wire_frame f = { .code_off = (uint32_t)(vaddr - m->code),
				.flags = WIRE_FRAME_FALLBACK |
					 (rule->base == UNWIND_FP ? WIRE_FRAME_BY_FP : 0),
				.cfa_off = rule->off,
				.fp_off = frame_place(rule->fp_at, rule->fp_words),
				.link_off = frame_place(rule->link_at, rule->link_words) };

	if (rule->how != UNWIND_CFA || rule->returns || wire_frame_fault(&f) ||
	    (rule->base != UNWIND_FP && rule->base != UNWIND_SP) ||
	    m->frames->len / sizeof(f) == FRAMES_MAX)
		return 0;
	return base_buf_append(m->frames, &f, sizeof(f));
}

static int jitdump_copy(struct jitdump *d, uint64_t off, void *to, size_t len)
{
	const uint8_t *at;
	int r = runtime_file_peek(&d->f, off, len, &at);

	if (r == 0)
		memcpy(to, at, len);
	return r;
}

/* The record's head is looked at again: @at may be another record's. 0: it is none. */
static int unwinding_len(struct jitdump *d, const struct jitdump_lines_at *at,
			 struct jitdump_unwinding *u, uint64_t *len)
{
	int r = jitdump_copy(d, at->off, u, sizeof(*u));

	*len = r == 0 && u->head.id == JITDUMP_UNWINDING &&
			       u->eh_frame_hdr_size <= u->unwinding_size
		       ? u->unwinding_size - u->eh_frame_hdr_size
		       : 0;
	if (*len > at->len - sizeof(*u))
		*len = 0;
	return r;
}

/* Frames of @code go into @d->frames, from the record at @at, or none. 0, -ENOMEM, as peek. */
static int jitdump_frames_read(struct jitdump *d, const struct jitdump_lines_at *at,
			       const struct jitdump_code *code)
{
	struct making m = { .frames = &d->frames, .code = code->addr };
	struct image_eh_bytes eh = { .vaddr = code->addr + base_align_up(code->len, 8),
				     .code = code->addr,
				     .code_len = code->len,
				     .machine = (uint16_t)d->f.from->machine };
	struct jitdump_unwinding u;
	uint64_t len;
	int r;

	base_buf_clear(&d->frames);
	if (at->len < sizeof(u) || at->len > RECORD_MAX)
		return 0;
	r = unwinding_len(d, at, &u, &len);
	if (r == 0 && len)
		r = runtime_file_peek(&d->f, at->off + sizeof(u), (size_t)len, &eh.data);
	if (r < 0 || !len)
		return r;
	eh.len = (size_t)len;
	r = image_eh_bytes_run(&eh, row, &m);
	return r == -ENOMEM ? r : 0;
}

/* ---- one record ------------------------------------------------------------------------------ */

/* A name that is longer is a lie. */
enum { NAME_LOOKED = 1 << 20 };

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

/* JITDUMP_TAKEN; JITDUMP_FULL or negative, then @d->place and @d->out may be changed. */
static int jitdump_record_take(struct jitdump *d, const struct jitdump_record *rec)
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

/* One that was taken before: only what pends is found again. 0 or negative. */
static int jitdump_record_again(struct jitdump *d, const struct jitdump_record *rec)
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

/* ---- the file -------------------------------------------------------------------------------- */

/* A header that says it is longer is a lie. */
enum { HEADER_MAX = 64 << 10 };

int foreign_jitdump_is(int fd)
{
	uint32_t magic = 0;
	ssize_t n;

	do
		n = pread(fd, &magic, sizeof(magic), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n == sizeof(magic) && (magic == JITDUMP_MAGIC || magic == JITDUMP_MAGIC_SWAPPED);
}

/* ---- header ---------------------------------------------------------------------------------- */

static int header_check(const struct jitdump_header *h, uint32_t machine)
{
	if (h->magic != JITDUMP_MAGIC || h->total_size < sizeof(*h) || h->total_size > HEADER_MAX)
		return -DCPI_EFORMAT;
	if (h->version != JITDUMP_VERSION || (h->flags & ~JITDUMP_ARCH_TIME))
		return -DCPI_EVERSION;
	/* CPython 3.13 does not say which machine it is. */
	return h->elf_mach == machine || h->elf_mach == EM_NONE ? 0 : -DCPI_EFORMAT;
}

/* JITDUMP_WAIT, JITDUMP_FULL: it is not there yet. */
static int header_read(struct jitdump *d)
{
	const uint8_t *at;
	int r;

	if (d->f.size < sizeof(d->header))
		return JITDUMP_WAIT;
	r = runtime_file_peek(&d->f, 0, sizeof(d->header), &at);
	if (r < 0)
		return r;
	memcpy(&d->header, at, sizeof(d->header));
	if (!d->place.off && !d->header.magic && runtime_file_is_blank(&d->f, 0))
		return JITDUMP_FULL;
	r = header_check(&d->header, d->f.from->machine);
	if (r < 0)
		return r;
	if (d->f.size < d->header.total_size)
		return JITDUMP_WAIT;
	if (d->place.off < d->header.total_size)
		d->place.off = d->header.total_size;
	return JITDUMP_TAKEN;
}

/* ---- one after the other --------------------------------------------------------------------- */

/* Its head, where all of it is there. JITDUMP_WAIT, JITDUMP_FULL: it is not. */
static int record_read(struct jitdump *d, uint64_t off, struct jitdump_record *rec)
{
	uint64_t left = d->f.size - off;
	int r;

	rec->off = off;
	if (left < sizeof(rec->head))
		return JITDUMP_WAIT;
	r = jitdump_copy(d, off, &rec->head, sizeof(rec->head));
	if (r < 0)
		return r;
	if (!rec->head.total_size && runtime_file_is_blank(&d->f, off + sizeof(rec->head.id)))
		return JITDUMP_FULL;
	if (!rec->head.total_size) {
		/* It may have been written since. */
		runtime_file_forget(&d->f);
		r = jitdump_copy(d, off, &rec->head, sizeof(rec->head));
	}
	if (r == 0 && rec->head.total_size < sizeof(rec->head))
		r = -DCPI_EFORMAT;
	if (r < 0)
		return r;
	return rec->head.total_size <= left ? JITDUMP_TAKEN : JITDUMP_WAIT;
}

/* Records before a bad one count: the next read begins with the bad one, and fails. */
static int take_all(struct jitdump *d)
{
	uint64_t first = d->place.off;
	struct jitdump_record rec;
	int r;

	do {
		struct foreign_place before = d->place;
		size_t mark = d->out->len;

		r = record_read(d, d->place.off, &rec);
		if (r == JITDUMP_TAKEN)
			r = jitdump_record_take(d, &rec);
		if (r == JITDUMP_TAKEN) {
			d->place.off += rec.head.total_size;
		} else {
			d->place = before;
			d->out->len = mark;
		}
	} while (r == JITDUMP_TAKEN && !runtime_file_is_enough(&d->f, d->out));
	return r < 0 && d->place.off != first ? JITDUMP_TAKEN : r;
}

/*
 * Lines that were pending at the end of the last reading. A file that is another one since is no
 * failure here: what comes of it will be seen.
 */
static int find_pending(struct jitdump *d)
{
	uint64_t off = d->place.debug_off, end = d->place.off;
	struct jitdump_record rec;
	int r = JITDUMP_TAKEN;

	while (off && off < end && r == JITDUMP_TAKEN) {
		r = record_read(d, off, &rec);
		if (r != JITDUMP_TAKEN || rec.head.total_size > end - off)
			break;
		r = jitdump_record_again(d, &rec);
		off += rec.head.total_size;
	}
	return r == -DCPI_EFORMAT || r >= 0 ? JITDUMP_TAKEN : r;
}

static void lines_release(struct jitdump_lines *lines)
{
	base_buf_release(&lines->lines);
	base_buf_release(&lines->files);
}

int foreign_jitdump_read(const struct foreign_file *file, struct foreign_place *place,
			 struct base_buf *out)
{
	struct jitdump d = { .place = *place, .out = out };
	size_t mark = out->len;
	int r = runtime_file_open(&d.f, file, place);

	if (r == 0)
		r = header_read(&d);
	if (r == JITDUMP_TAKEN)
		r = find_pending(&d);
	if (r == JITDUMP_TAKEN)
		r = take_all(&d);
	if (r >= 0) {
		d.place.at_end = r != JITDUMP_TAKEN;
		d.place.ahead = r == JITDUMP_FULL;
		d.place.debug_off = jitdump_pending_first(&d.pending, d.place.off);
		r = runtime_file_end(&d.f, &d.place);
	}
	if (r == 0) {
		*place = d.place;
	} else {
		out->len = mark;
	}
	lines_release(&d.lines);
	base_buf_release(&d.frames);
	runtime_file_release(&d.f);
	return r < 0 ? r : d.nr_bad;
}
