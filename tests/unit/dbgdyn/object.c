/* SPDX-License-Identifier: BSD-2-Clause */
/* ELF files in memory, and parts inlined: what is taken, and what makes no sense. */
#include "fake.h"
#include "dbgdyn_internal.h"
#include "../routine_file.h"

#include <elf.h>
#include <stdlib.h>
#include <unistd.h>

static struct fake fake;
static dbgdyn_context context;
static uint8_t code[16384];
static _Alignas(8) uint8_t stream[1 << 20];

static int open_all(void)
{
	fake_open(&fake, FAKE_SOCKET | FAKE_QUEUE);
	CHECK(dbgdyn_begin("jit", 3, NULL, &context) == DBGDYN_OK && fake_take(&fake));
	return 0;
}

/* At an odd address: the application's memory is read as it lies. */
static struct __attribute__((packed)) {
	uint8_t odd;
	Elf64_Ehdr h;
	Elf64_Shdr s[5];
} file;

static void file_make(void)
{
	file.odd = 0;
	file.h = (Elf64_Ehdr){ .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1 },
			       .e_type = ET_REL,
			       .e_machine = DBGDYN_MACHINE,
			       .e_version = 1,
			       .e_shoff = sizeof(Elf64_Ehdr),
			       .e_shentsize = sizeof(Elf64_Shdr),
			       .e_shnum = 5 };
	memset(file.s, 0, sizeof(file.s));
	for (int i = 1; i < 4; i++)
		file.s[i] = (Elf64_Shdr){ .sh_type = SHT_PROGBITS,
					  .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
					  .sh_addr = (uintptr_t)code + 4096 * (unsigned int)i,
					  .sh_size = 100 };
	file.s[3].sh_flags = SHF_ALLOC | SHF_WRITE; /* data */
	file.s[4] = file.s[1];			    /* lower than the first, and no bytes */
	file.s[4].sh_addr = (uintptr_t)code;
	file.s[4].sh_type = SHT_NOBITS;
}

static int put(uint64_t bias, dbgdyn_handle *handle)
{
	return dbgdyn_register_object(context, &file.h, sizeof(file) - 1, bias, handle);
}

static const struct wire_object *next_object(void)
{
	size_t pos = 0, len = fake_read(&fake, stream, sizeof(stream));
	const struct wire_head *h = fake_next(stream, len, &pos);

	return h && h->type == WIRE_OBJECT && wire_check(h) == 0 && pos == len ? (const void *)h
									       : NULL;
}

static int an_object_is_told(void)
{
	const struct wire_object *o;
	struct dbgdyn_state *s;
	dbgdyn_handle h, again;

	CHECK(open_all() == 0);
	s = dbgdyn_state_get(false);
	file_make();
	CHECK(put(0, &h) == DBGDYN_OK && h.id);
	o = next_object();
	CHECK(o && o->seq == 1 && o->elf_addr == (uintptr_t)&file.h && o->bias == 0);
	CHECK(o->elf_len == sizeof(file) - 1 && o->addr == (uintptr_t)code + 4096);
	CHECK(o->code_len == 4196 && o->head.flags == WIRE_ROUTINE_CODE);
	CHECK(!memcmp(o + 1, &file.h, sizeof(file) - 1));
	o = (const void *)(s->heap + sizeof(struct wire_slot));
	CHECK(o->head.type == WIRE_OBJECT && o->seq == 1 && !o->head.flags &&
	      wire_check(&o->head) == 0);
	/* Elsewhere by the bias; over the first, which ends. */
	CHECK(put(96, &again) == DBGDYN_OK);
	o = next_object();
	CHECK(o && o->bias == 96 && o->addr == (uintptr_t)code + 4096 + 96);
	CHECK(o->head.flags & WIRE_ROUTINE_REUSES);
	CHECK(dbgdyn_retire(context, h) == DBGDYN_EINVAL);
	CHECK(dbgdyn_move(context, again, code) == DBGDYN_EINVAL);
	CHECK(dbgdyn_retire(context, again) == DBGDYN_OK && s->reg->seq == 3);
	CHECK(dbgdyn_register_object((dbgdyn_context){ 0 }, &file.h, sizeof(file) - 1, 0, &h) ==
	      DBGDYN_EREFUSED);
	/* Where one was before, its words move. */
	CHECK(put(0, &h) == DBGDYN_OK);
	CHECK(s->words[(((uintptr_t)code + 4096) >> WIRE_BLOCK_SHIFT) % s->nr_words] == 4);
	fake_close(&fake);
	return 0;
}

