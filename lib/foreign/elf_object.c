/* SPDX-License-Identifier: BSD-2-Clause */
/* The routines of an ELF object in memory become registration records here. */
#include "foreign_internal.h"
#include "bound.h"

enum { TEXT_MAX = 4095, TEXTS_MAX = 65535 };

/* The parts of a routine's record, made again for each routine. */
struct parts {
	struct base_buf lines, inlines, files; /* as they stand in the record */
	struct base_map index;		       /* by pointer to the text: number in files + 1 */
	uint32_t nr_lines, nr_inlines, nr_files;
};

static void begin(struct parts *p)
{
	base_buf_clear(&p->lines);
	base_buf_clear(&p->inlines);
	base_buf_clear(&p->files);
	base_map_release(&p->index);
	p->nr_lines = p->nr_inlines = p->nr_files = 0;
}

static void release(struct parts *p)
{
	base_buf_release(&p->lines);
	base_buf_release(&p->inlines);
	base_buf_release(&p->files);
	base_map_release(&p->index);
}

/* Equal texts of one unit have one place in memory. @folder: goes before it, or NULL. */
static int put_text(struct parts *p, const char *folder, const char *text, uint32_t *index)
{
	void *known = base_map_get(&p->index, &text, sizeof(text));
	size_t before = folder ? strnlen(folder, TEXT_MAX - 1) : 0;
	size_t most = folder ? TEXT_MAX - before - 1 : TEXT_MAX;
	size_t after = strnlen(text, most), len = before + (folder ? 1 : 0) + after;
	uint8_t head[2] = { (uint8_t)len, (uint8_t)(len >> 8) };
	int r;

	if (known) {
		*index = (uint32_t)((uintptr_t)known - 1);
		return 0;
	}
	if (p->nr_files == TEXTS_MAX)
		return -DCPI_ELIMIT;
	r = base_map_set(&p->index, &text, sizeof(text), (void *)(uintptr_t)(p->nr_files + 1));
	if (r == 0)
		r = base_buf_append(&p->files, head, sizeof(head));
	if (r == 0 && folder)
		r = base_buf_append(&p->files, folder, before);
	if (r == 0 && folder)
		r = base_buf_append(&p->files, "/", 1);
	if (r == 0)
		r = base_buf_append(&p->files, text, after);
	*index = p->nr_files++;
	return r;
}

