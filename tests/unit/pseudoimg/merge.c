/* SPDX-License-Identifier: BSD-2-Clause */
/* Images read back are the jobs that they were made of; several become one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

#include "dst_bytes.h"
#include "image.h"
#include "pseudoimg_internal.h"

static const uint8_t code[] = { 0x55, 0x90, 0x90, 0x90, 0xc3 };

static void put_head(struct base_buf *job, uint32_t pid)
{
	job_image(job, &(struct job_image){ .machine = 62,
					    .facility = "jit",
					    .host = "h",
					    .exe = "/x",
					    .pid = pid,
					    .uid = 1000 + pid,
					    .start_time_ns = 2000 + pid,
					    .created_s = 3000 + pid });
}

/* A routine whose lines leave gaps, with parts inlined into parts; what it is, is its name. */
static void put(struct base_buf *job, uint64_t addr, const char *name)
{
	static const struct wire_line lines[] = {
		{ .code_off = 1, .line = 3, .column = 7 },
		{ .code_off = 2, .line = 300, .file = 1, .column = 65535, .discriminator = 300 },
		{ .code_off = 2, .line = 301, .file = 1, .discriminator = 65535 },
		{ .code_off = 3 },
	};
	static const struct wire_inline inlines[] = {
		{ .code_off = 0, .code_len = 4, .name = 2, .call_line = 7 },
		{ .code_off = 1,
		  .code_len = 1,
		  .name = 3,
		  .call_file = 1,
		  .call_line = 8,
		  .depth = 1 },
		{ .code_off = 2, .code_len = 2, .name = 2, .depth = 1 },
		{ .code_off = 4, .code_len = 1, .name = 4, .call_file = 4, .call_line = 1 },
	};
	static const char *const files[] = { "/a\n", "/b", "mid", "leaf", "", NULL };

	job_routine(job, &(struct job_routine){ .addr = addr,
						.name = name,
						.code = code,
						.code_len = sizeof(code),
						.lines = lines,
						.nr_lines = 4,
						.inlines = inlines,
						.nr_inlines = 4,
						.files = files });
}

static void put_plain(struct base_buf *job, uint64_t addr, const char *name)
{
	job_routine(job, &(struct job_routine){ .addr = addr,
						.name = name,
						.code = *name == 'z' ? NULL : code,
						.code_len = sizeof(code) });
}

static int file_of(const struct base_buf *b)
{
	int fd = image_fd();

	assert_int_equal(base_write_all(fd, b->data, b->len), 0);
	return fd;
}

/* What a section holds, however it stands there; valid until the next call. */
static const void *expanded(const struct image *img, const Elf64_Shdr *section, size_t *len)
{
	static uint8_t space[1 << 17];
	const Elf64_Chdr *head = image_bytes(img, section);
	uLongf out = sizeof(space);

	*len = section->sh_size;
	if (!(section->sh_flags & SHF_COMPRESSED))
		return head;
	assert_int_equal(head->ch_type, ELFCOMPRESS_ZLIB);
	assert_int_equal(uncompress(space, &out, (const Bytef *)(head + 1), *len - sizeof(*head)),
			 Z_OK);
	assert_int_equal(out, head->ch_size);
	*len = out;
	return space;
}

static size_t section_len(const struct image *img, const Elf64_Shdr *section)
{
	size_t len;

	expanded(img, section, &len);
	return len;
}

/* ---- reading back ---------------------------------------------------------------------------- */

