/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pseudo-image becomes a job again: its note's records, what the application owned, and each
 * symbol as a routine. Routines that DST brought stand in owned ranges, and come from it again.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pseudoimg_internal.h"

enum { NOTE_MOST = 256 << 20 };

struct reader {
	struct pseudoimg_file file;
	struct pseudoimg_dies dies;
	struct pseudoimg_sink *out;
	uint64_t *note; /* the descriptor, aligned */
	size_t note_len;
	PSEUDOIMG_ARRAY(struct pseudoimg_span) owned; /* where DST may have routines */
	bool has_dst;
	struct base_buf name, lines, inlines, files, record;
	uint32_t stamp;
};

/* ---- the note -------------------------------------------------------------------------------- */

static int read_note(struct reader *rd)
{
	struct pseudoimg_bytes b = { 0 };
	Elf64_Nhdr nh = { 0 };
	uint8_t owner[8];
	uint64_t len = rd->file.note.len, head = sizeof(nh) + sizeof(owner);
	int r;

	if (len < head || len > NOTE_MOST)
		return -DCPI_EFORMAT;
	r = pseudoimg_file_bytes(&rd->file.note, rd->file.fd, &b);
	if (r >= 0)
		r = pseudoimg_bytes_get(&b, &nh, sizeof(nh));
	if (r >= 0)
		r = pseudoimg_bytes_get(&b, owner, sizeof(owner));
	if (r >= 0 && (nh.n_namesz != sizeof(PSEUDOIMG_NOTE_OWNER) ||
		       nh.n_type != PSEUDOIMG_NOTE_TYPE || nh.n_descsz > len - head))
		r = -DCPI_EFORMAT;
	if (r >= 0) {
		rd->note_len = nh.n_descsz;
		rd->note = malloc(rd->note_len + 8);
		r = rd->note ? pseudoimg_bytes_get(&b, rd->note, rd->note_len) : -ENOMEM;
	}
	pseudoimg_bytes_close(&b);
	return r;
}

static int put(struct reader *rd, const void *data, size_t len)
{
	int r = base_buf_append(&rd->out->b, data, len);

	return r < 0 ? r : pseudoimg_sink_drain(rd->out);
}

/* The image itself is one that the next one replaces: profiles may name it. */
static int put_own_id(struct reader *rd)
{
	struct wire_replaces rec = { .head = { .len = sizeof(rec), .type = WIRE_REPLACES } };
	struct pseudoimg_job j;
	int r;

	if (rd->file.id.len != sizeof(Elf64_Nhdr) + 4 + sizeof(rec.id))
		return 0;
	pseudoimg_job_of_part(&j, rd->file.fd, rd->file.id.off, rd->file.id.len);
	r = pseudoimg_job_read(&j, sizeof(Elf64_Nhdr) + 4, rec.id, sizeof(rec.id));
	return r < 0 ? r : put(rd, &rec, sizeof(rec));
}

/* ---- owned ranges ---------------------------------------------------------------------------- */

/* @len bytes at @off of the range: by @get, in records that are not too long. */
static int put_bytes(struct reader *rd, const struct wire_range *range, uint64_t len,
		     int (*get)(struct reader *, uint64_t from, void *out, size_t len),
		     uint64_t from)
{
	uint64_t done = 0;
	int r = 0;

	do {
		size_t n = len - done < WIRE_BYTES_MOST ? (size_t)(len - done) : WIRE_BYTES_MOST;
		const struct wire_bytes rec = {
			.head = { .len = (uint32_t)base_align_up(sizeof(rec) + n, 8),
				  .type = WIRE_BYTES },
			.facility = range->facility,
			.kind = range->kind,
			.vaddr = range->base + done,
			.bytes_len = n,
			.range_base = range->base,
			.range_len = range->len,
		};
		void *space;

		r = base_buf_append(&rd->out->b, &rec, sizeof(rec));
		if (r >= 0)
			r = base_buf_extend(&rd->out->b, rec.head.len - sizeof(rec), &space);
		if (r >= 0)
			r = get(rd, from + done, space, n);
		if (r >= 0)
			r = pseudoimg_sink_drain(rd->out);
		done += n;
	} while (r >= 0 && done < len);
	return r;
}

static int get_code(struct reader *rd, uint64_t vaddr, void *out, size_t len)
{
	return pseudoimg_file_code(&rd->file, vaddr, out, len);
}

