/* SPDX-License-Identifier: BSD-2-Clause */
/* Workloads in memory, as a file, and in flushes: samples in, counts, minutes and equal files out.
 */
#include "scratch.h"

#define FILE_NAME SCRATCH_EPOCH "/box/workloads"

enum { MINUTE = 29919354 };

/* Sections of files whose counts or minutes were read. */
static unsigned int nr_decoded;

struct profdb_workload_coder;
struct profdb_payload;
int __real_profdb_workload_coder_read(struct profdb_workload_coder *c, size_t nr_models,
				      const struct profdb_payload *s);
int __wrap_profdb_workload_coder_read(struct profdb_workload_coder *c, size_t nr_models,
				      const struct profdb_payload *s);
int __wrap_profdb_workload_coder_read(struct profdb_workload_coder *c, size_t nr_models,
				      const struct profdb_payload *s)
{
	nr_decoded++;
	return __real_profdb_workload_coder_read(c, nr_models, s);
}

static const struct base_id id_a = { .len = 2, .bytes = { 0xab, 1 } };

static struct profdb_workload workload(const char *comm, int32_t pid)
{
	return (struct profdb_workload){ .comm = comm,
					 .exe = "/bin/prog",
					 .cgroup = "/user.slice",
					 .thread = comm,
					 .uid = 1000,
					 .pid = pid,
					 .processes = 1 };
}

/* Two images, two workloads, one event. */
static struct profdb_workloads *make(void)
{
	struct profdb_workloads *w = profdb_workloads_new();
	struct profdb_workload k = workload("one", 1), l = workload("two", 0);
	struct profdb_image_ref prog = { .kind = PROFDB_FILE, .id = id_a, .path = "/bin/prog" };
	struct profdb_image_ref jit = {
		.kind = PROFDB_DYNAMIC, .id = id_a, .path = "jit", .stem = "jit.dyn"
	};

	assert_non_null(w);
	assert_int_equal(profdb_workloads_image_add(w, &prog), 0);
	assert_int_equal(profdb_workloads_image_add(w, &jit), 1);
	assert_int_equal(profdb_workloads_workload_add(w, &k), 0);
	assert_int_equal(profdb_workloads_workload_add(w, &l), 1);
	assert_int_equal(profdb_workloads_event_add(w, "cycles", 62000), 0);
	return w;
}

static void add(struct profdb_workloads *w, uint32_t of, uint32_t image, uint64_t off, size_t event,
		int64_t minute, uint64_t n)
{
	assert_int_equal(profdb_workloads_add(w, of, image, off, event, minute, n), 0);
}

/* All of it as a text, equal for equal contents. */
static void text_of(const struct profdb_workloads *w, struct base_buf *out)
{
	for (size_t i = 0; i < profdb_workloads_nr_images(w); i++)
		base_buf_printf(out, "image %s\n", profdb_workloads_image(w, i)->path);
	for (size_t i = 0; i < profdb_workloads_nr(w); i++) {
		const struct profdb_workload *k = profdb_workloads_workload(w, i);

		base_buf_printf(out, "workload %s %s %s '%s' %s %u %d %llu\n", k->comm, k->exe,
				k->cgroup, k->label, k->thread, k->uid, k->pid,
				(unsigned long long)k->processes);
	}
	for (size_t i = 0; i < profdb_workloads_nr_counts(w); i++) {
		struct profdb_workload_count c = profdb_workloads_count(w, i);

		base_buf_printf(out, "count %u %llx %u:", c.image, (unsigned long long)c.off,
				c.workload);
		for (size_t k = 0; k < profdb_workloads_nr_events(w); k++)
			base_buf_printf(out, " %llu", (unsigned long long)c.count[k]);
		base_buf_printf(out, "\n");
	}
	for (size_t i = 0; i < profdb_workloads_nr_minutes(w); i++) {
		struct profdb_workload_minute m = profdb_workloads_minute(w, i);

		base_buf_printf(out, "minute %lld %u %llx %u:", (long long)m.minute, m.image,
				(unsigned long long)m.block, m.workload);
		for (size_t k = 0; k < profdb_workloads_nr_events(w); k++)
			base_buf_printf(out, " %llu", (unsigned long long)m.count[k]);
		base_buf_printf(out, "\n");
	}
	base_buf_append(out, "", 1);
}

static void is_text(const struct profdb_workloads *w, const char *want)
{
	struct base_buf text = { 0 };

	text_of(w, &text);
	assert_string_equal((const char *)text.data, want);
	base_buf_release(&text);
}

