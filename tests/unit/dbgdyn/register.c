/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake.h"
#include "../routine_file.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#define RING_LEN (4u << 20)

static struct fake fake;
static dbgdyn_context context;
static uint8_t code[256 << 10];
static _Alignas(8) uint8_t stream[RING_LEN];

static int open_all(int parts)
{
	for (size_t i = 0; i < sizeof(code); i++)
		code[i] = (uint8_t)(i * 7 + (i >> 8));
	fake_open(&fake, parts);
	CHECK(dbgdyn_begin("jit", 3, NULL, &context) == DBGDYN_OK);
	CHECK(!(parts & FAKE_SOCKET) || fake_take(&fake));
	return 0;
}

/* Read the ring; the only record there, parsed. */
static int read_one(struct wire_routine_view *v)
{
	size_t len = fake_read(&fake, stream, sizeof(stream)), pos = 0;
	const struct wire_head *h = fake_next(stream, len, &pos);

	CHECK(h && pos == len && wire_routine_parse(h, v) == 0);
	return 0;
}

static int record_holds_everything(void)
{
	static const struct dbgdyn_line lines[] = { { 0, 10, 1, 0, 0 },
						    { 4, 0, 99, 0, 0 },
						    { 9, 12, 0, 0, 0 } };
	static const struct dbgdyn_string files[] = { { "/src/a.js", 9 }, { "", 0 } };
	struct dbgdyn_routine r = fake_routine("f(int, <lambda>)", code + 3, 11);
	struct wire_routine_view v;
	dbgdyn_handle handle = { 0 }, first;
	size_t len;

	CHECK(open_all(FAKE_SOCKET) == 0);
	CHECK(dbgdyn_register(context, &r, &first) == DBGDYN_OK && read_one(&v) == 0);
	CHECK(v.rec->nr_lines == 0 && v.rec->nr_files == 0);
	r.lines = lines;
	r.nr_lines = 3;
	r.files = files;
	r.nr_files = 2;
	errno = 4711;
	CHECK(dbgdyn_register(context, &r, &handle) == DBGDYN_OK && read_one(&v) == 0);
	CHECK(errno == 4711 && v.rec->seq == 2 && handle.id != first.id && handle.id && first.id);
	CHECK(v.rec->facility == 0 && v.rec->part == 0 && v.rec->nr_inlines == 0);
	CHECK(v.rec->addr == (uintptr_t)(code + 3) && v.rec->code_len == 11);
	CHECK(v.rec->name_len == 16 && !memcmp(v.name, "f(int, <lambda>)", 16));
	CHECK(v.code && !memcmp(v.code, code + 3, 11));
	CHECK(v.rec->nr_lines == 3 && v.lines[0].line == 10 && v.lines[0].file == 1);
	CHECK(v.lines[1].code_off == 4 && v.lines[1].line == 0 && v.lines[2].line == 12);
	CHECK(!memcmp(routine_file(&v, 0, &len), "/src/a.js", 9) && len == 9);
	CHECK(routine_file(&v, 1, &len) && len == 0 && !routine_file(&v, 2, &len));
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK && read_one(&v) == 0);
	fake_close(&fake);
	return 0;
}

/* One that is wrong does not keep the others out. */
static int many_at_once(void)
{
	struct dbgdyn_routine r[3] = { fake_routine("one", code, 16),
				       fake_routine("", code + 16, 16),
				       fake_routine("three", code + 32, 16) };
	struct wire_registry reg;
	dbgdyn_handle h[3];

	CHECK(open_all(FAKE_SOCKET) == 0);
	CHECK(dbgdyn_register_many(context, r, 3, h) == DBGDYN_EINVAL);
	CHECK(h[0].id && !h[1].id && h[2].id && h[0].id != h[2].id);
	fake_header(&fake, &reg);
	CHECK(reg.seq == 2);
	CHECK(dbgdyn_retire(context, h[0]) == DBGDYN_OK &&
	      dbgdyn_retire(context, h[2]) == DBGDYN_OK);
	r[1] = fake_routine("two", code + 16, 16);
	CHECK(dbgdyn_register_many(context, r, 3, NULL) == DBGDYN_OK);
	CHECK(dbgdyn_register_many(context, NULL, 0, NULL) == DBGDYN_OK);
	CHECK(dbgdyn_register_many(context, NULL, 1, h) == DBGDYN_EINVAL);
	fake_header(&fake, &reg);
	CHECK(reg.seq == 7);
	fake_close(&fake);
	return 0;
}