/* Its bytes are kept while it lives; where there is no room for them it is refused. */
static int an_object_is_copied(void)
{
	static uint8_t before[sizeof(file)];
	size_t len = sizeof(file) - 1;
	const struct wire_object *o;
	struct dbgdyn_state *s;
	dbgdyn_handle h;

	CHECK(open_all() == 0);
	s = dbgdyn_state_get(false);
	file_make();
	memcpy(before, &file.h, len);
	CHECK(dbgdyn_copy_object(context, &file.h, len, 96, &h) == DBGDYN_OK && h.id);
	memset(&file, 0xff, sizeof(file));
	o = next_object();
	CHECK(o && o->seq == 1 && o->bias == 96 && o->elf_len == len);
	CHECK(o->addr == (uintptr_t)code + 4096 + 96 && o->elf_addr != (uintptr_t)&file.h);
	CHECK(!memcmp((const void *)(uintptr_t)o->elf_addr, before, len));
	CHECK(((const struct wire_object *)(s->heap + sizeof(struct wire_slot)))->elf_addr ==
	      o->elf_addr);
	CHECK(dbgdyn_copy_object(context, &file.h, len, 96, &h) == DBGDYN_EINVAL);
	CHECK(dbgdyn_retire(context, h) == DBGDYN_OK && s->reg->nr_dropped == 0);
	s->heap_len = 0;
	file_make();
	CHECK(dbgdyn_copy_object(context, &file.h, len, 0, &h) == DBGDYN_EFULL);
	CHECK(s->reg->nr_dropped == 1 && s->reg->seq == 2);
	CHECK(put(0, NULL) == DBGDYN_OK);
	fake_close(&fake);
	return 0;
}

/* Its bytes stay where they are for want of room; and new addresses ring. */
static int an_object_needs_no_room_for_bytes(void)
{
	const struct wire_object *o;
	struct dbgdyn_state *s;

	CHECK(open_all() == 0);
	s = dbgdyn_state_get(false);
	fake_bells(&fake);
	file_make();
	s->ring_len = sizeof(file) + sizeof(*o); /* its bytes are more than half of that */
	CHECK(put(0, NULL) == DBGDYN_OK && fake_bells(&fake) == 1);
	o = next_object();
	CHECK(o && o->head.len == sizeof(*o) && !o->head.flags && o->elf_len == sizeof(file) - 1);
	s->ring_len = DBGDYN_RING_LEN; /* where all but the end is full */
	s->reg->tail = 0;
	s->head = s->ring_len - sizeof(*o) - sizeof(struct wire_time);
	CHECK(put(0, NULL) == DBGDYN_OK && s->reg->nr_dropped == 0);
	o = (const void *)(s->ring + s->head - sizeof(*o));
	CHECK(o->seq == 2 && o->head.len == sizeof(*o) && o->head.flags == WIRE_ROUTINE_REUSES);
	fake_close(&fake);
	return 0;
}

/* The sampler must hear of addresses that nobody told before. */
static int an_object_in_a_new_region_rings(void)
{
	CHECK(open_all() == 0);
	fake_bells(&fake);
	file_make();
	CHECK(put(0, NULL) == DBGDYN_OK && fake_bells(&fake) == 1);
	CHECK(put(96, NULL) == DBGDYN_OK && fake_bells(&fake) == 0);
	CHECK(put(UINT64_C(1) << 32, NULL) == DBGDYN_OK && fake_bells(&fake) == 1);
	fake_close(&fake);
	return 0;
}