/* Written, read and written again. */
static struct profdb_workloads *again(const struct profdb_workloads *w)
{
	struct base_buf file = { 0 }, second = { 0 }, want = { 0 };
	struct profdb_workloads *read;
	struct base_err err = { 0 };

	assert_int_equal(profdb_workloads_format(w, &file, NULL), 0);
	if (profdb_workloads_parse(file.data, file.len, &read, &err) < 0)
		fail_msg("%s", err.text);
	text_of(w, &want);
	is_text(read, (const char *)want.data);
	assert_int_equal(profdb_workloads_format(read, &second, NULL), 0);
	assert_int_equal(second.len, file.len);
	assert_memory_equal(second.data, file.data, file.len);
	for (size_t i = 0; i < profdb_workloads_nr_events(w); i++)
		assert_int_equal(profdb_workloads_event(read, i)->sum,
				 profdb_workloads_event(w, i)->sum);
	base_buf_release(&file);
	base_buf_release(&second);
	base_buf_release(&want);
	return read;
}

static void test_samples_are_in_a_count_and_a_minute(void **state)
{
	struct profdb_workloads *w = make(), *read;
	const char *want = "image /bin/prog\n"
			   "image jit\n"
			   "workload one /bin/prog /user.slice '' one 1000 1 1\n"
			   "workload two /bin/prog /user.slice '' two 1000 0 1\n"
			   "count 0 10 0: 5\n"
			   "count 0 10 1: 7\n"
			   "count 0 20 0: 1\n"
			   "count 1 400 1: 9\n"
			   "minute 29919354 0 0 0: 4\n"
			   "minute 29919354 1 1 1: 9\n"
			   "minute 29919355 0 0 0: 2\n"
			   "minute 29919400 0 0 1: 7\n";

	(void)state;
	add(w, 1, 1, 0x400, 0, MINUTE, 9);
	add(w, 0, 0, 0x20, 0, MINUTE + 1, 1);
	add(w, 1, 0, 0x10, 0, MINUTE + 46, 7);
	add(w, 0, 0, 0x10, 0, MINUTE, 4);
	add(w, 0, 0, 0x10, 0, MINUTE + 1, 1);
	add(w, 0, 0, 0x30, 0, MINUTE + 2, 0);
	is_text(w, want);
	read = again(w);
	is_text(read, want);
	add(read, 0, 0, 0x10, 0, MINUTE, 1);
	assert_int_equal(profdb_workloads_nr_counts(read), 4);
	assert_int_equal(profdb_workloads_count(read, 0).count[0], 6);
	assert_int_equal(profdb_workloads_event(read, 0)->sum, 23);
	profdb_workloads_free(read);
	profdb_workloads_free(w);
}

static void test_workloads_are_equal_by_what_they_are(void **state)
{
	struct profdb_workload k = workload("one", 1), none = { .uid = UINT32_MAX };
	struct profdb_workloads *w = make();
	char comm[PROFDB_WORKLOAD_NAME + 10];

	(void)state;
	k.processes = 5;
	assert_int_equal(profdb_workloads_workload_add(w, &k), 0);
	assert_int_equal(profdb_workloads_workload(w, 0)->processes, 6);
	k.processes = UINT64_MAX;
	assert_int_equal(profdb_workloads_workload_add(w, &k), 0);
	assert_true(profdb_workloads_workload(w, 0)->processes == UINT64_MAX);
	k.pid = 2;
	assert_int_equal(profdb_workloads_workload_add(w, &k), 2);
	k.uid = 0;
	assert_int_equal(profdb_workloads_workload_add(w, &k), 3);
	k.label = "x";
	assert_int_equal(profdb_workloads_workload_add(w, &k), 4);
	k.thread = "x";
	assert_int_equal(profdb_workloads_workload_add(w, &k), 5);
	k.cgroup = "";
	assert_int_equal(profdb_workloads_workload_add(w, &k), 6);
	k.exe = NULL;
	assert_int_equal(profdb_workloads_workload_add(w, &k), 7);
	assert_int_equal(profdb_workloads_workload_add(w, &none), 8);
	memset(comm, 'a', sizeof(comm));
	comm[sizeof(comm) - 1] = '\0';
	k.comm = comm;
	assert_int_equal(profdb_workloads_workload_add(w, &k), 9);
	comm[PROFDB_WORKLOAD_NAME] = '\0';
	assert_int_equal(profdb_workloads_workload_add(w, &k), 9);
	assert_string_equal(profdb_workloads_workload(w, 9)->comm, comm);
	assert_null(profdb_workloads_workload(w, 10));
	profdb_workloads_free(again(w));
	profdb_workloads_free(w);
}