static int get_dst(struct reader *rd, uint64_t off, void *out, size_t len)
{
	struct pseudoimg_job j;

	pseudoimg_job_of_part(&j, rd->file.fd, rd->file.dst.off, rd->file.dst.len);
	return pseudoimg_job_read(&j, off, out, len);
}

static int put_range(struct reader *rd, const struct wire_range_rec *rec, uint64_t *dst)
{
	const struct wire_range *range = &rec->range;
	struct pseudoimg_span *owned;
	int r;

	if (range->kind == WIRE_RANGE_DST) {
		if (*dst > rd->file.dst.len || rec->dst_len > rd->file.dst.len - *dst ||
		    rec->dst_len > range->len)
			return -DCPI_EFORMAT;
		rd->has_dst = true;
		r = put_bytes(rd, range, rec->dst_len, get_dst, *dst);
		*dst += rec->dst_len;
		return r;
	}
	owned = PSEUDOIMG_PUSH(&rd->owned);
	if (!owned)
		return -ENOMEM;
	*owned = (struct pseudoimg_span){ .start = range->base, .len = range->len };
	return put_bytes(rd, range, pseudoimg_file_range(&rd->file, range->base, range->len),
			 get_code, range->base);
}

static int put_note(struct reader *rd)
{
	const struct wire_head *rec;
	uint64_t dst = 0;
	size_t pos = 0;
	bool first = true;
	int r = 0;

	while (r >= 0 && (rec = wire_next(rd->note, rd->note_len, &pos))) {
		if (wire_check(rec) < 0 || first != (rec->type == WIRE_IMAGE))
			return -DCPI_EFORMAT;
		first = false;
		if (rec->type == WIRE_RANGE)
			r = put_range(rd, (const void *)rec, &dst);
		else if (rec->type != WIRE_ROUTINE && rec->type != WIRE_BYTES)
			r = put(rd, rec, rec->len);
	}
	if (r >= 0 && (first || pos != rd->note_len))
		r = -DCPI_EFORMAT;
	return r < 0 ? r : put_own_id(rd);
}

/* ---- routines -------------------------------------------------------------------------------- */

static bool from_dst(const struct reader *rd, const Elf64_Sym *sym)
{
	for (size_t i = 0; rd->has_dst && i < rd->owned.nr; i++)
		if (sym->st_value - rd->owned.v[i].start < rd->owned.v[i].len)
			return true;
	return false;
}

/* The record's own number for a name, which is added to its files where it is new. */
static int number(struct reader *rd, uint32_t index, uint32_t *nr_files, uint32_t *out)
{
	struct pseudoimg_name *name = &rd->dies.names.v.v[index];
	const char *text = pseudoimg_names_text(&rd->dies.names, index);
	size_t len = strlen(text);
	uint8_t head[2] = { (uint8_t)len, (uint8_t)(len >> 8) };
	int r = 0;

	if (name->stamp != rd->stamp) {
		name->stamp = rd->stamp;
		name->local = (*nr_files)++;
		r = base_buf_append(&rd->files, head, sizeof(head));
		if (r >= 0)
			r = base_buf_append(&rd->files, text, len);
	}
	*out = name->local;
	return r;
}

static int number_all(struct reader *rd, uint32_t *nr_files)
{
	struct wire_line *lines = (void *)rd->lines.data;
	struct wire_inline *inlines = (void *)rd->inlines.data;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < rd->lines.len / sizeof(*lines); i++)
		if (lines[i].line)
			r = number(rd, lines[i].file, nr_files, &lines[i].file);
	for (size_t i = 0; r >= 0 && i < rd->inlines.len / sizeof(*inlines); i++) {
		r = number(rd, inlines[i].name, nr_files, &inlines[i].name);
		if (r >= 0 && inlines[i].call_line)
			r = number(rd, inlines[i].call_file, nr_files, &inlines[i].call_file);
	}
	return r;
}

static int pad(struct base_buf *b)
{
	void *space;

	return base_buf_extend(b, -b->len & 7, &space);
}