/* What was a routine's slot is an object's now, which cannot be moved as one. */
static int an_object_in_a_routines_slot(void)
{
	struct dbgdyn_routine r = fake_routine("f", code, 0);
	dbgdyn_handle h;

	CHECK(open_all() == 0);
	for (r.code_len = 1; r.code_len < 512; r.code_len += 8) {
		CHECK(dbgdyn_register(context, &r, &h) == DBGDYN_OK);
		CHECK(dbgdyn_retire(context, h) == DBGDYN_OK);
	}
	uint32_t nodes_end = dbgdyn_state_get(false)->nodes_end;

	file_make();
	CHECK(put(0, &h) == DBGDYN_OK);
	CHECK(dbgdyn_state_get(false)->nodes_end == nodes_end);
	CHECK(dbgdyn_move(context, h, code) == DBGDYN_EINVAL);
	fake_close(&fake);
	return 0;
}

/* The heap is full: the daemon is told, and told that there is one more than it finds listed. */
static int an_object_that_is_not_listed(void)
{
	struct dbgdyn_state *s;
	dbgdyn_handle h;

	CHECK(open_all() == 0);
	s = dbgdyn_state_get(false);
	s->heap_len = 0;
	file_make();
	CHECK(put(0, &h) == DBGDYN_OK && h.id && next_object());
	CHECK(s->nr_unlisted == 1 && s->reg->nr_unlisted == 1 && s->reg->nr_dropped == 0);
	CHECK(dbgdyn_retire(context, h) == DBGDYN_EFULL);
	/* Its words move all the same when that memory is given back. */
	CHECK(dbgdyn_retire_code(context, code + 4096, 1) == DBGDYN_OK);
	CHECK(s->words[(((uintptr_t)code + 4096) >> WIRE_BLOCK_SHIFT) % s->nr_words]);
	fake_close(&fake);
	return 0;
}

/* Section headers may be longer than those of today. */
static int long_section_headers(void)
{
	static struct __attribute__((packed)) {
		Elf64_Ehdr h;
		struct __attribute__((packed)) {
			Elf64_Shdr s;
			uint64_t more;
		} s[5];
	} wide;
	const struct wire_object *o;

	CHECK(open_all() == 0);
	file_make();
	wide.h = file.h;
	wide.h.e_shentsize = sizeof(wide.s[0]);
	for (int i = 0; i < 5; i++) {
		wide.s[i].s = file.s[i];
		wide.s[i].more = UINT64_MAX;
	}
	CHECK(dbgdyn_register_object(context, &wide, sizeof(wide), 0, NULL) == DBGDYN_OK);
	o = next_object();
	CHECK(o && o->addr == (uintptr_t)code + 4096 && o->code_len == 4196);
	fake_close(&fake);
	return 0;
}

static int nonsense_is_refused(void)
{
	CHECK(open_all() == 0);
	CHECK(dbgdyn_register_object(context, NULL, 100, 0, NULL) == DBGDYN_EINVAL);
	CHECK(dbgdyn_register_object(context, &file.h, 0, 0, NULL) == DBGDYN_EINVAL);
#define BAD(change)                                                                                \
	do {                                                                                       \
		file_make();                                                                       \
		change;                                                                            \
		CHECK(put(0, NULL) == DBGDYN_EINVAL);                                              \
	} while (0)
	BAD(file.h.e_ident[0] = 0);
	BAD(file.h.e_ident[EI_CLASS] = ELFCLASS32);
	BAD(file.h.e_ident[EI_DATA] = ELFDATA2MSB);
	BAD(file.h.e_machine++);
	BAD(file.h.e_shoff = 0);
	BAD(file.h.e_shoff = sizeof(file));
	BAD(file.h.e_shoff = UINT64_MAX);
	BAD(file.h.e_shentsize = 63);
	BAD(file.h.e_shentsize = 0);
	BAD(file.h.e_shentsize = UINT16_MAX);
	BAD(file.h.e_shnum = 6);
	BAD(file.h.e_shnum = 0);
	BAD((file.h.e_shnum = 0, file.s[0].sh_size = UINT64_MAX));
	BAD((file.h.e_shnum = 0, file.h.e_shoff = sizeof(file) - 2));
	BAD(file.h.e_shnum = 1);
	BAD(file.s[1].sh_size = UINT64_MAX);
	BAD(file.s[1].sh_addr = UINT64_MAX - 50);
	BAD(file.s[2].sh_addr = file.s[1].sh_addr + (1u << 30));
	/* Every length: read no further. */
	file_make();
	for (size_t len = 1; len < sizeof(file) - 1; len++) {
		uint8_t *cut = malloc(len);

		memcpy(cut, &file.h, len);
		CHECK(dbgdyn_register_object(context, cut, len, 0, NULL) == DBGDYN_EINVAL);
		free(cut);
	}
	/* As many sections as do not fit into the header. */
	file.h.e_shnum = 0;
	file.s[0].sh_size = 5;
	CHECK(put(0, NULL) == DBGDYN_OK);
	file.s[2].sh_addr = file.s[1].sh_addr + (1u << 30) - 100;
	CHECK(put(0, NULL) == DBGDYN_OK);
	fake_close(&fake);
	return 0;
}

