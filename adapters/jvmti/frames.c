/* SPDX-License-Identifier: BSD-2-Clause */
/* The inlined frames and bytecode indices that the JVM gives become lines and inlined parts. */
#include "jvmti_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The shortest instruction: where the code behind one may begin. */
#if defined(__x86_64__) || defined(__i386__)
#define INSTRUCTION_MIN 1u
#elif defined(__riscv)
#define INSTRUCTION_MIN 2u
#else
#define INSTRUCTION_MIN 4u
#endif

/* Room for one more of @size bytes. */
static bool grow(void *array, size_t nr, size_t *space, size_t size)
{
	size_t more = *space ? *space * 2 : 64;
	void **at = array, *grown;

	if (nr < *space)
		return true;
	grown = reallocarray(*at, more, size);
	if (!grown)
		return false;
	*at = grown;
	*space = more;
	return true;
}

/* ---- what is put ----------------------------------------------------------------------------- */

static bool same_text(struct dbgdyn_string a, struct dbgdyn_string b)
{
	return a.len == b.len && !memcmp(a.text, b.text, a.len);
}

/* The index of the file of @k; it has one. */
static int file_put(struct jvmti_frames *f, struct jvmti_known *k, uint32_t *at)
{
	size_t i = 0;

	if (k->event == f->event) {
		*at = k->file_at;
		return 0;
	}
	while (i < f->nr_files && !same_text(f->files[i], k->file))
		i++;
	if (i == f->nr_files) {
		if (!grow(&f->files, f->nr_files, &f->grow_files, sizeof(*f->files)))
			return -ENOMEM;
		f->files[f->nr_files++] = k->file;
	}
	k->event = f->event;
	*at = k->file_at = (uint32_t)i;
	return 0;
}

/* The source of a place in @k's byte code; both 0 where there is none. */
static int source_put(struct jvmti_frames *f, struct jvmti_known *k, jint bci, uint32_t *file,
		      uint32_t *line)
{
	*file = 0;
	*line = k->file.len ? jvmti_known_line(k, bci) : 0;
	return *line ? file_put(f, k, file) : 0;
}

static int line_put(struct jvmti_frames *f, uint32_t start, uint32_t file, uint32_t line)
{
	struct dbgdyn_line *last = f->nr_lines ? &f->lines[f->nr_lines - 1] : NULL;

	if (last ? last->line == line && last->file == file : !line)
		return 0;
	if (!grow(&f->lines, f->nr_lines, &f->grow_lines, sizeof(*f->lines)))
		return -ENOMEM;
	f->lines[f->nr_lines++] =
		(struct dbgdyn_line){ .code_off = start, .line = line, .file = file };
	return 0;
}

/* ---- parts that are open --------------------------------------------------------------------- */

/* End those that lie deeper than @nr. */
static void close_to(struct jvmti_frames *f, uint32_t nr, uint32_t end)
{
	for (; f->nr_open > nr; f->nr_open--) {
		struct dbgdyn_inline *in = &f->inlines[f->open[f->nr_open - 1].at];

		in->code_len = end - in->code_off;
	}
}

/* @k's code, called from @file and @line of the innermost open part. */
static int open_put(struct jvmti_frames *f, const struct jvmti_known *k, uint32_t start,
		    uint32_t file, uint32_t line)
{
	if (!grow(&f->inlines, f->nr_inlines, &f->grow_inlines, sizeof(*f->inlines)))
		return -ENOMEM;
	f->open[f->nr_open].known = k;
	f->open[f->nr_open].call_line = line;
	f->open[f->nr_open].at = (uint32_t)f->nr_inlines;
	f->inlines[f->nr_inlines++] = (struct dbgdyn_inline){ .code_off = start,
							      .code_len = 1,
							      .name = k->name,
							      .call_file = file,
							      .call_line = line,
							      .depth = f->nr_open++ };
	return 0;
}

/*
 * One frame, called from @file and @line: the part that is open at @depth goes on, or another takes
 * its place. Calls that stand in one line are not told apart, as nobody can see the difference.
 */
static int frame_put(struct jvmti_frames *f, const struct jvmti_known *k, uint32_t depth,
		     uint32_t start, uint32_t file, uint32_t line)
{
	if (depth < f->nr_open && f->open[depth].known == k && f->open[depth].call_line == line)
		return 0;
	close_to(f, depth, start);
	return open_put(f, k, start, file, line);
}

static int place_put(struct jvmti_frames *f, const struct jvmti_place *p, jvmti_find_fn *find,
		     void *arg)
{
	uint32_t file = 0, line = 0, depth = 0;
	bool outer = true;
	int r = 0;

	/* The routine itself is no part of itself: only its line counts. */
	for (uint32_t i = p->nr_frames; i-- && depth < JVMTI_DEPTH_MAX && !r;) {
		struct jvmti_known *k = find(arg, p->methods[i]);

		if (k && !outer)
			r = frame_put(f, k, depth++, p->start, file, line);
		outer = false;
		if (k && !r)
			r = source_put(f, k, p->bcis[i], &file, &line);
	}
	close_to(f, depth, p->start);
	return r ? r : line_put(f, p->start, file, line);
}

int jvmti_frames_convert(struct jvmti_frames *f, const struct jvmti_place *places, size_t nr,
			 uint32_t end, uint32_t code_len, jvmti_find_fn *find, void *arg)
{
	f->nr_lines = f->nr_inlines = f->nr_files = 0;
	f->nr_open = 0;
	f->event++;
	for (size_t i = 0; i < nr; i++) {
		int r = place_put(f, &places[i], find, arg);

		if (r)
			return r;
	}
	close_to(f, 0, end);
	return end < code_len ? line_put(f, end, 0, 0) : 0;
}

void jvmti_frames_release(struct jvmti_frames *f)
{
	free(f->lines);
	free(f->inlines);
	free(f->files);
	*f = (struct jvmti_frames){ 0 };
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Where @pc is in the code; false: outside. */
static bool offset_of(const void *pc, const void *code, uint32_t code_len, uint32_t *out)
{
	uintptr_t off = (uintptr_t)pc - (uintptr_t)code;

	*out = (uint32_t)off;
	return off < code_len;
}

size_t jvmti_places_of_records(struct jvmti_place *out, const PCStackInfo *records, size_t nr,
			       const void *code, uint32_t code_len, uint32_t *end)
{
	uint32_t start = 0, off;
	size_t nr_out = 0;

	for (size_t i = 0; i < nr; i++) {
		const PCStackInfo *r = &records[i];

		if (!offset_of(r->pc, code, code_len, &off) || off < start || r->numstackframes < 1)
			continue;
		out[nr_out++] = (struct jvmti_place){ start, (uint32_t)r->numstackframes,
						      r->methods, r->bcis };
		start = off + INSTRUCTION_MIN;
	}
	*end = start < code_len ? start : code_len;
	return nr_out;
}

size_t jvmti_places_of_map(struct jvmti_place *out, const jvmtiAddrLocationMap *map, jint *bcis,
			   size_t nr, const jmethodID *method, const void *code, uint32_t code_len)
{
	uint32_t off, least = 0;
	size_t nr_out = 0;

	for (size_t i = 0; i < nr; i++) {
		if (!offset_of(map[i].start_address, code, code_len, &off) || off < least)
			continue;
		bcis[nr_out] = (jint)map[i].location;
		out[nr_out] = (struct jvmti_place){ off, 1, method, &bcis[nr_out] };
		nr_out++;
		least = off + 1;
	}
	return nr_out;
}