/* Beyond it merged ones lose their pid, their thread, or all but the counts; no sample is lost. */
static void test_there_is_a_limit_of_workloads(void **state)
{
	struct profdb_workload k = workload("one", 1),
			       who[] = { workload("one", PROFDB_NR_WORKLOADS), workload("two", 5),
					 workload("three", 5) };
	const uint32_t places[] = { 2, 1, PROFDB_NR_WORKLOADS - 1 };
	struct profdb_workloads *w = make(), *more = profdb_workloads_new();
	struct profdb_image_ref prog = { .kind = PROFDB_FILE, .id = id_a, .path = "/bin/prog" };

	(void)state;
	k.thread = "";
	k.pid = 0;
	assert_int_equal(profdb_workloads_workload_add(w, &k), 2);
	for (int i = 3; i < PROFDB_NR_WORKLOADS - 1; i++) {
		k.pid = i;
		assert_int_equal(profdb_workloads_workload_add(w, &k), i);
	}
	k.pid = 3;
	assert_int_equal(profdb_workloads_workload_add(w, &k), 3);
	k.pid = PROFDB_NR_WORKLOADS;
	assert_int_equal(profdb_workloads_workload_add(w, &k), -DCPI_ELIMIT);
	assert_int_equal(profdb_workloads_image_add(more, &prog), 0);
	assert_int_equal(profdb_workloads_event_add(more, "cycles", 62000), 0);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(profdb_workloads_workload_add(more, &who[i]), i);
		add(more, i, 0, 16 * i, 0, MINUTE, 1 + i);
	}
	assert_int_equal(profdb_workloads_merge(w, more), 0);
	assert_int_equal(profdb_workloads_nr(w), PROFDB_NR_WORKLOADS);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(profdb_workloads_count(w, i).workload, places[i]);
		assert_int_equal(profdb_workloads_count(w, i).count[0], 1 + i);
	}
	profdb_workloads_free(more);
	profdb_workloads_free(w);
}

static void test_what_is_refused_changes_nothing(void **state)
{
	struct profdb_workloads *w = make();

	(void)state;
	assert_int_equal(profdb_workloads_add(w, 2, 0, 0, 0, MINUTE, 1), -EINVAL);
	assert_int_equal(profdb_workloads_add(w, 0, 2, 0, 0, MINUTE, 1), -EINVAL);
	assert_int_equal(profdb_workloads_add(w, 0, 0, 0, 1, MINUTE, 1), -EINVAL);
	assert_int_equal(profdb_workloads_add(w, 0, 0, 0, 0, -1, 1), -EINVAL);
	add(w, 0, 0, 0, 0, MINUTE, UINT64_MAX - 1);
	assert_int_equal(profdb_workloads_add(w, 1, 0, 8, 0, MINUTE, 2), -DCPI_EOVERFLOW);
	assert_int_equal(profdb_workloads_nr_counts(w), 1);
	assert_int_equal(profdb_workloads_nr_minutes(w), 1);
	profdb_workloads_free(again(w));
	profdb_workloads_free(w);
}

static void test_empty_ones_have_a_file(void **state)
{
	struct profdb_workloads *w = profdb_workloads_new();

	(void)state;
	profdb_workloads_free(again(w));
	profdb_workloads_free(w);
}

/* Any numbers, of several events; extreme ones among them. */
static void test_any_numbers_come_back(void **state)
{
	static const uint64_t offs[] = { 0, 1023, 1024, UINT64_MAX, UINT64_MAX - 1, 1ull << 40 };
	static const int64_t minutes[] = { 0, 1, MINUTE, MINUTE + 1, INT64_MAX, INT64_MAX - 1 };
	uint64_t seed = 1;
	char name[24];

	(void)state;
	for (int round = 0; round < 60; round++) {
		size_t events = 1 + base_random64(&seed) % (round % 3 ? 3 : PROFDB_NR_EVENTS);
		struct profdb_workloads *w = make();

		for (size_t i = 1; i < events; i++) {
			snprintf(name, sizeof(name), "e%zu", i);
			assert_int_equal(profdb_workloads_event_add(w, name, 1), i);
		}
		for (int i = 0; i < round * 3; i++) {
			uint64_t v = base_random64(&seed);

			add(w, v & 1, v >> 1 & 1,
			    v & 4 ? offs[(v >> 8) % 6] : (v >> 12) % (1 << round % 20),
			    (v >> 32) % events,
			    v & 8 ? minutes[(v >> 40) % 6] : MINUTE + (int64_t)(v >> 58),
			    1 + (v >> 3) % (v & 0x200 ? 3 : UINT32_MAX));
		}
		profdb_workloads_free(again(w));
		profdb_workloads_free(w);
	}
}