static void read_back(const struct image *img, struct base_buf *job)
{
	int in = file_of(&img->file), out = image_fd();
	struct pseudoimg_sink sink = { .fd = out };
	struct base_err err = { 0 };
	struct image whole = { 0 };

	if (pseudoimg_read(in, &sink, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(pseudoimg_sink_flush(&sink), 0);
	image_read(&whole, out);
	*job = whole.file;
	base_buf_release(&sink.b);
	close(in);
	close(out);
}

static void assert_same_section(const struct image *a, const struct image *b, const char *name)
{
	const Elf64_Shdr *x = image_section(a, name), *y = image_section(b, name);

	assert_int_equal(!x, !y);
	if (!x)
		return;
	assert_int_equal(x->sh_size, y->sh_size);
	assert_memory_equal(image_bytes(a, x), image_bytes(b, y), x->sh_size);
}

static void assert_reads_back(struct base_buf *job)
{
	static const char *const sections[] = { ".text",       ".dcpi.hashes", ".dcpi.dst",
						".debug_info", ".debug_line",  ".symtab",
						".strtab" };
	struct base_buf again = { 0 };
	struct image a, b;

	image_write(&a, job);
	assert_int_equal(a.status, 0);
	read_back(&a, &again);
	image_write(&b, &again);
	assert_int_equal(b.status, 0);
	assert_int_equal(b.result.nr_bad, a.result.nr_bad);
	assert_memory_equal(a.result.build_id, b.result.build_id, 20);
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
		assert_same_section(&a, &b, sections[i]);
	image_release(&a);
	image_release(&b);
	base_buf_release(&again);
	base_buf_release(job);
}

static void test_reads_back(void **state)
{
	struct base_buf job = { 0 };

	(void)state;
	put_head(&job, 1);
	assert_reads_back(&job); /* nothing at all */
	put_head(&job, 1);
	job_run(&job, 0x5000, 0x1000, 0x1000);
	job_run(&job, 0x90000, 0, 0x1000);
	put(&job, 0x5000, "first");
	put(&job, 0x5005, "neighbour\n");
	put_plain(&job, 0x500a, "");
	put_plain(&job, 0x5010, "z: no code");
	put(&job, 0x5020, "behind a gap");
	put(&job, 0x90000, "far");
	assert_reads_back(&job);
}

/* What is long is compressed where that saves something, and read back all the same. */
static void test_compressed(void **state)
{
	static const char *const sections[] = { ".dcpi.note", ".debug_info", ".debug_line" };
	const Elf64_Shdr *section;
	struct base_buf job = { 0 };
	struct image img;

	(void)state;
	put_head(&job, 1);
	job_run(&job, 0x5000, 0, 0x8000);
	for (uint64_t i = 0; i < 400; i++) {
		put(&job, 0x5000 + 16 * i, i & 1 ? "odd" : "even");
		job_place(&job, 0x100000 + 16 * i, 0x5000 + 16 * i, sizeof(code));
	}
	image_write(&img, &job);
	assert_int_equal(img.status, 0);
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		section = image_section(&img, sections[i]);
		assert_true(section->sh_flags & SHF_COMPRESSED);
		assert_int_equal(section->sh_offset % 8, 0);
		assert_int_equal(section->sh_addralign, 8);
		assert_true(section->sh_size < section_len(&img, section) / 4);
	}
	assert_false(image_section(&img, ".debug_abbrev")->sh_flags & SHF_COMPRESSED);
	image_release(&img);
	assert_reads_back(&job);
}

/* Names that grow when they are escaped are cut, once and for all. */
static void test_long_names(void **state)
{
	struct base_buf job = { 0 };
	char name[4096];

	(void)state;
	memset(name, 1, sizeof(name));
	name[4095] = '\0';
	put_head(&job, 1);
	job_run(&job, 0x5000, 0, 0x1000);
	put_plain(&job, 0x5000, name);
	memset(name, 0xc3, 4095);
	for (size_t i = 1; i < 4095; i += 2)
		name[i] = (char)0xa9;
	put_plain(&job, 0x5010, name);
	assert_reads_back(&job);
}

/* What the application owned, with what its DST says. */
static void test_owned(void **state)
{
	static const uint8_t bytes[] = { 0x90, 0x90, 0xc3 };
	struct base_buf job = { 0 }, dst = { 0 }, more = { 0 };

	(void)state;
	dst_modbeg(&dst);
	dst_rtnbeg(&dst, 0, 'd');
	DST_BYTES(&dst, 185, 0, 14, 3);
	dst_rtnend(&dst, 3);
	dst_modend(&dst);
	dst_modbeg(&more);
	dst_rtnbeg(&more, 8, 'e');
	dst_rtnend(&more, 4);
	dst_modend(&more);
	put_head(&job, 1);
	job_run(&job, 0x5000, 0, 0x2000);
	job_bytes(&job, WIRE_RANGE_CODE, 0x5000, 0x100, bytes, sizeof(bytes));
	job_bytes(&job, WIRE_RANGE_CODE, 0x5200, 0x100, NULL, 0);
	job_bytes(&job, WIRE_RANGE_DST, 0x7000, 0x1000, dst.data, dst.len);
	job_bytes(&job, WIRE_RANGE_DST, 0x8000, 0x1000, more.data, more.len);
	put(&job, 0x6000, "beside");
	base_buf_release(&dst);
	base_buf_release(&more);
	assert_reads_back(&job);
}

/* A long one is one range again. */
static void test_long_range(void **state)
{
	enum { LEN = (16 << 20) + 100 };
	uint8_t *bytes = calloc(1, LEN);
	struct base_buf job = { 0 };

	(void)state;
	assert_non_null(bytes);
	bytes[0] = 0x90;
	bytes[LEN - 1] = 0xc3;
	put_head(&job, 1);
	job_run(&job, 0x5000, 0, 0x2000000);
	job_bytes(&job, WIRE_RANGE_CODE, 0x5000, LEN, bytes, LEN);
	free(bytes);
	assert_reads_back(&job);
}

/* And one of two records, of which the first ends in zeros: that is two sections. */
static void test_parted_range(void **state)
{
	enum { LEN = WIRE_BYTES_MOST + 100 };
	uint8_t *bytes = calloc(1, LEN);
	struct base_buf job = { 0 };

	(void)state;
	assert_non_null(bytes);
	bytes[0] = 0x90;
	bytes[WIRE_BYTES_MOST] = 0x90;
	bytes[LEN - 1] = 0xc3;
	put_head(&job, 1);
	job_run(&job, 0x5000, 0, 0x4000000);
	job_part(&job, WIRE_RANGE_CODE, 0x5000, LEN, 0, bytes, WIRE_BYTES_MOST);
	job_part(&job, WIRE_RANGE_CODE, 0x5000, LEN, WIRE_BYTES_MOST, bytes + WIRE_BYTES_MOST, 100);
	free(bytes);
	assert_reads_back(&job);
}

/* ---- folding --------------------------------------------------------------------------------- */

struct merged {
	struct image img;
	struct base_buf maps;
};

static int merge(struct merged *f, const struct base_buf *base, const struct base_buf *job)
{
	struct pseudoimg_merge fds = { .base_fd = base ? file_of(base) : -1,
				       .job_fd = file_of(job),
				       .scratch_fd = image_fd(),
				       .out_fd = image_fd() };
	int r;

	*f = (struct merged){ 0 };
	r = pseudoimg_merge(&fds, &f->img.result, &f->maps, &f->img.err);
	assert_int_equal(r, f->img.err.code);
	if (r >= 0)
		image_read(&f->img, fds.out_fd);
	if (base)
		close(fds.base_fd);
	close(fds.job_fd);
	close(fds.scratch_fd);
	close(fds.out_fd);
	return r;
}

static void merged_release(struct merged *f)
{
	image_release(&f->img);
	base_buf_release(&f->maps);
}

/* Where offset @off of image @index of the job is now. */
static uint64_t moved(const struct merged *f, size_t index, uint64_t off)
{
	const struct wire_head *rec;
	size_t pos = 0;

	do {
		rec = wire_next(f->maps.data, f->maps.len, &pos);
		assert_non_null(rec);
	} while (index--);
	assert_int_equal(rec->type, WIRE_REPLACES);
	assert_int_equal(wire_check(rec), 0);
	return wire_moved_off((const void *)rec, off);
}

/* The @index-th record of that type in the note, or NULL. */
static const void *note(const struct image *img, uint16_t type, size_t index)
{
	static uint64_t desc[8192];
	size_t len;
	const Elf64_Nhdr *nh = expanded(img, image_section(img, PSEUDOIMG_NOTE_SECTION), &len);
	const struct wire_head *rec;
	size_t pos = 0;

	assert_true(nh->n_descsz <= sizeof(desc));
	memcpy(desc, (const char *)(nh + 1) + 8, nh->n_descsz);
	while ((rec = wire_next(desc, nh->n_descsz, &pos)))
		if (rec->type == type && !index--)
			return rec;
	return NULL;
}

/* Address in the file of an offset; 0: in no run. */
static uint64_t vaddr_of(const struct image *img, uint64_t off)
{
	const struct wire_run *run;

	for (size_t i = 0; (run = note(img, WIRE_RUN, i)); i++)
		if (off - run->img_off < run->len)
			return run->vaddr + (off - run->img_off);
	return 0;
}

static const char *name_at(const struct image *img, uint64_t off)
{
	const Elf64_Sym *v = image_bytes(img, image_section(img, ".symtab"));
	const char *names = image_bytes(img, image_section(img, ".strtab"));
	uint64_t vaddr = vaddr_of(img, off);

	for (size_t i = 1; i <= image_nr_symbols(img); i++)
		if (vaddr - v[i].st_value < v[i].st_size)
			return names + v[i].st_name;
	return "";
}

static const uint8_t old_id[20] = { 1 }, older_id[20] = { 2 };

/* Three processes: the second has one that the first has, and one of its own; the third both. */
static void three_jobs(struct base_buf *job)
{
	static const struct wire_moved before = { 0x800, 0x1010, 5 };

	put_head(job, 1);
	job_run(job, 0x5000, 0, 0x1000);
	put(job, 0x5000, "a");
	put(job, 0x5010, "b");
	put_head(job, 2);
	job_run(job, 0x7f5000, 0x1000, 0x1000);
	put(job, 0x7f5010, "b");
	put(job, 0x7f5020, "c");
	job_replaces(job, old_id);
	job_moved(job, older_id, &before, 1);
	put_head(job, 3);
	job_run(job, 0x9000, 0, 0x1000);
	put(job, 0x9000, "c");
	put(job, 0x9020, "d");
	put(job, 0x9040, "a");
	job_place(job, 0x1234, 0x9020, 5);
}

static void test_merges(void **state)
{
	struct base_buf job = { 0 };
	const struct wire_instance *instance;
	const struct wire_place *place;
	const struct wire_replaces *replaces;
	struct merged f;

	(void)state;
	three_jobs(&job);
	assert_int_equal(merge(&f, NULL, &job), 0);
	assert_int_equal(f.img.result.nr_routines, 4);
	assert_int_equal(f.img.result.nr_bad, 0);
	/* The first keeps its offsets, the others are found by their maps. */
	assert_int_equal(moved(&f, 0, 0x10), 0x10);
	assert_int_equal(vaddr_of(&f.img, 0x10), 0x5010);
	assert_int_equal(moved(&f, 1, 0x1012), 0x12);
	assert_string_equal(name_at(&f.img, moved(&f, 1, 0x1020)), "c");
	assert_int_equal(vaddr_of(&f.img, moved(&f, 1, 0x1020)), PSEUDOIMG_MODULE);
	assert_int_equal(moved(&f, 2, 0), moved(&f, 1, 0x1020));
	assert_int_equal(moved(&f, 2, 0x44), 4);
	assert_string_equal(name_at(&f.img, moved(&f, 2, 0x24)), "d");
	assert_int_equal(moved(&f, 2, 0x20) % 4, 0); /* where an instruction may stand */
	/* What was in no routine is in none now. */
	assert_int_equal(moved(&f, 1, 0x1000), PSEUDOIMG_GAP_OFF + 0x1000);
	assert_int_equal(moved(&f, 2, 0x25), PSEUDOIMG_GAP_OFF + 0x25);
	assert_int_equal(vaddr_of(&f.img, moved(&f, 2, 0xfff)), PSEUDOIMG_GAP + 0xfff);
	/* The note: who was in it, where the code stood, which images it replaces. */
	assert_int_equal(((const struct wire_image *)note(&f.img, WIRE_IMAGE, 0))->pid, 1);
	assert_int_equal(((const struct wire_instance *)note(&f.img, WIRE_INSTANCE, 0))->pid, 2);
	instance = note(&f.img, WIRE_INSTANCE, 1);
	assert_int_equal(instance->pid, 3);
	assert_int_equal(instance->uid, 1003);
	assert_int_equal(instance->start_time_ns, 2003);
	assert_int_equal(instance->created_s, 3003);
	assert_null(note(&f.img, WIRE_INSTANCE, 2));
	place = note(&f.img, WIRE_PLACE, 0);
	assert_int_equal(place->vaddr, 0x7f5020);
	assert_int_not_equal(place->from_seq, 0);
	assert_int_equal(place->elf, PSEUDOIMG_MODULE);
	place = note(&f.img, WIRE_PLACE, 1);
	assert_int_equal(place->vaddr, 0x9020);
	place = note(&f.img, WIRE_PLACE, 2);
	assert_int_equal(place->vaddr, 0x1234);
	assert_int_equal(place->elf, vaddr_of(&f.img, moved(&f, 2, 0x20)));
	replaces = note(&f.img, WIRE_REPLACES, 0);
	assert_memory_equal(replaces->id, old_id, 20);
	assert_int_equal(wire_moved_off(replaces, 0x1011), 0x11);
	replaces = note(&f.img, WIRE_REPLACES, 1);
	assert_memory_equal(replaces->id, older_id, 20);
	assert_int_equal(wire_moved_off(replaces, 0x804), 0x14);
	assert_int_equal(wire_moved_off(replaces, 0x1013), 0x13);
	merged_release(&f);
	base_buf_release(&job);
}

/* Onto an image on disk, once more, and an image onto an image; ids of all are found. */
static void test_merges_onto(void **state)
{
	struct base_buf job = { 0 }, more = { 0 };
	struct merged first, second, third;
	const struct wire_replaces *rec;
	struct image alone;

	(void)state;
	three_jobs(&job);
	assert_int_equal(merge(&first, NULL, &job), 0);
	put_head(&more, 4);
	job_run(&more, 0x20000, 0, 0x1000);
	put(&more, 0x20000, "d");
	put(&more, 0x20100, "e");
	assert_int_equal(merge(&second, &first.img.file, &more), 0);
	assert_int_equal(second.img.result.nr_routines, 5);
	assert_int_equal(second.img.result.nr_bad, 0);
	assert_int_equal(moved(&second, 0, 0), moved(&first, 2, 0x20));
	assert_string_equal(name_at(&second.img, moved(&second, 0, 0x100)), "e");
	/* Nothing that was there has moved. */
	for (uint64_t off = 0; off < 0x3000; off++)
		if (*name_at(&first.img, off))
			assert_string_equal(name_at(&first.img, off), name_at(&second.img, off));
	/* The same once more changes nothing but the note. */
	assert_int_equal(merge(&third, &second.img.file, &more), 0);
	assert_memory_equal(third.img.result.build_id, second.img.result.build_id, 20);
	merged_release(&third);
	image_write(&alone, &more);
	assert_int_equal(merge(&third, &first.img.file, &alone.file), 0);
	assert_memory_equal(third.img.result.build_id, second.img.result.build_id, 20);
	for (size_t i = 0, found = 0; found < 2; i++) {
		rec = note(&third.img, WIRE_REPLACES, i);
		assert_non_null(rec);
		if (!memcmp(rec->id, first.img.result.build_id, 20))
			found++;
		if (!memcmp(rec->id, alone.result.build_id, 20)) {
			assert_int_equal(wire_moved_off(rec, 0x102), moved(&second, 0, 0x102));
			found++;
		}
	}
	merged_release(&third);
	merged_release(&second);
	merged_release(&first);
	image_release(&alone);
	base_buf_release(&job);
	base_buf_release(&more);
}

/* However often equal processes come, the note names each build-id once, and never its own. */
static void test_ids_once(void **state)
{
	struct base_buf job = { 0 };
	const struct wire_replaces *rec;
	struct merged f, next;

	(void)state;
	three_jobs(&job);
	job_replaces(&job, old_id);
	assert_int_equal(merge(&f, NULL, &job), 0);
	for (int i = 0; i < 4; i++) {
		job_replaces(&job, f.img.result.build_id);
		assert_int_equal(merge(&next, &f.img.file, &job), 0);
		merged_release(&f);
		f = next;
	}
	for (size_t i = 0; (rec = note(&f.img, WIRE_REPLACES, i)); i++) {
		uint8_t id[20];

		memcpy(id, rec->id, sizeof(id));
		assert_memory_not_equal(id, f.img.result.build_id, sizeof(id));
		for (size_t k = 0; k < i; k++) {
			rec = note(&f.img, WIRE_REPLACES, k);
			assert_memory_not_equal(id, rec->id, sizeof(id));
		}
	}
	rec = note(&f.img, WIRE_REPLACES, 0);
	assert_memory_equal(rec->id, old_id, sizeof(old_id));
	assert_non_null(note(&f.img, WIRE_REPLACES, 1));
	assert_null(note(&f.img, WIRE_REPLACES, 2));
	merged_release(&f);
	base_buf_release(&job);
}

/* A later occupant whose room is at the same offset in both keeps its place. */
static void test_same_offset(void **state)
{
	const struct wire_place *place;
	struct base_buf job = { 0 };
	struct merged f;

	(void)state;
	put_head(&job, 1);
	job_run(&job, 0x5000, 0, 0x1000);
	put(&job, 0x5000, "a");
	put_head(&job, 2);
	job_run(&job, 0x5000, 0, 0x1000);
	job_run(&job, PSEUDOIMG_MODULE, 0x1000, 0x1000);
	put(&job, 0x5000, "a");
	put(&job, PSEUDOIMG_MODULE, "later");
	job_place(&job, 0x5000, PSEUDOIMG_MODULE, 5);
	job_place(&job, 0x5000, PSEUDOIMG_MODULE, 6);
	assert_int_equal(merge(&f, NULL, &job), 0);
	assert_int_equal(moved(&f, 1, 0x1000), 0x1000);
	place = note(&f.img, WIRE_PLACE, 0);
	assert_non_null(place);
	assert_int_equal(place->vaddr, 0x5000);
	assert_int_equal(place->elf, PSEUDOIMG_MODULE);
	assert_int_equal(place->len, 5);
	assert_null(note(&f.img, WIRE_PLACE, 1));
	merged_release(&f);
	base_buf_release(&job);
}

/* Offsets of the gap of an image that was folded before stay in a run. */
static void test_gap_again(void **state)
{
	struct base_buf job = { 0 }, one = { 0 };
	struct merged first, f;
	struct image base;

	(void)state;
	put_head(&one, 4);
	job_run(&one, 0x5000, 0, 5);
	put(&one, 0x5000, "a");
	image_write(&base, &one);
	put_head(&job, 1);
	job_run(&job, 0x5000, 0, 5);
	put(&job, 0x5000, "a");
	put_head(&job, 2);
	job_run(&job, 0x5000, 0, 0x10);
	put(&job, 0x5000, "a");
	assert_int_equal(merge(&first, NULL, &job), 0);
	assert_int_equal(moved(&first, 1, 7), PSEUDOIMG_GAP_OFF + 7);
	assert_int_equal(merge(&f, &base.file, &first.img.file), 0);
	assert_int_equal(moved(&f, 0, PSEUDOIMG_GAP_OFF + 7), PSEUDOIMG_GAP_OFF + 7);
	assert_int_equal(vaddr_of(&f.img, PSEUDOIMG_GAP_OFF + 7), PSEUDOIMG_GAP + 7);
	merged_release(&f);
	merged_release(&first);
	image_release(&base);
	base_buf_release(&job);
	base_buf_release(&one);
}

/* A routine that the runs tear apart is found piece by piece. */
static void test_torn(void **state)
{
	struct base_buf job = { 0 };
	struct merged f;

	(void)state;
	put_head(&job, 1);
	job_run(&job, 0x5000, 0, 0x1000);
	put(&job, 0x5000, "a");
	put_head(&job, 2);
	job_run(&job, 0x5000, 0x8000, 0x1000);
	job_run(&job, 0x6000, 0x2000, 0x1000);
	put(&job, 0x5ffe, "a");
	assert_int_equal(merge(&f, NULL, &job), 0);
	assert_int_equal(f.img.result.nr_routines, 1);
	assert_int_equal(moved(&f, 0, 0x8fff), 0x8fff);
	assert_int_equal(moved(&f, 1, 0x8ffe), 0);
	assert_int_equal(moved(&f, 1, 0x2002), 4);
	assert_int_equal(moved(&f, 1, 0x2003), PSEUDOIMG_GAP_OFF + 0x2003);
	merged_release(&f);
	base_buf_release(&job);
}

/* Offsets of the images that this one had replaced before go through both maps. */
static void test_earlier_ids(void **state)
{
	/* Into, over and beyond what moves here; two that lie apart there and together here. */
	static const struct wire_moved before[] = { { 0xa, 0x22, 1 },	    { 0x100, 0, 0x30 },
						    { 0x200, 0xffc, 0x10 }, { 0x300, 0x9, 2 },
						    { 0x400, 0x8, 2 },	    { 0x500, 0xa, 3 },
						    { 0x700, 0x2000, 4 } };
	const struct wire_replaces *rec;
	struct base_buf job = { 0 };
	struct merged f;

	(void)state;
	put_head(&job, 1);
	job_run(&job, 0x5000, 0, 0x1000);
	put(&job, 0x5000, "a");
	put(&job, 0x5010, "b");
	put_head(&job, 2);
	job_run(&job, 0x5000, 0, 0x40);
	job_run(&job, PSEUDOIMG_MODULE, 0x1000, 0x20);
	put(&job, 0x5008, "b");
	put(&job, 0x5020, "a");
	put(&job, PSEUDOIMG_MODULE, "stays at its offset");
	job_moved(&job, old_id, before, sizeof(before) / sizeof(before[0]));
	assert_int_equal(merge(&f, NULL, &job), 0);
	assert_int_equal(moved(&f, 1, 0x1000), 0x1000);
	rec = note(&f.img, WIRE_REPLACES, 0);
	assert_memory_equal(rec->id, old_id, sizeof(old_id));
	assert_int_equal(wire_check(&rec->head), 0);
	for (uint64_t off = 0; off < 0x2010; off++) {
		uint64_t then = off;

		for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++)
			if (off - before[i].from < before[i].len)
				then = before[i].to + (off - before[i].from);
		assert_int_equal(wire_moved_off(rec, off), moved(&f, 1, then));
	}
	merged_release(&f);
	base_buf_release(&job);
}

