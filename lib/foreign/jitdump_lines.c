/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines of a routine out of a debug record of a jitdump file: its entries, and how far they are
 * off.
 */
#include <errno.h>
#include <stdlib.h>

#include "jitdump_internal.h"

struct jitdump_line {
	uint64_t addr;
	const char *file; /* in the record, or the code's name */
	uint32_t file_len;
	uint32_t line;	/* 0: not known */
	uint32_t order; /* in the record */
};

struct jitdump_entries {
	struct jitdump_line *v; /* release with free */
	size_t nr, cap;
};

/*
 * perf puts a routine's code behind the 64 bytes of an ELF header, and some runtimes (V8, LLVM)
 * make up for it in what they write: their lines lie that much too high. Others' do not. What tells
 * for certain is a line at less than 64 bytes from the code's start (then they are exact), or one
 * behind the code's end but less than 64 bytes (then they are high); where the first stands at 64
 * exactly, that is likely the routine's start (high). Where nothing is certain it is as with the
 * lines before in the same file, if these agree; where nothing is known at all, they are left out.
 */
enum { JITDUMP_EXACT = 1, JITDUMP_HIGH = 2, JITDUMP_LIKELY_HIGH = 4 };
#define JITDUMP_SHIFT 64u

/* Longer records are left out. */
#define JITDUMP_DEBUG_MAX (8u << 20)

/* ---- entries --------------------------------------------------------------------------------- */

/* Bytes of freed memory that the allocator uses itself. */
enum { OVERWRITTEN = 16 };
/* Behind the last entry there is only what makes the record's length a multiple of this. */
enum { PADDED_TO = 8 };

static int add(struct jitdump_entries *e, const struct jitdump_line *line)
{
	int r = base_grow(&e->v, &e->cap, e->nr + 1, sizeof(*e->v));

	if (r < 0)
		return r;
	e->v[e->nr] = *line;
	e->v[e->nr].order = (uint32_t)e->nr;
	e->nr++;
	return 0;
}

/* ---- as they should be ----------------------------------------------------------------------- */

/* "\xff": the same as before. */
static bool is_same(const struct jitdump_line *line)
{
	return line->file_len == 1 && line->file[0] == '\xff';
}

/* 1: that is no entry. */
static int read_entry(struct jitdump_entries *e, const uint8_t *p, size_t len, size_t *used)
{
	const char *name = (const char *)p + sizeof(struct jitdump_entry), *end = NULL;
	struct jitdump_entry in;
	struct jitdump_line line;

	if (len > sizeof(in))
		end = memchr(name, 0, len - sizeof(in));
	if (!end)
		return 1;
	memcpy(&in, p, sizeof(in));
	line = (struct jitdump_line){
		.addr = in.addr, .line = in.line, .file = name, .file_len = (uint32_t)(end - name)
	};
	if (is_same(&line) && !e->nr)
		return 1;
	if (is_same(&line)) {
		line.file = e->v[e->nr - 1].file;
		line.file_len = e->v[e->nr - 1].file_len;
	}
	*used = (size_t)(end + 1 - (const char *)p);
	return add(e, &line);
}

static int read_by_names(struct jitdump_entries *e, const uint8_t *p, size_t len, uint64_t nr)
{
	size_t used;
	int r = 0;

	while (r == 0 && e->nr < nr) {
		r = read_entry(e, p, len, &used);
		if (r == 0) {
			p += used;
			len -= used;
		}
	}
	return r ? r : len >= PADDED_TO;
}

/* ---- as they are ----------------------------------------------------------------------------- */

static uint64_t addr_of(const uint8_t *entry)
{
	uint64_t addr;

	memcpy(&addr, entry, sizeof(addr));
	return addr;
}

/* Are these entries of @step bytes each, of the code, with a name that ends where they do? */
static bool is_step(const uint8_t *p, size_t step, uint64_t nr, const struct jitdump_code *code)
{
	for (uint64_t i = 0; i < nr; i++, p += step)
		if (addr_of(p) - code->addr > code->len + JITDUMP_SHIFT || p[step - 1] ||
		    !p[step - 2])
			return false;
	return true;
}