/* Each change has its time; where no system call is allowed, the clock might be one. */
static int changes_have_times(void)
{
	struct dbgdyn_options o = { .size = sizeof(o), .flags = DBGDYN_NO_SYSCALLS };
	struct dbgdyn_routine r = fake_routine("f", code, 64);
	struct wire_routine_view v;
	dbgdyn_context quiet;

	CHECK(open_all(FAKE_SOCKET) == 0);
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK && read_one(&v) == 0);
	CHECK(fake_when_ns);
	CHECK(dbgdyn_begin("quiet", 5, &o, &quiet) == DBGDYN_OK);
	CHECK(dbgdyn_register(quiet, &r, NULL) == DBGDYN_OK && read_one(&v) == 0);
	CHECK(!fake_when_ns);
	fake_close(&fake);
	return 0;
}

/* Where code is not readable, or not there yet; who knows nothing of it has it where it runs. */
static int bytes_may_stand_elsewhere(void)
{
	struct dbgdyn_routine r = fake_routine("f", (void *)0x10000, 64);
	struct wire_routine_view v;

	CHECK(open_all(FAKE_SOCKET) == 0);
	r.bytes = code + 5;
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK && read_one(&v) == 0);
	CHECK(v.rec->addr == 0x10000 && v.code && !memcmp(v.code, code + 5, 64));
	r.code = code + 9;
	r.size = offsetof(struct dbgdyn_routine, bytes);
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK && read_one(&v) == 0);
	CHECK(v.code && !memcmp(v.code, code + 9, 64));
	fake_close(&fake);
	return 0;
}

/* From the hand-over on, and while a daemon is attached; else nobody needs them. */
static int records_travel_when_somebody_has_the_registry(void)
{
	struct dbgdyn_routine r = fake_routine("f", code, 64);
	struct wire_routine_view v;

	CHECK(open_all(FAKE_SOCKET) == 0);
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK && read_one(&v) == 0 && v.code);
	fake_attach(&fake, 1);
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK && read_one(&v) == 0 && v.code);
	fake_attach(&fake, 0);
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK);
	CHECK(fake_read(&fake, stream, sizeof(stream)) == 0);
	fake_attach(&fake, 1);
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK && read_one(&v) == 0 && v.code);
	CHECK(v.rec->seq == 4);
	fake_close(&fake);
	return 0;
}

/* Whether @r is told with @nr_lines, and dbgdyn_check says @text of the rest. */
static int told(const struct dbgdyn_routine *r, uint32_t nr_lines, const char *text)
{
	struct wire_routine_view v;
	char said[200];
	int nr = 0;

	for (const char *p = text; *p; p++)
		nr += *p == '\n';
	CHECK(dbgdyn_check(r, said, sizeof(said)) == nr && !strcmp(said, text));
	CHECK(dbgdyn_register(context, r, NULL) == DBGDYN_OK && read_one(&v) == 0);
	CHECK(v.rec->nr_lines == nr_lines && v.lines[0].line == 1 && v.code);
	return 0;
}

/* An odd entry costs itself alone, and its author can ask why. */
static int odd_entries_are_left_out(void)
{
	static const struct dbgdyn_line odd[] = {
		{ 0, 1, 0, 0, 0 }, { 4, 2, 0, 0, 0 },	{ 3, 3, 0, 0, 0 },
		{ 9, 4, 0, 0, 0 }, { 999, 5, 0, 0, 0 }, { 4, 6, 1, 0, 0 },
		{ 6, 0, 7, 0, 0 }, { 8, 0, 0, 0, 0 }, /* the end, as of DWARF */
	};
	struct dbgdyn_string file = { "a", 1 };
	struct dbgdyn_routine r = fake_routine("f", code, 8);
	struct wire_registry reg;
	char cut[20];

	CHECK(open_all(FAKE_SOCKET) == 0);
	r.files = &file;
	r.nr_files = 1;
	r.lines = odd;
	r.nr_lines = 8;
	CHECK(told(&r, 3,
		   "lines[2]: code_off is below that of a line before\n"
		   "lines[3]: code_off is behind the code\n"
		   "lines[4]: code_off is behind the code\n"
		   "lines[5]: there is no such file\n") == 0);
	fake_header(&fake, &reg);
	CHECK(reg.nr_left_out == 4);
	/* A text that is cut ends all the same. */
	memset(cut, 'x', sizeof(cut));
	CHECK(dbgdyn_check(&r, cut, sizeof(cut)) == 4);
	CHECK(!memcmp(cut, "lines[2]: code_off ", 20));
	CHECK(dbgdyn_check(&r, cut, 1) == 4 && !*cut && dbgdyn_check(&r, NULL, 0) == 4);
	r.nr_lines = 2;
	CHECK(told(&r, 2, "") == 0);
	file = (struct dbgdyn_string){ NULL, 1 };
	CHECK(told(&r, 2, "files[0]: it has a length, and no text\n") == 0);
	fake_close(&fake);
	return 0;
}

