/* SPDX-License-Identifier: BSD-2-Clause */
/* Print profile files as text, or write them in another version of the format. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <json.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cat_whole.h"
#include "image.h"
#include "profdb.h"
#include "tools.h"

static struct {
	bool json, edge_counts, insns;
	const char *event, *format, *output;
} opt;

static const struct base_opt options[] = {
	{ "event", BASE_OPT_STRING, &opt.event, "EVENT", "Only the counts of this event.", 0, 0 },
	{ "json", BASE_OPT_FLAG, &opt.json, NULL, "Print JSON (dcpijson(5)).", 0, 0 },
	{ "moves", BASE_OPT_FLAG, &opt.edge_counts, NULL,
	  "Also where traces went (dcpid -vwindows), each way with how often.", 0, 0 },
	{ "insns", BASE_OPT_FLAG, &opt.insns, NULL,
	  "Also what the hardware told of sampled instructions (dcpiprofileme), each combination "
	  "with how often.",
	  0, 0 },
	{ "output", BASE_OPT_STRING, &opt.output, "FILE",
	  "Print nothing; write a profile file. Several profiles of one image are added up.", 0,
	  0 },
	{ "format", BASE_OPT_STRING, &opt.format, "VERSION",
	  "Version of the file that -output writes: 1 (default), 0.07 or 0.06. The old ones hold "
	  "one "
	  "event (choose it by -event) and counts of 32 bits; more is an error.",
	  0, 0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpicat",
	.summary = "print profile files",
	.operands = "PROFILE …",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpicat $DCPIDB/202611200754/box/libc.so.6.file.*",
			  "What was sampled in the C library, by offset." },
			{ "dcpicat -format 0.07 -event cycles -output old new",
			  "Write one event of the profile 'new' for tools that know the old "
			  "format." },
			{ NULL, NULL } },
	.min_operands = 1,
	.max_operands = -1,
};

/* ---- where an image's code wants to be, and its size: text_start, text_size ------------------ */

enum { NR_PATHS = 64 };

static struct image *open_image(struct image_store *store, const struct profdb_profile *p)
{
	const char *paths[NR_PATHS + 1] = { NULL };
	struct image_query q = { .kind = IMAGE_FILE,
				 .id = *profdb_profile_image(p),
				 .known = image_known_by(profdb_profile_word(p, "identity")),
				 .paths = paths };
	struct image *img = NULL;

	if (profdb_profile_kind(p) != PROFDB_FILE || !q.id.len || q.known != IMAGE_BY_ID)
		return NULL;
	for (size_t i = 0; i < NR_PATHS && profdb_profile_path(p, i); i++)
		paths[i] = profdb_profile_path(p, i);
	return image_open(store, &q, &img, NULL) < 0 ? NULL : img;
}

static bool extent_of(const struct image *img, struct base_extent *out)
{
	int fd = open(image_path(img), O_RDONLY | O_CLOEXEC), r;

	if (fd < 0)
		return false;
	r = base_elf_extent(fd, out);
	close(fd);
	return r >= 0;
}

/* Find the program or library of @p, if image_open finds a file with its identity. False: there is
 * none, or it has no code. */