/* Where a later occupant stood is told of where it stands now; not where others tell that. */
static void test_places(void **state)
{
	const struct wire_place *place;
	struct base_buf job = { 0 };
	struct merged f;

	(void)state;
	put_head(&job, 1);
	job_run(&job, 0x5000, 0, 0x1000);
	put(&job, 0x5000, "a");
	put_head(&job, 2);
	job_run(&job, 0x5000, 0, 0x1000);
	job_run(&job, PSEUDOIMG_MODULE, 0x3000, 0x1000);
	put(&job, PSEUDOIMG_MODULE, "a");
	put(&job, PSEUDOIMG_MODULE + 0x10, "new");
	job_place(&job, 0x5000, PSEUDOIMG_MODULE, 5);	     /* the first one has it */
	job_place(&job, 0x5100, PSEUDOIMG_MODULE + 0x12, 3); /* within */
	job_place(&job, 0x5200, PSEUDOIMG_MODULE + 0x20, 5); /* in no routine */
	job_place(&job, 0x5300, PSEUDOIMG_MODULE + 0x12, 4); /* leaves it */
	assert_int_equal(merge(&f, NULL, &job), 0);
	assert_int_equal(f.img.result.nr_bad, 0);
	place = note(&f.img, WIRE_PLACE, 0);
	assert_non_null(place);
	assert_int_equal(place->vaddr, 0x5100);
	assert_int_equal(place->elf, vaddr_of(&f.img, moved(&f, 1, 0x3012)));
	assert_string_equal(name_at(&f.img, moved(&f, 1, 0x3012)), "new");
	assert_null(note(&f.img, WIRE_PLACE, 1));
	merged_release(&f);
	base_buf_release(&job);
}