/* A member that compresses to nothing is filled up until a reader trusts it. */
static void test_very_regular_counts_come_back(void **state)
{
	struct profdb_workloads *w = make();

	(void)state;
	for (uint64_t i = 0; i < 20000; i++)
		add(w, 0, 0, i, 0, MINUTE, 1);
	profdb_workloads_free(again(w));
	profdb_workloads_free(w);
}

static void test_merged_ones_add_up(void **state)
{
	struct profdb_workloads *to = make(), *from = profdb_workloads_new();
	struct profdb_workload k = workload("two", 0), l = workload("new", 7);
	struct profdb_image_ref jit = {
		.kind = PROFDB_DYNAMIC, .id = id_a, .path = "jit", .stem = "jit.dyn"
	};

	(void)state;
	k.processes = 9;
	add(to, 1, 1, 0x10, 0, MINUTE, 3);
	assert_int_equal(profdb_workloads_image_add(from, &jit), 0);
	assert_int_equal(profdb_workloads_workload_add(from, &l), 0);
	assert_int_equal(profdb_workloads_workload_add(from, &k), 1);
	assert_int_equal(profdb_workloads_event_add(from, "imiss", 10), 0);
	assert_int_equal(profdb_workloads_event_add(from, "cycles", 62000), 1);
	add(from, 0, 0, 0x10, 0, MINUTE, 1);
	add(from, 1, 0, 0x10, 1, MINUTE + 1, 2);
	assert_int_equal(profdb_workloads_merge(to, from), 0);
	is_text(to, "image /bin/prog\n"
		    "image jit\n"
		    "workload one /bin/prog /user.slice '' one 1000 1 1\n"
		    "workload two /bin/prog /user.slice '' two 1000 0 10\n"
		    "workload new /bin/prog /user.slice '' new 1000 7 1\n"
		    "count 1 10 1: 5 0\n"
		    "count 1 10 2: 0 1\n"
		    "minute 29919354 1 0 1: 3 0\n"
		    "minute 29919354 1 0 2: 0 1\n"
		    "minute 29919355 1 0 1: 2 0\n");
	assert_int_equal(profdb_workloads_event(to, 0)->sum, 5);
	assert_int_equal(profdb_workloads_event(to, 1)->sum, 1);
	profdb_workloads_free(again(to));
	profdb_workloads_free(to);
	profdb_workloads_free(from);
}

/* Each byte, cut there or changed: refused, as the checksum tells. */
static void test_damaged_files_are_refused(void **state)
{
	struct profdb_workloads *w = make(), *read;
	struct base_buf file = { 0 };

	(void)state;
	add(w, 0, 0, 0x20, 0, MINUTE + 1, 1);
	assert_int_equal(profdb_workloads_format(w, &file, NULL), 0);
	for (size_t i = 0; i < file.len; i++) {
		assert_true(profdb_workloads_parse(file.data, i, &read, NULL) < 0);
		file.data[i] ^= 4;
		assert_true(profdb_workloads_parse(file.data, file.len, &read, NULL) < 0);
		file.data[i] ^= 4;
	}
	base_buf_release(&file);
	profdb_workloads_free(w);
}

/* ---- files that no writer made --------------------------------------------------------------- */

static void set(uint8_t *to, size_t bytes, uint64_t v)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)(v >> 8 * i);
}

/* Its checksum is right again. */
static void seal(struct base_buf *b)
{
	set(b->data + b->len - 4, 4, base_crc32c(0, b->data, b->len - 4));
}

/* Where the section stands; *@end: where the next one does. */
static size_t section(const struct base_buf *file, const char *tag, size_t *end)
{
	char head[9] = { 0 };
	uint8_t *at;

	memcpy(head, tag, 4);
	at = memmem(file->data, file->len, head, 8);
	assert_non_null(at);
	*end = (size_t)(at - file->data) + 16;
	for (size_t i = 0, len = 0; i < 8; i++) {
		len |= (size_t)at[8 + i] << 8 * i;
		if (i == 7)
			*end += (size_t)base_align_up(len, 8);
	}
	return (size_t)(at - file->data);
}