static bool find_image_text(const struct profdb_profile *p, struct base_extent *out)
{
	struct image_store *store;
	struct image *img;
	bool found;

	if (image_store_open(-1, -1, &store) < 0)
		return false;
	img = open_image(store, p);
	found = img && extent_of(img, out);
	image_close(img);
	image_store_close(store);
	return found;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_word(const char *word, const char *value)
{
	char *w = cat_clean(word), *v = cat_clean(value);

	if (w && v)
		printf("%-10s %s\n", w, v);
	free(w);
	free(v);
}

/* Decimal, or hexadecimal after 0x, as the file has it; always printed as the latter. */
static void print_size(const struct profdb_profile *p, const char *word, const char *name)
{
	const char *value = profdb_profile_word(p, word);

	if (value)
		printf("%-10s 0x%llx\n", name,
		       strtoull(value, NULL, strncmp(value, "0x", 2) ? 10 : 16));
}

/*
 * Our daemon writes neither into version 1: the image itself, where it is, says it without room in
 * the profile. An old form has a size of 0 where it is not known.
 */
static bool find_text(const struct profdb_profile *p, struct base_extent *out)
{
	const char *size = profdb_profile_word(p, "tsize");

	return !profdb_profile_word(p, "tstart") && (!size || !strcmp(size, "0")) &&
	       find_image_text(p, out);
}

static void print_text(const struct profdb_profile *p)
{
	struct base_extent text;

	if (find_text(p, &text)) {
		printf("%-10s 0x%" PRIx64 "\n%-10s 0x%" PRIx64 "\n", "text_start", text.start,
		       "text_size", text.size);
		return;
	}
	print_size(p, "tstart", "text_start");
	print_size(p, "tsize", "text_size");
}

/* Printed at a place of their own. */
static bool is_placed(const char *word)
{
	static const char *const words[] = { "label", "epoch", "platform", "tstart", "tsize" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!strcmp(words[i], word))
			return true;
	}
	return false;
}

static void print_placed(const struct profdb_profile *p, const char *word)
{
	const char *value = profdb_profile_word(p, word);

	if (value)
		print_word(word, value);
}

static void print_header(const char *file, const struct profdb_profile *p)
{
	char id[BASE_ID_TEXT_LEN];
	const char *word, *value;

	print_word("name", base_path_name(file));
	print_word("image",
		   profdb_profile_image(p)->len ? base_id_text(profdb_profile_image(p), id) : "0");
	print_placed(p, "label");
	for (size_t i = 0; profdb_profile_path(p, i); i++)
		print_word("path", profdb_profile_path(p, i));
	print_placed(p, "epoch");
	print_placed(p, "platform");
	print_text(p);
	if (profdb_profile_kind(p) != PROFDB_FILE)
		print_word("kind", profdb_kind_name(profdb_profile_kind(p)));
	for (size_t i = 0; (value = profdb_profile_line(p, i, &word)); i++) {
		if (!is_placed(word))
			print_word(word, value);
	}
}

/* Events from *@first to *@end are meant. */
static int choose_events(const struct profdb_profile *p, size_t *first, size_t *end,
			 const char *file, struct base_err *err)
{
	int r;

	*first = 0;
	*end = profdb_profile_nr_events(p);
	if (!opt.event)
		return 0;
	r = profdb_profile_event_find(p, opt.event);
	if (r < 0) {
		base_fail(err, r, "profile '%s' has no event '%s'", file, opt.event);
		for (size_t i = 0; i < *end; i++)
			base_hint(err, "it has '%s'%s", profdb_profile_event(p, i)->name,
				  *end > 1 ? " and others" : "");
		return r;
	}
	*first = (size_t)r;
	*end = *first + 1;
	return 0;
}

static void print_events(const struct profdb_profile *p, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++) {
		const struct profdb_event *e = profdb_profile_event(p, i);

		printf("%-10s %" PRIu64 " %s:%" PRIu64 ":%d\n", "event", e->sum, e->name, e->period,
		       (int)(e->enabled * 10000 + 0.5));
	}
}

static void sum_edges(const struct profdb_profile *p, uint64_t sum[2])
{
	sum[0] = sum[1] = 0;
	for (size_t i = 0; i < profdb_profile_nr_edges(p); i++)
		for (int half = 0; half < 2; half++)
			sum[half] += profdb_profile_edge(p, i)->count[half];
}

static void print_edges_sum(const struct profdb_profile *p)
{
	size_t nr = profdb_profile_nr_edges(p);
	uint64_t sum[2];

	sum_edges(p, sum);
	if (nr)
		printf("%-10s %zu, %" PRIu64 " times in even and %" PRIu64 " in odd traces\n",
		       "moves", nr, sum[0], sum[1]);
}

/* As wide as an offset is. */
static void print_place(uint64_t off)
{
	if (off == PROFDB_OUTSIDE)
		printf("%-14s ", "outside");
	else if (off == PROFDB_ANY_START)
		printf("%-14s ", "any");
	else
		printf("0x%012" PRIx64 " ", off);
}