/* How long each is, if all are; or 0. */
static size_t find_step(const uint8_t *p, size_t len, uint64_t nr, const struct jitdump_code *code)
{
	size_t found = 0;

	for (size_t pad = 0; pad < PADDED_TO && pad < len; pad++) {
		size_t step = (len - pad) / nr;

		if ((len - pad) % nr || step <= sizeof(struct jitdump_entry) + 1 + OVERWRITTEN ||
		    !is_step(p, step, nr, code))
			continue;
		if (found)
			return 0;
		found = step;
	}
	return found;
}

static size_t without_number(const char *text, size_t len)
{
	size_t n = len;

	while (n && text[n - 1] >= '0' && text[n - 1] <= '9')
		n--;
	return n && n < len && text[n - 1] == ':' ? n - 1 : 0;
}

/* The last @len bytes of the code's name before :LINE:COLUMN or :LINE; NULL where they are no
 * file's. */
static const char *file_in_name(const struct jitdump_code *code, size_t len)
{
	size_t line = without_number(code->name, code->name_len);
	size_t ends[] = { without_number(code->name, line), line };

	for (size_t i = 0; i < 2; i++)
		if (ends[i] > len && code->name[ends[i] - len - 1] == ' ')
			return code->name + ends[i] - len;
	return NULL;
}

static int read_by_length(struct jitdump_entries *e, const uint8_t *p, size_t len, uint64_t nr,
			  const struct jitdump_code *code)
{
	size_t step = nr && nr <= len ? find_step(p, len, nr, code) : 0;
	size_t name_len = step - sizeof(struct jitdump_entry) - 1;
	const char *file = step ? file_in_name(code, name_len) : NULL;
	int r = 0;

	if (!file)
		return 1;
	for (; r == 0 && nr; nr--, p += step) {
		const char *name = (const char *)p + sizeof(struct jitdump_entry);
		struct jitdump_line line = { .file = file, .file_len = (uint32_t)name_len };
		struct jitdump_entry in;

		memcpy(&in, p, sizeof(in));
		line.addr = in.addr;
		if (!memcmp(name + OVERWRITTEN, file + OVERWRITTEN, name_len - OVERWRITTEN))
			line.line = in.line;
		r = add(e, &line);
	}
	return r;
}

/* "The same as before", behind the first name of @name_len bytes: of all others. */
static bool are_same(const uint8_t *p, size_t name_len, uint64_t nr,
		     const struct jitdump_code *code)
{
	p += sizeof(struct jitdump_entry) + name_len + 1;
	for (uint64_t i = 1; i < nr; i++, p += sizeof(struct jitdump_entry) + 2)
		if (addr_of(p) - code->addr > code->len + JITDUMP_SHIFT ||
		    p[sizeof(struct jitdump_entry)] != 0xff || p[sizeof(struct jitdump_entry) + 1])
			return false;
	return !p[-1];
}

/* Length of the one name that there is, which is that of the file in the code's; or 0. */
static size_t find_first_len(const uint8_t *p, size_t len, uint64_t nr,
			     const struct jitdump_code *code)
{
	size_t others;

	if (!nr || nr > len / sizeof(struct jitdump_entry))
		return 0;
	others = nr * sizeof(struct jitdump_entry) + (nr - 1) * 2 + 1;
	for (size_t pad = 0; pad < PADDED_TO && others + pad + OVERWRITTEN < len; pad++) {
		size_t name_len = len - others - pad;

		if (file_in_name(code, name_len) && are_same(p, name_len, nr, code))
			return name_len;
	}
	return 0;
}