/* A file without workloads, but with so many texts, all empty. */
static int parse_texts(size_t nr)
{
	struct profdb_workloads *w = profdb_workloads_new(), *read;
	struct base_buf file = { 0 }, bad = { 0 };
	size_t start, end;
	int r;

	assert_int_equal(profdb_workloads_format(w, &file, NULL), 0);
	start = section(&file, "WLDS", &end);
	assert_int_equal(base_buf_append(&bad, file.data, start + 16), 0);
	set(bad.data + start + 8, 8, 3 + nr);
	assert_int_equal(base_buf_extend(&bad, (size_t)base_align_up(3 + nr, 8), NULL), 0);
	set(bad.data + start + 16, 3,
	    (nr & 0x7f) | 0x80 | (nr >> 7 & 0x7f) << 8 | 0x8000 | nr >> 14 << 16);
	assert_int_equal(base_buf_append(&bad, file.data + end, file.len - end), 0);
	seal(&bad);
	r = profdb_workloads_parse(bad.data, bad.len, &read, NULL);
	profdb_workloads_free(read);
	base_buf_release(&file);
	base_buf_release(&bad);
	profdb_workloads_free(w);
	return r;
}

/* No more than the workloads that there may be can have: memory would be forty times the file. */
static void test_texts_have_a_limit(void **state)
{
	(void)state;
	assert_int_equal(parse_texts(1 << 14), 0);
	assert_int_equal(parse_texts((size_t)5 * PROFDB_NR_WORKLOADS), 0);
	assert_int_equal(parse_texts((size_t)5 * PROFDB_NR_WORKLOADS + 1), -DCPI_EFORMAT);
}

/* ---- notes ----------------------------------------------------------------------------------- */

static const struct profdb_note notes[] = {
	{ .utc = 1700000000, .kind = PROFDB_NOTE_START },
	{ .utc = 1700000060, .kind = PROFDB_NOTE_IDLE, .n = 60000, .of = 120000 },
	{ .utc = 1700000060, .kind = PROFDB_NOTE_IDLE, .n = 60001, .of = 120000 },
	{ .utc = 1700000070, .kind = PROFDB_NOTE_SUSPEND, .n = 3600 },
	{ .utc = 1700000070, .kind = PROFDB_NOTE_CLOCK, .n = -7200 },
	{ .utc = INT64_MAX / 4, .kind = PROFDB_NOTE_CLOCK, .n = INT64_MAX / 4 },
};
enum { NR_NOTES = sizeof(notes) / sizeof(notes[0]) };

static void has_notes(const struct profdb_workloads *w, size_t nr)
{
	assert_int_equal(profdb_workloads_nr_notes(w), nr);
	for (size_t i = 0; i < nr; i++)
		assert_memory_equal(profdb_workloads_note_at(w, i), &notes[i], sizeof(notes[i]));
	assert_null(profdb_workloads_note_at(w, nr));
}

/* They come back by time, from files, merges and counts alone. */
static void test_notes_come_back(void **state)
{
	struct profdb_workloads *w = make(), *other = make(), *read;

	(void)state;
	assert_int_equal(profdb_workloads_note(w, &notes[5]), 0);
	assert_int_equal(profdb_workloads_note(w, &notes[0]), 0);
	assert_int_equal(profdb_workloads_note(w, &notes[2]), 0);
	for (size_t i = 1; i < 5; i += i == 1 ? 2 : 1)
		assert_int_equal(profdb_workloads_note(other, &notes[i]), 0);
	assert_int_equal(profdb_workloads_merge(w, other), 0);
	read = again(w);
	has_notes(w, NR_NOTES);
	has_notes(read, NR_NOTES);
	profdb_workloads_free(read);
	profdb_workloads_free(other);
	profdb_workloads_free(w);
}

static void test_odd_notes_are_refused(void **state)
{
	static const struct profdb_note odd[] = {
		{ .utc = -1, .kind = PROFDB_NOTE_START },
		{ .utc = INT64_MAX, .kind = PROFDB_NOTE_START },
		{ .utc = 1, .kind = PROFDB_NR_NOTE_KINDS },
		{ .utc = 1, .kind = PROFDB_NOTE_SUSPEND, .n = -1 },
		{ .utc = 1, .kind = PROFDB_NOTE_CLOCK, .n = INT64_MIN },
		{ .utc = 1, .kind = PROFDB_NOTE_CLOCK, .n = 1, .of = 1 },
		{ .utc = 1, .kind = PROFDB_NOTE_IDLE, .n = 2, .of = 1 },
		{ .utc = 1, .kind = PROFDB_NOTE_IDLE, .n = -1, .of = 1 },
		{ .utc = 1, .kind = PROFDB_NOTE_IDLE, .of = UINT64_MAX },
	};
	struct profdb_workloads *w = make();

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		assert_int_equal(profdb_workloads_note(w, &odd[i]), -EINVAL);
	has_notes(w, 0);
	profdb_workloads_free(w);
}