static void print_edges(const struct profdb_profile *p)
{
	for (size_t i = 0; i < profdb_profile_nr_edges(p); i++) {
		const struct profdb_edge *m = profdb_profile_edge(p, i);

		fputs("move ", stdout);
		print_place(m->start);
		print_place(m->from);
		print_place(m->to);
		printf("%" PRIu64 " %" PRIu64 "\n", m->count[0], m->count[1]);
	}
}

/* ---- instruction samples --------------------------------------------------------------------- */

/* The counts of an event. */
struct insns_sum {
	uint64_t samples, placeless;
	size_t nr;
};

static struct insns_sum sum_insns(const struct profdb_profile *p, size_t event)
{
	struct insns_sum sum = { 0 };

	for (size_t i = 0; i < profdb_profile_nr_insns(p); i++) {
		const struct profdb_insn *m = profdb_profile_insn(p, i);

		if (m->event != event)
			continue;
		sum.nr++;
		sum.samples += m->count;
		sum.placeless += m->off == PROFDB_OUTSIDE ? m->count : 0;
	}
	return sum;
}

static void print_insns_sums(const struct profdb_profile *p, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++) {
		struct insns_sum sum = sum_insns(p, i);

		if (!sum.nr)
			continue;
		printf("%-10s %s: %" PRIu64 " samples told of, in %zu combinations", "insns",
		       profdb_profile_event(p, i)->name, sum.samples, sum.nr);
		if (sum.placeless)
			printf("; for %" PRIu64 " there was no room", sum.placeless);
		putchar('\n');
	}
}

/* "retired !taken inflight=120" */
static void print_told(const struct profdb_insn *m)
{
	for (int i = 0; i < ISAMPLE_NR_BITS; i++)
		if (m->known & ISAMPLE_BIT(i))
			printf(" %s%s", m->bits & ISAMPLE_BIT(i) ? "" : "!",
			       isample_bit_name((enum isample_bit)i));
	for (int i = 0; i < ISAMPLE_NR_COUNTERS; i++)
		if (m->known & ISAMPLE_HAS(i))
			printf(" %s=%" PRIu64, isample_counter_name((enum isample_counter)i),
			       m->sum[i]);
}

static void print_insns(const struct profdb_profile *p, size_t first, size_t end)
{
	for (size_t i = 0; i < profdb_profile_nr_insns(p); i++) {
		const struct profdb_insn *m = profdb_profile_insn(p, i);

		if (m->event < first || m->event >= end)
			continue;
		fputs("insn ", stdout);
		print_place(m->off);
		printf("%s %" PRIu64, profdb_profile_event(p, m->event)->name, m->count);
		print_told(m);
		putchar('\n');
	}
}

static struct json_object *json_insn(const struct profdb_profile *p, const struct profdb_insn *m)
{
	struct json_object *o = json_object_new_object(), *bits = json_object_new_object();
	struct json_object *sums = json_object_new_object();

	for (int i = 0; i < ISAMPLE_NR_BITS; i++)
		if (m->known & ISAMPLE_BIT(i))
			json_object_object_add(
				bits, isample_bit_name((enum isample_bit)i),
				json_object_new_boolean((m->bits & ISAMPLE_BIT(i)) != 0));
	for (int i = 0; i < ISAMPLE_NR_COUNTERS; i++)
		if (m->known & ISAMPLE_HAS(i))
			json_object_object_add(sums, isample_counter_name((enum isample_counter)i),
					       json_object_new_uint64(m->sum[i]));
	json_object_object_add(o, "offset",
			       m->off == PROFDB_OUTSIDE ? NULL : json_object_new_uint64(m->off));
	json_object_object_add(o, "event", cat_text_json(profdb_profile_event(p, m->event)->name));
	json_object_object_add(o, "samples", json_object_new_uint64(m->count));
	json_object_object_add(o, "bits", bits);
	json_object_object_add(o, "sums", sums);
	return o;
}