/* One name for all, of which only the rest is left. 1: it is not so. */
static int read_by_first(struct jitdump_entries *e, const uint8_t *p, size_t len, uint64_t nr,
			 const struct jitdump_code *code)
{
	size_t name_len = find_first_len(p, len, nr, code), step;
	const char *file = name_len ? file_in_name(code, name_len) : NULL;
	struct jitdump_entry in;
	int r = 0;

	if (!file ||
	    memcmp(p + sizeof(in) + OVERWRITTEN, file + OVERWRITTEN, name_len - OVERWRITTEN))
		return 1;
	for (step = sizeof(in) + name_len + 1; r == 0 && nr;
	     nr--, p += step, step = sizeof(in) + 2) {
		struct jitdump_line line = { .file = file, .file_len = (uint32_t)name_len };

		memcpy(&in, p, sizeof(in));
		line.addr = in.addr;
		line.line = in.line;
		r = add(e, &line);
	}
	return r;
}

/*
 * The entries of the debug record at @rec, of @len bytes, for @code. Some versions of V8 (that of
 * Node.js 20) write the names of files out of memory that was freed, with zeros in them. Such
 * records are known by what remains behind the last entry, and read by the length that all names
 * have; the name is the one that the code's own ends with ("… FILE:LINE:COLUMN"), if it has that
 * length and the bytes that are left of it agree, else it is not known. 0; 1: malformed, and there
 * are none; -ENOMEM.
 */
static int jitdump_entries_read(struct jitdump_entries *e, const uint8_t *rec, size_t len,
				const struct jitdump_code *code)
{
	struct jitdump_debug head;
	int r;

	memcpy(&head, rec, sizeof(head));
	rec += sizeof(head);
	len -= sizeof(head);
	/* Freed memory may look like a name. */
	r = read_by_first(e, rec, len, head.nr_entry, code);
	if (r == 1)
		r = read_by_names(e, rec, len, head.nr_entry);
	if (r == 1) {
		e->nr = 0;
		r = read_by_length(e, rec, len, head.nr_entry, code);
	}
	if (r)
		e->nr = 0;
	return r;
}

/* ---- lines ----------------------------------------------------------------------------------- */

enum { TEXT_MAX = 4095 };

/* ---- where they count from ------------------------------------------------------------------- */

/* The properties that these entries show by themselves. */
static uint32_t look_at(const struct jitdump_entries *e, const struct jitdump_code *code)
{
	uint64_t first = UINT64_MAX;
	bool high = false;

	for (size_t i = 0; i < e->nr; i++) {
		uint64_t off = e->v[i].addr - code->addr;

		first = off < first ? off : first;
		/* At its end exactly: where some say that the lines end. */
		if (off > code->len && off - code->len < JITDUMP_SHIFT)
			high = true;
	}
	if (first < JITDUMP_SHIFT)
		return JITDUMP_EXACT;
	if (high)
		return JITDUMP_HIGH;
	return first == JITDUMP_SHIFT ? JITDUMP_LIKELY_HIGH : 0;
}