/* The bytes of a section of notes, in an empty file. */
static int parse_notes(const char *bytes, size_t len)
{
	struct profdb_workloads *w = profdb_workloads_new(), *read;
	struct base_buf file = { 0 }, bad = { 0 };
	uint8_t head[16] = "note";
	size_t start, end;
	int r;

	assert_int_equal(profdb_workloads_format(w, &file, NULL), 0);
	start = section(&file, "WCNT", &end);
	set(head + 8, 8, len);
	assert_int_equal(base_buf_append(&bad, file.data, start), 0);
	assert_int_equal(base_buf_append(&bad, head, sizeof(head)), 0);
	assert_int_equal(base_buf_append(&bad, bytes, len), 0);
	assert_int_equal(base_buf_extend(&bad, (size_t)base_align_up(len, 8) - len, NULL), 0);
	assert_int_equal(base_buf_append(&bad, file.data + start, file.len - start), 0);
	seal(&bad);
	r = profdb_workloads_parse(bad.data, bad.len, &read, NULL);
	profdb_workloads_free(read);
	base_buf_release(&file);
	base_buf_release(&bad);
	profdb_workloads_free(w);
	return r;
}

static void test_bad_notes(void **state)
{
	(void)state;
	assert_int_equal(parse_notes("\5\0\0\1\1\4", 6), 0);
	assert_int_equal(parse_notes("", 0), -DCPI_EFORMAT);
	assert_int_equal(parse_notes("\5\0", 2), -DCPI_EFORMAT);
	assert_int_equal(parse_notes("\5\4\0", 3), -DCPI_EFORMAT);
	assert_int_equal(parse_notes("\5\1\3", 3), -DCPI_EFORMAT);
	assert_int_equal(parse_notes("\5\3\4", 3), -DCPI_EFORMAT);
	assert_int_equal(parse_notes("\5\3\4\1", 4), -DCPI_EFORMAT);
	assert_int_equal(parse_notes("\5\3\4\2", 4), 0);
	assert_int_equal(parse_notes("\xff\xff\xff\xff\xff\xff\xff\xff\x7f\0\0", 11),
			 -DCPI_EFORMAT);
}

/* ---- flushes --------------------------------------------------------------------------------- */

static int put(struct profdb *db, uint64_t n, struct base_err *err)
{
	struct profdb_workloads *w = make();
	int r;

	add(w, 1, 1, 0x10, 0, MINUTE + (int64_t)(n % 10), n);
	r = profdb_flush_put_workloads(db, w, err);
	profdb_workloads_free(w);
	return r;
}

static void flush(struct profdb *db, uint64_t n)
{
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	assert_int_equal(put(db, n, NULL), 0);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
}

static void is_sum(struct profdb *db, uint64_t n)
{
	struct profdb_workloads *w;

	assert_int_equal(profdb_workloads_load(db, SCRATCH_EPOCH, "box", &w, NULL), 0);
	assert_int_equal(profdb_workloads_nr_counts(w), 1);
	assert_int_equal(profdb_workloads_count(w, 0).count[0], n);
	assert_string_equal(profdb_profile_word(profdb_workloads_header(w), "platform"), "box");
	profdb_workloads_free(w);
}

static void test_flushes_add_up(void **state)
{
	struct profdb *db = scratch_writer(*state);
	struct base_buf bytes = { 0 };
	struct profdb_workloads *w;
	struct base_err err = { 0 };

	assert_int_equal(put(db, 1, NULL), -EINVAL);
	assert_int_equal(profdb_workloads_load(db, SCRATCH_EPOCH, "box", &w, &err), -ENOENT);
	assert_int_equal(err.code, 0);
	flush(db, 3);
	flush(db, 4);
	is_sum(db, 7);
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	assert_int_equal(put(db, 1, NULL), 0);
	is_sum(db, 7);
	profdb_flush_abort(db);
	is_sum(db, 7);
	assert_int_equal(profdb_workloads_bytes(db, SCRATCH_EPOCH, "box", &bytes, NULL), 0);
	assert_int_equal(profdb_workloads_parse(bytes.data, bytes.len, &w, NULL), 0);
	profdb_workloads_free(w);
	base_buf_release(&bytes);
	profdb_close(db);
}

static void read_file(const char *dir, struct base_buf *out)
{
	assert_int_equal(base_file_read(AT_FDCWD, scratch_path(dir, FILE_NAME), 1 << 30, out, NULL),
			 0);
}