/* A table that can be told as it is, and the same with an entry that cannot. */
static int whole_tables_are_told_as_they_are(void)
{
	struct dbgdyn_line lines[] = {
		{ 0, 0, 0, 0, 0 },
		{ 2, 3, 1, 7, 2 },
		{ 2, 4, 0, 65535, 65535 },
		{ 7, 0, 0, 0, 0 },
	};
	static const struct dbgdyn_string files[] = { { "a", 1 }, { "bc", 2 } };
	struct dbgdyn_routine r = fake_routine("f", code, 8);
	struct wire_routine_view v;

	CHECK(open_all(FAKE_SOCKET) == 0);
	r.files = files;
	r.nr_files = 2;
	r.lines = lines;
	r.nr_lines = 4;
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK && read_one(&v) == 0);
	CHECK(v.rec->nr_lines == 4 && !memcmp(v.lines, lines, sizeof(lines)));
	/* Of no line, and yet a column: the column is not told. */
	lines[3].column = 9;
	CHECK(dbgdyn_check(&r, NULL, 0) == 0);
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK && read_one(&v) == 0);
	CHECK(v.rec->nr_lines == 4 && !memcmp(v.lines, lines, 3 * sizeof(*lines)));
	CHECK(v.lines[3].code_off == 7 && !v.lines[3].line && !v.lines[3].column);
	lines[1].file = 2;
	CHECK(dbgdyn_check(&r, NULL, 0) == 1);
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK && read_one(&v) == 0);
	CHECK(v.rec->nr_lines == 3 && v.lines[1].line == 4 && v.lines[1].column == 65535);
	fake_close(&fake);
	return 0;
}

struct own_line {
	struct dbgdyn_line line;
	void *node;
};
struct own_file {
	struct dbgdyn_string name;
	char kind;
};
struct own_inline {
	struct dbgdyn_inline in;
	uint32_t own[3];
};

/* The tables may be those of the runtime, whose entries begin with what is told. */
static int entries_may_begin_larger_ones(void)
{
	static const struct own_line lines[] = {
		{ .line = { .line = 3, .column = 7, .discriminator = 2 } },
		{ .line = { .code_off = 4, .line = 5, .file = 1, .column = 65535 } },
		{ .line = { .code_off = 6, .column = 9, .discriminator = 1 } }, /* no source */
	};
	static const struct own_file files[] = { { { "a", 1 }, 'x' }, { { "bc", 2 }, 'y' } };
	static const struct own_inline inlines[] = {
		{ .in = { 0, 2, { "g", 1 }, 1, 8, 0 }, .own = { 1, 2, 3 } },
		{ .in = { 2, 4, { "h", 1 }, 0, 9, 0 } },
	};
	struct dbgdyn_routine r = fake_routine("f", code, 8);
	struct wire_routine_view v;
	size_t len;

	CHECK(open_all(FAKE_SOCKET) == 0);
	r.lines = &lines->line;
	r.nr_lines = 3;
	r.line_stride = sizeof(*lines);
	r.files = &files->name;
	r.nr_files = 2;
	r.file_stride = sizeof(*files);
	r.inlines = &inlines->in;
	r.nr_inlines = 2;
	r.inline_stride = sizeof(*inlines);
	CHECK(dbgdyn_check(&r, NULL, 0) == 0);
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK && read_one(&v) == 0);
	CHECK(v.rec->nr_lines == 3 && v.rec->nr_files == 4 && v.rec->nr_inlines == 2);
	CHECK(v.lines[0].line == 3 && v.lines[0].column == 7 && v.lines[0].discriminator == 2);
	CHECK(v.lines[1].line == 5 && v.lines[1].file == 1 && v.lines[1].column == 65535);
	CHECK(v.lines[2].code_off == 6 && !v.lines[2].column && !v.lines[2].discriminator);
	CHECK(!memcmp(routine_file(&v, 1, &len), "bc", 2) && len == 2);
	CHECK(!memcmp(routine_file(&v, 3, &len), "h", 1) && v.inlines[1].call_line == 9);
	fake_close(&fake);
	return 0;
}

struct own_frame {
	struct dbgdyn_frame frame;
	double own;
};