static int make_record(struct reader *rd, const Elf64_Sym *sym, uint64_t seq)
{
	struct wire_routine rec = {
		.head = { .type = WIRE_ROUTINE, .flags = WIRE_ROUTINE_CODE },
		.seq = seq,
		.addr = sym->st_value,
		.code_len = sym->st_size,
		.name_len = (uint32_t)rd->name.len - 1,
		.nr_lines = (uint32_t)(rd->lines.len / sizeof(struct wire_line)),
		.nr_inlines = (uint32_t)(rd->inlines.len / sizeof(struct wire_inline)),
	};
	struct base_buf *b = &rd->record;
	void *code;
	int r;

	base_buf_clear(b);
	base_buf_clear(&rd->files);
	rd->stamp++;
	r = number_all(rd, &rec.nr_files);
	if (r >= 0)
		r = base_buf_append(b, &rec, sizeof(rec));
	if (r >= 0)
		r = base_buf_append(b, rd->name.data, rec.name_len);
	if (r >= 0)
		r = base_buf_extend(b, sym->st_size, &code);
	if (r >= 0)
		r = pseudoimg_file_code(&rd->file, sym->st_value, code, sym->st_size);
	if (r >= 0)
		r = pad(b);
	if (r >= 0)
		r = base_buf_append(b, rd->lines.data, rd->lines.len);
	if (r >= 0)
		r = base_buf_append(b, rd->inlines.data, rd->inlines.len);
	if (r >= 0)
		r = base_buf_append(b, rd->files.data, rd->files.len);
	return r < 0 ? r : pad(b);
}

static int put_symbol(struct reader *rd, const Elf64_Sym *sym, uint64_t seq)
{
	struct wire_routine_view view;
	struct wire_head *head;
	int r;

	if (!sym->st_size || sym->st_size > WIRE_CODE_MAX)
		return -DCPI_EFORMAT;
	base_buf_clear(&rd->lines);
	base_buf_clear(&rd->inlines);
	r = pseudoimg_dies_inlines(&rd->dies, sym->st_value, sym->st_size, &rd->inlines);
	if (r < 0 || from_dst(rd, sym))
		return r;
	r = pseudoimg_dies_lines(&rd->dies, sym->st_value, sym->st_size, &rd->lines);
	if (r >= 0)
		r = make_record(rd, sym, seq);
	if (r < 0)
		return r;
	head = (void *)rd->record.data;
	if (rd->record.len > WIRE_RECORD_MAX)
		return -DCPI_EFORMAT;
	head->len = (uint32_t)rd->record.len;
	if (wire_routine_parse(head, &view) < 0)
		return -DCPI_EFORMAT;
	return put(rd, rd->record.data, rd->record.len);
}

static int put_symbols(struct reader *rd)
{
	uint64_t nr = rd->file.symbols.len / sizeof(Elf64_Sym);
	struct pseudoimg_bytes symbols = { 0 }, names = { 0 };
	Elf64_Sym sym;
	int r = pseudoimg_file_bytes(&rd->file.symbols, rd->file.fd, &symbols);

	if (r >= 0)
		r = pseudoimg_file_bytes(&rd->file.strings, rd->file.fd, &names);
	for (size_t i = 0; r >= 0 && nr && i < sizeof(sym); i++)
		pseudoimg_bytes_u8(&symbols);
	for (uint64_t i = 1; r >= 0 && i < nr; i++) {
		uint8_t *to = (void *)&sym;

		for (size_t k = 0; k < sizeof(sym); k++)
			to[k] = pseudoimg_bytes_u8(&symbols);
		if (symbols.bad) {
			r = -DCPI_EFORMAT;
			break;
		}
		base_buf_clear(&rd->name);
		pseudoimg_bytes_seek(&names, sym.st_name);
		r = pseudoimg_bytes_string(&names, &rd->name);
		if (r >= 0 && rd->name.len - 1 > WIRE_NAME_MAX)
			r = -DCPI_EFORMAT;
		if (r >= 0)
			r = put_symbol(rd, &sym, i);
	}
	pseudoimg_bytes_close(&symbols);
	pseudoimg_bytes_close(&names);
	return r;
}

static void release(struct reader *rd)
{
	pseudoimg_dies_close(&rd->dies);
	pseudoimg_file_close(&rd->file);
	base_buf_release(&rd->name);
	base_buf_release(&rd->lines);
	base_buf_release(&rd->inlines);
	base_buf_release(&rd->files);
	base_buf_release(&rd->record);
	free(rd->owned.v);
	free(rd->note);
}

int pseudoimg_read(int fd, struct pseudoimg_sink *out, struct base_err *err)
{
	struct reader rd = { .out = out };
	int r = pseudoimg_file_open(&rd.file, fd, err);

	if (r < 0)
		return r;
	r = pseudoimg_dies_open(&rd.dies, &rd.file);
	if (r >= 0)
		r = read_note(&rd);
	if (r >= 0)
		r = put_note(&rd);
	if (r >= 0)
		r = put_symbols(&rd);
	release(&rd);
	return r < 0 ? base_fail_errno(err, r, "cannot read pseudo-image") : 0;
}