static int nr_parts(const char *dir)
{
	struct base_buf file = { 0 };
	const uint8_t *at;
	int nr = 0;

	read_file(dir, &file);
	for (at = file.data;
	     (at = memmem(at, (size_t)(file.data + file.len - at), "WCNT\0\0\0", 8)); at++)
		nr++;
	base_buf_release(&file);
	return nr;
}

/* Flush @i: a new workload each time, an event more now and then. */
static void flush_part(struct profdb *db, struct profdb_workloads *sum, uint32_t i)
{
	struct profdb_workload k = workload("many", 1 + (int32_t)i);
	struct profdb_workloads *w = make();
	char name[24];

	snprintf(name, sizeof(name), "e%u", i / 20);
	assert_int_equal(profdb_workloads_workload_add(w, &k), 2);
	assert_int_equal(profdb_workloads_event_add(w, name, 1), 1);
	add(w, 0, 1, 0x10, 0, MINUTE + i, i + 1);
	add(w, 0, 1, 0x10, 1, MINUTE + i, 1);
	add(w, 2, 0, 0x1000 + i, 1, MINUTE + i / 2, 2);
	assert_int_equal(profdb_workloads_merge(sum, w), 0);
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	assert_int_equal(profdb_flush_put_workloads(db, w, NULL), 0);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	profdb_workloads_free(w);
}

static void is_stored(struct profdb *db, const struct profdb_workloads *sum)
{
	struct base_buf want = { 0 };
	struct profdb_workloads *w;
	struct base_err err = { 0 };

	if (profdb_workloads_load(db, SCRATCH_EPOCH, "box", &w, &err) < 0)
		fail_msg("%s", err.text);
	text_of(sum, &want);
	is_text(w, (const char *)want.data);
	base_buf_release(&want);
	profdb_workloads_free(w);
}

/* Flushes add parts, some of which become one, until the epoch ends; readers see their sum. */
static void test_parts_become_one(void **state)
{
	struct profdb *db = scratch_writer(*state);
	struct profdb_workloads *sum = profdb_workloads_new();

	for (uint32_t i = 0; i < 75; i++) {
		flush_part(db, sum, i);
		if (i % 16 == 7 || i > 60)
			is_stored(db, sum);
	}
	/* 1 of 64 flushes, 1 of 8, 3 of 1. */
	assert_int_equal(nr_parts(*state), 5);
	assert_int_equal(profdb_epoch_finish(db, NULL), 0);
	is_stored(db, sum);
	assert_int_equal(nr_parts(*state), 1);
	profdb_workloads_free(sum);
	profdb_close(db);
}

/* Its only part says that it has so many counts. */
static void lengthen_part(const char *dir, uint64_t rows)
{
	struct base_buf file = { 0 };
	size_t at, end;

	read_file(dir, &file);
	at = section(&file, "WCNT", &end);
	set(file.data + at + 16 + 2, 8, rows);
	set(file.data + file.len - 24, 8, rows);
	seal(&file);
	scratch_write(dir, FILE_NAME, file.data, file.len);
	base_buf_release(&file);
}

/* Drains wait for a merge: a part that has more counts than that may take stays as it is. */
static void test_a_long_part_stays(void **state)
{
	struct profdb *db = scratch_writer(*state);

	flush(db, 1);
	lengthen_part(*state, (1 << 20) + 1);
	for (uint64_t i = 0; i < 7; i++)
		flush(db, 1);
	assert_int_equal(nr_parts(*state), 8);
	/* Short ones behind it become one. */
	flush(db, 1);
	assert_int_equal(nr_parts(*state), 2);
	nr_decoded = 0;
	assert_int_equal(profdb_epoch_finish(db, NULL), 0);
	assert_int_equal(nr_parts(*state), 2);
	assert_int_equal(nr_decoded, 0);
	profdb_close(db);
}

/* As gc wants them. */
static void test_images_are_read_alone(void **state)
{
	struct profdb *db = scratch_writer(*state);
	struct profdb_workloads *w;

	assert_int_equal(profdb_workloads_load_images(db, SCRATCH_EPOCH, "box", &w, NULL), -ENOENT);
	flush(db, 3);
	flush(db, 4);
	nr_decoded = 0;
	assert_int_equal(profdb_workloads_load_images(db, SCRATCH_EPOCH, "box", &w, NULL), 0);
	assert_int_equal(nr_decoded, 0);
	assert_int_equal(profdb_workloads_nr_images(w), 2);
	assert_string_equal(profdb_workloads_image(w, 1)->stem, "jit.dyn");
	assert_int_equal(profdb_workloads_nr(w), 2);
	assert_int_equal(profdb_workloads_nr_counts(w), 0);
	assert_int_equal(profdb_workloads_event(w, 0)->sum, 7);
	assert_int_equal(profdb_workloads_add(w, 0, 0, 0, 0, MINUTE, 1), -EINVAL);
	profdb_workloads_free(w);
	profdb_close(db);
}