/* One that the first image has in pieces is at no one place there: it gets room. */
static void test_torn_first(void **state)
{
	struct base_buf job = { 0 };
	struct merged f;

	(void)state;
	put_head(&job, 1);
	job_run(&job, 0x5000, 0x8000, 0x1000);
	job_run(&job, 0x6000, 0x2000, 0x1000);
	put(&job, 0x5ffe, "a");
	put_head(&job, 2);
	job_run(&job, 0x5000, 0, 0x1000);
	put(&job, 0x5000, "a");
	assert_int_equal(merge(&f, NULL, &job), 0);
	assert_string_equal(name_at(&f.img, moved(&f, 0, 0x2002)), "a");
	assert_string_equal(name_at(&f.img, moved(&f, 1, 0)), "a");
	assert_string_equal(name_at(&f.img, moved(&f, 1, 4)), "a");
	merged_release(&f);
	base_buf_release(&job);
}

/* More than any table of names or routines begins with. */
static void test_many_routines(void **state)
{
	enum { MANY = 512 };
	struct base_buf job = { 0 };
	struct merged f;
	char name[16];

	(void)state;
	for (uint32_t pid = 1; pid < 3; pid++) {
		put_head(&job, pid);
		job_run(&job, 0x5000, 0, 0x8000);
		for (uint32_t i = 0; i < MANY; i++) {
			snprintf(name, sizeof(name), "r%u", pid == 1 ? i : MANY - 1 - i);
			put_plain(&job, 0x5000 + i * 16, name);
		}
	}
	put_plain(&job, 0x5000 + MANY * 16, "one more");
	assert_int_equal(merge(&f, NULL, &job), 0);
	assert_int_equal(f.img.result.nr_routines, MANY + 1);
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(moved(&f, 1, i * 16), (MANY - 1 - i) * 16);
	merged_release(&f);
	base_buf_release(&job);
}

