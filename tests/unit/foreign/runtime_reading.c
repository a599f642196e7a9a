/* SPDX-License-Identifier: BSD-2-Clause */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime_reading.h"

enum { HOLE = 0x666000 };

void reading_begin(struct reading *rd, runtime_read_fn *read)
{
	*rd = (struct reading){ .read = read,
				.file = { .fd = memfd_create("runtime", MFD_CLOEXEC),
					  .machine = EM_X86_64,
					  .deadline_ns = UINT64_MAX,
					  .answer_max = SIZE_MAX },
				.time_ns = UINT64_MAX };
	assert_true(rd->file.fd >= 0);
}

void reading_end(struct reading *rd)
{
	close(rd->file.fd);
	base_buf_release(&rd->text);
}

static ssize_t read_memory(void *ctx, uint64_t addr, void *to, size_t len)
{
	uint8_t *p = to;

	(void)ctx;
	if (addr < HOLE + WIRE_PAGE && addr + len > HOLE)
		return -EFAULT;
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(addr + i);
	return (ssize_t)len;
}

void reading_use_memory(struct reading *rd)
{
	rd->file.read = read_memory;
}

void reading_write(struct reading *rd, const void *data, size_t len)
{
	off_t end = lseek(rd->file.fd, 0, SEEK_END);

	assert_int_equal(pwrite(rd->file.fd, data, len, end), len);
}

void reading_resize(struct reading *rd, uint64_t len)
{
	assert_int_equal(ftruncate(rd->file.fd, (off_t)len), 0);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void put_code(struct base_buf *text, uint16_t flags, const uint8_t *code, uint64_t len)
{
	if (!(flags & WIRE_ROUTINE_CODE)) {
		assert_false(flags & WIRE_ROUTINE_FETCHED);
		return;
	}
	base_buf_printf(text, " %s %02x%02x", flags & WIRE_ROUTINE_FETCHED ? "fetched" : "code",
			code[0], code[len - 1]);
}

static void put_line(struct base_buf *text, const struct wire_routine_view *v,
		     const struct wire_line *line)
{
	const char *name = NULL;
	size_t pos = 0, len = 0;

	if (!line->line) {
		base_buf_printf(text, " +%x=?", line->code_off);
		return;
	}
	for (uint32_t i = 0; i <= line->file; i++)
		name = wire_file_next(v, &pos, &len);
	assert_non_null(name);
	base_buf_printf(text, " +%x=%.*s:%u", line->code_off, (int)len, name, line->line);
}

static void put_routine(struct base_buf *text, const struct wire_head *head)
{
	struct wire_routine_view v;

	assert_int_equal(wire_routine_parse(head, &v), 0);
	assert_int_equal(v.rec->facility, 0);
	assert_int_equal(v.rec->part, 0);
	base_buf_printf(text, "%" PRIu64 " routine %" PRIx64 "+%" PRIx64 " ", v.rec->seq,
			v.rec->addr, v.rec->code_len);
	base_buf_append(text, v.name, v.rec->name_len);
	put_code(text, head->flags, v.code, v.rec->code_len);
	for (uint32_t i = 0; i < v.rec->nr_lines; i++)
		put_line(text, &v, &v.lines[i]);
	for (size_t i = 0; i < v.nr_frames; i++)
		base_buf_printf(text, " frame +%x %s%+d rbp %d rbx %d", v.frames[i].code_off,
				v.frames[i].flags & WIRE_FRAME_BY_FP ? "rbp" : "rsp",
				v.frames[i].cfa_off, v.frames[i].fp_off, v.frames[i].link_off);
	base_buf_append(text, "\n", 1);
}

static void put_move(struct base_buf *text, const struct wire_head *head)
{
	const struct wire_move *m = (const void *)head;

	assert_int_equal(wire_check(head), 0);
	assert_int_equal(m->handle, 0);
	base_buf_printf(text, "%" PRIu64 " move %" PRIx64 " %" PRIx64 "+%" PRIx64, m->seq, m->from,
			m->to, m->code_len);
	put_code(text, head->flags, (const uint8_t *)(m + 1), m->code_len);
	base_buf_append(text, "\n", 1);
}

static void put_time(struct reading *rd, const struct wire_head *head)
{
	uint64_t time_ns = ((const struct wire_time *)(const void *)head)->time_ns;

	assert_int_equal(wire_check(head), 0);
	if (time_ns != rd->time_ns)
		base_buf_printf(&rd->text, "time %" PRIu64 "\n", time_ns);
	rd->time_ns = time_ns;
}

static void put_record(struct reading *rd, const struct wire_head *head)
{
	switch (head->type) {
	case WIRE_TIME:
		put_time(rd, head);
		break;
	case WIRE_ROUTINE:
		put_routine(&rd->text, head);
		break;
	case WIRE_MOVE:
		put_move(&rd->text, head);
		break;
	default:
		fail_msg("a record of type %u", head->type);
	}
}

/* ---- reading --------------------------------------------------------------------------------- */

int reading_step(struct reading *rd)
{
	struct foreign_place before = rd->place;
	struct base_buf out = { 0 };
	const struct wire_head *head;
	size_t pos = 0;
	int r = rd->read(&rd->file, &rd->place, &out);

	rd->nr_calls++;
	if (r < 0) {
		assert_int_equal(out.len, 0);
		assert_memory_equal(&rd->place, &before, sizeof(before));
	}
	while ((head = wire_next(out.data, out.len, &pos)))
		put_record(rd, head);
	assert_int_equal(pos, out.len);
	rd->nr_bad += r > 0 ? (uint64_t)r : 0;
	base_buf_release(&out);
	return r < 0 ? r : 0;
}

int reading_run(struct reading *rd)
{
	int r;

	do
		r = reading_step(rd);
	while (r == 0 && !rd->place.at_end);
	return r;
}

void reading_check(struct reading *rd, const char *text)
{
	assert_int_equal(base_buf_append(&rd->text, "", 1), 0);
	assert_string_equal((const char *)rd->text.data, text);
	base_buf_clear(&rd->text);
}