static struct json_object *json_insns(const struct profdb_profile *p, size_t first, size_t end)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < profdb_profile_nr_insns(p); i++) {
		const struct profdb_insn *m = profdb_profile_insn(p, i);

		if (m->event >= first && m->event < end)
			json_object_array_add(list, json_insn(p, m));
	}
	return list;
}

/* ---- counts ---------------------------------------------------------------------------------- */

static bool has_counts(const struct profdb_entry *e, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++) {
		if (e->count[i])
			return true;
	}
	return false;
}

static void print_rows(const struct profdb_profile *p, size_t first, size_t end)
{
	for (size_t i = 0; i < profdb_profile_nr_entries(p); i++) {
		const struct profdb_entry *e = profdb_profile_entry(p, i);

		if (!has_counts(e, first, end))
			continue;
		printf("0x%012" PRIx64, e->off);
		for (size_t j = first; j < end; j++)
			printf(" %" PRIu64, e->count[j]);
		putchar('\n');
	}
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static struct json_object *json_events(const struct profdb_profile *p, size_t first, size_t end)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = first; i < end; i++) {
		const struct profdb_event *e = profdb_profile_event(p, i);
		struct json_object *o = json_object_new_object();

		json_object_object_add(o, "name", cat_text_json(e->name));
		json_object_object_add(o, "samples", json_object_new_uint64(e->sum));
		json_object_object_add(o, "period", json_object_new_uint64(e->period));
		json_object_object_add(o, "enabled", json_object_new_double(e->enabled));
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *json_rows(const struct profdb_profile *p, size_t first, size_t end)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < profdb_profile_nr_entries(p); i++) {
		const struct profdb_entry *e = profdb_profile_entry(p, i);
		struct json_object *o, *counts;

		if (!has_counts(e, first, end))
			continue;
		o = json_object_new_object();
		counts = json_object_new_array();
		for (size_t j = first; j < end; j++)
			json_object_array_add(counts, json_object_new_uint64(e->count[j]));
		json_object_object_add(o, "offset", json_object_new_uint64(e->off));
		json_object_object_add(o, "counts", counts);
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *json_counts(const uint64_t counts[2])
{
	struct json_object *o = json_object_new_array();

	for (int half = 0; half < 2; half++)
		json_object_array_add(o, json_object_new_uint64(counts[half]));
	return o;
}

static struct json_object *json_place(uint64_t off)
{
	if (off >= PROFDB_ANY_START)
		return json_object_new_string(off == PROFDB_OUTSIDE ? "outside" : "any");
	return json_object_new_uint64(off);
}

static struct json_object *json_edge(const struct profdb_edge *m)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "start", json_place(m->start));
	json_object_object_add(o, "from", json_place(m->from));
	json_object_object_add(o, "to", json_place(m->to));
	json_object_object_add(o, "counts", json_counts(m->count));
	return o;
}

static struct json_object *json_edges(const struct profdb_profile *p)
{
	struct json_object *o = json_object_new_object(), *rows;
	size_t nr = profdb_profile_nr_edges(p);
	uint64_t sum[2];

	sum_edges(p, sum);
	json_object_object_add(o, "number", json_object_new_uint64(nr));
	json_object_object_add(o, "counts", json_counts(sum));
	if (!opt.edge_counts)
		return o;
	rows = json_object_new_array();
	for (size_t i = 0; i < nr; i++)
		json_object_array_add(rows, json_edge(profdb_profile_edge(p, i)));
	json_object_object_add(o, "rows", rows);
	return o;
}

static struct json_object *json_lines(const struct profdb_profile *p)
{
	struct json_object *list = json_object_new_array();
	const char *word, *value;