/* Frames go into the ring and the heap, and along when the routine moves; odd ones are left out. */
static int frames_are_told(void)
{
	static const struct own_frame frames[] = {
		{ .frame = { .cfa_off = 96, .fp_off = -16, .link_off = -24 } },
		{ .frame = { .code_off = 8, .cfa_off = 96 } }, /* behind the code */
		{ .frame = { .code_off = 0, .cfa_off = 96 } }, /* not above */
		{ .frame = { .code_off = 1, .cfa_off = 12 } },
		{ .frame = { .code_off = 1, .cfa_off = 0 } },
		{ .frame = { .code_off = 1, .cfa_off = 96, .flags = 2 } },
		{ .frame = { .code_off = 1, .cfa_off = 96, .fp_off = -8 } },
		{ .frame = { .code_off = 1, .cfa_off = 96, .link_off = -104 } },
		{ .frame = { .code_off = 1, .cfa_off = 16, .flags = DBGDYN_FRAME_BY_FP } },
		{ .frame = { .code_off = 1,
			     .cfa_off = -8,
			     .flags = DBGDYN_FRAME_BY_FP,
			     .fp_off = DBGDYN_LOST,
			     .link_off = -800 } },
	};
	struct dbgdyn_routine r = fake_routine("f", code, 8);
	struct wire_routine_view v;
	struct wire_registry reg;
	dbgdyn_handle handle;
	char why[1000];
	uint64_t heap[16];

	CHECK(open_all(FAKE_SOCKET) == 0);
	r.frames = &frames->frame;
	r.nr_frames = 10;
	r.frame_stride = sizeof(*frames);
	CHECK(dbgdyn_check(&r, why, sizeof(why)) == 8);
	CHECK(strstr(why, "frames[1]: code_off is behind the code\n"
			  "frames[2]: code_off is not above that of a frame before\n"
			  "frames[3]: cfa_off is no multiple of 8") == why);
	CHECK(strstr(why, "frames[6]: fp_off is no place in the frame\n"
			  "frames[7]: link_off is no place in the frame\n"
			  "frames[8]: the frame pointer is not its caller's"));
	CHECK(dbgdyn_register(context, &r, &handle) == DBGDYN_OK && read_one(&v) == 0);
	CHECK(v.rec->head.flags & WIRE_ROUTINE_FRAMES && v.nr_frames == 2 && v.code);
	CHECK(v.frames[0].code_off == 0 && v.frames[0].cfa_off == 96 && v.frames[0].fp_off == -16 &&
	      v.frames[0].link_off == -24 && v.frames[0].flags == 0);
	CHECK(v.frames[1].code_off == 1 && v.frames[1].cfa_off == -8 &&
	      v.frames[1].fp_off == WIRE_FRAME_LOST && v.frames[1].flags == WIRE_FRAME_BY_FP);
	fake_header(&fake, &reg);
	CHECK(reg.nr_left_out == 8);
	CHECK(dbgdyn_move(context, handle, code + 64) == DBGDYN_OK);
	CHECK(pread(fake.fd, heap, sizeof(heap), (off_t)reg.heap_off) == sizeof(heap));
	CHECK(wire_routine_parse((const void *)&heap[1], &v) == 0 && v.nr_frames == 2);
	CHECK(v.rec->addr == (uintptr_t)(code + 64) && v.frames[1].link_off == -800);
	fake_read(&fake, stream, sizeof(stream));
	/* As a program that was compiled before there were frames. */
	r.size = offsetof(struct dbgdyn_routine, frames);
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK && read_one(&v) == 0);
	CHECK(!v.nr_frames && !(v.rec->head.flags & WIRE_ROUTINE_FRAMES));
	fake_close(&fake);
	return 0;
}

/* The next one of the ring's records, parsed. */
static int next_of(size_t len, size_t *pos, struct wire_routine_view *v)
{
	const struct wire_head *h = fake_next(stream, len, pos);

	CHECK(h && h->type == WIRE_ROUTINE && wire_routine_parse(h, v) == 0);
	return 0;
}

static bool is_named(const struct wire_routine_view *v, const char *name)
{
	return v->rec->name_len == strlen(name) && !memcmp(v->name, name, strlen(name));
}

/* How many routines the heap lists. */
static int listed(void)
{
	static _Alignas(8) uint8_t heap[64 << 10];
	struct wire_registry reg;
	int nr = 0;

	fake_header(&fake, &reg);
	if (pread(fake.fd, heap, reg.heap_end, (off_t)reg.heap_off) != (ssize_t)reg.heap_end)
		return -1;
	for (uint64_t at = 0; at < reg.heap_end;) {
		const struct wire_slot *slot = (const void *)(heap + at);

		nr += ((const struct wire_head *)(slot + 1))->type == WIRE_ROUTINE;
		at += slot->len;
	}
	return nr;
}