/* What is refused of a further image is counted, as of the first. */
static void test_refused_routines(void **state)
{
	struct base_buf job = { 0 };
	struct merged f;

	(void)state;
	for (uint32_t pid = 1; pid < 4; pid++) {
		put_head(&job, pid);
		job_run(&job, 0x5000, 0, 0x1000);
		put_plain(&job, 0x5000, "stays");
		put_plain(&job, 0x5004, "overlaps");
		put_plain(&job, 0x9000, "nowhere");
	}
	assert_int_equal(merge(&f, NULL, &job), 0);
	assert_int_equal(f.img.result.nr_bad, 6);
	assert_int_equal(f.img.result.nr_overlaps, 3);
	merged_release(&f);
	base_buf_release(&job);
}

static void put_other(struct base_buf *job, uint32_t machine, const char *facility)
{
	job_image(job,
		  &(struct job_image){
			  .machine = machine, .facility = facility, .host = "h", .exe = "/x" });
}

/* Offsets that reach into those that are kept for what is in no routine. */
static void test_no_room(void **state)
{
	static const struct {
		uint64_t first, other;
	} ends[] = {
		{ PSEUDOIMG_GAP_LEN, 0x1000 },		/* no room at all */
		{ PSEUDOIMG_GAP_LEN - 0x1000, 0x1000 }, /* none for all of it */
		{ 0x1000, PSEUDOIMG_GAP_LEN + 0x1000 },
		{ 0x1000, PSEUDOIMG_GAP_LEN }, /* just enough */
	};
	static const uint8_t much[0x1001];
	struct base_buf job = { 0 };
	struct merged f;

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		job.len = 0;
		put_head(&job, 1);
		job_run(&job, 0x5000, ends[i].first - 0x1000, 0x1000);
		put_head(&job, 2);
		job_run(&job, 0x5000, ends[i].other - 0x1000, 0x1000);
		job_run(&job, 0x9000, 0x4000, 0x2000);
		job_routine(&job, &(struct job_routine){ .addr = 0x9000,
							 .name = "r",
							 .code = much,
							 .code_len = sizeof(much) });
		assert_int_equal(merge(&f, NULL, &job), i == 3 ? 0 : -DCPI_ELIMIT);
		merged_release(&f);
	}
	base_buf_release(&job);
}