	for (size_t i = 0; (value = profdb_profile_line(p, i, &word)); i++) {
		struct json_object *o = json_object_new_object();

		json_object_object_add(o, "word", cat_text_json(word));
		json_object_object_add(o, "value", cat_text_json(value));
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *json_profile(const char *file, const struct profdb_profile *p,
					size_t first, size_t end)
{
	struct json_object *o = json_object_new_object(), *paths = json_object_new_array();
	const struct base_id *image = profdb_profile_image(p);
	struct base_extent text;
	char id[BASE_ID_TEXT_LEN];

	for (size_t i = 0; profdb_profile_path(p, i); i++)
		json_object_array_add(paths, cat_text_json(profdb_profile_path(p, i)));
	json_object_object_add(o, "file", cat_text_json(file));
	json_object_object_add(o, "kind",
			       json_object_new_string(profdb_kind_name(profdb_profile_kind(p))));
	json_object_object_add(o, "image",
			       image->len ? json_object_new_string(base_id_text(image, id)) : NULL);
	json_object_object_add(o, "paths", paths);
	if (find_text(p, &text)) {
		json_object_object_add(o, "text_start", json_object_new_uint64(text.start));
		json_object_object_add(o, "text_size", json_object_new_uint64(text.size));
	}
	json_object_object_add(o, "header", json_lines(p));
	json_object_object_add(o, "events", json_events(p, first, end));
	json_object_object_add(o, "rows", json_rows(p, first, end));
	if (profdb_profile_nr_edges(p))
		json_object_object_add(o, "moves", json_edges(p));
	if (opt.insns)
		json_object_object_add(o, "insns", json_insns(p, first, end));
	return o;
}

/* The files' contents as JSON; NULL where text is printed. */
struct printed {
	struct json_object *profiles, *wholes[CAT_NR_WHOLES];
	bool any;
};

/* The beginning of a file about all images. */
static struct json_object *json_head(const char *file, const struct profdb_profile *header,
				     size_t first, size_t end)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "file", cat_text_json(file));
	json_object_object_add(o, "header", json_lines(header));
	json_object_object_add(o, "events", json_events(header, first, end));
	return o;
}

/* Files of a kind of which there may be none. */
static void json_add_files(struct json_object *root, const char *name, struct json_object *files)
{
	if (json_object_array_length(files))
		json_object_object_add(root, name, json_object_get(files));
	json_object_put(files);
}

static int json_print(const struct printed *p)
{
	struct json_object *root = json_object_new_object();
	const char *text;
	int r = -ENOMEM;

	json_object_object_add(root, "schema", json_object_new_string("dcpicat/1"));
	json_object_object_add(root, "profiles", p->profiles);
	for (size_t i = 0; i < CAT_NR_WHOLES; i++)
		json_add_files(root, cat_wholes[i].name, p->wholes[i]);
	text = json_object_to_json_string_ext(root, JSON_C_TO_STRING_PRETTY |
							    JSON_C_TO_STRING_NOSLASHESCAPE);
	if (text)
		r = puts(text) < 0 ? -errno : 0;
	json_object_put(root);
	return r;
}

/* ---- the commands ---------------------------------------------------------------------------- */

static int fail(const struct base_err *err)
{
	base_err_print(err, cmd.name, stderr);
	return err->code == -DCPI_EUSAGE ? BASE_EXIT_USAGE : BASE_EXIT_FAILED;
}

static void begin_text(struct printed *p)
{
	if (p->any)
		putchar('\n');
	p->any = true;
}

static int show_profile(const char *file, const struct profdb_profile *p, struct printed *printed,
			struct base_err *err)
{
	size_t first, end;
	int r = choose_events(p, &first, &end, file, err);

	if (r < 0)
		return r;
	if (printed->profiles) {
		json_object_array_add(printed->profiles, json_profile(file, p, first, end));
		return 0;
	}
	begin_text(printed);
	print_header(file, p);
	print_events(p, first, end);
	print_edges_sum(p);
	print_insns_sums(p, first, end);
	print_rows(p, first, end);
	if (opt.edge_counts)
		print_edges(p);
	if (opt.insns)
		print_insns(p, first, end);
	return 0;
}

/* 1: as JSON, into *@json; 0: its head is printed; or negative. Events of @range are chosen. */
static int begin_whole(const char *file, const struct profdb_profile *header, size_t range[2],
		       struct printed *printed, struct json_object **json, struct base_err *err)
{
	int r = choose_events(header, &range[0], &range[1], file, err);