/* A routine in several ranges has one handle, and a name for each. */
static int parts_are_of_one_routine(void)
{
	static const struct dbgdyn_line lines[] = { { 0, 7, 0, 0, 0 }, { 4, 8, 0, 0, 0 } };
	static const struct dbgdyn_string file = { "a", 1 };
	struct dbgdyn_routine parts[] = {
		{ .size = sizeof(*parts),
		  .code = code + 4096,
		  .code_len = 8,
		  .lines = lines,
		  .nr_lines = 2,
		  .files = &file,
		  .nr_files = 1 },
		fake_routine("slow path", code + 8192, 16),
		{ .size = sizeof(*parts), .code = code, .code_len = 4 },
		{ .size = sizeof(*parts), .code = code + 12288, .code_len = 8 }
	};
	struct dbgdyn_routine r = fake_routine("f", code, 8);
	struct wire_routine_view v;
	struct wire_registry reg;
	size_t len, pos = 0;
	dbgdyn_handle handle;
	char why[200];

	CHECK(open_all(FAKE_SOCKET) == 0);
	r.parts = parts;
	r.nr_parts = 4;
	CHECK(dbgdyn_check(&r, why, sizeof(why)) == 1);
	CHECK(!strcmp(why, "parts[2]: it overlaps the routine, or a part before\n"));
	CHECK(dbgdyn_register(context, &r, &handle) == DBGDYN_OK && handle.id);
	len = fake_read(&fake, stream, sizeof(stream));
	CHECK(next_of(len, &pos, &v) == 0 && is_named(&v, "f") && v.rec->seq == 1);
	CHECK(next_of(len, &pos, &v) == 0 && is_named(&v, "f.cold") && v.rec->seq == 2);
	CHECK(v.rec->addr == (uintptr_t)(code + 4096) && v.rec->nr_lines == 2 &&
	      v.lines[1].line == 8 && v.code);
	CHECK(next_of(len, &pos, &v) == 0 && is_named(&v, "slow path") && v.rec->seq == 3);
	CHECK(next_of(len, &pos, &v) == 0 && is_named(&v, "f.cold.3") && pos == len);
	fake_header(&fake, &reg);
	CHECK(reg.seq == 4 && reg.nr_left_out == 1 && listed() == 4);
	CHECK(dbgdyn_move(context, handle, code + 64) == DBGDYN_EINVAL);
	/* All but one that other code took go with the handle. */
	r = fake_routine("g", code + 8200, 4);
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK && listed() == 4);
	CHECK(dbgdyn_retire(context, handle) == DBGDYN_OK && listed() == 1);
	fake_header(&fake, &reg);
	CHECK(reg.seq == 8 && dbgdyn_retire(context, handle) == DBGDYN_EINVAL);
	fake_close(&fake);
	return 0;
}

/* A fault of a part costs that part; those of its tables are explained as its own. */
static int odd_parts_are_left_out(void)
{
	static const struct dbgdyn_line odd[] = { { 9, 1, 0, 0, 0 } };
	static char name[WIRE_NAME_MAX];
	struct dbgdyn_routine parts[] = {
		{ .size = sizeof(*parts),
		  .code = code + 64,
		  .code_len = 8,
		  .lines = odd,
		  .nr_lines = 1 },
		{ .size = sizeof(*parts), .code = code + 128 },
		{ .size = sizeof(*parts), .code = code + 71, .code_len = 2 },
	};
	struct dbgdyn_routine r = fake_routine("f", code, 8);
	struct wire_routine_view v;
	dbgdyn_handle handles[2];
	size_t len, pos = 0;
	char why[400];

	CHECK(open_all(FAKE_SOCKET) == 0);
	r.parts = parts;
	r.nr_parts = 3;
	CHECK(dbgdyn_check(&r, why, sizeof(why)) == 3);
	CHECK(!strcmp(why, "parts[0].lines[0]: code_off is behind the code\n"
			   "parts[1]: code and code_len are no range of addresses\n"
			   "parts[2]: it overlaps the routine, or a part before\n"));
	memset(name, 'x', sizeof(name));
	r.name = (struct dbgdyn_string){ name, sizeof(name) };
	CHECK(dbgdyn_register(context, &r, &handles[0]) == DBGDYN_OK);
	len = fake_read(&fake, stream, sizeof(stream));
	CHECK(next_of(len, &pos, &v) == 0 && v.rec->name_len == sizeof(name));
	CHECK(next_of(len, &pos, &v) == 0 && v.rec->name_len == sizeof(name) && pos == len);
	CHECK(!memcmp(v.name + sizeof(name) - 6, "x.cold", 6) && !v.rec->nr_lines);
	/* As a program that was compiled before there were parts. */
	r.size = offsetof(struct dbgdyn_routine, parts);
	CHECK(dbgdyn_check(&r, NULL, 0) == 0);
	CHECK(dbgdyn_register(context, &r, &handles[1]) == DBGDYN_OK && read_one(&v) == 0);
	CHECK(dbgdyn_retire(context, handles[1]) == DBGDYN_OK && listed() == 1);
	fake_close(&fake);
	return 0;
}