/* ---- parts inlined --------------------------------------------------------------------------- */

static const struct dbgdyn_string files[] = { { "a.js", 4 }, { "b.js", 4 } };

#define PART(off, len, text, file, line, depth_)                                                   \
	{                                                                                          \
		.code_off = (off), .code_len = (len), .name = { text, sizeof(text) - 1 },          \
		.call_file = (file), .call_line = (line), .depth = (depth_),                       \
	}

static int inlined_parts_are_told(void)
{
	static const struct dbgdyn_inline parts[] = {
		PART(0, 40, "outer", 1, 7, 0),
		PART(8, 8, "inner", 0, 3, 1),
		PART(20, 20, "inner", 9, 0, 1),
		PART(60, 4, "outer", 0, 9, 0),
	};
	struct dbgdyn_routine r = fake_routine("f", code, 64);
	struct wire_routine_view v;
	size_t pos = 0, len;

	CHECK(open_all() == 0);
	r.files = files;
	r.nr_files = 2;
	r.inlines = parts;
	r.nr_inlines = 4;
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK);
	/* A caller that was compiled before there were any. */
	r.size = offsetof(struct dbgdyn_routine, inlines);
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK);
	size_t stream_len = fake_read(&fake, stream, sizeof(stream));

	CHECK(wire_routine_parse(fake_next(stream, stream_len, &pos), &v) == 0);
	CHECK(v.rec->nr_inlines == 4 && v.rec->nr_files == 6);
	CHECK(v.inlines[0].code_len == 40 && v.inlines[0].call_file == 1);
	CHECK(v.inlines[1].code_off == 8 && v.inlines[1].call_line == 3 && v.inlines[1].depth == 1);
	CHECK(v.inlines[2].call_line == 0 && v.inlines[2].call_file == 0);
	CHECK(!memcmp(routine_file(&v, v.inlines[2].name, &len), "inner", 5) && len == 5);
	CHECK(!memcmp(routine_file(&v, 1, &len), "b.js", 4) && len == 4);
	CHECK(wire_routine_parse(fake_next(stream, stream_len, &pos), &v) == 0);
	CHECK(v.rec->nr_inlines == 0 && v.rec->nr_files == 2 && pos == stream_len);
	fake_close(&fake);
	return 0;
}

/* Whether @r is told with @nr_inlines parts, and @nr_defects entries are left out of it. */
static int told(const struct dbgdyn_routine *r, uint32_t nr_inlines, int nr_defects)
{
	struct wire_routine_view v;
	uint64_t before = dbgdyn_state_get(false)->reg->nr_left_out;
	char text[400];
	size_t len, pos = 0;

	CHECK(dbgdyn_register(context, r, NULL) == DBGDYN_OK);
	len = fake_read(&fake, stream, sizeof(stream));
	CHECK(wire_routine_parse(fake_next(stream, len, &pos), &v) == 0 && pos == len);
	CHECK(v.rec->nr_inlines == nr_inlines && v.rec->nr_files == 1 + nr_inlines);
	CHECK(dbgdyn_state_get(false)->reg->nr_left_out == before + (uint64_t)nr_defects);
	CHECK(dbgdyn_check(r, text, sizeof(text)) == nr_defects);
	for (char *p = text; *p; nr_defects--) {
		CHECK(!strncmp(p, "inlines[", 8) && strchr(p, '\n'));
		p = strchr(p, '\n') + 1;
	}
	CHECK(nr_defects == 0);
	return 0;
}