	if (r < 0)
		return r;
	if (printed->profiles) {
		*json = json_head(file, header, range[0], range[1]);
		return 1;
	}
	begin_text(printed);
	print_header(file, header);
	print_events(header, range[0], range[1]);
	return 0;
}

static int show_whole(const struct cat_whole *kind, const void *content, const char *file,
		      struct printed *printed, struct base_err *err)
{
	struct json_object *o;
	size_t range[2];
	int r = begin_whole(file, kind->header(content), range, printed, &o, err);

	if (r < 0)
		return r;
	if (r == 1) {
		kind->json(content, range[0], range[1], o);
		json_object_array_add(printed->wholes[kind - cat_wholes], o);
		return 0;
	}
	r = kind->print(content, range[0], range[1]);
	return r < 0 ? base_fail_errno(err, r, "cannot print '%s'", file) : 0;
}

/* A file that profiles' reader does not know; 1: it is of no other kind either. */
static int show_other(const char *file, struct printed *printed, struct base_err *err)
{
	struct base_buf bytes = { 0 };
	int r = 1;

	if (base_file_read(AT_FDCWD, file, PROFDB_FILE_MAX, &bytes, NULL) < 0)
		return 1;
	for (size_t i = 0; r == 1 && i < CAT_NR_WHOLES; i++) {
		const struct cat_whole *kind = &cat_wholes[i];
		void *content = NULL;

		if (kind->parse(&bytes, &content) < 0)
			continue;
		r = show_whole(kind, content, file, printed, err);
		kind->free(content);
	}
	base_buf_release(&bytes);
	return r;
}

static int show(const char *file, struct printed *printed)
{
	struct base_err err = { 0 }, why = { 0 };
	struct profdb_profile *p = NULL;
	int r = profdb_profile_read(file, &p, &err), other = 1;

	if (r >= 0)
		r = show_profile(file, p, printed, &err);
	else if (r == -DCPI_EVERSION)
		other = show_other(file, printed, &why);
	profdb_profile_free(p);
	/* Where it is none of these, the profile's failure tells more. */
	if (other != 1)
		return other < 0 ? fail(&why) : BASE_EXIT_OK;
	return r < 0 ? fail(&err) : BASE_EXIT_OK;
}

static int show_all(int nr, char **files)
{
	struct printed printed = { 0 };
	int r = 0, code = BASE_EXIT_OK;

	if (opt.json)
		printed.profiles = json_object_new_array();
	for (size_t i = 0; opt.json && i < CAT_NR_WHOLES; i++)
		printed.wholes[i] = json_object_new_array();
	for (int i = 0; i < nr; i++) {
		if (show(files[i], &printed) != BASE_EXIT_OK)
			code = BASE_EXIT_FAILED;
	}
	if (opt.json)
		r = json_print(&printed);
	if (r < 0) {
		fprintf(stderr, "%s: cannot print JSON: %s\n", cmd.name, base_strerror(r));
		code = BASE_EXIT_FAILED;
	}
	return code;
}

/* As the database tells them apart: where there is no identity, by the first path. */
static bool same_image(const struct profdb_profile *a, const struct profdb_profile *b)
{
	const char *path_a = profdb_profile_path(a, 0), *path_b = profdb_profile_path(b, 0);

	if (profdb_profile_kind(a) != profdb_profile_kind(b) ||
	    !base_id_equal(profdb_profile_image(a), profdb_profile_image(b)))
		return false;
	if (profdb_profile_image(a)->len && profdb_profile_kind(a) != PROFDB_NAMED)
		return true;
	return !strcmp(path_a ? path_a : "", path_b ? path_b : "");
}

/* A sum over several labels has none. */
static bool same_label(const struct profdb_profile *a, const struct profdb_profile *b)
{
	const char *x = profdb_profile_word(a, "label"), *y = profdb_profile_word(b, "label");

	return x && y && !strcmp(x, y);
}