static int bad_arguments_are_refused(void)
{
	static const struct dbgdyn_line lines[] = { { 0, 1, 0, 0, 0 } };
	static char long_name[70000], why[100];
	static const struct dbgdyn_routine small = { .size = 16 };
	struct dbgdyn_string file = { "a", 1 };
	struct dbgdyn_routine good = fake_routine("f", code, 8), r;
	struct wire_routine_view v;

	CHECK(open_all(FAKE_SOCKET) == 0);
	CHECK(dbgdyn_register((dbgdyn_context){ 0 }, &good, NULL) == DBGDYN_EREFUSED);
	CHECK(dbgdyn_register((dbgdyn_context){ context.id ^ 1 }, &good, NULL) == DBGDYN_EREFUSED);
	CHECK(dbgdyn_register(context, NULL, NULL) == DBGDYN_EINVAL);
#define BAD(change)                                                                                \
	do {                                                                                       \
		r = good;                                                                          \
		r.files = &file;                                                                   \
		r.nr_files = 1;                                                                    \
		change;                                                                            \
		CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_EINVAL);                        \
		CHECK(dbgdyn_check(&r, why, sizeof(why)) == DBGDYN_EINVAL);                        \
		CHECK(strlen(why) > 5 && why[strlen(why) - 1] == '\n');                            \
	} while (0)
	BAD(r.size = offsetof(struct dbgdyn_routine, inlines) - 1);
	BAD(r.name.len = 0);
	BAD(r.name.text = NULL);
	BAD(r.code = NULL);
	BAD(r.code_len = 0);
	BAD(r.code_len = (16u << 20) + 1);
	BAD(r.code = (void *)(UINTPTR_MAX - 3));
	BAD(r.nr_lines = 1);
	BAD(r.files = NULL);
	BAD(r.nr_files = SIZE_MAX);
	BAD((r.lines = lines, r.nr_lines = SIZE_MAX));
	BAD(r.line_stride = sizeof(*lines) - 4);
	BAD(r.line_stride = sizeof(*lines) + 2);
	BAD(r.file_stride = sizeof(file) + 4);
	BAD(r.inline_stride = 4);
	BAD(r.nr_frames = 1);
	BAD(r.frame_stride = 20);
	BAD(r.nr_parts = 1);
	BAD((r.parts = &small, r.nr_parts = 1));
	BAD((r.parts = &good, r.nr_parts = 65));
	memset(long_name, 'x', sizeof(long_name));
	good.name = (struct dbgdyn_string){ long_name, sizeof(long_name) };
	file = (struct dbgdyn_string){ long_name, 65536 }; /* one too many */
	good.files = &file;
	good.nr_files = 1;
	CHECK(dbgdyn_check(&good, why, sizeof(why)) == 1 && !strncmp(why, "files[0]: ", 10));
	CHECK(dbgdyn_register(context, &good, NULL) == DBGDYN_OK && read_one(&v) == 0);
	CHECK(v.rec->name_len == 4095 && v.files_len == 65537);
	fake_close(&fake);
	return 0;
}

/* Records of every length, thrice round the ring: each arrives once, in order, whole. */
static int ring_goes_round(void)
{
	uint64_t sent = 0, got = 0;
	struct wire_registry reg;

	CHECK(open_all(FAKE_SOCKET) == 0);
	do {
		struct dbgdyn_routine r = fake_routine("round", code + sent % 91, sent % 9973 + 1);
		const struct wire_head *h;
		size_t len;

		CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK);
		sent++;
		if (sent % 37)
			continue;
		len = fake_read(&fake, stream, sizeof(stream));
		size_t pos = 0;

		while ((h = fake_next(stream, len, &pos))) {
			struct wire_routine_view v;

			CHECK(wire_routine_parse(h, &v) == 0 && v.rec->seq == got + 1);
			CHECK(v.rec->code_len == got % 9973 + 1);
			CHECK(!memcmp(v.code, code + got % 91, v.rec->code_len));
			got++;
		}
		CHECK(pos == len && got == sent);
		fake_header(&fake, &reg);
	} while (sent % 37 || reg.head < 3ull * RING_LEN);
	CHECK(reg.nr_dropped == 0);
	fake_close(&fake);
	return 0;
}