static void test_refused(void **state)
{
	static const struct {
		uint32_t machine;
		const char *facility;
	} others[] = { { 62, "k" }, { 62, "jix" }, { 183, "jit" } };
	struct base_buf job = { 0 };
	struct merged f;
	size_t len;

	(void)state;
	put_head(&job, 1);
	len = job.len;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		put_other(&job, others[i].machine, others[i].facility);
		assert_int_equal(merge(&f, NULL, &job), -EINVAL);
		merged_release(&f);
		job.len = len;
	}
	put_head(&job, 2);
	job_run(&job, 0x5000, 0, 0x1000);
	job_bytes(&job, WIRE_RANGE_CODE, 0x5000, 0x100, code, sizeof(code));
	assert_int_equal(merge(&f, NULL, &job), -DCPI_EUNSUPPORTED);
	merged_release(&f);
	assert_int_equal(merge(&f, &job, &job), -DCPI_EFORMAT); /* a job is no image */
	merged_release(&f);
	job.len = 0;
	assert_int_equal(merge(&f, NULL, &job), -DCPI_EFORMAT);
	merged_release(&f);
	base_buf_release(&job);
}

/* An image that somebody damaged: read in part, or refused; never more than it holds. */
static void test_damaged(void **state)
{
	struct base_buf job = { 0 };
	struct merged whole;

	(void)state;
	three_jobs(&job);
	assert_int_equal(merge(&whole, NULL, &job), 0);
	for (size_t i = 0; i < whole.img.file.len; i += 7) {
		struct base_buf file = whole.img.file;
		uint8_t byte = file.data[i];
		struct merged f;

		if (i > 0x1000 && byte == 0 && i % 9)
			continue;
		file.data[i] ^= 0xff;
		merge(&f, &file, &job);
		merged_release(&f);
		file.data[i] = byte;
		if (i % 63 == 0) {
			file.len = i;
			merge(&f, &file, &job);
			merged_release(&f);
		}
	}
	merged_release(&whole);
	base_buf_release(&job);
}