/* Add @file to *@sum, which begins as the first one. */
static int add_file(const char *file, struct profdb_profile **sum, struct base_err *err)
{
	struct profdb_profile *p;
	int r = profdb_profile_read(file, &p, err);

	if (r < 0)
		return r;
	if (!*sum) {
		*sum = p;
		return 0;
	}
	if (!same_image(p, *sum)) {
		r = base_fail(err, -EINVAL, "profile '%s' is of another image", file);
		base_hint(err, "only profiles of one image can be added up");
	} else {
		r = profdb_profile_merge(*sum, p);
		if (r >= 0 && !same_label(p, *sum))
			r = profdb_profile_set_word(*sum, "label", NULL);
		if (r < 0)
			base_fail_errno(err, r, "cannot add profile '%s'", file);
	}
	profdb_profile_free(p);
	return r;
}

/* The event of an old format: the chosen one, or the only one. @file: where @p is from. */
static int write_profile(const struct profdb_profile *p, const char *file,
			 enum profdb_format format, struct base_err *err)
{
	struct base_buf buf = { 0 };
	size_t first, end;
	int r = choose_events(p, &first, &end, file, err);

	if (r >= 0 && format != PROFDB_FORMAT_1 && end - first != 1) {
		r = base_fail(err, -DCPI_EUSAGE, "format %s holds one event, the profile %zu",
			      opt.format, end - first);
		base_hint(err, "choose one by -event");
	}
	if (r >= 0 && format == PROFDB_FORMAT_1 && opt.event) {
		r = base_fail(err, -DCPI_EUSAGE, "-event chooses nothing in a file of version 1");
		base_hint(err, "version 1 holds all events; use -format 0.07 for one alone");
	}
	if (r >= 0)
		r = profdb_profile_format(p, format, first, &buf, err);
	if (r >= 0)
		r = base_output_write(opt.output, 0644, buf.data, buf.len, err);
	base_buf_release(&buf);
	return r;
}

/* Give an old format the image's text_start and text_size, where its file is found. */
static int add_text(struct profdb_profile *p, struct base_err *err)
{
	struct base_extent text;
	char start[32], size[32];
	int r;

	if (!find_text(p, &text))
		return 0;
	snprintf(start, sizeof(start), "0x%" PRIx64, text.start);
	snprintf(size, sizeof(size), "%" PRIu64, text.size);
	r = profdb_profile_set_word(p, "tstart", start);
	if (r >= 0)
		r = profdb_profile_set_word(p, "tsize", size);
	return r < 0 ? base_fail_errno(err, r, "cannot add the image's text") : 0;
}

static int convert(int nr, char **files)
{
	struct profdb_profile *sum = NULL;
	struct base_err err = { 0 };
	enum profdb_format format;
	int r = profdb_format_find(opt.format, &format, &err);

	for (int i = 0; r >= 0 && i < nr; i++)
		r = add_file(files[i], &sum, &err);
	if (r >= 0 && format != PROFDB_FORMAT_1)
		r = add_text(sum, &err);
	if (r >= 0)
		r = write_profile(sum, files[0], format, &err);
	profdb_profile_free(sum);
	return r < 0 ? fail(&err) : BASE_EXIT_OK;
}

static int dcpicat_main(int argc, char **argv)
{
	struct base_err err = { 0 };
	int r = base_opt_parse(&cmd, &argc, &argv, &err);

	if (r == BASE_OPT_DONE)
		return BASE_EXIT_OK;
	if (r >= 0 && opt.format && !opt.output) {
		r = base_fail(&err, -DCPI_EUSAGE, "-format needs -output");
		base_hint(&err, "give the file to be written: -output FILE");
	}
	if (r >= 0 && (opt.json || opt.edge_counts || opt.insns) && opt.output)
		r = base_fail(&err, -DCPI_EUSAGE, "%s prints, -output does not",
			      opt.json	  ? "-json"
			      : opt.insns ? "-insns"
					  : "-moves");
	if (r < 0)
		return fail(&err);
	return opt.output ? convert(argc, argv) : show_all(argc, argv);
}

const struct tool dcpicat_tool = { .cmd = &cmd, .main = dcpicat_main };