/* What finds the ring full is known by the heap alone: no error, and nothing dropped. */
static int a_full_ring_leaves_a_gap(void)
{
	struct dbgdyn_routine r = fake_routine("full", code, 100000);
	struct wire_registry reg, before;
	const struct wire_head *h;
	size_t len, pos = 0, whole = 0, bare = 0;

	CHECK(open_all(FAKE_SOCKET | FAKE_QUEUE) == 0 && fake_bells(&fake) == 1);
	fake_header(&fake, &reg);
	do {
		before = reg;
		CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK);
		fake_header(&fake, &reg);
		CHECK(reg.seq == before.seq + 1);
	} while (reg.head != before.head);
	CHECK(fake_bells(&fake) == 2); /* for the arena, and at half full, once */
	CHECK(reg.nr_dropped == 0 && reg.nr_unlisted == 0);
	len = fake_read(&fake, stream, sizeof(stream));
	while ((h = fake_next(stream, len, &pos))) {
		struct wire_routine_view v;

		CHECK(wire_routine_parse(h, &v) == 0);
		*(v.code ? &whole : &bare) += 1;
	}
	/* Where the bytes do not fit, the record goes without. */
	CHECK(pos == len && whole == RING_LEN / 100080 && bare > 1000);
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK);
	len = fake_read(&fake, stream, sizeof(stream));
	pos = 0;
	h = fake_next(stream, len, &pos);
	CHECK(h && ((const struct wire_routine *)(const void *)h)->seq == reg.seq + 1);
	CHECK(dbgdyn_flush((dbgdyn_context){ 0 }) == DBGDYN_EREFUSED);
	fake_close(&fake);
	return 0;
}

static int code_longer_than_the_ring_goes_without(void)
{
	struct dbgdyn_routine r = fake_routine("long", code, 16u << 20);
	struct wire_routine_view v;

	CHECK(open_all(FAKE_SOCKET) == 0);
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK && read_one(&v) == 0);
	CHECK(!v.code && v.rec->code_len == 16u << 20);
	fake_close(&fake);
	return 0;
}

/* Longer than what is left behind it, and than what a pad of that would leave. */
static int a_long_record_waits_for_the_rings_start(void)
{
	static const struct dbgdyn_line lines[200000];
	struct dbgdyn_routine r = fake_routine("long", code, 64);
	struct wire_routine_view v;
	struct wire_registry reg;

	CHECK(open_all(FAKE_SOCKET) == 0);
	r.lines = lines;
	r.nr_lines = 160000;
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK && read_one(&v) == 0);
	r.nr_lines = 200000;
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK);
	fake_header(&fake, &reg);
	CHECK(reg.head % RING_LEN == 0 && reg.seq == 2);
	fake_read(&fake, stream, sizeof(stream));
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK && read_one(&v) == 0);
	CHECK(v.code && v.rec->nr_lines == r.nr_lines);
	fake_close(&fake);
	return 0;
}

/* The daemon's line is only believed where it makes sense: the ring is then as good as full. */
static int a_mad_tail_harms_nothing(void)
{
	struct dbgdyn_routine r = fake_routine("f", code, 64);
	struct wire_registry reg;

	CHECK(open_all(FAKE_SOCKET) == 0);
	for (uint64_t tail = 8; tail; tail <<= 8) {
		CHECK(pwrite(fake.fd, &tail, 8, offsetof(struct wire_registry, tail)) == 8);
		CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK);
	}
	fake_header(&fake, &reg);
	CHECK(reg.head == 0 && reg.seq == 8);
	fake_close(&fake);
	return 0;
}

#define NR_THREADS 4
#define NR_EACH	   20000

#define NR_AHEAD 3000 /* records that the ring holds for sure */

static pthread_barrier_t together;
static int sent, got;