/* JITDUMP_EXACT, JITDUMP_HIGH, or 0: nobody can know. */
static uint32_t find_base(const struct jitdump_entries *e, const struct jitdump_code *code,
			  uint32_t *seen)
{
	uint32_t here = look_at(e, code), before = *seen & (JITDUMP_EXACT | JITDUMP_HIGH);

	*seen |= here;
	if (here == JITDUMP_EXACT || here == JITDUMP_HIGH)
		return here;
	if (before == JITDUMP_EXACT || before == JITDUMP_HIGH)
		return before;
	if (here == JITDUMP_LIKELY_HIGH || (!before && (*seen & JITDUMP_LIKELY_HIGH)))
		return JITDUMP_HIGH;
	return 0;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Make offsets of addresses, and leave out what is not in the code. */
static void place(struct jitdump_entries *e, uint64_t start, uint64_t len)
{
	size_t nr = 0;

	for (size_t i = 0; i < e->nr; i++) {
		if (e->v[i].addr - start >= len)
			continue;
		e->v[nr] = e->v[i];
		e->v[nr++].addr -= start;
	}
	e->nr = nr;
}

static int by_offset(const void *pa, const void *pb)
{
	const struct jitdump_line *a = pa, *b = pb;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

/*
 * V8 names a module by its URL, as which the file is found by nobody. In place: the path of a
 * file's; other names remain. Returns the length.
 */
static size_t path_of_url(uint8_t *name, size_t len)
{
	size_t scheme = strlen("file://"), nr = 0;
	int high, low;

	if (len <= scheme || memcmp(name, "file:///", scheme + 1))
		return len;
	for (size_t i = scheme; i < len; i++) {
		name[nr] = name[i];
		if (name[i] == '%' && len - i > 2) {
			high = base_digit((char)name[i + 1]);
			low = base_digit((char)name[i + 2]);
			if (high >= 0 && low >= 0 && (high || low)) {
				name[nr] = (uint8_t)(high << 4 | low);
				i += 2;
			}
		}
		nr++;
	}
	return nr;
}

/* Append it, as a record has it. */
static int put_file(struct base_buf *files, const char *name, size_t len)
{
	uint8_t head[2] = { 0 };
	size_t at = files->len;
	int r = base_buf_append(files, head, sizeof(head));

	if (r == 0)
		r = base_buf_append(files, name, len);
	if (r < 0)
		return r;
	len = path_of_url(files->data + at + sizeof(head), len);
	files->data[at] = (uint8_t)len;
	files->data[at + 1] = (uint8_t)(len >> 8);
	files->len = at + sizeof(head) + len;
	return 0;
}

static int file_index(struct jitdump_lines *l, struct base_map *known, const struct jitdump_line *e,
		      uint32_t *index)
{
	size_t len = e->file_len < TEXT_MAX ? e->file_len : TEXT_MAX;
	void *is = base_map_get(known, e->file, len);
	int r;

	if (is) {
		*index = (uint32_t)((uintptr_t)is - 1);
		return 0;
	}
	r = base_map_set(known, e->file, len, (void *)((uintptr_t)l->nr_files + 1));
	if (r == 0)
		r = put_file(&l->files, e->file, len);
	*index = l->nr_files++;
	return r;
}

static int put_line(struct jitdump_lines *l, struct base_map *known, const struct jitdump_line *e)
{
	struct wire_line line = { .code_off = (uint32_t)e->addr }, *last = NULL;
	int r = 0;

	if (e->line && e->file_len) {
		line.line = e->line;
		r = file_index(l, known, e, &line.file);
	}
	if (r < 0)
		return r;
	if (l->lines.len)
		last = (struct wire_line *)(void *)(l->lines.data + l->lines.len) - 1;
	/* If several lines have one address, the last is valid. */
	if (last && last->code_off == line.code_off)
		*last = line;
	else if (!last || last->line != line.line || last->file != line.file)
		r = base_buf_append(&l->lines, &line, sizeof(line));
	return r;
}

static int put_lines(struct jitdump_lines *l, struct jitdump_entries *e)
{
	struct base_map known = { 0 };
	int r = 0;

	if (e->nr)
		qsort(e->v, e->nr, sizeof(*e->v), by_offset);
	for (size_t i = 0; r == 0 && i < e->nr; i++)
		r = put_line(l, &known, &e->v[i]);
	base_map_release(&known);
	return r;
}

int jitdump_lines_read(struct runtime_file *f, const struct jitdump_lines_at *at,
		       const struct jitdump_code *code, uint32_t *seen, struct jitdump_lines *lines)
{
	struct jitdump_entries e = { 0 };
	uint32_t base;
	const uint8_t *rec;
	int r;

	base_buf_clear(&lines->lines);
	base_buf_clear(&lines->files);
	lines->nr_files = 0;
	if (!at->len)
		return 0;
	if (at->len > JITDUMP_DEBUG_MAX)
		return 1;
	r = runtime_file_peek(f, at->off, at->len, &rec);
	if (r == 0)
		r = jitdump_entries_read(&e, rec, at->len, code);
	if (r == 0) {
		base = find_base(&e, code, seen);
		place(&e, code->addr + (base == JITDUMP_HIGH ? JITDUMP_SHIFT : 0), code->len);
		r = base ? put_lines(lines, &e) : 0;
	}
	free(e.v);
	return r;
}
