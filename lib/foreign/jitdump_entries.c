/* SPDX-License-Identifier: BSD-2-Clause */
/* The entries of a jitdump record with lines are read here. */
#include <errno.h>

#include "jitdump_internal.h"

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

int jitdump_entries_read(struct jitdump_entries *e, const uint8_t *rec, size_t len,
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