static void *register_many(void *arg)
{
	int thread = (int)(intptr_t)arg;
	char name[32];

	pthread_barrier_wait(&together);
	for (int i = 0; i < NR_EACH;) {
		struct dbgdyn_routine r;

		while (__atomic_load_n(&sent, __ATOMIC_RELAXED) -
			       __atomic_load_n(&got, __ATOMIC_RELAXED) >=
		       NR_AHEAD)
			sched_yield();
		__atomic_fetch_add(&sent, 1, __ATOMIC_RELAXED);

		snprintf(name, sizeof(name), "thread %d %d", thread, i);
		r = fake_routine(name, code + thread, (size_t)(i % 1200) + 1);
		i += dbgdyn_register(context, &r, NULL) == DBGDYN_OK;
	}
	return NULL;
}

static int seen[NR_THREADS];
static uint8_t handles[NR_THREADS * NR_EACH + 1];

static int check_thread_record(const struct wire_head *h)
{
	struct wire_routine_view v;
	char name[64] = "";
	int thread, i;

	CHECK(wire_routine_parse(h, &v) == 0 && v.rec->name_len < sizeof(name));
	memcpy(name, v.name, v.rec->name_len);
	CHECK(sscanf(name, "thread %d %d", &thread, &i) == 2 && thread < NR_THREADS);
	CHECK(i == seen[thread]++ && v.rec->code_len == (size_t)(i % 1200) + 1);
	CHECK(!v.code || !memcmp(v.code, code + thread, v.rec->code_len));
	CHECK(v.rec->seq < sizeof(handles) && !handles[v.rec->seq]++);
	return 0;
}

/* Every record of every thread arrives once and whole, in the thread's order. */
static int threads_need_no_lock(void)
{
	pthread_t thread[NR_THREADS];

	CHECK(open_all(FAKE_SOCKET) == 0);
	CHECK(!pthread_barrier_init(&together, NULL, NR_THREADS));
	for (int i = 0; i < NR_THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, register_many, (void *)(intptr_t)i));
	while (got < NR_THREADS * NR_EACH) {
		size_t len = fake_read(&fake, stream, sizeof(stream)), pos = 0;
		const struct wire_head *h;

		while ((h = fake_next(stream, len, &pos))) {
			CHECK(check_thread_record(h) == 0);
			__atomic_fetch_add(&got, 1, __ATOMIC_RELAXED);
		}
		CHECK(pos == len);
	}
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(thread[i], NULL);
	CHECK(fake_read(&fake, stream, sizeof(stream)) == 0);
	fake_close(&fake);
	return 0;
}

FAKE_TEST(record_holds_everything)
FAKE_TEST(many_at_once)
FAKE_TEST(changes_have_times)
FAKE_TEST(entries_may_begin_larger_ones)
FAKE_TEST(frames_are_told)
FAKE_TEST(bytes_may_stand_elsewhere)
FAKE_TEST(records_travel_when_somebody_has_the_registry)
FAKE_TEST(odd_entries_are_left_out)
FAKE_TEST(whole_tables_are_told_as_they_are)
FAKE_TEST(parts_are_of_one_routine)
FAKE_TEST(odd_parts_are_left_out)
FAKE_TEST(bad_arguments_are_refused)
FAKE_TEST(ring_goes_round)
FAKE_TEST(a_full_ring_leaves_a_gap)
FAKE_TEST(code_longer_than_the_ring_goes_without)
FAKE_TEST(a_long_record_waits_for_the_rings_start)
FAKE_TEST(a_mad_tail_harms_nothing)
FAKE_TEST(threads_need_no_lock)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_record_holds_everything),
		cmocka_unit_test(test_many_at_once),
		cmocka_unit_test(test_changes_have_times),
		cmocka_unit_test(test_bytes_may_stand_elsewhere),
		cmocka_unit_test(test_records_travel_when_somebody_has_the_registry),
		cmocka_unit_test(test_odd_entries_are_left_out),
		cmocka_unit_test(test_whole_tables_are_told_as_they_are),
		cmocka_unit_test(test_entries_may_begin_larger_ones),
		cmocka_unit_test(test_frames_are_told),
		cmocka_unit_test(test_parts_are_of_one_routine),
		cmocka_unit_test(test_odd_parts_are_left_out),
		cmocka_unit_test(test_bad_arguments_are_refused),
		cmocka_unit_test(test_ring_goes_round),
		cmocka_unit_test(test_a_full_ring_leaves_a_gap),
		cmocka_unit_test(test_code_longer_than_the_ring_goes_without),
		cmocka_unit_test(test_a_long_record_waits_for_the_rings_start),
		cmocka_unit_test(test_a_mad_tail_harms_nothing),
		cmocka_unit_test(test_threads_need_no_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