/* Of further processes the number is kept, however often it is folded. */
static void test_many_instances(void **state)
{
	enum { MANY = PSEUDOIMG_INSTANCES_MAX + 10 };
	const struct wire_instance *last;
	struct base_buf job = { 0 }, file;
	struct merged first, f;
	unsigned int nr = 0;

	(void)state;
	for (uint32_t i = 0; i < MANY + 1; i++) {
		put_head(&job, i + 1);
		job_run(&job, 0x5000, 0, 0x1000);
		put_plain(&job, 0x5000, "a");
	}
	assert_int_equal(merge(&first, NULL, &job), 0);
	file = first.img.file;
	assert_int_equal(merge(&f, &file, &job), 0);
	while (note(&f.img, WIRE_INSTANCE, (int)nr))
		nr++;
	assert_int_equal(nr, PSEUDOIMG_INSTANCES_MAX + 1);
	last = note(&f.img, WIRE_INSTANCE, (int)nr - 1);
	assert_int_equal(last->head.flags, WIRE_INSTANCE_MORE);
	assert_int_equal(last->pid, 2 * MANY + 1 - PSEUDOIMG_INSTANCES_MAX);
	assert_memory_equal(f.img.result.build_id, first.img.result.build_id, 20);
	merged_release(&f);
	merged_release(&first);
	base_buf_release(&job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_back),     cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_owned),	       cmocka_unit_test(test_merges),
		cmocka_unit_test(test_merges_onto),    cmocka_unit_test(test_torn),
		cmocka_unit_test(test_many_instances), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_damaged),	       cmocka_unit_test(test_ids_once),
		cmocka_unit_test(test_same_offset),    cmocka_unit_test(test_gap_again),
		cmocka_unit_test(test_compressed),     cmocka_unit_test(test_earlier_ids),
		cmocka_unit_test(test_places),	       cmocka_unit_test(test_torn_first),
		cmocka_unit_test(test_many_routines),  cmocka_unit_test(test_refused_routines),
		cmocka_unit_test(test_no_room),	       cmocka_unit_test(test_long_range),
		cmocka_unit_test(test_parted_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