static int put_file(struct parts *p, const struct elf_object *o, const char *name, uint32_t *index)
{
	return put_text(p, base_map_get(&o->folders, &name, sizeof(name)), name, index);
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* The last row that is not behind @vaddr, or the first one behind it. */
static size_t first_row(const struct elf_object *o, uint64_t vaddr)
{
	size_t lo = BASE_UPPER_BOUND(o->rows, o->nr_rows, addr, vaddr);

	return lo ? lo - 1 : 0;
}

static int put_line(struct parts *p, const struct elf_object *o, const struct elf_row *row,
		    uint64_t off)
{
	struct wire_line line = { .code_off = (uint32_t)off,
				  .line = row->line,
				  .column = row->column,
				  .discriminator = row->discriminator };
	struct wire_line *last = NULL;
	int r = row->line ? put_file(p, o, row->file, &line.file) : 0;

	if (r < 0)
		return r;
	if (p->nr_lines)
		last = (struct wire_line *)(void *)p->lines.data + p->nr_lines - 1;
	if (last && last->line == line.line && last->file == line.file &&
	    last->column == line.column && last->discriminator == line.discriminator)
		return 0;
	/* If several lines have one address, the last is valid. */
	if (last && last->code_off == line.code_off) {
		*last = line;
		return 0;
	}
	if (!last && !line.line)
		return 0;
	r = base_buf_append(&p->lines, &line, sizeof(line));
	p->nr_lines += r == 0;
	return r;
}

static int put_lines(struct parts *p, const struct elf_object *o, const struct elf_routine *rt)
{
	int r = 0;

	for (size_t i = first_row(o, rt->addr); r == 0 && i < o->nr_rows; i++) {
		const struct elf_row *row = &o->rows[i];

		if (row->addr >= rt->addr + rt->len)
			break;
		r = put_line(p, o, row, row->addr > rt->addr ? row->addr - rt->addr : 0);
	}
	return r;
}

/* ---- inlined parts ------------------------------------------------------------------------- */

static int put_inline(struct parts *p, const struct elf_object *o, const struct elf_part *part,
		      const struct elf_routine *rt)
{
	struct wire_inline in = { .code_off = (uint32_t)(part->start - rt->addr),
				  .code_len = (uint32_t)(part->end - part->start),
				  .call_line = part->call_line,
				  .depth = part->depth };
	int r = put_text(p, NULL, part->name, &in.name);

	if (r == 0 && in.call_line)
		r = put_file(p, o, part->call_file, &in.call_file);
	if (r == 0)
		r = base_buf_append(&p->inlines, &in, sizeof(in));
	p->nr_inlines += r == 0;
	return r;
}

static int put_inlines(struct parts *p, const struct elf_object *o, size_t routine, size_t *next)
{
	int r = 0;

	for (; r == 0 && *next < o->nr_parts && o->parts[*next].routine == routine; ++*next)
		r = put_inline(p, o, &o->parts[*next], &o->routines[routine]);
	return r;
}

/* ---- the record ---------------------------------------------------------------------------- */

/* Take the running code, else the file's; returns the flags that say which, or 0 for neither. */
static uint16_t get_code(const struct foreign_object *from, const struct elf_routine *rt,
			 uint8_t *to)
{
	if (from->read && from->read(from->ctx, rt->addr, to, rt->len) == (ssize_t)rt->len)
		return WIRE_ROUTINE_CODE | WIRE_ROUTINE_FETCHED;
	if (!rt->bytes)
		return 0;
	memcpy(to, rt->bytes, rt->len);
	return WIRE_ROUTINE_CODE;
}

static void fill(uint8_t *to, const struct parts *p)
{
	const struct base_buf *bufs[] = { &p->lines, &p->inlines, &p->files };

	for (size_t i = 0; i < sizeof(bufs) / sizeof(bufs[0]); i++) {
		if (bufs[i]->len)
			memcpy(to, bufs[i]->data, bufs[i]->len);
		to += bufs[i]->len;
	}
}

/* -DCPI_ELIMIT where it does not fit. */
static int put_record(const struct foreign_object *from, const struct elf_routine *rt,
		      const struct parts *p, uint32_t part, struct base_buf *out)
{
	size_t name_len = strnlen(rt->name, WIRE_NAME_MAX), code_len = rt->len, off;
	size_t len = wire_routine_len(name_len, code_len, true, p->nr_lines, p->nr_inlines,
				      p->files.len);
	struct wire_routine *rec;
	uint16_t code;
	void *at;
	int r;

	r = len ? base_buf_extend(out, len, &at) : -DCPI_ELIMIT;
	if (r < 0)
		return r;
	rec = at;
	code = get_code(from, rt, (uint8_t *)(rec + 1) + name_len);
	if (!code) {
		size_t less = wire_routine_len(name_len, code_len, false, p->nr_lines,
					       p->nr_inlines, p->files.len);

		memset(rec, 0, len);
		out->len -= len - less;
		len = less;
	}
	*rec = (struct wire_routine){
		.head = { .len = (uint32_t)len, .type = WIRE_ROUTINE, .flags = from->flags | code },
		.facility = from->rec->facility,
		.part = part,
		.seq = from->rec->seq,
		.addr = rt->addr,
		.code_len = code_len,
		.name_len = (uint32_t)name_len,
		.nr_lines = p->nr_lines,
		.nr_files = p->nr_files,
		.nr_inlines = p->nr_inlines
	};
	memcpy(rec + 1, rt->name, name_len);
	off = base_align_up(sizeof(*rec) + name_len + (code ? code_len : 0), 8);
	fill((uint8_t *)rec + off, p);
	return 0;
}

static int put_routine(struct parts *p, const struct elf_object *o, size_t i, size_t *next_part,
		       struct base_buf *out)
{
	const struct elf_routine *rt = &o->routines[i];
	int r;

	begin(p);
	r = put_lines(p, o, rt);
	if (r == 0)
		r = put_inlines(p, o, i, next_part);
	/* Too much is said of it: its code and name all the same. */
	if (r == -DCPI_ELIMIT) {
		begin(p);
		r = 0;
	}
	return r < 0 ? r : put_record(o->from, rt, p, (uint32_t)i, out);
}

static int put_all(const struct elf_object *o, struct base_buf *out)
{
	size_t from = out->len, next_part = 0;
	struct parts p = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < o->nr_routines; i++) {
		size_t mark = out->len;

		while (next_part < o->nr_parts && o->parts[next_part].routine < i)
			next_part++;
		r = put_routine(&p, o, i, &next_part, out);
		if (r == 0 && out->len - from > FOREIGN_OBJECT_MAX) {
			out->len = mark;
			r = -DCPI_ELIMIT;
		}
	}
	release(&p);
	return r;
}

int foreign_elf_object(const struct foreign_object *object, struct base_buf *out)
{
	struct elf_object o = { 0 };
	int r = elf_file_open(&o, object), symbols = 0;

	if (r == 0)
		r = symbols = elf_symbols_read(&o);
	if (r == 0 || r == -DCPI_ELIMIT)
		r = elf_dwarf_read(&o);
	if (r == 0)
		r = put_all(&o, out);
	if (r == 0)
		r = symbols < 0 ? symbols : (int)o.nr_routines;
	elf_file_release(&o);
	return r;
}