static int parts_not_nested_are_left_out(void)
{
	struct dbgdyn_inline parts[3], good[3] = {
		PART(8, 20, "a", 0, 1, 0),
		PART(8, 10, "b", 0, 1, 1),
		PART(28, 36, "c", 0, 1, 0),
	};
	struct dbgdyn_routine r = fake_routine("f", code, 64);

	CHECK(open_all() == 0);
	r.files = files;
	r.nr_files = 1;
	r.inlines = parts;
	r.nr_inlines = 3;
	memcpy(parts, good, sizeof(parts));
	CHECK(told(&r, 3, 0) == 0);
#define BAD_PART(nr_inlines, nr_defects, change)                                                   \
	do {                                                                                       \
		memcpy(parts, good, sizeof(parts));                                                \
		change;                                                                            \
		CHECK(told(&r, nr_inlines, nr_defects) == 0);                                      \
	} while (0)
	BAD_PART(1, 2, parts[0].depth = 1);
	BAD_PART(2, 1, parts[1].depth = 2);
	BAD_PART(2, 1, parts[1].code_off = 7);
	BAD_PART(2, 1, parts[1].code_len = 21);
	BAD_PART(2, 1, parts[1].code_len = UINT32_MAX);
	BAD_PART(2, 1, parts[2].code_off = 27);
	BAD_PART(2, 1, parts[2].code_len = 37);
	BAD_PART(2, 1, parts[2].code_len = 0);
	BAD_PART(2, 1, parts[2].name.len = 0);
	BAD_PART(2, 1, parts[2].name.text = NULL);
	BAD_PART(3, 1, parts[2].call_file = 1);
	BAD_PART(2, 1, parts[2].depth = UINT32_MAX);
	/* What is inlined into one that is left out. */
	BAD_PART(1, 2, parts[0].code_len = 0);
	memcpy(parts, good, sizeof(parts));
	r.nr_inlines = SIZE_MAX;
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_EINVAL);
	r.inlines = NULL;
	r.nr_inlines = 1;
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_EINVAL);
	fake_close(&fake);
	return 0;
}

/* As deep as is allowed, and one deeper. */
static int depth_has_a_bound(void)
{
	static struct dbgdyn_inline parts[WIRE_INLINE_DEPTH + 1];
	struct dbgdyn_routine r = fake_routine("f", code, 64);

	CHECK(open_all() == 0);
	for (uint32_t i = 0; i <= WIRE_INLINE_DEPTH; i++)
		parts[i] = (struct dbgdyn_inline)PART(0, 64, "deep", 0, 0, i);
	r.inlines = parts;
	r.nr_inlines = WIRE_INLINE_DEPTH;
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK);
	CHECK(dbgdyn_check(&r, NULL, 0) == 0);
	r.nr_inlines++;
	CHECK(dbgdyn_register(context, &r, NULL) == DBGDYN_OK);
	CHECK(dbgdyn_check(&r, NULL, 0) == 1);
	fake_close(&fake);
	return 0;
}

FAKE_TEST(an_object_is_told)
FAKE_TEST(an_object_is_copied)
FAKE_TEST(an_object_needs_no_room_for_bytes)
FAKE_TEST(an_object_in_a_new_region_rings)
FAKE_TEST(an_object_in_a_routines_slot)
FAKE_TEST(an_object_that_is_not_listed)
FAKE_TEST(long_section_headers)
FAKE_TEST(nonsense_is_refused)
FAKE_TEST(inlined_parts_are_told)
FAKE_TEST(parts_not_nested_are_left_out)
FAKE_TEST(depth_has_a_bound)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_object_is_told),
		cmocka_unit_test(test_an_object_is_copied),
		cmocka_unit_test(test_an_object_needs_no_room_for_bytes),
		cmocka_unit_test(test_an_object_in_a_new_region_rings),
		cmocka_unit_test(test_an_object_in_a_routines_slot),
		cmocka_unit_test(test_an_object_that_is_not_listed),
		cmocka_unit_test(test_long_section_headers),
		cmocka_unit_test(test_nonsense_is_refused),
		cmocka_unit_test(test_inlined_parts_are_told),
		cmocka_unit_test(test_parts_not_nested_are_left_out),
		cmocka_unit_test(test_depth_has_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