/* In less time and memory; what they are merged into has no minutes either. */
static void test_counts_are_read_alone(void **state)
{
	struct profdb *db = scratch_writer(*state);
	struct base_buf bytes = { 0 };
	struct profdb_workloads *w, *all;

	assert_int_equal(profdb_workloads_load_counts(db, SCRATCH_EPOCH, "box", &w, NULL), -ENOENT);
	flush(db, 3);
	assert_int_equal(profdb_workloads_load_counts(db, SCRATCH_EPOCH, "box", &w, NULL), 0);
	assert_int_equal(profdb_workloads_nr_counts(w), 1);
	assert_int_equal(profdb_workloads_nr_minutes(w), 0);
	assert_int_equal(profdb_workloads_event(w, 0)->sum, 3);
	assert_int_equal(profdb_workloads_add(w, 0, 0, 0, 0, MINUTE, 1), -EINVAL);
	assert_int_equal(profdb_workloads_load(db, SCRATCH_EPOCH, "box", &all, NULL), 0);
	assert_int_equal(profdb_workloads_nr_minutes(all), 1);
	assert_int_equal(profdb_workloads_merge(all, w), 0);
	assert_int_equal(profdb_workloads_count(all, 0).count[0], 6);
	assert_int_equal(profdb_workloads_nr_minutes(all), 0);
	assert_int_equal(profdb_workloads_format(all, &bytes, NULL), -EINVAL);
	assert_int_equal(profdb_workloads_merge(w, all), 0);
	assert_int_equal(profdb_workloads_count(w, 0).count[0], 9);
	profdb_workloads_free(w);
	profdb_workloads_free(all);
	profdb_close(db);
}

static int nothing(void *ctx, const char *file, struct profdb_profile *p)
{
	(void)ctx, (void)file, (void)p;
	fail_msg("a profile: %s", file);
	return 0;
}

static void bad(void *ctx, const char *file, const struct base_err *err)
{
	(void)ctx;
	fail_msg("%s: %s", file, err->text);
}

static void test_is_no_profile(void **state)
{
	struct profdb *db = scratch_writer(*state);

	flush(db, 1);
	assert_int_equal(profdb_walk(db, SCRATCH_EPOCH, "box", nothing, bad, NULL, NULL), 0);
	assert_int_equal(profdb_walk_values(db, SCRATCH_EPOCH, "box", NULL, NULL, bad, NULL, NULL),
			 0);
	profdb_close(db);
}

static void test_a_damaged_file_is_moved_aside(void **state)
{
	struct profdb *db = scratch_writer(*state);
	struct base_err err = { 0 };

	flush(db, 1);
	scratch_write(*state, FILE_NAME, "version dcpi-dynamic 1\nkind", 27);
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	assert_int_equal(put(db, 5, &err), 1);
	assert_non_null(strstr(err.text, "set aside"));
	assert_int_equal(put(db, 2, NULL), 0);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	is_sum(db, 7);
	assert_int_equal(access(scratch_path(*state, SCRATCH_EPOCH "/box/.bad-2-workloads"), F_OK),
			 0);
	profdb_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples_are_in_a_count_and_a_minute),
		cmocka_unit_test(test_workloads_are_equal_by_what_they_are),
		cmocka_unit_test(test_there_is_a_limit_of_workloads),
		cmocka_unit_test(test_what_is_refused_changes_nothing),
		cmocka_unit_test(test_empty_ones_have_a_file),
		cmocka_unit_test(test_any_numbers_come_back),
		cmocka_unit_test(test_very_regular_counts_come_back),
		cmocka_unit_test(test_merged_ones_add_up),
		cmocka_unit_test(test_damaged_files_are_refused),
		cmocka_unit_test(test_texts_have_a_limit),
		cmocka_unit_test(test_notes_come_back),
		cmocka_unit_test(test_odd_notes_are_refused),
		cmocka_unit_test(test_bad_notes),
		scratch_test(test_flushes_add_up),
		scratch_test(test_parts_become_one),
		scratch_test(test_a_long_part_stays),
		scratch_test(test_images_are_read_alone),
		scratch_test(test_counts_are_read_alone),
		scratch_test(test_is_no_profile),
		scratch_test(test_a_damaged_file_is_moved_aside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
